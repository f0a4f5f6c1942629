//! The stores behind the use cases, as interfaces: projects with their workspaces and memory, bindings, and the ledger.
//!
//! [`Stores::local`] keeps all of them in files on this machine, except for projects that a team server
//! keeps: these have a replica in files, and their writes go to the server. No other module of this crate
//! names a file store, so another implementation needs no change of a use case.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde::Serialize;
use tanmi_base::paths::project_key;
use tanmi_base::place::ProjectPlace;
use tanmi_memory::{FileMemory, MemoryStore};
use tanmi_session::{Bindings, FileBindings, FileLedger, Ledger};
use tanmi_team::{Connection, Member, Membership, TeamMemory, TeamWorkspaces, find_member, replicas};
use tanmi_workspace::model::WorkspaceId;
use tanmi_workspace::store::{ChangeFeed, ContextSnapshots, FileStore, LocalMaintenance, Workspaces};

use crate::error::Result;
use crate::registry::{Registry, RegistryEntry};
use crate::sessions::client_name;

/// The identity of a project. Where a project is kept can change, and different paths can lead to the same place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct ProjectId(String);

impl ProjectId {
    /// Returns the id of the project in a folder of this machine. It is derived from the resolved path and not read
    /// from a file of the project, so a clone cannot claim the id of another project.
    pub(crate) fn of_folder(folder: &Path) -> ProjectId {
        ProjectId(project_key(folder))
    }

    /// Returns the id of a project that a server names.
    pub fn of_name(name: &str) -> ProjectId {
        ProjectId(name.to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// One project and the stores of its data.
pub trait Project: Send + Sync {
    fn id(&self) -> &ProjectId;
    /// Returns the folder on this machine that hooks read. Bindings name it.
    fn folder(&self) -> &Path;
    /// Returns the folder in which people work: with rules, settings, declared context, and the files that facts name.
    fn checkout(&self) -> &Path {
        self.folder()
    }
    /// Returns the connection to the server and the replica, if a team server keeps the project.
    fn team(&self) -> Option<&Arc<TeamWorkspaces>> {
        None
    }
    /// Returns the name of the user in the team that shares the project.
    fn person(&self) -> Option<&str> {
        None
    }
    /// Returns whether the stamps of logs are UTC, as the server of a team writes them, and not local times.
    fn has_utc_logs(&self) -> bool {
        self.person().is_some()
    }
    /// Fails if the stores of the project cannot be used: it was moved, replaced or deleted since the first call, or it
    /// belongs to another user. Every use of a store checks this too.
    fn check(&self) -> Result<()>;
    fn workspaces(&self) -> &dyn Workspaces;
    fn snapshots(&self) -> &dyn ContextSnapshots;
    fn feed(&self) -> &dyn ChangeFeed;
    fn memory(&self) -> Arc<dyn MemoryStore>;
    /// Returns the maintenance of local files, or `None` if the workspaces are not kept in files on this machine.
    fn maintenance(&self) -> Option<&dyn LocalMaintenance>;
}

/// A workspace that was used on this machine.
#[derive(Clone)]
pub struct KnownWorkspace {
    pub id: WorkspaceId,
    pub name: String,
    pub project: Arc<dyn Project>,
}

/// The projects of this machine: looks up where a project is kept.
pub trait Projects: Send + Sync {
    /// Returns the project that is kept in this folder.
    fn in_folder(&self, folder: &Path) -> Arc<dyn Project>;
    /// Returns the folder in which people work on the project of a binding: the one that contains `cwd`, if the project
    /// has several.
    fn checkout(&self, folder: &Path, _cwd: Option<&Path>) -> PathBuf {
        folder.to_owned()
    }
    /// Returns the project that contains a workspace, if it is known.
    fn of_workspace(&self, id: &WorkspaceId) -> Result<Option<Arc<dyn Project>>>;
    /// Returns all known projects that still exist.
    fn all(&self) -> Result<Vec<Arc<dyn Project>>>;
    /// Returns all known workspaces, including deleted ones.
    fn workspaces(&self) -> Result<Vec<KnownWorkspace>>;
    /// Remembers the projects of these workspaces. If a workspace occurs several times, the first entry counts.
    fn remember(&self, found: &[KnownWorkspace]) -> Result<()>;
    /// Remembers that a workspace is used in this project. Its name follows when it is listed.
    fn remember_use(&self, id: &WorkspaceId, project: &dyn Project) -> Result<()>;
    /// Looks whether projects joined or left a team. Those that are opened after it are as they are now. Fails if that
    /// cannot be known now: then none may be used.
    fn refresh(&self) -> Result<()> {
        Ok(())
    }
    /// Returns the projects that were opened so far.
    fn opened(&self) -> Vec<Arc<dyn Project>>;
}

/// The stores that the use cases work on.
#[derive(Clone)]
pub struct Stores {
    pub projects: Arc<dyn Projects>,
    pub bindings: Arc<dyn Bindings>,
    pub ledger: Arc<dyn Ledger>,
    /// The memory of the user, which holds in all projects.
    pub user_memory: Arc<dyn MemoryStore>,
}

impl Stores {
    /// Returns the stores in the files of this machine.
    pub fn local(home: &Path) -> Stores {
        Stores {
            projects: Arc::new(LocalProjects {
                home: home.to_owned(),
                registry: Registry::new(home),
                members: Mutex::default(),
                open: Mutex::default(),
            }),
            bindings: Arc::new(FileBindings::new(home)),
            ledger: Arc::new(FileLedger::new(home)),
            user_memory: Arc::new(FileMemory::of_user(home)),
        }
    }
}

/// The workspaces in the files of a folder.
pub(crate) type LocalWorkspaces = FileStore;

/// Returns the workspaces in the files of a folder, also if a team server keeps the project of the folder.
pub(crate) fn workspaces_in_files(folder: &Path, home: &Path) -> LocalWorkspaces {
    FileStore::new(Arc::new(ProjectPlace::new(folder, Some(home))))
}

/// Returns the memory in the files of a folder, also if a team server keeps the project of the folder.
pub(crate) fn memory_in_files(folder: &Path, home: &Path) -> Arc<dyn MemoryStore> {
    Arc::new(FileMemory::new(Arc::new(ProjectPlace::new(folder, Some(home))), home))
}

struct LocalProject {
    place: Arc<ProjectPlace>,
    id: OnceLock<ProjectId>,
    store: FileStore,
    home: PathBuf,
}

impl Project for LocalProject {
    fn id(&self) -> &ProjectId {
        self.id.get_or_init(|| ProjectId::of_folder(self.folder()))
    }

    fn folder(&self) -> &Path {
        self.place.folder()
    }

    fn check(&self) -> Result<()> {
        Ok(self.place.check().map_err(tanmi_workspace::Error::from)?)
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
        // Built for each call, because the folder of an older tool is used only until there is one of our own.
        Arc::new(FileMemory::new(self.place.clone(), &self.home))
    }

    fn maintenance(&self) -> Option<&dyn LocalMaintenance> {
        Some(&self.store)
    }
}

/// A project that a team server keeps, with its replica in the home store.
#[derive(Clone)]
struct JoinedProject {
    checkout: PathBuf,
    place: Arc<ProjectPlace>,
    id: ProjectId,
    replica: Arc<FileStore>,
    workspaces: Arc<TeamWorkspaces>,
}

impl JoinedProject {
    fn new(member: &Member, home: &Path) -> JoinedProject {
        let folder = member.replica(home);
        let place = Arc::new(ProjectPlace::of_replica(&folder));
        let replica = Arc::new(FileStore::new(place.clone()));
        let clock = tanmi_base::clock::now;
        let connection = Arc::new(Connection::new(member, &folder, clock));
        let memory = Arc::new(TeamMemory::new(member, home, connection.clone(), clock));
        let workspaces =
            TeamWorkspaces::new(folder.clone(), replica.clone(), connection, &member.machine, memory, clock);
        JoinedProject {
            checkout: checkout_of(member, None).unwrap_or(&folder).to_owned(),
            place,
            id: ProjectId::of_folder(&folder),
            replica,
            workspaces: Arc::new(workspaces.with_client_names(client_name)),
        }
    }
}

/// Returns the folder of a joined project that contains `cwd`, or else the first one.
fn checkout_of<'a>(member: &'a Member, cwd: Option<&Path>) -> Option<&'a Path> {
    let contains = |folder: &&PathBuf| cwd.is_some_and(|cwd| cwd.starts_with(folder));
    member.folders.iter().find(contains).or(member.folders.first()).map(PathBuf::as_path)
}

impl Project for JoinedProject {
    fn id(&self) -> &ProjectId {
        &self.id
    }

