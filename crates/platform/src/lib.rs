//! Reads and writes the JSON of each client; no other crate knows these formats. Unknown events and fields are
//! ignored.

use tanmi_event::{CLAUDE_CODE, CODEX, COPILOT_CLI, CURSOR, Event, GEMINI_CLI, Platform};

mod claude_code;
mod codex;
mod copilot_cli;
mod cursor;
mod gemini_cli;

/// Parses what a client wrote to the hook's standard input. Returns `None` for an event that is not handled.
/// `name` is the event in the installed hook command, for payloads without an event name.
pub fn read(platform: &'static Platform, name: Option<&str>, bytes: &[u8]) -> Option<Event> {
    match platform {
        p if *p == CLAUDE_CODE => claude_code::read(name, bytes),
        p if *p == CURSOR => cursor::read(name, bytes),
        p if *p == CODEX => codex::read(name, bytes),
        p if *p == GEMINI_CLI => gemini_cli::read(name, bytes),
        p if *p == COPILOT_CLI => copilot_cli::read(name, bytes),
        _ => None,
    }
}

/// Returns the response that injects this text, or `None` if there is no text to inject.
pub fn write(event: &Event, text: &str) -> Option<String> {
    if text.is_empty() {
        return None;
    }
    match event.platform {
        p if *p == CLAUDE_CODE => claude_code::write(event, text),
        p if *p == CURSOR => cursor::write(event, text),
        p if *p == CODEX => codex::write(event, text),
        p if *p == GEMINI_CLI => gemini_cli::write(event, text),
        p if *p == COPILOT_CLI => copilot_cli::write(event, text),
        _ => None,
    }
}

/// Returns a recorded session start payload of a client with its event name, to test whether a hook responds.
pub fn sample(platform: &Platform) -> Option<(&'static str, &'static str)> {
    Some(match platform {
        p if *p == CLAUDE_CODE => {
            ("SessionStart", include_str!("../fixtures/claude-code/SessionStart.startup.json"))
        }
        p if *p == CURSOR => ("sessionStart", include_str!("../fixtures/cursor/sessionStart.json")),
        p if *p == CODEX => ("SessionStart", include_str!("../fixtures/codex/SessionStart.startup.json")),
        p if *p == GEMINI_CLI => {
            ("SessionStart", include_str!("../fixtures/gemini-cli/SessionStart.startup.json"))
        }
        p if *p == COPILOT_CLI => {
            ("sessionStart", include_str!("../fixtures/copilot-cli/sessionStart.new.json"))
        }
        _ => return None,
    })
}

/// The fields of a payload. Tolerant: of two fields with the same name the last one counts, and a field of an
/// unexpected type counts as missing.
struct Fields(serde_json::Map<String, serde_json::Value>);

/// Maximum length of a path. A longer one is not a real path and would only cost time.
const MAX_PATH: usize = 4096;
/// Maximum length of an id, equal to the maximum of a session id.
const MAX_ID: usize = 512;

impl Fields {
    fn parse(bytes: &[u8]) -> Option<Fields> {
        let parsed = serde_json::from_slice(bytes)
            .or_else(|_| serde_json::from_slice(&replace_lone_surrogates(bytes)));
        match parsed.ok()? {
            serde_json::Value::Object(fields) => Some(Fields(fields)),
            _ => None,
        }
    }

    fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    fn text(&self, name: &str) -> Option<String> {
        self.0.get(name)?.as_str().map(str::to_owned)
    }

    fn flag(&self, name: &str) -> bool {
        self.0.get(name).and_then(serde_json::Value::as_bool).unwrap_or(false)
    }

    fn number(&self, name: &str) -> Option<i64> {
        let value = self.0.get(name)?;
        value.as_i64().or_else(|| value.as_f64().map(|number| number.round() as i64))
    }

    fn id(&self, name: &str) -> Option<String> {
        non_blank(self.text(name)).filter(|id| id.len() <= MAX_ID)
    }

    fn path(&self, name: &str) -> Option<String> {
        non_blank(self.text(name)).filter(|path| path.len() <= MAX_PATH)
    }
}

/// Returns the arguments of a subagent call with `text` appended to its prompt. Returns the whole object, because
/// a client may replace the arguments instead of merging them.
fn extend_prompt(event: &Event, field: &str, text: &str) -> Option<serde_json::Value> {
    let mut input: serde_json::Value = serde_json::from_str(event.payload.tool_input.as_deref()?).ok()?;
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
fn non_blank(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.trim().is_empty())
}

#[cfg(test)]
mod tests;
