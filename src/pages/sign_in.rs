//! The pages to sign in, and to open a link that works once. They are plain forms and run no script.

use std::sync::{Arc, LazyLock};

use axum::body::Body;
use axum::http::header::{ACCEPT_LANGUAGE, CONTENT_TYPE, HeaderValue, LOCATION, RETRY_AFTER, SET_COOKIE};
use axum::http::request::Parts;
use axum::http::{Method, Request, Response, StatusCode};
use engine::app::App;
use engine::error::{Code, Error, Result};
use engine::http::{authentication, dispatch, reply, session};
use engine::json::Json;
use engine::record::{Email, Kind, REQUIRED};
use minijinja::value::Serde;
use serde_json::{Value, json};

use super::{console, public};
use crate::people::LINK_INVALID;
use crate::people::entering::{Entered, FirstOwner, Invited, Visit};
use crate::people::session::LONGEST_SECONDS;
use crate::people::token::Purpose;

/// Returns the path of a page for the metrics.
pub fn route(path: &str) -> &'static str {
    match link(path) {
        Some((Purpose::SetUp, _)) => "/set-up/{token}",
        Some((Purpose::Invite, _)) => "/invite/{token}",
        Some((Purpose::Reset, _)) => "/reset/{token}",
        None => match path {
            "/sign-in" => "/sign-in",
            "/sign-out" => "/sign-out",
            "/forgot" => "/forgot",
            _ => "",
        },
    }
}

/// Returns the purpose and the token of a link.
fn link(path: &str) -> Option<(Purpose, &str)> {
    let all = Purpose::ALL.iter().filter_map(|purpose| Some((*purpose, path.strip_prefix(purpose.path())?)));
    all.into_iter().find(|(_, token)| !token.is_empty() && !token.contains('/'))
}

/// Handles a request to one of the pages.
pub async fn answer(app: Arc<App>, request: Request<Body>) -> Response<Body> {
    let request_id = dispatch::request_id(&app, request.headers());
    let nonce = app.ids.token();
    let (head, body) = request.into_parts();
    let visit = Visit { app: app.clone(), request_id: request_id.clone(), device: console::device(&app, &head) };
    let mut page = Page { name: "broken", language: language(&head), fields: json!({}), error: "" };
    let done = walk(&visit, &head, body, &mut page).await;
    let mut response = match done {
        Ok(Shown::Page) => page.draw(&nonce),
        Ok(Shown::Entered(secret)) => leading(&app, "/sign-in", &secret, LONGEST_SECONDS),
        Ok(Shown::Left) => leading(&app, "/sign-in", "", 0),
        Err(error) => page.refused(&error, &request_id, &nonce),
    };
    reply::finish(&mut response, &request_id);
    public::protect(response.headers_mut(), &nonce, "'self'");
    // Without a referrer, browsers do not tell the origin of a form.
    response.headers_mut().insert("referrer-policy", HeaderValue::from_static("same-origin"));
    if head.method == Method::HEAD { dispatch::without_body(response) } else { response }
}

/// What a request leads to.
enum Shown {
    /// The page.
    Page,
    /// A session with this secret has started.
    Entered(String),
    /// The session has ended.
    Left,
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
    let form = if reads { Vec::new() } else { public::read_form(app, &head.headers, body).await? };
    let sent = |name: &str| -> String {
        let found = form_urlencoded::parse(&form).find(|(key, _)| key == name);
        // A NUL cannot be stored.
        found.map(|(_, value)| value.replace('\0', "")).unwrap_or_default()
    };
    if let Some((purpose, token)) = link(head.uri.path()) {
        let invited = visit.invited(purpose, token).await?;
        page.invite(purpose, &invited);
        if reads {
            return Ok(Shown::Page);
        }
        session::check_origin(head, &app.site)?;
        let entered = match purpose {
            Purpose::SetUp => {
                let (email, name) = (sent("email"), sent("name"));
                page.fields["email"] = json!(email);
                page.fields["name"] = json!(name);
                set_up(visit, token, &email, &name, sent("password")).await
            }
            Purpose::Invite => visit.accept(token, sent("password")).await,
            Purpose::Reset => visit.reset(token, sent("password")).await,
        };
        return entered.map(|entered| Shown::Entered(entered.secret));
    }
    match (head.uri.path(), reads) {
        ("/sign-in", true) => {
            page.name = "sign_in";
            if let Ok(caller) = authentication::in_session(app, head).await {
                page.name = "signed_in";
                page.fields = json!({"name": caller.key.name, "business": caller.account.name});
            }
            Ok(Shown::Page)
        }
        ("/sign-in", false) => {
            page.name = "sign_in";
            page.fields = json!({"email": sent("email")});
            session::check_origin(head, &app.site)?;
            let entered = visit.sign_in(&sent("email"), sent("password"), "").await?;
            Ok(Shown::Entered(entered.secret))
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
            visit.forgot(&sent("email")).await?;
            page.name = "sent";
            Ok(Shown::Page)
        }
        _ => Err(Error::new(Code::NotFound, "This page does not exist.")),
    }
}

async fn set_up(visit: &Visit, token: &str, email: &str, name: &str, password: String) -> Result<Entered> {
    let read = |field: &'static str| move |wrong| Error::field(field, wrong);
    let email = Email::read(&Json::Text(email.to_string()), &REQUIRED).map_err(read("email"))?.0;
    let name = String::read(&Json::Text(name.to_string()), &REQUIRED).map_err(read("name"))?;
    visit.set_up(token, FirstOwner { email, name }, password).await
}

impl Page {
    fn invite(&mut self, purpose: Purpose, invited: &Invited) {
        self.name = purpose.wire();
        if !invited.email.is_empty() {
            self.language.clone_from(&invited.language);
        }
        self.fields = json!({
            "business": invited.business, "email": invited.email, "name": invited.name,
            "has_password": invited.has_password,
        });
    }

    /// Shows the page again with what is wrong.
    fn refused(&mut self, error: &Error, request_id: &str, nonce: &str) -> Response<Body> {
        let status = reply::status(error.code);
        if status.is_server_error() {
            let cause = error.internal.as_deref().unwrap_or("");
            tracing::error!(request_id, status = status.as_u16(), cause, "A request failed: {}", error.message);
        }
        let about_email = error.faults.iter().any(|fault| fault.field == "email");
        self.error = match error.code {
            Code::Unauthorized if self.fields["has_password"] == true => "known",
            Code::Unauthorized => "wrong",
            Code::TooManyRequests => "often",
            Code::ValidationFailed if about_email => "email",
            Code::ValidationFailed => "password",
            Code::Duplicate => "taken",
            Code::Forbidden => "elsewhere",
            code if code == LINK_INVALID => "link",
            _ => "failed",
        };
        if error.code == LINK_INVALID {
            self.name = "broken";
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

/// Leads to another page, with a session or without one.
fn leading(app: &App, path: &'static str, secret: &str, seconds: i64) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    reply::insert(response.headers_mut(), LOCATION, path);
    reply::insert(response.headers_mut(), SET_COOKIE, &session::cookie(&app.site, secret, seconds));
    response
}

/// Returns the language of the browser, of the two that the pages have.
fn language(head: &Parts) -> String {
    let wanted = head.headers.get(ACCEPT_LANGUAGE).and_then(|wanted| wanted.to_str().ok()).unwrap_or_default();
    let mut wanted = wanted.split(',').filter_map(|one| one.trim().get(..2));
    wanted.find(|one| ["nl", "en"].contains(one)).unwrap_or("en").to_string()
}
