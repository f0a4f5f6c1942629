//! Who works on a node, and what stands in the way of the workspace as a whole.

use serde_json::{Value, json};

use super::{DAY, run_as, started_work};
use crate::agent::Agent;
use crate::env::TestEnv;
use crate::mcp::Client;

#[test]
fn focus_that_another_running_session_holds_is_told_with_other_work() {
    let env = TestEnv::new();
    let (ws, [issue, ..]) = started_work(&env);
    env.ok(&["session", "bind", "--session", "second", "--workspace", &ws, "--node", &issue]);
    let second = Agent::claude(&env, "second");
    let held = "Held by: another running session; node_next gives other work\n";
    let start = second.start("startup");
    assert!(start.contains(held), "{start}");
    assert!(!Agent::claude(&env, "day-1").start("resume").contains("Held by"), "its own node");

    // A session that reported its end holds nothing back, also right after its last call.
    Agent::claude(&env, "day-1").send("SessionEnd", "sessionEnd", json!({"reason": "logout"}));
    assert!(!second.start("resume").contains("Held by"));
    run_as(
        &env,
        "second",
        &["node", "transition", &issue, "--workspace", &ws, "--action", "complete", "--conclusion", "c"],
    );
}

#[test]
fn session_that_goes_on_after_its_end_is_live_again() {
    let env = TestEnv::new();
    let (ws, [issue, ..]) = started_work(&env);
    Agent::claude(&env, "day-1").send("SessionEnd", "sessionEnd", json!({"reason": "logout"}));
    run_as(&env, "day-1", &["log", "--workspace", &ws, "--node", &issue, "went on"]);
    let fail = ["node", "transition", &issue, "--workspace", &ws, "--action", "fail", "--conclusion", "c"];
    let output = env.command(&fail).env("CLAUDE_CODE_SESSION_ID", "second").output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("NODE_TAKEN"), "{output:?}");
}

#[test]
fn focus_that_the_user_started_is_told_as_held() {
    let env = TestEnv::with_lang("zh_CN.UTF-8");
    let mut client = Client::connect(&env);
    let ws = client.expect_ok("workspace_init", json!({"name": "重构认证模块", "goal": "替换为 JWT"}));
    let ws = ws["workspaceId"].as_str().unwrap().to_owned();
    client.finish();
    let node = env.node("root", "execution", "签发 token");
    env.ok(&["start", &node]);
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws, "--node", &node]);
    let start = Agent::claude(&env, "s").start("startup");
    assert!(start.contains("持有者：用户本人\n"), "{start}");
}

#[test]
fn start_and_focus_over_mcp_tell_what_the_node_asks_for() {
    let env = TestEnv::new();
    let ws = env.init();
    let choose = env.node("root", "execution", "Choose");
    let issue = env.node("root", "execution", "Issue");
    env.ok(&["node", "update", &issue, "--requirement", "Use RS256", "--note", "keys are in KMS"]);
    env.ok(&["node", "depend", &issue, "--on", &choose]);
    env.ok(&["start", &choose]);
    env.ok(&["done", &choose, "--conclusion", "RS256"]);
    env.ok(&["problem", "--node", &issue, "No access", "--next-step", "ask ops"]);
    let mut client = Client::connect(&env);
    client.expect_ok("session_bind", json!({"sessionId": "a", "workspaceId": ws}));
    client.expect_ok("session_bind", json!({"sessionId": "b", "workspaceId": ws}));
    let check = |told: &Value| {
        assert_eq!((&told["requirement"], &told["note"]), (&json!("Use RS256"), &json!("keys are in KMS")));
        assert_eq!(told["problem"]["nextStep"], "ask ops", "{told}");
        assert_eq!(told["dependencyConclusions"][0]["conclusion"], "RS256", "{told}");
    };
    let focused = client.expect_ok("context_focus", json!({"sessionId": "a", "nodeId": issue}));
    check(&focused);
    assert_eq!((&focused["status"], focused.get("heldBy")), (&json!("pending"), None));

    let next = client.expect_ok("node_next", json!({"sessionId": "a", "start": true}));
    check(&next["started"]);
    let focused = client.expect_ok("context_focus", json!({"sessionId": "b", "nodeId": issue}));
    check(&focused);
    assert_eq!(focused["heldBy"], "another running session", "{focused}");
    let cleared = client.expect_ok("context_focus", json!({"sessionId": "b"}));
    assert_eq!((cleared.get("title"), &cleared["focusedNodeId"]), (None, &Value::Null), "{cleared}");

    // A node that is started by its id; later steps leave out what the agent knows by then.
    let step = |client: &mut Client, action: &str| {
        client.expect_ok(
            "node_transition",
            json!({"sessionId": "a", "nodeId": issue, "action": action, "conclusion": "c"}),
        )
    };
    assert!(step(&mut client, "complete").get("requirement").is_none());
    check(&step(&mut client, "reopen"));
    client.finish();
}

