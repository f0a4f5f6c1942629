//! Plans as outlines, dependencies, and what is next, over the command line, MCP and HTTP.

use serde_json::{Value, json};

use crate::env::{Run, TestEnv};
use crate::mcp::Client;

mod pullers;

const OUTLINE: &str = "\
- Design: agree on the format
- Build (after: Design)
  - **Parser**: read the format
  - **Writer** (after: Parser): write the format
    in two lines
- [x] Set up the project
";

/// Runs `tanmi plan -` with an outline on standard input.
fn plan(env: &TestEnv, outline: &str, more: &[&str]) -> Run {
    use std::io::Write;
    let mut command = env.command(&["plan", "-"]);
    let mut child = command
        .args(more)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // A process that refuses the outline may not read all of it.
    let _ = child.stdin.take().unwrap().write_all(outline.as_bytes());
    Run::of(child.wait_with_output().unwrap())
}

fn plan_json(env: &TestEnv, outline: &str) -> Value {
    let run = plan(env, outline, &["--json"]);
    assert!(run.ok, "{}", run.stdout);
    serde_json::from_str(&run.stdout).unwrap()
}

/// Creates a plan and returns the ids in the order of the outline.
fn planned(env: &TestEnv, outline: &str) -> Vec<String> {
    let nodes = plan_json(env, outline)["nodes"].clone();
    nodes.as_array().unwrap().iter().map(|node| node["nodeId"].as_str().unwrap().to_owned()).collect()
}

fn finish(env: &TestEnv, node: &str) -> Value {
    env.json(&["node", "transition", node, "--action", "complete", "--conclusion", "ok"])
}

#[test]
fn plan_and_next_output_in_both_languages() {
    for (lang, name) in [("en_US.UTF-8", "en"), ("zh_CN.UTF-8", "zh")] {
        let env = TestEnv::with_lang(lang);
        let mut out = String::new();
        let mut show = |args: &[&str]| {
            let run = env.run(args);
            out.push_str(&format!("$ tanmi {}\n{}{}", args.join(" "), run.stdout, run.stderr));
        };
        show(&["workspace", "init", "--name", "Format", "--goal", "Read and write it"]);
        show(&["next"]);
        env.write(&env.project.join("plan.md"), OUTLINE.as_bytes());
        env.write(&env.project.join("bad.md"), b"- a\n- b (after: c)\n");
        show(&["plan", "plan.md"]);
        show(&["plan", "bad.md"]);
        show(&["plan", "missing.md"]);
        show(&["plan", "--export"]);
        show(&["next"]);
        show(&["next", "--start"]);
        show(&["next", "--start"]);
        let page = env.json(&["node", "list"]);
        let id = |title: &str| {
            let nodes = page["nodes"].as_array().unwrap();
            nodes.iter().find(|node| node["title"] == title).unwrap()["id"].as_str().unwrap().to_owned()
        };
        show(&["node", "transition", &id("Parser"), "--action", "start"]);
        show(&["node", "depend", &id("Design"), "--on", &id("Writer")]);
        show(&["node", "depend", &id("Writer"), "--on", &id("Design")]);
        show(&["node", "depend", &id("Writer"), "--on", &id("Design"), "--remove"]);
        show(&["node", "transition", &id("Design"), "--action", "complete", "--conclusion", "JSON"]);
        show(&["node", "delete", &id("Parser")]);
        insta::assert_snapshot!(format!("plan_and_next_{name}"), env.redact(&out));
    }
}

#[test]
fn plan_export_of_one_workspace_is_the_plan_of_another() {
    let env = TestEnv::new();
    let first = env.init();
    planned(&env, OUTLINE);
    let exported = env.ok(&["plan", "--export"]);
    assert_eq!(env.json(&["plan", "--export"])["outline"], exported.as_str());
    let second = env.init();
    let run = plan(&env, &exported, &["--workspace", &second]);
    assert!(run.ok, "{}", run.stderr);
    assert_eq!(env.ok(&["plan", "--export", "--workspace", &second]), exported);
    assert_eq!(env.ok(&["plan", "--export", "--workspace", &first]), exported);
}

