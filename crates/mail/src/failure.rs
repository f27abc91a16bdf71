//! Why a message was not accepted.

use std::fmt;

/// The message was not accepted, or possibly not. Each variant has a sentence for people, with the server's reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A temporary failure: 4xx, timeout, no connection. Retry later.
    Later(String),
    /// A permanent failure: 5xx about this sender, recipient or message, or a message that cannot be sent there.
    Never(String),
    /// A failure that is not caused by the message: the server rejects the connection (5xx at its greeting, EHLO, STARTTLS
    /// or AUTH), or its certificate is invalid. A retry succeeds only after the configuration has changed.
    Settings(String),
    /// The whole message was sent, but there was no reply, so the server may have accepted it. A retry may deliver it twice;
    /// receivers could detect this by the message id, but few do.
    Unknown(String),
}

/// Why a mail was not handed over although nothing was wrong with it.
pub(crate) const FORBIDDEN: &str =
    "The mail was not handed over: it is not certain that no other server of this installation is sending it.";

impl Failure {
    /// Returns the sentence.
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
