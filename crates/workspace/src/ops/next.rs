//! What can be started next, in the order of the tree, and why nothing can.

use std::collections::{BTreeSet, HashMap, VecDeque};

use super::*;
use crate::command::LiveSessions;
use crate::error::OpenDependency;
use crate::limits::fit_title;
use crate::state::Action;
use crate::store::{NodeSelection, SiblingPosition};

/// A node that can be started now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NextNode {
    pub node_id: NodeId,
    pub title: String,
    #[serde(rename = "type")]
    pub kind: NodeType,
    /// Whether the node was started by a session that is no longer live.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub takeover: bool,
}

/// Why work that is not done cannot be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockReason {
    /// A dependency is not completed.
    Dependencies,
    /// A session or a person works on it.
    InProgress,
    /// All children are done, so the node can be completed.
    ChildrenDone,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BlockedNode {
    pub node_id: NodeId,
    pub title: String,
    pub status: NodeStatus,
    pub reason: BlockReason,
    /// The dependencies that are not completed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<OpenDependency>,
    /// The session that works on the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// The person and the machine of that session, if it is one of a team.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder_name: Option<String>,
}

/// The nodes that can be started now. `blocked` says why there is none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NextNodes {
    pub next: Vec<NextNode>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<BlockedNode>,
    pub progress: Progress,
}

/// The node that was started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StartedNode {
    pub node: Node,
    pub transition: Transition,
    pub takeover: bool,
}

/// The number of reasons in an answer.
const REASONS: usize = 5;
/// The number of blocked nodes that are looked at.
const MAX_BLOCKED: usize = 100;
/// The number of claimed nodes whose holders are looked at.
const MAX_HELD: usize = 1000;

/// Returns up to `limit` nodes that can be started now. Ready nodes come first, in the order of the tree;
/// then nodes whose holder is dead, the earliest first.
pub fn find_next(
    tx: &dyn Tx,
    limit: usize,
    claimant: &Claimant,
    sessions: &dyn LiveSessions,
) -> Result<NextNodes> {
    let Ready { mut next, can_complete } = find_ready(tx, limit)?;
    if next.len() < limit {
        next.extend(find_takeovers(tx, limit - next.len(), claimant, sessions)?);
    }
    let blocked = if next.is_empty() { find_reasons(tx, can_complete)? } else { Vec::new() };
    Ok(NextNodes { next, blocked, progress: tx.total()?.progress() })
}

/// Starts the first node that can be started.
pub fn start_next(
    tx: &mut dyn Tx,
    claimant: Claimant,
    op: &OpContext,
    sessions: &dyn LiveSessions,
) -> Result<(NextNodes, Option<StartedNode>)> {
    writable_workspace(tx)?;
    let next = find_next(tx, 1, &claimant, sessions)?;
    let Some(first) = next.next.first() else { return Ok((next, None)) };
    let (node_id, takeover) = (first.node_id.clone(), first.takeover);
    let request =
        TransitionRequest { node_id: node_id.clone(), action: Action::Start, conclusion: None, claimant };
    tx.prefetch(std::slice::from_ref(&node_id))?;
    let transition = transition(tx, request, op, sessions)?;
    let node = existing_node(tx, "nodeId", &node_id)?;
    Ok((next, Some(StartedNode { node, transition, takeover })))
}

impl NextNode {
    fn new(brief: NodeBrief, takeover: bool) -> NextNode {
        let title = fit_title(&brief.title).into_owned();
        NextNode { node_id: brief.id, title, kind: brief.kind, takeover }
    }
}

/// What a walk through the tree found.
struct Ready {
    next: Vec<NextNode>,
    /// Planning nodes whose children are all done.
    can_complete: Vec<NodeBrief>,
}

/// One level of the walk: a node whose unblocked children are visited in order.
struct Level {
    node: NodeBrief,
    after: Option<SiblingPosition>,
    children: VecDeque<NodeBrief>,
    has_children: bool,
}

impl Level {
    fn new(node: NodeBrief) -> Level {
        Level { node, after: None, children: VecDeque::new(), has_children: false }
    }

    fn next(&mut self, tx: &dyn Tx, page_size: usize) -> Result<Option<NodeBrief>> {
        if self.children.is_empty() {
            let selection = NodeSelection::Unblocked { parent: &self.node.id, after: self.after.as_ref() };
            self.children = tx.select(&selection, page_size.clamp(4, 64))?.into();
            self.has_children |= !self.children.is_empty();
            self.after = self.children.back().map(|last| last.position.clone());
        }
        Ok(self.children.pop_front())
    }
}

