//! Decides which session, workspace and node a call is about. The command line, MCP and HTTP use this resolver and
//! nothing else.
//!
//! - Session: the argument; the metadata of the protocol; the client process and the environment; for a server, an id of
//!   the connection. A server asks the client process first, because its environment is as old as the server. A command
//!   asks the environment first, and the client process only for an agent, because a terminal of the user can run inside
//!   a client too. Calls over the network have only the first two.
//! - Workspace: the argument; the workspace that the session is bound to; the only active workspace of the project.
//! - Node: the argument; the focus of the session; the focus of the workspace.
//!
//! An argument can be a whole id or, see [`names`], a part of it or a title.

use std::sync::{Arc, PoisonError};

use tanmi_base::{Lang, Millis, id};
use tanmi_platform::CLIENTS;
use tanmi_session::client_of_server;
use tanmi_workspace::limits::fit_title;
use tanmi_workspace::model::{NodeId, Operator, Workspace, WorkspaceId, WorkspaceStatus};
use tanmi_workspace::ops::Target;

use crate::core::{Core, WorkspaceRef};
use crate::error::{Error, Result};
use crate::stores::Project;
use crate::{language, pipeline};

mod names;

pub(crate) use names::only;

/// How long a session counts as live after its last event, if its client process does not identify it.
pub(crate) const LIVE_FOR: Millis = 30 * 60_000;
/// The maximum number of candidates that an error lists.
const MAX_LISTED: usize = 20;

/// What a call says about its session and its workspace.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallTarget<'a> {
    /// The session in the arguments.
    pub session: Option<&'a str>,
    /// The session in the metadata of the protocol.
    pub meta: Option<&'a str>,
    /// The workspace in the arguments.
    pub workspace: Option<&'a str>,
}

impl<'a> CallTarget<'a> {
    /// A call that names at most its workspace.
    pub fn in_workspace(workspace: Option<&'a str>) -> CallTarget<'a> {
        CallTarget { workspace, ..CallTarget::default() }
    }
}

/// The binding of a session to an active workspace.
#[derive(Clone)]
pub struct SessionBinding {
    pub session: String,
    pub workspace: WorkspaceRef,
    /// The focus of the session, or else of its workspace.
    pub focused_node_id: Option<NodeId>,
}

/// The workspace of a call, and the session that makes the call.
#[derive(Clone)]
pub struct CallScope {
    pub workspace: WorkspaceRef,
    /// The session of the caller. A user in a terminal has none.
    pub session: Option<String>,
    /// The binding of the session, if it is bound to this workspace.
    pub binding: Option<SessionBinding>,
    /// The sessions that may have made the call, if there are several and it names none of them.
    pub(crate) candidates: Vec<String>,
}

impl CallScope {
    /// Fails if the caller is one of several sessions. For what depends on the session: its focus and its claims.
    pub fn check_session(&self) -> Result<()> {
        match self.candidates.as_slice() {
            [] => Ok(()),
            candidates => Err(Error::AmbiguousSession { candidates: candidates.to_vec() }),
        }
    }
}

#[derive(Clone)]
pub struct Resolver {
    core: Arc<Core>,
}

impl Resolver {
    pub(crate) fn new(core: Arc<Core>) -> Resolver {
        Resolver { core }
    }

    /// Returns the session that a call is about. If several sessions match, returns an error and does not guess.
    pub fn session(&self, call: &CallTarget<'_>) -> Result<String> {
        if let Some(session) = self.caller_session(call)? {
            return Ok(session);
        }
        // The user asks for a session, so the client around the terminal is the one that is meant.
        self.session_of_client()?.ok_or(Error::NoSession)
    }

    /// Returns the session that makes a call. A command in a terminal of the user has none.
    pub fn caller_session(&self, call: &CallTarget<'_>) -> Result<Option<String>> {
        if let Some(session) = call.session {
            return self.session_id(session).map(Some);
        }
        if let Some(session) = call.meta {
            tanmi_session::check_session(session)?;
            return Ok(Some(session.to_owned()));
        }
        let env = &self.core.env;
        if env.remote {
            return self.core.session.clone().map(Some).ok_or(Error::NoSession);
        }
        if env.long_running {
            let found = self.session_of_client()?.or_else(|| env.session.clone());
            let connection =
                || self.core.connection.get_or_init(|| id::fresh("mcp", self.core.now())).clone();
            return Ok(Some(found.unwrap_or_else(connection)));
        }
        if env.session.is_some() || env.operator == Operator::Human {
            return Ok(env.session.clone());
        }
        // An agent with several windows in one process has no session that can be known.
        Ok(self.session_of_client().unwrap_or_default())
    }

