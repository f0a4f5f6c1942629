//! The memory of a project: facts and summaries that its people share.
//!
//! The database stores the lines of memory files and decides every write. Reads run on a replica of the lines in files,
//! with the engine of file memory; it catches up before each read. Opinions and conversations are private and refused.

use std::collections::BTreeMap;

use tanmi_base::{Millis, hash};
use tanmi_memory::decide::{self, FactDecision};
use tanmi_memory::record::{self, Line};
use tanmi_memory::store::ImportResult;
use tanmi_memory::{Author as RecordAuthor, Mark, MemoryKind, ReplicaMemory, import};
use tanmi_protocol::{
    Document, DocumentPage, MEMORY, MemoryAnswer, MemoryCommand, MemoryOutcome, MemoryRequest,
};
use tanmi_workspace::error::{Error, Result};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::error::conflict;
use crate::flush::StoredRequest;
use crate::people::Caller;
use crate::pool::PooledConnection;
use crate::replica::READ;
use crate::run::{RunError, retry};
use crate::store::PgStore;
use crate::tx::Author;

mod store;
pub(crate) mod transfer;
mod tx;

use tx::{Lookup, MemoryTx};

/// The number of records that one page of a snapshot for the replica of this process contains.
const PAGE: usize = 5000;
/// How often the replica is filled in one call. Each time the database may be restored, or another process be faster.
const MAX_FILLS: usize = 3;

const HEAD: &str = "SELECT seq FROM stream WHERE project = $1 AND id = 'memory'";
const RECORDS: &str = "SELECT id, line, hidden, replaced_by FROM memory
WHERE project = $1 AND id > $2 ORDER BY id LIMIT $3";

const STATES: &str = "SELECT id, hidden, replaced_by FROM memory WHERE project = $1 AND id = ANY($2::text[])";

/// The memory of one project in PostgreSQL, with a replica for reads.
#[derive(Clone)]
pub struct PgMemory {
    store: PgStore,
    replica: ReplicaMemory,
    author: Option<(Author, RecordAuthor)>,
}

impl PgMemory {
    /// Returns the memory of the project of `store`. Does not connect. The folder of the replica belongs to
    /// this project alone; several processes may share it.
    pub fn new(store: PgStore, replica: ReplicaMemory) -> PgMemory {
        PgMemory { store, replica, author: None }
    }

    /// Returns the same memory, whose writes name a person.
    pub fn written_by(&self, caller: &Caller, session: Option<&str>, machine: &str) -> PgMemory {
        let (session, machine) = (session.map(String::from), machine.to_owned());
        let record = RecordAuthor { person: caller.name.clone(), machine: machine.clone() };
        let author = Author { person: caller.person.clone(), session, machine };
        PgMemory { author: Some((author, record)), ..self.clone() }
    }

    /// Runs a request of a person. A request whose key is known is not run again: its stored answer is returned.
    pub fn run_request(&self, caller: &Caller, request: &MemoryRequest) -> Result<MemoryAnswer, RunError> {
        retry(|| self.try_request(caller, request))
    }

    fn try_request(&self, caller: &Caller, request: &MemoryRequest) -> Result<MemoryAnswer, RunError> {
        let record = RecordAuthor { person: caller.name.clone(), machine: request.machine.clone() };
        let author = Author {
            person: caller.person.clone(),
            session: request.session.clone(),
            machine: request.machine.clone(),
        };
        let lookup = lookup_of(&request.command);
        let mut tx = MemoryTx::begin_request(&self.store, lookup, &request.key, &author)?;
        let digest = digest_of(caller, request);
        if let Some((stored_digest, answer)) = tx.stored() {
            let answer = serde_json::from_str(answer).ok().filter(|_| *stored_digest == digest);
            tx.refuse()?;
            return answer.ok_or(RunError::KeyReused);
        }
        if tx.is_foreign() {
            return Err(RunError::ForeignSession);
        }
        let outcome = match apply(&mut tx, &record, &request.command) {
            Ok(outcome) => outcome,
            Err(error) => {
                // The lease ends earlier if this fails.
                let _ = tx.refuse();
                return Err(error);
            }
        };
        let answer = MemoryAnswer { outcome, seq: tx.next_seq(), docs: tx.lines().to_vec(), now: tx.now() };
        let text = serde_json::to_string(&answer).map_err(|_| Error::UnexpectedOutcome)?;
        tx.commit(Some(&author), Some(StoredRequest { key: &request.key, digest: &digest, answer: &text }))?;
        Ok(answer)
    }

