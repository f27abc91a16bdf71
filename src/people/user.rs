//! Users: the people who have access to an account.

use engine::context::Ctx;
use engine::error::{Error, FieldErrors, Result};
use engine::record;
use engine::record::{ALL, COMPUTED, Email, INPUT, Model, NOWHERE, REQUIRED, Record, Rules};
use engine::text::check_name;
use engine::who::Who;
use store::{Migration, Tx};

use crate::people::person::{Person, folded};
use crate::people::role::Role;
use crate::people::status::{Language, Status};
use crate::people::{LAST_OWNER, session};

record! {
    /// A person who has access to the account.
    pub struct User = "user" in "users", created_at: ALL;

    /// E-mail address that the person signs in with, in lower case. A person may be a user of several accounts.
    email: Email = REQUIRED.create_only().unique(&[]).search().filter().example("\"anna@jansen.example\"");
    /// Name.
    name: String = REQUIRED.plain_name().names().sort().search().example("\"Anna Jansen\"");
    /// What the user may do. You can only give, change or remove a role whose scopes you have yourself.
    role: Role = INPUT.filter().default("\"member\"").example("\"member\"");
    /// Language of the mail to the user; by default that of the account.
    language: Language = INPUT.kept().example("\"nl\"");
    /// `invited` until the invitation is accepted, then `active`. Set it to `suspended` to end all sessions of the user
    /// and block new ones, and to `active` to restore access.
    status: Status = Rules { create: false, ..INPUT }.filter().example("\"invited\"");
    /// The person, whose password applies in all accounts.
    person_id: String = COMPUTED.shown(NOWHERE);
}

impl Model for User {
    const MOST: i64 = 1000;

    fn check(&self, faults: &mut FieldErrors) {
        faults.take("name", check_name(&self.name));
    }

    fn before_save(&mut self, tx: &mut Tx, ctx: &Ctx, before: Option<&Self>) -> Result<()> {
        // Not every caller checks it.
        if before.is_none_or(|before| before.name != self.name) {
            check_name(&self.name).map_err(|wrong| Error::field("name", wrong))?;
        }
        let Some(before) = before else {
            self.email.0 = folded(&self.email.0);
            self.person_id = Person::of_email(tx, ctx, &self.email.0)?;
            return Ok(());
        };
        if before.is_active_owner() && !self.is_active_owner() {
            check_other_owner(tx, ctx, &self.base.id)?;
        }
        Ok(())
    }

    fn after_save(&self, tx: &mut Tx, ctx: &Ctx, before: Option<&Self>) -> Result<()> {
        if self.status == Status::Suspended && before.is_some_and(|before| before.status != Status::Suspended) {
            session::end_all_of_user(tx, ctx, &self.base.id)?;
        }
        Ok(())
    }
}

impl User {
    /// Returns the user as an actor.
    pub(crate) fn who(&self) -> Who {
        Who::user(&self.base.id, &self.name)
    }

    pub(crate) fn is_active_owner(&self) -> bool {
        self.role == Role::Owner && self.status == Status::Active
    }
}

/// Returns the addresses of the active owners, oldest first.
pub(crate) fn owner_emails(tx: &mut Tx, ctx: &Ctx) -> Result<Vec<String>> {
    let sql = "SELECT email FROM users WHERE account_id = $1 AND role = $2 AND status = $3 ORDER BY created_at, id";
    let values = [ctx.account.into(), Role::Owner.wire().into(), Status::Active.wire().into()];
    tx.all(sql, &values, |row| Ok(row.text(0)?.to_string()))
}

/// Returns the addresses of the active users, those of the owners first, and of these the oldest first.
pub(crate) fn active_emails(tx: &mut Tx, ctx: &Ctx) -> Result<Vec<String>> {
    let sql = "SELECT email, role FROM users WHERE account_id = $1 AND status = $2 ORDER BY created_at, id";
    let values = [ctx.account.into(), Status::Active.wire().into()];
    let mut users =
        tx.all(sql, &values, |row| Ok::<_, Error>((row.text(1)? != Role::Owner.wire(), row.text(0)?.to_string())))?;
    users.sort_by_key(|(is_other, _)| *is_other);
    Ok(users.into_iter().map(|(_, email)| email).collect())
}

/// Rejects a change after which nobody could manage the account.
pub(crate) fn check_other_owner(tx: &mut Tx, ctx: &Ctx, id: &str) -> Result<()> {
    let sql = "SELECT count(*) FROM users WHERE account_id = $1 AND role = $2 AND status = $3 AND id <> $4";
    let values = [ctx.account.into(), Role::Owner.wire().into(), Status::Active.wire().into(), id.into()];
    if tx.int(sql, &values)? > 0 {
        return Ok(());
    }
    Err(Error::new(LAST_OWNER, "This is the last active owner of the account. Make another user an owner first."))
}

/// Returns the active users of a person with the numbers of their accounts, oldest first.
pub fn memberships(tx: &mut Tx, person: &str) -> Result<Vec<(i64, User)>> {
    of_person(tx, person, Status::Active)
}

/// Returns the users of a person who have not accepted their invitation, with the numbers of their accounts, oldest first.
pub fn invitations(tx: &mut Tx, person: &str) -> Result<Vec<(i64, User)>> {
    of_person(tx, person, Status::Invited)
}

/// Returns all users of a person, whatever their status, with the numbers of their accounts.
pub fn of_any_status(tx: &mut Tx, person: &str) -> Result<Vec<(i64, User)>> {
    let mut all = Vec::new();
    for status in Status::ALL {
        all.extend(of_person(tx, person, *status)?);
    }
    Ok(all)
}

/// Whether a person is also a user of another account, even a suspended one. An invitation is not enough: anybody can send
/// one.
pub fn is_elsewhere(tx: &mut Tx, account: i64, person: &str) -> Result<bool> {
    let elsewhere = |(other, user): &(i64, User)| *other != account && user.status != Status::Invited;
    Ok(of_any_status(tx, person)?.iter().any(elsewhere))
}

fn of_person(tx: &mut Tx, person: &str, status: Status) -> Result<Vec<(i64, User)>> {
    let columns = &User::sql().columns;
    let sql = format!(
        "SELECT {columns}, account_id FROM users WHERE person_id = $1 AND status = '{}' ORDER BY created_at, id",
        status.wire()
    );
    let account = columns.split(',').count();
    tx.all(&sql, &[person.into()], |row| Ok::<_, Error>((row.int(account)?, User::from_row(row)?)))
}

pub(crate) const MIGRATIONS: &[Migration] = &[Migration {
    number: 36,
    name: "users",
    sql: "
CREATE TABLE users (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    email TEXT NOT NULL,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    language TEXT NOT NULL,
    status TEXT NOT NULL,
    person_id TEXT NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX users_created ON users (account_id, created_at, id);
CREATE UNIQUE INDEX users_once ON users (account_id, email);
CREATE INDEX users_name ON users (account_id, name, id);
CREATE INDEX users_role ON users (account_id, role, created_at, id);
CREATE INDEX users_status ON users (account_id, status, created_at, id);
CREATE INDEX users_person ON users (person_id, created_at, id);
CREATE INDEX users_email_folded ON users (account_id, lower(email), created_at, id);
",
}];
