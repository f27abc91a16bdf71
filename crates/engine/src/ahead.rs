//! Retries that a wrong clock scheduled. After the clock has jumped forward and back, whatever was to be retried a few
//! seconds later would wait for as long as the jump was. Rows that were written in the future show it.

use store::Tx;

use crate::clock::Moment;
use crate::error::Result;

/// The clocks of nodes may differ by this many seconds.
pub const SKEW: i64 = 60;

/// A table whose rows wait for an attempt. It has the columns `account_id`, `id`, `version`, `updated_at`, `due_at` and
/// `next_attempt_at`, by the machine's clock.
pub struct RetryTable {
    /// Name.
    pub table: &'static str,
    /// The index of `updated_at` for rows that wait for an attempt.
    pub index: &'static str,
    /// The condition under which a row waits for an attempt.
    pub waits: &'static str,
    /// What else has to hold, such as that the account has no clock of its own.
    pub and: &'static str,
}

impl RetryTable {
    /// Whether a row was written in the future.
    pub fn any_ahead(&self, tx: &mut Tx, now: Moment) -> Result<bool> {
        Ok(!self.ahead(tx, now, "LIMIT 1")?.is_empty())
    }

    /// Moves rows that were written in the future to now, a hundred at most. Each keeps the delay before its next
    /// attempt. Answers how many there were.
    pub fn pull_back(&self, tx: &mut Tx, now: Moment) -> Result<u64> {
        let found = self.ahead(tx, now, &format!("LIMIT 100{}", tx.dialect().skip_locked()))?;
        let sql = format!(
            "UPDATE {} SET due_at = due_at - updated_at + $1, version = version + 1, updated_at = $1,
                    next_attempt_at = CASE WHEN next_attempt_at > 0 THEN next_attempt_at - updated_at + $1 ELSE 0 END
             WHERE account_id = $2 AND id = $3",
            self.table
        );
        for (account, id) in &found {
            tx.execute(&sql, &[now.0.into(), (*account).into(), id.into()])?;
        }
        Ok(found.len() as u64)
    }

    fn ahead(&self, tx: &mut Tx, now: Moment, limit: &str) -> Result<Vec<(i64, String)>> {
        let RetryTable { table, index, waits, and } = self;
        let index = tx.dialect().indexed_by(index);
        // In the order of the index, so that PostgreSQL uses it however few rows it expects.
        let sql = format!(
            "SELECT account_id, id FROM {table}{index} WHERE {waits} AND updated_at > $1{and} ORDER BY updated_at DESC {limit}"
        );
        tx.all(&sql, &[now.plus_seconds(SKEW).0.into()], |row| Ok((row.int(0)?, row.text(1)?.to_string())))
    }
}
