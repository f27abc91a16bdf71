//! Workers: claim jobs, run them and record the outcome. The registry has the job types.

use std::sync::Arc;
use std::time::Duration;

use store::{Place, Tx};
use tokio::time::Instant;
use tracing::field::Empty;

use crate::app::App;
use crate::error::{Error, Result};
use crate::jobs::{self, Claimed, Ending, JobKind, LEASE_SECONDS, Lane, Lost, NewJob, SHARED};
use crate::loops::{self, Poll, Pulse};
use crate::registry::registry;
use crate::{leases, nodes};

/// How often a worker polls for jobs.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// How long recording the outcome of a job is retried: less than its lease.
const HELD: Duration = Duration::from_secs(30);
/// How often the repeating jobs are checked.
const SELDOM: Duration = Duration::from_secs(30);
/// How long the test clock waits for a job that another worker runs, in tenths of a second.
const MAX_DRAIN_CHECKS: u32 = 300;

/// Starts the workers and the other loops of this process, which run until it ends.
pub fn start(app: &Arc<App>) -> Result<()> {
    nodes::start(app)?;
    keep_timetable(app)?;
    for lane in Lane::ALL {
        // The last ones are for accounts that the others leave waiting.
        let many = if app.config.workers == 0 { 0 } else { app.workers[lane as usize].most() };
        for number in 1..=many {
            let name = format!("jobs {} {number}", lane.name());
            loops::keep(app, name, loops::STALL_TIMEOUT, move |app, pulse| work(app, lane, pulse));
        }
    }
    loops::keep(app, "timetable", loops::STALL_TIMEOUT, |app, pulse| async move {
        let mut poll = Poll::every(SELDOM).later();
        loop {
            poll.wait(&pulse).await;
            let own = app.clone();
            let kept = tokio::task::spawn_blocking(move || keep_timetable(&own)).await;
            let kept = kept.unwrap_or_else(|panic| Err(Error::internal(panic.to_string())));
            poll.turned(kept.map(|()| false), "Cannot read the schedule of jobs at the moment.");
        }
    });
    registry().background.iter().for_each(|start| start(app));
    Ok(())
}

/// A worker of a lane.
async fn work(app: Arc<App>, lane: Lane, pulse: Pulse) {
    let mut poll = Poll::every(POLL_INTERVAL);
    loop {
        poll.wait(&pulse).await;
        let done = if app.listeners.is_stopping() { Ok(false) } else { turn_in(&app, lane, &pulse).await };
        poll.turned(done, "Cannot claim jobs at the moment.");
    }
}

/// Returns the names of the job types that match.
fn kinds(fit: impl Fn(&JobKind) -> bool) -> Vec<&'static str> {
    registry().jobs.iter().filter(|kind| fit(kind)).map(|kind| kind.kind).collect()
}

/// Claims a job of any lane and runs it; returns whether there was one.
pub async fn turn(app: &Arc<App>) -> bool {
    let pulse = Pulse::idle();
    for lane in Lane::ALL {
        match turn_in(app, lane, &pulse).await {
            Ok(false) => {}
            Ok(true) => return true,
            Err(error) => tracing::warn!(cause = %error, "Cannot claim jobs at the moment."),
        }
    }
    false
}

/// Claims a job of a lane and runs it; returns whether there was one.
async fn turn_in(app: &Arc<App>, lane: Lane, pulse: &Pulse) -> Result<bool> {
    // The process waits for jobs in progress before it exits.
    let busy = app.listeners.begin();
    app.compare_clocks().await?;
    let own = app.clone();
    let claimed = tokio::task::spawn_blocking(move || claim(&own, lane)).await;
    let (jobs, place) = claimed.unwrap_or_else(|panic| Err(Error::internal(panic.to_string())))?;
    let any = !jobs.is_empty();
    for job in jobs {
        run(app, job, pulse).await;
    }
    drop((busy, place));
    Ok(any)
}

