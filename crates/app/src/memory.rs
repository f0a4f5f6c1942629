//! Use cases for memory: save, search, list, edit, forget, restore, import and export.
//!
//! Arguments are validated and secrets masked here; [`MemoryStore`] keeps the records.

use std::sync::Arc;

use tanmi_base::{Lang, id, secrets};
use tanmi_event::Source;
use tanmi_memory::scoped::{Scope, ScopedMemory};
use tanmi_memory::sync::SyncResult;
use tanmi_memory::{
    Delivery, Fact, Mark, MemoryFilter, MemoryKind, MemoryRow, MemoryStore, MemoryType, SearchQuery, Summary,
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
mod files;
mod lexicon;
mod model;
mod past;
mod promote;
mod view;

use check::{check_confidence, check_list, check_text, filter, mask_all, memory_type, scope};
pub use files::StaleFacts;
pub use lexicon::Lexicon;
pub use past::SessionDigest;
pub use tanmi_memory::{ImportResult, MemoryStats};
pub use view::{FactFile, Memory, MemoryResults, ReplacedFact, SaveResult};

#[derive(Clone, Debug, Default)]
pub struct NewFact {
    pub content: String,
    pub memory_type: Option<String>,
    pub entities: Vec<String>,
    pub confidence: Option<f64>,
    pub session: Option<String>,
    pub supersedes: Vec<String>,
    /// Files that it is about. Files that the text names are added.
    pub paths: Vec<String>,
    /// `project`, the default, or `user`.
    pub scope: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub struct NewSummary {
    pub topic: String,
    pub summary: String,
    pub decisions: Vec<String>,
    pub todos: Vec<String>,
    pub session: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub struct MemoryQuery {
    pub memory_type: Option<String>,
    pub session: Option<String>,
    pub since: Option<String>,
    pub until: Option<String>,
    /// Only memories of this scope: `project` or `user`.
    pub scope: Option<String>,
    /// Whether hidden memories are included.
    pub all: bool,
    pub limit: usize,
    pub skip: usize,
}

/// Returns what a write that waits for the server of a team means.
pub(crate) fn queued_notice(lang: Lang) -> &'static str {
    lang.pick(
        "团队服务器无法连接；已保存在本机，连接恢复后发送",
        "The team server is away; this is saved on this machine and sent when the server is back",
    )
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

    /// Returns the memory of the project together with that of the user.
    fn scoped(&self) -> ScopedMemory {
        ScopedMemory { project: self.store(), user: self.core.stores.user_memory.clone() }
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
        let scope = scope(new.scope.as_deref())?.unwrap_or(Scope::Project);
        let anchors = self.anchors(scope, &new.paths, &content)?;
        let notice = match scope {
            Scope::Project => self.create()?,
            Scope::User => self.create_for_user()?,
        };
        let scoped = self.scoped();
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
            anchors,
        };
        let saved = self.with_whole_ids(fact.supersedes.clone(), |ids| {
            scoped.store(scope).save_fact(&Fact { supersedes: ids.to_vec(), ..fact.clone() })
        })?;
        if !saved.is_duplicate && scope == Scope::Project {
            let (session, project) = (Some(fact.session.as_str()), self.core.project.as_ref());
            self.core.note_call(session, project, "", CallChange::SavedFact);
        }
        let similar: Vec<Memory> = saved.similar.iter().map(|hit| self.view_hit(hit)).collect();
        let hint = self.supersede_hint(&similar);
        let queued = saved.delivery == Delivery::Queued;
        let notice = if queued { Some(self.queued_notice()) } else { notice };
        Ok(SaveResult { id: saved.id, duplicate: saved.is_duplicate, queued, masked, similar, hint, notice })
    }

    /// Returns what a write that waits for the server of the team means.
    fn queued_notice(&self) -> &'static str {
        queued_notice(self.core.lang())
    }

    /// Returns how the caller supersedes facts that look like the same matter.
    fn supersede_hint(&self, similar: &[Memory]) -> Option<String> {
        let outdated: Vec<&str> = similar
            .iter()
            .filter(|memory| memory.replaced.is_some())
            .map(|memory| memory.id.as_str())
            .collect();
        let ids = if outdated.is_empty() { vec![similar.first()?.id.as_str()] } else { outdated };
        let lang = self.core.lang();
        match self.writer() {
            "page" => None,
            "mcp" => Some(lang.pick(
                format!("若旧事实已不成立，用相同的 content 和 supersedes: {ids:?} 再调用一次 memory_save"),
                format!("If an older fact no longer holds, call memory_save again with the same content and supersedes: {ids:?}"),
            )),
            _ => {
                let options: String = ids.iter().map(|id| format!(" --supersedes {id}")).collect();
                Some(lang.pick(
                    format!("若旧事实已不成立，加上{options} 再保存一次"),
                    format!("If an older fact no longer holds, save this one again with{options}"),
                ))
            }
        }
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
        let queued = self.store().save_summary(&summary)? == Delivery::Queued;
        let notice = if queued { Some(self.queued_notice()) } else { notice };
        // Only this session: sessions in other windows are still asked for their summaries.
        self.update_session_state(&summary.session, |state| {
            (state.prompts_since_summary, state.completed_since_summary) = (0, 0);
            state.alive_at = self.core.now();
            calls::record_summary(state, self.core.project.id().as_str());
        });
        if !summary.session.is_empty() {
            let _ = self.core.states().register_in_project(self.core.project.id().as_str(), &summary.session);
        }
        let (duplicate, similar, hint) = (false, Vec::new(), None);
        Ok(SaveResult { id: summary.id, duplicate, queued, masked, similar, hint, notice })
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
        let results = self
            .scoped()
            .search(&query, scope(wanted.scope.as_deref())?)?
            .iter()
            .map(|hit| self.view_hit(hit))
            .collect();
        Ok(MemoryResults { results, total: None, notice })
    }

    pub fn list(&self, wanted: &MemoryQuery) -> Result<MemoryResults> {
        self.check_enabled()?;
        let scope = scope(wanted.scope.as_deref())?;
        let page = self.scoped().list(&filter(wanted, self.core.now())?, wanted.limit, wanted.skip, scope)?;
        let results = page.rows.iter().map(|row| self.view(row)).collect();
        Ok(MemoryResults { results, total: Some(page.total), notice: None })
    }

    pub fn show(&self, id: &str) -> Result<Memory> {
        Ok(self.view(&self.find(id)?))
    }

    fn find(&self, id: &str) -> Result<MemoryRow> {
        self.with_whole_ids(vec![id.to_owned()], |ids| self.scoped().find(&ids[0]))
    }

    /// Runs `work` with ids of memories. If one of them is unknown and is the end of another id, runs it
    /// again with that.
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
            if id::can_be_suffix(&unknown) {
                let filter =
                    MemoryFilter { id_suffix: Some(unknown.clone()), all: true, ..MemoryFilter::default() };
                found = self.scoped().list(&filter, MAX_CANDIDATES, 0, None)?.rows;
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
            paths: self.remaining_paths(&old),
            scope: Some(Scope::of(&old).as_str().to_owned()),
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
        let mark = |ids: &[String]| self.scoped().mark(mark, ids, self.core.now(), self.writer());
        let rows = self.with_whole_ids(ids.to_vec(), mark)?;
        Ok(rows.iter().map(|row| self.view(row)).collect())
    }

    /// Imports JSON lines, see [`MemoryStore::import`].
    pub fn import(&self, lines: &str, progress: &mut dyn FnMut(u64, u64)) -> Result<ImportResult> {
        self.create()?;
        Ok(self.scoped().import(lines, self.core.now(), progress)?)
    }

    /// Returns every record as a line that can be imported, see [`MemoryStore::export`].
    pub fn export(&self, all: bool) -> Result<Vec<String>> {
        Ok(self.scoped().export(all, self.core.now())?)
    }

    /// Makes everything that was saved searchable.
    pub fn sync(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<SyncResult> {
        Ok(self.scoped().sync(progress)?)
    }

    pub fn stats(&self) -> Result<MemoryStats> {
        Ok(self.scoped().stats()?)
    }
}
