//! [`ContextSnapshots`]: the little that a hook reads of a workspace, without waiting.

use crate::model::{Node, Progress, Workspace, WorkspaceId};
use crate::store::StatusCounts;

#[derive(Debug)]
pub struct ContextSnapshot {
    pub workspace: Workspace,
    /// The focused node, if there is one and it can be read.
    pub node: Option<Node>,
    /// Counts of its children, if the node is planning or monitoring.
    pub children: Option<StatusCounts>,
    pub progress: Option<Progress>,
}

/// Whether to read the progress of the workspace, which can take longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotDepth {
    Focus,
    Progress,
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
}
