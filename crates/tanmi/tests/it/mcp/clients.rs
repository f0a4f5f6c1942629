//! Known clients: several conversations in one process, hooks, and the names that clients send.

use super::*;
use crate::agent::{Agent, hook};

const SESSION_START: &str = include_str!("../../../../platform/fixtures/cursor/sessionStart.json");

/// Starts a conversation of Cursor and returns the injected text. All of them run in the process of the test, as does
/// the server.
fn start_conversation(env: &TestEnv, id: &str) -> String {
    let mut payload: Value = serde_json::from_str(SESSION_START).unwrap();
    (payload["conversation_id"], payload["session_id"]) = (json!(id), json!(id));
    payload["workspace_roots"] = json!([env.project]);
    hook(env, "cursor", payload.to_string().as_bytes())
}

/// A workspace with two nodes, and a client with two conversations in one process.
struct SharedProcess {
    env: TestEnv,
    ws: String,
    nodes: [String; 2],
    client: Client,
}

const CONVERSATIONS: [&str; 2] = ["conversation-1", "conversation-2"];

impl SharedProcess {
    fn new() -> SharedProcess {
        let env = TestEnv::new();
        let ws = env.init();
        let nodes = ["first", "second"].map(|title| env.node("root", "execution", title));
        for id in CONVERSATIONS {
            let injected = start_conversation(&env, id);
            assert!(injected.contains(id), "the agent learns its id: {injected}");
        }
        let client = Client::connect_as(&env, "cursor-vscode");
        SharedProcess { env, ws, nodes, client }
    }

    fn expect_ambiguous(&mut self, tool: &str, arguments: Value) {
        let error = self.client.expect_error(tool, arguments);
        assert_eq!(
            (&error["code"], &error["field"]),
            (&json!("AMBIGUOUS_SESSION"), &json!("sessionId")),
            "{tool}"
        );
        let mut candidates: Vec<&str> =
            error["details"]["sessions"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        candidates.sort_unstable();
        assert_eq!(candidates, CONVERSATIONS);
        assert!(error["hint"].as_str().unwrap().contains("`sessionId`"), "{error}");
    }
}

#[test]
fn two_conversations_have_separate_focus_claims_and_logs() {
    let SharedProcess { env, ws, nodes, mut client } = SharedProcess::new();
    for (id, node) in CONVERSATIONS.iter().zip(&nodes) {
        client.expect_ok("session_bind", json!({"sessionId": id, "workspaceId": ws}));
        let arguments = json!({"sessionId": id, "nodeId": node, "action": "start"});
        assert_eq!(client.expect_ok("node_transition", arguments)["focus"], **node);
    }
    for (id, node) in CONVERSATIONS.iter().zip(&nodes) {
        client.expect_ok("log_append", json!({"sessionId": id, "log": format!("by {id}")}));
        assert_eq!(client.expect_ok("session_status", json!({"sessionId": id}))["focusedNode"]["id"], **node);
        let context = client.expect_ok("context_get", json!({"sessionId": id})).to_string();
        assert!(context.contains(&format!("by {id}")), "{context}");
        let shown = env.json(&["node", "show", node]);
        assert_eq!(shown["node"]["startedBy"], *id);
    }
    assert!(client.expect_ok("workspace_get", json!({"workspaceId": ws})).get("focusedNodeId").is_none());
    let complete =
        json!({"sessionId": CONVERSATIONS[0], "nodeId": nodes[1], "action": "complete", "conclusion": "c"});
    assert_eq!(client.expect_error("node_transition", complete)["code"], "NODE_TAKEN");
    client.finish();
}

#[test]
fn call_without_session_in_shared_process_is_refused_and_changes_nothing() {
    let mut shared = SharedProcess::new();
    let (ws, node) = (shared.ws.clone(), shared.nodes[0].clone());
    for (tool, arguments) in [
        ("session_bind", json!({"workspaceId": ws})),
        ("session_status", json!({})),
        ("node_list", json!({})),
        ("node_transition", json!({"workspaceId": ws, "nodeId": node, "action": "start"})),
        ("node_delete", json!({"workspaceId": ws, "nodeId": node})),
        ("context_focus", json!({"workspaceId": ws, "nodeId": node})),
        ("log_append", json!({"workspaceId": ws, "log": "x"})),
        ("memory_save", json!({"content": "x"})),
        ("memory_summary", json!({"topic": "x", "summary": "x"})),
    ] {
        shared.expect_ambiguous(tool, arguments);
    }
    let SharedProcess { env, mut client, .. } = shared;
    assert_eq!(env.status(&node), "pending");
    // A call that names all its ids depends on no session.
    let shown = client.expect_ok("workspace_get", json!({"workspaceId": ws}));
    assert!(shown.get("focusedNodeId").is_none(), "{shown}");
    client.expect_ok("log_append", json!({"workspaceId": ws, "nodeId": node, "log": "x"}));
    let error = client.expect_error("node_get", json!({"sessionId": "", "workspaceId": ws, "nodeId": node}));
    assert_eq!(error["code"], "INVALID_ARGUMENT", "a session id is checked: {error}");
    client.finish();
}

fn lists_context_check(env: &TestEnv, client_name: &str) -> bool {
    let mut client = Client::connect_as(env, client_name);
    let listed = client.list_tools();
    // A client that knows the tool from before may still call it.
    client.expect_ok("context_check", json!({"sessionId": "s", "trigger": "before_response"}));
    client.finish();
    listed.as_array().unwrap().iter().any(|tool| tool["name"] == "context_check")
}

#[test]
fn context_check_is_listed_unless_hooks_of_the_client_ran_lately() {
    let env = TestEnv::new();
    assert!(lists_context_check(&env, "claude-code"));
    Agent::claude(&env, "s").start("startup");
    assert!(!lists_context_check(&env, "claude-code"));
    assert!(lists_context_check(&env, "cursor-vscode"), "the hooks of another client");
    assert!(lists_context_check(&env, "other"), "an unknown client");
    env.tick(7 * 86_400_000);
    assert!(!lists_context_check(&env, "claude-code"));
    env.tick(1);
    assert!(lists_context_check(&env, "claude-code"), "seven days ago");
}

#[test]
fn client_name_without_hooks_is_its_platform_for_rules() {
    let env = TestEnv::new();
    let rule = json!({"id": "r", "match": {"events": ["status_check"], "platforms": ["cursor"]},
        "action": {"content": "for Cursor"}});
    let rules = json!({"customRules": [rule]});
    env.make(&env.root().join("home/.tanmi/rules.json"), &rules.to_string());
    let reminders = |name: &str| {
        let mut client = Client::connect_as(&env, name);
        let status = client.expect_ok("session_status", json!({}));
        client.finish();
        status["reminders"].clone()
    };
    assert_eq!(reminders("cursor-vscode"), json!(["for Cursor"]));
    assert_eq!(reminders("claude-code"), Value::Null);
    assert_eq!(reminders("other"), Value::Null);
}
