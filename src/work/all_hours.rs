//! Hours across projects: listing them, and submitting, approving, rejecting or withdrawing several at once.

use engine::call::{Answer, Call};
use engine::context::Ctx;
use engine::error::{Code, Result};
use engine::input;
use engine::input::Input;
use engine::record::{Body, Fields, INPUT, REQUIRED, Shape, Texts};
use engine::records::{self, Work};
use engine::resource::{Method, Part, RequestBody, Resource, Returns};
use serde_json::{Value, json};
use store::Tx;

use super::hour::{Hour, Status};

static SHAPE: Shape = Shape::new("hour_entry", "hour_entries", &["Time worked on any project."]);

input! {
    /// The entries to change.
    pub struct Several;

    /// The ids of the entries: 200 at most.
    ids: Texts = REQUIRED.example("[\"0198d1c2-7b7e-7c3a-9d53-2f1d8c6a0b11\"]");
}

impl Body for Several {}

input! {
    /// The entries to reject.
    pub struct Rejected;

    /// The ids of the entries: 200 at most.
    ids: Texts = REQUIRED.example("[\"0198d1c2-7b7e-7c3a-9d53-2f1d8c6a0b11\"]");
    /// The reason, for whoever worked them.
    reason: String = INPUT.example("\"Please add what you did\"");
}

impl Body for Rejected {}

const CHANGED: &[Part] = &[
    Part("changed", "array", "The ids of the entries that were changed."),
    Part(
        "refused",
        "array",
        "The entries that were not: `id`, `code` and `message` of the error, such as `not_found` or `invalid_transition`.",
    ),
];

/// The routes of hours across projects.
pub(crate) fn resource() -> Resource {
    Resource::without_records(&SHAPE, "Hours", "projects", Hour::infos())
        .at("/v1/hours")
        .across::<Hour>()
        .extension()
        .route(Method::Post, "/submit", "Submit several entries for approval", |call| {
            become_status(call, Status::Submitted, "submitted")
        })
        .body::<Several>(RequestBody::Body)
        .returns(Returns::Parts(CHANGED))
        .extension()
        .route(Method::Post, "/approve", "Approve several entries, which locks them", |call| {
            become_status(call, Status::Approved, "approved")
        })
        .body::<Several>(RequestBody::Body)
        .returns(Returns::Parts(CHANGED))
        .extension()
        .route(Method::Post, "/reject", "Reject several entries, with a reason if you send one", reject)
        .body::<Rejected>(RequestBody::Body)
        .returns(Returns::Parts(CHANGED))
        .extension()
        .route(Method::Post, "/withdraw", "Withdraw several entries, which become drafts again", |call| {
            become_status(call, Status::Draft, "updated")
        })
        .body::<Several>(RequestBody::Body)
        .returns(Returns::Parts(CHANGED))
        .extension()
}

fn become_status(call: Call, to: Status, event: &'static str) -> Result<Work> {
    let input: Input<Several> = input::create(&call)?;
    Ok(change_all(input.record().ids, Move { to, reason: String::new(), event }, input.warnings))
}

fn reject(call: Call) -> Result<Work> {
    let input: Input<Rejected> = input::create(&call)?;
    let Rejected { ids, reason } = input.record();
    Ok(change_all(ids, Move { to: Status::Rejected, reason, event: "rejected" }, input.warnings))
}

/// What becomes of entries.
struct Move {
    to: Status,
    reason: String,
    event: &'static str,
}

/// Changes the entries that allow it. One that somebody else changed meanwhile does not keep back the others.
fn change_all(ids: Texts, how: Move, warnings: Vec<String>) -> Work {
    Box::new(move |tx, ctx| {
        let (mut changed, mut refused) = (Vec::new(), Vec::new());
        for id in &ids.0 {
            match change(tx, ctx, id, &how) {
                Ok(()) => changed.push(Value::from(id.as_str())),
                Err(error) if [Code::NotFound, Code::InvalidTransition, Code::Locked].contains(&error.code) => {
                    refused.push(json!({"id": id, "code": error.code.wire(), "message": error.message}));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Answer::json(&json!({"changed": changed, "refused": refused})).with_texts("warnings", &warnings))
    })
}

fn change(tx: &mut Tx, ctx: &Ctx, id: &str, how: &Move) -> Result<()> {
    let before: Hour = records::find(tx, ctx, id)?;
    let mut hour = before.clone();
    // Checked before anything is written.
    hour.move_to(how.to, &how.reason)?;
    records::change(tx, ctx, &before, &mut hour, how.event)
}
