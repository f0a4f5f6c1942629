//! The file store. Markdown files in the project are the source of truth, a journal makes changes durable, and an
//! index makes reads fast.
//!
//! Each workspace has one lock that a transaction holds. [`scan`] updates the index, [`tx`] implements transactions,
//! [`follow`] reports changes, [`check`] finds damage, and [`layout`] defines file names.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tanmi_base::fs::{self, Durability, FileSig};
use tanmi_base::journal::{Journal, Recovery};
use tanmi_base::lock::{Lock, LockError};
use tanmi_base::paths::STORE_DIR;
use tanmi_base::{Bilingual, Millis, clock};
use tanmi_index::{NodeIndex, OpenOutcome};

use super::{Access, Store, Tx, WorkspaceEntry};
use crate::codec;
use crate::error::{Error, Result, UnavailableCause};
use crate::model::*;

mod check;
mod follow;
mod layout;
mod maintenance;
mod scan;
mod snapshot;
mod tx;

pub use check::{CheckReport, Finding, Fix};
use layout::{Layout, ProjectLayout};

/// Maximum size of a workspace or node file.
const MAX_BYTES: u64 = 16 << 20;

/// All workspaces of one project.
#[derive(Default)]
pub struct FileStore {
    project: PathBuf,
    /// Open indexes, so that a server opens each one once. Invariant: only the holder of the lock of a workspace takes
    /// its index.
    indexes: Mutex<HashMap<WorkspaceId, OpenIndex>>,
    recoveries: Mutex<Vec<(WorkspaceId, Recovery)>>,
}

struct OpenIndex {
    index: NodeIndex,
    /// The inode of the open file. The index is stale if the file was deleted or replaced.
    inode: u64,
}

/// Whether to compare all files with the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scan {
    IfNeeded,
    Always,
}

impl FileStore {
    pub fn new(project: impl Into<PathBuf>) -> FileStore {
        FileStore { project: project.into(), ..FileStore::default() }
    }

    /// Returns the ids of all workspace folders.
    fn workspace_ids(&self) -> Result<Vec<WorkspaceId>> {
        let dir = self.project.join(STORE_DIR);
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
        Layout::new(self.project.join(STORE_DIR).join(id.as_str()))
    }

    fn project_layout(&self) -> ProjectLayout {
        ProjectLayout::new(self.project.join(STORE_DIR))
    }

    fn not_found(id: &WorkspaceId) -> Error {
        Error::WorkspaceNotFound { id: id.to_string(), existing: Vec::new() }
    }

    /// Locks the project for the creation or deletion of a workspace. Creates the store folder if needed.
    fn lock_project(&self) -> Result<Lock> {
        let layout = self.project_layout();
        refuse_link(layout.find_link())?;
        std::fs::create_dir_all(layout.local()).map_err(Error::io(layout.local()))?;
        let guard = Lock::exclusive(&layout.lock())?;
        let ignore = layout.gitignore();
        if !ignore.exists() {
            fs::write_atomic(&ignore, layout::GITIGNORE.as_bytes(), &layout.local(), Durability::Synced)
                .map_err(Error::io(&ignore))?;
        }
        Ok(guard)
    }

