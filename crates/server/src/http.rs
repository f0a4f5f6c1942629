//! `tanmi serve`: the API, the page and MCP on the loopback interface, for one person on one machine.
//!
//! [`guard`] decides who may ask at all, [`routes`] is the table of what can be asked, [`api`] carries a request to a
//! use case, [`feed`] tells of changes, [`page`] is the embedded page. All file work runs on blocking threads.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::DefaultBodyLimit;
#[cfg(unix)]
use futures_util::future::select;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tanmi_app::watch::Watcher;
use tanmi_app::{App, Env};
use tanmi_event::Source;
use tanmi_workspace::model::Operator;
use tokio::net::TcpListener;

mod api;
mod feed;
mod guard;
pub mod instance;
mod listen;
mod markdown;
pub mod openapi;
mod page;
mod page_api;
mod responses;
mod routes;
mod watch;

use feed::Feed;
use guard::Guard;
use instance::InstanceLock;

/// Bodies and messages longer than this are refused.
const MAX_BODY: usize = 2 << 20;
/// How long requests that are under way are waited for at the end.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long, and how many, workspaces that were asked about are watched more closely.
const VIEWED_FOR: Duration = Duration::from_secs(600);
const MAX_VIEWED: usize = 8;

/// Everything a request needs.
pub struct ServerState {
    env: Env,
    /// One for each project that was asked about; the first is the one the server was started in.
    apps: Mutex<Vec<Arc<App>>>,
    /// Projects that somebody served again, besides those that the registry knows.
    announced: Mutex<Vec<PathBuf>>,
    guard: Guard,
    feed: Arc<Feed>,
    /// Workspaces that somebody asked about lately: they are watched more closely.
    viewed: Mutex<HashMap<String, Instant>>,
}

/// Where the server is, for whoever started it.
pub struct Ready<'a> {
    guard: &'a Guard,
    pub instance: &'a InstanceLock,
}

impl Ready<'_> {
    /// Opens the page, once.
    pub fn link(&self) -> String {
        self.guard.link()
    }
}

impl ServerState {
    fn new(env: Env, port: u16) -> io::Result<ServerState> {
        let guard =
            Guard::new(port).ok_or_else(|| io::Error::other("the machine has no entropy for a token"))?;
        // Whoever started it, what is done on the page is done by a person.
        let env = Env { long_running: true, remote: true, session: None, operator: Operator::Human, ..env };
        let first = Arc::new(App::new(env.clone()));
        let feed = Arc::new(Feed::new());
        let (apps, announced, viewed) = (Mutex::new(vec![first]), Mutex::default(), Mutex::default());
        Ok(ServerState { env, apps, announced, guard, feed, viewed })
    }

    fn first(&self) -> Arc<App> {
        Arc::clone(&self.apps.lock().unwrap_or_else(PoisonError::into_inner)[0])
    }

    /// Every project that may be asked about.
    fn projects(&self) -> Vec<PathBuf> {
        let mut projects = self.first().known_projects();
        for project in self.announced.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            if !projects.contains(project) {
                projects.push(project.clone());
            }
        }
        projects
    }

    fn announce(&self, project: PathBuf) {
        let mut announced = self.announced.lock().unwrap_or_else(PoisonError::into_inner);
        if !announced.contains(&project) {
            announced.push(project);
        }
    }

    fn mark_viewed(&self, workspace: &str) {
        let mut viewed = self.viewed.lock().unwrap_or_else(PoisonError::into_inner);
        if viewed.len() >= MAX_VIEWED && !viewed.contains_key(workspace) {
            let oldest = viewed.iter().min_by_key(|(_, at)| **at).map(|(id, _)| id.clone());
            if let Some(oldest) = oldest {
                viewed.remove(&oldest);
            }
        }
        viewed.insert(workspace.to_owned(), Instant::now());
    }

    fn viewed_workspaces(&self) -> Vec<String> {
        let viewed = self.viewed.lock().unwrap_or_else(PoisonError::into_inner);
        viewed.iter().filter(|(_, at)| at.elapsed() < VIEWED_FOR).map(|(id, _)| id.clone()).collect()
    }

    /// The use cases of a project; `None` for one that nobody here knows.
    fn app_of(&self, project: Option<&str>) -> Option<Arc<App>> {
        let Some(wanted) = project else { return Some(self.first()) };
        let project = self.projects().into_iter().find(|known| known.display().to_string() == wanted)?;
        let mut apps = self.apps.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(app) = apps.iter().find(|app| app.project() == project) {
            return Some(Arc::clone(app));
        }
        let app = Arc::new(App::new(Env { project: Some(project), ..self.env.clone() }));
        apps.push(Arc::clone(&app));
        Some(app)
    }
}

