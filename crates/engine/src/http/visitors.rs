//! Visitors without a key: on public pages, with a signed URL, on the documentation. The secret is in the URL, so each
//! visitor has a rate limit, which makes guessing slow.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use axum::http::{Extensions, HeaderMap, HeaderValue};
use store::Places;
use web::Network;

use super::keys::Limiter;
use crate::error::{Code, Error, Result};

/// More visitors than a minute has; bounds the memory.
const MAX_VISITORS: usize = 10_000;

const FORWARDED: &str = "x-forwarded-for";

/// The other end of the connection of a request.
#[derive(Clone, Copy)]
struct Peer(IpAddr);

/// Records where a request comes from.
pub fn note_peer(extensions: &mut Extensions, address: SocketAddr) {
    // An IPv4 address on a dual-stack socket is the same visitor.
    extensions.insert(Peer(address.ip().to_canonical()));
}

/// The rate limiter of each address.
type Book = Mutex<HashMap<IpAddr, Limiter>>;

/// The visitors of the last minute.
pub struct Visitors {
    proxies: Vec<Network>,
    /// Requests per minute of each visitor; 0 for no limit.
    per_minute: u32,
    started: Instant,
    seen: Book,
    /// Addresses that sent invalid keys.
    guessing: Book,
    warned: AtomicBool,
}

impl Visitors {
    /// Creates the limits; `proxies` are trusted to forward the address of the client.
    pub fn new(proxies: Vec<Network>, per_minute: u32) -> Visitors {
        let started = Instant::now();
        Visitors {
            proxies,
            per_minute,
            started,
            seen: Mutex::default(),
            guessing: Mutex::default(),
            warned: AtomicBool::new(false),
        }
    }

    /// Returns the address of the client of a request, if it is known.
    pub fn client(&self, extensions: &Extensions, headers: &HeaderMap) -> Option<IpAddr> {
        extensions.get::<Peer>().map(|Peer(peer)| self.address(*peer, headers))
    }

    /// Returns the network of the client of a request, if it is known.
    pub fn visitor(&self, extensions: &Extensions, headers: &HeaderMap) -> Option<IpAddr> {
        extensions.get::<Peer>().map(|Peer(peer)| household(self.address(*peer, headers)))
    }

    /// Returns the key of the network of the client of a request, for the places that visitors share.
    pub fn key(&self, extensions: &Extensions, headers: &HeaderMap) -> i64 {
        let network = self.visitor(extensions, headers).map(|address| address.to_string());
        Places::key_of(&network.unwrap_or_default())
    }

    /// Returns the address of the client: the other end, or the one that a trusted proxy forwards.
    fn address(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut address = peer;
        // Each proxy appends the address that it received the request from. Entries before that of an untrusted proxy
        // may be forged.
        // The client may send any bytes; those that the proxy appends are an address.
        let lines = headers.get_all(FORWARDED).iter().map(HeaderValue::as_bytes);
        let said: Vec<&[u8]> = lines.flat_map(|line| line.split(|byte| *byte == b',')).collect();
        for before in said.into_iter().rev() {
            if !self.is_proxy(address) {
                break;
            }
            let Some(before) = std::str::from_utf8(before).ok().and_then(|text| read_address(text.trim())) else {
                break;
            };
            address = before;
        }
        address
    }

    /// Whether this is a trusted proxy.
    pub fn is_proxy(&self, address: IpAddr) -> bool {
        self.proxies.iter().any(|network| network.contains(address))
    }

    /// Counts a request of a visitor against the limit.
    pub fn limit(&self, extensions: &Extensions, headers: &HeaderMap) -> Result<()> {
        self.judge(extensions, headers, Visitors::take)
    }

    /// Counts an invalid key, against a separate limit.
    pub fn guess(&self, extensions: &Extensions, headers: &HeaderMap) -> Result<()> {
        self.judge(extensions, headers, Visitors::count_guess)
    }

    /// Rejects an address that sent too many invalid keys, without counting.
    pub fn may_guess(&self, extensions: &Extensions, headers: &HeaderMap) -> Result<()> {
        self.judge(extensions, headers, Visitors::check_guesses)
    }

    fn judge(&self, extensions: &Extensions, headers: &HeaderMap, verdict: Verdict) -> Result<()> {
        let (Some(Peer(peer)), true) = (extensions.get::<Peer>().copied(), self.per_minute > 0) else { return Ok(()) };
        let now = i64::try_from(self.started.elapsed().as_micros()).unwrap_or(i64::MAX);
        verdict(self, self.address(peer, headers), self.per_minute, now).map_err(|seconds| {
            self.warn_of_proxy(peer, headers);
            let message = format!("Too many requests from your address; retry in {seconds} s.");
            let mut error = Error::new(Code::TooManyRequests, message);
            error.retry_after = u32::try_from(seconds).ok();
            error
        })
    }

    /// Counts a request, or returns the seconds to wait.
    fn take(&self, address: IpAddr, per_minute: u32, now: i64) -> Result<(), i64> {
        count(&self.seen, address, per_minute, now)
    }

