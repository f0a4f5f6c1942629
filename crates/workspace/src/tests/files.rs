//! Tests of the file store alone: it sees edits of the user, limits the effect of damaged files, and leaves
//! nothing behind.

use std::path::{Path, PathBuf};

use super::*;
use crate::store::{Access, ContextSnapshots, LocalMaintenance, Workspaces};

struct FileFixture {
    dir: tempfile::TempDir,
    store: FileStore,
}

impl FileFixture {
    fn new() -> FileFixture {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::in_folder(dir.path());
        FileFixture { dir, store }
    }
    fn workspace_dir(&self, b: &TestWorkspace<'_>) -> PathBuf {
        self.dir.path().join(".tanmi-workspace").join(b.id.as_str())
    }
    fn node_file(&self, b: &TestWorkspace<'_>, id: &NodeId) -> PathBuf {
        self.workspace_dir(b).join("nodes").join(id.as_str()).join("Node.md")
    }
    fn edit(&self, path: &Path, change: impl FnOnce(String) -> String) {
        self.write(path, &change(std::fs::read_to_string(path).unwrap()));
    }
    fn write(&self, path: &Path, text: &str) {
        let dir = self.dir.path();
        tanmi_base::fs::write_atomic(path, text.as_bytes(), dir, tanmi_base::fs::Durability::Journaled)
            .unwrap();
    }
}

#[test]
fn edited_file_is_seen_on_next_read() {
    let f = FileFixture::new();
    let b = TestWorkspace::new(&f.store, &[]);
    let task = b.add_execution(&NodeId::root(), "old title");
    f.edit(&f.node_file(&b, &task), |text| {
        text.replace("old title", "new title").replace("pending", "implementing")
    });
    let page = b.view(|tx| list(tx, &ListQuery::default()));
    assert_eq!(page.nodes[1].node.title, "new title");
    b.apply(&task, Action::Complete).unwrap();
    assert_eq!(b.node(&task).title, "new title", "a write keeps the edit");
}

#[test]
fn header_is_found_beside_any_number_of_newer_workspaces() {
    let f = FileFixture::new();
    let b = TestWorkspace::new(&f.store, &[]);
    let text = std::fs::read_to_string(f.workspace_dir(&b).join("Workspace.md")).unwrap();
    // More than a list of headers contains. Their ids are those of later times.
    for n in 0..1000 {
        let id = format!("ws-zzzzzzzz-{n:06}");
        let dir = f.dir.path().join(".tanmi-workspace").join(&id);
        std::fs::create_dir(&dir).unwrap();
        f.write(&dir.join("Workspace.md"), &text.replace(b.id.as_str(), &id));
    }
    assert!(f.store.headers().unwrap().iter().all(|(id, header)| *id != b.id && header.is_some()));
    assert_eq!(f.store.header(&b.id).unwrap().unwrap().id, b.id);
    let gone = WorkspaceId::parse("ws-00000000-000000").unwrap();
    assert_eq!(f.store.header(&gone).unwrap(), None);
    f.write(&f.workspace_dir(&b).join("Workspace.md"), "not a workspace");
    assert_eq!(f.store.header(&b.id).unwrap(), None);
}

#[test]
fn edited_status_is_counted_after_a_minute_or_git_checkout() {
    let f = FileFixture::new();
    std::fs::create_dir(f.dir.path().join(".git")).unwrap();
    let b = TestWorkspace::new(&f.store, &[]);
    let task = b.add_execution(&NodeId::root(), "a");
    b.apply(&task, Action::Start).unwrap();
    let complete = |text: String| text.replace("status: implementing", "status: completed");
    let reopen = |text: String| text.replace("status: completed", "status: implementing");
    let done_count = |b: &TestWorkspace<'_>| b.view(|tx| tx.status_counts(&NodeId::root())).done();
    f.edit(&f.node_file(&b, &task), complete);
    assert_eq!(done_count(&b), 0, "the file is not compared again within a minute");
    b.now.set(b.now.get() + 61_000);
    b.apply(&NodeId::root(), Action::Complete).unwrap();
    assert_eq!(done_count(&b), 1);
    f.edit(&f.node_file(&b, &task), reopen);
    tanmi_base::fs::write_new(
        &f.dir.path().join(".git/HEAD"),
        b"ref: x",
        tanmi_base::fs::Durability::Journaled,
    )
    .unwrap();
    assert_eq!(done_count(&b), 0, "Git changed HEAD, so all files are compared");
}

