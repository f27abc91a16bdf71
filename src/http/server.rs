//! The connection loop: HTTP/1.1 and h2c on one port, time-outs for slow heads, a cap on
//! connections, and an end that lets requests finish.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::sync::watch::Receiver;
use tower::{ServiceBuilder, service_fn};
use tower_http::compression::CompressionLayer;
use tower_http::compression::Predicate;
use tower_http::compression::predicate::{NotForContentType, SizeAbove};

use super::pages;
use crate::app::App;

/// What every HTTP/2 connection starts with.
const H2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

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
        let (Ok(seat), Ok((stream, _))) = (seat, stream) else {
            // Out of file handles, most likely: wait for some to close rather than spin.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let (app, watcher, stopping) = (app.clone(), graceful.watcher(), stopping.subscribe());
        tokio::spawn(async move {
            app.metrics.connections.inc();
            connection(&app, stream, watcher, stopping).await;
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

/// Serves `/metrics` on `listener` for ever.
pub async fn serve_metrics(app: Arc<App>, listener: TcpListener) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
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

async fn connection(app: &Arc<App>, stream: TcpStream, watcher: Watcher, mut stopping: Receiver<bool>) {
    let patience = Duration::from_secs(app.config.header_timeout_seconds);
    let owned = app.clone();
    let answer = service_fn(move |request: Request<Incoming>| {
        let app = owned.clone();
        async move { Ok::<Response<Body>, Infallible>(pages::answer(app, request.map(Body::new)).await) }
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
            let conn = http2().serve_connection(TokioIo::new(stream), service);
            let _ = watcher.watch(conn).await;
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

fn http2() -> hyper::server::conn::http2::Builder<TokioExecutor> {
    let mut http = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    http.timer(TokioTimer::new())
        .max_concurrent_streams(128)
        .keep_alive_interval(Duration::from_secs(20))
        .keep_alive_timeout(Duration::from_secs(10));
    http
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
