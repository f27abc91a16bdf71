-- Written by `make docs-snapshots`.

CREATE EXTENSION pg_trgm;

CREATE TABLE accounts (
    id bigint NOT NULL,
    uid text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    zone text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    test_clock bigint NOT NULL,
    closed_at bigint NOT NULL DEFAULT 0,
    UNIQUE (uid),
    PRIMARY KEY (id)
);

CREATE TABLE backups (
    account_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    done_at bigint NOT NULL DEFAULT 0,
    tried_at bigint NOT NULL DEFAULT 0,
    name text COLLATE "C" NOT NULL DEFAULT ''::text,
    bytes bigint NOT NULL DEFAULT 0,
    failures bigint NOT NULL DEFAULT 0,
    last_error text COLLATE "C" NOT NULL DEFAULT ''::text,
    claim bigint NOT NULL DEFAULT 0,
    node text COLLATE "C" NOT NULL DEFAULT ''::text,
    lease_until bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (account_id, id)
);

CREATE TABLE batches (
    account_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    version bigint NOT NULL,
    collection_date text COLLATE "C" NOT NULL,
    scheme text COLLATE "C" NOT NULL,
    message_id text COLLATE "C" NOT NULL,
    count bigint NOT NULL,
    amount bigint NOT NULL,
    content text COLLATE "C" NOT NULL,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);
CREATE INDEX batches_created ON batches (account_id, created_at, id);

CREATE TABLE client_links (
    account_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    version bigint NOT NULL,
    company_id text COLLATE "C" NOT NULL,
    client_id text COLLATE "C" NOT NULL,
    function text COLLATE "C" NOT NULL,
    department text COLLATE "C" NOT NULL,
    UNIQUE (account_id, company_id, client_id),
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);
CREATE INDEX client_links_client ON client_links (account_id, client_id);
CREATE INDEX client_links_company ON client_links (account_id, company_id, created_at, id);

CREATE TABLE clients (
    account_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    version bigint NOT NULL,
    type text COLLATE "C" NOT NULL,
    company_name text COLLATE "C" NOT NULL,
    firstname text COLLATE "C" NOT NULL,
    lastname text COLLATE "C" NOT NULL,
    email text COLLATE "C" NOT NULL,
    phone text COLLATE "C" NOT NULL,
    address text COLLATE "C" NOT NULL,
    zipcode text COLLATE "C" NOT NULL,
    city text COLLATE "C" NOT NULL,
    country text COLLATE "C" NOT NULL,
    company_registration_number text COLLATE "C" NOT NULL,
    vat_number text COLLATE "C" NOT NULL,
    website text COLLATE "C" NOT NULL,
    iban text COLLATE "C" NOT NULL,
    bank_account_name text COLLATE "C" NOT NULL,
    bic text COLLATE "C" NOT NULL,
    payment_term bigint NOT NULL,
    quote_expiration_days bigint NOT NULL,
    default_revenue_account text COLLATE "C" NOT NULL,
    email_invoices text COLLATE "C" NOT NULL,
    email_reminders text COLLATE "C" NOT NULL,
    mail_salutation text COLLATE "C" NOT NULL,
    debtor_number text COLLATE "C" NOT NULL,
    custom_fields text COLLATE "C" NOT NULL DEFAULT ''::text,
    external_id text COLLATE "C" NOT NULL,
    owner_id text COLLATE "C" NOT NULL DEFAULT ''::text,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);
CREATE INDEX clients_company ON clients (account_id, company_name, id);
CREATE INDEX clients_created ON clients (account_id, created_at, id);
CREATE INDEX clients_email ON clients (account_id, lower(email), created_at, id);
CREATE INDEX clients_external ON clients (account_id, external_id, created_at, id);
CREATE UNIQUE INDEX clients_external_once ON clients (account_id, external_id) WHERE (external_id <> ''::text);
CREATE INDEX clients_lastname ON clients (account_id, lastname, id);
CREATE INDEX clients_of_owner ON clients (account_id, owner_id) WHERE (owner_id <> ''::text);
CREATE INDEX clients_owner ON clients (account_id, owner_id, created_at, id);
CREATE INDEX clients_type ON clients (account_id, type, created_at, id);

CREATE TABLE corporate_identities (
    account_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    version bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    primary_color text COLLATE "C" NOT NULL,
    secondary_color text COLLATE "C" NOT NULL,
    is_default bigint NOT NULL,
    address text COLLATE "C" NOT NULL,
    zipcode text COLLATE "C" NOT NULL,
    city text COLLATE "C" NOT NULL,
    country text COLLATE "C" NOT NULL,
    email text COLLATE "C" NOT NULL,
    phone text COLLATE "C" NOT NULL,
    website text COLLATE "C" NOT NULL,
    company_registration_number text COLLATE "C" NOT NULL,
    vat_number text COLLATE "C" NOT NULL,
    iban text COLLATE "C" NOT NULL,
    bic text COLLATE "C" NOT NULL,
    footer text COLLATE "C" NOT NULL,
    logo_file_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id) REFERENCES accounts(id),
    CHECK ((is_default = ANY (ARRAY[(0)::bigint, (1)::bigint])))
);
CREATE INDEX corporate_identities_created ON corporate_identities (account_id, created_at, id);
CREATE UNIQUE INDEX corporate_identities_default ON corporate_identities (account_id) WHERE (is_default = 1);
CREATE INDEX corporate_identities_logo ON corporate_identities (account_id, logo_file_id);

CREATE TABLE counters (
    account_id bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    value bigint NOT NULL,
    PRIMARY KEY (account_id, name),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);

CREATE TABLE custom_fields (
    account_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    version bigint NOT NULL,
    entity text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    label text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    options text COLLATE "C" NOT NULL,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);
CREATE INDEX custom_fields_created ON custom_fields (account_id, created_at, id);
CREATE INDEX custom_fields_entity ON custom_fields (account_id, entity, created_at, id);
CREATE UNIQUE INDEX custom_fields_key ON custom_fields (account_id, entity, key);

CREATE TABLE deal_sources (
    account_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    version bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    "order" bigint NOT NULL,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);
CREATE INDEX deal_sources_order ON deal_sources (account_id, "order", id);

CREATE TABLE deals (
    account_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    version bigint NOT NULL,
    title text COLLATE "C" NOT NULL,
    amount bigint NOT NULL,
    status text COLLATE "C" NOT NULL,
    priority text COLLATE "C" NOT NULL,
    pipeline_id text COLLATE "C" NOT NULL,
    phase_id text COLLATE "C" NOT NULL,
    client_id text COLLATE "C" NOT NULL,
    expected_close_date text COLLATE "C" NOT NULL,
    assignee_id text COLLATE "C" NOT NULL DEFAULT ''::text,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);
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
    account_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    mail_id text COLLATE "C" NOT NULL,
    about_id text COLLATE "C" NOT NULL,
    recipient text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    attempts bigint NOT NULL,
    reason text COLLATE "C" NOT NULL,
    maybe_twice bigint NOT NULL,
    changed_at bigint NOT NULL,
    next_attempt_at bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);
CREATE INDEX deliveries_about ON deliveries (account_id, about_id, id);
CREATE INDEX deliveries_failed ON deliveries (account_id, changed_at) WHERE (status = 'failed'::text);
CREATE INDEX deliveries_status ON deliveries (account_id, status, id);

CREATE TABLE document_pdfs (
    account_id bigint NOT NULL,
    document_id text COLLATE "C" NOT NULL,
    revision bigint NOT NULL,
    file_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (account_id, document_id, revision),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);
CREATE INDEX document_pdfs_file ON document_pdfs (account_id, file_id);

CREATE TABLE email_domains (
    account_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    version bigint NOT NULL,
    domain text COLLATE "C" NOT NULL,
    subdomain text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    host text COLLATE "C" NOT NULL DEFAULT ''::text,
    txt_name text COLLATE "C" NOT NULL DEFAULT ''::text,
    txt_value text COLLATE "C" NOT NULL DEFAULT ''::text,
    verified_by text COLLATE "C" NOT NULL DEFAULT 'nobody'::text,
    checked_at bigint NOT NULL DEFAULT 0,
    check_result text COLLATE "C" NOT NULL DEFAULT ''::text,
    missing_since bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);
CREATE INDEX email_domains_created ON email_domains (account_id, created_at, id);
CREATE UNIQUE INDEX email_domains_once ON email_domains (account_id, domain, subdomain);
CREATE INDEX email_domains_status ON email_domains (account_id, status, created_at, id);
CREATE UNIQUE INDEX email_domains_verified ON email_domains (host) WHERE (verified_by <> 'nobody'::text);

