//! Use cases for sessions: bind, unbind, status, focus and list.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};
use tanmi_base::{Lang, Millis, id, text};
use tanmi_platform::CLIENTS;
use tanmi_session::{Binding, LostClaim, SessionState, States, current_process, is_running};
use tanmi_workspace::command::LiveSessions;
use tanmi_workspace::limits::{LINE_BYTES, fit_title};
use tanmi_workspace::model::{NodeId, NodeStatus, Operator, PERSON, WorkspaceStatus};
use tanmi_workspace::ops::DeletedSubtree;

use crate::calls::{CallChange, SessionCall};
use crate::core::{Core, WorkspaceRef};
use crate::error::Result;
use crate::pipeline::KnownContext;
use crate::resolver::{LIVE_FOR, Resolver, SessionBinding};
use crate::stores::Project;
use crate::workspaces::{WorkspaceFilter, WorkspaceLine, WorkspaceService};
use crate::{pipeline, presence};

mod bind;

pub use bind::{BindResult, BindingView};

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnbindResult {
    pub success: bool,
    pub message: String,
    pub session_id: String,
}

/// A session that has a state or a binding.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionLine {
    pub session_id: String,
    /// Empty if no hook of the session has run.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub platform: String,
    /// The name of the client, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<&'static str>,
    /// When the session started or was first seen; absent if no hook of the session has run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Millis>,
    pub alive_at: Millis,
    /// Whether the client of the session is running, or the session was active recently.
    pub live: bool,
    pub prompts: u32,
    /// The person and the machine of a session of a team, if they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub person: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub bound: Option<BoundWorkspace>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BoundWorkspace {
    pub workspace_id: String,
    pub focused_node_id: Option<String>,
    pub project: String,
    pub bound_at: Millis,
}

#[derive(Clone, Debug, Serialize)]
pub struct Sessions {
    pub sessions: Vec<SessionLine>,
    pub total: usize,
}

#[derive(Clone, Debug, Default)]
pub struct SessionFilter {
    /// Only sessions bound to this workspace.
    pub workspace: Option<String>,
    pub live: Option<bool>,
    pub bound: Option<bool>,
    pub limit: usize,
}

/// The use cases for sessions.
#[derive(Clone)]
pub struct SessionService {
    core: Arc<Core>,
    resolver: Resolver,
}

impl SessionService {
    pub(crate) fn new(core: Arc<Core>) -> SessionService {
        SessionService { resolver: Resolver::new(core.clone()), core }
    }

    pub(crate) fn resolver(&self) -> &Resolver {
        &self.resolver
    }

    fn check_node_exists(&self, ws: &WorkspaceRef, node: &NodeId) -> Result<()> {
        match ws.store().brief(&ws.id, node, self.core.now())? {
            Some(_) => Ok(()),
            None => Err(tanmi_workspace::Error::node_not_found("nodeId", node).into()),
        }
    }

    /// Imports the bindings of this project from the file of an older layout, once. The file can come with a
    /// clone, so the project must be trusted.
    pub fn import_old_bindings(&self) {
        let (home, project, now) = (self.core.home(), self.core.folder(), self.core.now());
        if self.core.project.check().is_err() || !self.core.trust().has_project(project) {
            return;
        }
        let left_out = crate::import::sessions(home, self.core.stores.bindings.as_ref(), project, now);
        if left_out > 0 {
            let project = project.display();
            let line =
                format!("{project}: the oldest {left_out} bindings in sessions.json were not imported");
            pipeline::write_log(home, now, &line);
        }
    }

    /// Returns whether a hook of this session has run.
    pub fn has_hooks(&self, session: &str) -> bool {
        !self.core.states().read(session).platform.is_empty()
    }

    pub fn unbind(&self, session: &str) -> Result<UnbindResult> {
        // Before the session loses the workspace that decides it.
        let lang = self.core.lang();
        let removed = self.core.stores.bindings.unbind(session)?;
        if removed.is_some() {
            self.core.states().update(session, |state| {
                (state.seen_context, state.was_unbound_by_user) = (None, true);
                state.has_unconfirmed_plan = false;
            })?;
        }
        let message = unbind_message(lang, removed.is_some()).to_owned();
        Ok(UnbindResult { success: true, message, session_id: session.to_owned() })
    }

    /// Sets or clears the focus of a bound session.
    pub fn set_focus(&self, bound: &SessionBinding, node: Option<&NodeId>) -> Result<()> {
        if let Some(node) = node {
            self.check_node_exists(&bound.workspace, node)?;
        }
        self.save_focus(bound, node).map(|_| ())
    }