    /// Counts an invalid key.
    fn count_guess(&self, address: IpAddr, per_minute: u32, now: i64) -> Result<(), i64> {
        count(&self.guessing, address, per_minute, now)
    }

    /// Checks whether another key may be tried; otherwise returns the seconds to wait.
    fn check_guesses(&self, address: IpAddr, per_minute: u32, now: i64) -> Result<(), i64> {
        let guessing = self.guessing.lock().unwrap_or_else(PoisonError::into_inner);
        guessing.get(&household(address)).map_or(Ok(()), |limiter| limiter.check(per_minute, now))
    }

    /// Warns when all visitors seem to come from one proxy that is not trusted.
    fn warn_of_proxy(&self, peer: IpAddr, headers: &HeaderMap) {
        if headers.contains_key(FORWARDED) && !self.is_proxy(peer) && !self.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                address = %peer,
                "Visitors exceed the rate limit and seem to come through a proxy; add it to trusted_proxies."
            );
        }
    }
}

fn count(book: &Book, address: IpAddr, per_minute: u32, now: i64) -> Result<(), i64> {
    let mut seen = book.lock().unwrap_or_else(PoisonError::into_inner);
    if seen.len() >= MAX_VISITORS {
        seen.retain(|_, limiter| !limiter.is_whole(now));
        // With this many addresses, the table starts over.
        if seen.len() >= MAX_VISITORS {
            seen.clear();
        }
    }
    seen.entry(household(address)).or_default().take(per_minute, now).map(drop)
}

type Verdict = fn(&Visitors, IpAddr, u32, i64) -> Result<(), i64>;

/// Parses an address from a proxy header: some proxies add the port.
fn read_address(text: &str) -> Option<IpAddr> {
    let with_port = || text.parse::<SocketAddr>().map(|address| address.ip());
    text.parse().or_else(|_| with_port()).ok().map(|address: IpAddr| address.to_canonical())
}

/// Returns the network of a visitor: an IPv6 client has 2^64 addresses.
pub fn household(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(peer: &str, lines: &[&str]) -> String {
        let visitors = Visitors::new(vec!["10.0.0.0/8".parse().unwrap(), "::1".parse().unwrap()], 30);
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(FORWARDED, line.parse().unwrap());
        }
        visitors.address(peer.parse().unwrap(), &headers).to_string()
    }

    #[test]
    fn trusts_only_listed_proxies() {
        assert_eq!(address("192.0.2.1", &["203.0.113.9"]), "192.0.2.1", "not a trusted proxy");
        assert_eq!(address("10.0.0.1", &[]), "10.0.0.1", "without the header");
        assert_eq!(address("10.0.0.1", &["203.0.113.9"]), "203.0.113.9");
        assert_eq!(address("::1", &["203.0.113.9:4711"]), "203.0.113.9");
        assert_eq!(address("10.0.0.1", &["[2001:db8::7]:80"]), "2001:db8::7");
        assert_eq!(address("10.0.0.1", &["1.2.3.4, 203.0.113.9"]), "203.0.113.9", "the first may be forged");
        assert_eq!(address("10.0.0.1", &["1.2.3.4", "203.0.113.9, 10.2.2.2"]), "203.0.113.9", "two proxies");
        assert_eq!(address("10.0.0.1", &["10.9.9.9"]), "10.9.9.9", "an internal client");
        assert_eq!(address("10.0.0.1", &["203.0.113.9, unknown"]), "10.0.0.1");
    }

    #[test]
    fn bytes_of_the_client_do_not_hide_its_address() {
        let visitors = Visitors::new(vec!["10.0.0.0/8".parse().unwrap()], 30);
        let mut headers = HeaderMap::new();
        headers.append(FORWARDED, HeaderValue::from_bytes(b"\xe9\xff, 203.0.113.9").unwrap());
        assert_eq!(visitors.address("10.0.0.1".parse().unwrap(), &headers).to_string(), "203.0.113.9");
    }

    #[test]
    fn an_ipv6_network_has_one_limit() {
        let visitors = Visitors::new(Vec::new(), 30);
        let take = |address: &str, now| visitors.take(address.parse().unwrap(), 2, now);
        assert!(take("2001:db8::1", 0).is_ok() && take("2001:db8::ffff:2", 0).is_ok());
        assert_eq!(take("2001:db8::3", 0), Err(31));
        assert!(take("2001:db8:0:1::3", 0).is_ok() && take("192.0.2.1", 0).is_ok());
        assert!(take("2001:db8::3", 31_000_000).is_ok());
    }

    #[test]
    fn bounds_the_number_of_visitors() {
        let visitors = Visitors::new(Vec::new(), 30);
        let many = u32::try_from(MAX_VISITORS).unwrap();
        for number in 0..many {
            visitors.take(std::net::Ipv4Addr::from_bits(number).into(), 60, 0).unwrap();
        }
        let late = "192.0.2.1".parse().unwrap();
        visitors.take(late, 60, 10_000_000).unwrap();
        assert_eq!(visitors.seen.lock().unwrap().len(), 1);
    }
}
