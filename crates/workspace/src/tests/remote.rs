//! A client as a server would have it: implements [`Workspaces`] itself, sends commands as JSON text, and receives
//! outcomes as JSON text.

use std::collections::HashMap;

use super::*;
use crate::command::{Command, Committed};
use crate::context::{Context, ContextLimits};
use crate::store::{BranchCounts, NodeBrief, NodeDetail, NodeName, TrashEntry, WorkspaceEntry, Workspaces};

#[derive(Default)]
pub struct RemoteWorkspaces {
    server: InMemoryStore,
}

/// Sends a value as JSON text. It must mean the same on the other side.
fn send<T>(value: &T) -> T
where
    T: serde::Serialize + serde::de::DeserializeOwned + PartialEq + std::fmt::Debug,
{
    let received: T = serde_json::from_str(&serde_json::to_string(value).unwrap()).unwrap();
    assert_eq!(received, *value);
    received
}

impl Workspaces for RemoteWorkspaces {
    fn create(&self, new: NewWorkspace, op: &OpContext) -> Result<Workspace> {
        self.server.create(send(&new), op).map(|workspace| send(&workspace))
    }

    fn list(&self, now: Millis) -> Result<Vec<WorkspaceEntry>> {
        self.server.list(now)
    }

    fn headers(&self) -> Result<Vec<(WorkspaceId, Option<Workspace>)>> {
        self.server.headers().map(|headers| send(&headers))
    }

    fn header(&self, id: &WorkspaceId) -> Result<Option<Workspace>> {
        self.server.header(id).map(|header| send(&header))
    }

    fn exists(&self, id: &WorkspaceId) -> Result<bool> {
        self.server.exists(id)
    }

    fn delete(&self, id: &WorkspaceId, now: Millis) -> Result<()> {
        self.server.delete(id, now)
    }

    fn undelete(&self, id: &WorkspaceId) -> Result<bool> {
        self.server.undelete(id)
    }

    fn trash(&self) -> Result<Vec<TrashEntry>> {
        self.server.trash()
    }

    fn run(
        &self,
        id: &WorkspaceId,
        command: &Command,
        op: &OpContext,
        sessions: &dyn LiveSessions,
    ) -> Result<Committed> {
        self.server.run(id, &send(command), op, sessions).map(|committed| send(&committed))
    }

    fn summary(&self, id: &WorkspaceId, now: Millis) -> Result<(Workspace, Progress)> {
        self.server.summary(id, now).map(|summary| send(&summary))
    }

    fn node(&self, id: &WorkspaceId, node: &NodeId, now: Millis) -> Result<Node> {
        self.server.node(id, &send(node), now).map(|node| send(&node))
    }

    fn node_detail(&self, id: &WorkspaceId, node: &NodeId, now: Millis) -> Result<NodeDetail> {
        self.server.node_detail(id, node, now)
    }

    fn nodes(&self, id: &WorkspaceId, query: &ListQuery, now: Millis) -> Result<NodePage> {
        self.server.nodes(id, query, now)
    }

    fn rows(&self, id: &WorkspaceId, nodes: &[NodeId], now: Millis) -> Result<Vec<ListRow>> {
        self.server.rows(id, nodes, now)
    }

    fn branches(&self, id: &WorkspaceId, now: Millis) -> Result<HashMap<NodeId, BranchCounts>> {
        self.server.branches(id, now)
    }

    fn brief(&self, id: &WorkspaceId, node: &NodeId, now: Millis) -> Result<Option<NodeBrief>> {
        self.server.brief(id, node, now)
    }

    fn named(
        &self,
        id: &WorkspaceId,
        name: &NodeName<'_>,
        limit: usize,
        now: Millis,
    ) -> Result<Vec<NodeBrief>> {
        self.server.named(id, name, limit, now)
    }

    fn context(
        &self,
        id: &WorkspaceId,
        focus: &NodeId,
        limits: &ContextLimits,
        now: Millis,
    ) -> Result<Context> {
        self.server.context(id, focus, limits, now)
    }

    fn next(
        &self,
        id: &WorkspaceId,
        limit: usize,
        claimant: &Claimant,
        sessions: &dyn LiveSessions,
        now: Millis,
    ) -> Result<NextNodes> {
        self.server.next(id, limit, &send(claimant), sessions, now).map(|next| send(&next))
    }

    fn outline(&self, id: &WorkspaceId, node: &NodeId, now: Millis) -> Result<String> {
        self.server.outline(id, node, now)
    }

    fn activity(&self, id: &WorkspaceId, target: &Target, now: Millis) -> Result<Activity> {
        self.server.activity(id, &send(target), now).map(|activity| send(&activity))
    }
}
