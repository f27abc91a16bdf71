//! The JSON endpoints for second factors, under `/console/`. A session that lacks the second factor that its account
//! requires can use these, and nothing else.

use engine::call::{Answer, Call};
use engine::error::{Error, Result};
use engine::input;
use engine::record::{Body, INPUT, REQUIRED};
use serde_json::{Value, json};

use crate::people::enrolling::NewApp;
use crate::people::entering::Visit;
use crate::people::password::LONGEST;
use crate::people::session::Held;

/// Longest part of a passkey's response, in characters.
const MAX_BYTES: usize = 4096;

input! {
    /// The code of the second step of signing in.
    pub struct Code;

    /// The token of the first step.
    token: String = REQUIRED.example("\"\"");
    /// A code of an authenticator app, or a recovery code.
    code: String = REQUIRED.at_most(64).example("\"123456\"");
}

input! {
    /// A link of the operator.
    pub struct Link;

    /// The token of the link.
    token: String = REQUIRED.example("\"\"");
}

input! {
    /// The password, once more.
    pub struct Password;

    /// Password.
    password: String = REQUIRED.at_most(LONGEST).example("\"correct horse battery\"");
}

input! {
    /// A new authenticator app.
    pub struct NewFactor;

    /// The id of the enrolment.
    id: String = REQUIRED.example("\"\"");
    /// A code that the app shows.
    code: String = REQUIRED.at_most(64).example("\"123456\"");
    /// Name, such as that of the device.
    name: String = INPUT.at_most(100).example("\"Phone\"");
}

input! {
    /// A second factor.
    pub struct OldFactor;

    /// Its id.
    id: String = REQUIRED.example("\"\"");
}

input! {
    /// The passkey of the second step of signing in, as the browser returns it: bytes in base64url without padding.
    pub struct Passkey;

    /// The token of the first step.
    token: String = REQUIRED.example("\"\"");
    /// `rawId`.
    credential: String = REQUIRED.at_most(MAX_BYTES).example("\"\"");
    /// `response.clientDataJSON`.
    client_data: String = REQUIRED.at_most(MAX_BYTES).example("\"\"");
    /// `response.authenticatorData`.
    authenticator_data: String = REQUIRED.at_most(MAX_BYTES).example("\"\"");
    /// `response.signature`.
    signature: String = REQUIRED.at_most(MAX_BYTES).example("\"\"");
}

input! {
    /// A new passkey, as the browser returns it: bytes in base64url without padding.
    pub struct NewPasskey;

    /// The id of the enrolment.
    id: String = REQUIRED.example("\"\"");
    /// Name, such as that of the device.
    name: String = INPUT.at_most(100).example("\"Laptop\"");
    /// `response.clientDataJSON`.
    client_data: String = REQUIRED.at_most(MAX_BYTES).example("\"\"");
    /// `response.getAuthenticatorData()`.
    authenticator_data: String = REQUIRED.at_most(MAX_BYTES).example("\"\"");
}

impl Body for Code {}
impl Body for Passkey {}
impl Body for NewPasskey {}
impl Body for Link {}
impl Body for Password {}
impl Body for NewFactor {}
impl Body for OldFactor {}

/// `GET /console/factors`
pub async fn list(visit: &Visit, held: &Held) -> Result<Answer> {
    let factors = visit.factors(held).await?;
    let all: Vec<Value> = factors
        .all
        .iter()
        .map(|factor| {
            json!({
                "id": factor.id, "method": factor.method.wire(), "name": factor.name,
                "created_at": factor.confirmed_at.to_string(), "last_used_at": factor.used_at.to_string(),
            })
        })
        .collect();
    let is_confirmed = held.check_confirmed(visit.app.clock.now()).is_ok();
    Ok(Answer::json(&json!({
        "factors": all, "recovery_codes_left": factors.codes_left, "required": held.lacks_factor,
        "confirmed": is_confirmed,
    })))
}

/// Handles a request of somebody who has signed in.
pub async fn answer(visit: &Visit, held: &Held, path: &str, call: &Call) -> Result<Answer> {
    match path {
        "/console/confirm" => {
            let Password { password } = input::create(call)?.record();
            visit.confirm(held, password).await?;
            Ok(Answer::empty())
        }
        "/console/factors/app" => {
            input::nothing(call)?;
            let new = visit.begin_app(held).await?;
            let NewApp { id, shown } = &new;
            Ok(Answer::json(&json!({"id": id, "secret": shown.secret, "uri": shown.uri, "qr": picture(&new)?})))
        }
        "/console/factors/confirm" => {
            let NewFactor { id, code, name } = input::create(call)?.record();
            let codes = visit.complete_app(held, &id, &name, &code).await?;
            Ok(Answer::json(&json!({"recovery_codes": codes})))
        }
        "/console/factors/passkey" => {
            input::nothing(call)?;
            let (id, options) = visit.begin_passkey(held).await?;
            Ok(Answer::json(&json!({"id": id, "options": options})))
        }
        "/console/factors/passkey/confirm" => {
            let NewPasskey { id, name, client_data, authenticator_data } = input::create(call)?.record();
            let codes = visit.complete_passkey(held, &id, &name, &client_data, &authenticator_data).await?;
            Ok(Answer::json(&json!({"recovery_codes": codes})))
        }
        "/console/factors/remove" => {
            let OldFactor { id } = input::create(call)?.record();
            visit.remove_factor(held, &id).await?;
            Ok(Answer::empty())
        }
        _ => {
            input::nothing(call)?;
            Ok(Answer::json(&json!({"recovery_codes": visit.renew_codes(held).await?})))
        }
    }
}

/// Returns the QR code of a new authenticator app, as SVG.
pub fn picture(new: &NewApp) -> Result<String> {
    pdf::qr_svg(&new.shown.uri).map_err(|error| Error::internal(format!("the QR code cannot be drawn: {error}")))
}
