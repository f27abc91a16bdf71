//! Flows: automations that run when something happens.

use engine::authors::{Author, AuthorType};
use engine::call::{Answer, Call};
use engine::context::Ctx;
use engine::error::{Code, Error, FieldCode, FieldErrors, Result, Violation, violation};
use engine::input::Input;
use engine::json::Json;
use engine::record::{
    ALL, Body, COMPUTED, CREATED, DETAIL, Data, INPUT, Kind, Model, NOWHERE, REQUIRED, Rules, UPDATED,
};
use engine::records::{self, Work};
use engine::registry::check_confirmed;
use engine::resource::{Method, RequestBody, Resource, Returns, Verb};
use engine::tables::Logged;
use engine::{choice, input, record};
use serde_json::{Value, json};
use store::{Migration, Row, Tx};

use crate::automation::cron::Cron;
use crate::automation::definition::{Definition, MAX_STEPS, TRIGGER_ROOTS, addresses, read_steps};
use crate::automation::lint::{self, Subject};
use crate::automation::{conditions, described, events, needs, validate};

choice! {
    /// What starts a flow.
    pub enum TriggerType {
        /// A built-in event.
        #[default]
        Event = "event",
        /// Any other key, fired through a trigger route.
        Custom = "custom",
        /// A cron schedule.
        Schedule = "schedule",
    }
}

record! {
    /// An automation: steps that run when something happens.
    pub struct Flow = "flow" in "flows", created_at: ALL, updated_at: ALL;

