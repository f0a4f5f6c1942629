//! A workspace whose truth is on a server: its documents arrive as texts, with the numbers that the server
//! gave the changes.
//!
//! The journal of the workspace has these numbers, so the files and the position in the feed change in one
//! step. The file `.local/served` lists the digests of the texts that arrived: a file with another text was
//! edited by hand, and that text is kept aside before it is replaced.

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

/// A list of digests that is this many times as long as its workspace, and longer than the least, is written anew.
const MAX_LINES_PER_DOCUMENT: usize = 4;
const MIN_LINES: usize = if cfg!(test) { 40 } else { 1000 };

impl FileStore {
    /// Returns the number of the last change that the copy of a workspace contains; `None` if there is no copy.
    pub fn position(&self, id: &WorkspaceId, now: Millis) -> Result<Option<u64>> {
        match self.open_tx(id, Access::Read, now, Scan::IfNeeded) {
            Ok(tx) => Ok(tx.position()),
            Err(Error::WorkspaceNotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes the documents of the changes after `from` up to `to`. Returns `false` and writes nothing if the
    /// copy does not end with `from`.
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
        let served = Served::read(&layout);
        self.keep_edits(id, served.find_edits(&layout, &names), now)?;
        served.add(&layout, documents.iter().filter_map(|(name, text)| Some((*name, (*text)?))))?;
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
        Served::read(&draft).add(&draft, documents.iter().copied())?;
        let journal = draft.journal();
        Journal::create_for_present_files(&journal, &draft.temp(), seq).map_err(Error::io(&journal))?;
        if let Some(file) = guard.file() {
            fs::sync_file_system(file).map_err(Error::io(draft.dir()))?;
        }
        let target = self.layout(id);
        if target.exists() {
            let _writer = self.lock_workspace(id, &target, Lock::exclusive)?;
            let names = document_names(&target);
            self.keep_edits(id, Served::read(&target).find_edits(&target, &names), now)?;
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
        let edits = Served::read(&layout).find_edits(&layout, &document_names(&layout));
        edits.into_iter().map(|(name, _)| name).collect()
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
    fn keep_edits(&self, id: &WorkspaceId, edits: Vec<(String, Vec<u8>)>, now: Millis) -> Result<()> {
        let folder = self.kept_folder();
        for (name, text) in edits {
            ensure_private_dir(&folder).map_err(Error::io(&folder))?;
            let path = folder.join(format!("{id}-{name}-{now}-{}.md", &digest_of(&text)[..8]));
            fs::write_private(&path, &text).map_err(Error::io(&path))?;
        }
        Ok(())
    }
}

/// The list of the digests of texts that arrived, one line each: the name of the document and the digest.
enum Served {
    /// Nothing is known: the copy was not made from texts.
    Absent,
    /// A list that cannot be read names no text, so every file counts as edited.
    Unreadable,
    Lines(String),
}

impl Served {
    fn path(layout: &Layout) -> PathBuf {
        layout.local().join("served")
    }

    fn read(layout: &Layout) -> Served {
        match fs::read_optional(&Served::path(layout)) {
            Ok(None) => Served::Absent,
            Ok(Some(list)) => Served::Lines(String::from_utf8_lossy(&list).into_owned()),
            Err(_) => Served::Unreadable,
        }
    }

    fn lines(&self) -> HashSet<&str> {
        match self {
            Served::Lines(list) => list.lines().collect(),
            Served::Absent | Served::Unreadable => HashSet::new(),
        }
    }

    /// Returns those of the documents whose text is not in the list, with their texts.
    fn find_edits(&self, layout: &Layout, names: &[impl AsRef<str>]) -> Vec<(String, Vec<u8>)> {
        if matches!(self, Served::Absent) {
            return Vec::new();
        }
        let known = self.lines();
        let edited = |name: &str| {
            let text = read_document(layout, name)?;
            (!known.contains(line_of(name, &text).as_str())).then(|| (name.to_owned(), text))
        };
        names.iter().filter_map(|name| edited(name.as_ref())).collect()
    }

    /// Adds texts to the list, before they are written: a file that is listed with an earlier or a later text was not
    /// edited. The caller holds the lock of the workspace.
    fn add<'a>(&self, layout: &Layout, texts: impl Iterator<Item = (&'a str, &'a str)>) -> Result<()> {
        let new: String = texts.map(|(name, text)| line_of(name, text.as_bytes()) + "\n").collect();
        let path = Served::path(layout);
        let written = match self.without_former(layout) {
            None => fs::append_private(&path, new.as_bytes()),
            Some(kept) => {
                let list = kept + &new;
                fs::replace_private(&path, list.as_bytes(), &layout.temp(), Durability::Journaled)
            }
        };
        written.map_err(Error::io(path))
    }

    /// Returns the lines of the current files, if the list is much longer or cannot be read. A file that was
    /// edited has none.
    fn without_former(&self, layout: &Layout) -> Option<String> {
        let list = match self {
            Served::Absent => return None,
            Served::Unreadable => return Some(String::new()),
            Served::Lines(list) => list,
        };
        let count = list.lines().count();
        if count <= MIN_LINES {
            return None;
        }
        let names = document_names(layout);
        if count <= MAX_LINES_PER_DOCUMENT * names.len() {
            return None;
        }
        let known = self.lines();
        let lines = names.iter().filter_map(|name| Some(line_of(name, &read_document(layout, name)?)));
        Some(lines.filter(|line| known.contains(line.as_str())).map(|line| line + "\n").collect())
    }
}

/// Returns the line of a text. Half of a digest tells texts apart.
fn line_of(name: &str, text: &[u8]) -> String {
    format!("{name} {}", digest_of(text))
}

fn read_document(layout: &Layout, name: &str) -> Option<Vec<u8>> {
    let (text, _) = fs::read_regular(&document_path(layout, name)?, super::MAX_BYTES).ok()??;
    Some(text)
}

fn digest_of(text: &[u8]) -> String {
    hash::sha256_hex(text)[..32].to_owned()
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

    /// Returns the store with a workspace after a number of changes of its goal.
    fn change_goal(store: &FileStore, id: &WorkspaceId, text: &str, changes: std::ops::Range<u64>) {
        for seq in changes {
            let goal = text.replace("Sell", &format!("Sell {seq}"));
            let documents = [(WORKSPACE, Some(goal.as_str()))];
            assert!(store.apply_documents(id, (seq - 1, seq), &documents, NOW).unwrap());
        }
    }

    fn served_lines(store: &FileStore, id: &WorkspaceId) -> usize {
        std::fs::read_to_string(store.layout(id).local().join("served")).unwrap().lines().count()
    }

    #[test]
    fn served_list_stays_short_and_tells_edits_after_many_changes() {
        let temp = tempfile::tempdir().unwrap();
        let (store, id, texts) = copy(&temp);
        let root = store.layout(&id).node_md(&NodeId::root());
        let edited = format!("{}mine\n", texts[1].1);
        fs::write_private(&root, edited.as_bytes()).unwrap();
        change_goal(&store, &id, &texts[0].1, 8..8 + 3 * MIN_LINES as u64);
        assert!(served_lines(&store, &id) <= MIN_LINES + 2, "{}", served_lines(&store, &id));
        assert_eq!(store.edited_documents(&id), ["root"]);
        assert_eq!(store.kept_edits(), Vec::<PathBuf>::new(), "no text of the server is kept");
    }

    #[test]
    fn apply_documents_with_unreadable_list_keeps_text_aside_and_writes_list_anew() {
        let temp = tempfile::tempdir().unwrap();
        let (store, id, texts) = copy(&temp);
        let path = store.layout(&id).workspace_md();
        let edited = format!("{}mine\n", texts[0].1);
        fs::write_private(&path, edited.as_bytes()).unwrap();
        let list = std::fs::OpenOptions::new().append(true).open(store.layout(&id).local().join("served"));
        list.unwrap().set_len(fs::MAX_FILE + 1).unwrap();
        change_goal(&store, &id, &texts[0].1, 8..9);
        let kept = store.kept_edits();
        assert_eq!(kept.len(), 1, "{kept:?}");
        assert_eq!(std::fs::read_to_string(&kept[0]).unwrap(), edited);
        assert_eq!(served_lines(&store, &id), 1);
    }
}
