//! Tells a bound session at a prompt what changed in its context. The whole context is injected again if a compaction
//! removed it, or if the session was bound since.
//!
//! On platforms that may not report a session start or a compaction, the whole context is also injected every
//! few prompts.

use tanmi_event::{ActionKind, BuiltinRuleId, Event, EventKind};

use super::{BuiltinRule, RuleInput, RuleOutput, SkipReason, UNBOUND};
use crate::context_hash::ContextHash;
use crate::context_text::{changes_text, context_text};

pub const RULE: BuiltinRule = BuiltinRule {
    id: BuiltinRuleId::ContextRefresh,
    about: ("告知上下文的变化", "tells what changed in the context"),
    priority: 11,
    events: &[EventKind::PromptSubmit],
    run,
};

fn run(ctx: &RuleInput<'_>) -> Result<RuleOutput, SkipReason> {
    let facts = ctx.facts;
    let workspace = facts.workspace.as_ref().ok_or(UNBOUND)?;
    ctx.check_session_started()?;
    let now = ContextHash::of(workspace, facts.node.as_ref());
    let max_bytes = ctx.event.platform.max_bytes;
    let content = match known(ctx) {
        None => context_text(facts, workspace, max_bytes),
        Some(known) if known != now => changes_text(facts, workspace, &known, max_bytes),
        Some(_) => {
            return Err(("上下文自上次注入后没有变化", "the context has not changed since it was injected"));
        }
    };
    RuleOutput::unthrottled(ActionKind::InjectContext, content)
}

/// Returns the context that the session knows at this prompt, see [`known_context`].
pub(super) fn known(ctx: &RuleInput<'_>) -> Option<ContextHash> {
    let session = &ctx.facts.session;
    let seen = session.seen_context.as_deref();
    known_context(ctx.event, seen, session.compacted, session.prompts, ctx.facts.refresh_every)
}

/// Returns the context that the session knows at a prompt, or `None` if the whole context is due: it was not injected
/// yet, a compaction removed it, or the interval of the platform has passed.
pub fn known_context(
    event: &Event,
    seen_context: Option<&str>,
    is_compacted: bool,
    prompts: u32,
    refresh_every: u32,
) -> Option<ContextHash> {
    let is_due = event.platform.needs_refresh
        && match refresh_every {
            0 => false,
            1 => true,
            every => prompts > 1 && (prompts - 1).is_multiple_of(every),
        };
    seen_context.and_then(ContextHash::parse).filter(|_| !is_compacted && !is_due)
}
