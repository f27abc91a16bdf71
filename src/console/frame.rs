//! The page of every screen, for somebody who has signed in: the frame that a browser shows before the script runs, the
//! modules of the screen, and the responses that it begins with.

use std::sync::{Arc, LazyLock};

use axum::body::Body;
use axum::http::header::{ACCEPT, ACCEPT_LANGUAGE, CONTENT_TYPE, COOKIE, ETAG, HeaderName, HeaderValue, LOCATION};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Request, Response, StatusCode};
use engine::app::App;
use engine::error::{Code, Error, Result};
use engine::http::keys::AuthenticatedKey;
use engine::http::{authentication, dispatch, reply, session};
use engine::log;
use engine::registry::{registry, routes};
use engine::resource::Method as RouteMethod;
use minijinja::value::Serde;
use serde_json::{Value, json};

use super::assets::{self, Assets};
use super::first::{self, Beginning};
use crate::people::TWO_FACTOR_REQUIRED;

/// The most bytes of a response that a page contains; a longer one is asked for by the script.
const MAX_FIRST: usize = 256 * 1024;

/// The entries of the menu, as the frame shows them before the script runs.
const MENU: [&str; 16] = [
    "home",
    "invoices",
    "quotes",
    "workorders",
    "subscriptions",
    "products",
    "clients",
    "suppliers",
    "deals",
    "tickets",
    "tasks",
    "projects",
    "hours",
    "files",
    "flows",
    "settings",
];

/// Returns the address of a screen for the metrics.
pub fn route(path: &str) -> &'static str {
    if first::beginning(path, "").is_some() { "/{screen}" } else { "" }
}

/// Handles a request to an address that nobody else has.
pub async fn answer(app: Arc<App>, request: Request<Body>) -> Response<Body> {
    let request_id = dispatch::request_id(&app, request.headers());
    let (head, _) = request.into_parts();
    let mut response = match page(&app, &head).await {
        Ok(response) => response,
        Err(error) => {
            if let Some(cause) = &error.internal {
                tracing::error!(%request_id, cause, "A request failed: {}", error.message);
            }
            let response = reply::error_response(&error, &request_id, false);
            if error.code == Code::MethodNotAllowed { reply::with_allow(response, "GET, HEAD") } else { response }
        }
    };
    protect(response.headers_mut());
    reply::finish(&mut response, &request_id);
    if head.method == Method::HEAD { dispatch::without_body(response) } else { response }
}

async fn page(app: &Arc<App>, head: &Parts) -> Result<Response<Body>> {
    let (path, query) = (head.uri.path(), head.uri.query().unwrap_or_default());
    let begins = first::beginning(path, query);
    let reads = matches!(head.method, Method::GET | Method::HEAD);
    // A program that mistypes a path hears so; a person who has signed in gets the menu to go on from.
    if !(reads && (begins.is_some() || wants_page(&head.headers))) {
        app.visitors.limit(&head.extensions, &head.headers)?;
        return Err(if begins.is_some() {
            Error::new(Code::MethodNotAllowed, "Only GET is supported here.")
        } else {
            nowhere()
        });
    }
    let caller = match authentication::in_session(app, head).await {
        Ok(caller) => caller,
        Err(error) if error.code == TWO_FACTOR_REQUIRED => return Ok(lead_to("/two-factor")),
        Err(error) if error.code == Code::AccountClosed && begins.is_some() => return Ok(lead_to("/sign-in")),
        Err(error) if error.code == Code::Unauthorized => {
            app.visitors.limit(&head.extensions, &head.headers)?;
            let has_ended = session::secret(&app.site, &head.headers).is_ok();
            return begins.map(|_| lead_to(&sign_in(path, query, has_ended))).ok_or_else(nowhere);
        }
        Err(error) => return Err(error),
    };
    let status = if begins.is_some() { StatusCode::OK } else { StatusCode::NOT_FOUND };
    let begins = begins.unwrap_or_else(|| Beginning { module: "screens/nowhere.js", asks: vec!["/v1/me".to_string()] });
    // Before the answers, so that live updates miss nothing that happens after them.
    let account = caller.account.number;
    let seq = app.store.read(move |tx| log::last(tx, account)).await?;
    let mut answers = Vec::new();
    for path in begins.asks {
        if let Some(answer) = ask(app, head, &caller, &path).await {
            answers.push((path, answer));
        }
    }
    let mut response = draw(app, head, &caller, begins.module, seq, &answers)?;
    *response.status_mut() = status;
    Ok(response)
}

