//! The page of a document for whoever has its address: to read it, to pay it, to accept it. It needs
//! no login, runs no script and sets no cookie.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, LOCATION,
    ORIGIN, RETRY_AFTER, USER_AGENT,
};
use axum::http::request::Parts;
use axum::http::{Method, Request, Response, StatusCode};
use minijinja::value::Serde;
use serde_json::{Value, json};
use store::Tx;

use super::{dispatch, reply, upload};
use crate::accounts::Account;
use crate::app::App;
use crate::call::Content;
use crate::context::{Caller, Ctx};
use crate::error::{Code, Error, Result};
use crate::printing;
use crate::record::{Record, When};
use crate::records;
use crate::resources::document::pdf::{self, Style};
use crate::resources::document::{
    Document, DocumentKind, InvoiceKind, Mode, Quote, QuoteKind, Which, WorkorderKind, quote,
};
use crate::resources::file::File;
use crate::site::Site;

/// The largest form: a name of a hundred characters is a tenth of it.
const MAX_FORM: usize = 8 * 1024;
/// The longest name of who accepts, in characters.
const MAX_NAME: usize = 100;

/// Answers a request under `/d/`.
pub async fn answer(app: Arc<App>, request: Request<Body>) -> Response<Body> {
    let request_id = dispatch::request_id(&app, request.headers());
    let visit = Visit { request_id, nonce: app.ids.token(), app };
    let is_head = request.method() == Method::HEAD;
    let done = visit.walk(request).await;
    let mut response = done.unwrap_or_else(|error| visit.refuse(&error));
    reply::finish(&mut response, &visit.request_id);
    visit.protect(response.headers_mut());
    if is_head { dispatch::without_body(response) } else { response }
}

/// One request.
struct Visit {
    app: Arc<App>,
    request_id: Arc<str>,
    /// Lets our own styles through, and nobody else's.
    nonce: String,
}

/// The document that a token opens.
struct Found {
    kind: &'static Kind,
    caller: Caller,
    id: String,
    token: String,
}

/// What a visitor tried that did not work, said above the page.
#[derive(Default)]
struct Refused {
    /// The name as it was typed, when it cannot be one.
    name: Option<String>,
    /// Whether it is too late for an answer.
    late: bool,
}

impl Visit {
    async fn walk(&self, request: Request<Body>) -> Result<Response<Body>> {
        let (head, body) = request.into_parts();
        let rest = head.uri.path().strip_prefix("/d/").unwrap_or_default();
        let (token, part) = rest.split_once('/').map_or((rest, None), |(token, part)| (token, Some(part)));
        let allow: &[&str] = match part {
            None | Some("pdf" | "logo") => &["GET", "HEAD"],
            Some("accept" | "reject") => &["POST"],
            Some(_) => return Err(missing()),
        };
        let reads = matches!(head.method, Method::GET | Method::HEAD);
        // Who asks again for the address that a form was sent to wants the page.
        if !allow.contains(&"GET") && reads && is_token(token) {
            return Ok(to_page(token));
        }
        if !allow.contains(&head.method.as_str()) {
            let error = Error::new(Code::MethodNotAllowed, "This method cannot be used here; see the Allow header.");
            return Ok(reply::with_allow(self.refuse(&error), &allow.join(", ")));
        }
        let found = self.find(token).await?;
        match part {
            Some("pdf") => self.pdf(&found).await,
            Some("logo") => {
                let logo = self.read(&found, found.kind.logo).await?;
                upload::send(&self.app, &logo).await
            }
            Some(answer) => self.take_answer(&found, &head, body, answer == "accept").await,
            None => {
                let response = self.page(&found, StatusCode::OK, Refused::default()).await?;
                if is_person(&head) {
                    self.note_view(&found).await;
                }
                Ok(response)
            }
        }
    }

