//! A verification that keeps its place, so that another transaction, or another process, continues it.

use store::Tx;

use super::chain::{UNEXPLAINED, Verdict, Walked, verify_seeing};
use super::emptied::ERASED;
use super::reading::{by_seq, last, line};
use crate::clock::Moment;
use crate::error::{Error, Result};
use crate::secrets::vault::Vault;

/// How far a verification has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The number of the last row that was checked.
    pub seq: i64,
    /// Its hash.
    pub hash: Vec<u8>,
    /// The first row that was emptied in another way than by erasing its record; 0 for none.
    pub emptied: i64,
    /// The row that the signed head had at the start: the head proves that the program wrote the rows up to it.
    pub signed: i64,
    /// The first row behind that which the program did not write; 0 for none.
    pub foreign: i64,
}

impl Place {
    /// Checks up to a thousand rows more. The verdict comes as soon as none is left, or at the first row that is not right.
    pub fn advance(&mut self, tx: &mut Tx, vault: &Vault, account: i64) -> Result<Option<Verdict>> {
        let verdict = self.step(tx, vault, account)?;
        if verdict.is_some() || self.seq < last(tx, account)? {
            return Ok(verdict);
        }
        self.step(tx, vault, account)
    }

    fn step(&mut self, tx: &mut Tx, vault: &Vault, account: i64) -> Result<Option<Verdict>> {
        let (before, signed, mut foreign) = (self.seq, self.signed, self.foreign);
        let walked = verify_seeing(tx, account, Walked::behind(before, self.hash.clone()), &mut |line| {
            if foreign == 0 && line.seq > signed && !line.is_ours(vault)? {
                foreign = line.seq;
            }
            Ok(())
        })?;
        let walked = match walked {
            Ok(walked) => walked,
            Err(Verdict::Whole { .. }) if self.emptied > 0 => {
                let at = line(tx, account, self.emptied)?.map_or(Moment(0), |line| Moment(line.at));
                return Ok(Some(Verdict::Broken { seq: self.emptied, at, why: UNEXPLAINED }));
            }
            Err(verdict) => return Ok(Some(verdict)),
        };
        if self.emptied == 0 && walked.has_unexplained() {
            self.emptied = unexplained(tx, account, before, walked.rows())?;
        }
        (self.seq, self.foreign) = (walked.rows(), foreign);
        self.hash = walked.into_hash();
        Ok(None)
    }
}

/// Returns the first of these rows that was emptied although no later row says that its record was erased; 0 for none.
fn unexplained(tx: &mut Tx, account: i64, after: i64, until: i64) -> Result<i64> {
    let (rows, records) = (by_seq(tx), tx.dialect().indexed_by("log_records"));
    let sql = format!(
        "SELECT emptied.seq FROM log AS emptied{rows}
         WHERE emptied.account_id = $1 AND emptied.seq > $2 AND emptied.seq <= $3 AND octet_length(emptied.digest) > 0
         AND NOT EXISTS (
             SELECT 1 FROM log AS own{records}
             WHERE own.account_id = $1 AND own.entity_id = emptied.entity_id AND own.seq > emptied.seq
             AND own.entity_type = emptied.entity_type AND own.type LIKE '%{ERASED}' AND octet_length(own.digest) = 0
         ) ORDER BY emptied.seq LIMIT 1"
    );
    let values = [account.into(), after.into(), until.into()];
    Ok(tx.first(&sql, &values, |row| Ok::<_, Error>(row.int(0)?))?.unwrap_or_default())
}
