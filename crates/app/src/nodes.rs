//! Use cases for nodes, logs, problems and context.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Serialize;
use tanmi_base::text;
use tanmi_session::LostClaim;
use tanmi_workspace::command::{Command, Committed, Outcome};
use tanmi_workspace::context::Context;
use tanmi_workspace::model::*;
use tanmi_workspace::ops::{
    Claimant, DeletedSubtree, HeldNode, ListQuery, NewNode, NextNode, NodeChange, NodePage, NodePlace,
    OpContext, ProblemChange, ReferenceEdit, StatusChange, Target, Transition, TransitionRequest,
};
use tanmi_workspace::state::Action;
use tanmi_workspace::store::BranchCounts;

use crate::calls::CallChange;
use crate::core::{Core, WorkspaceRef};
use crate::error::{Error, Result};
use crate::events::EventService;
use crate::masking::MaskReport;
use crate::memory::queued_notice;
use crate::presence;
use crate::resolver::CallScope;
use crate::sessions::SessionService;

mod plan;
mod task;
mod view;

pub use plan::{NextResult, OutlineResult, PlanResult, StartedView};
pub use task::{FocusResult, FocusView, TaskView};
pub(crate) use view::LOG_ENTRIES;
pub use view::{AllowedAction, ChildrenView, NodeView};

/// The number of deleted nodes that a call notes, so that one call does not displace all others.
const NOTED_DELETIONS: usize = 10;

/// A result together with the id of its workspace.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InWorkspace<T> {
    pub workspace_id: WorkspaceId,
    /// The sequence number of the change, under the same key as in the change feed. `None` for a read.
    #[serde(rename = "change", skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// What failed after the change was durable, and the secrets that were stored.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Kinds of secrets that were masked before the texts were written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub masked: Vec<&'static str>,
    #[serde(flatten)]
    pub result: T,
}

impl<T> InWorkspace<T> {
    fn read(ws: &WorkspaceRef, result: T) -> InWorkspace<T> {
        let workspace_id = ws.id.clone();
        InWorkspace { workspace_id, seq: None, warnings: Vec::new(), masked: Vec::new(), result }
    }

    fn committed(ws: &WorkspaceRef, change: Change, result: T) -> InWorkspace<T> {
        let Change { seq, secrets: MaskReport { masked, warnings } } = change;
        InWorkspace { seq: Some(seq), warnings, masked, ..InWorkspace::read(ws, result) }
    }
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeResult {
    pub node_id: NodeId,
    pub node: Node,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub status_changes: Vec<StatusChange>,
    /// The person and the machine that hold the node, in a project of a team.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_by: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LogResult {
    /// A node id, or `workspace`.
    pub node_id: String,
    pub entries: Vec<LogEntry>,
    /// The number of all entries, not only those in `entries`.
    pub total: usize,
    /// Whether the new entry waits on this machine until the server of the team can be reached.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub queued: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<&'static str>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProblemResult {
    pub node_id: String,
    pub problem: Option<Problem>,
    /// Whether there was a problem, for a call that clears it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cleared: Option<bool>,
}

/// Arguments of a transition.
#[derive(Clone, Debug, Default)]
pub struct TransitionArgs<'a> {
    pub action: &'a str,
    pub conclusion: Option<String>,
    /// The subagent that works on the node.
    pub agent: Option<&'a str>,
    /// Whether to claim the node even if a live session holds it.
    pub force: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct TransitionResult {
    #[serde(flatten)]
    pub step: Transition,
    /// What the node asks for, if it was started.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskView>,
    /// What can be started next, after a node was completed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<NextNode>,
    /// Texts of the rules for this transition.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reminders: Vec<String>,
}

/// Where a node is moved to: exactly one of these.
#[derive(Clone, Debug, Default)]
pub struct MoveTarget {
    pub parent: Option<String>,
    pub before: Option<String>,
    pub after: Option<String>,
}

/// Arguments for a new node. Words are parsed here and not by the interfaces, so that errors name the field.
#[derive(Clone, Debug, Default)]
pub struct NodeCreate {
    pub parent: Option<String>,
    pub kind: String,
    pub title: String,
    pub requirement: String,
    pub role: Option<String>,
    pub note: String,
    pub docs: Vec<DocReference>,
    pub isolated: bool,
    pub rules_hash: Option<String>,
}

/// The maximum width of the name of a subagent.
const AGENT_COLUMNS: usize = 80;

/// The use cases for nodes.
#[derive(Clone)]
pub struct NodeService {
    core: Arc<Core>,
    sessions: SessionService,
    events: EventService,
}

/// A change that is durable.
struct Change {
    seq: u64,
    secrets: MaskReport,
}

impl NodeService {
    pub(crate) fn new(core: Arc<Core>, sessions: SessionService, events: EventService) -> NodeService {
        NodeService { core, sessions, events }
    }

