//! The digest of a session that wrote no summary.

use serde_json::json;

use super::{DAY, run_as};
use crate::agent::Agent;
use crate::env::TestEnv;
use crate::mcp::Client;

const SECRET: &str = concat!("ghp", "_Zk4Rt8Lw2Qx6Vn0Bm3Jc7Hd1Sf5Gp9YaTe2Ui");
const DERIVED: &str = "derived from its calls)";

fn end(agent: &Agent<'_>) {
    assert_eq!(agent.send("SessionEnd", "sessionEnd", json!({"reason": "logout"})), "");
}

/// Lets a session start a node, log, report a problem and save a fact, each by a call of its own. Returns the node.
fn work_as(env: &TestEnv, session: &str, ws: &str) -> String {
    let node = env.node("root", "execution", "Issue tokens");
    run_as(env, session, &["node", "transition", &node, "--workspace", ws, "--action", "start"]);
    run_as(env, session, &["log", "--workspace", ws, "--node", &node, "chose RS256"]);
    run_as(env, session, &["log", "--workspace", ws, "--node", &node, "signed with RS256"]);
    run_as(env, session, &["problem", "--workspace", ws, "--node", &node, "clock skew"]);
    run_as(env, session, &["memory", "save-fact", "Tokens live for an hour"]);
    node
}

#[test]
fn ended_session_without_summary_is_told_to_following_sessions_once() {
    let env = TestEnv::new();
    let ws = env.init();
    let first = Agent::claude(&env, "day-1");
    first.start("startup");
    let node = work_as(&env, "day-1", &ws);
    end(&first);
    env.tick(DAY);
    for session in ["day-2", "day-3"] {
        let agent = Agent::claude(&env, session);
        let start = agent.start("startup");
        let at = start.find("## Last session (2025-12-11 05:48, derived from its calls)").expect(&start);
        for line in [
            &format!("- Nodes: Issue tokens (implementing) {node}\n"),
            &format!("- Problem: Issue tokens {node}: clock skew\n"),
            "- Log lines: 2, last: signed with RS256\n",
            "- Facts saved: 1\n",
        ] {
            assert!(start[at..].contains(line), "{line}: {start}");
        }
        let digest = start[at..].split("\n\n## ").next().unwrap();
        assert!(digest.len() <= 700, "{digest}");
        assert!(!agent.start("resume").contains(DERIVED), "told once");
    }
    assert!(!first.start("resume").contains(DERIVED), "not to the session itself");
}

#[test]
fn dead_session_is_told_and_live_session_is_not() {
    let env = TestEnv::new();
    let ws = env.init();
    work_as(&env, "day-1", &ws);
    let start = Agent::claude(&env, "day-2").start("startup");
    assert!(!start.contains(DERIVED), "the first session may still be at work: {start}");
    env.tick(31 * 60_000);
    assert!(Agent::claude(&env, "day-2").start("resume").contains(DERIVED));
    // While a later session is at work, an older one is not told as the last.
    work_as(&env, "day-2", &ws);
    assert!(!Agent::claude(&env, "day-3").start("startup").contains(DERIVED));
}

#[test]
fn nodes_that_the_session_deleted_are_not_told() {
    let env = TestEnv::new();
    let ws = env.init();
    work_as(&env, "day-1", &ws);
    let gone = env.node("root", "execution", "Gone again");
    run_as(&env, "day-1", &["node", "transition", &gone, "--action", "start"]);
    run_as(&env, "day-1", &["node", "delete", &gone]);
    end(&Agent::claude(&env, "day-1"));
    let start = Agent::claude(&env, "day-2").start("startup");
    assert!(start.contains(DERIVED) && !start.contains("Gone again"), "{start}");
}

