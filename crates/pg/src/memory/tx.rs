//! The transaction on the memory of a project. Its first statement reads what it will need. What it writes is
//! collected and sent as one statement at the end.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use tanmi_base::Millis;
use tanmi_memory::decide::StoredMemories;
use tanmi_memory::record::{self, Line};
use tanmi_memory::{Error as MemoryError, MemoryKind, MemoryLetter, MemoryRow};
use tanmi_protocol::{Document, MEMORY};
use tanmi_workspace::error::{Error, Result};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::error::memory_error;
use crate::flush::StoredRequest;
use crate::pool::PooledConnection;
use crate::run::{LEASE, RunError};
use crate::store::PgStore;
use crate::tx::{Author, COMMIT_LEASE, check_key, open_ctes, stored_answer};

/// The number of lines that one change contains. A large import becomes several changes.
const LINES_PER_CHANGE: usize = 500;

/// A statement of its own: it sees what was committed while the transaction waited for its lock. The columns
/// of the stream and the request are in each row; without a record they come alone.
const OPEN: &str = concat!(
    open_ctes!(),
    " SELECT clock.now, r.digest, r.answer, EXISTS (SELECT 1 FROM renewed) AS is_renewed, s.seq,
        m.line, m.hidden, m.replaced_by
    FROM clock LEFT JOIN request r ON r.project = $1 AND r.key = $2
    LEFT JOIN stream s ON s.project = $1 AND s.id = 'memory'
    LEFT JOIN (
        SELECT line, hidden, replaced_by FROM memory WHERE project = $1 AND id = ANY($7::text[])
        UNION
        SELECT line, hidden, replaced_by FROM memory
        WHERE project = $1 AND content_hash = ANY($8::bigint[]) AND kind = 'fact' AND NOT hidden
    ) AS m ON true"
);
const FIND: &str = "SELECT line, hidden, replaced_by FROM memory WHERE project = $1 AND id = $2";
const SAME_CONTENT: &str = "SELECT line, hidden, replaced_by FROM memory
WHERE project = $1 AND content_hash = ANY($2::bigint[]) AND kind = 'fact' AND NOT hidden ORDER BY seq, id";
const IDS: &str = "SELECT id FROM memory WHERE project = $1";
/// Writes the records, takes the next number of the stream, records the lines under it, and stores the answer
/// of a request. Hidden records come first, so that a content is not in force twice in between.
const FINISH: &str = "WITH put AS (
    INSERT INTO memory (project, seq, id, kind, line, content_hash, hidden, replaced_by)
    SELECT $1, $2::bigint, id, kind, line, content_hash, hidden, replaced_by
    FROM unnest($3::text[], $4::text[], $5::text[], $6::bigint[], $7::bool[], $8::text[])
        AS t(id, kind, line, content_hash, hidden, replaced_by)
    ORDER BY hidden DESC
    ON CONFLICT (project, id) DO UPDATE SET hidden = excluded.hidden, replaced_by = excluded.replaced_by
), numbered AS (
    UPDATE stream SET seq = $2::bigint WHERE project = $1 AND id = 'memory' AND cardinality($10::text[]) > 0
), recorded AS (
    INSERT INTO change (project, stream, seq, at, names, docs, person, session, machine, what, subject)
    SELECT $1, 'memory', $2::bigint, $9::bigint, $10::text[], $11::text[], $12::text, $13::text, $14::text,
        CASE WHEN $18::text IS NOT NULL THEN 'fact' END, $18::text
    WHERE cardinality($10::text[]) > 0
) INSERT INTO request (project, key, digest, answer, at)
SELECT $1, $15::text, $16::text, $17::text, $9::bigint WHERE $15::text IS NOT NULL";
/// Records a part of the lines. The number of the stream follows with the last part.
const RECORD: &str = "INSERT INTO change (project, stream, seq, at, names, docs, person, session, machine)
VALUES ($1, 'memory', $2, $3, $4::text[], $5::text[], $6, $7, $8)";
/// Creates the stream if there is none.
const CREATE: &str = "INSERT INTO stream (project, id, seq)
VALUES (current_setting('tanmi.project'), 'memory', 0) ON CONFLICT DO NOTHING; ";

/// What a write will look for: records, and visible facts with a content.
#[derive(Default)]
pub(super) struct Lookup {
    pub ids: Vec<String>,
    pub contents: Vec<i64>,
}

