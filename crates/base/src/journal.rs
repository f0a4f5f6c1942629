//! The redo journal: one fsynced record makes a change of several files durable; renames then carry it out.
//!
//! A record is appended and synced, the files are replaced, a mark says so. Whoever opens a journal whose last record
//! has no mark finishes it ([`Journal::recover`]). The data files are not synced one by one, so after a restart of the
//! machine every record since the last checkpoint is looked at again.
//!
//! Recovery never overwrites what a person wrote: a file is replaced only if it is missing, empty, or exactly the
//! file that the change had seen. Anything else is kept, and our version is put beside it. A change that had been
//! carried out before the machine went down is only repeated where the disk shows that it got lost: a file or folder
//! that a person took away since then leaves a newer time on the folder around it, and stays away.
//!
//! The format is one line each: `H {header}`, `R crc {record}`, `A seq` (carried out), `V seq` (given up). The caller
//! holds the lock.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Millis;
use crate::fs::{self, Durability, FileSig};

mod apply;
mod tail;

pub use tail::{JournalEvent, JournalTail};

/// One file or folder to change. Paths are relative to the journal's root and use `/`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    Write { path: String, before: Option<ExpectedFile>, text: String },
    Move { from: String, to: String },
}

/// What a file was when the change was decided; `None` in its place means that there was no file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpectedFile {
    pub sig: FileSig,
    pub md5: String,
}

impl ExpectedFile {
    pub fn of(sig: FileSig, bytes: &[u8]) -> ExpectedFile {
        ExpectedFile { sig, md5: crate::hash::md5_hex(bytes) }
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Record {
    seq: u64,
    time: Millis,
    changes: Vec<Change>,
    /// When the folder around each change had last been changed, in the order of the changes.
    #[serde(default)]
    folders: Vec<i64>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Header {
    version: u32,
    /// The sequence number of the last change before this file began.
    base: u64,
    boot: String,
}

/// What recovery did, for the log and for the person.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Files it brought to the state that was promised.
    pub written: Vec<String>,
    /// Files that a person had changed meanwhile: left alone, our version saved under the given name.
    pub kept: Vec<(String, PathBuf)>,
    /// The journal itself was damaged here; the rest of it is saved under the given name.
    pub damaged: Option<PathBuf>,
}

impl Recovery {
    pub fn is_empty(&self) -> bool {
        *self == Recovery::default()
    }
}

/// What became of a record that is durable.
#[derive(Debug)]
pub struct Applied {
    /// What each written file is now, in the order of the changes.
    pub sigs: Vec<Option<FileSig>>,
    /// Files that a person saved in the very moment: theirs stands, ours is under the given name.
    pub kept: Vec<(String, PathBuf)>,
    /// Something could not be done yet; whoever opens the journal next finishes it.
    pub is_unfinished: bool,
}

/// Somebody changed a file between our look at it and our write.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    #[error("{path} was changed by somebody else in the same moment")]
    Conflict { path: String },
    #[error("{path}: {source}", path = path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// The folders a journal works in.
#[derive(Clone, Debug)]
pub struct JournalPaths {
    /// What paths in records are relative to.
    pub root: PathBuf,
    /// Scratch space on the same file system, for the holder of the lock alone, who empties it first.
    pub temp: PathBuf,
    /// Where our version of a file goes that a person changed meanwhile.
    pub kept: PathBuf,
    /// Which changes can be ours at all. A journal may come with a cloned repository, so a record that names any other
    /// place is not carried out.
    pub allows: fn(&Change) -> bool,
}

#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    places: JournalPaths,
    seq: u64,
    len: u64,
    /// Something may be unfinished: the tail has no mark, or the machine was restarted.
    dirty: bool,
}

/// Past this size a checkpoint makes the data files durable and starts a new file.
const CHECKPOINT_BYTES: u64 = 4 << 20;

impl Journal {
    /// Writes an empty journal whose next change has the number `base + 1`.
    pub fn create(path: &Path, temp: &Path, base: u64) -> io::Result<()> {
        let header = Header { version: 1, base, boot: crate::clock::boot_id().to_owned() };
        let line = format!("H {}\n", serde_json::to_string(&header)?);
        fs::write_atomic(path, line.as_bytes(), temp, Durability::Synced).map(|_| ())
    }

