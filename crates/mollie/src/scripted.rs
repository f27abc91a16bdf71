//! A fake Mollie on loopback that keeps everything in memory, and is slow or fails as scripted. For tests.
//!
//! Amounts, customers and mandates are validated much as by Mollie, but a webhook can be on this machine. Nothing
//! happens automatically: payments change by [`ScriptedMollie::set_status`], and webhooks are called by
//! [`ScriptedMollie::call_webhook`].

mod books;
mod webhook;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::{Value, json};
use web::scripted::{Received, Reply, Scripted, Then};
use web::{Client, Settings};

use self::books::{Books, Said};
use crate::{Amount, Mandate, MandateStatus, Mollie, Payment, Status};

/// The server. It stops when it is dropped.
pub struct ScriptedMollie {
    server: Scripted,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    books: Books,
    script: Vec<Act>,
    /// By idempotency key: the request and the response.
    said: Vec<(String, (String, Vec<u8>), Said)>,
    replayed: usize,
}

/// A scripted behaviour for one call.
#[derive(Clone, Copy)]
enum Act {
    /// Fails without doing anything.
    Fail(u16, Option<Duration>),
    /// Does the call without responding.
    Cut,
    /// Does the call immediately and responds late.
    Delay(Duration),
}

impl ScriptedMollie {
    /// The accepted key.
    pub const KEY: &str = "test_scripted";

    /// Starts a server without customers and payments.
    pub fn start() -> io::Result<ScriptedMollie> {
        let state = Arc::new(Mutex::new(State::default()));
        let shared = state.clone();
        let server = Scripted::start(move |received| answer(&mut locked(&shared), received))?;
        locked(&state).books.base = server.url("");
        Ok(ScriptedMollie { server, state })
    }

    /// Returns its base URL, to use instead of [`crate::BASE`].
    pub fn base(&self) -> String {
        self.server.url("")
    }

    /// Creates a client for it with these settings; see [`Scripted::settings`].
    pub fn client(&self, settings: Settings) -> Result<Mollie, String> {
        Ok(Mollie::new(Client::new(settings)?, &self.base(), Self::KEY))
    }

    /// Returns all requests so far.
    pub fn received(&self) -> Vec<Received> {
        self.server.received()
    }

    /// Returns the created payments, oldest first.
    pub fn made_payments(&self) -> Vec<Payment> {
        self.state().books.payments.iter().filter_map(Payment::read).collect()
    }

    /// Returns the number of created customers.
    pub fn made_customers(&self) -> usize {
        self.state().books.customers.len()
    }

    /// Returns the mandates of a customer, oldest first.
    pub fn mandates(&self, customer_id: &str) -> Vec<Mandate> {
        self.state().books.mandates_of(customer_id).filter_map(Mandate::read).collect()
    }

    /// Returns how often a repeated key got the first response again.
    pub fn replayed(&self) -> usize {
        self.state().replayed
    }

    /// Forgets the keys, as Mollie does after an hour: the same key creates a new object.
    pub fn forget_keys(&self) {
        self.state().said.clear();
    }

    /// Sets its time: `2026-03-20T09:13:37+00:00`.
    pub fn set_time(&self, time: &str) {
        self.state().books.time = time.into();
    }

    /// Makes the next calls fail with this status, without doing anything. Scripted behaviours are used one per call,
    /// in the order in which they were added.
    pub fn fail_next(&self, calls: usize, status: u16) {
        self.script(calls, Act::Fail(status, None));
    }

    /// Makes the next calls fail with 429 and a delay.
    pub fn throttle_next(&self, calls: usize, retry_after: Duration) {
        self.script(calls, Act::Fail(429, Some(retry_after)));
    }

    /// Does the next calls, but closes the connection without responding.
    pub fn cut_next(&self, calls: usize) {
        self.script(calls, Act::Cut);
    }

    /// Does the next calls immediately, but responds after this time.
    pub fn delay_next(&self, calls: usize, time: Duration) {
        self.script(calls, Act::Delay(time));
    }

    /// Sets the status of a payment. A first payment that becomes paid creates a valid mandate for its customer.
    /// Returns `false` if the payment does not exist, as do the functions below.
    pub fn set_status(&self, payment_id: &str, status: Status) -> bool {
        self.state().books.set_status(payment_id, &status)
    }

    /// Makes a payment fail with a bank's code and text, such as `AM04` and `Insufficient funds`.
    pub fn fail_payment(&self, payment_id: &str, code: &str, words: &str) -> bool {
        let mut state = self.state();
        state.books.set(payment_id, "details", json!({"bankReasonCode": code, "bankReason": words}))
            && state.books.set_status(payment_id, &Status::Failed)
    }

