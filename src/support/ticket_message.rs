//! The messages of tickets.

use engine::call::{Answer, Call};
use engine::context::Ctx;
use engine::error::{Error, FieldCode, FieldErrors, Result, Violation, violation};
use engine::input::Input;
use engine::json::{Json, write_key, write_text};
use engine::record::{ALL, COMPUTED, CREATED, Email, Emails, Html, INPUT, Kind, Link, Model, NOWHERE, Rules};
use engine::records::{self, Work};
use engine::resource::{Method, RequestBody, Resource, Returns, Verb};
use engine::timers::{self, Timer};
use engine::who::ActorType;
use engine::{choice, input, record};
use serde_json::{Value as Schema, json};
use store::{Migration, Row, Tx, Value};

use super::ticket::{self, Speaker, Ticket};
use super::ticket_channel::TicketChannel;
use super::ticket_status::{self, Role};
use crate::mail::outcome::{Follower, Rewritten};
use crate::mail::{self, IMPORT, Letter};
use crate::people::user::User;
use crate::relations::client::{self, Client};
use crate::settings::Settings;

choice! {
    /// The direction of a message.
    pub enum Direction {
        /// From the client.
        In = "in",
        /// To the client, or between colleagues.
        #[default]
        Out = "out",
    }
}

choice! {
    /// The type of a message.
    pub enum MessageType {
        /// Mailed to the client.
        #[default]
        Reply = "reply",
        /// An internal note, which is never mailed.
        Note = "note",
    }
}

/// The author of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Author {
    /// The name.
    pub name: String,
    /// The address.
    pub email: String,
}

/// Separates the two in the column; a name cannot contain it.
const SEPARATOR: char = '\n';

impl Kind for Author {
    const NAME: &'static str = "data";

    fn to_db(&self) -> Value<'_> {
        format!("{}{SEPARATOR}{}", self.name, self.email).into()
    }

    fn from_db(row: &Row, column: usize) -> store::Result<Self> {
        let Some((name, email)) = row.text(column)?.split_once(SEPARATOR) else {
            return Err(store::Error::unreadable("it is not a name and an address on two lines"));
        };
        Ok(Author { name: name.to_string(), email: email.to_string() })
    }

    fn from_json(_: &Json, _: &Rules) -> Result<Self, Violation> {
        Err(violation(FieldCode::ReadOnly, "is set with author_name and author_email"))
    }

    fn to_json(&self, _: &Rules, out: &mut Vec<u8>) {
        out.push(b'{');
        write_key(out, "name");
        write_text(out, &self.name);
        write_key(out, "email");
        write_text(out, &self.email);
        out.push(b'}');
    }

    fn schema(_: &Rules) -> Schema {
        json!({"type": "object", "properties": {"name": {"type": "string"}, "email": {"type": "string"}}})
    }
}

record! {
    /// A message of a ticket: a reply, which is mailed, or an internal note.
    pub struct TicketMessage = "message" in "ticket_messages", parent: "ticket_id", created_at: ALL;

    /// `in` for messages from the client, `out` for messages to the client.
    direction: Direction = COMPUTED;
    /// `reply`, which is mailed, or `note`, which is internal.
    r#type: MessageType = INPUT.example("\"reply\"");
    /// The message as plain text; derived from `html` if only that is sent.
    body: String = INPUT.long().example("\"We come by tomorrow at nine.\"");
    /// The author.
    author: Author = COMPUTED;
    /// Whether the message was written by your staff.
    via_staff_save: bool = COMPUTED.default("true").shown(CREATED);
    /// The message as HTML; it is sanitized.
    html: Html = INPUT.long().in_meta().example("\"<p>We come by tomorrow at <b>nine</b>.</p>\"");
    /// Recipients of a reply, separated by commas. Defaults to the address of the ticket, else that of its client.
    to: Emails = INPUT.at_most(4096).in_meta().example("\"anna@bakkerij-de-ster.example\"");
    /// Recipients of a copy, separated by commas.
    cc: Emails = INPUT.at_most(4096).in_meta().example("\"\"");
    /// Name of the author.
    author_name: String = INPUT.unbroken().shown(NOWHERE).example("\"Support\"");
    /// E-mail address of the author.
    author_email: Email = INPUT.shown(NOWHERE).example("\"support@example.com\"");
    /// Whether `body` is plain text even if `html` is sent too.
    plain_text_body: bool = INPUT.shown(NOWHERE).example("true");
    /// The author's number in your own administration.
    author_user_id: i64 = INPUT.shown(NOWHERE).example("7");
    /// The ticket.
    ticket_id: Link = COMPUTED.refers("tickets").in_meta();
}

