//! Limits the memory that request bodies in progress use, in total and per account.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::config::Config;
use crate::error::{Code, Error, Result};

/// The size of the request bodies in progress.
#[derive(Default)]
pub struct Bodies {
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    total: u64,
    of_account: HashMap<i64, u64>,
}

impl Bodies {
    /// Returns the total size, in bytes.
    pub fn total(&self) -> u64 {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).total
    }
}

/// The memory reserved for a body, released when it is dropped.
pub struct Room {
    bodies: Arc<Bodies>,
    /// The limits in MiB, in total and per account; 0 for no limit.
    most: u64,
    most_of_account: u64,
    account: i64,
    bytes: u64,
}

const MIB: u64 = 1024 * 1024;

impl Room {
    /// Creates an empty reservation for a request to an account.
    pub fn new(bodies: &Arc<Bodies>, config: &Config, account: i64) -> Room {
        let (most, most_of_account) = (config.bodies_mib, config.bodies_per_account_mib);
        Room { bodies: bodies.clone(), most, most_of_account, account, bytes: 0 }
    }

    /// Reserves a number of additional bytes.
    pub fn take(&mut self, bytes: usize) -> Result<()> {
        let bytes = bytes as u64;
        let mut held = self.bodies.held.lock().unwrap_or_else(PoisonError::into_inner);
        let of_account = held.of_account.get(&self.account).copied().unwrap_or_default();
        let full = |limit: u64, used: u64| limit > 0 && used + bytes > limit * MIB;
        if full(self.most_of_account, of_account) {
            let limit = self.most_of_account;
            let message = format!(
                "Your account has {limit} MiB of request bodies in progress (limit bodies_per_account_mib). Wait for some of these requests to complete."
            );
            return Err(Error { retry_after: Some(1), ..Error::new(Code::TooManyRequests, message) });
        }
        if full(self.most, held.total) {
            let message = "The server has no memory left for more request bodies; retry shortly.";
            return Err(Error { retry_after: Some(1), ..Error::new(Code::Overloaded, message) });
        }
        held.total += bytes;
        *held.of_account.entry(self.account).or_default() += bytes;
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        let mut held = self.bodies.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.total -= self.bytes;
        if let Some(own) = held.of_account.get_mut(&self.account) {
            *own -= self.bytes;
            if *own == 0 {
                held.of_account.remove(&self.account);
            }
        }
    }
}
