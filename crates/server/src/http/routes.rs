//! The table of what can be asked over HTTP. Paths, parameters, checks and the OpenAPI description all come from here.
//!
//! Most rows are a tool under another name; what only a page needs is in [`super::own`].

use axum::http::Method;

use super::own::{self, Handler};
use crate::tools::{self, Spec};

pub struct Route {
    pub method: Method,
    /// Below `/api/v1`.
    pub path: &'static str,
    pub does: Does,
    /// Of a success.
    pub status: u16,
}

#[derive(Clone, Copy)]
pub enum Does {
    Tool(&'static str),
    Own(&'static Spec, Handler),
    /// The feed of changes, a stream.
    Changes,
    /// This table as OpenAPI.
    Describe,
    /// A link that opens the page once.
    Ticket,
}

impl Route {
    pub fn spec(&self) -> Option<&'static Spec> {
        match self.does {
            Does::Tool(name) => tools::find(name).map(|tool| &tool.spec),
            Does::Own(spec, _) => Some(spec),
            Does::Ticket => Some(&own::TICKET),
            Does::Changes | Does::Describe => None,
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
            Does::Changes => {
                "Every change as server-sent events: `hello`, `change`, and `gap`, after which all is to be fetched again. \
                 Last-Event-ID resumes."
            }
            Does::Describe => "This description.",
            _ => self.spec().map_or("", |spec| spec.about),
        }
    }
}

fn row(method: Method, path: &'static str, does: Does) -> Route {
    Route { method, path, does, status: 200 }
}

fn created(route: Route) -> Route {
    Route { status: 201, ..route }
}

pub fn all() -> Vec<Route> {
    use Does::{Own, Tool};
    let get = |path, does| row(Method::GET, path, does);
    let post = |path, does| row(Method::POST, path, does);
    let put = |path, does| row(Method::PUT, path, does);
    let patch = |path, does| row(Method::PATCH, path, does);
    let delete = |path, does| row(Method::DELETE, path, does);
    vec![
        get("/projects", Own(&own::PROJECTS, own::projects)),
        get("/workspaces", Own(&own::WORKSPACES, own::workspaces)),
        created(post("/workspaces", Tool("workspace_init"))),
        get("/workspaces/{workspaceId}", Own(&own::BOARD, own::workspace)),
        patch("/workspaces/{workspaceId}", Tool("workspace_update")),
        delete("/workspaces/{workspaceId}", Tool("workspace_delete")),
        post("/workspaces/{workspaceId}/archive", Tool("workspace_archive")),
        post("/workspaces/{workspaceId}/restore", Tool("workspace_restore")),
        get("/workspaces/{workspaceId}/context", Tool("context_get")),
        put("/workspaces/{workspaceId}/focus", Tool("context_focus")),
        get("/workspaces/{workspaceId}/nodes", Own(&own::NODES, own::nodes)),
        created(post("/workspaces/{workspaceId}/nodes", Tool("node_create"))),
        get("/workspaces/{workspaceId}/nodes/{nodeId}", Own(&own::NODE_BOARD, own::node)),
        patch("/workspaces/{workspaceId}/nodes/{nodeId}", Tool("node_update")),
        delete("/workspaces/{workspaceId}/nodes/{nodeId}", Tool("node_delete")),
        post("/workspaces/{workspaceId}/nodes/{nodeId}/move", Tool("node_move")),
        post("/workspaces/{workspaceId}/nodes/{nodeId}/transition", Tool("node_transition")),
        post("/workspaces/{workspaceId}/nodes/{nodeId}/references", Tool("node_reference")),
        get("/workspaces/{workspaceId}/nodes/{nodeId}/log", Own(&own::LOG, own::log)),
        created(post("/workspaces/{workspaceId}/nodes/{nodeId}/log", Tool("log_append"))),
        get("/workspaces/{workspaceId}/nodes/{nodeId}/problem", Own(&own::PROBLEM, own::problem)),
        put("/workspaces/{workspaceId}/nodes/{nodeId}/problem", Tool("problem_update")),
        delete("/workspaces/{workspaceId}/nodes/{nodeId}/problem", Tool("problem_clear")),
        get("/bindings", Own(&own::BINDINGS, own::bindings)),
        get("/sessions", Own(&own::SESSIONS, own::sessions)),
        get("/sessions/{sessionId}", Own(&own::SESSION_VIEW, own::session)),
        put("/sessions/{sessionId}/binding", Tool("session_bind")),
        delete("/sessions/{sessionId}/binding", Tool("session_unbind")),
        get("/rules", Own(&own::RULES, own::rules)),
        get("/rules/check", Own(&own::CHECK, own::check)),
        post("/rules/explain", Own(&own::EXPLAIN, own::explain)),
        get("/ledger", Own(&own::LEDGER, own::ledger)),
        get("/ledger/days", Own(&own::DAYS, own::days)),
        get("/ledger/texts/{digest}", Own(&own::SAID, own::said)),
        get("/memory", Own(&own::MEMORY, own::memory)),
        created(post("/memory", Tool("memory_save"))),
        created(post("/memory/summaries", Tool("memory_summary"))),
        get("/memory/stats", Own(&own::STATS, own::stats)),
        get("/memory/facts/{id}", Own(&own::FACT, own::fact)),
        patch("/memory/facts/{id}", Own(&own::EDIT, own::edit)),
        post("/memory/facts/{id}/forget", Own(&own::FORGET, own::forget)),
        post("/memory/facts/{id}/restore", Own(&own::RESTORE, own::restore)),
        post("/events", Own(&own::EVENT, own::event)),
        get("/changes", Does::Changes),
        get("/openapi.json", Does::Describe),
        created(post("/tickets", Does::Ticket)),
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
            if let Does::Tool(name) = route.does {
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
