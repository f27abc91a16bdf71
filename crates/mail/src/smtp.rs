//! Sending mail over SMTP: authentication, the commands of a mail, the meaning of their replies, and the pool.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::connection::{Answer, CommandError, Connection};
use crate::failure::{FORBIDDEN, Failure};
use crate::settings::{Security, SmtpSettings};
use crate::tls::Trust;

/// A mail to one recipient.
pub(crate) struct Letter<'a> {
    pub(crate) from: String,
    pub(crate) recipient: String,
    pub(crate) message: &'a [u8],
    /// Whether the mail may still be handed over, just before it is.
    pub(crate) permit: &'a dyn Fn() -> bool,
}

/// Servers close idle connections after some minutes; we do so earlier.
const LONGEST_IDLE: Duration = Duration::from_secs(60);
/// Timeout of the check whether a pooled connection is alive; after that, a new one is better.
const ALIVE_WITHIN: Duration = Duration::from_secs(5);
/// See [`SmtpSettings::timeout`].
const END_TIMES: u32 = 5;
const LONGEST_TIMEOUT: Duration = Duration::from_secs(3600);

/// A server, and the idle connections to it.
pub(crate) struct Smtp {
    settings: SmtpSettings,
    trust: Option<Trust>,
    idle: Mutex<Vec<(Connection, Instant)>>,
}

/// Why a mail failed, and the state of its connection afterwards.
struct Stop {
    failure: Failure,
    connection: Worth,
}

#[derive(PartialEq)]
enum Worth {
    /// The server rejected the mail and is still connected.
    Good,
    /// It was closed before the server received the mail: another connection may succeed.
    Stale,
    Gone,
}

impl Smtp {
    pub(crate) fn new(settings: SmtpSettings) -> Result<Smtp, String> {
        let bad = |text: &str| text.contains(|c: char| c.is_whitespace() || c.is_control());
        if settings.host.is_empty() || bad(&settings.host) || settings.port == 0 {
            return Err("the mail server needs a host name and a port".into());
        }
        if bad(&settings.helo) || !settings.helo.is_ascii() {
            return Err("the greeting name must be a host name without spaces".into());
        }
        if settings.user.is_empty() != settings.password.is_empty() {
            return Err("the mail server requires both a user and a password, or neither".into());
        }
        if settings.user.contains('\0') || settings.password.contains('\0') {
            return Err("the user and the password must not contain a NUL byte".into());
        }
        if settings.timeout.is_zero() || settings.timeout > LONGEST_TIMEOUT {
            return Err("the timeout must be greater than zero and at most an hour".into());
        }
        let trust = match settings.security {
            Security::None => None,
            Security::Tls | Security::StartTls => Some(Trust::new(&settings.host, settings.ca_file.as_deref())?),
        };
        Ok(Smtp { settings, trust, idle: Mutex::new(Vec::new()) })
    }

    pub(crate) fn deliver(&self, letter: &Letter<'_>) -> Result<String, Failure> {
        if let Some(connection) = self.pooled() {
            match self.transmit(connection, letter) {
                Err(Stop { connection: Worth::Stale, .. }) => {}
                outcome => return outcome.map_err(|stop| stop.failure),
            }
        }
        self.transmit(self.connect()?, letter).map_err(|stop| stop.failure)
    }

    pub(crate) fn connect(&self) -> Result<Connection, Failure> {
        let settings = &self.settings;
        let implicit = self.trust.as_ref().filter(|_| settings.security == Security::Tls);
        let mut connection = Connection::open(&settings.host, settings.port, settings.timeout, implicit)
            .map_err(|fault| self.session("does not provide a secure connection", fault))?;
        connection.greeting().map_err(|fault| self.session("refuses the connection", fault))?;
        connection.ehlo(&settings.helo).map_err(|fault| self.session("rejects the greeting", fault))?;
        if let (Security::StartTls, Some(trust)) = (settings.security, &self.trust) {
            if connection.offer("STARTTLS").is_none() {
                connection.quit();
                let words = "does not support STARTTLS; nothing is sent over an unencrypted connection";
                return Err(self.session(words, CommandError::Unsafe("check the port and the security setting".into())));
            }
            connection = connection.start_tls(trust).map_err(|fault| self.session("does not start TLS", fault))?;
            connection.ehlo(&settings.helo).map_err(|fault| self.session("rejects the greeting", fault))?;
        }
        if !settings.user.is_empty() {
            self.sign_in(&mut connection)?;
        }
        Ok(connection)
    }

