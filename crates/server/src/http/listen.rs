//! Accepts connections, with a limit on their number and on the time to send request headers. Any user of this machine
//! can connect; requests are authorized later, by the guard.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use futures_util::future::{Either, select};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

use super::connections::{Connection, Connections};

/// How long a client may take to send the headers of a request, or to start the next request on its connection.
const HEADER_TIMEOUT: Duration = Duration::from_secs(15);

/// Serves until `shutdown` completes, then lets running requests finish for at most `shutdown_timeout`. Keeps
/// `max_connections` with an authorized request open.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    shutdown: impl Future<Output = ()>,
    shutdown_timeout: Duration,
    max_connections: usize,
) {
    let connections = Arc::new(Connections::new(max_connections));
    let graceful = GracefulShutdown::new();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let accepted = std::pin::pin!(listener.accept());
        let stream = match select(accepted, shutdown.as_mut()).await {
            Either::Left((Ok((stream, _)), _)) => stream,
            // Too many open files, or the client has already disconnected. Wait a moment, so as not to spin.
            Either::Left((Err(_), _)) => {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
            Either::Right(_) => break,
        };
        connections.add(|connection| serve_connection(stream, &router, &graceful, connection));
        // A request that has arrived is authorized before later connections can displace its own.
        tokio::task::yield_now().await;
    }
    drop(listener);
    let _ = tokio::time::timeout(shutdown_timeout, graceful.shutdown()).await;
}

/// Starts the task that serves a connection. Every request carries the connection, for the guard.
fn serve_connection(
    stream: TcpStream,
    router: &Router,
    graceful: &GracefulShutdown,
    connection: Arc<Connection>,
) -> AbortHandle {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
    let router = TowerToHyperService::new(router.clone());
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Arc::clone(&connection));
        router.call(request)
    });
    let served = graceful.watch(http.serve_connection(TokioIo::new(stream), service));
    let task = tokio::spawn(async move {
        // An error concerns only this client.
        let _ = served.await;
    });
    task.abort_handle()
}
