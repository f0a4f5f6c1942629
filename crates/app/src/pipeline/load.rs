//! The first step of the pipeline: reads everything that a decision depends on. Writes nothing.

use std::path::{Path, PathBuf};

use tanmi_engine::{CustomRule, Facts, OverviewFacts, known_context, needs_workspaces};
use tanmi_event::{Event, EventKind, StartSource};
use tanmi_session::{Binding, SessionState, States};
use tanmi_workspace::model::{Node, WorkspaceId, WorkspaceStatus};
use tanmi_workspace::store::{ContextSnapshot, PlanScope, SnapshotDepth};

use super::facts::KnownContext;
use super::rules::{self, RuleFile};
use super::{Caller, declared, facts, memory, state};
use crate::config::Config;
use crate::stores::Stores;
use crate::trust::{ProjectTrust, Trust, folder_id};

/// The input of a decision besides the event.
pub struct DecisionInput {
    pub facts: Facts,
    pub config: Config,
    pub rules: Vec<CustomRule>,
    pub files: Vec<RuleFile>,
    /// The project of the event and the user's consent to it.
    pub trust: Option<ProjectTrust>,
    /// The binding that the session takes over from the previous session of its client, and has to save.
    pub taken_over: Option<Binding>,
    /// Problems in the files that were read, for the log.
    pub warnings: Vec<String>,
}

