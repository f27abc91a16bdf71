//! Signatures and marks with the keys for secrets. A signature names its key. A mark is shorter and takes less time, so every
//! line of the log has one.

use ring::hmac;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};

use super::key_id::{KeyId, LENGTH as ID};
use crate::error::{Error, Result};

/// Length of a mark.
pub const MARK: usize = 16;

/// Signs and marks with keys that are derived from a key for secrets.
pub(super) struct Signer {
    pair: Ed25519KeyPair,
    marks: hmac::Key,
}

/// What a signature proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The text was signed with one of the keys.
    Signed,
    /// It was signed with another key.
    UnknownKey(KeyId),
    /// It was not signed, or changed since.
    Forged,
}

/// Returns the key that a signature names.
pub fn signer(signature: &[u8]) -> Option<KeyId> {
    signature.split_first_chunk::<ID>().map(|(id, _)| KeyId(*id))
}

impl Signer {
    pub(super) fn new(key: &[u8; 32]) -> Result<Signer> {
        let derived = |purpose: &[u8]| hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), purpose);
        let pair = Ed25519KeyPair::from_seed_unchecked(derived(b"signatures of log heads").as_ref());
        let pair = pair.map_err(|_| Error::internal("the key is invalid"))?;
        Ok(Signer { pair, marks: hmac::Key::new(hmac::HMAC_SHA256, derived(b"marks of log lines").as_ref()) })
    }

    /// Returns the mark of a hash.
    pub(super) fn mark(&self, hash: &[u8]) -> [u8; MARK] {
        let mut mark = [0; MARK];
        mark.copy_from_slice(&hmac::sign(&self.marks, hash).as_ref()[..MARK]);
        mark
    }

    /// Returns the id of the key and the signature.
    pub(super) fn sign(&self, id: KeyId, text: &[u8]) -> Vec<u8> {
        let mut signature = id.bytes().to_vec();
        signature.extend_from_slice(self.pair.sign(text).as_ref());
        signature
    }

    /// Whether this key signed the text.
    pub(super) fn proves(&self, text: &[u8], signature: &[u8]) -> bool {
        let public = UnparsedPublicKey::new(&ED25519, self.pair.public_key().as_ref());
        signature.len() > ID && public.verify(text, &signature[ID..]).is_ok()
    }
}
