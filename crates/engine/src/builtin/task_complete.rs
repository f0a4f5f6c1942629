//! Tells the agent that a parent node can be completed when its last open child is completed.

use tanmi_event::{ActionKind, BuiltinRuleId, EventKind};
use tanmi_workspace::model::NodeStatus;

use super::{BuiltinRule, RuleInput, RuleOutput, SkipReason};
use crate::escape_tags::escape_line;

pub const RULE: BuiltinRule = BuiltinRule {
    id: BuiltinRuleId::TaskComplete,
    about: ("任务完成提醒", "reports that a parent can be completed after its last child"),
    priority: 25,
    events: &[EventKind::TaskComplete],
    run,
};

fn run(ctx: &RuleInput<'_>) -> Result<RuleOutput, SkipReason> {
    let node = ctx.facts.node.as_ref().ok_or(("没有该节点", "the node does not exist"))?;
    let parent = node.parent.as_ref().ok_or(("没有父节点", "the node has no parent"))?;
    let is_open = parent.status == NodeStatus::Monitoring;
    let children = parent.children.filter(|children| is_open && children.all_done());
    let children = children.ok_or(("父节点还不能完成", "the parent cannot be completed yet"))?;
    let (title, id) = (escape_line(&parent.title), escape_line(&parent.id));
    let (failed_zh, failed_en) = match children.failed {
        0 => (String::new(), String::new()),
        failed => (format!("，其中 {failed} 个失败"), format!(", {failed} of them failed")),
    };
    let (verb, call) = match &ctx.facts.workspace {
        Some(workspace) if ctx.facts.suggests_commands => {
            let workspace = escape_line(&workspace.id);
            let options = format!("--workspace {workspace} --action complete --conclusion '...'");
            ("运行", format!("`tanmi node transition {id} {options}`"))
        }
        _ => ("调用", format!("node_transition(nodeId='{id}', action='complete', conclusion='...')")),
    };
    let zh = format!(
        "✅「{title}」（{id}）的所有子节点已完成{failed_zh}。\n建议：汇总子节点结论，{verb} {call} 完成它。"
    );
    let en = format!(
        "✅ All child nodes of “{title}” ({id}) are done{failed_en}.\nSuggestion: summarize their conclusions and complete it with {call}."
    );
    RuleOutput::unthrottled(ActionKind::Reminder, ctx.facts.lang.pick(zh, en))
}
