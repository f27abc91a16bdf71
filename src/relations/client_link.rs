//! Links between persons and the companies they work at.

use engine::context::Ctx;
use engine::error::{Error, FieldCode, FieldErrors, Result, violation};
use engine::record::{COMPUTED, INPUT, Link, Model, NOWHERE, REQUIRED};
use engine::resource::Resource;
use engine::slice::Slice;
use engine::tables::Relink;
use engine::{error_codes, record, records};
use store::{Migration, Tx};

use super::client::Client;
use super::contact::ContactType;

error_codes! {
    /// The two records are already linked.
    ALREADY_LINKED = "already_linked", Conflict, retry: false;
}

record! {
    /// Links a person to the company they work at; both are clients.
    pub struct ClientLink = "link" in "client_links", parent: "company_id", meta: NOWHERE;

    /// The company: a client of type `company`.
    company_id: Link = COMPUTED.refers("clients").owned();
    /// The person: a client of type `private`.
    client_id: Link = REQUIRED.create_only().refers("clients").owned();
    /// Position of the person at the company.
    function: String = INPUT.example("\"Administration\"");
    /// Department.
    department: String = INPUT.example("\"Finance\"");
}

impl Model for ClientLink {
    fn before_save(&mut self, tx: &mut Tx, ctx: &Ctx, before: Option<&Self>) -> Result<()> {
        let company: Client = records::find(tx, ctx, &self.company_id.0)?;
        let person: Client = records::find(tx, ctx, &self.client_id.0)?;
        let mut faults = FieldErrors::default();
        if company.r#type != ContactType::Company {
            faults.add(
                "company_id",
                violation(FieldCode::InvalidChoice, "must be a company: the client in the path is a person"),
            );
        }
        if person.r#type != ContactType::Private {
            faults.add(
                "client_id",
                violation(FieldCode::InvalidChoice, "must be a person: a client of the type private"),
            );
        }
        faults.into_result()?;
        if before.is_none() && self.is_there(tx, ctx)? {
            return Err(Error::new(ALREADY_LINKED, "This person is already linked to this company."));
        }
        Ok(())
    }
}

impl ClientLink {
    /// Whether this person and this company are linked.
    fn is_there(&self, tx: &mut Tx, ctx: &Ctx) -> Result<bool> {
        let sql = "SELECT count(*) FROM client_links WHERE account_id = $1 AND company_id = $2 AND client_id = $3";
        Ok(tx.int(sql, &[ctx.account.into(), (&self.company_id.0).into(), (&self.client_id.0).into()])? > 0)
    }
}

/// Moves the links of a client that is merged into another, unless that one has the same link.
fn relink(tx: &mut Tx, ctx: &Ctx, link: &Relink, slice: &Slice) -> Result<bool> {
    records::relink_with::<ClientLink>(tx, ctx, link, slice, |tx, ctx, before, moved| {
        if moved.is_there(tx, ctx)? {
            return records::remove(tx, ctx, before);
        }
        records::update(tx, ctx, before, moved, "updated")
    })
}

/// The resource of links. The contract defines only the create; the other routes are extensions.
pub fn resource() -> Resource {
    Resource::of::<ClientLink>("Client links", "relations", MIGRATIONS)
        .at("/v1/clients/{id}/links")
        .relinked(relink)
        .create::<ClientLink>()
        .all::<ClientLink>()
        .extension()
        .get::<ClientLink>()
        .extension()
        .delete::<ClientLink>()
        .extension()
}

const MIGRATIONS: &[Migration] = &[Migration {
    number: 24,
    name: "client links",
    sql: "
CREATE TABLE client_links (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    company_id TEXT NOT NULL,
    client_id TEXT NOT NULL,
    function TEXT NOT NULL,
    department TEXT NOT NULL,
    PRIMARY KEY (account_id, id),
    UNIQUE (account_id, company_id, client_id)
) STRICT;
CREATE INDEX client_links_company ON client_links (account_id, company_id, created_at, id);
CREATE INDEX client_links_client ON client_links (account_id, client_id);
",
}];
