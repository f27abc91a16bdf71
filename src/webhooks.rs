//! Webhooks: sends the log to endpoints. Each endpoint has a cursor in the log; later lines become deliveries, and
//! each delivery is attempted until the receiver accepts it. None of this happens in the transactions of requests, and
//! no receiver waits for another.

pub(crate) mod breaker;
pub(crate) mod change;
pub(crate) mod delivery;
pub(crate) mod ending;
pub(crate) mod endpoint;
pub(crate) mod metrics;
pub(crate) mod openapi;
pub(crate) mod queue;
pub(crate) mod signature;
mod status;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use engine::accounts;
use engine::app::App;
use engine::clock::Moment;
use engine::config::Config;
use engine::context::Actor;
use engine::error::Result;
use engine::faults;
use engine::leases::{self, CONFIRMED_AT_MOST, Confirmed};
use engine::loops::{self, Poll, Pulse, Woken};
use engine::services::Services;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use store::{Place, Places, Tx};

use metrics::{DELIVERIES, SECONDS};
use queue::{CallOutcome, Claimed, Loaded, Parcel};

/// How often the log is polled for lines of other nodes.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Writes within this time are handled together.
const GATHER: Duration = Duration::from_millis(25);
/// Maximum number of endpoints served concurrently by this process, in total and per account: unresponsive receivers do
/// not block other accounts.
const SERVED: usize = 256;
const SERVED_OF_ONE: usize = 64;

/// Opens the places of endpoints that are being served.
pub(crate) fn open(_: &Config, _: &str, services: &mut Services) -> Result<()> {
    let served = Served::default();
    services.pool(served.0.places.clone());
    services.add(served);
    Ok(())
}
/// How long an endpoint is served before its slot goes to another.
const TURN: Duration = Duration::from_secs(30);
/// How long before the lease expires recording an outcome is last retried, in seconds.
const MARGIN: i64 = 5;
/// Number of bytes of a response to store.
const ANSWER: usize = 1024;

/// Starts sending webhooks in this process. A process without workers sends none.
pub fn start(app: &Arc<App>) {
    if app.config.workers == 0 {
        return;
    }
    loops::keep(app, "webhooks", loops::STALL_TIMEOUT, send);
}

async fn send(app: Arc<App>, pulse: Pulse) {
    let mut poll = Poll::every(POLL_INTERVAL).woken_by(&app.listeners.written, GATHER);
    loop {
        let woken = poll.wait(&pulse).await;
        let sent = turn(&app, app.services.get(), woken).await;
        poll.turned(sent.map(|()| false), "Cannot send webhooks at the moment.");
    }
}

/// The endpoints that this process is serving.
#[derive(Clone)]
struct Served(Arc<Serving>);

struct Serving {
    places: Arc<Places>,
    endpoints: Mutex<HashSet<String>>,
}

impl Default for Served {
    fn default() -> Served {
        let places = Places::capped("webhook endpoints", SERVED, SERVED_OF_ONE);
        Served(Arc::new(Serving { places, endpoints: Mutex::default() }))
    }
}

impl Served {
    /// Takes a slot for an endpoint, unless it has one or there is no room.
    fn take(&self, account: i64, endpoint: &str) -> Option<EndpointPermit> {
        let mut busy = self.locked();
        if busy.contains(endpoint) {
            return None;
        }
        let place = self.0.places.try_take(account).ok()?;
        busy.insert(endpoint.to_string());
        Some(EndpointPermit { served: self.clone(), endpoint: endpoint.to_string(), _place: place })
    }

