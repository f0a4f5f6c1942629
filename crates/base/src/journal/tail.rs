//! Follows a journal without its lock. Reports every finished change with its sequence number and its files, also
//! across a checkpoint that starts a new journal file. Never writes and never waits for a lock.

use std::fs::{File, OpenOptions};
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
    /// The last sequence number that was reported or does not need to be. `None`: the position is that of the first
    /// file.
    seq: Option<u64>,
    sig: Option<FileSig>,
    /// The subscriber continues from `seq`, and no file was opened yet to find that position in.
    is_resuming: bool,
}

#[derive(Debug)]
struct OpenFile {
    file: File,
    base: u64,
    /// The highest sequence number in the file.
    last: u64,
    offset: u64,
    /// A record without its mark.
    unfinished: Option<(u64, Vec<String>)>,
}

impl JournalTail {
    /// Follows the journal from its current end; existing changes are not reported.
    pub fn from_end(path: &Path) -> JournalTail {
        let mut tail =
            JournalTail { path: path.to_owned(), open: None, seq: None, sig: None, is_resuming: false };
        // On a read error, the changes are reported by a later poll.
        let _ = tail.poll();
        tail.seq.get_or_insert(0);
        tail
    }

    /// Follows the journal from the change after `seq`; 0 means from the first change. If the journal does not contain
    /// that position, the first event is a gap.
    pub fn after(path: &Path, seq: u64) -> JournalTail {
        JournalTail { path: path.to_owned(), open: None, seq: Some(seq), sig: None, is_resuming: true }
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
                    old.unfinished.filter(|(seq, _)| *seq <= fresh.base && Some(*seq) > self.seq)
                {
                    events.push(JournalEvent::Change { seq, paths });
                    self.seq = Some(seq);
                }
            }
            // If the base is ahead, changes were missed. If it is behind, the old journal was deleted, or the position
            // of a new subscriber is further down in this file.
            let base = fresh.base;
            let is_gap = self.seq.is_some_and(|seq| base > seq || (base < seq && !self.is_resuming));
            if is_gap {
                events.push(JournalEvent::Gap { seq: base });
            }
            if is_gap || self.seq.is_none() {
                self.seq = Some(base);
            }
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
            self.check_position(&mut events);
        }
        self.sig = sig;
        Ok(events)
    }

    /// Reports a gap if the position of a new subscriber is behind the end of the first file, because the numbers of a
    /// new journal started again.
    fn check_position(&mut self, events: &mut Vec<JournalEvent>) {
        let last = self.open.as_ref().map(|open| open.last);
        if std::mem::take(&mut self.is_resuming) && last < self.seq {
            events.extend(last.map(|seq| JournalEvent::Gap { seq }));
            self.seq = last;
        }
    }

    /// Opens the file at the path if it is not the file that is already open.
    fn open_if_replaced(&self) -> io::Result<Option<OpenFile>> {
        let (mut file, meta) = match fs::open_regular(&self.path, OpenOptions::new().read(true)) {
            Err(error) if fs::is_absent(&error) => return Ok(None),
            other => other?,
        };
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
        let mut head = Vec::with_capacity(super::HEAD_BYTES);
        Read::take(&mut file, super::HEAD_BYTES as u64).read_to_end(&mut head)?;
        let line = super::first_line(&head).unwrap_or_default();
        super::check_version(line)?;
        let Some(header) = parse_header(line) else { return Ok(None) };
        Ok(Some(OpenFile { file, base: header.base, last: header.base, offset: 0, unfinished: None }))
    }

    fn read_events(&mut self, open: &mut OpenFile, events: &mut Vec<JournalEvent>) -> io::Result<()> {
        let mut bytes = Vec::new();
        open.file.seek(SeekFrom::Start(open.offset))?;
        open.file.read_to_end(&mut bytes)?;
        let complete_len = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        for line in bytes[..complete_len].split(|byte| *byte == b'\n') {
            if let Some(record) = parse_record(line) {
                open.last = open.last.max(record.seq);
                open.unfinished = Some((record.seq, record.changes.iter().map(path_of).collect()));
            } else if let Some((kind, seq)) = parse_mark(line) {
                let unfinished =
                    open.unfinished.take().filter(|(begun, _)| *begun == seq && Some(seq) > self.seq);
                if let Some((seq, paths)) = unfinished {
                    self.seq = Some(seq);
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
