//! Accepts connections, with a limit on their number and on the time for the TLS handshake and for request headers. Any
//! client can connect; requests are authorized later.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use futures_util::future::{Either, select};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tokio_rustls::TlsAcceptor;

use super::connections::{Connection, Connections};
use super::tls::TlsPair;

/// How long a client may take to send the headers of a request, or to start the next request on its connection.
const HEADER_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a client may take for the TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

pub struct Limits {
    /// How long running requests may take to finish after the shutdown began.
    pub shutdown_timeout: Duration,
    /// The number of connections with an authorized request that are kept open.
    pub max_connections: usize,
}

/// Serves until `shutdown` completes, then lets running requests finish. Returns whether all of them did in time.
pub async fn serve(
    listener: TcpListener,
    tls: Option<Arc<TlsPair>>,
    router: Router,
    shutdown: impl Future<Output = ()>,
    limits: Limits,
) -> bool {
    let connections = Arc::new(Connections::new(limits.max_connections));
    let graceful = GracefulShutdown::new();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let accepted = std::pin::pin!(listener.accept());
        let (stream, client) = match select(accepted, shutdown.as_mut()).await {
            Either::Left((Ok(accepted), _)) => accepted,
            // Too many open files, or the client has already disconnected. Wait a moment, so as not to spin.
            Either::Left((Err(_), _)) => {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
            Either::Right(_) => break,
        };
        let acceptor = tls.as_ref().map(|tls| tls.acceptor());
        connections.add(client.ip(), |connection| {
            serve_connection(stream, acceptor, router.clone(), graceful.watcher(), connection)
        });
        // A request that has arrived is authorized before later connections can displace its own.
        tokio::task::yield_now().await;
    }
    drop(listener);
    tokio::time::timeout(limits.shutdown_timeout, graceful.shutdown()).await.is_ok()
}

/// Starts the task that serves a connection.
fn serve_connection(
    stream: TcpStream,
    acceptor: Option<TlsAcceptor>,
    router: Router,
    watcher: Watcher,
    connection: Arc<Connection>,
) -> AbortHandle {
    let task = tokio::spawn(async move {
        let Some(acceptor) = acceptor else { return serve_http(stream, router, watcher, connection).await };
        // A failed handshake concerns only this client.
        if let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await {
            serve_http(stream, router, watcher, connection).await;
        }
    });
    task.abort_handle()
}

/// Serves the requests of a connection. Each carries the connection as an extension.
async fn serve_http(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    watcher: Watcher,
    connection: Arc<Connection>,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Arc::clone(&connection));
        router.call(request)
    });
    // An error concerns only this client.
    let _ = watcher.watch(http.serve_connection(TokioIo::new(stream), service)).await;
}
