//! The transaction on one workspace.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use postgres::Row;
use postgres::types::ToSql;
use tanmi_base::{Millis, id};
use tanmi_protocol::Document;
use tanmi_workspace::codec;
use tanmi_workspace::error::{Error, Result};
use tanmi_workspace::model::*;
use tanmi_workspace::ops::{Target, subtree_of};
use tanmi_workspace::store::{
    Access, NodeBrief, NodeName, NodeRead, NodeSelection, SiblingPosition, StatusCounts, Tx, WORKSPACE, walk,
};

use crate::flush::{self, Place};
use crate::pool::{Pool, PooledConnection};
use crate::replica::READ;
use crate::rows::{self, Loaded, brief_columns};

mod request;

pub use request::Author;
pub(crate) use request::{RENEW, STORE_REQUEST, find_request};

const HEADER: &str =
    "SELECT s.seq, w.doc FROM stream s JOIN workspace w ON w.project = s.project AND w.id = s.id
WHERE s.project = $1 AND s.id = $2 AND w.deleted_at IS NULL";
/// Locks both rows. A row that is only joined would be read as it was before the wait for the lock.
const HEADER_LOCKED: &str =
    "SELECT s.seq, w.doc FROM stream s JOIN workspace w ON w.project = s.project AND w.id = s.id
WHERE s.project = $1 AND s.id = $2 AND w.deleted_at IS NULL FOR UPDATE OF s, w";
const DOCS: &str = "SELECT id, doc FROM node WHERE project = $1 AND ws = $2 AND id = ANY($3::text[])";
const BRIEF: &str =
    concat!("SELECT ", brief_columns!(), " FROM node n WHERE project = $1 AND ws = $2 AND id = $3");
