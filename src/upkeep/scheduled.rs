//! Scheduled backups (`backup_to`): one node makes them, deletes those that are no longer kept, and proves the newest one
//! by restoring it.

pub mod proof;
pub mod retention;
pub mod schedule;
pub mod state;

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use archive::Identities;
use blobs::Blobs;
use engine::accounts::Account;
use engine::app::App;
use engine::clock::{Clock, Ids, Moment};
use engine::config::Config;
use engine::error::{Code, Error, Result};
use engine::http::metrics::Metric;
use engine::log::Verdict;
use engine::loops::{self, Poll};
use engine::open::open_blobs_at;
use engine::private;
use engine::secrets::vault::Vault;
use engine::services::Services;
use futures_util::TryStreamExt;
use store::Store;
use tokio::runtime::Handle;

use crate::upkeep::backup::place::Place;
use crate::upkeep::backup::{self, BackupKeys, BackupOutcome, Making};
use crate::upkeep::integrity::{Checked, Problem, Witness};
use crate::upkeep::restore::Restoring;
use retention::DatabaseId;
use schedule::Schedule;
use state::{Claim, State, Task};

/// How often the schedule is read.
const POLL_INTERVAL: Duration = Duration::from_secs(30);
/// How often a claim is renewed.
const RENEWED: Duration = Duration::from_secs(30);
/// Delay after a failure, in seconds.
const AGAIN: i64 = 15 * 60;
/// How often progress is logged.
const TOLD: Duration = Duration::from_secs(30);

/// The schedule as a service.
struct Scheduled {
    /// None if no backups are scheduled.
    schedule: Option<Schedule>,
}

/// What backups are made of, by the server or by a command.
pub struct Source<'s> {
    /// The database.
    pub store: &'s Store,
    /// The contents of its files.
    pub blobs: &'s Blobs,
    /// The settings.
    pub config: &'s Config,
    /// The runtime that reads contents.
    pub runtime: &'s Handle,
    /// The keys for its secrets.
    pub vault: Option<&'s Vault>,
}

/// A backup that was made.
pub struct Made {
    /// Where it is.
    pub place: Place,
    /// Its name in that place.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// What was checked.
    pub checked: Checked,
    /// Why older ones could not be deleted, if they could not.
    pub undeleted: Option<String>,
}

/// Reads the settings at the start.
pub fn open(config: &Config, _: &str, services: &mut Services) -> Result<()> {
    let schedule = Schedule::of(config).map_err(|why| Error::new(Code::Unavailable, format!("{why}.")))?;
    services.add(Scheduled { schedule });
    Ok(())
}

/// Whether backups are scheduled: what was never made is only missed then.
pub fn is_scheduled(app: &App) -> Metric {
    let scheduled = u64::from(app.services.get::<Scheduled>().schedule.is_some());
    ("backup_scheduled", "gauge", "1 if backups are scheduled (backup_to), else 0", scheduled)
}

/// Starts the loop, if backups are scheduled.
pub fn start(app: &Arc<App>) {
    if app.services.get::<Scheduled>().schedule.is_none() {
        return;
    }
    loops::keep(app, "backups", loops::STALL_TIMEOUT, |app, pulse| async move {
        let mut poll = Poll::every(POLL_INTERVAL);
        loop {
            poll.wait(&pulse).await;
            let own = app.clone();
            let mut work = tokio::task::spawn_blocking(move || turn(&own));
            let done = loop {
                // A backup may take hours.
                match tokio::time::timeout(POLL_INTERVAL, &mut work).await {
                    Ok(done) => break done,
                    Err(_) => pulse.turn(),
                }
            };
            let done = done.unwrap_or_else(|panic| Err(Error::internal(panic.to_string())));
            poll.turned(done.map(|_| false), "Cannot read the schedule of backups at the moment.");
        }
    });
}

/// Does what is due; returns whether something was. Blocks, on a thread of the runtime.
pub fn turn(app: &App) -> Result<bool> {
    let Scheduled { schedule: Some(schedule) } = app.services.get::<Scheduled>() else { return Ok(false) };
    let made = attempt(app, schedule, Task::Make)?;
    let checked = attempt(app, schedule, Task::Check)?;
    Ok(made || checked)
}

