//! The table of what can be asked over HTTP. Paths, parameters, checks and the OpenAPI description all come from here.
//!
//! Most rows are a tool under another name; what only a page needs is in [`super::page_api`].

use axum::http::Method;

use super::page_api::{self, RouteHandler};
use crate::tools::{self, CallSpec};

pub struct Route {
    pub method: Method,
    /// Below `/api/v1`.
    pub path: &'static str,
    pub does: RouteAction,
    /// Of a success.
    pub status: u16,
}

#[derive(Clone, Copy)]
pub enum RouteAction {
    Tool(&'static str),
    Own(&'static CallSpec, RouteHandler),
    /// The feed of changes, a stream.
    Changes,
    /// This table as OpenAPI.
    Describe,
    /// A link that opens the page once.
    Ticket,
}

impl Route {
    pub fn spec(&self) -> Option<&'static CallSpec> {
        match self.does {
            RouteAction::Tool(name) => tools::find(name).map(|tool| &tool.spec),
            RouteAction::Own(spec, _) => Some(spec),
            RouteAction::Ticket => Some(&page_api::TICKET),
            RouteAction::Changes | RouteAction::Describe => None,
        }
    }

    /// The names in braces.
    pub fn in_path(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
    }

    /// Whether it edits something that has a version.
    pub fn takes_version(&self) -> bool {
        self.method == Method::PATCH && !self.path.starts_with("/memory")
    }

    /// Whether it is about one project, which can be named.
    pub fn is_per_project(&self) -> bool {
        ["/memory", "/rules", "/workspaces", "/sessions", "/events"]
            .iter()
            .any(|start| self.path.starts_with(start))
    }

    pub fn about(&self) -> &'static str {
        match self.does {
            RouteAction::Changes => {
                "Every change as server-sent events: `hello`, `change`, and `gap`, after which all is to be fetched again. \
                 Last-Event-ID resumes."
            }
            RouteAction::Describe => "This description.",
            _ => self.spec().map_or("", |spec| spec.about),
        }
    }
}

fn row(method: Method, path: &'static str, does: RouteAction) -> Route {
    Route { method, path, does, status: 200 }
}

fn created(route: Route) -> Route {
    Route { status: 201, ..route }
}

