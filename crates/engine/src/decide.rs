//! The engine itself: collect the rules that match, run them by priority, merge what they say.

use tanmi_base::Millis;
use tanmi_event::{Action, Decision, Event, EventKind, Source, Throttle, fit_to_cap};

use crate::builtin::{BuiltinRule, RuleInput, RuleOutput, SkipReason};
use crate::custom::{ConditionScope, CustomRule, RuleSource, throttle_of};
use crate::escape_tags;
use crate::facts::Facts;

/// What became of one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It spoke.
    Injected {
        content: String,
    },
    /// It matched and has nothing to say itself: it shares something, or stops the others.
    Matched,
    /// Another rule has already said the same words.
    Repeated,
    Throttled {
        left: Millis,
    },
    Silent(SkipReason),
    ConditionFalse,
    ConditionFailed(String),
    OtherEvent,
    OtherPlatform,
    /// By the settings, or by its own `enabled`.
    Off,
    Untrusted,
    /// A rule with the same id from a nearer source counts.
    Shadowed {
        by: RuleSource,
    },
    /// A rule before it stopped the rest.
    Stopped {
        by: String,
    },
    /// A hook has told the agent already.
    Suppressed,
    /// It would have spoken, but others come first and the platform takes no more.
    NoRoom,
}

#[derive(Clone, Debug)]
pub struct RuleTrace {
    pub rule: String,
    pub name: (String, String),
    pub source: RuleSource,
    pub priority: i32,
    pub verdict: Verdict,
}

#[derive(Clone, Debug)]
pub struct TracedDecision {
    pub decision: Decision,
    /// Every rule, in the order in which they were looked at.
    pub trace: Vec<RuleTrace>,
}

/// Whether a hook has told the agent already: asking again by a tool must not say it twice. An uninstalled hook, which
/// was never seen, silences nothing.
pub fn is_already_told(event: &Event, seen: impl Fn(EventKind) -> bool) -> bool {
    event.source == Source::Mcp && event.platform.has_hook_for(event.kind) && seen(event.kind)
}

/// Pure: the same event, facts and rules always give the same decision. `note` hears what became of every rule.
pub fn decide(
    event: &Event,
    facts: &Facts,
    builtin: &[BuiltinRule],
    custom: &[CustomRule],
    note: &mut dyn FnMut(&str, &Verdict),
) -> Decision {
    run(event, facts, builtin, custom, &mut |rule, verdict| note(rule.id(), &verdict))
}

/// As [`decide`], and everything about every rule.
pub fn decide_with_trace(
    event: &Event,
    facts: &Facts,
    builtin: &[BuiltinRule],
    custom: &[CustomRule],
) -> TracedDecision {
    let mut trace = Vec::new();
    let decision = run(event, facts, builtin, custom, &mut |rule, verdict| {
        let (source, priority) = rule.place();
        trace.push(RuleTrace { rule: rule.id().to_owned(), name: rule.name(), source, priority, verdict });
    });
    let is_out = |trace: &&mut RuleTrace| {
        matches!(trace.verdict, Verdict::Injected { .. })
            && !decision.actions.iter().any(|action| action.rule == trace.rule)
    };
    trace.iter_mut().filter(is_out).for_each(|trace| trace.verdict = Verdict::NoRoom);
    TracedDecision { decision, trace }
}

#[derive(Clone, Copy)]
enum Rule<'a> {
    Builtin(&'a BuiltinRule),
    Custom(&'a CustomRule),
}

impl Rule<'_> {
    fn id(&self) -> &str {
        match self {
            Rule::Builtin(rule) => rule.id,
            Rule::Custom(rule) => &rule.id,
        }
    }

    fn name(&self) -> (String, String) {
        match self {
            Rule::Builtin(rule) => (rule.about.0.to_owned(), rule.about.1.to_owned()),
            Rule::Custom(rule) => (rule.name.clone(), rule.name.clone()),
        }
    }

    /// Lower priorities run first; of equal ones the nearer.
    fn place(&self) -> (RuleSource, i32) {
        match self {
            Rule::Builtin(rule) => (RuleSource::Builtin, rule.priority),
            Rule::Custom(rule) => (rule.source, rule.priority),
        }
    }
}

