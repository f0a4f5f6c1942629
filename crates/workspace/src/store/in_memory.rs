//! The in-memory store: the simplest implementation of the trait. Property tests compare the file store with it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tanmi_base::Millis;

use super::feed::WORKSPACE;
use super::walk;
use super::{
    Access, ChangeFeed, ContextSnapshot, ContextSnapshots, FeedStart, NodeBrief, NodeName, NodeRead,
    NodeSelection, Overview, PlanScope, Relations, SiblingPosition, SnapshotDepth, SnapshotSource,
    StatusCounts, Store, StoreEvent, Subscription, TrashEntry, Tx, WorkspaceEntry, unstarted_tasks,
};
use crate::error::{Error, Result};
use crate::model::*;
use crate::ops::{Target, subtree_of};

#[derive(Clone, Debug)]
struct WorkspaceData {
    workspace: Workspace,
    nodes: BTreeMap<NodeId, Node>,
    /// Deleted nodes, each with the number and the time of the change that deleted it.
    trash: BTreeMap<NodeId, (u64, Millis, Node)>,
    seq: u64,
    /// The last changes, oldest first: the workspace itself before nodes. The last one has the number `seq`.
    changes: VecDeque<Vec<String>>,
}

impl WorkspaceData {
    /// Records a change and forgets the oldest one beyond `kept`.
    fn record(&mut self, nodes: Vec<String>, kept: usize) {
        self.seq += 1;
        self.changes.push_back(nodes);
        while self.changes.len() > kept {
            self.changes.pop_front();
        }
    }

    fn trash_entries(&self, id: &WorkspaceId) -> Vec<TrashEntry> {
        let missing = self.trash.values().filter(|(_, _, node)| !self.nodes.contains_key(&node.id));
        walk::trash_entries(id, &missing.cloned().collect::<Vec<_>>())
    }

    /// Returns the events after a sequence number.
    fn events_after(&self, seq: u64) -> Vec<StoreEvent> {
        let first = self.seq - self.changes.len() as u64;
        // A position that is not in the list: too old, or of another list.
        let gap = match seq {
            _ if seq < first => Some(first),
            _ if seq > self.seq => Some(self.seq),
            _ => None,
        };
        let from = gap.unwrap_or(seq);
        let changes = (first + 1..).zip(&self.changes).filter(|(number, _)| *number > from);
        let changes = changes.map(|(seq, nodes)| StoreEvent::Change { seq, nodes: nodes.clone() });
        gap.map(|seq| StoreEvent::Gap { seq }).into_iter().chain(changes).collect()
    }
}

#[derive(Debug, Default)]
struct StoreData {
    live: BTreeMap<WorkspaceId, WorkspaceData>,
    deleted: BTreeMap<WorkspaceId, (Millis, WorkspaceData)>,
}

/// The number of changes that a workspace keeps for subscribers.
const KEPT_CHANGES: usize = 4096;

#[derive(Clone, Debug)]
pub struct InMemoryStore {
    data: Arc<Mutex<StoreData>>,
    kept_changes: usize,
}

impl Default for InMemoryStore {
    fn default() -> InMemoryStore {
        InMemoryStore::with_kept_changes(KEPT_CHANGES)
    }
}

impl InMemoryStore {
    pub fn new() -> InMemoryStore {
        InMemoryStore::default()
    }

    /// Creates a store that keeps this number of changes of each workspace for subscribers.
    pub fn with_kept_changes(kept_changes: usize) -> InMemoryStore {
        InMemoryStore { data: Arc::default(), kept_changes }
    }

    fn data(&self) -> MutexGuard<'_, StoreData> {
        lock(&self.data)
    }
}

fn lock(data: &Mutex<StoreData>) -> MutexGuard<'_, StoreData> {
    data.lock().unwrap_or_else(PoisonError::into_inner)
}

fn not_found(id: &WorkspaceId) -> Error {
    Error::WorkspaceNotFound { id: id.to_string(), existing: Vec::new() }
}

