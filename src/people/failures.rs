//! Sign-ins that failed: counted and logged for the operator, and kept for the owners of the person's account. What strangers
//! can cause to be stored is limited: a row per person, hour, reason and IP address, of a number of IP addresses.

use engine::app::App;
use engine::call::{Answer, Call};
use engine::choice;
use engine::clock::Moment;
use engine::context::Ctx;
use engine::error::{Error, Result};
use engine::http::metrics::CounterInfo;
use engine::record::Shape;
use engine::records::Work;
use engine::resource::{Method, Part, Resource, Returns};
use serde_json::json;
use store::{Migration, Tx};

use crate::people::status::Status;

choice! {
    /// Why a sign-in failed.
    pub enum Reason {
        /// The password was wrong, or there is no such person.
        #[default]
        Password = "password",
        /// The code or the passkey of the second step was wrong.
        Code = "code",
        /// There were too many attempts.
        TooMany = "too_many",
    }
}

/// The counter of sign-ins that failed.
pub const FAILED: CounterInfo = CounterInfo {
    name: "sign_ins_failed",
    help: "Sign-ins that failed, by reason",
    label: "reason",
    values: &["password", "code", "too_many"],
};

const HOUR: i64 = 3600 * 1000;
/// How long they are kept.
const KEPT_SECONDS: i64 = 14 * 24 * 3600;
/// How many rows of a person name an IP address; the others are counted together, hour by hour.
const MAX_NAMED: i64 = 100;
/// The most rows in a response.
const MAX_SHOWN: i64 = 100;

static SHAPE: Shape = Shape::new("failed_sign_in", "failed_sign_ins", &["Sign-ins of a user that failed."]);

const MEMBERS: &[Part] = &[
    Part("user_id", "string", "The id of the user."),
    Part("reason", "string", "`password`, or `code` for the second step."),
    Part(
        "address",
        "string",
        "The IP address, or the network of an IPv6 address. Empty for the rest of many, and of a person who is also a user of another account.",
    ),
    Part("count", "integer", "How many failed within an hour."),
    Part("last_at", "date-time", "When the last of them failed."),
];

/// The route of the sign-ins that failed.
pub(crate) fn resource() -> Resource {
    Resource::without_records(&SHAPE, "Failed sign-ins", "users", &[])
        .at("/v1/users/failed-sign-ins")
        .route(Method::Get, "", "List the sign-ins that failed in the last 14 days, newest first", list)
        .with(|route| route.also_needs = Some("users.write"))
        .returns(Returns::ListOfParts(MEMBERS))
        .extension()
}

/// `GET /v1/users/failed-sign-ins`
fn list(_: Call) -> Result<Work> {
    Ok(Box::new(|tx, ctx| {
        // Anybody can be invited, and where somebody signs in is the business of no other account. Without the IP addresses, rows of
        // the same hour could not be told apart: they are one.
        let (active, invited) = (Status::Active.wire(), Status::Invited.wire());
        let sql = format!(
            "SELECT id, reason, address, CAST(sum(attempts) AS BIGINT), max(last_at) AS last_at
             FROM (SELECT users.id, failed.reason,
                          CASE WHEN EXISTS (SELECT 1 FROM users other WHERE other.person_id = users.person_id
                                            AND other.account_id <> users.account_id AND other.status <> '{invited}')
                               THEN '' ELSE failed.address END AS address,
                          failed.attempts, failed.last_at, failed.last_at / {HOUR} AS hour
                   FROM users CROSS JOIN sign_in_failures failed
                   WHERE users.account_id = $1 AND failed.person_id = users.person_id AND users.status = '{active}'
                       AND failed.last_at > $2) shown
             GROUP BY id, reason, address, hour ORDER BY 5 DESC, id, reason, address LIMIT $3"
        );
        let since = ctx.machine_now.plus_seconds(-KEPT_SECONDS);
        let all = tx.all(&sql, &[ctx.account.into(), since.0.into(), MAX_SHOWN.into()], |row| {
            Ok::<_, Error>(json!({
                "user_id": row.text(0)?, "reason": row.text(1)?, "address": row.text(2)?, "count": row.int(3)?,
                "last_at": Moment(row.int(4)?).to_string(),
            }))
        })?;
        Ok(Answer::list(all))
    }))
}

/// Counts and logs a sign-in that failed. The log has no e-mail address: people type their password into the wrong field.
pub fn note(app: &App, reason: Reason, address: &str, person: &str, request_id: &str) {
    app.metrics.add(FAILED.name, reason.wire());
    tracing::info!(reason = reason.wire(), address, person, request_id, "A sign-in failed");
}

/// Keeps a sign-in of a person that failed.
pub fn keep(tx: &mut Tx, reason: Reason, address: &str, person: &str, now: Moment) -> Result<()> {
    let (hour, reason) = (now.0.div_euclid(HOUR), reason.wire());
    let id_at = |address: &str| format!("{person} {hour} {reason} {address}");
    let again = "UPDATE sign_in_failures SET attempts = attempts + 1, last_at = $1 WHERE id = $2";
    if tx.execute(again, &[now.0.into(), id_at(address).into()])? > 0 {
        return Ok(());
    }
    let named = "SELECT count(*) FROM sign_in_failures WHERE person_id = $1 AND address <> ''";
    let address = if tx.int(named, &[person.into()])? < MAX_NAMED { address } else { "" };
    tx.execute(
        "INSERT INTO sign_in_failures (id, person_id, reason, address, attempts, last_at) VALUES ($1, $2, $3, $4, 1, $5)
         ON CONFLICT (id) DO UPDATE SET attempts = sign_in_failures.attempts + 1, last_at = excluded.last_at",
        &[id_at(address).into(), person.into(), reason.into(), address.into(), now.0.into()],
    )?;
    Ok(())
}

/// Deletes those that are no longer shown.
pub fn purge(tx: &mut Tx, ctx: &Ctx) -> Result<u64> {
    let index = |name: &str| tx.dialect().indexed_by(name);
    let (by_id, by_age) = (index("sqlite_autoindex_sign_in_failures_1"), index("sign_in_failures_age"));
    let sql = format!(
        "DELETE FROM sign_in_failures{by_id} WHERE id IN
         (SELECT id FROM sign_in_failures{by_age} WHERE last_at < $1 ORDER BY last_at LIMIT 200)"
    );
    Ok(tx.execute(&sql, &[ctx.machine_now.plus_seconds(-KEPT_SECONDS).0.into()])?)
}

/// The table of sign-ins that failed. It has no account, since a person may have several.
pub const MIGRATION: Migration = Migration {
    number: 41,
    name: "failed sign-ins",
    sql: "
CREATE TABLE sign_in_failures (
    id TEXT PRIMARY KEY,
    person_id TEXT NOT NULL,
    reason TEXT NOT NULL,
    address TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    last_at BIGINT NOT NULL
) STRICT;
CREATE INDEX sign_in_failures_person ON sign_in_failures (person_id, last_at);
CREATE INDEX sign_in_failures_age ON sign_in_failures (last_at);
",
};
