//! The tools: a session as a snapshot, valid input and invalid input.

use std::collections::BTreeSet;

use super::*;

/// Runs a session and returns every call with its result.
fn run_session(env: &TestEnv, words: [&str; 6]) -> String {
    let [name, goal, rule, plan, task, log] = words;
    let mut client = Client::connect(env);
    let mut transcript = String::new();
    let mut ids: Vec<String> = Vec::new();
    let mut call = |tool: &str, arguments: Value, ids: &mut Vec<String>| {
        env.tick(1000);
        let result = client.call(tool, arguments.clone());
        let answer = &result["structuredContent"];
        if let Some(id) = answer["nodeId"].as_str().filter(|_| tool == "node_create") {
            ids.push(id.to_owned());
        }
        transcript.push_str(&format!("> {tool} {arguments}\n{answer:#}\n"));
        if result["isError"] == true {
            transcript.push_str(&format!("{}\n", result["content"][0]["text"].as_str().unwrap()));
        }
    };
    call("workspace_list", json!({}), &mut ids);
    call("context_get", json!({}), &mut ids);
    call("workspace_init", json!({"name": name, "goal": goal, "rules": [rule]}), &mut ids);
    let node = |parent: &str, kind: &str, title: &str, hash: &str| json!({"parentId": parent, "type": kind, "title": title, "requirement": title, "rulesHash": hash});
    call("node_create", node("root", "planning", plan, "wrong"), &mut ids);
    let hash = rules_hash(rule);
    call("node_create", node("root", "planning", plan, &hash), &mut ids);
    let parent = ids[0].clone();
    call("node_create", node(&parent, "execution", task, &hash), &mut ids);
    call("node_create", node(&parent, "execution", log, &hash), &mut ids);
    call("node_transition", json!({"nodeId": ids[1], "action": "start"}), &mut ids);
    call("log_append", json!({"log": log}), &mut ids);
    call("problem_update", json!({"description": log, "nextStep": task}), &mut ids);
    call("context_get", json!({}), &mut ids);
    call("problem_clear", json!({}), &mut ids);
    call("node_transition", json!({"action": "complete"}), &mut ids);
    call("node_transition", json!({"action": "complete", "conclusion": log}), &mut ids);
    call("node_transition", json!({"nodeId": parent, "action": "complete", "conclusion": log}), &mut ids);
    call("node_delete", json!({"nodeId": ids[2]}), &mut ids);
    call("node_transition", json!({"nodeId": parent, "action": "complete", "conclusion": log}), &mut ids);
    call("node_transition", json!({"nodeId": "root", "action": "complete", "conclusion": log}), &mut ids);
    call("node_list", json!({}), &mut ids);
    call("workspace_get", json!({}), &mut ids);
    client.finish();
    env.redact(&transcript)
}

fn rules_hash(rule: &str) -> String {
    // The first 8 digits of the rule's MD5: printf '%s' RULE | md5sum
    match rule {
        "密钥必须从环境变量读取" => "a9d2b29f".into(),
        _ => "3628171e".into(),
    }
}

#[test]
fn session_english_transcript() {
    let env = TestEnv::new();
    let words = [
        "Rework auth",
        "Replace sessions by JWT",
        "Keys come from the environment",
        "Design",
        "Check",
        "done",
    ];
    insta::assert_snapshot!(run_session(&env, words));
}

#[test]
fn session_chinese_transcript() {
    let env = TestEnv::with_lang("zh_CN.UTF-8");
    let words =
        ["重构认证模块", "将 session 认证替换为 JWT", "密钥必须从环境变量读取", "设计", "验证", "完成了"];
    insta::assert_snapshot!(run_session(&env, words));
}

#[test]
fn tool_list_output() {
    let env = TestEnv::new();
    let mut client = Client::connect(&env);
    let answer = client.request("tools/list", json!({}));
    let text = serde_json::to_string(&answer["result"]).unwrap();
    assert!(text.chars().count() < 15_000, "{} characters", text.chars().count());
    insta::assert_snapshot!(serde_json::to_string_pretty(&answer["result"]["tools"]).unwrap());
}