CREATE TABLE exports (
    account_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    version bigint NOT NULL,
    resource text COLLATE "C" NOT NULL,
    format text COLLATE "C" NOT NULL,
    filters text COLLATE "C" NOT NULL,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);
CREATE INDEX exports_created ON exports (account_id, created_at, id);

CREATE TABLE files (
    account_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    version bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    extension text COLLATE "C" NOT NULL,
    content_type text COLLATE "C" NOT NULL,
    size bigint NOT NULL,
    sha256 text COLLATE "C" NOT NULL,
    content text COLLATE "C" NOT NULL,
    pixels bigint NOT NULL DEFAULT 0,
    redrawn bigint NOT NULL DEFAULT 0,
    client_id text COLLATE "C" NOT NULL DEFAULT ''::text,
    origin text COLLATE "C" NOT NULL DEFAULT 'uploaded'::text,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id) REFERENCES accounts(id),
    CHECK ((redrawn = ANY (ARRAY[(0)::bigint, (1)::bigint])))
);
CREATE INDEX files_client ON files (account_id, client_id, created_at, id);
CREATE UNIQUE INDEX files_content ON files (account_id, content);
CREATE INDEX files_created ON files (account_id, created_at, id);
CREATE INDEX files_origin ON files (account_id, origin, created_at, id);

CREATE TABLE flow_definitions (
    account_id bigint NOT NULL,
    flow_id text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    definition text COLLATE "C" NOT NULL,
    author_type text COLLATE "C" NOT NULL DEFAULT 'operator'::text,
    author_id text COLLATE "C" NOT NULL DEFAULT ''::text,
    PRIMARY KEY (account_id, flow_id, version),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);

CREATE TABLE flows (
    account_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    version bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    description text COLLATE "C" NOT NULL,
    category text COLLATE "C" NOT NULL,
    trigger_type text COLLATE "C" NOT NULL,
    trigger_key text COLLATE "C" NOT NULL,
    active bigint NOT NULL,
    step_count bigint NOT NULL,
    max_attempts bigint NOT NULL,
    definition text COLLATE "C" NOT NULL,
    next_at bigint NOT NULL,
    listens_to text COLLATE "C" NOT NULL,
    conditions text COLLATE "C" NOT NULL,
    definition_version bigint NOT NULL,
    author_type text COLLATE "C" NOT NULL DEFAULT 'operator'::text,
    author_id text COLLATE "C" NOT NULL DEFAULT ''::text,
    stopped_reason text COLLATE "C" NOT NULL DEFAULT ''::text,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);
CREATE INDEX flows_active ON flows (account_id, active, created_at, id);
CREATE INDEX flows_category ON flows (account_id, category, created_at, id);
CREATE INDEX flows_created ON flows (account_id, created_at, id);
CREATE INDEX flows_heard ON flows (account_id, listens_to) WHERE (active = 1);
CREATE INDEX flows_next ON flows (account_id, next_at) WHERE (next_at > 0);
CREATE INDEX flows_trigger_type ON flows (account_id, trigger_type, created_at, id);

CREATE TABLE holds (
    account_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    until bigint NOT NULL,
    PRIMARY KEY (account_id, id)
);

CREATE TABLE import_lines (
    account_id bigint NOT NULL,
    import_id text COLLATE "C" NOT NULL,
    line bigint NOT NULL,
    part bigint NOT NULL,
    record_table text COLLATE "C" NOT NULL,
    record_id text COLLATE "C" NOT NULL,
    record_version bigint NOT NULL,
    outcome text COLLATE "C" NOT NULL,
    message text COLLATE "C" NOT NULL,
    source_id text COLLATE "C" NOT NULL DEFAULT ''::text,
    PRIMARY KEY (account_id, import_id, line, part),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);
CREATE INDEX import_lines_outcome ON import_lines (account_id, import_id, outcome, line, part);
CREATE INDEX import_lines_source ON import_lines (account_id, record_table, source_id) WHERE (source_id <> ''::text);

CREATE TABLE imports (
    account_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    version bigint NOT NULL,
    resource text COLLATE "C" NOT NULL,
    file_id text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL,
    pdfs_file_id text COLLATE "C" NOT NULL,
    format text COLLATE "C" NOT NULL,
    encoding text COLLATE "C" NOT NULL,
    separator text COLLATE "C" NOT NULL,
    decimal_sign text COLLATE "C" NOT NULL,
    date_order text COLLATE "C" NOT NULL,
    mapping text COLLATE "C" NOT NULL,
    match_by text COLLATE "C" NOT NULL,
    existing text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    failure text COLLATE "C" NOT NULL,
    columns text COLLATE "C" NOT NULL,
    lines bigint NOT NULL,
    valid_lines bigint NOT NULL,
    problem_count bigint NOT NULL,
    problems text COLLATE "C" NOT NULL,
    preview text COLLATE "C" NOT NULL,
    processed bigint NOT NULL,
    created bigint NOT NULL,
    updated bigint NOT NULL,
    skipped bigint NOT NULL,
    failed bigint NOT NULL,
    errors text COLLATE "C" NOT NULL,
    removed bigint NOT NULL,
    report text COLLATE "C" NOT NULL,
    started_at bigint NOT NULL,
    ended_at bigint NOT NULL,
    author_type text COLLATE "C" NOT NULL,
    author_id text COLLATE "C" NOT NULL,
    warnings text COLLATE "C" NOT NULL DEFAULT ''::text,
    warning_count bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);
CREATE INDEX imports_created ON imports (account_id, created_at, id);
CREATE INDEX imports_file ON imports (account_id, file_id) WHERE (file_id <> ''::text);
CREATE INDEX imports_pdfs ON imports (account_id, pdfs_file_id) WHERE (pdfs_file_id <> ''::text);
CREATE INDEX imports_status ON imports (account_id, status, created_at, id);

CREATE TABLE invoices (
    account_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    version bigint NOT NULL,
    number text COLLATE "C" NOT NULL,
    title text COLLATE "C" NOT NULL,
    invoice_date text COLLATE "C" NOT NULL,
    due_date text COLLATE "C" NOT NULL,
    subtotal bigint NOT NULL,
    vat_rate bigint NOT NULL,
    vat_amount bigint NOT NULL,
    total_excl_vat bigint NOT NULL,
    total_incl_vat bigint NOT NULL,
    client_id text COLLATE "C" NOT NULL,
    payment_status text COLLATE "C" NOT NULL,
    paid_at bigint NOT NULL,
    sent_at bigint NOT NULL,
    project_number text COLLATE "C" NOT NULL,
    is_credit bigint NOT NULL,
    external_id text COLLATE "C" NOT NULL,
    rows text COLLATE "C" NOT NULL,
    client_company_name text COLLATE "C" NOT NULL,
    client_firstname text COLLATE "C" NOT NULL,
    client_lastname text COLLATE "C" NOT NULL,
    custom_fields text COLLATE "C" NOT NULL,
    generation_mode text COLLATE "C" NOT NULL,
    finalized_at bigint NOT NULL,
    revision bigint NOT NULL,
    language text COLLATE "C" NOT NULL,
    reference text COLLATE "C" NOT NULL,
    notes text COLLATE "C" NOT NULL,
    client_email text COLLATE "C" NOT NULL,
    corporate_identity_id text COLLATE "C" NOT NULL,
    project_id text COLLATE "C" NOT NULL,
    deal_id text COLLATE "C" NOT NULL,
    credited_invoice_id text COLLATE "C" NOT NULL,
    invoice_id text COLLATE "C" NOT NULL,
    quote_id text COLLATE "C" NOT NULL,
    paid_amount bigint NOT NULL,
    credited_amount bigint NOT NULL,
    accepted_at bigint NOT NULL,
    accepted_by text COLLATE "C" NOT NULL,
    rejected_at bigint NOT NULL,
    viewed_at bigint NOT NULL,
    token text COLLATE "C" NOT NULL,
    client text COLLATE "C" NOT NULL,
    sender text COLLATE "C" NOT NULL,
    subscription_id text COLLATE "C" NOT NULL DEFAULT ''::text,
    period_start text COLLATE "C" NOT NULL DEFAULT ''::text,
    period_end text COLLATE "C" NOT NULL DEFAULT ''::text,
    open_amount bigint NOT NULL DEFAULT 0,
    collection_date text COLLATE "C" NOT NULL DEFAULT ''::text,
    collection_account text COLLATE "C" NOT NULL DEFAULT ''::text,
    supply_date text COLLATE "C" NOT NULL DEFAULT ''::text,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);
