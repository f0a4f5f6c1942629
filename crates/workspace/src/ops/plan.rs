//! Turns an outline into nodes, and nodes into an outline.

use std::collections::HashMap;

use super::node::check_rules_hash;
use super::*;
use crate::limits;
use crate::outline::{self, OutlineItem, OutlineTarget};
use crate::store::NodeRead;

/// A subtree to create.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewPlan {
    pub parent_id: NodeId,
    pub items: Vec<OutlineItem>,
    pub rules_check: RulesHashCheck,
}

/// A node that a plan created.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedNode {
    pub node_id: NodeId,
    pub title: String,
    /// Levels below the parent of the plan; the first level is 0.
    pub level: usize,
}

/// The nodes that a plan created, in the order of the outline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedNodes {
    pub parent_id: NodeId,
    pub nodes: Vec<PlannedNode>,
    pub status_changes: Vec<StatusChange>,
}

impl PlannedNodes {
    /// Returns the ids and titles as a list, indented by level.
    pub fn to_outline(&self) -> String {
        let line = |node: &PlannedNode| {
            let title = tanmi_base::text::one_line(&node.title);
            format!("{}- {} {title}\n", "  ".repeat(node.level), node.node_id)
        };
        self.nodes.iter().map(line).collect()
    }
}

/// Creates all nodes of a plan, or none.
pub fn plan_nodes(tx: &mut dyn Tx, plan: NewPlan, op: &OpContext) -> Result<PlannedNodes> {
    let workspace = writable_workspace(tx)?;
    check_rules_hash(&workspace, &plan.rules_check)?;
    check_parent(tx, &plan.parent_id)?;
    let NewPlan { parent_id, items, .. } = plan;
    let levels = levels_of(&items);
    let depth = tx.ancestors(&parent_id)?.len() + 1 + levels.iter().max().unwrap_or(&0);
    if depth > limits::DEPTH {
        return Err(Error::TooDeep { limit: limits::DEPTH });
    }
    let mut ids: Vec<NodeId> = items.iter().map(|_| NodeId::fresh(op.now)).collect();
    // Siblings with equal numbers and times, such as a restored node and one that was moved, are sorted by their ids.
    ids.sort_unstable();
    let done_before = lang_of(&workspace).pick("此前已完成", "done before");
    let mut last_orders = HashMap::from([(parent_id.clone(), tx.last_order(&parent_id)?)]);
    for (at, item) in items.iter().enumerate() {
        let parent = item.parent.map_or(&parent_id, |parent| &ids[parent]);
        let order = last_orders.entry(parent.clone()).or_insert(0);
        *order += 1;
        let has_children = items.iter().any(|other| other.parent == Some(at));
        let mut node = planned_node(item, ids[at].clone(), has_children, op);
        node.parent_id = Some(parent.clone());
        node.order = Some(*order);
        node.depends_on = item.depends_on.iter().map(|on| target_id(&ids, on)).collect();
        node.conclusion = item.is_completed.then(|| done_before.to_owned());
        limits::check_title("outline", &node.title)?;
        limits::check_text("outline", &node.requirement)?;
        tx.add_node(node)?;
    }
    for (item, id) in items.iter().zip(&ids) {
        check_existing_targets(tx, item, id)?;
    }
    let is_unfinished = items.iter().any(|item| item.parent.is_none() && !item.is_completed);
    let status_changes = match is_unfinished {
        true => propagate_child_appearance(tx, &parent_id, Appearance::New, op)?,
        false => Vec::new(),
    };
    let nodes = items.into_iter().zip(ids).zip(levels);
    let nodes = nodes.map(|((item, node_id), level)| PlannedNode { node_id, title: item.title, level });
    Ok(PlannedNodes { parent_id, nodes: nodes.collect(), status_changes })
}

