//! The client.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url, redirect, retry};

use crate::network::{self, Network};
use crate::resolver::Resolver;
use crate::{Failure, Refused};

/// Where calls may go, and how long and large they may get.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Networks that may be called although they are not public.
    pub allowed: Vec<Network>,
    /// For the whole of a call, to the last byte of its answer.
    pub timeout: Duration,
    /// For looking the name up, connecting and agreeing on TLS; at most nine tenths of `timeout`.
    pub connect_timeout: Duration,
    /// Bytes of the answer's body that are read; the rest is left.
    pub answer_limit: usize,
    /// As whom we introduce ourselves.
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
pub struct Request {
    /// `Method::GET` and the like.
    pub method: Method,
    /// With http or https, without a user or password.
    pub url: String,
    /// Besides those that every call has.
    pub headers: Vec<(String, String)>,
    /// Empty for none.
    pub body: Vec<u8>,
}

impl fmt::Debug for Request {
    /// Without the address, the headers and the body: they may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("method", &self.method).finish_non_exhaustive()
    }
}

/// What came back, whatever its status: a 3xx is not followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// 200 and the like.
    pub status: u16,
    /// Names in lower case; bytes that are no UTF-8 are replaced.
    pub headers: Vec<(String, String)>,
    /// As it was sent: not unpacked.
    pub body: Vec<u8>,
    /// Whether the body was longer than the limit, so that its end is missing.
    pub cut: bool,
}

impl Answer {
    /// The first header of this name, whatever the case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// Calls the outside; made once, cheap to clone.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    allowed: Arc<[Network]>,
    answer_limit: usize,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("allowed", &self.allowed).finish_non_exhaustive()
    }
}

/// They say how far the message goes or to whom; were a user to set them, two servers could read two messages in one.
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
    /// Reads the certificates of this machine's authorities; `Err` when there are none, or for a name that no header
    /// can have.
    pub fn new(settings: Settings) -> Result<Client, String> {
        // Whoever came first chose the same; see Cargo.toml.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let allowed: Arc<[Network]> = settings.allowed.into();
        let http = reqwest::Client::builder()
            .user_agent(settings.user_agent)
            .timeout(settings.timeout)
            // Were both to end at once, a call that never connected would count as perhaps sent.
            .connect_timeout(settings.connect_timeout.min(settings.timeout * 9 / 10))
            .dns_resolver(Resolver { allowed: allowed.clone() })
            .redirect(redirect::Policy::none())
            .referer(false)
            // A proxy would connect for us, and to where we would not.
            .no_proxy()
            // Whether to try again is for the caller to say.
            .retry(retry::never())
            // A connection that is used again may be closed by the other side at that moment: "perhaps sent", for
            // nothing. It would also be bound to the runtime of the first caller.
            .pool_max_idle_per_host(0)
            .http1_only()
            // Other crates may turn these on; the limit of an answer is one of bytes that were sent.
            .no_gzip()
            .no_brotli()
            .no_deflate()
            .no_zstd()
            .build()
            .map_err(|error| format!("outgoing calls are not possible: {}", deepest(&error)))?;
        Ok(Client { http, allowed, answer_limit: settings.answer_limit })
    }

    /// The same client, which reads this many bytes of an answer.
    pub fn reading(&self, answer_limit: usize) -> Client {
        Client { answer_limit, ..self.clone() }
    }

    /// Whether [`Client::send`] would refuse this address from its looks alone, to tell whoever gives it. A name that
    /// leads to an address that is not allowed shows only when it is called.
    pub fn check_url(&self, url: &str) -> Result<(), Refused> {
        self.checked(url).map(|_| ())
    }

    /// Sends once, and gives the answer.
    pub async fn send(&self, request: Request) -> Result<Answer, Failure> {
        let url = self.checked(&request.url)?;
        let headers = headers(&request.headers)?;
        let host = url.host_str().unwrap_or_default().to_owned();
        let told = |error: reqwest::Error| Failure::told_by(&error, &host);

        let call = self.http.request(request.method, url).headers(headers).body(request.body);
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
        // The connector does not look addresses up, only names. `Url` has turned 2130706433 and 0x7f.1 into 127.0.0.1.
        let host = url.host_str().unwrap_or_default();
        if let Ok(address) = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            network::check(address, &self.allowed)
                .map_err(|why| Refused(format!("The address {address} is not allowed: {why}.")))?;
        }
        Ok(url)
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
