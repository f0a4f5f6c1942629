//! Second implementations of the interfaces, in RAM.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tanmi_base::{Lang, Millis};
use tanmi_event::{Event, EventKind, Payload, Source};
use tanmi_memory::{MemoryStore, VecMemory};
use tanmi_platform::CLAUDE_CODE;
use tanmi_session::{Binding, Bindings, Ledger, LedgerEntry, LedgerRead, LedgerTail};
use tanmi_workspace::model::{Operator, WorkspaceId};
use tanmi_workspace::store::{ChangeFeed, ContextSnapshots, InMemoryStore, LocalMaintenance, Workspaces};

use crate::stores::{KnownWorkspace, Project, ProjectId, Projects, Stores};
use crate::{App, Env, Result};

/// A machine whose stores are in RAM. Only session states are in files, in a temporary home store.
pub struct Machine {
    home: tempfile::TempDir,
    project: Arc<ToyProject>,
    pub bindings: Arc<ToyBindings>,
    ledger: Arc<ToyLedger>,
    user_memory: Arc<VecMemory>,
}

impl Machine {
    pub fn new() -> Machine {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("no-such-project");
        let project = ToyProject {
            id: ProjectId::of_folder(Path::new("/toy")),
            folder,
            store: InMemoryStore::new(),
            memory: Arc::default(),
        };
        Machine {
            home,
            project: Arc::new(project),
            bindings: Arc::default(),
            ledger: Arc::default(),
            user_memory: Arc::default(),
        }
    }

    pub fn app(&self) -> App {
        self.app_of(|_| {})
    }

    pub fn app_of(&self, change: impl FnOnce(&mut Env)) -> App {
        let mut env = Env {
            home: self.home.path().join("home"),
            cwd: self.folder(),
            project: Some(self.folder()),
            operator: Operator::Ai,
            locale: Lang::En,
            clock: || 1_700_000_000_000,
            client_version: |_| None,
            requires_rules_hash: false,
            user: None,
            source: Source::Mcp,
            disabled: false,
            context: None,
            session: None,
            long_running: false,
            remote: false,
        };
        std::fs::create_dir_all(&env.home).unwrap();
        change(&mut env);
        let stores = Stores {
            projects: Arc::new(ToyProjects(self.project.clone())),
            bindings: self.bindings.clone(),
            ledger: self.ledger.clone(),
            user_memory: self.user_memory.clone(),
        };
        App::with_stores(env, stores)
    }

    pub fn memory(&self) -> &VecMemory {
        &self.project.memory
    }

    /// Writes the settings of the user.
    pub fn configure(&self, settings: &str) {
        let dir = self.home.path().join("home");
        std::fs::create_dir_all(&dir).unwrap();
        tanmi_base::fs::write_private(&dir.join("config.json"), settings.as_bytes()).unwrap();
    }

    pub fn folder(&self) -> PathBuf {
        self.project.folder.clone()
    }

    pub fn home_files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.home.path().join("home")).unwrap().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Returns the event of a prompt in the project.
    pub fn prompt(&self, session: &str) -> Event {
        Event {
            source: Source::Hook,
            platform: &CLAUDE_CODE,
            kind: EventKind::PromptSubmit,
            session: session.to_owned(),
            payload: Payload {
                cwd: Some(self.folder().display().to_string()),
                prompt: Some(String::from("go on")),
                ..Payload::default()
            },
        }
    }
}

struct ToyProject {
    id: ProjectId,
    folder: PathBuf,
    store: InMemoryStore,
    memory: Arc<VecMemory>,
}

impl Project for ToyProject {
    fn id(&self) -> &ProjectId {
        &self.id
    }

    fn folder(&self) -> &Path {
        &self.folder
    }

    fn check(&self) -> Result<()> {
        Ok(())
    }

    fn workspaces(&self) -> &dyn Workspaces {
        &self.store
    }

    fn snapshots(&self) -> &dyn ContextSnapshots {
        &self.store
    }

    fn feed(&self) -> &dyn ChangeFeed {
        &self.store
    }

    fn memory(&self) -> Arc<dyn MemoryStore> {
        self.memory.clone()
    }

    fn maintenance(&self) -> Option<&dyn LocalMaintenance> {
        None
    }
}

/// A machine with one project.
struct ToyProjects(Arc<ToyProject>);

impl Projects for ToyProjects {
    fn in_folder(&self, _: &Path) -> Arc<dyn Project> {
        self.0.clone()
    }

    fn of_workspace(&self, _: &WorkspaceId) -> Result<Option<Arc<dyn Project>>> {
        Ok(None)
    }

