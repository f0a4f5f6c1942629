//! The stores of a team project, as the services of the program use them: every write is a request of the caller.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tanmi_app::Result as AppResult;
use tanmi_app::stores::{KnownWorkspace, Project, ProjectId, Projects, Stores};
use tanmi_base::{Millis, id};
use tanmi_memory::{MemoryStore, ReplicaMemory, VecMemory};
use tanmi_pg::{Caller, PgMemory, PgStore, RunError};
use tanmi_protocol::{ProjectCommand, ProjectRequest, RunRequest};
use tanmi_session::{Binding, Bindings, Ledger, LedgerEntry, LedgerRead, LedgerTail};
use tanmi_workspace::command::{Command, Committed, LiveSessions, Outcome};
use tanmi_workspace::context::{Context, ContextLimits};
use tanmi_workspace::error::{Error, Result, UnavailableCause};
use tanmi_workspace::model::*;
use tanmi_workspace::ops::{
    Claimant, ListQuery, ListRow, NewWorkspace, NextNodes, NodePage, OpContext, Target,
};
use tanmi_workspace::store::{
    BranchCounts, ChangeFeed, ContextSnapshots, LocalMaintenance, NodeBrief, NodeDetail, NodeName,
    TrashEntry, WorkspaceEntry, Workspaces,
};

use super::heads::Heads;

/// The name of this machine in the claims of agents that work on the server.
const MACHINE: &str = "team server";

/// Returns the stores of a project for one caller. `home` is where replicas of memories are kept.
pub fn open(store: PgStore, caller: &Caller, heads: Arc<Heads>, home: &Path) -> Stores {
    let folder = folder_of(home, &caller.project);
    let memory = memory(store.clone(), caller, home);
    let workspaces = CallerWorkspaces { store: store.clone(), caller: caller.clone(), heads };
    let (id, person) = (ProjectId::of_name(&caller.project), caller.name.clone());
    let project = TeamProject { id, person, folder, workspaces, memory };
    Stores {
        projects: Arc::new(TeamProjects(Arc::new(project))),
        bindings: Arc::new(TeamBindings { store, caller: caller.clone() }),
        ledger: Arc::new(NoLedger),
        // A person's own facts stay on the machine of the person. No tool of the server writes here.
        user_memory: Arc::new(VecMemory::default()),
    }
}

/// Returns the folder that stands for a project on this machine. It holds the replica of the memory.
pub fn folder_of(home: &Path, project: &str) -> PathBuf {
    home.join("projects").join(project)
}

/// Returns the memory of a project, whose writes name the caller.
pub fn memory(store: PgStore, caller: &Caller, home: &Path) -> PgMemory {
    let folder = folder_of(home, &caller.project);
    // If this fails, the memory reports it when it is used.
    let _ = tanmi_base::fs::create_private_dir(&folder);
    let replica = ReplicaMemory::new(&folder, home);
    PgMemory::new(store, replica).written_by(caller, None, MACHINE)
}

struct TeamProject {
    id: ProjectId,
    person: String,
    folder: PathBuf,
    workspaces: CallerWorkspaces,
    memory: PgMemory,
}

impl Project for TeamProject {
    fn id(&self) -> &ProjectId {
        &self.id
    }

    fn folder(&self) -> &Path {
        &self.folder
    }

    fn person(&self) -> Option<&str> {
        Some(&self.person)
    }

    fn check(&self) -> AppResult<()> {
        Ok(())
    }

    fn workspaces(&self) -> &dyn Workspaces {
        &self.workspaces
    }

    fn snapshots(&self) -> &dyn ContextSnapshots {
        &self.workspaces.store
    }

    fn feed(&self) -> &dyn ChangeFeed {
        &self.workspaces.store
    }

    fn memory(&self) -> Arc<dyn MemoryStore> {
        Arc::new(self.memory.clone())
    }

    fn maintenance(&self) -> Option<&dyn LocalMaintenance> {
        None
    }
}

/// The one project of a request.
struct TeamProjects(Arc<TeamProject>);

impl Projects for TeamProjects {
    fn in_folder(&self, _: &Path) -> Arc<dyn Project> {
        self.0.clone()
    }

    fn of_workspace(&self, id: &WorkspaceId) -> AppResult<Option<Arc<dyn Project>>> {
        let is_ours = self.0.workspaces.exists(id)?;
        Ok(is_ours.then(|| self.0.clone() as Arc<dyn Project>))
    }

    fn all(&self) -> AppResult<Vec<Arc<dyn Project>>> {
        Ok(vec![self.0.clone()])
    }

    fn workspaces(&self) -> AppResult<Vec<KnownWorkspace>> {
        let known = |(id, workspace): (WorkspaceId, Option<Workspace>)| KnownWorkspace {
            id,
            name: workspace.map(|workspace| workspace.name).unwrap_or_default(),
            project: self.0.clone(),
        };
        Ok(self.0.workspaces.headers()?.into_iter().map(known).collect())
    }

