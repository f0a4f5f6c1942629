//! The index of a project's memories: what they are, when, whose, and which terms occur in them.
//!
//! Terms arrive ready made; nothing here knows a language.

use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, params, params_from_iter};

use crate::Result;

mod files;
mod vectors;

/// Raised whenever the tables or the making of terms change: an index of another version is thrown away.
const VERSION: i64 = 4;

/// A term in more memories than this is counted once and for all.
const COMMON: i64 = 2_000;

/// One memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemoryRow {
    /// Its place in the order of reading, given by the index.
    pub n: i64,
    pub id: String,
    pub file: String,
    /// `fact`, `summary` or `turn`.
    pub kind: String,
    /// The letter it is shown with.
    pub letter: String,
    pub content: String,
    pub entities: String,
    pub confidence: Option<f64>,
    pub at: Option<i64>,
    /// The time as it was written.
    pub stamp: String,
    pub session: String,
    pub speaker: String,
    /// Everything else of the record, as JSON.
    pub more: String,
    /// Tells equal contents.
    pub same: i64,
    /// How many terms.
    pub len: i64,
    /// Whether it asks something.
    pub asks: bool,
    pub hidden: bool,
    /// What replaced it, if something did.
    pub replaced_by: String,
}

/// As much of a memory as ranking looks at.
#[derive(Clone, Debug, Default)]
pub struct Outline {
    pub n: i64,
    pub kind: String,
    pub letter: String,
    pub at: Option<i64>,
    pub session: String,
    pub speaker: String,
    pub asks: bool,
    pub words: String,
    pub hidden: bool,
}

/// What a file was when it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadFile {
    pub name: String,
    pub inode: u64,
    pub mtime_ns: i64,
    /// Bytes that were read, whole lines only.
    pub size: u64,
    /// Digest of the last of them.
    pub tail: String,
    pub bad_lines: u64,
}

#[derive(Clone, Debug, Default)]
pub struct MemoryFilter {
    pub letter: Option<String>,
    pub session: Option<String>,
    pub since: Option<i64>,
    pub until: Option<i64>,
    /// Also what was forgotten or replaced.
    pub all: bool,
}

impl MemoryFilter {
    fn has_wish(&self) -> bool {
        self.letter.is_some() || self.session.is_some() || self.since.is_some() || self.until.is_some()
    }
}

pub struct MemoryIndex {
    db: Connection,
}

