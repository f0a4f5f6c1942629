//! Cursor: `conversation_id`, `workspace_roots`, and flat fields back.

use serde::Deserialize;
use serde_json::{Value, json};
use tanmi_event::{CURSOR, Event, EventKind, Payload, Source, StartSource};

use crate::filled;

#[derive(Deserialize)]
struct Wire {
    conversation_id: Option<String>,
    session_id: Option<String>,
    generation_id: Option<String>,
    hook_event_name: Option<String>,
    prompt: Option<String>,
    /// A list as documented; whatever else it may be is nobody's folder.
    workspace_roots: Option<Value>,
    cwd: Option<String>,
}

pub fn read(name: Option<&str>, bytes: &[u8]) -> Option<Event> {
    let wire: Wire = serde_json::from_slice(bytes).ok()?;
    let kind = match wire.hook_event_name.as_deref().or(name)? {
        "sessionStart" | "SessionStart" => EventKind::SessionStart,
        "beforeSubmitPrompt" | "UserPromptSubmit" => EventKind::PromptSubmit,
        "preCompact" | "PreCompact" => EventKind::PreCompact,
        _ => return None,
    };
    let root = wire.workspace_roots.as_ref().and_then(|roots| roots.get(0)?.as_str().map(String::from));
    let payload = Payload {
        prompt: wire.prompt,
        prompt_id: wire.generation_id,
        start: (kind == EventKind::SessionStart).then_some(StartSource::Startup),
        cwd: filled(root).or(filled(wire.cwd)),
        ..Payload::default()
    };
    let session = filled(wire.conversation_id).or(filled(wire.session_id))?;
    Some(Event { source: Source::Hook, platform: &CURSOR, kind, session, payload })
}

/// Both the field that is delivered and the one the specification names.
pub fn write(event: &Event, text: &str) -> Option<String> {
    match event.kind {
        EventKind::SessionStart => Some(json!({"additional_context": text}).to_string()),
        EventKind::PromptSubmit => {
            Some(json!({"continue": true, "additional_context": text, "agent_message": text}).to_string())
        }
        _ => None,
    }
}
