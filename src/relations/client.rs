//! Clients: companies and private persons, and the persons who work at companies.

use std::sync::Arc;

use engine::context::Ctx;
use engine::error::{Error, FieldCode, FieldErrors, Result, violation};
use engine::json::Json;
use engine::record::{
    Bic, COMPUTED, Country, Custom, Days, Email, Emails, INPUT, Iban, Kind, Model, Record, VatNumber, Website,
};
use engine::resource::Resource;
use engine::timers::{self, Of, Timer};
use engine::{choice, counters, record, records};
use store::{Migration, Tx};

use super::client_link;
use crate::settings::Settings;
use crate::settings::custom_field::{self, Entity};

choice! {
    /// Whether it is a business or a person.
    pub enum ContactType {
        /// A business.
        #[default]
        Company = "company",
        /// A person.
        Private = "private",
    }
}

record! {
    /// A customer: a company or a private person.
    pub struct Client = "client" in "clients", events: "customer";

    /// `company` or `private`.
    r#type: ContactType = INPUT.filter_as("contact_type").example("\"company\"");
    /// The company name; required for a company.
    company_name: String = INPUT.search().sort().example("\"Bakkerij De Ster\"");
    /// First name of the person, or of the contact person at the company.
    firstname: String = INPUT.search().example("\"Anna\"");
    /// Last name.
    lastname: String = INPUT.search().sort().example("\"de Vries\"");
    /// E-mail address, used for mail unless the fields for invoices and reminders are set.
    email: Email = INPUT.search().example("\"anna@bakkerij-de-ster.example\"");
    /// Telephone number, stored as sent.
    phone: String = INPUT.example("\"+31 20 123 45 67\"");
    /// Street and number.
    address: String = INPUT.example("\"Dorpsstraat 1\"");
    /// Postal code.
    zipcode: String = INPUT.example("\"1234 AB\"");
    /// City.
    city: String = INPUT.example("\"Amsterdam\"");
    /// Country, as an ISO 3166 code or a name; stored as the code.
    country: Country = INPUT.example("\"NL\"");
    /// Number in the trade register.
    company_registration_number: String = INPUT.example("\"12345678\"");
    /// VAT number; EU numbers are validated.
    vat_number: VatNumber = INPUT.example("\"BE0403019261\"");
    /// URL of the website.
    website: Website = INPUT.example("\"https://bakkerij-de-ster.example\"");
    /// IBAN, stored without spaces.
    iban: Iban = INPUT.example("\"NL91ABNA0417164300\"");
    /// Name of the account holder.
    bank_account_name: String = INPUT.example("\"Bakkerij De Ster\"");
    /// BIC of the bank.
    bic: Bic = INPUT.example("\"ABNANL2A\"");
    /// Payment term of invoices, in days; 0 is the same day. Defaults to the account's setting.
    payment_term: Days = INPUT.between(0, 3650).resets().example("30");
    /// Days that a quote is valid; 0 is the same day. Defaults to the account's setting.
    quote_expiration_days: Days = INPUT.between(0, 3650).resets().example("30");
    /// Label of the revenue account for its invoices.
    default_revenue_account: String = COMPUTED;
    /// E-mail addresses for invoices, separated by commas.
    email_invoices: Emails = INPUT.example("\"facturen@bakkerij-de-ster.example\"");
    /// E-mail addresses for reminders, separated by commas.
    email_reminders: Emails = INPUT.example("\"facturen@bakkerij-de-ster.example\"");
    /// Salutation of mail to this client.
    mail_salutation: String = INPUT.example("\"Beste Anna\"");
    /// Debtor number, assigned on creation.
    debtor_number: String = COMPUTED.search();
    /// Your own reference; unique among clients.
    external_id: String = INPUT.filter().search().unique(&[]).in_meta().example("\"\"");
    /// Values of custom fields, by key; null removes a value.
    custom_fields: Custom = INPUT.example("{}");
}

impl Client {
    /// What it is called: the company, or the person.
    pub fn name(&self) -> String {
        match self.company_name.as_str() {
            "" => format!("{} {}", self.firstname, self.lastname).trim().to_string(),
            company => company.to_string(),
        }
    }
}

