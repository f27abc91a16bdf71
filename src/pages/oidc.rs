//! The way to the OpenID Connect issuer and back.

use axum::body::Body;
use axum::http::header::{HeaderValue, LOCATION, SET_COOKIE};
use axum::http::request::Parts;
use axum::http::{Response, StatusCode};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use engine::error::{Error, Result};
use engine::http::{reply, session};
use engine::site::Site;

use crate::people::ISSUER_FAILED;
use crate::people::entering::{Outcome, Visit};
use crate::people::issuer::Returned;

/// How long somebody may take to sign in at the issuer.
const PATIENCE_SECONDS: i64 = 600;
/// The longest address that the browser keeps meanwhile.
const LONGEST_TO: usize = 2000;

/// `GET /oidc/start`: leads to the issuer. The browser keeps the secret of the attempt, and where the person wanted to go.
pub async fn start(visit: &Visit, to: &str) -> Result<Response<Body>> {
    let (address, secret) = visit.begin_at_issuer().await?;
    let (site, mut response) = (&visit.app.site, Response::new(Body::empty()));
    *response.status_mut() = StatusCode::SEE_OTHER;
    reply::insert(response.headers_mut(), LOCATION, &address);
    let to = if to.len() > LONGEST_TO { "" } else { to };
    // One without an address clears that of an earlier attempt.
    let seconds = if to.is_empty() { 0 } else { PATIENCE_SECONDS };
    for (name, value, seconds) in [
        (cookie_name(site), secret, PATIENCE_SECONDS),
        (to_cookie_name(site), BASE64_URL_SAFE_NO_PAD.encode(to), seconds),
    ] {
        append_cookie(&mut response, &session::set_cookie(site, name, &value, seconds));
    }
    Ok(response)
}

/// Returns the address that the person wanted to go to when the attempt started. Whoever uses it checks that it is ours.
pub fn to(visit: &Visit, head: &Parts) -> String {
    let sealed = session::cookie_in(&head.headers, to_cookie_name(&visit.app.site)).unwrap_or_default();
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(sealed).unwrap_or_default();
    String::from_utf8(bytes).unwrap_or_default()
}

/// `GET /oidc/callback`: where the issuer leads back to. Returns whether this invitation, if the person came from one, was
/// accepted with it.
pub async fn callback(visit: &Visit, head: &Parts, invitation: &str) -> Result<(Outcome, bool)> {
    let query = head.uri.query().unwrap_or_default();
    let sent = |name: &str| {
        let found = form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == name);
        found.map(|(_, value)| value.into_owned()).unwrap_or_default()
    };
    let secret = session::secret_in(&head.headers, cookie_name(&visit.app.site)).ok_or_else(|| {
        Error::new(ISSUER_FAILED, "This sign-in was started in another browser, or it took too long. Start again.")
    })?;
    let returned = Returned { code: sent("code"), state: sent("state"), issuer: sent("iss"), error: sent("error") };
    visit.sign_in_by_issuer(secret, &returned, invitation).await
}

/// Removes what the browser kept about the attempt.
pub fn forget(site: &Site, response: &mut Response<Body>) {
    for name in [cookie_name(site), to_cookie_name(site)] {
        append_cookie(response, &session::set_cookie(site, name, "", 0));
    }
}

fn append_cookie(response: &mut Response<Body>, cookie: &str) {
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
}

fn cookie_name(site: &Site) -> &'static str {
    if site.is_secure() { "__Host-kantoor-oidc" } else { "kantoor-oidc" }
}

fn to_cookie_name(site: &Site) -> &'static str {
    if site.is_secure() { "__Host-kantoor-oidc-to" } else { "kantoor-oidc-to" }
}
