//! The index of one workspace's nodes: their parents, their status, and the signature of each file when it was
//! read.
//!
//! Triggers keep the counts per parent and for the workspace, and the number of open dependencies of each
//! node (`waits_for`), so that no query takes longer in a large workspace.

use std::cell::Cell;
use std::collections::HashMap;
use std::path::Path;

use rusqlite::{Connection, OpenFlags, OptionalExtension, params, params_from_iter};
use tanmi_base::fs::FileSig;

use crate::Result;

mod query;

pub use query::NodeQuery;

/// Version of the tables. Raise it with every change of the schema: an index of another version is deleted.
const VERSION: i64 = 5;

/// One node in the index. The caller defines the values of status, kind and role; the queries name those statuses that
/// they distinguish.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeRow {
    pub id: String,
    /// Id of the parent; empty for the root.
    pub parent: String,
    pub order: i64,
    pub title: String,
    pub kind: String,
    pub status: String,
    pub role: String,
    pub isolated: bool,
    pub has_problem: bool,
    pub created_at: i64,
    pub updated_at: i64,
    pub status_changed_at: i64,
    /// Time of the latest known log entry, also of entries written by hand; 0 if there is none.
    pub last_log_at: i64,
    pub log_len: i64,
    /// Ids of the nodes that must be completed first.
    pub depends_on: Vec<String>,
    /// The session that claimed the node; empty if none did.
    pub holder: String,
    pub sig: FileSig,
    /// Why the file cannot be read, if it cannot. The other fields are then the last known ones.
    pub damage: Option<String>,
}

/// Position of a child among its siblings; the next page starts after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowPosition {
    pub order: i64,
    pub created_at: i64,
    pub id: String,
}

impl NodeRow {
    pub fn position(&self) -> RowPosition {
        RowPosition { order: self.order, created_at: self.created_at, id: self.id.clone() }
    }
}

/// The children of one node with one status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchRow {
    pub id: String,
    /// Id of its parent; empty for the root and for a node that does not exist.
    pub parent: String,
    pub status: String,
    pub children: u64,
}

/// Number of children per status.
pub type StatusCountRows = Vec<(String, u64)>;

pub struct NodeIndex {
    db: Connection,
    /// Whether [`NodeIndex::prepare_to_write`] was called.
    is_writer: Cell<bool>,
}

/// Whether the rows of an opened index are valid, or must be read from the files first.
pub enum OpenOutcome {
    Kept(NodeIndex),
    New(NodeIndex),
}

/// The conditions of the indexes are comparisons: SQLite builds a table for every `NOT IN` with three values,
/// once per index and written row.
const SCHEMA: &str = "
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE nodes(
  id TEXT PRIMARY KEY, parent TEXT NOT NULL, ord INTEGER NOT NULL, title TEXT NOT NULL, kind TEXT NOT NULL,
  status TEXT NOT NULL, role TEXT NOT NULL, isolated INTEGER NOT NULL, has_problem INTEGER NOT NULL,
  created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, status_changed_at INTEGER NOT NULL,
  last_log_at INTEGER NOT NULL, log_len INTEGER NOT NULL, depends_on TEXT NOT NULL, holder TEXT NOT NULL,
  mtime_ns INTEGER NOT NULL, size INTEGER NOT NULL, inode INTEGER NOT NULL, damage TEXT,
  waits_for INTEGER NOT NULL DEFAULT 0);
CREATE INDEX siblings ON nodes(parent, ord, created_at, id);
CREATE INDEX recent ON nodes(parent, status, status_changed_at);
CREATE INDEX damaged ON nodes(id) WHERE damage IS NOT NULL;
CREATE INDEX open ON nodes(parent, ord, created_at, id)
  WHERE status <> 'completed' AND status <> 'failed' AND status <> 'cancelled';
CREATE INDEX started ON nodes(status_changed_at) WHERE status IN ('implementing', 'validating');
CREATE INDEX problems ON nodes(updated_at) WHERE has_problem;
CREATE INDEX held ON nodes(status_changed_at, id) WHERE holder <> '';
CREATE TABLE dependencies(node TEXT, target TEXT, PRIMARY KEY(node, target)) WITHOUT ROWID;
CREATE INDEX dependents ON dependencies(target);
CREATE INDEX unblocked ON nodes(parent, ord, created_at, id) WHERE waits_for = 0
  AND status <> 'completed' AND status <> 'failed' AND status <> 'cancelled' AND (status = 'pending' OR kind = 'planning');
