//! The file store. Markdown files in the project are the source of truth, a journal makes changes durable, and an
//! index makes reads fast.
//!
//! Each workspace has one lock: readers share it, a writer holds it alone. [`open`] begins transactions,
//! [`tx`] implements them, [`scan`] updates the index, [`follow`] reports changes, [`check`] finds damage,
//! and [`layout`] defines file names.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tanmi_base::Millis;
use tanmi_base::fs::{self, Durability};
use tanmi_base::journal::{JournalPaths, Recovery};
use tanmi_base::lock::Lock;
use tanmi_base::paths::project_store;
use tanmi_base::place::{ProjectPlace, ensure_dir, ensure_private_dir};

use super::{Access, Store, TrashEntry, Tx, WorkspaceEntry};
use crate::codec;
use crate::error::{Error, Result};
use crate::model::*;

mod check;
mod documents;
mod follow;
mod layout;
mod maintenance;
mod open;
mod replica;
mod scan;
mod snapshot;
mod trash;
mod tx;

pub use check::{CheckReport, Finding, Fix};
pub use documents::{HeldWorkspace, WorkspaceDocuments};
use layout::{Layout, ProjectLayout};
use open::{OpenIndex, Scan};

/// Maximum number of workspaces that are read to choose one. Hooks do this, and a clone may have any number.
const MAX_HEADERS: usize = 1000;

/// Maximum size of a workspace or node file.
const MAX_BYTES: u64 = 16 << 20;

/// Returns the folders of the journal in the folder of a workspace, and which changes it may contain.
pub fn journal_paths(workspace: &Path) -> JournalPaths {
    Layout::new(workspace.to_owned()).journal_paths()
}

/// All workspaces of one project.
#[derive(Default)]
pub struct FileStore {
    place: Arc<ProjectPlace>,
    /// Open indexes that no transaction uses, so that a server does not open them again and again. Invariant: only a
    /// holder of the lock of a workspace takes one of its indexes.
    indexes: Mutex<HashMap<WorkspaceId, Vec<OpenIndex>>>,
    recoveries: Mutex<Vec<(WorkspaceId, Recovery)>>,
}

impl FileStore {
    pub fn new(place: Arc<ProjectPlace>) -> FileStore {
        FileStore { place, ..FileStore::default() }
    }

    /// Returns the store in a folder of this user.
    pub fn in_folder(project: &Path) -> FileStore {
        FileStore::new(Arc::new(ProjectPlace::new(project, None)))
    }

    fn dir(&self) -> PathBuf {
        project_store(self.place.folder())
    }

    /// Returns the ids of all workspace folders.
    fn workspace_ids(&self) -> Result<Vec<WorkspaceId>> {
        self.place.check()?;
        let dir = self.dir();
        let entries = match std::fs::read_dir(&dir) {
            Err(error) if fs::is_absent(&error) => return Ok(Vec::new()),
            other => other.map_err(Error::io(&dir))?,
        };
        let names =
            entries.flatten().filter_map(|entry| WorkspaceId::parse(entry.file_name().to_str()?).ok());
        // A checkout can leave the folder of a workspace of another branch without its files.
        let mut ids: Vec<WorkspaceId> = names.filter(|id| self.layout(id).is_workspace()).collect();
        ids.sort();
        Ok(ids)
    }

    fn layout(&self, id: &WorkspaceId) -> Layout {
        Layout::new(self.dir().join(id.as_str()))
    }

    fn project_layout(&self) -> ProjectLayout {
        ProjectLayout::new(self.dir())
    }

    fn not_found(id: &WorkspaceId) -> Error {
        Error::WorkspaceNotFound { id: id.to_string(), existing: Vec::new() }
    }

    /// Locks the project for the creation or deletion of a workspace. Creates the store folder if needed, but never the
    /// folder of the project.
    fn lock_project(&self) -> Result<Lock> {
        self.place.check_for_write()?;
        let layout = self.project_layout();
        layout.check_folders()?;
        ensure_dir(layout.dir()).map_err(Error::io(layout.dir()))?;
        ensure_private_dir(&layout.local()).map_err(Error::io(layout.local()))?;
        let guard = Lock::exclusive(&layout.lock())?;
        self.place.check_for_write()?;
        let ignore = layout.gitignore();
        if !ignore.exists() {
            fs::write_atomic(&ignore, layout::GITIGNORE.as_bytes(), &layout.local(), Durability::Synced)
                .map_err(Error::io(&ignore))?;
        }
        Ok(guard)
    }

