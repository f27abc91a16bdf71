//! Authentication by API key, by session or by signed URL.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method};

use super::keys::{Left, Reported};
use super::{keys, session};
use crate::accounts;
use crate::app::App;
use crate::call::Query;
use crate::error::{Code, Error, Result};
use crate::registry::routes;
use crate::resource::Returns;

/// Authenticates a signed URL, which gives access to a single content.
pub async fn signed(app: &Arc<App>, head: &Parts) -> Result<Option<Arc<keys::AuthenticatedKey>>> {
    let query = head.uri.query().unwrap_or_default();
    if head.headers.contains_key(AUTHORIZATION) || !query.contains("signature=") {
        return Ok(None);
    }
    app.visitors.limit(&head.extensions, &head.headers)?;
    let returns = routes().at(head.uri.path()).ok();
    let returns = returns.is_some_and(|found| found.value.iter().any(|route| route.returns == Returns::Content));
    let reads = matches!(head.method, Method::GET | Method::HEAD);
    let account = app.site.opens(head.uri.path(), &Query::parse(query)?, app.clock.now());
    let Some(account) = account.filter(|_| returns && reads) else {
        return Err(Error::new(Code::Unauthorized, "This URL is invalid or has expired; request a new one."));
    };
    let account = app.store.read(move |tx| accounts::Account::numbered(tx, account)).await?;
    account.check_open()?;
    Ok(Some(Arc::new(keys::AuthenticatedKey::signed(account))))
}

/// Authenticates the key of a request. A key that was not used recently costs a database lookup, so an address that
/// sent many invalid keys is not allowed to try new ones for a while.
pub async fn known(app: &Arc<App>, head: &Parts) -> Result<Arc<keys::AuthenticatedKey>> {
    let secret = keys::Secret::from(secret(&head.headers)?);
    let is_new = !app.keys.has_seen(secret.hash);
    if is_new {
        app.visitors.may_guess(&head.extensions, &head.headers)?;
    }
    let address = || app.visitors.client(&head.extensions, &head.headers);
    let found = app.keys.caller(&app.store, &app.clock, secret, address).await;
    let is_guess = match &found {
        Ok(_) => false,
        // From an address that it does not allow. It must not use up the rate limit of the key.
        Err(error) if error.code == Code::Forbidden => true,
        // It has no rate limit of its own.
        Err(error) if error.code == Code::AccountClosed => {
            app.visitors.limit(&head.extensions, &head.headers)?;
            false
        }
        Err(error) => is_new && error.code == Code::Unauthorized && accounts::is_well_formed(secret.text),
    };
    if is_guess {
        app.visitors.guess(&head.extensions, &head.headers)?;
    }
    found
}

/// Authenticates the session of a request. As with keys, an address that sent many invalid ones has to wait.
pub async fn in_session(app: &Arc<App>, head: &Parts) -> Result<Arc<keys::AuthenticatedKey>> {
    let secret = keys::Secret::from(session::secret(&app.site, &head.headers)?);
    if !app.sessions.has_seen(secret.hash) {
        app.visitors.may_guess(&head.extensions, &head.headers)?;
    }
    let found = app.sessions.session(&app.store, &app.clock, secret).await;
    match &found {
        Ok(_) => {}
        Err(error) if error.code == Code::Unauthorized => app.visitors.guess(&head.extensions, &head.headers)?,
        // Such as one without the second factor that its account requires: it has no rate limit of its own.
        Err(_) => app.visitors.limit(&head.extensions, &head.headers)?,
    }
    found
}

/// Counts a request against the limit of its key, and that of its account: many keys are no way around the first. `reported` is the
/// limit that leaves least. Sessions have limits of the same size of their own, so keys lock nobody out of the console.
pub fn limit(app: &App, caller: &keys::AuthenticatedKey, reported: &mut Option<Reported>) -> Result<()> {
    let own = app.config.rate_limit_per_minute;
    let all = own.saturating_mul(app.config.account_limit_keys);
    let (one, many) = match caller.key.session.is_empty() {
        true => ("Your key", "The keys of your account together"),
        false => ("Your session", "The sessions of your account together"),
    };
    // A request that the first rejects does not count against the second: a key that asks too often leaves room for others.
    for (name, limiter, limit, who) in [("key", &caller.limiter, own, one), ("account", &caller.shared, all, many)] {
        if limit == 0 {
            continue;
        }
        let taken = limiter.take(limit, app.microseconds());
        let left = taken.unwrap_or_else(|seconds| Left { remaining: 0, reset: seconds });
        if taken.is_err() || reported.is_none_or(|tightest| left.remaining < tightest.left.remaining) {
            *reported = Some(Reported { name, limit, left });
        }
        if let Err(seconds) = taken {
            let message = format!("{who} may make {limit} requests per minute; retry in {seconds} s.");
            let mut error = Error::new(Code::TooManyRequests, message);
            error.retry_after = u32::try_from(seconds).ok();
            return Err(error);
        }
    }
    Ok(())
}

/// Authenticates the caller of a stream again, at this address: its key, or its session if it has no key.
pub async fn authenticate(
    app: &Arc<App>,
    headers: &HeaderMap,
    address: Option<IpAddr>,
) -> Result<Arc<keys::AuthenticatedKey>> {
    if headers.contains_key(AUTHORIZATION) {
        return app.keys.caller(&app.store, &app.clock, secret(headers)?.into(), || address).await;
    }
    app.sessions.session(&app.store, &app.clock, session::secret(&app.site, headers)?.into()).await
}

/// Returns the key in the headers of a request.
fn secret(headers: &HeaderMap) -> Result<&str> {
    let missing = || Error::new(Code::Unauthorized, "Send your API key in the header 'Authorization: Bearer kt_…'.");
    let header = headers.get(AUTHORIZATION).ok_or_else(missing)?.to_str().map_err(|_| missing())?;
    let (scheme, secret) = header.split_once(' ').ok_or_else(missing)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(missing());
    }
    Ok(secret.trim())
}
