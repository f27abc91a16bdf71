//! Limits the memory of responses that are not yet sent, per account and in total. No request starts while its account
//! is over its limit, so a client that requests much and reads slowly, or never, waits for itself.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::config::Config;
use crate::error::{Code, Error, Result};

const PATIENCE: Duration = Duration::from_secs(5);
/// How many requests of an account work outside a transaction at a time.
const MAX_OUTSIDE: usize = 8;
const MIB: u64 = 1024 * 1024;

/// The responses that are not yet sent.
pub struct Responses {
    /// The limits in bytes, in total and per account; 0 for no limit.
    most: u64,
    most_of_account: u64,
    /// How many reads of an account run at a time.
    most_reads: usize,
    /// How long a request waits until enough earlier responses are sent.
    patience: Duration,
    total: AtomicU64,
    accounts: RwLock<HashMap<i64, Arc<Tally>>>,
    freed: Notify,
}

/// The responses of one account.
struct Tally {
    bytes: AtomicU64,
    /// Large responses are prepared one at a time.
    large: Arc<Semaphore>,
    /// Requests whose work continues outside a transaction: each of them occupies a thread.
    outside: Arc<Semaphore>,
    /// Reads, each of which occupies a connection to PostgreSQL.
    reads: Arc<Semaphore>,
}

/// The response to one request: its bytes are counted until it is dropped.
pub struct Unsent {
    responses: Arc<Responses>,
    tally: Arc<Tally>,
    bytes: u64,
}

impl Responses {
    /// Creates the limits of the settings.
    pub fn new(config: &Config) -> Arc<Responses> {
        // An account with many reads leaves some connections to the others, besides those of its slow reads. SQLite needs none.
        let on_postgres = !config.database_url.is_empty();
        let (readers, slow) = (config.database_readers, config.database_readers / 4);
        let most_reads = (readers * 3 / 4).min(readers.saturating_sub(slow + 1)).max(1);
        let most_reads = if on_postgres { most_reads } else { Semaphore::MAX_PERMITS };
        Responses::with(config.responses_mib * MIB, config.responses_per_account_mib * MIB, most_reads, PATIENCE)
    }

    fn with(most: u64, most_of_account: u64, most_reads: usize, patience: Duration) -> Arc<Responses> {
        Arc::new(Responses {
            most,
            most_of_account,
            most_reads,
            patience,
            total: AtomicU64::new(0),
            accounts: RwLock::default(),
            freed: Notify::new(),
        })
    }

    /// Returns the total size, in bytes.
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Returns the maximum size of one response, in bytes.
    pub fn largest(&self) -> usize {
        if self.most == 0 { usize::MAX } else { usize::try_from(self.most).unwrap_or(usize::MAX) }
    }

    /// Admits a request of an account; waits while the account is over its limit.
    pub async fn admit(self: &Arc<Responses>, account: i64) -> Result<Unsent> {
        let unsent = Unsent { responses: self.clone(), tally: self.of(account), bytes: 0 };
        if unsent.of_account().is_err() {
            self.wait(Instant::now() + self.patience, || unsent.of_account()).await?;
        }
        Ok(unsent)
    }

    fn of(&self, account: i64) -> Arc<Tally> {
        let known = self.accounts.read().unwrap_or_else(PoisonError::into_inner).get(&account).cloned();
        known.unwrap_or_else(|| {
            let mut accounts = self.accounts.write().unwrap_or_else(PoisonError::into_inner);
            let new = || {
                let [large, outside, reads] =
                    [1, MAX_OUTSIDE, self.most_reads].map(|most| Arc::new(Semaphore::new(most)));
                Arc::new(Tally { bytes: AtomicU64::new(0), large, outside, reads })
            };
            accounts.entry(account).or_insert_with(new).clone()
        })
    }

    /// Waits until `check` succeeds, for some time; returns its last error.
    async fn wait(&self, deadline: Instant, check: impl Fn() -> Result<()>) -> Result<()> {
        let waited = tokio::time::timeout_at(deadline, async {
            loop {
                let mut freed = std::pin::pin!(self.freed.notified());
                // Before the check, so that nothing that is sent after it is missed.
                freed.as_mut().enable();
                if check().is_ok() {
                    return;
                }
                freed.await;
            }
        });
        if waited.await.is_ok() { Ok(()) } else { check() }
    }
}

