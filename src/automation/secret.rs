//! The secret that signs the HTTP calls of an account's flows (Standard Webhooks), so that a receiver can verify them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use engine::call::{Answer, Call};
use engine::error::Result;
use engine::record::Shape;
use engine::records::Work;
use engine::registry::check_confirmed;
use engine::resource::{Method, Part, Resource, Returns};
use serde_json::json;

static SHAPE: Shape =
    Shape::new("signing_secret", "signing_secrets", &["The secret that signs the HTTP calls of an account's flows."]);

const PARTS: &[Part] = &[Part("secret", "string", "`whsec_` and the secret in Base64.")];

/// The route that returns the secret, for keys that can change keys: whoever has it can sign calls as the account. So a
/// person enters the password first.
pub fn resource() -> Resource {
    Resource::without_records(&SHAPE, "Signing secret", "keys", &[])
        .at("/v1/automation/signing-secret")
        .route(Method::Get, "", "Retrieve the secret that signs HTTP calls of flows", get)
        .with(|route| route.also_needs = Some("keys.write"))
        .returns(Returns::Parts(PARTS))
        .extension()
}

fn get(_: Call) -> Result<Work> {
    Ok(Box::new(|tx, ctx| {
        check_confirmed(tx, ctx)?;
        let secret = BASE64.encode(ctx.site.signing_secret(ctx.account));
        Ok(Answer::json(&json!({"secret": format!("whsec_{secret}")})))
    }))
}
