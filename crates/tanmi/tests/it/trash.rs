//! The trash: deleted nodes are listed and restored, and deleting a node with children is confirmed.

use serde_json::json;

use crate::env::TestEnv;
use crate::mcp::Client;
use crate::serve::Server;

#[test]
fn restored_node_loses_dependencies_that_cannot_be_met() {
    let env = TestEnv::new();
    env.init();
    let plan = env.root().join("plan.md");
    env.make(&plan, "- PP\n  - XX (after: YY)\n  - WW\n- YY\n- AA\n- BB (after: AA)\n");
    env.ok(&["plan", plan.to_str().unwrap()]);
    env.ok(&["node", "delete", "XX"]);
    env.ok(&["node", "depend", "YY", "--on", "PP"]);
    let restored = env.json(&["node", "restore", "XX"]);
    assert_eq!(restored["node"]["dependsOn"], serde_json::Value::Null, "YY waits for its parent: {restored}");
    env.ok(&["start", "XX"]);
    for title in ["BB", "AA"] {
        env.ok(&["node", "delete", title]);
    }
    env.ok(&["node", "restore", "BB"]);
    env.ok(&["start", "BB"]);
    assert!(env.ok(&["log", "--node", "BB"]).contains("could not be met any more"), "the log says so");
}

#[test]
fn deleted_nodes_are_listed_and_restored_at_their_place() {
    let env = TestEnv::new();
    let ws = env.init();
    let plan = env.node("root", "planning", "Token service");
    let task = env.node(&plan, "execution", "Sign tokens");
    env.node("root", "execution", "Last");
    env.edit(&env.node_md(&ws, &task), |text| format!("{text}\n## Mine\n\nkept\n"));
    env.make(&env.workspace_dir(&ws).join("nodes").join(&task).join("notes.txt"), "a note");
    let file = std::fs::read_to_string(env.node_md(&ws, &task)).unwrap();
    let (tree, before) = (env.ok(&["tree"]), env.json(&["node", "show", &plan]));

    env.tick(60_000);
    let deleted = env.run(&["node", "delete", &plan, "--yes"]);
    assert!(deleted.stdout.contains(&format!("undo: tanmi node restore {plan}")), "{}", deleted.stdout);
    env.tick(60_000);
    let listed = env.json(&["trash", "list"]);
    assert_eq!(listed["total"], 1);
    let entry = &listed["entries"][0];
    assert_eq!(
        (entry["nodeId"].as_str(), entry["count"].as_u64()),
        (Some(plan.as_str()), Some(2)),
        "{entry}"
    );
    assert!(env.ok(&["trash", "list", "-w", "Auth"]).contains("Token service"));

    let error = env.error(&["node", "restore", &task]);
    assert_eq!(error["code"], "PARENT_DELETED");
    assert!(error["hint"].as_str().unwrap().contains(&plan), "{error}");
    env.ok(&["node", "restore", "Token service"]);
    assert_eq!(env.ok(&["tree"]), tree, "the node is at its place again");
    assert_eq!(
        std::fs::read_to_string(env.node_md(&ws, &task)).unwrap(),
        file,
        "what a person wrote is kept"
    );
    assert!(env.workspace_dir(&ws).join("nodes").join(&task).join("notes.txt").exists());
    assert_eq!(env.json(&["node", "show", &plan])["node"]["createdAt"], before["node"]["createdAt"]);
    assert_eq!(env.json(&["trash", "list"])["total"], 0);
    assert_eq!(env.error(&["node", "restore", &plan])["code"], "NOT_IN_TRASH");
    assert!(env.json(&["workspace", "check"])["findings"].as_array().is_none_or(Vec::is_empty));
}

#[test]
fn node_deleted_twice_is_restored_from_the_latest_deletion() {
    let env = TestEnv::new();
    env.init();
    let plan = env.node("root", "planning", "Plan");
    let task = env.node(&plan, "execution", "Old title");
    env.ok(&["node", "delete", &task]);
    env.tick(1000);
    env.ok(&["node", "restore", &task]);
    env.ok(&["node", "update", &task, "--title", "New title"]);
    env.tick(1000);
    env.ok(&["node", "delete", &plan, "--yes"]);
    let listed = env.json(&["trash", "list"]);
    assert_eq!(
        (listed["total"].as_u64(), listed["entries"][0]["count"].as_u64()),
        (Some(1), Some(2)),
        "{listed}"
    );
    env.ok(&["node", "restore", &plan]);
    assert_eq!(env.json(&["node", "show", &task])["node"]["title"], "New title");
}

#[test]
fn delete_of_a_node_with_children_needs_yes_without_a_terminal() {
    let env = TestEnv::new();
    env.init();
    let plan = env.node("root", "planning", "Plan");
    let task = env.node(&plan, "execution", "Task");
    let error = env.error(&["node", "delete", &plan]);
    assert_eq!(error["code"], "CONFIRMATION_REQUIRED");
    assert_eq!(error["details"], json!({"nodeId": plan, "title": "Plan", "children": 1}));
    env.ok(&["node", "show", &task]);
    env.ok(&["node", "delete", &task]);
    env.ok(&["node", "delete", &plan]);
}

#[test]
fn deleted_workspace_is_listed_and_restored_by_name() {
    let env = TestEnv::new();
    let ws = env.init();
    env.node("root", "execution", "Task");
    env.ok(&["workspace", "list"]);
    env.ok(&["workspace", "delete", &ws, "--yes"]);
    let listed = env.json(&["trash", "list", "--limit", "5"]);
    let expected = json!([{"workspaceId": ws, "title": "Auth", "count": 1, "deletedAt": crate::env::NOW}]);
    assert_eq!(listed["entries"], expected);
    env.ok(&["workspace", "restore", "Auth"]);
    env.ok(&["node", "show", "Task"]);
    assert_eq!(env.ok(&["trash", "list"]), "the trash is empty\n");
}

#[test]
fn tool_and_http_restore_a_node() {
    let env = TestEnv::new();
    let ws = env.init();
    let task = env.node("root", "execution", "Task");
    env.ok(&["node", "delete", &task]);
    let mut client = Client::connect(&env);
    let restored = client.expect_ok("workspace_restore", json!({"workspaceId": ws, "nodeId": task}));
    assert_eq!(restored["nodeId"], task.as_str());
    env.ok(&["node", "delete", &task]);
    let server = Server::start(&env);
    let entries = server.expect_ok("GET", &format!("/trash?workspaceId={ws}"), serde_json::Value::Null);
    assert_eq!(entries["entries"][0]["nodeId"], task.as_str());
    let restore = format!("/workspaces/{ws}/restore");
    server.expect_ok("POST", &restore, json!({"nodeId": task}));
    server.expect_error("POST", &restore, json!({"nodeId": task}), 404);
    env.ok(&["node", "show", &task]);
}
