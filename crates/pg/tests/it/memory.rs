//! The memory of a team: the contract of a memory store, requests with keys, the feed, and replicas.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::thread;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use tanmi_memory::contract::{self, NOW, everything};
use tanmi_memory::{
    Author, Fact, Mark, MemoryFilter, MemoryStore, MemoryType, ReplicaMemory, SearchQuery, Summary, VecMemory,
};
use tanmi_pg::{Caller, People, PgMemory, PgStore, Role, RunError, create_project, migrate};
use tanmi_protocol::{MEMORY, MemoryCommand, MemoryOutcome, MemoryRequest};

use crate::cluster::Cluster;

pub fn memory_in(store: &PgStore, dir: &Path) -> PgMemory {
    PgMemory::new(store.clone(), ReplicaMemory::new(dir, &dir.join("home")))
}

pub fn fact(id: &str, content: &str) -> Fact {
    Fact {
        id: id.into(),
        memory_type: MemoryType::W,
        content: content.into(),
        entities: Vec::new(),
        confidence: None,
        at: NOW,
        session: String::new(),
        by: "mcp".into(),
        supersedes: Vec::new(),
        anchors: Default::default(),
    }
}

fn request(key: &str, command: MemoryCommand) -> MemoryRequest {
    MemoryRequest {
        key: format!("memory-{key}"),
        command,
        session: Some(String::from("s-1")),
        machine: String::from("laptop"),
    }
}

fn save(key: &str, fact: &Fact) -> MemoryRequest {
    request(key, MemoryCommand::Save { line: fact.to_line() })
}

fn member(cluster: &Cluster, project: &str, name: &str) -> Caller {
    let project = create_project(&cluster.address(), "team", project, NOW).unwrap();
    let mut people = People::open(&cluster.address(), &project).unwrap();
    let person = people.set_member(name, Role::Member).unwrap();
    Caller { project, person, name: name.to_owned(), role: Role::Member, token: String::new() }
}

/// Returns every memory with its state, sorted.
fn state(memory: &dyn MemoryStore) -> Vec<String> {
    let rows = memory.list(&everything(), 999, 0).unwrap().rows;
    let mut state: Vec<String> = rows
        .iter()
        .map(|row| format!("{}|{}|{}|{}", row.id, row.content, row.hidden, row.replaced_by))
        .collect();
    state.sort();
    state
}

#[test]
fn contract_steps_on_postgres_have_the_same_results() {
    let Some(cluster) = Cluster::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let memory = memory_in(&cluster.store("app"), &dir.path().join("a"));
    contract::check("postgres", &memory, false);
    let vec = VecMemory::default();
    contract::check("vec", &vec, false);
    for all in [false, true] {
        assert_eq!(memory.export(all, NOW).unwrap(), vec.export(all, NOW).unwrap(), "all: {all}");
    }
    let other = memory_in(&cluster.store("app"), &dir.path().join("b"));
    assert_eq!(state(&other), state(&memory), "a replica that was filled from the beginning");
    assert_eq!(memory.stats().unwrap().place, "PostgreSQL");
    assert!(memory.local_folder().is_none());
}

#[test]
fn replica_of_a_restored_database_is_filled_again() {
    let dir = tempfile::tempdir().unwrap();
    let contents = |memory: &PgMemory| {
        let rows = memory.list(&everything(), 9, 0).unwrap().rows;
        rows.into_iter().map(|row| row.content).collect::<Vec<String>>()
    };
    // Another cluster with as many changes stands for the same one after a restore.
    for content in [Some("Before the restore"), Some("After the restore"), None] {
        let Some(cluster) = Cluster::start() else { return };
        let memory = memory_in(&cluster.store("app"), dir.path());
        if let Some(content) = content {
            memory.save_fact(&fact("f1", content)).unwrap();
        }
        assert_eq!(contents(&memory), Vec::from_iter(content));
    }
}

