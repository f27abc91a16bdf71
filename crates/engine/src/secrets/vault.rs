//! Encrypts and decrypts values.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use sha2::{Digest, Sha256};

use super::key_file::{KeySource, unhex};
pub use super::key_id::KeyId;
use super::key_id::LENGTH as ID;
use super::signing::{MARK, Proof, Signer, signer};
use crate::config::Config;
use crate::contents::hex;
use crate::error::{Code, Error, Result};
use crate::random;

/// The format of encrypted values.
const VERSION: u8 = 1;
/// What encrypted text starts with.
const PREFIX: &str = "enc:";
/// How many forged rows are remembered.
const MAX_REPORTED: usize = 1000;

/// The place of a value in the database.
#[derive(Clone, Copy, Debug)]
pub struct Place<'p> {
    /// The number of the account; 0 for values of the server.
    pub account: i64,
    /// The table.
    pub table: &'p str,
    /// The column.
    pub column: &'p str,
    /// The id of the row.
    pub id: &'p str,
}

/// A key for values.
#[derive(Clone)]
struct Key {
    id: KeyId,
    cipher: LessSafeKey,
    signer: Arc<Signer>,
}

impl Key {
    fn new(bytes: &[u8; 32]) -> Result<Key> {
        let digest = Sha256::new().chain_update(b"kantoor secret key\n").chain_update(bytes).finalize();
        let mut id = [0; ID];
        id.copy_from_slice(&digest[..ID]);
        let cipher = UnboundKey::new(&CHACHA20_POLY1305, bytes).map_err(|_| Error::internal("the key is invalid"))?;
        Ok(Key { id: KeyId(id), cipher: LessSafeKey::new(cipher), signer: Arc::new(Signer::new(bytes)?) })
    }
}

/// The keys of this server. The first encrypts; the others only decrypt values from before a rotation.
pub struct Vault {
    source: KeySource,
    keys: RwLock<Vec<Key>>,
    /// What was reported as forged.
    reported: Mutex<HashSet<Vec<u8>>>,
}

impl Vault {
    /// Loads the configured keys; `None` if there are none yet.
    pub fn load(config: &Config) -> Result<Option<Vault>> {
        let source = KeySource::of(config);
        let keys = ciphers(&source)?;
        let vault = Vault { source, keys: RwLock::new(keys), reported: Mutex::default() };
        Ok(Some(vault).filter(|vault| !vault.ids().is_empty()))
    }

    /// Rejects a database that is encrypted with a key that is not among these.
    pub fn must_have(&self, used: KeyId) -> Result<()> {
        match self.find(used)? {
            Some(_) => Ok(()),
            None => Err(wrong_key(used, &self.source, &self.ids())),
        }
    }

