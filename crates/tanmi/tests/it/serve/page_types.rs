//! The types of the page's code (`crates/server/web/api-types.d.ts`) are those of the API: every request is in the
//! OpenAPI description, and the responses of a real server have exactly the declared fields. `scripts/check-page`
//! compares the code of the page with the same types.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Server;
use super::feed::Listener;
use super::openapi::percent_encode;
use crate::agent::Agent;
use crate::env::TestEnv;
use declarations::{Declarations, Field};

mod declarations;

/// Declared fields that the test does not make the server send: the field and the reason.
const NOT_SENT: &[(&str, &str)] = &[
    ("WorkspaceChange.gap", "only sent after changes of a workspace were lost"),
    ("MemoryResults.notice", "only sent if the embedding model cannot be loaded"),
    ("Api.GET /projects.response.joined", "only sent if a project has joined a team"),
    ("JoinedProject.folder", "only sent if a project has joined a team"),
    ("JoinedProject.name", "only sent if a project has joined a team"),
    ("JoinedProject.person", "only sent if a project has joined a team"),
    ("JoinedProject.server", "only sent if a project has joined a team"),
    ("Memory.author", "only sent in a joined project"),
    ("Memory.author.machine", "only sent in a joined project"),
    ("Memory.author.person", "only sent in a joined project"),
    ("Memory.queued", "only sent while a fact waits for the server of a team"),
    ("MemoryResults.age", "only sent if the server of a team was not reached lately"),
    ("MemoryResults.asOf", "only sent if the server of a team was not reached lately"),
    ("MemoryResults.stale", "only sent if the server of a team was not reached lately"),
    ("NodeView.isUtc", "only sent in a project of a team"),
    ("WorkspaceDetail.isUtc", "only sent in a project of a team"),
    ("NodeHolder.machine", "only sent in a project of a team"),
    ("NodeHolder.person", "only sent in a project of a team"),
    ("Present.isLive", "only sent in a project of a team"),
    ("Present.leaseUntil", "only sent in a project of a team"),
    ("Present.machine", "only sent in a project of a team"),
    ("Present.nodeId", "only sent in a project of a team"),
    ("Present.nodeTitle", "only sent in a project of a team"),
    ("Present.person", "only sent in a project of a team"),
    ("Present.session", "only sent in a project of a team"),
    ("Present.since", "only sent in a project of a team"),
    ("Present.workspaceId", "only sent in a project of a team"),
    ("ProjectNow.team", "only sent in a project of a team"),
    ("SessionLine.machine", "only sent in a project of a team"),
    ("SessionLine.person", "only sent in a project of a team"),
    ("ErrorBody.field", "not sent with an edit conflict; the page does not read it"),
];

fn declarations() -> Declarations {
    Declarations::parse(include_str!("../../../../server/web/api-types.d.ts"))
}

fn team_declarations() -> Declarations {
    Declarations::parse(include_str!("../../../../server/web/team-types.d.ts"))
}

/// Compares an answer about the people of a team with the type of its operation.
pub fn compare_team_answer(route: &str, answer: &Value) {
    let types = team_declarations();
    let operations = types.fields(types.named("TeamApi"));
    let operation = operations.iter().find(|operation| operation.name == route).unwrap();
    let declared = part(&types, operation, "response").unwrap();
    if let Err(difference) = types.compare(answer, &declared.field_type, route) {
        panic!("{difference}");
    }
}

/// Returns a field of an operation: `params`, `body`, `version` or `response`.
fn part<'a>(types: &'a Declarations, operation: &'a Field, name: &str) -> Option<&'a Field> {
    types.fields(&operation.field_type).iter().find(|field| field.name == name)
}

