//! The spine of a hook: load what the rules need, decide, record. Nothing here may fail its agent.
//!
//! Only the bound workspace, the node in focus and the session's own files are read; nothing is locked but the
//! session's state, nothing is scanned.

use std::path::Path;

use tanmi_base::{Lang, Millis};
use tanmi_engine::{BUILTIN, Children, Facts, NodeFacts, SessionFacts, WorkspaceFacts, context_hash, decide};
use tanmi_event::{ActionKind, Decision, Event, EventKind, StartSource};
use tanmi_session::{Binding, Bindings, ClientProcess, SessionState, States};
use tanmi_workspace::model::{Node, NodeStatus, RefStatus, Workspace, WorkspaceId, WorkspaceStatus};
use tanmi_workspace::store::{Depth, FileStore, Peek};

/// What the hook lane knows besides the event.
pub struct HookEnv<'a> {
    pub home: &'a Path,
    pub now: Millis,
    /// `None` follows the text at hand.
    pub language: Option<Lang>,
    pub locale: Lang,
    pub client: Option<ClientProcess>,
}

/// Prompts after which Cursor is told everything again.
const REFRESH_EVERY: u32 = 10;

pub fn handle(env: &HookEnv<'_>, event: &Event) -> Decision {
    let bindings = Bindings::new(env.home);
    let states = States::new(env.home);
    // Where nothing was ever saved, no folder is made either.
    if !env.home.is_dir() {
        return respond(env, event, &bindings, &states, &mut states.read(&event.session));
    }
    let decided = states.update(&event.session, |state| respond(env, event, &bindings, &states, state));
    if let Some(client) = &env.client {
        let _ = states.register(client, &event.session);
    }
    // A disk that takes no writes costs the memory of what was said, not the answer.
    decided.unwrap_or_else(|_| respond(env, event, &bindings, &states, &mut states.read(&event.session)))
}

/// Under the lock of the session's state, so that two hooks at once do not forget each other's words.
fn respond(
    env: &HookEnv<'_>,
    event: &Event,
    bindings: &Bindings,
    states: &States,
    state: &mut SessionState,
) -> Decision {
    let mut binding = bindings.find(&event.session).ok().flatten();
    if binding.is_none() && matches!(event.payload.start, Some(StartSource::Clear | StartSource::Fork)) {
        binding = continued(env, event, bindings, states, state);
    }
    let depth = if event.kind == EventKind::SessionStart { Depth::Progress } else { Depth::Focus };
    let bound = binding.as_ref().and_then(|binding| peek(binding, depth));
    advance(state, event, env);
    let mut facts = facts_of(env, event, state, bound.as_ref());
    let mut decision = decide(event, &facts, BUILTIN);
    // Looked up only when it is going to be said.
    if decision.actions.iter().any(|action| action.kind == ActionKind::BindingHint) {
        facts.has_workspaces = has_workspaces(env, event);
        decision = decide(event, &facts, BUILTIN);
    }
    record(state, &decision, &facts);
    decision
}

/// After a clear or a fork the same client goes on under another id: so do binding, focus and throttle.
fn continued(
    env: &HookEnv<'_>,
    event: &Event,
    bindings: &Bindings,
    states: &States,
    state: &mut SessionState,
) -> Option<Binding> {
    let before =
        states.of_client(env.client.as_ref()?).into_iter().find(|known| known.session != event.session)?;
    let binding = bindings.find(&before.session).ok().flatten()?;
    bindings.bind(&event.session, &binding).ok()?;
    state.said = before.said;
    Some(binding)
}

/// The bound workspace as it is now; archived, gone or unreadable counts as unbound.
fn peek(binding: &Binding, depth: Depth) -> Option<Peek> {
    let id = WorkspaceId::parse(&binding.workspace_id).ok()?;
    let peek = FileStore::new(&binding.project).peek(&id, binding.focused_node_id.as_deref(), depth)?;
    (peek.workspace.status == WorkspaceStatus::Active).then_some(peek)
}

