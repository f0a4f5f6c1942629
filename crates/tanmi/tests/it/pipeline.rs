//! Regression tests of the pipeline from event to injected text.

use serde_json::{Value, json};

use crate::agent::{Agent, hook};
use crate::env::TestEnv;
use crate::mcp::Client;

fn global_rules(env: &TestEnv, rules: &Value) {
    let path = env.root().join("home/.tanmi/rules.json");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    env.write(&path, json!({"customRules": rules}).to_string().as_bytes());
}

#[test]
fn context_has_priority_over_long_custom_rules() {
    let env = TestEnv::new();
    let rules: Vec<String> = (0..40).map(|n| format!("{n} {}", "a long rule. ".repeat(12))).collect();
    let mut init = vec!["workspace", "init", "--name", "Auth", "--goal", "g"];
    rules.iter().for_each(|rule| init.extend(["--rule", rule]));
    let made = env.json(&init);
    let ws = made["workspaceId"].as_str().unwrap();
    env.ok(&["session", "bind", "--session", "s", "--workspace", ws]);
    global_rules(
        &env,
        &json!([{"id": "talk", "priority": 1, "match": {"events": ["prompt_submit"]}, "action": {"content": "x".repeat(3900)}}]),
    );
    let agent = Agent::claude(&env, "s");
    let injected = agent.prompt("a");
    assert!(
        injected.contains("Workspace: Auth") && !injected.contains("xxx") && injected.len() <= 10_000,
        "{}",
        injected.len()
    );
    assert!(agent.prompt("b").contains("xxx"), "a text that was left out is injected later");
    let explained = env.json(&["rules", "explain", "--session", "s", "--event", "session_start"]);
    assert!(explained["bytes"].as_u64().unwrap() <= 10_000);
}

#[test]
fn tool_texts_respect_byte_budget() {
    let env = TestEnv::new();
    env.init();
    let rule =
        |n: usize| json!({"id": format!("r{n}"), "action": {"content": format!("{n}{}", "y".repeat(1200))}});
    global_rules(&env, &json!((0..100).map(rule).collect::<Vec<_>>()));
    let mut client = Client::connect(&env);
    let checked = client.expect_ok("context_check", json!({"sessionId": "w", "trigger": "before_response"}));
    assert!(checked["reminder"].as_str().unwrap().len() <= 10_000);
    let status = client.expect_ok("session_status", json!({"sessionId": "w"}));
    assert!(status["reminders"].to_string().len() <= 11_000);
    client.finish();
}

#[test]
fn change_during_pause_is_injected_after_resume() {
    let env = TestEnv::new();
    let ws = env.init();
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws]);
    let agent = Agent::claude(&env, "s");
    assert!(agent.start("startup").contains(&ws));
    env.ok(&["pause"]);
    assert_eq!(agent.start("compact"), "");
    env.ok(&["resume"]);
    assert!(agent.prompt("x").contains(&ws));
    assert_eq!(agent.prompt("x"), "");
    env.ok(&["workspace", "archive"]);
    assert!(agent.start("resume").contains("not bound"));
    env.ok(&["workspace", "restore", &ws]);
    assert!(agent.prompt("x").contains(&ws), "the same after an archived workspace is restored");
}

#[test]
fn external_change_is_injected_despite_own_focus_change() {
    let env = TestEnv::new();
    let ws = env.init();
    let parent = env.node("root", "planning", "Parent");
    let child = env.node(&parent, "execution", "Child");
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws, "--node", &parent]);
    let agent = Agent::claude(&env, "s");
    assert!(agent.prompt("x").contains("Parent"));
    let mut client = Client::connect(&env);
    client.expect_ok("node_transition", json!({"workspaceId": ws, "nodeId": child, "action": "start"}));
    assert_eq!(agent.prompt("x"), "", "the session made this change itself");
    env.ok(&["node", "update", &parent, "--requirement", "changed by a person"]);
    client.expect_ok("node_transition", json!({"action": "complete", "conclusion": "c"}));
    client.finish();
    assert!(agent.prompt("x").contains("changed by a person"));
}

#[test]
fn clear_keeps_claim_on_node() {
    let env = TestEnv::new();
    let ws = env.init();
    let node = env.node("root", "execution", "t");
    let before = Agent::claude(&env, "before");
    before.start("startup");
    env.ok(&["session", "bind", "--session", "before", "--workspace", &ws]);
    env.ok(&["node", "transition", &node, "--action", "start", "--session", "before"]);
    Agent::claude(&env, "after").start("clear");
    env.ok(&["node", "transition", &node, "--action", "start", "--session", "after"]);
    assert_eq!(env.json(&["node", "show", &node])["node"]["startedBy"], "after");
}

/// Binding prunes old session states, but not one that another process is just creating.
#[test]
fn concurrent_binds_and_starts_inject_once() {
    let env = TestEnv::new();
    let ws = env.init();
    std::thread::scope(|scope| {
        for n in 0..24 {
            let (env, ws) = (&env, ws.as_str());
            scope.spawn(move || {
                let session = format!("s{n}");
                env.ok(&["session", "bind", "--session", &session, "--workspace", ws]);
                let agent = Agent::claude(env, &session);
                assert!(agent.start("startup").contains(ws));
                assert_eq!(agent.prompt("x"), "", "{session} got the context at its start");
            });
        }
    });
}

/// Of two hooks of one session, the one that read the clock first may run last.
#[test]
fn reminder_is_injected_once_despite_clock_skew() {
    let env = TestEnv::new();
    let ws = env.init();
    let node = env.node("root", "execution", "t");
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws, "--node", &node]);
    env.ok(&["node", "transition", &node, "--action", "start"]);
    let agent = Agent::claude(&env, "s");
    agent.prompt("x");
    env.tick(61_000);
    assert!(agent.prompt("x").contains("log_append"));
    env.tick(-500);
    assert_eq!(agent.prompt("x"), "");
}

