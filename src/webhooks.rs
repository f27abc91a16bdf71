//! Webhooks: the log, sent to those who asked. Each endpoint has a place in the log; what lies behind
//! it becomes deliveries, and each of these is tried until the receiver takes it. Nothing of this
//! happens in the transactions of requests, and one receiver never waits for another.

pub mod queue;
mod signature;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use crate::app::App;
use crate::clock::Moment;
use crate::error::Result;
use queue::{Claimed, Outcome, Parcel};

/// How often the log is looked at for what other nodes wrote.
const LOOK: Duration = Duration::from_millis(500);
/// Writes that come together are looked at together.
const GATHER: Duration = Duration::from_millis(25);
/// Endpoints served at once by this process.
const SERVED: usize = 256;
/// How long one is served before others that wait get its place.
const TURN: Duration = Duration::from_secs(30);
/// Bytes of an answer that are kept.
const ANSWER: usize = 1024;

/// Starts to send the webhooks of this process, until it ends.
pub fn start(app: &Arc<App>) {
    let app = app.clone();
    tokio::spawn(async move {
        let served = Served::default();
        loop {
            if let Err(error) = turn(&app, &served).await {
                tracing::warn!(cause = %error, "Webhooks cannot be sent now.");
            }
            tokio::select! {
                () = app.listeners.webhooks.notified() => tokio::time::sleep(GATHER).await,
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    });
}

/// The endpoints that this process is serving.
type Served = Arc<Mutex<HashSet<String>>>;

/// Serves every endpoint that has something to send, each in a task of its own.
async fn turn(app: &Arc<App>, served: &Served) -> Result<()> {
    let now = app.clock.now();
    let mut waiting = app.store.read(move |tx| queue::waiting(tx, now)).await?;
    // When there are more than can be served, chance decides.
    let chance = now.0.unsigned_abs() as usize % waiting.len().max(1);
    waiting.rotate_left(chance);
    for (account, endpoint) in waiting {
        let mut busy = served.lock().unwrap_or_else(PoisonError::into_inner);
        if busy.len() >= SERVED || !busy.insert(endpoint.clone()) {
            continue;
        }
        drop(busy);
        let (app, served) = (app.clone(), served.clone());
        tokio::spawn(async move {
            if let Err(error) = serve(&app, account, &endpoint).await {
                tracing::warn!(%endpoint, cause = %error, "The webhooks of an endpoint cannot be sent now.");
            }
            served.lock().unwrap_or_else(PoisonError::into_inner).remove(&endpoint);
        });
    }
    Ok(())
}

/// Sends what an endpoint has to get, a few at a time, until nothing is left or its turn is over.
async fn serve(app: &Arc<App>, account: i64, endpoint: &str) -> Result<()> {
    let started = Instant::now();
    let mut calls = FuturesUnordered::new();
    loop {
        let room = if started.elapsed() < TURN { queue::IN_FLIGHT - calls.len() } else { 0 };
        let step = match room {
            0 => queue::Step::default(),
            room => advance(app, account, endpoint, room).await?,
        };
        calls.extend(step.claimed.into_iter().map(|claimed| deliver(app, claimed)));
        if calls.is_empty() && (!step.moved || started.elapsed() >= TURN) {
            return Ok(());
        }
        if !calls.is_empty() {
            // A slow call does not keep the others of its endpoint from being made.
            tokio::select! {
                _ = calls.next() => {}
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }
}

async fn advance(app: &Arc<App>, account: i64, endpoint: &str, room: usize) -> Result<queue::Step> {
    let (now, id) = (app.clock.now(), endpoint.to_string());
    let due = app.store.read(move |tx| queue::is_waiting(tx, now, account, &id)).await?;
    if !due {
        return Ok(queue::Step::default());
    }
    let (own, id, lease) = (app.clone(), endpoint.to_string(), now.plus_seconds(lease_seconds(app)));
    app.store.write(account, move |tx| queue::advance(tx, &own, account, &id, now, lease, room)).await
}

/// Longer than any call takes.
fn lease_seconds(app: &App) -> i64 {
    i64::try_from(app.config.webhook_timeout_seconds).unwrap_or(i64::MAX / 2000) + 45
}

/// Makes one try of a delivery, and writes down what became of it. When that cannot be written the
/// lease runs out and the delivery is made again, under the same id.
async fn deliver(app: &Arc<App>, claimed: Claimed) {
    let (account, id) = (claimed.account, claimed.id.clone());
    let claimed = Arc::new(claimed);
    let done: Result<()> = async {
        let own = claimed.clone();
        let Some(parcel) = app.store.read(move |tx| own.load(tx)).await? else { return Ok(()) };
        let outcome = call(app, &claimed.id, &parcel).await;
        let (caller, now) = (app.acting(parcel.account, "webhooks"), app.clock.now());
        let write = move |tx: &mut store::Tx| {
            let ctx = caller.writing(tx)?;
            claimed.finish(tx, &ctx, &outcome, now)
        };
        app.store.write(account, write).await
    }
    .await;
    if let Err(error) = done {
        tracing::warn!(delivery = %id, cause = %error, "The end of a webhook could not be written; it will be sent again.");
    }
}

async fn call(app: &App, id: &str, parcel: &Parcel) -> Outcome {
    let started = Instant::now();
    let patience = Duration::from_secs(app.config.webhook_timeout_seconds);
    let request = web::Request {
        method: web::Method::POST,
        url: parcel.endpoint.url.0.clone(),
        headers: headers(id, parcel, app.clock.now()),
        body: parcel.body.clone(),
    };
    let answer = tokio::time::timeout(patience, app.web.reading(ANSWER).send(request)).await;
    let duration_ms = i64::try_from(started.elapsed().as_millis()).unwrap_or(i64::MAX);
    match answer {
        Ok(Ok(answer)) => Outcome {
            status: answer.status,
            body: text(&answer.body),
            duration_ms,
            reason: match answer.status {
                200..=299 => String::new(),
                300..=399 => format!("It answered {}; redirects are not followed.", answer.status),
                status => format!("It answered {status}."),
            },
        },
        Ok(Err(failure)) => {
            Outcome { status: 0, body: String::new(), duration_ms, reason: failure.words().to_string() }
        }
        Err(_) => {
            let reason = format!("It did not answer within {} seconds.", patience.as_secs());
            Outcome { status: 0, body: String::new(), duration_ms, reason }
        }
    }
}

fn headers(id: &str, parcel: &Parcel, now: Moment) -> Vec<(String, String)> {
    let seconds = now.0 / 1000;
    let signatures: Vec<String> = parcel
        .endpoint
        .secrets(now)
        .into_iter()
        .map(|secret| signature::sign(secret, id, seconds, &parcel.body))
        .collect();
    vec![
        ("content-type".into(), "application/json".into()),
        ("webhook-id".into(), id.into()),
        ("webhook-timestamp".into(), seconds.to_string()),
        ("webhook-signature".into(), signatures.join(" ")),
    ]
}

/// The start of an answer, as a text that both databases can keep.
fn text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.chars().filter(|letter| !letter.is_control() || matches!(letter, '\n' | '\t')).take(ANSWER).collect()
}
