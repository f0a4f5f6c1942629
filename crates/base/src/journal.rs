//! The redo journal: one fsynced record makes a change of several files durable; renames then apply it.
//!
//! A commit appends and syncs a record, replaces the files, and appends a mark. If the last record has no mark,
//! the next process that opens the journal finishes it ([`Journal::recover`]). Data files are not synced one by
//! one, so after a restart of the machine every record since the last checkpoint is checked again.
//!
//! Invariant: recovery never overwrites what a person wrote. A file is replaced only if it is missing, empty,
//! the beginning of a new file, or exactly the file that the change was based on. Any other file stays, and
//! our version is saved as a kept copy. A change that was applied before the machine went down is repeated
//! only if the disk shows that it was lost: if a person removed a file or folder since then, the parent
//! folder has a newer modification time, and the removal stands.
//!
//! The format is one entry per line: `H {header}`, `R crc {record}`, `A seq` (applied), `V seq` (voided). The
//! caller holds the lock.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use crate::Millis;
use crate::fs::{self, Durability, FileSig};

mod apply;
mod tail;

pub use tail::{JournalEvent, JournalTail};

/// A change of one file or folder. Paths are relative to the journal's root and use `/`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    Write { path: String, before: Option<ExpectedFile>, text: String },
    Move { from: String, to: String },
}

impl Change {
    fn is_replacement(&self) -> bool {
        matches!(self, Change::Write { before: Some(_), .. })
    }
}

/// The file that a change was based on. `None` in place of this type means that there was no file.
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
struct JournalRecord {
    seq: u64,
    time: Millis,
    changes: Vec<Change>,
    /// Modification time of the parent folder of each change, in the order of the changes.
    #[serde(default)]
    folders: Vec<i64>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Header {
    version: u64,
    /// The sequence number of the last change before this journal file.
    base: u64,
    boot: String,
}

/// What recovery did, for the log and for the user.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Files that recovery brought to their committed state.
    pub written: Vec<String>,
    /// Files that a person had changed meanwhile, each with the path of our kept copy. The person's file stays.
    pub kept: Vec<(String, PathBuf)>,
    /// Files that two programs wrote at the same time, each with the path where the older version is kept.
    pub displaced: Vec<(String, PathBuf)>,
    /// Path of the saved rest of the journal, if the journal itself was damaged.
    pub damaged: Option<PathBuf>,
}

impl Recovery {
    pub fn is_empty(&self) -> bool {
        *self == Recovery::default()
    }
}

/// The result of a commit whose record is durable.
#[derive(Debug)]
pub struct CommitResult {
    /// The new signature of each written file, in the order of the changes.
    pub sigs: Vec<Option<FileSig>>,
    /// Files that a person saved during the commit, each with the path of our kept copy. The person's file stays.
    pub kept: Vec<(String, PathBuf)>,
    /// A change could not be applied yet; the next process that opens the journal finishes it.
    pub is_unfinished: bool,
}

/// Why a change was not committed.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    #[error("{path} was changed by another program at the same time")]
    Conflict { path: String },
    #[error("{path}: {source}", path = path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// The folders of a journal, and which changes it may contain.
#[derive(Clone, Debug)]
pub struct JournalPaths {
    /// The folder that paths in records are relative to.
    pub root: PathBuf,
    /// Folder for temporary files on the same file system. Only the holder of the lock uses it, and empties it
    /// first ([`JournalPaths::clear_temp`]).
    pub temp: PathBuf,
    /// Folder for kept copies, on the same file system.
    pub kept: PathBuf,
    /// Returns whether a change is allowed. A journal may come with a cloned repository, so a record that names
    /// any other path is not applied.
    pub allows: fn(&Change) -> bool,
}

#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    paths: JournalPaths,
    seq: u64,
    len: u64,
    /// A change may be unfinished: the last record has no mark, or the machine was restarted.
    needs_recovery: bool,
}

/// The version of the format. A journal of a newer version is refused: this program cannot tell what it leaves undone.
const VERSION: u64 = 1;

/// The number of bytes in which the header is looked for. Ours is much shorter, that of a newer version may not be.
const HEAD_BYTES: usize = 1024;

