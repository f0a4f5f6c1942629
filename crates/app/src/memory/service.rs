//! The use cases of memory on any store: validates and masks what is saved, and turns memories into views.

use std::path::Path;

use tanmi_base::{Millis, id, secrets};
use tanmi_memory::{Fact, Mark, MemoryStore, SearchQuery, Summary, record};
use tanmi_session::{SessionState, States};

use super::check::{check_confidence, check_list, check_text, filter, mask_all, memory_type};
use super::{
    ImportResult, Memory, MemoryQuery, MemoryResults, MemoryStats, NewFact, NewSummary, SaveResult, model,
};
use crate::error::{Error, Result};
use crate::trust::Trust;

/// A store of memory, and what the use cases need besides it.
pub struct MemoryService<'a> {
    pub store: &'a dyn MemoryStore,
    /// The home store, which contains trust, session states and the embedding model.
    pub home: &'a Path,
    /// Whether the settings allow memory.
    pub is_enabled: bool,
    /// The maximum length of a fact or summary.
    pub max_bytes: usize,
    pub now: Millis,
    /// The interface of the caller, see [`Fact::by`].
    pub writer: &'a str,
}

/// The confidence of an edited opinion that has none.
const DEFAULT_CONFIDENCE: f64 = 0.8;

impl MemoryService<'_> {
    fn check_enabled(&self) -> Result<()> {
        if self.is_enabled { Ok(()) } else { Err(Error::MemoryOff) }
    }

    /// Creates the memory if it does not exist.
    fn create(&self) -> Result<()> {
        self.check_enabled()?;
        if self.store.create()?
            && let Some(folder) = self.store.local_folder()
        {
            // The folder was created here, so the user need not confirm trust.
            let _ = Trust::new(self.home).add_project(folder.dir(), "created", self.now);
        }
        Ok(())
    }

    /// Updates the session state. The rule `session-save` uses it when the session stops.
    fn update_session_state(&self, session: &str, change: impl FnOnce(&mut SessionState)) {
        if !session.is_empty() {
            let _ = States::new(self.home).update(session, change);
        }
    }

    pub fn save(&self, new: NewFact) -> Result<SaveResult> {
        let memory_type = memory_type(new.memory_type.as_deref().unwrap_or("W"))?;
        check_text("content", &new.content, self.max_bytes)?;
        check_confidence(new.confidence, memory_type)?;
        check_list("entities", &new.entities)?;
        let (content, mut masked) = secrets::mask(&new.content);
        let entities = mask_all(&new.entities, &mut masked);
        self.create()?;
        let fact = Fact {
            id: id::fresh("fact", self.now),
            memory_type,
            content: content.into_owned(),
            entities,
            confidence: new.confidence,
            at: self.now,
            session: new.session.unwrap_or_default(),
            by: self.writer.to_owned(),
            supersedes: new.supersedes,
        };
        let saved = self.store.save_fact(&fact)?;
        if !saved.is_duplicate {
            self.update_session_state(&fact.session, |state| {
                state.saved_facts = state.saved_facts.saturating_add(1);
            });
        }
        let similar = saved.similar.iter().map(Memory::of_hit).collect();
        Ok(SaveResult { id: saved.id, duplicate: saved.is_duplicate, masked, similar })
    }

    pub fn save_summary(&self, new: NewSummary) -> Result<SaveResult> {
        check_text("topic", &new.topic, 500)?;
        check_text("summary", &new.summary, self.max_bytes)?;
        check_list("decisions", &new.decisions)?;
        check_list("todos", &new.todos)?;
        let mut masked = Vec::new();
        let mut clean = |text: &str| {
            let (text, found) = secrets::mask(text);
            masked.extend(found);
            text.into_owned()
        };
        let summary = Summary {
            id: id::fresh("sum", self.now),
            topic: clean(&new.topic),
            summary: clean(&new.summary),
            decisions: new.decisions.iter().map(|text| clean(text)).collect(),
            todos: new.todos.iter().map(|text| clean(text)).collect(),
            at: self.now,
            session: new.session.unwrap_or_default(),
            by: self.writer.to_owned(),
        };
        self.create()?;
        self.store.save_summary(&summary)?;
        // Only this session: sessions in other windows are still asked for their summaries.
        self.update_session_state(&summary.session, |state| state.summarized = true);
        Ok(SaveResult { id: summary.id, duplicate: false, masked, similar: Vec::new() })
    }

    pub fn search(&self, query: &str, wanted: &MemoryQuery) -> Result<MemoryResults> {
        self.check_enabled()?;
        let filter = filter(wanted, self.now)?;
        // A model that cannot be loaded is not used: the search uses keywords only, and `doctor` reports it.
        let model = model::load(self.home).and_then(Result::ok);
        let query = SearchQuery {
            text: query,
            filter: &filter,
            limit: wanted.limit,
            now: self.now,
            model: model.as_ref(),
        };
        let results = self.store.search(&query)?.iter().map(Memory::of_hit).collect();
        Ok(MemoryResults { results, total: None })
    }

    pub fn list(&self, wanted: &MemoryQuery) -> Result<MemoryResults> {
        self.check_enabled()?;
        let page = self.store.list(&filter(wanted, self.now)?, wanted.limit, wanted.skip)?;
        let results = page.rows.iter().map(|row| Memory::of(row, None)).collect();
        Ok(MemoryResults { results, total: Some(page.total) })
    }

    pub fn show(&self, id: &str) -> Result<Memory> {
        Ok(Memory::of(&self.store.find(id)?, None))
    }

    /// Saves a new fact that supersedes an old one.
    pub fn edit(&self, id: &str, content: String, session: Option<String>) -> Result<SaveResult> {
        let old = self.store.find(id)?;
        if old.kind != "fact" {
            return Err(Error::NotAFact { id: id.to_owned() });
        }
        let default_confidence = (old.letter == "O").then_some(DEFAULT_CONFIDENCE);
        self.save(NewFact {
            content,
            entities: record::entities(&old),
            confidence: old.confidence.or(default_confidence),
            memory_type: Some(old.letter),
            session,
            supersedes: vec![old.id],
        })
    }

    /// Forgets or restores memories, and returns them.
    pub fn mark(&self, mark: Mark, ids: &[String]) -> Result<Vec<Memory>> {
        self.check_enabled()?;
        let rows = self.store.mark(mark, ids, self.now, self.writer)?;
        Ok(rows.iter().map(|row| Memory::of(row, None)).collect())
    }

    /// Imports JSON lines, see [`MemoryStore::import`].
    pub fn import(&self, lines: &str, progress: &mut dyn FnMut(u64, u64)) -> Result<ImportResult> {
        self.create()?;
        Ok(self.store.import(lines, self.now, progress)?)
    }

    /// Returns every record as a line that can be imported, see [`MemoryStore::export`].
    pub fn export(&self, all: bool) -> Result<Vec<String>> {
        Ok(self.store.export(all, self.now)?)
    }

    pub fn stats(&self) -> Result<MemoryStats> {
        let stats = self.store.stats()?;
        Ok(MemoryStats {
            folder: self.store.place(),
            facts: stats.facts,
            summaries: stats.summaries,
            turns: stats.turns,
            hidden: stats.hidden,
            files: stats.files,
            bad_lines: stats.bad_lines,
            index_bytes: stats.index_bytes,
        })
    }
}
