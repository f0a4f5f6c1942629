//! The throttle of custom rules.

use tanmi_event::{Event, EventKind, RuleId, Throttle};

use super::CustomRule;
use crate::builtin::DEFAULT_THROTTLE;

/// Returns the throttle that the rule sets. A rule without one is throttled only at prompts and before tool
/// calls, which are frequent.
pub fn throttle_of(rule: &CustomRule, event: &Event) -> Option<Throttle> {
    let ttl = match rule.throttle {
        Some(seconds) => i64::from(seconds) * 1000,
        None if matches!(event.kind, EventKind::PromptSubmit | EventKind::PreToolUse) => DEFAULT_THROTTLE,
        None => 0,
    };
    // The prefix keeps the key distinct from the keys of built-in reminders.
    let id = RuleId::Custom(rule.id.clone());
    (ttl > 0).then(|| Throttle { key: format!("rule:{id}"), ttl, rule: id })
}
