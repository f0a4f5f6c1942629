//! The in-memory store: the simplest implementation of the trait. Property tests compare the file store with it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tanmi_base::Millis;

use super::{Access, NodeBrief, SiblingPosition, StatusCounts, Store, Tx, WorkspaceEntry};
use crate::error::{Error, Result};
use crate::model::*;

#[derive(Clone, Debug)]
struct WorkspaceData {
    workspace: Workspace,
    nodes: BTreeMap<NodeId, Node>,
    seq: u64,
}

#[derive(Debug, Default)]
struct StoreData {
    live: BTreeMap<WorkspaceId, WorkspaceData>,
    deleted: BTreeMap<WorkspaceId, WorkspaceData>,
}

#[derive(Debug, Default)]
pub struct InMemoryStore {
    data: Mutex<StoreData>,
}

impl InMemoryStore {
    pub fn new() -> InMemoryStore {
        InMemoryStore::default()
    }

    fn data(&self) -> MutexGuard<'_, StoreData> {
        self.data.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn not_found(id: &WorkspaceId) -> Error {
    Error::WorkspaceNotFound { id: id.to_string(), existing: Vec::new() }
}

impl Store for InMemoryStore {
    fn insert(&self, workspace: &Workspace, root: &Node) -> Result<()> {
        let nodes = BTreeMap::from([(root.id.clone(), root.clone())]);
        let workspace_data = WorkspaceData { workspace: workspace.clone(), nodes, seq: 0 };
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

    fn contains(&self, id: &WorkspaceId) -> Result<bool> {
        Ok(self.data().live.contains_key(id))
    }

    fn remove(&self, id: &WorkspaceId, _now: Millis) -> Result<()> {
        let mut data = self.data();
        let workspace_data = data.live.remove(id).ok_or_else(|| not_found(id))?;
        data.deleted.insert(id.clone(), workspace_data);
        Ok(())
    }

    fn restore(&self, id: &WorkspaceId) -> Result<bool> {
        let mut data = self.data();
        let Some(workspace_data) = data.deleted.remove(id) else { return Ok(false) };
        data.live.insert(id.clone(), workspace_data);
        Ok(true)
    }

    fn begin(&self, id: &WorkspaceId, _access: Access, _now: Millis) -> Result<Box<dyn Tx + '_>> {
        let data = self.data();
        let draft = data.live.get(id).ok_or_else(|| not_found(id))?.clone();
        Ok(Box::new(InMemoryTx { data, draft, changed: false }))
    }
}

struct InMemoryTx<'a> {
    data: MutexGuard<'a, StoreData>,
    draft: WorkspaceData,
    changed: bool,
}

impl InMemoryTx<'_> {
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

    fn recent_children(&self, parent: &NodeId, status: NodeStatus, limit: usize) -> Result<Vec<NodeBrief>> {
        let mut children: Vec<NodeBrief> =
            self.children_of(parent).filter(|node| node.status == status).map(NodeBrief::of).collect();
        children.sort_by_key(|child| std::cmp::Reverse(child.status_changed_at));
        children.truncate(limit);
        Ok(children)
    }

    fn last_order(&self, parent: &NodeId) -> Result<i64> {
        Ok(self.children_of(parent).filter_map(|node| node.order).max().unwrap_or(0))
    }

    fn status_counts(&self, parent: &NodeId) -> Result<StatusCounts> {
        Ok(count(self.children_of(parent), |_| true))
    }

    fn total(&self) -> Result<StatusCounts> {
        Ok(count(self.draft.nodes.values(), |node| !node.id.is_root()))
    }

    fn put_workspace(&mut self, workspace: Workspace) -> Result<()> {
        self.changed |= self.draft.workspace != workspace;
        self.draft.workspace = workspace;
        Ok(())
    }

    fn put_node(&mut self, node: Node) -> Result<()> {
        self.changed |= self.draft.nodes.get(&node.id) != Some(&node);
        self.draft.nodes.insert(node.id.clone(), node);
        Ok(())
    }

    fn remove_node(&mut self, id: &NodeId) -> Result<()> {
        self.changed |= self.draft.nodes.remove(id).is_some();
        Ok(())
    }

    fn commit(mut self: Box<Self>) -> Result<u64> {
        self.draft.seq += u64::from(self.changed);
        let seq = self.draft.seq;
        let id = self.draft.workspace.id.clone();
        self.data.live.insert(id, self.draft);
        Ok(seq)
    }
}
