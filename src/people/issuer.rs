//! Signing in at the OpenID Connect issuer of the server's settings. The issuer decides how people prove who they are; here,
//! its verified e-mail address leads to a user who exists already.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use engine::accounts::Account;
use engine::app::App;
use engine::config::Config;
use engine::error::{Code, Error, Result};
use engine::records;
use engine::services::Services;
use openid::{Attempt, Claims, Discovery, Expected, Keys, Refused};
use store::Tx;
use web::{Method, OutgoingRequest};

use crate::people::entering::{Outcome, Proof, Visit, accounts_of, activate, suspended, with_accounts};
use crate::people::joining::{Removed, vouch};
use crate::people::person::Person;
use crate::people::status::Status;
use crate::people::token::{self, Purpose, Token};
use crate::people::user::{User, invitations, of_any_status};
use crate::people::{ISSUER_FAILED, NO_SUCH_USER, throttle};

/// The path that the issuer leads back to.
pub const CALLBACK: &str = "/oidc/callback";
/// How long the description of the issuer and its keys are used before they are requested again.
const FRESH: Duration = Duration::from_secs(600);
/// How often the keys are requested if a token does not fit them: the issuer may have new ones.
const RETRY: Duration = Duration::from_secs(10);

/// The last description of the issuer, and its keys. They are replaced when a request succeeds; no lock is held meanwhile.
#[derive(Default)]
pub struct Issuer {
    discovery: Known<Discovery>,
    keys: Known<Keys>,
}

/// What the issuer said, and when.
type Known<T> = Mutex<Option<(Instant, Arc<T>)>>;

/// Returns what the issuer said, if that is not longer ago than this.
fn known<T>(known: &Known<T>, at_most: Duration) -> Option<Arc<T>> {
    let known = known.lock().unwrap_or_else(PoisonError::into_inner);
    known.as_ref().filter(|(at, _)| at.elapsed() < at_most).map(|(_, known)| known.clone())
}

fn remember<T>(known: &Known<T>, new: T) -> Arc<T> {
    let new = Arc::new(new);
    *known.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), new.clone()));
    new
}

/// Opens the connection to the issuer.
pub fn open(_: &Config, _: &str, services: &mut Services) -> Result<()> {
    services.add(Issuer::default());
    Ok(())
}

/// Returns the name of the issuer for people, if there is one.
pub fn name(config: &Config) -> Option<&str> {
    let named = if config.oidc_name.is_empty() { "OpenID Connect" } else { &config.oidc_name };
    (!config.oidc_issuer.is_empty()).then_some(named)
}

/// What the issuer sends back with the browser.
pub struct Returned {
    /// The code, which is exchanged for tokens.
    pub code: String,
    /// The state of the attempt.
    pub state: String,
    /// Who sent it, if the issuer says so.
    pub issuer: String,
    /// Why there is no code.
    pub error: String,
}

impl Visit {
    /// Returns where the person signs in at the issuer, with the secret of this attempt for the browser.
    pub async fn begin_at_issuer(&self) -> Result<(String, String)> {
        let config = &self.app.config;
        if config.oidc_issuer.is_empty() {
            return Err(Error::new(Code::NotFound, "This server has no OpenID Connect issuer."));
        }
        let discovery = discovery(&self.app).await?;
        let secret = token::new_secret()?;
        let back = self.app.site.address(CALLBACK);
        Ok((Attempt::new(&secret).address(&discovery, &config.oidc_client_id, &back), secret))
    }

