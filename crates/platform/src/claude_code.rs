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
    /// Set inside a subagent, which is not the session of a person.
    agent_id: Option<String>,
}

pub fn read(name: Option<&str>, bytes: &[u8]) -> Option<Event> {
    let wire: Wire = serde_json::from_slice(bytes).ok()?;
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
    let start = match wire.source.as_deref() {
        Some("resume") => Some(StartSource::Resume),
        Some("clear") => Some(StartSource::Clear),
        Some("compact") => Some(StartSource::Compact),
        Some("fork") => Some(StartSource::Fork),
        _ => Some(StartSource::Startup),
    };
    let payload = Payload {
        prompt: wire.prompt,
        prompt_id: wire.prompt_id,
        node_id: None,
        start: start.filter(|_| kind == EventKind::SessionStart),
        cwd: filled(wire.cwd),
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
