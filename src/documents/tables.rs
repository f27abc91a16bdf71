//! The tables of documents: three with the same columns.

use store::Migration;

/// The table of one kind of document.
macro_rules! table {
    ($number:literal, $table:literal) => {
        &[Migration {
            number: $number,
            name: $table,
            sql: concat!(
                "CREATE TABLE ",
                $table,
                " (
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
    PRIMARY KEY (account_id, id)
) STRICT;
",
                "CREATE INDEX ",
                $table,
                "_created ON ",
                $table,
                " (account_id, created_at, id);\n",
                "CREATE INDEX ",
                $table,
                "_title ON ",
                $table,
                " (account_id, title, id);\n",
                "CREATE INDEX ",
                $table,
                "_date ON ",
                $table,
                " (account_id, invoice_date, id);\n",
                "CREATE INDEX ",
                $table,
                "_due ON ",
                $table,
                " (account_id, due_date, id);\n",
                "CREATE INDEX ",
                $table,
                "_excl ON ",
                $table,
                " (account_id, total_excl_vat, id);\n",
                "CREATE INDEX ",
                $table,
                "_incl ON ",
                $table,
                " (account_id, total_incl_vat, id);\n",
                "CREATE INDEX ",
                $table,
                "_client ON ",
                $table,
                " (account_id, client_id, created_at, id);\n",
                "CREATE INDEX ",
                $table,
                "_clients ON ",
                $table,
                " (account_id, client_id, id);\n",
                "CREATE INDEX ",
                $table,
                "_status ON ",
                $table,
                " (account_id, payment_status, created_at, id);\n",
                "CREATE INDEX ",
                $table,
                "_statuses ON ",
                $table,
                " (account_id, payment_status, id);\n",
                "CREATE INDEX ",
                $table,
                "_status_due ON ",
                $table,
                " (account_id, payment_status, due_date, id);\n",
                "CREATE INDEX ",
                $table,
                "_paid ON ",
                $table,
                " (account_id, paid_at, id);\n",
                "CREATE INDEX ",
                $table,
                "_sent ON ",
                $table,
                " (account_id, sent_at, id);\n",
                "CREATE INDEX ",
                $table,
                "_external ON ",
                $table,
                " (account_id, external_id, created_at, id);\n",
                "CREATE INDEX ",
                $table,
                "_numbers ON ",
                $table,
                " (account_id, number, created_at, id);\n",
                "CREATE INDEX ",
                $table,
                "_identity ON ",
                $table,
                " (account_id, corporate_identity_id, id);\n",
                "CREATE INDEX ",
                $table,
                "_project ON ",
                $table,
                " (account_id, project_id, id);\n",
                "CREATE INDEX ",
                $table,
                "_deal ON ",
                $table,
                " (account_id, deal_id, id);\n",
                "CREATE INDEX ",
                $table,
                "_drafts ON ",
                $table,
                " (account_id, generation_mode, created_at, id);\n",
                "CREATE INDEX ",
                $table,
                "_credited_invoice_id ON ",
                $table,
                " (account_id, credited_invoice_id) WHERE credited_invoice_id <> '';\n",
                "CREATE INDEX ",
                $table,
                "_invoice_id ON ",
                $table,
                " (account_id, invoice_id) WHERE invoice_id <> '';\n",
                "CREATE INDEX ",
                $table,
                "_quote_id ON ",
                $table,
                " (account_id, quote_id) WHERE quote_id <> '';\n",
                "CREATE UNIQUE INDEX ",
                $table,
                "_number ON ",
                $table,
                " (account_id, number, id);\n",
                "CREATE UNIQUE INDEX ",
                $table,
                "_number_once ON ",
                $table,
                " (account_id, number);\n",
                "CREATE UNIQUE INDEX ",
                $table,
                "_external_once ON ",
                $table,
                " (account_id, external_id) WHERE external_id <> '';\n",
                "CREATE UNIQUE INDEX ",
                $table,
                "_token ON ",
                $table,
                " (token);\n",
            ),
        }]
    };
}

/// The table of invoices.
pub const INVOICES: &[Migration] = table!(32, "invoices");
/// The table of quotes.
pub const QUOTES: &[Migration] = table!(33, "quotes");
/// The table of workorders.
pub const WORKORDERS: &[Migration] = table!(34, "workorders");

/// Later migrations, for all three.
pub const MIGRATIONS: &[Migration] =
    &[DATES, OWED, EMITTED, DUE, FEWER, OPEN, COLLECTED, NOT_LATE, ONE_OF_DRAFTS, COVERED];

/// Indexes for date ranges, so that only the rows of a page are read.
const DATES: Migration = Migration {
    number: 49,
    name: "dates of documents",
    sql: "
CREATE INDEX invoices_dates ON invoices (account_id, invoice_date, created_at, id);
CREATE INDEX invoices_dues ON invoices (account_id, due_date, created_at, id);
CREATE INDEX quotes_dates ON quotes (account_id, invoice_date, created_at, id);
CREATE INDEX quotes_dues ON quotes (account_id, due_date, created_at, id);
CREATE INDEX workorders_dates ON workorders (account_id, invoice_date, created_at, id);
CREATE INDEX workorders_dues ON workorders (account_id, due_date, created_at, id);
",
};

