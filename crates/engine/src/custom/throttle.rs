//! How long a custom rule keeps quiet after it has spoken.

use tanmi_event::{Event, EventKind, Throttle};

use super::CustomRule;
use crate::builtin::QUIET;

/// What the rule asks for; without that, three minutes where it would speak at every prompt.
pub fn throttle_of(rule: &CustomRule, event: &Event) -> Option<Throttle> {
    let ttl = match rule.throttle {
        Some(seconds) => i64::from(seconds) * 1000,
        None if event.kind == EventKind::PromptSubmit => QUIET,
        None => 0,
    };
    // Apart from the keys of built-in reminders, whatever a rule calls itself.
    (ttl > 0).then(|| Throttle { key: format!("rule:{}", rule.id), ttl, rule: rule.id.clone() })
}
