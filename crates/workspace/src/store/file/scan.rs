//! Keeping the index as the files are. People edit, git checks out, editors save: the index only follows.
//!
//! A node that is read is compared with its file each time ([`verify`]). Everything else is compared by a full scan,
//! which runs when a sign says that something moved, and at most once a minute before a write.

use std::collections::HashMap;

use tanmi_base::Millis;
use tanmi_base::fs::{self, FileSig};
use tanmi_base::journal::ExpectedFile;
use tanmi_index::{NodeIndex, NodeRow};

use super::layout::Layout;
use crate::codec::{self, Document, ParseError};
use crate::error::{Error, Result};
use crate::model::*;
use crate::store::{Access, NodeBrief, SiblingPosition};

const SCAN_EVERY: Millis = 60_000;

/// A node file as it was read.
pub struct LoadedNode {
    pub doc: Document,
    pub node: Node,
    pub before: ExpectedFile,
}

/// Whether any sign says that files changed which nobody has read since.
pub fn is_due(known: &HashMap<String, String>, layout: &Layout, access: Access, now: Millis) -> Result<bool> {
    if known.get("nodes") != Some(&folder_sign(layout)?) || known.get("git") != Some(&git_sign(layout)) {
        return Ok(true);
    }
    let last: Millis = known.get("scannedAt").and_then(|at| at.parse().ok()).unwrap_or(0);
    Ok(access == Access::Write && !(0..SCAN_EVERY).contains(&(now - last)))
}

/// Compares every file with the index and reads those that differ.
pub fn full(index: &NodeIndex, layout: &Layout, now: Millis) -> Result<()> {
    index.begin()?;
    match scan(index, layout, now) {
        Ok(()) => Ok(index.commit()?),
        Err(error) => {
            index.rollback();
            Err(error)
        }
    }
}

