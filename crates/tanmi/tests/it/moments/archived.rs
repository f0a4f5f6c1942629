//! What an agent is told whose workspace was archived, is missing or has a damaged node.

use serde_json::json;

use crate::agent::Agent;
use crate::env::TestEnv;
use crate::mcp::Client;

#[test]
fn archived_workspace_is_told_once_and_again_after_compaction() {
    let env = TestEnv::new();
    let ws = env.init();
    env.node("root", "execution", "N1");
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws]);
    let agent = Agent::claude(&env, "s");
    agent.start("startup");
    env.ok(&["workspace", "archive"]);
    let told = format!("its workspace “Auth” ({ws}) was archived");
    assert!(agent.prompt("go on").contains(&told));
    env.tick(2 * 3_600_000);
    assert_eq!(agent.prompt("go on"), "", "told once");
    let mut client = Client::connect(&env);
    for tool in ["log_append", "problem_update"] {
        let text = if tool == "log_append" { "log" } else { "description" };
        let error = client.expect_error(tool, json!({"sessionId": "s", text: "x"}));
        assert_eq!(error["code"], "WORKSPACE_ARCHIVED", "{error}");
        assert!(error["message"].as_str().unwrap().contains("“Auth”"), "{error}");
    }
    client.finish();
    for source in ["compact", "resume"] {
        let start = agent.start(source);
        assert!(start.contains(&told) && !start.contains("No workspace"), "{source}: {start}");
    }
    assert_eq!(agent.prompt("go on"), "", "the start told it");
    env.ok(&["workspace", "restore", &ws]);
    assert!(agent.prompt("go on").contains("Goal: JWT"));
}

#[test]
fn archived_workspace_is_told_in_its_language() {
    let env = TestEnv::new();
    let ws = env.json(&["workspace", "init", "--name", "登录", "--goal", "用 JWT 代替会话"]);
    let ws = ws["workspaceId"].as_str().unwrap();
    env.ok(&["session", "bind", "--session", "s", "--workspace", ws]);
    let agent = Agent::claude(&env, "s");
    agent.start("startup");
    env.ok(&["workspace", "archive"]);
    let told = agent.prompt("ok");
    assert!(told.contains("它的工作区「登录」") && told.contains("已归档，只读"), "{told}");
}

#[test]
fn deleted_workspace_is_told_with_the_way_to_restore_it() {
    let env = TestEnv::new();
    let ws = env.init();
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws]);
    let agent = Agent::claude(&env, "s");
    agent.start("startup");
    env.ok(&["workspace", "delete", &ws, "--yes"]);
    let told = agent.prompt("go on");
    let deleted = format!(
        "its workspace “Auth” ({ws}) was deleted. If the user wants to continue it, workspace_restore restores it"
    );
    assert!(told.contains(&deleted), "{told}");
    env.tick(2 * 3_600_000);
    assert_eq!(agent.prompt("go on"), "", "told once");
    let mut client = Client::connect(&env);
    client.expect_ok("workspace_restore", json!({"workspaceId": ws}));
    client.finish();
    assert!(agent.prompt("go on").contains("Goal: JWT"), "bound again");
}

#[test]
fn project_with_only_archived_workspace_names_restore() {
    let env = TestEnv::new();
    let ws = env.init();
    env.ok(&["workspace", "archive"]);
    let plan = env.root().join("plan.md");
    env.write(&plan, b"- a\n");
    for args in [&["tree"][..], &["next"], &["log", "x"], &["plan", plan.to_str().unwrap()]] {
        let error = env.error(args);
        assert_eq!(error["code"], "NO_WORKSPACE", "{args:?} {error}");
        let hint = error["hint"].as_str().unwrap();
        assert!(
            hint.starts_with(&format!("`tanmi workspace restore {ws}` restores the archived “Auth”")),
            "{hint}"
        );
    }
    let start = Agent::claude(&env, "s").start("startup");
    assert!(start.contains("No active workspace here (1 archived)"), "{start}");
}

#[test]
fn missing_workspace_is_told_again_after_compaction() {
    for platform in ["claude-code", "cursor"] {
        let env = TestEnv::new();
        let ws = env.init();
        env.ok(&["session", "bind", "--session", "s", "--workspace", &ws]);
        let agent = Agent { env: &env, platform, session: "s".into() };
        agent.start("startup");
        let file = env.workspace_dir(&ws).join("Workspace.md");
        env.write(&file, b"---\nbroken");
        assert!(agent.prompt("go on").contains(&ws), "{platform}");
        assert_eq!(agent.prompt("go on"), "", "{platform}: throttled");
        agent.send("PreCompact", "preCompact", json!({}));
        let told = match platform {
            "cursor" => agent.prompt("go on"),
            _ => agent.start("compact"),
        };
        assert!(told.contains(&format!("bound to workspace {ws}, which is missing")), "{platform}: {told}");
        assert!(agent.start("resume").contains(&ws), "{platform}");
    }
}

#[test]
fn damaged_focus_is_told_and_not_offered_as_next() {
    let env = TestEnv::new();
    let ws = env.init();
    let node = env.node("root", "execution", "N1");
    let other = env.node("root", "execution", "N2");
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws, "--node", &node]);
    let agent = Agent::claude(&env, "s");
    agent.start("startup");
    env.edit(&env.node_md(&ws, &node), |text| text.replace("status: pending", "status: nonsense"));
    let told = format!("Focused node: {node} cannot be read: ");
    let prompt = agent.prompt("go on");
    assert!(prompt.contains(&told) && prompt.contains("Node.md:"), "{prompt}");
    assert_eq!(agent.prompt("go on"), "");
    let start = agent.start("compact");
    assert!(start.contains(&told) && !start.contains("(none"), "{start}");
    env.ok(&["session", "bind", "--session", "t", "--workspace", &ws]);
    let start = Agent::claude(&env, "t").start("startup");
    assert!(start.contains(&format!("Next: N2 {other}")) && !start.contains(&node), "{start}");
    env.edit(&env.node_md(&ws, &node), |text| text.replace("status: nonsense", "status: pending"));
    assert!(agent.prompt("go on").contains("Focus is now: N1"));
}