    /// Opens the journal, creating it if it is missing; `fallback_base` is the last number anybody remembers.
    pub fn open(path: &Path, places: JournalPaths, fallback_base: u64) -> io::Result<Journal> {
        let options = || OpenOptions::new().read(true).append(true).open(path);
        let mut file = match options() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Journal::create(path, &places.temp, fallback_base)?;
                options()?
            }
            other => other?,
        };
        let len = file.metadata()?.len();
        let (head, tail) = ends(&mut file, len)?;
        let same_boot = first_line(&head)
            .and_then(parse_header)
            .is_some_and(|header| header.boot == crate::clock::boot_id());
        let seq = if same_boot { last_mark(&tail) } else { None };
        let (seq, dirty) = match (seq, same_boot && head.len() as u64 == len) {
            (Some(seq), _) => (seq, false),
            (None, true) => match only_header(&head) {
                Some(base) => (base, false),
                None => (fallback_base, true),
            },
            (None, false) => (fallback_base, true),
        };
        Ok(Journal { file, path: path.to_owned(), places, seq, len, dirty })
    }

    /// The number of the last change.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Whether [`Journal::recover`] has anything to look at.
    pub fn needs_recovery(&self) -> bool {
        self.dirty
    }

    /// Makes a change durable, then carries it out. On `Conflict` nothing has changed and the caller decides anew.
    ///
    /// The caller brings its index up to date and then calls [`Journal::mark_applied`]; until then a crash means
    /// recovery.
    pub fn commit(&mut self, changes: Vec<Change>, now: Millis) -> Result<Applied, CommitError> {
        apply::check(&self.places, &changes)?;
        if self.len > CHECKPOINT_BYTES {
            self.checkpoint().map_err(|source| CommitError::Io { path: self.path.clone(), source })?;
        }
        let folders = changes.iter().map(|change| apply::folder_time(&self.places, change)).collect();
        let record = Record { seq: self.seq + 1, time: now, changes, folders };
        self.append_record(&record).map_err(|source| CommitError::Io { path: self.path.clone(), source })?;
        self.seq = record.seq;
        // From here the record is durable. What stops it before anything is touched voids it; later, it is a fact that
        // only has to be finished.
        let applied = match apply::check(&self.places, &record.changes) {
            Ok(()) => apply::apply(&self.places, &record.changes),
            Err(conflict) => Err(conflict),
        };
        if applied.is_err() {
            self.void().map_err(|source| CommitError::Io { path: self.path.clone(), source })?;
        }
        applied
    }

    /// Takes the last record back. Synced, because nobody looks at a record again to find out that it was refused.
    fn void(&mut self) -> io::Result<()> {
        self.mark(b'V')?;
        self.file.sync_data()
    }

    /// Says that the files and whatever is derived from them are as the last record wants them.
    pub fn mark_applied(&mut self) -> io::Result<()> {
        self.mark(b'A')
    }

    /// Finishes what a dead process or a dead machine left unfinished. The caller refreshes its index, then calls
    /// [`Journal::checkpoint`].
    pub fn recover(&mut self) -> io::Result<Recovery> {
        let mut recovery = Recovery::default();
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(0))?;
        self.file.read_to_end(&mut bytes)?;
        let journal = parse(&bytes, self.places.allows);
        if let Some(from) = journal.damaged_at {
            let aside = self.places.kept.join(format!("journal-{}", crate::id::random(6)));
            std::fs::create_dir_all(&self.places.kept)?;
            fs::write_new(&aside, &bytes[from..], Durability::Synced)?;
            recovery.damaged = Some(aside);
        }
        let same_boot = journal.boot.as_deref() == Some(crate::clock::boot_id());
        let open: Vec<(&Record, bool)> = journal
            .records
            .iter()
            .filter(|(_, mark)| match mark {
                Some(b'V') => false,
                // Within one boot the page cache has what was renamed; after a restart it may be gone.
                Some(_) => !same_boot,
                None => true,
            })
            .map(|(record, mark)| (record, mark.is_some()))
            .collect();
        apply::redo(&self.places, &fold(&open), &mut recovery)?;
        self.seq = self.seq.max(journal.last_seq);
        Ok(recovery)
    }

    /// Makes the data files durable and starts the journal afresh, keeping the numbering.
    pub fn checkpoint(&mut self) -> io::Result<()> {
        fs::sync_file_system(&self.file)?;
        Journal::create(&self.path, &self.places.temp, self.seq)?;
        self.file = OpenOptions::new().read(true).append(true).open(&self.path)?;
        self.len = self.file.metadata()?.len();
        self.dirty = false;
        Ok(())
    }

    fn append_record(&mut self, record: &Record) -> io::Result<()> {
        let json = serde_json::to_string(record)?;
        let line = format!("R {:08x} {json}\n", crc32fast::hash(json.as_bytes()));
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            // A full disk may have taken half a line: nothing was promised, so nothing may stay.
            let _ = self.file.set_len(self.len);
            return Err(error);
        }
        self.len += line.len() as u64;
        Ok(())
    }

    /// Not synced: a record without its mark is only looked at again.
    fn mark(&mut self, kind: u8) -> io::Result<()> {
        let line = format!("{} {}\n", char::from(kind), self.seq);
        self.file.write_all(line.as_bytes())?;
        self.len += line.len() as u64;
        Ok(())
    }
}

