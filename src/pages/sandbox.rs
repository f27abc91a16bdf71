//! The page of the payment sandbox, where a person chooses the outcome of a payment, and the page that clients return
//! to.

use std::sync::{Arc, LazyLock};

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, HeaderValue, LOCATION, RETRY_AFTER};
use axum::http::{Method, Request, Response, StatusCode};
use engine::app::App;
use engine::context::{Actor, Ctx};
use engine::error::{Code, Error, FieldCode, Result, violation};
use engine::http::{dispatch, reply};
use engine::records;
use engine::who::Who;
use minijinja::value::Serde;
use serde_json::{Value, json};
use store::Tx;

use super::public;
use crate::documents::Invoice;
use crate::payments::collecting;
use crate::payments::payment::{self, Payment, Status};
use crate::payments::providers::sandbox;
use crate::payments::verification::{self, Verification};
use crate::settings::{ProviderName, Settings};

/// The outcomes of a requested payment.
const ENDS: &[Status] = &[Status::Paid, Status::Failed, Status::Canceled, Status::Expired];
/// The outcomes of a paid payment.
const AFTERWARDS: &[Status] = &[Status::Chargeback, Status::Refunded];

/// Handles a request under `/sandbox/`.
pub async fn answer(app: Arc<App>, request: Request<Body>) -> Response<Body> {
    let request_id = dispatch::request_id(&app, request.headers());
    let nonce = app.ids.token();
    let is_head = request.method() == Method::HEAD;
    let mut response = walk(&app, request, &nonce).await.unwrap_or_else(|error| {
        let data = json!({"error": error.message});
        let mut response = draw(&data, &nonce);
        *response.status_mut() = reply::status(error.code);
        if let Some(seconds) = error.retry_after {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    });
    reply::finish(&mut response, &request_id);
    public::protect(response.headers_mut(), &nonce, "'self'");
    if is_head { dispatch::without_body(response) } else { response }
}

async fn walk(app: &Arc<App>, request: Request<Body>, nonce: &str) -> Result<Response<Body>> {
    let (head, body) = request.into_parts();
    app.visitors.limit(&head.extensions, &head.headers)?;
    let external_id = head.uri.path().strip_prefix("/sandbox/").unwrap_or_default().to_string();
    let found = find(app, external_id.clone()).await?;
    match head.method {
        Method::GET | Method::HEAD => {
            let own = found.clone();
            let data = app.store.read(move |tx| {
                let ctx = own.caller.reading(tx)?;
                view(tx, &ctx, &own)
            });
            Ok(draw(&data.await?, nonce))
        }
        Method::POST => {
            if !public::comes_from_us(&head, &app.site) {
                return Err(Error::new(Code::Forbidden, "The form was submitted from another site."));
            }
            let form = public::read_form(app, &head, body).await?;
            let sent = form_urlencoded::parse(&form).find(|(key, _)| key == "status").map(|(_, value)| value);
            let status = sent.as_deref().and_then(Status::from_wire);
            let status =
                status.filter(|status| ENDS.contains(status) || AFTERWARDS.contains(status)).ok_or_else(|| {
                    let message = "must be paid, failed, canceled, expired, chargeback or refunded";
                    Error::field("status", violation(FieldCode::InvalidChoice, message))
                })?;
            let own = found.clone();
            let written = app.store.write(found.caller.account.number, move |tx| {
                let ctx = own.caller.writing(tx)?;
                say(tx, &ctx, &own, status)
            });
            written.await?;
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::SEE_OTHER;
            reply::insert(response.headers_mut(), LOCATION, &format!("/sandbox/{external_id}"));
            Ok(response)
        }
        _ => Err(Error::new(Code::MethodNotAllowed, "Open the page or submit its form.")),
    }
}

/// The record of a sandbox id.
#[derive(Clone)]
struct Found {
    caller: Actor,
    is_verification: bool,
    id: String,
}

/// Finds the payment or the verification with this id, in any account that uses the sandbox.
async fn find(app: &Arc<App>, external_id: String) -> Result<Found> {
    let own = app.clone();
    let found = app.store.read(move |tx| {
        let Some((account, id, is_verification)) = collecting::in_sandbox(tx, &own.site, &external_id)? else {
            return Ok(None);
        };
        account.check_open()?;
        let caller = own.acting(account, Who::visitor("sandbox"));
        let ctx = caller.reading(tx)?;
        let is_used = Settings::of(tx, &ctx)?.provider == ProviderName::Sandbox;
        Ok::<_, Error>(is_used.then_some(Found { caller, is_verification, id }))
    });
    found.await?.ok_or_else(|| Error::new(Code::NotFound, "This payment does not exist."))
}

fn view(tx: &mut Tx, ctx: &Ctx, found: &Found) -> Result<Value> {
    let (what, back, amount, status) = if found.is_verification {
        let verification: Verification = records::find(tx, ctx, &found.id)?;
        let what = "Verification payment, which authorizes a direct debit mandate".to_string();
        (what, String::new(), verification.amount, verification.status)
    } else {
        let payment: Payment = records::find(tx, ctx, &found.id)?;
        let invoice: Invoice = records::find(tx, ctx, &payment.invoice_id.0)?;
        let what = format!("Payment of invoice {}: {}", invoice.number, invoice.title);
        (what, format!("/d/{}", invoice.token), payment.amount, payment.status)
    };
    let can = possible(found, status);
    let can: Vec<Value> = can.iter().map(|status| json!({"status": status.wire(), "words": words(*status)})).collect();
    let cents = amount.scaled();
    Ok(json!({
        "what": what, "back": back, "amount": format!("€{}.{:02}", cents / 100, cents % 100), "status": status.wire(), "can": can,
    }))
}

/// Returns the outcomes that are still possible.
fn possible(found: &Found, status: Status) -> &'static [Status] {
    match status {
        Status::Created | Status::Open | Status::Pending | Status::Authorized => ENDS,
        Status::Paid if !found.is_verification => AFTERWARDS,
        Status::Chargeback => &[Status::Paid],
        _ => &[],
    }
}

