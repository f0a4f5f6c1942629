//! A node with its surroundings, and which actions are possible now.

use serde::Serialize;
use tanmi_workspace::limits::DEPTH;
use tanmi_workspace::model::*;
use tanmi_workspace::state::{self, Action, Prerequisite, TransitionRule};
use tanmi_workspace::store::{NodeBrief, NodeDetail};

use super::{InWorkspace, NodeService};
use crate::core::WorkspaceRef;
use crate::error::Result;
use crate::sessions::SessionLine;

/// The number of log entries in a view.
pub(crate) const LOG_ENTRIES: usize = 200;

/// A node with its surroundings and the actions that are possible now.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeView {
    pub node_id: NodeId,
    pub node: Node,
    /// See [`Node::version`].
    pub version: String,
    /// From the root down, at most the nearest [`DEPTH`].
    pub ancestors: Vec<NodeBrief>,
    pub children: ChildrenView,
    /// The nodes that it depends on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<NodeBrief>,
    /// The nodes that depend on it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dependents: Vec<NodeBrief>,
    /// The session that holds the node. A person who holds it is not a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<SessionLine>,
    /// Whether the node can be changed. Nodes of archived workspaces cannot.
    pub writable: bool,
    pub actions: Vec<AllowedAction>,
    /// The number of all log entries; the node contains only the latest ones.
    pub log_total: usize,
    /// Whether the stamps of the log are UTC, as the server of a team writes them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_utc: bool,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct ChildrenView {
    pub total: u64,
    pub done: u64,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AllowedAction {
    pub action: Action,
    pub to: NodeStatus,
    pub needs_conclusion: bool,
    /// Why the action fails now, although the status allows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked: Option<String>,
}

impl NodeService {
    /// Returns a node with its surroundings.
    pub fn view(&self, ws: &WorkspaceRef, id: &NodeId) -> Result<InWorkspace<NodeView>> {
        let detail = ws.store().node_detail(&ws.id, id, self.core.now())?;
        let actions = self.allowed_actions(&detail);
        let (mut node, mut ancestors) = (detail.node, detail.ancestors);
        // A deeper tree was not made through Tanmi: the nearest ancestors are enough.
        let ancestors = ancestors.split_off(ancestors.len().saturating_sub(DEPTH));
        let children = ChildrenView { total: detail.children.total(), done: detail.children.done() };
        let log_total = node.activity.log.len();
        node.activity.log = node.activity.log.split_off(log_total.saturating_sub(LOG_ENTRIES));
        let writable = detail.workspace_status == WorkspaceStatus::Active;
        let holder = node.started_by.as_deref().filter(|holder| *holder != PERSON);
        let view = NodeView {
            node_id: id.clone(),
            version: node.version(),
            writable,
            actions: if writable { actions } else { Vec::new() },
            ancestors,
            children,
            dependencies: detail.dependencies,
            dependents: detail.dependents,
            holder: holder.map(|session| self.sessions.holder_line(session, ws.project.as_ref())),
            log_total,
            is_utc: ws.project.has_utc_logs(),
            node,
        };
        Ok(InWorkspace::read(ws, view))
    }

    /// Returns the actions that the status of a node allows, and why one of them would fail.
    fn allowed_actions(&self, detail: &NodeDetail) -> Vec<AllowedAction> {
        let node = &detail.node;
        let has_children = detail.children.total() > 0;
        let steps = state::allowed(node.kind, node.status, has_children).into_iter();
        let steps = steps.filter_map(|action| state::find(node.kind, node.status, action, has_children));
        steps
            .map(|step| AllowedAction {
                action: step.action,
                to: step.to,
                needs_conclusion: step.needs.conclusion(),
                blocked: obstacle(detail, step).map(|error| error.message(self.core.lang())),
            })
            .collect()
    }
}

/// Returns the error of a transition that the status allows, as far as it is known before the transition.
fn obstacle(detail: &NodeDetail, step: &TransitionRule) -> Option<tanmi_workspace::Error> {
    use tanmi_workspace::Error;
    let node = detail.node.id.clone();
    let unfinished = detail.children.total() - detail.children.done();
    match step.action {
        Action::Start if !detail.open_dependencies.is_empty() => {
            Some(Error::DependenciesOpen { node, open: detail.open_dependencies.clone() })
        }
        Action::Complete if step.needs == Prerequisite::ChildrenDoneAndConclusion && unfinished > 0 => {
            Some(Error::ChildrenUnfinished { node, unfinished: Vec::new(), count: unfinished })
        }
        Action::Reopen | Action::Retry => {
            let parent = detail.ancestors.last().filter(|parent| parent.status == NodeStatus::Cancelled)?;
            Some(Error::ParentCancelled { parent: parent.id.clone() })
        }
        _ => None,
    }
}
