//! Use cases. Command line, MCP and HTTP all call these; none of them has logic of its own.
//!
//! Everything the outside world decides (home, working directory, who is calling, the clock) arrives in [`Env`], so that
//! nothing here reads the environment or a terminal.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tanmi_base::{Lang, Millis, paths};
use tanmi_event::Source;
use tanmi_workspace::model::{NodeId, Operator, WorkspaceId, WorkspaceStatus};
use tanmi_workspace::ops::{OpContext, RulesCheck};
use tanmi_workspace::store::{self, FileStore, Store, Tx};

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

/// What the outside world decides.
#[derive(Clone, Debug)]
pub struct Env {
    pub home: PathBuf,
    pub cwd: PathBuf,
    /// Overrides the search for the project of `cwd`.
    pub project: Option<PathBuf>,
    pub operator: Operator,
    pub locale: Lang,
    pub clock: fn() -> Millis,
    /// Agents must show that they know the rules; people may.
    pub strict_rules: bool,
    /// The user's own folder, where their global rules are.
    pub user: Option<PathBuf>,
    /// What the events that are raised here are reported by.
    pub source: Source,
    /// Nothing is to be said to any agent.
    pub disabled: bool,
    /// The declaration of the machine or container.
    pub context: Option<PathBuf>,
    /// The session that the environment names, if it does.
    pub session: Option<String>,
    /// A program that stays compares all files once when it first opens a workspace.
    pub long_running: bool,
    /// Calls come over the network: the process that started this one is nobody's client.
    pub remote: bool,
}

pub struct App {
    env: Env,
    project: PathBuf,
    config: Config,
    registry: Registry,
    stores: Mutex<HashMap<PathBuf, Arc<FileStore>>>,
    scanned: Mutex<BTreeSet<WorkspaceId>>,
    /// The id of a connection that nothing else names.
    connection: OnceLock<String>,
}

