//! Servers are replaced one after the other while machines of the team go on working.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::operations::get;
use super::{Team, create_task, create_workspace, ok, run_body, send_as};
use crate::serve::{Server, signal};

#[test]
fn servers_replaced_under_load_lose_and_repeat_no_request() {
    let Some(team) = Team::new() else { return };
    let servers = [team.serve(), team.serve()].map(|server| std::sync::RwLock::new(Some(server)));
    let workspace = create_workspace(servers[0].read().unwrap().as_ref().unwrap(), "create-1");
    let (is_over, sent) = (AtomicBool::new(false), AtomicUsize::new(0));
    let send = |index: usize, key: &str| {
        let server = servers[index % 2].read().unwrap();
        let body = run_body(key, &workspace, create_task(key));
        let response = send_as(server.as_ref()?, &team.admin, "POST", "shop/run", &[], &body);
        // A server that is about to stop may close a connection, and its database pool waits at most some seconds.
        matches!(response.status, 200).then(|| response.json()["seq"].as_i64().unwrap())
    };
    let seqs: Vec<i64> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|client| {
                let (is_over, sent, send) = (&is_over, &sent, &send);
                scope.spawn(move || {
                    let mut seqs = Vec::new();
                    for n in 0.. {
                        if is_over.load(Ordering::Relaxed) {
                            break;
                        }
                        let key = format!("task-{client}-{n:04}");
                        // The same key at the other server, until one has answered.
                        let seq = (client..client + 400).find_map(|index| {
                            send(index, &key).or_else(|| {
                                std::thread::sleep(Duration::from_millis(20));
                                None
                            })
                        });
                        seqs.push(seq.unwrap_or_else(|| panic!("{key} has no answer")));
                        sent.fetch_add(1, Ordering::Relaxed);
                    }
                    seqs
                })
            })
            .collect();
        for server in &servers {
            let before = sent.load(Ordering::Relaxed);
            while sent.load(Ordering::Relaxed) < before + 10 {
                std::thread::sleep(Duration::from_millis(10));
            }
            // Requests that run now are finished, and later ones find no server here.
            signal(server.read().unwrap().as_ref().unwrap().pid(), "TERM");
            let old: Server = server.write().unwrap().take().unwrap();
            assert!(old.wait(), "the old server ends cleanly");
            *server.write().unwrap() = Some(team.serve());
        }
        is_over.store(true, Ordering::Relaxed);
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    });
    let mut sorted = seqs.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, (1..=seqs.len() as i64).collect::<Vec<_>>(), "each request has one change of its own");
    let server = servers[1].read().unwrap();
    assert_eq!(
        ok(server.as_ref().unwrap(), "GET", "feed", &Value::Null)["heads"][&workspace],
        json!(seqs.len())
    );
}

#[test]
fn server_of_former_version_serves_newer_schema() {
    let Some(team) = Team::new() else { return };
    let old = team.serve();
    let workspace = create_workspace(&old, "create-1");
    // What the next version leaves behind: a higher number, and that this version still works with it.
    team.cluster.sql("ALTER TABLE node ADD COLUMN of_the_next_version text").unwrap();
    team.cluster.sql("UPDATE schema_version SET oldest = version, version = version + 1").unwrap();
    let body = run_body("task-0001", &workspace, create_task("Build"));
    assert_eq!(ok(&old, "POST", "run", &body)["seq"], 1);
    assert_eq!(get(&old, "", "/readyz").status, 200);
    let started = team.serve();
    assert_eq!(get(&started, "", "/readyz").status, 200, "also if it is started now");
    assert_eq!(ok(&started, "GET", "feed", &Value::Null)["heads"][&workspace], 1);
}
