//! The pages to sign in, and to open a link that works once. They are plain forms; only passkeys need a script.

use std::sync::{Arc, LazyLock};

use axum::body::Body;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, LOCATION, RETRY_AFTER, SET_COOKIE};
use axum::http::request::Parts;
use axum::http::{Method, Request, Response, StatusCode};
use engine::app::App;
use engine::error::{Code, Error, Result};
use engine::http::{authentication, dispatch, reply, session};
use engine::json::Json;
use engine::record::{Email, Kind, REQUIRED};
use minijinja::value::Serde;
use serde_json::{Value, json};

use super::two_factor::{self, Next};
use super::{console, oidc, public};
use crate::people::entering::{FirstOwner, Invited, Outcome, Visit};
use crate::people::factor::Method as Factor;
use crate::people::issuer::CALLBACK;
use crate::people::passkey::Used;
use crate::people::second_step::Given;
use crate::people::session::{Held, LONGEST_SECONDS};
use crate::people::status::Language;
use crate::people::token::{self, Purpose};
use crate::people::{
    ISSUER_FAILED, LINK_INVALID, NO_SUCH_USER, PASSWORD_REQUIRED, TWO_FACTOR_REQUIRED, USER_SUSPENDED, issuer,
};
use crate::settings::account;

/// Returns the path of a page for the metrics.
pub fn route(path: &str) -> &'static str {
    match link(path) {
        Some((Purpose::SetUp, _)) => "/set-up/{token}",
        Some((Purpose::Invite, _)) => "/invite/{token}",
        Some((Purpose::Reset, _)) => "/reset/{token}",
        Some((Purpose::SignIn, _)) => "/sign-in-link/{token}",
        _ => match path {
            "/sign-in" => "/sign-in",
            "/two-factor" => "/two-factor",
            "/oidc/start" => "/oidc/start",
            "/oidc/callback" => "/oidc/callback",
            "/sign-out" => "/sign-out",
            "/forgot" => "/forgot",
            _ => "",
        },
    }
}

/// Returns the purpose and the token of a link. A token that is missing or has too much is one that does not exist.
fn link(path: &str) -> Option<(Purpose, &str)> {
    Purpose::LINKS.iter().find_map(|purpose| {
        let rest = path.strip_prefix(purpose.path().trim_end_matches('/'))?;
        match rest.strip_prefix('/') {
            Some(token) => Some((*purpose, token)),
            None => rest.is_empty().then_some((*purpose, "")),
        }
    })
}

/// Handles a request to one of the pages.
pub async fn answer(app: Arc<App>, request: Request<Body>) -> Response<Body> {
    let request_id = dispatch::request_id(&app, request.headers());
    let nonce = app.ids.token();
    let (head, body) = request.into_parts();
    let visit = Visit { app: app.clone(), request_id: request_id.clone(), device: console::device(&app, &head) };
    let mut page = Page { name: "broken", language: language(&head), fields: json!({}), error: "" };
    let done = walk(&visit, &head, body, &mut page).await;
    if let (Err(error), Some((purpose, token))) = (&done, link(head.uri.path())) {
        if error.code == LINK_INVALID {
            page.fields = json!({"purpose": purpose.wire(), "why": why_dead(&visit, purpose, token).await});
        } else if error.code == USER_SUSPENDED
            && let Ok((_, account)) = visit.open_link(purpose, token).await
        {
            page.fields["business"] = json!(account.name);
        }
    }
    if matches!(page.name, "sign_in" | "invite") {
        page.fields["issuer"] = json!(issuer::name(&app.config));
        let to = page.fields["to"].as_str().unwrap_or_default();
        let to: String = form_urlencoded::byte_serialize(to.as_bytes()).collect();
        page.fields["start"] = json!(if to.is_empty() { String::new() } else { format!("?to={to}") });
    }
    let mut response = match done {
        Ok(Shown::Page) => page.draw(&nonce),
        Ok(Shown::Entered(secret)) => leading(&app, page.to(), &secret, LONGEST_SECONDS),
        Ok(Shown::Left) => leading(&app, "/sign-in", "", 0),
        Ok(Shown::Elsewhere(path)) => redirect(path),
        Ok(Shown::Console) => redirect(page.to()),
        Ok(Shown::Away(response)) => response,
        Err(error) => page.refused(&error, &request_id, &nonce),
    };
    reply::finish(&mut response, &request_id);
    if head.uri.path() == CALLBACK {
        oidc::forget(&app.site, &mut response);
    }
    // Passkeys need a script, which fills in the form; after a session, another one looks for what was typed.
    if page.fields["options"].is_string() || page.error == "ended" {
        let policy = format!(
            "default-src 'none'; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; form-action 'self'; \
             base-uri 'none'; frame-ancestors 'none'"
        );
        reply::insert(response.headers_mut(), CONTENT_SECURITY_POLICY, &policy);
    }
    public::protect(response.headers_mut(), &nonce, "'self'");
    // Without a referrer, browsers do not tell the origin of a form.
    response.headers_mut().insert("referrer-policy", HeaderValue::from_static("same-origin"));
    if head.method == Method::HEAD { dispatch::without_body(response) } else { response }
}