    fn all(&self) -> Result<Vec<Arc<dyn Project>>> {
        Ok(vec![self.0.clone()])
    }

    fn workspaces(&self) -> Result<Vec<KnownWorkspace>> {
        Ok(Vec::new())
    }

    fn remember(&self, _: &[KnownWorkspace]) -> Result<()> {
        Ok(())
    }

    fn remember_use(&self, _: &WorkspaceId, _: &dyn Project) -> Result<()> {
        Ok(())
    }

    fn opened(&self) -> Vec<Arc<dyn Project>> {
        vec![self.0.clone()]
    }
}

#[derive(Default)]
pub struct ToyBindings {
    entries: Mutex<BTreeMap<String, Binding>>,
    is_failing: AtomicBool,
}

impl ToyBindings {
    pub fn fail_writes(&self) {
        self.is_failing.store(true, Ordering::Relaxed);
    }

    fn write<T>(&self, change: impl FnOnce(&mut BTreeMap<String, Binding>) -> T) -> tanmi_session::Result<T> {
        if self.is_failing.load(Ordering::Relaxed) {
            return Err(tanmi_session::Error::Busy { place: String::from("bindings") });
        }
        Ok(change(&mut self.entries.lock().unwrap()))
    }
}

impl Bindings for ToyBindings {
    fn find(&self, session: &str) -> tanmi_session::Result<Option<Binding>> {
        Ok(self.entries.lock().unwrap().get(session).cloned())
    }

    fn all(&self) -> tanmi_session::Result<Vec<(String, Binding)>> {
        Ok(self.entries.lock().unwrap().clone().into_iter().collect())
    }

    fn bind(&self, session: &str, binding: &Binding) -> tanmi_session::Result<Option<Binding>> {
        self.write(|entries| entries.insert(session.to_owned(), binding.clone()))
    }

    fn unbind(&self, session: &str) -> tanmi_session::Result<Option<Binding>> {
        self.write(|entries| entries.remove(session))
    }

    fn focus(&self, session: &str, workspace: &str, node: Option<&str>) -> tanmi_session::Result<bool> {
        self.write(|entries| match entries.get_mut(session) {
            Some(binding) if binding.workspace_id == workspace => {
                binding.focused_node_id = node.map(String::from);
                true
            }
            _ => false,
        })
    }

    fn prune(&self, is_stale: &dyn Fn(&str, &Binding) -> bool) -> tanmi_session::Result<Vec<String>> {
        self.write(|entries| {
            let stale = entries.iter().filter(|(session, binding)| is_stale(session, binding));
            let stale: Vec<String> = stale.map(|(session, _)| session.clone()).collect();
            entries.retain(|session, _| !stale.contains(session));
            stale
        })
    }

    fn is_damaged(&self) -> tanmi_session::Result<bool> {
        Ok(false)
    }

    fn repair(&self) -> tanmi_session::Result<bool> {
        Ok(false)
    }

    fn revision(&self) -> u64 {
        0
    }
}

#[derive(Default)]
struct ToyLedger {
    entries: Mutex<Vec<(LedgerEntry, String)>>,
}

impl Ledger for ToyLedger {
    fn append(&self, entry: LedgerEntry, text: &str) -> tanmi_session::Result<()> {
        self.entries.lock().unwrap().push((entry, text.to_owned()));
        Ok(())
    }

    fn read(&self, _: Option<&str>, _: Option<&str>) -> tanmi_session::Result<LedgerRead> {
        let entries = self.entries.lock().unwrap().iter().map(|(entry, _)| entry.clone()).collect();
        Ok(LedgerRead { entries, unreadable: 0 })
    }

    fn days(&self) -> tanmi_session::Result<Vec<String>> {
        Ok(vec![String::from("all")])
    }

    fn read_after(&self, _: &str, position: u64) -> tanmi_session::Result<Option<LedgerTail>> {
        let all = self.entries.lock().unwrap();
        let new = all.iter().skip(usize::try_from(position).unwrap()).map(|(entry, _)| entry.clone());
        Ok(Some(LedgerTail { entries: new.collect(), position: all.len() as u64 }))
    }

    fn text(&self, _: &str) -> Option<String> {
        self.entries.lock().unwrap().last().map(|(_, text)| text.clone())
    }

    fn prune(&self, _: Millis, _: usize) -> tanmi_session::Result<()> {
        Ok(())
    }

    fn revision(&self, _: Millis) -> u64 {
        self.entries.lock().unwrap().len() as u64
    }
}
