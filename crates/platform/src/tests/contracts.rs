//! Compares recorded payloads and our responses with the schemas of each client.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::schema::{check, check_response, find, folder};
use crate::{CLIENTS, ClientSpec};

/// Returns the recorded payloads of a client: event and content.
fn recorded(client: &ClientSpec) -> Vec<(String, Vec<u8>)> {
    let dir = format!("{}/fixtures/{}", env!("CARGO_MANIFEST_DIR"), client.id());
    let entries = std::fs::read_dir(dir).unwrap().flatten();
    let event = |name: String| name.split('.').next().unwrap().to_owned();
    entries
        .map(|entry| (event(entry.file_name().into_string().unwrap()), std::fs::read(entry.path()).unwrap()))
        .collect()
}

#[test]
fn recorded_payloads_match_schemas() {
    let mut checked = 0;
    for client in CLIENTS.iter() {
        for (event, bytes) in recorded(client) {
            let is_handled = CLIENTS.read(client.platform, Some(&event), &bytes).is_some();
            let Some(schema) = find(client.id(), &event, "in") else {
                assert!(!is_handled, "{} {event} is handled, but has no schema", client.id());
                continue;
            };
            let payload: Value = serde_json::from_slice(&bytes).unwrap();
            check(&schema, &payload).unwrap_or_else(|reason| panic!("{} {event}: {reason}", client.id()));
            checked += 1;
        }
    }
    assert!(checked > 30, "only {checked} payloads were checked");
}

#[test]
fn responses_match_schemas() {
    for client in CLIENTS.iter() {
        for (name, bytes) in recorded(client) {
            let Some(event) = CLIENTS.read(client.platform, Some(&name), &bytes) else { continue };
            match CLIENTS.write(&event, "a\"b\nc") {
                Some(response) => check_response(client.id(), &name, &response).unwrap(),
                None => assert!(find(client.id(), &name, "out").is_none(), "{} {name}", client.id()),
            }
        }
    }
}

/// A hook that is installed has a schema, and a schema belongs to a hook or to hooks of another client.
#[test]
fn schemas_match_installed_hooks() {
    for client in CLIENTS.iter() {
        let hooks: BTreeSet<String> =
            client.recipe.hooks.iter().map(|hook| format!("{}.in.json", hook.event)).collect();
        let entries = std::fs::read_dir(folder().join(client.id())).unwrap().flatten();
        let names: BTreeSet<String> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        let inputs: BTreeSet<String> =
            names.iter().filter(|name| name.ends_with(".in.json")).cloned().collect();
        assert_eq!(inputs, hooks, "{}", client.id());
        let is_borrower = client.wire.borrowed_hooks.is_some();
        assert!(!names.contains("borrowed") || is_borrower, "{}", client.id());
    }
}

/// A schema lists no field that its client's file does not name.
#[test]
fn payload_schemas_list_only_fields_that_are_read() {
    let file = |name: &str| {
        std::fs::read_to_string(format!("{}/src/{name}.rs", env!("CARGO_MANIFEST_DIR"))).unwrap()
    };
    for client in CLIENTS.iter() {
        // Codex uses the reader of Claude Code.
        let source = file(&client.id().replace('-', "_")) + &file("claude_code");
        for hook in client.recipe.hooks {
            let schema = find(client.id(), hook.event, "in").unwrap();
            for field in schema["properties"].as_object().unwrap().keys() {
                assert!(source.contains(&format!("\"{field}\"")), "{} {}: {field}", client.id(), hook.event);
            }
        }
    }
}

#[test]
fn check_value_against_schema_reports_every_keyword() {
    let schema = json!({
        "type": "object", "required": ["a"], "additionalProperties": false,
        "properties": {"a": {"enum": ["x", 1]}, "b": {"type": "array", "items": {"type": ["string", "null"]}}},
    });
    for (value, is_valid) in [
        (json!({"a": "x"}), true),
        (json!({"a": 1, "b": ["s", null]}), true),
        (json!({"a": "x", "b": []}), true),
        (json!([]), false),
        (json!({"b": []}), false),
        (json!({"a": "y"}), false),
        (json!({"a": "x", "c": 1}), false),
        (json!({"a": "x", "b": [1]}), false),
        (json!({"a": "x", "b": "s"}), false),
    ] {
        assert_eq!(check(&schema, &value).is_ok(), is_valid, "{value}");
    }
}
