//! The table of HTTP routes. Paths, parameters, argument checks and the OpenAPI description all come from it.
//!
//! Most rows run a tool; the operations that are not tools are in [`super::page_api`] and [`super::activity_api`].

use axum::http::Method;

use super::activity_api;
use super::page_api::{self, RouteHandler};
use super::{page_nodes, team_api};
use crate::tools::{self, CallSpec};

pub struct Route {
    pub method: Method,
    /// The path below `/api/v1`.
    pub path: &'static str,
    pub action: RouteAction,
    /// The HTTP status of a successful response.
    pub status: u16,
}

#[derive(Clone, Copy)]
pub enum RouteAction {
    Tool(&'static str),
    /// An operation that is not a tool.
    PageApi(&'static CallSpec, RouteHandler),
    /// Opens the stream of the change feed.
    Changes,
    /// Returns this table as OpenAPI.
    Describe,
    /// Creates a single-use link to the page.
    Ticket,
}

impl Route {
    pub fn spec(&self) -> Option<&'static CallSpec> {
        match self.action {
            RouteAction::Tool(name) => tools::find(name).map(|tool| &tool.spec),
            RouteAction::PageApi(spec, _) => Some(spec),
            RouteAction::Ticket => Some(&page_api::TICKET),
            RouteAction::Changes | RouteAction::Describe => None,
        }
    }

    /// Returns the names of the path parameters.
    pub fn in_path(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
    }

    /// Returns whether the route edits a workspace or a node and so accepts `If-Match`.
    pub fn takes_version(&self) -> bool {
        self.method == Method::PATCH && !self.path.starts_with("/memory")
    }

    /// Returns whether the route writes texts of a workspace and so accepts the query parameter `secrets`.
    pub fn writes_texts(&self) -> bool {
        let has_no_text = ["/archive", "/restore", "/focus", "/move", "/masking", "/next"];
        self.path.starts_with("/workspaces")
            && matches!(self.method, Method::POST | Method::PUT | Method::PATCH)
            && !has_no_text.iter().any(|end| self.path.ends_with(end))
    }

    /// Returns whether the route accepts the query parameter `project`.
    pub fn is_per_project(&self) -> bool {
        ["/memory", "/rules", "/workspaces", "/sessions", "/events", "/trash", "/team"]
            .iter()
            .any(|start| self.path.starts_with(start))
    }

    pub fn about(&self) -> &'static str {
        match self.action {
            RouteAction::Changes => {
                "Every change as server-sent events: `hello`, `change`, and `gap`, after which all is to be fetched again. \
                 Last-Event-ID resumes."
            }
            RouteAction::Describe => "This description.",
            _ => self.spec().map_or("", |spec| spec.about),
        }
    }
}

fn row(method: Method, path: &'static str, action: RouteAction) -> Route {
    Route { method, path, action, status: 200 }
}

fn created(route: Route) -> Route {
    Route { status: 201, ..route }
}