CREATE INDEX invoices_clients ON invoices (account_id, client_id, id);
CREATE INDEX invoices_collected ON invoices (account_id, id) WHERE (collection_date <> ''::text);
CREATE INDEX invoices_created ON invoices (account_id, created_at, id);
CREATE INDEX invoices_credit ON invoices (account_id, is_credit, id);
CREATE INDEX invoices_credited_invoice_id ON invoices (account_id, credited_invoice_id) WHERE (credited_invoice_id <> ''::text);
CREATE INDEX invoices_date ON invoices (account_id, invoice_date, id);
CREATE INDEX invoices_deal ON invoices (account_id, deal_id, id) WHERE (deal_id <> ''::text);
CREATE INDEX invoices_drafted ON invoices (account_id, created_at, total_incl_vat) WHERE (generation_mode = 'draft'::text);
CREATE INDEX invoices_due ON invoices (account_id, due_date, id);
CREATE INDEX invoices_excl ON invoices (account_id, total_excl_vat, id);
CREATE UNIQUE INDEX invoices_external_once ON invoices (account_id, external_id) WHERE (external_id <> ''::text);
CREATE INDEX invoices_identity ON invoices (account_id, corporate_identity_id, id);
CREATE INDEX invoices_incl ON invoices (account_id, total_incl_vat, id);
CREATE INDEX invoices_invoice_id ON invoices (account_id, invoice_id) WHERE (invoice_id <> ''::text);
CREATE INDEX invoices_late ON invoices (account_id, client_id, due_date) WHERE (payment_status = ANY (ARRAY['overdue'::text, 'partial'::text]));
CREATE UNIQUE INDEX invoices_number_once ON invoices (account_id, number);
CREATE INDEX invoices_open ON invoices (account_id, due_date, id) WHERE ((payment_status = 'open'::text) AND ((total_incl_vat - credited_amount) >= 0));
CREATE INDEX invoices_paid ON invoices (account_id, paid_at, id);
CREATE INDEX invoices_project ON invoices (account_id, project_id, id) WHERE (project_id <> ''::text);
CREATE INDEX invoices_quote_id ON invoices (account_id, quote_id) WHERE (quote_id <> ''::text);
CREATE INDEX invoices_sent ON invoices (account_id, sent_at, id);
CREATE INDEX invoices_statuses ON invoices (account_id, payment_status, id, open_amount, total_excl_vat, total_incl_vat);
CREATE INDEX invoices_subscription ON invoices (account_id, subscription_id, id) WHERE (subscription_id <> ''::text);
CREATE INDEX invoices_title ON invoices (account_id, title, id);
CREATE UNIQUE INDEX invoices_token ON invoices (token);
CREATE INDEX invoices_unpaid ON invoices (account_id, due_date, open_amount, collection_date, payment_status, id, total_excl_vat, total_incl_vat) WHERE (open_amount <> 0);
CREATE INDEX invoices_unpaid_of_client ON invoices (account_id, client_id, due_date, open_amount, collection_date) WHERE (open_amount <> 0);

CREATE TABLE jobs (
    id text COLLATE "C" NOT NULL,
    account_id bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    unique_key text COLLATE "C" NOT NULL,
    payload text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL,
    run_at bigint NOT NULL,
    attempts bigint NOT NULL,
    max_attempts bigint NOT NULL,
    claim bigint NOT NULL,
    lease_until bigint NOT NULL,
    last_error text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    lane text COLLATE "C" NOT NULL DEFAULT 'other'::text,
    node text COLLATE "C" NOT NULL DEFAULT ''::text,
    lost bigint NOT NULL DEFAULT 0,
    mark bytea NOT NULL DEFAULT '\x'::bytea,
    UNIQUE (unique_key),
    PRIMARY KEY (id),
    CHECK ((state = ANY (ARRAY['ready'::text, 'running'::text, 'done'::text, 'failed'::text, 'parked'::text])))
);
CREATE INDEX jobs_due ON jobs (state, run_at, id);
CREATE INDEX jobs_leases ON jobs (lease_until) WHERE (state = 'running'::text);
CREATE INDEX jobs_ready ON jobs (lane, run_at, account_id, kind) WHERE (state = 'ready'::text);
CREATE INDEX jobs_turns ON jobs (lane, account_id, run_at, id, kind) WHERE (state = 'ready'::text);

CREATE TABLE key_limits (
    account_id bigint NOT NULL,
    key_id text COLLATE "C" NOT NULL,
    asked text COLLATE "C" NOT NULL,
    PRIMARY KEY (account_id, key_id),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);

CREATE TABLE keys (
    id text COLLATE "C" NOT NULL,
    account_id bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    hash bytea NOT NULL,
    hint text COLLATE "C" NOT NULL,
    scopes text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    revoked_at bigint NOT NULL,
    last_used_at bigint NOT NULL,
    updated_at bigint NOT NULL DEFAULT 0,
    version bigint NOT NULL DEFAULT 0,
    allowed_networks text COLLATE "C" NOT NULL DEFAULT ''::text,
    old_secret_until bigint NOT NULL DEFAULT 0,
    UNIQUE (hash),
    PRIMARY KEY (id),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);
CREATE INDEX keys_created ON keys (account_id, created_at, id);
CREATE INDEX keys_id ON keys (account_id, id);
CREATE INDEX keys_live ON keys (account_id) WHERE (revoked_at = 0);
CREATE INDEX keys_name ON keys (account_id, name, id);

CREATE TABLE log (
    account_id bigint NOT NULL,
    seq bigint NOT NULL,
    at bigint NOT NULL,
    type text COLLATE "C" NOT NULL,
    entity_type text COLLATE "C" NOT NULL,
    entity_id text COLLATE "C" NOT NULL,
    actor text COLLATE "C" NOT NULL,
    request_id text COLLATE "C" NOT NULL,
    data text COLLATE "C" NOT NULL,
    hash bytea NOT NULL,
    data_of bigint NOT NULL DEFAULT 0,
    actor_type text COLLATE "C" NOT NULL DEFAULT ''::text,
    actor_name text COLLATE "C" NOT NULL DEFAULT ''::text,
    version bigint NOT NULL DEFAULT 1,
    salt bytea NOT NULL DEFAULT '\x'::bytea,
    digest bytea NOT NULL DEFAULT '\x'::bytea,
    PRIMARY KEY (account_id, seq),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);
CREATE INDEX log_actors ON log (account_id, actor, seq);
CREATE INDEX log_kinds ON log (account_id, entity_type, seq);
CREATE INDEX log_records ON log (account_id, entity_id, seq);
CREATE INDEX log_types ON log (account_id, type, seq);

CREATE TABLE log_heads (
    account_id bigint NOT NULL,
    uid text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    hash bytea NOT NULL,
    signature bytea NOT NULL,
    PRIMARY KEY (account_id)
);

CREATE TABLE log_verifications (
    account_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL,
    ended_at bigint NOT NULL,
    seq bigint NOT NULL,
    hash bytea NOT NULL,
    emptied_seq bigint NOT NULL,
    signed_seq bigint NOT NULL,
    foreign_seq bigint NOT NULL,
    total bigint NOT NULL,
    problem text COLLATE "C" NOT NULL,
    mark bytea NOT NULL,
    PRIMARY KEY (account_id),
    FOREIGN KEY (account_id) REFERENCES accounts(id),
    CHECK ((state = ANY (ARRAY['running'::text, 'done'::text])))
);

CREATE TABLE mail_links (
    account_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    link text COLLATE "C" NOT NULL,
    scopes text COLLATE "C" NOT NULL,
    expires_at bigint NOT NULL,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);
CREATE INDEX mail_links_expired ON mail_links (account_id, expires_at);

CREATE TABLE mail_templates (
    account_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    version bigint NOT NULL,
    send_type text COLLATE "C" NOT NULL,
    language text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    message text COLLATE "C" NOT NULL,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);
CREATE INDEX mail_templates_created ON mail_templates (account_id, created_at, id);
CREATE INDEX mail_templates_language ON mail_templates (account_id, language, created_at, id);
CREATE INDEX mail_templates_type ON mail_templates (account_id, send_type, created_at, id);
CREATE INDEX mail_templates_used ON mail_templates (account_id, send_type, language, created_at, id);