    fn folder(&self) -> &Path {
        self.place.folder()
    }

    fn checkout(&self) -> &Path {
        &self.checkout
    }

    fn team(&self) -> Option<&Arc<TeamWorkspaces>> {
        Some(&self.workspaces)
    }

    fn person(&self) -> Option<&str> {
        Some(self.workspaces.memory().person())
    }

    /// A replica that was deleted is fetched again. Hooks do not call this.
    fn check(&self) -> Result<()> {
        self.workspaces.restore_deleted();
        Ok(())
    }

    fn workspaces(&self) -> &dyn Workspaces {
        &*self.workspaces
    }

    fn snapshots(&self) -> &dyn ContextSnapshots {
        &*self.replica
    }

    fn feed(&self) -> &dyn ChangeFeed {
        &*self.replica
    }

    fn memory(&self) -> Arc<dyn MemoryStore> {
        self.workspaces.memory().clone()
    }

    fn maintenance(&self) -> Option<&dyn LocalMaintenance> {
        None
    }
}

/// Projects in folders of this machine. The registry in the home store remembers them.
struct LocalProjects {
    home: PathBuf,
    registry: Registry,
    /// The joined projects, or why they are not known. Read once, and again by [`Projects::refresh`].
    members: Mutex<Option<Arc<KnownMembers>>>,
    open: Mutex<OpenProjects>,
}

type KnownMembers = Result<Vec<Member>, String>;

/// The projects that were opened, so that each store is opened once.
#[derive(Default)]
struct OpenProjects {
    by_folder: BTreeMap<PathBuf, Arc<dyn Project>>,
    /// By the folder of the replica.
    joined: BTreeMap<PathBuf, JoinedProject>,
}

impl LocalProjects {
    fn members(&self) -> Arc<KnownMembers> {
        let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        members.get_or_insert_with(|| Arc::new(self.read_members())).clone()
    }

