//! Use cases for memory: save, search, list, edit, forget, restore, import and export.
//!
//! Arguments are validated and secrets masked here; [`MemoryStore`] keeps the records.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tanmi_base::{id, secrets, text};
use tanmi_event::Source;
use tanmi_memory::search::Hit;
use tanmi_memory::sync::SyncResult;
use tanmi_memory::{
    Fact, Mark, MemoryFilter, MemoryKind, MemoryRow, MemoryStore, MemoryType, SearchQuery, Summary, dates,
    record,
};
use tanmi_session::SessionState;
use tanmi_workspace::model::Operator;

use crate::calls::{self, CallChange};
use crate::core::Core;
use crate::error::{Error, Result};
use crate::resolver::only;
use crate::trust;

mod check;
mod lexicon;
mod model;
mod past;

use check::{check_confidence, check_list, check_text, filter, mask_all, memory_type};
pub use lexicon::Lexicon;
pub use past::SessionDigest;
pub use tanmi_memory::{ImportResult, MemoryStats};

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
    /// What the user should know about the memory folder: no session is told what it contains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<&'static str>,
}

/// A memory as all interfaces show it.
#[derive(Clone, Debug, Serialize)]
pub struct Memory {
    pub id: String,
    pub content: String,
    /// W, B or O for a fact, S for a summary, T for a turn.
    #[serde(rename = "type")]
    pub letter: &'static str,
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
    /// The parts of a summary, which `content` has without labels.
    #[serde(skip)]
    pub parts: Option<SummaryParts>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SummaryParts {
    pub topic: String,
    pub summary: String,
    pub decisions: Vec<String>,
    pub todos: Vec<String>,
}

impl Memory {
    fn of(row: &MemoryRow, score: Option<f32>) -> Memory {
        let stamp = row.at.map(dates::iso);
        Memory {
            id: row.id.clone(),
            content: row.content.clone(),
            letter: row.letter.as_str(),
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
            parts: serde_json::from_str(&row.more).ok(),
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
    /// What the reader should know about the search: the model was not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
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

/// The use cases for memory.
#[derive(Clone)]
pub struct MemoryService {
    pub(crate) core: Arc<Core>,
}

/// The maximum number of memories that are compared to find the one that is meant.
const MAX_CANDIDATES: usize = 20;

/// The confidence of an opinion that has none.
const DEFAULT_CONFIDENCE: f64 = 0.8;

impl MemoryService {
    pub(crate) fn new(core: Arc<Core>) -> MemoryService {
        MemoryService { core }
    }

    fn store(&self) -> Arc<dyn MemoryStore> {
        self.core.project.memory()
    }

    /// Returns the interface of the caller as records name it.
    fn writer(&self) -> &'static str {
        let env = &self.core.env;
        match (env.source, env.operator) {
            (Source::Mcp, _) => "mcp",
            _ if env.remote => "page",
            (_, Operator::Ai) => "agent",
            _ => "cli",
        }
    }

    fn check_enabled(&self) -> Result<()> {
        if self.core.config.memory { Ok(()) } else { Err(Error::MemoryOff) }
    }

    /// Creates the memory if it does not exist. Returns what the user should know about it.
    fn create(&self) -> Result<Option<&'static str>> {
        self.check_enabled()?;
        let (store, project) = (self.store(), self.core.project.as_ref());
        let is_clean = !store.exists() && trust::is_clean(project.folder());
        let is_new = store.create(self.core.config.share_memory)?;
        let notice = if is_new { self.core.trust_created(project, is_clean, self.core.lang()) } else { None };
        Ok(notice.or_else(|| self.untold_notice(store.as_ref())))
    }

    /// Returns the notice that no session is told the memory, if its folder is not trusted.
    fn untold_notice(&self, store: &dyn MemoryStore) -> Option<&'static str> {
        let trust = self.core.trust().of_project(self.core.folder());
        let is_told = store.local_folder().is_none_or(|folder| trust.has_memory(folder.dir()));
        (!is_told).then(|| {
            self.core.lang().pick(
                "项目未被信任，因此不会告知任何会话；请用户在终端中运行 `tanmi trust` 查看",
                "No session is told it, because the project is not trusted; the user can review it with `tanmi trust` in a \
                 terminal",
            )
        })
    }

