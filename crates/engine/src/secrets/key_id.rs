//! The ids of keys.

use std::fmt;

use crate::contents::hex;

/// Length of a key id.
pub(super) const LENGTH: usize = 4;

/// The id of a key: it identifies the key without revealing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyId(pub(super) [u8; LENGTH]);

impl KeyId {
    pub(super) fn bytes(&self) -> &[u8; LENGTH] {
        &self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}
