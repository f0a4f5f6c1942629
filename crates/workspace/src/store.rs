//! Where workspaces are kept: a trait with transactions, the file store, and a store in memory.
//!
//! The domain ([`crate::ops`], [`crate::context`]) knows this trait and nothing below it; another implementation, for a
//! server, can follow.

use serde::Serialize;
use tanmi_base::Millis;

use crate::error::{Error, Result};
use crate::model::*;

mod file;
mod memory;

pub use file::{CheckReport, ContextSnapshot, FileStore, Finding, Fix, Follower, SnapshotDepth, StoreEvent};
pub use memory::MemoryStore;

/// What a listing needs of a node, without its texts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeBrief {
    pub id: NodeId,
    pub parent_id: Option<NodeId>,
    pub title: String,
    #[serde(rename = "type")]
    pub kind: NodeType,
    pub status: NodeStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<NodeRole>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub isolated: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub has_problem: bool,
    pub updated_at: Millis,
    #[serde(skip)]
    pub status_changed_at: Millis,
    #[serde(skip)]
    pub position: SiblingPosition,
    /// Its file cannot be read; the rest is what was known before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damage: Option<String>,
}

/// Where a child stands among its siblings.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SiblingPosition {
    pub order: i64,
    pub created_at: Millis,
    pub id: String,
}

/// How many of a node's children have which status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusCounts(Vec<(NodeStatus, u64)>);

impl StatusCounts {
    pub fn of(counts: impl IntoIterator<Item = (NodeStatus, u64)>) -> StatusCounts {
        StatusCounts(counts.into_iter().filter(|(_, n)| *n > 0).collect())
    }

    pub fn total(&self) -> u64 {
        self.0.iter().map(|(_, n)| n).sum()
    }

    pub fn of_status(&self, status: NodeStatus) -> u64 {
        self.0.iter().filter(|(s, _)| *s == status).map(|(_, n)| n).sum()
    }

    pub fn done(&self) -> u64 {
        self.0.iter().filter(|(status, _)| status.is_done()).map(|(_, n)| n).sum()
    }

    /// Completed of all that are not cancelled.
    pub fn progress(&self) -> Progress {
        Progress {
            done: self.of_status(NodeStatus::Completed),
            total: self.total() - self.of_status(NodeStatus::Cancelled),
        }
    }
}

/// A workspace in a list: readable, or damaged with its id.
#[derive(Debug)]
pub struct WorkspaceEntry {
    pub id: WorkspaceId,
    pub state: Result<(Workspace, Progress)>,
    /// When anything in it last changed.
    pub active_at: Millis,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
}

/// A store of workspaces.
pub trait Store {
    /// Creates a workspace with its root node; both or nothing.
    fn create(&self, workspace: &Workspace, root: &Node) -> Result<()>;
    fn list(&self, now: Millis) -> Result<Vec<WorkspaceEntry>>;
    fn exists(&self, id: &WorkspaceId) -> bool;
    /// Takes the workspace away; how long it can be brought back is the store's business.
    fn delete(&self, id: &WorkspaceId, now: Millis) -> Result<()>;
    /// Brings a deleted workspace back. `false` if there is none.
    fn undelete(&self, id: &WorkspaceId) -> Result<bool>;
    /// Throws away whatever is derived of a workspace; it comes back by itself.
    fn drop_index_cache(&self, _id: &WorkspaceId) {}
    /// Opens one workspace. Nobody else writes to it until the transaction ends.
    fn begin(&self, id: &WorkspaceId, access: Access, now: Millis) -> Result<Box<dyn Tx + '_>>;
}

/// One transaction on one workspace. What was put is seen by later reads of the same transaction; without
/// [`Tx::commit`] nothing happened.
pub trait Tx {
    fn workspace(&self) -> Result<Workspace>;
    fn node(&self, id: &NodeId) -> Result<Option<Node>>;
    fn brief(&self, id: &NodeId) -> Result<Option<NodeBrief>>;
    /// `limit` children in their order, behind `after`.
    fn children(
        &self,
        parent: &NodeId,
        after: Option<&SiblingPosition>,
        limit: usize,
    ) -> Result<Vec<NodeBrief>>;
    /// Children of one status, the latest change of status first.
    fn recent_children(&self, parent: &NodeId, status: NodeStatus, limit: usize) -> Result<Vec<NodeBrief>>;
    fn last_order(&self, parent: &NodeId) -> Result<i64>;
    /// Counts of a node's children.
    fn status_counts(&self, parent: &NodeId) -> Result<StatusCounts>;
    /// Counts of all nodes but the root.
    fn total(&self) -> Result<StatusCounts>;
    fn put_workspace(&mut self, workspace: Workspace) -> Result<()>;
    fn put_node(&mut self, node: Node) -> Result<()>;
    /// Removes one node; its children are the caller's business.
    fn remove_node(&mut self, id: &NodeId) -> Result<()>;
    /// The number of the change, one higher than the change before. Without changes it is that of the last one.
    fn commit(self: Box<Self>) -> Result<u64>;
}

/// Runs `work` in a transaction and commits. If a person's edit got in between, all of it is decided again on the new
/// state.
pub fn change<T>(
    store: &dyn Store,
    id: &WorkspaceId,
    now: Millis,
    mut work: impl FnMut(&mut dyn Tx) -> Result<T>,
) -> Result<T> {
    let mut tries = 0;
    loop {
        let outcome = store.begin(id, Access::Write, now).and_then(|mut tx| {
            let outcome = work(tx.as_mut())?;
            tx.commit().map(|_| outcome)
        });
        match outcome {
            Err(error) if tries < 8 && can_be_tried_again(store, id, &error) => tries += 1,
            other => return other,
        }
    }
}

/// Runs `work` on one consistent state.
pub fn view<T>(
    store: &dyn Store,
    id: &WorkspaceId,
    now: Millis,
    mut work: impl FnMut(&dyn Tx) -> Result<T>,
) -> Result<T> {
    let mut tries = 0;
    loop {
        let outcome = store.begin(id, Access::Read, now).and_then(|tx| work(tx.as_ref()));
        match outcome {
            Err(error) if tries < 3 && can_be_tried_again(store, id, &error) => tries += 1,
            other => return other,
        }
    }
}

/// Somebody else's edit got in between, or the index broke under us: both are gone the next time.
fn can_be_tried_again(store: &dyn Store, id: &WorkspaceId, error: &Error) -> bool {
    match error {
        Error::Contended { .. } => true,
        Error::Index(index) if index.is_lost() => {
            store.drop_index_cache(id);
            true
        }
        _ => false,
    }
}

impl NodeBrief {
    pub fn of(node: &Node) -> NodeBrief {
        NodeBrief {
            id: node.id.clone(),
            parent_id: node.parent_id.clone(),
            title: node.title.clone(),
            kind: node.kind,
            status: node.status,
            role: node.role,
            isolated: node.isolated,
            has_problem: node.activity.problem.is_some(),
            updated_at: node.updated_at,
            status_changed_at: node.status_changed_at.unwrap_or(node.created_at),
            position: SiblingPosition {
                order: node.order.unwrap_or(i64::MAX),
                created_at: node.created_at,
                id: node.id.to_string(),
            },
            damage: None,
        }
    }
}