    /// Starts a session with what the issuer sent back to the browser with this secret. Whoever comes from the page of an
    /// invitation accepts that one rather than another; returns whether they did.
    pub async fn sign_in_by_issuer(
        &self,
        secret: &str,
        returned: &Returned,
        invitation: &str,
    ) -> Result<(Outcome, bool)> {
        let mut attempt = throttle::Attempt::from_address("issuer", &self.device.address);
        let claims = self.claims(secret, returned, &mut attempt).await?;
        let (email, invitation, now) = (claims.email.clone(), invitation.to_string(), self.app.clock.now());
        let vault = self.app.site.vault.clone();
        let read = self.app.store.read(move |tx| {
            let opened = token::look_up(tx, &vault, Purpose::Invite, &invitation, now)?.ok();
            let found = user_of(tx, &email, opened.as_ref())?;
            Ok::<_, Error>((found, opened))
        });
        let (found, opened) = read.await?;
        let (account, id) = found.ok_or_else(|| {
            let message = format!("No user here has the e-mail address {}. Ask for an invitation.", claims.email);
            Error::new(NO_SUCH_USER, message)
        })?;
        let is_opened = opened.is_some_and(|token| is_for(&token, &account, &id));
        let removed = Removed::default();
        let (own, secret) = (removed.clone(), secret.to_string());
        let entered = self.enter(account, Proof::Issuer(claims.signed_in_at), move |tx, ctx| {
            // The issuer may exchange a code twice.
            if !throttle::use_up(tx, "issuer", &secret, ctx.machine_now)? {
                return Err(failed("the response was used before"));
            }
            let before: User = records::find(tx, ctx, &id)?;
            if before.status == Status::Suspended {
                return Err(suspended());
            }
            // Whoever chose a password for this address must not enter with it, neither here nor in another account.
            vouch(tx, ctx, &before, &own)?;
            if before.status == Status::Invited {
                token::withdraw(tx, ctx.account, Purpose::Invite, &id)?;
            }
            activate(tx, ctx, before)
        });
        let entered = entered.await?;
        attempt.forgive(&self.app).await;
        self.tell_removed(&entered, &removed).await;
        Ok((entered, is_opened))
    }

    /// Exchanges the code for an ID token, and checks it.
    async fn claims(&self, secret: &str, returned: &Returned, tried: &mut throttle::Attempt) -> Result<Claims> {
        let (app, attempt) = (&self.app, Attempt::new(secret));
        let config = &app.config;
        if returned.state != attempt.state() {
            return Err(failed("the state is that of another attempt"));
        }
        if !returned.issuer.is_empty() && returned.issuer != config.oidc_issuer {
            return Err(failed("the response is from another issuer"));
        }
        if returned.code.is_empty() {
            return Err(failed(&format!("it sent no code: {}", returned.error)));
        }
        // Whoever has chosen the secret of an attempt knows its state: each exchange is a request to the issuer.
        tried.count(app).await?;
        let discovery = discovery(app).await?;
        let tokens = send(app, self.exchange(&discovery, &attempt, &returned.code)).await?;
        let expected = Expected {
            issuer: &config.oidc_issuer,
            client_id: &config.oidc_client_id,
            nonce: &attempt.nonce(),
            now: app.clock.now().0 / 1000,
        };
        let token = openid::id_token(&tokens).map_err(|why| refused(&why))?;
        let issuer = app.services.get::<Issuer>();
        if let Some(keys) = known(&issuer.keys, FRESH) {
            match Claims::of(&token, &keys, &expected) {
                Err(why) if known(&issuer.keys, RETRY).is_some() => return Err(refused(&why)),
                Err(_) => {}
                claims => return claims.map_err(|why| refused(&why)),
            }
        }
        let keys = Keys::read(&send(app, get(&discovery.jwks_uri)).await?).map_err(|why| refused(&why))?;
        Claims::of(&token, &remember(&issuer.keys, keys), &expected).map_err(|why| refused(&why))
    }

