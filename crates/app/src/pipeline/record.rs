//! The last step of the pipeline: writes what a decision changes. Each part is written once, and an error in
//! one part is logged and does not affect the others.

use tanmi_event::{Event, EventKind, Source};
use tanmi_session::{LedgerEntry, States};

use super::{Caller, DecisionInput, Response, Session, log, log_line, memory, state};
use crate::retention;

/// Records a response: the binding that the session takes over, the session state, its client process, the session line
/// in memory, the ledger and the log.
pub fn record(
    caller: &Caller<'_>,
    event: &Event,
    mut session: Session,
    input: &DecisionInput,
    response: &Response,
) {
    take_over_binding(caller, event, input);
    state::record(session.state(), event, &response.decision, &input.facts);
    let due_warnings = log::take_due(caller, session.state(), &input.warnings);
    // The state is saved and unlocked before the slower parts. It contains what prevents a repetition.
    let is_kept = session.is_kept();
    session.save(caller, event);
    if is_kept {
        register_client(caller, event);
    }
    if event.source == Source::Hook {
        memory::record_session(caller, event, &input.config, input.trust.as_ref());
        if event.kind == EventKind::SessionStart {
            retention::run_if_due(caller.home, caller.stores, input.config.log_retain_days, caller.now);
        }
    }
    due_warnings.iter().for_each(|warning| log_line(caller, warning));
    if response.decision.should_respond && input.config.ledger && caller.home.is_dir() {
        write_ledger(caller, event, input, response);
    }
}

/// At a session start, sets damaged bindings aside, so that they can be written.
pub fn repair_bindings(caller: &Caller<'_>, event: &Event) {
    if event.kind != EventKind::SessionStart || !caller.home.is_dir() {
        return;
    }
    if caller.stores.bindings.repair().unwrap_or(false) {
        log_line(caller, "session-bindings.json could not be read and was moved aside");
    }
}

fn take_over_binding(caller: &Caller<'_>, event: &Event, input: &DecisionInput) {
    let Some(binding) = &input.taken_over else { return };
    if let Err(error) = caller.stores.bindings.bind(&event.session, binding) {
        let session = &event.session;
        log_line(
            caller,
            &format!("session {session}: cannot take over the binding of the previous session: {error}"),
        );
    }
}

/// Registers the session of the client process. A subagent runs in the client process of its session, so its
/// events must not change the session of that process.
fn register_client(caller: &Caller<'_>, event: &Event) {
    let can_register = event.source == Source::Hook && event.kind != EventKind::SubagentStart;
    if let Some(client) = caller.client.as_ref().filter(|_| can_register) {
        let _ = States::new(caller.home).register(client, &event.session);
    }
}

fn write_ledger(caller: &Caller<'_>, event: &Event, input: &DecisionInput, response: &Response) {
    let entry = LedgerEntry {
        at: caller.now,
        session: event.session.clone(),
        platform: event.platform.id.to_owned(),
        source: event.source.as_str().to_owned(),
        event: event.kind.as_str().to_owned(),
        workspace: input.facts.workspace.as_ref().map(|workspace| workspace.id.clone()),
        node: input.facts.node.as_ref().map(|node| node.id.clone()),
        rules: response.decision.actions.iter().map(|action| action.rule.to_string()).collect(),
        bytes: response.text.len(),
        tokens: tanmi_base::text::estimate_tokens(&response.text),
        micros: u64::try_from(caller.started.elapsed().as_micros()).unwrap_or(u64::MAX),
        text: String::new(),
    };
    if let Err(error) = caller.stores.ledger.append(entry, &response.text) {
        log_line(caller, &format!("ledger: {error}"));
    }
}
