//! Reading the log in order.

use std::hash::{DefaultHasher, Hash, Hasher};

use store::Tx;

use super::line::{LENGTH, Line};
use crate::clock::Moment;
use crate::error::{Error, Result};

/// Returns up to `limit` rows after `seq`, in order; fewer if they exceed about `bytes` bytes, but at least one.
/// Numbers are assigned while the account is locked, so a reader that sees a row can see all earlier ones.
pub fn after(tx: &mut Tx, account: i64, seq: i64, limit: i64, bytes: i64) -> Result<Vec<Line>> {
    // Their lengths first.
    let index = by_seq(tx);
    let lengths = tx.all(
        &format!("SELECT {LENGTH} FROM log{index} WHERE account_id = $1 AND seq > $2 ORDER BY seq LIMIT $3"),
        &[account.into(), seq.into(), limit.into()],
        |row| row.int(0),
    )?;
    let mut room = bytes;
    let mut fits = 0_i64;
    for length in lengths {
        if fits > 0 && room < length {
            break;
        }
        room -= length;
        fits += 1;
    }
    if fits == 0 {
        return Ok(Vec::new());
    }
    tx.all(
        &format!(
            "SELECT {} FROM log{index}
             WHERE account_id = $1 AND seq > $2 ORDER BY seq LIMIT $3",
            Line::columns()
        ),
        &[account.into(), seq.into(), fits.into()],
        Line::from_row,
    )
}

/// The row with this number.
pub fn line(tx: &mut Tx, account: i64, seq: i64) -> Result<Option<Line>> {
    tx.first(
        &format!("SELECT {} FROM log WHERE account_id = $1 AND seq = $2", Line::columns()),
        &[account.into(), seq.into()],
        Line::from_row,
    )
}

/// Returns the number of the first row at or after a time; one more than the last if there is none. Times follow the order
/// of the rows, so it is found by bisection.
pub fn first_at(tx: &mut Tx, account: i64, at: Moment) -> Result<i64> {
    let (mut low, mut high) = (1, last(tx, account)? + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        let sql = "SELECT at FROM log WHERE account_id = $1 AND seq = $2";
        match tx.int(sql, &[account.into(), middle.into()])? < at.0 {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    Ok(low)
}

/// Returns the hash of a row of the log; empty if there is none.
pub fn hash_at(tx: &mut Tx, account: i64, seq: i64) -> Result<Vec<u8>> {
    let sql = "SELECT hash FROM log WHERE account_id = $1 AND seq = $2";
    let found = tx.first(sql, &[account.into(), seq.into()], |row| Ok::<_, Error>(row.bytes(0)?.to_vec()))?;
    Ok(found.unwrap_or_default())
}

/// The last row with this type of event.
pub fn latest(tx: &mut Tx, account: i64, name: &str) -> Result<Option<Line>> {
    tx.first(
        &format!("SELECT {} FROM log WHERE account_id = $1 AND type = $2 ORDER BY seq DESC LIMIT 1", Line::columns()),
        &[account.into(), name.into()],
        Line::from_row,
    )
}

/// Returns the number, the kind and the id of the record of up to `limit` rows after `seq`. Every change of a record
/// has a row, so a reader that has read all records as of `seq` only needs to read these.
pub fn touched(tx: &mut Tx, account: i64, seq: i64, limit: usize) -> Result<Vec<(i64, String, String)>> {
    let index = by_seq(tx);
    let sql = format!(
        "SELECT seq, entity_type, entity_id FROM log{index} WHERE account_id = $1 AND seq > $2 ORDER BY seq LIMIT $3"
    );
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    tx.all(&sql, &[account.into(), seq.into(), limit.into()], |row| {
        Ok((row.int(0)?, row.text(1)?.to_string(), row.text(2)?.to_string()))
    })
}

/// The number of the last row; 0 when there is none.
pub fn last(tx: &mut Tx, account: i64) -> Result<i64> {
    let sql = format!("SELECT coalesce(max(seq), 0) FROM log{} WHERE account_id = $1", by_seq(tx));
    Ok(tx.int(&sql, &[account.into()])?)
}

/// Behind the name of the table: rows are read in order of their numbers. From the statistics of a time at which the log was
/// short SQLite may conclude that any index will do.
pub fn by_seq(tx: &Tx) -> String {
    tx.dialect().indexed_by("log_seq")
}

/// Under which key a line is noted; `None` for one that does not show a record.
pub(super) fn key_of(line: &Line) -> Option<(u64, u64)> {
    line.shows_record().then(|| key(&line.entity_type, &line.entity_id))
}

/// A record as two hashes, since an account may have millions.
pub fn key(kind: &str, id: &str) -> (u64, u64) {
    let hash = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, kind, id).hash(&mut hasher);
        hasher.finish()
    };
    (hash(0), hash(1))
}
