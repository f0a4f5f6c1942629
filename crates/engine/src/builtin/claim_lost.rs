//! Tells a session once that it no longer holds a node: another session took it over, or a person ended the
//! claim. Otherwise the agent would go on with work that another agent does.

use tanmi_base::text;
use tanmi_event::{ActionKind, BuiltinRuleId, EventKind};
use tanmi_workspace::model::PERSON;

use super::{BuiltinRule, RuleInput, RuleOutput, SkipReason};
use crate::escape_tags::escape_line;
use crate::facts::LostClaimFacts;

pub const RULE: BuiltinRule = BuiltinRule {
    id: BuiltinRuleId::ClaimLost,
    about: ("告知会话不再持有的节点", "tells a session which node it no longer holds"),
    priority: 9,
    events: &[EventKind::PromptSubmit],
    run,
};

/// The maximum width of a title and of the name of a holder.
const NAME_COLUMNS: usize = 36;

/// The maximum number of nodes that are named.
const NAMED: usize = 3;

fn run(ctx: &RuleInput<'_>) -> Result<RuleOutput, SkipReason> {
    let (lang, claims) = (ctx.facts.lang, &ctx.facts.session.lost_claims);
    let content = match claims.as_slice() {
        [] => return Err(("会话没有失去认领", "the session has lost no claim")),
        [claim] => {
            let (zh, en) = loss(claim);
            let (zh_look, en_look) = match claim.is_deleted {
                true => ("", "node_next gives"),
                false => ("node_get 查看现状，", "node_get shows its state, node_next"),
            };
            lang.pick(
                format!("你不再持有节点{zh}。停止处理它并告知用户；{zh_look}node_next 给出其他工作。"),
                format!(
                    "You no longer hold node {en}. Stop work on it and tell the user; {en_look} other work."
                ),
            )
        }
        claims => {
            let (zh, en): (Vec<_>, Vec<_>) = claims.iter().rev().take(NAMED).map(loss).unzip();
            let (zh, en) = (zh.join("；"), en.join("; "));
            let (zh_more, en_more) = match claims.len().saturating_sub(NAMED) {
                0 => (String::new(), String::new()),
                more => (format!("；另有 {more} 个"), format!("; {more} more")),
            };
            lang.pick(
                format!("你不再持有这些节点：{zh}{zh_more}。停止处理它们并告知用户；node_next 给出其他工作。"),
                format!(
                    "You no longer hold these nodes: {en}{en_more}. Stop work on them and tell the user; node_next gives other work."
                ),
            )
        }
    };
    RuleOutput::unthrottled(ActionKind::BindingHint, content)
}

/// Returns which node was lost and how, in Chinese and English.
fn loss(claim: &LostClaimFacts) -> (String, String) {
    let name = |name: &str| escape_line(&text::fit(&text::one_line(name), NAME_COLUMNS));
    let (title, id, by) = (name(&claim.title), name(&claim.id), name(&claim.by));
    let (zh_by, en_by) = match claim.by.as_str() {
        PERSON => ("用户", "the user"),
        "" => ("另一会话", "another session"),
        _ => (by.as_str(), by.as_str()),
    };
    let space = if zh_by.ends_with(|c: char| c.is_ascii()) { " " } else { "" };
    let (zh, en) = match (claim.is_taken, claim.is_deleted) {
        (true, _) => ("接手了它", "took it over"),
        (false, true) => ("删除了它", "deleted it"),
        (false, false) => ("结束了它", "ended it"),
    };
    (format!("「{title}」（{id}）：{zh_by}{space}{zh}"), format!("“{title}” ({id}): {en_by} {en}"))
}
