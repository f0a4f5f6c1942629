//! The outbox of a joined project: writes that wait for its server, one file each.
//!
//! Invariant: an entry is on the disk before its write is acknowledged, and is removed only after the server
//! answered. Each has the key of its request, so an entry that is sent twice is carried out once. Entries are
//! independent: one that the server refuses moves to `undelivered/` and holds up no other.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tanmi_base::lock::{Lock, LockError};
use tanmi_base::{Millis, fs, id};
use tanmi_protocol::{MEMORY, MemoryCommand, MemoryRequest, RunRequest};

use tanmi_workspace::command::Command;

use crate::client::ClientError;
use crate::connection::Connection;

/// The number of writes that can wait.
pub const MAX_ENTRIES: usize = 10_000;

/// The end of the name of a refused entry that the user was told of, so that it is not read again and again.
const TOLD: &str = ".told";

/// How long a command that delivers on the side takes at most, besides the request that it began.
const BRIEFLY: Duration = Duration::from_secs(2);

/// A write that waits for the server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// Always `queued`: the memory index reads the files.
    #[serde(rename = "type")]
    kind: String,
    pub at: Millis,
    /// Of the request.
    pub key: String,
    /// The session that made the write, if one did. It is told if the server refuses the write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(flatten)]
    pub write: QueuedWrite,
    /// Why the server refused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<EntryRefusal>,
    /// Keys of newer versions are kept.
    #[serde(flatten)]
    other: Map<String, Value>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum QueuedWrite {
    /// A line of the memory.
    Line(String),
    /// A log line of a workspace.
    Run(Box<RunRequest>),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EntryRefusal {
    pub code: String,
    pub message: String,
    pub at: Millis,
    /// Whether the user was told, as earlier versions wrote it. Now the name of the file says it, see [`TOLD`].
    #[serde(default)]
    pub is_told: bool,
}

impl Entry {
    pub fn new(write: QueuedWrite, session: Option<&str>, key: String, at: Millis) -> Entry {
        let session = session.filter(|session| !session.is_empty()).map(str::to_owned);
        Entry { kind: String::from("queued"), at, key, session, write, refusal: None, other: Map::new() }
    }

    /// Returns what the write is, `fact`, `summary` or `log`, and its text.
    pub fn describe(&self) -> (&'static str, String) {
        match &self.write {
            QueuedWrite::Line(line) => {
                let line: Value = serde_json::from_str(line).unwrap_or_default();
                let part = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
                match line["type"] == "summary" {
                    true => ("summary", format!("{} {}", part("topic"), part("summary"))),
                    false => ("fact", part("content")),
                }
            }
            QueuedWrite::Run(request) => match &request.command {
                Command::AppendLog { event, .. } => ("log", event.clone()),
                _ => ("log", String::new()),
            },
        }
    }

    /// Sends the write. Returns its stream and the number of its change.
    fn send(
        &self,
        connection: &Connection,
        machine: &str,
        now: Millis,
    ) -> Result<(String, u64), ClientError> {
        match &self.write {
            QueuedWrite::Line(line) => {
                let request = save_request(&self.key, line, machine);
                let answer = connection.read(|client| client.run_memory(&request))?;
                Ok((String::from(MEMORY), answer.seq.max(0).cast_unsigned()))
            }
            QueuedWrite::Run(request) => {
                let age = Some((now - self.at).max(0));
                let request = RunRequest { age, ..RunRequest::clone(request) };
                let answer = connection.read(|client| client.run(&request))?;
                Ok((request.stream.to_string(), answer.seq))
            }
        }
    }
}

/// Returns the request that saves a line. It names no session: the lease of a session must not be renewed by
/// a line that was queued long ago, and a repeated request must be the same.
pub(crate) fn save_request(key: &str, line: &str, machine: &str) -> MemoryRequest {
    MemoryRequest {
        key: key.to_owned(),
        command: MemoryCommand::Save { line: line.to_owned() },
        session: None,
        machine: machine.to_owned(),
    }
}

/// Returns the key of a new request.
pub(crate) fn new_key() -> String {
    format!("machine-{}", id::random(20))
}

/// Why an entry was not queued.
#[derive(Debug, thiserror::Error)]
pub enum OutboxError {
    #[error("{MAX_ENTRIES} writes wait for the server")]
    Full,
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
}

impl From<OutboxError> for tanmi_workspace::Error {
    fn from(error: OutboxError) -> tanmi_workspace::Error {
        match error {
            OutboxError::Full => tanmi_workspace::Error::OutboxFull { limit: MAX_ENTRIES },
            OutboxError::Io { path, source } => tanmi_workspace::Error::io(path)(source),
        }
    }
}

impl From<OutboxError> for tanmi_memory::Error {
    fn from(error: OutboxError) -> tanmi_memory::Error {
        match error {
            OutboxError::Full => tanmi_memory::Error::OutboxFull { limit: MAX_ENTRIES },
            OutboxError::Io { path, source } => tanmi_memory::Error::io(path)(source),
        }
    }
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> OutboxError {
    let path = path.to_owned();
    move |source| OutboxError::Io { path, source }
}

/// What a delivery did.
#[derive(Debug, Default)]
pub struct Delivered {
    pub sent: usize,
    /// The entries that the server refused, each with its name.
    pub refused: Vec<(String, Entry)>,
    /// The number of entries that still wait.
    pub left: usize,
    /// The streams that changed, with the number of the last change. Their replicas are not up to date yet.
    pub changed: BTreeMap<String, u64>,
    /// What ended the delivery before the last entry.
    pub problem: Option<ClientError>,
    /// Whether another process delivers at this moment.
    pub is_busy: bool,
}

/// The counts of an outbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OutboxCounts {
    pub queued: usize,
    pub undelivered: usize,
}

/// The outbox of one project.
#[derive(Clone, Debug)]
pub struct Outbox {
    own: PathBuf,
}

impl Outbox {
    /// Returns the outbox in a folder, which need not exist, see [`crate::Member::private_folder`].
    pub fn new(own: &Path) -> Outbox {
        Outbox { own: own.to_owned() }
    }

    /// Returns the folder of the entries that wait.
    pub fn folder(&self) -> PathBuf {
        self.own.join("outbox")
    }

    /// Returns the folder of the entries that the server refused.
    fn undelivered(&self) -> PathBuf {
        self.own.join("undelivered")
    }

    /// Queues a write. It is on the disk when the call returns.
    pub fn put(&self, entry: &Entry) -> Result<(), OutboxError> {
        let folder = self.folder();
        let names = entry_names(&folder);
        if names.len() >= MAX_ENTRIES {
            return Err(OutboxError::Full);
        }
        let last = names.last().and_then(|name| name.split('-').next()?.parse::<u64>().ok());
        let name = format!("{:010}-{}.json", last.unwrap_or(0) + 1, id::random(8));
        if names.is_empty() && !folder.is_dir() {
            fs::create_private_dir(&folder).map_err(io(&folder))?;
            folder.ancestors().skip(1).take(3).for_each(fs::sync_dir);
        }
        write(&folder.join(name), entry)
    }

    /// Returns whether no write waits. One system call if none ever did.
    pub fn is_empty(&self) -> bool {
        entry_names(&self.folder()).is_empty()
    }

    pub fn counts(&self) -> OutboxCounts {
        OutboxCounts {
            queued: entry_names(&self.folder()).len(),
            undelivered: entry_names(&self.undelivered()).len(),
        }
    }

    /// Returns the entries that wait and those that the server refused, each with its name, in the order of
    /// queueing. An entry that cannot be read is left out.
    pub fn list(&self) -> Vec<(String, Entry)> {
        let read = |folder: PathBuf| {
            let names = entry_names(&folder).into_iter();
            names.filter_map(move |name| Some((stem(&name), read(&folder.join(&name))?)))
        };
        read(self.folder()).chain(read(self.undelivered())).collect()
    }

    /// Sends what waits, until the server cannot be reached or refuses the token. Returns at once if another
    /// process does so.
    pub fn deliver(
        &self,
        connection: &Connection,
        machine: &str,
        now: Millis,
    ) -> Result<Delivered, OutboxError> {
        self.deliver_until(connection, machine, now, None)
    }

    /// Same as [`Outbox::deliver`], for a command that was just answered: it ends after a short time.
    pub fn deliver_briefly(&self, connection: &Connection, machine: &str, now: Millis) -> Delivered {
        let until = Some(Instant::now() + BRIEFLY);
        // What was not delivered stays, and the next delivery reports the error.
        self.deliver_until(connection, machine, now, until).unwrap_or_default()
    }

    fn deliver_until(
        &self,
        connection: &Connection,
        machine: &str,
        now: Millis,
        until: Option<Instant>,
    ) -> Result<Delivered, OutboxError> {
        let folder = self.folder();
        let mut delivered = Delivered::default();
        if entry_names(&folder).is_empty() {
            return Ok(delivered);
        }
        let Some(_lock) = Lock::try_exclusive(&self.lock_path()).map_err(io(&self.lock_path()))? else {
            return Ok(Delivered { is_busy: true, ..delivered });
        };
        remove_leftovers(&folder);
        let names = entry_names(&folder);
        for name in &names {
            if until.is_some_and(|until| Instant::now() > until) {
                break;
            }
            let path = folder.join(name);
            // One that cannot be read stays in place; `doctor` counts it.
            let Some(entry) = read(&path) else { continue };
            match entry.send(connection, machine, now) {
                Ok((stream, seq)) => {
                    remove(&path)?;
                    delivered.sent += 1;
                    let last = delivered.changed.entry(stream).or_default();
                    *last = seq.max(*last);
                }
                Err(ClientError::Refused { status, code, message, .. }) if status != 401 => {
                    let refusal = EntryRefusal { code, message, at: now, is_told: false };
                    let entry = Entry { refusal: Some(refusal), ..entry };
                    self.set_aside(name, &entry)?;
                    delivered.refused.push((stem(name), entry));
                }
                Err(error) => {
                    delivered.problem = Some(error);
                    break;
                }
            }
        }
        delivered.left = entry_names(&folder).len();
        Ok(delivered)
    }

    fn lock_path(&self) -> PathBuf {
        self.own.join("outbox.lock")
    }

    /// Waits until no other process delivers, so that no entry is sent while it is moved or deleted.
    fn lock(&self) -> Result<Option<Lock>, OutboxError> {
        match Lock::exclusive(&self.lock_path()) {
            Ok(lock) => Ok(Some(lock)),
            // Without a folder there is no entry.
            Err(LockError::Io { source, .. }) if fs::is_absent(&source) => Ok(None),
            Err(LockError::Io { path, source }) => Err(io(&path)(source)),
            Err(LockError::Busy { path, .. }) => Err(io(&path)(std::io::ErrorKind::ResourceBusy.into())),
        }
    }

    /// Moves an entry to those that the server refused.
    fn set_aside(&self, name: &str, entry: &Entry) -> Result<(), OutboxError> {
        write(&self.undelivered().join(name), entry)?;
        remove(&self.folder().join(name))
    }

    /// Queues refused entries again: those with these names, or all. Returns how many were queued.
    pub fn retry(&self, names: &[String]) -> Result<usize, OutboxError> {
        let folder = self.undelivered();
        let _lock = self.lock()?;
        let mut queued = 0;
        for name in choose(&folder, names) {
            // One that cannot be read stays in place.
            let Some(entry) = read(&folder.join(&name)) else { continue };
            let target = self.folder().join(format!("{}.json", stem(&name)));
            write(&target, &Entry { refusal: None, ..entry })?;
            remove(&folder.join(&name))?;
            queued += 1;
        }
        Ok(queued)
    }

    /// Deletes entries with these names, waiting ones and refused ones, or without names all refused ones.
    /// Returns how many there were.
    pub fn discard(&self, names: &[String]) -> Result<usize, OutboxError> {
        let _lock = self.lock()?;
        let waiting = if names.is_empty() { Vec::new() } else { choose(&self.folder(), names) };
        let refused = choose(&self.undelivered(), names);
        waiting.iter().try_for_each(|name| remove(&self.folder().join(name)))?;
        refused.iter().try_for_each(|name| remove(&self.undelivered().join(name)))?;
        Ok(waiting.len() + refused.len())
    }

    /// Returns the refused entries that the user was not told of yet, and marks them as told. Returns none
    /// while another process delivers, retries or discards.
    pub fn take_untold(&self) -> Vec<(String, Entry)> {
        let folder = self.undelivered();
        let unmarked = || entry_names(&folder).into_iter().filter(|name| !is_told(name));
        if unmarked().next().is_none() {
            return Vec::new();
        }
        let Ok(Some(_lock)) = Lock::try_exclusive(&self.lock_path()) else { return Vec::new() };
        let mut untold = Vec::new();
        for name in unmarked() {
            let path = folder.join(&name);
            let Some(entry) = read(&path) else { continue };
            // If it cannot be marked, it is told again.
            let _ = std::fs::rename(&path, folder.join(format!("{}{TOLD}.json", stem(&name))));
            if entry.refusal.as_ref().is_some_and(|refusal| !refusal.is_told) {
                untold.push((stem(&name), entry));
            }
        }
        untold
    }
}

/// Returns the names of the entries in a folder, in the order of queueing.
fn entry_names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".json")).collect();
    names.sort();
    names
}

