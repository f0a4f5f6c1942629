//! Tests of the change feed and the context snapshot, on both stores.

use tanmi_base::journal::Journal;

use super::*;
use crate::store::{ChangeFeed, ContextSnapshots, FeedStart, PlanScope, SnapshotDepth, StoreEvent};

fn poll(store: &dyn ChangeFeed, id: &WorkspaceId, from: FeedStart) -> Vec<StoreEvent> {
    store.subscribe(id, from).changes().unwrap()
}

fn change(seq: u64, nodes: &[&NodeId]) -> StoreEvent {
    StoreEvent::Change { seq, nodes: nodes.iter().map(|id| id.to_string()).collect() }
}

fn check_subscriptions<S: Store + ChangeFeed>(store: &S) {
    let b = TestWorkspace::new(store, &[]);
    let root = NodeId::root();
    let mut from_now = store.subscribe(&b.id, FeedStart::Now);
    // The first child also changes the status of the root.
    let first = b.add_execution(&root, "first");
    let second = b.add_execution(&root, "second");
    let third = b.add_execution(&root, "third");
    let all = [change(1, &[&first, &root]), change(2, &[&second]), change(3, &[&third])];
    for seq in 0..=3 {
        assert_eq!(poll(store, &b.id, FeedStart::After(seq)), all[seq as usize..], "after {seq}");
    }
    assert_eq!(poll(store, &b.id, FeedStart::Now), []);
    assert_eq!(poll(store, &b.id, FeedStart::After(9)), [StoreEvent::Gap { seq: 3 }]);
    assert_eq!(from_now.changes().unwrap(), all);
    assert_eq!(from_now.changes().unwrap(), []);
    assert_eq!(from_now.edits().unwrap(), None);
    let op = b.tick();
    b.change(|tx| focus(tx, Some(second.clone()), &op)).unwrap();
    let focused = StoreEvent::Change { seq: 4, nodes: vec![String::from("workspace")] };
    assert_eq!(from_now.changes().unwrap(), [focused]);
    assert_eq!(store.ids().unwrap(), [b.id]);
}

#[test]
fn subscription_after_position_returns_exactly_later_changes() {
    check_subscriptions(&InMemoryStore::new());
    let dir = tempfile::tempdir().unwrap();
    check_subscriptions(&FileStore::in_folder(dir.path()));
}

/// Adds four nodes and calls `trim` after the third; then only the fourth change is known.
fn check_gap<S: Store + ChangeFeed>(store: &S, trim: impl Fn(&WorkspaceId)) {
    let b = TestWorkspace::new(store, &[]);
    let root = NodeId::root();
    for n in 0..3 {
        b.add_execution(&root, &format!("{n}"));
    }
    trim(&b.id);
    let last = b.add_execution(&root, "last");
    for seq in 0..3 {
        let expected = [StoreEvent::Gap { seq: 3 }, change(4, &[&last])];
        assert_eq!(poll(store, &b.id, FeedStart::After(seq)), expected, "after {seq}");
    }
    assert_eq!(poll(store, &b.id, FeedStart::After(3)), [change(4, &[&last])]);
}

#[test]
fn subscription_after_forgotten_position_returns_gap() {
    check_gap(&InMemoryStore::with_kept_changes(1), |_| ());
    let dir = tempfile::tempdir().unwrap();
    check_gap(&FileStore::in_folder(dir.path()), |id| {
        let local = dir.path().join(".tanmi-workspace").join(id.as_str()).join(".local");
        Journal::create(&local.join("journal"), &local.join("tmp"), 3).unwrap();
    });
}

fn check_snapshot<S: Store + ContextSnapshots>(store: &S) {
    let b = TestWorkspace::new(store, &[]);
    let root = NodeId::root();
    let task = b.add_execution(&root, "task");
    b.apply(&task, Action::Start).unwrap();
    let snapshot = store.context_snapshot(&b.id, None, SnapshotDepth::Focus).unwrap();
    assert_eq!(snapshot.node, Some(b.node(&task)));
    assert_eq!((snapshot.children, snapshot.progress), (None, None));
    let snapshot = store.context_snapshot(&b.id, Some("root"), SnapshotDepth::Progress).unwrap();
    assert_eq!(snapshot.node, Some(b.node(&root)));
    assert_eq!(snapshot.children.unwrap().of_status(NodeStatus::Implementing), 1);
    assert_eq!(snapshot.progress, Some(Progress { completed: 0, total: 1 }));
    let relations = store.relations(&b.id, Some(&b.node(&task)));
    assert_eq!(relations.progress, Some(Progress { completed: 0, total: 1 }));
    assert_eq!(relations.children.unwrap().total(), 0);
    let (parent, children) = relations.parent.unwrap();
    assert_eq!((parent, children.unwrap().total()), (b.node(&root), 1));
    assert!(store.relations(&b.id, Some(&b.node(&root))).parent.is_none());
    let unknown = WorkspaceId::parse("ws-unknown").unwrap();
    assert!(store.context_snapshot(&unknown, None, SnapshotDepth::Focus).is_none());
    assert!(store.relations(&unknown, None).progress.is_none());
}

#[test]
fn context_snapshot_has_focused_node_and_counts() {
    check_snapshot(&InMemoryStore::new());
    let dir = tempfile::tempdir().unwrap();
    check_snapshot(&FileStore::in_folder(dir.path()));
}

