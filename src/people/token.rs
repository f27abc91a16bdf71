//! Links that work once: to set up an account, to accept an invitation, to choose a new password, to sign in by order of
//! the operator. Only the hash of their token is stored.

use engine::accounts;
use engine::choice;
use engine::clock::Moment;
use engine::contents::hex;
use engine::context::Ctx;
use engine::error::{Error, Result};
use engine::random;
use engine::record::Kind;
use engine::secrets::vault::Vault;
use engine::site::Site;
use store::{Row, Tx};

use crate::people::status::Status;
use crate::people::{LINK_INVALID, entrances};

choice! {
    /// The purpose of a link.
    pub enum Purpose {
        /// Creates the first owner of an account.
        #[default]
        SetUp = "set_up",
        /// Accepts an invitation.
        Invite = "invite",
        /// Sets a new password.
        Reset = "reset",
        /// Signs in without a password, by order of the operator.
        SignIn = "sign_in",
        /// Continues with the second factor after the password. It is no link, but a field of a form.
        SecondStep = "second_step",
    }
}

/// How long used and expired links are kept, so that their page can tell what happened to them.
const KEPT_SECONDS: i64 = 30 * DAY;
const DAY: i64 = 24 * 3600;

impl Purpose {
    /// The purposes of links, which have a page.
    pub const LINKS: [Purpose; 4] = [Purpose::SetUp, Purpose::Invite, Purpose::Reset, Purpose::SignIn];

    /// Returns the URL of the page for this token.
    pub fn link(self, site: &Site, secret: &str) -> String {
        site.address(&format!("{}{secret}", self.path()))
    }

    /// Returns the path of its page, without the token.
    pub fn path(self) -> &'static str {
        match self {
            Purpose::SetUp => "/set-up/",
            Purpose::Invite => "/invite/",
            Purpose::Reset => "/reset/",
            Purpose::SignIn => "/sign-in-link/",
            Purpose::SecondStep => "/sign-in/",
        }
    }

    /// Returns until when a token works that is created now.
    pub fn ends_at(self, now: Moment) -> Moment {
        now.plus_seconds(self.valid_seconds())
    }

    fn valid_seconds(self) -> i64 {
        match self {
            Purpose::SetUp => DAY,
            Purpose::Invite => 7 * DAY,
            Purpose::Reset => 3600,
            Purpose::SignIn => 15 * 60,
            Purpose::SecondStep => 10 * 60,
        }
    }

    /// Returns the statuses that the user of such a link may have. A link for a new password proves the e-mail address, as an
    /// invitation does; both wait for the second step.
    pub fn statuses(self) -> &'static [Status] {
        match self {
            Purpose::Invite => &[Status::Invited],
            Purpose::Reset | Purpose::SecondStep => &[Status::Active, Status::Invited],
            Purpose::SetUp | Purpose::SignIn => &[Status::Active],
        }
    }

    fn name(self) -> &'static str {
        if self == Purpose::SecondStep { "The token of this sign-in" } else { "This link" }
    }

    /// What to do about a link that does not work.
    fn advice(self) -> &'static str {
        match self {
            Purpose::SetUp => "Run `kantoor user create --owner` on the server for a new one.",
            Purpose::Invite => "Sign in if you have accepted it before, or ask for a new invitation.",
            Purpose::Reset => "Sign in with your new password, or request another link.",
            Purpose::SignIn => "Run `kantoor user sign-in-link` on the server for a new one.",
            Purpose::SecondStep => "Sign in with your password again.",
        }
    }
}

/// A link.
#[derive(Clone, Debug)]
pub struct Token {
    /// The account.
    pub account: i64,
    /// The user, or empty for the set-up of an account.
    pub user: String,
    /// The hash of the new password that is set after the second step; empty if none is.
    pub new_password: String,
    /// Whether somebody else could read the link, so that it proves nothing about the e-mail address.
    pub shown: bool,
    hash: [u8; 32],
}

/// The number of characters of a token.
const SECRET_LENGTH: usize = 64;

/// Generates an unguessable token: 32 random bytes.
pub fn new_secret() -> Result<String> {
    Ok(hex(&random::bytes::<32>()?))
}

/// Stores a new token of a user, which replaces earlier ones with the same purpose. Second steps do not: somebody may sign
/// in on two devices at a time. Nor do links for a new password: anybody can request one, and would end the link that the
/// person is about to open. Using one ends the others.
pub fn create(tx: &mut Tx, ctx: &Ctx, purpose: Purpose, user: &str, secret: &str) -> Result<()> {
    create_with(tx, ctx, purpose, user, secret, "")
}

