//! People: who signs in. A person has an e-mail address and a password, and a user in each of their accounts.

use engine::context::Ctx;
use engine::error::Result;
use store::{Migration, Row, Tx};

use crate::people::sealing;

/// The tables of people, their sessions and their links. `people` has no account, since a person may have several.
pub const MIGRATION: Migration = Migration {
    number: 37,
    name: "people",
    sql: "
CREATE TABLE people (
    id TEXT PRIMARY KEY,
    email TEXT NOT NULL UNIQUE,
    password TEXT NOT NULL,
    password_at BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    signature BLOB NOT NULL DEFAULT x'',
    proven BIGINT NOT NULL DEFAULT 1
) STRICT;
CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    user_id TEXT NOT NULL,
    person_id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    seen_at BIGINT NOT NULL,
    browser TEXT NOT NULL,
    address TEXT NOT NULL,
    via TEXT NOT NULL DEFAULT 'password',
    confirmed_at BIGINT NOT NULL DEFAULT 0,
    mark BLOB NOT NULL DEFAULT x''
) STRICT;
CREATE INDEX sessions_user ON sessions (account_id, user_id);
CREATE INDEX sessions_person ON sessions (person_id, created_at);
CREATE INDEX sessions_seen ON sessions (account_id, seen_at);
CREATE TABLE one_time_tokens (
    hash BLOB PRIMARY KEY,
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    purpose TEXT NOT NULL,
    user_id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    used_at BIGINT NOT NULL,
    new_password TEXT NOT NULL DEFAULT '',
    shown BIGINT NOT NULL DEFAULT 0,
    mark BLOB NOT NULL DEFAULT x''
) STRICT;
CREATE INDEX one_time_tokens_user ON one_time_tokens (account_id, user_id);
CREATE INDEX one_time_tokens_age ON one_time_tokens (account_id, expires_at);
CREATE TABLE sign_in_attempts (
    id TEXT PRIMARY KEY,
    subject TEXT NOT NULL,
    at BIGINT NOT NULL
) STRICT;
CREATE INDEX sign_in_attempts_subject ON sign_in_attempts (subject, at);
CREATE INDEX sign_in_attempts_age ON sign_in_attempts (at);
",
};

/// A person who can sign in.
#[derive(Clone, Debug)]
pub struct Person {
    /// The id.
    pub id: String,
    /// The e-mail address, folded.
    pub email: String,
    /// The hash of the password, or empty.
    pub password: String,
}

const PERSON: &str = "SELECT id, email, password FROM people";

/// Returns an e-mail address as it is compared and stored.
pub fn folded(email: &str) -> String {
    // Some signs, such as that of the kelvin, have a letter of another mailbox as their lower case.
    let lower = |sign: char| sign.is_ascii() || !sign.to_lowercase().any(|letter| letter.is_ascii());
    email.trim().chars().flat_map(|sign| if lower(sign) { sign.to_lowercase().collect() } else { vec![sign] }).collect()
}

impl Person {
    fn from_row(row: &Row) -> Result<Person> {
        let text = |column: usize| row.text(column).map(str::to_string);
        Ok(Person { id: text(0)?, email: text(1)?, password: text(2)? })
    }

    /// Finds the person with this e-mail address.
    pub fn with_email(tx: &mut Tx, email: &str) -> Result<Option<Person>> {
        tx.first(&format!("{PERSON} WHERE email = $1"), &[folded(email).into()], Person::from_row)
    }

    /// Finds the person with this id.
    pub fn find(tx: &mut Tx, id: &str) -> Result<Person> {
        let found = tx.first(&format!("{PERSON} WHERE id = $1"), &[id.into()], Person::from_row)?;
        // The program only deletes people who have no user.
        let gone = || store::Error::unreadable("the person was deleted outside the program").at("people", id, "id");
        found.ok_or_else(|| gone().into())
    }

