//! Persistence of workspaces. [`Workspaces`] is what the program uses. [`Store`] is the level below it, with
//! transactions; the file store and the in-memory store implement it.
//!
//! [`crate::ops`] and [`crate::context`] depend on the traits only, not on an implementation.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use tanmi_base::{Millis, id};

use crate::codec::ParseError;
use crate::command::{self, Command, Committed, LiveSessions};
use crate::error::{Error, Result, UnavailableCause};
use crate::model::*;
use crate::ops::{OpContext, Target};

mod branches;
mod feed;
mod file;
mod in_memory;
mod maintenance;
mod snapshot;
mod surroundings;
pub mod walk;
mod workspaces;

pub use branches::BranchCounts;
pub(crate) use branches::BranchSums;
pub use feed::{ChangeFeed, FeedStart, StoreEvent, Subscription, WORKSPACE};
pub use file::{CheckReport, FileStore, Finding, Fix, HeldWorkspace, WorkspaceDocuments, journal_paths};
pub use in_memory::InMemoryStore;
pub use maintenance::LocalMaintenance;
pub use snapshot::{ContextSnapshot, ContextSnapshots, DamagedNode, Relations, SnapshotDepth};
pub use surroundings::{Overview, PlanScope, SnapshotSource, Surroundings, WaitingNode, unstarted_tasks};
#[cfg(test)]
pub(crate) use workspaces::node_detail;
pub use workspaces::{NodeDetail, Workspaces};

/// The fields of a node that a list shows, without its texts.
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
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<NodeId>,
    #[serde(skip)]
    pub holder: Option<String>,
    pub updated_at: Millis,
    #[serde(skip)]
    pub status_changed_at: Millis,
    #[serde(skip)]
    pub position: SiblingPosition,
    /// Why the file cannot be read. The other fields have their last known values then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damage: Option<ParseError>,
}

/// The sort key of a child among its siblings.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SiblingPosition {
    pub order: i64,
    pub created_at: Millis,
    pub id: String,
}

/// A text that stands for a node: the end of its id or its title.
#[derive(Clone, Copy, Debug)]
pub struct NodeName<'a> {
    pub text: &'a str,
    /// Whether the text can be a title.
    pub can_be_title: bool,
}

impl NodeName<'_> {
    /// Returns whether the text stands for a node. The case of ASCII letters in a title is ignored.
    pub fn matches(&self, id: &str, title: &str) -> bool {
        (id::can_be_suffix(self.text) && id.ends_with(self.text))
            || (self.can_be_title && title.eq_ignore_ascii_case(self.text))
    }
}

/// The number of nodes per status, in the order of the statuses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusCounts(Vec<(NodeStatus, u64)>);

impl StatusCounts {
    pub fn of(counts: impl IntoIterator<Item = (NodeStatus, u64)>) -> StatusCounts {
        let mut counts: Vec<(NodeStatus, u64)> = counts.into_iter().filter(|(_, n)| *n > 0).collect();
        counts.sort_by_key(|(status, _)| *status);
        StatusCounts(counts)
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

    /// Returns the counts with nodes that left and nodes that came.
    pub fn changed(
        &self,
        left: impl IntoIterator<Item = NodeStatus>,
        came: impl IntoIterator<Item = NodeStatus>,
    ) -> StatusCounts {
        let mut counts: BTreeMap<NodeStatus, u64> = self.0.iter().copied().collect();
        came.into_iter().for_each(|status| *counts.entry(status).or_default() += 1);
        for status in left {
            counts.entry(status).and_modify(|n| *n = n.saturating_sub(1));
        }
        StatusCounts::of(counts)
    }

    /// Returns the number of completed nodes and of all nodes that are not cancelled.
    pub fn progress(&self) -> Progress {
        Progress {
            completed: self.of_status(NodeStatus::Completed),
            total: self.total() - self.of_status(NodeStatus::Cancelled),
        }
    }
}

/// A workspace in a list. `state` is an error if the workspace is damaged.
#[derive(Debug)]
pub struct WorkspaceEntry {
    pub id: WorkspaceId,
    pub state: Result<(Workspace, Progress)>,
    /// When the workspace or one of its nodes last changed.
    pub active_at: Millis,
}

/// A deleted workspace, or a node that was deleted with its descendants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TrashEntry {
    pub workspace_id: WorkspaceId,
    /// `None` for a workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_id: Option<NodeId>,
    /// The title of the node or the name of the workspace.
    pub title: String,
    /// The number of deleted nodes, without the root of a workspace.
    pub count: usize,
    pub deleted_at: Millis,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads, together with other readers. Fails with [`Error::Conflict`] if derived data must be updated first.
    Read,
    /// Reads, and updates derived data where needed. Other readers and writers wait.
    Refresh,
    /// Reads and writes. Other readers and writers wait.
    Write,
}