pub fn all() -> Vec<Route> {
    use RouteAction::{PageApi, Tool};
    let get = |path, action| row(Method::GET, path, action);
    let post = |path, action| row(Method::POST, path, action);
    let put = |path, action| row(Method::PUT, path, action);
    let patch = |path, action| row(Method::PATCH, path, action);
    let delete = |path, action| row(Method::DELETE, path, action);
    vec![
        get("/projects", PageApi(&page_api::PROJECTS, page_api::projects)),
        get("/now", PageApi(&activity_api::NOW, activity_api::now)),
        get("/activity", PageApi(&activity_api::ACTIVITY, activity_api::activity)),
        get("/workspaces", PageApi(&page_api::WORKSPACES, page_api::workspaces)),
        created(post("/workspaces", Tool("workspace_init"))),
        get("/workspaces/{workspaceId}", PageApi(&page_api::WORKSPACE_DETAIL, page_api::workspace)),
        patch("/workspaces/{workspaceId}", Tool("workspace_update")),
        delete("/workspaces/{workspaceId}", Tool("workspace_delete")),
        put("/workspaces/{workspaceId}/masking", PageApi(&page_api::MASKING, page_api::masking)),
        post("/workspaces/{workspaceId}/archive", Tool("workspace_archive")),
        post("/workspaces/{workspaceId}/restore", Tool("workspace_restore")),
        get("/workspaces/{workspaceId}/context", Tool("context_get")),
        put("/workspaces/{workspaceId}/focus", Tool("context_focus")),
        get("/workspaces/{workspaceId}/nodes", PageApi(&page_nodes::NODES, page_nodes::nodes)),
        created(post("/workspaces/{workspaceId}/nodes", Tool("node_create"))),
        created(post("/workspaces/{workspaceId}/plan", Tool("node_plan"))),
        post("/workspaces/{workspaceId}/next", Tool("node_next")),
        get("/workspaces/{workspaceId}/nodes/{nodeId}", PageApi(&page_nodes::NODE_VIEW, page_nodes::node)),
        patch("/workspaces/{workspaceId}/nodes/{nodeId}", Tool("node_update")),
        delete("/workspaces/{workspaceId}/nodes/{nodeId}", Tool("node_delete")),
        post("/workspaces/{workspaceId}/nodes/{nodeId}/move", Tool("node_move")),
        post("/workspaces/{workspaceId}/nodes/{nodeId}/transition", Tool("node_transition")),
        post("/workspaces/{workspaceId}/nodes/{nodeId}/references", Tool("node_reference")),
        get("/workspaces/{workspaceId}/nodes/{nodeId}/log", PageApi(&page_api::LOG, page_api::log)),
        created(post("/workspaces/{workspaceId}/nodes/{nodeId}/log", Tool("log_append"))),
        get(
            "/workspaces/{workspaceId}/nodes/{nodeId}/problem",
            PageApi(&page_api::PROBLEM, page_api::problem),
        ),
        put("/workspaces/{workspaceId}/nodes/{nodeId}/problem", Tool("problem_update")),
        delete("/workspaces/{workspaceId}/nodes/{nodeId}/problem", Tool("problem_clear")),
        get("/trash", PageApi(&page_api::TRASH, page_api::trash)),
        get("/bindings", PageApi(&page_api::BINDINGS, page_api::bindings)),
        get("/sessions", PageApi(&page_api::SESSIONS, page_api::sessions)),
        get("/sessions/{sessionId}", PageApi(&page_api::SESSION_VIEW, page_api::session)),
        put("/sessions/{sessionId}/binding", Tool("session_bind")),
        delete("/sessions/{sessionId}/binding", Tool("session_unbind")),
        get("/rules", PageApi(&page_api::RULES, page_api::rules)),
        get("/rules/check", PageApi(&page_api::CHECK, page_api::check)),
        post("/rules/explain", PageApi(&page_api::EXPLAIN, page_api::explain)),
        get("/ledger", PageApi(&activity_api::LEDGER, activity_api::ledger)),
        get("/ledger/days", PageApi(&activity_api::DAYS, activity_api::days)),
        get("/ledger/texts/{digest}", PageApi(&activity_api::LEDGER_TEXT, activity_api::ledger_text)),
        get("/memory", PageApi(&page_api::MEMORY, page_api::memory)),
        created(post("/memory", Tool("memory_save"))),
        created(post("/memory/summaries", Tool("memory_summary"))),
        get("/memory/stats", PageApi(&page_api::STATS, page_api::stats)),
        get("/memory/facts/{id}", PageApi(&page_api::FACT, page_api::fact)),
        get("/memory/facts/{id}/history", PageApi(&page_api::HISTORY, page_api::history)),
        get("/memory/digests", PageApi(&page_api::DIGESTS, page_api::digests)),
        patch("/memory/facts/{id}", PageApi(&page_api::EDIT, page_api::edit)),
        post("/memory/facts/{id}/forget", PageApi(&page_api::FORGET, page_api::forget)),
        post("/memory/facts/{id}/restore", PageApi(&page_api::RESTORE, page_api::restore)),
        post("/memory/facts/{id}/promote", PageApi(&page_api::PROMOTE, page_api::promote)),
        get("/team/presence", PageApi(&team_api::PRESENCE, team_api::presence)),
        get("/team/contributions", PageApi(&team_api::CONTRIBUTIONS, team_api::contributions)),
        get("/team/people", PageApi(&team_api::PEOPLE, team_api::people)),
        post("/team/people/{name}/disable", PageApi(&team_api::DISABLE, team_api::disable)),
        get("/team/tokens", PageApi(&team_api::TOKENS, team_api::tokens)),
        post("/team/tokens", PageApi(&team_api::CREATE_TOKEN, team_api::create_token)),
        delete("/team/tokens/{id}", PageApi(&team_api::REVOKE_TOKEN, team_api::revoke_token)),
        post("/team/tokens/{id}/rotate", PageApi(&team_api::ROTATE_TOKEN, team_api::rotate_token)),
        get("/team/audit", PageApi(&team_api::AUDIT, team_api::audit)),
        post("/events", PageApi(&page_api::EVENT, page_api::event)),
        get("/changes", RouteAction::Changes),
        get("/openapi.json", RouteAction::Describe),
        created(post("/tickets", RouteAction::Ticket)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_are_unique_and_complete() {
        let mut seen = std::collections::BTreeSet::new();
        for route in all() {
            assert!(seen.insert((route.method.to_string(), route.path)), "duplicate route {}", route.path);
            assert!(!route.about().is_empty(), "{} has no description", route.path);
            if let RouteAction::Tool(name) = route.action {
                assert!(tools::find(name).is_some(), "there is no tool {name}");
            }
            let Some(spec) = route.spec() else { continue };
            for name in route.in_path() {
                assert!(spec.params.iter().any(|param| param.name == name), "{}: {name}", route.path);
            }
        }
    }

    #[test]
    fn tools_are_all_available_over_http() {
        let routes = all();
        let available: Vec<&str> =
            routes.iter().filter_map(|route| route.spec()).map(|spec| spec.name).collect();
        // Over HTTP these are replaced by an operation of the page API or by an event.
        let replaced = [
            "workspace_get",
            "workspace_list",
            "node_get",
            "node_list",
            "memory_search",
            "context_check",
            "session_status",
        ];
        for spec in tools::TOOLS.iter().map(|tool| &tool.spec).filter(|spec| !replaced.contains(&spec.name)) {
            assert!(available.contains(&spec.name), "no route for tool {}", spec.name);
        }
    }
}
