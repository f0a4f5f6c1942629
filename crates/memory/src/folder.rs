//! The files of a project's memory: `MEMORY.md`, `daily/YYYY-MM-DD.jsonl`, `sessions.jsonl`, and the index.
//!
//! Invariant: files are only appended to, under one lock, and a record is on the disk before it is acknowledged.

use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use tanmi_base::lock::Lock;
use tanmi_base::paths::STORE_DIR;
use tanmi_base::place::ensure_dir;
use tanmi_base::{Millis, clock, fs};

use crate::{Error, Result};

#[derive(Clone, Debug)]
pub struct Folder {
    dir: PathBuf,
    /// The folders between the project and this folder.
    above: Vec<PathBuf>,
    /// Whether this is the folder of an older tool, which is used in place.
    is_legacy: bool,
}

/// The memory folder of an older tool, in a project.
pub const LEGACY_DIR: &str = ".cursor/skills/memory-data";

/// The memory folder of the user, in the home store.
const USER_DIR: &str = "user-memory";

/// The file of facts that older tools wrote.
pub(crate) const OLD_FACTS: &str = "facts.jsonl";

/// How often lines are appended again because another program replaced the file at the same time.
const MAX_APPENDS: usize = 20;

/// Whether an append must be on the disk before it is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendSync {
    Yes,
    /// For a line whose loss does no harm.
    No,
}

impl Folder {
    /// Returns the memory folder of a project, which need not exist.
    pub fn of(project: &Path) -> Folder {
        let (dir, old) = (project.join(STORE_DIR).join("memory"), project.join(LEGACY_DIR));
        let is_legacy = !dir.is_dir() && old.is_dir();
        let dir = if is_legacy { old } else { dir };
        let above =
            dir.ancestors().skip(1).take_while(|above| *above != project).map(Path::to_owned).collect();
        Folder { dir, above, is_legacy }
    }

    /// Returns the memory folder of the user, which need not exist.
    pub fn of_user(home: &Path) -> Folder {
        Folder { dir: home.join(USER_DIR), above: Vec::new(), is_legacy: false }
    }

