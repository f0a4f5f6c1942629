//! The writes of [`FileMemory`] that read the index first. Each holds the lock of the folder from the check to the
//! last line.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tanmi_base::fs;

use super::*;
use crate::decide::{self, FactDecision, StoredMemories};

/// A search hit with a higher score is a similar fact.
const SIMILAR_SCORE: f32 = 0.4;
const MAX_SIMILAR: usize = 3;

impl FileMemory {
    pub(super) fn write_fact(&self, fact: &Fact) -> Result<SavedFact> {
        let lock = self.lock()?;
        let index = self.index()?;
        if let FactDecision::Duplicate { id, lines } = decide::save_fact(&index, &new_fact(fact))? {
            self.append_marks(&lock, &index, &lines, fact.at)?;
            return Ok(SavedFact { id, is_duplicate: true, similar: Vec::new(), delivery: Delivery::Stored });
        }
        let path = if fact.supersedes.is_empty() {
            self.folder.daily(fact.at)
        } else {
            self.folder.latest_daily(fact.at)
        };
        self.folder.append(&lock, &path, &fact.to_line(), AppendSync::Yes)?;
        let similar = find_similar(&index, fact);
        self.index_new_lines(&index);
        Ok(SavedFact { id: fact.id.clone(), is_duplicate: false, similar, delivery: Delivery::Stored })
    }

    fn append_marks(&self, lock: &Lock, index: &MemoryIndex, lines: &[String], at: Millis) -> Result<()> {
        if !lines.is_empty() {
            self.folder.append(lock, &self.folder.latest_daily(at), &lines.join("\n"), AppendSync::Yes)?;
            self.index_new_lines(index);
        }
        Ok(())
    }

    /// Returns the id of the current fact with the content of a new one, if there is one. Fails like
    /// [`MemoryStore::save_fact`] and writes nothing.
    pub fn find_duplicate(&self, fact: &Fact) -> Result<Option<String>> {
        Ok(match decide::save_fact(&self.index()?, &new_fact(fact))? {
            FactDecision::Duplicate { id, .. } => Some(id),
            FactDecision::Add => None,
        })
    }

    /// Hides facts that the fact `by` supersedes, on this machine alone.
    pub fn supersede(&self, ids: &[String], by: &str, at: Millis, writer: &str) -> Result<()> {
        let lock = self.lock()?;
        let lines: Vec<String> =
            ids.iter().map(|id| record::mark_line("replace", id, by, at, writer)).collect();
        self.append_marks(&lock, &self.index()?, &lines, at)
    }

    /// Returns facts that are similar to one.
    pub fn similar(&self, fact: &Fact) -> Result<Vec<Hit>> {
        Ok(find_similar(&self.index()?, fact))
    }

    /// Makes new lines searchable at once. Errors are ignored: the lines are saved, and the next search indexes them.
    fn index_new_lines(&self, index: &MemoryIndex) {
        let _ = self.files().and_then(|files| sync::sync(index, &files, None, |_, _| {}));
    }

    pub(super) fn write_marks(
        &self,
        mark: Mark,
        ids: &[String],
        at: Millis,
        by: &str,
    ) -> Result<Vec<MemoryRow>> {
        let lock = self.lock()?;
        let index = self.index()?;
        let rows = ids.iter().map(|id| find(&index, id)).collect::<Result<Vec<_>>>()?;
        for row in &rows {
            // Read again: an earlier mark of this call may have changed it.
            let lines = decide::mark_lines(&index, mark, &find(&index, &row.id)?, at, by)?;
            self.append_marks(&lock, &index, &lines, at)?;
        }
        drop(index);
        let index = self.index()?;
        rows.iter().map(|row| find(&index, &row.id)).collect()
    }

    pub(super) fn write_import(
        &self,
        lines: &str,
        now: Millis,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<ImportResult> {
        let folder = &self.folder;
        let lock = self.lock()?;
        let index = self.index()?;
        let batch = import::read(lines, |id| Ok(index.find(id)?.is_some()))?;
        // On Linux one sync of the file system replaces the sync of every file: an import can write thousands of
        // days.
        let append_sync = if cfg!(target_os = "linux") { AppendSync::No } else { AppendSync::Yes };
        for (path, text) in &self.import_texts(&batch, now) {
            folder.append(&lock, path, text, append_sync)?;
        }
        let dir = std::fs::File::open(folder.dir()).map_err(Error::io(folder.dir()))?;
        fs::sync_file_system(&dir).map_err(Error::io(folder.dir()))?;
        drop(index);
        self.open_index(progress)?;
        Ok(batch.result)
    }

    /// Returns what an import appends to each file.
    fn import_texts(&self, batch: &import::ImportBatch, now: Millis) -> BTreeMap<PathBuf, String> {
        let folder = &self.folder;
        let mut texts: BTreeMap<PathBuf, String> = BTreeMap::new();
        let mut add = |path: PathBuf, line: &str| {
            let text = texts.entry(path).or_default();
            text.push_str(line);
            text.push('\n');
        };
        let mut paths: BTreeMap<&str, PathBuf> = BTreeMap::new();
        for row in &batch.records {
            let is_summary = row.letter.kind() == MemoryKind::Summary;
            let path = if is_summary { folder.sessions() } else { folder.daily(row.at.unwrap_or(now)) };
            add(path.clone(), &import::record_line(row, now));
            paths.insert(&row.id, path);
        }
        for mark in &batch.marks {
            // A mark goes into the same file as its record, so that a forgotten record is never read without the
            // mark that hides it. Marks of summaries go into daily files, so that a later mark can revoke them.
            let path = match paths.get(mark.target.as_str()) {
                Some(path) if *path != folder.sessions() => path.clone(),
                Some(_) => folder.daily(now),
                None => folder.latest_daily(now),
            };
            add(path, &record::mark_line(mark.kind(), &mark.target, &mark.by, now, "import"));
        }
        texts
    }
}

fn new_fact(fact: &Fact) -> decide::NewFact<'_> {
    decide::NewFact {
        content_hash: record::content_hash(&fact.content),
        supersedes: &fact.supersedes,
        at: fact.at,
        by: &fact.by,
    }
}

impl StoredMemories for MemoryIndex {
    fn find(&self, id: &str) -> Result<Option<MemoryRow>> {
        Ok(MemoryIndex::find(self, id)?)
    }

    fn find_same_content(&self, content_hash: i64) -> Result<Vec<MemoryRow>> {
        Ok(MemoryIndex::find_same_content(self, content_hash)?)
    }
}

/// Returns the facts that look like the same matter as a new fact: first those that it replaces, then similar ones.
fn find_similar(index: &MemoryIndex, fact: &Fact) -> Vec<Hit> {
    let hits = search::search(index, &fact.content, &MemoryFilter::default(), current::POOL, fact.at);
    let mut hits = hits.unwrap_or_default();
    hits.retain(|hit| hit.row.letter.kind() == MemoryKind::Fact && !fact.supersedes.contains(&hit.row.id));
    current::with_frequencies(index, |frequencies| current::mark_replaced_by(fact, &mut hits, frequencies));
    hits.retain(|hit| hit.row.id != fact.id && (hit.replaced.is_some() || hit.score > SIMILAR_SCORE));
    hits.sort_by_key(|hit| hit.replaced.is_none());
    hits.truncate(MAX_SIMILAR);
    hits
}
