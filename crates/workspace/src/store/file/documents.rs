//! Whole workspaces as texts, for copies: to a team, from a team, and for new workspaces.

use std::path::{Path, PathBuf};

use tanmi_base::fs::{self, Durability};
use tanmi_base::journal::Journal;
use tanmi_base::lock::Lock;
use tanmi_base::place::{ensure_dir, ensure_private_dir};
use tanmi_base::{Bilingual, Millis, clock};

use super::layout::Layout;
use super::open::Scan;
use super::{FileStore, scan};
use crate::error::{Error, Result, UnavailableCause};
use crate::model::{NodeId, WorkspaceId};
use crate::store::Access;

/// How often a workspace is locked again because a writer was killed just before.
const HOLD_ATTEMPTS: usize = 3;

/// The documents of a workspace, byte for byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceDocuments {
    pub id: WorkspaceId,
    pub workspace: String,
    /// By id.
    pub nodes: Vec<(NodeId, String)>,
}

/// A workspace to which no program of ours writes as long as this exists. Others can read it.
#[derive(Debug)]
pub struct HeldWorkspace {
    pub id: WorkspaceId,
    lock: Lock,
}

impl FileStore {
    /// Returns the documents of a workspace as they are. What an interrupted change left behind is finished first.
    pub fn documents(&self, id: &WorkspaceId) -> Result<WorkspaceDocuments> {
        // Keeps writers out while the files are read.
        let _tx = self.open_tx(id, Access::Read, clock::now(), Scan::IfNeeded)?;
        self.read_documents(id)
    }

    /// Keeps writers out of a workspace. What an interrupted change left behind is finished first.
    pub fn hold(&self, id: &WorkspaceId) -> Result<HeldWorkspace> {
        let layout = self.layout(id);
        for _ in 0..HOLD_ATTEMPTS {
            drop(self.open_tx(id, Access::Read, clock::now(), Scan::IfNeeded)?);
            let lock = self.lock_workspace(id, &layout, Lock::shared)?;
            // A writer may have been killed since the transaction finished what an earlier one left behind.
            let seq = Journal::read_seq_if_clean(&layout.journal()).map_err(Error::io(layout.journal()))?;
            if seq.is_some() {
                return Ok(HeldWorkspace { id: id.clone(), lock });
            }
        }
        Err(Error::unavailable(layout.dir(), UnavailableCause::Busy))
    }

    pub fn held_documents(&self, held: &HeldWorkspace) -> Result<WorkspaceDocuments> {
        self.read_documents(&held.id)
    }

    /// Moves a workspace to the trash if its documents are as they should be: a person can have edited them. Returns
    /// whether it was moved.
    pub fn delete_held(
        &self,
        held: HeldWorkspace,
        now: Millis,
        is_expected: impl FnOnce(WorkspaceDocuments) -> bool,
    ) -> Result<bool> {
        let _guard = self.lock_project()?;
        match is_expected(self.read_documents(&held.id)?) {
            true => self.rename_to_trash(&held.id, held.lock, now).map(|()| true),
            false => Ok(false),
        }
    }

    /// Reads the files of a workspace. The caller holds its lock.
    fn read_documents(&self, id: &WorkspaceId) -> Result<WorkspaceDocuments> {
        let layout = self.layout(id);
        let workspace = read_text(&layout.workspace_md())?.ok_or_else(|| FileStore::not_found(id))?;
        let mut ids = scan::node_ids(&layout)?;
        ids.sort();
        let mut nodes = Vec::with_capacity(ids.len());
        for node in ids {
            let dir = layout.node_dir(&node);
            fs::check_folder(&dir).map_err(Error::io(&dir))?;
            // A folder without its file is not a node.
            if let Some(text) = read_text(&layout.node_md(&node))? {
                nodes.push((node, text));
            }
        }
        Ok(WorkspaceDocuments { id: id.clone(), workspace, nodes })
    }

    /// Adds a workspace with all its documents. It is written and synced elsewhere and then renamed, so that
    /// it appears as a whole.
    pub fn insert_documents(&self, documents: &WorkspaceDocuments) -> Result<()> {
        let _guard = self.lock_project()?;
        let project = self.project_layout();
        project.remove_drafts().map_err(Error::io(project.local()))?;
        let draft = Layout::new(project.draft(&documents.id));
        for dir in [draft.dir().to_owned(), draft.nodes()] {
            ensure_dir(&dir).map_err(Error::io(dir))?;
        }
        for dir in [draft.local(), draft.temp()] {
            ensure_private_dir(&dir).map_err(Error::io(dir))?;
        }
        // On Linux one sync of the file system replaces the sync of each of many files.
        let is_synced_at_once = cfg!(target_os = "linux") && documents.nodes.len() > 1;
        let durability = if is_synced_at_once { Durability::Journaled } else { Durability::Synced };
        let write = |path: PathBuf, text: &str| {
            fs::write_new(&path, text.as_bytes(), durability).map(|_| ()).map_err(Error::io(path))
        };
        write(draft.workspace_md(), &documents.workspace)?;
        for (id, text) in &documents.nodes {
            let dir = draft.node_dir(id);
            ensure_dir(&dir).map_err(Error::io(&dir))?;
            write(draft.node_md(id), text)?;
            if !is_synced_at_once {
                fs::sync_dir(&dir);
            }
        }
        Journal::create(&draft.journal(), &draft.temp(), 0).map_err(Error::io(draft.journal()))?;
        for dir in [draft.nodes(), draft.dir().to_owned()] {
            fs::sync_dir(&dir);
        }
        if is_synced_at_once {
            let dir = std::fs::File::open(draft.dir()).map_err(Error::io(draft.dir()))?;
            fs::sync_file_system(&dir).map_err(Error::io(draft.dir()))?;
        }
        let target = self.layout(&documents.id);
        std::fs::rename(draft.dir(), target.dir()).map_err(Error::io(target.dir()))?;
        fs::sync_dir(project.dir());
        Ok(())
    }
}

/// Returns the text of a file. `None` if there is none.
fn read_text(path: &Path) -> Result<Option<String>> {
    let Some((bytes, _)) = scan::read_with_sig(path)? else { return Ok(None) };
    let text = String::from_utf8(bytes).map_err(|error| {
        let line = 1 + error.as_bytes()[..error.utf8_error().valid_up_to()]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count();
        let reason = Bilingual::new("不是 UTF-8", "not UTF-8");
        Error::Corrupt { place: path.display().to_string(), line, reason }
    })?;
    Ok(Some(text))
}
