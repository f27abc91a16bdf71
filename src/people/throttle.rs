//! Limits how often passwords and codes can be guessed, across all nodes: per e-mail address from an IP address, and per IP
//! address. Only failures count: an attempt that succeeds is deleted.
//!
//! An attempt is committed before the attempts are counted, so however many requests arrive together on however many
//! nodes, no more than the limit see a count within it. So that attempts which are going to succeed do not look like failures
//! to each other, only half as many as the limit are in progress on a node; the others wait for their turn.
//!
//! A flood of strangers must not keep out those who are known: who have a session or a link, or an IP address from which
//! the person signed in before. So only some strangers are in progress at a time, and these share nothing with the others
//! but the hashes of passwords, for which both take turns.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use engine::accounts::{self, SHARED};
use engine::app::App;
use engine::clock::Moment;
use engine::config::Config;
use engine::contents::hex;
use engine::context::Ctx;
use engine::error::{Code, Error, Result};
use engine::services::Services;
use store::Tx;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::people::failures::{self, Reason};
use crate::people::password::Line;
use crate::people::person::folded;

/// The attempts are counted over this time.
const WINDOW_SECONDS: i64 = 15 * 60;
const PER_EMAIL: i64 = 10;
const PER_ADDRESS: i64 = 50;
/// How long an IP address is known from which somebody signed in.
const KNOWN_SECONDS: i64 = 90 * 24 * 3600;
/// How long it is remembered that something was used: longer than an issuer accepts a code.
const USED_SECONDS: i64 = 24 * 3600;
/// How long after a link for a new password was mailed to a person strangers cause no other.
const BETWEEN_RESETS_SECONDS: i64 = 5 * 60;
/// How long an attempt waits for its turn.
const MAX_WAIT: Duration = Duration::from_secs(10);
/// The attempts of strangers that are in progress on a node: enough to keep the hashes busy, and few enough that nobody
/// waits for long behind what they write.
const STRANGERS: usize = 32;

/// The attempts in progress on this node.
pub struct Turns {
    /// By what they are counted by.
    counted: Mutex<HashMap<String, Weak<Semaphore>>>,
    strangers: Arc<Semaphore>,
}

/// Opens the turns of attempts.
pub fn open(_: &Config, _: &str, services: &mut Services) -> Result<()> {
    services.add(Turns { counted: Mutex::default(), strangers: Arc::new(Semaphore::new(STRANGERS)) });
    Ok(())
}

impl Turns {
    /// Waits until fewer attempts are in progress than half the limit.
    async fn take(&self, subject: &str, limit: i64) -> Result<OwnedSemaphorePermit> {
        let turns = {
            let mut all = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
            all.retain(|_, turns| turns.strong_count() > 0);
            all.get(subject).and_then(Weak::upgrade).unwrap_or_else(|| {
                let turns = Arc::new(Semaphore::new(usize::try_from(limit / 2).unwrap_or(1)));
                all.insert(subject.to_string(), Arc::downgrade(&turns));
                turns
            })
        };
        wait(turns).await
    }
}

async fn wait(turns: Arc<Semaphore>) -> Result<OwnedSemaphorePermit> {
    let turn = tokio::time::timeout(MAX_WAIT, turns.acquire_owned()).await;
    turn.map_err(|_| busy())?.map_err(|closed| Error::internal(closed.to_string()))
}

fn busy() -> Error {
    let message = "Several sign-ins for this person or from this place are in progress; retry shortly.";
    Error { retry_after: Some(1), ..Error::new(Code::TooManyRequests, message) }
}

/// What attempts are counted by.
#[derive(Clone)]
pub struct Attempt {
    /// The e-mail address, from wherever; empty if only those from the same IP address count.
    email: String,
    /// The e-mail address from this IP address: others must not be able to lock the person out.
    from_here: String,
    address: String,
    /// The row that makes the IP address known, until its time; empty if it cannot be.
    known: String,
    /// Whether the attempt is that of a stranger, as far as is known: without a session or a link, and until it is counted.
    is_strange: bool,
    /// The rows of this attempt.
    rows: Vec<String>,
    /// Its turns, until it has succeeded or failed.
    turns: Vec<Arc<OwnedSemaphorePermit>>,
}

impl Attempt {
    /// An attempt to enter the password of this e-mail address, from this IP address.
    pub fn new(email: &str, address: &str) -> Attempt {
        let from = format!("address {address}");
        Attempt { email: String::new(), address: from, ..Attempt::to("e-mail", email, address) }
    }

    /// An attempt of somebody who has a session or a link.
    pub fn admitted(email: &str, address: &str) -> Attempt {
        Attempt { is_strange: false, ..Attempt::new(email, address) }
    }