    /// Returns the ids of the keys, the current one first.
    pub fn ids(&self) -> Vec<KeyId> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).iter().map(|key| key.id).collect()
    }

    /// Returns where the keys come from.
    pub fn source(&self) -> &KeySource {
        &self.source
    }

    /// Returns the mark of the hash of a log line, which nobody can make who only has the database.
    pub fn mark(&self, hash: &[u8]) -> Result<[u8; MARK]> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        let key = keys.first().ok_or_else(|| Error::internal("there is no key for secrets"))?;
        Ok(key.signer.mark(hash))
    }

    /// Whether one of the keys made a mark. If none did, the keys may have been rotated since they were loaded.
    pub fn is_mark(&self, hash: &[u8], mark: &[u8]) -> Result<bool> {
        let is_ours = || {
            let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
            keys.iter().any(|key| key.signer.mark(hash) == mark)
        };
        Ok(mark.len() == MARK && (is_ours() || (self.reload()? && is_ours())))
    }

    /// Whether this has not been reported as forged yet: whoever sends it again and again does not fill the log.
    pub fn is_news(&self, what: &[u8]) -> bool {
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        if reported.len() >= MAX_REPORTED {
            reported.clear();
        }
        reported.insert(what.to_vec())
    }

    /// Signs a text; the signature starts with the id of the key.
    pub fn sign(&self, text: &[u8]) -> Result<Vec<u8>> {
        let key = self.keys.read().unwrap_or_else(PoisonError::into_inner).first().cloned();
        let key = key.ok_or_else(|| Error::internal("there is no key for secrets"))?;
        Ok(key.signer.sign(key.id, text))
    }

    /// Returns what a signature proves about a text.
    pub fn proof(&self, text: &[u8], signature: &[u8]) -> Result<Proof> {
        let Some(id) = signer(signature) else { return Ok(Proof::Forged) };
        Ok(match self.find(id)? {
            None => Proof::UnknownKey(id),
            Some(key) if key.signer.proves(text, signature) => Proof::Signed,
            Some(_) => Proof::Forged,
        })
    }

    /// Encrypts a value for its place.
    pub fn seal(&self, place: &Place, plain: &[u8]) -> Result<Vec<u8>> {
        let key = self.keys.read().unwrap_or_else(PoisonError::into_inner).first().cloned();
        let key = key.ok_or_else(|| Error::internal("there is no key for secrets"))?;
        let nonce = random::bytes::<NONCE_LEN>()?;
        let mut body = plain.to_vec();
        let aad = Aad::from(context(place, key.id));
        let sealed = key.cipher.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad, &mut body);
        sealed.map_err(|_| Error::internal("a secret cannot be encrypted"))?;
        let mut out = vec![VERSION];
        out.extend_from_slice(&key.id.0);
        out.extend_from_slice(&nonce);
        out.append(&mut body);
        Ok(out)
    }

    /// Decrypts a value at its place.
    pub fn open_at(&self, place: &Place, sealed: &[u8]) -> Result<Vec<u8>> {
        let wrong = |why: String| Error::from(store::Error::unreadable(why).at(place.table, place.id, place.column));
        let Some((id, rest)) = key_of(sealed) else {
            return Err(wrong("it is not encrypted, or in a format of a later version".to_string()));
        };
        let Some(key) = self.find(id)? else {
            return Err(wrong(format!("it is encrypted with the key {id}, which {} does not have", self.source)));
        };
        let damaged = || wrong("it cannot be decrypted: it was changed or comes from another place".to_string());
        let (nonce, body) = rest.split_at_checked(NONCE_LEN).ok_or_else(damaged)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| damaged())?;
        let mut body = body.to_vec();
        let plain = key.cipher.open_in_place(nonce, Aad::from(context(place, id)), &mut body);
        plain.map(|plain| plain.to_vec()).map_err(|_| damaged())
    }

    /// Encrypts text for its place; empty text stays empty.
    pub fn seal_text(&self, place: &Place, plain: &str) -> Result<String> {
        if plain.is_empty() {
            return Ok(String::new());
        }
        Ok(format!("{PREFIX}{}", hex(&self.seal(place, plain.as_bytes())?)))
    }

    /// Decrypts text at its place.
    pub fn open_text(&self, place: &Place, sealed: &str) -> Result<String> {
        if sealed.is_empty() {
            return Ok(String::new());
        }
        let bytes = sealed.strip_prefix(PREFIX).and_then(unhex).unwrap_or_default();
        let plain = self.open_at(place, &bytes)?;
        String::from_utf8(plain).map_err(|_| {
            store::Error::unreadable("its decrypted text is not UTF-8").at(place.table, place.id, place.column).into()
        })
    }

    /// Returns the key with this id. If it is unknown, the keys may have been rotated since they were loaded.
    fn find(&self, id: KeyId) -> Result<Option<Key>> {
        let find = || {
            let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
            keys.iter().find(|key| key.id == id).cloned()
        };
        let found = find();
        Ok(if found.is_none() && self.reload()? { find() } else { found })
    }

    /// Loads the keys again; returns false if they cannot have changed.
    fn reload(&self) -> Result<bool> {
        if matches!(self.source, KeySource::Setting(_)) {
            return Ok(false);
        }
        let newest = ciphers(&self.source)?;
        if !newest.is_empty() {
            *self.keys.write().unwrap_or_else(PoisonError::into_inner) = newest;
        }
        Ok(true)
    }
}

fn ciphers(source: &KeySource) -> Result<Vec<Key>> {
    source.read()?.iter().map(Key::new).collect()
}

/// Whether stored text is encrypted.
pub fn is_sealed(text: &str) -> bool {
    text.starts_with(PREFIX)
}

/// What is authenticated with a value.
fn context(place: &Place, key: KeyId) -> Vec<u8> {
    let Place { account, table, column, id } = place;
    let mut context = vec![VERSION];
    context.extend_from_slice(&key.0);
    context.extend_from_slice(format!("{account}\n{table}\n{column}\n{id}").as_bytes());
    context
}

