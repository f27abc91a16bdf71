//! Who made a backup: its signature, made with the key of the secrets. Whoever can write where backups are kept could add a
//! session, an API key or a trigger to the database in one of them, and correct all of its hashes.

use std::path::Path;

use engine::config::Config;
use engine::error::Error;
use engine::secrets::key_file::KeySource;
use engine::secrets::signing::{Proof, signer};
use engine::secrets::vault::Vault;

use super::unpacking::Unpacked;

/// What to do if nothing proves who made a backup.
const TRUST: &str = "if you are sure that the backup is yours, add --trust-unsigned";

/// Refuses a backup that was altered after it was signed, and one of which nothing shows who made it, unless
/// `trusts_unsigned`. Returns what the operator should know; a sentence.
pub fn prove(config: &Config, unpacked: &Unpacked, trusts_unsigned: bool) -> Result<Option<String>, String> {
    let told = |error: Error| error.internal.unwrap_or(error.message);
    let accept = |why: String| match trusts_unsigned {
        true => Ok(Some(format!("Nothing proves who made the backup: {why}."))),
        false => Err(format!("{why}; {TRUST}")),
    };
    let Some(signature) = &unpacked.signature else {
        return accept("it is not signed: its database had no key yet, or somebody removed the signature".to_string());
    };
    let text = unpacked.signed.text();
    let proof = |vault: &Vault| vault.proof(text.as_bytes(), signature).map_err(told);
    let own = Vault::load(config).map_err(told)?;
    let included = unpacked.key.as_deref().map(|key| load(config, key)).transpose()?.flatten();
    let by_own = own.as_ref().map(proof).transpose()?;
    let by_included = included.as_ref().map(proof).transpose()?;
    let named = signer(signature).map(|key| key.to_string()).unwrap_or_default();
    match (by_own, by_included) {
        (Some(Proof::Signed), _) => Ok(None),
        (Some(Proof::Forged), _) | (_, Some(Proof::Forged)) => {
            Err("the backup was altered after it was made: its signature is wrong; use another one".to_string())
        }
        // Whoever has a key can sign with it, so one that comes with the backup proves less than one that was there before.
        (None, Some(Proof::Signed)) => Ok(Some(format!(
            "The backup is signed with the key that it includes ({named}): it is whole, but anybody could have made it. Compare the id of the key with the one that `kantoor backup` said."
        ))),
        (Some(Proof::UnknownKey(_)), _) => {
            let source = KeySource::of(config);
            accept(format!(
                "it is signed with the key {named}, and {source} has another one: name the file with that key with --set secret_key_file=FILE"
            ))
        }
        (None, _) => accept(format!(
            "it is signed with the key {named}, which is not there: put the file with that key in place, or name it with --set secret_key_file=FILE"
        )),
    }
}

fn load(config: &Config, key: &Path) -> Result<Option<Vault>, String> {
    let mut config = config.clone();
    config.secret_key.clear();
    config.secret_key_file = key.to_string_lossy().into_owned();
    Vault::load(&config).map_err(|error| error.internal.unwrap_or(error.message))
}
