//! What an event and a decision do to the session's state.

use tanmi_base::Millis;
use tanmi_engine::{ContextHash, Facts};
use tanmi_event::{ActionKind, CONTEXT_RULES, Decision, Event, EventKind, Source};
use tanmi_session::{EventClaim, SessionState};

use super::Caller;

/// Two runs for one event come within moments of each other.
const SAME_EVENT: Millis = 10_000;
/// Nodes of which a session is remembered to know.
const MAX_NODES: usize = 30;
/// Longer than any throttle.
const FORGET_AFTER: Millis = 2 * 86_400_000;

/// Whether this run may speak. Of two runs for one event, from the files of two clients, the first may.
pub fn claim(state: &mut SessionState, event: &Event, caller: &Caller<'_>) -> bool {
    if event.source != Source::Hook {
        return true;
    }
    let prompt = match event.kind {
        EventKind::PromptSubmit => event.payload.prompt_id.clone(),
        EventKind::SubagentStart => event.payload.agent_id.clone(),
        _ => None,
    };
    let claim = EventClaim { via: caller.via.to_owned(), prompt, at: caller.now };
    let before = state.claims.get(event.kind.as_str());
    let is_taken = before.is_some_and(|before| match (&before.prompt, &claim.prompt) {
        (Some(a), Some(b)) => a == b,
        _ => before.via != claim.via && (claim.at - before.at).abs() < SAME_EVENT,
    });
    if !is_taken {
        state.claims.insert(event.kind.as_str().to_owned(), claim);
    }
    !is_taken
}

/// What the event itself does, before anything is decided.
pub fn advance(state: &mut SessionState, event: &Event, caller: &Caller<'_>) {
    state.session.clone_from(&event.session);
    state.alive_at = caller.now;
    super::declared::advance(state, event);
    match event.kind {
        EventKind::SessionStart => {
            state.prompts = 0;
            state.compacted = false;
            // Whatever it knew is told now, or at its first prompt.
            state.seen_context = None;
            if event.source == Source::Hook {
                state.hooks.clear();
            }
        }
        EventKind::PromptSubmit => {
            state.prompts = state.prompts.saturating_add(1);
            state.total_prompts = state.total_prompts.saturating_add(1);
        }
        EventKind::PreCompact => state.compacted = true,
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

/// The session knows this now.
pub fn mark_seen(state: &mut SessionState, hash: &ContextHash, node: Option<&str>) {
    state.seen_context = Some(hash.to_string());
    if let Some(node) = node {
        state.nodes.insert(node.to_owned(), hash.node.clone());
        while state.nodes.len() > MAX_NODES {
            state.nodes.pop_first();
        }
    }
}

/// What the decision leaves behind.
pub fn record(state: &mut SessionState, event: &Event, decision: &Decision, facts: &Facts) {
    // What a subagent is told, its session is not.
    let is_session = event.kind != EventKind::SubagentStart;
    state.last_injected.retain(|_, at| facts.now - *at < FORGET_AFTER);
    for throttle in &decision.throttle {
        state.last_injected.insert(throttle.key.clone(), facts.now);
    }
    state.summary_requested |= decision.actions.iter().any(|action| action.kind == ActionKind::Save);
    let is_declared = decision.actions.iter().any(|action| action.kind == ActionKind::Declared);
    if let Ok(declared) = &facts.declared
        && is_session
        && (is_declared || declared.known.is_some())
    {
        state.declared = Some(declared.digest.clone());
    }
    let is_told = decision.actions.iter().any(|action| CONTEXT_RULES.contains(&action.rule.as_str()));
    if let Some(workspace) = facts.workspace.as_ref().filter(|_| is_told) {
        mark_seen(
            state,
            &ContextHash::of(workspace, facts.node.as_ref()),
            facts.node.as_ref().map(|node| node.id.as_str()),
        );
        state.compacted = false;
    }
}
