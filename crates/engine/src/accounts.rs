//! Accounts and their keys: the root of every query.

use std::sync::OnceLock;

use jiff::tz::TimeZone;
use sha2::{Digest, Sha256};
use store::{Migration, Row, Tx};

use crate::clock::{Clock, Ids, Moment};
use crate::error::{Code, Error, Result};

/// The tables of accounts and keys.
pub const MIGRATION: Migration = Migration {
    number: 1,
    name: "accounts",
    sql: "
CREATE TABLE accounts (
    id BIGINT PRIMARY KEY,
    uid TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    zone TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    test_clock BIGINT NOT NULL
) STRICT;
CREATE TABLE keys (
    id TEXT PRIMARY KEY,
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    name TEXT NOT NULL,
    hash BLOB NOT NULL UNIQUE,
    hint TEXT NOT NULL,
    scopes TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    revoked_at BIGINT NOT NULL,
    last_used_at BIGINT NOT NULL
) STRICT;
CREATE INDEX keys_account ON keys (account_id, created_at);
CREATE TABLE record_counts (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    kind TEXT NOT NULL,
    total BIGINT NOT NULL,
    PRIMARY KEY (account_id, kind)
) STRICT, WITHOUT ROWID;
",
};

/// The zone of an account that chose none.
pub const DEFAULT_ZONE: &str = "Europe/Amsterdam";

/// The store's key for writes that belong to no account.
pub const SHARED: i64 = 0;

/// Whether the database takes writes: a transaction that changes no row still takes the lock and commits.
pub fn check_writable(tx: &mut Tx) -> Result<()> {
    tx.execute("UPDATE accounts SET name = name WHERE id = 0", &[])?;
    Ok(())
}

/// A business with its own records.
#[derive(Clone, Debug)]
pub struct Account {
    /// Its number in every table.
    pub number: i64,
    /// Its id for people and programs.
    pub uid: String,
    /// Name.
    pub name: String,
    /// Where its days begin.
    pub zone: TimeZone,
    /// When it was made.
    pub created_at: Moment,
    /// Whether its clock stands still until it is moved.
    pub has_test_clock: bool,
}

/// Where the clock of a test account stands.
struct TestClock(Moment);

const ACCOUNT: &str = "SELECT id, uid, name, zone, created_at, test_clock FROM accounts";

impl Account {
    fn from_row(row: &Row) -> Result<Account> {
        let (uid, zone) = (row.text(1)?, row.text(3)?);
        let unknown = || store::Error::unreadable(format!("time zone {zone} is not known")).at("accounts", uid, "zone");
        Ok(Account {
            number: row.int(0)?,
            uid: uid.to_string(),
            name: row.text(2)?.to_string(),
            zone: TimeZone::get(zone).map_err(|_| unknown())?,
            created_at: Moment(row.int(4)?),
            has_test_clock: row.int(5)? != 0,
        })
    }

    /// The time in the account: its test clock, or `clock`.
    pub fn now(&self, tx: &mut Tx, clock: &Clock) -> Result<Moment> {
        if !self.has_test_clock {
            return Ok(clock.now());
        }
        if let Some(TestClock(stands)) = tx.memory::<Option<TestClock>>("accounts", self.number) {
            return Ok(*stands);
        }
        let stands = Moment(tx.int("SELECT test_clock FROM accounts WHERE id = $1", &[self.number.into()])?);
        *tx.memory("accounts", self.number) = Some(TestClock(stands));
        Ok(stands)
    }

    /// Every account, oldest first.
    pub fn all(tx: &mut Tx) -> Result<Vec<Account>> {
        tx.all(&format!("{ACCOUNT} ORDER BY id"), &[], Account::from_row)
    }

    /// The account with this public id.
    pub fn find(tx: &mut Tx, uid: &str) -> Result<Account> {
        tx.first(&format!("{ACCOUNT} WHERE uid = $1"), &[uid.into()], Account::from_row)?
            .ok_or_else(|| Error::new(Code::NotFound, format!("No account has the id {uid}.")))
    }

    /// The account with this number.
    pub fn numbered(tx: &mut Tx, number: i64) -> Result<Account> {
        tx.first(&format!("{ACCOUNT} WHERE id = $1"), &[number.into()], Account::from_row)?
            .ok_or_else(|| Error::internal(format!("no account has the number {number}")))
    }