/// Loads the input of a decision. Advances `state` to the event, but does not save it. `edited` replaces the rules file
/// of the project and counts as trusted.
pub fn load(
    caller: &Caller<'_>,
    event: &Event,
    state: &mut SessionState,
    edited: Option<&Path>,
) -> DecisionInput {
    let (binding, previous) = find_binding(caller, event);
    let former = previous.as_ref().map(|previous| previous.session.clone());
    let is_taken_over = previous.is_some();
    if let Some(previous) = previous {
        (state.last_injected, state.last_reminder) = (previous.last_injected, previous.last_reminder);
        state.has_unconfirmed_plan = previous.has_unconfirmed_plan;
    }
    state::advance(state, event, caller);
    // The project of the binding, even before its workspace is read: its settings decide how much of that to read.
    let project = binding.as_ref().map(|binding| checkout_of(caller, event, binding));
    let (mut trust, mut config) = settings(caller, project.or_else(|| facts::project_of(caller, event)));
    let node = event.payload.node_id.as_deref();
    let depth = snapshot_depth(event, state, &config);
    let snapshot = binding.as_ref().and_then(|binding| load_snapshot(caller.stores, depth, node, binding));
    let is_lost = binding.is_some() && snapshot.is_none();
    let archived = snapshot.as_ref().filter(|snapshot| !is_active(snapshot));
    let archived_lang = archived.and_then(|it| it.workspace.lang());
    let archived = archived.map(|it| (it.workspace.id.to_string(), it.workspace.name.clone()));
    let bound = binding.as_ref().zip(snapshot.filter(is_active));
    if binding.is_some() && bound.is_none() {
        (trust, config) = settings(caller, facts::project_of(caller, event));
    }
    let mut files = if config.custom_rules {
        let workspace = bound.as_ref().map(|(_, snapshot)| &snapshot.workspace.id);
        rules::load(caller.user, trust.as_ref(), workspace)
    } else {
        Vec::new()
    };
    if let Some(path) = edited {
        rules::replace_project_file(&mut files, path);
    }
    let bound = bound.as_ref().map(|(binding, snapshot)| (*binding, snapshot));
    // A start without a binding is about the focus of the latest workspace.
    let is_unbound_start = bound.is_none() && event.kind == EventKind::SessionStart;
    let available = is_unbound_start.then(|| facts::available(caller, event, trust.as_ref()));
    let focus = match bound {
        Some((_, snapshot)) => snapshot.node.as_ref(),
        None => available.as_ref().and_then(|(_, focus)| focus.as_ref()),
    };
    let memory = memory::load(caller, event, state, &config, trust.as_ref(), &memory::topic(focus));
    let mut warnings = rules::warnings(&files);
    warnings.extend(config.warnings.iter().map(ToString::to_string));
    let declared = declared::load(caller, event, state, &config, trust.as_ref(), &mut warnings);
    let mut facts = facts::build(caller, event, state, &config, bound, memory, declared);
    if let (Some((binding, snapshot)), Some(workspace)) = (bound, &mut facts.workspace) {
        // Opens the index, so only for a session whose plan the user may not have seen.
        let has_problem = facts.node.as_ref().is_some_and(|node| !node.problem.is_empty());
        let is_open = event.kind == EventKind::PromptSubmit
            && state.has_unconfirmed_plan
            && config.reminders
            && !has_problem;
        let snapshots = || caller.stores.projects.in_folder(&binding.project);
        if is_open {
            let project = snapshots();
            workspace.unstarted_tasks =
                project.snapshots().unstarted_tasks(&snapshot.workspace.id, PlanScope::Branches);
        }
        if event.kind == EventKind::PromptSubmit && state.told_overview && !state.compacted {
            workspace.overview = OverviewFacts::default();
        }
        if !workspace.overview.in_progress.is_empty() {
            let (states, project) = (States::new(caller.home), snapshots());
            let overview = &mut workspace.overview;
            facts::complete_overview(overview, project.as_ref(), &states, &event.session, caller.now);
        }
        let tells_focus = matches!(
            event.kind,
            EventKind::SessionStart | EventKind::PromptSubmit | EventKind::SubagentStart
        );
        // What the session held under its former id is its own.
        let is_own = |focus: &Node| former.is_some() && focus.started_by == former;
        let focus = snapshot.node.as_ref().filter(|focus| tells_focus && !is_own(focus));
        if let (Some(focus), Some(node)) = (focus, &mut facts.node) {
            let states = States::new(caller.home);
            node.held_by = facts::other_holder(&states, focus, &event.session, caller.now, snapshots);
        }
    }
    let rules = rules::flatten(&files);
    if let Some((binding, snapshot)) = bound.filter(|_| facts::needs_relations(event, &rules)) {
        facts::add_relations(caller, &mut facts, binding, snapshot);
    }
    if let Some(binding) = binding.as_ref().filter(|_| is_lost) {
        warnings.push(format!("workspace {}: missing or unreadable", binding.workspace_id));
        let is_told = matches!(event.kind, EventKind::SessionStart | EventKind::PromptSubmit);
        let look = || facts::deleted_workspace(caller, binding);
        facts.session.deleted_workspace = (is_told && is_of_present_folder(binding)).then(look).flatten();
        let is_deleted = facts.session.deleted_workspace.is_some();
        facts.session.lost_workspace = (!is_deleted).then(|| binding.workspace_id.clone());
    }
    facts.session.archived_workspace = archived;
    if let Some(lang) = archived_lang.filter(|_| caller.reader.is_none()) {
        facts.lang = lang;
    }
    facts.has_refused_files = trust.as_ref().is_some_and(ProjectTrust::has_refused);
    facts.has_project_data = facts::needs_project_data(event)
        && trust.as_ref().is_some_and(|trust| facts::has_project_data(caller, trust.project()));
    // Looking for workspaces reads more files, so it is done only if a rule needs it.
    if needs_workspaces(event, &facts) {
        let available = available.unwrap_or_else(|| facts::available(caller, event, trust.as_ref()));
        facts.available = available.0;
    }
    let taken_over = binding.filter(|_| is_taken_over);
    DecisionInput { facts, rules, config, files, trust, taken_over, warnings }
}

/// Returns whether a rule can respond to an event. At a tool call only custom rules can, and a client reports
/// very many of them, so this looks for a rules file first.
pub fn can_respond(caller: &Caller<'_>, event: &Event) -> bool {
    if event.kind != EventKind::PreToolUse {
        return true;
    }
    let binding = find_binding(caller, event).0;
    let workspace = binding.as_ref().and_then(|binding| WorkspaceId::parse(&binding.workspace_id).ok());
    let project = binding
        .map(|binding| checkout_of(caller, event, &binding))
        .or_else(|| facts::project_of(caller, event));
    let paths = rules::paths(caller.user, project.as_deref(), workspace.as_ref());
    paths.iter().any(|(_, path)| path.exists())
}

