//! The pipeline that every event passes through: load the facts, decide, record.
//!
//! Hooks enter it directly from the binary; tools, the command line and the page enter it through [`crate::events::EventService`].
//!
//! Invariant: an error never stops the pipeline; it is written to the log, and the decision is made without the failed
//! part. The agent learns of only one error: the bound workspace is gone or cannot be read (rule `binding-lost`).
//!
//! Performance: at a prompt, only the bound workspace, its focused node, settings, rules files, declared context
//! and session files are read, and only the session state is locked. A session start and a session end also read
//! and write memory. Folders are scanned only for a binding hint and at a session end, which has its own time limit.

use std::path::{Path, PathBuf};
use std::time::Instant;

use tanmi_base::{Lang, Millis};
use tanmi_engine::{
    BUILTIN_RULES, ContextHash, CustomRule, Facts, TracedDecision, Verdict, decide, decide_with_trace,
};
use tanmi_event::{ActionKind, Decision, Event, EventKind, Source, StartSource, render};
use tanmi_session::{Binding, Bindings, ClientProcess, LedgerEntry, SessionState, States, pause};
use tanmi_workspace::model::{WorkspaceId, WorkspaceStatus};
use tanmi_workspace::store::{ContextSnapshot, SnapshotDepth};

use crate::config::Config;
use crate::stores::Stores;

mod declared;
mod facts;
mod log;
mod memory;
pub mod rules;
mod state;

pub(crate) use declared::lookup;
pub use facts::disabled_rules;
pub use log::{log_line, write as write_log};
use rules::RuleFile;
pub use state::mark_seen;

/// The environment of one run of the pipeline.
pub struct Caller<'a> {
    pub home: &'a Path,
    pub stores: &'a Stores,
    /// The home folder of the user, which contains `.tanmi/rules.json`.
    pub user: Option<&'a Path>,
    pub now: Millis,
    pub locale: Lang,
    pub client: Option<ClientProcess>,
    /// The `context.json` of the machine or container, named by the environment.
    pub context: Option<&'a Path>,
    /// For a look from the host into a container: the user's folder on the host, and the path where the container mounts
    /// it.
    pub mount: Option<(&'a Path, &'a str)>,
    /// The platform named by the installed hook command. It can differ from the client that runs the hook.
    pub via: &'a str,
    pub started: Instant,
    /// Whether the environment disables injection.
    pub disabled: bool,
    /// Whether injected texts suggest commands instead of tool calls, because a command prints them.
    pub suggests_commands: bool,
}

/// The input of a decision besides the event.
struct DecisionInput {
    facts: Facts,
    config: Config,
    rules: Vec<CustomRule>,
    files: Vec<RuleFile>,
    project: Option<PathBuf>,
    /// Problems in the files that were read, for the log.
    warnings: Vec<String>,
}

/// Decides what to inject at an event, and records it.
pub fn handle(caller: &Caller<'_>, event: &Event) -> Decision {
    let states = States::new(caller.home);
    if is_silenced(caller) {
        // The state is still updated, so that skipped texts are injected after the pause.
        if caller.home.is_dir() && !event.session.is_empty() {
            let _ = states.update(&event.session, |state| state::advance(state, event, caller));
        }
        return Decision::default();
    }
    // The home store is not created here, and an event without a session has no state.
    if event.session.is_empty() || !caller.home.is_dir() {
        return respond(caller, event, &states, &mut SessionState::default());
    }
    let decided = states.update(&event.session, |state| respond(caller, event, &states, state));
    // A subagent runs in the client process of its session, so its events must not change the session of that
    // process.
    let can_register_client = event.source == Source::Hook && event.kind != EventKind::SubagentStart;
    if let Some(client) = caller.client.as_ref().filter(|_| can_register_client) {
        let _ = states.register(client, &event.session);
    }
    // If the state cannot be written, the decision is still made; only the record of it is lost.
    decided.unwrap_or_else(|error| {
        log_line(caller, &format!("{}: {error}", event.kind.as_str()));
        respond(caller, event, &states, &mut states.read(&event.session))
    })
}

/// Returns whether injection is paused (`tanmi pause`) or disabled by the environment.
pub fn is_silenced(caller: &Caller<'_>) -> bool {
    caller.disabled || pause::paused_until(caller.home, caller.now).is_some()
}

