//! What the operator of the server does about keys, on the command line, and keys of earlier versions.

use engine::accounts::{self, Account, NewKey};
use engine::app::App;
use engine::context::Ctx;
use engine::error::{Code, Error, Result};
use engine::inspect;
use engine::log;
use engine::record::{Record, When};
use engine::records;
use engine::slice::TOGETHER;
use store::Tx;
use web::Network;

use crate::keys::values::{Networks, Scopes};
use crate::keys::{ApiKey, end, issue};

/// Creates a key with this secret; returns its id.
pub fn create(app: &App, account: Account, secret: &str, new: &NewKey, networks: &[Network]) -> Result<String> {
    let known = accounts::scopes();
    if let Some(odd) = new.scopes.iter().find(|scope| !known.contains(scope)) {
        let message = format!("Unknown scope '{odd}'. Choose from: {}.", known.join(", "));
        return Err(Error::new(Code::ValidationFailed, message));
    }
    if new.scopes.is_empty() {
        return Err(Error::new(Code::ValidationFailed, "A key requires at least one scope."));
    }
    let (secret, new) = (secret.to_string(), ApiKey { allowed_networks: Networks(networks.to_vec()), ..key(new) });
    let (number, caller) = (account.number, app.acting(account, "operator"));
    app.store.write_now(number, move |tx| {
        let ctx = caller.writing(tx)?;
        let mut key = new.clone();
        issue(tx, &ctx, &mut key, &secret)?;
        Ok(key.base.id)
    })
}

/// Creates the first key of an account.
pub(crate) fn create_first(tx: &mut Tx, ctx: &Ctx, secret: &str) -> Result<()> {
    let new = NewKey { name: "first key".to_string(), scopes: vec!["*".to_string()], expires_at: None };
    issue(tx, ctx, &mut key(&new), secret)
}

fn key(new: &NewKey) -> ApiKey {
    ApiKey {
        name: new.name.clone(),
        scopes: Scopes(new.scopes.clone()),
        expires_at: When(new.expires_at),
        ..ApiKey::default()
    }
}

/// Revokes a key.
pub fn revoke(app: &App, id: &str) -> Result<()> {
    let own = id.to_string();
    let account = app.store.read_now(move |tx| {
        let sql = "SELECT account_id FROM keys WHERE id = $1";
        tx.first(sql, &[(&own).into()], |row| Ok::<_, Error>(row.int(0)?))
    })?;
    let account = account.ok_or_else(|| Error::new(Code::NotFound, format!("No key has the id {id}.")))?;
    let (caller, id) = (app.acting_in(account, "operator")?, id.to_string());
    app.store.write_now(account, move |tx| {
        let ctx = caller.writing(tx)?;
        let key = records::find(tx, &ctx, &id)?;
        end(tx, &ctx, key).map(drop)
    })
}

/// Writes a log line for each key of an earlier version, which did not write any. Later, a key without one is not accepted.
pub(crate) fn log_old_keys(app: &App) -> Result<()> {
    if !app.carried.is_from_before(accounts::KEYS.number) {
        return Ok(());
    }
    // Written such that both databases search the index of these keys.
    let first = "SELECT account_id FROM keys WHERE version = 0 AND account_id > 0 ORDER BY account_id LIMIT 1";
    while let Some(account) = app.store.read_now(|tx| tx.first(first, &[], |row| Ok::<_, Error>(row.int(0)?)))? {
        let caller = app.acting_in(account, "kantoor")?;
        app.store.write_now(account, move |tx| {
            let ctx = caller.writing(tx)?;
            let sql = format!("{} WHERE account_id = $1 AND version = 0 LIMIT 100", ApiKey::sql().select);
            for mut key in tx.all(&sql, &[ctx.account.into()], ApiKey::from_row)? {
                (key.base.updated_at, key.base.version) = (key.base.created_at, 1);
                let sql = "UPDATE keys SET updated_at = created_at, version = 1 WHERE account_id = $1 AND id = $2";
                tx.execute(sql, &[ctx.account.into(), (&key.base.id).into()])?;
                records::count::<ApiKey>(tx, &ctx, 1)?;
                records::happened(tx, &ctx, &key, "imported")?;
            }
            Ok::<_, Error>(())
        })?;
    }
    Ok(())
}

/// Writes a log line for each key whose last line is of an earlier version, and so has no digest of its secret.
pub(crate) fn log_digests(app: &App) -> Result<()> {
    for account in app.store.read_now(Account::all)? {
        let (number, mut after) = (account.number, Some(String::new()));
        while let Some(from) = after {
            let caller = app.acting(account.clone(), "kantoor");
            after = app.store.write_now(number, move |tx| {
                let ctx = caller.writing(tx)?;
                log_some_digests(tx, &ctx, &from)
            })?;
        }
    }
    Ok(())
}

/// Handles the next hundred keys after an id; returns the last of them, if there may be more.
fn log_some_digests(tx: &mut Tx, ctx: &Ctx, after: &str) -> Result<Option<String>> {
    // A key that cannot be read is named by whoever verifies the database.
    let (after, keys, _) = inspect::read_some::<ApiKey>(tx, ctx.account, after, TOGETHER)?;
    for key in &keys {
        let (last, _) = log::of_record(tx, ctx.account, ApiKey::shape().name, &key.base.id, 0, 1)?;
        let last = log::numbered(tx, ctx.account, &last)?;
        // A key without any line is not one of an earlier version.
        if last.first().is_some_and(|line| lacks_digest(line.data())) {
            records::happened(tx, ctx, key, "imported")?;
        }
    }
    Ok(Some(after).filter(|last| !last.is_empty()))
}

fn lacks_digest(data: &str) -> bool {
    let data: serde_json::Value = serde_json::from_str(data).unwrap_or_default();
    data["hidden"]["hash"].as_str().unwrap_or_default().is_empty()
}
