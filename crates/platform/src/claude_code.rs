//! Claude Code: `session_id`, `hook_event_name`, and a `hookSpecificOutput` back.

use serde_json::json;
use tanmi_event::{CLAUDE_CODE, Event, EventKind, Payload, Source, StartSource};

use crate::Fields;

pub fn read(name: Option<&str>, bytes: &[u8]) -> Option<Event> {
    let fields = Fields::parse(bytes)?;
    // Only Cursor has these, which also runs the hooks of Claude Code's files.
    if fields.has("conversation_id") || fields.has("cursor_version") {
        return crate::cursor::event(name, &fields);
    }
    let kind = match fields.text("hook_event_name").as_deref().or(name)? {
        "SessionStart" => EventKind::SessionStart,
        "UserPromptSubmit" => EventKind::PromptSubmit,
        "PreCompact" => EventKind::PreCompact,
        "Stop" => EventKind::Stop,
        "SessionEnd" => EventKind::SessionEnd,
        _ => return None,
    };
    let prompt = fields.text("prompt");
    // The result of a background agent arrives as a prompt that nobody typed.
    let is_report =
        prompt.as_deref().is_some_and(|prompt| prompt.trim_start().starts_with("<task-notification>"));
    // A subagent is not the session of a person.
    if fields.id("agent_id").is_some() || is_report {
        return None;
    }
    let start = StartSource::from_word(&fields.text("source").unwrap_or_default());
    let payload = Payload {
        prompt,
        prompt_id: fields.id("prompt_id"),
        start: (kind == EventKind::SessionStart).then_some(start),
        in_loop: fields.flag("stop_hook_active"),
        reason: fields.text("reason"),
        transcript: fields.path("transcript_path").map(Into::into),
        cwd: fields.path("cwd"),
        ..Payload::default()
    };
    let session = fields.id("session_id")?;
    Some(Event { source: Source::Hook, platform: &CLAUDE_CODE, kind, session, payload })
}

pub fn write(event: &Event, text: &str) -> Option<String> {
    let name = match event.kind {
        EventKind::SessionStart => "SessionStart",
        EventKind::PromptSubmit => "UserPromptSubmit",
        // Plain text goes to whoever writes the summary.
        EventKind::PreCompact => return Some(text.to_owned()),
        EventKind::Stop => return Some(json!({"decision": "block", "reason": text}).to_string()),
        _ => return None,
    };
    Some(json!({"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}}).to_string())
}
