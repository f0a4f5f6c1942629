//! Updates the session state for events and decisions.

use tanmi_base::Millis;
use tanmi_engine::{
    CONTEXT_RULES, Facts, NodeFacts, PROBLEM_OPEN, WorkspaceFacts, is_binding_throttle, known_context,
    known_rules, tells_digest, tells_latest, told_rules,
};
use tanmi_event::{ActionKind, BuiltinRuleId, Decision, Event, EventKind, Source, StartSource};
use tanmi_session::{HandledEvent, LastReminder, SessionState};

use super::Caller;
use super::facts::KnownContext;

/// Without an event id, two runs of different hook commands within this time count as the same event.
const SAME_EVENT_WINDOW: Millis = 10_000;
/// Maximum number of nodes whose hashes are kept per session. The smallest other id, which is that of the oldest
/// node, is dropped first.
const MAX_NODES: usize = 30;
/// Injection times older than this are deleted. Longer than any throttle, so no throttle ends early.
const FORGET_AFTER: Millis = 2 * 86_400_000;

/// Records the event, and returns whether this run is the first to handle it. If a client runs the hooks of
/// two clients' settings files, only the first run responds.
pub fn try_begin_event(state: &mut SessionState, event: &Event, caller: &Caller<'_>) -> bool {
    if event.source != Source::Hook {
        return true;
    }
    let event_id = match event.kind {
        EventKind::PromptSubmit => event.payload.prompt_id.clone(),
        EventKind::SubagentStart => event.payload.agent_id.clone(),
        EventKind::PreToolUse => event.payload.tool_call_id.clone(),
        _ => None,
    };
    let handled = HandledEvent { via: caller.via.to_owned(), event_id, at: caller.now };
    let previous = state.handled_events.get(event.kind.as_str());
    let was_handled = previous.is_some_and(|previous| match (&previous.event_id, &handled.event_id) {
        (Some(a), Some(b)) => a == b,
        _ => previous.via != handled.via && (handled.at - previous.at).abs() < SAME_EVENT_WINDOW,
    });
    if !was_handled {
        state.handled_events.insert(event.kind.as_str().to_owned(), handled);
    }
    !was_handled
}

/// Updates the state for the event itself, before the decision.
pub fn advance(state: &mut SessionState, event: &Event, caller: &Caller<'_>) {
    state.session.clone_from(&event.session);
    state.alive_at = caller.now;
    let is_new_start =
        event.kind == EventKind::SessionStart && event.payload.start != Some(StartSource::Compact);
    if is_new_start || state.started_at == 0 {
        state.started_at = caller.now;
    }
    if is_new_start {
        // A summary is about what the session did before it was resumed.
        state.has_summary = false;
        state.summarized_projects.clear();
    }
    if event.source == Source::Hook {
        state.has_ended = event.kind == EventKind::SessionEnd;
    }
    super::declared::advance(state, event);
    match event.kind {
        EventKind::SessionStart => {
            state.prompts = 0;
            state.compacted = false;
            // The context is injected again, now or at the first prompt.
            state.seen_context = None;
            (state.told_overview, state.told_latest) = (false, false);
            forget_lost_workspace(state);
            if event.source == Source::Hook {
                state.hooks.clear();
            }
        }
        EventKind::PromptSubmit => {
            state.prompts = state.prompts.saturating_add(1);
            state.total_prompts = state.total_prompts.saturating_add(1);
            state.prompts_since_summary = state.prompts_since_summary.saturating_add(1);
        }
        EventKind::PreCompact => {
            (state.compacted, state.told_latest) = (true, false);
            forget_lost_workspace(state);
        }
        _ => {}
    }
    if event.source == Source::Hook {
        state.platform = event.platform.id.to_owned();
        if caller.client.is_some() {
            state.client.clone_from(&caller.client);
        }
        state.hooks.insert(event.kind.as_str().to_owned(), caller.now);
    }
}

/// Forgets that the session was told of its missing or archived workspace: it may no longer know it, or the
/// workspace is back.
fn forget_lost_workspace(state: &mut SessionState) {
    state.last_injected.retain(|key, _| !is_binding_throttle(key));
}

/// Records that the session knows this context.
pub fn mark_seen(state: &mut SessionState, known: KnownContext) {
    state.seen_context = Some(known.hash.to_string());
    state.told_rules = told_rules(known.rules);
    if let Some(node) = known.node_id {
        state.nodes.insert(node.clone(), known.hash.node);
        if state.nodes.len() > MAX_NODES
            && let Some(oldest) = state.nodes.keys().find(|id| **id != node).cloned()
        {
            state.nodes.remove(&oldest);
        }
    }
}

