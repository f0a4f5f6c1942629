//! The memory of a joined project. The server decides every write of what people share: facts of type W and
//! B, and summaries. Preferences, transcripts and starts of sessions stay on this machine. Reads come from
//! files of this machine, which contain both.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tanmi_base::{Millis, fs, text};
use tanmi_memory::recent::{StartMemory, StartQuery};
use tanmi_memory::record::{self, Holder, Line};
use tanmi_memory::search::Hit;
use tanmi_memory::store::ImportResult;
use tanmi_memory::sync::SyncResult;
use tanmi_memory::{
    Delivery, Error, Fact, FileMemory, Folder, Mark, MemoryFilter, MemoryLetter, MemoryPage, MemoryRow,
    MemoryStats, MemoryStore, MemoryType, ReplicaMemory, Result, SavedFact, SearchQuery, Summary,
};
use tanmi_protocol::{
    Document, MEMORY, MemoryAnswer, MemoryCommand, MemoryOutcome, MemoryRequest, Positions,
};
use tanmi_session::{RefusedWrite, States};

use crate::Member;
use crate::client::{ClientError, LostOutcome};
use crate::connection::Connection;
use crate::outbox::{Delivered, Entry, Outbox, QueuedWrite, new_key, save_request};

/// How long new lines are indexed at once. A later search indexes the rest.
const INDEX_TIME: Duration = Duration::from_secs(10);

/// The most refused writes that a session is told of at once, and the width of the texts of one.
const MAX_NOTES: usize = 20;
const NOTE_COLUMNS: usize = 200;

/// The number of lines of an import in one request.
const IMPORT_LINES: usize = 500;

/// How often the whole memory is fetched in one call: a server whose answers do not agree is not asked for ever.
const MAX_FILLS: usize = 3;

/// The memory of a project that a team server keeps. Cheap to build.
pub struct TeamMemory {
    project: PathBuf,
    own: PathBuf,
    home: PathBuf,
    person: String,
    machine: String,
    replica: ReplicaMemory,
    outbox: Outbox,
    connection: Arc<Connection>,
    clock: fn() -> Millis,
}

impl TeamMemory {
    pub fn new(
        member: &Member,
        home: &Path,
        connection: Arc<Connection>,
        clock: fn() -> Millis,
    ) -> TeamMemory {
        let (project, own) = (member.replica(home), member.private_folder(home));
        TeamMemory {
            replica: ReplicaMemory::new(&project, home),
            outbox: Outbox::new(&own),
            project,
            own,
            home: home.to_owned(),
            person: member.person.clone(),
            machine: member.machine.clone(),
            connection,
            clock,
        }
    }

    /// Returns the name under which others see what this user saves.
    pub fn person(&self) -> &str {
        &self.person
    }

    pub fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// Returns the number of the last change of the shared memory that this machine has.
    pub fn position(&self) -> i64 {
        self.replica.position()
    }

    /// Returns the files of this machine. Built for each call, because the replica may have been deleted
    /// since the last one.
    fn files(&self) -> FileMemory {
        FileMemory::of_team(&self.own, &self.project, &self.outbox.folder(), &self.home)
    }

    /// Sends what waits in the outbox, and fetches what others saved. Returns what was sent; the streams of
    /// workspaces in it are not up to date yet.
    pub fn exchange(&self) -> Result<Delivered> {
        let delivered = self.outbox.deliver(&self.connection, &self.machine, (self.clock)())?;
        self.note_refused(&delivered);
        self.catch_up()?;
        Ok(delivered)
    }

    /// Notes in the states of sessions which of their writes the server refused. Their next prompt tells it.
    fn note_refused(&self, delivered: &Delivered) {
        let states = States::new(&self.home);
        for (id, entry) in &delivered.refused {
            let session = entry.session.as_deref().filter(|session| states.exists(session));
            let (Some(session), Some(refusal)) = (session, &entry.refusal) else { continue };
            let short = |long: &str| text::fit(&text::one_line(long), NOTE_COLUMNS);
            let (text, reason) = (short(&entry.describe().1), short(&refusal.message));
            // Without the note, the next call or command tells it.
            let _ = states.update(session, |state| {
                state.refused_writes.retain(|known| known.id != *id);
                state.refused_writes.push(RefusedWrite { id: id.clone(), text, reason });
                let excess = state.refused_writes.len().saturating_sub(MAX_NOTES);
                state.refused_writes.drain(..excess);
            });
        }
    }

