//! Who works where: a person linked to a company.

use store::{Migration, Tx};

use super::Resource;
use crate::context::Ctx;
use crate::error::{Code, Error, FieldCode, Result, wrong};
use crate::record;
use crate::record::{COMPUTED, Checks, INPUT, Link, NOWHERE, REQUIRED};

record! {
    /// A person who works at a company; both are clients.
    pub struct ClientLink = "link" in "client_links", parent: "company_id", meta: NOWHERE;

    /// The company.
    company_id: Link = COMPUTED.refers("clients");
    /// The person.
    client_id: Link = REQUIRED.create_only().refers("clients");
    /// What the person does there.
    function: String = INPUT.example("\"Administration\"");
    /// In which department.
    department: String = INPUT.example("\"Finance\"");
}

impl Checks for ClientLink {
    fn settle(&mut self, tx: &mut Tx, ctx: &Ctx, before: Option<&Self>) -> Result<()> {
        if self.client_id == self.company_id {
            return Err(Error::field("client_id", wrong(FieldCode::InvalidChoice, "cannot be the company itself")));
        }
        let linked = "SELECT count(*) FROM client_links WHERE account_id = $1 AND company_id = $2 AND client_id = $3";
        let values = [ctx.account.into(), (&self.company_id.0).into(), (&self.client_id.0).into()];
        if before.is_none() && tx.int(linked, &values)? > 0 {
            return Err(Error::new(Code::AlreadyLinked, "This person is linked to this company already."));
        }
        Ok(())
    }
}

/// Links and their routes. The contract makes them; seeing and removing them are ours.
pub fn resource() -> Resource {
    Resource::of::<ClientLink>("Client links", "relations", MIGRATIONS)
        .at("/v1/clients/{id}/links")
        .create::<ClientLink>()
        .all::<ClientLink>()
        .extension()
        .delete::<ClientLink>()
        .extension()
}

const MIGRATIONS: &[Migration] = &[Migration {
    number: 12,
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
",
}];
