//! Embedding vectors of the memories, for one model at a time.

use rusqlite::{Connection, OptionalExtension, params};

use super::MemoryIndex;
use crate::Result;

/// The vectors of one model.
pub struct Vectors<'a> {
    db: &'a Connection,
}

impl MemoryIndex {
    /// Returns the vectors of an embedding model. Deletes those of any other model.
    pub fn vectors_of(&self, model: &str) -> Result<Vectors<'_>> {
        let known: Option<String> =
            self.db.query_row("SELECT id FROM model", [], |row| row.get(0)).optional()?;
        if known.as_deref() != Some(model) {
            self.db.execute_batch("DELETE FROM vectors; DELETE FROM model;")?;
            self.db.execute("INSERT INTO model VALUES(?1)", [model])?;
        }
        Ok(Vectors { db: &self.db })
    }
}

impl Vectors<'_> {
    /// Returns the numbers and contents of memories that have no vector yet.
    pub fn missing(&self, limit: usize) -> Result<Vec<(i64, String)>> {
        let sql = "SELECT n, content FROM records WHERE n NOT IN (SELECT n FROM vectors) ORDER BY n LIMIT ?1";
        let mut query = self.db.prepare_cached(sql)?;
        let rows = query.query_map([limit as i64], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<std::result::Result<_, _>>()?)
    }

    pub fn put(&self, n: i64, vector: &[u8]) -> Result<()> {
        let mut query = self.db.prepare_cached("INSERT OR REPLACE INTO vectors VALUES(?1, ?2)")?;
        query.execute(params![n, vector])?;
        Ok(())
    }

    /// Calls `visit` with every vector.
    pub fn each(&self, mut visit: impl FnMut(i64, &[u8])) -> Result<()> {
        let mut query = self.db.prepare_cached("SELECT n, v FROM vectors")?;
        let mut rows = query.query([])?;
        while let Some(row) = rows.next()? {
            visit(row.get(0)?, row.get_ref(1)?.as_blob().unwrap_or_default());
        }
        Ok(())
    }
}
