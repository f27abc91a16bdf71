//! Tells somebody in this process that an account has something to do, without asking the database: the engine of
//! flows, or the sender of webhooks.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

/// Accounts that have something to do. The engine's is rung inside a transaction: whoever listens writes
/// in the same account, and so comes after it.
#[derive(Default)]
pub struct Wakeup {
    accounts: Mutex<BTreeSet<i64>>,
    rung: Notify,
}

impl Wakeup {
    /// Somebody should look at this account.
    pub fn notify(&self, account: i64) {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner).insert(account);
        self.rung.notify_one();
    }

    /// The accounts since this was last asked.
    pub fn take(&self) -> BTreeSet<i64> {
        std::mem::take(&mut *self.accounts.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Until it is rung.
    pub async fn wait(&self) {
        self.rung.notified().await;
    }
}
