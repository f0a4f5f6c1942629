//! Builds the facts of a decision from session state, settings and workspace files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tanmi_base::{Millis, clock, paths, text};
use tanmi_engine::{
    AvailableFacts, AvailableWorkspace, ChildCounts, ContextHash, CustomRule, DamagedNodeFacts, DayFacts,
    DeclaredFacts, Facts, HolderFacts, InProgressFacts, LostClaimFacts, MemoryFacts, NextFacts, NodeFacts,
    NodeProblemFacts, OverviewFacts, ParentFacts, ProblemFacts, RefusedWriteFacts, SessionFacts, SkipReason,
    SurroundingsFacts, TimeFacts, WaitsFor, WorkspaceFacts,
};
use tanmi_event::{BuiltinRuleId, Event, EventKind, Source, StartSource};
use tanmi_session::{Binding, LostClaim, RefusedWrite, SessionState, States};
use tanmi_workspace::context::{ChildConclusion, ReferenceBlock};
use tanmi_workspace::error::OpenDependency;
use tanmi_workspace::model::{
    LogEntry, Node, NodeStatus, PERSON, Problem, RefStatus, Workspace, WorkspaceId, WorkspaceStatus,
};
use tanmi_workspace::store::{
    ContextSnapshot, NodeBrief, Overview, SnapshotDepth, StatusCounts, Surroundings, WaitingNode,
};

use super::Caller;
use crate::activity::last_written;
use crate::config::Config;
use crate::sessions::is_live;
use crate::stores::Project;
use crate::trust::ProjectTrust;
use crate::{language, presence};

pub fn build(
    caller: &Caller<'_>,
    event: &Event,
    state: &SessionState,
    config: &Config,
    bound: Option<(&Binding, &ContextSnapshot)>,
    memory: Result<MemoryFacts, SkipReason>,
    declared: Result<DeclaredFacts, SkipReason>,
) -> Facts {
    let lang = caller.reader.unwrap_or_else(|| {
        let workspace = bound.map(|(_, snapshot)| &snapshot.workspace);
        let person = language::for_person(None, config.language, caller.locale);
        language::for_agent(workspace, event.payload.prompt.as_deref(), memory.as_ref().ok(), person)
    });
    let node = bound.and_then(|(_, snapshot)| snapshot.node.as_ref().map(|node| node_facts(node, snapshot)));
    Facts {
        now: caller.now,
        lang,
        session: SessionFacts {
            // The id is shown to the agent; one line, so that it cannot change the structure of a text.
            id: text::one_line(&event.session),
            lost_workspace: None,
            archived_workspace: None,
            deleted_workspace: None,
            told_latest: state.told_latest,
            lost_claims: state.lost_claims.iter().map(lost_claim_facts).collect(),
            refused_writes: state.refused_writes.iter().map(refused_write_facts).collect(),
            seen_context: state.seen_context.clone(),
            seen_focus: seen_focus(state),
            told_rules: state.told_rules.clone(),
            told_problem: state.told_problem.clone(),
            prompts: state.prompts,
            has_unconfirmed_plan: state.has_unconfirmed_plan,
            total_prompts: state.total_prompts,
            started_at: state.started_at,
            prompts_since_summary: state.prompts_since_summary,
            completed_since_summary: state.completed_since_summary,
            summary_requested_at: state.summary_requested_at,
            compacted: state.compacted,
            was_unbound_by_user: state.was_unbound_by_user,
            has_start_hook: state.handled_events.contains_key(EventKind::SessionStart.as_str()),
            hooks_seen: state.hooks.keys().filter_map(|word| EventKind::from_word(word)).collect(),
            last_injected: state.last_injected.clone(),
            last_reminder: state.last_reminder.as_ref().map(|last| (last.kind.clone(), last.at)),
        },
        workspace: bound.map(|(_, snapshot)| workspace_facts(snapshot, caller.now)),
        node,
        available: AvailableFacts::default(),
        refresh_every: config.context_refresh,
        disabled_rules: disabled_rules(config),
        memory,
        declared,
        has_refused_files: false,
        memory_enabled: config.memory,
        has_project_data: false,
        // `rules explain` shows the text of a hook, which suggests tool calls.
        suggests_commands: caller.suggests_commands && event.source == Source::Api,
    }
}

/// Returns the node that had the focus when the context was last injected.
fn seen_focus(state: &SessionState) -> Option<String> {
    let seen = ContextHash::parse(state.seen_context.as_deref()?)?;
    state.nodes.iter().find(|(_, hash)| **hash == seen.node).map(|(node, _)| node.clone())
}