/// An index to find out whether a client has another late invoice, which is checked for each invoice that becomes late.
const OWED: Migration = Migration {
    number: 62,
    name: "what a client owes",
    sql: "
CREATE INDEX invoices_owed ON invoices (account_id, client_id, payment_status, due_date);
",
};

/// Marks for events that were emitted before marks existed, as far as they are known.
const EMITTED: Migration = Migration {
    number: 57,
    name: "marks of what was said",
    sql: "
INSERT INTO marks (account_id, cause, record_id, at)
    SELECT account_id, 'invoice.late ' || due_date, id, updated_at FROM invoices WHERE payment_status = 'overdue'
    ON CONFLICT DO NOTHING;
",
};

/// Invoices with a negative total stay open and are never late, so the others have their own index.
const DUE: Migration = Migration {
    number: 70,
    name: "invoices that can become late",
    sql: "
CREATE INDEX invoices_owed_due ON invoices (account_id, payment_status, due_date, id)
    WHERE total_incl_vat - credited_amount >= 0;
",
};

/// Ids increase with time, so an index of a field followed by the id serves its filter, its sort and the order of creation.
/// Fields that few documents have get partial indexes.
const FEWER: Migration = Migration {
    number: 75,
    name: "fewer indexes of documents",
    sql: "
DROP INDEX invoices_client;
DROP INDEX invoices_status;
DROP INDEX invoices_status_due;
DROP INDEX invoices_external;
DROP INDEX invoices_numbers;
DROP INDEX invoices_number;
DROP INDEX invoices_dates;
DROP INDEX invoices_dues;
DROP INDEX invoices_drafts;
DROP INDEX invoices_project;
DROP INDEX invoices_deal;
CREATE INDEX invoices_drafts ON invoices (account_id, id) WHERE generation_mode = 'draft';
CREATE INDEX invoices_project ON invoices (account_id, project_id, id) WHERE project_id <> '';
CREATE INDEX invoices_deal ON invoices (account_id, deal_id, id) WHERE deal_id <> '';
DROP INDEX quotes_client;
DROP INDEX quotes_status;
DROP INDEX quotes_status_due;
DROP INDEX quotes_external;
DROP INDEX quotes_numbers;
DROP INDEX quotes_number;
DROP INDEX quotes_dates;
DROP INDEX quotes_dues;
DROP INDEX quotes_drafts;
DROP INDEX quotes_project;
DROP INDEX quotes_deal;
CREATE INDEX quotes_drafts ON quotes (account_id, id) WHERE generation_mode = 'draft';
CREATE INDEX quotes_project ON quotes (account_id, project_id, id) WHERE project_id <> '';
CREATE INDEX quotes_deal ON quotes (account_id, deal_id, id) WHERE deal_id <> '';
DROP INDEX workorders_client;
DROP INDEX workorders_status;
DROP INDEX workorders_status_due;
DROP INDEX workorders_external;
DROP INDEX workorders_numbers;
DROP INDEX workorders_number;
DROP INDEX workorders_dates;
DROP INDEX workorders_dues;
DROP INDEX workorders_drafts;
DROP INDEX workorders_project;
DROP INDEX workorders_deal;
CREATE INDEX workorders_drafts ON workorders (account_id, id) WHERE generation_mode = 'draft';
CREATE INDEX workorders_project ON workorders (account_id, project_id, id) WHERE project_id <> '';
CREATE INDEX workorders_deal ON workorders (account_id, deal_id, id) WHERE deal_id <> '';
DROP INDEX invoices_owed;
DROP INDEX invoices_owed_due;
DROP INDEX invoices_subscription;
CREATE INDEX invoices_open ON invoices (account_id, due_date, id)
    WHERE payment_status = 'open' AND total_incl_vat - credited_amount >= 0;
CREATE INDEX invoices_late ON invoices (account_id, client_id, due_date) WHERE payment_status IN ('overdue', 'partial');
CREATE INDEX invoices_subscription ON invoices (account_id, subscription_id, id) WHERE subscription_id <> '';
CREATE INDEX quotes_open ON quotes (account_id, due_date, id) WHERE payment_status = 'open';
",
};