    fn remember(&self, _: &[KnownWorkspace]) -> AppResult<()> {
        Ok(())
    }

    fn remember_use(&self, _: &WorkspaceId, _: &dyn Project) -> AppResult<()> {
        Ok(())
    }

    fn opened(&self) -> Vec<Arc<dyn Project>> {
        vec![self.0.clone()]
    }
}

/// The workspaces of a project, whose changes name the caller.
struct CallerWorkspaces {
    store: PgStore,
    caller: Caller,
    heads: Arc<Heads>,
}

impl CallerWorkspaces {
    fn change_list(&self, command: ProjectCommand, operator: Operator) -> Result<Option<Workspace>> {
        let request = ProjectRequest { key: fresh_key(), command, operator };
        let answer = self.store.run_project_request(&self.caller, &request).map_err(refused)?;
        self.heads.notify(&self.caller.project);
        Ok(answer.created.and_then(|created| match created.outcome {
            Outcome::Workspace { workspace, .. } => Some(workspace),
            _ => None,
        }))
    }
}

/// Returns a key for a request that this server makes itself. A caller that repeats the call makes another request.
fn fresh_key() -> String {
    format!("server-{}", id::random(20))
}

/// Returns the error of a store for a refused request.
fn refused(error: RunError) -> Error {
    match error {
        RunError::Store(error) => error,
        RunError::ForeignSession => Error::invalid(
            "sessionId",
            String::from("该会话属于另一个人"),
            String::from("the session belongs to another person"),
        ),
        other => Error::Unavailable {
            place: String::from("PostgreSQL"),
            cause: UnavailableCause::Io(std::io::Error::other(other.to_string())),
        },
    }
}

impl Workspaces for CallerWorkspaces {
    fn create(&self, new: NewWorkspace, op: &OpContext) -> Result<Workspace> {
        let created = self.change_list(ProjectCommand::CreateWorkspace { workspace: new }, op.operator)?;
        created.ok_or(Error::UnexpectedOutcome)
    }

    fn list(&self, now: Millis) -> Result<Vec<WorkspaceEntry>> {
        self.store.list(now)
    }

    fn headers(&self) -> Result<Vec<(WorkspaceId, Option<Workspace>)>> {
        self.store.headers()
    }

    fn header(&self, id: &WorkspaceId) -> Result<Option<Workspace>> {
        self.store.header(id)
    }

    fn exists(&self, id: &WorkspaceId) -> Result<bool> {
        self.store.exists(id)
    }

    fn delete(&self, id: &WorkspaceId, _: Millis) -> Result<()> {
        let command = ProjectCommand::DeleteWorkspace { workspace_id: id.clone() };
        self.change_list(command, Operator::Human).map(|_| ())
    }