    /// Moves a workspace to the trash. The caller holds the lock of the project.
    fn move_to_trash(&self, id: &WorkspaceId, now: Millis) -> Result<()> {
        let layout = self.layout(id);
        if !layout.exists() {
            return Err(FileStore::not_found(id));
        }
        layout.check_folders()?;
        let writer = self.lock_workspace(id, &layout, Lock::exclusive)?;
        self.rename_to_trash(id, writer, now)
    }

    /// Moves a workspace to the trash. The caller holds the lock of the project, and passes one that keeps writers out.
    fn rename_to_trash(&self, id: &WorkspaceId, writer: Lock, now: Millis) -> Result<()> {
        let layout = self.layout(id);
        lock(&self.indexes).remove(id);
        // Windows cannot move a folder that contains an open file. If another writer opens one now, the move fails and
        // nothing changes.
        if cfg!(windows) {
            drop(writer);
        }
        let to = self.project_layout().new_trash_path(now, id.as_str());
        ensure_dir(&self.project_layout().trash()).map_err(Error::io(&to))?;
        std::fs::rename(layout.dir(), &to).map_err(Error::io(layout.dir()))?;
        fs::sync_dir(self.project_layout().dir());
        Ok(())
    }
}

/// Locks a mutex and ignores poisoning: a panic in another thread does not leave the data inconsistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Store for FileStore {
    fn insert(&self, workspace: &Workspace, root: &Node) -> Result<()> {
        self.insert_documents(&WorkspaceDocuments {
            id: workspace.id.clone(),
            workspace: codec::write_workspace(None, workspace),
            nodes: vec![(root.id.clone(), codec::write_node(None, root))],
        })
    }

    fn entries(&self, now: Millis) -> Result<Vec<WorkspaceEntry>> {
        let entry = |id: WorkspaceId| {
            let read = self.open_tx(&id, Access::Read, now, Scan::IfNeeded).and_then(|tx| {
                let workspace = tx.workspace()?;
                let active_at = tx.active_at()?.max(workspace.updated_at);
                Ok((workspace, tx.total()?.progress(), active_at))
            });
            match read {
                Ok((workspace, progress, active_at)) => {
                    WorkspaceEntry { id, state: Ok((workspace, progress)), active_at }
                }
                Err(error) => WorkspaceEntry { id, state: Err(error), active_at: 0 },
            }
        };
        Ok(self.workspace_ids()?.into_iter().map(entry).collect())
    }

    fn read_headers(&self) -> Result<Vec<(WorkspaceId, Option<Workspace>)>> {
        let read_header = |id: WorkspaceId| {
            let workspace = scan::read_workspace(&self.layout(&id), &id);
            (id, workspace)
        };
        let ids = self.workspace_ids()?;
        let skipped = ids.len().saturating_sub(MAX_HEADERS);
        Ok(ids.into_iter().skip(skipped).map(read_header).collect())
    }

    fn read_header(&self, id: &WorkspaceId) -> Result<Option<Workspace>> {
        self.place.check()?;
        Ok(scan::read_workspace(&self.layout(id), id))
    }

    fn contains(&self, id: &WorkspaceId) -> Result<bool> {
        self.place.check()?;
        let layout = self.layout(id);
        match std::fs::metadata(layout.dir()) {
            Err(error) if fs::is_absent(&error) => Ok(false),
            found => Ok(found.map_err(Error::io(layout.dir()))?.is_dir()),
        }
    }

    fn remove(&self, id: &WorkspaceId, now: Millis) -> Result<()> {
        let _guard = self.lock_project()?;
        self.move_to_trash(id, now)
    }

    fn restore(&self, id: &WorkspaceId) -> Result<bool> {
        // Checked before the lock, because locking would create the store folder.
        if self.project_layout().find_trashed(id.as_str()).is_none() {
            return Ok(false);
        }
        let _guard = self.lock_project()?;
        let Some(from) = self.project_layout().find_trashed(id.as_str()) else { return Ok(false) };
        let target = self.layout(id);
        std::fs::rename(&from, target.dir()).map_err(Error::io(&from))?;
        fs::sync_dir(self.project_layout().dir());
        Ok(true)
    }

    fn trash_entries(&self) -> Result<Vec<TrashEntry>> {
        self.read_trash()
    }

    fn drop_index_cache(&self, id: &WorkspaceId) {
        lock(&self.indexes).remove(id);
        let layout = self.layout(id);
        if layout.check_folders().is_ok() {
            tanmi_index::discard(&layout.index());
        }
    }

    fn begin(&self, id: &WorkspaceId, access: Access, now: Millis) -> Result<Box<dyn Tx + '_>> {
        Ok(Box::new(self.open_tx(id, access, now, Scan::IfNeeded)?))
    }
}
