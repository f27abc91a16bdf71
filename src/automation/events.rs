//! The names of events: which there are, what they are about, and which other names they have.

use std::borrow::Cow;

use engine::input::did_you_mean;
use engine::log::{EventType, Origin};
use engine::registry::registry;
use engine::resource::Resource;

/// The type in the log of events that callers fire.
pub const TRIGGERED: &str = "automation.triggered";

/// Returns the canonical name of an event, or of a prefix such as `client.*`. Two events have another name on one of the
/// trigger routes, and the API calls a customer a client.
pub fn canonical(name: &str) -> Cow<'_, str> {
    match name {
        "quote.fase_changed" => Cow::Borrowed("quote.phase_changed"),
        "work" => Cow::Borrowed("work.recurring"),
        name => match name.strip_prefix("client.") {
            Some(what) => Cow::Owned(format!("customer.{what}")),
            None => Cow::Borrowed(name),
        },
    }
}

/// Returns the other name of an event, or the canonical name if there is none.
pub fn other_name(canonical: &str) -> Cow<'_, str> {
    match canonical.strip_prefix("customer.") {
        Some(what) => Cow::Owned(format!("client.{what}")),
        None => Cow::Borrowed(canonical),
    }
}

/// Whether a name, a prefix such as `invoice.*`, or `*` includes an event.
pub fn matches(pattern: &str, event: &str) -> bool {
    let (pattern, event) = (canonical(pattern), canonical(event));
    match pattern.strip_suffix('*') {
        Some(prefix) => event.starts_with(prefix),
        None => pattern == event,
    }
}

/// Returns the type of an event, if it is one of the catalogue.
pub fn find(name: &str) -> Option<&'static EventType> {
    registry().event(&canonical(name))
}

/// Whether a flow can listen to this as an event of the service. Any other word of a record is accepted too, with a
/// warning: a caller may fire it.
pub fn is_built_in(name: &str) -> bool {
    let name = canonical(name);
    let (record, what) = name.split_once('.').unwrap_or_default();
    let of_record = || {
        let word = !what.is_empty() && what.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        word && registry().resources.iter().any(|resource| resource.shape.events == record)
    };
    find(&name).is_some_and(|event| event.origin != Origin::Trial) || of_record()
}

/// Returns a hint at the event that was probably meant, or an empty string.
pub fn guess(name: &str) -> String {
    let small = name.to_lowercase();
    if small != name && find(&small).is_some() {
        return format!("; did you mean '{small}'?");
    }
    let name = canonical(&small);
    let names = || registry().events.iter().filter(|event| event.origin != Origin::Trial).map(|event| &*event.name);
    let record = name.split_once('.').map_or("", |(record, _)| record);
    let of_record: Vec<&str> = names().filter(|own| own.split('.').next() == Some(record)).collect();
    // Those of the same record first.
    let near = did_you_mean(&name, of_record.iter().copied());
    match (near.is_empty(), of_record.is_empty()) {
        (false, _) => near,
        (true, false) => format!("; the events of this record are: {}", of_record.join(", ")),
        (true, true) => {
            let others: Vec<Cow<str>> = names().map(other_name).collect();
            did_you_mean(&name, names().chain(others.iter().map(|other| &**other)))
        }
    }
}

/// Returns a hint at the prefix that was probably meant, such as `invoice.*`, or an empty string.
fn guess_prefix(record: &str) -> String {
    let sent = registry().events.iter().filter(|event| event.origin == Origin::Program);
    let records = sent.filter_map(|event| event.name.split('.').next()).chain(["client"]);
    did_you_mean(&record.to_lowercase(), records).replace("'?", ".*'?")
}

/// Returns why a name or a prefix in the list of an endpoint never matches an event, if so.
pub fn never_sent(pattern: &str) -> Option<String> {
    let name = canonical(pattern);
    let is_sent = |event: &EventType| event.origin == Origin::Program && matches(&name, &event.name);
    if registry().events.iter().any(is_sent) {
        return None;
    }
    let fired = TRIGGERED;
    let is_of = |origin: Origin| {
        let fits = |event: &EventType| event.origin == origin && matches(&name, &event.name);
        registry().events.iter().any(fits)
    };
    if is_of(Origin::Trial) {
        return Some(format!("'{pattern}' is only sent by the test of an endpoint, whatever events it lists"));
    }
    if is_of(Origin::Callers) {
        return Some(format!("'{pattern}' never happens by itself; events that are fired are sent as '{fired}'"));
    }
    let hint = hint(pattern);
    let hint = if hint.is_empty() { format!("; events that are fired are sent as '{fired}'") } else { hint };
    Some(format!("'{pattern}' matches no event{hint}"))
}

/// Returns a guess at the event or the prefix that was meant, or an empty string.
pub fn hint(pattern: &str) -> String {
    let name = canonical(pattern);
    match name.strip_suffix(".*") {
        Some(record) => guess_prefix(record),
        // The name of a record alone matches nothing.
        None if is_record(&name) => format!("; did you mean '{pattern}.*'?"),
        None => guess(&name),
    }
}

/// Whether events of this record are emitted.
fn is_record(name: &str) -> bool {
    let sent = registry().events.iter().filter(|event| event.origin == Origin::Program);
    sent.filter_map(|event| event.name.split('.').next()).chain(["client"]).any(|record| record == name)
}

