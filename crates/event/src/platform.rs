//! Agents as data. A new one is one more constant here and one file in the `platform` crate.

use crate::event::EventKind;

#[derive(Debug)]
pub struct Platform {
    pub id: &'static str,
    /// Other names people and older files use.
    pub aliases: &'static [&'static str],
    /// Events that its hooks report.
    pub hook_events: &'static [EventKind],
    pub capabilities: Capabilities,
    /// Bytes of one injected text.
    pub cap: usize,
    /// Texts are set apart by tags. A client that escapes those gets headings.
    pub tags: bool,
    /// A start or a compaction may go unseen here: context comes again with every so many prompts.
    pub refreshes: bool,
    /// The hook of the first prompt may run before the one of the start.
    pub starts_late: bool,
    pub compaction: Compaction,
    /// Files that it gives its model by itself: beside the working folder and above it, or below `~/`.
    pub loads: &'static [&'static str],
}

/// Who gets a text that is said before a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compaction {
    /// Whoever writes the summary.
    Summariser,
    Person,
    Nobody,
}

#[derive(Debug)]
pub struct Capabilities {
    /// Text that the model sees.
    pub agent_message: bool,
    /// Text that only the person sees.
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

/// Safe for every client: Codex counts bytes, Claude Code and Cursor UTF-16 units.
const CAP: usize = 10_000;

const LIFE: &[EventKind] = &[
    EventKind::SessionStart,
    EventKind::PromptSubmit,
    EventKind::SubagentStart,
    EventKind::PreCompact,
    EventKind::Stop,
    EventKind::SessionEnd,
];

/// What most agents are like; each says where it differs.
const AGENT: Platform = Platform {
    id: "",
    aliases: &[],
    hook_events: LIFE,
    capabilities: Capabilities { agent_message: true, user_message: true, system_prompt: false },
    cap: CAP,
    tags: true,
    refreshes: false,
    starts_late: false,
    compaction: Compaction::Nobody,
    loads: &[],
};

pub static CLAUDE_CODE: Platform = Platform {
    id: "claude-code",
    aliases: &["claude"],
    compaction: Compaction::Summariser,
    loads: &["CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md", "~/.claude/CLAUDE.md"],
    ..AGENT
};

pub static CURSOR: Platform = Platform {
    id: "cursor",
    refreshes: true,
    compaction: Compaction::Person,
    loads: &["AGENTS.md"],
    ..AGENT
};

pub static CODEX: Platform = Platform {
    id: "codex",
    aliases: &["codex-cli"],
    loads: &["AGENTS.md", "AGENTS.override.md", "~/.codex/AGENTS.md"],
    ..AGENT
};

/// It reports a compaction before every turn, also where nothing is compacted.
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
    refreshes: true,
    loads: &["GEMINI.md", "~/.gemini/GEMINI.md"],
    ..AGENT
};

pub static COPILOT_CLI: Platform = Platform {
    id: "copilot-cli",
    aliases: &["copilot"],
    starts_late: true,
    loads: &["AGENTS.md", ".github/copilot-instructions.md", "~/.copilot/copilot-instructions.md"],
    ..AGENT
};

pub static WEB: Platform = Platform {
    id: "web",
    aliases: &["web-chat"],
    hook_events: &[],
    capabilities: Capabilities { agent_message: false, user_message: false, system_prompt: true },
    ..AGENT
};

pub static API: Platform = Platform {
    id: "api",
    aliases: &["cli"],
    hook_events: &[],
    capabilities: Capabilities { agent_message: true, user_message: false, system_prompt: false },
    ..AGENT
};

pub static PLATFORMS: &[&Platform] = &[&CLAUDE_CODE, &CURSOR, &CODEX, &GEMINI_CLI, &COPILOT_CLI, &WEB, &API];

pub fn find_platform(name: &str) -> Option<&'static Platform> {
    PLATFORMS.iter().copied().find(|platform| platform.id == name || platform.aliases.contains(&name))
}
