//! Fair scheduling of documents that are typeset while a request waits. Each account has one place, so that an account
//! waits for at most one document of each other account; recent results are cached.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use engine::app::App;
use engine::call::Make;
use engine::config::Config;
use engine::error::{Code, Error, Result};
use engine::services::Services;
use futures_util::future::BoxFuture;
use sha2::{Digest, Sha256};
use store::{Place, Places};

use crate::typesetting::memory::Memory;
use crate::typesetting::{self, Print};

/// Maximum number of queued requests of an account; and for large documents.
const WAITING: usize = 24;
const WAITING_LARGE: usize = 4;
/// Size of the cache, in bytes.
const KEPT: usize = 32 * 1024 * 1024;

/// The queues and the cache.
pub struct Turns {
    /// A place for each concurrent document, and one for a large one.
    presses: Arc<Places>,
    large_press: Arc<Places>,
    kept: Mutex<Kept>,
}

/// Opens the typesetter, and the turns to use it.
pub fn open(config: &Config, _: &str, services: &mut Services) -> Result<()> {
    services.add(typesetting::open_typesetter(config)?);
    let turns = Turns::new(Memory::of(config).presses);
    services.pool(turns.presses.clone());
    services.pool(turns.large_press.clone());
    services.add(turns);
    Ok(())
}

impl Make for Print {
    fn name(&self) -> &str {
        &self.name
    }

    fn content_type(&self) -> &'static str {
        "application/pdf"
    }

    fn make(&self, app: Arc<App>) -> BoxFuture<'static, Result<Bytes>> {
        let job = self.clone();
        Box::pin(async move { app.services.get::<Turns>().print(&app, &job).await })
    }

    fn make_now(&self, app: &App) -> Result<Vec<u8>> {
        typesetting::print_and_keep(app, self)
    }
}

/// Cached by the hash of the whole input, so that a changed document needs no invalidation.
#[derive(Default)]
struct Kept {
    made: HashMap<[u8; 32], Bytes>,
    /// Oldest first.
    order: VecDeque<[u8; 32]>,
    bytes: usize,
}

impl Turns {
    /// Creates empty queues for this number of concurrent documents.
    pub fn new(presses: usize) -> Turns {
        Turns {
            presses: Places::capped("documents", presses, 1),
            large_press: Places::capped("large documents", 1, 1),
            kept: Mutex::default(),
        }
    }

    /// Returns the PDF of a document when it is the account's turn; the PDF of a final document is stored.
    pub async fn print(&self, app: &Arc<App>, job: &Print) -> Result<Bytes> {
        let data = job.data.to_string();
        let hash = hash(job, &data);
        if let Some(made) = held(&self.kept).made.get(&hash) {
            return Ok(made.clone());
        }
        let large = pdf::is_large(data.as_bytes());
        let place = self.turn(job.account, large).await?;
        // The previous request may have been for the same document.
        if let Some(made) = held(&self.kept).made.get(&hash) {
            return Ok(made.clone());
        }
        let (app, job) = (app.clone(), job.clone());
        let printed = tokio::task::spawn_blocking(move || {
            let made = typesetting::print_and_keep(&app, &job).map(Bytes::from);
            // Released when the work is done, whether or not the request still waits for it.
            drop(place);
            made
        });
        let made = printed.await.map_err(|panic| Error::internal(format!("cannot create a PDF: {panic}")))??;
        held(&self.kept).keep(hash, &made);
        Ok(made)
    }

    async fn turn(&self, account: i64, large: bool) -> Result<Place> {
        let (press, most) = if large { (&self.large_press, WAITING_LARGE) } else { (&self.presses, WAITING) };
        if press.waiting(account) >= most {
            let mut error =
                Error::new(Code::Overloaded, "Too many documents of your account are being created; retry shortly.");
            error.retry_after = Some(if large { 10 } else { 1 });
            return Err(error);
        }
        Ok(press.take(account).await)
    }
}

impl Kept {
    fn keep(&mut self, hash: [u8; 32], made: &Bytes) {
        // A large document would evict all others.
        if made.len() > KEPT / 8 || self.made.insert(hash, made.clone()).is_some() {
            return;
        }
        self.order.push_back(hash);
        self.bytes += made.len();
        while self.bytes > KEPT {
            let Some(oldest) = self.order.pop_front() else { break };
            self.bytes -= self.made.remove(&oldest).map_or(0, |made| made.len());
        }
    }
}

/// Hashes the input of a PDF and its account.
fn hash(job: &Print, data: &str) -> [u8; 32] {
    let mut hash = Sha256::new();
    let numbers = format!("{} {} {}", job.account, job.revision, job.created);
    for part in [&numbers, &job.document, &job.logo, &job.qr, data] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn queues_are_limited_and_others_have_their_own() {
        let turns = Turns::new(2);
        let first = turns.turn(1, false).await.unwrap();
        let mut waiting: Vec<_> = (0..WAITING).map(|_| Box::pin(turns.turn(1, false))).collect();
        waiting.iter_mut().for_each(|turn| assert!(turn.now_or_never().is_none()));
        let error = turns.turn(1, false).await.err().unwrap();
        assert_eq!((error.code, error.retry_after), (Code::Overloaded, Some(1)));
        assert!(turns.turn(1, true).await.is_ok());
        drop(waiting);
        let mut next = Box::pin(turns.turn(1, false));
        assert!((&mut next).now_or_never().is_none());
        drop(first);
        assert!(next.await.is_ok());
    }

    #[test]
    fn the_cache_is_bounded() {
        let mut kept = Kept::default();
        let page = Bytes::from(vec![0; 1024 * 1024]);
        for number in 0..100_u8 {
            kept.keep([number; 32], &page);
        }
        assert_eq!((kept.made.len(), kept.order.len(), kept.bytes), (32, 32, KEPT));
        assert!(kept.made.contains_key(&[99; 32]) && !kept.made.contains_key(&[0; 32]));
        kept.keep([200; 32], &Bytes::from(vec![0; KEPT]));
        assert!(!kept.made.contains_key(&[200; 32]));
    }
}
