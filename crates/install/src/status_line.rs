//! Our status line in the settings of a client: added if there is none, updated if it is ours, removed on uninstall.
//! A client has only one status line, so one of another program stays.

use jsonc_parser::cst::CstObject;
use serde_json::{Value, json};

use crate::Refusal;
use crate::command::{is_tanmi, quote, split_words};
use crate::json::{Json, set_keys, to_input};

const KEY: &str = "statusLine";

pub fn add(json: &mut Json, program: &str) -> Result<(), Refusal> {
    let root = json.object(&[])?;
    let wanted = json!({"type": "command", "command": format!("{} statusline", quote(program))});
    match root.get(KEY) {
        None => json.insert(&[], usize::MAX, KEY, to_input(&wanted)),
        Some(existing) => {
            if let Some(object) = existing.object_value().filter(is_ours) {
                set_keys(&object, &wanted);
            }
            Ok(())
        }
    }
}

pub fn remove(json: &Json) {
    let existing = json.find(&[]).and_then(|root| root.get(KEY));
    let ours = existing.filter(|existing| existing.object_value().as_ref().is_some_and(is_ours));
    ours.into_iter().for_each(|existing| existing.remove());
}

/// Returns the program of our status line, if it is installed.
pub fn program(settings: &Value) -> Option<String> {
    program_of(settings.get(KEY)?)
}

fn is_ours(object: &CstObject) -> bool {
    object.to_serde_value().as_ref().and_then(program_of).is_some()
}

/// Returns the program if the command is exactly `…/tanmi statusline`. A command that the user edited is not ours.
fn program_of(line: &Value) -> Option<String> {
    let words = split_words(line.get("command")?.as_str()?)?;
    match words.as_slice() {
        [program, verb] if is_tanmi(program) && verb == "statusline" => Some(program.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_line_only_own_is_updated_and_removed() {
        let ours = r#"{"statusLine":{"type":"command","command":"/usr/bin/tanmi statusline"}}"#;
        for (before, after) in [
            ("{}", Some("/usr/bin/tanmi")),
            (
                r#"{"statusLine": {"type": "command", "command": "/old/tanmi statusline", "padding": 0}}"#,
                Some("/usr/bin/tanmi"),
            ),
            (r#"{"statusLine": {"type": "command", "command": "my-line"}}"#, None),
            (r#"{"statusLine": {"type": "command", "command": "tanmi statusline | cut -c1-20"}}"#, None),
            (r#"{"statusLine": null}"#, None),
            (r#"{"statusLine": "x"}"#, None),
        ] {
            let mut json = Json::parse(before).unwrap();
            add(&mut json, "/usr/bin/tanmi").unwrap();
            assert_eq!(program(&json.value()).as_deref(), after, "{before}");
            if after.is_none() {
                assert_eq!(json.text(), before);
                remove(&json);
                assert_eq!(json.text(), before);
            }
        }
        let json = Json::parse(ours).unwrap();
        remove(&json);
        assert_eq!(json.value(), json!({}));
    }
}
