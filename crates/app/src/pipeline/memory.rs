//! Memory in the pipeline: loads the memory for a session start, and records session starts and ends in the daily
//! file.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tanmi_base::{clock, text};
use tanmi_engine::{FactLine, MemoryFacts, SkipReason, SummaryFacts};
use tanmi_event::{Event, EventKind};
use tanmi_memory::anchors::{Anchors, FileState};
use tanmi_memory::recent::{StartMemory, StartQuery, ToldFact};
use tanmi_memory::record::session_line;
use tanmi_memory::{Author, Folder, MemoryRow, MemoryStore};
use tanmi_session::SessionState;
use tanmi_workspace::model::Node;

use super::{Caller, log_line};
use crate::calls;
use crate::config::Config;
use crate::stores::Project;
use crate::transcripts::{self, IngestResult};
use crate::trust::ProjectTrust;

/// The time for the work at a session end. The hook has one second in total.
const END_TIME_LIMIT: Duration = Duration::from_millis(700);

/// Returns the store of a project's memory.
fn store(caller: &Caller<'_>, project: &Path) -> Arc<dyn MemoryStore> {
    caller.stores.projects.in_folder(project).memory()
}

/// Returns the text about the current work by which related facts are found; empty if no node is focused.
pub fn topic(focus: Option<&Node>) -> String {
    let node = focus.filter(|node| !node.id.is_root());
    node.map(|node| format!("{} {}", node.title, text::prefix(&node.requirement, 300))).unwrap_or_default()
}

/// Returns the memory for a session start, or why there is none. `topic` is about the current work. The
/// digest of the last session does not need a memory folder.
pub fn load(
    caller: &Caller<'_>,
    event: &Event,
    state: &SessionState,
    config: &Config,
    project: Option<&ProjectTrust>,
    topic: &str,
) -> Result<MemoryFacts, SkipReason> {
    if event.kind != EventKind::SessionStart {
        return Err(("不是会话开始", "not a session start"));
    }
    let stored = of_project(caller, config, project, topic);
    let digest =
        project.filter(|_| config.memory).and_then(|trust| calls::find_digest(caller, event, state, trust));
    match digest {
        None => stored,
        digest => Ok(MemoryFacts { digest, ..stored.unwrap_or_default() }),
    }
}

/// Returns the stored memory of a project as a session start gets it, or why there is none.
pub fn of_project(
    caller: &Caller<'_>,
    config: &Config,
    project: Option<&ProjectTrust>,
    topic: &str,
) -> Result<MemoryFacts, SkipReason> {
    if !config.memory {
        return Err(("记忆已关闭", "memory is disabled"));
    }
    let query = StartQuery {
        now: caller.now,
        days: config.memory_recent_days,
        facts: config.memory_recent_facts,
        topic,
        person: None,
    };
    // The user's own facts need no trust of the project.
    let user = caller.stores.user_memory.as_ref();
    let of_user = (user.exists() && has_only_regular_files(user))
        .then(|| user.start_memory(&StartQuery { facts: query.facts.div_ceil(USER_SHARE), ..query }));
    let taken = of_user.as_ref().map_or(0, |user| user.facts.len());
    let of_project = load_project(caller, project, &StartQuery { facts: query.facts - taken, ..query });
    let recent = match (of_project, of_user) {
        (Err(reason), None) => return Err(reason),
        (Err(_), Some(user)) => user,
        (Ok(project), None) => project,
        (Ok(project), Some(user)) => join(user, project),
    };
    let folder = project.map(ProjectTrust::project).unwrap_or(Path::new(""));
    let own = project.map(|trust| caller.stores.projects.in_folder(trust.project()));
    let person = own.as_ref().and_then(|project| project.person());
    let mut files_left = MAX_FILES;
    let mut fact = |fact: &ToldFact| fact_line(fact, folder, person, &mut files_left);
    Ok(MemoryFacts {
        as_of: own.as_ref().and_then(|project| last_contact(caller, project.as_ref())),
        core: recent.core,
        digest: None,
        summary: recent.summary.map(|row| summary(&row, person)),
        recent: recent.facts.iter().map(&mut fact).collect(),
        related: recent.found.iter().map(&mut fact).collect(),
    })
}

/// Returns the day of the last contact with the server of the team, if it is more than a day ago.
fn last_contact(caller: &Caller<'_>, project: &dyn Project) -> Option<String> {
    let at = project.team()?.connection().state().contact_at?;
    (caller.now - at > clock::DAY).then(|| clock::utc_day(at))
}

/// The share of the recent facts that can be the user's: one of this many.
const USER_SHARE: usize = 3;
/// The number of related facts that are told, and how many of them can be the user's.
const RELATED: usize = 5;
const RELATED_OF_USER: usize = 2;

/// Returns the memory of the project for a session start, or why there is none.
fn load_project(
    caller: &Caller<'_>,
    project: Option<&ProjectTrust>,
    query: &StartQuery<'_>,
) -> Result<StartMemory, SkipReason> {
    let trust = project.ok_or(("没有项目", "the event has no project"))?;
    let store = store(caller, trust.project());
    let store = store.as_ref();
    if !store.exists() {
        return Err(("此项目没有记忆", "this project has no memory"));
    }
    if !is_trusted(trust, store) {
        return Err(("项目未受信任；运行 tanmi trust", "the project is not trusted; run tanmi trust"));
    }
    if !has_only_regular_files(store) {
        return Err((
            "记忆文件夹含有符号链接或特殊文件",
            "the memory folder contains a symbolic link or a special file",
        ));
    }
    Ok(store.start_memory(query))
}

