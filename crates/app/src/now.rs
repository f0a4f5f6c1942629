//! What happens now in all projects: the work in progress, what waits for the user, what was completed today, and the
//! sessions that are at work.

use std::path::{Path, PathBuf};

use serde::Serialize;
use tanmi_base::clock::{self, DAY};
use tanmi_base::{Millis, text};
use tanmi_index::{ActivityIndex, IndexError, NodeStateFilter};
use tanmi_team::Present;
use tanmi_workspace::limits::{LINE_BYTES, fit_title};
use tanmi_workspace::model::{Problem, Progress, WorkspaceId, WorkspaceStatus};
use tanmi_workspace::store::PlanScope;

use crate::activity::{ActivityLog, NodeState};
use crate::error::Result;
use crate::presence;
use crate::sessions::{SessionFilter, SessionLine, SessionService};

/// The maximum number of nodes in each list, of workspaces of a project, and of sessions.
const MAX_NODES: usize = 20;
const MAX_WORKSPACES: usize = 50;
const MAX_SESSIONS: usize = 50;

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Now {
    /// The time of the server.
    pub at: Millis,
    /// When the local day began.
    pub today: Millis,
    /// Whether injection is paused.
    pub paused: bool,
    pub projects: Vec<ProjectNow>,
    /// Sessions that are live or were active in the last day, the latest activity first.
    pub sessions: Vec<SessionLine>,
}

#[derive(Clone, Debug, Serialize)]
pub struct ProjectNow {
    pub project: String,
    /// Sessions of the team on other machines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub team: Vec<Present>,
    /// Active workspaces, the latest activity first.
    pub workspaces: Vec<WorkspaceNow>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceNow {
    pub workspace_id: WorkspaceId,
    pub name: String,
    pub goal: String,
    pub progress: Progress,
    pub active_at: Millis,
    /// The open problem of the workspace itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
    /// Whether there is a plan of which no task is started, and no other node is in progress either: the
    /// agent waits for the user to confirm it.
    pub plan_waits: bool,
    /// Implementing and validating nodes.
    pub running: NodeStates,
    pub problems: NodeStates,
    pub failed: NodeStates,
    /// Nodes that were completed today.
    pub completed: NodeStates,
}

/// The first nodes of a list, the latest status change first.
#[derive(Clone, Debug, Serialize)]
pub struct NodeStates {
    pub nodes: Vec<NodeState>,
    pub total: u64,
}

impl ActivityLog {
    /// Returns what happens now in these projects.
    pub fn now(&self, projects: &[PathBuf]) -> Result<Now> {
        let at = self.core.now();
        let today = clock::local_midnight(at);
        let found = self.read(projects, |index| {
            projects.iter().map(|folder| self.project_now(index, folder, today)).collect()
        })?;
        let sessions = SessionService::new(self.core.clone());
        let mut sessions =
            sessions.list(&SessionFilter { limit: usize::MAX, ..SessionFilter::default() })?.sessions;
        sessions.retain(|session| session.live || at - session.alive_at < DAY);
        sessions.truncate(MAX_SESSIONS);
        let paused = tanmi_session::pause::paused_until(self.core.home(), at).is_some();
        Ok(Now { at, today, paused, projects: found, sessions })
    }

    /// Returns what happens in a project. One that cannot be read has no workspaces.
    fn project_now(
        &self,
        index: &ActivityIndex,
        folder: &Path,
        today: Millis,
    ) -> Result<ProjectNow, IndexError> {
        let project = self.core.stores.projects.in_folder(folder);
        let mut entries = project.workspaces().list(self.core.now()).unwrap_or_default();
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.active_at));
        let mut workspaces = Vec::new();
        for entry in entries {
            let Ok((workspace, progress)) = entry.state else { continue };
            if workspace.status != WorkspaceStatus::Active || workspaces.len() >= MAX_WORKSPACES {
                continue;
            }
            let nodes = |filter| node_states(index, folder, &workspace.id, filter);
            let started = ["implementing", "validating"];
            let running = nodes(NodeStateFilter { statuses: &started, ..NodeStateFilter::default() })?;
            workspaces.push(WorkspaceNow {
                name: fit_title(&workspace.name).into_owned(),
                goal: text::cut(&workspace.goal, LINE_BYTES),
                progress,
                active_at: entry.active_at,
                plan_waits: running.total == 0
                    && project.snapshots().unstarted_tasks(&workspace.id, PlanScope::Branches) > Some(0),
                running,
                problems: nodes(NodeStateFilter { has_problem: true, ..NodeStateFilter::default() })?,
                failed: nodes(NodeStateFilter { statuses: &["failed"], ..NodeStateFilter::default() })?,
                completed: nodes(NodeStateFilter {
                    statuses: &["completed"],
                    since: Some(today),
                    ..NodeStateFilter::default()
                })?,
                problem: workspace.activity.problem,
                workspace_id: workspace.id,
            });
        }
        let team = presence::elsewhere(project.as_ref(), None, &self.core.states(), self.core.now());
        Ok(ProjectNow { project: folder.display().to_string(), team, workspaces })
    }
}

fn node_states(
    index: &ActivityIndex,
    folder: &Path,
    id: &WorkspaceId,
    filter: NodeStateFilter<'_>,
) -> Result<NodeStates, IndexError> {
    let project = folder.display().to_string();
    let filter = NodeStateFilter { project: &project, workspace: id.as_str(), ..filter };
    let (rows, total) = index.node_states(&filter, MAX_NODES)?;
    let nodes = rows.iter().filter_map(|row| serde_json::from_str(&row.data).ok()).collect();
    Ok(NodeStates { nodes, total })
}
