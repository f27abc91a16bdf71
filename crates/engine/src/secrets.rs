//! Secrets in the database are encrypted with a key that is kept outside of it, so that a copy of the database alone
//! does not reveal them.
//!
//! An encrypted value is a version, the id of its key, a random nonce and the ciphertext of ChaCha20-Poly1305. The
//! account, table, column and id of the value are authenticated with it: a value that is copied to another place does
//! not decrypt there.

pub mod columns;
pub mod key_file;
mod key_id;
pub mod signing;
pub mod vault;

use std::sync::Arc;

use store::{Store, Tx};

use crate::accounts::SHARED;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::random;
use columns::SecretColumn;
use key_file::KeySource;
use vault::{KeyId, Place, Vault, key_of, wrong_key};

/// Length of the key that signs URLs.
const LENGTH: usize = 32;

/// The place of the key that signs URLs.
const SIGNING_KEY: Place = Place { account: SHARED, table: "secrets", column: "value", id: "addresses" };

/// Loads the keys for a database, and creates the first one for a database without encrypted values.
pub fn open(store: &Store, config: &Config) -> Result<Arc<Vault>> {
    if let Some(vault) = for_database(store, config)? {
        return Ok(Arc::new(vault));
    }
    KeySource::of(config).create()?;
    let vault = Vault::load(config)?.ok_or_else(|| Error::internal("the new key cannot be read"))?;
    Ok(Arc::new(vault))
}

/// Loads the keys for a database, and checks that they are the right ones. `None` if there are none and the database
/// has no encrypted values yet.
pub fn for_database(store: &Store, config: &Config) -> Result<Option<Vault>> {
    let (vault, used) = (Vault::load(config)?, store.read_now(key_of_database)?);
    match (&vault, used) {
        (Some(vault), Some(used)) => vault.must_have(used)?,
        (None, Some(used)) => return Err(wrong_key(used, &KeySource::of(config), &[])),
        (_, None) => {}
    }
    Ok(vault)
}

/// Returns the signing key as it is stored, if there is one.
fn stored_signing_key(tx: &mut Tx) -> Result<Option<Vec<u8>>> {
    let find = "SELECT value FROM secrets WHERE name = 'addresses'";
    tx.first(find, &[], |row| Ok::<_, Error>(row.bytes(0)?.to_vec()))
}

/// Returns the id of the key that encrypts the database, if one does.
fn key_of_database(tx: &mut Tx) -> Result<Option<KeyId>> {
    Ok(stored_signing_key(tx)?.and_then(|value| key_of(&value).map(|(id, _)| id)))
}

/// Returns the key that signs URLs, the same on all nodes. It is generated once. Secrets in plain text were put there by somebody
/// else, and are not used.
pub fn signing_key(store: &Store, vault: &Arc<Vault>, columns: &'static [SecretColumn]) -> Result<Vec<u8>> {
    let (stored, has_plain) =
        store.read_now(|tx| Ok::<_, Error>((stored_signing_key(tx)?, columns::has_plain(tx, columns)?)))?;
    if has_plain {
        tracing::error!("The database contains secrets in plain text, which are not used. Verify the database.");
    }
    if let Some(value) = stored {
        return vault.open_at(&SIGNING_KEY, &value);
    }
    let (own, new) = (vault.clone(), vault.seal(&SIGNING_KEY, &random::bytes::<LENGTH>()?)?);
    let value = store.write_now(SHARED, move |tx| {
        tx.hold_all()?;
        tx.execute(
            "INSERT INTO secrets (name, value) VALUES ('addresses', $1) ON CONFLICT (name) DO NOTHING",
            &[new.as_slice().into()],
        )?;
        let value = stored_signing_key(tx)?.ok_or_else(|| Error::internal("the signing key for URLs is missing"))?;
        if let Some((id, _)) = key_of(&value) {
            own.must_have(id)?;
        }
        Ok::<_, Error>(value)
    });
    vault.open_at(&SIGNING_KEY, &value?)
}

/// Encrypts secrets that the operator put into the database as plain text.
pub fn encrypt_plain(store: &Store, vault: &Arc<Vault>, columns: &'static [SecretColumn]) -> Result<()> {
    let vault = vault.clone();
    store.write_now(SHARED, move |tx| {
        tx.hold_all()?;
        columns::seal_plain(tx, &vault, columns)
    })
}

/// Encrypts all values with the current key; returns how many.
pub fn encrypt_again(store: &Store, vault: &Arc<Vault>, columns: &'static [SecretColumn]) -> Result<u64> {
    let vault = vault.clone();
    store.write_now(SHARED, move |tx| {
        tx.hold_all()?;
        let mut count = columns::seal_again(tx, &vault, columns)?;
        if let Some(value) = stored_signing_key(tx)? {
            let plain = vault.open_at(&SIGNING_KEY, &value)?;
            let sealed = vault.seal(&SIGNING_KEY, &plain)?;
            tx.execute("UPDATE secrets SET value = $1 WHERE name = 'addresses'", &[sealed.as_slice().into()])?;
            count += 1;
        }
        Ok(count)
    })
}

/// Deletes a signing key that cannot be decrypted, so that the next start generates another.
pub fn forget_signing_key(store: &Store) -> Result<()> {
    store.write_now(SHARED, |tx| {
        tx.execute("DELETE FROM secrets WHERE name = 'addresses'", &[])?;
        Ok(())
    })
}

/// Checks the signing key; returns the problem, if there is one. A database without accounts has none yet.
pub fn check_signing_key(tx: &mut Tx, vault: &Vault) -> Result<Option<String>> {
    let Some(value) = stored_signing_key(tx)? else {
        let has_accounts = tx.int("SELECT count(*) FROM accounts", &[])? > 0;
        return Ok(has_accounts.then(|| "The key that signs links was deleted".to_string()));
    };
    Ok(vault.open_at(&SIGNING_KEY, &value).err().map(|error| error.internal.unwrap_or(error.message)))
}
