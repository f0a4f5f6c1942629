//! Requests: keys, claims with leases, and a database that dies.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tanmi_pg::{AuditFilter, Caller, People, PgStore, Role, RunError, create_project};
use tanmi_protocol::{Positions, RunAnswer, RunRequest};
use tanmi_workspace::command::Command;
use tanmi_workspace::error::Error;
use tanmi_workspace::model::*;
use tanmi_workspace::ops::{Claimant, ListEdit, NodeChange, Target, TransitionRequest};
use tanmi_workspace::state::Action;
use tanmi_workspace::store::{Access, Store, Workspaces};
use tanmi_workspace::stories::{NOW, new_node, new_workspace, op};

use crate::cluster::Cluster;

/// A project with a workspace and two people.
pub struct Team {
    pub store: PgStore,
    pub id: WorkspaceId,
    pub ada: Caller,
    pub bob: Caller,
}

impl Team {
    pub fn new(cluster: &Cluster) -> Team {
        Team::with_store(cluster, cluster.store("app"))
    }

    /// The store must be that of the project `app`.
    pub fn with_store(cluster: &Cluster, store: PgStore) -> Team {
        let project = create_project(&cluster.address(), "team", "app", NOW).unwrap();
        let mut people = People::open(&cluster.address(), &project).unwrap();
        let mut caller = |name: &str| Caller {
            project: project.clone(),
            person: people.set_member(name, Role::Member).unwrap(),
            name: name.to_owned(),
            role: Role::Member,
            token: String::new(),
        };
        let (ada, bob) = (caller("ada"), caller("bob"));
        let id = store.create(new_workspace(&[]), &op(NOW)).unwrap().id;
        Team { store, id, ada, bob }
    }

    pub fn request(&self, key: &str, session: &str, command: Command) -> RunRequest {
        RunRequest {
            key: format!("key-{key}"),
            stream: self.id.clone(),
            command,
            operator: Operator::Ai,
            session: Some(session.to_owned()),
            machine: format!("machine of {session}"),
            fence: None,
            expects: None,
            age: None,
        }
    }

    pub fn task(&self, key: &str) -> NodeId {
        let created = self.store.run_request(&self.ada, &self.request(key, "ada-1", create(key))).unwrap();
        created.outcome.into_node().unwrap().0.id
    }
}

pub fn create(title: &str) -> Command {
    Command::CreateNode { node: new_node(&NodeId::root(), NodeType::Execution, title) }
}

pub fn step(node: &NodeId, action: Action) -> Command {
    let conclusion = matches!(action, Action::Complete | Action::Fail).then(|| String::from("done"));
    let request =
        TransitionRequest { node_id: node.clone(), action, conclusion, claimant: Claimant::default() };
    Command::Transition { request }
}

#[test]
fn repeated_request_returns_stored_answer_and_changes_once() {
    let Some(cluster) = Cluster::start() else { return };
    let team = Team::new(&cluster);
    let request = team.request("create-once", "ada-1", create("once"));
    let answers: Vec<_> = thread::scope(|scope| {
        let send = || scope.spawn(|| team.store.run_request(&team.ada, &request).unwrap());
        let running: Vec<_> = (0..8).map(|_| send()).collect();
        running.into_iter().map(|sent| sent.join().unwrap()).collect()
    });
    assert!(answers.iter().all(|answer| answer == &answers[0]), "{answers:?}");
    assert_eq!(team.store.summary(&team.id, NOW).unwrap().1.total, 1);
    let stored = RunAnswer { heads: Positions::new(), ..answers[0].clone() };
    assert_eq!(team.store.find_answer(&request.key).unwrap(), serde_json::to_value(&stored).ok());
    assert_eq!(team.store.find_answer("key-unknown").unwrap(), None);
    let other = RunRequest { command: create("another"), ..request.clone() };
    assert!(matches!(team.store.run_request(&team.ada, &other), Err(RunError::KeyReused)));
    assert!(matches!(team.store.run_request(&team.bob, &request), Err(RunError::KeyReused)));
}