/// A store of workspaces with transactions. Its names differ from those of [`Workspaces`], which every store implements
/// too, so that a call is never ambiguous.
pub trait Store: Send + Sync {
    /// Adds a workspace and its root node atomically.
    fn insert(&self, workspace: &Workspace, root: &Node) -> Result<()>;
    fn entries(&self, now: Millis) -> Result<Vec<WorkspaceEntry>>;
    /// Returns every workspace without a lock and without progress. `None` if a workspace cannot be read.
    fn read_headers(&self) -> Result<Vec<(WorkspaceId, Option<Workspace>)>>;
    /// Returns one workspace like [`Store::read_headers`]. `None` if it does not exist or cannot be read.
    fn read_header(&self, id: &WorkspaceId) -> Result<Option<Workspace>>;
    fn contains(&self, id: &WorkspaceId) -> Result<bool>;
    /// Removes a workspace. The store decides how long it can be restored.
    fn remove(&self, id: &WorkspaceId, now: Millis) -> Result<()>;
    /// Restores a removed workspace. Returns `false` if there is none.
    fn restore(&self, id: &WorkspaceId) -> Result<bool>;
    /// Returns what can be restored, the latest deletion first.
    fn trash_entries(&self) -> Result<Vec<TrashEntry>>;
    /// Deletes the derived data of a workspace. It is rebuilt when needed.
    fn drop_index_cache(&self, _id: &WorkspaceId) {}
    /// Begins a transaction on a workspace. Writers wait until it ends.
    fn begin(&self, id: &WorkspaceId, access: Access, now: Millis) -> Result<Box<dyn Tx + '_>>;
}

/// The result of reading one of several nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeRead {
    Node(Box<Node>),
    Missing,
    /// The stored data cannot be parsed.
    Damaged,
}

/// Which nodes to select, wherever they are in the tree, and in which order.
#[derive(Clone, Copy, Debug)]
pub enum NodeSelection<'a> {
    /// Children that are pending or can have pending descendants and whose own dependencies are completed, in their
    /// order, starting after a position.
    Unblocked { parent: &'a NodeId, after: Option<&'a SiblingPosition> },
    /// Pending nodes, and planning nodes that are not done, with a dependency that is not completed, by position.
    Blocked,
    /// Claimed nodes that are not done, the earliest status change first.
    Held,
    /// Implementing and validating nodes, the latest status change first.
    Started,
}

