//! Memory in files of this machine: the folder of a project, and its ingested transcripts in the home store.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tanmi_base::lock::Lock;
use tanmi_base::place::ProjectPlace;
use tanmi_base::{Millis, fs};
use tanmi_index::{LexiconIndex, MemoryFilter, MemoryIndex, MemoryKind, MemoryRow};

use crate::recent::{self, StartMemory, StartQuery};
use crate::record::{QUEUE_FILES, TEAM_FILES};
use crate::search::{self, Hit, SearchAids};
use crate::store::{
    Delivery, ImportResult, Mark, MemoryPage, MemoryStats, MemoryStore, SavedFact, SearchQuery,
};
use crate::sync::{self, SyncResult};
use crate::{
    AppendSync, Error, Fact, Folder, Result, Summary, current, import, lexicon, record, transcripts,
};

mod write;

/// The memory of a project in files. Cheap to build. Whether the folder of an older tool is used is decided when it
/// is built, so a long-running program builds it for each call.
#[derive(Clone, Debug)]
pub struct FileMemory {
    folder: Folder,
    place: Arc<ProjectPlace>,
    /// The home store, which contains the ingested transcripts.
    home: PathBuf,
    team: Option<TeamFiles>,
}

/// Files of a joined project that are read besides those of the folder.
#[derive(Clone, Debug)]
struct TeamFiles {
    /// The folder of the replica of the project.
    project: PathBuf,
    /// The memory in it, which its server decides.
    replica: Folder,
    /// The folder of the writes that wait for the server.
    outbox: PathBuf,
}

impl FileMemory {
    pub fn new(place: Arc<ProjectPlace>, home: &Path) -> FileMemory {
        FileMemory { folder: Folder::of(place.folder()), place, home: home.to_owned(), team: None }
    }

    /// Returns the memory of the user, in the home store. It holds in all projects.
    pub fn of_user(home: &Path) -> FileMemory {
        let place = Arc::new(ProjectPlace::new(home, None));
        FileMemory { folder: Folder::of_user(home), place, home: home.to_owned(), team: None }
    }

    /// Returns the memory of a joined project. Writes go to the folder `own` and stay on this machine. Reads find them
    /// together with the replica in the folder `project` and with the writes in `outbox`.
    pub fn of_team(own: &Path, project: &Path, outbox: &Path, home: &Path) -> FileMemory {
        let place = Arc::new(ProjectPlace::new(own, None));
        let replica = Folder::of(project);
        let team = TeamFiles { project: project.to_owned(), replica, outbox: outbox.to_owned() };
        FileMemory { folder: Folder::of_machine(own), place, home: home.to_owned(), team: Some(team) }
    }

    /// Locks the folder for a write that is acknowledged.
    fn lock(&self) -> Result<Lock> {
        self.place.check_for_write()?;
        let lock = self.folder.lock()?;
        // The project may have been moved while this process waited for the lock.
        self.place.check_for_write()?;
        Ok(lock)
    }

    /// Returns the files that are indexed: those of the folder and of the team, and the ingested transcripts.
    fn files(&self) -> Result<Vec<(String, PathBuf)>> {
        let mut files = self.record_files()?;
        let project = self.team.as_ref().map_or(self.place.folder(), |team| &team.project);
        files.extend(transcripts::files(&transcripts::folder(&self.home, project)));
        Ok(files)
    }

    fn record_files(&self) -> Result<Vec<(String, PathBuf)>> {
        let mut files = self.folder.files()?;
        if let Some(team) = &self.team {
            let replica = team.replica.files()?.into_iter();
            files.extend(replica.map(|(name, path)| (format!("{TEAM_FILES}{name}"), path)));
            files.extend(queued_files(&team.outbox));
        }
        Ok(files)
    }

    /// Returns an up-to-date index. If it cannot be opened or written, builds a temporary one in RAM.
    fn open_index(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<(MemoryIndex, SyncResult)> {
        self.place.check()?;
        let files = self.files()?;
        for _ in 0..2 {
            if !self.folder.has_only_regular_files() {
                break;
            }
            let Ok(index) = MemoryIndex::open(&self.folder.index()) else { break };
            match sync::sync(&index, &files, None, &mut *progress) {
                Ok(synced) => return Ok((index, synced)),
                Err(error) if error.is_lost_index() => self.folder.discard_index(),
                Err(error) => return Err(error),
            }
        }
        let index = MemoryIndex::in_memory()?;
        let synced = sync::sync(&index, &files, None, progress)?;
        Ok((index, synced))
    }

    fn index(&self) -> Result<MemoryIndex> {
        Ok(self.open_index(&mut |_, _| {})?.0)
    }
}

/// Returns the names and paths of the files of an outbox, in the order in which they were queued.
fn queued_files(outbox: &Path) -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir(outbox).into_iter().flatten().flatten();
    let mut files: Vec<(String, PathBuf)> = entries
        .filter_map(|entry| Some((format!("{QUEUE_FILES}{}", entry.file_name().to_str()?), entry.path())))
        .filter(|(name, _)| name.ends_with(".json"))
        .collect();
    files.sort();
    files
}

fn find(index: &MemoryIndex, id: &str) -> Result<MemoryRow> {
    index.find(id)?.ok_or_else(|| Error::not_found(id))
}

