//! What only the file store promises: people's edits are seen, damage is contained, nothing is left behind.

use std::path::PathBuf;

use super::*;
use crate::store::Access;

struct Files {
    dir: tempfile::TempDir,
    store: FileStore,
}

impl Files {
    fn new() -> Files {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::new(dir.path());
        Files { dir, store }
    }
    fn ws(&self, b: &Bench<'_>) -> PathBuf {
        self.dir.path().join(".tanmi-workspace").join(b.id.as_str())
    }
    fn node_md(&self, b: &Bench<'_>, id: &NodeId) -> PathBuf {
        self.ws(b).join("nodes").join(id.as_str()).join("Node.md")
    }
    fn edit(&self, path: &PathBuf, change: impl FnOnce(String) -> String) {
        let text = change(std::fs::read_to_string(path).unwrap());
        let dir = self.dir.path();
        tanmi_base::fs::write_atomic(path, text.as_bytes(), dir, tanmi_base::fs::Durability::Journaled)
            .unwrap();
    }
}

#[test]
fn a_hand_edit_of_a_node_that_is_read_is_seen_at_once() {
    let f = Files::new();
    let b = Bench::new(&f.store, &[]);
    let task = b.task(&NodeId::root(), "old title");
    f.edit(&f.node_md(&b, &task), |text| {
        text.replace("old title", "new title").replace("pending", "implementing")
    });
    let page = b.view(|tx| list(tx, &ListQuery::default()));
    assert_eq!(page.nodes[1].node.title, "new title");
    b.go(&task, Action::Complete).unwrap();
    assert_eq!(b.node(&task).title, "new title", "our write kept it");
}

#[test]
fn a_status_nobody_read_is_noticed_within_a_minute_or_when_git_moves() {
    let f = Files::new();
    std::fs::create_dir(f.dir.path().join(".git")).unwrap();
    let b = Bench::new(&f.store, &[]);
    let task = b.task(&NodeId::root(), "a");
    b.go(&task, Action::Start).unwrap();
    let done = |text: String| text.replace("status: implementing", "status: completed");
    let undone = |text: String| text.replace("status: completed", "status: implementing");
    let unfinished = |b: &Bench<'_>| b.view(|tx| tx.status_counts(&NodeId::root())).done();
    f.edit(&f.node_md(&b, &task), done);
    assert_eq!(unfinished(&b), 0, "nobody looked yet");
    b.now.set(b.now.get() + 61_000);
    b.go(&NodeId::root(), Action::Complete).unwrap();
    assert_eq!(unfinished(&b), 1);
    f.edit(&f.node_md(&b, &task), undone);
    tanmi_base::fs::write_new(
        &f.dir.path().join(".git/HEAD"),
        b"ref: x",
        tanmi_base::fs::Durability::Journaled,
    )
    .unwrap();
    assert_eq!(unfinished(&b), 0, "git moved, so everything is compared");
}

#[test]
fn folders_added_and_removed_by_hand_are_noticed() {
    let f = Files::new();
    let b = Bench::new(&f.store, &[]);
    let task = b.task(&NodeId::root(), "a");
    let text = "---\ntitle: by hand\ntype: execution\nstatus: pending\nparentId: root\n---\n";
    let dir = f.ws(&b).join("nodes/node-mine");
    std::fs::create_dir(&dir).unwrap();
    tanmi_base::fs::write_new(&dir.join("Node.md"), text.as_bytes(), tanmi_base::fs::Durability::Journaled)
        .unwrap();
    let titles = |b: &Bench<'_>| {
        let page = b.view(|tx| list(tx, &ListQuery::default()));
        page.nodes.into_iter().map(|row| row.node.title).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(titles(&b), "重构认证模块 a by hand");
    tanmi_base::fs::remove_tree(&f.ws(&b).join("nodes").join(task.as_str())).unwrap();
    assert_eq!(titles(&b), "重构认证模块 by hand");
}