    /// Makes an account whose days begin in `zone`; with `test_clock` its time stands still there.
    pub fn create(
        tx: &mut Tx,
        name: &str,
        zone: &str,
        test_clock: Option<Moment>,
        now: Moment,
        ids: &Ids,
    ) -> Result<Account> {
        if TimeZone::get(zone).is_err() {
            let message = format!("Unknown time zone '{zone}'. Use a name such as Europe/Amsterdam.");
            return Err(Error::new(Code::ValidationFailed, message));
        }
        if name.trim().is_empty() || name.chars().count() > 255 || name.chars().any(char::is_control) {
            return Err(Error::new(Code::ValidationFailed, "The name of an account must have 1 to 255 characters."));
        }
        let uid = ids.next();
        tx.hold_all()?;
        tx.execute(
            "INSERT INTO accounts (id, uid, name, zone, created_at, test_clock)
             VALUES ((SELECT coalesce(max(id), 0) + 1 FROM accounts), $1, $2, $3, $4, $5)",
            &[(&uid).into(), name.into(), zone.into(), now.0.into(), test_clock.map_or(0, |moment| moment.0).into()],
        )?;
        Account::find(tx, &uid)
    }
}

/// Every scope that a key can have.
static SCOPES: OnceLock<Vec<String>> = OnceLock::new();

/// Says which areas the API has: `{area}.read` and `{area}.write` are the scopes of keys, and `*` is all of them.
pub fn install(areas: &[&str]) {
    let scopes = areas.iter().flat_map(|area| [format!("{area}.read"), format!("{area}.write")]);
    let _ = SCOPES.set(scopes.chain(["*".to_string()]).collect());
}

/// Every scope that a key can have; `*` is all of them.
pub fn scopes() -> &'static [String] {
    SCOPES.get().map_or(&[], Vec::as_slice)
}

/// A key as the database knows it: without the key.
#[derive(Clone, Debug)]
pub struct Key {
    /// Its id, which is also the actor of what it does.
    pub id: String,
    /// Whose records it opens.
    pub account: i64,
    /// Name.
    pub name: String,
    /// Its first characters.
    pub hint: String,
    /// What it may do.
    pub scopes: Vec<String>,
    /// When it was made.
    pub created_at: Moment,
    /// When it ends; 0 for never.
    pub expires_at: Moment,
    /// When it was revoked; 0 for not.
    pub revoked_at: Moment,
    /// When it was last used, give or take a minute; 0 for never.
    pub last_used_at: Moment,
}

const KEY: &str =
    "SELECT id, account_id, name, hint, scopes, created_at, expires_at, revoked_at, last_used_at FROM keys";

/// What a new key is to be.
#[derive(Clone, Debug)]
pub struct NewKey {
    /// Name.
    pub name: String,
    /// What it may do.
    pub scopes: Vec<String>,
    /// When it ends.
    pub expires_at: Option<Moment>,
}

impl Key {
    fn from_row(row: &Row) -> Result<Key> {
        Ok(Key {
            id: row.text(0)?.to_string(),
            account: row.int(1)?,
            name: row.text(2)?.to_string(),
            hint: row.text(3)?.to_string(),
            scopes: row.text(4)?.split(',').map(str::to_string).collect(),
            created_at: Moment(row.int(5)?),
            expires_at: Moment(row.int(6)?),
            revoked_at: Moment(row.int(7)?),
            last_used_at: Moment(row.int(8)?),
        })
    }

    /// Makes a key; answers its id. The secret is not kept.
    pub fn create(tx: &mut Tx, account: i64, secret: &str, new: &NewKey, now: Moment, ids: &Ids) -> Result<String> {
        let known = scopes();
        if let Some(odd) = new.scopes.iter().find(|scope| !known.contains(scope)) {
            let message = format!("Unknown scope '{odd}'. Choose from: {}.", known.join(", "));
            return Err(Error::new(Code::ValidationFailed, message));
        }
        if new.scopes.is_empty() {
            return Err(Error::new(Code::ValidationFailed, "A key requires at least one scope."));
        }
        let id = ids.next();
        tx.execute(
            "INSERT INTO keys (id, account_id, name, hash, hint, scopes, created_at, expires_at, revoked_at, last_used_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, 0)",
            &[
                (&id).into(),
                account.into(),
                (&new.name).into(),
                hash(secret).as_slice().into(),
                secret[..9].into(),
                new.scopes.join(",").into(),
                now.0.into(),
                new.expires_at.map_or(0, |moment| moment.0).into(),
            ],
        )?;
        Ok(id)
    }

