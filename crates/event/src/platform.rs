//! Descriptions of the clients. A new client needs one more constant here and one file in the `platform` crate.

use crate::event::EventKind;

#[derive(Debug)]
pub struct Platform {
    pub id: &'static str,
    /// Other names that users and older files use.
    pub aliases: &'static [&'static str],
    /// Events that its hooks report.
    pub hook_events: &'static [EventKind],
    pub capabilities: Capabilities,
    /// Maximum number of bytes of one injected text.
    pub max_bytes: usize,
    /// Whether texts are delimited by tags. A client that escapes tags gets headings.
    pub tags: bool,
    /// Whether a session start or a compaction may go unnoticed. The context is then repeated every few prompts.
    pub needs_refresh: bool,
    /// Whether the hook of the first prompt may run before the hook of the session start.
    pub start_may_follow_prompt: bool,
    pub compaction: CompactionRecipient,
    /// Files that the client passes to its model by itself: in the working directory and its ancestors, or below
    /// `~/`.
    pub loaded_files: &'static [&'static str],
}

/// The recipient of a text that is returned before a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactionRecipient {
    /// The model that writes the summary.
    Summariser,
    /// The user.
    User,
    /// No recipient: the client ignores the text.
    None,
}

#[derive(Debug)]
pub struct Capabilities {
    /// Whether it can inject text that the model sees.
    pub agent_message: bool,
    /// Whether it can show text to the user only.
    pub user_message: bool,
    pub system_prompt: bool,
}

impl PartialEq for Platform {
    fn eq(&self, other: &Platform) -> bool {
        self.id == other.id
    }
}

impl Platform {
    pub fn has_hook_for(&self, kind: EventKind) -> bool {
        self.hook_events.contains(&kind)
    }
}

/// Safe for every client: Codex counts bytes, Claude Code and Cursor count UTF-16 units.
const CAP: usize = 10_000;

const LIFECYCLE_EVENTS: &[EventKind] = &[
    EventKind::SessionStart,
    EventKind::PromptSubmit,
    EventKind::SubagentStart,
    EventKind::PreCompact,
    EventKind::Stop,
    EventKind::SessionEnd,
];

/// Defaults shared by most agents; each constant overrides what differs.
const AGENT_DEFAULTS: Platform = Platform {
    id: "",
    aliases: &[],
    hook_events: LIFECYCLE_EVENTS,
    capabilities: Capabilities { agent_message: true, user_message: true, system_prompt: false },
    max_bytes: CAP,
    tags: true,
    needs_refresh: false,
    start_may_follow_prompt: false,
    compaction: CompactionRecipient::None,
    loaded_files: &[],
};

pub static CLAUDE_CODE: Platform = Platform {
    id: "claude-code",
    aliases: &["claude"],
    compaction: CompactionRecipient::Summariser,
    loaded_files: &["CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md", "~/.claude/CLAUDE.md"],
    ..AGENT_DEFAULTS
};

pub static CURSOR: Platform = Platform {
    id: "cursor",
    needs_refresh: true,
    compaction: CompactionRecipient::User,
    loaded_files: &["AGENTS.md"],
    ..AGENT_DEFAULTS
};

pub static CODEX: Platform = Platform {
    id: "codex",
    aliases: &["codex-cli"],
    loaded_files: &["AGENTS.md", "AGENTS.override.md", "~/.codex/AGENTS.md"],
    ..AGENT_DEFAULTS
};

/// It reports a compaction before every turn, even if nothing is compacted, so that event is not used.
pub static GEMINI_CLI: Platform = Platform {
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
    ..AGENT_DEFAULTS
};

pub static COPILOT_CLI: Platform = Platform {
    id: "copilot-cli",
    aliases: &["copilot"],
    start_may_follow_prompt: true,
    loaded_files: &["AGENTS.md", ".github/copilot-instructions.md", "~/.copilot/copilot-instructions.md"],
    ..AGENT_DEFAULTS
};

pub static WEB: Platform = Platform {
    id: "web",
    aliases: &["web-chat"],
    hook_events: &[],
    capabilities: Capabilities { agent_message: false, user_message: false, system_prompt: true },
    ..AGENT_DEFAULTS
};

pub static API: Platform = Platform {
    id: "api",
    aliases: &["cli"],
    hook_events: &[],
    capabilities: Capabilities { agent_message: true, user_message: false, system_prompt: false },
    ..AGENT_DEFAULTS
};

pub static PLATFORMS: &[&Platform] = &[&CLAUDE_CODE, &CURSOR, &CODEX, &GEMINI_CLI, &COPILOT_CLI, &WEB, &API];

/// Finds a platform by its id or an alias.
pub fn find_platform(name: &str) -> Option<&'static Platform> {
    PLATFORMS.iter().copied().find(|platform| platform.id == name || platform.aliases.contains(&name))
}
