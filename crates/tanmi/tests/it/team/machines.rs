//! Machines of a team: each is a home of its own that joined the project `shop`.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{Team, write_file};
use crate::env::TestEnv;
use crate::serve::Server;

/// Writes a token into a file for `--token-file`.
pub fn token_file(env: &TestEnv, token: &str) -> String {
    let path = env.root().join("token");
    write_file(&path, format!("{token}\n")).unwrap();
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
    write_file(&plan, "- Build\n- Test (after: Build)\n").unwrap();
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

#[test]
fn join_refuses_local_data_plain_http_and_bad_tokens() {
    let Some(team) = Team::new() else { return };
    let server = team.serve();
    let env = TestEnv::new();
    let file = token_file(&env, &team.admin);
    let url = address(&server);
    let join = |url: &str, project: &str, file: &str| {
        env.error(&["team", "join", url, "--project-name", project, "--token-file", file])
    };
    assert_eq!(join("http://team.example", "shop", &file)["code"], "INVALID_ARGUMENT");
    assert_eq!(join(&url, "other", &file)["code"], "PROJECT_NOT_FOUND");
    let forged = token_file(&env, "tnm_x_y");
    assert_eq!(join(&url, "shop", &forged)["code"], "UNAUTHORIZED");
    let file = token_file(&env, &team.admin);
    assert_eq!(env.error(&["team", "sync"])["code"], "NOT_JOINED");
    // What a clone names is only offered.
    std::fs::create_dir(env.project.join(".tanmi")).unwrap();
    let offer = json!({"server": url, "project": "shop"}).to_string();
    write_file(env.project.join(".tanmi/team.json"), offer).unwrap();
    let asked = env.error(&["team", "join", "--token-file", &file]);
    assert_eq!(asked["code"], "CONFIRMATION_REQUIRED", "{asked}");
    assert!(!env.home_store().join("team.json").exists(), "nothing was joined");
    env.init();
    let refused = join(&url, "shop", &file);
    assert_eq!(refused["code"], "LOCAL_DATA", "{refused}");
    assert!(refused["hint"].as_str().unwrap().contains("tanmi team push"), "{refused}");
    let agent =
        env.command(&["team", "join", "--json", "--token-file", &file]).env("CLAUDECODE", "1").output();
    assert!(!agent.unwrap().status.success(), "only the user joins");
}

/// The replica must not count a command that changed nothing: it would skip the first change of the workspace.
#[test]
fn command_without_change_keeps_position_of_replica() {
    let Some(team) = Team::new() else { return };
    let server = team.serve();
    let ada = machine(&server, &team.admin, "laptop");
    let workspace = ada.init();
    assert!(!ada.run(&["next", "--start"]).ok, "there is nothing to start");
    let other = machine(&server, &team.token("bob", "member"), "desktop");
    let node = other.node("root", "execution", "Build");
    ada.ok(&["team", "sync"]);
    assert_eq!(documents(&replica(&ada)), documents(&replica(&other)));
    assert!(documents(&replica(&ada)).contains_key(&format!("{workspace}/nodes/{node}/Node.md")));
}

#[test]
fn damaged_membership_refuses_writes_and_keeps_hooks_silent() {
    let Some(team) = Team::new() else { return };
    let server = team.serve();
    let ada = machine(&server, &team.admin, "laptop");
    ada.init();
    let mut running = crate::mcp::Client::connect(&ada);
    let page = Server::start(&ada);
    let file = ada.home_store().join("team.json");
    let text = std::fs::read_to_string(&file).unwrap();
    write_file(&file, &text[..text.len() / 2]).unwrap();
    let refused = ada.error(&["workspace", "init", "--name", "X", "--goal", "y"]);
    assert!(refused["message"].as_str().unwrap().contains("team.json"), "{refused}");
    assert_eq!(documents(&ada.project), Default::default(), "no local project was made of it");
    assert!(ada.error(&["team", "status"])["message"].as_str().unwrap().contains("team.json"));
    let agent = crate::agent::Agent { env: &ada, platform: "claude-code", session: "s1".into() };
    assert!(!agent.start("startup").contains("Auth"));
    let refused = running.expect_error("workspace_list", json!({}));
    assert!(refused["message"].as_str().unwrap().contains("team.json"), "{refused}");
    let refused = page.send_request("GET", "/workspaces", &[], &Value::Null);
    assert!(refused.status >= 400 && refused.body.contains("team.json"), "{}", refused.body);
    write_file(&file, text).unwrap();
    assert!(ada.ok(&["status"]).contains("Auth"));
    running.expect_ok("workspace_list", json!({}));
    page.expect_ok("GET", "/workspaces", Value::Null);
    running.finish();
}

#[test]
fn replica_deleted_damaged_or_edited_is_restored_and_edits_are_kept() {
    let Some(team) = Team::new() else { return };
    let server = team.serve();
    let ada = machine(&server, &team.admin, "laptop");
    let workspace = ada.init();
    let node = ada.node("root", "execution", "Build");
    let copy = replica(&ada);
    let original = documents(&copy);
    tanmi_base::fs::remove_tree(&copy.join(".tanmi-workspace")).unwrap();
    assert!(ada.ok(&["status"]).contains("Auth"), "a deleted replica is fetched");
    assert_eq!(documents(&copy), original);
    let path = copy.join(".tanmi-workspace").join(&workspace).join("nodes").join(&node).join("Node.md");
    write_file(&path, "no document").unwrap();
    assert_eq!(ada.status(&node), "pending", "a damaged file is fetched");
    assert_eq!(documents(&copy), original);
    let edited = format!("{}\nmine\n", original[&format!("{workspace}/nodes/{node}/Node.md")]);
    write_file(&path, &edited).unwrap();
    let status = ada.json(&["team", "status"]);
    assert_eq!(status["edited"], json!([format!("{workspace}/{node}")]), "{status}");
    let checked = ada.json(&["team", "sync", "--check"]);
    assert_eq!(checked["different"], json!([format!("{workspace}/{node}")]), "{checked}");
    assert_eq!(documents(&copy), original);
    let kept = |value: &Value| {
        let files = value["kept"].as_array().unwrap().clone();
        files.iter().map(|path| std::fs::read_to_string(path.as_str().unwrap()).unwrap()).collect::<Vec<_>>()
    };
    let mut texts = kept(&ada.json(&["team", "status"]));
    texts.sort();
    let mut expected = vec![edited, String::from("no document")];
    expected.sort();
    assert_eq!(texts, expected);
    let status = ada.json(&["team", "status"]);
    assert_eq!(
        (&status["isReachable"], &status["role"], &status["behind"]),
        (&json!(true), &json!("admin"), &json!(0))
    );
    drop(server);
    let status = ada.json(&["team", "status"]);
    assert_eq!((&status["isReachable"], &status["role"]), (&json!(false), &Value::Null), "{status}");
    let refused = ada.error(&["start", &node]);
    assert_eq!(refused["code"], "TEAM_UNREACHABLE", "{refused}");
    assert!(refused["hint"].as_str().unwrap().contains("nothing was changed"), "{refused}");
    assert_eq!(ada.status(&node), "pending", "reads still work");
}

#[test]
fn claim_that_another_session_took_over_is_lost_with_its_holder() {
    let Some(team) = Team::new() else { return };
    let server = team.serve();
    let ada = machine(&server, &team.admin, "laptop");
    ada.init();
    let node = ada.node("root", "execution", "Build");
    let bob = machine(&server, &team.token("bob", "member"), "desktop");
    let with_session = |env: &TestEnv, session: &str, args: &[&str]| {
        let output = env
            .command(args)
            .arg("--json")
            .env("CLAUDECODE", "1")
            .env("CLAUDE_CODE_SESSION_ID", session)
            .output();
        serde_json::from_slice::<Value>(&output.unwrap().stdout).unwrap()
    };
    with_session(&ada, "ada-1", &["start", &node]);
    assert!(ada.json(&["next"])["next"].as_array().unwrap().is_empty(), "held nodes are not offered");
    team.cluster.sql("UPDATE session SET lease_until = 1").unwrap();
    let taken = with_session(&bob, "bob-1", &["start", &node]);
    assert!(taken["error"].is_null(), "{taken}");
    let log = bob.ok(&["node", "show", &node]);
    assert!(log.contains("taken over by bob"), "{log}");
    team.cluster.sql("UPDATE session SET lease_until = 1").unwrap();
    let state = std::fs::read_to_string(replica(&ada).join("state.json")).unwrap();
    assert!(state.contains("/ada-1\":"), "the machine keeps the number of its claim: {state}");
    let lost = with_session(&ada, "ada-1", &["done", &node, "--conclusion", "built"]);
    assert_eq!(lost["error"]["code"], "CLAIM_LOST", "{lost}");
    assert!(lost["error"]["message"].as_str().unwrap().contains("bob"), "{lost}");
}

/// Runs a command in the shell of an agent's session.
fn run_in_session(env: &TestEnv, session: &str, args: &[&str]) -> Value {
    let mut command = env.command(args);
    let output = command.arg("--json").env("CLAUDECODE", "1").env("CLAUDE_CODE_SESSION_ID", session).output();
    serde_json::from_slice::<Value>(&output.unwrap().stdout).unwrap()
}

#[test]
fn claim_that_session_made_again_elsewhere_is_not_ended_by_its_earlier_number() {
    let Some(team) = Team::new() else { return };
    let server = team.serve();
    let laptop = machine(&server, &team.admin, "laptop");
    laptop.init();
    let node = laptop.node("root", "execution", "Build");
    let desktop = machine(&server, &team.admin, "desktop");
    let bob = machine(&server, &team.token("bob", "member"), "bench");
    // The same session holds the node before and after bob, so only the number tells the claims apart.
    for (env, session) in [(&laptop, "ada-1"), (&bob, "bob-1"), (&desktop, "ada-1")] {
        let started = run_in_session(env, session, &["start", &node]);
        assert!(started["error"].is_null(), "{started}");
        team.cluster.sql("UPDATE session SET lease_until = 1").unwrap();
    }
    let stale = run_in_session(&laptop, "ada-1", &["done", &node, "--conclusion", "built"]);
    assert_eq!(stale["error"]["code"], "CLAIM_LOST", "{stale}");
    let done = run_in_session(&desktop, "ada-1", &["done", &node, "--conclusion", "built"]);
    assert!(done["error"].is_null(), "{done}");
}

#[test]
fn process_that_ran_before_push_or_leave_refuses_calls_until_restart() {
    let Some(team) = Team::new() else { return };
    let server = team.serve();
    let ada = TestEnv::new();
    let workspace = ada.init();
    let other = ada.root().join("other");
    std::fs::create_dir(&other).unwrap();
    let mut elsewhere = crate::mcp::Client::connect_in(&ada, &other);
    let mut local = crate::mcp::Client::connect(&ada);
    let page = Server::start(&ada);
    local.expect_ok("memory_save", json!({"content": "The shop uses euros", "type": "W"}));
    page.expect_ok("GET", "/workspaces", Value::Null);
    let (url, file) = (address(&server), token_file(&ada, &team.admin));
    ada.ok(&["team", "push", &url, "--project-name", "shop", "--token-file", &file]);
    let writes = [
        ("memory_save", json!({"content": "The shop uses dollars", "type": "W"})),
        ("workspace_init", json!({"name": "Second", "goal": "g"})),
        ("log_append", json!({"workspaceId": workspace, "nodeId": "root", "log": "lost"})),
    ];
    let assert_refused = |client: &mut crate::mcp::Client| {
        for (tool, arguments) in &writes {
            let refused = client.expect_error(tool, arguments.clone());
            assert_eq!(refused["code"], "TEAM_CHANGED", "{tool}: {refused}");
            assert!(refused["hint"].as_str().unwrap().contains("reconnect"), "{refused}");
        }
    };
    assert_refused(&mut local);
    let refused = page.expect_error("GET", "/workspaces", Value::Null, 409);
    assert_eq!(refused["code"], "TEAM_CHANGED", "{refused}");
    assert!(documents(&ada.project).keys().all(|path| !path.starts_with("ws-")), "nothing local was written");
    // A process of another project finds the workspace where it is now.
    elsewhere.expect_ok("log_append", json!({"workspaceId": workspace, "nodeId": "root", "log": "seen"}));
    let found = team.cluster.sql("SELECT count(*) FROM node WHERE doc LIKE '%seen%'").unwrap();
    assert_eq!(found.trim(), "1");
    let mut joined = crate::mcp::Client::connect(&ada);
    joined.expect_ok("memory_save", json!({"content": "The shop uses dollars", "type": "W"}));
    ada.ok(&["team", "leave", "--yes"]);
    assert_refused(&mut joined);
    let total = team.cluster.sql("SELECT count(*) FROM workspace").unwrap();
    assert_eq!(total.trim(), "1", "nothing was written on the server after the project left");
    assert!(!ada.home_store().join("team").read_dir().unwrap().any(|_| true), "no replica came back");
    for client in [elsewhere, local, joined] {
        client.finish();
    }
}

#[test]
fn sync_with_workspace_that_cannot_be_written_updates_others_and_doctor_reports_it() {
    let Some(team) = Team::new() else { return };
    let server = team.serve();
    let ada = machine(&server, &team.admin, "laptop");
    let bob = machine(&server, &team.token("bob", "member"), "desktop");
    let init = |name: &str| {
        let made = ada.json(&["workspace", "init", "--name", name, "--goal", "g"]);
        ada.tick(1000);
        made["workspaceId"].as_str().unwrap().to_owned()
    };
    let mut ids = [init("One"), init("Two")];
    ids.sort();
    let [first, second] = ids;
    // A file is where the folder of the workspace would be.
    let place = replica(&bob).join(".tanmi-workspace").join(&first);
    write_file(&place, "in the way").unwrap();
    bob.error(&["team", "sync"]);
    assert!(replica(&bob).join(".tanmi-workspace").join(&second).is_dir(), "the other one is there");
    let report = |env: &TestEnv| env.run(&["doctor", "--json"]).stdout;
    assert!(report(&bob).contains(&format!("{first} in the replica on this machine cannot be updated")));
    std::fs::remove_file(&place).unwrap();
    assert_eq!(bob.json(&["team", "sync"])["fetched"], 1);
    assert!(!report(&bob).contains("cannot be updated"));
    assert_eq!(documents(&replica(&bob)), documents(&replica(&ada)));
}

#[test]
fn push_and_leave_keep_every_byte_and_can_be_repeated() {
    let Some(team) = Team::new() else { return };
    let server = team.serve();
    let ada = TestEnv::new();
    for n in 0..3 {
        let workspace =
            ada.json(&["workspace", "init", "--name", &format!("工作区 {n}"), "--goal", "JWT 令牌"]);
        let id = workspace["workspaceId"].as_str().unwrap();
        let args = ["node", "create", "--workspace", id, "--parent", "root", "--type", "execution"];
        let made = ada.json(&[&args[..], &["--title", "构建", "--requirement", "r\n\n- a\n"]].concat());
        ada.ok(&["log", "--workspace", id, "--node", made["nodeId"].as_str().unwrap(), "看过了"]);
        // An unknown key and section stay.
        let path = ada.node_md(id, made["nodeId"].as_str().unwrap());
        let text = std::fs::read_to_string(&path).unwrap().replacen("---\n", "---\nextra: 1\n", 1);
        write_file(&path, format!("{text}\n## Own\n\ntext\n")).unwrap();
    }
    for (kind, text) in [("W", "The shop uses euros"), ("B", "Moved to JWT"), ("O", "I like tea")] {
        ada.ok(&["memory", "save-fact", text, "--type", kind]);
    }
    let core = ada.project.join(".tanmi-workspace/memory/MEMORY.md");
    write_file(&core, "Ask before a release.\n").unwrap();
    let facts = |env: &TestEnv| {
        let exported = env.ok(&["memory", "export", "--all"]);
        let mut lines: Vec<String> = exported.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let (original, original_facts) = (documents(&ada.project), facts(&ada));
    let (url, file) = (address(&server), token_file(&ada, &team.admin));
    let args = ["team", "push", &url, "--project-name", "shop", "--token-file", &file];
    let pushed = ada.json(&args);
    assert_eq!((&pushed["pushed"], &pushed["lines"]), (&json!(3), &json!(2)), "{pushed}");
    let held: std::collections::BTreeMap<String, String> =
        documents(&replica(&ada)).into_iter().filter(|(path, _)| path.starts_with("ws-")).collect();
    assert_eq!(
        held,
        original
            .iter()
            .filter(|(path, _)| path.starts_with("ws-"))
            .map(|(a, b)| (a.clone(), b.clone()))
            .collect()
    );
    assert!(documents(&ada.project).is_empty(), "the originals are in the trash");
    let bob = machine(&server, &team.token("bob", "member"), "desktop");
    assert_eq!(bob.json(&["workspace", "list"])["total"], 3);
    let again = ada.json(&args);
    assert_eq!(again["pushed"], 0, "{again}");
    assert_eq!(ada.error(&["team", "leave"])["code"], "CONFIRMATION_REQUIRED");
    let left = ada.json(&["team", "leave", "--yes"]);
    assert_eq!(left["workspaces"], 3, "{left}");
    let restored = documents(&ada.project);
    assert_eq!(
        restored.iter().filter(|(path, _)| path.starts_with("ws-")).collect::<Vec<_>>(),
        original.iter().filter(|(path, _)| path.starts_with("ws-")).collect::<Vec<_>>()
    );
    assert_eq!(std::fs::read_dir(ada.home_store().join("team")).unwrap().count(), 0, "the replica is gone");
    assert_eq!(facts(&ada), original_facts, "shared and private memory is back");
    assert_eq!(std::fs::read_to_string(&core).unwrap(), "Ask before a release.\n");
    let private = std::fs::read_dir(ada.home_store().join("team-private")).unwrap();
    assert_eq!(private.count(), 0, "nothing private is left behind");
    assert_eq!(ada.error(&["team", "status"])["code"], "NOT_JOINED");
    ada.ok(&["workspace", "list"]);
}