    /// Updates the session state. The rule `session-save` uses it when the session stops.
    fn update_session_state(&self, session: &str, change: impl FnOnce(&mut SessionState)) {
        if !session.is_empty() {
            let _ = self.core.states().update(session, change);
        }
    }

    pub fn save(&self, new: NewFact) -> Result<SaveResult> {
        let memory_type = memory_type(new.memory_type.as_deref().unwrap_or("W"))?;
        check_text("content", &new.content, self.core.config.memory_max_bytes)?;
        let default_confidence = (memory_type == MemoryType::O).then_some(DEFAULT_CONFIDENCE);
        let confidence = new.confidence.or(default_confidence);
        check_confidence(confidence)?;
        check_list("entities", &new.entities)?;
        let (content, mut masked) = secrets::mask(&new.content);
        let entities = mask_all(&new.entities, &mut masked);
        let notice = self.create()?;
        let fact = Fact {
            id: id::fresh("fact", self.core.now()),
            memory_type,
            content: content.into_owned(),
            entities,
            confidence,
            at: self.core.now(),
            session: new.session.unwrap_or_default(),
            by: self.writer().to_owned(),
            supersedes: new.supersedes,
        };
        let saved = self.with_whole_ids(fact.supersedes.clone(), |ids| {
            self.store().save_fact(&Fact { supersedes: ids.to_vec(), ..fact.clone() })
        })?;
        if !saved.is_duplicate {
            self.core.note_call(Some(&fact.session), self.core.project.as_ref(), CallChange::SavedFact);
        }
        let similar = saved.similar.iter().map(Memory::of_hit).collect();
        Ok(SaveResult { id: saved.id, duplicate: saved.is_duplicate, masked, similar, notice })
    }

    pub fn save_summary(&self, new: NewSummary) -> Result<SaveResult> {
        check_text("topic", &new.topic, 500)?;
        check_text("summary", &new.summary, self.core.config.memory_max_bytes)?;
        check_list("decisions", &new.decisions)?;
        check_list("todos", &new.todos)?;
        let mut masked = Vec::new();
        let mut clean = |text: &str| {
            let (text, found) = secrets::mask(text);
            masked.extend(found);
            text.into_owned()
        };
        let summary = Summary {
            id: id::fresh("sum", self.core.now()),
            topic: clean(&new.topic),
            summary: clean(&new.summary),
            decisions: new.decisions.iter().map(|text| clean(text)).collect(),
            todos: new.todos.iter().map(|text| clean(text)).collect(),
            at: self.core.now(),
            session: new.session.unwrap_or_default(),
            by: self.writer().to_owned(),
        };
        let notice = self.create()?;
        self.store().save_summary(&summary)?;
        // Only this session: sessions in other windows are still asked for their summaries.
        self.update_session_state(&summary.session, |state| {
            (state.prompts_since_summary, state.completed_since_summary) = (0, 0);
            state.alive_at = self.core.now();
            calls::record_summary(state, self.core.project.id().as_str());
        });
        if !summary.session.is_empty() {
            let _ = self.core.states().register_in_project(self.core.project.id().as_str(), &summary.session);
        }
        Ok(SaveResult { id: summary.id, duplicate: false, masked, similar: Vec::new(), notice })
    }

    pub fn search(&self, query: &str, wanted: &MemoryQuery) -> Result<MemoryResults> {
        self.check_enabled()?;
        let filter = filter(wanted, self.core.now())?;
        let (model, notice) = match self.load_model() {
            Some(Ok(model)) => (Some(model), None),
            Some(Err(error)) => (None, Some(self.model_notice(&error))),
            None => (None, None),
        };
        let query = SearchQuery {
            text: query,
            filter: &filter,
            limit: wanted.limit,
            now: self.core.now(),
            model: model.as_deref(),
        };
        let results = self.store().search(&query)?.iter().map(Memory::of_hit).collect();
        Ok(MemoryResults { results, total: None, notice })
    }

