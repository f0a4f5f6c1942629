//! The operations of the HTTP API that are not tools, most of them for the page. Each is a [`CallSpec`] and a function
//! that runs one use case.

use std::path::Path;

use serde_json::{Value, json};
use tanmi_app::Error;
use tanmi_app::events::{EventRequest, parse_platform};
use tanmi_app::memory::MemoryQuery;
use tanmi_app::rules::{ExplainRequest, RuleFilter};
use tanmi_app::sessions::SessionFilter;
use tanmi_app::workspaces::{TrashFilter, WorkspaceFilter};
use tanmi_base::text;
use tanmi_memory::scoped::Scope;
use tanmi_session::MAX_SESSION_BYTES;
use tanmi_workspace::model::WorkspaceStatus;
use tanmi_workspace::ops::WorkspaceChange;

use super::ServerState;
use crate::tools::{
    Call, CallSpec, ID, LINE, NODE, Param, ParamKind, TEXT, WORKSPACE, optional, required, value,
    with_description,
};

pub(super) type Result<T = Value> = std::result::Result<T, Error>;
pub type RouteHandler = fn(&Call<'_>, &ServerState) -> Result;

pub(super) const SESSION: ParamKind = ParamKind::Text { max: MAX_SESSION_BYTES };
pub(super) const LIMIT: Param = optional("limit", ParamKind::Number { min: 1, max: 1000 });

pub(super) const fn read_only(name: &'static str, about: &'static str, params: &'static [Param]) -> CallSpec {
    CallSpec { name, about, is_read_only: true, params }
}

pub const PROJECTS: CallSpec = read_only(
    "projects",
    "List the projects known to this server, its own project first, and which have joined a team.",
    &[],
);

pub fn projects(c: &Call<'_>, state: &ServerState) -> Result {
    let folders = state.projects();
    let projects: Vec<String> = folders.iter().map(|project| project.display().to_string()).collect();
    let mut answer = json!({"projects": projects});
    let joined = c.app.team.joined(&folders);
    if !joined.is_empty() {
        answer["joined"] = json!(joined);
    }
    Ok(answer)
}

pub const WORKSPACES: CallSpec = read_only(
    "workspaces",
    "List workspaces with their progress, latest first.",
    &[
        with_description(optional("all", ParamKind::Flag), "include other projects"),
        optional("status", ParamKind::Word(WorkspaceStatus::WORDS)),
        optional("limit", ParamKind::Number { min: 1, max: 10_000 }),
    ],
);

pub fn workspaces(c: &Call<'_>, state: &ServerState) -> Result {
    let status = c.arguments.text("status").and_then(WorkspaceStatus::from_word);
    let all = c.arguments.flag("all").unwrap_or(false);
    let limit = c.arguments.number("limit").unwrap_or(1000);
    let projects = if all { state.projects() } else { Vec::new() };
    value(&c.app.workspaces.list(&WorkspaceFilter { all, status, limit, scan: None, projects })?)
}

pub const SESSION_VIEW: CallSpec = read_only(
    "session",
    "Get the workspace and focused node of a session, or the workspaces it can bind to.",
    &[required("sessionId", SESSION)],
);

/// Reads the session without recording activity of it.
pub fn session(c: &Call<'_>, _: &ServerState) -> Result {
    c.app.sessions.view(&c.session()?)
}

pub(super) const WORKSPACE_ID: Param = required("workspaceId", ID);
pub(super) const NODE_ID: Param = required("nodeId", ID);

pub const WORKSPACE_DETAIL: CallSpec =
    read_only("workspace", "Get a workspace: goal, rules, docs, progress, problem and log.", &[WORKSPACE_ID]);

pub fn workspace(c: &Call<'_>, _: &ServerState) -> Result {
    value(&c.app.workspaces.detail(c.workspace()?)?)
}

pub const TRASH: CallSpec = read_only(
    "trash",
    "List deleted workspaces and nodes that can be restored, the latest deletion first.",
    &[WORKSPACE, LIMIT],
);

pub fn trash(c: &Call<'_>, _: &ServerState) -> Result {
    let limit = c.arguments.number("limit").unwrap_or(100);
    let filter = TrashFilter { workspace: c.arguments.owned("workspaceId"), limit };
    let mut answer = value(&c.app.workspaces.trash(&filter)?)?;
    // Decides whether the texts are marked as untrusted.
    answer["project"] = json!(c.app.project());
    Ok(answer)
}

/// Not a tool: only the user decides about it.
pub const MASKING: CallSpec = CallSpec {
    name: "workspace_masking",
    about: "Turn the masking of secrets in the texts of a workspace on or off.",
    is_read_only: false,
    params: &[WORKSPACE_ID, required("on", ParamKind::Flag)],
};

pub fn masking(c: &Call<'_>, _: &ServerState) -> Result {
    let change = WorkspaceChange { mask_secrets: c.arguments.flag("on"), ..WorkspaceChange::default() };
    value(&c.app.workspaces.update(c.workspace()?, change)?)
}

pub const LOG: CallSpec = read_only(
    "log",
    "Get the latest log entries of a node or of the workspace.",
    &[WORKSPACE_ID, with_description(NODE_ID, "`workspace` means the workspace itself"), LIMIT],
);

pub fn log(c: &Call<'_>, _: &ServerState) -> Result {
    let limit = c.arguments.number("limit").unwrap_or(100);
    value(&c.app.nodes.log(c.workspace()?, &c.node_or_workspace()?, limit)?)
}

pub const PROBLEM: CallSpec = read_only(
    "problem",
    "Get the open problem of a node or of the workspace.",
    &[WORKSPACE_ID, with_description(NODE_ID, "`workspace` means the workspace itself")],
);

pub fn problem(c: &Call<'_>, _: &ServerState) -> Result {
    value(&c.app.nodes.problem(c.workspace()?, &c.node_or_workspace()?)?)
}

pub const BINDINGS: CallSpec = read_only(
    "bindings",
    "List bound sessions, most recently active first.",
    &[
        WORKSPACE,
        with_description(optional("live", ParamKind::Flag), "true: only live sessions; false: only others"),
        LIMIT,
    ],
);

pub fn bindings(c: &Call<'_>, _: &ServerState) -> Result {
    let list = c.app.sessions.list(&SessionFilter {
        workspace: c.arguments.owned("workspaceId"),
        bound: Some(true),
        ..session_filter(c)
    })?;
    Ok(json!({"bindings": list.sessions, "total": list.total}))
}

pub const SESSIONS: CallSpec = read_only(
    "sessions",
    "List known sessions, most recently active first.",
    &[
        with_description(optional("live", ParamKind::Flag), "true: only live sessions; false: only others"),
        with_description(
            optional("bound", ParamKind::Flag),
            "true: only bound sessions; false: only unbound ones",
        ),
        LIMIT,
    ],
);

pub fn sessions(c: &Call<'_>, _: &ServerState) -> Result {
    value(&c.app.sessions.list(&SessionFilter { bound: c.arguments.flag("bound"), ..session_filter(c) })?)
}

fn session_filter(c: &Call<'_>) -> SessionFilter {
    SessionFilter {
        workspace: None,
        live: c.arguments.flag("live"),
        bound: None,
        limit: c.arguments.number("limit").unwrap_or(200),
    }
}

pub const RULES: CallSpec = read_only(
    "rules",
    "List the built-in and custom rules that decide what agents are told.",
    &[optional("source", ID), optional("event", ID), LIMIT],
);

pub fn rules(c: &Call<'_>, _: &ServerState) -> Result {
    value(&c.app.rules.list(&RuleFilter {
        source: c.arguments.owned("source"),
        event: c.arguments.owned("event"),
        limit: c.arguments.number("limit").unwrap_or(200),
    })?)
}

pub const CHECK: CallSpec =
    read_only("rules_check", "Check the rules files of this project and list their errors.", &[]);

pub fn check(c: &Call<'_>, _: &ServerState) -> Result {
    Ok(json!({"files": c.app.rules.check(None)}))
}

pub const EXPLAIN: CallSpec = read_only(
    "rules_explain",
    "Explain which texts the rules would inject at an event and why, without changing anything.",
    &[
        optional("sessionId", SESSION),
        optional("event", ID),
        optional("platform", ID),
        optional("prompt", TEXT),
        WORKSPACE,
        NODE,
        optional("start", ID),
    ],
);

pub fn explain(c: &Call<'_>, _: &ServerState) -> Result {
    let p = &c.arguments;
    let platform = p.text("platform").map(|word| parse_platform("platform", word));
    let event = c.app.rules.event_to_explain(ExplainRequest {
        event: p.owned("event"),
        session: p.text("sessionId").map(|_| c.session()).transpose()?,
        platform: platform.transpose()?,
        prompt: p.owned("prompt"),
        workspace: p.owned("workspaceId"),
        node: p.owned("nodeId"),
        start: p.owned("start"),
    })?;
    value(&c.app.rules.explain(&event, None, None, None))
}

/// Returns the session whose entries are wanted, if the call names one.
pub(super) fn named_session(c: &Call<'_>) -> Result<Option<String>> {
    c.arguments.text("sessionId").map(|named| c.app.resolver.session_id(named)).transpose()
}

const MEMORY_TYPES: ParamKind = ParamKind::Word(&["W", "B", "O", "S", "T"]);

pub const MEMORY: CallSpec = read_only(
    "memory",
    "Search memory, or list the latest entries if no query is given.",
    &[
        optional("query", LINE),
        with_description(
            optional("type", MEMORY_TYPES),
            "W world, B project history, O opinion or preference, S summary, T conversation turn",
        ),
        optional("sessionId", SESSION),
        with_description(optional("since", ID), "YYYY-MM-DD or 7d"),
        optional("until", ID),
        with_description(
            optional("scope", ParamKind::Word(Scope::WORDS)),
            "user: memories that hold in all projects",
        ),
        with_description(optional("all", ParamKind::Flag), "include forgotten and superseded entries"),
        optional("limit", ParamKind::Number { min: 1, max: 200 }),
        optional("skip", ParamKind::Number { min: 0, max: 10_000_000 }),
    ],
);

pub fn memory(c: &Call<'_>, _: &ServerState) -> Result {
    let p = &c.arguments;
    let filter = MemoryQuery {
        memory_type: p.owned("type"),
        session: named_session(c)?,
        since: p.owned("since"),
        until: p.owned("until"),
        scope: p.owned("scope"),
        all: p.flag("all").unwrap_or(false),
        limit: p.number("limit").unwrap_or(50),
        skip: p.number("skip").unwrap_or(0),
    };
    let found = match p.text("query").map(str::trim).filter(|query| !query.is_empty()) {
        Some(query) => c.app.memory.search(query, &filter)?,
        None => c.app.memory.list(&filter)?,
    };
    let mut answer = value(&found)?;
    for (n, memory) in found.results.iter().enumerate() {
        if let Some(parts) = &memory.parts {
            answer["results"][n]["parts"] = value(parts)?;
        }
    }
    Ok(answer)
}

pub const STATS: CallSpec = read_only("memory_stats", "Get memory statistics.", &[]);

pub fn stats(c: &Call<'_>, _: &ServerState) -> Result {
    value(&c.app.memory.stats()?)
}

const MEMORY_ID: Param = required("id", ID);

pub const FACT: CallSpec = read_only("memory_get", "Get one memory entry.", &[MEMORY_ID]);

pub fn fact(c: &Call<'_>, _: &ServerState) -> Result {
    value(&c.app.memory.show(&c.arguments.needed("id"))?)
}

pub const HISTORY: CallSpec =
    read_only("memory_history", "List all versions of a fact, the one in force first.", &[MEMORY_ID]);

pub fn history(c: &Call<'_>, _: &ServerState) -> Result {
    Ok(json!({"versions": c.app.memory.history(&c.arguments.needed("id"))?}))
}

pub const DIGESTS: CallSpec = read_only(
    "memory_digests",
    "List what the last sessions of the project did, derived from their calls; without sessions that wrote a summary.",
    &[],
);

pub fn digests(c: &Call<'_>, _: &ServerState) -> Result {
    Ok(json!({"digests": c.app.memory.digests(), "project": c.app.project()}))
}

pub const EDIT: CallSpec = CallSpec {
    name: "memory_edit",
    about: "Edit a fact: save a new fact that supersedes it.",
    is_read_only: false,
    params: &[MEMORY_ID, required("content", TEXT)],
};

pub fn edit(c: &Call<'_>, _: &ServerState) -> Result {
    let session = c.caller_session()?;
    value(&c.app.memory.edit(&c.arguments.needed("id"), c.arguments.needed("content"), session)?)
}

pub const FORGET: CallSpec = CallSpec {
    name: "memory_forget",
    about: "Forget a memory entry; it can be restored.",
    is_read_only: false,
    params: &[MEMORY_ID],
};

pub fn forget(c: &Call<'_>, _: &ServerState) -> Result {
    value(&c.app.memory.forget(&[c.arguments.needed("id")])?.pop())
}

pub const RESTORE: CallSpec = CallSpec {
    name: "memory_restore",
    about: "Restore a forgotten or superseded memory entry.",
    is_read_only: false,
    params: &[MEMORY_ID],
};

pub fn restore(c: &Call<'_>, _: &ServerState) -> Result {
    value(&c.app.memory.restore(&[c.arguments.needed("id")])?.pop())
}

pub const PROMOTE: CallSpec = CallSpec {
    name: "memory_promote",
    about: "Move a fact of the project to the memory of the user, which holds in all projects.",
    is_read_only: false,
    params: &[MEMORY_ID],
};

pub fn promote(c: &Call<'_>, _: &ServerState) -> Result {
    value(&c.app.memory.promote(&[c.arguments.needed("id")])?.pop())
}

pub const EVENT: CallSpec = CallSpec {
    name: "event",
    about: "Raise an event for a session and return the decision, which is recorded as injected.",
    is_read_only: false,
    params: &[
        required("event", ID),
        required("sessionId", SESSION),
        optional("platform", ID),
        optional("source", ParamKind::Word(&["api"])),
        optional("payload", ParamKind::Parts(&["prompt", "workspaceId", "nodeId", "cwd", "start"])),
    ],
};

pub fn event(c: &Call<'_>, _: &ServerState) -> Result {
    let p = &c.arguments;
    let part = |name: &str| p.part("payload", name);
    c.app.events.raise(EventRequest {
        event: p.needed("event"),
        session: p.needed("sessionId"),
        platform: p.owned("platform"),
        prompt: part("prompt"),
        workspace: part("workspaceId"),
        node: part("nodeId"),
        cwd: part("cwd"),
        start: part("start"),
    })
}

pub const TICKET: CallSpec = CallSpec {
    name: "ticket",
    about: "Create a single-use link that opens the page; requires the bearer token.",
    is_read_only: false,
    params: &[with_description(optional("project", LINE), "folder to add to the known projects")],
};

pub fn ticket(c: &Call<'_>, state: &ServerState) -> Result {
    if let Some(project) = c.arguments.text("project") {
        let path = Path::new(project);
        if !path.is_absolute() || !path.is_dir() {
            let expected = String::from("the absolute path of a folder");
            return Err(Error::BadValue {
                key: "project",
                value: text::fit(&text::one_line(project), 80),
                expected,
            });
        }
        state.add_project(path.to_owned());
    }
    Ok(json!({"link": state.guard.create_link()}))
}