/// Returns the id and name of a bound workspace that is in the trash.
pub fn deleted_workspace(caller: &Caller<'_>, binding: &Binding) -> Option<(String, String)> {
    let id = WorkspaceId::parse(&binding.workspace_id).ok()?;
    let name = caller.stores.projects.in_folder(&binding.project).snapshots().deleted_name(&id)?;
    Some((binding.workspace_id.clone(), name))
}

fn lost_claim_facts(claim: &LostClaim) -> LostClaimFacts {
    let LostClaim { node, title, by, is_taken, is_deleted, is_restored } = claim.clone();
    LostClaimFacts { id: node, title, by, is_taken, is_deleted, is_restored }
}

fn refused_write_facts(write: &RefusedWrite) -> RefusedWriteFacts {
    RefusedWriteFacts { text: write.text.clone(), reason: write.reason.clone() }
}

/// The context of a bound session at one moment.
pub struct KnownContext {
    pub hash: ContextHash,
    pub rules: Vec<String>,
    pub node_id: Option<String>,
    /// Hash of the open problem of the node.
    pub problem: Option<String>,
}

impl KnownContext {
    pub fn of(workspace: &WorkspaceFacts, node: Option<&NodeFacts>) -> KnownContext {
        KnownContext {
            hash: ContextHash::of(workspace, node),
            rules: workspace.rules.clone(),
            node_id: node.map(|node| node.id.clone()),
            problem: node.and_then(NodeFacts::problem_hash),
        }
    }

    pub fn of_snapshot(snapshot: &ContextSnapshot) -> KnownContext {
        let node = snapshot.node.as_ref().map(|node| node_facts(node, snapshot));
        // The hash contains no times.
        KnownContext::of(&workspace_facts(snapshot, 0), node.as_ref())
    }
}

/// Returns the built-in rules that the settings disable.
pub fn disabled_rules(config: &Config) -> Vec<BuiltinRuleId> {
    let mut ids = Vec::new();
    if !config.reminders {
        ids.extend([BuiltinRuleId::SmartReminder, BuiltinRuleId::PlanConfirm, BuiltinRuleId::TaskComplete]);
    }
    if !config.binding_hints {
        ids.extend([BuiltinRuleId::BindingHint, BuiltinRuleId::BindingLost]);
    }
    if !config.ask_for_summary {
        ids.push(BuiltinRuleId::SessionSave);
    }
    ids
}

fn doc_line(path: &str, description: &str) -> String {
    match description.is_empty() {
        true => path.to_owned(),
        false => format!("{path}: {description}"),
    }
}

fn workspace_facts(snapshot: &ContextSnapshot, now: Millis) -> WorkspaceFacts {
    let workspace: &Workspace = &snapshot.workspace;
    let docs = workspace.docs.iter().filter(|doc| doc.status == RefStatus::Active);
    WorkspaceFacts {
        id: workspace.id.to_string(),
        name: workspace.name.clone(),
        goal: workspace.goal.clone(),
        rules: workspace.rules.clone(),
        rules_hash: workspace.rules_hash(),
        docs: docs.map(|doc| doc_line(&doc.path, &doc.description)).collect(),
        progress: snapshot.progress.map(|progress| (progress.completed, progress.total)),
        problem: workspace_problem(workspace),
        overview: snapshot.overview.as_ref().map(|it| overview_facts(it, now)).unwrap_or_default(),
        unstarted_tasks: None,
        damaged_focus: snapshot.damaged_focus.as_ref().map(|damaged| DamagedNodeFacts {
            id: damaged.id.to_string(),
            place: format!("{}:{}", damaged.path.display(), damaged.error.line),
            reason: damaged.error.reason.clone(),
        }),
    }
}

/// Returns the open problem of the workspace itself and its next step.
pub fn workspace_problem(workspace: &Workspace) -> Option<ProblemFacts> {
    open_problem(workspace.activity.problem.as_ref())
}

fn open_problem(problem: Option<&Problem>) -> Option<ProblemFacts> {
    let problem = problem.filter(|problem| !problem.description.is_empty())?;
    Some(ProblemFacts {
        description: problem.description.clone(),
        next_step: problem.next_step.clone().unwrap_or_default(),
    })
}

