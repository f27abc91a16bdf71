//! The worker of the runner: wakes up when runs are due and makes the outgoing calls.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use engine::accounts::Account;
use engine::app::App;
use engine::context::Actor;
use engine::due::DueWork;
use engine::error::{Error, Result};
use engine::faults;
use engine::leases::{self, CONFIRMED_AT_MOST, Confirmed};
use engine::listeners::InFlight;
use engine::loops::{self, Poll, Pulse};
use serde_json::{Value, json};
use store::Place;
use tokio::runtime::Handle;

use super::calls::PendingCall;
use super::metrics::{CALLS, count_ended};
use super::runner::{self, Called, Turn, runner_of};
use super::steps::StepError;

/// How often the worker polls, for runs started by other nodes and runs that waited.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Maximum number of calls that the test clock makes for an account in one turn.
const MAX_CALLS: usize = 64;
/// Maximum size of a stored response, in bytes.
const MAX_ANSWER_BYTES: usize = 16 * 1024;
/// How long recording the result of a call is retried: less than its lease.
const HELD: Duration = Duration::from_secs(60);
/// How often the test clock polls for a call that another worker makes.
const MAX_CALL_CHECKS: u32 = 400;

/// Starts the worker, which runs until the process ends.
pub fn start(app: &Arc<App>) {
    loops::keep(app, "flows", loops::STALL_TIMEOUT, work);
}

async fn work(app: Arc<App>, pulse: Pulse) {
    let mut poll = Poll::every(POLL_INTERVAL).woken_by(&app.wakeup, Duration::ZERO);
    loop {
        let woken = poll.wait(&pulse).await;
        woken.accounts.into_iter().for_each(|account| serve(&app, account));
        let now = app.clock.now();
        let looked = match woken.all {
            true => app.store.read(move |tx| runner::due_accounts(tx, now)).await,
            false => Ok(Vec::new()),
        };
        let looked = looked.map(|due| due.into_iter().for_each(|account| serve(&app, account)));
        poll.turned(looked.map(|()| false), "Cannot look up due runs at the moment.");
    }
}

/// Advances the runs of an account in a task of its own, so that no other account waits for it.
fn serve(app: &Arc<App>, account: i64) {
    let Some(mut served) = runner_of(app).served.start(account) else { return };
    let app = app.clone();
    tokio::spawn(async move {
        while served.goes_on() && !app.listeners.is_stopping() {
            let runner = runner_of(&app);
            let _place = runner.accounts.take(account).await;
            let _alone = if runner.is_careful() { Some(runner.alone.lock().await) } else { None };
            match advance_account(&app, account).await {
                Ok(false) => {}
                Ok(true) => served.has_more(),
                Err(error) => {
                    tracing::warn!(account, cause = %error, "Cannot advance the runs of an account at the moment; this will be retried.");
                }
            }
        }
    });
}

/// Processes one account and starts its calls in the background; returns whether more is due.
async fn advance_account(app: &Arc<App>, number: i64) -> Result<bool> {
    let busy = app.listeners.begin();
    app.compare_clocks().await?;
    let account = app.store.read(move |tx| Account::numbered(tx, number)).await?;
    if account.is_closed() {
        return Ok(false);
    }
    let caller = app.acting(account, "automation");
    let marked = match runner_of(app).is_careful() {
        true => {
            let (own, runner) = (caller.clone(), runner_of(app).clone());
            let mark = app.store.write(number, move |tx| {
                let ctx = own.writing(tx)?;
                runner::mark(tx, &ctx, &runner)
            });
            Some(mark.await?.unwrap_or_default())
        }
        false => None,
    };
    let (own, runner) = (caller.clone(), runner_of(app).clone());
    let mut places = match app.listeners.is_stopping() {
        true => Vec::new(),
        false => runner.calls.take_all(number),
    };
    let room = places.len();
    let turn = app.store.write(number, move |tx| {
        let ctx = own.writing(tx)?;
        runner::turn_of(tx, &ctx, &own.account, &runner, room, marked.as_deref())
    });
    let Turn { more, calls, ended, .. } = turn.await?;
    count_ended(app, ended);
    for request in calls {
        let line = Line { _place: places.pop(), _busy: busy.clone() };
        let (app, caller) = (app.clone(), caller.clone());
        tokio::spawn(async move {
            let _line = line;
            if let Err(error) = follow(&app, &caller, request).await {
                tracing::warn!(cause = %error, "Cannot record the outcome of a call; it will be repeated.");
            }
        });
    }
    drop(places);
    if !runner_of(app).has_slow_steps() {
        return Ok(more);
    }
    let (own, caller) = (app.clone(), caller.clone());
    let worked_out = tokio::task::spawn_blocking(move || runner::work_out(&own, &caller)).await;
    Ok(worked_out.map_err(|panic| Error::internal(format!("templates: {panic}")))?? || more)
}