/// Beyond this size, a checkpoint makes the data files durable and starts a new journal file.
const CHECKPOINT_BYTES: u64 = 4 << 20;

impl Journal {
    /// Writes an empty journal whose next change has the number `base + 1`.
    pub fn create(path: &Path, temp: &Path, base: u64) -> io::Result<()> {
        let header = Header { version: VERSION, base, boot: crate::clock::boot_id().to_owned() };
        let line = format!("H {}\n", serde_json::to_string(&header)?);
        fs::replace_private(path, line.as_bytes(), temp, Durability::Synced)
    }

    /// Like [`Journal::create`], for files that were written elsewhere. The time of a journal is that of the last change,
    /// and this one knows of none.
    pub fn create_for_present_files(path: &Path, temp: &Path, base: u64) -> io::Result<()> {
        Journal::create(path, temp, base)?;
        let _ = open_file(path).and_then(|file| file.set_modified(UNIX_EPOCH));
        Ok(())
    }

    /// Creates a journal where there is none and opens it. `base` is the last known sequence number.
    pub fn create_new(path: &Path, paths: JournalPaths, base: u64) -> io::Result<Journal> {
        Journal::create_for_present_files(path, &paths.temp, base)?;
        Journal::open_existing(path, paths)?.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Opens the journal if there is one. Writes nothing. Refuses a journal that is not a file of this user
    /// alone, because recovery copies what it cannot read, and a journal of a newer version.
    pub fn open_existing(path: &Path, paths: JournalPaths) -> io::Result<Option<Journal>> {
        let mut file = match open_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        let len = file.metadata()?.len();
        let seq = seq_if_clean(&mut file, len)?;
        let (needs_recovery, seq) = (seq.is_none(), seq.unwrap_or(0));
        Ok(Some(Journal { file, path: path.to_owned(), paths, seq, len, needs_recovery }))
    }

    /// Returns the sequence number of the last change, or `None` if there is no journal or it needs recovery. Writes
    /// nothing.
    pub fn read_seq_if_clean(path: &Path) -> io::Result<Option<u64>> {
        match fs::open_regular(path, OpenOptions::new().read(true)) {
            Err(error) if fs::is_absent(&error) => Ok(None),
            opened => {
                let (mut file, meta) = opened?;
                seq_if_clean(&mut file, meta.len())
            }
        }
    }

    /// Returns the sequence number of the last change.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Returns whether the caller must call [`Journal::recover`].
    pub fn needs_recovery(&self) -> bool {
        self.needs_recovery
    }

    /// Makes a change durable, then applies it. On `Conflict` nothing has changed, and the caller may decide
    /// again.
    ///
    /// The caller then updates its index and calls [`Journal::mark_applied`]. A crash before that call leads to
    /// recovery.
    pub fn commit(&mut self, changes: Vec<Change>, now: Millis) -> Result<CommitResult, CommitError> {
        // A file to create is only looked for after the record is durable: creating it never replaces another one.
        apply::check(&self.paths, changes.iter().filter(|change| change.is_replacement()))?;
        if self.len > CHECKPOINT_BYTES || self.seq == u64::MAX {
            // After the last number, which only a damaged or forged journal has, the numbers start again.
            self.seq = if self.seq == u64::MAX { 0 } else { self.seq };
            self.checkpoint().map_err(|source| CommitError::Io { path: self.path.clone(), source })?;
        }
        let folders = apply::top_folder_mtimes(&self.paths, &changes);
        let record = JournalRecord { seq: self.seq + 1, time: now, changes, folders };
        self.append_record(&record).map_err(|source| CommitError::Io { path: self.path.clone(), source })?;
        self.seq = record.seq;
        // From here the record is durable. A failure before the first file is touched voids it. After that it
        // counts as committed, and recovery finishes it.
        let applied = match apply::check(&self.paths, &record.changes) {
            Ok(()) => apply::apply(&self.paths, &record.changes),
            Err(conflict) => Err(conflict),
        };
        if applied.is_err() {
            self.void_last_record().map_err(|source| CommitError::Io { path: self.path.clone(), source })?;
        }
        applied
    }

    /// Counts on from `seq`, for a copy whose changes are numbered elsewhere. The next change has the number `seq + 1`.
    pub fn skip_to(&mut self, seq: u64) {
        self.seq = self.seq.max(seq);
    }

    /// Voids the last record. Synced, because recovery would otherwise apply a change that the caller was told
    /// had failed.
    fn void_last_record(&mut self) -> io::Result<()> {
        self.append_mark(b'V')?;
        self.file.sync_data()
    }

    /// Marks the last record as applied: the files and all data derived from them reflect it.
    pub fn mark_applied(&mut self) -> io::Result<()> {
        self.append_mark(b'A')
    }

    /// Finishes the changes that a killed process or a crashed machine left behind. The caller then refreshes
    /// its index and calls [`Journal::checkpoint`]. `known_seq` is the sequence number in the index, for a
    /// journal that lost its own.
    pub fn recover(&mut self, known_seq: u64) -> io::Result<Recovery> {
        let mut recovery = Recovery::default();
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(0))?;
        self.file.read_to_end(&mut bytes)?;
        let journal = parse(&bytes, self.paths.allows)?;
        if let Some(from) = journal.damaged_at {
            recovery.damaged = Some(apply::keep_copy(&self.paths, "journal", &bytes[from..])?);
        }
        let same_boot = journal.boot.as_deref() == Some(crate::clock::boot_id());
        let open: Vec<(&JournalRecord, bool)> = journal
            .records
            .iter()
            .filter(|(_, mark)| match mark {
                Some(b'V') => false,
                // Within one boot the page cache has every renamed file; after a restart a rename may be lost.
                Some(_) => !same_boot,
                None => true,
            })
            .map(|(record, mark)| (record, mark.is_some()))
            .collect();
        apply::redo_targets(&self.paths, &fold_records(&open), &mut recovery)?;
        self.seq = known_seq.max(journal.last_seq);
        Ok(recovery)
    }