#[test]
fn page_requests_match_the_description() {
    let env = TestEnv::new();
    let server = Server::start(&env);
    let description = server.expect_ok("GET", "/openapi.json", Value::Null);
    for (types, name) in [(declarations(), "Api"), (team_declarations(), "TeamApi")] {
        for operation in types.fields(types.named(name)) {
            if let Err(difference) = compare_request(&types, operation, &description) {
                panic!("{difference}");
            }
        }
    }
}

/// Compares the parameters, the body and the version of an operation with the description.
fn compare_request(types: &Declarations, operation: &Field, description: &Value) -> Result<(), String> {
    let route = &operation.name;
    let (method, path) = route.split_once(' ').unwrap();
    let described = &description["paths"][format!("/api/v1{path}")][method.to_lowercase()];
    if described.is_null() {
        return Err(format!("{route}: the API has no such operation"));
    }
    let parameters = described["parameters"].as_array().unwrap();
    let (headers, parameters): (Vec<&Value>, Vec<&Value>) =
        parameters.iter().partition(|parameter| parameter["in"] == "header");
    let properties: serde_json::Map<String, Value> = parameters
        .iter()
        .map(|parameter| (parameter["name"].as_str().unwrap().to_owned(), parameter["schema"].clone()))
        .collect();
    let required: Vec<&Value> =
        parameters.iter().filter(|parameter| parameter["required"] == true).map(|p| &p["name"]).collect();
    // The page adds the project to every request below a workspace.
    if path.starts_with("/workspaces/") && !properties.contains_key("project") {
        return Err(format!("{route}: the API has no project"));
    }
    let params = part(types, operation, "params").map_or(&[][..], |params| types.fields(&params.field_type));
    types.compare_fields(params, &json!({"properties": properties, "required": required}), route)?;
    let body = part(types, operation, "body").map_or(&[][..], |body| types.fields(&body.field_type));
    types.compare_fields(body, &described["requestBody"]["content"]["application/json"]["schema"], route)?;
    if part(types, operation, "version").is_some()
        && headers.iter().all(|header| header["name"] != "If-Match")
    {
        return Err(format!("{route}: the API takes no version"));
    }
    Ok(())
}

/// Sends requests as the page does and compares the responses with their types.
struct Page<'a> {
    server: &'a Server,
    types: Declarations,
    /// The operations that were requested.
    requested: BTreeSet<String>,
    /// The ids of the fields that were received.
    seen: BTreeSet<String>,
}

