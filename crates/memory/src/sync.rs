//! Brings the index up to the files: what grew is read from where it ended, what is new or was rewritten is read whole,
//! what is gone is forgotten.

use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Instant;

use tanmi_base::fs::FileSig;
use tanmi_base::hash;
use tanmi_index::{IndexedFile, MemoryIndex, MemoryRow};

use crate::rank::{self, Doc};
use crate::record::{self, Line};
use crate::{Error, Result};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncResult {
    pub added: usize,
    /// Lines that cannot be understood, in all files together.
    pub bad_lines: u64,
    /// Time was up before everything was read; the next one goes on.
    pub is_partial: bool,
}

/// So many bytes of the end of a file tell whether it is still the same up to there.
const TAIL: u64 = 256;
/// Read at a time, so that a stop in the middle loses little and a giant costs no memory.
const CHUNK: u64 = 4 << 20;

/// `progress` hears of bytes read and bytes there are to read.
pub fn sync(
    index: &MemoryIndex,
    files: &[(String, PathBuf)],
    deadline: Option<Instant>,
    mut progress: impl FnMut(u64, u64),
) -> Result<SyncResult> {
    let mut known = index.files()?;
    let mut synced = SyncResult::default();
    let is_gone = |file: &IndexedFile| !files.iter().any(|(name, _)| *name == file.name);
    let is_rewritten = |file: &IndexedFile| {
        let path = files.iter().find(|(name, _)| *name == file.name).map(|(_, path)| path);
        path.is_some_and(|path| {
            let sig = FileSig::of(path).ok().flatten().unwrap_or_default();
            !is_same(file, &sig) && !grew(file, path, &sig)
        })
    };
    let lost: Vec<String> = known
        .iter()
        .filter(|file| is_gone(file) || is_rewritten(file))
        .map(|file| file.name.clone())
        .collect();
    if !lost.is_empty() && index.has_duplicate_ids()? {
        // A record that is there twice was read once: from which file is not known any more.
        index.transaction(|index| index.clear().map_err(Error::from))?;
        known.clear();
    }
    let lost = if known.is_empty() { Vec::new() } else { lost };
    for name in &lost {
        index.transaction(|index| index.drop_file(name).map_err(Error::from))?;
        known.retain(|file| file.name != *name);
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
    for (name, path, _, known) in due {
        if deadline.is_some_and(|deadline| Instant::now() > deadline) {
            synced.is_partial = true;
            break;
        }
        synced.is_partial |= !read_file(index, name, path, known, deadline, &mut synced, &mut |bytes| {
            done += bytes;
            progress(done, total);
        })?;
    }
    if synced.added > 0 && !synced.is_partial {
        index.transaction(|index| index.update_common_terms().map_err(Error::from))?;
    }
    Ok(synced)
}

fn is_same(file: &IndexedFile, sig: &FileSig) -> bool {
    file.size == sig.size && file.inode == sig.inode && file.mtime_ns == sig.mtime_ns
}

/// Whether everything up to where it was read is still there.
fn grew(known: &IndexedFile, path: &Path, sig: &FileSig) -> bool {
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

/// Whether it got to the end before time was up.
fn read_file(
    index: &MemoryIndex,
    name: &str,
    path: &Path,
    from: Option<&IndexedFile>,
    deadline: Option<Instant>,
    synced: &mut SyncResult,
    progress: &mut dyn FnMut(u64),
) -> Result<bool> {
    let mut at = from.map_or(0, |file| file.size);
    let mut bad_lines = from.map_or(0, |file| file.bad_lines);
    loop {
        let bytes = read_chunk(path, at).map_err(Error::io(path))?;
        let is_last = (bytes.len() as u64) < CHUNK;
        let whole = whole_lines(&bytes, is_last);
        let next = at + whole as u64;
        index.transaction(|index| -> Result<()> {
            for line in
                bytes[..whole].split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty())
            {
                bad_lines += u64::from(!read_one(index, name, line, synced)?);
            }
            progress(whole as u64);
            let sig = FileSig::of(path).map_err(Error::io(path))?.unwrap_or_default();
            let tail = tail(path, next).map_err(Error::io(path))?;
            // Only what was read counts as read: with more behind it the file differs and is read on.
            let mtime_ns = if sig.size == next { sig.mtime_ns } else { 0 };
            let file = IndexedFile {
                name: name.to_owned(),
                inode: sig.inode,
                mtime_ns,
                size: next,
                tail,
                bad_lines,
            };
            Ok(index.put_file(&file)?)
        })?;
        at = next;
        if is_last {
            synced.bad_lines += bad_lines;
            return Ok(true);
        }
        if deadline.is_some_and(|deadline| Instant::now() > deadline) {
            return Ok(false);
        }
    }
}

/// Up to the end of the last line. A last line without its end counts if it is complete; a line that fills a whole chunk
/// is none of ours.
fn whole_lines(bytes: &[u8], is_last: bool) -> usize {
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let rest = &bytes[end..];
    match is_last {
        true if serde_json::from_slice::<serde::de::IgnoredAny>(rest).is_ok() => bytes.len(),
        false if end == 0 => bytes.len(),
        _ => end,
    }
}

fn read_chunk(path: &Path, start: u64) -> std::io::Result<Vec<u8>> {
    let mut file = std::fs::File::open(path)?;
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(CHUNK).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether the line could be understood.
fn read_one(index: &MemoryIndex, file: &str, line: &[u8], synced: &mut SyncResult) -> Result<bool> {
    match record::read_line(line, file) {
        Line::Bad => return Ok(false),
        Line::Session => {}
        Line::Mark { target, hidden, by } => index.mark(&target, hidden, &by, file)?,
        Line::Record { row, supersedes } => {
            let terms = rank::body_terms(&doc_of(&row));
            synced.added += usize::from(index.insert(&row, &terms)?);
            for target in supersedes {
                index.mark(&target, true, &row.id, file)?;
            }
        }
    }
    Ok(true)
}

fn doc_of(row: &MemoryRow) -> Doc<'_> {
    Doc { content: &row.content, speaker: &row.speaker, entities: &row.entities, at: row.at }
}
