//! Restores deleted nodes from the trash.

use super::node::height_of;
use super::*;
use crate::limits;

/// Restores a node and the descendants that were deleted with it, below its former parent.
pub fn restore_node(tx: &mut dyn Tx, id: &NodeId, op: &OpContext) -> Result<(Node, Vec<StatusChange>)> {
    let workspace = writable_workspace(tx)?;
    let not_in_trash = || Error::NotInTrash { node: id.to_string() };
    if tx.brief(id)?.is_some() {
        return Err(not_in_trash());
    }
    let mut nodes = tx.trashed(id)?;
    let node = nodes.first_mut().ok_or_else(not_in_trash)?;
    node.updated_at = op.now;
    let node = node.clone();
    let parent = node.parent_id.clone().ok_or_else(not_in_trash)?;
    let Some(above) = tx.brief(&parent)? else {
        return Err(Error::ParentDeleted { node: id.clone(), parent });
    };
    if !node.status.is_done() {
        check_parent(tx, &parent)?;
    } else if above.kind == NodeType::Execution {
        return Err(Error::ParentIsExecution { parent });
    }
    let links = nodes.iter().map(|node| (node.id.clone(), node.parent_id.clone()));
    if tx.ancestors(&parent)?.len() + 1 + height_of(id, links) > limits::DEPTH {
        return Err(Error::TooDeep { limit: limits::DEPTH });
    }
    dependency::drop_impossible(tx, &mut nodes, lang_of(&workspace), op)?;
    let node = nodes.swap_remove(0);
    let changes = match node.status.is_done() {
        true => Vec::new(),
        false => propagate_child_appearance(tx, &parent, Appearance::New, op)?,
    };
    Ok((node, changes))
}

/// Returns a node and those of the other nodes that are below it, parents first.
pub fn subtree_of(id: &NodeId, mut nodes: Vec<Node>) -> Vec<Node> {
    let mut found: Vec<Node> = Vec::new();
    let mut wanted = vec![id.clone()];
    while let Some(id) = wanted.pop() {
        if let Some(at) = nodes.iter().position(|node| node.id == id) {
            found.push(nodes.swap_remove(at));
            let children = nodes.iter().filter(|node| node.parent_id.as_ref() == Some(&id));
            wanted.extend(children.map(|node| node.id.clone()));
        }
    }
    found
}
