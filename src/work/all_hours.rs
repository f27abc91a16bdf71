//! Hours across projects: listing them, and submitting, approving, rejecting or withdrawing several at once.

use engine::call::{Answer, Call};
use engine::context::Ctx;
use engine::error::{Code, Result};
use engine::input;
use engine::input::Input;
use engine::record::{Body, Fields, REQUIRED, Shape, Texts};
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
        .route(Method::Post, "/reject", "Reject several entries", |call| {
            become_status(call, Status::Rejected, "rejected")
        })
        .body::<Several>(RequestBody::Body)
        .returns(Returns::Parts(CHANGED))
        .extension()
        .route(Method::Post, "/withdraw", "Withdraw several entries, which become drafts again", |call| {
            become_status(call, Status::Draft, "updated")
        })
        .body::<Several>(RequestBody::Body)
        .returns(Returns::Parts(CHANGED))
        .extension()
}

/// Changes the entries that allow it. One that somebody else changed meanwhile does not keep back the others.
fn become_status(call: Call, to: Status, event: &'static str) -> Result<Work> {
    let input: Input<Several> = input::create(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let (mut changed, mut refused) = (Vec::new(), Vec::new());
        for id in &input.values().ids.0 {
            match change(tx, ctx, id, to, event) {
                Ok(()) => changed.push(Value::from(id.as_str())),
                Err(error) if [Code::NotFound, Code::InvalidTransition, Code::Locked].contains(&error.code) => {
                    refused.push(json!({"id": id, "code": error.code.wire(), "message": error.message}));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Answer::json(&json!({"changed": changed, "refused": refused})).with_texts("warnings", &input.warnings))
    }))
}

fn change(tx: &mut Tx, ctx: &Ctx, id: &str, to: Status, event: &str) -> Result<()> {
    let before: Hour = records::find(tx, ctx, id)?;
    let mut hour = before.clone();
    // Checked before anything is written.
    hour.move_to(to)?;
    records::change(tx, ctx, &before, &mut hour, event)
}
