//! The context snapshot for hooks: reads `Workspace.md`, the file of the focused node, and counts from the index if it
//! exists. Takes no lock. Each file is replaced atomically, so each one is complete, but they can be of different age.

use tanmi_base::fs::{self, FileSig};
use tanmi_base::{Millis, clock};
use tanmi_index::{NodeIndex, NodeQuery};

use super::layout::Layout;
use super::scan::LoadedNode;
use super::{FileStore, scan, tx};
use crate::model::*;
use crate::store::{
    ContextSnapshot, ContextSnapshots, DamagedNode, NodeBrief, Overview, PlanScope, Relations, SnapshotDepth,
    SnapshotSource, StatusCounts, snapshot::has_counts, unstarted_tasks,
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
        let focus = ContextSnapshot::focus(&workspace, focus);
        let loaded = focus.filter(|_| fs::check_folder(&layout.nodes()).is_ok());
        let (mut loaded, damaged_focus) = match loaded.map(|id| (scan::load(&layout, &id), id)) {
            Some((Ok(Some(Ok(loaded))), _)) => (Some(loaded), None),
            Some((Ok(Some(Err((error, _)))), id)) => {
                (None, Some(DamagedNode { path: layout.node_md(&id), id, error }))
            }
            _ => (None, None),
        };
        let has_counts = loaded.as_ref().is_some_and(|loaded| has_counts(&loaded.node));
        let edited = loaded.as_mut().filter(|loaded| is_edited_in_progress(loaded));
        let needs_index = has_counts || edited.is_some() || depth > SnapshotDepth::Focus;
        let index = needs_index.then(|| open_index(&layout)).flatten();
        if let (Some(edited), Some(index)) = (edited, &index) {
            let row = index.get(edited.node.id.as_str()).ok().flatten();
            let row = scan::row_after_edit(edited, row.as_ref());
            scan::add_edit_times(&mut edited.node, &row);
        }
        let source = index.as_ref().map(|index| IndexedFiles { layout: &layout, index });
        let source = source.as_ref().map(|source| source as &dyn SnapshotSource);
        let snapshot = ContextSnapshot::of(workspace, loaded.map(|loaded| loaded.node), depth, source);
        Some(ContextSnapshot { damaged_focus, ..snapshot })
    }

    fn overview(&self, id: &WorkspaceId) -> Option<Overview> {
        let layout = self.layout(id);
        let index = self.place.has_own_store().then(|| open_index(&layout)).flatten()?;
        Some(Overview::of(&IndexedFiles { layout: &layout, index: &index }))
    }

    fn unstarted_tasks(&self, id: &WorkspaceId, scope: PlanScope) -> Option<usize> {
        let layout = self.layout(id);
        let index = self.place.has_own_store().then(|| open_index(&layout)).flatten()?;
        Some(unstarted_tasks(&IndexedFiles { layout: &layout, index: &index }, scope))
    }

    /// Each change is appended to the journal.
    fn changed_at(&self, id: &WorkspaceId) -> Option<Millis> {
        let journal = FileSig::of(&self.layout(id).journal()).ok()??;
        Some(journal.mtime_ns / 1_000_000)
    }

    fn deleted_name(&self, id: &WorkspaceId) -> Option<String> {
        if !self.place.has_own_store() || self.layout(id).exists() {
            return None;
        }
        let project = self.project_layout();
        project.check_folders().ok()?;
        let trashed = Layout::new(project.find_trashed(id.as_str())?);
        Some(scan::read_workspace(&trashed, id)?.name)
    }

    fn relations(&self, id: &WorkspaceId, node: Option<&Node>) -> Relations {
        if !self.place.has_own_store() {
            return Relations::default();
        }
        let layout = self.layout(id);
        let index = open_index(&layout);
        let source = index.as_ref().map(|index| IndexedFiles { layout: &layout, index });
        let source = source.as_ref().map(|source| source as &dyn SnapshotSource);
        let parent = node.and_then(|node| node.parent_id.as_ref());
        let parent = parent.and_then(|id| scan::load(&layout, id).ok()??.ok());
        Relations::of(node, parent.map(|loaded| loaded.node), source)
    }
}

fn open_index(layout: &Layout) -> Option<NodeIndex> {
    fs::check_folder(&layout.local()).ok()?;
    NodeIndex::open_existing(&layout.index(), clock::boot_id())
}

/// How much later than its `updatedAt` the program may write a file, in milliseconds.
const WRITE_DELAY: i64 = 2000;

/// Returns whether the file of a node in progress may have been edited by hand. Its reminders depend on times that such
/// an edit does not write; the index tells what was edited. Other nodes need no look at the index.
fn is_edited_in_progress(loaded: &LoadedNode) -> bool {
    let (node, sig) = (&loaded.node, &loaded.before.sig);
    node.status == NodeStatus::Implementing && sig.mtime_ns / 1_000_000 > node.updated_at + WRITE_DELAY
}

/// The index and the files of a workspace, without a lock. Rows of the index can be outdated; texts come from
/// the files.
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

    fn counts(&self, parent: Option<&NodeId>) -> Option<StatusCounts> {
        let counts = self.index.status_counts(parent.map_or("", NodeId::as_str));
        counts.ok().map(tx::status_counts_from)
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
