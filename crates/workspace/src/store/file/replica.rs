//! A workspace whose truth is on a server: its documents arrive as texts, with the numbers that the server gave the changes.
//!
//! The journal of the workspace has these numbers, so the files and the position in the feed change in one step. The file
//! `.local/served` lists the digests of the texts that arrived: a file with another text was edited by hand, and that text
//! is kept aside before it is replaced.

use std::collections::HashSet;
use std::path::PathBuf;

use tanmi_base::fs::{self, Durability};
use tanmi_base::journal::Journal;
use tanmi_base::lock::Lock;
use tanmi_base::place::{ensure_dir, ensure_private_dir};
use tanmi_base::{Millis, hash};

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
        let layout = self.layout(id);
        let names: Vec<&str> = documents.iter().map(|(name, _)| *name).collect();
        self.keep_edits(id, &names, now)?;
        record_served(&layout, documents.iter().filter_map(|(name, text)| Some((*name, (*text)?))))?;
        for (name, text) in documents {
            tx.put_document(name, *text)?;
        }
        tx.commit_up_to(to).map(|()| true)
    }

    /// Replaces the copy of a workspace by these documents, as of the change `seq`. Texts of a former copy that did
    /// not come from the server are kept aside.
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
        record_served(&draft, documents.iter().copied())?;
        Journal::create(&draft.journal(), &draft.temp(), seq).map_err(Error::io(draft.journal()))?;
        if let Some(file) = guard.file() {
            fs::sync_file_system(file).map_err(Error::io(draft.dir()))?;
        }
        let target = self.layout(id);
        if target.exists() {
            let _writer = self.lock_workspace(id, &target, Lock::exclusive)?;
            let names = document_names(&target);
            self.keep_edits(id, &names.iter().map(String::as_str).collect::<Vec<_>>(), now)?;
            let former = project.local().join(format!("tmp-{id}"));
            std::fs::rename(target.dir(), &former).map_err(Error::io(target.dir()))?;
        }
        std::fs::rename(draft.dir(), target.dir()).map_err(Error::io(target.dir()))?;
        project.remove_drafts().map_err(Error::io(project.local()))?;
        lock(&self.indexes).remove(id);
        fs::sync_dir(project.dir());
        Ok(())
    }

    /// Returns the documents of a copy whose text did not come from the server: a node id, or `workspace`.
    pub fn edited_documents(&self, id: &WorkspaceId) -> Vec<String> {
        let layout = self.layout(id);
        let names = document_names(&layout);
        find_edits(&layout, &names.iter().map(String::as_str).collect::<Vec<_>>())
            .into_iter()
            .map(|(name, _)| name.to_owned())
            .collect()
    }

    /// Returns the files with texts of all workspaces that were kept aside before they were replaced.
    pub fn kept_edits(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.kept_folder()).into_iter().flatten().flatten();
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        files.sort();
        files
    }

    /// The folder of texts that were kept aside. It stays when the copy of a workspace is replaced.
    fn kept_folder(&self) -> PathBuf {
        self.project_layout().local().join("kept")
    }

    /// Copies the texts of edited documents aside.
    fn keep_edits(&self, id: &WorkspaceId, names: &[&str], now: Millis) -> Result<()> {
        let folder = self.kept_folder();
        for (name, text) in find_edits(&self.layout(id), names) {
            ensure_private_dir(&folder).map_err(Error::io(&folder))?;
            let path = folder.join(format!("{id}-{name}-{now}-{}.md", &digest_of(&text)[..8]));
            fs::write_private(&path, &text).map_err(Error::io(&path))?;
        }
        Ok(())
    }
}

/// The list of the digests of texts that arrived, one line each: the name of the document and the digest.
fn served(layout: &Layout) -> PathBuf {
    layout.local().join("served")
}

/// Half of a digest tells texts apart.
fn digest_of(text: &[u8]) -> String {
    hash::sha256_hex(text)[..32].to_owned()
}

/// Adds texts to the list, before they are written: a file that is listed with an earlier or a later text was not edited.
fn record_served<'a>(layout: &Layout, texts: impl Iterator<Item = (&'a str, &'a str)>) -> Result<()> {
    let lines: String =
        texts.map(|(name, text)| format!("{name} {}\n", digest_of(text.as_bytes()))).collect();
    let path = served(layout);
    fs::append_private(&path, lines.as_bytes()).map_err(Error::io(path))
}

fn document_path(layout: &Layout, name: &str) -> Option<PathBuf> {
    match name {
        WORKSPACE => Some(layout.workspace_md()),
        name => Some(layout.node_md(&NodeId::parse(name).ok()?)),
    }
}

