//! Where mail goes, and how to talk to a server.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

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
