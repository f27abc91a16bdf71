//! The files of the console. They are served under the hash of all of them, so that browsers can keep them for good and a
//! page never mixes files of two versions.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::SystemTime;

use axum::body::Body;
use axum::http::{HeaderValue, Method, Request, Response};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use engine::app::App;
use engine::error::{Code, Error};
use engine::http::fixed::Fixed;
use engine::http::{dispatch, reply};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::join::Joined;
use super::{files, modules, schema};

/// The prefix of their paths.
pub const PREFIX: &str = "/assets/";

/// Where browsers look for the icon of pages that name none.
pub const ICON: &str = "/favicon.ico";

/// The description of all records, which is drawn from the registry.
const SCHEMA: &str = "schema.json";

/// The style of the frame, which every page contains.
pub const STYLE: &str = "style.css";

/// The files of release builds; debug builds have none and read the folder.
static EMBEDDED: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/console_files.rs"));

/// All files, ready to be served.
pub struct Assets {
    /// The hash of all of them.
    pub hash: String,
    served: BTreeMap<String, Fixed>,
    texts: BTreeMap<String, Bytes>,
    joined: Joined,
    words: BTreeMap<&'static str, Value>,
    /// The policy of every page, which allows no script in it.
    pub policy: String,
    /// The modules of a page, by the module of its screen.
    modules: Mutex<BTreeMap<String, Arc<[String]>>>,
}

/// The version of the console: the hash when the program was started.
pub fn version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(|| current().hash.clone());
    &VERSION
}

/// Returns the files: those of the binary, or those of the folder as they are now.
pub fn current() -> Arc<Assets> {
    type Seen = Option<(Vec<SystemTime>, Arc<Assets>)>;
    static LAST: Mutex<Seen> = Mutex::new(None);
    let times = times();
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    match &*last {
        Some((seen, assets)) if *seen == times => assets.clone(),
        _ => {
            let assets = Arc::new(Assets::of(read()));
            *last = Some((times, assets.clone()));
            assets
        }
    }
}

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/console"))
}

/// When the files of the folder were changed; nothing in release builds.
fn times() -> Vec<SystemTime> {
    if !cfg!(debug_assertions) {
        return Vec::new();
    }
    let paths = files::served(folder()).unwrap_or_default();
    paths.iter().filter_map(|path| folder().join(path).metadata().ok()?.modified().ok()).collect()
}

fn read() -> BTreeMap<String, Bytes> {
    if !cfg!(debug_assertions) {
        return EMBEDDED.iter().map(|(path, bytes)| (path.to_string(), Bytes::from_static(bytes))).collect();
    }
    let paths = files::served(folder()).unwrap_or_default();
    paths.into_iter().filter_map(|path| Some((path.clone(), std::fs::read(folder().join(path)).ok()?.into()))).collect()
}

impl Assets {
    fn of(mut texts: BTreeMap<String, Bytes>) -> Assets {
        for (path, bytes) in &mut texts {
            let text = String::from_utf8_lossy(bytes);
            match path.rsplit_once('.') {
                Some((_, "css")) => *bytes = tight(&text).into(),
                Some((_, "json")) => *bytes = joined_lines(&text).into(),
                _ => {}
            }
        }
        texts.insert(SCHEMA.to_string(), schema::TEXT.as_bytes().into());
        let is_module = |path: &str| path.ends_with(".js");
        let modules = texts.iter().filter(|(path, _)| is_module(path));
        let sources = modules.filter_map(|(path, bytes)| Some((path.as_str(), std::str::from_utf8(bytes).ok()?)));
        let joined = Joined::of(&sources.collect());
        let mut files: BTreeMap<&str, Bytes> = texts
            .iter()
            .filter(|(path, _)| !is_module(path))
            .map(|(path, bytes)| (path.as_str(), bytes.clone()))
            .collect();
        files.extend(joined.files.iter().map(|(path, text)| (path.as_str(), Bytes::from(text.clone()))));
        let mut hash = Sha256::new();
        for (path, bytes) in &files {
            hash.update(path.as_bytes());
            hash.update((bytes.len() as u64).to_be_bytes());
            hash.update(bytes);
        }
        let hash: String = hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let ready = |path: &str, bytes: Bytes| {
            let kind = files::media_type(path).unwrap_or("application/json");
            (path.to_string(), Fixed::immutable(kind, bytes))
        };
        let served = files.into_iter().map(|(path, bytes)| ready(path, bytes)).collect();
        let read =
            |language| texts.get(&format!("words/{language}.json")).and_then(|text| serde_json::from_slice(text).ok());
        let words = ["en", "nl"].into_iter().filter_map(|language| Some((language, read(language)?))).collect();
        let policy = policy(texts.get(STYLE).map_or(b"", |style| style));
        Assets { hash, served, texts, joined, words, policy, modules: Mutex::default() }
    }

