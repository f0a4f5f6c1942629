//! The names of files and folders in a project's store.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use tanmi_base::Millis;
use tanmi_base::fs;
use tanmi_base::journal::{Change, JournalPaths};

use crate::model::{NodeId, WorkspaceId};

/// Derived files, journals, locks, the trash and memory stay out of the repository.
pub const GITIGNORE: &str =
    "# Written by tanmi: what is derived, local or private.\n.local/\n.trash/\nmemory/\n";

/// `<project>/.tanmi-workspace`
pub struct ProjectLayout {
    dir: PathBuf,
}

impl ProjectLayout {
    pub fn new(dir: PathBuf) -> ProjectLayout {
        ProjectLayout { dir }
    }
    pub fn dir(&self) -> &Path {
        &self.dir
    }
    pub fn local(&self) -> PathBuf {
        self.dir.join(".local")
    }
    pub fn lock(&self) -> PathBuf {
        self.local().join("lock")
    }
    pub fn gitignore(&self) -> PathBuf {
        self.dir.join(".gitignore")
    }
    pub fn trash(&self) -> PathBuf {
        self.dir.join(".trash")
    }

    /// Where a new workspace is put together before it appears.
    pub fn draft(&self, id: &WorkspaceId) -> PathBuf {
        self.local().join(format!("new-{id}"))
    }

    /// What a process that died in the middle of creating left behind. Under the project's lock.
    pub fn remove_drafts(&self) -> io::Result<()> {
        for entry in std::fs::read_dir(self.local())?.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with("new-") || name.starts_with("tmp-") {
                fs::remove_tree(&entry.path())?;
            }
        }
        Ok(())
    }

    /// A free name in the trash.
    pub fn trashed(&self, now: Millis, name: &str) -> PathBuf {
        let mut at = now;
        while self.trash().join(trash_name(at, name)).exists() {
            at += 1;
        }
        self.trash().join(trash_name(at, name))
    }

    /// See [`Layout::link`].
    pub fn link(&self) -> Option<PathBuf> {
        [self.dir.clone(), self.local(), self.trash()].into_iter().find(|path| fs::is_link(path))
    }

    /// The latest of that name.
    pub fn find_trashed(&self, name: &str) -> Option<PathBuf> {
        let entries = std::fs::read_dir(self.trash()).ok()?;
        let matching = entries.flatten().filter_map(|entry| {
            let file_name = entry.file_name();
            let (at, rest) = file_name.to_str()?.split_once('-')?;
            (rest == name).then_some((at.parse::<Millis>().ok()?, entry.path()))
        });
        matching.max().map(|(_, path)| path)
    }
}

fn trash_name(now: Millis, name: &str) -> String {
    format!("{now}-{name}")
}

/// When something was put into the trash, from its name there.
pub fn trashed_at(name: &OsStr) -> Option<Millis> {
    name.to_str()?.split_once('-')?.0.parse().ok()
}

/// What a journal of ours can hold: the workspace's file, a node's file, a node's folder on its way to the trash.
fn is_ours(change: &Change) -> bool {
    let is_node = |path: &str| path.strip_prefix("nodes/").is_some_and(|id| NodeId::parse(id).is_ok());
    match change {
        Change::Write { path, .. } => {
            path == "Workspace.md" || path.strip_suffix("/Node.md").is_some_and(is_node)
        }
        Change::Move { from, to } => {
            let mut parts = to.strip_prefix("../.trash/").unwrap_or_default().split('/');
            let is_name =
                |part: Option<&str>| part.is_some_and(|part| !part.is_empty() && part != "." && part != "..");
            is_node(from) && is_name(parts.next()) && is_name(parts.next()) && parts.next().is_none()
        }
    }
}

/// `<project>/.tanmi-workspace/ws-…`
#[derive(Clone)]
pub struct Layout {
    dir: PathBuf,
}

impl Layout {
    pub fn new(dir: PathBuf) -> Layout {
        Layout { dir }
    }
    pub fn dir(&self) -> &Path {
        &self.dir
    }
    pub fn exists(&self) -> bool {
        self.dir.is_dir()
    }
    /// Whether there is anything of a workspace here.
    pub fn is_workspace(&self) -> bool {
        self.workspace_md().exists() || self.nodes().exists()
    }
    pub fn workspace_md(&self) -> PathBuf {
        self.dir.join("Workspace.md")
    }
    pub fn nodes(&self) -> PathBuf {
        self.dir.join("nodes")
    }
    pub fn node_dir(&self, id: &NodeId) -> PathBuf {
        self.nodes().join(id.as_str())
    }
    pub fn node_md(&self, id: &NodeId) -> PathBuf {
        self.node_dir(id).join("Node.md")
    }
    pub fn local(&self) -> PathBuf {
        self.dir.join(".local")
    }
    pub fn lock(&self) -> PathBuf {
        self.local().join("lock")
    }
    pub fn journal(&self) -> PathBuf {
        self.local().join("journal")
    }
    pub fn index(&self) -> PathBuf {
        self.local().join("index.sqlite")
    }
    pub fn temp(&self) -> PathBuf {
        self.local().join("tmp")
    }
    /// Our version of files that a person changed in the moment of a crash.
    pub fn kept(&self) -> PathBuf {
        self.local().join("kept")
    }

    pub fn journal_paths(&self) -> JournalPaths {
        JournalPaths { root: self.dir.clone(), temp: self.temp(), kept: self.kept(), allows: is_ours }
    }

    /// A folder of the store that is a symbolic link: whoever put it there wants us to write, or delete, elsewhere.
    pub fn link(&self) -> Option<PathBuf> {
        let store = self.dir.parent().unwrap_or(&self.dir).to_owned();
        let folders = [store, self.dir.clone(), self.nodes(), self.local(), self.temp(), self.kept()];
        folders.into_iter().find(|path| fs::is_link(path))
    }

    /// Where a removed node's folder goes, as the journal names it: relative to the workspace.
    pub fn trash_in_journal(&self, now: Millis, seq: u64, id: &NodeId) -> String {
        let workspace = self.dir.file_name().unwrap_or_default().to_string_lossy();
        format!("../.trash/{}/{id}", trash_name(now, &format!("nodes-of-{workspace}.{seq}")))
    }

    /// The project's folder, if this is a place inside one.
    pub fn project(&self) -> Option<&Path> {
        self.dir.parent()?.parent()
    }
}
