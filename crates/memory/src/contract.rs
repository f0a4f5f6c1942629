//! The contract of [`MemoryStore`]: the same steps on every implementation, with one expected result for
//! each. For tests, also those of implementations in other crates.

#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use tanmi_base::Millis;
use tanmi_base::clock::DAY;
use tanmi_index::{MemoryFilter, MemoryRow};

use crate::recent::{StartQuery, ToldFact};
use crate::record::session_line;
use crate::store::{ImportResult, Mark, MemoryStats, MemoryStore, SearchQuery};
use crate::{Fact, MemoryLetter, MemoryType, Result, Summary};

/// When the steps happen.
pub const NOW: Millis = 1_765_432_100_000;

/// A name, a call, and its result as text.
type Step = (&'static str, fn(&dyn MemoryStore) -> Result<String>, &'static str);

const STEPS: &[Step] = &[
    ("a new memory does not exist", |s| Ok(s.exists().to_string()), "false"),
    ("a new memory has no entries", |s| list(s, &everything(), 9, 0), "0 of 0:"),
    ("a search in a new memory finds nothing", |s| search(s, "redis"), ""),
    ("an unknown memory cannot be forgotten", |s| mark(s, Mark::Forget, &["f1"]), r#"NotFound { id: "f1" }"#),
    ("create creates it", |s| Ok(s.create(false)?.to_string()), "true"),
    ("create keeps what is there", |s| Ok(s.create(false)?.to_string()), "false"),
    ("it exists", |s| Ok(s.exists().to_string()), "true"),
    ("a fact is saved", |s| save(s, "f1", "The cache is Redis 7 in production", &[]), "f1"),
    ("a fact is found", |s| search(s, "redis"), "f1"),
    (
        "the same content is saved once",
        |s| save(s, "f2", "the cache is redis 7 in production.", &[]),
        "f1 again",
    ),
    ("another fact is saved", |s| save(s, "f3", "Redis 8 holds queues and locks", &[]), "f3"),
    ("an unknown fact cannot be superseded", |s| save(s, "f4", "x y", &["f0"]), r#"NotFound { id: "f0" }"#),
    ("a fact is superseded", |s| save(s, "f4", "Sessions live in Valkey", &["f1"]), "f4"),
    ("a superseded fact is hidden", |s| find(s, "f1"), "f1-f4"),
    ("a superseded fact is not found", |s| search(s, "redis"), "f3"),
    ("a fact is superseded once", |s| save(s, "f5", "z", &["f1"]), r#"NotCurrent { id: "f1", by: "f4" }"#),
    ("a duplicate supersedes, too", |s| save(s, "f5", "sessions live in valkey", &["f3"]), "f4 again"),
    ("the existing fact is the replacement", |s| find(s, "f3"), "f3-f4"),
    ("a hidden fact is no duplicate", |s| save(s, "f6", "Redis 8 holds queues and locks", &[]), "f6"),
    ("an unknown id is not found", |s| find(s, "f9"), r#"NotFound { id: "f9" }"#),
    ("one unknown id marks none", |s| mark(s, Mark::Forget, &["f4", "f9"]), r#"NotFound { id: "f9" }"#),
    ("the other one is not hidden", |s| find(s, "f4"), "f4"),
    ("two facts are forgotten", |s| mark(s, Mark::Forget, &["f4", "f6"]), "f4- f6-"),
    (
        "a forgotten fact is not current",
        |s| save(s, "f7", "q", &["f4"]),
        r#"NotCurrent { id: "f4", by: "" }"#,
    ),
    ("a forgotten fact is restored", |s| mark(s, Mark::Restore, &["f4"]), "f4"),
    ("a superseded fact stays superseded when forgotten", |s| mark(s, Mark::Forget, &["f1"]), "f1-f4"),
    ("a restored version supersedes the newer one", |s| mark(s, Mark::Restore, &["f1"]), "f1"),
    ("the newer version is superseded by it", |s| find(s, "f4"), "f4-f1"),
    ("of two restored versions the last is in force", |s| mark(s, Mark::Restore, &["f4", "f1"]), "f4-f1 f1"),
    ("a summary is saved", |s| save_summary(s, "s7", "Deployment"), "s7"),
    ("lists begin with the newest", |s| list(s, &MemoryFilter::default(), 9, 0), "2 of 2: s7 f1"),
    (
        "lists include hidden memories on demand",
        |s| list(s, &everything(), 9, 0),
        "5 of 5: s7 f6- f4-f1 f3-f4 f1",
    ),
    ("lists have pages", |s| list(s, &everything(), 2, 1), "2 of 5: f6- f4-f1"),
    ("lists filter by type", |s| list(s, &of_type(MemoryLetter::S), 9, 0), "1 of 1: s7"),
    ("lists filter by session", |s| list(s, &of_session("session-f1"), 9, 0), "1 of 1: f1"),
    ("lists filter by time", |s| list(s, &between(1, 4), 9, 0), "1 of 1: f1"),
    ("lines are imported", |s| import(s, IMPORT), "added 2, known 1, bad 1 (first 3), masked 1"),
    (
        "known lines are not imported again",
        |s| import(s, IMPORT),
        "added 0, known 3, bad 1 (first 3), masked 0",
    ),
    ("marks of the import apply to its records", |s| find(s, "i2"), "i2-"),
    ("marks of the import spare stored records", |s| find(s, "f1"), "f1"),
    ("an imported fact supersedes a stored one", |s| find(s, "f4"), "f4-i1"),
    ("a similar fact is named", |s| save(s, "f8", "Ports start at 9000 there", &[]), "f8 ~i1"),
    ("statistics count by kind", stats, "facts 3, summaries 1, turns 0, hidden 4"),
    ("a session start tells recent memory", |s| start(s, "", 9), "summary s7; facts i1 f8 f1; found"),
    ("a session start finds related facts", |s| start(s, "redis cache", 0), "summary s7; facts; found f1"),
    ("a session is recorded", record_session, "ok"),
    ("a session end keeps the memories", end_session, "f1"),
    ("a sync is complete", |s| Ok(s.sync(&mut |_, _| {})?.is_partial.to_string()), "false"),
    ("a third fact is saved", |s| save(s, "f10", "Queues drain nightly", &[]), "f10"),
    ("it is forgotten", |s| mark(s, Mark::Forget, &["f10"]), "f10-"),
    ("its content is saved again", |s| save(s, "f11", "queues drain nightly", &[]), "f11"),
    ("it is restored", |s| mark(s, Mark::Restore, &["f10"]), "f10"),
    ("a restored fact supersedes one with its content", |s| find(s, "f11"), "f11-f10"),
];

/// The steps after [`STEPS`] for stores that keep conversations.
const TURN_STEPS: &[Step] = &[
    ("turns are imported", |s| import(s, TURNS), "added 3, known 0, bad 0 (first 0), masked 0"),
    ("statistics count turns", stats, "facts 4, summaries 1, turns 3, hidden 5"),
    (
        "a turn is found with its neighbours",
        |s| search(s, "kubernetes"),
        "t2 [Where does it run?|And the port?]",
    ),
];

const IMPORT: &str = r#"{"id":"i1","content":"Ports start at 9000","type":"B","timestamp":"2025-12-11T05:49:00Z","supersedes":["f4"]}
{"id":"f1","content":"another text","type":"W"}
{"content":
{"type":"session_start","timestamp":"2025-12-11T05:48:00Z"}
{"id":"i2","content":"token ghp_0123456789abcdefghijklmnopqrstuvwxyz","type":"W","timestamp":"2025-12-11T05:48:00Z"}
{"type":"forget","target":"i2"}
{"type":"forget","target":"f1"}
"#;

/// A conversation.
pub const TURNS: &str = r#"{"id":"t1","content":"Where does it run?","speaker":"user","timestamp":"2025-12-10T01:00:00Z","session":"talk"}
{"id":"t2","content":"On Kubernetes","speaker":"assistant","timestamp":"2025-12-10T01:00:01Z","session":"talk"}
{"id":"t3","content":"And the port?","speaker":"user","timestamp":"2025-12-10T01:00:02Z","session":"talk"}
"#;

/// Runs the steps on a new memory. `has_turns` tells whether the store keeps conversations. Panics at a step
/// with another result.
pub fn check(name: &str, store: &dyn MemoryStore, has_turns: bool) {
    let turns = if has_turns { TURN_STEPS } else { &[] };
    for (step_name, step, want) in STEPS.iter().chain(turns) {
        let got = step(store).unwrap_or_else(|error| format!("{error:?}"));
        assert_eq!(got, *want, "{name}: {step_name}");
    }
}

/// Returns a time in the order of the digits in the ids.
fn time_of(id: &str) -> Millis {
    NOW + id[1..].parse::<i64>().unwrap() * 1000
}

/// Returns the id of a memory; a hidden one is followed by `-` and its replacement.
fn show(row: &MemoryRow) -> String {
    if row.hidden { format!("{}-{}", row.id, row.replaced_by) } else { row.id.clone() }
}

fn show_all(rows: &[MemoryRow]) -> String {
    rows.iter().map(show).collect::<Vec<_>>().join(" ")
}

/// Saves a fact and returns its id, whether it was a duplicate, and the similar facts.
pub fn save(store: &dyn MemoryStore, id: &str, content: &str, supersedes: &[&str]) -> Result<String> {
    let saved = store.save_fact(&Fact {
        id: id.into(),
        memory_type: MemoryType::W,
        content: content.into(),
        entities: vec!["one".into(), "two".into()],
        confidence: Some(0.5),
        at: time_of(id),
        session: format!("session-{id}"),
        by: "cli".into(),
        supersedes: supersedes.iter().map(|id| (*id).to_owned()).collect(),
        anchors: Default::default(),
    })?;
    let similar: String = saved.similar.iter().map(|hit| format!(" ~{}", hit.row.id)).collect();
    Ok(format!("{}{}{similar}", saved.id, if saved.is_duplicate { " again" } else { "" }))
}

pub fn save_summary(store: &dyn MemoryStore, id: &str, topic: &str) -> Result<String> {
    store.save_summary(&Summary {
        id: id.into(),
        topic: topic.into(),
        summary: "All of it".into(),
        decisions: vec!["One".into()],
        todos: Vec::new(),
        at: time_of(id),
        session: String::new(),
        by: "cli".into(),
    })?;
    Ok(show(&store.find(id)?))
}

pub fn search(store: &dyn MemoryStore, text: &str) -> Result<String> {
    let filter = MemoryFilter::default();
    let hits = store.search(&SearchQuery { text, filter: &filter, limit: 1, now: NOW, model: None })?;
    let shown = hits.iter().map(|hit| match (hit.before.as_str(), hit.after.as_str()) {
        ("", "") => show(&hit.row),
        (before, after) => format!("{} [{before}|{after}]", show(&hit.row)),
    });
    Ok(shown.collect::<Vec<_>>().join(" "))
}

pub fn everything() -> MemoryFilter {
    MemoryFilter { all: true, ..MemoryFilter::default() }
}

fn of_type(letter: MemoryLetter) -> MemoryFilter {
    MemoryFilter { letter: Some(letter), ..MemoryFilter::default() }
}

fn of_session(session: &str) -> MemoryFilter {
    MemoryFilter { session: Some(session.to_owned()), ..MemoryFilter::default() }
}

fn between(first: i64, end: i64) -> MemoryFilter {
    let at = |n: i64| Some(NOW + n * 1000);
    MemoryFilter { since: at(first), until: at(end), ..MemoryFilter::default() }
}

pub fn list(store: &dyn MemoryStore, filter: &MemoryFilter, limit: usize, skip: usize) -> Result<String> {
    let page = store.list(filter, limit, skip)?;
    Ok(format!("{} of {}: {}", page.rows.len(), page.total, show_all(&page.rows)).trim_end().to_owned())
}

pub fn find(store: &dyn MemoryStore, id: &str) -> Result<String> {
    Ok(show(&store.find(id)?))
}

pub fn mark(store: &dyn MemoryStore, mark: Mark, ids: &[&str]) -> Result<String> {
    let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
    Ok(show_all(&store.mark(mark, &ids, NOW, "cli")?))
}

pub fn import(store: &dyn MemoryStore, lines: &str) -> Result<String> {
    let ImportResult { added, known, bad_lines, first_bad_line, masked } =
        store.import(lines, NOW, &mut |_, _| {})?;
    let first = first_bad_line.unwrap_or_default();
    Ok(format!("added {added}, known {known}, bad {bad_lines} (first {first}), masked {masked}"))
}

fn stats(store: &dyn MemoryStore) -> Result<String> {
    let MemoryStats { facts, summaries, turns, hidden, .. } = store.stats()?;
    Ok(format!("facts {facts}, summaries {summaries}, turns {turns}, hidden {hidden}"))
}

fn start(store: &dyn MemoryStore, topic: &str, facts: usize) -> Result<String> {
    let start = store.start_memory(&StartQuery { now: NOW + 60_000, days: 7, facts, topic, person: None });
    let list =
        |facts: &[ToldFact]| facts.iter().map(|fact| format!(" {}", show(&fact.row))).collect::<String>();
    let summary = start.summary.map(|row| row.id).unwrap_or_default();
    Ok(format!("summary {summary}; facts{}; found{}", list(&start.facts), list(&start.found)))
}

fn record_session(store: &dyn MemoryStore) -> Result<String> {
    for at in [NOW - 90 * DAY, NOW] {
        store.record_session(&session_line("session_start", "s", at, serde_json::Value::Null), at)?;
    }
    Ok(String::from("ok"))
}

fn end_session(store: &dyn MemoryStore) -> Result<String> {
    store.maintain(Instant::now() + Duration::from_secs(60), Some(NOW - 30 * DAY))?;
    find(store, "f1")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tanmi_base::place::ProjectPlace;

    use super::*;
    use crate::{FileMemory, VecMemory};

    /// Returns the memory of a project in a scratch folder.
    fn file_memory(dir: &tempfile::TempDir) -> FileMemory {
        let project = dir.path().join("project");
        std::fs::create_dir(&project).unwrap();
        FileMemory::new(Arc::new(ProjectPlace::new(&project, None)), &dir.path().join("home"))
    }

    #[test]
    fn contract_same_steps_on_every_store_have_same_results() {
        let dir = tempfile::tempdir().unwrap();
        let file = file_memory(&dir);
        let vec = VecMemory::default();
        check("file", &file, true);
        check("vec", &vec, true);
        for all in [false, true] {
            assert_eq!(file.export(all, NOW).unwrap(), vec.export(all, NOW).unwrap(), "all: {all}");
        }
    }

    #[test]
    fn export_imported_into_the_other_store_is_exported_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let vec = VecMemory::default();
        check("vec", &vec, true);
        let exported = vec.export(true, NOW).unwrap();
        let file = file_memory(&dir);
        file.create(false).unwrap();
        let imported = file.import(&exported.join("\n"), NOW, &mut |_, _| {}).unwrap();
        assert_eq!((imported.bad_lines, imported.known), (0, 0));
        assert_eq!(file.export(true, NOW).unwrap(), exported);
    }

    #[test]
    fn create_without_project_folder_fails_and_creates_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let file = FileMemory::new(
            Arc::new(ProjectPlace::new(&dir.path().join("moved"), None)),
            &dir.path().join("home"),
        );
        assert!(file.create(false).is_err());
        assert!(!dir.path().join("moved").exists());
    }
}
