//! The cache of recently used keys and sessions, which saves a database lookup per request. An entry expires after a
//! second: a revoked key or an ended session works at most that long.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use store::{Store, Tx};

use crate::accounts::{self, Account, Key};
use crate::clock::{Clock, Moment};
use crate::error::{Code, Error, Result};
use crate::who::Who;

const FRESH: Duration = Duration::from_secs(1);
/// More keys than are used in a second; bounds the memory.
const MAX_KEYS: usize = 10_000;

/// A valid key with its account.
pub struct AuthenticatedKey {
    /// The key.
    pub key: Arc<Key>,
    /// The key, or the user of the session, as the log names it.
    pub actor: Who,
    /// The account that it gives access to.
    pub account: Arc<Account>,
    /// Its rate limiter.
    pub limiter: Arc<Limiter>,
    read_at: Instant,
}

impl AuthenticatedKey {
    /// Creates the caller of a signed URL, which can read the content that the URL names.
    pub fn signed(account: Account) -> AuthenticatedKey {
        let key = Key {
            id: "signed address".to_string(),
            session: String::new(),
            account: account.number,
            name: String::new(),
            hint: String::new(),
            scopes: vec!["*".to_string()],
            created_at: Moment::default(),
            expires_at: Moment::default(),
            revoked_at: Moment::default(),
            last_used_at: Moment::default(),
        };
        AuthenticatedKey {
            actor: Who::visitor(&key.id),
            account: Arc::new(account),
            limiter: Arc::default(),
            read_at: Instant::now(),
            key: Arc::new(key),
        }
    }
}

/// Finds the key with a hash.
pub type Find = fn(&mut Tx, &[u8]) -> Result<Option<Key>>;

/// The recently used keys, or sessions.
pub struct KeyRing {
    find: Find,
    seen: RwLock<HashMap<[u8; 32], Arc<AuthenticatedKey>>>,
    used: Mutex<HashMap<String, Moment>>,
}

impl KeyRing {
    /// Creates an empty cache of what `find` finds.
    pub fn new(find: Find) -> KeyRing {
        KeyRing { find, seen: RwLock::default(), used: Mutex::default() }
    }

    /// Returns the key with this secret; an error if it is not valid.
    pub async fn caller(&self, store: &Store, clock: Clock, secret: &str) -> Result<Arc<AuthenticatedKey>> {
        if !accounts::is_well_formed(secret) {
            return Err(unauthorized("This is not a valid API key; keys start with kt_ and have 39 characters."));
        }
        let now = clock.now();
        let caller = self.look_up(store, now, accounts::hash(secret)).await?;
        let caller = caller.ok_or_else(|| unauthorized("This key is unknown."))?;
        if !caller.key.is_live(now) {
            return Err(unauthorized("This key has expired or has been revoked."));
        }
        Ok(caller)
    }

    /// Returns the session with this secret; an error if it has ended.
    pub async fn session(&self, store: &Store, clock: Clock, secret: &str) -> Result<Arc<AuthenticatedKey>> {
        let now = clock.now();
        let caller = self.look_up(store, now, accounts::hash(secret)).await?;
        caller
            .filter(|caller| caller.key.is_live(now))
            .ok_or_else(|| unauthorized("Your session has ended. Sign in again."))
    }

    /// Removes a session that has ended on this node; other nodes notice it within a second.
    pub fn forget(&self, secret: &str) {
        self.seen.write().unwrap_or_else(PoisonError::into_inner).remove(&accounts::hash(secret));
    }

    async fn look_up(&self, store: &Store, now: Moment, hash: [u8; 32]) -> Result<Option<Arc<AuthenticatedKey>>> {
        let seen = self.seen.read().unwrap_or_else(PoisonError::into_inner).get(&hash).cloned();
        match seen {
            Some(caller) if caller.read_at.elapsed() < FRESH => Ok(Some(caller)),
            seen => self.fetch(store, now, hash, seen).await,
        }
    }