CREATE TABLE mails (
    account_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    about text COLLATE "C" NOT NULL,
    about_id text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    from_name text COLLATE "C" NOT NULL,
    from_email text COLLATE "C" NOT NULL,
    reply_to text COLLATE "C" NOT NULL,
    recipients text COLLATE "C" NOT NULL,
    copies text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    body text COLLATE "C" NOT NULL,
    html text COLLATE "C" NOT NULL,
    attach_pdf bigint NOT NULL,
    leaves_at bigint NOT NULL DEFAULT 0,
    source text COLLATE "C" NOT NULL DEFAULT ''::text,
    to_client bigint NOT NULL DEFAULT 0,
    flow_id text COLLATE "C" NOT NULL DEFAULT ''::text,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);
CREATE INDEX mails_waiting ON mails (account_id, leaves_at) WHERE (leaves_at > created_at);

CREATE TABLE mandates (
    account_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    version bigint NOT NULL,
    status text COLLATE "C" NOT NULL,
    provider text COLLATE "C" NOT NULL,
    customer_id text COLLATE "C" NOT NULL,
    mandate_id text COLLATE "C" NOT NULL,
    signed_on text COLLATE "C" NOT NULL,
    client_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);
CREATE UNIQUE INDEX mandates_client ON mandates (account_id, client_id);

CREATE TABLE marks (
    account_id bigint NOT NULL,
    cause text COLLATE "C" NOT NULL,
    record_id text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (account_id, cause, record_id),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);

CREATE TABLE nodes (
    id text COLLATE "C" NOT NULL,
    beat bigint NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE notes (
    account_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    version bigint NOT NULL,
    body text COLLATE "C" NOT NULL,
    client_id text COLLATE "C" NOT NULL,
    invoice_id text COLLATE "C" NOT NULL,
    project_id text COLLATE "C" NOT NULL,
    deal_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);
CREATE INDEX notes_client ON notes (account_id, client_id, created_at, id);
CREATE INDEX notes_created ON notes (account_id, created_at, id);
CREATE INDEX notes_deal ON notes (account_id, deal_id, created_at, id);
CREATE INDEX notes_invoice ON notes (account_id, invoice_id, created_at, id);
CREATE INDEX notes_project ON notes (account_id, project_id, created_at, id);

CREATE TABLE old_key_secrets (
    hash bytea NOT NULL,
    account_id bigint NOT NULL,
    key_id text COLLATE "C" NOT NULL,
    until bigint NOT NULL,
    signature bytea NOT NULL DEFAULT '\x'::bytea,
    PRIMARY KEY (hash),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);
CREATE INDEX old_key_secrets_key ON old_key_secrets (account_id, key_id);

CREATE TABLE one_time_tokens (
    hash bytea NOT NULL,
    account_id bigint NOT NULL,
    purpose text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    used_at bigint NOT NULL,
    new_password text COLLATE "C" NOT NULL DEFAULT ''::text,
    shown bigint NOT NULL DEFAULT 0,
    mark bytea NOT NULL DEFAULT '\x'::bytea,
    PRIMARY KEY (hash),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);
CREATE INDEX one_time_tokens_age ON one_time_tokens (account_id, expires_at);
CREATE INDEX one_time_tokens_user ON one_time_tokens (account_id, user_id);

CREATE TABLE payment_terms (
    account_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    version bigint NOT NULL,
    code text COLLATE "C" NOT NULL,
    days bigint NOT NULL,
    label text COLLATE "C" NOT NULL,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);
CREATE UNIQUE INDEX payment_terms_code ON payment_terms (account_id, code);
CREATE INDEX payment_terms_days ON payment_terms (account_id, days, id);

CREATE TABLE payments (
    account_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    version bigint NOT NULL,
    amount bigint NOT NULL,
    date text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    method text COLLATE "C" NOT NULL,
    external_id text COLLATE "C" NOT NULL,
    provider text COLLATE "C" NOT NULL,
    payment_data text COLLATE "C" NOT NULL,
    feedback_data text COLLATE "C" NOT NULL,
    invoice_id text COLLATE "C" NOT NULL,
    test bigint NOT NULL DEFAULT 0,
    checkout_url text COLLATE "C" NOT NULL DEFAULT ''::text,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);
CREATE INDEX payments_awaited ON payments (account_id, provider, status, created_at, id);
CREATE UNIQUE INDEX payments_external ON payments (account_id, invoice_id, external_id) WHERE (external_id <> ''::text);
CREATE INDEX payments_external_id ON payments (external_id) WHERE (external_id <> ''::text);
CREATE INDEX payments_invoice ON payments (account_id, invoice_id, created_at, id);
CREATE INDEX payments_waiting ON payments (account_id, provider, status, created_at, id) WHERE (status = ANY (ARRAY['created'::text, 'open'::text, 'pending'::text, 'authorized'::text]));

CREATE TABLE people (
    id text COLLATE "C" NOT NULL,
    email text COLLATE "C" NOT NULL,
    password text COLLATE "C" NOT NULL,
    password_at bigint NOT NULL,
    created_at bigint NOT NULL,
    signature bytea NOT NULL DEFAULT '\x'::bytea,
    proven bigint NOT NULL DEFAULT 1,
    UNIQUE (email),
    PRIMARY KEY (id)
);

CREATE TABLE phases (
    account_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    version bigint NOT NULL,
    pipeline_id text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    "order" bigint NOT NULL,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);
CREATE INDEX phases_order ON phases (account_id, "order", id);
CREATE INDEX phases_pipeline ON phases (account_id, pipeline_id, "order", id);

CREATE TABLE pipelines (
    account_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    version bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    active bigint NOT NULL,
    "order" bigint NOT NULL,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id) REFERENCES accounts(id),
    CHECK ((active = ANY (ARRAY[(0)::bigint, (1)::bigint])))
);
CREATE INDEX pipelines_order ON pipelines (account_id, "order", id);

CREATE TABLE preferences (
    account_id bigint NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    chosen text COLLATE "C" NOT NULL,
    PRIMARY KEY (account_id, user_id),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);

CREATE TABLE presences (
    account_id bigint NOT NULL,
    address text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    until bigint NOT NULL,
    PRIMARY KEY (account_id, address, user_id),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);
CREATE INDEX presences_until ON presences (account_id, until);

CREATE TABLE products (
    account_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    version bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    code text COLLATE "C" NOT NULL,
    price bigint NOT NULL,
    vat_rate text COLLATE "C" NOT NULL,
    unit text COLLATE "C" NOT NULL,
    active bigint NOT NULL,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id) REFERENCES accounts(id),
    CHECK ((active = ANY (ARRAY[(0)::bigint, (1)::bigint])))
);
CREATE INDEX products_active ON products (account_id, active, created_at, id);
CREATE INDEX products_code ON products (account_id, code, created_at, id);
CREATE INDEX products_code_sort ON products (account_id, code, id);
CREATE INDEX products_created ON products (account_id, created_at, id);
CREATE INDEX products_name ON products (account_id, name, id);
CREATE INDEX products_price ON products (account_id, price, id);

CREATE TABLE project_hours (
    account_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    version bigint NOT NULL,
    date text COLLATE "C" NOT NULL,
    hours bigint NOT NULL,
    minutes bigint NOT NULL,
    status text COLLATE "C" NOT NULL,
    activity_name text COLLATE "C" NOT NULL,
    project_id text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL DEFAULT ''::text,
    invoice_id text COLLATE "C" NOT NULL DEFAULT ''::text,
    rejected_reason text COLLATE "C" NOT NULL DEFAULT ''::text,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);
CREATE INDEX project_hours_all ON project_hours (account_id, created_at, id);
CREATE INDEX project_hours_billed ON project_hours (account_id, project_id, invoice_id, created_at, id);
CREATE INDEX project_hours_created ON project_hours (account_id, project_id, created_at, id);
CREATE INDEX project_hours_date ON project_hours (account_id, project_id, date, id);
CREATE INDEX project_hours_dated ON project_hours (account_id, date, created_at, id);
CREATE INDEX project_hours_dates ON project_hours (account_id, date, id);
CREATE INDEX project_hours_id ON project_hours (account_id, project_id, id);
CREATE INDEX project_hours_invoice ON project_hours (account_id, invoice_id, created_at, id);
CREATE INDEX project_hours_of_invoice ON project_hours (account_id, invoice_id) WHERE (invoice_id <> ''::text);
CREATE INDEX project_hours_status ON project_hours (account_id, project_id, status, created_at, id);
CREATE INDEX project_hours_statuses ON project_hours (account_id, status, created_at, id);
CREATE INDEX project_hours_user ON project_hours (account_id, user_id, created_at, id);

