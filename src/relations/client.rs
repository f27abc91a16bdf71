//! Clients: companies and private persons, and the persons who work at companies.

use std::sync::Arc;

use engine::context::Ctx;
use engine::error::{Error, FieldCode, FieldErrors, Result, violation};
use engine::json::Json;
use engine::record::{
    Bic, COMPUTED, Country, Custom, Days, Email, Emails, INPUT, Iban, Link, Model, Record, Rules, VatNumber, Website,
};
use engine::resource::{Method, RequestBody, Resource};
use engine::timers::{self, Of, Timer};
use engine::{counters, record, records};
use store::{Migration, Tx};

use super::contact::{ContactType, Examples, check_name, contact_record, create_contacts, resolve_terms};
use super::merging::{self, MergeClient, Merged};
use crate::settings::Settings;
use crate::settings::custom_field::{self, Entity};

contact_record! {
    /// A customer: a company or a private person.
    pub struct Client = "client" in "clients", events: "customer";
    examples: EXAMPLES;
    details: sent;

    /// Your own reference; unique among clients.
    external_id: String = INPUT.filter().search().unique(&[]).in_meta().example("\"\"");
    /// The user who is responsible; cleared if the user is deleted. A suspended user cannot be chosen.
    owner_id: Link = INPUT.refers("users").filter().in_meta();
}

const EXAMPLES: Examples = Examples {
    company_name: "\"Bakkerij De Ster\"",
    firstname: "\"Anna\"",
    lastname: "\"de Vries\"",
    email: "\"anna@bakkerij-de-ster.example\"",
    phone: "\"+31 20 123 45 67\"",
    city: "\"Amsterdam\"",
};

/// Callers send every detail of a client.
const fn sent(rules: Rules) -> Rules {
    rules
}

impl Client {
    /// Returns its name: that of the company, or of the person.
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
        resolve_terms(tx, ctx, &mut self.payment_term, &mut self.quote_expiration_days)?;
        if before.is_some_and(|before| before.r#type != self.r#type) {
            check_links(tx, ctx, self)?;
        }
        let before = before.map(|before| &before.custom_fields);
        custom_field::resolve(tx, ctx, Entity::Client, &mut self.custom_fields, before)?;
        Ok(())
    }

    fn body(body: Json) -> Json {
        merge_nested(body, "client")
    }
}

impl Merged for Client {
    fn kind(&self) -> ContactType {
        self.r#type
    }

    fn custom_fields(&mut self) -> &mut Custom {
        &mut self.custom_fields
    }

    fn external_id(&self) -> &str {
        &self.external_id
    }
}

/// Refuses another type of a client whose links need the one it has.
fn check_links(tx: &mut Tx, ctx: &Ctx, client: &Client) -> Result<()> {
    let side = match client.r#type {
        ContactType::Company => "client_id",
        ContactType::Private => "company_id",
    };
    let sql = format!("SELECT count(*) FROM client_links WHERE account_id = $1 AND {side} = $2");
    if tx.int(&sql, &[ctx.account.into(), (&client.base.id).into()])? == 0 {
        return Ok(());
    }
    let message = "cannot change while the client is linked; delete its links first";
    Err(Error::field("type", violation(FieldCode::InvalidChoice, message)))
}

/// Finds a client by its id or by the caller's reference.
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

/// Merges the members of the object `name` into the body, which takes precedence.
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

/// A client had no document or message for a number of days.
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

/// A client has no open task a number of days after the last contact.
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

/// The resource of clients.
pub fn resource() -> Resource {
    Resource::of::<Client>("Clients", "relations", MIGRATIONS)
        .list::<Client>()
        .create::<Client>()
        .get::<Client>()
        .patch::<Client>()
        .delete::<Client>()
        .extension()
        .route(Method::Post, "/{id}/merge", "Merge a duplicate into a client", merging::merge::<Client, MergeClient>)
        .body::<MergeClient>(RequestBody::Body)
        .extension()
}

/// `clients_of_owner` serves deleting a user: PostgreSQL would choose another index.
const MIGRATIONS: &[Migration] = &[Migration {
    number: 22,
    name: "clients",
    sql: concat!(
        create_contacts!(
            "clients",
            "    external_id TEXT NOT NULL,
    owner_id TEXT NOT NULL DEFAULT '',
"
        ),
        "CREATE INDEX clients_external ON clients (account_id, external_id, created_at, id);
CREATE UNIQUE INDEX clients_external_once ON clients (account_id, external_id) WHERE external_id <> '';
CREATE INDEX clients_owner ON clients (account_id, owner_id, created_at, id);
CREATE INDEX clients_of_owner ON clients (account_id, owner_id) WHERE owner_id <> '';
"
    ),
}];