impl Store for InMemoryStore {
    fn insert(&self, workspace: &Workspace, root: &Node) -> Result<()> {
        let nodes = BTreeMap::from([(root.id.clone(), root.clone())]);
        let workspace_data = WorkspaceData {
            workspace: workspace.clone(),
            nodes,
            trash: BTreeMap::new(),
            seq: 0,
            changes: VecDeque::new(),
        };
        self.data().live.insert(workspace.id.clone(), workspace_data);
        Ok(())
    }

    fn entries(&self, _now: Millis) -> Result<Vec<WorkspaceEntry>> {
        let entry = |(id, workspace_data): (&WorkspaceId, &WorkspaceData)| WorkspaceEntry {
            id: id.clone(),
            active_at: workspace_data
                .nodes
                .values()
                .map(|node| node.updated_at)
                .fold(workspace_data.workspace.updated_at, Millis::max),
            state: Ok((
                workspace_data.workspace.clone(),
                count(workspace_data.nodes.values(), |node| !node.id.is_root()).progress(),
            )),
        };
        Ok(self.data().live.iter().map(entry).collect())
    }

    fn read_headers(&self) -> Result<Vec<(WorkspaceId, Option<Workspace>)>> {
        let header = |(id, data): (&WorkspaceId, &WorkspaceData)| (id.clone(), Some(data.workspace.clone()));
        Ok(self.data().live.iter().map(header).collect())
    }

    fn read_header(&self, id: &WorkspaceId) -> Result<Option<Workspace>> {
        Ok(self.data().live.get(id).map(|data| data.workspace.clone()))
    }

    fn contains(&self, id: &WorkspaceId) -> Result<bool> {
        Ok(self.data().live.contains_key(id))
    }

    fn remove(&self, id: &WorkspaceId, now: Millis) -> Result<()> {
        let mut data = self.data();
        let workspace_data = data.live.remove(id).ok_or_else(|| not_found(id))?;
        data.deleted.insert(id.clone(), (now, workspace_data));
        Ok(())
    }

    fn restore(&self, id: &WorkspaceId) -> Result<bool> {
        let mut data = self.data();
        let Some((_, workspace_data)) = data.deleted.remove(id) else { return Ok(false) };
        data.live.insert(id.clone(), workspace_data);
        Ok(true)
    }

    fn trash_entries(&self) -> Result<Vec<TrashEntry>> {
        let data = self.data();
        let workspaces = data.deleted.iter().map(|(id, (at, data))| TrashEntry {
            workspace_id: id.clone(),
            node_id: None,
            title: data.workspace.name.clone(),
            count: data.nodes.len() - 1,
            deleted_at: *at,
        });
        let nodes = data.live.iter().flat_map(|(id, data)| data.trash_entries(id));
        let mut entries: Vec<TrashEntry> = workspaces.chain(nodes).collect();
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.deleted_at));
        Ok(entries)
    }

    fn begin(&self, id: &WorkspaceId, _access: Access, now: Millis) -> Result<Box<dyn Tx + '_>> {
        let data = self.data();
        let draft = data.live.get(id).ok_or_else(|| not_found(id))?.clone();
        let kept_changes = self.kept_changes;
        Ok(Box::new(InMemoryTx {
            data,
            draft,
            now,
            kept_changes,
            has_new_workspace: false,
            changed: BTreeSet::new(),
        }))
    }
}

impl ContextSnapshots for InMemoryStore {
    fn context_snapshot(
        &self,
        id: &WorkspaceId,
        focus: Option<&str>,
        depth: SnapshotDepth,
    ) -> Option<ContextSnapshot> {
        let data = self.data();
        let WorkspaceData { workspace, nodes, .. } = data.live.get(id)?;
        let node = ContextSnapshot::focus(workspace, focus).and_then(|id| nodes.get(&id).cloned());
        Some(ContextSnapshot::of(workspace.clone(), node, depth, Some(nodes)))
    }

    fn overview(&self, id: &WorkspaceId) -> Option<Overview> {
        self.data().live.get(id).map(|data| Overview::of(&data.nodes))
    }

    fn unstarted_tasks(&self, id: &WorkspaceId, scope: PlanScope) -> Option<usize> {
        Some(unstarted_tasks(&self.data().live.get(id)?.nodes, scope))
    }

    fn changed_at(&self, id: &WorkspaceId) -> Option<Millis> {
        self.data().live.get(id)?.nodes.values().map(|node| node.updated_at).max()
    }