CREATE TABLE projects (
    account_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    version bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    number text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    client_id text COLLATE "C" NOT NULL,
    budget bigint NOT NULL,
    start_date text COLLATE "C" NOT NULL,
    end_date text COLLATE "C" NOT NULL,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);
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
    account_id bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    day text COLLATE "C" NOT NULL,
    value bigint NOT NULL,
    PRIMARY KEY (account_id, name),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);

CREATE TABLE quotes (
    account_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    version bigint NOT NULL,
    number text COLLATE "C" NOT NULL,
    title text COLLATE "C" NOT NULL,
    invoice_date text COLLATE "C" NOT NULL,
    due_date text COLLATE "C" NOT NULL,
    subtotal bigint NOT NULL,
    vat_rate bigint NOT NULL,
    vat_amount bigint NOT NULL,
    total_excl_vat bigint NOT NULL,
    total_incl_vat bigint NOT NULL,
    client_id text COLLATE "C" NOT NULL,
    payment_status text COLLATE "C" NOT NULL,
    paid_at bigint NOT NULL,
    sent_at bigint NOT NULL,
    project_number text COLLATE "C" NOT NULL,
    is_credit bigint NOT NULL,
    external_id text COLLATE "C" NOT NULL,
    rows text COLLATE "C" NOT NULL,
    client_company_name text COLLATE "C" NOT NULL,
    client_firstname text COLLATE "C" NOT NULL,
    client_lastname text COLLATE "C" NOT NULL,
    custom_fields text COLLATE "C" NOT NULL,
    generation_mode text COLLATE "C" NOT NULL,
    finalized_at bigint NOT NULL,
    revision bigint NOT NULL,
    language text COLLATE "C" NOT NULL,
    reference text COLLATE "C" NOT NULL,
    notes text COLLATE "C" NOT NULL,
    client_email text COLLATE "C" NOT NULL,
    corporate_identity_id text COLLATE "C" NOT NULL,
    project_id text COLLATE "C" NOT NULL,
    deal_id text COLLATE "C" NOT NULL,
    credited_invoice_id text COLLATE "C" NOT NULL,
    invoice_id text COLLATE "C" NOT NULL,
    quote_id text COLLATE "C" NOT NULL,
    paid_amount bigint NOT NULL,
    credited_amount bigint NOT NULL,
    accepted_at bigint NOT NULL,
    accepted_by text COLLATE "C" NOT NULL,
    rejected_at bigint NOT NULL,
    viewed_at bigint NOT NULL,
    token text COLLATE "C" NOT NULL,
    client text COLLATE "C" NOT NULL,
    sender text COLLATE "C" NOT NULL,
    subscription_id text COLLATE "C" NOT NULL DEFAULT ''::text,
    period_start text COLLATE "C" NOT NULL DEFAULT ''::text,
    period_end text COLLATE "C" NOT NULL DEFAULT ''::text,
    open_amount bigint NOT NULL DEFAULT 0,
    collection_date text COLLATE "C" NOT NULL DEFAULT ''::text,
    collection_account text COLLATE "C" NOT NULL DEFAULT ''::text,
    supply_date text COLLATE "C" NOT NULL DEFAULT ''::text,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);
CREATE INDEX quotes_clients ON quotes (account_id, client_id, id);
CREATE INDEX quotes_created ON quotes (account_id, created_at, id);
CREATE INDEX quotes_credit ON quotes (account_id, is_credit, id);
CREATE INDEX quotes_credited_invoice_id ON quotes (account_id, credited_invoice_id) WHERE (credited_invoice_id <> ''::text);
CREATE INDEX quotes_date ON quotes (account_id, invoice_date, id);
CREATE INDEX quotes_deal ON quotes (account_id, deal_id, id) WHERE (deal_id <> ''::text);
CREATE INDEX quotes_drafted ON quotes (account_id, created_at, total_incl_vat) WHERE (generation_mode = 'draft'::text);
CREATE INDEX quotes_due ON quotes (account_id, due_date, id);
CREATE INDEX quotes_excl ON quotes (account_id, total_excl_vat, id);
CREATE UNIQUE INDEX quotes_external_once ON quotes (account_id, external_id) WHERE (external_id <> ''::text);
CREATE INDEX quotes_identity ON quotes (account_id, corporate_identity_id, id);
CREATE INDEX quotes_incl ON quotes (account_id, total_incl_vat, id);
CREATE INDEX quotes_invoice_id ON quotes (account_id, invoice_id) WHERE (invoice_id <> ''::text);
CREATE UNIQUE INDEX quotes_number_once ON quotes (account_id, number);
CREATE INDEX quotes_open ON quotes (account_id, due_date, id) WHERE (payment_status = 'open'::text);
CREATE INDEX quotes_paid ON quotes (account_id, paid_at, id);
CREATE INDEX quotes_project ON quotes (account_id, project_id, id) WHERE (project_id <> ''::text);
CREATE INDEX quotes_quote_id ON quotes (account_id, quote_id) WHERE (quote_id <> ''::text);
CREATE INDEX quotes_sent ON quotes (account_id, sent_at, id);
CREATE INDEX quotes_statuses ON quotes (account_id, payment_status, id);
CREATE INDEX quotes_subscription ON quotes (account_id, subscription_id) WHERE (subscription_id <> ''::text);
CREATE INDEX quotes_title ON quotes (account_id, title, id);
CREATE UNIQUE INDEX quotes_token ON quotes (token);
CREATE INDEX quotes_unanswered ON quotes (account_id, sent_at, total_incl_vat) WHERE ((payment_status = 'open'::text) AND (generation_mode = 'final'::text) AND (sent_at > 0));
CREATE INDEX quotes_unpaid ON quotes (account_id, due_date) WHERE (open_amount <> 0);

CREATE TABLE record_counts (
    account_id bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    total bigint NOT NULL,
    PRIMARY KEY (account_id, kind),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);

CREATE TABLE recovery_codes (
    hash bytea NOT NULL,
    person_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (hash)
);
CREATE INDEX recovery_codes_person ON recovery_codes (person_id);

CREATE TABLE revenue_months (
    account_id bigint NOT NULL,
    month text COLLATE "C" NOT NULL,
    invoices bigint NOT NULL,
    excl_vat bigint NOT NULL,
    vat bigint NOT NULL,
    incl_vat bigint NOT NULL,
    PRIMARY KEY (account_id, month),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);

CREATE TABLE runs (
    account_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    version bigint NOT NULL,
    flow_id text COLLATE "C" NOT NULL,
    flow_name text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    trigger_type text COLLATE "C" NOT NULL,
    trigger_key text COLLATE "C" NOT NULL,
    entity_type text COLLATE "C" NOT NULL,
    attempts bigint NOT NULL,
    max_attempts bigint NOT NULL,
    actions_done bigint NOT NULL,
    error text COLLATE "C" NOT NULL,
    next_attempt_at bigint NOT NULL,
    event text COLLATE "C" NOT NULL,
    entity_id text COLLATE "C" NOT NULL,
    depth bigint NOT NULL,
    cancel_requested bigint NOT NULL,
    finished_at bigint NOT NULL,
    flow_version bigint NOT NULL,
    step bigint NOT NULL,
    failures bigint NOT NULL,
    claim bigint NOT NULL,
    lease_until bigint NOT NULL,
    due_at bigint NOT NULL,
    data text COLLATE "C" NOT NULL,
    results text COLLATE "C" NOT NULL,
    chain text COLLATE "C" NOT NULL DEFAULT ''::text,
    node text COLLATE "C" NOT NULL DEFAULT ''::text,
    lost bigint NOT NULL DEFAULT 0,
    seq bigint NOT NULL DEFAULT 0,
    reads text COLLATE "C" NOT NULL DEFAULT '*'::text,
    fired bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);
CREATE INDEX runs_chain ON runs (account_id, chain) WHERE (chain <> ''::text);
CREATE INDEX runs_created ON runs (account_id, created_at, id);
CREATE INDEX runs_due ON runs (account_id, due_at, id) WHERE (due_at > 0);
CREATE INDEX runs_finished ON runs (account_id, finished_at) WHERE (finished_at > 0);
CREATE INDEX runs_flow ON runs (account_id, flow_id, created_at, id);
CREATE INDEX runs_flow_status ON runs (account_id, flow_id, status, created_at, id);
CREATE INDEX runs_leases ON runs (account_id, lease_until) WHERE (lease_until > 0);
CREATE INDEX runs_node ON runs (node) WHERE (lease_until > 0);
CREATE INDEX runs_status ON runs (account_id, status, created_at, id);
CREATE INDEX runs_tried ON runs (updated_at) WHERE (status = ANY (ARRAY['queued'::text, 'retrying'::text]));

