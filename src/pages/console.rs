//! The JSON endpoints with which people sign in and out, under `/console/`. The API itself, for people who have signed
//! in, is under `/console/v1/`.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{ACCEPT_LANGUAGE, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, USER_AGENT};
use axum::http::request::Parts;
use axum::http::{Method, Request, Response};
use engine::accounts::{self, SHARED};
use engine::app::App;
use engine::call::{Answer, Call};
use engine::error::{Code, Error, Result};
use engine::http::reply::{self, Reply};
use engine::http::{authentication, bodies, dispatch, receiving, session};
use engine::input;
use engine::input::Input;
use engine::json::Json;
use engine::record::{Body as RequestBody, Email, INPUT, REQUIRED};
use serde_json::json;

use super::factors;
use crate::people::TWO_FACTOR_REQUIRED;
use crate::people::entering::{Entered, FirstOwner, Outcome, Visit};
use crate::people::passkey::Used;
use crate::people::password::LONGEST;
use crate::people::second_step::Given;
use crate::people::session::{Device, Held, LONGEST_SECONDS, held as held_by};
use crate::people::status::Language;

/// Maximum size of a body.
const MAX_BODY: usize = 16 * 1024;
/// How much of the name of a browser is stored.
const MAX_BROWSER: usize = 255;

input! {
    /// The credentials of a person.
    pub struct SignIn;

    /// E-mail address.
    email: String = REQUIRED.example("\"anna@jansen.example\"");
    /// Password.
    password: String = REQUIRED.at_most(LONGEST).example("\"correct horse battery\"");
    /// The account to sign in to; by default the oldest one of the person.
    account_id: String = INPUT.example("\"\"");
}

input! {
    /// The first owner of an account.
    pub struct SetUp;

    /// The token of the link.
    token: String = REQUIRED.example("\"\"");
    /// E-mail address.
    email: Email = REQUIRED.example("\"anna@jansen.example\"");
    /// Name.
    name: String = REQUIRED.example("\"Anna Jansen\"");
    /// Password.
    password: String = REQUIRED.at_most(LONGEST).example("\"correct horse battery\"");
    /// Name of the business; required if the account has not been given a name yet, and by default that of the account.
    business: String = INPUT.at_most(255).example("\"Jansen Installaties\"");
    /// Language of the owner and of the account; by default that of the browser, or else of the account.
    language: Language = INPUT.example("\"nl\"");
}

input! {
    /// A link that sets a password.
    pub struct WithToken;

    /// The token of the link.
    token: String = REQUIRED.example("\"\"");
    /// The new password, or the current one of a person who has one.
    password: String = REQUIRED.at_most(LONGEST).example("\"correct horse battery\"");
}

input! {
    /// The e-mail address of somebody who forgot their password.
    pub struct Forgot;

    /// E-mail address.
    email: String = REQUIRED.example("\"anna@jansen.example\"");
}

input! {
    /// A new password.
    pub struct NewPassword;

    /// The current password.
    current_password: String = REQUIRED.at_most(LONGEST).example("\"correct horse battery\"");
    /// The new password.
    password: String = REQUIRED.at_most(LONGEST).example("\"battery staple horse\"");
}

input! {
    /// The account to switch to.
    pub struct Switch;

    /// The id of the account.
    account_id: String = REQUIRED.example("\"\"");
}

impl RequestBody for SignIn {}
impl RequestBody for SetUp {}
impl RequestBody for WithToken {}
impl RequestBody for Forgot {}
impl RequestBody for NewPassword {}
impl RequestBody for Switch {}

/// Returns the path of an endpoint for the metrics.
pub fn route(path: &str) -> &'static str {
    const ALL: [&str; 19] = [
        "/console/sign-in",
        "/console/sign-out",
        "/console/set-up",
        "/console/accept-invite",
        "/console/forgot",
        "/console/reset",
        "/console/password",
        "/console/account",
        "/console/second-step",
        "/console/second-step/passkey",
        "/console/sign-in-link",
        "/console/confirm",
        "/console/factors",
        "/console/factors/app",
        "/console/factors/passkey",
        "/console/factors/passkey/confirm",
        "/console/factors/confirm",
        "/console/factors/remove",
        "/console/recovery-codes",
    ];
    ALL.iter().find(|own| **own == path).copied().unwrap_or_default()
}

