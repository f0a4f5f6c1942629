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

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Action {
    #[serde(rename = "type")]
    pub kind: ActionKind,
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
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Throttle {
    pub key: String,
    /// Milliseconds.
    pub ttl: i64,
}
