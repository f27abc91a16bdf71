//! Erasing the data of a record that was deleted. Its rows keep their place in the chain, with the digest of what they had;
//! without the salt nobody can guess it. A last row about the record says that it was erased.

use serde_json::json;
use store::Tx;

use super::chain::digest;
use super::emptied::ERASED;
use super::{Event, Line, append};
use crate::context::Ctx;
use crate::error::{Code, Error, Result};

/// Erases the data of all rows about a record, which is deleted; returns how many.
pub fn erase(tx: &mut Tx, ctx: &Ctx, kind: &str, id: &str) -> Result<u64> {
    let Erasable { lines, name } = Erasable::find(tx, ctx.account, kind, id)?;
    let mut count = 0;
    for line in lines.iter().filter(|line| !line.is_erased()) {
        let digest = digest(line.salt(), &line.actor_name, &line.data);
        tx.execute(
            "UPDATE log SET data = '', data_of = 0, actor_name = '', salt = $1, digest = $2
             WHERE account_id = $3 AND seq = $4",
            &[b"".as_slice().into(), digest.as_slice().into(), ctx.account.into(), line.seq.into()],
        )?;
        count += 1;
    }
    let data = json!({"id": id, "lines": count}).to_string();
    append(tx, ctx, &Event { name: &name, entity_type: kind, entity_id: id, data: &data })?;
    Ok(count)
}

/// Returns how many rows about a record would be erased; an error if none can be.
pub fn count(tx: &mut Tx, account: i64, kind: &str, id: &str) -> Result<u64> {
    let Erasable { lines, .. } = Erasable::find(tx, account, kind, id)?;
    Ok(lines.iter().filter(|line| !line.is_erased()).count() as u64)
}

/// The rows about a deleted record.
struct Erasable {
    lines: Vec<Line>,
    /// The name of the row that will say that they were erased.
    name: String,
}

impl Erasable {
    fn find(tx: &mut Tx, account: i64, kind: &str, id: &str) -> Result<Erasable> {
        let sql = format!(
            "SELECT {} FROM log WHERE account_id = $1 AND entity_id = $2 AND entity_type = $3 ORDER BY seq",
            Line::columns()
        );
        let lines = tx.all(&sql, &[account.into(), id.into(), kind.into()], Line::from_row)?;
        let refused = |message: &str| Err(Error::new(Code::InvalidTransition, message));
        let last = lines.iter().rfind(|line| line.shows_record()).map_or("", |line| line.name.as_str());
        let Some(events) = last.strip_suffix(".deleted") else {
            let why = match lines.last() {
                None => "The log has no lines about such a record. Types are those of the change feed, such as client.",
                Some(line) if line.name.ends_with(ERASED) => "The record was erased from the log before.",
                Some(_) => "Only a record that was deleted can be erased from the log.",
            };
            return refused(why);
        };
        let name = format!("{events}{ERASED}");
        Ok(Erasable { lines, name })
    }
}
