//! The cache of recently used keys and sessions, which saves a database lookup per request. An entry expires after
//! half a second: a revoked key or an ended session works at most that long.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use store::{Store, Tx};

use crate::accounts::{self, Account, Key};
use crate::clock::{Clock, Moment};
use crate::error::{Code, Error, Result};
use crate::secrets::vault::Vault;
use crate::who::Who;

/// Half of the second within which a change takes effect everywhere.
const FRESH: Duration = Duration::from_millis(500);
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
    /// The rate limiter that all keys of the account share, or all its sessions.
    pub shared: Arc<Limiter>,
    read_at: Instant,
}

impl AuthenticatedKey {
    /// Creates the caller of a signed URL, which can read the content that the URL names.
    pub fn signed(account: Account) -> AuthenticatedKey {
        let key = Key {
            id: "signed address".to_string(),
            account: account.number,
            scopes: vec!["*".to_string()],
            ..Key::default()
        };
        AuthenticatedKey {
            actor: Who::visitor(&key.id),
            account: Arc::new(account),
            limiter: Arc::default(),
            shared: Arc::default(),
            read_at: Instant::now(),
            key: Arc::new(key),
        }
    }
}

/// A key, and whether it was just read from the database.
struct Found {
    caller: Arc<AuthenticatedKey>,
    just_read: bool,
}

/// Finds the key with a hash. A session has a mark that one of the keys for secrets made.
pub type Find = fn(&mut Tx, &Vault, &[u8]) -> Result<Option<Key>>;

/// The secret of a key or a session, which is hashed once per request.
#[derive(Clone, Copy)]
pub struct Secret<'s> {
    /// As it was sent.
    pub text: &'s str,
    /// Its hash, by which it is stored.
    pub hash: [u8; 32],
}

impl<'s> From<&'s str> for Secret<'s> {
    fn from(text: &'s str) -> Secret<'s> {
        Secret { text, hash: accounts::hash(text) }
    }
}

/// The recently used keys, or sessions.
pub struct KeyRing {
    find: Find,
    vault: Arc<Vault>,
    seen: RwLock<HashMap<[u8; 32], Arc<AuthenticatedKey>>>,
    used: Mutex<HashMap<String, Moment>>,
    /// The rate limiter of each account.
    accounts: Mutex<HashMap<i64, Arc<Limiter>>>,
}

impl KeyRing {
    /// Creates an empty cache of what `find` finds.
    pub fn new(find: Find, vault: Arc<Vault>) -> KeyRing {
        KeyRing { find, vault, seen: RwLock::default(), used: Mutex::default(), accounts: Mutex::default() }
    }

    /// Returns the key with this secret; an error if it is not valid, or not from this address, which few keys ask for.
    pub async fn caller(
        &self,
        store: &Store,
        clock: &Clock,
        secret: Secret<'_>,
        address: impl FnOnce() -> Option<IpAddr>,
    ) -> Result<Arc<AuthenticatedKey>> {
        // What was found before had the right form.
        if !self.has_seen(secret.hash) && !accounts::is_well_formed(secret.text) {
            return Err(unauthorized("This is not a valid API key; keys start with kt_ and have 39 characters."));
        }
        let now = clock.now();
        let found = self.look_up(store, secret.hash).await?;
        let found = found.ok_or_else(|| unauthorized("This key is unknown."))?;
        if let Some(reason) = found.caller.key.ended(now) {
            return Err(unauthorized(&reason));
        }
        if !found.caller.key.networks.is_empty() {
            check_network(&found.caller.key, address())?;
        }
        found.caller.account.check_open()?;
        Ok(self.note_use(found, now))
    }

    /// Returns the session with this secret; an error if it has ended.
    pub async fn session(&self, store: &Store, clock: &Clock, secret: Secret<'_>) -> Result<Arc<AuthenticatedKey>> {
        let now = clock.now();
        let found = self.look_up(store, secret.hash).await?;
        let found = found.filter(|found| found.caller.key.is_live(now));
        let found = found.ok_or_else(|| unauthorized("Your session has ended. Sign in again."))?;
        found.caller.account.check_open()?;
        Ok(self.note_use(found, now))
    }

    /// Removes a session that has ended on this node; other nodes notice it within a second.
    pub fn forget(&self, secret: &str) {
        self.seen.write().unwrap_or_else(PoisonError::into_inner).remove(&accounts::hash(secret));
    }

