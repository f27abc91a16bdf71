//! Payment providers. A provider is only called outside transactions, with our own id as idempotency key, so that a
//! retry after a crash does not request a payment twice.

pub mod mollie;
pub mod recorded;
pub mod sandbox;

use engine::app::App;
use engine::error_codes;
use money::Amount;
use serde_json::Value;

use crate::payments::payment::Status;
use crate::settings::{Outside, ProviderName, Settings};

error_codes! {
    /// The payment provider rejected the request; the message says why.
    PROVIDER_REFUSED = "provider_refused", Conflict, retry: true;
}

/// The purpose of a payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A small payment by which the client gives a mandate.
    Mandate,
    /// A single payment by the client.
    Once,
    /// A collection by mandate.
    Collection,
}

/// A payment request.
#[derive(Clone, Debug)]
pub struct PaymentRequest {
    /// The purpose.
    pub wish: Purpose,
    /// The idempotency key: a retry with the same key creates no second payment.
    pub key: String,
    /// Whether it may have been requested before: providers forget keys after a while.
    pub again: bool,
    /// The amount.
    pub amount: Amount,
    /// The description for the client.
    pub description: String,
    /// The provider's id of the client, or empty.
    pub customer_id: String,
    /// Our own id of the client.
    pub client_id: String,
    /// The client's name.
    pub name: String,
    /// The client's e-mail address.
    pub email: String,
    /// The provider's id of the mandate, or empty.
    pub mandate_id: String,
    /// The URL that the client returns to.
    pub back: String,
    /// The URL for notifications from the provider.
    pub news: String,
}

/// A payment that a provider accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// The provider's id of the payment.
    pub external_id: String,
    /// Where the client pays; empty for a collection.
    pub payment_url: String,
    /// The provider's id of the client.
    pub customer_id: String,
    /// Status.
    pub status: Status,
    /// Whether no money moves.
    pub test: bool,
}

/// The status of a payment at the provider.
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderStatus {
    /// Status.
    pub status: Status,
    /// The resulting mandate: its id, and whether it can already be used.
    pub mandate: Option<(String, bool)>,
    /// Details from the provider, for people.
    pub details: Value,
}

/// Why a provider did not fulfil a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderError {
    /// A permanent rejection.
    Never(String),
    /// A temporary failure, or an unknown outcome; to be retried.
    Later(String),
}

impl ProviderError {
    /// Returns the reason.
    pub fn words(&self) -> &str {
        match self {
            ProviderError::Never(why) | ProviderError::Later(why) => why,
        }
    }
}

/// A payment provider. All methods block and are meant for worker threads.
pub trait Provider {
    /// Requests a payment.
    fn start(&self, ask: &PaymentRequest) -> Result<Started, ProviderError>;
    /// Retrieves the status of a payment.
    fn look(&self, external_id: &str) -> Result<ProviderStatus, ProviderError>;
    /// Cancels an unpaid payment.
    fn cancel(&self, external_id: &str) -> Result<(), ProviderError>;
}

/// Returns the provider with this name for an account.
pub fn named(app: &App, name: ProviderName, settings: &Settings) -> Result<Box<dyn Provider>, ProviderError> {
    match name {
        ProviderName::Sandbox if settings.provider != ProviderName::Sandbox => {
            Err(ProviderError::Never("The account does not use the sandbox.".to_string()))
        }
        ProviderName::Sandbox => Ok(Box::new(sandbox::Sandbox { site: app.site.clone() })),
        ProviderName::Mollie if settings.outside == Outside::Recorded => Ok(Box::new(recorded::Recorded)),
        ProviderName::Mollie => Ok(Box::new(mollie::open(app, settings)?)),
        ProviderName::Manual => {
            Err(ProviderError::Never("The account collects through its bank, with batch files.".to_string()))
        }
    }
}
