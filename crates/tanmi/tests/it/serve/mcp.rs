//! MCP over HTTP: the same tools, and a session for each connection.

use serde_json::{Value, json};

use super::{Answer, Server};
use crate::env::TestEnv;

struct Connection<'a> {
    server: &'a Server,
    session: String,
    next: u64,
}

fn post(server: &Server, session: Option<&str>, message: &Value) -> Answer {
    let (host, token) = (format!("127.0.0.1:{}", server.port), format!("Bearer {}", server.token));
    let mut headers = vec![
        ("Host", host.as_str()),
        ("Authorization", token.as_str()),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", "2025-11-25"),
    ];
    headers.extend(session.map(|session| ("Mcp-Session-Id", session)));
    server.bare("POST", "/mcp", &headers, &message.to_string())
}

impl Connection<'_> {
    fn open(server: &Server) -> Connection<'_> {
        let hello = json!({
            "jsonrpc": "2.0", "id": 0, "method": "initialize",
            "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
        });
        let answer = post(server, None, &hello);
        assert_eq!(answer.status, 200, "{}", answer.body);
        let session = answer.header("mcp-session-id").unwrap().to_owned();
        let done = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(post(server, Some(&session), &done).status, 202);
        Connection { server, session, next: 0 }
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let message = json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params});
        let answer = post(self.server, Some(&self.session), &message);
        let lines = answer.body.lines().filter_map(|line| line.strip_prefix("data:"));
        let mut messages = lines.filter_map(|line| serde_json::from_str::<Value>(line.trim()).ok());
        let found = messages.find(|message| message["id"] == self.next);
        found.unwrap_or_else(|| panic!("{}\n{}", answer.head, answer.body))["result"].clone()
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({"name": tool, "arguments": arguments}))["structuredContent"].clone()
    }
}

#[test]
fn http_has_stdio_tools_and_session_per_connection() {
    let env = TestEnv::new();
    let server = Server::start(&env);
    let mut one = Connection::open(&server);
    let over_http = one.request("tools/list", json!({}))["tools"].clone();
    assert_eq!(over_http.as_array().unwrap().len(), 27);
    let ws =
        one.call("workspace_init", json!({"name": "W", "goal": "g", "rules": ["r"]}))["workspaceId"].clone();
    // An agent shows that it knows the rules, over HTTP too.
    let node = json!({"type": "execution", "title": "t", "requirement": "r", "parentId": "root"});
    assert_eq!(one.call("node_create", node.clone())["error"]["code"], "RULES_HASH_MISMATCH");

    // Each connection is a session of its own, and stays the same one.
    let mut two = Connection::open(&server);
    assert_eq!(one.call("session_bind", json!({"workspaceId": ws}))["success"], true);
    assert_eq!(one.call("session_status", json!({}))["bound"], true);
    assert_eq!(two.call("session_status", json!({}))["bound"], false);
    let hash = one.call("workspace_get", json!({}))["rulesHash"].clone();
    let mut node = node;
    node["rulesHash"] = hash;
    let made = one.call("node_create", node);
    assert!(env.status(made["nodeId"].as_str().unwrap()) == "pending", "{made}");
    assert_eq!(
        post(&server, Some("no-such-session"), &json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).status,
        404
    );
    assert!(server.stop(), "open connections do not keep it");
}
