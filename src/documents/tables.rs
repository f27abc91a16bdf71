//! The tables of documents: three with the same columns.

use store::Migration;

/// The table of one kind of document, with its `own` indexes. Ids increase with time, so an index of a field followed by the id
/// serves its filter, its sort and the order of creation. Fields that few documents have get partial indexes.
macro_rules! table {
    ($number:literal, $table:literal $(, $own:literal)+ $(,)?) => {
        &[Migration { number: $number, name: $table, sql: concat!(
            "
CREATE TABLE ", $table, " (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    number TEXT NOT NULL,
    title TEXT NOT NULL,
    invoice_date TEXT NOT NULL,
    due_date TEXT NOT NULL,
    subtotal BIGINT NOT NULL,
    vat_rate BIGINT NOT NULL,
    vat_amount BIGINT NOT NULL,
    total_excl_vat BIGINT NOT NULL,
    total_incl_vat BIGINT NOT NULL,
    client_id TEXT NOT NULL,
    payment_status TEXT NOT NULL,
    paid_at BIGINT NOT NULL,
    sent_at BIGINT NOT NULL,
    project_number TEXT NOT NULL,
    is_credit BIGINT NOT NULL,
    external_id TEXT NOT NULL,
    rows TEXT NOT NULL,
    client_company_name TEXT NOT NULL,
    client_firstname TEXT NOT NULL,
    client_lastname TEXT NOT NULL,
    custom_fields TEXT NOT NULL,
    generation_mode TEXT NOT NULL,
    finalized_at BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    language TEXT NOT NULL,
    reference TEXT NOT NULL,
    notes TEXT NOT NULL,
    client_email TEXT NOT NULL,
    corporate_identity_id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    deal_id TEXT NOT NULL,
    credited_invoice_id TEXT NOT NULL,
    invoice_id TEXT NOT NULL,
    quote_id TEXT NOT NULL,
    paid_amount BIGINT NOT NULL,
    credited_amount BIGINT NOT NULL,
    accepted_at BIGINT NOT NULL,
    accepted_by TEXT NOT NULL,
    rejected_at BIGINT NOT NULL,
    viewed_at BIGINT NOT NULL,
    token TEXT NOT NULL,
    client TEXT NOT NULL,
    sender TEXT NOT NULL,
    subscription_id TEXT NOT NULL DEFAULT '',
    period_start TEXT NOT NULL DEFAULT '',
    period_end TEXT NOT NULL DEFAULT '',
    open_amount BIGINT NOT NULL DEFAULT 0,
    collection_date TEXT NOT NULL DEFAULT '',
    collection_account TEXT NOT NULL DEFAULT '',
    supply_date TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX ", $table, "_created ON ", $table, " (account_id, created_at, id);
CREATE INDEX ", $table, "_title ON ", $table, " (account_id, title, id);
CREATE INDEX ", $table, "_date ON ", $table, " (account_id, invoice_date, id);
CREATE INDEX ", $table, "_due ON ", $table, " (account_id, due_date, id);
CREATE INDEX ", $table, "_excl ON ", $table, " (account_id, total_excl_vat, id);
CREATE INDEX ", $table, "_incl ON ", $table, " (account_id, total_incl_vat, id);
CREATE INDEX ", $table, "_clients ON ", $table, " (account_id, client_id, id);
CREATE INDEX ", $table, "_paid ON ", $table, " (account_id, paid_at, id);
CREATE INDEX ", $table, "_sent ON ", $table, " (account_id, sent_at, id);
CREATE INDEX ", $table, "_identity ON ", $table, " (account_id, corporate_identity_id, id);
CREATE INDEX ", $table, "_credited_invoice_id ON ", $table, " (account_id, credited_invoice_id) WHERE credited_invoice_id <> '';
CREATE INDEX ", $table, "_invoice_id ON ", $table, " (account_id, invoice_id) WHERE invoice_id <> '';
CREATE INDEX ", $table, "_quote_id ON ", $table, " (account_id, quote_id) WHERE quote_id <> '';
CREATE UNIQUE INDEX ", $table, "_number_once ON ", $table, " (account_id, number);
CREATE UNIQUE INDEX ", $table, "_external_once ON ", $table, " (account_id, external_id) WHERE external_id <> '';
CREATE UNIQUE INDEX ", $table, "_token ON ", $table, " (token);
CREATE INDEX ", $table, "_project ON ", $table, " (account_id, project_id, id) WHERE project_id <> '';
CREATE INDEX ", $table, "_deal ON ", $table, " (account_id, deal_id, id) WHERE deal_id <> '';
CREATE INDEX ", $table, "_drafted ON ", $table, " (account_id, created_at, total_incl_vat) WHERE generation_mode = 'draft';
CREATE INDEX ", $table, "_credit ON ", $table, " (account_id, is_credit, id);
", $($own),+) }]
    };
}

/// The table of invoices. The indexes of the status and of open amounts also have what is added up, so that the invoices are not read
/// for it. What is being collected is not late: the indexes of open amounts say which that is.
pub const INVOICES: &[Migration] = table!(
    46,
    "invoices",
    "CREATE INDEX invoices_open ON invoices (account_id, due_date, id)
    WHERE payment_status = 'open' AND total_incl_vat - credited_amount >= 0;
CREATE INDEX invoices_late ON invoices (account_id, client_id, due_date) WHERE payment_status IN ('overdue', 'partial');
CREATE INDEX invoices_subscription ON invoices (account_id, subscription_id, id) WHERE subscription_id <> '';
CREATE INDEX invoices_unpaid_of_client ON invoices (account_id, client_id, due_date, open_amount, collection_date)
    WHERE open_amount <> 0;
CREATE INDEX invoices_collected ON invoices (account_id, id) WHERE collection_date <> '';
CREATE INDEX invoices_statuses ON invoices (account_id, payment_status, id, open_amount, total_excl_vat, total_incl_vat);
CREATE INDEX invoices_unpaid ON invoices
    (account_id, due_date, open_amount, collection_date, payment_status, id, total_excl_vat, total_incl_vat)
    WHERE open_amount <> 0;
"
);

/// The table of quotes. They are never unpaid, so that index is empty: it says so at once.
pub const QUOTES: &[Migration] = table!(
    47,
    "quotes",
    "CREATE INDEX quotes_statuses ON quotes (account_id, payment_status, id);
CREATE INDEX quotes_subscription ON quotes (account_id, subscription_id) WHERE subscription_id <> '';
CREATE INDEX quotes_open ON quotes (account_id, due_date, id) WHERE payment_status = 'open';
CREATE INDEX quotes_unanswered ON quotes (account_id, sent_at, total_incl_vat)
    WHERE payment_status = 'open' AND generation_mode = 'final' AND sent_at > 0;
CREATE INDEX quotes_unpaid ON quotes (account_id, due_date) WHERE open_amount <> 0;
"
);

/// The table of workorders, which are never unpaid either.
pub const WORKORDERS: &[Migration] = table!(
    48,
    "workorders",
    "CREATE INDEX workorders_statuses ON workorders (account_id, payment_status, id);
CREATE INDEX workorders_subscription ON workorders (account_id, subscription_id) WHERE subscription_id <> '';
CREATE INDEX workorders_unpaid ON workorders (account_id, due_date) WHERE open_amount <> 0;
"
);

/// The revenue of each month.
pub const REVENUE: Migration = Migration {
    number: 49,
    name: "revenue of months",
    sql: "
CREATE TABLE revenue_months (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    month TEXT NOT NULL,
    invoices BIGINT NOT NULL,
    excl_vat BIGINT NOT NULL,
    vat BIGINT NOT NULL,
    incl_vat BIGINT NOT NULL,
    PRIMARY KEY (account_id, month)
) STRICT;
",
};
