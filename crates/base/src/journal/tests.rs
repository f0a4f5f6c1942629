//! Recovery as a table: what is on the disk, what the record wants, what must be there afterwards.

use super::*;

fn is_inside(change: &Change) -> bool {
    let (Change::Write { path, .. } | Change::Move { from: path, .. }) = change;
    !path.starts_with(['/', '.'])
}

struct Bench {
    dir: tempfile::TempDir,
}

impl Bench {
    fn new() -> Bench {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("tmp")).unwrap();
        Bench { dir }
    }
    fn places(&self) -> JournalPaths {
        let root = self.dir.path().to_owned();
        JournalPaths { temp: root.join("tmp"), kept: root.join("kept"), root, allows: is_inside }
    }
    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
    fn open(&self) -> Journal {
        Journal::open(&self.path("journal"), self.places(), 0).unwrap()
    }
    fn put(&self, name: &str, text: &str) {
        fs::write_atomic(&self.path(name), text.as_bytes(), self.dir.path(), Durability::Journaled).unwrap();
    }
    fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.path(name)).ok()
    }
    fn write(&self, name: &str, text: &str) -> Change {
        let before = fs::read_optional(&self.path(name)).unwrap();
        let before =
            before.map(|bytes| ExpectedFile::of(FileSig::of(&self.path(name)).unwrap().unwrap(), &bytes));
        Change::Write { path: name.into(), before, text: text.into() }
    }
    /// The record reaches the disk, the process dies before it touches a file.
    fn die_after_record(&self, changes: Vec<Change>) {
        let mut journal = self.open();
        let folders = changes.iter().map(|change| apply::folder_time(&self.places(), change)).collect();
        let record = Record { seq: journal.seq + 1, time: 0, changes, folders };
        journal.append_record(&record).unwrap();
    }
    fn recover(&self) -> Recovery {
        let mut journal = self.open();
        assert!(journal.needs_recovery());
        let recovery = journal.recover().unwrap();
        journal.checkpoint().unwrap();
        assert!(!self.open().needs_recovery());
        recovery
    }
    /// As if the machine had been restarted since.
    fn reboot(&self) {
        let text = self.read("journal").unwrap().replace(crate::clock::boot_id(), "another-boot");
        self.put("journal", &text);
    }
}

#[test]
fn a_commit_is_carried_out_and_numbered() {
    let bench = Bench::new();
    for n in 1..=3 {
        let mut journal = bench.open();
        assert_eq!((journal.seq(), journal.needs_recovery()), (n - 1, false));
        let change = bench.write("a.md", &format!("text {n}"));
        journal.commit(vec![change, bench.write(&format!("nodes/{n}/Node.md"), "x")], 0).unwrap();
        journal.mark_applied().unwrap();
    }
    assert_eq!(bench.read("a.md").unwrap(), "text 3");
    assert_eq!(bench.read("nodes/2/Node.md").unwrap(), "x");
    assert_eq!(bench.open().seq(), 3);
    assert_eq!(std::fs::read_dir(bench.path("tmp")).unwrap().count(), 0);
}

#[test]
fn recovery_table() {
    // (file before the change, file when recovery runs, what must be there after, kept aside?)
    let cases: &[(Option<&str>, Option<&str>, &str, bool)] = &[
        (None, None, "new", false),
        (Some("old"), Some("old"), "new", false),
        (Some("old"), None, "new", false),
        (Some("old"), Some(""), "new", false),
        (Some("old"), Some("new"), "new", false),
        (Some("old"), Some("by hand"), "by hand", true),
        (None, Some("by hand"), "by hand", true),
    ];
    for (before, at_recovery, after, kept) in cases {
        let bench = Bench::new();
        if let Some(text) = before {
            bench.put("a.md", text);
        }
        bench.die_after_record(vec![bench.write("a.md", "new")]);
        match at_recovery {
            None => fs::remove_tree(&bench.path("a.md")).unwrap(),
            // "old" stands for the very file, not for a rewrite of the same text.
            Some(text) if Some(*text) != *before => bench.put("a.md", text),
            Some(_) => {}
        }
        let recovery = bench.recover();
        assert_eq!(bench.read("a.md").unwrap(), *after, "{before:?} {at_recovery:?}");
        assert_eq!(recovery.kept.len(), usize::from(*kept), "{before:?} {at_recovery:?}");
        for (_, aside) in recovery.kept {
            assert_eq!(std::fs::read_to_string(aside).unwrap(), "new");
        }
    }
}

#[test]
fn the_same_text_put_back_by_hand_is_a_hand_edit() {
    let bench = Bench::new();
    bench.put("a.md", "old");
    bench.die_after_record(vec![bench.write("a.md", "new")]);
    bench.put("a.md", "old"); // e.g. a checkout: another inode
    assert_eq!(bench.recover().kept.len(), 1);
    assert_eq!(bench.read("a.md").unwrap(), "old");
}

