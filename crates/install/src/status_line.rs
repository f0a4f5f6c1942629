//! Our status line in an agent's settings: put in where there is none, brought up to date where it is ours, and taken
//! out again. Somebody else's is left alone: there is room for one.

use jsonc_parser::cst::CstObject;
use serde_json::{Value, json};

use crate::Refusal;
use crate::command::{is_tanmi, quote, words};
use crate::json::{Json, input, set_keys};

const KEY: &str = "statusLine";

pub fn put(json: &Json, program: &str) -> Result<(), Refusal> {
    let root = json.object(&[])?;
    let wanted = json!({"type": "command", "command": format!("{} statusline", quote(program))});
    match root.get(KEY) {
        None => {
            root.append(KEY, input(&wanted));
        }
        Some(known) => {
            if let Some(object) = known.object_value().filter(is_ours) {
                set_keys(&object, &wanted);
            }
        }
    }
    Ok(())
}

pub fn take(json: &Json) {
    let known = json.find(&[]).and_then(|root| root.get(KEY));
    let ours = known.filter(|known| known.object_value().as_ref().is_some_and(is_ours));
    ours.into_iter().for_each(|known| known.remove());
}

/// The program of a status line that is ours.
pub fn program(settings: &Value) -> Option<String> {
    program_of(settings.get(KEY)?)
}

fn is_ours(object: &CstObject) -> bool {
    object.to_serde_value().as_ref().and_then(program_of).is_some()
}

/// `…/tanmi statusline` and nothing else: whatever a person made of it is theirs.
fn program_of(line: &Value) -> Option<String> {
    let words = words(line.get("command")?.as_str()?)?;
    match words.as_slice() {
        [program, verb] if is_tanmi(program) && verb == "statusline" => Some(program.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_ours_or_nobody_s() {
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
            let json = Json::parse(before).unwrap();
            put(&json, "/usr/bin/tanmi").unwrap();
            assert_eq!(program(&json.value()).as_deref(), after, "{before}");
            if after.is_none() {
                assert_eq!(json.text(), before);
                take(&json);
                assert_eq!(json.text(), before);
            }
        }
        let json = Json::parse(ours).unwrap();
        take(&json);
        assert_eq!(json.value(), json!({}));
    }
}
