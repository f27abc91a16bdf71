//! The names of events.

use engine::registry::registry;
use engine::resource::Resource;

/// The built-in names of the contract. Records add more: `product.created`, `task.completed`.
pub const BUILT_IN: &[&str] = &[
    "ticket.inbound_message",
    "ticket.created",
    "ticket.status_changed",
    "ticket.closed",
    "ticket.message",
    "ticket.stale",
    "quote.phase_changed",
    "quote.viewed",
    "quote.accepted",
    "quote.created",
    "quote.converted_to_project",
    "quote.silent",
    "deal.won",
    "deal.lost",
    "deal.phase_changed",
    "deal.quote_accepted",
    "deal.created",
    "deal.stalled",
    "deal.phase_idle",
    "deal.close_due",
    "deal.no_followup",
    "sales.document_sent",
    "invoice.created",
    "invoice.credited",
    "invoice.paid",
    "invoice.late",
    "project.created",
    "project.completed",
    "project.status_changed",
    "project.phase_completed",
    "workorder.completed",
    "customer.created",
    "customer.updated",
    "customer.first_invoice_paid",
    "customer.inactive",
    "customer.no_followup",
    "customer.payment_overdue",
    "subscription.expiring",
    "mail.unanswered",
    "mail.bounced",
    "mail.failed",
    "document.draft",
    "work.recurring",
    "planning.scheduled",
    "planning.rescheduled",
    "planning.updated",
    "planning.unscheduled",
    "planning.deleted",
];

/// Returns the canonical name of an event: two events have another name on one of the trigger routes.
pub fn canonical(name: &str) -> &str {
    match name {
        "quote.fase_changed" => "quote.phase_changed",
        "work" => "work.recurring",
        name => name,
    }
}

/// Whether this is an event that the service itself emits.
pub fn is_built_in(name: &str) -> bool {
    let name = canonical(name);
    let (record, what) = name.split_once('.').unwrap_or_default();
    let of_record = || {
        let word = !what.is_empty() && what.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        word && registry().resources.iter().any(|resource| resource.shape.events == record)
    };
    BUILT_IN.contains(&name) || of_record()
}

/// Returns the members that the data of an event has in addition to the fields of its record.
pub fn members(event: &str) -> &'static [&'static str] {
    match event {
        "ticket.message" | "ticket.inbound_message" => &["message"],
        "mail.bounced" | "mail.failed" => &["mail"],
        _ => &[],
    }
}

/// Returns the kind of record that events of this name are about, or an empty string.
pub fn kind_of(event: &str) -> &str {
    entity(canonical(event).split('.').next().unwrap_or_default())
}

/// Returns the kinds of record that events of this name may be about; none for events without a record.
pub fn kinds(event: &str) -> Vec<&'static str> {
    match prefix(event).unwrap_or_default() {
        _ if is_about_delivery(event) => vec!["invoice", "quote", "workorder", "ticket"],
        "sales" | "document" => vec!["invoice", "quote", "workorder"],
        "mail" => vec!["ticket"],
        prefix => of_records(prefix).map(|resource| resource.shape.name).into_iter().collect(),
    }
}

/// Returns the area of the records that an event is about, if it has one. Events of your own have none.
pub fn area(event: &str) -> Option<&'static str> {
    match prefix(event)? {
        // The area of the outbox.
        _ if is_about_delivery(event) => Some("invoices"),
        "sales" | "document" => Some("invoices"),
        "mail" => Some("tickets"),
        // Fired events have their own line in the log, whatever they are about.
        "automation" => Some("automation"),
        prefix => of_records(prefix).map(|resource| resource.area),
    }
}

/// Whether the event is about a mail that was given up. Its record is the one that the mail is about.
fn is_about_delivery(event: &str) -> bool {
    matches!(event, "mail.bounced" | "mail.failed")
}

/// Returns the area in which a caller that fires this event must be allowed to write, if it has one.
pub fn area_to_fire(event: &str) -> Option<&'static str> {
    of_records(prefix(event)?).map(|resource| resource.write_area).or_else(|| area(event))
}

fn prefix(event: &str) -> Option<&str> {
    canonical(event).split_once('.').map(|(prefix, _)| prefix)
}

fn of_records(prefix: &str) -> Option<&'static Resource> {
    let prefix = entity(prefix);
    let is_named = |resource: &Resource| resource.shape.name == prefix || resource.shape.events == prefix;
    registry().resources.iter().find(|resource| resource.is_kept() && is_named(resource))
}

/// Returns the canonical name of a kind of record.
pub fn entity(name: &str) -> &str {
    match name {
        "customer" => "client",
        name => name,
    }
}
