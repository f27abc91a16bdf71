//! Stands in for a provider in a test account that does not send: requests are recorded and stay open.

use serde_json::json;

use super::{PaymentRequest, Provider, ProviderError, ProviderStatus, Purpose, Started};
use crate::payments::payment::Status;
use crate::settings::NOT_SENT;

/// A provider that is never called.
pub struct Recorded;

impl Provider for Recorded {
    fn start(&self, ask: &PaymentRequest) -> Result<Started, ProviderError> {
        let collects = ask.wish == Purpose::Collection;
        let customer_id = match ask.wish {
            Purpose::Once => String::new(),
            _ => format!("recorded_{}", ask.client_id),
        };
        Ok(Started {
            external_id: format!("recorded_{}", ask.key),
            payment_url: if collects { String::new() } else { ask.back.clone() },
            customer_id,
            status: if collects { Status::Pending } else { Status::Open },
        })
    }

    fn look(&self, _: &str) -> Result<ProviderStatus, ProviderError> {
        Ok(ProviderStatus { status: Status::Open, mandate: None, details: json!({"reason": NOT_SENT}) })
    }

    fn cancel(&self, _: &str) -> Result<(), ProviderError> {
        Ok(())
    }
}
