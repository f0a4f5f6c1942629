//! `tanmi serve`: the API, the page and MCP on the loopback interface, for one user on one machine.
//!
//! [`guard`] authorizes requests, [`routes`] is the table of routes, [`api`] runs the use case of a request, [`feed`]
//! sends changes, [`page`] is the embedded page. All file work runs on blocking threads.

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
use serde_json::Value;
use tanmi_app::activity::ActivityLog;
use tanmi_app::{App, Env};
use tanmi_event::Source;
use tanmi_workspace::model::Operator;
use tokio::net::TcpListener;

mod activity_api;
pub(crate) mod api;
pub(crate) mod connections;
pub(crate) mod feed;
pub(crate) mod guard;
pub mod instance;
pub(crate) mod listen;
mod markdown;
pub mod openapi;
pub(crate) mod page;
mod page_api;
mod page_nodes;
pub(crate) mod responses;
pub(crate) mod routes;
mod team_api;
pub mod tls;
mod watch;

pub(crate) use api::accepted_language;
use feed::Feed;
use guard::Guard;
use instance::InstanceLock;
use listen::Limits;

/// The maximum size of a request body or an MCP message, in bytes.
const MAX_BODY: usize = 2 << 20;
/// How long running requests may take to finish after the server was told to stop.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a workspace counts as viewed after the last request about it.
const VIEWED_FOR: Duration = Duration::from_secs(600);
const MAX_VIEWED: usize = 8;

/// The state that all requests share.
pub struct ServerState {
    env: Env,
    /// One app per requested project. Invariant: the first is the app of the server's own project.
    apps: Mutex<Vec<Arc<App>>>,
    /// Projects in which `tanmi serve` was run while this server was running, in addition to the registered ones.
    added_projects: Mutex<Vec<PathBuf>>,
    guard: Arc<Guard>,
    feed: Arc<Feed>,
    activity: ActivityLog,
    /// The folder of the project and the name that responses have in its place, if the folder means nothing
    /// to the caller.
    shown_project: Option<(String, String)>,
    /// Recently requested workspaces, with the time of the last request. The watcher checks them more often.
    viewed: Mutex<HashMap<String, Instant>>,
}

/// A server that accepts requests: gives its caller the address and links to the page.
pub struct RunningServer<'a> {
    guard: &'a Guard,
    pub instance: &'a InstanceLock,
}

impl RunningServer<'_> {
    /// Creates a single-use link that opens the page.
    pub fn create_link(&self) -> String {
        self.guard.create_link()
    }
}

impl ServerState {
    fn new(env: Env, port: u16) -> io::Result<ServerState> {
        let guard =
            Guard::new(port).ok_or_else(|| io::Error::other("the machine has no entropy for a token"))?;
        // Changes made on the page count as made by a person, even if an agent started the server.
        let env = Env { long_running: true, remote: true, session: None, operator: Operator::Human, ..env };
        Ok(ServerState::of_app(App::new(env.clone()), env, Arc::new(guard), Arc::new(Feed::new())))
    }

    /// Returns the state of a server whose own project has this app.
    pub(crate) fn of_app(app: App, env: Env, guard: Arc<Guard>, feed: Arc<Feed>) -> ServerState {
        let activity = app.activity();
        let (apps, added_projects, viewed) =
            (Mutex::new(vec![Arc::new(app)]), Mutex::default(), Mutex::default());
        ServerState { activity, env, apps, added_projects, guard, feed, shown_project: None, viewed }
    }

    /// Shows this name in the place of the folder of the project.
    pub(crate) fn show_project_as(self, name: String) -> ServerState {
        let folder = self.own_app().project().display().to_string();
        ServerState { shown_project: Some((folder, name)), ..self }
    }

    /// Replaces the folder of the project in a response, if the caller knows the project by another name.
    fn name_project(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Some((_, name)) = self.shown_project.as_ref().filter(|(folder, _)| folder == text) {
                    text.clone_from(name);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.name_project(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.name_project(field)),
            _ => {}
        }
    }

    /// Returns the app of the project in which the server was started.
    fn own_app(&self) -> Arc<App> {
        Arc::clone(&self.apps.lock().unwrap_or_else(PoisonError::into_inner)[0])
    }

