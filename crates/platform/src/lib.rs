//! The only crate that knows any agent's JSON. Unknown events and fields are no errors: they are nobody's business.

use tanmi_event::{CLAUDE_CODE, CURSOR, Decision, Event, Platform, wording};

mod claude_code;
mod cursor;

/// What a client wrote on the hook's standard input, if it is something we speak about. `name` is the event as the
/// installed command names it, for payloads that do not.
pub fn read(platform: &'static Platform, name: Option<&str>, bytes: &[u8]) -> Option<Event> {
    match platform {
        p if *p == CLAUDE_CODE => claude_code::read(name, bytes),
        p if *p == CURSOR => cursor::read(name, bytes),
        _ => None,
    }
}

/// What the client is answered; nothing where there is nothing to say.
pub fn write(event: &Event, decision: &Decision) -> Option<String> {
    if !decision.should_respond {
        return None;
    }
    let text = wording(decision);
    if text.is_empty() {
        return None;
    }
    match event.platform {
        p if *p == CLAUDE_CODE => claude_code::write(event, &text),
        p if *p == CURSOR => cursor::write(event, &text),
        _ => None,
    }
}

/// A payload as its fields, forgiving: of two fields of one name the last counts, and a field of another type is none.
struct Fields(serde_json::Map<String, serde_json::Value>);

/// Longer paths are nobody's, and cost time.
const MAX_PATH: usize = 4096;
/// As long as a session's name may be.
const MAX_ID: usize = 512;

impl Fields {
    fn parse(bytes: &[u8]) -> Option<Fields> {
        let parsed = serde_json::from_slice(bytes).or_else(|_| serde_json::from_slice(&mended(bytes)));
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
        filled(self.text(name)).filter(|id| id.len() <= MAX_ID)
    }

    fn path(&self, name: &str) -> Option<String> {
        filled(self.text(name)).filter(|path| path.len() <= MAX_PATH)
    }
}

/// A text that was cut in the middle of a character has half of it as an escape, which is no JSON.
fn mended(bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    let half = |at: usize| -> Option<u16> {
        let escape = bytes.get(at..at + 6).filter(|escape| escape.starts_with(b"\\u"))?;
        let code = u16::from_str_radix(std::str::from_utf8(&escape[2..]).ok()?, 16).ok()?;
        (0xD800..0xE000).contains(&code).then_some(code)
    };
    let mut at = 0;
    while at < bytes.len() {
        match (half(at), half(at + 6)) {
            (Some(0xD800..0xDC00), Some(0xDC00..)) => at += 12,
            (Some(_), _) => {
                out[at..at + 6].copy_from_slice(b"\\ufffd");
                at += 6;
            }
            // An escaped backslash is not the start of an escape.
            (None, _) if bytes[at] == b'\\' => at += 2,
            (None, _) => at += 1,
        }
    }
    out
}

