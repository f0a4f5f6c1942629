//! Tells an unbound session how to bind when the prompt mentions workspaces. Ignores prompts that are mostly code.

use tanmi_event::{ActionKind, BuiltinRuleId, Event, EventKind, Throttle};

use super::hint_words::mentions_workspaces;
use super::{BOUND, BuiltinRule, RuleInput, RuleOutput, SkipReason, default_throttle, session_info};
use crate::decide::time_left;
use crate::facts::Facts;

pub const RULE: BuiltinRule = BuiltinRule {
    id: BuiltinRuleId::BindingHint,
    about: ("未绑定时的绑定提示", "tells an unbound session how to bind when the prompt mentions workspaces"),
    priority: 30,
    events: &[EventKind::PromptSubmit],
    run,
};

/// Returns whether the rule is about to inject its text, which depends on whether the project has workspaces. Only then
/// does the caller have to look for them.
pub fn needs_workspaces(event: &Event, facts: &Facts) -> bool {
    RULE.events.contains(&event.kind)
        && !facts.disabled_rules.contains(&RULE.id)
        && time_left(&throttle(), facts).is_none()
        && check(&RuleInput { event, facts, bytes_left: 0, has_context: false }).is_ok()
}

fn throttle() -> Throttle {
    default_throttle("binding_hint", RULE.id)
}

fn check(ctx: &RuleInput<'_>) -> Result<(), SkipReason> {
    let facts = ctx.facts;
    if facts.workspace.is_some() {
        return Err(BOUND);
    }
    ctx.check_workspace_not_lost()?;
    let prompt = ctx.event.payload.prompt.as_deref().unwrap_or_default();
    if !mentions_workspaces(prompt, facts.session.was_unbound_by_user) {
        return Err(("提示词没有提到工作区", "the prompt does not mention workspaces"));
    }
    if is_mostly_code(prompt) {
        return Err(("提示词主要是代码", "the prompt is mostly code"));
    }
    Ok(())
}

fn run(ctx: &RuleInput<'_>) -> Result<RuleOutput, SkipReason> {
    check(ctx)?;
    let facts = ctx.facts;
    let content = if facts.has_workspaces {
        session_info::how_to_bind(facts)
    } else {
        let id = crate::escape_tags::escape_line(&facts.session.id);
        let zh = format!(
            "你的会话 ID 是 {id}。\n还没有活跃的工作区；workspace_init 创建工作区，session_bind 绑定它。"
        );
        let en = format!(
            "Session ID: {id}\nThere is no active workspace yet. workspace_init creates one; session_bind binds it."
        );
        facts.lang.pick(zh, en)
    };
    Ok(RuleOutput { kind: ActionKind::BindingHint, content, throttle: Some(throttle()) })
}

fn is_mostly_code(prompt: &str) -> bool {
    let mut is_fenced = false;
    let (mut code, mut prose) = (0usize, 0usize);
    for line in prompt.lines().map(str::trim_end).filter(|line| !line.trim().is_empty()) {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
            continue;
        }
        let looks_like_code = line.ends_with([';', '{', '}', ')', ',', '>'])
            || line.starts_with("    ")
            || line.starts_with('\t')
            || ["import ", "from ", "def ", "fn ", "#include", "//", "$ ", "at "]
                .iter()
                .any(|start| line.trim_start().starts_with(start));
        if is_fenced || looks_like_code { code += line.len() } else { prose += line.len() }
    }
    code > prose
}
