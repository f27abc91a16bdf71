//! What a user chose for the screens, such as a theme or the columns of a list. Kantoor stores it and does not interpret it.

use engine::context::Ctx;
use engine::error::{Error, FieldCode, Result, violation};
use engine::input;
use engine::record::{Body, Data, INPUT};
use serde_json::{Value, json};
use store::{Migration, Tx};

use crate::people::status::Language;

/// Maximum size of all preferences of a user, in bytes.
const MAX_BYTES: usize = 64 * 1024;

input! {
    /// What the caller can change about themselves.
    pub struct Chosen;

    /// Your name.
    name: String = INPUT.plain_name().example("\"Anna Jansen\"");
    /// The language of the screens and of mail to you.
    language: Language = INPUT.example("\"nl\"");
    /// Preferences to set, by name. A member replaces the stored one with the same name, `null` removes it, and all
    /// others stay. A user may have 64 KiB of preferences.
    preferences: Data = INPUT.example("{\"theme\": \"dark\", \"density\": \"compact\"}");
}

impl Body for Chosen {}

/// Returns the preferences of a user.
pub(crate) fn of_user(tx: &mut Tx, ctx: &Ctx, user: &str) -> Result<Value> {
    let sql = "SELECT chosen FROM preferences WHERE account_id = $1 AND user_id = $2";
    let stored = tx.first(sql, &[ctx.account.into(), user.into()], |row| {
        let chosen = serde_json::from_str::<Value>(row.text(0)?).ok().filter(Value::is_object);
        chosen.ok_or_else(|| {
            Error::from(store::Error::unreadable("it is not a JSON object").at("preferences", user, "chosen"))
        })
    })?;
    Ok(stored.unwrap_or_else(|| json!({})))
}

/// Merges `chosen` into the preferences of a user.
pub(crate) fn change(tx: &mut Tx, ctx: &Ctx, user: &str, chosen: &Data) -> Result<()> {
    let mut all = of_user(tx, ctx, user)?;
    if let (Some(all), Value::Object(chosen)) = (all.as_object_mut(), chosen.json()) {
        for (name, value) in chosen {
            if value.is_null() {
                all.remove(&name)
            } else {
                all.insert(name, value)
            };
        }
    }
    let text = all.to_string();
    if text.len() > MAX_BYTES {
        let message = format!("would be {} bytes together; a user may have {MAX_BYTES}", text.len());
        return Err(Error::field("preferences", violation(FieldCode::TooLong, message)));
    }
    tx.execute(
        "INSERT INTO preferences (account_id, user_id, chosen) VALUES ($1, $2, $3)
         ON CONFLICT (account_id, user_id) DO UPDATE SET chosen = excluded.chosen",
        &[ctx.account.into(), user.into(), text.into()],
    )?;
    Ok(())
}

/// Deletes the preferences of a user who is deleted.
pub(crate) fn forget(tx: &mut Tx, ctx: &Ctx, user: &str) -> Result<()> {
    let sql = "DELETE FROM preferences WHERE account_id = $1 AND user_id = $2";
    Ok(tx.send(sql, &[ctx.account.into(), user.into()])?)
}

/// The table of preferences.
pub const MIGRATION: Migration = Migration {
    number: 39,
    name: "preferences",
    sql: "
CREATE TABLE preferences (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    user_id TEXT NOT NULL,
    chosen TEXT NOT NULL,
    PRIMARY KEY (account_id, user_id)
) STRICT;
",
};
