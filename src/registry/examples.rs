//! What the examples of the reference need so that they run as they are on demo data: records that are found by a filter, or made.

use engine::registry::{Lookup, Needed};

/// An open invoice.
const OPEN_INVOICE: Lookup = Lookup::found("ID", "/v1/invoices?payment_status=open&is_credit=false");
const NEW_DRAFT: Lookup = Lookup::made("ID", "/v1/invoices", r#"{"title": "Uren van mei"}"#);
const PAID_INVOICE: Lookup = Lookup::found("ID", "/v1/invoices?payment_status=paid&is_credit=false");
/// A document that is final, since it was made so.
const NEW_QUOTE: Lookup = Lookup::made(
    "ID",
    "/v1/quotes",
    r#"{"title": "Hr-ketel met installatie", "generate": true, "rows": [{"name": "Hr-ketel 28 kW", "unit_price": 1485, "vat_code": "NL21"}]}"#,
);
const NEW_COMPANY: Lookup =
    Lookup::made("ID", "/v1/clients", r#"{"company_name": "Bakkerij Van Loon", "iban": "NL20INGB0001234567"}"#);
const PERSON: Lookup = Lookup::found("CLIENT_ID", "/v1/clients?type=private");
const NEW_LINK: Lookup =
    Lookup::made("LINK_ID", "/v1/clients/$ID/links", r#"{"client_id": "$CLIENT_ID", "function": "Administratie"}"#);
const NEW_MANDATE: Lookup = Lookup::made(
    "MANDATE_ID",
    "/v1/clients/$ID/direct-debit/mandate",
    r#"{"mandate_id": "M-2026-100", "signed_on": "2026-05-01"}"#,
);
const NEW_FLOW: Lookup = Lookup::made(
    "FLOW_ID",
    "/v1/automation/flows",
    r#"{"name": "Vraag om akkoord", "trigger_type": "custom", "trigger_key": "order.placed", "steps": [{"type": "approval", "message": "Leveren?"}]}"#,
);
const NEW_RUN: Lookup =
    Lookup { key: "run_id", ..Lookup::made("ID", "/v1/automation/trigger", r#"{"event": "order.placed"}"#) };
const NEW_ENDPOINT: Lookup =
    Lookup::made("ID", "/v1/webhook-endpoints", r#"{"url": "https://example.com/hooks", "events": ["invoice.*"]}"#);
const NEW_DELIVERY: Lookup =
    Lookup { key: "delivery_id", ..Lookup::made("WEBHOOK_DELIVERY_ID", "/v1/webhook-endpoints/$ID/test", "") };
const NEW_HOUR: Lookup = Lookup::made(
    "HOUR_ID",
    "/v1/projects/$ID/hours",
    r#"{"date": "2026-05-04", "minutes": 90, "activity_name": "Ketel inregelen"}"#,
);
const PROJECT: Lookup = Lookup::found("ID", "/v1/projects");
const NEW_IDENTITY: Lookup = Lookup::made("ID", "/v1/corporate-identities", r#"{"name": "Van Dijk Service"}"#);
const NEW_SUBSCRIPTION: &str = r#"{"title": "Onderhoudscontract compleet", "status": "draft", "subscription_start": "2027-01-01", "lines": [{"title": "Onderhoud", "unit_price": 14.95, "vat_code": "NL21"}]}"#;

/// A key that an example may change or revoke: the first of the list may be the caller's own.
const NEW_KEY: Lookup = Lookup::made("ID", "/v1/api-keys", r#"{"name": "Boekhouding", "scopes": ["invoices.read"]}"#);
const NEW_EXPORT: Lookup = Lookup::made("ID", "/v1/exports", r#"{"resource": "clients"}"#);

/// A table, since the files of the demo are documents.
const NEW_TABLE: Lookup =
    Lookup::uploaded("FILE_ID", "company_name,email\nBakkerij Van Loon,info@bakkerij-van-loon.example");
const NEW_IMPORT: Lookup = Lookup::made("ID", "/v1/imports", r#"{"resource": "clients", "file_id": "$FILE_ID"}"#);

/// A file for the bank requires who collects, and something to collect.
const CREDITOR: Lookup =
    Lookup::changed("CREDITOR_ID", "/v1/settings", r#"{"creditor_id": "NL69ABC123456780000"}"#, "creditor_id");
const NEW_DEBTOR: Lookup = Lookup { name: "CLIENT_ID", ..NEW_COMPANY };
const DEBTOR_MANDATE: Lookup = Lookup { path: "/v1/clients/$CLIENT_ID/direct-debit/mandate", ..NEW_MANDATE };
const DEBTOR_INVOICE: Lookup = Lookup::made(
    "INVOICE_ID",
    "/v1/invoices",
    r#"{"title": "Onderhoud", "client_id": "$CLIENT_ID", "generate": true, "rows": [{"name": "Onderhoud", "unit_price": 95, "vat_code": "NL21"}]}"#,
);
const COLLECTED_INVOICE: Lookup = Lookup::made("INVOICE_ID", "/v1/invoices/$INVOICE_ID/collect", "");

/// What examples need.
pub const NEEDED: &[Needed] = &[
    Needed { operations: &["updateApiKey", "rotateApiKey", "revokeApiKey"], lookups: &[NEW_KEY] },
    Needed {
        operations: &["getExport", "deleteExport", "downloadExportFile", "listExportHistory"],
        lookups: &[NEW_EXPORT],
    },
    Needed {
        operations: &["updateTicketStatus", "deleteTicketStatus"],
        lookups: &[Lookup::made("ID", "/v1/ticket-statuses", r#"{"name": "Wacht op onderdelen"}"#)],
    },
    Needed { operations: &["getRun", "cancelRun", "listRunSteps"], lookups: &[NEW_FLOW, NEW_RUN] },
    Needed { operations: &["createClientLink"], lookups: &[NEW_COMPANY, PERSON] },
    Needed {
        operations: &["getClientLink", "updateClientLink", "deleteClientLink", "listClientLinkHistory"],
        lookups: &[NEW_COMPANY, PERSON, NEW_LINK],
    },
    Needed {
        operations: &["mergeClient"],
        lookups: &[
            Lookup::found("ID", "/v1/clients?type=company"),
            Lookup::made("OTHER_DUPLICATE_ID", "/v1/clients", r#"{"company_name": "Bakkerij De Ster (dubbel)"}"#),
        ],
    },
    Needed {
        operations: &["mergeSupplier"],
        lookups: &[
            Lookup::found("ID", "/v1/suppliers?type=company"),
            Lookup::made("OTHER_DUPLICATE_ID", "/v1/suppliers", r#"{"company_name": "Thermo Groothandel (dubbel)"}"#),
        ],
    },
    Needed { operations: &["deleteClient"], lookups: &[NEW_COMPANY] },
    Needed { operations: &["updateCorporateIdentity", "deleteCorporateIdentity"], lookups: &[NEW_IDENTITY] },
    Needed { operations: &["createVerification"], lookups: &[NEW_COMPANY] },
    Needed {
        operations: &["getVerification", "listVerificationHistory"],
        lookups: &[NEW_COMPANY, Lookup::made("VERIFICATION_ID", "/v1/clients/$ID/direct-debit/verification", "{}")],
    },
    Needed { operations: &["createMandate"], lookups: &[NEW_COMPANY] },
    Needed { operations: &["listMandateHistory", "getMandate", "deleteMandate"], lookups: &[NEW_COMPANY, NEW_MANDATE] },
    Needed {
        operations: &["collectInvoice"],
        lookups: &[NEW_DEBTOR, DEBTOR_MANDATE, Lookup { name: "ID", ..DEBTOR_INVOICE }],
    },
    Needed {
        operations: &["createBatch"],
        lookups: &[CREDITOR, NEW_DEBTOR, DEBTOR_MANDATE, DEBTOR_INVOICE, COLLECTED_INVOICE],
    },
    Needed {
        operations: &["getBatch", "downloadBatch", "listBatchHistory"],
        lookups: &[
            CREDITOR,
            NEW_DEBTOR,
            DEBTOR_MANDATE,
            DEBTOR_INVOICE,
            COLLECTED_INVOICE,
            Lookup::made("ID", "/v1/direct-debit/batches", "{}"),
        ],
    },
    Needed { operations: &["createImport"], lookups: &[NEW_TABLE] },
    Needed {
        operations: &["getImport", "updateImport", "deleteImport", "runImport", "listImportHistory"],
        lookups: &[NEW_TABLE, NEW_IMPORT],
    },
    Needed { operations: &["undoImport"], lookups: &[Lookup::found("ID", "/v1/imports?status=done")] },
    Needed { operations: &["createPayment"], lookups: &[OPEN_INVOICE] },
    Needed { operations: &["releaseInvoicesHours"], lookups: &[NEW_DRAFT] },
    Needed {
        operations: &["getPayment", "updatePayment", "deletePayment", "listPaymentHistory"],
        lookups: &[PAID_INVOICE, Lookup::found("PAYMENT_ID", "/v1/invoices/$ID/payments")],
    },
    Needed {
        operations: &["deletePhase"],
        lookups: &[
            Lookup::found("PIPELINE_ID", "/v1/pipelines"),
            Lookup::made("ID", "/v1/phases", r#"{"pipeline_id": "$PIPELINE_ID", "name": "Nazorg"}"#),
        ],
    },
    Needed {
        operations: &["deletePipeline"],
        lookups: &[Lookup::made("ID", "/v1/pipelines", r#"{"name": "Service"}"#)],
    },
    Needed {
        operations: &["deleteTaxRate"],
        lookups: &[Lookup::made("ID", "/v1/tax-rates", r#"{"code": "FR20", "label": "Frankrijk 20%", "amount": 20}"#)],
    },
    Needed {
        operations: &[
            "getProjectHour",
            "updateProjectHour",
            "deleteProjectHour",
            "submitProjectHour",
            "listProjectHourHistory",
        ],
        lookups: &[PROJECT, NEW_HOUR],
    },
    Needed {
        operations: &["approveProjectHour", "rejectProjectHour", "withdrawProjectHour"],
        lookups: &[PROJECT, NEW_HOUR, Lookup::made("HOUR_ID", "/v1/projects/$ID/hours/$HOUR_ID/submit", "")],
    },
    Needed {
        operations: &["createProjectInvoice"],
        lookups: &[
            PROJECT,
            NEW_HOUR,
            Lookup::made("HOUR_ID", "/v1/projects/$ID/hours/$HOUR_ID/submit", ""),
            Lookup::made("HOUR_ID", "/v1/projects/$ID/hours/$HOUR_ID/approve", ""),
        ],
    },
    Needed {
        operations: &[
            "acceptQuote",
            "rejectQuote",
            "createQuoteInvoice",
            "createQuoteProject",
            "invoiceQuote",
            "convertQuote",
        ],
        lookups: &[NEW_QUOTE],
    },
    Needed {
        operations: &["activateSubscription"],
        lookups: &[Lookup::made("ID", "/v1/subscriptions", NEW_SUBSCRIPTION)],
    },
    Needed {
        operations: &["inviteUser"],
        lookups: &[Lookup::made(
            "ID",
            "/v1/users",
            r#"{"email": "bas@vandijk.example", "name": "Bas Willems", "role": "member"}"#,
        )],
    },
    Needed {
        operations: &[
            "listWebhookDeliveries",
            "rotateWebhookEndpointSecret",
            "testWebhookEndpoint",
            "listWebhookEndpointHistory",
            "getWebhookEndpoint",
            "updateWebhookEndpoint",
            "deleteWebhookEndpoint",
        ],
        lookups: &[NEW_ENDPOINT],
    },
    Needed { operations: &["resendWebhookDelivery"], lookups: &[NEW_ENDPOINT, NEW_DELIVERY] },
    Needed {
        operations: &["getMailTemplate", "updateMailTemplate", "deleteMailTemplate", "listMailTemplateHistory"],
        lookups: &[Lookup::made(
            "ID",
            "/v1/mail-templates",
            r#"{"send_type": "invoice", "language": "nl", "subject": "Factuur {number}", "message": "{salutation},\n\nHierbij factuur {number}. {payment}\n\n{sender}"}"#,
        )],
    },
];

/// What callers must know before the example: it needs something that an account with demo data does not have, or changes
/// more than it shows.
pub const NOTES: &[(&[&str], &str)] = &[
    (
        &["updateMe", "updatePresence", "deleteSession", "endSessionOthers"],
        "Only for a person who has signed in: send the cookie of the session instead of a key.",
    ),
    (&["getTestClock", "advanceTestClock"], "Only in an account with a test clock, with its own key."),
    (&["undoImport"], "Only for an import that has ended."),
    (&["deleteFile"], "Only for a file that was uploaded, not for the PDF of a final document."),
    (&["retryMail"], "Only for a mail that failed."),
    (&["retryRun"], "Only for a run that failed."),
    (&["approveRun", "rejectRun"], "Only for a run that waits for approval."),
    (
        &["createBatch", "getBatch", "downloadBatch", "listBatchHistory"],
        "Replaces the creditor identifier in the settings: use your own.",
    ),
];