    /// Makes the data files durable and starts a new journal file that continues the numbering.
    pub fn checkpoint(&mut self) -> io::Result<()> {
        fs::sync_file_system(&self.file)?;
        let changed_at = self.file.metadata()?.modified()?;
        Journal::create(&self.path, &self.paths.temp, self.seq)?;
        self.file = open_file(&self.path)?;
        // The time of the file is that of the last change.
        let _ = self.file.set_modified(changed_at);
        self.len = self.file.metadata()?.len();
        self.needs_recovery = false;
        Ok(())
    }

    fn append_record(&mut self, record: &JournalRecord) -> io::Result<()> {
        let json = serde_json::to_string(record)?;
        let line = format!("R {:08x} {json}\n", crc32fast::hash(json.as_bytes()));
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            // A full disk may have written half a line. The record was not committed, so no part of it may
            // remain.
            let _ = self.file.set_len(self.len);
            return Err(error);
        }
        self.len += line.len() as u64;
        Ok(())
    }

    /// Appends a mark. Not synced: a record without its mark is only checked again.
    fn append_mark(&mut self, kind: u8) -> io::Result<()> {
        let line = format!("{} {}\n", char::from(kind), self.seq);
        self.file.write_all(line.as_bytes())?;
        self.len += line.len() as u64;
        Ok(())
    }
}

fn open_file(path: &Path) -> io::Result<File> {
    fs::open_own(path, OpenOptions::new().read(true).append(true))
}

/// Returns the sequence number of the last change if the journal is of this boot and the change is finished.
fn seq_if_clean(file: &mut File, len: u64) -> io::Result<Option<u64>> {
    let (head, tail) = read_head_and_tail(file, len)?;
    check_version(first_line(&head).unwrap_or_default())?;
    let header = first_line(&head).and_then(parse_header);
    if header.is_none_or(|header| header.boot != crate::clock::boot_id()) {
        return Ok(None);
    }
    let base = if head.len() as u64 == len { header_only_base(&head) } else { None };
    Ok(last_mark(&tail).or(base))
}

/// Returns the first and the last bytes, which are enough to recognise a clean journal without reading all of it.
fn read_head_and_tail(file: &mut File, len: u64) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let mut head = Vec::with_capacity(HEAD_BYTES);
    file.seek(SeekFrom::Start(0))?;
    Read::take(&mut *file, HEAD_BYTES as u64).read_to_end(&mut head)?;
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