    /// Charges back the whole payment, which stays paid.
    pub fn chargeback(&self, payment_id: &str) -> bool {
        self.state().books.chargeback(payment_id)
    }

    /// Sets the refunded amount.
    pub fn refund(&self, payment_id: &str, amount: &Amount) -> bool {
        self.state().books.set(payment_id, "amountRefunded", json!(amount))
    }

    /// Sets the status of a mandate: a bank may invalidate one.
    pub fn set_mandate(&self, mandate_id: &str, status: MandateStatus) -> bool {
        self.state().books.set_mandate(mandate_id, &status)
    }

    /// Calls the webhook of a payment, and returns the status of the response.
    pub fn call_webhook(&self, payment_id: &str) -> io::Result<u16> {
        webhook::call(&self.webhook_of(payment_id)?, payment_id)
    }

    /// Calls the webhook of a payment after this time, on its own thread.
    pub fn call_webhook_late(&self, payment_id: &str, time: Duration) -> io::Result<JoinHandle<io::Result<u16>>> {
        let (url, id) = (self.webhook_of(payment_id)?, payment_id.to_owned());
        Ok(thread::spawn(move || {
            thread::sleep(time);
            webhook::call(&url, &id)
        }))
    }

    fn webhook_of(&self, payment_id: &str) -> io::Result<String> {
        let state = self.state();
        let url = state.books.payment(payment_id).and_then(|payment| payment["webhookUrl"].as_str());
        url.map(str::to_owned).ok_or_else(|| io::Error::other("no such payment, or it has no webhook"))
    }

    fn script(&self, calls: usize, act: Act) {
        self.state().script.extend(std::iter::repeat_n(act, calls));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn answer(state: &mut State, received: &Received) -> Reply {
    // The page for the customer is not part of the API, and is not scripted.
    if let Some(rest) = received.path.strip_prefix("/checkout/") {
        return checkout(&mut state.books, rest);
    }
    let act = if state.script.is_empty() { None } else { Some(state.script.remove(0)) };
    if let Some(Act::Fail(status, after)) = act {
        let reply = reply(&books::error(status, "Scripted", "This failure was asked for.", ""));
        return after.map_or(reply.clone(), |after| reply.header("Retry-After", &after.as_secs().to_string()));
    }
    if received.header("authorization") != Some(&format!("Bearer {}", ScriptedMollie::KEY)) {
        return reply(&books::error(
            401,
            "Unauthorized Request",
            "Missing authentication, or failed to authenticate",
            "",
        ));
    }
    let reply = once(state, received);
    match act {
        Some(Act::Cut) => reply.then(Then::CutOff),
        Some(Act::Delay(time)) => reply.after(time),
        _ => reply,
    }
}

/// Performs the request, unless the same key was used before.
fn once(state: &mut State, received: &Received) -> Reply {
    let path = received.path.split('?').next().unwrap_or_default();
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    let Some(key) = received.header("idempotency-key").filter(|_| received.method == "POST") else {
        return reply(&state.books.call(&received.method, &parts, &Value::Null));
    };
    let asked = (path.to_owned(), received.body.clone());
    if let Some((_, before, said)) = state.said.iter().find(|(used, ..)| used == key) {
        if *before != asked {
            return reply(&books::error(400, "Bad Request", "The idempotency key was used for another request", ""));
        }
        state.replayed += 1;
        return reply(said).header("Idempotent-Replayed", "true");
    }
    let body = serde_json::from_slice(&received.body).unwrap_or_default();
    let said = state.books.call(&received.method, &parts, &body);
    state.said.push((key.to_owned(), asked, said.clone()));
    reply(&said)
}

/// The page on which a customer pays; with `?status=paid` the payment changes and the customer is redirected.
fn checkout(books: &mut Books, rest: &str) -> Reply {
    let (id, query) = rest.split_once('?').unwrap_or((rest, ""));
    let Some(payment) = books.payment(id).cloned() else { return Reply::new(404) };
    let Some(status) = query.strip_prefix("status=") else {
        let body = format!("{} {}", payment["amount"]["value"], payment["description"]).into_bytes();
        return Reply { body, ..Reply::new(200) }.header("Content-Type", "text/plain");
    };
    books.set_status(id, &status.into());
    Reply::new(303).header("Location", payment["redirectUrl"].as_str().unwrap_or_default())
}

fn reply((status, body): &Said) -> Reply {
    match body {
        Value::Null => Reply::new(*status),
        body => Reply { body: body.to_string().into_bytes(), ..Reply::new(*status) }
            .header("Content-Type", "application/hal+json"),
    }
}
