//! The definition of a flow: its conditions and its steps, with all validation that is possible before they run.

use engine::clock::Moment;
use engine::error::{FieldCode, FieldErrors, Violation, violation};
use engine::input::did_you_mean;
use engine::record::{FieldInfo, parse_date};
use engine::registry::registry;
use engine::resource::{RequestBody, Route};
use jiff::Span;
use serde_json::{Map, Value};

use super::addresses::Addresses;
use super::conditions::{self, Condition};
use super::{events, template};
use Accepts::{Any, Bool, Conditions, Duration, Object, OneOf, Seconds, Text, Texts};

/// Maximum number of steps of a flow.
pub const MAX_STEPS: usize = 50;
/// The longest wait, in days: ten years.
const LONGEST_DAYS: i64 = 3660;
/// The longest timeout of a call, in seconds.
pub const LONGEST_CALL: i64 = 30;

/// The action of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Sends a mail through the outbox.
    SendEmail,
    /// Creates a record at this path.
    Create(&'static str),
    /// Adds a reply or a note to a ticket.
    AddTicketMessage,
    /// Updates a record.
    Update,
    /// Sends a document by mail.
    SendDocument,
    /// Makes an HTTP call.
    Http,
    /// Fires another event.
    Trigger,
    /// Waits.
    Wait,
    /// Waits for approval.
    Approval,
    /// Ends the run unless its conditions hold.
    Condition,
}

/// The kind of value that a field of a step accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepts {
    Text,
    Bool,
    Any,
    Object,
    Texts,
    Seconds,
    Conditions,
    Duration,
    Moment,
    OneOf(&'static [&'static str]),
}

impl Accepts {
    /// Returns its name, and the values that it allows, if there are few.
    pub fn described(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Text => ("string", &[]),
            Bool => ("boolean", &[]),
            Any => ("any", &[]),
            Object => ("object", &[]),
            Texts => ("object of strings", &[]),
            Seconds => ("seconds", &[]),
            Conditions => ("conditions", &[]),
            Duration => ("duration", &[]),
            Accepts::Moment => ("moment", &[]),
            OneOf(choices) => ("string", choices),
        }
    }
}

const METHODS: &[&str] = &["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"];

/// Fields of a step: name, whether it is required, and what it accepts.
pub type Fields = &'static [(&'static str, bool, Accepts)];

/// The types of step, with their fields.
pub const TYPES: &[(&str, Action, Fields)] = &[
    (
        "send_email",
        Action::SendEmail,
        &[
            ("to", true, Text),
            ("cc", false, Text),
            ("subject", true, Text),
            ("body", true, Text),
            ("attach_pdf", false, Bool),
        ],
    ),
    ("create_task", Action::Create("/v1/tasks"), &[]),
    ("create_note", Action::Create("/v1/notes"), &[]),
    ("create_ticket", Action::Create("/v1/tickets"), &[]),
    ("create_deal", Action::Create("/v1/deals"), &[]),
    ("create_invoice", Action::Create("/v1/invoices"), &[]),
    (
        "add_ticket_message",
        Action::AddTicketMessage,
        &[("body", true, Text), ("message_type", false, OneOf(&["reply", "note"])), ("ticket_id", false, Text)],
    ),
    ("update", Action::Update, &[("fields", true, Object), ("entity_type", false, Text), ("id", false, Text)]),
    (
        "send_document",
        Action::SendDocument,
        &[("to", false, Text), ("subject", false, Text), ("message", false, Text), ("send_type", false, Text)],
    ),
    (
        "http",
        Action::Http,
        &[
            ("method", false, OneOf(METHODS)),
            ("url", true, Text),
            ("headers", false, Texts),
            ("body", false, Any),
            ("timeout_seconds", false, Seconds),
        ],
    ),
    ("trigger", Action::Trigger, &[("event", true, Text), ("data", false, Object)]),
    ("wait", Action::Wait, &[("for", false, Duration), ("until", false, Accepts::Moment)]),
    ("approval", Action::Approval, &[("message", false, Text)]),
    ("condition", Action::Condition, &[("conditions", true, Conditions)]),
];

/// The fields that every type of step has.
const OF_ALL: [&str; 3] = ["type", "name", "continue_on_error"];

/// The roots that the conditions of a trigger can use.
pub const TRIGGER_ROOTS: &[&str] = &["event", "entity_type", "data"];
/// The roots that the conditions of a step can use.
pub const STEP_ROOTS: &[&str] = &["event", "entity_type", "data", "record", "steps", "account", "now"];

