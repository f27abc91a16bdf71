//! The columns that hold encrypted text, as the registry lists them.

use store::Tx;

use super::vault::{Place, Vault, is_sealed};
use crate::error::{Error, Result};

/// A column with encrypted text, in a table of records.
#[derive(Clone, Copy, Debug)]
pub struct SecretColumn {
    /// The table.
    pub table: &'static str,
    /// The column.
    pub column: &'static str,
}

/// Encrypts plain text.
pub(super) fn seal_plain(tx: &mut Tx, vault: &Vault, columns: &[SecretColumn]) -> Result<()> {
    rewrite(tx, columns, |place, text| match is_sealed(text) {
        true => Ok(None),
        false => vault.seal_text(place, text).map(Some),
    })
    .map(drop)
}

/// Whether there is plain text, which the program never stores.
pub(super) fn has_plain(tx: &mut Tx, columns: &[SecretColumn]) -> Result<bool> {
    for SecretColumn { table, column } in columns {
        if values(tx, table, column, None)?.iter().any(|(_, _, text)| !is_sealed(text)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Encrypts all values with the current key; returns how many.
pub(super) fn seal_again(tx: &mut Tx, vault: &Vault, columns: &[SecretColumn]) -> Result<u64> {
    rewrite(tx, columns, |place, text| vault.seal_text(place, &vault.open_text(place, text)?).map(Some))
}

fn rewrite(
    tx: &mut Tx,
    columns: &[SecretColumn],
    change: impl Fn(&Place, &str) -> Result<Option<String>>,
) -> Result<u64> {
    let mut count = 0;
    for SecretColumn { table, column } in columns {
        for (account, id, text) in values(tx, table, column, None)? {
            let Some(sealed) = change(&Place { account, table, column, id: &id }, &text)? else { continue };
            let sql = format!("UPDATE {table} SET {column} = $1 WHERE account_id = $2 AND id = $3");
            tx.execute(&sql, &[sealed.into(), account.into(), (&id).into()])?;
            count += 1;
        }
    }
    Ok(count)
}

/// Returns the values of a column that are not empty, of one account or of all: account, id and text.
fn values(tx: &mut Tx, table: &str, column: &str, account: Option<i64>) -> Result<Vec<(i64, String, String)>> {
    let mut sql = format!("SELECT account_id, id, {column} FROM {table} WHERE {column} <> ''");
    if account.is_some() {
        sql.push_str(" AND account_id = $1");
    }
    let values: Vec<store::Value> = account.into_iter().map(store::Value::from).collect();
    tx.all(&sql, &values, |row| Ok::<_, Error>((row.int(0)?, row.text(1)?.to_string(), row.text(2)?.to_string())))
}

/// A value that cannot be decrypted: its table, its id and the problem.
pub type Undecryptable = (&'static str, String, String);

/// Checks the values of an account.
pub fn check(tx: &mut Tx, columns: &[SecretColumn], vault: &Vault, account: i64) -> Result<Vec<Undecryptable>> {
    let mut problems = Vec::new();
    for SecretColumn { table, column } in columns {
        for (_, id, text) in values(tx, table, column, Some(account))? {
            let place = Place { account, table, column, id: &id };
            if let Err(error) = vault.open_text(&place, &text) {
                let why = match is_sealed(&text) {
                    true => error.internal.unwrap_or(error.message),
                    false => "it is not encrypted".to_string(),
                };
                problems.push((*table, id, format!("Column {column} cannot be decrypted: {why}")));
            }
        }
    }
    Ok(problems)
}
