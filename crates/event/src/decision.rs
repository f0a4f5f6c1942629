//! What is to be told to the agent, and what to remember about it.

use serde::Serialize;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    pub should_respond: bool,
    /// In the order in which they are shown.
    pub actions: Vec<Action>,
    /// What must stay silent from now on, and for how long.
    pub throttle: Vec<Throttle>,
}

impl Decision {
    /// The texts of these kinds, one below the other; `None` if there is none.
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
pub struct Action {
    #[serde(rename = "type")]
    pub kind: ActionKind,
    /// Bare: how it is set apart from other text is up to the platform it goes to.
    pub content: String,
    pub priority: i32,
    /// The rule that said it.
    pub rule: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionKind {
    InjectContext,
    SessionInfo,
    SmartReminder,
    Reminder,
    BindingHint,
    /// What is remembered.
    Memory,
    /// What a person or a host declared.
    Declared,
    /// Before a compaction.
    Flush,
    /// When the agent stops.
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

    /// The tag that sets it apart; none for a message of its own.
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

    /// What the tags around a text of this kind cost.
    pub fn overhead(self) -> usize {
        self.tag().map_or(0, |tag| "<>\n\n</>".len() + 2 * tag.len())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Throttle {
    pub key: String,
    /// Milliseconds.
    pub ttl: i64,
    /// Whose words they are.
    pub rule: String,
}