/// A workspace and where it is kept.
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

    /// The language for texts about `text`; without text, that of the locale. A setting overrides both.
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

    fn rules_hash_check(&self, given: Option<String>) -> RulesCheck {
        if self.env.strict_rules { RulesCheck::Required(given) } else { RulesCheck::IfGiven(given) }
    }

    /// The store of a project, opened once.
    pub fn store(&self, project: &Path) -> Arc<FileStore> {
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        stores.entry(project.to_owned()).or_insert_with(|| Arc::new(FileStore::new(project))).clone()
    }

    /// Finds a workspace by id from anywhere, or, without an id, the one that the session of this shell is bound to, or
    /// the only active one of this project.
    pub fn locate(&self, id: Option<&str>) -> Result<WorkspaceRef> {
        let ws = self.find(id)?;
        let is_first = self.scanned.lock().unwrap_or_else(PoisonError::into_inner).insert(ws.id.clone());
        if is_first {
            // A project that was moved or cloned is known again as soon as it is used.
            let _ = self.registry.record(&ws.id, ws.store.project());
            if self.env.long_running {
                ws.store.rescan(&ws.id, self.now())?;
            }
        }
        Ok(ws)
    }

    fn find(&self, id: Option<&str>) -> Result<WorkspaceRef> {
        let here = self.store(&self.project);
        let bound = if id.is_none() { self.env_session_binding() } else { None };
        let Some(raw) = id.or(bound.as_ref().map(|bound| bound.workspace_id.as_str())) else {
            return self.only_active();
        };
        let id = WorkspaceId::parse(raw)?;
        if here.exists(&id) {
            return Ok(WorkspaceRef { store: here, id });
        }
        if let Some(project) = self.registry.find(&id)? {
            return Ok(WorkspaceRef { store: self.store(&project), id });
        }
        let existing = self.known_workspaces()?;
        Err(tanmi_workspace::Error::WorkspaceNotFound { id: id.to_string(), existing }.into())
    }

    /// The node in focus, for calls that name none.
    pub fn focused_node(&self, workspace: Option<&str>) -> Result<String> {
        let ws = self.locate(workspace)?;
        let focus = self.focus_of(&ws)?;
        focus.map(|id| id.to_string()).ok_or(Error::NoFocus { workspace: ws.id })
    }

    /// The focus of the session in whose shell this runs, if there still is such a node, else the workspace's.
    pub(crate) fn focus_of(&self, ws: &WorkspaceRef) -> Result<Option<NodeId>> {
        let own = self.env_session_focus(&ws.id);
        self.view(ws, |tx| match &own {
            Some(own) if tx.brief(own)?.is_some() => Ok(Some(own.clone())),
            _ => Ok(tx.workspace()?.focused_node_id),
        })
    }

    /// What the session has in focus in whose shell this runs.
    pub fn env_session_focus(&self, workspace: &WorkspaceId) -> Option<NodeId> {
        let bound = self.env_session_binding().filter(|bound| bound.workspace_id == workspace.as_str())?;
        NodeId::parse(bound.focused_node_id.as_deref()?).ok()
    }

    /// The binding of the session in whose shell this runs, if it is to something in this project. A server has no session
    /// of its own.
    fn env_session_binding(&self) -> Option<session::SessionBinding> {
        let session = self.env.session.as_deref().filter(|_| !self.env.long_running)?;
        self.binding_of(session).ok().flatten().filter(|bound| bound.project == self.project)
    }

    pub(crate) fn only_active(&self) -> Result<WorkspaceRef> {
        let store = self.store(&self.project);
        let mut active = active_workspaces(&store)?;
        match active.len() {
            1 => Ok(WorkspaceRef { store, id: active.remove(0).0 }),
            0 => Err(Error::NoWorkspace { project: self.project.clone() }),
            _ => Err(Error::AmbiguousWorkspace { candidates: active }),
        }
    }

    /// Active workspaces, this project's first, at most 20.
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
        let read_headers = self.store(project).read_headers().unwrap_or_default();
        let head = read_headers.into_iter().find(|(known, _)| known == id);
        head.is_some_and(|(_, head)| head.is_some_and(|head| head.status == WorkspaceStatus::Active))
    }

    /// Deletes what has been in the trash long enough. Whoever deleted or created something is not told of trouble here.
    fn prune_trash(&self, store: &FileStore) {
        let _ = store.prune_trash(self.now(), self.config.trash_retain_days);
    }

    fn change<T>(
        &self,
        ws: &WorkspaceRef,
        mut work: impl FnMut(&mut dyn Tx, &OpContext) -> tanmi_workspace::Result<T>,
    ) -> Result<T> {
        let op = self.op();
        Ok(store::change(ws.store.as_ref(), &ws.id, op.now, |tx| work(tx, &op))?)
    }

    fn view<T>(
        &self,
        ws: &WorkspaceRef,
        work: impl FnMut(&dyn Tx) -> tanmi_workspace::Result<T>,
    ) -> Result<T> {
        Ok(store::view(ws.store.as_ref(), &ws.id, self.now(), work)?)
    }

    /// As [`App::notices`], for a server, which has nobody to tell them to: into the log in the home store.
    pub fn log_notices(&self) {
        for notice in self.notices(Lang::En) {
            pipeline::write_log(self.home(), self.now(), &notice);
        }
    }

    /// What recovery kept aside while this program ran: the person should know.
    pub fn notices(&self, lang: Lang) -> Vec<String> {
        let stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        let mut notices = Vec::new();
        for store in stores.values() {
            for (id, recovery) in store.take_recoveries() {
                for (path, aside) in recovery.kept {
                    let zh = format!(
                        "{id}：{path} 已被手动修改，没有覆盖；Tanmi 的版本保留在 {}",
                        aside.display()
                    );
                    let en = format!(
                        "{id}: {path} was edited by hand and was not overwritten; the version of Tanmi is kept in {}",
                        aside.display()
                    );
                    notices.push(lang.pick(zh, en));
                }
                if let Some(aside) = recovery.damaged {
                    let zh = format!("{id}：重做日志已损坏；无法读取的部分保留在 {}", aside.display());
                    let en = format!(
                        "{id}: the journal was damaged; the unreadable part is kept in {}",
                        aside.display()
                    );
                    notices.push(lang.pick(zh, en));
                }
            }
        }
        notices
    }
}

/// Active workspaces, and those that cannot be read: a slip of the pen must not make the choice another one.
fn active_workspaces(store: &FileStore) -> Result<Vec<(WorkspaceId, String)>> {
    let active = store.read_headers()?.into_iter().filter_map(|(id, head)| match head {
        Some(head) => (head.status == WorkspaceStatus::Active).then_some((id, head.name)),
        None => Some((id, String::from("?"))),
    });
    Ok(active.collect())
}
