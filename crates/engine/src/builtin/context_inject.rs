//! Injects the context when a bound session starts, also after a resume, a clear or a compaction.

use tanmi_event::{ActionKind, BuiltinRuleId, EventKind};

use super::{BuiltinRule, RuleInput, RuleOutput, SkipReason, UNBOUND};
use crate::context_text::context_text;

pub const RULE: BuiltinRule = BuiltinRule {
    id: BuiltinRuleId::ContextInject,
    about: ("会话开始时注入工作区上下文", "injects the workspace context when a bound session starts"),
    priority: 10,
    events: &[EventKind::SessionStart],
    run,
};

fn run(ctx: &RuleInput<'_>) -> Result<RuleOutput, SkipReason> {
    let workspace = ctx.facts.workspace.as_ref().ok_or(UNBOUND)?;
    RuleOutput::unthrottled(
        ActionKind::InjectContext,
        context_text(ctx.facts, workspace, ctx.event.platform.max_bytes),
    )
}
