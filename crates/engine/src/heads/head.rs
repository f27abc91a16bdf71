//! The end of a chain, with its signature.

use crate::contents::hex;
use crate::error::Result;
use crate::secrets::signing::Proof;
use crate::secrets::vault::Vault;

/// The end of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The public id of the account.
    pub uid: String,
    /// The number of its last row.
    pub seq: i64,
    /// The hash of that row.
    pub hash: Vec<u8>,
    /// The signature.
    pub signature: Vec<u8>,
}

impl Head {
    /// Signs the end of a chain.
    pub fn sign(vault: &Vault, uid: &str, seq: i64, hash: Vec<u8>) -> Result<Head> {
        let signature = vault.sign(&text(uid, seq, &hash))?;
        Ok(Head { uid: uid.to_string(), seq, hash, signature })
    }

    /// Returns what its signature proves.
    pub fn proof(&self, vault: &Vault) -> Result<Proof> {
        vault.proof(&text(&self.uid, self.seq, &self.hash), &self.signature)
    }
}

fn text(uid: &str, seq: i64, hash: &[u8]) -> Vec<u8> {
    format!("head of a log of Kantoor\n{uid}\n{seq}\n{}\n", hex(hash)).into_bytes()
}
