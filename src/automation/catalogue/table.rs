//! Every event, grouped by the first part of its name. The list in `docs/events.md`, `GET /v1/events/types`, the vocabulary of
//! flows and the webhooks of the OpenAPI document are made from this table, and `log::append` rejects other names in tests.

use super::entry::{CREATED, DELETED, Entry, Group, OUTSIDE, UPDATED, event};

const DOCUMENTS: &[&str] = &["invoice", "quote", "workorder"];
const WITH_MAIL: &[&str] = &["invoice", "quote", "workorder", "ticket"];

/// The data of events of the account.
const ACCOUNT: &str = r#"{"id": "019df263-9af2-7113-929b-2fc82e5efe90"}"#;
const WHOLE_ACCOUNT: &str = r#"{"id": "019df263-9af2-7113-929b-2fc82e5efe90", "name": "Van Dijk Installatietechniek", "time_zone": "Europe/Amsterdam", "test_clock": false}"#;
/// What a fired event contains.
const FIRED: &str =
    r#"{"event": "order.shipped", "entity_type": "", "data": {"total": 1872, "name": "Bakkerij De Ster"}}"#;
/// The message of a ticket.
const MESSAGE: &str = r#"{"message": {"id": "019df263-b4af-739d-95b6-5a14849e885a", "direction": "in", "type": "reply", "body": "De oven blijft koud.", "author": {"name": "Anna de Vries", "email": "info@bakkerij-de-ster.example"}, "created_at": "2026-05-04T10:00:00.000Z"}}"#;
/// Of the record that replaces a duplicate.
const MERGED: &str = r#"{"merged_id": "019df263-b4af-739d-95b6-5a14849e885a"}"#;
/// A delivery that was given up.
const MAIL: &str = r#"{"mail": {"id": "019df263-b4af-739d-95b6-5a14849e885a", "send_type": "invoice", "subject": "Factuur F2026-0042", "recipient": "facturen@bakkerij-de-ster.example", "attempts": 1, "reason": "550 5.1.1 No such user"}}"#;
/// A reminder that was not sent.
const CANCELED: &str = r#"{"mail": {"id": "019df263-b4af-739d-95b6-5a14849e885a", "send_type": "invoice_rem1", "subject": "Betalingsherinnering: factuur F2026-0042", "recipient": "facturen@bakkerij-de-ster.example", "attempts": 0, "reason": "Not sent: the invoice was paid before the reminder was due to leave."}}"#;
/// A delivery that is sent again.
const RETRIED: &str = r#"{"id": "019df263-b4af-739d-95b6-5a14849e885a", "about": "invoice", "about_id": "019a3c5e-7d10-7c3e-9a52-4f6b1c2d3e4f"}"#;

/// What an endpoint that is tested receives.
const TESTED: &str = r#"{"endpoint_id": "019a3c5e-7d10-7c3e-9a52-4f6b1c2d3e4f"}"#;

/// Events of records that are created, changed and deleted.
const USUAL: &[Entry] = &[CREATED, UPDATED, DELETED];
/// Of records that are also guarded.
const GUARDED: &[Entry] = &[CREATED, UPDATED, DELETED, OUTSIDE];
/// For events of the contract that the program itself does not emit.
const FIRED_ONLY: &str = "Only when a caller fires it: Kantoor does not emit it by itself.";

/// Declares the table, with a line per event however long it is.
macro_rules! table {
    ($($row:tt)*) => {
        /// The table.
        pub const TABLE: &[Group] = &[$($row)*];
    };
}

