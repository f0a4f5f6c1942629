//! The transaction on the memory of a project. What it writes is collected and sent as one statement at the end.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use postgres::Row;
use postgres::types::ToSql;
use tanmi_base::Millis;
use tanmi_memory::decide::StoredMemories;
use tanmi_memory::record::{self, Line};
use tanmi_memory::{Error as MemoryError, MemoryKind, MemoryLetter, MemoryRow};
use tanmi_protocol::{Document, MEMORY};
use tanmi_workspace::error::{Error, Result};

use crate::error::memory_error;
use crate::pool::PooledConnection;
use crate::run::RunError;
use crate::store::PgStore;
use crate::tx::{Author, RENEW, STORE_REQUEST, find_request};

/// The number of lines that one change contains. A large import becomes several changes.
const LINES_PER_CHANGE: usize = 500;

/// Creates the stream if there is none, and locks it.
const LOCK: &str = "INSERT INTO stream (project, id, seq) VALUES ($1, 'memory', 0)
ON CONFLICT (project, id) DO UPDATE SET seq = stream.seq RETURNING seq";
const FIND: &str = "SELECT line, hidden, replaced_by FROM memory WHERE project = $1 AND id = $2";
const SAME_CONTENT: &str = "SELECT line, hidden, replaced_by FROM memory
WHERE project = $1 AND content_hash = ANY($2::bigint[]) AND kind = 'fact' AND NOT hidden ORDER BY seq, id";
const IDS: &str = "SELECT id FROM memory WHERE project = $1";
/// Hidden records come first, so that a content is not in force twice in between.
const PUT: &str = "INSERT INTO memory (project, seq, id, kind, line, content_hash, hidden, replaced_by)
SELECT $1, $2, id, kind, line, content_hash, hidden, replaced_by
FROM unnest($3::text[], $4::text[], $5::text[], $6::bigint[], $7::bool[], $8::text[])
    AS t(id, kind, line, content_hash, hidden, replaced_by)
ORDER BY hidden DESC
ON CONFLICT (project, id) DO UPDATE SET hidden = excluded.hidden, replaced_by = excluded.replaced_by";
const RECORD: &str = "WITH stream AS (UPDATE stream SET seq = $2 WHERE project = $1 AND id = 'memory')
INSERT INTO change (project, stream, seq, at, names, docs, person, session, machine)
VALUES ($1, 'memory', $2, $3, $4::text[], $5::text[], $6, $7, $8)";

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
    /// Every record that the transaction added or marked.
    put: BTreeMap<String, Stored>,
    /// The appended lines, in order.
    lines: Vec<Document>,
    is_over: bool,
}

impl<'a> MemoryTx<'a> {
    /// Begins a write. It locks the stream of the memory, so writers come one after the other.
    pub fn begin(store: &'a PgStore, now: Millis) -> Result<MemoryTx<'a>> {
        let mut connection = store.pool.begin("BEGIN", &store.project, Some(MEMORY))?;
        let opened = connection.query_opt(LOCK, &[&store.project]);
        if opened.is_err() {
            connection.roll_back();
        }
        let seq = opened?.map_or(0, |row| row.get("seq"));
        Ok(MemoryTx {
            connection: RefCell::new(connection),
            project: &store.project,
            seq,
            now,
            put: BTreeMap::new(),
            lines: Vec::new(),
            is_over: false,
        })
    }

    pub fn now(&self) -> Millis {
        self.now
    }

    /// Returns the stored digest and answer of a request. The time of the transaction becomes that of the database.
    pub fn open_request(&mut self, key: &str) -> Result<Option<(String, String)>> {
        let (now, stored) = find_request(&mut self.connection.borrow_mut(), self.project, key)?;
        self.now = now;
        Ok(stored)
    }

    /// Sets when the lease of a session ends. Returns `false` if the session belongs to another person.
    pub fn renew_lease(&self, session: &str, person: &str, machine: &str, lease: Millis) -> Result<bool> {
        let until = self.now + lease;
        Ok(!self.query(RENEW, &[&session, &person, &machine, &until])?.is_empty())
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

    /// Commits what was written, and the answer to a request: its key, digest and text.
    pub fn commit(mut self, author: Option<&Author>, request: Option<(&str, &str, &str)>) -> Result<()> {
        self.send(author)?;
        if let Some((key, digest, answer)) = request {
            self.query(STORE_REQUEST, &[&key, &digest, &answer, &self.now])?;
        }
        self.connection.borrow_mut().batch("COMMIT")?;
        self.is_over = true;
        Ok(())
    }

    fn send(&self, author: Option<&Author>) -> Result<()> {
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
        self.query(PUT, &[&self.next_seq(), &ids, &kinds, &lines, &hashes, &hidden, &replaced_by])?;
        for (seq, lines) in (self.seq + 1..).zip(self.lines.chunks(LINES_PER_CHANGE)) {
            let names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
            let docs: Vec<Option<&str>> = lines.iter().map(|line| line.text.as_deref()).collect();
            let person = author.map(|author| author.person.as_str());
            let session = author.and_then(|author| author.session.as_deref());
            let machine = author.map(|author| author.machine.as_str());
            self.query(RECORD, &[&seq, &self.now, &names, &docs, &person, &session, &machine])?;
        }
        Ok(())
    }

    /// Runs a statement. Its first parameter is the project.
    fn query(&self, sql: &'static str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        let mut all: Vec<&(dyn ToSql + Sync)> = vec![&self.project];
        all.extend_from_slice(params);
        self.connection.borrow_mut().query(sql, &all)
    }

    fn load(&self, id: &str) -> tanmi_memory::Result<Option<(MemoryRow, String)>> {
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
        let rows = self.query(SAME_CONTENT, &[&vec![content_hash]]).map_err(memory_error)?;
        let stored = rows.iter().filter_map(read).map(|(row, _)| row);
        let is_same = |row: &MemoryRow| {
            row.letter.kind() == MemoryKind::Fact && !row.hidden && row.content_hash == content_hash
        };
        let own = self.put.values().map(|stored| stored.row.clone()).filter(is_same);
        Ok(stored.filter(|row| !self.put.contains_key(&row.id)).chain(own).collect())
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

/// Reads the columns `line`, `hidden` and `replaced_by`.
fn read(row: &Row) -> Option<(MemoryRow, String)> {
    let line: String = row.get("line");
    let Line::Record { row: mut memory, .. } = record::read_line(line.as_bytes(), MEMORY) else {
        return None;
    };
    memory.hidden = row.get("hidden");
    memory.replaced_by = row.get("replaced_by");
    Some((*memory, line))
}
