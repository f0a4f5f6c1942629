//! Injects the first reminder that applies, except the one about the plan, which is the rule `plan-confirm`.

use tanmi_base::text;
use tanmi_event::{ActionKind, BuiltinRuleId, EventKind};

use super::reminders::{self, PLAN_COMPLETED, PROBLEM_OPEN, Reminder};
use super::{BuiltinRule, RuleInput, RuleOutput, SkipReason, default_throttle};
use crate::escape_tags::{cut_escaped, escape_line};
use crate::facts::{Facts, NodeFacts};

pub const RULE: BuiltinRule = BuiltinRule {
    id: BuiltinRuleId::SmartReminder,
    about: ("智能提醒", "reminders about the state of the focused node"),
    priority: 20,
    events: &[EventKind::PromptSubmit],
    run,
};

fn run(ctx: &RuleInput<'_>) -> Result<RuleOutput, SkipReason> {
    match reminders::choose(ctx.facts)? {
        reminder if reminder.key == PROBLEM_OPEN && ctx.has_context => {
            Err(("上下文已包含该问题", "the context contains the problem"))
        }
        reminder if reminder.key == PLAN_COMPLETED => {
            Err(("适用的是计划确认提醒", "the plan confirmation applies, which is a rule of its own"))
        }
        reminder => Ok(output(ctx, reminder, RULE.id)),
    }
}

pub(super) fn output(ctx: &RuleInput<'_>, reminder: &Reminder, rule: BuiltinRuleId) -> RuleOutput {
    let lang = ctx.facts.lang;
    let content = match ctx.facts.node.as_ref().filter(|_| reminder.key == PROBLEM_OPEN) {
        Some(node) => problem_text(ctx.facts, node, lang.pick(reminder.zh, reminder.en)),
        None => lang.pick(reminder.zh, reminder.en).to_owned(),
    };
    RuleOutput {
        kind: ActionKind::SmartReminder,
        content,
        throttle: reminder.throttled.then(|| default_throttle(reminder.key, rule)),
    }
}

/// The limits in bytes of the description and of the next step. The context contains more of both.
const PROBLEM_BYTES: usize = 900;
const NEXT_STEP_BYTES: usize = 300;
/// The limit in bytes of the one line about a problem that the session knows.
const KNOWN_PROBLEM_BYTES: usize = 140;

/// Returns the open problem in full with `advice`, or one short line if the session knows it.
fn problem_text(facts: &Facts, node: &NodeFacts, advice: &str) -> String {
    let lang = facts.lang;
    let line = |text: &str, max: usize| cut_escaped(&escape_line(&text::one_line(text)), max);
    if facts.session.told_problem.is_some() && facts.session.told_problem == node.problem_hash() {
        let label = lang.pick("⚠️ 问题仍未解决：", "⚠️ Still open: ");
        return format!("{label}{}", line(&node.problem, KNOWN_PROBLEM_BYTES - label.len()));
    }
    let mut content =
        format!("{advice}\n{}{}", lang.pick("问题：", "Problem: "), line(&node.problem, PROBLEM_BYTES));
    if !node.next_step.is_empty() {
        let next_step = line(&node.next_step, NEXT_STEP_BYTES);
        content.push_str(&format!("\n{}{next_step}", lang.pick("下一步：", "Next step: ")));
    }
    content
}
