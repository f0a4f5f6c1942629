//! One moment in the life of an agent, whoever reported it.

use std::path::PathBuf;

use serde::Serialize;

use crate::platform::Platform;

#[derive(Clone, Debug)]
pub struct Event {
    pub source: Source,
    pub platform: &'static Platform,
    pub kind: EventKind,
    pub session: String,
    pub payload: Payload,
}

/// Who reports the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    Hook,
    Mcp,
    Api,
}

impl Source {
    pub fn as_str(self) -> &'static str {
        match self {
            Source::Hook => "hook",
            Source::Mcp => "mcp",
            Source::Api => "api",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    SessionStart,
    PromptSubmit,
    TaskComplete,
    StatusCheck,
    SubagentStart,
    PreToolUse,
    PreCompact,
    Stop,
    SessionEnd,
}

impl EventKind {
    pub const ALL: &[EventKind] = &[
        EventKind::SessionStart,
        EventKind::PromptSubmit,
        EventKind::TaskComplete,
        EventKind::StatusCheck,
        EventKind::SubagentStart,
        EventKind::PreToolUse,
        EventKind::PreCompact,
        EventKind::Stop,
        EventKind::SessionEnd,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            EventKind::SessionStart => "session_start",
            EventKind::PromptSubmit => "prompt_submit",
            EventKind::TaskComplete => "task_complete",
            EventKind::StatusCheck => "status_check",
            EventKind::SubagentStart => "subagent_start",
            EventKind::PreToolUse => "pre_tool_use",
            EventKind::PreCompact => "pre_compact",
            EventKind::Stop => "stop",
            EventKind::SessionEnd => "session_end",
        }
    }

    pub fn from_word(word: &str) -> Option<EventKind> {
        EventKind::ALL.iter().copied().find(|kind| kind.as_str() == word)
    }
}

/// What came with the event. What a platform does not send stays empty.
#[derive(Clone, Debug, Default)]
pub struct Payload {
    /// What the person typed, cleaned of what other hooks put before it.
    pub prompt: Option<String>,
    /// Names one prompt, where the platform does.
    pub prompt_id: Option<String>,
    pub node_id: Option<String>,
    /// The workspace it is about, and where that is, where the session's binding does not decide.
    pub workspace_id: Option<String>,
    pub project: Option<PathBuf>,
    pub start: Option<StartSource>,
    /// How a turn ended, where the platform says so.
    pub status: Option<String>,
    /// This stop follows from something we asked for.
    pub in_loop: bool,
    /// Why a session ends, and how long it was.
    pub reason: Option<String>,
    pub duration_ms: Option<i64>,
    pub error: Option<String>,
    /// How full the context is, before a compaction.
    pub usage_percent: Option<i64>,
    pub message_count: Option<i64>,
    /// The conversation as the client keeps it.
    pub transcript: Option<PathBuf>,
    pub cwd: Option<String>,
    /// The subagent that starts.
    pub agent_id: Option<String>,
    pub agent_type: Option<String>,
    /// What the subagent is called with, as JSON, where its prompt is the only way to tell it something.
    pub tool_input: Option<String>,
}

/// Why a session starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartSource {
    Startup,
    Resume,
    Clear,
    Compact,
    Fork,
}

impl StartSource {
    pub const ALL: &[StartSource] = &[
        StartSource::Startup,
        StartSource::Resume,
        StartSource::Clear,
        StartSource::Compact,
        StartSource::Fork,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            StartSource::Startup => "startup",
            StartSource::Resume => "resume",
            StartSource::Clear => "clear",
            StartSource::Compact => "compact",
            StartSource::Fork => "fork",
        }
    }

    /// Clients come up with new reasons; all of them are starts.
    pub fn from_word(word: &str) -> StartSource {
        StartSource::ALL.iter().copied().find(|start| start.as_str() == word).unwrap_or(StartSource::Startup)
    }
}