/// Joins the memory of the user and of the project. An interrupted promotion leaves a fact in both.
fn join(mut user: StartMemory, mut project: StartMemory) -> StartMemory {
    user.found.truncate(RELATED_OF_USER);
    let is_new =
        |fact: &ToldFact| !user.facts.iter().chain(&user.found).any(|known| known.row.id == fact.row.id);
    project.facts.retain(is_new);
    project.found.retain(is_new);
    project.found.truncate(RELATED - user.found.len());
    project.facts.extend(user.facts);
    project.facts.sort_by_key(|fact| std::cmp::Reverse((fact.row.at, fact.row.n)));
    project.found.extend(user.found);
    let cores = [user.core, project.core].into_iter().filter(|core| !core.is_empty());
    StartMemory { core: cores.collect::<Vec<_>>().join("\n\n"), ..project }
}

/// Returns whether the memory may be used. Only memory in a folder of this machine can come with a cloned project.
fn is_trusted(trust: &ProjectTrust, store: &dyn MemoryStore) -> bool {
    store.local_folder().is_none_or(|folder| trust.has_memory(folder.dir()))
}

/// Returns whether the memory can be read and written without following a link.
fn has_only_regular_files(store: &dyn MemoryStore) -> bool {
    store.local_folder().is_none_or(Folder::has_only_regular_files)
}

/// The number of files that a session start compares with those of the facts that it tells.
const MAX_FILES: usize = 30;

/// Returns the author of a memory, if that is another person than the user.
fn other_author(row: &MemoryRow, user: Option<&str>) -> Option<String> {
    Author::of(row).map(|author| author.person).filter(|person| Some(person.as_str()) != user)
}

fn fact_line(fact: &ToldFact, project: &Path, user: Option<&str>, files_left: &mut usize) -> FactLine {
    let row = &fact.row;
    let files = Anchors::of(row).files.into_iter().take(*files_left);
    let states: Vec<(String, FileState)> =
        files.map(|file| (file.path.clone(), file.state(project))).collect();
    *files_left -= states.len();
    let stale = states.into_iter().filter(|(_, state)| *state != FileState::Same);
    FactLine {
        day: row.at.map(clock::utc_day).unwrap_or_else(|| String::from("?")),
        letter: row.letter.as_str(),
        id: row.id.clone(),
        author: other_author(row, user),
        content: row.content.clone(),
        replaced: fact.replaced.as_ref().map(|newer| (clock::utc_day(newer.at), newer.by.clone())),
        stale_files: stale.map(|(path, state)| (path, state == FileState::Gone)).collect(),
    }
}

fn summary(row: &MemoryRow, user: Option<&str>) -> SummaryFacts {
    let more: serde_json::Value = serde_json::from_str(&row.more).unwrap_or_default();
    let text = |key: &str| more[key].as_str().unwrap_or_default().to_owned();
    let list = |key: &str| {
        let items = more[key].as_array().map(Vec::as_slice).unwrap_or_default();
        items.iter().filter_map(|item| item.as_str().map(String::from)).collect()
    };
    SummaryFacts {
        author: other_author(row, user),
        topic: text("topic"),
        summary: text("summary"),
        decisions: list("decisions"),
        todos: list("todos"),
    }
}

/// Records a session start or end in the daily file, if the project has memory. A session end also ingests the
/// transcript and updates the index, within a time limit. If the session completed and time is left, it deletes old
/// session lines.
pub fn record_session(caller: &Caller<'_>, event: &Event, config: &Config, trust: Option<&ProjectTrust>) {
    if !matches!(event.kind, EventKind::SessionStart | EventKind::SessionEnd) {
        return;
    }
    let Some(trust) = trust.filter(|_| config.memory) else { return };
    let project = caller.stores.projects.in_folder(trust.project());
    let store = project.memory();
    let store = store.as_ref();
    // Untrusted memory is not written, and symbolic links are not followed.
    if !store.exists() || !has_only_regular_files(store) || !is_trusted(trust, store) {
        return;
    }
    let payload = &event.payload;
    let status = payload.reason.as_deref().map(end_status);
    let more = match event.kind {
        EventKind::SessionStart => json!({"platform": event.platform.id, "workspace": trust.project()}),
        _ => json!({
            "platform": event.platform.id, "reason": payload.reason, "status": status, "duration_ms": payload.duration_ms,
            "error": payload.error,
        }),
    };
    let line = session_line(event.kind.as_str(), &event.session, caller.now, more);
    if let Err(error) = store.record_session(&line, caller.now) {
        log_line(caller, &format!("memory: {error}"));
    }
    if event.kind == EventKind::SessionEnd {
        update_memory_at_session_end(
            caller,
            event,
            config,
            project.folder(),
            store,
            status == Some("completed"),
        );
    }
}

/// Returns the end status as named in the specification. Other reasons, such as a logout, count as completed.
fn end_status(reason: &str) -> &'static str {
    match reason {
        "error" => "error",
        "aborted" | "clear" | "resume" => "aborted",
        "window_close" => "window_close",
        "user_close" => "user_close",
        _ => "completed",
    }
}

fn update_memory_at_session_end(
    caller: &Caller<'_>,
    event: &Event,
    config: &Config,
    project: &Path,
    store: &dyn MemoryStore,
    is_completed: bool,
) {
    let deadline = Instant::now() + END_TIME_LIMIT;
    let transcript = event.payload.transcript.as_deref();
    if let Some(path) = transcript.filter(|path| config.ingest_transcripts && transcripts::is_small(path))
        && let Err(error) = transcripts::ingest(caller.home, project, path, &mut IngestResult::default())
    {
        log_line(caller, &format!("transcript: {error}"));
    }
    let oldest = caller.now - i64::from(config.log_retain_days) * 86_400_000;
    if let Err(error) = store.maintain(deadline, is_completed.then_some(oldest)) {
        log_line(caller, &format!("memory: {error}"));
    }
}
