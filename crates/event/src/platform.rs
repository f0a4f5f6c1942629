//! The part of a client's description that rules and the pipeline need. The clients are in the `platform`
//! crate; the two platforms without hooks are here.

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
    /// Whether one process runs several conversations at the same time, for example one per window.
    pub has_shared_process: bool,
    pub compaction: CompactionRecipient,
    /// Files that the client passes to its model by itself: in the working directory and its ancestors, or below
    /// `~/`.
    pub loaded_files: &'static [&'static str],
    /// Files that it loads instead where it finds none of these, if it does so.
    pub fallback_files: Option<FallbackFiles>,
}

/// Files that a client passes to its model by itself where none of its `loaded_files` is in the working directory and
/// its ancestors.
#[derive(Debug)]
pub struct FallbackFiles {
    pub names: &'static [&'static str],
    /// The first version that loads them.
    pub since: ClientVersion,
    /// The environment variable of hooks that contains the version.
    pub variable: &'static str,
    /// The text before the version, as in `client_1-2-3_other`.
    pub prefix: &'static str,
}

/// Major, minor and patch version of a client.
pub type ClientVersion = [u32; 3];

impl FallbackFiles {
    /// Returns the version in the value of the variable.
    pub fn parse_version(&self, value: &str) -> Option<ClientVersion> {
        let version = value.strip_prefix(self.prefix)?.split('_').next()?;
        let mut parts = version.split('-').map(|part| part.parse().ok());
        Some([parts.next()??, parts.next()??, parts.next()??])
    }
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
    /// The properties that most clients share; a description overrides what differs.
    pub const DEFAULTS: Platform = Platform {
        id: "",
        aliases: &[],
        hook_events: LIFECYCLE_EVENTS,
        capabilities: Capabilities { agent_message: true, user_message: true, system_prompt: false },
        max_bytes: MAX_BYTES,
        tags: true,
        needs_refresh: false,
        start_may_follow_prompt: false,
        has_shared_process: false,
        compaction: CompactionRecipient::None,
        loaded_files: &[],
        fallback_files: None,
    };

    /// Returns whether it can inject text before a tool call.
    pub fn can_inject_at_tools(&self) -> bool {
        self.has_hook_for(EventKind::PreToolUse)
    }

    /// Returns whether `name` is the id or an alias.
    pub fn has_name(&self, name: &str) -> bool {
        self.id == name || self.aliases.contains(&name)
    }

    pub fn has_hook_for(&self, kind: EventKind) -> bool {
        self.hook_events.contains(&kind)
    }
}

/// Safe for every client: some count bytes, others count UTF-16 units.
const MAX_BYTES: usize = 10_000;

const LIFECYCLE_EVENTS: &[EventKind] = &[
    EventKind::SessionStart,
    EventKind::PromptSubmit,
    EventKind::SubagentStart,
    EventKind::PreToolUse,
    EventKind::PreCompact,
    EventKind::Stop,
    EventKind::SessionEnd,
];

pub static WEB: Platform = Platform {
    id: "web",
    aliases: &["web-chat"],
    hook_events: &[],
    capabilities: Capabilities { agent_message: false, user_message: false, system_prompt: true },
    ..Platform::DEFAULTS
};

pub static API: Platform = Platform {
    id: "api",
    aliases: &["cli"],
    hook_events: &[],
    capabilities: Capabilities { agent_message: true, user_message: false, system_prompt: false },
    ..Platform::DEFAULTS
};
