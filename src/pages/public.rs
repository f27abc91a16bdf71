//! The public page of a document, for anyone who has its URL: to view, pay or accept it. It needs no login, runs no
//! script and sets no cookie.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION,
    ORIGIN, RETRY_AFTER, USER_AGENT,
};
use axum::http::request::Parts;
use axum::http::{Method, Request, Response, StatusCode};
use engine::accounts::Account;
use engine::app::App;
use engine::context::{Actor, Ctx};
use engine::error::{Code, Error, Result};
use engine::http::responses::Unsent;
use engine::http::{bodies, dispatch, reply, session, upload};
use engine::site::Site;
use minijinja::value::Serde;
use serde_json::{Value, json};
use store::Tx;

use crate::documents::page::{KINDS, Kind, colors, final_one, missing};
use crate::documents::{Invoice, Quote, Which, quote};
use crate::payments::collecting;

/// Maximum size of a form: ten times that of the longest name.
const MAX_FORM: usize = 8 * 1024;
/// Maximum length of the name of the person who accepts, in characters.
const MAX_NAME: usize = 100;

/// Handles a request under `/d/`.
pub async fn answer(app: Arc<App>, request: Request<Body>) -> Response<Body> {
    let request_id = dispatch::request_id(&app, request.headers());
    let visit = Visit { request_id, nonce: app.ids.token(), can_pay: AtomicBool::new(false), app };
    let is_head = request.method() == Method::HEAD;
    let done = visit.walk(request).await;
    let mut response = done.unwrap_or_else(|error| visit.refuse(&error));
    reply::finish(&mut response, &visit.request_id);
    protect(response.headers_mut(), &visit.nonce, &visit.forms());
    if is_head { dispatch::without_body(response) } else { response }
}

/// One request.
struct Visit {
    app: Arc<App>,
    request_id: Arc<str>,
    /// The nonce that allows our own styles.
    nonce: String,
    /// Whether the page has a payment button.
    can_pay: AtomicBool,
}

/// The document of a token.
struct Found {
    kind: &'static Kind,
    caller: Actor,
    id: String,
    token: String,
}

/// A rejected action of the visitor, shown at the top of the page.
#[derive(Default)]
struct Refused {
    /// The name as typed, if it is not valid.
    name: Option<String>,
    /// Whether it is too late to respond.
    late: bool,
}

impl Visit {
    async fn walk(&self, request: Request<Body>) -> Result<Response<Body>> {
        let (head, body) = request.into_parts();
        self.app.visitors.limit(&head.extensions, &head.headers)?;
        let rest = head.uri.path().strip_prefix("/d/").unwrap_or_default();
        let (token, part) = rest.split_once('/').map_or((rest, None), |(token, part)| (token, Some(part)));
        let allow: &[&str] = match part {
            None | Some("pdf" | "logo") => &["GET", "HEAD"],
            Some("accept" | "reject" | "pay") => &["POST"],
            Some(_) => return Err(missing()),
        };
        let reads = matches!(head.method, Method::GET | Method::HEAD);
        // A reload of a form's URL shows the page.
        if !allow.contains(&"GET") && reads && is_token(token) {
            return Ok(to_page(token));
        }
        if !allow.contains(&head.method.as_str()) {
            let error = Error::new(Code::MethodNotAllowed, "This method is not supported here; see the Allow header.");
            return Ok(reply::with_allow(self.refuse(&error), &allow.join(", ")));
        }
        let found = self.find(token).await?;
        match part {
            Some("pdf") => self.pdf(&found).await,
            Some("logo") => {
                let logo = self.read(&found, found.kind.logo).await?;
                upload::send(&self.app, &logo, self.admit(&found).await?).await
            }
            Some("pay") => self.pay(&found, &head, body).await,
            Some(answer) => self.take_answer(&found, &head, body, answer == "accept").await,
            None => {
                let response = self.page(&found, StatusCode::OK, Refused::default()).await?;
                if is_person(&head) && !self.is_colleague(&found, &head).await {
                    self.note_view(&found).await;
                }
                Ok(response)
            }
        }
    }

