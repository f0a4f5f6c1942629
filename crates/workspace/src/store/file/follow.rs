//! Follows the changes of a workspace, for live views. Committed changes come from the journal; manual edits are found
//! by comparing all files. Only reads, and takes no lock.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use tanmi_base::fs::FileSig;
use tanmi_base::journal::{self, JournalTail};

use super::layout::Layout;
use super::{FileStore, scan};
use crate::error::{Error, Result};
use crate::model::{NodeId, WorkspaceId};
use crate::store::feed::WORKSPACE;
use crate::store::{ChangeFeed, FeedStart, StoreEvent, Subscription};

/// Reports changes of one workspace since the last call.
struct Follower {
    layout: Layout,
    tail: JournalTail,
    sigs: HashMap<String, FileSig>,
}

impl ChangeFeed for FileStore {
    fn ids(&self) -> Result<Vec<WorkspaceId>> {
        self.workspace_ids()
    }

    fn subscribe(&self, id: &WorkspaceId, from: FeedStart) -> Box<dyn Subscription> {
        let layout = self.layout(id);
        let tail = match from {
            FeedStart::Now => JournalTail::from_end(&layout.journal()),
            FeedStart::After(seq) => JournalTail::after(&layout.journal(), seq),
        };
        let sigs = signatures(&layout).unwrap_or_default();
        Box::new(Follower { layout, tail, sigs })
    }

    fn revisions(&self, id: &WorkspaceId) -> Result<BTreeMap<String, u64>> {
        let revision = |(name, sig): (String, FileSig)| {
            let mut hasher = DefaultHasher::new();
            (sig.mtime_ns, sig.size, sig.inode).hash(&mut hasher);
            (name, hasher.finish())
        };
        Ok(signatures(&self.layout(id))?.into_iter().map(revision).collect())
    }
}

impl Subscription for Follower {
    /// Checks only the journal file if there are no changes.
    fn changes(&mut self) -> Result<Vec<StoreEvent>> {
        let journal_events = self.tail.poll().map_err(Error::io(self.layout.journal()))?;
        let mut events = Vec::with_capacity(journal_events.len());
        for event in journal_events {
            events.push(match event {
                journal::JournalEvent::Gap { seq } => StoreEvent::Gap { seq },
                journal::JournalEvent::Change { seq, paths } => {
                    let nodes: Vec<String> = paths.iter().filter_map(|path| name_of(path)).collect();
                    nodes.iter().for_each(|node| self.update_signature(node));
                    StoreEvent::Change { seq, nodes }
                }
            });
        }
        Ok(events)
    }

    /// Checks every file.
    fn edits(&mut self) -> Result<Option<StoreEvent>> {
        let now = signatures(&self.layout)?;
        let changed =
            now.iter().filter(|(name, sig)| self.sigs.get(*name) != Some(sig)).map(|(name, _)| name);
        let deleted = self.sigs.keys().filter(|name| !now.contains_key(*name));
        let mut nodes: Vec<String> = changed.chain(deleted).cloned().collect();
        nodes.sort();
        self.sigs = now;
        Ok((!nodes.is_empty()).then_some(StoreEvent::Edit { nodes }))
    }
}

impl Follower {
    fn update_signature(&mut self, name: &str) {
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

/// Returns the event name of `nodes/<id>/Node.md`, `nodes/<id>` or `Workspace.md`.
fn name_of(path: &str) -> Option<String> {
    if path == "Workspace.md" {
        return Some(WORKSPACE.to_owned());
    }
    let id = path.strip_prefix("nodes/")?.split('/').next()?;
    NodeId::parse(id).ok().map(|id| id.to_string())
}
