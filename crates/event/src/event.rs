//! One event of an agent, independent of the client that reported it.

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

/// The interface that reports the event.
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

/// The data of an event. Fields that a platform does not send stay empty.
#[derive(Clone, Debug, Default)]
pub struct Payload {
    /// The prompt as the user typed it, without text that other hooks inserted.
    pub prompt: Option<String>,
    /// Identifies one prompt, if the platform provides an id.
    pub prompt_id: Option<String>,
    pub node_id: Option<String>,
    /// The workspace and its project, if the binding of the session does not determine them.
    pub workspace_id: Option<String>,
    pub project: Option<PathBuf>,
    pub start: Option<StartSource>,
    /// How a turn ended, if the platform reports it.
    pub status: Option<String>,
    /// The agent was already continuing because of a stop hook.
    pub in_loop: bool,
    /// Why a session ended, and how long it was.
    pub reason: Option<String>,
    pub duration_ms: Option<i64>,
    pub error: Option<String>,
    /// How full the context is, before a compaction.
    pub usage_percent: Option<i64>,
    pub message_count: Option<i64>,
    /// Path of the transcript that the client keeps.
    pub transcript: Option<PathBuf>,
    pub cwd: Option<String>,
    /// The subagent that starts.
    pub agent_id: Option<String>,
    pub agent_type: Option<String>,
    /// The tool that the agent is about to use.
    pub tool_name: Option<String>,
    /// Identifies one tool call, if the platform provides an id.
    pub tool_call_id: Option<String>,
    /// The arguments of that tool as JSON. For the start of a subagent, set if changing them is the only way to pass
    /// text to it.
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

    /// Parses a start reason. An unknown reason counts as a startup, because clients add new ones.
    pub fn from_word(word: &str) -> StartSource {
        StartSource::ALL.iter().copied().find(|start| start.as_str() == word).unwrap_or(StartSource::Startup)
    }
}
