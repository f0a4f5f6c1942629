//! What can be asked, and what comes back.

use serde_json::{Value, json};

use super::Server;
use crate::env::TestEnv;

#[test]
fn workspace_lifecycle_works_over_http() {
    let env = TestEnv::new();
    let server = Server::start(&env);
    let good = |method: &str, path: &str, body: Value| server.good(method, path, body);
    let answer =
        server.ask("POST", "/workspaces", &[], &json!({"name": "Auth", "goal": "JWT", "rules": ["Test it"]}));
    assert_eq!(answer.status, 201);
    let ws = answer.json()["workspaceId"].as_str().unwrap().to_owned();
    let at = format!("/workspaces/{ws}");

    // A person need not show that they know the rules; a wrong hash is refused all the same.
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
    assert_eq!(server.bad("POST", &format!("{at}/nodes"), wrong, 409)["code"], "RULES_HASH_MISMATCH");

    // The steps that are offered are the ones that work.
    let view = good("GET", &format!("{at}/nodes/{task}?render=true"), Value::Null);
    assert_eq!(view["actions"], json!([{"action": "start", "to": "implementing", "needsConclusion": false}]));
    assert_eq!(view["rendered"]["requirement"], json!([["p", ["strong", "bold"]]]));
    assert_eq!(view["ancestors"].as_array().unwrap().len(), 2);
    let step = format!("{at}/nodes/{task}/transition");
    assert_eq!(server.bad("POST", &step, json!({"action": "complete"}), 409)["code"], "INVALID_TRANSITION");
    good("POST", &step, json!({"action": "start"}));
    assert_eq!(server.bad("POST", &step, json!({"action": "complete"}), 400)["code"], "CONCLUSION_REQUIRED");
    good("POST", &format!("{at}/nodes/{task}/log"), json!({"log": "half of it"}));
    good("PUT", &format!("{at}/nodes/{task}/problem"), json!({"description": "skew"}));
    assert_eq!(
        good("GET", &format!("{at}/nodes/{task}/problem"), Value::Null)["problem"]["description"],
        "skew"
    );
    good("DELETE", &format!("{at}/nodes/{task}/problem"), Value::Null);
    good("POST", &step, json!({"action": "complete", "conclusion": "it holds"}));
    let log = good("GET", &format!("{at}/nodes/{task}/log?limit=1"), Value::Null);
    assert_eq!((log["total"].as_u64(), log["entries"].as_array().unwrap().len()), (Some(3), 1));
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
    assert_eq!(server.bad("PATCH", &at, json!({"goal": "x"}), 409)["code"], "WORKSPACE_ARCHIVED");
    good("POST", &format!("{at}/restore"), json!({}));
    good("DELETE", &at, Value::Null);
    assert_eq!(server.bad("GET", &at, Value::Null, 404)["code"], "WORKSPACE_NOT_FOUND");
}

