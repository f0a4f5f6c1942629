//! The commit of a transaction: its changes, made durable by the journal, and the index brought up to them.

use tanmi_base::journal::{Change, CommitError, CommitResult, Journal, Recovery};

use super::FileTx;
use crate::codec;
use crate::error::{Error, Result};
use crate::model::NodeId;
use crate::store::WORKSPACE;
use crate::store::file::{lock, scan};

impl FileTx<'_> {
    /// Makes changes durable. Returns the number of the change.
    pub(super) fn write(&mut self, changes: Vec<Change>, owners: &[Option<NodeId>]) -> Result<u64> {
        let added_folders = changes.iter().map(folders_added).sum();
        let read_only = self.read_only();
        let Some(journal) = &mut self.journal else { return Err(read_only) };
        let applied = journal.commit(changes, self.now).map_err(|error| match error {
            CommitError::Conflict { path } => Error::Conflict { place: path },
            CommitError::Io { path, source } => Error::io(path)(source),
        })?;
        let seq = journal.seq();
        if let Some(restored) = self.restored.borrow().as_ref() {
            restored.move_other_files(&self.layout, owners.iter().flatten());
        }
        // The change is durable even if the index could not be updated. The next transaction scans then.
        if applied.is_unfinished || self.finish(&applied, owners, added_folders).is_err() {
            self.index = None;
        }
        if !applied.kept.is_empty() {
            let recovery = Recovery { kept: applied.kept, ..Recovery::default() };
            lock(&self.store.recoveries).push((self.id.clone(), recovery));
        }
        Ok(seq)
    }

    /// Returns the changes to write, and for each change the node whose file it writes.
    pub(super) fn changes(&self) -> Result<(Vec<Change>, Vec<Option<NodeId>>)> {
        let mut changes = Vec::new();
        let mut owners = Vec::new();
        // All nodes that one change removes share a folder in the trash.
        let seq = self.journal.as_ref().map_or(0, Journal::seq) + 1;
        if let Some(workspace) = &self.put_workspace {
            let was = self.loaded_workspace()?;
            let text = match self.put_texts.get(WORKSPACE) {
                Some(text) => text.clone(),
                None => codec::write_workspace(Some((&was.doc, &was.workspace)), workspace),
            };
            changes.push(Change::Write {
                path: String::from("Workspace.md"),
                before: Some(was.before.clone()),
                text,
            });
            owners.push(None);
        }
        for (id, node) in &self.put_nodes {
            let Some(node) = node else {
                let to = self.layout.trash_in_journal(self.now, seq, id);
                changes.push(Change::Move { from: format!("nodes/{id}"), to });
                owners.push(None);
                continue;
            };
            let was = self.loaded_node(id)?;
            let before = was.as_ref().map(|was| was.before.clone());
            // A restored node keeps what a person added to its file.
            let was = was.or_else(|| self.restored_node(id));
            // Read again without the times from the index, which the file may not contain.
            let read =
                was.as_ref().map(|was| codec::read_node(&was.doc, id).unwrap_or_else(|_| was.node.clone()));
            let text = match (&was, &read) {
                _ if self.put_texts.contains_key(id.as_str()) => self.put_texts[id.as_str()].clone(),
                (Some(was), Some(read)) => codec::write_node(Some((&was.doc, read)), node),
                _ => codec::write_node(None, node),
            };
            changes.push(Change::Write { path: format!("nodes/{id}/Node.md"), before, text });
            owners.push(Some(id.clone()));
        }
        Ok((changes, owners))
    }

    /// Updates the index to the written files and marks the change as applied. If this fails, the files are still
    /// correct: without the mark in the journal, the next transaction scans.
    fn finish(
        &mut self,
        applied: &CommitResult,
        owners: &[Option<NodeId>],
        added_folders: i64,
    ) -> Result<()> {
        let (Some(open), Some(journal)) = (&self.index, &mut self.journal) else { return Ok(()) };
        for (sig, owner) in applied.sigs.iter().zip(owners) {
            if let (Some(sig), Some(id)) = (sig, owner) {
                open.index.set_sig(id.as_str(), *sig)?;
            }
        }
        let known = open.index.meta("nodes")?.unwrap_or_default();
        let folders = scan::folder_fingerprint(&self.layout)?;
        if !applied.kept.is_empty() {
            // The index has our version of a file that kept a manual edit. Clearing the fingerprint makes the next
            // transaction scan.
            open.index.set_meta("nodes", "")?;
        } else if folders != known && is_own_change(&known, &folders, added_folders) {
            open.index.set_meta("nodes", &folders)?;
        }
        open.index.set_meta("seq", &journal.seq().to_string())?;
        open.index.set_meta("activeAt", &self.now.to_string())?;
        open.index.commit()?;
        journal.mark_applied().map_err(Error::io(self.layout.journal()))
    }
}

/// Returns whether the link count of the folder changed by the number of folders we added, so that no other process
/// added one at the same time. On file systems without link counts, only the time stamp is available.
fn is_own_change(known: &str, now: &str, added_folders: i64) -> bool {
    let count =
        |fingerprint: &str| fingerprint.split_once(' ').and_then(|(_, n)| n.parse::<i64>().ok()).unwrap_or(0);
    count(known) < 2 || count(now) - count(known) == added_folders
}

fn folders_added(change: &Change) -> i64 {
    match change {
        Change::Write { before, .. } => i64::from(before.is_none()),
        Change::Move { .. } => -1,
    }
}
