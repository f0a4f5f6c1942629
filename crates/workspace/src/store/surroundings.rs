//! What surrounds the focus of a session: the ancestors, children and references of the focused node. If no node or the root
//! is focused: the work in progress, open problems and what comes next.

use std::collections::{BTreeMap, BTreeSet};

use super::{NodeBrief, StatusCounts};
use crate::context::{ChildConclusion, ReferenceBlock};
use crate::error::OpenDependency;
use crate::model::*;

/// The maximum number of nodes with problems in an overview, and of nodes in progress.
const PROBLEMS: usize = 4;
const IN_PROGRESS: usize = 16;
/// The maximum number of nodes in progress that one session holds, so that those of others are there, too.
const OF_ONE_HOLDER: usize = 4;
/// The maximum number of nodes that come next.
const NEXT_NODES: usize = 3;
const CONCLUSIONS: usize = 5;
const REFERENCES: usize = 5;
/// The maximum number of levels above a node.
const MAX_ANCESTORS: usize = 30;
/// The maximum number of nodes that the search for the next nodes visits.
const MAX_VISITED: usize = 200;

/// The nodes of a workspace, for one snapshot. A node that cannot be read counts as missing.
pub trait SnapshotSource {
    fn node(&self, id: &NodeId) -> Option<Node>;
    fn brief(&self, id: &NodeId) -> Option<NodeBrief>;
    /// Returns the counts of the children of a node, or of all nodes.
    fn counts(&self, parent: Option<&NodeId>) -> Option<StatusCounts>;
    /// Returns the first children that are not done, in their order.
    fn open_children(&self, parent: &NodeId, limit: usize) -> Vec<NodeBrief>;
    /// Returns the children that were done last, the latest first.
    fn done_children(&self, parent: &NodeId, limit: usize) -> Vec<NodeBrief>;
    /// Returns the implementing and validating nodes, the latest status change first.
    fn started(&self, limit: usize) -> Vec<NodeBrief>;
    /// Returns the nodes with an open problem, the latest change first.
    fn with_problem(&self, limit: usize) -> Vec<NodeBrief>;
}

/// The surroundings of a node.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// The titles of its ancestors without the root, from the top down. Empty if the node is isolated.
    pub ancestors: Vec<String>,
    /// The latest conclusions of its children, the latest first.
    pub conclusions: Vec<ChildConclusion>,
    /// The conclusions of the nodes that it or one of these ancestors depends on.
    pub dependencies: Vec<ChildConclusion>,
    /// Its active references.
    pub references: Vec<ReferenceBlock>,
}

/// What a session that has no focus needs to know to continue the work.
#[derive(Clone, Debug, Default)]
pub struct Overview {
    pub in_progress: Vec<Node>,
    pub with_problem: Vec<Node>,
    /// The first pending execution nodes whose dependencies are completed, in the order of the tree.
    pub next: Vec<NodeBrief>,
    /// The first pending execution nodes with open dependencies. Together with `next` no more than three.
    pub waiting: Vec<WaitingNode>,
}

/// A node that cannot be started yet.
#[derive(Clone, Debug)]
pub struct WaitingNode {
    pub node: NodeBrief,
    /// The first node that it or an ancestor waits for.
    pub waits_for: OpenDependency,
}

impl Surroundings {
    pub fn of(source: &dyn SnapshotSource, node: &Node) -> Surroundings {
        let (ancestors, dependencies) = chain(source, node);
        Surroundings {
            ancestors,
            conclusions: conclusions(source, &node.id),
            dependencies: dependencies
                .iter()
                .filter_map(|id| conclusion(source, id))
                .take(CONCLUSIONS)
                .collect(),
            references: references(source, node),
        }
    }
}

