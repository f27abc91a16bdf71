//! Whether the log of the account is as it was written.

use engine::accounts::Account;
use engine::call::{Answer, Call};
use engine::error::Result;
use engine::heads;
use engine::log::{self, Verdict};
use engine::record::Shape;
use engine::records::Work;
use engine::resource::{Method, Part, Resource, Returns};
use serde_json::json;

static SHAPE: Shape = Shape::new("log_verification", "log_verifications", &["The outcome of verifying the log."]);

const PARTS: &[Part] = &[
    Part(
        "intact",
        "boolean",
        "Whether every line is as it was written, none is missing, and the log continues its signed head.",
    ),
    Part("lines", "integer", "The number of lines up to the last one that belongs to the chain."),
    Part(
        "head",
        "string",
        "The hash of the last line, which covers all lines before it; empty if the log is not intact.",
    ),
    Part(
        "problem",
        "string",
        "What is wrong with the log: the first line that is not as it was written, or how the log differs from its signed head.",
    ),
    Part("verified_at", "date-time", "When the log was verified."),
];

/// The route that verifies the log.
pub(crate) fn resource() -> Resource {
    Resource::without_records(&SHAPE, "Audit", "audit", &[])
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
        let account = Account::numbered(tx, ctx.account)?;
        // Read before the log, which continues it.
        let signed = heads::saved_of(tx, ctx.account)?;
        let (lines, head, broken) = match log::verify(tx, ctx.account)? {
            Verdict::Whole { rows, head } => (rows, head, None),
            Verdict::Broken { seq, at, why } => (seq - 1, String::new(), Some(format!("Line {seq} of {at}: {why}"))),
        };
        let found = heads::check(tx, Some(&ctx.site.vault), &account, signed.as_ref(), broken.is_none())?;
        let problems: Vec<String> = broken.into_iter().chain(found.into_iter().map(|(_, what)| what)).collect();
        let (is_intact, problem) = (problems.is_empty(), problems.join("; "));
        Ok(Answer::json(&json!({
            "intact": is_intact, "lines": lines, "head": if is_intact { head } else { String::new() },
            "problem": problem, "verified_at": ctx.machine_now.to_string(),
        })))
    }))
}