table! {
    Group {
        prefix: "account",
        about: &[],
        one: "The account",
        events: &[
            CREATED.with(WHOLE_ACCOUNT),
            UPDATED.with(WHOLE_ACCOUNT),
            event("closed", "The account was closed.", "By `kantoor account close`.").with(WHOLE_ACCOUNT),
            event("reopened", "The account was reopened.", "By `kantoor account reopen`.").with(WHOLE_ACCOUNT),
            event("set_up_requested", "A link was created with which the first owner sets up the account.", "At the first start, and by `kantoor user create --owner`.").with(ACCOUNT),
            event("secrets_rotated", "The key that encrypts secrets was replaced.", "By `kantoor secrets rotate`, in every account.").with(ACCOUNT),
            event("secrets_reset", "Secrets were discarded because their key is lost.", "By `kantoor secrets reset`, in every account.").with(ACCOUNT),
            event("database_trusted", "The operator accepted the database as it is.", "By `kantoor secrets trust`, in every account.").with(ACCOUNT),
        ],
    },
    Group {
        prefix: "api_key",
        about: &["api_key"],
        one: "An API key",
        events: &[
            CREATED,
            UPDATED,
            OUTSIDE,
            event("rotated", "An API key got a new secret.", "On `POST /v1/api-keys/{id}/rotate`."),
            event("revoked", "An API key was revoked.", "On `POST /v1/api-keys/{id}/revoke` and `kantoor key revoke`."),
        ],
    },
    Group {
        prefix: "automation",
        about: &[],
        one: "An event",
        events: &[event("triggered", "An event was fired.", "When a caller or a step of a flow fires an event; `data.event` is its name and `data.data` its data. If it is about a record, `entity_type` and `entity_id` name the record.").with(FIRED)],
    },
    Group { prefix: "batch", about: &["batch"], one: "A direct-debit file", events: &[CREATED] },
    Group { prefix: "corporate_identity", about: &["corporate_identity"], one: "A corporate identity", events: GUARDED },
    Group { prefix: "custom_field", about: &["custom_field"], one: "A custom field", events: USUAL },
    Group {
        prefix: "customer",
        about: &["client"],
        one: "A client",
        events: &[
            CREATED,
            UPDATED,
            DELETED,
            event("merged", "A duplicate was merged into a client.", "On `POST /v1/clients/{id}/merge`. `data.merged_id` is the duplicate, which is deleted.").with(MERGED),
            event("first_invoice_paid", "A client paid an invoice for the first time.", "Once per client, when one of its invoices is paid in full."),
            event("inactive", "Nothing happened with a client for a long time.", "After 180 days without a document or a message (setting `customer_inactive_days`)."),
            event("no_followup", "A client has no open task after a contact.", "A day after a contact (setting `customer_no_followup_days`)."),
            event("payment_overdue", "A client has become overdue.", "When the overdue amount of the client rises from zero."),
        ],
    },
    Group {
        prefix: "deal",
        about: &["deal"],
        one: "A deal",
        events: &[
            CREATED,
            UPDATED,
            DELETED,
            event("phase_changed", "A deal moved to another phase.", "When `phase_id` changes."),
            event("won", "A deal was won.", "When the status becomes `won`.").showing(r#"{"status": "won"}"#),
            event("lost", "A deal was lost.", "When the status becomes `lost`.").showing(r#"{"status": "lost"}"#),
            event("quote_accepted", "A quote of a deal was accepted.", "When a quote with this `deal_id` is accepted."),
            event("stalled", "An open deal did not change for some time.", "After 14 days without a change (setting `deal_stalled_days`)."),
            event("phase_idle", "An open deal stayed in one phase for some time.", "After 14 days in a phase (setting `deal_phase_idle_days`)."),
            event("close_due", "The expected close date of an open deal was reached.", "At the start of `expected_close_date`, once per date."),
            event("no_followup", "An open deal has no open task.", "After a day without one (setting `deal_no_followup_days`)."),
        ],
    },
    Group { prefix: "deal_source", about: &["deal_source"], one: "A deal source", events: USUAL },
    Group {
        prefix: "document",
        about: DOCUMENTS,
        one: "A document",
        events: &[event("draft", "A document is a draft.", "When the draft is created, and after 7 days if it is still a draft (setting `document_draft_days`)."),
        ],
    },
    Group { prefix: "email_domain", about: &["email_domain"], one: "An e-mail domain", events: GUARDED },
    Group { prefix: "export", about: &["export"], one: "An export", events: &[CREATED, DELETED] },
    Group { prefix: "file", about: &["file"], one: "A file", events: USUAL },
    Group {
        prefix: "flow",
        about: &["flow"],
        one: "A flow",
        events: &[
            CREATED,
            UPDATED,
            OUTSIDE,
            DELETED,
            event("activated", "A flow was enabled.", "When `active` becomes true.").showing(r#"{"active": true}"#),
            event("deactivated", "A flow was disabled.", "When `active` becomes false.").showing(r#"{"active": false}"#),
            event("adopted", "A flow got another author.", "On `POST /v1/automation/flows/{id}/adopt`."),
            event("stopped", "Kantoor stopped a flow.", "When its author may no longer do what the flow does; `meta.stopped_reason` has the reason.").showing(r#"{"active": false}"#),
        ],
    },
    Group {
        prefix: "hour",
        about: &["hour"],
        one: "An entry of hours",
        events: &[
            CREATED,
            UPDATED,
            DELETED,
            event("submitted", "Hours were submitted for approval.", "When the status becomes `submitted`.").showing(r#"{"status": "submitted"}"#),
            event("approved", "Hours were approved.", "When the status becomes `approved`.").showing(r#"{"status": "approved"}"#),
            event("rejected", "Hours were rejected.", "When the status becomes `rejected`.").showing(r#"{"status": "rejected"}"#),
        ],
    },
    Group {
        prefix: "import",
        about: &["import"],
        one: "An import",
        events: &[
            CREATED,
            UPDATED,
            DELETED,
            event("started", "An import was started.", "On `POST /v1/imports/{id}/run`, and by `kantoor import --run`.").showing(r#"{"status": "running"}"#),
            event("finished", "An import ended.", "When all lines were processed, or when it stopped; `failure` has the reason.").showing(r#"{"status": "done"}"#),
            event("undone", "What an import created was removed.", "After `POST /v1/imports/{id}/undo`; `errors` lists the records that stay.").showing(r#"{"status": "undone"}"#),
        ],
    },
    Group {
        prefix: "invoice",
        about: &["invoice"],
        one: "An invoice",
        events: &[
            CREATED,
            UPDATED,
            DELETED,
            event("paid", "An invoice was paid in full.", "When `payment_status` becomes `paid`, whatever the cause.").showing(r#"{"payment_status": "paid"}"#),
            event("late", "An invoice is past its due date and not paid.", "On the first day after `due_date`, once per due date.").showing(r#"{"payment_status": "overdue"}"#),
            event("credit_created", "A credit invoice was created.", "On `POST /v1/invoices/{id}/credit`; the record is the credit invoice. It has no `invoice.created` event."),
            event("credited", "An invoice was credited, in whole or in part.", "On `POST /v1/invoices/{id}/credit`; the record is the invoice that was credited."),
        ],
    },
    Group { prefix: "link", about: &["link"], one: "A link between a company and a person", events: USUAL },
    Group {
        prefix: "mail",
        about: WITH_MAIL,
        one: "A mail",
        events: &[
            event("bounced", "A mail server refused a mail.", "When the refusal is permanent. The record is the document or the ticket that the mail is about, and `data.mail` the delivery.").with(MAIL),
            event("canceled", "A mail that waited was not sent.", "When mail waited for office hours, and the invoice was paid or the quote answered before it left, the client lost its address, or the author of the flow that sent it lost access. The record is the document or the ticket, and `data.mail` the delivery.").with(CANCELED).about(&["invoice", "quote", "workorder", "ticket"]),
            event("failed", "A mail could not be delivered.", "After a day of attempts. The record is the document or the ticket that the mail is about, and `data.mail` the delivery.").with(MAIL),
            event("retried", "A mail that failed is sent again.", "On `POST /v1/mails/{id}/retry`.").with(RETRIED).about(&[]),
            event("unanswered", "A message of a client was not answered.", "2 days after an inbound message without a reply (setting `mail_unanswered_days`).").about(&["ticket"]),
        ],
    },
    Group { prefix: "mail_template", about: &["mail_template"], one: "A mail template", events: USUAL },
    Group { prefix: "mandate", about: &["mandate"], one: "A mandate", events: GUARDED },
    Group { prefix: "message", about: &["message"], one: "A message of a ticket", events: &[CREATED] },
    Group { prefix: "note", about: &["note"], one: "A note", events: USUAL },
    Group {
        prefix: "payment",
        about: &["payment"],
        one: "A payment",
        events: &[
            CREATED,
            UPDATED,
            DELETED,
            event("paid", "A payment succeeded.", "When a payment that was open becomes `paid`. A payment that is recorded as paid only has `payment.created`.").showing(r#"{"status": "paid"}"#),
            event("failed", "A payment failed.", "When its status becomes `failed`, `canceled` or `expired`.").showing(r#"{"status": "failed"}"#),
            event("charged_back", "A payment was charged back.", "When its status becomes `chargeback`.").showing(r#"{"status": "chargeback"}"#),
        ],
    },
    Group { prefix: "payment_term", about: &["payment_term"], one: "A payment term", events: USUAL },
    Group { prefix: "phase", about: &["phase"], one: "A phase of a pipeline", events: USUAL },
    Group { prefix: "pipeline", about: &["pipeline"], one: "A pipeline", events: USUAL },
    Group {
        prefix: "planning",
        about: &[],
        one: "An appointment",
        events: &[
            event("scheduled", "An appointment was scheduled.", FIRED_ONLY).fired(),
            event("rescheduled", "An appointment was moved.", FIRED_ONLY).fired(),
            event("updated", "An appointment was changed.", FIRED_ONLY).fired(),
            event("unscheduled", "An appointment was taken out of the planning.", FIRED_ONLY).fired(),
            event("deleted", "An appointment was deleted.", FIRED_ONLY).fired(),
        ],
    },
    Group { prefix: "product", about: &["product"], one: "A product", events: USUAL },
    Group {
        prefix: "project",
        about: &["project"],
        one: "A project",
        events: &[
            CREATED,
            UPDATED,
            event("status_changed", "A project got another status.", "When `status` changes."),
            event("completed", "A project was completed.", "When the status becomes `completed`.").showing(r#"{"status": "completed"}"#),
            event("phase_completed", "A phase of a project was completed.", FIRED_ONLY).fired(),
        ],
    },
    Group {
        prefix: "quote",
        about: &["quote"],
        one: "A quote",
        events: &[
            CREATED,
            UPDATED,
            DELETED,
            event("phase_changed", "A quote got another status.", "When `payment_status` changes. `quote.fase_changed` is another name of this event."),
            event("viewed", "A client opened the page of a quote.", "On the first view.").showing(r#"{"payment_status": "open"}"#),
            event("accepted", "A quote was accepted.", "When `payment_status` becomes `accepted`.").showing(r#"{"payment_status": "accepted"}"#),
            event("silent", "A quote was not answered.", "7 days after it was sent (setting `quote_silent_days`).").showing(r#"{"payment_status": "open"}"#),
            event("converted_to_project", "A project was created from a quote.", "On the conversion.").showing(r#"{"payment_status": "accepted"}"#),
        ],
    },
    Group {
        prefix: "run",
        about: &["run"],
        one: "A run",
        events: &[
            event("approved", "A step of a run was approved.", "On `POST /v1/automation/runs/{id}/approve`."),
            event("rejected", "A step of a run was rejected.", "On `POST /v1/automation/runs/{id}/reject`."),
            event("retried", "A run was resumed at the step that failed.", "On `POST /v1/automation/runs/{id}/retry`."),
            event("cancelled", "A run was cancelled.", "On `POST /v1/automation/runs/{id}/cancel`."),
            event("cancel_requested", "A run is to end after its current call.", "On `POST /v1/automation/runs/{id}/cancel`, while a call is in progress."),
        ],
    },
    Group {
        prefix: "sales",
        about: DOCUMENTS,
        one: "A document",
        events: &[event("document_sent", "Mail about a document was put into the outbox.", "Each time an invoice, a quote or a workorder is sent by mail, reminders included, when the mail is queued. Mail that waits for office hours can still be canceled, and a mail server can refuse it: `sent_at` of the document is set when the mail was accepted for a recipient, and `mail.bounced` and `mail.failed` tell of mail that was not.")],
    },
    Group { prefix: "settings", about: &["settings"], one: "The settings", events: &[CREATED, UPDATED, OUTSIDE] },
    Group {
        prefix: "subscription",
        about: &["subscription"],
        one: "A subscription",
        events: &[
            CREATED,
            UPDATED,
            event("activated", "A subscription was activated.", "When the status changes from `draft` to `active`.").showing(r#"{"status": "active"}"#),
            event("ended", "A subscription ended.", "When the status becomes `ended`.").showing(r#"{"status": "ended"}"#),
            event("expiring", "A subscription ends soon.", "30 days before `end_date` (setting `subscription_expiring_days`)."),
            event("generation_failed", "An invoice of a subscription could not be created.", "Each time it fails; it is retried the next day."),
        ],
    },
    Group {
        prefix: "supplier",
        about: &["supplier"],
        one: "A supplier",
        events: &[
            CREATED,
            UPDATED,
            DELETED,
            event("merged", "A duplicate was merged into a supplier.", "On `POST /v1/suppliers/{id}/merge`. `data.merged_id` is the duplicate, which is deleted.").with(MERGED),
        ],
    },
    Group {
        prefix: "task",
        about: &["task"],
        one: "A task",
        events: &[
            CREATED,
            UPDATED,
            DELETED,
            event("completed", "A task was completed.", "On `POST /v1/tasks/{id}/complete`.").showing(r#"{"status": "completed"}"#),
            event("reopened", "A task was reopened.", "On `POST /v1/tasks/{id}/reopen`.").showing(r#"{"status": "open"}"#),
        ],
    },
    Group { prefix: "tax_rate", about: &["tax_rate"], one: "A tax rate", events: USUAL },
    Group {
        prefix: "ticket",
        about: &["ticket"],
        one: "A ticket",
        events: &[
            CREATED,
            UPDATED,
            event("message", "A message was added to a ticket.", "On every message: replies, notes and messages of the client. `data.message` is the message.").with(MESSAGE),
            event("inbound_message", "A client sent a message.", "On every message of the client, after `ticket.message`. `data.message` is the message.").with(MESSAGE),
            event("status_changed", "A ticket got another status.", "When `status` changes."),
            event("closed", "A ticket was closed.", "When the status becomes one with the role `closed`.").showing(r#"{"status": "Closed"}"#),
            event("stale", "Nothing happened with an open ticket for some time.", "After 3 days without a message (setting `ticket_stale_days`)."),
        ],
    },
    Group { prefix: "ticket_channel", about: &["ticket_channel"], one: "A ticket channel", events: USUAL },
    Group { prefix: "ticket_status", about: &["ticket_status"], one: "A ticket status", events: USUAL },
    Group {
        prefix: "user",
        about: &["user"],
        one: "A user",
        events: &[
            CREATED,
            UPDATED,
            OUTSIDE,
            DELETED,
            event("invited", "A user was invited.", "When an invitation is sent, also when it is sent again.").showing(r#"{"status": "invited"}"#),
            event("activated", "A user accepted an invitation.", "When the status becomes `active` for the first time.").showing(r#"{"status": "active"}"#),
            event("signed_in", "A user signed in.", "On every sign-in."),
            event("signed_out", "A user signed out.", "When the user ends the session in which they are."),
            event("session_ended", "Sessions of a user were ended.", "When a user ends another session, by `kantoor user end-sessions`, and with a password that somebody else may have chosen."),
            event("password_changed", "The password of a user was changed or removed.", "When the password is set, changed or reset, and when one ends that somebody else may have chosen."),
            event("reset_requested", "A link was created with which a user chooses a new password.", "When somebody asks for it on the sign-in page, and by `kantoor user reset`."),
            event("sign_in_link_created", "The operator created a sign-in link for a user.", "By `kantoor user sign-in-link`."),
            event("two_factor_added", "A user added a second factor.", "When an authenticator app or a passkey is added."),
            event("two_factor_removed", "Second factors of a user were removed.", "By the user, by an owner, by `kantoor user remove-two-factor`, or with a password that somebody else may have chosen."),
            event("recovery_codes_created", "A user created new recovery codes.", "When the previous codes are replaced."),
            event("recovery_code_used", "A user signed in with a recovery code.", "On every use of a recovery code."),
        ],
    },
    Group { prefix: "verification", about: &["verification"], one: "A verification of a mandate", events: USUAL },
    Group {
        prefix: "webhook",
        about: &[],
        one: "A test",
        events: &[event("test", "An endpoint was tested.", "On `POST /v1/webhook-endpoints/{id}/test`, regardless of the events of the endpoint. Its `seq` is 0, and it is not in the log.").with(TESTED).trial()],
    },
    Group {
        prefix: "webhook_endpoint",
        about: &["webhook_endpoint"],
        one: "A webhook endpoint",
        events: &[
            CREATED,
            UPDATED,
            OUTSIDE,
            DELETED,
            event("disabled", "Kantoor disabled a webhook endpoint.", "When deliveries keep failing, the receiver responds with 410, or its author loses access; `disabled_reason` has the reason.").showing(r#"{"active": false}"#),
            event("secret_rotated", "A webhook endpoint got a new secret.", "On `POST /v1/webhook-endpoints/{id}/rotate-secret`."),
        ],
    },
    Group {
        prefix: "work",
        about: &[],
        one: "Recurring work",
        events: &[event("recurring", "Recurring work is due.", FIRED_ONLY).fired()],
    },
    Group {
        prefix: "workorder",
        about: &["workorder"],
        one: "A workorder",
        events: &[
            CREATED,
            UPDATED,
            DELETED,
            event("completed", "A workorder was completed.", "When `payment_status` becomes `completed`.").showing(r#"{"payment_status": "completed"}"#),
        ],
    },
}
