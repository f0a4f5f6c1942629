//! Programs people really run, from their registries at pinned versions. `scripts/install-clients` puts them into
//! `.clients/`; without them these tests say that they were skipped, and CI counts that as a failure.

use std::path::PathBuf;

use serde_json::Value;

use crate::env::TestEnv;

fn client(name: &str) -> Option<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../.clients/node_modules/.bin");
    let found = root.join(name).canonicalize().ok();
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none(), "{name} is missing: .ci/run installs it");
        eprintln!("skipped: {name} is not installed (scripts/install-clients)");
    }
    found
}

/// The official MCP Inspector, from its command line.
#[test]
fn the_mcp_inspector_lists_and_calls_tools() {
    let Some(inspector) = client("mcp-inspector") else { return };
    let env = TestEnv::new();
    let inspect = |args: &[&str]| -> Value {
        let mut command = env.command_in("node", &env.project);
        command.arg(&inspector).args(["--cli", env!("CARGO_BIN_EXE_tanmi"), "mcp"]).args(args);
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("{error}: {text}{}", String::from_utf8_lossy(&output.stderr)))
    };
    let call = |tool: &str, arguments: &[&str]| {
        let mut args = vec!["--method", "tools/call", "--tool-name", tool];
        for argument in arguments {
            args.extend(["--tool-arg", argument]);
        }
        inspect(&args)
    };
    let tools = inspect(&["--method", "tools/list"]);
    assert!(tools["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "node_transition"));
    let made = call("workspace_init", &["name=Inspected", "goal=Be driven"]);
    assert_eq!(made["structuredContent"]["name"], "Inspected");
    let node = call("node_create", &["parentId=root", "type=execution", "title=t", "requirement=r"]);
    let id = node["structuredContent"]["nodeId"].as_str().unwrap().to_owned();
    let started = call("node_transition", &[&format!("nodeId={id}"), "action=start"]);
    assert_eq!(started["structuredContent"]["to"], "implementing");
    let refused = call("node_transition", &[&format!("nodeId={id}"), "action=retry"]);
    assert_eq!(refused["structuredContent"]["error"]["code"], "INVALID_TRANSITION");
    assert_eq!(env.status(&id), "implementing");
}