/// The amounts that are still to be paid, and the revenue per month. The indexes have what needs attention alone.
const OPEN: Migration = Migration {
    number: 97,
    name: "open amounts and revenue",
    sql: "
ALTER TABLE invoices ADD COLUMN open_amount BIGINT NOT NULL DEFAULT 0;
ALTER TABLE quotes ADD COLUMN open_amount BIGINT NOT NULL DEFAULT 0;
ALTER TABLE workorders ADD COLUMN open_amount BIGINT NOT NULL DEFAULT 0;
UPDATE invoices SET open_amount = total_incl_vat - credited_amount - paid_amount
    WHERE generation_mode = 'final' AND payment_status NOT IN ('paid', 'credited');
CREATE INDEX invoices_unpaid ON invoices (account_id, due_date, open_amount) WHERE open_amount <> 0;
CREATE INDEX quotes_unanswered ON quotes (account_id, sent_at, total_incl_vat)
    WHERE payment_status = 'open' AND generation_mode = 'final' AND sent_at > 0;
CREATE INDEX invoices_drafted ON invoices (account_id, created_at, total_incl_vat) WHERE generation_mode = 'draft';
CREATE INDEX quotes_drafted ON quotes (account_id, created_at, total_incl_vat) WHERE generation_mode = 'draft';
CREATE INDEX workorders_drafted ON workorders (account_id, created_at, total_incl_vat) WHERE generation_mode = 'draft';
CREATE TABLE revenue_months (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    month TEXT NOT NULL,
    invoices BIGINT NOT NULL,
    excl_vat BIGINT NOT NULL,
    vat BIGINT NOT NULL,
    incl_vat BIGINT NOT NULL,
    PRIMARY KEY (account_id, month)
) STRICT;
INSERT INTO revenue_months (account_id, month, invoices, excl_vat, vat, incl_vat)
    SELECT account_id, substr(invoice_date, 1, 7), count(*), CAST(sum(total_excl_vat) AS BIGINT),
           CAST(sum(vat_amount) AS BIGINT), CAST(sum(total_incl_vat) AS BIGINT)
    FROM invoices WHERE generation_mode = 'final' GROUP BY account_id, substr(invoice_date, 1, 7);
",
};

/// The collection of an invoice that is in progress. That of an earlier version is not known here: its day was not recorded.
const COLLECTED: Migration = Migration {
    number: 106,
    name: "collections of invoices and dates of supply",
    sql: "
ALTER TABLE invoices ADD COLUMN collection_date TEXT NOT NULL DEFAULT '';
ALTER TABLE quotes ADD COLUMN collection_date TEXT NOT NULL DEFAULT '';
ALTER TABLE workorders ADD COLUMN collection_date TEXT NOT NULL DEFAULT '';
ALTER TABLE invoices ADD COLUMN collection_account TEXT NOT NULL DEFAULT '';
ALTER TABLE invoices ADD COLUMN supply_date TEXT NOT NULL DEFAULT '';
ALTER TABLE quotes ADD COLUMN collection_account TEXT NOT NULL DEFAULT '';
ALTER TABLE quotes ADD COLUMN supply_date TEXT NOT NULL DEFAULT '';
ALTER TABLE workorders ADD COLUMN collection_account TEXT NOT NULL DEFAULT '';
ALTER TABLE workorders ADD COLUMN supply_date TEXT NOT NULL DEFAULT '';
",
};

/// What is being collected is not late: the indexes of open amounts say which that is, and lists can be filtered by it.
const NOT_LATE: Migration = Migration {
    number: 127,
    name: "collections among open amounts",
    sql: "
DROP INDEX invoices_unpaid;
DROP INDEX invoices_unpaid_of_client;
CREATE INDEX invoices_unpaid ON invoices (account_id, due_date, open_amount, collection_date) WHERE open_amount <> 0;
CREATE INDEX invoices_unpaid_of_client ON invoices (account_id, client_id, due_date, open_amount, collection_date)
    WHERE open_amount <> 0;
CREATE INDEX invoices_collected ON invoices (account_id, id) WHERE collection_date <> '';
",
};

/// Two indexes had the drafts: the one of Home also serves those who look through all of them.
const ONE_OF_DRAFTS: Migration = Migration {
    number: 133,
    name: "one index of drafts",
    sql: "
DROP INDEX invoices_drafts;
DROP INDEX quotes_drafts;
DROP INDEX workorders_drafts;
",
};

/// Lists and sums of a large account. An index of a filter ends with the id, which is the order of the list; those of the status and
/// of open amounts also have what is added up, so that the invoices are not read for it. Quotes and workorders are never unpaid, so
/// their index is empty: it says so at once.
const COVERED: Migration = Migration {
    number: 138,
    name: "lists and sums of many documents",
    sql: "
DROP INDEX invoices_credit;
DROP INDEX quotes_credit;
DROP INDEX workorders_credit;
CREATE INDEX invoices_credit ON invoices (account_id, is_credit, id);
CREATE INDEX quotes_credit ON quotes (account_id, is_credit, id);
CREATE INDEX workorders_credit ON workorders (account_id, is_credit, id);
DROP INDEX invoices_statuses;
CREATE INDEX invoices_statuses ON invoices (account_id, payment_status, id, open_amount, total_excl_vat, total_incl_vat);
DROP INDEX invoices_unpaid;
CREATE INDEX invoices_unpaid ON invoices
    (account_id, due_date, open_amount, collection_date, payment_status, id, total_excl_vat, total_incl_vat)
    WHERE open_amount <> 0;
CREATE INDEX quotes_unpaid ON quotes (account_id, due_date) WHERE open_amount <> 0;
CREATE INDEX workorders_unpaid ON workorders (account_id, due_date) WHERE open_amount <> 0;
",
};
