//! Codex: the events and responses of Claude Code. Codex rejects a response that contains any unknown field.

use tanmi_event::{CODEX, Event, EventKind, Source};

use crate::{Fields, claude_code};

pub fn read(name: Option<&str>, bytes: &[u8]) -> Option<Event> {
    let fields = Fields::parse(bytes)?;
    let kind = claude_code::kind(fields.text("hook_event_name").as_deref().or(name)?)?;
    // Prompts of a subagent carry the session id of its parent.
    if fields.id("agent_id").is_some() && kind != EventKind::SubagentStart {
        return None;
    }
    let payload = claude_code::payload(&fields, kind, "turn_id");
    let session = fields.id("session_id")?;
    Some(Event { source: Source::Hook, platform: &CODEX, kind, session, payload })
}

pub fn write(event: &Event, text: &str) -> Option<String> {
    match event.kind {
        // No text returned here reaches the model or the user.
        EventKind::PreCompact => None,
        _ => claude_code::write(event, text),
    }
}
