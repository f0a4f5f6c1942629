//! The workspaces of a joined project: the server runs every command, and its answer is in the replica before the call
//! returns. Reads come from the replica.

use std::collections::HashMap;
use std::sync::Arc;

use tanmi_base::{Millis, id};
use tanmi_protocol::{Document, Positions, ProjectCommand, ProjectRequest, RunRequest};
use tanmi_workspace::command::{Command, Committed, LiveSessions, Outcome};
use tanmi_workspace::context::{Context, ContextLimits};
use tanmi_workspace::error::{Error, Result};
use tanmi_workspace::model::*;
use tanmi_workspace::ops::{
    Claimant, ListQuery, ListRow, NewWorkspace, NextNodes, NodePage, OpContext, Target, TransitionRequest,
};
use tanmi_workspace::store::{
    BranchCounts, FileStore, NodeBrief, NodeDetail, NodeName, TrashEntry, WorkspaceEntry, Workspaces,
};

use crate::client::{Client, ClientError};

/// The workspaces of a project that a team server keeps.
pub struct TeamWorkspaces {
    replica: Arc<FileStore>,
    client: Client,
    machine: String,
    clock: fn() -> Millis,
}

impl TeamWorkspaces {
    pub fn new(
        replica: Arc<FileStore>,
        client: Client,
        machine: &str,
        clock: fn() -> Millis,
    ) -> TeamWorkspaces {
        TeamWorkspaces { replica, client, machine: machine.to_owned(), clock }
    }

    fn failed(&self, error: ClientError) -> Error {
        error.into_store_error(self.client.server())
    }

    /// Writes the documents of a change into the replica. A replica that is behind catches up first.
    fn apply(&self, id: &WorkspaceId, seq: u64, docs: &[Document]) -> Result<()> {
        let documents: Vec<(&str, Option<&str>)> =
            docs.iter().map(|doc| (doc.name.as_str(), doc.text.as_deref())).collect();
        let before = seq.saturating_sub(1);
        match self.replica.apply_documents(id, (before, seq), &documents, (self.clock)()) {
            Ok(true) => Ok(()),
            Ok(false) | Err(Error::WorkspaceNotFound { .. }) => self.catch_up(id, seq),
            Err(error) => Err(error),
        }
    }

    /// Brings the replica of a workspace to the change `seq` or a later one.
    pub fn catch_up(&self, id: &WorkspaceId, seq: u64) -> Result<()> {
        let now = (self.clock)();
        let Some(position) = self.replica.position(id, now)? else { return self.fetch(id) };
        if position >= seq {
            return Ok(());
        }
        let have = Positions::from([(id.to_string(), position.cast_signed())]);
        let page = self.client.feed(&have, 0).map_err(|error| self.failed(error))?;
        let last = page.changes.last().map(|change| change.seq.cast_unsigned());
        let Some(last) = last.filter(|_| page.gaps.is_empty()) else { return self.fetch(id) };
        let documents: Vec<(&str, Option<&str>)> = page
            .changes
            .iter()
            .flat_map(|change| change.docs.iter().map(|doc| (doc.name.as_str(), doc.text.as_deref())))
            .collect();
        match self.replica.apply_documents(id, (position, last), &documents, now) {
            Ok(_) => self.catch_up(id, seq),
            Err(_) => self.fetch(id),
        }
    }

    /// Fetches a whole workspace.
    pub fn fetch(&self, id: &WorkspaceId) -> Result<()> {
        let mut documents: Vec<Document> = Vec::new();
        let mut after: Option<String> = None;
        let mut first = None;
        loop {
            let page =
                self.client.snapshot(id.as_str(), after.as_deref()).map_err(|error| self.failed(error))?;
            // A change between two pages is after the first one, so the feed brings it.
            first.get_or_insert(page.seq0);
            documents.extend(page.docs);
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        let texts: Vec<(&str, &str)> =
            documents.iter().filter_map(|doc| Some((doc.name.as_str(), doc.text.as_deref()?))).collect();
        let seq = first.unwrap_or_default().cast_unsigned();
        self.replica.replace_documents(id, seq, &texts, (self.clock)())
    }

    fn change_list(&self, command: ProjectCommand, operator: Operator) -> Result<Option<Workspace>> {
        let request = ProjectRequest { key: fresh_key(), command, operator };
        let answer = self.client.run_project(&request).map_err(|error| self.failed(error))?;
        let Some(created) = answer.created else { return Ok(None) };
        self.apply(&answer.workspace_id, created.seq, &created.docs)?;
        match created.outcome {
            Outcome::Workspace { workspace, .. } => Ok(Some(workspace)),
            _ => Err(Error::UnexpectedOutcome),
        }
    }
}

/// Returns a key for a new request.
fn fresh_key() -> String {
    format!("machine-{}", id::random(20))
}

/// Returns the session that a command acts for.
fn claimant_of(command: &Command) -> Option<String> {
    match command {
        Command::Transition { request: TransitionRequest { claimant, .. } }
        | Command::DeleteNode { claimant, .. }
        | Command::StartNext { claimant } => claimant.session.clone(),
        _ => None,
    }
}

impl Workspaces for TeamWorkspaces {
    fn create(&self, new: NewWorkspace, op: &OpContext) -> Result<Workspace> {
        let created = self.change_list(ProjectCommand::CreateWorkspace { workspace: new }, op.operator)?;
        created.ok_or(Error::UnexpectedOutcome)
    }

