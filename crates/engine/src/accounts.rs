//! Accounts and their keys. Every query is restricted to an account.

use std::sync::OnceLock;

use jiff::tz::TimeZone;
use ring::digest::{SHA256, digest};
use store::{Migration, Row, Tx};
use web::Network;

use crate::clock::{Clock, Ids, Moment};
use crate::error::{Code, Error, Result};
use crate::random;
use crate::text;

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
    test_clock BIGINT NOT NULL,
    closed_at BIGINT NOT NULL DEFAULT 0
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
    last_used_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL DEFAULT 0,
    version BIGINT NOT NULL DEFAULT 0,
    allowed_networks TEXT NOT NULL DEFAULT '',
    old_secret_until BIGINT NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX keys_created ON keys (account_id, created_at, id);
CREATE INDEX keys_id ON keys (account_id, id);
CREATE INDEX keys_name ON keys (account_id, name, id);
CREATE INDEX keys_live ON keys (account_id) WHERE revoked_at = 0;
CREATE TABLE old_key_secrets (
    hash BLOB PRIMARY KEY,
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    key_id TEXT NOT NULL,
    until BIGINT NOT NULL,
    signature BLOB NOT NULL DEFAULT x''
) STRICT;
CREATE INDEX old_key_secrets_key ON old_key_secrets (account_id, key_id);
CREATE TABLE record_counts (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    kind TEXT NOT NULL,
    total BIGINT NOT NULL,
    PRIMARY KEY (account_id, kind)
) STRICT, WITHOUT ROWID;
",
};

/// The default time zone of an account.
pub const DEFAULT_ZONE: &str = "Europe/Amsterdam";

/// The type of the first line of an account's log.
pub const CREATED: &str = "account.created";

/// The type of the line that a change of the account itself writes.
pub const UPDATED: &str = "account.updated";

/// The type of the line that closing an account writes.
pub const CLOSED: &str = "account.closed";

/// The type of the line that reopening an account writes.
pub const REOPENED: &str = "account.reopened";

/// The type of the line that accepting the database as it is writes.
pub const TRUSTED: &str = "account.database_trusted";

/// The key in the write queue for writes without an account.
pub const SHARED: i64 = 0;

/// Checks whether the database accepts writes: a transaction that changes no row still takes the lock and commits.
pub fn check_writable(tx: &mut Tx) -> Result<()> {
    tx.execute("UPDATE accounts SET name = name WHERE id = 0", &[])?;
    Ok(())
}

/// An account: a business with its own records.
#[derive(Clone, Debug)]
pub struct Account {
    /// Its internal number in every table.
    pub number: i64,
    /// Its public id.
    pub uid: String,
    /// Name.
    pub name: String,
    /// Its time zone, which determines its days.
    pub zone: TimeZone,
    /// When it was created.
    pub created_at: Moment,
    /// Whether it has a test clock.
    pub has_test_clock: bool,
    /// When it was closed; 0 if it is open.
    pub closed_at: Moment,
}

/// Where the clock of a test account stands.
struct TestClock(Moment);

fn unknown_zone(zone: &str) -> String {
    format!("time zone {zone} is not known")
}

const ACCOUNT: &str = "SELECT id, uid, name, zone, created_at, test_clock, closed_at FROM accounts";

impl Account {
    fn from_row(row: &Row) -> Result<Account> {
        let (uid, zone) = (row.text(1)?, row.text(3)?);
        let unknown = || store::Error::unreadable(unknown_zone(zone)).at("accounts", uid, "zone");
        Account::in_zone(row, TimeZone::get(zone).map_err(|_| unknown())?)
    }

    fn in_zone(row: &Row, zone: TimeZone) -> Result<Account> {
        Ok(Account {
            number: row.int(0)?,
            uid: row.text(1)?.to_string(),
            name: row.text(2)?.to_string(),
            zone,
            created_at: Moment(row.int(4)?),
            has_test_clock: row.int(5)? != 0,
            closed_at: Moment(row.int(6)?),
        })
    }

    /// Whether it is closed: its records stay, but nobody can reach them and nothing happens in it.
    pub fn is_closed(&self) -> bool {
        self.closed_at.0 != 0
    }

    /// Rejects a caller of a closed account.
    pub fn check_open(&self) -> Result<()> {
        if !self.is_closed() {
            return Ok(());
        }
        let message = "This account is closed. Nothing was deleted; the operator of the server can reopen it.";
        Err(Error::new(Code::AccountClosed, message))
    }

    /// Returns the time of the account: that of its test clock, or of `clock`.
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

    /// Returns the account as the first line of its log shows it.
    pub fn shown(&self) -> serde_json::Value {
        let zone = self.zone.iana_name().unwrap_or_default();
        serde_json::json!({
            "id": self.uid, "name": self.name, "time_zone": zone, "test_clock": self.has_test_clock,
        })
    }

    /// Closes the account, or reopens it if the time is 0.
    pub fn close(&self, tx: &mut Tx, closed_at: Moment) -> Result<()> {
        tx.execute("UPDATE accounts SET closed_at = $1 WHERE id = $2", &[closed_at.0.into(), self.number.into()])?;
        Ok(())
    }

