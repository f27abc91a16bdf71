//! Limits the memory that request bodies in progress use, in total and per account, and the number of those that
//! arrive slowly: each of them occupies a connection, or a stream of one.

use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use store::{Full, Place, Places};

use crate::config::Config;
use crate::error::{Code, Error, Result};

/// The size of the request bodies in progress.
pub struct Bodies {
    held: Mutex<Held>,
    slow: Arc<Places>,
}

#[derive(Default)]
struct Held {
    total: u64,
    of_account: HashMap<i64, u64>,
}

impl Bodies {
    /// Creates the limits of a server with this many connections.
    pub fn new(connections: usize) -> Bodies {
        Bodies { held: Mutex::default(), slow: Places::new("slow bodies", (connections / 2).max(2)) }
    }

    /// Returns the places of bodies that arrive slowly.
    pub fn slow(&self) -> &Arc<Places> {
        &self.slow
    }

    /// Returns the total size, in bytes.
    pub fn total(&self) -> u64 {
        self.held().total
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Time after which an incomplete body counts as slow.
const SLOW: Duration = Duration::from_secs(1);

/// Receives a body within `patience`. A slow one also needs one of a limited number of places: half of `max_connections`, of
/// which an account that is alone takes half.
pub async fn in_time<T>(
    bodies: &Arc<Bodies>,
    account: i64,
    patience: Duration,
    receiving: impl Future<Output = Result<T>>,
) -> Result<T> {
    let mut receiving = pin!(receiving);
    if let Ok(received) = tokio::time::timeout(SLOW.min(patience), receiving.as_mut()).await {
        return received;
    }
    let _place = slow_body(bodies, account)?;
    let received = tokio::time::timeout(patience.saturating_sub(SLOW), receiving).await;
    received.map_err(|_| Error::new(Code::RequestTimeout, "The body did not arrive in time."))?
}

/// Takes the place of a slow body.
fn slow_body(bodies: &Bodies, account: i64) -> Result<Place> {
    let refused = |code, message: String| Error { retry_after: Some(1), ..Error::new(code, message) };
    bodies.slow.try_take(account).map_err(|full| match full {
        Full::Own(own) => {
            let message = format!(
                "{own} request bodies of your account are incomplete after {} s, which is its share of this server. Send fewer bodies at a time.",
                SLOW.as_secs()
            );
            refused(Code::TooManyRequests, message)
        }
        Full::All => refused(Code::Overloaded, "Too many request bodies arrive slowly; retry shortly.".to_string()),
    })
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
        let mut held = self.bodies.held();
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
        let mut held = self.bodies.held();
        held.total -= self.bytes;
        if let Some(own) = held.of_account.get_mut(&self.account) {
            *own -= self.bytes;
            if *own == 0 {
                held.of_account.remove(&self.account);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_bodies_are_limited_per_account_and_in_total() {
        let bodies = Bodies::new(8);
        let slow = |account| slow_body(&bodies, account);
        let mut held: Vec<Place> = [1, 1, 2].map(|account| slow(account).unwrap()).into();
        assert_eq!(slow(1).err().unwrap().code, Code::TooManyRequests);
        held.push(slow(3).unwrap());
        assert_eq!(slow(4).err().unwrap().code, Code::Overloaded);
        held.truncate(3);
        assert!(slow(4).is_ok());
        drop(held);
        assert_eq!(bodies.slow.taken(), 0);
    }
}