CREATE INDEX blocked ON nodes(ord, created_at, id) WHERE waits_for > 0
  AND status <> 'completed' AND status <> 'failed' AND status <> 'cancelled' AND (status = 'pending' OR kind = 'planning');
CREATE TABLE tally(parent TEXT, status TEXT, n INTEGER NOT NULL, PRIMARY KEY(parent, status)) WITHOUT ROWID;
";

/// Keeps the derived tables and columns. Each writer creates them for itself: a reader, such as a hook, then
/// need not parse them.
const TRIGGERS: &str = "
CREATE TEMP VIEW open_dependencies AS SELECT d.node FROM dependencies AS d LEFT JOIN nodes AS t ON t.id = d.target
  WHERE t.status IS NOT 'completed';
CREATE TEMP TRIGGER depends AFTER INSERT ON nodes WHEN new.depends_on <> '' BEGIN
  INSERT OR IGNORE INTO dependencies SELECT new.id, value FROM json_each(new.depends_on);
  UPDATE nodes SET waits_for = (SELECT count(*) FROM open_dependencies WHERE node = new.id) WHERE id = new.id;
END;
CREATE TEMP TRIGGER depends_anew AFTER UPDATE OF depends_on ON nodes WHEN new.depends_on <> old.depends_on BEGIN
  DELETE FROM dependencies WHERE node = old.id;
  INSERT OR IGNORE INTO dependencies
    SELECT new.id, value FROM json_each(CASE new.depends_on WHEN '' THEN '[]' ELSE new.depends_on END);
  UPDATE nodes SET waits_for = (SELECT count(*) FROM open_dependencies WHERE node = new.id) WHERE id = new.id;
END;
CREATE TEMP TRIGGER depends_no_more AFTER DELETE ON nodes WHEN old.depends_on <> '' BEGIN
  DELETE FROM dependencies WHERE node = old.id;
END;
CREATE TEMP TRIGGER completed_new AFTER INSERT ON nodes WHEN new.status = 'completed' BEGIN
  UPDATE nodes SET waits_for = waits_for - 1 WHERE id IN (SELECT node FROM dependencies WHERE target = new.id);
END;
CREATE TEMP TRIGGER completed_gone AFTER DELETE ON nodes WHEN old.status = 'completed' BEGIN
  UPDATE nodes SET waits_for = waits_for + 1 WHERE id IN (SELECT node FROM dependencies WHERE target = old.id);
END;
CREATE TEMP TRIGGER completed AFTER UPDATE OF status ON nodes
  WHEN (new.status = 'completed') <> (old.status = 'completed') BEGIN
  UPDATE nodes SET waits_for = waits_for + CASE new.status WHEN 'completed' THEN -1 ELSE 1 END
    WHERE id IN (SELECT node FROM dependencies WHERE target = new.id);
END;
CREATE TEMP TRIGGER born AFTER INSERT ON nodes WHEN new.parent <> '' BEGIN
  INSERT INTO tally VALUES(new.parent, new.status, 1), ('', new.status, 1)
    ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TEMP TRIGGER gone AFTER DELETE ON nodes WHEN old.parent <> '' BEGIN
  UPDATE tally SET n = n - 1 WHERE status = old.status AND parent IN (old.parent, '');
END;
CREATE TEMP TRIGGER changed AFTER UPDATE OF parent, status ON nodes
  WHEN new.parent <> old.parent OR new.status <> old.status BEGIN
  UPDATE tally SET n = n - 1 WHERE old.parent <> '' AND status = old.status AND parent IN (old.parent, '');
  INSERT INTO tally SELECT p, new.status, 1 FROM (SELECT new.parent AS p UNION ALL SELECT '')
    WHERE new.parent <> '' ON CONFLICT DO UPDATE SET n = n + 1;
END;
";

const COLUMNS: &str = "id, parent, ord, title, kind, status, role, isolated, has_problem, created_at, updated_at, \
     status_changed_at, last_log_at, log_len, depends_on, holder, mtime_ns, size, inode, damage";

impl NodeIndex {
    /// Opens the index for one boot of the machine. It is written without fsync, so an index from an earlier
    /// boot, of another version or with damage is deleted and returned as [`OpenOutcome::New`].
    pub fn open(path: &Path, boot: &str) -> Result<OpenOutcome> {
        if let Ok(index) = NodeIndex::connect(path, OpenFlags::default())
            && index.is_from_boot(boot).unwrap_or(false)
        {
            index.prepare_to_write()?;
            return Ok(OpenOutcome::Kept(index));
        }
        crate::discard(path);
        let index = NodeIndex::connect(path, OpenFlags::default())?;
        index.set_up()?;
        index.set_meta("boot", boot)?;
        Ok(OpenOutcome::New(index))
    }

