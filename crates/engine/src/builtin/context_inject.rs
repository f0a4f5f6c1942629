//! A bound session gets its context when it starts: after a resume, a clear or a compaction too.

use tanmi_event::{ActionKind, EventKind};

use super::{Ctx, Rule, Said};
use crate::context_text::context_text;

pub const RULE: Rule = Rule {
    id: "context-inject",
    about: ("会话开始时注入工作区上下文", "gives a bound session its context when it starts"),
    priority: 10,
    events: &[EventKind::SessionStart],
    run,
};

fn run(ctx: &Ctx<'_>) -> Option<Said> {
    let workspace = ctx.facts.workspace.as_ref()?;
    Said::always(ActionKind::InjectContext, context_text(ctx.facts, workspace, ctx.event.platform.cap))
}
