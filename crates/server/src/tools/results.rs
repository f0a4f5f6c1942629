//! Results of tools, kept short for the model: texts that it just sent are not repeated, empty fields are omitted, and
//! a long log is shortened.

use serde_json::{Value, json};
use tanmi_app::nodes::{InWorkspace, NodeResult};
use tanmi_app::workspaces::WorkspaceView;
use tanmi_workspace::model::Node;

use tanmi_app::Error;

/// The number of log entries in the result of `node_get`.
const LOG_LINES: usize = 20;

pub fn value(result: &impl serde::Serialize) -> Result<Value, Error> {
    serde_json::to_value(result).map_err(|error| Error::io("result")(error.into()))
}

/// Returns the identity and status of a changed node and the resulting status changes, without its texts.
pub fn changed(result: &InWorkspace<NodeResult>) -> Value {
    let node = &result.result.node;
    let mut value = json!({
        "workspaceId": result.workspace_id,
        "nodeId": node.id,
        "title": node.title,
        "type": node.kind,
        "status": node.status,
        "parentId": node.parent_id,
    });
    if let Some(seq) = result.seq {
        value["change"] = json!(seq);
    }
    if !result.result.status_changes.is_empty() {
        value["statusChanges"] = json!(result.result.status_changes);
    }
    with_secrets(value, result)
}

/// Adds what was done about secrets to the result of a change.
pub fn with_secrets<T>(mut value: Value, result: &InWorkspace<T>) -> Value {
    if !result.masked.is_empty() {
        value["masked"] = json!(result.masked);
    }
    if !result.warnings.is_empty() {
        value["warnings"] = json!(result.warnings);
    }
    value
}

/// Returns a node with all its fields, except empty fields and old log entries.
pub fn full(result: &InWorkspace<NodeResult>) -> Result<Value, Error> {
    let node: &Node = &result.result.node;
    let mut value = self::value(node)?;
    if let Some(fields) = value.as_object_mut() {
        let total = node.activity.log.len();
        if total > LOG_LINES {
            fields.insert("log".into(), json!(node.activity.log[total - LOG_LINES..]));
            fields.insert("logTotal".into(), json!(total));
        }
        fields.retain(|_, value| !is_empty(value));
        fields.extend(result.result.held_by.iter().map(|name| (String::from("heldBy"), json!(name))));
    }
    Ok(json!({"workspaceId": result.workspace_id, "nodeId": node.id, "node": value}))
}

pub fn workspace(view: &WorkspaceView) -> Result<Value, Error> {
    let mut value = self::value(view)?;
    if let Some(fields) = value.as_object_mut() {
        // Present only if it is not the default.
        fields.retain(|key, value| key == "maskSecrets" || !is_empty(value));
    }
    Ok(value)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Bool(flag) => !flag,
        _ => false,
    }
}
