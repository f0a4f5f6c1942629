//! Activity of all projects: steps, log entries, problems, new nodes, changed rules, facts, bindings and
//! injections, in the order of time.
//!
//! Nothing is stored here. An index is brought up to date with its sources before each answer: nodes and workspaces,
//! memories, bindings and the ledger. It can be deleted at any time and is filled again from them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tanmi_base::{Millis, clock};
use tanmi_index::{ActivityFilter, ActivityIndex, ActivityPosition, ActivityRow, IndexError};
use tanmi_memory::{MemoryFilter, MemoryLetter};
use tanmi_workspace::model::{NodeId, NodeStatus, Operator, WorkspaceId};
use tanmi_workspace::store::WORKSPACE;

use crate::core::Core;
use crate::error::{Error, Result};
use crate::stores::Project;

mod entries;

use entries::Callers;
pub(crate) use entries::last_written;
pub use entries::{NodeLog, NodeState};

/// The kinds of entries.
pub const KINDS: &[&str] =
    &["step", "log", "problem", "cleared", "created", "rule", "fact", "session", "injection"];

/// The maximum number of memories of one type that are read per project, the newest.
const MAX_MEMORIES: usize = 5_000;

/// Something that happened.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ActivityEntry {
    pub id: String,
    pub at: Millis,
    /// One of [`KINDS`].
    pub kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub project: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub workspace_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub node_id: String,
    /// The session that did it. Of a log entry it is known only while the session state has the call, or the
    /// session holds the node.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub session_id: String,
    #[serde(flatten)]
    pub data: ActivityData,
}