#[test]
fn stale_version_is_refused_with_current_state() {
    let env = TestEnv::new();
    let ws = env.init();
    let node = env.node("root", "execution", "t");
    let server = Server::start(&env);
    let path = format!("/workspaces/{ws}/nodes/{node}");
    let seen = server.ask("GET", &path, &[], &Value::Null);
    let version = seen.header("etag").unwrap().to_owned();
    assert_eq!(version, format!("\"{}\"", seen.json()["version"].as_str().unwrap()));

    // A line in the log and a step are no edit: they are no reason to refuse one.
    env.ok(&["node", "transition", &node, "--action", "start"]);
    env.ok(&["log", "--node", &node, "an agent's line"]);
    let mine = server.ask("PATCH", &path, &[("If-Match", &version)], &json!({"note": "mine"}));
    assert_eq!(mine.status, 200, "{}", mine.body);

    // Somebody else's edit is, whether it came over HTTP, from another process, or from an editor.
    let theirs: [&dyn Fn(); 3] = [
        &|| drop(server.good("PATCH", &path, json!({"note": "over HTTP"}))),
        &|| drop(env.ok(&["node", "update", &node, "--note", "by a command"])),
        &|| env.edit(&env.node_md(&ws, &node), |text| text.replace("by a command", "by hand")),
    ];
    for (their, note) in theirs.iter().zip(["over HTTP", "by a command", "by hand"]) {
        let version = server.ask("GET", &path, &[], &Value::Null).header("etag").unwrap().to_owned();
        their();
        let late = server.ask("PATCH", &path, &[("If-Match", &version)], &json!({"note": "too late"}));
        assert_eq!(late.status, 412, "{}", late.body);
        let error = late.json()["error"].clone();
        assert_eq!(
            (&error["code"], &error["details"]["current"]["note"]),
            (&json!("OUTDATED"), &json!(note))
        );
        assert_eq!(env.json(&["node", "show", &node])["node"]["note"], note);
        // With what it is now, it goes through.
        let now = format!("\"{}\"", error["details"]["version"].as_str().unwrap());
        let again = server.ask("PATCH", &path, &[("If-Match", &now)], &json!({"title": "mine"}));
        assert_eq!(again.status, 200, "{}", again.body);
        // And the answer is where the next edit begins; one of several versions is enough.
        let next = format!("\"old\", {}", again.header("etag").unwrap());
        let next = server.ask("PATCH", &path, &[("If-Match", &next)], &json!({"title": "mine again"}));
        assert_eq!(next.status, 200, "{}", next.body);
    }

    // Many at once, all with the same version: one of them wins.
    let version = server.ask("GET", &path, &[], &Value::Null).header("etag").unwrap().to_owned();
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let (server, path, version) = (&server, &path, &version);
        let ask = |n: usize| {
            move || {
                server.ask("PATCH", path, &[("If-Match", version)], &json!({"note": format!("{n}")})).status
            }
        };
        let handles: Vec<_> = (0..16).map(|n| scope.spawn(ask(n))).collect();
        handles.into_iter().map(|handle| handle.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 412).count(), 15, "{statuses:?}");

    let path = format!("/workspaces/{ws}");
    let version = server.ask("GET", &path, &[], &Value::Null).header("etag").unwrap().to_owned();
    env.ok(&["workspace", "update", &ws, "--add-rule", "theirs"]);
    let late = server.ask("PATCH", &path, &[("If-Match", &version)], &json!({"rules": ["mine"]}));
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
    assert_eq!(server.good("GET", "/bindings", Value::Null)["total"], 0);
    server.good("PUT", "/sessions/s-1/binding", json!({"workspaceId": ws}));
    let bound = server.good("GET", &format!("/bindings?workspaceId={ws}"), Value::Null);
    assert_eq!(bound["bindings"][0]["sessionId"], "s-1");

    // Explaining says what would be said and changes nothing; the event itself says it, once.
    let explained =
        server.good("POST", "/rules/explain", json!({"sessionId": "s-1", "event": "session_start"}));
    assert!(explained["text"].as_str().unwrap().contains("JWT"), "{explained}");
    let event = json!({"source": "api", "platform": "api", "event": "session_start", "sessionId": "s-1", "payload": {}});
    let decision = server.good("POST", "/events", event);
    assert_eq!(decision["shouldRespond"], true);
    assert!(decision["text"].as_str().unwrap().contains("JWT"), "{decision}");
    let prompt = |text: &str| {
        let event = json!({"event": "prompt_submit", "sessionId": "s-1", "payload": {"prompt": text}});
        server.good("POST", "/events", event)
    };
    assert_eq!(prompt("go on")["shouldRespond"], false, "nothing is new");

    // A rule that a person changes on the page is news to the session at its next prompt.
    server.good("PATCH", &format!("/workspaces/{ws}"), json!({"rules": ["Only tested code"]}));
    let told = prompt("go on");
    assert!(told["text"].as_str().unwrap().contains("Only tested code"), "{told}");
    assert_eq!(prompt("go on")["shouldRespond"], false, "told once");

    let ledger = server.good("GET", "/ledger?event=session_start", Value::Null);
    assert_eq!(ledger["entries"].as_array().unwrap().len(), 1);
    let digest = ledger["entries"][0]["text"].as_str().unwrap().to_owned();
    let said = server.good("GET", &format!("/ledger/texts/{digest}"), Value::Null);
    assert!(said["content"].as_str().unwrap().contains("JWT"));
    let days = server.good("GET", "/ledger/days", Value::Null);
    assert_eq!(days["days"][0]["decisions"], 2);
    assert!(server.good("GET", "/rules", Value::Null)["total"].as_u64().unwrap() > 5);
    server.good("DELETE", "/sessions/s-1/binding", Value::Null);
    assert_eq!(server.good("GET", "/sessions/s-1", Value::Null)["bound"], false);
    // Looking at a session is no sign of life of it, and leaves nothing behind.
    let states = || std::fs::read_dir(env.home_store().join("state")).unwrap().count();
    let before = states();
    server.good("GET", "/sessions/never-seen", Value::Null);
    assert_eq!(states(), before);
    // Nobody's session is guessed.
    assert_eq!(server.bad("POST", "/events", json!({"event": "stop"}), 400)["field"], "sessionId");
}

