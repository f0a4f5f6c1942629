//! Many connections write at the same time, and projects that do not see each other.

use std::collections::BTreeSet;
use std::thread;

use tanmi_workspace::command::{Command, LiveSessions};
use tanmi_workspace::model::*;
use tanmi_workspace::ops::{Claimant, Target, TransitionRequest};
use tanmi_workspace::state::Action;
use tanmi_workspace::store::{ChangeFeed, FeedStart, StoreEvent, Workspaces};
use tanmi_workspace::stories::{NOW, new_node, new_workspace, op};

use crate::cluster::Cluster;

struct AllLive;

impl LiveSessions for AllLive {
    fn is_live(&self, _: &str) -> bool {
        true
    }
}

fn start_as(session: &str, node: &NodeId) -> Command {
    let claimant = Claimant { session: Some(session.to_owned()), ..Claimant::default() };
    let request =
        TransitionRequest { node_id: node.clone(), action: Action::Start, conclusion: None, claimant };
    Command::Transition { request }
}

fn create(title: &str) -> Command {
    Command::CreateNode { node: new_node(&NodeId::root(), NodeType::Execution, title) }
}

#[test]
fn writers_of_one_workspace_get_numbers_without_gaps() {
    let Some(cluster) = Cluster::start() else { return };
    let store = cluster.store("busy");
    let id = store.create(new_workspace(&[]), &op(NOW)).unwrap().id;
    let (writers, each) = (12, 15);
    let numbers: BTreeSet<u64> = thread::scope(|scope| {
        let spawn = |writer: u64| {
            let (store, id) = (&store, &id);
            scope.spawn(move || {
                let write = |n: u64| store.run(id, &create(&format!("{writer}-{n}")), &op(NOW), &AllLive);
                (0..each).map(|n| write(n).unwrap().seq).collect::<Vec<u64>>()
            })
        };
        let running: Vec<_> = (0..writers).map(spawn).collect();
        running.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    });
    assert_eq!(numbers, (1..=writers * each).collect::<BTreeSet<u64>>());
    let events = store.subscribe(&id, FeedStart::After(0)).changes().unwrap();
    let seen: Vec<u64> = events
        .iter()
        .map(|event| match event {
            StoreEvent::Change { seq, .. } => *seq,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(seen, (1..=writers * each).collect::<Vec<u64>>());
    assert_eq!(store.summary(&id, NOW).unwrap().1.total, writers * each);
}

#[test]
fn writers_of_one_document_keep_every_entry() {
    let Some(cluster) = Cluster::start() else { return };
    let store = cluster.store("log");
    let id = store.create(new_workspace(&[]), &op(NOW)).unwrap().id;
    let (writers, each) = (8, 10);
    thread::scope(|scope| {
        for writer in 0..writers {
            let (store, id) = (&store, &id);
            scope.spawn(move || {
                for n in 0..each {
                    let append =
                        Command::AppendLog { target: Target::Workspace, event: format!("{writer}-{n}") };
                    store.run(id, &append, &op(NOW), &AllLive).unwrap();
                }
            });
        }
    });
    let log = store.activity(&id, &Target::Workspace, NOW).unwrap().log;
    let events: BTreeSet<&str> = log.iter().map(|entry| entry.event.as_str()).collect();
    assert_eq!(events.iter().filter(|event| event.contains('-')).count(), writers * each, "{events:?}");
}

#[test]
fn claim_by_many_sessions_has_one_winner() {
    let Some(cluster) = Cluster::start() else { return };
    let store = cluster.store("claims");
    let id = store.create(new_workspace(&[]), &op(NOW)).unwrap().id;
    for round in 0..5 {
        let created = store.run(&id, &create(&format!("task {round}")), &op(NOW), &AllLive).unwrap();
        let node = created.outcome.into_node().unwrap().0.id;
        let winners: Vec<String> = thread::scope(|scope| {
            let claim = |n: usize| {
                let (store, id, node) = (&store, &id, &node);
                scope.spawn(move || {
                    let session = format!("session-{n}");
                    let claimed = store.run(id, &start_as(&session, node), &op(NOW), &AllLive);
                    claimed.map(|_| session).map_err(|error| error.code())
                })
            };
            let running: Vec<_> = (0..32).map(claim).collect();
            let results = running.into_iter().map(|claim| claim.join().unwrap());
            results.filter_map(|result| result.map_err(|code| assert_eq!(code, "NODE_TAKEN")).ok()).collect()
        });
        assert_eq!(winners.len(), 1, "{winners:?}");
        assert_eq!(store.node(&id, &node, NOW).unwrap().started_by, Some(winners[0].clone()));
    }
}

#[test]
fn workspace_of_another_project_is_not_found() {
    let Some(cluster) = Cluster::start() else { return };
    let (ours, theirs) = (cluster.store("ours"), cluster.store("theirs"));
    let id = ours.create(new_workspace(&[]), &op(NOW)).unwrap().id;
    assert!(!theirs.exists(&id).unwrap());
    assert!(theirs.headers().unwrap().is_empty());
    let refused = theirs.run(&id, &create("intruder"), &op(NOW), &AllLive).unwrap_err();
    assert_eq!(refused.code(), "WORKSPACE_NOT_FOUND");
    assert_eq!(ours.summary(&id, NOW).unwrap().1.total, 0);
}