    fn locked(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.endpoints.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The slot of an endpoint. It is released when it is dropped, also by a panic: otherwise the endpoint would never be
/// served again.
struct EndpointPermit {
    served: Served,
    endpoint: String,
    _place: Place,
}

impl Drop for EndpointPermit {
    fn drop(&mut self) {
        self.served.locked().remove(&self.endpoint);
    }
}

/// Serves every endpoint that has something to send, each in its own task: those of the accounts with new entries, or
/// all.
async fn turn(app: &Arc<App>, served: &Served, woken: Woken) -> Result<()> {
    let now = app.clock.now();
    let mut waiting = match woken.all {
        false => app.store.read(move |tx| queue::waiting_in(tx, now, &woken.accounts)).await?,
        // There may be many endpoints.
        true => app.store.read_apart(accounts::SHARED, move |tx| queue::waiting(tx, now)).await?,
    };
    // A random start, in case there are more endpoints than slots.
    let chance = now.0.unsigned_abs() as usize % waiting.len().max(1);
    waiting.rotate_left(chance);
    for (account, endpoint) in waiting {
        let Some(place) = served.take(account, &endpoint) else { continue };
        let (app, busy) = (app.clone(), app.listeners.begin());
        tokio::spawn(async move {
            let _held = (place, busy);
            if let Err(error) = serve(&app, account, &endpoint).await {
                tracing::warn!(%endpoint, cause = %error, "Cannot send the webhooks of an endpoint at the moment.");
            }
        });
    }
    Ok(())
}

/// Sends the deliveries of an endpoint, a few at a time, until none is left or its time is up.
async fn serve(app: &Arc<App>, account: i64, endpoint: &str) -> Result<()> {
    let started = Instant::now();
    let mut calls = FuturesUnordered::new();
    let mut done = Ok(());
    loop {
        let over = done.is_err() || started.elapsed() >= TURN || app.listeners.is_stopping();
        let step = match breaker::IN_FLIGHT.saturating_sub(calls.len()) {
            room if room > 0 && !over => advance(app, account, endpoint, room).await,
            _ => Ok(queue::Progress::default()),
        };
        // Deliveries in progress are completed anyway: they would otherwise be sent twice.
        let step = step.unwrap_or_else(|error| {
            done = Err(error);
            queue::Progress::default()
        });
        calls.extend(step.claimed.into_iter().map(|claimed| deliver(app, claimed)));
        if calls.is_empty() && (!step.moved || over) {
            return done;
        }
        if !calls.is_empty() {
            // A slow delivery does not block others of its endpoint.
            tokio::select! {
                _ = calls.next() => {}
                () = tokio::time::sleep(POLL_INTERVAL) => {}
            }
        }
    }
}

async fn advance(app: &Arc<App>, account: i64, endpoint: &str, room: usize) -> Result<queue::Progress> {
    app.compare_clocks().await?;
    let (now, id) = (app.clock.now(), endpoint.to_string());
    let due = app.store.read(move |tx| queue::is_waiting(tx, now, account, &id)).await?;
    if !due {
        return Ok(queue::Progress::default());
    }
    let (own, id, lease) = (app.clone(), endpoint.to_string(), now.plus_seconds(lease_seconds(app)));
    app.store.write(account, move |tx| queue::advance(tx, &own, account, &id, now, lease, room)).await
}

/// Longer than any call takes.
fn lease_seconds(app: &App) -> i64 {
    i64::try_from(app.config.webhook_timeout_seconds).unwrap_or(i64::MAX / 2000) + 45
}

/// Makes one attempt of a delivery and records the outcome.
async fn deliver(app: &Arc<App>, claimed: Claimed) {
    let claimed = Arc::new(claimed);
    let parcel = match load(app, &claimed).await {
        Ok(Some(parcel)) => parcel,
        Ok(None) => return,
        Err(error) => {
            tracing::warn!(delivery = %claimed.id, cause = %error, "Cannot send a webhook at the moment; it will be retried.");
            return;
        }
    };
    faults::pause_before("webhook");
    if !is_certain(app, &claimed).await {
        tracing::warn!(delivery = %claimed.id, "A webhook was not sent, because another worker may have taken it over.");
        return;
    }
    let outcome = Arc::new(call(app, &claimed.id, &parcel).await);
    app.metrics.took(SECONDS.name, outcome.duration_ms);
    let caller = app.acting(parcel.account, "webhooks");
    app.metrics.add(DELIVERIES.name, write_end(app, &caller, &claimed, &outcome).await);
}

/// Whether no other worker can be sending this. If its lease was confirmed too long ago, as when the process was paused, it is
/// extended under its number. If that cannot be done, nothing is certain, and it is sent when the lease has expired.
async fn is_certain(app: &Arc<App>, claimed: &Arc<Claimed>) -> bool {
    let mut confirmed = claimed.confirmed;
    for _ in 0..CONFIRMED_AT_MOST {
        if confirmed.is_certain() {
            return true;
        }
        confirmed = Confirmed::now();
        let (own, until) = (claimed.clone(), app.clock.now().plus_seconds(lease_seconds(app)));
        if !matches!(app.store.write(claimed.account, move |tx| own.renew(tx, until)).await, Ok(true)) {
            return false;
        }
    }
    confirmed.is_certain()
}

/// Loads what is to be sent, if anything.
async fn load(app: &Arc<App>, claimed: &Arc<Claimed>) -> Result<Option<Box<Parcel>>> {
    let (own, shared) = (claimed.clone(), app.clone());
    match app.store.read(move |tx| own.load(tx, &shared)).await? {
        Loaded::Ready(parcel) => return Ok(Some(parcel)),
        Loaded::Ended => {}
        Loaded::Refused(account) => {
            let (own, caller) = (claimed.clone(), app.acting(account, "webhooks"));
            let refuse = move |tx: &mut Tx| {
                let ctx = caller.writing(tx)?;
                own.refuse(tx, &ctx)
            };
            app.store.write(claimed.account, refuse).await?;
        }
    }
    Ok(None)
}

/// Records the outcome of an attempt, and retries while the lease is valid. When the lease has expired, the delivery is
/// sent again with the same id. Returns the outcome.
async fn write_end(app: &Arc<App>, caller: &Actor, claimed: &Arc<Claimed>, outcome: &Arc<CallOutcome>) -> &'static str {
    let left = (claimed.lease.0 - app.clock.now().0) / 1000 - MARGIN;
    let deadline = Instant::now() + Duration::from_secs(left.max(0).unsigned_abs());
    let written = leases::write_end(deadline, || {
        let (own, claimed, outcome, now) = (caller.clone(), claimed.clone(), outcome.clone(), app.clock.now());
        app.store.write(claimed.account, move |tx| {
            let ctx = own.writing(tx)?;
            claimed.finish(tx, &ctx, &outcome, now)
        })
    });
    written.await.unwrap_or_else(|error| {
        let id = &claimed.id;
        tracing::warn!(delivery = %id, cause = %error, "Cannot record the outcome of a webhook; it will be sent again.");
        "lost"
    })
}

async fn call(app: &App, id: &str, parcel: &Parcel) -> CallOutcome {
    let started = Instant::now();
    let patience = Duration::from_secs(app.config.webhook_timeout_seconds);
    let request = web::OutgoingRequest {
        method: web::Method::POST,
        url: parcel.endpoint.url.0.clone(),
        headers: headers(id, parcel, app.clock.now()),
        body: parcel.body.clone(),
    };
    let answer = tokio::time::timeout(patience, app.web.reading(ANSWER).send(request)).await;
    let duration_ms = i64::try_from(started.elapsed().as_millis()).unwrap_or(i64::MAX);
    match answer {
        Ok(Ok(answer)) => CallOutcome {
            status: answer.status,
            body: text(&answer.body),
            duration_ms,
            reason: match answer.status {
                200..=299 => String::new(),
                300..=399 => format!("The receiver responded with {}; redirects are not followed.", answer.status),
                status => format!("The receiver responded with {status}."),
            },
        },
        Ok(Err(failure)) => {
            CallOutcome { status: 0, body: String::new(), duration_ms, reason: failure.words().to_string() }
        }
        Err(_) => {
            let reason = format!("The receiver did not respond within {} seconds.", patience.as_secs());
            CallOutcome { status: 0, body: String::new(), duration_ms, reason }
        }
    }
}

fn headers(id: &str, parcel: &Parcel, now: Moment) -> Vec<(String, String)> {
    let seconds = now.0 / 1000;
    let signatures: Vec<String> =
        parcel.secrets.iter().map(|secret| signature::sign(secret, id, seconds, &parcel.body)).collect();
    vec![
        ("content-type".into(), "application/json".into()),
        ("webhook-id".into(), id.into()),
        ("webhook-timestamp".into(), seconds.to_string()),
        ("webhook-signature".into(), signatures.join(" ")),
    ]
}

/// Returns the start of a response, as text that both databases can store.
fn text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.chars().filter(|letter| !letter.is_control() || matches!(letter, '\n' | '\t')).take(ANSWER).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_the_slots_of_an_account() {
        let served = Served::default();
        let mut held: Vec<EndpointPermit> = (0..100).filter_map(|n| served.take(1, &format!("a{n}"))).collect();
        assert_eq!(held.len(), SERVED_OF_ONE);
        let other = served.take(2, "b");
        assert!(other.is_some() && served.take(2, "b").is_none());
        held.pop();
        assert!(served.take(1, "a99").is_some());
    }

    #[test]
    fn a_panic_releases_the_slot() {
        let served = Served::default();
        let place = served.take(1, "a");
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _place = place;
            panic!("on purpose");
        }));
        assert!(panicked.is_err() && served.take(1, "a").is_some());
    }
}