/// Returns why a link does not work, for its page.
async fn why_dead(visit: &Visit, purpose: Purpose, token: &str) -> &'static str {
    let (secret, now, vault) = (token.to_string(), visit.app.clock.now(), visit.app.site.vault.clone());
    match visit.app.store.read(move |tx| token::look_up(tx, &vault, purpose, &secret, now)).await {
        Ok(Err(dead)) => dead.name(),
        // The link itself is valid, but not what it is for: the user was suspended or deleted.
        Ok(Ok(_)) => "changed",
        Err(_) => "unknown",
    }
}

/// What a request leads to.
enum Shown {
    /// The page.
    Page,
    /// A session with this secret has started.
    Entered(String),
    /// The session has ended.
    Left,
    /// The console, where the person wanted to go.
    Console,
    /// Another page.
    Elsewhere(&'static str),
    /// The issuer.
    Away(Response<Body>),
}

/// A page that is shown, possibly after an error.
struct Page {
    name: &'static str,
    language: String,
    fields: Value,
    error: &'static str,
}

async fn walk(visit: &Visit, head: &Parts, body: Body, page: &mut Page) -> Result<Shown> {
    let app = &visit.app;
    app.visitors.limit(&head.extensions, &head.headers)?;
    let reads = matches!(head.method, Method::GET | Method::HEAD);
    if !reads && head.method != Method::POST {
        return Err(Error::new(Code::MethodNotAllowed, "Open the page or submit its form."));
    }
    let form = if reads { Vec::new() } else { public::read_form(app, head, body).await? };
    let form = Form(form);
    if let Some((purpose, token)) = link(head.uri.path()) {
        return walk_link(visit, head, (purpose, token), (!reads).then_some(&form), page).await;
    }
    match (head.uri.path(), reads) {
        ("/sign-in", true) => {
            let query = head.uri.query().unwrap_or_default();
            page.fields = json!({"to": wanted(query.as_bytes())});
            // The console adds it when a session ends while somebody is at work.
            if query.split('&').any(|part| part == "ended") {
                page.error = "ended";
            }
            show_sign_in(visit, head, page).await
        }
        ("/sign-in", false) => {
            page.name = "sign_in";
            session::check_origin(head, &app.site)?;
            sign_in(visit, &form, page).await
        }
        ("/oidc/start", true) => {
            let to = wanted(head.uri.query().unwrap_or_default().as_bytes());
            oidc::start(visit, &to).await.map(Shown::Away)
        }
        (CALLBACK, true) => {
            page.name = "sign_in";
            let to = own_address(oidc::to(visit, head));
            page.fields = json!({"to": to});
            let invitation = match link(&to) {
                Some((Purpose::Invite, token)) => token,
                _ => "",
            };
            let (entered, is_accepted) = oidc::callback(visit, head, invitation).await?;
            // The page of the invitation would only say that it was accepted.
            if is_accepted {
                page.fields["to"] = json!("");
            }
            Ok(page.after(entered))
        }
        ("/two-factor", _) => {
            page.name = "two_factor";
            let next = two_factor::answer(visit, head, reads, &mut page.language, |name: &str| form.sent(name)).await?;
            page.next(next)
        }
        ("/sign-out", false) => {
            session::check_origin(head, &app.site)?;
            console::sign_out(visit, head).await?;
            Ok(Shown::Left)
        }
        ("/forgot", true) => {
            page.name = "forgot";
            Ok(Shown::Page)
        }
        ("/forgot", false) => {
            page.name = "forgot";
            session::check_origin(head, &app.site)?;
            visit.forgot(&form.sent("email")).await?;
            page.name = "sent";
            page.fields["no_mail"] = json!(app.config.smtp_host.is_empty());
            Ok(Shown::Page)
        }
        _ => Err(Error::new(Code::NotFound, "This page does not exist.")),
    }
}

/// A submitted form.
struct Form(Vec<u8>);

impl Form {
    /// Returns a field, or an empty string.
    fn sent(&self, name: &str) -> String {
        let found = form_urlencoded::parse(&self.0).find(|(key, _)| key == name);
        // A NUL cannot be stored.
        found.map(|(_, value)| value.replace('\0', "")).unwrap_or_default()
    }
}

/// Shows the page of a link, or submits its form.
async fn walk_link(
    visit: &Visit,
    head: &Parts,
    (purpose, token): (Purpose, &str),
    form: Option<&Form>,
    page: &mut Page,
) -> Result<Shown> {
    let app = &visit.app;
    let invited = visit.invited(purpose, token).await?;
    page.invite(purpose, &invited);
    // Signing in at the issuer accepts it, or leads to an account that the person has already, and from there back to it.
    if purpose == Purpose::Invite {
        page.fields["to"] = json!(head.uri.path());
    }
    let held = match purpose {
        Purpose::Invite => session_of(visit, head, &invited.person).await?,
        _ => None,
    };
    page.fields["signed_in"] = json!(held.is_some());
    let Some(form) = form else { return Ok(Shown::Page) };
    session::check_origin(head, &app.site)?;
    if purpose == Purpose::Invite && form.sent("action") == "join" {
        let joined = match &held {
            Some(held) => visit.join(held, token).await,
            None => Err(Error::new(Code::Unauthorized, "The session has ended. Sign in again.")),
        };
        // The page then asks how the person signs in; nobody has entered a wrong password.
        if joined.as_ref().is_err_and(|error| error.code == Code::Unauthorized) {
            page.fields["signed_in"] = json!(false);
            page.fields["has_ended"] = json!(true);
        }
        let joined = joined?;
        app.sessions.forget(session::secret(&app.site, &head.headers)?);
        page.fields["to"] = json!("");
        return Ok(page.after(joined));
    }
    open_link(visit, purpose, token, form, page).await
}

/// Returns the session of a request, if it is one of this person. One that lacks the second factor that its account requires
/// does not count.
async fn session_of(visit: &Visit, head: &Parts, person: &str) -> Result<Option<Held>> {
    let held = match authentication::in_session(&visit.app, head).await {
        Ok(_) => console::held(&visit.app, head).await,
        Err(error) => Err(error),
    };
    match held {
        Ok(held) => Ok(Some(held).filter(|held| held.person == person)),
        Err(error) if error.code == Code::TooManyRequests || reply::status(error.code).is_server_error() => Err(error),
        Err(_) => Ok(None),
    }
}

/// Submits the form of a link.
async fn open_link(visit: &Visit, purpose: Purpose, token: &str, form: &Form, page: &mut Page) -> Result<Shown> {
    let entered = match purpose {
        Purpose::SetUp => {
            let [email, name, business] = ["email", "name", "business"].map(|field| form.sent(field));
            page.fields["email"] = json!(email);
            page.fields["name"] = json!(name);
            page.fields["business"] = json!(business);
            let owner = FirstOwner { email, name, language: Language::from_wire(&page.language), business };
            set_up(visit, token, owner, form.sent("password")).await
        }
        Purpose::Invite => visit.accept(token, form.sent("password")).await,
        Purpose::Reset => visit.reset(token, form.sent("password")).await,
        Purpose::SignIn => visit.sign_in_by_link(token).await,
        Purpose::SecondStep => Err(Error::new(Code::NotFound, "This page does not exist.")),
    }?;
    page.fields["to"] = json!("");
    Ok(page.after(entered))
}

/// Shows the form to sign in, or the console to somebody who has.
async fn show_sign_in(visit: &Visit, head: &Parts, page: &mut Page) -> Result<Shown> {
    page.name = "sign_in";
    match authentication::in_session(&visit.app, head).await {
        Ok(_) => Ok(Shown::Console),
        Err(error) if error.code == TWO_FACTOR_REQUIRED => Ok(Shown::Elsewhere("/two-factor")),
        Err(error) if error.code == Code::AccountClosed => Err(error),
        Err(_) => Ok(Shown::Page),
    }
}

/// Returns the address to go to after signing in, from a query or a form; empty if it is not one of ours.
fn wanted(sent: &[u8]) -> String {
    let found = form_urlencoded::parse(sent).find(|(name, _)| name == "to");
    own_address(found.map(|(_, to)| to.into_owned()).unwrap_or_default())
}

/// Returns an address if it is one of ours; empty otherwise.
fn own_address(to: String) -> String {
    // Browsers take `//` and `/\` for the start of a host.
    let is_ours =
        to.starts_with('/') && !to[1..].starts_with(['/', '\\']) && to.bytes().all(|one| one.is_ascii_graphic());
    if is_ours { to } else { String::new() }
}

/// Submits the password, or the second factor.
async fn sign_in(visit: &Visit, form: &Form, page: &mut Page) -> Result<Shown> {
    let token = form.sent("token");
    let to = wanted(&form.0);
    if token.is_empty() {
        page.fields = json!({"email": form.sent("email"), "to": to});
        return Ok(page.after(visit.sign_in(&form.sent("email"), form.sent("password"), "").await?));
    }
    page.name = "code";
    if let Some(language) = Language::from_wire(&form.sent("language")) {
        page.language = language.wire().to_string();
    }
    // After a wrong code, the page offers what it did before; the passkey signs the token, which is the same.
    let (methods, options) = (form.sent("methods"), Some(form.sent("options")).filter(|options| !options.is_empty()));
    let methods = if methods.is_empty() { Factor::Totp.wire() } else { &methods };
    let methods: Vec<&str> = methods.split(',').collect();
    page.fields = json!({"token": token, "methods": methods, "options": options, "to": &to});
    let given = match form.sent("signature").as_str() {
        "" => Given::Code(form.sent("code")),
        signature => {
            page.fields = json!({"token": token, "methods": [], "passkey": true, "to": to});
            let (client, data) = (form.sent("client_data"), form.sent("authenticator_data"));
            Given::Passkey(Used::read(&form.sent("credential"), &client, &data, signature)?)
        }
    };
    Ok(page.after(visit.second_step(&token, given).await?))
}

async fn set_up(visit: &Visit, token: &str, owner: FirstOwner, password: String) -> Result<Outcome> {
    let read = |field: &'static str| move |wrong| Error::field(field, wrong);
    let email = Email::read(&Json::Text(owner.email), &REQUIRED).map_err(read("email"))?.0;
    let name = String::read(&Json::Text(owner.name), &REQUIRED).map_err(read("name"))?;
    let business = String::read(&Json::Text(owner.business), &REQUIRED.at_most(255)).map_err(read("business"))?;
    visit.set_up(token, FirstOwner { email, name, business, ..owner }, password).await
}

impl Page {
    /// Continues with the session, or with the second step.
    fn after(&mut self, outcome: Outcome) -> Shown {
        match outcome {
            Outcome::Entered(entered) => Shown::Entered(entered.secret),
            Outcome::SecondStep(step) => {
                self.name = "code";
                self.language = step.language.wire().to_string();
                let methods: Vec<&str> = step.methods.iter().map(|method| method.wire()).collect();
                let options = step.passkey.map(|options| options.to_string());
                let to = &self.fields["to"];
                self.fields = json!({"token": step.token, "methods": methods, "options": options, "to": to});
                Shown::Page
            }
        }
    }