fn scan(index: &NodeIndex, layout: &Layout, now: Millis) -> Result<()> {
    // Taken first: what changes during the scan makes the next one due.
    let folder = folder_sign(layout)?;
    let git = git_sign(layout);
    let mut known: HashMap<String, FileSig> = index.signatures()?.into_iter().collect();
    for id in node_ids(layout)? {
        let sig = sig_of(layout, &id);
        let was = known.remove(id.as_str());
        match sig {
            None if was.is_some() => index.remove(id.as_str())?,
            // A folder without its file is not a node.
            None => {}
            Some(sig) if was == Some(sig) => {}
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

/// The ids of all node folders.
pub fn node_ids(layout: &Layout) -> Result<Vec<NodeId>> {
    let dir = layout.nodes();
    let entries = match std::fs::read_dir(&dir) {
        Err(error) if fs::is_absent(&error) => return Ok(Vec::new()),
        other => other.map_err(Error::io(&dir))?,
    };
    Ok(entries.flatten().filter_map(|entry| NodeId::parse(entry.file_name().to_str()?).ok()).collect())
}

/// What cannot even be looked at is there and damaged.
fn sig_of(layout: &Layout, id: &NodeId) -> Option<FileSig> {
    FileSig::of(&layout.node_md(id)).unwrap_or(Some(FileSig::default()))
}

/// The row of a node, certainly as its file is now. `None` if there is no file.
pub fn verify(
    index: &NodeIndex,
    layout: &Layout,
    id: &NodeId,
    row: Option<NodeRow>,
) -> Result<Option<NodeRow>> {
    match (sig_of(layout, id), row) {
        (Some(sig), Some(row)) if row.sig == sig => Ok(Some(row)),
        (Some(_), _) => refresh(index, layout, id),
        (None, Some(_)) => {
            index.remove(id.as_str())?;
            Ok(None)
        }
        (None, None) => Ok(None),
    }
}

/// Reads the file and puts its row right.
pub fn refresh(index: &NodeIndex, layout: &Layout, id: &NodeId) -> Result<Option<NodeRow>> {
    let was = index.get(id.as_str())?;
    let row = match load(layout, id)? {
        None => {
            index.remove(id.as_str())?;
            return Ok(None);
        }
        Some(Ok(loaded)) => {
            let mut row = row_of(&loaded.node, loaded.before.sig);
            row.last_log_at = row.last_log_at.max(hand_logged(was.as_ref(), &loaded));
            row
        }
        // The last that was known of it still tells where it hangs.
        Some(Err((error, sig))) => {
            let unknown = || NodeRow {
                id: id.to_string(),
                parent: if id.is_root() { String::new() } else { String::from("root") },
                order: i64::MAX,
                title: id.to_string(),
                kind: NodeType::Execution.to_string(),
                status: NodeStatus::Pending.to_string(),
                // Nobody knows whether it was, and what it may have kept apart must not leak.
                isolated: true,
                ..NodeRow::default()
            };
            NodeRow {
                sig,
                damage: Some(format!("{}: {}", error.line, error.reason)),
                ..was.unwrap_or_else(unknown)
            }
        }
    };
    index.put(&row)?;
    Ok(Some(row))
}

/// When a person wrote a log line into the file by hand: the program's own writes keep index and file in step, so a
/// longer log in a file we did not write is somebody's.
fn hand_logged(was: Option<&NodeRow>, now: &LoadedNode) -> Millis {
    match was {
        Some(was) if was.damage.is_none() && now.node.activity.log.len() as i64 > was.log_len => {
            (now.before.sig.mtime_ns / 1_000_000).max(was.last_log_at)
        }
        Some(was) => was.last_log_at,
        None => 0,
    }
}

pub type Damage = (ParseError, FileSig);

/// Reads and parses one node file. `None` if there is none.
pub fn load(layout: &Layout, id: &NodeId) -> Result<Option<Result<LoadedNode, Damage>>> {
    let path = layout.node_md(id);
    // A link would lead out of the store, a pipe would never end.
    let is_file = |path: &std::path::Path| std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file());
    let read = match std::fs::symlink_metadata(&path) {
        Err(error) if fs::is_absent(&error) => return Ok(None),
        _ if fs::is_link(&layout.node_dir(id)) || !is_file(&path) => {
            Err(String::from("not a regular file in a folder of its own"))
        }
        _ => read_with_sig(&path).map_err(|error| error.to_string()),
    };
    let (bytes, sig) = match read {
        Ok(Some(read)) => read,
        Ok(None) => return Ok(None),
        Err(reason) => {
            let sig = sig_of(layout, id).unwrap_or_default();
            return Ok(Some(Err((ParseError::new(1, reason), sig))));
        }
    };
    let parsed = Document::parse(&bytes).and_then(|doc| Ok((codec::read_node(&doc, id)?, doc)));
    Ok(Some(match parsed {
        Ok((node, doc)) => Ok(LoadedNode { doc, node, before: ExpectedFile::of(sig, &bytes) }),
        Err(error) => Err((error, sig)),
    }))
}

/// The bytes and the identity of one and the same file.
pub fn read_with_sig(path: &std::path::Path) -> Result<Option<(Vec<u8>, FileSig)>> {
    use std::io::Read;
    let refused = |why: &str| Error::io(path)(std::io::Error::new(std::io::ErrorKind::InvalidData, why));
    // A link would lead out of the store, a pipe would never end.
    match std::fs::symlink_metadata(path) {
        Err(error) if fs::is_absent(&error) => return Ok(None),
        Ok(meta) if !meta.is_file() => return Err(refused("not a regular file")),
        Ok(meta) if meta.len() > super::MAX_BYTES => {
            return Err(refused(&format!("longer than {} bytes", super::MAX_BYTES)));
        }
        _ => {}
    }
    let mut file = match std::fs::File::open(path) {
        Err(error) if fs::is_absent(&error) => return Ok(None),
        other => other.map_err(Error::io(path))?,
    };
    let meta = file.metadata().map_err(Error::io(path))?;
    let mut bytes = Vec::with_capacity(usize::try_from(meta.len().min(super::MAX_BYTES)).unwrap_or(0));
    Read::take(&mut file, super::MAX_BYTES).read_to_end(&mut bytes).map_err(Error::io(path))?;
    Ok(Some((bytes, FileSig::from_metadata(&meta))))
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
        sig,
        damage: None,
    }
}

/// Rows hold words that this crate wrote; one that is none of ours means a foreign index, which a rebuild cures.
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
        updated_at: row.updated_at,
        status_changed_at: row.status_changed_at,
        damage: row.damage,
    })
}

/// Changes whenever a folder is added to or removed from `nodes/`.
pub fn folder_sign(layout: &Layout) -> Result<String> {
    let dir = layout.nodes();
    match std::fs::metadata(&dir) {
        Ok(meta) => Ok(format!("{} {}", FileSig::from_metadata(&meta).mtime_ns, fs::link_count(&meta))),
        Err(error) if fs::is_absent(&error) => Ok(String::from("none")),
        Err(error) => Err(Error::Io { path: dir, source: error }),
    }
}

/// Changes whenever git touches the files: a checkout, a merge, a pull, a stash.
fn git_sign(layout: &Layout) -> String {
    let Some(git) = layout.project().and_then(tanmi_base::paths::git_dir) else { return String::new() };
    let sign = |name: &str| match FileSig::of(&git.join(name)) {
        Ok(Some(sig)) => format!("{}.{}.{}", sig.mtime_ns, sig.size, sig.inode),
        _ => String::from("-"),
    };
    format!("{} {} {}", sign("HEAD"), sign("logs/HEAD"), sign("index"))
}