/// What the event itself does to the state, before anything is decided.
fn advance(state: &mut SessionState, event: &Event, env: &HookEnv<'_>) {
    state.platform = event.platform.id.to_owned();
    state.alive_at = env.now;
    if env.client.is_some() {
        state.client.clone_from(&env.client);
    }
    match event.kind {
        EventKind::SessionStart => {
            state.prompts = 0;
            state.compacted = false;
            state.hooks.clear();
        }
        EventKind::PromptSubmit => state.prompts = state.prompts.saturating_add(1),
        _ => {}
    }
    state.hooks.insert(event.kind.as_str().to_owned(), env.now);
}

fn record(state: &mut SessionState, decision: &Decision, facts: &Facts) {
    for throttle in &decision.throttle {
        state.said.insert(throttle.key.clone(), facts.now);
    }
    if decision.actions.iter().any(|action| action.kind == ActionKind::InjectContext) {
        let told = facts.workspace.as_ref().map(|workspace| context_hash(workspace, facts.node.as_ref()));
        state.seen = told;
        state.compacted = false;
    }
}

fn facts_of(env: &HookEnv<'_>, event: &Event, state: &SessionState, bound: Option<&Peek>) -> Facts {
    let text = match bound {
        Some(peek) => format!("{} {}", peek.workspace.name, peek.workspace.goal),
        None => event.payload.prompt.clone().unwrap_or_default(),
    };
    let hooks_seen = state.hooks.keys().filter_map(|word| EventKind::from_word(word)).collect();
    Facts {
        now: env.now,
        lang: env.language.or_else(|| Lang::of_text(&text)).unwrap_or(env.locale),
        session: SessionFacts {
            id: event.session.clone(),
            seen: state.seen.clone(),
            prompts: state.prompts,
            compacted: state.compacted,
            unbound: state.unbound,
            hooks_seen,
            said: state.said.clone(),
        },
        workspace: bound.map(workspace_facts),
        node: bound.and_then(|peek| peek.node.as_ref().map(|node| node_facts(node, peek))),
        has_workspaces: true,
        refresh_every: REFRESH_EVERY,
    }
}

fn workspace_facts(peek: &Peek) -> WorkspaceFacts {
    let workspace: &Workspace = &peek.workspace;
    let docs = workspace.docs.iter().filter(|doc| doc.status == RefStatus::Active);
    WorkspaceFacts {
        id: workspace.id.to_string(),
        name: workspace.name.clone(),
        goal: workspace.goal.clone(),
        rules: workspace.rules.clone(),
        rules_hash: workspace.rules_hash(),
        docs: docs.map(|doc| format!("{}: {}", doc.path, doc.description)).collect(),
        progress: peek.progress.map(|progress| (progress.done, progress.total)),
    }
}

fn node_facts(node: &Node, peek: &Peek) -> NodeFacts {
    let problem = node.diary.problem.as_ref();
    NodeFacts {
        id: node.id.to_string(),
        title: node.title.clone(),
        status: node.status.to_string(),
        requirement: node.requirement.clone(),
        note: node.note.clone(),
        problem: problem.map(|problem| problem.description.clone()).unwrap_or_default(),
        next_step: problem.and_then(|problem| problem.next_step.clone()).unwrap_or_default(),
        is_top: node.parent_id.as_ref().is_some_and(|parent| parent.is_root()),
        since: node.status_changed_at.unwrap_or(node.created_at),
        last_log_at: node.diary.last_log_at,
        children: peek.children.as_ref().map(|tally| Children {
            total: tally.total(),
            done: tally.done(),
            pending: tally.of_status(NodeStatus::Pending),
        }),
    }
}

/// Whether there is an active workspace in the project of the event.
fn has_workspaces(env: &HookEnv<'_>, event: &Event) -> bool {
    let Some(cwd) = event.payload.cwd.as_deref() else { return false };
    let project = tanmi_base::paths::project_root(Path::new(cwd), env.home);
    let heads = FileStore::new(project).heads().unwrap_or_default();
    heads.iter().any(|(_, head)| head.as_ref().is_some_and(|head| head.status == WorkspaceStatus::Active))
}