    /// The document of a token, whose account nobody told us.
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
        let caller = Caller {
            account: Arc::new(account),
            actor: "visitor".into(),
            request_id: self.request_id.clone(),
            if_match: None,
            clock: self.app.clock,
            ids: self.app.ids,
            site: self.app.site.clone(),
        };
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
        data["address"] = json!(format!("/d/{}", found.token));
        data["refused"] = json!({"is_name": refused.name.is_some(), "name": refused.name, "late": refused.late});
        self.draw(status, data)
    }

    async fn pdf(&self, found: &Found) -> Result<Response<Body>> {
        let content = self.read(found, found.kind.pdf).await?;
        let mut response = upload::send(&self.app, &content).await?;
        // To be saved: the page itself shows the document.
        let headers = response.headers_mut();
        let how = headers.get(CONTENT_DISPOSITION).and_then(|how| how.to_str().ok()).unwrap_or_default();
        let how = how.replacen("inline", "attachment", 1);
        reply::insert(headers, CONTENT_DISPOSITION, &how);
        Ok(response)
    }

    /// Notes the first view. A page is shown whether this works or not.
    async fn note_view(&self, found: &Found) {
        if let Err(error) = self.write(found, found.kind.note_view).await {
            tracing::warn!(request_id = %self.request_id, %error, "A view of a document could not be noted.");
        }
    }

    async fn take_answer(&self, found: &Found, head: &Parts, body: Body, accepts: bool) -> Result<Response<Body>> {
        if found.kind.which != Which::Quote {
            return Err(missing());
        }
        if !comes_from_us(head, &self.app.site) {
            return Err(Error::new(Code::Forbidden, "The form was sent from another site."));
        }
        let sent = self.form(&head.headers, body).await?;
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

    async fn form(&self, headers: &HeaderMap, body: Body) -> Result<Vec<u8>> {
        let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            return Err(Error::new(Code::UnsupportedMediaType, "Send the form of the page."));
        }
        let patience = Duration::from_secs(self.app.config.body_timeout_seconds);
        let read = tokio::time::timeout(patience, axum::body::to_bytes(body, MAX_FORM)).await;
        let read = read.map_err(|_| Error::new(Code::RequestTimeout, "The form did not arrive in time."))?;
        let bytes = read.map_err(|_| Error::new(Code::BodyTooLarge, "The form is too large."))?;
        Ok(bytes.to_vec())
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
        let drawn = drawn.map_err(|error| Error::internal(format!("a page cannot be drawn: {error}")))?;
        let mut response = Response::new(Body::from(drawn));
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
        Ok(response)
    }

    /// An error as a page in both languages: nobody knows which the visitor reads.
    fn refuse(&self, error: &Error) -> Response<Body> {
        let status = reply::status(error.code);
        if status.is_server_error() {
            tracing::error!(
                request_id = %self.request_id, route = "/d/{token}", status = status.as_u16(),
                cause = error.internal.as_deref().unwrap_or(""), "A request failed: {}", error.message
            );
        }
        let why = match status {
            StatusCode::NOT_FOUND => "missing",
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

    /// The headers that keep the address a secret and the page free of what others write.
    fn protect(&self, headers: &mut HeaderMap) {
        for (name, value) in [
            ("referrer-policy", "no-referrer"),
            ("x-frame-options", "DENY"),
            ("x-robots-tag", "noindex, nofollow"),
            (CACHE_CONTROL.as_str(), "private, no-store"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        // A content has a stricter one.
        if !headers.contains_key(CONTENT_SECURITY_POLICY) {
            let policy = format!(
                "default-src 'none'; style-src 'nonce-{}'; img-src 'self' data:; form-action 'self'; base-uri 'none'; \
                 frame-ancestors 'none'",
                self.nonce
            );
            reply::insert(headers, CONTENT_SECURITY_POLICY, &policy);
        }
    }
}

fn missing() -> Error {
    Error::new(Code::NotFound, "There is nothing at this address.")
}

fn to_page(token: &str) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    reply::insert(response.headers_mut(), LOCATION, &format!("/d/{token}"));
    response
}

fn is_token(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether somebody looks, as far as one can tell: no browser that fetches ahead, no program that
/// draws a preview of a link.
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

/// Whether a form comes from our own page, when the browser tells. The token is the secret that a
/// form on another site would need; this is a second lock.
fn comes_from_us(head: &Parts, site: &Site) -> bool {
    let told = |name: &str| head.headers.get(name).and_then(|told| told.to_str().ok());
    if let Some(from) = told("sec-fetch-site") {
        return matches!(from, "same-origin" | "none");
    }
    match told(ORIGIN.as_str()) {
        // Browsers say null on pages without a referrer, as ours are.
        None | Some("null") => true,
        Some(origin) => {
            let host = head.uri.authority().map(|host| host.as_str()).or_else(|| told(HOST.as_str()));
            let same_host = origin.split_once("://").is_some_and(|(_, from)| Some(from) == host);
            same_host || site.address("/").starts_with(&format!("{origin}/"))
        }
    }
}

/// A name in one line, if it can be one.
fn clean_name(sent: &str) -> Option<String> {
    let words = sent.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let name = words.collect::<Vec<_>>().join(" ");
    let can_be = name.chars().count() <= MAX_NAME && name.chars().any(char::is_alphanumeric);
    can_be.then_some(name)
}

/// A verb on the document with this id.
type Verb<T> = fn(&mut Tx, &Ctx, &str) -> Result<T>;
/// The account and the id of the document with this token.
type Find = fn(&mut Tx, &str) -> Result<Option<(i64, String)>>;

/// What visitors can do with one kind of document.
struct Kind {
    which: Which,
    find: Find,
    view: Verb<Value>,
    note_view: Verb<()>,
    pdf: Verb<Content>,
    logo: Verb<Content>,
}

static KINDS: [Kind; 3] = [Kind::of::<InvoiceKind>(), Kind::of::<QuoteKind>(), Kind::of::<WorkorderKind>()];

impl Kind {
    const fn of<K: DocumentKind>() -> Kind {
        Kind {
            which: K::WHICH,
            find: find::<K>,
            view: view::<K>,
            note_view: note_view::<K>,
            pdf: |tx, ctx, id| {
                let document: Document<K> = final_one(tx, ctx, id)?;
                pdf::content_of(tx, ctx, &document)
            },
            logo: |tx, ctx, id| {
                let document: Document<K> = final_one(tx, ctx, id)?;
                logo_of(tx, ctx, &document).map(|file| Content::kept(&file)).ok_or_else(missing)
            },
        }
    }
}

fn find<K: DocumentKind>(tx: &mut Tx, token: &str) -> Result<Option<(i64, String)>> {
    let sql = format!("SELECT account_id, id FROM {} WHERE token = $1", Document::<K>::shape().table);
    tx.first(&sql, &[token.into()], |row| Ok((row.int(0)?, row.text(1)?.to_string())))
}

/// The document, which is nobody's business as long as it is a draft.
fn final_one<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, id: &str) -> Result<Document<K>> {
    let document: Document<K> = records::find(tx, ctx, id)?;
    if document.is_final() { Ok(document) } else { Err(missing()) }
}

fn note_view<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, id: &str) -> Result<()> {
    let before: Document<K> = final_one(tx, ctx, id)?;
    if before.viewed_at.0.is_some() {
        return Ok(());
    }
    let mut document = before.clone();
    document.viewed_at = When(Some(ctx.now));
    records::change(tx, ctx, &before, &mut document, "updated")?;
    if K::WHICH == Which::Quote {
        records::happened(tx, ctx, &document, "viewed")?;
    }
    Ok(())
}

/// The logo as it was when the document became final, if it is still there.
fn logo_of<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, document: &Document<K>) -> Option<File> {
    let sender: Value = serde_json::from_str(&document.sender).unwrap_or_default();
    let id = sender["meta"]["logo_file_id"].as_str().filter(|id| !id.is_empty())?;
    let file: File = records::find(tx, ctx, id).ok()?;
    matches!(file.content_type.as_str(), "image/png" | "image/jpeg").then_some(file)
}

