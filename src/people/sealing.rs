//! A signature over what a person signs in with: the password, the second factors and the recovery codes. No log line contains
//! them, so this is how `kantoor verify` finds out that somebody changed them in the database.

use std::sync::Arc;

use engine::accounts::SHARED;
use engine::app::App;
use engine::contents::hex;
use engine::error::{Error, Result};
use engine::secrets::signing::Proof;
use engine::secrets::vault::Vault;
use sha2::{Digest, Sha256};
use store::Tx;

/// How many people are read at a time.
const BATCH: i64 = 200;

/// Locks a person, who may sign in to several accounts at a time. Writes of one account are serialized already.
pub fn lock(tx: &mut Tx, person: &str) -> Result<()> {
    if tx.dialect().is_shared() {
        tx.execute("UPDATE people SET password_at = password_at WHERE id = $1", &[person.into()])?;
    }
    Ok(())
}

/// Locks a person, changes what they sign in with, and signs it. What somebody else changed before stays unsigned.
pub fn change<T>(tx: &mut Tx, vault: &Vault, person: &str, work: impl FnOnce(&mut Tx) -> Result<T>) -> Result<T> {
    lock(tx, person)?;
    let was_signed = match text(tx, person)? {
        Some((text, signature)) => vault.proof(text.as_bytes(), &signature)? == Proof::Signed,
        None => false,
    };
    let done = work(tx)?;
    match was_signed {
        true => sign(tx, vault, person)?,
        false => tracing::error!(
            person,
            "What this person signs in with was changed outside the program. Verify the database."
        ),
    }
    Ok(done)
}

/// Signs what a person signs in with.
pub fn sign(tx: &mut Tx, vault: &Vault, person: &str) -> Result<()> {
    let Some((text, _)) = text(tx, person)? else { return Ok(()) };
    let (sql, signature) = ("UPDATE people SET signature = $1 WHERE id = $2", vault.sign(text.as_bytes())?);
    tx.execute(sql, &[signature.as_slice().into(), person.into()])?;
    Ok(())
}

/// Signs all people again with the current key: those that one of the keys signed, or everybody if `trusts_all`.
pub fn sign_all(app: &App, vault: &Arc<Vault>, trusts_all: bool) -> Result<()> {
    let mut after = String::new();
    loop {
        let (own, from) = (vault.clone(), after);
        after = app.store.write_now(SHARED, move |tx| sign_some(tx, &own, &from, trusts_all))?;
        if after.is_empty() {
            return Ok(());
        }
    }
}

/// Signs the next people after an id; returns the last id, or empty at the end.
fn sign_some(tx: &mut Tx, vault: &Vault, after: &str, trusts_all: bool) -> Result<String> {
    let ids = ids(tx, after)?;
    for id in &ids {
        lock(tx, id)?;
        let Some((text, signature)) = text(tx, id)? else { continue };
        if trusts_all || vault.proof(text.as_bytes(), &signature)? == Proof::Signed {
            sign(tx, vault, id)?;
        }
    }
    Ok(ids.into_iter().last().unwrap_or_default())
}

/// Checks the next people after an id; returns the last id, or empty at the end, and a problem for each that was changed.
pub fn check_some(tx: &mut Tx, vault: &Vault, after: &str) -> Result<(String, Vec<(String, String)>)> {
    let (ids, mut problems) = (ids(tx, after)?, Vec::new());
    for id in &ids {
        let Some((text, signature)) = text(tx, id)? else { continue };
        let what = match vault.proof(text.as_bytes(), &signature)? {
            Proof::Signed => continue,
            Proof::Forged => {
                "The password, the second factors or the recovery codes were changed outside the log".to_string()
            }
            Proof::UnknownKey(key) => {
                format!("The signature is of the key {key}, which is not among the configured keys")
            }
        };
        problems.push((id.clone(), what));
    }
    Ok((ids.into_iter().last().unwrap_or_default(), problems))
}

/// Returns the users of an account whose person was deleted outside the program, which only deletes people who have no user.
pub fn missing(tx: &mut Tx, account: i64) -> Result<Vec<(String, String)>> {
    let sql = "SELECT id, person_id FROM users WHERE account_id = $1
               AND NOT EXISTS (SELECT 1 FROM people WHERE people.id = users.person_id)";
    tx.all(sql, &[account.into()], |row| Ok::<_, Error>((row.text(0)?.to_string(), row.text(1)?.to_string())))
}

fn ids(tx: &mut Tx, after: &str) -> Result<Vec<String>> {
    let sql = "SELECT id FROM people WHERE id > $1 ORDER BY id LIMIT $2";
    tx.all(sql, &[after.into(), BATCH.into()], |row| Ok::<_, Error>(row.text(0)?.to_string()))
}

/// Returns what is signed, and the signature.
fn text(tx: &mut Tx, person: &str) -> Result<Option<(String, Vec<u8>)>> {
    let sql = "SELECT email, password, signature, proven FROM people WHERE id = $1";
    let found = tx.first(sql, &[person.into()], |row| {
        Ok::<_, Error>((row.text(0)?.to_string(), row.text(1)?.to_string(), row.bytes(2)?.to_vec(), row.int(3)? != 0))
    })?;
    let Some((email, password, signature, is_proven)) = found else { return Ok(None) };
    // Most people are proven.
    let proven = if is_proven { "" } else { "unproven\n" };
    let mut text = format!("person of Kantoor\n{person}\n{email}\n{password}\n{proven}");
    let sql = "SELECT id, method, secret, credential FROM second_factors WHERE person_id = $1 AND confirmed_at > 0
               ORDER BY id";
    let factors = tx.all(sql, &[person.into()], |row| {
        let mut hasher = Sha256::new();
        for column in [1, 3] {
            hasher.update(format!("{}\n", row.text(column)?));
        }
        // The secret of an app is encrypted for its place: it cannot be exchanged, only removed.
        let has_secret = !row.text(2)?.is_empty();
        Ok::<_, Error>(format!("factor {} {has_secret} {}\n", row.text(0)?, hex(&hasher.finalize())))
    })?;
    let sql = "SELECT hash FROM recovery_codes WHERE person_id = $1 ORDER BY hash";
    let codes = tx.all(sql, &[person.into()], |row| Ok::<_, Error>(format!("code {}\n", hex(row.bytes(0)?))))?;
    factors.iter().chain(&codes).for_each(|line| text.push_str(line));
    Ok(Some((text, signature)))
}
