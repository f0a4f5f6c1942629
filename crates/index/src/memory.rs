//! The index of a project's memories: their type, time and session, and the terms that occur in them.
//!
//! Callers split text into terms; nothing here depends on a language.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, params};

use crate::Result;

mod files;
mod letter;
mod query;
mod vectors;

pub use letter::{MemoryKind, MemoryLetter};

/// Version of the tables and of the terms. Raise it with every change of either: an index of another version is
/// deleted.
const VERSION: i64 = 5;

/// Terms in more memories than this are counted ahead of queries, see [`MemoryIndex::update_common_terms`].
const COMMON_TERM_MIN: i64 = 2_000;

/// One memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemoryRow {
    /// Row number, assigned by the index in the order of reading.
    pub n: i64,
    pub id: String,
    pub file: String,
    pub letter: MemoryLetter,
    pub content: String,
    pub entities: String,
    pub confidence: Option<f64>,
    pub at: Option<i64>,
    /// The time as written in the file.
    pub stamp: String,
    pub session: String,
    pub speaker: String,
    /// The other fields of the record, as JSON.
    pub more: String,
    /// Hash of the content; equal for equal contents.
    pub content_hash: i64,
    /// Details of the content that ranking uses, as a bit set.
    pub features: u8,
    pub hidden: bool,
    /// Id of the memory that superseded it, or empty.
    pub replaced_by: String,
}

/// The fields of a memory that ranking needs.
#[derive(Clone, Debug, Default)]
pub struct MemoryOutline {
    pub n: i64,
    pub letter: MemoryLetter,
    pub at: Option<i64>,
    pub session: String,
    pub speaker: String,
    pub features: u8,
    pub words: String,
    pub hidden: bool,
}

/// The state of a file when it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexedFile {
    pub name: String,
    pub inode: u64,
    pub mtime_ns: i64,
    /// Number of bytes read; complete lines only.
    pub size: u64,
    /// Digest of the last bytes read.
    pub tail: String,
    pub bad_lines: u64,
}

#[derive(Clone, Debug, Default)]
pub struct MemoryFilter {
    pub letter: Option<MemoryLetter>,
    pub kind: Option<MemoryKind>,
    /// Only preferences with a confidence of at least 0.9.
    pub is_lasting_preference: bool,
    /// Only facts that name files.
    pub has_files: bool,
    pub session: Option<String>,
    pub since: Option<i64>,
    pub until: Option<i64>,
    /// Only memories whose id ends with this text.
    pub id_suffix: Option<String>,
    /// Only memories that this one superseded directly.
    pub replaced_by: Option<String>,
    /// Whether to include forgotten and superseded memories.
    pub all: bool,
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
  speaker TEXT NOT NULL, more TEXT NOT NULL, same INTEGER NOT NULL, len INTEGER NOT NULL, words TEXT NOT NULL, features INTEGER NOT NULL, hidden INTEGER NOT NULL,
  replaced_by TEXT NOT NULL);
