//! Advances the due runs of an account, step by step.
//!
//! The account is locked meanwhile, so no two workers process the same run. A step that only touches the database is
//! executed here, together with its result and the move to the next step; many steps of many runs share a transaction.
//! An outgoing call is only recorded here: the run gets a lease and a new claim number, and `worker.rs` makes the call.
//! A result under an old claim number is discarded.

mod outcome;
mod served;

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use engine::accounts::Account;
use engine::app::App;
use engine::clock::Moment;
use engine::context::{Actor, Ctx};
use engine::error::{Error, Result};
use engine::leases::{self, Comeback, LOST_AT_MOST, Lease};
use engine::nodes;
use engine::record::{Record, When};
use serde_json::{Value, json};
use store::{Places, Tx};

use self::outcome::{failed, succeeded, wait};
use self::served::Serving;
use super::calls::{LEASE_SECONDS, PendingCall};
use super::definition::Definition;
use super::steps::{self, StepError};
use super::template::{self, Made, Names, Results};
use super::{about, authority, matching, schedules};
use crate::automation::run::{self, Run, Status};

/// Maximum number of runs in one transaction.
const BATCH: i64 = 64;
/// Approximate maximum duration of a transaction: requests wait for it.
const TURN: Duration = Duration::from_millis(5);
/// Time that the steps of one run may take in a transaction; the remaining steps run in another.
const LONG: Duration = Duration::from_millis(10);
/// Time that the templates of a step may take in a transaction. A slower step is rendered before the next transaction.
const TEMPLATES: Duration = Duration::from_millis(20);
/// Time that the templates of a step may take outside a transaction.
const TEMPLATES_OUTSIDE: Duration = Duration::from_secs(1);
/// Maximum number of rendered steps kept in memory.
const MAX_MADE: usize = 256;
/// How long runs are processed one at a time after a process died.
const CAREFUL: Duration = Duration::from_secs(60);
/// Maximum number of definitions kept in memory.
const MAX_DEFINITIONS: usize = 1000;
/// Maximum number of concurrent calls.
const MAX_CALLS: usize = 64;
/// Maximum number of accounts whose runs are advanced concurrently.
const MAX_ACCOUNTS: usize = 4;

/// A step of a run: the account, the run and the index of the step.
type StepKey = (i64, String, i64);

/// The state that the runs of all accounts share.
pub struct Runner {
    definitions: Mutex<HashMap<(i64, String, i64), Arc<Definition>>>,
    /// Steps whose templates are too slow for a transaction, with the rendered results.
    slow: Mutex<BTreeSet<StepKey>>,
    made: Mutex<HashMap<StepKey, Arc<Made>>>,
    /// Steps that used their rendered result. A later attempt renders it again.
    tried: Mutex<BTreeSet<StepKey>>,
    /// The outgoing calls in progress.
    pub calls: Arc<Places>,
    /// The accounts whose runs are being advanced, each once.
    pub accounts: Arc<Places>,
    /// The accounts that have a task which advances their runs, and whether it looks for more.
    pub(crate) served: Arc<Serving>,
    /// After a process died, the runs of one account at a time are advanced.
    pub(crate) alone: tokio::sync::Mutex<()>,
    node: String,
    careful_until: OnceLock<Instant>,
}

impl Runner {
    /// The runner of a node.
    pub fn on(node: &str) -> Runner {
        Runner {
            definitions: Mutex::default(),
            slow: Mutex::default(),
            made: Mutex::default(),
            tried: Mutex::default(),
            calls: Places::new("calls of flows", MAX_CALLS),
            accounts: Places::capped("accounts with flows", MAX_ACCOUNTS, 1),
            served: Arc::default(),
            alone: tokio::sync::Mutex::default(),
            node: node.to_string(),
            careful_until: OnceLock::new(),
        }
    }

    /// Whether a process died recently.
    pub(crate) fn is_careful(&self) -> bool {
        self.careful_until.get().is_some_and(|until| Instant::now() < *until)
    }

    /// Returns the rendered templates of a step, for a single attempt.
    fn made_for(&self, place: &StepKey) -> Option<Arc<Made>> {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner).get(place).cloned()?;
        self.tried.lock().unwrap_or_else(PoisonError::into_inner).insert(place.clone());
        Some(made)
    }

    /// Whether there may be work for [`work_out`].
    pub(crate) fn has_slow_steps(&self) -> bool {
        [&self.slow, &self.tried].iter().any(|places| !places.lock().unwrap_or_else(PoisonError::into_inner).is_empty())
    }
}

