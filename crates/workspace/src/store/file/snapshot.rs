//! The context snapshot for hooks: reads `Workspace.md`, the file of the focused node, and counts from the index if it
//! exists. Takes no lock. Each file is replaced atomically, so each one is complete, but they can be of different age.

use tanmi_base::{clock, fs};
use tanmi_index::{NodeIndex, NodeQuery};

use super::layout::Layout;
use super::scan::LoadedNode;
use super::{FileStore, scan, tx};
use crate::model::*;
use crate::store::{
    ContextSnapshot, ContextSnapshots, NodeBrief, Overview, Relations, SnapshotDepth, SnapshotSource,
    StatusCounts, Surroundings, has_unstarted_plan,
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
        let mut loaded = loaded.and_then(|id| scan::load(&layout, &id).ok()??.ok());
        let parent_id = loaded.as_ref().map(|loaded| &loaded.node).filter(|node| is_parent(node));
        let parent_id = parent_id.map(|node| node.id.clone());
        let edited = loaded.as_mut().filter(|loaded| is_edited_in_progress(loaded));
        let mut snapshot = ContextSnapshot {
            workspace,
            node: None,
            children: None,
            progress: None,
            surroundings: None,
            overview: None,
        };
        if (parent_id.is_some() || edited.is_some() || depth > SnapshotDepth::Focus)
            && let Some(index) = open_index(&layout)
        {
            snapshot.children = parent_id.and_then(|id| status_counts(&index, id.as_str()));
            if let Some(edited) = edited {
                let row = index.get(edited.node.id.as_str()).ok().flatten();
                let row = scan::row_after_edit(edited, row.as_ref());
                scan::add_edit_times(&mut edited.node, &row);
            }
            if depth >= SnapshotDepth::Progress {
                snapshot.progress = status_counts(&index, "").map(|counts| counts.progress());
            }
            if depth >= SnapshotDepth::Surroundings {
                let source = IndexedFiles { layout: &layout, index: &index };
                let node = loaded.as_ref().map(|loaded| &loaded.node);
                snapshot.surroundings = node.map(|node| Surroundings::of(&source, node));
                snapshot.overview = node.is_none().then(|| Overview::of(&source));
            }
        }
        snapshot.node = loaded.map(|loaded| loaded.node);
        Some(snapshot)
    }

    fn overview(&self, id: &WorkspaceId) -> Option<Overview> {
        let layout = self.layout(id);
        let index = self.place.has_own_store().then(|| open_index(&layout)).flatten()?;
        Some(Overview::of(&IndexedFiles { layout: &layout, index: &index }))
    }

    fn has_unstarted_plan(&self, id: &WorkspaceId) -> bool {
        let layout = self.layout(id);
        let index = self.place.has_own_store().then(|| open_index(&layout)).flatten();
        index.is_some_and(|index| has_unstarted_plan(&IndexedFiles { layout: &layout, index: &index }))
    }

    fn relations(&self, id: &WorkspaceId, node: Option<&Node>) -> Relations {
        if !self.place.has_own_store() {
            return Relations::default();
        }
        let layout = self.layout(id);
        let index = open_index(&layout);
        let counts = |parent: &str| status_counts(index.as_ref()?, parent);
        let parent = node.and_then(|node| node.parent_id.as_ref());
        let parent = parent.and_then(|id| scan::load(&layout, id).ok()??.ok());
        Relations {
            progress: counts("").map(|counts| counts.progress()),
            children: node.and_then(|node| counts(node.id.as_str())),
            parent: parent.map(|loaded| {
                let counts = counts(loaded.node.id.as_str());
                (loaded.node, counts)
            }),
        }
    }
}

fn open_index(layout: &Layout) -> Option<NodeIndex> {
    fs::check_folder(&layout.local()).ok()?;
    NodeIndex::open_existing(&layout.index(), clock::boot_id())
}

/// Returns the counts of the children of a node, or of all nodes if `parent` is empty.
fn status_counts(index: &NodeIndex, parent: &str) -> Option<StatusCounts> {
    index.status_counts(parent).ok().map(tx::status_counts_from)
}

fn is_parent(node: &Node) -> bool {
    matches!(node.status, NodeStatus::Planning | NodeStatus::Monitoring)
}

/// How much later than its `updatedAt` the program may write a file, in milliseconds.
const WRITE_DELAY: i64 = 2000;

/// Returns whether the file of a node in progress may have been edited by hand. Its reminders depend on times that such
/// an edit does not write; the index tells what was edited. Other nodes need no look at the index.
fn is_edited_in_progress(loaded: &LoadedNode) -> bool {
    let (node, sig) = (&loaded.node, &loaded.before.sig);
    node.status == NodeStatus::Implementing && sig.mtime_ns / 1_000_000 > node.updated_at + WRITE_DELAY
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
