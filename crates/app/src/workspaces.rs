//! Use cases for workspaces.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use tanmi_base::{Lang, Millis};
use tanmi_workspace::command::{Command, Committed};
use tanmi_workspace::limits::fit_title;
use tanmi_workspace::model::*;
use tanmi_workspace::ops::{NewWorkspace, WorkspaceChange};
use tanmi_workspace::store::TrashEntry;

use crate::core::{Core, WorkspaceRef};
use crate::error::{Error, Result};
use crate::masking::MaskReport;
use crate::sessions::SessionService;
use crate::stores::{KnownWorkspace, Project};
use crate::{registry, trust};

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
    /// What the user should know about a new workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<&'static str>,
    /// The language of texts for agents. Absent if the workspace has no letters to decide it from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<Lang>,
    /// Whether secrets in texts are masked. Absent unless the user turned it off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mask_secrets: Option<bool>,
    /// Kinds of secrets that were masked before the texts were written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub masked: Vec<&'static str>,
    /// The secrets that were stored.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Detects concurrent edits; see [`Workspace::version`].
    #[serde(skip)]
    pub version: String,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceLine {
    pub workspace_id: WorkspaceId,
    pub name: String,
    pub status: LineStatus,
    pub progress: Progress,
    pub active_at: Millis,
    #[serde(serialize_with = "as_text")]
    pub project: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damage: Option<String>,
}

/// The status in a [`WorkspaceLine`], which can also be about a workspace that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LineStatus {
    Active,
    Archived,
    Damaged,
    /// Moved to the trash by this call.
    Deleted,
}

impl LineStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            LineStatus::Active => "active",
            LineStatus::Archived => "archived",
            LineStatus::Damaged => "damaged",
            LineStatus::Deleted => "deleted",
        }
    }
}

impl From<WorkspaceStatus> for LineStatus {
    fn from(status: WorkspaceStatus) -> LineStatus {
        match status {
            WorkspaceStatus::Active => LineStatus::Active,
            WorkspaceStatus::Archived => LineStatus::Archived,
        }
    }
}

/// The content of the trash of a project.
#[derive(Clone, Debug, Serialize)]
pub struct TrashList {
    pub entries: Vec<TrashEntry>,
    /// The number of all entries.
    pub total: usize,
}

#[derive(Clone, Debug, Default)]
pub struct TrashFilter {
    /// Only this workspace and its nodes.
    pub workspace: Option<String>,
    pub limit: usize,
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

/// A workspace with its own log and problem.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceDetail {
    #[serde(flatten)]
    pub view: WorkspaceView,
    pub version: String,
    pub problem: Option<Problem>,
    pub log: Vec<LogEntry>,
    /// Whether the stamps of the log are UTC, as the server of a team writes them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_utc: bool,
}