    /// Whether the key was used recently.
    pub fn has_seen(&self, secret: &str) -> bool {
        let seen = self.seen.read().unwrap_or_else(PoisonError::into_inner);
        seen.contains_key(&accounts::hash(secret))
    }

    async fn fetch(
        &self,
        store: &Store,
        now: Moment,
        hash: [u8; 32],
        seen: Option<Arc<AuthenticatedKey>>,
    ) -> Result<Option<Arc<AuthenticatedKey>>> {
        let find = self.find;
        let found = store.read(move |tx| {
            let Some(key) = find(tx, &hash)? else { return Ok(None) };
            let account = Account::numbered(tx, key.account)?;
            Ok::<_, Error>(Some((key, account)))
        });
        let Some((key, account)) = found.await? else { return Ok(None) };
        let caller = Arc::new(AuthenticatedKey {
            actor: Who::of_key(&key),
            account: Arc::new(account),
            limiter: seen.map(|caller| caller.limiter.clone()).unwrap_or_default(),
            read_at: Instant::now(),
            key: Arc::new(key),
        });
        let id = if caller.key.session.is_empty() { &caller.key.id } else { &caller.key.session };
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.insert(id.clone(), now);
        drop(used);
        let mut seen = self.seen.write().unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= MAX_KEYS {
            seen.clear();
        }
        seen.insert(hash, caller.clone());
        Ok(Some(caller))
    }

    /// Returns the keys used since the previous call, to be recorded.
    pub fn take_used(&self) -> Vec<(String, Moment)> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.drain().collect()
    }
}

fn unauthorized(message: &str) -> Error {
    Error::new(Code::Unauthorized, message)
}

/// The rate limiter of a key or a visitor: the time, in microseconds, at which its quota is fully restored (GCRA).
#[derive(Default)]
pub struct Limiter {
    paid_at: AtomicI64,
}

/// The remainder of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// Requests that can follow immediately.
    pub remaining: i64,
    /// Seconds until the limit is fully restored.
    pub reset: i64,
}

impl Limiter {
    /// Whether the limit is fully restored at `now`.
    pub fn is_whole(&self, now: i64) -> bool {
        self.paid_at.load(Ordering::Relaxed) <= now
    }

    /// Checks whether another request is allowed at `now`; otherwise returns the seconds to wait.
    pub fn check(&self, per_minute: u32, now: i64) -> Result<(), i64> {
        let copy = Limiter { paid_at: AtomicI64::new(self.paid_at.load(Ordering::Relaxed)) };
        copy.take(per_minute, now).map(drop)
    }

    /// Counts a request against `per_minute`, at `now` in microseconds; otherwise returns the seconds to wait.
    pub fn take(&self, per_minute: u32, now: i64) -> Result<Left, i64> {
        let window = 60_000_000;
        let cost = (window / i64::from(per_minute).max(1)).max(1);
        let mut verdict = Ok(Left { remaining: 0, reset: 0 });
        let _ = self.paid_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |paid_at| {
            let next = paid_at.max(now) + cost;
            let debt = next - now;
            if debt > window {
                verdict = Err((debt - window) / 1_000_000 + 1);
                return None;
            }
            verdict = Ok(Left { remaining: (window - debt) / cost, reset: debt / 1_000_000 + 1 });
            Some(next)
        });
        verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_holds_and_refills() {
        let limiter = Limiter::default();
        let taken = (0..31).map(|_| limiter.take(30, 1_000_000_000)).collect::<Vec<_>>();
        assert_eq!(taken[0], Ok(Left { remaining: 29, reset: 3 }));
        assert_eq!(taken[29], Ok(Left { remaining: 0, reset: 61 }));
        assert_eq!(taken[30], Err(3));
        assert!(limiter.take(30, 1_002_000_001).is_ok());
        assert!(limiter.take(30, 1_002_000_002).is_err());
    }
}
