//! Workers: they claim jobs, do them and write down how it ended.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tokio::time::Instant;

use crate::accounts::{Account, Key};
use crate::app::App;
use crate::automation::outside;
use crate::error::{Error, Result};
use crate::jobs::{self, Ending, Job, LEASE_SECONDS, Lane, Lost, NewJob, SHARED};
use crate::loops::{self, Pulse};
use crate::resources::subscription::generate;
use crate::resources::{document, file, flow, run as flow_run, verification};
use crate::{collecting, days, idempotency, nodes, outbox, search, webhooks};

/// How often a worker looks for jobs.
const LOOK: Duration = Duration::from_millis(500);
/// How long the end of a job is tried to be written down, and how long between tries: within its lease.
const HELD: Duration = Duration::from_secs(30);
const AGAIN: Duration = Duration::from_secs(1);
/// How often that is looked after which can wait.
const SELDOM: Duration = Duration::from_secs(30);
/// How long finished jobs can be looked at.
const KEPT_SECONDS: i64 = 7 * 24 * 3600;
/// How long those can be that failed or are parked.
const FAILED_KEPT_SECONDS: i64 = 90 * 24 * 3600;
const HOUR: i64 = 3600;

/// What a job does. It runs outside any transaction and may take its time; its lease is kept.
type Handler = fn(&App, &Job) -> Result<Ending>;

/// The kinds of job.
const KINDS: &[(&str, Handler)] = &[
    ("housekeeping", housekeeping),
    ("drop_content", file::drop_content),
    ("document_pdf", document::pdf::run),
    ("deliver", outbox::deliver),
    ("days", days::run),
    ("subscriptions", generate::run),
    ("collect", collecting::run),
    ("provider_news", collecting::news),
    ("verification", verification::run),
    ("provider_cancel", verification::cancel),
];
/// Those that come back by themselves; there is one of each.
const REPEATED: [&str; 2] = ["housekeeping", "days"];
/// Those of an account that the test clock waits for: what follows from a day.
const AWAITED: &[&str] = &["collect"];
/// How long it waits for one that another worker has.
const PATIENCE: u32 = 300;
/// Their names.
static NAMES: LazyLock<Vec<&str>> = LazyLock::new(|| KINDS.iter().map(|(name, _)| *name).collect());

/// Starts the workers of this process, which run until it ends.
pub fn start(app: &Arc<App>) -> Result<()> {
    nodes::start(app)?;
    keep_timetable(app)?;
    for lane in Lane::ALL {
        for number in 1..=app.config.workers {
            let name = format!("jobs {} {number}", lane.name());
            loops::keep(app, name, loops::PATIENCE, move |app, pulse| work(app, lane, pulse));
        }
    }
    if app.config.workers > 0 {
        webhooks::start(app);
    }
    outside::start(app);
    loops::keep(app, "use of keys", loops::PATIENCE, |app, pulse| async move {
        loop {
            pulse.turn();
            tokio::time::sleep(SELDOM).await;
            note_key_use(&app).await;
        }
    });
    loops::keep(app, "timetable", loops::PATIENCE, |app, pulse| async move {
        loop {
            pulse.turn();
            tokio::time::sleep(SELDOM).await;
            let own = app.clone();
            let kept = tokio::task::spawn_blocking(move || keep_timetable(&own)).await;
            if let Ok(Err(error)) = kept {
                tracing::warn!(cause = %error, "Cannot read the schedule of jobs at the moment.");
            }
        }
    });
    loops::keep(app, "search", loops::PATIENCE, |app, pulse| async move {
        loop {
            pulse.turn();
            let own = app.clone();
            let tidied = tokio::task::spawn_blocking(move || search::tidy(&own.store)).await;
            if !matches!(tidied, Ok(Ok(true))) {
                tokio::time::sleep(LOOK).await;
            }
        }
    });
    Ok(())
}

