//! `GET /now` and `GET /activity`: what happens and what happened, derived from files that other processes write.

use serde_json::{Value, json};

use super::Server;
use crate::agent::Agent;
use crate::env::TestEnv;
use crate::example;

/// Returns the entries of the first page, each as its kind and its title or text.
fn entries(server: &Server, query: &str) -> Vec<(String, String)> {
    let page = server.expect_ok("GET", &format!("/activity?{query}"), Value::Null);
    let text = |entry: &Value, key: &str| entry[key].as_str().unwrap_or_default().to_owned();
    let entry =
        |entry: &Value| (text(entry, "kind"), format!("{}/{}", text(entry, "title"), text(entry, "text")));
    page["entries"].as_array().unwrap().iter().map(entry).collect()
}

fn has(list: &[(String, String)], kind: &str, text: &str) -> bool {
    list.iter().any(|(known, shown)| known == kind && shown.contains(text))
}

#[test]
fn activity_merges_steps_logs_problems_facts_bindings_and_injections() {
    let env = TestEnv::new();
    let ws = env.init();
    let task = env.node("root", "execution", "task");
    env.ok(&["session", "bind", "--session", "session-one", "--workspace", &ws, "--node", &task]);
    Agent::claude(&env, "session-one").start("startup");
    env.tick(1000);
    example::in_agent_shell(&env, "session-one", &["node", "transition", &task, "--action", "start"]);
    env.tick(1000);
    example::in_agent_shell(&env, "session-one", &["log", "--node", &task, "half done"]);
    env.ok(&["problem", "--node", &task, "skew", "--next-step", "wait"]);
    env.ok(&["memory", "save-fact", "clocks differ", "--type", "W"]);
    let server = Server::start(&env);
    let all = entries(&server, "");
    for (kind, text) in [
        ("step", "task/"),
        ("log", "task/half done"),
        ("created", "Auth/"),
        ("created", "task/"),
        ("problem", "task/skew"),
        ("fact", "/clocks differ"),
        ("session", "/"),
        ("injection", "/"),
    ] {
        assert!(has(&all, kind, text), "{kind} {text}: {all:?}");
    }
    // Filters.
    assert!(entries(&server, "kind=step,log").iter().all(|(kind, _)| kind == "step" || kind == "log"));
    let of_node = entries(&server, &format!("nodeId={task}"));
    assert!(has(&of_node, "injection", "") && !has(&of_node, "fact", ""), "{of_node:?}");
    let of_session = entries(&server, "sessionId=session-one");
    assert!(has(&of_session, "injection", "") && has(&of_session, "session", ""), "{of_session:?}");
    assert!(has(&of_session, "step", "task"), "the holder of the node: {of_session:?}");
    assert_eq!(entries(&server, "sessionId=unknown-session"), []);
    assert_eq!(entries(&server, "project=/elsewhere"), []);
    let error = server.expect_error("GET", "/activity?before=x", Value::Null, 400);
    assert!(error["message"].as_str().unwrap().contains("nextBefore"), "{error}");
}

#[test]
fn activity_has_rule_changes_and_cleared_problems() {
    let env = TestEnv::new();
    let ws = env.init();
    let task = env.node("root", "execution", "task");
    env.ok(&["session", "bind", "--session", "session-one", "--workspace", &ws, "--node", &task]);
    env.ok(&["workspace", "update", &ws, "--add-rule", "No secrets"]);
    env.ok(&["problem", "--node", &task, "skew", "--next-step", "wait"]);
    example::in_agent_shell(&env, "session-one", &["problem", "--node", &task, "--clear"]);
    let server = Server::start(&env);
    let all = entries(&server, "");
    assert!(has(&all, "rule", "Auth/added “No secrets”"), "{all:?}");
    assert!(has(&all, "cleared", "task/skew") && !has(&all, "problem", ""), "{all:?}");
    assert!(
        has(&entries(&server, "sessionId=session-one"), "cleared", "skew"),
        "the session that cleared it"
    );
    assert_eq!(entries(&server, "kind=rule,created").len(), 3);
}

#[test]
fn activity_pages_by_cursor_return_every_entry_once() {
    let env = TestEnv::new();
    env.init();
    let server = Server::start(&env);
    example::append_ledger(
        &env,
        crate::env::NOW,
        (0..95).map(|n| json!({"at": crate::env::NOW - n / 3, "session": "s"}).to_string()),
    );
    let (mut seen, mut before, mut total) = (std::collections::BTreeSet::new(), String::new(), None);
    loop {
        let page =
            server.expect_ok("GET", &format!("/activity?kind=injection&limit=10{before}"), Value::Null);
        total = total.or(page["total"].as_u64());
        for entry in page["entries"].as_array().unwrap() {
            assert!(seen.insert(entry["id"].as_str().unwrap().to_owned()), "{entry} occurs twice");
        }
        let Some(next) = page["nextBefore"].as_str() else { break };
        before = format!("&before={next}");
    }
    assert_eq!((seen.len(), total), (95, Some(95)));
}

#[test]
fn activity_index_deleted_at_any_time_comes_back() {
    let env = TestEnv::new();
    env.init();
    env.node("root", "execution", "task");
    env.ok(&["log", "--node", "root", "a line"]);
    let server = Server::start(&env);
    let before = entries(&server, "");
    let index = env.home_store().join("activity.sqlite");
    std::fs::remove_file(&index).unwrap();
    assert_eq!(entries(&server, ""), before, "deleted while the server runs");
    env.ok(&["log", "--node", "root", "another line"]);
    let after = entries(&server, "");
    assert_eq!(after.len(), before.len() + 1, "{after:?}");
    server.kill();
    env.write(&index, b"not an index");
    let server = Server::start(&env);
    assert_eq!(entries(&server, "").len(), after.len(), "damaged while no server runs");
}

