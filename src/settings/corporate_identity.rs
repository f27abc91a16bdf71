//! Corporate identities: the sender of documents and mail.

mod logo;

use std::sync::Arc;

use engine::call::{Answer, Call};
use engine::context::Ctx;
use engine::error::{Code, Error, FieldCode, FieldErrors, Result, violation};
use engine::input::pending::Pending;
use engine::record;
use engine::record::{
    ALL, Bic, CREATED, Color, Country, DETAIL, Email, Fields, INPUT, Iban, Link, Model, REQUIRED, Record, UPDATED,
    VatNumber, Website,
};
use engine::records::{self, Work};
use engine::registry::check_confirmed;
use engine::resource::{Resource, Verb};
use engine::text::check_line;
use store::{Migration, Tx};

use self::logo::Named;

record! {
    /// The identity of the business on documents: name, address, bank account, logo and colours.
    pub struct CorporateIdentity = "corporate_identity" in "corporate_identities",
        updated_at: ALL, meta: DETAIL.and(CREATED).and(UPDATED);

    /// Name on documents.
    name: String = REQUIRED.one_line().names().example("\"Installatiebedrijf Jansen\"");
    /// Colour of titles and lines.
    primary_color: Color = INPUT.default("\"#1f4e79\"").example("\"#1f4e79\"");
    /// Secondary colour.
    secondary_color: Color = INPUT.default("\"#5b7083\"").example("\"#5b7083\"");
    /// Whether this is the default identity of documents; exactly one is.
    is_default: bool = INPUT.example("false");
    /// Street and number.
    address: String = INPUT.in_meta().example("\"Havenkade 12\"");
    /// Postal code.
    zipcode: String = INPUT.in_meta().example("\"3011 AB\"");
    /// City.
    city: String = INPUT.in_meta().example("\"Rotterdam\"");
    /// Country, as an ISO 3166 code or a name.
    country: Country = INPUT.in_meta().example("\"NL\"");
    /// Reply address of mail; mail is sent from it if its domain is verified.
    email: Email = INPUT.in_meta().example("\"kantoor@jansen.example\"");
    /// Telephone.
    phone: String = INPUT.in_meta().example("\"+31 10 123 45 67\"");
    /// URL of the website.
    website: Website = INPUT.in_meta().example("\"https://jansen.example\"");
    /// Number in the trade register.
    company_registration_number: String = INPUT.in_meta().example("\"12345678\"");
    /// VAT number.
    vat_number: VatNumber = INPUT.in_meta().example("\"NL000099998B57\"");
    /// IBAN for payments by clients.
    iban: Iban = INPUT.in_meta().example("\"NL91ABNA0417164300\"");
    /// BIC of the bank.
    bic: Bic = INPUT.in_meta().example("\"ABNANL2A\"");
    /// Footer text of every document.
    footer: String = INPUT.at_most(1000).in_meta().example("\"Member of the guild of installers\"");
    /// The logo file: PNG or JPEG, at most 25 million pixels. Its content is replaced by the re-encoded image.
    logo_file_id: Link = INPUT.nullable().in_meta().refers("files");
}

impl Model for CorporateIdentity {
    const MOST: i64 = 1000;

    fn check(&self, faults: &mut FieldErrors) {
        faults.take("name", check_line(&self.name));
    }

    fn before_save(&mut self, tx: &mut Tx, ctx: &Ctx, before: Option<&Self>) -> Result<()> {
        if before.is_some_and(|before| before.is_default) && !self.is_default {
            let message = "cannot be removed; make another identity the default";
            return Err(Error::field("is_default", violation(FieldCode::InvalidChoice, message)));
        }
        if self.leads_payments(tx, ctx, before)? {
            check_confirmed(tx, ctx)?;
        }
        if !self.logo_file_id.0.is_empty() && before.is_none_or(|before| before.logo_file_id != self.logo_file_id) {
            logo::must_be_redrawn(&records::find(tx, ctx, &self.logo_file_id.0)?)?;
        }
        if self.is_default && !before.is_some_and(|before| before.is_default) {
            let others = format!("{} WHERE account_id = $1 AND is_default = 1", Self::sql().select);
            for before in tx.all(&others, &[ctx.account.into()], Self::from_row)? {
                let mut other = before.clone();
                other.is_default = false;
                records::update(tx, ctx, &before, &mut other, "updated")?;
            }
        }
        Ok(())
    }
}

