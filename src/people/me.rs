//! The caller: who they are, what they may do and what they prefer; and the sessions of a person.

use engine::accounts::{Account, Key};
use engine::call::{Answer, Call};
use engine::context::Ctx;
use engine::error::{Code, Error, FieldCode, Result, violation};
use engine::input::{self, Input};
use engine::record::{DETAIL, Record, Shape};
use engine::records::{self, Work};
use engine::resource::{Method, Part, RequestBody, Resource, Returns, Route};
use serde_json::{Value, json};
use store::Tx;

use crate::people::entering::accounts_of;
use crate::people::preferences::{self, Chosen};
use crate::people::session;
use crate::people::user::User;

static SHAPE: Shape = Shape::new("me", "me", &["The caller."]);
static SESSION: Shape = Shape::new("session", "my_sessions", &["A session of the caller."]);

const ME: &[Part] = &[
    Part("account", "object", "The account: `id`, `name`, `time_zone`, `now` and `test_clock`."),
    Part(
        "accounts",
        "array",
        "The open accounts in which the person is an active user: `id` and `name`; empty if a key calls.",
    ),
    Part("user", "object", "The user, as under `/v1/users`; empty if a key calls."),
    Part("key", "object", "The key: `id`, `name`, `expires_at` and `allowed_networks`; empty if a user calls."),
    Part("preferences", "object", "What the user chose, such as a theme or columns; empty if a key calls."),
    Part("scopes", "array", "What the caller may do; `*` is everything."),
    Part("version", "string", "The version of the server."),
];

const SESSIONS: &[Part] = &[
    Part("id", "string", "The id."),
    Part("created_at", "date-time", "When you signed in."),
    Part("last_used_at", "date-time", "When it was last used, accurate to about a minute."),
    Part("browser", "string", "The browser, as it names itself."),
    Part("address", "string", "The IP address that you signed in from."),
    Part("current", "boolean", "Whether this request is part of it."),
];

/// The routes about the caller.
pub(crate) fn resource() -> Resource {
    Resource::without_records(&SHAPE, "Me", "users", &[])
        .route(Method::Get, "", "Retrieve the caller", get)
        .returns(Returns::Parts(ME))
        .with(free)
        .route(Method::Patch, "", "Change your name, language and preferences", patch)
        .body::<Chosen>(RequestBody::Body)
        .returns(Returns::Parts(ME))
        .with(free)
}

/// The routes about the sessions of the caller.
pub(crate) fn own_sessions() -> Resource {
    Resource::without_records(&SESSION, "Sessions", "users", &[])
        .at("/v1/me/sessions")
        .route(Method::Get, "", "List your sessions", sessions)
        .returns(Returns::ListOfParts(SESSIONS))
        .with(free)
        .route(Method::Post, "/end-others", "End all your other sessions", end_others)
        .returns(Returns::Parts(&[Part("ended", "integer", "The number of sessions that were ended.")]))
        .with(free)
        .route(Method::Delete, "/{id}", "End one of your sessions", end_session)
        .returns(Returns::Nothing)
        .with(free)
}

/// A route that only concerns the caller requires no scope.
pub(super) fn free(route: &mut Route) {
    route.scope = String::new();
    route.extension = true;
}

/// `GET /v1/me`
fn get(_: Call) -> Result<Work> {
    Ok(Box::new(caller))
}

/// `PATCH /v1/me`
fn patch(call: Call) -> Result<Work> {
    let input: Input<Chosen> = input::create_with(&call, |input: &Input<Chosen>, faults| {
        if input.sent().next().is_none() {
            faults
                .add("preferences", violation(FieldCode::Required, "is required, unless a name or a language is sent"));
        }
        if input.has("name") && input.values().name.trim().is_empty() {
            faults.add("name", violation(FieldCode::Required, "is required"));
        }
    })?;
    Ok(Box::new(move |tx, ctx| {
        let Some(user) = user_of(tx, ctx)? else {
            return Err(Error::new(Code::Forbidden, "Preferences belong to a user who has signed in; a key has none."));
        };
        let Chosen { name, language, preferences } = input.record();
        if input.has("preferences") {
            preferences::change(tx, ctx, &user.base.id, &preferences)?;
        }
        let mut changed = user.clone();
        if input.has("name") {
            changed.name = name;
        }
        if input.has("language") {
            changed.language = language;
        }
        records::change(tx, ctx, &user, &mut changed, "updated")?;
        Ok(caller(tx, ctx)?.with_texts("warnings", &input.warnings))
    }))
}