    /// Name.
    name: String = REQUIRED.names().create_only().search().example("\"Thank for a large order\"");
    /// Description.
    description: String = INPUT.create_only().long().example("\"Somebody calls when an order is worth it.\"");
    /// Category, such as `invoicing` or `sales`.
    category: String = INPUT.create_only().filter().example("\"sales\"");
    /// `event`: a built-in event; `custom`: any other key; `schedule`: a cron schedule.
    trigger_type: TriggerType = REQUIRED.create_only().filter().example("\"custom\"");
    /// The event or key that triggers the flow, or a cron expression in the account's time zone.
    trigger_key: String = REQUIRED.create_only().example("\"order.shipped\"");
    /// Whether the flow is enabled.
    active: bool = INPUT.default("true").filter().example("true");
    /// Number of steps.
    step_count: i64 = COMPUTED;
    /// Maximum number of attempts per step before the run fails.
    max_attempts: i64 = INPUT.create_only().between(1, 20).default("5").in_meta().example("5");
    /// Conditions that must be true for a run to start: `field`, `op` and `value`.
    conditions: ConditionList = INPUT.create_only().default("[]").shown(NOWHERE).example(r#"[{"field": "data.total", "op": "gte", "value": 1000}]"#);
    /// The steps, in order; at most fifty.
    steps: StepList = REQUIRED.create_only().sent_only().example(r#"[{"type": "create_task", "title": "Call {{ data.name }}", "category": "call", "deadline": "P2D"}]"#);
    /// Conditions and steps.
    definition: Data = COMPUTED.in_meta();
    /// Type of the author: `key`, `user` or `operator`. The flow acts with the scopes that its author has when it runs.
    author_type: AuthorType = COMPUTED.in_meta();
    /// The key or the user that created, replaced, enabled or adopted the flow; empty for the operator.
    author_id: String = COMPUTED.in_meta();
    /// Why Kantoor stopped the flow; empty if it did not. Adopting the flow enables it again.
    stopped_reason: String = COMPUTED.at_most(4000).in_meta();
    /// When the schedule is next due, in milliseconds; 0 when there is no schedule or the flow is disabled.
    next_at: i64 = COMPUTED.shown(NOWHERE);
    /// The event that the flow listens to, under its canonical name.
    listens_to: String = COMPUTED.shown(NOWHERE);
    /// Incremented with each change of the definition: a run keeps the version that it started with.
    definition_version: i64 = COMPUTED.shown(NOWHERE);

    // For the tests in `declared.rs`.
    /// A text.
    #[cfg(test)] test_text: String = INPUT.create_only().filter().example("\"red\"");
    /// An amount.
    #[cfg(test)] test_amount: money::Amount = INPUT.create_only().filter().example("12.5");
}

impl Model for Flow {
    const MOST: i64 = 1000;

    fn check(&self, faults: &mut FieldErrors) {
        match self.trigger_type {
            // The trigger type determines which keys are valid.
            _ if faults.has("trigger_type") => {}
            TriggerType::Schedule => {
                if let Err(message) = Cron::parse(&self.trigger_key) {
                    faults.add("trigger_key", violation(FieldCode::InvalidFormat, message));
                }
            }
            TriggerType::Event if !events::is_built_in(&self.trigger_key) => {
                let hint = events::guess_widely(&self.trigger_key);
                let why = match events::is_trial(&self.trigger_key) {
                    true => "names an event that is only sent to an endpoint that is tested, and never starts a flow",
                    false => "is not an event of the service; keys of your own have the trigger_type custom",
                };
                let message = format!("{why}{hint}");
                faults.add("trigger_key", violation(FieldCode::InvalidChoice, message));
            }
            _ => {}
        }
        validate::check(&self.steps.0, self.about(), faults);
    }

    fn before_save(&mut self, tx: &mut Tx, ctx: &Ctx, before: Option<&Self>) -> Result<()> {
        self.listens_to = match self.trigger_type {
            TriggerType::Schedule => String::new(),
            _ => events::canonical(&self.trigger_key).into_owned(),
        };
        if self.active && !before.is_some_and(|before| before.active && before.listens_to == self.listens_to) {
            self.check_listeners(tx, ctx)?;
        }
        let scheduled = self.trigger_type == TriggerType::Schedule && self.active;
        let same = before.is_some_and(|before| {
            before.active && before.trigger_key == self.trigger_key && before.trigger_type == self.trigger_type
        });
        if !scheduled {
            self.next_at = 0;
        } else if !same {
            let next = Cron::parse(&self.trigger_key).ok().and_then(|cron| cron.next(ctx.now, &ctx.zone));
            self.next_at = next.map_or(0, |next| next.0);
        }
        if before.is_none_or(|before| before.definition != self.definition) {
            if self.base.id.is_empty() {
                self.base.id = ctx.new_id();
            }
            let sql = "SELECT coalesce(max(version), 0) FROM flow_definitions WHERE account_id = $1 AND flow_id = $2";
            let last = tx.int(sql, &[ctx.account.into(), (&self.base.id).into()])?;
            // More than the flow says if somebody changed that in the database.
            self.definition_version = self.definition_version.max(last) + 1;
            tx.execute(
                "INSERT INTO flow_definitions (account_id, flow_id, version, definition, author_type, author_id)
                 VALUES ($1, $2, $3, $4, $5, $6)",
                &[
                    ctx.account.into(),
                    (&self.base.id).into(),
                    self.definition_version.into(),
                    (&self.definition.0).into(),
                    self.author_type.wire().into(),
                    (&self.author_id).into(),
                ],
            )?;
        } else {
            // Runs in progress go on with the new author, also if it was changed in the database before.
            tx.execute(
                "UPDATE flow_definitions SET author_type = $1, author_id = $2
                 WHERE account_id = $3 AND flow_id = $4 AND version = $5 AND (author_type <> $1 OR author_id <> $2)",
                &[
                    self.author_type.wire().into(),
                    (&self.author_id).into(),
                    ctx.account.into(),
                    (&self.base.id).into(),
                    self.definition_version.into(),
                ],
            )?;
        }
        Ok(())
    }

    fn events(&self, before: Option<&Self>) -> Vec<&'static str> {
        match before {
            Some(before) if before.active != self.active => vec![if self.active { "activated" } else { "deactivated" }],
            _ => Vec::new(),
        }
    }
}

/// Maximum number of active flows on one event: their runs are written in its transaction.
const LISTENERS: i64 = 200;

impl Flow {
    /// Rejects another active flow on an event that already triggers the maximum.
    fn check_listeners(&self, tx: &mut Tx, ctx: &Ctx) -> Result<()> {
        let sql =
            "SELECT count(*) FROM flows WHERE account_id = $1 AND listens_to = $2 AND listens_to <> '' AND active = 1
                   AND id <> $3";
        if tx.int(sql, &[ctx.account.into(), (&self.listens_to).into(), (&self.base.id).into()])? < LISTENERS {
            return Ok(());
        }
        let message = format!(
            "{LISTENERS} active flows are triggered by the event '{}'. Disable one of them first.",
            self.trigger_key
        );
        Err(Error::new(Code::LimitReached, message))
    }
}

/// Declares a list in a flow, stored as JSON.
macro_rules! list_kind {
    ($(#[doc = $about:literal])+ $name:ident, $read:expr, $items:expr, $most:expr) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name(pub Value);

        impl Kind for $name {
            const NAME: &'static str = "data";

            fn to_db(&self) -> store::Value<'_> {
                self.0.to_string().into()
            }

            fn from_db(row: &Row, column: usize) -> store::Result<Self> {
                match serde_json::from_str(row.text(column)?) {
                    Ok(list @ Value::Array(_)) => Ok($name(list)),
                    _ => Err(store::Error::unreadable("it is not a JSON array")),
                }
            }

            fn from_json(json: &Json, _: &Rules) -> Result<Self, Violation> {
                let value = plain(json)?;
                let mut faults = FieldErrors::default();
                ($read)(&value, &mut faults);
                faults.inside()?;
                Ok($name(value))
            }

            fn to_json(&self, _: &Rules, out: &mut Vec<u8>) {
                out.extend_from_slice(self.0.to_string().as_bytes());
            }

            fn schema(_: &Rules) -> Value {
                json!({"type": "array", "maxItems": $most, "items": $items})
            }

            fn is_empty(&self) -> bool {
                self.0.as_array().is_none_or(Vec::is_empty)
            }
        }
    };
}

list_kind!(
    /// The conditions of a flow.
    ConditionList,
    |value: &Value, faults: &mut FieldErrors| { conditions::read(value, "", TRIGGER_ROOTS, faults); },
    described::condition(),
    conditions::MAX_CONDITIONS
);
list_kind!(
    /// The steps of a flow.
    StepList,
    |value: &Value, faults: &mut FieldErrors| { read_steps(value, "", faults); },
    described::step(),
    MAX_STEPS
);

/// Converts the JSON that was sent; rejects strings and numbers that cannot be represented.
fn plain(json: &Json) -> Result<Value, Violation> {
    let Json::List(_) = json else { return Err(record::wrong_type("an array", json)) };
    let mut text = Vec::new();
    json.write(&mut text)?;
    if text.len() > LONGEST {
        return Err(violation(FieldCode::TooLong, format!("may have at most {LONGEST} bytes")));
    }
    serde_json::from_slice(&text).map_err(|_| violation(FieldCode::InvalidFormat, "cannot be read"))
}

/// Maximum size of a definition, in bytes.
const LONGEST: usize = 256 * 1024;

impl Flow {
    /// Returns the kind of record that its event is about, if it is known.
    fn about(&self) -> &str {
        match self.trigger_type {
            TriggerType::Event => events::kind_of(&self.trigger_key),
            _ => "",
        }
    }

