//! The highest reminder that applies, unless it is the one about the plan, which has its own rule.

use tanmi_event::{ActionKind, EventKind};

use super::reminders::{self, PLAN_COMPLETED, Reminder};
use super::{Builtin, Ctx, Said, Why, quiet};

pub const RULE: Builtin = Builtin {
    id: "smart-reminder",
    about: ("智能提醒", "reminders that fit the state of the node in focus"),
    priority: 20,
    events: &[EventKind::PromptSubmit],
    run,
};

fn run(ctx: &Ctx<'_>) -> Result<Said, Why> {
    match reminders::choose(ctx.facts)? {
        reminder if reminder.key == PLAN_COMPLETED => {
            Err(("适用的是计划确认", "the one that applies is the plan's, which has its own rule"))
        }
        reminder => Ok(say(ctx, reminder, RULE.id)),
    }
}

pub(super) fn say(ctx: &Ctx<'_>, reminder: &Reminder, rule: &str) -> Said {
    Said {
        kind: ActionKind::SmartReminder,
        content: ctx.facts.lang.pick(reminder.zh, reminder.en).to_owned(),
        throttle: reminder.throttled.then(|| quiet(reminder.key, rule)),
    }
}