/// Handles a request under `/console/`.
pub async fn answer(app: Arc<App>, request: Request<Body>) -> Response<Body> {
    let request_id = dispatch::request_id(&app, request.headers());
    let allowed = if request.uri().path() == "/console/factors" { "GET, HEAD" } else { "POST" };
    let is_head = request.method() == Method::HEAD;
    let (head, body) = request.into_parts();
    let mut body = Some(body);
    let done = async {
        // Visitors share the memory of unsent responses as an account would.
        let unsent = app.responses.admit(SHARED).await?;
        Ok((walk(&app, request_id.clone(), head, &mut body).await?, unsent))
    };
    let done = done.await;
    receiving::discard(body).await;
    let mut response = match done {
        Ok((answer, unsent)) => Reply::of(answer, |_| String::new()).into_response(unsent),
        Err::<_, Error>(error) => {
            if let Some(cause) = &error.internal {
                tracing::error!(%request_id, cause, "A request failed: {}", error.message);
            }
            let response = reply::error_response(&error, &request_id, false);
            if error.code == Code::MethodNotAllowed { reply::with_allow(response, allowed) } else { response }
        }
    };
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    reply::finish(&mut response, &request_id);
    if is_head { dispatch::without_body(response) } else { response }
}

async fn walk(app: &Arc<App>, request_id: Arc<str>, head: Parts, body: &mut Option<Body>) -> Result<Answer> {
    app.visitors.limit(&head.extensions, &head.headers)?;
    if route(head.uri.path()).is_empty() {
        return Err(Error::new(Code::NotFound, "This path does not exist."));
    }
    let visit = Visit { app: app.clone(), request_id, device: device(app, &head) };
    if head.uri.path() == "/console/factors" {
        return match head.method {
            Method::GET | Method::HEAD => factors::list(&visit, &held_by_page(app, &head).await?).await,
            _ => Err(Error::new(Code::MethodNotAllowed, "Only GET is supported here.")),
        };
    }
    if head.method != Method::POST {
        return Err(Error::new(Code::MethodNotAllowed, "Only POST is supported here."));
    }
    session::check_origin(&head, &app.site)?;
    let call = Call { body: Some(read_json(app, &head, body.take().unwrap_or_default()).await?), ..Call::default() };
    match route(head.uri.path()) {
        "/console/sign-in" => {
            let SignIn { email, password, account_id } = input::create(&call)?.record();
            outcome(app, &visit.sign_in(&email, password, &account_id).await?)
        }
        "/console/set-up" => {
            let input: Input<SetUp> = input::create(&call)?;
            let SetUp { token, email, name, password, language, business } = input.record();
            let language = if input.has("language") { Some(language) } else { asked_language(&head) };
            outcome(
                app,
                &visit.set_up(&token, FirstOwner { email: email.0, name, language, business }, password).await?,
            )
        }
        "/console/accept-invite" => {
            let WithToken { token, password } = input::create(&call)?.record();
            outcome(app, &visit.accept(&token, password).await?)
        }
        "/console/reset" => {
            let WithToken { token, password } = input::create(&call)?.record();
            outcome(app, &visit.reset(&token, password).await?)
        }
        "/console/forgot" => {
            visit.forgot(&input::create::<Forgot>(&call)?.record().email).await?;
            Ok(Answer::json(&json!({"sent": true})))
        }
        "/console/password" => {
            authentication::in_session(app, &head).await?;
            let NewPassword { current_password, password } = input::create(&call)?.record();
            visit.change_password(&held_by_page(app, &head).await?, current_password, password).await?;
            Ok(Answer::empty())
        }
        "/console/account" => {
            authentication::in_session(app, &head).await?;
            let Switch { account_id } = input::create(&call)?.record();
            let switched = visit.switch(&held(app, &head).await?, &account_id).await?;
            app.sessions.forget(session::secret(&app.site, &head.headers)?);
            outcome(app, &switched)
        }
        "/console/sign-out" => {
            input::nothing(&call)?;
            sign_out(&visit, &head).await
        }
        "/console/second-step" => {
            let factors::Code { token, code } = input::create(&call)?.record();
            outcome(app, &visit.second_step(&token, Given::Code(code)).await?)
        }
        "/console/second-step/passkey" => {
            let body: factors::Passkey = input::create(&call)?.record();
            let used = Used::read(&body.credential, &body.client_data, &body.authenticator_data, &body.signature)?;
            outcome(app, &visit.second_step(&body.token, Given::Passkey(used)).await?)
        }
        "/console/sign-in-link" => {
            let factors::Link { token } = input::create(&call)?.record();
            outcome(app, &visit.sign_in_by_link(&token).await?)
        }
        path => factors::answer(&visit, &held_by_page(app, &head).await?, path, &call).await,
    }
}