/// Stores a new token, after which the password with this hash is set.
pub fn create_with(
    tx: &mut Tx,
    ctx: &Ctx,
    purpose: Purpose,
    user: &str,
    secret: &str,
    new_password: &str,
) -> Result<()> {
    match purpose {
        Purpose::SetUp | Purpose::Invite | Purpose::SignIn => withdraw(tx, ctx.account, purpose, user)?,
        Purpose::SecondStep => remove_ended(tx, ctx, purpose, user)?,
        Purpose::Reset => {}
    }
    tx.execute(
        "INSERT INTO one_time_tokens (hash, account_id, purpose, user_id, created_at, expires_at, new_password, used_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, 0)",
        &[
            accounts::hash(secret).as_slice().into(),
            ctx.account.into(),
            purpose.wire().into(),
            user.into(),
            ctx.machine_now.0.into(),
            purpose.ends_at(ctx.machine_now).0.into(),
            new_password.into(),
        ],
    )?;
    entrances::LINKS.mark(tx, &ctx.site.vault, &accounts::hash(secret))
}

/// Records that somebody else can read this link.
pub fn show(tx: &mut Tx, ctx: &Ctx, secret: &str) -> Result<()> {
    let hash = accounts::hash(secret);
    entrances::LINKS.change(tx, &ctx.site.vault, &hash, |tx| {
        tx.execute("UPDATE one_time_tokens SET shown = 1 WHERE hash = $1", &[hash.as_slice().into()])?;
        Ok(())
    })
}

/// Deletes the tokens of a user with this purpose that can no longer be used.
fn remove_ended(tx: &mut Tx, ctx: &Ctx, purpose: Purpose, user: &str) -> Result<()> {
    tx.execute(
        "DELETE FROM one_time_tokens WHERE account_id = $1 AND user_id = $2 AND purpose = $3
         AND (used_at <> 0 OR expires_at < $4)",
        &[ctx.account.into(), user.into(), purpose.wire().into(), ctx.machine_now.0.into()],
    )?;
    Ok(())
}

/// The time of use of a token that was replaced or withdrawn before it was used.
const WITHDRAWN: i64 = -1;

/// Ends the unused tokens of a user with this purpose. They are kept, so that their page can tell what happened to them.
pub fn withdraw(tx: &mut Tx, account: i64, purpose: Purpose, user: &str) -> Result<()> {
    tx.execute(
        "UPDATE one_time_tokens SET used_at = $1, new_password = '', mark = $2
         WHERE account_id = $3 AND user_id = $4 AND purpose = $5 AND used_at = 0",
        &[WITHDRAWN.into(), entrances::NONE.into(), account.into(), user.into(), purpose.wire().into()],
    )?;
    Ok(())
}

/// Marks the unused tokens of a user with this purpose as used.
pub fn use_up_all(tx: &mut Tx, ctx: &Ctx, purpose: Purpose, user: &str) -> Result<()> {
    tx.execute(
        "UPDATE one_time_tokens SET used_at = $1, mark = $2
         WHERE account_id = $3 AND user_id = $4 AND purpose = $5 AND used_at = 0",
        &[ctx.machine_now.0.into(), entrances::NONE.into(), ctx.account.into(), user.into(), purpose.wire().into()],
    )?;
    Ok(())
}

/// Why a link does not work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dead {
    /// It was used.
    Used,
    /// Its time is over.
    Expired,
    /// It is the token of another purpose.
    Foreign,
    /// A newer one took its place.
    Replaced,
    /// It was withdrawn, or what it is for was done in another way.
    Withdrawn,
    /// Nobody has issued it, or so long ago that it is forgotten.
    Unknown,
    /// It is shorter or longer than those that are issued.
    Cut,
}

impl Dead {
    /// Returns its name in the pages.
    pub fn name(self) -> &'static str {
        match self {
            Dead::Used => "used",
            Dead::Expired => "expired",
            Dead::Foreign => "foreign",
            Dead::Replaced => "replaced",
            Dead::Withdrawn => "withdrawn",
            Dead::Unknown => "unknown",
            Dead::Cut => "cut",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Dead::Used => "has been used",
            Dead::Expired => "has expired",
            Dead::Foreign => "is for something else",
            Dead::Replaced => "was replaced by a newer one",
            Dead::Withdrawn => "was withdrawn, or is no longer needed",
            Dead::Unknown => "is unknown, or was replaced by a newer one",
            Dead::Cut => "was not copied completely",
        }
    }

    /// What to do about such a link with this purpose.
    fn advice(self, purpose: Purpose) -> &'static str {
        match self {
            Dead::Foreign => "Open the link exactly as you received it: its address tells what it is for.",
            Dead::Cut => "Open the whole link, exactly as you received it.",
            Dead::Replaced | Dead::Unknown if purpose == Purpose::Invite => {
                "Open the link in the newest mail, or ask for a new invitation."
            }
            Dead::Unknown if purpose == Purpose::Reset => "Open the link in the newest mail, or request another link.",
            Dead::Expired if purpose == Purpose::Reset => "Request another link.",
            Dead::Expired if purpose == Purpose::Invite => "Ask for a new invitation.",
            Dead::Used if purpose == Purpose::SetUp => {
                "Sign in with the e-mail address and password that were chosen then."
            }
            _ => purpose.advice(),
        }
    }
}

