//! The workspaces of a joined project: the server runs every command, and its answer is in the replica before the call
//! returns. Reads come from the replica.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tanmi_base::Millis;
use tanmi_protocol::{ProjectAnswer, ProjectCommand, ProjectRequest, RunRequest};
use tanmi_session::States;
use tanmi_workspace::command::{Command, Committed, LiveSessions, Outcome};
use tanmi_workspace::context::{Context, ContextLimits};
use tanmi_workspace::error::{Error, Result};
use tanmi_workspace::model::*;
use tanmi_workspace::ops::{
    Claimant, ListQuery, ListRow, NewWorkspace, NextNodes, NodePage, OpContext, Target,
};
use tanmi_workspace::state::Action;
use tanmi_workspace::store::{
    BranchCounts, FileStore, NodeBrief, NodeDetail, NodeName, TrashEntry, WorkspaceEntry, Workspaces,
};

use crate::client::ClientError;
use crate::connection::Connection;
use crate::memory::TeamMemory;
use crate::presence::Presence;

mod queue;
mod sync;

pub use sync::Synced;

/// The workspaces of a project that a team server keeps.
pub struct TeamWorkspaces {
    /// The folder of the replica.
    folder: PathBuf,
    replica: Arc<FileStore>,
    connection: Arc<Connection>,
    machine: String,
    memory: Arc<TeamMemory>,
    /// Returns the name of the client of a platform.
    client_name: fn(&str) -> Option<&'static str>,
    clock: fn() -> Millis,
}

/// The sessions as the server last told.
struct ToldSessions {
    presence: Presence,
    now: Millis,
}

impl LiveSessions for ToldSessions {
    fn is_live(&self, session: &str) -> bool {
        self.presence.is_live(session, self.now)
    }
}

impl TeamWorkspaces {
    pub fn new(
        folder: PathBuf,
        replica: Arc<FileStore>,
        connection: Arc<Connection>,
        machine: &str,
        memory: Arc<TeamMemory>,
        clock: fn() -> Millis,
    ) -> TeamWorkspaces {
        TeamWorkspaces {
            folder,
            replica,
            connection,
            machine: machine.to_owned(),
            memory,
            client_name: |_| None,
            clock,
        }
    }

    /// Returns the same workspaces, whose claims name the client of their session.
    pub fn with_client_names(self, client_name: fn(&str) -> Option<&'static str>) -> TeamWorkspaces {
        TeamWorkspaces { client_name, ..self }
    }

    /// Returns the memory of the project, which delivers what waits for the server.
    pub fn memory(&self) -> &Arc<TeamMemory> {
        &self.memory
    }

    /// Returns the folder of the replica.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    fn failed(&self, error: ClientError) -> Error {
        error.into_store_error(self.connection.server())
    }

    /// Renews the leases of sessions of this machine, and writes down who works on what.
    pub fn beat(&self, sessions: &[String]) -> Result<()> {
        let beat =
            self.connection.poll(|client| client.beat(sessions)).map_err(|error| self.failed(error))?;
        let presence = Presence::of_beat(beat, (self.clock)());
        presence.write(&self.folder).map_err(Error::io(&self.folder))
    }

    /// Returns this machine as others see it: with the client of the session, if a hook named its platform.
    fn machine_of(&self, session: Option<&str>) -> String {
        let home = self.folder.parent().and_then(Path::parent);
        let platform = home.zip(session).map(|(home, session)| States::new(home).read(session).platform);
        match platform.and_then(|platform| (self.client_name)(&platform)) {
            Some(client) => format!("{} · {client}", self.machine),
            None => self.machine.clone(),
        }
    }

    /// Reads a workspace of the replica. If it is missing or damaged, it is fetched first.
    fn read<T>(&self, id: &WorkspaceId, read: impl Fn(&FileStore) -> Result<T>) -> Result<T> {
        match read(&self.replica) {
            Err(error @ (Error::WorkspaceNotFound { .. } | Error::Corrupt { .. })) => {
                self.fetch(id).map_err(|_| error)?;
                read(&self.replica)
            }
            other => other,
        }
    }

    /// Returns the store of the replica.
    pub fn replica(&self) -> &FileStore {
        &self.replica
    }

    /// Removes the copy of a workspace, unless another process did.
    fn delete_copy(&self, id: &WorkspaceId, now: Millis) -> Result<()> {
        match self.replica.delete(id, now) {
            Err(Error::WorkspaceNotFound { .. }) => Ok(()),
            other => other,
        }
    }

    fn change_list(&self, command: &ProjectCommand, operator: Operator) -> Result<ProjectAnswer> {
        let with_key = |key| ProjectRequest { key, command: command.clone(), operator };
        let answer = self.connection.command(with_key, |client, request| client.run_project(request));
        answer.map_err(|error| self.failed(error))
    }
}