#[test]
fn a_log_line_written_by_hand_counts_as_log() {
    let f = Files::new();
    let b = Bench::new(&f.store, &[]);
    let task = b.task(&NodeId::root(), "a");
    b.go(&task, Action::Start).unwrap();
    assert_eq!(b.node(&task).activity.last_log_at, None, "lines of the program do not count");
    f.edit(&f.node_md(&b, &task), |text| text + "- tried the other way\n");
    let seen = b.node(&task).activity.last_log_at;
    assert!(seen.is_some());
    b.go(&task, Action::Submit).unwrap();
    let text = std::fs::read_to_string(f.node_md(&b, &task)).unwrap();
    assert!(text.contains(&format!("lastLogAt: {}", seen.unwrap())), "{text}");
}

#[test]
fn a_broken_file_is_never_overwritten_and_hurts_nobody_else() {
    let f = Files::new();
    let b = Bench::new(&f.store, &[]);
    let plan = b.plan(&NodeId::root(), "plan");
    let (bad, good) = (b.task(&plan, "bad"), b.task(&plan, "good"));
    let broken = "---\ntitle: bad\ntype: exec";
    f.edit(&f.node_md(&b, &bad), |_| broken.into());
    for store in [&f.store, &FileStore::new(f.dir.path())] {
        let b = Bench { store, id: b.id.clone(), now: std::cell::Cell::new(b.now.get()) };
        match b.go(&bad, Action::Start) {
            Err(Error::Damaged { path, line, .. }) => assert_eq!((path, line), (f.node_md(&b, &bad), 3)),
            other => panic!("{other:?}"),
        }
        assert_eq!(code(b.change(|tx| delete_node(tx, &bad, &op(NOW)))), "FILE_DAMAGED");
        let page = b.view(|tx| list(tx, &ListQuery::default()));
        let row = page.nodes.iter().find(|row| row.node.id == bad).unwrap();
        assert!(row.node.damage.as_ref().unwrap().starts_with("3: "), "{row:?}");
    }
    b.go(&good, Action::Start).unwrap();
    b.go(&good, Action::Complete).unwrap();
    b.task(&plan, "another");
    f.edit(&f.node_md(&b, &plan), |_| String::new());
    let context = b.view(|tx| crate::context::assemble(tx, &good, &Default::default()));
    assert_eq!(context.chain.len(), 3);
    assert!(context.chain[1].damage.is_some());
    assert_eq!(std::fs::read_to_string(f.node_md(&b, &bad)).unwrap(), broken);
    assert_eq!(std::fs::read_to_string(f.node_md(&b, &plan)).unwrap(), "");
}

#[test]
fn check_finds_damage_and_repairs_what_has_one_answer() {
    let f = Files::new();
    let b = Bench::new(&f.store, &["rule"]);
    let root = NodeId::root();
    let (plan, empty) = (b.plan(&root, "plan"), b.plan(&root, "empty"));
    let (task, bad, orphan) = (b.task(&plan, "task"), b.task(&root, "bad"), b.task(&root, "orphan"));
    f.edit(&f.node_md(&b, &bad), |_| "garbage".into());
    f.edit(&f.node_md(&b, &orphan), |text| text.replace("parentId: root", "parentId: node-gone"));
    f.edit(&f.node_md(&b, &plan), |text| text.replace("status: monitoring", "status: completed"));
    f.edit(&f.node_md(&b, &empty), |text| text.replace("status: pending", "status: monitoring"));
    let focus = |text: String| text.replace("focusedNodeId: null", "focusedNodeId: node-gone");
    f.edit(&f.ws(&b).join("Workspace.md"), |text| focus(text).replace("- rule", "- other rule"));
    std::fs::create_dir(f.ws(&b).join("nodes/node-empty")).unwrap();
    let codes = |repair: bool| {
        let report = f.store.check(&b.id, repair, b.now.get()).unwrap();
        let mut found: Vec<String> = report
            .findings
            .iter()
            .map(|finding| format!("{} {:?}", finding.flaw.code(), finding.fix))
            .collect();
        found.sort();
        found
    };
    // While a file cannot be read nobody knows whose child it is, so no status is called wrong.
    assert!(!codes(false).iter().any(|code| code.starts_with("WRONG_STATUS")));
    tanmi_base::fs::remove_tree(f.node_md(&b, &bad).parent().unwrap()).unwrap();
    let by_hand = ["ORPHAN ByHand"];
    assert_eq!(
        codes(false),
        [
            "EMPTY_FOLDER Repairable",
            "LOST_FOCUS Repairable",
            by_hand[0],
            "STALE_RULES_HASH Repairable",
            "WRONG_STATUS Repairable",
            "WRONG_STATUS Repairable",
        ]
    );
    assert_eq!(codes(true).iter().filter(|code| code.ends_with("Repaired")).count(), 5);
    assert_eq!(codes(false), by_hand);
    assert_eq!((b.status(&plan), b.status(&empty), b.status(&task)), ("monitoring", "planning", "pending"));
    let before = std::fs::read_to_string(f.ws(&b).join("Workspace.md")).unwrap();
    codes(true);
    assert_eq!(
        std::fs::read_to_string(f.ws(&b).join("Workspace.md")).unwrap(),
        before,
        "nothing wrong, nothing written"
    );
}