impl Model for Client {
    fn check(&self, faults: &mut FieldErrors) {
        check_name(self.r#type, &self.company_name, &self.firstname, &self.lastname, faults);
    }

    fn before_save(&mut self, tx: &mut Tx, ctx: &Ctx, before: Option<&Self>) -> Result<()> {
        if before.is_none() {
            self.debtor_number = counters::next(tx, ctx, "debtor")?.to_string();
        }
        settle_terms(tx, ctx, &mut self.payment_term, &mut self.quote_expiration_days)?;
        if before.is_some_and(|before| before.r#type != self.r#type) {
            client_link::check_type(tx, ctx, self)?;
        }
        let before = before.map(|before| &before.custom_fields);
        custom_field::settle(tx, ctx, Entity::Client, &mut self.custom_fields, before)?;
        Ok(())
    }

    fn body(body: Json) -> Json {
        merge_nested(body, "client")
    }
}

/// The client that is meant, by its id or by the caller's reference.
pub fn named(tx: &mut Tx, ctx: &Ctx, id: &str, external_id: &str) -> Result<Option<Arc<Client>>> {
    let by_id = match id {
        "" => None,
        id => Some(records::known::<Client>(tx, ctx, id)?),
    };
    if external_id.is_empty() {
        return Ok(by_id);
    }
    let sql = format!("{} WHERE account_id = $1 AND external_id = $2", Client::sql().select);
    let found = tx.first(&sql, &[ctx.account.into(), external_id.into()], Client::from_row)?;
    let Some(found) = found else {
        let message = "is not the external_id of any client";
        return Err(Error::field("client_external_id", violation(FieldCode::ReferenceNotFound, message)));
    };
    if by_id.is_some_and(|by_id| by_id.base.id != found.base.id) {
        let message = "belongs to a different client than client_id";
        return Err(Error::field("client_external_id", violation(FieldCode::InvalidChoice, message)));
    }
    Ok(Some(Arc::new(found)))
}

/// Terms that nobody gave are those of the account.
pub fn settle_terms(tx: &mut Tx, ctx: &Ctx, payment: &mut Days, quote: &mut Days) -> Result<()> {
    if payment.is_empty() || quote.is_empty() {
        let settings = Settings::of(tx, ctx)?;
        for (own, usual) in [(payment, settings.payment_term), (quote, settings.quote_expiration_days)] {
            *own = if own.is_empty() { Days(usual) } else { *own };
        }
    }
    Ok(())
}

/// A company needs the name of the company, a person a name.
pub fn check_name(kind: ContactType, company: &str, first: &str, last: &str, faults: &mut FieldErrors) {
    let empty = |text: &str| text.trim().is_empty();
    if faults.has("type") {
        return;
    }
    if kind == ContactType::Company && empty(company) {
        faults.add("company_name", violation(FieldCode::Required, "is required for a company"));
    }
    if kind == ContactType::Private && !faults.has("lastname") && empty(first) && empty(last) {
        faults.add("firstname", violation(FieldCode::Required, "or lastname is required for a private person"));
    }
}

/// The members of the object `name` put under those of the body; the body's own win.
pub fn merge_nested(body: Json, name: &str) -> Json {
    let Json::Object(mut members) = body else { return body };
    let Some(place) = members.iter().position(|(key, json)| key == name && matches!(json, Json::Object(_))) else {
        return Json::Object(members);
    };
    if let (_, Json::Object(nested)) = members.remove(place) {
        for (key, json) in nested {
            if !members.iter().any(|(own, _)| *own == key) {
                members.push((key, json));
            }
        }
    }
    Json::Object(members)
}

/// Nothing was heard of a client for a while.
pub static INACTIVE: Timer<Settings> = Timer {
    cause: "customer.inactive",
    about: &["client"],
    armed_by: &[
        ("customer.created", Of::Itself),
        ("ticket.created", Of::Member("client_id")),
        ("invoice.created", Of::Member("client_id")),
        ("invoice.credit_created", Of::Member("client_id")),
        ("quote.created", Of::Member("client_id")),
        ("workorder.created", Of::Member("client_id")),
    ],
    since: timers::NOW,
    days: Some(|settings| settings.customer_inactive_days),
    run_out: |tx, ctx, id| {
        let client: Client = records::find(tx, ctx, id)?;
        records::emit(tx, ctx, &client, INACTIVE.cause)
    },
};

/// Nobody has had a task for a client for a while after the last word.
pub static NO_FOLLOWUP: Timer<Settings> = Timer {
    cause: "customer.no_followup",
    about: &["client"],
    armed_by: &[("sales.document_sent", Of::Member("client_id"))],
    since: timers::NOW,
    days: Some(|settings| settings.customer_no_followup_days),
    run_out: |tx, ctx, id| {
        let client: Client = records::find(tx, ctx, id)?;
        let sql = "SELECT 1 FROM tasks WHERE account_id = $1 AND client_id = $2 AND status = 'open' LIMIT 1";
        let has_task = tx.first(sql, &[ctx.account.into(), id.into()], |_| Ok::<_, Error>(()))?.is_some();
        if has_task { Ok(()) } else { records::emit(tx, ctx, &client, NO_FOLLOWUP.cause) }
    },
};

/// Clients and their routes.
pub fn resource() -> Resource {
    Resource::of::<Client>("Clients", "relations", MIGRATIONS)
        // A migration gave them defaults.
        .changes_silently(&["payment_term", "quote_expiration_days"])
        .list::<Client>()
        .create::<Client>()
        .get::<Client>()
        .patch::<Client>()
}

const MIGRATIONS: &[Migration] = &[CREATE, CUSTOM_FIELDS];

const CUSTOM_FIELDS: Migration = Migration {
    number: 30,
    name: "custom fields of clients",
    sql: "ALTER TABLE clients ADD COLUMN custom_fields TEXT NOT NULL DEFAULT '';",
};

const CREATE: Migration = Migration {
    number: 10,
    name: "clients",
    sql: "
CREATE TABLE clients (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
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
    payment_term BIGINT NOT NULL,
    quote_expiration_days BIGINT NOT NULL,
    default_revenue_account TEXT NOT NULL,
    email_invoices TEXT NOT NULL,
    email_reminders TEXT NOT NULL,
    mail_salutation TEXT NOT NULL,
    debtor_number TEXT NOT NULL,
    external_id TEXT NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX clients_created ON clients (account_id, created_at, id);
CREATE INDEX clients_type ON clients (account_id, type, created_at, id);
CREATE INDEX clients_company ON clients (account_id, company_name, id);
CREATE INDEX clients_lastname ON clients (account_id, lastname, id);
CREATE INDEX clients_external ON clients (account_id, external_id, created_at, id);
CREATE UNIQUE INDEX clients_external_once ON clients (account_id, external_id) WHERE external_id <> '';
",
};