/// Sends every tool a valid call, and calls that violate its schema in every way.
#[test]
fn every_tool_accepts_valid_and_refuses_invalid_input() {
    let env = TestEnv::new();
    let mut client = Client::connect(&env);
    let tools = client.request("tools/list", json!({}))["result"]["tools"].clone();
    let ws = client.expect_ok("workspace_init", json!({"name": "n", "goal": "g"}))["workspaceId"].clone();
    let create = json!({"parentId": "root", "type": "planning", "title": "plan", "requirement": "r"});
    let plan = client.expect_ok("node_create", create)["nodeId"].clone();
    let create = json!({"parentId": "root", "type": "execution", "title": "task", "requirement": "r"});
    let task = client.expect_ok("node_create", create)["nodeId"].clone();
    let fact = client.expect_ok("memory_save", json!({"content": "first", "type": "W"}))["id"].clone();

    let valid_calls: Vec<(&str, Value)> = vec![
        (
            "workspace_init",
            json!({"name": "second", "goal": "g", "rules": ["a"], "docs": [{"path": "x.md", "description": "d", "status": "expired"}]}),
        ),
        ("workspace_list", json!({"all": true, "status": "active", "limit": 5})),
        ("workspace_get", json!({"sessionId": "s", "workspaceId": ws})),
        (
            "workspace_update",
            json!({"sessionId": "s", "workspaceId": ws, "name": "n2", "goal": "g2", "rules": [], "addRules": [], "removeRules": [], "docs": [], "addDocs": [{"path": "a"}], "language": "zh"}),
        ),
        (
            "node_create",
            json!({"sessionId": "s", "workspaceId": ws, "parentId": plan, "type": "execution", "title": "t", "requirement": "", "rulesHash": "x", "role": "summary", "note": "n", "docs": [], "isolated": true}),
        ),
        ("node_get", json!({"sessionId": "s", "workspaceId": ws, "nodeId": task})),
        (
            "node_list",
            json!({"sessionId": "s", "workspaceId": ws, "parentId": "root", "status": ["pending", "monitoring"], "query": "t", "depth": 2, "limit": 1, "after": plan}),
        ),
        (
            "node_update",
            json!({"sessionId": "s", "workspaceId": ws, "nodeId": task, "title": "t2", "requirement": "r", "note": "n", "role": "none", "isolated": false, "docs": [{"path": "p"}], "dependsOn": []}),
        ),
        (
            "node_plan",
            json!({"sessionId": "s", "workspaceId": ws, "parentId": plan, "outline": "- a\n- b (after: a)", "rulesHash": "x"}),
        ),
        ("node_next", json!({"sessionId": "s", "workspaceId": ws, "start": false})),
        (
            "node_move",
            json!({"sessionId": "s", "workspaceId": ws, "nodeId": task, "parentId": plan, "before": null, "after": null}),
        ),
        (
            "node_transition",
            json!({"sessionId": "s", "workspaceId": ws, "nodeId": task, "action": "start", "conclusion": null, "agent": "Explore", "force": false}),
        ),
        (
            "node_reference",
            json!({"sessionId": "s", "workspaceId": ws, "nodeId": task, "targetId": "a.md", "action": "add", "description": "d"}),
        ),
        ("session_bind", json!({"sessionId": "s", "workspaceId": ws, "nodeId": task})),
        ("session_status", json!({"sessionId": "s"})),
        ("session_unbind", json!({"sessionId": "s"})),
        ("context_check", json!({"sessionId": "s", "trigger": "session_start", "prompt": "p"})),
        (
            "memory_save",
            json!({"content": "c", "type": "O", "entities": ["e"], "confidence": 0.9, "supersedes": [], "paths": [], "scope": "project", "sessionId": "s"}),
        ),
        (
            "memory_search",
            json!({"query": "c", "limit": 3, "type": "O", "since": "7d", "until": "2030-01-01"}),
        ),
        (
            "memory_summary",
            json!({"topic": "t", "summary": "s", "decisions": [], "todos": ["x"], "sessionId": "s"}),
        ),
        ("memory_forget", json!({"ids": [fact]})),
        ("context_get", json!({"sessionId": "s", "workspaceId": ws, "nodeId": task})),
        ("context_focus", json!({"sessionId": "s", "workspaceId": ws, "nodeId": task})),
        ("log_append", json!({"sessionId": "s", "workspaceId": ws, "nodeId": "workspace", "log": "x"})),
        (
            "problem_update",
            json!({"sessionId": "s", "workspaceId": ws, "nodeId": task, "description": "d", "nextStep": "n"}),
        ),
        ("problem_clear", json!({"sessionId": "s", "workspaceId": ws, "nodeId": task})),
        ("node_delete", json!({"sessionId": "s", "workspaceId": ws, "nodeId": task, "force": false})),
        ("workspace_archive", json!({"sessionId": "s", "workspaceId": ws})),
        ("workspace_restore", json!({"workspaceId": ws, "nodeId": null})),
        ("workspace_delete", json!({"workspaceId": ws})),
    ];
    let named: BTreeSet<&str> = valid_calls.iter().map(|(name, _)| *name).collect();
    let listed: BTreeSet<&str> =
        tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(named, listed, "every tool has a valid call");

    // Invalid input first, because the valid calls delete data.
    for (name, arguments) in &valid_calls {
        let tool = tools.as_array().unwrap().iter().find(|tool| tool["name"] == *name).unwrap();
        let schema = &tool["inputSchema"];
        for (parameter, shape) in schema["properties"].as_object().unwrap() {
            assert!(arguments.get(parameter).is_some(), "{name}: no valid value for {parameter}");
            let wrong = if shape["type"] == "string" { json!(7) } else { json!("seven") };
            let error = client.expect_error(name, with(arguments, parameter, wrong));
            assert_eq!(
                (&error["code"], &error["field"]),
                (&json!("INVALID_ARGUMENT"), &json!(parameter)),
                "{name}"
            );
            if shape.get("enum").is_some() {
                let error = client.expect_error(name, with(arguments, parameter, json!("nonsense")));
                assert!(
                    error["hint"].as_str().unwrap().contains(shape["enum"][0].as_str().unwrap()),
                    "{error}"
                );
            }
            if let Some(max) = shape["maxLength"].as_u64() {
                let error = client
                    .expect_error(name, with(arguments, parameter, json!("x".repeat(max as usize + 1))));
                assert_eq!(error["field"], *parameter);
            }
            if let Some(max) = shape["maximum"].as_u64() {
                client.expect_error(name, with(arguments, parameter, json!(max + 1)));
                client.expect_error(name, with(arguments, parameter, json!(-1)));
                client.expect_error(name, with(arguments, parameter, json!(1.5)));
            }
            if shape["type"] == "array" {
                client.expect_error(name, with(arguments, parameter, json!([7])));
                client.expect_error(name, with(arguments, parameter, json!({"0": "x"})));
            }
            if parameter.ends_with("Id") && parameter != "targetId" && parameter != "sessionId" {
                for id in ["../../x", "__proto__", ""] {
                    let error = client.expect_error(name, with(arguments, parameter, json!(id)));
                    assert_eq!(error["field"], *parameter, "{name}: {error}");
                }
            }
        }
        for required in schema["required"].as_array().into_iter().flatten() {
            let mut less = arguments.clone();
            less.as_object_mut().unwrap().remove(required.as_str().unwrap());
            assert_eq!(client.expect_error(name, less)["field"], *required, "{name}");
        }
        let error = client.expect_error(name, with(arguments, "workspace_ID", json!("x")));
        assert_eq!(error["code"], "UNKNOWN_PARAMETER", "{name}");
        if schema["properties"].get("workspaceId").is_some() {
            assert_eq!(error["hint"], "did you mean workspaceId?", "{name}");
            let error = client.expect_error(name, with(arguments, "workspaceId", json!("ws-none")));
            assert!(error["code"] == "WORKSPACE_NOT_FOUND", "{name}: {error}");
            assert!(!error["details"]["workspaces"].as_array().unwrap().is_empty(), "{error}");
        }
    }
    for (name, arguments) in &valid_calls {
        client.expect_ok(name, arguments.clone());
    }
    client.finish();
}