/// A text that is really there.
fn filled(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use tanmi_event::{Action, ActionKind, EventKind, StartSource};

    use super::*;

    fn fixture(platform: &str, name: &str) -> Vec<u8> {
        std::fs::read(format!("{}/fixtures/{platform}/{name}.json", env!("CARGO_MANIFEST_DIR"))).unwrap()
    }

    /// Every recorded payload is taken: as an event, or as nobody's business.
    #[test]
    fn recorded_payloads() {
        let mut seen = Vec::new();
        for platform in [&CLAUDE_CODE, &CURSOR] {
            let dir = format!("{}/fixtures/{}", env!("CARGO_MANIFEST_DIR"), platform.id);
            for entry in std::fs::read_dir(dir).unwrap().flatten() {
                let name = entry.file_name().into_string().unwrap();
                if let Some(event) = read(platform, None, &std::fs::read(entry.path()).unwrap()) {
                    seen.push(format!(
                        "{} {name} {} {:?}",
                        platform.id,
                        event.kind.as_str(),
                        event.payload.start
                    ));
                    assert!(!event.session.is_empty() && event.payload.cwd.is_some(), "{name}");
                }
            }
        }
        seen.sort();
        assert_eq!(
            seen,
            [
                "claude-code PreCompact.json pre_compact None",
                "claude-code SessionEnd.clear.json session_end None",
                "claude-code SessionEnd.other.json session_end None",
                "claude-code SessionStart.clear.json session_start Some(Clear)",
                "claude-code SessionStart.compact.json session_start Some(Compact)",
                "claude-code SessionStart.fork.json session_start Some(Fork)",
                "claude-code SessionStart.resume.json session_start Some(Resume)",
                "claude-code SessionStart.startup.json session_start Some(Startup)",
                "claude-code Stop.json stop None",
                "claude-code UserPromptSubmit.json prompt_submit None",
                "cursor beforeSubmitPrompt.json prompt_submit None",
                "cursor preCompact.json pre_compact None",
                "cursor sessionEnd.json session_end None",
                "cursor sessionStart.json session_start Some(Startup)",
                "cursor stop.aborted.json stop None",
                "cursor stop.completed.json stop None",
                "cursor stop.second-loop.json stop None",
            ]
        );
    }

    #[test]
    fn what_nobody_typed_is_no_prompt() {
        assert!(
            read(&CLAUDE_CODE, None, &fixture("claude-code", "UserPromptSubmit.task-notification")).is_none()
        );
        let in_subagent =
            br#"{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt":"x","agent_id":"a"}"#;
        assert!(read(&CLAUDE_CODE, None, in_subagent).is_none());
    }

    /// Cursor also runs the hooks of Claude Code's files, with its own payloads.
    #[test]
    fn cursor_s_payloads_are_cursor_s_whoever_they_are_handed_to() {
        let bytes = fixture("cursor", "beforeSubmitPrompt");
        let (direct, by_claude) =
            (read(&CURSOR, None, &bytes).unwrap(), read(&CLAUDE_CODE, None, &bytes).unwrap());
        assert_eq!((by_claude.platform.id, &by_claude.session), ("cursor", &direct.session));
        let renamed =
            br#"{"session_id":"s","cursor_version":"3","hook_event_name":"UserPromptSubmit","prompt":"x"}"#;
        let event = read(&CLAUDE_CODE, Some("UserPromptSubmit"), renamed).unwrap();
        assert_eq!((event.platform.id, event.kind), ("cursor", EventKind::PromptSubmit));
    }

    #[test]
    fn odd_payloads_are_nobody_s_business() {
        for bytes in [&b""[..], b"{", b"[]", b"null", b"7", b"{}", b"\xff\xfe", br#"{"session_id":7}"#] {
            for platform in [&CLAUDE_CODE, &CURSOR] {
                assert!(read(platform, Some("SessionStart"), bytes).is_none());
                assert!(read(platform, Some("sessionStart"), bytes).is_none());
            }
        }
        for roots in ["null", "\"/x\"", "[]", "[7]", "{}"] {
            let bytes = format!(r#"{{"conversation_id":"c","workspace_roots":{roots}}}"#);
            let event = read(&CURSOR, Some("sessionStart"), bytes.as_bytes()).unwrap();
            assert_eq!(event.payload.cwd, None, "{roots}");
        }
        let named = read(&CLAUDE_CODE, Some("SessionStart"), br#"{"session_id":"s"}"#).unwrap();
        assert_eq!((named.kind, named.payload.start), (EventKind::SessionStart, Some(StartSource::Startup)));
    }

    #[test]
    fn what_is_wrong_in_one_field_costs_that_field() {
        let prompt =
            |text: &str| read(&CLAUDE_CODE, Some("UserPromptSubmit"), text.as_bytes()).unwrap().payload;
        let cut = prompt(r#"{"session_id":"s","prompt":"cut \ud83d"}"#);
        assert_eq!(cut.prompt.as_deref(), Some("cut \u{fffd}"));
        assert_eq!(
            prompt(r#"{"session_id":"s","prompt":"\\ud83d \ud83d\ude00 \ude00"}"#).prompt.as_deref(),
            Some("\\ud83d 😀 \u{fffd}")
        );
        let odd = prompt(r#"{"session_id":"s","prompt":["x"],"cwd":7,"prompt_id":"","cwd":"/p"}"#);
        assert_eq!((odd.prompt, odd.cwd.as_deref(), odd.prompt_id), (None, Some("/p"), None));
        let long = format!(r#"{{"session_id":"s","cwd":"{}"}}"#, "/a".repeat(5000));
        assert_eq!(prompt(&long).cwd, None);
        let id = format!(r#"{{"session_id":"{}"}}"#, "s".repeat(600));
        assert!(read(&CLAUDE_CODE, Some("UserPromptSubmit"), id.as_bytes()).is_none());
    }

    #[test]
    fn answers_in_each_client_s_words() {
        let decision = |text: &str| Decision {
            should_respond: true,
            actions: vec![Action {
                kind: ActionKind::Reminder,
                content: text.into(),
                priority: 1,
                rule: "r".into(),
            }],
            throttle: vec![],
        };
        let claude = read(&CLAUDE_CODE, None, &fixture("claude-code", "UserPromptSubmit")).unwrap();
        assert_eq!(
            write(&claude, &decision("a\"b")).unwrap(),
            concat!(
                r#"{"hookSpecificOutput":{"hookEventName":"UserPromptSubmit","additionalContext":"#,
                r#""<tanmi-smart-reminder>\na\"b\n</tanmi-smart-reminder>"}}"#
            )
        );
        let cursor = read(&CURSOR, None, &fixture("cursor", "beforeSubmitPrompt")).unwrap();
        let answer: serde_json::Value =
            serde_json::from_str(&write(&cursor, &decision("x")).unwrap()).unwrap();
        assert_eq!((&answer["continue"], answer.as_object().unwrap().len()), (&true.into(), 3));
        assert_eq!(answer["additional_context"], answer["agent_message"]);
        assert_eq!(write(&cursor, &Decision::default()), None);
    }
}
