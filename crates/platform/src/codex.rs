//! Codex: the events and responses of Claude Code. Codex rejects a response that contains any unknown field.

use serde_json::Value;
use tanmi_event::{Event, EventKind, Platform, Source};

use crate::transcript::text;
use crate::{
    ClientSpec, Environment, Fields, GuideLocation, Hook, HookFormat, InstallNote, Location, Message,
    NoteCondition, OffSwitch, PerScope, Recipe, Transcript, Wire, claude_code, plain_server,
};

static PLATFORM: Platform = Platform {
    id: "codex",
    aliases: &["codex-cli"],
    loaded_files: &["AGENTS.md", "AGENTS.override.md", "~/.codex/AGENTS.md"],
    ..Platform::DEFAULTS
};

pub static CLIENT: ClientSpec = ClientSpec {
    platform: &PLATFORM,
    name: "Codex",
    wire: Wire {
        read,
        write,
        sample: ("SessionStart", include_str!("../fixtures/codex/SessionStart.startup.json")),
        borrowed_hooks: None,
        mcp_names: &["codex-mcp-client"],
        call_session_keys: &["sessionId", "threadId"],
        status_line: None,
    },
    environment: Environment {
        agent: &["CODEX_SESSION_ID", "CODEX_THREAD_ID"],
        session: &["CODEX_SESSION_ID"],
        process: None,
    },
    transcript: Some(Transcript { read_line, generated_tags: &[], folder: None }),
    recipe: Recipe {
        program: "codex",
        folder: ".codex",
        folder_variable: Some("CODEX_HOME"),
        hook_file: PerScope::both(Location::Folder("hooks.json")),
        server_file: PerScope::both(Some(Location::Folder("config.toml"))),
        guide: PerScope {
            user: Some(GuideLocation::Block(Location::Folder("AGENTS.md"))),
            project: Some(GuideLocation::Block(Location::Project("AGENTS.md"))),
        },
        hook_format: HookFormat::Groups,
        hooks: &[
            Hook::new("SessionStart", 10),
            Hook::new("UserPromptSubmit", 5),
            Hook::new("SubagentStart", 5),
            Hook { reports_tools: true, ..Hook::new("PreToolUse", 5) },
            Hook::new("PreCompact", 5),
            Hook::new("Stop", 10),
            // The maximum that Codex allows.
            Hook::new("SessionEnd", 3),
        ],
        hook_keys: &[],
        timeout_units_per_second: 1,
        off_switches: &[OffSwitch { path: &["features", "hooks"], value: false }],
        allowed_tools: None,
        server: plain_server,
        notes: &[InstallNote {
            condition: NoteCondition::HooksChanged,
            zh: "Codex：新增或修改过的钩子需要信任后才会运行：启动 codex，输入 /hooks，信任 tanmi 的钩子",
            en: "Codex: new or changed hooks run only after you trust them: start codex, enter /hooks, and trust the tanmi hooks",
        }],
    },
};

fn read(name: Option<&str>, fields: &Fields) -> Option<Event> {
    let kind = claude_code::kind(fields.text("hook_event_name").as_deref().or(name)?)?;
    // Prompts of a subagent carry the session id of its parent.
    if fields.id("agent_id").is_some() && kind != EventKind::SubagentStart {
        return None;
    }
    let payload = claude_code::payload(fields, kind, "turn_id");
    let session = fields.id("session_id")?;
    Some(Event { source: Source::Hook, platform: &PLATFORM, kind, session, payload })
}

fn write(event: &Event, text: &str) -> Option<String> {
    match event.kind {
        // No text returned here reaches the model or the user.
        EventKind::PreCompact => None,
        _ => claude_code::write(event, text),
    }
}

/// Reads a line of a transcript.
fn read_line(line: &Value) -> Option<Message<'_>> {
    let message = line.get("payload")?;
    Some(Message {
        role: text(message, "role"),
        content: message.get("content").or_else(|| message.get("text")),
        timestamp: text(line, "timestamp"),
        ..Message::default()
    })
}