/// A record and its line.
struct Stored {
    row: MemoryRow,
    line: String,
    is_new: bool,
}

pub(super) struct MemoryTx<'a> {
    connection: RefCell<PooledConnection<'a>>,
    project: &'a str,
    /// The number of the last change before this transaction.
    seq: i64,
    now: Millis,
    /// The records that were looked for, as they were before this transaction. `None` for one that does not exist.
    found: BTreeMap<String, Option<(MemoryRow, String)>>,
    /// The contents that were looked for. `found` has the visible facts with them.
    contents: Vec<i64>,
    /// The digest and the answer of an earlier request with the same key.
    stored: Option<(String, String)>,
    is_foreign: bool,
    /// Every record that the transaction added or marked.
    put: BTreeMap<String, Stored>,
    /// The appended lines, in order.
    lines: Vec<Document>,
    is_over: bool,
}

impl<'a> MemoryTx<'a> {
    /// Begins a write. It locks the stream of the memory, so writers come one after the other.
    pub fn begin(store: &'a PgStore, lookup: Lookup, now: Millis) -> Result<MemoryTx<'a>> {
        let mut tx = MemoryTx::open(store, lookup, None, None)?;
        tx.now = now;
        Ok(tx)
    }

    /// Begins a write for a request and renews the lease of its session. The time is that of the database.
    pub fn begin_request(
        store: &'a PgStore,
        lookup: Lookup,
        key: &str,
        author: &Author,
    ) -> Result<MemoryTx<'a>> {
        check_key(key)?;
        MemoryTx::open(store, lookup, Some(key), Some(author))
    }

