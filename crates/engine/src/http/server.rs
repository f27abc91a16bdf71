//! The connection loop: HTTP/1.1 and h2c on one port, timeouts for slow headers, idle connections and clients that do
//! not read, a limit on connections, and a graceful shutdown.

use std::convert::Infallible;
use std::future::Future;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulConnection, GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch::Receiver;
use tower::{ServiceBuilder, ServiceExt, service_fn};
use tower_http::compression::CompressionLayer;
use tower_http::compression::Predicate;
use tower_http::compression::predicate::{NotForContentType, SizeAbove};

use super::pace::Paced;
use super::seats::{Admission, ConnectionPermit, ConnectionState, Seats};
use super::{dispatch, pages, reply, visitors};
use crate::app::App;
use crate::error::{Code, Error};
use crate::loops::Pulse;

/// The start of every HTTP/2 connection.
const H2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Maximum number of concurrent requests on an HTTP/2 connection, and the size of the send buffer of each.
const STREAMS: u32 = 32;
const SEND_BUFFER: usize = 64 * 1024;

/// Time limit of a spare connection.
const SPARE_TIME: Duration = Duration::from_secs(5);

/// Time that a client has to acknowledge the end of its connection.
const GOODBYE: Duration = Duration::from_secs(5);

/// Serves on `listener` until `stop` completes, then waits for the requests in progress.
pub async fn serve(app: Arc<App>, listener: TcpListener, stop: impl Future<Output = ()>) {
    let seats = Seats::new(app.config.max_connections, app.config.connections_per_address);
    let graceful = GracefulShutdown::new();
    let stopping = tokio::sync::watch::Sender::new(false);
    let mut warned = false;
    tokio::pin!(stop);
    loop {
        let accepted = tokio::select! {
            () = &mut stop => break,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, peer)) = accepted else {
            // Most likely out of file descriptors: an idle connection is closed.
            seats.make_room();
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let address = visitors::household(peer.ip().to_canonical());
        let admission = seats.take(address, app.visitors.is_proxy(peer.ip().to_canonical()));
        let over =
            matches!(&admission, Admission::Refused(true) | Admission::Seated(ConnectionPermit { over: true, .. }));
        if over && !std::mem::replace(&mut warned, true) {
            tracing::warn!(
                %address,
                "An address has reached connections_per_address, and its further connections are refused. If it is your proxy, add it to trusted_proxies."
            );
        }
        let Admission::Seated(seat) = admission else {
            app.metrics.connection_closed(if over { "address" } else { "full" });
            continue;
        };
        let _ = stream.set_nodelay(true);
        let (app, watcher, stopping) = (app.clone(), graceful.watcher(), stopping.subscribe());
        tokio::spawn(async move {
            app.metrics.connections.inc();
            tokio::select! {
                () = connection(&app, stream, peer, &seat, watcher, stopping) => {}
                () = seat.is_needed() => app.metrics.connection_closed("idle"),
            }
            app.metrics.connections.dec();
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
        tracing::warn!("Some requests or calls did not finish in time and were aborted.");
    }
}

/// How often the metrics listener reports progress while it is idle.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);

/// Serves `/metrics` on `listener` forever.
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
                async move { Ok::<_, Infallible>(pages::metrics(&app, request.uri().path(), request.headers()).await) }
            });
            let _ = http1(Duration::from_secs(10)).serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn connection(
    app: &Arc<App>,
    socket: TcpStream,
    peer: SocketAddr,
    seat: &ConnectionPermit,
    watcher: Watcher,
    mut stopping: Receiver<bool>,
) {
    let patience = Duration::from_secs(app.config.header_timeout_seconds);
    let first_byte = patience.min(Duration::from_secs(app.config.first_byte_timeout_seconds));
    let taking = Duration::from_secs(app.config.write_timeout_seconds.max(1));
    if seat.spare {
        let _ = tokio::time::timeout(SPARE_TIME, health_alone(app, socket, peer, seat.over)).await;
        return;
    }
    let owned = app.clone();
    let answer = service_fn(move |request: Request<Incoming>| {
        let app = owned.clone();
        async move { Ok::<_, Infallible>(pages::answer(app, peer, request.map(Body::new)).await) }
    });
    // Compression costs more than it saves below this size. It would delay events.
    let packed = SizeAbove::new(1024).and(NotForContentType::SSE);
    let answer = ServiceBuilder::new().layer(CompressionLayer::new().gzip(true).compress_when(packed)).service(answer);
    let busy = seat.place.busy.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let (answer, under_way) = (answer.clone(), busy.begin());
        async move { answer.oneshot(request).await.map(|response| under_way.with(response)) }
    });
    let service = TowerToHyperService::new(service);
    // An error here is caused by the client: it disconnected, was too slow or did not speak HTTP.
    let first = tokio::select! {
        first = greeting(&socket, first_byte, patience) => first,
        // A connection without a request has nothing to finish.
        _ = stopping.wait_for(|stopping| *stopping) => return,
    };
    let paced = |socket| TokioIo::new(Paced::new(socket, seat.place.clone(), taking));
    match first {
        Err(error) if error.kind() == ErrorKind::TimedOut => app.metrics.connection_closed("silent"),
        Err(_) => {}
        Ok(true) => {
            let conn = http2(patience).serve_connection(paced(socket), service);
            until_idle(conn, &seat.place, (patience, taking), stopping).await;
            drop(watcher);
        }
        Ok(false) => {
            let conn = http1(patience).serve_connection(paced(socket), service);
            let _ = watcher.watch(conn).await;
        }
    }
    if seat.place.has_given_up() {
        app.metrics.connection_closed("stalled");
    }
}

