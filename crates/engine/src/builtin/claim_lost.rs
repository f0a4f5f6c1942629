//! Tells a session once that it no longer holds a node: another session took it over, or a person ended the
//! claim; or that it holds a deleted node again. Otherwise the agent would go on with work that another agent does.

use tanmi_base::{Lang, text};
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
    let claims = &ctx.facts.session.lost_claims;
    if claims.is_empty() {
        return Err(("会话没有失去认领", "the session has lost no claim"));
    }
    let (back, lost): (Vec<&LostClaimFacts>, Vec<_>) = claims.iter().partition(|claim| claim.is_restored);
    let texts = [lost_text(&lost, ctx.facts.lang), back_text(&back, ctx.facts.lang)];
    RuleOutput::unthrottled(
        ActionKind::BindingHint,
        texts.into_iter().flatten().collect::<Vec<_>>().join("\n"),
    )
}

fn lost_text(claims: &[&LostClaimFacts], lang: Lang) -> Option<String> {
    let content = match claims {
        [] => return None,
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
            let (zh, en): (Vec<_>, Vec<_>) = claims.iter().rev().take(NAMED).map(|claim| loss(claim)).unzip();
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
    Some(content)
}

/// Returns the text about nodes that were deleted and are back.
fn back_text(claims: &[&LostClaimFacts], lang: Lang) -> Option<String> {
    let name = |claim: &&LostClaimFacts| {
        let (title, id) = (short(&claim.title), short(&claim.id));
        lang.pick(format!("「{title}」（{id}）"), format!("“{title}” ({id})"))
    };
    let names: Vec<String> = claims.iter().rev().take(NAMED).map(name).collect();
    let names = names.join(lang.pick("、", ", "));
    let zh = format!("已删除的节点{names}已恢复，由你持有；context_focus 可回到该节点。");
    let en = format!("Restored after its deletion: {names}. You hold it again; context_focus returns to it.");
    (!claims.is_empty()).then(|| lang.pick(zh, en))
}

fn short(name: &str) -> String {
    escape_line(&text::fit(&text::one_line(name), NAME_COLUMNS))
}

/// Returns which node was lost and how, in Chinese and English.
fn loss(claim: &LostClaimFacts) -> (String, String) {
    let (title, id, by) = (short(&claim.title), short(&claim.id), short(&claim.by));
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
