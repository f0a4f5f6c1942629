//! What an agent is told to go on with: in a chain of dependencies, among many nodes, and with several workspaces.

use serde_json::json;

use super::{DAY, run_as, started_work};
use crate::agent::{Agent, check_response, run_with_payload};
use crate::env::TestEnv;
use crate::mcp::Client;

#[test]
fn nodes_that_wait_for_the_running_one_come_next() {
    let env = TestEnv::new();
    let ws = env.init();
    let outline = "- Issue tokens\n- Check tokens (after: Issue tokens)\n- Rollout (after: Check tokens)\n  - Staging\n";
    let file = env.root().join("plan.md");
    env.write(&file, outline.as_bytes());
    env.ok(&["plan", file.to_str().unwrap()]);
    env.ok(&["session", "bind", "--session", "day-1", "--workspace", &ws]);
    run_as(&env, "day-1", &["next", "--start"]);
    env.tick(DAY);
    let start = Agent::claude(&env, "day-2");
    start.start("startup");
    let told = start.prompt("go on");
    let next = told.lines().find_map(|line| line.strip_prefix("Next: ")).expect(&told);
    let next: Vec<&str> = next.split("; ").collect();
    assert!(
        next[0].starts_with("Check tokens node-") && next[0].ends_with(" (after Issue tokens)"),
        "{told}"
    );
    assert!(next[1].starts_with("Staging node-") && next[1].ends_with(" (after Check tokens)"), "{told}");
}

#[test]
fn node_that_waits_for_a_cancelled_one_says_so() {
    let env = TestEnv::new();
    let ws = env.init();
    let [research, build] = ["Research", "Build"].map(|title| env.node("root", "execution", title));
    env.ok(&["node", "depend", &build, "--on", &research]);
    env.ok(&["node", "transition", &research, "--action", "start"]);
    env.ok(&["node", "transition", &research, "--action", "fail", "--conclusion", "no budget"]);
    let bound = env.json(&["session", "bind", "--session", "s", "--workspace", &ws]);
    assert_eq!(bound["overview"], format!("Next: Build {build} (waits for Research: failed)"));
}

#[test]
fn overview_names_first_what_the_session_can_continue_and_says_that_there_is_more() {
    let env = TestEnv::new();
    let ws = env.init();
    let started = |session: &str, title: &str| {
        let node = env.node("root", "execution", title);
        env.ok(&["session", "bind", "--session", session, "--workspace", &ws]);
        run_as(&env, session, &["node", "transition", &node, "--workspace", &ws, "--action", "start"]);
        env.ok(&["workspace", "focus"]);
    };
    started("ended", "Left behind");
    env.tick(DAY);
    for n in 0..4 {
        started(&format!("live-{n}"), &format!("Running {n}"));
    }
    // More nodes of one session than are read.
    for n in 0..8 {
        started("live-0", &format!("Also running {n}"));
    }
    let mut client = Client::connect(&env);
    let bound = client.expect_ok("session_bind", json!({"sessionId": "new", "workspaceId": ws}));
    let overview = bound["overview"].as_str().unwrap();
    assert!(overview.starts_with("In progress: Left behind"), "{overview}");
    assert_eq!(overview.matches("In progress: ").count(), 3, "{overview}");
    assert!(
        overview.contains("\nMore nodes are in progress or have problems; node_list lists them."),
        "{overview}"
    );
    client.finish();
}

#[test]
fn hint_tells_the_latest_of_several_workspaces_once() {
    let env = TestEnv::new();
    let (ws, _) = started_work(&env);
    env.ok(&["workspace", "init", "--name", "Docs", "--goal", "g"]);
    env.ok(&["log", "--workspace", &ws, "--node", "root", "went on"]);
    let agent = Agent::claude(&env, "s");
    agent.start("startup");
    let told = agent.prompt("go on");
    assert!(told.contains(&format!("Latest workspace: Auth ({ws})\nIn progress: Issue tokens")), "{told}");
    env.tick(600_000);
    let again = agent.prompt("which workspace?");
    assert!(again.contains("session_bind") && !again.contains("In progress"), "{again}");
}

#[test]
fn hint_tells_the_overview_when_there_is_one_and_again_after_a_compaction() {
    let env = TestEnv::new();
    let agent = Agent::claude(&env, "s");
    agent.start("startup");
    let hint = |is_told: bool| {
        let told = agent.prompt("which workspace?");
        assert!(told.contains("session_bind") && told.contains("In progress: ") == is_told, "{told}");
        env.tick(600_000);
    };
    hint(false);
    started_work(&env);
    hint(true);
    hint(false);
    agent.send("PreCompact", "preCompact", json!({}));
    hint(true);
}