    /// A request for a link for a new password. It is counted by IP address alone: strangers must not keep a person from it.
    pub fn reset(email: &str, address: &str) -> Attempt {
        // From where the person signs in.
        let known = Attempt::new(email, address).known;
        Attempt { email: String::new(), known, ..Attempt::to("reset", email, address) }
    }

    /// An attempt to enter a code after the password: failures of others at the IP address do not stop somebody who knows it.
    pub fn code(email: &str, address: &str) -> Attempt {
        Attempt { address: String::new(), is_strange: false, ..Attempt::to("code", email, address) }
    }

    /// An attempt to enter a code after opening a link for a new password: whoever reads the mail of somebody must not keep them
    /// from entering theirs after the password.
    pub fn code_of_reset(email: &str, address: &str) -> Attempt {
        Attempt { address: String::new(), is_strange: false, ..Attempt::to("code of reset", email, address) }
    }

    /// An attempt to do something with this e-mail address, which is counted apart, and together from all IP addresses
    /// that are not known.
    fn to(what: &str, email: &str, address: &str) -> Attempt {
        // A longer text is no e-mail address.
        let email: String = folded(email).chars().take(255).collect();
        let pair = format!("{what} {email} {address}");
        let known = if address.is_empty() { String::new() } else { format!("known {pair}") };
        Attempt {
            email: format!("{what} {email}"),
            from_here: format!("here {pair}"),
            address: format!("address {what} {address}"),
            known,
            is_strange: true,
            rows: Vec::new(),
            turns: Vec::new(),
        }
    }

    /// An attempt that has no e-mail address yet.
    pub fn from_address(what: &str, address: &str) -> Attempt {
        let address = format!("{what} {address}");
        let none = String::new;
        // It waits for others than us.
        let is_strange = false;
        Attempt {
            email: none(),
            from_here: none(),
            address,
            known: none(),
            is_strange,
            rows: Vec::new(),
            turns: Vec::new(),
        }
    }

    /// Whether the attempt is that of a stranger.
    pub fn is_strange(&self) -> bool {
        self.is_strange
    }

    /// Returns the line in which the attempt waits for the hash of the password.
    pub fn line(&self) -> Line {
        if self.is_strange { Line::Strangers } else { Line::Known }
    }

    /// Counts the attempt as a failure until it is forgiven, or rejects it if there were too many. An attempt that is
    /// rejected before it is written does not count.
    pub async fn count(&mut self, app: &App) -> Result<()> {
        let counted = self.admit(app).await;
        counted.inspect_err(|error| {
            if error.code == Code::TooManyRequests {
                app.metrics.add(failures::FAILED.name, Reason::TooMany.wire());
            }
        })
    }

    async fn admit(&mut self, app: &App) -> Result<()> {
        let now = app.clock.now();
        let own = self.clone();
        let (subjects, is_known) = app.store.read(move |tx| own.subjects(tx, now)).await?;
        self.is_strange &= !is_known;
        let turns = app.services.get::<Turns>();
        // All of them take the turn of the e-mail address first, so none waits for one that waits for it. The last one is
        // that of strangers: those that wait for each other take no room from the rest.
        for (subject, limit) in &subjects {
            self.turns.push(Arc::new(turns.take(subject, *limit).await?));
        }
        if self.is_strange {
            self.turns.push(Arc::new(wait(turns.strangers.clone()).await?));
        }
        let own = subjects.clone();
        app.store.read(move |tx| check(tx, &own, now, 0)).await?;
        self.rows = subjects.iter().map(|_| app.ids.next()).collect();
        let (own, rows) = (subjects.clone(), self.rows.clone());
        let written = app.store.write(SHARED, move |tx| {
            for ((subject, _), id) in own.iter().zip(&rows) {
                let sql = "INSERT INTO sign_in_attempts (id, subject, at) VALUES ($1, $2, $3)";
                tx.execute(sql, &[id.into(), subject.into(), now.0.into()])?;
            }
            Ok::<_, Error>(())
        });
        written.await?;
        app.store.read(move |tx| check(tx, &subjects, now, 1)).await
    }

    /// Returns what is counted, with its limit, and whether the IP address is known. From a known one, that is its own attempts
    /// with the e-mail address alone: the failures of others who share the IP address do not lock the person out.
    fn subjects(&self, tx: &mut Tx, now: Moment) -> Result<(Vec<(String, i64)>, bool)> {
        let sql = "SELECT count(*) FROM sign_in_attempts WHERE subject = $1 AND at > $2";
        let is_known = !self.known.is_empty() && tx.int(sql, &[(&self.known).into(), now.0.into()])? > 0;
        let own = if self.email.is_empty() || is_known { &self.from_here } else { &self.email };
        let mut subjects = vec![(own.clone(), PER_EMAIL)];
        if !is_known {
            subjects.push((self.address.clone(), PER_ADDRESS));
        }
        subjects.retain(|(subject, _)| !subject.is_empty());
        Ok((subjects, is_known))
    }