    /// The key with this hash.
    pub fn by_hash(tx: &mut Tx, hash: &[u8]) -> Result<Option<Key>> {
        tx.first(&format!("{KEY} WHERE hash = $1"), &[hash.into()], Key::from_row)
    }

    /// The keys of an account, oldest first.
    pub fn of_account(tx: &mut Tx, account: i64) -> Result<Vec<Key>> {
        let sql = format!("{KEY} WHERE account_id = $1 ORDER BY created_at, id");
        tx.all(&sql, &[account.into()], Key::from_row)
    }

    /// Ends a key. Again: no change.
    pub fn revoke(tx: &mut Tx, id: &str, now: Moment) -> Result<()> {
        let sql = "UPDATE keys SET revoked_at = CASE WHEN revoked_at = 0 THEN $1 ELSE revoked_at END WHERE id = $2";
        match tx.execute(sql, &[now.0.into(), id.into()])? {
            0 => Err(Error::new(Code::NotFound, format!("No key has the id {id}."))),
            _ => Ok(()),
        }
    }

    /// Notes that keys were used.
    pub fn used(tx: &mut Tx, uses: &[(String, Moment)]) -> Result<()> {
        for (id, moment) in uses {
            tx.execute("UPDATE keys SET last_used_at = $1 WHERE id = $2", &[moment.0.into(), id.into()])?;
        }
        Ok(())
    }

    /// Whether it may do this.
    pub fn may(&self, scope: &str) -> bool {
        self.scopes.iter().any(|has| has == "*" || has == scope)
    }

    /// Whether it opens anything at `now`.
    pub fn is_live(&self, now: Moment) -> bool {
        self.revoked_at.0 == 0 && (self.expires_at.0 == 0 || now < self.expires_at)
    }
}

const BASE62: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// How many characters of a key are drawn by lot: 178 bits.
const RANDOM: usize = 30;
/// How many more check the others, so that a typing error never reaches the database.
const CHECK: usize = 6;

/// A new secret: `kt_`, 30 characters of chance and 6 that check them.
pub fn new_secret() -> Result<String> {
    let mut text = String::from("kt_");
    let mut bytes = [0u8; 64];
    while text.len() < 3 + RANDOM {
        getrandom::fill(&mut bytes)
            .map_err(|error| Error::internal(format!("cannot generate random numbers: {error}")))?;
        // 248 is the largest multiple of 62 in a byte: what is above would favour some letters.
        let letters = bytes.iter().filter(|byte| **byte < 248).map(|byte| BASE62[usize::from(byte % 62)] as char);
        text.extend(letters.take(3 + RANDOM - text.len()));
    }
    let check = checksum(&text);
    Ok(text + &check)
}

/// Whether a text can be a key at all.
pub fn is_well_formed(secret: &str) -> bool {
    let letters = secret.as_bytes();
    letters.len() == 3 + RANDOM + CHECK
        && letters.starts_with(b"kt_")
        && letters[3..].iter().all(u8::is_ascii_alphanumeric)
        && checksum(&secret[..3 + RANDOM]) == secret[3 + RANDOM..]
}

/// What is kept of a key.
pub fn hash(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

fn checksum(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest[..CHECK].iter().map(|byte| BASE62[usize::from(byte % 62)] as char).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_check_themselves() {
        let secret = new_secret().unwrap();
        assert!(is_well_formed(&secret));
        assert_ne!(secret, new_secret().unwrap());
        let mut typo = secret.into_bytes();
        typo[10] = if typo[10] == b'a' { b'b' } else { b'a' };
        assert!(!is_well_formed(std::str::from_utf8(&typo).unwrap()));
        assert!(!is_well_formed("kt_"));
        assert!(!is_well_formed("kt_ééééééééééééééééééééé"));
    }
}