    fn relations(&self, id: &WorkspaceId, node: Option<&Node>) -> Relations {
        let data = self.data();
        let Some(WorkspaceData { nodes, .. }) = data.live.get(id) else { return Relations::default() };
        let parent = node.and_then(|node| nodes.get(node.parent_id.as_ref()?));
        Relations::of(node, parent.cloned(), Some(nodes))
    }
}

impl SnapshotSource for BTreeMap<NodeId, Node> {
    fn node(&self, id: &NodeId) -> Option<Node> {
        self.get(id).cloned()
    }

    fn brief(&self, id: &NodeId) -> Option<NodeBrief> {
        self.get(id).map(NodeBrief::of)
    }

    fn counts(&self, parent: Option<&NodeId>) -> Option<StatusCounts> {
        Some(match parent {
            Some(parent) => count(self.values(), |node| node.parent_id.as_ref() == Some(parent)),
            None => count(self.values(), |node| !node.id.is_root()),
        })
    }

    fn open_children(&self, parent: &NodeId, limit: usize) -> Vec<NodeBrief> {
        let is_open = |node: &&Node| node.parent_id.as_ref() == Some(parent) && !node.status.is_done();
        sorted(self.values().filter(is_open), limit, |node| node.position.clone())
    }

    fn done_children(&self, parent: &NodeId, limit: usize) -> Vec<NodeBrief> {
        let is_done = |node: &&Node| node.parent_id.as_ref() == Some(parent) && node.status.is_done();
        sorted(self.values().filter(is_done), limit, |node| std::cmp::Reverse(node.status_changed_at))
    }

    fn started(&self, limit: usize) -> Vec<NodeBrief> {
        let is_started =
            |node: &&Node| matches!(node.status, NodeStatus::Implementing | NodeStatus::Validating);
        sorted(self.values().filter(is_started), limit, |node| std::cmp::Reverse(node.status_changed_at))
    }

    fn with_problem(&self, limit: usize) -> Vec<NodeBrief> {
        let has_problem = |node: &&Node| node.activity.problem.is_some();
        sorted(self.values().filter(has_problem), limit, |node| std::cmp::Reverse(node.updated_at))
    }
}

fn sorted<'a, K: Ord>(
    nodes: impl Iterator<Item = &'a Node>,
    limit: usize,
    key: fn(&NodeBrief) -> K,
) -> Vec<NodeBrief> {
    let mut briefs: Vec<NodeBrief> = nodes.map(NodeBrief::of).collect();
    briefs.sort_by_key(key);
    briefs.truncate(limit);
    briefs
}

impl ChangeFeed for InMemoryStore {
    fn ids(&self) -> Result<Vec<WorkspaceId>> {
        Ok(self.data().live.keys().cloned().collect())
    }

    fn subscribe(&self, id: &WorkspaceId, from: FeedStart) -> Box<dyn Subscription> {
        let seq = match from {
            FeedStart::Now => self.data().live.get(id).map_or(0, |workspace_data| workspace_data.seq),
            FeedStart::After(seq) => seq,
        };
        Box::new(InMemorySubscription { data: self.data.clone(), id: id.clone(), seq })
    }

    fn revisions(&self, id: &WorkspaceId) -> Result<BTreeMap<String, u64>> {
        let data = self.data();
        let Some(found) = data.live.get(id) else { return Ok(BTreeMap::new()) };
        let nodes = found.nodes.iter().map(|(id, node)| (id.to_string(), revision_of(node)));
        Ok(nodes.chain([(WORKSPACE.to_owned(), revision_of(&found.workspace))]).collect())
    }
}

/// Returns a number that changes with the data.
fn revision_of(data: &impl serde::Serialize) -> u64 {
    let mut hasher = DefaultHasher::new();
    serde_json::to_vec(data).unwrap_or_default().hash(&mut hasher);
    hasher.finish()
}

struct InMemorySubscription {
    data: Arc<Mutex<StoreData>>,
    id: WorkspaceId,
    /// The sequence number of the last reported change.
    seq: u64,
}