    /// Returns what its conditions and templates can refer to.
    fn subject(&self) -> Subject {
        match self.trigger_type {
            TriggerType::Schedule => Subject::of_schedule(),
            _ => Subject::of_event(self.trigger_key.trim()),
        }
    }

    /// Returns what is probably a mistake in its event, these conditions and these steps, with the path of each.
    fn doubts(&self, tx: &mut Tx, ctx: &Ctx, conditions: &Value, steps: &Value) -> Result<Vec<String>> {
        let doubt = match self.trigger_type {
            TriggerType::Schedule => None,
            _ => events::doubt(self.trigger_key.trim()).map(|why| format!("trigger_key: {why}")),
        };
        let lists = lint::Lists::read(tx, ctx)?;
        let found = lint::of(&self.subject(), &lists, conditions, steps);
        let missing = lint::references::of(tx, ctx, self.about(), steps)?;
        Ok(doubt.into_iter().chain(found).chain(missing).collect())
    }

    /// As [`Flow::doubts`], about its stored definition, unless it is disabled.
    fn doubts_when_active(&self, tx: &mut Tx, ctx: &Ctx) -> Result<Vec<String>> {
        if !self.active {
            return Ok(Vec::new());
        }
        let definition = self.definition.json();
        self.doubts(tx, ctx, &definition["conditions"], &definition["steps"])
    }

    /// Computes the definition from the steps and conditions that were sent.
    fn compose(&mut self) {
        self.trigger_key = self.trigger_key.trim().to_string();
        self.step_count = self.steps.0.as_array().map_or(0, |steps| i64::try_from(steps.len()).unwrap_or(0));
        self.definition = json!({"conditions": self.conditions.0, "steps": self.steps.0}).into();
    }

    /// Builds the flow from the input.
    fn of(input: &Input<Flow>) -> Flow {
        let mut flow = input.record();
        flow.compose();
        flow
    }