/// What the page shows.
fn view<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, id: &str) -> Result<Value> {
    let document: Document<K> = final_one(tx, ctx, id)?;
    let mut data = printed(tx, ctx, &document)?;
    let style = Style(document.language);
    let labels = printing::labels();
    let mut words = labels[document.language.wire()]["common"].clone();
    let own = &labels[document.language.wire()][data["kind"].as_str().unwrap_or_default()];
    for (key, word) in own.as_object().into_iter().flatten() {
        words[key.as_str()] = word.clone();
    }
    let day = |date: Option<jiff::civil::Date>| date.map(|date| style.date(date));
    data["words"] = words;
    data["date_words"] = json!(day(document.invoice_date.0));
    data["due_date_words"] = json!(day(document.due_date.0));
    data["has_logo"] = json!(logo_of(tx, ctx, &document).is_some());
    data["website"] = json!(website(&data["sender"]["website"]));
    data["colors"] = colors(&data["colors"]);
    data["state"] = state(ctx, &document);
    data["pay"] = how_to_pay(&document, &data);
    data["can_answer"] = json!(can_answer(ctx, &document));
    let open = document.open_amount().scaled() != document.total_incl_vat.scaled() && !document.is_credit;
    for (name, amount) in
        [("paid", document.paid_amount), ("credited", document.credited_amount), ("open", document.open_amount())]
    {
        let shown = open && (amount.scaled() != 0 || name == "open");
        data["totals"][name] = if shown { json!(style.money(amount)) } else { json!("") };
    }
    Ok(data)
}