/// Recovers lost jobs and claims a job, with the place of a worker for its account; each in its own transaction, and only if a
/// query finds something to do.
fn claim(app: &App, lane: Lane) -> Result<(Vec<Claimed>, Option<Place>)> {
    let (now, known) = (app.clock.now(), kinds(|_| true));
    let own = known.clone();
    let (lost, due) = app
        .store
        .read_now(move |tx| Ok::<_, Error>((jobs::any_lost(tx, now)?, jobs::any_due(tx, now, lane, &own)?)))?;
    if lost {
        take_back(app)?;
    }
    if !lost && !due {
        return Ok((Vec::new(), None));
    }
    let (claimant, workers) = (app.claimant.clone(), app.workers[lane as usize].clone());
    app.store.write_now(SHARED, move |tx| {
        let mut place = None;
        let mut may = |account| {
            place = workers.try_take(account).ok();
            place.is_some()
        };
        let jobs = claimant.claim_if(tx, now, lane, &known, 1, &mut may)?;
        Ok((jobs, place))
    })
}

fn take_back(app: &App) -> Result<()> {
    let now = app.clock.now();
    for Lost { id, kind, times, parked } in app.store.write_now(SHARED, move |tx| jobs::take_back(tx, now))? {
        app.metrics.jobs_lost.inc();
        match parked {
            true => {
                tracing::error!(job = %id, kind, times, "A job was parked: the process died each time the job was started. `kantoor jobs retry` puts it back in the queue.")
            }
            false => tracing::warn!(job = %id, kind, times, "The worker of a job died; the job runs again."),
        }
    }
    Ok(())
}

