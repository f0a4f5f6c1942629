//! Dependencies: their checks, and what happens to them when nodes move or disappear.

use std::collections::BTreeSet;

use super::*;
use crate::dependencies::WaitGraph;
use crate::error::OpenDependency;
use crate::limits;
use crate::store::NodeRead;

/// Checks the dependencies of a node that were not among the old ones.
pub(super) fn check_new(tx: &dyn Tx, node: &Node, old: &[NodeId]) -> Result<()> {
    limits::check_list("dependsOn", node.depends_on.len())?;
    let added: Vec<&NodeId> = node.depends_on.iter().filter(|on| !old.contains(on)).collect();
    if added.is_empty() {
        return Ok(());
    }
    for on in &added {
        existing_brief(tx, "dependsOn", on)?;
    }
    let graph = wait_graph(tx, std::slice::from_ref(&node.id))?;
    for on in added {
        if node.id.is_root() || on.is_root() || graph.is_related(&node.id, on) {
            return Err(Error::invalid(
                "dependsOn",
                format!("节点不能依赖自己、它的祖先或后代（{on}）"),
                format!("a node cannot depend on itself, an ancestor or a descendant ({on})"),
            ));
        }
        if let Some(cycle) = graph.find_cycle(&node.id, on) {
            return Err(cycle_error(tx, cycle, false)?);
        }
    }
    Ok(())
}

/// Checks that a node does not wait for itself below its new parent.
pub(super) fn check_moved(tx: &dyn Tx, id: &NodeId) -> Result<()> {
    let graph = wait_graph(tx, std::slice::from_ref(id))?;
    match graph.find_cycle_through_parent(id) {
        Some(cycle) => Err(cycle_error(tx, cycle, true)?),
        None => Ok(()),
    }
}

fn cycle_error(tx: &dyn Tx, cycle: Vec<NodeId>, is_by_move: bool) -> Result<Error> {
    let mut nodes = Vec::new();
    for id in cycle {
        let title = tx.brief(&id)?.map(|brief| brief.title).unwrap_or_default();
        nodes.push((id, title));
    }
    Ok(Error::DependencyCycle { nodes, is_by_move })
}

/// Returns the nodes that dependencies concern, these nodes, and the ancestors of all. Empty if there are no
/// dependencies, because then no node can wait for itself.
fn wait_graph(tx: &dyn Tx, more: &[NodeId]) -> Result<WaitGraph<NodeId>> {
    let mut graph = WaitGraph::new();
    let dependencies = tx.dependencies()?;
    if dependencies.is_empty() {
        return Ok(graph);
    }
    let ends = dependencies.iter().flat_map(|(node, on)| [node, on]);
    let mut open: Vec<NodeId> = ends.chain(more).cloned().collect();
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop() {
        if !seen.insert(id.clone()) {
            continue;
        }
        if let Some(parent) = tx.brief(&id)?.and_then(|brief| brief.parent_id) {
            open.push(parent.clone());
            graph.add_child(parent, id);
        }
    }
    dependencies.into_iter().for_each(|(node, on)| graph.add_dependency(node, on));
    Ok(graph)
}

/// Fails if a dependency of the node or of an ancestor is not completed.
pub(super) fn check_completed(tx: &dyn Tx, node: &Node) -> Result<()> {
    let open = dependencies_to_wait_for(tx, node)?;
    match open.is_empty() {
        true => Ok(()),
        false => Err(Error::DependenciesOpen { node: node.id.clone(), open }),
    }
}

/// Returns the dependencies of a node and of its ancestors that are not completed.
pub(crate) fn dependencies_to_wait_for(tx: &dyn Tx, node: &Node) -> Result<Vec<OpenDependency>> {
    let mut ids = node.depends_on.clone();
    ids.extend(tx.ancestors(&node.id)?.into_iter().flat_map(|ancestor| ancestor.depends_on));
    open_dependencies(tx, &ids)
}

/// Returns the nodes among these that are not completed.
pub(super) fn open_dependencies(tx: &dyn Tx, ids: &[NodeId]) -> Result<Vec<OpenDependency>> {
    let mut open = Vec::new();
    for id in ids {
        let brief = tx.brief(id)?;
        let status = brief.as_ref().map(|brief| brief.status);
        if status != Some(NodeStatus::Completed) {
            let title = brief.map(|brief| limits::fit_title(&brief.title).into_owned()).unwrap_or_default();
            open.push(OpenDependency { node_id: id.clone(), title, status });
        }
    }
    Ok(open)
}

/// Removes from nodes that are about to be restored the dependencies that cannot be met any more, with a log
/// entry: on a node that does not exist, or one that waits for the node since. Puts the nodes into the
/// transaction on the way.
pub(super) fn drop_impossible(
    tx: &mut dyn Tx,
    restored: &mut [Node],
    lang: Lang,
    op: &OpContext,
) -> Result<()> {
    let wanted: Vec<Vec<NodeId>> =
        restored.iter_mut().map(|node| std::mem::take(&mut node.depends_on)).collect();
    for node in restored.iter() {
        tx.put_node(node.clone())?;
    }
    for (node, wanted) in restored.iter_mut().zip(wanted) {
        for on in wanted {
            let with = Node {
                depends_on: [&node.depends_on[..], std::slice::from_ref(&on)].concat(),
                ..node.clone()
            };
            match check_new(tx, &with, &node.depends_on) {
                Ok(()) => *node = with,
                Err(Error::NodeNotFound { .. } | Error::DependencyCycle { .. } | Error::Invalid { .. }) => {
                    let event = lang.pick(
                        format!("移除对 {on} 的依赖：恢复时已无法满足"),
                        format!("removed the dependency on {on}, which could not be met any more when this was restored"),
                    );
                    node.activity.log.push(LogEntry::new(op.now, op.operator, event));
                }
                Err(error) => return Err(error),
            }
            tx.put_node(node.clone())?;
        }
    }
    Ok(())
}

/// Removes the dependencies on nodes that are about to be deleted, with a log entry. Returns the nodes that had them.
pub(super) fn drop_deleted(
    tx: &mut dyn Tx,
    deleted: &[NodeBrief],
    lang: Lang,
    op: &OpContext,
) -> Result<Vec<NodeId>> {
    let find = |id: &NodeId| deleted.iter().find(|brief| brief.id == *id);
    let ids: BTreeSet<&NodeId> = deleted.iter().map(|brief| &brief.id).collect();
    let all: Vec<NodeId> = ids.iter().copied().cloned().collect();
    let mut dependents = tx.dependents(&all)?;
    dependents.retain(|node| !ids.contains(node));
    for read in tx.nodes(&dependents)? {
        // A damaged file must not prevent the deletion.
        let NodeRead::Node(mut node) = read else { continue };
        let gone: Vec<&NodeBrief> = node.depends_on.iter().filter_map(find).collect();
        for brief in gone {
            let event = lang.pick(
                format!("移除对“{}”（{}）的依赖：它已被删除", brief.title, brief.id),
                format!("removed the dependency on “{}” ({}), which was deleted", brief.title, brief.id),
            );
            node.activity.log.push(LogEntry::new(op.now, op.operator, event));
        }
        node.depends_on.retain(|on| !ids.contains(on));
        node.updated_at = op.now;
        tx.put_node(*node)?;
    }
    Ok(dependents)
}