CREATE TABLE schema_migrations (
    number bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    PRIMARY KEY (number)
);

CREATE TABLE search_pieces (
    piece text COLLATE "C" NOT NULL,
    texts bigint NOT NULL,
    PRIMARY KEY (piece)
);

CREATE TABLE search_texts (
    number bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
    account_id bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    record_id text COLLATE "C" NOT NULL,
    folded text COLLATE "C" NOT NULL,
    pending bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (number),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);
CREATE INDEX search_index ON search_texts USING gin (folded gin_trgm_ops) WITH (gin_pending_list_limit='512');
CREATE INDEX search_texts_pending ON search_texts (account_id, number) WHERE (pending = 1);
CREATE UNIQUE INDEX search_texts_record ON search_texts (account_id, kind, record_id);

CREATE TABLE second_factors (
    account_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    person_id text COLLATE "C" NOT NULL,
    method text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    secret text COLLATE "C" NOT NULL,
    credential text COLLATE "C" NOT NULL,
    counter bigint NOT NULL,
    created_at bigint NOT NULL,
    confirmed_at bigint NOT NULL,
    used_at bigint NOT NULL,
    PRIMARY KEY (id)
);
CREATE INDEX second_factors_person ON second_factors (person_id, created_at);
CREATE INDEX second_factors_unfinished ON second_factors (created_at) WHERE (confirmed_at = 0);

CREATE TABLE secrets (
    name text COLLATE "C" NOT NULL,
    value bytea NOT NULL,
    PRIMARY KEY (name)
);

CREATE TABLE sessions (
    id text COLLATE "C" NOT NULL,
    hash bytea NOT NULL,
    account_id bigint NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    person_id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    seen_at bigint NOT NULL,
    browser text COLLATE "C" NOT NULL,
    address text COLLATE "C" NOT NULL,
    via text COLLATE "C" NOT NULL DEFAULT 'password'::text,
    confirmed_at bigint NOT NULL DEFAULT 0,
    mark bytea NOT NULL DEFAULT '\x'::bytea,
    UNIQUE (hash),
    PRIMARY KEY (id),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);
CREATE INDEX sessions_person ON sessions (person_id, created_at);
CREATE INDEX sessions_seen ON sessions (account_id, seen_at);
CREATE INDEX sessions_user ON sessions (account_id, user_id);

CREATE TABLE settings (
    account_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    version bigint NOT NULL,
    subscription_generation text COLLATE "C" NOT NULL,
    subscription_expiring_days bigint NOT NULL,
    document_draft_days bigint NOT NULL,
    quote_silent_days bigint NOT NULL,
    deal_stalled_days bigint NOT NULL,
    deal_phase_idle_days bigint NOT NULL,
    deal_no_followup_days bigint NOT NULL,
    ticket_stale_days bigint NOT NULL,
    mail_unanswered_days bigint NOT NULL,
    customer_inactive_days bigint NOT NULL,
    customer_no_followup_days bigint NOT NULL,
    provider text COLLATE "C" NOT NULL,
    mollie_key text COLLATE "C" NOT NULL,
    mollie_key_hint text COLLATE "C" NOT NULL,
    online_payments bigint NOT NULL,
    verification_amount bigint NOT NULL,
    creditor_id text COLLATE "C" NOT NULL,
    runs_kept_days bigint NOT NULL DEFAULT 90,
    payment_term bigint NOT NULL DEFAULT 14,
    quote_expiration_days bigint NOT NULL DEFAULT 30,
    outside text COLLATE "C" NOT NULL DEFAULT 'live'::text,
    two_factor text COLLATE "C" NOT NULL DEFAULT 'off'::text,
    demo bigint NOT NULL DEFAULT 0,
    mail_hours_from text COLLATE "C" NOT NULL DEFAULT '08:00'::text,
    mail_hours_until text COLLATE "C" NOT NULL DEFAULT '18:00'::text,
    mail_days text COLLATE "C" NOT NULL DEFAULT 'mon
tue
wed
thu
fri'::text,
    language text COLLATE "C" NOT NULL DEFAULT 'en'::text,
    default_vat_code text COLLATE "C" NOT NULL DEFAULT ''::text,
    strict_final bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);
CREATE UNIQUE INDEX settings_once ON settings (account_id);

CREATE TABLE sign_in_attempts (
    id text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (id)
);
CREATE INDEX sign_in_attempts_age ON sign_in_attempts (at);
CREATE INDEX sign_in_attempts_subject ON sign_in_attempts (subject, at);

CREATE TABLE sign_in_failures (
    id text COLLATE "C" NOT NULL,
    person_id text COLLATE "C" NOT NULL,
    reason text COLLATE "C" NOT NULL,
    address text COLLATE "C" NOT NULL,
    attempts bigint NOT NULL,
    last_at bigint NOT NULL,
    PRIMARY KEY (id)
);
CREATE INDEX sign_in_failures_age ON sign_in_failures (last_at);
CREATE INDEX sign_in_failures_person ON sign_in_failures (person_id, last_at);

CREATE TABLE stored_answers (
    account_id bigint NOT NULL,
    key text COLLATE "C" NOT NULL,
    fingerprint bytea NOT NULL,
    created_at bigint NOT NULL,
    status bigint NOT NULL,
    location text COLLATE "C" NOT NULL,
    etag text COLLATE "C" NOT NULL,
    body text COLLATE "C" NOT NULL,
    headers text COLLATE "C" NOT NULL DEFAULT ''::text,
    PRIMARY KEY (account_id, key),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);
CREATE INDEX stored_answers_age ON stored_answers (account_id, created_at);

CREATE TABLE subscription_periods (
    account_id bigint NOT NULL,
    subscription_id text COLLATE "C" NOT NULL,
    period_start text COLLATE "C" NOT NULL,
    period_end text COLLATE "C" NOT NULL,
    invoice_id text COLLATE "C" NOT NULL,
    made_at bigint NOT NULL,
    PRIMARY KEY (account_id, subscription_id, period_start),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);

CREATE TABLE subscriptions (
    account_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    version bigint NOT NULL,
    number text COLLATE "C" NOT NULL,
    title text COLLATE "C" NOT NULL,
    client_id text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    term text COLLATE "C" NOT NULL,
    start_date text COLLATE "C" NOT NULL,
    end_date text COLLATE "C" NOT NULL,
    last_generated text COLLATE "C" NOT NULL,
    next_generate text COLLATE "C" NOT NULL,
    schedule text COLLATE "C" NOT NULL,
    subtotal bigint NOT NULL,
    vat_rate bigint NOT NULL,
    vat_amount bigint NOT NULL,
    total_excl_vat bigint NOT NULL,
    total_incl_vat bigint NOT NULL,
    lines text COLLATE "C" NOT NULL,
    problem text COLLATE "C" NOT NULL,
    client_names text COLLATE "C" NOT NULL,
    stuck_on text COLLATE "C" NOT NULL,
    untold_end text COLLATE "C" NOT NULL,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);
CREATE INDEX subscriptions_client ON subscriptions (account_id, client_id, created_at, id);
CREATE INDEX subscriptions_created ON subscriptions (account_id, created_at, id);
CREATE INDEX subscriptions_end ON subscriptions (account_id, end_date, id);
CREATE INDEX subscriptions_next ON subscriptions (account_id, next_generate, id);
CREATE INDEX subscriptions_notify ON subscriptions (account_id, untold_end) WHERE (untold_end <> ''::text);
CREATE UNIQUE INDEX subscriptions_number ON subscriptions (account_id, number, id);
CREATE INDEX subscriptions_number_created ON subscriptions (account_id, number, created_at, id);
CREATE INDEX subscriptions_problem ON subscriptions (account_id, id) WHERE (problem <> ''::text);
CREATE INDEX subscriptions_start ON subscriptions (account_id, start_date, id);
CREATE INDEX subscriptions_status ON subscriptions (account_id, status, created_at, id);
CREATE INDEX subscriptions_status_sort ON subscriptions (account_id, status, id);
CREATE INDEX subscriptions_term ON subscriptions (account_id, term, created_at, id);
CREATE INDEX subscriptions_title ON subscriptions (account_id, title, id);
CREATE INDEX subscriptions_total ON subscriptions (account_id, total_incl_vat, id);