/// Returns the response that describes the caller.
fn caller(tx: &mut Tx, ctx: &Ctx) -> Result<Answer> {
    let account = Account::numbered(tx, ctx.account)?;
    let zone = account.zone.iana_name().unwrap_or_default();
    let person = user_of(tx, ctx)?;
    let (user, preferences, accounts) = match &person {
        Some(user) => {
            let accounts = accounts_of(tx, &user.person_id)?;
            let open = accounts.iter().filter(|(account, _)| !account.is_closed());
            let accounts = open.map(|(account, _)| json!({"id": account.uid, "name": account.name}));
            (shown(ctx, user)?, preferences::of_user(tx, ctx, &user.base.id)?, Value::Array(accounts.collect()))
        }
        None => (json!({}), json!({}), json!([])),
    };
    let key = ctx.key.as_ref().filter(|_| person.is_none()).map_or_else(|| json!({}), |key| shown_key(key));
    Ok(Answer::json(&json!({
        "account": {
            "id": account.uid, "name": account.name, "time_zone": zone, "now": ctx.now.to_string(),
            "test_clock": account.has_test_clock,
        },
        "accounts": accounts,
        "user": user,
        "key": key,
        "preferences": preferences,
        "scopes": ctx.key.as_ref().map_or_else(|| vec!["*".to_string()], |key| key.scopes.clone()),
        "version": env!("CARGO_PKG_VERSION"),
    })))
}

fn shown_key(key: &Key) -> Value {
    json!({
        "id": key.id, "name": key.name,
        "expires_at": (key.expires_at.0 != 0).then(|| key.expires_at.to_string()),
        "allowed_networks": key.networks.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

fn shown(ctx: &Ctx, user: &User) -> Result<Value> {
    let mut data = Vec::new();
    user.write_json(DETAIL, ctx, &mut data);
    serde_json::from_slice(&data).map_err(|error| Error::internal(format!("a user is not valid JSON: {error}")))
}

/// Returns the user of the caller's session, and none if a key calls.
fn user_of(tx: &mut Tx, ctx: &Ctx) -> Result<Option<User>> {
    let key = ctx.key.as_ref().filter(|key| !key.session.is_empty());
    key.map(|key| records::find(tx, ctx, &key.id)).transpose()
}

fn session_id(ctx: &Ctx) -> &str {
    ctx.key.as_ref().map_or("", |key| key.session.as_str())
}

/// `GET /v1/me/sessions`
fn sessions(_: Call) -> Result<Work> {
    Ok(Box::new(|tx, ctx| {
        let Some(user) = user_of(tx, ctx)? else { return Ok(Answer::list(Vec::new())) };
        let current = session_id(ctx);
        let all = session::of_person(tx, &user.person_id, ctx.machine_now)?;
        let all = all.iter().map(|session| {
            json!({
                "id": session.id, "created_at": session.created_at.to_string(),
                "last_used_at": session.seen_at.to_string(), "browser": session.device.browser,
                "address": session.device.address, "current": session.id == current,
            })
        });
        Ok(Answer::list(all.collect()))
    }))
}

/// `POST /v1/me/sessions/end-others`
fn end_others(call: Call) -> Result<Work> {
    input::nothing(&call)?;
    Ok(Box::new(|tx, ctx| {
        let Some(user) = user_of(tx, ctx)? else {
            return Err(Error::new(Code::Forbidden, "Sessions belong to a user who has signed in; a key has none."));
        };
        let ended = session::end_others(tx, &user.person_id, session_id(ctx))?;
        if ended > 0 {
            records::happened(tx, ctx, &user, "session_ended")?;
        }
        Ok(Answer::json(&json!({"ended": ended})))
    }))
}

/// `DELETE /v1/me/sessions/{id}`
fn end_session(call: Call) -> Result<Work> {
    input::nothing(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let missing = || Error::not_found("session");
        let user = user_of(tx, ctx)?.filter(|_| !call.id().contains('\0')).ok_or_else(missing)?;
        if !session::end(tx, &user.person_id, call.id())? {
            return Err(missing());
        }
        records::happened(tx, ctx, &user, "session_ended")?;
        Ok(Answer::empty())
    }))
}