    /// Gives the account another name, and returns it.
    pub fn rename(&self, tx: &mut Tx, name: &str) -> Result<Account> {
        tx.execute("UPDATE accounts SET name = $1 WHERE id = $2", &[name.into(), self.number.into()])?;
        Account::numbered(tx, self.number)
    }

    /// Returns all accounts, oldest first.
    pub fn all(tx: &mut Tx) -> Result<Vec<Account>> {
        tx.all(&format!("{ACCOUNT} ORDER BY id"), &[], Account::from_row)
    }

    /// Returns all accounts, oldest first, each with what is wrong with its time zone: one that is not known counts as UTC, so
    /// that the rest of the account can be checked.
    pub fn all_to_check(tx: &mut Tx) -> Result<Vec<(Account, Option<String>)>> {
        tx.all(&format!("{ACCOUNT} ORDER BY id"), &[], Account::to_check)
    }

    /// Finds the account with this public id, with what is wrong with its time zone.
    pub fn find_to_check(tx: &mut Tx, uid: &str) -> Result<(Account, Option<String>)> {
        tx.first(&format!("{ACCOUNT} WHERE uid = $1"), &[uid.into()], Account::to_check)?
            .ok_or_else(|| Account::missing(uid))
    }

    fn to_check(row: &Row) -> Result<(Account, Option<String>)> {
        let zone = row.text(3)?;
        let (known, wrong) = match TimeZone::get(zone) {
            Ok(known) => (known, None),
            Err(_) => (TimeZone::UTC, Some(unknown_zone(zone))),
        };
        Ok((Account::in_zone(row, known)?, wrong))
    }

    fn missing(uid: &str) -> Error {
        Error::new(Code::NotFound, format!("No account has the id {uid}."))
    }

    /// Finds the account with this public id.
    pub fn find(tx: &mut Tx, uid: &str) -> Result<Account> {
        tx.first(&format!("{ACCOUNT} WHERE uid = $1"), &[uid.into()], Account::from_row)?
            .ok_or_else(|| Account::missing(uid))
    }

    /// Finds the account with this number.
    pub fn numbered(tx: &mut Tx, number: i64) -> Result<Account> {
        tx.first(&format!("{ACCOUNT} WHERE id = $1"), &[number.into()], Account::from_row)?
            .ok_or_else(|| Error::internal(format!("no account has the number {number}")))
    }

    /// Creates an account in the time zone `zone`; with `test_clock`, its time stands still there.
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
        check_name(name)?;
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

/// Rejects a name that no account can have.
pub fn check_name(name: &str) -> Result<()> {
    if name.trim().is_empty() || name.chars().count() > 255 {
        return Err(Error::new(Code::ValidationFailed, "The name of an account must have 1 to 255 characters."));
    }
    text::check_name(name)
        .map_err(|wrong| Error::new(Code::ValidationFailed, format!("The name of an account {}.", wrong.message)))
}

/// Every scope that a key can have.
static SCOPES: OnceLock<Vec<String>> = OnceLock::new();

/// Sets the areas of the API: `{area}.read` and `{area}.write` are the scopes of keys, and `*` grants all of them.
pub fn install(areas: &[&str]) {
    let scopes = areas.iter().flat_map(|area| [format!("{area}.read"), format!("{area}.write")]);
    let _ = SCOPES.set(scopes.chain(["*".to_string()]).collect());
}

/// Returns every scope that a key can have; `*` grants all of them.
pub fn scopes() -> &'static [String] {
    SCOPES.get().map_or(&[], Vec::as_slice)
}

/// A stored key, without its secret.
#[derive(Clone, Debug, Default)]
pub struct Key {
    /// Its id, which is also its actor in the log; the id of the user if it stands for a session.
    pub id: String,
    /// The id of the session that it stands for, or empty.
    pub session: String,
    /// The account that it gives access to.
    pub account: i64,
    /// Name.
    pub name: String,
    /// Its first characters.
    pub hint: String,
    /// Its scopes.
    pub scopes: Vec<String>,
    /// When it was created.
    pub created_at: Moment,
    /// When it expires; 0 for never.
    pub expires_at: Moment,
    /// When it was revoked; 0 if it was not.
    pub revoked_at: Moment,
    /// When it was last used, accurate to about a minute; 0 for never.
    pub last_used_at: Moment,
    /// The networks that it can be used from; empty for all.
    pub networks: Vec<Network>,
    /// Until when the secret works that the caller sent, if the key has a new one; otherwise 0.
    pub secret_until: Moment,
}

const KEY: &str =
    "SELECT keys.id, keys.account_id, keys.name, keys.hint, keys.scopes, keys.created_at, keys.expires_at,
     keys.revoked_at, keys.last_used_at, keys.allowed_networks";

/// The properties of a new key.
#[derive(Clone, Debug, Default)]
pub struct NewKey {
    /// Name.
    pub name: String,
    /// Its scopes.
    pub scopes: Vec<String>,
    /// When it expires.
    pub expires_at: Option<Moment>,
}