    /// Brings the replica to the last change of the server.
    pub fn catch_up(&self) -> Result<()> {
        self.create_folders()?;
        let mut fills = 0;
        loop {
            let from = self.replica.position();
            let have = Positions::from([(String::from(MEMORY), from)]);
            let page = self.connection.read(|client| client.feed(&have, 0));
            let page = page.map_err(|error| self.failed(error))?;
            let page = page.in_history(self.connection.state().memory_history.as_deref(), &have);
            let head = page.heads.get(MEMORY).copied().unwrap_or(0);
            // A memory without changes has no stream, which an older server reports as a gap.
            let has_gap = from == 0 || page.gaps.iter().any(|stream| stream == MEMORY);
            if head < from || (head > 0 && has_gap) {
                fills += 1;
                if fills > MAX_FILLS {
                    return Err(self.failed(nonsense()));
                }
                self.fill()?;
                self.note_history(&page.history);
                continue;
            }
            if head == from {
                self.note_history(&page.history);
                break;
            }
            let changes = || page.changes.iter().filter(|change| change.stream == MEMORY);
            let Some(last) = changes().next_back().filter(|last| last.seq > from) else {
                return Err(self.failed(nonsense()));
            };
            let lines: Vec<&str> = changes().flat_map(|change| texts(&change.docs)).collect();
            self.replica.append(from, last.seq, &lines, (self.clock)())?;
        }
        let _ = self.files().maintain(Instant::now() + INDEX_TIME, None);
        Ok(())
    }

    fn note_history(&self, history: &str) {
        if !history.is_empty() {
            self.connection.update_state(|state| state.memory_history = Some(history.to_owned()));
        }
    }