/// Returns the key id of an encrypted value, and what follows it.
pub(super) fn key_of(sealed: &[u8]) -> Option<(KeyId, &[u8])> {
    let (id, rest) = sealed.strip_prefix(&[VERSION])?.split_first_chunk::<ID>()?;
    Some((KeyId(*id), rest))
}

pub(super) fn wrong_key(used: KeyId, source: &KeySource, has: &[KeyId]) -> Error {
    let found = match has {
        [] => format!("{source} does not exist"),
        has => format!("{source} has {}", has.iter().map(KeyId::to_string).collect::<Vec<_>>().join(", ")),
    };
    let message = format!(
        "The secrets in the database are encrypted with the key {used}, but {found}. Use the key of the server that this database or backup comes from: the setting secret_key_file names its file."
    );
    Error::new(Code::Unavailable, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Place = Place { account: 1, table: "books", column: "password", id: "a" };

    fn vault(keys: &[[u8; 32]]) -> Vault {
        let keys = keys.iter().map(|key| Key::new(key).unwrap()).collect();
        let source = KeySource::Setting(String::new());
        Vault { source, keys: RwLock::new(keys), reported: Mutex::default() }
    }

    #[test]
    fn a_mark_is_of_one_hash_and_one_of_the_keys() {
        let (old, both, new) = (vault(&[[7; 32]]), vault(&[[8; 32], [7; 32]]), vault(&[[8; 32]]));
        let mark = old.mark(b"hash").unwrap();
        let is_mark = |vault: &Vault, hash: &[u8], mark: &[u8]| vault.is_mark(hash, mark).unwrap();
        assert!(is_mark(&old, b"hash", &mark) && is_mark(&both, b"hash", &mark));
        assert!(!is_mark(&new, b"hash", &mark) && !is_mark(&old, b"other", &mark));
        assert!(!is_mark(&old, b"hash", &[]) && !is_mark(&old, b"hash", &mark[..15]));
        assert_eq!(both.mark(b"hash").unwrap(), new.mark(b"hash").unwrap(), "the first key marks");
    }

    #[test]
    fn a_value_decrypts_only_where_it_was_encrypted() {
        let vault = vault(&[[7; 32]]);
        let sealed = vault.seal_text(&HERE, "hush").unwrap();
        assert!(is_sealed(&sealed) && sealed != vault.seal_text(&HERE, "hush").unwrap(), "the nonce is random");
        assert_eq!(vault.open_text(&HERE, &sealed).unwrap(), "hush");
        for place in [
            Place { account: 2, ..HERE },
            Place { table: "shelves", ..HERE },
            Place { column: "secret", ..HERE },
            Place { id: "b", ..HERE },
        ] {
            let why = vault.open_text(&place, &sealed).unwrap_err().internal.unwrap();
            assert!(why.contains(place.table) && why.contains(place.column) && why.contains(place.id), "{why}");
            assert!(why.contains("comes from another place"), "{why}");
        }
    }

    #[test]
    fn damaged_values_are_errors() {
        let vault = vault(&[[7; 32]]);
        let sealed = vault.seal(&HERE, b"hush").unwrap();
        for at in 0..sealed.len() {
            let mut damaged = sealed.clone();
            damaged[at] ^= 1;
            assert!(vault.open_at(&HERE, &damaged).is_err(), "byte {at}");
            assert!(vault.open_at(&HERE, &sealed[..at]).is_err(), "{at} bytes");
        }
        for text in ["plain", "enc:", "enc:zz", "enc:01", "enc:é"] {
            assert!(vault.open_text(&HERE, text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_first_key_encrypts_and_the_others_decrypt() {
        let (old, both, new) = (vault(&[[7; 32]]), vault(&[[8; 32], [7; 32]]), vault(&[[8; 32]]));
        let sealed = old.seal(&HERE, b"x").unwrap();
        assert_eq!(both.open_at(&HERE, &sealed).unwrap(), b"x");
        assert_eq!(new.open_at(&HERE, &both.seal(&HERE, b"x").unwrap()).unwrap(), b"x");
        let why = new.open_at(&HERE, &sealed).unwrap_err().internal.unwrap();
        assert!(why.contains(&format!("encrypted with the key {}", old.ids()[0])), "{why}");
    }
}
