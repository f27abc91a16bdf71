//! Carries batches of spans to the collector.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use tokio::runtime::Runtime;

/// Time limit of a whole call.
const TIMEOUT: Duration = Duration::from_secs(10);

/// An HTTP client for the thread that sends batches: it has its own runtime, since the thread has none.
pub struct Courier {
    http: reqwest::Client,
    runtime: Runtime,
    address: String,
    /// Why calls over TLS fail, if this machine has no certificates of authorities.
    uncertified: Option<String>,
    /// Whether the last batch failed: an outage is logged once.
    failing: AtomicBool,
}

impl Courier {
    pub fn new(address: &str) -> Result<Courier, String> {
        // An earlier caller installed the same provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let url = reqwest::Url::parse(address)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
            .ok_or_else(|| "must be a URL such as http://127.0.0.1:4318".to_string())?;
        let builder =
            || reqwest::Client::builder().timeout(TIMEOUT).redirect(reqwest::redirect::Policy::none()).no_proxy();
        // Only TLS needs the certificates of this machine, and a server without traces is better than none.
        let (mut http, mut uncertified) = (None, None);
        if url.scheme() == "https" {
            match builder().build() {
                Ok(certified) => http = Some(certified),
                Err(error) => uncertified = Some(deepest(&error)),
            }
        }
        let http = match http {
            Some(http) => http,
            None => builder().tls_certs_only([]).build().map_err(|error| deepest(&error))?,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| format!("cannot start a runtime: {error}"))?;
        Ok(Courier { http, runtime, address: address.to_string(), uncertified, failing: AtomicBool::new(false) })
    }

    /// Returns why calls over TLS fail, if this machine has no certificates of authorities.
    pub fn uncertified(&self) -> Option<&str> {
        self.uncertified.as_deref()
    }

    /// Logs when batches start to fail and when they arrive again.
    fn tell(&self, failure: Option<String>) {
        let failing = failure.is_some();
        if self.failing.swap(failing, Ordering::Relaxed) == failing {
            return;
        }
        match failure {
            Some(cause) => tracing::warn!(
                collector = self.address,
                cause,
                "The collector takes no traces; they are dropped until it does."
            ),
            None => tracing::info!(collector = self.address, "The collector takes traces again."),
        }
    }
}

impl fmt::Debug for Courier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Courier").field("address", &self.address).finish_non_exhaustive()
    }
}

#[async_trait]
impl HttpClient for Courier {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let request = reqwest::Request::try_from(request)?;
        // Blocks the thread of the batches, which has nothing else to do.
        let done = self.runtime.block_on(async {
            let response = self.http.execute(request).await?;
            let status = response.status();
            Ok::<_, reqwest::Error>((status, response.bytes().await?))
        });
        let (status, body) = match done {
            Ok(done) => done,
            Err(error) => {
                self.tell(Some(deepest(&error)));
                return Err(error.into());
            }
        };
        self.tell((!status.is_success()).then(|| format!("it responds with {status}")));
        Ok(Response::builder().status(status).body(body)?)
    }
}

fn deepest(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), deepest)
}
