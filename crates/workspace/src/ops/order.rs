//! Places a node before or after a sibling.

use super::node::move_node;
use super::*;

/// The place of a node among its siblings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NodePlace {
    Before(NodeId),
    After(NodeId),
}

impl NodePlace {
    fn sibling(&self) -> (&'static str, &NodeId) {
        match self {
            NodePlace::Before(id) => ("before", id),
            NodePlace::After(id) => ("after", id),
        }
    }
}

/// Moves a node with all descendants to a place beside another node. Gives new numbers to as few siblings as possible.
pub fn place_node(
    tx: &mut dyn Tx,
    id: &NodeId,
    place: &NodePlace,
    op: &OpContext,
) -> Result<(Node, Vec<StatusChange>)> {
    writable_workspace(tx)?;
    let (field, sibling) = place.sibling();
    let Some(parent) = existing_brief(tx, field, sibling)?.parent_id else {
        return Err(Error::invalid(field, "根节点没有同级节点", "the root node has no siblings"));
    };
    if sibling == id {
        return Err(Error::invalid(field, "节点不能排在自己旁边", "a node cannot be placed beside itself"));
    }
    let node = existing_node(tx, "nodeId", id)?;
    let mut changes = Vec::new();
    if id.is_root() || node.parent_id.as_ref() != Some(&parent) {
        changes = move_node(tx, id, &parent, op)?.1;
    }
    let mut orders: Vec<(NodeId, i64)> = Vec::new();
    for child in tx.children(&parent, None, usize::MAX)? {
        if child.id != *id {
            orders.push((child.id, child.position.order));
        }
    }
    let at = orders.iter().position(|(other, _)| other == sibling).unwrap_or(orders.len());
    let at = if matches!(place, NodePlace::Before(_)) { at } else { at + 1 };
    for (sibling, order) in renumbered(&orders, at.min(orders.len())) {
        let mut node = existing_node(tx, "nodeId", sibling.as_ref().unwrap_or(id))?;
        node.order = Some(order);
        // The siblings only make room, so they do not count as changed.
        node.updated_at = if sibling.is_none() { op.now } else { node.updated_at };
        tx.put_node(node)?;
    }
    Ok((existing_node(tx, "nodeId", id)?, changes))
}

/// The number of siblings that people created without one. They come last.
const NO_NUMBER: i64 = i64::MAX;
/// Numbers that leave room for others.
const USABLE: std::ops::Range<i64> = i64::MIN / 2..i64::MAX / 2;

/// Returns the new numbers of a node that is inserted at `at` (`None`) and of the siblings that make room for
/// it. Siblings without a number get one only if the node is placed after them.
fn renumbered(orders: &[(NodeId, i64)], at: usize) -> Vec<(Option<NodeId>, i64)> {
    let (before, after) = orders.split_at(at);
    if orders.iter().any(|(_, order)| *order != NO_NUMBER && !USABLE.contains(order)) {
        // There may be no room for another number, so all get new ones.
        let ids = before.iter().map(Some).chain([None]).chain(after.iter().map(Some));
        return ids.map(|sibling| sibling.map(|(id, _)| id.clone())).zip(1..).collect();
    }
    let has_number = before.last().is_none_or(|(_, order)| *order != NO_NUMBER);
    let upwards = make_room_after(before, after);
    let downwards = after.first().filter(|_| has_number).map(|next| make_room_before(before, next.1));
    match downwards {
        Some(downwards) if downwards.len() < upwards.len() => downwards,
        _ => upwards,
    }
}

/// Numbers the node after `before`, and moves the following siblings up as far as needed.
fn make_room_after(before: &[(NodeId, i64)], after: &[(NodeId, i64)]) -> Vec<(Option<NodeId>, i64)> {
    let mut changes = Vec::new();
    let first = before.first().map(|(_, order)| *order).filter(|order| *order != NO_NUMBER);
    let mut last = first.map_or(0, |order| order - 1);
    for (id, order) in before {
        if *order > last && *order != NO_NUMBER {
            last = *order;
        } else {
            last += 1;
            changes.push((Some(id.clone()), last));
        }
    }
    last += 1;
    changes.push((None, last));
    for (id, order) in after {
        if *order > last {
            break;
        }
        last += 1;
        changes.push((Some(id.clone()), last));
    }
    changes
}

/// Numbers the node before a sibling with the number `next`, and moves the preceding siblings down as far as needed.
fn make_room_before(before: &[(NodeId, i64)], next: i64) -> Vec<(Option<NodeId>, i64)> {
    let mut next = next.saturating_sub(1);
    let mut changes = vec![(None, next)];
    for (id, order) in before.iter().rev() {
        if *order < next {
            break;
        }
        next -= 1;
        changes.push((Some(id.clone()), next));
    }
    changes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn renumbered_siblings_are_in_the_wanted_order(
            mut numbers in prop::collection::vec(prop_oneof![8 => -3i64..8, 2 => Just(NO_NUMBER), 1 => Just(i64::MIN), 1 => Just(i64::MAX - 1)], 0..9),
            at in 0usize..9,
        ) {
            numbers.sort_unstable();
            let at = at.min(numbers.len());
            let id = |n: usize| NodeId::parse(&format!("node-{n}")).unwrap();
            let mut orders: Vec<(NodeId, i64)> = numbers.iter().enumerate().map(|(n, order)| (id(n), *order)).collect();
            let changes = renumbered(&orders, at);
            for (node, order) in &changes {
                match node {
                    Some(node) => orders.iter_mut().filter(|(id, _)| id == node).for_each(|(_, now)| *now = *order),
                    None => orders.insert(at, (NodeId::root(), *order)),
                }
            }
            let near = &orders[at.saturating_sub(1)..(at + 2).min(orders.len())];
            prop_assert!(near.windows(2).all(|pair| pair[0].1 < pair[1].1), "{:?}", orders);
            // People can write equal numbers; such siblings stay in the order of their creation.
            prop_assert!(orders.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{:?}", orders);
        }
    }
}
