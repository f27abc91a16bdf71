//! The API reference at `/docs`, rendered from the registry and the OpenAPI document: a page per resource and per guide, each
//! rendered when somebody first opens it.

mod examples;
mod guides;
mod search;
mod shown;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_SECURITY_POLICY, HeaderValue};
use axum::http::{Request, Response};
use minijinja::{Environment, context};
use serde_json::{Value, json};

use self::shown::{Group, groups};
use super::fixed::Fixed;
use super::openapi;
use crate::app::App;
use crate::registry::registry;

/// Pages have no other origin than this server, and nothing inline.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; \
base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

static STYLE: LazyLock<Fixed> = LazyLock::new(|| Fixed::new("text/css; charset=utf-8", include_str!("docs/docs.css")));
static SCRIPT: LazyLock<Fixed> =
    LazyLock::new(|| Fixed::new("text/javascript; charset=utf-8", include_str!("docs/docs.js")));
static INDEX: LazyLock<Fixed> =
    LazyLock::new(|| Fixed::page("application/json", Bytes::from(Value::Array(search::titles()).to_string())));
static WORDS: LazyLock<Fixed> =
    LazyLock::new(|| Fixed::page("application/json", Bytes::from(search::words().to_string())));

/// Pages by the address of the server and their path.
type Pages = HashMap<(String, String), Arc<Fixed>>;

/// The pages that were rendered.
static PAGES: LazyLock<Mutex<Pages>> = LazyLock::new(Mutex::default);

/// Returns the response to a request under `/docs`, unless there is no such page.
pub fn answer(app: &App, request: &Request<Body>) -> Option<Response<Body>> {
    let mut response = match request.uri().path() {
        "/docs/docs.css" => STYLE.answer(request),
        "/docs/docs.js" => SCRIPT.answer(request),
        "/docs/index.json" => INDEX.answer(request),
        "/docs/words.json" => WORDS.answer(request),
        path => page(&app.site.address(""), path)?.answer(request),
    };
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    Some(response)
}

/// Returns a page from the cache, or renders it. Unknown paths are not cached.
fn page(base: &str, path: &str) -> Option<Arc<Fixed>> {
    let key = (base.to_string(), path.to_string());
    let find = || PAGES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(page) = find().get(&key) {
        return Some(page.clone());
    }
    let (template, data) = content(base, path)?;
    let text = match render(template, base, path, &data) {
        Ok(text) => text,
        Err(error) => format!("The page cannot be rendered: {error:#}"),
    };
    let page = Arc::new(Fixed::page("text/html; charset=utf-8", Bytes::from(text)));
    find().insert(key, page.clone());
    Some(page)
}

/// Returns the template of a page, and its data.
fn content(base: &str, path: &str) -> Option<(&'static str, Value)> {
    if path == "/docs" {
        return Some(("home.html", json!({"title": "API reference"})));
    }
    if let Some(name) = path.strip_prefix("/docs/guides/") {
        let (_, text) = registry().guides.iter().find(|(own, _)| *own == name)?;
        let mut html = guides::html(text, base);
        if name == search::EVENTS {
            html = guides::with_rows(&html, |name| registry().event(name).is_some());
        }
        return Some(("guide.html", json!({"title": guides::title(text), "html": html})));
    }
    let section = groups().iter().flat_map(|group| &group.sections).find(|section| section.path == path)?;
    Some(("section.html", section.detailed()))
}

fn render(template: &str, base: &str, path: &str, page: &Value) -> Result<String, minijinja::Error> {
    let mut templates = Environment::new();
    templates.add_filter("json", |value: minijinja::Value| serde_json::to_string_pretty(&value).unwrap_or_default());
    templates.add_template("layout.html", include_str!("docs/layout.html"))?;
    templates.add_template("macros.html", include_str!("docs/macros.html"))?;
    templates.add_template("home.html", include_str!("docs/home.html"))?;
    templates.add_template("section.html", include_str!("docs/section.html"))?;
    templates.add_template("guide.html", include_str!("docs/guide.html"))?;
    let spec = &*openapi::DOCUMENT;
    let groups: Vec<Value> = groups().iter().map(Group::shown).collect();
    let guides: Vec<Value> = registry()
        .guides
        .iter()
        .map(|(name, text)| json!({"path": format!("/docs/guides/{name}"), "title": guides::title(text), "about": guides::about(text)}))
        .collect();
    let serde = |value: &Value| minijinja::Value::from(minijinja::value::Serde(value));
    templates.get_template(template)?.render(context! {
        base, path,
        page => serde(page),
        info => serde(&spec["info"]),
        schemas => serde(&spec["components"]["schemas"]),
        homes => serde(&shown::homes()),
        groups => serde(&Value::Array(groups)),
        guides => serde(&Value::Array(guides)),
    })
}
