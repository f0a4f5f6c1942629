//! Accepts connections, with a limit on their number and on the time to send request headers. Any user of this machine
//! can connect; requests are authorized later, by the guard.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use futures_util::future::{Either, select};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// The maximum number of connections. Less than the usual limit of open files per process on Linux (1024).
const MAX_CONNECTIONS: usize = 800;
/// How long a client may take to send the headers of a request, or to start the next request on its connection.
const HEADER_TIMEOUT: Duration = Duration::from_secs(15);

/// Serves until `shutdown` completes, then lets running requests finish for at most `shutdown_timeout`.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    shutdown: impl Future<Output = ()>,
    shutdown_timeout: Duration,
) {
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
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
        let Ok(permit) = Arc::clone(&permits).try_acquire_owned() else { continue };
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
        let service = TowerToHyperService::new(router.clone());
        let connection = graceful.watch(http.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            // An error concerns only this client.
            let _ = connection.await;
            drop(permit);
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(shutdown_timeout, graceful.shutdown()).await;
}
