//! Reminds the agent to show a complete plan to the user before it starts the first task.

use tanmi_event::{BuiltinRuleId, EventKind};

use super::reminders::{self, PLAN_COMPLETED};
use super::{BuiltinRule, RuleInput, RuleOutput, SkipReason, smart_reminder};

pub const RULE: BuiltinRule = BuiltinRule {
    id: BuiltinRuleId::PlanConfirm,
    about: ("计划确认提醒", "reminds the agent to show a complete plan to the user"),
    priority: 15,
    events: &[EventKind::PromptSubmit],
    run,
};

fn run(ctx: &RuleInput<'_>) -> Result<RuleOutput, SkipReason> {
    match reminders::choose(ctx.facts)? {
        reminder if reminder.key == PLAN_COMPLETED => Ok(smart_reminder::output(ctx, reminder, RULE.id)),
        _ => Err(("适用的是另一条提醒", "another reminder applies")),
    }
}