    /// Opens the index if it exists and is of this boot and version, and begins a read transaction. Never creates or
    /// deletes it.
    pub fn open_current(path: &Path, boot: &str) -> Result<Option<NodeIndex>> {
        let flags = OpenFlags::default().difference(OpenFlags::SQLITE_OPEN_CREATE);
        let index = NodeIndex::connect(path, flags)?;
        index.begin_read()?;
        Ok(index.is_from_boot(boot)?.then_some(index))
    }

    /// Opens an index that another process maintains, read-only, and begins a read transaction. Returns
    /// `None` if there is no index of this boot.
    pub fn open_existing(path: &Path, boot: &str) -> Option<NodeIndex> {
        let index = NodeIndex::connect(path, crate::READ_ONLY).ok()?;
        // A hook has no time to wait for a scan.
        index.db.busy_timeout(std::time::Duration::from_millis(300)).ok()?;
        index.begin_read().ok()?;
        index.is_from_boot(boot).unwrap_or(false).then_some(index)
    }

    /// Creates an index in memory, for a folder that cannot be written.
    pub fn in_memory() -> Result<NodeIndex> {
        let index = NodeIndex::new(Connection::open_in_memory()?);
        index.set_up()?;
        Ok(index)
    }

    fn new(db: Connection) -> NodeIndex {
        db.set_prepared_statement_cache_capacity(32);
        NodeIndex { db, is_writer: Cell::new(false) }
    }

    fn connect(path: &Path, flags: OpenFlags) -> Result<NodeIndex> {
        Ok(NodeIndex::new(crate::connect(path, flags)?))
    }

    /// Creates the tables of a new index.
    fn set_up(&self) -> Result<()> {
        self.prepare_to_write_with(&format!("BEGIN; {SCHEMA} PRAGMA user_version={VERSION}; COMMIT;"))
    }

    /// Sets what only a writer needs: how changes reach the disk, and the triggers. A reader is spared it,
    /// because it takes longer than a typical query.
    fn prepare_to_write(&self) -> Result<()> {
        if self.is_writer.get() { Ok(()) } else { self.prepare_to_write_with("") }
    }

    fn prepare_to_write_with(&self, schema: &str) -> Result<()> {
        // No fsync: a crash of the program leaves a rollback journal, and after a crash of the machine the boot
        // id differs. Systems without a boot id sync, because a crash must not leave a damaged index behind.
        let sync = if cfg!(target_os = "linux") { "OFF" } else { "FULL" };
        self.db.execute_batch(&format!(
            "PRAGMA synchronous={sync}; PRAGMA journal_mode=PERSIST; PRAGMA temp_store=MEMORY; {schema} {TRIGGERS}",
        ))?;
        self.is_writer.set(true);
        Ok(())
    }

    fn is_from_boot(&self, boot: &str) -> Result<bool> {
        let version: i64 = self.db.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        // An index may come with a cloned repository, and a view in the place of the table could be a query that never
        // ends. An index with the boot id of this machine is one of ours.
        Ok(version == VERSION
            && self.db.table_exists(Some("main"), "meta")?
            && self.meta("boot")?.as_deref() == Some(boot))
    }

    pub fn begin(&self) -> Result<()> {
        self.prepare_to_write()?;
        Ok(self.db.prepare_cached("BEGIN IMMEDIATE")?.execute([]).map(|_| ())?)
    }

    /// Begins a read transaction, which locks the file once instead of once per query.
    pub fn begin_read(&self) -> Result<()> {
        Ok(self.db.prepare_cached("BEGIN")?.execute([]).map(|_| ())?)
    }

    /// Begins a transaction that reads, and may write later.
    pub fn begin_refresh(&self) -> Result<()> {
        self.prepare_to_write()?;
        self.begin_read()
    }

    pub fn commit(&self) -> Result<()> {
        Ok(self.db.prepare_cached("COMMIT")?.execute([]).map(|_| ())?)
    }

    /// Undoes everything since [`NodeIndex::begin`]; does nothing without one.
    pub fn rollback(&self) {
        if !self.db.is_autocommit() {
            let _ = self.db.execute_batch("ROLLBACK");
        }
    }

    pub fn meta(&self, key: &str) -> Result<Option<String>> {
        let mut statement = self.db.prepare_cached("SELECT value FROM meta WHERE key = ?1")?;
        Ok(statement.query_row([key], |row| row.get(0)).optional()?)
    }

