//! The table of tools.
//!
//! A parameter has a description only if its name is not clear by itself, because every model reads all of
//! this table. The server instructions state what omitted ids mean; an id has a description only where a tool
//! deviates from that.

use tanmi_base::Lang;
use tanmi_memory::MemoryType;
use tanmi_memory::scoped::Scope;
use tanmi_workspace::model::{NodeStatus, NodeType, WorkspaceStatus};
use tanmi_workspace::outline;
use tanmi_workspace::state::Action;

use super::{
    CallSpec, ID, LINE, NODE, Param, ParamKind, SESSION, TEXT, Tool, WORKSPACE, destructive, handlers,
    idempotent, optional, required, tool, with_description,
};

const NODE_OR_WORKSPACE: Param = with_description(NODE, "`workspace` means the workspace itself");
/// Takes precedence over the claim of another session.
const FORCE: Param =
    with_description(optional("force", ParamKind::Flag), "act on a node that another session holds");
const ROLES: &[&str] = &["info_collection", "validation", "summary", "none"];

pub const TOOLS: &[Tool] = &[
    tool(
        handlers::workspace_init,
        CallSpec {
            name: "workspace_init",
            about: "Create a workspace in this project and return its workspaceId.",
            is_read_only: false,
            params: &[
                required("name", ParamKind::Title),
                required("goal", LINE),
                optional("rules", ParamKind::Texts),
                optional("docs", ParamKind::Docs),
            ],
        },
    ),
    tool(
        handlers::workspace_list,
        CallSpec {
            name: "workspace_list",
            about: "List workspaces with their progress, latest first.",
            is_read_only: true,
            params: &[
                with_description(optional("all", ParamKind::Flag), "include other projects"),
                optional("status", ParamKind::Word(WorkspaceStatus::WORDS)),
                optional("limit", ParamKind::Number { min: 1, max: 200 }),
            ],
        },
    ),
    tool(
        handlers::workspace_get,
        CallSpec {
            name: "workspace_get",
            about: "Get a workspace's goal, rules, rulesHash, docs, focus and progress.",
            is_read_only: true,
            params: &[SESSION, WORKSPACE],
        },
    ),
    idempotent(tool(
        handlers::workspace_update,
        CallSpec {
            name: "workspace_update",
            about: "Change a workspace; rules and docs replace the whole list.",
            is_read_only: false,
            params: &[
                SESSION,
                WORKSPACE,
                optional("name", ParamKind::Title),
                optional("goal", LINE),
                optional("rules", ParamKind::Texts),
                optional("addRules", ParamKind::Texts),
                optional("removeRules", ParamKind::Texts),
                optional("docs", ParamKind::Docs),
                optional("addDocs", ParamKind::Docs),
                with_description(optional("language", ParamKind::Word(Lang::WORDS)), "of texts for agents"),
            ],
        },
    )),
    idempotent(tool(
        handlers::workspace_archive,
        CallSpec {
            name: "workspace_archive",
            about: "Archive a workspace: it stays readable and cannot be changed or bound.",
            is_read_only: false,
            params: &[SESSION, WORKSPACE],
        },
    )),
    idempotent(tool(
        handlers::workspace_restore,
        CallSpec {
            name: "workspace_restore",
            about: "Restore an archived or deleted workspace, or with nodeId a deleted node and its descendants.",
            is_read_only: false,
            params: &[required("workspaceId", ID), NODE],
        },
    )),
    destructive(tool(
        handlers::workspace_delete,
        CallSpec {
            name: "workspace_delete",
            about: "Move a workspace to the trash for 30 days; ask the user first.",
            is_read_only: false,
            params: &[required("workspaceId", ID)],
        },
    )),
    tool(
        handlers::node_create,
        CallSpec {
            name: "node_create",
            about: "Create a pending node and return its nodeId; a planning node has child nodes, an execution node is carried out.",
            is_read_only: false,
            params: &[
                SESSION,
                WORKSPACE,
                with_description(required("parentId", ID), "`root` or a planning node"),
                required("type", ParamKind::Word(NodeType::WORDS)),
                required("title", ParamKind::Title),
                required("requirement", TEXT),
                with_description(
                    optional("rulesHash", ID),
                    "from context_get; required if the workspace has rules",
                ),
                with_description(
                    optional("role", ParamKind::Word(ROLES)),
                    "info_collection: `## Rules` and `## Docs` lists in its conclusion are added to the workspace; validation, summary: labels that custom rules read",
                ),
                optional("note", TEXT),
                optional("docs", ParamKind::Docs),
                with_description(optional("isolated", ParamKind::Flag), "exclude the ancestors' context"),
            ],
        },
    ),
    tool(
        handlers::node_plan,
        CallSpec {
            name: "node_plan",
            about: "Create nodes from a Markdown outline and return their IDs: items `- Title: requirement`, children indented by two spaces, `(after: Title, Title)` for dependencies, `[x]` if done.",
            is_read_only: false,
            params: &[
                SESSION,
                WORKSPACE,
                with_description(optional("parentId", ID), "default: root"),
                required("outline", ParamKind::Text { max: outline::MAX_BYTES }),
                with_description(optional("rulesHash", ID), "as in node_create"),
            ],
        },
    ),
    tool(
        handlers::node_next,
        CallSpec {
            name: "node_next",
            about: "List the nodes that can be started now, in tree order, or why none can.",
            is_read_only: false,
            params: &[
                SESSION,
                WORKSPACE,
                with_description(optional("start", ParamKind::Flag), "claim and start the first"),
            ],
        },
    ),
    tool(
        handlers::node_get,
        CallSpec {
            name: "node_get",
            about: "Get a node with all its fields and its last 20 log entries.",
            is_read_only: true,
            params: &[SESSION, WORKSPACE, NODE],
        },
    ),
    tool(
        handlers::node_list,
        CallSpec {
            name: "node_list",
            about: "List nodes in tree order, one page per call.",
            is_read_only: true,
            params: &[
                SESSION,
                WORKSPACE,
                with_description(optional("parentId", ID), "only nodes below it"),
                optional("status", ParamKind::Words(NodeStatus::WORDS)),
                with_description(optional("query", LINE), "words the title must contain"),
                optional("depth", ParamKind::Number { min: 0, max: 64 }),
                optional("limit", ParamKind::Number { min: 1, max: 200 }),
                with_description(optional("after", ID), "nextAfter of the previous page"),
            ],
        },
    ),
    idempotent(tool(
        handlers::node_update,
        CallSpec {
            name: "node_update",
            about: "Change a node's title, requirement, note, role, docs, dependencies or isolation.",
            is_read_only: false,
            params: &[
                SESSION,
                WORKSPACE,
                NODE,
                optional("title", ParamKind::Title),
                optional("requirement", TEXT),
                optional("note", TEXT),
                with_description(optional("role", ParamKind::Word(ROLES)), "as in node_create"),
                optional("isolated", ParamKind::Flag),
                with_description(optional("docs", ParamKind::Docs), "replaces the whole list"),
                with_description(
                    optional("dependsOn", ParamKind::Texts),
                    "IDs of nodes to complete first; replaces the whole list",
                ),
            ],
        },
    )),
    idempotent(tool(
        handlers::node_move,
        CallSpec {
            name: "node_move",
            about: "Move a node and its descendants below another parent, or before or after another node.",
            is_read_only: false,
            params: &[
                SESSION,
                WORKSPACE,
                required("nodeId", ID),
                optional("parentId", ID),
                with_description(optional("before", ID), "node ID"),
                optional("after", ID),
            ],
        },
    )),
    destructive(tool(
        handlers::node_delete,
        CallSpec {
            name: "node_delete",
            about: "Move a node and its descendants to the trash for 30 days; ask the user first.",
            is_read_only: false,
            params: &[SESSION, WORKSPACE, required("nodeId", ID), FORCE],
        },
    )),
    tool(
        handlers::node_transition,
        CallSpec {
            name: "node_transition",
            about: "Change a node's status and return the actions allowed next; planning nodes take start, complete, cancel, reopen; execution nodes take start, submit, complete, fail, retry, reopen.",
            is_read_only: false,
            params: &[
                SESSION,
                WORKSPACE,
                NODE,
                required("action", ParamKind::Word(Action::WORDS)),
                with_description(optional("conclusion", TEXT), "required by complete, fail and cancel"),
                with_description(optional("agent", LINE), "name of the subagent that carries it out"),
                FORCE,
            ],
        },
    ),
    tool(
        handlers::node_reference,
        CallSpec {
            name: "node_reference",
            about: "Add (default), remove, expire or activate a node's reference and return all its references.",
            is_read_only: false,
            params: &[
                SESSION,
                WORKSPACE,
                NODE,
                with_description(required("targetId", LINE), "node ID or doc path"),
                optional("action", ParamKind::Word(&["add", "remove", "expire", "activate"])),
                optional("description", LINE),
            ],
        },
    ),
    idempotent(tool(
        handlers::session_bind,
        CallSpec {
            name: "session_bind",
            about: "Bind this session to a workspace; hooks then inject its context.",
            is_read_only: false,
            params: &[
                SESSION,
                with_description(WORKSPACE, "default: the project's only active workspace"),
                with_description(NODE, "node to focus"),
            ],
        },
    )),
    idempotent(tool(
        handlers::session_unbind,
        CallSpec {
            name: "session_unbind",
            about: "Unbind this session from its workspace.",
            is_read_only: false,
            params: &[SESSION],
        },
    )),
    tool(
        handlers::session_status,
        CallSpec {
            name: "session_status",
            about: "Get this session's ID, workspace and focused node, or the workspaces it can bind to.",
            is_read_only: true,
            params: &[SESSION],
        },
    ),
    tool(
        handlers::context_get,
        CallSpec {
            name: "context_get",
            about: "Get a node's context: goal, rules, rulesHash, ancestors, child conclusions, references, problem and log.",
            is_read_only: true,
            params: &[SESSION, WORKSPACE, NODE],
        },
    ),
    idempotent(tool(
        handlers::context_focus,
        CallSpec {
            name: "context_focus",
            about: "Set or clear the focused node, which calls without nodeId use.",
            is_read_only: false,
            params: &[SESSION, WORKSPACE, with_description(NODE, "omit to clear")],
        },
    )),
    tool(
        handlers::context_check,
        CallSpec {
            name: "context_check",
            about: "Get the context, reminders and hints due in this session; in clients without hooks, call it at session start and before each response.",
            is_read_only: false,
            params: &[
                SESSION,
                required("trigger", ParamKind::Word(&["session_start", "before_response"])),
                with_description(optional("prompt", TEXT), "the user's prompt"),
            ],
        },
    ),
    tool(
        handlers::memory_save,
        CallSpec {
            name: "memory_save",
            about: "Save a fact for later sessions: a decision, an event or a user preference.",
            is_read_only: false,
            params: &[
                required("content", TEXT),
                with_description(
                    optional("type", ParamKind::Word(MemoryType::WORDS)),
                    "W world (default), B project history, O opinion or preference",
                ),
                optional("entities", ParamKind::Texts),
                with_description(optional("confidence", ParamKind::Share), "default for O: 0.8"),
                with_description(optional("supersedes", ParamKind::Texts), "IDs of facts it replaces"),
                with_description(optional("paths", ParamKind::Texts), "files it is about"),
                optional("scope", ParamKind::Word(Scope::WORDS)),
                SESSION,
            ],
        },
    ),
    tool(
        handlers::memory_search,
        CallSpec {
            name: "memory_search",
            about: "Search facts, summaries and past conversations by Chinese or English words.",
            is_read_only: true,
            params: &[
                required("query", LINE),
                optional("limit", ParamKind::Number { min: 1, max: 50 }),
                with_description(
                    optional("type", ParamKind::Word(&["W", "B", "O", "S", "T"])),
                    "S summary, T conversation turn",
                ),
                with_description(optional("since", ID), "YYYY-MM-DD or 7d"),
                optional("until", ID),
            ],
        },
    ),
    tool(
        handlers::memory_summary,
        CallSpec {
            name: "memory_summary",
            about: "Save a summary of this session for later sessions.",
            is_read_only: false,
            params: &[
                required("topic", LINE),
                required("summary", TEXT),
                optional("decisions", ParamKind::Texts),
                optional("todos", ParamKind::Texts),
                SESSION,
            ],
        },
    ),
    destructive(tool(
        handlers::memory_forget,
        CallSpec {
            name: "memory_forget",
            about: "Hide wrong or outdated memories; the user can restore them.",
            is_read_only: false,
            params: &[with_description(required("ids", ParamKind::Texts), "from memory_search")],
        },
    )),
    tool(
        handlers::log_append,
        CallSpec {
            name: "log_append",
            about: "Append a progress entry to a node's log.",
            is_read_only: false,
            params: &[SESSION, WORKSPACE, NODE_OR_WORKSPACE, required("log", LINE)],
        },
    ),
    idempotent(tool(
        handlers::problem_update,
        CallSpec {
            name: "problem_update",
            about: "Record a node's open problem, its next step or both; a new description replaces both.",
            is_read_only: false,
            params: &[
                SESSION,
                WORKSPACE,
                NODE_OR_WORKSPACE,
                optional("description", TEXT),
                optional("nextStep", TEXT),
            ],
        },
    )),
    idempotent(tool(
        handlers::problem_clear,
        CallSpec {
            name: "problem_clear",
            about: "Remove a node's problem and next step once it is solved.",
            is_read_only: false,
            params: &[SESSION, WORKSPACE, NODE_OR_WORKSPACE],
        },
    )),
];

