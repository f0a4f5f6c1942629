//! What is removed after 30 days, and what stays.

use std::collections::BTreeMap;

use tanmi_memory::MemoryStore;
use tanmi_pg::{ContributionFilter, Expired, Moment};
use tanmi_workspace::command::{Command, NoLiveSessions};
use tanmi_workspace::state::Action;
use tanmi_workspace::store::Workspaces;
use tanmi_workspace::stories::{NOW, op};

use crate::cluster::Cluster;
use crate::memory::{fact, memory_in};
use crate::requests::{Team, step};

const AGE: &str = "31::bigint * 86400000";

#[test]
fn expired_answers_documents_and_nodes_are_removed_and_contributions_stay() {
    let Some(cluster) = Cluster::start() else { return };
    let team = Team::new(&cluster);
    let dir = tempfile::tempdir().unwrap();
    memory_in(&team.store, dir.path()).save_fact(&fact("f1", "An old fact")).unwrap();
    let old = team.task("old-task");
    team.store
        .run_request(&team.ada, &team.request("old-start", "ada-1", step(&old, Action::Start)))
        .unwrap();
    let gone = team.task("gone-task");
    let delete = Command::DeleteNode { node_id: gone, claimant: Default::default() };
    team.store.run(&team.id, &delete, &op(NOW), &NoLiveSessions).unwrap();
    let had = team.store.changes_after(&BTreeMap::from([(team.id.to_string(), 0)])).unwrap();
    assert_eq!(had.changes.len(), 4);
    cluster.sql(&format!("UPDATE request SET at = at - {AGE}"));
    cluster.sql(&format!("UPDATE change SET at = at - {AGE}"));
    cluster.sql("UPDATE trash SET deleted_at = 0");
    let new = team.task("new-task");

    assert_eq!(team.store.remove_expired(&|| true).unwrap(), Expired::default());
    assert_eq!(team.store.remove_expired(&|| false).unwrap(), Expired { answers: 3, changes: 4, nodes: 1 });
    assert_eq!(team.store.remove_expired(&|| false).unwrap(), Expired::default());

    assert_eq!(team.store.find_answer("key-old-task").unwrap(), None);
    assert!(team.store.find_answer("key-new-task").unwrap().is_some());
    assert_eq!(team.store.trash().unwrap(), []);
    let feed = |from| team.store.changes_after(&BTreeMap::from([(team.id.to_string(), from)])).unwrap();
    assert_eq!(feed(0).gaps, [team.id.to_string()], "a reader who is too late reads the workspace anew");
    let late: Vec<i64> = feed(4).changes.iter().map(|change| change.seq).collect();
    assert_eq!((feed(4).gaps, late), (vec![], vec![5]));
    let names: Vec<String> = team
        .store
        .documents(team.id.as_str(), None, 10)
        .unwrap()
        .docs
        .into_iter()
        .map(|doc| doc.name)
        .collect();
    assert!(names.contains(&old.to_string()) && names.contains(&new.to_string()), "{names:?}");
    let memory = team.store.changes_after(&BTreeMap::from([(String::from("memory"), 0)])).unwrap();
    assert_eq!((memory.gaps.len(), memory.changes.len()), (0, 1), "the lines of the memory stay");
    assert_eq!(team.store.check().unwrap(), []);
    team.task("newer-task");
    cluster.sql("UPDATE change SET docs = '{}' WHERE stream <> 'memory' AND seq = 5");
    assert_eq!(feed(4).gaps, [team.id.to_string()], "a later change does not hide a missing one");
    let filter = ContributionFilter {
        since: Moment::At(0),
        until: Moment::Ago(0),
        person: Some(String::from("ada")),
        kind: Some(String::from("started")),
        before: None,
        limit: 10,
    };
    let done = team.store.contributions(&filter).unwrap().entries;
    assert_eq!(done.len(), 1, "{done:?}");
    assert_eq!(done[0].node_id.as_deref(), Some(old.as_str()));
}
