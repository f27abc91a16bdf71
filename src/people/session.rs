//! Sessions: what a person has after signing in. A session calls the API as a key with the scopes of the user's role.

use engine::accounts::{self, Account, Key};
use engine::choice;
use engine::clock::Moment;
use engine::context::Ctx;
use engine::error::{Code, Error, Result};
use engine::record::Kind;
use engine::registry::Sessions;
use engine::secrets::vault::Vault;
use store::{Row, Tx};

use crate::people::entrances;
use crate::people::role::Role;
use crate::people::status::{Language, Status};
use crate::people::{CONFIRMATION_REQUIRED, TWO_FACTOR_REQUIRED};
use crate::settings::TwoFactor;

choice! {
    /// How somebody signed in.
    pub enum Via {
        /// With a password, and a second factor if the person has one.
        #[default]
        Password = "password",
        /// With a link of the operator.
        Operator = "operator",
        /// Through an OpenID Connect issuer, which decides about second factors itself.
        Issuer = "issuer",
    }
}

const DAY: i64 = 24 * 3600;
/// How long a session lasts without being used.
const IDLE_SECONDS: i64 = 14 * DAY;
/// How long a session lasts.
pub const LONGEST_SECONDS: i64 = 90 * DAY;
/// How long after signing in, or after entering the password again, dangerous actions are possible.
const CONFIRMED_SECONDS: i64 = 15 * 60;
/// Maximum number of sessions of a person.
const MAX_SESSIONS: i64 = 100;
/// The session of a user who acts as an author: there is none, but the id is that of a user.
const AUTHOR: &str = "author";

/// The sessions of the registry.
pub const SESSIONS: Sessions = Sessions { prefix: "/console", find, used, check_confirmed };

/// Where a session was started.
#[derive(Clone, Debug, Default)]
pub struct Device {
    /// The browser, as it names itself.
    pub browser: String,
    /// The IP address.
    pub address: String,
}

/// A new session.
#[derive(Clone, Debug)]
pub struct New<'n> {
    /// The secret, which is stored as a hash.
    pub secret: &'n str,
    /// Where it is started.
    pub device: &'n Device,
    /// How the person signed in.
    pub via: Via,
    /// When the person last proved who they are.
    pub confirmed_at: Moment,
    /// When the person signed in: a session that replaces another one ends when that one would have.
    pub created_at: Moment,
}

/// Starts a session of a user, who is this person. The oldest session ends if the person has too many.
pub fn create(tx: &mut Tx, ctx: &Ctx, user: &str, person: &str, new: &New) -> Result<()> {
    let sql = "DELETE FROM sessions WHERE person_id = $1 AND id NOT IN
               (SELECT id FROM sessions WHERE person_id = $1 ORDER BY created_at DESC, id DESC LIMIT $2)";
    tx.execute(sql, &[person.into(), (MAX_SESSIONS - 1).into()])?;
    tx.execute(
        "INSERT INTO sessions (id, hash, account_id, user_id, person_id, created_at, seen_at, browser, address, via,
                               confirmed_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
        &[
            ctx.new_id().into(),
            accounts::hash(new.secret).as_slice().into(),
            ctx.account.into(),
            user.into(),
            person.into(),
            new.created_at.0.into(),
            ctx.machine_now.0.into(),
            (&new.device.browser).into(),
            (&new.device.address).into(),
            new.via.wire().into(),
            new.confirmed_at.0.into(),
        ],
    )?;
    entrances::SESSIONS.mark(tx, &ctx.site.vault, &accounts::hash(new.secret))
}

/// A session with what its person proved.
#[derive(Clone, Debug)]
pub struct Held {
    /// The session, as the key that it stands for.
    pub key: Key,
    /// The account.
    pub account: Account,
    /// The person.
    pub person: String,
    /// How the person signed in.
    pub via: Via,
    /// When the person last proved who they are.
    pub confirmed_at: Moment,
    /// Whether the account requires a second factor and the person has none.
    pub lacks_factor: bool,
    /// The language of the user.
    pub language: Language,
}

impl Held {
    /// Rejects a dangerous action if the password was entered too long ago.
    pub fn check_confirmed(&self, now: Moment) -> Result<()> {
        check_recent(self.confirmed_at, now)
    }
}