/// Decides and records. Runs under the lock of the session state, so that concurrent hooks do not overwrite each
/// other's records.
fn respond(caller: &Caller<'_>, event: &Event, states: &States, state: &mut SessionState) -> Decision {
    if !state::try_begin_event(state, event, caller) {
        return Decision::default();
    }
    let bindings = caller.stores.bindings.as_ref();
    import_old_bindings(caller, event, bindings);
    let is_damaged = event.kind == EventKind::SessionStart && bindings.repair().unwrap_or(false);
    let (binding, previous) = binding_for(caller, event, bindings, states);
    if let (Some(previous), Some(binding)) = (previous, &binding) {
        if let Err(error) = bindings.bind(&event.session, binding) {
            log_line(
                caller,
                &format!(
                    "session {}: cannot take over the binding of the previous session: {error}",
                    event.session
                ),
            );
        }
        state.last_injected = previous.last_injected;
    }
    state::advance(state, event, caller);
    let mut loaded = load(caller, event, state, binding.as_ref());
    let mut warnings = std::mem::take(&mut loaded.warnings);
    if is_damaged {
        warnings.push(String::from("session-bindings.json could not be read and was moved aside"));
    }
    let mut decision = run(event, &loaded, &mut warnings);
    // Workspaces are looked up only for a binding hint, because that reads more files.
    if decision.actions.iter().any(|action| action.kind == ActionKind::BindingHint) {
        loaded.facts.has_workspaces = facts::has_workspaces(caller, event);
        decision = run(event, &loaded, &mut Vec::new());
    }
    state::record(state, event, &decision, &loaded.facts);
    if event.source == Source::Hook {
        memory::record_session(caller, event, &loaded.config, loaded.project.as_deref());
    }
    log::write_warnings(caller, state, &warnings);
    if decision.should_respond && loaded.config.ledger && caller.home.is_dir() {
        write_ledger(caller, event, &decision, &loaded.facts);
    }
    decision
}

/// Imports the bindings of the project from the old `sessions.json` if the session has no binding yet.
fn import_old_bindings(caller: &Caller<'_>, event: &Event, bindings: &dyn Bindings) {
    if event.kind == EventKind::SessionStart
        && caller.home.is_dir()
        && matches!(bindings.find(&event.session), Ok(None))
        && let Some(project) = facts::project_of(caller, event)
    {
        crate::import::sessions(caller.home, bindings, &project, caller.now);
    }
}

fn run(event: &Event, loaded: &DecisionInput, warnings: &mut Vec<String>) -> Decision {
    decide(event, &loaded.facts, BUILTIN_RULES, &loaded.rules, &mut |id, verdict| {
        if let Verdict::ConditionFailed(reason) = verdict {
            warnings.push(format!("rule {id}: {reason}"));
        }
    })
}

/// The decision for an event, with the reasons.
pub struct PipelineTrace {
    pub traced: TracedDecision,
    pub facts: Facts,
    pub files: Vec<RuleFile>,
    /// The text as it is sent to the platform.
    pub text: String,
    /// Whether injection is paused or disabled.
    pub silenced: bool,
}

/// Returns what would be injected at an event, and why. Writes nothing. `edited` replaces the rules file of the
/// project and counts as trusted.
pub fn explain(caller: &Caller<'_>, event: &Event, edited: Option<&Path>) -> PipelineTrace {
    let states = States::new(caller.home);
    let mut state = states.read(&event.session);
    let (binding, previous) = binding_for(caller, event, caller.stores.bindings.as_ref(), &states);
    if let Some(previous) = previous {
        state.last_injected = previous.last_injected;
    }
    state::advance(&mut state, event, caller);
    let mut loaded = load(caller, event, &state, binding.as_ref());
    if let Some(path) = edited {
        rules::replace_project_file(&mut loaded.files, path);
        loaded.rules = rules::flatten(&loaded.files);
    }
    loaded.facts.has_workspaces = facts::has_workspaces(caller, event);
    let traced = decide_with_trace(event, &loaded.facts, BUILTIN_RULES, &loaded.rules);
    let text = render(&traced.decision, event.platform);
    let silenced = is_silenced(caller);
    PipelineTrace { traced, facts: loaded.facts, files: loaded.files, text, silenced }
}

/// Returns the binding of the session. After a clear or a fork the client continues under a new session id; then
/// this is the binding of the previous session, returned together with the state of that session.
fn binding_for(
    caller: &Caller<'_>,
    event: &Event,
    bindings: &dyn Bindings,
    states: &States,
) -> (Option<Binding>, Option<SessionState>) {
    if let (Some(workspace), Some(project)) = (&event.payload.workspace_id, &event.payload.project) {
        let binding = Binding {
            workspace_id: workspace.clone(),
            focused_node_id: event.payload.node_id.clone(),
            bound_at: caller.now,
            project: project.clone(),
            other: Default::default(),
        };
        return (Some(binding), None);
    }
    if let Some(binding) = bindings.find(&event.session).ok().flatten() {
        return (Some(binding), None);
    }
    let is_continuation = matches!(event.payload.start, Some(StartSource::Clear | StartSource::Fork));
    let previous = caller.client.as_ref().filter(|_| is_continuation).and_then(|client| {
        states.sessions_of_client(client).into_iter().find(|known| known.session != event.session)
    });
    let binding = previous.as_ref().and_then(|previous| bindings.find(&previous.session).ok().flatten());
    let previous = previous.filter(|_| binding.is_some());
    (binding, previous)
}

