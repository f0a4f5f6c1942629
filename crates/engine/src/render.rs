//! Renders a decision as one text for a platform: each action with its tag, within the byte limit of the
//! platform.

use tanmi_event::{ActionKind, BuiltinRuleId, Decision, DecisionAction, Event, Platform, RuleId, Source};

/// Removes the actions that exceed the byte limit, together with their throttles, and returns the rules of the
/// removed actions. Context of the workspace comes before reminders, and reminders before anything else.
pub fn fit_to_max_bytes(decision: &mut Decision, event: &Event) -> Vec<RuleId> {
    let mut order: Vec<usize> = (0..decision.actions.len()).collect();
    order.sort_by_key(|at| rank(&decision.actions[*at]));
    let mut remaining = event.platform.max_bytes;
    let mut dropped = Vec::new();
    for at in order {
        let action = &decision.actions[at];
        let tags = if event.source == Source::Hook { action.kind.overhead() } else { 0 };
        let size = action.content.len() + tags + 1;
        // The last text needs no line break.
        if size > remaining + 1 {
            dropped.push(at);
        } else {
            remaining = remaining.saturating_sub(size);
        }
    }
    dropped.sort_unstable();
    let rules: Vec<RuleId> = dropped.iter().map(|at| decision.actions[*at].rule.clone()).collect();
    let mut at = 0;
    decision.actions.retain(|_| {
        at += 1;
        !dropped.contains(&(at - 1))
    });
    decision.throttle.retain(|throttle| !rules.contains(&throttle.rule));
    decision.should_respond = !decision.actions.is_empty();
    rules
}

/// The rules that inject the context of a workspace.
pub const CONTEXT_RULES: &[RuleId] =
    &[RuleId::Builtin(BuiltinRuleId::ContextInject), RuleId::Builtin(BuiltinRuleId::ContextRefresh)];

/// Returns the rank of an action; lower ranks are kept first.
fn rank(action: &DecisionAction) -> u8 {
    match action.kind {
        ActionKind::SessionInfo => 0,
        ActionKind::InjectContext if CONTEXT_RULES.contains(&action.rule) => 0,
        ActionKind::SmartReminder => 1,
        ActionKind::Reminder | ActionKind::BindingHint => 2,
        ActionKind::Flush | ActionKind::Save => 0,
        ActionKind::InjectContext if action.rule == BuiltinRuleId::SubagentContext => 0,
        ActionKind::InjectContext | ActionKind::Declared => 3,
        ActionKind::Memory => 4,
    }
}

/// Returns the text of a decision. The caller has called [`fit_to_max_bytes`] before.
pub fn render(decision: &Decision, platform: &Platform) -> String {
    let render_action = if platform.tags { with_tags } else { with_heading };
    decision.actions.iter().map(render_action).collect::<Vec<_>>().join("\n")
}

/// Renders an action below a heading. Invariant: never longer than [`with_tags`].
fn with_heading(action: &DecisionAction) -> String {
    match action.kind.tag() {
        Some(tag) => format!("## {tag}\n{}\n", change_headings(&action.content)),
        None => action.content.clone(),
    }
}

/// Changes headings of ours inside a text to `tanmi_`. A heading has no end mark, so they would end the text.
fn change_headings(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let name = line.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '#' | '>' | '*' | '-'));
        let is_ours = name.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("tanmi-"));
        let (before, after) = line.split_at(line.len() - name.len());
        if is_ours && before.contains('#') {
            out.push_str(before);
            out.push_str(&name[..5]);
            out.push('_');
            out.push_str(&name[6..]);
        } else {
            out.push_str(before);
            out.push_str(after);
        }
    }
    out
}

fn with_tags(action: &DecisionAction) -> String {
    match action.kind.tag() {
        Some(tag) => format!("<{tag}>\n{}\n</{tag}>", action.content),
        None => action.content.clone(),
    }
}

#[cfg(test)]
mod tests {
    use tanmi_event::{EventKind, Payload, Throttle};

    use super::*;

    static TAGGED: Platform = Platform { id: "tagged", ..Platform::DEFAULTS };
    static UNTAGGED: Platform = Platform { id: "untagged", tags: false, ..Platform::DEFAULTS };

    fn action(rule: RuleId, kind: ActionKind, content: &str) -> DecisionAction {
        DecisionAction { kind, content: content.into(), priority: 1, rule }
    }

    fn custom_rule() -> RuleId {
        RuleId::Custom("r".into())
    }

    fn fit(actions: Vec<DecisionAction>) -> (Decision, Vec<RuleId>) {
        let throttle = actions
            .iter()
            .map(|a| Throttle { key: a.rule.to_string(), ttl: 1, rule: a.rule.clone() })
            .collect();
        let mut decision = Decision { should_respond: true, actions, throttle };
        let (source, kind) = (Source::Hook, EventKind::PromptSubmit);
        let event =
            Event { source, platform: &TAGGED, kind, session: "s".into(), payload: Payload::default() };
        let dropped = fit_to_max_bytes(&mut decision, &event);
        (decision, dropped)
    }

    #[test]
    fn render_tags_actions_and_fit_to_cap_drops_less_important() {
        let short = action(custom_rule(), ActionKind::Reminder, "看");
        let text = render(&fit(vec![short.clone()]).0, &TAGGED);
        assert_eq!(text, "<tanmi-smart-reminder>\n看\n</tanmi-smart-reminder>");
        let text = render(&fit(vec![short.clone()]).0, &UNTAGGED);
        assert_eq!(text, "## tanmi-smart-reminder\n看\n", "the client would escape tags");
        for kind in ActionKind::ALL {
            assert_eq!(with_tags(&action(custom_rule(), *kind, "")).len(), kind.overhead());
            assert!(with_heading(&action(custom_rule(), *kind, "")).len() <= kind.overhead());
        }
        let max_len = TAGGED.max_bytes - ActionKind::InjectContext.overhead();
        let long =
            action(BuiltinRuleId::ContextInject.into(), ActionKind::InjectContext, &"x".repeat(max_len));
        let (decision, dropped) = fit(vec![short, long]);
        assert_eq!(render(&decision, &TAGGED).len(), 10_000);
        assert_eq!(
            (dropped, decision.throttle.len()),
            (vec![custom_rule()], 1),
            "the less important action is removed"
        );
    }

    #[test]
    fn change_headings_heading_of_ours_is_changed() {
        for (text, expected) in [
            ("a\n## tanmi-memory\nb", "a\n## tanmi_memory\nb"),
            ("#\u{a0}Tanmi-x\n > ###  tanmi-y", "#\u{a0}Tanmi_x\n > ###  tanmi_y"),
            ("tanmi-x ## tanmi-y\n- tanmi-z\n## 中文", "tanmi-x ## tanmi-y\n- tanmi-z\n## 中文"),
        ] {
            assert_eq!(change_headings(text), expected);
        }
    }

    #[test]
    fn fit_to_cap_single_action_too_long_leaves_no_action() {
        let (decision, dropped) = fit(vec![action(custom_rule(), ActionKind::Reminder, &"x".repeat(10_000))]);
        assert!(!decision.should_respond && decision.throttle.is_empty() && dropped.len() == 1);
    }
}
