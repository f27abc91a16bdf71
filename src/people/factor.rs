//! Second factors: what a person proves in addition to the password. They belong to the person, not to an account.

use engine::accounts::SHARED;
use engine::choice;
use engine::clock::Moment;
use engine::context::Ctx;
use engine::error::{Code, Error, Result};
use engine::record::Kind;
use engine::secrets::columns::SecretColumn;
use engine::secrets::vault::{Place, Vault};
use store::{Migration, Row, Tx};

use crate::people::{recovery, sealing};

choice! {
    /// The type of a second factor.
    pub enum Method {
        /// An authenticator app, which shows a new code every 30 seconds.
        #[default]
        Totp = "totp",
        /// A passkey: a key in a device, or on a security key.
        Passkey = "passkey",
    }
}

/// Maximum number of factors of a person.
pub const MAX_FACTORS: i64 = 10;
/// How long an unfinished enrolment can be completed.
const ENROLMENT_SECONDS: i64 = 3600;

/// The tables of second factors and recovery codes. The account of a factor is that of the server, since its secret is
/// encrypted like those of accounts.
pub const MIGRATION: Migration = Migration {
    number: 38,
    name: "second factors",
    sql: "
CREATE TABLE second_factors (
    account_id BIGINT NOT NULL,
    id TEXT PRIMARY KEY,
    person_id TEXT NOT NULL,
    method TEXT NOT NULL,
    name TEXT NOT NULL,
    secret TEXT NOT NULL,
    credential TEXT NOT NULL,
    counter BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    confirmed_at BIGINT NOT NULL,
    used_at BIGINT NOT NULL
) STRICT;
CREATE INDEX second_factors_person ON second_factors (person_id, created_at);
CREATE INDEX second_factors_unfinished ON second_factors (created_at) WHERE confirmed_at = 0;
CREATE TABLE recovery_codes (
    hash BLOB PRIMARY KEY,
    person_id TEXT NOT NULL
) STRICT;
CREATE INDEX recovery_codes_person ON recovery_codes (person_id);
",
};

/// The column with the secrets of authenticator apps.
pub const SECRET: SecretColumn = SecretColumn { table: "second_factors", column: "secret" };

/// Returns the place of a factor's secret.
pub fn place(id: &str) -> Place<'_> {
    Place { account: SHARED, table: SECRET.table, column: SECRET.column, id }
}

/// A second factor.
#[derive(Clone, Debug)]
pub struct Factor {
    /// The id.
    pub id: String,
    /// Its type.
    pub method: Method,
    /// The name that the person gave it.
    pub name: String,
    /// The encrypted secret of an authenticator app.
    pub secret: String,
    /// The public key of a passkey with its id, as JSON; during the enrolment, its challenge.
    pub credential: String,
    /// The step of the last code of an authenticator app, or how often a passkey was used.
    pub counter: i64,
    /// When the enrolment started.
    pub created_at: Moment,
    /// When the enrolment was completed; 0 if it was not.
    pub confirmed_at: Moment,
    /// When it was last used; 0 for never.
    pub used_at: Moment,
}

const FACTOR: &str = "SELECT id, method, name, secret, credential, counter, created_at, confirmed_at, used_at
                      FROM second_factors";

impl Factor {
    fn from_row(row: &Row) -> Result<Factor> {
        let text = |column: usize| row.text(column).map(str::to_string);
        let id = text(0)?;
        Ok(Factor {
            method: Method::from_db(row, 1).map_err(|error| error.at("second_factors", &id, "method"))?,
            name: text(2)?,
            secret: text(3)?,
            credential: text(4)?,
            counter: row.int(5)?,
            created_at: Moment(row.int(6)?),
            confirmed_at: Moment(row.int(7)?),
            used_at: Moment(row.int(8)?),
            id,
        })
    }

    /// A factor whose enrolment starts now.
    pub fn new(id: String, method: Method, now: Moment) -> Factor {
        Factor {
            id,
            method,
            name: String::new(),
            secret: String::new(),
            credential: String::new(),
            counter: 0,
            created_at: now,
            confirmed_at: Moment(0),
            used_at: Moment(0),
        }
    }
}

/// Returns the factors of a person, oldest first, without unfinished enrolments.
pub fn of_person(tx: &mut Tx, person: &str) -> Result<Vec<Factor>> {
    let sql = format!("{FACTOR} WHERE person_id = $1 AND confirmed_at > 0 ORDER BY created_at, id");
    tx.all(&sql, &[person.into()], Factor::from_row)
}

/// Returns the types of these factors, each once.
pub fn methods(factors: &[Factor]) -> Vec<Method> {
    let has = |method: &Method| factors.iter().any(|factor| factor.method == *method);
    Method::ALL.iter().copied().filter(has).collect()
}

