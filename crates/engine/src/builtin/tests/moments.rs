//! Tests of the texts for moments that decide whether the work goes on: a plan without a started task.

use super::*;

/// (has a focus, has an unstarted plan, expected)
#[test]
fn plan_confirm_without_focus_follows_unstarted_plan() {
    let prompt = event(&CLAUDE_CODE, EventKind::PromptSubmit, "x");
    for (has_focus, has_plan, expected) in
        [(false, true, true), (false, false, false), (true, true, false), (true, false, false)]
    {
        for (lang, text) in
            [(Lang::En, "📋 The tasks of the plan"), (Lang::Zh, "📋 计划节点已创建完子任务。")]
        {
            let mut facts = bound(lang);
            if !has_focus {
                facts.node = None;
            }
            let workspace = facts.workspace.as_mut().unwrap();
            workspace.has_unstarted_plan = has_plan;
            facts.session.seen_context = Some(ContextHash::of(workspace, facts.node.as_ref()).to_string());
            let decision = run(&prompt, &facts);
            let told = decision.actions.iter().any(|action| action.content.starts_with(text));
            assert_eq!(told, expected, "{has_focus} {has_plan} {decision:?}");
            if expected {
                assert_eq!(decision.actions.len(), 1);
                assert!(decision.actions[0].content.len() <= 200, "{decision:?}");
                assert_eq!(decision.throttle[0].key, "plan_completed");
                facts.session.last_injected.insert("plan_completed".into(), NOW - 179_999);
                assert!(!run(&prompt, &facts).should_respond, "throttled");
            }
        }
    }
}