fn attempt(app: &App, schedule: &Schedule, task: Task) -> Result<bool> {
    let now = app.clock.now();
    let since = Moment(now.0 - app.microseconds() / 1000);
    let (state, made, last_place) = app
        .store
        .read_now(|tx| Ok::<_, Error>((State::of(tx, task)?, State::of(tx, Task::Make)?, state::place(tx)?)))?;
    let has_moved = schedule.has_moved(&last_place);
    // A time in the future was set by a wrong clock. What failed before this process started may have been solved, and a newer
    // backup may be better than the one that failed its check.
    let has_failed = !state.last_error.is_empty()
        && state.tried_at >= since
        && (0..AGAIN * 1000).contains(&(now.0 - state.tried_at.0))
        && (task == Task::Make || made.done_at < state.tried_at);
    let is_due = match task {
        Task::Make => has_moved || schedule.at.is_due(state.done_at, now),
        Task::Check => {
            let is_due = |check| schedule::When::Every(check).is_due(state.done_at, now);
            !has_moved && made.done_at.0 > 0 && schedule.check.is_some_and(is_due)
        }
    };
    if has_failed || !is_due || app.listeners.is_stopping() {
        return Ok(false);
    }
    let Some(claim) = Claim::take(&app.store, task, &app.node, state.tried_at, now)? else { return Ok(false) };
    let done = while_renewing(&app.store, &app.clock, claim, || match task {
        Task::Make => make_for_server(app, schedule, now),
        Task::Check => check(app, schedule, &made),
    });
    match done {
        Ok((name, bytes)) => claim.succeed(&app.store, app.clock.now(), (&name, bytes), &schedule.to)?,
        Err(why) => {
            match task {
                Task::Make => tracing::error!(cause = why, "The scheduled backup failed; retrying in 15 minutes."),
                Task::Check => tracing::error!(cause = why, "The newest backup could not be restored and verified."),
            }
            claim.fail(&app.store, &why)?;
        }
    }
    Ok(true)
}

/// Makes a backup for the operator, like one that is due: with its name, in its place and with its record. No other process makes
/// one meanwhile.
pub fn make_now(source: &Source, schedule: &Schedule, witness: &mut dyn Witness) -> std::result::Result<Made, String> {
    let told = |error: Error| error.internal.unwrap_or(error.message);
    let clock = Clock::of(source.store).map_err(|error| error.to_string())?;
    let (now, node) = (clock.now(), Ids::SYSTEM.next());
    let state = source.store.read_now(|tx| State::of(tx, Task::Make)).map_err(told)?;
    let claim = Claim::take(source.store, Task::Make, &node, state.tried_at, now).map_err(told)?;
    let claim = claim.ok_or("a scheduled backup is being made at the moment; try again when it is done")?;
    match while_renewing(source.store, &clock, claim, || make(source, schedule, now, witness)) {
        Ok(made) => {
            let done = claim.succeed(source.store, clock.now(), (&made.name, made.bytes), &schedule.to);
            done.map(|()| made).map_err(told)
        }
        Err(why) => {
            claim.fail(source.store, &why).map_err(told)?;
            Err(why)
        }
    }
}

/// Runs `work`, and renews the claim meanwhile.
fn while_renewing<T>(store: &Store, clock: &Clock, claim: Claim, work: impl FnOnce() -> T) -> T {
    let (stop, stopped) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while stopped.recv_timeout(RENEWED) == Err(RecvTimeoutError::Timeout) {
                // A failed renewal is covered by the next: a claim outlives several.
                let _ = claim.renew(store, clock.now());
            }
        });
        let done = work();
        drop(stop);
        done
    })
}

/// Makes a backup that is due; returns its name and size.
fn make_for_server(app: &App, schedule: &Schedule, now: Moment) -> std::result::Result<(String, u64), String> {
    let runtime = Handle::current();
    let vault = Some(app.site.vault.as_ref());
    let source = Source { store: &app.store, blobs: &app.blobs, config: &app.config, runtime: &runtime, vault };
    tracing::info!(to = schedule.to, "A scheduled backup begins.");
    let Made { place, name, bytes, checked, undeleted } =
        make(&source, schedule, now, &mut Told::new("Making a backup."))?;
    tracing::info!(%place, bytes, records = checked.records, files = checked.files, "The backup is complete and verified.");
    if let Some(why) = undeleted {
        tracing::error!(cause = why, "Old backups could not be deleted.");
    }
    Ok((name, bytes))
}

/// Makes a backup, then deletes those that are no longer kept.
fn make(
    source: &Source,
    schedule: &Schedule,
    now: Moment,
    witness: &mut dyn Witness,
) -> std::result::Result<Made, String> {
    let id = id(source.store)?;
    let name = retention::name(&id, now, !schedule.recipients.is_empty());
    let (config, place) = (source.config, schedule.place(&name, source.config)?);
    if let Place::File(path) = &place {
        let folder = path.parent().unwrap_or(Path::new("."));
        prepare(folder, source, schedule)?;
        backup::remove_unfinished(folder);
    }
    backup::remove_unfinished(&config.data);
    let mut making = Making {
        store: source.store,
        blobs: source.blobs,
        runtime: source.runtime,
        keys: BackupKeys { vault: source.vault, included: schedule.with_key },
        recipients: &schedule.recipients,
        workplace: &config.data,
        witness,
    };
    match making.run(&place)? {
        BackupOutcome::Made { checked, bytes } => {
            let undeleted = delete_expired(source, schedule, &id).err();
            Ok(Made { place, name, bytes, checked, undeleted })
        }
        BackupOutcome::Unsound { checked, .. } => {
            Err(format!("the copy failed verification, with {} problems", checked.problems))
        }
    }
}