    fn sign_in(&self, connection: &mut Connection) -> Result<(), Failure> {
        let (user, password) = (&self.settings.user, &self.settings.password);
        let offered = connection.offer("AUTH").unwrap_or_default().to_ascii_uppercase();
        let knows = |mechanism: &str| offered.split_whitespace().any(|word| word == mechanism);
        let plain = STANDARD.encode(format!("\0{user}\0{password}"));
        let done = if knows("PLAIN") {
            connection.command(&format!("AUTH PLAIN {plain}"), 2)
        } else if knows("LOGIN") {
            connection
                .command("AUTH LOGIN", 3)
                .and_then(|_| connection.command(&STANDARD.encode(user), 3))
                .and_then(|_| connection.command(&STANDARD.encode(password), 2))
        } else {
            let words = "does not support AUTH PLAIN or LOGIN";
            return Err(self.session(words, CommandError::Unsafe("check the port and the security setting".into())));
        };
        done.map(drop).map_err(|fault| {
            // Some servers repeat rejected input in their reply.
            let secrets = [plain, STANDARD.encode(password), STANDARD.encode(user), password.clone()];
            let hide =
                |words: &str| secrets.iter().fold(words.to_owned(), |words, secret| words.replace(secret, "***"));
            match self.session("does not accept the user name or password", fault) {
                Failure::Later(words) => Failure::Later(hide(&words)),
                Failure::Never(words) => Failure::Never(hide(&words)),
                Failure::Settings(words) => Failure::Settings(hide(&words)),
                Failure::Unknown(words) => Failure::Unknown(hide(&words)),
            }
        })
    }

    /// Sends a mail, and keeps the connection if it can be reused.
    fn transmit(&self, mut connection: Connection, letter: &Letter<'_>) -> Result<String, Stop> {
        let outcome = self.send(&mut connection, letter);
        let good = match &outcome {
            Ok(_) => true,
            Err(stop) => stop.connection == Worth::Good && connection.command("RSET", 2).is_ok(),
        };
        if good {
            self.keep(connection);
        }
        outcome.map(|answer| answer.words())
    }

    fn send(&self, connection: &mut Connection, letter: &Letter<'_>) -> Result<Answer, Stop> {
        let parameters = self.parameters(connection, letter)?;
        connection
            .command(&format!("MAIL FROM:<{}>{parameters}", letter.from), 2)
            .map_err(|fault| self.first("rejects the sender", fault))?;
        connection
            .command(&format!("RCPT TO:<{}>", letter.recipient), 2)
            .map_err(|fault| self.letter("rejects the recipient", fault))?;
        connection.command("DATA", 3).map_err(|fault| self.letter("rejects the mail", fault))?;
        connection.content(letter.message).map_err(|fault| {
            // In the middle of a message, no other command is recognized.
            Stop { connection: Worth::Gone, ..self.letter("rejects the mail", fault) }
        })?;
        if !(letter.permit)() {
            // Without its end the server has no mail.
            return Err(Stop { failure: Failure::Later(FORBIDDEN.into()), connection: Worth::Gone });
        }
        connection.end(self.settings.timeout * END_TIMES).map_err(|fault| match fault {
            refused @ CommandError::Refused(_) => self.letter("rejects the mail", refused),
            CommandError::Lost(words) | CommandError::Unsafe(words) => Stop {
                failure: Failure::Unknown(format!(
                    "The mail was sent, but the mail server {} did not confirm it: {words}. It may have arrived.",
                    self.settings.host
                )),
                connection: Worth::Gone,
            },
        })
    }

