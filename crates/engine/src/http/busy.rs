//! Tracks the requests on a connection, to distinguish active connections from idle ones, and clients that read their
//! responses from those that do not.

use std::io::IoSlice;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::HttpBody;
use axum::http::Response;
use bytes::Buf;
use hyper::body::{Frame, SizeHint};
use tokio::sync::watch;

/// The minimum number of bytes per second that a client must read of a response.
const LEAST_RATE: u64 = 1024;

/// Returns the number of bytes that a client must read in this time.
pub fn least(patience: Duration) -> u64 {
    LEAST_RATE * patience.as_secs().max(1)
}

/// The number of requests in progress, and whether their responses are read.
#[derive(Clone, Default)]
pub struct InFlightRequests {
    count: watch::Sender<usize>,
    taking: Arc<Taking>,
}

#[derive(Default)]
struct Taking {
    /// Responses that have more data and are not being read, and pieces of responses that are not yet sent.
    left_lying: AtomicUsize,
    /// The number of bytes sent.
    sent: AtomicU64,
}

impl InFlightRequests {
    /// Starts a request, which is in progress until the result is dropped.
    pub fn begin(&self) -> UnderWay {
        self.count.send_modify(|count| *count += 1);
        UnderWay { busy: self.clone() }
    }

    /// Whether no request is in progress.
    pub fn is_idle(&self) -> bool {
        *self.count.borrow() == 0
    }

    /// Waits until no request has been in progress for this long.
    pub async fn idle(&self, patience: Duration) {
        let mut count = self.count.subscribe();
        loop {
            let change = async {
                // Any change counts: a short request may have started and ended.
                let nothing = *count.borrow_and_update() == 0;
                if nothing {
                    tokio::time::timeout(patience, count.changed()).await.is_ok()
                } else {
                    count.changed().await.is_ok()
                }
            };
            if !change.await {
                return;
            }
        }
    }

    /// Waits until responses have been read too slowly for this long. On HTTP/2 the socket does not show this: a client
    /// can read all frames without ever opening the window for a response, or open it by a byte at a time.
    pub async fn left_lying(&self, patience: Duration) {
        const LOOKS: u32 = 10;
        let sent = || self.taking.sent.load(Ordering::Relaxed);
        let (mut before, mut quiet) = (sent(), 0);
        // One more than the number of looks, since the response may have started just before the first of them.
        while quiet <= LOOKS {
            tokio::time::sleep(patience / LOOKS).await;
            let lying = self.taking.left_lying.load(Ordering::Relaxed) > 0;
            if lying && sent() - before < least(patience) {
                quiet += 1;
            } else {
                (before, quiet) = (sent(), 0);
            }
        }
    }
}

/// A request in progress.
pub struct UnderWay {
    busy: InFlightRequests,
}

impl UnderWay {
    /// Returns the response, which is in progress until its last byte is sent.
    pub fn with<B: HttpBody>(self, response: Response<B>) -> Response<Held<B>> {
        response.map(|body| {
            let mut held = Held { lies: false, body, under_way: Arc::new(self) };
            held.lie(!held.body.is_end_stream());
            held
        })
    }

    fn left_lying(&self) -> &AtomicUsize {
        &self.busy.taking.left_lying
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.busy.count.send_modify(|count| *count -= 1);
    }
}

/// The body of a response in progress.
pub struct Held<B> {
    body: B,
    /// Whether it has more data and is not being read.
    lies: bool,
    under_way: Arc<UnderWay>,
}

impl<B> Held<B> {
    fn lie(&mut self, lies: bool) {
        let count = self.under_way.left_lying();
        match (self.lies, lies) {
            (false, true) => drop(count.fetch_add(1, Ordering::Relaxed)),
            (true, false) => drop(count.fetch_sub(1, Ordering::Relaxed)),
            _ => {}
        }
        self.lies = lies;
    }
}

impl<B> Drop for Held<B> {
    fn drop(&mut self) {
        self.lie(false);
    }
}

impl<B: HttpBody + Unpin> HttpBody for Held<B> {
    type Data = Piece<B::Data>;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Self::Data>, B::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        // A body without data waits for the server, not for the client.
        self.lie(matches!(frame, Poll::Ready(Some(Ok(_)))));
        frame.map_ok(|frame| frame.map_data(|data| Piece::new(data, &self.under_way)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A piece of a response on its way to the socket.
pub struct Piece<D> {
    data: D,
    under_way: Arc<UnderWay>,
}

impl<D> Piece<D> {
    fn new(data: D, under_way: &Arc<UnderWay>) -> Piece<D> {
        under_way.left_lying().fetch_add(1, Ordering::Relaxed);
        Piece { data, under_way: under_way.clone() }
    }
}

impl<D: Buf> Buf for Piece<D> {
    fn remaining(&self) -> usize {
        self.data.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.data.chunk()
    }

    fn chunks_vectored<'a>(&'a self, pieces: &mut [IoSlice<'a>]) -> usize {
        self.data.chunks_vectored(pieces)
    }

    fn advance(&mut self, count: usize) {
        self.under_way.busy.taking.sent.fetch_add(count as u64, Ordering::Relaxed);
        self.data.advance(count);
    }
}

impl<D> Drop for Piece<D> {
    fn drop(&mut self) {
        self.under_way.left_lying().fetch_sub(1, Ordering::Relaxed);
    }
}
