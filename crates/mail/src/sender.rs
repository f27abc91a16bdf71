//! Sends messages and reports the outcome.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::address;
use crate::connection::Connection;
use crate::folder::Folder;
use crate::message::check_lines;
use crate::smtp::{Letter, Smtp};

/// Where mail goes.
#[derive(Clone, Debug)]
pub enum Route {
    /// To a server.
    Smtp(SmtpSettings),
    /// To `.eml` files in this folder, which is made when it is not there.
    Folder(PathBuf),
}

/// How the connection to a server is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security {
    /// TLS from the first byte (port 465).
    Tls,
    /// TLS after STARTTLS (port 587); without it nothing is sent.
    StartTls,
    /// None: for a server on this machine. A user name and password go in the clear.
    None,
}

/// A server and how to talk to it.
#[derive(Clone, PartialEq, Eq)]
pub struct SmtpSettings {
    /// Its name, which its certificate must have, or its address.
    pub host: String,
    /// 465, 587 or 25, mostly.
    pub port: u16,
    /// How the connection is protected.
    pub security: Security,
    /// Empty for a server that asks for none.
    pub user: String,
    /// Of that user.
    pub password: String,
    /// For connecting, for each answer, and for each 64 KiB of a message. The answer to the end of a message may take
    /// five times as long, since a mail whose answer is not waited for may go out twice.
    pub timeout: Duration,
    /// The name by which we greet; empty for our address.
    pub helo: String,
    /// Connections kept open between mails; 0 for none. How many mails go at the same time is up to the callers.
    pub pool: usize,
    /// Certificates of authorities (PEM) to believe besides those of this machine.
    pub ca_file: Option<PathBuf>,
}

impl SmtpSettings {
    /// A server without a user; TLS by the port: 465 from the start, else by STARTTLS.
    pub fn new(host: impl Into<String>, port: u16) -> SmtpSettings {
        SmtpSettings {
            host: host.into(),
            port,
            security: if port == 465 { Security::Tls } else { Security::StartTls },
            user: String::new(),
            password: String::new(),
            timeout: Duration::from_secs(30),
            helo: String::new(),
            pool: 2,
            ca_file: None,
        }
    }
}

impl fmt::Debug for SmtpSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hidden = |text: &str| if text.is_empty() { "" } else { "***" };
        f.debug_struct("SmtpSettings")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("security", &self.security)
            .field("user", &hidden(&self.user))
            .field("password", &hidden(&self.password))
            .field("timeout", &self.timeout)
            .field("helo", &self.helo)
            .field("pool", &self.pool)
            .field("ca_file", &self.ca_file)
            .finish()
    }
}

/// The message was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The server's reply, which often contains its own id of the message; or the name of the file.
    pub response: String,
}

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

/// Sends mail; made once and shared by threads.
pub struct Sender {
    way: Way,
}

enum Way {
    Smtp(Box<Smtp>),
    Folder(Folder),
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}

impl Sender {
    /// Reads the certificates without connecting: see [`Sender::check`].
    pub fn new(route: Route) -> Result<Sender, String> {
        let way = match route {
            Route::Smtp(settings) => Way::Smtp(Box::new(Smtp::new(settings)?)),
            Route::Folder(path) => Way::Folder(Folder::new(path)),
        };
        Ok(Sender { way })
    }

    /// Sends a finished message (see [`Mail::to_bytes`](crate::Mail::to_bytes)) to ONE recipient, whatever its headers
    /// say. `from` receives the bounces; empty for none, as for automatic replies.
    ///
    /// In a folder, the message is one file for all its recipients, named after its message id.
    pub fn deliver(&self, from: &str, recipient: &str, message: &[u8]) -> Result<Receipt, Failure> {
        let parsed = |email: &str| address::parse(email).map(|address| address.to_string());
        let letter = Letter {
            from: if from.is_empty() { String::new() } else { parsed(from).map_err(Failure::Never)? },
            recipient: parsed(recipient).map_err(Failure::Never)?,
            message,
        };
        check_lines(message).map_err(Failure::Never)?;
        let response = match &self.way {
            Way::Smtp(smtp) => smtp.deliver(&letter)?,
            Way::Folder(folder) => folder.write(message)?,
        };
        Ok(Receipt { response })
    }

    /// Connects, greets and authenticates without sending anything; or checks whether the folder is writable.
    pub fn check(&self) -> Result<(), String> {
        match &self.way {
            Way::Smtp(smtp) => smtp.connect().map(Connection::quit).map_err(|failure| failure.to_string()),
            Way::Folder(folder) => folder.check().map_err(|e| format!("the folder cannot be written: {e}")),
        }
    }
}