/// Serves one request on a spare connection: a health check. Everything else gets 503.
async fn health_alone(app: &Arc<App>, stream: TcpStream, peer: SocketAddr, over: bool) {
    let service = hyper::service::service_fn(|request: Request<Incoming>| async move {
        if matches!(request.uri().path(), "/health" | "/ready") {
            return Ok::<_, Infallible>(pages::answer(app.clone(), peer, request.map(Body::new)).await);
        }
        app.metrics.connection_closed(if over { "address" } else { "full" });
        let mut error = Error::new(Code::Overloaded, "Too many connections are open; retry shortly.");
        error.retry_after = Some(1);
        let request_id = dispatch::request_id(app, request.headers());
        let mut response = reply::error_response(&error, &request_id, false);
        reply::finish(&mut response, &request_id);
        Ok(response)
    });
    let mut http = http1(SPARE_TIME);
    let _ = http.keep_alive(false).serve_connection(TokioIo::new(stream), service).await;
}

fn http1(patience: Duration) -> hyper::server::conn::http1::Builder {
    let mut http = hyper::server::conn::http1::Builder::new();
    // An incomplete header is held in memory, for any client.
    http.timer(TokioTimer::new()).header_read_timeout(patience).max_headers(100).max_buf_size(64 * 1024);
    http
}

/// A client that disappeared is detected by unanswered pings, also while it waits for events. By default there is a
/// ping every 20 seconds, with 10 seconds for the response.
fn http2(patience: Duration) -> hyper::server::conn::http2::Builder<TokioExecutor> {
    let mut http = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    http.timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_send_buf_size(SEND_BUFFER)
        .keep_alive_interval(patience * 2 / 3)
        .keep_alive_timeout((patience / 3).max(Duration::from_secs(1)));
    http
}

/// Serves an HTTP/2 connection until it is idle, its client stops reading, or Kantoor stops.
async fn until_idle(
    conn: impl GracefulConnection,
    place: &ConnectionState,
    (patience, taking): (Duration, Duration),
    mut stopping: Receiver<bool>,
) {
    let mut conn = pin!(conn);
    let mut leaving = false;
    loop {
        tokio::select! {
            _ = conn.as_mut() => return,
            _ = stopping.wait_for(|stopping| *stopping), if !leaving => {}
            () = place.busy.idle(if leaving { patience.min(GOODBYE) } else { patience }) => {
                if leaving {
                    return;
                }
            }
            () = place.busy.left_lying(taking) => {
                place.gave_up();
                return;
            }
        }
        // Announces the last request that is handled, so that the client can safely send the next one elsewhere. The
        // connection ends when the client has received this.
        leaving = true;
        conn.as_mut().graceful_shutdown();
    }
}

/// Waits for the first byte, and for as many more as are needed to detect the protocol.
async fn greeting(stream: &TcpStream, first_byte: Duration, patience: Duration) -> std::io::Result<bool> {
    let late = |_| std::io::Error::from(ErrorKind::TimedOut);
    tokio::time::timeout(first_byte, stream.peek(&mut [0])).await.map_err(late)??;
    tokio::time::timeout(patience, speaks_h2(stream)).await.map_err(late)?
}

/// Whether the client starts with the HTTP/2 preface, without consuming it.
async fn speaks_h2(stream: &TcpStream) -> std::io::Result<bool> {
    let mut start = [0; H2_PREFACE.len()];
    loop {
        let length = stream.peek(&mut start).await?;
        if length == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        if start[..length] != H2_PREFACE[..length] {
            return Ok(false);
        }
        if length == H2_PREFACE.len() {
            return Ok(true);
        }
        // Half a preface: peek returns immediately while there is data, so wait for the rest.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
