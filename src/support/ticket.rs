//! Support tickets of clients.

use engine::context::Ctx;
use engine::error::{Error, FieldCode, FieldErrors, Result, Violation, violation};
use engine::input::did_you_mean;
use engine::json::Json;
use engine::record::{ALL, COMPUTED, CREATED, DETAIL, Email, INPUT, Link, Model, REQUIRED, UPDATED, When};
use engine::resource::{Resource, Verb};
use engine::timers::{self, Of, Timer};
use engine::who::ActorType;
use engine::{choice, counters, record, records};
use store::{Migration, Tx};

use super::ticket_status::{self, Role};
use crate::settings::Settings;

choice! {
    /// The priority of a ticket.
    pub enum Priority {
        /// Low.
        Low = "low",
        /// Normal.
        #[default]
        Normal = "normal",
        /// High.
        High = "high",
        /// Urgent.
        Urgent = "urgent",
    }
}

choice! {
    /// How a ticket was created.
    pub enum Source {
        /// Through the API.
        #[default]
        Api = "api",
        /// In the console.
        Console = "console",
        /// By mail.
        Mail = "mail",
    }
}

choice! {
    /// Who wrote a message.
    pub enum Speaker {
        /// There is no message.
        #[default]
        Nobody = "nobody",
        /// The client.
        Client = "client",
        /// A colleague.
        Staff = "staff",
    }
}

record! {
    /// A support request of a client, with its conversation.
    pub struct Ticket = "ticket" in "tickets",
        created_at: ALL,
        updated_at: DETAIL.and(CREATED).and(UPDATED);

    /// Number, assigned on creation.
    number: String = COMPUTED.search().sort();
    /// Title.
    subject: String = REQUIRED.names().at_most(998).search().sort().example("\"The oven stays cold\"");
    /// The name of the status; see ticket statuses.
    status: String = INPUT.kept().at_most(100).filter_many().named_in("ticket_statuses").example("\"Open\"");
    /// Priority. An unknown value is stored as `normal`.
    priority: Priority = INPUT.filter().example("\"high\"");
    /// Name of the requester.
    client_name: String = INPUT.search().example("\"Anna de Vries\"");
    /// E-mail address for replies.
    client_email: Email = INPUT.search().filter().example("\"anna@bakkerij-de-ster.example\"");
    /// The client, if known.
    client_id: Link = INPUT.nullable().refers("clients").filter();
    /// The project it belongs to.
    project_id: Link = INPUT.nullable().refers("projects").filter();
    /// How the ticket was created.
    source: Source = COMPUTED.shown(DETAIL.and(CREATED).and(UPDATED));
    /// When the ticket was closed.
    closed_at: When = COMPUTED.nullable().shown(DETAIL.and(CREATED).and(UPDATED));
    /// The user who is responsible; cleared if the user is deleted. A suspended user cannot be chosen.
    assignee_id: Link = INPUT.refers("users").filter().in_meta();
    /// When the last reply was sent or received; before the first one, when the ticket was created. Notes do not count.
    last_message_at: When = COMPUTED.sort().in_meta();
    /// Who wrote the last reply: `client`, `staff`, or `nobody` before the first one.
    last_message_from: Speaker = COMPUTED.filter_when("waiting", waiting, "Whether the ticket is open and the last reply is not yours.").in_meta();
}

/// The condition that a ticket is open and its last reply is not a colleague's.
pub(crate) fn waiting() -> String {
    format!("closed_at = 0 AND last_message_from <> '{}'", Speaker::Staff.wire())
}

impl Model for Ticket {
    fn before_save(&mut self, tx: &mut Tx, ctx: &Ctx, before: Option<&Self>) -> Result<()> {
        if before.is_none() {
            self.number = format!("T{:05}", counters::next(tx, ctx, "ticket")?);
            self.last_message_at = When(Some(ctx.now));
            if ctx.actor.kind == ActorType::User {
                self.source = Source::Console;
            }
        }
        if self.status.is_empty() {
            let first = ticket_status::first(tx, ctx, None)?;
            self.status = first.map(|status| status.name).unwrap_or_default();
        }
        if before.is_some_and(|before| before.status == self.status) {
            return Ok(());
        }
        let Some(status) = ticket_status::named(tx, ctx, &self.status)? else {
            return Err(Error::field("status", no_status(tx, ctx, &self.status)?));
        };
        self.status = status.name;
        self.closed_at = When((status.role == Role::Closed).then_some(ctx.now));
        Ok(())
    }