    /// Returns the URL path of a file.
    pub fn path(&self, file: &str) -> String {
        path(&self.hash, file)
    }

    /// Returns the text of a file, or an empty one.
    pub fn text(&self, file: &str) -> &str {
        self.texts.get(file).and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default()
    }

    /// Returns the words of a language, by their keys.
    pub fn words(&self, language: &str) -> &Value {
        self.words.get(language).unwrap_or(&Value::Null)
    }

    /// Returns the modules that a page with this screen loads, as files: the core and the screen with all that they import.
    pub fn modules_of(&self, screen: &str) -> Arc<[String]> {
        let mut known = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        let modules = || {
            let all = ["app.js", self.joined.file_of(screen)];
            modules::with_imports(&all, |path| self.joined.files.get(path).map(String::as_str)).into()
        };
        known.entry(screen.to_string()).or_insert_with(modules).clone()
    }
}

/// Leaves the comments and the indentation out of a style sheet.
fn tight(style: &str) -> String {
    let parts = style.split("/*").enumerate();
    let text: String =
        parts.map(|(at, part)| if at == 0 { part } else { part.split_once("*/").map_or("", |own| own.1) }).collect();
    text.lines().map(str::trim).filter(|line| !line.is_empty()).flat_map(|line| [line, "\n"]).collect()
}

/// Leaves the line breaks and the indentation out of JSON. Texts have none, since they are escaped there.
fn joined_lines(json: &str) -> String {
    json.lines().map(str::trim).collect()
}

fn path(hash: &str, file: &str) -> String {
    format!("{PREFIX}{hash}/{file}")
}

/// Returns the policy that allows no script in a page and no other style.
fn policy(style: &[u8]) -> String {
    let style = BASE64_STANDARD.encode(Sha256::digest(style));
    format!(
        "default-src 'none'; script-src 'self'; style-src 'self' 'sha256-{style}'; \
         img-src 'self' data: blob:; connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; \
         frame-ancestors 'none'; object-src 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
}

/// Returns the path of a file for the metrics.
pub fn route(_: &str) -> &'static str {
    "/assets/{file}"
}

/// Handles a request for a file. They are the same bytes for everybody and cost no more than refusing a request, so there
/// is no rate limit: one page has dozens of them.
pub async fn answer(app: Arc<App>, request: Request<Body>) -> Response<Body> {
    let request_id = dispatch::request_id(&app, request.headers());
    let refuse = |code, message: &str| reply::error_response(&Error::new(code, message), &request_id, false);
    let mut response = if matches!(*request.method(), Method::GET | Method::HEAD) {
        let assets = current();
        let path = request.uri().path();
        let wanted = path.strip_prefix(PREFIX).and_then(|rest| rest.split_once('/'));
        let file = wanted.filter(|(hash, _)| *hash == assets.hash).map(|(_, file)| file);
        let file = if path == ICON { Some("icon.png") } else { file };
        let found = file.and_then(|file| assets.served.get(file));
        match found {
            Some(file) => file.answer(&request),
            None => refuse(Code::NotFound, "This file does not exist."),
        }
    } else {
        reply::with_allow(refuse(Code::MethodNotAllowed, "Only GET is supported here."), "GET, HEAD")
    };
    reply::finish(&mut response, &request_id);
    let headers = response.headers_mut();
    if request.uri().path() == ICON {
        headers.insert("cache-control", HeaderValue::from_static("public, max-age=86400"));
    }
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    headers.insert("referrer-policy", HeaderValue::from_static("no-referrer"));
    if request.method() == Method::HEAD { dispatch::without_body(response) } else { response }
}