/// Starts the enrolment of a factor, in place of earlier ones that were not completed.
pub fn begin(tx: &mut Tx, person: &str, factor: &Factor) -> Result<()> {
    tx.execute("DELETE FROM second_factors WHERE person_id = $1 AND confirmed_at = 0", &[person.into()])?;
    tx.execute(
        "INSERT INTO second_factors (account_id, id, person_id, method, name, secret, credential, counter, created_at,
                                     confirmed_at, used_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, 0, $8, 0, 0)",
        &[
            SHARED.into(),
            (&factor.id).into(),
            person.into(),
            factor.method.wire().into(),
            (&factor.name).into(),
            (&factor.secret).into(),
            (&factor.credential).into(),
            factor.created_at.0.into(),
        ],
    )?;
    Ok(())
}

/// Finds the unfinished enrolment with this id.
pub fn unfinished(tx: &mut Tx, person: &str, id: &str, now: Moment) -> Result<Option<Factor>> {
    let sql = format!("{FACTOR} WHERE person_id = $1 AND id = $2 AND confirmed_at = 0 AND created_at > $3");
    let oldest = now.plus_seconds(-ENROLMENT_SECONDS).0;
    tx.first(&sql, &[person.into(), id.into(), oldest.into()], Factor::from_row)
}

/// Completes an enrolment with the name, credential and counter of this factor. Of two requests, the second is rejected.
pub fn complete(tx: &mut Tx, factor: &Factor, now: Moment) -> Result<bool> {
    let sql = "UPDATE second_factors SET name = $1, credential = $2, counter = $3, confirmed_at = $4, used_at = $4
               WHERE id = $5 AND confirmed_at = 0";
    let values =
        [(&factor.name).into(), (&factor.credential).into(), factor.counter.into(), now.0.into(), (&factor.id).into()];
    Ok(tx.execute(sql, &values)? > 0)
}

/// Records the use of a factor at this step; returns false if a code of this step or a later one was used before.
pub fn use_step(tx: &mut Tx, id: &str, step: i64, now: Moment) -> Result<bool> {
    let sql = "UPDATE second_factors SET counter = $1, used_at = $2 WHERE id = $3 AND counter < $1";
    Ok(tx.execute(sql, &[step.into(), now.0.into(), id.into()])? > 0)
}

/// Records the use of a passkey with this counter; returns false if it was used in the meantime.
pub fn use_passkey(tx: &mut Tx, factor: &Factor, counter: i64, now: Moment) -> Result<bool> {
    let sql = "UPDATE second_factors SET counter = $1, used_at = $2 WHERE id = $3 AND counter = $4";
    let values = [counter.into(), now.0.into(), (&factor.id).into(), factor.counter.into()];
    Ok(tx.execute(sql, &values)? > 0)
}

/// Removes a factor of a person; returns whether there was one.
pub fn remove(tx: &mut Tx, person: &str, id: &str) -> Result<bool> {
    let sql = "DELETE FROM second_factors WHERE person_id = $1 AND id = $2 AND confirmed_at > 0";
    Ok(tx.execute(sql, &[person.into(), id.into()])? > 0)
}

/// Removes all factors and recovery codes of a person; returns how many factors there were.
pub fn forget(tx: &mut Tx, vault: &Vault, person: &str) -> Result<u64> {
    sealing::change(tx, vault, person, |tx| {
        recovery::remove_all(tx, person)?;
        Ok(tx.execute("DELETE FROM second_factors WHERE person_id = $1", &[person.into()])?)
    })
}

/// Deletes enrolments that can no longer be completed.
pub fn purge(tx: &mut Tx, ctx: &Ctx) -> Result<u64> {
    let index = |name: &str| tx.dialect().indexed_by(name);
    let (by_id, by_age) = (index("sqlite_autoindex_second_factors_1"), index("second_factors_unfinished"));
    let sql = format!(
        "DELETE FROM second_factors{by_id} WHERE id IN
         (SELECT id FROM second_factors{by_age} WHERE confirmed_at = 0 AND created_at < $1 ORDER BY created_at LIMIT 200)"
    );
    Ok(tx.execute(&sql, &[ctx.machine_now.plus_seconds(-ENROLMENT_SECONDS).0.into()])?)
}

/// Rejects another factor of a person who has the maximum.
pub fn check_room(tx: &mut Tx, person: &str) -> Result<()> {
    let sql = "SELECT count(*) FROM second_factors WHERE person_id = $1 AND confirmed_at > 0";
    if tx.int(sql, &[person.into()])? < MAX_FACTORS {
        return Ok(());
    }
    let message = format!("You have {MAX_FACTORS} second factors, which is the maximum. Remove one first.");
    Err(Error::new(Code::LimitReached, message))
}