/// Walks through the nodes that are neither done nor blocked, in the order of the tree.
fn find_ready(tx: &dyn Tx, limit: usize) -> Result<Ready> {
    let mut ready = Ready { next: Vec::new(), can_complete: Vec::new() };
    let root = existing_brief(tx, "nodeId", &NodeId::root())?;
    let mut levels = if root.status.is_done() { Vec::new() } else { vec![Level::new(root)] };
    let mut visited: BTreeSet<NodeId> = BTreeSet::new();
    while let Some(level) = levels.last_mut().filter(|_| ready.next.len() < limit) {
        let Some(brief) = level.next(tx, limit - ready.next.len())? else {
            let level = levels.pop();
            let empty = level.filter(|level| !level.has_children && !level.node.id.is_root());
            if let Some(level) = empty.filter(|_| ready.can_complete.len() < REASONS) {
                let counts = tx.status_counts(&level.node.id)?;
                ready.can_complete.extend(
                    Some(level.node).filter(|_| counts.total() > 0 && counts.done() == counts.total()),
                );
            }
            continue;
        };
        // The second check reads the files of the dependencies. A cycle in the tree can come from manual edits.
        if !visited.insert(brief.id.clone())
            || !dependency::open_dependencies(tx, &brief.depends_on)?.is_empty()
        {
            continue;
        }
        let is_leaf = brief.kind == NodeType::Execution || tx.status_counts(&brief.id)?.total() == 0;
        match (is_leaf, brief.status) {
            (true, NodeStatus::Pending) => ready.next.push(NextNode::new(brief, false)),
            (true, _) => {}
            (false, _) => levels.push(Level::new(brief)),
        }
    }
    Ok(ready)
}

/// Returns nodes in progress whose holder is dead and that are not below a done node.
fn find_takeovers(
    tx: &dyn Tx,
    limit: usize,
    claimant: &Claimant,
    sessions: &dyn LiveSessions,
) -> Result<Vec<NextNode>> {
    let mut live: HashMap<String, bool> = HashMap::new();
    let mut found = Vec::new();
    for brief in tx.select(&NodeSelection::Held, MAX_HELD)? {
        if found.len() == limit {
            break;
        }
        let Some(holder) = brief.holder.clone().filter(|_| brief.status != NodeStatus::Pending) else {
            continue;
        };
        let is_live = *live
            .entry(holder)
            .or_insert_with_key(|holder| claimant.is(holder) || transition::is_live(holder, sessions));
        let is_leaf = brief.kind == NodeType::Execution || tx.status_counts(&brief.id)?.total() == 0;
        if !is_live && is_leaf && !tx.ancestors(&brief.id)?.iter().any(|above| above.status.is_done()) {
            found.push(NextNode::new(brief, true));
        }
    }
    Ok(found)
}

/// Returns why nothing can be started: what can be completed, what is in progress, and what waits for dependencies.
fn find_reasons(tx: &dyn Tx, can_complete: Vec<NodeBrief>) -> Result<Vec<BlockedNode>> {
    let blocked = |brief: NodeBrief, reason| BlockedNode {
        title: fit_title(&brief.title).into_owned(),
        node_id: brief.id,
        status: brief.status,
        reason,
        waits_for: Vec::new(),
        holder: brief.holder.filter(|_| reason == BlockReason::InProgress),
        holder_name: None,
    };
    let mut reasons: Vec<BlockedNode> =
        can_complete.into_iter().map(|brief| blocked(brief, BlockReason::ChildrenDone)).collect();
    let started = tx.select(&NodeSelection::Started, REASONS)?;
    reasons.extend(started.into_iter().map(|brief| blocked(brief, BlockReason::InProgress)));
    for (brief, waits_for) in find_blocked(tx)? {
        reasons.push(BlockedNode { waits_for, ..blocked(brief, BlockReason::Dependencies) });
    }
    Ok(reasons)
}

/// Returns the first nodes that wait for dependencies, in the order of the tree. A node below another one of
/// them is left out, because that one has to start first.
fn find_blocked(tx: &dyn Tx) -> Result<Vec<(NodeBrief, Vec<OpenDependency>)>> {
    let mut found = Vec::new();
    for brief in tx.select(&NodeSelection::Blocked, MAX_BLOCKED)? {
        let ancestors = tx.ancestors(&brief.id)?;
        let path = ancestors.iter().rev().map(|above| above.position.clone());
        let path: Vec<SiblingPosition> = path.chain([brief.position.clone()]).collect();
        found.push((path, brief, ancestors));
    }
    found.sort_by(|(a, ..), (b, ..)| a.cmp(b));
    let ids: BTreeSet<NodeId> = found.iter().map(|(_, brief, _)| brief.id.clone()).collect();
    let is_topmost = |ancestors: &[NodeBrief]| !ancestors.iter().any(|above| ids.contains(&above.id));
    let mut blocked = Vec::new();
    for (_, brief, _) in found.into_iter().filter(|(.., ancestors)| is_topmost(ancestors)).take(REASONS) {
        let waits_for = dependency::open_dependencies(tx, &brief.depends_on)?;
        blocked.push((brief, waits_for));
    }
    Ok(blocked)
}