CREATE TABLE suppliers (
    account_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    version bigint NOT NULL,
    type text COLLATE "C" NOT NULL,
    company_name text COLLATE "C" NOT NULL,
    firstname text COLLATE "C" NOT NULL,
    lastname text COLLATE "C" NOT NULL,
    email text COLLATE "C" NOT NULL,
    phone text COLLATE "C" NOT NULL,
    address text COLLATE "C" NOT NULL,
    zipcode text COLLATE "C" NOT NULL,
    city text COLLATE "C" NOT NULL,
    country text COLLATE "C" NOT NULL,
    company_registration_number text COLLATE "C" NOT NULL,
    vat_number text COLLATE "C" NOT NULL,
    website text COLLATE "C" NOT NULL,
    iban text COLLATE "C" NOT NULL,
    bank_account_name text COLLATE "C" NOT NULL,
    bic text COLLATE "C" NOT NULL,
    payment_term bigint NOT NULL,
    quote_expiration_days bigint NOT NULL,
    default_revenue_account text COLLATE "C" NOT NULL,
    email_invoices text COLLATE "C" NOT NULL,
    email_reminders text COLLATE "C" NOT NULL,
    mail_salutation text COLLATE "C" NOT NULL,
    debtor_number text COLLATE "C" NOT NULL,
    custom_fields text COLLATE "C" NOT NULL DEFAULT ''::text,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);
CREATE INDEX suppliers_company ON suppliers (account_id, company_name, id);
CREATE INDEX suppliers_created ON suppliers (account_id, created_at, id);
CREATE INDEX suppliers_email ON suppliers (account_id, lower(email), created_at, id);
CREATE INDEX suppliers_lastname ON suppliers (account_id, lastname, id);
CREATE INDEX suppliers_type ON suppliers (account_id, type, created_at, id);

CREATE TABLE tasks (
    account_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    version bigint NOT NULL,
    title text COLLATE "C" NOT NULL,
    category text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    notes text COLLATE "C" NOT NULL,
    deadline text COLLATE "C" NOT NULL,
    duration_minutes bigint NOT NULL,
    client_id text COLLATE "C" NOT NULL,
    project_id text COLLATE "C" NOT NULL,
    deal_id text COLLATE "C" NOT NULL,
    assignee_id text COLLATE "C" NOT NULL DEFAULT ''::text,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);
CREATE INDEX tasks_assignee ON tasks (account_id, assignee_id, created_at, id);
CREATE INDEX tasks_category ON tasks (account_id, category, created_at, id);
CREATE INDEX tasks_client ON tasks (account_id, client_id, created_at, id);
CREATE INDEX tasks_created ON tasks (account_id, created_at, id);
CREATE INDEX tasks_deadline ON tasks (account_id, deadline, id);
CREATE INDEX tasks_deal ON tasks (account_id, deal_id, created_at, id);
CREATE INDEX tasks_due ON tasks (account_id, deadline, assignee_id) WHERE ((status = 'open'::text) AND (deadline <> ''::text));
CREATE INDEX tasks_of_deal ON tasks (account_id, deal_id) WHERE ((status = 'open'::text) AND (deal_id <> ''::text));
CREATE INDEX tasks_project ON tasks (account_id, project_id, created_at, id);
CREATE INDEX tasks_status ON tasks (account_id, status, created_at, id);
CREATE INDEX tasks_title ON tasks (account_id, title, id);

CREATE TABLE tax_rates (
    account_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    version bigint NOT NULL,
    code text COLLATE "C" NOT NULL,
    label text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    context text COLLATE "C" NOT NULL,
    profile text COLLATE "C" NOT NULL,
    amount bigint NOT NULL,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);
CREATE UNIQUE INDEX tax_rates_code ON tax_rates (account_id, code);
CREATE INDEX tax_rates_context ON tax_rates (account_id, context, created_at, id);
CREATE INDEX tax_rates_created ON tax_rates (account_id, created_at, id);
CREATE INDEX tax_rates_type ON tax_rates (account_id, type, created_at, id);

CREATE TABLE ticket_channels (
    account_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    version bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    email text COLLATE "C" NOT NULL,
    from_email text COLLATE "C" NOT NULL,
    from_name text COLLATE "C" NOT NULL,
    inbound_email text COLLATE "C" NOT NULL,
    forwarding_emails text COLLATE "C" NOT NULL,
    active bigint NOT NULL,
    "order" bigint NOT NULL,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id) REFERENCES accounts(id),
    CHECK ((active = ANY (ARRAY[(0)::bigint, (1)::bigint])))
);
CREATE INDEX ticket_channels_active ON ticket_channels (account_id, active, "order", id);
CREATE INDEX ticket_channels_order ON ticket_channels (account_id, "order", id);

CREATE TABLE ticket_messages (
    account_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    version bigint NOT NULL,
    direction text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    body text COLLATE "C" NOT NULL,
    author text COLLATE "C" NOT NULL,
    via_staff_save bigint NOT NULL,
    html text COLLATE "C" NOT NULL,
    "to" text COLLATE "C" NOT NULL,
    cc text COLLATE "C" NOT NULL,
    author_name text COLLATE "C" NOT NULL,
    author_email text COLLATE "C" NOT NULL,
    plain_text_body bigint NOT NULL,
    author_user_id bigint NOT NULL,
    ticket_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);
CREATE INDEX ticket_messages_ticket ON ticket_messages (account_id, ticket_id, created_at, id);

CREATE TABLE ticket_statuses (
    account_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    version bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    active bigint NOT NULL,
    "order" bigint NOT NULL,
    role text COLLATE "C" NOT NULL,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id) REFERENCES accounts(id),
    CHECK ((active = ANY (ARRAY[(0)::bigint, (1)::bigint])))
);
CREATE INDEX ticket_statuses_active ON ticket_statuses (account_id, active, "order", id);
CREATE UNIQUE INDEX ticket_statuses_name ON ticket_statuses (account_id, name);
CREATE INDEX ticket_statuses_order ON ticket_statuses (account_id, "order", id);
CREATE INDEX ticket_statuses_role ON ticket_statuses (account_id, role, "order", id);

CREATE TABLE tickets (
    account_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    version bigint NOT NULL,
    number text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    priority text COLLATE "C" NOT NULL,
    client_name text COLLATE "C" NOT NULL,
    client_email text COLLATE "C" NOT NULL,
    client_id text COLLATE "C" NOT NULL,
    project_id text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL,
    closed_at bigint NOT NULL,
    assignee_id text COLLATE "C" NOT NULL DEFAULT ''::text,
    last_message_at bigint NOT NULL DEFAULT 0,
    last_message_from text COLLATE "C" NOT NULL DEFAULT 'nobody'::text,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);
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
CREATE INDEX tickets_waiting ON tickets (account_id, assignee_id) WHERE ((closed_at = 0) AND (last_message_from <> 'staff'::text));

CREATE TABLE timers (
    account_id bigint NOT NULL,
    cause text COLLATE "C" NOT NULL,
    record_id text COLLATE "C" NOT NULL,
    since bigint NOT NULL,
    PRIMARY KEY (account_id, cause, record_id),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);
CREATE INDEX timers_due ON timers (account_id, cause, since, record_id);

CREATE TABLE users (
    account_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    version bigint NOT NULL,
    email text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    role text COLLATE "C" NOT NULL,
    language text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    person_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);
CREATE INDEX users_created ON users (account_id, created_at, id);
CREATE INDEX users_email_folded ON users (account_id, lower(email), created_at, id);
CREATE INDEX users_name ON users (account_id, name, id);
CREATE UNIQUE INDEX users_once ON users (account_id, email);
CREATE INDEX users_person ON users (person_id, created_at, id);
CREATE INDEX users_role ON users (account_id, role, created_at, id);
CREATE INDEX users_status ON users (account_id, status, created_at, id);

CREATE TABLE verifications (
    account_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    version bigint NOT NULL,
    status text COLLATE "C" NOT NULL,
    amount bigint NOT NULL,
    provider text COLLATE "C" NOT NULL,
    external_id text COLLATE "C" NOT NULL,
    payment_url text COLLATE "C" NOT NULL,
    customer_id text COLLATE "C" NOT NULL,
    canceled_previous bigint NOT NULL,
    client_id text COLLATE "C" NOT NULL,
    claim text COLLATE "C" NOT NULL,
    test bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);
CREATE INDEX verifications_client ON verifications (account_id, client_id, created_at, id);
CREATE INDEX verifications_external ON verifications (external_id) WHERE (external_id <> ''::text);
CREATE INDEX verifications_waiting ON verifications (account_id, provider, updated_at) WHERE (status = ANY (ARRAY['open'::text, 'pending'::text, 'authorized'::text]));