/// A step.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its type, as sent.
    pub kind: String,
    /// Type of the step.
    pub action: Action,
    /// The name by which other steps refer to its result, or empty.
    pub name: String,
    /// Whether the run continues when the step fails.
    pub continue_on_error: bool,
    /// Its other fields, as sent.
    pub fields: Map<String, Value>,
    /// The conditions of a condition step.
    pub conditions: Vec<Condition>,
}

/// What a flow does.
#[derive(Clone, Debug, Default)]
pub struct Definition {
    /// The conditions that must hold for a run to start.
    pub conditions: Vec<Condition>,
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// Whether a step uses the current state of the record.
    pub uses_record: bool,
    /// Whether a step uses the address of the owner.
    pub uses_owner: bool,
}

impl Definition {
    /// Parses the text that is stored with a flow.
    pub fn parse(text: &str) -> Definition {
        let json: Value = serde_json::from_str(text).unwrap_or_default();
        let mut faults = FieldErrors::default();
        let none = Value::Array(Vec::new());
        Definition {
            conditions: conditions::read(json.get("conditions").unwrap_or(&none), "", TRIGGER_ROOTS, &mut faults),
            steps: read_steps(json.get("steps").unwrap_or(&none), "", &mut faults),
            uses_record: text.contains("record"),
            uses_owner: text.contains("owner_email"),
        }
    }
}

/// Returns the URLs that these steps call, with the path of each, as far as they are known in advance.
pub fn addresses(steps: &Value) -> Addresses {
    let calls = steps.as_array().into_iter().flatten().enumerate().filter(|(_, step)| step["type"] == "http");
    let urls = calls.filter_map(|(place, step)| Some((format!("steps[{place}].url"), step["url"].as_str()?)));
    Addresses(urls.filter_map(|(path, url)| Some((path, known_part(url)?))).collect())
}

impl Step {
    /// Returns a string field.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.fields.get(name)?.as_str()
    }

    /// Returns the fields that the create route of this step accepts.
    pub fn route_fields(&self) -> &'static [FieldInfo] {
        match self.action {
            Action::Create(path) => create_fields(path),
            _ => &[],
        }
    }
}

/// Returns the part of a URL before the first placeholder, if it includes the host. The rest is checked when the call
/// is made.
fn known_part(url: &str) -> Option<String> {
    let hole = ["{{", "{%", "{#"].iter().filter_map(|open| url.find(open)).min();
    let Some(hole) = hole else { return Some(url.to_string()) };
    let known = &url[..hole];
    let (_, rest) = known.split_once("://")?;
    rest.contains(['/', '?', '#']).then(|| known.to_string())
}

/// Returns the path at which a step of this type creates a record, if it creates one.
pub fn path_of_create(kind: &str) -> Option<&'static str> {
    TYPES.iter().find(|(name, ..)| *name == kind).and_then(|(_, action, _)| match action {
        Action::Create(path) => Some(*path),
        _ => None,
    })
}

/// Returns the fields that the create route at this path accepts.
pub fn create_fields(path: &str) -> &'static [FieldInfo] {
    let route = registry().routes().find(|route| route.path == path && route.body == RequestBody::Create);
    route.map_or(&[], |route| route.fields.as_slice())
}

/// Returns the fields that a PATCH of this kind of record accepts; none for records that cannot be changed.
pub fn patch_fields(kind: &str) -> &'static [FieldInfo] {
    patch_route(kind).map_or(&[], |route| route.fields.as_slice())
}

/// Returns the route that changes this kind of record, if there is one.
pub fn patch_route(kind: &str) -> Option<&'static Route> {
    let resource = registry().named(events::entity(kind))?;
    resource.routes.iter().find(|route| route.body == RequestBody::Patch && route.path.ends_with("/{id}"))
}

/// Reads a list of steps and reports errors under `path`.
pub fn read_steps(json: &Value, path: &str, faults: &mut FieldErrors) -> Vec<Step> {
    let Value::Array(items) = json else {
        faults.add(path, violation(FieldCode::WrongType, "must be an array of steps"));
        return Vec::new();
    };
    if items.len() > MAX_STEPS {
        faults.add(path, violation(FieldCode::TooLong, format!("may have at most {MAX_STEPS} steps")));
        return Vec::new();
    }
    let mut steps: Vec<Step> = Vec::new();
    for (place, item) in items.iter().enumerate() {
        let path = format!("{path}[{place}]");
        let Some(step) = parse_step(item, &path, faults) else { continue };
        if !step.name.is_empty() && steps.iter().any(|other| other.name == step.name) {
            faults.add(format!("{path}.name"), violation(FieldCode::GivenTwice, "is the name of another step"));
        }
        steps.push(step);
    }
    steps
}

