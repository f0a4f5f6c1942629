//! Updates the index after changes of the files by people, git or editors.
//!
//! Each read of a node compares the index with its file ([`verify`], [`is_current`]). A full scan compares
//! all other files. It runs when a fingerprint shows that files changed, and before a write if the last scan
//! is older than a minute.

use std::collections::HashMap;
use std::path::Path;

use tanmi_base::fs::{self, FileSig};
use tanmi_base::journal::ExpectedFile;
use tanmi_base::{Bilingual, Millis};
use tanmi_index::{NodeIndex, NodeQuery, NodeRow};

use super::layout::{Layout, NODE_MD};
use crate::codec::{self, Document, ParseError};
use crate::error::{Error, Result};
use crate::model::*;
use crate::store::{Access, BranchCounts, BranchSums, NodeBrief, SiblingPosition};

const SCAN_EVERY: Millis = 60_000;

/// A node file as it was read.
pub struct LoadedNode {
    pub doc: Document,
    pub node: Node,
    pub before: ExpectedFile,
}

/// Returns whether a full scan is due: a fingerprint changed, or the last scan is too old for a write.
pub fn is_due(known: &HashMap<String, String>, layout: &Layout, access: Access, now: Millis) -> Result<bool> {
    if known.get("nodes") != Some(&folder_fingerprint(layout)?)
        || known.get("git") != Some(&git_fingerprint(layout))
    {
        return Ok(true);
    }
    let last: Millis = known.get("scannedAt").and_then(|at| at.parse().ok()).unwrap_or(0);
    Ok(access == Access::Write && !(0..SCAN_EVERY).contains(&(now - last)))
}

/// Compares every file with the index and reads those that differ.
pub fn rescan(index: &NodeIndex, layout: &Layout, now: Millis) -> Result<()> {
    index.begin()?;
    match scan_files(index, layout, now) {
        Ok(()) => Ok(index.commit()?),
        Err(error) => {
            index.rollback();
            Err(error)
        }
    }
}

fn scan_files(index: &NodeIndex, layout: &Layout, now: Millis) -> Result<()> {
    // Read before the scan, so that changes during the scan make the next scan due.
    let folder = folder_fingerprint(layout)?;
    let git = git_fingerprint(layout);
    let mut known: HashMap<String, FileSig> = index.signatures()?.into_iter().collect();
    for id in node_ids(layout)? {
        let sig = sig_of(&layout.node_md(&id));
        let known_sig = known.remove(id.as_str());
        match sig {
            None if known_sig.is_some() => index.remove(id.as_str())?,
            // A folder without its file is not a node.
            None => {}
            Some(sig) if known_sig == Some(sig) => {}
            Some(_) => {
                refresh(index, layout, &id)?;
            }
        }
    }
    for id in known.keys() {
        index.remove(id)?;
    }
    index.set_meta("nodes", &folder)?;
    index.set_meta("git", &git)?;
    index.set_meta("scannedAt", &now.to_string())?;
    index.set_meta("activeAt", &index.last_update()?.to_string())?;
    Ok(())
}

/// Returns the ids of all node folders.
pub fn node_ids(layout: &Layout) -> Result<Vec<NodeId>> {
    node_ids_in(&layout.nodes())
}

/// Returns the ids of the nodes whose folders are in this folder.
pub fn node_ids_in(dir: &Path) -> Result<Vec<NodeId>> {
    let entries = match std::fs::read_dir(dir) {
        Err(error) if fs::is_absent(&error) => return Ok(Vec::new()),
        other => other.map_err(Error::io(dir))?,
    };
    Ok(entries.flatten().filter_map(|entry| NodeId::parse(entry.file_name().to_str()?).ok()).collect())
}

/// Returns the signature of a node file. A file whose metadata cannot be read counts as present, so that it is reported
/// as damaged.
fn sig_of(path: &Path) -> Option<FileSig> {
    FileSig::of(path).unwrap_or(Some(FileSig::default()))
}

/// Returns whether the row of a node agrees with its current file.
pub fn is_current(layout: &Layout, id: &NodeId, row: Option<&NodeRow>) -> bool {
    sig_of(&layout.node_md(id)) == row.map(|row| row.sig)
}

