//! `tanmi serve --database`: the server of a team over PostgreSQL. It keeps nothing of its own, so any number of them
//! can serve one database.
//!
//! [`access`] finds out who calls, [`protocol`] is what the machines of the team use, [`heads`] wakes readers of the
//! feed, [`interfaces`] are the HTTP API and MCP over the database ([`stores`]), [`refusal`] is every answer other than
//! success. All work with the database runs on blocking threads.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::response::Response;
use axum::routing::{any, get, post};
use tanmi_app::Env;
use tanmi_pg::{Address, Caller, PgMemory, PgStore, Pool};
use tokio::net::TcpListener;

use crate::http::guard::Guard;
use crate::http::{listen, shutdown_signal};

mod access;
mod heads;
mod health;
mod interfaces;
mod protocol;
mod refusal;
mod stores;

use access::CallerCache;
use heads::Heads;
use refusal::Refusal;

/// The largest body of a request, in bytes. A plan of 200 nodes fits.
const MAX_BODY: usize = 2 << 20;
/// How long running requests may take to finish after the server was told to stop.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);
/// Connections with an authorized request. Each machine of the team keeps one open to read the feed.
const MAX_CONNECTIONS: usize = 8192;
/// Threads that wait for the database. More than there are connections, so that a request for another workspace finds
/// one while others queue for theirs.
const MAX_THREADS: usize = 64;

/// What all requests share.
pub(crate) struct TeamState {
    pub pool: Arc<Pool>,
    pub heads: Arc<Heads>,
    pub callers: CallerCache,
    /// The environment of the services. Its home holds replicas of memories and the states of sessions, which can be
    /// deleted.
    pub env: Env,
    /// Never asked: requests are authorized by their token.
    pub guard: Arc<Guard>,
}

impl TeamState {
    /// Returns the store of a project.
    pub fn store(&self, project: &str) -> PgStore {
        PgStore::new(Arc::clone(&self.pool), project)
    }

    /// Returns the memory of the project of a caller.
    pub fn memory(&self, caller: &Caller) -> PgMemory {
        stores::memory(self.store(&caller.project), caller, &self.env.home)
    }
}

/// Why the server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Tokens would cross the network unencrypted.
    #[error("plain HTTP is only for this machine")]
    NotLoopback(SocketAddr),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Serves until the process gets a signal to stop. Calls `on_ready` once, with the address, when it accepts requests.
pub fn run(
    env: Env,
    address: Address,
    listen: SocketAddr,
    on_ready: impl FnOnce(SocketAddr),
) -> Result<(), StartError> {
    if !listen.ip().is_loopback() {
        return Err(StartError::NotLoopback(listen));
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(MAX_THREADS)
        .build()?;
    let outcome = runtime.block_on(serve(env, address, listen, on_ready));
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    outcome
}

async fn serve(
    env: Env,
    address: Address,
    listen: SocketAddr,
    on_ready: impl FnOnce(SocketAddr),
) -> Result<(), StartError> {
    let listener = TcpListener::bind(listen).await?;
    let bound = listener.local_addr()?;
    let pool = Arc::new(Pool::new(address));
    let heads = Arc::new(Heads::new(Arc::clone(&pool)));
    let no_entropy = || io::Error::other("the machine has no entropy for a token");
    let state = Arc::new(TeamState {
        pool,
        heads: Arc::clone(&heads),
        callers: CallerCache::default(),
        env: Env {
            home: env.home.join("team-server"),
            long_running: true,
            remote: true,
            session: None,
            user: None,
            context: None,
            ..env
        },
        guard: Arc::new(Guard::new(bound.port()).ok_or_else(no_entropy)?),
    });
    let watcher = heads::watch(Arc::clone(&heads))?;
    on_ready(bound);
    let closing = Arc::clone(&heads);
    let shutdown = async move {
        shutdown_signal().await;
        // Waiting readers would keep their connections open.
        closing.close();
    };
    listen::serve(listener, router(&state), shutdown, SHUTDOWN_TIMEOUT, MAX_CONNECTIONS).await;
    watcher.join().map_err(|_| io::Error::other("the watcher of the feed panicked"))?;
    Ok(())
}

fn router(state: &Arc<TeamState>) -> Router {
    let project = Router::new()
        .route("/run", post(protocol::run))
        .route("/feed", get(protocol::feed))
        .route("/snapshot", get(protocol::snapshot))
        .route("/member", get(protocol::member))
        .route("/beat", post(protocol::beat))
        .route("/request/{key}", get(protocol::request))
        .with_state(Arc::clone(state));
    Router::new()
        .nest("/team/v1/{project}", project)
        .nest("/api/v1", interfaces::api_router(state))
        .route("/mcp", any(interfaces::mcp).with_state(Arc::clone(state)))
        .route("/healthz", get(health::is_running))
        .route("/readyz", get(health::is_ready).with_state(Arc::clone(state)))
        .fallback(not_found)
        .method_not_allowed_fallback(wrong_method)
        .layer(DefaultBodyLimit::max(MAX_BODY))
}

async fn not_found() -> Response {
    Refusal::NotFound.respond(None)
}

async fn wrong_method() -> Response {
    Refusal::WrongMethod.respond(None)
}

/// Runs work with the database on a blocking thread.
pub(crate) async fn block<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    tokio::task::spawn_blocking(work).await.unwrap_or(Err(Refusal::Internal))
}
