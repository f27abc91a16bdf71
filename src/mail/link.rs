//! Links in mail that work once. The stored text of a mail has a masked link; the link itself is encrypted with a key outside
//! the database, used when the mail is sent, and deleted afterwards.

use engine::clock::Moment;
use engine::context::Ctx;
use engine::error::{Error, Result};
use engine::secrets::columns::SecretColumn;
use engine::secrets::vault::{Place, Vault};
use store::{Migration, Tx};

/// The links, by the id of their mail.
pub(crate) const MIGRATION: Migration = Migration {
    number: 35,
    name: "links in mail",
    sql: "
CREATE TABLE mail_links (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    link TEXT NOT NULL,
    scopes TEXT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX mail_links_expired ON mail_links (account_id, expires_at);
",
};

/// The column with the links.
pub(crate) const LINK: SecretColumn = SecretColumn { table: "mail_links", column: "link" };

/// The send types of mail with such a link.
pub(crate) const INVITE: &str = "user_invite";
pub(crate) const RESET: &str = "user_reset";
pub(super) const KINDS: [&str; 2] = [INVITE, RESET];

/// What stands for the token of a link.
const MASK: &str = "…";

/// A link in a mail.
#[derive(Clone, Debug, Default)]
pub struct Link {
    /// The URL, as in the text of the mail.
    pub url: String,
    /// What whoever opens the link can do.
    pub scopes: Vec<String>,
    /// Until when it works, on the machine's clock.
    pub expires_at: Moment,
    /// Whether nobody may read it: the mail is only recorded, and the link would open another account as well.
    pub is_hidden: bool,
}

impl Link {
    /// Returns a text without the token of the link.
    pub(super) fn mask(&self, text: &str) -> String {
        if self.url.is_empty() { text.to_string() } else { text.replace(&self.url, &masked(&self.url)) }
    }

    /// Stores the link of a mail.
    pub(super) fn keep(&self, tx: &mut Tx, vault: &Vault, account: i64, mail: &str) -> Result<()> {
        if self.url.is_empty() || self.is_hidden {
            return Ok(());
        }
        let sealed = vault.seal_text(&place(account, mail), &self.url)?;
        tx.execute(
            "INSERT INTO mail_links (account_id, id, link, scopes, expires_at) VALUES ($1, $2, $3, $4, $5)",
            &[account.into(), mail.into(), sealed.into(), self.scopes.join(",").into(), self.expires_at.0.into()],
        )?;
        Ok(())
    }
}

/// A stored link.
#[derive(Default)]
pub(super) struct Kept {
    sealed: String,
    scopes: String,
}

impl Kept {
    /// Finds the link of a mail; an empty one if it has none.
    pub(super) fn of(tx: &mut Tx, account: i64, mail: &str) -> Result<Kept> {
        let sql = "SELECT link, scopes FROM mail_links WHERE account_id = $1 AND id = $2";
        let found = tx.first(sql, &[account.into(), mail.into()], |row| {
            Ok::<_, Error>(Kept { sealed: row.text(0)?.to_string(), scopes: row.text(1)?.to_string() })
        })?;
        Ok(found.unwrap_or_default())
    }

    /// Whether there is none.
    pub(super) fn is_none(&self) -> bool {
        self.sealed.is_empty()
    }

    /// Whether the caller may do everything that the link allows whoever opens it.
    pub(super) fn is_for(&self, ctx: &Ctx) -> bool {
        self.scopes.split(',').all(|scope| ctx.may(scope))
    }

    /// Puts the link into a text of its mail.
    pub(super) fn unmask(&self, vault: &Vault, account: i64, mail: &str, text: &str) -> Result<String> {
        if self.is_none() {
            return Ok(text.to_string());
        }
        let url = vault.open_text(&place(account, mail), &self.sealed)?;
        Ok(text.replace(&masked(&url), &url))
    }
}

/// Deletes the link of a mail that was sent.
pub(super) fn forget(tx: &mut Tx, account: i64, mail: &str) -> Result<()> {
    tx.execute("DELETE FROM mail_links WHERE account_id = $1 AND id = $2", &[account.into(), mail.into()])?;
    Ok(())
}

/// How long an expired link is kept, in seconds: a mail that waits longer still has it, and its page says that it expired.
const KEPT_SECONDS: i64 = 3 * 24 * 3600;

/// Deletes links that expired some time ago.
pub(crate) fn purge(tx: &mut Tx, ctx: &Ctx) -> Result<u64> {
    let by_age = tx.dialect().indexed_by("mail_links_expired");
    let sql = format!(
        "DELETE FROM mail_links WHERE account_id = $1 AND id IN
         (SELECT id FROM mail_links{by_age} WHERE account_id = $1 AND expires_at < $2 ORDER BY expires_at LIMIT 200)"
    );
    Ok(tx.execute(&sql, &[ctx.account.into(), ctx.machine_now.plus_seconds(-KEPT_SECONDS).0.into()])?)
}

/// Returns the URL with its token masked.
fn masked(url: &str) -> String {
    let page = url.rsplit_once('/').map_or("", |(page, _)| page);
    format!("{page}/{MASK}")
}

fn place(account: i64, mail: &str) -> Place<'_> {
    Place { account, table: LINK.table, column: LINK.column, id: mail }
}