/// Returns the row of a node, updated to its current file. `None` if there is no file.
pub fn verify(
    index: &NodeIndex,
    layout: &Layout,
    id: &NodeId,
    row: Option<NodeRow>,
) -> Result<Option<NodeRow>> {
    match (sig_of(&layout.node_md(id)), row) {
        (Some(sig), Some(row)) if row.sig == sig => Ok(Some(row)),
        (Some(_), _) => refresh(index, layout, id),
        (None, Some(_)) => {
            index.remove(id.as_str())?;
            Ok(None)
        }
        (None, None) => Ok(None),
    }
}

/// Reads the file of a node and updates its row.
pub fn refresh(index: &NodeIndex, layout: &Layout, id: &NodeId) -> Result<Option<NodeRow>> {
    let old_row = index.get(id.as_str())?;
    let row = match load(layout, id)? {
        None => {
            index.remove(id.as_str())?;
            return Ok(None);
        }
        Some(Ok(loaded)) => row_after_edit(&loaded, old_row.as_ref()),
        // The last known values still contain its parent.
        Some(Err((error, sig))) => {
            let unknown = || NodeRow {
                id: id.to_string(),
                parent: if id.is_root() { String::new() } else { String::from("root") },
                order: i64::MAX,
                title: id.to_string(),
                kind: NodeType::Execution.to_string(),
                status: NodeStatus::Pending.to_string(),
                // Unknown. `true` prevents that the context of ancestors leaks into an isolated node.
                isolated: true,
                ..NodeRow::default()
            };
            NodeRow { sig, damage: Some(error.to_index_text()), ..old_row.unwrap_or_else(unknown) }
        }
    };
    index.put(&row)?;
    Ok(Some(row))
}

/// Returns the row of a file that may have been edited by hand. The program updates index and file together, so a log
/// that is longer than the index knows, or another status with the same time, was written by hand. It counts from the
/// modification time of the file.
pub fn row_after_edit(loaded: &LoadedNode, old_row: Option<&NodeRow>) -> NodeRow {
    let mut row = row_of(&loaded.node, loaded.before.sig);
    let Some(old) = old_row else { return row };
    let edited_at = loaded.before.sig.mtime_ns / 1_000_000;
    let has_new_log = old.damage.is_none() && row.log_len > old.log_len;
    let has_new_status = old.damage.is_none() && row.status != old.status;
    row.last_log_at = row.last_log_at.max(old.last_log_at).max(if has_new_log { edited_at } else { 0 });
    if row.status_changed_at <= old.status_changed_at {
        row.status_changed_at = if has_new_status { edited_at } else { old.status_changed_at };
    }
    row
}

/// Sets the times of manual edits, which the file does not contain yet.
pub fn add_edit_times(node: &mut Node, row: &NodeRow) {
    if row.last_log_at > 0 {
        node.activity.last_log_at = Some(row.last_log_at);
    }
    if row.status_changed_at > NodeBrief::of(node).status_changed_at {
        node.status_changed_at = Some(row.status_changed_at);
    }
}

pub type Damage = (ParseError, FileSig);

/// Reads and parses a node file. `None` if there is none.
pub fn load(layout: &Layout, id: &NodeId) -> Result<Option<Result<LoadedNode, Damage>>> {
    load_from(&layout.nodes(), id)
}

/// Same as [`load`], from another folder that contains the folders of nodes.
pub fn load_from(nodes: &Path, id: &NodeId) -> Result<Option<Result<LoadedNode, Damage>>> {
    let dir = nodes.join(id.as_str());
    let path = dir.join(NODE_MD);
    let read = fs::check_folder(&dir).and_then(|()| fs::read_regular(&path, super::MAX_BYTES));
    let (bytes, sig) = match read {
        Ok(Some(read)) => read,
        Ok(None) => return Ok(None),
        Err(error) => {
            let sig = sig_of(&path).unwrap_or_default();
            let reason = fs::refusal(&error).cloned();
            let reason = reason.unwrap_or_else(|| Bilingual::new(error.to_string(), error.to_string()));
            return Ok(Some(Err((ParseError { line: 1, reason }, sig))));
        }
    };
    let parsed = Document::parse(&bytes).and_then(|doc| Ok((codec::read_node(&doc, id)?, doc)));
    Ok(Some(match parsed {
        Ok((node, doc)) => Ok(LoadedNode { doc, node, before: ExpectedFile::of(sig, &bytes) }),
        Err(error) => Err((error, sig)),
    }))
}