    fn read_members(&self) -> KnownMembers {
        Membership::new(&self.home).all().map_err(|error| error.to_string())
    }

    fn open(&self, folder: &Path, joined: &mut BTreeMap<PathBuf, JoinedProject>) -> Arc<dyn Project> {
        let place = match &*self.members() {
            Ok(members) => {
                if let Some(member) = find_member(members, &self.home, folder) {
                    let replica = member.replica(&self.home);
                    let shared = joined.entry(replica.clone());
                    let mut project =
                        shared.or_insert_with(|| JoinedProject::new(member, &self.home)).clone();
                    if folder != replica {
                        folder.clone_into(&mut project.checkout);
                    }
                    return Arc::new(project);
                }
                match folder.starts_with(replicas(&self.home)) {
                    // A replica is never a local project: a write to it would be in no other place.
                    true => self.unknown(folder, "does not name the project of this replica"),
                    false => ProjectPlace::new(folder, Some(&self.home)),
                }
            }
            // Any project may be a joined one.
            Err(reason) => self.unknown(folder, reason),
        };
        let place = Arc::new(place);
        let store = FileStore::new(place.clone());
        Arc::new(LocalProject { place, id: OnceLock::new(), store, home: self.home.clone() })
    }

    fn unknown(&self, folder: &Path, reason: &str) -> ProjectPlace {
        ProjectPlace::unknown(folder, &Membership::new(&self.home).path(), reason)
    }
}

impl Projects for LocalProjects {
    fn in_folder(&self, folder: &Path) -> Arc<dyn Project> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let OpenProjects { by_folder, joined } = &mut *open;
        by_folder.entry(folder.to_owned()).or_insert_with(|| self.open(folder, joined)).clone()
    }

    fn checkout(&self, folder: &Path, cwd: Option<&Path>) -> PathBuf {
        if !folder.starts_with(replicas(&self.home)) {
            return folder.to_owned();
        }
        let members = self.members();
        let member = members.as_ref().as_ref().ok().and_then(|all| find_member(all, &self.home, folder));
        member.and_then(|member| checkout_of(member, cwd)).unwrap_or(folder).to_owned()
    }

    fn of_workspace(&self, id: &WorkspaceId) -> Result<Option<Arc<dyn Project>>> {
        Ok(self.registry.find(id)?.map(|folder| self.in_folder(&folder)))
    }

    fn all(&self) -> Result<Vec<Arc<dyn Project>>> {
        Ok(self.registry.projects()?.iter().map(|folder| self.in_folder(folder)).collect())
    }

    fn workspaces(&self) -> Result<Vec<KnownWorkspace>> {
        let known = |(id, entry): (WorkspaceId, RegistryEntry)| KnownWorkspace {
            id,
            name: entry.name,
            project: self.in_folder(&entry.project),
        };
        Ok(self.registry.entries()?.into_iter().map(known).collect())
    }

    fn remember(&self, found: &[KnownWorkspace]) -> Result<()> {
        let entry = |known: &KnownWorkspace| {
            let project = known.project.folder().to_owned();
            (known.id.clone(), RegistryEntry { project, name: known.name.clone() })
        };
        self.registry.record_all(&found.iter().map(entry).collect::<Vec<_>>())
    }

    fn remember_use(&self, id: &WorkspaceId, project: &dyn Project) -> Result<()> {
        self.registry.record(id, project.folder())
    }

    fn refresh(&self) -> Result<()> {
        let read = self.read_members();
        let unknown = read.as_ref().err().map(|reason| self.unknown(&self.home, reason));
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        if members.as_ref().is_some_and(|known| **known != read) {
            *members = Some(Arc::new(read));
            *open = OpenProjects::default();
        }
        let checked = unknown.map_or(Ok(()), |place| place.check());
        Ok(checked.map_err(tanmi_workspace::Error::from)?)
    }

    fn opened(&self) -> Vec<Arc<dyn Project>> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.by_folder.values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refresh_with_damaged_membership_fails_until_it_can_be_read_again() {
        let home = tempfile::tempdir().unwrap();
        let (projects, file) = (Stores::local(home.path()).projects, Membership::new(home.path()).path());
        let folder = home.path().join("project");
        let write = |text: &str| tanmi_base::fs::write_private(&file, text.as_bytes()).unwrap();
        write("{}");
        projects.in_folder(&folder).check().unwrap();
        projects.refresh().unwrap();
        write("{");
        let failed = projects.refresh().unwrap_err().to_string();
        assert!(failed.contains("team.json"), "{failed}");
        assert!(projects.in_folder(&folder).check().is_err(), "no project is used");
        write("{}");
        projects.refresh().unwrap();
        projects.in_folder(&folder).check().unwrap();
    }
}
