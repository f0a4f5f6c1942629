//! Following a workspace from outside, for whoever shows it live: what the journal tells of finished changes, and
//! what a comparison of all files tells of a person's. Reads only, and takes no lock.

use std::collections::HashMap;

use tanmi_base::fs::FileSig;
use tanmi_base::journal::{self, JournalTail};

use super::layout::Layout;
use super::{FileStore, scan};
use crate::error::{Error, Result};
use crate::model::{NodeId, WorkspaceId};

/// The name under which the workspace's own file is told of.
const WORKSPACE: &str = "workspace";

/// Something happened in a workspace. Nodes are ids, or `workspace` for its own file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreEvent {
    Change {
        seq: u64,
        nodes: Vec<String>,
    },
    /// Somebody changed files by other means than this program.
    Edit {
        nodes: Vec<String>,
    },
    /// It is not known what happened up to this change.
    Gap {
        seq: u64,
    },
}

pub struct Follower {
    layout: Layout,
    tail: JournalTail,
    sigs: HashMap<String, FileSig>,
}

impl FileStore {
    /// Follows a workspace from here on, or, one that was not there before, from its beginning.
    pub fn follow(&self, id: &WorkspaceId, from_start: bool) -> Follower {
        let layout = self.layout(id);
        let tail =
            if from_start { JournalTail::from_start } else { JournalTail::from_end }(&layout.journal());
        let sigs = signatures(&layout).unwrap_or_default();
        Follower { layout, tail, sigs }
    }
}

impl Follower {
    /// What was finished since the last call. Costs one look at the journal if nothing was.
    pub fn changes(&mut self) -> Result<Vec<StoreEvent>> {
        let told = self.tail.poll().map_err(Error::io(self.layout.journal()))?;
        let mut happened = Vec::with_capacity(told.len());
        for told in told {
            happened.push(match told {
                journal::JournalEvent::Gap { seq } => StoreEvent::Gap { seq },
                journal::JournalEvent::Change { seq, paths } => {
                    let nodes: Vec<String> = paths.iter().filter_map(|path| name_of(path)).collect();
                    nodes.iter().for_each(|node| self.look(node));
                    StoreEvent::Change { seq, nodes }
                }
            });
        }
        Ok(happened)
    }

    /// What a person changed since the last call. Looks at every file. A change of the program's that has not been
    /// told yet may be told here too, and then once more with its number.
    pub fn edits(&mut self) -> Result<Option<StoreEvent>> {
        let now = signatures(&self.layout)?;
        let changed =
            now.iter().filter(|(name, sig)| self.sigs.get(*name) != Some(sig)).map(|(name, _)| name);
        let gone = self.sigs.keys().filter(|name| !now.contains_key(*name));
        let mut nodes: Vec<String> = changed.chain(gone).cloned().collect();
        nodes.sort();
        self.sigs = now;
        Ok((!nodes.is_empty()).then_some(StoreEvent::Edit { nodes }))
    }

    fn look(&mut self, name: &str) {
        let path = match NodeId::parse(name) {
            Ok(id) => self.layout.node_md(&id),
            Err(_) => self.layout.workspace_md(),
        };
        match FileSig::of(&path).ok().flatten() {
            Some(sig) => self.sigs.insert(name.to_owned(), sig),
            None => self.sigs.remove(name),
        };
    }
}

fn signatures(layout: &Layout) -> Result<HashMap<String, FileSig>> {
    let nodes = scan::node_ids(layout)?.into_iter();
    let nodes = nodes.filter_map(|id| Some((id.to_string(), FileSig::of(&layout.node_md(&id)).ok()??)));
    let own = FileSig::of(&layout.workspace_md()).ok().flatten().map(|sig| (WORKSPACE.to_owned(), sig));
    Ok(nodes.chain(own).collect())
}

/// `nodes/<id>/Node.md`, `nodes/<id>` or `Workspace.md`.
fn name_of(path: &str) -> Option<String> {
    if path == "Workspace.md" {
        return Some(WORKSPACE.to_owned());
    }
    let id = path.strip_prefix("nodes/")?.split('/').next()?;
    NodeId::parse(id).ok().map(|id| id.to_string())
}