/// Updates the state for the decision.
pub fn record(state: &mut SessionState, event: &Event, decision: &Decision, facts: &Facts) {
    // A text that is injected into a subagent is not in the context of its session.
    let is_for_subagent = event.kind == EventKind::SubagentStart;
    state.last_injected.retain(|_, at| facts.now - *at < FORGET_AFTER);
    for throttle in &decision.throttle {
        state.last_injected.insert(throttle.key.clone(), facts.now);
    }
    if let Some(kind) = injected_reminder(decision) {
        state.last_reminder = Some(LastReminder { kind: kind.to_owned(), at: facts.now });
    }
    if decision.actions.iter().any(|action| action.kind == ActionKind::Save) {
        state.summary_requested_at = Some(facts.now);
    }
    let has_declared = decision.actions.iter().any(|action| action.kind == ActionKind::Declared);
    if let Ok(declared) = &facts.declared
        && !is_for_subagent
        && (has_declared || declared.known_because.is_some())
    {
        state.declared = Some(declared.digest.clone());
    }
    if decision.actions.iter().any(|action| action.rule == BuiltinRuleId::BindingLost) {
        // The session was told that its goal and rules do not count. When the workspace is back, it needs them again.
        state.seen_context = None;
    }
    if decision.actions.iter().any(|action| action.rule == BuiltinRuleId::ClaimLost) {
        state.lost_claims.clear();
    }
    if decision.actions.iter().any(|action| action.rule == BuiltinRuleId::WriteRefused) {
        state.refused_writes.clear();
    }
    let mut memory_texts = decision.actions.iter().filter(|action| action.kind == ActionKind::Memory);
    if let Some(digest) = facts.memory.as_ref().ok().and_then(|memory| memory.digest.as_ref())
        && memory_texts.any(|action| tells_digest(&action.content, digest, facts.lang))
    {
        state.told_digest = Some(digest.id.clone());
    }
    let mut hints = decision.actions.iter().filter(|action| action.rule == BuiltinRuleId::BindingHint);
    state.told_latest |= hints.any(|action| tells_latest(&action.content, facts));
    if let Some(workspace) = facts.workspace.as_ref().filter(|_| event.kind == EventKind::PromptSubmit) {
        // A plan that was shown is confirmed or changed by the user's next prompt. A throttled reminder is still due.
        let is_told = decision.actions.iter().any(|action| action.rule == BuiltinRuleId::PlanConfirm);
        state.has_unconfirmed_plan &= workspace.unstarted_tasks != Some(0) && !is_told;
    }
    let has_context = decision.actions.iter().any(|action| CONTEXT_RULES.contains(&action.rule));
    // A reminder about an open problem comes before every other one.
    let has_reminder = decision.actions.iter().any(|action| action.kind == ActionKind::SmartReminder);
    if has_context || has_reminder {
        state.told_problem = facts.node.as_ref().and_then(NodeFacts::problem_hash);
    }
    if let Some(workspace) = facts.workspace.as_ref().filter(|_| has_context) {
        let rules = known_rules_after(event, decision, facts, workspace);
        mark_seen(state, KnownContext { rules, ..KnownContext::of(workspace, facts.node.as_ref()) });
        (state.compacted, state.told_overview) = (false, false);
        forget_lost_workspace(state);
    }
}

/// Returns the rules that the session knows after a decision with its context. A text can be too short for all of them.
fn known_rules_after(
    event: &Event,
    decision: &Decision,
    facts: &Facts,
    workspace: &WorkspaceFacts,
) -> Vec<String> {
    let session = &facts.session;
    let seen = session.seen_context.as_deref();
    let is_change = event.kind == EventKind::PromptSubmit
        && known_context(event, seen, session.compacted, session.prompts, facts.refresh_every).is_some();
    if is_change && session.told_rules.is_none() {
        // They are too long to keep, and only their number is told.
        return workspace.rules.clone();
    }
    let told = session.told_rules.as_deref().filter(|_| is_change);
    let context = decision.actions.iter().filter(|action| CONTEXT_RULES.contains(&action.rule));
    let content: Vec<&str> = context.map(|action| action.content.as_str()).collect();
    known_rules(&content.join("\n"), &workspace.rules, told)
}

/// Returns the type of the reminder in a decision. A reminder without a throttle is about an open problem.
fn injected_reminder(decision: &Decision) -> Option<&str> {
    let rules = [BuiltinRuleId::SmartReminder, BuiltinRuleId::PlanConfirm];
    let action = decision.actions.iter().find(|action| rules.iter().any(|rule| action.rule == *rule))?;
    let throttle = decision.throttle.iter().find(|throttle| throttle.rule == action.rule);
    Some(throttle.map_or(PROBLEM_OPEN, |throttle| throttle.key.as_str()))
}
