//! Gemini CLI: its own event names. Text returned at a session start is inserted before the prompt, so it comes
//! back with the prompt. There is no event for a subagent, but hooks may change the arguments of the tool that
//! starts one.

use serde_json::json;
use tanmi_event::{Event, EventKind, Payload, Platform, Source, StartSource};

use crate::{
    ClientSpec, Environment, Fields, GuideLocation, Hook, HookFormat, Location, OffSwitch, PerScope, Recipe,
    Wire, extend_prompt, plain_server,
};

/// It reports a compaction before every turn, even if nothing is compacted, so that event is not used. Text that is
/// returned before a tool call does not reach its model.
pub static PLATFORM: Platform = Platform {
    id: "gemini-cli",
    aliases: &["gemini"],
    hook_events: &[
        EventKind::SessionStart,
        EventKind::PromptSubmit,
        EventKind::SubagentStart,
        EventKind::Stop,
        EventKind::SessionEnd,
    ],
    tags: false,
    needs_refresh: true,
    loaded_files: &["GEMINI.md", "~/.gemini/GEMINI.md"],
    ..Platform::DEFAULTS
};

pub static CLIENT: ClientSpec = ClientSpec {
    platform: &PLATFORM,
    name: "Gemini CLI",
    wire: Wire {
        read,
        write,
        sample: ("SessionStart", include_str!("../fixtures/gemini-cli/SessionStart.startup.json")),
        borrowed_hooks: None,
        mcp_names: &["gemini-cli-mcp-client"],
        call_session_keys: &[],
        status_line: None,
    },
    environment: Environment { agent: &["GEMINI_CLI"], session: &[], process: None },
    transcript: None,
    recipe: Recipe {
        program: "gemini",
        folder: ".gemini",
        folder_variable: None,
        hook_file: PerScope::both(Location::Folder("settings.json")),
        server_file: PerScope::both(Some(Location::Folder("settings.json"))),
        guide: PerScope {
            user: Some(GuideLocation::Block(Location::Folder("GEMINI.md"))),
            project: Some(GuideLocation::Block(Location::Project("GEMINI.md"))),
        },
        hook_format: HookFormat::Groups,
        hooks: &[
            Hook::new("SessionStart", 10),
            Hook::new("BeforeAgent", 5),
            Hook { matcher: Some("invoke_agent|generalist"), ..Hook::new("BeforeTool", 5) },
            Hook::new("AfterAgent", 10),
            Hook::new("SessionEnd", 30),
        ],
        hook_keys: &[("name", "tanmi")],
        timeout_units_per_second: 1000,
        off_switches: &[OffSwitch { path: &["hooksConfig", "enabled"], value: false }],
        allowed_tools: None,
        server: plain_server,
        notes: &[],
    },
};

/// Tools that start a subagent, and the argument that contains the prompt.
const AGENT_TOOLS: &[(&str, &str)] = &[("invoke_agent", "prompt"), ("generalist", "request")];

fn read(name: Option<&str>, fields: &Fields) -> Option<Event> {
    let kind = match fields.text("hook_event_name").as_deref().or(name)? {
        "SessionStart" => EventKind::SessionStart,
        "BeforeAgent" => EventKind::PromptSubmit,
        "BeforeTool" if prompt_field(fields).is_some() => EventKind::SubagentStart,
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
    Some(Event { source: Source::Hook, platform: &PLATFORM, kind, session, payload })
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

fn write(event: &Event, text: &str) -> Option<String> {
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