    fn undelete(&self, id: &WorkspaceId) -> Result<bool> {
        let command = ProjectCommand::UndeleteWorkspace { workspace_id: id.clone() };
        match self.change_list(command, Operator::Human) {
            Ok(_) => Ok(true),
            Err(Error::WorkspaceNotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn trash(&self) -> Result<Vec<TrashEntry>> {
        self.store.trash()
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
            session: command.claimant().and_then(|claimant| claimant.session.clone()),
            machine: String::from(MACHINE),
            fence: None,
            expects: None,
            age: None,
        };
        let answer = self.store.run_request(&self.caller, &request).map_err(refused)?;
        self.heads.notify(&self.caller.project);
        Ok(Committed { outcome: answer.outcome, seq: answer.seq })
    }

    fn summary(&self, id: &WorkspaceId, now: Millis) -> Result<(Workspace, Progress)> {
        self.store.summary(id, now)
    }

    fn node(&self, id: &WorkspaceId, node: &NodeId, now: Millis) -> Result<Node> {
        Workspaces::node(&self.store, id, node, now)
    }

    fn node_detail(&self, id: &WorkspaceId, node: &NodeId, now: Millis) -> Result<NodeDetail> {
        self.store.node_detail(id, node, now)
    }

    fn nodes(&self, id: &WorkspaceId, query: &ListQuery, now: Millis) -> Result<NodePage> {
        self.store.nodes(id, query, now)
    }

    fn rows(&self, id: &WorkspaceId, nodes: &[NodeId], now: Millis) -> Result<Vec<ListRow>> {
        self.store.rows(id, nodes, now)
    }

    fn brief(&self, id: &WorkspaceId, node: &NodeId, now: Millis) -> Result<Option<NodeBrief>> {
        self.store.brief(id, node, now)
    }

    fn named(
        &self,
        id: &WorkspaceId,
        name: &NodeName<'_>,
        limit: usize,
        now: Millis,
    ) -> Result<Vec<NodeBrief>> {
        self.store.named(id, name, limit, now)
    }

    fn context(
        &self,
        id: &WorkspaceId,
        focus: &NodeId,
        limits: &ContextLimits,
        now: Millis,
    ) -> Result<Context> {
        self.store.context(id, focus, limits, now)
    }

    fn next(
        &self,
        id: &WorkspaceId,
        limit: usize,
        claimant: &Claimant,
        _: &dyn LiveSessions,
        now: Millis,
    ) -> Result<NextNodes> {
        self.store.next(id, limit, claimant, &self.store.leases()?, now)
    }

    fn branches(&self, id: &WorkspaceId, now: Millis) -> Result<HashMap<NodeId, BranchCounts>> {
        self.store.branches(id, now)
    }

    fn outline(&self, id: &WorkspaceId, node: &NodeId, now: Millis) -> Result<String> {
        self.store.outline(id, node, now)
    }

    fn activity(&self, id: &WorkspaceId, target: &Target, now: Millis) -> Result<Activity> {
        self.store.activity(id, target, now)
    }
}

/// The bindings of the sessions that work on the server.
struct TeamBindings {
    store: PgStore,
    caller: Caller,
}

impl TeamBindings {
    fn set(&self, session: &str, binding: Option<&Binding>) -> tanmi_session::Result<()> {
        let text = binding.map(serde_json::to_string).transpose().map_err(|error| failed(&error))?;
        let outcome = self.store.set_binding(&self.caller, session, MACHINE, text.as_deref());
        outcome.map_err(|error| session_error(refused(error)))
    }
}

fn failed(error: &dyn std::fmt::Display) -> tanmi_session::Error {
    tanmi_session::Error::Io {
        place: String::from("PostgreSQL"),
        source: std::io::Error::other(error.to_string()),
    }
}

fn session_error(error: Error) -> tanmi_session::Error {
    match error {
        Error::Invalid { reason, .. } => tanmi_session::Error::Refused { reason },
        Error::Unavailable { place, cause: UnavailableCause::Io(source) } => {
            tanmi_session::Error::Io { place, source }
        }
        Error::Unavailable { place, cause: UnavailableCause::Busy } => tanmi_session::Error::Busy { place },
        other => failed(&other),
    }
}

impl Bindings for TeamBindings {
    fn find(&self, session: &str) -> tanmi_session::Result<Option<Binding>> {
        let text = self.store.binding(session).map_err(session_error)?;
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
    }

    fn all(&self) -> tanmi_session::Result<Vec<(String, Binding)>> {
        let all = self.store.bindings().map_err(session_error)?;
        let parsed = |(session, text): (String, String)| Some((session, serde_json::from_str(&text).ok()?));
        Ok(all.into_iter().filter_map(parsed).collect())
    }

    fn bind(&self, session: &str, binding: &Binding) -> tanmi_session::Result<Option<Binding>> {
        let before = self.find(session)?;
        self.set(session, Some(binding))?;
        Ok(before)
    }

    fn unbind(&self, session: &str) -> tanmi_session::Result<Option<Binding>> {
        let before = self.find(session)?;
        if before.is_some() {
            self.set(session, None)?;
        }
        Ok(before)
    }

    fn focus(&self, session: &str, workspace: &str, node: Option<&str>) -> tanmi_session::Result<bool> {
        match self.find(session)? {
            Some(binding) if binding.workspace_id == workspace => {
                let focused_node_id = node.map(str::to_owned);
                self.set(session, Some(&Binding { focused_node_id, ..binding }))?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Leases end by themselves.
    fn prune(&self, _: &dyn Fn(&str, &Binding) -> bool) -> tanmi_session::Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn is_damaged(&self) -> tanmi_session::Result<bool> {
        Ok(false)
    }

    fn repair(&self) -> tanmi_session::Result<bool> {
        Ok(false)
    }

    fn revision(&self) -> u64 {
        self.store.bindings_revision().unwrap_or_default().cast_unsigned()
    }
}

/// Hooks run on the machines of people, so the server injects nothing.
struct NoLedger;

impl Ledger for NoLedger {
    fn append(&self, _: LedgerEntry, _: &str) -> tanmi_session::Result<()> {
        Ok(())
    }

    fn read(&self, _: Option<&str>, _: Option<&str>) -> tanmi_session::Result<LedgerRead> {
        Ok(LedgerRead::default())
    }

    fn days(&self) -> tanmi_session::Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn read_after(&self, _: &str, _: u64) -> tanmi_session::Result<Option<LedgerTail>> {
        Ok(None)
    }

    fn text(&self, _: &str) -> Option<String> {
        None
    }

    fn prune(&self, _: Millis, _: usize) -> tanmi_session::Result<()> {
        Ok(())
    }

    fn revision(&self, _: Millis) -> u64 {
        0
    }
}
