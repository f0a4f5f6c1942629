//! The HTTP API: requests and their responses.

use serde_json::{Value, json};

use super::Server;
use crate::env::TestEnv;

#[test]
fn workspace_lifecycle_works_over_http() {
    let env = TestEnv::new();
    let server = Server::start(&env);
    let good = |method: &str, path: &str, body: Value| server.expect_ok(method, path, body);
    let response = server.send_request(
        "POST",
        "/workspaces",
        &[],
        &json!({"name": "Auth", "goal": "JWT", "rules": ["Test it"]}),
    );
    assert_eq!(response.status, 201);
    let ws = response.json()["workspaceId"].as_str().unwrap().to_owned();
    let at = format!("/workspaces/{ws}");

    // The API does not require the rules hash, but refuses a wrong one.
    let plan = good(
        "POST",
        &format!("{at}/nodes"),
        json!({"type": "planning", "title": "设计", "requirement": "x", "parentId": "root"}),
    );
    let plan = plan["nodeId"].as_str().unwrap().to_owned();
    let task = good(
        "POST",
        &format!("{at}/nodes"),
        json!({"type": "execution", "title": "Check <b>", "requirement": "**bold**", "parentId": plan}),
    );
    let task = task["nodeId"].as_str().unwrap().to_owned();
    let wrong =
        json!({"type": "execution", "title": "t", "requirement": "r", "parentId": "root", "rulesHash": "0"});
    assert_eq!(
        server.expect_error("POST", &format!("{at}/nodes"), wrong, 409)["code"],
        "RULES_HASH_MISMATCH"
    );

    // The offered actions are the ones that are accepted.
    let view = good("GET", &format!("{at}/nodes/{task}?render=true"), Value::Null);
    assert_eq!(view["actions"], json!([{"action": "start", "to": "implementing", "needsConclusion": false}]));
    assert_eq!(view["rendered"]["requirement"], json!([["p", ["strong", "bold"]]]));
    assert_eq!(view["ancestors"].as_array().unwrap().len(), 2);
    let transition = format!("{at}/nodes/{task}/transition");
    assert_eq!(
        server.expect_error("POST", &transition, json!({"action": "complete"}), 409)["code"],
        "INVALID_TRANSITION"
    );
    good("POST", &transition, json!({"action": "start"}));
    assert_eq!(
        server.expect_error("POST", &transition, json!({"action": "complete"}), 400)["code"],
        "CONCLUSION_REQUIRED"
    );
    good("POST", &format!("{at}/nodes/{task}/log"), json!({"log": "half of it"}));
    good("PUT", &format!("{at}/nodes/{task}/problem"), json!({"description": "skew"}));
    assert_eq!(
        good("GET", &format!("{at}/nodes/{task}/problem"), Value::Null)["problem"]["description"],
        "skew"
    );
    good("DELETE", &format!("{at}/nodes/{task}/problem"), Value::Null);
    good("POST", &transition, json!({"action": "complete", "conclusion": "it holds"}));
    let log = good("GET", &format!("{at}/nodes/{task}/log?limit=1"), Value::Null);
    assert_eq!((log["total"].as_u64(), log["entries"].as_array().unwrap().len()), (Some(4), 1));
    assert_eq!(env.status(&task), "completed");

    // Pages, filters, search.
    let list = |query: &str| {
        let page = good("GET", &format!("{at}/nodes?{query}"), Value::Null);
        let ids: Vec<String> = page["nodes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["id"].as_str().unwrap().to_owned())
            .collect();
        (ids, page["nextAfter"].as_str().map(String::from))
    };
    assert_eq!(list("limit=1"), (vec!["root".into()], Some("root".into())));
    assert_eq!(list("limit=2&after=root").0, [plan.clone(), task.clone()]);
    assert_eq!(list("status=completed,failed").0, std::slice::from_ref(&task));
    assert_eq!(list("query=%E8%AE%BE%E8%AE%A1").0, std::slice::from_ref(&plan));
    assert_eq!(list("query=check+%3CB").0, std::slice::from_ref(&task));
    assert_eq!(list(&format!("ids={task},node-none-000000")).0, std::slice::from_ref(&task));

    let context = good("GET", &format!("{at}/context?nodeId={plan}"), Value::Null);
    assert!(context.to_string().contains("it holds"), "{context}");
    assert_eq!(good("GET", "/workspaces?all=true", Value::Null)["workspaces"][0]["progress"]["done"], 1);
    good("POST", &format!("{at}/archive"), json!({}));
    assert_eq!(server.expect_error("PATCH", &at, json!({"goal": "x"}), 409)["code"], "WORKSPACE_ARCHIVED");
    good("POST", &format!("{at}/restore"), json!({}));
    good("DELETE", &at, Value::Null);
    assert_eq!(server.expect_error("GET", &at, Value::Null, 404)["code"], "WORKSPACE_NOT_FOUND");
}

#[test]
fn stale_version_is_refused_with_current_state() {
    let env = TestEnv::new();
    let ws = env.init();
    let node = env.node("root", "execution", "t");
    let server = Server::start(&env);
    let path = format!("/workspaces/{ws}/nodes/{node}");
    let current = server.send_request("GET", &path, &[], &Value::Null);
    let version = current.header("etag").unwrap().to_owned();
    assert_eq!(version, format!("\"{}\"", current.json()["version"].as_str().unwrap()));

    // A log entry and a transition do not change the version of the node's content.
    env.ok(&["node", "transition", &node, "--action", "start"]);
    env.ok(&["log", "--node", &node, "an agent's line"]);
    let first_edit = server.send_request("PATCH", &path, &[("If-Match", &version)], &json!({"note": "mine"}));
    assert_eq!(first_edit.status, 200, "{}", first_edit.body);

    // An edit over HTTP, by another process or by an editor does.
    let other_edits: [&dyn Fn(); 3] = [
        &|| drop(server.expect_ok("PATCH", &path, json!({"note": "over HTTP"}))),
        &|| drop(env.ok(&["node", "update", &node, "--note", "by a command"])),
        &|| env.edit(&env.node_md(&ws, &node), |text| text.replace("by a command", "by hand")),
    ];
    for (other_edit, note) in other_edits.iter().zip(["over HTTP", "by a command", "by hand"]) {
        let version = server.send_request("GET", &path, &[], &Value::Null).header("etag").unwrap().to_owned();
        other_edit();
        let late =
            server.send_request("PATCH", &path, &[("If-Match", &version)], &json!({"note": "too late"}));
        assert_eq!(late.status, 412, "{}", late.body);
        let error = late.json()["error"].clone();
        assert_eq!(
            (&error["code"], &error["details"]["current"]["note"]),
            (&json!("OUTDATED"), &json!(note))
        );
        assert_eq!(env.json(&["node", "show", &node])["node"]["note"], note);
        // With the current version, the edit is accepted.
        let now = format!("\"{}\"", error["details"]["version"].as_str().unwrap());
        let again = server.send_request("PATCH", &path, &[("If-Match", &now)], &json!({"title": "mine"}));
        assert_eq!(again.status, 200, "{}", again.body);
        // The response has the version for the next edit; one matching version of several is enough.
        let next = format!("\"old\", {}", again.header("etag").unwrap());
        let next =
            server.send_request("PATCH", &path, &[("If-Match", &next)], &json!({"title": "mine again"}));
        assert_eq!(next.status, 200, "{}", next.body);
    }

    // Of concurrent edits with the same version, one succeeds.
    let version = server.send_request("GET", &path, &[], &Value::Null).header("etag").unwrap().to_owned();
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let (server, path, version) = (&server, &path, &version);
        let edit = |n: usize| {
            move || {
                server
                    .send_request("PATCH", path, &[("If-Match", version)], &json!({"note": format!("{n}")}))
                    .status
            }
        };
        let handles: Vec<_> = (0..16).map(|n| scope.spawn(edit(n))).collect();
        handles.into_iter().map(|handle| handle.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 412).count(), 15, "{statuses:?}");

    let path = format!("/workspaces/{ws}");
    let version = server.send_request("GET", &path, &[], &Value::Null).header("etag").unwrap().to_owned();
    env.ok(&["workspace", "update", &ws, "--add-rule", "theirs"]);
    let late = server.send_request("PATCH", &path, &[("If-Match", &version)], &json!({"rules": ["mine"]}));
    assert_eq!(
        (late.status, &late.json()["error"]["details"]["current"]["rules"]),
        (412, &json!(["theirs"]))
    );
}