#[test]
fn node_folders_added_or_removed_by_user_are_seen() {
    let f = FileFixture::new();
    let b = TestWorkspace::new(&f.store, &[]);
    let task = b.add_execution(&NodeId::root(), "a");
    let text = "---\ntitle: by hand\ntype: execution\nstatus: pending\nparentId: root\n---\n";
    let dir = f.workspace_dir(&b).join("nodes/node-mine");
    std::fs::create_dir(&dir).unwrap();
    tanmi_base::fs::write_new(&dir.join("Node.md"), text.as_bytes(), tanmi_base::fs::Durability::Journaled)
        .unwrap();
    let titles = |b: &TestWorkspace<'_>| {
        let page = b.view(|tx| list(tx, &ListQuery::default()));
        page.nodes.into_iter().map(|row| row.node.title).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(titles(&b), "重构认证模块 a by hand");
    tanmi_base::fs::remove_tree(&f.workspace_dir(&b).join("nodes").join(task.as_str())).unwrap();
    assert_eq!(titles(&b), "重构认证模块 by hand");
}

#[test]
fn log_line_written_by_user_sets_last_log_at() {
    let f = FileFixture::new();
    let b = TestWorkspace::new(&f.store, &[]);
    let task = b.add_execution(&NodeId::root(), "a");
    b.apply(&task, Action::Start).unwrap();
    assert_eq!(b.node(&task).activity.last_log_at, None, "automatic log entries do not count");
    f.edit(&f.node_file(&b, &task), |text| text + "- tried the other way\n");
    let seen = b.node(&task).activity.last_log_at;
    assert!(seen.is_some());
    b.apply(&task, Action::Submit).unwrap();
    let text = std::fs::read_to_string(f.node_file(&b, &task)).unwrap();
    assert!(text.contains(&format!("lastLogAt: {}", seen.unwrap())), "{text}");
}