impl CorporateIdentity {
    /// Whether clients may pay somebody else after this change: another IBAN, also the first one, on what is sent from now on;
    /// or other words, such as a footer with an account number, on documents that name this identity.
    fn leads_payments(&self, tx: &mut Tx, ctx: &Ctx, before: Option<&Self>) -> Result<bool> {
        let Some(before) = before else { return Ok(self.is_default || !self.iban.0.is_empty()) };
        if self.iban != before.iban || (self.is_default && !before.is_default) {
            return Ok(true);
        }
        let says_the_same = CorporateIdentity {
            base: before.base.clone(),
            primary_color: before.primary_color.clone(),
            secondary_color: before.secondary_color.clone(),
            is_default: before.is_default,
            logo_file_id: before.logo_file_id.clone(),
            ..self.clone()
        } == *before;
        Ok(!says_the_same && !self.iban.0.is_empty() && records::is_named::<Self>(tx, ctx, &self.base.id)?)
    }
}

/// The resource of identities; in the contract they are read-only.
pub fn resource() -> Resource {
    Resource::of::<CorporateIdentity>("Corporate identities", "settings", MIGRATIONS)
        .guarded()
        .all::<CorporateIdentity>()
        .verb(Verb::Create, create)
        .extension()
        .get::<CorporateIdentity>()
        .extension()
        .verb(Verb::Patch, patch)
        .extension()
        .verb(Verb::Delete, delete)
        .extension()
}

/// Creates an identity with the name of the account.
pub fn defaults(tx: &mut Tx, ctx: &Ctx, name: &str) -> Result<()> {
    let mut identity = CorporateIdentity { name: name.into(), is_default: true, ..CorporateIdentity::blank()? };
    records::add(tx, ctx, &mut identity)
}

/// Returns the default identity of documents.
pub fn default_one(tx: &mut Tx, ctx: &Ctx) -> Result<Arc<CorporateIdentity>> {
    records::remembered(tx, ctx, "corporate_identities", |tx| {
        let sql = format!("{} WHERE account_id = $1 AND is_default = 1", CorporateIdentity::sql().select);
        let found = tx.first(&sql, &[ctx.account.into()], CorporateIdentity::from_row)?;
        found.map(Arc::new).ok_or_else(|| Error::internal("the account has no default identity"))
    })
}

fn create(call: Call) -> Result<Work> {
    let named = named(&Pending::create(&call)?);
    logo::redraw_first(records::create::<CorporateIdentity>, call, named, |_, _, _| Ok(true))
}

fn patch(call: Call) -> Result<Work> {
    let named = named(&Pending::patch(&call, false)?);
    let id = named.id.clone();
    logo::redraw_first(records::patch::<CorporateIdentity>, call, named, move |tx, ctx, call| {
        let before: CorporateIdentity = records::find_to_change(tx, ctx, call)?;
        // The logo that it has was re-encoded before.
        Ok(before.logo_file_id.0 != id)
    })
}

/// Returns the file that a body sets as the logo.
fn named(body: &Pending<CorporateIdentity>) -> Named {
    Named { id: body.values().logo_file_id.0.clone(), is_valid: body.is_valid() }
}

fn delete(call: Call) -> Result<Work> {
    Ok(Box::new(move |tx, ctx| {
        let identity: CorporateIdentity = records::find_to_change(tx, ctx, &call)?;
        if identity.is_default {
            return Err(Error::new(Code::InUse, "This is the default identity; make another one the default first."));
        }
        if let Some(more) = records::loosen(tx, ctx, &identity, delete, &call)? {
            return Ok(more);
        }
        records::remove(tx, ctx, &identity)?;
        Ok(Answer::empty())
    }))
}

/// Rejects the deletion of a file that is a logo.
pub fn guard_logo(tx: &mut Tx, ctx: &Ctx, file: &str) -> Result<()> {
    let logos = "SELECT count(*) FROM corporate_identities WHERE account_id = $1 AND logo_file_id = $2";
    if tx.int(logos, &[ctx.account.into(), file.into()])? == 0 {
        return Ok(());
    }
    Err(Error::new(Code::InUse, "The file is the logo of a corporate identity. Give the identity another logo first."))
}

const MIGRATIONS: &[Migration] = &[Migration {
    number: 18,
    name: "corporate identities",
    sql: "
CREATE TABLE corporate_identities (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    name TEXT NOT NULL,
    primary_color TEXT NOT NULL,
    secondary_color TEXT NOT NULL,
    is_default BIGINT NOT NULL CHECK (is_default IN (0, 1)),
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
",
}];