#[test]
fn request_repeated_after_workspace_was_deleted_returns_stored_answer() {
    let Some(cluster) = Cluster::start() else { return };
    let team = Team::new(&cluster);
    let request = team.request("create-once", "ada-1", create("once"));
    let answer = team.store.run_request(&team.ada, &request).unwrap();
    team.store.delete(&team.id, NOW).unwrap();
    let repeated = team.store.run_request(&team.ada, &request).unwrap();
    assert_eq!(repeated, RunAnswer { heads: Positions::new(), ..answer });
    assert!(matches!(team.store.run_request(&team.bob, &request), Err(RunError::KeyReused)));
    let late = team.request("create-late", "ada-1", create("late"));
    match team.store.run_request(&team.ada, &late) {
        Err(RunError::Store(error)) => assert_eq!(error.code(), "WORKSPACE_NOT_FOUND"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn log_line_with_age_is_stamped_earlier_and_appended_last() {
    let Some(cluster) = Cluster::start() else { return };
    let team = Team::new(&cluster);
    let append = |key: &str, age: Option<i64>| {
        let command = Command::AppendLog { target: Target::Workspace, event: key.to_owned() };
        let request = RunRequest { age, ..team.request(key, "ada-1", command) };
        team.store.run_request(&team.ada, &request).unwrap();
    };
    append("fresh-line", None);
    append("old-line", Some(3_600_000));
    append("line-from-future", Some(-3_600_000));
    append("line-of-no-clock", Some(i64::MAX));
    let log = team.store.activity(&team.id, &Target::Workspace, NOW).unwrap().log;
    let tail = &log[log.len() - 4..];
    let events: Vec<&str> = tail.iter().map(|entry| entry.event.as_str()).collect();
    assert_eq!(
        events,
        ["fresh-line", "old-line", "line-from-future", "line-of-no-clock"],
        "in order of arrival"
    );
    let stamp = |at: usize| tail[at].timestamp.as_str();
    assert!(stamp(1) < stamp(0) && stamp(2) >= stamp(0) && stamp(3) < stamp(1), "{tail:?}");
    assert!(stamp(2)[..4] == stamp(0)[..4] && stamp(3) > "2020", "{tail:?}");
}

#[test]
fn feed_of_memory_without_changes_is_empty() {
    let Some(cluster) = Cluster::start() else { return };
    let team = Team::new(&cluster);
    let page =
        |seq: i64| team.store.changes_after(&Positions::from([(String::from("memory"), seq)])).unwrap();
    assert_eq!((page(0).gaps, page(0).changes), (vec![], vec![]));
    assert_eq!(page(3).gaps, ["memory"], "of another database");
}

#[test]
fn claim_with_lease_is_refused_to_others_and_lost_after_takeover() {
    let Some(cluster) = Cluster::start() else { return };
    let team = Team::new(&cluster);
    let node = team.task("create-task");
    let start = |key: &str, caller: &Caller, session: &str| {
        team.store.run_request(caller, &team.request(key, session, step(&node, Action::Start)))
    };
    let first = start("ada-starts", &team.ada, "ada-1").unwrap();
    assert_eq!(first.fence, Some(2), "the number of the change");
    match start("bob-starts", &team.bob, "bob-1") {
        Err(RunError::Store(Error::NodeHeld { holder, .. })) => {
            assert_eq!((holder.person.as_str(), holder.machine.as_str()), ("ada", "machine of ada-1"));
        }
        other => panic!("{other:?}"),
    }
    cluster.sql("UPDATE session SET lease_until = 0 WHERE id = 'ada-1'");
    assert_eq!(start("bob-takes-over", &team.bob, "bob-1").unwrap().fence, Some(3));
    let complete = team.request("ada-completes", "ada-1", step(&node, Action::Complete));
    match team.store.run_request(&team.ada, &RunRequest { fence: first.fence, ..complete }) {
        Err(RunError::Store(Error::ClaimLost { holder, .. })) => assert_eq!(holder.unwrap().person, "bob"),
        other => panic!("{other:?}"),
    }
    assert_eq!(team.store.node(&team.id, &node, NOW).unwrap().started_by.as_deref(), Some("bob-1"));
}

#[test]
fn beat_renews_own_sessions_and_reports_others_as_lost() {
    let Some(cluster) = Cluster::start() else { return };
    let team = Team::new(&cluster);
    let before = team.store.total_changes().unwrap();
    let node = team.task("create-task");
    assert!(team.store.total_changes().unwrap() > before);
    let start = |key: &str, caller: &Caller, session: &str| {
        team.store.run_request(caller, &team.request(key, session, step(&node, Action::Start)))
    };
    start("ada-starts", &team.ada, "ada-1").unwrap();
    cluster.sql("UPDATE session SET lease_until = 0");
    let sessions = [String::from("ada-1"), String::from("unknown")];
    let foreign = team.store.beat(&team.bob, &sessions).unwrap();
    assert_eq!(foreign.lost, sessions, "bob cannot renew the session of ada");
    let own = team.store.beat(&team.ada, &sessions).unwrap();
    assert_eq!((own.lost, own.lease_until > own.now), (vec![String::from("unknown")], true));
    assert_eq!(own.heads.get(team.id.as_str()), Some(&2));
    assert!(matches!(start("bob-starts", &team.bob, "bob-1"), Err(RunError::Store(Error::NodeHeld { .. }))));
}

#[test]
fn session_of_another_person_is_refused() {
    let Some(cluster) = Cluster::start() else { return };
    let team = Team::new(&cluster);
    team.task("create-task");
    let stolen = team.request("bob-as-ada", "ada-1", create("stolen"));
    assert!(matches!(team.store.run_request(&team.bob, &stolen), Err(RunError::ForeignSession)));
    assert_eq!(team.store.summary(&team.id, NOW).unwrap().1.total, 1);
}

#[test]
fn database_killed_keeps_acknowledged_changes_and_settles_unknown_ones() {
    let Some(mut cluster) = Cluster::start() else { return };
    let team = Team::new(&cluster);
    let node = team.task("create-task");
    let is_over = AtomicBool::new(false);
    let append = |n: usize| {
        let command = Command::AppendLog { target: Target::Node(node.clone()), event: format!("entry {n}") };
        team.request(&format!("append-{n}"), "ada-1", command)
    };
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut n = 0;
            while !is_over.load(Ordering::Relaxed) || n < 20 {
                // An unknown outcome is settled by the same key.
                while team.store.run_request(&team.ada, &append(n)).is_err() {}
                n += 1;
            }
            n
        });
        for _ in 0..3 {
            thread::sleep(std::time::Duration::from_millis(200));
            cluster.crash();
        }
        is_over.store(true, Ordering::Relaxed);
        let written = writer.join().unwrap();
        let log = team.store.activity(&team.id, &Target::Node(node.clone()), NOW).unwrap().log;
        let entries: Vec<&str> = log
            .iter()
            .map(|entry| entry.event.as_str())
            .filter(|event| event.starts_with("entry "))
            .collect();
        let expected: Vec<String> = (0..written).map(|n| format!("entry {n}")).collect();
        assert_eq!(entries, expected, "each acknowledged entry once, in order");
    });
}