impl Model for TicketMessage {
    fn check(&self, faults: &mut FieldErrors) {
        if !faults.has("html") && self.body.trim().is_empty() && self.html.is_empty() {
            faults.add("body", violation(FieldCode::Required, "or html is required"));
        }
        if self.author_name.contains(['\n', '\r']) {
            faults.add("author_name", violation(FieldCode::InvalidCharacters, "must be one line"));
        }
    }

    fn before_save(&mut self, tx: &mut Tx, ctx: &Ctx, _: Option<&Self>) -> Result<()> {
        self.author = Author { name: self.author_name.clone(), email: self.author_email.0.clone() };
        if self.body.trim().is_empty() {
            self.body = self.html.words();
        }
        if self.direction == Direction::Out && self.r#type == MessageType::Reply && self.to.0.is_empty() {
            let ticket: Ticket = records::find(tx, ctx, &self.ticket_id.0)?;
            self.to = Emails(address_of(tx, ctx, &ticket)?);
        }
        // A recipient in both gets one mail.
        self.cc = self.cc.without(&self.to);
        Ok(())
    }

    fn after_save(&self, tx: &mut Tx, ctx: &Ctx, _: Option<&Self>) -> Result<()> {
        let ticket: Ticket = records::find(tx, ctx, &self.ticket_id.0)?;
        answered(tx, ctx, &ticket, self)
    }
}

/// Returns the address for replies to a ticket: its own, or that of its client; empty if neither has one.
fn address_of(tx: &mut Tx, ctx: &Ctx, ticket: &Ticket) -> Result<String> {
    if !ticket.client_email.0.is_empty() || ticket.client_id.0.is_empty() {
        return Ok(ticket.client_email.0.clone());
    }
    let client = records::known::<Client>(tx, ctx, &ticket.client_id.0)?;
    Ok(client.email.0.clone())
}

/// Updates the status of a ticket: a reply moves it on from new, and a message from the client reopens it.
fn answered(tx: &mut Tx, ctx: &Ctx, before: &Ticket, message: &TicketMessage) -> Result<()> {
    let mut ticket = before.clone();
    let role = ticket_status::named(tx, ctx, &ticket.status)?.map(|status| status.role);
    let opens = match (message.direction, message.r#type) {
        (_, MessageType::Note) => false,
        (Direction::Out, MessageType::Reply) => role == Some(Role::New),
        (Direction::In, MessageType::Reply) => matches!(role, Some(Role::Waiting | Role::Closed)),
    };
    // What was said in another program changes nothing now.
    if opens
        && !is_imported(ctx)
        && let Some(open) = ticket_status::first(tx, ctx, Some(Role::Open))?
    {
        ticket.status = open.name;
        records::change(tx, ctx, before, &mut ticket, "updated")?;
    }
    match (message.r#type, message.direction) {
        (MessageType::Note, _) => {}
        (MessageType::Reply, Direction::In) => ticket.heard(tx, ctx, Speaker::Client)?,
        (MessageType::Reply, Direction::Out) => ticket.heard(tx, ctx, Speaker::Staff)?,
    }
    let member = message.as_member();
    records::emit_with(tx, ctx, &ticket, "ticket.message", &member)?;
    let by_client = message.direction == Direction::In;
    if by_client {
        records::emit_with(tx, ctx, &ticket, "ticket.inbound_message", &member)?;
    }
    if message.r#type == MessageType::Reply { spoken(tx, ctx, &ticket, by_client) } else { Ok(()) }
}

