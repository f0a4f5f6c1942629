//! Cursor: `conversation_id` and `workspace_roots` in, flat fields out.

use serde_json::json;
use tanmi_event::{CURSOR, Event, EventKind, Payload, Source, StartSource};

use crate::{Fields, MAX_PATH, extend_prompt, non_blank};

pub fn read(name: Option<&str>, bytes: &[u8]) -> Option<Event> {
    event(name, &Fields::parse(bytes)?)
}

pub fn event(name: Option<&str>, fields: &Fields) -> Option<Event> {
    let kind = match fields.text("hook_event_name").as_deref().or(name)? {
        "sessionStart" | "SessionStart" => EventKind::SessionStart,
        "beforeSubmitPrompt" | "UserPromptSubmit" => EventKind::PromptSubmit,
        "preToolUse" | "PreToolUse" if is_agent_tool(fields) => EventKind::SubagentStart,
        "preCompact" | "PreCompact" => EventKind::PreCompact,
        "stop" | "Stop" => EventKind::Stop,
        "sessionEnd" | "SessionEnd" => EventKind::SessionEnd,
        _ => return None,
    };
    // Documented as a list; any other type is ignored.
    let root = fields.0.get("workspace_roots").and_then(|roots| roots.get(0)?.as_str().map(String::from));
    let input = fields.0.get("tool_input").filter(|_| kind == EventKind::SubagentStart);
    let payload = Payload {
        prompt: fields.text("prompt"),
        prompt_id: fields.id("generation_id"),
        start: (kind == EventKind::SessionStart).then_some(StartSource::Startup),
        status: fields.text("status"),
        in_loop: fields.number("loop_count").is_some_and(|count| count > 0)
            || fields.flag("stop_hook_active"),
        reason: fields.text("reason"),
        duration_ms: fields.number("duration_ms"),
        error: fields.text("error_message"),
        usage_percent: fields.number("context_usage_percent"),
        message_count: fields.number("message_count"),
        transcript: fields.path("transcript_path").map(Into::into),
        cwd: non_blank(root).filter(|root| root.len() <= MAX_PATH).or_else(|| fields.path("cwd")),
        agent_id: fields.id("tool_use_id").filter(|_| kind == EventKind::SubagentStart),
        agent_type: input.and_then(|input| input.get("subagent_type")?.as_str().map(String::from)),
        tool_input: input.map(ToString::to_string),
        ..Payload::default()
    };
    let session = fields.id("conversation_id").or_else(|| fields.id("session_id"))?;
    Some(Event { source: Source::Hook, platform: &CURSOR, kind, session, payload })
}

/// Returns whether a tool starts a subagent. Text returned at its start event does not reach a subagent, but the
/// arguments of the tool do.
fn is_agent_tool(fields: &Fields) -> bool {
    matches!(fields.text("tool_name").as_deref(), Some("Task" | "Agent"))
}

/// Writes both the field that Cursor delivers and the one that the specification names.
pub fn write(event: &Event, text: &str) -> Option<String> {
    match event.kind {
        EventKind::SessionStart => Some(json!({"additional_context": text}).to_string()),
        EventKind::PromptSubmit => {
            Some(json!({"continue": true, "additional_context": text, "agent_message": text}).to_string())
        }
        EventKind::SubagentStart => {
            Some(json!({"updated_input": extend_prompt(event, "prompt", text)?}).to_string())
        }
        // Shown to the user only; the agent does not receive it.
        EventKind::PreCompact => Some(json!({"user_message": text}).to_string()),
        EventKind::Stop => Some(json!({"followup_message": text}).to_string()),
        _ => None,
    }
}