    /// Fetches the whole shared memory, as of the first page. Later changes come from the feed.
    fn fill(&self) -> Result<()> {
        let (mut docs, mut after, mut seq): (Vec<Document>, Option<String>, Option<i64>) =
            (Vec::new(), None, None);
        loop {
            let page = self.connection.read(|client| client.snapshot(MEMORY, after.as_deref()));
            let page = page.map_err(|error| self.failed(error))?;
            seq.get_or_insert(page.seq0);
            docs.extend(page.docs);
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        let lines: Vec<&str> = texts(&docs).collect();
        self.replica.reset()?;
        self.replica.append(0, seq.unwrap_or_default(), &lines, (self.clock)())?;
        Ok(())
    }

    /// Writes the lines of an answer into the replica. A replica that is behind catches up instead.
    fn apply(&self, answer: &MemoryAnswer) -> Result<()> {
        if self.replica.position() >= answer.seq {
            return Ok(());
        }
        let lines: Vec<&str> = texts(&answer.docs).collect();
        if self.replica.position() == answer.seq - 1
            && answer.seq > 1
            && self.replica.append(answer.seq - 1, answer.seq, &lines, (self.clock)())?
        {
            let _ = self.files().maintain(Instant::now() + INDEX_TIME, None);
            return Ok(());
        }
        self.catch_up()
    }

    /// Runs a write on the server. Its lines are in the replica when the call returns, unless the replica
    /// cannot be written now; then a later call brings them.
    fn run(&self, request: &MemoryRequest) -> Result<MemoryAnswer, ClientError> {
        let answer = self.connection.read(|client| client.run_memory(request))?;
        let _ = self.apply(&answer);
        Ok(answer)
    }

    /// Runs a write that is not queued.
    fn run_command(&self, command: MemoryCommand) -> Result<MemoryAnswer> {
        let with_key = |key| MemoryRequest {
            key,
            command: command.clone(),
            session: None,
            machine: self.machine.clone(),
        };
        let answer = self.connection.command(with_key, |client, request| client.run_memory(request));
        let answer = answer.map_err(|error| self.failed(error))?;
        let _ = self.apply(&answer);
        self.deliver_briefly();
        Ok(answer)
    }

    /// Sends what waits in the outbox, after a call that the server answered. Returns the streams that
    /// changed; that of the memory is up to date.
    pub(crate) fn deliver_briefly(&self) -> BTreeMap<String, u64> {
        let delivered = self.outbox.deliver_briefly(&self.connection, &self.machine, (self.clock)());
        self.note_refused(&delivered);
        if delivered.changed.contains_key(MEMORY) {
            let _ = self.catch_up();
        }
        delivered.changed
    }

    /// Saves a line, or queues it if the server cannot be reached. Returns `None` if it was queued.
    fn save_line(&self, line: String, session: &str) -> Result<Option<MemoryAnswer>, SaveError> {
        let key = new_key();
        match self.run(&save_request(&key, &line, &self.machine)) {
            Ok(answer) => {
                self.deliver_briefly();
                Ok(Some(answer))
            }
            Err(ClientError::Unreachable { .. }) => {
                let entry = Entry::new(QueuedWrite::Line(line), Some(session), key, (self.clock)());
                self.outbox.put(&entry).map_err(|error| SaveError::Other(error.into()))?;
                let _ = self.files().maintain(Instant::now() + INDEX_TIME, None);
                Ok(None)
            }
            Err(error) => Err(SaveError::Refused(error)),
        }
    }

    /// Saves a fact that people share. What it supersedes on this machine is hidden here.
    fn share_fact(&self, fact: &Fact) -> Result<SavedFact> {
        let superseded = fact.supersedes.iter().map(|id| self.row(id)).collect::<Result<Vec<MemoryRow>>>()?;
        let has = |holder: Holder| superseded.iter().any(|row| Holder::of(row) == holder);
        if has(Holder::Outbox) {
            // The server must know a fact before it is superseded.
            self.deliver_briefly();
        }
        let is_private =
            |id: &&String| superseded.iter().any(|row| row.id == **id && Holder::of(row) == Holder::Machine);
        let (private, shared): (Vec<&String>, Vec<&String>) = fact.supersedes.iter().partition(is_private);
        let private: Vec<String> = private.into_iter().cloned().collect();
        let sent = Fact { supersedes: shared.into_iter().cloned().collect(), ..fact.clone() };
        if let Err(Error::NotCurrent { .. }) = self.files().find_duplicate(fact) {
            // It may have been restored since.
            let _ = self.catch_up();
            self.files().find_duplicate(fact)?;
        }
        let saved = match self.save_line(sent.to_line(), &fact.session) {
            Ok(Some(answer)) => match answer.outcome {
                MemoryOutcome::Saved { id, is_duplicate: true } => duplicate(id),
                _ => self.saved(fact, Delivery::Stored),
            },
            Ok(None) => self.saved(fact, Delivery::Queued),
            Err(SaveError::Other(error)) => return Err(error),
            Err(SaveError::Refused(error)) => {
                // Other people may have superseded or forgotten a fact meanwhile: says which.
                let _ = self.catch_up();
                self.files().find_duplicate(fact)?;
                return Err(self.failed(error));
            }
        };
        if !private.is_empty() {
            self.files().supersede(&private, &saved.id, fact.at, &fact.by)?;
        }
        Ok(saved)
    }

    fn saved(&self, fact: &Fact, delivery: Delivery) -> SavedFact {
        let similar = self.files().similar(fact).unwrap_or_default();
        SavedFact { id: fact.id.clone(), is_duplicate: false, similar, delivery }
    }

    /// Returns a memory. One that this machine does not know may be new on the server.
    fn row(&self, id: &str) -> Result<MemoryRow> {
        match self.files().find(id) {
            Err(Error::NotFound { .. }) if self.exists() && self.catch_up().is_ok() => self.files().find(id),
            other => other,
        }
    }

    fn failed(&self, error: ClientError) -> Error {
        let server = self.connection.server().to_owned();
        match error {
            ClientError::Unreachable { reason, outcome } => {
                Error::TeamUnreachable { server, reason, may_have_run: outcome == LostOutcome::Unknown }
            }
            ClientError::Refused { code, message, .. } => Error::TeamRefused { server, code, message },
        }
    }

    /// Creates the folders of this machine. Returns whether there were none.
    fn create_folders(&self) -> Result<bool> {
        for folder in [&self.own, &self.project] {
            fs::create_private_dir(folder).map_err(Error::io(folder))?;
        }
        self.files().create(false)
    }
}

enum SaveError {
    Refused(ClientError),
    Other(Error),
}

fn duplicate(id: String) -> SavedFact {
    SavedFact { id, is_duplicate: true, similar: Vec::new(), delivery: Delivery::Stored }
}

fn nonsense() -> ClientError {
    ClientError::Unreachable {
        reason: String::from("its answers about the memory do not agree"),
        outcome: LostOutcome::NotRun,
    }
}

fn texts(docs: &[Document]) -> impl Iterator<Item = &str> {
    docs.iter().filter_map(|document| document.text.as_deref())
}

/// Returns whether a line of an import stays on this machine. Marks are for both: each store uses those of
/// its own records.
fn stays_here(line: &str) -> Option<bool> {
    match record::read_line(line.as_bytes(), "import") {
        Line::Record { row, .. } => Some(matches!(row.letter, MemoryLetter::O | MemoryLetter::T)),
        Line::Mark { .. } => None,
        Line::Session | Line::Bad => Some(true),
    }
}

impl MemoryStore for TeamMemory {
    /// The files came from the server or from the user, never with a clone.
    fn local_folder(&self) -> Option<&Folder> {
        None
    }

    fn exists(&self) -> bool {
        self.files().exists()
    }

    fn create(&self, _: bool) -> Result<bool> {
        self.create_folders()
    }

