//! The permission to use our tools without asking, in the settings of a client: one entry of a list.

use serde_json::Value;
use tanmi_platform::AllowedTools;

use crate::Refusal;
use crate::json::{Json, is_empty_container, to_input};

pub fn add(json: &mut Json, allowed: AllowedTools) -> Result<(), Refusal> {
    let list = json.array(allowed.path)?;
    if !has_entry(&json.value(), allowed) {
        list.append(to_input(&Value::from(allowed.entry)));
    }
    Ok(())
}

/// Removes the entry unless it existed in `before`, and containers that become empty unless they existed there.
pub fn remove(json: &Json, allowed: AllowedTools, before: &Value) {
    let Some((key, above)) = allowed.path.split_last() else { return };
    let list = json.find(above).and_then(|object| object.array_value(key));
    let Some(list) = list.filter(|_| !has_entry(before, allowed)) else { return };
    let is_ours = |node: &jsonc_parser::cst::CstNode| {
        node.as_string_lit().and_then(|text| text.decoded_value().ok()).as_deref() == Some(allowed.entry)
    };
    let ours: Vec<_> = list.elements().into_iter().filter(is_ours).collect();
    if ours.is_empty() {
        return;
    }
    ours.into_iter().for_each(|entry| entry.remove());
    let mut is_empty = is_empty_container(&list.to_string());
    for depth in (1..=allowed.path.len()).rev() {
        let (path, above) = (&allowed.path[..depth], &allowed.path[..depth - 1]);
        if !is_empty || at(before, path).is_some() {
            return;
        }
        let Some(object) = json.find(above) else { return };
        object.get(path[depth - 1]).into_iter().for_each(|property| property.remove());
        is_empty = is_empty_container(&object.to_string());
    }
}

/// Returns whether the settings allow all our tools.
pub fn has_entry(settings: &Value, allowed: AllowedTools) -> bool {
    let list = at(settings, allowed.path).and_then(Value::as_array);
    list.is_some_and(|list| list.iter().any(|entry| entry == allowed.entry))
}

fn at<'v>(value: &'v Value, path: &[&str]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, key| value.get(key))
}
