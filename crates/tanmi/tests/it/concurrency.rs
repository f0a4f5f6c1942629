//! Many processes in one workspace: no acknowledged change is lost, and every file stays readable.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::env::TestEnv;

fn run(env: &TestEnv, args: &[&str]) -> Value {
    let output = env.command(args).arg("--json").output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stdout));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn eight_writing_processes_lose_nothing() {
    const WORKERS: usize = 8;
    const WRITES: usize = 200;
    let env = TestEnv::new();
    let ws = env.init();
    let shared = env.node("root", "planning", "shared");
    // Acknowledged changes of each worker.
    let acknowledged: Vec<(Vec<String>, Vec<String>, Vec<String>)> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..WORKERS)
            .map(|worker| {
                let (env, shared) = (&env, shared.as_str());
                scope.spawn(move || {
                    let (mut nodes, mut done, mut lines) = (Vec::new(), Vec::new(), Vec::new());
                    for n in 0..WRITES {
                        match n % 5 {
                            0 | 1 => {
                                let title = format!("w{worker} n{n}");
                                let args = [
                                    "node",
                                    "create",
                                    "--parent",
                                    shared,
                                    "--type",
                                    "execution",
                                    "--title",
                                    &title,
                                ];
                                nodes.push(run(env, &args)["nodeId"].as_str().unwrap().to_owned());
                            }
                            2 => {
                                let line = format!("w{worker} line {n}");
                                run(env, &["log", "--node", shared, &line]);
                                lines.push(line);
                            }
                            3 => {
                                let node = &nodes[nodes.len() - 1];
                                run(env, &["node", "transition", node, "--action", "start"]);
                            }
                            _ => {
                                let node = &nodes[nodes.len() - 1];
                                let end = [
                                    "node",
                                    "transition",
                                    node,
                                    "--action",
                                    "complete",
                                    "--conclusion",
                                    "ok",
                                ];
                                run(env, &end);
                                done.push(node.clone());
                            }
                        }
                    }
                    (nodes, done, lines)
                })
            })
            .collect();
        handles.into_iter().map(|handle| handle.join().unwrap()).collect()
    });

    let page = env.json(&["node", "list", "--limit", "10000"]);
    let rows = page["nodes"].as_array().unwrap();
    let ids: BTreeSet<&str> = rows.iter().map(|row| row["id"].as_str().unwrap()).collect();
    let completed: BTreeSet<&str> = rows
        .iter()
        .filter(|row| row["status"] == "completed")
        .map(|row| row["id"].as_str().unwrap())
        .collect();
    let log = env.json(&["log", "--node", &shared, "--limit", "100000"]);
    let logged: BTreeSet<&str> =
        log["entries"].as_array().unwrap().iter().map(|entry| entry["event"].as_str().unwrap()).collect();
    let mut created = 0;
    for (nodes, done, lines) in &acknowledged {
        created += nodes.len();
        assert!(nodes.iter().all(|id| ids.contains(id.as_str())), "a created node is missing");
        assert!(done.iter().all(|id| completed.contains(id.as_str())), "a completed node is not");
        assert!(lines.iter().all(|line| logged.contains(line.as_str())), "a log line is missing");
    }
    assert_eq!(ids.len(), created + 2, "there are no other nodes");
    let report = env.check(&[&ws]);
    assert_eq!(report["findings"], Value::Array(vec![]));
    let folders = std::fs::read_dir(env.workspace_dir(&ws).join("nodes")).unwrap().count();
    assert_eq!(folders, ids.len());
    assert_eq!(std::fs::read_dir(env.workspace_dir(&ws).join(".local/tmp")).unwrap().count(), 0);
}

#[test]
fn concurrent_start_succeeds_once() {
    let env = TestEnv::new();
    env.init();
    for round in 0..10 {
        let task = env.node("root", "execution", &format!("task {round}"));
        let mut children: Vec<_> = (0..4)
            .map(|_| {
                let mut command = env.command(&["node", "transition", &task, "--action", "start"]);
                command
                    .stdout(std::process::Stdio::null())
                    .stderr(std::process::Stdio::null())
                    .spawn()
                    .unwrap()
            })
            .collect();
        let winners =
            children.iter_mut().map(|child| child.wait().unwrap().success()).filter(|ok| *ok).count();
        assert_eq!(winners, 1, "one process succeeds, the others get an error");
    }
}
