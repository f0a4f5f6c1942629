//! The transaction of the file store.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use tanmi_base::fs::FileSig;
use tanmi_base::journal::{ExpectedFile, Journal};
use tanmi_base::lock::Lock;
use tanmi_base::{Bilingual, Millis, id};
use tanmi_index::{NodeIndex, NodeQuery, NodeRow, RowPosition};

use super::FileStore;
use super::layout::Layout;
use super::open::OpenIndex;
use super::scan::{self, LoadedNode};
use super::trash::DeletedNodes;
use crate::codec::{self, Document, ParseError};
use crate::error::{Error, Result};
use crate::model::*;
use crate::ops::{Target, subtree_of};
use crate::store::{
    BranchCounts, NodeBrief, NodeName, NodeRead, NodeSelection, SiblingPosition, StatusCounts, Tx, WORKSPACE,
    walk,
};

mod commit;

/// How a transaction uses the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexMode {
    /// In memory and discarded at the end, because the folder cannot be written.
    Temporary,
    /// Only read: other readers use the same file.
    Shared,
    /// Rows are updated to the current files. This is kept without a commit, because it is valid anyway.
    Refresh,
    /// Written, and kept only by a commit.
    Write,
}

/// The open files of a transaction.
pub struct Opened {
    pub lock: Lock,
    /// `None` if the transaction cannot write.
    pub journal: Option<Journal>,
    pub index: OpenIndex,
    pub mode: IndexMode,
    /// The sequence number of the last change, if it is known.
    pub seq: Option<u64>,
}

pub struct FileTx<'a> {
    store: &'a FileStore,
    id: WorkspaceId,
    layout: Layout,
    journal: Option<Journal>,
    /// Returned to the store at the end, so that it need not be opened again.
    index: Option<OpenIndex>,
    mode: IndexMode,
    seq: Option<u64>,
    now: Millis,
    workspace: OnceCell<LoadedWorkspace>,
    /// The node files that were read; `None` for those that do not exist.
    loaded: RefCell<HashMap<NodeId, Option<Rc<LoadedNode>>>>,
    put_workspace: Option<Workspace>,
    /// `None` means removed.
    put_nodes: BTreeMap<NodeId, Option<Node>>,
    /// Texts that are written as they are, by the name of their document.
    put_texts: BTreeMap<String, String>,
    /// The deletion whose nodes are being restored.
    restored: RefCell<Option<DeletedNodes>>,
    /// Invariant: the last field, so that the lock is released after everything else is dropped.
    _lock: Lock,
}

struct LoadedWorkspace {
    doc: Document,
    workspace: Workspace,
    before: ExpectedFile,
}

