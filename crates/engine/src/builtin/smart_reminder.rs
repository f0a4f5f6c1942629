//! Injects the first reminder that applies, except the one about the plan, which is the rule `plan-confirm`.

use tanmi_base::text;
use tanmi_event::{ActionKind, BuiltinRuleId, EventKind};

use super::reminders::{self, PLAN_COMPLETED, PROBLEM_OPEN, Reminder};
use super::{BuiltinRule, RuleInput, RuleOutput, SkipReason, default_throttle};
use crate::escape_tags::escape_line;

pub const RULE: BuiltinRule = BuiltinRule {
    id: BuiltinRuleId::SmartReminder,
    about: ("智能提醒", "reminders about the state of the focused node"),
    priority: 20,
    events: &[EventKind::PromptSubmit],
    run,
};

fn run(ctx: &RuleInput<'_>) -> Result<RuleOutput, SkipReason> {
    match reminders::choose(ctx.facts)? {
        reminder if reminder.key == PLAN_COMPLETED => {
            Err(("适用的是计划确认提醒", "the plan confirmation applies, which is a rule of its own"))
        }
        reminder => Ok(output(ctx, reminder, RULE.id)),
    }
}

/// The width of the problem text in a reminder. The full text is in the context.
const PROBLEM_COLUMNS: usize = 160;

pub(super) fn output(ctx: &RuleInput<'_>, reminder: &Reminder, rule: BuiltinRuleId) -> RuleOutput {
    let lang = ctx.facts.lang;
    let mut content = lang.pick(reminder.zh, reminder.en).to_owned();
    if let Some(node) = ctx.facts.node.as_ref().filter(|_| reminder.key == PROBLEM_OPEN) {
        let problem = escape_line(&text::fit(&text::one_line(&node.problem), PROBLEM_COLUMNS));
        content.push_str(&format!("\n{}{problem}", lang.pick("问题：", "Problem: ")));
    }
    RuleOutput {
        kind: ActionKind::SmartReminder,
        content,
        throttle: reminder.throttled.then(|| default_throttle(reminder.key, rule)),
    }
}
