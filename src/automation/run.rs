//! Runs of flows.

use engine::ahead::RetryTable;
use engine::call::{Answer, Call, Outcome};
use engine::context::Ctx;
use engine::error::{Code, Error, Result};
use engine::leases::{Lease, LeaseTable};
use engine::record::{ALL, COMPUTED, Data, Link, NOWHERE, Transitions, When};
use engine::records::{self, Work};
use engine::resource::{Method, Part, Resource, Returns};
use engine::tables::Logged;
use engine::{error_codes, input, list, record};
use serde_json::{Value, json};
use store::{Migration, Tx};

use crate::automation::definition::Definition;
use crate::automation::needs;
use crate::automation::report::{Report, Reports};
pub use crate::automation::status::Status;
use crate::settings::Settings;

/// The actions on a run, with the transitions that each allows.
pub const ACTIONS: &[(&str, Transitions<Status>)] = {
    use Status::{Cancelled, Failed, PendingApproval, Queued, Retrying, Running, Waiting};
    &[
        (
            "cancel",
            &[
                (Queued, &[Cancelled]),
                (Running, &[Cancelled]),
                (Waiting, &[Cancelled]),
                (Retrying, &[Cancelled]),
                (PendingApproval, &[Cancelled]),
            ],
        ),
        ("approve", &[(PendingApproval, &[Queued])]),
        ("reject", &[(PendingApproval, &[Cancelled])]),
        ("retry", &[(Failed, &[Queued]), (Retrying, &[Queued])]),
    ]
};

error_codes! {
    /// The run has already ended.
    RUN_FINISHED = "run_finished", Conflict, retry: false;
}

record! {
    /// One execution of a flow.
    pub struct Run = "run" in "runs", created_at: ALL, updated_at: ALL;

    /// The flow.
    flow_id: Link = COMPUTED.filter();
    /// Name of the flow when the run started.
    flow_name: String = COMPUTED.names();
    /// `queued`, `running`, `waiting`, `retrying`, `pending_approval`, `success`, `partial`, `failed` or
    /// `cancelled`; lists accept several, separated by commas.
    status: Status = COMPUTED.filter_many();
    /// Trigger type of the flow.
    trigger_type: String = COMPUTED;
    /// Trigger key of the flow.
    trigger_key: String = COMPUTED;
    /// The type of the record.
    entity_type: String = COMPUTED;
    /// Attempts of the current step.
    attempts: i64 = COMPUTED;
    /// Maximum number of attempts per step.
    max_attempts: i64 = COMPUTED;
    /// Number of completed steps.
    actions_done: i64 = COMPUTED;
    /// Why the run failed or is being retried.
    error: String = COMPUTED;
    /// When the run continues, if it is waiting.
    next_attempt_at: When = COMPUTED;
    /// The event that started the run.
    event: String = COMPUTED.in_meta();
    /// The id of the record that the event is about.
    entity_id: String = COMPUTED.in_meta();
    /// Depth of the chain of flows that led to this run.
    depth: i64 = COMPUTED.in_meta();
    /// Whether a caller or a step fired the event, instead of something that happened to the record.
    fired: bool = COMPUTED.in_meta();
    /// The scopes that are required to see its results and errors, separated by commas.
    reads: String = COMPUTED.shown(NOWHERE);
    /// The run at the start of the chain, or empty.
    chain: String = COMPUTED.shown(NOWHERE);
    /// Whether the run ends after its current step.
    cancel_requested: bool = COMPUTED.in_meta();
    /// When the run ended.
    finished_at: When = COMPUTED.in_meta();
    /// The version of the flow's definition that the run follows.
    flow_version: i64 = COMPUTED.shown(NOWHERE);
    /// The index of the current step.
    step: i64 = COMPUTED.shown(NOWHERE);
    /// The number of steps that failed without ending the run.
    failures: i64 = COMPUTED.shown(NOWHERE);
    /// Fencing number of the claim: a result under an older number is discarded.
    claim: i64 = COMPUTED.shown(NOWHERE);
    /// When the lease expires, by the machine's clock; 0 without a lease.
    lease_until: i64 = COMPUTED.shown(NOWHERE);
    /// The node that holds the lease.
    node: String = COMPUTED.shown(NOWHERE);
    /// The number of consecutive attempts in which the worker died.
    lost: i64 = COMPUTED.shown(NOWHERE);
    /// When the run is due, by the account's clock; 0 for never.
    due_at: i64 = COMPUTED.shown(NOWHERE);
    /// The log line that has the data of the event; 0 when the run has its own data.
    seq: i64 = COMPUTED.shown(NOWHERE);
    /// The data of the event, for a run without a log line.
    data: Data = COMPUTED.shown(NOWHERE);
    /// The reports of the steps.
    results: Reports = COMPUTED.shown(NOWHERE);
}