#[test]
fn plan_bad_outline_creates_nothing() {
    let env = TestEnv::new();
    let ws = env.init();
    let count = || env.json(&["node", "list", "--limit", "1000"])["nodes"].as_array().unwrap().len();
    let huge = "- item\n".repeat((10 << 20) / 7);
    for (outline, line) in
        [("- a\n \t- b", 2), ("- a\n- b (after: a, c)", 2), ("- a (after: a)", 1), (&huge, 1), ("", 1)]
    {
        let run = plan(&env, outline, &["--json"]);
        assert!(!run.ok);
        let answer: Value = serde_json::from_str(&run.stdout).unwrap();
        let error = &answer["error"];
        assert_eq!(
            (&error["code"], &error["details"]["line"]),
            (&json!("INVALID_OUTLINE"), &json!(line)),
            "{error}"
        );
    }
    env.write(&env.project.join("bytes.md"), b"- a\n- \xff\n");
    assert_eq!(env.error(&["plan", "bytes.md"])["details"]["line"], 2);
    assert_eq!(count(), 1);
    let files = std::fs::read_dir(env.workspace_dir(&ws).join("nodes")).unwrap().count();
    assert_eq!(files, 1, "no folder is left behind");
}

#[test]
fn plan_over_mcp_returns_ids_and_checks_rules() {
    let env = TestEnv::new();
    let mut client = Client::connect(&env);
    client.expect_ok("workspace_init", json!({"name": "n", "goal": "g", "rules": ["r"]}));
    let error = client.expect_error("node_plan", json!({"outline": OUTLINE}));
    assert_eq!(error["code"], "RULES_HASH_MISMATCH");
    let hash = error["details"]["rulesHash"].clone();
    let error =
        client.expect_error("node_plan", json!({"outline": "- a\n- b (after: x)", "rulesHash": hash}));
    assert_eq!((&error["code"], &error["field"]), (&json!("INVALID_OUTLINE"), &json!("outline")));
    let planned = client.expect_ok("node_plan", json!({"outline": OUTLINE, "rulesHash": hash}));
    let outline = planned["outline"].as_str().unwrap();
    insta::assert_snapshot!(env.redact(outline), @"
    - node-#1 Design
    - node-#2 Build
      - node-#3 Parser
      - node-#4 Writer
    - node-#5 Set up the project
    ");
    let writer = outline.lines().nth(3).unwrap().split_whitespace().nth(1).unwrap().to_owned();
    let error = client.expect_error("node_transition", json!({"nodeId": writer, "action": "start"}));
    assert_eq!(error["code"], "DEPENDENCIES_OPEN");
    let text = error.to_string();
    assert!(text.contains("“Parser” (pending), “Design” (pending)") && !text.contains("force"), "{text}");
    client.finish();
}

#[test]
fn next_over_mcp_starts_focuses_and_follows_completion() {
    let env = TestEnv::new();
    let mut client = Client::connect(&env);
    let ws = client.expect_ok("workspace_init", json!({"name": "n", "goal": "g"}))["workspaceId"].clone();
    client.expect_ok("session_bind", json!({"workspaceId": ws}));
    client.expect_ok("node_plan", json!({"outline": OUTLINE}));
    let result = client.expect_ok("node_next", json!({"start": true}));
    assert!(result.get("next").is_none(), "not looked up: {result}");
    let started = result["started"].clone();
    assert_eq!(
        (&started["title"], &started["requirement"]),
        (&json!("Design"), &json!("agree on the format"))
    );
    let status = client.expect_ok("session_status", json!({}));
    assert_eq!(status["focusedNode"]["id"], started["nodeId"]);
    let none = client.expect_ok("node_next", json!({"start": true}));
    assert!(none.get("started").is_none(), "{none}");
    let reasons: Vec<&str> =
        none["blocked"].as_array().unwrap().iter().map(|node| node["reason"].as_str().unwrap()).collect();
    assert_eq!(reasons, ["in_progress", "dependencies"]);
    let done = client.expect_ok("node_transition", json!({"action": "complete", "conclusion": "JSON"}));
    let next = &done["next"][0];
    assert_eq!((&next["title"], done["next"].as_array().unwrap().len()), (&json!("Parser"), 1));
    let context = client.expect_ok("context_get", json!({"nodeId": next["nodeId"]}));
    let conclusion = context["dependencyConclusions"][0]["conclusion"].clone();
    assert_eq!(conclusion, "JSON", "the parent of the parser depends on the design");
    let build = context["chain"][1]["id"].clone();
    let context = client.expect_ok("context_get", json!({"nodeId": build}));
    assert_eq!(context["dependencyConclusions"][0]["conclusion"], "JSON");
    client.finish();
}

/// The holder is dead when its server has ended, however recent its last call is.
#[test]
fn next_node_of_ended_mcp_server_is_taken_over() {
    let env = TestEnv::new();
    env.init();
    planned(&env, "- a\n");
    let mut first = Client::connect(&env);
    let mut second = Client::connect(&env);
    first.expect_ok("node_next", json!({"start": true}));
    let refused = second.expect_ok("node_next", json!({"start": true}));
    assert_eq!(refused["blocked"][0]["reason"], "in_progress", "{refused}");
    env.tick(3 * 3_600_000);
    let mut later = Client::connect(&env);
    let refused = later.expect_ok("node_next", json!({}));
    assert_eq!(refused["blocked"][0]["reason"], "in_progress", "the server still runs: {refused}");
    drop(first);
    let taken = second.expect_ok("node_next", json!({}));
    assert_eq!(taken["next"][0]["takeover"], true, "{taken}");
    let taken = second.expect_ok("node_next", json!({"start": true}));
    assert_eq!((&taken["started"]["takeover"], &taken["started"]["title"]), (&json!(true), &json!("a")));
    second.finish();
    later.finish();
}

#[test]
fn next_start_by_person_holds_node_without_expiry() {
    let env = TestEnv::new();
    env.init();
    let ids = planned(&env, "- a\n");
    env.ok(&["next", "--start"]);
    env.tick(30 * 86_400_000);
    let mut client = Client::connect(&env);
    let refused = client.expect_ok("node_next", json!({"start": true}));
    assert_eq!(refused["blocked"][0]["reason"], "in_progress", "{refused}");
    let complete = json!({"nodeId": ids[0], "action": "complete", "conclusion": "c"});
    let error = client.expect_error("node_transition", complete);
    assert_eq!(error["code"], "NODE_TAKEN");
    assert!(error["message"].as_str().unwrap().contains("claimed by a person"), "{error}");
    client.finish();
    finish(&env, &ids[0]);
    assert_eq!(env.status(&ids[0]), "completed");
}

#[test]
fn start_before_dependencies_needs_force() {
    let env = TestEnv::new();
    env.init();
    let ids = planned(&env, "- a\n- b (after: a)\n");
    let start = ["node", "transition", &ids[1], "--action", "start"];
    let error = env.error(&start);
    assert_eq!(error["code"], "DEPENDENCIES_OPEN");
    assert!(error["hint"].as_str().unwrap().contains("--force"), "{error}");
    let output = env.command(&start).arg("--json").env("CLAUDECODE", "1").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("DEPENDENCIES_OPEN") && !text.contains("force"), "{text}");
    env.ok(&[&start[..], &["--force"]].concat());
    assert_eq!(env.status(&ids[1]), "implementing");
}

