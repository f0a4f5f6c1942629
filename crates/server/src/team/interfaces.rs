//! The interfaces of the program over the database: the HTTP API and MCP, with the tools that agents have on
//! one machine.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Request as HttpRequest, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tanmi_app::{App, Env};
use tanmi_base::hash;
use tanmi_event::Source;
use tanmi_pg::Role;
use tanmi_workspace::model::Operator;

use super::access::Request;
use super::{MAX_BODY, TeamState, block, stores};
use crate::http::routes::{self, Route};
use crate::http::{ServerState, api};
use crate::mcp::Server;

/// What the API offers for a team. Rules, events and the ledger belong to the machine of a person.
const PATHS: &[&str] =
    &["/projects", "/now", "/activity", "/workspaces", "/trash", "/memory", "/bindings", "/sessions"];

/// Returns the routes of the API. A request names its project in the query, unless its person has only one.
pub fn api_router(state: &Arc<TeamState>) -> Router {
    let router = api::router_of(offered_routes());
    router.layer(axum::middleware::from_fn_with_state(Arc::clone(state), enter))
}

pub fn offered_routes() -> impl Iterator<Item = Route> {
    let is_offered = |path: &str| PATHS.iter().any(|offered| path.starts_with(offered));
    routes::all().into_iter().filter(move |route| is_offered(route.path))
}

/// Puts the services of the project into the request.
async fn enter(
    State(state): State<Arc<TeamState>>,
    request: Request,
    mut http: HttpRequest<Body>,
    next: Next,
) -> Response {
    remove_project(&mut http);
    let lang = request.lang;
    let opened = block(move || {
        let env = Env { operator: Operator::Human, source: Source::Api, ..state.env.clone() };
        let app = state.app(&request, env.clone());
        let services = ServerState::of_app(app, env, Arc::clone(&state.guard), Arc::clone(&state.feed));
        Ok(Arc::new(services.show_project_as(request.project().to_owned())))
    });
    match opened.await {
        Ok(services) => {
            http.extensions_mut().insert(services);
            next.run(http).await
        }
        Err(refusal) => refusal.respond(lang),
    }
}

/// Removes the parameter `project`, which the server has used.
fn remove_project(http: &mut HttpRequest<Body>) {
    let uri = http.uri();
    let kept: Vec<&str> = uri
        .query()
        .unwrap_or_default()
        .split('&')
        .filter(|pair| !pair.is_empty() && !pair.starts_with("project="))
        .collect();
    let path = match kept.is_empty() {
        true => uri.path().to_owned(),
        false => format!("{}?{}", uri.path(), kept.join("&")),
    };
    if let Ok(changed) = path.parse::<Uri>() {
        *http.uri_mut() = changed;
    }
}

/// Answers a message of MCP. Each message stands for itself, so any server can answer the next one.
pub async fn mcp(State(state): State<Arc<TeamState>>, request: Request, http: HttpRequest<Body>) -> Response {
    let lang = request.lang;
    let env =
        Env { operator: Operator::Ai, source: Source::Mcp, requires_rules_hash: true, ..state.env.clone() };
    let is_reader = request.caller.role < Role::Member;
    let opened = block(move || {
        let app = state.app(&request, env).for_session(Some(&request.session()));
        Ok(Server::new(Arc::new(app)).for_reader(is_reader))
    });
    let server = match opened.await {
        Ok(server) => server,
        Err(refusal) => return refusal.respond(lang),
    };
    let config = StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(MAX_BODY);
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(NeverSessionManager::default()),
        config,
    );
    service.handle(http).await.into_response()
}

impl TeamState {
    /// Returns the services of the program over the project of a request.
    fn app(&self, request: &Request, env: Env) -> App {
        let store = self.store(&request.caller.project);
        let stores = stores::open(store, &request.caller, Arc::clone(&self.heads), &env.home);
        let folder = stores::folder_of(&env.home, &request.caller.project);
        App::with_stores(Env { project: Some(folder), ..env }, stores)
    }
}

impl Request {
    /// Returns the session of an agent that names none: one for each token.
    fn session(&self) -> String {
        format!("mcp-{}", &hash::sha256_hex(self.credential().as_bytes())[..16])
    }
}
