//! Recovery as a table: what is on the disk, what the record wants, what must be there afterwards.

use super::*;

struct Bench {
    dir: tempfile::TempDir,
}

impl Bench {
    fn new() -> Bench {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("tmp")).unwrap();
        Bench { dir }
    }
    fn places(&self) -> Places {
        let root = self.dir.path().to_owned();
        Places { temp: root.join("tmp"), kept: root.join("kept"), root }
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
        let before = before.map(|bytes| Before::of(FileSig::of(&self.path(name)).unwrap().unwrap(), &bytes));
        Change::Write { path: name.into(), before, text: text.into() }
    }
    /// The record reaches the disk, the process dies before it touches a file.
    fn die_after_record(&self, changes: Vec<Change>) {
        let mut journal = self.open();
        let record = Record { seq: journal.seq + 1, time: 0, changes };
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
    assert_eq!(watch_seq(&bench.path("journal")).unwrap(), Some(3));
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
    assert_eq!((recovery.written.len(), recovery.kept.len()), (1, 1));
    assert_eq!(bench.open().seq(), 2, "numbers go on");
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