fn parse_step(json: &Value, path: &str, faults: &mut FieldErrors) -> Option<Step> {
    let Value::Object(members) = json else {
        faults.add(path, violation(FieldCode::WrongType, "must be an object with a type"));
        return None;
    };
    let names: Vec<&str> = TYPES.iter().map(|(name, ..)| *name).collect();
    let kind = match members.get("type") {
        Some(Value::String(kind)) => kind.clone(),
        None | Some(Value::Null) => {
            faults.add(format!("{path}.type"), violation(FieldCode::Required, "is required"));
            return None;
        }
        Some(_) => {
            faults.add(format!("{path}.type"), violation(FieldCode::WrongType, "must be a string"));
            return None;
        }
    };
    let Some((_, action, known)) = TYPES.iter().find(|(name, ..)| *name == kind) else {
        let hint = did_you_mean(&kind, names.iter().copied());
        let message = format!("must be one of: {}{hint}", names.join(", "));
        faults.add(format!("{path}.type"), violation(FieldCode::InvalidChoice, message));
        return None;
    };
    let mut step = Step {
        kind,
        action: *action,
        name: String::new(),
        continue_on_error: false,
        fields: Map::new(),
        conditions: Vec::new(),
    };
    for (name, value) in members {
        let at = format!("{path}.{name}");
        match name.as_str() {
            "type" => {}
            "name" => step.name = name_of(value, &at, faults),
            "continue_on_error" => match value {
                Value::Bool(value) => step.continue_on_error = *value,
                _ => faults.add(at, violation(FieldCode::WrongType, "must be true or false")),
            },
            _ => {
                check_field(&mut step, name, value, known, &at, faults);
                step.fields.insert(name.clone(), value.clone());
            }
        }
    }
    let required = known.iter().filter(|(_, required, _)| *required).map(|(name, ..)| *name);
    let of_route = step.route_fields().iter().filter(|field| field.rules.required).map(|field| field.name);
    let missing: Vec<&str> = required.chain(of_route).filter(|name| is_missing(step.fields.get(*name))).collect();
    for name in missing {
        let at = format!("{path}.{name}");
        if !faults.0.iter().any(|fault| fault.field.starts_with(&at)) {
            faults.add(at, violation(FieldCode::Required, "is required"));
        }
    }
    if step.action == Action::Wait && step.fields.contains_key("for") == step.fields.contains_key("until") {
        faults.add(format!("{path}.for"), violation(FieldCode::Required, "or until is required, but not both"));
    }
    Some(step)
}

fn is_missing(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.trim().is_empty(),
        Some(Value::Object(members)) => members.is_empty(),
        _ => false,
    }
}

fn name_of(value: &Value, at: &str, faults: &mut FieldErrors) -> String {
    let good = |text: &&str| {
        let first = text.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_');
        text.len() <= 64 && first && text.chars().all(|c| c.is_alphanumeric() || c == '_')
    };
    match value.as_str().filter(good) {
        Some(name) => name.to_string(),
        None => {
            let message = "must consist of at most 64 letters, digits and underscores";
            faults.add(at, violation(FieldCode::InvalidFormat, message));
            String::new()
        }
    }
}

