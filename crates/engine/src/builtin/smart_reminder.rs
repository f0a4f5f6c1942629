//! The highest reminder that applies, unless it is the one about the plan, which has its own rule.

use tanmi_event::{ActionKind, EventKind, Throttle};

use super::reminders::{self, PLAN_COMPLETED, Reminder};
use super::{Ctx, QUIET, Rule, Said};

pub const RULE: Rule = Rule {
    id: "smart-reminder",
    about: ("智能提醒", "reminders that fit the state of the node in focus"),
    priority: 20,
    events: &[EventKind::PromptSubmit],
    run,
};

fn run(ctx: &Ctx<'_>) -> Option<Said> {
    let reminder = reminders::choose(ctx.facts)?;
    (reminder.key != PLAN_COMPLETED).then(|| say(ctx, reminder, ActionKind::SmartReminder))
}

pub(super) fn say(ctx: &Ctx<'_>, reminder: &Reminder, kind: ActionKind) -> Said {
    let text = ctx.facts.lang.pick(reminder.zh, reminder.en);
    Said {
        kind,
        content: format!("<tanmi-smart-reminder>\n{text}\n</tanmi-smart-reminder>"),
        throttle: reminder.throttled.then(|| Throttle { key: reminder.key.to_owned(), ttl: QUIET }),
    }
}
