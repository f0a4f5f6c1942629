//! [`ContextSnapshots`]: the little that a hook reads of a workspace, without waiting.

use std::path::PathBuf;

use tanmi_base::Millis;

use crate::codec::ParseError;
use crate::model::{Node, NodeId, NodeStatus, Progress, Workspace, WorkspaceId};
use crate::store::{Overview, PlanScope, SnapshotSource, StatusCounts, Surroundings};

#[derive(Debug)]
pub struct ContextSnapshot {
    pub workspace: Workspace,
    /// The focused node, if there is one and it can be read.
    pub node: Option<Node>,
    /// The file of the focused node, if it cannot be read.
    pub damaged_focus: Option<DamagedNode>,
    /// Counts of its children, if the node is planning or monitoring.
    pub children: Option<StatusCounts>,
    pub progress: Option<Progress>,
    /// The surroundings of the focused node.
    pub surroundings: Option<Surroundings>,
    /// Read only if no node but the root is focused.
    pub overview: Option<Overview>,
}

impl ContextSnapshot {
    /// Returns the node of a snapshot: `focus`, or the focus of the workspace.
    pub fn focus(workspace: &Workspace, focus: Option<&str>) -> Option<NodeId> {
        focus.and_then(|id| NodeId::parse(id).ok()).or_else(|| workspace.focused_node_id.clone())
    }

    /// Returns the snapshot of a workspace and its focused node. Without a source it has no more than these.
    pub fn of(
        workspace: Workspace,
        node: Option<Node>,
        depth: SnapshotDepth,
        source: Option<&dyn SnapshotSource>,
    ) -> ContextSnapshot {
        let parent = node.as_ref().filter(|node| has_counts(node));
        let deep = source.filter(|_| depth >= SnapshotDepth::Surroundings);
        ContextSnapshot {
            children: parent.zip(source).and_then(|(parent, source)| source.counts(Some(&parent.id))),
            progress: source
                .filter(|_| depth >= SnapshotDepth::Progress)
                .and_then(|source| source.counts(None))
                .map(|counts| counts.progress()),
            surroundings: node.as_ref().zip(deep).map(|(node, source)| Surroundings::of(source, node)),
            overview: deep.filter(|_| node.as_ref().is_none_or(|node| node.id.is_root())).map(Overview::of),
            damaged_focus: None,
            workspace,
            node,
        }
    }
}

/// Returns whether a snapshot has the counts of the children of a node.
pub(super) fn has_counts(node: &Node) -> bool {
    matches!(node.status, NodeStatus::Planning | NodeStatus::Monitoring)
}

impl Relations {
    /// Returns the relations of a node with this parent. Without a source there are no counts.
    pub fn of(node: Option<&Node>, parent: Option<Node>, source: Option<&dyn SnapshotSource>) -> Relations {
        let children_of = |node: &Node| source?.counts(Some(&node.id));
        Relations {
            progress: source.and_then(|source| source.counts(None)).map(|counts| counts.progress()),
            children: node.and_then(children_of),
            parent: parent.map(|parent| {
                let children = children_of(&parent);
                (parent, children)
            }),
        }
    }
}

/// A node whose file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedNode {
    pub id: NodeId,
    pub path: PathBuf,
    pub error: ParseError,
}

/// The place of a node in the tree of its workspace. Counts are `None` if the index does not have them.
#[derive(Debug, Default)]
pub struct Relations {
    /// The progress of the workspace.
    pub progress: Option<Progress>,
    /// Counts of the children of the node.
    pub children: Option<StatusCounts>,
    /// The parent of the node, and counts of its children.
    pub parent: Option<(Node, Option<StatusCounts>)>,
}

/// How much to read. Each depth includes those before it, and takes longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SnapshotDepth {
    /// The workspace and the focused node.
    Focus,
    /// The progress of the workspace.
    Progress,
    /// The surroundings of the focused node, or the overview.
    Surroundings,
}

/// The source of context snapshots.
pub trait ContextSnapshots: Send + Sync {
    /// Reads a context snapshot. `focus` overrides the focus of the workspace. Returns `None` if the workspace does not
    /// exist or cannot be read.
    fn context_snapshot(
        &self,
        id: &WorkspaceId,
        focus: Option<&str>,
        depth: SnapshotDepth,
    ) -> Option<ContextSnapshot>;

    /// Reads the work in progress, open problems and what comes next, also if a node is focused.
    fn overview(&self, id: &WorkspaceId) -> Option<Overview>;

    /// Returns the number of tasks of a plan of which none is started, see
    /// [`unstarted_tasks`](crate::store::unstarted_tasks). `None` if that cannot be read.
    fn unstarted_tasks(&self, id: &WorkspaceId, scope: PlanScope) -> Option<usize>;

    /// Returns when a transaction last changed the workspace, if that is known without reading its nodes.
    fn changed_at(&self, id: &WorkspaceId) -> Option<Millis>;

    /// Returns the name of a workspace that was deleted and can be restored, if that is known without reading others.
    fn deleted_name(&self, _id: &WorkspaceId) -> Option<String> {
        None
    }

    /// Reads what a snapshot lacks: counts from the index, and the parent of the node.
    fn relations(&self, id: &WorkspaceId, node: Option<&Node>) -> Relations;
}
