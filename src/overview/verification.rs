//! Whether the log of the account is as it was written. Reading a long log takes a minute, so a job does it, in slices that are
//! transactions of their own. They only read; after each run the job stores its place, where another run, process or node
//! continues. A short log is verified within the request.

mod kept;

use std::time::{Duration, Instant};

use engine::app::App;
use engine::call::{Answer, Call, Outcome};
use engine::context::Ctx;
use engine::error::Result;
use engine::input;
use engine::jobs::{self, Claimed, Ending, Job, NewJob};
use engine::record::Shape;
use engine::records::Work;
use engine::resource::{Method, Part, Resource, Returns};
use serde::{Deserialize, Serialize};
use store::Tx;

pub(crate) use kept::MIGRATION;
use kept::Verification;

/// How many slices of a thousand lines the request does itself.
const SLICES_OF_REQUEST: usize = 3;
/// The delay of the job, in seconds, during which the request does its slices.
const REQUEST_SECONDS: i64 = 15;
/// How long the job runs until it is the turn of the jobs of other accounts.
const RUN: Duration = Duration::from_secs(1);

static SHAPE: Shape = Shape::new("log_verification", "log_verifications", &["A verification of the log."]);

const PARTS: &[Part] = &[
    Part("state", "string", "`none` before the first verification, then `running`, and `done` at its end."),
    Part("lines", "integer", "The number of lines verified; at the end, up to the last one that belongs to the chain."),
    Part("total", "integer", "The number of lines of the log."),
    Part(
        "intact",
        "boolean or null",
        "Whether every line is as it was written, none is missing, and the log continues its signed head; null until it is done.",
    ),
    Part(
        "head",
        "string",
        "The hash of the last line, which covers all lines before it; empty if the log is not intact, or until it is done.",
    ),
    Part(
        "problem",
        "string",
        "What is wrong with the log: the first line that is not as it was written, or how the log differs from its signed head.",
    ),
    Part("verified_at", "date-time or null", "When the verification ended; null until it is done."),
];

/// A job that verifies the log of its account from the stored place on.
#[derive(Serialize, Deserialize)]
pub(crate) struct VerifyLog {}

/// The routes that verify the log.
pub(crate) fn resource() -> Resource {
    Resource::without_records(&SHAPE, "Audit", "audit", &[])
        .at("/v1/audit/verification")
        .route(Method::Get, "", "Retrieve the last verification of the log", get)
        .returns(Returns::Parts(PARTS))
        .extension()
        .route(Method::Post, "", "Verify the log of the account", start)
        .returns(Returns::StartedParts(PARTS))
        // It changes no record.
        .with(|route| route.instead = Some("audit.read"))
        .extension()
}

/// `GET /v1/audit/verification`
fn get(_: Call) -> Result<Work> {
    Ok(Box::new(|tx, ctx| {
        let found = Verification::find(tx, &ctx.site.vault, ctx.account)?;
        Ok(Answer::json(&found.map_or_else(Verification::none, |own| own.shown())))
    }))
}

/// `POST /v1/audit/verification`
fn start(call: Call) -> Result<Work> {
    let warnings = input::nothing(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let running = Verification::find(tx, &ctx.site.vault, ctx.account)?.filter(|own| !own.is_done());
        if let Some(own) = running {
            // Its job may have failed for good.
            enqueue(tx, ctx, 0)?;
            return Ok(started(&own, &warnings));
        }
        let own = Verification::begin(tx, ctx)?;
        enqueue(tx, ctx, if call.early { 0 } else { REQUEST_SECONDS })?;
        if call.early {
            return Ok(started(&own, &warnings));
        }
        let warnings = warnings.clone();
        Ok(Answer::after(move |app, _| {
            let (own, warnings) = (advance(app, &own, |slices| slices < SLICES_OF_REQUEST)?, warnings.clone());
            Ok(Box::new(move |tx, ctx| {
                own.keep(tx, &ctx.site.vault)?;
                match own.is_done() {
                    true => jobs::call_off(tx, &key(ctx.account)).map(drop)?,
                    false => jobs::hasten(tx, ctx.account, VerifyLog::LANE, VerifyLog::KIND, ctx.machine_now)?,
                }
                Ok(started(&own, &warnings))
            }))
        }))
    }))
}

fn started(own: &Verification, warnings: &[String]) -> Answer {
    Answer { outcome: Outcome::Started, ..Answer::json(&own.shown()) }.with_texts("warnings", warnings)
}

/// Returns the unique key of the job: an account has at most one.
fn key(account: i64) -> String {
    format!("{} {account}", VerifyLog::KIND)
}

fn enqueue(tx: &mut Tx, ctx: &Ctx, delay: i64) -> Result<()> {
    let job = NewJob::of(ctx, &VerifyLog {})?.keyed(key(ctx.account)).after(delay);
    jobs::enqueue(tx, ctx, &job)
}

impl Job for VerifyLog {
    const KIND: &'static str = "verify_log";

    fn run(&self, app: &App, claimed: &Claimed) -> Result<Ending> {
        let (number, vault) = (claimed.account, app.site.vault.clone());
        let found = app.store.read_now(move |tx| Verification::find(tx, &vault, number))?;
        let Some(own) = found.filter(|own| !own.is_done()) else { return Ok(Ending::Done) };
        let begun = Instant::now();
        let own = advance(app, &own, |_| begun.elapsed() < RUN)?;
        let (is_done, vault) = (own.is_done(), app.site.vault.clone());
        app.store.write_now(number, move |tx| own.keep(tx, &vault))?;
        Ok(if is_done { Ending::Done } else { Ending::Again(app.clock.now()) })
    }
}

/// Verifies slice after slice, each in a transaction of its own, as long as `goes_on` after a number of slices.
fn advance(app: &App, own: &Verification, goes_on: impl Fn(usize) -> bool) -> Result<Verification> {
    let mut own = own.clone();
    let mut slices = 0;
    while !own.is_done() && (slices == 0 || goes_on(slices)) {
        own = app.store.read_now(|tx| own.advance(tx, &app.site.vault, app.clock.now()))?;
        slices += 1;
    }
    Ok(own)
}
