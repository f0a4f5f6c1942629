//! Tests of commit, recovery and tail. The recovery table lists the file on disk, the record, and the expected
//! result.

use super::*;

fn is_inside(change: &Change) -> bool {
    let (Change::Write { path, .. } | Change::Move { from: path, .. }) = change;
    !path.starts_with(['/', '.'])
}

struct Fixture {
    dir: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Fixture {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("tmp")).unwrap();
        Fixture { dir }
    }
    fn paths(&self) -> JournalPaths {
        let root = self.dir.path().to_owned();
        JournalPaths { temp: root.join("tmp"), kept: root.join("kept"), root, allows: is_inside }
    }
    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
    fn open(&self) -> Journal {
        let path = self.path("journal");
        let existing = Journal::open_existing(&path, self.paths()).unwrap();
        existing.unwrap_or_else(|| Journal::create_new(&path, self.paths(), 0).unwrap())
    }
    fn write_file(&self, name: &str, text: &str) {
        fs::write_atomic(&self.path(name), text.as_bytes(), self.dir.path(), Durability::Journaled).unwrap();
    }
    fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.path(name)).ok()
    }
    fn write_change(&self, name: &str, text: &str) -> Change {
        let before = fs::read_optional(&self.path(name)).unwrap();
        let before =
            before.map(|bytes| ExpectedFile::of(FileSig::of(&self.path(name)).unwrap().unwrap(), &bytes));
        Change::Write { path: name.into(), before, text: text.into() }
    }
    /// Writes the record and stops before any file is touched, as if the process had been killed.
    fn crash_after_record(&self, changes: Vec<Change>) {
        let mut journal = self.open();
        let folders = apply::top_folder_mtimes(&self.paths(), &changes);
        let record = JournalRecord { seq: journal.seq + 1, time: 0, changes, folders };
        journal.append_record(&record).unwrap();
    }
    fn recover(&self) -> Recovery {
        let mut journal = self.open();
        assert!(journal.needs_recovery());
        let recovery = journal.recover(0).unwrap();
        journal.checkpoint().unwrap();
        assert!(!self.open().needs_recovery());
        recovery
    }
    /// Makes the journal look as if the machine had been restarted since.
    fn reboot(&self) {
        let text = self.read("journal").unwrap().replace(crate::clock::boot_id(), "another-boot");
        self.write_file("journal", &text);
    }
}

#[test]
fn commit_writes_files_and_increments_seq() {
    let fixture = Fixture::new();
    for n in 1..=3 {
        let mut journal = fixture.open();
        assert_eq!((journal.seq(), journal.needs_recovery()), (n - 1, false));
        let change = fixture.write_change("a.md", &format!("text {n}"));
        journal.commit(vec![change, fixture.write_change(&format!("nodes/{n}/Node.md"), "x")], 0).unwrap();
        journal.mark_applied().unwrap();
    }
    assert_eq!(fixture.read("a.md").unwrap(), "text 3");
    assert_eq!(fixture.read("nodes/2/Node.md").unwrap(), "x");
    assert_eq!(fixture.open().seq(), 3);
    assert_eq!(std::fs::read_dir(fixture.path("tmp")).unwrap().count(), 0);
}

#[test]
fn recover_unfinished_write_follows_table() {
    // (file before the change, file when recovery runs, file after recovery, is there a kept copy)
    let cases: &[(Option<&str>, Option<&str>, &str, bool)] = &[
        (None, None, "new", false),
        (None, Some(""), "new", false),
        // A process was killed while it wrote the file.
        (None, Some("ne"), "new", false),
        (Some("old"), Some("ne"), "ne", true),
        (Some("old"), Some("old"), "new", false),
        (Some("old"), None, "new", false),
        (Some("old"), Some(""), "new", false),
        (Some("old"), Some("new"), "new", false),
        (Some("old"), Some("by hand"), "by hand", true),
        (None, Some("by hand"), "by hand", true),
    ];
    for (before, at_recovery, after, kept) in cases {
        let fixture = Fixture::new();
        if let Some(text) = before {
            fixture.write_file("a.md", text);
        }
        fixture.crash_after_record(vec![fixture.write_change("a.md", "new")]);
        match at_recovery {
            None => fs::remove_tree(&fixture.path("a.md")).unwrap(),
            // "old" means the same file, not another file with the same text.
            Some(text) if Some(*text) != *before => fixture.write_file("a.md", text),
            Some(_) => {}
        }
        let recovery = fixture.recover();
        assert_eq!(fixture.read("a.md").unwrap(), *after, "{before:?} {at_recovery:?}");
        assert_eq!(recovery.kept.len(), usize::from(*kept), "{before:?} {at_recovery:?}");
        for (_, copy) in recovery.kept {
            assert_eq!(std::fs::read_to_string(copy).unwrap(), "new");
        }
    }
}

