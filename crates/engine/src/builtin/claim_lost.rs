//! Tells a session once that it no longer holds a node: another session took it over, or a person ended the
//! claim. Otherwise the agent would go on with work that another agent does.

use tanmi_base::text;
use tanmi_event::{ActionKind, BuiltinRuleId, EventKind};
use tanmi_workspace::model::PERSON;

use super::{BuiltinRule, RuleInput, RuleOutput, SkipReason};
use crate::escape_tags::escape_line;

pub const RULE: BuiltinRule = BuiltinRule {
    id: BuiltinRuleId::ClaimLost,
    about: ("告知会话不再持有的节点", "tells a session which node it no longer holds"),
    priority: 9,
    events: &[EventKind::PromptSubmit],
    run,
};

/// The maximum width of a title and of the name of a holder.
const NAME_COLUMNS: usize = 36;

fn run(ctx: &RuleInput<'_>) -> Result<RuleOutput, SkipReason> {
    let (lang, claims) = (ctx.facts.lang, &ctx.facts.session.lost_claims);
    let claim = claims.first().ok_or(("会话没有失去认领", "the session has lost no claim"))?;
    let name = |name: &str| escape_line(&text::fit(&text::one_line(name), NAME_COLUMNS));
    let (title, id) = (name(&claim.title), name(&claim.id));
    let by = match claim.by.as_str() {
        PERSON => lang.pick("用户", "the user").to_owned(),
        "" => lang.pick("另一会话", "another session").to_owned(),
        by => name(by),
    };
    let (zh, en) = match (claim.is_taken, claim.is_deleted) {
        (true, _) => ("接手了它", "took it over"),
        (false, true) => ("删除了它", "deleted it"),
        (false, false) => ("结束了它", "ended it"),
    };
    let (zh_look, en_look) = match claim.is_deleted {
        true => ("", "node_next gives"),
        false => ("node_get 查看现状，", "node_get shows its state, node_next"),
    };
    let (zh_more, en_more) = match claims.len() - 1 {
        0 => (String::new(), String::new()),
        more => (format!("（另失去 {more} 个）"), format!(" (and {more} more)")),
    };
    let zh = format!(
        "你不再持有节点「{title}」（{id}）：{by} {zh}{zh_more}。停止处理它并告知用户；{zh_look}node_next 给出其他工作。"
    );
    let en = format!(
        "You no longer hold node “{title}” ({id}): {by} {en}{en_more}. Stop work on it and tell the user; {en_look} other work."
    );
    RuleOutput::unthrottled(ActionKind::BindingHint, lang.pick(zh, en))
}