    /// Returns whether the session is still bound to the workspace.
    fn save_focus(&self, bound: &SessionBinding, node: Option<&NodeId>) -> Result<bool> {
        let (workspace, node) = (bound.workspace.id.as_str(), node.map(NodeId::as_str));
        Ok(self.core.stores.bindings.focus(&bound.session, workspace, node)?)
    }

    /// Moves the focus of a session after a transition: to the node if it is open, and from a finished node to its
    /// parent. Returns whether the focus moved.
    pub(crate) fn update_focus(
        &self,
        bound: &SessionBinding,
        node: &NodeId,
        to: NodeStatus,
        parent: Option<&NodeId>,
    ) -> Result<bool> {
        match to.is_done() {
            false => self.save_focus(bound, Some(node)),
            true if bound.focused_node_id.as_ref() == Some(node) => self.save_focus(bound, parent),
            true => Ok(false),
        }
    }

    /// Moves the focus of every session from a deleted node to the parent of the deleted subtree.
    pub(crate) fn refocus_after_delete(&self, ws: &WorkspaceRef, deleted: &DeletedSubtree) -> Result<()> {
        let bindings = self.core.stores.bindings.as_ref();
        let has_lost_focus = |binding: &Binding| {
            let focus = binding.focused_node_id.as_deref();
            binding.workspace_id == ws.id.as_str()
                && deleted.ids.iter().any(|id| Some(id.as_str()) == focus)
                && self.core.stores.projects.in_folder(&binding.project).id() == ws.project.id()
        };
        let parent = deleted.parent_id.as_ref().map(NodeId::as_str);
        for (session, _) in bindings.all()?.into_iter().filter(|(_, binding)| has_lost_focus(binding)) {
            bindings.focus(&session, ws.id.as_str(), parent)?;
        }
        Ok(())
    }

    /// Returns the status of a session in one of the two shapes of the specification, bound or unbound. Does not
    /// record activity of the session.
    pub fn view(&self, session: &str) -> Result<Value> {
        let Some(bound) = self.resolver.binding(session)? else { return self.unbound_view(session) };
        let (ws, now) = (&bound.workspace, self.core.now());
        let (workspace, progress) = ws.store().summary(&ws.id, now)?;
        let node = match &bound.focused_node_id {
            Some(id) => ws.store().brief(&ws.id, id, now)?,
            None => None,
        };
        let node =
            node.map(|node| json!({"id": node.id, "title": fit_title(&node.title), "status": node.status}));
        let (name, goal) = (fit_title(&workspace.name), text::cut(&workspace.goal, LINE_BYTES));
        let mut view = json!({
            "bound": true,
            "sessionId": session,
            "workspace": {"id": workspace.id, "name": name, "goal": goal, "progress": progress},
            "focusedNode": node,
        });
        let team = presence::elsewhere(ws.project.as_ref(), Some(&ws.id), &self.core.states(), now);
        if !team.is_empty() {
            view["team"] = json!(&team[..team.len().min(AVAILABLE)]);
        }
        Ok(view)
    }

    fn unbound_view(&self, session: &str) -> Result<Value> {
        let service = WorkspaceService::new(self.core.clone(), self.clone());
        let list = |all| {
            let status = Some(WorkspaceStatus::Active);
            service.list(&WorkspaceFilter { all, status, limit: AVAILABLE, ..WorkspaceFilter::default() })
        };
        // Those of this project first.
        let mut lines = list(false)?.workspaces;
        let is_listed = |line: &WorkspaceLine, lines: &[WorkspaceLine]| {
            lines
                .iter()
                .any(|known| (&known.workspace_id, &known.project) == (&line.workspace_id, &line.project))
        };
        for line in list(true)?.workspaces {
            if !is_listed(&line, &lines) {
                lines.push(line);
            }
        }
        lines.truncate(AVAILABLE);
        let line = |line: &WorkspaceLine| {
            json!({
                "id": line.workspace_id, "name": line.name, "status": line.status, "progress": line.progress,
                "project": line.project,
            })
        };
        let available: Vec<Value> = lines.iter().map(line).collect();
        Ok(json!({"bound": false, "sessionId": session, "availableWorkspaces": available}))
    }

    /// Notes in the state of a session that another caller ended its claim. Its next prompt tells it. In a joined project
    /// the thread that follows the server does this.
    pub(crate) fn note_lost_claim(
        &self,
        ws: &WorkspaceRef,
        caller: Option<&str>,
        holder: &str,
        lost: LostClaim,
    ) {
        let states = self.core.states();
        if holder == PERSON || Some(holder) == caller || ws.project.team().is_some() || !states.exists(holder)
        {
            return;
        }
        let by = match caller {
            Some(session) => {
                let client = self.client(session).map(|client| format!("{client} ")).unwrap_or_default();
                format!("{client}({})", id::short(session))
            }
            None if self.core.env.operator == Operator::Human => PERSON.to_owned(),
            None => String::new(),
        };
        // Without the note, the session learns it when it ends its work on the node.
        let _ = states.update(holder, |state| state.add_lost_claim(LostClaim { by, ..lost }));
    }

