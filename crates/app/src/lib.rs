//! Use cases. The command line, MCP and HTTP interfaces call these functions and have no logic of their own.
//!
//! Everything that depends on the environment (home store, working directory, operator, clock) arrives in [`Env`].
//! Nothing here reads environment variables or a terminal.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tanmi_base::{Lang, Millis, paths};
use tanmi_event::Source;
use tanmi_workspace::command::{Command, Committed, LiveSessions};
use tanmi_workspace::model::{NodeId, Operator, WorkspaceId, WorkspaceStatus};
use tanmi_workspace::ops::{OpContext, RulesHashCheck};
use tanmi_workspace::store::{self, FileStore, LocalMaintenance, Tx, Workspaces};

pub mod config;
pub mod declared;
pub mod doctor;
pub mod error;
mod import;
pub mod ledger;
pub mod memory;
pub mod node;
pub mod pipeline;
pub mod raise_event;
pub mod registry;
pub mod rules;
pub mod session;
pub mod status_line;
pub mod transcripts;
pub mod trust;
pub mod views;
pub mod watch;
pub mod workspace;

use config::Config;
pub use error::{Error, Result};
use registry::Registry;

/// The environment of the program.
#[derive(Clone, Debug)]
pub struct Env {
    /// The home store.
    pub home: PathBuf,
    pub cwd: PathBuf,
    /// Replaces the search for the project of `cwd`.
    pub project: Option<PathBuf>,
    pub operator: Operator,
    pub locale: Lang,
    pub clock: fn() -> Millis,
    /// Whether a call must pass the current `rulesHash`. Agents must; for people it is optional.
    pub requires_rules_hash: bool,
    /// The home folder of the user, which contains `.tanmi/rules.json`.
    pub user: Option<PathBuf>,
    /// The source of the events that are raised here.
    pub source: Source,
    /// Whether injection is disabled.
    pub disabled: bool,
    /// The `context.json` of the machine or container.
    pub context: Option<PathBuf>,
    /// The session id from the environment, if it is set.
    pub session: Option<String>,
    /// Whether this is a server. A server compares all files once when it first opens a workspace.
    pub long_running: bool,
    /// Whether calls come over the network. Then the parent process is not the client of the caller.
    pub remote: bool,
}

pub struct App {
    env: Env,
    project: PathBuf,
    config: Config,
    registry: Registry,
    stores: Mutex<HashMap<PathBuf, Arc<FileStore>>>,
    scanned: Mutex<BTreeSet<WorkspaceId>>,
    /// The generated session id of a connection that has no other session id.
    connection: OnceLock<String>,
}

/// A workspace and the store that contains it.
#[derive(Clone)]
pub struct WorkspaceRef {
    pub store: Arc<FileStore>,
    pub id: WorkspaceId,
}

impl App {
    pub fn new(env: Env) -> App {
        let project = match &env.project {
            Some(dir) => dir.clone(),
            None => paths::project_root(&env.cwd, &env.home),
        };
        let config = Config::load(&env.home, Some(&project));
        let registry = Registry::new(&env.home);
        App {
            env,
            project,
            config,
            registry,
            stores: Mutex::default(),
            scanned: Mutex::default(),
            connection: OnceLock::new(),
        }
    }

    pub fn project(&self) -> &Path {
        &self.project
    }

