//! What a bound session is told when the user or another session changes something.

use serde_json::json;

use super::{run_as, started_work};
use crate::agent::Agent;
use crate::env::TestEnv;
use crate::mcp::Client;

#[test]
fn focus_moved_by_user_is_told_as_change() {
    let env = TestEnv::new();
    let (ws, [_, _, roll_out]) = started_work(&env);
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws]);
    let agent = Agent::claude(&env, "s");
    agent.start("startup");
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws, "--node", "Roll out"]);
    let told = agent.prompt("go on");
    assert!(told.contains(&format!("Focus is now: Roll out (pending) {roll_out}")), "{told}");
    assert!(!told.contains("Goal") && told.len() <= 250, "{} {told}", told.len());
    assert_eq!(agent.prompt("go on"), "");
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws, "--node", "Roll out"]);
    assert_eq!(agent.prompt("go on"), "", "nothing changed");
}

#[test]
fn renamed_focused_node_is_told_as_change_of_node() {
    let env = TestEnv::new();
    let (ws, [issue, ..]) = started_work(&env);
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws, "--node", &issue]);
    let agent = Agent::claude(&env, "s");
    agent.start("startup");
    run_as(&env, "other", &["node", "update", &issue, "--title", "Issue signed tokens"]);
    let told = agent.prompt("go on");
    assert!(told.contains("The focused node changed, now: Issue signed tokens"), "{told}");
    assert!(!told.contains("Focus is now"), "{told}");
}

#[test]
fn requirement_and_docs_that_were_removed_are_told() {
    let env = TestEnv::new();
    let (ws, [issue, ..]) = started_work(&env);
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws, "--node", &issue]);
    let agent = Agent::claude(&env, "s");
    agent.start("startup");
    env.ok(&["node", "update", &issue, "--requirement", ""]);
    let told = agent.prompt("go on");
    assert!(told.contains("The focused node changed") && told.contains("\nRequirement: none\n"), "{told}");
    env.ok(&["workspace", "update", &ws, "--doc", "docs/api.md"]);
    let told = agent.prompt("go on");
    assert!(told.contains("Docs are now:\n- docs/api.md\n"), "{told}");
    env.ok(&["workspace", "update", &ws, "--remove-doc", "docs/api.md"]);
    let told = agent.prompt("go on");
    assert!(told.contains("Docs are now: none\n"), "{told}");
}

/// The context has no room for all rules. A later change tells those that it had no room for.
#[test]
fn rules_that_were_cut_are_told_with_the_next_change() {
    let env = TestEnv::new();
    let rules: Vec<String> = (0..60).map(|n| format!("{n} {}", "a long rule ".repeat(13))).collect();
    let mut init = vec!["workspace", "init", "--name", "Auth", "--goal", "g"];
    rules.iter().for_each(|rule| init.extend(["--rule", rule]));
    let ws = env.json(&init)["workspaceId"].as_str().unwrap().to_owned();
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws]);
    let agent = Agent::claude(&env, "s");
    let start = agent.start("startup");
    assert!(start.contains("\n- 30 a long") && !start.contains("\n- 59 a long"), "{start}");
    env.ok(&["workspace", "update", "--add-rule", "a new rule"]);
    let told = agent.prompt("go on");
    assert!(told.contains("\n+ 59 a long") && told.contains("\n+ a new rule"), "{told}");
    assert!(!told.contains("\n+ 30 a long"), "{told}");
    env.ok(&["workspace", "update", "--add-rule", "another"]);
    let told = agent.prompt("go on");
    assert!(told.contains("\n+ another") && !told.contains("a long rule"), "all others are known: {told}");
}

#[test]
fn added_rule_among_many_is_told() {
    let env = TestEnv::new();
    let rules: Vec<String> =
        (0..150).map(|n| format!("Rule {n}: every endpoint has a test of its own")).collect();
    let mut args = vec!["workspace", "init", "--name", "n", "--goal", "g"];
    args.extend(rules.iter().flat_map(|rule| ["--rule", rule]));
    let ws = env.json(&args)["workspaceId"].as_str().unwrap().to_owned();
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws]);
    let agent = Agent::claude(&env, "s");
    agent.start("startup");
    env.ok(&["workspace", "update", "--add-rule", "Tokens live for an hour"]);
    let told = agent.prompt("go on");
    assert!(told.contains("\n+ Tokens live for an hour") && told.len() <= 200, "{told}");
}

#[test]
fn bind_result_is_not_repeated_by_next_prompt() {
    let env = TestEnv::new();
    let (ws, [issue, ..]) = started_work(&env);
    let agent = Agent::claude(&env, "day-2");
    agent.start("startup");
    let mut client = Client::connect(&env);
    let bound = client.expect_ok("session_bind", json!({"sessionId": "day-2", "workspaceId": ws}));
    assert!(bound["overview"].as_str().unwrap().contains(&issue), "{bound}");
    let prompt = agent.prompt("go on");
    assert!(prompt.contains("Goal: JWT") && !prompt.contains("In progress"), "{prompt}");
    assert!(agent.start("compact").contains("In progress: Issue tokens"), "a compaction removed the result");
    client.finish();
}

#[test]
fn bind_result_without_hooks_names_context_check_and_effective_focus() {
    let env = TestEnv::new();
    let (ws, [issue, ..]) = started_work(&env);
    env.ok(&["workspace", "focus", &issue]);
    let mut client = Client::connect(&env);
    let bound = client.expect_ok("session_bind", json!({"sessionId": "web", "workspaceId": ws}));
    assert!(bound["hint"].as_str().unwrap().contains("context_check"), "{bound}");
    assert_eq!(bound["binding"]["focusedNodeId"], issue);
    Agent::claude(&env, "hooked").start("startup");
    let bound = client.expect_ok("session_bind", json!({"sessionId": "hooked", "workspaceId": ws}));
    assert!(bound["hint"].as_str().unwrap().contains("from the next prompt on"), "{bound}");
    client.finish();
}

#[test]
fn problem_clear_without_problem_says_so_and_problems_of_done_nodes_are_left_out() {
    let env = TestEnv::new();
    let ws = env.init();
    let [first, second] = ["N1", "N2"].map(|title| env.node("root", "execution", title));
    let mut client = Client::connect(&env);
    let clear = json!({"sessionId": "s", "workspaceId": ws, "nodeId": second});
    assert_eq!(client.expect_ok("problem_clear", clear.clone())["cleared"], false);
    env.ok(&["problem", "--node", &second, "stuck"]);
    assert_eq!(client.expect_ok("problem_clear", clear)["cleared"], true);
    for step in [&["start"][..], &["complete", "--conclusion", "c"]] {
        env.ok(&[&["node", "transition", &first, "--action"], step].concat());
    }
    env.ok(&["problem", "--node", &first, "clock skew"]);
    env.ok(&["workspace", "focus", "--clear"]);
    let bound = client.expect_ok("session_bind", json!({"sessionId": "s", "workspaceId": ws}));
    assert!(!bound.to_string().contains("clock skew"), "{bound}");
    client.finish();
    assert!(!Agent::claude(&env, "s").start("startup").contains("clock skew"));
    env.ok(&["session", "bind", "--session", "t", "--workspace", &ws, "--node", &first]);
    let agent = Agent::claude(&env, "t");
    assert!(!agent.start("startup").contains("clock skew") && agent.prompt("go on").is_empty());
}
