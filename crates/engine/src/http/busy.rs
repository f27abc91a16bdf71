//! What is under way on a connection, to tell a connection that is used from one that is only open, and one whose
//! caller takes its answers from one whose caller leaves them lying.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::HttpBody;
use axum::http::Response;
use hyper::body::{Frame, SizeHint};
use tokio::sync::watch;

/// How many requests are under way, and whether their answers are taken.
#[derive(Clone, Default)]
pub struct InFlightRequests {
    count: watch::Sender<usize>,
    taking: Arc<Taking>,
}

#[derive(Default)]
struct Taking {
    /// Answers that have more to give and are not asked for it.
    left_lying: AtomicUsize,
    /// How often any answer was asked for more.
    asked: AtomicU64,
}

impl InFlightRequests {
    /// A request has begun; it is under way until this is dropped.
    pub fn begin(&self) -> UnderWay {
        self.count.send_modify(|count| *count += 1);
        UnderWay { busy: self.clone() }
    }

    /// Whether nothing is under way.
    pub fn is_idle(&self) -> bool {
        *self.count.borrow() == 0
    }

    /// Waits until nothing was under way for so long.
    pub async fn idle(&self, patience: Duration) {
        let mut count = self.count.subscribe();
        loop {
            let change = async {
                // Any change counts: a short request may have come and gone.
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

    /// Waits until there are answers of which nobody took anything for so long. On HTTP/2 the socket does not show it: a
    /// caller may read all frames and never make room for the next piece of an answer.
    pub async fn left_lying(&self, patience: Duration) {
        const LOOKS: u32 = 4;
        let (mut before, mut quiet) = (0, 0);
        while quiet < LOOKS {
            tokio::time::sleep(patience / LOOKS).await;
            let asked = self.taking.asked.load(Ordering::Relaxed);
            let lying = self.taking.left_lying.load(Ordering::Relaxed) > 0;
            quiet = if lying && asked == before { quiet + 1 } else { 0 };
            before = asked;
        }
    }
}

/// A request under way.
pub struct UnderWay {
    busy: InFlightRequests,
}

impl UnderWay {
    /// The answer, which is under way until its last byte is handed over.
    pub fn with<B: HttpBody>(self, response: Response<B>) -> Response<Held<B>> {
        response.map(|body| {
            let mut held = Held { lies: false, body, under_way: self };
            held.lie(!held.body.is_end_stream());
            held
        })
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.busy.count.send_modify(|count| *count -= 1);
    }
}

/// The body of an answer that is under way.
pub struct Held<B> {
    body: B,
    /// Whether it has more to give and is not asked for it.
    lies: bool,
    under_way: UnderWay,
}

impl<B> Held<B> {
    fn lie(&mut self, lies: bool) {
        let count = &self.under_way.busy.taking.left_lying;
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
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        self.under_way.busy.taking.asked.fetch_add(1, Ordering::Relaxed);
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        // A body that has nothing to give now waits for us, not for the caller.
        self.lie(matches!(frame, Poll::Ready(Some(Ok(_)))));
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
