//! Claude Code: `session_id` and `hook_event_name` in, `hookSpecificOutput` out.

use serde_json::json;
use tanmi_event::{CLAUDE_CODE, Event, EventKind, Payload, Source, StartSource};

use crate::Fields;

pub fn read(name: Option<&str>, bytes: &[u8]) -> Option<Event> {
    let fields = Fields::parse(bytes)?;
    // Only Cursor sends these fields. It also runs the hooks in the settings of Claude Code.
    if fields.has("conversation_id") || fields.has("cursor_version") {
        return crate::cursor::event(name, &fields);
    }
    // Only Copilot sends this field. It also runs the hooks in a project's Claude Code settings.
    if fields.has("timestamp") {
        return crate::copilot_cli::event(name, &fields);
    }
    let kind = kind(fields.text("hook_event_name").as_deref().or(name)?)?;
    let prompt = fields.text("prompt");
    // The result of a background agent arrives as a prompt that the user did not type.
    let is_background_result =
        prompt.as_deref().is_some_and(|prompt| prompt.trim_start().starts_with("<task-notification>"));
    let agent = (fields.id("agent_id"), fields.id("agent_type"));
    let is_subagent = kind == EventKind::SubagentStart;
    // Ignore events inside a subagent. A subagent without a type is internal to the client, used for a
    // compaction.
    if is_background_result || agent.0.is_some() != is_subagent || is_subagent && agent.1.is_none() {
        return None;
    }
    let payload = payload(&fields, kind, "prompt_id");
    let session = fields.id("session_id")?;
    Some(Event { source: Source::Hook, platform: &CLAUDE_CODE, kind, session, payload })
}

/// Returns the payload of an event. Codex sends the same fields, but another name for the prompt id.
pub fn payload(fields: &Fields, kind: EventKind, prompt_id: &str) -> Payload {
    let start = StartSource::from_word(&fields.text("source").unwrap_or_default());
    let is_subagent = kind == EventKind::SubagentStart;
    Payload {
        prompt: fields.text("prompt"),
        prompt_id: fields.id(prompt_id),
        start: (kind == EventKind::SessionStart).then_some(start),
        in_loop: fields.flag("stop_hook_active"),
        reason: fields.text("reason"),
        transcript: fields.path("transcript_path").map(Into::into),
        cwd: fields.path("cwd"),
        agent_id: fields.id("agent_id"),
        agent_type: fields.id("agent_type").filter(|_| is_subagent),
        ..Payload::default()
    }
}

/// Returns the kind of an event name. Codex uses the same names.
pub fn kind(name: &str) -> Option<EventKind> {
    Some(match name {
        "SessionStart" => EventKind::SessionStart,
        "UserPromptSubmit" => EventKind::PromptSubmit,
        "SubagentStart" => EventKind::SubagentStart,
        "PreCompact" => EventKind::PreCompact,
        "Stop" => EventKind::Stop,
        "SessionEnd" => EventKind::SessionEnd,
        _ => return None,
    })
}

pub fn write(event: &Event, text: &str) -> Option<String> {
    let name = match event.kind {
        EventKind::SessionStart => "SessionStart",
        EventKind::PromptSubmit => "UserPromptSubmit",
        EventKind::SubagentStart => "SubagentStart",
        // Plain text goes to the model that writes the summary.
        EventKind::PreCompact => return Some(text.to_owned()),
        EventKind::Stop => return Some(json!({"decision": "block", "reason": text}).to_string()),
        _ => return None,
    };
    Some(json!({"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}}).to_string())
}