/// The counter of finished runs.
pub(crate) const RUNS: &str = "flow_runs_finished";
/// The statuses that a run does not leave by itself.
pub(crate) const FINAL: &[Status] = &[Status::Success, Status::Partial, Status::Failed, Status::Cancelled];

impl Run {
    /// The definition that it follows, as it was when it started.
    pub fn definition(&self, tx: &mut Tx, ctx: &Ctx) -> Result<Definition> {
        // Definitions outlive their flows, as long as a run follows them.
        let sql = "SELECT definition FROM flow_definitions WHERE account_id = $1 AND flow_id = $2 AND version = $3";
        let values = [ctx.account.into(), (&self.flow_id.0).into(), self.flow_version.into()];
        let text = tx.first(sql, &values, |row| Ok::<_, Error>(row.text(0)?.to_string()))?;
        let why = match &text {
            None if self.is_final() => return Ok(Definition::parse("")),
            None => "it is missing",
            Some(text) if serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok() => {
                return Ok(Definition::parse(text));
            }
            Some(_) => "it is not JSON",
        };
        let of = format!("{} {}", self.flow_id.0, self.flow_version);
        Err(store::Error::unreadable(why).at("flow_definitions", &of, "definition").into())
    }

    /// Whether the run has ended.
    pub(crate) fn is_final(&self) -> bool {
        FINAL.contains(&self.status)
    }

    /// The index of the current step.
    pub fn place(&self) -> usize {
        usize::try_from(self.step).unwrap_or(usize::MAX)
    }

    /// The report of the current step, if it has started.
    pub fn report(&self) -> Option<&Report> {
        self.results.0.get(self.place())
    }

    fn report_mut(&mut self) -> Option<&mut Report> {
        let place = self.place();
        self.results.0.get_mut(place)
    }

    /// The final status, if the run has ended.
    pub fn ended(&self) -> Option<&'static str> {
        self.is_final().then(|| self.status.wire())
    }

    /// Ends the run with a status.
    pub fn end(&mut self, ctx: &Ctx, status: Status) {
        self.status = status;
        self.due_at = 0;
        self.lease_until = 0;
        self.next_attempt_at = When(None);
        self.finished_at = When(Some(ctx.now));
    }

    /// Ends the run with an error that no step caused.
    pub fn fail(&mut self, ctx: &Ctx, words: String) {
        if let Some(report) = self.report_mut().filter(|report| report.finished_at.is_empty()) {
            report.error.clone_from(&words);
            report.close(ctx, Status::Failed);
        }
        self.error = words;
        self.end(ctx, Status::Failed);
    }

    /// Makes the run due immediately.
    pub fn queue(&mut self, ctx: &Ctx) {
        self.status = Status::Queued;
        self.due_at = ctx.now.0;
        self.lease_until = 0;
        self.next_attempt_at = When(None);
        self.finished_at = When(None);
        ctx.wakeup.notify(ctx.account);
    }
}

/// Inserts a new run; the caller updates the number of records.
pub(crate) fn insert(tx: &mut Tx, ctx: &Ctx, run: &mut Run) -> Result<()> {
    run.base.id = ctx.new_id();
    run.base.created_at = ctx.now;
    run.base.updated_at = ctx.now;
    run.base.version = 1;
    records::insert_uncounted(tx, ctx, run)
}

/// The leases of runs with an outgoing call in progress.
pub(crate) const LEASES: LeaseTable =
    LeaseTable { table: "runs", until: "lease_until", held: "lease_until > 0", ended: 1, ends_while_held: false };

/// Runs whose next attempt, or first one, is due by the machine's clock. A run that waits for a moment of its flow has the
/// status `waiting` and is none of them.
pub const RETRIES: RetryTable = RetryTable {
    table: "runs",
    index: "runs_tried",
    waits: "status IN ('queued', 'retrying')",
    and: " AND account_id IN (SELECT id FROM accounts WHERE test_clock = 0)",
};

