//! Reads of several nodes as loops over single ones, for transactions in the same process. A transaction elsewhere
//! answers each with one request instead.

use std::collections::BTreeSet;

use tanmi_base::Millis;

use super::{NodeBrief, NodeRead, TrashEntry, Tx};
use crate::error::{Error, Result};
use crate::model::*;
use crate::ops::{Target, subtree_of};

/// Returns one result for each id.
pub fn nodes(tx: &dyn Tx, ids: &[NodeId]) -> Result<Vec<NodeRead>> {
    let read = |id: &NodeId| match tx.node(id) {
        Ok(Some(node)) => Ok(NodeRead::Node(Box::new(node))),
        Ok(None) => Ok(NodeRead::Missing),
        Err(Error::Corrupt { .. }) => Ok(NodeRead::Damaged),
        Err(error) => Err(error),
    };
    ids.iter().map(read).collect()
}

/// Returns the ancestors of a node, nearest first.
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

/// Returns every node below `id`, parents before children.
pub fn subtree(tx: &dyn Tx, id: &NodeId) -> Result<Vec<NodeBrief>> {
    let mut found: Vec<NodeBrief> = Vec::new();
    let mut seen = BTreeSet::from([id.clone()]);
    let mut open = vec![id.clone()];
    while let Some(parent) = open.pop() {
        for child in tx.children(&parent, None, usize::MAX)? {
            if seen.insert(child.id.clone()) {
                open.push(child.id.clone());
                found.push(child);
            }
        }
    }
    Ok(found)
}

/// Appends an entry to the log of a node or of the workspace. Returns the number of all entries.
pub fn append_log(tx: &mut dyn Tx, target: &Target, entry: LogEntry, at: Millis) -> Result<usize> {
    let append = |activity: &mut Activity| {
        activity.log.push(entry);
        activity.last_log_at = Some(at);
        activity.log.len()
    };
    match target {
        Target::Workspace => {
            let mut workspace = tx.workspace()?;
            let total = append(&mut workspace.activity);
            workspace.updated_at = at;
            tx.put_workspace(workspace)?;
            Ok(total)
        }
        Target::Node(id) => {
            let mut node = tx.node(id)?.ok_or_else(|| Error::node_not_found("nodeId", id))?;
            let total = append(&mut node.activity);
            node.updated_at = at;
            tx.put_node(node)?;
            Ok(total)
        }
    }
}

/// A node that was deleted: the number of the change that deleted it, when, and the node.
pub type DeletedNode = (u64, Millis, Node);

/// Returns the deleted nodes of a workspace whose parents were not deleted with them. `missing` has those that do not
/// exist.
pub fn trash_entries(id: &WorkspaceId, missing: &[DeletedNode]) -> Vec<TrashEntry> {
    let of_deletion = |deletion: u64| missing.iter().filter(move |(other, ..)| *other == deletion);
    let is_top = |(deletion, _, node): &&DeletedNode| {
        of_deletion(*deletion).all(|(_, _, other)| Some(&other.id) != node.parent_id.as_ref())
    };
    let entry = |(deletion, at, node): &DeletedNode| {
        let nodes = of_deletion(*deletion).map(|(_, _, node)| node.clone()).collect();
        TrashEntry {
            workspace_id: id.clone(),
            node_id: Some(node.id.clone()),
            title: node.title.clone(),
            count: subtree_of(&node.id, nodes).len(),
            deleted_at: *at,
        }
    };
    missing.iter().filter(is_top).map(entry).collect()
}