    fn run(&self, ws: &WorkspaceRef, command: Command) -> Result<(Outcome, Change)> {
        self.run_as(ws, command, &self.core.op())
    }

    fn run_as(&self, ws: &WorkspaceRef, mut command: Command, op: &OpContext) -> Result<(Outcome, Change)> {
        let secrets = self.core.mask_command(ws, &mut command, self.core.masking)?;
        let Committed { outcome, seq } = ws.store().run(&ws.id, &command, op, &self.sessions)?;
        Ok((outcome, Change { seq, secrets }))
    }

    pub fn create(&self, ws: &WorkspaceRef, new: NodeCreate) -> Result<InWorkspace<NodeResult>> {
        let parent = new.parent.as_deref().unwrap_or("root");
        let parent_id = self.sessions.resolver().node_id(ws, "parentId", parent)?;
        let node = NewNode {
            parent_id,
            kind: NodeType::parse("type", &new.kind)?,
            title: new.title,
            requirement: new.requirement,
            role: parse_role(new.role.as_deref())?,
            note: new.note,
            docs: new.docs,
            isolated: new.isolated,
            rules_check: self.core.rules_hash_check(new.rules_hash),
        };
        let created = self.change_node(ws, Command::CreateNode { node })?;
        self.note(ws, CallChange::Created);
        Ok(created)
    }

    /// Notes what a call did, for the state of the session that makes it.
    fn note(&self, ws: &WorkspaceRef, change: CallChange) {
        self.core.note_call(self.core.session.as_deref(), ws.project.as_ref(), ws.id.as_str(), change);
    }

    pub fn show(&self, ws: &WorkspaceRef, id: &NodeId) -> Result<InWorkspace<NodeResult>> {
        let node = ws.store().node(&ws.id, id, self.core.now())?;
        let holder = node.started_by.as_deref();
        let held_by = holder.and_then(|holder| presence::of_project(ws.project.as_ref()).name(holder));
        let result = NodeResult { node_id: id.clone(), node, status_changes: Vec::new(), held_by };
        Ok(InWorkspace::read(ws, result))
    }

    pub fn list(&self, ws: &WorkspaceRef, query: &ListQuery) -> Result<InWorkspace<NodePage>> {
        Ok(InWorkspace::read(ws, ws.store().nodes(&ws.id, query, self.core.now())?))
    }

    /// Returns the rows of these nodes as in a list. Missing nodes are left out.
    pub fn rows(&self, ws: &WorkspaceRef, ids: &[String]) -> Result<InWorkspace<NodePage>> {
        let ids = ids.iter().map(|id| NodeId::parse_field("ids", id));
        let ids = ids.collect::<std::result::Result<Vec<_>, _>>()?;
        let nodes = ws.store().rows(&ws.id, &ids, self.core.now())?;
        Ok(InWorkspace::read(ws, NodePage { nodes, next_after: None }))
    }

    /// Counts what is below each node that has children.
    pub fn branches(&self, ws: &WorkspaceRef) -> Result<HashMap<NodeId, BranchCounts>> {
        Ok(ws.store().branches(&ws.id, self.core.now())?)
    }