CREATE TABLE webhook_cursors (
    account_id bigint NOT NULL,
    endpoint_id text COLLATE "C" NOT NULL,
    sent_seq bigint NOT NULL,
    succeeded_at bigint NOT NULL,
    failing_since bigint NOT NULL,
    failures bigint NOT NULL DEFAULT 0,
    next_probe_at bigint NOT NULL DEFAULT 0,
    healed_at bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (account_id, endpoint_id),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);

CREATE TABLE webhook_deliveries (
    account_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    version bigint NOT NULL,
    endpoint_id text COLLATE "C" NOT NULL,
    event text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    status text COLLATE "C" NOT NULL,
    attempts bigint NOT NULL,
    response_status bigint NOT NULL,
    response_body text COLLATE "C" NOT NULL,
    reason text COLLATE "C" NOT NULL,
    duration_ms bigint NOT NULL,
    next_attempt_at bigint NOT NULL,
    resend_of text COLLATE "C" NOT NULL,
    happened_at bigint NOT NULL,
    due_at bigint NOT NULL,
    claim bigint NOT NULL,
    node text COLLATE "C" NOT NULL DEFAULT ''::text,
    lost bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id) REFERENCES accounts(id),
    CHECK ((status = ANY (ARRAY['queued'::text, 'sending'::text, 'retrying'::text, 'delivered'::text, 'failed'::text, 'recorded'::text])))
);
CREATE INDEX webhook_deliveries_created ON webhook_deliveries (account_id, endpoint_id, created_at, id);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (account_id, endpoint_id, due_at, id) WHERE (due_at > 0);
CREATE INDEX webhook_deliveries_event ON webhook_deliveries (account_id, endpoint_id, event, created_at, id);
CREATE INDEX webhook_deliveries_node ON webhook_deliveries (node) WHERE (status = 'sending'::text);
CREATE INDEX webhook_deliveries_old ON webhook_deliveries (account_id, created_at);
CREATE INDEX webhook_deliveries_status ON webhook_deliveries (account_id, endpoint_id, status, created_at, id);
CREATE INDEX webhook_deliveries_tried ON webhook_deliveries (updated_at) WHERE (status = ANY (ARRAY['queued'::text, 'retrying'::text]));

CREATE TABLE webhook_endpoints (
    account_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    version bigint NOT NULL,
    url text COLLATE "C" NOT NULL,
    events text COLLATE "C" NOT NULL,
    description text COLLATE "C" NOT NULL,
    active bigint NOT NULL,
    disabled_reason text COLLATE "C" NOT NULL,
    disabled_at bigint NOT NULL,
    secret text COLLATE "C" NOT NULL,
    old_secret text COLLATE "C" NOT NULL,
    old_secret_until bigint NOT NULL,
    failing_since bigint NOT NULL DEFAULT 0,
    next_probe_at bigint NOT NULL DEFAULT 0,
    author_type text COLLATE "C" NOT NULL DEFAULT 'operator'::text,
    author_id text COLLATE "C" NOT NULL DEFAULT ''::text,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id) REFERENCES accounts(id),
    CHECK ((active = ANY (ARRAY[(0)::bigint, (1)::bigint])))
);
CREATE INDEX webhook_endpoints_active ON webhook_endpoints (account_id, active, created_at, id);
CREATE INDEX webhook_endpoints_created ON webhook_endpoints (account_id, created_at, id);

CREATE TABLE workorders (
    account_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    version bigint NOT NULL,
    number text COLLATE "C" NOT NULL,
    title text COLLATE "C" NOT NULL,
    invoice_date text COLLATE "C" NOT NULL,
    due_date text COLLATE "C" NOT NULL,
    subtotal bigint NOT NULL,
    vat_rate bigint NOT NULL,
    vat_amount bigint NOT NULL,
    total_excl_vat bigint NOT NULL,
    total_incl_vat bigint NOT NULL,
    client_id text COLLATE "C" NOT NULL,
    payment_status text COLLATE "C" NOT NULL,
    paid_at bigint NOT NULL,
    sent_at bigint NOT NULL,
    project_number text COLLATE "C" NOT NULL,
    is_credit bigint NOT NULL,
    external_id text COLLATE "C" NOT NULL,
    rows text COLLATE "C" NOT NULL,
    client_company_name text COLLATE "C" NOT NULL,
    client_firstname text COLLATE "C" NOT NULL,
    client_lastname text COLLATE "C" NOT NULL,
    custom_fields text COLLATE "C" NOT NULL,
    generation_mode text COLLATE "C" NOT NULL,
    finalized_at bigint NOT NULL,
    revision bigint NOT NULL,
    language text COLLATE "C" NOT NULL,
    reference text COLLATE "C" NOT NULL,
    notes text COLLATE "C" NOT NULL,
    client_email text COLLATE "C" NOT NULL,
    corporate_identity_id text COLLATE "C" NOT NULL,
    project_id text COLLATE "C" NOT NULL,
    deal_id text COLLATE "C" NOT NULL,
    credited_invoice_id text COLLATE "C" NOT NULL,
    invoice_id text COLLATE "C" NOT NULL,
    quote_id text COLLATE "C" NOT NULL,
    paid_amount bigint NOT NULL,
    credited_amount bigint NOT NULL,
    accepted_at bigint NOT NULL,
    accepted_by text COLLATE "C" NOT NULL,
    rejected_at bigint NOT NULL,
    viewed_at bigint NOT NULL,
    token text COLLATE "C" NOT NULL,
    client text COLLATE "C" NOT NULL,
    sender text COLLATE "C" NOT NULL,
    subscription_id text COLLATE "C" NOT NULL DEFAULT ''::text,
    period_start text COLLATE "C" NOT NULL DEFAULT ''::text,
    period_end text COLLATE "C" NOT NULL DEFAULT ''::text,
    open_amount bigint NOT NULL DEFAULT 0,
    collection_date text COLLATE "C" NOT NULL DEFAULT ''::text,
    collection_account text COLLATE "C" NOT NULL DEFAULT ''::text,
    supply_date text COLLATE "C" NOT NULL DEFAULT ''::text,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id) REFERENCES accounts(id)
);
CREATE INDEX workorders_clients ON workorders (account_id, client_id, id);
CREATE INDEX workorders_created ON workorders (account_id, created_at, id);
CREATE INDEX workorders_credit ON workorders (account_id, is_credit, id);
CREATE INDEX workorders_credited_invoice_id ON workorders (account_id, credited_invoice_id) WHERE (credited_invoice_id <> ''::text);
CREATE INDEX workorders_date ON workorders (account_id, invoice_date, id);
CREATE INDEX workorders_deal ON workorders (account_id, deal_id, id) WHERE (deal_id <> ''::text);
CREATE INDEX workorders_drafted ON workorders (account_id, created_at, total_incl_vat) WHERE (generation_mode = 'draft'::text);
CREATE INDEX workorders_due ON workorders (account_id, due_date, id);
CREATE INDEX workorders_excl ON workorders (account_id, total_excl_vat, id);
CREATE UNIQUE INDEX workorders_external_once ON workorders (account_id, external_id) WHERE (external_id <> ''::text);
CREATE INDEX workorders_identity ON workorders (account_id, corporate_identity_id, id);
CREATE INDEX workorders_incl ON workorders (account_id, total_incl_vat, id);
CREATE INDEX workorders_invoice_id ON workorders (account_id, invoice_id) WHERE (invoice_id <> ''::text);
CREATE UNIQUE INDEX workorders_number_once ON workorders (account_id, number);
CREATE INDEX workorders_paid ON workorders (account_id, paid_at, id);
CREATE INDEX workorders_project ON workorders (account_id, project_id, id) WHERE (project_id <> ''::text);
CREATE INDEX workorders_quote_id ON workorders (account_id, quote_id) WHERE (quote_id <> ''::text);
CREATE INDEX workorders_sent ON workorders (account_id, sent_at, id);
CREATE INDEX workorders_statuses ON workorders (account_id, payment_status, id);
CREATE INDEX workorders_subscription ON workorders (account_id, subscription_id) WHERE (subscription_id <> ''::text);
CREATE INDEX workorders_title ON workorders (account_id, title, id);
CREATE UNIQUE INDEX workorders_token ON workorders (token);
CREATE INDEX workorders_unpaid ON workorders (account_id, due_date) WHERE (open_amount <> 0);

CREATE TABLE writer_marks (
    writer text NOT NULL,
    token text NOT NULL,
    checks bigint NOT NULL,
    written_at timestamp with time zone NOT NULL,
    PRIMARY KEY (writer)
);
