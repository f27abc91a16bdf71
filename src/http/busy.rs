//! What is under way on a connection of HTTP/2, to tell a connection that is used from one that
//! is only open. HTTP/1.1 has hyper's own time-out for that.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::Response;
use hyper::body::{Frame, SizeHint};
use tokio::sync::watch;

/// How many requests are under way.
#[derive(Clone, Default)]
pub struct Busy {
    count: watch::Sender<usize>,
}

impl Busy {
    /// A request has begun; it is under way until this is dropped.
    pub fn begin(&self) -> UnderWay {
        self.count.send_modify(|count| *count += 1);
        UnderWay { busy: self.clone() }
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
}

/// A request under way.
pub struct UnderWay {
    busy: Busy,
}

impl UnderWay {
    /// The answer, which is under way until its last byte is handed over.
    pub fn with(self, response: Response<Body>) -> Response<Body> {
        response.map(|body| Body::new(Held { body, _under_way: self }))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.busy.count.send_modify(|count| *count -= 1);
    }
}

struct Held {
    body: Body,
    _under_way: UnderWay,
}

impl HttpBody for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