impl Key {
    fn from_row(row: &Row) -> Result<Key> {
        let id = row.text(0)?;
        let networks = row.text(9)?.split(',').filter(|network| !network.is_empty()).map(str::parse);
        let networks = networks.collect::<std::result::Result<Vec<Network>, String>>();
        let unreadable = |why| store::Error::unreadable(why).at("keys", id, "allowed_networks");
        Ok(Key {
            id: id.to_string(),
            session: String::new(),
            account: row.int(1)?,
            name: row.text(2)?.to_string(),
            hint: row.text(3)?.to_string(),
            scopes: row.text(4)?.split(',').map(str::to_string).collect(),
            created_at: Moment(row.int(5)?),
            expires_at: Moment(row.int(6)?),
            revoked_at: Moment(row.int(7)?),
            last_used_at: Moment(row.int(8)?),
            networks: networks.map_err(unreadable)?,
            secret_until: Moment(0),
        })
    }

    /// Finds the key with this hash of its secret, or of one that it had before. A key of version 0 has no log line: this
    /// program did not create it.
    pub fn by_hash(tx: &mut Tx, hash: &[u8]) -> Result<Option<Key>> {
        let sql = format!("{KEY} FROM keys WHERE hash = $1 AND version > 0");
        let current = tx.first(&sql, &[hash.into()], Key::from_row)?;
        if current.is_some() {
            return Ok(current);
        }
        let sql = format!(
            "{KEY}, old_key_secrets.until FROM old_key_secrets JOIN keys ON keys.id = old_key_secrets.key_id
             WHERE old_key_secrets.hash = $1 AND keys.version > 0"
        );
        tx.first(&sql, &[hash.into()], |row| Ok(Key { secret_until: Moment(row.int(10)?), ..Key::from_row(row)? }))
    }

    /// Finds the key of an account with this id.
    pub fn find(tx: &mut Tx, account: i64, id: &str) -> Result<Option<Key>> {
        let sql = format!("{KEY} FROM keys WHERE id = $1 AND account_id = $2");
        tx.first(&sql, &[id.into(), account.into()], Key::from_row)
    }

    /// Returns the keys of an account, oldest first.
    pub fn of_account(tx: &mut Tx, account: i64) -> Result<Vec<Key>> {
        let sql = format!("{KEY} FROM keys WHERE account_id = $1 ORDER BY created_at, id");
        tx.all(&sql, &[account.into()], Key::from_row)
    }

    /// Records when keys were used.
    pub fn used(tx: &mut Tx, uses: &[(String, Moment)]) -> Result<()> {
        for (id, moment) in uses {
            let sql = "UPDATE keys SET last_used_at = $1 WHERE id = $2 AND last_used_at < $1";
            tx.execute(sql, &[moment.0.into(), id.into()])?;
        }
        Ok(())
    }

    /// Whether the key has this scope.
    pub fn may(&self, scope: &str) -> bool {
        self.scopes.iter().any(|has| has == "*" || has == scope)
    }

    /// Whether the key is valid at `now`.
    pub fn is_live(&self, now: Moment) -> bool {
        self.ended(now).is_none()
    }

    /// Returns why the key is not valid at `now`, if so.
    pub fn ended(&self, now: Moment) -> Option<String> {
        let is_over = |end: Moment| end.0 != 0 && now >= end;
        if self.revoked_at.0 != 0 {
            return Some("This key has been revoked.".to_string());
        }
        if is_over(self.expires_at) {
            return Some(format!("This key expired at {}.", self.expires_at));
        }
        let until = self.secret_until;
        is_over(until).then(|| format!("The key has a new secret; this one stopped working at {until}."))
    }
}

const BASE62: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Number of random characters of a key: 178 bits.
const RANDOM: usize = 30;
/// Number of check characters, so that a typing error never reaches the database.
const CHECK: usize = 6;

/// Generates a secret: `kt_`, 30 random characters and 6 check characters.
pub fn new_secret() -> Result<String> {
    let mut text = String::from("kt_");
    let mut bytes = [0u8; 64];
    while text.len() < 3 + RANDOM {
        random::fill(&mut bytes)?;
        // 248 is the largest multiple of 62 in a byte: higher values would make some letters more likely.
        let letters = bytes.iter().filter(|byte| **byte < 248).map(|byte| BASE62[usize::from(byte % 62)] as char);
        text.extend(letters.take(3 + RANDOM - text.len()));
    }
    let check = checksum(&text);
    Ok(text + &check)
}

/// Whether a string has the format of a key.
pub fn is_well_formed(secret: &str) -> bool {
    let letters = secret.as_bytes();
    letters.len() == 3 + RANDOM + CHECK
        && letters.starts_with(b"kt_")
        && letters[3..].iter().all(u8::is_ascii_alphanumeric)
        && checksum(&secret[..3 + RANDOM]) == secret[3 + RANDOM..]
}

/// Returns the hash of a key that is stored.
pub fn hash(secret: &str) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, secret.as_bytes()).as_ref());
    hash
}

fn checksum(text: &str) -> String {
    hash(text)[..CHECK].iter().map(|byte| BASE62[usize::from(byte % 62)] as char).collect()
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
