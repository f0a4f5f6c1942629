//! Following a journal without its lock: every finished change with its number and the files it touched, also past a
//! checkpoint that starts the file anew. Nothing is written and nobody waits.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::{Change, parse_header, parse_mark, parse_record};
use crate::fs::{self, FileSig};

/// What a journal tells whoever follows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JournalEvent {
    /// A change is done. Paths are relative to the journal's root.
    Change { seq: u64, paths: Vec<String> },
    /// Changes up to this number happened unseen: whoever shows the place looks at all of it again.
    Gap { seq: u64 },
}

#[derive(Debug)]
pub struct JournalTail {
    path: PathBuf,
    open: Option<Open>,
    /// The last number that was told or is known to need no telling.
    seq: u64,
    sig: Option<FileSig>,
    /// Whatever the first file begins with is no gap.
    is_new: bool,
}

#[derive(Debug)]
struct Open {
    file: File,
    base: u64,
    offset: u64,
    /// A record without its mark.
    begun: Option<(u64, Vec<String>)>,
}

impl JournalTail {
    /// Follows from here on; what is already there is not told.
    pub fn from_end(path: &Path) -> JournalTail {
        let mut tail = JournalTail::from_start(path);
        // What cannot be read yet is told when it can be.
        let _ = tail.poll();
        tail.is_new = false;
        tail
    }

    /// Tells also what the file holds already.
    pub fn from_start(path: &Path) -> JournalTail {
        JournalTail { path: path.to_owned(), open: None, seq: 0, sig: None, is_new: true }
    }

    /// What was finished since the last time.
    pub fn poll(&mut self) -> io::Result<Vec<JournalEvent>> {
        let sig = FileSig::of(&self.path)?;
        if sig == self.sig {
            return Ok(Vec::new());
        }
        let mut told = Vec::new();
        if let Some(fresh) = self.replaced()? {
            // The old file can still be read to its end, whatever stands in its place.
            if let Some(mut old) = self.open.take() {
                self.drain(&mut old, &mut told)?;
                // Whoever recovers finishes what was begun, and starts a new file.
                if let Some((seq, paths)) = old.begun.filter(|(seq, _)| *seq <= fresh.base && *seq > self.seq)
                {
                    told.push(JournalEvent::Change { seq, paths });
                    self.seq = seq;
                }
            }
            // Ahead: something happened unseen. Behind: somebody threw the old numbers away.
            if fresh.base != self.seq {
                if !self.is_new {
                    told.push(JournalEvent::Gap { seq: fresh.base });
                }
                self.seq = fresh.base;
            }
            self.is_new = false;
            self.open = Some(fresh);
        }
        if let Some(mut open) = self.open.take() {
            let drained = self.drain(&mut open, &mut told);
            self.open = Some(open);
            // What is known by now is told; the rest is tried again.
            match drained {
                Err(error) if told.is_empty() => return Err(error),
                Err(_) => return Ok(told),
                Ok(()) => {}
            }
        }
        self.sig = sig;
        Ok(told)
    }

    /// The file at the path, if it is another one than the one that is open.
    fn replaced(&self) -> io::Result<Option<Open>> {
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
        Ok(Some(Open { file, base: header.base, offset: 0, begun: None }))
    }

    fn drain(&mut self, open: &mut Open, told: &mut Vec<JournalEvent>) -> io::Result<()> {
        let mut bytes = Vec::new();
        open.file.seek(SeekFrom::Start(open.offset))?;
        open.file.read_to_end(&mut bytes)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        for line in bytes[..whole].split(|byte| *byte == b'\n') {
            if let Some(record) = parse_record(line) {
                open.begun = Some((record.seq, record.changes.iter().map(path_of).collect()));
            } else if let Some((kind, seq)) = parse_mark(line) {
                let begun = open.begun.take().filter(|(begun, _)| *begun == seq && seq > self.seq);
                if let Some((seq, paths)) = begun {
                    self.seq = seq;
                    // One that was given up is told too, as a change of nothing: numbers have no holes.
                    let paths = if kind == b'A' { paths } else { Vec::new() };
                    told.push(JournalEvent::Change { seq, paths });
                }
            }
        }
        open.offset += whole as u64;
        Ok(())
    }
}

fn path_of(change: &Change) -> String {
    match change {
        Change::Write { path, .. } | Change::Move { from: path, .. } => path.clone(),
    }
}