/// Returns the session with this hash, if its user is active. One that somebody added or changed in the database is unknown.
pub fn held(tx: &mut Tx, vault: &Vault, hash: &[u8]) -> Result<Option<Held>> {
    let sql = format!(
        "SELECT sessions.id, sessions.account_id, sessions.user_id, sessions.created_at, sessions.seen_at,
                      users.name, users.role, users.status, sessions.person_id, sessions.via, sessions.confirmed_at,
                      COALESCE(settings.two_factor, ''),
                      (SELECT count(*) FROM second_factors
                       WHERE second_factors.person_id = sessions.person_id AND second_factors.confirmed_at > 0),
                      users.language, {}
               FROM sessions JOIN users ON users.account_id = sessions.account_id AND users.id = sessions.user_id
                    LEFT JOIN settings ON settings.account_id = sessions.account_id
               WHERE sessions.hash = $1",
        entrances::SESSIONS.marked()
    );
    let found = tx.first(&sql, &[hash.into()], |row: &Row| {
        let (created, seen) = (Moment(row.int(3)?), Moment(row.int(4)?));
        let role = Role::from_db(row, 6).map_err(|error| error.at("users", row.text(2).unwrap_or_default(), "role"))?;
        let via = Via::from_db(row, 9).map_err(|error| error.at("sessions", row.text(0).unwrap_or_default(), "via"))?;
        let key = Key {
            id: row.text(2)?.to_string(),
            session: row.text(0)?.to_string(),
            account: row.int(1)?,
            name: row.text(5)?.to_string(),
            hint: String::new(),
            scopes: role.scopes(),
            created_at: created,
            expires_at: created.plus_seconds(LONGEST_SECONDS).min(seen.plus_seconds(IDLE_SECONDS)),
            revoked_at: Moment(0),
            last_used_at: seen,
            ..Key::default()
        };
        let needs_factor = via != Via::Issuer
            && match TwoFactor::from_wire(row.text(11)?).unwrap_or_default() {
                TwoFactor::Off => false,
                TwoFactor::Owners => role == Role::Owner,
                TwoFactor::All => true,
            };
        let lacks_factor = needs_factor && row.int(12)? == 0;
        let opens = row.text(7)? == Status::Active.wire() && entrances::SESSIONS.is_ours(vault, hash, row, 14)?;
        let language = Language::from_wire(row.text(13)?).unwrap_or_default();
        let (person, confirmed_at) = (row.text(8)?.to_string(), Moment(row.int(10)?));
        Ok::<_, Error>((key, person, via, confirmed_at, lacks_factor, language, opens))
    })?;
    match found {
        Some((key, person, via, confirmed_at, lacks_factor, language, true)) => {
            let account = Account::numbered(tx, key.account)?;
            Ok(Some(Held { key, account, person, via, confirmed_at, lacks_factor, language }))
        }
        _ => Ok(None),
    }
}

/// Returns the session with this hash as the key that it stands for. A session without the second factor that its
/// account requires can only enrol one, outside the API.
fn find(tx: &mut Tx, vault: &Vault, hash: &[u8]) -> Result<Option<Key>> {
    match held(tx, vault, hash)? {
        Some(held) if held.lacks_factor => {
            let message = "This account requires a second factor. Add one at /two-factor first.";
            Err(Error::new(TWO_FACTOR_REQUIRED, message))
        }
        held => Ok(held.map(|held| held.key)),
    }
}

/// Rejects a dangerous action of a session if the password was entered too long ago.
fn check_confirmed(tx: &mut Tx, ctx: &Ctx, session: &str) -> Result<()> {
    // The person confirmed what the author does when it was saved.
    if session == AUTHOR {
        return Ok(());
    }
    let sql = "SELECT confirmed_at FROM sessions WHERE id = $1";
    let found = tx.first(sql, &[session.into()], |row: &Row| Ok::<_, Error>(Moment(row.int(0)?)))?;
    let ended = || Error::new(Code::Unauthorized, "Your session has ended. Sign in again.");
    check_recent(found.ok_or_else(ended)?, ctx.machine_now)
}

fn check_recent(confirmed_at: Moment, now: Moment) -> Result<()> {
    if confirmed_at > now.plus_seconds(-CONFIRMED_SECONDS) {
        return Ok(());
    }
    let message = "Confirm that it is you: enter your password (POST /console/confirm), or sign in again if you have none. The last time was more than 15 minutes ago.";
    Err(Error::new(CONFIRMATION_REQUIRED, message))
}

/// Records that the person of a session entered the password again.
pub fn confirm(tx: &mut Tx, vault: &Vault, id: &str, now: Moment) -> Result<()> {
    let sql = "SELECT hash FROM sessions WHERE id = $1";
    let Some(hash) = tx.first(sql, &[id.into()], |row: &Row| Ok::<_, Error>(row.bytes(0)?.to_vec()))? else {
        return Ok(());
    };
    entrances::SESSIONS.change(tx, vault, &hash, |tx| {
        tx.execute("UPDATE sessions SET confirmed_at = $1 WHERE id = $2", &[now.0.into(), id.into()])?;
        Ok(())
    })
}