    /// Returns the request that exchanges a code for tokens.
    fn exchange(&self, discovery: &Discovery, attempt: &Attempt, code: &str) -> OutgoingRequest {
        let config = &self.app.config;
        let (id, secret) = (config.oidc_client_id.as_str(), config.oidc_client_secret.as_str());
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("grant_type", "authorization_code").append_pair("code", code);
        form.append_pair("redirect_uri", &self.app.site.address(CALLBACK));
        form.append_pair("code_verifier", &attempt.verifier());
        let kind = ("content-type".to_string(), "application/x-www-form-urlencoded".to_string());
        let mut headers = vec![kind, ("accept".to_string(), "application/json".to_string())];
        if secret.is_empty() || discovery.wants_secret_in_body() {
            form.append_pair("client_id", id);
            if !secret.is_empty() {
                form.append_pair("client_secret", secret);
            }
        } else {
            let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
            let pair = BASE64_STANDARD.encode(format!("{}:{}", encoded(id), encoded(secret)));
            headers.push(("authorization".to_string(), format!("Basic {pair}")));
        }
        let body = form.finish().into_bytes();
        OutgoingRequest { method: Method::POST, url: discovery.token_endpoint.clone(), headers, body }
    }
}

/// Returns the description of the issuer.
async fn discovery(app: &App) -> Result<Arc<Discovery>> {
    let own = &app.services.get::<Issuer>().discovery;
    if let Some(discovery) = known(own, FRESH) {
        return Ok(discovery);
    }
    let issuer = &app.config.oidc_issuer;
    let json = send(app, get(&Discovery::address(issuer))).await?;
    Ok(remember(own, Discovery::read(issuer, &json).map_err(|why| refused(&why))?))
}

fn get(url: &str) -> OutgoingRequest {
    let headers = vec![("accept".to_string(), "application/json".to_string())];
    OutgoingRequest { method: Method::GET, url: url.to_string(), headers, body: Vec::new() }
}

async fn send(app: &App, request: OutgoingRequest) -> Result<Vec<u8>> {
    let url = request.url.clone();
    let answer = app.web.send(request).await.map_err(|error| failed(&format!("{url}: {error}")))?;
    match answer.status {
        200 if !answer.cut => Ok(answer.body),
        status => Err(failed(&format!("{url} responded with {status}"))),
    }
}

fn refused(why: &Refused) -> Error {
    failed(&why.0)
}

/// The reason is for the operator; the person can only try again.
fn failed(why: &str) -> Error {
    tracing::warn!(why, "Signing in at the OpenID Connect issuer failed");
    Error::new(
        ISSUER_FAILED,
        "Signing in at the OpenID Connect issuer failed. Try again, or sign in with your password.",
    )
}

/// Whether an invitation is for this user of an account.
fn is_for(invitation: &Token, account: &Account, user: &str) -> bool {
    invitation.account == account.number && invitation.user == user
}

/// Finds the oldest active user with an e-mail address, or else the one whose invitation was opened, or else the oldest one who
/// is invited, or else one who is suspended.
fn user_of(tx: &mut Tx, email: &str, opened: Option<&Token>) -> Result<Option<(Account, String)>> {
    let Some(person) = Person::with_email(tx, email)? else { return Ok(None) };
    let invited = invitations(tx, &person.id)?;
    let mut invited = with_accounts(tx, invited)?;
    let is_opened = |account: &Account, user: &User| opened.is_some_and(|token| is_for(token, account, &user.base.id));
    // Whoever has a test account chooses its clock, and invites anybody to it.
    invited.sort_by_key(|(account, user)| (!is_opened(account, user), account.has_test_clock));
    let invited = invited.into_iter().next();
    // Somebody else may have accepted the other invitations.
    if let Some((account, user)) = invited.as_ref().filter(|_| !person.password.is_empty())
        && !Person::is_proven(tx, &person.id)?
    {
        return Ok(Some((account.clone(), user.base.id.clone())));
    }
    // A closed account is only chosen if there is no other, to say so.
    if let Some((account, user)) = accounts_of(tx, &person.id)?
        .into_iter()
        .min_by_key(|(account, _)| (account.is_closed(), account.has_test_clock))
    {
        return Ok(Some((account, user.base.id)));
    }
    if let Some((account, user)) = invited {
        return Ok(Some((account, user.base.id)));
    }
    // Only to say so.
    match of_any_status(tx, &person.id)?.into_iter().next() {
        Some((number, user)) => Ok(Some((Account::numbered(tx, number)?, user.base.id))),
        None => Ok(None),
    }
}