#[test]
fn start_of_planning_node_tells_what_it_asks_for() {
    let env = TestEnv::new();
    let ws = env.init();
    let plan = env.node("root", "planning", "Tokens");
    env.ok(&["node", "update", &plan, "--requirement", "Plan the tokens"]);
    env.ok(&["problem", "--node", &plan, "No access", "--next-step", "ask ops"]);
    env.ok(&["session", "bind", "--session", "a", "--workspace", &ws]);
    let agent = Agent::claude(&env, "a");
    agent.start("startup");
    let mut client = Client::connect(&env);
    let start = json!({"sessionId": "a", "nodeId": plan, "action": "start"});
    let started = client.expect_ok("node_transition", start);
    assert_eq!((&started["to"], &started["requirement"]), (&json!("planning"), &json!("Plan the tokens")));
    assert_eq!(started["problem"]["description"], "No access", "{started}");
    client.finish();
    let later = agent.prompt("go on") + &agent.prompt("go on");
    assert!(
        later.contains("Still open: No access") && !later.contains("ask ops"),
        "the result told it: {later}"
    );
}

#[test]
fn problem_of_the_workspace_is_told_at_bind_start_and_hint() {
    let env = TestEnv::new();
    let (ws, _) = started_work(&env);
    env.ok(&["problem", "--node", "workspace", "No access to KMS", "--next-step", "ask ops"]);
    let line = "Problem of the workspace (nodeId: \"workspace\"): No access to KMS; next step: ask ops\n";
    let unbound = Agent::claude(&env, "other");
    unbound.start("startup");
    assert!(unbound.prompt("go on").contains(line));
    let bound = env.json(&["session", "bind", "--session", "second", "--workspace", &ws]);
    assert!(bound["overview"].as_str().unwrap().starts_with(line), "{bound}");
    let second = Agent::claude(&env, "second");
    assert_eq!(second.start("startup").matches(line).count(), 1);
    env.ok(&["problem", "--node", "workspace", "--clear"]);
    assert!(!second.start("resume").contains("Problem of the workspace"));
}

#[test]
fn focused_root_tells_what_is_in_progress_and_next() {
    let env = TestEnv::new();
    let (ws, [issue, _, roll_out]) = started_work(&env);
    let bound = env.json(&["session", "bind", "--session", "s", "--workspace", &ws, "--node", "root"]);
    let overview = bound["overview"].as_str().unwrap();
    assert!(overview.contains(&issue) && overview.contains(&roll_out), "{overview}");
    let start = Agent::claude(&env, "s").start("startup");
    assert!(start.contains(overview), "{start}");
}

#[test]
fn focus_that_others_completed_is_told_as_change() {
    let env = TestEnv::new();
    let (ws, [issue, ..]) = started_work(&env);
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws, "--node", &issue]);
    let agent = Agent::claude(&env, "s");
    agent.start("startup");
    assert_eq!(agent.prompt("go on"), "");
    run_as(
        &env,
        "day-1",
        &["node", "transition", &issue, "--workspace", &ws, "--action", "complete", "--conclusion", "c"],
    );
    let prompt = agent.prompt("go on");
    assert!(
        prompt.contains(&format!("The focused node changed, now: Issue tokens (completed) {issue}")),
        "{prompt}"
    );
    assert_eq!(agent.prompt("go on"), "", "once");
}

#[test]
fn problem_that_the_session_recorded_is_not_told_back_in_full() {
    let env = TestEnv::new();
    let (ws, [issue, ..]) = started_work(&env);
    env.ok(&["session", "bind", "--session", "day-1", "--workspace", &ws, "--node", &issue]);
    let agent = Agent::claude(&env, "day-1");
    agent.start("startup");
    agent.prompt("check the tokens");
    let problem =
        ["problem", "--workspace", &ws, "--node", &issue, "clock skew", "--next-step", "allow 60 s"];
    run_as(&env, "day-1", &problem);
    let prompt = agent.prompt("go on");
    assert!(prompt.contains("Still open: clock skew") && !prompt.contains("allow 60 s"), "{prompt}");
}

#[test]
fn workspace_that_was_missing_is_told_in_full_when_it_is_back() {
    let env = TestEnv::new();
    let (ws, [issue, ..]) = started_work(&env);
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws, "--node", &issue]);
    let agent = Agent::claude(&env, "s");
    agent.start("startup");
    assert_eq!(agent.prompt("go on"), "");
    let (dir, aside) = (env.project.join(".tanmi-workspace").join(&ws), env.root().join("aside"));
    std::fs::rename(&dir, &aside).unwrap();
    env.tick(DAY);
    assert!(agent.prompt("go on").contains("is missing"));
    std::fs::rename(&aside, &dir).unwrap();
    let prompt = agent.prompt("go on");
    assert!(prompt.contains("Goal: ") && prompt.contains(&issue), "{prompt}");
}

#[test]
fn forked_session_holds_what_it_held_before() {
    let env = TestEnv::new();
    let ws = env.init();
    let node = env.node("root", "execution", "Issue tokens");
    let before = Agent::claude(&env, "before");
    before.start("startup");
    env.ok(&["session", "bind", "--session", "before", "--workspace", &ws]);
    run_as(&env, "before", &["node", "transition", &node, "--action", "start"]);
    let forked = Agent::claude(&env, "forked").start("fork");
    assert!(forked.contains("Focused node: Issue tokens") && !forked.contains("Held by"), "{forked}");
}
