//! Follows a journal without its lock. Reports every finished change with its sequence number and its files, also
//! across a checkpoint that starts a new journal file. Never writes and never waits for a lock.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::{Change, parse_header, parse_mark, parse_record};
use crate::fs::{self, FileSig};

/// An event that a followed journal reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JournalEvent {
    /// A change was applied. Paths are relative to the journal's root.
    Change { seq: u64, paths: Vec<String> },
    /// Changes up to this number are unknown; subscribers must read everything again.
    Gap { seq: u64 },
}

#[derive(Debug)]
pub struct JournalTail {
    path: PathBuf,
    open: Option<OpenFile>,
    /// The last sequence number that was reported or does not need to be.
    seq: u64,
    sig: Option<FileSig>,
    /// No file was opened yet. The changes before the first file are not a gap.
    is_first_file: bool,
}

#[derive(Debug)]
struct OpenFile {
    file: File,
    base: u64,
    offset: u64,
    /// A record without its mark.
    unfinished: Option<(u64, Vec<String>)>,
}

impl JournalTail {
    /// Follows the journal from its current end; existing changes are not reported.
    pub fn from_end(path: &Path) -> JournalTail {
        let mut tail = JournalTail::from_start(path);
        // On a read error, the changes are reported by a later poll.
        let _ = tail.poll();
        tail.is_first_file = false;
        tail
    }

    /// Follows the journal from its start; existing changes are reported.
    pub fn from_start(path: &Path) -> JournalTail {
        JournalTail { path: path.to_owned(), open: None, seq: 0, sig: None, is_first_file: true }
    }

    /// Returns the events since the last call.
    pub fn poll(&mut self) -> io::Result<Vec<JournalEvent>> {
        let sig = FileSig::of(&self.path)?;
        if sig == self.sig {
            return Ok(Vec::new());
        }
        let mut events = Vec::new();
        if let Some(fresh) = self.open_if_replaced()? {
            // The old file can still be read to its end after it was replaced.
            if let Some(mut old) = self.open.take() {
                self.read_events(&mut old, &mut events)?;
                // Recovery finishes the unfinished record and starts a new file.
                if let Some((seq, paths)) =
                    old.unfinished.filter(|(seq, _)| *seq <= fresh.base && *seq > self.seq)
                {
                    events.push(JournalEvent::Change { seq, paths });
                    self.seq = seq;
                }
            }
            // If the base is ahead, changes were missed. If it is behind, the old journal was deleted.
            if fresh.base != self.seq {
                if !self.is_first_file {
                    events.push(JournalEvent::Gap { seq: fresh.base });
                }
                self.seq = fresh.base;
            }
            self.is_first_file = false;
            self.open = Some(fresh);
        }
        if let Some(mut open) = self.open.take() {
            let result = self.read_events(&mut open, &mut events);
            self.open = Some(open);
            // Return the events known so far; the next poll tries the rest again.
            match result {
                Err(error) if events.is_empty() => return Err(error),
                Err(_) => return Ok(events),
                Ok(()) => {}
            }
        }
        self.sig = sig;
        Ok(events)
    }

    /// Opens the file at the path if it is not the file that is already open.
    fn open_if_replaced(&self) -> io::Result<Option<OpenFile>> {
        let mut file = match File::open(&self.path) {
            Err(error) if fs::is_absent(&error) => return Ok(None),
            other => other?,
        };
        let meta = file.metadata()?;
        let is_same = match &self.open {
            Some(open) => {
                let known = FileSig::from_metadata(&open.file.metadata()?);
                known.inode == FileSig::from_metadata(&meta).inode && meta.len() >= open.offset
            }
            None => false,
        };
        if is_same {
            return Ok(None);
        }
        let mut head = Vec::with_capacity(256);
        Read::take(&mut file, 256).read_to_end(&mut head)?;
        let Some(header) = super::first_line(&head).and_then(parse_header) else { return Ok(None) };
        Ok(Some(OpenFile { file, base: header.base, offset: 0, unfinished: None }))
    }

    fn read_events(&mut self, open: &mut OpenFile, events: &mut Vec<JournalEvent>) -> io::Result<()> {
        let mut bytes = Vec::new();
        open.file.seek(SeekFrom::Start(open.offset))?;
        open.file.read_to_end(&mut bytes)?;
        let complete_len = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        for line in bytes[..complete_len].split(|byte| *byte == b'\n') {
            if let Some(record) = parse_record(line) {
                open.unfinished = Some((record.seq, record.changes.iter().map(path_of).collect()));
            } else if let Some((kind, seq)) = parse_mark(line) {
                let unfinished = open.unfinished.take().filter(|(begun, _)| *begun == seq && seq > self.seq);
                if let Some((seq, paths)) = unfinished {
                    self.seq = seq;
                    // A voided record is reported as a change without paths, so that the numbers have no gaps.
                    let paths = if kind == b'A' { paths } else { Vec::new() };
                    events.push(JournalEvent::Change { seq, paths });
                }
            }
        }
        open.offset += complete_len as u64;
        Ok(())
    }
}

fn path_of(change: &Change) -> String {
    match change {
        Change::Write { path, .. } | Change::Move { from: path, .. } => path.clone(),
    }
}
