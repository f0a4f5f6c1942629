//! The engine itself: collect the rules that match, run them by priority, merge what they say.

use tanmi_base::Millis;
use tanmi_event::{Action, Decision, Event, Source, Throttle};

use crate::builtin::{Ctx, Rule, Said};
use crate::facts::Facts;

/// Pure: the same event, facts and rules always give the same decision.
pub fn decide(event: &Event, facts: &Facts, rules: &[Rule]) -> Decision {
    // A hook has told the agent already; asking again by a tool must not say it twice.
    if event.source == Source::Mcp
        && event.platform.has_hook_for(event.kind)
        && facts.session.hooks_seen.contains(&event.kind)
    {
        return Decision::default();
    }
    let ctx = Ctx { event, facts };
    let mut matching: Vec<&Rule> = rules.iter().filter(|rule| rule.events.contains(&event.kind)).collect();
    matching.sort_by_key(|rule| rule.priority);
    let mut decision = Decision::default();
    for rule in matching {
        let Some(said) = (rule.run)(&ctx) else { continue };
        if said.throttle.as_ref().is_some_and(|throttle| is_throttled(throttle, facts)) {
            continue;
        }
        let Said { kind, content, throttle } = said;
        // The same words twice say nothing new.
        if !decision.actions.iter().any(|action| action.content == content) {
            decision.actions.push(Action {
                kind,
                content,
                priority: rule.priority,
                rule: rule.id.to_owned(),
            });
        }
        decision.throttle.extend(throttle);
    }
    decision.should_respond = !decision.actions.is_empty();
    decision
}

fn is_throttled(throttle: &Throttle, facts: &Facts) -> bool {
    let said: Option<&Millis> = facts.session.said.get(&throttle.key);
    // A clock that went back must not silence anything for longer than its time.
    said.is_some_and(|at| (0..throttle.ttl).contains(&(facts.now - at)))
}
