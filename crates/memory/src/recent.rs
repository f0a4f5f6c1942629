//! The memory that a session receives when it starts: core memory, the last summary, recent facts, and facts
//! related to the current work. Reads the index as it is, and newer lines from the ends of the files.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use tanmi_base::clock::DAY;
use tanmi_base::{Millis, fs, text};
use tanmi_index::{IndexedFile, MemoryFilter, MemoryIndex, MemoryKind, MemoryLetter, MemoryRow};

use crate::current::{self, Replaced};
use crate::folder::{Folder, OLD_FACTS};
use crate::record::{self, Author, Line, TEAM_FILES};
use crate::search;

pub(crate) mod choose;
use choose::Candidates;

#[derive(Clone, Copy, Debug)]
pub struct StartQuery<'a> {
    pub now: Millis,
    pub days: u32,
    pub facts: usize,
    /// Text about the current work; empty if there is none.
    pub topic: &'a str,
    /// The name of the user in a team. The last summary of the user is told before that of another person.
    pub person: Option<&'a str>,
}

impl StartQuery<'_> {
    /// Returns from when on facts are recent, and from when on facts with high confidence are.
    fn recent_from(&self) -> (Millis, Millis) {
        (self.now - i64::from(self.days) * DAY, self.now - HIGH_CONFIDENCE_DAYS * DAY)
    }

    /// Returns whether a memory is not one of another person.
    fn is_own(&self, row: &MemoryRow) -> bool {
        self.person.is_none()
            || Author::of(row).is_none_or(|author| Some(author.person.as_str()) == self.person)
    }

    /// Returns whether a fact is recent.
    pub(crate) fn is_recent(&self, row: &MemoryRow) -> bool {
        let (from, confident_from) = self.recent_from();
        row.at.is_some_and(|at| at >= from || (is_confident(row) && at >= confident_from))
    }
}

fn is_confident(row: &MemoryRow) -> bool {
    row.confidence.is_some_and(|value| value >= HIGH_CONFIDENCE)
}

/// Returns whether a fact is a preference that does not expire.
pub(crate) fn is_lasting_preference(row: &MemoryRow) -> bool {
    row.letter == MemoryLetter::O && is_confident(row)
}

/// The memory for one session start.
#[derive(Clone, Debug, Default)]
pub struct StartMemory {
    /// Core memory: the text of `MEMORY.md`.
    pub core: String,
    pub summary: Option<MemoryRow>,
    /// Recent facts and lasting preferences, the newest first.
    pub facts: Vec<ToldFact>,
    /// Facts related to the current work.
    pub found: Vec<ToldFact>,
}

/// A fact that a session start tells.
#[derive(Clone, Debug)]
pub struct ToldFact {
    pub row: MemoryRow,
    /// The newer fact that replaces it, which is told before it.
    pub replaced: Option<Replaced>,
}

/// Facts with at least this confidence count as recent for longer; preferences do not expire. The index has
/// this number, too.
pub(crate) const HIGH_CONFIDENCE: f64 = 0.9;
const HIGH_CONFIDENCE_DAYS: i64 = 30;
/// The number of facts beyond those that are told that are read, because some are left out.
const SPARE: usize = 8;
/// The number of summaries of a team among which that of the user is looked for.
const TEAM_SUMMARIES: usize = 20;
/// Maximum number of bytes read from the end of a file.
const TAIL: u64 = 256 << 10;
/// Maximum number of bytes read of core memory; a longer text is cut anyway.
const MAX_CORE: u64 = 64 << 10;

/// Returns the memory for a session start from the files and the index of a folder. The index of a joined project also
/// contains the files of its replica.
pub fn load(folder: &Folder, replica: Option<&Folder>, query: &StartQuery<'_>) -> StartMemory {
    let index = MemoryIndex::open_existing(&folder.index());
    let core = read_core(&folder.memory_md());
    let unindexed = UnindexedLines::read(folder, replica, index.as_ref(), query);
    let (mut candidates, mut summary) = match &index {
        Some(index) => read_index(index, query, unindexed.hidden.len()),
        None => Default::default(),
    };
    for row in unindexed.rows {
        match row.letter.kind() {
            MemoryKind::Summary
                if query.is_own(&row) || !summary.as_ref().is_some_and(|row| query.is_own(row)) =>
            {
                summary = Some(row);
            }
            MemoryKind::Fact if is_lasting_preference(&row) => candidates.preferences.push(row),
            MemoryKind::Fact if query.is_recent(&row) => candidates.recent.push(row),
            _ => {}
        }
    }
    candidates.remove(&unindexed.hidden);
    let (facts, found) = match &index {
        Some(index) => current::with_frequencies(index, |frequencies| candidates.choose(query, frequencies)),
        None => candidates.choose(query, &current::NO_FREQUENCIES),
    };
    let core = String::from_utf8_lossy(text::without_bom(&core)).trim().to_owned();
    StartMemory { core, summary, facts, found }
}

