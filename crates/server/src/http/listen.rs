//! Taking connections: so many and no more, and none that does not say in time what it wants. Any user of this machine
//! can connect; only the guard behind this knows who they are.

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

/// Below the number of files that a process may usually have open on Linux.
const CONNECTIONS: usize = 800;
/// Within this time a request must have said what it is, and the next one on the same connection must have come.
const HEAD: Duration = Duration::from_secs(15);

/// Serves until `ended`, then lets requests finish for at most `patience`.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    ended: impl Future<Output = ()>,
    patience: Duration,
) {
    let open = Arc::new(Semaphore::new(CONNECTIONS));
    let graceful = GracefulShutdown::new();
    let mut ended = std::pin::pin!(ended);
    loop {
        let accepted = std::pin::pin!(listener.accept());
        let stream = match select(accepted, ended.as_mut()).await {
            Either::Left((Ok((stream, _)), _)) => stream,
            // Out of files, or the client has left already: neither is a reason to stop, nor to spin.
            Either::Left((Err(_), _)) => {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
            Either::Right(_) => break,
        };
        let Ok(permit) = Arc::clone(&open).try_acquire_owned() else { continue };
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(HEAD);
        let service = TowerToHyperService::new(router.clone());
        let connection = graceful.watch(http.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            // What went wrong with a connection is its client's business.
            let _ = connection.await;
            drop(permit);
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(patience, graceful.shutdown()).await;
}