/// Updates the timers of a ticket after a message to or from the client. Notes do not count.
fn spoken(tx: &mut Tx, ctx: &Ctx, ticket: &Ticket, by_client: bool) -> Result<()> {
    let (id, client) = (&ticket.base.id, &ticket.client_id.0);
    ticket::STALE.arm(tx, ctx, id, ctx.now)?;
    if !client.is_empty() {
        client::INACTIVE.arm(tx, ctx, client, ctx.now)?;
        client::NO_FOLLOWUP.arm(tx, ctx, client, ctx.now)?;
    }
    // A further message from the client does not restart the wait.
    if by_client { UNANSWERED.arm_first(tx, ctx, id) } else { UNANSWERED.disarm(tx, ctx, id) }
}

/// A message from a client had no reply for a number of days.
pub static UNANSWERED: Timer<Settings> = Timer {
    cause: "mail.unanswered",
    about: &["ticket"],
    armed_by: &[],
    since: timers::NOW,
    days: Some(|settings| settings.mail_unanswered_days),
    run_out: |tx, ctx, id| {
        let ticket: Ticket = records::find(tx, ctx, id)?;
        let waits = ticket.closed_at.0.is_none() && is_unanswered(tx, ctx, id)?;
        if waits { records::emit(tx, ctx, &ticket, UNANSWERED.cause) } else { Ok(()) }
    },
};

/// Whether the last message is from the client.
fn is_unanswered(tx: &mut Tx, ctx: &Ctx, ticket: &str) -> Result<bool> {
    let sql = "SELECT direction FROM ticket_messages WHERE account_id = $1 AND ticket_id = $2 AND type = $3
               ORDER BY created_at DESC, id DESC LIMIT 1";
    let values = [ctx.account.into(), ticket.into(), MessageType::Reply.wire().into()];
    let last = tx.first(sql, &values, |row| Ok::<_, Error>(row.text(0)?.to_string()))?;
    Ok(last.as_deref() == Some(Direction::In.wire()))
}

/// The resource of messages.
pub fn resource() -> Resource {
    Resource::of::<TicketMessage>("Ticket messages", "tickets", MIGRATIONS)
        .at("/v1/tickets/{id}/messages")
        .all::<TicketMessage>()
        .verb(Verb::Create, create)
        .get::<TicketMessage>()
        .route(Method::Post, "/inbound", "Record an inbound message from the client", inbound)
        .body::<TicketMessage>(RequestBody::Create)
        .returns(Returns::Item(CREATED))
        .extension()
}

/// Records a message from the client. Nothing is mailed.
fn inbound(call: Call) -> Result<Work> {
    let input: Input<TicketMessage> = input::create(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let mut message = input.record();
        message.direction = Direction::In;
        message.r#type = MessageType::Reply;
        message.via_staff_save = false;
        add(tx, ctx, &call, &mut message)?;
        Ok(Answer::created(ctx, &message, CREATED).with_texts("warnings", &input.warnings))
    }))
}

/// Creates a message; a reply is enqueued as mail in the same transaction. Warns when the caller may expect a mail that
/// is not sent.
fn create(call: Call) -> Result<Work> {
    let input: Input<TicketMessage> = input::create(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let mut message = input.record();
        sign(tx, ctx, &mut message)?;
        add(tx, ctx, &call, &mut message)?;
        let addressed = !message.to.0.is_empty() || !message.cc.0.is_empty();
        // A reply of an earlier program was mailed by it.
        if addressed && message.r#type == MessageType::Reply && !is_imported(ctx) {
            post(tx, ctx, &message)?;
        }
        let warning = match message.r#type {
            MessageType::Note if addressed => "A note is never mailed; 'to' and 'cc' have no effect.",
            MessageType::Reply if !addressed => {
                "The reply was not mailed: neither the ticket nor its client has an e-mail address. Send it with 'to'."
            }
            MessageType::Reply if message.to.0.is_empty() => {
                "The reply was mailed only to 'cc': neither the ticket nor its client has an e-mail address."
            }
            _ => "",
        };
        let mut warnings = input.warnings.clone();
        warnings.extend((!warning.is_empty()).then(|| warning.to_string()));
        Ok(Answer::created(ctx, &message, CREATED).with_texts("warnings", &warnings))
    }))
}

/// Whether an import creates the message.
fn is_imported(ctx: &Ctx) -> bool {
    ctx.actor.kind == ActorType::Other(IMPORT)
}