#[test]
fn http_update_sets_dependencies_and_refuses_cycles() {
    let env = TestEnv::new();
    let ws = env.init();
    let ids = planned(&env, "- a\n- b (after: a)\n");
    let server = crate::serve::Server::start(&env);
    let node = |id: &str| format!("/workspaces/{ws}/nodes/{id}");
    let change = json!({"dependsOn": [ids[1]]});
    let error = server.expect_error("PATCH", &node(&ids[0]), change, 409);
    assert_eq!(error["code"], "DEPENDENCY_CYCLE", "{error}");
    server.expect_ok("PATCH", &node(&ids[1]), json!({"dependsOn": []}));
    let view = server.expect_ok("GET", &node(&ids[1]), Value::Null);
    assert!(view["node"].get("dependsOn").is_none(), "{view}");
    server.expect_ok("POST", &format!("/workspaces/{ws}/plan"), json!({"outline": "- c"}));
    let started = server.expect_ok("POST", &format!("/workspaces/{ws}/next"), json!({"start": true}));
    assert_eq!(started["started"]["title"], "a", "{started}");
}

/// A hook at session start tells what the dependencies of the focused node concluded, and the overview says which nodes
/// wait for another one.
#[test]
fn hook_tells_conclusions_of_dependencies_and_what_waits() {
    let env = TestEnv::new();
    let ws = env.init();
    let ids = planned(&env, "- a\n- b (after: a)\n- c (after: b)\n");
    let bound = env.json(&["session", "bind", "--session", "s", "--workspace", &ws]);
    let [a, b, c] = &ids[..] else { unreachable!() };
    assert_eq!(bound["overview"], format!("Next: a {a}; b {b} (after a); c {c} (after b)"));
    env.ok(&["node", "transition", &ids[0], "--action", "start"]);
    let done = finish(&env, &ids[0]);
    assert_eq!(done["next"][0]["nodeId"], ids[1].as_str());
    env.json(&["session", "bind", "--session", "s", "--workspace", &ws, "--node", &ids[1]]);
    let start = crate::agent::Agent::claude(&env, "s").start("startup");
    assert!(start.contains("Dependency conclusions:") && start.contains("- a (completed): ok"), "{start}");
}

