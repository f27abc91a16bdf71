//! Who has the same screen open, so that two people do not answer one ticket. It is not part of the log.

use engine::call::{Answer, Call};
use engine::context::Ctx;
use engine::error::{Code, Error, Result};
use engine::input;
use engine::input::Input;
use engine::record::{Body, REQUIRED, Shape};
use engine::records::Work;
use engine::resource::{Method, Part, RequestBody, Resource, Returns};
use serde_json::json;
use store::{Migration, Tx};

use crate::people::me::free;

/// How long somebody counts as present. Screens say every 20 seconds that they are still open.
const PRESENT_SECONDS: i64 = 45;
/// The most names in a response.
const MAX_OTHERS: i64 = 10;

input! {
    /// The screen that the caller has open.
    pub struct Here;

    /// The address of the screen.
    address: String = REQUIRED.at_most(255).example("\"/tickets/0190a5d4-0000-7000-8000-000000000000\"");
}

impl Body for Here {}

static SHAPE: Shape = Shape::new("presence", "open_screens", &["Who has a screen open."]);

const PARTS: &[Part] = &[Part("others", "array", "The names of other users who have it open, at most ten.")];

/// The route with which screens say that they are open.
pub(crate) fn resource() -> Resource {
    Resource::without_records(&SHAPE, "Presence", "users", &[])
        .at("/v1/me/here")
        .route(Method::Patch, "", "Say which screen you have open", patch)
        .body::<Here>(RequestBody::Body)
        .returns(Returns::Parts(PARTS))
        .with(free)
}

/// `PATCH /v1/me/here`
fn patch(call: Call) -> Result<Work> {
    let input: Input<Here> = input::create(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let Some(user) = ctx.key.as_ref().filter(|key| !key.session.is_empty()) else {
            return Err(Error::new(Code::Forbidden, "Screens belong to a user who has signed in; a key has none."));
        };
        let others = arrive(tx, ctx, &input.values().address, &user.id, &user.name)?;
        Ok(Answer::json(&json!({"others": others})).with_texts("warnings", &input.warnings))
    }))
}

/// Notes that a user is there, and returns who else is.
fn arrive(tx: &mut Tx, ctx: &Ctx, address: &str, user: &str, name: &str) -> Result<Vec<String>> {
    let now = ctx.machine_now;
    tx.execute("DELETE FROM presences WHERE account_id = $1 AND until < $2", &[ctx.account.into(), now.0.into()])?;
    tx.execute(
        "INSERT INTO presences (account_id, address, user_id, name, until) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (account_id, address, user_id) DO UPDATE SET name = excluded.name, until = excluded.until",
        &[ctx.account.into(), address.into(), user.into(), name.into(), now.plus_seconds(PRESENT_SECONDS).0.into()],
    )?;
    let sql = "SELECT name FROM presences WHERE account_id = $1 AND address = $2 AND user_id <> $3
               ORDER BY user_id LIMIT $4";
    let values = [ctx.account.into(), address.into(), user.into(), MAX_OTHERS.into()];
    tx.all(sql, &values, |row| Ok::<_, Error>(row.text(0)?.to_string()))
}

/// The table of open screens.
pub const MIGRATION: Migration = Migration {
    number: 40,
    name: "presences",
    sql: "
CREATE TABLE presences (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    address TEXT NOT NULL,
    user_id TEXT NOT NULL,
    name TEXT NOT NULL,
    until BIGINT NOT NULL,
    PRIMARY KEY (account_id, address, user_id)
) STRICT;
CREATE INDEX presences_until ON presences (account_id, until);
",
};
