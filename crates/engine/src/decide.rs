//! Runs all rules in order of priority and merges their outputs into one decision.

use tanmi_base::Millis;
use tanmi_event::{ActionKind, Decision, DecisionAction, Event, EventKind, RuleId, Source, Throttle};

use crate::builtin::{BuiltinRule, RuleInput, RuleOutput, SkipReason};
use crate::custom::{ConditionScope, CustomRule, RuleSource, throttle_of};
use crate::escape_tags;
use crate::facts::Facts;
use crate::render::fit_to_max_bytes;

/// The result of one rule for one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Injected {
        content: String,
    },
    /// The rule matched but has no text: it only shares values or stops later rules.
    Matched,
    /// Another rule has already injected the same text.
    Repeated,
    Throttled {
        left: Millis,
    },
    Skipped(SkipReason),
    ConditionFalse,
    ConditionFailed(String),
    OtherEvent,
    OtherPlatform,
    /// Disabled by a setting or by the `enabled` field of the rule.
    Disabled,
    Untrusted,
    /// A rule with the same id from a source of higher precedence replaces it.
    Shadowed {
        by: RuleSource,
    },
    /// An earlier rule stopped all later rules.
    Stopped {
        by: RuleId,
    },
    /// A hook has already injected the text for this event.
    Suppressed,
    /// The rule matched, but texts with higher priority used up the byte limit of the platform.
    OverCap,
}

impl Verdict {
    /// Returns a stable word for programs.
    pub fn as_str(&self) -> &'static str {
        match self {
            Verdict::Injected { .. } => "said",
            Verdict::Matched => "matched",
            Verdict::Repeated => "repeated",
            Verdict::Throttled { .. } => "throttled",
            Verdict::Skipped(_) => "silent",
            Verdict::ConditionFalse => "condition-false",
            Verdict::ConditionFailed(_) => "condition-failed",
            Verdict::OtherEvent => "other-event",
            Verdict::OtherPlatform => "other-platform",
            Verdict::Disabled => "off",
            Verdict::Untrusted => "untrusted",
            Verdict::Shadowed { .. } => "shadowed",
            Verdict::Stopped { .. } => "stopped",
            Verdict::Suppressed => "suppressed",
            Verdict::OverCap => "no-room",
        }
    }

    /// Returns whether the rule matched the event, whether or not its text is injected.
    pub fn is_match(&self) -> bool {
        matches!(
            self,
            Verdict::Injected { .. } | Verdict::Matched | Verdict::Repeated | Verdict::Throttled { .. }
        )
    }
}

#[derive(Clone, Debug)]
pub struct RuleTrace {
    pub rule: RuleId,
    pub name: (String, String),
    pub source: RuleSource,
    pub priority: i32,
    pub verdict: Verdict,
}

/// Returns whether a hook has already injected the text for this event, so that a tool call does not repeat it.
///
/// `seen` tells whether the hook of an event actually ran in this session: a hook that is not installed suppresses
/// nothing.
pub fn is_already_told(event: &Event, seen: impl Fn(EventKind) -> bool) -> bool {
    event.source == Source::Mcp && event.platform.has_hook_for(event.kind) && seen(event.kind)
}

/// A built-in or custom rule.
#[derive(Clone, Copy)]
pub enum Rule<'a> {
    Builtin(&'a BuiltinRule),
    Custom(&'a CustomRule),
}

impl Rule<'_> {
    pub fn id(&self) -> RuleId {
        match self {
            Rule::Builtin(rule) => RuleId::Builtin(rule.id),
            Rule::Custom(rule) => RuleId::Custom(rule.id.clone()),
        }
    }

    fn name(&self) -> (String, String) {
        match self {
            Rule::Builtin(rule) => (rule.about.0.to_owned(), rule.about.1.to_owned()),
            Rule::Custom(rule) => (rule.name.clone(), rule.name.clone()),
        }
    }

    /// Returns the trace of this rule.
    pub fn trace(&self, verdict: Verdict) -> RuleTrace {
        let (source, priority) = self.source_and_priority();
        RuleTrace { rule: self.id(), name: self.name(), source, priority, verdict }
    }

    fn source_and_priority(&self) -> (RuleSource, i32) {
        match self {
            Rule::Builtin(rule) => (RuleSource::Builtin, rule.priority),
            Rule::Custom(rule) => (rule.source, rule.priority),
        }
    }
}

