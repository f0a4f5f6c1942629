//! The names of files and folders in a project store.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use tanmi_base::Millis;
use tanmi_base::fs;
use tanmi_base::journal::{Change, JournalPaths};

use crate::error::{Error, Result};
use crate::model::{NodeId, WorkspaceId};

/// The content of `.gitignore`: excludes derived files, journals, locks, the trash and memory.
pub const GITIGNORE: &str =
    "# Written by tanmi: what is derived, local or private.\n.local/\n.trash/\nmemory/\n";

/// The name of the file of a node.
pub const NODE_MD: &str = "Node.md";

/// The paths in `<project>/.tanmi-workspace`.
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

    /// Returns the folder in which a new workspace is prepared.
    pub fn draft(&self, id: &WorkspaceId) -> PathBuf {
        self.local().join(format!("new-{id}"))
    }

    /// Removes what a killed process left behind while it created a workspace. The caller holds the project lock.
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

    /// Returns an unused path in the trash.
    pub fn new_trash_path(&self, now: Millis, name: &str) -> PathBuf {
        let mut at = now;
        while self.trash().join(trash_name(at, name)).exists() {
            at += 1;
        }
        self.trash().join(trash_name(at, name))
    }

    /// See [`Layout::check_folders`].
    pub fn check_folders(&self) -> Result<()> {
        check_links(&[self.dir.clone(), self.trash()])?;
        check_local(&self.local())
    }

    /// Returns the latest trash entry with this name.
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

fn check_links(folders: &[PathBuf]) -> Result<()> {
    folders.iter().try_for_each(|folder| fs::check_folder(folder).map_err(Error::io(folder)))
}

fn check_local(folder: &Path) -> Result<()> {
    fs::check_private_folder(folder).map_err(Error::io(folder))
}

/// What follows the time in the name of a folder of deleted nodes.
pub const NODES_OF: &str = "nodes-of-";

fn trash_name(now: Millis, name: &str) -> String {
    format!("{now}-{name}")
}

/// Returns when a trash entry was deleted, according to its name.
pub fn trashed_at(name: &OsStr) -> Option<Millis> {
    name.to_str()?.split_once('-')?.0.parse().ok()
}

/// Returns whether a journal may contain a change: a write of `Workspace.md` or a `Node.md`, or a move of a node folder
/// to the trash. A journal that came with a cloned repository can contain anything.
fn is_allowed_change(change: &Change) -> bool {
    let is_node = |path: &str| path.strip_prefix("nodes/").is_some_and(|id| NodeId::parse(id).is_ok());
    match change {
        Change::Write { path, .. } => {
            path == "Workspace.md" || path.strip_suffix("/Node.md").is_some_and(is_node)
        }
        Change::Move { from, to } => {
            let parts = to.strip_prefix("../.trash/").and_then(|rest| rest.split_once('/'));
            is_node(from)
                && parts
                    .is_some_and(|(name, id)| is_trash_name(name) && from.strip_prefix("nodes/") == Some(id))
        }
    }
}

/// Returns whether this is a safe folder name on every system, as [`trash_name`] makes them. A move to a name
/// that a system refuses would fail in every recovery.
fn is_trash_name(name: &str) -> bool {
    (1..=200).contains(&name.len())
        && !name.starts_with('.')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

/// The paths in `<project>/.tanmi-workspace/ws-…`.
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
    /// Returns whether the folder contains any file of a workspace.
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
        self.node_dir(id).join(NODE_MD)
    }
    pub fn local(&self) -> PathBuf {
        self.dir.join(".local")
    }
    pub fn lock(&self) -> PathBuf {
        self.local().join("lock")
    }
    /// The lock that a process holds while it waits for [`Layout::lock`].
    pub fn turnstile(&self) -> PathBuf {
        self.local().join("turnstile")
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
    /// The folder of kept copies: our versions of files that a person edited before recovery wrote them.
    pub fn kept(&self) -> PathBuf {
        self.local().join("kept")
    }

    pub fn journal_paths(&self) -> JournalPaths {
        JournalPaths {
            root: self.dir.clone(),
            temp: self.temp(),
            kept: self.kept(),
            allows: is_allowed_change,
        }
    }

    /// Fails if a folder is a symbolic link, which could redirect writes and deletions to another place.
    /// Takes the rights of other users from the local folder, so that they cannot hold its locks.
    pub fn check_folders(&self) -> Result<()> {
        self.check_workspace_dir()?;
        check_links(&[self.trash(), self.nodes(), self.temp(), self.kept()])?;
        check_local(&self.local())
    }

    /// Fails if the folder of the workspace is a symbolic link, or the store is. For readers of `Workspace.md` alone.
    pub fn check_workspace_dir(&self) -> Result<()> {
        check_links(&[self.store().to_owned(), self.dir.clone()])
    }

    /// Returns the name of the folder, which is the id of the workspace.
    pub fn name(&self) -> String {
        self.dir.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Returns the trash of the project.
    pub fn trash(&self) -> PathBuf {
        self.store().join(".trash")
    }

    /// Returns the project store that contains the workspace.
    fn store(&self) -> &Path {
        self.dir.parent().unwrap_or(&self.dir)
    }

    /// Returns the trash path of a removed node folder for the journal, relative to the workspace folder.
    pub fn trash_in_journal(&self, now: Millis, seq: u64, id: &NodeId) -> String {
        let workspace = self.name();
        format!("../.trash/{}/{id}", trash_name(now, &format!("{NODES_OF}{workspace}.{seq}")))
    }

    /// Returns the project folder, if the workspace is inside one.
    pub fn project(&self) -> Option<&Path> {
        self.dir.parent()?.parent()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn journal_move_is_allowed_only_to_own_folder_in_trash() {
        let layout = Layout::new(PathBuf::from("/p/.tanmi-workspace/ws-a"));
        let own = layout.trash_in_journal(1_765_432_100_000, 7, &NodeId::root());
        let is_allowed =
            |to: &str| is_allowed_change(&Change::Move { from: "nodes/root".into(), to: to.into() });
        assert!(is_allowed(&own), "{own}");
        let long = format!("../.trash/{}/root", "x".repeat(201));
        let refused = [
            "../.trash/1/node-other",
            "../.trash/1/root/x",
            "../.trash/../root",
            "../.trash//root",
            "../.trash/root",
            "../.trash/..\\..\\x/root",
            "../.trash/c:x/root",
            "../.trash/1\0/root",
            &long,
        ];
        for to in refused {
            assert!(!is_allowed(to), "{to:?}");
        }
    }
}
