//! [`PgStore`]: the workspaces of one project.

use std::collections::BTreeMap;
use std::sync::Arc;

use tanmi_base::Millis;
use tanmi_protocol::Document;
use tanmi_workspace::codec;
use tanmi_workspace::error::{Error, Result};
use tanmi_workspace::model::*;
use tanmi_workspace::store::walk::{self, DeletedNode};
use tanmi_workspace::store::{Access, Store, TrashEntry, Tx, WORKSPACE, WorkspaceEntry};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::flush::{self, Batch, Place};
use crate::pool::{Pool, PooledConnection};
use crate::rows;
use crate::tx::PgTx;

pub(crate) const INSERT_STREAM: &str =
    "WITH stream AS (INSERT INTO stream (project, id, seq) VALUES ($1, $2, 0))
INSERT INTO workspace (project, id, doc, active_at) VALUES ($1, $2, $3, $4)";
const ENTRIES: &str = "SELECT w.id, w.doc, w.active_at,
    coalesce((SELECT sum(n) FROM tally t WHERE t.project = w.project AND t.ws = w.id AND t.parent = ''
        AND t.status = 'completed'), 0)::bigint AS completed,
    coalesce((SELECT sum(n) FROM tally t WHERE t.project = w.project AND t.ws = w.id AND t.parent = ''
        AND t.status <> 'cancelled'), 0)::bigint AS total
FROM workspace w WHERE w.project = $1 AND w.deleted_at IS NULL ORDER BY w.id";
const HEADERS: &str = "SELECT id, doc FROM workspace WHERE project = $1 AND deleted_at IS NULL ORDER BY id";
const HEADER: &str = "SELECT id, doc FROM workspace WHERE project = $1 AND id = $2 AND deleted_at IS NULL";
const EXISTS: &str = "SELECT 1 FROM workspace WHERE project = $1 AND id = $2 AND deleted_at IS NULL";
/// A deletion takes a number of the stream, so that a waiting reader notices it. It removes the document of
/// the workspace.
const DELETE: &str = "WITH deleted AS (
    UPDATE workspace SET deleted_at = $3 WHERE project = $1 AND id = $2 AND deleted_at IS NULL RETURNING id
), numbered AS (
    UPDATE stream SET seq = seq + 1 FROM deleted WHERE project = $1 AND stream.id = deleted.id RETURNING seq
) INSERT INTO change (project, stream, seq, at, names, docs, person)
SELECT $1, $2, seq, $3, ARRAY['workspace'], ARRAY[NULL::text], $4 FROM numbered RETURNING seq";
const RESTORE: &str = "WITH restored AS (
    UPDATE workspace SET deleted_at = NULL WHERE project = $1 AND id = $2 AND deleted_at IS NOT NULL
    RETURNING id, doc
), numbered AS (
    UPDATE stream SET seq = seq + 1 FROM restored WHERE project = $1 AND stream.id = restored.id
    RETURNING seq, restored.doc
) INSERT INTO change (project, stream, seq, at, names, docs, person)
SELECT $1, $2, seq, (extract(epoch FROM clock_timestamp()) * 1000)::bigint, ARRAY['workspace'], ARRAY[doc], $3
FROM numbered RETURNING seq";

const DELETED_WORKSPACES: &str = "SELECT w.id, w.doc, w.deleted_at,
    coalesce((SELECT sum(n) FROM tally t WHERE t.project = w.project AND t.ws = w.id AND t.parent = ''), 0)::bigint AS n
FROM workspace w WHERE w.project = $1 AND w.deleted_at IS NOT NULL ORDER BY w.id";
const DELETED_NODES: &str = "SELECT t.ws, t.id, t.deletion, t.deleted_at, t.doc FROM trash t
JOIN workspace w ON w.project = t.project AND w.id = t.ws AND w.deleted_at IS NULL
WHERE t.project = $1 AND NOT EXISTS (
    SELECT 1 FROM node n WHERE n.project = t.project AND n.ws = t.ws AND n.id = t.id
) ORDER BY t.ws, t.id";

/// The workspaces of one project in PostgreSQL.
#[derive(Clone)]
pub struct PgStore {
    pub(crate) pool: Arc<Pool>,
    pub(crate) project: String,
}

impl PgStore {
    /// Returns the store of a project. Does not connect.
    pub fn new(pool: Arc<Pool>, project: impl Into<String>) -> PgStore {
        PgStore { pool, project: project.into() }
    }

