//! The context snapshot, read in one transaction.

use tanmi_workspace::model::*;
use tanmi_workspace::store::{
    Access, ContextSnapshot, ContextSnapshots, NodeBrief, Overview, Relations, SnapshotDepth, SnapshotSource,
    Surroundings, Tx, has_unstarted_plan,
};

use crate::rows::{self, brief_columns};
use crate::store::PgStore;
use crate::tx::{PgTx, STARTED};

const OPEN_CHILDREN: &str = concat!(
    "SELECT ",
    brief_columns!(),
    " FROM node n WHERE project = $1 AND ws = $2 AND parent = $3
    AND status NOT IN ('completed', 'failed', 'cancelled') ORDER BY n.ord, n.created_at, n.id LIMIT $4"
);
const DONE_CHILDREN: &str = concat!(
    "SELECT ",
    brief_columns!(),
    " FROM node n WHERE project = $1 AND ws = $2 AND parent = $3
    AND status IN ('completed', 'failed', 'cancelled') ORDER BY n.status_changed_at DESC, n.id LIMIT $4"
);
const WITH_PROBLEM: &str = concat!(
    "SELECT ",
    brief_columns!(),
    " FROM node n WHERE project = $1 AND ws = $2 AND has_problem ORDER BY n.updated_at DESC, n.id LIMIT $3"
);

impl ContextSnapshots for PgStore {
    fn context_snapshot(
        &self,
        id: &WorkspaceId,
        focus: Option<&str>,
        depth: SnapshotDepth,
    ) -> Option<ContextSnapshot> {
        let tx = self.read(id)?;
        let workspace = tx.workspace().ok()?;
        let has_own_focus = focus.is_some();
        let focus = focus.and_then(|id| NodeId::parse(id).ok()).or_else(|| workspace.focused_node_id.clone());
        let node = focus.and_then(|id| Tx::node(&tx, &id).ok().flatten());
        let parent =
            node.as_ref().filter(|node| matches!(node.status, NodeStatus::Planning | NodeStatus::Monitoring));
        let children = parent.and_then(|parent| tx.status_counts(&parent.id).ok());
        let is_deep = depth >= SnapshotDepth::Surroundings;
        Some(ContextSnapshot {
            children,
            progress: (depth >= SnapshotDepth::Progress)
                .then(|| tx.total().ok().map(|counts| counts.progress()))
                .flatten(),
            surroundings: node.as_ref().filter(|_| is_deep).map(|node| Surroundings::of(&tx, node)),
            overview: (is_deep && (node.is_none() || !has_own_focus)).then(|| Overview::of(&tx)),
            workspace,
            node,
        })
    }

    fn overview(&self, id: &WorkspaceId) -> Option<Overview> {
        Some(Overview::of(&self.read(id)?))
    }

    fn has_unstarted_plan(&self, id: &WorkspaceId) -> bool {
        self.read(id).is_some_and(|tx| has_unstarted_plan(&tx))
    }

    fn relations(&self, id: &WorkspaceId, node: Option<&Node>) -> Relations {
        let Some(tx) = self.read(id) else { return Relations::default() };
        let children_of = |id: &NodeId| tx.status_counts(id).ok();
        let parent = node.and_then(|node| Tx::node(&tx, node.parent_id.as_ref()?).ok().flatten());
        Relations {
            progress: tx.total().ok().map(|counts| counts.progress()),
            children: node.and_then(|node| children_of(&node.id)),
            parent: parent.map(|parent| {
                let children = children_of(&parent.id);
                (parent, children)
            }),
        }
    }
}

impl PgStore {
    /// Begins a read of a workspace. `None` if it cannot be read.
    fn read(&self, id: &WorkspaceId) -> Option<PgTx<'_>> {
        PgTx::begin(&self.pool, &self.project, id, Access::Read, 0).ok()
    }
}

impl SnapshotSource for PgTx<'_> {
    fn node(&self, id: &NodeId) -> Option<Node> {
        Tx::node(self, id).ok().flatten()
    }

    fn brief(&self, id: &NodeId) -> Option<NodeBrief> {
        Tx::brief(self, id).ok().flatten()
    }

    fn open_children(&self, parent: &NodeId, limit: usize) -> Vec<NodeBrief> {
        self.briefs(OPEN_CHILDREN, &[&parent.as_str(), &rows::limit(limit)])
    }

    fn done_children(&self, parent: &NodeId, limit: usize) -> Vec<NodeBrief> {
        self.briefs(DONE_CHILDREN, &[&parent.as_str(), &rows::limit(limit)])
    }

    fn started(&self, limit: usize) -> Vec<NodeBrief> {
        self.briefs(STARTED, &[&rows::limit(limit)])
    }

    fn with_problem(&self, limit: usize) -> Vec<NodeBrief> {
        self.briefs(WITH_PROBLEM, &[&rows::limit(limit)])
    }
}
