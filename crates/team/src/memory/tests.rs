use std::path::PathBuf;

use serde_json::json;

use super::*;
use crate::scripted::{Mood, ScriptedServer};

const NOW: Millis = 1_765_432_100_000;

struct Machine {
    dir: tempfile::TempDir,
    server: ScriptedServer,
}

impl Machine {
    fn new() -> Machine {
        Machine { dir: tempfile::tempdir().unwrap(), server: ScriptedServer::start() }
    }

    fn memory(&self) -> TeamMemory {
        self.memory_of(&self.server.member())
    }

    /// Returns the memory whose server cannot be reached. Its folders are those of the other one.
    fn offline(&self) -> TeamMemory {
        let away = self.memory_of(&self.server.member_away());
        let (project, own) = (self.replica(), self.server.member().private_folder(self.dir.path()));
        let (replica, outbox) = (ReplicaMemory::new(&project, self.dir.path()), Outbox::new(&own));
        TeamMemory { replica, outbox, own, project, ..away }
    }

    fn memory_of(&self, member: &Member) -> TeamMemory {
        let connection = Connection::new(member, &member.replica(self.dir.path()), || NOW);
        TeamMemory::new(member, self.dir.path(), Arc::new(connection), || NOW)
    }

    fn replica(&self) -> PathBuf {
        self.server.member().replica(self.dir.path())
    }
}

fn fact(id: &str, letter: MemoryType, content: &str) -> Fact {
    Fact {
        id: id.into(),
        memory_type: letter,
        content: content.into(),
        entities: Vec::new(),
        confidence: (letter == MemoryType::O).then_some(0.9),
        at: NOW,
        session: String::from("s-1"),
        by: String::from("mcp"),
        supersedes: Vec::new(),
        anchors: Default::default(),
    }
}

fn found(memory: &TeamMemory, text: &str) -> Vec<(String, Holder)> {
    let filter = MemoryFilter::default();
    let hits = memory.search(&SearchQuery { text, filter: &filter, limit: 9, now: NOW, model: None });
    hits.unwrap().iter().map(|hit| (hit.row.id.clone(), Holder::of(&hit.row))).collect()
}

fn one(id: &str, holder: Holder) -> Vec<(String, Holder)> {
    vec![(id.to_owned(), holder)]
}

#[test]
fn save_fact_of_type_w_is_in_replica_with_author_before_return() {
    let machine = Machine::new();
    let memory = machine.memory();
    memory.create(false).unwrap();
    let saved = memory.save_fact(&fact("f1", MemoryType::W, "The cache is Redis")).unwrap();
    assert_eq!((saved.id.as_str(), saved.delivery), ("f1", Delivery::Stored));
    let row = memory.find("f1").unwrap();
    assert_eq!(Holder::of(&row), Holder::Team);
    assert_eq!(tanmi_memory::Author::of(&row).unwrap().person, "ada");
    assert_eq!(memory.position(), 1);
    let again = memory.save_fact(&fact("f2", MemoryType::W, "the cache is redis.")).unwrap();
    assert!(again.is_duplicate && again.id == "f1");
    assert_eq!(machine.server.data().commands.len(), 1, "a known fact is not sent");
    memory.save_fact(&fact("f3", MemoryType::B, "We moved to Valkey")).unwrap();
    assert_eq!((found(&memory, "valkey"), memory.position()), (one("f3", Holder::Team), 2));
}

#[test]
fn save_fact_of_type_o_stays_on_machine_and_is_searched_with_shared_ones() {
    let machine = Machine::new();
    let memory = machine.memory();
    memory.create(false).unwrap();
    memory.save_fact(&fact("f1", MemoryType::O, "Ada prefers short answers about Redis")).unwrap();
    assert!(machine.server.data().commands.is_empty());
    memory.save_fact(&fact("f2", MemoryType::W, "The cache is Redis")).unwrap();
    let mut both = found(&memory, "redis");
    both.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(both, [one("f1", Holder::Machine), one("f2", Holder::Team)].concat());
    let start = memory.start_memory(&StartQuery { now: NOW, days: 7, facts: 9, topic: "", person: None });
    assert_eq!(start.facts.len(), 2, "a session start tells both");
    memory.record_session(&record::session_line("session_start", "s", NOW, json!({})), NOW).unwrap();
    assert!(!read_all(&machine.replica()).contains("session_start"), "starts of sessions are private");
}

fn read_all(folder: &Path) -> String {
    let daily = folder.join(".tanmi-workspace/memory/daily");
    let files = std::fs::read_dir(daily).unwrap().flatten();
    files.map(|file| std::fs::read_to_string(file.path()).unwrap()).collect()
}

