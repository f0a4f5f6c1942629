//! The HTTP API and MCP of the server of a team.

use serde_json::{Value, json};

use super::{Team, create_workspace, ok};
use crate::serve::{Response, Server};

/// Sends a request with a token to a path of the server.
fn send(server: &Server, token: &str, method: &str, path: &str, body: &Value) -> Response {
    let authorization = format!("Bearer {token}");
    let headers = [
        ("Host", "team"),
        ("Authorization", authorization.as_str()),
        ("Accept", "application/json, text/event-stream"),
    ];
    let body = if body.is_null() { String::new() } else { body.to_string() };
    server.send_with_headers(method, path, &headers, &body)
}

/// Calls a tool over MCP and returns its structured result.
fn call(server: &Server, token: &str, tool: &str, arguments: Value) -> Value {
    let message = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments},
    });
    let response = send(server, token, "POST", "/mcp", &message);
    assert_eq!(response.status, 200, "{tool}: {}", response.body);
    let message: Value =
        serde_json::from_str(&response.body).unwrap_or_else(|_| panic!("{tool}: {}", response.body));
    message["result"]["structuredContent"].clone()
}

#[test]
fn mcp_agents_of_two_people_share_workspace_and_memory() {
    let Some(team) = Team::new() else { return };
    let (first, second) = (team.serve(), team.serve());
    let bob = team.token("bob", "member");
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    }});
    let answer = send(&first, &team.admin, "POST", "/mcp", &hello);
    assert!(answer.body.contains("workspace_init"), "{} {}", answer.status, answer.body);
    let made = call(&first, &team.admin, "workspace_init", json!({"name": "Shop", "goal": "Sell more"}));
    let workspace = made["workspaceId"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned();
    call(&first, &team.admin, "session_bind", json!({"workspaceId": workspace}));
    let plan = json!({"outline": "- Build\n- Test (after: Build)"});
    call(&first, &team.admin, "node_plan", plan);
    let started = call(&first, &team.admin, "node_next", json!({"start": true}));
    assert_eq!(started["started"]["title"], "Build", "{started}");
    // The other server knows the binding of the session, and who holds the node.
    let status = call(&second, &team.admin, "session_status", json!({}));
    assert!(status.to_string().contains(&workspace), "{status}");
    let node = started["started"]["nodeId"].as_str().unwrap().to_owned();
    let arguments = json!({"workspaceId": workspace, "nodeId": node, "action": "start"});
    let refused = call(&second, &bob, "node_transition", arguments.clone());
    assert_eq!(refused["error"]["code"], "NODE_TAKEN", "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("ada on team server"), "{refused}");
    let saved =
        call(&first, &team.admin, "memory_save", json!({"content": "The shop uses euros", "type": "W"}));
    assert!(saved["id"].is_string(), "{saved}");
    let found = call(&second, &bob, "memory_search", json!({"query": "euros"}));
    assert!(found.to_string().contains("The shop uses euros"), "{found}");
    let private = call(&second, &bob, "memory_save", json!({"content": "I like tea", "type": "O"}));
    assert!(private["error"]["code"].is_string(), "{private}");
    let reader = team.token("rita", "reader");
    let read = call(&second, &reader, "node_list", json!({"workspaceId": workspace}));
    assert!(read.to_string().contains("Build"), "{read}");
    let arguments = json!({"workspaceId": workspace, "nodeId": node, "event": "read"});
    assert_eq!(call(&second, &reader, "log_append", arguments)["error"]["code"], "FORBIDDEN");
}

#[test]
fn api_reads_and_writes_project_of_token() {
    let Some(team) = Team::new() else { return };
    let server = team.serve();
    let workspace = create_workspace(&server, "create-1");
    let get = |token: &str, path: &str| send(&server, token, "GET", path, &Value::Null);
    let listed = get(&team.admin, "/api/v1/workspaces");
    assert!(listed.status == 200 && listed.body.contains(&workspace), "{} {}", listed.status, listed.body);
    let node = json!({"parentId": "root", "type": "execution", "title": "Build", "requirement": "Build it"});
    let path = format!("/api/v1/workspaces/{workspace}/nodes?project=shop");
    let created = send(&server, &team.admin, "POST", &path, &node);
    assert_eq!(created.status, 201, "{}", created.body);
    assert_eq!(ok(&server, "GET", "feed", &Value::Null)["heads"][&workspace], 1, "the change is in the feed");
    let reader = team.token("rita", "reader");
    assert_eq!(get(&reader, &format!("/api/v1/workspaces/{workspace}")).status, 200);
    assert_eq!(send(&server, &reader, "POST", &path, &node).status, 403);
    assert_eq!(get("tnm_x_y", "/api/v1/workspaces").status, 401);
    assert_eq!(get(&team.admin, "/api/v1/workspaces?project=none").status, 404);
    for local in ["/api/v1/ledger", "/api/v1/rules", "/api/v1/events"] {
        assert_eq!(get(&team.admin, local).status, 404, "{local}");
    }
    // A person with two projects names one.
    let eve = team.setup("other", "ada");
    let several = get(&eve, "/api/v1/workspaces");
    assert!(several.status == 400 && several.body.contains("PROJECT_REQUIRED"), "{}", several.body);
    let other = get(&eve, "/api/v1/workspaces?project=other");
    assert!(other.status == 200 && !other.body.contains(&workspace), "{}", other.body);
    let foreign = get(&eve, &format!("/api/v1/workspaces/{workspace}?project=other"));
    assert_eq!(foreign.status, 404, "{}", foreign.body);
}
