//! What is below each node that has children, at any depth.

use std::collections::{BTreeSet, HashMap};

use serde::Serialize;

use super::NodeBrief;
use crate::model::*;

/// The nodes below a node. As in [`Progress`], failed nodes count only in `total`, and cancelled nodes do not count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BranchCounts {
    pub done: u64,
    pub total: u64,
    /// Implementing and validating nodes.
    pub running: u64,
    pub failed: u64,
    /// Nodes with an open problem.
    pub problems: u64,
}

impl BranchCounts {
    fn add(&mut self, other: &BranchCounts) {
        self.done += other.done;
        self.total += other.total;
        self.running += other.running;
        self.failed += other.failed;
        self.problems += other.problems;
    }
}

/// Adds up the counts of a tree from the children of each node.
#[derive(Default)]
pub(crate) struct BranchSums {
    parents: HashMap<NodeId, NodeId>,
    children: HashMap<NodeId, BranchCounts>,
}

impl BranchSums {
    pub fn of(nodes: &[NodeBrief]) -> BranchSums {
        let mut sums = BranchSums::default();
        for node in nodes {
            let Some(parent) = &node.parent_id else { continue };
            sums.set_parent(&node.id, parent);
            sums.add_children(parent, node.status, 1);
            if node.has_problem {
                sums.add_problem(parent);
            }
        }
        sums
    }

    pub fn set_parent(&mut self, id: &NodeId, parent: &NodeId) {
        self.parents.insert(id.clone(), parent.clone());
    }

    pub fn add_children(&mut self, parent: &NodeId, status: NodeStatus, count: u64) {
        let is = |wanted: &[NodeStatus]| if wanted.contains(&status) { count } else { 0 };
        let counts = self.children.entry(parent.clone()).or_default();
        counts.done += is(&[NodeStatus::Completed]);
        counts.total += count - is(&[NodeStatus::Cancelled]);
        counts.running += is(&[NodeStatus::Implementing, NodeStatus::Validating]);
        counts.failed += is(&[NodeStatus::Failed]);
    }

    pub fn add_problem(&mut self, parent: &NodeId) {
        self.children.entry(parent.clone()).or_default().problems += 1;
    }

    /// Returns the counts of each node that has children.
    pub fn finish(self) -> HashMap<NodeId, BranchCounts> {
        let mut branches: HashMap<NodeId, BranchCounts> = HashMap::new();
        for (id, counts) in &self.children {
            // Manual edits of files can create a cycle.
            let mut seen = BTreeSet::new();
            let mut next = Some(id);
            while let Some(above) = next.filter(|above| seen.insert(*above)) {
                branches.entry(above.clone()).or_default().add(counts);
                next = self.parents.get(above);
            }
        }
        branches
    }
}