    fn open(
        store: &'a PgStore,
        lookup: Lookup,
        key: Option<&str>,
        author: Option<&Author>,
    ) -> Result<MemoryTx<'a>> {
        let mut connection = store.pool.begin_write(CREATE, &store.project, MEMORY)?;
        let session = author.and_then(|author| author.session.as_deref());
        let person = author.map(|author| author.person.as_str());
        let machine = author.map(|author| author.machine.as_str());
        let params: [&(dyn ToSql + Sync); 8] =
            [&store.project, &key, &session, &person, &machine, &LEASE, &lookup.ids, &lookup.contents];
        let rows = connection.query(OPEN, &params).inspect_err(|_| connection.roll_back())?;
        let Some(row) = rows.first() else { return Err(Error::UnexpectedOutcome) };
        let mut found: BTreeMap<String, Option<(MemoryRow, String)>> =
            lookup.ids.into_iter().map(|id| (id, None)).collect();
        found.extend(rows.iter().filter_map(read).map(|(row, line)| (row.id.clone(), Some((row, line)))));
        Ok(MemoryTx {
            project: &store.project,
            seq: row.get::<_, Option<i64>>("seq").unwrap_or(0),
            now: row.get("now"),
            found,
            contents: lookup.contents,
            stored: stored_answer(row),
            is_foreign: session.is_some() && !row.get::<_, bool>("is_renewed"),
            connection: RefCell::new(connection),
            put: BTreeMap::new(),
            lines: Vec::new(),
            is_over: false,
        })
    }

    pub fn now(&self) -> Millis {
        self.now
    }

    /// Returns the digest and the answer of an earlier request with the same key.
    pub fn stored(&self) -> Option<&(String, String)> {
        self.stored.as_ref()
    }

    /// Returns whether the session of the request belongs to another person.
    pub fn is_foreign(&self) -> bool {
        self.is_foreign
    }

    /// Returns the lines that the transaction appended.
    pub fn lines(&self) -> &[Document] {
        &self.lines
    }

    /// Returns the number of the last change after this transaction.
    pub fn next_seq(&self) -> i64 {
        self.seq + self.lines.len().div_ceil(LINES_PER_CHANGE) as i64
    }

    /// Appends the line of a record that is not stored yet, or a mark.
    pub fn append(&mut self, line: &str) -> tanmi_memory::Result<()> {
        let name = match record::read_line(line.as_bytes(), "") {
            Line::Record { row, supersedes } => {
                let id = row.id.clone();
                self.put.insert(id.clone(), Stored { row: *row, line: line.to_owned(), is_new: true });
                supersedes.iter().try_for_each(|target| self.set_hidden(target, true, &id))?;
                id
            }
            Line::Mark { target, hidden, by } => {
                self.set_hidden(&target, hidden, if hidden { &by } else { "" })?;
                target
            }
            Line::Session | Line::Bad => return Ok(()),
        };
        self.lines.push(Document { name, text: Some(line.to_owned()) });
        Ok(())
    }

    fn set_hidden(&mut self, id: &str, hidden: bool, by: &str) -> tanmi_memory::Result<()> {
        if !self.put.contains_key(id) {
            let Some((row, line)) = self.load(id)? else { return Ok(()) };
            self.put.insert(id.to_owned(), Stored { row, line, is_new: false });
        }
        if let Some(stored) = self.put.get_mut(id) {
            stored.row.hidden = hidden;
            stored.row.replaced_by = by.to_owned();
        }
        Ok(())
    }

    /// Returns the memory with this id. Fails if there is none.
    pub fn existing(&self, id: &str) -> tanmi_memory::Result<MemoryRow> {
        self.find(id)?.ok_or_else(|| MemoryError::not_found(id))
    }

    /// Fails if a memory has this id: ids are made anew for each record.
    pub fn check_new(&self, id: &str) -> Result<(), RunError> {
        match self.find(id)? {
            None => Ok(()),
            Some(_) => Err(Error::invalid(
                "id",
                format!("记忆 {id} 已存在；请使用新的 ID"),
                format!("memory {id} exists; use a new id"),
            )
            .into()),
        }
    }

    /// Returns the ids of all records.
    pub fn ids(&self) -> Result<BTreeSet<String>> {
        Ok(self.query(IDS, &[])?.iter().map(|row| row.get("id")).collect())
    }

    /// Returns the visible facts of this transaction whose content another visible fact has, each with that one: a
    /// stored fact, or the first one of this transaction.
    pub fn same_content_pairs(&self) -> Result<Vec<(String, String)>> {
        let is_fact = |stored: &Stored| stored.row.letter.kind() == MemoryKind::Fact && !stored.row.hidden;
        let visible = self.lines.iter().filter_map(|line| self.put.get(&line.name));
        let facts: Vec<&MemoryRow> =
            visible.filter(|stored| stored.is_new && is_fact(stored)).map(|stored| &stored.row).collect();
        let hashes: Vec<i64> = facts.iter().map(|row| row.content_hash).collect();
        let stored = self.query(SAME_CONTENT, &[&hashes])?;
        let stored = stored.iter().filter_map(read).filter(|(row, _)| !self.put.contains_key(&row.id));
        let mut in_force: BTreeMap<i64, String> = stored.map(|(row, _)| (row.content_hash, row.id)).collect();
        let mut pairs = Vec::new();
        for row in facts {
            let first = in_force.entry(row.content_hash).or_insert_with(|| row.id.clone());
            if *first != row.id {
                pairs.push((row.id.clone(), first.clone()));
            }
        }
        Ok(pairs)
    }

    /// Commits what was written, and the answer to a request.
    pub fn commit(mut self, author: Option<&Author>, request: Option<StoredRequest<'_>>) -> Result<()> {
        self.send(author, request)?;
        self.end("COMMIT")
    }

    /// Ends the transaction without changes, and keeps the lease of its session.
    pub fn refuse(mut self) -> Result<()> {
        self.end(COMMIT_LEASE)
    }

    fn end(&mut self, commit: &str) -> Result<()> {
        self.connection.borrow_mut().batch(commit)?;
        self.is_over = true;
        Ok(())
    }

    fn send(&self, author: Option<&Author>, request: Option<StoredRequest<'_>>) -> Result<()> {
        let stored: Vec<&Stored> = self.put.values().collect();
        let text = |field: fn(&MemoryRow) -> &str| -> Vec<&str> {
            stored.iter().map(|stored| field(&stored.row)).collect()
        };
        let ids = text(|row| &row.id);
        let kinds = text(|row| row.letter.kind().as_str());
        let lines: Vec<&str> = stored.iter().map(|stored| stored.line.as_str()).collect();
        let hashes: Vec<i64> = stored.iter().map(|stored| stored.row.content_hash).collect();
        let hidden: Vec<bool> = stored.iter().map(|stored| stored.row.hidden).collect();
        let replaced_by = text(|row| &row.replaced_by);
        let person = author.map(|author| author.person.as_str());
        let session = author.and_then(|author| author.session.as_deref());
        let machine = author.map(|author| author.machine.as_str());
        let mut parts = self.lines.chunks(LINES_PER_CHANGE);
        let (last_names, last_docs) = split(parts.next_back().unwrap_or_default());
        for (seq, part) in (self.seq + 1..).zip(parts) {
            let (names, docs) = split(part);
            self.query(RECORD, &[&seq, &self.now, &names, &docs, &person, &session, &machine])?;
        }
        let params: [&(dyn ToSql + Sync); 17] = [
            &self.next_seq(),
            &ids,
            &kinds,
            &lines,
            &hashes,
            &hidden,
            &replaced_by,
            &self.now,
            &last_names,
            &last_docs,
            &person,
            &session,
            &machine,
            &request.map(|request| request.key),
            &request.map(|request| request.digest),
            &request.map(|request| request.answer),
            &self.saved_fact(),
        ];
        self.query(FINISH, &params)?;
        Ok(())
    }

    /// Returns the fact that the transaction saves. An import of several is not the work of its author.
    fn saved_fact(&self) -> Option<&str> {
        let is_fact = |stored: &&Stored| stored.is_new && stored.row.letter.kind() == MemoryKind::Fact;
        let mut facts = self.put.values().filter(is_fact);
        let first = facts.next().filter(|_| facts.next().is_none());
        first.map(|stored| stored.row.id.as_str())
    }

    /// Runs a statement. Its first parameter is the project.
    fn query(&self, sql: &'static str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        let mut all: Vec<&(dyn ToSql + Sync)> = vec![&self.project];
        all.extend_from_slice(params);
        self.connection.borrow_mut().query(sql, &all)
    }

    fn load(&self, id: &str) -> tanmi_memory::Result<Option<(MemoryRow, String)>> {
        if let Some(found) = self.found.get(id) {
            return Ok(found.clone());
        }
        let rows = self.query(FIND, &[&id]).map_err(memory_error)?;
        Ok(rows.first().and_then(read))
    }
}

