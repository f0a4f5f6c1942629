//! Reports that the bound workspace is missing, cannot be read, was archived or was deleted. Otherwise the agent would
//! continue without goal and rules, and the user would not notice.

use tanmi_base::text;
use tanmi_event::{ActionKind, BuiltinRuleId, EventKind, Throttle};

use super::{BuiltinRule, RuleInput, RuleOutput, SkipReason};
use crate::escape_tags::escape_line;

pub const RULE: BuiltinRule = BuiltinRule {
    id: BuiltinRuleId::BindingLost,
    about: (
        "绑定的工作区不存在、无法读取、已归档或已删除时告知",
        "reports that the bound workspace is missing, unreadable, archived or deleted",
    ),
    priority: 9,
    events: &[EventKind::SessionStart, EventKind::PromptSubmit],
    run,
};

/// In milliseconds. A session start and a compaction end it, see [`is_binding_throttle`].
const REPEAT_LOST_AFTER: i64 = 3_600_000;
/// Longer than the session states keep the time, so that it is reported once.
const REPEAT_PUT_AWAY_AFTER: i64 = 30 * 86_400_000;

const PREFIX: &str = "lost:";
/// The maximum width of the name of a workspace.
const NAME_COLUMNS: usize = 60;

/// Returns whether a throttle belongs to this rule. The agent no longer knows the report after a compaction.
pub fn is_binding_throttle(key: &str) -> bool {
    key.starts_with(PREFIX)
}

fn run(ctx: &RuleInput<'_>) -> Result<RuleOutput, SkipReason> {
    let session = &ctx.facts.session;
    let put_away = |(id, name): &(String, String), (zh, en): (&str, &str)| {
        (id.clone(), REPEAT_PUT_AWAY_AFTER, put_away_texts(&session.id, id, name, zh, en))
    };
    let (id, ttl, (zh, en)) = if let Some(id) = &session.lost_workspace {
        (id.clone(), REPEAT_LOST_AFTER, lost_texts(&session.id, id))
    } else if let Some(archived) = &session.archived_workspace {
        put_away(archived, ("已归档，只读", "was archived and is read-only"))
    } else if let Some(deleted) = &session.deleted_workspace {
        put_away(deleted, ("已被删除", "was deleted"))
    } else {
        return Err(("绑定的工作区没有丢失", "the session has lost no workspace"));
    };
    let throttle = Throttle { key: format!("{PREFIX}{id}"), ttl, rule: RULE.id.into() };
    Ok(RuleOutput {
        kind: ActionKind::BindingHint,
        content: ctx.facts.lang.pick(zh, en),
        throttle: Some(throttle),
    })
}

fn lost_texts(session: &str, id: &str) -> (String, String) {
    let (session, id) = (escape_line(session), escape_line(id));
    (
        format!(
            "会话 ID：{session}\n本会话绑定的工作区 {id} 不存在、已被替换或无法读取，因此不再注入它的目标和规则。请告知用户：用 tanmi doctor 查看原因；文件恢复后绑定自动恢复，也可用 session_bind 绑定其他工作区。"
        ),
        format!(
            "Session ID: {session}\nThis session is bound to workspace {id}, which is missing, was replaced or cannot be read, so its goal and rules are not injected. Please tell the user: tanmi doctor shows the reason; the binding returns with the files, or session_bind binds another workspace."
        ),
    )
}

fn put_away_texts(session: &str, id: &str, name: &str, zh: &str, en: &str) -> (String, String) {
    let (session, id) = (escape_line(session), escape_line(id));
    let name = escape_line(&text::fit(&text::one_line(name), NAME_COLUMNS));
    (
        format!(
            "会话 {session} 未绑定：它的工作区「{name}」（{id}）{zh}。若用户要继续它，workspace_restore 恢复它和绑定；session_bind 绑定其他工作区。"
        ),
        format!(
            "Tanmi: session {session}, not bound: its workspace “{name}” ({id}) {en}. If the user wants to continue it, workspace_restore restores it and the binding; session_bind binds another one."
        ),
    )
}
