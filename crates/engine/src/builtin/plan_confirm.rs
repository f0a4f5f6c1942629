//! A plan that has its tasks is shown to the person before it is carried out.

use tanmi_event::{ActionKind, EventKind};

use super::reminders::{self, PLAN_COMPLETED};
use super::{Ctx, Rule, Said, smart_reminder};

pub const RULE: Rule = Rule {
    id: "plan-confirm",
    about: ("计划确认提醒", "asks to show a finished plan to the user"),
    priority: 15,
    events: &[EventKind::PromptSubmit],
    run,
};

fn run(ctx: &Ctx<'_>) -> Option<Said> {
    let reminder = reminders::choose(ctx.facts)?;
    (reminder.key == PLAN_COMPLETED).then(|| smart_reminder::say(ctx, reminder, ActionKind::SmartReminder))
}
