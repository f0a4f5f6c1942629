//! The lines of a memory in and out of the database, byte for byte.

use std::collections::{BTreeMap, HashMap};

use tanmi_base::Millis;
use tanmi_memory::record::{self, Line};
use tanmi_workspace::error::Result;
use tokio_postgres::Row;

use super::{Lookup, MemoryTx, documents_in};
use crate::pool::PooledConnection;
use crate::run::{RunError, retry};
use crate::store::PgStore;

/// The number of lines that one transaction imports.
const LINES_PER_IMPORT: usize = 2000;

const CHANGES: &str = "SELECT c.seq, c.docs FROM change c
WHERE c.project = $1 AND c.stream = 'memory' AND c.seq > $2 ORDER BY c.seq LIMIT 200";
const STORED: &str = "SELECT id, line FROM memory WHERE project = $1 AND id = ANY($2::text[])";
const STORED_MARKS: &str = "SELECT doc, count(*) AS n FROM change c, unnest(c.docs) AS doc
WHERE c.project = $1 AND c.stream = 'memory' AND doc = ANY($2::text[]) GROUP BY doc";

/// What an import of lines did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportedLines {
    pub added: usize,
    pub known: usize,
}

/// Returns every line in the order in which it was written. If the first changes are no longer known, returns
/// the records with marks that state what is in force.
pub(crate) fn lines(store: &PgStore, connection: &mut PooledConnection<'_>) -> Result<Vec<String>> {
    let (mut lines, mut last) = (Vec::new(), 0_i64);
    loop {
        let page = connection.query(CHANGES, &[&store.project, &last])?;
        if last == 0 && page.first().is_none_or(|row| row.get::<_, i64>("seq") > 1) {
            break;
        }
        for row in &page {
            lines.extend(row.get::<_, Vec<Option<String>>>("docs").into_iter().flatten());
            last = row.get("seq");
        }
        if page.is_empty() {
            return Ok(lines);
        }
    }
    let mut after = None;
    loop {
        let page = documents_in(store, connection, after.as_deref(), super::PAGE)?;
        let texts = page.docs.into_iter().filter_map(|document| document.text);
        lines.extend(texts.flat_map(|text| text.lines().map(String::from).collect::<Vec<_>>()));
        after = page.next;
        if after.is_none() {
            return Ok(lines);
        }
    }
}

impl PgStore {
    /// Returns the ids of records that the project has with another line.
    pub fn find_other_lines(&self, lines: &[String]) -> Result<Vec<String>> {
        let mut other = Vec::new();
        for lines in lines.chunks(LINES_PER_IMPORT) {
            let given = records(lines);
            let ids: Vec<&str> = given.keys().map(String::as_str).collect();
            let stored = self.query(STORED, &[&ids])?;
            let is_other = |row: &&Row| given.get(row.get::<_, &str>("id")).copied() != Some(row.get("line"));
            other.extend(stored.iter().filter(is_other).map(|row| row.get::<_, String>("id")));
        }
        Ok(other)
    }

    /// Imports lines of facts, summaries and marks. Those that the project has are skipped. `progress` gets
    /// the number of lines so far.
    pub fn import_lines(
        &self,
        lines: &[String],
        now: Millis,
        progress: &mut dyn FnMut(usize),
    ) -> Result<ImportedLines, RunError> {
        let known_marks = self.count_marks(lines)?;
        // A mark can be in the files several times. As many as the project has are skipped.
        let mut left = known_marks;
        let mut imported = ImportedLines::default();
        for (at, page) in lines.chunks(LINES_PER_IMPORT).enumerate() {
            let mut new = Vec::new();
            for line in page {
                match left.get_mut(line).filter(|left| **left > 0) {
                    Some(left) => *left -= 1,
                    None => new.push(line),
                }
            }
            let added = retry(|| self.import_page(&new, now))?;
            imported.added += added;
            imported.known += page.len() - added;
            progress((at * LINES_PER_IMPORT + page.len()).min(lines.len()));
        }
        Ok(imported)
    }

    fn count_marks(&self, lines: &[String]) -> Result<HashMap<String, i64>> {
        let marks: Vec<&str> = lines.iter().filter(|line| is_mark(line)).map(String::as_str).collect();
        let stored = self.query(STORED_MARKS, &[&marks])?;
        Ok(stored.iter().map(|row| (row.get("doc"), row.get("n"))).collect())
    }

    fn import_page(&self, lines: &[&String], now: Millis) -> Result<usize, RunError> {
        let mut tx = MemoryTx::begin(self, Lookup::default(), now)?;
        let known = tx.ids()?;
        let mut added = 0;
        for line in lines {
            if let Line::Record { row, .. } = record::read_line(line.as_bytes(), "") {
                if known.contains(&row.id) {
                    continue;
                }
                super::tx::check_shared(&row)?;
            }
            tx.append(line)?;
            added += 1;
        }
        for (id, known) in tx.same_content_pairs()? {
            tx.append(&record::mark_line("replace", &id, &known, now, "import"))?;
        }
        if added > 0 {
            tx.commit(None, None)?;
        }
        Ok(added)
    }
}

fn is_mark(line: &str) -> bool {
    matches!(record::read_line(line.as_bytes(), ""), Line::Mark { .. })
}

/// Returns the lines of records by id.
fn records(lines: &[String]) -> BTreeMap<String, &str> {
    let record = |line: &String| match record::read_line(line.as_bytes(), "") {
        Line::Record { row, .. } => Some(row.id),
        _ => None,
    };
    lines.iter().filter_map(|line| Some((record(line)?, line.as_str()))).collect()
}