fn with(arguments: &Value, parameter: &str, value: Value) -> Value {
    let mut changed = arguments.clone();
    changed[parameter] = value;
    changed
}

#[test]
fn external_changes_are_visible_immediately() {
    let env = TestEnv::new();
    let mut client = Client::connect(&env);
    let ws = client.expect_ok("workspace_init", json!({"name": "n", "goal": "g"}))["workspaceId"]
        .as_str()
        .unwrap()
        .to_owned();
    let create = json!({"parentId": "root", "type": "execution", "title": "task", "requirement": "r"});
    let task = client.expect_ok("node_create", create)["nodeId"].as_str().unwrap().to_owned();
    env.ok(&["node", "update", &task, "--title", "by the command line"]);
    assert_eq!(client.expect_ok("node_get", json!({"nodeId": task}))["node"]["title"], "by the command line");
    env.edit(&env.node_md(&ws, &task), |text| text.replace("by the command line", "by hand"));
    assert_eq!(client.expect_ok("node_list", json!({}))["nodes"][1]["title"], "by hand");
    env.edit(&env.workspace_dir(&ws).join("Workspace.md"), |text| text + "\n## Rules\n\n- new rule\n");
    let create = json!({"parentId": "root", "type": "execution", "title": "task", "requirement": "r"});
    let error = client.expect_error("node_create", create);
    assert_eq!(error["details"]["rules"][0], "new rule");
    tanmi_base::fs::remove_tree(&env.workspace_dir(&ws).join(".local")).unwrap();
    assert_eq!(client.expect_ok("node_list", json!({}))["nodes"].as_array().unwrap().len(), 2);
    env.ok(&["workspace", "delete", &ws, "--yes"]);
    assert_eq!(client.expect_error("node_list", json!({"workspaceId": ws}))["code"], "WORKSPACE_NOT_FOUND");
    client.finish();
}

