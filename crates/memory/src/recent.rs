//! What a session is told of memory when it starts: the core, the last summary, recent facts, and what fits the work at
//! hand. Read from the index as it is; what was appended since is taken from the ends of the files.

use std::collections::BTreeSet;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use tanmi_base::Millis;
use tanmi_index::{IndexedFile, MemoryFilter, MemoryIndex, MemoryRow};

use crate::folder::Folder;
use crate::record::{self, Line};
use crate::search;

#[derive(Clone, Copy, Debug)]
pub struct StartQuery<'a> {
    pub now: Millis,
    pub days: u32,
    pub facts: usize,
    /// What the session works on; empty for nothing.
    pub about: &'a str,
}

#[derive(Clone, Debug, Default)]
pub struct StartMemory {
    /// `MEMORY.md`
    pub core: String,
    pub summary: Option<MemoryRow>,
    /// The newest first.
    pub facts: Vec<MemoryRow>,
    /// Found by what the session works on.
    pub found: Vec<MemoryRow>,
}

/// Facts that are this sure stay longer.
const SURE: f64 = 0.9;
const SURE_DAYS: i64 = 30;
const FOUND: usize = 5;
/// Of a file's end, at most.
const TAIL: u64 = 256 << 10;
const DAY: Millis = 86_400_000;
/// A core that is longer is cut anyway.
const MAX_CORE: u64 = 64 << 10;

pub fn load(folder: &Folder, wanted: &StartQuery<'_>) -> StartMemory {
    let index = folder.index().is_file().then(|| MemoryIndex::open_existing(&folder.index())).flatten();
    let core = head(&folder.memory_md());
    let mut recent =
        StartMemory { core: String::from_utf8_lossy(&core).trim().to_owned(), ..StartMemory::default() };
    let (from, sure) = (wanted.now - i64::from(wanted.days) * DAY, wanted.now - SURE_DAYS * DAY);
    let fresh = Fresh::read(folder, index.as_ref(), wanted);
    if let Some(index) = &index {
        recent.facts =
            index.recent_facts(from, sure, SURE, wanted.facts + fresh.hidden.len()).unwrap_or_default();
        recent.summary = index
            .newest(Some("summary"), &MemoryFilter::default(), 1, 0)
            .unwrap_or_default()
            .into_iter()
            .next();
        if !wanted.about.is_empty() {
            let hits = search::search(
                index,
                wanted.about,
                &MemoryFilter::default(),
                2 * FOUND + wanted.facts,
                wanted.now,
            );
            let hits = hits.unwrap_or_default();
            let best = hits.first().map_or(0.0, |hit| hit.score);
            // What only shares a common word is not about it.
            let close = hits.into_iter().filter(|hit| hit.score >= (best / 2.0).max(0.15));
            recent.found = close.map(|hit| hit.row).collect();
        }
    }
    let is_recent = |row: &MemoryRow| {
        row.at
            .is_some_and(|at| at >= from || (at >= sure && row.confidence.is_some_and(|value| value >= SURE)))
    };
    for row in fresh.rows {
        match row.kind.as_str() {
            "summary" => recent.summary = Some(row),
            "fact" if is_recent(&row) => recent.facts.push(row),
            _ => {}
        }
    }
    recent.facts.retain(|row| !fresh.hidden.contains(&row.id));
    recent.facts.sort_by(|a, b| b.at.cmp(&a.at).then(b.n.cmp(&a.n)));
    let mut seen = BTreeSet::new();
    recent.facts.retain(|row| seen.insert(row.id.clone()));
    recent.facts.truncate(wanted.facts);
    let told: BTreeSet<&str> = recent.facts.iter().map(|row| row.id.as_str()).collect();
    recent.found.retain(|row| {
        row.kind == "fact" && !told.contains(row.id.as_str()) && !fresh.hidden.contains(&row.id)
    });
    recent.found.truncate(FOUND);
    recent
}

/// What the index does not know yet.
#[derive(Default)]
struct Fresh {
    rows: Vec<MemoryRow>,
    hidden: BTreeSet<String>,
}

impl Fresh {
    fn read(folder: &Folder, index: Option<&MemoryIndex>, wanted: &StartQuery<'_>) -> Fresh {
        let known: Vec<IndexedFile> = index.and_then(|index| index.files().ok()).unwrap_or_default();
        // With an index only today's and yesterday's files can have grown; without one, all recent days count.
        let days = if index.is_some() { 1 } else { i64::from(wanted.days).max(SURE_DAYS) };
        let mut files: Vec<(String, std::path::PathBuf)> = (0..=days)
            .rev()
            .map(|back| folder.daily(wanted.now - back * DAY))
            .map(|path| (format!("daily/{}", path.file_name().unwrap_or_default().to_string_lossy()), path))
            .collect();
        files.push((String::from("sessions.jsonl"), folder.sessions()));
        let mut fresh = Fresh::default();
        for (name, path) in files {
            let from = known.iter().find(|file| file.name == name).map_or(0, |file| file.size);
            for line in tail(&path, from).split(|byte| *byte == b'\n') {
                match record::read_line(line, &name) {
                    Line::Record { mut row, supersedes } => {
                        // Behind everything that the index knows, in the order of the lines.
                        row.n = i64::MAX / 2 + fresh.rows.len() as i64;
                        fresh.hidden.extend(supersedes);
                        fresh.rows.push(*row);
                    }
                    Line::Mark { target, hidden: true, .. } => {
                        fresh.hidden.insert(target);
                    }
                    Line::Mark { target, .. } => {
                        fresh.hidden.remove(&target);
                    }
                    Line::Session | Line::Bad => {}
                }
            }
        }
        let hidden = fresh.hidden.clone();
        fresh.rows.retain(|row| !hidden.contains(&row.id));
        fresh
    }
}

/// The beginning of a file: more than fits anywhere, and no more than that.
fn head(path: &Path) -> Vec<u8> {
    let is_file = std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file());
    let mut bytes = Vec::new();
    if let Some(file) = is_file.then(|| std::fs::File::open(path).ok()).flatten() {
        let _ = file.take(MAX_CORE).read_to_end(&mut bytes);
    }
    bytes
}

/// Whole lines from `from` on, the last [`TAIL`] bytes of them.
fn tail(path: &Path, from: u64) -> Vec<u8> {
    let read = || -> std::io::Result<Vec<u8>> {
        let meta = std::fs::symlink_metadata(path)?;
        if !meta.is_file() || meta.len() <= from {
            return Ok(Vec::new());
        }
        let mut file = std::fs::File::open(path)?;
        let start = from.max(meta.len().saturating_sub(TAIL));
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        file.take(TAIL).read_to_end(&mut bytes)?;
        if start > from {
            // In the middle of a line.
            let at = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1);
            bytes.drain(..at);
        }
        Ok(bytes)
    };
    read().unwrap_or_default()
}
