//! Dictionaries that the user added: pairs of a Chinese word and an English phrase, found from either side.
//!
//! Callers normalize both sides; nothing here depends on a language.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, params};

use crate::Result;

/// Version of the tables. Raise it with every change of them.
const VERSION: i64 = 1;

const SCHEMA: &str = "
CREATE TABLE lexicons(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, lines INTEGER NOT NULL, bad INTEGER NOT NULL,
  at INTEGER NOT NULL);
CREATE TABLE by_zh(zh TEXT, en TEXT, lexicon INTEGER, PRIMARY KEY(zh, lexicon, en)) WITHOUT ROWID;
CREATE TABLE by_en(en TEXT, zh TEXT, lexicon INTEGER, PRIMARY KEY(en, lexicon, zh)) WITHOUT ROWID;
";

/// One dictionary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LexiconInfo {
    pub name: String,
    /// Number of lines that were read, without comments and empty lines.
    pub lines: u64,
    /// Number of lines that could not be read.
    pub bad_lines: u64,
    pub pairs: u64,
    pub added_at: i64,
}

pub struct LexiconIndex {
    db: Connection,
}

impl LexiconIndex {
    /// Opens the dictionaries for a change, and creates the file if there is none. A file of another version
    /// or a damaged one is deleted: its dictionaries can be added again.
    pub fn open(path: &Path) -> Result<LexiconIndex> {
        if let Ok(db) = crate::connect(path, rusqlite::OpenFlags::default())
            && version(&db) == Some(VERSION)
        {
            return LexiconIndex::prepare(db);
        }
        crate::discard(path);
        let db = crate::connect(path, rusqlite::OpenFlags::default())?;
        db.execute_batch(&format!("BEGIN; {SCHEMA} PRAGMA user_version={VERSION}; COMMIT"))?;
        LexiconIndex::prepare(db)
    }

    fn prepare(db: Connection) -> Result<LexiconIndex> {
        db.busy_timeout(tanmi_base::lock::lock_timeout().min(std::time::Duration::from_secs(10)))?;
        // Sorting a large dictionary uses temporary files instead of memory.
        db.execute_batch("PRAGMA temp_store=FILE;")?;
        Ok(LexiconIndex { db })
    }

    /// Opens existing dictionaries read-only. Returns `None` if there are none.
    pub fn open_existing(path: &Path) -> Option<LexiconIndex> {
        if !path.exists() {
            return None;
        }
        let db = crate::connect(path, crate::READ_ONLY).ok()?;
        db.busy_timeout(std::time::Duration::from_millis(300)).ok()?;
        (version(&db) == Some(VERSION)).then_some(LexiconIndex { db })
    }

    /// Returns the English phrases for a Chinese word.
    pub fn english_for(&self, chinese: &str, limit: usize) -> Result<Vec<String>> {
        self.look_up("SELECT en FROM by_zh WHERE zh = ?1 LIMIT ?2", chinese, limit)
    }

    /// Returns the Chinese words for an English phrase, the shortest first.
    pub fn chinese_for(&self, english: &str, limit: usize) -> Result<Vec<String>> {
        self.look_up("SELECT zh FROM by_en WHERE en = ?1 ORDER BY length(zh), zh LIMIT ?2", english, limit)
    }

    fn look_up(&self, sql: &str, key: &str, limit: usize) -> Result<Vec<String>> {
        let mut query = self.db.prepare_cached(sql)?;
        let rows = query.query_map(params![key, limit as i64], |row| row.get(0))?;
        Ok(rows.collect::<std::result::Result<_, _>>()?)
    }

