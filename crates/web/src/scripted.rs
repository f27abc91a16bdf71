//! An HTTP server on loopback that responds as scripted and stores the requests. For tests.
//!
//! ```
//! use web::scripted::{Reply, Scripted};
//!
//! # fn main() -> std::io::Result<()> {
//! let server = Scripted::start(|received| match received.path.as_str() {
//!     "/pay" => Reply::json(201, r#"{"id":"1"}"#),
//!     _ => Reply::new(404),
//! })?;
//! let address = server.url("/pay");
//! # let _ = address;
//! assert!(server.received().is_empty());
//! # Ok(())
//! # }
//! ```

use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::Settings;

/// A received request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// `GET` and the like.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// The headers, with names as sent.
    pub headers: Vec<(String, String)>,
    /// The body; empty for none.
    pub body: Vec<u8>,
}

impl Received {
    /// Returns the first header with this name, ignoring case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Returns the body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// What happens to the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// The response is sent completely.
    Answered,
    /// It is closed without a response.
    CutOff,
    /// It is closed in the middle of the response body.
    CutHalf,
}

/// A scripted response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// 200 and the like.
    pub status: u16,
    /// Headers besides the length.
    pub headers: Vec<(String, String)>,
    /// The body; empty for none.
    pub body: Vec<u8>,
    /// Delay before the first byte.
    pub delay: Duration,
    /// What happens to the connection.
    pub then: Then,
}

impl Reply {
    /// Creates a response without a body.
    pub fn new(status: u16) -> Reply {
        Reply { status, headers: Vec::new(), body: Vec::new(), delay: Duration::ZERO, then: Then::Answered }
    }

    /// Creates a response with JSON.
    pub fn json(status: u16, body: impl Into<Vec<u8>>) -> Reply {
        Reply { body: body.into(), ..Reply::new(status) }.header("Content-Type", "application/json")
    }

    /// Adds a header.
    pub fn header(mut self, name: &str, value: &str) -> Reply {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the delay.
    pub fn after(self, delay: Duration) -> Reply {
        Reply { delay, ..self }
    }

    /// Sets what happens to the connection.
    pub fn then(self, then: Then) -> Reply {
        Reply { then, ..self }
    }
}

/// The server. It stops when it is dropped.
pub struct Scripted {
    address: SocketAddr,
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
}

struct Shared {
    handler: Box<dyn Fn(&Received) -> Reply + Send + Sync>,
    received: Mutex<Vec<Received>>,
    open: Mutex<Vec<TcpStream>>,
    stopped: AtomicBool,
}

impl Scripted {
    /// Starts a server that calls `handler` for each request, concurrently from several threads.
    pub fn start(handler: impl Fn(&Received) -> Reply + Send + Sync + 'static) -> io::Result<Scripted> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            handler: Box::new(handler),
            received: Mutex::default(),
            open: Mutex::default(),
            stopped: AtomicBool::new(false),
        });
        let accepting = shared.clone();
        let listener = thread::Builder::new().name("scripted".into()).spawn(move || accepting.accept(&listener))?;
        Ok(Scripted { address, shared, listener: Some(listener) })
    }

    /// Returns its address on 127.0.0.1.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL of a path, which starts with `/`.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns the requests so far.
    pub fn received(&self) -> Vec<Received> {
        locked(&self.shared.received).clone()
    }

    /// Returns client settings that can reach it, with short timeouts.
    pub fn settings() -> Settings {
        Settings {
            allowed: "127.0.0.1".parse().into_iter().collect(),
            timeout: Duration::from_secs(5),
            connect_timeout: Duration::from_secs(5),
            ..Settings::default()
        }
    }
}

impl Drop for Scripted {
    /// Afterwards the port refuses connections.
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        // Wakes the accepting thread; if that fails, it has already stopped.
        let _ = TcpStream::connect(self.address);
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
        for stream in locked(&self.shared.open).drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Shared {
    fn accept(self: Arc<Shared>, listener: &TcpListener) {
        for stream in listener.incoming() {
            if self.stopped.load(Ordering::SeqCst) {
                return;
            }
            let Ok(stream) = stream else { continue };
            locked(&self.open).extend(stream.try_clone());
            let shared = self.clone();
            thread::spawn(move || {
                // Tests observe the client, so a broken connection is not an error here.
                let _ = shared.talk(&stream);
                let _ = stream.shutdown(Shutdown::Both);
            });
        }
    }

    /// Handles one request; the connection is closed after it.
    fn talk(&self, mut stream: &TcpStream) -> io::Result<()> {
        let received = read(stream)?;
        locked(&self.received).push(received.clone());
        let reply = (self.handler)(&received);
        thread::sleep(reply.delay);
        if reply.then == Then::CutOff {
            return Ok(());
        }
        let mut head = format!("HTTP/1.1 {} Scripted\r\nConnection: close\r\n", reply.status);
        if reply.status != 204 && reply.status != 304 {
            head += &format!("Content-Length: {}\r\n", reply.body.len());
        }
        for (name, value) in &reply.headers {
            head += &format!("{name}: {value}\r\n");
        }
        let whole = if reply.then == Then::CutHalf { reply.body.len() / 2 } else { reply.body.len() };
        stream.write_all(format!("{head}\r\n").as_bytes())?;
        stream.write_all(reply.body.get(..whole).unwrap_or_default())?;
        stream.flush()
    }
}

fn read(stream: &TcpStream) -> io::Result<Received> {
    let mut reader = BufReader::new(stream);
    let mut line = || -> io::Result<String> {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.strip_suffix("\r\n").ok_or(ErrorKind::UnexpectedEof)?;
        Ok(line.to_owned())
    };
    let first = line()?;
    let [method, path, _] = first.split(' ').collect::<Vec<_>>()[..] else { return Err(ErrorKind::InvalidData.into()) };
    let mut headers = Vec::new();
    loop {
        let line = line()?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    let mut received = Received { method: method.into(), path: path.into(), headers, body: Vec::new() };
    // Chunked bodies are not supported: no client here sends them.
    let length = received.header("content-length").map_or(Ok(0), str::parse).map_err(io::Error::other)?;
    received.body = vec![0; length];
    reader.read_exact(&mut received.body)?;
    Ok(received)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
