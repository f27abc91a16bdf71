//! The API calls.

use std::fmt;

use serde::Serialize;
use serde_json::Value;
use web::{Answer, Client, Method, OutgoingRequest};

use crate::{Chargeback, Customer, Failure, Mandate, NewCustomer, NewPayment, Payment};

/// The base URL of Mollie.
pub const BASE: &str = "https://api.mollie.com";

/// A Mollie account, by its key; cheap to clone.
#[derive(Clone)]
pub struct Mollie {
    web: Client,
    base: String,
    key: String,
}

impl fmt::Debug for Mollie {
    /// Omits the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mollie").field("base", &self.base).finish_non_exhaustive()
    }
}

impl Mollie {
    /// Creates a client at `base` (see [`BASE`]) with a key (`live_…` or `test_…`), without calling anything.
    pub fn new(web: Client, base: &str, key: &str) -> Mollie {
        Mollie { web, base: base.trim_end_matches('/').into(), key: key.into() }
    }

    /// Creates a customer; once per `idempotency_key`.
    pub async fn create_customer(&self, new: &NewCustomer, idempotency_key: &str) -> Result<Customer, Failure> {
        let made = self.post("/v2/customers", new, idempotency_key).await?;
        Customer::read(&made).ok_or_else(|| Failure::unreadable(&Method::POST))
    }

    /// Retrieves a customer.
    pub async fn customer(&self, id: &str) -> Result<Customer, Failure> {
        self.get(&format!("/v2/customers/{}", segment(id)?), Customer::read).await
    }

    /// Creates a payment; once per `idempotency_key`. A recurring one collects the money.
    pub async fn create_payment(&self, new: &NewPayment, idempotency_key: &str) -> Result<Payment, Failure> {
        let made = self.post("/v2/payments", new, idempotency_key).await?;
        Payment::read(&made).ok_or_else(|| Failure::unreadable(&Method::POST))
    }

    /// Retrieves the current state of a payment. The id may come from anywhere: an invalid one is [`Failure::Gone`].
    pub async fn payment(&self, id: &str) -> Result<Payment, Failure> {
        self.get(&format!("/v2/payments/{}", segment(id)?), Payment::read).await
    }

    /// Lists the newest payments of a customer, at most 100: to find one whose response was lost.
    pub async fn payments_of(&self, customer_id: &str) -> Result<Vec<Payment>, Failure> {
        let path = format!("/v2/customers/{}/payments?limit=100", segment(customer_id)?);
        self.get(&path, |list| all(list, "payments", Payment::read)).await
    }

    /// Cancels an unpaid payment. Direct debits can be cancelled until they are sent to the bank; other payments are
    /// [`Failure::Rejected`]. The status is that of the response: an authorized payment is cancelled later.
    pub async fn cancel_payment(&self, id: &str) -> Result<Payment, Failure> {
        let answer = self.call(Method::DELETE, &format!("/v2/payments/{}", segment(id)?), None).await?;
        if answer.body.is_empty() {
            return self.payment(id).await;
        }
        let canceled = serde_json::from_slice(&answer.body).ok().as_ref().and_then(Payment::read);
        canceled.ok_or_else(|| Failure::unreadable(&Method::DELETE))
    }

    /// Lists the chargebacks of a payment.
    pub async fn chargebacks(&self, payment_id: &str) -> Result<Vec<Chargeback>, Failure> {
        let path = format!("/v2/payments/{}/chargebacks", segment(payment_id)?);
        self.get(&path, |list| all(list, "chargebacks", Chargeback::read)).await
    }

    /// Lists the mandates of a customer, newest first, at most 250.
    pub async fn mandates(&self, customer_id: &str) -> Result<Vec<Mandate>, Failure> {
        let path = format!("/v2/customers/{}/mandates?limit=250", segment(customer_id)?);
        self.get(&path, |list| all(list, "mandates", Mandate::read)).await
    }

    /// Retrieves a mandate.
    pub async fn mandate(&self, customer_id: &str, id: &str) -> Result<Mandate, Failure> {
        let path = format!("/v2/customers/{}/mandates/{}", segment(customer_id)?, segment(id)?);
        self.get(&path, Mandate::read).await
    }

    /// Revokes a mandate, so that no payment can be collected with it. A revoked one is [`Failure::Gone`].
    pub async fn revoke_mandate(&self, customer_id: &str, id: &str) -> Result<(), Failure> {
        let path = format!("/v2/customers/{}/mandates/{}", segment(customer_id)?, segment(id)?);
        self.call(Method::DELETE, &path, None).await.map(|_| ())
    }

    async fn get<T>(&self, path: &str, read: impl Fn(&Value) -> Option<T>) -> Result<T, Failure> {
        let answer = self.call(Method::GET, path, None).await?;
        let value = serde_json::from_slice(&answer.body).ok();
        value.as_ref().and_then(read).ok_or_else(|| Failure::unreadable(&Method::GET))
    }

    async fn post(&self, path: &str, new: &impl Serialize, idempotency_key: &str) -> Result<Value, Failure> {
        // Without one, a retry would collect the money twice.
        if idempotency_key.is_empty() {
            return Err(Failure::Settings("A request that creates something requires an idempotency key.".into()));
        }
        let body = serde_json::to_vec(new).map_err(|error| Failure::Settings(error.to_string()))?;
        let answer = self.call(Method::POST, path, Some((body, idempotency_key))).await?;
        serde_json::from_slice(&answer.body).map_err(|_| Failure::unreadable(&Method::POST))
    }

    async fn call(&self, method: Method, path: &str, content: Option<(Vec<u8>, &str)>) -> Result<Answer, Failure> {
        let mut headers = vec![
            ("Authorization".to_owned(), format!("Bearer {}", self.key)),
            ("Accept".to_owned(), "application/hal+json".to_owned()),
        ];
        let mut body = Vec::new();
        if let Some((content, idempotency_key)) = content {
            body = content;
            headers.push(("Content-Type".into(), "application/json".into()));
            headers.push(("Idempotency-Key".into(), idempotency_key.into()));
        }
        let url = format!("{}{path}", self.base);
        let answer = self.web.send(OutgoingRequest { method: method.clone(), url, headers, body }).await?;
        if !(200..300).contains(&answer.status) {
            return Err(Failure::told_by(&answer, &method));
        }
        Ok(answer)
    }
}

/// Validates an id as a path segment. Anyone can call webhooks with any id: `../customers` must not lead elsewhere.
fn segment(id: &str) -> Result<&str, Failure> {
    let fine = !id.is_empty() && id.len() <= 100 && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if fine { Ok(id) } else { Err(Failure::Gone) }
}

fn all<T>(list: &Value, of: &str, read: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
    list.get("_embedded")?.get(of)?.as_array()?.iter().map(read).collect()
}