impl MemoryStore for FileMemory {
    fn local_folder(&self) -> Option<&Folder> {
        Some(&self.folder)
    }

    fn exists(&self) -> bool {
        self.folder.exists()
    }

    fn create(&self, is_shared: bool) -> Result<bool> {
        self.place.check_for_write()?;
        let is_new = !self.folder.exists();
        if is_new {
            self.folder.create(is_shared)?;
        }
        Ok(is_new)
    }

    fn save_fact(&self, fact: &Fact) -> Result<SavedFact> {
        self.write_fact(fact)
    }

    fn save_summary(&self, summary: &Summary) -> Result<Delivery> {
        let lock = self.lock()?;
        self.folder.append(&lock, &self.folder.sessions(), &summary.to_line(), AppendSync::Yes)?;
        // Makes the summary searchable at once. Errors are ignored: it is saved, and the next search indexes it.
        let _ = self.index();
        Ok(Delivery::Stored)
    }

    fn search(&self, query: &SearchQuery<'_>) -> Result<Vec<Hit>> {
        let index = self.index()?;
        let SearchQuery { text, filter, limit: wanted, now, model } = *query;
        let limit = if wanted == 0 { 0 } else { wanted.max(current::POOL) };
        if let Some(model) = model {
            search::embed_missing(&index, model)?;
        }
        // Dictionaries that cannot be read are not used; `lexicon list` reports them.
        let lexicon = LexiconIndex::open_existing(&lexicon::file(&self.home));
        let aids = SearchAids { lexicon: lexicon.as_ref(), model };
        let mut hits = search::answer(&index, text, filter, limit, now, aids)?;
        current::put_newer_first(&index, &mut hits, now);
        hits.truncate(wanted);
        search::add_neighbours(&index, &mut hits)?;
        Ok(hits)
    }

    fn list(&self, filter: &MemoryFilter, limit: usize, skip: usize) -> Result<MemoryPage> {
        let index = self.index()?;
        let rows = index.newest(None, filter, limit, skip)?;
        Ok(MemoryPage { rows, total: index.count(None, filter)? })
    }

    fn find(&self, id: &str) -> Result<MemoryRow> {
        find(&self.index()?, id)
    }

    fn mark(&self, mark: Mark, ids: &[String], at: Millis, by: &str) -> Result<Vec<MemoryRow>> {
        if !self.exists() {
            return Err(Error::not_found(ids.first().map_or("", String::as_str)));
        }
        self.write_marks(mark, ids, at, by)
    }

    fn import(&self, lines: &str, now: Millis, progress: &mut dyn FnMut(u64, u64)) -> Result<ImportResult> {
        self.write_import(lines, now, progress)
    }

    fn export(&self, all: bool, now: Millis) -> Result<Vec<String>> {
        let filter = MemoryFilter { all, ..MemoryFilter::default() };
        let mut rows = self.index()?.newest(None, &filter, usize::MAX >> 1, 0)?;
        rows.reverse();
        Ok(import::export_lines(&rows, now))
    }

    fn sync(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<SyncResult> {
        // Damage that no query has met yet is found here.
        if !self.folder.is_index_sound() {
            self.folder.discard_index();
        }
        Ok(self.open_index(progress)?.1)
    }

    fn stats(&self) -> Result<MemoryStats> {
        let (index, synced) = self.open_index(&mut |_, _| {})?;
        let count = |kind: Option<MemoryKind>, all: bool| {
            index.count(kind, &MemoryFilter { all, ..MemoryFilter::default() })
        };
        Ok(MemoryStats {
            place: self.folder.dir().display().to_string(),
            facts: count(Some(MemoryKind::Fact), false)?,
            summaries: count(Some(MemoryKind::Summary), false)?,
            turns: count(Some(MemoryKind::Turn), false)?,
            hidden: count(None, true)? - count(None, false)?,
            files: self.files()?.len(),
            bad_lines: synced.bad_lines,
            index_bytes: fs::FileSig::of(&self.folder.index()).ok().flatten().map_or(0, |sig| sig.size),
        })
    }

    fn start_memory(&self, query: &StartQuery<'_>) -> StartMemory {
        recent::load(&self.folder, self.team.as_ref().map(|team| &team.replica), query)
    }

    fn record_session(&self, line: &str, at: Millis) -> Result<()> {
        let lock = self.folder.lock()?;
        self.folder.append(&lock, &self.folder.daily(at), line, AppendSync::No)
    }

    fn maintain(&self, deadline: Instant, oldest_session_line: Option<Millis>) -> Result<()> {
        // Errors are ignored: the next search indexes the rest.
        if let (Ok(files), Ok(index)) = (self.files(), MemoryIndex::open(&self.folder.index())) {
            let _ = index.set_busy_timeout(Duration::from_millis(200));
            let _ = sync::sync(&index, &files, Some(deadline), |_, _| {});
        }
        match oldest_session_line {
            Some(oldest) if Instant::now() < deadline => self.folder.drop_session_lines(oldest),
            _ => Ok(()),
        }
    }

    fn revision(&self) -> u64 {
        let files = self.record_files().unwrap_or_default().into_iter().map(|(_, path)| path);
        fs::revision(files.chain([self.folder.memory_md()]))
    }
}
