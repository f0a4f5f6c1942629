//! The highest reminder that applies, unless it is the one about the plan, which has its own rule.

use tanmi_base::text;
use tanmi_event::{ActionKind, EventKind};

use super::reminders::{self, PLAN_COMPLETED, PROBLEM_OPEN, Reminder};
use super::{BuiltinRule, RuleInput, RuleOutput, SkipReason, quiet};
use crate::escape_tags;

pub const RULE: BuiltinRule = BuiltinRule {
    id: "smart-reminder",
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
        reminder => Ok(say(ctx, reminder, RULE.id)),
    }
}

/// Columns of a problem in its reminder; the whole of it is in the context.
const PROBLEM: usize = 160;

pub(super) fn say(ctx: &RuleInput<'_>, reminder: &Reminder, rule: &str) -> RuleOutput {
    let lang = ctx.facts.lang;
    let mut content = lang.pick(reminder.zh, reminder.en).to_owned();
    if let Some(node) = ctx.facts.node.as_ref().filter(|_| reminder.key == PROBLEM_OPEN) {
        let problem = escape_tags(&text::fit(&text::one_line(&node.problem), PROBLEM));
        content.push_str(&format!("\n{}{problem}", lang.pick("问题：", "Problem: ")));
    }
    RuleOutput {
        kind: ActionKind::SmartReminder,
        content,
        throttle: reminder.throttled.then(|| quiet(reminder.key, rule)),
    }
}
