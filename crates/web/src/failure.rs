//! Failures of outgoing calls.

use std::error::Error;
use std::fmt;

/// Why a call is not made, for the person who configured the URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(pub String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Refused {}

/// A call without a response. Each has a sentence for people; none shows more of the URL than its host, since the rest
/// may be secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The call is never made: the address is not allowed, or a header is invalid.
    Refused(String),
    /// Nothing was sent: the name is unknown, or the connection failed. A retry duplicates nothing.
    NotSent(String),
    /// The request was sent, at least in part, but there was no complete response. A retry may duplicate it.
    Unknown(String),
}

impl Failure {
    /// Returns the sentence.
    pub fn words(&self) -> &str {
        match self {
            Failure::Refused(words) | Failure::NotSent(words) | Failure::Unknown(words) => words,
        }
    }

    pub(crate) fn told_by(error: &reqwest::Error, host: &str) -> Failure {
        if let Some(refused) = causes(error).find_map(|cause| cause.downcast_ref::<Refused>()) {
            return refused.clone().into();
        }
        let deepest = causes(error).last().map(ToString::to_string).unwrap_or_default();
        if error.is_builder() {
            return Failure::Refused(format!("This call to {host} cannot be made: {deepest}."));
        }
        match (error.is_connect(), error.is_timeout()) {
            (true, true) => Failure::NotSent(format!("{host} could not be reached in time.")),
            (true, false) => Failure::NotSent(format!("{host} could not be reached: {deepest}.")),
            (false, true) => {
                Failure::Unknown(format!("{host} did not respond in time; the request may have been processed."))
            }
            (false, false) => {
                Failure::Unknown(format!("The connection to {host} was lost before it responded: {deepest}."))
            }
        }
    }
}

/// Iterates over the error and its causes.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Failure {
        Failure::Refused(refused.0)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

impl Error for Failure {}