    /// Returns all metadata with one query.
    pub fn metas(&self) -> Result<HashMap<String, String>> {
        let mut statement = self.db.prepare_cached("SELECT key, value FROM meta")?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    pub fn set_meta(&self, key: &str, value: &str) -> Result<()> {
        let mut statement = self.db.prepare_cached("INSERT OR REPLACE INTO meta VALUES(?1, ?2)")?;
        statement.execute([key, value])?;
        Ok(())
    }

    pub fn get(&self, id: &str) -> Result<Option<NodeRow>> {
        let mut statement = self.db.prepare_cached(&format!("SELECT {COLUMNS} FROM nodes WHERE id = ?1"))?;
        Ok(statement.query_row([id], read_row).optional()?)
    }

    pub fn put(&self, row: &NodeRow) -> Result<()> {
        let mut statement = self.db.prepare_cached(
            "INSERT INTO nodes VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,0)
             ON CONFLICT(id) DO UPDATE SET parent=?2, ord=?3, title=?4, kind=?5, status=?6, role=?7, isolated=?8,
             has_problem=?9, created_at=?10, updated_at=?11, status_changed_at=?12, last_log_at=?13, log_len=?14,
             depends_on=?15, holder=?16, mtime_ns=?17, size=?18, inode=?19, damage=?20",
        )?;
        statement.execute(params![
            row.id,
            row.parent,
            row.order,
            row.title,
            row.kind,
            row.status,
            row.role,
            row.isolated,
            row.has_problem,
            row.created_at,
            row.updated_at,
            row.status_changed_at,
            row.last_log_at,
            row.log_len,
            join_ids(&row.depends_on),
            row.holder,
            row.sig.mtime_ns,
            row.sig.size as i64,
            row.sig.inode as i64,
            row.damage,
        ])?;
        Ok(())
    }

    pub fn set_sig(&self, id: &str, sig: FileSig) -> Result<()> {
        let mut statement =
            self.db.prepare_cached("UPDATE nodes SET mtime_ns = ?2, size = ?3, inode = ?4 WHERE id = ?1")?;
        statement.execute(params![id, sig.mtime_ns, sig.size as i64, sig.inode as i64])?;
        Ok(())
    }

    pub fn remove(&self, id: &str) -> Result<()> {
        self.db.prepare_cached("DELETE FROM nodes WHERE id = ?1")?.execute([id])?;
        Ok(())
    }

    /// Returns up to `limit` children in their order, starting after `after`.
    pub fn children(&self, parent: &str, after: Option<&RowPosition>, limit: usize) -> Result<Vec<NodeRow>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = match after {
            None => {
                let mut statement = self.db.prepare_cached(&format!(
                    "SELECT {COLUMNS} FROM nodes WHERE parent = ?1 ORDER BY ord, created_at, id LIMIT ?2"
                ))?;
                statement.query_map(params![parent, limit], read_row)?.collect::<rusqlite::Result<Vec<_>>>()
            }
            Some(after) => {
                let mut statement = self.db.prepare_cached(&format!(
                    "SELECT {COLUMNS} FROM nodes WHERE parent = ?1 AND (ord, created_at, id) > (?3, ?4, ?5)
                     ORDER BY ord, created_at, id LIMIT ?2"
                ))?;
                statement
                    .query_map(params![parent, limit, after.order, after.created_at, after.id], read_row)?
                    .collect::<rusqlite::Result<Vec<_>>>()
            }
        };
        Ok(rows?)
    }

    /// Returns the first nodes of a query, at most `limit`.
    pub fn select(&self, query: &NodeQuery<'_>, limit: usize) -> Result<Vec<NodeRow>> {
        let (condition, mut named) = query.selection();
        let mut statement = self
            .db
            .prepare_cached(&format!("SELECT {COLUMNS} FROM nodes AS n WHERE {condition} LIMIT :limit"))?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        named.push((":limit", &limit));
        Ok(statement.query_map(&*named, read_row)?.collect::<rusqlite::Result<_>>()?)
    }