impl StoredMemories for MemoryTx<'_> {
    fn find(&self, id: &str) -> tanmi_memory::Result<Option<MemoryRow>> {
        match self.put.get(id) {
            Some(stored) => Ok(Some(stored.row.clone())),
            None => Ok(self.load(id)?.map(|(row, _)| row)),
        }
    }

    fn find_same_content(&self, content_hash: i64) -> tanmi_memory::Result<Vec<MemoryRow>> {
        let is_same = |row: &MemoryRow| {
            row.letter.kind() == MemoryKind::Fact && !row.hidden && row.content_hash == content_hash
        };
        let stored: Vec<MemoryRow> = match self.contents.contains(&content_hash) {
            true => {
                let found = self.found.values().flatten().map(|(row, _)| row);
                found.filter(|row| is_same(row)).cloned().collect()
            }
            false => {
                let rows = self.query(SAME_CONTENT, &[&vec![content_hash]]).map_err(memory_error)?;
                rows.iter().filter_map(read).map(|(row, _)| row).collect()
            }
        };
        let own = self.put.values().map(|stored| stored.row.clone()).filter(is_same);
        Ok(stored.into_iter().filter(|row| !self.put.contains_key(&row.id)).chain(own).collect())
    }
}

impl Drop for MemoryTx<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.connection.borrow_mut().roll_back();
        }
    }
}

/// Fails for what people do not share: opinions and turns of conversations.
pub(super) fn check_shared(row: &MemoryRow) -> tanmi_memory::Result<()> {
    match row.letter {
        MemoryLetter::W | MemoryLetter::B | MemoryLetter::S => Ok(()),
        MemoryLetter::O | MemoryLetter::T => Err(MemoryError::Private { id: row.id.clone() }),
    }
}

/// Returns the names and the texts of documents.
fn split(documents: &[Document]) -> (Vec<&str>, Vec<Option<&str>>) {
    documents.iter().map(|document| (document.name.as_str(), document.text.as_deref())).unzip()
}

/// Reads the columns `line`, `hidden` and `replaced_by`.
fn read(row: &Row) -> Option<(MemoryRow, String)> {
    let line: String = row.get::<_, Option<String>>("line")?;
    let Line::Record { row: mut memory, .. } = record::read_line(line.as_bytes(), MEMORY) else {
        return None;
    };
    memory.hidden = row.get("hidden");
    memory.replaced_by = row.get("replaced_by");
    Some((*memory, line))
}