fn check_field(
    step: &mut Step,
    name: &str,
    value: &Value,
    known: &[(&str, bool, Accepts)],
    at: &str,
    faults: &mut FieldErrors,
) {
    if let Action::Create(path) = step.action {
        let fields = create_fields(path);
        if !fields.iter().any(|field| field.name == name) {
            return unknown(name, fields.iter().map(|field| field.name).chain(OF_ALL), at, faults);
        }
        return check_texts(value, at, faults);
    }
    let Some((_, _, takes)) = known.iter().find(|(own, ..)| *own == name) else {
        return unknown(name, known.iter().map(|(name, ..)| *name).chain(OF_ALL), at, faults);
    };
    let holes = value.as_str().is_some_and(template::is_template);
    let wrong_type = |message: &str| violation(FieldCode::WrongType, message.to_string());
    match takes {
        _ if holes && !matches!(takes, Conditions | Bool | Seconds | OneOf(_)) => check_texts(value, at, faults),
        Text if !value.is_string() => faults.add(at, wrong_type("must be a string")),
        Bool if !value.is_boolean() => faults.add(at, wrong_type("must be true or false")),
        Object if !value.is_object() => faults.add(at, wrong_type("must be an object")),
        Texts => match value {
            Value::Object(members) => {
                for (name, value) in members {
                    let at = format!("{at}.{name}");
                    match value {
                        Value::String(_) => check_texts(value, &at, faults),
                        _ => faults.add(at, wrong_type("must be a string")),
                    }
                }
            }
            _ => faults.add(at, wrong_type("must be an object with string values")),
        },
        Seconds => {
            if !value.as_i64().is_some_and(|seconds| (1..=LONGEST_CALL).contains(&seconds)) {
                faults.add(at, violation(FieldCode::OutOfRange, format!("must be from 1 to {LONGEST_CALL}")));
            }
        }
        Conditions => step.conditions = conditions::read(value, at, STEP_ROOTS, faults),
        Duration => {
            if let Err(message) = value.as_str().ok_or_else(not_a_duration).and_then(parse_duration) {
                faults.add(at, violation(FieldCode::InvalidFormat, message));
            }
        }
        Accepts::Moment => {
            if !value.as_str().is_some_and(|text| Moment::parse(text).is_some() || parse_date(text).is_ok()) {
                let message = "must be a timestamp such as 2026-05-04T09:30:00Z, or a date";
                faults.add(at, violation(FieldCode::InvalidFormat, message));
            }
        }
        OneOf(words) => {
            if !value.as_str().is_some_and(|word| words.contains(&word)) {
                let hint = did_you_mean(value.as_str().unwrap_or_default(), words.iter().copied());
                let message = format!("must be one of: {}{hint}", words.join(", "));
                faults.add(at, violation(FieldCode::InvalidChoice, message));
            }
        }
        _ => check_texts(value, at, faults),
    }
    if step.action == Action::Condition {
        check_texts(value, at, faults);
    }
}

fn unknown<'n>(name: &str, known: impl Iterator<Item = &'n str>, at: &str, faults: &mut FieldErrors) {
    // Finding a suggestion takes time.
    if faults.is_full() {
        return;
    }
    let hint = did_you_mean(name, known);
    faults.add(at, violation(FieldCode::UnknownField, format!("is not a known field here{hint}")));
}

/// Checks that every string in a value is a valid template.
fn check_texts(value: &Value, at: &str, faults: &mut FieldErrors) {
    faults.take(at, good_texts(value));
}

/// Paths are built on the way back, only for an invalid template: there may be a hundred thousand valid ones.
fn good_texts(value: &Value) -> Result<(), Violation> {
    let mut faults = FieldErrors::default();
    match value {
        Value::String(text) if text.len() > template::LONGEST => {
            return Err(violation(FieldCode::TooLong, format!("may have at most {} bytes", template::LONGEST)));
        }
        Value::String(text) => {
            return template::check(text).map_err(|message| violation(FieldCode::InvalidFormat, message));
        }
        Value::Array(items) => {
            for (place, item) in items.iter().enumerate() {
                if let Err(wrong) = good_texts(item) {
                    faults.add(format!("[{place}]"), wrong);
                }
            }
        }
        Value::Object(members) => {
            for (name, value) in members {
                if let Err(wrong) = good_texts(value) {
                    faults.add(format!(".{name}"), wrong);
                }
            }
        }
        _ => {}
    }
    faults.inside()
}

fn not_a_duration() -> String {
    "must be a duration such as P3D or PT12H".to_string()
}