/// Renders the templates of an account's steps that are too slow for a transaction, outside of any, and returns whether
/// there were any. The next transaction uses the results. If the process dies first, they are rendered again.
pub(crate) fn work_out(app: &App, caller: &Actor) -> Result<bool> {
    let runner = runner_of(app);
    let taken = |places: &Mutex<BTreeSet<StepKey>>| -> Vec<StepKey> {
        let mut places = places.lock().unwrap_or_else(PoisonError::into_inner);
        places.extract_if(.., |place| place.0 == caller.account.number).collect()
    };
    for place in taken(&runner.tried) {
        runner.made.lock().unwrap_or_else(PoisonError::into_inner).remove(&place);
    }
    let places = taken(&runner.slow);
    for place in &places {
        let (own, shared, place_of) = (caller.clone(), runner.clone(), place.clone());
        let found = app.store.read_now(move |tx| {
            let ctx = own.reading(tx)?;
            let found = tx.first(&Run::sql().get, &[ctx.account.into(), (&place_of.1).into()], Run::from_row)?;
            let Some(run) = found.filter(|run| run.step == place_of.2) else { return Ok::<_, Error>(None) };
            let definition = definition(tx, &ctx, &shared, &run)?;
            let ctx = authority::reading(tx, ctx, &run)?;
            let data = matching::data_of(tx, &ctx, &run)?;
            let scope = TemplateScope::of(tx, &ctx, &own.account, &run, &definition, &data)?;
            let names = scope.names(tx, &ctx, &run, &definition)?;
            Ok(Some((names, definition, run.place())))
        })?;
        let Some((names, definition, step)) = found else { continue };
        let names = names.within(TEMPLATES_OUTSIDE);
        if let Some(step) = definition.steps.get(step) {
            steps::work_out(step, &names);
        }
        let mut kept = runner.made.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MAX_MADE {
            kept.clear();
        }
        kept.insert(place.clone(), names.made());
    }
    Ok(!places.is_empty())
}

/// The runner of this process.
pub fn runner_of(app: &App) -> &Arc<Runner> {
    app.services.get()
}

/// Switches to careful mode after a process died, possibly because of a run: for a while runs are processed one at a
/// time, each after it is marked.
pub(crate) fn be_careful(app: &App) {
    let _ = runner_of(app).careful_until.set(Instant::now() + CAREFUL);
}

/// The result of a transaction.
#[derive(Default)]
pub struct Turn {
    /// Number of runs that advanced.
    pub ran: usize,
    /// Whether more runs are due.
    pub more: bool,
    /// Calls to make.
    pub calls: Vec<PendingCall>,
    /// Final statuses of the runs that ended.
    pub ended: Vec<&'static str>,
}

/// The result of recording the end of a call.
#[derive(Default)]
pub struct Called {
    /// Whether the claim of the call was still valid.
    pub ours: bool,
    /// The next call.
    pub next: Option<PendingCall>,
    /// The final status of the run, if it ended.
    pub ended: Option<&'static str>,
}

/// Returns the definition that a run follows. It never changes, so it can be cached.
pub(crate) fn definition(tx: &mut Tx, ctx: &Ctx, runner: &Runner, run: &Run) -> Result<Arc<Definition>> {
    let key = (ctx.account, run.flow_id.0.clone(), run.flow_version);
    if let Some(found) = runner.definitions.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
        return Ok(found.clone());
    }
    let parsed = Arc::new(run.definition(tx, ctx)?);
    let mut kept = runner.definitions.lock().unwrap_or_else(PoisonError::into_inner);
    if kept.len() >= MAX_DEFINITIONS {
        kept.clear();
    }
    kept.insert(key, parsed.clone());
    Ok(parsed)
}

/// Fires the due schedules of the account and advances some of its runs, with at most `room` outgoing calls.
pub fn turn(tx: &mut Tx, ctx: &Ctx, account: &Account, runner: &Runner, room: usize) -> Result<Turn> {
    turn_of(tx, ctx, account, runner, room, None)
}

/// Marks the next run of the account before it is processed, and returns its id: if the process dies, the mark remains.
pub fn mark(tx: &mut Tx, ctx: &Ctx, runner: &Runner) -> Result<Option<String>> {
    let Some(run) = due(tx, ctx, runner)?.into_iter().next() else { return Ok(None) };
    let sql = "UPDATE runs SET lost = lost + 1, node = $1, lease_until = CASE WHEN lease_until > 0 THEN 1 ELSE 0 END
               WHERE account_id = $2 AND id = $3";
    tx.execute(sql, &[(&runner.node).into(), ctx.account.into(), (&run.base.id).into()])?;
    Ok(Some(run.base.id))
}

