//! A workspace whose truth is on a server: its documents arrive as texts, with the numbers that the server gave the changes.
//!
//! The journal of the workspace has these numbers, so the files and the position in the feed change in one step.

use tanmi_base::Millis;
use tanmi_base::fs::{self, Durability};
use tanmi_base::journal::Journal;
use tanmi_base::place::{ensure_dir, ensure_private_dir};

use super::layout::Layout;
use super::{FileStore, Scan, lock};
use crate::codec::{self, Document};
use crate::error::{Error, Result};
use crate::model::*;
use crate::store::{Access, WORKSPACE};

impl FileStore {
    /// Returns the number of the last change that the copy of a workspace contains; `None` if there is no copy.
    pub fn position(&self, id: &WorkspaceId, now: Millis) -> Result<Option<u64>> {
        match self.open_tx(id, Access::Read, now, Scan::IfNeeded) {
            Ok(tx) => Ok(tx.position()),
            Err(Error::WorkspaceNotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes the documents of the changes after `from` up to `to`. Returns `false` and writes nothing if the copy does not
    /// end with `from`.
    pub fn apply_documents(
        &self,
        id: &WorkspaceId,
        (from, to): (u64, u64),
        documents: &[(&str, Option<&str>)],
        now: Millis,
    ) -> Result<bool> {
        let mut tx = self.open_tx(id, Access::Write, now, Scan::IfNeeded)?;
        if tx.position() != Some(from) {
            return Ok(false);
        }
        for (name, text) in documents {
            tx.put_document(name, *text)?;
        }
        tx.commit_up_to(to).map(|()| true)
    }

    /// Replaces the copy of a workspace by these documents, as of the change `seq`. A former copy moves to the trash.
    pub fn replace_documents(
        &self,
        id: &WorkspaceId,
        seq: u64,
        documents: &[(&str, &str)],
        now: Millis,
    ) -> Result<()> {
        let guard = self.lock_project()?;
        let project = self.project_layout();
        project.remove_drafts().map_err(Error::io(project.local()))?;
        let draft = Layout::new(project.draft(id));
        for dir in [draft.dir().to_owned(), draft.nodes()] {
            ensure_dir(&dir).map_err(Error::io(dir))?;
        }
        for dir in [draft.local(), draft.temp()] {
            ensure_private_dir(&dir).map_err(Error::io(dir))?;
        }
        for (name, text) in documents {
            let path = match *name {
                WORKSPACE => draft.workspace_md(),
                name => draft.node_md(&NodeId::parse(name)?),
            };
            let damaged = |error: codec::ParseError| Error::corrupt(&path, error.line, error.reason);
            Document::parse(text.as_bytes()).map_err(damaged)?;
            if let Some(dir) = path.parent().filter(|_| *name != WORKSPACE) {
                ensure_dir(dir).map_err(Error::io(dir))?;
            }
            fs::write_new(&path, text.as_bytes(), Durability::Journaled).map_err(Error::io(&path))?;
        }
        Journal::create(&draft.journal(), &draft.temp(), seq).map_err(Error::io(draft.journal()))?;
        if let Some(file) = guard.file() {
            fs::sync_file_system(file).map_err(Error::io(draft.dir()))?;
        }
        let target = self.layout(id);
        if target.exists() {
            self.move_to_trash(id, now)?;
        }
        std::fs::rename(draft.dir(), target.dir()).map_err(Error::io(target.dir()))?;
        lock(&self.indexes).remove(id);
        fs::sync_dir(project.dir());
        Ok(())
    }
}
