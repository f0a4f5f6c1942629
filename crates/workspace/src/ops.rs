//! Operations on workspaces. Each function validates, decides and writes inside one transaction.
//!
//! The caller (agent, user, page) is described by an [`OpContext`]. Sessions and their focus are handled by callers of
//! this crate.

use serde::{Deserialize, Serialize};
use tanmi_base::{Lang, Millis};

use crate::error::{Error, Result};
use crate::model::*;
use crate::state::{self, Appearance};
use crate::store::{NodeBrief, Tx};

mod activity;
mod dependency;
mod list;
mod next;
mod node;
mod order;
mod plan;
mod restore;
mod search;
mod transition;
mod workspace;

pub use activity::{ProblemChange, Target, append_log, clear_problem, read_activity, update_problem};
pub(crate) use dependency::dependencies_to_wait_for;
pub use list::{AncestorTitle, ListQuery, ListRow, NodePage, list, rows};
pub use next::{BlockReason, BlockedNode, NextNode, NextNodes, StartedNode, find_next, start_next};
pub use node::{
    DeletedSubtree, HeldNode, NewNode, NodeChange, ReferenceEdit, RulesHashCheck, create_node, delete_node,
    deletes_claim, edit_reference, move_node, update_node,
};
pub use order::{NodePlace, place_node};
pub use plan::{NewPlan, PlannedNode, PlannedNodes, export, plan_nodes};
pub use restore::{restore_node, subtree_of};
pub use search::TextMatch;
pub use transition::{Claimant, Transition, TransitionRequest, overrides_claim, transition};
pub use workspace::{
    ListEdit, NewWorkspace, WorkspaceChange, archive, focus, init, new_workspace, restore, update_workspace,
};

/// When and by whom a change is made, and its side effects.
#[derive(Clone, Copy, Debug)]
pub struct OpContext {
    pub now: Millis,
    pub operator: Operator,
    /// Whether status changes are logged automatically.
    pub auto_log: bool,
    /// Whether the focus of the workspace moves too. `false` for a session that has its own focus.
    pub moves_focus: bool,
}

/// An automatic status change that was caused by another change in the tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusChange {
    pub node_id: NodeId,
    pub from: NodeStatus,
    pub to: NodeStatus,
}

/// Returns the workspace, or an error if it is archived.
pub(crate) fn writable_workspace(tx: &dyn Tx) -> Result<Workspace> {
    let workspace = tx.workspace()?;
    match workspace.status {
        WorkspaceStatus::Active => Ok(workspace),
        WorkspaceStatus::Archived => Err(Error::WorkspaceArchived { id: workspace.id, name: workspace.name }),
    }
}

fn existing_node(tx: &dyn Tx, field: &'static str, id: &NodeId) -> Result<Node> {
    tx.node(id)?.ok_or_else(|| Error::node_not_found(field, id))
}

fn existing_brief(tx: &dyn Tx, field: &'static str, id: &NodeId) -> Result<NodeBrief> {
    tx.brief(id)?.ok_or_else(|| Error::node_not_found(field, id))
}

/// Returns the language of log lines in a workspace.
fn lang_of(workspace: &Workspace) -> Lang {
    workspace.lang().unwrap_or_default()
}

/// Checks that an unfinished child may be added to `parent`.
fn check_parent(tx: &dyn Tx, parent: &NodeId) -> Result<()> {
    let brief = existing_brief(tx, "parentId", parent)?;
    if brief.damage.is_some() {
        // Fails with the path, line and reason of the damage.
        tx.node(parent)?;
    }
    if brief.kind == NodeType::Execution {
        return Err(Error::ParentIsExecution { parent: parent.clone() });
    }
    if brief.status == NodeStatus::Cancelled {
        return Err(Error::ParentCancelled { parent: parent.clone() });
    }
    Ok(())
}

/// Starts a pending parent and reopens completed ancestors because of an unfinished child.
fn propagate_child_appearance(
    tx: &mut dyn Tx,
    parent: &NodeId,
    appearance: Appearance,
    op: &OpContext,
) -> Result<Vec<StatusChange>> {
    let mut changes = Vec::new();
    let mut chain = vec![existing_brief(tx, "parentId", parent)?];
    chain.extend(tx.ancestors(parent)?);
    for (n, brief) in chain.iter().enumerate() {
        let appearance = if n == 0 { appearance } else { Appearance::Returned };
        let Some(to) = state::parent_status_when_child_appears(brief.status, appearance) else { continue };
        // The reopened node would be unfinished below a cancelled parent.
        if let Some(above) = chain.get(n + 1).filter(|above| above.status == NodeStatus::Cancelled) {
            return Err(Error::ParentCancelled { parent: above.id.clone() });
        }
        changes.push(set_status(tx, &brief.id, to, op)?);
    }
    Ok(changes)
}

/// Returns a node to planning after it lost its last child.
fn propagate_child_removal(tx: &mut dyn Tx, parent: &NodeId, op: &OpContext) -> Result<Vec<StatusChange>> {
    let Some(brief) = tx.brief(parent)? else { return Ok(Vec::new()) };
    let Some(to) = state::parent_status_when_last_child_removed(brief.status) else { return Ok(Vec::new()) };
    if tx.status_counts(parent)?.total() > 0 {
        return Ok(Vec::new());
    }
    let mut changes = vec![set_status(tx, parent, to, op)?];
    // A done node became unfinished, so its completed ancestors reopen too.
    if let Some(above) = brief.parent_id.filter(|_| brief.status.is_done()) {
        changes.extend(propagate_child_appearance(tx, &above, Appearance::Returned, op)?);
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
        move_conclusion_to_log(&mut node, lang_of(&tx.workspace()?), op);
    }
    tx.put_node(node)?;
    Ok(StatusChange { node_id: id.clone(), from, to })
}

/// The log entry (Chinese, English) of a new workspace.
pub const WORKSPACE_CREATED: (&str, &str) = ("创建工作区", "workspace created");
/// The prefix (Chinese, English) of log entries that tell which rules an update added and removed.
pub const RULES_CHANGED: (&str, &str) = ("规则变更：", "rules changed: ");
/// The prefix (Chinese, English) of log entries that keep the problem that was cleared.
pub const PROBLEM_CLEARED: (&str, &str) = ("已清除问题：", "problem cleared: ");
/// The prefix (Chinese, English) of log entries that tell who took a node over.
pub const TAKEN_OVER: (&str, &str) = ("已接手：", "taken over ");
/// The maximum width of a text that an automatic log entry repeats.
const LOGGED_COLUMNS: usize = 120;

/// The prefix (Chinese, English) of log entries that keep an old conclusion. Such entries are for people and are
/// excluded from the context.
pub const EARLIER_CONCLUSION: (&str, &str) = ("原结论：", "earlier conclusion: ");

/// Moves a conclusion that no longer applies to the log.
fn move_conclusion_to_log(node: &mut Node, lang: Lang, op: &OpContext) {
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
