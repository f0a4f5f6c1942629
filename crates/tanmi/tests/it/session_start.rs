//! The text at a session start is the same byte for byte wherever it is shown: in the hook, on the command
//! line and over HTTP.

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::env::TestEnv;
use crate::serve::Server;

const SESSION: &str = "day-2";

/// Makes a workspace with everything that a context can contain. Returns the ids of the workspace and of the node.
fn fill(env: &TestEnv, zh: bool) -> (String, String) {
    let text = |zh_text: &'static str, en: &'static str| if zh { zh_text } else { en };
    let (goal, rule, doc) =
        (text("改用令牌", "JWT"), text("先写测试", "Tests first"), text("标准", "the standard"));
    let doc = format!("docs/rfc.md: {doc}");
    let created = env.json(&[
        "workspace",
        "init",
        "--name",
        text("认证", "Auth"),
        "--goal",
        goal,
        "--rule",
        rule,
        "--doc",
        &doc,
    ]);
    let outer = env.node("root", "planning", text("令牌", "Tokens"));
    let node = env.node(&outer, "planning", text("签发", "Issue"));
    let child = env.node(&node, "execution", text("签名", "Sign"));
    env.ok(&["node", "transition", &child, "--action", "start"]);
    let conclusion = text("用 RS256", "RS256 it is");
    env.ok(&["node", "transition", &child, "--action", "complete", "--conclusion", conclusion]);
    env.ok(&["node", "reference", &node, "--target", &child, "--description", text("上游", "upstream")]);
    for line in ["1", "2", "3", "4"] {
        env.ok(&["log", "--node", &node, line]);
    }
    env.ok(&["problem", "--node", &node, text("时钟偏差", "clock skew"), "--next-step", "60 s"]);
    env.ok(&["memory", "save-fact", text("密钥在库里", "keys are in the vault"), "--type", "W"]);
    env.ok(&["workspace", "focus", "--clear"]);
    (created["workspaceId"].as_str().unwrap().to_owned(), node)
}

/// Checks that all interfaces show what the hook injects, and returns it.
fn check_same_text(env: &TestEnv, ws: &str, node: Option<&str>) -> String {
    let mut bind = vec!["session", "bind", "--session", SESSION, "--workspace", ws];
    bind.extend(node.iter().flat_map(|node| ["--node", node]));
    env.ok(&bind);
    let server = Server::start(env);
    let shown = || {
        let mut body = json!({"event": "session_start", "sessionId": SESSION, "workspaceId": ws});
        if let Some(node) = node {
            body["nodeId"] = json!(node);
        }
        let own = json!({"event": "session_start", "sessionId": SESSION});
        let explain = |body: Value| server.expect_ok("POST", "/rules/explain", body)["text"].clone();
        let printed = env.ok(&["node", "context", "--session", SESSION]);
        let by_id = ["node", "context", "--session", SESSION, "--workspace", ws];
        [
            ("node context", json!(printed.strip_suffix('\n').unwrap())),
            ("node context of a workspace", env.json(&by_id)["text"].clone()),
            ("context show", env.json(&["context", "show", "--session", SESSION, "--text"])["text"].clone()),
            ("HTTP, as the page asks", explain(body)),
            ("HTTP, by the binding", explain(own)),
        ]
    };
    let before = shown();
    let start = Agent::claude(env, SESSION).start("startup");
    for (what, text) in before.into_iter().chain(shown()) {
        assert_eq!(text.as_str().unwrap(), start, "{what}");
    }
    start
}

#[test]
fn shown_text_equals_text_of_hook_with_and_without_focus_in_both_languages() {
    for zh in [false, true] {
        // The locale is the other language, because the workspace decides.
        let env = TestEnv::with_lang(if zh { "en_US.UTF-8" } else { "zh_CN.UTF-8" });
        let (ws, node) = fill(&env, zh);
        let focused = check_same_text(&env, &ws, Some(&node));
        let unfocused = check_same_text(&env, &ws, None);
        let name = if zh { "zh" } else { "en" };
        let ids = |text: &str| text.replace(&ws, "WS").replace(&node, "NODE");
        // Ids of other nodes are random.
        let stable = |text: &str| {
            let words = ids(text);
            let words = words.split_inclusive(['\n', ' ', '；', ';', ':']);
            words.map(|word| if word.starts_with("node-") { "NODE " } else { word }).collect::<String>()
        };
        insta::assert_snapshot!(
            format!("session_start_{name}"),
            format!("{}\n\n===\n\n{}", stable(&focused), stable(&unfocused))
        );
    }
}

#[test]
fn node_context_json_keeps_parts_and_adds_text() {
    let env = TestEnv::new();
    let (ws, node) = fill(&env, false);
    let context = env.json(&["node", "context", &node]);
    for key in ["workspaceId", "workspace", "chain", "childConclusions", "references", "text"] {
        assert!(context.get(key).is_some(), "{key}: {context}");
    }
    let text = context["text"].as_str().unwrap();
    assert!(text.contains("Session: SESSION\n"), "no session is named: {text}");
    let server = Server::start(&env);
    let body = json!({"event": "session_start", "workspaceId": ws, "nodeId": node});
    assert_eq!(server.expect_ok("POST", "/rules/explain", body)["text"], text);
}