    /// Returns the address to go to after signing in.
    fn to(&self) -> &str {
        self.fields["to"].as_str().filter(|to| !to.is_empty()).unwrap_or("/")
    }

    /// Continues with what a form of the page of second factors leads to.
    fn next(&mut self, next: Next) -> Result<Shown> {
        let (name, fields, done) = match next {
            Next::Page(name, fields) => (name, fields, Ok(Shown::Page)),
            Next::Refused(name, fields, error) => (name, fields, Err(error)),
            Next::Overview => return Ok(Shown::Elsewhere("/two-factor")),
            Next::SignIn => return Ok(Shown::Elsewhere("/sign-in")),
        };
        self.name = name;
        self.fields = fields;
        done
    }

    fn invite(&mut self, purpose: Purpose, invited: &Invited) {
        self.name = if purpose == Purpose::SignIn { "link" } else { purpose.wire() };
        if !invited.email.is_empty() {
            self.language.clone_from(&invited.language);
        }
        // Whoever sets up the account gives it a name.
        let is_unnamed = purpose == Purpose::SetUp && invited.business == account::UNNAMED;
        self.fields = json!({
            "business": if is_unnamed { "" } else { &invited.business }, "email": invited.email, "name": invited.name,
            "has_password": invited.has_password, "signs_in_otherwise": invited.signs_in_otherwise,
        });
    }