#[cfg(test)]
mod tests {
    use super::*;
    use tanmi_workspace::model::NodeRole;

    #[test]
    fn tool_names_are_unique_and_roles_match_the_model() {
        let names: std::collections::BTreeSet<&str> = TOOLS.iter().map(|tool| tool.spec.name).collect();
        assert_eq!(names.len(), TOOLS.len());
        assert_eq!(ROLES[..3], *NodeRole::WORDS);
    }

    /// One client process can run several sessions, so a default that depends on the session needs its id.
    #[test]
    fn tools_with_defaults_of_a_session_accept_its_id() {
        for spec in TOOLS.iter().map(|tool| &tool.spec) {
            let has = |name: &str| spec.params.iter().any(|param| param.name == name && !param.required);
            assert!(has("sessionId") || !has("workspaceId"), "{}", spec.name);
        }
    }

    /// The server instructions state the defaults of ids.
    #[test]
    fn ids_are_described_only_where_they_deviate_from_the_instructions() {
        let params =
            TOOLS.iter().flat_map(|tool| tool.spec.params.iter().map(move |param| (tool.spec.name, param)));
        let is_id = |name: &str| ["sessionId", "workspaceId", "nodeId"].contains(&name);
        let described: Vec<(&str, &str)> = params
            .filter(|(_, param)| is_id(param.name) && !param.about.is_empty())
            .map(|(tool, param)| (tool, param.name))
            .collect();
        let deviating = [
            ("session_bind", "workspaceId"),
            ("session_bind", "nodeId"),
            ("context_focus", "nodeId"),
            ("log_append", "nodeId"),
            ("problem_update", "nodeId"),
            ("problem_clear", "nodeId"),
        ];
        assert_eq!(described, deviating);
    }
}