/// Ends the session of a request, if it has one, and removes the cookie.
pub async fn sign_out(visit: &Visit, head: &Parts) -> Result<Answer> {
    let app = &visit.app;
    match held(app, head).await {
        Ok(held) => {
            visit.sign_out(&held).await?;
            app.sessions.forget(session::secret(&app.site, &head.headers)?);
        }
        // A session of a closed account can do nothing else.
        Err(error) if matches!(error.code, Code::Unauthorized | Code::AccountClosed) => {}
        Err(error) => return Err(error),
    }
    let mut answer = Answer::empty();
    answer.headers.push(("set-cookie", session::cookie(&app.site, "", 0)));
    Ok(answer)
}

/// Returns the session of a request that changes what its person signs in with, unless the page was made for somebody else.
async fn held_by_page(app: &Arc<App>, head: &Parts) -> Result<Held> {
    let held = held(app, head).await?;
    session::check_user(head, &held.key.id)?;
    Ok(held)
}

/// Returns the session of a request, also if it lacks the second factor that its account requires.
pub async fn held(app: &Arc<App>, head: &Parts) -> Result<Held> {
    match authentication::in_session(app, head).await {
        Err(error) if error.code != TWO_FACTOR_REQUIRED => return Err(error),
        _ => {}
    }
    let (hash, now) = (accounts::hash(session::secret(&app.site, &head.headers)?), app.clock.now());
    let vault = app.site.vault.clone();
    let found = app.store.read(move |tx| held_by(tx, &vault, &hash)).await?;
    let ended = || Error::new(Code::Unauthorized, "Your session has ended. Sign in again.");
    found.filter(|held| held.key.is_live(now)).ok_or_else(ended)
}

/// The response to somebody who has signed in, or who has to prove a second factor.
fn outcome(app: &App, outcome: &Outcome) -> Result<Answer> {
    match outcome {
        Outcome::Entered(one) => entered(app, one),
        Outcome::SecondStep(step) => {
            let methods: Vec<&str> = step.methods.iter().map(|method| method.wire()).collect();
            let mut data = json!({"second_step": {"token": step.token, "methods": methods}});
            if let Some(options) = &step.passkey {
                data["second_step"]["passkey"] = options.clone();
            }
            Ok(Answer::json(&data))
        }
    }
}

/// The response to somebody who has signed in.
fn entered(app: &App, entered: &Entered) -> Result<Answer> {
    let (user, account) = (&entered.user, &entered.account);
    let mut answer = Answer::json(&json!({
        "user": {"id": user.base.id, "name": user.name, "email": user.email.0, "role": user.role.wire()},
        "account": {"id": account.uid, "name": account.name},
    }));
    answer.headers.push(("set-cookie", session::cookie(&app.site, &entered.secret, LONGEST_SECONDS)));
    Ok(answer)
}

/// Returns the language that a browser asks for, of those that the pages have.
pub fn asked_language(head: &Parts) -> Option<Language> {
    Language::asked(head.headers.get(ACCEPT_LANGUAGE)?.to_str().ok()?)
}

/// Returns where a request comes from.
pub fn device(app: &App, head: &Parts) -> Device {
    let browser = head.headers.get(USER_AGENT).and_then(|name| name.to_str().ok()).unwrap_or_default();
    let address = app.visitors.visitor(&head.extensions, &head.headers);
    Device {
        browser: browser.chars().take(MAX_BROWSER).collect(),
        address: address.map(|address| address.to_string()).unwrap_or_default(),
    }
}

async fn read_json(app: &App, head: &Parts, body: Body) -> Result<Json> {
    let patience = Duration::from_secs(app.config.body_timeout_seconds);
    let read = async {
        let read = axum::body::to_bytes(body, MAX_BODY).await;
        read.map_err(|_| Error::new(Code::BodyTooLarge, "The body is too large."))
    };
    let bytes = bodies::in_time(&app.bodies, app.visitors.key(&head.extensions, &head.headers), patience, read).await?;
    if bytes.is_empty() {
        return Ok(Json::Object(Vec::new()));
    }
    let kind = head.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json") {
        return Err(Error::new(Code::UnsupportedMediaType, "Send JSON with 'Content-Type: application/json'."));
    }
    Json::parse(&bytes)
}