/// A node that was submitted is still held.
fn is_submit(command: &Command) -> bool {
    matches!(command, Command::Transition { request } if request.action == Action::Submit)
}

/// Returns the node whose claim a command needs, if it does.
fn needed_claim(command: &Command) -> Option<&NodeId> {
    let Command::Transition { request } = command else { return None };
    let ends = matches!(request.action, Action::Submit | Action::Complete | Action::Fail | Action::Cancel);
    ends.then_some(&request.node_id)
}

/// Returns the node that a command claimed, if it did.
fn claimed_node(outcome: &Outcome) -> Option<&NodeId> {
    match outcome {
        Outcome::Transition { transition, .. } => Some(&transition.node_id),
        Outcome::Next { started, .. } => Some(&started.as_ref()?.transition.node_id),
        _ => None,
    }
}

/// Returns the name of a claim in the state of the replica.
fn claim_name(id: &WorkspaceId, node: &NodeId, session: Option<&str>) -> String {
    format!("{id}/{node}/{}", session.unwrap_or_default())
}

impl Workspaces for TeamWorkspaces {
    fn create(&self, new: NewWorkspace, op: &OpContext) -> Result<Workspace> {
        let command = ProjectCommand::CreateWorkspace { workspace: new };
        let answer = self.change_list(&command, op.operator)?;
        let created = answer.created.ok_or(Error::UnexpectedOutcome)?;
        // The workspace exists on the server. If the replica cannot be written now, a later call fetches it.
        let _ = self.fetch(&answer.workspace_id);
        match created.outcome {
            Outcome::Workspace { workspace, .. } => Ok(workspace),
            _ => Err(Error::UnexpectedOutcome),
        }
    }

    fn delete(&self, id: &WorkspaceId, now: Millis) -> Result<()> {
        self.change_list(&ProjectCommand::DeleteWorkspace { workspace_id: id.clone() }, Operator::Human)?;
        self.delete_copy(id, now)
    }

