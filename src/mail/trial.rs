//! A mail that tells whether mail arrives.

use engine::accounts::Account;
use engine::call::{Answer, Call};
use engine::error::Result;
use engine::input;
use engine::input::Input;
use engine::record::{Body, Email, REQUIRED};
use engine::records::Work;
use serde_json::json;

use super::{Letter, identity_of, put};

input! {
    /// Where a test mail goes.
    pub struct Trial;

    /// The recipient.
    to: Email = REQUIRED.example("\"anna@jansen.example\"");
}

impl Body for Trial {}

/// `POST /v1/mails/test`
pub(super) fn send(call: Call) -> Result<Work> {
    let input: Input<Trial> = input::create(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let business = Account::numbered(tx, ctx.account)?.name.replace(['\n', '\r'], " ");
        let (from_name, reply_to) = identity_of(tx, ctx, "")?;
        let to = input.values().to.0.clone();
        let letter = Letter {
            about: "settings",
            kind: "test".to_string(),
            to: vec![to.clone()],
            subject: format!("Test: {business}"),
            body: format!(
                "Deze testmail is verstuurd door de administratie van {business}. Komt hij aan, dan werkt het versturen van e-mail.\n\n\
                 This test mail was sent by {business} with Kantoor. If you can read it, sending mail works.\n"
            ),
            from_name,
            reply_to,
            ..Letter::default()
        };
        put(tx, ctx, &letter)?;
        Ok(Answer::json(&json!({"to": to})).with_texts("warnings", &input.warnings))
    }))
}
