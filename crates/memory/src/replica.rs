//! A copy of a memory whose truth is elsewhere, in the layout of file memory, so that the same engine searches it.
//!
//! The copy can be deleted at any time: it is then fetched again from the beginning.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tanmi_base::place::{ProjectPlace, ensure_dir};
use tanmi_base::{Millis, fs};

use crate::search::Hit;
use crate::{AppendSync, Error, Fact, FileMemory, Folder, Result};

/// A copy of the memory of one project, with the number of the last change that it contains.
#[derive(Clone, Debug)]
pub struct ReplicaMemory {
    folder: PathBuf,
    home: PathBuf,
    /// The name of the history that the numbers of changes belong to; empty if it is not known or kept elsewhere.
    history: String,
}

impl ReplicaMemory {
    /// Returns the replica in a folder, which need not exist. `home` contains the transcripts that are
    /// searched with it.
    pub fn new(folder: &Path, home: &Path) -> ReplicaMemory {
        ReplicaMemory { folder: folder.to_owned(), home: home.to_owned(), history: String::new() }
    }

    /// Returns the same replica for changes of this history. What it has of another one is not used.
    pub fn in_history(&self, history: &str) -> ReplicaMemory {
        ReplicaMemory { history: history.to_owned(), ..self.clone() }
    }

    /// Returns the memory for reads. Built for each call, because the folder may have been deleted since the last one.
    pub fn files(&self) -> FileMemory {
        FileMemory::new(Arc::new(ProjectPlace::new(&self.folder, None)), &self.home)
    }

    /// Returns the number of the last change that the replica contains; 0 if it must be fetched from the beginning.
    pub fn position(&self) -> i64 {
        self.known_position().unwrap_or(0)
    }

    /// Same as [`position`](Self::position); `None` if the replica was never filled, or from another history.
    pub fn known_position(&self) -> Option<i64> {
        let bytes = fs::read_limited(&position_file(&Folder::of(&self.folder)), 256).ok().flatten()?;
        let text = str::from_utf8(&bytes).ok()?.trim();
        let (position, history) = text.split_once(' ').unwrap_or((text, ""));
        (self.history.is_empty() || self.history == history).then(|| position.parse().ok()).flatten()
    }

    /// Appends the lines of the changes after `from` up to `to`. A replica that is filled from the beginning loses what
    /// it had. Returns `false` and appends nothing if another process changed the position.
    pub fn append(&self, from: i64, to: i64, lines: &[&str], now: Millis) -> Result<bool> {
        ensure_dir(&self.folder).map_err(Error::io(&self.folder))?;
        let folder = Folder::of(&self.folder);
        folder.create(false)?;
        let lock = folder.lock()?;
        if self.position() != from {
            return Ok(false);
        }
        if from == 0 {
            remove_lines(&folder)?;
        }
        if !lines.is_empty() {
            // One file after the other, so the order of the lines is that of the changes.
            folder.append(&lock, &folder.latest_daily(now), &lines.join("\n"), AppendSync::Yes)?;
        }
        let path = position_file(&folder);
        let text = format!("{to} {}", self.history);
        fs::write_atomic(&path, text.trim_end().as_bytes(), folder.dir(), fs::Durability::Journaled)
            .map_err(Error::io(&path))?;
        Ok(true)
    }

    /// Sets the position to 0, so that the next lines replace everything.
    pub fn reset(&self) -> Result<()> {
        let folder = Folder::of(&self.folder);
        if !folder.exists() {
            return Ok(());
        }
        let _lock = folder.lock()?;
        remove(&position_file(&folder))
    }

    /// Returns facts that are similar to one.
    pub fn similar(&self, fact: &Fact) -> Result<Vec<Hit>> {
        self.files().similar(fact)
    }
}

fn position_file(folder: &Folder) -> PathBuf {
    folder.dir().join("position")
}

fn remove_lines(folder: &Folder) -> Result<()> {
    folder.files()?.iter().try_for_each(|(_, path)| remove(path))
}

fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if !fs::is_absent(&error) => Err(Error::io(path)(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryFilter, MemoryStore, MemoryType};

    const NOW: Millis = 1_765_432_100_000;

    fn line(id: &str) -> String {
        let fact = Fact {
            id: id.into(),
            memory_type: MemoryType::W,
            content: format!("content of {id}"),
            entities: Vec::new(),
            confidence: None,
            at: NOW,
            session: String::new(),
            by: "cli".into(),
            supersedes: Vec::new(),
            anchors: Default::default(),
        };
        fact.to_line()
    }

    fn ids(replica: &ReplicaMemory) -> Vec<String> {
        let page = replica.files().list(&MemoryFilter::default(), 9, 0).unwrap();
        let mut ids: Vec<String> = page.rows.into_iter().map(|row| row.id).collect();
        ids.sort();
        ids
    }

    #[test]
    fn replica_follows_changes_and_is_filled_again_from_the_beginning() {
        let dir = tempfile::tempdir().unwrap();
        let replica = ReplicaMemory::new(&dir.path().join("app"), &dir.path().join("home"));
        assert_eq!((replica.position(), ids(&replica)), (0, vec![]));
        assert!(replica.append(0, 2, &[&line("f1"), &line("f2")], NOW).unwrap());
        assert!(replica.append(2, 3, &[&line("f3")], NOW).unwrap());
        assert!(!replica.append(2, 3, &[&line("f9")], NOW).unwrap(), "another process was faster");
        assert_eq!((replica.position(), ids(&replica)), (3, vec!["f1".into(), "f2".into(), "f3".into()]));
        replica.reset().unwrap();
        assert!(replica.append(0, 7, &[&line("f4")], NOW).unwrap());
        assert_eq!((replica.position(), ids(&replica)), (7, vec![String::from("f4")]));
        fs::remove_tree(&dir.path().join("app")).unwrap();
        assert_eq!((replica.position(), ids(&replica)), (0, vec![]), "a deleted replica");
        assert!(replica.append(0, 7, &[&line("f4")], NOW).unwrap());
        assert_eq!(ids(&replica), ["f4"]);
    }

    #[test]
    fn replica_of_another_history_is_filled_again() {
        let dir = tempfile::tempdir().unwrap();
        let replica = ReplicaMemory::new(&dir.path().join("app"), &dir.path().join("home"));
        assert!(replica.append(0, 2, &[&line("f1")], NOW).unwrap());
        let (first, second) = (replica.in_history("7-5-1"), replica.in_history("7-5-2"));
        assert_eq!(first.known_position(), None, "the history was not noted");
        assert!(first.append(0, 2, &[&line("f2")], NOW).unwrap());
        assert_eq!((first.known_position(), ids(&first)), (Some(2), vec![String::from("f2")]));
        assert_eq!((replica.position(), second.known_position()), (2, None));
        assert!(!second.append(2, 3, &[&line("f9")], NOW).unwrap());
        assert!(second.append(0, 0, &[], NOW).unwrap());
        assert_eq!((second.known_position(), ids(&second)), (Some(0), vec![]), "an empty memory");
    }
}
