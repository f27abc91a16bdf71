//! An SMTP server on loopback that stores the mail it receives and fails as scripted. For tests.
//!
//! ```
//! use mail::sink::{Act, Rule, Sink, Verb};
//!
//! # fn main() -> std::io::Result<()> {
//! let sink = Sink::start()?;
//! sink.rule(Rule::new(Verb::Rcpt, Act::answer("550 5.1.1 No such user")).having("nobody@"));
//! let sender = mail::Sender::new(mail::Route::Smtp(sink.settings())).map_err(std::io::Error::other)?;
//! let message = b"Message-ID: <1@a.example>\r\n\r\nHello\r\n";
//! assert!(sender.deliver("me@a.example", "you@b.example", message).is_ok());
//! assert!(sender.deliver("me@a.example", "nobody@b.example", message).is_err());
//! assert_eq!(sink.mails().len(), 1);
//! # Ok(())
//! # }
//! ```

use std::io::{self, BufRead as _, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::{Security, SmtpSettings};

/// A point in the session at which a rule can act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// When a client has connected.
    Greeting,
    /// `EHLO`.
    Ehlo,
    /// `STARTTLS`.
    StartTls,
    /// `AUTH`, and each line that belongs to it.
    Auth,
    /// `MAIL FROM`.
    Mail,
    /// `RCPT TO`.
    Rcpt,
    /// `DATA`.
    Data,
    /// After the first line of the message.
    Content,
    /// After the final dot.
    End,
    /// `NOOP`.
    Noop,
    /// `RSET`.
    Rset,
    /// `QUIT`.
    Quit,
}

/// What to do instead of the default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Sends this reply and continues.
    Answer(String),
    /// Closes the connection without a reply. At [`Verb::End`] the mail is not stored.
    Close,
    /// Sends this reply and closes the connection.
    AnswerAndClose(String),
    /// Sends nothing more; closes when the client does.
    Silence,
    /// At [`Verb::End`]: stores the mail, then closes the connection without a reply. Elsewhere the same as `Close`.
    KeepAndClose,
    /// Waits, then does the default.
    Wait(Duration),
}

impl Act {
    /// Creates an [`Act::Answer`].
    pub fn answer(words: &str) -> Act {
        Act::Answer(words.into())
    }
}

/// A rule of the script.
#[derive(Clone, Debug)]
pub struct Rule {
    at: Verb,
    act: Act,
    having: String,
    times: usize,
}

impl Rule {
    /// Creates a rule that always applies at this point.
    pub fn new(at: Verb, act: Act) -> Rule {
        Rule { at, act, having: String::new(), times: usize::MAX }
    }

    /// Restricts the rule to client lines that contain this text.
    pub fn having(mut self, text: &str) -> Rule {
        self.having = text.into();
        self
    }

    /// Restricts the rule to the first times.
    pub fn times(mut self, times: usize) -> Rule {
        self.times = times;
        self
    }
}

/// A received mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The address in `MAIL FROM`.
    pub from: String,
    /// The parameters after that address.
    pub parameters: String,
    /// The addresses of `RCPT TO`.
    pub to: Vec<String>,
    /// The message, without the doubled dots.
    pub message: Vec<u8>,
    /// The authenticated user; empty for none.
    pub user: String,
    /// Whether it was received over TLS.
    pub encrypted: bool,
}

/// A TLS connection.
pub trait Stream: Read + Write + Send {}

impl<T: Read + Write + Send> Stream for T {}

/// Starts TLS as a server.
pub type Wrap = Arc<dyn Fn(TcpStream) -> io::Result<Box<dyn Stream>> + Send + Sync>;

/// The behaviour of a [`Sink`] without rules.
#[derive(Clone)]
pub struct Options {
    /// The port; 0 for any free one.
    pub port: u16,
    /// The lines of the reply to EHLO, besides STARTTLS.
    pub offers: Vec<String>,
    /// The required user and password.
    pub login: Option<(String, String)>,
    /// Whether TLS starts immediately or by STARTTLS; requires `wrap`.
    pub security: Security,
    /// Starts TLS.
    pub wrap: Option<Wrap>,
}

