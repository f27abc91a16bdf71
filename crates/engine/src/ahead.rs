//! Reschedules retries that were scheduled by a wrong clock. After the clock jumps forward and back, a retry that was
//! due in a few seconds would otherwise wait for as long as the jump. Such rows have an `updated_at` in the future.

use store::Tx;

use crate::clock::Moment;
use crate::error::Result;

/// The clocks of nodes may differ by this many seconds.
pub const SKEW: i64 = 60;

/// A table of retries. It has the columns `account_id`, `id`, `version`, `updated_at`, `due_at` and `next_attempt_at`, all
/// times by the machine's clock.
pub struct RetryTable {
    /// Its name.
    pub table: &'static str,
    /// The index on `updated_at` of rows that wait for a retry.
    pub index: &'static str,
    /// The SQL condition of rows that wait for a retry.
    pub waits: &'static str,
    /// A further SQL condition, such as that the account has no test clock; may be empty.
    pub and: &'static str,
}

impl RetryTable {
    /// Returns whether any row has an `updated_at` in the future.
    pub fn any_ahead(&self, tx: &mut Tx, now: Moment) -> Result<bool> {
        Ok(!self.ahead(tx, now, "LIMIT 1")?.is_empty())
    }

    /// Reschedules up to a hundred rows with an `updated_at` in the future; each keeps the delay before its next attempt.
    /// Returns how many there were.
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
        // Sorted in the order of the index, so that PostgreSQL uses it even if it expects few rows.
        let sql = format!(
            "SELECT account_id, id FROM {table}{index} WHERE {waits} AND updated_at > $1{and} ORDER BY updated_at DESC {limit}"
        );
        tx.all(&sql, &[now.plus_seconds(SKEW).0.into()], |row| Ok((row.int(0)?, row.text(1)?.to_string())))
    }
}
