//! The connection loop: HTTP/1.1 and h2c on one port, time-outs for slow heads and idle connections,
//! a cap on connections, and an end that lets requests finish.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, Response, Version};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulConnection, GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::sync::watch::Receiver;
use tower::{ServiceBuilder, service_fn};
use tower_http::compression::CompressionLayer;
use tower_http::compression::Predicate;
use tower_http::compression::predicate::{NotForContentType, SizeAbove};

use super::busy::Busy;
use super::pages;
use crate::app::App;
use crate::loops::Pulse;

/// What every HTTP/2 connection starts with.
const H2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// How long a caller may take to hear that its connection ends.
const GOODBYE: Duration = Duration::from_secs(5);

/// Serves on `listener` until `stop` is there, then lets what runs finish.
pub async fn serve(app: Arc<App>, listener: TcpListener, stop: impl Future<Output = ()>) {
    let room = Arc::new(Semaphore::new(app.config.max_connections));
    let graceful = GracefulShutdown::new();
    let stopping = tokio::sync::watch::Sender::new(false);
    tokio::pin!(stop);
    loop {
        let seat = room.clone().acquire_owned();
        let (seat, stream) = tokio::select! {
            () = &mut stop => break,
            accepted = async { (seat.await, listener.accept().await) } => accepted,
        };
        let (Ok(seat), Ok((stream, peer))) = (seat, stream) else {
            // Out of file handles, most likely: wait for some to close rather than spin.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let (app, watcher, stopping) = (app.clone(), graceful.watcher(), stopping.subscribe());
        tokio::spawn(async move {
            app.metrics.connections.inc();
            connection(&app, stream, peer, watcher, stopping).await;
            app.metrics.connections.dec();
            drop(seat);
        });
    }
    drop(listener);
    stopping.send_replace(true);
    app.listeners.stop();
    let patience = Duration::from_secs(app.config.shutdown_seconds);
    let finished = async {
        graceful.shutdown().await;
        app.listeners.idle().await;
    };
    if tokio::time::timeout(patience, finished).await.is_err() {
        tracing::warn!("Some requests or calls did not finish in time and were cut off.");
    }
}

/// How often the listener for metrics says that it is there while nobody asks.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);

/// Serves `/metrics` on `listener` for ever.
pub async fn serve_metrics(app: Arc<App>, listener: Arc<TcpListener>, pulse: Pulse) {
    loop {
        pulse.turn();
        let Ok(accepted) = tokio::time::timeout(SIGN_OF_LIFE, listener.accept()).await else { continue };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let app = app.clone();
        tokio::spawn(async move {
            let service = hyper::service::service_fn(|request: Request<Incoming>| {
                let app = app.clone();
                async move { Ok::<_, Infallible>(pages::metrics(&app, request.uri().path()).await) }
            });
            let _ = http1(Duration::from_secs(10)).serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn connection(
    app: &Arc<App>,
    stream: TcpStream,
    peer: SocketAddr,
    watcher: Watcher,
    mut stopping: Receiver<bool>,
) {
    let patience = Duration::from_secs(app.config.header_timeout_seconds);
    let busy = Busy::default();
    let owned = (app.clone(), busy.clone());
    let answer = service_fn(move |request: Request<Incoming>| {
        let (app, busy) = owned.clone();
        async move {
            let under_way = (request.version() == Version::HTTP_2).then(|| busy.begin());
            let response = pages::answer(app, peer, request.map(Body::new)).await;
            Ok::<Response<Body>, Infallible>(match under_way {
                Some(under_way) => under_way.with(response),
                None => response,
            })
        }
    });
    // Below this size the headers of compression cost more than it saves. Events would wait for more
    // of them to be packed together.
    let packed = SizeAbove::new(1024).and(NotForContentType::SSE);
    let service = ServiceBuilder::new().layer(CompressionLayer::new().gzip(true).compress_when(packed)).service(answer);
    let service = TowerToHyperService::new(service);
    // An error here is the caller's: it hung up, was too slow or spoke no HTTP.
    let first = tokio::select! {
        first = tokio::time::timeout(patience, speaks_h2(&stream)) => first,
        // Whoever has said nothing yet has nothing to finish.
        _ = stopping.wait_for(|stopping| *stopping) => return,
    };
    match first {
        Err(_) | Ok(Err(_)) => {}
        Ok(Ok(true)) => {
            let conn = http2(patience).serve_connection(TokioIo::new(stream), service);
            until_idle(conn, &busy, patience, stopping).await;
            drop(watcher);
        }
        Ok(Ok(false)) => {
            let conn = http1(patience).serve_connection(TokioIo::new(stream), service);
            let _ = watcher.watch(conn).await;
        }
    }
}

fn http1(patience: Duration) -> hyper::server::conn::http1::Builder {
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(patience).max_headers(100);
    http
}

/// A caller that is gone without a word is noticed by pings that it does not answer, also while it
/// waits for events. By default there is one each 20 seconds, with 10 for the answer.
fn http2(patience: Duration) -> hyper::server::conn::http2::Builder<TokioExecutor> {
    let mut http = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    http.timer(TokioTimer::new())
        .max_concurrent_streams(128)
        .keep_alive_interval(patience * 2 / 3)
        .keep_alive_timeout((patience / 3).max(Duration::from_secs(1)));
    http
}

/// Serves a connection of HTTP/2 until nothing was asked on it for a while, or Kantoor stops.
async fn until_idle(conn: impl GracefulConnection, busy: &Busy, patience: Duration, mut stopping: Receiver<bool>) {
    let mut conn = pin!(conn);
    let mut leaving = false;
    loop {
        tokio::select! {
            _ = conn.as_mut() => return,
            _ = stopping.wait_for(|stopping| *stopping), if !leaving => {}
            () = busy.idle(if leaving { patience.min(GOODBYE) } else { patience }) => {
                if leaving {
                    return;
                }
            }
        }
        // Says which request is the last that is answered, so that the caller can safely send the
        // next one elsewhere. The connection ends once the caller has heard it.
        leaving = true;
        conn.as_mut().graceful_shutdown();
    }
}

/// Whether the caller starts with the words of HTTP/2, without taking them from the stream.
async fn speaks_h2(stream: &TcpStream) -> std::io::Result<bool> {
    let mut start = [0; H2_PREFACE.len()];
    loop {
        let length = stream.peek(&mut start).await?;
        if length == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        if start[..length] != H2_PREFACE[..length] {
            return Ok(false);
        }
        if length == H2_PREFACE.len() {
            return Ok(true);
        }
        // Half a preface: peek answers at once while there is something, so wait for the rest.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
