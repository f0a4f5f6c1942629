//! `tanmi serve --database`: the server of a team over PostgreSQL. It keeps nothing of its own, so any number of them
//! can serve one database.
//!
//! [`routes`] is the table of routes, [`access`] finds the caller and checks the role, [`admin`] administers
//! people and tokens, [`protocol`] is what the machines of the team use, [`heads`] wakes readers of the feed,
//! [`interfaces`] are the HTTP API and MCP over the database ([`stores`]), [`login`] is the page, [`refusal`]
//! is every answer other than success, [`observe`] writes the log and the metrics, [`retention`] removes what is kept for a
//! limited time. All work with the database
//! runs on blocking threads.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use serde_json::json;
use tanmi_app::Env;
use tanmi_base::{clock, fs};
use tanmi_pg::{Address, Caller, PgMemory, PgStore, Pool};
use tokio::net::TcpListener;

use crate::http::feed::Feed;
use crate::http::guard::Guard;
use crate::http::listen::Limits;
use crate::http::tls::{TlsError, TlsFiles, TlsPair};
use crate::http::{listen, shutdown_signal};

mod access;
mod admin;
mod changes;
mod heads;
mod health;
mod import;
mod interfaces;
mod limits;
mod log;
mod login;
mod metrics;
mod observe;
mod protocol;
mod refusal;
mod retention;
mod routes;
mod stores;

use access::CallerCache;
use heads::Heads;
use limits::{FailedLogins, RateLimit};
pub use log::{Log, LogLevel};
use metrics::Metrics;
use refusal::Refusal;

/// The largest body of a request, in bytes. A plan of 200 nodes fits.
const MAX_BODY: usize = 2 << 20;
/// The largest part of a project that moves to the server, in bytes: a workspace of some 20,000 nodes.
const MAX_IMPORT: usize = 64 << 20;
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
    /// Never read: the page of a team follows the changes in the database.
    pub feed: Arc<Feed>,
    pub has_tls: bool,
    pub rate_limit: RateLimit,
    pub failed_logins: FailedLogins,
    pub metrics: Metrics,
    pub log: Arc<Log>,
}

/// How a server is run.
pub struct ServeOptions {
    pub listen: SocketAddr,
    /// Without them, the server is only for its own machine.
    pub tls: Option<TlsFiles>,
    /// Requests per second of one token; 0 for no limit.
    pub rate_limit: u32,
    pub log: Log,
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
    Tls(#[from] TlsError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Serves until the process gets a signal to stop. Calls `on_ready` once, with the address, when it accepts requests.
pub fn run(
    env: Env,
    address: Address,
    options: ServeOptions,
    on_ready: impl FnOnce(SocketAddr),
) -> Result<(), StartError> {
    if options.tls.is_none() && !options.listen.ip().is_loopback() {
        return Err(StartError::NotLoopback(options.listen));
    }
    // Each machine of the team keeps a connection open. The default soft limit is often lower than their number.
    fs::raise_open_files();
    // People in several zones read the stamps of the same log.
    clock::use_utc();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(MAX_THREADS)
        .build()?;
    let state = runtime.block_on(serve(env, address, options, on_ready));
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    // Closes the connections to the database, which may not happen within the runtime.
    state.map(drop)
}

async fn serve(
    env: Env,
    address: Address,
    options: ServeOptions,
    on_ready: impl FnOnce(SocketAddr),
) -> Result<Arc<TeamState>, StartError> {
    let tls = options.tls.map(TlsPair::load).transpose()?.map(Arc::new);
    let log = Arc::new(options.log);
    if let Some(tls) = &tls {
        reload_on_hangup(Arc::clone(tls), Arc::clone(&log))?;
    }
    let listener = TcpListener::bind(options.listen).await?;
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
        feed: Arc::new(Feed::new()),
        has_tls: tls.is_some(),
        rate_limit: RateLimit::new(options.rate_limit),
        failed_logins: FailedLogins::default(),
        metrics: Metrics::default(),
        log: Arc::clone(&log),
    });
    let watcher = heads::watch(Arc::clone(&heads))?;
    let cleaner = retention::watch(Arc::clone(&state))?;
    let version = env!("CARGO_PKG_VERSION");
    log.write(
        LogLevel::Info,
        "started",
        json!({"address": bound.to_string(), "tls": tls.is_some(), "version": version}),
    );
    on_ready(bound);
    let (closing, stops_on_hangup, stop_log) = (Arc::clone(&heads), tls.is_none(), Arc::clone(&log));
    let shutdown = async move {
        shutdown_signal(stops_on_hangup).await;
        stop_log.write(LogLevel::Info, "stopping", json!({}));
        // Waiting readers would keep their connections open.
        closing.close();
    };
    let limits = Limits { shutdown_timeout: SHUTDOWN_TIMEOUT, max_connections: MAX_CONNECTIONS };
    let is_finished = listen::serve(listener, tls, router(&state), shutdown, limits).await;
    for thread in [watcher, cleaner] {
        thread.join().map_err(|_| io::Error::other("a thread of the server panicked"))?;
    }
    let level = if is_finished { LogLevel::Info } else { LogLevel::Warn };
    log.write(level, "stopped", json!({"finishedRequests": is_finished}));
    Ok(state)
}

/// Reads the certificate and the key again at every SIGHUP. If they cannot be used, those in use stay.
#[cfg(unix)]
fn reload_on_hangup(tls: Arc<TlsPair>, log: Arc<Log>) -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut hangup = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            match tls.reload() {
                Ok(()) => log.write(LogLevel::Info, "tls_reloaded", json!({})),
                Err(error) => {
                    let fields = json!({"file": error.file.display().to_string(), "reason": error.reason});
                    log.write(LogLevel::Error, "tls_reload_failed", fields);
                }
            }
        }
    });
    Ok(())
}

#[cfg(not(unix))]
fn reload_on_hangup(_: Arc<TlsPair>, _: Arc<Log>) -> io::Result<()> {
    Ok(())
}

fn router(state: &Arc<TeamState>) -> Router {
    let own = routes::TABLE.iter().fold(Router::new(), |router, route| {
        let handler = || (route.handler)().with_state(Arc::clone(state));
        let router = router.route(route.path, handler());
        match route.is_for_page() {
            true => router.route(&format!("{}{}", routes::PAGE, route.path), handler()),
            false => router,
        }
    });
    let api = interfaces::api_router(state);
    own.nest("/api/v1", api.clone())
        // The page uses the API below its own path, because the browser sends the cookie only to that path.
        .nest("/page/{project}/api/v1", api)
        .fallback(not_found)
        .method_not_allowed_fallback(wrong_method)
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(from_fn_with_state(Arc::clone(state), access::authorize))
        .layer(from_fn_with_state(Arc::clone(state), observe::observe))
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