/// Does the work of [`turn`], restricted to the marked run where each is marked first: to none if it is `""`.
pub fn turn_of(
    tx: &mut Tx,
    ctx: &Ctx,
    account: &Account,
    runner: &Runner,
    room: usize,
    marked: Option<&str>,
) -> Result<Turn> {
    let started = Instant::now();
    schedules::fire(tx, ctx)?;
    let due = due(tx, ctx, runner)?;
    let mut turn = Turn { more: i64::try_from(due.len()).unwrap_or(0) >= BATCH, ..Turn::default() };
    for run in due {
        if let Some(marked) = marked.filter(|marked| *marked != run.base.id) {
            turn.more |= !marked.is_empty();
            continue;
        }
        // Advances at least one run, so that a slow machine makes progress.
        if turn.ran > 0 && started.elapsed() > TURN {
            turn.more = true;
            break;
        }
        if let Err(cause) = definition(tx, ctx, runner, &run) {
            set_aside(tx, ctx, &run.base.id, &cause)?;
            continue;
        }
        let room = room.saturating_sub(turn.calls.len());
        let (call, ended) = advance_run(tx, ctx, account, runner, run, room, marked.is_some())?;
        turn.calls.extend(call);
        turn.ended.extend(ended);
        turn.ran += 1;
    }
    Ok(turn)
}

/// Returns the runs that are due, oldest first, and those whose lease expired, except those that another node is about to process.
fn due(tx: &mut Tx, ctx: &Ctx, runner: &Runner) -> Result<Vec<Run>> {
    let select = &Run::sql().select;
    let lost = format!("{select} WHERE account_id = $1 AND lease_until > 0 AND lease_until <= $2 LIMIT {BATCH}");
    let read = |row: &store::Row| Ok::<_, store::Error>((row.text(0)?.to_string(), Run::from_row(row)));
    let mut found = tx.all(&lost, &[ctx.account.into(), ctx.machine_now.0.into()], read)?;
    let due =
        format!("{select} WHERE account_id = $1 AND due_at > 0 AND due_at <= $2 ORDER BY due_at, id LIMIT {BATCH}");
    found.extend(tx.all(&due, &[ctx.account.into(), ctx.now.0.into()], read)?);
    let mut runs = Vec::with_capacity(found.len());
    for (id, run) in found {
        match run {
            Ok(run) => runs.push(run),
            Err(cause) => set_aside(tx, ctx, &id, &cause.into())?,
        }
    }
    // Its mark would look like the death of a second worker, and the run would wait for nothing. When that node dies, it is no
    // longer registered.
    let is_marked = |run: &Run| run.lost > 0 && run.lease_until <= 1 && run.node != runner.node;
    if runs.iter().any(is_marked) {
        let alive = nodes::registered(tx)?;
        runs.retain(|run| !is_marked(run) || !alive.contains(&run.node));
    }
    Ok(runs)
}

/// Postpones an unreadable run by an hour, so that it does not block the other runs of its account.
fn set_aside(tx: &mut Tx, ctx: &Ctx, id: &str, cause: &Error) -> Result<()> {
    tracing::error!(account = ctx.account, run = id, %cause, "A run cannot continue.");
    let sql = "UPDATE runs SET due_at = $1, lease_until = 0 WHERE account_id = $2 AND id = $3";
    tx.execute(sql, &[ctx.now.plus_seconds(3600).0.into(), ctx.account.into(), id.into()])?;
    Ok(())
}

/// Advances a run until it ends, waits or has to make a call; returns the call and the final status.
fn advance_run(
    tx: &mut Tx,
    ctx: &Ctx,
    account: &Account,
    runner: &Runner,
    mut run: Run,
    room: usize,
    marked: bool,
) -> Result<(Option<PendingCall>, Option<&'static str>)> {
    let claim = run.claim;
    // An expired lease means that the worker was lost.
    let lost = run.lease_until > 0;
    run.claim += i64::from(lost);
    run.lost += i64::from(lost);
    // The mark of a lost call does not count separately.
    run.lost -= i64::from(lost && marked);
    let too_often = marked && run.lost >= LOST_AT_MOST;
    let request = match (lost || too_often) && !may_continue(tx, ctx, runner, &mut run)? {
        true => None,
        false => {
            let request = steps_of(tx, ctx, account, runner, &mut run, room)?;
            if marked && !lost {
                run.lost = if request.is_some() { (run.lost - 1).max(0) } else { 0 };
            }
            request
        }
    };
    run::save(tx, ctx, &mut run, claim)?;
    Ok((request, run.ended()))
}