/// Saves a run if `claim` is still its claim, and returns whether it was. The data of a run never changes.
pub(crate) fn save(tx: &mut Tx, ctx: &Ctx, run: &mut Run, claim: i64) -> Result<bool> {
    run.base.updated_at = ctx.now;
    run.base.version += 1;
    let set = "updated_at = $1, version = $2, status = $3, attempts = $4, actions_done = $5, error = $6,
                      next_attempt_at = $7, cancel_requested = $8, finished_at = $9, step = $10, failures = $11, claim = $12,
                      lease_until = $13, due_at = $14, results = $15, node = $16, lost = $17, reads = $18";
    let lease = Lease { account: ctx.account, id: &run.base.id, claim };
    LEASES.end(
        tx,
        lease,
        set,
        &[
            run.base.updated_at.0.into(),
            run.base.version.into(),
            run.status.wire().into(),
            run.attempts.into(),
            run.actions_done.into(),
            (&run.error).into(),
            run.next_attempt_at.0.map_or(0, |moment| moment.0).into(),
            run.cancel_requested.into(),
            run.finished_at.0.map_or(0, |moment| moment.0).into(),
            run.step.into(),
            run.failures.into(),
            run.claim.into(),
            run.lease_until.into(),
            run.due_at.into(),
            run.results.to_text().into(),
            (&run.node).into(),
            run.lost.into(),
            (&run.reads).into(),
        ],
    )
}

/// Fields of the response to an action.
const STATUS: &[Part] = &[Part("id", "string", "The run."), Part("status", "string", "The new status.")];

/// Fields of a step in the response.
const STEPS: &[Part] = &[
    Part("place", "integer", "Index of the step, starting at 0."),
    Part("type", "string", "Type of the step."),
    Part("name", "string", "Name of the step, or empty."),
    Part(
        "status",
        "string",
        "Status: pending, running, waiting, pending_approval, retrying, success, failed, skipped or cancelled.",
    ),
    Part("started_at", "date-time or empty", "When the step was first attempted, or empty."),
    Part("finished_at", "date-time or empty", "When the step ended, or empty."),
    Part("attempts", "integer", "Number of attempts."),
    Part(
        "result",
        "object or null",
        "Result of the step, or null if it has none. Without the scopes to read the records of the run, only `hidden`, which names them.",
    ),
    Part("error", "string", "Error of the step, or empty."),
];

/// The resource of runs.
pub(crate) fn resource() -> Resource {
    Resource::of::<Run>("Automation runs", "automation", MIGRATIONS)
        .at("/v1/automation/runs")
        .logged(Logged::No)
        .list::<Run>()
        .with(|route| route.handler = |call| Ok(hiding(list::list::<Run>(call)?)))
        .get::<Run>()
        .with(|route| route.handler = |call| Ok(hiding(records::get::<Run>(call)?)))
        .route(Method::Post, "/{id}/cancel", "Cancel a run, immediately or after the current step", cancel)
        .returns(Returns::Parts(STATUS))
        .route(Method::Post, "/{id}/approve", "Approve a run", approve)
        .returns(Returns::Parts(STATUS))
        .extension()
        .route(Method::Post, "/{id}/reject", "Reject a run", reject)
        .returns(Returns::Parts(STATUS))
        .extension()
        .route(Method::Post, "/{id}/retry", "Retry a run from the step that failed", retry)
        .returns(Returns::Parts(STATUS))
        .extension()
        .route(Method::Get, "/{id}/steps", "List the steps of a run with their results", steps)
        .returns(Returns::ListOfParts(STEPS))
        .extension()
}

/// Replaces the errors of runs about records that the caller may not read.
fn hiding(work: Work) -> Work {
    Box::new(move |tx, ctx| {
        let mut answer = work(tx, ctx)?;
        if ctx.may("*") {
            return Ok(answer);
        }
        let mut data: Value = serde_json::from_slice(&answer.data)
            .map_err(|error| Error::internal(format!("a response is not valid JSON: {error}")))?;
        let runs = match &mut data {
            Value::Array(runs) => runs.as_mut_slice(),
            run => std::slice::from_mut(run),
        };
        for run in runs.iter_mut().filter(|run| run["error"] != "") {
            let sql = "SELECT reads FROM runs WHERE account_id = $1 AND id = $2";
            let id = run["id"].as_str().unwrap_or_default().to_string();
            let reads =
                tx.first(sql, &[ctx.account.into(), id.into()], |row| Ok::<_, Error>(row.text(0)?.to_string()))?;
            if let Some(why) = needs::hidden_from(ctx, &reads.unwrap_or_default()) {
                run["error"] = Value::from(why);
            }
        }
        answer.data = data.to_string().into_bytes();
        Ok(answer)
    })
}

