//! What an agent needs to know of a node that it starts or focuses, in the result of that call: its own changes of the
//! focus are not injected.

use serde::Serialize;
use tanmi_base::text;
use tanmi_workspace::context::ChildConclusion;
use tanmi_workspace::model::*;
use tanmi_workspace::store::{ContextSnapshot, SnapshotDepth};

use super::NodeService;
use crate::calls::CallChange;
use crate::core::WorkspaceRef;
use crate::error::Result;
use crate::pipeline;
use crate::resolver::{CallScope, SessionBinding};

/// The maximum width of a conclusion of a dependency.
const CONCLUSION_COLUMNS: usize = 200;

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskView {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub requirement: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
    /// Conclusions of the nodes that the node or one of its ancestors depends on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dependency_conclusions: Vec<ChildConclusion>,
}

/// The new focus of a session.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FocusResult {
    pub workspace_id: WorkspaceId,
    pub focused_node_id: Option<NodeId>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub node: Option<FocusView>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FocusView {
    pub title: String,
    pub status: NodeStatus,
    /// Who else works on the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_by: Option<String>,
    #[serde(flatten)]
    pub task: TaskView,
}

impl TaskView {
    fn of(snapshot: ContextSnapshot) -> TaskView {
        let Some(node) = snapshot.node else { return TaskView::default() };
        let short = |conclusion: ChildConclusion| ChildConclusion {
            conclusion: text::fit(&text::one_line(&conclusion.conclusion), CONCLUSION_COLUMNS),
            ..conclusion
        };
        let dependencies = snapshot.surroundings.map(|surroundings| surroundings.dependencies);
        TaskView {
            requirement: node.requirement,
            note: node.note,
            problem: node.activity.problem,
            dependency_conclusions: dependencies.unwrap_or_default().into_iter().map(short).collect(),
        }
    }
}

impl NodeService {
    /// Returns what a node asks for, to the session of a call that started it. Empty if it cannot be read.
    pub(super) fn task(&self, scope: &CallScope, id: &NodeId) -> TaskView {
        let ws = &scope.workspace;
        self.note_told(ws, scope.session.as_deref(), id);
        self.snapshot(ws, id).map(TaskView::of).unwrap_or_default()
    }

    /// Moves the focus of a bound session, and returns what the node asks for.
    pub fn focus(&self, bound: &SessionBinding, id: Option<NodeId>) -> Result<FocusResult> {
        self.sessions.set_focus(bound, id.as_ref())?;
        let ws = &bound.workspace;
        let node = id.as_ref().and_then(|id| self.focused(ws, id, &bound.session));
        Ok(FocusResult { workspace_id: ws.id.clone(), focused_node_id: id, node })
    }

    fn focused(&self, ws: &WorkspaceRef, id: &NodeId, session: &str) -> Option<FocusView> {
        let snapshot = self.snapshot(ws, id)?;
        let node = snapshot.node.as_ref()?;
        self.note_told(ws, Some(session), id);
        let (states, now, lang) =
            (self.core.states(), self.core.now(), self.core.lang_in(&snapshot.workspace));
        let holder = pipeline::other_holder(&states, node, session, now, || ws.project.clone());
        Some(FocusView {
            title: node.title.clone(),
            status: node.status,
            held_by: holder.map(|holder| tanmi_engine::holder_name(&holder, lang)),
            task: TaskView::of(snapshot),
        })
    }

    /// Notes that the result of a call has the open problem of a node, so that the next prompt need not tell it in full.
    fn note_told(&self, ws: &WorkspaceRef, session: Option<&str>, id: &NodeId) {
        let told = CallChange::Told { node: id.to_string() };
        self.core.note_call(session, ws.project.as_ref(), ws.id.as_str(), told);
    }

    fn snapshot(&self, ws: &WorkspaceRef, id: &NodeId) -> Option<ContextSnapshot> {
        ws.project.snapshots().context_snapshot(&ws.id, Some(id.as_str()), SnapshotDepth::Surroundings)
    }
}
