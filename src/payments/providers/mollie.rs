//! Mollie, through its public API. Its webhooks only carry an id; the status is always requested.

use engine::app::App;
use money::Amount;
use serde_json::{Value, json};
use tokio::runtime::Handle;

use super::{PaymentRequest, Provider, ProviderError, ProviderStatus, Purpose, Started};
use crate::payments::payment::Status;
use crate::settings::Settings;
use ::mollie::{
    Amount as Sum, Failure, MandateStatus, Mollie, NewCustomer, NewPayment, Payment, Sequence, Status as Theirs,
};

/// The Mollie client of an account.
pub struct Account {
    mollie: Mollie,
    /// Whether the key is a test key.
    test: bool,
}

/// Opens Mollie for an account, with its own key (see [`Settings::with_key`]) or the server's.
pub fn open(app: &App, settings: &Settings) -> Result<Account, ProviderError> {
    let own = [settings.mollie_key.plain(), &app.config.mollie_key].into_iter().find(|key| !key.is_empty());
    let key = own.ok_or_else(|| ProviderError::Never("The settings have no Mollie API key.".to_string()))?;
    Ok(Account { mollie: Mollie::new(app.web.clone(), &app.config.mollie_url, key), test: key.starts_with("test_") })
}

impl Provider for Account {
    fn start(&self, ask: &PaymentRequest) -> Result<Started, ProviderError> {
        Handle::current().block_on(self.begin(ask)).map_err(trouble)
    }

    fn look(&self, external_id: &str) -> Result<ProviderStatus, ProviderError> {
        Handle::current().block_on(self.state(external_id)).map_err(trouble)
    }

    fn cancel(&self, external_id: &str) -> Result<(), ProviderError> {
        Handle::current().block_on(self.mollie.cancel_payment(external_id)).map(drop).map_err(trouble)
    }
}

impl Account {
    async fn begin(&self, ask: &PaymentRequest) -> Result<Started, Failure> {
        let customer_id = match (ask.wish, ask.customer_id.as_str()) {
            (Purpose::Once, _) => String::new(),
            (_, "") => {
                let (name, email) = (ask.name.clone(), ask.email.clone());
                let new = NewCustomer { name, email, metadata: json!({"client_id": ask.client_id}) };
                self.mollie.create_customer(&new, &format!("customer-{}", ask.key)).await?.id
            }
            (_, known) => known.to_string(),
        };
        let some = |text: &str| Some(text.to_string()).filter(|text| !text.is_empty());
        let collects = ask.wish == Purpose::Collection;
        let new = NewPayment {
            amount: sum(ask.amount),
            description: ask.description.chars().take(255).collect(),
            sequence: match ask.wish {
                Purpose::Mandate => Sequence::First,
                Purpose::Once => Sequence::OneOff,
                Purpose::Collection => Sequence::Recurring,
            },
            customer_id: some(&customer_id),
            mandate_id: some(&ask.mandate_id),
            redirect_url: some(&ask.back).filter(|_| !collects),
            webhook_url: some(&ask.news),
            method: None,
            metadata: json!({"id": ask.key}),
        };
        let made = match self.made_before(ask, &customer_id).await? {
            Some(made) => made,
            None => self.mollie.create_payment(&new, &ask.key).await?,
        };
        Ok(Started {
            external_id: made.id.clone(),
            payment_url: made.checkout_url.clone().unwrap_or_default(),
            status: status_of(&made),
            customer_id,
            test: self.test,
        })
    }

    /// Finds the payment that an earlier attempt created without receiving the response: Mollie keeps an idempotency
    /// key for an hour, and retries continue for days.
    async fn made_before(&self, ask: &PaymentRequest, customer_id: &str) -> Result<Option<Payment>, Failure> {
        if !ask.again || customer_id.is_empty() {
            return Ok(None);
        }
        let payments = self.mollie.payments_of(customer_id).await?;
        Ok(payments.into_iter().find(|payment| payment.metadata["id"] == ask.key.as_str()))
    }

    async fn state(&self, external_id: &str) -> Result<ProviderStatus, Failure> {
        let payment = self.mollie.payment(external_id).await?;
        let mandate = match (&payment.customer_id, &payment.mandate_id) {
            (Some(customer), Some(mandate)) if payment.sequence == Sequence::First => {
                let mandate = self.mollie.mandate(customer, mandate).await?;
                match mandate.status {
                    MandateStatus::Valid => Some((mandate.id, true)),
                    MandateStatus::Pending => Some((mandate.id, false)),
                    _ => None,
                }
            }
            _ => None,
        };
        Ok(ProviderStatus { status: status_of(&payment), mandate, details: details(&payment) })
    }
}

/// Converts the status of a Mollie payment.
fn status_of(payment: &Payment) -> Status {
    let cents =
        |sum: &Option<Sum>| sum.as_ref().and_then(|sum| sum.value.parse::<Amount>().ok()).map_or(0, Amount::scaled);
    match &payment.status {
        Theirs::Paid if cents(&payment.amount_charged_back) > 0 => Status::Chargeback,
        Theirs::Paid if cents(&payment.amount_refunded) >= cents(&Some(payment.amount.clone())) => Status::Refunded,
        Theirs::Paid => Status::Paid,
        Theirs::Pending => Status::Pending,
        Theirs::Authorized => Status::Authorized,
        Theirs::Canceled => Status::Canceled,
        Theirs::Expired => Status::Expired,
        Theirs::Failed => Status::Failed,
        // An unknown status is not final.
        Theirs::Open | Theirs::Other(_) => Status::Open,
    }
}

/// Returns the details of a payment, for people.
fn details(payment: &Payment) -> Value {
    json!({"mollie_status": payment.status.to_string(), "method": payment.method, "reason": payment.failure_reason})
}

fn sum(amount: Amount) -> Sum {
    let cents = amount.scaled();
    Sum { currency: "EUR".to_string(), value: format!("{}.{:02}", cents / 100, cents % 100) }
}

fn trouble(failure: Failure) -> ProviderError {
    let words = failure.to_string();
    match failure {
        Failure::Rejected { .. } | Failure::Settings(_) | Failure::Gone => ProviderError::Never(words),
        Failure::Later { .. } | Failure::Unknown(_) => ProviderError::Later(words),
    }
}
