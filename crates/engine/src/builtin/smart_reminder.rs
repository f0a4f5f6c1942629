//! Injects the first reminder that applies, except the one about the plan, which is the rule `plan-confirm`.

use tanmi_base::text;
use tanmi_event::{ActionKind, BuiltinRuleId, EventKind};

use super::reminders::{self, PLAN_COMPLETED, PROBLEM_OPEN, Reminder};
use super::{BuiltinRule, RuleInput, RuleOutput, SkipReason, context_refresh, default_throttle};
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
        reminder if reminder.key == PROBLEM_OPEN && is_in_context(ctx) => {
            Err(("上下文已包含该问题", "the context contains the problem"))
        }
        reminder if reminder.key == PLAN_COMPLETED => {
            Err(("适用的是计划确认提醒", "the plan confirmation applies, which is a rule of its own"))
        }
        reminder => Ok(output(ctx, reminder, RULE.id)),
    }
}

/// Returns whether a context in the same request of the model contains the open problem: that of this prompt, or that of
/// the session start, if this is the first prompt.
fn is_in_context(ctx: &RuleInput<'_>) -> bool {
    let session = &ctx.facts.session;
    let is_known = ctx.facts.node.as_ref().is_some_and(|node| session.knows_problem_of(node));
    if ctx.has_context {
        // A context that only tells changes leaves out a problem that the session knows.
        return !is_known || context_refresh::known(ctx).is_none();
    }
    let has_start_told =
        session.hooks_seen.contains(&EventKind::SessionStart) && session.seen_context.is_some();
    is_known && session.prompts <= 1 && (has_start_told || ctx.check_session_started().is_err())
}

pub(super) fn output(ctx: &RuleInput<'_>, reminder: &Reminder, rule: BuiltinRuleId) -> RuleOutput {
    let lang = ctx.facts.lang;
    let advice = lang.pick(reminder.zh, reminder.en);
    let content = match (reminder.key, &ctx.facts.node) {
        (PROBLEM_OPEN, Some(node)) => problem_text(ctx.facts, node, advice),
        (PLAN_COMPLETED, _) => plan_text(ctx.facts, advice),
        _ => advice.to_owned(),
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

/// The maximum width of the title of the node.
const TITLE_COLUMNS: usize = 60;

/// Returns the open problem in full with `advice`, or one short line if the session knows it.
fn problem_text(facts: &Facts, node: &NodeFacts, advice: &str) -> String {
    let lang = facts.lang;
    let line = |text: &str, max: usize| cut_escaped(&escape_line(&text::one_line(text)), max);
    if facts.session.knows_problem_of(node) {
        let label = lang.pick("⚠️ 问题仍未解决：", "⚠️ Still open: ");
        return format!("{label}{}", line(&node.problem, KNOWN_PROBLEM_BYTES - label.len()));
    }
    let title = escape_line(&text::fit(&text::one_line(&node.title), TITLE_COLUMNS));
    let problem = line(&node.problem, PROBLEM_BYTES);
    let next_step = match node.next_step.as_str() {
        "" => String::new(),
        text => format!("\n{}{}", lang.pick("下一步：", "Next step: "), line(text, NEXT_STEP_BYTES)),
    };
    lang.pick(
        format!("{advice}\n问题（{title}）：{problem}{next_step}"),
        format!("⚠️ Open problem on {title}: {problem}{next_step}\n{advice}"),
    )
}

/// From this number on, tasks are not counted.
const MANY_TASKS: usize = 200;

/// Returns the reminder to confirm a plan with the number of its tasks, if none is started. The Chinese text
/// is that of the specification, without a number.
fn plan_text(facts: &Facts, advice: &str) -> String {
    let of_focus = |node: &NodeFacts| node.children.filter(|children| children.pending == children.total);
    let tasks = match facts.workspace.as_ref().and_then(|workspace| workspace.unstarted_tasks).unwrap_or(0) {
        0 => facts
            .node
            .as_ref()
            .and_then(of_focus)
            .map_or(0, |children| usize::try_from(children.total).unwrap_or(MANY_TASKS)),
        tasks => tasks,
    };
    let (count, none) = match tasks {
        0 => return advice.to_owned(),
        1 => (String::from("1 task"), "it is not started"),
        MANY_TASKS.. => (format!("{MANY_TASKS} tasks or more"), "none is started"),
        _ => (format!("{tasks} tasks"), "none is started"),
    };
    facts.lang.pick(
        advice.to_owned(),
        format!(
            "📋 The plan has {count} and {none}. Show it to the user and wait for their confirmation, unless they \
             have given it."
        ),
    )
}