    /// Stores a dictionary in the place of one with the same name. `fill` passes every pair to its argument and returns
    /// the number of lines and of bad lines.
    pub fn replace<E: From<crate::IndexError>>(
        &self,
        name: &str,
        at: i64,
        fill: impl FnOnce(&mut dyn FnMut(&str, &str) -> Result<()>) -> std::result::Result<(u64, u64), E>,
    ) -> std::result::Result<LexiconInfo, E> {
        self.batch("CREATE TEMP TABLE IF NOT EXISTS pairs(zh TEXT, en TEXT); DELETE FROM temp.pairs; BEGIN IMMEDIATE")?;
        let result = self.fill(name, at, fill);
        self.batch(if result.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
        result
    }

    fn fill<E: From<crate::IndexError>>(
        &self,
        name: &str,
        at: i64,
        fill: impl FnOnce(&mut dyn FnMut(&str, &str) -> Result<()>) -> std::result::Result<(u64, u64), E>,
    ) -> std::result::Result<LexiconInfo, E> {
        let (lines, bad_lines) = fill(&mut |chinese, english| {
            let mut query = self.db.prepare_cached("INSERT INTO temp.pairs VALUES(?1, ?2)")?;
            query.execute([chinese, english])?;
            Ok(())
        })?;
        Ok(self.store(LexiconInfo { name: name.to_owned(), lines, bad_lines, pairs: 0, added_at: at })?)
    }

    /// Moves the collected pairs into the tables, in the order of their keys.
    fn store(&self, mut info: LexiconInfo) -> Result<LexiconInfo> {
        self.delete(&info.name)?;
        self.db.execute(
            "INSERT INTO lexicons(name, lines, bad, at) VALUES(?1, ?2, ?3, ?4)",
            params![info.name, info.lines as i64, info.bad_lines as i64, info.added_at],
        )?;
        let id = self.db.last_insert_rowid();
        let zh = "INSERT INTO by_zh SELECT DISTINCT zh, en, ?1 FROM temp.pairs ORDER BY zh, en";
        info.pairs = self.db.execute(zh, [id])? as u64;
        let en = "INSERT INTO by_en SELECT DISTINCT en, zh, ?1 FROM temp.pairs ORDER BY en, zh";
        self.db.execute(en, [id])?;
        self.batch("DELETE FROM temp.pairs")?;
        Ok(info)
    }

    /// Removes a dictionary. Returns whether there was one.
    pub fn remove(&self, name: &str) -> Result<bool> {
        self.batch("BEGIN IMMEDIATE")?;
        let removed = self.delete(name);
        self.batch(if removed.is_ok() { "COMMIT; VACUUM" } else { "ROLLBACK" })?;
        removed
    }

    fn delete(&self, name: &str) -> Result<bool> {
        let find = "SELECT id FROM lexicons WHERE name = ?1";
        let Some(id) = self.db.query_row(find, [name], |row| row.get::<_, i64>(0)).optional()? else {
            return Ok(false);
        };
        for table in ["by_zh", "by_en"] {
            self.db.execute(&format!("DELETE FROM {table} WHERE lexicon = ?1"), [id])?;
        }
        self.db.execute("DELETE FROM lexicons WHERE id = ?1", [id])?;
        Ok(true)
    }

    /// Returns the dictionaries, sorted by name.
    pub fn list(&self) -> Result<Vec<LexiconInfo>> {
        let mut query = self.db.prepare(
            "SELECT name, lines, bad, at, (SELECT count(*) FROM by_zh WHERE lexicon = lexicons.id) \
             FROM lexicons ORDER BY name",
        )?;
        let rows = query.query_map([], |row| {
            Ok(LexiconInfo {
                name: row.get(0)?,
                lines: row.get::<_, i64>(1)? as u64,
                bad_lines: row.get::<_, i64>(2)? as u64,
                added_at: row.get(3)?,
                pairs: row.get::<_, i64>(4)? as u64,
            })
        })?;
        Ok(rows.collect::<std::result::Result<_, _>>()?)
    }

    fn batch(&self, sql: &str) -> Result<()> {
        Ok(self.db.execute_batch(sql)?)
    }
}

fn version(db: &Connection) -> Option<i64> {
    db.query_row("PRAGMA user_version", [], |row| row.get(0)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(index: &LexiconIndex, name: &str, pairs: &[(&str, &str)]) -> LexiconInfo {
        index
            .replace::<crate::IndexError>(name, 7, |put| {
                pairs.iter().try_for_each(|(zh, en)| put(zh, en))?;
                Ok((pairs.len() as u64, 0))
            })
            .unwrap()
    }

    #[test]
    fn replace_same_name_keeps_only_new_pairs() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lexicon.sqlite");
        assert!(LexiconIndex::open_existing(&path).is_none());
        let index = LexiconIndex::open(&path).unwrap();
        assert_eq!(fill(&index, "one", &[("缓存", "cach"), ("缓存", "cach"), ("缓存", "buffer")]).pairs, 2);
        fill(&index, "two", &[("高速缓存", "cach"), ("锁", "lock")]);
        let read = LexiconIndex::open_existing(&path).unwrap();
        assert_eq!(read.english_for("缓存", 9).unwrap(), ["buffer", "cach"]);
        assert_eq!(read.chinese_for("cach", 9).unwrap(), ["缓存", "高速缓存"]);
        fill(&index, "one", &[("表", "tabl")]);
        assert_eq!(read.chinese_for("cach", 9).unwrap(), ["高速缓存"]);
        assert_eq!(index.list().unwrap().iter().map(|one| one.pairs).collect::<Vec<_>>(), [1, 2]);
        assert!(index.remove("two").unwrap() && !index.remove("two").unwrap());
        assert_eq!(read.english_for("锁", 9).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn replace_failed_import_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let index = LexiconIndex::open(&dir.path().join("lexicon.sqlite")).unwrap();
        fill(&index, "one", &[("锁", "lock")]);
        let failed = index.replace::<crate::IndexError>("one", 8, |put| {
            put("表", "tabl")?;
            Err(crate::IndexError::from(rusqlite::Error::InvalidQuery))
        });
        assert!(failed.is_err());
        assert_eq!(index.chinese_for("lock", 9).unwrap(), ["锁"]);
        assert_eq!(index.chinese_for("tabl", 9).unwrap(), Vec::<String>::new());
    }
}
