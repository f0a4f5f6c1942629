//! The facts that rules can use, as they are at the moment of the event.

use std::collections::BTreeMap;

use tanmi_base::{Bilingual, Lang, Millis, hash};
use tanmi_event::{BuiltinRuleId, EventKind};
use tanmi_workspace::model::{NodeRole, NodeStatus, NodeType};

use crate::builtin::SkipReason;

mod digest;

pub use digest::{DigestFacts, WorkedLog, WorkedNode};

#[derive(Clone, Debug)]
pub struct Facts {
    pub now: Millis,
    pub lang: Lang,
    pub session: SessionFacts,
    /// The bound workspace; `None` if the session is unbound, or its workspace is archived or gone.
    pub workspace: Option<WorkspaceFacts>,
    /// The focused node, or the node that the event is about.
    pub node: Option<NodeFacts>,
    /// The memory to inject, or why there is none. Loaded only at a session start.
    pub memory: Result<MemoryFacts, SkipReason>,
    /// The declared context to inject, or why there is none.
    pub declared: Result<DeclaredFacts, SkipReason>,
    /// Whether files of the trusted project were left out, because the user did not agree to their present content.
    pub has_refused_files: bool,
    /// Whether memory is enabled in the settings.
    pub memory_enabled: bool,
    /// Whether the project has a workspace or a memory. Looked up only at events whose rules need it.
    pub has_project_data: bool,
    /// The active workspaces of the project, for an unbound session. Looked up only if [`crate::needs_workspaces`].
    pub available: AvailableFacts,
    /// The number of prompts after which the full context is injected again, on platforms that need it; 0 means
    /// never.
    pub refresh_every: u32,
    /// Whether the text is printed by a command: it then suggests commands instead of tool calls.
    pub suggests_commands: bool,
    /// The built-in rules that the settings disable.
    pub disabled_rules: Vec<BuiltinRuleId>,
}

/// The active workspaces of the project.
#[derive(Clone, Debug, Default)]
pub struct AvailableFacts {
    pub total: usize,
    /// The number of archived workspaces.
    pub archived: usize,
    /// The number of those that cannot be read.
    pub damaged: usize,
    /// The first of the active ones. Empty if the user has not agreed to the project: then their names are
    /// not injected.
    pub first: Vec<AvailableWorkspace>,
}

#[derive(Clone, Debug, Default)]
pub struct AvailableWorkspace {
    pub id: String,
    pub name: String,
    pub created_at: Millis,
    /// Done and total nodes, if the index has them.
    pub progress: Option<(u64, u64)>,
    /// Loaded only at a prompt, and only for the workspace that was worked on last.
    pub overview: OverviewFacts,
}

#[derive(Clone, Debug, Default)]
pub struct SessionFacts {
    pub id: String,
    /// The id of the bound workspace, if that workspace is missing or cannot be read.
    pub lost_workspace: Option<String>,
    /// The id and the name of the bound workspace, if that workspace is archived.
    pub archived_workspace: Option<(String, String)>,
    /// Id and name of the bound workspace, if it was deleted and can be restored.
    pub deleted_workspace: Option<(String, String)>,
    /// A hint told what is in progress in the latest workspace, and the session still knows it.
    pub told_latest: bool,
    /// Claims of the session that others ended, and that it was not told of.
    pub lost_claims: Vec<LostClaimFacts>,
    /// Writes of the session that the server of a team refused later, and that it was not told of.
    pub refused_writes: Vec<RefusedWriteFacts>,
    /// Hash of the context that was last injected into this session.
    pub seen_context: Option<String>,
    /// The node that had the focus then.
    pub seen_focus: Option<String>,
    /// The rules that were last injected, or their digests ([`told_rules`](crate::told_rules)); `None` if
    /// even those are too long to keep.
    pub told_rules: Option<Vec<String>>,
    /// Hash of the problem that was last injected in full.
    pub told_problem: Option<String>,
    /// Prompts since the last session start, including this one.
    pub prompts: u32,
    /// Whether the session created nodes or was bound to a plan without started work, and since then neither started a node
    /// nor was told to show the plan.
    pub has_unconfirmed_plan: bool,
    /// All prompts of the session, including this one.
    pub total_prompts: u32,
    pub started_at: Millis,
    pub prompts_since_summary: u32,
    /// Nodes that the session completed since it saved a summary.
    pub completed_since_summary: u32,
    /// When a summary was last requested from the agent.
    pub summary_requested_at: Option<Millis>,
    /// Whether a compaction happened since the context was injected.
    pub compacted: bool,
    /// Whether the session was unbound on purpose.
    pub was_unbound_by_user: bool,
    /// Hooks that actually ran since the last start or bind of the session.
    pub hooks_seen: Vec<EventKind>,
    /// Whether the session-start hook ever ran in the session, also before a bind.
    pub has_start_hook: bool,
    /// When a text was last injected, by throttle key.
    pub last_injected: BTreeMap<String, Millis>,
    /// The type of the last reminder, and when it was injected.
    pub last_reminder: Option<(String, Millis)>,
}