/// Returns the candidates in the index, and the last summary. `more` is the number of facts that may be left out.
fn read_index(index: &MemoryIndex, query: &StartQuery<'_>, more: usize) -> (Candidates, Option<MemoryRow>) {
    let (from, confident_from) = query.recent_from();
    // More than are told, because some are left out as duplicates.
    let limit = query.facts + SPARE + more;
    // In a team, those of others may be newer.
    let summaries = if query.person.is_some() { TEAM_SUMMARIES } else { 1 };
    let summaries = index.newest(Some(MemoryKind::Summary), &MemoryFilter::default(), summaries, 0);
    let mut summaries = summaries.unwrap_or_default();
    let own = summaries.iter().position(|row| query.is_own(row)).unwrap_or(0);
    let summary = (own < summaries.len()).then(|| summaries.swap_remove(own));
    let lasting = MemoryFilter { is_lasting_preference: true, ..MemoryFilter::default() };
    let candidates = Candidates {
        preferences: index
            .newest(None, &lasting, choose::preference_slots(query) + more, 0)
            .unwrap_or_default(),
        recent: index.recent_facts(from, confident_from, HIGH_CONFIDENCE, limit).unwrap_or_default(),
        related: if query.topic.is_empty() { Vec::new() } else { related_facts(index, query, more) },
    };
    (candidates, summary)
}

/// Returns the facts about the current work, the best first.
fn related_facts(index: &MemoryIndex, query: &StartQuery<'_>, more: usize) -> Vec<MemoryRow> {
    // The filter costs a look at each candidate, so it is set only if there are turns that could take all places.
    let turn = index.newest(Some(MemoryKind::Turn), &MemoryFilter::default(), 1, 0);
    let has_turns = turn.is_ok_and(|turns| !turns.is_empty());
    let filter = MemoryFilter { kind: has_turns.then_some(MemoryKind::Fact), ..MemoryFilter::default() };
    let hits = search::search(index, query.topic, &filter, query.facts + SPARE + more, query.now);
    let mut hits = hits.unwrap_or_default();
    hits.retain(|hit| hit.row.letter.kind() == MemoryKind::Fact);
    choose::related(hits, query.topic)
}

/// Lines that the index does not contain yet.
#[derive(Default)]
struct UnindexedLines {
    rows: Vec<MemoryRow>,
    hidden: BTreeSet<String>,
}

impl UnindexedLines {
    fn read(
        folder: &Folder,
        replica: Option<&Folder>,
        index: Option<&MemoryIndex>,
        query: &StartQuery<'_>,
    ) -> UnindexedLines {
        // With an index, only the files of today and yesterday can have grown, or one that a person edits; without
        // one, all recent days are read.
        let days = if index.is_some() { 1 } else { i64::from(query.days).max(HIGH_CONFIDENCE_DAYS) };
        let mut files = vec![(String::from(OLD_FACTS), folder.old_facts())];
        for (prefix, folder) in [("", Some(folder)), (TEAM_FILES, replica)] {
            let days = (0..=days).rev().filter_map(|back| Some(folder?.daily(query.now - back * DAY)));
            files.extend(days.map(|path| {
                let day = path.file_name().unwrap_or_default().to_string_lossy();
                let name = format!("{prefix}daily/{day}");
                (name, path)
            }));
        }
        files.push((String::from("sessions.jsonl"), folder.sessions()));
        let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        let known: Vec<IndexedFile> =
            index.and_then(|index| index.files(Some(&names)).ok()).unwrap_or_default();
        let mut unindexed = UnindexedLines::default();
        for (name, path) in files {
            let from = known.iter().find(|file| file.name == name).map_or(0, |file| file.size);
            let lines = tail(&path, from);
            let lines = lines.split(|byte| *byte == b'\n');
            for line in lines.filter(|line| !record::begins_as_session_line(line)) {
                match record::read_line(line, &name) {
                    Line::Record { mut row, supersedes } => {
                        // After everything in the index, in the order of the lines.
                        row.n = i64::MAX / 2 + unindexed.rows.len() as i64;
                        unindexed.hidden.extend(supersedes);
                        unindexed.rows.push(*row);
                    }
                    Line::Mark { target, hidden: true, .. } => {
                        unindexed.hidden.insert(target);
                    }
                    Line::Mark { target, .. } => {
                        unindexed.hidden.remove(&target);
                    }
                    Line::Session | Line::Bad => {}
                }
            }
        }
        let hidden = unindexed.hidden.clone();
        unindexed.rows.retain(|row| !hidden.contains(&row.id));
        unindexed
    }
}

/// Returns the start of a file, at most [`MAX_CORE`] bytes.
fn read_core(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Ok((file, _)) = fs::open_regular(path, OpenOptions::new().read(true)) {
        let _ = file.take(MAX_CORE).read_to_end(&mut bytes);
    }
    bytes
}

/// Returns complete lines from `from` on, at most the last [`TAIL`] bytes.
fn tail(path: &Path, from: u64) -> Vec<u8> {
    let read = || -> std::io::Result<Vec<u8>> {
        let (mut file, meta) = fs::open_regular(path, OpenOptions::new().read(true))?;
        if meta.len() <= from {
            return Ok(Vec::new());
        }
        let start = from.max(meta.len().saturating_sub(TAIL));
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::with_capacity((meta.len() - start) as usize + 1);
        file.take(TAIL).read_to_end(&mut bytes)?;
        if start > from {
            // The text starts in the middle of a line.
            let at = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1);
            bytes.drain(..at);
        }
        Ok(bytes)
    };
    read().unwrap_or_default()
}
