//! Corporate identities: how the business shows itself on documents and in mail.

use store::{Migration, Tx};

use super::Resource;
use super::file::File;
use crate::call::{Answer, Call};
use crate::context::Ctx;
use crate::error::{Code, Error, FieldCode, Result, wrong};
use crate::record;
use crate::record::{
    ALL, Bic, CREATED, Checks, Color, Country, DETAIL, Email, Fields, INPUT, Iban, Link, REQUIRED, Record, UPDATED,
    VatNumber, Website,
};
use crate::records::{self, Work};

record! {
    /// How the business shows itself: its name, address, bank account, logo and colours.
    pub struct CorporateIdentity = "corporate_identity" in "corporate_identities",
        updated_at: ALL, meta: DETAIL.and(CREATED).and(UPDATED);

    /// The name on documents.
    name: String = REQUIRED.example("\"Installatiebedrijf Jansen\"");
    /// The colour of titles and lines.
    primary_color: Color = INPUT.default("\"#1f4e79\"").example("\"#1f4e79\"");
    /// The colour of what stands back.
    secondary_color: Color = INPUT.default("\"#5b7083\"").example("\"#5b7083\"");
    /// Whether documents have it unless they say otherwise; exactly one does.
    is_default: bool = INPUT.example("false");
    /// Street and number.
    address: String = INPUT.in_meta().example("\"Havenkade 12\"");
    /// Postal code.
    zipcode: String = INPUT.in_meta().example("\"3011 AB\"");
    /// Town.
    city: String = INPUT.in_meta().example("\"Rotterdam\"");
    /// Country, by its code of ISO 3166 or its name.
    country: Country = INPUT.in_meta().example("\"NL\"");
    /// Where answers to mail go; mail is sent from it when its domain is among the verified ones.
    email: Email = INPUT.in_meta().example("\"kantoor@jansen.example\"");
    /// Telephone.
    phone: String = INPUT.in_meta().example("\"+31 10 123 45 67\"");
    /// Web address.
    website: Website = INPUT.in_meta().example("\"https://jansen.example\"");
    /// Number in the register of companies.
    company_registration_number: String = INPUT.in_meta().example("\"12345678\"");
    /// VAT number.
    vat_number: VatNumber = INPUT.in_meta().example("\"BE0403019261\"");
    /// IBAN that clients pay to.
    iban: Iban = INPUT.in_meta().example("\"NL91ABNA0417164300\"");
    /// BIC of the bank.
    bic: Bic = INPUT.in_meta().example("\"ABNANL2A\"");
    /// Words at the foot of every document.
    footer: String = INPUT.at_most(1000).in_meta().example("\"Member of the guild of installers\"");
    /// The file with the logo: PNG or JPEG, of 25 million pixels at most.
    logo_file_id: Link = INPUT.nullable().in_meta().refers("files");
}

impl Checks for CorporateIdentity {
    fn settle(&mut self, tx: &mut Tx, ctx: &Ctx, before: Option<&Self>) -> Result<()> {
        if before.is_some_and(|before| before.is_default) && !self.is_default {
            let message = "cannot be taken away; make another identity the default";
            return Err(Error::field("is_default", wrong(FieldCode::InvalidChoice, message)));
        }
        if !self.logo_file_id.0.is_empty() && before.is_none_or(|before| before.logo_file_id != self.logo_file_id) {
            check_logo(&records::find(tx, ctx, &self.logo_file_id.0)?)?;
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

/// The most pixels a logo may have. All of them are in memory whenever a document is printed.
const MAX_PIXELS: i64 = 25_000_000;

fn check_logo(file: &File) -> Result<()> {
    let refuse = |code, message| Err(Error::field("logo_file_id", wrong(code, message)));
    match file.pixels {
        _ if !matches!(file.content_type.as_str(), "image/png" | "image/jpeg") => {
            refuse(FieldCode::InvalidChoice, "must be a PNG or JPEG picture")
        }
        0 => refuse(FieldCode::InvalidChoice, "must be a picture that says how large it is; upload another one"),
        pixels if pixels > MAX_PIXELS => refuse(FieldCode::OutOfRange, "may have 25 million pixels at most"),
        _ => Ok(()),
    }
}

/// Identities and their routes; the contract reads them.
pub fn resource() -> Resource {
    Resource::of::<CorporateIdentity>("Corporate identities", "settings", MIGRATIONS)
        .all::<CorporateIdentity>()
        .managed::<CorporateIdentity>()
        .delete_with(delete)
        .extension()
}

/// One, with the name of the account.
pub fn defaults(tx: &mut Tx, ctx: &Ctx, name: &str) -> Result<()> {
    let mut identity = CorporateIdentity { name: name.into(), is_default: true, ..CorporateIdentity::blank()? };
    records::add(tx, ctx, &mut identity)
}

/// The identity that documents have unless they say otherwise.
pub fn default_one(tx: &mut Tx, ctx: &Ctx) -> Result<CorporateIdentity> {
    let sql = format!("{} WHERE account_id = $1 AND is_default = 1", CorporateIdentity::sql().select);
    let found = tx.first(&sql, &[ctx.account.into()], CorporateIdentity::from_row)?;
    found.ok_or_else(|| Error::internal("the account has no default identity"))
}

fn delete(call: Call) -> Result<Work> {
    Ok(Box::new(move |tx, ctx| {
        let identity: CorporateIdentity = records::find_to_change(tx, ctx, &call)?;
        if identity.is_default {
            return Err(Error::new(Code::InUse, "This is the default identity; make another one the default first."));
        }
        if !records::loosen(tx, ctx, &identity)? {
            return Ok(records::once_more(delete, &call));
        }
        records::remove(tx, ctx, &identity)?;
        Ok(Answer::empty())
    }))
}

const MIGRATIONS: &[Migration] = &[Migration {
    number: 29,
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