impl Overview {
    pub fn of(source: &dyn SnapshotSource) -> Overview {
        let read =
            |briefs: Vec<NodeBrief>| briefs.iter().filter_map(|brief| source.node(&brief.id)).collect();
        let mut with_problem = source.with_problem(MAX_VISITED);
        with_problem.retain(|brief| !brief.status.is_done());
        with_problem.truncate(PROBLEMS);
        let with_problem: Vec<Node> = read(with_problem);
        let has_problem = |node: &Node| {
            let problem = node.activity.problem.as_ref().filter(|_| !node.status.is_done());
            problem.is_some_and(|problem| !problem.description.is_empty())
        };
        let (next, waiting) = next(source);
        Overview {
            in_progress: read(in_progress(source)),
            with_problem: with_problem.into_iter().filter(has_problem).collect(),
            next,
            waiting,
        }
    }
}

/// What counts as a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanScope {
    /// The whole workspace.
    Workspace,
    /// The whole workspace, or else each branch of the root. A branch that is still planned and has children is one, too.
    Branches,
}

/// Returns the number of tasks of a plan of which none is started, at most 200; 0 if there is no such plan.
pub fn unstarted_tasks(source: &dyn SnapshotSource, scope: PlanScope) -> usize {
    let root = NodeId::root();
    let top = source.open_children(&root, MAX_VISITED);
    let mut visits = MAX_VISITED;
    // A first level with a node that is not planned yet is no plan of its own.
    let is_planned =
        |node: &NodeBrief| node.kind == NodeType::Execution || node.status != NodeStatus::Pending;
    if top.iter().all(is_planned)
        && let Some(tasks) = count_unstarted(source, &root, &mut visits)
    {
        return tasks;
    }
    if scope == PlanScope::Workspace {
        return 0;
    }
    visits = MAX_VISITED;
    let mut tasks = 0;
    for branch in top {
        tasks += match branch.status {
            NodeStatus::Planning => source.open_children(&branch.id, MAX_VISITED).len(),
            NodeStatus::Monitoring => count_unstarted(source, &branch.id, &mut visits).unwrap_or(0),
            _ => 0,
        };
    }
    tasks.min(MAX_VISITED)
}

/// Returns the number of pending nodes below a node: those of its branch that an agent can start. `None` if a node of the
/// branch is started or done, or the branch has more nodes with children than `visits`.
fn count_unstarted(source: &dyn SnapshotSource, top: &NodeId, visits: &mut usize) -> Option<usize> {
    let mut tasks = 0;
    let mut open = vec![top.clone()];
    while let Some(parent) = open.pop() {
        *visits = visits.checked_sub(1)?;
        if !source.done_children(&parent, 1).is_empty() {
            return None;
        }
        for child in source.open_children(&parent, MAX_VISITED) {
            match child.status {
                NodeStatus::Pending => tasks += 1,
                NodeStatus::Monitoring => open.push(child.id),
                _ => return None,
            }
        }
    }
    Some(tasks.min(MAX_VISITED))
}

/// Returns the titles of the ancestors, from the top down, and the nodes on which the node and its ancestors depend, those
/// of the nearest one first.
fn chain(source: &dyn SnapshotSource, node: &Node) -> (Vec<String>, Vec<NodeId>) {
    let (mut titles, mut dependencies) = (Vec::new(), node.depends_on.clone());
    let mut parent = node.parent_id.clone().filter(|_| !node.isolated);
    while let Some(id) = parent.filter(|id| !id.is_root() && titles.len() < MAX_ANCESTORS) {
        let Some(brief) = source.brief(&id) else { break };
        parent = brief.parent_id.filter(|_| !brief.isolated);
        titles.push(brief.title);
        let is_new = |on: &NodeId| !dependencies.contains(on);
        let new: Vec<NodeId> = brief.depends_on.into_iter().filter(is_new).collect();
        dependencies.extend(new);
    }
    titles.reverse();
    (titles, dependencies)
}

fn conclusions(source: &dyn SnapshotSource, parent: &NodeId) -> Vec<ChildConclusion> {
    let children = source.done_children(parent, CONCLUSIONS);
    children.iter().filter_map(|child| conclusion(source, &child.id)).collect()
}

