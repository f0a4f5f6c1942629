//! A decision as one text, the way a platform gets it: each action set apart by its tag, all within the platform's cap.

use crate::decision::{Action, ActionKind, Decision};
use crate::event::{Event, Source};
use crate::platform::Platform;

/// Takes out what does not fit, with everything that follows from having said it, and names the rules that lost their
/// words. What the agent is told of its workspace comes before reminders, and those before anything else.
pub fn fit_to_cap(decision: &mut Decision, event: &Event) -> Vec<String> {
    let mut order: Vec<usize> = (0..decision.actions.len()).collect();
    order.sort_by_key(|at| rank(&decision.actions[*at]));
    let mut left = event.platform.cap;
    let mut dropped = Vec::new();
    for at in order {
        let action = &decision.actions[at];
        let tags = if event.source == Source::Hook { action.kind.overhead() } else { 0 };
        let size = action.content.len() + tags + 1;
        // The last one needs no line end.
        if size > left + 1 {
            dropped.push(at);
        } else {
            left = left.saturating_sub(size);
        }
    }
    dropped.sort_unstable();
    let names: Vec<String> = dropped.iter().map(|at| decision.actions[*at].rule.clone()).collect();
    let mut at = 0;
    decision.actions.retain(|_| {
        at += 1;
        !dropped.contains(&(at - 1))
    });
    decision.throttle.retain(|throttle| !names.contains(&throttle.rule));
    decision.should_respond = !decision.actions.is_empty();
    names
}

/// The rules that tell a session of its workspace.
pub const CONTEXT_RULES: &[&str] = &["context-inject", "context-refresh"];

fn rank(action: &Action) -> u8 {
    match action.kind {
        ActionKind::SessionInfo => 0,
        ActionKind::InjectContext if CONTEXT_RULES.contains(&action.rule.as_str()) => 0,
        ActionKind::SmartReminder => 1,
        ActionKind::Reminder | ActionKind::BindingHint => 2,
        ActionKind::Flush | ActionKind::Save => 0,
        ActionKind::InjectContext if action.rule == "subagent-context" => 0,
        ActionKind::InjectContext | ActionKind::Declared => 3,
        ActionKind::Memory => 4,
    }
}

/// The text of a decision that fits.
pub fn render(decision: &Decision, platform: &Platform) -> String {
    let set_apart = if platform.tags { tagged } else { headed };
    decision.actions.iter().map(set_apart).collect::<Vec<_>>().join("\n")
}

/// Never longer than with tags.
fn headed(action: &Action) -> String {
    match action.kind.tag() {
        // Without an end to a heading, a heading of ours inside of a text would be one.
        Some(tag) => format!("## {tag}\n{}\n", action.content.replace("## tanmi-", "## tanmi_")),
        None => action.content.clone(),
    }
}

fn tagged(action: &Action) -> String {
    match action.kind.tag() {
        Some(tag) => format!("<{tag}>\n{}\n</{tag}>", action.content),
        None => action.content.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::Throttle;
    use crate::event::{EventKind, Payload};
    use crate::platform::{CURSOR, GEMINI_CLI};

    fn action(rule: &str, kind: ActionKind, content: &str) -> Action {
        Action { kind, content: content.into(), priority: 1, rule: rule.into() }
    }

    fn fitted(actions: Vec<Action>) -> (Decision, Vec<String>) {
        let throttle =
            actions.iter().map(|a| Throttle { key: a.rule.clone(), ttl: 1, rule: a.rule.clone() }).collect();
        let mut decision = Decision { should_respond: true, actions, throttle };
        let (source, kind) = (Source::Hook, EventKind::PromptSubmit);
        let event =
            Event { source, platform: &CURSOR, kind, session: "s".into(), payload: Payload::default() };
        let dropped = fit_to_cap(&mut decision, &event);
        (decision, dropped)
    }

    #[test]
    fn each_action_has_its_tag_and_nothing_exceeds_the_cap() {
        let short = action("r", ActionKind::Reminder, "看");
        let text = render(&fitted(vec![short.clone()]).0, &CURSOR);
        assert_eq!(text, "<tanmi-smart-reminder>\n看\n</tanmi-smart-reminder>");
        let text = render(&fitted(vec![short.clone()]).0, &GEMINI_CLI);
        assert_eq!(text, "## tanmi-smart-reminder\n看\n", "tags would be escaped");
        for kind in ActionKind::ALL {
            assert_eq!(tagged(&action("r", *kind, "")).len(), kind.overhead());
            assert!(headed(&action("r", *kind, "")).len() <= kind.overhead());
        }
        let room = CURSOR.cap - ActionKind::InjectContext.overhead();
        let long = action("context-inject", ActionKind::InjectContext, &"x".repeat(room));
        let (decision, dropped) = fitted(vec![short, long]);
        assert_eq!(render(&decision, &CURSOR).len(), 10_000);
        assert_eq!(
            (dropped, decision.throttle.len()),
            (vec![String::from("r")], 1),
            "what matters less goes"
        );
    }

    #[test]
    fn what_is_too_long_alone_leaves_nothing() {
        let (decision, dropped) = fitted(vec![action("r", ActionKind::Reminder, &"x".repeat(10_000))]);
        assert!(!decision.should_respond && decision.throttle.is_empty() && dropped.len() == 1);
    }
}
