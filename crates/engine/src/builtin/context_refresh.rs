//! A bound session gets its context again at a prompt, when it is no longer the one it was told.
//!
//! Everywhere: when its content changed or was compacted away. Where a start or a compaction may go unseen, also every so
//! many prompts.

use tanmi_event::{ActionKind, EventKind};

use super::{BuiltinRule, RuleInput, RuleOutput, SkipReason, UNBOUND};
use crate::context_text::{ContextHash, context_text};

pub const RULE: BuiltinRule = BuiltinRule {
    id: "context-refresh",
    about: ("上下文变化后重新注入", "injects the context again after it changed"),
    priority: 11,
    events: &[EventKind::PromptSubmit],
    run,
};

fn run(ctx: &RuleInput<'_>) -> Result<RuleOutput, SkipReason> {
    let facts = ctx.facts;
    let workspace = facts.workspace.as_ref().ok_or(UNBOUND)?;
    ctx.refuse_before_start()?;
    let hash = ContextHash::of(workspace, facts.node.as_ref()).to_string();
    let changed = facts.session.seen_context.as_deref() != Some(&hash);
    let periodic = ctx.event.platform.refreshes
        && match facts.refresh_every {
            0 => false,
            1 => true,
            every => facts.session.prompts > 1 && (facts.session.prompts - 1).is_multiple_of(every),
        };
    if !changed && !facts.session.compacted && !periodic {
        return Err(("上下文自上次注入后没有变化", "the context has not changed since it was injected"));
    }
    RuleOutput::always(ActionKind::InjectContext, context_text(facts, workspace, ctx.event.platform.cap))
}