impl Unsent {
    /// Waits until a large response may be prepared: one of an account at a time, while there is memory for it. The
    /// result is dropped when the response is counted.
    pub async fn large(&self) -> Result<OwnedSemaphorePermit> {
        let deadline = Instant::now() + self.responses.patience;
        let turn = tokio::time::timeout_at(deadline, self.tally.large.clone().acquire_owned()).await;
        let turn = turn.map_err(|_| {
            let message = "Other large responses of your account are being prepared; retry shortly.";
            self.of_account().err().unwrap_or_else(|| later(Code::TooManyRequests, message))
        })?;
        self.responses.wait(deadline, || self.of_account().and_then(|()| self.of_all())).await?;
        turn.map_err(|closed| Error::internal(closed.to_string()))
    }

    /// Waits until the request may read. The result is dropped when it has.
    pub async fn reading(&self) -> Result<OwnedSemaphorePermit> {
        let turn = tokio::time::timeout(self.responses.patience, self.tally.reads.clone().acquire_owned()).await;
        let message = "Too many requests of your account are waiting for the database; retry shortly.";
        let turn = turn.map_err(|_| later(Code::TooManyRequests, message))?;
        turn.map_err(|closed| Error::internal(closed.to_string()))
    }

    /// Waits until the work of the request may continue outside a transaction. The result is dropped at its end.
    pub async fn outside(&self) -> Result<OwnedSemaphorePermit> {
        let turn = tokio::time::timeout(self.responses.patience, self.tally.outside.clone().acquire_owned()).await;
        let message = format!("{MAX_OUTSIDE} slow requests of your account are still running; retry shortly.");
        let turn = turn.map_err(|_| later(Code::TooManyRequests, &message))?;
        turn.map_err(|closed| Error::internal(closed.to_string()))
    }

    /// Counts the bytes of the response.
    pub fn count(&mut self, bytes: usize) {
        let bytes = bytes as u64;
        self.tally.bytes.fetch_add(bytes, Ordering::SeqCst);
        self.responses.total.fetch_add(bytes, Ordering::SeqCst);
        self.release();
        self.bytes = bytes;
    }

    fn release(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        if bytes == 0 {
            return;
        }
        let Responses { most, most_of_account, total, freed, .. } = &*self.responses;
        let of_account = self.tally.bytes.fetch_sub(bytes, Ordering::SeqCst);
        let of_all = total.fetch_sub(bytes, Ordering::SeqCst);
        // Otherwise nobody waits, and the lock of the waiting requests is not needed.
        let was_reached = |limit: u64, bytes: u64| limit > 0 && bytes >= limit;
        if was_reached(*most_of_account, of_account) || was_reached(*most, of_all) {
            freed.notify_waiters();
        }
    }

    /// Returns the body of the response, which is counted until its last byte is sent.
    pub fn body(mut self, bytes: impl AsRef<[u8]> + Send + 'static) -> Body {
        let size = bytes.as_ref().len();
        self.count(size);
        let bytes = Bytes::from_owner(Counted { bytes, _unsent: self });
        if size <= PIECE { Body::from(bytes) } else { Body::new(Pieces { rest: bytes, paused: true }) }
    }

    fn of_account(&self) -> Result<()> {
        let limit = self.responses.most_of_account;
        if limit == 0 || self.tally.bytes.load(Ordering::SeqCst) < limit {
            return Ok(());
        }
        let message = format!(
            "Your account has {} MiB of responses that are not yet sent (limit responses_per_account_mib). Read them before you request more.",
            limit / MIB
        );
        Err(later(Code::TooManyRequests, &message))
    }

    /// Checks the limit of all accounts. An account without unsent responses does not wait for the others.
    fn of_all(&self) -> Result<()> {
        let limit = self.responses.most;
        let first = self.tally.bytes.load(Ordering::SeqCst) == 0;
        if limit == 0 || first || self.responses.total.load(Ordering::SeqCst) < limit {
            return Ok(());
        }
        Err(later(Code::Overloaded, "The server has no memory left for more large responses; retry shortly."))
    }
}

fn later(code: Code, message: &str) -> Error {
    Error { retry_after: Some(1), ..Error::new(code, message) }
}

