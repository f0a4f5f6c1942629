//! The table of tools: what a client is shown and what arguments are checked against are one and the same.
//!
//! A parameter is described only where its name does not say it: every character here is read by a model.

use serde_json::{Map, Value, json};
use tanmi_memory::MemoryType;
use tanmi_workspace::limits::{LINE_BYTES, TEXT_BYTES, TITLE_CHARS};
use tanmi_workspace::model::{NodeStatus, NodeType, RefStatus, WorkspaceStatus};
use tanmi_workspace::state::Action;

mod answer;
mod calls;
mod params;

pub use answer::value;
pub use calls::{Asked, Call, call, perform, perform_with};
pub use params::nearest;

#[derive(Clone, Copy)]
pub struct Spec {
    pub name: &'static str,
    pub about: &'static str,
    pub reads: bool,
    pub params: &'static [Param],
}

#[derive(Clone, Copy)]
pub struct Param {
    pub name: &'static str,
    pub kind: Kind,
    pub required: bool,
    pub about: &'static str,
}

#[derive(Clone, Copy)]
pub enum Kind {
    /// At most so many bytes.
    Text {
        max: usize,
    },
    Title,
    Word(&'static [&'static str]),
    Words(&'static [&'static str]),
    Flag,
    Number {
        min: u64,
        max: u64,
    },
    /// A number from 0 to 1.
    Share,
    Texts,
    Docs,
    /// An object that has texts under these names.
    Parts(&'static [&'static str]),
}

pub const fn must(name: &'static str, kind: Kind) -> Param {
    Param { name, kind, required: true, about: "" }
}

pub const fn may(name: &'static str, kind: Kind) -> Param {
    Param { name, kind, required: false, about: "" }
}

pub const fn told(param: Param, about: &'static str) -> Param {
    Param { about, ..param }
}

pub const TEXT: Kind = Kind::Text { max: TEXT_BYTES };
pub const LINE: Kind = Kind::Text { max: LINE_BYTES };
pub const ID: Kind = Kind::Text { max: 80 };
pub const WORKSPACE: Param = may("workspaceId", ID);
pub const NODE: Param = may("nodeId", ID);
const SESSION: Param = told(may("sessionId", Kind::Text { max: 512 }), "found by itself if left out");
const NODE_OR_WORKSPACE: Param = told(NODE, "`workspace` for the workspace's own");
const ROLES: &[&str] = &["info_collection", "validation", "summary", "none"];

pub const SPECS: &[Spec] = &[
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
    Spec {
        name: "workspace_list",
        about: "List workspaces with progress, latest first.",
        reads: true,
        params: &[
            told(may("all", Kind::Flag), "also of other projects"),
            may("status", Kind::Word(WorkspaceStatus::WORDS)),
            may("limit", Kind::Number { min: 1, max: 200 }),
        ],
    },
    Spec {
        name: "workspace_get",
        about: "Goal, rules with rulesHash, docs, focus and progress of a workspace.",
        reads: true,
        params: &[WORKSPACE],
    },
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
    Spec {
        name: "workspace_archive",
        about: "Make a workspace read-only.",
        reads: false,
        params: &[WORKSPACE],
    },
    Spec {
        name: "workspace_restore",
        about: "Bring a workspace back from the archive or the trash.",
        reads: false,
        params: &[must("workspaceId", ID)],
    },
    Spec {
        name: "workspace_delete",
        about: "Move a workspace to the trash (kept 30 days). Ask the user first.",
        reads: false,
        params: &[must("workspaceId", ID)],
    },
    Spec {
        name: "node_create",
        about: "Add a node. planning: has children; execution: is carried out.",
        reads: false,
        params: &[
            WORKSPACE,
            told(must("parentId", ID), "`root` or a planning node"),
            must("type", Kind::Word(NodeType::WORDS)),
            must("title", Kind::Title),
            must("requirement", TEXT),
            told(may("rulesHash", ID), "from context_get; needed if there are rules"),
            told(
                may("role", Kind::Word(ROLES)),
                "info_collection: `## Rules` and `## Docs` lists in its conclusion go to the workspace",
            ),
            may("note", TEXT),
            may("docs", Kind::Docs),
            told(may("isolated", Kind::Flag), "hide the ancestors' context from it"),
        ],
    },
    Spec {
        name: "node_get",
        about: "One node with all its texts and its latest log.",
        reads: true,
        params: &[WORKSPACE, NODE],
    },
    Spec {
        name: "node_list",
        about: "Nodes in tree order, page by page.",
        reads: true,
        params: &[
            WORKSPACE,
            told(may("parentId", ID), "only below this node"),
            may("status", Kind::Words(NodeStatus::WORDS)),
            told(may("query", LINE), "words of the title"),
            may("depth", Kind::Number { min: 0, max: 64 }),
            may("limit", Kind::Number { min: 1, max: 200 }),
            told(may("after", ID), "nextAfter of the page before"),
        ],
    },
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
            told(may("docs", Kind::Docs), "replaces the whole list"),
        ],
    },
    Spec {
        name: "node_move",
        about: "Move a node with everything below it.",
        reads: false,
        params: &[WORKSPACE, must("nodeId", ID), must("parentId", ID)],
    },
    Spec {
        name: "node_delete",
        about: "Move a node with everything below it to the trash.",
        reads: false,
        params: &[WORKSPACE, must("nodeId", ID)],
    },
    Spec {
        name: "node_transition",
        about: "Take a step. planning: start, complete, cancel, reopen. execution: start, submit, complete, fail, retry, reopen.",
        reads: false,
        params: &[
            WORKSPACE,
            NODE,
            must("action", Kind::Word(Action::WORDS)),
            told(may("conclusion", TEXT), "needed by complete, fail and cancel"),
            told(may("agent", LINE), "subagent that does it"),
            told(may("force", Kind::Flag), "start what another session is at work on"),
        ],
    },
    Spec {
        name: "node_reference",
        about: "Add, remove, expire or activate a node's reference to another node or a document.",
        reads: false,
        params: &[
            WORKSPACE,
            NODE,
            told(must("targetId", LINE), "node id or path"),
            may("action", Kind::Word(&["add", "remove", "expire", "activate"])),
            may("description", LINE),
        ],
    },
    Spec {
        name: "session_bind",
        about: "Bind this session to a workspace: its context then arrives by itself.",
        reads: false,
        params: &[SESSION, must("workspaceId", ID), told(NODE, "to focus")],
    },
    Spec {
        name: "session_unbind",
        about: "Take this session off its workspace.",
        reads: false,
        params: &[SESSION],
    },
    Spec {
        name: "session_status",
        about: "What this session is bound to, or what it could be bound to.",
        reads: true,
        params: &[SESSION],
    },
    Spec {
        name: "context_get",
        about: "What to know at a node: goal, rules, rulesHash, ancestors, children's conclusions, references, problem, log.",
        reads: true,
        params: &[WORKSPACE, NODE],
    },
    Spec {
        name: "context_focus",
        about: "Set the node in focus.",
        reads: false,
        params: &[WORKSPACE, told(NODE, "leave out to clear")],
    },
    Spec {
        name: "context_check",
        about: "For clients without hooks: what this session should know now. Call when a session starts and before answering.",
        reads: false,
        params: &[
            SESSION,
            must("trigger", Kind::Word(&["session_start", "before_response"])),
            told(may("prompt", TEXT), "what the user wrote"),
        ],
    },
    Spec {
        name: "memory_save",
        about: "Save a fact that later sessions should know: decisions, what happened, what the user prefers.",
        reads: false,
        params: &[
            must("content", TEXT),
            told(
                may("type", Kind::Word(MemoryType::WORDS)),
                "W world, B project history, O preference (needs confidence)",
            ),
            may("entities", Kind::Texts),
            told(may("confidence", Kind::Share), "0 to 1"),
            told(may("supersedes", Kind::Texts), "ids of facts that no longer hold"),
            SESSION,
        ],
    },
    Spec {
        name: "memory_search",
        about: "Find facts, summaries and past conversations by words, Chinese or English.",
        reads: true,
        params: &[
            must("query", LINE),
            may("limit", Kind::Number { min: 1, max: 50 }),
            told(may("type", Kind::Word(&["W", "B", "O", "S", "T"])), "S summaries, T turns"),
            told(may("since", ID), "YYYY-MM-DD or 7d"),
            may("until", ID),
        ],
    },
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
    Spec {
        name: "log_append",
        about: "Record progress.",
        reads: false,
        params: &[WORKSPACE, NODE_OR_WORKSPACE, must("log", LINE)],
    },
    Spec {
        name: "problem_update",
        about: "Record what is wrong, or only the next step.",
        reads: false,
        params: &[WORKSPACE, NODE_OR_WORKSPACE, may("description", TEXT), may("nextStep", TEXT)],
    },
    Spec {
        name: "problem_clear",
        about: "The problem is solved.",
        reads: false,
        params: &[WORKSPACE, NODE_OR_WORKSPACE],
    },
];

