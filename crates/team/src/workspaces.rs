//! The workspaces of a joined project: the server runs every command, and its answer is in the replica before the call
//! returns. Reads come from the replica.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tanmi_base::paths::project_store;
use tanmi_base::{Millis, fs};
use tanmi_protocol::{
    Document, FeedPage, MEMORY, Positions, ProjectAnswer, ProjectCommand, ProjectRequest, RunRequest,
};
use tanmi_session::States;
use tanmi_workspace::command::{Command, Committed, LiveSessions, Outcome};
use tanmi_workspace::context::{Context, ContextLimits};
use tanmi_workspace::error::{Error, Result};
use tanmi_workspace::model::*;
use tanmi_workspace::ops::{
    Claimant, ListQuery, ListRow, NewWorkspace, NextNodes, NodePage, OpContext, Target, TransitionRequest,
};
use tanmi_workspace::state::Action;
use tanmi_workspace::store::{
    BranchCounts, FileStore, NodeBrief, NodeDetail, NodeName, TrashEntry, WORKSPACE, WorkspaceEntry,
    Workspaces,
};

use crate::client::ClientError;
use crate::connection::Connection;
use crate::memory::TeamMemory;
use crate::presence::Presence;

mod queue;

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

/// What a synchronisation changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Synced {
    /// The number of workspaces that the replica has now.
    pub workspaces: usize,
    /// The number of changes that were applied.
    pub changes: usize,
    /// The number of workspaces that were fetched whole.
    pub fetched: usize,
    /// The number of workspaces that the server no longer has.
    pub removed: usize,
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

    /// Writes the documents of a change into the replica. A replica that is behind catches up first.
    fn apply(&self, id: &WorkspaceId, seq: u64, docs: &[Document]) -> Result<()> {
        if docs.is_empty() {
            // The command changed nothing, and `seq` is that of an earlier change.
            return self.catch_up(id, seq);
        }
        let documents: Vec<(&str, Option<&str>)> =
            docs.iter().map(|doc| (doc.name.as_str(), doc.text.as_deref())).collect();
        let before = seq.saturating_sub(1);
        match self.replica.apply_documents(id, (before, seq), &documents, (self.clock)()) {
            Ok(true) => Ok(()),
            Ok(false) | Err(Error::WorkspaceNotFound { .. }) => self.catch_up(id, seq),
            // What cannot be read or written in part is fetched whole.
            Err(_) => self.fetch(id),
        }
    }

    /// Brings the replica of a workspace to the change `seq` or a later one.
    pub fn catch_up(&self, id: &WorkspaceId, seq: u64) -> Result<()> {
        loop {
            let Ok(Some(position)) = self.replica.position(id, (self.clock)()) else { return self.fetch(id) };
            if position >= seq {
                return Ok(());
            }
            let have = Positions::from([(id.to_string(), position.cast_signed())]);
            let page = self.read_feed(&have)?;
            if page.changes.is_empty() {
                return self.fetch(id);
            }
            self.apply_stream(id, position, &page)?;
        }
    }

    /// Applies the changes of one workspace in a page of the feed, which begins after `position`.
    fn apply_stream(&self, id: &WorkspaceId, position: u64, page: &FeedPage) -> Result<usize> {
        let of_stream = || page.changes.iter().filter(|change| change.stream == id.as_str());
        let Some(last) = of_stream().next_back().map(|change| change.seq.cast_unsigned()) else {
            return Ok(0);
        };
        let docs = of_stream().flat_map(|change| &change.docs);
        let documents: Vec<(&str, Option<&str>)> =
            docs.map(|doc| (doc.name.as_str(), doc.text.as_deref())).collect();
        match self.replica.apply_documents(id, (position, last), &documents, (self.clock)()) {
            Ok(_) => Ok(of_stream().count()),
            Err(_) => self.fetch(id).map(|()| 1),
        }
    }

    /// Returns the position of every workspace of the replica. One that cannot be read is fetched again.
    pub fn positions(&self) -> Result<Positions> {
        let mut positions = Positions::new();
        for (id, _) in self.replica.headers()? {
            if let Ok(Some(position)) = self.replica.position(&id, (self.clock)()) {
                positions.insert(id.to_string(), position.cast_signed());
            }
        }
        Ok(positions)
    }

    /// Reads the changes after these positions.
    fn read_feed(&self, have: &Positions) -> Result<FeedPage> {
        let page = self.connection.read(|client| client.feed(have, 0)).map_err(|error| self.failed(error))?;
        Ok(page.in_history(self.connection.state().history.as_deref(), have))
    }

    /// Applies a page of the feed to the replica: changes, workspaces that are new or have a gap, and deleted ones. `have`
    /// are the positions that the page was read for.
    pub fn apply_page(&self, have: &Positions, page: &FeedPage) -> Result<Synced> {
        let mut synced = Synced::default();
        for (stream, position) in have.iter().filter(|(stream, _)| stream.as_str() != MEMORY) {
            let Ok(id) = WorkspaceId::parse(stream) else { continue };
            if !page.heads.contains_key(stream) {
                self.replica.delete(&id, (self.clock)())?;
                synced.removed += 1;
            } else if page.gaps.contains(stream) {
                self.fetch(&id)?;
                synced.fetched += 1;
            } else {
                synced.changes += self.apply_stream(&id, position.cast_unsigned(), page)?;
            }
        }
        for stream in page.heads.keys().filter(|stream| !have.contains_key(*stream)) {
            let Ok(id) = WorkspaceId::parse(stream) else { continue };
            self.fetch(&id)?;
            synced.fetched += 1;
        }
        self.connection.note_time(page.now);
        if !page.history.is_empty() {
            self.connection.update_state(|state| state.history = Some(page.history.clone()));
        }
        Ok(synced)
    }

    /// Brings the whole replica to the state of the server. `progress` gets the number of changes so far.
    pub fn sync(&self, progress: &mut dyn FnMut(usize)) -> Result<Synced> {
        let mut total = Synced::default();
        loop {
            let have = self.positions()?;
            let synced = self.apply_page(&have, &self.read_feed(&have)?)?;
            total.changes += synced.changes;
            total.fetched += synced.fetched;
            total.removed += synced.removed;
            progress(total.changes + total.fetched);
            if synced == Synced::default() {
                let store = project_store(&self.folder);
                // By this folder a deleted replica is told from one of a project without workspaces.
                fs::create_private_dir(&store).map_err(Error::io(&store))?;
                total.workspaces = have.len();
                // If this fails, the next sync or the follower of a server process tells who works on what.
                let _ = self.beat(&[]);
                return Ok(total);
            }
        }
    }

    /// Renews the leases of sessions of this machine, and writes down who works on what.
    pub fn beat(&self, sessions: &[String]) -> Result<()> {
        let beat =
            self.connection.read(|client| client.beat(sessions)).map_err(|error| self.failed(error))?;
        let presence = Presence::of_beat(beat, (self.clock)());
        presence.write(&self.folder).map_err(Error::io(&self.folder))
    }

    /// Fetches a whole workspace.
    pub fn fetch(&self, id: &WorkspaceId) -> Result<()> {
        let fetched = self.connection.read(|client| client.fetch(id.as_str()));
        let (documents, seq) = fetched.map_err(|error| self.failed(error))?;
        let texts: Vec<(&str, &str)> =
            documents.iter().filter_map(|doc| Some((doc.name.as_str(), doc.text.as_deref()?))).collect();
        fs::create_private_dir(&self.folder).map_err(Error::io(&self.folder))?;
        self.replica.replace_documents(id, seq, &texts, (self.clock)())
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

    /// Fetches the whole replica if it was deleted. A server that is away is reported by the calls that need it.
    pub fn restore_deleted(&self) {
        if !project_store(&self.folder).is_dir() {
            let _ = self.sync(&mut |_| {});
        }
    }

    /// Fetches every workspace again and compares it with the replica. Returns what the replica had otherwise; it is
    /// replaced, and texts that did not come from the server are kept aside.
    pub fn check(&self, progress: &mut dyn FnMut(usize)) -> Result<Vec<String>> {
        let mut different = Vec::new();
        for (done, (id, _)) in self.replica.headers()?.into_iter().enumerate() {
            let before = self.replica.documents(&id);
            self.fetch(&id)?;
            let after = self.replica.documents(&id)?;
            progress(done + 1);
            let Ok(before) = before else {
                different.push(id.to_string());
                continue;
            };
            if before.workspace != after.workspace {
                different.push(format!("{id}/{WORKSPACE}"));
            }
            let is_same = |(node, text): &&(NodeId, String)| {
                let other = before.nodes.binary_search_by(|(known, _)| known.cmp(node));
                other.is_ok_and(|at| before.nodes[at].1 == *text)
            };
            let changed = after.nodes.iter().filter(|node| !is_same(node));
            different.extend(changed.map(|(node, _)| format!("{id}/{node}")));
            let gone = before
                .nodes
                .iter()
                .filter(|(node, _)| after.nodes.binary_search_by(|(known, _)| known.cmp(node)).is_err());
            different.extend(gone.map(|(node, _)| format!("{id}/{node}")));
        }
        Ok(different)
    }

    /// Returns the store of the replica.
    pub fn replica(&self) -> &FileStore {
        &self.replica
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
        self.replica.delete(id, now)
    }

    fn undelete(&self, id: &WorkspaceId) -> Result<bool> {
        let command = ProjectCommand::UndeleteWorkspace { workspace_id: id.clone() };
        match self.change_list(&command, Operator::Human) {
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
        sessions: &dyn LiveSessions,
    ) -> Result<Committed> {
        let session = claimant_of(command);
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
