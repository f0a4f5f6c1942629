//! The bind of a session: what it records, and what its result tells.

use serde::Serialize;
use tanmi_base::Lang;
use tanmi_engine::{OverviewFacts, PLAN_COMPLETED};
use tanmi_session::Binding;
use tanmi_workspace::limits::fit_title;
use tanmi_workspace::model::{NodeId, Operator, Workspace, WorkspaceId, WorkspaceStatus};
use tanmi_workspace::store::PlanScope;

use super::SessionService;
use crate::core::WorkspaceRef;
use crate::error::Result;
use crate::{pipeline, trust};

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BindResult {
    pub success: bool,
    pub message: String,
    pub binding: BindingView,
    /// What is in progress, open problems and what comes next, if the bind names no node but the root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overview: Option<String>,
    /// How the agent can read the context at once.
    pub hint: &'static str,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BindingView {
    pub session_id: String,
    pub workspace_id: WorkspaceId,
    /// The focus of the session, or else of its workspace.
    pub focused_node_id: Option<NodeId>,
}

impl SessionService {
    /// Binds a session. Without a workspace id, uses the only active workspace of this project, even if the session
    /// was bound to another one before.
    pub fn bind(&self, session: &str, workspace: Option<&str>, node: Option<&str>) -> Result<BindResult> {
        let ws = match workspace {
            Some(id) => self.resolver.workspace(id)?,
            None => self.resolver.only_active_workspace()?,
        };
        let node = node.map(|node| self.resolver.node_id(&ws, "nodeId", node)).transpose()?;
        // Reads the files that changed, so that the overview below is up to date.
        let (workspace, _) = ws.store().summary(&ws.id, self.core.now())?;
        if workspace.status == WorkspaceStatus::Archived {
            let Workspace { id, name, .. } = workspace;
            return Err(tanmi_workspace::Error::WorkspaceArchived { id, name }.into());
        }
        if let Some(node) = &node {
            self.check_node_exists(&ws, node)?;
        }
        let lang = self.core.lang_in(&workspace);
        let binding = Binding {
            workspace_id: ws.id.to_string(),
            focused_node_id: node.as_ref().map(NodeId::to_string),
            bound_at: self.core.now(),
            project: ws.project.folder().to_owned(),
            project_id: trust::folder_id(ws.project.folder()),
            other: Default::default(),
        };
        let previous = self.core.stores.bindings.bind(session, &binding)?;
        let is_overview_due = node.as_ref().is_none_or(NodeId::is_root);
        let overview = is_overview_due.then(|| self.overview(&ws, &workspace, session)).flatten();
        // The user may not have seen the plan that an earlier session made, unless they chose a task of it.
        let unstarted = || ws.project.snapshots().unstarted_tasks(&ws.id, PlanScope::Workspace);
        let is_unstarted = is_overview_due && unstarted() > Some(0);
        let overview = overview.map(|overview| tanmi_engine::overview_text(&overview, session, lang));
        let overview = overview.filter(|text| !text.is_empty());
        let is_by_agent = self.core.env.operator == Operator::Ai;
        // If the user binds a session again to move its focus, its next prompt tells the change.
        let is_known = previous.as_ref().is_some_and(|previous| is_same_workspace(previous, &binding));
        let is_other = previous.is_some() && !is_known;
        let is_moved = !is_by_agent && is_known;
        let has_hooks = self.core.states().update(session, |state| {
            (state.was_unbound_by_user, state.alive_at) = (false, self.core.now());
            if !is_moved {
                // The context of the new workspace has not been injected yet.
                state.seen_context = None;
                state.hooks.clear();
            }
            state.told_overview = is_by_agent && overview.is_some();
            if !is_known {
                state.last_injected.remove(PLAN_COMPLETED);
            }
            // The plan that the session made is one of the workspace before.
            state.has_unconfirmed_plan &= !is_other;
            state.has_unconfirmed_plan |= is_unstarted && !state.last_injected.contains_key(PLAN_COMPLETED);
            !state.platform.is_empty()
        })?;
        self.core.run_retention();
        let message = bind_message(lang, &fit_title(&workspace.name));
        let focused_node_id = node.or(workspace.focused_node_id);
        let binding = BindingView { session_id: session.to_owned(), workspace_id: ws.id, focused_node_id };
        Ok(BindResult { success: true, message, binding, overview, hint: bind_hint(lang, has_hooks) })
    }

    /// Returns the overview of a workspace for a session without a focus.
    fn overview(&self, ws: &WorkspaceRef, workspace: &Workspace, session: &str) -> Option<OverviewFacts> {
        let now = self.core.now();
        let mut facts = pipeline::overview_facts(&ws.project.snapshots().overview(&ws.id)?, now);
        facts.problem = pipeline::workspace_problem(workspace);
        pipeline::complete_overview(&mut facts, ws.project.as_ref(), &self.core.states(), session, now);
        Some(facts)
    }
}

fn is_same_workspace(a: &Binding, b: &Binding) -> bool {
    (&a.workspace_id, &a.project) == (&b.workspace_id, &b.project)
}

/// Returns how an agent reads the context. Without hooks nothing is injected.
fn bind_hint(lang: Lang, has_hooks: bool) -> &'static str {
    match has_hooks {
        true => lang.pick(
            "目标、规则和聚焦节点从下一条提示词起自动注入；context_get 可立即查看",
            "Goal, rules and the focused node are injected from the next prompt on; context_get returns them now",
        ),
        false => lang.pick(
            "此会话没有运行过钩子：回答提示词之前调用 context_check 获取目标、规则和聚焦节点",
            "No hook has run in this session: call context_check before you answer a prompt; it returns goal, rules and focus",
        ),
    }
}

pub(super) fn bind_message(lang: Lang, name: &str) -> String {
    lang.pick(format!("已绑定到工作区「{name}」"), format!("Bound to workspace “{name}”"))
}
