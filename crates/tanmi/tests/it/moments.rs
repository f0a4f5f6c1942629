//! What an agent is told at the moments that decide whether it continues the work: after a bind, on the next
//! day, and in a project that has nothing yet.

use serde_json::json;

use crate::agent::Agent;
use crate::env::TestEnv;
use crate::mcp::Client;

mod archived;
mod changes;
mod claims;
mod digest;
mod holders;
mod next;
mod plan;

const DAY: i64 = 86_400_000;

/// Runs a command in the shell of an agent's session. It must succeed.
pub fn run_as(env: &TestEnv, session: &str, args: &[&str]) -> String {
    let output = env.command(args).env("CLAUDE_CODE_SESSION_ID", session).output().unwrap();
    assert!(output.status.success(), "{args:?} {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns an environment with a workspace in which one node is in progress and two are pending, and their ids.
fn started_work(env: &TestEnv) -> (String, [String; 3]) {
    let ws = env.init();
    let plan = env.node("root", "planning", "Tokens");
    let nodes = ["Issue tokens", "Check tokens", "Roll out"];
    let nodes =
        nodes.map(|title| env.node(if title == "Roll out" { "root" } else { &plan }, "execution", title));
    env.ok(&["session", "bind", "--session", "day-1", "--workspace", &ws]);
    run_as(env, "day-1", &["node", "transition", &nodes[0], "--workspace", &ws, "--action", "start"]);
    env.ok(&["log", "--workspace", &ws, "--node", &nodes[0], "signed with RS256"]);
    env.ok(&["problem", "--workspace", &ws, "--node", &nodes[1], "clock skew"]);
    env.ok(&["workspace", "focus"]);
    (ws, nodes)
}

#[test]
fn bind_without_focus_tells_work_in_progress_problem_and_next() {
    let env = TestEnv::new();
    let (ws, [issue, check, roll_out]) = started_work(&env);
    env.tick(DAY);
    let mut client = Client::connect(&env);
    let bound = client.expect_ok("session_bind", json!({"sessionId": "day-2", "workspaceId": ws}));
    let overview = bound["overview"].as_str().unwrap();
    let in_progress = format!(
        "In progress: Issue tokens (implementing) {issue}; last log yesterday 05:48 signed with RS256; started by a \
         session that ended, yesterday 05:48; node_transition start continues it\n"
    );
    assert!(overview.starts_with(&in_progress), "{overview}");
    assert!(overview.contains(&format!("Open problem: Check tokens {check}: clock skew")), "{overview}");
    assert!(overview.ends_with(&format!("Next: Check tokens {check}; Roll out {roll_out}")), "{overview}");
    assert!(overview.len() <= 500, "{}", overview.len());
    client.finish();

    let agent = Agent::claude(&env, "day-2");
    let prompt = agent.prompt("go on");
    assert!(!prompt.contains("In progress"), "the bind result told it: {prompt}");
    assert_eq!(agent.prompt("go on"), "");
    let start = agent.start("startup");
    assert!(start.contains(overview), "{start}");
}

/// The first prompt of the next day tells what is in progress before the agent has called a tool.
#[test]
fn unbound_first_prompt_that_asks_to_continue_tells_overview() {
    for prompt in ["continue where we left off", "go on"] {
        let env = TestEnv::new();
        let (ws, [issue, ..]) = started_work(&env);
        env.tick(DAY);
        let agent = Agent::claude(&env, "day-2");
        assert!(!agent.start("startup").contains("In progress"), "a start for other work stays short");
        let hint = agent.prompt(prompt);
        let bound = env.json(&["session", "bind", "--session", "day-2", "--workspace", &ws]);
        assert!(hint.contains(bound["overview"].as_str().unwrap()), "as in the bind result: {hint}");
        assert!(hint.contains(&issue) && hint.contains("signed with RS256"), "{hint}");

        // A person who started a node has moved the focus of the workspace.
        env.ok(&["workspace", "focus", &issue]);
        let hint = Agent::claude(&env, "focus").prompt(prompt);
        assert!(hint.contains("In progress: Issue tokens") && hint.contains("Next: "), "{hint}");
        let bound = env.json(&["session", "bind", "--session", "focus", "--workspace", &ws]);
        assert!(hint.contains(bound["overview"].as_str().unwrap()), "{bound}");

        // With two workspaces it is not known which one is meant; without consent the texts stay out.
        env.ok(&["trust", "--revoke"]);
        let hint = Agent::claude(&env, "s").prompt(prompt);
        assert!(hint.contains("the user has not agreed") && !hint.contains("Issue"), "{hint}");
        env.ok(&["trust", "--yes"]);
        env.init();
        let hint = Agent::claude(&env, "t").prompt(prompt);
        assert!(hint.contains("session_bind continues one") && !hint.contains("Issue"), "{hint}");
    }
}

#[test]
fn first_prompt_that_asks_to_continue_in_project_without_workspace_is_silent() {
    let env = TestEnv::new();
    let elsewhere = env.root().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    assert!(env.run_in(&elsewhere, &["workspace", "init", "--name", "n", "--goal", "g"]).ok);
    let agent = Agent::claude(&env, "s");
    agent.start("startup");
    assert_eq!(agent.prompt("go on"), "");
}

#[test]
fn bind_with_focus_tells_no_overview() {
    let env = TestEnv::new();
    let (ws, [issue, ..]) = started_work(&env);
    let bound = env.json(&["session", "bind", "--session", "s", "--workspace", &ws, "--node", &issue]);
    assert!(bound.get("overview").is_none(), "{bound}");
    let start = Agent::claude(&env, "s").start("startup");
    for part in ["Path: Tokens", "Last log entries:", "signed with RS256"] {
        assert!(start.contains(part), "{part}: {start}");
    }
}

#[test]
fn workspace_init_says_that_session_is_not_bound() {
    let env = TestEnv::new();
    let mut client = Client::connect(&env);
    let created = client.expect_ok("workspace_init", json!({"name": "Auth", "goal": "JWT"}));
    assert!(created["hint"].as_str().unwrap().contains("session_bind"), "{created}");
    client.finish();
}

#[test]
fn unbound_start_names_workspaces_of_trusted_project_and_hint_does_not_repeat_them() {
    let env = TestEnv::new();
    let ws = env.init();
    env.node("root", "execution", "t");
    let agent = Agent::claude(&env, "s");
    let start = agent.start("startup");
    let expected = format!(
        "Tanmi: session s, not bound. Workspaces here: Auth ({ws}, 0/1). session_bind continues one."
    );
    assert!(start.contains(&expected) && expected.len() <= 200, "{start}");
    let hint = agent.prompt("continue where we left off");
    assert!(hint.contains("session_bind") && !hint.contains(&ws), "{hint}");
    env.ok(&["trust", "--revoke"]);
    let start = agent.start("startup");
    assert!(
        start.contains("Workspaces here: 1; the user has not agreed") && !start.contains("Auth"),
        "{start}"
    );
}

#[test]
fn unbound_start_names_workspace_that_was_worked_on_last_first() {
    let env = TestEnv::new();
    let older = env.init();
    env.ok(&["workspace", "init", "--name", "Newer", "--goal", "g"]);
    let is_first = |name: &str| {
        let start = Agent::claude(&env, "s").start("startup");
        start.contains(&format!("Workspaces here: {name} ("))
    };
    assert!(is_first("Newer"));
    env.ok(&["log", "--workspace", &older, "--node", "root", "went on"]);
    assert!(is_first("Auth"), "a log line leaves the time in Workspace.md as it is");
}

#[test]
fn session_status_lists_workspaces_of_this_project_first() {
    let env = TestEnv::new();
    let here = env.init();
    let elsewhere = env.root().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    env.tick(DAY);
    let other = env.run_in(&elsewhere, &["workspace", "init", "--name", "newer", "--goal", "g", "--json"]);
    assert!(other.stdout.contains("newer"), "{}", other.stdout);
    let status = env.json(&["session", "status", "--session", "s"]);
    let first = &status["availableWorkspaces"][0]["id"];
    assert_eq!(first, &json!(here), "{status}");
    assert_eq!(status["availableWorkspaces"].as_array().unwrap().len(), 2, "{status}");
}

#[test]
fn cursor_interval_tells_the_context_of_a_session_start() {
    for has_focus in [true, false] {
        let env = TestEnv::new();
        let (ws, [issue, ..]) = started_work(&env);
        let focus: &[&str] = if has_focus { &["--node", &issue] } else { &[] };
        env.ok(&[&["session", "bind", "--session", "c", "--workspace", &ws], focus].concat());
        env.ok(&["config", "set", "contextRefresh", "2"]);
        let agent = crate::agent::Agent { env: &env, platform: "cursor", session: "c".into() };
        let start = agent.start("startup");
        let part = if has_focus { "Last log entries:" } else { "In progress: Issue tokens" };
        assert!(start.contains("Progress: 0/4") && start.contains(part), "{start}");
        assert_eq!([agent.prompt("a"), agent.prompt("b")], ["", ""]);
        assert_eq!(agent.prompt("c"), start);
    }
}