/// A transaction on one workspace. Each method is one request, wherever the data is. Later reads in the
/// transaction see its writes. Without [`Tx::commit`] all writes are discarded.
pub trait Tx {
    /// Announces nodes that will be read, so that a store elsewhere reads them, their ancestors and what they
    /// depend on at once.
    fn prefetch(&self, _nodes: &[NodeId]) -> Result<()> {
        Ok(())
    }
    fn workspace(&self) -> Result<Workspace>;
    fn node(&self, id: &NodeId) -> Result<Option<Node>>;
    /// Returns one result for each id.
    fn nodes(&self, ids: &[NodeId]) -> Result<Vec<NodeRead>>;
    fn brief(&self, id: &NodeId) -> Result<Option<NodeBrief>>;
    /// Returns the ancestors of a node, nearest first. Stops at a cycle, which manual edits of files can create.
    fn ancestors(&self, id: &NodeId) -> Result<Vec<NodeBrief>>;
    /// Returns every node below `id`, parents before children.
    fn subtree(&self, id: &NodeId) -> Result<Vec<NodeBrief>>;
    /// Returns up to `limit` children in order, starting after `after`.
    fn children(
        &self,
        parent: &NodeId,
        after: Option<&SiblingPosition>,
        limit: usize,
    ) -> Result<Vec<NodeBrief>>;
    /// Same as [`Tx::children`], each with the number of its own children.
    fn children_with_counts(
        &self,
        parent: &NodeId,
        after: Option<&SiblingPosition>,
        limit: usize,
    ) -> Result<Vec<(NodeBrief, u64)>>;
    /// Returns up to `limit` children with a status, latest status change first.
    fn recent_children(&self, parent: &NodeId, status: NodeStatus, limit: usize) -> Result<Vec<NodeBrief>>;
    /// Returns up to `limit` nodes that a text can stand for, by id. See [`NodeName::matches`].
    fn named(&self, name: &NodeName<'_>, limit: usize) -> Result<Vec<NodeBrief>>;
    /// Returns the first nodes of a selection.
    fn select(&self, selection: &NodeSelection<'_>, limit: usize) -> Result<Vec<NodeBrief>>;
    /// Returns every dependency: a node, and the node that must be completed before it.
    fn dependencies(&self) -> Result<Vec<(NodeId, NodeId)>>;
    /// Returns the nodes that depend on one of these, in the order of their ids.
    fn dependents(&self, ids: &[NodeId]) -> Result<Vec<NodeId>>;
    fn last_order(&self, parent: &NodeId) -> Result<i64>;
    /// Returns a node that is in the trash and the descendants that were deleted with it and do not exist,
    /// parents first. Empty if there is none.
    fn trashed(&self, id: &NodeId) -> Result<Vec<Node>>;
    /// Counts the children of a node.
    fn status_counts(&self, parent: &NodeId) -> Result<StatusCounts>;
    /// Counts all nodes except the root.
    fn total(&self) -> Result<StatusCounts>;
    /// Counts what is below each node that has children.
    fn branches(&self) -> Result<HashMap<NodeId, BranchCounts>> {
        Ok(BranchSums::of(&self.subtree(&NodeId::root())?).finish())
    }
    fn put_workspace(&mut self, workspace: Workspace) -> Result<()>;
    fn put_node(&mut self, node: Node) -> Result<()>;
    /// Adds a node with a fresh id. Fails with a conflict if another node has the id, so that the command
    /// runs again with another one. A store may find that only when it commits.
    fn add_node(&mut self, node: Node) -> Result<()> {
        match self.brief(&node.id)? {
            Some(taken) => Err(Error::Conflict { place: taken.id.to_string() }),
            None => self.put_node(node),
        }
    }
    /// Appends an entry that an agent or a person wrote at this time. Returns the number of all entries.
    fn append_log(&mut self, target: &Target, entry: LogEntry, at: Millis) -> Result<usize>;
    /// Removes one node. The caller removes its children.
    fn remove_node(&mut self, id: &NodeId) -> Result<()>;
    /// Commits and returns the sequence number, one higher than that of the previous change. Without writes,
    /// returns the sequence number of the previous change.
    fn commit(self: Box<Self>) -> Result<u64>;
}

/// Runs a command in a transaction and commits it.
pub(crate) fn run(
    store: &dyn Store,
    id: &WorkspaceId,
    command: &Command,
    op: &OpContext,
    sessions: &dyn LiveSessions,
) -> Result<Committed> {
    let (outcome, seq) = change(store, id, op.now, |tx| command::apply(tx, command, op, sessions))?;
    Ok(Committed { outcome, seq })
}

/// Runs `work` in a transaction, commits, and returns the sequence number too. If a file was edited meanwhile, runs
/// `work` again on the new state.
pub(crate) fn change<T>(
    store: &dyn Store,
    id: &WorkspaceId,
    now: Millis,
    mut work: impl FnMut(&mut dyn Tx) -> Result<T>,
) -> Result<(T, u64)> {
    let mut attempts = 0;
    loop {
        let outcome = store.begin(id, Access::Write, now).and_then(|mut tx| {
            let outcome = work(tx.as_mut())?;
            tx.commit().map(|seq| (outcome, seq))
        });
        match outcome {
            Err(error) if attempts < 8 && prepare_retry(store, id, &error) => attempts += 1,
            other => return other,
        }
    }
}

/// Runs `work` in a read transaction. If it needs derived data that is outdated, runs it again and updates the data.
pub(crate) fn view<T>(
    store: &dyn Store,
    id: &WorkspaceId,
    now: Millis,
    mut work: impl FnMut(&dyn Tx) -> Result<T>,
) -> Result<T> {
    let mut access = Access::Read;
    let mut attempts = 0;
    loop {
        let outcome = store.begin(id, access, now).and_then(|tx| work(tx.as_ref()));
        match outcome {
            Err(error) if attempts < 3 && prepare_retry(store, id, &error) => {
                attempts += 1;
                access = Access::Refresh;
            }
            other => return other,
        }
    }
}

/// Returns whether a retry can succeed: a file was edited meanwhile, or the index is lost. Drops a lost index, so that
/// the next attempt rebuilds it.
fn prepare_retry(store: &dyn Store, id: &WorkspaceId, error: &Error) -> bool {
    match error {
        Error::Conflict { .. } => true,
        Error::Unavailable { cause: UnavailableCause::Index(index), .. } if index.is_lost() => {
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
            depends_on: node.depends_on.clone(),
            holder: node.started_by.clone(),
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