impl<'a> FileTx<'a> {
    pub(super) fn new(
        store: &'a FileStore,
        id: WorkspaceId,
        layout: Layout,
        opened: Opened,
        now: Millis,
    ) -> FileTx<'a> {
        let Opened { lock, journal, index, mode, seq } = opened;
        FileTx {
            store,
            id,
            layout,
            journal,
            index: Some(index),
            mode,
            seq,
            now,
            workspace: OnceCell::new(),
            loaded: RefCell::default(),
            put_workspace: None,
            put_nodes: BTreeMap::new(),
            put_texts: BTreeMap::new(),
            restored: RefCell::default(),
            _lock: lock,
        }
    }

    pub(super) fn index(&self) -> Result<&NodeIndex> {
        // Only `commit` takes the index, and it consumes the transaction.
        self.index.as_ref().map(|open| &open.index).ok_or(Error::Conflict { place: self.id.to_string() })
    }

    /// Returns the index for changes of a row.
    fn writable_index(&self) -> Result<&NodeIndex> {
        match self.mode {
            IndexMode::Shared => Err(self.read_only()),
            _ => self.index(),
        }
    }

    fn read_only(&self) -> Error {
        Error::io(self.layout.dir())(std::io::ErrorKind::ReadOnlyFilesystem.into())
    }

    /// Returns the row of a node, which agrees with its current file. Fails with a conflict if the row is outdated and
    /// the index is shared with other readers.
    fn verify(&self, id: &NodeId, row: Option<NodeRow>) -> Result<Option<NodeRow>> {
        match self.mode {
            IndexMode::Shared if scan::is_current(&self.layout, id, row.as_ref()) => Ok(row),
            IndexMode::Shared => Err(Error::Conflict { place: id.to_string() }),
            _ => scan::verify(self.index()?, &self.layout, id, row),
        }
    }

    /// Returns the number of the last change, if it is known.
    pub(super) fn position(&self) -> Option<u64> {
        self.seq
    }

    /// Returns when the workspace or one of its nodes last changed.
    pub(super) fn active_at(&self) -> Result<Millis> {
        Ok(self.index()?.meta("activeAt")?.and_then(|at| at.parse().ok()).unwrap_or_default())
    }

    fn loaded_workspace(&self) -> Result<&LoadedWorkspace> {
        if let Some(loaded) = self.workspace.get() {
            return Ok(loaded);
        }
        let path = self.layout.workspace_md();
        let Some((bytes, sig)) = scan::read_with_sig(&path)? else {
            let reason = Bilingual::new("文件不存在", "the file is missing");
            return Err(Error::corrupt(&path, 1, reason));
        };
        let parsed =
            Document::parse(&bytes).and_then(|doc| Ok((codec::read_workspace(&doc, &self.id)?, doc)));
        match parsed {
            Ok((workspace, doc)) => Ok(self.workspace.get_or_init(|| LoadedWorkspace {
                doc,
                workspace,
                before: ExpectedFile::of(sig, &bytes),
            })),
            Err(error) => Err(Error::corrupt(&path, error.line, error.reason)),
        }
    }

    /// Returns the hash in the file, which can be older than the rules.
    pub(super) fn written_rules_hash(&self) -> Result<String> {
        Ok(self.loaded_workspace()?.doc.get_nullable("rulesHash").unwrap_or_default())
    }

    /// Returns the node file on disk. It is read once per transaction.
    fn loaded_node(&self, id: &NodeId) -> Result<Option<Rc<LoadedNode>>> {
        if let Some(loaded) = self.loaded.borrow().get(id) {
            return Ok(loaded.clone());
        }
        match scan::load(&self.layout, id)? {
            None => {
                self.loaded.borrow_mut().insert(id.clone(), None);
                Ok(None)
            }
            Some(Err((error, _))) => Err(Error::corrupt(&self.layout.node_md(id), error.line, error.reason)),
            Some(Ok(mut loaded)) => {
                let row = self.index()?.get(id.as_str())?;
                let row = match row {
                    Some(row) if row.sig == loaded.before.sig => Some(row),
                    _ if self.mode == IndexMode::Shared => {
                        return Err(Error::Conflict { place: id.to_string() });
                    }
                    _ => scan::refresh(self.index()?, &self.layout, id)?,
                };
                if let Some(row) = &row {
                    scan::add_edit_times(&mut loaded.node, row);
                }
                let loaded = Rc::new(loaded);
                self.loaded.borrow_mut().insert(id.clone(), Some(loaded.clone()));
                Ok(Some(loaded))
            }
        }
    }

    /// Updates rows to the current files and returns those that still satisfy `belongs`.
    fn verify_rows(&self, rows: Vec<NodeRow>, belongs: impl Fn(&NodeRow) -> bool) -> Result<Vec<NodeBrief>> {
        let mut briefs = Vec::with_capacity(rows.len());
        for row in rows {
            let Ok(id) = NodeId::parse(&row.id) else { continue };
            let row = if self.put_nodes.contains_key(&id) { Some(row) } else { self.verify(&id, Some(row))? };
            briefs.extend(row.filter(|row| belongs(row)).and_then(scan::brief_of));
        }
        Ok(briefs)
    }

    /// Returns the file of a node in the trash, if the node is being restored.
    fn restored_node(&self, id: &NodeId) -> Option<Rc<LoadedNode>> {
        let restored = self.restored.borrow();
        restored.as_ref()?.nodes.iter().find(|loaded| loaded.node.id == *id).cloned()
    }

    /// Returns up to `limit` nodes of a sorted query that still satisfy `belongs`.
    fn page(
        &self,
        after: Option<&SiblingPosition>,
        limit: usize,
        query: impl Fn(Option<&RowPosition>, usize) -> Result<Vec<NodeRow>>,
        belongs: impl Fn(&NodeRow) -> bool,
    ) -> Result<Vec<NodeBrief>> {
        let mut after = after.map(|position| RowPosition {
            order: position.order,
            created_at: position.created_at,
            id: position.id.clone(),
        });
        let mut found = Vec::new();
        // Rows that no longer belong to the page must not end it early.
        while found.len() < limit {
            let want = limit - found.len();
            let rows = query(after.as_ref(), want)?;
            let is_last = rows.len() < want;
            after = rows.last().map(NodeRow::position).or(after);
            found.extend(self.verify_rows(rows, &belongs)?);
            if is_last {
                break;
            }
        }
        Ok(found)
    }

    /// Writes a document as another store wrote it. `text` is `None` if the document was removed.
    pub(super) fn put_document(&mut self, name: &str, text: Option<&str>) -> Result<()> {
        let place = self.layout.dir().join(name);
        let damaged = |error: ParseError| Error::corrupt(&place, error.line, error.reason);
        let doc = text.map(|text| Document::parse(text.as_bytes())).transpose().map_err(damaged)?;
        match (name, doc) {
            (WORKSPACE, Some(doc)) => {
                self.put_workspace = Some(codec::read_workspace(&doc, &self.id).map_err(damaged)?);
            }
            // A workspace is removed as a whole.
            (WORKSPACE, None) => {}
            (name, None) => {
                let id = NodeId::parse(name)?;
                return match self.loaded_node(&id)? {
                    Some(_) => self.remove_node(&id),
                    None => Ok(()),
                };
            }
            (name, Some(doc)) => {
                let id = NodeId::parse(name)?;
                let node = codec::read_node(&doc, &id).map_err(damaged)?;
                let sig = self.index()?.get(name)?.map(|row| row.sig).unwrap_or_default();
                self.writable_index()?.put(&scan::row_of(&node, sig))?;
                self.put_nodes.insert(id, Some(node));
            }
        }
        if let Some(text) = text {
            self.put_texts.insert(name.to_owned(), text.to_owned());
        }
        Ok(())
    }

    /// Commits the documents of the changes up to `to`, which becomes the number of the last change.
    pub(super) fn commit_up_to(mut self, to: u64) -> Result<()> {
        let (changes, owners) = self.changes()?;
        if let Some(journal) = &mut self.journal {
            journal.skip_to(to.saturating_sub(1));
        }
        self.write(changes, &owners).map(|_| ())
    }
}

