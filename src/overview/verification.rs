//! Whether the log of the account is as it was written.

use engine::call::{Answer, Call};
use engine::error::Result;
use engine::log::{self, Verdict};
use engine::record::Shape;
use engine::records::Work;
use engine::resource::{Method, Part, Resource, Returns};
use serde_json::json;

static SHAPE: Shape = Shape::new("log_verification", "log_verifications", &["The outcome of verifying the log."]);

const PARTS: &[Part] = &[
    Part("intact", "boolean", "Whether every line is as it was written, and none is missing before the last one."),
    Part("lines", "integer", "The number of lines up to the last one that is as it was written."),
    Part(
        "head",
        "string",
        "The hash of the last line, which covers all lines before it; empty if the log is not intact.",
    ),
    Part("problem", "string", "What is wrong with the first line that is not as it was written."),
    Part("verified_at", "string", "When the log was verified."),
];

/// The route that verifies the log.
pub(crate) fn resource() -> Resource {
    Resource::without_records(&SHAPE, "Audit", "audit", Vec::new())
        .at("/v1/audit/verification")
        .route(Method::Get, "", "Verify the log of the account", verify)
        .returns(Returns::Parts(PARTS))
        // It reads the whole log.
        .with(|route| route.visits_many = true)
        .extension()
}

/// `GET /v1/audit/verification`
fn verify(_: Call) -> Result<Work> {
    Ok(Box::new(|tx, ctx| {
        let (lines, head, problem) = match log::verify(tx, ctx.account)? {
            Verdict::Whole { rows, head } => (rows, head, String::new()),
            Verdict::Broken { seq, at, why } => (seq - 1, String::new(), format!("Line {seq} of {at}: {why}")),
        };
        Ok(Answer::json(&json!({
            "intact": problem.is_empty(), "lines": lines, "head": head, "problem": problem,
            "verified_at": ctx.machine_now.to_string(),
        })))
    }))
}
