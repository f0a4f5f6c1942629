//! Machines that joined a team while agents work on them: the follower, leases, lost claims, and who works on what.

use std::io::Read;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Team, machines};
use crate::agent::Agent;
use crate::env::TestEnv;
use crate::mcp::Client;
use crate::serve::Server;

/// The longest wait for something that another process does.
const SOON: Duration = Duration::from_secs(60);

/// A machine whose project a team server keeps.
struct Machine {
    env: TestEnv,
}

impl Machine {
    fn join(server: &Server, person: &str, token: &str) -> Machine {
        Machine { env: machines::machine(server, token, &format!("{person}-laptop")) }
    }

    fn replica(&self) -> PathBuf {
        machines::replica(&self.env)
    }

    fn presence(&self) -> Value {
        let text = std::fs::read(self.replica().join("presence.json")).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Starts an agent that is bound to a workspace.
    fn agent(&self, session: &str, workspace: &str) -> Agent<'_> {
        let agent = Agent::claude(&self.env, session);
        agent.start("startup");
        self.env.ok(&["session", "bind", "--session", session, "--workspace", workspace]);
        agent
    }

    /// Runs a process that follows until a node is here.
    fn fetch(&self, node: &str) {
        let client = Client::connect(&self.env);
        eventually("the node arrives", || self.env.run(&["node", "show", node]).ok);
        client.finish();
    }

    fn transition(&self, node: &str, action: &str, session: &str) -> Vec<String> {
        let args = ["node", "transition", node, "--action", action, "--session", session];
        args.map(String::from).into()
    }
}

fn run(machine: &Machine, args: &[String]) -> Value {
    machine.env.json(&args.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Waits until a condition holds.
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + SOON;
    while !condition() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Two machines, and a workspace with a task that both have.
struct Shop {
    team: Team,
    _server: Server,
    ada: Machine,
    bob: Machine,
    workspace: String,
    node: String,
}

impl Shop {
    fn new() -> Option<Shop> {
        let team = Team::new()?;
        let server = team.serve();
        let ada = Machine::join(&server, "ada", &team.admin);
        let bob = Machine::join(&server, "bob", &team.token("bob", "member"));
        let workspace = ada.env.init();
        let node = ada.env.node("root", "execution", "Build");
        Some(Shop { team, _server: server, ada, bob, workspace, node })
    }

    fn lease_of(&self, session: &str) -> i64 {
        let sql = format!("SELECT lease_until FROM session WHERE id = '{session}'");
        self.team.cluster.sql(&sql).unwrap().trim().parse().unwrap()
    }

    fn end_leases(&self) {
        self.team.cluster.sql("UPDATE session SET lease_until = 1").unwrap();
    }
}

#[test]
fn mcp_process_brings_changes_of_other_machines_and_next_process_takes_over() {
    let Some(shop) = Shop::new() else { return };
    let mut first = Client::connect(&shop.bob.env);
    eventually("the workspace arrives", || {
        shop.bob.env.run(&["node", "show", &shop.node, "--workspace", &shop.workspace]).ok
    });
    let second = Client::connect(&shop.bob.env);
    let title_arrives = |title: &str| {
        shop.ada.env.ok(&["node", "update", &shop.node, "--title", title]);
        let document = shop.bob.replica().join(".tanmi-workspace").join(&shop.workspace);
        let document = document.join("nodes").join(&shop.node).join("Node.md");
        eventually(title, || std::fs::read_to_string(&document).unwrap().contains(title));
    };
    title_arrives("Build it well");
    assert!(first.list_tools().is_array());
    first.finish();
    title_arrives("Build it better");
    second.finish();
}

#[test]
fn mcp_process_with_server_that_never_answers_serves_and_exits() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", silent.local_addr().unwrap());
    let env = TestEnv::new();
    let member = json!({
        "server": address, "project": "shop", "person": "ada", "machine": "laptop", "token": "tnm_x_y",
        "folders": [env.project], "joinedAt": 1,
    });
    env.make(&env.home_store().join("team.json"), &json!({"version": 1, "projects": [member]}).to_string());
    let mut command = env.command(&["mcp"]);
    let mut child = spawn(&mut command);
    // The follower has sent a request, which gets no answer.
    silent.set_nonblocking(true).unwrap();
    let mut connection = None;
    eventually("the follower connects", || {
        connection = silent.accept().ok();
        connection.is_some()
    });
    let (mut connection, _) = connection.unwrap();
    connection.set_nonblocking(false).unwrap();
    connection.set_read_timeout(Some(SOON)).unwrap();
    assert!(connection.read(&mut [0; 1]).unwrap() > 0);
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    }});
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}});
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, format!("{hello}\n{list}\n").as_bytes()).unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    assert!(lines.next().unwrap().unwrap().contains("instructions"));
    assert!(lines.next().unwrap().unwrap().contains("node_plan"));
    drop(stdin);
    // A request has ten seconds and more, and the process does not wait for it.
    let end = Instant::now() + Duration::from_secs(8);
    while child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < end, "the process waits for the server");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn spawn(command: &mut Command) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn lease_of_session_in_use_is_renewed_and_of_ended_one_is_not() {
    let Some(shop) = Shop::new() else { return };
    let agent = shop.ada.agent("ada-1", &shop.workspace);
    run(&shop.ada, &shop.ada.transition(&shop.node, "start", "ada-1"));
    shop.end_leases();
    let client = Client::connect(&shop.ada.env);
    eventually("the lease is renewed", || shop.lease_of("ada-1") > 1);
    client.finish();
    agent.send("SessionEnd", "sessionEnd", json!({"reason": "exit"}));
    shop.end_leases();
    std::fs::remove_file(shop.ada.replica().join("presence.json")).unwrap();
    let client = Client::connect(&shop.ada.env);
    eventually("a beat was sent", || shop.ada.presence()["sessions"].is_array());
    assert_eq!(shop.lease_of("ada-1"), 1, "no agent works in the session any more");
    client.finish();
}

