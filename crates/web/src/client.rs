//! The client.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url, redirect, retry};
use tracing::Instrument as _;
use tracing::field::Empty;

use crate::network::{self, Network};
use crate::resolver::Resolver;
use crate::{Failure, Refused};

/// Limits on outgoing calls: networks, time and size.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Networks that may be called although they are not public.
    pub allowed: Vec<Network>,
    /// Timeout of a whole call, to the last byte of its response.
    pub timeout: Duration,
    /// Timeout of the name lookup, connection and TLS handshake; at most nine tenths of `timeout`.
    pub connect_timeout: Duration,
    /// Number of bytes to read of a response body; the rest is discarded.
    pub answer_limit: usize,
    /// The User-Agent.
    pub user_agent: String,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            allowed: Vec::new(),
            timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(10),
            answer_limit: 1024 * 1024,
            user_agent: "kantoor".into(),
        }
    }
}

/// A call.
#[derive(Clone)]
pub struct OutgoingRequest {
    /// `Method::GET` and the like.
    pub method: Method,
    /// The URL, with http or https, without a user or password.
    pub url: String,
    /// Additional headers.
    pub headers: Vec<(String, String)>,
    /// The body; empty for none.
    pub body: Vec<u8>,
}

impl fmt::Debug for OutgoingRequest {
    /// Omits the URL, the headers and the body: they may contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutgoingRequest").field("method", &self.method).finish_non_exhaustive()
    }
}

/// A response of any status: redirects are not followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// 200 and the like.
    pub status: u16,
    /// The headers, with lower-case names; invalid UTF-8 is replaced.
    pub headers: Vec<(String, String)>,
    /// The body as sent: not decompressed.
    pub body: Vec<u8>,
    /// Whether the body exceeded the limit and was truncated.
    pub cut: bool,
}

impl Answer {
    /// Returns the first header with this name, ignoring case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// The client for outgoing calls; created once, cheap to clone.
#[derive(Clone)]
pub struct Client {
    http: Arc<Http>,
    allowed: Arc<[Network]>,
    answer_limit: usize,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("allowed", &self.allowed).finish_non_exhaustive()
    }
}

/// These determine the length and the destination of a message; set by a user, two servers could see two different
/// messages.
const OURS: [&str; 11] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

impl Client {
    /// Creates a client. `Err` for an invalid User-Agent.
    pub fn new(settings: Settings) -> Result<Client, String> {
        HeaderValue::from_str(&settings.user_agent).map_err(|error| error.to_string())?;
        let (allowed, answer_limit): (Arc<[Network]>, _) = (settings.allowed.clone().into(), settings.answer_limit);
        let http = Http { settings, allowed: allowed.clone(), opened: OnceLock::new() };
        Ok(Client { http: Arc::new(http), allowed, answer_limit })
    }

    /// Reads the certificates of this machine's authorities, which takes a moment, before the first call does.
    pub fn prepare(&self) {
        // The first call says why there can be none.
        let _ = self.http.open();
    }

    /// Returns a client that reads this many bytes of a response.
    pub fn reading(&self, answer_limit: usize) -> Client {
        Client { answer_limit, ..self.clone() }
    }

    /// Checks whether [`Client::send`] would reject this URL without calling it. A name that resolves to a forbidden
    /// address is only detected when it is called.
    pub fn check_url(&self, url: &str) -> Result<(), Refused> {
        self.checked(url).map(|_| ())
    }

    /// Sends a request once, and returns the response.
    pub async fn send(&self, request: OutgoingRequest) -> Result<Answer, Failure> {
        let url = self.checked(&request.url)?;
        // The host without the path, which may have a secret.
        let span = tracing::info_span!(
            target: "kantoor::trace", "call", otel.kind = "client", otel.name = request.method.as_str(),
            otel.status_code = Empty, http.request.method = request.method.as_str(),
            server.address = url.host_str().unwrap_or_default(), http.response.status_code = Empty,
        );
        let done = self.call(url, request).instrument(span.clone()).await;
        match &done {
            Ok(answer) => span.record("http.response.status_code", answer.status),
            Err(_) => span.record("otel.status_code", "ERROR"),
        };
        done
    }

