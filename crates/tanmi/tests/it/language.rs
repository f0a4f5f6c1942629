//! The language of texts: people read that of the setting or the locale, agents that of their workspace.

use serde_json::{Value, json};
use tanmi_base::Lang;

use crate::agent::Agent;
use crate::env::TestEnv;
use crate::mcp::Client;
use crate::serve::Server;

fn init(env: &TestEnv, name: &str, goal: &str) -> String {
    let created = env.json(&["workspace", "init", "--name", name, "--goal", goal]);
    created["workspaceId"].as_str().unwrap().to_owned()
}

fn is_chinese(text: &str) -> bool {
    Lang::of_text(text) == Some(Lang::Zh)
}

/// Returns the content of `Workspace.md`, and its path.
fn workspace_file(env: &TestEnv, ws: &str) -> (String, std::path::PathBuf) {
    let path = env.project.join(".tanmi-workspace").join(ws).join("Workspace.md");
    (std::fs::read_to_string(&path).unwrap(), path)
}

#[test]
fn command_output_follows_setting_and_locale_not_workspace() {
    for (locale, setting, zh) in [
        ("en_US.UTF-8", "auto", false),
        ("zh_CN.UTF-8", "auto", true),
        ("en_US.UTF-8", "zh", true),
        ("zh_CN.UTF-8", "en", false),
    ] {
        let env = TestEnv::with_lang(locale);
        env.ok(&["config", "set", "language", setting]);
        // The texts of the workspace are in the other language.
        let (name, goal) = if zh { ("Auth", "JWT") } else { ("认证", "改用令牌") };
        let ws = init(&env, name, goal);
        let node = env.node("root", "execution", name);
        let steps: [&[&str]; 9] = [
            &["workspace", "show"],
            &["workspace", "update", "--add-rule", goal],
            &["node", "show", &node],
            &["node", "update", &node, "--note", goal],
            &["node", "transition", &node, "--action", "start"],
            &["problem", "--node", &node, goal],
            &["session", "bind", "--session", "s", "--workspace", &ws],
            &["session", "unbind", "--session", "s"],
            &["workspace", "archive"],
        ];
        for args in steps {
            let output = env.ok(args);
            // The log entry that a start adds is in the language of the workspace too.
            let output = output.replace(name, "").replace(goal, "").replace("开始: pending", "");
            assert_eq!(is_chinese(&output), zh, "{locale} {setting} {args:?}: {output}");
        }
    }
}

#[test]
fn reminders_of_completed_node_follow_reader() {
    let env = TestEnv::new();
    let ws = init(&env, "认证", "改用令牌");
    let [first, second] = ["一", "二"].map(|title| {
        let plan = env.node("root", "planning", "规划");
        env.node(&plan, "execution", title)
    });
    env.ok(&["node", "transition", &first, "--action", "start"]);
    let done = env.json(&["node", "transition", &first, "--action", "complete", "--conclusion", "好"]);
    let reminder = done["reminders"][0].as_str().unwrap();
    assert!(!is_chinese(&reminder.replace("规划", "")), "for a person: {reminder}");
    let mut client = Client::connect(&env);
    client.expect_ok("node_transition", json!({"workspaceId": ws, "nodeId": second, "action": "start"}));
    let args = json!({"workspaceId": ws, "nodeId": second, "action": "complete", "conclusion": "ok"});
    let done = client.expect_ok("node_transition", args);
    let reminder = done["reminders"][0].as_str().unwrap();
    assert!(is_chinese(&reminder.replace("规划", "")), "for an agent: {reminder}");
    client.finish();
}

#[test]
fn agent_texts_follow_workspace_not_setting() {
    for (locale, setting, name, expected) in
        [("zh_CN.UTF-8", "zh", "Auth", "Workspace: Auth"), ("en_US.UTF-8", "en", "认证", "当前工作区：认证")]
    {
        let env = TestEnv::with_lang(locale);
        env.ok(&["config", "set", "language", setting]);
        let ws = init(&env, name, "JWT");
        env.ok(&["session", "bind", "--session", "s", "--workspace", &ws]);
        let start = Agent::claude(&env, "s").start("startup");
        assert!(start.contains(expected), "{start}");
    }
}