    /// Returns the id of the person with this e-mail address, who is created without a password if necessary, and locked: while
    /// this transaction adds a user, another account may delete the only one of theirs.
    pub fn of_email(tx: &mut Tx, ctx: &Ctx, email: &str) -> Result<String> {
        loop {
            let created = tx.execute(
                "INSERT INTO people (id, email, password, password_at, created_at, proven) VALUES ($1, $2, '', 0, $3, 0)
                 ON CONFLICT (email) DO NOTHING",
                &[ctx.new_id().into(), folded(email).into(), ctx.machine_now.0.into()],
            )?;
            let Some(person) = Person::with_email(tx, email)? else { continue };
            if created > 0 {
                sealing::sign(tx, &ctx.site.vault, &person.id)?;
                return Ok(person.id);
            }
            sealing::lock(tx, &person.id)?;
            if Person::with_email(tx, email)?.is_some_and(|locked| locked.id == person.id) {
                return Ok(person.id);
            }
        }
    }

    /// Records that the e-mail address is that of the person: a link that only they could read was opened, or an issuer vouches
    /// for it.
    pub fn prove(tx: &mut Tx, ctx: &Ctx, id: &str) -> Result<()> {
        Person::set_proven(tx, ctx, id, true)
    }

    /// Records that somebody else may have chosen the password of the person.
    pub fn doubt(tx: &mut Tx, ctx: &Ctx, id: &str) -> Result<()> {
        Person::set_proven(tx, ctx, id, false)
    }

    fn set_proven(tx: &mut Tx, ctx: &Ctx, id: &str, is_proven: bool) -> Result<()> {
        sealing::change(tx, &ctx.site.vault, id, |tx| {
            tx.execute("UPDATE people SET proven = $1 WHERE id = $2", &[i64::from(is_proven).into(), id.into()])?;
            Ok(())
        })
    }

    /// Whether that is recorded.
    pub fn is_proven(tx: &mut Tx, id: &str) -> Result<bool> {
        Ok(tx.int("SELECT proven FROM people WHERE id = $1", &[id.into()])? != 0)
    }

    /// Removes what a person signs in with: somebody else may have chosen it. Returns the events of what was removed.
    pub fn forget_secrets(tx: &mut Tx, ctx: &Ctx, id: &str) -> Result<Vec<&'static str>> {
        sealing::change(tx, &ctx.site.vault, id, |tx| {
            let has_password = !Person::find(tx, id)?.password.is_empty();
            // An enrolment that was begun is no factor yet.
            let count = "SELECT count(*) FROM second_factors WHERE person_id = $1 AND confirmed_at > 0";
            let factors = tx.int(count, &[id.into()])?;
            for table in ["recovery_codes", "second_factors"] {
                tx.execute(&format!("DELETE FROM {table} WHERE person_id = $1"), &[id.into()])?;
            }
            let sessions = tx.execute("DELETE FROM sessions WHERE person_id = $1", &[id.into()])?;
            tx.execute("UPDATE people SET password = '' WHERE id = $1", &[id.into()])?;
            let removed = [
                (has_password, "password_changed"),
                (factors > 0, "two_factor_removed"),
                (sessions > 0, "session_ended"),
            ];
            Ok(removed.into_iter().filter(|(is_removed, _)| *is_removed).map(|(_, event)| event).collect())
        })
    }

    /// Deletes a person who is no longer a user of any account, with what they signed in with.
    pub fn forget(tx: &mut Tx, id: &str) -> Result<()> {
        sealing::lock(tx, id)?;
        if tx.int("SELECT count(*) FROM users WHERE person_id = $1", &[id.into()])? > 0 {
            return Ok(());
        }
        for table in ["recovery_codes", "second_factors", "sessions", "sign_in_failures"] {
            tx.execute(&format!("DELETE FROM {table} WHERE person_id = $1"), &[id.into()])?;
        }
        tx.execute("DELETE FROM people WHERE id = $1", &[id.into()])?;
        Ok(())
    }

    /// Locks a person and returns them as they are then.
    pub fn locked(tx: &mut Tx, id: &str) -> Result<Person> {
        sealing::lock(tx, id)?;
        Person::find(tx, id)
    }

    /// Stores the hash of a new password, unless the current one is no longer `replaced`; returns whether it did.
    pub fn set_password(tx: &mut Tx, ctx: &Ctx, id: &str, replaced: &str, hash: &str) -> Result<bool> {
        let sql = "UPDATE people SET password = $1, password_at = $2 WHERE id = $3 AND password = $4";
        let values = [hash.into(), ctx.machine_now.0.into(), id.into(), replaced.into()];
        sealing::change(tx, &ctx.site.vault, id, |tx| Ok(tx.execute(sql, &values)? > 0))
    }
}