    async fn look_up(&self, store: &Store, hash: [u8; 32]) -> Result<Option<Found>> {
        let seen = self.seen.read().unwrap_or_else(PoisonError::into_inner).get(&hash).cloned();
        match seen {
            Some(caller) if caller.read_at.elapsed() < FRESH => Ok(Some(Found { caller, just_read: false })),
            seen => self.fetch(store, hash, seen).await,
        }
    }

    /// Remembers that a key was used, for [`KeyRing::take_used`]: once per lookup in the database.
    fn note_use(&self, found: Found, now: Moment) -> Arc<AuthenticatedKey> {
        let key = &found.caller.key;
        if found.just_read {
            let id = if key.session.is_empty() { &key.id } else { &key.session };
            self.used.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), now);
        }
        found.caller
    }

    /// Whether the key with this hash was used recently.
    pub fn has_seen(&self, hash: [u8; 32]) -> bool {
        self.seen.read().unwrap_or_else(PoisonError::into_inner).contains_key(&hash)
    }

    async fn fetch(&self, store: &Store, hash: [u8; 32], seen: Option<Arc<AuthenticatedKey>>) -> Result<Option<Found>> {
        let (find, vault) = (self.find, self.vault.clone());
        let found = store.read(move |tx| {
            let Some(key) = find(tx, &vault, &hash)? else { return Ok(None) };
            let account = Account::numbered(tx, key.account)?;
            Ok::<_, Error>(Some((key, account)))
        });
        let Some((key, account)) = found.await? else { return Ok(None) };
        let seen = seen.or_else(|| self.with_other_secret(&key));
        let caller = Arc::new(AuthenticatedKey {
            actor: Who::of_key(&key),
            account: Arc::new(account),
            limiter: seen.map(|caller| caller.limiter.clone()).unwrap_or_default(),
            shared: self.shared(key.account),
            read_at: Instant::now(),
            key: Arc::new(key),
        });
        let mut seen = self.seen.write().unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= MAX_KEYS {
            seen.clear();
        }
        seen.insert(hash, caller.clone());
        Ok(Some(Found { caller, just_read: true }))
    }

    /// Returns the same key as used with another secret, old or new: both count against one rate limit.
    fn with_other_secret(&self, key: &Key) -> Option<Arc<AuthenticatedKey>> {
        let seen = self.seen.read().unwrap_or_else(PoisonError::into_inner);
        seen.values().find(|other| key.session.is_empty() && other.key.id == key.id).cloned()
    }

    /// Returns the rate limiter that the keys of an account share.
    fn shared(&self, account: i64) -> Arc<Limiter> {
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        if accounts.len() >= MAX_KEYS && !accounts.contains_key(&account) {
            // A recently used key holds the limiter of its account.
            accounts.retain(|_, limiter| Arc::strong_count(limiter) > 1);
        }
        accounts.entry(account).or_default().clone()
    }

    /// Returns the keys used since the previous call, to be recorded.
    pub fn take_used(&self) -> Vec<(String, Moment)> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let mut uses: Vec<(String, Moment)> = used.drain().collect();
        // Nodes that update the same rows in the same order wait for each other instead of blocking each other.
        uses.sort();
        uses
    }
}

fn check_network(key: &Key, address: Option<IpAddr>) -> Result<()> {
    if address.is_some_and(|address| key.networks.iter().any(|network| network.contains(address))) {
        return Ok(());
    }
    let from = address.map_or_else(|| "an unknown address".to_string(), |address| address.to_string());
    Err(Error::new(Code::Forbidden, format!("This key does not allow requests from {from}.")))
}

fn unauthorized(message: &str) -> Error {
    Error::new(Code::Unauthorized, message)
}

/// The rate limiter of a key or a visitor: the time, in microseconds, at which its quota is fully restored (GCRA).
#[derive(Default)]
pub struct Limiter {
    paid_at: AtomicI64,
}

/// A limit as responses report it.
#[derive(Clone, Copy)]
pub struct Reported {
    /// Whose limit it is: `key` or `account`.
    pub name: &'static str,
    /// Requests per minute.
    pub limit: u32,
    /// Its remainder.
    pub left: Left,
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