#[test]
fn a_ring_edited_into_the_files_ends_every_walk() {
    let f = Files::new();
    let b = Bench::new(&f.store, &[]);
    let one = b.plan(&NodeId::root(), "one");
    let two = b.plan(&one, "two");
    f.edit(&f.node_md(&b, &one), |text| text.replace("parentId: root", &format!("parentId: {two}")));
    f.store.rescan(&b.id, NOW).unwrap();
    assert_eq!(b.view(|tx| list(tx, &ListQuery::default())).nodes.len(), 1);
    b.view(|tx| crate::context::assemble(tx, &two, &Default::default()));
    let findings = f.store.check(&b.id, false, NOW).unwrap().findings;
    assert_eq!(findings.iter().filter(|finding| finding.flaw.code() == "UNREACHABLE").count(), 2);
    assert_eq!(code(b.change(|tx| move_node(tx, &two, &one, &op(NOW)))), "MOVE_INTO_SELF");
}

#[test]
fn deleting_goes_to_the_trash_and_comes_back() {
    let f = Files::new();
    let b = Bench::new(&f.store, &[]);
    let task = b.task(&NodeId::root(), "a");
    b.change(|tx| delete_node(tx, &task, &op(NOW))).unwrap();
    let trash = f.dir.path().join(".tanmi-workspace/.trash");
    let names = || std::fs::read_dir(&trash).unwrap().flatten().map(|entry| entry.path()).collect::<Vec<_>>();
    assert!(names()[0].join(task.as_str()).join("Node.md").exists());
    f.store.delete(&b.id, NOW).unwrap();
    assert!(matches!(f.store.begin(&b.id, Access::Read, NOW), Err(Error::WorkspaceNotFound { .. })));
    assert_eq!(names().len(), 2);
    assert!(f.store.undelete(&b.id).unwrap());
    assert!(!f.store.undelete(&b.id).unwrap());
    assert_eq!(b.status(&NodeId::root()), "planning");
    assert_eq!(f.store.prune_trash(NOW + 29 * 86_400_000, 30).unwrap(), 0);
    assert_eq!(f.store.prune_trash(NOW + 31 * 86_400_000, 30).unwrap(), 1);
    assert_eq!(names().len(), 0);
}

#[test]
fn a_clone_without_local_files_works() {
    let f = Files::new();
    let b = Bench::new(&f.store, &[]);
    let task = b.task(&NodeId::root(), "a");
    tanmi_base::fs::remove_tree(&f.ws(&b).join(".local")).unwrap();
    let store = FileStore::new(f.dir.path());
    let b = Bench { store: &store, id: b.id.clone(), now: b.now.clone() };
    assert_eq!(b.node(&task).title, "a");
    b.go(&task, Action::Start).unwrap();
}

#[test]
fn two_stores_in_one_process_see_each_other() {
    let f = Files::new();
    let other = FileStore::new(f.dir.path());
    let b = Bench::new(&f.store, &[]);
    let c = Bench { store: &other, id: b.id.clone(), now: b.now.clone() };
    for n in 0..20 {
        let by = if n % 2 == 0 { &b } else { &c };
        by.task(&NodeId::root(), &format!("t{n}"));
    }
    for by in [&b, &c] {
        assert_eq!(by.view(|tx| Ok(tx.total()?.total())), 20);
        assert_eq!(by.view(|tx| list(tx, &ListQuery::default())).nodes.len(), 21);
    }
}
