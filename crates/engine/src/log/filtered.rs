//! Reading the log by record, actor or type, in either direction.

use store::{Tx, Value};

use super::event::fired;
use super::line::{LENGTH, Line};
use super::reading::{by_seq, last};
use crate::error::{Error, Result};

/// How many rows are looked at for one page, if another filter is checked per row.
const MAX_SEEN: usize = 10_000;
/// How many of them at a time.
const TOGETHER: usize = 1000;

/// Which rows to read.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// The type of record; empty for any.
    pub entity_type: String,
    /// The record; empty for any.
    pub entity_id: String,
    /// The actor; empty for any.
    pub actor: String,
    /// The type of event; empty for any.
    pub name: String,
    /// Only rows with a higher number.
    pub after: i64,
    /// Only rows with a lower number.
    pub before: i64,
    /// The last rows first.
    pub newest_first: bool,
}

impl Filter {
    /// Whether its index answers it, so that every row matches.
    fn is_simple(&self) -> bool {
        let texts = [&self.entity_id, &self.actor, &self.name];
        self.entity_type.is_empty() && texts.iter().filter(|text| !text.is_empty()).count() <= 1
    }
}

/// The rows that were found.
pub struct Found {
    /// The rows, in the order of the filter.
    pub lines: Vec<Line>,
    /// The number to continue from.
    pub last: i64,
    /// Whether there may be more.
    pub more: bool,
}

/// A row before its data are read.
struct Seen {
    seq: i64,
    length: i64,
    matches: bool,
}

/// Returns up to `limit` rows, fewer if they exceed about `bytes` bytes, or if many rows were looked at in vain.
pub fn filtered(tx: &mut Tx, account: i64, filter: &Filter, limit: usize, bytes: i64) -> Result<Found> {
    let (mut place, mut looked) = (filter.clone(), 0);
    let (mut chosen, mut room) = (Vec::new(), bytes);
    let end = if filter.newest_first { filter.after } else { last(tx, account)?.max(filter.after) };
    loop {
        // One more than wanted tells whether there are more.
        let step = if filter.is_simple() { limit - chosen.len() + 1 } else { TOGETHER };
        let seen = look(tx, account, &place, step)?;
        let is_last = seen.len() < step;
        for row in seen {
            if row.matches && (chosen.len() == limit || (!chosen.is_empty() && room < row.length)) {
                let last = chosen.last().copied().unwrap_or_default();
                return Ok(Found { lines: lines(tx, account, filter, &chosen)?, last, more: true });
            }
            if row.matches {
                chosen.push(row.seq);
                room -= row.length;
            }
            looked += 1;
            if filter.newest_first { place.before = row.seq } else { place.after = row.seq }
        }
        if is_last {
            // Rows from `before` on were not looked at.
            let end = if filter.before > 0 { end.min(filter.before - 1) } else { end };
            let last = if filter.newest_first { chosen.last().copied().unwrap_or(end) } else { end };
            return Ok(Found { lines: lines(tx, account, filter, &chosen)?, last, more: false });
        }
        if looked >= MAX_SEEN {
            let last = if filter.newest_first { place.before } else { place.after };
            return Ok(Found { lines: lines(tx, account, filter, &chosen)?, last, more: true });
        }
    }
}

/// Looks at the next rows of the index that the most selective filter has. Their data are not read yet.
fn look(tx: &mut Tx, account: i64, filter: &Filter, step: usize) -> Result<Vec<Seen>> {
    let mut values: Vec<Value> = vec![account.into()];
    let by = [("log_records", "entity_id", &filter.entity_id), ("log_actors", "actor", &filter.actor)];
    let by = by.into_iter().chain([("log_types", "type", &filter.name)]).find(|(_, _, value)| !value.is_empty());
    let (index, condition) = match by {
        Some((index, column, value)) => {
            values.push(value.into());
            (index, format!(" AND {column} = $2"))
        }
        None => ("log_seq", String::new()),
    };
    values.extend([filter.after.into(), filter.before.into(), i64::try_from(step).unwrap_or(i64::MAX).into()]);
    let (first, order) = (values.len() - 2, if filter.newest_first { " DESC" } else { "" });
    let sql = format!(
        "SELECT seq, {LENGTH}, type, entity_type, entity_id, actor FROM log{}
         WHERE account_id = $1{condition} AND seq > ${first} AND seq < ${} ORDER BY seq{order} LIMIT ${}",
        tx.dialect().indexed_by(index),
        first + 1,
        first + 2
    );
    tx.all(&sql, &values, |row| {
        let is = |wanted: &str, place: usize| Ok::<_, Error>(wanted.is_empty() || row.text(place)? == wanted);
        let matches =
            is(&filter.name, 2)? && is(&filter.entity_type, 3)? && is(&filter.entity_id, 4)? && is(&filter.actor, 5)?;
        Ok(Seen { seq: row.int(0)?, length: row.int(1)?, matches })
    })
}

/// Returns the rows with these numbers, in the order of the filter.
fn lines(tx: &mut Tx, account: i64, filter: &Filter, numbers: &[i64]) -> Result<Vec<Line>> {
    let mut lines = numbered(tx, account, numbers)?;
    lines.sort_by_key(|line| if filter.newest_first { -line.seq } else { line.seq });
    Ok(lines)
}

/// Returns the rows with these numbers, in any order.
pub fn numbered(tx: &mut Tx, account: i64, numbers: &[i64]) -> Result<Vec<Line>> {
    let Some(last) = numbers.last() else { return Ok(Vec::new()) };
    // A few lengths, padded with the last number, need only a few prepared statements.
    let length = numbers.len().next_power_of_two();
    let places: Vec<String> = (0..length).map(|place| format!("${}", place + 2)).collect();
    let sql = format!(
        "SELECT {} FROM log{} WHERE account_id = $1 AND seq IN ({})",
        Line::columns(),
        by_seq(tx),
        places.join(", ")
    );
    let values = (0..length).map(|place| Value::from(*numbers.get(place).unwrap_or(last)));
    tx.all(&sql, &[Value::from(account)].into_iter().chain(values).collect::<Vec<_>>(), Line::from_row)
}

/// Returns a page of the numbers of the rows about a record, newest first, and how many there are.
pub fn of_record(tx: &mut Tx, account: i64, kind: &str, id: &str, offset: i64, limit: i64) -> Result<(Vec<i64>, i64)> {
    let index = tx.dialect().indexed_by("log_records");
    // Events that callers fired about a record are not its history.
    let own = format!(
        "FROM log{index} WHERE account_id = $1 AND entity_id = $2 AND entity_type = $3 AND type <> '{}'",
        fired()
    );
    let values = [account.into(), id.into(), kind.into(), limit.into(), offset.into()];
    let page = format!("SELECT seq {own} ORDER BY seq DESC LIMIT $4 OFFSET $5");
    let numbers = tx.all(&page, &values, |row| Ok::<_, Error>(row.int(0)?))?;
    let total = tx.int(&format!("SELECT count(*) {own}"), &values[..3])?;
    Ok((numbers, total))
}