    /// Returns the folder of the memories of a joined project that stay on this machine, which need not exist.
    pub(crate) fn of_machine(own: &Path) -> Folder {
        Folder { dir: own.join("memory"), above: Vec::new(), is_legacy: false }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn exists(&self) -> bool {
        self.dir.is_dir()
    }

    pub fn memory_md(&self) -> PathBuf {
        self.dir.join("MEMORY.md")
    }

    pub fn sessions(&self) -> PathBuf {
        self.dir.join("sessions.jsonl")
    }

    /// Returns the path of the facts of an older tool, which are read and never written.
    pub fn old_facts(&self) -> PathBuf {
        self.dir.join(OLD_FACTS)
    }

    pub fn daily(&self, at: Millis) -> PathBuf {
        self.dir.join("daily").join(format!("{}.jsonl", clock::utc_day(at)))
    }

    /// Returns the path of the index. In a legacy folder it has another name, because `index.sqlite` belongs to
    /// the older tool.
    pub fn index(&self) -> PathBuf {
        self.dir.join(if self.is_legacy { "tanmi-index.sqlite" } else { "index.sqlite" })
    }

    /// Returns whether the index has no damage. A folder that is a link is reported by every use of the memory.
    pub fn is_index_sound(&self) -> bool {
        self.check_folders().is_err() || tanmi_index::is_sound(&self.index())
    }

    /// Deletes the index; the next use creates it again.
    pub fn discard_index(&self) {
        if self.check_folders().is_ok() {
            tanmi_index::discard(&self.index());
        }
    }

    /// Creates the folder. With `shared`, memories may be committed to Git; otherwise they are ignored.
    pub fn create(&self, shared: bool) -> Result<()> {
        self.check_folders()?;
        // Not the folder of the project: if it is gone, the project was moved.
        for dir in self.dir.parent().into_iter().chain([self.dir.as_path(), &self.dir.join("daily")]) {
            ensure_dir(dir).map_err(Error::io(dir))?;
        }
        let ignore = self.dir.join(".gitignore");
        if !self.is_legacy && !ignore.exists() {
            let text = if shared { "index.sqlite*\n.lock\n" } else { "*\n" };
            fs::write_atomic(&ignore, text.as_bytes(), &self.dir, fs::Durability::Journaled)
                .map_err(Error::io(&ignore))?;
        }
        Ok(())
    }

    pub fn lock(&self) -> Result<Lock> {
        self.check_folders()?;
        Ok(Lock::exclusive(&self.dir.join(".lock"))?)
    }

    /// Fails if a folder is a symbolic link, which could lead anywhere.
    fn check_folders(&self) -> Result<()> {
        let above =
            self.above.iter().try_for_each(|folder| fs::check_folder(folder).map_err(Error::io(folder)));
        let own = [self.dir.clone(), self.dir.join("daily")];
        above.and(own.iter().try_for_each(|folder| fs::check_own_folder(folder).map_err(Error::io(folder))))
    }

    /// Returns whether the memory can be read and written without following a link or waiting for a pipe.
    pub fn has_only_regular_files(&self) -> bool {
        let is_regular = |path: &PathBuf| {
            std::fs::symlink_metadata(path).map_or_else(|error| fs::is_absent(&error), |meta| meta.is_file())
        };
        self.check_folders().is_ok()
            && [self.index(), self.sessions(), self.memory_md()].iter().all(is_regular)
    }

    /// Returns today's file, or a later one if that already exists. The last record stays last even if the clock
    /// was set back.
    pub fn latest_daily(&self, now: Millis) -> PathBuf {
        let today = self.daily(now);
        let entries = std::fs::read_dir(self.dir.join("daily")).into_iter().flatten().flatten();
        let last = entries
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
            .map(|entry| entry.path());
        last.filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
            .max()
            .unwrap_or_default()
            .max(today)
    }

    /// Appends complete lines. If the file ends in a torn line, only that line is lost. The caller holds the
    /// lock.
    pub fn append(&self, _lock: &Lock, path: &Path, lines: &str, sync: AppendSync) -> Result<()> {
        self.check_folders()?;
        if let Some(dir) = path.parent() {
            ensure_dir(dir).map_err(Error::io(dir))?;
        }
        let write = || -> std::io::Result<bool> {
            let mut options = std::fs::OpenOptions::new();
            let (mut file, meta) = fs::open_regular(path, options.read(true).append(true).create(true))?;
            let end = file.seek(SeekFrom::End(0))?;
            let mut text = String::with_capacity(lines.len() + 2);
            if end > 0 {
                file.seek(SeekFrom::Start(end - 1))?;
                let mut last = [0u8];
                file.read_exact(&mut last)?;
                if last[0] != b'\n' {
                    text.push('\n');
                }
            }
            text.push_str(lines);
            if !text.ends_with('\n') {
                text.push('\n');
            }
            if let Err(error) = file.write_all(text.as_bytes()) {
                // Remove the partial text: it was not acknowledged.
                let _ = file.set_len(end);
                return Err(error);
            }
            if sync == AppendSync::Yes {
                file.sync_data()?;
            }
            // An editor may have saved another file under this name since it was opened.
            Ok(fs::is_at(&meta, path))
        };
        for _ in 0..MAX_APPENDS {
            if write().map_err(Error::io(path))? {
                return Ok(());
            }
        }
        Err(Error::io(path)(std::io::ErrorKind::ResourceBusy.into()))
    }

    /// Removes the session start and end lines of days before `oldest`. A file without any other line is deleted;
    /// records stay.
    pub fn drop_session_lines(&self, oldest: Millis) -> Result<()> {
        let last = clock::utc_day(oldest);
        let folders = fs::SwapFolders::beside(&self.dir);
        let is_day = |name: &str| {
            let day = name.strip_prefix("daily/").and_then(|name| name.strip_suffix(".jsonl"));
            day.filter(|day| clock::is_day(day)).is_some_and(|day| day < last.as_str())
        };
        let lock = self.lock()?;
        fs::recover_swaps(&folders, is_day).map_err(Error::io(&self.dir))?;
        drop(lock);
        for (name, path) in self.files()?.into_iter().filter(|(name, _)| is_day(name)) {
            let read = fs::read_regular(&path, fs::MAX_FILE).map_err(Error::io(&path))?;
            let Some((bytes, sig)) = read else { continue };
            let is_session_line = |line: &[u8]| {
                contains(line, b"\"session_")
                    && matches!(crate::record::read_line(line, &name), crate::record::Line::Session)
            };
            let lines = || bytes.split_inclusive(|byte| *byte == b'\n');
            if !lines().any(is_session_line) {
                continue;
            }
            let lock = self.lock()?;
            let kept: Vec<u8> = lines().filter(|line| !is_session_line(line)).flatten().copied().collect();
            // If another program changed the file meanwhile, a later call removes the lines.
            if fs::FileSig::of(&path).map_err(Error::io(&path))? != Some(sig) {
                continue;
            }
            let done = match kept.trim_ascii().is_empty() {
                true => fs::remove_if(&path, &folders, sig).map(|_| ()),
                false => fs::replace_if(&path, &kept, &folders, fs::Durability::Synced, sig).map(|_| ()),
            };
            done.map_err(Error::io(&path))?;
            drop(lock);
        }
        Ok(())
    }

    /// Returns the files that contain records, in the order of reading: the oldest day first.
    pub fn files(&self) -> Result<Vec<(String, PathBuf)>> {
        self.check_folders()?;
        let mut files = Vec::new();
        let old = self.old_facts();
        if old.is_file() && !fs::is_link(&old) {
            files.push((String::from(OLD_FACTS), old));
        }
        let daily = self.dir.join("daily");
        let entries = match std::fs::read_dir(&daily) {
            Err(error) if fs::is_absent(&error) => None,
            other => Some(other.map_err(Error::io(&daily))?),
        };
        let mut days: Vec<String> = entries
            .into_iter()
            .flatten()
            .flatten()
            // Folders, links and pipes are ignored.
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| name.ends_with(".jsonl"))
            .collect();
        days.sort();
        files.extend(days.into_iter().map(|name| (format!("daily/{name}"), daily.join(name))));
        if self.sessions().is_file() && !fs::is_link(&self.sessions()) {
            files.push((String::from("sessions.jsonl"), self.sessions()));
        }
        Ok(files)
    }
}

fn contains(line: &[u8], part: &[u8]) -> bool {
    line.windows(part.len()).any(|window| window == part)
}