#[test]
fn activity_follows_hand_edits_renames_and_deletions() {
    let env = TestEnv::new();
    let ws = env.init();
    let task = env.node("root", "execution", "before");
    env.ok(&["log", "--node", &task, "first"]);
    let server = Server::start(&env);
    assert!(has(&entries(&server, ""), "log", "before/first"));
    env.edit(&env.node_md(&ws, &task), |text| {
        text.replace("title: before", "title: after").replace("first", "by hand")
    });
    let edited = entries(&server, "");
    assert!(has(&edited, "log", "after/by hand") && !has(&edited, "log", "first"), "{edited:?}");
    env.ok(&["node", "delete", &task]);
    assert_eq!(entries(&server, &format!("nodeId={task}")), []);
    env.ok(&["workspace", "delete", &ws, "--yes"]);
    assert_eq!(entries(&server, ""), []);
}

#[test]
fn activity_leaves_out_memory_of_untrusted_project_until_the_user_agrees() {
    let env = TestEnv::new();
    env.init();
    env.ok(&["memory", "save-fact", "came with the clone", "--type", "W"]);
    let server = Server::start(&env);
    let has_fact = || has(&entries(&server, ""), "fact", "came with the clone");
    assert!(has_fact());
    std::fs::remove_file(env.home_store().join("trust.json")).unwrap();
    assert!(!has_fact());
    env.ok(&["trust", "--yes"]);
    assert!(has_fact());
}

#[test]
fn now_lists_work_that_runs_waits_and_is_done() {
    let env = TestEnv::new();
    let example = example::fill(&env);
    let server = Server::start(&env);
    let now = server.expect_ok("GET", "/now", Value::Null);
    let ws = &now["projects"][0]["workspaces"][0];
    let titles = |key: &str| -> Vec<String> {
        let nodes = ws[key]["nodes"].as_array().unwrap();
        nodes.iter().map(|node| node["title"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(titles("running"), ["迁移订单模型", "3-D Secure flow", "Alert on double charge"]);
    assert_eq!(titles("problems"), ["Alert on double charge"]);
    assert_eq!(titles("failed"), ["Retry failed refunds"]);
    assert_eq!(titles("completed"), ["Checkout form", "Card adapter"], "those of earlier days are left out");
    assert_eq!(ws["planWaits"], false, "{ws}");
    let running = &ws["running"]["nodes"][1];
    assert_eq!(
        (&running["holder"], &running["lastLog"]["text"]),
        (&json!(example.sessions[0]), &json!("signature verified, writing the callback test"))
    );
    let sessions = now["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), 4, "those that were active in the last day: {now}");
    let unbound = sessions.iter().find(|line| line["sessionId"] == json!(example.sessions[5])).unwrap();
    assert_eq!((&unbound["client"], &unbound["workspaceId"]), (&json!("Claude Code"), &Value::Null));
    // The steps of a finished node name the session that made them.
    let card = example.node("Card adapter");
    let page = server.expect_ok("GET", &format!("/activity?kind=step&nodeId={card}"), Value::Null);
    let by: Vec<&Value> =
        page["entries"].as_array().unwrap().iter().map(|entry| &entry["sessionId"]).collect();
    assert_eq!(by, [&json!(example.sessions[0]); 2], "{page}");
}

#[test]
fn now_new_plan_waits_for_the_user_until_a_node_starts() {
    let env = TestEnv::new();
    env.init();
    let plan = env.node("root", "planning", "plan");
    let task = env.node(&plan, "execution", "task");
    let server = Server::start(&env);
    let waits = || {
        let now = server.expect_ok("GET", "/now", Value::Null);
        now["projects"][0]["workspaces"][0]["planWaits"].clone()
    };
    assert_eq!(waits(), true);
    env.ok(&["node", "transition", &task, "--action", "start"]);
    assert_eq!(waits(), false);
}

#[test]
fn ledger_filters_by_rule_and_node_and_sums_both() {
    let env = TestEnv::new();
    let example = example::fill(&env);
    let server = Server::start(&env);
    let all = server.expect_ok("GET", "/ledger?limit=1", Value::Null);
    let (rule, of_rule) = all["rules"].as_object().unwrap().iter().next().unwrap();
    let filtered = server.expect_ok("GET", &format!("/ledger?limit=1&rule={rule}"), Value::Null);
    assert_eq!(&filtered["total"], of_rule);
    let node = example.node("3-D Secure flow");
    let ws = &example.workspace;
    let of_node =
        server.expect_ok("GET", &format!("/ledger?workspaceId={ws}&nodeId={node}&limit=1000"), Value::Null);
    let totals = all["nodes"].as_array().unwrap().iter().find(|line| line["nodeId"] == node).unwrap();
    assert_eq!((&totals["workspaceId"], &totals["tokens"]), (&json!(ws), &of_node["total"]["tokens"]));
    assert!(of_node["entries"].as_array().unwrap().iter().all(|entry| entry["node"] == node), "{of_node}");
    let hooks = of_node["entries"]
        .as_array()
        .unwrap()
        .iter()
        .any(|entry| entry["bytes"] != 0 && entry["text"] != "0123456789abcdef0123456789abcdef");
    assert!(hooks, "a hook records the focused node: {of_node}");
    let days = server.expect_ok("GET", &format!("/ledger/days?nodeId={node}&since=2025-12-01"), Value::Null);
    let sum: u64 = days["days"].as_array().unwrap().iter().map(|day| day["tokens"].as_u64().unwrap()).sum();
    assert_eq!(json!(sum), of_node["total"]["tokens"]);
}
