//! The scopes that a flow requires: of its author, to save it and to run it, and of a caller, to see what its runs did.

use std::collections::BTreeSet;

use engine::authors::Authority;
use engine::context::Ctx;
use engine::error::{Code, Error, Result};
use engine::registry::registry;
use engine::resource::Route;
use serde_json::{Map, Value};

use super::definition::{Action, Definition, Step, patch_route};
use super::events;
use super::template::is_template;

/// Stands for every scope, where the type of a record is only known when the step runs.
const ALL: &str = "*";

/// The scope to use the address of the owner in a template, and to see it in a result.
pub const TO_SEE_OWNER: &str = "users.read";

/// The scopes of a step: what it does requires some, and its result shows a record that requires another.
#[derive(Default)]
struct Scopes {
    acts: Vec<String>,
    shows: Option<String>,
}

impl Scopes {
    fn new(acts: &str, shows: &str) -> Scopes {
        Scopes { acts: vec![acts.to_string()], shows: Some(shows.to_string()) }
    }
}

/// The scopes that each type of step requires, as far as they are known in advance. `about` is the type of record of the
/// event. A step that has placeholders where others have a name is checked when it runs.
fn of_step(step: &Step, about: &str) -> Scopes {
    match step.action {
        // A free text to any address, as a reply to a ticket.
        Action::SendEmail => Scopes { acts: vec!["tickets.write".to_string()], shows: None },
        Action::Create(path) => {
            let acts = registry().routes().find(|route| route.path == path && route.method.name() == "POST");
            let resource = registry().resources.iter().find(|resource| resource.path == path);
            Scopes {
                acts: acts.map(all_of).unwrap_or_default(),
                shows: resource.map(|resource| format!("{}.read", resource.area)),
            }
        }
        Action::AddTicketMessage => Scopes::new("tickets.write", "tickets.read"),
        Action::Update => {
            let named = step.text("entity_type").unwrap_or_default();
            let kind = events::entity(if named.is_empty() { about } else { named });
            match is_template(kind) {
                true => Scopes { acts: Vec::new(), shows: Some(ALL.to_string()) },
                false => Scopes { acts: to_change(kind), shows: to_read(kind) },
            }
        }
        Action::SendDocument => Scopes::new("invoices.write", "invoices.read"),
        // Sends data to any URL, as a webhook endpoint does.
        Action::Http => Scopes { acts: vec!["webhooks.write".to_string()], shows: None },
        Action::Trigger => {
            let event = step.text("event").unwrap_or_default();
            let acts = events::area_to_fire(event).map(|area| format!("{area}.write"));
            Scopes { acts: acts.into_iter().collect(), shows: None }
        }
        Action::Wait | Action::Approval | Action::Condition => Scopes::default(),
    }
}

/// Returns the scopes that a type of step requires of the author, as far as its fields do not matter.
pub fn of_type(kind: &str, action: Action) -> Vec<String> {
    let step = Step {
        kind: kind.to_string(),
        action,
        name: String::new(),
        continue_on_error: false,
        fields: Map::new(),
        conditions: Vec::new(),
    };
    of_step(&step, "").acts
}

/// Returns the scope to read records of this type, if there are any.
pub fn to_read(kind: &str) -> Option<String> {
    let resource = registry().named(events::entity(kind)).filter(|resource| resource.is_kept());
    resource.map(|resource| format!("{}.read", resource.area))
}

/// Returns the scopes to change records of this type, if they can be changed.
pub fn to_change(kind: &str) -> Vec<String> {
    patch_route(kind).map(all_of).unwrap_or_default()
}

fn all_of(route: &Route) -> Vec<String> {
    route.scopes().map(str::to_string).collect()
}

/// Returns the scope to read the record of an event, if it has one.
pub fn of_event(event: &str) -> Option<String> {
    events::area(event).map(|area| format!("{area}.read"))
}

/// Describes the scopes that a flow on this event requires and that are missing, each with its use; none if all are there.
pub fn missing(authority: &Authority, event: &str, definition: &Definition) -> Vec<String> {
    if authority.may(ALL) {
        return Vec::new();
    }
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    let mut require = |scope: String, what: &dyn Fn() -> String| {
        if !authority.may(&scope) && seen.insert(scope.clone()) {
            found.push(format!("'{scope}' ({})", what()));
        }
    };
    if let Some(scope) = of_event(event) {
        require(scope, &|| "trigger".to_string());
    }
    if definition.uses_owner {
        require(TO_SEE_OWNER.to_string(), &|| "account.owner_email".to_string());
    }
    let about = events::kind_of(event);
    for (place, step) in definition.steps.iter().enumerate() {
        for scope in of_step(step, about).acts {
            require(scope, &|| format!("step {}, {}", place + 1, step.kind));
        }
    }
    found
}