impl Subscription for InMemorySubscription {
    fn changes(&mut self) -> Result<Vec<StoreEvent>> {
        let data = lock(&self.data);
        let Some(workspace_data) = data.live.get(&self.id) else { return Ok(Vec::new()) };
        let events = workspace_data.events_after(self.seq);
        self.seq = workspace_data.seq;
        Ok(events)
    }

    fn edits(&mut self) -> Result<Option<StoreEvent>> {
        Ok(None)
    }
}

struct InMemoryTx<'a> {
    data: MutexGuard<'a, StoreData>,
    draft: WorkspaceData,
    now: Millis,
    kept_changes: usize,
    has_new_workspace: bool,
    changed: BTreeSet<NodeId>,
}

impl InMemoryTx<'_> {
    /// Returns whether a dependency of the node is not completed or does not exist.
    fn is_blocked(&self, node: &Node) -> bool {
        let is_completed =
            |id: &NodeId| self.draft.nodes.get(id).is_some_and(|node| node.status == NodeStatus::Completed);
        !node.depends_on.iter().all(is_completed)
    }

    fn children_of<'b>(&'b self, parent: &'b NodeId) -> impl Iterator<Item = &'b Node> {
        self.draft.nodes.values().filter(move |node| node.parent_id.as_ref() == Some(parent))
    }
}

fn count<'a>(nodes: impl Iterator<Item = &'a Node>, is_counted: impl Fn(&Node) -> bool) -> StatusCounts {
    let mut counts: BTreeMap<NodeStatus, u64> = BTreeMap::new();
    for node in nodes.filter(|node| is_counted(node)) {
        *counts.entry(node.status).or_default() += 1;
    }
    StatusCounts::of(counts)
}

