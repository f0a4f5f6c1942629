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
    EventKind::PreCompact,
    EventKind::Stop,
    EventKind::SessionEnd,
];

pub static CLAUDE_CODE: Platform = Platform {
    id: "claude-code",
    aliases: &["claude"],
    hook_events: LIFE,
    capabilities: Capabilities { agent_message: true, user_message: true, system_prompt: false },
    cap: CAP,
};

pub static CURSOR: Platform = Platform {
    id: "cursor",
    aliases: &[],
    hook_events: LIFE,
    capabilities: Capabilities { agent_message: true, user_message: true, system_prompt: false },
    cap: CAP,
};

pub static WEB: Platform = Platform {
    id: "web",
    aliases: &["web-chat"],
    hook_events: &[],
    capabilities: Capabilities { agent_message: false, user_message: false, system_prompt: true },
    cap: CAP,
};

pub static API: Platform = Platform {
    id: "api",
    aliases: &["cli"],
    hook_events: &[],
    capabilities: Capabilities { agent_message: true, user_message: false, system_prompt: false },
    cap: CAP,
};

pub static PLATFORMS: &[&Platform] = &[&CLAUDE_CODE, &CURSOR, &WEB, &API];

pub fn find_platform(name: &str) -> Option<&'static Platform> {
    PLATFORMS.iter().copied().find(|platform| platform.id == name || platform.aliases.contains(&name))
}
