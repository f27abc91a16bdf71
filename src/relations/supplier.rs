//! Suppliers.

use engine::context::Ctx;
use engine::error::{FieldErrors, Result};
use engine::record;
use engine::record::{Bic, COMPUTED, Country, Custom, Days, Email, Emails, INPUT, Iban, Model, VatNumber, Website};
use engine::resource::Resource;
use store::{Migration, Tx};

use super::client::{ContactType, check_name, settle_terms};
use crate::settings::custom_field::{self, Entity};

record! {
    /// A business that you buy from. It has the fields of a client; some of them are set by the server.
    pub struct Supplier = "supplier" in "suppliers";

    /// `company` or `private`.
    r#type: ContactType = INPUT.filter_as("contact_type").example("\"company\"");
    /// The company name; required for a company.
    company_name: String = INPUT.search().sort().example("\"Molen De Adelaar\"");
    /// First name of the person, or of the contact person at the company.
    firstname: String = INPUT.search().example("\"Jan\"");
    /// Last name.
    lastname: String = INPUT.search().sort().example("\"Smit\"");
    /// E-mail address.
    email: Email = INPUT.search().example("\"jan@molen-de-adelaar.example\"");
    /// Telephone number, stored as sent.
    phone: String = INPUT.example("\"+31 30 123 45 67\"");
    /// Street and number.
    address: String = COMPUTED;
    /// Postal code.
    zipcode: String = COMPUTED;
    /// City.
    city: String = INPUT.example("\"Utrecht\"");
    /// Country, as an ISO 3166 code or a name; stored as the code.
    country: Country = INPUT.example("\"NL\"");
    /// Number in the trade register.
    company_registration_number: String = COMPUTED;
    /// VAT number.
    vat_number: VatNumber = COMPUTED;
    /// URL of the website.
    website: Website = COMPUTED;
    /// IBAN.
    iban: Iban = COMPUTED;
    /// Name of the account holder.
    bank_account_name: String = COMPUTED;
    /// BIC of the bank.
    bic: Bic = COMPUTED;
    /// Payment term of invoices, in days.
    payment_term: Days = COMPUTED;
    /// Days that a quote is valid.
    quote_expiration_days: Days = COMPUTED;
    /// Label of the revenue account.
    default_revenue_account: String = COMPUTED;
    /// E-mail addresses for invoices.
    email_invoices: Emails = COMPUTED;
    /// E-mail addresses for reminders.
    email_reminders: Emails = COMPUTED;
    /// Salutation of mail to this client.
    mail_salutation: String = COMPUTED;
    /// Debtor number.
    debtor_number: String = COMPUTED;
    /// Values of custom fields, by key; null removes a value.
    custom_fields: Custom = INPUT.example("{}");
}

impl Model for Supplier {
    fn check(&self, faults: &mut FieldErrors) {
        check_name(self.r#type, &self.company_name, &self.firstname, &self.lastname, faults);
    }

    fn before_save(&mut self, tx: &mut Tx, ctx: &Ctx, before: Option<&Self>) -> Result<()> {
        settle_terms(tx, ctx, &mut self.payment_term, &mut self.quote_expiration_days)?;
        let before = before.map(|before| &before.custom_fields);
        custom_field::settle(tx, ctx, Entity::Supplier, &mut self.custom_fields, before)
    }
}

/// The resource of suppliers.
pub fn resource() -> Resource {
    Resource::of::<Supplier>("Suppliers", "relations", MIGRATIONS)
        // A migration gave them defaults.
        .changes_silently(&["payment_term", "quote_expiration_days"])
        .list::<Supplier>()
        .create::<Supplier>()
        .get::<Supplier>()
        .patch::<Supplier>()
}

const MIGRATIONS: &[Migration] = &[CREATE, CUSTOM_FIELDS];

const CUSTOM_FIELDS: Migration = Migration {
    number: 31,
    name: "custom fields of suppliers",
    sql: "ALTER TABLE suppliers ADD COLUMN custom_fields TEXT NOT NULL DEFAULT '';",
};

const CREATE: Migration = Migration {
    number: 11,
    name: "suppliers",
    sql: "
CREATE TABLE suppliers (
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
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX suppliers_created ON suppliers (account_id, created_at, id);
CREATE INDEX suppliers_type ON suppliers (account_id, type, created_at, id);
CREATE INDEX suppliers_company ON suppliers (account_id, company_name, id);
CREATE INDEX suppliers_lastname ON suppliers (account_id, lastname, id);
",
};