impl SessionFacts {
    /// Returns whether the open problem of a node was injected in full, as it is now.
    pub fn knows_problem_of(&self, node: &NodeFacts) -> bool {
        self.told_problem.is_some() && self.told_problem == node.problem_hash()
    }
}

/// A claim that ended without the session, or that is back.
#[derive(Clone, Debug, Default)]
pub struct LostClaimFacts {
    pub id: String,
    pub title: String,
    /// The session, or the person and the machine, that ended it. `@person` is the user; empty if it is not known.
    pub by: String,
    /// Whether another session holds the node now.
    pub is_taken: bool,
    /// Whether the node was deleted.
    pub is_deleted: bool,
    /// Whether the deleted node was restored, so that the session holds it again.
    pub is_restored: bool,
}

/// A write that the server of a team refused after it had waited.
#[derive(Clone, Debug, Default)]
pub struct RefusedWriteFacts {
    pub text: String,
    pub reason: String,
}

#[derive(Clone, Debug, Default)]
pub struct MemoryFacts {
    /// The day on which the server of the team was last reached, `YYYY-MM-DD`, if that is long ago.
    pub as_of: Option<String>,
    pub core: String,
    /// What the last session did, if it wrote no summary.
    pub digest: Option<DigestFacts>,
    pub summary: Option<SummaryFacts>,
    /// Recent facts and lasting preferences, newest first.
    pub recent: Vec<FactLine>,
    /// Facts that match the focused node.
    pub related: Vec<FactLine>,
}

#[derive(Clone, Debug, Default)]
pub struct DeclaredFacts {
    /// In order of precedence: project, user, container.
    pub files: Vec<DeclaredFile>,
    /// Changes when the list, the metadata or the content of the files changes.
    pub digest: String,
    /// Why the session already knows the content, if it does; then nothing is injected.
    pub known_because: Option<SkipReason>,
}

#[derive(Clone, Debug, Default)]
pub struct DeclaredFile {
    pub path: String,
    pub text: String,
}

#[derive(Clone, Debug, Default)]
pub struct SummaryFacts {
    /// The person of the team who saved it, if that is another one.
    pub author: Option<String>,
    pub topic: String,
    pub summary: String,
    pub decisions: Vec<String>,
    pub todos: Vec<String>,
}

#[derive(Clone, Debug, Default)]
pub struct FactLine {
    /// `YYYY-MM-DD`
    pub day: String,
    /// The letter of its type.
    pub letter: &'static str,
    pub id: String,
    /// The person of the team who saved it, if that is another one.
    pub author: Option<String>,
    pub content: String,
    /// The day and the id of the newer fact that replaces it.
    pub replaced: Option<(String, String)>,
    /// Files that it is about and that changed since, with whether they are gone.
    pub stale_files: Vec<(String, bool)>,
}

#[derive(Clone, Debug, Default)]
pub struct WorkspaceFacts {
    pub id: String,
    pub name: String,
    pub goal: String,
    pub rules: Vec<String>,
    pub rules_hash: String,
    /// `path: description` of each active doc.
    pub docs: Vec<String>,
    /// Done and total nodes, if the index has them.
    pub progress: Option<(u64, u64)>,
    pub problem: Option<ProblemFacts>,
    /// Loaded only for the whole context of a session that has no focus or focuses the root.
    pub overview: OverviewFacts,
    /// The number of tasks of a plan of which none is started, at most 200. `None` if it was not looked up: that is done only
    /// at a prompt of a session whose plan is not confirmed, and not while an open problem is told instead.
    pub unstarted_tasks: Option<usize>,
    /// The focused node, if its file cannot be read.
    pub damaged_focus: Option<DamagedNodeFacts>,
}

/// A node whose file cannot be read.
#[derive(Clone, Debug)]
pub struct DamagedNodeFacts {
    pub id: String,
    /// The path and the line.
    pub place: String,
    pub reason: Bilingual,
}

/// What a session that has no focus, or focuses the root, needs to know to continue the work.
#[derive(Clone, Debug, Default)]
pub struct OverviewFacts {
    /// The problem of the workspace itself, if the overview stands without its context.
    pub problem: Option<ProblemFacts>,
    pub in_progress: Vec<InProgressFacts>,
    pub problems: Vec<NodeProblemFacts>,
    /// Whether more nodes are in progress or have problems.
    pub has_more: bool,
    pub next: Vec<NextFacts>,
}

