//! The page of second factors: plain forms for what `/console/factors` does.

use axum::http::request::Parts;
use engine::error::{Code, Error, Result};
use engine::http::session;
use serde_json::{Value, json};

use super::{console, factors};
use crate::people::entering::Visit;
use crate::people::session::Held;
use crate::people::{CONFIRMATION_REQUIRED, passkey};

/// What a form leads to.
pub enum Next {
    /// This page, with these fields.
    Page(&'static str, Value),
    /// The overview.
    Overview,
    /// Signing in, since nobody has.
    SignIn,
    /// This page with these fields, once more, since something is wrong.
    Refused(&'static str, Value, Error),
}

/// Handles a request; `sent` returns a field of the form, and is empty for GET. Sets the language of the page to that of the
/// user.
pub async fn answer(
    visit: &Visit,
    head: &Parts,
    reads: bool,
    language: &mut String,
    sent: impl Fn(&str) -> String,
) -> Result<Next> {
    let held = match console::held(&visit.app, head).await {
        Err(error) if error.code == Code::Unauthorized => return Ok(Next::SignIn),
        held => held?,
    };
    *language = held.language.wire().to_string();
    if reads {
        return overview(visit, &held).await;
    }
    session::check_origin(head, &visit.app.site)?;
    match act(visit, &held, &sent).await {
        Ok(next) => Ok(next),
        Err(error) if error.code == CONFIRMATION_REQUIRED => Ok(Next::Overview),
        Err(error) if error.code == Code::ValidationFailed && sent("action") == "complete" => {
            Ok(Next::Refused("totp", json!({"id": sent("id"), "name": sent("name"), "is_factor": true}), error))
        }
        Err(error) => match overview(visit, &held).await? {
            Next::Page(name, fields) => Ok(Next::Refused(name, fields, error)),
            next => Ok(next),
        },
    }
}

async fn act(visit: &Visit, held: &Held, sent: impl Fn(&str) -> String) -> Result<Next> {
    match sent("action").as_str() {
        "confirm" => {
            visit.confirm(held, sent("password")).await?;
            Ok(Next::Overview)
        }
        "begin" => {
            let new = visit.begin_app(held).await?;
            let qr = factors::picture(&new)?;
            Ok(Next::Page("totp", json!({"id": new.id, "secret": new.shown.secret, "qr": qr})))
        }
        "complete" => {
            let name: String = sent("name").chars().take(100).collect();
            Ok(after(&visit.complete_app(held, &sent("id"), &name, &sent("code")).await?))
        }
        "begin_passkey" => {
            let (id, options) = visit.begin_passkey(held).await?;
            Ok(Next::Page("passkey", json!({"id": id, "options": options.to_string()})))
        }
        "complete_passkey" => {
            let (name, client) = (sent("name").chars().take(100).collect::<String>(), sent("client_data"));
            let made = visit.complete_passkey(held, &sent("id"), &name, &client, &sent("authenticator_data")).await?;
            Ok(after(&made))
        }
        "remove" => {
            visit.remove_factor(held, &sent("id")).await?;
            Ok(Next::Overview)
        }
        "codes" => Ok(Next::Page("codes", json!({"codes": visit.renew_codes(held).await?}))),
        _ => Err(Error::new(Code::NotFound, "This form does not exist.")),
    }
}

/// Shows new recovery codes, if there are any.
fn after(codes: &[String]) -> Next {
    match codes {
        [] => Next::Overview,
        codes => Next::Page("codes", json!({"codes": codes})),
    }
}

/// Shows the factors, or asks for the password first.
async fn overview(visit: &Visit, held: &Held) -> Result<Next> {
    let own = visit.factors(held).await?;
    let all: Vec<Value> = own.all.iter().map(|factor| json!({"id": factor.id, "name": factor.name})).collect();
    Ok(Next::Page(
        "two_factor",
        json!({
            "is_factor": true, "factors": all, "codes_left": own.codes_left, "required": held.lacks_factor,
            "can_use_passkeys": passkey::is_possible(&visit.app.site),
            "asks_password": held.check_confirmed(visit.app.clock.now()).is_err(),
            "has_password": !visit.person(held).await?.password.is_empty(),
        }),
    ))
}