#[test]
fn events_are_decided_and_recorded() {
    let env = TestEnv::new();
    let ws = env.init();
    let server = Server::start(&env);
    assert_eq!(server.expect_ok("GET", "/bindings", Value::Null)["total"], 0);
    server.expect_ok("PUT", "/sessions/s-1/binding", json!({"workspaceId": ws}));
    let bound = server.expect_ok("GET", &format!("/bindings?workspaceId={ws}"), Value::Null);
    assert_eq!(bound["bindings"][0]["sessionId"], "s-1");

    // `rules/explain` shows the text and changes nothing; the event injects it once.
    let explained =
        server.expect_ok("POST", "/rules/explain", json!({"sessionId": "s-1", "event": "session_start"}));
    assert!(explained["text"].as_str().unwrap().contains("JWT"), "{explained}");
    let event = json!({"source": "api", "platform": "api", "event": "session_start", "sessionId": "s-1", "payload": {}});
    let decision = server.expect_ok("POST", "/events", event);
    assert_eq!(decision["shouldRespond"], true);
    assert!(decision["text"].as_str().unwrap().contains("JWT"), "{decision}");
    let prompt = |text: &str| {
        let event = json!({"event": "prompt_submit", "sessionId": "s-1", "payload": {"prompt": text}});
        server.expect_ok("POST", "/events", event)
    };
    assert_eq!(prompt("go on")["shouldRespond"], false, "nothing has changed");

    // A workspace rule changed on the page is injected at the next prompt.
    server.expect_ok("PATCH", &format!("/workspaces/{ws}"), json!({"rules": ["Only tested code"]}));
    let decision = prompt("go on");
    assert!(decision["text"].as_str().unwrap().contains("Only tested code"), "{decision}");
    assert_eq!(prompt("go on")["shouldRespond"], false, "injected once");

    let ledger = server.expect_ok("GET", "/ledger?event=session_start", Value::Null);
    assert_eq!(ledger["entries"].as_array().unwrap().len(), 1);
    let digest = ledger["entries"][0]["text"].as_str().unwrap().to_owned();
    let text = server.expect_ok("GET", &format!("/ledger/texts/{digest}"), Value::Null);
    assert!(text["content"].as_str().unwrap().contains("JWT"));
    let days = server.expect_ok("GET", "/ledger/days", Value::Null);
    assert_eq!(days["days"][0]["decisions"], 2);
    assert!(server.expect_ok("GET", "/rules", Value::Null)["total"].as_u64().unwrap() > 5);
    server.expect_ok("DELETE", "/sessions/s-1/binding", Value::Null);
    assert_eq!(server.expect_ok("GET", "/sessions/s-1", Value::Null)["bound"], false);
    // Reading a session does not count as its activity and writes no state.
    let states = || std::fs::read_dir(env.home_store().join("state")).unwrap().count();
    let before = states();
    server.expect_ok("GET", "/sessions/never-seen", Value::Null);
    assert_eq!(states(), before);
    // The session id is required.
    assert_eq!(server.expect_error("POST", "/events", json!({"event": "stop"}), 400)["field"], "sessionId");
}