/// Serves until the process is told to end. `ready` is called once, when the server can be reached.
pub fn run(env: Env, port: u16, instance: InstanceLock, ready: impl FnOnce(Ready<'_>)) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(serve(env, port, instance, ready));
    // Longer than any call waits for a lock that is really free: what is under way is not left half done.
    runtime.shutdown_timeout(Duration::from_secs(10));
    outcome
}

async fn serve(
    env: Env,
    port: u16,
    mut instance: InstanceLock,
    ready: impl FnOnce(Ready<'_>),
) -> io::Result<()> {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await?;
    let port = listener.local_addr()?.port();
    let state = Arc::new(ServerState::new(env, port)?);
    let watching = {
        let projects = state.projects();
        // Before anybody can ask: what happens after an answer is then certainly told.
        watch::start(Arc::clone(&state), Watcher::new(state.first(), &projects))?
    };
    let (mcp, mcp_ends) = mcp_service(&state.env, port);
    let router = router(&state).route_service("/mcp", mcp);
    let router = router
        .layer(axum::middleware::from_fn_with_state(Arc::clone(&state), guard::check))
        .layer(DefaultBodyLimit::max(MAX_BODY));
    instance.write(port, state.guard.token(), state.first().project())?;
    ready(Ready { guard: &state.guard, instance: &instance });

    let feed = Arc::clone(&state.feed);
    let ended = async move {
        shutdown_signal().await;
        // Streams have no end of their own.
        feed.close();
        mcp_ends.cancel();
    };
    listen::serve(listener, router, ended, PATIENCE).await;
    watching.stop();
    instance.end();
    Ok(())
}

/// Ctrl-C, or a polite signal.
async fn shutdown_signal() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let (Ok(mut ended), Ok(mut hung)) = (signal(SignalKind::terminate()), signal(SignalKind::hangup()))
        {
            let (ended, hung) = (std::pin::pin!(ended.recv()), std::pin::pin!(hung.recv()));
            let interrupted = std::pin::pin!(tokio::signal::ctrl_c());
            select(interrupted, select(ended, hung)).await;
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}

fn router(state: &Arc<ServerState>) -> Router {
    let (api, door) = (api::router(state), state.guard.door());
    Router::new()
        .route("/", axum::routing::get(page::entry).with_state(Arc::clone(state)))
        .nest("/api/v1", api.clone())
        .merge(page::router(door))
        // The page has the API below its own path, because that is the only one its cookie is sent to.
        .nest(&format!("/{door}/api/v1"), api)
        .fallback(responses::not_found)
        .method_not_allowed_fallback(responses::method_not_allowed)
}

type McpService = StreamableHttpService<crate::mcp::Server, LocalSessionManager>;

/// The same tools as over stdio, for agents that speak HTTP.
fn mcp_service(env: &Env, port: u16) -> (McpService, tokio_util::sync::CancellationToken) {
    let env = Env { operator: Operator::Ai, strict_rules: true, source: Source::Mcp, ..env.clone() };
    let app = Arc::new(App::new(env));
    let hosts = guard::hosts(port);
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(hosts.iter().map(String::as_str).collect::<Vec<_>>())
        .with_max_request_body_bytes(MAX_BODY);
    let ends = config.cancellation_token.clone();
    let service = StreamableHttpService::new(
        move || Ok(crate::mcp::Server::new(Arc::clone(&app))),
        Arc::new(LocalSessionManager::default()),
        config,
    );
    (service, ends)
}
