//! What may be done with a workspace: each function checks, decides and puts, inside one transaction.
//!
//! Who calls (agent, person, page) arrives as an [`OpContext`]; what a session makes of the result is decided above.

use tanmi_base::{Lang, Millis};

use crate::error::{Error, Result};
use crate::model::*;
use crate::state::{self, Appearance};
use crate::store::{NodeBrief, Tx};

mod activity;
mod list;
mod node;
mod transition;
mod workspace;

pub use activity::{ProblemChange, Target, append_log, clear_problem, read_activity, update_problem};
pub use list::{ListQuery, ListRow, NodePage, list};
pub use node::{
    DeletedSubtree, NewNode, NodeChange, ReferenceEdit, RulesCheck, create_node, delete_node, edit_reference,
    move_node, update_node,
};
pub use transition::{Claimant, Transition, TransitionRequest, transition};
pub use workspace::{
    ListEdit, NewWorkspace, WorkspaceChange, archive, focus, init, restore, update_workspace,
};

/// The circumstances of a change.
#[derive(Clone, Copy, Debug)]
pub struct OpContext {
    pub now: Millis,
    pub operator: Operator,
    /// Whether the program notes status changes in the log.
    pub auto_log: bool,
    /// Whether the workspace's own focus follows; a session that has a focus of its own leaves it alone.
    pub moves_focus: bool,
}

/// A status that changed by itself because of a change elsewhere in the tree.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusChange {
    pub node_id: NodeId,
    pub from: NodeStatus,
    pub to: NodeStatus,
}

/// The workspace, if it may be written.
pub(crate) fn writable(tx: &dyn Tx) -> Result<Workspace> {
    let workspace = tx.workspace()?;
    match workspace.status {
        WorkspaceStatus::Active => Ok(workspace),
        WorkspaceStatus::Archived => Err(Error::WorkspaceArchived { id: workspace.id }),
    }
}

fn existing_node(tx: &dyn Tx, field: &'static str, id: &NodeId) -> Result<Node> {
    tx.node(id)?.ok_or_else(|| Error::node_not_found(field, id))
}

fn existing_brief(tx: &dyn Tx, field: &'static str, id: &NodeId) -> Result<NodeBrief> {
    tx.brief(id)?.ok_or_else(|| Error::node_not_found(field, id))
}

/// The language of a workspace: that of the words people gave it.
fn lang_of(workspace: &Workspace) -> Lang {
    Lang::of_text(&format!("{} {}", workspace.name, workspace.goal)).unwrap_or_default()
}

/// The ancestors of a node, nearest first. A ring that somebody edited into the files ends it.
pub fn ancestors(tx: &dyn Tx, id: &NodeId) -> Result<Vec<NodeBrief>> {
    let mut chain: Vec<NodeBrief> = Vec::new();
    let mut next = tx.brief(id)?.and_then(|brief| brief.parent_id);
    while let Some(parent) = next {
        if parent == *id || chain.iter().any(|known| known.id == parent) {
            break;
        }
        let Some(brief) = tx.brief(&parent)? else { break };
        next = brief.parent_id.clone();
        chain.push(brief);
    }
    Ok(chain)
}

/// Every node below `id`, parents before children.
fn descendants(tx: &dyn Tx, id: &NodeId) -> Result<Vec<NodeBrief>> {
    let mut found: Vec<NodeBrief> = Vec::new();
    let mut seen = std::collections::BTreeSet::from([id.clone()]);
    let mut open = vec![id.clone()];
    while let Some(parent) = open.pop() {
        for child in all_children(tx, &parent)? {
            if seen.insert(child.id.clone()) {
                open.push(child.id.clone());
                found.push(child);
            }
        }
    }
    Ok(found)
}

fn all_children(tx: &dyn Tx, parent: &NodeId) -> Result<Vec<NodeBrief>> {
    tx.children(parent, None, usize::MAX)
}