#[test]
fn recover_rewritten_same_text_is_manual_edit() {
    let fixture = Fixture::new();
    fixture.write_file("a.md", "old");
    fixture.crash_after_record(vec![fixture.write_change("a.md", "new")]);
    fixture.write_file("a.md", "old"); // e.g. a checkout: another inode
    assert_eq!(fixture.recover().kept.len(), 1);
    assert_eq!(fixture.read("a.md").unwrap(), "old");
}

#[test]
fn recover_after_reboot_rechecks_every_record() {
    let fixture = Fixture::new();
    for text in ["one", "two"] {
        let mut journal = fixture.open();
        journal
            .commit(vec![fixture.write_change("a.md", text), fixture.write_change("b.md", text)], 0)
            .unwrap();
        journal.mark_applied().unwrap();
    }
    assert!(!fixture.open().needs_recovery());
    fixture.write_file("a.md", ""); // the rename was durable, the content was not
    fixture.write_file("b.md", "by hand");
    fixture.reboot();
    let recovery = fixture.recover();
    assert_eq!(fixture.read("a.md").unwrap(), "two");
    assert_eq!(fixture.read("b.md").unwrap(), "by hand");
    assert_eq!(
        (recovery.written.len(), recovery.kept.len()),
        (1, 0),
        "an edit after the commit is not a conflict"
    );
    assert_eq!(fixture.open().seq(), 2, "numbering continues");
}

/// A change that a person undid before the restart stays undone; a change that the disk lost is repeated.
#[test]
fn recover_after_reboot_repeats_only_lost_changes() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.path("nodes")).unwrap();
    let mut journal = fixture.open();
    for name in ["nodes/a/Node.md", "nodes/b/Node.md"] {
        journal.commit(vec![fixture.write_change(name, "x")], 0).unwrap();
        journal.mark_applied().unwrap();
    }
    journal.commit(vec![Change::Move { from: "nodes/b".into(), to: "trash/b".into() }], 0).unwrap();
    journal.mark_applied().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(20)); // folder times have the resolution of a clock tick
    fs::remove_tree(&fixture.path("nodes/a")).unwrap();
    std::fs::rename(fixture.path("trash/b"), fixture.path("nodes/b")).unwrap();
    fixture.reboot();
    assert_eq!(fixture.recover(), Recovery::default());
    assert_eq!(fixture.read("nodes/a/Node.md"), None, "removed by hand");
    assert_eq!(fixture.read("nodes/b/Node.md").unwrap(), "x", "restored by hand");

    // As if the folder had never reached the disk: it is missing, and its parent has the old modification time.
    let mut journal = fixture.open();
    let before = std::fs::metadata(fixture.path("nodes")).unwrap().modified().unwrap();
    journal.commit(vec![fixture.write_change("nodes/c/Node.md", "c")], 0).unwrap();
    journal.mark_applied().unwrap();
    fs::remove_tree(&fixture.path("nodes/c")).unwrap();
    std::fs::File::open(fixture.path("nodes")).unwrap().set_modified(before).unwrap();
    fixture.reboot();
    assert_eq!(fixture.recover().written, ["nodes/c/Node.md"]);
}

/// Each repeated change gives its folder a new modification time, which says nothing about the next change.
#[test]
fn recover_after_reboot_repeats_every_lost_change_of_a_folder() {
    let fixture = Fixture::new();
    let mut journal = fixture.open();
    let mut commit = |change: Change| {
        journal.commit(vec![change], 0).unwrap();
        journal.mark_applied().unwrap();
    };
    commit(fixture.write_change("nodes/a/Node.md", "a"));
    let on_disk = std::fs::metadata(fixture.path("nodes")).unwrap().modified().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(20)); // folder times have the resolution of a clock tick
    commit(fixture.write_change("nodes/b/Node.md", "b"));
    commit(fixture.write_change("nodes/c/Node.md", "c"));
    commit(Change::Move { from: "nodes/a".into(), to: "trash/a".into() });
    // As if only the first change had reached the disk.
    std::fs::rename(fixture.path("trash/a"), fixture.path("nodes/a")).unwrap();
    for name in ["nodes/b", "nodes/c", "trash"] {
        fs::remove_tree(&fixture.path(name)).unwrap();
    }
    std::fs::File::open(fixture.path("nodes")).unwrap().set_modified(on_disk).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(20));
    fixture.reboot();
    assert_eq!(fixture.recover().written, ["nodes/b/Node.md", "nodes/c/Node.md", "nodes/a"]);
}