#[test]
fn event_with_reminder_answer_has_one_throttle_and_last_reminder() {
    let env = TestEnv::new();
    let ws = env.init();
    let task = env.node("root", "execution", "Work");
    env.ok(&["node", "transition", &task, "--action", "start"]);
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws, "--node", &task]);
    env.tick(61_000);
    let server = Server::start(&env);
    let raise = |event: &str| {
        server.expect_ok(
            "POST",
            "/events",
            json!({"event": event, "sessionId": "s", "payload": {"prompt": "go"}}),
        )
    };
    let start = raise("session_start");
    assert_eq!((start.get("throttle"), start.get("lastReminder")), (None, None), "{start}");
    let prompt = raise("prompt_submit");
    assert_eq!(prompt["throttle"]["key"], "no_log_start", "{prompt}");
    assert_eq!(prompt["throttle"]["ttl"], 180_000);
    let last = json!({"type": "no_log_start", "time": crate::env::NOW + 61_000});
    assert_eq!(prompt["lastReminder"], last);
    let state = std::fs::read_to_string(env.home_store().join("state/s.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&state).unwrap()["lastReminder"], last);
    // An open problem is never throttled.
    env.ok(&["problem", "--node", &task, "stuck"]);
    let problem = raise("prompt_submit");
    assert_eq!(
        (problem.get("throttle"), &problem["lastReminder"]["type"]),
        (None, &json!("problem")),
        "{problem}"
    );
}

#[test]
fn memory_is_separate_per_project() {
    let env = TestEnv::new();
    env.init();
    let other = env.root().join("other");
    std::fs::create_dir(&other).unwrap();
    assert!(env.run_in(&other, &["workspace", "init", "--name", "Other", "--goal", "g"]).ok);
    let server = Server::start(&env);
    let saved = server.expect_ok("POST", "/memory", json!({"content": "令牌有效期是 24 小时", "type": "B"}));
    let id = saved["id"].as_str().unwrap().to_owned();
    let find = |query: &str| server.expect_ok("GET", &format!("/memory?query={query}"), Value::Null);
    assert_eq!(find("%E4%BB%A4%E7%89%8C")["results"][0]["id"], json!(id));
    let edited =
        server.expect_ok("PATCH", &format!("/memory/facts/{id}"), json!({"content": "令牌有效期是 12 小时"}));
    let new = edited["id"].as_str().unwrap().to_owned();
    let stale =
        server.expect_error("PATCH", &format!("/memory/facts/{id}"), json!({"content": "again"}), 409);
    assert_eq!(stale["code"], "NOT_CURRENT");
    server.expect_ok("POST", &format!("/memory/facts/{new}/forget"), json!({}));
    assert_eq!(find("%E4%BB%A4%E7%89%8C")["results"], json!([]));
    server.expect_ok("POST", &format!("/memory/facts/{new}/restore"), json!({}));
    assert_eq!(server.expect_ok("GET", "/memory?type=B&limit=5", Value::Null)["total"], 1);

    let project = format!("project={}", other.display());
    server.expect_ok("POST", &format!("/memory?{project}"), json!({"content": "elsewhere", "type": "W"}));
    let found = server.expect_ok("GET", &format!("/memory?{project}"), Value::Null);
    assert_eq!(found["results"][0]["content"], "elsewhere");
    assert_eq!(server.expect_ok("GET", "/memory?type=W", Value::Null)["total"], 0);
    // A folder that is not a known project is refused.
    let unknown =
        server.expect_error("GET", &format!("/memory?project={}", env.root().display()), Value::Null, 404);
    assert_eq!(unknown["code"], "PROJECT_NOT_FOUND");
}

#[test]
fn invalid_date_is_refused() {
    let env = TestEnv::new();
    env.init();
    let server = Server::start(&env);
    let response = server.send_request("GET", "/ledger?since=nonsense", &[], &Value::Null);
    assert_eq!(
        (response.status, &response.json()["error"]["field"]),
        (400, &json!("since")),
        "{}",
        response.body
    );
}

#[test]
fn error_language_follows_accept_language() {
    let env = TestEnv::new();
    env.init();
    let server = Server::start(&env);
    for (language, expected) in [("zh-CN,zh;q=0.9", "找不到工作区"), ("fr, en", "not found")] {
        let response =
            server.send_request("GET", "/workspaces/ws-none", &[("Accept-Language", language)], &Value::Null);
        assert_eq!(response.status, 404);
        assert!(
            response.json()["error"]["message"].as_str().unwrap().contains(expected),
            "{}",
            response.body
        );
    }
}
