//! The API of users: inviting them, and changing what they may do.

use std::sync::Arc;

use engine::call::{Answer, Call};
use engine::context::Ctx;
use engine::error::{Code, Error, Result};
use engine::input::{self, Input};
use engine::record::{ACTED, CREATED, check_transition};
use engine::records::{self, Work};
use engine::registry::check_confirmed;
use engine::resource::{Method, Resource, Returns, Verb};
use serde_json::json;
use store::Tx;

use crate::people::person::Person;
use crate::people::status::{Language, Status, TRANSITIONS};
use crate::people::token::{self, Purpose};
use crate::people::user::{self, User, check_other_owner, is_elsewhere};
use crate::people::{factor, letters, preferences, session};
use crate::settings::Settings;

/// The resource of users.
pub(crate) fn resource() -> Resource {
    Resource::of::<User>("Users", "users", user::MIGRATIONS)
        .guarded()
        .list::<User>()
        .extension()
        .verb(Verb::Create, create)
        .with(|route| route.summary = "Invite a user".to_string())
        .extension()
        .get::<User>()
        .extension()
        .verb(Verb::Patch, patch)
        .extension()
        .verb(Verb::Delete, delete)
        .extension()
        .route(Method::Post, "/{id}/invite", "Send the invitation again, with a new link", invite_again)
        .returns(Returns::Item(ACTED))
        .extension()
        .route(
            Method::Post,
            "/{id}/remove-two-factor",
            "Remove the second factors of a user who lost them",
            remove_factors,
        )
        .returns(Returns::Item(ACTED))
        .extension()
}

/// `POST /v1/users`
fn create(call: Call) -> Result<Work> {
    let input: Input<User> = input::create(&call)?;
    let secret = token::new_secret()?;
    Ok(with_link(move |tx, ctx, shows_link| {
        let mut user = input.record();
        if !input.has("language") {
            user.language = Language::of_account(tx, ctx)?;
        }
        user.role.check_grant(ctx)?;
        check_confirmed(tx, ctx)?;
        records::add(tx, ctx, &mut user)?;
        invite(tx, ctx, &user, &secret, shows_link)?;
        let answer = Answer::created(ctx, &user, CREATED).with_texts("warnings", &input.warnings);
        Ok(if shows_link { showing(answer, ctx, &secret) } else { answer })
    }))
}

/// `POST /v1/users/{id}/invite`
fn invite_again(call: Call) -> Result<Work> {
    let warnings = input::nothing(&call)?;
    let secret = token::new_secret()?;
    Ok(with_link(move |tx, ctx, shows_link| {
        let user: User = records::find_to_change(tx, ctx, &call)?;
        user.role.check_grant(ctx)?;
        if user.status != Status::Invited {
            let message = format!("The user is {}; only an invited user can be invited again.", user.status.wire());
            return Err(Error::new(Code::InvalidTransition, message));
        }
        check_confirmed(tx, ctx)?;
        invite(tx, ctx, &user, &secret, shows_link)?;
        let answer = Answer::record(ctx, &user, ACTED).with_texts("warnings", &warnings);
        Ok(if shows_link { showing(answer, ctx, &secret) } else { answer })
    }))
}

/// Runs `work` with whether its caller sees the link of the invitation, which is the case if mail is not sent.
fn with_link(work: impl Fn(&mut Tx, &Ctx, bool) -> Result<Answer> + Send + Sync + 'static) -> Work {
    let work = Arc::new(work);
    Box::new(move |_, _| {
        let work = work.clone();
        Ok(Answer::after(move |app, _| {
            let (work, shows_link) = (work.clone(), app.config.smtp_host.is_empty());
            Ok(Box::new(move |tx, ctx| {
                let shows_link = shows_link || Settings::is_sealed(tx, ctx)?;
                work(tx, ctx, shows_link)
            }))
        }))
    })
}

fn showing(mut answer: Answer, ctx: &Ctx, secret: &str) -> Answer {
    answer.meta.push(format!("\"invite_url\":{}", json!(Purpose::Invite.link(&ctx.site, secret))));
    answer
}

/// Creates the link of an invitation and mails it. Earlier links of the user no longer work.
fn invite(tx: &mut Tx, ctx: &Ctx, user: &User, secret: &str, shows_link: bool) -> Result<()> {
    token::create(tx, ctx, Purpose::Invite, &user.base.id, secret)?;
    token::withdraw(tx, ctx.account, Purpose::SecondStep, &user.base.id)?;
    // A test account can record its mail before it leaves, and show it.
    if shows_link || ctx.has_test_clock {
        token::show(tx, ctx, secret)?;
    }
    letters::invite(tx, ctx, user, secret)?;
    records::happened(tx, ctx, user, "invited")
}

/// `PATCH /v1/users/{id}`
fn patch(call: Call) -> Result<Work> {
    let input: Input<User> = input::patch(&call)?;
    let change = records::patch::<User>(call.clone())?;
    Ok(Box::new(move |tx, ctx| {
        let before: User = records::find(tx, ctx, call.id())?;
        let mut user = before.clone();
        input.merge_into(&mut user);
        // Also for a name, which the log shows as that of an actor.
        if user != before {
            before.role.check_grant(ctx)?;
        }
        if (user.role, user.status) != (before.role, before.status) {
            user.role.check_grant(ctx)?;
            check_confirmed(tx, ctx)?;
        }
        if user.status != before.status {
            check_transition(TRANSITIONS, &before.status, &user.status, || {
                format!("A user who is {} cannot become {}.", before.status.wire(), user.status.wire())
            })?;
        }
        change(tx, ctx)
    }))
}

/// `POST /v1/users/{id}/remove-two-factor`
fn remove_factors(call: Call) -> Result<Work> {
    let warnings = input::nothing(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let user: User = records::find_to_change(tx, ctx, &call)?;
        user.role.check_grant(ctx)?;
        check_confirmed(tx, ctx)?;
        // The owner of one account must not weaken how the person signs in to another.
        if is_elsewhere(tx, ctx.account, &user.person_id)? {
            let message = "This person is also a user of another account, so only they or the operator of the server (`kantoor user remove-two-factor`) can remove their second factors.";
            return Err(Error::new(Code::Forbidden, message));
        }
        if factor::forget(tx, &ctx.site.vault, &user.person_id)? > 0 {
            let own = ctx.key.as_ref().map_or("", |key| key.session.as_str());
            session::end_others(tx, &user.person_id, own)?;
            records::happened(tx, ctx, &user, "two_factor_removed")?;
        }
        Ok(Answer::record(ctx, &user, ACTED).with_texts("warnings", &warnings))
    }))
}

/// `DELETE /v1/users/{id}`
fn delete(call: Call) -> Result<Work> {
    Ok(Box::new(move |tx, ctx| {
        let user: User = records::find_to_change(tx, ctx, &call)?;
        user.role.check_grant(ctx)?;
        check_confirmed(tx, ctx)?;
        if user.is_active_owner() {
            check_other_owner(tx, ctx, &user.base.id)?;
        }
        if let Some(more) = records::loosen(tx, ctx, &user, delete, &call)? {
            return Ok(more);
        }
        records::remove(tx, ctx, &user)?;
        session::end_all_of_user(tx, ctx, &user.base.id)?;
        token::withdraw_all(tx, ctx, &user.base.id)?;
        preferences::forget(tx, ctx, &user.base.id)?;
        Person::forget(tx, &user.person_id)?;
        Ok(Answer::empty())
    }))
}
