//! [`Workspaces`]: what the program uses of a collection of workspaces. Each method is one call with data in and data
//! out, so that a client of a server can implement it too.

use std::collections::HashMap;

use tanmi_base::Millis;

use super::{
    BranchCounts, NodeBrief, NodeName, StatusCounts, Store, TrashEntry, Tx, WorkspaceEntry, run, view,
};
use crate::command::{Command, Committed, LiveSessions};
use crate::context::{self, Context, ContextLimits};
use crate::error::{Error, OpenDependency, Result};
use crate::model::*;
use crate::ops::{self, Claimant, ListQuery, ListRow, NewWorkspace, NextNodes, NodePage, OpContext, Target};

/// A node with its surroundings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeDetail {
    pub node: Node,
    /// From the root down.
    pub ancestors: Vec<NodeBrief>,
    pub children: StatusCounts,
    /// The nodes that it depends on, without those that do not exist.
    pub dependencies: Vec<NodeBrief>,
    /// The nodes that depend on it.
    pub dependents: Vec<NodeBrief>,
    /// The dependencies of the node and of its ancestors that are not completed.
    pub open_dependencies: Vec<OpenDependency>,
    pub workspace_status: WorkspaceStatus,
}

/// A collection of workspaces. Every [`Store`] is one.
pub trait Workspaces: Send + Sync {
    fn create(&self, new: NewWorkspace, op: &OpContext) -> Result<Workspace>;
    fn list(&self, now: Millis) -> Result<Vec<WorkspaceEntry>>;
    /// Returns the workspaces without their progress, at least the latest 1,000. `None` if a workspace cannot
    /// be read. Cheap, for choosing one.
    fn headers(&self) -> Result<Vec<(WorkspaceId, Option<Workspace>)>>;
    /// Returns one workspace without its progress. `None` if it does not exist or cannot be read.
    fn header(&self, id: &WorkspaceId) -> Result<Option<Workspace>>;
    fn exists(&self, id: &WorkspaceId) -> Result<bool>;
    fn delete(&self, id: &WorkspaceId, now: Millis) -> Result<()>;
    /// Restores a deleted workspace. Returns `false` if there is none.
    fn undelete(&self, id: &WorkspaceId) -> Result<bool>;
    /// Returns what can be restored, the latest deletion first.
    fn trash(&self) -> Result<Vec<TrashEntry>>;
    /// Runs a command. When this returns, the change is durable.
    fn run(
        &self,
        id: &WorkspaceId,
        command: &Command,
        op: &OpContext,
        sessions: &dyn LiveSessions,
    ) -> Result<Committed>;
    fn summary(&self, id: &WorkspaceId, now: Millis) -> Result<(Workspace, Progress)>;
    fn node(&self, id: &WorkspaceId, node: &NodeId, now: Millis) -> Result<Node>;
    fn node_detail(&self, id: &WorkspaceId, node: &NodeId, now: Millis) -> Result<NodeDetail>;
    fn nodes(&self, id: &WorkspaceId, query: &ListQuery, now: Millis) -> Result<NodePage>;
    /// Returns the rows of these nodes as in a list. Missing nodes are left out.
    fn rows(&self, id: &WorkspaceId, nodes: &[NodeId], now: Millis) -> Result<Vec<ListRow>>;
    /// Counts what is below each node that has children.
    fn branches(&self, id: &WorkspaceId, now: Millis) -> Result<HashMap<NodeId, BranchCounts>>;
    fn brief(&self, id: &WorkspaceId, node: &NodeId, now: Millis) -> Result<Option<NodeBrief>>;
    /// Returns up to `limit` nodes that a text can stand for.
    fn named(
        &self,
        id: &WorkspaceId,
        name: &NodeName<'_>,
        limit: usize,
        now: Millis,
    ) -> Result<Vec<NodeBrief>>;
    fn context(
        &self,
        id: &WorkspaceId,
        focus: &NodeId,
        limits: &ContextLimits,
        now: Millis,
    ) -> Result<Context>;
    /// Returns the nodes that can be started now, or why there is none.
    fn next(
        &self,
        id: &WorkspaceId,
        limit: usize,
        claimant: &Claimant,
        sessions: &dyn LiveSessions,
        now: Millis,
    ) -> Result<NextNodes>;
    /// Returns a node with its descendants as an outline; for the root, its descendants only.
    fn outline(&self, id: &WorkspaceId, node: &NodeId, now: Millis) -> Result<String>;
    /// Returns the log and the problem of a node or of the workspace.
    fn activity(&self, id: &WorkspaceId, target: &Target, now: Millis) -> Result<Activity>;
}

impl<S: Store> Workspaces for S {
    fn create(&self, new: NewWorkspace, op: &OpContext) -> Result<Workspace> {
        ops::init(self, new, op)
    }

