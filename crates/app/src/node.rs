//! Use cases for nodes, logs, problems and context.

use serde::Serialize;
use tanmi_workspace::command::{Command, Committed};
use tanmi_workspace::context::{self, Context};
use tanmi_workspace::model::*;
use tanmi_workspace::ops::{
    self, Claimant, DeletedSubtree, ListQuery, NewNode, NodeChange, NodePage, OpContext, ProblemChange,
    ReferenceEdit, StatusChange, Target, Transition, TransitionRequest,
};
use tanmi_workspace::state::Action;
use tanmi_workspace::store::LocalMaintenance;

use crate::App;
use crate::error::{Error, Result};
use crate::session::SessionBinding;

/// A result together with the id of its workspace.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InWorkspace<T> {
    pub workspace_id: WorkspaceId,
    /// The sequence number of the change, under the same key as in the change feed. `None` for a read.
    #[serde(rename = "change", skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// What failed after the change was durable.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    #[serde(flatten)]
    pub result: T,
}

impl<T> InWorkspace<T> {
    pub(crate) fn read(workspace_id: WorkspaceId, result: T) -> InWorkspace<T> {
        InWorkspace { workspace_id, seq: None, warnings: Vec::new(), result }
    }

    fn committed(workspace_id: WorkspaceId, seq: u64, result: T) -> InWorkspace<T> {
        InWorkspace { seq: Some(seq), ..InWorkspace::read(workspace_id, result) }
    }
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeResult {
    pub node_id: NodeId,
    pub node: Node,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub status_changes: Vec<StatusChange>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LogResult {
    /// A node id, or `workspace`.
    pub node_id: String,
    pub entries: Vec<LogEntry>,
    /// The number of all entries, not only those in `entries`.
    pub total: usize,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProblemResult {
    pub node_id: String,
    pub problem: Option<Problem>,
    /// Whether this call cleared a problem.
    #[serde(skip)]
    pub cleared: bool,
}

/// Arguments of a transition: the node, the action and the caller.
#[derive(Clone, Debug, Default)]
pub struct TransitionArgs<'a> {
    pub workspace: Option<&'a str>,
    pub node: &'a str,
    pub action: &'a str,
    pub conclusion: Option<String>,
    pub session: Option<&'a str>,
    /// The binding of the session, if it is bound to this workspace.
    pub bound: Option<&'a SessionBinding>,
    /// The subagent that works on the node.
    pub agent: Option<String>,
    /// Whether to claim the node even if a live session holds it.
    pub force: bool,
}

/// Arguments of a deletion: the node and the caller.
#[derive(Clone, Debug, Default)]
pub struct DeleteArgs<'a> {
    pub workspace: Option<&'a str>,
    pub node: &'a str,
    pub session: Option<&'a str>,
    /// The binding of the session, if it is bound to this workspace.
    pub bound: Option<&'a SessionBinding>,
    /// Whether to delete the node even if a live session holds it or a descendant.
    pub force: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct TransitionResult {
    #[serde(flatten)]
    pub step: Transition,
    /// Texts of the rules for this transition.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reminders: Vec<String>,
}

/// Arguments for a new node. Words are parsed here and not by the interfaces, so that errors name the field.
#[derive(Clone, Debug, Default)]
pub struct NodeCreate {
    pub workspace: Option<String>,
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

impl App {
    pub fn node_create(&self, new: NodeCreate) -> Result<InWorkspace<NodeResult>> {
        let parent_id = NodeId::parse_field("parentId", new.parent.as_deref().unwrap_or("root"))?;
        let node = NewNode {
            parent_id,
            kind: NodeType::parse("type", &new.kind)?,
            title: new.title,
            requirement: new.requirement,
            role: parse_role(new.role.as_deref())?,
            note: new.note,
            docs: new.docs,
            isolated: new.isolated,
            rules_check: self.rules_hash_check(new.rules_hash),
        };
        let ws = self.locate(new.workspace.as_deref())?;
        let Committed { outcome, seq } = self.run(&ws, &Command::CreateNode { node })?;
        let (node, status_changes) = outcome.into_node()?;
        Ok(InWorkspace::committed(ws.id, seq, NodeResult { node_id: node.id.clone(), node, status_changes }))
    }

    pub fn node_show(&self, workspace: Option<&str>, node: &str) -> Result<InWorkspace<NodeResult>> {
        let id = NodeId::parse(node)?;
        let ws = self.locate(workspace)?;
        let node = self.view(&ws, |tx| {
            tx.node(&id)?.ok_or_else(|| tanmi_workspace::Error::node_not_found("nodeId", &id))
        })?;
        Ok(InWorkspace::read(ws.id, NodeResult { node_id: id, node, status_changes: Vec::new() }))
    }

    pub fn node_list(&self, workspace: Option<&str>, query: &ListQuery) -> Result<InWorkspace<NodePage>> {
        let ws = self.locate(workspace)?;
        let page = self.view(&ws, |tx| ops::list(tx, query))?;
        Ok(InWorkspace::read(ws.id, page))
    }

    pub fn node_update(
        &self,
        workspace: Option<&str>,
        node: &str,
        change: NodeChange,
    ) -> Result<InWorkspace<NodeResult>> {
        if change.is_empty() {
            return Err(Error::NothingToChange);
        }
        let id = NodeId::parse(node)?;
        let ws = self.locate(workspace)?;
        let command = Command::UpdateNode { node_id: id.clone(), change };
        let Committed { outcome, seq } = self.run(&ws, &command)?;
        let (node, _) = outcome.into_node()?;
        Ok(InWorkspace::committed(ws.id, seq, NodeResult { node_id: id, node, status_changes: Vec::new() }))
    }

    pub fn node_move(
        &self,
        workspace: Option<&str>,
        node: &str,
        parent: &str,
    ) -> Result<InWorkspace<NodeResult>> {
        let id = NodeId::parse(node)?;
        let parent_id = NodeId::parse_field("parentId", parent)?;
        let ws = self.locate(workspace)?;
        let command = Command::MoveNode { node_id: id.clone(), parent_id };
        let Committed { outcome, seq } = self.run(&ws, &command)?;
        let (node, status_changes) = outcome.into_node()?;
        Ok(InWorkspace::committed(ws.id, seq, NodeResult { node_id: id, node, status_changes }))
    }

    pub fn node_delete(&self, args: DeleteArgs<'_>) -> Result<InWorkspace<DeletedSubtree>> {
        let node_id = NodeId::parse(args.node)?;
        let ws = self.locate(args.workspace)?;
        let session = args.session.map(String::from);
        let claimant = Claimant { session, force: args.force, ..Claimant::default() };
        let command = Command::DeleteNode { node_id, claimant };
        let Committed { outcome, seq } = self.run(&ws, &command)?;
        let deleted = outcome.into_deleted()?;
        self.prune_trash(&ws.store);
        let mut warnings = Vec::new();
        let env_session = self.env_session_binding();
        if let Some(session) = args.bound.or(env_session.as_ref()) {
            let refocused = self.refocus_after_delete(session, &deleted);
            warnings.extend(refocused.err().map(|error| self.focus_warning(&error)));
        }
        Ok(InWorkspace { warnings, ..InWorkspace::committed(ws.id, seq, deleted) })
    }

    pub fn node_transition(&self, step: TransitionArgs<'_>) -> Result<InWorkspace<TransitionResult>> {
        let id = NodeId::parse(step.node)?;
        let action = Action::parse("action", step.action)?;
        let agent = step
            .agent
            .as_deref()
            .map(|agent| tanmi_base::text::fit(&tanmi_base::text::one_line(agent.trim()), 80));
        let agent = agent.filter(|agent| !agent.is_empty());
        let ws = self.locate(step.workspace)?;
        if let Some(session) = step.session {
            // Before the transition, so that a concurrent session sees this one as live.
            self.record_activity(session);
        }
        let claimant = Claimant { session: step.session.map(String::from), agent, force: step.force };
        let request = TransitionRequest { node_id: id, action, conclusion: step.conclusion, claimant };
        // A bound session has its own focus, so the focus of the workspace stays.
        let op = OpContext { moves_focus: step.bound.is_none(), ..self.op() };
        let Committed { outcome, seq } = self.run_as(&ws, &Command::Transition { request }, &op)?;
        let mut done = outcome.into_transition()?;
        let mut warnings = Vec::new();
        if let Some(bound) = step.bound.filter(|_| action != Action::Submit) {
            let moved = self.update_session_focus(bound, step.node, done.to, done.focus.as_ref());
            done.focus_moved = moved.unwrap_or_else(|error| {
                warnings.push(self.focus_warning(&error));
                false
            });
        }
        let reminders = match done.to {
            NodeStatus::Completed => {
                self.on_task_complete(step.session, ws.store.project(), &ws.id, &done.node_id)
            }
            _ => Vec::new(),
        };
        let result = TransitionResult { step: done, reminders };
        Ok(InWorkspace { warnings, ..InWorkspace::committed(ws.id, seq, result) })
    }

    /// Returns the warning for a change that is durable although the focus of the session could not be saved.
    fn focus_warning(&self, error: &Error) -> String {
        let lang = self.lang(None);
        let what = lang.pick(
            "更改已保存，但会话的聚焦没有更新：",
            "the change is saved, but the focus of the session was not updated: ",
        );
        format!("{what}{}", error.message(lang))
    }

    pub fn node_reference(
        &self,
        workspace: Option<&str>,
        node: &str,
        target: &str,
        edit: ReferenceEdit,
    ) -> Result<InWorkspace<NodeResult>> {
        let id = NodeId::parse(node)?;
        let ws = self.locate(workspace)?;
        let command = Command::EditReference { node_id: id.clone(), target: target.to_owned(), edit };
        let Committed { outcome, seq } = self.run(&ws, &command)?;
        let (node, _) = outcome.into_node()?;
        Ok(InWorkspace::committed(ws.id, seq, NodeResult { node_id: id, node, status_changes: Vec::new() }))
    }

    /// Returns the context of a node. Without a node id, uses the focused node or the root.
    pub fn context(&self, workspace: Option<&str>, node: Option<&str>) -> Result<InWorkspace<Context>> {
        let node = node.map(NodeId::parse).transpose()?;
        let ws = self.locate(workspace)?;
        let limits = self.config().context;
        let focus = match node {
            Some(node) => node,
            None => self.focus_of(&ws)?.unwrap_or_else(NodeId::root),
        };
        let context = self.view(&ws, |tx| context::assemble(tx, &focus, &limits))?;
        Ok(InWorkspace::read(ws.id, context))
    }

    pub fn log_append(
        &self,
        workspace: Option<&str>,
        target: &str,
        event: &str,
    ) -> Result<InWorkspace<LogResult>> {
        let target = Target::parse(target)?;
        let ws = self.locate(workspace)?;
        let command = Command::AppendLog { target: target.clone(), event: event.to_owned() };
        let Committed { outcome, seq } = self.run(&ws, &command)?;
        let (entry, total) = outcome.into_log()?;
        let result = LogResult { node_id: target.to_string(), entries: vec![entry], total };
        Ok(InWorkspace::committed(ws.id, seq, result))
    }

    /// Returns the last `limit` log entries.
    pub fn log_show(
        &self,
        workspace: Option<&str>,
        target: &str,
        limit: usize,
    ) -> Result<InWorkspace<LogResult>> {
        let target = Target::parse(target)?;
        let ws = self.locate(workspace)?;
        let mut entries = self.view(&ws, |tx| ops::read_activity(tx, &target))?.log;
        let total = entries.len();
        let entries = entries.split_off(total.saturating_sub(limit));
        Ok(InWorkspace::read(ws.id, LogResult { node_id: target.to_string(), entries, total }))
    }

    pub fn problem_update(
        &self,
        workspace: Option<&str>,
        target: &str,
        change: ProblemChange,
    ) -> Result<InWorkspace<ProblemResult>> {
        let target = Target::parse(target)?;
        let ws = self.locate(workspace)?;
        let command = Command::UpdateProblem { target: target.clone(), change };
        let Committed { outcome, seq } = self.run(&ws, &command)?;
        let (problem, cleared) = outcome.into_problem()?;
        let result = ProblemResult { node_id: target.to_string(), problem, cleared };
        Ok(InWorkspace::committed(ws.id, seq, result))
    }

    pub fn problem_clear(&self, workspace: Option<&str>, target: &str) -> Result<InWorkspace<ProblemResult>> {
        let target = Target::parse(target)?;
        let ws = self.locate(workspace)?;
        let command = Command::ClearProblem { target: target.clone() };
        let Committed { outcome, seq } = self.run(&ws, &command)?;
        let (problem, cleared) = outcome.into_problem()?;
        let result = ProblemResult { node_id: target.to_string(), problem, cleared };
        Ok(InWorkspace::committed(ws.id, seq, result))
    }

    pub fn problem_show(&self, workspace: Option<&str>, target: &str) -> Result<InWorkspace<ProblemResult>> {
        let target = Target::parse(target)?;
        let ws = self.locate(workspace)?;
        let problem = self.view(&ws, |tx| ops::read_activity(tx, &target))?.problem;
        Ok(InWorkspace::read(ws.id, ProblemResult { node_id: target.to_string(), problem, cleared: false }))
    }
}

/// Parses a role. `none` and an empty word mean no role.
pub fn parse_role(word: Option<&str>) -> Result<Option<NodeRole>> {
    match word {
        None | Some("" | "none") => Ok(None),
        Some(word) => Ok(Some(NodeRole::parse("role", word)?)),
    }
}