/// Returns the facts of an overview, as texts.
pub fn overview_facts(overview: &Overview, now: Millis) -> OverviewFacts {
    let day = |at: Millis| clock::local_stamp(at).chars().take("YYYY-MM-DD".len()).collect::<String>();
    let (today, yesterday) = (day(now), day(now - clock::DAY));
    let time = |stamp: &str| TimeFacts {
        day: match stamp {
            stamp if stamp.starts_with(&today) => DayFacts::Today,
            stamp if stamp.starts_with(&yesterday) => DayFacts::Yesterday,
            _ => DayFacts::Other,
        },
        stamp: stamp.to_owned(),
    };
    let in_progress = |node: &Node| InProgressFacts {
        id: node.id.to_string(),
        title: node.title.clone(),
        status: node.status.to_string(),
        last_log: last_written(node).map(|entry| (time(&entry.timestamp), entry.event.clone())),
        holder: node.started_by.clone(),
        holder_name: None,
        has_holder_ended: false,
        since: time(&clock::local_stamp(node.status_changed_at.unwrap_or(node.created_at))),
    };
    let problem = |node: &Node| NodeProblemFacts {
        id: node.id.to_string(),
        title: node.title.clone(),
        problem: open_problem(node.activity.problem.as_ref()).unwrap_or_default(),
    };
    let next = |brief: &NodeBrief| NextFacts {
        id: brief.id.to_string(),
        title: brief.title.clone(),
        waits_for: None,
    };
    let waiting = |waiting: &WaitingNode| NextFacts {
        waits_for: Some(waits_for(&waiting.waits_for)),
        ..next(&waiting.node)
    };
    let problems = overview.with_problem.iter().take(OVERVIEW_NODES);
    OverviewFacts {
        problem: None,
        in_progress: overview.in_progress.iter().map(in_progress).collect(),
        problems: problems.map(problem).collect(),
        has_more: overview.with_problem.len() > OVERVIEW_NODES,
        next: overview.next.iter().map(next).chain(overview.waiting.iter().map(waiting)).collect(),
    }
}

fn waits_for(on: &OpenDependency) -> WaitsFor {
    let title = if on.title.is_empty() { on.node_id.to_string() } else { on.title.clone() };
    let status = match on.status {
        None => Some(String::from("missing")),
        Some(status) => status.is_done().then(|| status.to_string()),
    };
    WaitsFor { title, status }
}

/// The maximum number of nodes in progress, and of nodes with problems, that a session is told.
const OVERVIEW_NODES: usize = 3;

/// Completes an overview with what is known of the holders, and selects the nodes in progress that the session is told:
/// first those that it can continue.
pub fn complete_overview(
    overview: &mut OverviewFacts,
    project: &dyn Project,
    states: &States,
    session: &str,
    now: Millis,
) {
    // Only the database of a team knows the sessions of its server.
    if project.maintenance().is_some() || project.team().is_some() {
        add_holders(overview, project, states, session, now);
    }
    let is_held_by_other = |node: &InProgressFacts| {
        node.holder.as_ref().is_some_and(|holder| holder != session) && !node.has_holder_ended
    };
    overview.in_progress.sort_by_key(is_held_by_other);
    overview.has_more |= overview.in_progress.len() > OVERVIEW_NODES;
    overview.in_progress.truncate(OVERVIEW_NODES);
}

/// Adds whether the sessions of the holders ended, and in a joined project the person and the machine. Reads the state of
/// each of those sessions.
fn add_holders(
    overview: &mut OverviewFacts,
    project: &dyn Project,
    states: &States,
    session: &str,
    now: Millis,
) {
    let mut presence = None;
    for node in &mut overview.in_progress {
        let Some(holder) = node.holder.as_deref().filter(|holder| *holder != session) else { continue };
        if holder == PERSON {
            continue;
        }
        if let Some(name) = person_of(holder) {
            node.holder_name = Some(name.to_owned());
            continue;
        }
        let is_here = states.exists(holder);
        if project.team().is_some() {
            let presence = presence.get_or_insert_with(|| presence::of_project(project));
            node.holder_name = presence.name(holder);
            node.has_holder_ended = !is_here && !presence.is_live(holder, now);
        }
        if is_here || project.team().is_none() {
            node.has_holder_ended = !is_live(states, &states.read(holder), now);
        }
    }
}

/// Returns the name of a person of a team who holds a node without a session.
fn person_of(holder: &str) -> Option<&str> {
    holder.strip_prefix('@')
}

