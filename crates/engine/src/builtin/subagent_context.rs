//! A subagent of a bound session gets the goal, the rules and the node in focus, and how its result comes into the tree.

use tanmi_event::{ActionKind, EventKind};

use super::declared_context::FOR_NODE;
use super::{BuiltinRule, RuleInput, RuleOutput, SkipReason, UNBOUND};
use crate::context_text::context_text;
use crate::escape_tags;

pub const RULE: BuiltinRule = BuiltinRule {
    id: "subagent-context",
    about: ("子智能体开始时注入工作区上下文", "gives a subagent its session's context"),
    priority: 14,
    events: &[EventKind::SubagentStart],
    run,
};

fn run(ctx: &RuleInput<'_>) -> Result<RuleOutput, SkipReason> {
    let (facts, lang) = (ctx.facts, ctx.facts.lang);
    let workspace = facts.workspace.as_ref().ok_or(UNBOUND)?;
    let kind = ctx.event.payload.agent_type.as_deref().map(escape_tags).unwrap_or_default();
    let kind = tanmi_base::text::fit(&tanmi_base::text::one_line(&kind), 60);
    let (zh, en) = match kind.is_empty() {
        true => (String::from("你是子智能体。"), String::from("You are a subagent.")),
        false => (format!("你是子智能体（{kind}）。"), format!("You are a subagent ({kind}).")),
    };
    let who = lang.pick(zh, en);
    let back = match &facts.node {
        Some(node) => {
            let id = &node.id;
            let zh = format!(
                "交回结果：过程用 log_append 记到节点 {id}；最后的回答里写明结论、改动的文件和未解决的问题。节点的状态由主智能体流转；只有主智能体把某个节点交给你时，才对该节点 start（附 agent）与 complete（附 conclusion）。"
            );
            let en = format!(
                "Handing back: keep the log of node {id} with log_append; end with an answer that names the conclusion, the files you changed and what is open. The main agent moves nodes on; start (naming yourself as agent) and complete (with a conclusion) only a node that it gave to you."
            );
            lang.pick(zh, en)
        }
        None => {
            let zh = "交回结果：最后的回答里写明结论、改动的文件和未解决的问题。";
            let en = "Handing back: end with an answer that names the conclusion, the files you changed and what is open.";
            lang.pick(zh, en).to_owned()
        }
    };
    // What is declared has left this much at least.
    let cap = ctx.left.max(FOR_NODE).saturating_sub(who.len() + back.len() + 2);
    let context = context_text(facts, workspace, cap);
    RuleOutput::always(ActionKind::InjectContext, format!("{who}\n{}\n{back}", context.trim_end()))
}