/// What is on the PDF.
fn printed<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, document: &Document<K>) -> Result<Value> {
    // Of a draft there is never a file, so that what would be on it is given back.
    let draft = Document { generation_mode: Mode::Draft, ..document.clone() };
    match pdf::content_of(tx, ctx, &draft)? {
        Content::Printed(print) => Ok(print.data),
        Content::Kept { .. } => Err(Error::internal("a draft has a file")),
    }
}

/// A web address that can be a link.
fn website(address: &Value) -> Option<&str> {
    address.as_str().filter(|address| address.starts_with("https://") || address.starts_with("http://"))
}

/// Whether a quote can still be accepted or rejected.
fn can_answer<K: DocumentKind>(ctx: &Ctx, document: &Document<K>) -> bool {
    let answered = matches!(document.payment_status.as_str(), "accepted" | "invoiced" | "rejected" | "expired");
    K::WHICH == Which::Quote && !answered && !is_late(ctx, document)
}

fn is_late<K: DocumentKind>(ctx: &Ctx, document: &Document<K>) -> bool {
    document.due_date.0.is_some_and(|due| due < ctx.now.date(&ctx.zone))
}

/// Whether money is still wanted.
fn is_owed<K: DocumentKind>(document: &Document<K>) -> bool {
    let settled = matches!(document.payment_status.as_str(), "paid" | "credited");
    K::WHICH == Which::Invoice && !document.is_credit && !settled && document.open_amount().scaled() > 0
}

fn how_to_pay<K: DocumentKind>(document: &Document<K>, data: &Value) -> Value {
    let text = |key: &str| data["sender"][key].as_str().unwrap_or_default();
    if !is_owed(document) || text("iban").is_empty() {
        return Value::Null;
    }
    let amount = document.open_amount();
    json!({
        "amount": Style(document.language).money(amount),
        "qr": payment_code(amount.scaled(), &document.number, &text("iban").replace(' ', ""), text("bic"), text("name")),
    })
}

/// The code that a banking app scans (EPC069-12), for what is still open.
fn payment_code(cents: i64, number: &str, iban: &str, bic: &str, name: &str) -> Option<String> {
    if !(1..=99_999_999_999).contains(&cents) {
        return None;
    }
    let name: String = name.chars().map(|c| if c.is_control() { ' ' } else { c }).take(70).collect();
    let reference: String = number.chars().take(140).collect();
    let amount = format!("EUR{}.{:02}", cents / 100, cents % 100);
    ::pdf::qr_svg(&format!("BCD\n002\n1\nSCT\n{bic}\n{name}\n{iban}\n{amount}\n\n\n{reference}")).ok()
}

