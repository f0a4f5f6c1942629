//! Use cases for memory: save, search, list, edit, forget and restore.

use std::path::{Path, PathBuf};

use serde::Serialize;
use tanmi_base::{fs, hash, id, secrets, text};
use tanmi_index::{MemoryFilter, MemoryIndex, MemoryRow};
use tanmi_memory::record;
use tanmi_memory::search::{self, Hit};
use tanmi_memory::sync::{self, SyncResult};
use tanmi_memory::{AppendSync, Fact, Folder, Summary, dates};
use tanmi_session::States;

use crate::App;
use crate::error::{Error, Result};
use crate::trust::Trust;

mod check;
mod import;
mod model;

use check::{check_confidence, check_list, check_text, filter, mask_all, memory_type};
pub use import::ImportResult;

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
            entities: entities(row),
            confidence: row.confidence,
            before: String::new(),
            after: String::new(),
            hidden: row.hidden,
            replaced_by: row.replaced_by.clone(),
        }
    }
}

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
    pub(crate) fn memory_folder(&self) -> Folder {
        Folder::of(self.project())
    }

    fn check_memory_enabled(&self) -> Result<()> {
        if self.config().memory { Ok(()) } else { Err(Error::MemoryOff) }
    }

    /// Returns the memory folder, and creates it if it does not exist.
    fn open_or_create_memory(&self) -> Result<Folder> {
        self.check_memory_enabled()?;
        let folder = self.memory_folder();
        if !folder.exists() {
            folder.create(self.config().share_memory)?;
            // The folder was created here, so the user need not confirm trust.
            let _ = Trust::new(self.home()).add_project(folder.dir(), "created", self.now());
        }
        Ok(folder)
    }

    /// Returns an up-to-date index. If it cannot be opened or written, builds a temporary one in RAM.
    fn memory_index(
        &self,
        folder: &Folder,
        progress: impl FnMut(u64, u64),
    ) -> Result<(MemoryIndex, SyncResult)> {
        let files = self.memory_files(folder)?;
        let mut progress = progress;
        for _ in 0..2 {
            if !folder.has_only_regular_files() {
                break;
            }
            let Ok(index) = MemoryIndex::open(&folder.index()) else { break };
            match sync::sync(&index, &files, None, &mut progress) {
                Ok(synced) => return Ok((index, synced)),
                Err(tanmi_memory::Error::Index(error)) if error.is_lost() => {
                    MemoryIndex::discard(&folder.index())
                }
                Err(error) => return Err(error.into()),
            }
        }
        let index = MemoryIndex::in_memory().map_err(tanmi_memory::Error::from)?;
        let synced = sync::sync(&index, &files, None, &mut progress)?;
        Ok((index, synced))
    }

    fn memory_files(&self, folder: &Folder) -> Result<Vec<(String, PathBuf)>> {
        Ok(files(folder, self.home(), self.project())?)
    }

    pub fn memory_save(&self, new: NewFact) -> Result<SaveResult> {
        let limit = self.config().memory_max_bytes;
        let memory_type = memory_type(new.memory_type.as_deref().unwrap_or("W"))?;
        check_text("content", &new.content, limit)?;
        check_confidence(new.confidence, memory_type)?;
        check_list("entities", &new.entities)?;
        let (content, mut masked) = secrets::mask(&new.content);
        let entities = mask_all(&new.entities, &mut masked);
        let folder = self.open_or_create_memory()?;
        let lock = folder.lock()?;
        let (index, _) = self.memory_index(&folder, |_, _| {})?;
        for target in &new.supersedes {
            let old = find(&index, target)?;
            if old.hidden {
                return Err(Error::NotCurrent { id: old.id, by: old.replaced_by });
            }
        }
        let duplicates =
            index.find_same_content(record::content_hash(&content)).map_err(tanmi_memory::Error::from)?;
        if let Some(known) = duplicates.iter().find(|known| !new.supersedes.contains(&known.id)) {
            // The facts to supersede are superseded by the existing fact instead.
            let lines: Vec<String> = new
                .supersedes
                .iter()
                .map(|old| record::mark_line("replace", old, &known.id, self.now(), self.writer()))
                .collect();
            if !lines.is_empty() {
                folder.append(&lock, &folder.latest_daily(self.now()), &lines.join("\n"), AppendSync::Yes)?;
                let _ = sync::sync(&index, &self.memory_files(&folder)?, None, |_, _| {});
            }
            return Ok(SaveResult { id: known.id.clone(), duplicate: true, masked, similar: Vec::new() });
        }
        let session = self.explicit_or_env_session(new.session.as_deref()).unwrap_or_default();
        let fact = Fact {
            id: id::fresh("fact", self.now()),
            memory_type,
            content: content.into_owned(),
            entities,
            confidence: new.confidence,
            at: self.now(),
            session: session.clone(),
            by: self.writer().to_owned(),
            supersedes: new.supersedes.clone(),
        };
        let path = if fact.supersedes.is_empty() {
            folder.daily(self.now())
        } else {
            folder.latest_daily(self.now())
        };
        folder.append(&lock, &path, &fact.to_line(), AppendSync::Yes)?;
        let similar = self.find_similar(&index, &fact, &new.supersedes);
        // Makes the fact searchable at once. Errors are ignored: the fact is saved, and the next search indexes it.
        let _ = sync::sync(&index, &self.memory_files(&folder)?, None, |_, _| {});
        self.update_session_state(&session, |state| state.saved_facts = state.saved_facts.saturating_add(1));
        Ok(SaveResult { id: fact.id, duplicate: false, masked, similar })
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

    /// Updates the session state. The rule `session-save` uses it when the session stops.
    fn update_session_state(&self, session: &str, change: impl FnOnce(&mut tanmi_session::SessionState)) {
        if !session.is_empty() {
            let _ = States::new(self.home()).update(session, change);
        }
    }

    fn find_similar(&self, index: &MemoryIndex, fact: &Fact, supersedes: &[String]) -> Vec<Memory> {
        let filter = MemoryFilter::default();
        let hits = search::search(index, &fact.content, &filter, 5, self.now()).unwrap_or_default();
        let near = hits.into_iter().filter(|hit| {
            hit.score > 0.4
                && hit.row.kind == "fact"
                && hit.row.id != fact.id
                && !supersedes.contains(&hit.row.id)
        });
        near.take(3).map(|hit| Memory::of(&hit.row, Some(hit.score))).collect()
    }

    pub fn memory_save_summary(&self, new: NewSummary) -> Result<SaveResult> {
        let limit = self.config().memory_max_bytes;
        check_text("topic", &new.topic, 500)?;
        check_text("summary", &new.summary, limit)?;
        check_list("decisions", &new.decisions)?;
        check_list("todos", &new.todos)?;
        let mut masked = Vec::new();
        let mut clean = |text: &str| {
            let (text, found) = secrets::mask(text);
            masked.extend(found);
            text.into_owned()
        };
        let session = self.explicit_or_env_session(new.session.as_deref()).unwrap_or_default();
        let summary = Summary {
            id: id::fresh("sum", self.now()),
            topic: clean(&new.topic),
            summary: clean(&new.summary),
            decisions: new.decisions.iter().map(|text| clean(text)).collect(),
            todos: new.todos.iter().map(|text| clean(text)).collect(),
            at: self.now(),
            session: session.clone(),
            by: self.writer().to_owned(),
        };
        let folder = self.open_or_create_memory()?;
        let lock = folder.lock()?;
        folder.append(&lock, &folder.sessions(), &summary.to_line(), AppendSync::Yes)?;
        let _ = self.memory_index(&folder, |_, _| {});
        // Only this session: sessions in other windows are still asked for their summaries.
        self.update_session_state(&session, |state| state.summarized = true);
        Ok(SaveResult { id: summary.id, duplicate: false, masked, similar: Vec::new() })
    }

    pub fn memory_search(&self, query: &str, wanted: &MemoryQuery) -> Result<MemoryResults> {
        self.check_memory_enabled()?;
        let filter = filter(wanted, self.now())?;
        let folder = self.memory_folder();
        let (index, _) = self.memory_index(&folder, |_, _| {})?;
        let hits = match self.memory_model() {
            Some(model) => {
                search::embed_missing(&index, &model)?;
                search::search_with(&index, &model, query, &filter, wanted.limit, self.now())?
            }
            None => search::search(&index, query, &filter, wanted.limit, self.now())?,
        };
        let results = with_neighbours(&index, &hits)?;
        Ok(MemoryResults { results, total: None })
    }

    pub fn memory_list(&self, wanted: &MemoryQuery) -> Result<MemoryResults> {
        self.check_memory_enabled()?;
        let filter = filter(wanted, self.now())?;
        let (index, _) = self.memory_index(&self.memory_folder(), |_, _| {})?;
        let rows =
            index.newest(None, &filter, wanted.limit, wanted.skip).map_err(tanmi_memory::Error::from)?;
        let total = index.count(None, &filter).map_err(tanmi_memory::Error::from)?;
        let results = rows.iter().map(|row| Memory::of(row, None)).collect();
        Ok(MemoryResults { results, total: Some(total) })
    }

    pub fn memory_show(&self, id: &str) -> Result<Memory> {
        let (index, _) = self.memory_index(&self.memory_folder(), |_, _| {})?;
        Ok(Memory::of(&find(&index, id)?, None))
    }

    /// Saves a new fact that supersedes an old one.
    pub fn memory_edit(&self, id: &str, content: String) -> Result<SaveResult> {
        let (index, _) = self.memory_index(&self.memory_folder(), |_, _| {})?;
        let old = find(&index, id)?;
        drop(index);
        if old.kind != "fact" {
            return Err(Error::NotAFact { id: id.to_owned() });
        }
        self.memory_save(NewFact {
            content,
            memory_type: Some(old.letter.clone()),
            entities: entities(&old),
            confidence: old.confidence.or_else(|| (old.letter == "O").then_some(0.8)),
            session: None,
            supersedes: vec![old.id],
        })
    }

    pub fn memory_forget(&self, ids: &[String]) -> Result<Vec<Memory>> {
        self.memory_mark("forget", ids)
    }

    pub fn memory_restore(&self, ids: &[String]) -> Result<Vec<Memory>> {
        self.memory_mark("restore", ids)
    }

    fn memory_mark(&self, kind: &str, ids: &[String]) -> Result<Vec<Memory>> {
        self.check_memory_enabled()?;
        let folder = self.memory_folder();
        if !folder.exists() {
            return Err(Error::MemoryNotFound { id: ids.first().cloned().unwrap_or_default() });
        }
        let lock = folder.lock()?;
        let (index, _) = self.memory_index(&folder, |_, _| {})?;
        let rows = ids.iter().map(|id| find(&index, id)).collect::<Result<Vec<_>>>()?;
        let lines: Vec<String> =
            rows.iter().map(|row| record::mark_line(kind, &row.id, "", self.now(), self.writer())).collect();
        folder.append(&lock, &folder.latest_daily(self.now()), &lines.join("\n"), AppendSync::Yes)?;
        drop(index);
        let (index, _) = self.memory_index(&folder, |_, _| {})?;
        rows.iter().map(|row| Ok(Memory::of(&find(&index, &row.id)?, None))).collect()
    }

    pub fn memory_sync(&self, progress: impl FnMut(u64, u64)) -> Result<SyncResult> {
        let folder = self.memory_folder();
        let (_, synced) = self.memory_index(&folder, progress)?;
        Ok(synced)
    }

    pub fn memory_stats(&self) -> Result<MemoryStats> {
        let folder = self.memory_folder();
        let (index, synced) = self.memory_index(&folder, |_, _| {})?;
        let count = |kind: Option<&str>, all: bool| {
            let filter = MemoryFilter { all, ..MemoryFilter::default() };
            index.count(kind, &filter).map_err(tanmi_memory::Error::from)
        };
        let hidden = count(None, true)? - count(None, false)?;
        Ok(MemoryStats {
            folder: folder.dir().display().to_string(),
            facts: count(Some("fact"), false)?,
            summaries: count(Some("summary"), false)?,
            turns: count(Some("turn"), false)?,
            hidden,
            files: self.memory_files(&folder)?.len(),
            bad_lines: synced.bad_lines,
            index_bytes: fs::FileSig::of(&folder.index()).ok().flatten().map_or(0, |sig| sig.size),
        })
    }
}

