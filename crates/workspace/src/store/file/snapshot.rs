//! The context snapshot for hooks: reads `Workspace.md`, the file of the focused node, and counts from the index if it
//! exists. Takes no lock. Each file is replaced atomically, so each one is complete, but they can be of different age.

use tanmi_base::{clock, fs};
use tanmi_index::{NodeIndex, NodeQuery};

use super::layout::Layout;
use super::{FileStore, scan, tx};
use crate::model::*;
use crate::store::{
    ContextSnapshot, ContextSnapshots, NodeBrief, Overview, SnapshotDepth, SnapshotSource, Surroundings,
};

impl ContextSnapshots for FileStore {
    fn context_snapshot(
        &self,
        id: &WorkspaceId,
        focus: Option<&str>,
        depth: SnapshotDepth,
    ) -> Option<ContextSnapshot> {
        if !self.place.has_own_store() {
            return None;
        }
        let layout = self.layout(id);
        let workspace = scan::read_workspace(&layout, id)?;
        let focus = focus.and_then(|id| NodeId::parse(id).ok()).or_else(|| workspace.focused_node_id.clone());
        let loaded = focus.filter(|_| fs::check_folder(&layout.nodes()).is_ok());
        let loaded = loaded.and_then(|id| scan::load(&layout, &id).ok()??.ok());
        let node = loaded.map(|loaded| loaded.node);
        let parent_node =
            node.as_ref().filter(|node| matches!(node.status, NodeStatus::Planning | NodeStatus::Monitoring));
        let mut snapshot = ContextSnapshot {
            workspace,
            node: None,
            children: None,
            progress: None,
            surroundings: None,
            overview: None,
        };
        if (parent_node.is_some() || depth > SnapshotDepth::Focus)
            && fs::check_folder(&layout.local()).is_ok()
            && let Some(index) = NodeIndex::open_existing(&layout.index(), clock::boot_id())
        {
            let status_counts = |parent: &str| index.status_counts(parent).ok().map(tx::status_counts_from);
            snapshot.children = parent_node.and_then(|node| status_counts(node.id.as_str()));
            if depth >= SnapshotDepth::Progress {
                snapshot.progress = status_counts("").map(|status_counts| status_counts.progress());
            }
            if depth >= SnapshotDepth::Surroundings {
                let source = IndexedFiles { layout: &layout, index: &index };
                match &node {
                    Some(node) => snapshot.surroundings = Some(Surroundings::of(&source, node)),
                    None => snapshot.overview = Some(Overview::of(&source)),
                }
            }
        }
        snapshot.node = node;
        Some(snapshot)
    }
}

/// The index and the files of a workspace, without a lock. Rows of the index can be outdated; texts come from the files.
struct IndexedFiles<'a> {
    layout: &'a Layout,
    index: &'a NodeIndex,
}

impl IndexedFiles<'_> {
    fn select(&self, query: &NodeQuery<'_>, limit: usize) -> Vec<NodeBrief> {
        let rows = self.index.select(query, limit).unwrap_or_default();
        rows.into_iter().filter_map(scan::brief_of).collect()
    }
}

impl SnapshotSource for IndexedFiles<'_> {
    fn node(&self, id: &NodeId) -> Option<Node> {
        Some(scan::load(self.layout, id).ok()??.ok()?.node)
    }

    fn brief(&self, id: &NodeId) -> Option<NodeBrief> {
        scan::brief_of(self.index.get(id.as_str()).ok()??)
    }

    fn open_children(&self, parent: &NodeId, limit: usize) -> Vec<NodeBrief> {
        self.select(&NodeQuery::OpenChildren { parent: parent.as_str() }, limit)
    }

    fn done_children(&self, parent: &NodeId, limit: usize) -> Vec<NodeBrief> {
        let statuses = NodeStatus::ALL.iter().filter(|status| status.is_done());
        let (parent, of_status) = (parent.as_str(), |status: &NodeStatus| status.as_str());
        let mut done: Vec<NodeBrief> = statuses
            .map(of_status)
            .flat_map(|status| self.select(&NodeQuery::Recent { parent, status }, limit))
            .collect();
        done.sort_by_key(|child| std::cmp::Reverse(child.status_changed_at));
        done.truncate(limit);
        done
    }

    fn started(&self, limit: usize) -> Vec<NodeBrief> {
        self.select(&NodeQuery::Started, limit)
    }

    fn with_problem(&self, limit: usize) -> Vec<NodeBrief> {
        self.select(&NodeQuery::WithProblem, limit)
    }
}