    pub fn update(
        &self,
        ws: &WorkspaceRef,
        id: &NodeId,
        change: NodeChange,
    ) -> Result<InWorkspace<NodeResult>> {
        if change.is_empty() {
            return Err(Error::NothingToChange);
        }
        self.change_node(ws, Command::UpdateNode { node_id: id.clone(), change })
    }

    /// Moves a node as a call asks for: below a parent, or beside a node.
    pub fn move_to(
        &self,
        ws: &WorkspaceRef,
        id: &NodeId,
        to: &MoveTarget,
    ) -> Result<InWorkspace<NodeResult>> {
        let node = |field, named: &str| self.sessions.resolver().node_id(ws, field, named);
        let place = |place| self.change_node(ws, Command::PlaceNode { node_id: id.clone(), place });
        match to {
            MoveTarget { before: Some(named), parent: None, after: None } => {
                place(NodePlace::Before(node("before", named)?))
            }
            MoveTarget { after: Some(named), parent: None, before: None } => {
                place(NodePlace::After(node("after", named)?))
            }
            MoveTarget { parent: Some(named), before: None, after: None } => {
                let parent_id = node("parentId", named)?;
                self.change_node(ws, Command::MoveNode { node_id: id.clone(), parent_id })
            }
            _ => Err(tanmi_workspace::Error::invalid(
                "parentId",
                "只给出 parentId、before 和 after 中的一个",
                "pass exactly one of parentId, before and after",
            )
            .into()),
        }
    }

    /// Restores a node with the descendants that were deleted with it.
    pub fn restore(&self, scope: &CallScope, named: &str) -> Result<InWorkspace<NodeResult>> {
        let ws = &scope.workspace;
        let node_id = self.sessions.resolver().trashed_node_id(ws, named)?;
        let restored = self.change_node(ws, Command::RestoreNode { node_id: node_id.clone() })?;
        // The change is durable, so an error of this read does not fail it.
        let query = ListQuery { under: node_id, limit: NOTED_DELETIONS, ..ListQuery::default() };
        let page = ws.store().nodes(&ws.id, &query, self.core.now());
        for node in page.into_iter().flat_map(|page| page.nodes).map(|row| row.node) {
            let Some(holder) = node.holder.as_deref().filter(|_| !node.status.is_done()) else { continue };
            let (node, title) = (node.id.to_string(), node.title.clone());
            let back = LostClaim { node, title, is_restored: true, ..LostClaim::default() };
            self.sessions.note_lost_claim(ws, scope.session.as_deref(), holder, back);
        }
        Ok(restored)
    }

    pub fn edit_reference(
        &self,
        ws: &WorkspaceRef,
        id: &NodeId,
        target: &str,
        edit: ReferenceEdit,
    ) -> Result<InWorkspace<NodeResult>> {
        let target = self.sessions.resolver().reference_target(ws, target)?;
        let command = Command::EditReference { node_id: id.clone(), target, edit };
        self.change_node(ws, command)
    }

    fn change_node(&self, ws: &WorkspaceRef, command: Command) -> Result<InWorkspace<NodeResult>> {
        let (outcome, change) = self.run(ws, command)?;
        let (node, status_changes) = outcome.into_node()?;
        Ok(InWorkspace::committed(
            ws,
            change,
            NodeResult { node_id: node.id.clone(), node, status_changes, held_by: None },
        ))
    }