    /// Finds the document of a token, in any account.
    async fn find(&self, token: &str) -> Result<Found> {
        if !is_token(token) {
            return Err(missing());
        }
        let own = token.to_string();
        let found = self.app.store.read(move |tx| {
            for kind in &KINDS {
                if let Some((account, id)) = (kind.find)(tx, &own)? {
                    return Ok::<_, Error>(Some((kind, Account::numbered(tx, account)?, id)));
                }
            }
            Ok(None)
        });
        let (kind, account, id) = found.await?.ok_or_else(missing)?;
        account.check_open()?;
        let caller = Actor { request_id: self.request_id.clone(), ..self.app.acting(account, "visitor") };
        Ok(Found { kind, caller, id, token: token.to_string() })
    }

    async fn read<T: Send + 'static>(&self, found: &Found, work: fn(&mut Tx, &Ctx, &str) -> Result<T>) -> Result<T> {
        let (caller, id) = (found.caller.clone(), found.id.clone());
        let read = self.app.store.read(move |tx| {
            let ctx = caller.reading(tx)?;
            work(tx, &ctx, &id)
        });
        read.await
    }

    async fn write<T: Send + 'static>(
        &self,
        found: &Found,
        work: impl Fn(&mut Tx, &Ctx, &str) -> Result<T> + Send + Sync + 'static,
    ) -> Result<T> {
        let (caller, id) = (found.caller.clone(), found.id.clone());
        let write = self.app.store.write(caller.account.number, move |tx| {
            let ctx = caller.writing(tx)?;
            work(tx, &ctx, &id)
        });
        write.await
    }

    async fn page(&self, found: &Found, status: StatusCode, refused: Refused) -> Result<Response<Body>> {
        let mut data = self.read(found, found.kind.view).await?;
        let can_pay =
            data["can_transfer"] == true && self.read(found, |tx, ctx, _| collecting::can_pay_online(tx, ctx)).await?;
        data["pay_online"] = json!(can_pay);
        let is_invoice = found.kind.which == Which::Invoice;
        data["test"] = json!(is_invoice && self.read(found, collecting::is_test).await?);
        self.can_pay.store(can_pay, Ordering::Relaxed);
        data["address"] = json!(format!("/d/{}", found.token));
        data["refused"] = json!({"is_name": refused.name.is_some(), "name": refused.name, "late": refused.late});
        self.draw(status, data)
    }

    async fn pdf(&self, found: &Found) -> Result<Response<Body>> {
        let content = self.read(found, found.kind.pdf).await?;
        let mut response = upload::send(&self.app, &content, self.admit(found).await?).await?;
        // A download: the page itself shows the document.
        let headers = response.headers_mut();
        let how = headers.get(CONTENT_DISPOSITION).and_then(|how| how.to_str().ok()).unwrap_or_default();
        let how = how.replacen("inline", "attachment", 1);
        reply::insert(headers, CONTENT_DISPOSITION, &how);
        Ok(response)
    }

    /// Admits a download. The limit on unsent responses applies to the visitors of an account separately from its keys.
    async fn admit(&self, found: &Found) -> Result<Unsent> {
        self.app.responses.admit(-found.caller.account.number).await
    }

    /// Whether somebody of the account itself looks, who has signed in to the console: the client has not seen it then.
    async fn is_colleague(&self, found: &Found, head: &Parts) -> bool {
        let Ok(secret) = session::secret(&self.app.site, &head.headers) else { return false };
        let caller = self.app.sessions.session(&self.app.store, &self.app.clock, secret.into()).await;
        caller.is_ok_and(|caller| caller.account.number == found.caller.account.number)
    }

    /// Records the first view. The page is shown even if this fails.
    async fn note_view(&self, found: &Found) {
        if let Err(error) = self.write(found, found.kind.note_view).await {
            tracing::warn!(request_id = %self.request_id, %error, "Cannot record a view of a document.");
        }
    }

    async fn take_answer(&self, found: &Found, head: &Parts, body: Body, accepts: bool) -> Result<Response<Body>> {
        if found.kind.which != Which::Quote {
            return Err(missing());
        }
        if !comes_from_us(head, &self.app.site) {
            return Err(Error::new(Code::Forbidden, "The form was submitted from another site."));
        }
        let sent = read_form(&self.app, head, body).await?;
        let sent = form_urlencoded::parse(&sent).find(|(key, _)| key == "name").map(|(_, value)| value);
        let sent = sent.unwrap_or_default();
        let name = clean_name(&sent);
        if accepts && name.is_none() {
            let refused = Refused { name: Some(sent.chars().take(4 * MAX_NAME).collect()), late: false };
            return self.page(found, StatusCode::UNPROCESSABLE_ENTITY, refused).await;
        }
        let name = name.unwrap_or_default();
        let done = self.write(found, move |tx, ctx, id| {
            let quote: Quote = final_one(tx, ctx, id)?;
            if accepts { quote::accept_by(tx, ctx, quote, &name) } else { quote::reject_now(tx, ctx, quote) }.map(drop)
        });
        match done.await {
            Err(error) if error.code == Code::InvalidTransition => {
                self.page(found, StatusCode::CONFLICT, Refused { name: None, late: true }).await
            }
            done => done.map(|()| to_page(&found.token)),
        }
    }

    /// The origins that forms can lead to: browsers also check the redirect to the provider's page.
    fn forms(&self) -> String {
        if !self.can_pay.load(Ordering::Relaxed) {
            return "'self'".to_string();
        }
        let provider = web_origin(&self.app.config.mollie_url);
        format!("'self' https://*.mollie.com {provider}").trim_end().to_string()
    }

    /// Redirects to the payment page of the invoice.
    async fn pay(&self, found: &Found, head: &Parts, body: Body) -> Result<Response<Body>> {
        if found.kind.which != Which::Invoice {
            return Err(missing());
        }
        if !comes_from_us(head, &self.app.site) {
            return Err(Error::new(Code::Forbidden, "The form was submitted from another site."));
        }
        read_form(&self.app, head, body).await?;
        let payment = self.write(found, |tx, ctx, id| {
            let invoice: Invoice = final_one(tx, ctx, id)?;
            collecting::pay_online(tx, ctx, &invoice)
        });
        let payment = payment.await?;
        let (app, caller) = (self.app.clone(), found.caller.clone());
        let asked = tokio::task::spawn_blocking(move || collecting::ask(&app, &caller, &payment.base.id, false)).await;
        let asked = asked.map_err(|panic| Error::internal(format!("requesting a payment: {panic}")))??;
        let payment = asked.map_err(|trouble| {
            let mut error =
                Error::new(Code::Unavailable, "Online payment is unavailable at the moment; try again later.");
            error.internal = Some(trouble.words().to_string());
            error.retry_after = Some(10);
            error
        })?;
        let url = payment.payment_url();
        Ok(if url.is_empty() { to_page(&found.token) } else { lead_to(url) })
    }

    fn draw(&self, status: StatusCode, mut data: Value) -> Result<Response<Body>> {
        static TEMPLATES: LazyLock<Result<minijinja::Environment<'static>, minijinja::Error>> = LazyLock::new(|| {
            let mut templates = minijinja::Environment::new();
            templates.add_template("public.html", include_str!("public.html"))?;
            Ok(templates)
        });
        data["nonce"] = json!(self.nonce);
        let drawn = TEMPLATES.as_ref().map_err(ToString::to_string).and_then(|templates| {
            let template = templates.get_template("public.html").map_err(|error| error.to_string())?;
            template.render(minijinja::Value::from(Serde(&data))).map_err(|error| format!("{error:#}"))
        });
        let drawn = drawn.map_err(|error| Error::internal(format!("a page cannot be rendered: {error}")))?;
        let mut response = Response::new(Body::from(drawn));
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
        Ok(response)
    }

    /// Shows an error as a page in both languages, since the visitor's language is unknown.
    fn refuse(&self, error: &Error) -> Response<Body> {
        let status = reply::status(error.code);
        if status.is_server_error() {
            tracing::error!(
                request_id = %self.request_id, route = "/d/{token}", status = status.as_u16(),
                cause = error.internal.as_deref().unwrap_or(""), "A request failed: {}", error.message
            );
        }
        let why = match status {
            _ if error.code == Code::AccountClosed => "closed",
            StatusCode::NOT_FOUND => "missing",
            StatusCode::TOO_MANY_REQUESTS => "often",
            _ if status.is_server_error() => "broken",
            _ => "refused",
        };
        let data = json!({"language": "nl", "why": why, "request_id": &*self.request_id, "colors": colors(&json!({}))});
        let mut response = self.draw(status, data).unwrap_or_else(|error| {
            let mut response = Response::new(Body::from(error.to_string()));
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            response
        });
        if let Some(seconds) = error.retry_after {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// Reads a complete form.
pub async fn read_form(app: &App, head: &Parts, body: Body) -> Result<Vec<u8>> {
    let kind = head.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        return Err(Error::new(Code::UnsupportedMediaType, "Submit the form of the page."));
    }
    let patience = Duration::from_secs(app.config.body_timeout_seconds);
    let read = async {
        let read = axum::body::to_bytes(body, MAX_FORM).await;
        Ok(read.map_err(|_| Error::new(Code::BodyTooLarge, "The form is too large."))?.to_vec())
    };
    bodies::in_time(&app.bodies, app.visitors.key(&head.extensions, &head.headers), patience, read).await
}

/// Sets headers that keep the URL secret and restrict the content of the page; `forms` are the origins that a form can
/// lead to.
pub fn protect(headers: &mut HeaderMap, nonce: &str, forms: &str) {
    for (name, value) in [
        ("referrer-policy", "no-referrer"),
        ("x-frame-options", "DENY"),
        ("x-robots-tag", "noindex, nofollow"),
        (CACHE_CONTROL.as_str(), "private, no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // File contents have a stricter policy.
    if !headers.contains_key(CONTENT_SECURITY_POLICY) {
        let policy = format!(
            "default-src 'none'; style-src 'nonce-{nonce}'; img-src 'self' data:; form-action {forms}; base-uri 'none'; \
             frame-ancestors 'none'"
        );
        reply::insert(headers, CONTENT_SECURITY_POLICY, &policy);
    }
}

fn to_page(token: &str) -> Response<Body> {
    lead_to(&format!("/d/{token}"))
}

fn lead_to(address: &str) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    reply::insert(response.headers_mut(), LOCATION, address);
    response
}

/// Returns the `https://host:port` of a URL.
fn web_origin(url: &str) -> String {
    url.splitn(4, '/').take(3).collect::<Vec<_>>().join("/")
}

fn is_token(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether the request seems to come from a person, and not from prefetching or a link preview.
fn is_person(head: &Parts) -> bool {
    let says = |name: &str, words: &[&str]| {
        let told = head.headers.get(name).and_then(|told| told.to_str().ok()).unwrap_or_default().to_lowercase();
        words.iter().any(|word| told.contains(word))
    };
    let ahead = ["sec-purpose", "purpose", "x-purpose", "x-moz"];
    let programs = ["bot", "crawler", "spider", "preview", "facebookexternalhit", "whatsapp"];
    head.method == Method::GET
        && !ahead.iter().any(|name| says(name, &["prefetch", "prerender", "preview"]))
        && !says(USER_AGENT.as_str(), &programs)
}

/// Whether a form comes from our own page, as far as the browser says. The token is already a secret that another site
/// does not have; this is an additional check.
pub fn comes_from_us(head: &Parts, site: &Site) -> bool {
    let told = |name: &str| head.headers.get(name).and_then(|told| told.to_str().ok());
    if let Some(from) = told("sec-fetch-site") {
        return matches!(from, "same-origin" | "none");
    }
    match told(ORIGIN.as_str()) {
        // Browsers send null on pages without a referrer, such as ours.
        None | Some("null") => true,
        Some(origin) => session::is_own_origin(head, site, origin),
    }
}

/// Returns the name on one line, if it is valid.
fn clean_name(sent: &str) -> Option<String> {
    let words = sent.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let name = words.collect::<Vec<_>>().join(" ");
    let can_be = name.chars().count() <= MAX_NAME && name.chars().any(char::is_alphanumeric);
    can_be.then_some(name)
}
