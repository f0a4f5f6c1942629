//! A decision as one text, the way a platform gets it: each action set apart by its tag, all within the platform's cap.

use crate::decision::{Action, Decision};
use crate::platform::Platform;

/// What comes first matters most, so what does not fit at the end is left out.
pub fn wording(decision: &Decision, platform: &Platform) -> String {
    let mut out = String::new();
    for action in &decision.actions {
        let text = tagged(action);
        if out.len() + text.len() + usize::from(!out.is_empty()) <= platform.cap {
            if !out.is_empty() {
                out.push('\n');
            }
            out.push_str(&text);
        }
    }
    out
}

fn tagged(action: &Action) -> String {
    let tag = action.kind.tag();
    format!("<{tag}>\n{}\n</{tag}>", action.content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::ActionKind;
    use crate::platform::CURSOR;

    fn action(kind: ActionKind, content: String) -> Action {
        Action { kind, content, priority: 1, rule: String::from("r") }
    }

    #[test]
    fn each_action_has_its_tag_and_nothing_exceeds_the_cap() {
        let short = action(ActionKind::Reminder, "看".into());
        let decision = |actions| Decision { should_respond: true, actions, throttle: vec![] };
        let text = wording(&decision(vec![short.clone()]), &CURSOR);
        assert_eq!(text, "<tanmi-smart-reminder>\n看\n</tanmi-smart-reminder>");
        for kind in ActionKind::ALL {
            assert_eq!(tagged(&action(*kind, String::new())).len(), kind.overhead());
        }
        let room = CURSOR.cap - ActionKind::InjectContext.overhead();
        let long = action(ActionKind::InjectContext, "x".repeat(room));
        let both = wording(&decision(vec![long, short]), &CURSOR);
        assert_eq!((both.len(), both.contains('看')), (10_000, false));
    }
}
