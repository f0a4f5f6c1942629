//! Machines of a team: each is a home of its own that joined the project `shop`.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::Team;
use crate::env::TestEnv;
use crate::serve::Server;

/// Writes a token into a file for `--token-file`.
pub fn token_file(env: &TestEnv, token: &str) -> String {
    let path = env.root().join("token");
    std::fs::write(&path, format!("{token}\n")).unwrap();
    path.display().to_string()
}

/// Returns the address of a server.
pub fn address(server: &Server) -> String {
    format!("http://127.0.0.1:{}", server.port)
}

/// Joins the project `shop` with the folder of the environment.
pub fn join(env: &TestEnv, server: &Server, token: &str, machine: &str) -> Value {
    let (url, file) = (address(server), token_file(env, token));
    env.json(&["team", "join", &url, "--project-name", "shop", "--token-file", &file, "--machine", machine])
}

/// Returns a machine that joined.
pub fn machine(server: &Server, token: &str, name: &str) -> TestEnv {
    let env = TestEnv::new();
    join(&env, server, token, name);
    env
}

/// Returns the folder of the replica of a machine.
pub fn replica(env: &TestEnv) -> PathBuf {
    let mut found = std::fs::read_dir(env.home_store().join("team")).unwrap();
    found.next().unwrap().unwrap().path()
}

/// Returns the documents of the workspaces below a project folder, by path.
pub fn documents(folder: &Path) -> std::collections::BTreeMap<String, String> {
    let store = folder.join(".tanmi-workspace");
    let mut found = std::collections::BTreeMap::new();
    let mut folders = vec![store.clone()];
    while let Some(dir) = folders.pop() {
        for entry in std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
            let name = entry.file_name().unwrap().to_string_lossy().into_owned();
            if name.starts_with('.') {
                continue;
            }
            if entry.is_dir() {
                folders.push(entry);
            } else if name.ends_with(".md") {
                let path = entry.strip_prefix(&store).unwrap().display().to_string();
                found.insert(path, std::fs::read_to_string(&entry).unwrap());
            }
        }
    }
    found
}

#[test]
fn join_on_two_machines_shares_workspaces() {
    let Some(team) = Team::new() else { return };
    let server = team.serve();
    let ada = TestEnv::new();
    let joined = join(&ada, &server, &team.admin, "laptop");
    assert_eq!(
        (&joined["person"], &joined["role"], &joined["machine"]),
        (&json!("ada"), &json!("admin"), &json!("laptop"))
    );
    let workspace = ada.init();
    let plan = ada.root().join("plan.md");
    std::fs::write(&plan, "- Build\n- Test (after: Build)\n").unwrap();
    ada.ok(&["plan", &plan.display().to_string()]);
    let started = ada.json(&["next", "--start"]);
    assert_eq!(started["started"]["title"], "Build", "{started}");
    assert_eq!(documents(&ada.project), Default::default(), "nothing is kept in the folder itself");
    let bob = machine(&server, &team.token("bob", "member"), "desktop");
    let status = bob.json(&["status"]);
    assert_eq!(status["workspaces"][0]["workspaceId"], workspace.as_str(), "{status}");
    assert_eq!(status["project"], bob.project.display().to_string());
    assert_eq!(status["workspaces"][0]["inProgress"][0]["title"], "Build", "{status}");
    let node = started["started"]["nodeId"].as_str().unwrap();
    let refused = bob.error(&["start", node]);
    assert_eq!(refused["code"], "NODE_TAKEN", "{refused}");
    assert!(refused["message"].as_str().unwrap().contains("ada"), "{refused}");
    ada.ok(&["done", node, "--conclusion", "built"]);
    bob.ok(&["team", "sync"]);
    assert_eq!(bob.status(node), "completed");
    assert_eq!(documents(&replica(&ada)), documents(&replica(&bob)));
    // A folder below, and a second folder of the same machine.
    let below = bob.project.join("src/deep");
    std::fs::create_dir_all(&below).unwrap();
    assert!(bob.run_in(&below, &["status"]).stdout.contains("Auth"));
    let second = bob.root().join("second");
    std::fs::create_dir(&second).unwrap();
    let (url, file) = (address(&server), bob.root().join("token").display().to_string());
    let run = bob.run_in(&second, &["team", "join", &url, "--project-name", "shop", "--token-file", &file]);
    assert!(run.ok, "{}", run.stderr);
    assert!(bob.run_in(&second, &["status"]).stdout.contains("Auth"));
    assert_eq!(std::fs::read_dir(bob.home_store().join("team")).unwrap().count(), 1, "one replica");
}
