//! The jobs of closed accounts: they are parked when they become due, and continue when the account is reopened.

use store::Tx;

use super::queue::{CLOSED, Lane};
use crate::clock::Moment;
use crate::error::Result;

/// How many jobs are parked or resumed in a transaction: others wait for it.
const BATCH: usize = 500;

/// Gives back jobs of an account that were just claimed, and parks jobs of the account that are due in this lane. If there
/// are more, the next claim parks them.
pub(super) fn park<'j>(
    tx: &mut Tx,
    account: i64,
    lane: Lane,
    now: Moment,
    claimed: impl Iterator<Item = &'j str>,
) -> Result<()> {
    for id in claimed {
        let sql = "UPDATE jobs SET state = 'ready', attempts = attempts - 1, lease_until = 0 WHERE id = $1";
        tx.execute(sql, &[id.into()])?;
    }
    let sql = format!(
        "UPDATE jobs SET state = 'parked', last_error = $1 WHERE id IN
         (SELECT id FROM jobs{} WHERE lane = $2 AND state = 'ready' AND account_id = $3 AND run_at <= $4
          LIMIT {BATCH}{})",
        tx.dialect().indexed_by("jobs_turns"),
        tx.dialect().skip_locked()
    );
    tx.execute(&sql, &[CLOSED.into(), lane.name().into(), account.into(), now.0.into()])?;
    Ok(())
}

/// Whether jobs are parked although their account is open again.
pub fn any_to_resume(tx: &mut Tx) -> Result<bool> {
    let sql = "SELECT 1 FROM jobs JOIN accounts ON accounts.id = jobs.account_id
               WHERE state = 'parked' AND last_error = $1 AND closed_at = 0 LIMIT 1";
    Ok(tx.first(sql, &[CLOSED.into()], |_| Ok::<_, store::Error>(()))?.is_some())
}

/// Puts jobs of accounts that are open again back in the queue; returns how many. More may be left.
pub fn resume(tx: &mut Tx) -> Result<u64> {
    let sql = format!(
        "UPDATE jobs SET state = 'ready', last_error = '' WHERE id IN
         (SELECT id FROM jobs WHERE state = 'parked' AND last_error = $1
          AND account_id IN (SELECT id FROM accounts WHERE closed_at = 0) LIMIT {BATCH}{})",
        tx.dialect().skip_locked()
    );
    Ok(tx.execute(&sql, &[CLOSED.into()])?)
}
