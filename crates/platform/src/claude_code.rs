//! Claude Code: `session_id` and `hook_event_name` in, `hookSpecificOutput` out.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tanmi_event::{
    CompactionRecipient, Event, EventKind, FallbackFiles, Payload, Platform, Source, StartSource,
};

use crate::transcript::text;
use crate::{
    AllowedTools, ClientSpec, Environment, Fields, GuideLocation, Hook, HookFormat, InstallNote, Location,
    Message, NoteCondition, OffSwitch, PerScope, Recipe, StatusLinePayload, Transcript, TranscriptFolder,
    Wire,
};

pub static PLATFORM: Platform = Platform {
    id: "claude-code",
    aliases: &["claude"],
    compaction: CompactionRecipient::Summariser,
    loaded_files: &["CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md", "~/.claude/CLAUDE.md"],
    fallback_files: Some(FallbackFiles {
        names: &["AGENTS.md", ".claude/AGENTS.md"],
        since: [2, 1, 277],
        variable: "AI_AGENT",
        prefix: "claude-code_",
    }),
    ..Platform::DEFAULTS
};

pub static CLIENT: ClientSpec = ClientSpec {
    platform: &PLATFORM,
    name: "Claude Code",
    wire: Wire {
        read,
        write,
        sample: ("SessionStart", include_str!("../fixtures/claude-code/SessionStart.startup.json")),
        borrowed_hooks: None,
        mcp_names: &["claude-code"],
        call_session_keys: &[],
        status_line: Some(read_status_line),
    },
    environment: Environment {
        agent: &["CLAUDECODE"],
        session: &["CLAUDE_CODE_SESSION_ID"],
        process: Some("CLAUDE_PID"),
    },
    transcript: Some(Transcript {
        read_line,
        generated_tags: &[
            "<command-",
            "<local-command",
            "<system-reminder",
            "<task-notification",
            "<bash-",
            "<user-memory",
        ],
        folder: Some(TranscriptFolder { path: transcript_folder, cwd: |line| text(line, "cwd") }),
    }),
    recipe: Recipe {
        program: "claude",
        folder: ".claude",
        folder_variable: Some("CLAUDE_CONFIG_DIR"),
        hook_file: PerScope::both(Location::Folder("settings.json")),
        server_file: PerScope {
            user: Some(Location::Home(".claude.json")),
            project: Some(Location::Project(".mcp.json")),
        },
        guide: PerScope::both(Some(GuideLocation::OwnFile(Location::Folder("skills/tanmi/SKILL.md")))),
        hook_format: HookFormat::Groups,
        hooks: &[
            Hook::new("SessionStart", 10),
            Hook::new("UserPromptSubmit", 5),
            Hook::new("SubagentStart", 5),
            Hook { reports_tools: true, ..Hook::new("PreToolUse", 5) },
            Hook::new("PreCompact", 5),
            Hook::new("Stop", 10),
            Hook::new("SessionEnd", 30),
        ],
        hook_keys: &[],
        timeout_units_per_second: 1,
        off_switches: &[OffSwitch { path: &["disableAllHooks"], value: true }],
        allowed_tools: Some(AllowedTools { path: &["permissions", "allow"], entry: "mcp__tanmi" }),
        server: |program| json!({"type": "stdio", "command": program, "args": ["mcp"]}),
        notes: &[InstallNote {
            condition: NoteCondition::ProjectServerChanged,
            zh: "Claude Code：启动时会询问是否启用 .mcp.json 中的 tanmi 服务器，请同意",
            en: "Claude Code: at startup, approve the tanmi server from .mcp.json when asked",
        }],
    },
};

fn read(name: Option<&str>, fields: &Fields) -> Option<Event> {
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
    let payload = payload(fields, kind, "prompt_id");
    let session = fields.id("session_id")?;
    Some(Event { source: Source::Hook, platform: &PLATFORM, kind, session, payload })
}

/// Returns the payload of an event. Codex sends the same fields, but another name for the prompt id.
pub fn payload(fields: &Fields, kind: EventKind, prompt_id: &str) -> Payload {
    let start = StartSource::from_word(&fields.text("source").unwrap_or_default());
    let (is_subagent, is_tool) = (kind == EventKind::SubagentStart, kind == EventKind::PreToolUse);
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
        tool_name: fields.text("tool_name"),
        tool_call_id: fields.id("tool_use_id"),
        tool_input: fields.0.get("tool_input").filter(|_| is_tool).map(ToString::to_string),
        ..Payload::default()
    }
}

/// Returns the kind of an event name. Codex uses the same names.
pub fn kind(name: &str) -> Option<EventKind> {
    Some(match name {
        "SessionStart" => EventKind::SessionStart,
        "UserPromptSubmit" => EventKind::PromptSubmit,
        "SubagentStart" => EventKind::SubagentStart,
        "PreToolUse" => EventKind::PreToolUse,
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
        EventKind::PreToolUse => "PreToolUse",
        // Plain text goes to the model that writes the summary.
        EventKind::PreCompact => return Some(text.to_owned()),
        EventKind::Stop => return Some(json!({"decision": "block", "reason": text}).to_string()),
        _ => return None,
    };
    Some(json!({"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}}).to_string())
}

/// Returns the payload of a prompt, or of a session start without one, for the demo.
pub fn demo_payload(session: &str, cwd: &Path, prompt: Option<&str>) -> Value {
    match prompt {
        None => {
            json!({"hook_event_name": "SessionStart", "source": "startup", "session_id": session, "cwd": cwd})
        }
        Some(prompt) => {
            json!({"hook_event_name": "UserPromptSubmit", "prompt": prompt, "session_id": session, "cwd": cwd})
        }
    }
}

/// Returns the injected text in a response.
pub fn injected_text(response: &[u8]) -> Option<String> {
    let response: Value = serde_json::from_slice(response).ok()?;
    response["hookSpecificOutput"]["additionalContext"].as_str().map(String::from)
}

fn read_status_line(fields: &Fields) -> StatusLinePayload {
    StatusLinePayload { session: fields.text("session_id"), cwd: fields.text("cwd").map(Into::into) }
}

/// Reads a line of a transcript. A line with a role is one of Cursor, which also has a `message`.
fn read_line(line: &Value) -> Option<Message<'_>> {
    let message = line.get("message").filter(|_| line.get("role").is_none())?;
    Some(Message {
        role: text(message, "role").or_else(|| text(line, "type")),
        content: message.get("content").or_else(|| message.get("text")),
        is_generated: line.get("isMeta") == Some(&Value::Bool(true)),
        id: text(line, "uuid"),
        session: text(line, "sessionId").or_else(|| text(line, "session_id")),
        timestamp: text(line, "timestamp"),
    })
}

/// Returns `.claude/projects/<path with dashes>`.
fn transcript_folder(project: &Path) -> PathBuf {
    let path = project.display().to_string();
    let slug: String = path.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    Path::new(".claude/projects").join(slug)
}