#[test]
fn after_a_restart_every_record_is_looked_at_again() {
    let bench = Bench::new();
    for text in ["one", "two"] {
        let mut journal = bench.open();
        journal.commit(vec![bench.write("a.md", text), bench.write("b.md", text)], 0).unwrap();
        journal.mark_applied().unwrap();
    }
    assert!(!bench.open().needs_recovery());
    bench.put("a.md", ""); // the rename was durable, the content was not
    bench.put("b.md", "by hand");
    bench.reboot();
    let recovery = bench.recover();
    assert_eq!(bench.read("a.md").unwrap(), "two");
    assert_eq!(bench.read("b.md").unwrap(), "by hand");
    assert_eq!(
        (recovery.written.len(), recovery.kept.len()),
        (1, 0),
        "an edit after the fact is nobody's conflict"
    );
    assert_eq!(bench.open().seq(), 2, "numbers go on");
}

/// What a person undid before the machine was restarted stays undone; what the disk lost comes back.
#[test]
fn after_a_restart_only_what_got_lost_is_repeated() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("nodes")).unwrap();
    let mut journal = bench.open();
    for name in ["nodes/a/Node.md", "nodes/b/Node.md"] {
        journal.commit(vec![bench.write(name, "x")], 0).unwrap();
        journal.mark_applied().unwrap();
    }
    journal.commit(vec![Change::Move { from: "nodes/b".into(), to: "trash/b".into() }], 0).unwrap();
    journal.mark_applied().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(20)); // folder times have the grain of a clock tick
    fs::remove_tree(&bench.path("nodes/a")).unwrap();
    std::fs::rename(bench.path("trash/b"), bench.path("nodes/b")).unwrap();
    bench.reboot();
    assert_eq!(bench.recover(), Recovery::default());
    assert_eq!(bench.read("nodes/a/Node.md"), None, "removed by hand");
    assert_eq!(bench.read("nodes/b/Node.md").unwrap(), "x", "brought back by hand");

    // As if the folder had never reached the disk: gone, and the folder around it as old as before.
    let mut journal = bench.open();
    let before = std::fs::metadata(bench.path("nodes")).unwrap().modified().unwrap();
    journal.commit(vec![bench.write("nodes/c/Node.md", "c")], 0).unwrap();
    journal.mark_applied().unwrap();
    fs::remove_tree(&bench.path("nodes/c")).unwrap();
    std::fs::File::open(bench.path("nodes")).unwrap().set_modified(before).unwrap();
    bench.reboot();
    assert_eq!(bench.recover().written, ["nodes/c/Node.md"]);
}

#[test]
fn a_change_that_could_not_begin_is_taken_back() {
    let bench = Bench::new();
    fs::remove_tree(&bench.path("tmp")).unwrap();
    bench.put("tmp", "not a folder");
    bench.put(
        "journal",
        &format!("H {{\"version\":1,\"base\":0,\"boot\":\"{}\"}}\n", crate::clock::boot_id()),
    );
    let mut journal = bench.open();
    assert!(matches!(journal.commit(vec![bench.write("a.md", "x")], 0), Err(CommitError::Io { .. })));
    assert!(!bench.open().needs_recovery(), "what was refused is not done later");
    assert_eq!(bench.read("a.md"), None);
}

#[test]
fn a_removed_folder_is_not_brought_back_by_older_writes() {
    let bench = Bench::new();
    let mut journal = bench.open();
    journal.commit(vec![bench.write("nodes/x/Node.md", "x")], 0).unwrap();
    journal.mark_applied().unwrap();
    journal.commit(vec![Change::Move { from: "nodes/x".into(), to: "trash/x".into() }], 0).unwrap();
    journal.mark_applied().unwrap();
    bench.reboot();
    assert_eq!(bench.recover(), Recovery::default());
    assert_eq!(bench.read("nodes/x/Node.md"), None);
    assert_eq!(bench.read("trash/x/Node.md").unwrap(), "x");
}

#[test]
fn a_move_is_finished() {
    let bench = Bench::new();
    let mut journal = bench.open();
    journal.commit(vec![bench.write("nodes/x/Node.md", "x")], 0).unwrap();
    journal.mark_applied().unwrap();
    bench.die_after_record(vec![Change::Move { from: "nodes/x".into(), to: "trash/x".into() }]);
    assert_eq!(bench.recover().written, ["nodes/x"]);
    assert_eq!(bench.read("trash/x/Node.md").unwrap(), "x");
}