    fn undelete(&self, id: &WorkspaceId) -> Result<bool> {
        let command = ProjectCommand::UndeleteWorkspace { workspace_id: id.clone() };
        match self.change_list(&command, Operator::Human) {
            Ok(_) => {
                // The workspace is back on the server. If it cannot be fetched now, a later call does it.
                let _ = self.fetch(id);
                Ok(true)
            }
            Err(Error::WorkspaceNotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn run(
        &self,
        id: &WorkspaceId,
        command: &Command,
        op: &OpContext,
        sessions: &dyn LiveSessions,
    ) -> Result<Committed> {
        let session = command.claimant().and_then(|claimant| claimant.session.clone());
        let claim = needed_claim(command).map(|node| claim_name(id, node, session.as_deref()));
        let fence = claim.as_ref().and_then(|claim| self.connection.state().claim(claim));
        let with_key = |key| RunRequest {
            key,
            stream: id.clone(),
            command: command.clone(),
            operator: op.operator,
            session: session.clone(),
            machine: self.machine_of(session.as_deref()),
            fence,
            expects: None,
            age: None,
        };
        if let Command::AppendLog { target, event } = command {
            return self.append_log(target, event, (op, sessions.caller()), with_key);
        }
        let answer = self.connection.command(with_key, |client, request| client.run(request));
        let answer = answer.map_err(|error| self.failed(error))?;
        self.connection.note_time(answer.now);
        if let (Some(fence), Some(node)) = (answer.fence, claimed_node(&answer.outcome)) {
            let claim = claim_name(id, node, session.as_deref());
            self.connection.update_state(|state| state.set_claim(&claim, Some(fence)));
        } else if let Some(claim) = claim.filter(|_| fence.is_some() && !is_submit(command)) {
            self.connection.update_state(|state| state.set_claim(&claim, None));
        }
        // The change is on the server. If the replica cannot be written now, a later call catches up.
        let _ = self.apply(id, answer.seq, &answer.docs);
        self.deliver_briefly();
        Ok(Committed { outcome: answer.outcome, seq: answer.seq })
    }

    fn list(&self, now: Millis) -> Result<Vec<WorkspaceEntry>> {
        self.replica.list(now)
    }

    fn headers(&self) -> Result<Vec<(WorkspaceId, Option<Workspace>)>> {
        self.replica.headers()
    }

    fn header(&self, id: &WorkspaceId) -> Result<Option<Workspace>> {
        self.replica.header(id)
    }

    fn exists(&self, id: &WorkspaceId) -> Result<bool> {
        self.replica.exists(id)
    }

    fn trash(&self) -> Result<Vec<TrashEntry>> {
        self.replica.trash()
    }

    fn summary(&self, id: &WorkspaceId, now: Millis) -> Result<(Workspace, Progress)> {
        self.read(id, |replica| replica.summary(id, now))
    }

    fn node(&self, id: &WorkspaceId, node: &NodeId, now: Millis) -> Result<Node> {
        self.read(id, |replica| Workspaces::node(replica, id, node, now))
    }

    fn node_detail(&self, id: &WorkspaceId, node: &NodeId, now: Millis) -> Result<NodeDetail> {
        self.read(id, |replica| replica.node_detail(id, node, now))
    }

    fn nodes(&self, id: &WorkspaceId, query: &ListQuery, now: Millis) -> Result<NodePage> {
        self.read(id, |replica| replica.nodes(id, query, now))
    }

    fn rows(&self, id: &WorkspaceId, nodes: &[NodeId], now: Millis) -> Result<Vec<ListRow>> {
        self.read(id, |replica| replica.rows(id, nodes, now))
    }

    fn brief(&self, id: &WorkspaceId, node: &NodeId, now: Millis) -> Result<Option<NodeBrief>> {
        self.read(id, |replica| replica.brief(id, node, now))
    }

    fn named(
        &self,
        id: &WorkspaceId,
        name: &NodeName<'_>,
        limit: usize,
        now: Millis,
    ) -> Result<Vec<NodeBrief>> {
        self.read(id, |replica| replica.named(id, name, limit, now))
    }

    fn context(
        &self,
        id: &WorkspaceId,
        focus: &NodeId,
        limits: &ContextLimits,
        now: Millis,
    ) -> Result<Context> {
        self.read(id, |replica| replica.context(id, focus, limits, now))
    }

    fn next(
        &self,
        id: &WorkspaceId,
        limit: usize,
        claimant: &Claimant,
        _: &dyn LiveSessions,
        now: Millis,
    ) -> Result<NextNodes> {
        let told = ToldSessions { presence: Presence::read(&self.folder), now };
        let mut found = self.read(id, |replica| replica.next(id, limit, claimant, &told, now))?;
        for node in &mut found.blocked {
            node.holder_name = node.holder.as_deref().and_then(|holder| told.presence.name(holder));
        }
        Ok(found)
    }

    fn branches(&self, id: &WorkspaceId, now: Millis) -> Result<HashMap<NodeId, BranchCounts>> {
        self.read(id, |replica| replica.branches(id, now))
    }

    fn outline(&self, id: &WorkspaceId, node: &NodeId, now: Millis) -> Result<String> {
        self.read(id, |replica| replica.outline(id, node, now))
    }

    fn activity(&self, id: &WorkspaceId, target: &Target, now: Millis) -> Result<Activity> {
        self.read(id, |replica| replica.activity(id, target, now))
    }
}

#[cfg(test)]
mod tests;