    /// Returns every project that a request may name, the server's own project first.
    fn projects(&self) -> Vec<PathBuf> {
        let mut projects = self.own_app().maintenance.known_projects();
        for project in self.added_projects.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            if !projects.contains(project) {
                projects.push(project.clone());
            }
        }
        projects
    }

    fn add_project(&self, project: PathBuf) {
        let mut added = self.added_projects.lock().unwrap_or_else(PoisonError::into_inner);
        if !added.contains(&project) {
            added.push(project);
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

    /// Returns the app of a project, by default the server's own. `None` if the project is unknown.
    fn app_of(&self, project: Option<&str>) -> Option<Arc<App>> {
        let Some(name) = project else { return Some(self.own_app()) };
        let project = self.projects().into_iter().find(|known| known.display().to_string() == name)?;
        let mut apps = self.apps.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(app) = apps.iter().find(|app| app.project() == project) {
            return Some(Arc::clone(app));
        }
        let app = Arc::new(App::new(Env { project: Some(project), ..self.env.clone() }));
        apps.push(Arc::clone(&app));
        Some(app)
    }
}

/// Serves until the process gets a signal to stop. Calls `on_ready` once, when the server accepts requests.
pub fn run(
    env: Env,
    port: u16,
    instance: InstanceLock,
    on_ready: impl FnOnce(RunningServer<'_>),
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(serve(env, port, instance, on_ready));
    // Longer than the lock timeout of any call, so that running calls finish.
    runtime.shutdown_timeout(Duration::from_secs(10));
    outcome
}

async fn serve(
    env: Env,
    port: u16,
    mut instance: InstanceLock,
    on_ready: impl FnOnce(RunningServer<'_>),
) -> io::Result<()> {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await?;
    let port = listener.local_addr()?.port();
    let state = Arc::new(ServerState::new(env, port)?);
    let watch_handle = {
        let projects = state.projects();
        // Started before the first request, so that every change after a response is in the change feed.
        watch::start(Arc::clone(&state), state.own_app().maintenance.watch(&projects))?
    };
    let (mcp, mcp_cancellation) = mcp_service(&state.env, port);
    let router = router(&state).route_service("/mcp", mcp);
    let router = router
        .layer(axum::middleware::from_fn_with_state(Arc::clone(&state), guard::check))
        .layer(DefaultBodyLimit::max(MAX_BODY));
    instance.write(port, state.guard.token(), state.own_app().project())?;
    on_ready(RunningServer { guard: &state.guard, instance: &instance });

    let feed = Arc::clone(&state.feed);
    let shutdown = async move {
        shutdown_signal(true).await;
        // Open streams would keep their connections alive.
        feed.close();
        mcp_cancellation.cancel();
    };
    let limits = Limits { shutdown_timeout: SHUTDOWN_TIMEOUT, max_connections: connections::MAX_AUTHORIZED };
    listen::serve(listener, None, router, shutdown, limits).await;
    watch_handle.stop();
    instance.release();
    Ok(())
}

/// Waits for Ctrl-C or SIGTERM, or for SIGHUP unless that has another meaning.
pub(crate) async fn shutdown_signal(stops_on_hangup: bool) {
    #[cfg(not(unix))]
    let _ = stops_on_hangup;
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let (Ok(mut terminate), Ok(mut hangup)) =
            (signal(SignalKind::terminate()), signal(SignalKind::hangup()))
        {
            let interrupt = std::pin::pin!(tokio::signal::ctrl_c());
            let terminated = std::pin::pin!(terminate.recv());
            let stop = select(interrupt, terminated);
            if stops_on_hangup {
                select(stop, std::pin::pin!(hangup.recv())).await;
            } else {
                stop.await;
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}

fn router(state: &Arc<ServerState>) -> Router {
    let (api, page_path) = (api::router(state), state.guard.page_path());
    Router::new()
        .route("/", axum::routing::get(page::entry).with_state(Arc::clone(state)))
        .nest("/api/v1", api.clone())
        .merge(page::router(page_path, state.own_app().config().language))
        // The page uses the API below its own path, because the browser sends the cookie only to that path.
        .nest(&format!("/{page_path}/api/v1"), api)
        .fallback(responses::not_found)
        .method_not_allowed_fallback(responses::method_not_allowed)
}

type McpService = StreamableHttpService<crate::mcp::Server, LocalSessionManager>;

/// Returns the MCP service with the same tools as over stdio, and the token that ends its streams.
fn mcp_service(env: &Env, port: u16) -> (McpService, tokio_util::sync::CancellationToken) {
    let env = Env { operator: Operator::Ai, requires_rules_hash: true, source: Source::Mcp, ..env.clone() };
    let app = Arc::new(App::new(env));
    let hosts = guard::hosts(port);
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(hosts.iter().map(String::as_str).collect::<Vec<_>>())
        .with_max_request_body_bytes(MAX_BODY);
    let cancellation = config.cancellation_token.clone();
    let service = StreamableHttpService::new(
        move || Ok(crate::mcp::Server::new(Arc::clone(&app))),
        Arc::new(LocalSessionManager::default()),
        config,
    );
    (service, cancellation)
}
