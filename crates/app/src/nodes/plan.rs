//! Use cases for plans: an outline becomes nodes, nodes become an outline, and what can be started next.

use serde::Serialize;
use tanmi_workspace::command::Command;
use tanmi_workspace::model::*;
use tanmi_workspace::ops::{BlockedNode, Claimant, NewPlan, NextNode, OpContext, PlannedNodes, StartedNode};
use tanmi_workspace::outline;

use super::{InWorkspace, NodeService, TaskView};
use crate::calls::CallChange;
use crate::core::WorkspaceRef;
use crate::error::Result;
use crate::resolver::CallScope;

#[derive(Clone, Debug, Serialize)]
pub struct PlanResult {
    #[serde(flatten)]
    pub planned: PlannedNodes,
    /// The ids and titles as an indented list.
    pub outline: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct OutlineResult {
    pub outline: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct NextResult {
    /// The node that the call started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<StartedView>,
    /// The nodes that can be started now. Not looked up if the call started one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<Vec<NextNode>>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<BlockedNode>,
    pub progress: Progress,
}

/// A node that a call started, with what is needed to carry it out.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StartedView {
    pub node_id: NodeId,
    pub title: String,
    #[serde(rename = "type")]
    pub kind: NodeType,
    pub status: NodeStatus,
    #[serde(flatten)]
    pub task: TaskView,
    /// Whether another session started the node, which is no longer live.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub takeover: bool,
    #[serde(skip)]
    pub focus_moved: bool,
}

impl StartedView {
    fn new(started: StartedNode, task: TaskView) -> StartedView {
        let StartedNode { node, transition, takeover } = started;
        StartedView {
            node_id: node.id,
            title: node.title,
            kind: node.kind,
            status: node.status,
            task,
            takeover,
            focus_moved: transition.focus_moved,
        }
    }
}

impl NodeService {
    /// Creates the nodes of an outline below a parent, or none of them.
    pub fn plan(
        &self,
        ws: &WorkspaceRef,
        parent_id: NodeId,
        text: &str,
        rules_hash: Option<String>,
    ) -> Result<InWorkspace<PlanResult>> {
        let items = outline::parse(text)
            .map_err(|error| tanmi_workspace::Error::BadOutline { line: error.line, reason: error.reason })?;
        let rules_check = self.core.rules_hash_check(rules_hash);
        let command = Command::PlanNodes { plan: NewPlan { parent_id, items, rules_check } };
        let (outcome, change) = self.run(ws, command)?;
        let planned = outcome.into_planned()?;
        self.note(ws, CallChange::Created);
        let outline = planned.to_outline();
        Ok(InWorkspace::committed(ws, change, PlanResult { planned, outline }))
    }

    /// Returns a node with its descendants as an outline; for the root, its descendants only.
    pub fn export(&self, ws: &WorkspaceRef, node: &NodeId) -> Result<InWorkspace<OutlineResult>> {
        let outline = ws.store().outline(&ws.id, node, self.core.now())?;
        Ok(InWorkspace::read(ws, OutlineResult { outline }))
    }

    /// Returns the nodes that can be started now, or why there is none.
    pub fn next(&self, scope: &CallScope, limit: usize) -> Result<InWorkspace<NextResult>> {
        let (ws, claimant) = (&scope.workspace, claimant_of(scope));
        let found = ws.store().next(&ws.id, limit, &claimant, &self.sessions, self.core.now())?;
        let (next, blocked, progress) = (Some(found.next), found.blocked, found.progress);
        Ok(InWorkspace::read(ws, NextResult { started: None, next, blocked, progress }))
    }

    /// Claims and starts the first node that can be started, in one change.
    pub fn start_next(&self, scope: &CallScope) -> Result<InWorkspace<NextResult>> {
        scope.check_session()?;
        let ws = &scope.workspace;
        if let Some(session) = scope.session.as_deref() {
            // Before the start, so that a concurrent session sees this one as live.
            self.sessions.record_activity(session);
        }
        // A bound session has its own focus, so the focus of the workspace stays.
        let op = OpContext { moves_focus: scope.binding.is_none(), ..self.core.op() };
        let command = Command::StartNext { claimant: claimant_of(scope) };
        let (outcome, mut change) = self.run_as(ws, command, &op)?;
        let (found, mut started) = outcome.into_next()?;
        if let Some(started) = &mut started {
            let step = &mut started.transition;
            self.follow_focus(scope, step, &mut change);
            self.note_step(scope, step);
        }
        let started = started.map(|started| {
            let task = self.task(scope, &started.node.id);
            StartedView::new(started, task)
        });
        let next = started.is_none().then(Vec::new);
        let (blocked, progress) = (found.blocked, found.progress);
        Ok(InWorkspace::committed(ws, change, NextResult { started, next, blocked, progress }))
    }
}

fn claimant_of(scope: &CallScope) -> Claimant {
    Claimant { session: scope.session.clone(), ..Claimant::default() }
}
