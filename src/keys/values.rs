//! The values of a key: its scopes, its networks and the hash of its secret.

use engine::accounts;
use engine::contents::hex;
use engine::error::{FieldCode, Violation, violation};
use engine::json::{Json, write_text};
use engine::record::{Kind, Rules, Texts, wrong_type};
use serde_json::{Value as Schema, json};
use sha2::{Digest, Sha256};
use store::{Row, Value};
use web::Network;

/// The scopes of a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scopes(pub Vec<String>);

impl Kind for Scopes {
    const NAME: &'static str = "texts";

    fn to_db(&self) -> Value<'_> {
        self.0.join(",").into()
    }

    fn from_db(row: &Row, column: usize) -> store::Result<Self> {
        let scopes: Vec<String> = row.text(column)?.split(',').map(str::to_string).collect();
        let is_word = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
        let is_scope =
            |scope: &String| scope == "*" || scope.split_once('.').is_some_and(|(a, b)| is_word(a) && is_word(b));
        if !scopes.iter().all(is_scope) {
            return Err(store::Error::unreadable("it is not a list of scopes"));
        }
        Ok(Scopes(scopes))
    }

    fn from_json(json: &Json, rules: &Rules) -> Result<Self, Violation> {
        let Texts(scopes) = Texts::from_json(json, rules)?;
        let known = accounts::scopes();
        if let Some(odd) = scopes.iter().find(|scope| !known.contains(scope)) {
            let message = format!("contains '{odd}', which is not a scope; choose from: {}", known.join(", "));
            return Err(violation(FieldCode::InvalidChoice, message));
        }
        Ok(Scopes(scopes))
    }

    fn to_json(&self, _: &Rules, out: &mut Vec<u8>) {
        write_list(&self.0, out);
    }

    fn schema(rules: &Rules) -> Schema {
        Texts::schema(rules)
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Networks that a key can be used from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networks(pub Vec<Network>);

/// Maximum number of networks: each request is compared with them.
const MAX_NETWORKS: usize = 50;

impl Networks {
    fn parse<'t>(texts: impl Iterator<Item = &'t str>) -> Result<Networks, String> {
        texts.map(str::parse).collect::<Result<_, String>>().map(Networks)
    }
}

impl Kind for Networks {
    const NAME: &'static str = "texts";

    fn to_db(&self) -> Value<'_> {
        let texts: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        texts.join(",").into()
    }

    fn from_db(row: &Row, column: usize) -> store::Result<Self> {
        match row.text(column)? {
            "" => Ok(Networks::default()),
            text => Networks::parse(text.split(',')).map_err(store::Error::unreadable),
        }
    }

    fn from_json(json: &Json, rules: &Rules) -> Result<Self, Violation> {
        let Texts(texts) = Texts::from_json(json, rules)?;
        if texts.len() > MAX_NETWORKS {
            return Err(violation(FieldCode::TooLong, format!("may have at most {MAX_NETWORKS} networks")));
        }
        let parsed = Networks::parse(texts.iter().map(String::as_str));
        parsed.map_err(|wrong| violation(FieldCode::InvalidFormat, format!("contains an invalid network: {wrong}")))
    }

    fn to_json(&self, _: &Rules, out: &mut Vec<u8>) {
        write_list(&self.0, out);
    }

    fn schema(rules: &Rules) -> Schema {
        let mut schema = Texts::schema(rules);
        schema["maxItems"] = json!(MAX_NETWORKS);
        schema
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The hash of a secret. It is never shown. The log has a digest of it, so that `kantoor verify` finds a key whose secret was
/// replaced in the database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hash(pub [u8; 32]);

impl Kind for Hash {
    const NAME: &'static str = "data";

    fn to_db(&self) -> Value<'_> {
        self.0.as_slice().into()
    }

    fn from_db(row: &Row, column: usize) -> store::Result<Self> {
        let hash = row.bytes(column)?.try_into();
        hash.map(Hash).map_err(|_| store::Error::unreadable("it is not a hash of 32 bytes"))
    }

    fn from_json(json: &Json, _: &Rules) -> Result<Self, Violation> {
        Err(wrong_type("nothing", json))
    }

    fn to_json(&self, _: &Rules, out: &mut Vec<u8>) {
        let digest = Sha256::new().chain_update("key of Kantoor in its log\n").chain_update(self.0).finalize();
        write_text(out, &hex(&digest));
    }

    fn schema(_: &Rules) -> Schema {
        json!({"type": "string"})
    }
}

fn write_list(items: &[impl ToString], out: &mut Vec<u8>) {
    out.push(b'[');
    for (place, item) in items.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        write_text(out, &item.to_string());
    }
    out.push(b']');
}