/// Returns what an active user may do, as a key: for flows and endpoints, which act for their author without a session.
pub fn author(tx: &mut Tx, account: i64, id: &str) -> Result<Option<Key>> {
    let sql = "SELECT name, role, created_at FROM users WHERE account_id = $1 AND id = $2 AND status = $3";
    let active = Status::Active.wire();
    tx.first(sql, &[account.into(), id.into(), active.into()], |row: &Row| {
        let role = Role::from_db(row, 1).map_err(|error| error.at("users", id, "role"))?;
        Ok::<_, Error>(Key {
            id: id.to_string(),
            session: AUTHOR.to_string(),
            account,
            name: row.text(0)?.to_string(),
            hint: String::new(),
            scopes: role.scopes(),
            created_at: Moment(row.int(2)?),
            expires_at: Moment(0),
            revoked_at: Moment(0),
            last_used_at: Moment(0),
            ..Key::default()
        })
    })
}

/// Records when sessions were used. An expired one stays as it is, until it is deleted.
fn used(tx: &mut Tx, uses: &[(String, Moment)]) -> Result<()> {
    for (id, moment) in uses {
        let sql = "UPDATE sessions SET seen_at = $1 WHERE id = $2 AND created_at > $3 AND seen_at > $4";
        let oldest = moment.plus_seconds(-LONGEST_SECONDS);
        let idle = moment.plus_seconds(-IDLE_SECONDS);
        tx.execute(sql, &[moment.0.into(), id.into(), oldest.0.into(), idle.0.into()])?;
    }
    Ok(())
}

/// A session as its owner sees it.
pub struct Shown {
    /// The id.
    pub id: String,
    /// When it started.
    pub created_at: Moment,
    /// When it was last used, accurate to about a minute.
    pub seen_at: Moment,
    /// Where it was started.
    pub device: Device,
}

/// Returns the sessions of a person that have not expired, newest first.
pub fn of_person(tx: &mut Tx, person: &str, now: Moment) -> Result<Vec<Shown>> {
    let sql = "SELECT id, created_at, seen_at, browser, address FROM sessions
               WHERE person_id = $1 AND created_at > $2 AND seen_at > $3 ORDER BY created_at DESC LIMIT 100";
    let (oldest, idle) = (now.plus_seconds(-LONGEST_SECONDS), now.plus_seconds(-IDLE_SECONDS));
    tx.all(sql, &[person.into(), oldest.0.into(), idle.0.into()], |row| {
        Ok(Shown {
            id: row.text(0)?.to_string(),
            created_at: Moment(row.int(1)?),
            seen_at: Moment(row.int(2)?),
            device: Device { browser: row.text(3)?.to_string(), address: row.text(4)?.to_string() },
        })
    })
}

/// Ends a session of a person; returns whether it existed.
pub fn end(tx: &mut Tx, person: &str, id: &str) -> Result<bool> {
    let sql = "DELETE FROM sessions WHERE id = $1 AND person_id = $2";
    Ok(tx.execute(sql, &[id.into(), person.into()])? > 0)
}

/// Ends all sessions of a person except one; returns how many.
pub fn end_others(tx: &mut Tx, person: &str, id: &str) -> Result<u64> {
    let sql = "DELETE FROM sessions WHERE person_id = $1 AND id <> $2";
    Ok(tx.execute(sql, &[person.into(), id.into()])?)
}

/// Ends all sessions of a user of this account.
pub fn end_all_of_user(tx: &mut Tx, ctx: &Ctx, user: &str) -> Result<()> {
    tx.execute("DELETE FROM sessions WHERE account_id = $1 AND user_id = $2", &[ctx.account.into(), user.into()])?;
    Ok(())
}

/// Deletes expired sessions.
pub fn purge(tx: &mut Tx, ctx: &Ctx) -> Result<u64> {
    let index = |name: &str| tx.dialect().indexed_by(name);
    let (by_id, by_age) = (index("sqlite_autoindex_sessions_1"), index("sessions_seen"));
    let sql = format!(
        "DELETE FROM sessions{by_id} WHERE id IN
         (SELECT id FROM sessions{by_age} WHERE account_id = $1 AND seen_at < $2 ORDER BY seen_at LIMIT 200)"
    );
    Ok(tx.execute(&sql, &[ctx.account.into(), ctx.machine_now.plus_seconds(-IDLE_SECONDS).0.into()])?)
}