/// Returns who else holds a node: the user, or another session that is alive.
pub fn other_holder(
    states: &States,
    node: &Node,
    session: &str,
    now: Millis,
    project: impl FnOnce() -> Arc<dyn Project>,
) -> Option<HolderFacts> {
    let is_other = |holder: &&str| *holder != session && !node.status.is_done();
    let holder = node.started_by.as_deref().filter(is_other)?;
    if holder == PERSON {
        return Some(HolderFacts::User);
    }
    let project = project();
    if let Some(name) = person_of(holder) {
        return match project.person() == Some(name) {
            true => Some(HolderFacts::User),
            false => Some(HolderFacts::Named(name.to_owned())),
        };
    }
    let presence = presence::of_project(project.as_ref());
    if let Some(name) = presence.name(holder) {
        return presence.is_live(holder, now).then_some(HolderFacts::Named(name));
    }
    let is_here = states.exists(holder) && is_live(states, &states.read(holder), now);
    is_here.then_some(HolderFacts::Session)
}

fn log_line(entry: &LogEntry) -> String {
    format!("{} {}", entry.timestamp, entry.event)
}

/// The number of log entries of the focused node in its context.
const LOG_ENTRIES: usize = 3;

fn surroundings_facts(surroundings: &Surroundings, node: &Node) -> SurroundingsFacts {
    let log = &node.activity.log;
    let conclusion =
        |child: &ChildConclusion| format!("{} ({}): {}", child.title, child.status, child.conclusion);
    SurroundingsFacts {
        ancestors: surroundings.ancestors.clone(),
        log: log[log.len().saturating_sub(LOG_ENTRIES)..].iter().map(log_line).collect(),
        conclusions: surroundings.conclusions.iter().map(conclusion).collect(),
        dependencies: surroundings.dependencies.iter().map(conclusion).collect(),
        references: surroundings.references.iter().map(reference_line).collect(),
    }
}

fn reference_line(reference: &ReferenceBlock) -> String {
    let mut line = reference.target_id.clone();
    if let (Some(title), Some(status)) = (&reference.title, reference.status) {
        line.push_str(&format!(" {title} ({status})"));
    }
    for text in [Some(&reference.description), reference.conclusion.as_ref()].into_iter().flatten() {
        if !text.is_empty() {
            line.push_str(&format!(": {text}"));
        }
    }
    line
}

fn node_facts(node: &Node, snapshot: &ContextSnapshot) -> NodeFacts {
    // The problem of a node that is done is over.
    let problem = node.activity.problem.as_ref().filter(|_| !node.status.is_done());
    NodeFacts {
        id: node.id.to_string(),
        title: node.title.clone(),
        kind: node.kind,
        role: node.role,
        status: node.status,
        requirement: node.requirement.clone(),
        conclusion: node.conclusion.clone(),
        note: node.note.clone(),
        problem: problem.map(|problem| problem.description.clone()).unwrap_or_default(),
        next_step: problem.and_then(|problem| problem.next_step.clone()).unwrap_or_default(),
        is_top: node.parent_id.as_ref().is_some_and(|parent| parent.is_root()),
        held_by: None,
        since: node.status_changed_at.unwrap_or(node.created_at),
        last_log_at: node.activity.last_log_at,
        children: snapshot.children.as_ref().map(child_counts),
        parent: None,
        surroundings: snapshot
            .surroundings
            .as_ref()
            .map(|surroundings| surroundings_facts(surroundings, node))
            .unwrap_or_default(),
    }
}

fn child_counts(status_counts: &StatusCounts) -> ChildCounts {
    ChildCounts {
        total: status_counts.total(),
        done: status_counts.done(),
        pending: status_counts.of_status(NodeStatus::Pending),
        failed: status_counts.of_status(NodeStatus::Failed),
    }
}

/// Returns whether a rule for this event depends on the place of the node in the tree, which is read separately: a
/// built-in rule, or a custom rule whose condition names one of these fields.
pub fn needs_relations(event: &Event, rules: &[CustomRule]) -> bool {
    let fields = ["progress", "children", "parent"];
    let names_field = |rule: &CustomRule| {
        rule.condition
            .as_deref()
            .is_some_and(|condition| fields.iter().any(|field| condition.contains(field)))
    };
    event.kind == EventKind::TaskComplete
        || rules.iter().any(|rule| names_field(rule) && rule.can_run_at(event))
}