/// How it stands: the key of the page's words for it, and what those need.
fn state<K: DocumentKind>(ctx: &Ctx, document: &Document<K>) -> Value {
    let style = Style(document.language);
    let never = When(None);
    let (status, late) = (document.payment_status.as_str(), is_late(ctx, document));
    let (tone, key, when) = match K::WHICH {
        Which::Invoice if document.is_credit => match status {
            "paid" => ("good", "paid_out", document.paid_at),
            "credited" => ("calm", "settled", never),
            _ => ("wait", "owing", never),
        },
        Which::Invoice => match status {
            "paid" => ("good", "paid", document.paid_at),
            "credited" => ("calm", "credited", never),
            _ if !is_owed(document) => ("calm", "nothing", never),
            "partial" if late => ("bad", "partial_late", never),
            "partial" => ("wait", "partial", never),
            _ if late || status == "overdue" => ("bad", "overdue", never),
            _ => ("wait", "open", never),
        },
        Which::Quote => match status {
            "accepted" | "invoiced" if !document.accepted_by.is_empty() => {
                ("good", "accepted_by", document.accepted_at)
            }
            "accepted" => ("good", "accepted", document.accepted_at),
            "invoiced" if document.accepted_at.0.is_some() => ("good", "accepted", document.accepted_at),
            "invoiced" => ("good", "invoiced", never),
            "rejected" => ("bad", "rejected", document.rejected_at),
            _ if late || status == "expired" => ("bad", "expired", never),
            _ => ("wait", "asked", never),
        },
        Which::Workorder => match status {
            "completed" => ("good", "completed", never),
            "invoiced" => ("good", "invoiced", never),
            _ => ("wait", "planned", never),
        },
    };
    json!({
        "tone": tone, "key": key, "own_word": if KNOWN.split(' ').any(|known| known == status) { "" } else { status },
        "day": when.0.map(|moment| style.date(moment.date(&ctx.zone))),
        "paid": style.money(document.paid_amount), "open": style.money(document.open_amount()),
        // Isolated, so that a name from right to left leaves the sentence in its order.
        "by": format!("\u{2068}{}\u{2069}", document.accepted_by),
    })
}

/// What `payment_status` can be, unless the business has made up a word of its own; that is shown as it is.
const KNOWN: &str = "draft open partial paid overdue credited accepted rejected expired invoiced completed";

/// The colours of the identity, and such as can be read on light and on dark.
fn colors(of: &Value) -> Value {
    let primary = color(&of["primary"]).unwrap_or([0x1f, 0x4e, 0x79]);
    let secondary = color(&of["secondary"]).unwrap_or([0x5b, 0x70, 0x83]);
    let hex = |[red, green, blue]: [u32; 3]| format!("#{red:02x}{green:02x}{blue:02x}");
    json!({
        "primary": hex(primary), "secondary": hex(secondary),
        "on_light": hex(darkened(primary)), "on_dark": hex(lightened(primary)),
    })
}

fn color(text: &Value) -> Option<[u32; 3]> {
    let digits = text.as_str()?.strip_prefix('#').filter(|digits| digits.len() == 6 && digits.is_ascii())?;
    let part = |start: usize| u32::from_str_radix(&digits[start..start + 2], 16).ok();
    Some([part(0)?, part(2)?, part(4)?])
}

/// How light a colour is, from 0 to 10,000: near enough to WCAG to choose by.
fn lightness([red, green, blue]: [u32; 3]) -> u32 {
    (2126 * red * red + 7152 * green * green + 722 * blue * blue) / (255 * 255)
}

/// Until white can be read on it.
fn darkened(mut color: [u32; 3]) -> [u32; 3] {
    while lightness(color) > 1600 {
        color = color.map(|part| part * 95 / 100);
    }
    color
}

/// Until it can be read on black.
fn lightened(mut color: [u32; 3]) -> [u32; 3] {
    while lightness(color) < 3800 {
        color = color.map(|part| (part + (255 - part) / 20 + 1).min(255));
    }
    color
}