/// Returns the decision for an event. `observe` is called with every rule and its verdict, in the order in
/// which the rules ran.
///
/// Invariant: pure; the same event, facts and rules always give the same decision.
pub fn decide(
    event: &Event,
    facts: &Facts,
    builtin: &[BuiltinRule],
    custom: &[CustomRule],
    observe: &mut dyn FnMut(Rule<'_>, Verdict),
) -> Decision {
    let mut rules: Vec<Rule<'_>> =
        builtin.iter().map(Rule::Builtin).chain(custom.iter().map(Rule::Custom)).collect();
    // Lower priorities run first; among equal priorities, the source with higher precedence runs first.
    rules.sort_by_key(|rule| {
        let (source, priority) = rule.source_and_priority();
        (priority, source)
    });
    let is_already_told = is_already_told(event, |kind| facts.session.hooks_seen.contains(&kind));
    let mut scope = ConditionScope::new(event, facts);
    let mut decision = Decision::default();
    let mut stopped_by: Option<RuleId> = None;
    let mut verdicts: Vec<Verdict> = Vec::with_capacity(rules.len());
    for rule in &rules {
        let verdict = match (*rule, &stopped_by) {
            _ if is_already_told => Err(Verdict::Suppressed),
            (_, Some(by)) => Err(Verdict::Stopped { by: by.clone() }),
            (Rule::Builtin(rule), None) => run_builtin(rule, event, facts, &decision),
            (Rule::Custom(custom_rule), None) => {
                match check_match(custom_rule, event, facts, builtin, custom, &mut scope) {
                    Err(verdict) => Err(verdict),
                    Ok(()) => {
                        scope.share(custom_rule);
                        stopped_by = custom_rule.stops.then(|| rule.id());
                        custom_output(custom_rule, event, facts)
                    }
                }
            }
        };
        verdicts.push(match verdict {
            Err(verdict) => verdict,
            Ok(output) => add_output(rule, output, &mut decision, &mut scope),
        });
    }
    let dropped = fit_to_max_bytes(&mut decision, event);
    for (rule, verdict) in rules.into_iter().zip(verdicts) {
        let is_over_cap = matches!(verdict, Verdict::Injected { .. }) && dropped.contains(&rule.id());
        observe(rule, if is_over_cap { Verdict::OverCap } else { verdict });
    }
    decision
}

fn add_output(
    rule: &Rule<'_>,
    output: RuleOutput,
    decision: &mut Decision,
    scope: &mut ConditionScope<'_>,
) -> Verdict {
    let RuleOutput { kind, content, throttle } = output;
    decision.throttle.extend(throttle);
    if decision.actions.iter().any(|action| action.content == content) {
        return Verdict::Repeated;
    }
    scope.record_injected(rule.id().as_str());
    let (_, priority) = rule.source_and_priority();
    decision.actions.push(DecisionAction { kind, content: content.clone(), priority, rule: rule.id() });
    Verdict::Injected { content }
}

/// Returns how many bytes the platform still accepts after the actions of `decision`.
fn bytes_left(event: &Event, decision: &Decision) -> usize {
    let used: usize = decision.actions.iter().map(|a| a.content.len() + a.kind.overhead() + 1).sum();
    event.platform.max_bytes.saturating_sub(used)
}

fn run_builtin(
    rule: &BuiltinRule,
    event: &Event,
    facts: &Facts,
    decision: &Decision,
) -> Result<RuleOutput, Verdict> {
    if !rule.events.contains(&event.kind) {
        return Err(Verdict::OtherEvent);
    }
    if facts.disabled_rules.contains(&rule.id) {
        return Err(Verdict::Disabled);
    }
    let has_context = decision.actions.iter().any(|action| action.kind == ActionKind::InjectContext);
    let input = RuleInput { event, facts, bytes_left: bytes_left(event, decision), has_context };
    let output = (rule.run)(&input).map_err(Verdict::Skipped)?;
    match output.throttle.as_ref().and_then(|throttle| time_left(throttle, facts)) {
        Some(left) => Err(Verdict::Throttled { left }),
        None => Ok(output),
    }
}

/// Checks whether a custom rule matches this event. The error is the reason why it does not.
fn check_match(
    rule: &CustomRule,
    event: &Event,
    facts: &Facts,
    builtin: &[BuiltinRule],
    custom: &[CustomRule],
    scope: &mut ConditionScope<'_>,
) -> Result<(), Verdict> {
    if !rule.events.is_empty() && !rule.events.contains(&event.kind) {
        return Err(Verdict::OtherEvent);
    }
    if !rule.platforms.is_empty() && !rule.platforms.contains(&event.platform) {
        return Err(Verdict::OtherPlatform);
    }
    if !rule.trusted {
        return Err(Verdict::Untrusted);
    }
    if builtin.iter().any(|known| known.id.as_str() == rule.id) {
        return Err(Verdict::Shadowed { by: RuleSource::Builtin });
    }
    let is_shadowing =
        |other: &&CustomRule| other.id == rule.id && other.trusted && other.source < rule.source;
    if let Some(other) = custom.iter().find(is_shadowing) {
        return Err(Verdict::Shadowed { by: other.source });
    }
    if !rule.enabled {
        return Err(Verdict::Disabled);
    }
    // Checked before the condition, because compiling a condition is slow. A throttled rule that also stops or shares
    // still needs its condition.
    let only_injects = !rule.stops && rule.share.is_empty();
    if let Some(left) = throttle_left(rule, event, facts).filter(|_| only_injects) {
        return Err(Verdict::Throttled { left });
    }
    match scope.is_met(rule) {
        Err(error) => Err(Verdict::ConditionFailed(error.message(facts.lang))),
        Ok(false) => Err(Verdict::ConditionFalse),
        Ok(true) => Ok(()),
    }
}

fn throttle_left(rule: &CustomRule, event: &Event, facts: &Facts) -> Option<Millis> {
    time_left(&throttle_of(rule, event)?, facts)
}

/// Returns the output of a custom rule that matched, if it has a text and is not throttled.
fn custom_output(rule: &CustomRule, event: &Event, facts: &Facts) -> Result<RuleOutput, Verdict> {
    let content = escape_tags(rule.content.trim()).into_owned();
    if content.is_empty() {
        return Err(Verdict::Matched);
    }
    match throttle_left(rule, event, facts) {
        Some(left) => Err(Verdict::Throttled { left }),
        None => Ok(RuleOutput { kind: rule.kind, content, throttle: throttle_of(rule, event) }),
    }
}

/// How far in the future an injection may lie and still throttle. Hooks that run concurrently may read the clock in
/// either order.
const MAX_CLOCK_SKEW: Millis = 10_000;

/// Returns how long a throttle still applies, or `None` if it does not.
///
/// An injection further in the future than [`MAX_CLOCK_SKEW`] means that the clock was set back. It is ignored, so
/// that it does not throttle for long.
pub(crate) fn time_left(throttle: &Throttle, facts: &Facts) -> Option<Millis> {
    let injected_at: Millis = *facts.session.last_injected.get(&throttle.key)?;
    let since = facts.now - injected_at;
    (-MAX_CLOCK_SKEW..throttle.ttl).contains(&since).then(|| throttle.ttl - since.max(0))
}
