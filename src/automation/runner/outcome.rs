//! Applies the outcome of a step to its run: status, report and the time at which it continues.

use std::ops::ControlFlow;

use engine::backoff::{self, Backoff};
use engine::clock::Moment;
use engine::context::Ctx;
use engine::leases::Confirmed;
use engine::record::When;
use serde_json::{Value, json};

use crate::automation::calls::{LEASE_SECONDS, Outgoing, PendingCall};
use crate::automation::definition::Step;
use crate::automation::report::Report;
use crate::automation::run::{Run, Status};
use crate::automation::steps::{Done, StepError};

/// The delays between the attempts of a failing step.
const RETRY: Backoff = backoff::UP_TO_AN_HOUR;

/// Whether the run continues with its next step immediately; otherwise the call to make, if any.
type Next = ControlFlow<Option<PendingCall>>;

/// Records the outcome of a step. A call is recorded only if there is `room` for it.
pub fn record(ctx: &Ctx, node: &str, run: &mut Run, done: Done, room: usize) -> Next {
    match done {
        Done::Wait(until) if until > ctx.now => {
            begin(ctx, run, Status::Waiting);
            // One attempt, however often it is checked.
            report(run).attempts = 1;
            run.attempts = 1;
            report(run).result = json!({"until": until.to_string()});
            wait(run, Status::Waiting, until);
            Next::Break(None)
        }
        Done::Wait(until) => {
            begin_unless(ctx, run, Status::Waiting);
            succeeded(ctx, run, json!({"until": until.to_string()}));
            Next::Continue(())
        }
        Done::Approval(message) => {
            begin(ctx, run, Status::PendingApproval);
            report(run).result = json!({"message": message});
            run.status = Status::PendingApproval;
            Next::Break(None)
        }
        Done::Call(_) if room == 0 => {
            // Other runs may continue in the meantime. A test clock does not advance, so it cannot wait a second.
            let later = if ctx.has_test_clock { ctx.now } else { ctx.now.plus_seconds(1) };
            run.status = Status::Queued;
            run.due_at = later.0;
            Next::Break(None)
        }
        Done::Call(call) => Next::Break(Some(announce(ctx, node, run, call))),
        Done::Result(result) => {
            begin(ctx, run, Status::Running);
            succeeded(ctx, run, result);
            Next::Continue(())
        }
        Done::Enough(result) => {
            begin(ctx, run, Status::Running);
            succeeded(ctx, run, result);
            complete(ctx, run);
            Next::Break(None)
        }
    }
}

/// Records a failed attempt of a step.
pub fn record_failure(ctx: &Ctx, run: &mut Run, step: &Step, trouble: &StepError) -> Next {
    begin(ctx, run, Status::Running);
    failed(ctx, run, step, trouble);
    if run.due_at > 0 || run.is_final() { Next::Break(None) } else { Next::Continue(()) }
}

/// Ends a run that has no steps left.
pub fn complete(ctx: &Ctx, run: &mut Run) {
    run.error.clear();
    run.end(ctx, if run.failures > 0 { Status::Partial } else { Status::Success });
}

/// Gives the run a lease and a new claim number, under which a worker makes the call.
fn announce(ctx: &Ctx, node: &str, run: &mut Run, call: Outgoing) -> PendingCall {
    begin(ctx, run, Status::Running);
    report(run).call = Some(call.clone());
    run.claim += 1;
    run.status = Status::Running;
    run.lease_until = ctx.machine_now.plus_seconds(LEASE_SECONDS).0;
    run.node = node.to_string();
    let key = format!("{}.{}", run.base.id, run.step);
    let run_id = run.base.id.clone();
    PendingCall { account: ctx.account, run_id, claim: run.claim, key, call, confirmed: Confirmed::now() }
}

/// Starts another attempt of the current step.
fn begin(ctx: &Ctx, run: &mut Run, status: Status) {
    let place = run.place();
    if run.results.0.len() <= place {
        run.results.0.resize(place + 1, Report::default());
        run.attempts = 0;
    }
    run.attempts += 1;
    let attempts = run.attempts;
    let report = report(run);
    if report.started_at.is_empty() {
        report.started_at = ctx.now.to_string();
    }
    report.attempts = attempts;
    report.status = Some(status);
}

/// Starts the current step unless it has already started.
fn begin_unless(ctx: &Ctx, run: &mut Run, status: Status) {
    if run.results.0.len() <= run.place() {
        begin(ctx, run, status);
    }
}

/// Returns the report of the current step, which has started.
fn report(run: &mut Run) -> &mut Report {
    let place = run.place();
    if run.results.0.len() <= place {
        run.results.0.resize(place + 1, Report::default());
    }
    &mut run.results.0[place]
}

/// Completes the current step and moves to the next.
pub fn succeeded(ctx: &Ctx, run: &mut Run, result: Value) {
    let report = report(run);
    report.result = result;
    report.error.clear();
    report.close(ctx, Status::Success);
    run.error.clear();
    run.step += 1;
    run.actions_done += 1;
}

/// Records a failed attempt: schedules a retry, or fails the step or the run.
pub fn failed(ctx: &Ctx, run: &mut Run, step: &Step, trouble: &StepError) {
    let again = !trouble.for_good && run.attempts < run.max_attempts;
    let words = format!("Step {} ({}): {}", run.step + 1, step.kind, trouble.words);
    report(run).error.clone_from(&trouble.words);
    if again || trouble.opens_after.is_some() {
        report(run).status = Some(Status::Retrying);
        run.error = words;
        let pause = match trouble.opens_after {
            // Waiting for a quota uses up no attempt, or a queue of a few days would fail.
            Some(seconds) => {
                run.attempts -= 1;
                report(run).attempts = run.attempts;
                seconds.into()
            }
            None => RETRY.seconds(&run.base.id, run.attempts),
        };
        wait(run, Status::Retrying, ctx.now.plus_seconds(pause));
        return;
    }
    report(run).close(ctx, Status::Failed);
    if step.continue_on_error {
        run.failures += 1;
        run.step += 1;
        return;
    }
    run.error = words;
    run.end(ctx, Status::Failed);
}

/// Makes the run wait until a moment.
pub fn wait(run: &mut Run, status: Status, until: Moment) {
    run.status = status;
    run.due_at = until.0;
    run.next_attempt_at = When(Some(until));
}
