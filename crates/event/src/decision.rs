//! The decision about an event: the texts to inject, and what to throttle afterwards.

use serde::{Serialize, Serializer};

use crate::rule::RuleId;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    pub should_respond: bool,
    /// Actions in the order in which they are shown.
    pub actions: Vec<DecisionAction>,
    /// Types of text that must not be injected again for some time. JSON has the first one, as the specification says.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "first_throttle")]
    pub throttle: Vec<Throttle>,
}

fn first_throttle<S: Serializer>(throttles: &[Throttle], serializer: S) -> Result<S::Ok, S::Error> {
    throttles.first().serialize(serializer)
}

impl Decision {
    /// Returns the texts of these kinds, joined with line breaks, or `None` if there is none.
    pub fn text_of(&self, kinds: &[ActionKind]) -> Option<String> {
        let texts: Vec<&str> = self
            .actions
            .iter()
            .filter(|action| kinds.contains(&action.kind))
            .map(|action| action.content.as_str())
            .collect();
        (!texts.is_empty()).then(|| texts.join("\n"))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DecisionAction {
    #[serde(rename = "type")]
    pub kind: ActionKind,
    /// The text without any tag; the platform decides how to delimit it.
    pub content: String,
    pub priority: i32,
    /// The rule that produced it.
    pub rule: RuleId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionKind {
    InjectContext,
    SessionInfo,
    SmartReminder,
    Reminder,
    BindingHint,
    /// Facts, summaries and core memory.
    Memory,
    /// Context declared by a user or by a host program.
    Declared,
    /// Request to save memories before a compaction.
    Flush,
    /// Request to save memories when the agent stops.
    Save,
}

impl ActionKind {
    pub const ALL: &[ActionKind] = &[
        ActionKind::InjectContext,
        ActionKind::SessionInfo,
        ActionKind::SmartReminder,
        ActionKind::Reminder,
        ActionKind::BindingHint,
        ActionKind::Memory,
        ActionKind::Declared,
        ActionKind::Flush,
        ActionKind::Save,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            ActionKind::InjectContext => "inject_context",
            ActionKind::SessionInfo => "session_info",
            ActionKind::SmartReminder => "smart_reminder",
            ActionKind::Reminder => "reminder",
            ActionKind::BindingHint => "binding_hint",
            ActionKind::Memory => "memory",
            ActionKind::Declared => "declared",
            ActionKind::Flush => "flush",
            ActionKind::Save => "save",
        }
    }

    pub fn from_word(word: &str) -> Option<ActionKind> {
        ActionKind::ALL.iter().copied().find(|kind| kind.as_str() == word)
    }

    /// Returns the tag that encloses the text; `None` for a separate message.
    pub fn tag(self) -> Option<&'static str> {
        match self {
            ActionKind::InjectContext | ActionKind::SessionInfo | ActionKind::BindingHint => {
                Some("tanmi-workspace-context")
            }
            ActionKind::SmartReminder | ActionKind::Reminder => Some("tanmi-smart-reminder"),
            ActionKind::Memory => Some("tanmi-memory"),
            ActionKind::Declared => Some("tanmi-declared-context"),
            ActionKind::Flush | ActionKind::Save => None,
        }
    }

    /// Returns the number of bytes of the tags around a text of this kind.
    pub fn overhead(self) -> usize {
        self.tag().map_or(0, |tag| "<>\n\n</>".len() + 2 * tag.len())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Throttle {
    pub key: String,
    /// Duration in milliseconds.
    pub ttl: i64,
    /// The rule whose text is throttled.
    pub rule: RuleId,
}