    /// Shows the page again with what is wrong.
    fn refused(&mut self, error: &Error, request_id: &str, nonce: &str) -> Response<Body> {
        let status = reply::status(error.code);
        if status.is_server_error() {
            let cause = error.internal.as_deref().unwrap_or("");
            tracing::error!(request_id, status = status.as_u16(), cause, "A request failed: {}", error.message);
        }
        let is_about = |field: &str| error.faults.iter().any(|fault| fault.field == field);
        self.error = match error.code {
            Code::Unauthorized if self.fields["passkey"] == true => "passkey",
            Code::Unauthorized if self.fields["has_ended"] == true => "ended",
            Code::Unauthorized if self.name == "code" => "code",
            Code::Unauthorized if self.fields["has_password"] == true || self.name == "set_up" => "known",
            Code::Unauthorized => "wrong",
            Code::TooManyRequests => "often",
            Code::AccountClosed => "closed",
            Code::ValidationFailed if is_about("email") => "email",
            Code::ValidationFailed if self.fields["is_factor"] == true && is_about("name") => "device",
            Code::ValidationFailed if is_about("name") => "name",
            Code::ValidationFailed if is_about("business") => "business",
            Code::ValidationFailed if self.name == "totp" => "code",
            Code::ValidationFailed => "password",
            Code::Duplicate => "taken",
            Code::Forbidden if self.fields["asks_password"] == true => "current",
            Code::Forbidden => "elsewhere",
            code if code == ISSUER_FAILED => "issuer",
            code if code == PASSWORD_REQUIRED => "without",
            code if code == NO_SUCH_USER => "nobody",
            code if code == USER_SUSPENDED => "suspended",
            code if code == LINK_INVALID && self.name == "code" => "late",
            code if code == LINK_INVALID => "",
            _ => "failed",
        };
        if error.code == LINK_INVALID {
            self.name = if self.error == "late" { "sign_in" } else { "broken" };
        }
        if error.code == Code::AccountClosed && self.name != "broken" {
            self.name = "sign_in";
        }
        let mut response = self.draw(nonce);
        *response.status_mut() = status;
        if let Some(seconds) = error.retry_after {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }

    fn draw(&self, nonce: &str) -> Response<Body> {
        static TEMPLATES: LazyLock<minijinja::Environment<'static>> = LazyLock::new(|| {
            let mut templates = minijinja::Environment::new();
            let added = templates.add_template("sign_in.html", include_str!("sign_in.html"));
            debug_assert!(added.is_ok(), "{added:?}");
            templates
        });
        let mut data = self.fields.clone();
        for (name, value) in [("page", self.name), ("error", self.error), ("nonce", nonce)] {
            data[name] = json!(value);
        }
        data["language"] = json!(self.language);
        let drawn =
            TEMPLATES.get_template("sign_in.html").and_then(|page| page.render(minijinja::Value::from(Serde(&data))));
        debug_assert!(drawn.is_ok(), "{drawn:?}");
        let mut response = Response::new(Body::from(drawn.unwrap_or_default()));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
        response
    }
}

/// Leads to another page.
fn redirect(path: &str) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    reply::insert(response.headers_mut(), LOCATION, path);
    response
}

/// Leads to another page, with a session or without one.
fn leading(app: &App, path: &str, secret: &str, seconds: i64) -> Response<Body> {
    let mut response = redirect(path);
    reply::insert(response.headers_mut(), SET_COOKIE, &session::cookie(&app.site, secret, seconds));
    response
}

/// Returns the language of the browser, of the two that the pages have.
fn language(head: &Parts) -> String {
    console::asked_language(head).unwrap_or(Language::English).wire().to_string()
}