    /// Runs statements in one transaction of this project.
    pub(crate) fn transact<T>(
        &self,
        begin: &str,
        work: impl FnOnce(&mut PooledConnection<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut connection = self.pool.begin(begin, &self.project)?;
        let outcome = work(&mut connection).and_then(|value| {
            connection.batch("COMMIT")?;
            Ok(value)
        });
        if outcome.is_err() {
            connection.roll_back();
        }
        outcome
    }

    /// Adds a workspace within a transaction. Returns its documents.
    pub(crate) fn insert_in(
        &self,
        connection: &mut PooledConnection<'_>,
        workspace: &Workspace,
        root: &Node,
    ) -> Result<Vec<Document>> {
        let doc = codec::write_workspace(None, workspace);
        let root_doc = codec::write_node(None, root);
        let (id, now) = (&workspace.id, workspace.updated_at);
        let place = Place { project: &self.project, workspace: id, seq: 0, now };
        connection.query(INSERT_STREAM, &[&self.project, &id.as_str(), &doc, &now])?;
        let batch = Batch { nodes: vec![(root, root_doc.clone())], ..Batch::default() };
        flush::flush(connection, &place, &batch)?;
        let document = |name: &str, text: String| Document { name: name.to_owned(), text: Some(text) };
        Ok(vec![document(WORKSPACE, doc), document(root.id.as_str(), root_doc)])
    }

    /// Moves a workspace to the trash within a transaction. Returns `false` if there is none.
    pub(crate) fn remove_in(
        &self,
        connection: &mut PooledConnection<'_>,
        id: &WorkspaceId,
        now: Millis,
        person: Option<&str>,
    ) -> Result<bool> {
        Ok(!connection.query(DELETE, &[&self.project, &id.as_str(), &now, &person])?.is_empty())
    }

    /// Takes a workspace out of the trash within a transaction. Returns `false` if there is none.
    pub(crate) fn restore_in(
        &self,
        connection: &mut PooledConnection<'_>,
        id: &WorkspaceId,
        person: Option<&str>,
    ) -> Result<bool> {
        Ok(!connection.query(RESTORE, &[&self.project, &id.as_str(), &person])?.is_empty())
    }

    /// Runs one statement of this project. The first parameter is the project.
    pub(crate) fn query(&self, sql: &'static str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        let mut all: Vec<&(dyn ToSql + Sync)> = vec![&self.project];
        all.extend_from_slice(params);
        self.transact("BEGIN", |connection| connection.query(sql, &all))
    }
}

fn header(row: &Row) -> Result<(WorkspaceId, Option<Workspace>)> {
    let id = WorkspaceId::parse(row.get("id"))?;
    let workspace = rows::load_workspace(&id, row.get("doc")).ok().map(|loaded| loaded.value);
    Ok((id, workspace))
}

fn deleted_workspace(row: &Row) -> Result<TrashEntry> {
    let id = WorkspaceId::parse(row.get("id"))?;
    let title = rows::load_workspace(&id, row.get("doc"))?.value.name;
    let count = row.get::<_, i64>("n").unsigned_abs() as usize;
    Ok(TrashEntry { workspace_id: id, node_id: None, title, count, deleted_at: row.get("deleted_at") })
}

impl Store for PgStore {
    fn insert(&self, workspace: &Workspace, root: &Node) -> Result<()> {
        self.transact("BEGIN", |connection| self.insert_in(connection, workspace, root).map(|_| ()))
    }

    fn entries(&self, _now: Millis) -> Result<Vec<WorkspaceEntry>> {
        let number = |row: &Row, column: &str| row.get::<_, i64>(column).unsigned_abs();
        let entry = |row: &Row| {
            let id = WorkspaceId::parse(row.get("id"))?;
            let progress = Progress { completed: number(row, "completed"), total: number(row, "total") };
            let state = rows::load_workspace(&id, row.get("doc")).map(|loaded| (loaded.value, progress));
            Ok(WorkspaceEntry { id, state, active_at: row.get("active_at") })
        };
        self.query(ENTRIES, &[])?.iter().map(entry).collect()
    }

    fn read_headers(&self) -> Result<Vec<(WorkspaceId, Option<Workspace>)>> {
        self.query(HEADERS, &[])?.iter().map(header).collect()
    }

    fn read_header(&self, id: &WorkspaceId) -> Result<Option<Workspace>> {
        let rows = self.query(HEADER, &[&id.as_str()])?;
        Ok(rows.first().map(header).transpose()?.and_then(|(_, workspace)| workspace))
    }

    fn contains(&self, id: &WorkspaceId) -> Result<bool> {
        Ok(!self.query(EXISTS, &[&id.as_str()])?.is_empty())
    }

    fn remove(&self, id: &WorkspaceId, now: Millis) -> Result<()> {
        match self.transact("BEGIN", |connection| self.remove_in(connection, id, now, None))? {
            true => Ok(()),
            false => Err(Error::WorkspaceNotFound { id: id.to_string(), existing: Vec::new() }),
        }
    }

    fn restore(&self, id: &WorkspaceId) -> Result<bool> {
        self.transact("BEGIN", |connection| self.restore_in(connection, id, None))
    }

    fn trash_entries(&self) -> Result<Vec<TrashEntry>> {
        let (workspaces, nodes) = self.transact("BEGIN", |connection| {
            let workspaces = connection.query(DELETED_WORKSPACES, &[&self.project])?;
            Ok((workspaces, connection.query(DELETED_NODES, &[&self.project])?))
        })?;
        let mut entries = workspaces.iter().map(deleted_workspace).collect::<Result<Vec<_>>>()?;
        let mut missing: BTreeMap<WorkspaceId, Vec<DeletedNode>> = BTreeMap::new();
        for row in &nodes {
            let id = NodeId::parse(row.get("id"))?;
            let node = rows::load_node(&id, row.get("doc"))?.value;
            let deletion = row.get::<_, i64>("deletion").unsigned_abs();
            let workspace = WorkspaceId::parse(row.get("ws"))?;
            missing.entry(workspace).or_default().push((deletion, row.get("deleted_at"), node));
        }
        entries.extend(missing.iter().flat_map(|(id, nodes)| walk::trash_entries(id, nodes)));
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.deleted_at));
        Ok(entries)
    }

    fn begin(&self, id: &WorkspaceId, access: Access, now: Millis) -> Result<Box<dyn Tx + '_>> {
        Ok(Box::new(PgTx::begin(&self.pool, &self.project, id, access, now)?))
    }
}
