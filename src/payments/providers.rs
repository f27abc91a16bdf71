//! Who collects money from clients. A provider is only ever asked outside transactions, and with
//! our own id as the key, so that asking again after a crash does not ask for the money twice.

pub mod mollie;
pub mod sandbox;

use engine::app::App;
use engine::error_codes;
use money::Amount;
use serde_json::Value;

use crate::payments::payment::Status;
use crate::settings::{ProviderName, Settings};

error_codes! {
    /// The payment provider rejected the request; the message says why.
    PROVIDER_REFUSED = "provider_refused", Conflict, retry: true;
}

/// What kind of payment is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The client pays a little and gives a mandate by it.
    Mandate,
    /// The client pays once.
    Once,
    /// It is taken from the client's account by the mandate.
    Collection,
}

/// A payment that is asked for.
#[derive(Clone, Debug)]
pub struct PaymentRequest {
    /// What kind.
    pub wish: Purpose,
    /// Our own id of it: asking again with the same asks for nothing new.
    pub key: String,
    /// Whether it may have been asked before: providers forget keys after a while.
    pub again: bool,
    /// How much.
    pub amount: Amount,
    /// What the client reads.
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
    /// Where the client goes afterwards.
    pub back: String,
    /// Where the provider tells us news.
    pub news: String,
}

/// A payment that a provider has taken on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// The provider's id of it.
    pub external_id: String,
    /// Where the client pays; empty for a collection.
    pub payment_url: String,
    /// The provider's id of the client.
    pub customer_id: String,
    /// Status.
    pub status: Status,
}

/// How a payment stands at the provider.
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderStatus {
    /// Status.
    pub status: Status,
    /// The mandate that came of it: its id, and whether it can be used already.
    pub mandate: Option<(String, bool)>,
    /// What the provider said, for people.
    pub details: Value,
}

/// Why a provider did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderError {
    /// It will not, whoever asks again.
    Never(String),
    /// It could not now, or nobody knows whether it did; to be asked again.
    Later(String),
}

impl ProviderError {
    /// The reason in words.
    pub fn words(&self) -> &str {
        match self {
            ProviderError::Never(why) | ProviderError::Later(why) => why,
        }
    }
}

/// Somebody who collects money. Everything blocks: it is for worker threads.
pub trait Provider {
    /// Asks for a payment.
    fn start(&self, ask: &PaymentRequest) -> Result<Started, ProviderError>;
    /// Looks how a payment stands.
    fn look(&self, external_id: &str) -> Result<ProviderStatus, ProviderError>;
    /// Breaks off a payment that nobody has paid yet.
    fn cancel(&self, external_id: &str) -> Result<(), ProviderError>;
}

/// The provider of an account by its name.
pub fn named(app: &App, name: ProviderName, settings: &Settings) -> Result<Box<dyn Provider>, ProviderError> {
    match name {
        ProviderName::Sandbox => Ok(Box::new(sandbox::Sandbox { site: app.site.clone() })),
        ProviderName::Mollie => Ok(Box::new(mollie::open(app, settings)?)),
        ProviderName::Manual => {
            Err(ProviderError::Never("The account collects through its bank, with batch files.".to_string()))
        }
    }
}
