//! The fields, columns and rules that clients and suppliers share.

use engine::choice;
use engine::context::Ctx;
use engine::error::{FieldCode, FieldErrors, Result, violation};
use engine::record::{Days, Kind};
use store::Tx;

use crate::settings::Settings;

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

/// Examples of the fields that callers send for both, as JSON.
pub struct Examples {
    pub company_name: &'static str,
    pub firstname: &'static str,
    pub lastname: &'static str,
    pub email: &'static str,
    pub phone: &'static str,
    pub city: &'static str,
}

/// Declares a client or a supplier: the shared fields, then its own. `details` sets the rules of the fields that callers may
/// send for only one of the two.
macro_rules! contact_record {
    (
        $(#[doc = $about:literal])+
        $vis:vis struct $name:ident = $singular:literal in $table:literal $(, $key:ident: $value:expr)*;
        examples: $examples:ident;
        details: $details:ident;
        $($own:tt)*
    ) => {
        record! {
            $(#[doc = $about])+
            $vis struct $name = $singular in $table $(, $key: $value)*;

            /// `company` or `private`.
            r#type: ContactType = INPUT.filter().filter_as("contact_type").example("\"company\"");
            /// The company name; required for a company.
            company_name: String = INPUT.names().search().sort().example($examples.company_name);
            /// First name of the person, or of the contact person at the company.
            firstname: String = INPUT.names().search().example($examples.firstname);
            /// Last name.
            lastname: String = INPUT.names().search_after().sort().example($examples.lastname);
            /// E-mail address, used for mail unless the fields for invoices and reminders are set.
            email: Email = INPUT.search().filter().example($examples.email);
            /// Telephone number, stored as sent.
            phone: String = INPUT.example($examples.phone);
            /// Street and number.
            address: String = $details(INPUT.example("\"Dorpsstraat 1\""));
            /// Postal code.
            zipcode: String = $details(INPUT.example("\"1234 AB\""));
            /// City.
            city: String = INPUT.example($examples.city);
            /// Country, as an ISO 3166 code or a name; stored as the code.
            country: Country = INPUT.example("\"NL\"");
            /// Number in the trade register.
            company_registration_number: String = $details(INPUT.example("\"12345678\""));
            /// VAT number; EU numbers are validated.
            vat_number: VatNumber = $details(INPUT.example("\"NL999990020B56\""));
            /// URL of the website.
            website: Website = $details(INPUT.example("\"https://bakkerij-de-ster.example\""));
            /// IBAN, stored without spaces.
            iban: Iban = $details(INPUT.example("\"NL91ABNA0417164300\""));
            /// Name of the account holder.
            bank_account_name: String = $details(INPUT.example("\"Bakkerij De Ster\""));
            /// BIC of the bank.
            bic: Bic = $details(INPUT.example("\"ABNANL2A\""));
            /// Payment term of invoices, in days; 0 is the same day. Defaults to the account's setting.
            payment_term: Days = $details(INPUT.between(0, 3650).resets().example("30"));
            /// Days that a quote is valid; 0 is the same day. Defaults to the account's setting.
            quote_expiration_days: Days = $details(INPUT.between(0, 3650).resets().example("30"));
            /// Label of the revenue account for its invoices.
            default_revenue_account: String = COMPUTED;
            /// E-mail addresses for invoices, separated by commas.
            email_invoices: Emails = $details(INPUT.example("\"facturen@bakkerij-de-ster.example\""));
            /// E-mail addresses for reminders, separated by commas.
            email_reminders: Emails = $details(INPUT.example("\"facturen@bakkerij-de-ster.example\""));
            /// Salutation of mail to this client.
            mail_salutation: String = $details(INPUT.example("\"Beste Anna\""));
            /// Debtor number; clients get it on creation.
            debtor_number: String = $details(COMPUTED.search());
            $($own)*
            /// Values of custom fields, by key; null removes a value.
            custom_fields: Custom = INPUT.example("{}");
        }
    };
}
pub(super) use contact_record;

/// The table of clients or suppliers, with the columns that only one of them has.
macro_rules! create_contacts {
    ($table:literal $(, $own:literal)?) => {
        concat!(
            "
CREATE TABLE ", $table, " (
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
    custom_fields TEXT NOT NULL DEFAULT '',
", $($own,)? "    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX ", $table, "_created ON ", $table, " (account_id, created_at, id);
CREATE INDEX ", $table, "_type ON ", $table, " (account_id, type, created_at, id);
CREATE INDEX ", $table, "_company ON ", $table, " (account_id, company_name, id);
CREATE INDEX ", $table, "_lastname ON ", $table, " (account_id, lastname, id);
CREATE INDEX ", $table, "_email ON ", $table, " (account_id, lower(email), created_at, id);
"
        )
    };
}
pub(super) use create_contacts;

/// A payment term that was not sent is that of the account.
pub fn resolve_terms(tx: &mut Tx, ctx: &Ctx, payment: &mut Days, quote: &mut Days) -> Result<()> {
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