/// A cloned project may contain pipes and links to devices.
#[cfg(unix)]
#[test]
fn irregular_files_do_not_stop_hook() {
    let env = TestEnv::new();
    let ws = env.init();
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws]);
    std::fs::create_dir_all(env.project.join(".tanmi")).unwrap();
    let agent = Agent::claude(&env, "s");
    let store = env.project.join(".tanmi-workspace");
    let paths = [
        env.project.join(".tanmi/rules.json"),
        env.project.join(".tanmi/config.json"),
        store.join("sessions.json"),
        store.join(&ws).join("rules.json"),
        env.home_store().join("config.json"),
    ];
    for path in &paths {
        std::os::unix::fs::symlink("/dev/zero", path).unwrap();
    }
    assert!(agent.start("startup").contains(&ws));
    for path in &paths {
        std::fs::remove_file(path).unwrap();
        let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
        assert!(made.success());
    }
    assert!(agent.start("startup").contains(&ws));
    let log = std::fs::read_to_string(env.home_store().join("log")).unwrap();
    assert!(log.contains("not a regular file"), "{log}");
    let index = env.workspace_dir(&ws).join(".local/index.sqlite");
    let _ = std::fs::remove_file(&index);
    assert!(std::process::Command::new("mkfifo").arg(&index).status().unwrap().success());
    assert!(agent.start("startup").contains(&ws));
}

#[test]
fn locked_session_state_still_answers_and_is_in_ledger_once() {
    let env = TestEnv::new();
    let ws = env.init();
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws]);
    let agent = Agent::claude(&env, "s");
    agent.start("startup");
    let state = std::fs::File::open(env.home_store().join("state/s.json")).unwrap();
    state.lock().unwrap();
    assert!(agent.start("startup").contains(&ws));
    drop(state);
    assert_eq!(env.json(&["ledger"])["total"]["decisions"], 2, "one entry per start");
}

/// The tool is advertised as read-only.
#[test]
fn session_status_writes_nothing() {
    let env = TestEnv::new();
    let ws = env.init();
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws]);
    global_rules(
        &env,
        &json!([{"id": "status", "match": {"events": ["status_check"]}, "action": {"content": "mind the gap"}}]),
    );
    Agent::claude(&env, "s").prompt("x");
    let mut client = Client::connect(&env);
    let files = || {
        ["state/s.json", "session-bindings.json"]
            .map(|name| std::fs::read(env.home_store().join(name)).unwrap())
    };
    let (before, decisions) = (files(), env.json(&["ledger"])["total"]["decisions"].clone());
    for _ in 0..2 {
        let status = client.expect_ok("session_status", json!({"sessionId": "s"}));
        assert!(status["reminders"].to_string().contains("mind the gap"), "{status}");
    }
    assert_eq!(files(), before);
    assert_eq!(env.json(&["ledger"])["total"]["decisions"], decisions);
    client.finish();
}

#[test]
fn custom_rule_named_like_context_is_not_context() {
    let env = TestEnv::new();
    let ws = env.init();
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws]);
    global_rules(
        &env,
        &json!([{"id": "context-status", "match": {"events": ["status_check"]}, "action": {"type": "inject_context", "content": "n"}}]),
    );
    let agent = Agent::claude(&env, "s");
    agent.prompt("x");
    env.ok(&["workspace", "update", "--goal", "another"]);
    env.ok(&["session", "status", "--session", "s"]);
    assert!(agent.prompt("x").contains("another"));
}

#[test]
fn damaged_file_is_logged_and_set_aside() {
    let env = TestEnv::new();
    env.init();
    env.write(&env.home_store().join("session-bindings.json"), b"{broken");
    env.write(&env.home_store().join("config.json"), b"{broken");
    let payload = json!({"session_id": "s", "hook_event_name": "SessionStart", "cwd": env.project});
    assert!(hook(&env, "claude-code", payload.to_string().as_bytes()).contains("not bound"));
    let log = std::fs::read_to_string(env.home_store().join("log")).unwrap();
    assert!(log.contains("session-bindings.json") && log.contains("config.json"), "{log}");
    let names: Vec<_> =
        std::fs::read_dir(env.home_store()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert!(names.iter().any(|name| name.to_string_lossy().contains("damaged")), "set aside: {names:?}");
}

#[test]
fn trust_applies_to_one_folder_and_can_be_revoked() {
    let env = TestEnv::new();
    let (a, b) = (env.root().join("a"), env.root().join("b"));
    let rules =
        json!([{"id": "r", "match": {"events": ["session_start"]}, "action": {"content": "from the rules"}}]);
    for dir in [&a, &b] {
        std::fs::create_dir_all(dir.join(".tanmi")).unwrap();
        env.write(&dir.join(".tanmi/rules.json"), rules.to_string().as_bytes());
    }
    let injects = |dir: &std::path::Path| {
        let payload = json!({"session_id": "s", "hook_event_name": "SessionStart", "cwd": dir});
        hook(&env, "claude-code", payload.to_string().as_bytes()).contains("from the rules")
    };
    env.init();
    assert!(env.run_in(&a, &["rules", "trust", "--yes"]).ok);
    assert!(injects(&a) && !injects(&b), "the same rules in another folder are not trusted");
    assert!(env.run_in(&b, &["trust", "--yes"]).ok && injects(&b));
    assert!(env.run_in(&a, &["trust", "--revoke"]).ok);
    assert!(!injects(&a) && injects(&b));
}