#[test]
fn workspace_language_is_stored_at_creation_and_changed_by_update() {
    let env = TestEnv::new();
    let rule = "提交说明用中文";
    let created = env.json(&["workspace", "init", "--name", "Auth", "--goal", "JWT", "--rule", rule]);
    assert_eq!(created["language"], "zh", "a rule is Chinese: {created}");
    let ws = created["workspaceId"].as_str().unwrap();
    assert!(workspace_file(&env, ws).0.contains("\nlanguage: zh\n"));
    let session = ["session", "bind", "--session", "s", "--workspace", ws];
    env.ok(&session);
    let agent = Agent::claude(&env, "s");

    // Later texts do not change it.
    env.ok(&["workspace", "update", "--no-rules"]);
    assert!(agent.start("startup").contains("目标：JWT"));

    let updated = env.json(&["workspace", "update", "--language", "en"]);
    assert_eq!(updated["language"], "en");
    assert!(workspace_file(&env, ws).0.contains("\nlanguage: en\n"));
    assert!(agent.start("startup").contains("Goal: JWT"));
    assert!(env.ok(&["workspace", "show"]).contains("English"));

    let mut client = Client::connect(&env);
    let updated = client.expect_ok("workspace_update", json!({"workspaceId": ws, "language": "zh"}));
    assert_eq!(updated["language"], "zh");
    client.finish();
    assert!(agent.start("startup").contains("目标：JWT"));

    let server = Server::start(&env);
    let path = format!("/workspaces/{ws}");
    server.expect_ok("PATCH", &path, json!({"language": "en"}));
    assert_eq!(server.expect_ok("GET", &path, Value::Null)["language"], "en");
    assert!(agent.start("startup").contains("Goal: JWT"));
    server.expect_error("PATCH", &path, json!({"language": "fr"}), 400);
    assert!(!env.run(&["workspace", "update", "--language", "fr"]).ok);
}

#[test]
fn workspace_file_without_language_or_with_unknown_one_is_decided_from_texts() {
    let env = TestEnv::with_lang("en_US.UTF-8");
    let ws = init(&env, "认证", "JWT");
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws]);
    let agent = Agent::claude(&env, "s");
    for line in ["", "language: tlh\n"] {
        let (text, path) = workspace_file(&env, &ws);
        let text = text.replace("language: zh\n", line);
        env.write(&path, text.as_bytes());
        assert!(agent.start("startup").contains("目标：JWT"), "{line:?}");
        env.ok(&["workspace", "update", "--goal", "JWT"]);
        let (kept, path) = workspace_file(&env, &ws);
        assert_eq!(kept.contains("language: tlh"), !line.is_empty(), "an unknown word stays in the file");
        env.write(&path, kept.replace("status: active\n", "status: active\nlanguage: zh\n").as_bytes());
    }
}

#[test]
fn unbound_session_reads_language_of_prompt_then_memory() {
    let env = TestEnv::with_lang("en_US.UTF-8");
    init(&env, "Auth", "JWT");
    let agent = Agent::claude(&env, "s");
    assert!(!is_chinese(&agent.start("startup")));
    assert!(is_chinese(&agent.prompt("继续工作区的任务")));
    env.ok(&["memory", "save-fact", "提交说明用中文", "--type", "W"]);
    let start = Agent::claude(&env, "s2").start("startup");
    assert!(start.contains("会话"), "the session id in the language of memory: {start}");
}

