//! How often a command waits for the database. A further statement in a transaction is a further wait for
//! every writer of the workspace.

use std::sync::Arc;

use tanmi_memory::{Fact, Mark, MemoryType, ReplicaMemory};
use tanmi_pg::{PgMemory, PgStore, Pool, create_project, migrate};
use tanmi_protocol::{MemoryCommand, MemoryRequest, Positions};
use tanmi_workspace::command::Command;
use tanmi_workspace::model::*;
use tanmi_workspace::ops::{Claimant, ListEdit, NewPlan, NodeChange, RulesHashCheck, Target};
use tanmi_workspace::outline::OutlineItem;
use tanmi_workspace::state::Action;
use tanmi_workspace::store::Workspaces;
use tanmi_workspace::stories::NOW;

use crate::cluster::Cluster;
use crate::requests::{Team, create, step};

/// Counts the round trips of calls.
struct Counter {
    pool: Arc<Pool>,
    counts: Vec<(&'static str, u64)>,
}

impl Counter {
    fn count<T>(&mut self, name: &'static str, call: impl FnOnce() -> T) -> T {
        let before = self.pool.round_trips();
        let value = call();
        self.counts.push((name, self.pool.round_trips() - before));
        value
    }
}

fn start(cluster: &Cluster) -> (Team, Counter) {
    migrate(&cluster.address()).unwrap();
    let project = create_project(&cluster.address(), "team", "app", NOW).unwrap();
    let pool = Arc::new(Pool::new(cluster.address()));
    let team = Team::with_store(cluster, PgStore::new(Arc::clone(&pool), project));
    (team, Counter { pool, counts: Vec::new() })
}

fn plan(parent: &NodeId, count: usize) -> Command {
    let item = |n: usize| OutlineItem {
        line: n + 1,
        parent: (n > 0).then_some(0),
        title: format!("step {n}"),
        requirement: String::new(),
        is_completed: false,
        depends_on: Vec::new(),
    };
    let items = (0..count).map(item).collect();
    Command::PlanNodes {
        plan: NewPlan { parent_id: parent.clone(), items, rules_check: RulesHashCheck::IfGiven(None) },
    }
}

#[test]
fn command_on_a_workspace_takes_few_round_trips() {
    let Some(cluster) = Cluster::start() else { return };
    let (team, mut counter) = start(&cluster);
    let ada =
        |key: &str, command: Command| team.store.run_request(&team.ada, &team.request(key, "ada-1", command));
    let made = ada("plan-0", plan(&NodeId::root(), 3)).unwrap().outcome.into_planned().unwrap();
    let (parent, first, second) = (&made.nodes[0].node_id, &made.nodes[1].node_id, &made.nodes[2].node_id);
    counter.count("node_create", || ada("create-1", create("task")).unwrap());
    let deep =
        Command::CreateNode { node: tanmi_workspace::stories::new_node(parent, NodeType::Execution, "deep") };
    counter.count("node_create, second level", || ada("create-2", deep).unwrap());
    let fifty = counter.count("plan of 50", || ada("plan-50", plan(parent, 50)).unwrap());
    let fifty = fifty.outcome.into_planned().unwrap().nodes[0].node_id.clone();
    let depends_on = ListEdit { add: vec![first.clone()], ..ListEdit::default() };
    let change = NodeChange { depends_on, ..NodeChange::default() };
    counter.count("new dependency", || {
        ada("depend-1", Command::UpdateNode { node_id: second.clone(), change }).unwrap()
    });
    let title = NodeChange { title: Some(String::from("new")), ..NodeChange::default() };
    counter.count("node_update", || {
        ada("update-1", Command::UpdateNode { node_id: first.clone(), change: title }).unwrap()
    });
    counter.count("start", || ada("start-1", step(first, Action::Start)).unwrap());
    counter.count("refused start", || {
        let request = team.request("taken-1", "bob-1", step(first, Action::Start));
        team.store.run_request(&team.bob, &request).unwrap_err()
    });
    let log = |target: Target| Command::AppendLog { target, event: String::from("entry") };
    counter.count("log_append", || ada("log-node", log(Target::Node(first.clone()))).unwrap());
    counter.count("log_append, workspace", || ada("log-ws-1", log(Target::Workspace)).unwrap());
    counter.count("complete", || ada("complete-1", step(first, Action::Complete)).unwrap());
    counter.count("repeated", || ada("complete-1", step(first, Action::Complete)).unwrap());
    counter.count("start with dependency", || ada("start-2", step(second, Action::Start)).unwrap());
    let next = Command::StartNext { claimant: Claimant::default() };
    counter.count("start_next", || ada("next-001", next).unwrap());
    counter.count("delete of 50", || {
        let claimant = Claimant::default();
        ada("delete-1", Command::DeleteNode { node_id: fifty, claimant }).unwrap()
    });
    counter.count("view of a node", || team.store.node_detail(&team.id, first, NOW).unwrap());
    let have = Positions::from([(team.id.to_string(), 3)]);
    counter.count("feed", || team.store.changes_after(&have).unwrap());
    counter.count("beat", || team.store.beat(&team.ada, &[String::from("ada-1")]).unwrap());
    assert_eq!(
        counter.counts,
        [
            ("node_create", 5),
            ("node_create, second level", 5),
            ("plan of 50", 5),
            ("new dependency", 8),
            ("node_update", 5),
            ("start", 5),
            ("refused start", 4),
            ("log_append", 5),
            ("log_append, workspace", 4),
            ("complete", 5),
            ("repeated", 4),
            ("start with dependency", 5),
            ("start_next", 10),
            ("delete of 50", 9),
            ("view of a node", 6),
            ("feed", 4),
            ("beat", 7),
        ]
    );
}

#[test]
fn save_of_a_memory_takes_few_round_trips() {
    let Some(cluster) = Cluster::start() else { return };
    let (team, mut counter) = start(&cluster);
    let dir = tempfile::tempdir().unwrap();
    let memory = PgMemory::new(team.store.clone(), ReplicaMemory::new(dir.path(), dir.path()));
    let run = |key: &str, command: MemoryCommand| {
        let (key, session) = (format!("key-{key}"), Some(String::from("ada-1")));
        let request = MemoryRequest { key, command, session, machine: String::from("laptop") };
        memory.run_request(&team.ada, &request).unwrap()
    };
    let fact = |id: &str, content: &str, supersedes: &[&str]| {
        let fact = Fact {
            supersedes: supersedes.iter().map(ToString::to_string).collect(),
            ..crate::memory::fact(id, content)
        };
        MemoryCommand::Save { line: fact.to_line() }
    };
    counter.count("save", || run("save-1", fact("f1", "One", &[])));
    counter.count("save of the same", || run("save-2", fact("f2", "One", &[])));
    counter.count("save in place of another", || run("save-3", fact("f3", "Two", &["f1"])));
    let forget = MemoryCommand::Mark { mark: Mark::Forget, ids: vec![String::from("f3")], by: String::new() };
    counter.count("forget", || run("mark-1", forget));
    let expected = [("save", 4), ("save of the same", 4), ("save in place of another", 4), ("forget", 4)];
    assert_eq!(counter.counts, expected);
}

#[test]
fn memory_refused_renews_the_lease() {
    let Some(cluster) = Cluster::start() else { return };
    let (team, _) = start(&cluster);
    let dir = tempfile::tempdir().unwrap();
    let memory = PgMemory::new(team.store.clone(), ReplicaMemory::new(dir.path(), dir.path()));
    team.task("create-task");
    cluster.sql("UPDATE session SET lease_until = 0");
    let opinion = Fact { memory_type: MemoryType::O, ..crate::memory::fact("f1", "Tabs") };
    let (key, session) = (String::from("key-opinion"), Some(String::from("ada-1")));
    let command = MemoryCommand::Save { line: opinion.to_line() };
    let request = MemoryRequest { key, command, session, machine: String::from("laptop") };
    memory.run_request(&team.ada, &request).unwrap_err();
    assert_eq!(cluster.sql("SELECT count(*) FROM session WHERE lease_until > 0").trim(), "1");
}
