//! Use cases for memory: save, search, list, edit, forget, restore, import and export.
//!
//! [`MemoryService`] does the work on a [`MemoryStore`]. The functions of [`App`] select the store and the session.

use serde::Serialize;
use tanmi_base::text;
use tanmi_memory::record;
use tanmi_memory::search::Hit;
use tanmi_memory::sync::SyncResult;
use tanmi_memory::{FileMemory, Mark, MemoryRow, MemoryStore, dates};

use crate::App;
use crate::error::Result;

mod check;
mod model;
mod service;

pub use service::MemoryService;
pub use tanmi_memory::ImportResult;

#[derive(Clone, Debug, Default)]
pub struct NewFact {
    pub content: String,
    pub memory_type: Option<String>,
    pub entities: Vec<String>,
    pub confidence: Option<f64>,
    pub session: Option<String>,
    pub supersedes: Vec<String>,
}

#[derive(Clone, Debug, Default)]
pub struct NewSummary {
    pub topic: String,
    pub summary: String,
    pub decisions: Vec<String>,
    pub todos: Vec<String>,
    pub session: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SaveResult {
    pub id: String,
    /// Whether a fact with the same content existed. No new fact was stored; the facts in `supersedes` are superseded
    /// by the existing one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub duplicate: bool,
    /// Kinds of secrets that were masked before the text was written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub masked: Vec<&'static str>,
    /// Similar facts. If one of them is outdated, the caller can save again with `supersedes`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub similar: Vec<Memory>,
}

/// A memory as all interfaces show it.
#[derive(Clone, Debug, Serialize)]
pub struct Memory {
    pub id: String,
    pub content: String,
    /// W, B or O for a fact, S for a summary, T for a turn.
    #[serde(rename = "type")]
    pub letter: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// The file that contains it.
    pub source: String,
    pub timestamp: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub session: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub speaker: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub entities: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// For a turn: the beginning of the turn before it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub before: String,
    /// For a turn: the beginning of the turn after it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub after: String,
    /// Whether it is forgotten or superseded.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
    #[serde(rename = "replacedBy", skip_serializing_if = "String::is_empty")]
    pub replaced_by: String,
}

impl Memory {
    fn of(row: &MemoryRow, score: Option<f32>) -> Memory {
        let stamp = row.at.map(dates::iso);
        Memory {
            id: row.id.clone(),
            content: row.content.clone(),
            letter: row.letter.clone(),
            score: score.map(|score| f64::from((score * 10_000.0).round()) / 10_000.0),
            source: row.file.clone(),
            timestamp: stamp.or_else(|| Some(row.stamp.clone()).filter(|stamp| !stamp.is_empty())),
            session: row.session.clone(),
            speaker: row.speaker.clone(),
            entities: record::entities(row),
            confidence: row.confidence,
            before: String::new(),
            after: String::new(),
            hidden: row.hidden,
            replaced_by: row.replaced_by.clone(),
        }
    }

    fn of_hit(hit: &Hit) -> Memory {
        let neighbour = |content: &str| text::fit(&text::one_line(content), NEIGHBOUR_COLUMNS);
        Memory {
            before: neighbour(&hit.before),
            after: neighbour(&hit.after),
            ..Memory::of(&hit.row, Some(hit.score))
        }
    }
}

/// The width of the text of a neighbouring turn.
const NEIGHBOUR_COLUMNS: usize = 200;

#[derive(Clone, Debug, Serialize)]
pub struct MemoryResults {
    pub results: Vec<Memory>,
    /// The number of all matching memories. Absent for a search, which ranks and does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
}

#[derive(Clone, Debug, Default)]
pub struct MemoryQuery {
    pub memory_type: Option<String>,
    pub session: Option<String>,
    pub since: Option<String>,
    pub until: Option<String>,
    /// Whether hidden memories are included.
    pub all: bool,
    pub limit: usize,
    pub skip: usize,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MemoryStats {
    /// Where the memory is kept.
    pub folder: String,
    pub facts: u64,
    pub summaries: u64,
    pub turns: u64,
    pub hidden: u64,
    pub files: usize,
    pub bad_lines: u64,
    pub index_bytes: u64,
}

impl App {
    /// Returns the store of the project's memory.
    pub(crate) fn memory_store(&self) -> FileMemory {
        FileMemory::new(self.project(), self.home(), self.config().share_memory)
    }

    fn memory<'a>(&'a self, store: &'a dyn MemoryStore) -> MemoryService<'a> {
        let config = self.config();
        MemoryService {
            store,
            home: self.home(),
            is_enabled: config.memory,
            max_bytes: config.memory_max_bytes,
            now: self.now(),
            writer: self.writer(),
        }
    }

    /// Returns the interface of the caller as records name it.
    fn writer(&self) -> &'static str {
        match (self.env.source, self.env.operator) {
            (tanmi_event::Source::Mcp, _) => "mcp",
            _ if self.env.remote => "page",
            (_, tanmi_workspace::model::Operator::Ai) => "agent",
            _ => "cli",
        }
    }

    pub fn memory_save(&self, mut new: NewFact) -> Result<SaveResult> {
        new.session = self.explicit_or_env_session(new.session.as_deref());
        self.memory(&self.memory_store()).save(new)
    }

    pub fn memory_save_summary(&self, mut new: NewSummary) -> Result<SaveResult> {
        new.session = self.explicit_or_env_session(new.session.as_deref());
        self.memory(&self.memory_store()).save_summary(new)
    }

    pub fn memory_search(&self, query: &str, wanted: &MemoryQuery) -> Result<MemoryResults> {
        self.memory(&self.memory_store()).search(query, wanted)
    }

    pub fn memory_list(&self, wanted: &MemoryQuery) -> Result<MemoryResults> {
        self.memory(&self.memory_store()).list(wanted)
    }

    pub fn memory_show(&self, id: &str) -> Result<Memory> {
        self.memory(&self.memory_store()).show(id)
    }

    /// Saves a new fact that supersedes an old one.
    pub fn memory_edit(&self, id: &str, content: String) -> Result<SaveResult> {
        self.memory(&self.memory_store()).edit(id, content, self.explicit_or_env_session(None))
    }

    pub fn memory_forget(&self, ids: &[String]) -> Result<Vec<Memory>> {
        self.memory(&self.memory_store()).mark(Mark::Forget, ids)
    }

    pub fn memory_restore(&self, ids: &[String]) -> Result<Vec<Memory>> {
        self.memory(&self.memory_store()).mark(Mark::Restore, ids)
    }

    pub fn memory_import(&self, lines: &str, mut progress: impl FnMut(u64, u64)) -> Result<ImportResult> {
        self.memory(&self.memory_store()).import(lines, &mut progress)
    }

    pub fn memory_export(&self, all: bool) -> Result<Vec<String>> {
        self.memory(&self.memory_store()).export(all)
    }

    pub fn memory_sync(&self, mut progress: impl FnMut(u64, u64)) -> Result<SyncResult> {
        Ok(self.memory_store().sync(&mut progress)?)
    }

    pub fn memory_stats(&self) -> Result<MemoryStats> {
        self.memory(&self.memory_store()).stats()
    }
}
