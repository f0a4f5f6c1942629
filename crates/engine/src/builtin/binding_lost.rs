//! A session whose workspace is gone or cannot be read is told so, once in a while: it would go on without goal and rules
//! and nobody would know. An archived workspace is put away on purpose, and is silence.

use tanmi_event::{ActionKind, EventKind, Throttle};

use super::{BuiltinRule, RuleInput, RuleOutput, SkipReason};

pub const RULE: BuiltinRule = BuiltinRule {
    id: "binding-lost",
    about: (
        "绑定的工作区无法读取时告知",
        "tells when the workspace it is bound to is gone or cannot be read",
    ),
    priority: 9,
    events: &[EventKind::SessionStart, EventKind::PromptSubmit],
    run,
};

/// An hour.
const AGAIN_AFTER: i64 = 3_600_000;

fn run(ctx: &RuleInput<'_>) -> Result<RuleOutput, SkipReason> {
    let lost =
        ctx.facts.session.lost.as_deref().ok_or(("绑定没有问题", "nothing is wrong with its binding"))?;
    let (session, id) = (crate::escape_tags(&ctx.facts.session.id), crate::escape_tags(lost));
    let zh = format!(
        "会话 ID：{session}\n本会话绑定的工作区 {id} 现在不存在或无法读取，它的目标和规则不会再送达。请告知用户：tanmi doctor 说明原因；文件恢复后绑定随之恢复，session_bind 可改绑另一个。"
    );
    let en = format!(
        "Session id: {session}\nThe workspace this session is bound to, {id}, is gone or cannot be read: its goal and rules arrive no more. Tell the user: tanmi doctor says why; the binding is back when the files are, and session_bind binds another."
    );
    let throttle = Throttle { key: format!("lost:{id}"), ttl: AGAIN_AFTER, rule: RULE.id.to_owned() };
    Ok(RuleOutput {
        kind: ActionKind::BindingHint,
        content: ctx.facts.lang.pick(zh, en),
        throttle: Some(throttle),
    })
}