/// What an entry shows, by its kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ActivityData {
    /// The title of the node or the name of the workspace.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub title: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<Operator>,
    /// The new status, of a step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<NodeStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_step: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryData>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub injection: Option<InjectionData>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemoryData {
    pub id: String,
    #[serde(rename = "type")]
    pub letter: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InjectionData {
    pub event: String,
    pub platform: String,
    /// Ids of the rules that contributed text.
    pub rules: Vec<String>,
    pub bytes: usize,
    pub tokens: usize,
    pub micros: u64,
    /// Digest of the text.
    pub digest: String,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ActivityPage {
    /// The latest first.
    pub entries: Vec<ActivityEntry>,
    /// The value of `before` for the next page; absent after the last entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_before: Option<String>,
    /// The number of all entries that pass the filter; only on the first page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
}

#[derive(Clone, Debug, Default)]
pub struct ActivityQuery {
    pub kinds: Vec<String>,
    pub project: Option<String>,
    pub workspace: Option<String>,
    pub node: Option<String>,
    pub session: Option<String>,
    pub limit: usize,
    /// [`ActivityPage::next_before`] of the previous page.
    pub before: Option<String>,
}

/// The activity of the projects of a server.
pub struct ActivityLog {
    pub(crate) core: Arc<Core>,
    path: PathBuf,
    /// `None` until it is used, and after it was found to be lost.
    index: Mutex<Option<ActivityIndex>>,
}

type IndexResult<T> = std::result::Result<T, IndexError>;

impl ActivityLog {
    pub(crate) fn new(core: Arc<Core>) -> ActivityLog {
        ActivityLog { path: core.home().join("activity.sqlite"), core, index: Mutex::default() }
    }

    /// Returns a page of entries of these projects, of the sessions and of the ledger.
    pub fn list(&self, projects: &[PathBuf], query: &ActivityQuery) -> Result<ActivityPage> {
        let before = query.before.as_deref().map(parse_position).transpose()?;
        let filter = ActivityFilter {
            kinds: query.kinds.clone(),
            project: query.project.clone(),
            workspace: query.workspace.clone(),
            node: query.node.clone(),
            session: query.session.clone(),
            before,
            ..ActivityFilter::default()
        };
        let (mut rows, total) = self.read(projects, |index| {
            let total = if before.is_none() { Some(index.count(&filter)?) } else { None };
            Ok((index.list(&filter, query.limit + 1)?, total))
        })?;
        let has_more = rows.len() > query.limit;
        rows.truncate(query.limit);
        let next_before = rows.last().filter(|_| has_more).map(|(position, _)| position_text(position));
        let entries = rows.into_iter().map(|(position, row)| ActivityEntry::of(&position, row)).collect();
        Ok(ActivityPage { entries, next_before, total })
    }

    /// Brings the index up to date and reads from it. A lost index is created again.
    pub(crate) fn read<T>(
        &self,
        projects: &[PathBuf],
        work: impl Fn(&ActivityIndex) -> IndexResult<T>,
    ) -> Result<T> {
        let mut slot = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        let mut is_retry = false;
        loop {
            let index = match slot.take() {
                Some(index) => index,
                None => self.open().map_err(tanmi_workspace::Error::from)?,
            };
            let refreshed = index.transaction(|index| self.refresh(index, projects));
            match refreshed.and_then(|()| work(&index)) {
                Ok(value) => {
                    *slot = Some(index);
                    return Ok(value);
                }
                Err(error) if error.is_lost() && !is_retry => {
                    drop(index);
                    tanmi_index::discard(&self.path);
                    is_retry = true;
                }
                Err(error) => return Err(tanmi_workspace::Error::from(error).into()),
            }
        }
    }

    /// Opens the index; in memory if the home store does not exist or cannot be written.
    fn open(&self) -> IndexResult<ActivityIndex> {
        let opened = self.core.home().is_dir().then(|| ActivityIndex::open(&self.path, clock::boot_id()));
        match opened {
            Some(Ok(index)) => Ok(index),
            _ => ActivityIndex::in_memory(),
        }
    }

    /// Reads the sources that changed. A source that cannot be read now keeps its entries.
    fn refresh(&self, index: &ActivityIndex, projects: &[PathBuf]) -> IndexResult<()> {
        let mut scopes = BTreeSet::from([LEDGER.to_owned(), BINDINGS.to_owned()]);
        self.refresh_ledger(index)?;
        self.refresh_bindings(index)?;
        let callers = Callers::new(self.core.states());
        for folder in projects {
            let project = self.core.stores.projects.in_folder(folder);
            if project.check().is_err() {
                continue;
            }
            scopes.insert(memory_scope(folder));
            self.refresh_memory(index, project.as_ref())?;
            for id in project.feed().ids().unwrap_or_default() {
                scopes.insert(workspace_scope(folder, &id));
                self.refresh_workspace(index, project.as_ref(), &id, &callers)?;
            }
        }
        for scope in index.scopes()?.into_iter().filter(|scope| !scopes.contains(scope)) {
            for name in index.sources(&scope)?.into_keys() {
                index.remove(&scope, &name)?;
            }
        }
        Ok(())
    }

    /// Adds the new lines of the ledger. The mark of a day is the position after its last line.
    fn refresh_ledger(&self, index: &ActivityIndex) -> IndexResult<()> {
        let ledger = &self.core.stores.ledger;
        let Ok(days) = ledger.days() else { return Ok(()) };
        let known = index.sources(LEDGER)?;
        for gone in known.keys().filter(|day| !days.contains(day)) {
            index.remove(LEDGER, gone)?;
        }
        for day in days {
            let position = known.get(&day).map_or(0, |mark| mark.unsigned_abs());
            let tail = match ledger.read_after(&day, position) {
                Ok(Some(tail)) => tail,
                Ok(None) => {
                    index.remove(LEDGER, &day)?;
                    ledger.read_after(&day, 0).ok().flatten().unwrap_or_default()
                }
                Err(_) => continue,
            };
            if !tail.entries.is_empty() {
                let rows: Vec<ActivityRow> = tail.entries.into_iter().map(entries::of_injection).collect();
                index.append(LEDGER, &day, tail.position.cast_signed(), &rows)?;
            }
        }
        Ok(())
    }

    fn refresh_bindings(&self, index: &ActivityIndex) -> IndexResult<()> {
        let bindings = &self.core.stores.bindings;
        let mark = bindings.revision().cast_signed();
        if index.sources(BINDINGS)?.get(ALL) == Some(&mark) {
            return Ok(());
        }
        let Ok(all) = bindings.all() else { return Ok(()) };
        let rows: Vec<ActivityRow> =
            all.iter().map(|(session, binding)| entries::of_binding(session, binding)).collect();
        index.replace(BINDINGS, ALL, mark, &rows, None)
    }

    fn refresh_memory(&self, index: &ActivityIndex, project: &dyn Project) -> IndexResult<()> {
        let (store, scope) = (project.memory(), memory_scope(project.folder()));
        // The memory that came with a project is read only after the user agreed to it.
        let trust = self.core.trust().of_project(project.folder());
        let is_trusted = store.local_folder().is_none_or(|folder| trust.has_memory(folder.dir()));
        let mark = (store.revision() ^ u64::from(is_trusted)).cast_signed();
        if index.sources(&scope)?.get(ALL) == Some(&mark) {
            return Ok(());
        }
        let mut rows = Vec::new();
        if store.exists() && is_trusted {
            for letter in [MemoryLetter::W, MemoryLetter::B, MemoryLetter::O, MemoryLetter::S] {
                let filter = MemoryFilter { letter: Some(letter), ..MemoryFilter::default() };
                let Ok(page) = store.list(&filter, MAX_MEMORIES, 0) else { return Ok(()) };
                rows.extend(page.rows.iter().filter_map(|row| entries::of_memory(project.folder(), row)));
            }
        }
        index.replace(&scope, ALL, mark, &rows, None)
    }

    fn refresh_workspace(
        &self,
        index: &ActivityIndex,
        project: &dyn Project,
        id: &WorkspaceId,
        callers: &Callers,
    ) -> IndexResult<()> {
        let Ok(revisions) = project.feed().revisions(id) else { return Ok(()) };
        let scope = workspace_scope(project.folder(), id);
        let known = index.sources(&scope)?;
        for gone in known.keys().filter(|name| !revisions.contains_key(*name)) {
            index.remove(&scope, gone)?;
        }
        let marks = revisions.into_iter().map(|(name, revision)| (name, revision.cast_signed()));
        let place =
            entries::Place { project: project.folder(), workspace: id, is_utc: project.has_utc_logs() };
        for (name, mark) in marks.filter(|(name, mark)| known.get(name) != Some(mark)) {
            let (store, now) = (project.workspaces(), self.core.now());
            let read = if name == WORKSPACE {
                store.summary(id, now).map(|(workspace, _)| (place.workspace_rows(&workspace), None))
            } else {
                let node = NodeId::parse(&name).and_then(|node| store.node(id, &node, now));
                node.map(|node| (place.node_rows(&node, callers), Some(place.node_state(&node))))
            };
            match read {
                Ok((rows, state)) => index.replace(&scope, &name, mark, &rows, state.as_ref())?,
                // Another process holds the lock: the next answer has it.
                Err(tanmi_workspace::Error::Conflict { .. } | tanmi_workspace::Error::Unavailable { .. }) => {
                }
                // A file that cannot be parsed has no entries until it changes.
                Err(_) => index.replace(&scope, &name, mark, &[], None)?,
            }
        }
        Ok(())
    }
}

const LEDGER: &str = "ledger";
const BINDINGS: &str = "bindings";
/// The name of the only source of a scope.
const ALL: &str = "all";

fn memory_scope(project: &Path) -> String {
    format!("memory {}", project.display())
}

fn workspace_scope(project: &Path, id: &WorkspaceId) -> String {
    format!("{id} {}", project.display())
}

impl ActivityEntry {
    fn of(position: &ActivityPosition, row: ActivityRow) -> ActivityEntry {
        ActivityEntry {
            id: format!("{}-{}", position.source, position.n),
            at: row.at,
            kind: row.kind,
            project: row.project,
            workspace_id: row.workspace,
            node_id: row.node,
            session_id: row.session,
            data: serde_json::from_str(&row.data).unwrap_or_default(),
        }
    }
}

fn position_text(position: &ActivityPosition) -> String {
    format!("{}-{}-{}", position.at, position.source, position.n)
}

fn parse_position(text: &str) -> Result<ActivityPosition> {
    let parse = || {
        let mut parts = text.splitn(3, '-').map(|part| part.parse().ok());
        Some(ActivityPosition { at: parts.next()??, source: parts.next()??, n: parts.next()?? })
    };
    let expected = || Error::bad_value("before", text, String::from("nextBefore of the previous page"));
    parse().ok_or_else(expected)
}
