//! Use cases for sessions: bind, unbind, status, focus, and the session that a call belongs to.

use std::path::PathBuf;

use serde::Serialize;
use serde_json::{Value, json};
use tanmi_base::{Lang, Millis, id};
use tanmi_session::{Binding, Bindings, States, client_of_server, is_running};
use tanmi_workspace::model::{NodeId, NodeStatus, Progress, WorkspaceId, WorkspaceStatus};
use tanmi_workspace::ops::DeletedSubtree;
use tanmi_workspace::store::{LocalMaintenance, Workspaces};

use crate::error::{Error, Result};
use crate::pipeline;
use crate::{App, WorkspaceRef};

/// Bindings and states of sessions that were inactive for longer are deleted.
const STALE_AFTER: Millis = 30 * 86_400_000;
/// How long a session counts as live after its last event, if its client process does not identify it.
const LIVE_FOR: Millis = 30 * 60_000;

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BindResult {
    pub success: bool,
    pub message: String,
    pub binding: BindingView,
    /// How the agent can read the context at once.
    pub hint: &'static str,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BindingView {
    pub session_id: String,
    pub workspace_id: WorkspaceId,
    pub focused_node_id: Option<NodeId>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnbindResult {
    pub success: bool,
    pub message: String,
    pub session_id: String,
}

/// The binding of a session, for calls without workspace or node ids.
#[derive(Clone, Debug)]
pub struct SessionBinding {
    pub session: String,
    pub workspace_id: String,
    pub focused_node_id: Option<String>,
    pub project: PathBuf,
}

impl App {
    /// Returns the session of a call: the one named by the caller, by the protocol, by the client process that ran
    /// hooks, or by the environment, in this order. Otherwise a server uses an id for the connection. If several
    /// sessions match, returns an error and does not guess.
    pub fn session_of_call(&self, explicit: Option<&str>, meta: Option<&str>) -> Result<String> {
        if let Some(session) = explicit.or(meta) {
            tanmi_session::check_session(session)?;
            return Ok(session.to_owned());
        }
        if self.env.remote {
            return Err(Error::NoSession);
        }
        if let Some(session) = self.session_of_client()? {
            return Ok(session);
        }
        if let Some(session) = &self.env.session {
            return Ok(session.clone());
        }
        if self.env.long_running {
            return Ok(self.connection.get_or_init(|| id::fresh("mcp", self.now())).clone());
        }
        Err(Error::NoSession)
    }

    /// Returns the given session or the one of the environment. A command in a terminal of the user has no session.
    pub fn explicit_or_env_session(&self, explicit: Option<&str>) -> Option<String> {
        explicit.map(str::to_owned).or_else(|| self.env.session.clone())
    }

    fn session_of_client(&self) -> Result<Option<String>> {
        let Some(client) = client_of_server() else { return Ok(None) };
        let mut found = States::new(self.home()).sessions_of_client(&client);
        let Some(latest) = found.first() else { return Ok(None) };
        // A process has one session, except in Cursor, which runs several windows in one process.
        if latest.platform != tanmi_event::CURSOR.id {
            return Ok(Some(found.swap_remove(0).session));
        }
        let now = self.now();
        let mut live: Vec<String> = found
            .into_iter()
            .filter(|state| now - state.alive_at < LIVE_FOR)
            .map(|state| state.session)
            .collect();
        match live.len() {
            0 | 1 => Ok(live.pop()),
            _ => Err(Error::AmbiguousSession { candidates: live }),
        }
    }

    /// Returns the binding of a session, if its workspace exists and is active. Without a focus of its own, the session has
    /// the focus of the workspace.
    pub fn binding_of(&self, session: &str) -> Result<Option<SessionBinding>> {
        let Some(binding) = Bindings::new(self.home()).find(session)? else { return Ok(None) };
        let Ok(id) = WorkspaceId::parse(&binding.workspace_id) else { return Ok(None) };
        let headers = self.store(&binding.project).headers().unwrap_or_default();
        let head = headers.into_iter().find(|(known, _)| *known == id).and_then(|(_, head)| head);
        let active = head.filter(|head| head.status == WorkspaceStatus::Active);
        Ok(active.map(|head| SessionBinding {
            session: session.to_owned(),
            workspace_id: binding.workspace_id,
            project: binding.project.clone(),
            focused_node_id: binding.focused_node_id.or(head.focused_node_id.map(|id| id.to_string())),
        }))
    }

    /// Binds a session. Without a workspace id, uses the only active workspace of this project, even if the session
    /// was bound to another one before.
    pub fn session_bind(
        &self,
        session: &str,
        workspace: Option<&str>,
        node: Option<&str>,
    ) -> Result<BindResult> {
        let node = node.map(NodeId::parse).transpose()?;
        let ws = match workspace {
            Some(_) => self.locate(workspace)?,
            None => self.find_only_active()?,
        };
        let (name, language_sample) = self.view(&ws, |tx| {
            let workspace = tx.workspace()?;
            if workspace.status == WorkspaceStatus::Archived {
                return Err(tanmi_workspace::Error::WorkspaceArchived { id: workspace.id });
            }
            if let Some(node) = &node
                && tx.brief(node)?.is_none()
            {
                return Err(tanmi_workspace::Error::node_not_found("nodeId", node));
            }
            Ok((workspace.name.clone(), format!("{} {}", workspace.name, workspace.goal)))
        })?;
        let lang = self.lang(Some(&language_sample));
        let bindings = Bindings::new(self.home());
        let binding = Binding {
            workspace_id: ws.id.to_string(),
            focused_node_id: node.as_ref().map(NodeId::to_string),
            bound_at: self.now(),
            project: ws.store.project().to_owned(),
            other: Default::default(),
        };
        bindings.bind(session, &binding)?;
        // The context of the new workspace has not been injected yet.
        States::new(self.home()).update(session, |state| {
            (state.seen_context, state.was_unbound_by_user, state.alive_at) = (None, false, self.now());
            state.hooks.clear();
        })?;
        self.prune_bindings(&bindings)?;
        let message = bind_message(lang, &name);
        let binding =
            BindingView { session_id: session.to_owned(), workspace_id: ws.id, focused_node_id: node };
        let hint = lang.pick(
            "目标、规则和聚焦节点从下一条提示词起自动注入；context_get 可立即查看",
            "Goal, rules and the focused node are injected from the next prompt on; context_get returns them now",
        );
        Ok(BindResult { success: true, message, binding, hint })
    }

    /// Returns whether a hook of this session has run.
    pub fn is_known_session(&self, session: &str) -> bool {
        !States::new(self.home()).read(session).platform.is_empty()
    }

    fn prune_bindings(&self, bindings: &Bindings) -> Result<()> {
        let states = States::new(self.home());
        let oldest = self.now() - STALE_AFTER;
        bindings
            .prune(|session, binding| binding.bound_at < oldest && states.read(session).alive_at < oldest)?;
        states.prune(oldest);
        self.prune_ledger();
        Ok(())
    }

    pub fn session_unbind(&self, session: &str) -> Result<UnbindResult> {
        let removed = Bindings::new(self.home()).unbind(session)?;
        if removed.is_some() {
            States::new(self.home())
                .update(session, |state| (state.seen_context, state.was_unbound_by_user) = (None, true))?;
        }
        let message = unbind_message(self.lang(None), removed.is_some()).to_owned();
        Ok(UnbindResult { success: true, message, session_id: session.to_owned() })
    }

    /// Returns the status of a session in one of the two shapes of the specification, bound or unbound. Raises a
    /// status event and adds its reminders.
    pub fn session_status(&self, session: &str) -> Result<Value> {
        let mut status = self.session_view(session)?;
        let reminders = self.on_status_check(session);
        if !reminders.is_empty() {
            status["reminders"] = json!(reminders);
        }
        Ok(status)
    }

    /// Returns the same status as [`App::session_status`] without raising an event.
    pub fn session_view(&self, session: &str) -> Result<Value> {
        crate::import::sessions(self.home(), self.project(), self.now());
        let Some(bound) = self.binding_of(session)? else { return self.unbound_status(session) };
        let binding = Bindings::new(self.home()).find(session)?;
        let project = binding.map_or_else(|| self.project().to_owned(), |binding| binding.project);
        let ws = WorkspaceRef { store: self.store(&project), id: WorkspaceId::parse(&bound.workspace_id)? };
        self.view(&ws, |tx| {
            let workspace = tx.workspace()?;
            let progress = tx.total()?.progress();
            let focus = bound.focused_node_id.as_deref().and_then(|id| NodeId::parse(id).ok());
            let node = match &focus {
                Some(id) => tx.brief(id)?.map(|node| json!({"id": node.id, "title": node.title, "status": node.status})),
                None => None,
            };
            Ok(json!({
                "bound": true,
                "sessionId": session,
                "workspace": {"id": workspace.id, "name": workspace.name, "goal": workspace.goal, "progress": progress},
                "focusedNode": node,
            }))
        })
    }

    fn unbound_status(&self, session: &str) -> Result<Value> {
        let filter = crate::workspace::WorkspaceFilter {
            all: true,
            status: Some(WorkspaceStatus::Active),
            limit: 20,
            scan: None,
            projects: Vec::new(),
        };
        let lines = self.workspace_list(&filter)?;
        let line = |line: &crate::workspace::WorkspaceLine| {
            let progress: Progress = line.progress;
            json!({
                "id": line.workspace_id, "name": line.name, "status": line.status, "progress": progress,
                "project": line.project,
            })
        };
        let available: Vec<Value> = lines.workspaces.iter().map(line).collect();
        Ok(json!({"bound": false, "sessionId": session, "availableWorkspaces": available}))
    }

    /// Returns whether a session is live: its client process runs and this is its latest session. For Cursor, or if the
    /// process is unknown: the session was active within [`LIVE_FOR`].
    pub(crate) fn is_live(&self, session: &str) -> bool {
        let state = States::new(self.home()).read(session);
        let was_active = self.now() - state.alive_at < LIVE_FOR;
        match &state.client {
            // Cursor runs several windows in one process, so a running process does not show that this session is
            // live.
            Some(client) if state.platform != tanmi_event::CURSOR.id => {
                let latest = States::new(self.home()).sessions_of_client(client).into_iter().next();
                is_running(client) && latest.is_none_or(|latest| latest.session == session)
            }
            _ => was_active,
        }
    }

    /// Records a transition by a session. Errors are ignored: the transition itself does not depend on it.
    pub(crate) fn record_activity(&self, session: &str) {
        let now = self.now();
        let _ = States::new(self.home()).update(session, |state| {
            state.alive_at = now;
            state.transitions = state.transitions.saturating_add(1);
        });
    }

    /// Runs `work` for a session. Changes that the session itself makes to its context count as known, so that they
    /// are not injected again.
    pub fn track_own_changes<T>(&self, session: Option<&str>, work: impl FnOnce() -> T) -> T {
        let context = |session: &str| {
            let binding = Bindings::new(self.home()).find(session).ok()??;
            pipeline::context_now(&binding)
        };
        let before = session.and_then(|session| {
            let (hash, focus) = context(session)?;
            let seen = States::new(self.home()).read(session).seen_context;
            (seen == Some(hash.to_string())).then_some((session, focus))
        });
        let outcome = work();
        if let Some((session, focus)) = before
            && let Some((hash, node)) = context(session)
        {
            let _ = States::new(self.home()).update(session, |state| {
                // The focus may have moved to a node that was changed by others since the session last saw it.
                let known = node.as_ref().filter(|_| node != focus).and_then(|node| state.nodes.get(node));
                let is_changed = known.is_some_and(|known| *known != hash.node);
                // After a bind no context has been injected yet, so the session knows none.
                if state.seen_context.is_some() && !is_changed {
                    pipeline::mark_seen(state, &hash, node.as_deref());
                }
            });
        }
        outcome
    }

    /// Moves the focus of a session after a transition: to the node if it is open, and from a finished node to its
    /// parent. Returns whether the focus moved.
    pub fn update_session_focus(
        &self,
        bound: &SessionBinding,
        node: &str,
        to: NodeStatus,
        parent: Option<&NodeId>,
    ) -> Result<bool> {
        let focus = match to.is_done() {
            false => Some(node),
            true if bound.focused_node_id.as_deref() == Some(node) => parent.map(NodeId::as_str),
            true => return Ok(false),
        };
        Ok(Bindings::new(self.home()).focus(&bound.session, &bound.workspace_id, focus)?)
    }

    /// Moves the focus of a session from a deleted node to the parent of the deleted subtree.
    pub fn refocus_after_delete(&self, bound: &SessionBinding, deleted: &DeletedSubtree) -> Result<()> {
        if bound
            .focused_node_id
            .as_deref()
            .is_some_and(|focus| deleted.ids.iter().any(|id| id.as_str() == focus))
        {
            let parent = deleted.parent_id.as_ref().map(NodeId::as_str);
            Bindings::new(self.home()).focus(&bound.session, &bound.workspace_id, parent)?;
        }
        Ok(())
    }

    /// Sets or clears the focus of a bound session.
    pub fn set_session_focus(&self, bound: &SessionBinding, node: Option<&str>) -> Result<()> {
        let node = node.map(NodeId::parse).transpose()?;
        let ws = self.locate(Some(&bound.workspace_id))?;
        if let Some(node) = &node
            && self.view(&ws, |tx| tx.brief(node))?.is_none()
        {
            return Err(tanmi_workspace::Error::node_not_found("nodeId", node).into());
        }
        Bindings::new(self.home()).focus(
            &bound.session,
            &bound.workspace_id,
            node.as_ref().map(NodeId::as_str),
        )?;
        Ok(())
    }
}

fn bind_message(lang: Lang, name: &str) -> String {
    lang.pick(format!("已绑定到工作区「{name}」"), format!("Bound to workspace “{name}”"))
}

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
    use super::*;

    /// Invariant: the Chinese messages are the sentences of the specification.
    #[test]
    fn bind_and_unbind_messages_in_chinese_equal_the_specification() {
        assert_eq!(bind_message(Lang::Zh, "重构认证模块"), "已绑定到工作区「重构认证模块」");
        assert_eq!(unbind_message(Lang::Zh, true), "已解除工作区绑定，Hook 将不再注入上下文");
    }
}
