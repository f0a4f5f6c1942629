//! [`ContextSnapshots`]: the little that a hook reads of a workspace, without waiting.

use crate::model::{Node, Progress, Workspace, WorkspaceId};
use crate::store::{Overview, StatusCounts, Surroundings};

#[derive(Debug)]
pub struct ContextSnapshot {
    pub workspace: Workspace,
    /// The focused node, if there is one and it can be read.
    pub node: Option<Node>,
    /// Counts of its children, if the node is planning or monitoring.
    pub children: Option<StatusCounts>,
    pub progress: Option<Progress>,
    /// The surroundings of the focused node.
    pub surroundings: Option<Surroundings>,
    /// Read only if no node is focused.
    pub overview: Option<Overview>,
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

    /// Returns whether a workspace has a plan of which no task is started, see
    /// [`has_unstarted_plan`](crate::store::has_unstarted_plan). `false` if that cannot be read.
    fn has_unstarted_plan(&self, id: &WorkspaceId) -> bool;

    /// Reads what a snapshot lacks: counts from the index, and the parent of the node.
    fn relations(&self, id: &WorkspaceId, node: Option<&Node>) -> Relations;
}