#[test]
fn digest_tells_what_became_of_nodes_and_problems_since() {
    let env = TestEnv::new();
    let ws = env.init();
    env.ok(&["session", "bind", "--session", "day-1", "--workspace", &ws]);
    let node = work_as(&env, "day-1", &ws);
    end(&Agent::claude(&env, "day-1"));
    env.ok(&["problem", "--workspace", &ws, "--node", &node, "leap seconds"]);
    let start = Agent::claude(&env, "day-0").start("startup");
    assert!(start.contains(&format!("- Problem: Issue tokens {node}: leap seconds\n")), "{start}");
    end(&Agent::claude(&env, "day-0"));
    env.ok(&["problem", "--workspace", &ws, "--node", &node, "--clear"]);
    env.ok(&["done", &node, "--conclusion", "c", "--force"]);
    let start = Agent::claude(&env, "day-2").start("startup");
    assert!(start.contains(&format!("- Nodes: Issue tokens (completed) {node}\n")), "{start}");
    assert!(start.contains(DERIVED) && !start.contains("clock skew"), "the problem was solved: {start}");
    env.ok(&["workspace", "archive", &ws]);
    assert!(!Agent::claude(&env, "day-3").start("startup").contains(DERIVED), "archived");
}

#[test]
fn digest_of_work_in_two_workspaces_tells_the_nodes_of_both() {
    let env = TestEnv::new();
    let (first, second) = (env.init(), env.json(&["workspace", "init", "--name", "Docs", "--goal", "g"]));
    let second = second["workspaceId"].as_str().unwrap().to_owned();
    let mut nodes = Vec::new();
    for (ws, title) in [(&first, "Issue tokens"), (&second, "Write guide")] {
        let args = [
            "node",
            "create",
            "--workspace",
            ws,
            "--parent",
            "root",
            "--type",
            "execution",
            "--title",
            title,
        ];
        let node =
            env.json(&[&args[..], &["--requirement", "r"]].concat())["nodeId"].as_str().unwrap().to_owned();
        env.ok(&["session", "bind", "--session", "day-1", "--workspace", ws]);
        run_as(&env, "day-1", &["node", "transition", &node, "--workspace", ws, "--action", "start"]);
        run_as(&env, "day-1", &["problem", "--workspace", ws, "--node", &node, "no time"]);
        nodes.push(node);
    }
    env.tick(DAY);
    let start = Agent::claude(&env, "day-2").start("startup");
    let [a, b] = &nodes[..] else { unreachable!() };
    let (a, b) = (format!("{a} ({first})"), format!("{b} ({second})"));
    let problems = format!("- Problem: Write guide {b}: no time; Issue tokens {a}: no time\n");
    let moved = format!("- Nodes: Write guide (implementing) {b}; Issue tokens (implementing) {a}");
    assert!(start.contains(&problems) && start.contains(&moved), "{start}");
    assert!(!start.contains("Log lines"), "the session logged nothing: {start}");
    env.ok(&["session", "bind", "--session", "day-3", "--workspace", &first]);
    let start = Agent::claude(&env, "day-3").start("startup");
    assert!(
        start.contains("In progress: Issue tokens") && !start.contains("Write guide"),
        "of its workspace: {start}"
    );
}

#[test]
fn digest_that_was_left_out_is_told_after_a_bind_to_its_workspace() {
    let env = TestEnv::new();
    let first = env.init();
    let nodes: Vec<String> = (0..6).map(|n| env.node("root", "execution", &format!("N{n}"))).collect();
    env.ok(&["memory", "save-fact", "Tokens live for an hour"]);
    for node in &nodes {
        run_as(&env, "day-1", &["node", "transition", node, "--action", "start"]);
    }
    end(&Agent::claude(&env, "day-1"));
    let second = env.json(&["workspace", "init", "--name", "Docs", "--goal", "g"]);
    let second = second["workspaceId"].as_str().unwrap();
    let agent = Agent::claude(&env, "day-2");
    for (workspace, is_told) in [(second, false), (&first, true)] {
        env.ok(&["session", "bind", "--session", "day-2", "--workspace", workspace]);
        let start = agent.start("resume");
        assert!(start.contains("Tokens live") && start.contains(DERIVED) == is_told, "{start}");
    }
}

#[test]
fn digest_tells_the_last_log_entry_of_a_node_that_exists() {
    let env = TestEnv::new();
    let ws = env.init();
    let [kept, gone] = ["Kept", "Gone"].map(|title| env.node("root", "execution", title));
    for (node, text) in [(&kept, "first"), (&kept, "signed with RS256"), (&gone, "lost")] {
        run_as(&env, "day-1", &["log", "--workspace", &ws, "--node", node, text]);
    }
    env.ok(&["node", "delete", &gone, "--yes"]);
    end(&Agent::claude(&env, "day-1"));
    let start = Agent::claude(&env, "day-2").start("startup");
    assert!(start.contains(&format!("- Log lines: 2, last: Kept {kept}: signed with RS256")), "{start}");
}

