//! Brings the index up to the files: what grew is read from where it ended, what is new or was rewritten is read whole,
//! what is gone is forgotten.

use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Instant;

use tanmi_base::fs::FileSig;
use tanmi_base::hash;
use tanmi_index::{MemoryIndex, MemoryRow, ReadFile};

use crate::rank::{self, Doc};
use crate::record::{self, Line};
use crate::{Error, Result};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Synced {
    pub added: usize,
    /// Lines that cannot be understood, in all files together.
    pub bad_lines: u64,
    /// Time was up before everything was read; the next one goes on.
    pub is_partial: bool,
}

/// So many bytes of the end of a file tell whether it is still the same up to there.
const TAIL: u64 = 256;
/// Records per transaction, so that a stop in the middle loses little.
const BATCH: usize = 20_000;

/// `progress` hears of bytes read and bytes there are to read.
pub fn sync(
    index: &MemoryIndex,
    files: &[(String, PathBuf)],
    deadline: Option<Instant>,
    mut progress: impl FnMut(u64, u64),
) -> Result<Synced> {
    let known = index.files()?;
    let mut synced = Synced::default();
    for gone in known.iter().filter(|file| !files.iter().any(|(name, _)| *name == file.name)) {
        index.transaction(|index| index.drop_file(&gone.name).map_err(Error::from))?;
    }
    let mut due = Vec::new();
    for (name, path) in files {
        let Some(sig) = FileSig::of(path).map_err(Error::io(path))? else { continue };
        let known = known.iter().find(|file| file.name == *name);
        match known {
            Some(file) if is_same(file, &sig) => synced.bad_lines += file.bad_lines,
            known => due.push((name, path, sig, known)),
        }
    }
    let total: u64 =
        due.iter().map(|(_, _, sig, known)| sig.size - known.map_or(0, |k| k.size.min(sig.size))).sum();
    let mut done = 0;
    for (name, path, sig, known) in due {
        if deadline.is_some_and(|deadline| Instant::now() > deadline) {
            synced.is_partial = true;
            break;
        }
        let from = known.filter(|known| grew(known, path, &sig));
        if from.is_none() && known.is_some() {
            index.transaction(|index| index.drop_file(name).map_err(Error::from))?;
        }
        read_file(index, name, path, from, &mut synced, &mut |bytes| {
            done += bytes;
            progress(done, total);
        })?;
    }
    Ok(synced)
}

fn is_same(file: &ReadFile, sig: &FileSig) -> bool {
    file.size == sig.size && file.inode == sig.inode && file.mtime_ns == sig.mtime_ns
}

/// Whether everything up to where it was read is still there.
fn grew(known: &ReadFile, path: &Path, sig: &FileSig) -> bool {
    sig.size >= known.size
        && sig.inode == known.inode
        && tail(path, known.size).is_ok_and(|tail| tail == known.tail)
}

fn tail(path: &Path, size: u64) -> std::io::Result<String> {
    let mut file = std::fs::File::open(path)?;
    file.seek(SeekFrom::Start(size.saturating_sub(TAIL)))?;
    let mut bytes = Vec::new();
    file.take(size.min(TAIL)).read_to_end(&mut bytes)?;
    Ok(hash::md5_hex(&bytes))
}

fn read_file(
    index: &MemoryIndex,
    name: &str,
    path: &Path,
    from: Option<&ReadFile>,
    synced: &mut Synced,
    progress: &mut dyn FnMut(u64),
) -> Result<()> {
    let start = from.map_or(0, |file| file.size);
    let mut bad_lines = from.map_or(0, |file| file.bad_lines);
    let bytes = read_from(path, start).map_err(Error::io(path))?;
    // A last line without its end is still being written.
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let lines: Vec<&[u8]> =
        bytes[..whole].split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).collect();
    let size = start + whole as u64;
    let mut batches = lines.chunks(BATCH).peekable();
    loop {
        let batch = batches.next();
        let is_last = batches.peek().is_none();
        index.transaction(|index| -> Result<()> {
            for line in batch.unwrap_or_default() {
                progress(line.len() as u64 + 1);
                bad_lines += u64::from(!read_one(index, name, line, synced)?);
            }
            if is_last {
                let sig = FileSig::of(path).map_err(Error::io(path))?.unwrap_or_default();
                let tail = tail(path, size).map_err(Error::io(path))?;
                // Only what was read counts as read: with more behind it the file differs and is read on.
                let mtime_ns = if sig.size == size { sig.mtime_ns } else { 0 };
                let file =
                    ReadFile { name: name.to_owned(), inode: sig.inode, mtime_ns, size, tail, bad_lines };
                index.put_file(&file)?;
            }
            Ok(())
        })?;
        if is_last {
            synced.bad_lines += bad_lines;
            return Ok(());
        }
    }
}

fn read_from(path: &Path, start: u64) -> std::io::Result<Vec<u8>> {
    let mut file = std::fs::File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(std::io::Error::other("not a regular file"));
    }
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether the line could be understood.
fn read_one(index: &MemoryIndex, file: &str, line: &[u8], synced: &mut Synced) -> Result<bool> {
    match record::read_line(line, file) {
        Line::Bad => return Ok(false),
        Line::Session => {}
        Line::Mark { target, at, hidden } => index.mark(&target, at, hidden, "", file)?,
        Line::Record { row, supersedes } => {
            let terms = rank::body_terms(&doc_of(&row));
            synced.added += usize::from(index.insert(&row, &terms)?);
            for target in supersedes {
                index.mark(&target, row.at.unwrap_or_default(), true, &row.id, file)?;
            }
        }
    }
    Ok(true)
}

pub fn doc_of(row: &MemoryRow) -> Doc<'_> {
    Doc {
        content: &row.content,
        speaker: &row.speaker,
        entities: &row.entities,
        at: row.at,
        session: &row.session,
    }
}