fn load(
    caller: &Caller<'_>,
    event: &Event,
    state: &SessionState,
    binding: Option<&Binding>,
) -> DecisionInput {
    let node = event.payload.node_id.as_deref();
    let snapshot = binding.and_then(|binding| load_snapshot(caller.stores, event.kind, node, binding));
    // An archived workspace is not lost: nothing is injected for it, and nothing is reported.
    let is_lost = binding.is_some() && snapshot.is_none();
    let bound = binding.zip(snapshot.filter(is_active));
    let project = match &bound {
        Some((binding, _)) => Some(binding.project.clone()),
        None => facts::project_of(caller, event),
    };
    let config = Config::load(caller.home, project.as_deref());
    let files = if config.custom_rules {
        let workspace = bound.as_ref().map(|(_, snapshot)| &snapshot.workspace.id);
        rules::load(caller, project.as_deref(), workspace)
    } else {
        Vec::new()
    };
    let bound = bound.as_ref().map(|(binding, snapshot)| (*binding, snapshot));
    let memory =
        memory::load(caller, event, &config, project.as_deref(), bound.map(|(_, snapshot)| snapshot));
    let mut warnings = rules::warnings(&files);
    warnings.extend(config.warnings.iter().map(ToString::to_string));
    let declared = declared::load(caller, event, state, &config, project.as_deref(), &mut warnings);
    let mut facts = facts::build(caller, event, state, &config, bound, memory, declared);
    if let Some(binding) = binding.filter(|_| is_lost) {
        warnings.push(format!("workspace {}: missing or unreadable", binding.workspace_id));
        facts.session.lost_workspace = Some(binding.workspace_id.clone());
    }
    DecisionInput { facts, rules: rules::flatten(&files), config, files, project, warnings }
}

/// Returns the hash of the current context of a bound session, and its focused node.
pub fn context_now(stores: &Stores, binding: &Binding) -> Option<(ContextHash, Option<String>)> {
    let snapshot = load_snapshot(stores, EventKind::PromptSubmit, None, binding).filter(is_active)?;
    Some((facts::hash_of(&snapshot), snapshot.node.map(|node| node.id.to_string())))
}

fn is_active(snapshot: &ContextSnapshot) -> bool {
    snapshot.workspace.status == WorkspaceStatus::Active
}

/// Returns the current snapshot of the bound workspace; `None` if it is missing or cannot be read.
fn load_snapshot(
    stores: &Stores,
    kind: EventKind,
    node: Option<&str>,
    binding: &Binding,
) -> Option<ContextSnapshot> {
    let id = WorkspaceId::parse(&binding.workspace_id).ok()?;
    let depth = match kind {
        EventKind::SessionStart | EventKind::StatusCheck => SnapshotDepth::Progress,
        _ => SnapshotDepth::Focus,
    };
    let node = node.or(binding.focused_node_id.as_deref());
    stores.projects.in_folder(&binding.project).snapshots().context_snapshot(&id, node, depth)
}

fn write_ledger(caller: &Caller<'_>, event: &Event, decision: &Decision, facts: &Facts) {
    let text = match event.source {
        Source::Hook => render(decision, event.platform),
        Source::Mcp | Source::Api => decision.text_of(ActionKind::ALL).unwrap_or_default(),
    };
    let entry = LedgerEntry {
        at: caller.now,
        session: event.session.clone(),
        platform: event.platform.id.to_owned(),
        source: event.source.as_str().to_owned(),
        event: event.kind.as_str().to_owned(),
        workspace: facts.workspace.as_ref().map(|workspace| workspace.id.clone()),
        rules: decision.actions.iter().map(|action| action.rule.clone()).collect(),
        bytes: text.len(),
        tokens: tanmi_base::text::estimate_tokens(&text),
        micros: u64::try_from(caller.started.elapsed().as_micros()).unwrap_or(u64::MAX),
        text: String::new(),
    };
    if let Err(error) = caller.stores.ledger.append(entry, &text) {
        log_line(caller, &format!("ledger: {error}"));
    }
}