/// Returns the names of the documents of a copy.
fn document_names(layout: &Layout) -> Vec<String> {
    let entries = std::fs::read_dir(layout.nodes()).into_iter().flatten().flatten();
    let nodes = entries.filter_map(|entry| entry.file_name().into_string().ok());
    std::iter::once(String::from(WORKSPACE)).chain(nodes).collect()
}

/// Returns those of the documents whose text is not in the list, with their texts. Without a list, nothing is known.
fn find_edits<'a>(layout: &Layout, names: &[&'a str]) -> Vec<(&'a str, Vec<u8>)> {
    let Ok(Some(list)) = fs::read_optional(&served(layout)) else { return Vec::new() };
    let list = String::from_utf8_lossy(&list);
    let known: HashSet<&str> = list.lines().collect();
    let read = |name: &'a str| {
        let (text, _) = fs::read_regular(&document_path(layout, name)?, super::MAX_BYTES).ok()??;
        let is_served = known.contains(format!("{name} {}", digest_of(&text)).as_str());
        (!is_served).then_some((name, text))
    };
    names.iter().filter_map(|name| read(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = 1_765_432_100_000;

    /// Returns a store with a copy of a workspace whose documents come from another store.
    fn copy(temp: &tempfile::TempDir) -> (FileStore, WorkspaceId, Vec<(String, String)>) {
        let (from, to) = (temp.path().join("from"), temp.path().join("to"));
        for dir in [&from, &to] {
            std::fs::create_dir(dir).unwrap();
        }
        let origin = FileStore::in_folder(&from);
        let new = crate::ops::NewWorkspace {
            name: String::from("Shop"),
            goal: String::from("Sell"),
            rules: Vec::new(),
            docs: Vec::new(),
        };
        let op =
            crate::ops::OpContext { now: NOW, operator: Operator::Human, auto_log: true, moves_focus: true };
        let id = crate::store::Workspaces::create(&origin, new, &op).unwrap().id;
        let documents = origin.documents(&id).unwrap();
        let mut texts = vec![(String::from(WORKSPACE), documents.workspace)];
        texts.extend(documents.nodes.into_iter().map(|(id, text)| (id.to_string(), text)));
        let store = FileStore::in_folder(&to);
        replace(&store, &id, &texts);
        (store, id, texts)
    }

    fn replace(store: &FileStore, id: &WorkspaceId, texts: &[(String, String)]) {
        let texts: Vec<(&str, &str)> =
            texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        store.replace_documents(id, 7, &texts, NOW).unwrap();
    }

    #[test]
    fn replace_documents_keeps_edited_text_aside_and_no_other() {
        let temp = tempfile::tempdir().unwrap();
        let (store, id, texts) = copy(&temp);
        replace(&store, &id, &texts);
        assert_eq!((store.edited_documents(&id), store.kept_edits()), (Vec::new(), Vec::new()));
        let path = store.layout(&id).workspace_md();
        let edited = format!("{}mine\n", texts[0].1);
        fs::write_private(&path, edited.as_bytes()).unwrap();
        assert_eq!(store.edited_documents(&id), ["workspace"]);
        replace(&store, &id, &texts);
        replace(&store, &id, &texts);
        let kept = store.kept_edits();
        assert_eq!(kept.len(), 1, "{kept:?}");
        assert_eq!(std::fs::read_to_string(&kept[0]).unwrap(), edited);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), texts[0].1);
        assert_eq!(store.position(&id, NOW).unwrap(), Some(7));
        let trash = temp.path().join("to/.tanmi-workspace/.trash");
        assert!(!trash.exists(), "the former copy is not kept");
    }

    #[test]
    fn apply_documents_keeps_edited_text_aside() {
        let temp = tempfile::tempdir().unwrap();
        let (store, id, texts) = copy(&temp);
        let path = store.layout(&id).workspace_md();
        let edited = format!("{}mine\n", texts[0].1);
        fs::write_private(&path, edited.as_bytes()).unwrap();
        let later = texts[0].1.replace("Sell", "Sell more");
        assert!(store.apply_documents(&id, (7, 8), &[(WORKSPACE, Some(&later))], NOW).unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), later);
        assert_eq!(std::fs::read_to_string(&store.kept_edits()[0]).unwrap(), edited);
        assert!(store.apply_documents(&id, (8, 9), &[(WORKSPACE, Some(&texts[0].1))], NOW).unwrap());
        assert_eq!(store.kept_edits().len(), 1, "a text of the server is not kept");
    }
}
