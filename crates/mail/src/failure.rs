//! Why a message was not taken.

use std::fmt;

/// The message was not taken, or perhaps. Each has a sentence for people, with the server's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Not taken now: 4xx, no answer in time, no connection. Try again later.
    Later(String),
    /// Not taken, ever: 5xx about this sender, recipient or message, or a message that cannot be sent there.
    Never(String),
    /// Not taken, and the mail is not to blame: the server refuses us (5xx at its greeting, EHLO, STARTTLS or AUTH), or
    /// its certificate does not hold. The mail is worth another try, which helps only when somebody changed something.
    Settings(String),
    /// The message was sent in whole, but no answer came: the server may have it or not. Another try may double it;
    /// receivers can tell by the message id, but few do.
    Unknown(String),
}

impl Failure {
    /// The sentence.
    pub fn words(&self) -> &str {
        match self {
            Failure::Later(words) | Failure::Never(words) | Failure::Settings(words) | Failure::Unknown(words) => words,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

impl std::error::Error for Failure {}
