//! Removes what the database keeps for a limited time: answers of requests, documents of old changes, deleted nodes.
//!
//! Changes themselves stay, because they tell who did what. Changes of the memory keep their lines, which are its only
//! copy of marks. Deleted workspaces stay until a person removes them from the database.

use tanmi_base::Millis;
use tanmi_base::clock::DAY;
use tanmi_workspace::error::Result;

use crate::pool::Pool;
use crate::store::PgStore;

/// How long the database keeps what it needs for a limited time only.
pub const RETENTION: Millis = 30 * DAY;
/// The most rows of one statement, so that no statement keeps writers waiting.
const BATCH: i64 = 500;

const PROJECTS: &str = "SELECT id FROM project ORDER BY id";
macro_rules! expired {
    ($column:literal) => {
        concat!($column, " < (extract(epoch FROM clock_timestamp()) * 1000)::bigint - $2::bigint")
    };
}
const REMOVE_ANSWERS: &str = concat!(
    "DELETE FROM request WHERE project = $1 AND key IN (
    SELECT key FROM request WHERE project = $1 AND ",
    expired!("at"),
    " LIMIT $3) RETURNING 1"
);
const REMOVE_DOCUMENTS: &str = concat!(
    "UPDATE change SET docs = '{}' WHERE project = $1 AND (stream, seq) IN (
    SELECT stream, seq FROM change WHERE project = $1 AND cardinality(docs) > 0 AND stream <> 'memory' AND ",
    expired!("at"),
    " LIMIT $3) RETURNING 1"
);
const REMOVE_NODES: &str = concat!(
    "DELETE FROM trash WHERE project = $1 AND (ws, id) IN (
    SELECT ws, id FROM trash WHERE project = $1 AND ",
    expired!("deleted_at"),
    " LIMIT $3) RETURNING 1"
);

/// The number of rows that were removed or emptied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expired {
    pub answers: usize,
    pub changes: usize,
    pub nodes: usize,
}

impl Pool {
    /// Returns the ids of all projects.
    pub fn project_ids(&self) -> Result<Vec<String>> {
        let mut connection = self.begin("BEGIN", "")?;
        let rows = connection.query(PROJECTS, &[]);
        connection.roll_back();
        Ok(rows?.iter().map(|row| row.get("id")).collect())
    }
}

impl PgStore {
    /// Removes what is older than [`RETENTION`]. Ends early once `should_stop` returns `true`.
    pub fn remove_expired(&self, should_stop: &dyn Fn() -> bool) -> Result<Expired> {
        let remove_all = |sql: &'static str| -> Result<usize> {
            let mut total = 0;
            while !should_stop() {
                let removed = self.query(sql, &[&RETENTION, &BATCH])?.len();
                total += removed;
                if (removed as i64) < BATCH {
                    break;
                }
            }
            Ok(total)
        };
        Ok(Expired {
            answers: remove_all(REMOVE_ANSWERS)?,
            changes: remove_all(REMOVE_DOCUMENTS)?,
            nodes: remove_all(REMOVE_NODES)?,
        })
    }
}