/// Omitted ids default to the workspace and focus of the session. Without hooks, the connection is the session.
#[test]
fn bound_connection_takes_ids_from_session() {
    let env = TestEnv::new();
    let mut client = Client::connect(&env);
    let mut other = Client::connect(&env);
    let init = |client: &mut Client, name: &str| {
        client.expect_ok("workspace_init", json!({"name": name, "goal": "g"}))["workspaceId"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let (first, second) = (init(&mut client, "first"), init(&mut client, "second"));
    assert_eq!(client.expect_error("node_list", json!({}))["code"], "AMBIGUOUS_WORKSPACE");
    let status = client.expect_ok("session_status", json!({}));
    assert_eq!(status["bound"], false);
    assert_eq!(status["availableWorkspaces"].as_array().unwrap().len(), 2);
    client.expect_ok("session_bind", json!({"workspaceId": second}));
    other.expect_ok("session_bind", json!({"workspaceId": first}));
    let create = json!({"parentId": "root", "type": "execution", "title": "t", "requirement": "r"});
    let node = client.expect_ok("node_create", create.clone());
    assert_eq!(node["workspaceId"], second.as_str());
    assert_eq!(other.expect_ok("node_create", create)["workspaceId"], first.as_str());
    client.expect_ok("node_transition", json!({"nodeId": node["nodeId"], "action": "start"}));
    assert_eq!(client.expect_ok("session_status", json!({}))["focusedNode"]["id"], node["nodeId"]);
    client.expect_ok("log_append", json!({"log": "on the focused node"}));
    let done = client.expect_ok("node_transition", json!({"action": "complete", "conclusion": "c"}));
    assert_eq!(done["nodeId"], node["nodeId"]);
    assert_eq!(
        client.expect_ok("session_status", json!({}))["focusedNode"]["id"],
        "root",
        "the focus moves to the parent"
    );
    client.expect_ok("context_focus", json!({"nodeId": node["nodeId"]}));
    client.expect_ok("node_delete", json!({"nodeId": node["nodeId"]}));
    assert_eq!(
        client.expect_ok("session_status", json!({}))["focusedNode"]["id"],
        "root",
        "the focus moves to the parent of a deleted node"
    );
    client.expect_ok("session_unbind", json!({}));
    assert_eq!(client.expect_ok("session_status", json!({}))["bound"], false);
    client.finish();
    other.finish();
}

#[test]
fn node_list_of_parent_returns_what_lies_below() {
    let env = TestEnv::new();
    env.init();
    let plan = env.node("root", "planning", "plan");
    let [first, second] = ["first", "second"].map(|title| env.node(&plan, "execution", title));
    env.node("root", "execution", "elsewhere");
    let mut client = Client::connect(&env);
    let mut ids = |arguments: Value| {
        let page = client.expect_ok("node_list", arguments);
        let rows = page["nodes"].as_array().unwrap().iter();
        (
            rows.map(|row| row["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>(),
            page["nextAfter"].clone(),
        )
    };
    assert_eq!(ids(json!({"parentId": plan})).0, [first.as_str(), second.as_str()]);
    assert_eq!(ids(json!({"parentId": plan, "depth": 1})).0, [first.as_str(), second.as_str()]);
    assert_eq!(ids(json!({"parentId": plan, "limit": 1})), (vec![first.clone()], json!(first)));
    assert_eq!(ids(json!({"parentId": plan, "after": first})).0, [second.as_str()]);
    assert!(ids(json!({"parentId": first})).0.is_empty());
    assert_eq!(ids(json!({"parentId": "root", "depth": 1})).0.len(), 2);
    assert_eq!(ids(json!({})).0.len(), 5, "the whole tree with its root");
}

/// A session that changes another node than its focused one keeps its focus, and the result says so.
#[test]
fn node_transition_returns_focus_of_its_session() {
    let env = TestEnv::new();
    let ws = env.init();
    let plan = env.node("root", "planning", "plan");
    let [own, other] = ["own", "other"].map(|title| env.node(&plan, "execution", title));
    let mut client = Client::connect(&env);
    client.expect_ok("session_bind", json!({"workspaceId": ws}));
    let mut focus_after = |node: &str, action: &str| {
        let arguments = json!({"nodeId": node, "action": action, "conclusion": "c"});
        client.expect_ok("node_transition", arguments)["focus"].clone()
    };
    assert_eq!(focus_after(&other, "start"), *other);
    assert_eq!(focus_after(&own, "start"), *own);
    assert_eq!(focus_after(&other, "complete"), *own);
    assert_eq!(focus_after(&own, "complete"), *plan);
    client.finish();
}

#[test]
fn workspace_update_removes_rules() {
    let env = TestEnv::new();
    let mut client = Client::connect(&env);
    client.expect_ok("workspace_init", json!({"name": "n", "goal": "g", "rules": ["keep", "drop"]}));
    let updated = client.expect_ok("workspace_update", json!({"removeRules": ["drop"]}));
    assert_eq!(updated["rules"], json!(["keep"]));
    client.finish();
}

#[test]
fn memory_forget_hides_facts_from_search() {
    let env = TestEnv::new();
    let mut client = Client::connect(&env);
    let saved = client.expect_ok("memory_save", json!({"content": "prefers small commits", "type": "O"}));
    let search = json!({"query": "commits"});
    let found = client.expect_ok("memory_search", search.clone())["results"][0].clone();
    assert_eq!((&found["id"], &found["confidence"]), (&saved["id"], &json!(0.8)));
    let forgotten = client.expect_ok("memory_forget", json!({"ids": [saved["id"]]}));
    assert_eq!(forgotten["forgotten"][0]["content"], "prefers small commits");
    assert_eq!(client.expect_ok("memory_search", search)["results"], json!([]));
    assert_eq!(
        client.expect_error("memory_forget", json!({"ids": ["fact-none"]}))["code"],
        "MEMORY_NOT_FOUND"
    );
    let empty = client.expect_error("memory_forget", json!({"ids": []}));
    assert_eq!(empty["message"], "invalid ids: the list is empty; name the ids of memories");
    client.finish();
}