/// A call in progress, and its place.
struct Line {
    _place: Option<Place>,
    _busy: InFlight,
}

/// Makes a call, records its result, and makes the next call of the run.
async fn follow(app: &Arc<App>, caller: &Actor, first: PendingCall) -> Result<()> {
    let mut next = Some(first);
    while let Some(request) = next.take() {
        let announced = Instant::now();
        faults::pause_before("call");
        if !is_certain(app, caller, &request).await? {
            tracing::warn!(run = %request.run_id, "A call was not made, because another worker may have taken over its run.");
            return Ok(());
        }
        let ended = make(app, &request).await;
        let called = write_end(app, caller, request, ended, announced).await?;
        if !called.ours {
            tracing::warn!("The lease of a call expired; another worker has taken over its run.");
        }
        next = called.next;
        let number = caller.account.number;
        if next.is_some() && app.store.read(move |tx| Account::numbered(tx, number)).await?.is_closed() {
            // The run continues when the account is reopened: the lease of this call expires.
            return Ok(());
        }
    }
    Ok(())
}

/// Whether no other worker can be making this call. If its lease was confirmed too long ago, as when the process was paused, it
/// is extended under its number.
async fn is_certain(app: &Arc<App>, caller: &Actor, request: &PendingCall) -> Result<bool> {
    let mut confirmed = request.confirmed;
    for _ in 0..CONFIRMED_AT_MOST {
        if confirmed.is_certain() {
            return Ok(true);
        }
        confirmed = Confirmed::now();
        let (own, request) = (caller.clone(), request.clone());
        let renewed = app.store.write(caller.account.number, move |tx| {
            let ctx = own.writing(tx)?;
            runner::renew(tx, &ctx, &request)
        });
        if !renewed.await? {
            return Ok(false);
        }
    }
    Ok(confirmed.is_certain())
}

/// Records the result of a call, and retries while the lease is valid. When the lease has expired, the call is made
/// again with the same key.
async fn write_end(
    app: &Arc<App>,
    caller: &Actor,
    request: PendingCall,
    ended: Result<Value, StepError>,
    announced: Instant,
) -> Result<Called> {
    let (outcome, known) = (outcome(&ended), Arc::new((request, ended)));
    let written = leases::write_end(announced + HELD, || {
        let (own, runner, known) = (caller.clone(), runner_of(app).clone(), known.clone());
        app.store.write(caller.account.number, move |tx| {
            let ctx = own.writing(tx)?;
            runner::called(tx, &ctx, &own.account, &runner, &known.0, &known.1)
        })
    });
    count(app, outcome, written.await)
}

fn outcome(ended: &Result<Value, StepError>) -> &'static str {
    match ended {
        Ok(_) => "success",
        Err(trouble) if trouble.for_good => "refused",
        Err(_) => "failed",
    }
}

/// Counts a call after its result was recorded or could not be.
fn count(app: &App, outcome: &'static str, written: Result<Called>) -> Result<Called> {
    let kept = written.as_ref().is_ok_and(|called| called.ours);
    app.metrics.add(CALLS.name, if kept { outcome } else { "lost" });
    count_ended(app, written.as_ref().ok().and_then(|called| called.ended));
    written
}

