//! Cursor: `conversation_id` and `workspace_roots` in, flat fields out. It also runs the hooks in the settings of
//! Claude Code.

use serde_json::{Value, json};
use tanmi_event::{CompactionRecipient, Event, EventKind, Payload, Platform, Source, StartSource};

use crate::fields::MAX_PATH;
use crate::transcript::text;
use crate::{
    BorrowedHooks, ClientSpec, Environment, Fields, GuideLocation, Hook, HookFormat, InstallNote, Location,
    Message, NoteCondition, PerScope, Recipe, Transcript, Wire, claude_code, extend_prompt, non_blank,
    plain_server,
};

pub static PLATFORM: Platform = Platform {
    id: "cursor",
    needs_refresh: true,
    // One process runs all windows.
    has_shared_process: true,
    compaction: CompactionRecipient::User,
    loaded_files: &["AGENTS.md"],
    ..Platform::DEFAULTS
};

pub static CLIENT: ClientSpec = ClientSpec {
    platform: &PLATFORM,
    name: "Cursor",
    wire: Wire {
        read,
        write,
        sample: ("sessionStart", include_str!("../fixtures/cursor/sessionStart.json")),
        borrowed_hooks: Some(BorrowedHooks {
            owner: &claude_code::PLATFORM,
            own_fields: &["conversation_id", "cursor_version"],
        }),
        mcp_names: &["cursor-vscode", "cursor"],
        call_session_keys: &[],
        status_line: None,
    },
    environment: Environment { agent: &["CURSOR_AGENT", "CURSOR_TRACE_ID"], session: &[], process: None },
    transcript: Some(Transcript { read_line, generated_tags: &[], folder: None }),
    recipe: Recipe {
        program: "cursor",
        folder: ".cursor",
        folder_variable: None,
        hook_file: PerScope::both(Location::Folder("hooks.json")),
        server_file: PerScope::both(Some(Location::Folder("mcp.json"))),
        guide: PerScope {
            // User rules are stored in the settings of the application.
            user: None,
            project: Some(GuideLocation::OwnFile(Location::Folder("rules/tanmi.mdc"))),
        },
        hook_format: HookFormat::Flat,
        hooks: &[
            Hook::new("sessionStart", 10),
            Hook::new("beforeSubmitPrompt", 5),
            Hook { matcher: Some("Task"), reports_tools: true, ..Hook::new("preToolUse", 5) },
            Hook::new("preCompact", 5),
            Hook { once: true, ..Hook::new("stop", 10) },
            Hook::new("sessionEnd", 30),
        ],
        hook_keys: &[],
        timeout_units_per_second: 1,
        off_switches: &[],
        allowed_tools: None,
        server: plain_server,
        notes: &[
            InstallNote {
                condition: NoteCondition::ServerChanged,
                zh: "Cursor：在 Settings → MCP 中确认 tanmi 已启用",
                en: "Cursor: make sure that tanmi is enabled in Settings → MCP",
            },
            InstallNote {
                condition: NoteCondition::InstalledWith(claude_code::PLATFORM.id),
                zh: "Cursor 也会运行 Claude Code 的钩子；每个事件只由其中一个注入文本",
                en: "Cursor also runs the hooks of Claude Code; only one of the two injects text per event",
            },
        ],
    },
};

fn read(name: Option<&str>, fields: &Fields) -> Option<Event> {
    let kind = match fields.text("hook_event_name").as_deref().or(name)? {
        "sessionStart" | "SessionStart" => EventKind::SessionStart,
        "beforeSubmitPrompt" | "UserPromptSubmit" => EventKind::PromptSubmit,
        "preToolUse" | "PreToolUse" if is_agent_tool(fields) => EventKind::SubagentStart,
        "preToolUse" | "PreToolUse" => EventKind::PreToolUse,
        "preCompact" | "PreCompact" => EventKind::PreCompact,
        "stop" | "Stop" => EventKind::Stop,
        "sessionEnd" | "SessionEnd" => EventKind::SessionEnd,
        _ => return None,
    };
    // Documented as a list; any other type is ignored.
    let root = fields.0.get("workspace_roots").and_then(|roots| roots.get(0)?.as_str().map(String::from));
    let input = fields.0.get("tool_input");
    let is_subagent = kind == EventKind::SubagentStart;
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
        agent_id: fields.id("tool_use_id").filter(|_| is_subagent),
        agent_type: input
            .filter(|_| is_subagent)
            .and_then(|input| input.get("subagent_type")?.as_str().map(String::from)),
        tool_name: fields.text("tool_name"),
        tool_call_id: fields.id("tool_use_id"),
        tool_input: input.map(ToString::to_string),
        ..Payload::default()
    };
    let session = fields.id("conversation_id").or_else(|| fields.id("session_id"))?;
    Some(Event { source: Source::Hook, platform: &PLATFORM, kind, session, payload })
}

/// Returns whether a tool starts a subagent. Text returned at its start event does not reach a subagent, but the
/// arguments of the tool do.
fn is_agent_tool(fields: &Fields) -> bool {
    matches!(fields.text("tool_name").as_deref(), Some("Task" | "Agent"))
}

/// Writes both the field that Cursor delivers and the one that the specification names.
fn write(event: &Event, text: &str) -> Option<String> {
    match event.kind {
        EventKind::SessionStart | EventKind::PreToolUse => {
            Some(json!({"additional_context": text}).to_string())
        }
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

/// Reads a line of a transcript.
fn read_line(line: &Value) -> Option<Message<'_>> {
    let message = line.get("message")?;
    Some(Message {
        role: text(message, "role").or_else(|| text(line, "role")),
        content: message.get("content").or_else(|| message.get("text")),
        timestamp: text(line, "timestamp"),
        ..Message::default()
    })
}
