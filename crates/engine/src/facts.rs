//! Everything a rule may look at, as it was at the moment of the event.

use std::collections::BTreeMap;

use tanmi_base::{Lang, Millis};
use tanmi_event::EventKind;

use crate::builtin::SkipReason;

#[derive(Clone, Debug)]
pub struct Facts {
    pub now: Millis,
    pub lang: Lang,
    pub session: SessionFacts,
    /// The bound workspace; `None` if the session is unbound, or its workspace is archived or gone.
    pub workspace: Option<WorkspaceFacts>,
    /// The node in focus, or the one the event is about.
    pub node: Option<NodeFacts>,
    /// What is remembered, or why nothing is told of it. Looked at only when a session starts.
    pub memory: Result<MemoryFacts, SkipReason>,
    /// What is declared and has to be told, or why nothing has.
    pub declared: Result<DeclaredFacts, SkipReason>,
    /// Whether memory is in use at all.
    pub memory_on: bool,
    /// Whether there is anything to bind to.
    pub has_workspaces: bool,
    /// Full context again after so many prompts, where the platform gets it by prompts; 0 means never.
    pub refresh_every: u32,
    /// Ids of the built-in rules that the settings switch off.
    pub disabled_rules: Vec<&'static str>,
}

#[derive(Clone, Debug, Default)]
pub struct SessionFacts {
    pub id: String,
    /// The workspace it is bound to, if that is gone or cannot be read.
    pub lost: Option<String>,
    /// Hash of the context this session has last been told.
    pub seen_context: Option<String>,
    /// Prompts since the last start, this one included.
    pub prompts: u32,
    /// Prompts, saved facts and steps of nodes in all, and whether a summary was saved or asked for.
    pub total_prompts: u32,
    pub saved_facts: u32,
    pub transitions: u32,
    pub summarized: bool,
    pub summary_requested: bool,
    /// The context was compacted away since it was told.
    pub compacted: bool,
    /// The person took the session off its workspace on purpose.
    pub unbound: bool,
    /// Hooks that were really seen since the session's last start and bind.
    pub hooks_seen: Vec<EventKind>,
    /// When each throttled thing was last said.
    pub last_injected: BTreeMap<String, Millis>,
}

#[derive(Clone, Debug, Default)]
pub struct MemoryFacts {
    pub core: String,
    pub summary: Option<SummaryFacts>,
    /// The newest first.
    pub recent: Vec<FactLine>,
    /// What fits the node in focus.
    pub found: Vec<FactLine>,
}

#[derive(Clone, Debug, Default)]
pub struct DeclaredFacts {
    /// The nearest first.
    pub files: Vec<DeclaredFile>,
    /// Tells this state of the files from any other.
    pub digest: String,
    /// Why the session knows it without being told.
    pub known: Option<SkipReason>,
}

#[derive(Clone, Debug, Default)]
pub struct DeclaredFile {
    pub path: String,
    pub text: String,
}

#[derive(Clone, Debug, Default)]
pub struct SummaryFacts {
    pub topic: String,
    pub summary: String,
    pub decisions: Vec<String>,
    pub todos: Vec<String>,
}

#[derive(Clone, Debug, Default)]
pub struct FactLine {
    /// `YYYY-MM-DD`
    pub day: String,
    pub letter: String,
    pub content: String,
}

#[derive(Clone, Debug, Default)]
pub struct WorkspaceFacts {
    pub id: String,
    pub name: String,
    pub goal: String,
    pub rules: Vec<String>,
    pub rules_hash: String,
    /// `path: description` of the docs that are active.
    pub docs: Vec<String>,
    /// Done and total, where the index knows.
    pub progress: Option<(u64, u64)>,
}

#[derive(Clone, Debug, Default)]
pub struct NodeFacts {
    pub id: String,
    pub title: String,
    pub kind: String,
    pub role: Option<String>,
    pub status: String,
    pub requirement: String,
    pub conclusion: Option<String>,
    pub note: String,
    pub problem: String,
    pub next_step: String,
    /// Whether it is a direct child of the root.
    pub is_top: bool,
    /// When it took its status.
    pub since: Millis,
    pub last_log_at: Option<Millis>,
    /// Where the index knows.
    pub children: Option<ChildCounts>,
    /// Looked at only when a node is completed.
    pub parent: Option<ParentFacts>,
}

#[derive(Clone, Debug, Default)]
pub struct ParentFacts {
    pub id: String,
    pub title: String,
    pub status: String,
    pub children: Option<ChildCounts>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChildCounts {
    pub total: u64,
    pub done: u64,
    pub pending: u64,
    /// Of those that are done.
    pub failed: u64,
}

impl ChildCounts {
    pub fn all_done(self) -> bool {
        self.total > 0 && self.done == self.total
    }
}