CREATE INDEX recent ON records(kind, hidden, at);
CREATE INDEX preferences ON records(at) WHERE letter = 'O' AND confidence >= 0.9 AND hidden = 0;
CREATE INDEX same ON records(same);
CREATE INDEX of_file ON records(file);
CREATE TABLE marks(seq INTEGER PRIMARY KEY, target TEXT NOT NULL, file TEXT NOT NULL, hidden INTEGER NOT NULL, by TEXT NOT NULL);
CREATE INDEX of_target ON marks(target, file, seq);
CREATE INDEX of_mark_file ON marks(file);
CREATE VIRTUAL TABLE terms USING fts5(body, content='', contentless_delete=1, tokenize=\"unicode61 remove_diacritics 0 tokenchars '_'\");
CREATE TABLE common(term TEXT PRIMARY KEY, doc INTEGER NOT NULL) WITHOUT ROWID;
CREATE VIRTUAL TABLE vocabulary USING fts5vocab(terms, 'row');
CREATE TABLE vectors(n INTEGER PRIMARY KEY, v BLOB NOT NULL);
CREATE TABLE signs(block INTEGER PRIMARY KEY, numbers BLOB NOT NULL, bits BLOB NOT NULL);
CREATE TABLE model(id TEXT NOT NULL);
INSERT INTO meta VALUES('docs', 0), ('length', 0), ('twice', 0), ('counted', 0);
";

impl MemoryIndex {
    /// Opens the index, or creates a new one if there is no usable one. The caller then reads all files again.
    pub fn open(path: &Path) -> Result<MemoryIndex> {
        if let Ok(index) = MemoryIndex::connect(path)
            && index.version() == Some(VERSION)
        {
            return Ok(index);
        }
        crate::discard(path);
        let index = MemoryIndex::connect(path)?;
        index.db.execute_batch(&format!("BEGIN; {SCHEMA} PRAGMA user_version={VERSION}; COMMIT"))?;
        Ok(index)
    }

    /// Opens an existing index read-only, in one transaction: every query sees the same state, and the file
    /// is locked once. Returns `None` if there is no usable one.
    pub fn open_existing(path: &Path) -> Option<MemoryIndex> {
        let index = MemoryIndex { db: crate::connect(path, crate::READ_ONLY).ok()? };
        index.db.busy_timeout(std::time::Duration::from_millis(300)).ok()?;
        index.batch("BEGIN").ok()?;
        (index.version() == Some(VERSION)).then_some(index)
    }

    /// Sets how long to wait for another writer.
    pub fn set_busy_timeout(&self, timeout: std::time::Duration) -> Result<()> {
        Ok(self.db.busy_timeout(timeout)?)
    }

    pub fn in_memory() -> Result<MemoryIndex> {
        let index = MemoryIndex { db: Connection::open_in_memory()? };
        index.db.execute_batch(SCHEMA)?;
        Ok(index)
    }

    fn connect(path: &Path) -> Result<MemoryIndex> {
        let db = crate::connect(path, rusqlite::OpenFlags::default())?;
        db.busy_timeout(tanmi_base::lock::lock_timeout().min(std::time::Duration::from_secs(10)))?;
        // The index is derived data: after a crash the files are read again. WAL lets hooks read while another
        // process writes.
        db.execute_batch("PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; PRAGMA temp_store=MEMORY;")?;
        Ok(MemoryIndex { db })
    }

    /// Returns the version of the tables, or `None` if the file has other objects than ours.
    fn version(&self) -> Option<i64> {
        let version = self.db.query_row("PRAGMA user_version", [], |row| row.get(0)).ok()?;
        self.has_only_own_objects().ok()?.then_some(version)
    }

    /// Returns whether the index has no view, no trigger and no foreign virtual table. An index may come with a cloned
    /// repository, and any of these could run a query that never ends.
    fn has_only_own_objects(&self) -> rusqlite::Result<bool> {
        let query = "SELECT count(*) FROM sqlite_master WHERE type IN ('view', 'trigger')
             OR (type = 'table' AND rootpage = 0 AND name NOT IN ('terms', 'vocabulary'))";
        self.db.query_row(query, [], |row| row.get::<_, i64>(0)).map(|others| others == 0)
    }

    /// Runs `work` in a transaction.
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

    fn add_to_totals(&self, docs: i64, length: i64) -> Result<()> {
        let mut query = self.db.prepare_cached("UPDATE meta SET value = value + ?2 WHERE key = ?1")?;
        query.execute(params!["docs", docs])?;
        query.execute(params!["length", length])?;
        Ok(())
    }

    /// Inserts a record. Returns `false` if its id is already known; the record is then not stored.
    pub fn insert(&self, row: &MemoryRow, terms: &[String]) -> Result<bool> {
        let mut query = self.db.prepare_cached(
            "INSERT OR IGNORE INTO records(id, file, kind, letter, content, entities, confidence, at, stamp, session, \
             speaker, more, same, len, words, features, hidden, replaced_by) \
             VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16, 0, '')",
        )?;
        let added = query.execute(params![
            row.id,
            row.file,
            row.letter.kind().as_str(),
            row.letter.as_str(),
            row.content,
            row.entities,
            row.confidence,
            row.at,
            row.stamp,
            row.session,
            row.speaker,
            row.more,
            row.content_hash,
            terms.len() as i64,
            terms.join(" "),
            row.features,
        ])?;
        if added == 0 {
            // If the stored record is removed, this one must be read again.
            self.db.execute("UPDATE meta SET value = value + 1 WHERE key = 'twice'", [])?;
            return Ok(false);
        }
        let n = self.db.last_insert_rowid();
        let mut query = self.db.prepare_cached("INSERT INTO terms(rowid, body) VALUES(?1, ?2)")?;
        query.execute(params![n, encode_all(terms)])?;
        self.add_to_totals(1, terms.len() as i64)?;
        self.apply_marks(&row.id)?;
        Ok(true)
    }

    /// Hides a record or shows it again. The last mark of the latest file wins.
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

    /// Removes everything, so that all files are read again.
    pub fn clear(&self) -> Result<()> {
        self.batch(
            "DELETE FROM terms; DELETE FROM records; DELETE FROM marks; DELETE FROM files; DELETE FROM vectors; \
             DELETE FROM signs;              DELETE FROM common; UPDATE meta SET value = 0;",
        )
    }

    /// Returns whether an id was found more than once.
    pub fn has_duplicate_ids(&self) -> Result<bool> {
        Ok(self.meta("twice")? > 0)
    }

    /// Returns the number of memories and their average number of terms.
    pub fn collection_stats(&self) -> Result<(u64, f32)> {
        let (docs, length) = (self.meta("docs")?, self.meta("length")?);
        Ok((docs.max(0) as u64, length as f32 / docs.max(1) as f32))
    }

    fn meta(&self, key: &str) -> Result<i64> {
        let mut query = self.db.prepare_cached("SELECT value FROM meta WHERE key = ?1")?;
        Ok(query.query_row([key], |row| row.get(0))?)
    }

    /// Counts the terms that occur in very many memories, each time the number of memories has doubled. SQLite
    /// has to visit every occurrence to count one term, which is too slow for a query.
    pub fn update_common_terms(&self) -> Result<()> {
        let (docs, counted) = (self.meta("docs")?, self.meta("counted")?);
        if docs < COMMON_TERM_MIN * 4 || docs < counted * 2 {
            return Ok(());
        }
        self.db.execute("DELETE FROM common", [])?;
        self.db.execute(
            "INSERT INTO common SELECT term, doc FROM vocabulary WHERE doc > ?1",
            [COMMON_TERM_MIN],
        )?;
        self.db.execute("UPDATE meta SET value = ?1 WHERE key = 'counted'", [docs])?;
        Ok(())
    }
}

fn encode_all(terms: &[String]) -> String {
    let mut out = String::new();
    for term in terms {
        out.push_str(&encode(term));
        out.push(' ');
    }
    out
}

/// Encodes a term as one SQLite token: letters and digits stay, other characters become their hexadecimal code.
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
        MemoryRow { id: id.into(), file: "f".into(), at: Some(at), content_hash: at, ..MemoryRow::default() }
    }

    fn terms(text: &str) -> Vec<String> {
        text.split(' ').map(String::from).collect()
    }

    #[test]
    fn records_are_inserted_found_hidden_and_dropped_with_file() {
        let index = MemoryIndex::in_memory().unwrap();
        assert!(index.insert(&row("a", 1), &terms("c++ 缓存 user-auth")).unwrap());
        assert!(!index.insert(&row("a", 2), &terms("x")).unwrap(), "id is already known");
        assert!(index.insert(&row("b", 3), &terms("缓存")).unwrap());
        let found = |term: &str| {
            let numbers = index.matching(&[term], &MemoryFilter::default(), false, 10).unwrap();
            index.rows(&numbers).unwrap().into_iter().filter(|row| !row.hidden).count()
        };
        assert_eq!((found("c++"), found("缓存"), found("user-auth"), found("c")), (1, 2, 1, 0));
        assert_eq!((index.frequency("缓存").unwrap(), index.frequency("none").unwrap()), (2, 0));
        assert_eq!(index.collection_stats().unwrap(), (2, 2.0));
        index.mark("b", false, "", "day-1").unwrap();
        index.mark("b", true, "", "day-2").unwrap();
        index.mark("b", false, "", "day-1").unwrap();
        assert_eq!(found("缓存"), 1, "the mark of the latest file wins");
        index.drop_file("day-2").unwrap();
        assert_eq!(found("缓存"), 2, "the mark is removed with its file");
        index.mark("b", true, "", "day-1").unwrap();
        index.mark("later", true, "", "f").unwrap();
        index.insert(&row("later", 9), &terms("缓存")).unwrap();
        assert!(index.find("later").unwrap().unwrap().hidden, "marked before it was inserted");
        index.drop_file("f").unwrap();
        assert_eq!(index.collection_stats().unwrap().0, 0);
        assert_eq!(found("缓存"), 0);
    }

    #[test]
    fn find_unknown_letter_counts_as_lost_index() {
        let index = MemoryIndex::in_memory().unwrap();
        let turn = MemoryRow { letter: MemoryLetter::T, ..row("a", 1) };
        index.insert(&turn, &terms("x")).unwrap();
        assert_eq!(index.find("a").unwrap().unwrap().letter, MemoryLetter::T);
        assert_eq!(index.count(Some(MemoryKind::Turn), &MemoryFilter::default()).unwrap(), 1);
        index.batch("UPDATE records SET letter = 'X'").unwrap();
        assert!(index.find("a").unwrap_err().is_lost());
    }

    #[test]
    fn open_index_with_view_or_trigger_is_rebuilt() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("index.sqlite");
        MemoryIndex::open(&path).unwrap().insert(&row("a", 1), &terms("x")).unwrap();
        for hostile in [
            "DROP TABLE files; CREATE VIEW files AS SELECT 1 AS name;",
            "CREATE TRIGGER slow AFTER INSERT ON records BEGIN SELECT 1; END;",
        ] {
            MemoryIndex::open(&path).unwrap();
            rusqlite::Connection::open(&path).unwrap().execute_batch(hostile).unwrap();
            assert!(MemoryIndex::open_existing(&path).is_none(), "{hostile}");
            assert_eq!(MemoryIndex::open(&path).unwrap().collection_stats().unwrap().0, 0);
        }
    }

    #[test]
    fn open_existing_reads_in_one_transaction_with_stable_plans() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("index.sqlite");
        let index = MemoryIndex::open(&path).unwrap();
        for name in ["a", "b", "c"] {
            index.put_file(&IndexedFile { name: name.into(), ..IndexedFile::default() }).unwrap();
        }
        let reader = MemoryIndex::open_existing(&path).unwrap();
        assert!(!reader.db.is_autocommit());
        assert!(reader.db.db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG).unwrap());
        let names =
            |names| reader.files(names).unwrap().into_iter().map(|file| file.name).collect::<Vec<_>>();
        assert_eq!(
            (names(None), names(Some(&["c", "none"]))),
            (vec!["a".into(), "b".into(), "c".into()], vec!["c".into()])
        );
        index.drop_file("c").unwrap();
        assert_eq!(names(Some(&["c"])), ["c"], "a later change is not seen");
    }

    #[test]
    fn open_waits_for_other_process_no_longer_than_for_a_lock() {
        let dir = tempfile::tempdir().unwrap();
        tanmi_base::lock::set_lock_timeout(std::time::Duration::from_millis(700));
        let index = MemoryIndex::open(&dir.path().join("index.sqlite")).unwrap();
        let timeout: i64 = index.db.query_row("PRAGMA busy_timeout", [], |row| row.get(0)).unwrap();
        assert_eq!(timeout, 700);
    }

    #[test]
    fn open_damaged_index_is_rebuilt() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("index.sqlite");
        MemoryIndex::open(&path).unwrap().insert(&row("a", 1), &terms("x")).unwrap();
        assert_eq!(MemoryIndex::open(&path).unwrap().collection_stats().unwrap().0, 1);
        tanmi_base::fs::write_atomic(&path, b"broken", dir.path(), tanmi_base::fs::Durability::Journaled)
            .unwrap();
        assert!(MemoryIndex::open_existing(&path).is_none());
        assert_eq!(MemoryIndex::open(&path).unwrap().collection_stats().unwrap().0, 0);
    }
}
