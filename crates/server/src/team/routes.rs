//! The table of the routes of a team server, besides those of the API: their handlers, the role that each
//! needs, and their description.

use std::sync::Arc;

use axum::extract::DefaultBodyLimit;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use axum::routing::{MethodRouter, any, delete, get, post, put};
use serde_json::{Value, json};
use tanmi_pg::Role;

use super::{MAX_IMPORT, TeamState, admin, changes, health, import, interfaces, login, metrics, protocol};
use crate::http::{openapi, responses};

pub struct TeamRoute {
    pub method: &'static str,
    pub path: &'static str,
    /// The role that the route needs; `None` if it is open to all.
    pub role: Option<Role>,
    about: &'static str,
    /// The parameters of the query, or the fields of the body of a POST.
    params: &'static [&'static str],
    pub handler: fn() -> MethodRouter<Arc<TeamState>>,
}

impl TeamRoute {
    /// Returns whether the page uses the route, below its own path: the browser sends the cookie only to that path.
    pub fn is_for_page(&self) -> bool {
        self.path.starts_with("/api/v1/team/") || self.path == "/api/v1/changes"
    }
}

/// The path of the page.
pub const PAGE: &str = "/page/{project}";

const READER: Option<Role> = Some(Role::Reader);
const MEMBER: Option<Role> = Some(Role::Member);
const ADMIN: Option<Role> = Some(Role::Admin);

const fn row(
    method: &'static str,
    path: &'static str,
    role: Option<Role>,
    handler: fn() -> MethodRouter<Arc<TeamState>>,
    params: &'static [&'static str],
    about: &'static str,
) -> TeamRoute {
    TeamRoute { method, path, role, about, params, handler }
}

const COMMAND: &[&str] = &["key", "stream", "command", "operator", "session", "machine", "fence", "expects"];

pub const TABLE: &[TeamRoute] = &[
    row("POST", "/team/v1/{project}/run", MEMBER, || post(protocol::run), COMMAND, "Run a command once."),
    row(
        "GET",
        "/team/v1/{project}/feed",
        READER,
        || get(protocol::feed),
        &["have", "wait"],
        "Get changes, or wait for one.",
    ),
    row(
        "POST",
        "/team/v1/{project}/feed",
        READER,
        || post(protocol::feed_after),
        &["have", "wait"],
        "The same, for positions that do not fit into an address.",
    ),
    row(
        "GET",
        "/team/v1/{project}/snapshot",
        READER,
        || get(protocol::snapshot),
        &["stream", "after", "limit"],
        "Get a part of a stream.",
    ),
    row(
        "POST",
        "/team/v1/{project}/import",
        MEMBER,
        || post(import::import).layer(DefaultBodyLimit::max(MAX_IMPORT)),
        &["workspace", "lines"],
        "Add a whole workspace, or lines of a memory.",
    ),
    row(
        "POST",
        "/team/v1/{project}/beat",
        // A reader has no sessions to renew, and learns who works on what.
        READER,
        || post(protocol::beat),
        &["sessions"],
        "Renew the leases of sessions, and learn who works on what.",
    ),
    row(
        "GET",
        "/team/v1/{project}/member",
        READER,
        || get(protocol::member),
        &[],
        "Get the person of the token.",
    ),
    row(
        "GET",
        "/team/v1/{project}/request/{key}",
        READER,
        || get(protocol::request),
        &[],
        "Get the answer of a request that was carried out.",
    ),
    // Each tool has a role of its own.
    row(
        "POST",
        "/mcp",
        READER,
        || any(interfaces::mcp),
        &["jsonrpc", "id", "method", "params"],
        "Answer a message of MCP.",
    ),
    row(
        "POST",
        "/login-link",
        READER,
        || post(login::create_link),
        &[],
        "Get a link that opens the page once.",
    ),
    row("GET", "/metrics", ADMIN, || get(metrics::metrics), &[], "Get metrics for Prometheus."),
    // The people of a project see who they are and what they do; the rest of the administration is for admins.
    row(
        "GET",
        "/api/v1/team/presence",
        READER,
        || get(admin::list_presence),
        &["person", "limit"],
        "List who holds which node.",
    ),
    row(
        "GET",
        "/api/v1/team/contributions",
        READER,
        || get(admin::list_contributions),
        &["person", "kind", "since", "until", "before", "limit"],
        "List who did what: nodes started, completed and failed, log entries, problems and facts.",
    ),
    row(
        "GET",
        "/api/v1/team/people",
        READER,
        || get(admin::list_people),
        &["role", "limit"],
        "List the people of the project.",
    ),
    row("POST", "/api/v1/team/people", ADMIN, || post(admin::add_person), &["name", "role"], "Add a person."),
    row(
        "POST",
        "/api/v1/team/people/{name}/disable",
        ADMIN,
        || post(admin::disable_person),
        &[],
        "Disable a person.",
    ),
    row(
        "PUT",
        "/api/v1/team/members/{name}",
        ADMIN,
        || put(admin::set_member),
        &["role"],
        "Set the role of a person.",
    ),
    row(
        "GET",
        "/api/v1/team/tokens",
        ADMIN,
        || get(admin::list_tokens),
        &["person", "valid", "limit"],
        "List tokens.",
    ),
    row(
        "POST",
        "/api/v1/team/tokens",
        ADMIN,
        || post(admin::create_token),
        &["person", "role", "name", "expires"],
        "Create a token.",
    ),
    row("DELETE", "/api/v1/team/tokens/{id}", ADMIN, || delete(admin::revoke_token), &[], "Revoke a token."),
    row(
        "POST",
        "/api/v1/team/tokens/{id}/rotate",
        ADMIN,
        || post(admin::rotate_token),
        &["overlap"],
        "Replace a token, which stays valid for a while.",
    ),
    row(
        "GET",
        "/api/v1/team/audit",
        ADMIN,
        || get(admin::list_audit),
        &["person", "what", "before", "limit"],
        "List logins and changes of people and tokens.",
    ),
    row(
        "GET",
        "/api/v1/team/projects",
        ADMIN,
        || get(admin::list_projects),
        &["limit"],
        "List the projects of the admin.",
    ),
    row("GET", "/api/v1/openapi.json", READER, || get(describe), &[], "This description."),
    row("GET", "/api/v1/changes", READER, || get(changes::changes), &[], "Learn that something changed."),
    row(
        "POST",
        "/page/{project}/logout",
        READER,
        || post(login::log_out),
        &[],
        "End the login of the browser.",
    ),
    // A ticket is the credential, the page checks the cookie itself, and a file contains nothing of the team.
    row("GET", "/page/{project}/login", None, || get(login::redeem), &["ticket"], "Open a link."),
    row("GET", "/page/{project}/", None, || get(login::index), &[], "The page."),
    row("GET", "/page/{project}/{file}", None, || get(login::file), &[], "A file of the page."),
    row("GET", "/", None, || get(login::front), &[], "How to log in."),
    row("GET", "/healthz", None, || get(health::is_running), &[], "Whether the process runs."),
    row(
        "GET",
        "/readyz",
        None,
        || get(health::is_ready),
        &[],
        "Whether the server can work with its database.",
    ),
];

