//! Copilot CLI: camel case in, flat fields out. It also runs the hooks in a project's Claude Code settings, with
//! the field and event names of Claude Code; there too it accepts only the flat field.

use serde_json::json;
use tanmi_event::{COPILOT_CLI, Event, EventKind, Payload, Source, StartSource};

use crate::Fields;

pub fn read(name: Option<&str>, bytes: &[u8]) -> Option<Event> {
    event(name, &Fields::parse(bytes)?)
}

pub fn event(name: Option<&str>, fields: &Fields) -> Option<Event> {
    let kind = match fields.text("hook_event_name").as_deref().or(name)? {
        "sessionStart" | "SessionStart" => EventKind::SessionStart,
        "userPromptSubmitted" | "UserPromptSubmit" => EventKind::PromptSubmit,
        "subagentStart" | "SubagentStart" => EventKind::SubagentStart,
        "preCompact" | "PreCompact" => EventKind::PreCompact,
        "agentStop" | "Stop" => EventKind::Stop,
        "sessionEnd" | "SessionEnd" => EventKind::SessionEnd,
        _ => return None,
    };
    let id_of = |camel: &str, snake: &str| fields.id(camel).or_else(|| fields.id(snake));
    let agent_id = id_of("agentId", "agent_id");
    // A subagent reports its prompts and stops as a session of its own.
    if agent_id.is_some() && kind != EventKind::SubagentStart {
        return None;
    }
    let start = StartSource::from_word(&fields.text("source").unwrap_or_default());
    let transcript = fields.path("transcriptPath").or_else(|| fields.path("transcript_path"));
    let payload = Payload {
        prompt: fields.text("prompt"),
        start: (kind == EventKind::SessionStart).then_some(start),
        in_loop: fields.flag("stop_hook_active"),
        reason: fields.text("reason"),
        transcript: transcript.map(Into::into),
        cwd: fields.path("cwd"),
        agent_id,
        agent_type: id_of("agentType", "agent_type"),
        ..Payload::default()
    };
    let session = id_of("sessionId", "session_id")?;
    Some(Event { source: Source::Hook, platform: &COPILOT_CLI, kind, session, payload })
}

pub fn write(event: &Event, text: &str) -> Option<String> {
    match event.kind {
        EventKind::SessionStart | EventKind::PromptSubmit | EventKind::SubagentStart => {
            Some(json!({"additionalContext": text}).to_string())
        }
        EventKind::Stop => Some(json!({"decision": "block", "reason": text}).to_string()),
        _ => None,
    }
}