#[test]
fn forced_claim_is_in_the_audit() {
    let Some(cluster) = Cluster::start() else { return };
    let team = Team::new(&cluster);
    let node = team.task("task");
    team.store.run_request(&team.ada, &team.request("start-a", "ada-1", step(&node, Action::Start))).unwrap();
    let start = step(&node, Action::Start);
    assert!(team.store.run_request(&team.bob, &team.request("start-b", "bob-1", start)).is_err());
    team.store
        .run_request(&team.bob, &team.request("start-c", "bob-1", forced(&node, Action::Start)))
        .unwrap();
    // Nothing to override: bob's own claim, the claim of a session that ended, a node without a holder.
    let bob =
        |key: &str, command| team.store.run_request(&team.bob, &team.request(key, "bob-1", command)).unwrap();
    let (left, free) = (team.task("task-2"), team.task("task-3"));
    team.store.run_request(&team.ada, &team.request("start-d", "ada-2", step(&left, Action::Start))).unwrap();
    cluster.sql("UPDATE session SET lease_until = 0 WHERE id = 'ada-2'");
    bob("complete", forced(&node, Action::Complete));
    bob("start-e", forced(&left, Action::Start));
    bob("start-f", forced(&free, Action::Start));
    let claimant = Claimant { force: true, ..Claimant::default() };
    bob("delete", Command::DeleteNode { node_id: free, claimant });
    let mut people = People::open(&cluster.address(), &team.ada.project).unwrap();
    let forced = AuditFilter { what: Some(String::from("claim_forced")), limit: 9, ..AuditFilter::default() };
    let entries = people.audit(&forced).unwrap();
    let [entry] = entries.as_slice() else { panic!("{entries:?}") };
    assert_eq!((entry.what.as_str(), entry.person.as_deref()), ("claim_forced", Some("bob")));
    assert_eq!((&entry.detail["nodeId"], &entry.detail["action"]), (&node.as_str().into(), &"start".into()));
}

