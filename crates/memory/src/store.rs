//! The interface to the memory of a project, and the data of its calls.
//!
//! [`crate::FileMemory`] keeps memory in files of this machine. [`crate::VecMemory`] keeps it in RAM, for
//! tests. The memory of a team is in crate `pg`.

use std::time::Instant;

use serde::{Deserialize, Serialize};
use tanmi_base::Millis;
use tanmi_index::{MemoryFilter, MemoryRow};

use crate::recent::{StartMemory, StartQuery};
use crate::search::Hit;
use crate::sync::SyncResult;
use crate::vectors::Model;
use crate::{Fact, Folder, Result, Summary};

/// The memory of one project.
pub trait MemoryStore: Send + Sync {
    /// Returns the folder of the memory. `None` if the memory is not kept in a folder of this machine. Trust and the
    /// repair of an index use it.
    fn local_folder(&self) -> Option<&Folder>;

    /// Returns whether the memory was created. A memory that does not exist has no facts and no summaries.
    fn exists(&self) -> bool;

    /// Creates the memory if it does not exist. Returns whether this call created it: its content is then the user's
    /// own. Call it before the first save or import. `is_shared` decides whether the memory can be committed to Git.
    fn create(&self, is_shared: bool) -> Result<bool>;

    /// Saves a fact. If a current fact has the same content, no fact is added, and that one supersedes the facts in
    /// `supersedes` instead. Fails if one of these is unknown or not current.
    fn save_fact(&self, fact: &Fact) -> Result<SavedFact>;

    fn save_summary(&self, summary: &Summary) -> Result<Delivery>;

    /// Returns the memories that match, the best first.
    fn search(&self, query: &SearchQuery<'_>) -> Result<Vec<Hit>>;

    /// Returns memories, the newest first.
    fn list(&self, filter: &MemoryFilter, limit: usize, skip: usize) -> Result<MemoryPage>;

    /// Returns the memory with this id, also a hidden one. Fails if there is none.
    fn find(&self, id: &str) -> Result<MemoryRow>;

    /// Marks memories and returns them. If one is unknown, none is marked. `by` names the writer, see [`Fact::by`].
    fn mark(&self, mark: Mark, ids: &[String], at: Millis, by: &str) -> Result<Vec<MemoryRow>>;

    /// Imports JSON lines and masks the secrets in them. Ids are kept. A record that exists already stays as it is,
    /// unless a newly imported record supersedes it. Other marks apply only to records of the same import.
    fn import(&self, lines: &str, now: Millis, progress: &mut dyn FnMut(u64, u64)) -> Result<ImportResult>;

    /// Returns every record as a line that can be imported, the oldest first. `all` includes hidden records, each
    /// followed by the mark that hides it.
    fn export(&self, all: bool, now: Millis) -> Result<Vec<String>>;

    /// Makes everything that was saved searchable. Other calls do this too, as far as they need it. `progress` receives
    /// the number of bytes done and of all bytes, as in [`MemoryStore::import`].
    fn sync(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<SyncResult>;

    fn stats(&self) -> Result<MemoryStats>;

    /// Returns the memory for a session start. Parts that cannot be read are missing.
    fn start_memory(&self, query: &StartQuery<'_>) -> StartMemory;

    /// Records the start or end of a session: a line of [`crate::record::session_line`]. The memory must exist.
    fn record_session(&self, line: &str, at: Millis) -> Result<()>;

    /// Does the work of a session end: makes new records searchable, then removes session lines of days before
    /// `oldest_session_line` if one is given. Stops at the deadline; a later call does the rest.
    fn maintain(&self, deadline: Instant, oldest_session_line: Option<Millis>) -> Result<()>;

    /// Returns a number that changes when a memory changes.
    fn revision(&self) -> u64;
}

/// Where a saved memory is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    /// In the store.
    #[default]
    Stored,
    /// On this machine, until the server of the team can be reached.
    Queued,
}

/// The result of saving a fact.
#[derive(Clone, Debug)]
pub struct SavedFact {
    /// The id of the new fact, or of the existing one with the same content.
    pub id: String,
    pub is_duplicate: bool,
    /// Similar facts; none for a duplicate.
    pub similar: Vec<Hit>,
    pub delivery: Delivery,
}

#[derive(Clone, Copy)]
pub struct SearchQuery<'a> {
    pub text: &'a str,
    pub filter: &'a MemoryFilter,
    pub limit: usize,
    /// Resolves words such as yesterday.
    pub now: Millis,
    /// Adds search by vector similarity.
    pub model: Option<&'a Model>,
}

/// One page of a list.
#[derive(Clone, Debug)]
pub struct MemoryPage {
    pub rows: Vec<MemoryRow>,
    /// The number of all memories that pass the filter.
    pub total: u64,
}

/// A change of a memory that keeps its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mark {
    /// Hides a memory. Does nothing if a newer version is in force.
    Forget,
    /// Shows a memory again, instead of the version that superseded it and of a fact with the same content.
    Restore,
    /// Hides a fact that is in the memory of the user by now, with a pointer to it.
    Promote,
}

impl Mark {
    pub fn as_str(self) -> &'static str {
        match self {
            Mark::Forget => "forget",
            Mark::Restore => "restore",
            Mark::Promote => "replace",
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImportResult {
    pub added: usize,
    /// The number of records whose ids existed already.
    pub known: usize,
    pub bad_lines: usize,
    /// The 1-based number of the first bad line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_bad_line: Option<usize>,
    pub masked: usize,
}

impl ImportResult {
    /// Adds the result of a part of an import that begins after `skipped` lines.
    pub fn add(&mut self, part: ImportResult, skipped: usize) {
        self.added += part.added;
        self.known += part.known;
        self.masked += part.masked;
        self.bad_lines += part.bad_lines;
        let bad_line = part.first_bad_line.map(|line| line + skipped);
        self.first_bad_line = self.first_bad_line.into_iter().chain(bad_line).min();
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MemoryStats {
    /// Where the memory is kept, as shown to people: a folder, or the address of a server.
    #[serde(rename = "folder")]
    pub place: String,
    pub facts: u64,
    pub summaries: u64,
    pub turns: u64,
    /// The number of forgotten and superseded memories.
    pub hidden: u64,
    /// The number of files; 0 if the memory is not kept in files.
    pub files: usize,
    pub bad_lines: u64,
    /// The size of the index on the disk.
    pub index_bytes: u64,
}