#[cfg(unix)]
#[test]
fn plan_endless_file_is_refused() {
    let env = TestEnv::new();
    env.init();
    let error = env.error(&["plan", "/dev/zero"]);
    assert_eq!(
        error["message"],
        "line 1 of the outline: the outline is longer than 1048576 bytes; split it; nothing was created"
    );
}

#[test]
fn next_start_without_a_node_to_start_fails() {
    let env = TestEnv::new();
    env.init();
    assert!(env.run(&["next"]).ok);
    let none = env.run(&["next", "--start", "--json"]);
    let found: Value = serde_json::from_str(&none.stdout).unwrap();
    assert!(!none.ok && found["started"].is_null() && found["error"].is_null(), "{found}");
    env.node("root", "execution", "Task");
    assert!(env.run(&["next", "--start"]).ok);
    assert!(!env.run(&["next", "--start"]).ok, "it is in progress");
}

#[test]
fn export_above_the_limits_warns() {
    for (lang, warning) in [
        (
            "en_US.UTF-8",
            "warning: `tanmi plan` cannot read this outline in one call: too many items: 201, the limit is 200",
        ),
        ("zh_CN.UTF-8", "警告：`tanmi plan` 不能一次读取这个大纲：条目过多：201 个，上限 200"),
    ] {
        let env = TestEnv::with_lang(lang);
        env.init();
        let outline: String = (0..200).map(|n| format!("- Task {n}\n")).collect();
        assert!(plan(&env, &outline, &[]).ok);
        assert_eq!(env.run(&["plan", "--export"]).stderr, "");
        assert!(plan(&env, "- One more\n", &[]).ok);
        let exported = env.run(&["plan", "--export"]);
        assert!(exported.ok && exported.stderr.starts_with(warning), "{}", exported.stderr);
    }
}

#[test]
fn move_that_causes_a_cycle_names_the_way_out() {
    let env = TestEnv::new();
    env.init();
    let plan = env.node("root", "planning", "Plan");
    let task = env.node("root", "execution", "Task");
    env.ok(&["node", "depend", &plan, "--on", &task]);
    let error = env.error(&["node", "move", &task, "--parent", &plan]);
    assert_eq!(error["code"], "DEPENDENCY_CYCLE");
    let hint = error["hint"].as_str().unwrap();
    assert!(
        hint.starts_with("choose another parent") && hint.contains("node depend NODE --on NODE --remove"),
        "{hint}"
    );
}

#[test]
fn plan_that_is_read_twice_warns() {
    let env = TestEnv::new();
    env.init();
    assert!(!plan(&env, OUTLINE, &[]).stderr.contains("existed before"));
    let again = plan(&env, OUTLINE, &[]);
    assert!(again.ok && again.stderr.contains("tanmi node delete node-"), "{}", again.stderr);
    assert!(!plan(&env, "- Design\n- Something new\n", &[]).stderr.contains("existed before"));
}