fn check_surroundings<S: Store + ContextSnapshots>(store: &S) {
    let b = TestWorkspace::new(store, &[]);
    let (root, depth) = (NodeId::root(), SnapshotDepth::Surroundings);
    let first = b.add_planning(&root, "first");
    let (done, started) = (b.add_execution(&first, "done"), b.add_execution(&first, "started"));
    let second = b.add_planning(&root, "second");
    let inner = b.add_planning(&second, "inner");
    let (third, fourth) = (b.add_execution(&inner, "third"), b.add_execution(&root, "fourth"));
    b.apply(&done, Action::Start).unwrap();
    b.apply(&done, Action::Complete).unwrap();
    b.apply(&started, Action::Start).unwrap();
    let op = b.tick();
    b.change(|tx| crate::ops::focus(tx, None, &op)).unwrap();
    let snapshot = store.context_snapshot(&b.id, None, depth).unwrap();
    let overview = snapshot.overview.unwrap();
    assert_eq!(overview.in_progress, [b.node(&started)]);
    let next: Vec<NodeId> = overview.next.into_iter().map(|node| node.id).collect();
    assert_eq!(next, [third.clone(), fourth], "in the order of the tree");
    assert!(overview.with_problem.is_empty());
    for node in [&started, &done] {
        let change = ProblemChange { description: Some(String::from("stuck")), next_step: None };
        b.change(|tx| update_problem(tx, &Target::Node(node.clone()), change.clone(), &op)).unwrap();
    }
    let overview = store.overview(&b.id).unwrap();
    assert_eq!(overview.with_problem, [b.node(&started)], "the problem of a done node is over");

    let snapshot = store.context_snapshot(&b.id, Some(third.as_str()), depth).unwrap();
    assert_eq!(snapshot.surroundings.unwrap().ancestors, ["second", "inner"]);
    assert!(snapshot.overview.is_none());
    let snapshot = store.context_snapshot(&b.id, Some(first.as_str()), depth).unwrap();
    let conclusions = snapshot.surroundings.unwrap().conclusions;
    assert_eq!(conclusions.iter().map(|child| &child.id).collect::<Vec<_>>(), [&done]);
}

fn check_dependencies_of_ancestors<S: Store + ContextSnapshots>(store: &S) {
    let b = TestWorkspace::new(store, &[]);
    let ids = b.planned("- a\n- b\n- p (after: a)\n  - q (after: b)\n    - c\n");
    b.finish(&ids[0]);
    b.finish(&ids[1]);
    let of = |node: &NodeId| {
        let snapshot =
            store.context_snapshot(&b.id, Some(node.as_str()), SnapshotDepth::Surroundings).unwrap();
        let dependencies = snapshot.surroundings.unwrap().dependencies;
        dependencies.into_iter().map(|one| one.title).collect::<Vec<_>>()
    };
    assert_eq!(of(&ids[4]), ["b", "a"], "those of the nearest ancestor first");
    assert_eq!(of(&ids[2]), ["a"]);
}

#[test]
fn context_snapshot_has_conclusions_of_dependencies_of_ancestors() {
    check_dependencies_of_ancestors(&InMemoryStore::new());
    let dir = tempfile::tempdir().unwrap();
    check_dependencies_of_ancestors(&FileStore::in_folder(dir.path()));
}

#[test]
fn context_snapshot_has_surroundings_or_overview() {
    check_surroundings(&InMemoryStore::new());
    let dir = tempfile::tempdir().unwrap();
    check_surroundings(&FileStore::in_folder(dir.path()));
}

fn check_unstarted_plan<S: Store + ContextSnapshots>(store: &S) {
    let b = TestWorkspace::new(store, &[]);
    let root = NodeId::root();
    let count = |id: &WorkspaceId| store.unstarted_tasks(id, PlanScope::Branches);
    let has_plan = || count(&b.id) > Some(0);
    assert!(!has_plan(), "no node");
    let task = b.add_execution(&root, "task");
    assert!(has_plan(), "the only task is pending");
    let plan = b.add_planning(&root, "plan");
    assert!(!has_plan(), "a plan without tasks");
    let (first, second) = (b.add_execution(&plan, "first"), b.add_execution(&plan, "second"));
    assert_eq!(count(&b.id), Some(3), "the task beside the plan counts");
    b.apply(&task, Action::Start).unwrap();
    assert_eq!(count(&b.id), Some(2), "the started task is not in the plan");
    b.apply(&first, Action::Start).unwrap();
    assert!(!has_plan(), "a task of the plan is started");
    b.apply(&first, Action::Complete).unwrap();
    assert!(!has_plan(), "a task of the plan is done");
    assert_eq!(b.status(&second), "pending");
    assert_eq!(count(&WorkspaceId::parse("ws-unknown").unwrap()), None);

    let b = TestWorkspace::new(store, &[]);
    let tasks = [b.add_execution(&root, "one"), b.add_execution(&root, "two")];
    assert_eq!(count(&b.id), Some(2));
    b.apply(&tasks[1], Action::Start).unwrap();
    assert_eq!(count(&b.id), Some(0), "one of the tasks is started");
    b.apply(&tasks[1], Action::Complete).unwrap();
    assert_eq!(count(&b.id), Some(0), "one of the tasks is done");

    let b = TestWorkspace::new(store, &[]);
    let phase = b.add_planning(&root, "phase");
    let part = b.add_planning(&phase, "part");
    let deep = b.add_execution(&part, "deep");
    b.add_execution(&phase, "beside");
    assert_eq!(count(&b.id), Some(2), "tasks of all levels count");
    b.apply(&deep, Action::Start).unwrap();
    assert_eq!(count(&b.id), Some(0), "a task of a lower level is started");
}

#[test]
fn unstarted_tasks_counts_pending_tasks_of_all_levels() {
    check_unstarted_plan(&InMemoryStore::new());
    let dir = tempfile::tempdir().unwrap();
    check_unstarted_plan(&FileStore::in_folder(dir.path()));
}
