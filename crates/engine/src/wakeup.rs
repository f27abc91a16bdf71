//! Wake-ups within the process: a loop learns that an account has work without polling the database.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

/// Accounts that have something to do. The one of runs is notified inside a transaction: whoever listens writes
/// in the same account, and so comes after it.
#[derive(Default)]
pub struct Wakeup {
    accounts: Mutex<BTreeSet<i64>>,
    notified: Notify,
}

impl Wakeup {
    /// Somebody should look at this account.
    pub fn notify(&self, account: i64) {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner).insert(account);
        self.notified.notify_one();
    }

    /// The accounts since this was last asked.
    pub fn take(&self) -> BTreeSet<i64> {
        std::mem::take(&mut *self.accounts.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until it is notified.
    pub async fn wait(&self) {
        self.notified.notified().await;
    }
}