#[test]
fn session_before_one_without_present_work_is_told() {
    let env = TestEnv::new();
    let ws = env.init();
    let node = env.node("root", "execution", "Issue tokens");
    let gone = env.node("root", "execution", "Gone");
    let sessions = ["a", "b"].map(|session| Agent::claude(&env, session));
    sessions.iter().for_each(|agent| drop(agent.start("startup")));
    for (agent, node) in sessions.iter().zip([&node, &gone]) {
        env.tick(60_000);
        run_as(&env, &agent.session, &["log", "--workspace", &ws, "--node", node, "x"]);
        end(agent);
    }
    env.ok(&["node", "delete", &gone, "--yes"]);
    let start = Agent::claude(&env, "day-2").start("startup");
    assert!(start.contains(&format!("last: Issue tokens {node}: x")), "{start}");
}

#[test]
fn digest_names_the_node_of_the_last_log_entry() {
    let env = TestEnv::new();
    let ws = env.init();
    let node = env.node("root", "execution", "Issue tokens");
    run_as(&env, "day-1", &["log", "--workspace", &ws, "--node", &node, "signed"]);
    env.tick(DAY);
    let start = Agent::claude(&env, "day-2").start("startup");
    assert!(start.contains(&format!("- Log lines: 1, last: Issue tokens {node}: signed")), "{start}");
    env.ok(&["node", "delete", &node, "--yes"]);
    assert!(!Agent::claude(&env, "day-3").start("startup").contains("derived"), "the node is gone");
}

#[test]
fn digest_is_told_again_after_a_compaction() {
    let env = TestEnv::new();
    let ws = env.init();
    work_as(&env, "day-1", &ws);
    end(&Agent::claude(&env, "day-1"));
    let agent = Agent::claude(&env, "day-2");
    assert!(agent.start("startup").contains(DERIVED));
    assert!(!agent.start("resume").contains(DERIVED));
    assert!(agent.start("compact").contains(DERIVED), "the conversation was shortened");
}

#[test]
fn session_that_ended_beside_a_running_one_is_told() {
    let env = TestEnv::new();
    let ws = env.init();
    run_as(&env, "second", &["log", "--workspace", &ws, "--node", "workspace", "at work"]);
    Agent::claude(&env, "first").start("startup");
    env.tick(60_000);
    work_as(&env, "first", &ws);
    end(&Agent::claude(&env, "first"));
    env.tick(60_000);
    run_as(&env, "second", &["log", "--workspace", &ws, "--node", "workspace", "still at work"]);
    let start = Agent::claude(&env, "third").start("startup");
    assert!(start.contains("last: signed with RS256"), "{start}");
}

#[test]
fn own_summary_wins_over_digest() {
    let env = TestEnv::new();
    let ws = env.init();
    let save = |session: &str, topic: &str| {
        run_as(&env, session, &["memory", "save-summary", "--topic", topic, "--summary", "done"]);
    };
    work_as(&env, "day-1", &ws);
    save("day-1", "Tokens");
    run_as(&env, "day-1", &["log", "--workspace", &ws, "--node", "workspace", "after the summary"]);
    env.tick(DAY);
    let start = Agent::claude(&env, "day-2").start("startup");
    assert!(!start.contains(DERIVED) && start.contains("## Last session\n\n- Topic: Tokens"), "{start}");

    run_as(&env, "day-2", &["log", "--workspace", &ws, "--node", "workspace", "no summary"]);
    end(&Agent::claude(&env, "day-2"));
    let start = Agent::claude(&env, "day-3").start("startup");
    assert!(start.contains(DERIVED) && start.contains("## Last summary\n\n- Topic: Tokens"), "{start}");

    save("day-3", "Roll out");
    end(&Agent::claude(&env, "day-3"));
    let start = Agent::claude(&env, "day-4").start("startup");
    assert!(!start.contains(DERIVED), "a later session wrote a summary: {start}");
}

