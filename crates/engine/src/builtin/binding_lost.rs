//! Reports that the bound workspace is missing or cannot be read. Otherwise the agent would continue without goal and
//! rules, and the user would not notice. A workspace that was archived on purpose is not reported.

use tanmi_event::{ActionKind, BuiltinRuleId, EventKind, Throttle};

use super::{BuiltinRule, RuleInput, RuleOutput, SkipReason};
use crate::escape_tags::escape_line;

pub const RULE: BuiltinRule = BuiltinRule {
    id: BuiltinRuleId::BindingLost,
    about: (
        "绑定的工作区不存在或无法读取时告知",
        "reports that the bound workspace is missing or unreadable",
    ),
    priority: 9,
    events: &[EventKind::SessionStart, EventKind::PromptSubmit],
    run,
};

/// In milliseconds: one hour.
const REPEAT_AFTER: i64 = 3_600_000;

fn run(ctx: &RuleInput<'_>) -> Result<RuleOutput, SkipReason> {
    let lost = ctx
        .facts
        .session
        .lost_workspace
        .as_deref()
        .ok_or(("绑定的工作区没有丢失", "the session has lost no workspace"))?;
    let (session, id) = (escape_line(&ctx.facts.session.id), escape_line(lost));
    let zh = format!(
        "会话 ID：{session}\n本会话绑定的工作区 {id} 不存在、已被替换或无法读取，因此不再注入它的目标和规则。请告知用户：用 tanmi doctor 查看原因；文件恢复后绑定自动恢复，也可用 session_bind 绑定其他工作区。"
    );
    let en = format!(
        "Session ID: {session}\nThis session is bound to workspace {id}, which is missing, was replaced or cannot be read, so its goal and rules are not injected. Please tell the user: tanmi doctor shows the reason; the binding returns with the files, or session_bind binds another workspace."
    );
    let throttle = Throttle { key: format!("lost:{id}"), ttl: REPEAT_AFTER, rule: RULE.id.into() };
    Ok(RuleOutput {
        kind: ActionKind::BindingHint,
        content: ctx.facts.lang.pick(zh, en),
        throttle: Some(throttle),
    })
}