/// Returns the memory files of the project and its transcripts in the home store.
pub(crate) fn files(
    folder: &Folder,
    home: &Path,
    project: &Path,
) -> tanmi_memory::Result<Vec<(String, PathBuf)>> {
    let mut files = folder.files()?;
    files.extend(crate::transcripts::files(home, project));
    Ok(files)
}

fn entities(row: &MemoryRow) -> Vec<String> {
    row.entities.split('\n').filter(|one| !one.is_empty()).map(String::from).collect()
}

/// Converts hits to memories, and adds to each turn the turns before and after it.
fn with_neighbours(index: &MemoryIndex, hits: &[Hit]) -> Result<Vec<Memory>> {
    let turns = hits.iter().filter(|hit| hit.row.kind == "turn");
    let numbers: Vec<i64> = turns.flat_map(|hit| [hit.row.n - 1, hit.row.n + 1]).collect();
    let around = if numbers.is_empty() {
        Vec::new()
    } else {
        index.rows(&numbers).map_err(tanmi_memory::Error::from)?
    };
    let neighbour = |hit: &Hit, step: i64| {
        let near = around
            .iter()
            .find(|row| row.n == hit.row.n + step && row.session == hit.row.session && !row.hidden);
        near.filter(|_| hit.row.kind == "turn" && !hit.row.session.is_empty())
            .map(|row| text::fit(&text::one_line(&row.content), NEIGHBOUR_COLUMNS))
            .unwrap_or_default()
    };
    let memory = |hit: &Hit| Memory {
        before: neighbour(hit, -1),
        after: neighbour(hit, 1),
        ..Memory::of(&hit.row, Some(hit.score))
    };
    Ok(hits.iter().map(memory).collect())
}

/// The width of the text of a neighbouring turn.
const NEIGHBOUR_COLUMNS: usize = 200;

fn find(index: &MemoryIndex, id: &str) -> Result<MemoryRow> {
    let found = index.find(id).map_err(tanmi_memory::Error::from)?;
    found.ok_or_else(|| Error::MemoryNotFound { id: text::fit(id, 80) })
}

/// Returns the name of the project's folder below `transcripts/` in the home store.
pub(crate) fn project_key(project: &Path) -> String {
    let full = project.canonicalize().unwrap_or_else(|_| project.to_owned());
    hash::md5_hex(full.as_os_str().as_encoded_bytes())[..16].to_owned()
}