/// A journal that is made anew, as for a clone, is no change.
#[test]
fn latest_workspace_after_a_clone_is_that_of_the_last_change() {
    let env = TestEnv::new();
    let (ws, _) = started_work(&env);
    let other = env.json(&["workspace", "init", "--name", "Docs", "--goal", "g"]);
    env.tick(60_000);
    env.ok(&["workspace", "update", &ws, "--add-rule", "Tests for every change"]);
    for id in [&ws, other["workspaceId"].as_str().unwrap()] {
        tanmi_base::fs::remove_tree(&env.workspace_dir(id).join(".local")).unwrap();
        env.ok(&["tree", "--workspace", id]);
    }
    let agent = Agent::claude(&env, "s");
    agent.start("startup");
    let told = agent.prompt("go on");
    assert!(told.contains(&format!("Latest workspace: Auth ({ws})")), "{told}");
}

#[test]
fn hint_names_damaged_workspace_also_beside_an_archived_one() {
    let env = TestEnv::new();
    let (damaged, archived) = (env.init(), env.init());
    env.ok(&["workspace", "archive", &archived]);
    env.edit(&env.workspace_dir(&damaged).join("Workspace.md"), |_| String::from("no front matter"));
    let agent = Agent::claude(&env, "s");
    agent.start("startup");
    assert!(agent.prompt("which workspace?").contains("Workspaces here that cannot be read: 1."));
}

#[test]
fn project_whose_workspace_cannot_be_read_does_not_look_empty() {
    let env = TestEnv::new();
    let ws = env.init();
    env.edit(&env.workspace_dir(&ws).join("Workspace.md"), |_| String::from("no front matter"));
    let agent = Agent::claude(&env, "s");
    for told in [agent.start("startup"), agent.prompt("go on")] {
        assert!(
            told.contains("Workspaces here that cannot be read: 1.") && told.contains("tanmi doctor"),
            "{told}"
        );
        assert!(!told.contains("workspace_init"), "{told}");
    }
}

#[test]
fn workspace_init_in_bound_session_names_the_other_workspace() {
    let env = TestEnv::new();
    let mut client = Client::connect(&env);
    let init = |client: &mut Client, name: &str| {
        client.expect_ok("workspace_init", json!({"name": name, "goal": "g"}))
    };
    let first = init(&mut client, "One");
    assert!(first["hint"].as_str().unwrap().starts_with("This session is not bound to it yet"), "{first}");
    let one = first["workspaceId"].as_str().unwrap().to_owned();
    client.expect_ok("session_bind", json!({"workspaceId": one}));
    let second = init(&mut client, "Two");
    assert!(
        second["hint"].as_str().unwrap().starts_with(&format!("This session is still bound to {one}")),
        "{second}"
    );
    client.finish();
}

#[test]
fn damaged_workspace_beside_a_good_one_is_named_at_start() {
    let env = TestEnv::new();
    let (damaged, good) = (env.init(), env.init());
    env.edit(&env.workspace_dir(&damaged).join("Workspace.md"), |_| String::from("no front matter"));
    let start = Agent::claude(&env, "s").start("startup");
    assert!(
        start.contains(&good) && start.contains("session_bind continues one. 1 more cannot be read"),
        "{start}"
    );
}

/// Sends an event of Copilot CLI and returns the answer.
fn send_copilot(env: &TestEnv, event: &str, extra: serde_json::Value) -> String {
    let mut payload = json!({"timestamp": 1, "sessionId": "s", "cwd": env.project});
    payload.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    let payload = payload.to_string();
    let output = run_with_payload(env, &["hook", "copilot-cli", event], payload.as_bytes());
    let text = String::from_utf8(output.stdout).unwrap();
    if !text.is_empty() {
        check_response("copilot-cli", Some(event), payload.as_bytes(), &text);
    }
    text
}

/// A bind between the start and the first prompt, as by a user in a terminal.
#[test]
fn copilot_first_prompt_after_start_and_bind_has_the_context() {
    let env = TestEnv::new();
    let ws = env.init();
    send_copilot(&env, "sessionStart", json!({"source": "new"}));
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws]);
    assert!(send_copilot(&env, "userPromptSubmitted", json!({"prompt": "fix it"})).contains("Goal: JWT"));
}

#[test]
fn copilot_start_after_the_first_prompt_does_not_repeat_its_hint() {
    let env = TestEnv::new();
    env.init();
    let hint = send_copilot(&env, "userPromptSubmitted", json!({"prompt": "which workspace?"}));
    assert!(hint.contains("Workspaces here: Auth"), "{hint}");
    assert_eq!(send_copilot(&env, "sessionStart", json!({"source": "new"})), "");
    env.tick(60_000);
    assert!(
        send_copilot(&env, "sessionStart", json!({"source": "resume"})).contains("Workspaces here: Auth")
    );
}
