//! The context snapshot for hooks: reads `Workspace.md`, the file of the focused node, and counts from the index if it
//! exists. Takes no lock. Each file is replaced atomically, so each one is complete, but they can be of different age.

use tanmi_base::{clock, fs};
use tanmi_index::NodeIndex;

use super::{FileStore, scan};
use crate::model::*;
use crate::store::{ContextSnapshot, ContextSnapshots, SnapshotDepth};

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
        let mut snapshot = ContextSnapshot { workspace, node: None, children: None, progress: None };
        if (parent_node.is_some() || depth == SnapshotDepth::Progress)
            && fs::check_folder(&layout.local()).is_ok()
            && let Some(index) = NodeIndex::open_existing(&layout.index(), clock::boot_id())
        {
            let status_counts =
                |parent: &str| index.status_counts(parent).ok().map(super::tx::status_counts_from);
            snapshot.children = parent_node.and_then(|node| status_counts(node.id.as_str()));
            snapshot.progress = status_counts("")
                .filter(|_| depth == SnapshotDepth::Progress)
                .map(|status_counts| status_counts.progress());
        }
        snapshot.node = node;
        Some(snapshot)
    }
}
