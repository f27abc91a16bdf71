//! Signatures of the secrets that keys had before. No log line contains them, so this is how `kantoor verify` finds one that
//! somebody added or prolonged in the database.

use std::sync::Arc;

use engine::accounts::Account;
use engine::app::App;
use engine::contents::hex;
use engine::context::Ctx;
use engine::error::{Code, Error, Result};
use engine::record::When;
use engine::records;
use engine::secrets::signing::Proof;
use engine::secrets::vault::Vault;
use store::{Tx, Value};

use crate::keys::ApiKey;

/// An old secret with its signature.
type Old = (Vec<u8>, String, i64, Vec<u8>);

/// Returns the hashes of the old secrets of a key that are signed. Others stay unsigned, whatever happens to the key.
pub(super) fn signed(tx: &mut Tx, vault: &Vault, account: i64, key: &str) -> Result<Vec<Vec<u8>>> {
    let mut signed = Vec::new();
    for (hash, key, until, signature) in of_key(tx, account, key)? {
        if vault.proof(&text(&hash, account, &key, until), &signature)? == Proof::Signed {
            signed.push(hash);
        }
    }
    Ok(signed)
}

/// Signs these old secrets of a key.
pub(super) fn sign(tx: &mut Tx, vault: &Vault, account: i64, key: &str, hashes: &[Vec<u8>]) -> Result<()> {
    let mut found = of_key(tx, account, key)?;
    found.retain(|(hash, ..)| hashes.contains(hash));
    save(tx, vault, account, found)
}

fn of_key(tx: &mut Tx, account: i64, key: &str) -> Result<Vec<Old>> {
    let table = format!("old_key_secrets{}", tx.dialect().indexed_by("old_key_secrets_key"));
    let sql = format!("SELECT hash, key_id, until, signature FROM {table} WHERE account_id = $1 AND key_id = $2");
    read(tx, &sql, &[account.into(), key.into()])
}

/// Signs the old secrets of all keys again: those that one of the keys for secrets signed, or all if `trusts_all`.
pub fn sign_all(app: &App, vault: &Arc<Vault>, trusts_all: bool) -> Result<()> {
    for account in app.store.read_now(Account::all)? {
        let (number, own) = (account.number, vault.clone());
        app.store.write_now(number, move |tx| {
            let mut found = all(tx, number)?;
            let is_signed = |(hash, key, until, signature): &Old| {
                trusts_all
                    || own.proof(&text(hash, number, key, *until), signature).is_ok_and(|proof| proof == Proof::Signed)
            };
            found.retain(is_signed);
            save(tx, &own, number, found)
        })?;
    }
    Ok(())
}

/// Returns the keys of an account with an old secret that was added, changed or deleted outside the program, each with a problem.
pub fn check(tx: &mut Tx, vault: &Vault, account: i64) -> Result<Vec<(String, String)>> {
    let mut problems: Vec<(String, String)> = Vec::new();
    for (hash, key, until, signature) in all(tx, account)? {
        if vault.proof(&text(&hash, account, &key, until), &signature)? != Proof::Signed {
            problems.push((key, "An old secret of this key was added or changed outside the log".to_string()));
        }
    }
    for key in missing(tx, account)? {
        // One whose time was changed is there.
        if problems.iter().all(|(other, _)| *other != key) {
            problems.push((key, "The old secret of this key was deleted outside the log".to_string()));
        }
    }
    Ok(problems)
}

/// Returns the keys whose old secret is not there, although it works or worked until the time that they say.
fn missing(tx: &mut Tx, account: i64) -> Result<Vec<String>> {
    let sql = "SELECT id FROM keys WHERE account_id = $1 AND revoked_at = 0 AND old_secret_until > 0 AND NOT EXISTS (
                   SELECT 1 FROM old_key_secrets AS own WHERE own.account_id = $1 AND own.key_id = keys.id
                   AND own.until = keys.old_secret_until)";
    tx.all(sql, &[account.into()], |row| Ok::<_, Error>(row.text(0)?.to_string()))
}

/// Accepts that old secrets were deleted: their keys say that they have none.
pub fn accept_missing(tx: &mut Tx, ctx: &Ctx) -> Result<()> {
    for id in missing(tx, ctx.account)? {
        let before: ApiKey = match records::find(tx, ctx, &id) {
            Err(error) if error.code == Code::Unreadable => continue,
            found => found?,
        };
        let mut key = ApiKey { old_secret_until: When(None), ..before.clone() };
        records::change(tx, ctx, &before, &mut key, "updated")?;
    }
    Ok(())
}

fn all(tx: &mut Tx, account: i64) -> Result<Vec<Old>> {
    let sql = "SELECT hash, key_id, until, signature FROM old_key_secrets WHERE account_id = $1";
    read(tx, sql, &[account.into()])
}

fn read(tx: &mut Tx, sql: &str, values: &[Value]) -> Result<Vec<Old>> {
    tx.all(sql, values, |row| {
        Ok::<_, Error>((row.bytes(0)?.to_vec(), row.text(1)?.to_string(), row.int(2)?, row.bytes(3)?.to_vec()))
    })
}

fn save(tx: &mut Tx, vault: &Vault, account: i64, found: Vec<Old>) -> Result<()> {
    for (hash, key, until, _) in found {
        let signature = vault.sign(&text(&hash, account, &key, until))?;
        let sql = "UPDATE old_key_secrets SET signature = $1 WHERE hash = $2";
        tx.execute(sql, &[signature.as_slice().into(), hash.as_slice().into()])?;
    }
    Ok(())
}

fn text(hash: &[u8], account: i64, key: &str, until: i64) -> Vec<u8> {
    format!("old secret of Kantoor\n{}\n{account}\n{key}\n{until}\n", hex(hash)).into_bytes()
}
