//! The one line on which everything that speaks to an agent runs: load what the rules need, decide, record.
//!
//! Hooks come here straight from the binary; tools, the command line and the page by way of [`crate::App`]. Nothing here
//! may fail its agent. At a prompt only the bound workspace, the node in question, settings, rules files and the session's
//! own files are read, and only the session's state is locked; a start and an end also read and note memory. Nothing is
//! scanned but at an end, which has its own time limit.

use std::path::{Path, PathBuf};
use std::time::Instant;

use tanmi_base::{Lang, Millis};
use tanmi_engine::{
    BUILTIN_RULES, ContextHash, CustomRule, Facts, TracedDecision, Verdict, decide, decide_with_trace,
};
use tanmi_event::{ActionKind, Decision, Event, EventKind, Source, StartSource, render};
use tanmi_session::{Binding, Bindings, ClientProcess, Ledger, LedgerEntry, SessionState, States, pause};
use tanmi_workspace::model::{WorkspaceId, WorkspaceStatus};
use tanmi_workspace::store::{ContextSnapshot, FileStore, SnapshotDepth};

use crate::config::Config;

mod declared;
mod facts;
mod log;
mod memory;
pub mod rules;
mod state;

pub(crate) use declared::lookup;
pub use facts::disabled_rules;
pub use log::{note, write as write_log};
use rules::RuleFile;
pub use state::mark_seen;

/// What is known besides the event.
pub struct Caller<'a> {
    pub home: &'a Path,
    /// The user's own folder, where their global rules are.
    pub user: Option<&'a Path>,
    pub now: Millis,
    pub locale: Lang,
    pub client: Option<ClientProcess>,
    /// The declaration of the machine or container, which the environment names.
    pub context: Option<&'a Path>,
    /// A user's folder that is looked at from outside of its container, and where it is inside.
    pub mount: Option<(&'a Path, &'a str)>,
    /// The platform that the installed command names, which may be another than the one that runs it.
    pub via: &'a str,
    pub started: Instant,
    /// Switched off by the environment.
    pub disabled: bool,
}

/// Everything a decision is made from.
struct DecisionInput {
    facts: Facts,
    config: Config,
    rules: Vec<CustomRule>,
    files: Vec<RuleFile>,
    project: Option<PathBuf>,
    /// What is wrong with the files that were read.
    complaints: Vec<String>,
}

/// Decides, and remembers what was said.
pub fn handle(caller: &Caller<'_>, event: &Event) -> Decision {
    let states = States::new(caller.home);
    if is_silenced(caller) {
        // Nothing is said, and nothing is forgotten: what is missed now is told when the silence is over.
        if caller.home.is_dir() && !event.session.is_empty() {
            let _ = states.update(&event.session, |state| state::advance(state, event, caller));
        }
        return Decision::default();
    }
    // Where nothing was ever saved, no folder is made either; and an event of nobody's session has no state.
    if event.session.is_empty() || !caller.home.is_dir() {
        return respond(caller, event, &states, &mut SessionState::default());
    }
    let decided = states.update(&event.session, |state| respond(caller, event, &states, state));
    // A subagent's process is its session's, whoever of them asks.
    let is_session = event.source == Source::Hook && event.kind != EventKind::SubagentStart;
    if let Some(client) = caller.client.as_ref().filter(|_| is_session) {
        let _ = states.register(client, &event.session);
    }
    // A disk that takes no writes costs the memory of what was said, not the answer.
    decided.unwrap_or_else(|error| {
        note(caller, &format!("{}: {error}", event.kind.as_str()));
        respond(caller, event, &states, &mut states.read(&event.session))
    })
}

/// `tanmi pause`, and the switch in the environment.
pub fn is_silenced(caller: &Caller<'_>) -> bool {
    caller.disabled || pause::paused_until(caller.home, caller.now).is_some()
}

/// Under the lock of the session's state, so that two hooks at once do not forget each other's words.
fn respond(caller: &Caller<'_>, event: &Event, states: &States, state: &mut SessionState) -> Decision {
    if !state::claim(state, event, caller) {
        return Decision::default();
    }
    let bindings = Bindings::new(caller.home);
    import_old_bindings(caller, event, &bindings);
    let is_damaged = event.kind == EventKind::SessionStart && bindings.repair().unwrap_or(false);
    let (binding, continued) = binding_for(caller, event, &bindings, states);
    if let (Some(before), Some(binding)) = (continued, &binding) {
        if let Err(error) = bindings.bind(&event.session, binding) {
            note(caller, &format!("session {}: not bound any more: {error}", event.session));
        }
        state.last_injected = before.last_injected;
    }
    state::advance(state, event, caller);
    let mut loaded = load(caller, event, state, binding.as_ref());
    let mut complaints = std::mem::take(&mut loaded.complaints);
    if is_damaged {
        complaints.push(String::from("session-bindings.json could not be read and was set aside"));
    }
    let mut decision = run(event, &loaded, &mut complaints);
    // Looked up only when it is going to be said.
    if decision.actions.iter().any(|action| action.kind == ActionKind::BindingHint) {
        loaded.facts.has_workspaces = facts::has_workspaces(caller, event);
        decision = run(event, &loaded, &mut Vec::new());
    }
    state::record(state, event, &decision, &loaded.facts);
    if event.source == Source::Hook {
        memory::mark(caller, event, &loaded.config, loaded.project.as_deref());
    }
    log::complain(caller, state, &complaints);
    if decision.should_respond && loaded.config.ledger && caller.home.is_dir() {
        write_ledger(caller, event, &decision, &loaded.facts);
    }
    decision
}