    /// Returns the session of the client process that started this program.
    fn session_of_client(&self) -> Result<Option<String>> {
        let Some(client) = client_of_server() else { return Ok(None) };
        let mut found = self.core.states().sessions_of_client(&client);
        let Some(latest) = found.first() else { return Ok(None) };
        let platform = CLIENTS.find_platform(&latest.platform);
        if !platform.is_some_and(|platform| platform.has_shared_process) {
            return Ok(Some(found.swap_remove(0).session));
        }
        let now = self.core.now();
        let live = found.into_iter().filter(|state| now - state.alive_at < LIVE_FOR);
        let mut live: Vec<String> = live.map(|state| state.session).collect();
        match live.len() {
            0 | 1 => Ok(live.pop()),
            _ => Err(Error::AmbiguousSession { candidates: live }),
        }
    }

    /// Returns the binding of a session, if its workspace exists and is active. Fails if its project cannot be used:
    /// a call must not use another workspace instead.
    pub fn binding(&self, session: &str) -> Result<Option<SessionBinding>> {
        let found = self.bound_workspace(session)?;
        let is_active = |header: &Workspace| header.status == WorkspaceStatus::Active;
        Ok(found.filter(|(_, header)| is_active(header)).map(|(bound, _)| bound))
    }

    /// Same as [`Resolver::binding`], with the workspace, also if that is archived.
    fn bound_workspace(&self, session: &str) -> Result<Option<(SessionBinding, Workspace)>> {
        let Some(binding) = self.core.stores.bindings.find(session)? else { return Ok(None) };
        let Ok(id) = WorkspaceId::parse(&binding.workspace_id) else { return Ok(None) };
        let project = self.core.stores.projects.in_folder(&binding.project);
        project.check()?;
        let header = project.workspaces().header(&id).unwrap_or_default();
        Ok(header.map(|header| {
            let focus = binding.focused_node_id.as_deref().and_then(|id| NodeId::parse(id).ok());
            let focused_node_id = focus.or_else(|| header.focused_node_id.clone());
            let workspace = WorkspaceRef { project, id };
            (SessionBinding { session: session.to_owned(), workspace, focused_node_id }, header)
        }))
    }

    /// Returns the workspace and the session of a call.
    pub fn scope(&self, call: &CallTarget<'_>) -> Result<CallScope> {
        // A call that names its workspace may need no session and no binding.
        let is_needed = call.workspace.is_none();
        let (session, candidates) = match self.caller_session(call) {
            Err(Error::NoSession) if !is_needed => (None, Vec::new()),
            Err(Error::AmbiguousSession { candidates }) if !is_needed => (None, candidates),
            other => (other?, Vec::new()),
        };
        let found = match session.as_deref().map(|session| self.bound_workspace(session)).transpose() {
            Err(_) if !is_needed => None,
            other => other?.flatten(),
        };
        // A command in another project than that of its session is about its own project.
        let is_near = |bound: &SessionBinding| {
            self.core.env.long_running || bound.workspace.project.id() == self.core.project.id()
        };
        let bound = match found {
            Some((bound, header)) if header.status == WorkspaceStatus::Active => Some(bound),
            // The session means its workspace, not another one of the project.
            Some((bound, Workspace { id, name, .. })) if is_needed && is_near(&bound) => {
                return Err(tanmi_workspace::Error::WorkspaceArchived { id, name }.into());
            }
            _ => None,
        };
        let workspace = match (call.workspace, &bound) {
            (Some(named), _) => self.find(&self.workspace_id(named)?)?,
            (None, Some(bound)) if is_near(bound) => bound.workspace.clone(),
            (None, _) => self.only_active_workspace()?,
        };
        self.note_use(&workspace)?;
        let binding = bound.filter(|bound| bound.workspace.id == workspace.id);
        Ok(CallScope { workspace, session, binding, candidates })
    }

    /// Returns the workspace of a call that has no session of its own.
    pub fn workspace(&self, named: &str) -> Result<WorkspaceRef> {
        let workspace = self.find(&self.workspace_id(named)?)?;
        self.note_use(&workspace)?;
        Ok(workspace)
    }

    /// Returns the node of a call: the one it names, or else the focused node.
    pub fn node(&self, scope: &CallScope, named: Option<&str>) -> Result<NodeId> {
        match named {
            Some(named) => self.node_id(&scope.workspace, "nodeId", named),
            None => {
                self.focus(scope)?.ok_or_else(|| Error::NoFocus { workspace: scope.workspace.id.clone() })
            }
        }
    }

    /// Returns the node of a call, or the workspace itself if the call names that.
    pub fn target(&self, scope: &CallScope, named: Option<&str>) -> Result<Target> {
        match named {
            Some(named) => self.named_target(&scope.workspace, named),
            None => Ok(Target::Node(self.node(scope, None)?)),
        }
    }

