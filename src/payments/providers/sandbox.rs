//! A provider for testing: a person chooses the outcome of each payment on a page.

use std::sync::Arc;

use engine::site::Site;
use serde_json::json;

use super::{PaymentRequest, Provider, ProviderError, ProviderStatus, Purpose, Started};
use crate::payments::payment::Status;

/// The sandbox of this server.
pub struct Sandbox {
    /// The site that has its page.
    pub site: Arc<Site>,
}

impl Provider for Sandbox {
    fn start(&self, ask: &PaymentRequest) -> Result<Started, ProviderError> {
        // Derived from our own id, so that a retry returns the same.
        let external_id = external_id(&self.site, &ask.key);
        let payment_url = page(&self.site, &external_id);
        let customer_id = match ask.client_id.as_str() {
            "" => String::new(),
            client => format!("sbc_{}", &self.site.token_of(client)[..16]),
        };
        let status = if ask.wish == Purpose::Collection { Status::Pending } else { Status::Open };
        Ok(Started { external_id, payment_url, customer_id, status, test: true })
    }

    fn look(&self, _: &str) -> Result<ProviderStatus, ProviderError> {
        Ok(ProviderStatus { status: Status::Open, mandate: None, details: json!({}) })
    }

    fn cancel(&self, _: &str) -> Result<(), ProviderError> {
        Ok(())
    }
}

/// Returns the id in the sandbox of a payment or verification with this id. It cannot be guessed, so a record that has it
/// was created by the sandbox, whatever callers write in their own records.
pub fn external_id(site: &Site, id: &str) -> String {
    format!("sb_{}", site.token_of(id))
}

/// Returns the URL of the page of a payment.
pub fn page(site: &Site, external_id: &str) -> String {
    site.address(&format!("/sandbox/{external_id}"))
}

/// Returns the mandate of a verification.
pub fn mandate_of(external_id: &str) -> String {
    format!("sbm_{}", external_id.trim_start_matches("sb_").get(..16).unwrap_or_default())
}