/// Returns why an event that is fired, or that a flow listens to, is probably misspelled, if so. A name that resembles no
/// event is one of the caller's own.
pub fn doubt(name: &str) -> Option<String> {
    if is_trial(name) {
        let hint = guess_widely(name);
        return Some(format!("'{name}' is only sent to an endpoint that is tested, and never starts a flow{hint}"));
    }
    let hint = if find(name).is_some() { String::new() } else { guess(name) };
    (!hint.is_empty()).then(|| format!("'{name}' is not an event of Kantoor, and only happens if it is fired{hint}"))
}

/// Whether only the test of an endpoint sends this event.
pub fn is_trial(name: &str) -> bool {
    find(name).is_some_and(|event| event.origin == Origin::Trial)
}

/// Returns a hint at the event that was meant, also if the name resembles none: those of records whose name begins alike, or
/// where all are listed.
pub fn guess_widely(name: &str) -> String {
    let near = guess(name);
    if !near.is_empty() {
        return near;
    }
    let record = name.split('.').next().unwrap_or_default().to_lowercase();
    let names = registry().events.iter().filter(|event| event.origin == Origin::Program).map(|event| &*event.name);
    let alike: Vec<&str> = names.filter(|own| record.len() > 2 && own.starts_with(&record)).collect();
    match alike.is_empty() {
        true => "; GET /v1/events/types lists all events".to_string(),
        false => format!("; did you mean one of {}?", alike.join(", ")),
    }
}

/// Returns the kind of record that events of this name are about, or an empty string if it may be one of several.
pub fn kind_of(event: &str) -> &str {
    match find(event).map(|event| event.about) {
        Some([kind]) => kind,
        Some([]) | None => entity(event.split('.').next().unwrap_or_default()),
        Some(_) => "",
    }
}

/// Returns the kinds of record that an event of the catalogue can be about; none if whoever fires it chooses the kind.
pub fn kinds_of(event: &str) -> &'static [&'static str] {
    find(event).map_or(&[], |event| event.about)
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

/// Whether the event is about a mail that was given up or canceled. Its record is the one that the mail is about.
fn is_about_delivery(event: &str) -> bool {
    matches!(event, "mail.bounced" | "mail.canceled" | "mail.failed")
}

/// Returns the area in which a caller that fires this event must be allowed to write, if it has one. An event of the service
/// that is about no record is about the account itself.
pub fn area_to_fire(event: &str) -> Option<&'static str> {
    let of_records = of_records(prefix(event)?).map(|resource| resource.write_area);
    of_records.or_else(|| area(event)).or_else(|| is_of_service(event).then_some("settings"))
}

/// Whether the service itself emits this event.
pub fn is_of_service(event: &str) -> bool {
    area(event).is_some() || find(event).is_some_and(|event| event.origin == Origin::Program)
}

fn prefix(event: &str) -> Option<&str> {
    event.split_once('.').map(|(prefix, _)| prefix)
}

/// Returns the resource whose events have this prefix.
pub fn of_records(prefix: &str) -> Option<&'static Resource> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_a_customer() {
        crate::registry::install();
        assert_eq!(canonical("client.created"), "customer.created");
        assert_eq!(canonical("client.*"), "customer.*");
        assert!(matches("client.*", "customer.updated") && matches("customer.created", "client.created"));
        assert!(!matches("client.*", "link.created") && !matches("client", "customer.created"));
        assert!(is_built_in("client.created") && find("client.inactive").is_some());
        assert_eq!(
            (kind_of("client.x"), kind_of("customer.created"), area("client.created")),
            ("client", "client", Some("relations"))
        );
        assert_eq!(other_name("customer.created"), "client.created");
    }

    #[test]
    fn guesses_the_event_that_was_meant() {
        crate::registry::install();
        for (name, hint) in [
            ("invoice.payd", "; did you mean 'invoice.paid'?"),
            ("invoices.paid", "; did you mean 'invoice.paid'?"),
            ("client.creatd", "; did you mean 'customer.created'?"),
            ("INVOICE.PAID", "; did you mean 'invoice.paid'?"),
            ("clients.created", "; did you mean 'client.created'?"),
            ("order.shipped", ""),
            ("a.b", ""),
        ] {
            assert_eq!(guess(name), hint, "{name}");
        }
        assert!(guess("task.done").starts_with("; the events of this record are: task.completed, task.created"));
        assert_eq!(never_sent("invoice.*"), None);
        assert_eq!(never_sent("*"), None);
        assert_eq!(never_sent("client.updated"), None);
        assert_eq!(never_sent("invoce.*").unwrap(), "'invoce.*' matches no event; did you mean 'invoice.*'?");
        for name in ["invoice", "client"] {
            assert_eq!(never_sent(name).unwrap(), format!("'{name}' matches no event; did you mean '{name}.*'?"));
        }
        assert_eq!(never_sent("clients.*").unwrap(), "'clients.*' matches no event; did you mean 'client.*'?");
        assert_eq!(never_sent("Invoice.*").unwrap(), "'Invoice.*' matches no event; did you mean 'invoice.*'?");
        assert!(never_sent("INVOICE.PAID").unwrap().ends_with("did you mean 'invoice.paid'?"));
        assert!(never_sent("webhook.test").unwrap().contains("the test of an endpoint"));
        for own in ["planning.updated", "planning.*"] {
            let why = never_sent(own).unwrap();
            assert!(why.contains("never happens by itself") && why.contains("sent as 'automation.triggered'"), "{why}");
        }
        assert!(
            never_sent("order.shipped").unwrap().ends_with("events that are fired are sent as 'automation.triggered'")
        );
    }
}
