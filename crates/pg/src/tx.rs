//! The transaction on one workspace.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use tanmi_base::{Millis, id};
use tanmi_protocol::{Document, Positions};
use tanmi_workspace::codec;
use tanmi_workspace::error::{Error, Result};
use tanmi_workspace::model::*;
use tanmi_workspace::ops::{Target, subtree_of};
use tanmi_workspace::store::{
    Access, NodeBrief, NodeName, NodeRead, NodeSelection, SiblingPosition, StatusCounts, Tx, WORKSPACE, walk,
};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::contributions::Deed;
use crate::error::conflict;
use crate::flush::{self, Batch, Change, Place, StoredRequest};
use crate::pool::{Pool, PooledConnection};
use crate::replica::READ;
use crate::rows::{self, Loaded};

mod found;
mod request;
mod sql;

use found::FoundNodes;
pub use request::Author;
pub(crate) use request::{COMMIT_LEASE, STORE_REQUEST, check_key, find_request, open_ctes, stored_answer};
pub(crate) use sql::STARTED;
use sql::*;

pub(crate) struct PgTx<'a> {
    connection: RefCell<PooledConnection<'a>>,
    project: String,
    id: WorkspaceId,
    /// The number of the last change before this transaction.
    seq: i64,
    now: Millis,
    workspace: Loaded<Workspace>,
    put_workspace: Option<Workspace>,
    /// The nodes as the transaction found them.
    found: RefCell<FoundNodes>,
    /// Documents of deleted nodes that the transaction read.
    trashed: RefCell<HashMap<NodeId, Rc<Loaded<Node>>>>,
    /// Every node written by the transaction; `None` means removed.
    put_nodes: BTreeMap<NodeId, Option<Node>>,
    /// Those of `put_nodes` that were not looked for, because their ids are new, and that the database does not
    /// have yet.
    added: RefCell<BTreeSet<NodeId>>,
    /// Those of `put_nodes` that the database does not have yet.
    unsent: RefCell<BTreeSet<NodeId>>,
    /// Whether the database has some of them.
    has_sent: Cell<bool>,
    /// Who makes the change, if that is known.
    author: Option<Author>,
    /// What the author did, if it counts.
    deed: Option<Deed>,
    is_over: bool,
}

