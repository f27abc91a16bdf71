//! The way to the OpenID Connect issuer and back.

use axum::body::Body;
use axum::http::header::{LOCATION, SET_COOKIE};
use axum::http::request::Parts;
use axum::http::{Response, StatusCode};
use engine::error::{Error, Result};
use engine::http::{reply, session};
use engine::site::Site;

use crate::people::ISSUER_FAILED;
use crate::people::entering::{Outcome, Visit};
use crate::people::issuer::Returned;

/// How long somebody may take to sign in at the issuer.
const PATIENCE_SECONDS: i64 = 600;

/// `GET /oidc/start`: leads to the issuer. The browser keeps the secret of the attempt.
pub async fn start(visit: &Visit) -> Result<Response<Body>> {
    let (address, secret) = visit.begin_at_issuer().await?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    reply::insert(response.headers_mut(), LOCATION, &address);
    reply::insert(response.headers_mut(), SET_COOKIE, &cookie(&visit.app.site, &secret, PATIENCE_SECONDS));
    Ok(response)
}

/// `GET /oidc/callback`: where the issuer leads back to.
pub async fn callback(visit: &Visit, head: &Parts) -> Result<Outcome> {
    let query = head.uri.query().unwrap_or_default();
    let sent = |name: &str| {
        let found = form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == name);
        found.map(|(_, value)| value.into_owned()).unwrap_or_default()
    };
    let secret = session::secret_in(&head.headers, cookie_name(&visit.app.site)).ok_or_else(|| {
        Error::new(ISSUER_FAILED, "This sign-in was started in another browser, or it took too long. Start again.")
    })?;
    let returned = Returned { code: sent("code"), state: sent("state"), issuer: sent("iss"), error: sent("error") };
    visit.sign_in_by_issuer(secret, &returned).await
}

/// Removes the secret of the attempt from the browser.
pub fn forget(site: &Site) -> String {
    cookie(site, "", 0)
}

fn cookie(site: &Site, secret: &str, seconds: i64) -> String {
    session::set_cookie(site, cookie_name(site), secret, seconds)
}

fn cookie_name(site: &Site) -> &'static str {
    if site.is_secure() { "__Host-kantoor-oidc" } else { "kantoor-oidc" }
}