    /// Forgets the attempts with an e-mail address after one succeeded, and this attempt. Failures of the IP address with
    /// other e-mail addresses still count. From now on, the IP address is known. A failure does not fail the request: the
    /// attempts expire.
    pub async fn forgive(&self, app: &App) {
        let (own, id, until) = (self.clone(), app.ids.next(), app.clock.now().plus_seconds(KNOWN_SECONDS));
        let written = app.store.write(SHARED, move |tx| {
            for subject in [&own.email, &own.from_here, &own.known].into_iter().filter(|subject| !subject.is_empty()) {
                tx.execute("DELETE FROM sign_in_attempts WHERE subject = $1", &[subject.into()])?;
            }
            for row in &own.rows {
                tx.execute("DELETE FROM sign_in_attempts WHERE id = $1", &[row.into()])?;
            }
            if !own.known.is_empty() {
                let sql = "INSERT INTO sign_in_attempts (id, subject, at) VALUES ($1, $2, $3)";
                tx.execute(sql, &[(&id).into(), (&own.known).into(), until.0.into()])?;
            }
            Ok::<_, Error>(())
        });
        if let Err(cause) = written.await {
            tracing::warn!(%cause, "The attempts to sign in still count, although one succeeded.");
        }
    }
}

/// Rejects an attempt if there were too many by one of the subjects; `counted` of them is this one.
fn check(tx: &mut Tx, subjects: &[(String, i64)], now: Moment, counted: i64) -> Result<()> {
    for (subject, limit) in subjects {
        let sql = "SELECT count(*), coalesce(min(at), 0) FROM sign_in_attempts WHERE subject = $1 AND at > $2";
        let since = now.plus_seconds(-WINDOW_SECONDS).0;
        let found = tx.first(sql, &[subject.into(), since.into()], |row| Ok::<_, Error>((row.int(0)?, row.int(1)?)))?;
        let (count, oldest) = found.unwrap_or_default();
        if count - counted >= *limit {
            let seconds = ((oldest - since + 999) / 1000).clamp(1, WINDOW_SECONDS);
            let minutes = (seconds + 59) / 60;
            let message = format!("Too many attempts. Try again in {minutes} min.");
            let retry_after = u32::try_from(seconds).ok();
            return Err(Error { retry_after, ..Error::new(Code::TooManyRequests, message) });
        }
    }
    Ok(())
}

/// Notes that a link for a new password is mailed to a person now; returns whether none was for a while. This holds across
/// all nodes and accounts.
pub fn note_reset(tx: &mut Tx, person: &str, now: Moment) -> Result<bool> {
    let (id, from) = (format!("mailed reset {person}"), now.plus_seconds(-BETWEEN_RESETS_SECONDS));
    // A clock that was ahead must not stop them.
    let sql = "INSERT INTO sign_in_attempts (id, subject, at) VALUES ($1, $2, $3)
               ON CONFLICT (id) DO UPDATE SET at = excluded.at
               WHERE sign_in_attempts.at <= $4 OR sign_in_attempts.at > $3";
    Ok(tx.execute(sql, &[(&id).into(), "mailed reset".into(), now.0.into(), from.0.into()])? == 1)
}

/// Marks what may succeed once as used; returns whether it was not yet. This is remembered for a day, across all nodes.
pub fn use_up(tx: &mut Tx, what: &str, secret: &str, now: Moment) -> Result<bool> {
    let id = format!("{what} {}", hex(&accounts::hash(secret)));
    let sql = "INSERT INTO sign_in_attempts (id, subject, at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
    let until = now.plus_seconds(USED_SECONDS).0;
    Ok(tx.execute(sql, &[(&id).into(), format!("used {what}").into(), until.into()])? == 1)
}

/// Deletes attempts that no longer count.
pub fn purge(tx: &mut Tx, ctx: &Ctx) -> Result<u64> {
    let index = |name: &str| tx.dialect().indexed_by(name);
    let (by_id, by_age) = (index("sqlite_autoindex_sign_in_attempts_1"), index("sign_in_attempts_age"));
    let sql = format!(
        "DELETE FROM sign_in_attempts{by_id} WHERE id IN
         (SELECT id FROM sign_in_attempts{by_age} WHERE at < $1 ORDER BY at LIMIT 200)"
    );
    Ok(tx.execute(&sql, &[ctx.machine_now.plus_seconds(-WINDOW_SECONDS).0.into()])?)
}