impl<'a> PgTx<'a> {
    /// Begins a transaction. One that writes locks the stream of the workspace, so writers come one after the other.
    pub fn begin(
        pool: &'a Pool,
        project: &str,
        id: &WorkspaceId,
        access: Access,
        now: Millis,
    ) -> Result<PgTx<'a>> {
        let mut connection = match access {
            Access::Write => pool.begin_write("", project, id.as_str())?,
            Access::Read | Access::Refresh => pool.begin(READ, project)?,
        };
        let header = connection.query_opt(HEADER, &[&project, &id.as_str()]);
        let header = header.map(|row| row.map(|row| (row.get("seq"), row.get("doc"))));
        let header = header.inspect_err(|_| connection.roll_back())?;
        PgTx::open(connection, project, id, header, now)
    }

    /// Returns the transaction that a connection is in. `header` is the number of the last change and the
    /// document of the workspace, if it exists.
    fn open(
        mut connection: PooledConnection<'a>,
        project: &str,
        id: &WorkspaceId,
        header: Option<(i64, String)>,
        now: Millis,
    ) -> Result<PgTx<'a>> {
        let missing = || Error::WorkspaceNotFound { id: id.to_string(), existing: Vec::new() };
        let opened = header.ok_or_else(missing);
        let opened = opened.and_then(|(seq, doc)| Ok((seq, rows::load_workspace(id, &doc)?)));
        let (seq, workspace) = opened.inspect_err(|_| connection.roll_back())?;
        Ok(PgTx {
            connection: RefCell::new(connection),
            project: project.to_owned(),
            id: id.clone(),
            seq,
            now,
            workspace,
            put_workspace: None,
            found: RefCell::default(),
            trashed: RefCell::default(),
            put_nodes: BTreeMap::new(),
            added: RefCell::default(),
            unsent: RefCell::default(),
            has_sent: Cell::new(false),
            author: None,
            deed: None,
            is_over: false,
        })
    }

    /// Runs a query about several nodes. What was written is sent first, so that the query sees it.
    fn select_rows(&self, sql: &'static str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        self.send()?;
        self.select_unchanged(sql, params)
    }

    /// Runs a query whose result does not depend on what the transaction wrote.
    fn select_unchanged(&self, sql: &'static str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        let mut all: Vec<&(dyn ToSql + Sync)> = Vec::with_capacity(params.len() + 2);
        let workspace = self.id.as_str();
        all.push(&self.project);
        all.push(&workspace);
        all.extend_from_slice(params);
        self.connection.borrow_mut().query(sql, &all)
    }

    /// Runs a query for the children of a node after a position.
    fn select_children(
        &self,
        sql: &'static str,
        parent: &NodeId,
        after: Option<&SiblingPosition>,
        limit: usize,
    ) -> Result<Vec<Row>> {
        let order = after.map(|position| position.order);
        let created_at = after.map(|position| position.created_at);
        let id = after.map(|position| position.id.as_str());
        self.select_rows(sql, &[&parent.as_str(), &order, &created_at, &id, &rows::limit(limit)])
    }

    /// Runs a query for a snapshot. An error counts as no rows.
    pub fn briefs(&self, sql: &'static str, params: &[&(dyn ToSql + Sync)]) -> Vec<NodeBrief> {
        self.select_rows(sql, params).and_then(|found| rows::briefs(&found)).unwrap_or_default()
    }

    /// Returns the new document of a written node.
    fn document(&self, node: &Node) -> Result<String> {
        let restored = || self.trashed.borrow().get(&node.id).cloned();
        // A restored node keeps what a person added to its document.
        let was = self.original(&node.id)?.or_else(restored);
        Ok(codec::write_node(was.as_ref().map(|was| (&was.doc, &was.value)), node))
    }

    /// Sends what the database does not have yet, as one statement.
    fn send(&self) -> Result<()> {
        let unsent = std::mem::take(&mut *self.unsent.borrow_mut());
        if unsent.is_empty() {
            return Ok(());
        }
        self.has_sent.set(true);
        let batch = self.batch(&unsent)?;
        flush::flush(&mut self.connection.borrow_mut(), &self.place(), &batch)?;
        self.added.borrow_mut().clear();
        Ok(())
    }

    /// Returns the nodes to write.
    fn batch<'b>(&'b self, unsent: &'b BTreeSet<NodeId>) -> Result<Batch<'b>> {
        let mut batch = Batch::default();
        for id in unsent {
            match self.put_nodes.get(id) {
                Some(Some(node)) => batch.nodes.push((node, self.document(node)?)),
                _ => batch.removed.push(id.as_str()),
            }
        }
        let added = self.added.borrow();
        batch.added = unsent.iter().filter(|id| added.contains(*id)).map(NodeId::as_str).collect();
        Ok(batch)
    }

    fn place(&self) -> Place<'_> {
        Place { project: &self.project, workspace: &self.id, seq: self.seq + 1, now: self.now }
    }

    /// Returns the written documents: the workspace before nodes.
    pub fn documents(&self) -> Result<Vec<Document>> {
        let workspace = self.put_workspace.as_ref().map(|workspace| Document {
            name: String::from(WORKSPACE),
            text: Some(codec::write_workspace(Some((&self.workspace.doc, &self.workspace.value)), workspace)),
        });
        let node = |(id, node): (&NodeId, &Option<Node>)| {
            let text = node.as_ref().map(|node| self.document(node)).transpose()?;
            Ok(Document { name: id.to_string(), text })
        };
        workspace.map(Ok).into_iter().chain(self.put_nodes.iter().map(node)).collect()
    }

    /// Records what the author did with the change.
    pub(crate) fn set_deed(&mut self, deed: Option<Deed>) {
        self.deed = deed;
    }

    /// Returns the time of the transaction.
    pub fn now(&self) -> Millis {
        self.now
    }

    /// Returns the number that the change gets, or that of the last change if nothing was written.
    pub fn next_seq(&self) -> u64 {
        (self.seq + i64::from(self.was_written())).unsigned_abs()
    }

    /// Writes everything and commits. Returns the last change of every stream before this one, if there is a
    /// request. If the connection breaks in the commit, the outcome is unknown.
    fn finish(&mut self, request: Option<StoredRequest<'_>>) -> Result<Positions> {
        let unsent = std::mem::take(&mut *self.unsent.borrow_mut());
        let (batch, documents) = (self.batch(&unsent)?, self.documents()?);
        let (author, deed) = (self.author.as_ref(), self.deed.as_ref());
        let change = Change { documents: &documents, author, deed, request };
        let mut connection = self.connection.borrow_mut();
        let heads = flush::finish(&mut connection, &self.place(), &batch, &change)?;
        connection.batch("COMMIT")?;
        drop(connection);
        self.is_over = true;
        Ok(heads)
    }

    fn was_written(&self) -> bool {
        self.put_workspace.is_some() || !self.put_nodes.is_empty()
    }
}

