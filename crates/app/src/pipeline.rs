//! The pipeline that every event passes through, in three steps: load, decide, record.
//!
//! - [`load`] reads the facts, rules and settings. It writes nothing.
//! - [`decide`] returns the texts to inject. It is pure, and runs once per event.
//! - [`record`] writes the session state, the binding, the ledger, memory and the log. It runs once, and an error in one
//!   part does not affect the others.
//!
//! Hooks enter the pipeline directly from the binary; tools, the command line and the page enter it through
//! [`crate::events::EventService`]. [`explain`] runs the first two steps.
//!
//! Invariant: an error never stops the pipeline; it is written to the log, and the decision is made without the failed
//! part. The agent learns of only one error: the bound workspace is gone or cannot be read (rule `binding-lost`).
//!
//! Performance: at a prompt, only the bound workspace, its focused node, settings, rules files, declared
//! context and session files are read, and only the session state is locked. The node index is opened where
//! the text needs it. A session start and a session end also read and write memory, and a start reads the
//! states of the last sessions of the project, and the nodes on which the one that ended worked. Folders are scanned
//! only for a binding hint, for a bound workspace that is gone (the trash), and at a session end, which has its own
//! time limit.

use std::path::Path;
use std::time::Instant;

use tanmi_base::{Lang, Millis};
use tanmi_engine::{BUILTIN_RULES, Facts, Rule, RuleTrace, Verdict, render};
use tanmi_event::{ActionKind, ClientVersion, Decision, Event, Platform};
use tanmi_session::{ClientProcess, LockedState, SessionState, States, pause};

use crate::stores::Stores;

mod declared;
mod facts;
mod load;
mod log;
mod memory;
mod record;
pub mod rules;
mod state;

pub(crate) use declared::lookup;
pub(crate) use facts::{KnownContext, has_project_data};
pub use facts::{complete_overview, disabled_rules, other_holder, overview_facts, workspace_problem};
pub use load::context_now;
use load::{DecisionInput, load};
pub use log::{log_line, write as write_log};
pub(crate) use memory::of_project as memory_of_project;
use record::record;
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
    /// The language of the person who reads the texts; `None` if an agent does.
    pub reader: Option<Lang>,
    pub client: Option<ClientProcess>,
    /// Returns the version of the client, if it is known. A function, because few events need it.
    pub client_version: fn(&Platform) -> Option<ClientVersion>,
    /// The `context.json` of the machine or container, named by the environment.
    pub context: Option<&'a Path>,
    /// For a look from the host into a container: the user's folder on the host, and the path where the
    /// container mounts it.
    pub mount: Option<(&'a Path, &'a str)>,
    /// The platform named by the installed hook command. It can differ from the client that runs the hook.
    pub via: &'a str,
    pub started: Instant,
    /// Whether the environment disables injection.
    pub disabled: bool,
    /// Whether injected texts suggest commands instead of tool calls, because a command prints them.
    pub suggests_commands: bool,
    /// Whether each text gets the tag or heading of the platform. Tools return texts in fields of their own.
    pub uses_tags: bool,
}

/// What is injected at an event.
#[derive(Clone, Debug, Default)]
pub struct Response {
    pub decision: Decision,
    /// All texts as one, as the agent receives them.
    pub text: String,
}

/// Decides what to inject at an event, and records it.
pub fn handle(caller: &Caller<'_>, event: &Event) -> Response {
    let mut session = Session::open(caller, event);
    if is_silenced(caller) || !load::can_respond(caller, event) {
        // The state is still updated: the session is alive, and skipped texts are injected after a pause.
        state::advance(session.state(), event, caller);
        session.save(caller, event);
        return Response::default();
    }
    if !state::try_begin_event(session.state(), event, caller) {
        return Response::default();
    }
    record::repair_bindings(caller, event);
    let mut input = load(caller, event, session.state(), None);
    let mut failed_rules = Vec::new();
    let response = decide(caller, event, &input, &mut |rule, verdict| {
        if let Verdict::ConditionFailed(reason) = verdict {
            failed_rules.push(format!("rule {}: {reason}", rule.id()));
        }
    });
    input.warnings.extend(failed_rules);
    record(caller, event, session, &input, &response);
    response
}

/// Returns whether injection is paused (`tanmi pause`) or disabled by the environment.
pub fn is_silenced(caller: &Caller<'_>) -> bool {
    caller.disabled || pause::paused_until(caller.home, caller.now).is_some()
}

/// The session of an event. Its state stays locked until it is saved, so that concurrent hooks do not overwrite each
/// other's records.
enum Session {
    Locked(LockedState),
    /// The state cannot be saved: the event has no session, or the file cannot be written.
    Unsaved(SessionState),
}

impl Session {
    fn open(caller: &Caller<'_>, event: &Event) -> Session {
        // An event without a session has no state. Without `install`, the first event creates the home store: a tool
        // call finds its session there, and a throttle lasts. Nothing is created while injection is disabled.
        if event.session.is_empty() || (caller.disabled && !caller.home.is_dir()) {
            return Session::Unsaved(SessionState::default());
        }
        let states = States::new(caller.home);
        states.lock(&event.session).map_or_else(
            |error| {
                // The decision is still made; only the record of it is lost.
                log_line(caller, &format!("{}: {error}", event.kind.as_str()));
                Session::Unsaved(states.read(&event.session))
            },
            Session::Locked,
        )
    }

    fn state(&mut self) -> &mut SessionState {
        match self {
            Session::Locked(locked) => &mut locked.state,
            Session::Unsaved(state) => state,
        }
    }

    /// Returns whether the home store keeps the state.
    fn is_kept(&self) -> bool {
        matches!(self, Session::Locked(_))
    }

    /// Saves the state and releases the lock.
    fn save(self, caller: &Caller<'_>, event: &Event) {
        if let Session::Locked(locked) = self
            && let Err(error) = locked.save()
        {
            log_line(caller, &format!("{}: {error}", event.kind.as_str()));
        }
    }
}

/// Runs the rules and renders their texts. `observe` is called with every rule and its verdict.
fn decide(
    caller: &Caller<'_>,
    event: &Event,
    input: &DecisionInput,
    observe: &mut dyn FnMut(Rule<'_>, Verdict),
) -> Response {
    let decision = tanmi_engine::decide(event, &input.facts, BUILTIN_RULES, &input.rules, observe);
    let text = match caller.uses_tags {
        true => render(&decision, event.platform),
        false => decision.text_of(ActionKind::ALL).unwrap_or_default(),
    };
    Response { decision, text }
}

/// The decision for an event, with the reasons.
pub struct PipelineTrace {
    pub response: Response,
    /// Every rule, in the order in which the rules ran.
    pub rules: Vec<RuleTrace>,
    pub facts: Facts,
    pub files: Vec<RuleFile>,
    /// Whether injection is paused or disabled.
    pub silenced: bool,
}

/// Returns what would be injected at an event, and why. Writes nothing. `edited` replaces the rules file of the
/// project and counts as trusted.
pub fn explain(caller: &Caller<'_>, event: &Event, edited: Option<&Path>) -> PipelineTrace {
    let mut state = States::new(caller.home).read(&event.session);
    let input = load(caller, event, &mut state, edited);
    let mut rules = Vec::new();
    let response = decide(caller, event, &input, &mut |rule, verdict| rules.push(rule.trace(verdict)));
    PipelineTrace { response, rules, facts: input.facts, files: input.files, silenced: is_silenced(caller) }
}
