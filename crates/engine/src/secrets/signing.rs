//! Signatures with the keys for secrets. A signature names its key.

use ring::hmac;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};

use super::key_id::{KeyId, LENGTH as ID};
use crate::error::{Error, Result};

/// Signs with a key that is derived from a key for secrets.
pub(super) struct Signer(Ed25519KeyPair);

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

impl Signer {
    pub(super) fn new(key: &[u8; 32]) -> Result<Signer> {
        let seed = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), b"signatures of log heads");
        let pair = Ed25519KeyPair::from_seed_unchecked(seed.as_ref());
        pair.map(Signer).map_err(|_| Error::internal("the key is invalid"))
    }

    /// Returns the id of the key and the signature.
    pub(super) fn sign(&self, id: KeyId, text: &[u8]) -> Vec<u8> {
        let mut signature = id.bytes().to_vec();
        signature.extend_from_slice(self.0.sign(text).as_ref());
        signature
    }

    /// Whether this key signed the text.
    pub(super) fn proves(&self, text: &[u8], signature: &[u8]) -> bool {
        let public = UnparsedPublicKey::new(&ED25519, self.0.public_key().as_ref());
        signature.len() > ID && public.verify(text, &signature[ID..]).is_ok()
    }
}
