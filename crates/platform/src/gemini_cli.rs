//! Gemini CLI: its own event names. Text returned at a session start is inserted before the prompt, so it comes
//! back with the prompt. There is no event for a subagent, but hooks may change the arguments of the tool that
//! starts one.

use serde_json::json;
use tanmi_event::{Event, EventKind, GEMINI_CLI, Payload, Source, StartSource};

use crate::{Fields, extend_prompt};

/// Tools that start a subagent, and the argument that contains the prompt.
const AGENT_TOOLS: &[(&str, &str)] = &[("invoke_agent", "prompt"), ("generalist", "request")];

pub fn read(name: Option<&str>, bytes: &[u8]) -> Option<Event> {
    let fields = Fields::parse(bytes)?;
    let kind = match fields.text("hook_event_name").as_deref().or(name)? {
        "SessionStart" => EventKind::SessionStart,
        "BeforeAgent" => EventKind::PromptSubmit,
        "BeforeTool" if prompt_field(&fields).is_some() => EventKind::SubagentStart,
        "AfterAgent" => EventKind::Stop,
        "SessionEnd" => EventKind::SessionEnd,
        _ => return None,
    };
    let start = StartSource::from_word(&fields.text("source").unwrap_or_default());
    let is_subagent = kind == EventKind::SubagentStart;
    let input = fields.0.get("tool_input").filter(|_| is_subagent);
    let payload = Payload {
        prompt: fields.text("prompt").map(|prompt| strip_hook_context(&prompt).to_owned()),
        start: (kind == EventKind::SessionStart).then_some(start),
        in_loop: fields.flag("stop_hook_active"),
        reason: fields.text("reason"),
        transcript: fields.path("transcript_path").map(Into::into),
        cwd: fields.path("cwd"),
        agent_type: input.and_then(|input| input.get("agent_name")?.as_str().map(String::from)),
        tool_input: input.map(ToString::to_string),
        ..Payload::default()
    };
    let session = fields.id("session_id")?;
    Some(Event { source: Source::Hook, platform: &GEMINI_CLI, kind, session, payload })
}

fn prompt_field(fields: &Fields) -> Option<&'static str> {
    let tool = fields.text("tool_name")?;
    AGENT_TOOLS.iter().find(|(name, _)| *name == tool).map(|(_, field)| *field)
}

/// Returns the prompt as typed, without the text that hooks inserted before it.
fn strip_hook_context(prompt: &str) -> &str {
    let rest = prompt.strip_prefix("<hook_context>").and_then(|rest| rest.split_once("</hook_context>"));
    rest.map_or(prompt, |(_, typed)| typed.trim_start())
}

pub fn write(event: &Event, text: &str) -> Option<String> {
    let name = match event.kind {
        EventKind::SessionStart => "SessionStart",
        EventKind::PromptSubmit => "BeforeAgent",
        EventKind::SubagentStart => {
            let input = AGENT_TOOLS.iter().find_map(|(_, field)| extend_prompt(event, field, text))?;
            let answer = json!({"hookEventName": "BeforeTool", "tool_input": input});
            return Some(json!({"hookSpecificOutput": answer}).to_string());
        }
        EventKind::Stop => return Some(json!({"decision": "deny", "reason": text}).to_string()),
        _ => return None,
    };
    Some(json!({"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}}).to_string())
}