/// Returns the name of an entry without what its file says besides.
fn stem(name: &str) -> String {
    name.trim_end_matches(".json").trim_end_matches(TOLD).to_owned()
}

fn is_told(name: &str) -> bool {
    name.trim_end_matches(".json").ends_with(TOLD)
}

/// Returns the names of the files of entries in a folder, or all without names.
fn choose(folder: &Path, names: &[String]) -> Vec<String> {
    let is_chosen =
        |name: &String| names.is_empty() || names.iter().any(|wanted| stem(name).ends_with(wanted));
    entry_names(folder).into_iter().filter(is_chosen).collect()
}

fn read(path: &Path) -> Option<Entry> {
    let (bytes, _) = fs::read_regular(path, fs::MAX_FILE).ok()??;
    serde_json::from_slice(&bytes).ok()
}

fn write(path: &Path, entry: &Entry) -> Result<(), OutboxError> {
    let mut bytes = serde_json::to_vec(entry).map_err(|error| io(path)(error.into()))?;
    bytes.push(b'\n');
    fs::write_private(path, &bytes).map_err(io(path))
}

fn remove(path: &Path) -> Result<(), OutboxError> {
    match std::fs::remove_file(path) {
        Err(error) if !fs::is_absent(&error) => Err(io(path)(error)),
        _ => {
            path.parent().into_iter().for_each(fs::sync_dir);
            Ok(())
        }
    }
}

/// Removes the temporary files of processes that were killed.
fn remove_leftovers(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(fs::is_leftover) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests;