/// Makes a call once; returns the response, or why it failed.
pub async fn make(app: &App, request: &PendingCall) -> Result<Value, StepError> {
    let call = &request.call;
    let timestamp = app.clock.now().0 / 1000;
    let mut headers = call.headers.clone();
    let signed = app.site.sign_for(request.account, &format!("{}.{timestamp}.{}", request.key, call.body));
    headers.push(("idempotency-key".to_string(), request.key.clone()));
    headers.push(("webhook-id".to_string(), request.key.clone()));
    headers.push(("webhook-timestamp".to_string(), timestamp.to_string()));
    headers.push(("webhook-signature".to_string(), format!("v1,{}", BASE64.encode(signed))));
    let method = call.method.parse().map_err(|_| StepError::never("This method is not supported."))?;
    let sending =
        app.web.send(web::OutgoingRequest { method, url: call.url.clone(), headers, body: call.body.clone().into() });
    let answer = match tokio::time::timeout(Duration::from_secs(call.seconds), sending).await {
        Err(_) => return Err(StepError::later(format!("There was no response within {} seconds.", call.seconds))),
        Ok(Err(web::Failure::Refused(why))) => return Err(StepError::never(why)),
        Ok(Err(failure)) => return Err(StepError::later(failure.words())),
        Ok(Ok(answer)) => answer,
    };
    let text: String = String::from_utf8_lossy(&answer.body).chars().filter(|c| *c != '\0').collect();
    if !(200..300).contains(&answer.status) {
        let start: String = text.chars().take(200).collect();
        let said = if start.trim().is_empty() { ".".to_string() } else { format!(": {}", start.trim()) };
        return Err(StepError::later(format!("The receiver responded with {}{said}", answer.status)));
    }
    let body = match serde_json::from_str::<Value>(&text) {
        _ if text.len() > MAX_ANSWER_BYTES => Value::String(text.chars().take(MAX_ANSWER_BYTES / 4).collect()),
        Ok(json) => json,
        Err(_) => Value::String(text),
    };
    Ok(json!({"status": answer.status, "body": body}))
}

/// The due work of runs, for the test clock.
pub const DUE: DueWork = DueWork { next_moment: runner::next_moment, follow: bring_up_to_date, ..DueWork::NOTHING };

/// Processes everything in an account that is due by its clock, calls included, and returns whether there was anything.
/// Used by the test clock; blocks.
fn bring_up_to_date(app: &App, caller: &Actor) -> Result<bool> {
    let mut any = false;
    let mut patience = MAX_CALL_CHECKS;
    loop {
        let (own, runner) = (caller.clone(), runner_of(app).clone());
        let turn = app.store.write_now(caller.account.number, move |tx| {
            let ctx = own.writing(tx)?;
            runner::turn(tx, &ctx, &own.account, &runner, MAX_CALLS)
        })?;
        count_ended(app, turn.ended);
        any |= turn.ran > 0;
        runner::work_out(app, caller)?;
        for request in turn.calls {
            let mut next = Some(request);
            while let Some(request) = next.take() {
                let ended = Handle::current().block_on(make(app, &request));
                let (own, runner) = (caller.clone(), runner_of(app).clone());
                let outcome = outcome(&ended);
                let written = app.store.write_now(caller.account.number, move |tx| {
                    let ctx = own.writing(tx)?;
                    runner::called(tx, &ctx, &own.account, &runner, &request, &ended)
                });
                next = count(app, outcome, written)?.next;
            }
        }
        if turn.ran > 0 || turn.more {
            continue;
        }
        // The worker of this node or another may hold some of them.
        let number = caller.account.number;
        let sql = "SELECT count(*) FROM runs WHERE account_id = $1 AND lease_until > 0";
        if patience == 0 || app.store.read_now(move |tx| tx.int(sql, &[number.into()]))? == 0 {
            return Ok(any);
        }
        patience -= 1;
        std::thread::sleep(Duration::from_millis(50));
    }
}