const ANCESTORS: &str = concat!(
    "WITH RECURSIVE chain(id, depth) AS (
        SELECT parent, 1 FROM node WHERE project = $1 AND ws = $2 AND id = $3 AND parent IS NOT NULL
        UNION ALL
        SELECT n.parent, depth + 1 FROM chain
        JOIN node n ON n.project = $1 AND n.ws = $2 AND n.id = chain.id WHERE n.parent IS NOT NULL
    ) SELECT ",
    brief_columns!(),
    " FROM chain JOIN node n ON n.project = $1 AND n.ws = $2 AND n.id = chain.id ORDER BY depth"
);
const SUBTREE: &str = concat!(
    "WITH RECURSIVE below(id, depth) AS (
        SELECT id, 1 FROM node WHERE project = $1 AND ws = $2 AND parent = $3
        UNION ALL
        SELECT n.id, depth + 1 FROM below JOIN node n ON n.project = $1 AND n.ws = $2 AND n.parent = below.id
    ) SELECT ",
    brief_columns!(),
    " FROM below JOIN node n ON n.project = $1 AND n.ws = $2 AND n.id = below.id
    ORDER BY depth, n.parent, n.ord, n.created_at, n.id"
);
const CHILDREN: &str = concat!(
    "SELECT ",
    brief_columns!(),
    " FROM node n WHERE project = $1 AND ws = $2 AND parent = $3
    AND ($4::bigint IS NULL OR (n.ord, n.created_at, n.id) > ($4, $5, $6))
    ORDER BY n.ord, n.created_at, n.id LIMIT $7"
);
const CHILD_COUNTS: &str = "SELECT parent, sum(n)::bigint AS n FROM tally
WHERE project = $1 AND ws = $2 AND parent = ANY($3::text[]) GROUP BY parent";
const RECENT: &str = concat!(
    "SELECT ",
    brief_columns!(),
    " FROM node n WHERE project = $1 AND ws = $2 AND parent = $3 AND status = $4
    ORDER BY n.status_changed_at DESC, n.id LIMIT $5"
);
const NAMED: &str = concat!(
    "SELECT ",
    brief_columns!(),
    " FROM node n WHERE project = $1 AND ws = $2
    AND (($4 AND right(n.id, length($3)) = $3) OR ($5 AND lower(n.title COLLATE \"C\") = lower($3 COLLATE \"C\")))
    ORDER BY n.id LIMIT $6"
);
/// A node with a dependency that is not completed. A dependency that does not exist counts as not completed.
macro_rules! is_blocked {
    () => {
        "EXISTS (SELECT 1 FROM dependency d
            LEFT JOIN node t ON t.project = d.project AND t.ws = d.ws AND t.id = d.target
            WHERE d.project = n.project AND d.ws = n.ws AND d.node = n.id AND t.status IS DISTINCT FROM 'completed')"
    };
}
/// The beginning of a query for nodes that can begin, or can have descendants that can.
macro_rules! can_begin {
    () => {
        concat!(
            "SELECT ",
            brief_columns!(),
            " FROM node n WHERE project = $1 AND ws = $2
            AND status NOT IN ('completed', 'failed', 'cancelled') AND (status = 'pending' OR kind = 'planning') AND "
        )
    };
}
const UNBLOCKED: &str = concat!(
    can_begin!(),
    "NOT ",
    is_blocked!(),
    " AND parent = $3 AND ($4::bigint IS NULL OR (n.ord, n.created_at, n.id) > ($4, $5, $6))
    ORDER BY n.ord, n.created_at, n.id LIMIT $7"
);
const BLOCKED: &str = concat!(can_begin!(), is_blocked!(), " ORDER BY n.ord, n.created_at, n.id LIMIT $3");
const HELD: &str = concat!(
    "SELECT ",
    brief_columns!(),
    " FROM node n WHERE project = $1 AND ws = $2 AND holder IS NOT NULL ORDER BY n.status_changed_at, n.id LIMIT $3"
);
pub(crate) const STARTED: &str = concat!(
    "SELECT ",
    brief_columns!(),
    " FROM node n WHERE project = $1 AND ws = $2 AND status IN ('implementing', 'validating')
    ORDER BY n.status_changed_at DESC, n.id LIMIT $3"
);
const DEPENDENCIES: &str =
    "SELECT node, target FROM dependency WHERE project = $1 AND ws = $2 ORDER BY node, target";
/// The nodes that were deleted together with one, including it, and do not exist.
const TRASHED: &str = "SELECT t.id, t.doc FROM trash t
JOIN trash own ON own.project = t.project AND own.ws = t.ws AND own.deletion = t.deletion
WHERE t.project = $1 AND t.ws = $2 AND own.id = $3 AND NOT EXISTS (
    SELECT 1 FROM node n WHERE n.project = t.project AND n.ws = t.ws AND n.id = t.id
) ORDER BY t.id";
/// A node that was created by hand has no position of its own and does not count.
const LAST_ORDER: &str = "SELECT max(ord) FROM node
WHERE project = $1 AND ws = $2 AND parent = $3 AND ord < 9223372036854775807";
const COUNTS: &str = "SELECT status, n FROM tally WHERE project = $1 AND ws = $2 AND parent = $3 AND n > 0";
const RECORD: &str = "WITH stream AS (
    UPDATE stream SET seq = $3 WHERE project = $1 AND id = $2 AND seq = $3::bigint - 1
), workspace AS (
    UPDATE workspace SET doc = coalesce($7, doc), active_at = greatest(active_at, $4)
    WHERE project = $1 AND id = $2
) INSERT INTO change (project, stream, seq, at, names, docs, person, session, machine)
VALUES ($1, $2, $3, $4, $5::text[], $6::text[], $8, $9, $10)";

pub(crate) struct PgTx<'a> {
    connection: RefCell<PooledConnection<'a>>,
    project: String,
    id: WorkspaceId,
    /// The number of the last change before this transaction.
    seq: i64,
    now: Millis,
    workspace: Loaded<Workspace>,
    put_workspace: Option<Workspace>,
    /// The documents as the transaction found them, read once.
    loaded: RefCell<HashMap<NodeId, Option<Rc<Loaded<Node>>>>>,
    /// Documents of deleted nodes that the transaction read.
    trashed: RefCell<HashMap<NodeId, Rc<Loaded<Node>>>>,
    /// Every node written by the transaction; `None` means removed.
    put_nodes: BTreeMap<NodeId, Option<Node>>,
    /// Those of `put_nodes` that the database does not have yet.
    unsent: RefCell<BTreeSet<NodeId>>,
    /// Who makes the change, if that is known.
    author: Option<Author>,
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
        let (mut connection, header) = match access {
            Access::Write => (pool.begin("BEGIN", project, Some(id.as_str()))?, HEADER_LOCKED),
            Access::Read | Access::Refresh => (pool.begin(READ, project, None)?, HEADER),
        };
        let opened = connection
            .query_opt(header, &[&project, &id.as_str()])
            .and_then(|row| {
                row.ok_or_else(|| Error::WorkspaceNotFound { id: id.to_string(), existing: Vec::new() })
            })
            .and_then(|row| Ok((row.get("seq"), rows::load_workspace(id, row.get("doc"))?)));
        match opened {
            Ok((seq, workspace)) => Ok(PgTx {
                connection: RefCell::new(connection),
                project: project.to_owned(),
                id: id.clone(),
                seq,
                now,
                workspace,
                put_workspace: None,
                loaded: RefCell::default(),
                trashed: RefCell::default(),
                put_nodes: BTreeMap::new(),
                unsent: RefCell::default(),
                author: None,
                is_over: false,
            }),
            Err(error) => {
                connection.roll_back();
                Err(error)
            }
        }
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

    /// Runs a query for a snapshot. An error counts as no rows.
    pub fn briefs(&self, sql: &'static str, params: &[&(dyn ToSql + Sync)]) -> Vec<NodeBrief> {
        self.select_rows(sql, params).and_then(|found| rows::briefs(&found)).unwrap_or_default()
    }

    /// Reads the documents that are not loaded yet.
    fn load(&self, ids: &[NodeId]) -> Result<()> {
        let missing: Vec<&str> = {
            let loaded = self.loaded.borrow();
            ids.iter().filter(|id| !loaded.contains_key(*id)).map(NodeId::as_str).collect()
        };
        if missing.is_empty() {
            return Ok(());
        }
        let found = self.select_unchanged(DOCS, &[&missing])?;
        let mut loaded = self.loaded.borrow_mut();
        for id in ids {
            loaded.entry(id.clone()).or_insert(None);
        }
        for row in found {
            let id = NodeId::parse(row.get("id"))?;
            let node = rows::load_node(&id, row.get("doc"))?;
            loaded.insert(id, Some(Rc::new(node)));
        }
        Ok(())
    }

    /// Returns a document as the transaction found it.
    fn original(&self, id: &NodeId) -> Result<Option<Rc<Loaded<Node>>>> {
        self.load(std::slice::from_ref(id))?;
        Ok(self.loaded.borrow().get(id).cloned().flatten())
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
        let mut removed = Vec::new();
        let mut written = Vec::new();
        for id in &unsent {
            match self.put_nodes.get(id) {
                Some(Some(node)) => written.push((node, self.document(node)?)),
                _ => removed.push(id.as_str()),
            }
        }
        let place = Place { project: &self.project, workspace: &self.id, seq: self.seq + 1, now: self.now };
        let nodes: Vec<(&Node, &str)> = written.iter().map(|(node, doc)| (*node, doc.as_str())).collect();
        flush::flush(&mut self.connection.borrow_mut(), &place, &nodes, &removed)
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

    /// Takes the next number of the stream and records the written documents under it.
    fn record(&self) -> Result<()> {
        let documents = self.documents()?;
        let names: Vec<&str> = documents.iter().map(|document| document.name.as_str()).collect();
        let docs: Vec<Option<&str>> = documents.iter().map(|document| document.text.as_deref()).collect();
        let workspace = documents.first().filter(|document| document.name == WORKSPACE);
        let doc = workspace.and_then(|document| document.text.as_deref());
        let author = self.author.as_ref();
        let params: [&(dyn ToSql + Sync); 8] = [
            &(self.seq + 1),
            &self.now,
            &names,
            &docs,
            &doc,
            &author.map(|author| author.person.as_str()),
            &author.and_then(|author| author.session.as_deref()),
            &author.map(|author| author.machine.as_str()),
        ];
        self.select_unchanged(RECORD, &params)?;
        Ok(())
    }

    /// Returns the number that the change gets, or that of the last change if nothing was written.
    pub fn next_seq(&self) -> u64 {
        (self.seq + i64::from(self.was_written())).unsigned_abs()
    }

    /// Writes everything and commits. If the connection breaks in the commit, the outcome is unknown.
    fn finish(&mut self) -> Result<()> {
        if self.was_written() {
            self.send()?;
            self.record()?;
        }
        self.connection.borrow_mut().batch("COMMIT")?;
        self.is_over = true;
        Ok(())
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
        if let Some(loaded) = self.loaded.borrow().get(id) {
            return Ok(loaded.as_ref().map(|loaded| NodeBrief::of(&loaded.value)));
        }
        let found = self.select_unchanged(BRIEF, &[&id.as_str()])?;
        found.first().map(rows::brief).transpose()
    }

    fn ancestors(&self, id: &NodeId) -> Result<Vec<NodeBrief>> {
        rows::briefs(&self.select_rows(ANCESTORS, &[&id.as_str()])?)
    }

    fn subtree(&self, id: &NodeId) -> Result<Vec<NodeBrief>> {
        rows::briefs(&self.select_rows(SUBTREE, &[&id.as_str()])?)
    }

    fn children(
        &self,
        parent: &NodeId,
        after: Option<&SiblingPosition>,
        limit: usize,
    ) -> Result<Vec<NodeBrief>> {
        let order = after.map(|position| position.order);
        let created_at = after.map(|position| position.created_at);
        let id = after.map(|position| position.id.as_str());
        let limit = rows::limit(limit);
        let params: [&(dyn ToSql + Sync); 5] = [&parent.as_str(), &order, &created_at, &id, &limit];
        rows::briefs(&self.select_rows(CHILDREN, &params)?)
    }

    fn children_with_counts(
        &self,
        parent: &NodeId,
        after: Option<&SiblingPosition>,
        limit: usize,
    ) -> Result<Vec<(NodeBrief, u64)>> {
        let children = self.children(parent, after, limit)?;
        let ids: Vec<&str> = children.iter().map(|child| child.id.as_str()).collect();
        let counted = self.select_rows(CHILD_COUNTS, &[&ids])?;
        let counts: HashMap<&str, i64> =
            counted.iter().map(|row| (row.get("parent"), row.get("n"))).collect();
        let with_count = |child: NodeBrief| {
            let count = counts.get(child.id.as_str()).map_or(0, |n| n.unsigned_abs());
            (child, count)
        };
        Ok(children.into_iter().map(with_count).collect())
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
        let limit = rows::limit(limit);
        let sql = match selection {
            NodeSelection::Unblocked { parent, after } => {
                let order = after.map(|position| position.order);
                let created_at = after.map(|position| position.created_at);
                let id = after.map(|position| position.id.as_str());
                let params: [&(dyn ToSql + Sync); 5] = [&parent.as_str(), &order, &created_at, &id, &limit];
                return rows::briefs(&self.select_rows(UNBLOCKED, &params)?);
            }
            NodeSelection::Blocked => BLOCKED,
            NodeSelection::Held => HELD,
            NodeSelection::Started => STARTED,
        };
        rows::briefs(&self.select_rows(sql, &[&limit])?)
    }

    fn dependencies(&self) -> Result<Vec<(NodeId, NodeId)>> {
        let pair = |row: &Row| Ok((NodeId::parse(row.get("node"))?, NodeId::parse(row.get("target"))?));
        self.select_rows(DEPENDENCIES, &[])?.iter().map(pair).collect()
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
        let found = self.select_rows(LAST_ORDER, &[&parent.as_str()])?;
        Ok(found.first().and_then(|row| row.get(0)).unwrap_or(0))
    }

    fn status_counts(&self, parent: &NodeId) -> Result<StatusCounts> {
        Ok(rows::counts(&self.select_rows(COUNTS, &[&parent.as_str()])?))
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

    fn append_log(&mut self, target: &Target, entry: LogEntry, at: Millis) -> Result<usize> {
        walk::append_log(self, target, entry, at)
    }

    fn remove_node(&mut self, id: &NodeId) -> Result<()> {
        if self.node(id)?.is_some() {
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
            self.finish()?;
        }
        Ok(seq)
    }
}
