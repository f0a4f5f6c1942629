use super::*;
use crate::scripted::{Mood, ScriptedServer};

const NOW: Millis = 1_765_432_100_000;

struct Fixture {
    dir: tempfile::TempDir,
    server: ScriptedServer,
    outbox: Outbox,
}

impl Fixture {
    fn new() -> Fixture {
        let dir = tempfile::tempdir().unwrap();
        let outbox = Outbox::new(&dir.path().join("own"));
        Fixture { dir, server: ScriptedServer::start(), outbox }
    }

    fn put(&self, id: &str) {
        let line = serde_json::json!({"id": id, "type": "fact", "content": id}).to_string();
        self.outbox.put(&Entry::new(QueuedWrite::Line(line), None, new_key(), NOW)).unwrap();
    }

    fn deliver(&self) -> Delivered {
        let connection = Connection::new(&self.server.member(), self.dir.path(), || NOW);
        self.outbox.deliver(&connection, "desk", NOW).unwrap()
    }

    fn sent(&self) -> Vec<String> {
        self.server.data().lines.iter().map(|(_, line)| line.clone()).collect()
    }
}

#[test]
fn entry_read_back_is_the_same_and_keeps_unknown_keys() {
    let fixture = Fixture::new();
    fixture.put("f1");
    let name = entry_names(&fixture.outbox.folder()).remove(0);
    let path = fixture.outbox.folder().join(name);
    let mut text: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!((&text["type"], text["line"].is_string()), (&Value::from("queued"), true));
    text["later"] = Value::from(7);
    assert_eq!(serde_json::to_value(serde_json::from_value::<Entry>(text.clone()).unwrap()).unwrap(), text);
    let run: RunRequest = serde_json::from_value(serde_json::json!({
        "key": "k", "stream": "ws-mj2hy912-u02rz9", "operator": "AI", "session": null,
        "command": {"command": "append_log", "target": "workspace", "event": "tried"},
    }))
    .unwrap();
    let entry = Entry::new(QueuedWrite::Run(Box::new(run)), Some("s1"), "k".into(), NOW);
    let text = serde_json::to_value(&entry).unwrap();
    assert_eq!(serde_json::to_value(serde_json::from_value::<Entry>(text.clone()).unwrap()).unwrap(), text);
}

#[test]
fn deliver_sends_in_order_and_sets_refused_entries_aside() {
    let fixture = Fixture::new();
    assert!(fixture.outbox.is_empty());
    ["one", "bad", "two"].iter().for_each(|id| fixture.put(id));
    fixture.server.data().mood = Mood::Refuse(400, "INVALID_ARGUMENT", "bad");
    let delivered = fixture.deliver();
    assert_eq!((delivered.sent, delivered.refused.len(), delivered.left), (2, 1, 0));
    let sent = fixture.sent();
    assert!(sent.len() == 2 && sent[0].contains("one") && sent[1].contains("two"), "{sent:?}");
    assert_eq!(fixture.outbox.counts(), OutboxCounts { queued: 0, undelivered: 1 });

    let told = fixture.outbox.take_untold();
    assert_eq!(told[0].1.refusal.as_ref().unwrap().message, "not this one");
    assert!(fixture.outbox.take_untold().is_empty(), "told once");
    assert_eq!(fixture.outbox.retry(&[]).unwrap(), 1);
    fixture.server.data().mood = Mood::Answer;
    assert_eq!(fixture.deliver().sent, 1);
    assert_eq!(fixture.outbox.counts(), OutboxCounts::default());
}

#[test]
fn deliver_with_refused_token_keeps_every_entry() {
    let fixture = Fixture::new();
    ["one", "two"].iter().for_each(|id| fixture.put(id));
    fixture.server.data().mood = Mood::Refuse(401, "UNAUTHORIZED", "");
    let delivered = fixture.deliver();
    assert_eq!((delivered.sent, delivered.refused.len(), delivered.left), (0, 0, 2));
    assert!(matches!(delivered.problem, Some(ClientError::Refused { status: 401, .. })));
    assert_eq!(fixture.server.data().commands.len(), 1, "the second is not tried");
    fixture.server.data().mood = Mood::Refuse(429, "TOO_MANY", "");
    assert_eq!(fixture.deliver().left, 2, "a limit of requests is no refusal");
}

#[test]
fn deliver_while_another_process_delivers_sends_nothing() {
    let fixture = Fixture::new();
    fixture.put("one");
    let lock = Lock::exclusive(&fixture.outbox.lock_path()).unwrap();
    assert!(fixture.deliver().is_busy);
    drop(lock);
    assert_eq!(fixture.deliver().sent, 1);
}