    /// Deletes a node and its descendants. With `force`, also if a live session holds one of them.
    pub fn delete(
        &self,
        scope: &CallScope,
        node_id: NodeId,
        force: bool,
    ) -> Result<InWorkspace<DeletedSubtree>> {
        scope.check_session()?;
        let ws = &scope.workspace;
        let claimant = Claimant { session: scope.session.clone(), force, ..Claimant::default() };
        let (outcome, change) = self.run(ws, Command::DeleteNode { node_id, claimant })?;
        let deleted = outcome.into_deleted()?;
        for id in deleted.ids.iter().take(NOTED_DELETIONS) {
            self.note(ws, CallChange::Deleted { node: id.to_string() });
        }
        for HeldNode { id, title, holder } in deleted.held.iter().take(NOTED_DELETIONS) {
            let (node, title) = (id.to_string(), title.clone());
            let lost = LostClaim { node, title, is_deleted: true, ..LostClaim::default() };
            self.sessions.note_lost_claim(ws, scope.session.as_deref(), holder, lost);
        }
        self.core.prune_trash(ws.project.as_ref());
        let error = self.sessions.refocus_after_delete(ws, &deleted).err();
        let warnings = error.iter().map(|error| self.focus_warning(error)).collect();
        Ok(InWorkspace { warnings, ..InWorkspace::committed(ws, change, deleted) })
    }

    pub fn transition(
        &self,
        scope: &CallScope,
        node_id: NodeId,
        args: TransitionArgs<'_>,
    ) -> Result<InWorkspace<TransitionResult>> {
        scope.check_session()?;
        let (ws, session) = (&scope.workspace, scope.session.as_deref());
        let action = Action::parse("action", args.action)?;
        let agent = args.agent.map(|agent| text::fit(&text::one_line(agent.trim()), AGENT_COLUMNS));
        let agent = agent.filter(|agent| !agent.is_empty());
        if let Some(session) = session {
            // Before the transition, so that a concurrent session sees this one as live.
            self.sessions.record_activity(session);
        }
        let claimant = Claimant { session: scope.session.clone(), agent, force: args.force, person: None };
        let request =
            TransitionRequest { node_id: node_id.clone(), action, conclusion: args.conclusion, claimant };
        // A bound session has its own focus, so the focus of the workspace stays.
        let op = OpContext { moves_focus: scope.binding.is_none(), ..self.core.op() };
        let (outcome, mut change) = self.run_as(ws, Command::Transition { request }, &op)?;
        let mut step = outcome.into_transition()?;
        if action != Action::Submit {
            self.follow_focus(scope, &mut step, &mut change);
        }
        if !step.focus_moved {
            step.focus = self.sessions.resolver().focus(scope).unwrap_or_default();
        }
        self.note_step(scope, &step);
        let reminders = match step.to {
            NodeStatus::Completed => self.events.on_task_complete(session, ws, &step.node_id),
            _ => Vec::new(),
        };
        let next = match step.to {
            // The transition is durable, so an error of this read does not fail it.
            NodeStatus::Completed => {
                self.next(scope, 1).ok().and_then(|found| found.result.next).unwrap_or_default()
            }
            _ => Vec::new(),
        };
        let is_started = matches!(action, Action::Start | Action::Retry | Action::Reopen);
        let task = is_started.then(|| self.task(scope, &step.node_id));
        let result = TransitionResult { step, task, next, reminders };
        Ok(InWorkspace::committed(ws, change, result))
    }

    /// Notes a transition as a call of its session, and as the end of the claim of another one.
    fn note_step(&self, scope: &CallScope, step: &Transition) {
        if let Some(holder) = &step.previous_holder {
            let (node, title) = (step.node_id.to_string(), step.title.clone());
            let lost = LostClaim { node, title, is_taken: !step.to.is_done(), ..LostClaim::default() };
            self.sessions.note_lost_claim(&scope.workspace, scope.session.as_deref(), holder, lost);
        }
        let moved =
            CallChange::Moved { node: step.node_id.to_string(), to: step.to, title: step.title.clone() };
        let ws = &scope.workspace;
        self.core.note_call(scope.session.as_deref(), ws.project.as_ref(), ws.id.as_str(), moved);
    }

    /// Moves the focus of the session of a call after a transition.
    fn follow_focus(&self, scope: &CallScope, step: &mut Transition, change: &mut Change) {
        let Some(bound) = &scope.binding else { return };
        let moved = self.sessions.update_focus(bound, &step.node_id, step.to, step.focus.as_ref());
        step.focus_moved = moved.unwrap_or_else(|error| {
            change.secrets.warnings.push(self.focus_warning(&error));
            false
        });
    }