/// Parses an ISO 8601 duration from zero to ten years.
pub fn parse_duration(text: &str) -> Result<Span, String> {
    let text = text.trim();
    let span = text.parse::<Span>().ok().filter(|_| text.starts_with('P')).ok_or_else(not_a_duration)?;
    let start = jiff::civil::date(2026, 1, 1).at(0, 0, 0, 0);
    let end = start.checked_add(span).map_err(|_| "is too long".to_string())?;
    if end < start || end.duration_since(start).as_hours() > LONGEST_DAYS * 24 {
        return Err("must be from zero to ten years".to_string());
    }
    Ok(span)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn faults(steps: Value) -> Vec<String> {
        let mut faults = FieldErrors::default();
        read_steps(&steps, "steps", &mut faults);
        faults.0.iter().map(|fault| format!("{}: {}", fault.field, fault.wrong.code.wire())).collect()
    }

    #[test]
    fn accepts_valid_steps() {
        crate::registry::install();
        let good = json!([
            {"type": "create_task", "title": "Call {{ data.client_company_name }}", "category": "call", "deadline": "P2D", "name": "call"},
            {"type": "wait", "for": "P3D"},
            {"type": "wait", "until": "{{ data.due_date }}T09:00:00Z"},
            {"type": "wait", "until": "2026-05-04"},
            {"type": "approval", "message": "Send the gift?"},
            {"type": "send_email", "to": "{{ data.client_email }}", "subject": "x", "body": "y", "attach_pdf": true, "continue_on_error": true},
            {"type": "http", "url": "https://example.com/{{ data.id }}", "headers": {"X-A": "{{ event }}"}, "body": {"a": ["{{ data.id }}"]}, "timeout_seconds": 5},
            {"type": "condition", "conditions": [{"field": "record.payment_status", "op": "in", "value": ["open"]}]},
            {"type": "trigger", "event": "x.y", "data": {"id": "{{ steps.call.id }}"}},
            {"type": "update", "fields": {"title": "x"}},
            {"type": "create_invoice", "title": "x", "client_id": "{{ data.id }}", "rows": [{"name": "{{ data.x }}"}]},
        ]);
        assert_eq!(faults(good), Vec::<String>::new());
    }

    #[test]
    fn errors_of_steps_have_a_path() {
        crate::registry::install();
        for (step, fault) in [
            (json!({"type": "nope"}), "type: invalid_choice"),
            (json!({}), "type: required"),
            (json!({"type": "create_task", "title": "x", "titel": "y"}), "titel: unknown_field"),
            (json!({"type": "create_task"}), "title: required"),
            (json!({"type": "create_task", "title": "{{ data."}), "title: invalid_format"),
            (json!({"type": "create_task", "title": "x", "name": "a b"}), "name: invalid_format"),
            (
                json!({"type": "create_invoice", "client_id": "x", "title": "x", "rows": [{"name": "{{"}]}),
                "rows[0].name: invalid_format",
            ),
            (json!({"type": "wait", "for": "3 days"}), "for: invalid_format"),
            (json!({"type": "wait", "for": "-P1D"}), "for: invalid_format"),
            (json!({"type": "wait", "for": "P99Y"}), "for: invalid_format"),
            (json!({"type": "wait"}), "for: required"),
            (json!({"type": "wait", "for": "P1D", "until": "2026-05-04T00:00:00Z"}), "for: required"),
            (json!({"type": "wait", "until": "tomorrow"}), "until: invalid_format"),
            (json!({"type": "http", "url": "https://a.example", "method": "BREW"}), "method: invalid_choice"),
            (
                json!({"type": "http", "url": "https://a.example", "timeout_seconds": 31}),
                "timeout_seconds: out_of_range",
            ),
            (json!({"type": "http", "url": "https://a.example", "headers": {"a": 1}}), "headers.a: wrong_type"),
            (json!({"type": "http"}), "url: required"),
            (
                json!({"type": "condition", "conditions": [{"field": "data.x", "op": "like", "value": 1}]}),
                "conditions[0].op: invalid_choice",
            ),
            (json!({"type": "send_email", "to": "x", "subject": "y", "body": 1}), "body: wrong_type"),
            (
                json!({"type": "send_email", "to": "x", "subject": "y", "body": "z", "continue_on_error": 1}),
                "continue_on_error: wrong_type",
            ),
            (json!({"type": "update", "fields": {}}), "fields: required"),
            (
                json!({"type": "add_ticket_message", "body": "x", "message_type": "shout"}),
                "message_type: invalid_choice",
            ),
        ] {
            assert_eq!(faults(json!([step])), [format!("steps[0].{fault}")], "{step}");
        }
        assert_eq!(faults(json!(["x"])), ["steps[0]: wrong_type"]);
        assert_eq!(faults(Value::Array(vec![json!({"type": "approval"}); 51])), ["steps: too_long"]);
        let twice = json!([{"type": "approval", "name": "a"}, {"type": "approval", "name": "a"}]);
        assert_eq!(faults(twice), ["steps[1].name: given_twice"]);
    }
    #[test]
    fn checks_the_known_part_of_urls() {
        for (url, known) in [
            ("https://a.example/x", Some("https://a.example/x")),
            ("https://a.example/{{ data.id }}", Some("https://a.example/")),
            ("https://a.example?id={% if data.id %}1{% endif %}", Some("https://a.example?id=")),
            ("https://a.example{{ data.path }}", None),
            ("https://{{ data.host }}/x", None),
            ("{{ data.url }}", None),
        ] {
            assert_eq!(known_part(url).as_deref(), known, "{url}");
        }
    }

    #[test]
    fn many_texts_under_a_long_name_are_fast() {
        let body = json!({"x".repeat(100_000): vec!["y"; 40_000]});
        let started = std::time::Instant::now();
        assert!(faults(json!([{"type": "http", "url": "https://a.example", "body": body}])).is_empty());
        assert!(started.elapsed().as_secs() < 2);
    }
}