#[test]
fn commit_after_last_number_starts_again() {
    let fixture = Fixture::new();
    for mark in ["", "A 18446744073709551615\n"] {
        let header =
            format!("H {{\"version\":1,\"base\":{},\"boot\":\"{}\"}}\n", u64::MAX, crate::clock::boot_id());
        fixture.write_file("journal", &(header + mark));
        let mut journal = fixture.open();
        assert_eq!((journal.seq(), journal.needs_recovery()), (u64::MAX, false));
        journal.commit(vec![fixture.write_change("a.md", mark)], 0).unwrap();
        journal.mark_applied().unwrap();
        assert_eq!(fixture.open().seq(), 1);
    }
}

#[test]
fn commit_failed_before_first_write_is_voided() {
    let fixture = Fixture::new();
    fs::remove_tree(&fixture.path("tmp")).unwrap();
    fixture.write_file("tmp", "not a folder");
    fixture.write_file(
        "journal",
        &format!("H {{\"version\":1,\"base\":0,\"boot\":\"{}\"}}\n", crate::clock::boot_id()),
    );
    let mut journal = fixture.open();
    assert!(matches!(
        journal.commit(vec![fixture.write_change("a.md", "x")], 0),
        Err(CommitError::Io { .. })
    ));
    assert!(!fixture.open().needs_recovery(), "a voided change is not applied later");
    assert_eq!(fixture.read("a.md"), None);
}

#[test]
fn recover_moved_folder_is_not_restored_by_older_writes() {
    let fixture = Fixture::new();
    let mut journal = fixture.open();
    journal.commit(vec![fixture.write_change("nodes/x/Node.md", "x")], 0).unwrap();
    journal.mark_applied().unwrap();
    journal.commit(vec![Change::Move { from: "nodes/x".into(), to: "trash/x".into() }], 0).unwrap();
    journal.mark_applied().unwrap();
    fixture.reboot();
    assert_eq!(fixture.recover(), Recovery::default());
    assert_eq!(fixture.read("nodes/x/Node.md"), None);
    assert_eq!(fixture.read("trash/x/Node.md").unwrap(), "x");
}

#[test]
fn recover_unfinished_move_is_finished() {
    let fixture = Fixture::new();
    let mut journal = fixture.open();
    journal.commit(vec![fixture.write_change("nodes/x/Node.md", "x")], 0).unwrap();
    journal.mark_applied().unwrap();
    fixture.crash_after_record(vec![Change::Move { from: "nodes/x".into(), to: "trash/x".into() }]);
    assert_eq!(fixture.recover().written, ["nodes/x"]);
    assert_eq!(fixture.read("trash/x/Node.md").unwrap(), "x");
}

#[test]
fn recover_torn_record_is_ignored() {
    let fixture = Fixture::new();
    fixture.write_file("a.md", "old");
    fixture.crash_after_record(vec![fixture.write_change("a.md", "new")]);
    let text = fixture.read("journal").unwrap();
    let body = text.find("\nR ").unwrap() + 1;
    for cut in body + 1..text.len() {
        fixture.write_file("journal", &text[..cut]);
        assert_eq!(fixture.recover(), Recovery::default(), "cut at {cut}");
        assert_eq!(fixture.read("a.md").unwrap(), "old");
    }
}

#[test]
fn recover_damaged_line_is_kept_and_reported() {
    let fixture = Fixture::new();
    fixture.write_file("a.md", "old");
    fixture.crash_after_record(vec![fixture.write_change("a.md", "new")]);
    let text = fixture.read("journal").unwrap().replace("new", "nev");
    fixture.write_file("journal", &text);
    let recovery = fixture.recover();
    assert!(std::fs::read_to_string(recovery.damaged.unwrap()).unwrap().contains("nev"));
    assert_eq!(fixture.read("a.md").unwrap(), "old");
}

/// A recovery that is interrupted, or fails at a later file, is repeated by the next process.
#[test]
fn recover_twice_keeps_one_copy() {
    let fixture = Fixture::new();
    fixture.crash_after_record(vec![fixture.write_change("a.md", "new")]);
    fixture.write_file("a.md", "by hand");
    fixture.write_file("journal", &(fixture.read("journal").unwrap() + "damage\n"));
    let recoveries = [(); 3].map(|()| fixture.open().recover(0).unwrap());
    assert_eq!(recoveries[0].kept.len(), 1);
    assert!(recoveries.iter().all(|recovery| *recovery == recoveries[0]));
    assert_eq!(std::fs::read_dir(fixture.path("kept")).unwrap().count(), 2);
}