/// Returns the folder with the rules and settings of the project of a binding.
fn checkout_of(caller: &Caller<'_>, event: &Event, binding: &Binding) -> PathBuf {
    let cwd = event.payload.cwd.as_deref().map(Path::new);
    caller.stores.projects.checkout(&binding.project, cwd)
}

/// Returns the user's consent to a project, and the settings that apply in it.
fn settings(caller: &Caller<'_>, project: Option<PathBuf>) -> (Option<ProjectTrust>, Config) {
    let trust = project.map(|project| Trust::new(caller.home).of_project(&project));
    let config = Config::load(caller.home, trust.as_ref());
    (trust, config)
}

/// Returns the binding of the session. After a clear or a fork the client continues under a new session id; then
/// this is the binding of the previous session, returned together with the state of that session.
fn find_binding(caller: &Caller<'_>, event: &Event) -> (Option<Binding>, Option<SessionState>) {
    if let (Some(workspace), Some(project)) = (&event.payload.workspace_id, &event.payload.project) {
        let binding = Binding {
            workspace_id: workspace.clone(),
            focused_node_id: event.payload.node_id.clone(),
            bound_at: caller.now,
            project: project.clone(),
            project_id: None,
            other: Default::default(),
        };
        return (Some(binding), None);
    }
    let bindings = caller.stores.bindings.as_ref();
    if let Some(binding) = bindings.find(&event.session).ok().flatten() {
        return (Some(binding), None);
    }
    let is_continuation = matches!(event.payload.start, Some(StartSource::Clear | StartSource::Fork));
    let previous = caller.client.as_ref().filter(|_| is_continuation).and_then(|client| {
        let sessions = States::new(caller.home).sessions_of_client(client);
        sessions.into_iter().find(|known| known.session != event.session)
    });
    let binding = previous.as_ref().and_then(|previous| bindings.find(&previous.session).ok().flatten());
    let previous = previous.filter(|_| binding.is_some());
    (binding, previous)
}

/// Returns the current context of a bound session.
pub fn context_now(stores: &Stores, binding: &Binding) -> Option<KnownContext> {
    let snapshot = load_snapshot(stores, SnapshotDepth::Focus, None, binding).filter(is_active)?;
    Some(KnownContext::of_snapshot(&snapshot))
}

fn is_active(snapshot: &ContextSnapshot) -> bool {
    snapshot.workspace.status == WorkspaceStatus::Active
}

/// Returns how much of the workspace to read: more if the whole context may be injected.
fn snapshot_depth(event: &Event, state: &SessionState, config: &Config) -> SnapshotDepth {
    let (seen, every) = (state.seen_context.as_deref(), config.context_refresh);
    let is_whole = || known_context(event, seen, state.compacted, state.prompts, every).is_none();
    match event.kind {
        EventKind::SessionStart | EventKind::StatusCheck => SnapshotDepth::Surroundings,
        EventKind::PromptSubmit if is_whole() => SnapshotDepth::Surroundings,
        _ => SnapshotDepth::Focus,
    }
}

/// Returns whether a binding was made for the folder that is at its path now. It is consent to a workspace of that folder,
/// not of another one at the same path.
fn is_of_present_folder(binding: &Binding) -> bool {
    binding.project_id.is_none() || binding.project_id == folder_id(&binding.project)
}

/// Returns the current snapshot of the bound workspace; `None` if it is missing or cannot be read, or if the
/// project was replaced.
fn load_snapshot(
    stores: &Stores,
    depth: SnapshotDepth,
    node: Option<&str>,
    binding: &Binding,
) -> Option<ContextSnapshot> {
    if !is_of_present_folder(binding) {
        return None;
    }
    let id = WorkspaceId::parse(&binding.workspace_id).ok()?;
    let node = node.or(binding.focused_node_id.as_deref());
    stores.projects.in_folder(&binding.project).snapshots().context_snapshot(&id, node, depth)
}
