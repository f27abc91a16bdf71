//! What the operator of the server does about people, on the command line. Links are printed instead of mailed.

use engine::accounts::Account;
use engine::app::App;
use engine::context::Ctx;
use engine::error::{Code, Error, Result};
use engine::log::{self, Event};
use engine::record::{Email, Record};
use engine::records;
use serde_json::json;
use store::Tx;

use crate::people::entering::{accounts_of, active, set_password, with_accounts};
use crate::people::password::Passwords;
use crate::people::person::Person;
use crate::people::resetting::create_reset;
use crate::people::role::Role;
use crate::people::status::{Language, Status};
use crate::people::token::{self, Purpose};
use crate::people::user::{User, of_any_status};
use crate::people::{factor, sealing, session};

/// The actor of commands in the log.
const OPERATOR: &str = "operator";

/// Creates a link with which the first owner of an account signs in.
pub fn set_up(app: &App, account: Account) -> Result<String> {
    let secret = token::new_secret()?;
    let (own, uid) = (secret.clone(), account.uid.clone());
    write(app, account, move |tx, ctx| {
        token::create(tx, ctx, Purpose::SetUp, "", &own)?;
        let data = json!({"id": uid}).to_string();
        let name = "account.set_up_requested";
        log::append(tx, ctx, &Event { name, entity_type: "account", entity_id: &uid, data: &data }).map(drop)
    })?;
    Ok(Purpose::SetUp.link(&app.site, &secret))
}

/// Creates the owner of a demo account, who can sign in at once; returns the new password.
pub async fn create_owner(app: &App, account: Account, email: &str, name: &str) -> Result<String> {
    let secret = token::new_secret()?;
    let password = [&secret[..4], &secret[4..8], &secret[8..12], &secret[12..16]].join("-");
    let hash = app.services.get::<Passwords>().hash(password.clone()).await?;
    let new = User {
        email: Email(email.to_string()),
        name: name.to_string(),
        role: Role::Owner,
        status: Status::Active,
        ..User::default()
    };
    let (number, caller) = (account.number, app.acting(account, OPERATOR));
    let written = app.store.write(number, move |tx| {
        let ctx = caller.writing(tx)?;
        let sql = format!("{} WHERE account_id = $1 AND email = $2", User::sql().select);
        // The demo has its owner, without a password.
        if let Some(user) = tx.first(&sql, &[ctx.account.into(), (&new.email.0).into()], User::from_row)? {
            return set_password(tx, &ctx, &user, "", &hash);
        }
        let mut user = User { language: Language::of_account(tx, &ctx)?, ..new.clone() };
        records::add(tx, &ctx, &mut user)?;
        set_password(tx, &ctx, &user, "", &hash)
    });
    written.await?;
    Ok(password)
}

/// Invites a user; returns the link of the invitation.
pub fn invite(app: &App, account: Account, email: &str, name: &str, role: Role) -> Result<String> {
    let secret = token::new_secret()?;
    let new = User { email: Email(email.to_string()), name: name.to_string(), role, ..User::default() };
    let own = secret.clone();
    write(app, account, move |tx, ctx| {
        let mut user = User { language: Language::of_account(tx, ctx)?, ..new.clone() };
        records::add(tx, ctx, &mut user)?;
        token::create(tx, ctx, Purpose::Invite, &user.base.id, &own)?;
        records::happened(tx, ctx, &user, "invited")
    })?;
    Ok(Purpose::Invite.link(&app.site, &secret))
}

/// Accepts that people were deleted in the database: their users are new people, without a password, and signed out.
pub fn accept_missing(tx: &mut Tx, ctx: &Ctx) -> Result<()> {
    for (id, _) in sealing::missing(tx, ctx.account)? {
        let before: User = match records::find(tx, ctx, &id) {
            Err(error) if error.code == Code::Unreadable => continue,
            found => found?,
        };
        let person_id = Person::of_email(tx, ctx, &before.email.0)?;
        let mut user = User { person_id, ..before.clone() };
        records::change(tx, ctx, &before, &mut user, "updated")?;
        session::end_all_of_user(tx, ctx, &id)?;
    }
    Ok(())
}