    fn save_fact(&self, fact: &Fact) -> Result<SavedFact> {
        if fact.memory_type == MemoryType::O {
            return self.files().save_fact(fact);
        }
        // Known here, so the server need not be asked, and a repeated call offline queues nothing.
        if fact.supersedes.is_empty()
            && let Some(id) = self.files().find_duplicate(fact)?
        {
            return Ok(duplicate(id));
        }
        self.share_fact(fact)
    }

    fn save_summary(&self, summary: &Summary) -> Result<Delivery> {
        match self.save_line(summary.to_line(), &summary.session) {
            Ok(Some(_)) => Ok(Delivery::Stored),
            Ok(None) => Ok(Delivery::Queued),
            Err(SaveError::Refused(error)) => Err(self.failed(error)),
            Err(SaveError::Other(error)) => Err(error),
        }
    }

    fn search(&self, query: &SearchQuery<'_>) -> Result<Vec<Hit>> {
        self.files().search(query)
    }

    fn list(&self, filter: &MemoryFilter, limit: usize, skip: usize) -> Result<MemoryPage> {
        self.files().list(filter, limit, skip)
    }

    fn find(&self, id: &str) -> Result<MemoryRow> {
        self.files().find(id)
    }

    fn mark(&self, mark: Mark, ids: &[String], at: Millis, by: &str) -> Result<Vec<MemoryRow>> {
        let mut rows = ids.iter().map(|id| self.row(id)).collect::<Result<Vec<MemoryRow>>>()?;
        if rows.iter().any(|row| Holder::of(row) == Holder::Outbox) {
            self.deliver_briefly();
            rows = ids.iter().map(|id| self.row(id)).collect::<Result<Vec<MemoryRow>>>()?;
        }
        // A fact that moves to the memory of the user stays in that of the others.
        let is_shared = |row: &&MemoryRow| mark != Mark::Promote && Holder::of(row) != Holder::Machine;
        let (shared, private): (Vec<&MemoryRow>, Vec<&MemoryRow>) = rows.iter().partition(is_shared);
        let ids_of = |rows: Vec<&MemoryRow>| rows.into_iter().map(|row| row.id.clone()).collect::<Vec<_>>();
        let (shared, private) = (ids_of(shared), ids_of(private));
        if !shared.is_empty() {
            self.run_command(MemoryCommand::Mark { mark, ids: shared, by: by.to_owned() })?;
        }
        if !private.is_empty() {
            self.files().mark(mark, &private, at, by)?;
        }
        ids.iter().map(|id| self.files().find(id)).collect()
    }

    fn import(&self, lines: &str, now: Millis, progress: &mut dyn FnMut(u64, u64)) -> Result<ImportResult> {
        // Lines of the other store become empty, so that the numbers of bad lines stay.
        let of_store = |here: bool| {
            let own = |line| if stays_here(line).is_none_or(|stays| stays == here) { line } else { "" };
            lines.lines().map(own).collect::<Vec<_>>().join("\n")
        };
        let mut result = ImportResult::default();
        let shared = of_store(false);
        let lines: Vec<&str> = shared.lines().collect();
        let total = lines.len() as u64;
        for (part, lines) in lines.chunks(IMPORT_LINES).enumerate() {
            if !lines.iter().any(|line| stays_here(line) == Some(false)) {
                continue;
            }
            let answer = self.run_command(MemoryCommand::Import { lines: lines.join("\n") })?;
            if let MemoryOutcome::Imported { result: imported } = answer.outcome {
                result.add(imported, part * IMPORT_LINES);
            }
            progress((part * IMPORT_LINES + lines.len()) as u64, total);
        }
        let private = self.files().import(&of_store(true), now, progress)?;
        result.add(private, 0);
        Ok(result)
    }

    fn export(&self, all: bool, now: Millis) -> Result<Vec<String>> {
        self.files().export(all, now)
    }

    /// Fetches what others saved, if the server can be reached.
    fn sync(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<SyncResult> {
        match self.exchange() {
            Ok(_) | Err(Error::TeamUnreachable { .. }) => self.files().sync(progress),
            Err(error) => Err(error),
        }
    }

    fn stats(&self) -> Result<MemoryStats> {
        Ok(MemoryStats { place: self.connection.server().to_owned(), ..self.files().stats()? })
    }

    fn start_memory(&self, query: &StartQuery<'_>) -> StartMemory {
        self.files().start_memory(&StartQuery { person: Some(&self.person), ..*query })
    }

    fn record_session(&self, line: &str, at: Millis) -> Result<()> {
        self.files().record_session(line, at)
    }

    fn maintain(&self, deadline: Instant, oldest_session_line: Option<Millis>) -> Result<()> {
        self.files().maintain(deadline, oldest_session_line)
    }

    fn revision(&self) -> u64 {
        self.files().revision()
    }
}

#[cfg(test)]
mod tests;
