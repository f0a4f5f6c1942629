//! Acme, a made-up client: `event` and `chat` in, `note` out.

use serde_json::{Value, json};
use tanmi_event::{Event, EventKind, Payload, Platform, Source, StartSource};
use tanmi_platform::{
    ClientSpec, Environment, Fields, GuideLocation, Hook, HookFormat, InstallNote, Location, Message,
    NoteCondition, PerScope, Recipe, Transcript, Wire, plain_server,
};

static PLATFORM: Platform = Platform {
    id: "acme",
    aliases: &["acme-cli"],
    hook_events: &[EventKind::SessionStart, EventKind::PromptSubmit],
    loaded_files: &["ACME.md"],
    ..Platform::DEFAULTS
};

pub static CLIENT: ClientSpec = ClientSpec {
    platform: &PLATFORM,
    name: "Acme",
    wire: Wire {
        read,
        write,
        sample: ("begin", r#"{"event": "begin", "chat": "c1", "folder": "/project"}"#),
        borrowed_hooks: None,
        mcp_names: &["acme"],
        call_session_keys: &["acmeChat"],
        status_line: None,
    },
    environment: Environment { agent: &["ACME"], session: &["ACME_CHAT"], process: None },
    transcript: Some(Transcript { read_line, generated_tags: &["<acme-"], folder: None }),
    recipe: Recipe {
        program: "acme",
        folder: ".acme",
        folder_variable: Some("ACME_HOME"),
        hook_file: PerScope::both(Location::Folder("hooks.json")),
        server_file: PerScope { user: Some(Location::Folder("servers.json")), project: None },
        guide: PerScope { user: None, project: Some(GuideLocation::Block(Location::Project("ACME.md"))) },
        hook_format: HookFormat::Flat,
        hooks: &[Hook::new("begin", 10), Hook::new("ask", 5)],
        hook_keys: &[],
        timeout_units_per_second: 1000,
        off_switches: &[],
        allowed_tools: None,
        server: plain_server,
        notes: &[InstallNote {
            condition: NoteCondition::HooksChanged,
            zh: "Acme：请重启",
            en: "Acme: restart it",
        }],
    },
};

fn read(name: Option<&str>, fields: &Fields) -> Option<Event> {
    let kind = match fields.text("event").as_deref().or(name)? {
        "begin" => EventKind::SessionStart,
        "ask" => EventKind::PromptSubmit,
        _ => return None,
    };
    let payload = Payload {
        prompt: fields.text("question"),
        start: (kind == EventKind::SessionStart).then_some(StartSource::Startup),
        cwd: fields.path("folder"),
        ..Payload::default()
    };
    Some(Event { source: Source::Hook, platform: &PLATFORM, kind, session: fields.id("chat")?, payload })
}

fn write(_: &Event, text: &str) -> Option<String> {
    Some(json!({"note": text}).to_string())
}

fn read_line(line: &Value) -> Option<Message<'_>> {
    let message = line.get("acme")?;
    Some(Message { role: message.get("by")?.as_str(), content: message.get("text"), ..Message::default() })
}
