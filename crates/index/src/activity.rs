//! The index of activity: what happened in all projects, in the order of time, and the current state of every node.
//!
//! Every row comes from a source, such as a node or a day of the ledger. Sources are grouped by scope, such
//! as a workspace. A source has a mark, which tells whether it changed since it was read; then its rows are
//! replaced.

use std::collections::HashMap;
use std::path::Path;

use rusqlite::{Connection, OpenFlags, OptionalExtension, params};

use crate::Result;

mod query;
#[cfg(test)]
mod tests;

pub use query::{ActivityFilter, ActivityPosition, NodeStateFilter};

/// Version of the tables and of the rows in them. Raise it with every change of either: an index of another version is
/// deleted.
const VERSION: i64 = 2;

/// Something that happened. The caller defines the kinds and the data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActivityRow {
    pub at: i64,
    pub kind: String,
    /// Empty, as the next fields, if the entry is about none or about an unknown one.
    pub project: String,
    pub workspace: String,
    pub node: String,
    pub session: String,
    /// What the reader shows, as JSON.
    pub data: String,
}

/// The current state of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeStateRow {
    pub project: String,
    pub workspace: String,
    pub node: String,
    pub status: String,
    /// When the status last changed.
    pub since: i64,
    pub has_problem: bool,
    /// What the reader shows, as JSON.
    pub data: String,
}

pub struct ActivityIndex {
    db: Connection,
}

const SCHEMA: &str = "
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE sources(id INTEGER PRIMARY KEY, scope TEXT NOT NULL, name TEXT NOT NULL, mark INTEGER NOT NULL,
  next INTEGER NOT NULL, UNIQUE(scope, name));
CREATE TABLE entries(
  source INTEGER NOT NULL, n INTEGER NOT NULL, at INTEGER NOT NULL, kind TEXT NOT NULL, project TEXT NOT NULL,
  workspace TEXT NOT NULL, node TEXT NOT NULL, session TEXT NOT NULL, data TEXT NOT NULL, PRIMARY KEY(source, n)) WITHOUT ROWID;
CREATE INDEX by_time ON entries(at, source, n);
CREATE INDEX by_session ON entries(session, at, source, n) WHERE session <> '';
CREATE INDEX by_node ON entries(node, at, source, n) WHERE node <> '';
CREATE TABLE nodes(
  source INTEGER PRIMARY KEY, project TEXT NOT NULL, workspace TEXT NOT NULL, node TEXT NOT NULL, status TEXT NOT NULL,
  since INTEGER NOT NULL, has_problem INTEGER NOT NULL, data TEXT NOT NULL);
CREATE INDEX by_status ON nodes(project, workspace, status, since);
CREATE INDEX problems ON nodes(project, workspace, since) WHERE has_problem;
";

impl ActivityIndex {
    /// Opens the index for one boot of the machine, or creates a new one if there is no usable one. A new one
    /// has no sources, so the caller reads all of them.
    pub fn open(path: &Path, boot: &str) -> Result<ActivityIndex> {
        if let Ok(index) = ActivityIndex::connect(path)
            && index.is_from_boot(boot).unwrap_or(false)
        {
            return Ok(index);
        }
        crate::discard(path);
        let index = ActivityIndex::connect(path)?;
        index.db.execute_batch(&format!("BEGIN; {SCHEMA} PRAGMA user_version={VERSION}; COMMIT"))?;
        index.db.execute("INSERT INTO meta VALUES('boot', ?1)", [boot])?;
        Ok(index)
    }

    /// Creates an index in memory, for a folder that cannot be written.
    pub fn in_memory() -> Result<ActivityIndex> {
        let index = ActivityIndex { db: Connection::open_in_memory()? };
        index.db.execute_batch(SCHEMA)?;
        Ok(index)
    }

    fn connect(path: &Path) -> Result<ActivityIndex> {
        let db = crate::connect(path, OpenFlags::default())?;
        db.busy_timeout(std::time::Duration::from_secs(2))?;
        // No fsync, for the same reason as in the index of nodes.
        let sync = if cfg!(target_os = "linux") { "OFF" } else { "FULL" };
        db.execute_batch(&format!(
            "PRAGMA synchronous={sync}; PRAGMA journal_mode=PERSIST; PRAGMA cache_size=-4000; PRAGMA temp_store=MEMORY;"
        ))?;
        Ok(ActivityIndex { db })
    }

