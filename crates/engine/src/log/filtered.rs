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

/// Which rows to read. A list of values stands for any of them, an empty one for any value.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// The types of record.
    pub entity_types: Vec<String>,
    /// The records.
    pub entity_ids: Vec<String>,
    /// The actors.
    pub actors: Vec<String>,
    /// The types of actor.
    pub actor_types: Vec<String>,
    /// The types of event.
    pub names: Vec<String>,
    /// Only rows with a higher number.
    pub after: i64,
    /// Only rows with a lower number.
    pub before: i64,
    /// The last rows first.
    pub newest_first: bool,
}

impl Filter {
    /// Whether everything after a number is wanted.
    pub fn is_plain(&self) -> bool {
        self.filters() == 0 && self.actor_types.is_empty() && self.before == i64::MAX && !self.newest_first
    }

    /// How many columns with an index are filtered by.
    fn filters(&self) -> usize {
        let lists = [&self.entity_types, &self.entity_ids, &self.actors, &self.names];
        lists.iter().filter(|list| !list.is_empty()).count()
    }

    /// Whether its index answers it, so that every row matches, unless the caller may not read it.
    fn is_simple(&self) -> bool {
        self.filters() <= 1 && self.actor_types.is_empty()
    }
}

/// Whether the caller may read a row, by the name of its event and the type of its record.
pub type MayRead<'m> = &'m mut dyn FnMut(&str, &str) -> bool;

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

/// Returns up to `limit` rows that the caller may read, fewer if they exceed about `bytes` bytes, or if many rows were looked
/// at in vain.
pub fn filtered(
    tx: &mut Tx,
    account: i64,
    filter: &Filter,
    may_read: MayRead,
    limit: usize,
    bytes: i64,
) -> Result<Found> {
    let (mut place, mut looked) = (filter.clone(), 0);
    let (mut chosen, mut room) = (Vec::new(), bytes);
    let end = if filter.newest_first { filter.after } else { last(tx, account)?.max(filter.after) };
    loop {
        // One more than wanted tells whether there are more. Where rows were looked at in vain, more of them follow.
        let step = if filter.is_simple() && looked == 0 { limit + 1 } else { TOGETHER };
        let seen = look(tx, account, &place, may_read, step)?;
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
            let last = if filter.newest_first { chosen.last().copied().unwrap_or(end) } else { end.max(place.after) };
            return Ok(Found { lines: lines(tx, account, filter, &chosen)?, last, more: false });
        }
        if looked >= MAX_SEEN {
            let last = if filter.newest_first { place.before } else { place.after };
            return Ok(Found { lines: lines(tx, account, filter, &chosen)?, last, more: true });
        }
    }
}

/// Looks at the next rows of the index that the most selective filter has. Their data are not read yet.
fn look(tx: &mut Tx, account: i64, filter: &Filter, may_read: MayRead, step: usize) -> Result<Vec<Seen>> {
    let by = [("log_records", "entity_id", &filter.entity_ids), ("log_actors", "actor", &filter.actors)];
    let others = [("log_types", "type", &filter.names), ("log_kinds", "entity_type", &filter.entity_types)];
    let Some((index, column, wanted)) = by.into_iter().chain(others).find(|(_, _, wanted)| !wanted.is_empty()) else {
        return look_in(tx, account, filter, may_read, step, ("log_seq", None));
    };
    // Each value has its own range of the index.
    let mut seen = Vec::new();
    for value in wanted {
        seen.extend(look_in(tx, account, filter, may_read, step, (index, Some((column, value))))?);
    }
    seen.sort_by_key(|row| if filter.newest_first { -row.seq } else { row.seq });
    seen.truncate(step);
    Ok(seen)
}

fn look_in(
    tx: &mut Tx,
    account: i64,
    filter: &Filter,
    may_read: MayRead,
    step: usize,
    (index, by): (&str, Option<(&str, &String)>),
) -> Result<Vec<Seen>> {
    let mut values: Vec<Value> = vec![account.into()];
    let condition = by.map(|(column, _)| format!(" AND {column} = $2")).unwrap_or_default();
    values.extend(by.map(|(_, value)| Value::from(value)));
    values.extend([filter.after.into(), filter.before.into(), i64::try_from(step).unwrap_or(i64::MAX).into()]);
    let (first, order) = (values.len() - 2, if filter.newest_first { " DESC" } else { "" });
    let sql = format!(
        "SELECT seq, {LENGTH}, type, entity_type, entity_id, actor, actor_type FROM log{}
         WHERE account_id = $1{condition} AND seq > ${first} AND seq < ${} ORDER BY seq{order} LIMIT ${}",
        tx.dialect().indexed_by(index),
        first + 1,
        first + 2
    );
    tx.all(&sql, &values, |row| {
        let is = |wanted: &[String], own: &str| wanted.is_empty() || wanted.iter().any(|one| one == own);
        let (name, kind) = (row.text(2)?, row.text(3)?);
        let matches = is(&filter.names, name)
            && is(&filter.entity_types, kind)
            && is(&filter.entity_ids, row.text(4)?)
            && is(&filter.actors, row.text(5)?)
            && is(&filter.actor_types, row.text(6)?)
            && may_read(name, kind);
        Ok::<_, Error>(Seen { seq: row.int(0)?, length: row.int(1)?, matches })
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