    fn delete(&self, id: &WorkspaceId, now: Millis) -> Result<()> {
        let command = ProjectCommand::DeleteWorkspace { workspace_id: id.clone() };
        self.change_list(command, Operator::Human)?;
        self.replica.delete(id, now)
    }

    fn undelete(&self, id: &WorkspaceId) -> Result<bool> {
        let command = ProjectCommand::UndeleteWorkspace { workspace_id: id.clone() };
        match self.change_list(command, Operator::Human) {
            Ok(_) => self.fetch(id).map(|()| true),
            Err(Error::WorkspaceNotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn run(
        &self,
        id: &WorkspaceId,
        command: &Command,
        op: &OpContext,
        _: &dyn LiveSessions,
    ) -> Result<Committed> {
        let request = RunRequest {
            key: fresh_key(),
            stream: id.clone(),
            command: command.clone(),
            operator: op.operator,
            session: claimant_of(command),
            machine: self.machine.clone(),
            fence: None,
            expects: None,
        };
        let answer = self.client.run(&request).map_err(|error| self.failed(error))?;
        self.apply(id, answer.seq, &answer.docs)?;
        Ok(Committed { outcome: answer.outcome, seq: answer.seq })
    }

    fn list(&self, now: Millis) -> Result<Vec<WorkspaceEntry>> {
        self.replica.list(now)
    }

    fn headers(&self) -> Result<Vec<(WorkspaceId, Option<Workspace>)>> {
        self.replica.headers()
    }

    fn exists(&self, id: &WorkspaceId) -> Result<bool> {
        self.replica.exists(id)
    }

    fn trash(&self) -> Result<Vec<TrashEntry>> {
        self.replica.trash()
    }

    fn summary(&self, id: &WorkspaceId, now: Millis) -> Result<(Workspace, Progress)> {
        self.replica.summary(id, now)
    }

    fn node(&self, id: &WorkspaceId, node: &NodeId, now: Millis) -> Result<Node> {
        Workspaces::node(&*self.replica, id, node, now)
    }

    fn node_detail(&self, id: &WorkspaceId, node: &NodeId, now: Millis) -> Result<NodeDetail> {
        self.replica.node_detail(id, node, now)
    }

    fn nodes(&self, id: &WorkspaceId, query: &ListQuery, now: Millis) -> Result<NodePage> {
        self.replica.nodes(id, query, now)
    }

    fn rows(&self, id: &WorkspaceId, nodes: &[NodeId], now: Millis) -> Result<Vec<ListRow>> {
        self.replica.rows(id, nodes, now)
    }

    fn brief(&self, id: &WorkspaceId, node: &NodeId, now: Millis) -> Result<Option<NodeBrief>> {
        self.replica.brief(id, node, now)
    }

    fn named(
        &self,
        id: &WorkspaceId,
        name: &NodeName<'_>,
        limit: usize,
        now: Millis,
    ) -> Result<Vec<NodeBrief>> {
        self.replica.named(id, name, limit, now)
    }

    fn context(
        &self,
        id: &WorkspaceId,
        focus: &NodeId,
        limits: &ContextLimits,
        now: Millis,
    ) -> Result<Context> {
        self.replica.context(id, focus, limits, now)
    }

    fn next(
        &self,
        id: &WorkspaceId,
        limit: usize,
        claimant: &Claimant,
        live: &dyn LiveSessions,
        now: Millis,
    ) -> Result<NextNodes> {
        self.replica.next(id, limit, claimant, live, now)
    }

    fn branches(&self, id: &WorkspaceId, now: Millis) -> Result<HashMap<NodeId, BranchCounts>> {
        self.replica.branches(id, now)
    }

    fn outline(&self, id: &WorkspaceId, node: &NodeId, now: Millis) -> Result<String> {
        self.replica.outline(id, node, now)
    }

    fn activity(&self, id: &WorkspaceId, target: &Target, now: Millis) -> Result<Activity> {
        self.replica.activity(id, target, now)
    }
}
