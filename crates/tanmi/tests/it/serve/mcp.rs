//! MCP over HTTP: the same tools as over stdio, and a session for each connection.

use serde_json::{Value, json};

use super::{Response, Server};
use crate::env::TestEnv;
use crate::mcp::Client;

struct Connection<'a> {
    server: &'a Server,
    session: String,
    next: u64,
}

fn post(server: &Server, session: Option<&str>, message: &Value) -> Response {
    let (host, token) = (format!("127.0.0.1:{}", server.port), format!("Bearer {}", server.token));
    let mut headers = vec![
        ("Host", host.as_str()),
        ("Authorization", token.as_str()),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", "2025-11-25"),
    ];
    headers.extend(session.map(|session| ("Mcp-Session-Id", session)));
    server.send_with_headers("POST", "/mcp", &headers, &message.to_string())
}

impl Connection<'_> {
    fn open(server: &Server) -> Connection<'_> {
        let initialize = json!({
            "jsonrpc": "2.0", "id": 0, "method": "initialize",
            "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
        });
        let response = post(server, None, &initialize);
        assert_eq!(response.status, 200, "{}", response.body);
        let session = response.header("mcp-session-id").unwrap().to_owned();
        let done = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(post(server, Some(&session), &done).status, 202);
        Connection { server, session, next: 0 }
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let message = json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params});
        let response = post(self.server, Some(&self.session), &message);
        let lines = response.body.lines().filter_map(|line| line.strip_prefix("data:"));
        let mut messages = lines.filter_map(|line| serde_json::from_str::<Value>(line.trim()).ok());
        let found = messages.find(|message| message["id"] == self.next);
        found.unwrap_or_else(|| panic!("{}\n{}", response.head, response.body))["result"].clone()
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({"name": tool, "arguments": arguments}))["structuredContent"].clone()
    }
}

#[test]
fn http_has_stdio_tools_and_session_per_connection() {
    let env = TestEnv::new();
    let server = Server::start(&env);
    let mut first = Connection::open(&server);
    let over_http = first.request("tools/list", json!({}))["tools"].clone();
    assert_eq!(over_http, Client::connect(&env).list_tools());
    let ws = first.call("workspace_init", json!({"name": "W", "goal": "g", "rules": ["r"]}))["workspaceId"]
        .clone();
    // An agent must pass the hash of the rules over HTTP too.
    let node = json!({"type": "execution", "title": "t", "requirement": "r", "parentId": "root"});
    assert_eq!(first.call("node_create", node.clone())["error"]["code"], "RULES_HASH_MISMATCH");

    // Each connection is its own session, and keeps it.
    let mut second = Connection::open(&server);
    assert_eq!(first.call("session_bind", json!({"workspaceId": ws}))["success"], true);
    assert_eq!(first.call("session_status", json!({}))["bound"], true);
    assert_eq!(second.call("session_status", json!({}))["bound"], false);
    let hash = first.call("workspace_get", json!({}))["rulesHash"].clone();
    let mut node = node;
    node["rulesHash"] = hash;
    let created = first.call("node_create", node);
    assert!(env.status(created["nodeId"].as_str().unwrap()) == "pending", "{created}");
    assert_eq!(
        post(&server, Some("no-such-session"), &json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).status,
        404
    );
    assert!(server.stop(), "open connections do not stop the shutdown");
}