/// A node that comes next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NextFacts {
    pub id: String,
    pub title: String,
    /// `None` if it can be started.
    pub waits_for: Option<WaitsFor>,
}

/// A node that must be completed before another one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitsFor {
    pub title: String,
    /// Why it will not be completed by itself: it failed, was cancelled or is missing.
    pub status: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub struct InProgressFacts {
    pub id: String,
    pub title: String,
    pub status: String,
    /// The last log entry that an agent or a person wrote, with its time.
    pub last_log: Option<(TimeFacts, String)>,
    /// The session that claimed the node.
    pub holder: Option<String>,
    /// The person and the machine of that session, if it is one of a team.
    pub holder_name: Option<String>,
    /// Whether that session is no longer live, so that another one can take the node over.
    pub has_holder_ended: bool,
    /// When the status last changed.
    pub since: TimeFacts,
}

/// Who holds a node, other than the session itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HolderFacts {
    /// A live session of a team, as its person and machine.
    Named(String),
    /// Another live session of the user.
    Session,
    /// The user, without a session.
    User,
}

/// A local time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeFacts {
    /// `YYYY-MM-DD HH:MM:SS`
    pub stamp: String,
    pub day: DayFacts,
}

/// The day of a time, as seen from now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DayFacts {
    #[default]
    Other,
    Yesterday,
    Today,
}

impl TimeFacts {
    /// Returns the time without seconds, and with the day only if that is not today.
    pub fn to_short(&self, lang: Lang) -> String {
        let minute = |from: usize| self.stamp.get(from..16).unwrap_or(&self.stamp);
        match self.day {
            DayFacts::Today => minute(11).to_owned(),
            DayFacts::Yesterday => format!("{}{}", lang.pick("昨天 ", "yesterday "), minute(11)),
            DayFacts::Other => minute(0).to_owned(),
        }
    }
}

/// An open problem. The next step can be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProblemFacts {
    pub description: String,
    pub next_step: String,
}

/// A node with its open problem.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeProblemFacts {
    pub id: String,
    pub title: String,
    pub problem: ProblemFacts,
}

/// The surroundings of the focused node. Loaded only for the whole context.
#[derive(Clone, Debug, Default)]
pub struct SurroundingsFacts {
    /// Titles from the top down, without the root and the node itself.
    pub ancestors: Vec<String>,
    /// The last log entries, the latest last.
    pub log: Vec<String>,
    /// One line per child that is done.
    pub conclusions: Vec<String>,
    /// One line per dependency that is done.
    pub dependencies: Vec<String>,
    /// One line per reference.
    pub references: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct NodeFacts {
    pub id: String,
    pub title: String,
    pub kind: NodeType,
    pub role: Option<NodeRole>,
    pub status: NodeStatus,
    pub requirement: String,
    pub conclusion: Option<String>,
    pub note: String,
    pub problem: String,
    pub next_step: String,
    /// Whether the node is a direct child of the root.
    pub is_top: bool,
    /// Who else holds the node.
    pub held_by: Option<HolderFacts>,
    /// When the status last changed.
    pub since: Millis,
    pub last_log_at: Option<Millis>,
    /// `None` if the index does not have the counts.
    pub children: Option<ChildCounts>,
    /// Loaded only if a rule needs it.
    pub parent: Option<ParentFacts>,
    pub surroundings: SurroundingsFacts,
}

impl NodeFacts {
    /// Returns a hash of the open problem and its next step, or `None` if no problem is open.
    pub fn problem_hash(&self) -> Option<String> {
        let text = format!("{}\u{0}{}\u{0}{}", self.id, self.problem, self.next_step);
        (!self.problem.is_empty()).then(|| hash::md5_hex(text.as_bytes())[..12].to_owned())
    }
}

/// A pending execution node with empty texts.
impl Default for NodeFacts {
    fn default() -> NodeFacts {
        NodeFacts {
            id: String::new(),
            title: String::new(),
            kind: NodeType::Execution,
            role: None,
            status: NodeStatus::Pending,
            requirement: String::new(),
            conclusion: None,
            note: String::new(),
            problem: String::new(),
            next_step: String::new(),
            is_top: false,
            held_by: None,
            since: 0,
            last_log_at: None,
            children: None,
            parent: None,
            surroundings: SurroundingsFacts::default(),
        }
    }
}

#[derive(Clone, Debug)]
pub struct ParentFacts {
    pub id: String,
    pub title: String,
    pub status: NodeStatus,
    pub children: Option<ChildCounts>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChildCounts {
    pub total: u64,
    pub done: u64,
    pub pending: u64,
    /// The failed ones among `done`.
    pub failed: u64,
}

impl ChildCounts {
    pub fn all_done(self) -> bool {
        self.total > 0 && self.done == self.total
    }
}