/// Decides whether a run continues immediately after a worker died in it. The first time it does. After that it backs
/// off, as jobs do, and a step that was started too often fails: the call may be what kills the process.
fn may_continue(tx: &mut Tx, ctx: &Ctx, runner: &Runner, run: &mut Run) -> Result<bool> {
    run.lease_until = 0;
    let comeback = leases::after_deaths(&run.base.id, run.lost);
    if comeback == Comeback::Never {
        let definition = definition(tx, ctx, runner, run)?;
        if let Some(step) = definition.steps.get(run.place()) {
            let words = format!("It was started {} times in a row and never completed.", run.lost);
            failed(ctx, run, step, &StepError::never(words));
        }
        run.lost = 0;
        return Ok(!run.is_final());
    }
    match comeback {
        Comeback::After(seconds) if !ctx.has_test_clock => {
            wait(run, Status::Retrying, ctx.now.plus_seconds(seconds));
            Ok(false)
        }
        _ => Ok(true),
    }
}

/// Records the result of a call and advances the run, if the claim of the call is still valid.
pub fn called(
    tx: &mut Tx,
    ctx: &Ctx,
    account: &Account,
    runner: &Runner,
    request: &PendingCall,
    ended: &Result<Value, StepError>,
) -> Result<Called> {
    let sql = format!("{} WHERE account_id = $1 AND id = $2 AND claim = $3 AND lease_until > 0", Run::sql().select);
    let values = [ctx.account.into(), (&request.run_id).into(), request.claim.into()];
    let Some(mut run) = tx.first(&sql, &values, Run::from_row)? else { return Ok(Called::default()) };
    run.lease_until = 0;
    run.lost = 0;
    let definition = definition(tx, ctx, runner, &run)?;
    if let Some(step) = definition.steps.get(run.place()) {
        match ended {
            Ok(result) => succeeded(ctx, &mut run, result.clone()),
            Err(trouble) => failed(ctx, &mut run, step, trouble),
        }
    }
    let next = if run.cancel_requested && !run.is_final() {
        run.end(ctx, Status::Cancelled);
        None
    } else if run.due_at > 0 || run.is_final() {
        None
    } else {
        steps_of(tx, ctx, account, runner, &mut run, 1)?
    };
    let ours = run::save(tx, ctx, &mut run, request.claim)?;
    Ok(Called { ours, next, ended: run.ended().filter(|_| ours) })
}

/// Extends the lease of a call and returns whether the claim is still valid.
pub(crate) fn renew(tx: &mut Tx, ctx: &Ctx, request: &PendingCall) -> Result<bool> {
    let lease = Lease { account: ctx.account, id: &request.run_id, claim: request.claim };
    run::LEASES.renew(tx, lease, ctx.machine_now.plus_seconds(LEASE_SECONDS))
}

/// Executes the steps from the current one on.
fn steps_of(
    tx: &mut Tx,
    ctx: &Ctx,
    account: &Account,
    runner: &Runner,
    run: &mut Run,
    room: usize,
) -> Result<Option<PendingCall>> {
    let definition = definition(tx, ctx, runner, run)?;
    let chain = if run.chain.is_empty() { &run.base.id } else { &run.chain };
    let own = ctx.acting_as(authority::who(&run.flow_id.0, ""), &run.base.id, run.depth, chain);
    run.due_at = 0;
    run.lease_until = 0;
    run.next_attempt_at = When(None);
    let Some(own) = authority::acting(tx, ctx, own, run, &definition)? else { return Ok(None) };
    let data = matching::data_of(tx, &own, run)?;
    let known = TemplateScope::of(tx, &own, account, run, &definition, &data)?;
    let (started, first) = (Instant::now(), run.step);
    loop {
        // Slow steps take turns with other writes.
        if run.step > first && started.elapsed() > LONG {
            run.queue(ctx);
            return Ok(None);
        }
        if run.cancel_requested {
            run.end(ctx, Status::Cancelled);
            return Ok(None);
        }
        let Some(step) = definition.steps.get(run.place()) else {
            outcome::complete(ctx, run);
            return Ok(None);
        };
        let names = known.names(tx, &own, run, &definition)?.within(TEMPLATES);
        let place = (ctx.account, run.base.id.clone(), run.step);
        let made = runner.made_for(&place);
        let names = match &made {
            Some(made) => names.knowing(made),
            None => names,
        };
        // A panic must not roll back the other runs of the transaction.
        let done = tx.savepoint(|tx| {
            let attempt = AssertUnwindSafe(|| steps::take(tx, &own, run, &data, step, &names));
            catch_unwind(attempt).unwrap_or_else(|_| Err(StepError::later("Internal error.")))
        });
        if done.is_err() && made.is_none() && names.were_late() {
            runner.slow.lock().unwrap_or_else(PoisonError::into_inner).insert(place);
            run.queue(ctx);
            return Ok(None);
        }
        let next = match done {
            Ok(done) => outcome::record(ctx, &runner.node, run, done, room),
            Err(trouble) => outcome::record_failure(ctx, run, step, &trouble),
        };
        if let ControlFlow::Break(request) = next {
            return Ok(request);
        }
    }
}

