//! How the users of an account get in: when they were last there, and whether they have a second factor.

use engine::call::{Answer, Call};
use engine::clock::Moment;
use engine::error::{Error, Result};
use engine::record::Shape;
use engine::records::Work;
use engine::resource::{Method, Part, Resource, Returns};
use serde_json::json;

use crate::people::status::Status;

static SHAPE: Shape = Shape::new("access", "access", &["When a user was last there."]);

const MEMBERS: &[Part] = &[
    Part("user_id", "string", "The id of the user."),
    Part(
        "last_seen_at",
        "date-time or empty",
        "When a session of the user was last used, accurate to about a minute; empty if there is none.",
    ),
    Part(
        "two_factor",
        "boolean",
        "Whether the user has a second factor. Only callers with `users.write` see it, and not of somebody who is only invited.",
    ),
];

/// The route of what is known about the sessions and the second factors of all users.
pub(crate) fn resource() -> Resource {
    Resource::without_records(&SHAPE, "Access", "users", &[])
        .at("/v1/users/access")
        .route(Method::Get, "", "List when users were last there", list)
        .returns(Returns::ListOfParts(MEMBERS))
        .extension()
}

/// `GET /v1/users/access`
fn list(_: Call) -> Result<Work> {
    Ok(Box::new(|tx, ctx| {
        let sees_factors = ctx.may("users.write");
        let invited = Status::Invited.wire();
        let sql = format!(
            "SELECT users.id,
                          (SELECT coalesce(max(seen_at), 0) FROM sessions
                           WHERE sessions.account_id = users.account_id AND sessions.user_id = users.id),
                          (SELECT count(*) FROM second_factors
                           WHERE second_factors.person_id = users.person_id AND second_factors.confirmed_at > 0
                             AND users.status <> '{invited}')
                   FROM users WHERE users.account_id = $1 ORDER BY users.created_at, users.id"
        );
        let all = tx.all(&sql, &[ctx.account.into()], |row| {
            let seen = Moment(row.int(1)?);
            Ok::<_, Error>(json!({
                "user_id": row.text(0)?,
                "last_seen_at": if seen.0 == 0 { String::new() } else { seen.to_string() },
                "two_factor": sees_factors && row.int(2)? > 0,
            }))
        })?;
        Ok(Answer::list(all))
    }))
}