/// Creates the folder for the first backup. One that had a backup and is gone is on a disk that is not mounted: created again, it
/// would fill another one.
fn prepare(folder: &Path, source: &Source, schedule: &Schedule) -> std::result::Result<(), String> {
    let last_place = source.store.read_now(state::place).map_err(|error| error.internal.unwrap_or(error.message))?;
    if last_place == schedule.to && matches!(folder.try_exists(), Ok(false)) {
        return Err(format!(
            "{}: the folder with the last backup is gone; mount its disk, or create it",
            folder.display()
        ));
    }
    backup::must_have_parent(folder)?;
    private::create_folder(folder).map_err(|error| backup::plainly(folder, &error))
}

/// Restores the newest backup beside, and verifies it.
fn check(app: &App, schedule: &Schedule, made: &State) -> std::result::Result<(String, u64), String> {
    let (runtime, place) = (Handle::current(), schedule.place(&made.name, &app.config)?);
    let identities = schedule.identity.as_deref().map(Identities::read).transpose();
    let identities = identities.map_err(|why| format!("backup_identity: {why}"))?;
    let mut told = Told::new("Checking a backup.");
    let mut restoring = Restoring {
        config: &app.config,
        runtime: &runtime,
        identities: identities.as_ref(),
        trusts_unsigned: false,
        witness: &mut told,
    };
    tracing::info!(%place, "The newest backup is restored to a temporary place and verified.");
    let restored = restoring.check(&place)?;
    match restored.checked.problems {
        0 => {
            tracing::info!(%place, records = restored.checked.records, "The backup can be restored.");
            Ok((made.name.clone(), made.bytes.unsigned_abs()))
        }
        problems => Err(format!("{place} has {problems} problems; see the log")),
    }
}

/// The id of the database; one without accounts has nothing to tell apart.
fn id(store: &Store) -> std::result::Result<DatabaseId, String> {
    let accounts = store.read_now(Account::all).map_err(|error| error.internal.unwrap_or(error.message))?;
    Ok(DatabaseId::of(accounts.first().map_or("", |account| account.uid.as_str())))
}

fn delete_expired(source: &Source, schedule: &Schedule, id: &DatabaseId) -> std::result::Result<(), String> {
    let Source { store, config, runtime, .. } = source;
    let proven = match schedule.check {
        Some(_) => store.read_now(|tx| State::of(tx, Task::Check)).map_err(|error| error.message)?.name,
        // One that was proven long ago need not stay.
        None => String::new(),
    };
    if schedule.to.starts_with("s3://") {
        let blobs = open_blobs_at(config, &schedule.to).map_err(|error| error.message)?;
        let names: Vec<String> = runtime.block_on(blobs.list().try_collect()).map_err(|error| error.to_string())?;
        for name in schedule.keep.expired(id, names, &proven) {
            runtime.block_on(blobs.drop(&name)).map_err(|error| format!("{name}: {error}"))?;
            tracing::info!(name, "An old backup was deleted.");
        }
        return Ok(());
    }
    let folder = Path::new(&schedule.to);
    let entries = std::fs::read_dir(folder).map_err(|error| error.to_string())?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    for name in schedule.keep.expired(id, names.collect(), &proven) {
        std::fs::remove_file(folder.join(&name)).map_err(|error| format!("{name}: {error}"))?;
        tracing::info!(name, "An old backup was deleted.");
    }
    Ok(())
}

/// Logs the progress and the problems.
struct Told {
    words: &'static str,
    last: Instant,
}

impl Told {
    fn new(words: &'static str) -> Told {
        Told { words, last: Instant::now() }
    }

    fn at(&mut self, what: &str, count: u64) {
        if self.last.elapsed() >= TOLD {
            self.last = Instant::now();
            tracing::info!(what, count, "{}", self.words);
        }
    }
}

impl Witness for Told {
    fn sees(&mut self, what: &str, count: u64) {
        self.at(what, count);
    }

    fn copies(&mut self, what: &str, done: u64) {
        self.at(what, done);
    }

    fn hears(&mut self, problem: &Problem) {
        let Problem { account, table, id, what } = problem;
        tracing::error!(account, table, id, what, "A backup has a problem.");
    }

    fn walked(&mut self, account: &Account, verdict: &Verdict) {
        if let Verdict::Broken { seq, why, .. } = verdict {
            tracing::error!(account = account.uid, seq, why, "The audit chain in a backup is broken.");
        }
    }

    fn notes(&mut self, _: &Account, _: &str) {}

    fn remarks(&mut self, _: &str) {}

    fn misses(&mut self, _: &str) {}
}