impl Default for Options {
    fn default() -> Options {
        let offers = ["8BITMIME", "SIZE 33554432", "SMTPUTF8", "AUTH PLAIN LOGIN"].map(String::from).to_vec();
        Options { port: 0, offers, login: None, security: Security::None, wrap: None }
    }
}

/// The server. It stops when it is dropped.
pub struct Sink {
    port: u16,
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
}

struct Shared {
    options: Options,
    state: Mutex<State>,
    stopped: AtomicBool,
}

#[derive(Default)]
struct State {
    rules: Vec<Rule>,
    mails: Vec<Kept>,
    lines: Vec<String>,
    open: Vec<TcpStream>,
    connections: usize,
}

impl Sink {
    /// Accepts all mail, without TLS or authentication.
    pub fn start() -> io::Result<Sink> {
        Sink::with(Options::default())
    }

    /// Starts a server with these options.
    pub fn with(options: Options) -> io::Result<Sink> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port))?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(Shared { options, state: Mutex::default(), stopped: AtomicBool::new(false) });
        let accepting = shared.clone();
        let listener = thread::Builder::new().name("sink".into()).spawn(move || accepting.accept(&listener))?;
        Ok(Sink { port, shared, listener: Some(listener) })
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns settings to connect to it: a short timeout, and the required user.
    pub fn settings(&self) -> SmtpSettings {
        let options = &self.shared.options;
        let (user, password) = options.login.clone().unwrap_or_default();
        SmtpSettings {
            security: options.security,
            timeout: Duration::from_secs(5),
            user,
            password,
            ..SmtpSettings::new("127.0.0.1", self.port)
        }
    }

    /// Adds a rule to the script. The first one that matches acts.
    pub fn rule(&self, rule: Rule) {
        self.shared.state().rules.push(rule);
    }

    /// Clears the script.
    pub fn heal(&self) {
        self.shared.state().rules.clear();
    }

    /// Returns the mails so far.
    pub fn mails(&self) -> Vec<Kept> {
        self.shared.state().mails.clone()
    }

    /// Waits for `count` mails, and returns those that were received.
    pub fn wait(&self, count: usize, longest: Duration) -> Vec<Kept> {
        let deadline = Instant::now() + longest;
        while self.shared.state().mails.len() < count && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
        self.mails()
    }

    /// Returns the lines that clients sent, without the messages.
    pub fn lines(&self) -> Vec<String> {
        self.shared.state().lines.clone()
    }

    /// Returns the number of connections so far.
    pub fn connections(&self) -> usize {
        self.shared.state().connections
    }

    /// Closes the open connections, as a server does with idle ones.
    pub fn hang_up(&self) {
        for stream in self.shared.state().open.drain(..) {
            // It may already be closed.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Sink {
    /// Afterwards the port refuses connections.
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        // Wakes the accepting thread; if that fails, it has already stopped.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
        self.hang_up();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(self: Arc<Shared>, listener: &TcpListener) {
        for tcp in listener.incoming() {
            if self.stopped.load(Ordering::SeqCst) {
                return;
            }
            let Ok(tcp) = tcp else { continue };
            let shared = self.clone();
            {
                let mut state = self.state();
                state.connections += 1;
                state.open.extend(tcp.try_clone());
            }
            thread::spawn(move || {
                // Tests observe the client, so a session may end in an error.
                let _ = Session::run(&shared, tcp);
            });
        }
    }

    /// Returns what the script says about this point.
    fn act(&self, at: Verb, line: &str) -> Option<Act> {
        let mut state = self.state();
        let rule = state.rules.iter_mut().find(|r| r.at == at && r.times > 0 && line.contains(&r.having))?;
        rule.times -= 1;
        Some(rule.act.clone())
    }
}

struct Session<'a> {
    shared: &'a Shared,
    tcp: TcpStream,
    stream: BufReader<Box<dyn Stream>>,
    encrypted: bool,
    user: String,
    mail: Option<(String, String)>,
    to: Vec<String>,
}

/// Whether the default is still to be done.
enum Then {
    Usual,
    Done,
}