fn nowhere() -> Error {
    Error::new(Code::NotFound, "This path does not exist.")
}

/// Whether the client is a browser that opens a page.
fn wants_page(headers: &HeaderMap) -> bool {
    headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).is_some_and(|accept| accept.contains("text/html"))
}

/// The page to sign in, which leads back to this address, and says so if a session has ended.
fn sign_in(path: &str, query: &str, has_ended: bool) -> String {
    let to = if query.is_empty() { path.to_string() } else { format!("{path}?{query}") };
    let ended = if has_ended { "ended&" } else { "" };
    if to == "/" {
        return if has_ended { "/sign-in?ended" } else { "/sign-in" }.to_string();
    }
    let to: String = form_urlencoded::byte_serialize(to.as_bytes()).collect();
    format!("/sign-in?{ended}to={to}")
}

fn lead_to(address: &str) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    reply::insert(response.headers_mut(), LOCATION, address);
    response
}

/// A response that the page contains.
struct Given {
    body: String,
    etag: String,
}

/// Makes a request of the screen on its behalf: through the same dispatch, with the same session. Returns none if it is
/// refused or too long; the script then asks for itself and shows why.
async fn ask(app: &Arc<App>, head: &Parts, caller: &AuthenticatedKey, path: &str) -> Option<Given> {
    let (plain, query) = path.split_once('?').unwrap_or((path, ""));
    let found = routes().at(plain).ok()?;
    let route = found.value.iter().find(|route| route.method == RouteMethod::Get)?;
    // A link of another site leads here, so an address must not change anything.
    let reads = engine::call::Query::parse(query).is_ok_and(|query| route.reads_for(&query));
    if !reads || route.lacks(|scope| caller.key.may(scope)).is_some() {
        return None;
    }
    let mut request = Request::builder().uri(format!("/console{path}")).body(Body::empty()).ok()?;
    for cookie in head.headers.get_all(COOKIE) {
        request.headers_mut().append(COOKIE, cookie.clone());
    }
    *request.extensions_mut() = head.extensions.clone();
    if !session::enters(&mut request) {
        return None;
    }
    let response = dispatch::answer(app.clone(), request).await;
    if response.status() != StatusCode::OK {
        return None;
    }
    let etag = response.headers().get(ETAG).and_then(|tag| tag.to_str().ok()).unwrap_or_default().to_string();
    let body = axum::body::to_bytes(response.into_body(), MAX_FIRST).await.ok()?;
    Some(Given { body: String::from_utf8(body.into()).ok()?, etag })
}

