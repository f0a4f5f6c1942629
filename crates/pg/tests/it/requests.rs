//! Requests: keys, claims with leases, and a database that dies.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tanmi_pg::{AuditFilter, Caller, People, PgStore, Role, RunError, create_project};
use tanmi_protocol::{Positions, RunAnswer, RunRequest};
use tanmi_workspace::command::Command;
use tanmi_workspace::error::Error;
use tanmi_workspace::model::*;
use tanmi_workspace::ops::{Claimant, Target, TransitionRequest};
use tanmi_workspace::state::Action;
use tanmi_workspace::store::Workspaces;
use tanmi_workspace::stories::{NOW, new_node, new_workspace, op};

use crate::cluster::Cluster;

/// A project with a workspace and two people.
struct Team {
    store: PgStore,
    id: WorkspaceId,
    ada: Caller,
    bob: Caller,
}

impl Team {
    fn new(cluster: &Cluster) -> Team {
        let store = cluster.store("app");
        let project = create_project(&cluster.address(), "team", "app", NOW).unwrap();
        let mut people = People::open(&cluster.address(), &project).unwrap();
        let mut caller = |name: &str| Caller {
            project: project.clone(),
            person: people.set_member(name, Role::Member, NOW).unwrap(),
            name: name.to_owned(),
            role: Role::Member,
        };
        let (ada, bob) = (caller("ada"), caller("bob"));
        let id = store.create(new_workspace(&[]), &op(NOW)).unwrap().id;
        Team { store, id, ada, bob }
    }

    fn request(&self, key: &str, session: &str, command: Command) -> RunRequest {
        RunRequest {
            key: format!("key-{key}"),
            stream: self.id.clone(),
            command,
            operator: Operator::Ai,
            session: Some(session.to_owned()),
            machine: format!("machine of {session}"),
            fence: None,
            expects: None,
        }
    }

    fn task(&self, key: &str) -> NodeId {
        let created = self.store.run_request(&self.ada, &self.request(key, "ada-1", create(key))).unwrap();
        created.outcome.into_node().unwrap().0.id
    }
}

fn create(title: &str) -> Command {
    Command::CreateNode { node: new_node(&NodeId::root(), NodeType::Execution, title) }
}

fn step(node: &NodeId, action: Action) -> Command {
    let conclusion = (action == Action::Complete).then(|| String::from("done"));
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
fn claim_with_lease_is_refused_to_others_and_lost_after_takeover() {
    let Some(cluster) = Cluster::start() else { return };
    let team = Team::new(&cluster);
    let node = team.task("create-task");
    let start = |key: &str, caller: &Caller, session: &str| {
        team.store.run_request(caller, &team.request(key, session, step(&node, Action::Start)))
    };
    let first = start("ada-starts", &team.ada, "ada-1").unwrap();
    assert_eq!(first.fence, Some(1));
    match start("bob-starts", &team.bob, "bob-1") {
        Err(RunError::Store(Error::NodeHeld { holder, .. })) => {
            assert_eq!((holder.person.as_str(), holder.machine.as_str()), ("ada", "machine of ada-1"));
        }
        other => panic!("{other:?}"),
    }
    cluster.sql("UPDATE session SET lease_until = 0 WHERE id = 'ada-1'");
    assert_eq!(start("bob-takes-over", &team.bob, "bob-1").unwrap().fence, Some(2));
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
    let mut start = step(&node, Action::Start);
    assert!(team.store.run_request(&team.bob, &team.request("start-b", "bob-1", start.clone())).is_err());
    let Command::Transition { request } = &mut start else { panic!() };
    request.claimant.force = true;
    team.store.run_request(&team.bob, &team.request("start-c", "bob-1", start)).unwrap();
    let mut people = People::open(&cluster.address(), &team.ada.project).unwrap();
    let entries = people.audit(&AuditFilter { limit: 9, ..AuditFilter::default() }).unwrap();
    let [entry] = entries.as_slice() else { panic!("{entries:?}") };
    assert_eq!((entry.what.as_str(), entry.person.as_deref()), ("claim_forced", Some("bob")));
    assert_eq!((&entry.detail["nodeId"], &entry.detail["action"]), (&node.as_str().into(), &"start".into()));
}
