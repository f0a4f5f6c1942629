//! Embedding vectors of the memories, for one model at a time.

use rusqlite::{OptionalExtension, params};

use super::MemoryIndex;
use crate::Result;

impl MemoryIndex {
    /// Selects the embedding model. Deletes the vectors of any other model.
    pub fn use_model(&self, id: &str) -> Result<()> {
        let known: Option<String> =
            self.db.query_row("SELECT id FROM model", [], |row| row.get(0)).optional()?;
        if known.as_deref() != Some(id) {
            self.db.execute_batch("DELETE FROM vectors; DELETE FROM model;")?;
            self.db.execute("INSERT INTO model VALUES(?1)", [id])?;
        }
        Ok(())
    }

    /// Returns the numbers and contents of memories that have no vector yet.
    pub fn without_vector(&self, limit: usize) -> Result<Vec<(i64, String)>> {
        let sql = "SELECT n, content FROM records WHERE n NOT IN (SELECT n FROM vectors) ORDER BY n LIMIT ?1";
        let mut query = self.db.prepare_cached(sql)?;
        let rows = query.query_map([limit as i64], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<std::result::Result<_, _>>()?)
    }

    pub fn put_vector(&self, n: i64, vector: &[u8]) -> Result<()> {
        let mut query = self.db.prepare_cached("INSERT OR REPLACE INTO vectors VALUES(?1, ?2)")?;
        query.execute(params![n, vector])?;
        Ok(())
    }

    /// Calls `visit` with every vector.
    pub fn each_vector(&self, mut visit: impl FnMut(i64, &[u8])) -> Result<()> {
        let mut query = self.db.prepare_cached("SELECT n, v FROM vectors")?;
        let mut rows = query.query([])?;
        while let Some(row) = rows.next()? {
            visit(row.get(0)?, row.get_ref(1)?.as_blob().unwrap_or_default());
        }
        Ok(())
    }
}