#[test]
fn tool_errors_and_instructions_follow_workspace() {
    for (locale, name, zh) in [("zh_CN.UTF-8", "Auth", false), ("en_US.UTF-8", "认证", true)] {
        let env = TestEnv::with_lang(locale);
        let ws = init(&env, name, "JWT");
        let mut client = Client::start(&env);
        let instructions = client.initialize("2025-11-25")["result"]["instructions"].to_string();
        assert_eq!(is_chinese(&instructions), zh, "{instructions}");
        let bound = client.expect_ok("session_bind", json!({"sessionId": "s", "workspaceId": ws}));
        assert_eq!(is_chinese(bound["hint"].as_str().unwrap()), zh, "{bound}");
        // Another workspace in the other language: the binding decides, not the only active workspace.
        let other = if zh { "Docs" } else { "文档" };
        let created = client.expect_ok("workspace_init", json!({"name": other, "goal": other}));
        assert_eq!(is_chinese(created["hint"].as_str().unwrap()), !zh, "{created}");
        let error = client.expect_error("node_get", json!({"sessionId": "s", "nodeId": "node-none"}));
        assert_eq!(is_chinese(error["message"].as_str().unwrap()), zh, "{error}");
        let error = client.expect_error("node_get", json!({"sessionId": "s", "nodeId": 1}));
        assert_eq!(is_chinese(error["message"].as_str().unwrap()), zh, "{error}");
        let error = client.expect_error("node_get", json!({"sessionId": "s", "workspaceId": "ws-none"}));
        assert_eq!(is_chinese(error["message"].as_str().unwrap()), zh, "{error}");
        let named = json!({"workspaceId": created["workspaceId"], "nodeId": "node-none"});
        let error = client.expect_error("node_get", named);
        assert_eq!(is_chinese(error["message"].as_str().unwrap()), !zh, "{error}");
        let id = created["workspaceId"].as_str().unwrap();
        let named = json!({"sessionId": "s", "workspaceId": &id[id.len() - 6..], "nodeId": "node-none"});
        let error = client.expect_error("node_get", named);
        assert_eq!(is_chinese(error["message"].as_str().unwrap()), !zh, "{error}");
        let unbound = client.expect_ok("session_unbind", json!({"sessionId": "s"}));
        assert_eq!(is_chinese(unbound["message"].as_str().unwrap()), zh, "{unbound}");
        client.finish();
    }
}

#[test]
fn http_answers_follow_accept_language_then_setting() {
    let env = TestEnv::with_lang("en_US.UTF-8");
    env.ok(&["config", "set", "language", "zh"]);
    init(&env, "Auth", "JWT");
    let server = Server::start(&env);
    let name = |headers: &[(&str, &str)]| {
        let response = server.send_request("GET", "/rules?limit=1", headers, &Value::Null);
        response.json()["rules"][0]["name"].as_str().unwrap().to_owned()
    };
    assert!(is_chinese(&name(&[])));
    assert!(!is_chinese(&name(&[("Accept-Language", "en-US,en;q=0.9")])));
    assert!(is_chinese(&name(&[("Accept-Language", "fr")])));
    let error = server.expect_error("GET", "/workspaces/ws-none", Value::Null, 404);
    assert!(is_chinese(error["message"].as_str().unwrap()), "{error}");
}

#[test]
fn built_context_follows_setting() {
    let env = TestEnv::with_lang("en_US.UTF-8");
    for dir in [".claude/agents", ".tanmi"] {
        std::fs::create_dir_all(env.project.join(dir)).unwrap();
    }
    env.write(&env.project.join(".claude/agents/a.md"), b"---\nname: a\ndescription: d\n---\n");
    env.write(&env.project.join(".tanmi/context.json"), br#"{"title": "T"}"#);
    for (setting, heading) in [("en", "## Agents"), ("zh", "## 可用 Agents")] {
        env.ok(&["config", "set", "language", setting]);
        env.ok(&["context", "build"]);
        let built = std::fs::read_to_string(env.project.join(".claude/CLAUDE.md")).unwrap();
        assert!(built.contains(heading), "{built}");
    }
}