/// Returns the users of an account, oldest first.
pub fn list(app: &App, account: i64) -> Result<Vec<User>> {
    let sql = format!("{} WHERE account_id = $1 ORDER BY created_at, id", User::sql().select);
    app.store.read_now(move |tx| Ok(tx.all(&sql, &[account.into()], User::from_row)?))
}

/// Creates a link for a new password.
pub fn reset(app: &App, email: &str) -> Result<String> {
    let (account, user) = first_user(app, email)?;
    let secret = token::new_secret()?;
    let own = secret.clone();
    write(app, account, move |tx, ctx| match active(tx, ctx, &user.base.id)? {
        Some(user) => create_reset(tx, ctx, &user, &own),
        None => Err(Error::not_found("user")),
    })?;
    Ok(Purpose::Reset.link(&app.site, &secret))
}

/// Ends all sessions of a person; returns how many there were.
pub fn end_sessions(app: &App, email: &str) -> Result<u64> {
    let (person, users) = person(app, email)?;
    let ended = app.store.write_now(engine::accounts::SHARED, move |tx| session::end_others(tx, &person.id, ""))?;
    if ended > 0 {
        tell(app, users, "session_ended")?;
    }
    Ok(ended)
}

/// Creates a link that signs a person in once, without a password and without a second factor.
pub fn sign_in_link(app: &App, email: &str) -> Result<String> {
    let (account, user) = first_user(app, email)?;
    let secret = token::new_secret()?;
    let own = secret.clone();
    write(app, account, move |tx, ctx| match active(tx, ctx, &user.base.id)? {
        Some(user) => {
            token::create(tx, ctx, Purpose::SignIn, &user.base.id, &own)?;
            records::happened(tx, ctx, &user, "sign_in_link_created")
        }
        None => Err(Error::not_found("user")),
    })?;
    Ok(Purpose::SignIn.link(&app.site, &secret))
}

/// Removes the second factors and recovery codes of a person who lost them, and ends the person's sessions; returns how many
/// factors there were. All accounts of the person have a log line about it, also those in which the user is not active.
pub fn remove_factors(app: &App, email: &str) -> Result<u64> {
    let (person, _) = person(app, email)?;
    let (id, vault) = (person.id, app.site.vault.clone());
    let (removed, users) = app.store.write_now(engine::accounts::SHARED, move |tx| {
        let removed = factor::forget(tx, &vault, &id)?;
        session::end_others(tx, &id, "")?;
        let users = of_any_status(tx, &id)?;
        Ok::<_, Error>((removed, with_accounts(tx, users)?))
    })?;
    if removed > 0 {
        tell(app, users, "two_factor_removed")?;
    }
    Ok(removed)
}

/// Writes to the logs of these accounts what happened to the person of their users.
fn tell(app: &App, users: Vec<(Account, User)>, event: &'static str) -> Result<()> {
    for (account, user) in users {
        write(app, account, move |tx, ctx| match records::find_some::<User>(tx, ctx, &[&user.base.id])?.pop() {
            Some(user) => records::happened(tx, ctx, &user, event),
            None => Ok(()),
        })?;
    }
    Ok(())
}

/// Finds the oldest active user of the person with an e-mail address.
fn first_user(app: &App, email: &str) -> Result<(Account, User)> {
    let (_, users) = person(app, email)?;
    let missing = || {
        Error::new(Code::NotFound, format!("{email} is not an active user of any account: see `kantoor user list`."))
    };
    users.into_iter().min_by_key(|(account, _)| account.is_closed()).ok_or_else(missing)
}

/// Finds the person with an e-mail address, and their active users.
fn person(app: &App, email: &str) -> Result<(Person, Vec<(Account, User)>)> {
    let own = email.to_string();
    app.store.read_now(move |tx| {
        let person = Person::with_email(tx, &own)?;
        let person =
            person.ok_or_else(|| Error::new(Code::NotFound, format!("Nobody has the e-mail address {own}.")))?;
        let users = accounts_of(tx, &person.id)?;
        Ok((person, users))
    })
}

fn write(
    app: &App,
    account: Account,
    work: impl Fn(&mut Tx, &Ctx) -> Result<()> + Send + Sync + 'static,
) -> Result<()> {
    let (number, caller) = (account.number, app.acting(account, OPERATOR));
    app.store.write_now(number, move |tx| {
        let ctx = caller.writing(tx)?;
        work(tx, &ctx)
    })
}
