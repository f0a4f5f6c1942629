//! The table of tools.
//!
//! A parameter is described only where its name does not say it: every character here is read by a model.

use tanmi_memory::MemoryType;
use tanmi_session::MAX_SESSION_BYTES;
use tanmi_workspace::model::{NodeStatus, NodeType, WorkspaceStatus};
use tanmi_workspace::state::Action;

use super::{ID, Kind, LINE, NODE, Param, Spec, TEXT, Tool, WORKSPACE, described, may, must, tool, work};

const SESSION: Param =
    described(may("sessionId", Kind::Text { max: MAX_SESSION_BYTES }), "found by itself if left out");
const NODE_OR_WORKSPACE: Param = described(NODE, "`workspace` for the workspace's own");
const ROLES: &[&str] = &["info_collection", "validation", "summary", "none"];

pub const TOOLS: &[Tool] = &[
    tool(
        work::workspace_init,
        Spec {
            name: "workspace_init",
            about: "Create a workspace in this project.",
            reads: false,
            params: &[
                must("name", Kind::Title),
                must("goal", LINE),
                may("rules", Kind::Texts),
                may("docs", Kind::Docs),
            ],
        },
    ),
    tool(
        work::workspace_list,
        Spec {
            name: "workspace_list",
            about: "List workspaces with progress, latest first.",
            reads: true,
            params: &[
                described(may("all", Kind::Flag), "also of other projects"),
                may("status", Kind::Word(WorkspaceStatus::WORDS)),
                may("limit", Kind::Number { min: 1, max: 200 }),
            ],
        },
    ),
    tool(
        work::workspace_get,
        Spec {
            name: "workspace_get",
            about: "Goal, rules with rulesHash, docs, focus and progress of a workspace.",
            reads: true,
            params: &[WORKSPACE],
        },
    ),
    tool(
        work::workspace_update,
        Spec {
            name: "workspace_update",
            about: "Change name, goal, rules or docs. rules and docs replace the whole list.",
            reads: false,
            params: &[
                WORKSPACE,
                may("name", Kind::Title),
                may("goal", LINE),
                may("rules", Kind::Texts),
                may("addRules", Kind::Texts),
                may("docs", Kind::Docs),
                may("addDocs", Kind::Docs),
            ],
        },
    ),
    tool(
        work::workspace_archive,
        Spec {
            name: "workspace_archive",
            about: "Make a workspace read-only.",
            reads: false,
            params: &[WORKSPACE],
        },
    ),
    tool(
        work::workspace_restore,
        Spec {
            name: "workspace_restore",
            about: "Bring a workspace back from the archive or the trash.",
            reads: false,
            params: &[must("workspaceId", ID)],
        },
    ),
    tool(
        work::workspace_delete,
        Spec {
            name: "workspace_delete",
            about: "Move a workspace to the trash (kept 30 days). Ask the user first.",
            reads: false,
            params: &[must("workspaceId", ID)],
        },
    ),
    tool(
        work::node_create,
        Spec {
            name: "node_create",
            about: "Add a node. planning: has children; execution: is carried out.",
            reads: false,
            params: &[
                WORKSPACE,
                described(must("parentId", ID), "`root` or a planning node"),
                must("type", Kind::Word(NodeType::WORDS)),
                must("title", Kind::Title),
                must("requirement", TEXT),
                described(may("rulesHash", ID), "from context_get; needed if there are rules"),
                described(
                    may("role", Kind::Word(ROLES)),
                    "info_collection: `## Rules` and `## Docs` lists in its conclusion go to the workspace",
                ),
                may("note", TEXT),
                may("docs", Kind::Docs),
                described(may("isolated", Kind::Flag), "hide the ancestors' context from it"),
            ],
        },
    ),
    tool(
        work::node_get,
        Spec {
            name: "node_get",
            about: "One node with all its texts and its latest log.",
            reads: true,
            params: &[WORKSPACE, NODE],
        },
    ),
    tool(
        work::node_list,
        Spec {
            name: "node_list",
            about: "Nodes in tree order, page by page.",
            reads: true,
            params: &[
                WORKSPACE,
                described(may("parentId", ID), "only below this node"),
                may("status", Kind::Words(NodeStatus::WORDS)),
                described(may("query", LINE), "words of the title"),
                may("depth", Kind::Number { min: 0, max: 64 }),
                may("limit", Kind::Number { min: 1, max: 200 }),
                described(may("after", ID), "nextAfter of the page before"),
            ],
        },
    ),
    tool(
        work::node_update,
        Spec {
            name: "node_update",
            about: "Change a node's texts, role, docs or isolation.",
            reads: false,
            params: &[
                WORKSPACE,
                NODE,
                may("title", Kind::Title),
                may("requirement", TEXT),
                may("note", TEXT),
                may("role", Kind::Word(ROLES)),
                may("isolated", Kind::Flag),
                described(may("docs", Kind::Docs), "replaces the whole list"),
            ],
        },
    ),
    tool(
        work::node_move,
        Spec {
            name: "node_move",
            about: "Move a node with everything below it.",
            reads: false,
            params: &[WORKSPACE, must("nodeId", ID), must("parentId", ID)],
        },
    ),
    tool(
        work::node_delete,
        Spec {
            name: "node_delete",
            about: "Move a node with everything below it to the trash.",
            reads: false,
            params: &[WORKSPACE, must("nodeId", ID)],
        },
    ),
    tool(
        work::node_transition,
        Spec {
            name: "node_transition",
            about: "Take a step. planning: start, complete, cancel, reopen. execution: start, submit, complete, fail, retry, reopen.",
            reads: false,
            params: &[
                WORKSPACE,
                NODE,
                must("action", Kind::Word(Action::WORDS)),
                described(may("conclusion", TEXT), "needed by complete, fail and cancel"),
                described(may("agent", LINE), "subagent that does it"),
                described(may("force", Kind::Flag), "start what another session is at work on"),
            ],
        },
    ),
    tool(
        work::node_reference,
        Spec {
            name: "node_reference",
            about: "Add, remove, expire or activate a node's reference to another node or a document.",
            reads: false,
            params: &[
                WORKSPACE,
                NODE,
                described(must("targetId", LINE), "node id or path"),
                may("action", Kind::Word(&["add", "remove", "expire", "activate"])),
                may("description", LINE),
            ],
        },
    ),
    tool(
        work::session_bind,
        Spec {
            name: "session_bind",
            about: "Bind this session to a workspace: its context then arrives by itself.",
            reads: false,
            params: &[
                SESSION,
                described(WORKSPACE, "the only active one if left out"),
                described(NODE, "to focus"),
            ],
        },
    ),
    tool(
        work::session_unbind,
        Spec {
            name: "session_unbind",
            about: "Take this session off its workspace.",
            reads: false,
            params: &[SESSION],
        },
    ),
    tool(
        work::session_status,
        Spec {
            name: "session_status",
            about: "What this session is bound to, or what it could be bound to.",
            reads: true,
            params: &[SESSION],
        },
    ),
    tool(
        work::context_get,
        Spec {
            name: "context_get",
            about: "What to know at a node: goal, rules, rulesHash, ancestors, children's conclusions, references, problem, log.",
            reads: true,
            params: &[WORKSPACE, NODE],
        },
    ),
    tool(
        work::context_focus,
        Spec {
            name: "context_focus",
            about: "Set the node in focus.",
            reads: false,
            params: &[WORKSPACE, described(NODE, "leave out to clear")],
        },
    ),
    tool(
        work::context_check,
        Spec {
            name: "context_check",
            about: "For clients without hooks: what this session should know now. Call when a session starts and before answering.",
            reads: false,
            params: &[
                SESSION,
                must("trigger", Kind::Word(&["session_start", "before_response"])),
                described(may("prompt", TEXT), "what the user wrote"),
            ],
        },
    ),
    tool(
        work::memory_save,
        Spec {
            name: "memory_save",
            about: "Save a fact that later sessions should know: decisions, what happened, what the user prefers.",
            reads: false,
            params: &[
                must("content", TEXT),
                described(
                    may("type", Kind::Word(MemoryType::WORDS)),
                    "W world, B project history, O preference (needs confidence)",
                ),
                may("entities", Kind::Texts),
                described(may("confidence", Kind::Share), "0 to 1"),
                described(may("supersedes", Kind::Texts), "ids of facts that no longer hold"),
                SESSION,
            ],
        },
    ),
    tool(
        work::memory_search,
        Spec {
            name: "memory_search",
            about: "Find facts, summaries and past conversations by words, Chinese or English.",
            reads: true,
            params: &[
                must("query", LINE),
                may("limit", Kind::Number { min: 1, max: 50 }),
                described(may("type", Kind::Word(&["W", "B", "O", "S", "T"])), "S summaries, T turns"),
                described(may("since", ID), "YYYY-MM-DD or 7d"),
                may("until", ID),
            ],
        },
    ),
    tool(
        work::memory_summary,
        Spec {
            name: "memory_summary",
            about: "Save the summary of this session.",
            reads: false,
            params: &[
                must("topic", LINE),
                must("summary", TEXT),
                may("decisions", Kind::Texts),
                may("todos", Kind::Texts),
                SESSION,
            ],
        },
    ),
    tool(
        work::log_append,
        Spec {
            name: "log_append",
            about: "Record progress.",
            reads: false,
            params: &[WORKSPACE, NODE_OR_WORKSPACE, must("log", LINE)],
        },
    ),
    tool(
        work::problem_update,
        Spec {
            name: "problem_update",
            about: "Record what is wrong, or only the next step.",
            reads: false,
            params: &[WORKSPACE, NODE_OR_WORKSPACE, may("description", TEXT), may("nextStep", TEXT)],
        },
    ),
    tool(
        work::problem_clear,
        Spec {
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
