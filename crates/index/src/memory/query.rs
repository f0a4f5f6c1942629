//! Queries of the memory index. Nothing here changes it.

use rusqlite::types::Value;
use rusqlite::{OptionalExtension, params, params_from_iter};

use super::{MemoryFilter, MemoryIndex, MemoryKind, MemoryOutline, MemoryRow, encode};
use crate::Result;

const COLUMNS: &str = "n, id, file, letter, content, entities, confidence, at, stamp, session, speaker, more, same, \
     features, hidden, replaced_by";

impl MemoryIndex {
    /// Returns the number of memories that contain a term. For a common term, returns the number at the last
    /// count.
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

    /// Returns the newest memories that contain all of these terms. Hidden memories are left out only if
    /// `is_strict` is set or the filter has a criterion.
    pub fn matching(
        &self,
        terms: &[&str],
        filter: &MemoryFilter,
        is_strict: bool,
        limit: usize,
    ) -> Result<Vec<i64>> {
        let quoted: Vec<String> = terms.iter().map(|term| format!("\"{}\"", encode(term))).collect();
        let is_filtered = is_strict || filter.is_filtered();
        let (conditions, mut values) = if is_filtered { conditions(filter) } else { Default::default() };
        let join = if is_filtered { "JOIN records ON records.n = terms.rowid" } else { "" };
        let sql = format!(
            "SELECT terms.rowid FROM terms {join} WHERE terms MATCH ? {conditions} ORDER BY terms.rowid DESC LIMIT ?"
        );
        values.insert(0, Value::from(quoted.join(" AND ")));
        values.push(Value::from(limit as i64));
        let mut query = self.db.prepare_cached(&sql)?;
        let rows = query.query_map(params_from_iter(values), |row| row.get(0))?;
        Ok(rows.collect::<std::result::Result<_, _>>()?)
    }

    /// Returns the memories with these numbers, in the order of reading.
    pub fn rows(&self, numbers: &[i64]) -> Result<Vec<MemoryRow>> {
        let list: Vec<String> = numbers.iter().map(i64::to_string).collect();
        let sql = format!("SELECT {COLUMNS} FROM records WHERE n IN ({}) ORDER BY n", list.join(","));
        let mut query = self.db.prepare(&sql)?;
        let rows = query.query_map([], read)?;
        Ok(rows.collect::<std::result::Result<_, _>>()?)
    }

    /// Returns the fields of these memories that ranking needs, in the order of reading.
    pub fn outlines(&self, numbers: &[i64]) -> Result<Vec<MemoryOutline>> {
        let list: Vec<String> = numbers.iter().map(i64::to_string).collect();
        let sql = format!(
            "SELECT n, letter, at, session, speaker, features, words, hidden FROM records \
             WHERE n IN ({}) ORDER BY n",
            list.join(",")
        );
        let mut query = self.db.prepare(&sql)?;
        let rows = query.query_map([], |row| {
            Ok(MemoryOutline {
                n: row.get(0)?,
                letter: row.get(1)?,
                at: row.get(2)?,
                session: row.get(3)?,
                speaker: row.get(4)?,
                features: row.get(5)?,
                words: row.get(6)?,
                hidden: row.get(7)?,
            })
        })?;
        Ok(rows.collect::<std::result::Result<_, _>>()?)
    }

    /// Returns the newest memories that contain a text literally, among the last `among` memories.
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

    /// Returns the facts with the same content that are not hidden.
    pub fn find_same_content(&self, content_hash: i64) -> Result<Vec<MemoryRow>> {
        let sql = format!("SELECT {COLUMNS} FROM records WHERE same = ?1 AND hidden = 0 AND kind = 'fact'");
        let mut query = self.db.prepare_cached(&sql)?;
        let rows = query.query_map([content_hash], read)?;
        Ok(rows.collect::<std::result::Result<_, _>>()?)
    }

    /// Returns memories, optionally of one kind, the newest first.
    pub fn newest(
        &self,
        kind: Option<MemoryKind>,
        filter: &MemoryFilter,
        limit: usize,
        skip: usize,
    ) -> Result<Vec<MemoryRow>> {
        let (conditions, mut values) = conditions(filter);
        let of_kind = if kind.is_some() { "AND kind = ?" } else { "" };
        let sql = format!(
            "SELECT {COLUMNS} FROM records WHERE 1 {conditions} {of_kind} ORDER BY at DESC, n DESC LIMIT ? OFFSET ?"
        );
        values.extend(kind.map(|kind| Value::from(kind.as_str().to_owned())));
        values.extend([Value::from(limit as i64), Value::from(skip as i64)]);
        let mut query = self.db.prepare_cached(&sql)?;
        let rows = query.query_map(params_from_iter(values), read)?;
        Ok(rows.collect::<std::result::Result<_, _>>()?)
    }

    /// Returns facts for the start of a session, the newest first: those since `recent`, and those since `sure`
    /// that have at least this confidence.
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

    pub fn count(&self, kind: Option<MemoryKind>, filter: &MemoryFilter) -> Result<u64> {
        let (conditions, mut values) = conditions(filter);
        let of_kind = if kind.is_some() { "AND kind = ?" } else { "" };
        values.extend(kind.map(|kind| Value::from(kind.as_str().to_owned())));
        let sql = format!("SELECT count(*) FROM records WHERE 1 {conditions} {of_kind}");
        Ok(self.db.query_row(&sql, params_from_iter(values), |row| row.get::<_, i64>(0))? as u64)
    }
}

impl MemoryFilter {
    fn is_filtered(&self) -> bool {
        self.letter.is_some()
            || self.kind.is_some()
            || self.session.is_some()
            || self.since.is_some()
            || self.until.is_some()
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
    add(" AND letter = ?", filter.letter.map(|letter| Value::from(letter.as_str().to_owned())));
    add(" AND kind = ?", filter.kind.map(|kind| Value::from(kind.as_str().to_owned())));
    add(" AND session = ?", filter.session.clone().map(Value::from));
    add(" AND at >= ?", filter.since.map(Value::from));
    add(" AND at < ?", filter.until.map(Value::from));
    add(" AND replaced_by = ?", filter.replaced_by.clone().map(Value::from));
    if filter.is_lasting_preference {
        // The same words as in the index `preferences`.
        sql.push_str(" AND letter = 'O' AND confidence >= 0.9");
    }
    if filter.has_files {
        sql.push_str(" AND kind = 'fact' AND instr(more, '\"files\"') > 0");
    }
    if let Some(suffix) = &filter.id_suffix {
        sql.push_str(" AND substr(id, -length(?)) = ?");
        values.extend([Value::from(suffix.clone()), Value::from(suffix.clone())]);
    }
    (sql, values)
}

fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<MemoryRow> {
    Ok(MemoryRow {
        n: row.get(0)?,
        id: row.get(1)?,
        file: row.get(2)?,
        letter: row.get(3)?,
        content: row.get(4)?,
        entities: row.get(5)?,
        confidence: row.get(6)?,
        at: row.get(7)?,
        stamp: row.get(8)?,
        session: row.get(9)?,
        speaker: row.get(10)?,
        more: row.get(11)?,
        content_hash: row.get(12)?,
        features: row.get(13)?,
        hidden: row.get(14)?,
        replaced_by: row.get(15)?,
    })
}