fn run(
    event: &Event,
    facts: &Facts,
    builtin: &[BuiltinRule],
    custom: &[CustomRule],
    note: &mut dyn FnMut(Rule<'_>, Verdict),
) -> Decision {
    let mut rules: Vec<Rule<'_>> =
        builtin.iter().map(Rule::Builtin).chain(custom.iter().map(Rule::Custom)).collect();
    rules.sort_by_key(|rule| {
        let (source, priority) = rule.place();
        (priority, source)
    });
    let is_already_told = is_already_told(event, |kind| facts.session.hooks_seen.contains(&kind));
    let mut scope = ConditionScope::new(event, facts);
    let mut decision = Decision::default();
    let mut stopped: Option<&str> = None;
    for rule in &rules {
        let verdict = match *rule {
            _ if is_already_told => Err(Verdict::Suppressed),
            _ if stopped.is_some() => Err(Verdict::Stopped { by: stopped.unwrap_or_default().to_owned() }),
            Rule::Builtin(rule) => run_builtin(rule, event, facts, left(event, &decision)),
            Rule::Custom(rule) => match matches(rule, event, facts, builtin, custom, &mut scope) {
                Err(verdict) => Err(verdict),
                Ok(()) => {
                    scope.share(rule);
                    stopped = rule.stops.then_some(&rule.id);
                    words_of(rule, event, facts)
                }
            },
        };
        let verdict = match verdict {
            Err(verdict) => verdict,
            Ok(said) => speak(rule, said, &mut decision, &mut scope),
        };
        note(*rule, verdict);
    }
    fit_to_cap(&mut decision, event);
    decision
}

fn speak(
    rule: &Rule<'_>,
    said: RuleOutput,
    decision: &mut Decision,
    scope: &mut ConditionScope<'_>,
) -> Verdict {
    let RuleOutput { kind, content, throttle } = said;
    decision.throttle.extend(throttle);
    // The same words twice say nothing new.
    if decision.actions.iter().any(|action| action.content == content) {
        return Verdict::Repeated;
    }
    scope.spoke(rule.id());
    let (_, priority) = rule.place();
    decision.actions.push(Action { kind, content: content.clone(), priority, rule: rule.id().to_owned() });
    Verdict::Injected { content }
}

/// What the platform still takes.
fn left(event: &Event, decision: &Decision) -> usize {
    let used: usize = decision.actions.iter().map(|a| a.content.len() + a.kind.overhead() + 1).sum();
    event.platform.cap.saturating_sub(used)
}

fn run_builtin(rule: &BuiltinRule, event: &Event, facts: &Facts, left: usize) -> Result<RuleOutput, Verdict> {
    if !rule.events.contains(&event.kind) {
        return Err(Verdict::OtherEvent);
    }
    if facts.disabled_rules.contains(&rule.id) {
        return Err(Verdict::Off);
    }
    let said = (rule.run)(&RuleInput { event, facts, left }).map_err(Verdict::Silent)?;
    match said.throttle.as_ref().and_then(|throttle| time_left(throttle, facts)) {
        Some(left) => Err(Verdict::Throttled { left }),
        None => Ok(said),
    }
}

/// Whether a custom rule is about this event. If not, why not.
fn matches(
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
    if builtin.iter().any(|known| known.id == rule.id) {
        return Err(Verdict::Shadowed { by: RuleSource::Builtin });
    }
    let nearer = |other: &&CustomRule| other.id == rule.id && other.trusted && other.source < rule.source;
    if let Some(other) = custom.iter().find(nearer) {
        return Err(Verdict::Shadowed { by: other.source });
    }
    if !rule.enabled {
        return Err(Verdict::Off);
    }
    // Before the condition: what only keeps quiet need not be compiled.
    let only_speaks = !rule.stops && rule.share.is_empty();
    if let Some(left) = throttled(rule, event, facts).filter(|_| only_speaks) {
        return Err(Verdict::Throttled { left });
    }
    match scope.holds(rule) {
        Err(error) => Err(Verdict::ConditionFailed(error.message(facts.lang))),
        Ok(false) => Err(Verdict::ConditionFalse),
        Ok(true) => Ok(()),
    }
}

fn throttled(rule: &CustomRule, event: &Event, facts: &Facts) -> Option<Millis> {
    time_left(&throttle_of(rule, event)?, facts)
}

/// What a custom rule that matched says, if it has words and they are not too soon.
fn words_of(rule: &CustomRule, event: &Event, facts: &Facts) -> Result<RuleOutput, Verdict> {
    let content = escape_tags(rule.content.trim());
    if content.is_empty() {
        return Err(Verdict::Matched);
    }
    match throttled(rule, event, facts) {
        Some(left) => Err(Verdict::Throttled { left }),
        None => Ok(RuleOutput { kind: rule.kind, content, throttle: throttle_of(rule, event) }),
    }
}

/// Two hooks that run at once may have read the clock in either order.
const SIDE_BY_SIDE: Millis = 10_000;

/// How long it still has to keep quiet.
fn time_left(throttle: &Throttle, facts: &Facts) -> Option<Millis> {
    let said: Millis = *facts.session.last_injected.get(&throttle.key)?;
    // A clock that went back must not silence anything for long; moments are hooks that ran side by side.
    let since = facts.now - said;
    (-SIDE_BY_SIDE..throttle.ttl).contains(&since).then(|| throttle.ttl - since.max(0))
}