pub fn find(name: &str) -> Option<&'static Spec> {
    SPECS.iter().find(|spec| spec.name == name)
}

/// The JSON schema of an object that has these.
pub fn schema<'a>(params: impl Iterator<Item = &'a Param> + Clone) -> Map<String, Value> {
    let properties: Map<String, Value> =
        params.clone().map(|param| (param.name.to_owned(), property(param))).collect();
    let required: Vec<&str> = params.filter(|param| param.required).map(|param| param.name).collect();
    let mut schema = Map::new();
    schema.insert("type".into(), json!("object"));
    schema.insert("properties".into(), Value::Object(properties));
    if !required.is_empty() {
        schema.insert("required".into(), json!(required));
    }
    schema.insert("additionalProperties".into(), json!(false));
    schema
}

pub fn property(param: &Param) -> Value {
    let mut property = match param.kind {
        // The long limits would cost more to read than anybody would save by knowing them; an error names them.
        Kind::Text { .. } => json!({"type": "string"}),
        Kind::Title => json!({"type": "string", "maxLength": TITLE_CHARS}),
        Kind::Word(words) => json!({"type": "string", "enum": words}),
        Kind::Words(words) => json!({"type": "array", "items": {"type": "string", "enum": words}}),
        Kind::Flag => json!({"type": "boolean"}),
        Kind::Number { min, max } => json!({"type": "integer", "minimum": min, "maximum": max}),
        Kind::Share => json!({"type": "number", "minimum": 0, "maximum": 1}),
        Kind::Texts => json!({"type": "array", "items": {"type": "string"}}),
        Kind::Parts(names) => {
            let parts: Map<String, Value> =
                names.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
            json!({"type": "object", "properties": parts, "additionalProperties": false})
        }
        Kind::Docs => json!({"type": "array", "items": {
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "description": {"type": "string"},
                "status": {"enum": RefStatus::WORDS},
            },
            "required": ["path"],
        }}),
    };
    if !param.about.is_empty() {
        property["description"] = json!(param.about);
    }
    property
}

#[cfg(test)]
mod tests {
    use super::*;
    use tanmi_workspace::model::NodeRole;

    #[test]
    fn names_are_unique_and_words_are_the_domain_s() {
        let names: std::collections::BTreeSet<&str> = SPECS.iter().map(|spec| spec.name).collect();
        assert_eq!(names.len(), SPECS.len());
        assert_eq!(ROLES[..3], *NodeRole::WORDS);
    }
}
