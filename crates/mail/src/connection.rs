//! One SMTP session (RFC 5321), command by command, so that it is known how far it came.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use rustls::{ClientConnection, StreamOwned};

use crate::tls::{self, Trust};

/// Maximum size of a reply; the connection to a server that sends more is closed.
const LONGEST_ANSWER: usize = 64 * 1024;
/// Number of bytes that must be sent within one timeout.
const CHUNK: usize = 64 * 1024;

/// A reply: its code and its lines.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    lines: Vec<String>,
}

impl Answer {
    /// Returns the code and the text on one line, truncated.
    pub(crate) fn words(&self) -> String {
        let words = self.lines.iter().flat_map(|line| line.split(|c: char| c.is_whitespace() || c.is_control()));
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        format!("{} {}", self.code, words.join(" ")).trim_end().chars().take(500).collect()
    }
}

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum CommandError {
    /// The server rejected it: 4xx or 5xx.
    Refused(Answer),
    /// There was no reply, or an invalid one.
    Lost(String),
    /// The server has no secure connection.
    Unsafe(String),
}

/// An open session.
pub(crate) struct Connection {
    stream: Stream,
    /// Received, but not yet part of a reply.
    unread: Vec<u8>,
    /// The lines of the reply to EHLO.
    offers: Vec<String>,
    timeout: Duration,
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Connection {
    /// Connects, with TLS from the first byte if `trust` is given. The greeting is still to be read.
    pub(crate) fn open(
        host: &str,
        port: u16,
        timeout: Duration,
        trust: Option<&Trust>,
    ) -> Result<Connection, CommandError> {
        let tcp = dial(host, port, timeout).map_err(|e| lost(&e, timeout))?;
        let stream = match trust {
            Some(trust) => handshake(tcp, trust, timeout)?,
            None => Stream::Plain(tcp),
        };
        Ok(Connection { stream, unread: Vec::new(), offers: Vec::new(), timeout })
    }

    pub(crate) fn greeting(&mut self) -> Result<Answer, CommandError> {
        self.answer(2, self.timeout)
    }

    /// Sends EHLO. An empty `name` means our own address, as the protocol prescribes for machines without a name.
    pub(crate) fn ehlo(&mut self, name: &str) -> Result<(), CommandError> {
        let literal = match self.tcp().local_addr().map(|address| address.ip()) {
            Ok(IpAddr::V4(ip)) => format!("[{ip}]"),
            Ok(IpAddr::V6(ip)) => format!("[IPv6:{ip}]"),
            Err(_) => "localhost".into(),
        };
        let name = if name.is_empty() { &literal } else { name };
        self.offers = self.command(&format!("EHLO {name}"), 2)?.lines;
        Ok(())
    }

    /// Returns the parameters of `keyword` in the reply to EHLO, if it is present.
    pub(crate) fn offer(&self, keyword: &str) -> Option<&str> {
        // The first line is a greeting.
        self.offers.iter().skip(1).find_map(|line| {
            let (word, rest) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
            word.eq_ignore_ascii_case(keyword).then_some(rest)
        })
    }

    /// Starts TLS. Everything that the server sent before is discarded.
    pub(crate) fn start_tls(mut self, trust: &Trust) -> Result<Connection, CommandError> {
        self.command("STARTTLS", 2)?;
        // A man in the middle could inject the reply to a later command here.
        if !self.unread.is_empty() {
            return Err(CommandError::Unsafe("it sent data after STARTTLS, before TLS began".into()));
        }
        match self.stream {
            Stream::Plain(tcp) => {
                let stream = handshake(tcp, trust, self.timeout)?;
                Ok(Connection { stream, offers: Vec::new(), ..self })
            }
            Stream::Tls(_) => Err(CommandError::Unsafe("TLS within TLS".into())),
        }
    }

    /// Sends a line; `class` is the first digit of a successful reply.
    pub(crate) fn command(&mut self, line: &str, class: u16) -> Result<Answer, CommandError> {
        self.command_within(line, class, self.timeout)
    }

    pub(crate) fn command_within(&mut self, line: &str, class: u16, wait: Duration) -> Result<Answer, CommandError> {
        self.write(format!("{line}\r\n").as_bytes()).and_then(|()| self.flush()).map_err(|e| lost(&e, self.timeout))?;
        self.answer(class, wait)
    }

    /// Sends the message without its end: until that is sent, no server accepts it.
    pub(crate) fn content(&mut self, message: &[u8]) -> Result<(), CommandError> {
        let stuffed = stuffed(message);
        let sent = stuffed.chunks(CHUNK).try_for_each(|chunk| self.write(chunk)).and_then(|()| self.flush());
        sent.map_err(|e| {
            // A server that closes the connection halfway may have sent the reason.
            match self.answer(2, Duration::from_secs(1)) {
                Err(refused @ CommandError::Refused(_)) => refused,
                _ => lost(&e, self.timeout),
            }
        })
    }

    /// Sends the end of the message. If this is `Lost`, the server may have accepted the message or not.
    pub(crate) fn end(&mut self, wait: Duration) -> Result<Answer, CommandError> {
        self.command_within(".", 2, wait)
    }

    /// Sends QUIT, with a short timeout.
    pub(crate) fn quit(mut self) {
        // The outcome does not matter: all mail has its reply.
        let _ = self.tcp().set_write_timeout(Some(Duration::from_secs(1)));
        let _ = self.command_within("QUIT", 2, Duration::from_secs(1));
        if let Stream::Tls(tls) = &mut self.stream {
            tls.conn.send_close_notify();
            let _ = tls.flush();
        }
    }

    fn answer(&mut self, class: u16, wait: Duration) -> Result<Answer, CommandError> {
        let answer = self.read_answer(Instant::now() + wait).map_err(|e| lost(&e, wait))?;
        match answer.code / 100 {
            digit if digit == class => Ok(answer),
            4 | 5 => Err(CommandError::Refused(answer)),
            _ => Err(CommandError::Lost(format!("it sent an unexpected reply: {}", answer.words()))),
        }
    }

    fn read_answer(&mut self, deadline: Instant) -> io::Result<Answer> {
        let mut lines = Vec::new();
        let mut size = 0;
        loop {
            let line = self.read_line(deadline)?;
            size += line.len();
            let strange = || io::Error::other(format!("it is not an SMTP server: {:.80}", line.escape_debug()));
            let (code, rest) = line.split_at_checked(3).ok_or_else(strange)?;
            let code: u16 = code.parse().ok().filter(|code| (200..600).contains(code)).ok_or_else(strange)?;
            if size > LONGEST_ANSWER {
                return Err(io::Error::other("its reply is too long"));
            }
            match rest.as_bytes().first() {
                Some(b'-') => lines.push(rest[1..].to_owned()),
                None | Some(b' ') => {
                    lines.push(rest.trim().to_owned());
                    return Ok(Answer { code, lines });
                }
                Some(_) => return Err(strange()),
            }
        }
    }

    fn read_line(&mut self, deadline: Instant) -> io::Result<String> {
        loop {
            if let Some(end) = self.unread.iter().position(|&b| b == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            if self.unread.len() > LONGEST_ANSWER {
                return Err(io::Error::other("its reply is too long"));
            }
            self.tcp().set_read_timeout(Some(left(deadline)?))?;
            let mut chunk = [0; 4096];
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(n) => self.unread.extend_from_slice(&chunk[..n]),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }

    fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let deadline = Instant::now() + self.timeout;
        while !bytes.is_empty() {
            self.tcp().set_write_timeout(Some(left(deadline)?))?;
            match self.stream.write(bytes) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(n) => bytes = &bytes[n..],
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// TLS may buffer bytes, and errors, until here.
    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }

    fn tcp(&self) -> &TcpStream {
        match &self.stream {
            Stream::Plain(tcp) => tcp,
            Stream::Tls(tls) => &tls.sock,
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(tcp) => tcp.read(buf),
            Stream::Tls(tls) => tls.read(buf),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(tcp) => tcp.write(buf),
            Stream::Tls(tls) => tls.write(buf),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(tcp) => tcp.flush(),
            Stream::Tls(tls) => tls.flush(),
        }
    }
}

fn dial(host: &str, port: u16, timeout: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::other("its host name has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(tcp) => {
                // Commands are short, and each waits for its reply.
                tcp.set_nodelay(true)?;
                return Ok(tcp);
            }
            Err(e) => last = e,
        }
    }
    Err(last)
}

fn handshake(mut tcp: TcpStream, trust: &Trust, timeout: Duration) -> Result<Stream, CommandError> {
    let not_safe = |e: rustls::Error| CommandError::Unsafe(tls::words(&e));
    let mut tls = ClientConnection::new(trust.config.clone(), trust.name.clone()).map_err(not_safe)?;
    let deadline = Instant::now() + timeout;
    while tls.is_handshaking() {
        let step = left(deadline).and_then(|left| {
            tcp.set_read_timeout(Some(left))?;
            tcp.set_write_timeout(Some(left))?;
            tls.complete_io(&mut tcp)
        });
        step.map_err(|e| match e.kind() {
            ErrorKind::InvalidData => {
                let reason = e.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
                CommandError::Unsafe(reason.map_or_else(|| e.to_string(), tls::words))
            }
            _ => lost(&e, timeout),
        })?;
    }
    Ok(Stream::Tls(Box::new(StreamOwned::new(tls, tcp))))
}

/// Doubles a dot at the start of a line, and terminates the last line (the final dot needs its own line).
fn stuffed(message: &[u8]) -> Vec<u8> {
    let mut stuffed = Vec::with_capacity(message.len() + message.len() / 64 + 2);
    for line in message.split_inclusive(|&b| b == b'\n') {
        if line.first() == Some(&b'.') {
            stuffed.push(b'.');
        }
        stuffed.extend_from_slice(line);
    }
    if !stuffed.is_empty() && !stuffed.ends_with(b"\r\n") {
        stuffed.extend_from_slice(b"\r\n");
    }
    stuffed
}

fn left(deadline: Instant) -> io::Result<Duration> {
    match deadline.saturating_duration_since(Instant::now()) {
        // A socket does not accept a timeout of zero.
        Duration::ZERO => Err(ErrorKind::TimedOut.into()),
        left => Ok(left),
    }
}

/// Describes a connection error, for people.
fn lost(error: &io::Error, waited: Duration) -> CommandError {
    CommandError::Lost(match error.kind() {
        ErrorKind::TimedOut | ErrorKind::WouldBlock => format!("it did not respond within {waited:?}"),
        ErrorKind::ConnectionRefused => "it cannot be reached: connection refused".into(),
        ErrorKind::UnexpectedEof
        | ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::BrokenPipe
        | ErrorKind::WriteZero
        | ErrorKind::NotConnected => "it closed the connection".into(),
        _ => error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::stuffed;

    #[test]
    fn dots_at_the_start_of_a_line_are_doubled() {
        assert_eq!(stuffed(b".\r\n..a\r\nb.\r\n.c"), b"..\r\n...a\r\nb.\r\n..c\r\n");
        assert_eq!(stuffed(b""), b"");
    }
}
