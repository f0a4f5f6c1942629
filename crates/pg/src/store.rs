//! [`PgStore`]: the workspaces of one project.

use std::collections::BTreeMap;
use std::sync::Arc;

use postgres::Row;
use postgres::types::ToSql;
use tanmi_base::Millis;
use tanmi_workspace::codec;
use tanmi_workspace::error::{Error, Result};
use tanmi_workspace::model::*;
use tanmi_workspace::store::walk::{self, DeletedNode};
use tanmi_workspace::store::{Access, Store, TrashEntry, Tx, WorkspaceEntry};

use crate::flush::{self, Place};
use crate::pool::{Pool, PooledConnection};
use crate::rows;
use crate::tx::{PgTx, in_project};

const INSERT_STREAM: &str = "WITH stream AS (INSERT INTO stream (project, id, seq) VALUES ($1, $2, 0))
INSERT INTO workspace (project, id, doc, active_at) VALUES ($1, $2, $3, $4)";
const ENTRIES: &str = "SELECT w.id, w.doc, w.active_at,
    coalesce((SELECT sum(n) FROM tally t WHERE t.project = w.project AND t.ws = w.id AND t.parent = ''
        AND t.status = 'completed'), 0)::bigint AS completed,
    coalesce((SELECT sum(n) FROM tally t WHERE t.project = w.project AND t.ws = w.id AND t.parent = ''
        AND t.status <> 'cancelled'), 0)::bigint AS total
FROM workspace w WHERE w.project = $1 AND w.deleted_at IS NULL ORDER BY w.id";
const HEADERS: &str = "SELECT id, doc FROM workspace WHERE project = $1 AND deleted_at IS NULL ORDER BY id";
const EXISTS: &str = "SELECT 1 FROM workspace WHERE project = $1 AND id = $2 AND deleted_at IS NULL";
const DELETE: &str = "UPDATE workspace SET deleted_at = $3
WHERE project = $1 AND id = $2 AND deleted_at IS NULL RETURNING id";
const RESTORE: &str = "UPDATE workspace SET deleted_at = NULL
WHERE project = $1 AND id = $2 AND deleted_at IS NOT NULL RETURNING id";

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
        let mut connection = self.pool.take()?;
        let outcome = connection.batch(&in_project(begin, &self.project)).and_then(|()| {
            let value = work(&mut connection)?;
            connection.batch("COMMIT")?;
            Ok(value)
        });
        if outcome.is_err() {
            connection.roll_back();
        }
        outcome
    }

    /// Runs one statement of this project. The first parameter is the project.
    pub(crate) fn query(&self, sql: &'static str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        let mut all: Vec<&(dyn ToSql + Sync)> = vec![&self.project];
        all.extend_from_slice(params);
        self.transact("BEGIN", |connection| connection.query(sql, &all))
    }
}

fn deleted_workspace(row: &Row) -> Result<TrashEntry> {
    let id = WorkspaceId::parse(row.get("id"))?;
    let title = rows::load_workspace(&id, row.get("doc"))?.value.name;
    let count = row.get::<_, i64>("n").unsigned_abs() as usize;
    Ok(TrashEntry { workspace_id: id, node_id: None, title, count, deleted_at: row.get("deleted_at") })
}

impl Store for PgStore {
    fn insert(&self, workspace: &Workspace, root: &Node) -> Result<()> {
        let doc = codec::write_workspace(None, workspace);
        let root_doc = codec::write_node(None, root);
        let place =
            Place { project: &self.project, workspace: &workspace.id, seq: 0, now: workspace.updated_at };
        self.transact("BEGIN", |connection| {
            connection.query(
                INSERT_STREAM,
                &[&self.project, &workspace.id.as_str(), &doc, &workspace.updated_at],
            )?;
            flush::flush(connection, &place, &[(root, &root_doc)], &[])
        })
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
        let header = |row: &Row| {
            let id = WorkspaceId::parse(row.get("id"))?;
            let workspace = rows::load_workspace(&id, row.get("doc")).ok().map(|loaded| loaded.value);
            Ok((id, workspace))
        };
        self.query(HEADERS, &[])?.iter().map(header).collect()
    }

    fn contains(&self, id: &WorkspaceId) -> Result<bool> {
        Ok(!self.query(EXISTS, &[&id.as_str()])?.is_empty())
    }

    fn remove(&self, id: &WorkspaceId, now: Millis) -> Result<()> {
        match self.query(DELETE, &[&id.as_str(), &now])?.is_empty() {
            true => Err(Error::WorkspaceNotFound { id: id.to_string(), existing: Vec::new() }),
            false => Ok(()),
        }
    }

    fn restore(&self, id: &WorkspaceId) -> Result<bool> {
        Ok(!self.query(RESTORE, &[&id.as_str()])?.is_empty())
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
        Ok(Box::new(PgTx::begin(self.pool.take()?, &self.project, id, access, now)?))
    }
}