impl Page<'_> {
    fn compare(&mut self, value: &Value, declaration: &str) {
        let declared = self.types.named(declaration);
        match self.types.compare(value, declared, declaration) {
            Ok(seen) => self.seen.extend(seen),
            Err(difference) => panic!("{difference}"),
        }
    }

    /// Sends a request with a version and returns the status and the response.
    fn send(&self, route: &str, params: Value, body: Value, version: &str) -> (u16, Value) {
        let (method, template) = route.split_once(' ').unwrap();
        let (mut path, mut query) = (template.to_owned(), String::new());
        for (name, value) in params.as_object().unwrap() {
            let text = percent_encode(&value.as_str().map_or_else(|| value.to_string(), String::from));
            let place = format!("{{{name}}}");
            if path.contains(&place) {
                path = path.replace(&place, &text);
            } else {
                query.push_str(&format!("&{name}={text}"));
            }
        }
        let headers = [("If-Match", version)];
        let headers = if version.is_empty() { &[][..] } else { &headers[..] };
        let response = self.server.send_request(method, &format!("{path}?{query}"), headers, &body);
        (response.status, response.json())
    }

    /// Sends a request that must succeed, compares the response with its type, and returns it.
    fn request(&mut self, route: &str, params: Value, body: Value) -> Value {
        let (status, response) = self.send(route, params, body, "");
        assert!((200..300).contains(&status), "{route}: {response}");
        let operations = self.types.fields(self.types.named("Api"));
        let operation = operations.iter().find(|operation| operation.name == route).unwrap();
        let declared = part(&self.types, operation, "response").unwrap();
        match self.types.compare(&response, &declared.field_type, route) {
            Ok(seen) => self.seen.extend(seen),
            Err(difference) => panic!("{difference}"),
        }
        self.requested.insert(route.to_owned());
        response
    }

    fn get(&mut self, path: &str, params: Value) -> Value {
        self.request(&format!("GET {path}"), params, Value::Null)
    }

    /// Sends an edit that is based on an outdated version and compares the error with its types.
    fn expect_conflict(&mut self, route: &str, params: Value, body: Value, details: &str) {
        let (status, response) = self.send(route, params, body, "\"0123456789abcdef\"");
        assert_eq!((status, &response["error"]["code"]), (412, &json!("OUTDATED")), "{response}");
        self.compare(&response, "ErrorResponse");
        self.compare(&response["error"]["details"], details);
    }

    /// Asserts that every operation was requested and every declared field was received.
    fn assert_complete(self) {
        let operations = self.types.fields(self.types.named("Api"));
        let unused: Vec<&String> = operations
            .iter()
            .map(|field| &field.name)
            .filter(|name| !self.requested.contains(*name))
            .collect();
        assert!(unused.is_empty(), "the test does not request {unused:?}");
        let mut declared = BTreeSet::new();
        for operation in operations {
            let response = part(&self.types, operation, "response").unwrap();
            self.types.collect_fields(&response.field_type, &mut declared);
        }
        for name in ["Change", "ErrorResponse", "OutdatedWorkspace", "OutdatedNode"] {
            self.types.collect_fields(self.types.named(name), &mut declared);
        }
        let exempt: BTreeSet<String> = NOT_SENT.iter().map(|(field, _)| (*field).to_owned()).collect();
        let missing: Vec<&String> =
            declared.difference(&self.seen).filter(|field| !exempt.contains(*field)).collect();
        assert!(missing.is_empty(), "declared, but the server never sent a value: {missing:?}");
    }
}

#[test]
fn page_types_match_real_responses() {
    let env = TestEnv::new();
    let ws = env.init();
    prepare_files(&env, &ws);
    let server = Server::start(&env);
    let mut page =
        Page { server: &server, types: declarations(), requested: BTreeSet::new(), seen: BTreeSet::new() };
    page.get("/projects", json!({}));
    request_nodes(&mut page, &env, &ws);
    request_workspaces(&mut page, &ws);
    request_sessions_and_rules(&mut page, &env, &ws);
    request_memory(&mut page, &env);
    receive_changes(&mut page, &env, &ws);
    page.assert_complete();
}

/// Makes one change of every kind and compares it as the change feed sends it.
fn receive_changes(page: &mut Page<'_>, env: &TestEnv, ws: &str) {
    let mut listener = Listener::open(page.server, None);
    listener.wait_for("hello", |(name, _)| name == "hello");
    let mut receive = |kind: &str| {
        let (_, change) = listener.wait_for(kind, |(name, data)| name == "change" && data["kind"] == kind);
        page.compare(&change, "Change");
    };
    env.ok(&["log", "-w", ws, "--node", "root", "a line"]);
    receive("workspace");
    env.ok(&["session", "bind", "--session", "s", "--workspace", ws]);
    receive("bindings");
    env.ok(&["memory", "save-fact", "a change", "--type", "W"]);
    receive("memory");
    env.ok(&["workspace", "init", "--name", "Another", "--goal", "g"]);
    receive("workspaces");
    env.make(&env.project.join(".tanmi/rules.json"), "{}");
    receive("rules");
    Agent::claude(env, "t").start("startup");
    receive("ledger");
}

/// Writes what the page shows but cannot create: damaged files, references, and the claim of a subagent.
fn prepare_files(env: &TestEnv, ws: &str) {
    let damaged = env.json(&["workspace", "init", "--name", "Damaged", "--goal", "g"]);
    let damaged = env.workspace_dir(damaged["workspaceId"].as_str().unwrap()).join("Workspace.md");
    env.write(&damaged, b"no front matter");
    env.ok(&["log", "-w", ws, "--node", "workspace", "a line"]);
    env.ok(&["problem", "-w", ws, "--node", "workspace", "p", "--next-step", "n"]);
    env.ok(&["workspace", "focus", "-w", ws, "root"]);
}