#[test]
fn commit_file_edited_since_read_is_conflict() {
    let fixture = Fixture::new();
    fixture.write_file("a.md", "old");
    let change = fixture.write_change("a.md", "new");
    fixture.write_file("a.md", "by hand");
    let mut journal = fixture.open();
    assert!(matches!(journal.commit(vec![change], 0), Err(CommitError::Conflict { path }) if path == "a.md"));
    assert_eq!(fixture.read("a.md").unwrap(), "by hand");
    assert!(!fixture.open().needs_recovery());
}

#[test]
fn recover_record_outside_root_is_refused() {
    let fixture = Fixture::new();
    let outside = tempfile::tempdir().unwrap();
    for target in [outside.path().join("x").display().to_string(), String::from("../evil")] {
        fixture.crash_after_record(vec![Change::Write { path: target, before: None, text: "evil".into() }]);
        let recovery = fixture.recover();
        assert!(recovery.written.is_empty() && recovery.damaged.is_some());
    }
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[test]
fn tail_reports_every_change_once() {
    let fixture = Fixture::new();
    let commit = |name: &str, text: &str| {
        let mut journal = fixture.open();
        let change = fixture.write_change(name, text);
        journal.commit(vec![change], 0).unwrap();
        journal.mark_applied().unwrap();
    };
    let change = |seq: u64, path: &str| JournalEvent::Change { seq, paths: vec![path.into()] };
    commit("a.md", "1");
    let mut late = JournalTail::from_end(&fixture.path("journal"));
    let mut early = JournalTail::after(&fixture.path("journal"), 0);
    assert_eq!(early.poll().unwrap(), [change(1, "a.md")]);
    commit("b.md", "2");
    commit("a.md", "3");
    for tail in [&mut late, &mut early] {
        assert_eq!(tail.poll().unwrap(), [change(2, "b.md"), change(3, "a.md")]);
        assert_eq!(tail.poll().unwrap(), []);
    }

    // Across a checkpoint: the rest of the old file is reported, then the new file.
    commit("c.md", "4");
    fixture.open().checkpoint().unwrap();
    commit("d.md", "5");
    assert_eq!(late.poll().unwrap(), [change(4, "c.md"), change(5, "d.md")]);

    // An unfinished record is reported only after recovery has finished it.
    fixture.crash_after_record(vec![fixture.write_change("e.md", "6")]);
    assert_eq!(late.poll().unwrap(), []);
    fixture.recover();
    assert_eq!(late.poll().unwrap(), [change(6, "e.md")]);

    // Two checkpoints between two polls: the changes between them are unknown, which is reported as a gap.
    commit("f.md", "7");
    fixture.open().checkpoint().unwrap();
    commit("g.md", "8");
    fixture.open().checkpoint().unwrap();
    commit("h.md", "9");
    assert_eq!(late.poll().unwrap(), [change(7, "f.md"), JournalEvent::Gap { seq: 8 }, change(9, "h.md")]);

    // The journal was deleted: its numbers start again.
    std::fs::remove_file(fixture.path("journal")).unwrap();
    commit("i.md", "10");
    assert_eq!(late.poll().unwrap(), [JournalEvent::Gap { seq: 0 }, change(1, "i.md")]);
}

#[test]
fn tail_after_position_reports_later_changes_or_gap() {
    let fixture = Fixture::new();
    let commit = |name: &str, text: &str| {
        let mut journal = fixture.open();
        let change = fixture.write_change(name, text);
        journal.commit(vec![change], 0).unwrap();
        journal.mark_applied().unwrap();
    };
    let poll_after = |seq: u64| JournalTail::after(&fixture.path("journal"), seq).poll().unwrap();
    let change = |seq: u64, path: &str| JournalEvent::Change { seq, paths: vec![path.into()] };
    assert_eq!(poll_after(0), [], "there is no journal yet");
    commit("a.md", "1");
    commit("b.md", "2");
    commit("c.md", "3");
    assert_eq!(poll_after(0), [change(1, "a.md"), change(2, "b.md"), change(3, "c.md")]);
    assert_eq!(poll_after(1), [change(2, "b.md"), change(3, "c.md")]);
    assert_eq!(poll_after(3), []);
    assert_eq!(poll_after(4), [JournalEvent::Gap { seq: 3 }], "the position is of another journal");

    fixture.open().checkpoint().unwrap();
    commit("d.md", "4");
    assert_eq!(poll_after(2), [JournalEvent::Gap { seq: 3 }, change(4, "d.md")]);
    assert_eq!(poll_after(3), [change(4, "d.md")]);
}

#[test]
fn tail_voided_change_has_no_paths() {
    let fixture = Fixture::new();
    fixture.write_file("a.md", "old");
    let mut tail = JournalTail::after(&fixture.path("journal"), 0);
    let mut journal = fixture.open();
    let change = fixture.write_change("a.md", "new");
    journal.commit(vec![change], 0).unwrap();
    journal.void_last_record().unwrap();
    assert_eq!(tail.poll().unwrap(), [JournalEvent::Change { seq: 1, paths: Vec::new() }]);
    let change = fixture.write_change("a.md", "newer");
    journal.commit(vec![change], 0).unwrap();
    journal.mark_applied().unwrap();
    assert_eq!(tail.poll().unwrap(), [JournalEvent::Change { seq: 2, paths: vec!["a.md".into()] }]);
}

#[test]
fn commit_new_file_where_one_exists_is_conflict() {
    let fixture = Fixture::new();
    let change = fixture.write_change("nodes/a/Node.md", "new");
    std::fs::create_dir_all(fixture.path("nodes/a")).unwrap();
    fixture.write_file("nodes/a/Node.md", "by hand");
    let mut journal = fixture.open();
    let committed = journal.commit(vec![change.clone()], 0);
    assert!(matches!(committed, Err(CommitError::Conflict { path }) if path == "nodes/a/Node.md"));
    assert!(!fixture.open().needs_recovery(), "a voided change is not applied later");
    // As if the file had appeared after the last check.
    let applied = apply::apply(&fixture.paths(), &[change]).unwrap();
    assert_eq!(std::fs::read_to_string(&applied.kept[0].1).unwrap(), "new");
    assert_eq!(fixture.read("nodes/a/Node.md").unwrap(), "by hand");
    assert_eq!(std::fs::read_dir(fixture.path("tmp")).unwrap().count(), 0);
}

#[test]
fn recover_new_folder_without_its_file_is_completed() {
    let fixture = Fixture::new();
    fixture.crash_after_record(vec![fixture.write_change("nodes/a/Node.md", "new")]);
    std::fs::create_dir_all(fixture.path("nodes/a")).unwrap();
    assert_eq!(fixture.recover().written, ["nodes/a/Node.md"]);
    assert_eq!(fixture.read("nodes/a/Node.md").unwrap(), "new");
}

#[test]
fn commit_new_file_that_cannot_be_written_leaves_no_folder() {
    let fixture = Fixture::new();
    // The name is longer than any file system allows, that of the folder is not.
    let change = fixture.write_change(&format!("nodes/a/{}", "n".repeat(300)), "new");
    assert!(apply::apply(&fixture.paths(), &[change]).is_err());
    assert!(fixture.path("nodes").exists() && !fixture.path("nodes/a").exists());
}

#[test]
fn commit_new_file_in_existing_folder_keeps_other_files() {
    let fixture = Fixture::new();
    std::fs::create_dir_all(fixture.path("nodes/empty")).unwrap();
    std::fs::create_dir_all(fixture.path("nodes/full")).unwrap();
    fixture.write_file("nodes/full/notes.txt", "by hand");
    let changes = ["nodes/empty/Node.md", "nodes/full/Node.md"].map(|name| fixture.write_change(name, "new"));
    let result = fixture.open().commit(changes.to_vec(), 0).unwrap();
    for (name, sig) in ["nodes/empty/Node.md", "nodes/full/Node.md"].iter().zip(result.sigs) {
        assert_eq!(fixture.read(name).unwrap(), "new");
        assert_eq!(FileSig::of(&fixture.path(name)).unwrap(), sig);
    }
    assert_eq!(fixture.read("nodes/full/notes.txt").unwrap(), "by hand");
}

#[cfg(unix)]
#[test]
fn commit_new_file_does_not_follow_links() {
    let outside = tempfile::tempdir().unwrap();
    for (link, target) in
        [("nodes", outside.path()), ("nodes/a", outside.path()), ("nodes/a", Path::new("/none"))]
    {
        let fixture = Fixture::new();
        let change = fixture.write_change("nodes/a/Node.md", "new");
        if link != "nodes" {
            std::fs::create_dir(fixture.path("nodes")).unwrap();
        }
        std::os::unix::fs::symlink(target, fixture.path(link)).unwrap();
        let error = fixture.open().commit(vec![change], 0).unwrap_err();
        assert!(error.to_string().contains("symbolic link"), "{link}: {error}");
        assert!(fs::is_link(&fixture.path(link)));
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    }
}
