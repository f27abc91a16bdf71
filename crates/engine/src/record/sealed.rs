use serde_json::Value as Schema;
use store::{Row, Value};

use super::kinds::Kind;
use super::rules::Rules;
use crate::error::{Result, Violation};
use crate::json::Json;
use crate::secrets::vault::{Place, Vault};

/// A secret. It is encrypted in the database and in memory, and decrypted only where it is used. The record encrypts it
/// before it is saved: [`Sealed::seal`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sealed {
    /// As a caller sends it or sees it once; empty for none.
    Plain(String),
    /// As it is stored. Plain text that somebody put there is never used: it cannot be decrypted.
    Encrypted(String),
}

impl Default for Sealed {
    fn default() -> Sealed {
        Sealed::Plain(String::new())
    }
}

impl Sealed {
    /// Encrypts it for its place.
    pub fn seal(&mut self, vault: &Vault, place: &Place) -> Result<()> {
        if let Sealed::Plain(plain) = self
            && !plain.is_empty()
        {
            *self = Sealed::Encrypted(vault.seal_text(place, plain)?);
        }
        Ok(())
    }

    /// Decrypts it at its place.
    pub fn open(&self, vault: &Vault, place: &Place) -> Result<String> {
        match self {
            Sealed::Plain(plain) => Ok(plain.clone()),
            Sealed::Encrypted(sealed) => vault.open_text(place, sealed),
        }
    }

    /// Returns the plain text; empty if it is encrypted.
    pub fn plain(&self) -> &str {
        match self {
            Sealed::Plain(plain) => plain,
            Sealed::Encrypted(_) => "",
        }
    }
}

impl Kind for Sealed {
    const NAME: &'static str = "text";

    fn to_db(&self) -> Value<'_> {
        match self {
            Sealed::Encrypted(sealed) => sealed.into(),
            Sealed::Plain(plain) => {
                debug_assert!(plain.is_empty(), "a secret is stored without encryption");
                plain.into()
            }
        }
    }

    fn from_db(row: &Row, column: usize) -> store::Result<Self> {
        match row.text(column)? {
            "" => Ok(Sealed::default()),
            text => Ok(Sealed::Encrypted(text.to_string())),
        }
    }

    fn from_json(json: &Json, rules: &Rules) -> std::result::Result<Self, Violation> {
        String::from_json(json, rules).map(Sealed::Plain)
    }

    fn to_json(&self, rules: &Rules, out: &mut Vec<u8>) {
        self.plain().to_string().to_json(rules, out);
    }

    fn schema(rules: &Rules) -> Schema {
        String::schema(rules)
    }

    fn is_empty(&self) -> bool {
        matches!(self, Sealed::Plain(plain) if plain.trim().is_empty())
    }
}