pub fn all() -> Vec<Route> {
    use RouteAction::{Own, Tool};
    let get = |path, does| row(Method::GET, path, does);
    let post = |path, does| row(Method::POST, path, does);
    let put = |path, does| row(Method::PUT, path, does);
    let patch = |path, does| row(Method::PATCH, path, does);
    let delete = |path, does| row(Method::DELETE, path, does);
    vec![
        get("/projects", Own(&page_api::PROJECTS, page_api::projects)),
        get("/workspaces", Own(&page_api::WORKSPACES, page_api::workspaces)),
        created(post("/workspaces", Tool("workspace_init"))),
        get("/workspaces/{workspaceId}", Own(&page_api::WORKSPACE_DETAIL, page_api::workspace)),
        patch("/workspaces/{workspaceId}", Tool("workspace_update")),
        delete("/workspaces/{workspaceId}", Tool("workspace_delete")),
        post("/workspaces/{workspaceId}/archive", Tool("workspace_archive")),
        post("/workspaces/{workspaceId}/restore", Tool("workspace_restore")),
        get("/workspaces/{workspaceId}/context", Tool("context_get")),
        put("/workspaces/{workspaceId}/focus", Tool("context_focus")),
        get("/workspaces/{workspaceId}/nodes", Own(&page_api::NODES, page_api::nodes)),
        created(post("/workspaces/{workspaceId}/nodes", Tool("node_create"))),
        get("/workspaces/{workspaceId}/nodes/{nodeId}", Own(&page_api::NODE_VIEW, page_api::node)),
        patch("/workspaces/{workspaceId}/nodes/{nodeId}", Tool("node_update")),
        delete("/workspaces/{workspaceId}/nodes/{nodeId}", Tool("node_delete")),
        post("/workspaces/{workspaceId}/nodes/{nodeId}/move", Tool("node_move")),
        post("/workspaces/{workspaceId}/nodes/{nodeId}/transition", Tool("node_transition")),
        post("/workspaces/{workspaceId}/nodes/{nodeId}/references", Tool("node_reference")),
        get("/workspaces/{workspaceId}/nodes/{nodeId}/log", Own(&page_api::LOG, page_api::log)),
        created(post("/workspaces/{workspaceId}/nodes/{nodeId}/log", Tool("log_append"))),
        get("/workspaces/{workspaceId}/nodes/{nodeId}/problem", Own(&page_api::PROBLEM, page_api::problem)),
        put("/workspaces/{workspaceId}/nodes/{nodeId}/problem", Tool("problem_update")),
        delete("/workspaces/{workspaceId}/nodes/{nodeId}/problem", Tool("problem_clear")),
        get("/bindings", Own(&page_api::BINDINGS, page_api::bindings)),
        get("/sessions", Own(&page_api::SESSIONS, page_api::sessions)),
        get("/sessions/{sessionId}", Own(&page_api::SESSION_VIEW, page_api::session)),
        put("/sessions/{sessionId}/binding", Tool("session_bind")),
        delete("/sessions/{sessionId}/binding", Tool("session_unbind")),
        get("/rules", Own(&page_api::RULES, page_api::rules)),
        get("/rules/check", Own(&page_api::CHECK, page_api::check)),
        post("/rules/explain", Own(&page_api::EXPLAIN, page_api::explain)),
        get("/ledger", Own(&page_api::LEDGER, page_api::ledger)),
        get("/ledger/days", Own(&page_api::DAYS, page_api::days)),
        get("/ledger/texts/{digest}", Own(&page_api::LEDGER_TEXT, page_api::ledger_text)),
        get("/memory", Own(&page_api::MEMORY, page_api::memory)),
        created(post("/memory", Tool("memory_save"))),
        created(post("/memory/summaries", Tool("memory_summary"))),
        get("/memory/stats", Own(&page_api::STATS, page_api::stats)),
        get("/memory/facts/{id}", Own(&page_api::FACT, page_api::fact)),
        patch("/memory/facts/{id}", Own(&page_api::EDIT, page_api::edit)),
        post("/memory/facts/{id}/forget", Own(&page_api::FORGET, page_api::forget)),
        post("/memory/facts/{id}/restore", Own(&page_api::RESTORE, page_api::restore)),
        post("/events", Own(&page_api::EVENT, page_api::event)),
        get("/changes", RouteAction::Changes),
        get("/openapi.json", RouteAction::Describe),
        created(post("/tickets", RouteAction::Ticket)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_whole() {
        let mut seen = std::collections::BTreeSet::new();
        for route in all() {
            assert!(seen.insert((route.method.to_string(), route.path)), "{} twice", route.path);
            assert!(!route.about().is_empty(), "{} says nothing", route.path);
            if let RouteAction::Tool(name) = route.does {
                assert!(tools::find(name).is_some(), "there is no tool {name}");
            }
            let Some(spec) = route.spec() else { continue };
            for name in route.in_path() {
                assert!(spec.params.iter().any(|param| param.name == name), "{}: {name}", route.path);
            }
        }
    }

    #[test]
    fn every_tool_can_be_reached() {
        let routes = all();
        let reached: Vec<&str> =
            routes.iter().filter_map(|route| route.spec()).map(|spec| spec.name).collect();
        // Told in another way over HTTP: a view of its own, or an event.
        let others = [
            "workspace_get",
            "workspace_list",
            "node_get",
            "node_list",
            "memory_search",
            "context_check",
            "session_status",
        ];
        for spec in tools::TOOLS.iter().map(|tool| &tool.spec).filter(|spec| !others.contains(&spec.name)) {
            assert!(reached.contains(&spec.name), "{}", spec.name);
        }
    }
}