/// Names the user who writes a message as its author, unless the message names one.
fn sign(tx: &mut Tx, ctx: &Ctx, message: &mut TicketMessage) -> Result<()> {
    let is_signed = !message.author_name.is_empty() || !message.author_email.0.is_empty();
    if is_signed || ctx.actor.kind != ActorType::User {
        return Ok(());
    }
    let user: User = records::find(tx, ctx, &ctx.actor.id)?;
    message.author_name = user.name.replace(SEPARATOR, " ");
    message.author_email = user.email;
    Ok(())
}

/// Saves a message of the ticket in the path.
fn add(tx: &mut Tx, ctx: &Ctx, call: &Call, message: &mut TicketMessage) -> Result<()> {
    records::check_parent::<TicketMessage>(tx, ctx, call)?;
    message.ticket_id = Link(call.id().to_string());
    records::add(tx, ctx, message)
}

impl TicketMessage {
    /// Returns the member `message` of its ticket's events, without the HTML, which duplicates the body.
    fn as_member(&self) -> String {
        let message = json!({
            "id": self.base.id,
            "direction": self.direction.wire(),
            "type": self.r#type.wire(),
            "body": self.body,
            "author": {"name": self.author.name, "email": self.author.email},
            "created_at": self.base.created_at.to_string(),
        });
        format!("\"message\":{message}")
    }
}

/// Enqueues the mail of a reply, sent from the first active channel or else from the business.
fn post(tx: &mut Tx, ctx: &Ctx, message: &TicketMessage) -> Result<()> {
    let ticket: Ticket = records::find(tx, ctx, &message.ticket_id.0)?;
    let channels: Vec<TicketChannel> = crate::sales::pipeline::in_order(tx, ctx)?;
    let channel = channels.into_iter().find(|channel| channel.active && !channel.from_email.0.is_empty());
    let (from_name, reply_to) = match channel {
        Some(channel) => (channel.from_name, channel.from_email.0),
        None => mail::identity_of(tx, ctx, "")?,
    };
    let to_client = message.to.0.eq_ignore_ascii_case(&address_of(tx, ctx, &ticket)?);
    mail::put(
        tx,
        ctx,
        &Letter {
            about: "ticket",
            about_id: ticket.base.id.clone(),
            kind: mail::waiting::TICKET.to_string(),
            to: split(&message.to.0),
            cc: split(&message.cc.0),
            to_client,
            subject: format!("Re: {} [{}]", ticket.subject.replace(['\n', '\r'], " "), ticket.number),
            body: message.body.clone(),
            html: if message.plain_text_body { String::new() } else { message.html.0.clone() },
            attach_pdf: false,
            from_name,
            reply_to,
            ..Letter::default()
        },
    )
    .map(drop)
}

/// Tickets follow the mail of their replies.
pub(crate) const FOLLOWER: Follower = Follower {
    about: "ticket",
    unwanted: |_, _, _, _, _| Ok(None),
    accepted: |_, _, _, _| Ok(()),
    given_up: |tx, ctx, id, event, mail| {
        let ticket: Ticket = records::find(tx, ctx, id)?;
        records::emit_with(tx, ctx, &ticket, event, mail)
    },
    // A reply has no source: it stays as it is.
    rewrite: |_, _, _, _, _| Ok(Rewritten::default()),
    addresses: |tx, ctx, id, _| {
        let ticket: Ticket = records::find(tx, ctx, id)?;
        Ok(split(&address_of(tx, ctx, &ticket)?))
    },
};

fn split(emails: &str) -> Vec<String> {
    emails.split(", ").filter(|one| !one.is_empty()).map(str::to_string).collect()
}

const MIGRATIONS: &[Migration] = &[Migration {
    number: 43,
    name: "ticket messages",
    sql: "
CREATE TABLE ticket_messages (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    direction TEXT NOT NULL,
    type TEXT NOT NULL,
    body TEXT NOT NULL,
    author TEXT NOT NULL,
    via_staff_save BIGINT NOT NULL,
    html TEXT NOT NULL,
    \"to\" TEXT NOT NULL,
    cc TEXT NOT NULL,
    author_name TEXT NOT NULL,
    author_email TEXT NOT NULL,
    plain_text_body BIGINT NOT NULL,
    author_user_id BIGINT NOT NULL,
    ticket_id TEXT NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX ticket_messages_ticket ON ticket_messages (account_id, ticket_id, created_at, id);
",
}];