    /// Returns the protocol extensions that this mail requires.
    fn parameters(&self, connection: &Connection, letter: &Letter<'_>) -> Result<String, Stop> {
        let never = |what: &str| {
            let failure = Failure::Never(format!("The mail server {} {what}.", self.settings.host));
            Stop { failure, connection: Worth::Good }
        };
        let mut parameters = String::new();
        if let Some(most) = connection.offer("SIZE") {
            let size = letter.message.len();
            if most.trim().parse().is_ok_and(|most: usize| most > 0 && size > most) {
                return Err(never(&format!("accepts mails of at most {} bytes; this one has {size}", most.trim())));
            }
            parameters.push_str(&format!(" SIZE={size}"));
        }
        let headers = letter.message.windows(4).position(|w| w == b"\r\n\r\n").unwrap_or(letter.message.len());
        let wide = !letter.message[..headers].is_ascii() || !letter.from.is_ascii() || !letter.recipient.is_ascii();
        if wide && connection.offer("SMTPUTF8").is_none() {
            return Err(never("does not support non-ASCII characters before the @ (SMTPUTF8)"));
        }
        if !letter.message.is_ascii() {
            if connection.offer("8BITMIME").is_none() {
                return Err(never("does not support unencoded non-ASCII characters (8BITMIME)"));
            }
            parameters.push_str(" BODY=8BITMIME");
        }
        if wide {
            parameters.push_str(" SMTPUTF8");
        }
        Ok(parameters)
    }

    /// A failure before any mail was sent: the mail is not the cause.
    fn session(&self, what: &str, fault: CommandError) -> Failure {
        let host = &self.settings.host;
        match fault {
            CommandError::Refused(answer) if answer.code < 500 => {
                Failure::Later(format!("The mail server {host} {what} at the moment: {}", answer.words()))
            }
            CommandError::Refused(answer) => {
                Failure::Settings(format!("The mail server {host} {what}: {}", answer.words()))
            }
            CommandError::Lost(words) => Failure::Later(format!("The mail server {host} is unavailable: {words}")),
            CommandError::Unsafe(words) => Failure::Settings(format!("The mail server {host} {what}: {words}")),
        }
    }

    /// A failure at the first command of a mail: if the connection is closed or about to be, the server has received
    /// nothing yet.
    fn first(&self, what: &str, fault: CommandError) -> Stop {
        let stale = match &fault {
            CommandError::Refused(answer) => answer.code == 421,
            CommandError::Lost(_) | CommandError::Unsafe(_) => true,
        };
        let stop = self.letter(what, fault);
        if stale { Stop { connection: Worth::Stale, ..stop } } else { stop }
    }

    /// A failure before the end of the message was sent, or a rejection after it.
    fn letter(&self, what: &str, fault: CommandError) -> Stop {
        let host = &self.settings.host;
        match fault {
            CommandError::Refused(answer) => {
                let words = answer.words();
                let failure = match answer.code {
                    // Authentication or TLS required: not about this mail.
                    530 | 534 | 535 | 538 => Failure::Settings(format!("The mail server {host} {what}: {words}")),
                    500.. => Failure::Never(format!("The mail server {host} {what}: {words}")),
                    _ => Failure::Later(format!("The mail server {host} {what} at the moment: {words}")),
                };
                Stop { failure, connection: if answer.code == 421 { Worth::Gone } else { Worth::Good } }
            }
            CommandError::Lost(words) | CommandError::Unsafe(words) => Stop {
                failure: Failure::Later(format!("The mail server {host} is unavailable: {words}")),
                connection: Worth::Gone,
            },
        }
    }

    fn pooled(&self) -> Option<Connection> {
        loop {
            let (mut connection, since) = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
            if since.elapsed() > LONGEST_IDLE {
                connection.quit();
                continue;
            }
            let wait = self.settings.timeout.min(ALIVE_WITHIN);
            if connection.command_within("NOOP", 2, wait).is_ok() {
                return Some(connection);
            }
        }
    }

    fn keep(&self, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < self.settings.pool {
            idle.push((connection, Instant::now()));
        } else {
            drop(idle);
            connection.quit();
        }
    }
}

impl Drop for Smtp {
    fn drop(&mut self) {
        let idle = self.idle.get_mut().unwrap_or_else(PoisonError::into_inner);
        idle.drain(..).for_each(|(connection, _)| connection.quit());
    }
}