/// Draws the page.
fn draw(
    app: &App,
    head: &Parts,
    caller: &AuthenticatedKey,
    module: &str,
    seq: i64,
    answers: &[(String, Given)],
) -> Result<Response<Body>> {
    static TEMPLATES: LazyLock<minijinja::Environment<'static>> = LazyLock::new(|| {
        let mut templates = minijinja::Environment::new();
        let added = templates.add_template("frame.html", include_str!("frame.html"));
        debug_assert!(added.is_ok(), "{added:?}");
        templates
    });
    let assets = assets::current();
    let me = answers.iter().find(|(path, _)| path == "/v1/me");
    let me: Value = me.and_then(|(_, given)| serde_json::from_str(&given.body).ok()).unwrap_or_default();
    let me = &me["data"];
    let language = language(me["user"]["language"].as_str(), &head.headers);
    let theme = me["preferences"]["theme"].as_str().filter(|theme| ["light", "dark"].contains(theme));
    // Lists and Home do without the words and styles of other screens, if these are apart.
    let more = format!("words/{language}.screens.json");
    let rest = assets.text(&more).is_empty() || !["list.js", "screens/home.js"].contains(&module);
    let more: Vec<String> = Some(more).filter(|more| rest && !assets.text(more).is_empty()).into_iter().collect();
    let data = json!({
        "language": language,
        "nl": language == "nl",
        "theme": theme.unwrap_or("auto"),
        "version": assets::version(),
        "assets": assets.path("").trim_end_matches('/'),
        "account": caller.account.name,
        "title": title(&assets, language, head.uri.path()),
        "menu": menu(&assets, language, caller),
        "style": assets.text(assets::STYLE),
        "seq": seq,
        "user": caller.key.id,
        "stores_mail": app.config.smtp_host.is_empty(),
        "mail_from": app.config.mail_from,
        "rest": rest,
        "more": more,
        "modules": &*assets.modules_of(module),
        "first": first_data(answers),
    });
    let drawn = TEMPLATES.get_template("frame.html").and_then(|page| page.render(minijinja::Value::from(Serde(&data))));
    let drawn = drawn.map_err(|error| Error::internal(format!("the page cannot be drawn: {error}")))?;
    let mut response = Response::new(Body::from(drawn));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    reply::insert(headers, HeaderName::from_static("content-security-policy"), &assets.policy);
    Ok(response)
}

/// The responses, by path, as JSON in a page: a `<` could end the element.
fn first_data(answers: &[(String, Given)]) -> String {
    let members: Vec<String> = answers
        .iter()
        .map(|(path, given)| format!("{}:{{\"body\":{},\"etag\":{}}}", json!(path), given.body, json!(given.etag)))
        .collect();
    format!("{{{}}}", members.join(",")).replace('<', "\\u003c")
}

/// The language of the user, or else of the browser.
fn language(own: Option<&str>, headers: &HeaderMap) -> &'static str {
    let known = |wanted: &str| ["nl", "en"].into_iter().find(|known| wanted == *known);
    let asked = headers.get(ACCEPT_LANGUAGE).and_then(|wanted| wanted.to_str().ok()).unwrap_or_default();
    let mut asked = asked.split(',').filter_map(|one| known(one.trim().get(..2)?));
    own.and_then(known).or_else(|| asked.next()).unwrap_or("en")
}

/// The words of the menu that the caller may read.
fn menu(assets: &Assets, language: &str, caller: &AuthenticatedKey) -> Vec<String> {
    let allowed = |entry: &&&str| match **entry {
        "hours" => caller.key.may("projects.read"),
        entry => registry()
            .of_table(entry)
            .is_none_or(|own| own.area == "settings" || caller.key.may(&format!("{}.read", own.area))),
    };
    MENU.iter().filter(allowed).map(|entry| word(assets, language, entry)).collect()
}

/// The heading until the script runs: the name of the table.
fn title(assets: &Assets, language: &str, path: &str) -> String {
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    match (parts.next(), parts.next()) {
        (None, _) => word(assets, language, "home"),
        (Some("settings"), Some(table)) | (Some(table), _) => word(assets, language, &table.replace('-', "_")),
    }
}

fn word(assets: &Assets, language: &str, name: &str) -> String {
    let words = assets.words(language);
    let own = words[format!("menu.{name}")].as_str().or_else(|| words[format!("table.{name}")]["other"].as_str());
    own.unwrap_or("Kantoor").to_string()
}

/// Adds the headers of every page of the console.
fn protect(headers: &mut HeaderMap) {
    for (name, value) in [
        ("referrer-policy", "same-origin"),
        ("x-frame-options", "DENY"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("permissions-policy", "camera=(), microphone=(), geolocation=()"),
        ("cache-control", "private, no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}
