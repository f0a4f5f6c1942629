//! Brings the index up to date with the files. A grown file is read from where reading ended, a new or rewritten
//! file is read in full, and a missing file is removed from the index.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Instant;

use tanmi_base::fs::{self, FileSig};
use tanmi_base::{hash, text};
use tanmi_index::{IndexedFile, MemoryIndex, MemoryRow};

use crate::answer;
use crate::rank::{self, Doc};
use crate::record::{self, Line};
use crate::{Error, Result};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncResult {
    pub added: usize,
    /// Number of unreadable lines in all files.
    pub bad_lines: u64,
    /// The deadline passed before everything was read; the next call continues.
    pub is_partial: bool,
}

/// Number of bytes before the read position whose digest tells whether the file is still the same up to there.
const TAIL: u64 = 256;
/// Number of bytes read at a time. Limits the memory used for a huge file, and the work lost when stopped.
const CHUNK: u64 = 4 << 20;

/// Brings the index up to date. `progress` receives the bytes read and the bytes to read.
pub fn sync(
    index: &MemoryIndex,
    files: &[(String, PathBuf)],
    deadline: Option<Instant>,
    mut progress: impl FnMut(u64, u64),
) -> Result<SyncResult> {
    let mut known: BTreeMap<String, IndexedFile> =
        index.files(None)?.into_iter().map(|file| (file.name.clone(), file)).collect();
    let mut synced = SyncResult::default();
    let mut found: BTreeMap<&str, (&Path, FileSig)> = BTreeMap::new();
    for (name, path) in files {
        if let Some(sig) = FileSig::of(path).map_err(Error::io(path))? {
            found.insert(name, (path, sig));
        }
    }
    let is_stale = |file: &IndexedFile| match found.get(file.name.as_str()) {
        Some((path, sig)) => !is_same(file, sig) && !has_grown(file, path, sig),
        None => true,
    };
    let stale: Vec<String> =
        known.values().filter(|file| is_stale(file)).map(|file| file.name.clone()).collect();
    if !stale.is_empty() && index.has_duplicate_ids()? {
        // A duplicate record was stored from only one of its files, and it is unknown which: read everything
        // again.
        index.transaction(|index| index.clear().map_err(Error::from))?;
        known.clear();
    }
    for name in stale {
        if known.remove(&name).is_some() {
            index.transaction(|index| index.drop_file(&name).map_err(Error::from))?;
        }
    }
    let mut pending = Vec::new();
    // In the order of reading.
    for (name, _) in files {
        let Some((path, sig)) = found.get(name.as_str()) else { continue };
        match known.get(name) {
            Some(file) if is_same(file, sig) => synced.bad_lines += file.bad_lines,
            known => pending.push((name, *path, sig, known)),
        }
    }
    let total: u64 =
        pending.iter().map(|(_, _, sig, known)| sig.size - known.map_or(0, |k| k.size.min(sig.size))).sum();
    let mut done = 0;
    for (name, path, _, known) in pending {
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

/// Returns whether the content up to the last read position is still there.
fn has_grown(known: &IndexedFile, path: &Path, sig: &FileSig) -> bool {
    sig.size >= known.size
        && sig.inode == known.inode
        && tail_digest(path, known.size).is_ok_and(|digest| digest == known.tail)
}

fn tail_digest(path: &Path, size: u64) -> std::io::Result<String> {
    let (mut file, _) = fs::open_regular(path, OpenOptions::new().read(true))?;
    file.seek(SeekFrom::Start(size.saturating_sub(TAIL)))?;
    let mut bytes = Vec::new();
    file.take(size.min(TAIL)).read_to_end(&mut bytes)?;
    Ok(hash::md5_hex(&bytes))
}

/// Reads a file into the index. Returns `false` if the deadline passed before the end.
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
        let complete_len = complete_lines_len(&bytes, is_last);
        let next = at + complete_len as u64;
        index.transaction(|index| -> Result<()> {
            for line in bytes[..complete_len]
                .split(|byte| *byte == b'\n')
                .filter(|line| !line.trim_ascii().is_empty())
            {
                bad_lines += u64::from(!index_line(index, name, line, synced)?);
            }
            progress(complete_len as u64);
            let sig = FileSig::of(path).map_err(Error::io(path))?.unwrap_or_default();
            let tail = tail_digest(path, next).map_err(Error::io(path))?;
            // With unread content after this position, the stored time must not match, so that the next call
            // reads on.
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

/// Returns the length of the complete lines. A last line without a line end counts if it is valid JSON. A line
/// that fills a whole chunk is not a record and is skipped.
fn complete_lines_len(bytes: &[u8], is_last: bool) -> usize {
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let rest = &bytes[end..];
    match is_last {
        true if is_json(rest) => bytes.len(),
        false if end == 0 => bytes.len(),
        _ => end,
    }
}

fn is_json(line: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(text::without_bom(line)).is_ok()
}

fn read_chunk(path: &Path, start: u64) -> std::io::Result<Vec<u8>> {
    let (mut file, _) = fs::open_regular(path, OpenOptions::new().read(true))?;
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(CHUNK).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Indexes one line. Returns whether it could be read.
fn index_line(index: &MemoryIndex, file: &str, line: &[u8], synced: &mut SyncResult) -> Result<bool> {
    match record::read_line(line, file) {
        Line::Bad => return Ok(false),
        Line::Session => {}
        Line::Mark { target, hidden, by } => index.mark(&target, hidden, &by, file)?,
        Line::Record { mut row, supersedes } => {
            row.features = answer::features(&row.content);
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