/// Refuses the header of a journal that a newer program wrote.
fn check_version(line: &[u8]) -> io::Result<()> {
    #[derive(Deserialize)]
    struct VersionOnly {
        version: u64,
    }
    let header = line.strip_prefix(b"H ").and_then(|json| serde_json::from_slice::<VersionOnly>(json).ok());
    match header {
        Some(VersionOnly { version }) if version > VERSION => Err(fs::refuse(
            format!("重做日志的版本 {version} 比支持的 {VERSION} 新；请升级 tanmi"),
            format!("journal version {version} is newer than the supported {VERSION}; upgrade tanmi"),
        )),
        _ => Ok(()),
    }
}

fn header_only_base(head: &[u8]) -> Option<u64> {
    let line = first_line(head)?;
    (line.len() + 1 == head.len()).then(|| parse_header(line)).flatten().map(|header| header.base)
}

/// Returns the sequence number of a mark (`…\nA 17\n`) at the end of the journal.
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

fn parse_record(line: &[u8]) -> Option<JournalRecord> {
    let rest = line.strip_prefix(b"R ")?;
    let (crc, json) = rest.split_at_checked(8)?;
    let json = json.strip_prefix(b" ")?;
    let crc = u32::from_str_radix(std::str::from_utf8(crc).ok()?, 16).ok()?;
    (crc == crc32fast::hash(json)).then(|| serde_json::from_slice(json).ok()).flatten()
}

#[derive(Default)]
struct Parsed {
    boot: Option<String>,
    records: Vec<(JournalRecord, Option<u8>)>,
    last_seq: u64,
    /// Offset of a bad line that is not just the torn end of the file. The lines after it cannot be trusted to be
    /// in order.
    damaged_at: Option<usize>,
}

fn parse(bytes: &[u8], allows: fn(&Change) -> bool) -> io::Result<Parsed> {
    check_version(first_line(bytes).unwrap_or_default())?;
    let mut parsed = Parsed::default();
    let mut at = 0;
    while at < bytes.len() {
        // A line without its line end is torn: its change was never acknowledged.
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
    Ok(parsed)
}

/// The final content of a file, with every earlier file that counts as unchanged by other programs.
struct WriteTarget<'a> {
    text: &'a str,
    befores: Vec<Option<&'a ExpectedFile>>,
    trace: Trace,
}

impl WriteTarget<'_> {
    /// Returns whether a file is the beginning of a new file that a killed process was writing. It has no
    /// text of a person.
    fn is_begun(&self, found: &[u8]) -> bool {
        let is_new = self.befores.last().is_some_and(Option::is_none);
        is_new && !self.trace.was_applied && self.text.as_bytes().starts_with(found)
    }
}

/// Distinguishes a lost change from one that a person undid.
#[derive(Clone, Copy)]
struct Trace {
    /// The change had been applied before.
    was_applied: bool,
    /// Modification time of the parent folder before the change.
    folder: i64,
}

struct MoveTarget<'a> {
    from: &'a str,
    to: &'a str,
    trace: Trace,
}

#[derive(Default)]
struct RedoTargets<'a> {
    writes: BTreeMap<&'a str, WriteTarget<'a>>,
    moves: Vec<MoveTarget<'a>>,
}

fn fold_records<'a>(records: &[(&'a JournalRecord, bool)]) -> RedoTargets<'a> {
    let mut targets = RedoTargets::default();
    for (record, was_applied) in records {
        for (n, change) in record.changes.iter().enumerate() {
            let trace = Trace {
                was_applied: *was_applied,
                folder: record.folders.get(n).copied().unwrap_or(i64::MAX),
            };
            match change {
                Change::Write { path, before, text } => {
                    // A file written again after its folder was moved cancels the move: the folder was restored.
                    targets.moves.retain(|moved| !is_below(path, moved.from));
                    let target = targets.writes.entry(path).or_insert(WriteTarget {
                        text,
                        befores: Vec::new(),
                        trace,
                    });
                    (target.text, target.trace) = (text, trace);
                    target.befores.push(before.as_ref());
                }
                Change::Move { from, to } => {
                    targets.writes.retain(|path, _| !is_below(path, from));
                    targets.moves.push(MoveTarget { from, to, trace });
                }
            }
        }
    }
    targets
}

fn is_below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests;