#[test]
fn save_fact_without_server_is_queued_found_and_delivered_once() {
    let machine = Machine::new();
    let offline = machine.offline();
    offline.create(false).unwrap();
    let saved = offline.save_fact(&fact("f1", MemoryType::W, "The cache is Redis")).unwrap();
    assert_eq!(saved.delivery, Delivery::Queued);
    assert_eq!(found(&offline, "redis"), one("f1", Holder::Outbox));
    let again = offline.save_fact(&fact("f2", MemoryType::W, "The cache is Redis")).unwrap();
    assert!(again.is_duplicate, "a repeated call queues nothing");
    let summary = Summary {
        id: "s1".into(),
        topic: "Caches".into(),
        summary: "Compared".into(),
        decisions: vec![],
        todos: vec![],
        at: NOW,
        session: String::new(),
        by: "mcp".into(),
    };
    assert_eq!(offline.save_summary(&summary).unwrap(), Delivery::Queued);
    assert_eq!(offline.outbox().counts().queued, 2);

    let memory = machine.memory();
    memory.save_fact(&fact("f3", MemoryType::W, "Queues drain nightly")).unwrap();
    assert!(memory.outbox().is_empty(), "a call that the server answered delivers what waits");
    assert_eq!(found(&memory, "redis"), one("f1", Holder::Team));
    assert_eq!(machine.server.data().commands.len(), 3);
    let delivered = memory.exchange().unwrap();
    assert_eq!((delivered.sent, machine.server.data().commands.len()), (0, 3));
}

#[test]
fn save_fact_whose_answer_is_lost_is_sent_again_with_its_key() {
    let machine = Machine::new();
    let memory = machine.memory();
    memory.create(false).unwrap();
    machine.server.data().mood = Mood::LoseAnswer;
    let saved = memory.save_fact(&fact("f1", MemoryType::W, "The cache is Redis")).unwrap();
    assert_eq!(saved.delivery, Delivery::Queued);
    machine.server.data().mood = Mood::Answer;
    assert_eq!(memory.exchange().unwrap().sent, 1);
    let data = machine.server.data();
    assert_eq!(data.lines.len(), 1, "saved once");
    let keys: Vec<&serde_json::Value> = data.commands.iter().map(|command| &command["key"]).collect();
    assert!(keys.len() > 1 && keys.iter().all(|key| *key == keys[0]), "{keys:?}");
}

#[test]
fn save_fact_that_supersedes_private_fact_hides_it_here() {
    let machine = Machine::new();
    let memory = machine.memory();
    memory.create(false).unwrap();
    memory.save_fact(&fact("f1", MemoryType::O, "Tabs are better")).unwrap();
    let newer = Fact { supersedes: vec!["f1".into()], ..fact("f2", MemoryType::W, "The team uses tabs") };
    memory.save_fact(&newer).unwrap();
    assert!(!machine.server.data().lines[0].1.contains("supersedes"), "the server does not know the fact");
    let old = memory.find("f1").unwrap();
    assert!(old.hidden && old.replaced_by == "f2");
    let error = memory.save_fact(&Fact { id: "f3".into(), content: "x y".into(), ..newer }).unwrap_err();
    assert!(matches!(&error, Error::NotCurrent { id, .. } if id == "f1"), "{error:?}");
}

#[test]
fn mark_is_routed_to_the_holder_of_the_memory() {
    let machine = Machine::new();
    let memory = machine.memory();
    memory.create(false).unwrap();
    memory.save_fact(&fact("f1", MemoryType::O, "Tabs are better")).unwrap();
    memory.save_fact(&fact("f2", MemoryType::W, "The cache is Redis")).unwrap();
    memory.save_fact(&fact("f3", MemoryType::W, "Queues drain nightly")).unwrap();
    let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
    let rows = memory.mark(Mark::Forget, &ids(&["f1", "f2"]), NOW, "cli").unwrap();
    assert!(rows.iter().all(|row| row.hidden));
    assert_eq!(machine.server.data().commands[2]["command"]["ids"], json!(["f2"]));
    memory.mark(Mark::Promote, &ids(&["f3"]), NOW, "cli").unwrap();
    assert_eq!(memory.find("f3").unwrap().replaced_by, "user:f3");
    assert_eq!(machine.server.data().commands.len(), 3, "others keep a fact that one person promotes");
    let error = machine.offline().mark(Mark::Restore, &ids(&["f2"]), NOW, "cli").unwrap_err();
    assert!(matches!(error, Error::TeamUnreachable { .. }), "{error:?}");
}