#[test]
fn calls_over_mcp_are_told_without_a_memory_folder() {
    let env = TestEnv::with_lang("zh_CN.UTF-8");
    // Creates the home store, as an installation does.
    env.ok(&["config", "set", "language", "auto"]);
    let first = Agent::claude(&env, "day-1");
    first.start("startup");
    let mut client = Client::connect(&env);
    client.expect_ok("workspace_init", json!({"name": "重构认证模块", "goal": "替换为 JWT"}));
    client.expect_ok("session_bind", json!({}));
    let node = json!({"parentId": "root", "type": "execution", "title": "签发 token", "requirement": "r"});
    let node = client.expect_ok("node_create", node)["nodeId"].as_str().unwrap().to_owned();
    client.expect_ok("node_transition", json!({"action": "start", "nodeId": node}));
    client.expect_ok("log_append", json!({"log": format!("密钥 {SECRET}")}));
    client.expect_ok("problem_update", json!({"description": "时钟偏差"}));
    client.expect_ok("problem_clear", json!({}));
    client.expect_ok("problem_update", json!({"nextStep": "允许 60 秒"}));
    client.finish();
    end(&first);
    assert!(!env.project.join(".tanmi-workspace/memory").exists());
    let start = Agent::claude(&env, "day-2").start("startup");
    assert!(start.contains("## 上次会话（2025-12-11 05:48，由调用记录得出）"), "{start}");
    assert!(
        start.contains(&format!("- 节点：签发 token (implementing) {node}\n- 日志：1 条，最近：")),
        "{start}"
    );
    assert!(!start.contains("- 问题"), "the problem was cleared, and a next step is no problem: {start}");
    assert!(!start.contains(SECRET), "secrets are masked: {start}");
}

#[test]
fn digest_of_untrusted_or_other_project_is_not_told() {
    let env = TestEnv::new();
    let ws = env.init();
    work_as(&env, "day-1", &ws);
    env.tick(DAY);
    let elsewhere = env.root().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let payload =
        json!({"session_id": "e", "hook_event_name": "SessionStart", "cwd": elsewhere, "source": "startup"});
    let start = crate::agent::hook(&env, "claude-code", payload.to_string().as_bytes());
    assert!(!start.contains(DERIVED), "{start}");
    env.ok(&["trust", "--revoke"]);
    assert!(!Agent::claude(&env, "day-2").start("startup").contains(DERIVED));
    env.ok(&["config", "set", "memory", "false"]);
    env.ok(&["trust", "--yes"]);
    assert!(!Agent::claude(&env, "day-2").start("resume").contains(DERIVED), "memory is disabled");
    env.ok(&["config", "set", "memory", "true"]);
    assert!(Agent::claude(&env, "day-2").start("resume").contains(DERIVED));
}

#[test]
fn digest_of_project_without_data_is_not_told() {
    let env = TestEnv::new();
    let ws = env.init();
    work_as(&env, "day-1", &ws);
    env.tick(DAY);
    // An entry of an older version trusts the path, with and without a store.
    env.edit(&env.home_store().join("trust.json"), |text| {
        let mut trust: serde_json::Value = serde_json::from_str(&text).unwrap();
        let entries = trust["projects"].as_object_mut().unwrap();
        entries.values_mut().for_each(|entry| drop(entry.as_object_mut().unwrap().remove("id")));
        trust.to_string()
    });
    assert!(Agent::claude(&env, "day-2").start("startup").contains(DERIVED));
    tanmi_base::fs::remove_tree(&env.project.join(".tanmi-workspace")).unwrap();
    assert!(!Agent::claude(&env, "day-3").start("startup").contains(DERIVED));
}

#[test]
fn resumed_session_after_its_summary_is_told_as_digest() {
    let env = TestEnv::new();
    let ws = env.init();
    let first = Agent::claude(&env, "day-1");
    first.start("startup");
    run_as(&env, "day-1", &["memory", "save-summary", "--topic", "Tokens", "--summary", "done"]);
    end(&first);
    assert!(!Agent::claude(&env, "day-2").start("startup").contains(DERIVED));
    first.start("resume");
    run_as(&env, "day-1", &["log", "--workspace", &ws, "--node", "workspace", "after the resume"]);
    end(&first);
    let start = Agent::claude(&env, "day-3").start("startup");
    assert!(start.contains("- Log lines: 1, last: workspace: after the resume"), "{start}");
}