    /// Records that a session is active. Errors are ignored: the call itself does not depend on it.
    pub(crate) fn record_activity(&self, session: &str) {
        let now = self.core.now();
        let is_connection = self.core.connection.get().is_some_and(|own| own == session);
        let server = if is_connection { current_process() } else { None };
        let _ = self.core.states().update(session, |state| {
            // A call shows that the session goes on.
            (state.alive_at, state.has_ended) = (now, false);
            state.server = server.or(state.server.take());
        });
    }

    /// Runs `work` for a session. Changes that the session itself makes to its context count as known, so that they
    /// are not injected again. Calls that the services note meanwhile are written to the states of their sessions.
    pub fn track_own_changes<T>(&self, session: Option<&str>, work: impl FnOnce() -> T) -> T {
        let states = self.core.states();
        let context = |session: &str| {
            let binding = self.core.stores.bindings.find(session).ok()??;
            pipeline::context_now(&self.core.stores, &binding)
        };
        let before = session.and_then(|session| {
            let known = context(session)?;
            let seen = states.read(session).seen_context;
            (seen == Some(known.hash.to_string())).then_some((session, known))
        });
        let outcome = work();
        let calls = self.core.take_noted_calls();
        let mut after = before.and_then(|(session, before)| Some((session, before, context(session)?)));
        let mut sessions: BTreeSet<&str> = calls.iter().map(|call| call.session.as_str()).collect();
        sessions.extend(after.as_ref().map(|(session, ..)| *session));
        // Errors are ignored: the call itself does not depend on the states.
        for session in sessions {
            let _ = states.update(session, |state| {
                let own: Vec<&SessionCall> = calls.iter().filter(|call| call.session == session).collect();
                own.iter().for_each(|call| call.record(state, self.core.now()));
                if let Some((_, before, now)) = after.take_if(|(own, ..)| *own == session) {
                    mark_own_change(state, &own, &before, now);
                }
            });
        }
        for call in calls.iter().filter(|call| call.is_work()) {
            let _ = states.register_in_project(&call.project, &call.session);
        }
        outcome
    }

    /// Returns the holder of a node of a project as in a list of sessions, without its binding.
    pub(crate) fn holder_line(&self, session: &str, project: &dyn Project) -> SessionLine {
        let states = self.core.states();
        let state = SessionState { session: session.to_owned(), ..states.read(session) };
        let line = SessionLine::of(self.is_live(session), state, None);
        let presence = presence::of_project(project);
        let Some(present) = presence.find(session) else { return line };
        SessionLine {
            live: if states.exists(session) {
                line.live
            } else {
                present.is_live && presence.is_live(session, self.core.now())
            },
            person: Some(present.person.clone()),
            machine: Some(present.machine.clone()).filter(|machine| !machine.is_empty()),
            ..line
        }
    }

    /// Returns sessions with a state or a binding, latest activity first.
    pub fn list(&self, filter: &SessionFilter) -> Result<Sessions> {
        let wanted =
            filter.workspace.as_deref().map(|named| self.resolver.workspace_id(named)).transpose()?;
        let mut bindings: BTreeMap<String, Binding> = self.core.stores.bindings.all()?.into_iter().collect();
        let states = self.core.states().all();
        let mut known: Vec<(SessionState, Option<Binding>)> = states
            .into_iter()
            .map(|state| {
                let binding = bindings.remove(&state.session);
                (state, binding)
            })
            .collect();
        // Sessions that were bound by hand and have no state.
        known.extend(bindings.into_iter().map(|(session, binding)| {
            (SessionState { session, alive_at: binding.bound_at, ..SessionState::default() }, Some(binding))
        }));
        // Filtered before `line`, because `is_live` has to look for the client process.
        known.retain(|(_, binding)| {
            let workspace = binding.as_ref().map(|binding| &binding.workspace_id);
            wanted.as_ref().is_none_or(|wanted| workspace.is_some_and(|id| id == wanted.as_str()))
                && filter.bound.is_none_or(|wanted| wanted == binding.is_some())
        });
        let line = |(state, binding): (SessionState, Option<Binding>)| {
            SessionLine::of(self.is_live(&state.session), state, binding)
        };
        let is_wanted = |line: &SessionLine| filter.live.is_none_or(|wanted| wanted == line.live);
        let mut sessions: Vec<SessionLine> = known.into_iter().map(line).filter(is_wanted).collect();
        sessions.sort_by(|a, b| b.alive_at.cmp(&a.alive_at).then_with(|| a.session_id.cmp(&b.session_id)));
        let total = sessions.len();
        sessions.truncate(filter.limit);
        Ok(Sessions { sessions, total })
    }
}