    pub fn list(&self, wanted: &MemoryQuery) -> Result<MemoryResults> {
        self.check_enabled()?;
        let page = self.store().list(&filter(wanted, self.core.now())?, wanted.limit, wanted.skip)?;
        let results = page.rows.iter().map(|row| Memory::of(row, None)).collect();
        Ok(MemoryResults { results, total: Some(page.total), notice: None })
    }

    pub fn show(&self, id: &str) -> Result<Memory> {
        Ok(Memory::of(&self.find(id)?, None))
    }

    fn find(&self, id: &str) -> Result<MemoryRow> {
        self.with_whole_ids(vec![id.to_owned()], |ids| self.store().find(&ids[0]))
    }

    /// Runs `work` with ids of memories. If one of them is unknown and is the end of another id, runs it again with that.
    fn with_whole_ids<T>(
        &self,
        mut ids: Vec<String>,
        work: impl Fn(&[String]) -> tanmi_memory::Result<T>,
    ) -> Result<T> {
        loop {
            let unknown = match work(&ids) {
                Err(tanmi_memory::Error::NotFound { id }) => id,
                other => return Ok(other?),
            };
            let mut found = Vec::new();
            if self.store().exists() && id::can_be_suffix(&unknown) {
                let filter =
                    MemoryFilter { id_suffix: Some(unknown.clone()), all: true, ..MemoryFilter::default() };
                found = self.store().list(&filter, MAX_CANDIDATES, 0)?.rows;
            }
            let found = found.into_iter().map(|row| (row.id, row.content)).collect();
            let whole = only("id", &unknown, found)?.filter(|whole| *whole != unknown);
            match (ids.iter().position(|id| *id == unknown), whole) {
                (Some(at), Some(whole)) => ids[at] = whole,
                _ => return Err(tanmi_memory::Error::NotFound { id: unknown }.into()),
            }
        }
    }

    /// Saves a new fact that supersedes an old one.
    pub fn edit(&self, id: &str, content: String, session: Option<String>) -> Result<SaveResult> {
        let old = self.find(id)?;
        if old.letter.kind() != MemoryKind::Fact {
            return Err(Error::NotAFact { id: id.to_owned() });
        }
        self.save(NewFact {
            content,
            entities: record::entities(&old),
            confidence: old.confidence,
            memory_type: Some(old.letter.as_str().to_owned()),
            session,
            supersedes: vec![old.id],
        })
    }

    /// Forgets memories, and returns them.
    pub fn forget(&self, ids: &[String]) -> Result<Vec<Memory>> {
        self.mark(Mark::Forget, ids)
    }

    /// Restores forgotten memories, and returns them.
    pub fn restore(&self, ids: &[String]) -> Result<Vec<Memory>> {
        self.mark(Mark::Restore, ids)
    }

    fn mark(&self, mark: Mark, ids: &[String]) -> Result<Vec<Memory>> {
        self.check_enabled()?;
        if ids.is_empty() {
            let (zh, en) = ("列表为空；写出记忆的 ID", "the list is empty; name the ids of memories");
            return Err(tanmi_workspace::Error::invalid("ids", zh, en).into());
        }
        let mark = |ids: &[String]| self.store().mark(mark, ids, self.core.now(), self.writer());
        let rows = self.with_whole_ids(ids.to_vec(), mark)?;
        Ok(rows.iter().map(|row| Memory::of(row, None)).collect())
    }

    /// Imports JSON lines, see [`MemoryStore::import`].
    pub fn import(&self, lines: &str, progress: &mut dyn FnMut(u64, u64)) -> Result<ImportResult> {
        self.create()?;
        Ok(self.store().import(lines, self.core.now(), progress)?)
    }

    /// Returns every record as a line that can be imported, see [`MemoryStore::export`].
    pub fn export(&self, all: bool) -> Result<Vec<String>> {
        Ok(self.store().export(all, self.core.now())?)
    }

    /// Makes everything that was saved searchable.
    pub fn sync(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<SyncResult> {
        Ok(self.store().sync(progress)?)
    }

    pub fn stats(&self) -> Result<MemoryStats> {
        Ok(self.store().stats()?)
    }
}