/// Runs the jobs of an account that follow from a date, or waits for the workers that run them. A job that is to be
/// retried later is left to the workers.
pub fn drain(app: &App, account: i64) -> Result<()> {
    for _ in 0..MAX_DRAIN_CHECKS {
        let now = app.clock.now();
        if app.store.read_now(move |tx| jobs::any_lost(tx, now))? {
            take_back(app)?;
        }
        if drain_once(app, account)? {
            continue;
        }
        let awaited = kinds(|kind| kind.awaited);
        if !app.store.read_now(move |tx| jobs::is_running(tx, account, &awaited))? {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// Runs the jobs that are due now; returns whether there were any.
fn drain_once(app: &App, account: i64) -> Result<bool> {
    let mut any = false;
    for lane in Lane::ALL {
        let awaited = kinds(|kind| kind.awaited && kind.lane == lane);
        if awaited.is_empty() {
            continue;
        }
        let (claimant, now) = (app.claimant.clone(), app.clock.now());
        let claimed =
            app.store.write_now(SHARED, move |tx| claimant.claim_of(tx, now, account, lane, &awaited, 100))?;
        for job in &claimed {
            let ending = handle(app, job);
            let (own, now) = (job.clone(), app.clock.now());
            app.store.write_now(SHARED, move |tx| own.finish(tx, &ending, now))?;
        }
        any |= !claimed.is_empty();
    }
    Ok(any)
}

async fn run(app: &Arc<App>, job: Claimed, pulse: &Pulse) {
    let (own, task) = (app.clone(), job.clone());
    let span = tracing::info_span!(
        target: "kantoor::trace", "job", otel.name = job.kind, otel.status_code = Empty, kantoor.job = job.id,
        kantoor.job.kind = job.kind, kantoor.job.attempt = job.attempts,
    );
    let inside = span.clone();
    let mut doing = tokio::task::spawn_blocking(move || inside.in_scope(|| handle(&own, &task)));
    let often = Duration::from_secs(LEASE_SECONDS.unsigned_abs() / 3);
    let mut renewal = tokio::time::interval_at(Instant::now() + often, often);
    let ending = loop {
        tokio::select! {
            done = &mut doing => break done.unwrap_or_else(|panic| Ending::Failed(format!("a panic: {panic}"))),
            _ = renewal.tick() => {
                pulse.turn();
                let (held, now) = (job.clone(), app.clock.now());
                let renewed = app.store.write(SHARED, move |tx| held.renew(tx, now)).await;
                if matches!(renewed, Ok(false)) {
                    tracing::warn!(job = %job.id, kind = %job.kind, "The lease of a job expired; another worker has taken it over.");
                }
            }
        }
    };
    match &ending {
        Ending::Failed(why) => {
            app.metrics.jobs_failed.inc();
            span.record("otel.status_code", "ERROR");
            tracing::warn!(job = %job.id, kind = %job.kind, attempt = job.attempts, cause = %why, "A job failed.");
        }
        Ending::Wait(_) => {}
        Ending::Done | Ending::Again(_) => {
            app.metrics.jobs_done.inc();
        }
    }
    write_end(app, job, ending, pulse).await;
}

/// Records the outcome of a job, and retries while the lease is valid.
async fn write_end(app: &Arc<App>, job: Claimed, ending: Ending, pulse: &Pulse) {
    let known = Arc::new((job, ending));
    let deadline = std::time::Instant::now() + HELD;
    let written = leases::write_end(deadline, || {
        pulse.turn();
        let (own, now) = (known.clone(), app.clock.now());
        app.store.write(SHARED, move |tx| own.0.finish(tx, &own.1, now))
    });
    if let Err(error) = written.await {
        let job = &known.0.id;
        tracing::warn!(%job, cause = %error, "Cannot record the outcome of a job; it will run again.");
    }
}

fn handle(app: &App, job: &Claimed) -> Ending {
    match registry().jobs.iter().find(|kind| kind.kind == job.kind) {
        Some(kind) => (kind.run)(app, job).unwrap_or_else(|error| Ending::Failed(error.to_string())),
        None => Ending::Failed(format!("this version does not know the job kind '{}'", job.kind)),
    }
}

/// Ensures that there is one job of each repeating type, and that neither jobs nor other retries nor schedules are
/// further ahead than a correct clock can have moved them: the clock may have jumped forward and back.
fn keep_timetable(app: &App) -> Result<()> {
    let (ids, vault, now) = (app.ids, app.site.vault.clone(), app.clock.now());
    let repeated: Vec<NewJob> =
        registry().jobs.iter().filter(|kind| kind.is_repeated()).map(|kind| kind.repeated(now)).collect();
    let keys: Vec<&'static str> = repeated.iter().map(|job| job.kind).collect();
    let there = app.store.read_now(move |tx| jobs::count(tx, &keys))?;
    if there != repeated.len() as i64 {
        let all = move |tx: &mut Tx| repeated.iter().try_for_each(|job| job.enqueue(tx, &ids, &vault, now));
        app.store.write_now(SHARED, all)?;
    }
    // Reopening an account resumes its first jobs; the others follow here.
    while app.store.read_now(jobs::any_to_resume)? {
        if app.store.write_now(SHARED, jobs::resume)? == 0 {
            // Another node holds them.
            break;
        }
    }
    while app.store.read_now(move |tx| jobs::any_ahead(tx, now))? {
        let pulled = app.store.write_now(SHARED, move |tx| jobs::pull_back(tx, now))?;
        warn_of_clock("jobs", pulled);
        if pulled == 0 {
            // Another node holds them.
            break;
        }
    }
    for retries in registry().retries {
        while app.store.read_now(move |tx| retries.any_ahead(tx, now))? {
            let pulled = app.store.write_now(SHARED, move |tx| retries.pull_back(tx, now))?;
            warn_of_clock(retries.table, pulled);
            if pulled == 0 {
                // Another node holds them.
                break;
            }
        }
    }
    for (table, pull_back) in registry().pull_back {
        warn_of_clock(table, pull_back(app)?);
    }
    Ok(())
}

fn warn_of_clock(table: &str, rescheduled: u64) {
    if rescheduled > 0 {
        tracing::warn!(
            table,
            rescheduled,
            "Work was scheduled far ahead, as after a wrong clock; it has been rescheduled."
        );
    }
}
