//! The status of a project: its active workspaces, the sessions bound to them, and the work in them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use tanmi_base::Millis;
pub use tanmi_team::Present;
use tanmi_workspace::model::{LogEntry, Node, NodeId, NodeStatus, Problem, Progress, WorkspaceId};
use tanmi_workspace::ops::{BlockReason, BlockedNode, Claimant};
use tanmi_workspace::store::NodeBrief;

use crate::activity::last_written;
use crate::core::{Core, WorkspaceRef};
use crate::error::{Error, Result};
use crate::presence;
use crate::resolver::CallTarget;
use crate::sessions::{SessionFilter, SessionService};

#[derive(Clone, Debug, Serialize)]
pub struct ProjectStatus {
    pub project: String,
    /// Whether injection is paused.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// The team server of a joined project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    pub workspaces: Vec<WorkspaceOverview>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceOverview {
    pub workspace_id: WorkspaceId,
    pub name: String,
    pub goal: String,
    pub progress: Progress,
    /// The open problem of the workspace itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
    /// Sessions bound to the workspace, most recently active first.
    pub sessions: Vec<SessionWork>,
    /// Sessions of the team on other machines that hold a node, those alive first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub team: Vec<Present>,
    pub in_progress: Vec<NodeInProgress>,
    pub problems: Vec<NodeProblem>,
    /// The first pending execution nodes in the order of the tree.
    pub next: Vec<NodeBrief>,
    /// Where nothing is in progress or next: the nodes whose children are all done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub can_complete: Vec<BlockedNode>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionWork {
    pub session_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub platform: String,
    pub live: bool,
    pub alive_at: Millis,
    /// The node that the session works on.
    pub focused_node: Option<NodeBrief>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeInProgress {
    pub id: NodeId,
    pub title: String,
    pub status: NodeStatus,
    /// The session that holds the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_log: Option<LogEntry>,
}

#[derive(Clone, Debug, Serialize)]
pub struct NodeProblem {
    pub id: NodeId,
    pub title: String,
    pub problem: Problem,
}

/// The maximum number of sessions of a workspace.
const MAX_SESSIONS: usize = 20;

/// The use case of the status.
#[derive(Clone)]
pub struct StatusService {
    core: Arc<Core>,
    sessions: SessionService,
}

impl StatusService {
    pub(crate) fn new(core: Arc<Core>, sessions: SessionService) -> StatusService {
        StatusService { core, sessions }
    }

    /// Returns the status of the workspace that the call is about. If it names none and several are active, returns all
    /// of them.
    pub fn read(&self, workspace: Option<&str>) -> Result<ProjectStatus> {
        let resolver = self.sessions.resolver();
        let workspaces = match resolver.scope(&CallTarget::in_workspace(workspace)) {
            Ok(scope) => vec![scope.workspace],
            Err(Error::NoWorkspace { .. }) => Vec::new(),
            Err(Error::AmbiguousWorkspace { candidates }) => {
                let project = |(id, _)| WorkspaceRef { project: self.core.project.clone(), id };
                candidates.into_iter().map(project).collect()
            }
            Err(error) => return Err(error),
        };
        let project = workspaces.first().map_or(self.core.folder(), |ws| ws.project.checkout());
        Ok(ProjectStatus {
            project: project.display().to_string(),
            paused: tanmi_session::pause::paused_until(self.core.home(), self.core.now()).is_some(),
            server: self.core.project.team().map(|team| team.connection().server().to_owned()),
            workspaces: workspaces.iter().map(|ws| self.overview(ws)).collect::<Result<_>>()?,
        })
    }

    fn overview(&self, ws: &WorkspaceRef) -> Result<WorkspaceOverview> {
        // Updates the index to the files, from which the overview is read.
        let (workspace, progress) = ws.store().summary(&ws.id, self.core.now())?;
        let overview = ws.project.snapshots().overview(&ws.id).unwrap_or_default();
        let is_idle = overview.next.is_empty() && overview.in_progress.is_empty() && progress.total > 0;
        Ok(WorkspaceOverview {
            workspace_id: workspace.id,
            name: workspace.name,
            goal: workspace.goal,
            progress,
            problem: workspace.activity.problem,
            sessions: self.sessions(ws, workspace.focused_node_id.as_ref())?,
            team: presence::elsewhere(
                ws.project.as_ref(),
                Some(&ws.id),
                &self.core.states(),
                self.core.now(),
            ),
            in_progress: overview.in_progress.into_iter().map(NodeInProgress::of).collect(),
            problems: overview.with_problem.into_iter().filter_map(NodeProblem::of).collect(),
            next: overview.next,
            can_complete: if is_idle { self.can_complete(ws)? } else { Vec::new() },
        })
    }

    fn can_complete(&self, ws: &WorkspaceRef) -> Result<Vec<BlockedNode>> {
        let claimant = Claimant::default();
        let mut blocked = ws.store().next(&ws.id, 1, &claimant, &self.sessions, self.core.now())?.blocked;
        blocked.retain(|node| node.reason == BlockReason::ChildrenDone);
        Ok(blocked)
    }

    fn sessions(&self, ws: &WorkspaceRef, focus: Option<&NodeId>) -> Result<Vec<SessionWork>> {
        let filter = SessionFilter {
            workspace: Some(ws.id.to_string()),
            limit: MAX_SESSIONS,
            ..SessionFilter::default()
        };
        let lines = self.sessions.list(&filter)?.sessions;
        let focus_of = |focused: Option<&String>| {
            focused.and_then(|id| NodeId::parse(id).ok()).or_else(|| focus.cloned())
        };
        let focuses: Vec<Option<NodeId>> = lines
            .iter()
            .map(|line| focus_of(line.bound.as_ref().and_then(|bound| bound.focused_node_id.as_ref())))
            .collect();
        let ids: Vec<NodeId> = focuses.iter().flatten().cloned().collect();
        let rows = ws.store().rows(&ws.id, &ids, self.core.now())?;
        let nodes: BTreeMap<NodeId, NodeBrief> =
            rows.into_iter().map(|row| (row.node.id.clone(), row.node)).collect();
        let work = lines.into_iter().zip(focuses).map(|(line, focus)| SessionWork {
            session_id: line.session_id,
            platform: line.platform,
            live: line.live,
            alive_at: line.alive_at,
            focused_node: focus.and_then(|id| nodes.get(&id).cloned()),
        });
        Ok(work.collect())
    }
}

impl NodeInProgress {
    fn of(node: Node) -> NodeInProgress {
        let last_log = last_written(&node).cloned();
        NodeInProgress {
            id: node.id,
            title: node.title,
            status: node.status,
            holder: node.started_by,
            last_log,
        }
    }
}

impl NodeProblem {
    fn of(node: Node) -> Option<NodeProblem> {
        Some(NodeProblem { id: node.id, title: node.title, problem: node.activity.problem? })
    }
}
