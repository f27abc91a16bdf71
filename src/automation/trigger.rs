//! The routes that fire events.

use std::sync::Arc;

use engine::call::{Answer, Call};
use engine::error::Result;
use engine::input;
use engine::input::Input;
use engine::record::{Body, Data, Fields, INPUT, REQUIRED, Shape};
use engine::records::Work;
use engine::resource::{Method, Part, RequestBody, Resource, Returns};
use serde_json::{Value, json};

use super::late::Verdicts;
use super::matching::{self, Sent, SentEvent, Started};
use crate::automation::run::Status;

/// Declares the body of a trigger route; the routes differ only in the name of the record number.
macro_rules! trigger {
    ($name:ident; $($number:tt)+) => {
        input! {
            /// An event to fire.
            pub struct $name;

            /// The name of the event: a built-in event or your own key.
            event: String = REQUIRED.example("\"order.shipped\"");
            /// The `data` of the event. If it has the `id` of a record, the fields of that record are added and take precedence.
            data: Data = INPUT.example("{\"total\": 1200, \"name\": \"De Ster\"}");
            /// The type of the record.
            entity_type: String = INPUT.example("\"order\"");
            $($number)+
        }

        impl Body for $name {}
    };
}

trigger! {
    Trigger;
    /// The number of the record in another administration. Deprecated and removed in version 2: send it in `data`.
    legacy_entity_id: i64 = INPUT.example("7");
}

trigger! {
    WebhookTrigger;
    /// The number of the record in another administration; available to flows as `data.entity_id`.
    entity_id: i64 = INPUT.example("7");
}

const ABOUT: &[&str] = &["An event that is fired."];
static TRIGGER: Shape = Shape::new("trigger", "triggers", ABOUT);
static WEBHOOK_TRIGGER: Shape = Shape::new("webhook_trigger", "webhook_triggers", ABOUT);

const PARTS: &[Part] = &[
    Part("event", "string", "The event as sent."),
    Part("matched", "integer", "Number of flows started."),
    Part("runs", "array", "The runs: `flow_id`, `run_id`, `status`."),
];
const WEBHOOK_PARTS: &[Part] = &[
    Part("event", "string", "The event as sent."),
    Part("matched", "integer", "Number of flows started."),
    Part("runs", "array", "The runs: `flow_guid`, `run_guid`, `status`."),
];

/// `POST /v1/automation/trigger`
pub fn by_automation() -> Resource {
    Resource::without_records(&TRIGGER, "Automation trigger", "automation", Trigger::infos())
        .at("/v1/automation/trigger")
        .route(Method::Post, "", "Fire an event", automation)
        .body::<Trigger>(RequestBody::Body)
        .returns(Returns::Parts(PARTS))
}

/// `POST /v1/webhooks/trigger`
pub fn by_webhook() -> Resource {
    Resource::without_records(&WEBHOOK_TRIGGER, "Webhook trigger", "webhooks", WebhookTrigger::infos())
        .at("/v1/webhooks/trigger")
        .route(Method::Post, "", "Fire an event, at most 30 times per minute", webhook)
        .body::<WebhookTrigger>(RequestBody::Body)
        .returns(Returns::Parts(WEBHOOK_PARTS))
        .with(|route| {
            route.scarce = true;
            route.has_meta = false;
        })
}

fn automation(call: Call) -> Result<Work> {
    let input: Input<Trigger> = input::create(&call)?;
    let sent = input.record();
    let legacy = input.has("legacy_entity_id").then_some(("legacy_entity_id", sent.legacy_entity_id));
    let data = Sent::of(with_number(&sent.data, legacy));
    let sent = SentEvent { event: sent.event, entity_type: sent.entity_type, data };
    Ok(firing(Arc::new(sent), None, move |event, started| {
        let mut answer = answered(event, started, "flow_id", "run_id").with_texts("warnings", &input.warnings);
        if legacy.is_some() {
            answer.headers.push(("deprecation", "true".to_string()));
        }
        answer
    }))
}

fn webhook(call: Call) -> Result<Work> {
    let input: Input<WebhookTrigger> = input::create(&call)?;
    let sent = input.record();
    let number = input.has("entity_id").then_some(("entity_id", sent.entity_id));
    let data = Sent::of(with_number(&sent.data, number));
    let sent = SentEvent { event: sent.event, entity_type: sent.entity_type, data };
    Ok(firing(Arc::new(sent), None, |event, started| answered(event, started, "flow_guid", "run_guid")))
}

/// Fires an event and answers with its runs. If the conditions of its flows take too long for a transaction, they are
/// evaluated before the one that writes the event.
fn firing(
    sent: Arc<SentEvent>,
    known: Option<Verdicts>,
    answer: impl Fn(&str, &[Started]) -> Answer + Clone + Send + Sync + 'static,
) -> Work {
    Box::new(move |tx, ctx| {
        if let Some(started) = matching::fire_knowing(tx, ctx, &sent.fired(), known.as_ref())? {
            return Ok(answer(&sent.event, &started));
        }
        let (sent, answer) = (sent.clone(), answer.clone());
        Ok(Answer::after(move |app, caller| {
            let known = Verdicts::of(app, caller, &sent)?;
            Ok(firing(sent.clone(), Some(known), answer.clone()))
        }))
    })
}

/// Adds the record number to the data, unless the data already has one.
fn with_number(data: &Data, number: Option<(&str, i64)>) -> Value {
    let mut data: Value = serde_json::from_str(&data.0).unwrap_or_else(|_| json!({}));
    if let (Some((name, number)), Some(members)) = (number, data.as_object_mut()) {
        members.entry(name).or_insert_with(|| json!(number));
    }
    data
}

fn answered(event: &str, started: &[Started], flow: &str, run: &str) -> Answer {
    let runs = started.iter().map(|one| json!({flow: one.flow_id, run: one.run_id, "status": Status::Queued.wire()}));
    Answer::json(&json!({"event": event, "matched": started.len(), "runs": runs.collect::<Vec<_>>()}))
}