/// Adds the place of the node in the tree to the facts.
pub fn add_relations(caller: &Caller<'_>, facts: &mut Facts, binding: &Binding, snapshot: &ContextSnapshot) {
    let project = caller.stores.projects.in_folder(&binding.project);
    let relations = project.snapshots().relations(&snapshot.workspace.id, snapshot.node.as_ref());
    if let Some(workspace) = &mut facts.workspace {
        workspace.progress = relations.progress.map(|progress| (progress.completed, progress.total));
    }
    if let Some(node) = &mut facts.node {
        node.children = relations.children.as_ref().map(child_counts);
        node.parent = relations.parent.map(|(parent, children)| ParentFacts {
            id: parent.id.to_string(),
            title: parent.title,
            status: parent.status,
            children: children.as_ref().map(child_counts),
        });
    }
}

/// Returns the project of the working directory of an event, unless it belongs to another user. A look from the host
/// into a container shows what its user is told.
pub fn project_of(caller: &Caller<'_>, event: &Event) -> Option<PathBuf> {
    let cwd = Path::new(event.payload.cwd.as_deref()?);
    match caller.mount {
        Some(_) => Some(paths::project_root(cwd, caller.home)),
        None => paths::own_project_root(cwd, caller.home),
    }
}

/// Returns whether a rule for this event depends on whether the project has data: the texts around a
/// compaction, and the request for a summary.
pub fn needs_project_data(event: &Event) -> bool {
    matches!(event.kind, EventKind::Stop | EventKind::PreCompact)
        || event.payload.start == Some(StartSource::Compact)
}

/// Returns whether a project has a workspace or a memory.
pub fn has_project_data(caller: &Caller<'_>, project: &Path) -> bool {
    let (store, project) = (paths::project_store(project), caller.stores.projects.in_folder(project));
    let has_store = match store == caller.home {
        // In the home folder every session has files there.
        true => !project.workspaces().headers().unwrap_or_default().is_empty(),
        false => store.is_dir(),
    };
    has_store || project.memory().exists()
}

/// The number of workspaces that an unbound session start names.
const NAMED_WORKSPACES: usize = 3;

/// Returns the active workspaces of a project, the latest change first, and the focus of the first one that
/// has any. At a prompt, the first one has its overview.
pub fn available(
    caller: &Caller<'_>,
    event: &Event,
    trust: Option<&ProjectTrust>,
) -> (AvailableFacts, Option<Node>) {
    let Some(trust) = trust else { return Default::default() };
    let project = caller.stores.projects.in_folder(trust.project());
    let headers = project.workspaces().headers().unwrap_or_default();
    let damaged = headers.iter().filter(|(_, workspace)| workspace.is_none()).count();
    let (mut active, archived): (Vec<Workspace>, Vec<Workspace>) = headers
        .into_iter()
        .filter_map(|(_, workspace)| workspace)
        .partition(|workspace| workspace.status == WorkspaceStatus::Active);
    let snapshots = project.snapshots();
    active.sort_by_cached_key(|workspace| {
        let changed_at = snapshots.changed_at(&workspace.id).unwrap_or_default();
        std::cmp::Reverse(changed_at.max(workspace.updated_at))
    });
    let mut focus = None;
    let mut named = |(n, workspace): (usize, &Workspace)| {
        let has_overview = event.kind == EventKind::PromptSubmit && n == 0;
        let snapshots = project.snapshots();
        let mut snapshot = snapshots.context_snapshot(&workspace.id, None, SnapshotDepth::Progress)?;
        let WorkspaceFacts { id, name, progress, .. } = workspace_facts(&snapshot, caller.now);
        focus = focus.take().or_else(|| snapshot.node.take());
        let overview = has_overview.then(|| snapshots.overview(&workspace.id)).flatten();
        let mut overview = overview.map(|it| overview_facts(&it, caller.now)).unwrap_or_default();
        overview.problem = workspace_problem(workspace).filter(|_| has_overview);
        let states = States::new(caller.home);
        complete_overview(&mut overview, project.as_ref(), &states, &event.session, caller.now);
        Some(AvailableWorkspace { id, name, created_at: workspace.created_at, progress, overview })
    };
    // Only files can come with a clone.
    let is_refused = project.maintenance().is_some() && !trust.is_trusted();
    let count = if is_refused { 0 } else { NAMED_WORKSPACES };
    let first = active.iter().take(count).enumerate().filter_map(&mut named).collect();
    (AvailableFacts { total: active.len(), archived: archived.len(), damaged, first }, focus)
}
