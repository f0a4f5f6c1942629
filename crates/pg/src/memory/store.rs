//! [`MemoryStore`] over the database: writes go to the database, reads to the replica.

use std::time::Instant;

use tanmi_base::Millis;
use tanmi_memory::recent::{StartMemory, StartQuery};
use tanmi_memory::search::Hit;
use tanmi_memory::store::ImportResult;
use tanmi_memory::sync::SyncResult;
use tanmi_memory::{
    Delivery, Fact, FileMemory, Folder, Mark, MemoryFilter, MemoryPage, MemoryRow, MemoryStats, MemoryStore,
    Result, SavedFact, SearchQuery, Summary,
};

use super::tx::Lookup;
use super::{PgMemory, import_lines, lookup_of_line, save, set_marks, with_author};
use crate::error::{PLACE, memory_error};
use crate::run::RunError;

const CREATE: &str = "INSERT INTO stream (project, id, seq) VALUES ($1, 'memory', 0)
ON CONFLICT DO NOTHING RETURNING id";

impl PgMemory {
    /// Returns the replica with every change.
    fn files(&self) -> Result<FileMemory> {
        self.catch_up().map_err(into_memory)?;
        Ok(self.replica.files())
    }

    /// Returns a line that names the person whose writes these are.
    fn authored(&self, line: String) -> Result<String> {
        match &self.author {
            Some((_, author)) => with_author(&line, author).map_err(into_memory),
            None => Ok(line),
        }
    }
}

fn into_memory(error: RunError) -> tanmi_memory::Error {
    match error {
        RunError::Memory(error) => error,
        RunError::Store(error) => memory_error(error),
        other => {
            memory_error(tanmi_workspace::Error::invalid("memory", other.to_string(), other.to_string()))
        }
    }
}

impl MemoryStore for PgMemory {
    fn local_folder(&self) -> Option<&Folder> {
        None
    }

    fn exists(&self) -> bool {
        // A database that is away is reported by the next call.
        self.head().is_ok_and(|(head, _)| head.is_some())
    }

    fn create(&self, _: bool) -> Result<bool> {
        Ok(!self.store.query(CREATE, &[]).map_err(memory_error)?.is_empty())
    }

    fn save_fact(&self, fact: &Fact) -> Result<SavedFact> {
        let line = self.authored(fact.to_line())?;
        let (id, is_duplicate) =
            self.write(fact.at, || lookup_of_line(&line), |tx| save(tx, &line)).map_err(into_memory)?;
        // The fact is saved, also if the replica cannot be read now.
        let is_current = !is_duplicate && self.catch_up().is_ok();
        let similar = if is_current { self.replica.similar(fact).unwrap_or_default() } else { Vec::new() };
        Ok(SavedFact { id, is_duplicate, similar, delivery: Delivery::Stored })
    }

    fn save_summary(&self, summary: &Summary) -> Result<Delivery> {
        let line = self.authored(summary.to_line())?;
        self.write(summary.at, || lookup_of_line(&line), |tx| save(tx, &line)).map_err(into_memory)?;
        Ok(Delivery::Stored)
    }

    fn search(&self, query: &SearchQuery<'_>) -> Result<Vec<Hit>> {
        self.files()?.search(query)
    }

    fn list(&self, filter: &MemoryFilter, limit: usize, skip: usize) -> Result<MemoryPage> {
        self.files()?.list(filter, limit, skip)
    }

    fn find(&self, id: &str) -> Result<MemoryRow> {
        self.files()?.find(id)
    }

    fn mark(&self, mark: Mark, ids: &[String], at: Millis, by: &str) -> Result<Vec<MemoryRow>> {
        let lookup = || Lookup { ids: ids.to_vec(), ..Lookup::default() };
        self.write(at, lookup, |tx| set_marks(tx, mark, ids, at, by)).map_err(into_memory)?;
        let files = self.files()?;
        ids.iter().map(|id| files.find(id)).collect()
    }

    fn import(&self, lines: &str, now: Millis, progress: &mut dyn FnMut(u64, u64)) -> Result<ImportResult> {
        let author = self.author.as_ref().map(|(_, author)| author);
        let imported = self
            .write(now, Lookup::default, |tx| import_lines(tx, lines, author, now))
            .map_err(into_memory)?;
        progress(lines.len() as u64, lines.len() as u64);
        Ok(imported)
    }

    fn export(&self, all: bool, now: Millis) -> Result<Vec<String>> {
        self.files()?.export(all, now)
    }

    fn sync(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<SyncResult> {
        self.files()?.sync(progress)
    }

    fn stats(&self) -> Result<MemoryStats> {
        Ok(MemoryStats { place: String::from(PLACE), files: 0, ..self.files()?.stats()? })
    }

    fn start_memory(&self, query: &StartQuery<'_>) -> StartMemory {
        self.files().map(|files| files.start_memory(query)).unwrap_or_default()
    }

    /// Starts and ends of sessions are not shared.
    fn record_session(&self, _: &str, _: Millis) -> Result<()> {
        Ok(())
    }

    fn maintain(&self, deadline: Instant, _: Option<Millis>) -> Result<()> {
        self.files()?.maintain(deadline, None)
    }

    fn revision(&self) -> u64 {
        self.head().ok().and_then(|(head, _)| head).map_or(0, i64::unsigned_abs)
    }
}