/// Returns how many milliseconds the lease of a session lasts from now on.
fn lease_left(cluster: &Cluster, session: &str) -> i64 {
    let sql = format!(
        "SELECT lease_until - (extract(epoch FROM clock_timestamp()) * 1000)::bigint FROM session WHERE id = '{session}'"
    );
    cluster.sql(&sql).trim().parse().unwrap()
}

#[test]
fn refused_request_renews_the_lease() {
    let Some(cluster) = Cluster::start() else { return };
    let team = Team::new(&cluster);
    let node = team.task("create-task");
    let unknown = NodeId::parse("node-unknown").unwrap();
    // The last one is refused after a part of its changes was sent.
    let cycle = NodeChange {
        depends_on: ListEdit { add: vec![node.clone()], ..ListEdit::default() },
        ..NodeChange::default()
    };
    let refused = [
        ("expects", RunRequest { expects: Some(77), ..team.request("expects", "ada-1", create("task")) }),
        ("complete", team.request("complete", "ada-1", step(&node, Action::Complete))),
        ("unknown", team.request("unknown", "ada-1", step(&unknown, Action::Start))),
        (
            "cycle",
            team.request("cycle", "ada-1", Command::UpdateNode { node_id: node.clone(), change: cycle }),
        ),
    ];
    for (name, request) in refused {
        cluster.sql("UPDATE session SET lease_until = 0");
        assert!(team.store.run_request(&team.ada, &request).is_err(), "{name}");
        assert!(lease_left(&cluster, "ada-1") > 60_000, "{name}");
    }
    cluster.sql("UPDATE session SET lease_until = 0");
    let foreign = team.request("foreign", "ada-1", create("task"));
    assert!(matches!(team.store.run_request(&team.bob, &foreign), Err(RunError::ForeignSession)));
    assert!(lease_left(&cluster, "ada-1") < 0);
    team.store.delete(&team.id, NOW).unwrap();
    assert!(team.store.run_request(&team.ada, &team.request("deleted", "ada-1", create("task"))).is_err());
    assert!(lease_left(&cluster, "ada-1") > 60_000);
}

#[test]
fn claim_after_delete_and_restore_has_higher_number() {
    let Some(cluster) = Cluster::start() else { return };
    let team = Team::new(&cluster);
    let node = team.task("create-task");
    let run = |key: &str, command: Command| {
        team.store.run_request(&team.ada, &team.request(key, "ada-1", command)).unwrap()
    };
    let first = run("start-1", step(&node, Action::Start)).fence.unwrap();
    run("delete-1", Command::DeleteNode { node_id: node.clone(), claimant: Claimant::default() });
    run("restore-1", Command::RestoreNode { node_id: node.clone() });
    cluster.sql("UPDATE session SET lease_until = 0");
    let start = team.request("bob-starts", "bob-1", step(&node, Action::Start));
    let second = team.store.run_request(&team.bob, &start).unwrap().fence.unwrap();
    assert!(second > first, "{second} after {first}");
    let stale = team.request("ada-stale", "ada-1", step(&node, Action::Complete));
    let stale = RunRequest { fence: Some(first), ..stale };
    assert!(matches!(
        team.store.run_request(&team.ada, &stale),
        Err(RunError::Store(Error::ClaimLost { .. }))
    ));
}

