//! Links in mail that work once. The stored text of a mail has a masked link; the link itself is encrypted with a key outside
//! the database, used when the mail is sent, and deleted afterwards.

use engine::accounts::Account;
use engine::app::App;
use engine::clock::Moment;
use engine::context::Ctx;
use engine::error::{Error, Result};
use engine::secrets::columns::SecretColumn;
use engine::secrets::vault::{Place, Vault};
use store::{Migration, Tx};

use super::standing::Standing;

/// The links, by the id of their mail.
pub(crate) const MIGRATION: Migration = Migration {
    number: 118,
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

/// Masks the links in mail of earlier versions, which stored them in its text. Those of mail that still waits are kept.
pub(crate) fn seal_old(app: &App) -> Result<()> {
    for account in app.store.read_now(Account::all)? {
        let mut after = Some(String::new());
        while let Some(from) = after {
            let (number, vault, now) = (account.number, app.site.vault.clone(), app.clock.now());
            after = app.store.write_now(number, move |tx| seal_some(tx, &vault, number, &from, now))?;
        }
    }
    Ok(())
}

/// Handles the next hundred mails after an id; returns the last of them, if there may be more.
fn seal_some(tx: &mut Tx, vault: &Vault, account: i64, after: &str, now: Moment) -> Result<Option<String>> {
    let sql = "SELECT id, about_id, body FROM mails WHERE account_id = $1 AND kind IN ($2, $3) AND id > $4
               ORDER BY id LIMIT 100";
    let mails = tx.all(sql, &[account.into(), INVITE.into(), RESET.into(), after.into()], |row| {
        Ok::<_, Error>((row.text(0)?.to_string(), row.text(1)?.to_string(), row.text(2)?.to_string()))
    })?;
    for (id, about, body) in &mails {
        let Some(url) = body.split_whitespace().find(|word| is_link(word)) else { continue };
        let (scopes, expires_at) = (vec!["*".to_string()], now.plus_seconds(WEEK));
        let link = Link { url: url.to_string(), scopes, expires_at, is_hidden: false };
        let waits = format!(
            "SELECT count(*) FROM deliveries WHERE account_id = $1 AND about_id = $2 AND mail_id = $3 AND status IN ({})",
            Standing::sql_list(WAITS)
        );
        if tx.int(&waits, &[account.into(), about.into(), id.into()])? > 0 {
            link.keep(tx, vault, account, id)?;
        }
        let sql = "UPDATE mails SET body = $1 WHERE account_id = $2 AND id = $3";
        tx.execute(sql, &[link.mask(body).into(), account.into(), id.into()])?;
    }
    Ok(mails.last().filter(|_| mails.len() == 100).map(|(id, ..)| id.clone()))
}

/// The longest time that a link works, in seconds.
const WEEK: i64 = 7 * 24 * 3600;

/// The statuses of mail that may still be sent.
const WAITS: &[Standing] = &[Standing::Queued, Standing::Sending, Standing::Retrying];

/// Whether a word is a URL that ends in a token.
fn is_link(word: &str) -> bool {
    word.starts_with("http")
        && word
            .rsplit_once('/')
            .is_some_and(|(_, token)| token.len() == 64 && token.bytes().all(|one| one.is_ascii_hexdigit()))
}

/// Returns the URL with its token masked.
fn masked(url: &str) -> String {
    let page = url.rsplit_once('/').map_or("", |(page, _)| page);
    format!("{page}/{MASK}")
}

fn place(account: i64, mail: &str) -> Place<'_> {
    Place { account, table: LINK.table, column: LINK.column, id: mail }
}
