//! What the conditions and templates of a flow can refer to: the record of its event, and the data beside it.

use engine::input::did_you_mean;
use engine::log::{EventType, Origin};
use engine::record::{FieldInfo, NOWHERE};
use engine::registry::registry;
use engine::resource::Resource;
use serde_json::{Map, Value, json};

use crate::automation::definition::patch_fields;
use crate::automation::events;

/// The fields that every record has.
const OF_ALL: &[&str] = &["id", "created_at", "updated_at", "version", "meta"];

/// The members of `account` in templates.
const OF_ACCOUNT: &[&str] = &["id", "name", "today", "time_zone", "owner_email"];

/// The events of documents that are final.
const FINAL: &[&str] = &[
    "invoice.paid",
    "invoice.late",
    "invoice.credited",
    "invoice.credit_created",
    "quote.viewed",
    "quote.accepted",
    "quote.silent",
    "quote.converted_to_project",
    "workorder.completed",
    "sales.document_sent",
];

/// What the event of a flow is about.
pub struct Subject {
    /// The resources of the records that it may be about.
    pub records: Vec<&'static Resource>,
    /// The members of its data beside the fields of the record, with examples.
    members: Map<String, Value>,
    /// Whether nothing else can be in its data, unless a caller fires it.
    is_known: bool,
    /// What starts the flow, for people.
    name: String,
    /// The canonical name of the event; empty for a schedule.
    event: String,
}

impl Subject {
    /// Of an event.
    pub fn of_event(name: &str) -> Subject {
        let found = events::find(name).filter(|event| event.origin == Origin::Program);
        let about = found.filter(|event| event.shows_record).map_or(&[][..], |event| event.about);
        Subject {
            records: about.iter().filter_map(|kind| registry().named(kind)).collect(),
            members: found.map(EventType::members).unwrap_or_default(),
            // A caller fires any other event, with any data.
            is_known: found.is_some(),
            name: format!("the event '{name}'"),
            event: events::canonical(name).into_owned(),
        }
    }

    /// Of a schedule, which is not about a record.
    pub fn of_schedule() -> Subject {
        let members = json!({"scheduled_for": "", "date": ""});
        Subject {
            records: Vec::new(),
            members: members.as_object().cloned().unwrap_or_default(),
            is_known: true,
            name: "a schedule".to_string(),
            event: String::new(),
        }
    }

    /// Whether the event deletes its record.
    pub fn is_gone(&self) -> bool {
        self.is_known && self.event.ends_with(".deleted")
    }

    /// Whether the documents of the event are always final.
    pub fn is_final(&self) -> bool {
        FINAL.contains(&self.event.as_str())
    }

    /// Returns the name of the event.
    pub fn event(&self) -> &str {
        &self.event
    }

    /// Returns a field of a record that the data has beside the record itself: `direction` of `message`.
    pub fn field_of_member(&self, member: &str, name: &str) -> Option<&'static FieldInfo> {
        self.members.get(member)?;
        registry().named(member)?.fields.iter().find(|field| field.name == name)
    }

    /// Returns why the items of a list never have a member, if so.
    pub fn lacks_item(&self, list: &str, member: &str) -> Option<String> {
        let fields = self.fields(list);
        let schemas: Vec<Value> = fields.iter().map(|(_, field)| (field.schema)(&field.rules)).collect();
        let items: Option<Vec<&Map<String, Value>>> =
            schemas.iter().map(|schema| schema["items"]["properties"].as_object()).collect();
        let items = items.filter(|items| !items.is_empty() && !items.iter().any(|item| item.contains_key(member)))?;
        let hint = did_you_mean(member, items.iter().flat_map(|item| item.keys()).map(String::as_str));
        Some(format!("an item of '{list}' has no member '{member}'{hint}"))
    }

    /// Whether it is about one of these types of record, as far as is known.
    pub fn may_be(&self, kinds: &[&str]) -> bool {
        !self.is_known || self.records.iter().any(|record| kinds.contains(&record.shape.name))
    }

    /// Whether the record of the event can be changed, as far as is known.
    pub fn may_change(&self) -> bool {
        !self.is_known || self.records.iter().any(|record| !patch_fields(record.shape.name).is_empty())
    }

    /// Says what it is about: "the event 'ticket.created' is about a ticket".
    pub fn described(&self) -> String {
        match self.records.is_empty() {
            true => format!("{} is not about a record", self.name),
            false => format!("{} is about a record of type {}", self.name, self.kinds()),
        }
    }

    /// The types of record, for people.
    pub fn kinds(&self) -> String {
        let kinds: Vec<&str> = self.records.iter().map(|record| record.shape.name).collect();
        match kinds.split_last() {
            Some((last, [])) => (*last).to_string(),
            Some((last, others)) => format!("{} or {last}", others.join(", ")),
            None => String::new(),
        }
    }

    /// Returns the fields with this name, of each type of record that has one.
    pub fn fields(&self, name: &str) -> Vec<(&'static Resource, &'static FieldInfo)> {
        let own = |record: &'static Resource| Some((record, shown(record).find(|field| field.name == name)?));
        self.records.iter().copied().filter_map(own).collect()
    }

    /// Returns why a path such as `data.number` leads nowhere, if so.
    pub fn lacks(&self, path: &[&str]) -> Option<String> {
        match path {
            ["account", name, ..] if !OF_ACCOUNT.contains(name) => {
                let hint = did_you_mean(name, OF_ACCOUNT.iter().copied());
                Some(format!("'account' has no member '{name}'{hint}"))
            }
            ["record", ..] if self.is_known && self.records.is_empty() => {
                Some(format!("there is no 'record': {} is not about a record", self.name))
            }
            ["data", "meta", name, ..] | ["record", "meta", name, ..] | ["record", name, ..] => {
                self.has_no_field(name, &[])
            }
            ["data", name, deeper @ ..] => match self.members.get(*name) {
                Some(member) => lacks_member(name, member, deeper),
                None => self.has_no_field(name, &["fired"]),
            },
            _ => None,
        }
    }

    fn has_no_field(&self, name: &str, also: &[&str]) -> Option<String> {
        if !self.is_known || also.contains(&name) {
            return None;
        }
        if self.records.is_empty() {
            let hint = did_you_mean(name, self.members.keys().map(String::as_str));
            return Some(format!("the data of {} has no member '{name}'{hint}", self.name));
        }
        if OF_ALL.contains(&name) || self.records.iter().copied().flat_map(names).any(|own| own == name) {
            return None;
        }
        let hint = did_you_mean(name, self.records.iter().copied().flat_map(names));
        Some(format!("a record of type {} has no field '{name}'{hint}", self.kinds()))
    }
}

/// Returns the fields that a record shows.
fn shown(record: &'static Resource) -> impl Iterator<Item = &'static FieldInfo> {
    record.fields.iter().filter(|field| field.rules.in_meta || field.rules.views != NOWHERE)
}

/// Returns the names of everything that a record shows in its events.
fn names(record: &'static Resource) -> impl Iterator<Item = &'static str> {
    shown(record).map(|field| field.name).chain(record.shape.addresses.iter().map(|address| address.name))
}

fn lacks_member(of: &str, member: &Value, path: &[&str]) -> Option<String> {
    let (Value::Object(members), [name, deeper @ ..]) = (member, path) else { return None };
    // The data of a fired event may have anything.
    if of == "data" {
        return None;
    }
    match members.get(*name) {
        Some(member) => lacks_member(name, member, deeper),
        None => {
            let hint = did_you_mean(name, members.keys().map(String::as_str));
            Some(format!("'{of}' has no member '{name}'{hint}"))
        }
    }
}