fn request_nodes(page: &mut Page<'_>, env: &TestEnv, ws: &str) {
    let nodes = "/workspaces/{workspaceId}/nodes";
    let node_path = "/workspaces/{workspaceId}/nodes/{nodeId}";
    let create = |page: &mut Page<'_>, parent: &str, kind: &str, title: &str| {
        let body = json!({"parentId": parent, "type": kind, "title": title, "requirement": "**r**"});
        let created = page.request(&format!("POST {nodes}"), json!({"workspaceId": ws}), body);
        created["nodeId"].as_str().unwrap().to_owned()
    };
    let parent = create(page, "root", "planning", "parent");
    let id = create(page, &parent, "execution", "child");
    let broken = create(page, "root", "execution", "broken");
    env.write(&env.node_md(ws, &broken), b"no front matter");
    let params = json!({"workspaceId": ws, "nodeId": id});
    env.ok(&["node", "update", "-w", ws, &id, "--role", "validation", "--isolated", "true"]);
    env.ok(&["node", "reference", "-w", ws, &id, "--target", &parent, "--description", "d"]);
    let done = env.json(&["node", "create", "-w", ws, "--type", "execution", "--title", "first"]);
    let done = done["nodeId"].as_str().unwrap().to_owned();
    env.ok(&["node", "transition", "-w", ws, &done, "--action", "start"]);
    env.ok(&["node", "transition", "-w", ws, &done, "--action", "complete", "--conclusion", "c"]);
    page.request(&format!("PATCH {node_path}"), params.clone(), json!({"dependsOn": [done]}));
    env.ok(&["session", "bind", "--session", "s", "--workspace", ws]);
    Agent::claude(env, "s").start("startup");
    let waiting = create(page, "root", "execution", "waiting");
    env.ok(&["node", "depend", "-w", ws, &waiting, "--on", &id]);
    page.get(node_path, json!({"workspaceId": ws, "nodeId": waiting}));
    let start = ["node", "transition", "-w", ws, &id, "--action", "start"];
    env.ok(&[&start[..], &["--session", "s", "--agent", "Explore"]].concat());
    let text = "[a](https://example.org)\n\n2. b\n\n```rust\nc\n```\n";
    let edit = json!({"requirement": text, "note": text, "docs": [{"path": "a", "description": "b", "status": "active"}]});
    page.request(&format!("PATCH {node_path}"), params.clone(), edit);
    page.request(&format!("POST {node_path}/log"), params.clone(), json!({"log": "a line"}));
    let problem = json!({"description": "p", "nextStep": "n"});
    page.request(&format!("PUT {node_path}/problem"), params.clone(), problem);
    page.get(node_path, json!({"workspaceId": ws, "nodeId": id, "render": true}));
    page.get(nodes, json!({"workspaceId": ws, "parentId": "root", "depth": 1, "limit": 1}));
    page.get(nodes, json!({"workspaceId": ws, "conclusions": true}));
    page.get(nodes, json!({"workspaceId": ws, "query": "child line", "texts": true}));
    page.get(nodes, json!({"workspaceId": ws, "ids": format!("{id},{parent}")}));
    let complete = json!({"action": "complete", "conclusion": "done", "force": true});
    page.request(&format!("POST {node_path}/transition"), params.clone(), complete);
    page.expect_conflict(
        &format!("PATCH {node_path}"),
        params.clone(),
        json!({"title": "u"}),
        "OutdatedNode",
    );
    page.get(node_path, params.clone());
    page.request(&format!("DELETE {node_path}/problem"), params, Value::Null);
    let long = make_long_node(env, ws);
    page.get(node_path, json!({"workspaceId": ws, "nodeId": long, "render": true}));
    let extra = create(page, "root", "execution", "extra");
    let params = json!({"workspaceId": ws, "nodeId": extra});
    page.request(&format!("POST {node_path}/move"), params.clone(), json!({"before": parent}));
    page.request(&format!("DELETE {node_path}"), params, Value::Null);
    page.get("/trash", json!({"workspaceId": ws, "limit": 100}));
    let restore = "POST /workspaces/{workspaceId}/restore";
    page.request(restore, json!({"workspaceId": ws}), json!({"nodeId": extra}));
}

