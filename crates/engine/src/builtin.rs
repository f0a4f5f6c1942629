//! The built-in rules, one file each. A rule is a function from what is known to what is said, if anything.

use tanmi_event::{ActionKind, Event, EventKind, Throttle};

use crate::facts::Facts;

mod binding_hint;
mod context_inject;
mod context_refresh;
mod plan_confirm;
mod reminders;
mod session_info;
mod smart_reminder;

pub struct Rule {
    pub id: &'static str,
    /// For people: what it does.
    pub about: (&'static str, &'static str),
    /// Lower runs first.
    pub priority: i32,
    pub events: &'static [EventKind],
    pub run: fn(&Ctx<'_>) -> Option<Said>,
}

/// What a rule may look at.
pub struct Ctx<'a> {
    pub event: &'a Event,
    pub facts: &'a Facts,
}

/// What a rule says.
pub struct Said {
    pub kind: ActionKind,
    pub content: String,
    /// Not again before its time is over.
    pub throttle: Option<Throttle>,
}

impl Said {
    fn always(kind: ActionKind, content: String) -> Option<Said> {
        Some(Said { kind, content, throttle: None })
    }
}

/// Three minutes: for reminders per type, and for the hint.
const QUIET: i64 = 180_000;

pub const BUILTIN: &[Rule] = &[
    session_info::RULE,
    context_inject::RULE,
    context_refresh::RULE,
    plan_confirm::RULE,
    smart_reminder::RULE,
    binding_hint::RULE,
];

#[cfg(test)]
mod tests;