/// The names available to the templates of a run, except those that change from step to step.
struct TemplateScope {
    fixed: Vec<(&'static str, minijinja::Value)>,
}

impl TemplateScope {
    fn of(
        tx: &mut Tx,
        ctx: &Ctx,
        account: &Account,
        run: &Run,
        definition: &Definition,
        data: &str,
    ) -> Result<TemplateScope> {
        let data: Value = match data {
            "" => json!({}),
            data => serde_json::from_str(data).map_err(|_| matching::unreadable_data(run.seq))?,
        };
        let about = about::account(tx, ctx, account, definition, ctx.now)?;
        Ok(TemplateScope {
            fixed: vec![
                ("event", run.event.as_str().into()),
                ("entity_type", run.entity_type.as_str().into()),
                ("data", template::of(&matching::flatten_meta(data))),
                ("account", template::of(&about)),
                ("now", ctx.now.to_string().into()),
            ],
        })
    }

    /// Returns the names for the current step: with the results so far, and the current record if the flow uses it.
    fn names(&self, tx: &mut Tx, ctx: &Ctx, run: &Run, definition: &Definition) -> Result<Names> {
        let mut pairs = self.fixed.clone();
        let results = run.results.0.iter().enumerate().map(|(place, report)| {
            let name = definition.steps.get(place).map(|step| step.name.clone());
            (name.unwrap_or_default(), report.result.clone())
        });
        pairs.push(("steps", minijinja::Value::from_object(Results(results.collect()))));
        if definition.uses_record {
            let record = matching::shown(tx, ctx, &run.entity_type, &run.entity_id)?;
            pairs.push((
                "record",
                record.map_or_else(|| ().into(), |record| template::of(&matching::flatten_meta(record))),
            ));
        }
        Ok(Names::new(pairs))
    }
}

/// Returns the open accounts with due runs, due schedules or expired leases.
pub(crate) fn due_accounts(tx: &mut Tx, now: Moment) -> Result<Vec<i64>> {
    let sql = "SELECT id FROM accounts WHERE closed_at = 0 AND (
            EXISTS (SELECT 1 FROM runs WHERE runs.account_id = accounts.id AND due_at > 0
                    AND due_at <= CASE WHEN test_clock = 0 THEN $1 ELSE test_clock END)
         OR EXISTS (SELECT 1 FROM runs WHERE runs.account_id = accounts.id AND lease_until > 0 AND lease_until <= $1)
         OR EXISTS (SELECT 1 FROM flows WHERE flows.account_id = accounts.id AND next_at > 0 AND next_at <= $1 AND test_clock = 0))";
    Ok(tx.all(sql, &[now.0.into()], |row| row.int(0))?)
}

/// Returns the moment at which the oldest due run or schedule became due, across all open accounts without a test clock.
pub(crate) fn oldest_due(tx: &mut Tx, now: Moment) -> Result<Option<Moment>> {
    let sql = "SELECT coalesce(min(due), 0) FROM (
            SELECT (SELECT min(due_at) FROM runs WHERE runs.account_id = accounts.id AND due_at > 0) AS due
            FROM accounts WHERE test_clock = 0 AND closed_at = 0
            UNION ALL
            SELECT (SELECT min(next_at) FROM flows WHERE flows.account_id = accounts.id AND next_at > 0)
            FROM accounts WHERE test_clock = 0 AND closed_at = 0) AS oldest";
    let oldest = Moment(tx.int(sql, &[])?);
    Ok(Some(oldest).filter(|oldest| oldest.0 > 0 && *oldest <= now))
}

/// Returns the next moment after now at which a run or a schedule is due.
pub(crate) fn next_moment(tx: &mut Tx, ctx: &Ctx) -> Result<Option<Moment>> {
    let sql = "SELECT due_at FROM runs WHERE account_id = $1 AND due_at > $2 AND due_at > 0 ORDER BY due_at LIMIT 1";
    let run = tx.first(sql, &[ctx.account.into(), ctx.now.0.into()], |row| row.int(0))?.map(Moment);
    let schedule = schedules::next_moment(tx, ctx)?;
    Ok(run.into_iter().chain(schedule).min())
}