/// Finds a token that can still be used for this purpose.
pub fn find(tx: &mut Tx, vault: &Vault, purpose: Purpose, secret: &str, now: Moment) -> Result<Token> {
    look_up(tx, vault, purpose, secret, now)?.map_err(|dead| refused(dead, purpose))
}

/// Returns the error for a link that does not work.
pub fn refused(dead: Dead, purpose: Purpose) -> Error {
    Error::new(LINK_INVALID, format!("{} {}. {}", purpose.name(), dead.words(), dead.advice(purpose)))
}

/// Finds a token, or why it cannot be used for this purpose. Tokens cannot be guessed, so whoever has one may know. One that somebody
/// added or changed in the database is unknown.
pub fn look_up(tx: &mut Tx, vault: &Vault, purpose: Purpose, secret: &str, now: Moment) -> Result<Result<Token, Dead>> {
    let hash = accounts::hash(secret);
    let sql = format!(
        "SELECT account_id, user_id, purpose, expires_at, used_at, created_at, new_password, shown, {}
         FROM one_time_tokens WHERE hash = $1",
        entrances::LINKS.marked()
    );
    let found = tx.first(&sql, &[hash.as_slice().into()], |row: &Row| {
        let (user, new_password) = (row.text(1)?.to_string(), row.text(6)?.to_string());
        let token = Token { account: row.int(0)?, user, new_password, shown: row.int(7)? != 0, hash };
        let used = row.int(4)?;
        if used == 0 && !entrances::LINKS.is_ours(vault, &hash, row, 8)? {
            return Ok(None);
        }
        Ok::<_, Error>(Some((token, Purpose::from_db(row, 2)?, row.int(3)?, used, row.int(5)?)))
    })?;
    Ok(match found.flatten() {
        Some((_, own, ..)) if own != purpose => Err(Dead::Foreign),
        Some((_, _, _, used, _)) if used > 0 => Err(Dead::Used),
        Some((token, _, _, WITHDRAWN, created)) => {
            Err(if token.has_newer(tx, purpose, created)? { Dead::Replaced } else { Dead::Withdrawn })
        }
        Some((_, _, until, ..)) if until <= now.0 => Err(Dead::Expired),
        Some((token, ..)) => Ok(token),
        None if secret.len() != SECRET_LENGTH => Err(Dead::Cut),
        None => Err(Dead::Unknown),
    })
}

impl Token {
    /// Whether the user has got a newer one with this purpose.
    fn has_newer(&self, tx: &mut Tx, purpose: Purpose, created_at: i64) -> Result<bool> {
        let sql = "SELECT count(*) FROM one_time_tokens
                   WHERE account_id = $1 AND user_id = $2 AND purpose = $3 AND created_at >= $4 AND hash <> $5";
        let values = [
            self.account.into(),
            (&self.user).into(),
            purpose.wire().into(),
            created_at.into(),
            self.hash.as_slice().into(),
        ];
        Ok(tx.int(sql, &values)? > 0)
    }

    /// Marks the token as used. Of two requests with the same token, the second is rejected.
    pub fn use_up(&self, tx: &mut Tx, purpose: Purpose, now: Moment) -> Result<()> {
        let sql = "UPDATE one_time_tokens SET used_at = $1, new_password = '', mark = $2
                   WHERE hash = $3 AND used_at = 0";
        match tx.execute(sql, &[now.0.into(), entrances::NONE.into(), self.hash.as_slice().into()])? {
            0 => Err(refused(Dead::Used, purpose)),
            _ => Ok(()),
        }
    }
}

/// Ends the tokens of a deleted user.
pub fn withdraw_all(tx: &mut Tx, ctx: &Ctx, user: &str) -> Result<()> {
    Purpose::ALL.iter().try_for_each(|purpose| withdraw(tx, ctx.account, *purpose, user))
}

/// Deletes old tokens.
pub fn purge(tx: &mut Tx, ctx: &Ctx) -> Result<u64> {
    let index = |name: &str| tx.dialect().indexed_by(name);
    let (by_hash, by_age) = (index("sqlite_autoindex_one_time_tokens_1"), index("one_time_tokens_age"));
    let sql = format!(
        "DELETE FROM one_time_tokens{by_hash} WHERE hash IN
         (SELECT hash FROM one_time_tokens{by_age} WHERE account_id = $1 AND expires_at < $2
          ORDER BY expires_at LIMIT 200)"
    );
    Ok(tx.execute(&sql, &[ctx.account.into(), ctx.machine_now.plus_seconds(-KEPT_SECONDS).0.into()])?)
}
