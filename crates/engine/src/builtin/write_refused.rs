//! Tells a session once that the server of its team refused a write which had waited for it. The call that
//! made the write was answered with success, so the agent counts on it.

use tanmi_base::text;
use tanmi_event::{ActionKind, BuiltinRuleId, EventKind};

use super::{BuiltinRule, RuleInput, RuleOutput, SkipReason};
use crate::escape_tags::escape_line;

pub const RULE: BuiltinRule = BuiltinRule {
    id: BuiltinRuleId::WriteRefused,
    about: (
        "告知会话团队服务器后来拒绝了它的哪次写入",
        "tells a session which of its writes the team server refused later",
    ),
    priority: 9,
    events: &[EventKind::PromptSubmit],
    run,
};

/// The maximum width of the text of the write and of the reason.
const TEXT_COLUMNS: usize = 60;

fn run(ctx: &RuleInput<'_>) -> Result<RuleOutput, SkipReason> {
    let (lang, writes) = (ctx.facts.lang, &ctx.facts.session.refused_writes);
    let write = writes.first().ok_or(("没有被拒绝的写入", "no write of the session was refused"))?;
    let fit = |long: &str| escape_line(&text::fit(&text::one_line(long), TEXT_COLUMNS));
    let (what, why) = (fit(&write.text), fit(&write.reason));
    let (zh_more, en_more) = match writes.len() - 1 {
        0 => (String::new(), String::new()),
        more => (format!("（另有 {more} 次）"), format!(" (and {more} more)")),
    };
    let zh = format!(
        "团队服务器拒绝了你先前等待发送的写入「{what}」{zh_more}：{why}。其他人看不到它；告知用户，`tanmi team outbox list` 列出它。"
    );
    let en = format!(
        "The team server refused your queued write “{what}”{en_more}: {why}. Others do not have it; tell the user. `tanmi team outbox list` shows it."
    );
    RuleOutput::unthrottled(ActionKind::BindingHint, lang.pick(zh, en))
}
