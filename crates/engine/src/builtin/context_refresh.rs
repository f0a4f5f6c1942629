//! Injects the context of a bound session again at a prompt, if the content changed or a compaction removed it.
//!
//! On platforms that may not report a session start or a compaction, the context is also injected every few prompts.

use tanmi_event::{ActionKind, BuiltinRuleId, EventKind};

use super::{BuiltinRule, RuleInput, RuleOutput, SkipReason, UNBOUND};
use crate::context_text::{ContextHash, context_text};

pub const RULE: BuiltinRule = BuiltinRule {
    id: BuiltinRuleId::ContextRefresh,
    about: ("上下文变化后重新注入", "injects the context again after it changed"),
    priority: 11,
    events: &[EventKind::PromptSubmit],
    run,
};

fn run(ctx: &RuleInput<'_>) -> Result<RuleOutput, SkipReason> {
    let facts = ctx.facts;
    let workspace = facts.workspace.as_ref().ok_or(UNBOUND)?;
    ctx.check_session_started()?;
    let hash = ContextHash::of(workspace, facts.node.as_ref()).to_string();
    let is_changed = facts.session.seen_context.as_deref() != Some(&hash);
    let is_due = ctx.event.platform.needs_refresh
        && match facts.refresh_every {
            0 => false,
            1 => true,
            every => facts.session.prompts > 1 && (facts.session.prompts - 1).is_multiple_of(every),
        };
    if !is_changed && !facts.session.compacted && !is_due {
        return Err(("上下文自上次注入后没有变化", "the context has not changed since it was injected"));
    }
    RuleOutput::unthrottled(
        ActionKind::InjectContext,
        context_text(facts, workspace, ctx.event.platform.max_bytes),
    )
}
