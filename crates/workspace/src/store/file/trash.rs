//! The trash of a project: deleted workspaces, and folders of nodes that were deleted together.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use tanmi_base::{Millis, fs};

use super::FileStore;
use super::layout::{Layout, NODE_MD, NODES_OF, trashed_at};
use super::scan::{self, LoadedNode};
use crate::error::{Error, Result};
use crate::model::*;
use crate::store::TrashEntry;

/// A folder with the nodes that one change deleted.
pub struct DeletedNodes {
    pub deleted_at: Millis,
    /// The nodes that do not exist now and were not deleted again later.
    pub nodes: Vec<Rc<LoadedNode>>,
    dir: PathBuf,
}

impl DeletedNodes {
    /// Returns the folders of nodes that were deleted from a workspace, the latest first. A folder is read when the
    /// iterator reaches it.
    pub fn of_workspace(layout: &Layout) -> Result<impl Iterator<Item = Result<DeletedNodes>>> {
        let prefix = format!("{NODES_OF}{}.", layout.name());
        let mut dirs: Vec<(Millis, PathBuf)> = Vec::new();
        for (at, name, path) in entries(&layout.trash())? {
            if name.starts_with(&prefix) {
                dirs.push((at, path));
            }
        }
        dirs.sort();
        let (live, mut seen) = (layout.clone(), BTreeSet::new());
        Ok(dirs.into_iter().rev().map(move |(at, dir)| {
            let mut deleted = DeletedNodes::read(&live, at, dir)?;
            deleted.nodes.retain(|loaded| seen.insert(loaded.node.id.clone()));
            Ok(deleted)
        }))
    }

    fn read(live: &Layout, deleted_at: Millis, dir: PathBuf) -> Result<DeletedNodes> {
        fs::check_folder(&dir).map_err(Error::io(&dir))?;
        let mut nodes = Vec::new();
        for id in scan::node_ids_in(&dir)? {
            match scan::load_from(&dir, &id)? {
                Some(Ok(loaded)) if !live.node_md(&id).exists() => nodes.push(Rc::new(loaded)),
                Some(Err((error, _))) => {
                    let path = dir.join(id.as_str()).join(NODE_MD);
                    return Err(Error::corrupt(&path, error.line, error.reason));
                }
                _ => {}
            }
        }
        nodes.sort_by(|a, b| a.node.id.cmp(&b.node.id));
        Ok(DeletedNodes { deleted_at, nodes, dir })
    }

    /// Moves files that a person put beside nodes back to their folders. The nodes themselves were written anew. What
    /// cannot be moved stays in the trash.
    pub fn move_other_files<'a>(&self, live: &Layout, ids: impl Iterator<Item = &'a NodeId>) {
        for id in ids {
            let from = self.dir.join(id.as_str());
            for entry in std::fs::read_dir(&from).into_iter().flatten().flatten() {
                let to = live.node_dir(id).join(entry.file_name());
                if entry.file_name() != NODE_MD && !to.exists() {
                    let _ = std::fs::rename(entry.path(), to);
                }
            }
        }
    }

    /// Returns the nodes whose parents were not deleted with them.
    fn tops(&self) -> impl Iterator<Item = &Node> {
        let nodes = || self.nodes.iter().map(|loaded| &loaded.node);
        nodes().filter(move |node| nodes().all(|other| Some(&other.id) != node.parent_id.as_ref()))
    }
}

/// Returns the time, the rest of the name and the path of each entry of the trash.
fn entries(trash: &Path) -> Result<Vec<(Millis, String, PathBuf)>> {
    let entries = match std::fs::read_dir(trash) {
        Err(error) if fs::is_absent(&error) => return Ok(Vec::new()),
        other => other.map_err(Error::io(trash))?,
    };
    let entry = |entry: std::fs::DirEntry| {
        let name = entry.file_name();
        let at = trashed_at(&name)?;
        Some((at, name.to_str()?.split_once('-')?.1.to_owned(), entry.path()))
    };
    Ok(entries.flatten().filter_map(entry).collect())
}

impl FileStore {
    /// Returns what is in the trash, the latest deletion first. What cannot be read is left out.
    pub(super) fn read_trash(&self) -> Result<Vec<TrashEntry>> {
        self.place.check()?;
        let project = self.project_layout();
        project.check_folders()?;
        let mut found = Vec::new();
        for (deleted_at, name, path) in entries(&project.trash())? {
            let Ok(id) = WorkspaceId::parse(&name) else { continue };
            let layout = Layout::new(path);
            if let Some(workspace) = scan::read_workspace(&layout, &id).filter(|_| !self.layout(&id).exists())
            {
                let count = scan::node_ids(&layout)?.len().saturating_sub(1);
                found.push(TrashEntry {
                    workspace_id: id,
                    node_id: None,
                    title: workspace.name,
                    count,
                    deleted_at,
                });
            }
        }
        for id in self.workspace_ids()? {
            for deleted in DeletedNodes::of_workspace(&self.layout(&id))?.flatten() {
                found.extend(deleted.tops().map(|node| deleted.entry(&id, node)));
            }
        }
        found.sort_by_key(|entry| std::cmp::Reverse(entry.deleted_at));
        // A workspace can be in the trash several times if it was restored by hand.
        let mut seen = BTreeSet::new();
        found.retain(|entry| entry.node_id.is_some() || seen.insert(entry.workspace_id.clone()));
        Ok(found)
    }
}

impl DeletedNodes {
    fn entry(&self, id: &WorkspaceId, node: &Node) -> TrashEntry {
        let nodes = self.nodes.iter().map(|loaded| loaded.node.clone()).collect();
        TrashEntry {
            workspace_id: id.clone(),
            node_id: Some(node.id.clone()),
            title: node.title.clone(),
            count: crate::ops::subtree_of(&node.id, nodes).len(),
            deleted_at: self.deleted_at,
        }
    }
}