/// The first and the last bytes: enough to tell a clean journal without reading it.
fn ends(file: &mut File, len: u64) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let mut head = Vec::with_capacity(256);
    file.seek(SeekFrom::Start(0))?;
    Read::take(&mut *file, 256).read_to_end(&mut head)?;
    let mut tail = Vec::with_capacity(32);
    file.seek(SeekFrom::Start(len.saturating_sub(32)))?;
    Read::take(&mut *file, 32).read_to_end(&mut tail)?;
    Ok((head, tail))
}

fn first_line(bytes: &[u8]) -> Option<&[u8]> {
    bytes.iter().position(|b| *b == b'\n').map(|end| &bytes[..end])
}

fn parse_header(line: &[u8]) -> Option<Header> {
    serde_json::from_slice(line.strip_prefix(b"H ")?).ok()
}

fn only_header(head: &[u8]) -> Option<u64> {
    let line = first_line(head)?;
    (line.len() + 1 == head.len()).then(|| parse_header(line)).flatten().map(|header| header.base)
}

/// `…\nA 17\n` at the very end.
fn last_mark(tail: &[u8]) -> Option<u64> {
    let text = tail.strip_suffix(b"\n")?;
    let start = text.iter().rposition(|b| *b == b'\n')? + 1;
    parse_mark(&text[start..]).map(|(_, seq)| seq)
}

fn parse_mark(line: &[u8]) -> Option<(u8, u64)> {
    let (kind, rest) = line.split_first()?;
    if !matches!(kind, b'A' | b'V') {
        return None;
    }
    let seq = std::str::from_utf8(rest.strip_prefix(b" ")?).ok()?.parse().ok()?;
    Some((*kind, seq))
}

fn parse_record(line: &[u8]) -> Option<Record> {
    let rest = line.strip_prefix(b"R ")?;
    let (crc, json) = rest.split_at_checked(8)?;
    let json = json.strip_prefix(b" ")?;
    let crc = u32::from_str_radix(std::str::from_utf8(crc).ok()?, 16).ok()?;
    (crc == crc32fast::hash(json)).then(|| serde_json::from_slice(json).ok()).flatten()
}

#[derive(Default)]
struct Parsed {
    boot: Option<String>,
    records: Vec<(Record, Option<u8>)>,
    last_seq: u64,
    /// A bad line that is not just the torn end of the file: the rest cannot be trusted to be in order.
    damaged_at: Option<usize>,
}

fn parse(bytes: &[u8], allows: fn(&Change) -> bool) -> Parsed {
    let mut parsed = Parsed::default();
    let mut at = 0;
    while at < bytes.len() {
        // Without its line end a line is torn: its change was never acknowledged.
        let Some(end) = bytes[at..].iter().position(|b| *b == b'\n') else { break };
        let line = &bytes[at..at + end];
        if let Some(header) = parse_header(line) {
            parsed.last_seq = header.base;
            parsed.boot = Some(header.boot);
        } else if let Some((kind, seq)) = parse_mark(line) {
            for (record, mark) in parsed.records.iter_mut().rev() {
                if record.seq == seq {
                    *mark = Some(kind);
                    break;
                }
            }
        } else if let Some(record) = parse_record(line).filter(|record| record.changes.iter().all(allows)) {
            parsed.last_seq = parsed.last_seq.max(record.seq);
            parsed.records.push((record, None));
        } else {
            parsed.damaged_at = Some(at);
            break;
        }
        at += end + 1;
    }
    parsed
}

/// What is to be there in the end, with every state on the way that counts as "still as before".
struct Goal<'a> {
    text: &'a str,
    befores: Vec<Option<&'a ExpectedFile>>,
    trace: Trace,
}

/// What tells a change that got lost from one that a person undid.
#[derive(Clone, Copy)]
struct Trace {
    /// It had been carried out.
    was_applied: bool,
    /// When the folder around it had last been changed before that.
    folder: i64,
}

struct Removal<'a> {
    from: &'a str,
    to: &'a str,
    trace: Trace,
}

#[derive(Default)]
struct Goals<'a> {
    writes: BTreeMap<&'a str, Goal<'a>>,
    moves: Vec<Removal<'a>>,
}

fn fold<'a>(records: &[(&'a Record, bool)]) -> Goals<'a> {
    let mut goals = Goals::default();
    for (record, was_applied) in records {
        for (n, change) in record.changes.iter().enumerate() {
            let trace = Trace {
                was_applied: *was_applied,
                folder: record.folders.get(n).copied().unwrap_or(i64::MAX),
            };
            match change {
                Change::Write { path, before, text } => {
                    // Written again after it had been moved away: somebody brought it back.
                    goals.moves.retain(|removal| !is_below(path, removal.from));
                    let goal = goals.writes.entry(path).or_insert(Goal { text, befores: Vec::new(), trace });
                    (goal.text, goal.trace) = (text, trace);
                    goal.befores.push(before.as_ref());
                }
                Change::Move { from, to } => {
                    goals.writes.retain(|path, _| !is_below(path, from));
                    goals.moves.push(Removal { from, to, trace });
                }
            }
        }
    }
    goals
}

fn is_below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests;
