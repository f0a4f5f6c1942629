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
    let text = wording(decision, event.platform);
    match event.platform {
        p if *p == CLAUDE_CODE => claude_code::write(event, &text),
        p if *p == CURSOR => cursor::write(event, &text),
        _ => None,
    }
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
                "claude-code SessionStart.clear.json session_start Some(Clear)",
                "claude-code SessionStart.compact.json session_start Some(Compact)",
                "claude-code SessionStart.fork.json session_start Some(Fork)",
                "claude-code SessionStart.resume.json session_start Some(Resume)",
                "claude-code SessionStart.startup.json session_start Some(Startup)",
                "claude-code UserPromptSubmit.json prompt_submit None",
                "cursor beforeSubmitPrompt.json prompt_submit None",
                "cursor preCompact.json pre_compact None",
                "cursor sessionStart.json session_start Some(Startup)",
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
