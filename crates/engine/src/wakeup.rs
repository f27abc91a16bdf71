//! Wake-ups within the process: a loop learns that an account has work without polling the database.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

/// Accounts with work to do. That of runs is notified inside a transaction: the listener writes in the same account,
/// and so runs after it.
#[derive(Default)]
pub struct Wakeup {
    accounts: Mutex<BTreeSet<i64>>,
    notified: Notify,
    /// Accounts whose log has grown.
    logged: Mutex<BTreeSet<i64>>,
}

impl Wakeup {
    /// Notifies the listener of this account.
    pub fn notify(&self, account: i64) {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner).insert(account);
        self.notified.notify_one();
    }

    /// Returns the accounts notified since the previous call.
    pub fn take(&self) -> BTreeSet<i64> {
        std::mem::take(&mut *self.accounts.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes that a transaction appends to the log of this account.
    pub fn logs(&self, account: i64) {
        self.logged.lock().unwrap_or_else(PoisonError::into_inner).insert(account);
    }

    /// Returns the accounts whose log has grown since the previous call, or is about to.
    pub fn take_logged(&self) -> BTreeSet<i64> {
        std::mem::take(&mut *self.logged.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits for a notification.
    pub async fn wait(&self) {
        self.notified.notified().await;
    }
}