pub(super) fn status_counts_from(counts: tanmi_index::StatusCountRows) -> StatusCounts {
    StatusCounts::of(counts.into_iter().filter_map(|(word, n)| Some((NodeStatus::from_word(&word)?, n))))
}

impl Drop for FileTx<'_> {
    fn drop(&mut self) {
        if let Some(open) = self.index.take().filter(|_| self.mode != IndexMode::Temporary) {
            if self.mode == IndexMode::Refresh {
                let _ = open.index.commit();
            }
            self.store.return_index(&self.id, open);
        }
    }
}

impl Tx for FileTx<'_> {
    fn workspace(&self) -> Result<Workspace> {
        match &self.put_workspace {
            Some(workspace) => Ok(workspace.clone()),
            None => Ok(self.loaded_workspace()?.workspace.clone()),
        }
    }

    fn node(&self, id: &NodeId) -> Result<Option<Node>> {
        match self.put_nodes.get(id) {
            Some(put) => Ok(put.clone()),
            None => Ok(self.loaded_node(id)?.map(|loaded| loaded.node.clone())),
        }
    }

    fn nodes(&self, ids: &[NodeId]) -> Result<Vec<NodeRead>> {
        walk::nodes(self, ids)
    }

    fn ancestors(&self, id: &NodeId) -> Result<Vec<NodeBrief>> {
        walk::ancestors(self, id)
    }

    fn subtree(&self, id: &NodeId) -> Result<Vec<NodeBrief>> {
        walk::subtree(self, id)
    }

    fn brief(&self, id: &NodeId) -> Result<Option<NodeBrief>> {
        if let Some(put) = self.put_nodes.get(id) {
            return Ok(put.as_ref().map(NodeBrief::of));
        }
        let row = self.index()?.get(id.as_str())?;
        Ok(self.verify(id, row)?.and_then(scan::brief_of))
    }

    fn children(
        &self,
        parent: &NodeId,
        after: Option<&SiblingPosition>,
        limit: usize,
    ) -> Result<Vec<NodeBrief>> {
        self.page(
            after,
            limit,
            |after, limit| Ok(self.index()?.children(parent.as_str(), after, limit)?),
            |row| row.parent == parent.as_str(),
        )
    }

    fn children_with_counts(
        &self,
        parent: &NodeId,
        after: Option<&SiblingPosition>,
        limit: usize,
    ) -> Result<Vec<(NodeBrief, u64)>> {
        let children = self.children(parent, after, limit)?;
        let ids: Vec<&str> = children.iter().map(|child| child.id.as_str()).collect();
        let counts = self.index()?.child_counts(&ids)?;
        let with_count = |child: NodeBrief| {
            let count = counts.get(child.id.as_str()).copied().unwrap_or(0);
            (child, count)
        };
        Ok(children.into_iter().map(with_count).collect())
    }

    fn recent_children(&self, parent: &NodeId, status: NodeStatus, limit: usize) -> Result<Vec<NodeBrief>> {
        let rows = self
            .index()?
            .select(&NodeQuery::Recent { parent: parent.as_str(), status: status.as_str() }, limit)?;
        self.verify_rows(rows, |row| row.parent == parent.as_str() && row.status == status.as_str())
    }

    fn named(&self, name: &NodeName<'_>, limit: usize) -> Result<Vec<NodeBrief>> {
        let mut rows = Vec::new();
        if id::can_be_suffix(name.text) {
            rows = self.index()?.select(&NodeQuery::IdSuffix { suffix: name.text }, limit)?;
        }
        if name.can_be_title {
            rows.extend(self.index()?.select(&NodeQuery::Title { title: name.text }, limit)?);
        }
        rows.sort_by(|a, b| a.id.cmp(&b.id));
        rows.dedup_by(|a, b| a.id == b.id);
        rows.truncate(limit);
        self.verify_rows(rows, |row| name.matches(&row.id, &row.title))
    }

    fn select(&self, selection: &NodeSelection<'_>, limit: usize) -> Result<Vec<NodeBrief>> {
        let is_done = |row: &NodeRow| NodeStatus::from_word(&row.status).is_some_and(NodeStatus::is_done);
        let query = match selection {
            NodeSelection::Unblocked { parent, after } => {
                let parent = parent.as_str();
                return self.page(
                    *after,
                    limit,
                    |after, limit| {
                        Ok(self.index()?.select(&NodeQuery::Unblocked { parent, after }, limit)?)
                    },
                    |row| row.parent == parent && !is_done(row),
                );
            }
            NodeSelection::Blocked => NodeQuery::Blocked,
            NodeSelection::Held => NodeQuery::Held,
            NodeSelection::Started => NodeQuery::Started,
        };
        self.verify_rows(self.index()?.select(&query, limit)?, |row| !is_done(row))
    }

    fn dependencies(&self) -> Result<Vec<(NodeId, NodeId)>> {
        let pairs = self.index()?.dependencies(None)?.into_iter();
        Ok(pairs
            .filter_map(|(node, on)| Some((NodeId::parse(&node).ok()?, NodeId::parse(&on).ok()?)))
            .collect())
    }

    fn dependents(&self, ids: &[NodeId]) -> Result<Vec<NodeId>> {
        let mut found = BTreeSet::new();
        for id in ids {
            let dependencies = self.index()?.dependencies(Some(id.as_str()))?.into_iter();
            found.extend(dependencies.filter_map(|(dependent, _)| NodeId::parse(&dependent).ok()));
        }
        Ok(found.into_iter().collect())
    }

    fn last_order(&self, parent: &NodeId) -> Result<i64> {
        Ok(self.index()?.last_order(parent.as_str())?)
    }

    fn trashed(&self, id: &NodeId) -> Result<Vec<Node>> {
        for deleted in DeletedNodes::of_workspace(&self.layout)? {
            let deleted = deleted?;
            if deleted.nodes.iter().any(|loaded| loaded.node.id == *id) {
                let nodes = deleted.nodes.iter().map(|loaded| loaded.node.clone()).collect();
                *self.restored.borrow_mut() = Some(deleted);
                return Ok(subtree_of(id, nodes));
            }
        }
        Ok(Vec::new())
    }

    fn status_counts(&self, parent: &NodeId) -> Result<StatusCounts> {
        Ok(status_counts_from(self.index()?.status_counts(parent.as_str())?))
    }

    fn total(&self) -> Result<StatusCounts> {
        Ok(status_counts_from(self.index()?.status_counts("")?))
    }

    fn branches(&self) -> Result<HashMap<NodeId, BranchCounts>> {
        scan::branches(self.index()?)
    }

    fn put_workspace(&mut self, workspace: Workspace) -> Result<()> {
        if self.workspace()? != workspace {
            self.put_workspace = Some(workspace);
        }
        Ok(())
    }

    fn put_node(&mut self, node: Node) -> Result<()> {
        if self.node(&node.id)?.as_ref() != Some(&node) {
            let sig = self.index()?.get(node.id.as_str())?.map(|row| row.sig).unwrap_or_default();
            self.writable_index()?.put(&scan::row_of(&node, sig))?;
            self.put_nodes.insert(node.id.clone(), Some(node));
        }
        Ok(())
    }

    fn add_node(&mut self, node: Node) -> Result<()> {
        if self.put_nodes.contains_key(&node.id) || self.index()?.get(node.id.as_str())?.is_some() {
            return Err(Error::Conflict { place: node.id.to_string() });
        }
        // A file that the index does not know is a conflict when this is committed.
        self.loaded.borrow_mut().insert(node.id.clone(), None);
        self.writable_index()?.put(&scan::row_of(&node, FileSig::default()))?;
        self.put_nodes.insert(node.id.clone(), Some(node));
        Ok(())
    }

    fn append_log(&mut self, target: &Target, entry: LogEntry, at: Millis) -> Result<usize> {
        walk::append_log(self, target, entry, at)
    }

    fn remove_node(&mut self, id: &NodeId) -> Result<()> {
        self.writable_index()?.remove(id.as_str())?;
        self.put_nodes.insert(id.clone(), None);
        Ok(())
    }

    fn commit(mut self: Box<Self>) -> Result<u64> {
        let (changes, owners) = self.changes()?;
        match self.seq.filter(|_| changes.is_empty()) {
            Some(seq) => Ok(seq),
            None => self.write(changes, &owners),
        }
    }
}
