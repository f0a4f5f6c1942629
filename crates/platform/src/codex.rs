//! Codex: Claude Code's events and answers, with a reader that rejects an answer for a single unknown field.

use tanmi_event::{CODEX, Event, EventKind, Payload, Source, StartSource};

use crate::{Fields, claude_code};

pub fn read(name: Option<&str>, bytes: &[u8]) -> Option<Event> {
    let fields = Fields::parse(bytes)?;
    let kind = claude_code::kind(fields.text("hook_event_name").as_deref().or(name)?)?;
    let agent_id = fields.id("agent_id");
    // Prompts of a subagent come with the id of the session it works for.
    if agent_id.is_some() && kind != EventKind::SubagentStart {
        return None;
    }
    let start = StartSource::from_word(&fields.text("source").unwrap_or_default());
    let payload = Payload {
        prompt: fields.text("prompt"),
        prompt_id: fields.id("turn_id"),
        start: (kind == EventKind::SessionStart).then_some(start),
        in_loop: fields.flag("stop_hook_active"),
        reason: fields.text("reason"),
        transcript: fields.path("transcript_path").map(Into::into),
        cwd: fields.path("cwd"),
        agent_id,
        agent_type: fields.id("agent_type"),
        ..Payload::default()
    };
    let session = fields.id("session_id")?;
    Some(Event { source: Source::Hook, platform: &CODEX, kind, session, payload })
}

pub fn write(event: &Event, text: &str) -> Option<String> {
    match event.kind {
        // Nothing that is said here reaches anybody.
        EventKind::PreCompact => None,
        _ => claude_code::write(event, text),
    }
}