fn words(status: Status) -> &'static str {
    match status {
        Status::Paid => "Mark as paid",
        Status::Failed => "Let it fail",
        Status::Canceled => "Cancel as the client",
        Status::Expired => "Let it expire",
        Status::Chargeback => "Charge it back",
        _ => "Refund it",
    }
}

fn say(tx: &mut Tx, ctx: &Ctx, found: &Found, status: Status) -> Result<()> {
    let refuse = |is: Status| {
        let message = format!("The payment is {} and cannot become {}.", is.wire(), status.wire());
        Err(Error::new(Code::InvalidTransition, message))
    };
    if found.is_verification {
        let before: Verification = records::find(tx, ctx, &found.id)?;
        if before.status == status {
            return Ok(());
        }
        if !possible(found, before.status).contains(&status) {
            return refuse(before.status);
        }
        let mandate = (status == Status::Paid).then(|| (sandbox::mandate_of(&before.external_id), true));
        return verification::apply_provider_status(tx, ctx, &before, status, mandate);
    }
    let before: Payment = records::find(tx, ctx, &found.id)?;
    if before.status == status {
        return Ok(());
    }
    if !possible(found, before.status).contains(&status) {
        return refuse(before.status);
    }
    payment::apply_provider_status(tx, ctx, &before, status, Some(&json!({"sandbox": status.wire()}))).map(drop)
}

fn draw(data: &Value, nonce: &str) -> Response<Body> {
    static TEMPLATES: LazyLock<minijinja::Environment<'static>> = LazyLock::new(|| {
        let mut templates = minijinja::Environment::new();
        let added = templates.add_template("sandbox.html", include_str!("sandbox.html"));
        debug_assert!(added.is_ok(), "{added:?}");
        templates
    });
    let mut data = data.clone();
    data["nonce"] = json!(nonce);
    let drawn =
        TEMPLATES.get_template("sandbox.html").and_then(|page| page.render(minijinja::Value::from(Serde(&data))));
    let mut response = Response::new(Body::from(drawn.unwrap_or_default()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    response
}

/// Returns the page that clients return to from a provider.
pub fn thanks(nonce: &str) -> Response<Body> {
    draw(&json!({"thanks": true}), nonce)
}
