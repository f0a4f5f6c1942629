//! Claude Code: `session_id`, `hook_event_name`, and a `hookSpecificOutput` back.

use serde::Deserialize;
use serde_json::json;
use tanmi_event::{CLAUDE_CODE, Event, EventKind, Payload, Source, StartSource};

use crate::filled;

#[derive(Deserialize)]
struct Wire {
    session_id: Option<String>,
    hook_event_name: Option<String>,
    source: Option<String>,
    prompt: Option<String>,
    prompt_id: Option<String>,
    cwd: Option<String>,
    /// Only Cursor has these, which also runs the hooks of Claude Code's files.
    conversation_id: Option<String>,
    cursor_version: Option<String>,
    /// Set inside a subagent, which is not the session of a person.
    agent_id: Option<String>,
}

pub fn read(name: Option<&str>, bytes: &[u8]) -> Option<Event> {
    let wire: Wire = serde_json::from_slice(bytes).ok()?;
    if wire.conversation_id.is_some() || wire.cursor_version.is_some() {
        return crate::cursor::read(name, bytes);
    }
    let kind = match wire.hook_event_name.as_deref().or(name)? {
        "SessionStart" => EventKind::SessionStart,
        "UserPromptSubmit" => EventKind::PromptSubmit,
        _ => return None,
    };
    // The result of a background agent arrives as a prompt that nobody typed.
    let is_report =
        wire.prompt.as_deref().is_some_and(|prompt| prompt.trim_start().starts_with("<task-notification>"));
    if filled(wire.agent_id).is_some() || is_report {
        return None;
    }
    let start = StartSource::from_word(wire.source.as_deref().unwrap_or_default());
    let payload = Payload {
        prompt: wire.prompt,
        prompt_id: wire.prompt_id,
        start: (kind == EventKind::SessionStart).then_some(start),
        cwd: filled(wire.cwd),
        ..Payload::default()
    };
    let session = filled(wire.session_id)?;
    Some(Event { source: Source::Hook, platform: &CLAUDE_CODE, kind, session, payload })
}

pub fn write(event: &Event, text: &str) -> Option<String> {
    let name = match event.kind {
        EventKind::SessionStart => "SessionStart",
        EventKind::PromptSubmit => "UserPromptSubmit",
        _ => return None,
    };
    Some(json!({"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}}).to_string())
}
