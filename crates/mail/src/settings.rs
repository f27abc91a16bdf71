//! The destination of mail, and the settings of an SMTP server.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// The destination of mail.
#[derive(Clone, Debug)]
pub enum Route {
    /// An SMTP server.
    Smtp(SmtpSettings),
    /// `.eml` files in this folder, which is created if it does not exist.
    Folder(PathBuf),
}

/// How the connection to a server is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security {
    /// TLS from the first byte (port 465).
    Tls,
    /// TLS after STARTTLS (port 587); if the server does not support it, nothing is sent.
    StartTls,
    /// None, for a server on this machine. The user name and password are sent in clear text.
    None,
}

/// The settings of an SMTP server.
#[derive(Clone, PartialEq, Eq)]
pub struct SmtpSettings {
    /// Its host name, which must match its certificate, or its address.
    pub host: String,
    /// The port, usually 465, 587 or 25.
    pub port: u16,
    /// How the connection is protected.
    pub security: Security,
    /// The user name; empty for a server without authentication.
    pub user: String,
    /// The password of the user.
    pub password: String,
    /// The timeout for connecting, for each reply, and for each 64 KiB of a message. The reply to the end of a message may
    /// take five times as long, since a mail may be sent twice if its reply is missed.
    pub timeout: Duration,
    /// The name in EHLO; empty for the local address.
    pub helo: String,
    /// The maximum number of idle connections kept open; 0 for none. Callers determine how many mails are sent in parallel.
    pub pool: usize,
    /// Certificates (PEM) to trust in addition to the authorities of this machine: of other authorities, or of the server
    /// itself.
    pub ca_file: Option<PathBuf>,
}

impl SmtpSettings {
    /// Returns settings without a user. The port determines TLS: from the start for 465, otherwise STARTTLS.
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
