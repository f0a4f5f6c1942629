//! Injects the context into a subagent of a bound session, with instructions on how to return its result.

use tanmi_base::text;
use tanmi_event::{ActionKind, BuiltinRuleId, EventKind};

use super::declared_context::NODE_RESERVE;
use super::{BuiltinRule, RuleInput, RuleOutput, SkipReason, UNBOUND};
use crate::context_text::context_text;
use crate::escape_tags::escape_line;
use crate::facts::{HolderFacts, NodeFacts};

pub const RULE: BuiltinRule = BuiltinRule {
    id: BuiltinRuleId::SubagentContext,
    about: ("子智能体开始时注入工作区上下文", "injects the context of the session into a subagent"),
    priority: 14,
    events: &[EventKind::SubagentStart],
    run,
};

fn run(ctx: &RuleInput<'_>) -> Result<RuleOutput, SkipReason> {
    let (facts, lang) = (ctx.facts, ctx.facts.lang);
    let workspace = facts.workspace.as_ref().ok_or(UNBOUND)?;
    let kind = ctx.event.payload.agent_type.as_deref().unwrap_or_default();
    let kind = escape_line(&text::fit(&text::one_line(kind), 60));
    let (zh, en) = match kind.is_empty() {
        true => (String::from("你是子智能体。"), String::from("You are a subagent.")),
        false => (format!("你是子智能体（{kind}）。"), format!("You are a subagent ({kind}).")),
    };
    let introduction = lang.pick(zh, en);
    let is_open =
        |node: &&NodeFacts| matches!(node.held_by, None | Some(HolderFacts::User)) && !node.status.is_done();
    let instructions = match facts.node.as_ref().filter(is_open) {
        Some(node) => {
            let id = escape_line(&node.id);
            let zh = format!(
                "返回结果：用 log_append 将过程记录到节点 {id}；在最后的回答中写明结论、修改的文件和未解决的问题。节点状态由主智能体流转；只有主智能体把某个节点交给你时，才对该节点执行 start（带 agent）和 complete（带 conclusion）。"
            );
            let en = format!(
                "Returning results: record progress on node {id} with log_append; state the conclusion, the changed files and open problems in your final answer. The main agent changes node statuses; start (with agent) and complete (with conclusion) only a node that it assigned to you."
            );
            lang.pick(zh, en)
        }
        None => {
            let zh = "返回结果：在最后的回答中写明结论、修改的文件和未解决的问题。";
            let en = "Returning results: state the conclusion, the changed files and open problems in your final answer.";
            lang.pick(zh, en).to_owned()
        }
    };
    // The rule `declared-context` leaves at least this many bytes.
    let cap = ctx.bytes_left.max(NODE_RESERVE).saturating_sub(introduction.len() + instructions.len() + 2);
    let context = context_text(facts, workspace, cap);
    let content = format!("{introduction}\n{}\n{instructions}", context.trim_end());
    RuleOutput::unthrottled(ActionKind::InjectContext, content)
}