impl Drop for Unsent {
    fn drop(&mut self) {
        self.release();
    }
}

/// The bytes of a response, counted until they are dropped.
struct Counted<B> {
    bytes: B,
    _unsent: Unsent,
}

impl<B: AsRef<[u8]>> AsRef<[u8]> for Counted<B> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

/// Size of the pieces in which a large response is handed over.
const PIECE: usize = 64 * 1024;

/// A large response in pieces, so that its progress is visible. Other requests run between two pieces, which may be
/// compressed on this thread.
struct Pieces {
    rest: Bytes,
    paused: bool,
}

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        if !self.paused {
            self.paused = true;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.paused = false;
        let length = self.rest.len().min(PIECE);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use http_body_util::BodyExt;

    use super::*;

    fn limited(most: u64, most_of_account: u64) -> Arc<Responses> {
        Responses::with(most, most_of_account, 2, Duration::from_millis(20))
    }

    #[tokio::test]
    async fn a_response_is_counted_until_its_last_byte_is_dropped() {
        let responses = limited(3 * MIB, 2 * MIB);
        let text = "x".repeat(700_000);
        let mut body = responses.admit(1).await.unwrap().body(text.clone());
        assert_eq!((responses.total(), body.size_hint().exact()), (700_000, Some(700_000)));
        let mut pieces = Vec::new();
        while let Some(frame) = body.frame().await {
            pieces.push(frame.unwrap().into_data().unwrap());
        }
        drop(body);
        assert!(pieces.iter().all(|piece| piece.len() <= PIECE) && pieces.concat() == text.as_bytes());
        let last = pieces.pop();
        drop(pieces);
        assert_eq!(responses.total(), 700_000, "the last piece keeps all of it");
        drop(last);
        assert_eq!(responses.total(), 0);
    }

    #[tokio::test]
    async fn an_account_over_its_limit_waits_for_itself() {
        let responses = limited(3 * MIB, 2 * MIB);
        let mut first = responses.admit(1).await.unwrap();
        first.count(9_000_000);
        let refused = responses.admit(1).await.err().unwrap();
        assert_eq!((refused.code, refused.retry_after), (Code::TooManyRequests, Some(1)));
        // All memory is used: others get small responses, and a large one if they have none.
        let mut other = responses.admit(2).await.unwrap();
        drop(other.large().await.unwrap());
        other.count(100);
        assert_eq!(other.large().await.err().unwrap().code, Code::Overloaded);
        let mut again = Box::pin(responses.admit(1));
        assert!((&mut again).now_or_never().is_none());
        drop(first);
        assert!(again.await.is_ok());
        assert!(other.large().await.is_ok());
        drop(other);
        assert_eq!(responses.total(), 0);
    }

    #[tokio::test]
    async fn an_account_occupies_few_threads_outside_transactions() {
        let responses = limited(0, 0);
        let (one, other) = (responses.admit(1).await.unwrap(), responses.admit(2).await.unwrap());
        let mut turns = Vec::new();
        for _ in 0..MAX_OUTSIDE {
            turns.push(one.outside().await.unwrap());
        }
        assert_eq!(one.outside().await.err().unwrap().code, Code::TooManyRequests);
        assert!(other.outside().await.is_ok());
        turns.pop();
        assert!(one.outside().await.is_ok());
    }

    #[tokio::test]
    async fn an_account_leaves_connections_to_others() {
        let responses = limited(0, 0);
        let (one, other) = (responses.admit(1).await.unwrap(), responses.admit(2).await.unwrap());
        let turns = (one.reading().await.unwrap(), one.reading().await.unwrap());
        assert_eq!(one.reading().await.err().unwrap().code, Code::TooManyRequests);
        assert!(other.reading().await.is_ok());
        drop(turns);
        assert!(one.reading().await.is_ok());
    }

    #[tokio::test]
    async fn large_responses_of_an_account_are_prepared_one_at_a_time() {
        let responses = limited(0, 0);
        let (one, two) = (responses.admit(1).await.unwrap(), responses.admit(1).await.unwrap());
        let turn = one.large().await.unwrap();
        assert_eq!(two.large().await.err().unwrap().code, Code::TooManyRequests);
        assert!(responses.admit(2).await.unwrap().large().await.is_ok());
        drop(turn);
        assert!(two.large().await.is_ok());
    }
}
