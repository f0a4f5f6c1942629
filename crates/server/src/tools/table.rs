//! The table of tools.
//!
//! A parameter is described only where its name does not say it: every character here is read by a model.

use tanmi_memory::MemoryType;
use tanmi_session::MAX_SESSION_BYTES;
use tanmi_workspace::model::{NodeStatus, NodeType, WorkspaceStatus};
use tanmi_workspace::state::Action;

use super::{
    CallSpec, ID, LINE, NODE, Param, ParamKind, TEXT, Tool, WORKSPACE, handlers, optional, required, tool,
    with_description,
};

const SESSION: Param = with_description(
    optional("sessionId", ParamKind::Text { max: MAX_SESSION_BYTES }),
    "found by itself if left out",
);
const NODE_OR_WORKSPACE: Param = with_description(NODE, "`workspace` for the workspace's own");
const ROLES: &[&str] = &["info_collection", "validation", "summary", "none"];

pub const TOOLS: &[Tool] = &[
    tool(
        handlers::workspace_init,
        CallSpec {
            name: "workspace_init",
            about: "Create a workspace in this project.",
            reads: false,
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
            about: "List workspaces with progress, latest first.",
            reads: true,
            params: &[
                with_description(optional("all", ParamKind::Flag), "also of other projects"),
                optional("status", ParamKind::Word(WorkspaceStatus::WORDS)),
                optional("limit", ParamKind::Number { min: 1, max: 200 }),
            ],
        },
    ),
    tool(
        handlers::workspace_get,
        CallSpec {
            name: "workspace_get",
            about: "Goal, rules with rulesHash, docs, focus and progress of a workspace.",
            reads: true,
            params: &[WORKSPACE],
        },
    ),
    tool(
        handlers::workspace_update,
        CallSpec {
            name: "workspace_update",
            about: "Change name, goal, rules or docs. rules and docs replace the whole list.",
            reads: false,
            params: &[
                WORKSPACE,
                optional("name", ParamKind::Title),
                optional("goal", LINE),
                optional("rules", ParamKind::Texts),
                optional("addRules", ParamKind::Texts),
                optional("docs", ParamKind::Docs),
                optional("addDocs", ParamKind::Docs),
            ],
        },
    ),
    tool(
        handlers::workspace_archive,
        CallSpec {
            name: "workspace_archive",
            about: "Make a workspace read-only.",
            reads: false,
            params: &[WORKSPACE],
        },
    ),
    tool(
        handlers::workspace_restore,
        CallSpec {
            name: "workspace_restore",
            about: "Bring a workspace back from the archive or the trash.",
            reads: false,
            params: &[required("workspaceId", ID)],
        },
    ),
    tool(
        handlers::workspace_delete,
        CallSpec {
            name: "workspace_delete",
            about: "Move a workspace to the trash (kept 30 days). Ask the user first.",
            reads: false,
            params: &[required("workspaceId", ID)],
        },
    ),
    tool(
        handlers::node_create,
        CallSpec {
            name: "node_create",
            about: "Add a node. planning: has children; execution: is carried out.",
            reads: false,
            params: &[
                WORKSPACE,
                with_description(required("parentId", ID), "`root` or a planning node"),
                required("type", ParamKind::Word(NodeType::WORDS)),
                required("title", ParamKind::Title),
                required("requirement", TEXT),
                with_description(optional("rulesHash", ID), "from context_get; needed if there are rules"),
                with_description(
                    optional("role", ParamKind::Word(ROLES)),
                    "info_collection: `## Rules` and `## Docs` lists in its conclusion go to the workspace",
                ),
                optional("note", TEXT),
                optional("docs", ParamKind::Docs),
                with_description(
                    optional("isolated", ParamKind::Flag),
                    "hide the ancestors' context from it",
                ),
            ],
        },
    ),
    tool(
        handlers::node_get,
        CallSpec {
            name: "node_get",
            about: "One node with all its texts and its latest log.",
            reads: true,
            params: &[WORKSPACE, NODE],
        },
    ),
    tool(
        handlers::node_list,
        CallSpec {
            name: "node_list",
            about: "Nodes in tree order, page by page.",
            reads: true,
            params: &[
                WORKSPACE,
                with_description(optional("parentId", ID), "only below this node"),
                optional("status", ParamKind::Words(NodeStatus::WORDS)),
                with_description(optional("query", LINE), "words of the title"),
                optional("depth", ParamKind::Number { min: 0, max: 64 }),
                optional("limit", ParamKind::Number { min: 1, max: 200 }),
                with_description(optional("after", ID), "nextAfter of the page before"),
            ],
        },
    ),
    tool(
        handlers::node_update,
        CallSpec {
            name: "node_update",
            about: "Change a node's texts, role, docs or isolation.",
            reads: false,
            params: &[
                WORKSPACE,
                NODE,
                optional("title", ParamKind::Title),
                optional("requirement", TEXT),
                optional("note", TEXT),
                optional("role", ParamKind::Word(ROLES)),
                optional("isolated", ParamKind::Flag),
                with_description(optional("docs", ParamKind::Docs), "replaces the whole list"),
            ],
        },
    ),
    tool(
        handlers::node_move,
        CallSpec {
            name: "node_move",
            about: "Move a node with everything below it.",
            reads: false,
            params: &[WORKSPACE, required("nodeId", ID), required("parentId", ID)],
        },
    ),
    tool(
        handlers::node_delete,
        CallSpec {
            name: "node_delete",
            about: "Move a node with everything below it to the trash.",
            reads: false,
            params: &[WORKSPACE, required("nodeId", ID)],
        },
    ),
    tool(
        handlers::node_transition,
        CallSpec {
            name: "node_transition",
            about: "Take a step. planning: start, complete, cancel, reopen. execution: start, submit, complete, fail, retry, reopen.",
            reads: false,
            params: &[
                WORKSPACE,
                NODE,
                required("action", ParamKind::Word(Action::WORDS)),
                with_description(optional("conclusion", TEXT), "needed by complete, fail and cancel"),
                with_description(optional("agent", LINE), "subagent that does it"),
                with_description(
                    optional("force", ParamKind::Flag),
                    "start what another session is at work on",
                ),
            ],
        },
    ),
    tool(
        handlers::node_reference,
        CallSpec {
            name: "node_reference",
            about: "Add, remove, expire or activate a node's reference to another node or a document.",
            reads: false,
            params: &[
                WORKSPACE,
                NODE,
                with_description(required("targetId", LINE), "node id or path"),
                optional("action", ParamKind::Word(&["add", "remove", "expire", "activate"])),
                optional("description", LINE),
            ],
        },
    ),
    tool(
        handlers::session_bind,
        CallSpec {
            name: "session_bind",
            about: "Bind this session to a workspace: its context then arrives by itself.",
            reads: false,
            params: &[
                SESSION,
                with_description(WORKSPACE, "the only active one if left out"),
                with_description(NODE, "to focus"),
            ],
        },
    ),
    tool(
        handlers::session_unbind,
        CallSpec {
            name: "session_unbind",
            about: "Take this session off its workspace.",
            reads: false,
            params: &[SESSION],
        },
    ),
    tool(
        handlers::session_status,
        CallSpec {
            name: "session_status",
            about: "What this session is bound to, or what it could be bound to.",
            reads: true,
            params: &[SESSION],
        },
    ),
    tool(
        handlers::context_get,
        CallSpec {
            name: "context_get",
            about: "What to know at a node: goal, rules, rulesHash, ancestors, children's conclusions, references, problem, log.",
            reads: true,
            params: &[WORKSPACE, NODE],
        },
    ),
    tool(
        handlers::context_focus,
        CallSpec {
            name: "context_focus",
            about: "Set the node in focus.",
            reads: false,
            params: &[WORKSPACE, with_description(NODE, "leave out to clear")],
        },
    ),
    tool(
        handlers::context_check,
        CallSpec {
            name: "context_check",
            about: "For clients without hooks: what this session should know now. Call when a session starts and before answering.",
            reads: false,
            params: &[
                SESSION,
                required("trigger", ParamKind::Word(&["session_start", "before_response"])),
                with_description(optional("prompt", TEXT), "what the user wrote"),
            ],
        },
    ),
    tool(
        handlers::memory_save,
        CallSpec {
            name: "memory_save",
            about: "Save a fact that later sessions should know: decisions, what happened, what the user prefers.",
            reads: false,
            params: &[
                required("content", TEXT),
                with_description(
                    optional("type", ParamKind::Word(MemoryType::WORDS)),
                    "W world, B project history, O preference (needs confidence)",
                ),
                optional("entities", ParamKind::Texts),
                with_description(optional("confidence", ParamKind::Share), "0 to 1"),
                with_description(
                    optional("supersedes", ParamKind::Texts),
                    "ids of facts that no longer hold",
                ),
                SESSION,
            ],
        },
    ),
    tool(
        handlers::memory_search,
        CallSpec {
            name: "memory_search",
            about: "Find facts, summaries and past conversations by words, Chinese or English.",
            reads: true,
            params: &[
                required("query", LINE),
                optional("limit", ParamKind::Number { min: 1, max: 50 }),
                with_description(
                    optional("type", ParamKind::Word(&["W", "B", "O", "S", "T"])),
                    "S summaries, T turns",
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
            about: "Save the summary of this session.",
            reads: false,
            params: &[
                required("topic", LINE),
                required("summary", TEXT),
                optional("decisions", ParamKind::Texts),
                optional("todos", ParamKind::Texts),
                SESSION,
            ],
        },
    ),
    tool(
        handlers::log_append,
        CallSpec {
            name: "log_append",
            about: "Record progress.",
            reads: false,
            params: &[WORKSPACE, NODE_OR_WORKSPACE, required("log", LINE)],
        },
    ),
    tool(
        handlers::problem_update,
        CallSpec {
            name: "problem_update",
            about: "Record what is wrong, or only the next step.",
            reads: false,
            params: &[
                WORKSPACE,
                NODE_OR_WORKSPACE,
                optional("description", TEXT),
                optional("nextStep", TEXT),
            ],
        },
    ),
    tool(
        handlers::problem_clear,
        CallSpec {
            name: "problem_clear",
            about: "The problem is solved.",
            reads: false,
            params: &[WORKSPACE, NODE_OR_WORKSPACE],
        },
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use tanmi_workspace::model::NodeRole;

    #[test]
    fn names_are_unique_and_words_are_the_domain_s() {
        let names: std::collections::BTreeSet<&str> = TOOLS.iter().map(|tool| tool.spec.name).collect();
        assert_eq!(names.len(), TOOLS.len());
        assert_eq!(ROLES[..3], *NodeRole::WORDS);
    }
}