#[test]
fn a_torn_record_was_never_promised() {
    let bench = Bench::new();
    bench.put("a.md", "old");
    bench.die_after_record(vec![bench.write("a.md", "new")]);
    let text = bench.read("journal").unwrap();
    let body = text.find("\nR ").unwrap() + 1;
    for cut in body + 1..text.len() {
        bench.put("journal", &text[..cut]);
        assert_eq!(bench.recover(), Recovery::default(), "cut at {cut}");
        assert_eq!(bench.read("a.md").unwrap(), "old");
    }
}

#[test]
fn a_damaged_line_is_set_aside_and_reported() {
    let bench = Bench::new();
    bench.put("a.md", "old");
    bench.die_after_record(vec![bench.write("a.md", "new")]);
    let text = bench.read("journal").unwrap().replace("new", "nev");
    bench.put("journal", &text);
    let recovery = bench.recover();
    assert!(std::fs::read_to_string(recovery.damaged.unwrap()).unwrap().contains("nev"));
    assert_eq!(bench.read("a.md").unwrap(), "old");
}

#[test]
fn an_edit_between_look_and_write_is_a_conflict_and_changes_nothing() {
    let bench = Bench::new();
    bench.put("a.md", "old");
    let change = bench.write("a.md", "new");
    bench.put("a.md", "by hand");
    let mut journal = bench.open();
    assert!(matches!(journal.commit(vec![change], 0), Err(CommitError::Conflict { path }) if path == "a.md"));
    assert_eq!(bench.read("a.md").unwrap(), "by hand");
    assert!(!bench.open().needs_recovery());
}

#[test]
fn a_record_that_names_a_foreign_place_is_not_carried_out() {
    let bench = Bench::new();
    let outside = tempfile::tempdir().unwrap();
    for target in [outside.path().join("x").display().to_string(), String::from("../evil")] {
        bench.die_after_record(vec![Change::Write { path: target, before: None, text: "evil".into() }]);
        let recovery = bench.recover();
        assert!(recovery.written.is_empty() && recovery.damaged.is_some());
    }
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[test]
fn whoever_follows_is_told_of_everything_once() {
    let bench = Bench::new();
    let commit = |name: &str, text: &str| {
        let mut journal = bench.open();
        let change = bench.write(name, text);
        journal.commit(vec![change], 0).unwrap();
        journal.mark_applied().unwrap();
    };
    let change = |seq: u64, path: &str| JournalEvent::Change { seq, paths: vec![path.into()] };
    commit("a.md", "1");
    let mut late = JournalTail::from_end(&bench.path("journal"));
    let mut early = JournalTail::from_start(&bench.path("journal"));
    assert_eq!(early.poll().unwrap(), [change(1, "a.md")]);
    commit("b.md", "2");
    commit("a.md", "3");
    for tail in [&mut late, &mut early] {
        assert_eq!(tail.poll().unwrap(), [change(2, "b.md"), change(3, "a.md")]);
        assert_eq!(tail.poll().unwrap(), []);
    }

    // Past a checkpoint: what the old file still had is not lost, and the new one goes on.
    commit("c.md", "4");
    bench.open().checkpoint().unwrap();
    commit("d.md", "5");
    assert_eq!(late.poll().unwrap(), [change(4, "c.md"), change(5, "d.md")]);

    // A record that is not carried out is told when somebody has finished it, and not before.
    bench.die_after_record(vec![bench.write("e.md", "6")]);
    assert_eq!(late.poll().unwrap(), []);
    bench.recover();
    assert_eq!(late.poll().unwrap(), [change(6, "e.md")]);

    // Two checkpoints while nobody looked: what was between them is lost to the follower, who is told so.
    commit("f.md", "7");
    bench.open().checkpoint().unwrap();
    commit("g.md", "8");
    bench.open().checkpoint().unwrap();
    commit("h.md", "9");
    assert_eq!(late.poll().unwrap(), [change(7, "f.md"), JournalEvent::Gap { seq: 8 }, change(9, "h.md")]);

    // Somebody threw the journal away: its numbers begin again.
    std::fs::remove_file(bench.path("journal")).unwrap();
    commit("i.md", "10");
    assert_eq!(late.poll().unwrap(), [JournalEvent::Gap { seq: 0 }, change(1, "i.md")]);
}

#[test]
fn a_change_that_was_refused_is_told_as_one_of_nothing() {
    let bench = Bench::new();
    bench.put("a.md", "old");
    let mut tail = JournalTail::from_start(&bench.path("journal"));
    let mut journal = bench.open();
    let change = bench.write("a.md", "new");
    journal.commit(vec![change], 0).unwrap();
    journal.void().unwrap();
    assert_eq!(tail.poll().unwrap(), [JournalEvent::Change { seq: 1, paths: Vec::new() }]);
    let change = bench.write("a.md", "newer");
    journal.commit(vec![change], 0).unwrap();
    journal.mark_applied().unwrap();
    assert_eq!(tail.poll().unwrap(), [JournalEvent::Change { seq: 2, paths: vec!["a.md".into()] }]);
}
