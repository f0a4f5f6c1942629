//! The order of siblings: a node is placed before or after another one.

use serde_json::{Value, json};

use crate::env::TestEnv;
use crate::mcp::Client;
use crate::serve::Server;

fn titles(env: &TestEnv) -> Vec<String> {
    let page = env.json(&["node", "list"]);
    let rows = page["nodes"].as_array().unwrap().iter().skip(1);
    rows.map(|row| row["title"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn node_is_placed_before_and_after_siblings() {
    let env = TestEnv::new();
    let ws = env.init();
    let ids: Vec<String> = ["a", "b", "c", "d"].map(|title| env.node("root", "execution", title)).to_vec();
    let mv = |args: &[&str]| env.ok(&[&["node", "move"], args].concat());
    mv(&[&ids[3], "--before", &ids[0]]);
    assert_eq!(titles(&env), ["d", "a", "b", "c"]);
    mv(&[&ids[3], "--after", &ids[1]]);
    assert_eq!(titles(&env), ["a", "b", "d", "c"]);
    mv(&[&ids[0], "--after", &ids[2]]);
    assert_eq!(titles(&env), ["b", "d", "c", "a"]);
    let moved = |id: &str| std::fs::metadata(env.node_md(&ws, id)).unwrap().modified().unwrap();
    let before = moved(&ids[0]);
    mv(&[&ids[1], "--after", &ids[3]]);
    assert_eq!(titles(&env), ["d", "b", "c", "a"]);
    assert_eq!(moved(&ids[0]), before, "siblings that need no other number are not written");
    // A node that was created by hand has no number and comes last.
    env.edit(&env.node_md(&ws, &ids[3]), |text| {
        text.lines().filter(|line| !line.starts_with("order:")).map(|line| format!("{line}\n")).collect()
    });
    env.json(&["workspace", "check"]);
    assert_eq!(titles(&env), ["b", "c", "a", "d"]);
    mv(&[&ids[1], "--after", &ids[3]]);
    assert_eq!(titles(&env), ["c", "a", "d", "b"]);
}

#[test]
fn node_is_placed_beside_a_node_of_another_parent() {
    let env = TestEnv::new();
    env.init();
    let plan = env.node("root", "planning", "plan");
    let first = env.node(&plan, "execution", "first");
    let task = env.node("root", "execution", "task");
    let moved = env.json(&["node", "move", &task, "--before", &first]);
    assert_eq!(moved["node"]["parentId"], plan.as_str());
    assert_eq!(titles(&env), ["plan", "task", "first"]);
    for (args, code) in [
        (vec![&plan[..], "--before", &first], "MOVE_INTO_SELF"),
        (vec![&task, "--after", &task], "INVALID_ARGUMENT"),
        (vec![&task, "--after", "root"], "INVALID_ARGUMENT"),
        (vec!["root", "--after", &task], "ROOT_PROTECTED"),
    ] {
        assert_eq!(env.error(&[&["node", "move"], &args[..]].concat())["code"], code, "{args:?}");
    }
    assert!(!env.run(&["node", "move", &task]).ok, "a place is required");
    assert!(!env.run(&["node", "move", &task, "--before", &first, "--parent", "root"]).ok);
}

#[test]
fn tool_and_http_place_a_node() {
    let env = TestEnv::new();
    let ws = env.init();
    let ids: Vec<String> = ["a", "b", "c"].map(|title| env.node("root", "execution", title)).to_vec();
    let mut client = Client::connect(&env);
    client.expect_ok("node_move", json!({"workspaceId": ws, "nodeId": ids[2], "before": ids[0]}));
    assert_eq!(titles(&env), ["c", "a", "b"]);
    let error = client.expect_error("node_move", json!({"workspaceId": ws, "nodeId": ids[2]}));
    assert_eq!(error["code"], "INVALID_ARGUMENT", "{error}");
    let server = Server::start(&env);
    let path = format!("/workspaces/{ws}/nodes/{}/move", ids[2]);
    server.expect_ok("POST", &path, json!({"after": ids[1]}));
    assert_eq!(titles(&env), ["a", "b", "c"]);
    server.expect_error("POST", &path, Value::Null, 400);
}