fn conclusion(source: &dyn SnapshotSource, id: &NodeId) -> Option<ChildConclusion> {
    let Node { id, title, status, conclusion, .. } = source.node(id)?;
    Some(ChildConclusion { id, title, status, conclusion: conclusion? })
}

fn references(source: &dyn SnapshotSource, node: &Node) -> Vec<ReferenceBlock> {
    let active = node.references.iter().filter(|reference| reference.status == RefStatus::Active);
    let block = |reference: &Reference| {
        let target = NodeId::parse(&reference.target_id).ok();
        let found = target.as_ref().and_then(|id| source.node(id));
        ReferenceBlock {
            target_id: reference.target_id.clone(),
            kind: reference.kind,
            description: reference.description.clone(),
            missing: target.is_some() && found.is_none(),
            title: found.as_ref().map(|node| node.title.clone()),
            status: found.as_ref().map(|node| node.status),
            conclusion: found.and_then(|node| node.conclusion),
        }
    };
    active.take(REFERENCES).map(block).collect()
}

/// Returns the nodes in progress, the latest status change first: some of each holder.
fn in_progress(source: &dyn SnapshotSource) -> Vec<NodeBrief> {
    let mut started = source.started(MAX_VISITED);
    let mut of_holder: BTreeMap<Option<String>, usize> = BTreeMap::new();
    started.retain(|node| {
        let count = of_holder.entry(node.holder.clone()).or_default();
        *count += 1;
        *count <= OF_ONE_HOLDER
    });
    started.truncate(IN_PROGRESS);
    started
}

/// Returns the first pending execution nodes in the order of the tree, below nodes that are not done: those that can be
/// started, and those that wait for others.
fn next(source: &dyn SnapshotSource) -> (Vec<NodeBrief>, Vec<WaitingNode>) {
    let (mut ready, mut waiting) = (Vec::new(), Vec::new());
    let mut seen = BTreeSet::from([NodeId::root()]);
    let children = |parent: &NodeId, waits_for: &Option<OpenDependency>| {
        let children = source.open_children(parent, MAX_VISITED).into_iter().rev();
        children.map(|child| (child, waits_for.clone())).collect::<Vec<_>>()
    };
    // The nodes that are still to be visited, the first one last, with what their ancestors wait for.
    let mut open = children(&NodeId::root(), &None);
    while let Some((node, waits_for)) = open.pop() {
        if ready.len() == NEXT_NODES || seen.len() > MAX_VISITED {
            break;
        }
        if !seen.insert(node.id.clone()) {
            continue;
        }
        let waits_for = waits_for.or_else(|| open_dependency(source, &node));
        // The index may not know yet that the file is damaged.
        let is_readable = |node: &NodeBrief| source.node(&node.id).is_some();
        match node.kind {
            NodeType::Execution if node.status == NodeStatus::Pending => match waits_for {
                None if is_readable(&node) => ready.push(node),
                Some(waits_for) if waiting.len() < NEXT_NODES && is_readable(&node) => {
                    waiting.push(WaitingNode { node, waits_for });
                }
                _ => {}
            },
            NodeType::Execution => {}
            NodeType::Planning => open.append(&mut children(&node.id, &waits_for)),
        }
    }
    waiting.truncate(NEXT_NODES - ready.len());
    (ready, waiting)
}

/// Returns the first node on which a node depends and that is not completed.
fn open_dependency(source: &dyn SnapshotSource, node: &NodeBrief) -> Option<OpenDependency> {
    node.depends_on.iter().find_map(|id| {
        let on = source.brief(id);
        let status = on.as_ref().map(|on| on.status);
        let title = on.map(|on| on.title).unwrap_or_default();
        (status != Some(NodeStatus::Completed)).then(|| OpenDependency { node_id: id.clone(), title, status })
    })
}