#[test]
fn damaged_file_is_kept_and_other_nodes_work() {
    let f = FileFixture::new();
    let b = TestWorkspace::new(&f.store, &[]);
    let plan = b.add_planning(&NodeId::root(), "plan");
    let (bad, good) = (b.add_execution(&plan, "bad"), b.add_execution(&plan, "good"));
    let broken = "---\ntitle: bad\ntype: exec";
    f.edit(&f.node_file(&b, &bad), |_| broken.into());
    for store in [&f.store, &FileStore::in_folder(f.dir.path())] {
        let b = TestWorkspace { store, id: b.id.clone(), now: std::cell::Cell::new(b.now.get()) };
        match b.apply(&bad, Action::Start) {
            Err(Error::Corrupt { place, line, .. }) => {
                assert_eq!((PathBuf::from(place), line), (f.node_file(&b, &bad), 3));
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(error_code(b.change(|tx| delete_unclaimed(tx, &bad, &op(NOW)))), "FILE_DAMAGED");
        let page = b.view(|tx| list(tx, &ListQuery::default()));
        let row = page.nodes.iter().find(|row| row.node.id == bad).unwrap();
        assert!(row.node.damage.as_ref().unwrap().line == 3, "{row:?}");
    }
    b.apply(&good, Action::Start).unwrap();
    b.apply(&good, Action::Complete).unwrap();
    b.add_execution(&plan, "another");
    f.edit(&f.node_file(&b, &plan), |_| String::new());
    let context = b.view(|tx| crate::context::assemble(tx, &good, &Default::default()));
    assert_eq!(context.chain.len(), 3);
    assert!(context.chain[1].damage.is_some());
    assert_eq!(std::fs::read_to_string(f.node_file(&b, &bad)).unwrap(), broken);
    assert_eq!(std::fs::read_to_string(f.node_file(&b, &plan)).unwrap(), "");
}

#[test]
fn check_reports_findings_and_repairs_unambiguous_ones() {
    let f = FileFixture::new();
    let b = TestWorkspace::new(&f.store, &["rule"]);
    let root = NodeId::root();
    let (plan, empty) = (b.add_planning(&root, "plan"), b.add_planning(&root, "empty"));
    let (task, bad, orphan) =
        (b.add_execution(&plan, "task"), b.add_execution(&root, "bad"), b.add_execution(&root, "orphan"));
    f.edit(&f.node_file(&b, &bad), |_| "garbage".into());
    f.edit(&f.node_file(&b, &orphan), |text| text.replace("parentId: root", "parentId: node-gone"));
    f.edit(&f.node_file(&b, &plan), |text| text.replace("status: monitoring", "status: completed"));
    f.edit(&f.node_file(&b, &empty), |text| text.replace("status: pending", "status: monitoring"));
    let focus = |text: String| text.replace("focusedNodeId: null", "focusedNodeId: node-gone");
    f.edit(&f.workspace_dir(&b).join("Workspace.md"), |text| focus(text).replace("- rule", "- other rule"));
    std::fs::create_dir(f.workspace_dir(&b).join("nodes/node-empty")).unwrap();
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
    // While a file cannot be read, its parent is unknown, so no status can be called wrong.
    assert!(!codes(false).iter().any(|finding| finding.starts_with("WRONG_STATUS")));
    tanmi_base::fs::remove_tree(f.node_file(&b, &bad).parent().unwrap()).unwrap();
    let not_repairable = ["ORPHAN ByHand"];
    assert_eq!(
        codes(false),
        [
            "EMPTY_FOLDER Repairable",
            "LOST_FOCUS Repairable",
            not_repairable[0],
            "STALE_RULES_HASH Repairable",
            "WRONG_STATUS Repairable",
            "WRONG_STATUS Repairable",
        ]
    );
    assert_eq!(codes(true).iter().filter(|finding| finding.ends_with("Repaired")).count(), 5);
    assert_eq!(codes(false), not_repairable);
    assert_eq!((b.status(&plan), b.status(&empty), b.status(&task)), ("monitoring", "planning", "pending"));
    let before = std::fs::read_to_string(f.workspace_dir(&b).join("Workspace.md")).unwrap();
    codes(true);
    assert_eq!(
        std::fs::read_to_string(f.workspace_dir(&b).join("Workspace.md")).unwrap(),
        before,
        "without a finding, nothing is written"
    );
}

#[test]
fn parent_cycle_in_files_ends_every_walk() {
    let f = FileFixture::new();
    let b = TestWorkspace::new(&f.store, &[]);
    let one = b.add_planning(&NodeId::root(), "one");
    let two = b.add_planning(&one, "two");
    f.edit(&f.node_file(&b, &one), |text| text.replace("parentId: root", &format!("parentId: {two}")));
    f.store.rescan(&b.id, NOW).unwrap();
    assert_eq!(b.view(|tx| list(tx, &ListQuery::default())).nodes.len(), 1);
    b.view(|tx| crate::context::assemble(tx, &two, &Default::default()));
    let findings = f.store.check(&b.id, false, NOW).unwrap().findings;
    assert_eq!(findings.iter().filter(|finding| finding.flaw.code() == "UNREACHABLE").count(), 2);
    assert_eq!(error_code(b.change(|tx| move_node(tx, &two, &one, &op(NOW)))), "MOVE_INTO_SELF");
}

#[test]
fn delete_moves_to_trash_until_restored_or_pruned() {
    let f = FileFixture::new();
    let b = TestWorkspace::new(&f.store, &[]);
    let task = b.add_execution(&NodeId::root(), "a");
    b.change(|tx| delete_unclaimed(tx, &task, &op(NOW))).unwrap();
    let trash = f.dir.path().join(".tanmi-workspace/.trash");
    let names = || std::fs::read_dir(&trash).unwrap().flatten().map(|entry| entry.path()).collect::<Vec<_>>();
    assert!(names()[0].join(task.as_str()).join("Node.md").exists());
    f.store.delete(&b.id, NOW).unwrap();
    assert!(matches!(f.store.begin(&b.id, Access::Read, NOW), Err(Error::WorkspaceNotFound { .. })));
    assert_eq!(names().len(), 2);
    assert_eq!(f.store.deleted_name(&b.id).as_deref(), Some("重构认证模块"));
    assert!(f.store.undelete(&b.id).unwrap());
    assert_eq!(f.store.deleted_name(&b.id), None, "it exists");
    assert!(!f.store.undelete(&b.id).unwrap());
    assert_eq!(b.status(&NodeId::root()), "planning");
    assert_eq!(f.store.prune_trash(NOW + 29 * 86_400_000, 30).unwrap(), 0);
    assert_eq!(f.store.prune_trash(NOW + 31 * 86_400_000, 30).unwrap(), 1);
    assert_eq!(names().len(), 0);
}

#[test]
fn clone_without_local_files_works() {
    let f = FileFixture::new();
    let b = TestWorkspace::new(&f.store, &[]);
    let task = b.add_execution(&NodeId::root(), "a");
    tanmi_base::fs::remove_tree(&f.workspace_dir(&b).join(".local")).unwrap();
    let store = FileStore::in_folder(f.dir.path());
    let b = TestWorkspace { store: &store, id: b.id.clone(), now: b.now.clone() };
    assert_eq!(b.node(&task).title, "a");
    b.apply(&task, Action::Start).unwrap();
}

#[test]
fn two_stores_in_one_process_see_same_nodes() {
    let f = FileFixture::new();
    let other = FileStore::in_folder(f.dir.path());
    let b = TestWorkspace::new(&f.store, &[]);
    let c = TestWorkspace { store: &other, id: b.id.clone(), now: b.now.clone() };
    for n in 0..20 {
        let by = if n % 2 == 0 { &b } else { &c };
        by.add_execution(&NodeId::root(), &format!("t{n}"));
    }
    for by in [&b, &c] {
        assert_eq!(by.view(|tx| Ok(tx.total()?.total())), 20);
        assert_eq!(by.view(|tx| list(tx, &ListQuery::default())).nodes.len(), 21);
    }
}

#[test]
fn add_node_taken_id_is_conflict() {
    let f = FileFixture::new();
    let b = TestWorkspace::new(&f.store, &[]);
    let known = b.add_execution(&NodeId::root(), "known");
    let unknown = NodeId::fresh(b.now.get());
    let file = f.node_file(&b, &unknown);
    for id in [&known, &unknown] {
        let added = b.change(|tx| {
            // A file that appears while the command runs.
            if *id == unknown {
                let _ = std::fs::create_dir(file.parent().unwrap());
                f.write(&file, "by hand");
            }
            let mut node = Node::new(id.clone(), NodeType::Execution, "new", b.now.get());
            node.parent_id = Some(NodeId::root());
            tx.add_node(node)
        });
        assert!(matches!(added, Err(Error::Conflict { .. })), "{id}: {added:?}");
    }
    assert_eq!(b.node(&known).title, "known");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "by hand");
}

#[test]
fn check_reports_missing_and_cyclic_dependencies() {
    let f = FileFixture::new();
    let b = TestWorkspace::new(&f.store, &[]);
    let [one, two, three] = ["one", "two", "three"].map(|title| b.add_execution(&NodeId::root(), title));
    let depend = |node: &NodeId, on: &str| {
        let keys = format!("type: execution\ndependsOn: [{on}]");
        f.edit(&f.node_file(&b, node), |text| text.replace("type: execution", &keys));
    };
    depend(&one, two.as_str());
    depend(&two, one.as_str());
    depend(&three, "node-gone");
    let report = f.store.check(&b.id, true, b.now.get()).unwrap();
    let found: Vec<String> = report.findings.iter().map(|finding| finding.flaw.message(Lang::En)).collect();
    assert_eq!(found.len(), 2, "{found:?}");
    let missing = format!("remove it with `tanmi node depend {three} --on node-gone --remove`");
    assert!(found.iter().any(|text| text.ends_with(&missing)), "{found:?}");
    let cycle =
        |a: &NodeId, b: &NodeId| format!("the dependencies form a cycle: {a} → {b} → {a}; remove one");
    let cycles = [cycle(&one, &two), cycle(&two, &one)];
    assert!(found.iter().any(|text| cycles.iter().any(|cycle| text.starts_with(cycle))), "{found:?}");
}

#[test]
fn held_workspace_keeps_writers_out_and_moves_to_trash_unless_edited() {
    let f = FileFixture::new();
    let b = TestWorkspace::new(&f.store, &[]);
    let held = f.store.hold(&b.id).unwrap();
    let documents = f.store.held_documents(&held).unwrap();
    f.edit(&f.node_file(&b, &NodeId::root()), |text| format!("{text}\nmine\n"));
    assert!(!f.store.delete_held(held, NOW, |found| found == documents).unwrap(), "edited by hand");
    let held = f.store.hold(&b.id).unwrap();
    assert_eq!(f.store.documents(&b.id).unwrap(), f.store.held_documents(&held).unwrap(), "readers go on");
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let other = FileStore::in_folder(f.dir.path());
            let log =
                crate::command::Command::AppendLog { target: Target::Workspace, event: String::from("late") };
            other.run(&b.id, &log, &op(NOW), &NoLiveSessions)
        });
        std::thread::sleep(std::time::Duration::from_millis(200));
        assert!(!writer.is_finished(), "the writer waits");
        assert!(f.store.delete_held(held, NOW, |_| true).unwrap());
        let refused = writer.join().unwrap().unwrap_err();
        assert!(matches!(refused, Error::WorkspaceNotFound { .. }), "{refused}");
    });
    assert!(!f.workspace_dir(&b).exists());
}