    pub fn home(&self) -> &Path {
        &self.env.home
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    pub fn now(&self) -> Millis {
        (self.env.clock)()
    }

    /// Returns the language of `text`, or of the locale if there is none. A setting overrides both.
    pub fn lang(&self, text: Option<&str>) -> Lang {
        self.config.language.or_else(|| Lang::of_text(text?)).unwrap_or(self.env.locale)
    }

    fn op(&self) -> OpContext {
        OpContext {
            now: self.now(),
            operator: self.env.operator,
            auto_log: self.config.auto_log,
            moves_focus: true,
        }
    }

    fn rules_hash_check(&self, given: Option<String>) -> RulesHashCheck {
        if self.env.requires_rules_hash {
            RulesHashCheck::Required(given)
        } else {
            RulesHashCheck::IfGiven(given)
        }
    }

    /// Returns the store of a project. Each store is opened once.
    pub fn store(&self, project: &Path) -> Arc<FileStore> {
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        stores.entry(project.to_owned()).or_insert_with(|| Arc::new(FileStore::new(project))).clone()
    }

    /// Finds a workspace by id in any known project. Without an id, returns the workspace that the session of this
    /// shell is bound to, or else the only active workspace of this project.
    pub fn locate(&self, id: Option<&str>) -> Result<WorkspaceRef> {
        let ws = self.find(id)?;
        let is_first = self.scanned.lock().unwrap_or_else(PoisonError::into_inner).insert(ws.id.clone());
        if is_first {
            // Registers a project that was moved or cloned.
            let _ = self.registry.record(&ws.id, ws.store.project());
            if self.env.long_running {
                ws.store.rescan(&ws.id, self.now())?;
            }
        }
        Ok(ws)
    }

    fn find(&self, id: Option<&str>) -> Result<WorkspaceRef> {
        let store = self.store(&self.project);
        let bound = if id.is_none() { self.env_session_binding() } else { None };
        let Some(raw) = id.or(bound.as_ref().map(|bound| bound.workspace_id.as_str())) else {
            return self.find_only_active();
        };
        let id = WorkspaceId::parse(raw)?;
        if store.exists(&id)? {
            return Ok(WorkspaceRef { store, id });
        }
        if let Some(project) = self.registry.find(&id)? {
            return Ok(WorkspaceRef { store: self.store(&project), id });
        }
        let existing = self.known_workspaces()?;
        Err(tanmi_workspace::Error::WorkspaceNotFound { id: id.to_string(), existing }.into())
    }

    /// Returns the focused node, for calls without a node id.
    pub fn focused_node(&self, workspace: Option<&str>) -> Result<String> {
        let ws = self.locate(workspace)?;
        let focus = self.focus_of(&ws)?;
        focus.map(|id| id.to_string()).ok_or(Error::NoFocus { workspace: ws.id })
    }

    /// Returns the focus of the session of this shell if that node still exists, else the focus of the workspace.
    pub(crate) fn focus_of(&self, ws: &WorkspaceRef) -> Result<Option<NodeId>> {
        let session_focus = self.env_session_focus(&ws.id);
        self.view(ws, |tx| match &session_focus {
            Some(focus) if tx.brief(focus)?.is_some() => Ok(Some(focus.clone())),
            _ => Ok(tx.workspace()?.focused_node_id),
        })
    }

    /// Returns the focus of the session of this shell, if it is bound to `workspace`. Without a focus of its own, the
    /// session has the focus of the workspace.
    pub fn env_session_focus(&self, workspace: &WorkspaceId) -> Option<NodeId> {
        let bound = self.env_session_binding().filter(|bound| bound.workspace_id == workspace.as_str())?;
        NodeId::parse(bound.focused_node_id.as_deref()?).ok()
    }

    /// Returns the binding of the session of this shell, if it is bound to a workspace of this project. A server
    /// has no session of its own.
    fn env_session_binding(&self) -> Option<session::SessionBinding> {
        let session = self.env.session.as_deref().filter(|_| !self.env.long_running)?;
        self.binding_of(session).ok().flatten().filter(|bound| bound.project == self.project)
    }

    pub(crate) fn find_only_active(&self) -> Result<WorkspaceRef> {
        let store = self.store(&self.project);
        let mut active = active_workspaces(&store)?;
        match active.len() {
            1 => Ok(WorkspaceRef { store, id: active.remove(0).0 }),
            0 => Err(Error::NoWorkspace { project: self.project.clone() }),
            _ => Err(Error::AmbiguousWorkspace { candidates: active }),
        }
    }

    /// Returns at most 20 active workspaces, those of this project first.
    fn known_workspaces(&self) -> Result<Vec<(WorkspaceId, String)>> {
        let mut known = active_workspaces(&self.store(&self.project))?;
        for (id, entry) in self.registry.entries()? {
            if known.len() < 20 && entry.project != self.project && self.is_active(&entry.project, &id) {
                known.push((id, entry.name));
            }
        }
        known.truncate(20);
        Ok(known)
    }

    fn is_active(&self, project: &Path, id: &WorkspaceId) -> bool {
        let headers = self.store(project).headers().unwrap_or_default();
        let head = headers.into_iter().find(|(known, _)| known == id);
        head.is_some_and(|(_, head)| head.is_some_and(|head| head.status == WorkspaceStatus::Active))
    }

    /// Deletes expired entries of the trash. Errors are ignored: they do not concern the call that triggered it.
    fn prune_trash(&self, store: &FileStore) {
        let _ = store.prune_trash(self.now(), self.config.trash_retain_days);
    }

    /// Runs a command as the caller of this program.
    fn run(&self, ws: &WorkspaceRef, command: &Command) -> Result<Committed> {
        self.run_as(ws, command, &self.op())
    }

    fn run_as(&self, ws: &WorkspaceRef, command: &Command, op: &OpContext) -> Result<Committed> {
        Ok(store::run(ws.store.as_ref(), &ws.id, command, op, self)?)
    }

    fn view<T>(
        &self,
        ws: &WorkspaceRef,
        work: impl FnMut(&dyn Tx) -> tanmi_workspace::Result<T>,
    ) -> Result<T> {
        Ok(store::view(ws.store.as_ref(), &ws.id, self.now(), work)?)
    }

    /// Writes [`App::take_notices`] to the log in the home store. For a server, which cannot show them to a user.
    pub fn log_notices(&self) {
        for notice in self.take_notices(Lang::En) {
            pipeline::write_log(self.home(), self.now(), &notice);
        }
    }

    /// Takes the messages about kept copies and damaged journals that recovery produced since the last call. The caller
    /// shows them to the user.
    pub fn take_notices(&self, lang: Lang) -> Vec<String> {
        let stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        let mut take_notices = Vec::new();
        for store in stores.values() {
            for (id, recovery) in store.take_recoveries() {
                for (path, kept_copy) in recovery.kept {
                    let zh = format!(
                        "{id}：{path} 已被手动修改，没有覆盖；Tanmi 的版本保留在 {}",
                        kept_copy.display()
                    );
                    let en = format!(
                        "{id}: {path} was edited by hand and was not overwritten; the version of Tanmi is kept in {}",
                        kept_copy.display()
                    );
                    take_notices.push(lang.pick(zh, en));
                }
                if let Some(kept_copy) = recovery.damaged {
                    let zh = format!("{id}：重做日志已损坏；无法读取的部分保留在 {}", kept_copy.display());
                    let en = format!(
                        "{id}: the journal was damaged; the unreadable part is kept in {}",
                        kept_copy.display()
                    );
                    take_notices.push(lang.pick(zh, en));
                }
            }
        }
        take_notices
    }
}

/// Liveness of holders, for commands that take a node over.
impl LiveSessions for App {
    fn is_live(&self, session: &str) -> bool {
        App::is_live(self, session)
    }
}

/// Returns active workspaces and those that cannot be read. If a workspace with a typo in its file were left out, a
/// call without a workspace id could silently use another workspace.
fn active_workspaces(store: &FileStore) -> Result<Vec<(WorkspaceId, String)>> {
    let active = store.headers()?.into_iter().filter_map(|(id, head)| match head {
        Some(head) => (head.status == WorkspaceStatus::Active).then_some((id, head.name)),
        None => Some((id, String::from("?"))),
    });
    Ok(active.collect())
}