#[test]
fn private_memories_are_refused_and_nothing_is_stored() {
    let Some(cluster) = Cluster::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let memory = memory_in(&cluster.store("app"), dir.path());
    let opinion = Fact { memory_type: MemoryType::O, confidence: Some(0.9), ..fact("f1", "Short answers") };
    let error = memory.save_fact(&opinion).unwrap_err();
    assert!(matches!(&error, tanmi_memory::Error::Private { id } if id == "f1"), "{error:?}");
    let lines = format!("{}\n{}", fact("f2", "Shared").to_line(), contract::TURNS);
    let error = memory.import(&lines, NOW, &mut |_, _| {}).unwrap_err();
    assert!(matches!(&error, tanmi_memory::Error::Private { id } if id == "t1"), "{error:?}");
    assert!(state(&memory).is_empty() && !memory.exists());
}

#[test]
fn line_that_names_another_author_gets_the_one_of_the_caller() {
    let Some(cluster) = Cluster::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let memory = memory_in(&cluster.store("app"), dir.path());
    let bob = member(&cluster, "app", "bob");
    let line = |id: &str| {
        format!(
            r#"{{"id":"{id}","content":"Use {id}","type":"W","source":{{"person":"ada","machine":"hers"}}}}"#
        )
    };
    for (key, command) in
        [("1", MemoryCommand::Save { line: line("f1") }), ("2", MemoryCommand::Import { lines: line("f2") })]
    {
        memory.run_request(&bob, &request(key, command)).unwrap();
    }
    let page = memory.written_by(&bob, None, "page");
    page.save_fact(&fact("f3", "Use f3")).unwrap();
    page.import(&line("f4"), NOW, &mut |_, _| {}).unwrap();
    for (id, machine) in [("f1", "laptop"), ("f2", "laptop"), ("f3", "page"), ("f4", "page")] {
        let author = Author::of(&memory.find(id).unwrap()).unwrap();
        assert_eq!((author.person.as_str(), author.machine.as_str()), ("bob", machine), "{id}");
    }
}

