//! What happens to an agent, and what it is told: Event in, Decision out. Plain data; nothing here acts.

mod decision;
mod event;
mod platform;
mod render;

pub use decision::{Action, ActionKind, Decision, Throttle};
pub use event::{Event, EventKind, Payload, Source, StartSource};
pub use platform::{
    API, CLAUDE_CODE, CODEX, COPILOT_CLI, CURSOR, Capabilities, Compaction, GEMINI_CLI, PLATFORMS, Platform,
    WEB, find_platform,
};
pub use render::{CONTEXT_RULES, fit_to_cap, render};
