//! The files that were read and how far. Removing a file removes everything read from it.

use rusqlite::{params, params_from_iter};

use super::{IndexedFile, MemoryIndex};
use crate::Result;

impl MemoryIndex {
    /// Returns the files that were read: all, or those with one of these names.
    pub fn files(&self, names: Option<&[&str]>) -> Result<Vec<IndexedFile>> {
        let places = names
            .map_or(String::new(), |names| format!(" WHERE name IN ({})", vec!["?"; names.len()].join(",")));
        let sql = format!("SELECT name, inode, mtime_ns, size, tail, bad FROM files{places}");
        let mut query = self.db.prepare_cached(&sql)?;
        let rows = query.query_map(params_from_iter(names.unwrap_or_default()), |row| {
            Ok(IndexedFile {
                name: row.get(0)?,
                inode: row.get::<_, i64>(1)? as u64,
                mtime_ns: row.get(2)?,
                size: row.get::<_, i64>(3)? as u64,
                tail: row.get(4)?,
                bad_lines: row.get::<_, i64>(5)? as u64,
            })
        })?;
        Ok(rows.collect::<std::result::Result<_, _>>()?)
    }

    pub fn put_file(&self, file: &IndexedFile) -> Result<()> {
        let mut query =
            self.db.prepare_cached("INSERT OR REPLACE INTO files VALUES(?1, ?2, ?3, ?4, ?5, ?6)")?;
        query.execute(params![
            file.name,
            file.inode as i64,
            file.mtime_ns,
            file.size as i64,
            file.tail,
            file.bad_lines as i64
        ])?;
        Ok(())
    }

    /// Removes a file and everything that was read from it.
    pub fn drop_file(&self, name: &str) -> Result<()> {
        let (docs, length): (i64, i64) = self.db.query_row(
            "SELECT count(*), coalesce(sum(len), 0) FROM records WHERE file = ?1",
            [name],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        self.db
            .execute("DELETE FROM terms WHERE rowid IN (SELECT n FROM records WHERE file = ?1)", [name])?;
        self.db.execute("DELETE FROM vectors WHERE n IN (SELECT n FROM records WHERE file = ?1)", [name])?;
        self.db.execute("DELETE FROM records WHERE file = ?1", [name])?;
        let mut query = self.db.prepare("SELECT DISTINCT target FROM marks WHERE file = ?1")?;
        let targets: Vec<String> =
            query.query_map([name], |row| row.get(0))?.collect::<std::result::Result<_, _>>()?;
        self.db.execute("DELETE FROM marks WHERE file = ?1", [name])?;
        self.db.execute("DELETE FROM files WHERE name = ?1", [name])?;
        for target in &targets {
            self.apply_marks(target)?;
        }
        self.add_to_totals(-docs, -length)
    }
}
