//! What a start records, and what a session is told that lost its claim on this machine.

use serde_json::json;

use super::run_as;
use crate::agent::Agent;
use crate::env::TestEnv;
use crate::mcp::Client;
use crate::serve::Server;

fn holder(env: &TestEnv, node: &str) -> String {
    env.json(&["node", "show", node])["node"]["startedBy"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn start_by_user_claims_node_in_every_interface() {
    let env = TestEnv::new();
    let ws = env.init();
    let nodes = ["N1", "N2", "N3", "N4"].map(|title| env.node("root", "execution", title));
    env.ok(&["start", "N1"]);
    env.ok(&["node", "transition", "N2", "--action", "start"]);
    let server = Server::start(&env);
    let path = format!("/workspaces/{ws}/nodes/{}/transition", nodes[2]);
    server.expect_ok("POST", &path, json!({"action": "start"}));
    let mut client = Client::connect(&env);
    client.expect_ok("session_bind", json!({"sessionId": "b", "workspaceId": ws}));
    let complete =
        |node: &str| json!({"sessionId": "b", "nodeId": node, "action": "complete", "conclusion": "done"});
    for node in &nodes[..3] {
        assert_eq!(holder(&env, node), "@person", "{node}");
        assert_eq!(client.expect_error("node_transition", complete(node))["code"], "NODE_TAKEN");
    }
    client.expect_ok("node_transition", json!({"sessionId": "b", "nodeId": nodes[3], "action": "start"}));
    let forced = env.json(&["start", "N4", "--force"]);
    assert_eq!((&forced["takeover"], &forced["previousHolder"]), (&json!(true), &json!("b")), "{forced}");
    assert_eq!(holder(&env, &nodes[3]), "@person");
    assert_eq!(client.expect_error("node_transition", complete(&nodes[3]))["code"], "NODE_TAKEN");
    client.finish();
}

#[test]
fn session_is_told_that_the_user_deleted_its_node() {
    let env = TestEnv::new();
    let ws = env.init();
    let plan = env.node("root", "planning", "Tokens");
    let node = env.node(&plan, "execution", "Issue tokens");
    env.node(&plan, "execution", "Check tokens");
    env.ok(&["session", "bind", "--session", "a", "--workspace", &ws]);
    let agent = Agent::claude(&env, "a");
    agent.start("startup");
    run_as(&env, "a", &["node", "transition", &node, "--action", "start"]);
    agent.prompt("go on");
    env.ok(&["node", "delete", &plan, "--yes", "--force"]);
    let told = agent.prompt("go on");
    let lost =
        format!("You no longer hold node “Issue tokens” ({node}): the user deleted it. Stop work on it");
    assert!(told.contains(&lost), "{told}");
    assert!(!agent.prompt("go on").contains("no longer hold"), "told once");
}

#[test]
fn session_is_told_that_its_deleted_node_is_back() {
    let env = TestEnv::new();
    let ws = env.init();
    let [node, other] = ["Issue tokens", "Check tokens"].map(|title| env.node("root", "execution", title));
    env.ok(&["session", "bind", "--session", "a", "--workspace", &ws]);
    let agent = Agent::claude(&env, "a");
    agent.start("startup");
    for node in [&node, &other] {
        run_as(&env, "a", &["node", "transition", node, "--action", "start"]);
    }
    agent.prompt("go on");
    for node in [&node, &other] {
        env.ok(&["node", "delete", node, "--yes", "--force"]);
    }
    env.ok(&["node", "restore", &node]);
    let told = agent.prompt("go on");
    let back = |title: &str, node: &str| {
        format!(
            "Restored after its deletion: “{title}” ({node}). You hold it again; context_focus returns to it."
        )
    };
    assert!(told.contains("You no longer hold node “Check tokens”"), "{told}");
    assert!(told.contains(&back("Issue tokens", &node)) && !told.contains("node “Issue tokens”"), "{told}");
    env.ok(&["node", "restore", &other]);
    let told = agent.prompt("go on");
    assert!(told.contains(&back("Check tokens", &other)) && !told.contains("no longer hold"), "{told}");
    assert!(!agent.prompt("go on").contains("Restored"), "told once");
}

#[test]
fn session_that_lost_two_nodes_is_told_both() {
    let env = TestEnv::with_lang("zh_CN.UTF-8");
    let ws = env.init();
    let [sign, check] = ["Sign", "Check"].map(|title| env.node("root", "execution", title));
    env.ok(&["session", "bind", "--session", "a", "--workspace", &ws]);
    let agent = Agent::claude(&env, "a");
    agent.start("startup");
    for node in [&sign, &check] {
        run_as(&env, "a", &["node", "transition", node, "--action", "start"]);
    }
    agent.prompt("go on");
    env.ok(&["node", "delete", &sign, "--yes", "--force"]);
    env.ok(&["start", &check, "--force"]);
    let told = agent.prompt("go on");
    let lost = format!(
        "You no longer hold these nodes: “Check” ({check}): the user took it over; “Sign” ({sign}): the user deleted it. Stop"
    );
    assert!(told.contains(&lost), "{told}");
}

#[test]
fn session_is_told_once_that_its_claim_was_taken_over() {
    let env = TestEnv::new();
    let ws = env.init();
    let node = env.node("root", "execution", "Issue tokens");
    let agents = ["a", "b"].map(|session| Agent::claude(&env, session));
    for agent in &agents {
        agent.start("startup");
        env.ok(&["session", "bind", "--session", &agent.session, "--workspace", &ws]);
        agent.prompt("go on");
    }
    let start = |session: &str, force: &[&str]| {
        run_as(
            &env,
            session,
            &[&["node", "transition", &node, "--action", "start", "--json"], force].concat(),
        )
    };
    assert!(!start("a", &[]).contains("takeover"));
    assert_eq!(agents[0].prompt("go on"), "");
    let forced = start("b", &["--force"]);
    assert!(forced.contains("\"takeover\":true") || forced.contains("\"takeover\": true"), "{forced}");
    let told = agents[0].prompt("go on");
    assert!(
        told.contains(&format!(
            "You no longer hold node “Issue tokens” ({node}): Claude Code (b) took it over"
        )),
        "{told}"
    );
    assert!(!agents[0].prompt("go on").contains("no longer hold"), "told once");
    assert!(!agents[1].prompt("go on").contains("no longer hold"));
    let log = env.ok(&["log", "--node", &node]);
    assert!(log.contains("taken over from Claude Code session a by Claude Code session b"), "{log}");

    env.ok(&["start", "Issue tokens", "--force"]);
    assert!(agents[1].prompt("go on").contains("the user took it over"));
    let log = env.ok(&["log", "--node", &node]);
    assert!(log.contains("taken over from Claude Code session b by the user"), "{log}");
    assert!(!start("b", &["--force"]).is_empty());
    env.ok(&["done", "Issue tokens", "--conclusion", "c", "--force"]);
    assert!(agents[1].prompt("go on").contains("the user ended it"));
}
