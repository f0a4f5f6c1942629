//! Opens transactions: takes the lock, finishes what a killed process left behind, and updates the index.
//!
//! Readers share the lock as long as nothing has to be written. A reader that finds recovery, a scan or a new index due
//! takes the exclusive lock instead. A reader that finds an outdated row fails with a conflict, and
//! [`crate::store::view`] repeats it with [`Access::Refresh`].
//!
//! Every process passes the turnstile before it waits for the lock, and holds it while it waits. A waiting writer so
//! keeps new readers out, and readers that come one after the other cannot keep it waiting.

use std::path::Path;

use tanmi_base::fs::{self, FileSig};
use tanmi_base::journal::{Journal, Recovery};
use tanmi_base::lock::{Lock, LockError};
use tanmi_base::place::ensure_private_dir;
use tanmi_base::{Millis, clock};
use tanmi_index::{NodeIndex, OpenOutcome};

use super::layout::Layout;
use super::tx::{FileTx, IndexMode, Opened};
use super::{FileStore, lock, scan};
use crate::error::{Error, Result, UnavailableCause};
use crate::model::WorkspaceId;
use crate::store::Access;

/// The number of open indexes that are kept per workspace.
const POOL_SIZE: usize = 4;

pub struct OpenIndex {
    pub index: NodeIndex,
    /// The inode of the open file. The index is stale if the file was deleted or replaced.
    inode: u64,
}

/// Whether to compare all files with the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scan {
    IfNeeded,
    Always,
}

