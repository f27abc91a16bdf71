//! The account itself: its name can be changed.

use engine::accounts::{self, Account};
use engine::call::{Answer, Call};
use engine::context::Ctx;
use engine::error::{Error, FieldCode, Result, violation};
use engine::input;
use engine::input::Input;
use engine::log::{self, Event};
use engine::record::{Body, REQUIRED, Shape};
use engine::records::Work;
use engine::resource::{Method, Part, RequestBody, Resource, Returns};
use store::Tx;

input! {
    /// What can be changed about the account.
    pub struct Named;

    /// The name of the account, which the screens and mail to users show. Documents show the name of a corporate identity.
    name: String = REQUIRED.at_most(255).example("\"Installatiebedrijf Jansen\"");
}

impl Body for Named {}

static SHAPE: Shape = Shape::new("account", "own_account", &["The account: one business with its own records."]);

const PARTS: &[Part] = &[
    Part("id", "string", "The id."),
    Part("name", "string", "The name."),
    Part("time_zone", "string", "The time zone, which determines when a day begins."),
    Part("test_clock", "boolean", "Whether it has a test clock."),
];

/// The routes of the account.
pub(crate) fn resource() -> Resource {
    Resource::without_records(&SHAPE, "Account", "settings", Vec::new())
        .at("/v1/account")
        .route(Method::Get, "", "Retrieve the account", get)
        .returns(Returns::Parts(PARTS))
        .with(|route| route.scope = "settings.read".to_string())
        .extension()
        .route(Method::Patch, "", "Change the name of the account", patch)
        .body::<Named>(RequestBody::Body)
        .returns(Returns::Parts(PARTS))
        .extension()
}

/// `GET /v1/account`
fn get(_: Call) -> Result<Work> {
    Ok(Box::new(shown))
}

fn shown(tx: &mut Tx, ctx: &Ctx) -> Result<Answer> {
    Ok(Answer::json(&Account::numbered(tx, ctx.account)?.shown()))
}

/// `PATCH /v1/account`
fn patch(call: Call) -> Result<Work> {
    let input: Input<Named> = input::create(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let name = input.values().name.trim().to_string();
        if name.is_empty() || name.chars().any(char::is_control) {
            return Err(Error::field("name", violation(FieldCode::InvalidFormat, "must be one line of text")));
        }
        let before = Account::numbered(tx, ctx.account)?;
        if before.name != name {
            let account = before.rename(tx, &name)?;
            let data = account.shown().to_string();
            let event = Event { name: accounts::UPDATED, entity_type: "account", entity_id: &account.uid, data: &data };
            log::append(tx, ctx, &event)?;
        }
        Ok(shown(tx, ctx)?.with_texts("warnings", &input.warnings))
    }))
}