    fn open_tx(&self, id: &WorkspaceId, access: Access, now: Millis, scan: Scan) -> Result<tx::FileTx<'_>> {
        let layout = self.layout(id);
        if !layout.is_workspace() {
            return Err(FileStore::not_found(id));
        }
        refuse_link(layout.find_link())?;
        let guard = match self.lock_workspace(id, &layout) {
            // A read-only folder can be read without a lock, because other processes cannot write there either.
            Err(Error::Unavailable { cause: UnavailableCause::Io(_), .. }) if access == Access::Read => {
                Lock::none()
            }
            other => other?,
        };
        if !guard.is_held() {
            return self.open_with_temporary_index(id, layout, guard, now);
        }
        let opened = match self.open_up_to_date(id, &layout, access, now, scan) {
            Err(Error::Unavailable { cause: UnavailableCause::Index(error), .. }) if error.is_lost() => {
                NodeIndex::discard(&layout.index());
                self.open_up_to_date(id, &layout, access, now, Scan::Always)
            }
            other => other,
        };
        let (journal, index) = match opened {
            // The files are readable even if a full disk prevents a new index.
            Err(Error::Unavailable {
                cause: UnavailableCause::Io(_) | UnavailableCause::Index(_), ..
            }) if access == Access::Read => {
                return self.open_with_temporary_index(id, layout, guard, now);
            }
            other => other?,
        };
        match access {
            Access::Write => index.index.begin()?,
            Access::Read => index.index.begin_read()?,
        }
        let mut tx = tx::FileTx::new(self, id.clone(), layout, guard, Some(journal), index, now);
        tx.commits_index = access == Access::Read;
        Ok(tx)
    }

    /// Opens a read transaction with an index in memory, for folders that cannot be written.
    fn open_with_temporary_index(
        &self,
        id: &WorkspaceId,
        layout: Layout,
        guard: Lock,
        now: Millis,
    ) -> Result<tx::FileTx<'_>> {
        let index = OpenIndex { index: NodeIndex::in_memory()?, inode: 0 };
        scan::rescan(&index.index, &layout, now)?;
        Ok(tx::FileTx::new(self, id.clone(), layout, guard, None, index, now))
    }

    fn lock_workspace(&self, id: &WorkspaceId, layout: &Layout) -> Result<Lock> {
        match Lock::exclusive(&layout.lock()) {
            // A fresh clone has no local folder yet.
            Err(LockError::Io { source, .. }) if fs::is_absent(&source) && layout.exists() => {
                std::fs::create_dir_all(layout.temp()).map_err(Error::io(layout.temp()))?;
                Ok(Lock::exclusive(&layout.lock())?)
            }
            Err(LockError::Io { source, .. }) if fs::is_absent(&source) => Err(FileStore::not_found(id)),
            other => Ok(other?),
        }
    }

    /// Opens journal and index and updates both to the current files. The caller holds the lock.
    fn open_up_to_date(
        &self,
        id: &WorkspaceId,
        layout: &Layout,
        access: Access,
        now: Millis,
        scan: Scan,
    ) -> Result<(Journal, OpenIndex)> {
        clear_temp(layout).map_err(Error::io(layout.temp()))?;
        let (index, is_new) = self.open_index(id, layout)?;
        let known = index.index.metas()?;
        let indexed_seq = known.get("seq").and_then(|seq| seq.parse().ok()).unwrap_or(0);
        let path = layout.journal();
        let mut journal =
            Journal::open(&path, layout.journal_paths(), indexed_seq).map_err(Error::io(&path))?;
        let was_recovered = journal.needs_recovery();
        if was_recovered {
            let recovery = journal.recover().map_err(Error::io(&path))?;
            if !recovery.is_empty() {
                lock(&self.recoveries).push((id.clone(), recovery));
            }
        }
        if is_new || was_recovered || scan == Scan::Always || scan::is_due(&known, layout, access, now)? {
            scan::rescan(&index.index, layout, now)?;
        }
        if was_recovered {
            journal.checkpoint().map_err(Error::io(&path))?;
        }
        Ok((journal, index))
    }

    fn open_index(&self, id: &WorkspaceId, layout: &Layout) -> Result<(OpenIndex, bool)> {
        let path = layout.index();
        let on_disk = FileSig::of(&path).map_err(Error::io(&path))?;
        if let Some(open) = lock(&self.indexes).remove(id)
            && on_disk.is_some_and(|sig| sig.inode == open.inode)
        {
            return Ok((open, false));
        }
        let (index, is_new) = match NodeIndex::open(&path, clock::boot_id())? {
            OpenOutcome::Kept(index) => (index, false),
            OpenOutcome::New(index) => (index, true),
        };
        let inode = FileSig::of(&path).map_err(Error::io(&path))?.map_or(0, |sig| sig.inode);
        Ok((OpenIndex { index, inode }, is_new))
    }
}