/// Runs an action: `verb` changes the run and returns the event for the log.
fn act(call: Call, verb: fn(&mut Tx, &Ctx, &mut Run) -> Result<&'static str>) -> Result<Work> {
    let warnings = input::nothing(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let before: Run = records::find_to_change(tx, ctx, &call)?;
        let mut run = before.clone();
        let event = verb(tx, ctx, &mut run)?;
        save(tx, ctx, &mut run, before.claim)?;
        // Errors contain data of records, which not everybody who receives the event may read.
        let shown = Run { error: String::new(), ..run.clone() };
        records::happened(tx, ctx, &shown, event)?;
        let data = json!({"id": run.base.id, "status": run.status.wire()});
        let answer = Answer { counts: run.ended().map(|status| (RUNS, status)), ..Answer::json(&data) };
        Ok(answer.with_texts("warnings", &warnings))
    }))
}

/// `POST /v1/automation/runs/{id}/cancel`
fn cancel(call: Call) -> Result<Work> {
    act(call, |_, ctx, run| {
        if !allows("cancel", run.status) {
            return Err(Error::new(RUN_FINISHED, format!("The run has already ended: {}.", run.status.wire())));
        }
        if run.lease_until > 0 {
            run.cancel_requested = true;
            return Ok("cancel_requested");
        }
        if let Some(report) = run.report_mut().filter(|report| report.finished_at.is_empty()) {
            report.close(ctx, Status::Cancelled);
        }
        run.end(ctx, Status::Cancelled);
        Ok("cancelled")
    })
}

/// `POST /v1/automation/runs/{id}/approve`
fn approve(call: Call) -> Result<Work> {
    act(call, |_, ctx, run| {
        awaits_approval(run, "approve")?;
        if let Some(report) = run.report_mut() {
            report.result = json!({"approved": true, "by": &*ctx.actor.id});
            report.close(ctx, Status::Success);
        }
        run.step += 1;
        run.actions_done += 1;
        run.queue(ctx);
        Ok("approved")
    })
}

/// `POST /v1/automation/runs/{id}/reject`
fn reject(call: Call) -> Result<Work> {
    act(call, |_, ctx, run| {
        awaits_approval(run, "reject")?;
        if let Some(report) = run.report_mut() {
            report.result = json!({"approved": false, "by": &*ctx.actor.id});
            report.close(ctx, Status::Cancelled);
        }
        run.end(ctx, Status::Cancelled);
        Ok("rejected")
    })
}

/// Whether an action is allowed for a run with this status.
fn allows(action: &str, status: Status) -> bool {
    let table = ACTIONS.iter().find(|(own, _)| *own == action);
    table.is_some_and(|(_, moves)| moves.iter().any(|(from, _)| *from == status))
}

fn awaits_approval(run: &Run, action: &str) -> Result<()> {
    if !allows(action, run.status) {
        let message = format!("The run is not waiting for approval; it is {}.", run.status.wire());
        return Err(Error::new(Code::InvalidTransition, message));
    }
    Ok(())
}

/// `POST /v1/automation/runs/{id}/retry`
fn retry(call: Call) -> Result<Work> {
    act(call, |_, ctx, run| {
        if !allows("retry", run.status) {
            let message = format!(
                "Only a run that failed or waits for its next attempt can be retried; this one is {}.",
                run.status.wire()
            );
            return Err(Error::new(Code::InvalidTransition, message));
        }
        run.attempts = 0;
        run.lost = 0;
        run.error.clear();
        // A retry withdraws an earlier cancellation.
        run.cancel_requested = false;
        if let Some(report) = run.report_mut() {
            report.finished_at.clear();
            report.status = None;
        }
        run.queue(ctx);
        Ok("retried")
    })
}

