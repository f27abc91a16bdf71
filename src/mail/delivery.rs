//! The mail to one recipient, as it is stored.

use engine::error::{Error, Result};
use engine::record::Kind;
use store::Tx;

use super::standing::Standing;

/// A delivery in progress.
pub(crate) struct Delivery {
    pub(super) id: String,
    pub(super) mail_id: String,
    pub(super) recipient: String,
    pub(super) status: Standing,
    pub(super) attempts: i64,
}

impl Delivery {
    pub(super) fn find(tx: &mut Tx, account: i64, id: &str) -> Result<Option<Delivery>> {
        let sql = "SELECT mail_id, recipient, status, attempts FROM deliveries WHERE account_id = $1 AND id = $2";
        tx.first(sql, &[account.into(), id.into()], |row| {
            Ok::<_, Error>(Delivery {
                id: id.to_string(),
                mail_id: row.text(0)?.to_string(),
                recipient: row.text(1)?.to_string(),
                status: Standing::from_db(row, 2).map_err(|error| error.at("deliveries", id, "status"))?,
                attempts: row.int(3)?,
            })
        })
    }
}