    /// Returns every dependency, or those on one node, as the id of a node and the id of the node it depends on.
    pub fn dependencies(&self, on: Option<&str>) -> Result<Vec<(String, String)>> {
        let sql = match on {
            None => "SELECT node, target FROM dependencies",
            Some(_) => "SELECT node, target FROM dependencies WHERE target = ?1",
        };
        let mut statement = self.db.prepare_cached(sql)?;
        let rows = statement.query_map(params_from_iter(on), |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    pub fn last_order(&self, parent: &str) -> Result<i64> {
        let mut statement = self.db.prepare_cached(
            "SELECT ord FROM nodes WHERE parent = ?1 AND ord < ?2 ORDER BY ord DESC, created_at DESC, id DESC LIMIT 1",
        )?;
        // Nodes created by hand have no order and come last.
        Ok(statement.query_row(params![parent, i64::MAX], |row| row.get(0)).optional()?.unwrap_or(0))
    }

    /// Returns the counts of a parent's children. With an empty parent, returns the counts of all nodes except
    /// the root.
    pub fn status_counts(&self, parent: &str) -> Result<StatusCountRows> {
        let mut statement =
            self.db.prepare_cached("SELECT status, n FROM tally WHERE parent = ?1 AND n > 0")?;
        let rows = statement.query_map([parent], |row| Ok((row.get(0)?, row.get::<_, i64>(1)? as u64)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Returns the number of children of each of these nodes, without those that have none.
    pub fn child_counts(&self, parents: &[&str]) -> Result<HashMap<String, u64>> {
        if parents.is_empty() {
            return Ok(HashMap::new());
        }
        let mut statement = self.db.prepare_cached(
            "SELECT parent, sum(n) FROM tally
             WHERE parent IN (SELECT value FROM json_each(?1)) AND n > 0 GROUP BY parent",
        )?;
        let rows = statement
            .query_map([join_ids(parents)], |row| Ok((row.get(0)?, row.get::<_, i64>(1)? as u64)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Returns the counts of all nodes that have children. Takes as long as there are such nodes, however many children
    /// they have.
    pub fn branches(&self) -> Result<Vec<BranchRow>> {
        let mut statement = self.db.prepare_cached(
            "SELECT t.parent, coalesce(n.parent, ''), t.status, t.n FROM tally AS t
             LEFT JOIN nodes AS n ON n.id = t.parent WHERE t.parent <> '' AND t.n > 0",
        )?;
        let rows = statement.query_map([], |row| {
            let children = row.get::<_, i64>(3)? as u64;
            Ok(BranchRow { id: row.get(0)?, parent: row.get(1)?, status: row.get(2)?, children })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Returns every id with its file signature, for a scan.
    pub fn signatures(&self) -> Result<Vec<(String, FileSig)>> {
        let mut statement = self.db.prepare_cached("SELECT id, mtime_ns, size, inode FROM nodes")?;
        let rows = statement.query_map([], |row| {
            let sig = FileSig {
                mtime_ns: row.get(1)?,
                size: row.get::<_, i64>(2)? as u64,
                inode: row.get::<_, i64>(3)? as u64,
            };
            Ok((row.get(0)?, sig))
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Returns when a node last changed.
    pub fn last_update(&self) -> Result<i64> {
        Ok(self.db.query_row("SELECT coalesce(max(updated_at), 0) FROM nodes", [], |row| row.get(0))?)
    }
}

/// Returns ids as a JSON array; empty without ids. Ids of nodes have no characters that JSON escapes.
fn join_ids(ids: &[impl std::fmt::Display]) -> String {
    match ids {
        [] => String::new(),
        ids => format!("[{}]", ids.iter().map(|id| format!("\"{id}\"")).collect::<Vec<_>>().join(",")),
    }
}

/// Returns the ids of a JSON array that [`join_ids`] wrote.
fn split_ids(joined: &str) -> Vec<String> {
    let ids = joined.trim_matches(['[', ']']).split(',').map(|id| id.trim_matches('"'));
    ids.filter(|id| !id.is_empty()).map(String::from).collect()
}

fn read_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<NodeRow> {
    Ok(NodeRow {
        id: row.get(0)?,
        parent: row.get(1)?,
        order: row.get(2)?,
        title: row.get(3)?,
        kind: row.get(4)?,
        status: row.get(5)?,
        role: row.get(6)?,
        isolated: row.get(7)?,
        has_problem: row.get(8)?,
        created_at: row.get(9)?,
        updated_at: row.get(10)?,
        status_changed_at: row.get(11)?,
        last_log_at: row.get(12)?,
        log_len: row.get(13)?,
        depends_on: split_ids(&row.get::<_, String>(14)?),
        holder: row.get(15)?,
        sig: FileSig {
            mtime_ns: row.get(16)?,
            size: row.get::<_, i64>(17)? as u64,
            inode: row.get::<_, i64>(18)? as u64,
        },
        damage: row.get(19)?,
    })
}

#[cfg(test)]
mod tests;