const SCHEMA: &str = "
CREATE TABLE meta(key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE files(name TEXT PRIMARY KEY, inode INTEGER, mtime_ns INTEGER, size INTEGER, tail TEXT, bad INTEGER) WITHOUT ROWID;
CREATE TABLE records(
  n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, file TEXT NOT NULL, kind TEXT NOT NULL, letter TEXT NOT NULL,
  content TEXT NOT NULL, entities TEXT NOT NULL, confidence REAL, at INTEGER, stamp TEXT NOT NULL, session TEXT NOT NULL,
  speaker TEXT NOT NULL, more TEXT NOT NULL, same INTEGER NOT NULL, len INTEGER NOT NULL, words TEXT NOT NULL, asks INTEGER NOT NULL, hidden INTEGER NOT NULL,
  replaced_by TEXT NOT NULL);
CREATE INDEX recent ON records(kind, hidden, at);
CREATE INDEX same ON records(same);
CREATE INDEX of_file ON records(file);
CREATE TABLE marks(seq INTEGER PRIMARY KEY, target TEXT NOT NULL, file TEXT NOT NULL, hidden INTEGER NOT NULL, by TEXT NOT NULL);
CREATE INDEX of_target ON marks(target, file, seq);
CREATE INDEX of_mark_file ON marks(file);
CREATE VIRTUAL TABLE terms USING fts5(body, content='', contentless_delete=1, tokenize=\"unicode61 remove_diacritics 0 tokenchars '_'\");
CREATE TABLE common(term TEXT PRIMARY KEY, doc INTEGER NOT NULL) WITHOUT ROWID;
CREATE VIRTUAL TABLE vocabulary USING fts5vocab(terms, 'row');
CREATE TABLE vectors(n INTEGER PRIMARY KEY, v BLOB NOT NULL);
CREATE TABLE model(id TEXT NOT NULL);
INSERT INTO meta VALUES('docs', 0), ('length', 0), ('twice', 0), ('counted', 0);
";

const COLUMNS: &str = "n, id, file, kind, letter, content, entities, confidence, at, stamp, session, speaker, more, same, \
     len, asks, hidden, replaced_by";

impl MemoryIndex {
    /// Opens the index, or makes a new one where there is none that can be used; then everything has to be read again.
    pub fn open(path: &Path) -> Result<MemoryIndex> {
        if let Ok(index) = MemoryIndex::connect(path)
            && index.version() == Some(VERSION)
        {
            return Ok(index);
        }
        MemoryIndex::discard(path);
        let index = MemoryIndex::connect(path)?;
        index.db.execute_batch(&format!("BEGIN; {SCHEMA} PRAGMA user_version={VERSION}; COMMIT"))?;
        Ok(index)
    }

    /// A look without a right to write. `None` if there is none to look at.
    pub fn peek(path: &Path) -> Option<MemoryIndex> {
        use rusqlite::OpenFlags;
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let index = MemoryIndex { db: Connection::open_with_flags(path, flags).ok()? };
        index.db.busy_timeout(std::time::Duration::from_millis(300)).ok()?;
        (index.version() == Some(VERSION)).then_some(index)
    }

    /// Waits no longer than this for another writer.
    pub fn set_patience(&self, patience: std::time::Duration) -> Result<()> {
        Ok(self.db.busy_timeout(patience)?)
    }

    pub fn in_memory() -> Result<MemoryIndex> {
        let index = MemoryIndex { db: Connection::open_in_memory()? };
        index.db.execute_batch(SCHEMA)?;
        Ok(index)
    }

    fn connect(path: &Path) -> Result<MemoryIndex> {
        let db = Connection::open(path)?;
        db.busy_timeout(std::time::Duration::from_secs(10))?;
        // Derived: a crash costs reading the files again. WAL lets hooks look while somebody writes.
        db.execute_batch("PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; PRAGMA temp_store=MEMORY;")?;
        Ok(MemoryIndex { db })
    }

    fn version(&self) -> Option<i64> {
        self.db.query_row("PRAGMA user_version", [], |row| row.get(0)).ok()
    }

    pub fn discard(path: &Path) {
        crate::discard(path);
    }

    /// Everything `work` does happens at once, or not at all.
    pub fn transaction<T, E: From<crate::IndexError>>(
        &self,
        work: impl FnOnce(&MemoryIndex) -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        self.batch("BEGIN IMMEDIATE")?;
        match work(self) {
            Ok(value) => {
                self.batch("COMMIT")?;
                Ok(value)
            }
            Err(error) => {
                let _ = self.batch("ROLLBACK");
                Err(error)
            }
        }
    }

    fn batch(&self, sql: &str) -> Result<()> {
        Ok(self.db.execute_batch(sql)?)
    }

    fn grow(&self, docs: i64, length: i64) -> Result<()> {
        let mut query = self.db.prepare_cached("UPDATE meta SET value = value + ?2 WHERE key = ?1")?;
        query.execute(params!["docs", docs])?;
        query.execute(params!["length", length])?;
        Ok(())
    }

    /// Whether it was new: a record whose id is known already changes nothing.
    pub fn insert(&self, row: &MemoryRow, terms: &[String]) -> Result<bool> {
        let mut query = self.db.prepare_cached(
            "INSERT OR IGNORE INTO records(id, file, kind, letter, content, entities, confidence, at, stamp, session, \
             speaker, more, same, len, words, asks, hidden, replaced_by) \
             VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16, 0, '')",
        )?;
        let added = query.execute(params![
            row.id,
            row.file,
            row.kind,
            row.letter,
            row.content,
            row.entities,
            row.confidence,
            row.at,
            row.stamp,
            row.session,
            row.speaker,
            row.more,
            row.same,
            terms.len() as i64,
            terms.join(" "),
            row.asks,
        ])?;
        if added == 0 {
            // If the other one goes, this one has to be read again.
            self.db.execute("UPDATE meta SET value = value + 1 WHERE key = 'twice'", [])?;
            return Ok(false);
        }
        let n = self.db.last_insert_rowid();
        let mut query = self.db.prepare_cached("INSERT INTO terms(rowid, body) VALUES(?1, ?2)")?;
        query.execute(params![n, encode_all(terms)])?;
        self.grow(1, terms.len() as i64)?;
        self.apply_marks(&row.id)?;
        Ok(true)
    }

    /// Hides a record or shows it again. The last word counts: of the latest file, and in it the last.
    pub fn mark(&self, target: &str, hidden: bool, by: &str, file: &str) -> Result<()> {
        let mut query =
            self.db.prepare_cached("INSERT INTO marks(target, file, hidden, by) VALUES(?1, ?2, ?3, ?4)")?;
        query.execute(params![target, file, hidden, by])?;
        self.apply_marks(target)
    }

    fn apply_marks(&self, target: &str) -> Result<()> {
        let mut query = self.db.prepare_cached(
            "SELECT hidden, by FROM marks WHERE target = ?1 ORDER BY file DESC, seq DESC LIMIT 1",
        )?;
        let last: Option<(bool, String)> =
            query.query_row([target], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let (hidden, by) = last.unwrap_or_default();
        let mut query =
            self.db.prepare_cached("UPDATE records SET hidden = ?2, replaced_by = ?3 WHERE id = ?1")?;
        query.execute(params![target, hidden, if hidden { by } else { String::new() }])?;
        Ok(())
    }

    /// Everything goes, to be read again.
    pub fn clear(&self) -> Result<()> {
        self.batch(
            "DELETE FROM terms; DELETE FROM records; DELETE FROM marks; DELETE FROM files; DELETE FROM vectors; \
             DELETE FROM common; UPDATE meta SET value = 0;",
        )
    }

    /// Whether some id was found more than once.
    pub fn has_twins(&self) -> Result<bool> {
        Ok(self.meta("twice")? > 0)
    }

    /// How many memories there are, and how many terms on average.
    pub fn collection(&self) -> Result<(u64, f32)> {
        let (docs, length) = (self.meta("docs")?, self.meta("length")?);
        Ok((docs.max(0) as u64, length as f32 / docs.max(1) as f32))
    }

    fn meta(&self, key: &str) -> Result<i64> {
        let mut query = self.db.prepare_cached("SELECT value FROM meta WHERE key = ?1")?;
        Ok(query.query_row([key], |row| row.get(0))?)
    }

    /// In how many memories a term occurs. For one that is in very many, as many as there were when they were counted.
    pub fn frequency(&self, term: &str) -> Result<u64> {
        let term = encode(term);
        for table in ["common", "vocabulary"] {
            let mut query = self.db.prepare_cached(&format!("SELECT doc FROM {table} WHERE term = ?1"))?;
            if let Some(count) = query.query_row([&term], |row| row.get::<_, i64>(0)).optional()? {
                return Ok(count as u64);
            }
        }
        Ok(0)
    }

    /// Counts the terms that are in very many memories, each time these have doubled: SQLite finds out how many there are of
    /// a term by walking along all of them.
    pub fn count_common(&self) -> Result<()> {
        let (docs, counted) = (self.meta("docs")?, self.meta("counted")?);
        if docs < COMMON * 4 || docs < counted * 2 {
            return Ok(());
        }
        self.db.execute("DELETE FROM common", [])?;
        self.db.execute("INSERT INTO common SELECT term, doc FROM vocabulary WHERE doc > ?1", [COMMON])?;
        self.db.execute("UPDATE meta SET value = ?1 WHERE key = 'counted'", [docs])?;
        Ok(())
    }

    /// The newest memories that have all of these terms. Unless it is asked for, whether they are hidden is not looked up.
    pub fn having(
        &self,
        terms: &[&str],
        filter: &MemoryFilter,
        is_strict: bool,
        limit: usize,
    ) -> Result<Vec<i64>> {
        let quoted: Vec<String> = terms.iter().map(|term| format!("\"{}\"", encode(term))).collect();
        let has_wish = is_strict || filter.has_wish();
        let (conditions, mut values) = if has_wish { conditions(filter) } else { Default::default() };
        let join = if has_wish { "JOIN records ON records.n = terms.rowid" } else { "" };
        let sql = format!(
            "SELECT terms.rowid FROM terms {join} WHERE terms MATCH ? {conditions} ORDER BY terms.rowid DESC LIMIT ?"
        );
        values.insert(0, Value::from(quoted.join(" AND ")));
        values.push(Value::from(limit as i64));
        let mut query = self.db.prepare_cached(&sql)?;
        let rows = query.query_map(params_from_iter(values), |row| row.get(0))?;
        Ok(rows.collect::<std::result::Result<_, _>>()?)
    }

    /// The memories of these numbers, in the order of reading.
    pub fn rows(&self, numbers: &[i64]) -> Result<Vec<MemoryRow>> {
        let list: Vec<String> = numbers.iter().map(i64::to_string).collect();
        let sql = format!("SELECT {COLUMNS} FROM records WHERE n IN ({}) ORDER BY n", list.join(","));
        let mut query = self.db.prepare(&sql)?;
        let rows = query.query_map([], read)?;
        Ok(rows.collect::<std::result::Result<_, _>>()?)
    }

    /// What ranking needs of these memories, in the order of reading.
    pub fn outlines(&self, numbers: &[i64]) -> Result<Vec<Outline>> {
        let list: Vec<String> = numbers.iter().map(i64::to_string).collect();
        let sql = format!(
            "SELECT n, kind, letter, at, session, speaker, asks, words, hidden FROM records \
             WHERE n IN ({}) ORDER BY n",
            list.join(",")
        );
        let mut query = self.db.prepare(&sql)?;
        let rows = query.query_map([], |row| {
            Ok(Outline {
                n: row.get(0)?,
                kind: row.get(1)?,
                letter: row.get(2)?,
                at: row.get(3)?,
                session: row.get(4)?,
                speaker: row.get(5)?,
                asks: row.get(6)?,
                words: row.get(7)?,
                hidden: row.get(8)?,
            })
        })?;
        Ok(rows.collect::<std::result::Result<_, _>>()?)
    }

    /// The newest that contain a text as it stands, among the last so many.
    pub fn containing(
        &self,
        text: &str,
        filter: &MemoryFilter,
        among: i64,
        limit: usize,
    ) -> Result<Vec<i64>> {
        let (conditions, mut values) = conditions(filter);
        let sql = format!(
            "SELECT n FROM records WHERE n > (SELECT max(n) FROM records) - ? \
             AND instr(lower(content), lower(?)) > 0 {conditions} ORDER BY n DESC LIMIT ?"
        );
        values.splice(0..0, [Value::from(among), Value::from(text.to_owned())]);
        values.push(Value::from(limit as i64));
        let mut query = self.db.prepare_cached(&sql)?;
        let rows = query.query_map(params_from_iter(values), |row| row.get(0))?;
        Ok(rows.collect::<std::result::Result<_, _>>()?)
    }

    pub fn find(&self, id: &str) -> Result<Option<MemoryRow>> {
        let mut query = self.db.prepare_cached(&format!("SELECT {COLUMNS} FROM records WHERE id = ?1"))?;
        Ok(query.query_row([id], read).optional()?)
    }

    /// What says the same and still counts.
    pub fn find_same(&self, same: i64) -> Result<Vec<MemoryRow>> {
        let sql = format!("SELECT {COLUMNS} FROM records WHERE same = ?1 AND hidden = 0 AND kind = 'fact'");
        let mut query = self.db.prepare_cached(&sql)?;
        let rows = query.query_map([same], read)?;
        Ok(rows.collect::<std::result::Result<_, _>>()?)
    }

    /// The newest of a kind first.
    pub fn newest(
        &self,
        kind: Option<&str>,
        filter: &MemoryFilter,
        limit: usize,
        skip: usize,
    ) -> Result<Vec<MemoryRow>> {
        let (conditions, mut values) = conditions(filter);
        let of_kind = if kind.is_some() { "AND kind = ?" } else { "" };
        let sql = format!(
            "SELECT {COLUMNS} FROM records WHERE 1 {conditions} {of_kind} ORDER BY at DESC, n DESC LIMIT ? OFFSET ?"
        );
        values.extend(kind.map(|kind| Value::from(kind.to_owned())));
        values.extend([Value::from(limit as i64), Value::from(skip as i64)]);
        let mut query = self.db.prepare_cached(&sql)?;
        let rows = query.query_map(params_from_iter(values), read)?;
        Ok(rows.collect::<std::result::Result<_, _>>()?)
    }

    /// Facts for the start of a session: newer than `recent`, or sure and newer than `sure`; the newest first.
    pub fn recent_facts(
        &self,
        recent: i64,
        sure: i64,
        confidence: f64,
        limit: usize,
    ) -> Result<Vec<MemoryRow>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM records WHERE kind = 'fact' AND hidden = 0 AND at >= ?2 \
             AND (at >= ?1 OR confidence >= ?3) ORDER BY at DESC, n DESC LIMIT ?4"
        );
        let mut query = self.db.prepare_cached(&sql)?;
        let rows = query.query_map(params![recent, sure.min(recent), confidence, limit as i64], read)?;
        Ok(rows.collect::<std::result::Result<_, _>>()?)
    }

    pub fn count(&self, kind: Option<&str>, filter: &MemoryFilter) -> Result<u64> {
        let (conditions, mut values) = conditions(filter);
        let of_kind = if kind.is_some() { "AND kind = ?" } else { "" };
        values.extend(kind.map(|kind| Value::from(kind.to_owned())));
        let sql = format!("SELECT count(*) FROM records WHERE 1 {conditions} {of_kind}");
        Ok(self.db.query_row(&sql, params_from_iter(values), |row| row.get::<_, i64>(0))? as u64)
    }
}

fn conditions(filter: &MemoryFilter) -> (String, Vec<Value>) {
    let mut sql = String::new();
    let mut values = Vec::new();
    if !filter.all {
        sql.push_str(" AND hidden = 0");
    }
    let mut add = |clause: &str, value: Option<Value>| {
        if let Some(value) = value {
            sql.push_str(clause);
            values.push(value);
        }
    };
    add(" AND letter = ?", filter.letter.clone().map(Value::from));
    add(" AND session = ?", filter.session.clone().map(Value::from));
    add(" AND at >= ?", filter.since.map(Value::from));
    add(" AND at < ?", filter.until.map(Value::from));
    (sql, values)
}

fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<MemoryRow> {
    Ok(MemoryRow {
        n: row.get(0)?,
        id: row.get(1)?,
        file: row.get(2)?,
        kind: row.get(3)?,
        letter: row.get(4)?,
        content: row.get(5)?,
        entities: row.get(6)?,
        confidence: row.get(7)?,
        at: row.get(8)?,
        stamp: row.get(9)?,
        session: row.get(10)?,
        speaker: row.get(11)?,
        more: row.get(12)?,
        same: row.get(13)?,
        len: row.get(14)?,
        asks: row.get(15)?,
        hidden: row.get(16)?,
        replaced_by: row.get(17)?,
    })
}

fn encode_all(terms: &[String]) -> String {
    let mut out = String::new();
    for term in terms {
        out.push_str(&encode(term));
        out.push(' ');
    }
    out
}

/// A term as one word of SQLite's: letters and digits stay, signs are spelt.
fn encode(term: &str) -> String {
    let mut out = String::with_capacity(term.len());
    for c in term.chars() {
        if c.is_alphanumeric() { out.push(c) } else { out.push_str(&format!("_{:x}_", c as u32)) }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, at: i64) -> MemoryRow {
        MemoryRow {
            id: id.into(),
            file: "f".into(),
            kind: "fact".into(),
            letter: "W".into(),
            at: Some(at),
            same: at,
            ..MemoryRow::default()
        }
    }

    fn terms(text: &str) -> Vec<String> {
        text.split(' ').map(String::from).collect()
    }

    #[test]
    fn put_find_hide_and_forget_a_file() {
        let index = MemoryIndex::in_memory().unwrap();
        assert!(index.insert(&row("a", 1), &terms("c++ 缓存 user-auth")).unwrap());
        assert!(!index.insert(&row("a", 2), &terms("x")).unwrap(), "known already");
        assert!(index.insert(&row("b", 3), &terms("缓存")).unwrap());
        let found = |term: &str| {
            let numbers = index.having(&[term], &MemoryFilter::default(), false, 10).unwrap();
            index.rows(&numbers).unwrap().into_iter().filter(|row| !row.hidden).count()
        };
        assert_eq!((found("c++"), found("缓存"), found("user-auth"), found("c")), (1, 2, 1, 0));
        assert_eq!((index.frequency("缓存").unwrap(), index.frequency("none").unwrap()), (2, 0));
        assert_eq!(index.collection().unwrap(), (2, 2.0));
        index.mark("b", false, "", "day-1").unwrap();
        index.mark("b", true, "", "day-2").unwrap();
        index.mark("b", false, "", "day-1").unwrap();
        assert_eq!(found("缓存"), 1, "the latest file's word counts");
        index.drop_file("day-2").unwrap();
        assert_eq!(found("缓存"), 2, "and goes with it");
        index.mark("b", true, "", "day-1").unwrap();
        index.mark("later", true, "", "f").unwrap();
        index.insert(&row("later", 9), &terms("缓存")).unwrap();
        assert!(index.find("later").unwrap().unwrap().hidden, "forgotten before it was read");
        index.drop_file("f").unwrap();
        assert_eq!(index.collection().unwrap().0, 0);
        assert_eq!(found("缓存"), 0);
    }

    #[test]
    fn an_index_that_is_broken_or_another_s_is_made_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("index.sqlite");
        MemoryIndex::open(&path).unwrap().insert(&row("a", 1), &terms("x")).unwrap();
        assert_eq!(MemoryIndex::open(&path).unwrap().collection().unwrap().0, 1);
        tanmi_base::fs::write_atomic(&path, b"broken", dir.path(), tanmi_base::fs::Durability::Journaled)
            .unwrap();
        assert!(MemoryIndex::peek(&path).is_none());
        assert_eq!(MemoryIndex::open(&path).unwrap().collection().unwrap().0, 0);
    }
}