    fn list(&self, now: Millis) -> Result<Vec<WorkspaceEntry>> {
        self.entries(now)
    }

    fn headers(&self) -> Result<Vec<(WorkspaceId, Option<Workspace>)>> {
        self.read_headers()
    }

    fn header(&self, id: &WorkspaceId) -> Result<Option<Workspace>> {
        self.read_header(id)
    }

    fn exists(&self, id: &WorkspaceId) -> Result<bool> {
        self.contains(id)
    }

    fn delete(&self, id: &WorkspaceId, now: Millis) -> Result<()> {
        self.remove(id, now)
    }

    fn undelete(&self, id: &WorkspaceId) -> Result<bool> {
        self.restore(id)
    }

    fn trash(&self) -> Result<Vec<TrashEntry>> {
        self.trash_entries()
    }

    fn run(
        &self,
        id: &WorkspaceId,
        command: &Command,
        op: &OpContext,
        sessions: &dyn LiveSessions,
    ) -> Result<Committed> {
        run(self, id, command, op, sessions)
    }

    fn summary(&self, id: &WorkspaceId, now: Millis) -> Result<(Workspace, Progress)> {
        view(self, id, now, |tx| Ok((tx.workspace()?, tx.total()?.progress())))
    }

    fn node(&self, id: &WorkspaceId, node: &NodeId, now: Millis) -> Result<Node> {
        view(self, id, now, |tx| tx.node(node)?.ok_or_else(|| Error::node_not_found("nodeId", node)))
    }

    fn node_detail(&self, id: &WorkspaceId, node: &NodeId, now: Millis) -> Result<NodeDetail> {
        view(self, id, now, |tx| node_detail(tx, node))
    }

    fn nodes(&self, id: &WorkspaceId, query: &ListQuery, now: Millis) -> Result<NodePage> {
        view(self, id, now, |tx| ops::list(tx, query))
    }

    fn rows(&self, id: &WorkspaceId, nodes: &[NodeId], now: Millis) -> Result<Vec<ListRow>> {
        view(self, id, now, |tx| ops::rows(tx, nodes))
    }

    fn branches(&self, id: &WorkspaceId, now: Millis) -> Result<HashMap<NodeId, BranchCounts>> {
        view(self, id, now, |tx| tx.branches())
    }

    fn brief(&self, id: &WorkspaceId, node: &NodeId, now: Millis) -> Result<Option<NodeBrief>> {
        view(self, id, now, |tx| tx.brief(node))
    }

    fn named(
        &self,
        id: &WorkspaceId,
        name: &NodeName<'_>,
        limit: usize,
        now: Millis,
    ) -> Result<Vec<NodeBrief>> {
        view(self, id, now, |tx| tx.named(name, limit))
    }

    fn context(
        &self,
        id: &WorkspaceId,
        focus: &NodeId,
        limits: &ContextLimits,
        now: Millis,
    ) -> Result<Context> {
        view(self, id, now, |tx| context::assemble(tx, focus, limits))
    }

    fn next(
        &self,
        id: &WorkspaceId,
        limit: usize,
        claimant: &Claimant,
        sessions: &dyn LiveSessions,
        now: Millis,
    ) -> Result<NextNodes> {
        view(self, id, now, |tx| ops::find_next(tx, limit, claimant, sessions))
    }

    fn outline(&self, id: &WorkspaceId, node: &NodeId, now: Millis) -> Result<String> {
        view(self, id, now, |tx| ops::export(tx, node))
    }

    fn activity(&self, id: &WorkspaceId, target: &Target, now: Millis) -> Result<Activity> {
        view(self, id, now, |tx| ops::read_activity(tx, target))
    }
}

/// Returns a node with its surroundings.
pub(crate) fn node_detail(tx: &dyn Tx, node: &NodeId) -> Result<NodeDetail> {
    tx.prefetch(std::slice::from_ref(node))?;
    let found = tx.node(node)?.ok_or_else(|| Error::node_not_found("nodeId", node))?;
    let mut ancestors = tx.ancestors(node)?;
    ancestors.reverse();
    let briefs = |ids: &[NodeId]| -> Result<Vec<NodeBrief>> {
        ids.iter().filter_map(|id| tx.brief(id).transpose()).collect()
    };
    Ok(NodeDetail {
        ancestors,
        children: tx.status_counts(node)?,
        dependencies: briefs(&found.depends_on)?,
        dependents: briefs(&tx.dependents(std::slice::from_ref(node))?)?,
        open_dependencies: ops::dependencies_to_wait_for(tx, &found)?,
        workspace_status: tx.workspace()?.status,
        node: found,
    })
}
