//! Stands in for a provider in a test account that does not send: requests are recorded and stay open.

use serde_json::json;

use super::{PaymentRequest, Provider, ProviderError, ProviderStatus, Purpose, Started};
use crate::payments::payment::Status;
use crate::settings::NOT_SENT;

/// A provider that is never called.
pub struct Recorded;

/// The start of the ids of collections, which are pending from the start: nobody has to pay.
const COLLECTION: &str = "recorded_collection_";

impl Provider for Recorded {
    fn start(&self, ask: &PaymentRequest) -> Result<Started, ProviderError> {
        let collects = ask.wish == Purpose::Collection;
        let customer_id = match ask.wish {
            Purpose::Once => String::new(),
            _ => format!("recorded_{}", ask.client_id),
        };
        Ok(Started {
            external_id: format!("{}{}", if collects { COLLECTION } else { "recorded_" }, ask.key),
            payment_url: if collects { String::new() } else { ask.back.clone() },
            customer_id,
            status: if collects { Status::Pending } else { Status::Open },
            test: true,
        })
    }

    fn look(&self, external_id: &str) -> Result<ProviderStatus, ProviderError> {
        let status = if external_id.starts_with(COLLECTION) { Status::Pending } else { Status::Open };
        Ok(ProviderStatus { status, mandate: None, details: json!({"reason": NOT_SENT}) })
    }

    fn cancel(&self, _: &str) -> Result<(), ProviderError> {
        Ok(())
    }
}
