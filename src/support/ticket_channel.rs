//! The mailboxes of tickets.

use engine::context::Ctx;
use engine::error::Result;
use engine::record::{Email, EmailList, INPUT, Model, REQUIRED};
use engine::resource::Resource;
use engine::{record, records};
use store::{Migration, Tx};

record! {
    /// A mailbox that receives and sends ticket messages.
    pub struct TicketChannel = "ticket_channel" in "ticket_channels", order: "order";

    /// Name.
    name: String = REQUIRED.names().example("\"Support\"");
    /// E-mail address of the mailbox.
    email: Email = INPUT.example("\"support@example.com\"");
    /// Sender address of replies.
    from_email: Email = INPUT.example("\"support@example.com\"");
    /// Sender name of replies.
    from_name: String = INPUT.example("\"Support of De Ster\"");
    /// Address that receives mail.
    inbound_email: Email = INPUT.example("\"in@example.com\"");
    /// Addresses that forward to this channel.
    forwarding_emails: EmailList = INPUT.example("[\"info@example.com\"]");
    /// Whether the channel is in use.
    active: bool = INPUT.filter().assumed("1").default("true").example("true");
    /// Sort position.
    order: i64 = INPUT.between(0, 1_000_000).resets_to("0").example("2");
}

impl Model for TicketChannel {
    const MOST: i64 = 1000;
}

/// The resource of channels; in the contract they are read-only.
pub fn resource() -> Resource {
    Resource::of::<TicketChannel>("Ticket channels", "tickets", MIGRATIONS)
        .setting()
        .all::<TicketChannel>()
        .managed::<TicketChannel>()
        .delete::<TicketChannel>()
        .extension()
}

/// Creates the default channel, without addresses.
pub fn defaults(tx: &mut Tx, ctx: &Ctx) -> Result<()> {
    let mut channel = TicketChannel { name: "Support".into(), active: true, order: 1, ..TicketChannel::default() };
    records::add(tx, ctx, &mut channel)
}

const MIGRATIONS: &[Migration] = &[Migration {
    number: 45,
    name: "ticket channels",
    sql: "
CREATE TABLE ticket_channels (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    name TEXT NOT NULL,
    email TEXT NOT NULL,
    from_email TEXT NOT NULL,
    from_name TEXT NOT NULL,
    inbound_email TEXT NOT NULL,
    forwarding_emails TEXT NOT NULL,
    active BIGINT NOT NULL CHECK (active IN (0, 1)),
    \"order\" BIGINT NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX ticket_channels_order ON ticket_channels (account_id, \"order\", id);
CREATE INDEX ticket_channels_active ON ticket_channels (account_id, active, \"order\", id);
",
}];