    /// Returns the focus of the session if it is bound to this workspace, else the focus of the workspace.
    pub fn focus(&self, scope: &CallScope) -> Result<Option<NodeId>> {
        scope.check_session()?;
        if let Some(binding) = &scope.binding {
            return Ok(binding.focused_node_id.clone());
        }
        let (workspace, _) = scope.workspace.store().summary(&scope.workspace.id, self.core.now())?;
        Ok(workspace.focused_node_id)
    }

    /// Returns the only active workspace of this project.
    pub(crate) fn only_active_workspace(&self) -> Result<WorkspaceRef> {
        let project = self.core.project.clone();
        let mut active = active_workspaces(project.as_ref())?;
        match active.len() {
            1 => Ok(WorkspaceRef { project, id: active.remove(0).0 }),
            0 => {
                let headers = project.workspaces().headers()?.into_iter().filter_map(|(_, header)| header);
                let archived = headers.max_by_key(|header| header.updated_at);
                let archived = archived.map(|header| (header.id, header.name));
                Err(Error::NoWorkspace { project: project.checkout().to_owned(), archived })
            }
            _ => Err(Error::AmbiguousWorkspace { candidates: active }),
        }
    }

    /// Returns the language of texts for the agent that makes a call. Reads `Workspace.md`, and memory only
    /// if there is no workspace, because the instructions of the server need it before the first call.
    pub(crate) fn lang_for_agent(&self, call: &CallTarget<'_>) -> Lang {
        let core = &self.core;
        let workspace = self.header(call);
        let memory = || {
            let trust = core.trust().of_project(core.folder());
            pipeline::memory_of_project(&core.caller(), &core.config, Some(&trust), "").ok()
        };
        let memory = if workspace.is_none() { memory() } else { None };
        language::for_agent(workspace.as_ref(), None, memory.as_ref(), core.person_lang())
    }

    /// Returns the content of `Workspace.md` of the workspace of a call. A workspace that does not exist counts as not
    /// named.
    fn header(&self, call: &CallTarget<'_>) -> Option<Workspace> {
        let named = call.workspace.and_then(|named| self.find(&self.workspace_id(named).ok()?).ok());
        let bound = || self.binding(&self.caller_session(call).ok()??).ok()?.map(|bound| bound.workspace);
        let found = named.or_else(bound).or_else(|| self.only_active_workspace().ok())?;
        found.store().header(&found.id).ok()?
    }

    /// Finds a workspace by its id, in this project first.
    fn find(&self, id: &WorkspaceId) -> Result<WorkspaceRef> {
        let own = self.core.project.clone();
        if own.workspaces().exists(id)? {
            return Ok(WorkspaceRef { project: own, id: id.clone() });
        }
        if let Some(project) = self.core.stores.projects.of_workspace(id)? {
            return Ok(WorkspaceRef { project, id: id.clone() });
        }
        let existing = self.listed_workspaces()?;
        Err(tanmi_workspace::Error::WorkspaceNotFound { id: id.to_string(), existing }.into())
    }

    /// Registers a project that was moved or cloned. A server also compares all files of a workspace when it first
    /// uses it.
    fn note_use(&self, workspace: &WorkspaceRef) -> Result<()> {
        let mut located = self.core.located.lock().unwrap_or_else(PoisonError::into_inner);
        if !located.insert(workspace.id.clone()) {
            return Ok(());
        }
        drop(located);
        let _ = self.core.stores.projects.remember_use(&workspace.id, workspace.project.as_ref());
        match workspace.project.maintenance() {
            Some(local) if self.core.env.long_running => Ok(local.rescan(&workspace.id, self.core.now())?),
            _ => Ok(()),
        }
    }

    /// Returns active workspaces, those of this project first.
    fn listed_workspaces(&self) -> Result<Vec<(WorkspaceId, String)>> {
        let own = &self.core.project;
        let mut listed = active_workspaces(own.as_ref())?;
        for known in self.core.stores.projects.workspaces()? {
            if listed.len() < MAX_LISTED
                && known.project.id() != own.id()
                && is_active(&known.project, &known.id)
            {
                listed.push((known.id, known.name));
            }
        }
        listed.truncate(MAX_LISTED);
        Ok(listed)
    }
}

fn is_active(project: &Arc<dyn Project>, id: &WorkspaceId) -> bool {
    let header = project.workspaces().header(id).unwrap_or_default();
    header.is_some_and(|header| header.status == WorkspaceStatus::Active)
}

/// Returns active workspaces and those that cannot be read. If a workspace with a typo in its file were left out, a
/// call without a workspace id could silently use another workspace.
fn active_workspaces(project: &dyn Project) -> Result<Vec<(WorkspaceId, String)>> {
    let headers = project.workspaces().headers()?.into_iter();
    let active = headers.filter_map(|(id, header)| match header {
        Some(header) => {
            (header.status == WorkspaceStatus::Active).then(|| (id, fit_title(&header.name).into_owned()))
        }
        None => Some((id, String::from("?"))),
    });
    Ok(active.collect())
}