#[test]
fn request_repeated_is_answered_once_and_names_its_author() {
    let Some(cluster) = Cluster::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let store = cluster.store("app");
    let memory = memory_in(&store, dir.path());
    let (ada, bob) = (member(&cluster, "app", "ada"), member(&cluster, "app", "bob"));
    let first = save("1", &fact("f1", "The cache is Redis"));
    let answer = memory.run_request(&ada, &first).unwrap();
    assert_eq!(memory.run_request(&ada, &first).unwrap(), answer);
    assert_eq!((answer.seq, answer.docs.len(), answer.docs[0].name.as_str()), (1, 1, "f1"));
    assert!(answer.docs[0].text.as_ref().unwrap().contains(r#""by":"mcp","person":"ada""#), "{answer:?}");
    let other = save("1", &fact("f2", "Another text"));
    assert!(matches!(memory.run_request(&ada, &other), Err(RunError::KeyReused)));
    assert!(matches!(memory.run_request(&bob, &first), Err(RunError::KeyReused)));
    let session = MemoryRequest { key: String::from("key-of-bob"), ..first.clone() };
    assert!(matches!(memory.run_request(&bob, &session), Err(RunError::ForeignSession)));

    let again = memory.run_request(&ada, &save("2", &fact("f3", "the cache is redis."))).unwrap();
    assert_eq!(again.outcome, MemoryOutcome::Saved { id: "f1".into(), is_duplicate: true });
    assert_eq!((again.seq, again.docs), (1, vec![]), "a duplicate is not a change");
    let edit = Fact { supersedes: vec!["f1".into()], ..fact("f4", "The cache is Valkey") };
    assert_eq!(memory.run_request(&ada, &save("3", &edit)).unwrap().seq, 2);
    let mark = |mark: Mark| MemoryCommand::Mark { mark, ids: vec!["f4".into()], by: "mcp".into() };
    assert_eq!(memory.run_request(&ada, &request("4", mark(Mark::Forget))).unwrap().seq, 3);
    let restored = memory.run_request(&ada, &request("5", mark(Mark::Restore))).unwrap();
    assert_eq!((restored.seq, restored.outcome), (4, MemoryOutcome::Marked));
    let summary = Summary {
        id: "s1".into(),
        topic: "Caches".into(),
        summary: "Compared".into(),
        decisions: Vec::new(),
        todos: Vec::new(),
        at: NOW,
        session: String::new(),
        by: "mcp".into(),
    };
    let line = MemoryCommand::Save { line: summary.to_line() };
    assert_eq!(memory.run_request(&ada, &request("6", line)).unwrap().seq, 5);
    let refused = |line: &str| {
        let command = MemoryCommand::Save { line: line.to_owned() };
        memory.run_request(&ada, &request(&format!("bad {}", line.len()), command)).unwrap_err().to_string()
    };
    let short = MemoryRequest { key: String::from("short"), ..first.clone() };
    assert!(memory.run_request(&ada, &short).unwrap_err().to_string().contains("8 to 100 characters"));
    assert!(refused("{").contains("expected one line of JSON"));
    assert!(refused(r#"{"type":"forget","target":"f4"}"#).contains("expected one line of JSON"));
    assert!(refused(&fact("f4", "Another text").to_line()).contains("use a new id"));

    let page = store.changes_after(&BTreeMap::from([(String::from(MEMORY), 0)])).unwrap();
    assert_eq!(page.heads.get(MEMORY), Some(&5));
    let seen: Vec<(i64, Option<&str>)> =
        page.changes.iter().map(|change| (change.seq, change.person.as_deref())).collect();
    assert_eq!(seen, (1..=5).map(|seq| (seq, Some("ada"))).collect::<Vec<_>>());
}

#[test]
fn writers_at_the_same_time_save_one_content_once() {
    let Some(cluster) = Cluster::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let store = cluster.store("app");
    let memory = memory_in(&store, dir.path());
    let saved: Vec<(String, bool)> = thread::scope(|scope| {
        let spawn = |n: usize| {
            let memory = &memory;
            scope.spawn(move || {
                let saved = memory.save_fact(&fact(&format!("f{n}"), "The port is 9000")).unwrap();
                memory.save_fact(&fact(&format!("g{n}"), &format!("Writer {n} was here"))).unwrap();
                (saved.id, saved.is_duplicate)
            })
        };
        let running: Vec<_> = (0..12).map(spawn).collect();
        running.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    assert_eq!(saved.iter().filter(|(_, is_duplicate)| !is_duplicate).count(), 1, "{saved:?}");
    assert_eq!(saved.iter().map(|(id, _)| id).collect::<BTreeSet<_>>().len(), 1);
    let page = store.changes_after(&BTreeMap::from([(String::from(MEMORY), 0)])).unwrap();
    let numbers: Vec<i64> = page.changes.iter().map(|change| change.seq).collect();
    assert_eq!(numbers, (1..=13).collect::<Vec<i64>>());
    assert_eq!(state(&memory).len(), 13);
    let filter = MemoryFilter::default();
    let query = SearchQuery { text: "writer 7", filter: &filter, limit: 1, now: NOW, model: None };
    assert_eq!(memory.search(&query).unwrap()[0].row.id, "g7");
}

#[test]
fn memory_of_another_project_is_not_seen() {
    let Some(cluster) = Cluster::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let ours = memory_in(&cluster.store("ours"), &dir.path().join("ours"));
    let theirs = memory_in(&cluster.store("theirs"), &dir.path().join("theirs"));
    ours.save_fact(&fact("f1", "Ours alone")).unwrap();
    assert!(!theirs.exists() && state(&theirs).is_empty());
    assert!(theirs.mark(Mark::Forget, &["f1".into()], NOW, "cli").is_err());
    assert!(!theirs.save_fact(&fact("f1", "Ours alone")).unwrap().is_duplicate);
}

#[test]
fn replica_behind_a_trimmed_feed_is_filled_again() {
    let Some(cluster) = Cluster::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let memory = memory_in(&cluster.store("app"), dir.path());
    memory.save_fact(&fact("f1", "First")).unwrap();
    assert_eq!(state(&memory).len(), 1);
    let other = memory_in(&cluster.store("app"), &dir.path().join("other"));
    other.save_fact(&Fact { supersedes: vec!["f1".into()], ..fact("f2", "Second") }).unwrap();
    other.mark(Mark::Restore, &["f1".into()], NOW, "cli").unwrap();
    cluster.sql("DELETE FROM change WHERE stream = 'memory' AND seq < 3");
    assert_eq!(state(&memory), ["f1|First|false|", "f2|Second|true|f1"]);
    cluster.sql("DELETE FROM change; DELETE FROM memory; UPDATE stream SET seq = 0");
    assert!(state(&memory).is_empty(), "a database that was set back");
}

#[test]
fn import_of_content_in_force_is_superseded_by_it() {
    let Some(cluster) = Cluster::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let memory = memory_in(&cluster.store("app"), dir.path());
    memory.save_fact(&fact("f1", "Same")).unwrap();
    let lines: Vec<String> =
        (0..1203).map(|n| fact(&format!("i{n}"), &format!("fact {}", n / 2)).to_line()).collect();
    let lines = format!("{}\n{}", lines.join("\n"), fact("j1", "same.").to_line());
    let result = memory.import(&lines, NOW, &mut |_, _| {}).unwrap();
    assert_eq!((result.added, result.known), (1204, 0));
    let stats = memory.stats().unwrap();
    assert_eq!((stats.facts, stats.hidden), (603, 602));
    let found = |id: &str| (memory.find(id).unwrap().hidden, memory.find(id).unwrap().replaced_by);
    assert_eq!(found("j1"), (true, String::from("f1")));
    assert_eq!(found("i7"), (true, String::from("i6")));
}

#[test]
fn schema_without_memory_is_migrated() {
    let Some(cluster) = Cluster::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let store = cluster.store("app");
    cluster.sql(
        "DROP TABLE memory, audit, login; DROP POLICY read_all ON member; DROP POLICY add_one_project ON member;
        DROP POLICY set_one_project ON member; DROP POLICY remove_one_project ON member;
        UPDATE schema_version SET version = 2",
    );
    assert!(tanmi_pg::Pool::new(cluster.address()).check_health().is_err(), "the schema is older");
    migrate(&cluster.address()).unwrap();
    memory_in(&store, dir.path()).save_fact(&fact("f1", "After the migration")).unwrap();
}

/// One call of a story: what to do, and numbers that choose ids and contents.
type Call = (u8, u8, u8, u8);

#[test]
fn random_stories_postgres_and_memory_agree() {
    let Some(cluster) = Cluster::start() else { return };
    let number = std::cell::Cell::new(0);
    let mut runner = TestRunner::new(Config { cases: 24, max_shrink_iters: 100, ..Config::default() });
    let calls = prop::collection::vec((0..8u8, 0..12u8, 0..5u8, 0..12u8), 1..30);
    let checked = runner.run(&calls, |calls| {
        number.set(number.get() + 1);
        compare(&cluster.store(&format!("story {}", number.get())), &calls)
    });
    checked.unwrap();
}

fn compare(store: &PgStore, calls: &[Call]) -> Result<(), TestCaseError> {
    let dir = tempfile::tempdir().unwrap();
    let (vec, postgres) = (VecMemory::default(), memory_in(store, &dir.path().join("a")));
    let mut saved = 0;
    for call in calls {
        let id = format!("f{saved}");
        saved += usize::from(call.0 < 4);
        prop_assert_eq!(run(&vec, &id, *call), run(&postgres, &id, *call), "{:?}", call);
    }
    prop_assert_eq!(state(&vec), state(&postgres));
    let fresh = memory_in(store, &dir.path().join("b"));
    prop_assert_eq!(state(&vec), state(&fresh), "a replica that was filled from the beginning");
    Ok(())
}

/// Runs one call and returns its result as text.
fn run(memory: &dyn MemoryStore, id: &str, (what, one, content, two): Call) -> String {
    let (one, two) = (format!("f{one}"), format!("f{two}"));
    let content = format!("content {content}");
    let result = match what {
        0 | 1 => contract::save(memory, id, &content, &[]),
        2 => contract::save(memory, id, &content, &[&one]),
        3 => contract::save(memory, id, &content, &[&one, &two]),
        4 => contract::mark(memory, Mark::Forget, &[&one]),
        5 => contract::mark(memory, Mark::Restore, &[&one]),
        6 => contract::mark(memory, Mark::Restore, &[&one, &two]),
        _ => contract::mark(memory, Mark::Forget, &[&one, &two]),
    };
    let text = result.unwrap_or_else(|error| format!("{error:?}"));
    // Similar facts depend on the engine of the search.
    text.split(" ~").next().unwrap_or_default().to_owned()
}