    fn is_from_boot(&self, boot: &str) -> Result<bool> {
        let version: i64 = self.db.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        let query = "SELECT value FROM meta WHERE key = 'boot'";
        Ok(version == VERSION
            && self.db.query_row(query, [], |row| row.get::<_, String>(0)).optional()?.as_deref()
                == Some(boot))
    }

    /// Runs `work` in a transaction.
    pub fn transaction<T>(&self, work: impl FnOnce(&ActivityIndex) -> Result<T>) -> Result<T> {
        self.db.execute_batch("BEGIN IMMEDIATE")?;
        let outcome = work(self);
        let end = if outcome.is_ok() { "COMMIT" } else { "ROLLBACK" };
        let ended = self.db.execute_batch(end);
        let value = outcome?;
        ended?;
        Ok(value)
    }

    /// Returns the scopes that have sources.
    pub fn scopes(&self) -> Result<Vec<String>> {
        let mut query = self.db.prepare_cached("SELECT DISTINCT scope FROM sources")?;
        let rows = query.query_map([], |row| row.get(0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Returns the names of the sources of a scope with their marks.
    pub fn sources(&self, scope: &str) -> Result<HashMap<String, i64>> {
        let mut query = self.db.prepare_cached("SELECT name, mark FROM sources WHERE scope = ?1")?;
        let rows = query.query_map([scope], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Replaces the entries of a source, and the state of the node if the source is one.
    pub fn replace(
        &self,
        scope: &str,
        name: &str,
        mark: i64,
        rows: &[ActivityRow],
        node: Option<&NodeStateRow>,
    ) -> Result<()> {
        self.clear(scope, name)?;
        self.append(scope, name, mark, rows)?;
        let Some(state) = node else { return Ok(()) };
        let mut query = self.db.prepare_cached(
            "INSERT INTO nodes SELECT id, ?3, ?4, ?5, ?6, ?7, ?8, ?9 FROM sources WHERE scope = ?1 AND name = ?2",
        )?;
        query.execute(params![
            scope,
            name,
            state.project,
            state.workspace,
            state.node,
            state.status,
            state.since,
            state.has_problem,
            state.data
        ])?;
        Ok(())
    }

    /// Adds entries to a source, which is created if it is new.
    pub fn append(&self, scope: &str, name: &str, mark: i64, rows: &[ActivityRow]) -> Result<()> {
        let mut query = self.db.prepare_cached(
            "INSERT INTO sources(scope, name, mark, next) VALUES(?1, ?2, ?3, ?4)
             ON CONFLICT(scope, name) DO UPDATE SET mark = ?3, next = next + ?4 RETURNING id, next",
        )?;
        let added = rows.len() as i64;
        let (source, next): (i64, i64) =
            query.query_row(params![scope, name, mark, added], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let mut query =
            self.db.prepare_cached("INSERT INTO entries VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")?;
        for (n, row) in (next - added..).zip(rows) {
            query.execute(params![
                source,
                n,
                row.at,
                row.kind,
                row.project,
                row.workspace,
                row.node,
                row.session,
                row.data
            ])?;
        }
        Ok(())
    }

    /// Removes the rows of a source. Its id stays, so that its entries keep their places in the order.
    fn clear(&self, scope: &str, name: &str) -> Result<()> {
        let of_source = "(SELECT id FROM sources WHERE scope = ?1 AND name = ?2)";
        for table in ["entries", "nodes"] {
            let mut query =
                self.db.prepare_cached(&format!("DELETE FROM {table} WHERE source = {of_source}"))?;
            query.execute([scope, name])?;
        }
        let mut query =
            self.db.prepare_cached("UPDATE sources SET next = 0 WHERE scope = ?1 AND name = ?2")?;
        query.execute([scope, name])?;
        Ok(())
    }

    /// Removes a source with its rows.
    pub fn remove(&self, scope: &str, name: &str) -> Result<()> {
        self.clear(scope, name)?;
        let mut query = self.db.prepare_cached("DELETE FROM sources WHERE scope = ?1 AND name = ?2")?;
        query.execute([scope, name])?;
        Ok(())
    }
}