/// A session that is not known here may be known to its project.
fn import_old_bindings(caller: &Caller<'_>, event: &Event, bindings: &Bindings) {
    if event.kind == EventKind::SessionStart
        && caller.home.is_dir()
        && matches!(bindings.find(&event.session), Ok(None))
        && let Some(project) = facts::project_of(caller, event)
    {
        crate::import::sessions(caller.home, &project, caller.now);
    }
}

fn run(event: &Event, loaded: &DecisionInput, complaints: &mut Vec<String>) -> Decision {
    decide(event, &loaded.facts, BUILTIN_RULES, &loaded.rules, &mut |id, verdict| {
        if let Verdict::ConditionFailed(reason) = verdict {
            complaints.push(format!("rule {id}: {reason}"));
        }
    })
}

/// What would be said, and why: nothing is written anywhere.
pub struct PipelineTrace {
    pub traced: TracedDecision,
    pub facts: Facts,
    pub files: Vec<RuleFile>,
    /// The text as the platform gets it.
    pub text: String,
    /// Nothing is said at all: paused or switched off.
    pub silenced: bool,
}

/// `edited` stands in for the project's rules file, as if it were trusted.
pub fn explain(caller: &Caller<'_>, event: &Event, edited: Option<&Path>) -> PipelineTrace {
    let states = States::new(caller.home);
    let mut state = states.read(&event.session);
    let (binding, continued) = binding_for(caller, event, &Bindings::new(caller.home), &states);
    if let Some(before) = continued {
        state.last_injected = before.last_injected;
    }
    state::advance(&mut state, event, caller);
    let mut loaded = load(caller, event, &state, binding.as_ref());
    if let Some(path) = edited {
        rules::stand_in(&mut loaded.files, path);
        loaded.rules = rules::flatten(&loaded.files);
    }
    loaded.facts.has_workspaces = facts::has_workspaces(caller, event);
    let traced = decide_with_trace(event, &loaded.facts, BUILTIN_RULES, &loaded.rules);
    let text = render(&traced.decision, event.platform);
    let silenced = is_silenced(caller);
    PipelineTrace { traced, facts: loaded.facts, files: loaded.files, text, silenced }
}

/// The session's binding. After a clear or a fork the same client goes on under another id: then it is the binding of
/// the session before, whose state comes with it.
fn binding_for(
    caller: &Caller<'_>,
    event: &Event,
    bindings: &Bindings,
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
    let goes_on = matches!(event.payload.start, Some(StartSource::Clear | StartSource::Fork));
    let before =
        caller.client.as_ref().filter(|_| goes_on).and_then(|client| {
            states.of_client(client).into_iter().find(|known| known.session != event.session)
        });
    let binding = before.as_ref().and_then(|before| bindings.find(&before.session).ok().flatten());
    let before = before.filter(|_| binding.is_some());
    (binding, before)
}

fn load(
    caller: &Caller<'_>,
    event: &Event,
    state: &SessionState,
    binding: Option<&Binding>,
) -> DecisionInput {
    let node = event.payload.node_id.as_deref();
    let snapshot = binding.and_then(|binding| load_snapshot(event.kind, node, binding));
    // What is archived is there, and silent.
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
    let mut complaints = rules::complaints(&files);
    complaints.extend(config.warnings.iter().map(ToString::to_string));
    let declared = declared::load(caller, event, state, &config, project.as_deref(), &mut complaints);
    let mut facts = facts::of(caller, event, state, &config, bound, memory, declared);
    if let Some(binding) = binding.filter(|_| is_lost) {
        complaints.push(format!("workspace {}: gone, or it cannot be read", binding.workspace_id));
        facts.session.lost = Some(binding.workspace_id.clone());
    }
    DecisionInput { facts, rules: rules::flatten(&files), config, files, project, complaints }
}

/// What a bound session would be told now: its hash, and the node in focus.
pub fn context_now(binding: &Binding) -> Option<(ContextHash, Option<String>)> {
    let snapshot = load_snapshot(EventKind::PromptSubmit, None, binding).filter(is_active)?;
    Some((facts::hash_of(&snapshot), snapshot.node.map(|node| node.id.to_string())))
}

fn is_active(snapshot: &ContextSnapshot) -> bool {
    snapshot.workspace.status == WorkspaceStatus::Active
}

/// The bound workspace as it is now; `None` if it is gone or cannot be read.
fn load_snapshot(kind: EventKind, node: Option<&str>, binding: &Binding) -> Option<ContextSnapshot> {
    let id = WorkspaceId::parse(&binding.workspace_id).ok()?;
    let depth = match kind {
        EventKind::SessionStart | EventKind::StatusCheck => SnapshotDepth::Progress,
        _ => SnapshotDepth::Focus,
    };
    let node = node.or(binding.focused_node_id.as_deref());
    FileStore::new(&binding.project).context_snapshot(&id, node, depth)
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
    if let Err(error) = Ledger::new(caller.home).append(entry, &text) {
        note(caller, &format!("ledger: {error}"));
    }
}