    /// Makes the caller the author, who must have every scope that the flow requires.
    fn adopt(&mut self, tx: &mut Tx, ctx: &Ctx) -> Result<()> {
        let event = match self.trigger_type {
            TriggerType::Schedule => "",
            _ => self.trigger_key.as_str(),
        };
        let definition = Definition::parse(&self.definition.0);
        needs::check_caller(ctx, event, &definition)?;
        // Its runs do what a person is asked the password for.
        if needs::gives_power(event, &definition) {
            check_confirmed(tx, ctx)?;
        }
        let author = Author::calling(ctx);
        (self.author_type, self.author_id) = (author.kind, author.id);
        self.stopped_reason.clear();
        Ok(())
    }
}

/// Checks the URLs in the input, then runs `save` in the transaction.
fn with_good_addresses(
    input: Input<Flow>,
    save: fn(&mut Tx, &Ctx, &Call, &Input<Flow>) -> Result<Answer>,
    call: Call,
) -> Work {
    let addresses = addresses(&input.values().steps.0);
    let save = move |tx: &mut Tx, ctx: &Ctx, call: &Call, input: &Input<Flow>| -> Result<Answer> {
        let new = input.values();
        let doubts = new.doubts(tx, ctx, &new.conditions.0, &new.steps.0)?;
        let warnings = [input.warnings.as_slice(), &doubts].concat();
        Ok(save(tx, ctx, call, input)?.with_texts("warnings", &warnings))
    };
    addresses.checked(move |tx, ctx, mut faults| {
        if !faults.0.is_empty() {
            faults.join(records::check_references(tx, ctx, &Flow::of(&input), &input))?;
            faults.into_result()?;
        }
        save(tx, ctx, &call, &input)
    })
}

/// Rejects an invalid flow, with the errors of its URLs.
fn reject(call: &Call, error: Error) -> Result<Work> {
    let Some(Json::Object(members)) = &call.body else { return Err(error) };
    let steps = members.iter().find(|(name, _)| name == "steps").and_then(|(_, steps)| plain(steps).ok());
    addresses(&steps.unwrap_or_default()).reject(error)
}

/// Reads the flow in a body. A step that is invalid by itself does not hide what is wrong with the others.
fn read(call: &Call) -> Result<Input<Flow>> {
    input::create_with(call, |input: &Input<Flow>, faults| {
        let Some(Json::Object(members)) = &call.body else { return };
        // Valid ones have been checked.
        let is_unread = !input.values().steps.0.is_array();
        let steps = members.iter().find(|(name, _)| name == "steps" && is_unread);
        if let Some(steps) = steps.and_then(|(_, steps)| plain(steps).ok()) {
            validate::check(&steps, input.values().about(), faults);
        }
    })
}

/// `POST /v1/automation/flows`
fn create(call: Call) -> Result<Work> {
    let input = match read(&call) {
        Ok(input) => input,
        Err(error) => return reject(&call, error),
    };
    Ok(with_good_addresses(
        input,
        |tx, ctx, _, input| {
            let mut flow = Flow::of(input);
            flow.adopt(tx, ctx)?;
            records::check_references(tx, ctx, &flow, input)?;
            records::add(tx, ctx, &mut flow)?;
            Ok(Answer::created(ctx, &flow, CREATED))
        },
        call,
    ))
}

/// `PUT /v1/automation/flows/{id}`
fn replace(call: Call) -> Result<Work> {
    let input = match read(&call) {
        Ok(input) => input,
        Err(error) => return reject(&call, error),
    };
    Ok(with_good_addresses(
        input,
        |tx, ctx, call, input| {
            let before: Flow = records::find_to_change(tx, ctx, call)?;
            let mut flow = before.clone();
            input.replace_in(&mut flow);
            flow.compose();
            flow.adopt(tx, ctx)?;
            records::check_references(tx, ctx, &flow, input)?;
            // A PUT without `active` keeps the current value. A flow that was stopped has an author again.
            if !input.has("active") {
                flow.active = before.active || !before.stopped_reason.is_empty();
            }
            records::change(tx, ctx, &before, &mut flow, "updated")?;
            Ok(Answer::record(ctx, &flow, DETAIL))
        },
        call,
    ))
}

input! {
    /// Whether a flow starts runs.
    pub struct Switch;

    /// Whether the flow is enabled. Runs in progress continue either way.
    active: bool = REQUIRED.example("true");
}

impl Body for Switch {}

/// `PATCH /v1/automation/flows/{id}`
fn switch(call: Call) -> Result<Work> {
    let input: Input<Switch> = input::patch(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let before: Flow = records::find_to_change(tx, ctx, &call)?;
        let mut flow = before.clone();
        flow.active = input.record().active;
        if flow.active && !before.active {
            flow.adopt(tx, ctx)?;
        }
        records::change(tx, ctx, &before, &mut flow, "updated")?;
        let warnings = [input.warnings.as_slice(), &flow.doubts_when_active(tx, ctx)?].concat();
        Ok(Answer::record(ctx, &flow, UPDATED).with_texts("warnings", &warnings))
    }))
}