/// A place where an unfinished child may appear.
fn check_parent(tx: &dyn Tx, parent: &NodeId) -> Result<()> {
    let above = existing_brief(tx, "parentId", parent)?;
    if above.damage.is_some() {
        // Says where and why.
        tx.node(parent)?;
    }
    if above.kind == NodeType::Execution {
        return Err(Error::ParentIsExecution { parent: parent.clone() });
    }
    if above.status == NodeStatus::Cancelled {
        return Err(Error::ParentCancelled { parent: parent.clone() });
    }
    Ok(())
}

/// An unfinished child starts a pending parent and brings completed ancestors back.
fn child_appeared(
    tx: &mut dyn Tx,
    parent: &NodeId,
    appearance: Appearance,
    op: &OpContext,
) -> Result<Vec<StatusChange>> {
    let mut changes = Vec::new();
    let mut chain = vec![existing_brief(tx, "parentId", parent)?];
    chain.extend(ancestors(tx, parent)?);
    for (n, brief) in chain.iter().enumerate() {
        let appearance = if n == 0 { appearance } else { Appearance::Again };
        let Some(to) = state::parent_when_child_appears(brief.status, appearance) else { continue };
        // It would itself be unfinished under a cancelled parent.
        if let Some(above) = chain.get(n + 1).filter(|above| above.status == NodeStatus::Cancelled) {
            return Err(Error::ParentCancelled { parent: above.id.clone() });
        }
        changes.push(set_status(tx, &brief.id, to, op)?);
    }
    Ok(changes)
}

/// Losing the last child returns a node to planning.
fn child_removed(tx: &mut dyn Tx, parent: &NodeId, op: &OpContext) -> Result<Vec<StatusChange>> {
    let Some(brief) = tx.brief(parent)? else { return Ok(Vec::new()) };
    let Some(to) = state::parent_when_last_child_goes(brief.status) else { return Ok(Vec::new()) };
    if tx.status_counts(parent)?.total() > 0 {
        return Ok(Vec::new());
    }
    let mut changes = vec![set_status(tx, parent, to, op)?];
    // What was done is not any more, and so are the nodes above it that counted on it.
    if let Some(above) = brief.parent_id.filter(|_| brief.status.is_done()) {
        changes.extend(child_appeared(tx, &above, Appearance::Again, op)?);
    }
    Ok(changes)
}

pub(crate) fn set_status(
    tx: &mut dyn Tx,
    id: &NodeId,
    to: NodeStatus,
    op: &OpContext,
) -> Result<StatusChange> {
    let mut node = existing_node(tx, "nodeId", id)?;
    let from = node.status;
    node.status = to;
    node.status_changed_at = Some(op.now);
    node.updated_at = op.now;
    if from == NodeStatus::Completed {
        retire_conclusion(&mut node, lang_of(&tx.workspace()?), op);
    }
    tx.put_node(node)?;
    Ok(StatusChange { node_id: id.clone(), from, to })
}

/// What a log line that keeps an old conclusion begins with. Such lines are for people, and stay out of the context.
pub(crate) const EARLIER_CONCLUSION: (&str, &str) = ("原结论：", "earlier conclusion: ");

/// A conclusion that no longer holds goes into the log.
fn retire_conclusion(node: &mut Node, lang: Lang, op: &OpContext) {
    if let Some(old) = node.conclusion.take() {
        let event = format!("{}{old}", lang.pick(EARLIER_CONCLUSION.0, EARLIER_CONCLUSION.1));
        node.activity.log.push(LogEntry::new(op.now, op.operator, event));
    }
}

fn move_focus(tx: &mut dyn Tx, focus: Option<NodeId>, op: &OpContext) -> Result<()> {
    if !op.moves_focus {
        return Ok(());
    }
    let mut workspace = tx.workspace()?;
    if workspace.focused_node_id != focus {
        workspace.focused_node_id = focus;
        workspace.updated_at = op.now;
        tx.put_workspace(workspace)?;
    }
    Ok(())
}