/// Fails if there is a symbolic link. A store has none, but a cloned repository can contain one that points anywhere.
fn refuse_link(link: Option<PathBuf>) -> Result<()> {
    let reason = Bilingual::new(
        "存储的文件夹是一个符号链接；请删除该链接",
        "a folder of the store is a symbolic link; remove the link",
    );
    link.map_or(Ok(()), |path| Err(Error::corrupt(&path, 1, reason)))
}

/// Empties the temporary folder. The caller holds the lock, so no other process uses these files.
fn clear_temp(layout: &Layout) -> std::io::Result<()> {
    match std::fs::read_dir(layout.temp()) {
        Ok(left) => left.flatten().try_for_each(|entry| fs::remove_tree(&entry.path())),
        Err(error) if fs::is_absent(&error) => std::fs::create_dir_all(layout.temp()),
        Err(error) => Err(error),
    }
}

/// Locks a mutex and ignores poisoning: a panic in another thread does not leave the data inconsistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Store for FileStore {
    /// Writes and syncs the folder elsewhere and then renames it, so that it appears as a whole.
    fn insert(&self, workspace: &Workspace, root: &Node) -> Result<()> {
        let _guard = self.lock_project()?;
        let project = self.project_layout();
        project.remove_drafts().map_err(Error::io(project.local()))?;
        let draft = Layout::new(project.draft(&workspace.id));
        let write = |path: PathBuf, text: String| {
            fs::write_new(&path, text.as_bytes(), Durability::Synced).map(|_| ()).map_err(Error::io(path))
        };
        let node_md = draft.node_md(&root.id);
        for dir in [draft.node_dir(&root.id), draft.temp()] {
            std::fs::create_dir_all(&dir).map_err(Error::io(dir))?;
        }
        write(draft.workspace_md(), codec::write_workspace(None, workspace))?;
        write(node_md, codec::write_node(None, root))?;
        Journal::create(&draft.journal(), &draft.temp(), 0).map_err(Error::io(draft.journal()))?;
        for dir in [draft.node_dir(&root.id), draft.nodes(), draft.dir().to_owned()] {
            fs::sync_dir(&dir);
        }
        let target = self.layout(&workspace.id);
        std::fs::rename(draft.dir(), target.dir()).map_err(Error::io(target.dir()))?;
        fs::sync_dir(project.dir());
        Ok(())
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
            let read = scan::read_with_sig(&self.layout(&id).workspace_md()).ok().flatten();
            let doc = read.and_then(|(bytes, _)| codec::Document::parse(&bytes).ok());
            let workspace = doc.and_then(|doc| codec::read_workspace(&doc, &id).ok());
            (id, workspace)
        };
        Ok(self.workspace_ids()?.into_iter().map(read_header).collect())
    }

    fn contains(&self, id: &WorkspaceId) -> Result<bool> {
        let layout = self.layout(id);
        match std::fs::metadata(layout.dir()) {
            Err(error) if fs::is_absent(&error) => Ok(false),
            found => Ok(found.map_err(Error::io(layout.dir()))?.is_dir()),
        }
    }

    fn remove(&self, id: &WorkspaceId, now: Millis) -> Result<()> {
        let _guard = self.lock_project()?;
        let layout = self.layout(id);
        if !layout.exists() {
            return Err(FileStore::not_found(id));
        }
        let writer = self.lock_workspace(id, &layout)?;
        lock(&self.indexes).remove(id);
        // Windows cannot move a folder that contains an open file. If another writer opens one now, the move fails and
        // nothing changes.
        if cfg!(windows) {
            drop(writer);
        }
        let to = self.project_layout().new_trash_path(now, id.as_str());
        std::fs::create_dir_all(self.project_layout().trash()).map_err(Error::io(&to))?;
        std::fs::rename(layout.dir(), &to).map_err(Error::io(layout.dir()))?;
        fs::sync_dir(self.project_layout().dir());
        Ok(())
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

    fn drop_index_cache(&self, id: &WorkspaceId) {
        lock(&self.indexes).remove(id);
        NodeIndex::discard(&self.layout(id).index());
    }

    fn begin(&self, id: &WorkspaceId, access: Access, now: Millis) -> Result<Box<dyn Tx + '_>> {
        Ok(Box::new(self.open_tx(id, access, now, Scan::IfNeeded)?))
    }
}