    /// Returns the warning for a change that is durable although the focus of the session could not be saved.
    fn focus_warning(&self, error: &Error) -> String {
        let lang = self.core.lang();
        let what = lang.pick(
            "更改已保存，但会话的聚焦没有更新：",
            "the change is saved, but the focus of the session was not updated: ",
        );
        format!("{what}{}", error.message(lang))
    }

    /// Returns the context of a node.
    pub fn context(&self, ws: &WorkspaceRef, node: &NodeId) -> Result<InWorkspace<Context>> {
        let context = ws.store().context(&ws.id, node, &self.core.config.context, self.core.now())?;
        Ok(InWorkspace::read(ws, context))
    }

    pub fn append_log(
        &self,
        ws: &WorkspaceRef,
        target: &Target,
        event: &str,
    ) -> Result<InWorkspace<LogResult>> {
        let command = Command::AppendLog { target: target.clone(), event: event.to_owned() };
        let (outcome, change) = self.run(ws, command)?;
        let (entry, total, queued) = outcome.into_log()?;
        self.note(ws, CallChange::Logged { node: target.to_string(), text: entry.event.clone() });
        let notice = queued.then(|| queued_notice(self.core.lang()));
        let result = LogResult { node_id: target.to_string(), entries: vec![entry], total, queued, notice };
        Ok(InWorkspace::committed(ws, change, result))
    }

    /// Returns the last `limit` log entries.
    pub fn log(&self, ws: &WorkspaceRef, target: &Target, limit: usize) -> Result<InWorkspace<LogResult>> {
        let mut entries = ws.store().activity(&ws.id, target, self.core.now())?.log;
        let total = entries.len();
        let entries = entries.split_off(total.saturating_sub(limit));
        let (node_id, queued, notice) = (target.to_string(), false, None);
        Ok(InWorkspace::read(ws, LogResult { node_id, entries, total, queued, notice }))
    }

    pub fn update_problem(
        &self,
        ws: &WorkspaceRef,
        target: &Target,
        change: ProblemChange,
    ) -> Result<InWorkspace<ProblemResult>> {
        self.change_problem(ws, target, Command::UpdateProblem { target: target.clone(), change })
    }

    pub fn clear_problem(&self, ws: &WorkspaceRef, target: &Target) -> Result<InWorkspace<ProblemResult>> {
        self.change_problem(ws, target, Command::ClearProblem { target: target.clone() })
    }

    fn change_problem(
        &self,
        ws: &WorkspaceRef,
        target: &Target,
        command: Command,
    ) -> Result<InWorkspace<ProblemResult>> {
        let is_clear = matches!(command, Command::ClearProblem { .. });
        let (outcome, change) = self.run(ws, command)?;
        let (problem, is_cleared) = outcome.into_problem()?;
        let cleared = is_clear.then_some(is_cleared);
        let node = target.to_string();
        // A next step alone is no problem.
        let description = problem.as_ref().map(|problem| problem.description.clone());
        let call = match description.filter(|text| !text.is_empty()) {
            Some(text) => CallChange::Problem { node, text },
            None => CallChange::Cleared { node },
        };
        self.note(ws, call);
        let result = ProblemResult { node_id: target.to_string(), problem, cleared };
        Ok(InWorkspace::committed(ws, change, result))
    }

    pub fn problem(&self, ws: &WorkspaceRef, target: &Target) -> Result<InWorkspace<ProblemResult>> {
        let problem = ws.store().activity(&ws.id, target, self.core.now())?.problem;
        Ok(InWorkspace::read(ws, ProblemResult { node_id: target.to_string(), problem, cleared: None }))
    }
}

/// Parses a role. `none` and an empty word mean no role.
pub fn parse_role(word: Option<&str>) -> Result<Option<NodeRole>> {
    match word {
        None | Some("" | "none") => Ok(None),
        Some(word) => Ok(Some(NodeRole::parse("role", word)?)),
    }
}