/// Serializes a path with replacement characters, because a path need not be valid Unicode and JSON must be.
fn as_text<S: serde::Serializer>(path: &Path, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

/// The use cases for workspaces.
#[derive(Clone)]
pub struct WorkspaceService {
    core: Arc<Core>,
    sessions: SessionService,
}

impl WorkspaceService {
    pub(crate) fn new(core: Arc<Core>, sessions: SessionService) -> WorkspaceService {
        WorkspaceService { core, sessions }
    }

    /// Creates a workspace in this project.
    pub fn create(&self, mut new: NewWorkspace) -> Result<WorkspaceView> {
        let MaskReport { masked, warnings } = self.core.mask_new(new.texts_mut(), self.core.masking)?;
        let project = self.core.project.clone();
        let is_clean = trust::is_clean(project.folder());
        let workspace = project.workspaces().create(new, &self.core.op())?;
        let notice = self.core.trust_created(project.as_ref(), is_clean, self.core.lang_in(&workspace));
        let known = KnownWorkspace {
            id: workspace.id.clone(),
            name: workspace.name.clone(),
            project: project.clone(),
        };
        // If the home store cannot be written, the workspace still works; it is only not found from other projects.
        let _ = self.core.stores.projects.remember(&[known]);
        self.core.prune_trash(project.as_ref());
        let view = workspace_view(project.as_ref(), workspace, Progress::default());
        Ok(WorkspaceView { notice, masked, warnings, ..view })
    }

    pub fn list(&self, filter: &WorkspaceFilter) -> Result<WorkspaceLines> {
        if let Some(dir) = &filter.scan {
            self.scan_for_projects(dir)?;
        }
        let own = &self.core.project;
        let mut projects = vec![own.clone()];
        let known =
            if filter.all || filter.scan.is_some() { self.core.stores.projects.all()? } else { Vec::new() };
        let named = filter.projects.iter().map(|folder| self.core.stores.projects.in_folder(folder));
        for project in known.into_iter().chain(named) {
            if !projects.iter().any(|listed| listed.id() == project.id()) {
                projects.push(project);
            }
        }
        let mut lines = Vec::new();
        for project in projects {
            // Errors in other projects are ignored.
            let found = self.lines_of(&project);
            lines.extend(if project.id() == own.id() { found? } else { found.unwrap_or_default() });
        }
        let _ = self.remember(&lines);
        let mut lines: Vec<WorkspaceLine> = lines.into_iter().map(|(_, line)| line).collect();
        lines.retain(|line| filter.status.is_none_or(|status| line.status == status.into()));
        lines.sort_by_key(|line| std::cmp::Reverse(line.active_at));
        let total = lines.len();
        lines.truncate(filter.limit);
        Ok(WorkspaceLines { workspaces: lines, total })
    }

    /// Returns the workspaces of a project.
    fn lines_of(&self, project: &Arc<dyn Project>) -> Result<Vec<(Arc<dyn Project>, WorkspaceLine)>> {
        let mut lines = Vec::new();
        for entry in project.workspaces().list(self.core.now())? {
            let mut line = WorkspaceLine {
                name: entry.id.to_string(),
                workspace_id: entry.id,
                status: LineStatus::Damaged,
                progress: Progress::default(),
                active_at: entry.active_at,
                project: project.checkout().to_owned(),
                damage: None,
            };
            match entry.state {
                Ok((workspace, progress)) => {
                    line.name = fit_title(&workspace.name).into_owned();
                    line.status = workspace.status.into();
                    line.progress = progress;
                }
                Err(error) => line.damage = Some(error.to_string()),
            }
            lines.push((project.clone(), line));
        }
        lines.sort_by_key(|(_, line)| std::cmp::Reverse(line.active_at));
        Ok(lines)
    }

    fn remember(&self, lines: &[(Arc<dyn Project>, WorkspaceLine)]) -> Result<()> {
        let readable = lines.iter().filter(|(_, line)| line.damage.is_none());
        let known = readable.map(|(project, line)| KnownWorkspace {
            id: line.workspace_id.clone(),
            name: line.name.clone(),
            project: project.clone(),
        });
        self.core.stores.projects.remember(&known.collect::<Vec<_>>())
    }

    fn scan_for_projects(&self, dir: &Path) -> Result<()> {
        let dir = dir.canonicalize().map_err(Error::io(dir))?;
        let mut folders = Vec::new();
        registry::walk(&dir, 8, &mut |folder| {
            folders.push(folder.to_owned());
            true
        });
        for folder in folders {
            self.remember(&self.lines_of(&self.core.stores.projects.in_folder(&folder))?)?;
        }
        Ok(())
    }

    pub fn show(&self, ws: &WorkspaceRef) -> Result<WorkspaceView> {
        let (workspace, progress) = ws.store().summary(&ws.id, self.core.now())?;
        Ok(workspace_view(ws.project.as_ref(), workspace, progress))
    }

    /// Returns a workspace with its own log and problem.
    pub fn detail(&self, ws: &WorkspaceRef) -> Result<WorkspaceDetail> {
        let (workspace, progress) = ws.store().summary(&ws.id, self.core.now())?;
        let mut activity = workspace.activity.clone();
        let log = activity.log.split_off(activity.log.len().saturating_sub(crate::nodes::LOG_ENTRIES));
        let view = workspace_view(ws.project.as_ref(), workspace, progress);
        let (version, is_utc) = (view.version.clone(), ws.project.has_utc_logs());
        Ok(WorkspaceDetail { version, view, problem: activity.problem, log, is_utc })
    }

    pub fn update(&self, ws: &WorkspaceRef, change: WorkspaceChange) -> Result<WorkspaceView> {
        if change.is_empty() {
            return Err(Error::NothingToChange);
        }
        if change.mask_secrets.is_some() && self.core.env.operator == Operator::Ai {
            return Err(Error::UserDecides { setting: "maskSecrets" });
        }
        self.change(ws, Command::UpdateWorkspace { change })
    }

    pub fn archive(&self, ws: &WorkspaceRef) -> Result<WorkspaceView> {
        self.change(ws, Command::ArchiveWorkspace)
    }

    /// Restores a workspace from the archive or the trash.
    pub fn restore(&self, id: &str) -> Result<WorkspaceView> {
        let parsed = self.sessions.resolver().workspace_id(id)?;
        // The trash is searched first, even if another project has a copy of the workspace.
        if !self.core.project.workspaces().exists(&parsed)? {
            let known = self.core.stores.projects.workspaces()?.into_iter();
            let known = known.filter(|known| known.id == parsed).map(|known| known.project);
            for project in std::iter::once(self.core.project.clone()).chain(known) {
                if project.workspaces().undelete(&parsed)? {
                    return self.show(&WorkspaceRef { project, id: parsed });
                }
            }
        }
        let ws = self.sessions.resolver().workspace(parsed.as_str())?;
        self.change(&ws, Command::RestoreWorkspace)
    }

    /// Returns what can be restored in this project, the latest deletion first.
    pub fn trash(&self, filter: &TrashFilter) -> Result<TrashList> {
        let resolver = self.sessions.resolver();
        let wanted = filter.workspace.as_deref().map(|named| resolver.workspace_id(named)).transpose()?;
        let mut entries = self.core.project.workspaces().trash()?;
        entries.retain(|entry| wanted.as_ref().is_none_or(|wanted| entry.workspace_id == *wanted));
        let total = entries.len();
        entries.truncate(filter.limit);
        Ok(TrashList { entries, total })
    }

    pub fn delete(&self, ws: &WorkspaceRef) -> Result<WorkspaceLine> {
        let now = self.core.now();
        let summary = ws.store().summary(&ws.id, now);
        ws.store().delete(&ws.id, now)?;
        self.core.prune_trash(ws.project.as_ref());
        // The registry keeps its entry, so that a restore finds the project.
        let (name, progress) = match summary {
            Ok((workspace, progress)) => (fit_title(&workspace.name).into_owned(), progress),
            Err(_) => (ws.id.to_string(), Progress::default()),
        };
        let project = ws.project.checkout().to_owned();
        let (workspace_id, status) = (ws.id.clone(), LineStatus::Deleted);
        Ok(WorkspaceLine { workspace_id, name, status, progress, active_at: now, project, damage: None })
    }

    /// Sets or clears the focus of the workspace itself.
    pub fn focus(&self, ws: &WorkspaceRef, node_id: Option<NodeId>) -> Result<WorkspaceView> {
        self.change(ws, Command::FocusNode { node_id })
    }

    fn change(&self, ws: &WorkspaceRef, mut command: Command) -> Result<WorkspaceView> {
        let MaskReport { masked, warnings } = self.core.mask_command(ws, &mut command, self.core.masking)?;
        let Committed { outcome, seq } = ws.store().run(&ws.id, &command, &self.core.op(), &self.sessions)?;
        let (workspace, progress) = outcome.into_workspace()?;
        let view = workspace_view(ws.project.as_ref(), workspace, progress);
        Ok(WorkspaceView { seq: Some(seq), masked, warnings, ..view })
    }
}

fn workspace_view(project: &dyn Project, workspace: Workspace, progress: Progress) -> WorkspaceView {
    WorkspaceView {
        language: workspace.lang(),
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
        project: project.checkout().to_owned(),
        seq: None,
        notice: None,
        mask_secrets: Some(false).filter(|_| !workspace.mask_secrets),
        masked: Vec::new(),
        warnings: Vec::new(),
    }
}