impl SessionLine {
    fn of(live: bool, state: SessionState, binding: Option<Binding>) -> SessionLine {
        SessionLine {
            live,
            alive_at: state.alive_at.max(binding.as_ref().map_or(0, |binding| binding.bound_at)),
            client: client_name(&state.platform),
            started_at: Some(state.started_at).filter(|at| *at > 0),
            platform: state.platform,
            prompts: state.total_prompts,
            person: None,
            machine: None,
            session_id: state.session,
            bound: binding.map(|binding| BoundWorkspace {
                workspace_id: binding.workspace_id,
                focused_node_id: binding.focused_node_id,
                project: binding.project.display().to_string(),
                bound_at: binding.bound_at,
            }),
        }
    }
}

/// Liveness of holders, for commands that take a node over.
impl LiveSessions for SessionService {
    fn is_live(&self, session: &str) -> bool {
        let states = self.core.states();
        is_live(&states, &states.read(session), self.core.now())
    }

    fn client(&self, session: &str) -> Option<&'static str> {
        client_name(&self.core.states().read(session).platform)
    }

    fn caller(&self) -> Option<&str> {
        self.core.session.as_deref()
    }
}

/// Returns the name of the client of a platform, for people.
pub(crate) fn client_name(platform: &str) -> Option<&'static str> {
    CLIENTS.find_platform(platform).and_then(|platform| CLIENTS.find(platform)).map(|client| client.name)
}

/// Returns whether a session is live: it did not report its end, its client process runs, and this is its latest
/// session. If the process is unknown or runs several conversations: the session was active within [`LIVE_FOR`]. A
/// session that is the connection of a server is live while that server runs.
pub(crate) fn is_live(states: &States, state: &SessionState, now: Millis) -> bool {
    if state.has_ended {
        return false;
    }
    let platform = CLIENTS.find_platform(&state.platform);
    let has_shared_process = platform.is_some_and(|platform| platform.has_shared_process);
    match &state.client {
        Some(client) if !has_shared_process => {
            let latest = states.latest_session_of_client(client);
            is_running(client) && latest.is_none_or(|latest| latest == state.session)
        }
        _ => match &state.server {
            Some(server) => is_running(server),
            None => now - state.alive_at < LIVE_FOR,
        },
    }
}

/// Marks the context as known after calls of the session, which had the context `before`.
fn mark_own_change(
    state: &mut SessionState,
    calls: &[&SessionCall],
    before: &KnownContext,
    now: KnownContext,
) {
    let is_own_problem = now.node_id == before.node_id && now.problem != before.problem;
    let is_told = calls
        .iter()
        .any(|call| matches!(&call.change, CallChange::Told { node } if now.node_id.as_ref() == Some(node)));
    if is_own_problem || is_told {
        state.told_problem.clone_from(&now.problem);
    }
    // The focus may have moved to a node that was changed by others since the session last saw it.
    let node = now.node_id.as_ref().filter(|_| now.node_id != before.node_id);
    let known = node.and_then(|node| state.nodes.get(node));
    let is_changed = known.is_some_and(|known| *known != now.hash.node);
    // After a bind no context has been injected yet, so the session knows none.
    if state.seen_context.is_some() && !is_changed {
        let told = state.told_rules.take().filter(|_| now.rules == before.rules);
        pipeline::mark_seen(state, now);
        // Rules that were not told yet stay unknown.
        state.told_rules = told.or(state.told_rules.take());
    }
}

/// The number of workspaces in the status of an unbound session.
const AVAILABLE: usize = 20;

fn unbind_message(lang: Lang, was_bound: bool) -> &'static str {
    match was_bound {
        true => lang.pick(
            "已解除工作区绑定，Hook 将不再注入上下文",
            "Unbound from the workspace; hooks no longer inject context",
        ),
        false => lang.pick("本会话没有绑定工作区", "This session was not bound to a workspace"),
    }
}

#[cfg(test)]
mod tests {
    use super::bind::bind_message;
    use super::*;

    /// Invariant: the Chinese messages are the sentences of the specification.
    #[test]
    fn bind_and_unbind_messages_in_chinese_equal_the_specification() {
        assert_eq!(bind_message(Lang::Zh, "重构认证模块"), "已绑定到工作区「重构认证模块」");
        assert_eq!(unbind_message(Lang::Zh, true), "已解除工作区绑定，Hook 将不再注入上下文");
    }
}