fn levels_of(items: &[OutlineItem]) -> Vec<usize> {
    let mut levels: Vec<usize> = Vec::new();
    for item in items {
        levels.push(item.parent.map_or(0, |parent| levels[parent] + 1));
    }
    levels
}

fn target_id(ids: &[NodeId], target: &OutlineTarget) -> NodeId {
    match target {
        OutlineTarget::Item(at) => ids[*at].clone(),
        OutlineTarget::Node(id) => id.clone(),
    }
}

/// Checks the dependencies on nodes outside of the outline. Those inside were checked when it was read.
fn check_existing_targets(tx: &dyn Tx, item: &OutlineItem, id: &NodeId) -> Result<()> {
    let is_inside = |target: &&OutlineTarget| matches!(target, OutlineTarget::Item(_));
    let outside = item.depends_on.iter().filter(|target| !is_inside(target)).count();
    if outside == 0 {
        return Ok(());
    }
    let node = existing_node(tx, "outline", id)?;
    let inside: Vec<NodeId> = node
        .depends_on
        .iter()
        .zip(&item.depends_on)
        .filter(|(_, target)| is_inside(target))
        .map(|(id, _)| id.clone())
        .collect();
    dependency::check_new(tx, &node, &inside).map_err(|error| Error::BadOutline {
        line: item.line,
        reason: tanmi_base::Bilingual::new(error.message(Lang::Zh), error.message(Lang::En)),
    })
}

fn planned_node(item: &OutlineItem, id: NodeId, has_children: bool, op: &OpContext) -> Node {
    let kind = if has_children { NodeType::Planning } else { NodeType::Execution };
    let status = match (item.is_completed, has_children) {
        (true, _) => NodeStatus::Completed,
        (false, true) => NodeStatus::Monitoring,
        (false, false) => NodeStatus::Pending,
    };
    Node { status, requirement: item.requirement.clone(), ..Node::new(id, kind, &item.title, op.now) }
}

/// Returns a node with its descendants as an outline; for the root, its descendants only.
pub fn export(tx: &dyn Tx, top: &NodeId) -> Result<String> {
    let mut items: Vec<OutlineItem> = Vec::new();
    let mut positions: HashMap<NodeId, usize> = HashMap::new();
    let mut targets: Vec<Vec<NodeId>> = Vec::new();
    // The nodes that are still to be written, the first one last.
    let mut open: Vec<NodeId> = match top.is_root() {
        true => children_ids(tx, top)?,
        false => vec![existing_brief(tx, "nodeId", top)?.id],
    };
    while let Some(id) = open.pop() {
        let Some(NodeRead::Node(node)) = tx.nodes(std::slice::from_ref(&id))?.pop() else { continue };
        if positions.contains_key(&id) {
            continue;
        }
        positions.insert(id.clone(), items.len());
        items.push(OutlineItem {
            line: 0,
            parent: node.parent_id.as_ref().and_then(|parent| positions.get(parent)).copied(),
            title: node.title,
            requirement: node.requirement,
            is_completed: node.status == NodeStatus::Completed,
            depends_on: Vec::new(),
        });
        targets.push(node.depends_on);
        open.extend(children_ids(tx, &id)?);
    }
    // An item is only marked if all items below it are.
    for at in (0..items.len()).rev() {
        if let Some(parent) = items[at].parent.filter(|_| !items[at].is_completed) {
            items[parent].is_completed = false;
        }
    }
    for (item, targets) in items.iter_mut().zip(targets) {
        let target = |id: NodeId| match positions.get(&id) {
            Some(at) => OutlineTarget::Item(*at),
            None => OutlineTarget::Node(id),
        };
        item.depends_on = targets.into_iter().map(target).collect();
    }
    Ok(outline::write(&items))
}

/// Returns the ids of the children, the last one first.
fn children_ids(tx: &dyn Tx, parent: &NodeId) -> Result<Vec<NodeId>> {
    Ok(tx.children(parent, None, usize::MAX)?.into_iter().rev().map(|child| child.id).collect())
}