/// Creates a node whose texts are all too long to be rendered.
fn make_long_node(env: &TestEnv, ws: &str) -> String {
    let create =
        ["node", "create", "-w", ws, "--type", "execution", "--title", "long", "--requirement", "LONG"];
    let id = env.json(&[&create[..], &["--note", "LONG"]].concat())["nodeId"].as_str().unwrap().to_owned();
    env.ok(&["node", "transition", "-w", ws, &id, "--action", "start"]);
    env.ok(&["node", "transition", "-w", ws, &id, "--action", "complete", "--conclusion", "LONG"]);
    env.ok(&["problem", "-w", ws, "--node", &id, "LONG", "--next-step", "LONG"]);
    env.edit(&env.node_md(ws, &id), |text| text.replace("LONG", &"long ".repeat(60_000)));
    id
}

fn request_workspaces(page: &mut Page<'_>, ws: &str) {
    let path = "/workspaces/{workspaceId}";
    let params = json!({"workspaceId": ws});
    let edit =
        json!({"goal": "g", "rules": ["r"], "docs": [{"path": "a", "description": "b", "status": "active"}]});
    page.request(&format!("PATCH {path}"), params.clone(), edit);
    page.get("/workspaces", json!({"all": true, "limit": 10_000}));
    page.request(&format!("PUT {path}/masking"), params.clone(), json!({"on": false}));
    page.get(path, params.clone());
    let new = json!({"name": "n", "goal": "g", "rules": ["r"]});
    let created = page.request("POST /workspaces", json!({}), new);
    page.expect_conflict(&format!("PATCH {path}"), params, json!({"goal": "x"}), "OutdatedWorkspace");
    let params = json!({"workspaceId": created["workspaceId"]});
    page.request(&format!("POST {path}/archive"), params.clone(), json!({}));
    page.request(&format!("POST {path}/restore"), params.clone(), json!({}));
    page.request(&format!("DELETE {path}"), params, Value::Null);
}

fn request_sessions_and_rules(page: &mut Page<'_>, env: &TestEnv, ws: &str) {
    let rules = json!({"customRules": [
        {"id": "a", "match": {"events": ["prompt_submit"], "platforms": ["claude-code"], "condition": "true"}, "action": {"content": "told"}},
        {"id": "b", "match": {"events": ["unknown"]}, "action": {"content": "x"}},
        {"id": "c", "match": {"events": ["pre_tool_use"]}, "action": {"content": "x"}},
    ]});
    env.make(&env.root().join("home/.tanmi/rules.json"), &rules.to_string());
    let agent = Agent::claude(env, "s");
    agent.start("startup");
    agent.prompt("go on");
    page.get("/bindings", json!({"workspaceId": ws, "live": true}));
    page.get("/sessions", json!({"limit": 1000}));
    page.get("/rules", json!({}));
    page.get("/rules/check", json!({}));
    let body = json!({"sessionId": "s", "event": "session_start", "workspaceId": ws, "nodeId": "root"});
    page.request("POST /rules/explain", json!({}), body);
    let ledger = page.get("/ledger", json!({"limit": 100}));
    page.get("/ledger/days", json!({"since": "2025-12-01"}));
    page.get("/ledger/texts/{digest}", json!({"digest": ledger["entries"][0]["text"]}));
    page.request("DELETE /sessions/{sessionId}/binding", json!({"sessionId": "s"}), Value::Null);
    let bind = json!({"workspaceId": ws, "nodeId": "root"});
    page.request("PUT /sessions/{sessionId}/binding", json!({"sessionId": "s"}), bind);
    request_activity(page, env, ws);
}

