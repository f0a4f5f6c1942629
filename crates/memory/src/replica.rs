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
}

impl ReplicaMemory {
    /// Returns the replica in a folder, which need not exist. `home` contains the transcripts that are searched with it.
    pub fn new(folder: &Path, home: &Path) -> ReplicaMemory {
        ReplicaMemory { folder: folder.to_owned(), home: home.to_owned() }
    }

    /// Returns the memory for reads. Built for each call, because the folder may have been deleted since the last one.
    pub fn files(&self) -> FileMemory {
        FileMemory::new(Arc::new(ProjectPlace::new(&self.folder, None)), &self.home)
    }

    /// Returns the number of the last change that the replica contains; 0 if it must be fetched from the beginning.
    pub fn position(&self) -> i64 {
        read_position(&Folder::of(&self.folder))
    }

    /// Appends the lines of the changes after `from` up to `to`. A replica that is filled from the beginning loses what
    /// it had. Returns `false` and appends nothing if another process changed the position.
    pub fn append(&self, from: i64, to: i64, lines: &[&str], now: Millis) -> Result<bool> {
        ensure_dir(&self.folder).map_err(Error::io(&self.folder))?;
        let folder = Folder::of(&self.folder);
        folder.create(false)?;
        let lock = folder.lock()?;
        if read_position(&folder) != from {
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
        fs::write_atomic(&path, to.to_string().as_bytes(), folder.dir(), fs::Durability::Journaled)
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

fn read_position(folder: &Folder) -> i64 {
    let bytes = fs::read_limited(&position_file(folder), 64).ok().flatten().unwrap_or_default();
    str::from_utf8(&bytes).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
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
}