/// A worker of a lane.
async fn work(app: Arc<App>, lane: Lane, pulse: Pulse) {
    loop {
        pulse.turn();
        if app.listeners.is_stopping() || !turn_in(&app, lane, &pulse).await {
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// Claims one job of any lane and does it; answers whether there was one.
pub async fn turn(app: &Arc<App>) -> bool {
    let pulse = Pulse::idle();
    for lane in Lane::ALL {
        if turn_in(app, lane, &pulse).await {
            return true;
        }
    }
    false
}

/// Claims one job of a lane and does it; answers whether there was one.
async fn turn_in(app: &Arc<App>, lane: Lane, pulse: &Pulse) -> bool {
    // The process waits for what is under way before it ends.
    let busy = app.listeners.begin();
    let own = app.clone();
    let claimed = tokio::task::spawn_blocking(move || claim(&own, lane)).await;
    let jobs = match claimed {
        Ok(Ok(jobs)) => jobs,
        Ok(Err(error)) => {
            tracing::warn!(cause = %error, "Cannot claim jobs at the moment.");
            return false;
        }
        Err(_) => return false,
    };
    let any = !jobs.is_empty();
    for job in jobs {
        run(app, job, pulse).await;
    }
    drop(busy);
    any
}

/// Takes back what dead workers left, and claims a job; in transactions of their own when a look says that it is worth it.
fn claim(app: &App, lane: Lane) -> Result<Vec<Job>> {
    let now = app.clock.now();
    let (lost, due) = app
        .store
        .read_now(move |tx| Ok::<_, Error>((jobs::any_lost(tx, now)?, jobs::any_due(tx, now, lane, &NAMES)?)))?;
    if lost {
        take_back(app)?;
    }
    if !lost && !due {
        return Ok(Vec::new());
    }
    let claimant = app.claimant.clone();
    app.store.write_now(SHARED, move |tx| claimant.claim(tx, now, lane, &NAMES, 1))
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

/// Does the jobs of an account that follow from a day, or waits for whoever has them. One that is
/// to be tried again later is left to the workers.
pub fn drain(app: &App, account: i64) -> Result<()> {
    for _ in 0..PATIENCE {
        let (claimant, now) = (app.claimant.clone(), app.clock.now());
        if app.store.read_now(move |tx| jobs::any_lost(tx, now))? {
            take_back(app)?;
        }
        let jobs =
            app.store.write_now(SHARED, move |tx| claimant.claim_of(tx, now, account, Lane::Outside, AWAITED, 100))?;
        for job in &jobs {
            let ending = handle(app, job);
            let (own, now) = (job.clone(), app.clock.now());
            app.store.write_now(SHARED, move |tx| own.finish(tx, &ending, now))?;
        }
        if !jobs.is_empty() {
            continue;
        }
        if !app.store.read_now(move |tx| jobs::is_running(tx, account, AWAITED))? {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

async fn run(app: &Arc<App>, job: Job, pulse: &Pulse) {
    let (own, task) = (app.clone(), job.clone());
    let mut doing = tokio::task::spawn_blocking(move || handle(&own, &task));
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
            tracing::warn!(job = %job.id, kind = %job.kind, attempt = job.attempts, cause = %why, "A job failed.");
        }
        Ending::Wait(_) => {}
        Ending::Done | Ending::Again(_) => {
            app.metrics.jobs_done.inc();
        }
    }
    write_end(app, job, ending, pulse).await;
}

/// Writes down how a job ended, and as long as that cannot be done and the lease holds, once more.
async fn write_end(app: &Arc<App>, job: Job, ending: Ending, pulse: &Pulse) {
    let known = Arc::new((job, ending));
    let started = Instant::now();
    loop {
        pulse.turn();
        let (own, now) = (known.clone(), app.clock.now());
        match app.store.write(SHARED, move |tx| own.0.finish(tx, &own.1, now)).await {
            Ok(_) => return,
            Err(_) if started.elapsed() < HELD => tokio::time::sleep(AGAIN).await,
            Err(error) => {
                let job = &known.0.id;
                tracing::warn!(%job, cause = %error, "Cannot record the outcome of a job; it will run again.");
                return;
            }
        }
    }
}

fn handle(app: &App, job: &Job) -> Ending {
    let handler = KINDS.iter().find(|(kind, _)| *kind == job.kind);
    match handler {
        Some((_, handler)) => handler(app, job).unwrap_or_else(|error| Ending::Failed(error.to_string())),
        None => Ending::Failed(format!("this version does not know the job kind '{}'", job.kind)),
    }
}

/// Sees to it that the jobs that come back by themselves are there, one of each, and that none stands further ahead than it
/// can: the clock may have jumped forward and back.
fn keep_timetable(app: &App) -> Result<()> {
    let (ids, now) = (app.ids, app.clock.now());
    let (there, ahead) = app.store.read_now(move |tx| {
        let sql = "SELECT count(*) FROM jobs WHERE unique_key IN ($1, $2)";
        Ok::<_, Error>((tx.int(sql, &REPEATED.map(Into::into))?, jobs::any_ahead(tx, now)?))
    })?;
    if there == REPEATED.len() as i64 && !ahead {
        return Ok(());
    }
    let pulled = app.store.write_now(SHARED, move |tx| {
        for kind in REPEATED {
            let job = NewJob {
                account: 0,
                kind,
                payload: "{}".to_string(),
                run_at: now,
                max_attempts: i64::MAX,
                unique_key: Some(kind.to_string()),
            };
            jobs::enqueue(tx, &ids, &job, now)?;
        }
        jobs::pull_back(tx, now)
    })?;
    if pulled > 0 {
        tracing::warn!(
            jobs = pulled,
            "Jobs were scheduled far ahead, as after a wrong clock; they have been rescheduled."
        );
    }
    Ok(())
}

/// Once an hour: drops stored answers, deliveries, runs and jobs that are too old to be asked for, and definitions of
/// flows that no run needs any more, a thousand at a time so that nobody waits for it.
fn housekeeping(app: &App, _: &Job) -> Result<Ending> {
    let now = app.clock.now();
    for account in app.store.read_now(Account::all)? {
        let caller = app.acting(account, "housekeeping");
        until_done(|| {
            let own = caller.clone();
            app.store.write_now(caller.account.number, move |tx| {
                let ctx = own.writing(tx)?;
                let answers = idempotency::purge(tx, ctx.account, ctx.now)?;
                let deliveries = webhooks::queue::purge(tx, ctx.account, ctx.machine_now)?;
                let runs = flow_run::purge(tx, &ctx)?;
                Ok(answers + deliveries + runs + flow::purge(tx, &ctx)?)
            })
        })?;
    }
    for (state, kept) in [("done", KEPT_SECONDS), ("failed", FAILED_KEPT_SECONDS), ("parked", FAILED_KEPT_SECONDS)] {
        until_done(|| app.store.write_now(SHARED, move |tx| jobs::purge(tx, state, now.plus_seconds(-kept))))?;
    }
    Ok(Ending::Again(now.plus_seconds(HOUR)))
}

fn until_done(purge: impl Fn() -> Result<u64>) -> Result<()> {
    while purge()? > 0 {}
    Ok(())
}

async fn note_key_use(app: &App) {
    let uses = app.keys.take_used();
    if uses.is_empty() {
        return;
    }
    let written = app.store.write(SHARED, move |tx| Key::used(tx, &uses)).await;
    if let Err(error) = written {
        tracing::warn!(cause = %error, "Cannot record when keys were last used.");
    }
}