/// Makes one node of every kind that the home view shows.
fn request_activity(page: &mut Page<'_>, env: &TestEnv, ws: &str) {
    let node = |title: &str| {
        let created = env.json(&["node", "create", "-w", ws, "--type", "execution", "--title", title]);
        created["nodeId"].as_str().unwrap().to_owned()
    };
    let (runs, fails) = (node("runs"), node("fails"));
    env.ok(&[
        "node",
        "transition",
        "-w",
        ws,
        &runs,
        "--action",
        "start",
        "--session",
        "s",
        "--agent",
        "Explore",
    ]);
    env.ok(&["log", "-w", ws, "--node", &runs, "a line"]);
    env.ok(&["problem", "-w", ws, "--node", &runs, "p", "--next-step", "n"]);
    env.ok(&["node", "transition", "-w", ws, &fails, "--action", "start"]);
    env.ok(&["node", "transition", "-w", ws, &fails, "--action", "fail", "--conclusion", "c"]);
    env.ok(&["memory", "save-fact", "an activity", "--type", "W"]);
    page.get("/now", json!({}));
    page.get("/activity", json!({"limit": 1}));
    page.get("/activity", json!({}));
}

fn request_memory(page: &mut Page<'_>, env: &TestEnv) {
    let turn = |id: &str, text: &str| {
        json!({"id": id, "content": text, "timestamp": "2023-05-08", "session": "t", "speaker": "Ann"})
            .to_string()
    };
    let lines = [turn("t1", "one"), turn("t2", "two"), turn("t3", "three")];
    let file = env.root().join("turns.jsonl");
    env.write(&file, lines.join("\n").as_bytes());
    env.ok(&["memory", "import", &file.display().to_string()]);
    env.ok(&["memory", "save-fact", "a fact", "--type", "W", "--entities", "x,y"]);
    let opinion = json!({"content": "an opinion", "type": "O", "confidence": 0.5});
    page.request("POST /memory", json!({}), opinion);
    let list = page.get("/memory", json!({"limit": 50}));
    let results = list["results"].as_array().unwrap();
    let id = &results.iter().find(|memory| memory["type"] == "W").unwrap()["id"];
    page.request("POST /memory/facts/{id}/forget", json!({"id": id}), json!({}));
    page.request("POST /memory/facts/{id}/restore", json!({"id": id}), json!({}));
    page.request("POST /memory/facts/{id}/promote", json!({"id": id}), json!({}));
    page.request("PATCH /memory/facts/{id}", json!({"id": id}), json!({"content": "another fact"}));
    page.get("/memory/facts/{id}/history", json!({"id": id}));
    page.get("/memory/stats", json!({}));
    page.get("/memory/digests", json!({}));
    env.ok(&["memory", "save-summary", "--topic", "t", "--summary", "s", "--session", "other"]);
    page.get("/memory", json!({"all": true}));
    page.get("/memory", json!({"query": "two"}));
    env.make(&env.project.join("src/gateway.rs"), "x");
    env.make(&env.project.join(".git/HEAD"), &"0".repeat(40));
    for port in ["8080", "9090"] {
        env.ok(&["memory", "save-fact", &format!("The gateway port is {port}"), "--path", "src/gateway.rs"]);
    }
    env.ok(&["memory", "save-fact", "holds in all projects", "--scope", "user"]);
    page.get("/memory", json!({"scope": "user"}));
    let found = page.get("/memory", json!({"query": "gateway port"}));
    assert!(found["results"][1].get("replaced").is_some(), "{found}");
}