impl Drop for PgTx<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.connection.borrow_mut().roll_back();
        }
    }
}

impl Tx for PgTx<'_> {
    fn prefetch(&self, nodes: &[NodeId]) -> Result<()> {
        self.find_with_details(nodes)
    }

    fn workspace(&self) -> Result<Workspace> {
        Ok(self.put_workspace.as_ref().unwrap_or(&self.workspace.value).clone())
    }

    fn node(&self, id: &NodeId) -> Result<Option<Node>> {
        match self.put_nodes.get(id) {
            Some(put) => Ok(put.clone()),
            None => Ok(self.original(id)?.map(|loaded| loaded.value.clone())),
        }
    }

    fn nodes(&self, ids: &[NodeId]) -> Result<Vec<NodeRead>> {
        self.load(ids)?;
        walk::nodes(self, ids)
    }

    fn brief(&self, id: &NodeId) -> Result<Option<NodeBrief>> {
        if let Some(put) = self.put_nodes.get(id) {
            return Ok(put.as_ref().map(NodeBrief::of));
        }
        self.original_brief(id)
    }

    fn ancestors(&self, id: &NodeId) -> Result<Vec<NodeBrief>> {
        walk::ancestors(self, id)
    }

    fn subtree(&self, id: &NodeId) -> Result<Vec<NodeBrief>> {
        let briefs = rows::briefs(&self.select_rows(SUBTREE, &[&id.as_str()])?)?;
        let is_unchanged = |brief: &&NodeBrief| !self.put_nodes.contains_key(&brief.id);
        self.found.borrow_mut().keep_briefs(briefs.iter().filter(is_unchanged));
        Ok(briefs)
    }

    fn children(
        &self,
        parent: &NodeId,
        after: Option<&SiblingPosition>,
        limit: usize,
    ) -> Result<Vec<NodeBrief>> {
        rows::briefs(&self.select_children(CHILDREN, parent, after, limit)?)
    }

    fn children_with_counts(
        &self,
        parent: &NodeId,
        after: Option<&SiblingPosition>,
        limit: usize,
    ) -> Result<Vec<(NodeBrief, u64)>> {
        let rows = self.select_children(CHILDREN_WITH_COUNTS, parent, after, limit)?;
        let child = |row: &Row| Ok((rows::brief(row)?, row.get::<_, i64>("children").unsigned_abs()));
        rows.iter().map(child).collect()
    }

    fn recent_children(&self, parent: &NodeId, status: NodeStatus, limit: usize) -> Result<Vec<NodeBrief>> {
        let params: [&(dyn ToSql + Sync); 3] = [&parent.as_str(), &status.as_str(), &rows::limit(limit)];
        rows::briefs(&self.select_rows(RECENT, &params)?)
    }

    fn named(&self, name: &NodeName<'_>, limit: usize) -> Result<Vec<NodeBrief>> {
        let params: [&(dyn ToSql + Sync); 4] =
            [&name.text, &id::can_be_suffix(name.text), &name.can_be_title, &rows::limit(limit)];
        rows::briefs(&self.select_rows(NAMED, &params)?)
    }

    fn select(&self, selection: &NodeSelection<'_>, limit: usize) -> Result<Vec<NodeBrief>> {
        let sql = match selection {
            NodeSelection::Unblocked { parent, after } => {
                return rows::briefs(&self.select_children(UNBLOCKED, parent, *after, limit)?);
            }
            NodeSelection::Blocked => BLOCKED,
            NodeSelection::Held => HELD,
            NodeSelection::Started => STARTED,
        };
        rows::briefs(&self.select_rows(sql, &[&rows::limit(limit)])?)
    }

    fn dependencies(&self) -> Result<Vec<(NodeId, NodeId)>> {
        let pair = |row: &Row| Ok((NodeId::parse(row.get("node"))?, NodeId::parse(row.get("target"))?));
        let pairs: Vec<(NodeId, NodeId)> =
            self.select_rows(DEPENDENCIES, &[])?.iter().map(pair).collect::<Result<_>>()?;
        // A caller that asks for all of them looks at the nodes and at their ancestors.
        let ends: Vec<NodeId> = pairs.iter().flat_map(|(node, target)| [node, target]).cloned().collect();
        self.find(&ends)?;
        Ok(pairs)
    }

    fn dependents(&self, ids: &[NodeId]) -> Result<Vec<NodeId>> {
        let ids: Vec<&str> = ids.iter().map(NodeId::as_str).collect();
        let rows = self.select_rows(DEPENDENTS, &[&ids])?;
        let found = rows.iter().map(|row| NodeId::parse(row.get("node")));
        let found: Vec<NodeId> = found.collect::<Result<_>>()?;
        // The caller looks at each of them.
        self.find(&found)?;
        Ok(found)
    }

    fn trashed(&self, id: &NodeId) -> Result<Vec<Node>> {
        let mut nodes = Vec::new();
        for row in self.select_rows(TRASHED, &[&id.as_str()])? {
            let id = NodeId::parse(row.get("id"))?;
            let loaded = rows::load_node(&id, row.get("doc"))?;
            nodes.push(loaded.value.clone());
            self.trashed.borrow_mut().insert(id, Rc::new(loaded));
        }
        Ok(subtree_of(id, nodes))
    }

    fn last_order(&self, parent: &NodeId) -> Result<i64> {
        if let Some(order) = self.known_last_order(parent) {
            return Ok(order);
        }
        let found = self.select_rows(LAST_ORDER, &[&parent.as_str()])?;
        Ok(found.first().and_then(|row| row.get(0)).unwrap_or(0))
    }

    fn status_counts(&self, parent: &NodeId) -> Result<StatusCounts> {
        match self.known_counts(parent) {
            Some(counts) => Ok(counts),
            None => Ok(rows::counts(&self.select_rows(COUNTS, &[&parent.as_str()])?)),
        }
    }

    fn total(&self) -> Result<StatusCounts> {
        Ok(rows::counts(&self.select_rows(COUNTS, &[&""])?))
    }

    fn put_workspace(&mut self, workspace: Workspace) -> Result<()> {
        if self.workspace()? != workspace {
            self.put_workspace = Some(workspace);
        }
        Ok(())
    }

    fn put_node(&mut self, node: Node) -> Result<()> {
        if self.node(&node.id)?.as_ref() != Some(&node) {
            self.unsent.borrow_mut().insert(node.id.clone());
            self.put_nodes.insert(node.id.clone(), Some(node));
        }
        Ok(())
    }

    fn add_node(&mut self, node: Node) -> Result<()> {
        let is_taken = match self.put_nodes.get(&node.id) {
            Some(put) => put.is_some(),
            // If the transaction did not look for it, the database finds out when it gets the node.
            None => !self.found.borrow_mut().expect_missing(&node.id),
        };
        if is_taken {
            return Err(conflict());
        }
        self.added.borrow_mut().insert(node.id.clone());
        self.put_node(node)
    }

    fn append_log(&mut self, target: &Target, entry: LogEntry, at: Millis) -> Result<usize> {
        walk::append_log(self, target, entry, at)
    }

    fn remove_node(&mut self, id: &NodeId) -> Result<()> {
        if self.brief(id)?.is_some() {
            // The trash gets the node as it is now.
            if self.unsent.borrow().contains(id) {
                self.send()?;
            }
            self.unsent.borrow_mut().insert(id.clone());
            self.put_nodes.insert(id.clone(), None);
        }
        Ok(())
    }

    fn commit(mut self: Box<Self>) -> Result<u64> {
        let seq = self.next_seq();
        if self.was_written() {
            self.finish(None)?;
        }
        Ok(seq)
    }
}
