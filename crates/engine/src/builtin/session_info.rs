//! Tells an unbound session its id when it starts, so that it can be bound.

use tanmi_event::{ActionKind, BuiltinRuleId, EventKind};

use super::{BOUND, BuiltinRule, RuleInput, RuleOutput, SkipReason};
use crate::facts::Facts;

pub const RULE: BuiltinRule = BuiltinRule {
    id: BuiltinRuleId::SessionInfo,
    about: ("未绑定会话开始时告知会话 ID", "tells an unbound session its ID at session start"),
    priority: 10,
    events: &[EventKind::SessionStart],
    run,
};

fn run(ctx: &RuleInput<'_>) -> Result<RuleOutput, SkipReason> {
    let facts = ctx.facts;
    if facts.workspace.is_some() {
        return Err(BOUND);
    }
    ctx.check_workspace_not_lost()?;
    RuleOutput::unthrottled(ActionKind::SessionInfo, how_to_bind(facts))
}

/// Returns a text with the session id and how to bind. The rule `binding-hint` uses it too.
pub(super) fn how_to_bind(facts: &Facts) -> String {
    let id = crate::escape_tags::escape_line(&facts.session.id);
    let zh = format!(
        "你的会话 ID 是 {id}，可以用它调用 session_bind。\n本会话未绑定工作区；session_status 列出可用的工作区。"
    );
    let en = format!(
        "Session ID: {id}\nThis session is not bound to a workspace. session_status lists workspaces; session_bind binds one."
    );
    facts.lang.pick(zh, en)
}
