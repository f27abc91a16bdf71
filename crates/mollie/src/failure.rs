//! Failures of calls to Mollie.

use std::fmt;
use std::time::Duration;

use serde_json::Value;
use web::{Answer, Method};

/// A failed call. Each has a sentence for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Permanently rejected.
    Rejected {
        /// The status of the response.
        status: u16,
        /// The title, such as `Unprocessable Entity`.
        title: String,
        /// The detail, from Mollie.
        detail: String,
        /// The invalid field, if any.
        field: Option<String>,
    },
    /// Nothing was done: Mollie was unreachable or busy. Retry.
    Later {
        /// The sentence.
        why: String,
        /// The minimum delay, if Mollie gives one.
        after: Option<Duration>,
    },
    /// The outcome is unknown: there was no response, or an ambiguous one. Retry with the same key.
    Unknown(String),
    /// The key or the URL is wrong. A retry only helps after they change.
    Settings(String),
    /// The object does not exist, or no longer. Only for reads, cancellations and revocations.
    Gone,
}

impl Failure {
    /// Interprets an unsuccessful response.
    pub(crate) fn told_by(answer: &Answer, method: &Method) -> Failure {
        let error: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let text = |field: &str| error.get(field).and_then(Value::as_str).map(str::to_owned);
        let detail = text("detail").unwrap_or_default();
        let status = answer.status;
        // Mollie sends seconds; a date would require a clock.
        let after = answer.header("retry-after").and_then(|value| value.trim().parse().ok()).map(Duration::from_secs);
        let reading = *method == Method::GET;
        match status {
            401 | 403 => Failure::Settings(format!("Mollie rejected the API key ({status}). {detail}").trim().into()),
            404 | 410 if *method != Method::POST => Failure::Gone,
            429 => Failure::Later { why: "Mollie's rate limit is exceeded (429).".into(), after },
            503 => Failure::Later { why: "Mollie is not available at the moment (503).".into(), after },
            408 => Failure::Later { why: "Mollie did not receive the request in time (408).".into(), after },
            // The same key was sent while the first call was still in progress.
            409 if *method == Method::POST => {
                Failure::Unknown("Mollie is still processing the same request (409).".into())
            }
            500.. if reading => Failure::Later { why: format!("Mollie reported an internal error ({status})."), after },
            // A gateway timeout (504) does not say what happened to the payment.
            500.. => Failure::Unknown(format!(
                "Mollie reported an internal error ({status}); the request may have been processed."
            )),
            400..500 => {
                Failure::Rejected { status, title: text("title").unwrap_or_default(), detail, field: text("field") }
            }
            _ => Failure::Settings(format!("The response is not from Mollie ({status}): check mollie_url.")),
        }
    }

    /// The failure for a successful response that cannot be parsed.
    pub(crate) fn unreadable(method: &Method) -> Failure {
        let why = "The response from Mollie cannot be read.".to_owned();
        if *method == Method::GET { Failure::Later { why, after: None } } else { Failure::Unknown(why) }
    }
}

impl From<web::Failure> for Failure {
    fn from(failure: web::Failure) -> Failure {
        match failure {
            web::Failure::Refused(why) => Failure::Settings(why),
            web::Failure::NotSent(why) => Failure::Later { why, after: None },
            web::Failure::Unknown(why) => Failure::Unknown(why),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Rejected { status, title, detail, field } => {
                let words = if detail.is_empty() { title } else { detail };
                write!(f, "Mollie rejected the request ({status}): {words}")?;
                field.as_ref().map_or(Ok(()), |field| write!(f, " [{field}]"))
            }
            Failure::Later { why, .. } | Failure::Unknown(why) | Failure::Settings(why) => f.write_str(why),
            Failure::Gone => f.write_str("Mollie does not have this object, or no longer has it."),
        }
    }
}

impl std::error::Error for Failure {}