/// Rejects a caller without the scopes that a flow on this event requires.
pub fn check_caller(ctx: &Ctx, event: &str, definition: &Definition) -> Result<()> {
    let missing = missing(&Authority::calling(ctx), event, definition);
    if missing.is_empty() {
        return Ok(());
    }
    let message = format!("This flow requires scopes that you do not have: {}.", missing.join(", "));
    Err(Error::new(Code::Forbidden, message))
}

/// The scopes of actions for which a person is asked the password again. Changing a flow is one of them: it can enable a flow
/// that does the others.
const POWER: [&str; 5] = ["users.write", "keys.write", "webhooks.write", "settings.write", "automation.write"];

/// Whether a step of the flow may do what a person is asked the password for. One that changes a type of record which is
/// only known when it runs may.
pub fn gives_power(event: &str, definition: &Definition) -> bool {
    let is_power = |scopes: Vec<String>| scopes.iter().any(|scope| POWER.contains(&scope.as_str()));
    definition.steps.iter().any(|step| match step.action {
        Action::Update => {
            let named = step.text("entity_type").unwrap_or_default();
            let own = [named];
            let kinds: &[&str] = if named.is_empty() { events::kinds_of(event) } else { &own };
            kinds.is_empty() || kinds.iter().any(|kind| is_template(kind) || is_power(to_change(kind)))
        }
        _ => is_power(of_step(step, "").acts),
    })
}

/// Rejects a caller without the scope to read the record of an event.
pub fn check_reader(ctx: &Ctx, event: &str) -> Result<()> {
    match of_event(event).filter(|scope| !ctx.may(scope)) {
        None => Ok(()),
        Some(scope) => {
            let message = format!("The events of this flow require the scope '{scope}'.");
            Err(Error::new(Code::Forbidden, message))
        }
    }
}

/// Rejects a caller that may not fire an event: one of an area requires the scope to write there, and a record in its data
/// the scope to read it.
pub fn check_firing(ctx: &Ctx, event: &str, kind: &str, data: &Value) -> Result<()> {
    let own = events::area_to_fire(event);
    let to_write = own.map(|area| format!("{area}.write"));
    let names_record = data["id"].as_str().is_some_and(|id| !id.is_empty());
    let read = to_read(kind).filter(|scope| names_record && own.is_none_or(|area| *scope != format!("{area}.read")));
    let missing: Vec<String> =
        to_write.into_iter().chain(read).filter(|scope| !ctx.may(scope)).map(|scope| format!("'{scope}'")).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let word = if missing.len() == 1 { "scope" } else { "scopes" };
    let message = format!("Firing the event '{event}' requires the {word} {}.", missing.join(" and "));
    Err(Error::new(Code::Forbidden, message))
}

/// Returns the scopes that are required to receive an event of the log. One that is about nothing known requires access to
/// the whole log.
pub fn to_receive(event: &str, entity_type: &str) -> BTreeSet<String> {
    let mut scopes: BTreeSet<String> = of_event(event).into_iter().chain(to_read(entity_type)).collect();
    if scopes.is_empty() {
        scopes.insert("audit.read".to_string());
    }
    scopes
}

/// Returns the scopes that are required to see the results and errors of a run, separated by commas: they contain data of
/// its record and of the records that its steps created and changed.
pub fn to_see(entity_type: &str, definition: &Definition) -> String {
    let of_steps = definition.steps.iter().filter_map(|step| of_step(step, entity_type).shows);
    let of_owner = definition.uses_owner.then(|| TO_SEE_OWNER.to_string());
    let all: BTreeSet<String> = of_steps.chain(to_read(entity_type)).chain(of_owner).collect();
    all.into_iter().collect::<Vec<_>>().join(",")
}

/// Returns what a caller lacks to see something that requires these scopes, separated by commas.
pub fn hidden_from(ctx: &Ctx, scopes: &str) -> Option<String> {
    let missing: Vec<&str> = scopes.split(',').filter(|scope| !scope.is_empty() && !ctx.may(scope)).collect();
    if missing.is_empty() {
        return None;
    }
    let word = if missing.len() == 1 { "scope" } else { "scopes" };
    Some(format!("Hidden: requires the {word} {}.", missing.join(", ")))
}