    async fn call(&self, url: Url, request: OutgoingRequest) -> Result<Answer, Failure> {
        let headers = headers(&request.headers)?;
        let host = url.host_str().unwrap_or_default().to_owned();
        let told = |error: reqwest::Error| Failure::told_by(&error, &host);

        let http = self.http.clone();
        let opened = match http.opened.get() {
            Some(opened) => opened.clone(),
            None => {
                tokio::task::spawn_blocking(move || http.open()).await.map_err(|e| Failure::NotSent(e.to_string()))?
            }
        };
        let call = opened.map_err(Failure::NotSent)?.request(request.method, url).headers(headers).body(request.body);
        let mut response = call.send().await.map_err(told)?;
        let mut answer = Answer {
            status: response.status().as_u16(),
            headers: response.headers().iter().map(text).collect(),
            body: Vec::new(),
            cut: false,
        };
        while let Some(piece) = response.chunk().await.map_err(told)? {
            let room = self.answer_limit - answer.body.len();
            answer.body.extend_from_slice(piece.get(..room).unwrap_or(&piece));
            if piece.len() > room {
                answer.cut = true;
                break;
            }
        }
        Ok(answer)
    }

    fn checked(&self, url: &str) -> Result<Url, Refused> {
        let refused = |why: &str| Refused(why.to_owned());
        let url = Url::parse(url).map_err(|_| refused("This is not a URL such as https://example.com/path."))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Refused(format!("Only https and http URLs can be called, not {}.", url.scheme())));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refused("The URL must not contain a user name or password."));
        }
        // The connector only looks up names, not addresses. `Url` has turned 2130706433 and 0x7f.1 into 127.0.0.1.
        let host = url.host_str().unwrap_or_default();
        if let Ok(address) = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            network::check(address, &self.allowed)
                .map_err(|why| Refused(format!("The address {address} is not allowed: {why}.")))?;
        }
        Ok(url)
    }
}

/// The connections of a client, which need the certificates of this machine's authorities. Reading those takes a tenth of a second,
/// and most commands call nobody.
struct Http {
    settings: Settings,
    allowed: Arc<[Network]>,
    opened: OnceLock<Result<reqwest::Client, String>>,
}

impl Http {
    fn open(&self) -> Result<reqwest::Client, String> {
        self.opened
            .get_or_init(|| self.build().map_err(|error| format!("No calls are possible: {}.", deepest(&error))))
            .clone()
    }

    /// Without any certificates, calls over TLS fail. A machine without them can do everything else.
    fn build(&self) -> reqwest::Result<reqwest::Client> {
        // An earlier caller installed the same provider; see Cargo.toml.
        let _ = rustls::crypto::ring::default_provider().install_default();
        self.builder().build().or_else(|error| {
            let http = self.builder().tls_certs_only([]).build()?;
            tracing::warn!(
                cause = deepest(&error),
                "Calls over TLS fail: install the package ca-certificates and restart."
            );
            Ok(http)
        })
    }

    fn builder(&self) -> reqwest::ClientBuilder {
        let Settings { timeout, connect_timeout, user_agent, .. } = &self.settings;
        reqwest::Client::builder()
            .user_agent(user_agent.as_str())
            .timeout(*timeout)
            // If both ended at the same time, a call that never connected would count as possibly sent.
            .connect_timeout((*connect_timeout).min(*timeout * 9 / 10))
            .dns_resolver(Resolver { allowed: self.allowed.clone() })
            .redirect(redirect::Policy::none())
            .referer(false)
            // A proxy would connect on our behalf, to addresses that we do not allow.
            .no_proxy()
            // The caller decides about retries.
            .retry(retry::never())
            // The other side may close a reused connection at that moment: "possibly sent", for nothing. It would also
            // be bound to the runtime of the first caller.
            .pool_max_idle_per_host(0)
            .http1_only()
            // Other crates may enable these; the limit of a response applies to the bytes that were sent.
            .no_gzip()
            .no_brotli()
            .no_deflate()
            .no_zstd()
    }
}

fn headers(given: &[(String, String)]) -> Result<HeaderMap, Refused> {
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        let parsed = HeaderName::from_bytes(name.as_bytes()).ok().zip(HeaderValue::from_bytes(value.as_bytes()).ok());
        let Some((name, value)) = parsed else {
            return Err(Refused(format!("The header “{}” cannot be sent.", name.escape_default())));
        };
        if OURS.contains(&name.as_str()) {
            return Err(Refused(format!("The header “{name}” cannot be set.")));
        }
        headers.try_append(name, value).map_err(|_| Refused("There are too many headers.".into()))?;
    }
    Ok(headers)
}

fn text((name, value): (&HeaderName, &HeaderValue)) -> (String, String) {
    (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
}

fn deepest(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), deepest)
}