    fn events(&self, before: Option<&Self>) -> Vec<&'static str> {
        match before {
            Some(before) if before.status == self.status => Vec::new(),
            Some(_) if self.closed_at.0.is_some() => vec!["status_changed", "closed"],
            Some(_) => vec!["status_changed"],
            None if self.closed_at.0.is_some() => vec!["closed"],
            None => Vec::new(),
        }
    }

    fn after_save(&self, tx: &mut Tx, ctx: &Ctx, before: Option<&Self>) -> Result<()> {
        let opens = self.closed_at.0.is_none() && before.is_some_and(|before| before.closed_at.0.is_some());
        // Timers that expired while the ticket was closed start again.
        if opens { STALE.arm(tx, ctx, &self.base.id, ctx.now) } else { Ok(()) }
    }

    /// An unknown priority is stored as `normal`, whatever its JSON type.
    fn body(body: Json) -> Json {
        let Json::Object(mut members) = body else { return body };
        for (_, json) in members.iter_mut().filter(|(key, _)| key == "priority") {
            let known = matches!(json, Json::Text(word) if Priority::from_wire(word).is_some());
            if !known {
                *json = Json::Text(Priority::Normal.wire().to_string());
            }
        }
        Json::Object(members)
    }
}

/// Checks the status before the ticket is saved, so that its error is listed with all others.
fn check_status(
    tx: &mut Tx,
    ctx: &Ctx,
    ticket: &Ticket,
    before: Option<&Ticket>,
    faults: &mut FieldErrors,
) -> Result<()> {
    let status = &ticket.status;
    if status.is_empty() || before.is_some_and(|before| before.status == *status) {
        return Ok(());
    }
    if ticket_status::named(tx, ctx, status)?.is_none() {
        faults.add("status", no_status(tx, ctx, status)?);
    }
    Ok(())
}

/// Says which statuses there are.
fn no_status(tx: &mut Tx, ctx: &Ctx, status: &str) -> Result<Violation> {
    let names = ticket_status::names(tx, ctx)?;
    let hint = did_you_mean(status, names.iter().map(String::as_str));
    let message = format!("must be the name of a ticket status: {}{hint}", names.join(", "));
    Ok(violation(FieldCode::InvalidChoice, message))
}

impl Ticket {
    /// Records who wrote the last reply. The event of the message follows, and shows it; the version stays, since nobody
    /// changed the ticket itself.
    pub(super) fn heard(&mut self, tx: &mut Tx, ctx: &Ctx, from: Speaker) -> Result<()> {
        self.last_message_at = When(Some(ctx.now));
        self.last_message_from = from;
        tx.send(
            "UPDATE tickets SET last_message_at = $1, last_message_from = $2 WHERE account_id = $3 AND id = $4",
            &[ctx.now.0.into(), from.wire().into(), ctx.account.into(), (&self.base.id).into()],
        )?;
        Ok(())
    }
}

/// The ticket had no message for a number of days.
pub static STALE: Timer<Settings> = Timer {
    cause: "ticket.stale",
    about: &["ticket"],
    armed_by: &[("ticket.created", Of::Itself)],
    since: timers::NOW,
    days: Some(|settings| settings.ticket_stale_days),
    run_out: |tx, ctx, id| {
        let ticket: Ticket = records::find(tx, ctx, id)?;
        if ticket.closed_at.0.is_none() { records::emit(tx, ctx, &ticket, STALE.cause) } else { Ok(()) }
    },
};

/// The resource of tickets.
pub fn resource() -> Resource {
    Resource::of::<Ticket>("Tickets", "tickets", MIGRATIONS)
        .list::<Ticket>()
        .verb(Verb::Create, |call| records::create_checked(call, check_status))
        .get::<Ticket>()
        .verb(Verb::Patch, |call| records::patch_checked(call, check_status))
}

/// The table.
const MIGRATIONS: &[Migration] = &[Migration {
    number: 42,
    name: "tickets",
    sql: "
CREATE TABLE tickets (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    number TEXT NOT NULL,
    subject TEXT NOT NULL,
    status TEXT NOT NULL,
    priority TEXT NOT NULL,
    client_name TEXT NOT NULL,
    client_email TEXT NOT NULL,
    client_id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    source TEXT NOT NULL,
    closed_at BIGINT NOT NULL,
    assignee_id TEXT NOT NULL DEFAULT '',
    last_message_at BIGINT NOT NULL DEFAULT 0,
    last_message_from TEXT NOT NULL DEFAULT 'nobody',
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX tickets_created ON tickets (account_id, created_at, id);
CREATE INDEX tickets_number ON tickets (account_id, number, id);
CREATE INDEX tickets_subject ON tickets (account_id, subject, id);
CREATE INDEX tickets_status ON tickets (account_id, status, created_at, id);
CREATE INDEX tickets_priority ON tickets (account_id, priority, created_at, id);
CREATE INDEX tickets_client ON tickets (account_id, client_id, created_at, id);
CREATE INDEX tickets_project ON tickets (account_id, project_id, created_at, id);
CREATE INDEX tickets_assignee ON tickets (account_id, assignee_id, created_at, id);
CREATE INDEX tickets_messages ON tickets (account_id, last_message_at, id);
CREATE INDEX tickets_waiting ON tickets (account_id, assignee_id) WHERE closed_at = 0 AND last_message_from <> 'staff';
CREATE INDEX tickets_email ON tickets (account_id, lower(client_email), created_at, id);
",
}];