#[test]
fn session_that_lost_node_is_told_at_next_prompt_and_cannot_complete_it() {
    let Some(shop) = Shop::new() else { return };
    let agent = shop.ada.agent("ada-1", &shop.workspace);
    agent.prompt("go");
    run(&shop.ada, &shop.ada.transition(&shop.node, "start", "ada-1"));
    let client = Client::connect(&shop.ada.env);
    eventually("ada follows", || shop.ada.presence()["sessions"].is_array());
    shop.bob.fetch(&shop.node);
    shop.end_leases();
    run(&shop.bob, &shop.bob.transition(&shop.node, "start", "bob-1"));
    let state = shop.ada.env.home_store().join("state/ada-1.json");
    eventually("the session has a note", || std::fs::read_to_string(&state).unwrap().contains("lostClaims"));
    let told = agent.prompt("go on");
    let expected = format!("“Build” ({}): bob (bob-laptop) took it over", shop.node);
    assert!(told.contains(&expected), "{told}");
    assert!(!agent.prompt("go on").contains("no longer hold"), "told once");
    let mut args = shop.ada.transition(&shop.node, "complete", "ada-1");
    args.extend(["--conclusion", "done"].map(String::from));
    let error = shop.ada.env.error(&args.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(["CLAIM_LOST", "NODE_TAKEN"].contains(&error["code"].as_str().unwrap()), "{error}");
    assert!(error["message"].as_str().unwrap().contains("bob on bob-laptop"), "{error}");
    client.finish();
}

#[test]
fn session_that_lost_node_before_a_sync_is_told_once() {
    let Some(shop) = Shop::new() else { return };
    let agent = shop.ada.agent("ada-1", &shop.workspace);
    agent.prompt("go");
    run(&shop.ada, &shop.ada.transition(&shop.node, "start", "ada-1"));
    shop.bob.env.ok(&["team", "sync"]);
    shop.end_leases();
    run(&shop.bob, &shop.bob.transition(&shop.node, "start", "bob-1"));
    // No process of this machine follows, and the command brings the change.
    shop.ada.env.ok(&["team", "sync"]);
    let client = Client::connect(&shop.ada.env);
    let state = shop.ada.env.home_store().join("state/ada-1.json");
    eventually("the session has a note", || std::fs::read_to_string(&state).unwrap().contains("lostClaims"));
    assert!(agent.prompt("go on").contains("bob (bob-laptop) took it over"));
    shop.bob.env.ok(&["node", "update", &shop.node, "--title", "Build it well"]);
    eventually("a change arrives", || {
        shop.ada.env.json(&["node", "show", &shop.node])["node"]["title"] == "Build it well"
    });
    client.finish();
    shop.ada.fetch(&shop.node);
    assert!(!agent.prompt("go on").contains("no longer hold"), "told once");
}

#[test]
fn status_and_context_name_person_and_machine_of_holder() {
    let Some(shop) = Shop::new() else { return };
    shop.bob.fetch(&shop.node);
    shop.bob.agent("bob-1", &shop.workspace);
    run(&shop.bob, &shop.bob.transition(&shop.node, "start", "bob-1"));
    let client = Client::connect(&shop.ada.env);
    eventually("ada knows of bob", || shop.ada.presence()["sessions"][0]["nodeId"] == shop.node.as_str());
    let show = || shop.ada.env.json(&["node", "show", &shop.node]);
    eventually("the change arrives", || show()["heldBy"].is_string());
    client.finish();
    let status = shop.ada.env.json(&["status"]);
    let present = &status["workspaces"][0]["team"][0];
    assert_eq!(
        (&present["person"], &present["machine"]),
        (&json!("bob"), &json!("bob-laptop · Claude Code")),
        "{status}"
    );
    assert_eq!((&present["nodeTitle"], &present["isLive"]), (&json!("Build"), &json!(true)), "{status}");
    let shown = shop.ada.env.ok(&["status"]);
    assert!(shown.contains("Team") && shown.contains("bob-laptop"), "{shown}");
    assert_eq!(show()["heldBy"], "bob (bob-laptop · Claude Code)", "{}", show());
    let next = shop.ada.env.ok(&["next"]);
    assert!(next.contains("in progress by bob (bob-laptop"), "{next}");
    shop.ada.agent("ada-1", &shop.workspace);
    let unbound = Agent::claude(&shop.ada.env, "ada-2");
    unbound.start("startup");
    let told = unbound.prompt("continue where we left off");
    assert!(told.contains("; started by bob (bob-laptop · Claude Code) "), "{told}");
    let status = shop.ada.env.json(&["session", "status", "--session", "ada-1"]);
    assert_eq!(status["team"][0]["person"], "bob", "{status}");
}

#[test]
fn doctor_in_joined_project_reports_server_token_and_age_of_replica() {
    let Some(shop) = Shop::new() else { return };
    let checks = |env: &TestEnv| {
        let run = env.run(&["doctor", "--json"]);
        let report: Value = serde_json::from_str(&run.stdout).unwrap();
        let checks = report["checks"].as_array().cloned().unwrap_or_default();
        checks.into_iter().filter(|check| check["check"] == "team").collect::<Vec<_>>()
    };
    let found = json!(checks(&shop.ada.env)).to_string();
    assert!(found.contains("answers (version") && found.contains("behind the server"), "{found}");
    assert!(!found.contains("token"), "{found}");
    let soon = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint + 86400000";
    shop.team.cluster.sql(&format!("UPDATE token SET expires_at = {soon}")).unwrap();
    let found = json!(checks(&shop.ada.env)).to_string();
    assert!(found.contains("the token expires at"), "{found}");
    let Shop { _server, ada, .. } = shop;
    drop(_server);
    ada.env.ok(&["memory", "save-fact", "The shop uses euros"]);
    let found = json!(checks(&ada.env)).to_string();
    assert!(found.contains("writes that wait for the server: 1"), "{found}");
    assert!(found.contains("as of") && found.contains("tanmi team sync"), "{found}");
}