#[test]
fn import_keeps_private_lines_here() {
    let machine = Machine::new();
    let memory = machine.memory();
    memory.create(false).unwrap();
    let lines = r#"{"id":"w1","content":"Ports start at 9000","type":"W"}
{"content":
{"id":"o1","content":"Prefers tabs","type":"O","confidence":0.9}
{"id":"t1","content":"Which port?","speaker":"user"}"#;
    let imported = memory.import(lines, NOW, &mut |_, _| {}).unwrap();
    assert_eq!((imported.added, imported.bad_lines, imported.first_bad_line), (3, 1, Some(2)));
    let holder = |id: &str| Holder::of(&memory.find(id).unwrap());
    assert_eq!((holder("w1"), holder("o1"), holder("t1")), (Holder::Team, Holder::Machine, Holder::Machine));
    assert_eq!(machine.server.data().lines.len(), 1);
}

#[test]
fn replica_deleted_is_fetched_again_and_private_facts_stay() {
    let machine = Machine::new();
    let memory = machine.memory();
    memory.create(false).unwrap();
    memory.save_fact(&fact("f1", MemoryType::O, "Tabs are better")).unwrap();
    memory.save_fact(&fact("f2", MemoryType::W, "The cache is Redis")).unwrap();
    fs::remove_tree(&machine.replica()).unwrap();
    assert_eq!(found(&memory, "redis"), []);
    memory.catch_up().unwrap();
    assert_eq!(found(&memory, "redis"), one("f2", Holder::Team));
    assert_eq!(found(&memory, "tabs"), one("f1", Holder::Machine));
    machine.server.data().lines.push((7, fact("f3", MemoryType::W, "Queues drain nightly").to_line()));
    machine.server.data().first = 5;
    memory.catch_up().unwrap();
    assert_eq!((found(&memory, "queues"), memory.position()), (one("f3", Holder::Team), 7), "after a gap");
}

#[test]
fn catch_up_with_answers_that_do_not_agree_ends_with_error() {
    let machine = Machine::new();
    let memory = machine.memory();
    for nonsense in [
        r#"{"changes":[],"gaps":[],"heads":{"memory":9},"now":1,"docs":[],"seq0":0}"#,
        r#"{"changes":[],"gaps":["memory"],"heads":{"memory":9},"now":1,"docs":[],"seq0":3}"#,
        "[]",
        "<html>",
    ] {
        machine.server.data().mood = Mood::Say(nonsense);
        let error = memory.catch_up().unwrap_err();
        assert!(matches!(error, Error::TeamUnreachable { .. }), "{nonsense}: {error:?}");
    }
}

#[test]
fn start_memory_tells_own_last_summary_before_newer_one_of_another() {
    let machine = Machine::new();
    let memory = machine.memory();
    memory.create(false).unwrap();
    let line = |id: &str, person: &str, at: i64| {
        let stamp = tanmi_memory::dates::iso(NOW + at);
        json!({"id": id, "type": "summary", "topic": id, "summary": "x", "timestamp": stamp,
            "source": {"person": person}})
        .to_string()
    };
    let told = |memory: &TeamMemory| {
        let query = StartQuery { now: NOW, days: 7, facts: 9, topic: "", person: None };
        memory.start_memory(&query).summary.map(|row| row.id)
    };
    machine.server.data().lines.push((1, line("s1", "bob", 0)));
    memory.catch_up().unwrap();
    assert_eq!(told(&memory).as_deref(), Some("s1"));
    machine.server.data().lines.extend([(2, line("s2", "ada", 1)), (3, line("s3", "bob", 2))]);
    memory.catch_up().unwrap();
    assert_eq!(told(&memory).as_deref(), Some("s2"));
}

#[test]
fn import_of_many_lines_is_sent_in_parts_and_keeps_line_numbers() {
    let machine = Machine::new();
    let memory = machine.memory();
    let mut lines: Vec<String> =
        (0..1200).map(|n| fact(&format!("f-{n}"), MemoryType::W, &format!("fact {n}")).to_line()).collect();
    lines.insert(700, String::from("no record"));
    let mut shown = Vec::new();
    let result = memory.import(&lines.join("\n"), NOW, &mut |done, _| shown.push(done)).unwrap();
    assert_eq!((result.added, result.bad_lines, result.first_bad_line), (1200, 1, Some(701)));
    let data = machine.server.data();
    assert_eq!(data.commands.iter().filter(|body| body["command"]["type"] == "import").count(), 3);
    assert_eq!(shown[..3], [500, 1000, 1201]);
}

#[test]
fn refused_line_becomes_note_of_its_session() {
    let machine = Machine::new();
    let states = States::new(machine.dir.path());
    states.update("s-1", |state| state.alive_at = NOW).unwrap();
    assert_eq!(
        machine.offline().save_fact(&fact("f-1", MemoryType::W, "bad one")).unwrap().delivery,
        Delivery::Queued
    );
    machine.server.data().mood = Mood::Refuse(409, "NOT_CURRENT", "bad");
    machine.memory().exchange().unwrap();
    let notes = states.read("s-1").refused_writes;
    assert_eq!(
        (notes.len(), notes[0].text.as_str(), notes[0].reason.as_str()),
        (1, "bad one", "not this one")
    );
    assert_eq!(machine.memory().outbox().counts().undelivered, 1, "it stays");
    assert!(!states.exists("s-2"));
}
