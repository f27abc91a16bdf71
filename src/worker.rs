//! Workers: they claim jobs, do them and write down how it ended.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use crate::accounts::{Account, Key};
use crate::app::App;
use crate::automation::outside;
use crate::error::Result;
use crate::jobs::{self, Ending, Job, LEASE_SECONDS, NewJob, SHARED};
use crate::resources::subscription::generate;
use crate::resources::{document, file, flow, run as flow_run, verification};
use crate::{collecting, days, idempotency, outbox, search, webhooks};

/// How often a worker looks for jobs.
const LOOK: Duration = Duration::from_millis(500);
/// How long finished jobs can be looked at.
const KEPT_SECONDS: i64 = 7 * 24 * 3600;
/// How long failed ones can be.
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
/// Those of an account that the test clock waits for: what follows from a day.
const AWAITED: &[&str] = &["collect"];
/// How long it waits for one that another worker has.
const PATIENCE: u32 = 300;
/// Their names.
static NAMES: LazyLock<Vec<&str>> = LazyLock::new(|| KINDS.iter().map(|(name, _)| *name).collect());

/// Starts the workers of this process, which run until it ends.
pub fn start(app: &Arc<App>) -> Result<()> {
    for kind in ["housekeeping", "days"] {
        schedule(app, kind)?;
    }
    for _ in 0..app.config.workers {
        let app = app.clone();
        tokio::spawn(async move {
            loop {
                let worked = turn(&app).await;
                if !worked {
                    tokio::time::sleep(LOOK).await;
                }
            }
        });
    }
    if app.config.workers > 0 {
        webhooks::start(app);
    }
    outside::start(app);
    let own = app.clone();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_secs(30)).await;
            note_key_use(&own).await;
        }
    });
    let app = app.clone();
    tokio::spawn(async move {
        loop {
            let own = app.clone();
            let tidied = tokio::task::spawn_blocking(move || search::tidy(&own.store)).await;
            if !matches!(tidied, Ok(Ok(true))) {
                tokio::time::sleep(LOOK).await;
            }
        }
    });
    Ok(())
}

/// Claims one job and does it; answers whether there was one.
pub async fn turn(app: &Arc<App>) -> bool {
    let (own, now) = (app.clone(), app.clock.now());
    let claimed = tokio::task::spawn_blocking(move || jobs::claim_due(&own.store, now, &NAMES, 1)).await;
    let jobs = match claimed {
        Ok(Ok(jobs)) => jobs,
        Ok(Err(error)) => {
            tracing::warn!(cause = %error, "Jobs cannot be claimed now.");
            return false;
        }
        Err(_) => return false,
    };
    let any = !jobs.is_empty();
    for job in jobs {
        run(app, job).await;
    }
    any
}

/// Does the jobs of an account that follow from a day, or waits for whoever has them. One that is
/// to be tried again later is left to the workers.
pub fn drain(app: &App, account: i64) -> Result<()> {
    for _ in 0..PATIENCE {
        let now = app.clock.now();
        let jobs = app.store.write_now(SHARED, move |tx| jobs::claim_of(tx, now, account, AWAITED))?;
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

async fn run(app: &Arc<App>, job: Job) {
    let (own, task) = (app.clone(), job.clone());
    let mut doing = tokio::task::spawn_blocking(move || handle(&own, &task));
    let mut renewal = tokio::time::interval(Duration::from_secs(LEASE_SECONDS.unsigned_abs() / 3));
    let ending = loop {
        tokio::select! {
            done = &mut doing => break done.unwrap_or_else(|panic| Ending::Failed(format!("a panic: {panic}"))),
            _ = renewal.tick() => {
                let (held, now) = (job.clone(), app.clock.now());
                let renewed = app.store.write(SHARED, move |tx| held.renew(tx, now)).await;
                if matches!(renewed, Ok(false)) {
                    tracing::warn!(job = %job.id, kind = %job.kind, "A job took so long that another worker has it now.");
                }
            }
        }
    };
    match &ending {
        Ending::Failed(why) => {
            app.metrics.jobs_failed.inc();
            tracing::warn!(job = %job.id, kind = %job.kind, attempt = job.attempts, cause = %why, "A job failed.");
        }
        _ => {
            app.metrics.jobs_done.inc();
        }
    }
    let now = app.clock.now();
    let ended = app.store.write(SHARED, move |tx| job.finish(tx, &ending, now)).await;
    if let Err(error) = ended {
        tracing::warn!(cause = %error, "The end of a job could not be written; it will be done again.");
    }
}

fn handle(app: &App, job: &Job) -> Ending {
    let handler = KINDS.iter().find(|(kind, _)| *kind == job.kind);
    match handler {
        Some((_, handler)) => handler(app, job).unwrap_or_else(|error| Ending::Failed(error.to_string())),
        None => Ending::Failed(format!("this version does not know jobs of the kind '{}'", job.kind)),
    }
}

/// A job that there is one of, which comes back by itself.
fn schedule(app: &App, kind: &'static str) -> Result<()> {
    let (ids, now) = (app.ids, app.clock.now());
    let job = NewJob {
        account: 0,
        kind,
        payload: "{}".to_string(),
        run_at: now,
        max_attempts: i64::MAX,
        unique_key: Some(kind.to_string()),
    };
    app.store.write_now(SHARED, move |tx| jobs::enqueue(tx, &ids, &job, now))
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
    for (state, kept) in [("done", KEPT_SECONDS), ("failed", FAILED_KEPT_SECONDS)] {
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
        tracing::warn!(cause = %error, "The use of keys could not be written down.");
    }
}