/// `POST /v1/automation/flows/{id}/adopt`
fn adopt(call: Call) -> Result<Work> {
    let warnings = input::nothing(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let before: Flow = records::find_to_change(tx, ctx, &call)?;
        let mut flow = before.clone();
        flow.adopt(tx, ctx)?;
        flow.active |= !before.stopped_reason.is_empty();
        records::change(tx, ctx, &before, &mut flow, "adopted")?;
        let warnings = [warnings.as_slice(), &flow.doubts_when_active(tx, ctx)?].concat();
        Ok(Answer::record(ctx, &flow, UPDATED).with_texts("warnings", &warnings))
    }))
}

/// `DELETE /v1/automation/flows/{id}`. Runs in progress continue with their definition.
fn remove(call: Call) -> Result<Work> {
    records::delete::<Flow>(call)
}

/// The resource of flows.
pub(crate) fn resource() -> Resource {
    Resource::of::<Flow>("Automation flows", "automation", MIGRATIONS)
        .at("/v1/automation/flows")
        .guarded()
        .logged(Logged::Except(&["next_at"]))
        .list::<Flow>()
        .get::<Flow>()
        .verb(Verb::Patch, switch)
        .body::<Switch>(RequestBody::Patch)
        .verb(Verb::Create, create)
        .extension()
        .route(Method::Put, "/{id}", "Replace a flow", replace)
        .body::<Flow>(RequestBody::Body)
        .extension()
        .verb(Verb::Delete, remove)
        .extension()
        .route(Method::Post, "/{id}/adopt", "Become the author of a flow; one that was stopped is enabled again", adopt)
        .returns(Returns::Item(UPDATED))
        .extension()
}

/// Reads a flow of the library as if it was sent.
pub(crate) fn sent(body: &Value) -> Result<Flow> {
    let call = Call { body: Some(Json::parse(body.to_string().as_bytes())?), ..Call::default() };
    input::create(&call)
        .map(|input| Flow::of(&input))
        .map_err(|error| Error::internal(format!("a flow of the library: {error} {:?}", error.faults)))
}

/// Deletes up to two hundred definitions that are no longer needed, and returns how many. The current definition of a
/// flow is needed, and so is each one that a run follows; a run that started after the last change of its flow follows
/// the current one. The margin of a day allows for clock differences between nodes.
pub fn purge(tx: &mut Tx, ctx: &Ctx) -> Result<u64> {
    let sql = "DELETE FROM flow_definitions WHERE account_id = $1 AND (flow_id, version) IN
               (SELECT old.flow_id, old.version FROM flow_definitions AS old
                LEFT JOIN flows ON flows.account_id = old.account_id AND flows.id = old.flow_id
                WHERE old.account_id = $1 AND old.version <> coalesce(flows.definition_version, 0)
                  AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.account_id = $1 AND runs.flow_id = old.flow_id
                                  AND runs.created_at <= coalesce(flows.updated_at + $2, $3))
                LIMIT 200)";
    // Without its flow, every run counts.
    Ok(tx.execute(sql, &[ctx.account.into(), DAY.into(), i64::MAX.into()])?)
}

/// In milliseconds.
const DAY: i64 = 24 * 3600 * 1000;

const MIGRATIONS: &[Migration] = &[Migration {
    number: 57,
    name: "flows",
    sql: "
CREATE TABLE flows (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    category TEXT NOT NULL,
    trigger_type TEXT NOT NULL,
    trigger_key TEXT NOT NULL,
    active BIGINT NOT NULL,
    step_count BIGINT NOT NULL,
    max_attempts BIGINT NOT NULL,
    definition TEXT NOT NULL,
    next_at BIGINT NOT NULL,
    listens_to TEXT NOT NULL,
    conditions TEXT NOT NULL,
    definition_version BIGINT NOT NULL,
    author_type TEXT NOT NULL DEFAULT 'operator',
    author_id TEXT NOT NULL DEFAULT '',
    stopped_reason TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX flows_created ON flows (account_id, created_at, id);
CREATE INDEX flows_trigger_type ON flows (account_id, trigger_type, created_at, id);
CREATE INDEX flows_active ON flows (account_id, active, created_at, id);
CREATE INDEX flows_heard ON flows (account_id, listens_to) WHERE active = 1;
CREATE INDEX flows_next ON flows (account_id, next_at) WHERE next_at > 0;
CREATE INDEX flows_category ON flows (account_id, category, created_at, id);
CREATE TABLE flow_definitions (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    flow_id TEXT NOT NULL,
    version BIGINT NOT NULL,
    definition TEXT NOT NULL,
    author_type TEXT NOT NULL DEFAULT 'operator',
    author_id TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (account_id, flow_id, version)
) STRICT, WITHOUT ROWID;
",
}];