    /// Runs a write without a key.
    fn write<T>(
        &self,
        now: Millis,
        lookup: impl Fn() -> Lookup,
        work: impl Fn(&mut MemoryTx<'_>) -> Result<T, RunError>,
    ) -> Result<T, RunError> {
        retry(|| {
            let mut tx = MemoryTx::begin(&self.store, lookup(), now)?;
            let value = work(&mut tx)?;
            tx.commit(self.author.as_ref().map(|(author, _)| author), None)?;
            Ok(value)
        })
    }

    /// Returns the number of the last change, `None` if the memory was not created, and the name of the history of the
    /// database.
    fn head(&self) -> Result<(Option<i64>, String)> {
        self.store.transact("BEGIN", |connection| {
            let rows = connection.query(HEAD, &[&self.store.project])?;
            Ok((rows.first().map(|row| row.get("seq")), connection.history()))
        })
    }

    /// Brings the replica to the last change. Another process may do so at the same time.
    fn catch_up(&self) -> Result<(), RunError> {
        let mut fills = 0;
        loop {
            let (head, history) = self.head()?;
            let known = self.replica.in_history(&history).known_position();
            if known == Some(head.unwrap_or(0)) {
                return Ok(());
            }
            let from = known.unwrap_or(0);
            let page = self.store.changes_after(&BTreeMap::from([(String::from(MEMORY), from)]))?;
            let replica = self.replica.in_history(&page.history);
            if from == 0 || !page.gaps.is_empty() {
                fills += 1;
                if fills > MAX_FILLS {
                    return Err(conflict().into());
                }
                self.fill(&replica, page.now)?;
                continue;
            }
            let Some(last) = page.changes.last() else { return Ok(()) };
            let docs = page.changes.iter().flat_map(|change| &change.docs);
            let lines: Vec<&str> = docs.filter_map(|document| document.text.as_deref()).collect();
            replica.append(from, last.seq, &lines, page.now)?;
        }
    }

    /// Fills the replica from the beginning, as of the first page. Later changes come from the feed.
    fn fill(&self, replica: &ReplicaMemory, now: Millis) -> Result<(), RunError> {
        let mut page = documents(&self.store, None, PAGE)?;
        let seq = page.seq0;
        let mut docs = page.docs;
        while let Some(next) = page.next {
            page = documents(&self.store, Some(&next), PAGE)?;
            docs.extend(page.docs);
        }
        let lines: Vec<&str> = docs.iter().filter_map(|document| document.text.as_deref()).collect();
        replica.reset()?;
        replica.append(0, seq, &lines, now)?;
        Ok(())
    }
}

/// Returns up to `limit` records after the record `after`, each with marks that state what is in force now.
pub(crate) fn documents(store: &PgStore, after: Option<&str>, limit: usize) -> Result<DocumentPage> {
    store.transact(READ, |connection| documents_in(store, connection, after, limit))
}

/// Same as [`documents`], within a transaction.
fn documents_in(
    store: &PgStore,
    connection: &mut PooledConnection<'_>,
    after: Option<&str>,
    limit: usize,
) -> Result<DocumentPage> {
    let limit = crate::rows::limit(limit.max(1));
    let params: [&(dyn ToSql + Sync); 3] = [&store.project, &after.unwrap_or_default(), &(limit + 1)];
    let head = connection.query(HEAD, &params[..1])?;
    let rows = connection.query(RECORDS, &params)?;
    let targets: Vec<String> = rows.iter().flat_map(|row| supersedes(row.get("line"))).collect();
    let targets = connection.query(STATES, &[&store.project, &targets])?;
    let targets: BTreeMap<&str, &Row> = targets.iter().map(|row| (row.get("id"), row)).collect();
    let document = |row: &Row| {
        let line: &str = row.get("line");
        let own = Some(row).filter(|row| row.get("hidden"));
        // A line hides what it supersedes. Some of that may have been restored since.
        let superseded = supersedes(line);
        let superseded = superseded.iter().filter_map(|id| targets.get(id.as_str()).copied());
        let marks = own.into_iter().chain(superseded).map(state_mark);
        let lines: Vec<String> = [line.to_owned()].into_iter().chain(marks).collect();
        Document { name: row.get("id"), text: Some(lines.join("\n")) }
    };
    let docs: Vec<Document> = rows.iter().take(limit.unsigned_abs() as usize).map(document).collect();
    let has_more = rows.len() as i64 > limit;
    let next = docs.last().filter(|_| has_more).map(|document| document.name.clone());
    Ok(DocumentPage { docs, seq0: head.first().map_or(0, |row| row.get("seq")), next })
}

fn supersedes(line: &str) -> Vec<String> {
    match record::read_line(line.as_bytes(), "") {
        Line::Record { supersedes, .. } => supersedes,
        _ => Vec::new(),
    }
}

/// Returns the mark that sets a record to its state.
fn state_mark(row: &Row) -> String {
    let (id, replaced_by): (&str, &str) = (row.get("id"), row.get("replaced_by"));
    let kind = match row.get("hidden") {
        true if replaced_by.is_empty() => "forget",
        true => "replace",
        false => "restore",
    };
    record::mark_line(kind, id, replaced_by, 0, "replica")
}

fn apply(
    tx: &mut MemoryTx<'_>,
    author: &RecordAuthor,
    command: &MemoryCommand,
) -> Result<MemoryOutcome, RunError> {
    match command {
        MemoryCommand::Save { line } => {
            let (id, is_duplicate) = save(tx, &with_author(line, author)?)?;
            Ok(MemoryOutcome::Saved { id, is_duplicate })
        }
        MemoryCommand::Mark { mark, ids, by } => {
            let now = tx.now();
            set_marks(tx, *mark, ids, now, by)?;
            Ok(MemoryOutcome::Marked)
        }
        MemoryCommand::Import { lines } => {
            let now = tx.now();
            Ok(MemoryOutcome::Imported { result: import_lines(tx, lines, Some(author), now)? })
        }
    }
}

/// Returns what a command will look for.
fn lookup_of(command: &MemoryCommand) -> Lookup {
    match command {
        MemoryCommand::Save { line } => lookup_of_line(line),
        MemoryCommand::Mark { ids, .. } => Lookup { ids: ids.clone(), ..Lookup::default() },
        MemoryCommand::Import { .. } => Lookup::default(),
    }
}

/// Returns what the save of a line will look for.
fn lookup_of_line(line: &str) -> Lookup {
    match record::read_line(line.as_bytes(), "") {
        Line::Record { row, supersedes } => {
            Lookup { ids: [vec![row.id], supersedes].concat(), contents: vec![row.content_hash] }
        }
        _ => Lookup::default(),
    }
}

/// Returns a line with the person who saved it and the machine, so that other people are told who said it.
fn with_author(line: &str, author: &RecordAuthor) -> Result<String, RunError> {
    let mut value: serde_json::Value = serde_json::from_str(line).map_err(|_| bad_line())?;
    let fields = value.as_object_mut().ok_or_else(bad_line)?;
    let source = fields.entry("source").or_insert_with(|| serde_json::json!({}));
    let source = source.as_object_mut().ok_or_else(bad_line)?;
    source.insert(String::from("person"), author.person.as_str().into());
    source.remove("machine");
    if !author.machine.is_empty() {
        source.insert(String::from("machine"), author.machine.as_str().into());
    }
    Ok(value.to_string())
}

fn bad_line() -> Error {
    Error::invalid(
        "line",
        String::from("应为一个事实或摘要的一行 JSON"),
        String::from("expected one line of JSON with a fact or a summary"),
    )
}

/// Saves a line. Returns the id of the record, and whether it is an existing fact with the same content.
fn save(tx: &mut MemoryTx<'_>, line: &str) -> Result<(String, bool), RunError> {
    let Line::Record { row, supersedes } = record::read_line(line.as_bytes(), "") else {
        return Err(bad_line().into());
    };
    tx::check_shared(&row)?;
    if row.letter.kind() == MemoryKind::Fact {
        let source: serde_json::Value = serde_json::from_str(line).unwrap_or_default();
        let new = decide::NewFact {
            content_hash: row.content_hash,
            supersedes: &supersedes,
            at: row.at.unwrap_or_else(|| tx.now()),
            by: source["source"]["by"].as_str().unwrap_or_default(),
        };
        if let FactDecision::Duplicate { id, lines } = decide::save_fact(tx, &new)? {
            lines.iter().try_for_each(|line| tx.append(line))?;
            return Ok((id, true));
        }
    }
    tx.check_new(&row.id)?;
    tx.append(line)?;
    Ok((row.id, false))
}

fn set_marks(
    tx: &mut MemoryTx<'_>,
    mark: Mark,
    ids: &[String],
    at: Millis,
    by: &str,
) -> Result<(), RunError> {
    for id in ids {
        tx.existing(id)?;
    }
    for id in ids {
        let row = tx.existing(id)?;
        let lines = decide::mark_lines(tx, mark, &row, at, by)?;
        lines.iter().try_for_each(|line| tx.append(line))?;
    }
    Ok(())
}

/// Imports lines, whose author is the one who imports them. A fact whose content is in force already is added
/// as superseded by that one.
fn import_lines(
    tx: &mut MemoryTx<'_>,
    lines: &str,
    author: Option<&RecordAuthor>,
    now: Millis,
) -> Result<ImportResult, RunError> {
    let known = tx.ids()?;
    let mut batch = import::read(lines, |id| Ok(known.contains(id)))?;
    for row in &mut batch.records {
        tx::check_shared(row)?;
        RecordAuthor::set(author, row);
        tx.append(&import::record_line(row, now))?;
    }
    for mark in &batch.marks {
        tx.append(&record::mark_line(mark.kind(), &mark.target, &mark.by, now, "import"))?;
    }
    for (id, known) in tx.same_content_pairs()? {
        tx.append(&record::mark_line("replace", &id, &known, now, "import"))?;
    }
    Ok(batch.result)
}

/// Returns a digest of what a request asks for. A key of one person is not valid for another.
fn digest_of(caller: &Caller, request: &MemoryRequest) -> String {
    let content = (&caller.person, MEMORY, &request.command, &request.session);
    hash::sha256_hex(&serde_json::to_vec(&content).unwrap_or_default())
}