#[test]
fn memory_is_separate_per_project() {
    let env = TestEnv::new();
    env.init();
    let other = env.root().join("other");
    std::fs::create_dir(&other).unwrap();
    assert!(env.run_in(&other, &["workspace", "init", "--name", "Other", "--goal", "g"]).ok);
    let server = Server::start(&env);
    let saved = server.good("POST", "/memory", json!({"content": "令牌有效期是 24 小时", "type": "B"}));
    let id = saved["id"].as_str().unwrap().to_owned();
    let find = |query: &str| server.good("GET", &format!("/memory?query={query}"), Value::Null);
    assert_eq!(find("%E4%BB%A4%E7%89%8C")["results"][0]["id"], json!(id));
    let edited =
        server.good("PATCH", &format!("/memory/facts/{id}"), json!({"content": "令牌有效期是 12 小时"}));
    let new = edited["id"].as_str().unwrap().to_owned();
    let stale = server.bad("PATCH", &format!("/memory/facts/{id}"), json!({"content": "again"}), 409);
    assert_eq!(stale["code"], "NOT_CURRENT");
    server.good("POST", &format!("/memory/facts/{new}/forget"), json!({}));
    assert_eq!(find("%E4%BB%A4%E7%89%8C")["results"], json!([]));
    server.good("POST", &format!("/memory/facts/{new}/restore"), json!({}));
    assert_eq!(server.good("GET", "/memory?type=B&limit=5", Value::Null)["total"], 1);

    let project = format!("project={}", other.display());
    server.good("POST", &format!("/memory?{project}"), json!({"content": "elsewhere", "type": "W"}));
    let there = server.good("GET", &format!("/memory?{project}"), Value::Null);
    assert_eq!(there["results"][0]["content"], "elsewhere");
    assert_eq!(server.good("GET", "/memory?type=W", Value::Null)["total"], 0);
    // A folder that nobody here knows is none of its business.
    let unknown = server.bad("GET", &format!("/memory?project={}", env.root().display()), Value::Null, 404);
    assert_eq!(unknown["code"], "PROJECT_NOT_FOUND");
}

#[test]
fn invalid_date_is_refused() {
    let env = TestEnv::new();
    env.init();
    let server = Server::start(&env);
    let answer = server.ask("GET", "/ledger?since=nonsense", &[], &Value::Null);
    assert_eq!((answer.status, &answer.json()["error"]["field"]), (400, &json!("since")), "{}", answer.body);
}

#[test]
fn error_language_follows_accept_language() {
    let env = TestEnv::new();
    env.init();
    let server = Server::start(&env);
    for (language, expected) in [("zh-CN,zh;q=0.9", "找不到工作区"), ("fr, en", "not found")] {
        let answer = server.ask("GET", "/workspaces/ws-none", &[("Accept-Language", language)], &Value::Null);
        assert_eq!(answer.status, 404);
        assert!(answer.json()["error"]["message"].as_str().unwrap().contains(expected), "{}", answer.body);
    }
}
