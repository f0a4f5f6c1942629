//! The schemas of payloads and responses in `crates/platform/schemas`, and a checker for the part of JSON Schema that
//! they use. The integration tests of the program use it too.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// Returns the folder with the schemas of all clients.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../platform/schemas")
}

/// Returns the schema of an event: `in` for its payload, `out` for its response. Events that a client sends
/// to the hooks of another client are in the folder `borrowed`.
pub fn find(client: &str, event: &str, direction: &str) -> Option<Value> {
    let name = format!("{event}.{direction}.json");
    // Some file systems ignore case, but the names of events do not.
    let has = |dir: &Path| {
        std::fs::read_dir(dir).is_ok_and(|entries| entries.flatten().any(|entry| entry.file_name() == *name))
    };
    let client = folder().join(client);
    let dir = [client.clone(), client.join("borrowed")].into_iter().find(|dir| has(dir))?;
    Some(serde_json::from_slice(&std::fs::read(dir.join(name)).unwrap()).unwrap())
}

/// Checks a response as the client receives it. A response that is not JSON is checked as a string.
pub fn check_response(client: &str, event: &str, response: &str) -> Result<(), String> {
    let schema = find(client, event, "out").ok_or_else(|| format!("{client} {event} has no response"))?;
    let value = serde_json::from_str(response).unwrap_or_else(|_| Value::from(response));
    check(&schema, &value).map_err(|reason| format!("{client} {event}: {reason}: {response}"))
}

/// Checks a value. Panics at a keyword that the checker does not know, so that no part of a schema is ignored.
pub fn check(schema: &Value, value: &Value) -> Result<(), String> {
    let schema = schema.as_object().unwrap();
    let no_properties = serde_json::Map::new();
    let properties = schema.get("properties").map_or(&no_properties, |all| all.as_object().unwrap());
    for (keyword, expected) in schema {
        let is_valid = match keyword.as_str() {
            "$schema" | "title" | "description" => true,
            "type" => match expected {
                Value::Array(names) => names.iter().any(|name| has_type(value, name)),
                name => has_type(value, name),
            },
            "enum" => expected.as_array().unwrap().contains(value),
            "required" => {
                expected.as_array().unwrap().iter().all(|name| value.get(name.as_str().unwrap()).is_some())
            }
            "properties" => {
                for (name, schema) in properties {
                    if let Some(value) = value.get(name) {
                        check(schema, value).map_err(|reason| format!("{name}: {reason}"))?;
                    }
                }
                true
            }
            "additionalProperties" => {
                assert_eq!(expected, false, "only `false` is supported");
                value.as_object().is_none_or(|fields| fields.keys().all(|name| properties.contains_key(name)))
            }
            "items" => {
                for item in value.as_array().into_iter().flatten() {
                    check(expected, item).map_err(|reason| format!("item: {reason}"))?;
                }
                true
            }
            other => panic!("unknown keyword {other}"),
        };
        if !is_valid {
            return Err(format!("{keyword} is not {expected}"));
        }
    }
    Ok(())
}

fn has_type(value: &Value, name: &Value) -> bool {
    match name.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("unknown type {other}"),
    }
}
