//! The table of the six reminders, P0 to P5. Only the first one that applies is used, even if it is throttled.

use tanmi_workspace::model::NodeStatus;

use super::{SkipReason, UNBOUND};
use crate::facts::{ChildCounts, Facts, HolderFacts, NodeFacts};

pub struct Reminder {
    pub key: &'static str,
    pub applies: fn(&NodeFacts, now: i64) -> bool,
    /// P0 is not throttled.
    pub throttled: bool,
    pub zh: &'static str,
    pub en: &'static str,
}

pub const PLAN_COMPLETED: &str = "plan_completed";
pub const PROBLEM_OPEN: &str = "problem";

const REMINDERS: &[Reminder] = &[
    Reminder {
        key: PROBLEM_OPEN,
        applies: |node, _| !node.problem.is_empty(),
        throttled: false,
        zh: "⚠️ 当前节点存在问题记录。\n建议：先解决问题再继续，或使用 problem_clear 清除已解决的问题。",
        en: "Solve it before continuing; problem_clear when it is solved.",
    },
    Reminder {
        key: "log_timeout",
        applies: |node, now| is_implementing(node) && node.last_log_at.is_some_and(|at| now - at > 180_000),
        throttled: true,
        zh: "⏰ 距离上次日志已超过 3 分钟。\n建议：使用 log_append 记录当前工作进展，保持工作可追溯性。",
        en: "⏰ The last log entry is more than 3 minutes old.\nSuggestion: record current progress with log_append to keep the work traceable.",
    },
    Reminder {
        key: "children_completed",
        applies: |node, _| node.status == NodeStatus::Monitoring && children(node, ChildCounts::all_done),
        throttled: true,
        zh: "✅ 所有子节点已完成。\n建议：汇总子节点结论，调用 node_transition(action='complete', conclusion='...') 完成当前节点。",
        en: "✅ All child nodes are done.\nSuggestion: summarize their conclusions and complete this node with node_transition(action='complete', conclusion='...').",
    },
    Reminder {
        key: PLAN_COMPLETED,
        applies: |node, _| {
            node.is_top
                && match node.status {
                    NodeStatus::Planning => children(node, |c| c.total > 0),
                    NodeStatus::Monitoring => children(node, |c| c.total > 0 && c.pending == c.total),
                    _ => false,
                }
        },
        throttled: true,
        zh: "📋 计划节点已创建完子任务。\n建议：向用户展示完整计划并等待确认，再开始执行第一个任务。",
        en: "📋 The tasks of the plan are created.\nSuggestion: show the complete plan to the user and wait for confirmation before starting the first task.",
    },
    Reminder {
        key: "no_log_start",
        applies: |node, now| is_implementing(node) && node.last_log_at.is_none() && now - node.since > 60_000,
        throttled: true,
        zh: "📝 节点已开始 1 分钟但尚无日志记录。\n建议：使用 log_append 开始记录工作日志。",
        en: "📝 The node was started more than 1 minute ago and has no log entries.\nSuggestion: start its log with log_append.",
    },
    Reminder {
        key: "no_problem",
        applies: |node, now| {
            is_implementing(node)
                && node.problem.is_empty()
                && node.next_step.is_empty()
                && now - node.since > 300_000
        },
        throttled: true,
        zh: "💭 节点执行超过 5 分钟，建议记录当前状态。\n建议：使用 problem_update 记录遇到的问题和下一步计划，即使没有问题也可以记录下一步意图。",
        en: "💭 The node has been in progress for more than 5 minutes.\nSuggestion: record problems and the next step with problem_update; without a problem, record the next step alone.",
    },
];

/// Returns whether the session may work on the node: it is in progress, and no other session holds it. A node that the
/// user started is often left to the agent.
fn is_implementing(node: &NodeFacts) -> bool {
    node.status == NodeStatus::Implementing && matches!(node.held_by, None | Some(HolderFacts::User))
}

fn children(node: &NodeFacts, test: impl Fn(ChildCounts) -> bool) -> bool {
    node.children.is_some_and(test)
}

/// Returns the first reminder that applies, throttled or not.
pub fn choose(facts: &Facts) -> Result<&'static Reminder, SkipReason> {
    let workspace = facts.workspace.as_ref().ok_or(UNBOUND)?;
    let is_due = |reminder: &&Reminder| match (reminder.key, &facts.node) {
        (PLAN_COMPLETED, _) if !is_plan_open(facts) => false,
        (PLAN_COMPLETED, _) if workspace.unstarted_tasks.is_some_and(|tasks| tasks > 0) => true,
        (_, Some(node)) => (reminder.applies)(node, facts.now),
        (_, None) => false,
    };
    REMINDERS.iter().find(is_due).ok_or(match facts.node {
        Some(_) => ("没有适用的提醒", "no reminder applies to the focused node"),
        None => ("没有聚焦的节点", "no node is focused"),
    })
}

/// Returns whether the user may not have seen the plan: the session was not told to show it, or created nodes or was bound to
/// another plan since.
fn is_plan_open(facts: &Facts) -> bool {
    let session = &facts.session;
    session.has_unconfirmed_plan || !session.last_injected.contains_key(PLAN_COMPLETED)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Invariant: the Chinese texts are the sentences of the specification, in its order of priority.
    #[test]
    fn reminders_in_chinese_equal_the_specification() {
        let specified = [
            (
                "problem",
                "⚠️ 当前节点存在问题记录。\n建议：先解决问题再继续，或使用 problem_clear 清除已解决的问题。",
            ),
            (
                "log_timeout",
                "⏰ 距离上次日志已超过 3 分钟。\n建议：使用 log_append 记录当前工作进展，保持工作可追溯性。",
            ),
            (
                "children_completed",
                "✅ 所有子节点已完成。\n建议：汇总子节点结论，调用 node_transition(action='complete', conclusion='...') 完成当前节点。",
            ),
            (
                "plan_completed",
                "📋 计划节点已创建完子任务。\n建议：向用户展示完整计划并等待确认，再开始执行第一个任务。",
            ),
            (
                "no_log_start",
                "📝 节点已开始 1 分钟但尚无日志记录。\n建议：使用 log_append 开始记录工作日志。",
            ),
            (
                "no_problem",
                "💭 节点执行超过 5 分钟，建议记录当前状态。\n建议：使用 problem_update 记录遇到的问题和下一步计划，即使没有问题也可以记录下一步意图。",
            ),
        ];
        let actual: Vec<_> = REMINDERS.iter().map(|reminder| (reminder.key, reminder.zh)).collect();
        assert_eq!(actual, specified);
    }
}
