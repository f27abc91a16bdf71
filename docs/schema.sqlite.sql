-- Written by `make docs-snapshots`.

CREATE TABLE accounts (
    id INTEGER PRIMARY KEY,
    uid TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    zone TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    test_clock INTEGER NOT NULL,
    closed_at INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE backups (
    account_id INTEGER NOT NULL,
    id TEXT NOT NULL,
    done_at INTEGER NOT NULL DEFAULT 0,
    tried_at INTEGER NOT NULL DEFAULT 0,
    name TEXT NOT NULL DEFAULT '',
    bytes INTEGER NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0,
    last_error TEXT NOT NULL DEFAULT '',
    claim INTEGER NOT NULL DEFAULT 0,
    node TEXT NOT NULL DEFAULT '',
    lease_until INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (account_id, id)
) STRICT;

CREATE TABLE batches (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    collection_date TEXT NOT NULL,
    scheme TEXT NOT NULL,
    message_id TEXT NOT NULL,
    count INTEGER NOT NULL,
    amount INTEGER NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX batches_created ON batches (account_id, created_at, id);

CREATE TABLE client_links (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    company_id TEXT NOT NULL,
    client_id TEXT NOT NULL,
    function TEXT NOT NULL,
    department TEXT NOT NULL,
    PRIMARY KEY (account_id, id),
    UNIQUE (account_id, company_id, client_id)
) STRICT;
CREATE INDEX client_links_client ON client_links (account_id, client_id);
CREATE INDEX client_links_company ON client_links (account_id, company_id, created_at, id);

CREATE TABLE clients (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    type TEXT NOT NULL,
    company_name TEXT NOT NULL,
    firstname TEXT NOT NULL,
    lastname TEXT NOT NULL,
    email TEXT NOT NULL,
    phone TEXT NOT NULL,
    address TEXT NOT NULL,
    zipcode TEXT NOT NULL,
    city TEXT NOT NULL,
    country TEXT NOT NULL,
    company_registration_number TEXT NOT NULL,
    vat_number TEXT NOT NULL,
    website TEXT NOT NULL,
    iban TEXT NOT NULL,
    bank_account_name TEXT NOT NULL,
    bic TEXT NOT NULL,
    payment_term INTEGER NOT NULL,
    quote_expiration_days INTEGER NOT NULL,
    default_revenue_account TEXT NOT NULL,
    email_invoices TEXT NOT NULL,
    email_reminders TEXT NOT NULL,
    mail_salutation TEXT NOT NULL,
    debtor_number TEXT NOT NULL,
    custom_fields TEXT NOT NULL DEFAULT '',
    external_id TEXT NOT NULL,
    owner_id TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX clients_company ON clients (account_id, company_name, id);
CREATE INDEX clients_created ON clients (account_id, created_at, id);
CREATE INDEX clients_email ON clients (account_id, lower(email), created_at, id);
CREATE INDEX clients_external ON clients (account_id, external_id, created_at, id);
CREATE UNIQUE INDEX clients_external_once ON clients (account_id, external_id) WHERE external_id <> '';
CREATE INDEX clients_lastname ON clients (account_id, lastname, id);
CREATE INDEX clients_of_owner ON clients (account_id, owner_id) WHERE owner_id <> '';
CREATE INDEX clients_owner ON clients (account_id, owner_id, created_at, id);
CREATE INDEX clients_type ON clients (account_id, type, created_at, id);

CREATE TABLE corporate_identities (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    name TEXT NOT NULL,
    primary_color TEXT NOT NULL,
    secondary_color TEXT NOT NULL,
    is_default INTEGER NOT NULL CHECK (is_default IN (0, 1)),
    address TEXT NOT NULL,
    zipcode TEXT NOT NULL,
    city TEXT NOT NULL,
    country TEXT NOT NULL,
    email TEXT NOT NULL,
    phone TEXT NOT NULL,
    website TEXT NOT NULL,
    company_registration_number TEXT NOT NULL,
    vat_number TEXT NOT NULL,
    iban TEXT NOT NULL,
    bic TEXT NOT NULL,
    footer TEXT NOT NULL,
    logo_file_id TEXT NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX corporate_identities_created ON corporate_identities (account_id, created_at, id);
CREATE UNIQUE INDEX corporate_identities_default ON corporate_identities (account_id) WHERE is_default = 1;
CREATE INDEX corporate_identities_logo ON corporate_identities (account_id, logo_file_id);

CREATE TABLE counters (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    name TEXT NOT NULL,
    value INTEGER NOT NULL,
    PRIMARY KEY (account_id, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE custom_fields (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    entity TEXT NOT NULL,
    key TEXT NOT NULL,
    label TEXT NOT NULL,
    type TEXT NOT NULL,
    options TEXT NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX custom_fields_created ON custom_fields (account_id, created_at, id);
CREATE INDEX custom_fields_entity ON custom_fields (account_id, entity, created_at, id);
CREATE UNIQUE INDEX custom_fields_key ON custom_fields (account_id, entity, key);

CREATE TABLE deal_sources (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    name TEXT NOT NULL,
    "order" INTEGER NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX deal_sources_order ON deal_sources (account_id, "order", id);

CREATE TABLE deals (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    title TEXT NOT NULL,
    amount INTEGER NOT NULL,
    status TEXT NOT NULL,
    priority TEXT NOT NULL,
    pipeline_id TEXT NOT NULL,
    phase_id TEXT NOT NULL,
    client_id TEXT NOT NULL,
    expected_close_date TEXT NOT NULL,
    assignee_id TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX deals_amount ON deals (account_id, amount, id);
CREATE INDEX deals_assignee ON deals (account_id, assignee_id, created_at, id);
CREATE INDEX deals_client ON deals (account_id, client_id, created_at, id);
CREATE INDEX deals_close ON deals (account_id, expected_close_date, id);
CREATE INDEX deals_created ON deals (account_id, created_at, id);
CREATE INDEX deals_phase ON deals (account_id, phase_id, created_at, id);
CREATE INDEX deals_pipeline ON deals (account_id, pipeline_id, created_at, id);
CREATE INDEX deals_priority ON deals (account_id, priority, created_at, id);
CREATE INDEX deals_status ON deals (account_id, status, created_at, id);
CREATE INDEX deals_title ON deals (account_id, title, id);

CREATE TABLE deliveries (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    mail_id TEXT NOT NULL,
    about_id TEXT NOT NULL,
    recipient TEXT NOT NULL,
    status TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    reason TEXT NOT NULL,
    maybe_twice INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    next_attempt_at INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX deliveries_about ON deliveries (account_id, about_id, id);
CREATE INDEX deliveries_failed ON deliveries (account_id, changed_at) WHERE status = 'failed';
CREATE INDEX deliveries_status ON deliveries (account_id, status, id);

CREATE TABLE document_pdfs (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    document_id TEXT NOT NULL,
    revision INTEGER NOT NULL,
    file_id TEXT NOT NULL,
    PRIMARY KEY (account_id, document_id, revision)
) STRICT, WITHOUT ROWID;
CREATE INDEX document_pdfs_file ON document_pdfs (account_id, file_id);

CREATE TABLE email_domains (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    domain TEXT NOT NULL,
    subdomain TEXT NOT NULL,
    status TEXT NOT NULL,
    type TEXT NOT NULL,
    host TEXT NOT NULL DEFAULT '',
    txt_name TEXT NOT NULL DEFAULT '',
    txt_value TEXT NOT NULL DEFAULT '',
    verified_by TEXT NOT NULL DEFAULT 'nobody',
    checked_at INTEGER NOT NULL DEFAULT 0,
    check_result TEXT NOT NULL DEFAULT '',
    missing_since INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX email_domains_created ON email_domains (account_id, created_at, id);
CREATE UNIQUE INDEX email_domains_once ON email_domains (account_id, domain, subdomain);
CREATE INDEX email_domains_status ON email_domains (account_id, status, created_at, id);
CREATE UNIQUE INDEX email_domains_verified ON email_domains (host) WHERE verified_by <> 'nobody';

CREATE TABLE exports (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    resource TEXT NOT NULL,
    format TEXT NOT NULL,
    filters TEXT NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX exports_created ON exports (account_id, created_at, id);

CREATE TABLE files (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    name TEXT NOT NULL,
    extension TEXT NOT NULL,
    content_type TEXT NOT NULL,
    size INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    content TEXT NOT NULL,
    pixels INTEGER NOT NULL DEFAULT 0,
    redrawn INTEGER NOT NULL DEFAULT 0 CHECK (redrawn IN (0, 1)),
    client_id TEXT NOT NULL DEFAULT '',
    origin TEXT NOT NULL DEFAULT 'uploaded',
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX files_client ON files (account_id, client_id, created_at, id);
CREATE UNIQUE INDEX files_content ON files (account_id, content);
CREATE INDEX files_created ON files (account_id, created_at, id);
CREATE INDEX files_origin ON files (account_id, origin, created_at, id);

CREATE TABLE flow_definitions (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    flow_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    definition TEXT NOT NULL,
    author_type TEXT NOT NULL DEFAULT 'operator',
    author_id TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (account_id, flow_id, version)
) STRICT, WITHOUT ROWID;

CREATE TABLE flows (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    category TEXT NOT NULL,
    trigger_type TEXT NOT NULL,
    trigger_key TEXT NOT NULL,
    active INTEGER NOT NULL,
    step_count INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    definition TEXT NOT NULL,
    next_at INTEGER NOT NULL,
    listens_to TEXT NOT NULL,
    conditions TEXT NOT NULL,
    definition_version INTEGER NOT NULL,
    author_type TEXT NOT NULL DEFAULT 'operator',
    author_id TEXT NOT NULL DEFAULT '',
    stopped_reason TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX flows_active ON flows (account_id, active, created_at, id);
CREATE INDEX flows_category ON flows (account_id, category, created_at, id);
CREATE INDEX flows_created ON flows (account_id, created_at, id);
CREATE INDEX flows_heard ON flows (account_id, listens_to) WHERE active = 1;
CREATE INDEX flows_next ON flows (account_id, next_at) WHERE next_at > 0;
CREATE INDEX flows_trigger_type ON flows (account_id, trigger_type, created_at, id);

CREATE TABLE holds (
    account_id INTEGER NOT NULL,
    id TEXT NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE import_lines (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    import_id TEXT NOT NULL,
    line INTEGER NOT NULL,
    part INTEGER NOT NULL,
    record_table TEXT NOT NULL,
    record_id TEXT NOT NULL,
    record_version INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    message TEXT NOT NULL,
    source_id TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (account_id, import_id, line, part)
) STRICT, WITHOUT ROWID;
CREATE INDEX import_lines_outcome ON import_lines (account_id, import_id, outcome, line, part);
CREATE INDEX import_lines_source ON import_lines (account_id, record_table, source_id) WHERE source_id <> '';

CREATE TABLE imports (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    resource TEXT NOT NULL,
    file_id TEXT NOT NULL,
    source TEXT NOT NULL,
    pdfs_file_id TEXT NOT NULL,
    format TEXT NOT NULL,
    encoding TEXT NOT NULL,
    separator TEXT NOT NULL,
    decimal_sign TEXT NOT NULL,
    date_order TEXT NOT NULL,
    mapping TEXT NOT NULL,
    match_by TEXT NOT NULL,
    existing TEXT NOT NULL,
    status TEXT NOT NULL,
    failure TEXT NOT NULL,
    columns TEXT NOT NULL,
    lines INTEGER NOT NULL,
    valid_lines INTEGER NOT NULL,
    problem_count INTEGER NOT NULL,
    problems TEXT NOT NULL,
    preview TEXT NOT NULL,
    processed INTEGER NOT NULL,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    skipped INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    errors TEXT NOT NULL,
    removed INTEGER NOT NULL,
    report TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at INTEGER NOT NULL,
    author_type TEXT NOT NULL,
    author_id TEXT NOT NULL,
    warnings TEXT NOT NULL DEFAULT '',
    warning_count INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX imports_created ON imports (account_id, created_at, id);
CREATE INDEX imports_file ON imports (account_id, file_id) WHERE file_id <> '';
CREATE INDEX imports_pdfs ON imports (account_id, pdfs_file_id) WHERE pdfs_file_id <> '';
CREATE INDEX imports_status ON imports (account_id, status, created_at, id);

CREATE TABLE invoices (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    number TEXT NOT NULL,
    title TEXT NOT NULL,
    invoice_date TEXT NOT NULL,
    due_date TEXT NOT NULL,
    subtotal INTEGER NOT NULL,
    vat_rate INTEGER NOT NULL,
    vat_amount INTEGER NOT NULL,
    total_excl_vat INTEGER NOT NULL,
    total_incl_vat INTEGER NOT NULL,
    client_id TEXT NOT NULL,
    payment_status TEXT NOT NULL,
    paid_at INTEGER NOT NULL,
    sent_at INTEGER NOT NULL,
    project_number TEXT NOT NULL,
    is_credit INTEGER NOT NULL,
    external_id TEXT NOT NULL,
    rows TEXT NOT NULL,
    client_company_name TEXT NOT NULL,
    client_firstname TEXT NOT NULL,
    client_lastname TEXT NOT NULL,
    custom_fields TEXT NOT NULL,
    generation_mode TEXT NOT NULL,
    finalized_at INTEGER NOT NULL,
    revision INTEGER NOT NULL,
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
    paid_amount INTEGER NOT NULL,
    credited_amount INTEGER NOT NULL,
    accepted_at INTEGER NOT NULL,
    accepted_by TEXT NOT NULL,
    rejected_at INTEGER NOT NULL,
    viewed_at INTEGER NOT NULL,
    token TEXT NOT NULL,
    client TEXT NOT NULL,
    sender TEXT NOT NULL,
    subscription_id TEXT NOT NULL DEFAULT '',
    period_start TEXT NOT NULL DEFAULT '',
    period_end TEXT NOT NULL DEFAULT '',
    open_amount INTEGER NOT NULL DEFAULT 0,
    collection_date TEXT NOT NULL DEFAULT '',
    collection_account TEXT NOT NULL DEFAULT '',
    supply_date TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX invoices_clients ON invoices (account_id, client_id, id);
CREATE INDEX invoices_collected ON invoices (account_id, id) WHERE collection_date <> '';
CREATE INDEX invoices_created ON invoices (account_id, created_at, id);
CREATE INDEX invoices_credit ON invoices (account_id, is_credit, id);
CREATE INDEX invoices_credited_invoice_id ON invoices (account_id, credited_invoice_id) WHERE credited_invoice_id <> '';
CREATE INDEX invoices_date ON invoices (account_id, invoice_date, id);
CREATE INDEX invoices_deal ON invoices (account_id, deal_id, id) WHERE deal_id <> '';
CREATE INDEX invoices_drafted ON invoices (account_id, created_at, total_incl_vat) WHERE generation_mode = 'draft';
CREATE INDEX invoices_due ON invoices (account_id, due_date, id);
CREATE INDEX invoices_excl ON invoices (account_id, total_excl_vat, id);
CREATE UNIQUE INDEX invoices_external_once ON invoices (account_id, external_id) WHERE external_id <> '';
CREATE INDEX invoices_identity ON invoices (account_id, corporate_identity_id, id);
CREATE INDEX invoices_incl ON invoices (account_id, total_incl_vat, id);
CREATE INDEX invoices_invoice_id ON invoices (account_id, invoice_id) WHERE invoice_id <> '';
CREATE INDEX invoices_late ON invoices (account_id, client_id, due_date) WHERE payment_status IN ('overdue', 'partial');
CREATE UNIQUE INDEX invoices_number_once ON invoices (account_id, number);
CREATE INDEX invoices_open ON invoices (account_id, due_date, id)
    WHERE payment_status = 'open' AND total_incl_vat - credited_amount >= 0;
CREATE INDEX invoices_paid ON invoices (account_id, paid_at, id);
CREATE INDEX invoices_project ON invoices (account_id, project_id, id) WHERE project_id <> '';
CREATE INDEX invoices_quote_id ON invoices (account_id, quote_id) WHERE quote_id <> '';
CREATE INDEX invoices_sent ON invoices (account_id, sent_at, id);
CREATE INDEX invoices_statuses ON invoices (account_id, payment_status, id, open_amount, total_excl_vat, total_incl_vat);
CREATE INDEX invoices_subscription ON invoices (account_id, subscription_id, id) WHERE subscription_id <> '';
CREATE INDEX invoices_title ON invoices (account_id, title, id);
CREATE UNIQUE INDEX invoices_token ON invoices (token);
CREATE INDEX invoices_unpaid ON invoices
    (account_id, due_date, open_amount, collection_date, payment_status, id, total_excl_vat, total_incl_vat)
    WHERE open_amount <> 0;
CREATE INDEX invoices_unpaid_of_client ON invoices (account_id, client_id, due_date, open_amount, collection_date)
    WHERE open_amount <> 0;

CREATE TABLE jobs (
    id TEXT PRIMARY KEY,
    account_id INTEGER NOT NULL,
    kind TEXT NOT NULL,
    unique_key TEXT NOT NULL UNIQUE,
    payload TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('ready', 'running', 'done', 'failed', 'parked')),
    run_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    claim INTEGER NOT NULL,
    lease_until INTEGER NOT NULL,
    last_error TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    lane TEXT NOT NULL DEFAULT 'other',
    node TEXT NOT NULL DEFAULT '',
    lost INTEGER NOT NULL DEFAULT 0,
    mark BLOB NOT NULL DEFAULT x''
) STRICT;
CREATE INDEX jobs_due ON jobs (state, run_at, id);
CREATE INDEX jobs_leases ON jobs (lease_until) WHERE state = 'running';
CREATE INDEX jobs_ready ON jobs (lane, run_at, account_id, kind) WHERE state = 'ready';
CREATE INDEX jobs_turns ON jobs (lane, account_id, run_at, id, kind) WHERE state = 'ready';

CREATE TABLE key_limits (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    key_id TEXT NOT NULL,
    asked TEXT NOT NULL,
    PRIMARY KEY (account_id, key_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE keys (
    id TEXT PRIMARY KEY,
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    name TEXT NOT NULL,
    hash BLOB NOT NULL UNIQUE,
    hint TEXT NOT NULL,
    scopes TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    revoked_at INTEGER NOT NULL,
    last_used_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL DEFAULT 0,
    version INTEGER NOT NULL DEFAULT 0,
    allowed_networks TEXT NOT NULL DEFAULT '',
    old_secret_until INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX keys_created ON keys (account_id, created_at, id);
CREATE INDEX keys_id ON keys (account_id, id);
CREATE INDEX keys_live ON keys (account_id) WHERE revoked_at = 0;
CREATE INDEX keys_name ON keys (account_id, name, id);

CREATE TABLE log (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    type TEXT NOT NULL,
    entity_type TEXT NOT NULL,
    entity_id TEXT NOT NULL,
    actor TEXT NOT NULL,
    request_id TEXT NOT NULL,
    data TEXT NOT NULL,
    hash BLOB NOT NULL,
    data_of INTEGER NOT NULL DEFAULT 0,
    actor_type TEXT NOT NULL DEFAULT '',
    actor_name TEXT NOT NULL DEFAULT '',
    version INTEGER NOT NULL DEFAULT 1,
    salt BLOB NOT NULL DEFAULT x'',
    digest BLOB NOT NULL DEFAULT x''
) STRICT;
CREATE INDEX log_actors ON log (account_id, actor, seq);
CREATE INDEX log_kinds ON log (account_id, entity_type, seq);
CREATE INDEX log_records ON log (account_id, entity_id, seq);
CREATE UNIQUE INDEX log_seq ON log (account_id, seq);
CREATE INDEX log_types ON log (account_id, type, seq);

CREATE TABLE log_heads (
    account_id INTEGER NOT NULL PRIMARY KEY,
    uid TEXT NOT NULL,
    seq INTEGER NOT NULL,
    hash BLOB NOT NULL,
    signature BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE log_verifications (
    account_id INTEGER NOT NULL PRIMARY KEY REFERENCES accounts (id),
    id TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('running', 'done')),
    ended_at INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    hash BLOB NOT NULL,
    emptied_seq INTEGER NOT NULL,
    signed_seq INTEGER NOT NULL,
    foreign_seq INTEGER NOT NULL,
    total INTEGER NOT NULL,
    problem TEXT NOT NULL,
    mark BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE mail_links (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    link TEXT NOT NULL,
    scopes TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX mail_links_expired ON mail_links (account_id, expires_at);

CREATE TABLE mail_templates (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    send_type TEXT NOT NULL,
    language TEXT NOT NULL,
    subject TEXT NOT NULL,
    message TEXT NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX mail_templates_created ON mail_templates (account_id, created_at, id);
CREATE INDEX mail_templates_language ON mail_templates (account_id, language, created_at, id);
CREATE INDEX mail_templates_type ON mail_templates (account_id, send_type, created_at, id);
CREATE INDEX mail_templates_used ON mail_templates (account_id, send_type, language, created_at, id);

CREATE TABLE mails (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    about TEXT NOT NULL,
    about_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    from_name TEXT NOT NULL,
    from_email TEXT NOT NULL,
    reply_to TEXT NOT NULL,
    recipients TEXT NOT NULL,
    copies TEXT NOT NULL,
    subject TEXT NOT NULL,
    body TEXT NOT NULL,
    html TEXT NOT NULL,
    attach_pdf INTEGER NOT NULL,
    leaves_at INTEGER NOT NULL DEFAULT 0,
    source TEXT NOT NULL DEFAULT '',
    to_client INTEGER NOT NULL DEFAULT 0,
    flow_id TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX mails_waiting ON mails (account_id, leaves_at) WHERE leaves_at > created_at;

CREATE TABLE mandates (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    status TEXT NOT NULL,
    provider TEXT NOT NULL,
    customer_id TEXT NOT NULL,
    mandate_id TEXT NOT NULL,
    signed_on TEXT NOT NULL,
    client_id TEXT NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE UNIQUE INDEX mandates_client ON mandates (account_id, client_id);

CREATE TABLE marks (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    cause TEXT NOT NULL,
    record_id TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (account_id, cause, record_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE nodes (
    id TEXT PRIMARY KEY,
    beat INTEGER NOT NULL
) STRICT;

CREATE TABLE notes (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    body TEXT NOT NULL,
    client_id TEXT NOT NULL,
    invoice_id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    deal_id TEXT NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX notes_client ON notes (account_id, client_id, created_at, id);
CREATE INDEX notes_created ON notes (account_id, created_at, id);
CREATE INDEX notes_deal ON notes (account_id, deal_id, created_at, id);
CREATE INDEX notes_invoice ON notes (account_id, invoice_id, created_at, id);
CREATE INDEX notes_project ON notes (account_id, project_id, created_at, id);

CREATE TABLE old_key_secrets (
    hash BLOB PRIMARY KEY,
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    key_id TEXT NOT NULL,
    until INTEGER NOT NULL,
    signature BLOB NOT NULL DEFAULT x''
) STRICT;
CREATE INDEX old_key_secrets_key ON old_key_secrets (account_id, key_id);

CREATE TABLE one_time_tokens (
    hash BLOB PRIMARY KEY,
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    purpose TEXT NOT NULL,
    user_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    used_at INTEGER NOT NULL,
    new_password TEXT NOT NULL DEFAULT '',
    shown INTEGER NOT NULL DEFAULT 0,
    mark BLOB NOT NULL DEFAULT x''
) STRICT;
CREATE INDEX one_time_tokens_age ON one_time_tokens (account_id, expires_at);
CREATE INDEX one_time_tokens_user ON one_time_tokens (account_id, user_id);

CREATE TABLE payment_terms (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    code TEXT NOT NULL,
    days INTEGER NOT NULL,
    label TEXT NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE UNIQUE INDEX payment_terms_code ON payment_terms (account_id, code);
CREATE INDEX payment_terms_days ON payment_terms (account_id, days, id);

CREATE TABLE payments (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    amount INTEGER NOT NULL,
    date TEXT NOT NULL,
    status TEXT NOT NULL,
    type TEXT NOT NULL,
    method TEXT NOT NULL,
    external_id TEXT NOT NULL,
    provider TEXT NOT NULL,
    payment_data TEXT NOT NULL,
    feedback_data TEXT NOT NULL,
    invoice_id TEXT NOT NULL,
    test INTEGER NOT NULL DEFAULT 0,
    checkout_url TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX payments_awaited ON payments (account_id, provider, status, created_at, id);
CREATE UNIQUE INDEX payments_external ON payments (account_id, invoice_id, external_id) WHERE external_id <> '';
CREATE INDEX payments_external_id ON payments (external_id) WHERE external_id <> '';
CREATE INDEX payments_invoice ON payments (account_id, invoice_id, created_at, id);
CREATE INDEX payments_waiting ON payments (account_id, provider, status, created_at, id)
    WHERE status IN ('created', 'open', 'pending', 'authorized');

CREATE TABLE people (
    id TEXT PRIMARY KEY,
    email TEXT NOT NULL UNIQUE,
    password TEXT NOT NULL,
    password_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    signature BLOB NOT NULL DEFAULT x'',
    proven INTEGER NOT NULL DEFAULT 1
) STRICT;

CREATE TABLE phases (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    pipeline_id TEXT NOT NULL,
    name TEXT NOT NULL,
    "order" INTEGER NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX phases_order ON phases (account_id, "order", id);
CREATE INDEX phases_pipeline ON phases (account_id, pipeline_id, "order", id);

CREATE TABLE pipelines (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    name TEXT NOT NULL,
    active INTEGER NOT NULL CHECK (active IN (0, 1)),
    "order" INTEGER NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX pipelines_order ON pipelines (account_id, "order", id);

CREATE TABLE preferences (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    user_id TEXT NOT NULL,
    chosen TEXT NOT NULL,
    PRIMARY KEY (account_id, user_id)
) STRICT;

CREATE TABLE presences (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    address TEXT NOT NULL,
    user_id TEXT NOT NULL,
    name TEXT NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (account_id, address, user_id)
) STRICT;
CREATE INDEX presences_until ON presences (account_id, until);

CREATE TABLE products (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    name TEXT NOT NULL,
    code TEXT NOT NULL,
    price INTEGER NOT NULL,
    vat_rate TEXT NOT NULL,
    unit TEXT NOT NULL,
    active INTEGER NOT NULL CHECK (active IN (0, 1)),
    PRIMARY KEY (account_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX products_active ON products (account_id, active, created_at, id);
CREATE INDEX products_code ON products (account_id, code, created_at, id);
CREATE INDEX products_code_sort ON products (account_id, code, id);
CREATE INDEX products_created ON products (account_id, created_at, id);
CREATE INDEX products_name ON products (account_id, name, id);
CREATE INDEX products_price ON products (account_id, price, id);

CREATE TABLE project_hours (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    date TEXT NOT NULL,
    hours INTEGER NOT NULL,
    minutes INTEGER NOT NULL,
    status TEXT NOT NULL,
    activity_name TEXT NOT NULL,
    project_id TEXT NOT NULL,
    user_id TEXT NOT NULL DEFAULT '',
    invoice_id TEXT NOT NULL DEFAULT '',
    rejected_reason TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX project_hours_all ON project_hours (account_id, created_at, id);
CREATE INDEX project_hours_billed ON project_hours (account_id, project_id, invoice_id, created_at, id);
CREATE INDEX project_hours_created ON project_hours (account_id, project_id, created_at, id);
CREATE INDEX project_hours_date ON project_hours (account_id, project_id, date, id);
CREATE INDEX project_hours_dated ON project_hours (account_id, date, created_at, id);
CREATE INDEX project_hours_dates ON project_hours (account_id, date, id);
CREATE INDEX project_hours_id ON project_hours (account_id, project_id, id);
CREATE INDEX project_hours_invoice ON project_hours (account_id, invoice_id, created_at, id);
CREATE INDEX project_hours_of_invoice ON project_hours (account_id, invoice_id) WHERE invoice_id <> '';
CREATE INDEX project_hours_status ON project_hours (account_id, project_id, status, created_at, id);
CREATE INDEX project_hours_statuses ON project_hours (account_id, status, created_at, id);
CREATE INDEX project_hours_user ON project_hours (account_id, user_id, created_at, id);

CREATE TABLE projects (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    name TEXT NOT NULL,
    number TEXT NOT NULL,
    status TEXT NOT NULL,
    client_id TEXT NOT NULL,
    budget INTEGER NOT NULL,
    start_date TEXT NOT NULL,
    end_date TEXT NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX projects_client ON projects (account_id, client_id, created_at, id);
CREATE INDEX projects_created ON projects (account_id, created_at, id);
CREATE INDEX projects_end ON projects (account_id, end_date, id);
CREATE INDEX projects_name ON projects (account_id, name, id);
CREATE INDEX projects_number ON projects (account_id, number, created_at, id);
CREATE UNIQUE INDEX projects_number_once ON projects (account_id, number);
CREATE INDEX projects_number_sort ON projects (account_id, number, id);
CREATE INDEX projects_start ON projects (account_id, start_date, id);
CREATE INDEX projects_status ON projects (account_id, status, created_at, id);

CREATE TABLE quota_usage (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    name TEXT NOT NULL,
    day TEXT NOT NULL,
    value INTEGER NOT NULL,
    PRIMARY KEY (account_id, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE quotes (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    number TEXT NOT NULL,
    title TEXT NOT NULL,
    invoice_date TEXT NOT NULL,
    due_date TEXT NOT NULL,
    subtotal INTEGER NOT NULL,
    vat_rate INTEGER NOT NULL,
    vat_amount INTEGER NOT NULL,
    total_excl_vat INTEGER NOT NULL,
    total_incl_vat INTEGER NOT NULL,
    client_id TEXT NOT NULL,
    payment_status TEXT NOT NULL,
    paid_at INTEGER NOT NULL,
    sent_at INTEGER NOT NULL,
    project_number TEXT NOT NULL,
    is_credit INTEGER NOT NULL,
    external_id TEXT NOT NULL,
    rows TEXT NOT NULL,
    client_company_name TEXT NOT NULL,
    client_firstname TEXT NOT NULL,
    client_lastname TEXT NOT NULL,
    custom_fields TEXT NOT NULL,
    generation_mode TEXT NOT NULL,
    finalized_at INTEGER NOT NULL,
    revision INTEGER NOT NULL,
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
    paid_amount INTEGER NOT NULL,
    credited_amount INTEGER NOT NULL,
    accepted_at INTEGER NOT NULL,
    accepted_by TEXT NOT NULL,
    rejected_at INTEGER NOT NULL,
    viewed_at INTEGER NOT NULL,
    token TEXT NOT NULL,
    client TEXT NOT NULL,
    sender TEXT NOT NULL,
    subscription_id TEXT NOT NULL DEFAULT '',
    period_start TEXT NOT NULL DEFAULT '',
    period_end TEXT NOT NULL DEFAULT '',
    open_amount INTEGER NOT NULL DEFAULT 0,
    collection_date TEXT NOT NULL DEFAULT '',
    collection_account TEXT NOT NULL DEFAULT '',
    supply_date TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX quotes_clients ON quotes (account_id, client_id, id);
CREATE INDEX quotes_created ON quotes (account_id, created_at, id);
CREATE INDEX quotes_credit ON quotes (account_id, is_credit, id);
CREATE INDEX quotes_credited_invoice_id ON quotes (account_id, credited_invoice_id) WHERE credited_invoice_id <> '';
CREATE INDEX quotes_date ON quotes (account_id, invoice_date, id);
CREATE INDEX quotes_deal ON quotes (account_id, deal_id, id) WHERE deal_id <> '';
CREATE INDEX quotes_drafted ON quotes (account_id, created_at, total_incl_vat) WHERE generation_mode = 'draft';
CREATE INDEX quotes_due ON quotes (account_id, due_date, id);
CREATE INDEX quotes_excl ON quotes (account_id, total_excl_vat, id);
CREATE UNIQUE INDEX quotes_external_once ON quotes (account_id, external_id) WHERE external_id <> '';
CREATE INDEX quotes_identity ON quotes (account_id, corporate_identity_id, id);
CREATE INDEX quotes_incl ON quotes (account_id, total_incl_vat, id);
CREATE INDEX quotes_invoice_id ON quotes (account_id, invoice_id) WHERE invoice_id <> '';
CREATE UNIQUE INDEX quotes_number_once ON quotes (account_id, number);
CREATE INDEX quotes_open ON quotes (account_id, due_date, id) WHERE payment_status = 'open';
CREATE INDEX quotes_paid ON quotes (account_id, paid_at, id);
CREATE INDEX quotes_project ON quotes (account_id, project_id, id) WHERE project_id <> '';
CREATE INDEX quotes_quote_id ON quotes (account_id, quote_id) WHERE quote_id <> '';
CREATE INDEX quotes_sent ON quotes (account_id, sent_at, id);
CREATE INDEX quotes_statuses ON quotes (account_id, payment_status, id);
CREATE INDEX quotes_subscription ON quotes (account_id, subscription_id) WHERE subscription_id <> '';
CREATE INDEX quotes_title ON quotes (account_id, title, id);
CREATE UNIQUE INDEX quotes_token ON quotes (token);
CREATE INDEX quotes_unanswered ON quotes (account_id, sent_at, total_incl_vat)
    WHERE payment_status = 'open' AND generation_mode = 'final' AND sent_at > 0;
CREATE INDEX quotes_unpaid ON quotes (account_id, due_date) WHERE open_amount <> 0;

CREATE TABLE record_counts (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    kind TEXT NOT NULL,
    total INTEGER NOT NULL,
    PRIMARY KEY (account_id, kind)
) STRICT, WITHOUT ROWID;

CREATE TABLE recovery_codes (
    hash BLOB PRIMARY KEY,
    person_id TEXT NOT NULL
) STRICT;
CREATE INDEX recovery_codes_person ON recovery_codes (person_id);

CREATE TABLE revenue_months (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    month TEXT NOT NULL,
    invoices INTEGER NOT NULL,
    excl_vat INTEGER NOT NULL,
    vat INTEGER NOT NULL,
    incl_vat INTEGER NOT NULL,
    PRIMARY KEY (account_id, month)
) STRICT;

CREATE TABLE runs (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    flow_id TEXT NOT NULL,
    flow_name TEXT NOT NULL,
    status TEXT NOT NULL,
    trigger_type TEXT NOT NULL,
    trigger_key TEXT NOT NULL,
    entity_type TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    actions_done INTEGER NOT NULL,
    error TEXT NOT NULL,
    next_attempt_at INTEGER NOT NULL,
    event TEXT NOT NULL,
    entity_id TEXT NOT NULL,
    depth INTEGER NOT NULL,
    cancel_requested INTEGER NOT NULL,
    finished_at INTEGER NOT NULL,
    flow_version INTEGER NOT NULL,
    step INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    claim INTEGER NOT NULL,
    lease_until INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    data TEXT NOT NULL,
    results TEXT NOT NULL,
    chain TEXT NOT NULL DEFAULT '',
    node TEXT NOT NULL DEFAULT '',
    lost INTEGER NOT NULL DEFAULT 0,
    seq INTEGER NOT NULL DEFAULT 0,
    reads TEXT NOT NULL DEFAULT '*',
    fired INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX runs_chain ON runs (account_id, chain) WHERE chain <> '';
CREATE INDEX runs_created ON runs (account_id, created_at, id);
CREATE INDEX runs_due ON runs (account_id, due_at, id) WHERE due_at > 0;
CREATE INDEX runs_finished ON runs (account_id, finished_at) WHERE finished_at > 0;
CREATE INDEX runs_flow ON runs (account_id, flow_id, created_at, id);
CREATE INDEX runs_flow_status ON runs (account_id, flow_id, status, created_at, id);
CREATE INDEX runs_leases ON runs (account_id, lease_until) WHERE lease_until > 0;
CREATE INDEX runs_node ON runs (node) WHERE lease_until > 0;
CREATE INDEX runs_status ON runs (account_id, status, created_at, id);
CREATE INDEX runs_tried ON runs (updated_at) WHERE status IN ('queued', 'retrying');

CREATE TABLE schema_migrations (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT;

CREATE VIRTUAL TABLE search_index USING fts5 (
    folded, content = 'search_texts', content_rowid = 'number', tokenize = 'trigram', detail = 'none', columnsize = 0
);

CREATE TABLE search_pieces (
    piece TEXT NOT NULL PRIMARY KEY,
    texts INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE search_texts (
    number INTEGER PRIMARY KEY,
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    kind TEXT NOT NULL,
    record_id TEXT NOT NULL,
    folded TEXT NOT NULL,
    pending INTEGER NOT NULL DEFAULT 1 CHECK (pending IN (0, 1))
) STRICT;
CREATE INDEX search_texts_pending ON search_texts (account_id, number) WHERE pending = 1;
CREATE UNIQUE INDEX search_texts_record ON search_texts (account_id, kind, record_id);
CREATE TRIGGER search_changed AFTER UPDATE OF folded ON search_texts WHEN old.pending = 0 BEGIN
    INSERT INTO search_index (search_index, rowid, folded) VALUES ('delete', old.number, old.folded);
    UPDATE search_texts SET pending = 1 WHERE number = new.number;
END;
CREATE TRIGGER search_indexed AFTER UPDATE OF pending ON search_texts WHEN old.pending = 1 AND new.pending = 0 BEGIN
    INSERT INTO search_index (rowid, folded) VALUES (new.number, new.folded);
END;
CREATE TRIGGER search_removed AFTER DELETE ON search_texts WHEN old.pending = 0 BEGIN
    INSERT INTO search_index (search_index, rowid, folded) VALUES ('delete', old.number, old.folded);
END;

CREATE TABLE second_factors (
    account_id INTEGER NOT NULL,
    id TEXT PRIMARY KEY,
    person_id TEXT NOT NULL,
    method TEXT NOT NULL,
    name TEXT NOT NULL,
    secret TEXT NOT NULL,
    credential TEXT NOT NULL,
    counter INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    confirmed_at INTEGER NOT NULL,
    used_at INTEGER NOT NULL
) STRICT;
CREATE INDEX second_factors_person ON second_factors (person_id, created_at);
CREATE INDEX second_factors_unfinished ON second_factors (created_at) WHERE confirmed_at = 0;

CREATE TABLE secrets (
    name TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    user_id TEXT NOT NULL,
    person_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL,
    browser TEXT NOT NULL,
    address TEXT NOT NULL,
    via TEXT NOT NULL DEFAULT 'password',
    confirmed_at INTEGER NOT NULL DEFAULT 0,
    mark BLOB NOT NULL DEFAULT x''
) STRICT;
CREATE INDEX sessions_person ON sessions (person_id, created_at);
CREATE INDEX sessions_seen ON sessions (account_id, seen_at);
CREATE INDEX sessions_user ON sessions (account_id, user_id);

CREATE TABLE settings (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    subscription_generation TEXT NOT NULL,
    subscription_expiring_days INTEGER NOT NULL,
    document_draft_days INTEGER NOT NULL,
    quote_silent_days INTEGER NOT NULL,
    deal_stalled_days INTEGER NOT NULL,
    deal_phase_idle_days INTEGER NOT NULL,
    deal_no_followup_days INTEGER NOT NULL,
    ticket_stale_days INTEGER NOT NULL,
    mail_unanswered_days INTEGER NOT NULL,
    customer_inactive_days INTEGER NOT NULL,
    customer_no_followup_days INTEGER NOT NULL,
    provider TEXT NOT NULL,
    mollie_key TEXT NOT NULL,
    mollie_key_hint TEXT NOT NULL,
    online_payments INTEGER NOT NULL,
    verification_amount INTEGER NOT NULL,
    creditor_id TEXT NOT NULL,
    runs_kept_days INTEGER NOT NULL DEFAULT 90,
    payment_term INTEGER NOT NULL DEFAULT 14,
    quote_expiration_days INTEGER NOT NULL DEFAULT 30,
    outside TEXT NOT NULL DEFAULT 'live',
    two_factor TEXT NOT NULL DEFAULT 'off',
    demo INTEGER NOT NULL DEFAULT 0,
    mail_hours_from TEXT NOT NULL DEFAULT '08:00',
    mail_hours_until TEXT NOT NULL DEFAULT '18:00',
    mail_days TEXT NOT NULL DEFAULT 'mon
tue
wed
thu
fri',
    language TEXT NOT NULL DEFAULT 'en',
    default_vat_code TEXT NOT NULL DEFAULT '',
    strict_final INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE UNIQUE INDEX settings_once ON settings (account_id);

CREATE TABLE sign_in_attempts (
    id TEXT PRIMARY KEY,
    subject TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT;
CREATE INDEX sign_in_attempts_age ON sign_in_attempts (at);
CREATE INDEX sign_in_attempts_subject ON sign_in_attempts (subject, at);

CREATE TABLE sign_in_failures (
    id TEXT PRIMARY KEY,
    person_id TEXT NOT NULL,
    reason TEXT NOT NULL,
    address TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    last_at INTEGER NOT NULL
) STRICT;
CREATE INDEX sign_in_failures_age ON sign_in_failures (last_at);
CREATE INDEX sign_in_failures_person ON sign_in_failures (person_id, last_at);

CREATE TABLE stored_answers (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    key TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    status INTEGER NOT NULL,
    location TEXT NOT NULL,
    etag TEXT NOT NULL,
    body TEXT NOT NULL,
    headers TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (account_id, key)
) STRICT;
CREATE INDEX stored_answers_age ON stored_answers (account_id, created_at);

CREATE TABLE subscription_periods (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    subscription_id TEXT NOT NULL,
    period_start TEXT NOT NULL,
    period_end TEXT NOT NULL,
    invoice_id TEXT NOT NULL,
    made_at INTEGER NOT NULL,
    PRIMARY KEY (account_id, subscription_id, period_start)
) STRICT, WITHOUT ROWID;

CREATE TABLE subscriptions (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    number TEXT NOT NULL,
    title TEXT NOT NULL,
    client_id TEXT NOT NULL,
    status TEXT NOT NULL,
    term TEXT NOT NULL,
    start_date TEXT NOT NULL,
    end_date TEXT NOT NULL,
    last_generated TEXT NOT NULL,
    next_generate TEXT NOT NULL,
    schedule TEXT NOT NULL,
    subtotal INTEGER NOT NULL,
    vat_rate INTEGER NOT NULL,
    vat_amount INTEGER NOT NULL,
    total_excl_vat INTEGER NOT NULL,
    total_incl_vat INTEGER NOT NULL,
    lines TEXT NOT NULL,
    problem TEXT NOT NULL,
    client_names TEXT NOT NULL,
    stuck_on TEXT NOT NULL,
    untold_end TEXT NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX subscriptions_client ON subscriptions (account_id, client_id, created_at, id);
CREATE INDEX subscriptions_created ON subscriptions (account_id, created_at, id);
CREATE INDEX subscriptions_end ON subscriptions (account_id, end_date, id);
CREATE INDEX subscriptions_next ON subscriptions (account_id, next_generate, id);
CREATE INDEX subscriptions_notify ON subscriptions (account_id, untold_end) WHERE untold_end <> '';
CREATE UNIQUE INDEX subscriptions_number ON subscriptions (account_id, number, id);
CREATE INDEX subscriptions_number_created ON subscriptions (account_id, number, created_at, id);
CREATE INDEX subscriptions_problem ON subscriptions (account_id, id) WHERE problem <> '';
CREATE INDEX subscriptions_start ON subscriptions (account_id, start_date, id);
CREATE INDEX subscriptions_status ON subscriptions (account_id, status, created_at, id);
CREATE INDEX subscriptions_status_sort ON subscriptions (account_id, status, id);
CREATE INDEX subscriptions_term ON subscriptions (account_id, term, created_at, id);
CREATE INDEX subscriptions_title ON subscriptions (account_id, title, id);
CREATE INDEX subscriptions_total ON subscriptions (account_id, total_incl_vat, id);

CREATE TABLE suppliers (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    type TEXT NOT NULL,
    company_name TEXT NOT NULL,
    firstname TEXT NOT NULL,
    lastname TEXT NOT NULL,
    email TEXT NOT NULL,
    phone TEXT NOT NULL,
    address TEXT NOT NULL,
    zipcode TEXT NOT NULL,
    city TEXT NOT NULL,
    country TEXT NOT NULL,
    company_registration_number TEXT NOT NULL,
    vat_number TEXT NOT NULL,
    website TEXT NOT NULL,
    iban TEXT NOT NULL,
    bank_account_name TEXT NOT NULL,
    bic TEXT NOT NULL,
    payment_term INTEGER NOT NULL,
    quote_expiration_days INTEGER NOT NULL,
    default_revenue_account TEXT NOT NULL,
    email_invoices TEXT NOT NULL,
    email_reminders TEXT NOT NULL,
    mail_salutation TEXT NOT NULL,
    debtor_number TEXT NOT NULL,
    custom_fields TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX suppliers_company ON suppliers (account_id, company_name, id);
CREATE INDEX suppliers_created ON suppliers (account_id, created_at, id);
CREATE INDEX suppliers_email ON suppliers (account_id, lower(email), created_at, id);
CREATE INDEX suppliers_lastname ON suppliers (account_id, lastname, id);
CREATE INDEX suppliers_type ON suppliers (account_id, type, created_at, id);

CREATE TABLE tasks (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    title TEXT NOT NULL,
    category TEXT NOT NULL,
    status TEXT NOT NULL,
    notes TEXT NOT NULL,
    deadline TEXT NOT NULL,
    duration_minutes INTEGER NOT NULL,
    client_id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    deal_id TEXT NOT NULL,
    assignee_id TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX tasks_assignee ON tasks (account_id, assignee_id, created_at, id);
CREATE INDEX tasks_category ON tasks (account_id, category, created_at, id);
CREATE INDEX tasks_client ON tasks (account_id, client_id, created_at, id);
CREATE INDEX tasks_created ON tasks (account_id, created_at, id);
CREATE INDEX tasks_deadline ON tasks (account_id, deadline, id);
CREATE INDEX tasks_deal ON tasks (account_id, deal_id, created_at, id);
CREATE INDEX tasks_due ON tasks (account_id, deadline, assignee_id) WHERE status = 'open' AND deadline <> '';
CREATE INDEX tasks_of_deal ON tasks (account_id, deal_id) WHERE status = 'open' AND deal_id <> '';
CREATE INDEX tasks_project ON tasks (account_id, project_id, created_at, id);
CREATE INDEX tasks_status ON tasks (account_id, status, created_at, id);
CREATE INDEX tasks_title ON tasks (account_id, title, id);

CREATE TABLE tax_rates (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    code TEXT NOT NULL,
    label TEXT NOT NULL,
    type TEXT NOT NULL,
    context TEXT NOT NULL,
    profile TEXT NOT NULL,
    amount INTEGER NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE UNIQUE INDEX tax_rates_code ON tax_rates (account_id, code);
CREATE INDEX tax_rates_context ON tax_rates (account_id, context, created_at, id);
CREATE INDEX tax_rates_created ON tax_rates (account_id, created_at, id);
CREATE INDEX tax_rates_type ON tax_rates (account_id, type, created_at, id);

CREATE TABLE ticket_channels (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    name TEXT NOT NULL,
    email TEXT NOT NULL,
    from_email TEXT NOT NULL,
    from_name TEXT NOT NULL,
    inbound_email TEXT NOT NULL,
    forwarding_emails TEXT NOT NULL,
    active INTEGER NOT NULL CHECK (active IN (0, 1)),
    "order" INTEGER NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX ticket_channels_active ON ticket_channels (account_id, active, "order", id);
CREATE INDEX ticket_channels_order ON ticket_channels (account_id, "order", id);

CREATE TABLE ticket_messages (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    direction TEXT NOT NULL,
    type TEXT NOT NULL,
    body TEXT NOT NULL,
    author TEXT NOT NULL,
    via_staff_save INTEGER NOT NULL,
    html TEXT NOT NULL,
    "to" TEXT NOT NULL,
    cc TEXT NOT NULL,
    author_name TEXT NOT NULL,
    author_email TEXT NOT NULL,
    plain_text_body INTEGER NOT NULL,
    author_user_id INTEGER NOT NULL,
    ticket_id TEXT NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX ticket_messages_ticket ON ticket_messages (account_id, ticket_id, created_at, id);

CREATE TABLE ticket_statuses (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    name TEXT NOT NULL,
    active INTEGER NOT NULL CHECK (active IN (0, 1)),
    "order" INTEGER NOT NULL,
    role TEXT NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX ticket_statuses_active ON ticket_statuses (account_id, active, "order", id);
CREATE UNIQUE INDEX ticket_statuses_name ON ticket_statuses (account_id, name);
CREATE INDEX ticket_statuses_order ON ticket_statuses (account_id, "order", id);
CREATE INDEX ticket_statuses_role ON ticket_statuses (account_id, role, "order", id);

CREATE TABLE tickets (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    number TEXT NOT NULL,
    subject TEXT NOT NULL,
    status TEXT NOT NULL,
    priority TEXT NOT NULL,
    client_name TEXT NOT NULL,
    client_email TEXT NOT NULL,
    client_id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    source TEXT NOT NULL,
    closed_at INTEGER NOT NULL,
    assignee_id TEXT NOT NULL DEFAULT '',
    last_message_at INTEGER NOT NULL DEFAULT 0,
    last_message_from TEXT NOT NULL DEFAULT 'nobody',
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX tickets_assignee ON tickets (account_id, assignee_id, created_at, id);
CREATE INDEX tickets_client ON tickets (account_id, client_id, created_at, id);
CREATE INDEX tickets_created ON tickets (account_id, created_at, id);
CREATE INDEX tickets_email ON tickets (account_id, lower(client_email), created_at, id);
CREATE INDEX tickets_messages ON tickets (account_id, last_message_at, id);
CREATE INDEX tickets_number ON tickets (account_id, number, id);
CREATE INDEX tickets_priority ON tickets (account_id, priority, created_at, id);
CREATE INDEX tickets_project ON tickets (account_id, project_id, created_at, id);
CREATE INDEX tickets_status ON tickets (account_id, status, created_at, id);
CREATE INDEX tickets_subject ON tickets (account_id, subject, id);
CREATE INDEX tickets_waiting ON tickets (account_id, assignee_id) WHERE closed_at = 0 AND last_message_from <> 'staff';

CREATE TABLE timers (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    cause TEXT NOT NULL,
    record_id TEXT NOT NULL,
    since INTEGER NOT NULL,
    PRIMARY KEY (account_id, cause, record_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX timers_due ON timers (account_id, cause, since, record_id);

CREATE TABLE users (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    email TEXT NOT NULL,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    language TEXT NOT NULL,
    status TEXT NOT NULL,
    person_id TEXT NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX users_created ON users (account_id, created_at, id);
CREATE INDEX users_email_folded ON users (account_id, lower(email), created_at, id);
CREATE INDEX users_name ON users (account_id, name, id);
CREATE UNIQUE INDEX users_once ON users (account_id, email);
CREATE INDEX users_person ON users (person_id, created_at, id);
CREATE INDEX users_role ON users (account_id, role, created_at, id);
CREATE INDEX users_status ON users (account_id, status, created_at, id);

CREATE TABLE verifications (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    status TEXT NOT NULL,
    amount INTEGER NOT NULL,
    provider TEXT NOT NULL,
    external_id TEXT NOT NULL,
    payment_url TEXT NOT NULL,
    customer_id TEXT NOT NULL,
    canceled_previous INTEGER NOT NULL,
    client_id TEXT NOT NULL,
    claim TEXT NOT NULL,
    test INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX verifications_client ON verifications (account_id, client_id, created_at, id);
CREATE INDEX verifications_external ON verifications (external_id) WHERE external_id <> '';
CREATE INDEX verifications_waiting ON verifications (account_id, provider, updated_at)
    WHERE status IN ('open', 'pending', 'authorized');

CREATE TABLE webhook_cursors (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    endpoint_id TEXT NOT NULL,
    sent_seq INTEGER NOT NULL,
    succeeded_at INTEGER NOT NULL,
    failing_since INTEGER NOT NULL,
    failures INTEGER NOT NULL DEFAULT 0,
    next_probe_at INTEGER NOT NULL DEFAULT 0,
    healed_at INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (account_id, endpoint_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE webhook_deliveries (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    endpoint_id TEXT NOT NULL,
    event TEXT NOT NULL,
    seq INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('queued', 'sending', 'retrying', 'delivered', 'failed', 'recorded')),
    attempts INTEGER NOT NULL,
    response_status INTEGER NOT NULL,
    response_body TEXT NOT NULL,
    reason TEXT NOT NULL,
    duration_ms INTEGER NOT NULL,
    next_attempt_at INTEGER NOT NULL,
    resend_of TEXT NOT NULL,
    happened_at INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    claim INTEGER NOT NULL,
    node TEXT NOT NULL DEFAULT '',
    lost INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX webhook_deliveries_created ON webhook_deliveries (account_id, endpoint_id, created_at, id);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (account_id, endpoint_id, due_at, id) WHERE due_at > 0;
CREATE INDEX webhook_deliveries_event ON webhook_deliveries (account_id, endpoint_id, event, created_at, id);
CREATE INDEX webhook_deliveries_node ON webhook_deliveries (node) WHERE status = 'sending';
CREATE INDEX webhook_deliveries_old ON webhook_deliveries (account_id, created_at);
CREATE INDEX webhook_deliveries_status ON webhook_deliveries (account_id, endpoint_id, status, created_at, id);
CREATE INDEX webhook_deliveries_tried ON webhook_deliveries (updated_at) WHERE status IN ('queued', 'retrying');

CREATE TABLE webhook_endpoints (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    url TEXT NOT NULL,
    events TEXT NOT NULL,
    description TEXT NOT NULL,
    active INTEGER NOT NULL CHECK (active IN (0, 1)),
    disabled_reason TEXT NOT NULL,
    disabled_at INTEGER NOT NULL,
    secret TEXT NOT NULL,
    old_secret TEXT NOT NULL,
    old_secret_until INTEGER NOT NULL,
    failing_since INTEGER NOT NULL DEFAULT 0,
    next_probe_at INTEGER NOT NULL DEFAULT 0,
    author_type TEXT NOT NULL DEFAULT 'operator',
    author_id TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (account_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX webhook_endpoints_active ON webhook_endpoints (account_id, active, created_at, id);
CREATE INDEX webhook_endpoints_created ON webhook_endpoints (account_id, created_at, id);

CREATE TABLE workorders (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    number TEXT NOT NULL,
    title TEXT NOT NULL,
    invoice_date TEXT NOT NULL,
    due_date TEXT NOT NULL,
    subtotal INTEGER NOT NULL,
    vat_rate INTEGER NOT NULL,
    vat_amount INTEGER NOT NULL,
    total_excl_vat INTEGER NOT NULL,
    total_incl_vat INTEGER NOT NULL,
    client_id TEXT NOT NULL,
    payment_status TEXT NOT NULL,
    paid_at INTEGER NOT NULL,
    sent_at INTEGER NOT NULL,
    project_number TEXT NOT NULL,
    is_credit INTEGER NOT NULL,
    external_id TEXT NOT NULL,
    rows TEXT NOT NULL,
    client_company_name TEXT NOT NULL,
    client_firstname TEXT NOT NULL,
    client_lastname TEXT NOT NULL,
    custom_fields TEXT NOT NULL,
    generation_mode TEXT NOT NULL,
    finalized_at INTEGER NOT NULL,
    revision INTEGER NOT NULL,
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
    paid_amount INTEGER NOT NULL,
    credited_amount INTEGER NOT NULL,
    accepted_at INTEGER NOT NULL,
    accepted_by TEXT NOT NULL,
    rejected_at INTEGER NOT NULL,
    viewed_at INTEGER NOT NULL,
    token TEXT NOT NULL,
    client TEXT NOT NULL,
    sender TEXT NOT NULL,
    subscription_id TEXT NOT NULL DEFAULT '',
    period_start TEXT NOT NULL DEFAULT '',
    period_end TEXT NOT NULL DEFAULT '',
    open_amount INTEGER NOT NULL DEFAULT 0,
    collection_date TEXT NOT NULL DEFAULT '',
    collection_account TEXT NOT NULL DEFAULT '',
    supply_date TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX workorders_clients ON workorders (account_id, client_id, id);
CREATE INDEX workorders_created ON workorders (account_id, created_at, id);
CREATE INDEX workorders_credit ON workorders (account_id, is_credit, id);
CREATE INDEX workorders_credited_invoice_id ON workorders (account_id, credited_invoice_id) WHERE credited_invoice_id <> '';
CREATE INDEX workorders_date ON workorders (account_id, invoice_date, id);
CREATE INDEX workorders_deal ON workorders (account_id, deal_id, id) WHERE deal_id <> '';
CREATE INDEX workorders_drafted ON workorders (account_id, created_at, total_incl_vat) WHERE generation_mode = 'draft';
CREATE INDEX workorders_due ON workorders (account_id, due_date, id);
CREATE INDEX workorders_excl ON workorders (account_id, total_excl_vat, id);
CREATE UNIQUE INDEX workorders_external_once ON workorders (account_id, external_id) WHERE external_id <> '';
CREATE INDEX workorders_identity ON workorders (account_id, corporate_identity_id, id);
CREATE INDEX workorders_incl ON workorders (account_id, total_incl_vat, id);
CREATE INDEX workorders_invoice_id ON workorders (account_id, invoice_id) WHERE invoice_id <> '';
CREATE UNIQUE INDEX workorders_number_once ON workorders (account_id, number);
CREATE INDEX workorders_paid ON workorders (account_id, paid_at, id);
CREATE INDEX workorders_project ON workorders (account_id, project_id, id) WHERE project_id <> '';
CREATE INDEX workorders_quote_id ON workorders (account_id, quote_id) WHERE quote_id <> '';
CREATE INDEX workorders_sent ON workorders (account_id, sent_at, id);
CREATE INDEX workorders_statuses ON workorders (account_id, payment_status, id);
CREATE INDEX workorders_subscription ON workorders (account_id, subscription_id) WHERE subscription_id <> '';
CREATE INDEX workorders_title ON workorders (account_id, title, id);
CREATE UNIQUE INDEX workorders_token ON workorders (token);
CREATE INDEX workorders_unpaid ON workorders (account_id, due_date) WHERE open_amount <> 0;