/// Returns a transition that overrides the claim of another session.
fn forced(node: &NodeId, action: Action) -> Command {
    let Command::Transition { mut request } = step(node, action) else { panic!() };
    request.claimant.force = true;
    Command::Transition { request }
}

#[test]
fn force_ends_the_claim_of_a_live_holder() {
    let Some(cluster) = Cluster::start() else { return };
    let team = Team::new(&cluster);
    for (n, action) in [Action::Submit, Action::Complete, Action::Fail].into_iter().enumerate() {
        let node = team.task(&format!("create-{n}"));
        let start = team.request(&format!("start-{n}"), "ada-1", step(&node, Action::Start));
        team.store.run_request(&team.ada, &start).unwrap();
        if action == Action::Fail {
            let submit = team.request("submit", "ada-1", step(&node, Action::Submit));
            team.store.run_request(&team.ada, &submit).unwrap();
        }
        let with = |key: &str, command: Command| {
            let request = team.request(&format!("{key}-{n}"), "bob-1", command);
            team.store.run_request(&team.bob, &RunRequest { fence: Some(0), ..request })
        };
        let refused = with("plain", step(&node, action));
        assert!(matches!(refused, Err(RunError::Store(Error::ClaimLost { .. }))), "{action:?}: {refused:?}");
        let done = with("forced", forced(&node, action)).unwrap();
        assert_eq!(done.outcome.into_transition().unwrap().action, action);
    }
}

#[test]
fn added_node_with_existing_id_is_a_conflict() {
    let Some(cluster) = Cluster::start() else { return };
    let team = Team::new(&cluster);
    let node = team.store.node(&team.id, &team.task("create-task"), NOW).unwrap();
    let mut tx = team.store.begin(&team.id, Access::Write, NOW).unwrap();
    tx.add_node(Node { title: String::from("another"), ..node.clone() }).unwrap();
    assert_eq!(tx.commit().unwrap_err().code(), "CONTENDED", "the database noticed it");
    let mut tx = team.store.begin(&team.id, Access::Write, NOW).unwrap();
    tx.brief(&node.id).unwrap();
    assert_eq!(tx.add_node(node.clone()).unwrap_err().code(), "CONTENDED", "the transaction noticed it");
    drop(tx);
    assert_eq!(team.store.node(&team.id, &node.id, NOW).unwrap(), node);
}

#[test]
fn counts_after_changes_were_sent_are_current() {
    let Some(cluster) = Cluster::start() else { return };
    let team = Team::new(&cluster);
    let (moved, dependent) = (team.task("create-moved"), team.task("create-dependent"));
    let parent = Command::CreateNode { node: new_node(&NodeId::root(), NodeType::Planning, "parent") };
    let parent = team.store.run_request(&team.ada, &team.request("create-parent", "ada-1", parent)).unwrap();
    let parent = parent.outcome.into_node().unwrap().0.id;
    let depends_on = ListEdit { add: vec![moved.clone()], ..ListEdit::default() };
    let change = NodeChange { depends_on, ..NodeChange::default() };
    let depend = Command::UpdateNode { node_id: dependent.clone(), change };
    team.store.run_request(&team.ada, &team.request("depend-1", "ada-1", depend)).unwrap();
    let mut tx = team.store.begin(&team.id, Access::Write, NOW).unwrap();
    tx.prefetch(&[NodeId::root(), parent.clone()]).unwrap();
    let node = tx.node(&moved).unwrap().unwrap();
    tx.put_node(Node { parent_id: Some(parent.clone()), ..node }).unwrap();
    // Sends the change and reads the node again, because another one depends on it.
    tx.dependencies().unwrap();
    assert_eq!(tx.brief(&dependent).unwrap().unwrap().depends_on, [moved]);
    assert_eq!(tx.status_counts(&NodeId::root()).unwrap().total(), 2);
    assert_eq!(tx.status_counts(&parent).unwrap().total(), 1);
    tx.remove_node(&dependent).unwrap();
    assert_eq!(tx.status_counts(&NodeId::root()).unwrap().total(), 1);
    assert_eq!(tx.total().unwrap().total(), 2, "as the database counts");
}
