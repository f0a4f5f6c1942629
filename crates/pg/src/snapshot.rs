//! The context snapshot, read in one transaction.

use tanmi_base::Millis;
use tanmi_workspace::model::*;
use tanmi_workspace::store::{
    Access, ContextSnapshot, ContextSnapshots, NodeBrief, Overview, PlanScope, Relations, SnapshotDepth,
    SnapshotSource, StatusCounts, Tx, unstarted_tasks,
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
        let focus = ContextSnapshot::focus(&workspace, focus);
        let node = focus.and_then(|id| SnapshotSource::node(&tx, &id));
        Some(ContextSnapshot::of(workspace, node, depth, Some(&tx)))
    }

    fn overview(&self, id: &WorkspaceId) -> Option<Overview> {
        Some(Overview::of(&self.read(id)?))
    }

    fn unstarted_tasks(&self, id: &WorkspaceId, scope: PlanScope) -> Option<usize> {
        Some(unstarted_tasks(&self.read(id)?, scope))
    }

    fn changed_at(&self, _: &WorkspaceId) -> Option<Millis> {
        None
    }

    fn relations(&self, id: &WorkspaceId, node: Option<&Node>) -> Relations {
        let Some(tx) = self.read(id) else { return Relations::default() };
        let parent = node.and_then(|node| SnapshotSource::node(&tx, node.parent_id.as_ref()?));
        Relations::of(node, parent, Some(&tx))
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

    fn counts(&self, parent: Option<&NodeId>) -> Option<StatusCounts> {
        parent.map_or_else(|| self.total(), |parent| self.status_counts(parent)).ok()
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
