//! What happens when nothing happens: a deal that stalls, a ticket that nobody answers, a client who
//! stays away. Each event arms the timers that wait for the next one; a timer that runs out looks
//! whether its cause still holds and says so, once. The cost is by what is due, not by what exists.
//!
//! A timer keeps the moment since which nothing has happened. How many days that may last is a setting,
//! which is added when one looks: who changes it changes it for what waits already.

use jiff::civil::Date;
use serde::Deserialize;
use store::{Migration, Tx};

use crate::clock::Moment;
use crate::context::Ctx;
use crate::days::{Slice, TOGETHER};
use crate::error::{Code, Error, Result};
use crate::log::Event;
use crate::marks;
use crate::record::Record;
use crate::records;
use crate::resources::client::Client;
use crate::resources::deal::{self, Deal};
use crate::resources::document::{
    Document, DocumentKind, Invoice, InvoiceKind, PaymentStatus, Quote, QuoteKind, WorkorderKind, money_due,
};
use crate::resources::settings::Settings;
use crate::resources::ticket::Ticket;

/// The table of timers.
pub const MIGRATION: Migration = Migration {
    number: 46,
    name: "timers",
    sql: "
CREATE TABLE timers (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    cause TEXT NOT NULL,
    record_id TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (account_id, cause, record_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX timers_due ON timers (account_id, at, record_id);
",
};

/// They once kept the moment at which they run out.
pub const SINCE: Migration = Migration {
    number: 55,
    name: "timers_since",
    sql: "
UPDATE timers SET at = at - 86400000 * COALESCE((SELECT CASE timers.cause
    WHEN 'deal.stalled' THEN deal_stalled_days
    WHEN 'deal.phase_idle' THEN deal_phase_idle_days
    WHEN 'deal.no_followup' THEN deal_no_followup_days
    WHEN 'ticket.stale' THEN ticket_stale_days
    WHEN 'mail.unanswered' THEN mail_unanswered_days
    WHEN 'quote.silent' THEN quote_silent_days
    WHEN 'document.draft' THEN document_draft_days
    WHEN 'customer.inactive' THEN customer_inactive_days
    WHEN 'customer.no_followup' THEN customer_no_followup_days
    ELSE 0 END FROM settings WHERE settings.account_id = timers.account_id), 0);
ALTER TABLE timers RENAME COLUMN at TO since;
DROP INDEX timers_due;
CREATE INDEX timers_due ON timers (account_id, cause, since, record_id);
",
};

/// What timers wait for.
const CAUSES: &[&str] = &[
    "deal.stalled",
    "deal.phase_idle",
    "deal.close_due",
    "deal.no_followup",
    "ticket.stale",
    "mail.unanswered",
    "quote.silent",
    "document.draft",
    "customer.inactive",
    "customer.no_followup",
    "invoice.late",
];

const DAY: i64 = 24 * 3600;

/// What timers look at in a record. The rest is passed over unread: a document may have a thousand rows.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Looked {
    client_id: Option<String>,
    expected_close_date: Option<String>,
    meta: LookedMeta,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct LookedMeta {
    deal_id: Option<String>,
    generation_mode: Option<String>,
}

/// Arms what follows from an event.
pub fn note(tx: &mut Tx, ctx: &Ctx, event: &Event) -> Result<()> {
    // Most events arm nothing, and cost nothing here.
    let wanted: &[&str] = match event.name {
        "deal.created" => &["deal.stalled", "deal.phase_idle", "deal.close_due", "deal.no_followup"],
        "deal.updated" => &["deal.stalled", "deal.close_due"],
        "deal.phase_changed" => &["deal.phase_idle"],
        "task.completed" | "task.deleted" => &["deal.no_followup"],
        "ticket.created" => &["ticket.stale", "customer.inactive"],
        "sales.document_sent" if event.entity_type == "quote" => &["quote.silent", "customer.no_followup"],
        "sales.document_sent" => &["customer.no_followup"],
        "invoice.created" | "quote.created" | "workorder.created" => &["document.draft", "customer.inactive"],
        "invoice.credit_created" => &["customer.inactive"],
        "customer.created" => &["customer.inactive"],
        _ => return Ok(()),
    };
    let data: Looked = serde_json::from_str(event.data).unwrap_or_default();
    for cause in wanted {
        let record = match *cause {
            "customer.inactive" | "customer.no_followup" if event.entity_type != "client" => data.client_id.as_deref(),
            "deal.no_followup" if event.entity_type == "task" => data.meta.deal_id.as_deref(),
            "document.draft" if data.meta.generation_mode.as_deref() == Some("final") => None,
            _ => Some(event.entity_id),
        };
        let Some(record) = record.filter(|record| !record.is_empty()) else { continue };
        let since = match *cause {
            "deal.close_due" => {
                let date = data.expected_close_date.as_deref().and_then(|date| date.parse::<Date>().ok());
                let still = date.filter(|date| *date >= ctx.now.date(&ctx.zone));
                still.map(|date| Moment::start_of(date, &ctx.zone))
            }
            _ => Some(ctx.now),
        };
        match since {
            Some(since) => arm(tx, ctx, cause, record, since)?,
            None => disarm(tx, ctx, cause, record)?,
        }
    }
    Ok(())
}

/// Somebody has written on a ticket, to the client or from there. A note is not a word to anybody.
pub fn spoken(tx: &mut Tx, ctx: &Ctx, ticket: &Ticket, by_client: bool) -> Result<()> {
    let (id, client) = (&ticket.base.id, &ticket.client_id.0);
    arm(tx, ctx, "ticket.stale", id, ctx.now)?;
    if !client.is_empty() {
        arm(tx, ctx, "customer.inactive", client, ctx.now)?;
        arm(tx, ctx, "customer.no_followup", client, ctx.now)?;
    }
    if !by_client {
        return disarm(tx, ctx, "mail.unanswered", id);
    }
    // Who asks again every day waits since the first time.
    let sql = "INSERT INTO timers (account_id, cause, record_id, since) VALUES ($1, 'mail.unanswered', $2, $3)
               ON CONFLICT DO NOTHING";
    tx.execute(sql, &[ctx.account.into(), id.into(), ctx.now.0.into()])?;
    Ok(())
}

/// What ran out on a record while it was closed waits anew when it is open again.
pub fn reopened(tx: &mut Tx, ctx: &Ctx, causes: &[&str], record: &str) -> Result<()> {
    for cause in causes {
        arm(tx, ctx, cause, record, ctx.now)?;
    }
    Ok(())
}

/// An invoice that is partly paid says that it is late, too; one that is not paid at all becomes
/// overdue and says so then.
pub fn await_the_rest<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, invoice: &Document<K>) -> Result<()> {
    match invoice.due_date.0.and_then(|due| due.tomorrow().ok()) {
        Some(day) => arm(tx, ctx, "invoice.late", &invoice.base.id, Moment::start_of(day, &ctx.zone)),
        None => Ok(()),
    }
}

/// How long a cause waits, in seconds; nothing for one that never comes.
fn patience(settings: &Settings, cause: &str) -> Option<i64> {
    let days = match cause {
        // These have their moment.
        "deal.close_due" | "invoice.late" => return Some(0),
        "deal.stalled" => settings.deal_stalled_days,
        "deal.phase_idle" => settings.deal_phase_idle_days,
        "deal.no_followup" => settings.deal_no_followup_days,
        "ticket.stale" => settings.ticket_stale_days,
        "mail.unanswered" => settings.mail_unanswered_days,
        "quote.silent" => settings.quote_silent_days,
        "document.draft" => settings.document_draft_days,
        "customer.inactive" => settings.customer_inactive_days,
        _ => settings.customer_no_followup_days,
    };
    (days > 0).then_some(days * DAY)
}

/// The causes that come, and how long each waits.
fn awaited(tx: &mut Tx, ctx: &Ctx) -> Result<Vec<(&'static str, i64)>> {
    let settings = Settings::of(tx, ctx)?;
    Ok(CAUSES.iter().filter_map(|cause| Some((*cause, patience(&settings, cause)?))).collect())
}

fn arm(tx: &mut Tx, ctx: &Ctx, cause: &str, record: &str, since: Moment) -> Result<()> {
    let sql = "INSERT INTO timers (account_id, cause, record_id, since) VALUES ($1, $2, $3, $4)
               ON CONFLICT (account_id, cause, record_id) DO UPDATE SET since = excluded.since";
    tx.execute(sql, &[ctx.account.into(), cause.into(), record.into(), since.0.into()])?;
    Ok(())
}

fn disarm(tx: &mut Tx, ctx: &Ctx, cause: &str, record: &str) -> Result<()> {
    let sql = "DELETE FROM timers WHERE account_id = $1 AND cause = $2 AND record_id = $3";
    tx.execute(sql, &[ctx.account.into(), cause.into(), record.into()])?;
    Ok(())
}

/// When the next timer runs out.
pub fn next_moment(tx: &mut Tx, ctx: &Ctx) -> Result<Option<Moment>> {
    let sql = "SELECT since FROM timers WHERE account_id = $1 AND cause = $2 ORDER BY since LIMIT 1";
    let mut next: Option<Moment> = None;
    for (cause, seconds) in awaited(tx, ctx)? {
        let since = tx.first(sql, &[ctx.account.into(), cause.into()], |row| Ok::<_, Error>(Moment(row.int(0)?)))?;
        next = [next, since.map(|since| since.plus_seconds(seconds))].into_iter().flatten().min();
    }
    Ok(next)
}

/// Tells what has run out, in order, as far as it fits in the slice; answers whether there may be more.
pub fn run_out(tx: &mut Tx, ctx: &Ctx, slice: &Slice) -> Result<bool> {
    let sql = "SELECT since, record_id FROM timers WHERE account_id = $1 AND cause = $2 AND since <= $3
               ORDER BY since, record_id LIMIT $4";
    let mut due: Vec<(i64, String, &str)> = Vec::new();
    for (cause, seconds) in awaited(tx, ctx)? {
        let before = ctx.now.plus_seconds(-seconds);
        let values = [ctx.account.into(), cause.into(), before.0.into(), (TOGETHER as i64).into()];
        due.extend(tx.all(sql, &values, |row| {
            Ok::<_, Error>((row.int(0)? + seconds * 1000, row.text(1)?.to_string(), cause))
        })?);
    }
    due.sort_unstable();
    let more = due.len() >= TOGETHER;
    due.truncate(TOGETHER);
    for (_, record, cause) in &due {
        if slice.is_over() {
            return Ok(true);
        }
        slice.did_one();
        disarm(tx, ctx, cause, record)?;
        match tell(tx, ctx, cause, record) {
            // A record that is gone has nothing to say.
            Err(error) if error.code == Code::NotFound => {}
            told => told?,
        }
    }
    Ok(more)
}

/// Says that the time is up, if the cause still holds.
fn tell(tx: &mut Tx, ctx: &Ctx, cause: &str, id: &str) -> Result<()> {
    match cause {
        "deal.stalled" | "deal.phase_idle" | "deal.close_due" | "deal.no_followup" => {
            let deal: Deal = records::find(tx, ctx, id)?;
            let holds = deal.status == deal::Status::Open
                && match cause {
                    "deal.no_followup" => !has_open_task(tx, ctx, "deal_id", id)?,
                    // On the day itself each change arms it anew.
                    "deal.close_due" => marks::once(tx, ctx, &format!("{cause} {}", close_date(&deal)), id)?,
                    _ => true,
                };
            if holds { records::emit(tx, ctx, &deal, cause) } else { Ok(()) }
        }
        "ticket.stale" | "mail.unanswered" => {
            let ticket: Ticket = records::find(tx, ctx, id)?;
            let holds = ticket.closed_at.0.is_none() && (cause == "ticket.stale" || is_unanswered(tx, ctx, id)?);
            if holds { records::emit(tx, ctx, &ticket, cause) } else { Ok(()) }
        }
        "invoice.late" => {
            let invoice: Invoice = records::find(tx, ctx, id)?;
            money_due::late_in_part(tx, ctx, &invoice)
        }
        "quote.silent" => {
            let quote: Quote = records::find(tx, ctx, id)?;
            // Each mail arms it, a reminder too: it would be told of for as long as it is reminded of.
            let holds = quote.payment_status == PaymentStatus::Open && marks::once(tx, ctx, cause, id)?;
            if holds { records::emit(tx, ctx, &quote, cause) } else { Ok(()) }
        }
        "document.draft" => {
            let told = still_draft::<InvoiceKind>(tx, ctx, id)? || still_draft::<QuoteKind>(tx, ctx, id)?;
            if told { Ok(()) } else { still_draft::<WorkorderKind>(tx, ctx, id).map(drop) }
        }
        _ => {
            let client: Client = records::find(tx, ctx, id)?;
            let holds = cause == "customer.inactive" || !has_open_task(tx, ctx, "client_id", id)?;
            if holds { records::emit(tx, ctx, &client, cause) } else { Ok(()) }
        }
    }
}

/// Says of a draft that it is one still; answers whether there is such a document.
fn still_draft<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, id: &str) -> Result<bool> {
    let found = tx.first(&K::sql().get, &[ctx.account.into(), id.into()], Document::<K>::from_row)?;
    if let Some(document) = found.as_ref().filter(|document| !document.is_final()) {
        records::emit(tx, ctx, document, "document.draft")?;
    }
    Ok(found.is_some())
}

fn close_date(deal: &Deal) -> String {
    deal.expected_close_date.0.map(|date| date.to_string()).unwrap_or_default()
}

fn has_open_task(tx: &mut Tx, ctx: &Ctx, field: &str, id: &str) -> Result<bool> {
    let sql = format!("SELECT 1 FROM tasks WHERE account_id = $1 AND {field} = $2 AND status = 'open' LIMIT 1");
    Ok(tx.first(&sql, &[ctx.account.into(), id.into()], |_| Ok::<_, Error>(()))?.is_some())
}

/// Whether the last word is the client's.
fn is_unanswered(tx: &mut Tx, ctx: &Ctx, ticket: &str) -> Result<bool> {
    let sql = "SELECT direction FROM ticket_messages WHERE account_id = $1 AND ticket_id = $2 AND type = 'reply'
               ORDER BY created_at DESC, id DESC LIMIT 1";
    let last = tx.first(sql, &[ctx.account.into(), ticket.into()], |row| Ok::<_, Error>(row.text(0)?.to_string()))?;
    Ok(last.as_deref() == Some("in"))
}