/// Returns the role that a route needs; `None` if it is open to all. A route of the API needs that of a
/// reader to read, and that of a member to write.
pub fn needed_role(method: &Method, path: &str) -> Option<Role> {
    let own = path.strip_prefix(PAGE);
    let is_at = |route: &&TeamRoute| route.path == path || (route.is_for_page() && own == Some(route.path));
    let word = if *method == Method::HEAD { "GET" } else { method.as_str() };
    let mut here = TABLE.iter().filter(is_at);
    // A path with a route for another method only is refused, or takes every method.
    match here.clone().find(|route| route.method == word).or_else(|| here.next()) {
        Some(route) => route.role,
        None if matches!(*method, Method::GET | Method::HEAD) => Some(Role::Reader),
        None => Some(Role::Member),
    }
}

/// Answers with the description of all routes.
async fn describe() -> Response {
    let mut description = openapi::describe_routes(interfaces::offered_routes());
    description["info"]["description"] =
        json!("Workspaces and memory of a team. The bearer token is one of its people.");
    for route in TABLE {
        let path = &mut description["paths"][route.path];
        if path.is_null() {
            *path = json!({});
        }
        path[route.method.to_lowercase()] = operation(route);
    }
    responses::json(StatusCode::OK, &description)
}

fn operation(route: &TeamRoute) -> Value {
    let in_path = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let parameter = |name: &str, place: &str| json!({"name": name, "in": place, "required": place == "path", "schema": {"type": "string"}});
    let mut parameters: Vec<Value> = in_path.map(|name| parameter(name, "path")).collect();
    let mut operation = json!({
        "summary": route.about, "x-role": route.role.map(Role::as_str),
        "responses": {"default": {"description": "success, or an error with the reason"}},
    });
    if route.method == "GET" {
        parameters.extend(route.params.iter().map(|name| parameter(name, "query")));
    } else {
        let fields: serde_json::Map<String, Value> =
            route.params.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
        let schema = json!({"type": "object", "properties": fields});
        operation["requestBody"] = json!({"content": {"application/json": {"schema": schema}}});
    }
    operation["parameters"] = json!(parameters);
    operation
}
