//! Requests of people who have signed in. Their session is in a cookie, which browsers also send with requests that
//! another site causes, so a write must come from our own pages.

use axum::http::Request;
use axum::http::header::{COOKIE, HOST, HeaderMap, ORIGIN};
use axum::http::request::Parts;
use axum::http::uri::{PathAndQuery, Uri};

use crate::error::{Code, Error, Result};
use crate::registry::registry;
use crate::site::Site;

/// The header with the id of the user for whom the page that sends a request was made.
const USER: &str = "x-kantoor-user";
/// The parameter that stands for it where a browser sends no headers of ours: in the address of an event stream.
const USER_PARAMETER: &str = "for_user=";

/// Marks a request whose caller is a session.
#[derive(Clone)]
struct InSession {
    /// The user for whom the page was made, from the address.
    user: Option<String>,
}

/// Whether the request is for the routes of the API under the prefix of sessions. If so, it is changed into a request
/// for the route, with a session as its caller.
pub fn enters<B>(request: &mut Request<B>) -> bool {
    let Some(sessions) = registry().sessions else { return false };
    let whole = request.uri().path_and_query().map_or("", PathAndQuery::as_str);
    let Some(rest) = whole.strip_prefix(sessions.prefix) else { return false };
    if rest != "/v1" && !rest.starts_with("/v1/") && !rest.starts_with("/v1?") {
        return false;
    }
    let (rest, user) = without_user(rest);
    let Ok(route) = rest.parse::<PathAndQuery>() else { return false };
    // A request of HTTP/2 names its host here.
    let host = request.uri().authority().cloned();
    let mut parts = axum::http::uri::Parts::default();
    parts.path_and_query = Some(route);
    if let (Some(host), Some(scheme)) = (host, request.uri().scheme().cloned()) {
        (parts.authority, parts.scheme) = (Some(host), Some(scheme));
    }
    let Ok(uri) = Uri::from_parts(parts) else { return false };
    *request.uri_mut() = uri;
    request.extensions_mut().insert(InSession { user });
    true
}

/// Takes the user for whom a page was made out of the address of a request: routes know nothing about it.
fn without_user(address: &str) -> (String, Option<String>) {
    let Some((path, query)) = address.split_once('?').filter(|(_, query)| query.contains(USER_PARAMETER)) else {
        return (address.to_string(), None);
    };
    let (own, others): (Vec<&str>, Vec<&str>) = query.split('&').partition(|pair| pair.starts_with(USER_PARAMETER));
    let user = own.first().and_then(|pair| pair.strip_prefix(USER_PARAMETER)).map(str::to_string);
    (if others.is_empty() { path.to_string() } else { format!("{path}?{}", others.join("&")) }, user)
}

/// Rejects a request of a page that was made for another user: its person switched accounts, or somebody else signed in, in
/// another tab. The cookie is the same in all of them, so a form would be saved in the wrong account.
pub fn check_user(head: &Parts, user: &str) -> Result<()> {
    let told = head.headers.get(USER).map(|told| told.as_bytes());
    let marked = head.extensions.get::<InSession>().and_then(|marked| marked.user.as_deref());
    if told.or(marked.map(str::as_bytes)).is_none_or(|told| told == user.as_bytes()) {
        return Ok(());
    }
    let message = "This page belongs to another account or user than the one that is signed in now. Nothing was done. Switch back, or load the page again.";
    Err(Error::new(Code::UserChanged, message))
}

/// Whether the caller of a request is a session.
pub fn is_caller(head: &Parts) -> bool {
    head.extensions.get::<InSession>().is_some()
}

/// Returns the name of the cookie. Browsers accept the prefix only with `Secure`, which needs HTTPS.
pub fn cookie_name(site: &Site) -> &'static str {
    if site.is_secure() { "__Host-kantoor" } else { "kantoor" }
}

/// Returns the `Set-Cookie` header of a session, which the browser keeps for this many seconds; 0 removes it.
pub fn cookie(site: &Site, secret: &str, seconds: i64) -> String {
    set_cookie(site, cookie_name(site), secret, seconds)
}

/// Returns the `Set-Cookie` header of a secret that no script can read.
pub fn set_cookie(site: &Site, name: &str, secret: &str, seconds: i64) -> String {
    let secure = if site.is_secure() { "; Secure" } else { "" };
    format!("{name}={secret}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}")
}

/// Returns the secret of the session in the headers of a request.
pub fn secret<'h>(site: &Site, headers: &'h HeaderMap) -> Result<&'h str> {
    secret_in(headers, cookie_name(site)).ok_or_else(|| Error::new(Code::Unauthorized, "Sign in first."))
}

/// Returns the secret in the cookie with this name: 32 bytes in hexadecimal.
pub fn secret_in<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    cookie_in(headers, name).filter(|secret| secret.len() == 64 && secret.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Returns the value of the cookie with this name.
pub fn cookie_in<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(own, _)| *own == name).map(|(_, value)| value)
}

/// Rejects a request that may come from another site.
pub fn check_origin(head: &Parts, site: &Site) -> Result<()> {
    if is_same_origin(head, site) {
        return Ok(());
    }
    let message = "This request does not come from a page of this server. Send it with 'Sec-Fetch-Site: same-origin' or with our 'Origin'. Behind a proxy, set public_url to the address in the browser.";
    Err(Error::new(Code::Forbidden, message))
}

fn is_same_origin(head: &Parts, site: &Site) -> bool {
    let told = |name: &str| head.headers.get(name).and_then(|told| told.to_str().ok());
    let from = told("sec-fetch-site");
    if from.is_some_and(|from| from != "same-origin") {
        return false;
    }
    // A browser that sends both names the same site in both. It hides the origin if a page has no referrer.
    let origin = match (from, told(ORIGIN.as_str())) {
        (Some(_), None | Some("null")) => return true,
        (None, None) => return false,
        (_, Some(origin)) => origin,
    };
    is_own_origin(head, site, origin)
}

/// Whether an origin is ours: that of our URL, or of the host that the request is for. The scheme of another host than that of
/// our URL is not known, since a proxy may serve it with HTTPS; a browser that sends `Sec-Fetch-Site` has compared it.
pub fn is_own_origin(head: &Parts, site: &Site, origin: &str) -> bool {
    let own = web::origin(&site.address("/"));
    if own.as_deref() == Some(origin) {
        return true;
    }
    let told = head.headers.get(HOST).and_then(|told| told.to_str().ok());
    let host = head.uri.authority().map(|host| host.as_str()).or(told);
    let own_host = own.as_deref().and_then(|own| own.split_once("://")).map(|(_, host)| host);
    let is_compared = head.headers.contains_key("sec-fetch-site");
    match origin.split_once("://") {
        Some(("http" | "https", from)) => Some(from) == host && (is_compared || host != own_host),
        _ => false,
    }
}
