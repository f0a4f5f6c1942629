//! Copilot CLI: camel case in, flat fields out. It also runs the hooks in a project's Claude Code settings, with
//! the field and event names of Claude Code; there too it accepts only the flat field.

use serde_json::json;
use tanmi_event::{Event, EventKind, Payload, Platform, Source, StartSource};

use crate::{
    BorrowedHooks, ClientSpec, Environment, Fields, GuideLocation, Hook, HookFormat, Location, OffSwitch,
    PerScope, Recipe, Wire, claude_code,
};

static PLATFORM: Platform = Platform {
    id: "copilot-cli",
    aliases: &["copilot"],
    start_may_follow_prompt: true,
    loaded_files: &["AGENTS.md", ".github/copilot-instructions.md", "~/.copilot/copilot-instructions.md"],
    ..Platform::DEFAULTS
};

pub static CLIENT: ClientSpec = ClientSpec {
    platform: &PLATFORM,
    name: "Copilot CLI",
    wire: Wire {
        read,
        write,
        sample: ("sessionStart", include_str!("../fixtures/copilot-cli/sessionStart.new.json")),
        borrowed_hooks: Some(BorrowedHooks { owner: &claude_code::PLATFORM, own_fields: &["timestamp"] }),
        mcp_names: &["github-copilot-developer"],
        call_session_keys: &[],
        status_line: None,
    },
    environment: Environment {
        agent: &["COPILOT_AGENT_SESSION_ID"],
        session: &["COPILOT_AGENT_SESSION_ID"],
        process: None,
    },
    transcript: None,
    recipe: Recipe {
        program: "copilot",
        folder: ".copilot",
        folder_variable: None,
        hook_file: PerScope {
            user: Location::Folder("hooks/tanmi.json"),
            project: Location::Project(".github/hooks/tanmi.json"),
        },
        server_file: PerScope { user: Some(Location::Folder("mcp-config.json")), project: None },
        guide: PerScope {
            user: Some(GuideLocation::Block(Location::Folder("copilot-instructions.md"))),
            project: Some(GuideLocation::Block(Location::Project(".github/copilot-instructions.md"))),
        },
        hook_format: HookFormat::Shells,
        hooks: &[
            Hook::new("sessionStart", 10),
            Hook::new("userPromptSubmitted", 5),
            Hook::new("subagentStart", 5),
            Hook { reports_tools: true, ..Hook::new("preToolUse", 5) },
            Hook::new("preCompact", 5),
            Hook::new("agentStop", 10),
            Hook::new("sessionEnd", 30),
        ],
        hook_keys: &[],
        timeout_units_per_second: 1,
        off_switches: &[OffSwitch { path: &["disableAllHooks"], value: true }],
        allowed_tools: None,
        server: |program| json!({"type": "local", "command": program, "args": ["mcp"], "tools": ["*"]}),
        notes: &[],
    },
};

fn read(name: Option<&str>, fields: &Fields) -> Option<Event> {
    let kind = match fields.text("hook_event_name").as_deref().or(name)? {
        "sessionStart" | "SessionStart" => EventKind::SessionStart,
        "userPromptSubmitted" | "UserPromptSubmit" => EventKind::PromptSubmit,
        "subagentStart" | "SubagentStart" => EventKind::SubagentStart,
        "preToolUse" | "PreToolUse" => EventKind::PreToolUse,
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
        tool_name: id_of("toolName", "tool_name"),
        tool_input: fields.0.get("toolArgs").or_else(|| fields.0.get("tool_input")).map(ToString::to_string),
        ..Payload::default()
    };
    let session = id_of("sessionId", "session_id")?;
    Some(Event { source: Source::Hook, platform: &PLATFORM, kind, session, payload })
}

fn write(event: &Event, text: &str) -> Option<String> {
    match event.kind {
        EventKind::SessionStart
        | EventKind::PromptSubmit
        | EventKind::SubagentStart
        | EventKind::PreToolUse => Some(json!({"additionalContext": text}).to_string()),
        EventKind::Stop => Some(json!({"decision": "block", "reason": text}).to_string()),
        _ => None,
    }
}
