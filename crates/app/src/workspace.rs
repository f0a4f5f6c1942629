//! Use cases for workspaces.

use std::path::PathBuf;

use serde::Serialize;
use tanmi_base::Millis;
use tanmi_base::paths::{CONFIG_DIR, STORE_DIR};
use tanmi_workspace::command::{Command, Committed};
use tanmi_workspace::model::*;
use tanmi_workspace::ops::{NewWorkspace, WorkspaceChange};
use tanmi_workspace::store::{CheckReport, LocalMaintenance, Workspaces};

use crate::error::{Error, Result};
use crate::registry::{self, RegistryEntry};
use crate::trust::Trust;
use crate::{App, WorkspaceRef};

/// A workspace as all interfaces show it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceView {
    pub workspace_id: WorkspaceId,
    pub name: String,
    pub goal: String,
    pub status: WorkspaceStatus,
    pub rules: Vec<String>,
    pub rules_hash: String,
    pub docs: Vec<DocReference>,
    pub focused_node_id: Option<NodeId>,
    pub progress: Progress,
    pub created_at: Millis,
    pub updated_at: Millis,
    #[serde(serialize_with = "as_text")]
    pub project: PathBuf,
    /// The sequence number of the change, under the same key as in the change feed. `None` for a read.
    #[serde(rename = "change", skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// Detects concurrent edits; see [`Workspace::version`].
    #[serde(skip)]
    pub version: String,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceLine {
    pub workspace_id: WorkspaceId,
    pub name: String,
    /// `active`, `archived`, or `damaged`.
    pub status: &'static str,
    pub progress: Progress,
    pub active_at: Millis,
    #[serde(serialize_with = "as_text")]
    pub project: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damage: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub struct WorkspaceFilter {
    /// Whether to include every project in the registry.
    pub all: bool,
    pub status: Option<WorkspaceStatus>,
    pub limit: usize,
    /// A folder to search for projects first. Found projects are added to the registry.
    pub scan: Option<PathBuf>,
    /// Additional projects, registered or not.
    pub projects: Vec<PathBuf>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceLines {
    pub workspaces: Vec<WorkspaceLine>,
    /// The number of all matching workspaces, not only those in `workspaces`.
    pub total: usize,
}

/// Serializes a path with replacement characters, because a path need not be valid Unicode and JSON must be.
fn as_text<S: serde::Serializer>(
    path: &std::path::Path,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

impl App {
    pub(crate) fn workspace_view(
        &self,
        ws: &WorkspaceRef,
        workspace: Workspace,
        progress: Progress,
    ) -> WorkspaceView {
        WorkspaceView {
            rules_hash: workspace.rules_hash(),
            version: workspace.version(),
            workspace_id: workspace.id,
            name: workspace.name,
            goal: workspace.goal,
            status: workspace.status,
            rules: workspace.rules,
            docs: workspace.docs,
            focused_node_id: workspace.focused_node_id,
            progress,
            created_at: workspace.created_at,
            updated_at: workspace.updated_at,
            project: ws.store.project().to_owned(),
            seq: None,
        }
    }

    pub fn workspace_init(&self, new: NewWorkspace) -> Result<WorkspaceView> {
        let store = self.store(self.project());
        let is_new_project =
            !self.project().join(STORE_DIR).exists() && !self.project().join(CONFIG_DIR).exists();
        let workspace = store.create(new, &self.op())?;
        let entry = RegistryEntry { project: self.project().to_owned(), name: workspace.name.clone() };
        if is_new_project {
            // Everything in the project store was created here, so the user need not confirm trust.
            let _ = Trust::new(self.home()).add_project(self.project(), "created", self.now());
        }
        // If the home store cannot be written, the workspace still works; it is only not found from other projects.
        let _ = self.registry.record_all(&[(workspace.id.clone(), entry)]);
        self.prune_trash(&store);
        let ws = WorkspaceRef { store, id: workspace.id.clone() };
        Ok(self.workspace_view(&ws, workspace, Progress::default()))
    }

    pub fn workspace_list(&self, filter: &WorkspaceFilter) -> Result<WorkspaceLines> {
        if let Some(dir) = &filter.scan {
            self.scan_for_projects(dir)?;
        }
        let mut projects = vec![self.project().to_owned()];
        let known = if filter.all || filter.scan.is_some() { self.registry.projects()? } else { Vec::new() };
        for project in known.iter().chain(&filter.projects) {
            if !projects.contains(project) {
                projects.push(project.clone());
            }
        }
        let mut lines = Vec::new();
        for project in projects {
            // Errors in other projects are ignored.
            let found = self.lines_of(&project);
            let found = if project == *self.project() { found? } else { found.unwrap_or_default() };
            lines.extend(found);
        }
        let _ = self.register_lines(&lines);
        lines.retain(|line| filter.status.is_none_or(|status| status.as_str() == line.status));
        lines.sort_by_key(|line| std::cmp::Reverse(line.active_at));
        let total = lines.len();
        lines.truncate(filter.limit);
        Ok(WorkspaceLines { workspaces: lines, total })
    }

    /// Returns the workspaces of a project, latest activity first.
    fn lines_of(&self, project: &std::path::Path) -> Result<Vec<WorkspaceLine>> {
        let mut lines: Vec<WorkspaceLine> = Vec::new();
        for entry in self.store(project).list(self.now())? {
            let mut line = WorkspaceLine {
                name: entry.id.to_string(),
                workspace_id: entry.id,
                status: "damaged",
                progress: Progress::default(),
                active_at: entry.active_at,
                project: project.to_owned(),
                damage: None,
            };
            match entry.state {
                Ok((workspace, progress)) => {
                    line.name = workspace.name;
                    line.status = workspace.status.as_str();
                    line.progress = progress;
                }
                Err(error) => line.damage = Some(error.to_string()),
            }
            lines.push(line);
        }
        lines.sort_by_key(|line| std::cmp::Reverse(line.active_at));
        Ok(lines)
    }

    fn register_lines(&self, lines: &[WorkspaceLine]) -> Result<()> {
        let readable = lines.iter().filter(|line| line.damage.is_none());
        let found: Vec<(WorkspaceId, RegistryEntry)> = readable
            .map(|line| {
                let entry = RegistryEntry { project: line.project.clone(), name: line.name.clone() };
                (line.workspace_id.clone(), entry)
            })
            .collect();
        self.registry.record_all(&found)
    }

    fn scan_for_projects(&self, dir: &std::path::Path) -> Result<()> {
        let dir = dir.canonicalize().map_err(Error::io(dir))?;
        let mut projects = Vec::new();
        registry::walk(&dir, 8, &mut |project| {
            projects.push(project.to_owned());
            true
        });
        for project in projects {
            let lines = self.lines_of(&project)?;
            self.register_lines(&lines)?;
        }
        Ok(())
    }

    pub fn workspace_show(&self, id: Option<&str>) -> Result<WorkspaceView> {
        let ws = self.locate(id)?;
        let (workspace, progress) = self.view(&ws, |tx| Ok((tx.workspace()?, tx.total()?.progress())))?;
        Ok(self.workspace_view(&ws, workspace, progress))
    }

    pub fn workspace_update(&self, id: Option<&str>, change: WorkspaceChange) -> Result<WorkspaceView> {
        if change.is_empty() {
            return Err(Error::NothingToChange);
        }
        self.change_workspace(id, &Command::UpdateWorkspace { change })
    }

    pub fn workspace_archive(&self, id: Option<&str>) -> Result<WorkspaceView> {
        self.change_workspace(id, &Command::ArchiveWorkspace)
    }

    /// Restores a workspace from the archive or the trash.
    pub fn workspace_restore(&self, id: &str) -> Result<WorkspaceView> {
        let parsed = WorkspaceId::parse(id)?;
        let mut projects = vec![self.project().to_owned()];
        projects.extend(
            self.registry
                .entries()?
                .into_iter()
                .filter(|(known, _)| *known == parsed)
                .map(|(_, e)| e.project),
        );
        // The trash is searched first, even if another project has a copy of the workspace.
        if !self.store(&projects[0]).exists(&parsed)? {
            for project in &projects {
                if self.store(project).undelete(&parsed)? {
                    let ws = WorkspaceRef { store: self.store(project), id: parsed };
                    let (workspace, progress) =
                        self.view(&ws, |tx| Ok((tx.workspace()?, tx.total()?.progress())))?;
                    return Ok(self.workspace_view(&ws, workspace, progress));
                }
            }
        }
        self.change_workspace(Some(id), &Command::RestoreWorkspace)
    }

    pub fn workspace_delete(&self, id: &str) -> Result<WorkspaceLine> {
        let ws = self.locate(Some(id))?;
        let details = self.view(&ws, |tx| Ok((tx.workspace()?, tx.total()?.progress())));
        let now = self.now();
        ws.store.delete(&ws.id, now)?;
        self.prune_trash(&ws.store);
        // The registry keeps its entry, so that a restore finds the project.
        let (name, progress) = match details {
            Ok((workspace, progress)) => (workspace.name, progress),
            Err(_) => (ws.id.to_string(), Progress::default()),
        };
        let project = ws.store.project().to_owned();
        let (workspace_id, status) = (ws.id, "deleted");
        Ok(WorkspaceLine { workspace_id, name, status, progress, active_at: now, project, damage: None })
    }

    pub fn workspace_focus(&self, id: Option<&str>, node: Option<&str>) -> Result<WorkspaceView> {
        let node_id = node.map(NodeId::parse).transpose()?;
        self.change_workspace(id, &Command::FocusNode { node_id })
    }

    pub fn workspace_check(&self, id: Option<&str>, repair: bool) -> Result<(WorkspaceId, CheckReport)> {
        let ws = self.locate(id)?;
        let report = ws.store.check(&ws.id, repair, self.now())?;
        Ok((ws.id, report))
    }

    fn change_workspace(&self, id: Option<&str>, command: &Command) -> Result<WorkspaceView> {
        let ws = self.locate(id)?;
        let Committed { outcome, seq } = self.run(&ws, command)?;
        let (workspace, progress) = outcome.into_workspace()?;
        Ok(WorkspaceView { seq: Some(seq), ..self.workspace_view(&ws, workspace, progress) })
    }
}