#[test]
fn put_beyond_limit_is_refused() {
    let fixture = Fixture::new();
    fixture.put("one");
    for n in 2..=MAX_ENTRIES {
        std::fs::File::create(fixture.outbox.folder().join(format!("{n:010}-x.json"))).unwrap();
    }
    let entry = Entry::new(QueuedWrite::Line("{}".into()), None, new_key(), NOW);
    assert!(matches!(fixture.outbox.put(&entry), Err(OutboxError::Full)));
    assert_eq!(fixture.outbox.counts().queued, MAX_ENTRIES);
}

#[test]
fn discard_removes_named_entries_and_without_names_refused_ones() {
    let fixture = Fixture::new();
    ["one", "bad"].iter().for_each(|id| fixture.put(id));
    assert_eq!(fixture.outbox.discard(&[]).unwrap(), 0, "waiting entries are named");
    let names: Vec<String> = fixture.outbox.list().into_iter().map(|(name, _)| name).collect();
    assert_eq!(fixture.outbox.discard(&names[..1]).unwrap(), 1);
    fixture.server.data().mood = Mood::Refuse(403, "FORBIDDEN", "bad");
    fixture.deliver();
    assert_eq!(fixture.outbox.discard(&[]).unwrap(), 1);
    assert_eq!(fixture.outbox.counts(), OutboxCounts::default());
}

#[test]
fn deliver_log_line_tells_how_long_ago_it_was_written() {
    let fixture = Fixture::new();
    let run: RunRequest = serde_json::from_value(serde_json::json!({
        "key": "k-12345678", "stream": "ws-mj2hy912-u02rz9", "operator": "AI",
        "command": {"command": "append_log", "target": "workspace", "event": "tried"},
    }))
    .unwrap();
    for at in [NOW - 90_000, NOW + 3_600_000] {
        let write = QueuedWrite::Run(Box::new(run.clone()));
        fixture.outbox.put(&Entry::new(write, None, new_key(), at)).unwrap();
    }
    assert_eq!(fixture.deliver().sent, 2);
    let ages: Vec<Value> = fixture.server.data().commands.iter().map(|body| body["age"].clone()).collect();
    assert_eq!(ages, [90_000, 0], "a clock that was set back gives no negative age");
}

impl Fixture {
    /// Returns the fixture with one entry that the server refused.
    fn with_refused() -> Fixture {
        let fixture = Fixture::new();
        fixture.put("bad");
        fixture.server.data().mood = Mood::Refuse(400, "INVALID_ARGUMENT", "bad");
        assert_eq!(fixture.deliver().refused.len(), 1);
        fixture
    }

    fn undelivered(&self) -> Vec<String> {
        entry_names(&self.outbox.undelivered())
    }
}

#[test]
fn refused_entry_is_not_told_while_another_process_moves_or_deletes_it() {
    let fixture = Fixture::with_refused();
    let lock = Lock::exclusive(&fixture.outbox.lock_path()).unwrap();
    assert!(fixture.outbox.take_untold().is_empty());
    drop(lock);
    assert_eq!(fixture.outbox.take_untold().len(), 1);
}

#[test]
fn told_entry_keeps_its_id_and_is_not_read_again() {
    let fixture = Fixture::with_refused();
    let id = fixture.outbox.list().remove(0).0;
    assert_eq!(fixture.outbox.take_untold()[0].0, id);
    assert_eq!(fixture.undelivered(), [format!("{id}.told.json")]);
    assert_eq!(fixture.outbox.list()[0].0, id);
    assert_eq!(fixture.outbox.retry(std::slice::from_ref(&id)).unwrap(), 1);
    assert_eq!(entry_names(&fixture.outbox.folder()), [format!("{id}.json")]);
    assert_eq!(fixture.deliver().refused.len(), 1);
    assert_eq!(fixture.outbox.take_untold().len(), 1, "one that is refused again is told again");
}

#[test]
fn entry_that_an_earlier_version_told_is_not_told_again() {
    let fixture = Fixture::with_refused();
    let path = fixture.outbox.undelivered().join(&fixture.undelivered()[0]);
    let mut entry = super::read(&path).unwrap();
    entry.refusal.as_mut().unwrap().is_told = true;
    super::write(&path, &entry).unwrap();
    assert!(fixture.outbox.take_untold().is_empty());
    assert!(fixture.undelivered()[0].ends_with(".told.json"));
}

#[test]
fn retry_counts_only_entries_that_it_queued() {
    let fixture = Fixture::with_refused();
    let damaged = fixture.outbox.undelivered().join("0000000009-x.json");
    tanmi_base::fs::write_private(&damaged, b"{").unwrap();
    assert_eq!(fixture.outbox.retry(&[]).unwrap(), 1);
    assert_eq!(fixture.outbox.counts(), OutboxCounts { queued: 1, undelivered: 1 });
}