impl Session<'_> {
    fn run(shared: &Shared, tcp: TcpStream) -> io::Result<()> {
        tcp.set_nodelay(true)?;
        let encrypted = shared.options.security == Security::Tls;
        let stream: Box<dyn Stream> = match (&shared.options.wrap, encrypted) {
            (Some(wrap), true) => wrap(tcp.try_clone()?)?,
            _ => Box::new(tcp.try_clone()?),
        };
        let stream = BufReader::new(stream);
        let (user, to) = (String::new(), Vec::new());
        let mut session = Session { shared, tcp, stream, encrypted, user, mail: None, to };
        let outcome = session.talk();
        // `open` holds the socket too: only this ends the connection.
        let _ = session.tcp.shutdown(Shutdown::Both);
        outcome
    }

    fn talk(&mut self) -> io::Result<()> {
        if let Then::Usual = self.script(Verb::Greeting, "")? {
            self.say("220 sink.example ESMTP")?;
        }
        loop {
            let line = self.line()?;
            let upper = line.to_ascii_uppercase();
            let verb = match upper.split([' ', ':']).next().unwrap_or_default() {
                "EHLO" => Verb::Ehlo,
                "STARTTLS" => Verb::StartTls,
                "AUTH" => Verb::Auth,
                "MAIL" => Verb::Mail,
                "RCPT" => Verb::Rcpt,
                "DATA" => Verb::Data,
                "NOOP" => Verb::Noop,
                "RSET" => Verb::Rset,
                "QUIT" => Verb::Quit,
                _ => {
                    self.say("500 5.5.2 What?")?;
                    continue;
                }
            };
            if let Then::Done = self.script(verb, &line)? {
                continue;
            }
            match verb {
                Verb::Ehlo => self.ehlo()?,
                Verb::StartTls => self.start_tls()?,
                Verb::Auth => self.auth(&line)?,
                Verb::Mail => self.mail_from(&line)?,
                Verb::Rcpt => self.rcpt_to(&line)?,
                Verb::Data => self.data()?,
                Verb::Rset => {
                    self.forget();
                    self.say("250 2.0.0 Forgotten")?;
                }
                Verb::Quit => return self.say("221 2.0.0 Bye"),
                _ => self.say("250 2.0.0 Fine")?,
            }
        }
    }

    fn script(&mut self, at: Verb, line: &str) -> io::Result<Then> {
        let act = self.shared.act(at, line);
        self.perform(act)
    }

    fn perform(&mut self, act: Option<Act>) -> io::Result<Then> {
        match act {
            None => Ok(Then::Usual),
            Some(Act::Wait(time)) => {
                thread::sleep(time);
                Ok(Then::Usual)
            }
            Some(Act::Answer(words)) => self.say(&words).map(|()| Then::Done),
            Some(Act::AnswerAndClose(words)) => {
                self.say(&words)?;
                Err(ErrorKind::ConnectionAborted.into())
            }
            Some(Act::Close | Act::KeepAndClose) => Err(ErrorKind::ConnectionAborted.into()),
            Some(Act::Silence) => {
                while self.stream.read(&mut [0; 4096])? > 0 {}
                Err(ErrorKind::ConnectionAborted.into())
            }
        }
    }

    fn ehlo(&mut self) -> io::Result<()> {
        self.forget();
        let options = &self.shared.options;
        let mut lines = vec!["sink.example at your service".to_owned()];
        lines.extend(options.offers.iter().cloned());
        if options.security == Security::StartTls && !self.encrypted {
            lines.push("STARTTLS".into());
        }
        let last = lines.len() - 1;
        let lines: Vec<String> =
            lines.iter().enumerate().map(|(i, l)| format!("250{}{l}", if i == last { ' ' } else { '-' })).collect();
        self.say(&lines.join("\r\n"))
    }

    fn start_tls(&mut self) -> io::Result<()> {
        let Some(wrap) = self.shared.options.wrap.clone().filter(|_| !self.encrypted) else {
            return self.say("454 4.7.0 No TLS here");
        };
        self.say("220 2.0.0 Go ahead")?;
        self.stream = BufReader::new(wrap(self.tcp.try_clone()?)?);
        self.encrypted = true;
        Ok(())
    }

    fn auth(&mut self, line: &str) -> io::Result<()> {
        let words: Vec<&str> = line.split(' ').collect();
        let (user, password) = match words[..] {
            [_, "PLAIN", encoded] => {
                let plain = decoded(encoded);
                let mut parts = plain.splitn(3, '\0').skip(1).map(str::to_owned);
                (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
            }
            [_, "LOGIN"] => {
                self.say("334 VXNlcm5hbWU6")?;
                let user = self.line()?;
                if let Then::Done = self.script(Verb::Auth, &user)? {
                    return Ok(());
                }
                self.say("334 UGFzc3dvcmQ6")?;
                let password = self.line()?;
                if let Then::Done = self.script(Verb::Auth, &password)? {
                    return Ok(());
                }
                (decoded(&user), decoded(&password))
            }
            _ => return self.say("504 5.5.4 Not that way"),
        };
        if self.shared.options.login.as_ref().is_some_and(|login| *login != (user.clone(), password)) {
            return self.say("535 5.7.8 Who?");
        }
        self.user = user;
        self.say("235 2.7.0 Welcome")
    }

    fn mail_from(&mut self, line: &str) -> io::Result<()> {
        if self.shared.options.login.is_some() && self.user.is_empty() {
            return self.say("530 5.7.0 Sign in first");
        }
        let Some((from, parameters)) = path(line, "FROM:") else { return self.say("501 5.5.4 From whom?") };
        self.forget();
        self.mail = Some((from, parameters));
        self.say("250 2.1.0 Fine")
    }

    fn rcpt_to(&mut self, line: &str) -> io::Result<()> {
        if self.mail.is_none() {
            return self.say("503 5.5.1 From whom?");
        }
        let Some((to, _)) = path(line, "TO:") else { return self.say("501 5.5.4 To whom?") };
        self.to.push(to);
        self.say("250 2.1.5 Fine")
    }

    fn data(&mut self) -> io::Result<()> {
        if self.to.is_empty() {
            return self.say("503 5.5.1 To whom?");
        }
        self.say("354 Go on, end with a dot")?;
        let mut message = Vec::new();
        let mut first = true;
        loop {
            let mut line = Vec::new();
            self.stream.read_until(b'\n', &mut line)?;
            if line.is_empty() {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            if line == b".\r\n" {
                break;
            }
            message.extend_from_slice(line.strip_prefix(b".").unwrap_or(&line));
            if std::mem::take(&mut first) {
                self.script(Verb::Content, "")?;
            }
        }
        let (from, parameters) = self.mail.clone().unwrap_or_default();
        let kept =
            Kept { from, parameters, to: self.to.clone(), message, user: self.user.clone(), encrypted: self.encrypted };
        self.forget();
        let to = kept.to.join(" ");
        let act = self.shared.act(Verb::End, &to);
        if act == Some(Act::KeepAndClose) {
            self.shared.state().mails.push(kept);
            return Err(ErrorKind::ConnectionAborted.into());
        }
        if let Then::Done = self.perform(act)? {
            return Ok(());
        }
        let count = {
            let mut state = self.shared.state();
            state.mails.push(kept);
            state.mails.len()
        };
        self.say(&format!("250 2.0.0 Kept as {count}"))
    }

    fn forget(&mut self) {
        self.mail = None;
        self.to.clear();
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        self.stream.read_until(b'\n', &mut line)?;
        let text = line.strip_suffix(b"\r\n").ok_or(ErrorKind::UnexpectedEof)?;
        let text = String::from_utf8_lossy(text).into_owned();
        self.shared.state().lines.push(text.clone());
        Ok(text)
    }

    fn say(&mut self, words: &str) -> io::Result<()> {
        let stream = self.stream.get_mut();
        stream.write_all(format!("{words}\r\n").as_bytes())?;
        stream.flush()
    }
}

/// Returns the address between < and >, and what follows.
fn path(line: &str, keyword: &str) -> Option<(String, String)> {
    let at = line.to_ascii_uppercase().find(keyword)?;
    let rest = line.get(at + keyword.len()..)?.trim_start().strip_prefix('<')?;
    let (path, parameters) = rest.rsplit_once('>')?;
    Some((path.to_owned(), parameters.trim().to_owned()))
}

fn decoded(text: &str) -> String {
    String::from_utf8_lossy(&STANDARD.decode(text).unwrap_or_default()).into_owned()
}
