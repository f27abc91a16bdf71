//! A write timeout for connections: when written data is accepted too slowly for a while, the connection is closed.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

use super::busy::least;
use super::seats::ConnectionState;

/// A socket with a write timeout.
pub struct Paced {
    stream: TcpStream,
    place: Arc<ConnectionState>,
    patience: Duration,
    /// Runs while the other end accepts too little data, since it first accepted none.
    timer: Option<Pin<Box<Sleep>>>,
    /// The number of bytes accepted since then.
    taken: u64,
}

impl Paced {
    /// Creates a socket with a write timeout of `patience`.
    pub fn new(stream: TcpStream, place: Arc<ConnectionState>, patience: Duration) -> Paced {
        Paced { stream, place, patience, timer: None, taken: 0 }
    }

    fn goes_on(&mut self) {
        if self.timer.take().is_some() {
            self.place.goes_on();
        }
    }

    fn judge(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(done) = &written {
            self.taken += done.as_ref().map_or(0, |bytes| *bytes as u64);
            if self.taken >= least(self.patience) {
                self.goes_on();
            }
            return written;
        }
        let (patience, place, taken) = (self.patience, &self.place, &mut self.taken);
        let timer = self.timer.get_or_insert_with(|| {
            *taken = 0;
            place.stalls();
            Box::pin(tokio::time::sleep(patience))
        });
        if timer.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        self.place.gave_up();
        // Data in the kernel for a client that does not read is discarded too.
        let _ = self.stream.set_zero_linger();
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Paced {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Paced {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.judge(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.judge(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Everything is written.
        self.goes_on();
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