/// `GET /v1/automation/runs/{id}/steps`
fn steps(call: Call) -> Result<Work> {
    Ok(Box::new(move |tx, ctx| {
        let run: Run = records::find(tx, ctx, call.id())?;
        let definition = run.definition(tx, ctx)?;
        let hidden = needs::hidden_from(ctx, &run.reads);
        let of_step = definition.steps.iter().enumerate().map(|(place, step)| {
            let none = Report::default();
            let report = run.results.0.get(place).unwrap_or(&none);
            let status = match report.status {
                None if run.is_final() => "skipped",
                None => "pending",
                Some(status) => status.wire(),
            };
            let (result, error) = match &hidden {
                Some(why) if report.error.is_empty() => (json!({"hidden": why}), json!("")),
                Some(why) => (json!({"hidden": why}), json!(why)),
                None => (report.result.clone(), json!(report.error)),
            };
            json!({
                "place": place, "type": step.kind, "name": step.name, "status": status,
                "started_at": report.started_at, "finished_at": report.finished_at, "attempts": report.attempts,
                "result": result, "error": error,
            })
        });
        let shown: Vec<Value> = of_step.collect();
        let mut answer = Answer::data(Outcome::Done, Value::from(shown.clone()).to_string().into_bytes());
        answer.meta.push(format!("\"total\":{}", shown.len()));
        Ok(answer)
    }))
}

/// Deletes up to two hundred runs that are past the retention period, and returns how many.
pub fn purge(tx: &mut Tx, ctx: &Ctx) -> Result<u64> {
    let days = Settings::of(tx, ctx)?.runs_kept_days;
    if days == 0 {
        return Ok(0);
    }
    let before = ctx.now.plus_seconds(-days * 24 * 3600);
    let sql = "DELETE FROM runs WHERE account_id = $1 AND id IN
               (SELECT id FROM runs WHERE account_id = $1 AND finished_at > 0 AND finished_at < $2
                ORDER BY finished_at LIMIT 200)";
    let gone = tx.execute(sql, &[ctx.account.into(), before.0.into()])?;
    records::count::<Run>(tx, ctx, -gone.cast_signed())?;
    Ok(gone)
}

const MIGRATIONS: &[Migration] = &[Migration {
    number: 58,
    name: "runs",
    sql: "
CREATE TABLE runs (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    flow_id TEXT NOT NULL,
    flow_name TEXT NOT NULL,
    status TEXT NOT NULL,
    trigger_type TEXT NOT NULL,
    trigger_key TEXT NOT NULL,
    entity_type TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    max_attempts BIGINT NOT NULL,
    actions_done BIGINT NOT NULL,
    error TEXT NOT NULL,
    next_attempt_at BIGINT NOT NULL,
    event TEXT NOT NULL,
    entity_id TEXT NOT NULL,
    depth BIGINT NOT NULL,
    cancel_requested BIGINT NOT NULL,
    finished_at BIGINT NOT NULL,
    flow_version BIGINT NOT NULL,
    step BIGINT NOT NULL,
    failures BIGINT NOT NULL,
    claim BIGINT NOT NULL,
    lease_until BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    data TEXT NOT NULL,
    results TEXT NOT NULL,
    chain TEXT NOT NULL DEFAULT '',
    node TEXT NOT NULL DEFAULT '',
    lost BIGINT NOT NULL DEFAULT 0,
    seq BIGINT NOT NULL DEFAULT 0,
    reads TEXT NOT NULL DEFAULT '*',
    fired BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX runs_created ON runs (account_id, created_at, id);
CREATE INDEX runs_status ON runs (account_id, status, created_at, id);
CREATE INDEX runs_flow ON runs (account_id, flow_id, created_at, id);
CREATE INDEX runs_due ON runs (account_id, due_at, id) WHERE due_at > 0;
CREATE INDEX runs_leases ON runs (account_id, lease_until) WHERE lease_until > 0;
CREATE INDEX runs_flow_status ON runs (account_id, flow_id, status, created_at, id);
CREATE INDEX runs_finished ON runs (account_id, finished_at) WHERE finished_at > 0;
CREATE INDEX runs_chain ON runs (account_id, chain) WHERE chain <> '';
CREATE INDEX runs_node ON runs (node) WHERE lease_until > 0;
CREATE INDEX runs_tried ON runs (updated_at) WHERE status IN ('queued', 'retrying');
",
}];