impl Tx for InMemoryTx<'_> {
    fn workspace(&self) -> Result<Workspace> {
        Ok(self.draft.workspace.clone())
    }

    fn node(&self, id: &NodeId) -> Result<Option<Node>> {
        Ok(self.draft.nodes.get(id).cloned())
    }

    fn nodes(&self, ids: &[NodeId]) -> Result<Vec<NodeRead>> {
        walk::nodes(self, ids)
    }

    fn ancestors(&self, id: &NodeId) -> Result<Vec<NodeBrief>> {
        walk::ancestors(self, id)
    }

    fn subtree(&self, id: &NodeId) -> Result<Vec<NodeBrief>> {
        walk::subtree(self, id)
    }

    fn brief(&self, id: &NodeId) -> Result<Option<NodeBrief>> {
        Ok(self.draft.nodes.get(id).map(NodeBrief::of))
    }

    fn children(
        &self,
        parent: &NodeId,
        after: Option<&SiblingPosition>,
        limit: usize,
    ) -> Result<Vec<NodeBrief>> {
        let mut children: Vec<NodeBrief> = self.children_of(parent).map(NodeBrief::of).collect();
        children.sort_by(|a, b| a.position.cmp(&b.position));
        Ok(children
            .into_iter()
            .filter(|child| after.is_none_or(|after| child.position > *after))
            .take(limit)
            .collect())
    }

    fn children_with_counts(
        &self,
        parent: &NodeId,
        after: Option<&SiblingPosition>,
        limit: usize,
    ) -> Result<Vec<(NodeBrief, u64)>> {
        let children = self.children(parent, after, limit)?;
        let count = |brief: NodeBrief| {
            let count = self.children_of(&brief.id).count() as u64;
            (brief, count)
        };
        Ok(children.into_iter().map(count).collect())
    }

    fn recent_children(&self, parent: &NodeId, status: NodeStatus, limit: usize) -> Result<Vec<NodeBrief>> {
        let mut children: Vec<NodeBrief> =
            self.children_of(parent).filter(|node| node.status == status).map(NodeBrief::of).collect();
        children.sort_by_key(|child| std::cmp::Reverse(child.status_changed_at));
        children.truncate(limit);
        Ok(children)
    }

    fn named(&self, name: &NodeName<'_>, limit: usize) -> Result<Vec<NodeBrief>> {
        let is_meant = |node: &&Node| name.matches(node.id.as_str(), &node.title);
        Ok(self.draft.nodes.values().filter(is_meant).take(limit).map(NodeBrief::of).collect())
    }

    fn select(&self, selection: &NodeSelection<'_>, limit: usize) -> Result<Vec<NodeBrief>> {
        let nodes = self.draft.nodes.values().filter(|node| !node.status.is_done());
        let can_begin = |node: &&Node| node.status == NodeStatus::Pending || node.kind == NodeType::Planning;
        Ok(match selection {
            NodeSelection::Unblocked { parent, after } => {
                let is_after = |node: &&Node| after.is_none_or(|after| NodeBrief::of(node).position > *after);
                let children = nodes.filter(|node| node.parent_id.as_ref() == Some(parent)).filter(is_after);
                let unblocked = children.filter(can_begin).filter(|node| !self.is_blocked(node));
                sorted(unblocked, limit, |node| node.position.clone())
            }
            NodeSelection::Blocked => {
                let blocked = nodes.filter(can_begin).filter(|node| self.is_blocked(node));
                sorted(blocked, limit, |node| node.position.clone())
            }
            NodeSelection::Held => {
                let held = nodes.filter(|node| node.started_by.is_some());
                sorted(held, limit, |node| (node.status_changed_at, node.position.id.clone()))
            }
            NodeSelection::Started => self.draft.nodes.started(limit),
        })
    }

    fn dependencies(&self) -> Result<Vec<(NodeId, NodeId)>> {
        let pairs =
            |node: &Node| node.depends_on.iter().map(|on| (node.id.clone(), on.clone())).collect::<Vec<_>>();
        Ok(self.draft.nodes.values().flat_map(pairs).collect())
    }

    fn dependents(&self, ids: &[NodeId]) -> Result<Vec<NodeId>> {
        let ids: BTreeSet<&NodeId> = ids.iter().collect();
        let is_dependent = |node: &&Node| node.depends_on.iter().any(|on| ids.contains(on));
        Ok(self.draft.nodes.values().filter(is_dependent).map(|node| node.id.clone()).collect())
    }

    fn last_order(&self, parent: &NodeId) -> Result<i64> {
        Ok(self.children_of(parent).filter_map(|node| node.order).max().unwrap_or(0))
    }

    fn trashed(&self, id: &NodeId) -> Result<Vec<Node>> {
        let Some((deletion, ..)) = self.draft.trash.get(id) else { return Ok(Vec::new()) };
        let deleted = self.draft.trash.values().filter(|(other, ..)| other == deletion);
        let missing = deleted.filter(|(_, _, node)| !self.draft.nodes.contains_key(&node.id));
        Ok(subtree_of(id, missing.map(|(_, _, node)| node.clone()).collect()))
    }

    fn status_counts(&self, parent: &NodeId) -> Result<StatusCounts> {
        Ok(count(self.children_of(parent), |_| true))
    }

    fn total(&self) -> Result<StatusCounts> {
        Ok(count(self.draft.nodes.values(), |node| !node.id.is_root()))
    }

    fn put_workspace(&mut self, workspace: Workspace) -> Result<()> {
        self.has_new_workspace |= self.draft.workspace != workspace;
        self.draft.workspace = workspace;
        Ok(())
    }

    fn put_node(&mut self, node: Node) -> Result<()> {
        if self.draft.nodes.get(&node.id) != Some(&node) {
            self.changed.insert(node.id.clone());
            self.draft.nodes.insert(node.id.clone(), node);
        }
        Ok(())
    }

    fn append_log(&mut self, target: &Target, entry: LogEntry, at: Millis) -> Result<usize> {
        walk::append_log(self, target, entry, at)
    }

    fn remove_node(&mut self, id: &NodeId) -> Result<()> {
        if let Some(node) = self.draft.nodes.remove(id) {
            self.changed.insert(id.clone());
            self.draft.trash.insert(id.clone(), (self.draft.seq + 1, self.now, node));
        }
        Ok(())
    }

    fn commit(mut self: Box<Self>) -> Result<u64> {
        let own = self.has_new_workspace.then(|| String::from(WORKSPACE));
        let nodes: Vec<String> = own.into_iter().chain(self.changed.iter().map(NodeId::to_string)).collect();
        if !nodes.is_empty() {
            self.draft.record(nodes, self.kept_changes);
        }
        let seq = self.draft.seq;
        let id = self.draft.workspace.id.clone();
        self.data.live.insert(id, self.draft);
        Ok(seq)
    }
}
