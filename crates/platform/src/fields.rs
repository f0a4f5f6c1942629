//! The fields of a payload, read tolerantly.

use serde_json::{Map, Value};
use tanmi_event::Event;

/// The fields of a payload. Tolerant: of two fields with the same name the last one counts, and a field of an
/// unexpected type counts as missing.
#[derive(Debug)]
pub struct Fields(pub Map<String, Value>);

/// Maximum length of a path. A longer one is not a real path and would only cost time.
pub const MAX_PATH: usize = 4096;
/// Maximum length of an id, equal to the maximum of a session id.
const MAX_ID: usize = 512;

impl Fields {
    pub fn parse(bytes: &[u8]) -> Option<Fields> {
        let parsed = serde_json::from_slice(bytes)
            .or_else(|_| serde_json::from_slice(&replace_lone_surrogates(bytes)));
        match parsed.ok()? {
            Value::Object(fields) => Some(Fields(fields)),
            _ => None,
        }
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub fn text(&self, name: &str) -> Option<String> {
        self.0.get(name)?.as_str().map(str::to_owned)
    }

    pub fn flag(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or(false)
    }

    pub fn number(&self, name: &str) -> Option<i64> {
        let value = self.0.get(name)?;
        value.as_i64().or_else(|| value.as_f64().map(|number| number.round() as i64))
    }

    pub fn id(&self, name: &str) -> Option<String> {
        non_blank(self.text(name)).filter(|id| id.len() <= MAX_ID)
    }

    pub fn path(&self, name: &str) -> Option<String> {
        non_blank(self.text(name)).filter(|path| path.len() <= MAX_PATH)
    }
}

/// Returns the arguments of a subagent call with `text` appended to its prompt. Returns the whole object, because
/// a client may replace the arguments instead of merging them.
pub fn extend_prompt(event: &Event, field: &str, text: &str) -> Option<Value> {
    let mut input: Value = serde_json::from_str(event.payload.tool_input.as_deref()?).ok()?;
    let prompt = input.get(field)?.as_str()?;
    input[field] = format!("{prompt}\n\n{text}").into();
    Some(input)
}

/// Replaces unpaired surrogate escapes, which are invalid JSON. A client produces them when it cuts a text inside
/// a character.
fn replace_lone_surrogates(bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    let surrogate_at = |at: usize| -> Option<u16> {
        let escape = bytes.get(at..at + 6).filter(|escape| escape.starts_with(b"\\u"))?;
        let code = u16::from_str_radix(std::str::from_utf8(&escape[2..]).ok()?, 16).ok()?;
        (0xD800..0xE000).contains(&code).then_some(code)
    };
    let mut at = 0;
    while at < bytes.len() {
        match (surrogate_at(at), surrogate_at(at + 6)) {
            (Some(0xD800..0xDC00), Some(0xDC00..)) => at += 12,
            (Some(_), _) => {
                out[at..at + 6].copy_from_slice(b"\\ufffd");
                at += 6;
            }
            // An escaped backslash does not start a Unicode escape.
            (None, _) if bytes[at] == b'\\' => at += 2,
            (None, _) => at += 1,
        }
    }
    out
}

/// Returns the text if it is not blank.
pub fn non_blank(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.trim().is_empty())
}
