//! What became of a call that did not get an answer.

use std::error::Error;
use std::fmt;

/// The call is not made, in words for whoever gave the address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(pub String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Refused {}

/// There is no answer. Each has a sentence for people; none shows more of the address than its host, since the rest may
/// be secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Such a call is not made, now or later: the address is not allowed, or a header cannot be sent.
    Refused(String),
    /// Nothing arrived: the name is not known, or there is no connection. Another try doubles nothing.
    NotSent(String),
    /// It was sent, perhaps in whole, but its answer did not come or broke off. Another try may double it.
    Unknown(String),
}

impl Failure {
    /// The sentence.
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

/// The error itself, then what lies below it.
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