/// Reads `Workspace.md`. `None` if it is missing or cannot be parsed, or if its folder is a symbolic link.
pub fn read_workspace(layout: &Layout, id: &WorkspaceId) -> Option<Workspace> {
    layout.check_workspace_dir().ok()?;
    let (bytes, _) = read_with_sig(&layout.workspace_md()).ok()??;
    codec::read_workspace(&Document::parse(&bytes).ok()?, id).ok()
}

/// Returns the bytes and the signature of the same open file.
pub fn read_with_sig(path: &Path) -> Result<Option<(Vec<u8>, FileSig)>> {
    fs::read_regular(path, super::MAX_BYTES).map_err(Error::io(path))
}

pub fn row_of(node: &Node, sig: FileSig) -> NodeRow {
    let brief = NodeBrief::of(node);
    NodeRow {
        id: node.id.to_string(),
        parent: node.parent_id.as_ref().map(NodeId::to_string).unwrap_or_default(),
        order: brief.position.order,
        title: node.title.clone(),
        kind: node.kind.to_string(),
        status: node.status.to_string(),
        role: node.role.map(|role| role.to_string()).unwrap_or_default(),
        isolated: node.isolated,
        has_problem: brief.has_problem,
        created_at: node.created_at,
        updated_at: node.updated_at,
        status_changed_at: brief.status_changed_at,
        last_log_at: node.activity.last_log_at.unwrap_or(0),
        log_len: node.activity.log.len() as i64,
        depends_on: node.depends_on.iter().map(NodeId::to_string).collect(),
        holder: node.started_by.clone().unwrap_or_default(),
        sig,
        damage: None,
    }
}

/// Converts a row. `None` if it contains unknown words, which this crate never writes.
pub fn brief_of(row: NodeRow) -> Option<NodeBrief> {
    Some(NodeBrief {
        id: NodeId::parse(&row.id).ok()?,
        parent_id: NodeId::parse(&row.parent).ok(),
        kind: NodeType::from_word(&row.kind)?,
        status: NodeStatus::from_word(&row.status)?,
        role: NodeRole::from_word(&row.role),
        position: SiblingPosition { order: row.order, created_at: row.created_at, id: row.id },
        title: row.title,
        isolated: row.isolated,
        has_problem: row.has_problem,
        depends_on: row.depends_on.iter().filter_map(|id| NodeId::parse(id).ok()).collect(),
        holder: Some(row.holder).filter(|holder| !holder.is_empty()),
        updated_at: row.updated_at,
        status_changed_at: row.status_changed_at,
        damage: row.damage.as_deref().map(ParseError::from_index_text),
    })
}

/// Returns a text that changes whenever a folder is added to or removed from `nodes/`.
pub fn folder_fingerprint(layout: &Layout) -> Result<String> {
    let dir = layout.nodes();
    match std::fs::metadata(&dir) {
        Ok(meta) => Ok(format!("{} {}", FileSig::from_metadata(&meta).mtime_ns, fs::link_count(&meta))),
        Err(error) if fs::is_absent(&error) => Ok(String::from("none")),
        Err(error) => Err(Error::io(dir)(error)),
    }
}

/// Returns a text that changes whenever git changes files: checkout, merge, pull, stash.
fn git_fingerprint(layout: &Layout) -> String {
    let Some(git) = layout.project().and_then(tanmi_base::paths::git_dir) else { return String::new() };
    let fingerprint = |name: &str| match FileSig::of(&git.join(name)) {
        Ok(Some(sig)) => format!("{}.{}.{}", sig.mtime_ns, sig.size, sig.inode),
        _ => String::from("-"),
    };
    format!("{} {} {}", fingerprint("HEAD"), fingerprint("logs/HEAD"), fingerprint("index"))
}

/// Counts what is below each node that has children, from the index alone.
pub fn branches(index: &NodeIndex) -> Result<HashMap<NodeId, BranchCounts>> {
    let mut sums = BranchSums::default();
    for row in index.branches()? {
        let Ok(id) = NodeId::parse(&row.id) else { continue };
        if let Ok(parent) = NodeId::parse(&row.parent) {
            sums.set_parent(&id, &parent);
        }
        if let Some(status) = NodeStatus::from_word(&row.status) {
            sums.add_children(&id, status, row.children);
        }
    }
    for row in index.select(&NodeQuery::WithProblem, usize::MAX)? {
        if let Ok(parent) = NodeId::parse(&row.parent) {
            sums.add_problem(&parent);
        }
    }
    Ok(sums.finish())
}