impl FileStore {
    pub(super) fn open_tx(
        &self,
        id: &WorkspaceId,
        access: Access,
        now: Millis,
        scan: Scan,
    ) -> Result<FileTx<'_>> {
        self.place.check()?;
        let layout = self.layout(id);
        if !layout.is_workspace() {
            return Err(FileStore::not_found(id));
        }
        layout.check_folders()?;
        let shared = match (access, scan) {
            (Access::Read, Scan::IfNeeded) => self.open_shared(id, &layout, now)?,
            _ => None,
        };
        let opened = match shared {
            Some(opened) => opened,
            None => self.open_exclusive(id, &layout, access, now, scan)?,
        };
        Ok(FileTx::new(self, id.clone(), layout, opened, now))
    }

    /// Opens for reading with an index in memory, to look at the files behind a damaged index.
    pub(super) fn open_without_index(&self, id: &WorkspaceId, now: Millis) -> Result<FileTx<'_>> {
        let layout = self.layout(id);
        let lock = self.lock_workspace(id, &layout, Lock::shared)?;
        let opened = open_with_temporary_index(&layout, lock, now)?;
        Ok(FileTx::new(self, id.clone(), layout, opened, now))
    }

    /// Opens for reading together with other readers. `None` if something must be written first.
    fn open_shared(&self, id: &WorkspaceId, layout: &Layout, now: Millis) -> Result<Option<Opened>> {
        let lock = match self.lock_workspace(id, layout, Lock::shared) {
            Err(Error::Unavailable { cause: UnavailableCause::Io(_), .. }) => return Ok(None),
            other => other?,
        };
        // If the index cannot be used, the holder of the exclusive lock repairs or reports it.
        let Ok(Some((index, seq))) = self.open_current_index(id, layout, now) else { return Ok(None) };
        Ok(Some(Opened { lock, journal: None, index, mode: IndexMode::Shared, seq: Some(seq) }))
    }

    /// Returns the index in a read transaction and the sequence number of the last change, if neither recovery nor a
    /// scan is due.
    fn open_current_index(
        &self,
        id: &WorkspaceId,
        layout: &Layout,
        now: Millis,
    ) -> Result<Option<(OpenIndex, u64)>> {
        let path = layout.journal();
        let Some(seq) = Journal::read_seq_if_clean(&path).map_err(Error::io(&path))? else { return Ok(None) };
        let Some(inode) = inode_of(&layout.index())? else { return Ok(None) };
        let open = match self.take_index(id, inode) {
            Some(open) => open.index.begin_read().map(|()| open)?,
            None => match NodeIndex::open_current(&layout.index(), clock::boot_id())? {
                Some(index) => OpenIndex { index, inode },
                None => return Ok(None),
            },
        };
        if scan::is_due(&open.index.metas()?, layout, Access::Read, now)? {
            self.return_index(id, open);
            return Ok(None);
        }
        Ok(Some((open, seq)))
    }

    fn open_exclusive(
        &self,
        id: &WorkspaceId,
        layout: &Layout,
        access: Access,
        now: Millis,
        scan: Scan,
    ) -> Result<Opened> {
        let is_reader = access != Access::Write;
        let lock = match self.lock_workspace(id, layout, Lock::exclusive) {
            // A read-only folder can be read without a lock, because other processes cannot write there either.
            Err(Error::Unavailable { cause: UnavailableCause::Io(_), .. }) if is_reader => Lock::none(),
            other => other?,
        };
        if !lock.is_held() {
            return open_with_temporary_index(layout, lock, now);
        }
        // The project may have been moved while this process waited for the lock.
        self.place.check()?;
        let opened = match self.open_up_to_date(id, layout, access, now, scan) {
            Err(Error::Unavailable { cause: UnavailableCause::Index(error), .. }) if error.is_lost() => {
                tanmi_index::discard(&layout.index());
                self.open_up_to_date(id, layout, access, now, Scan::Always)
            }
            other => other,
        };
        let (journal, index, mode) = match opened {
            // The files are readable even if a full disk prevents a new index.
            Err(Error::Unavailable {
                cause: UnavailableCause::Io(_) | UnavailableCause::Index(_), ..
            }) if is_reader => return open_with_temporary_index(layout, lock, now),
            other => other?,
        };
        let seq = Some(journal.seq());
        Ok(Opened { lock, journal: Some(journal), index, mode, seq })
    }

    /// Waits for the lock with `take`, which is [`Lock::shared`] or [`Lock::exclusive`].
    pub(super) fn lock_workspace(
        &self,
        id: &WorkspaceId,
        layout: &Layout,
        take: fn(&Path) -> std::result::Result<Lock, LockError>,
    ) -> Result<Lock> {
        let wait = || {
            let _turn = take(&layout.turnstile())?;
            take(&layout.lock())
        };
        match wait() {
            // A fresh clone has no local folder yet.
            Err(LockError::Io { source, .. }) if fs::is_absent(&source) && layout.exists() => {
                for dir in [layout.local(), layout.temp()] {
                    ensure_private_dir(&dir).map_err(Error::io(dir))?;
                }
                Ok(wait()?)
            }
            Err(LockError::Io { source, .. }) if fs::is_absent(&source) => Err(FileStore::not_found(id)),
            other => Ok(other?),
        }
    }

    /// Opens journal and index, updates both to the current files, and begins a transaction of the index. The
    /// caller holds the exclusive lock.
    fn open_up_to_date(
        &self,
        id: &WorkspaceId,
        layout: &Layout,
        access: Access,
        now: Millis,
        scan: Scan,
    ) -> Result<(Journal, OpenIndex, IndexMode)> {
        // Opened before anything is changed: a journal that is refused leaves the workspace as it is.
        let path = layout.journal();
        let journal = Journal::open_existing(&path, layout.journal_paths()).map_err(Error::io(&path))?;
        let displaced = layout.journal_paths().clear_temp().map_err(Error::io(layout.temp()))?;
        if !displaced.is_empty() {
            let recovery = Recovery { displaced, ..Recovery::default() };
            lock(&self.recoveries).push((id.clone(), recovery));
        }
        let (index, is_new) = self.open_index(id, layout)?;
        let mode = begin(&index.index, access)?;
        let known = index.index.metas()?;
        let indexed_seq = known.get("seq").and_then(|seq| seq.parse().ok()).unwrap_or(0);
        let mut journal = match journal {
            Some(journal) => journal,
            None => {
                Journal::create_new(&path, layout.journal_paths(), indexed_seq).map_err(Error::io(&path))?
            }
        };
        let was_recovered = journal.needs_recovery();
        if was_recovered {
            let recovery = journal.recover(indexed_seq).map_err(Error::io(&path))?;
            if !recovery.is_empty() {
                lock(&self.recoveries).push((id.clone(), recovery));
            }
        }
        if is_new || was_recovered || scan == Scan::Always || scan::is_due(&known, layout, access, now)? {
            index.index.rollback();
            scan::rescan(&index.index, layout, now)?;
            begin(&index.index, access)?;
        }
        if was_recovered {
            journal.checkpoint().map_err(Error::io(&path))?;
        }
        Ok((journal, index, mode))
    }

    /// Opens the index, and creates it if needed. Returns whether it is new. The caller holds the exclusive lock.
    fn open_index(&self, id: &WorkspaceId, layout: &Layout) -> Result<(OpenIndex, bool)> {
        let path = layout.index();
        if let Some(open) = inode_of(&path)?.and_then(|inode| self.take_index(id, inode)) {
            return Ok((open, false));
        }
        let (index, is_new) = match NodeIndex::open(&path, clock::boot_id())? {
            OpenOutcome::Kept(index) => (index, false),
            OpenOutcome::New(index) => (index, true),
        };
        let inode = inode_of(&path)?.unwrap_or(0);
        Ok((OpenIndex { index, inode }, is_new))
    }

    /// Takes an open index out of the pool. Those of a deleted or replaced file are closed.
    fn take_index(&self, id: &WorkspaceId, inode: u64) -> Option<OpenIndex> {
        let mut indexes = lock(&self.indexes);
        let pool = indexes.get_mut(id)?;
        pool.retain(|open| open.inode == inode);
        pool.pop()
    }

    /// Ends the SQL transaction of an index and returns it to the pool.
    pub(super) fn return_index(&self, id: &WorkspaceId, open: OpenIndex) {
        open.index.rollback();
        let mut indexes = lock(&self.indexes);
        let pool = indexes.entry(id.clone()).or_default();
        if pool.len() < POOL_SIZE {
            pool.push(open);
        }
    }
}

/// Opens for reading with an index in memory, for folders that cannot be written.
fn open_with_temporary_index(layout: &Layout, lock: Lock, now: Millis) -> Result<Opened> {
    let index = OpenIndex { index: NodeIndex::in_memory()?, inode: 0 };
    scan::rescan(&index.index, layout, now)?;
    Ok(Opened { lock, journal: None, index, mode: IndexMode::Temporary, seq: None })
}

/// Begins a transaction of the index.
fn begin(index: &NodeIndex, access: Access) -> Result<IndexMode> {
    match access {
        Access::Write => index.begin().map(|()| IndexMode::Write),
        Access::Read | Access::Refresh => index.begin_refresh().map(|()| IndexMode::Refresh),
    }
    .map_err(Error::from)
}

fn inode_of(path: &Path) -> Result<Option<u64>> {
    Ok(FileSig::of(path).map_err(Error::io(path))?.map(|sig| sig.inode))
}
