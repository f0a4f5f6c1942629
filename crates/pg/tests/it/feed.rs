//! The schema and the change feed.

use std::collections::BTreeMap;

use tanmi_pg::{Pool, migrate};
use tanmi_workspace::command::{Command, NoLiveSessions};
use tanmi_workspace::model::*;
use tanmi_workspace::store::{
    ChangeFeed, ContextSnapshots, FeedStart, SnapshotDepth, StoreEvent, Workspaces,
};
use tanmi_workspace::stories::{NOW, new_node, new_workspace, op};

use crate::cluster::Cluster;

#[test]
fn migrate_twice_leaves_current_schema() {
    let Some(cluster) = Cluster::start() else { return };
    let address = cluster.address();
    assert!(Pool::new(address.clone()).check_health().is_err());
    migrate(&address).unwrap();
    migrate(&address).unwrap();
    Pool::new(address).check_health().unwrap();
}

#[test]
fn subscription_after_position_returns_later_changes() {
    let Some(cluster) = Cluster::start() else { return };
    let store = cluster.store("feed");
    let id = store.create(new_workspace(&[]), &op(NOW)).unwrap().id;
    let mut from_now = store.subscribe(&id, FeedStart::Now);
    let create = |title: &str| {
        let node = new_node(&NodeId::root(), NodeType::Execution, title);
        let committed = store.run(&id, &Command::CreateNode { node }, &op(NOW), &NoLiveSessions).unwrap();
        committed.outcome.into_node().unwrap().0.id
    };
    let (first, second) = (create("first"), create("second"));
    let change = |seq: u64, nodes: &[&NodeId]| StoreEvent::Change {
        seq,
        nodes: nodes.iter().map(|id| id.to_string()).collect(),
    };
    let all = [change(1, &[&first, &NodeId::root()]), change(2, &[&second])];
    assert_eq!(from_now.changes().unwrap(), all);
    assert_eq!(from_now.changes().unwrap(), []);
    assert_eq!(store.subscribe(&id, FeedStart::After(1)).changes().unwrap(), all[1..]);
    assert_eq!(store.subscribe(&id, FeedStart::After(9)).changes().unwrap(), [StoreEvent::Gap { seq: 2 }]);
    let snapshot = store.context_snapshot(&id, None, SnapshotDepth::Surroundings).unwrap();
    let next: Vec<String> = snapshot.overview.unwrap().next.into_iter().map(|node| node.title).collect();
    assert_eq!(next, ["first", "second"]);
}

#[test]
fn replica_from_documents_and_changes_equals_whole_workspace() {
    let Some(cluster) = Cluster::start() else { return };
    let store = cluster.store("replica");
    let id = store.create(new_workspace(&[]), &op(NOW)).unwrap().id;
    let create = |title: &str| {
        let node = new_node(&NodeId::root(), NodeType::Execution, title);
        let committed = store.run(&id, &Command::CreateNode { node }, &op(NOW), &NoLiveSessions).unwrap();
        committed.outcome.into_node().unwrap().0.id
    };
    let all = || {
        let mut docs = BTreeMap::new();
        let mut after: Option<String> = None;
        loop {
            let page = store.documents(id.as_str(), after.as_deref(), 2).unwrap();
            docs.extend(page.docs.into_iter().map(|document| (document.name, document.text)));
            after = page.next;
            if after.is_none() {
                return (docs, page.seq0);
            }
        }
    };
    for n in 0..5 {
        create(&format!("early {n}"));
    }
    let (mut replica, seq0) = all();
    assert_eq!((replica.len(), seq0), (7, 5));
    let removed = create("late");
    let delete = Command::DeleteNode { node_id: removed, claimant: Default::default() };
    create("later");
    store.run(&id, &delete, &op(NOW), &NoLiveSessions).unwrap();
    let page = store.changes_after(&BTreeMap::from([(id.to_string(), seq0)])).unwrap();
    assert!(page.gaps.is_empty());
    assert_eq!(page.changes.iter().map(|change| change.seq).collect::<Vec<_>>(), [6, 7, 8]);
    for document in page.changes.into_iter().flat_map(|change| change.docs) {
        match document.text {
            Some(text) => replica.insert(document.name, Some(text)),
            None => replica.remove(&document.name),
        };
    }
    assert_eq!((replica, 8), all());
    for wrong in [("ws-unknown", 0), (id.as_str(), 99)] {
        let page = store.changes_after(&BTreeMap::from([(wrong.0.to_owned(), wrong.1)])).unwrap();
        assert_eq!(page.gaps, [wrong.0], "a position that does not exist");
    }
}
