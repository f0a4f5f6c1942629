//! A project's memory on disk: `MEMORY.md`, `daily/YYYY-MM-DD.jsonl`, `sessions.jsonl`, and the index beside them.
//!
//! Files are only appended to, under one lock, and every line is on the disk before it is acknowledged.

use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use tanmi_base::lock::Lock;
use tanmi_base::paths::STORE_DIR;
use tanmi_base::{Millis, clock, fs};

use crate::{Error, Result};

#[derive(Clone, Debug)]
pub struct Folder {
    dir: PathBuf,
    /// The folder of an older tool, used where it is.
    is_old: bool,
}

const OLD: &str = ".cursor/skills/memory-data";

/// Whether an append must be on the disk before it is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendSync {
    Yes,
    /// A note whose loss costs nothing.
    No,
}

impl Folder {
    /// Where a project's memory is, or would be.
    pub fn of(project: &Path) -> Folder {
        let (dir, old) = (project.join(STORE_DIR).join("memory"), project.join(OLD));
        if !dir.is_dir() && old.is_dir() {
            return Folder { dir: old, is_old: true };
        }
        Folder { dir, is_old: false }
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

    pub fn daily(&self, at: Millis) -> PathBuf {
        self.dir.join("daily").join(format!("{}.jsonl", clock::utc_day(at)))
    }

    /// Another tool's index is not ours to replace.
    pub fn index(&self) -> PathBuf {
        self.dir.join(if self.is_old { "tanmi-index.sqlite" } else { "index.sqlite" })
    }

    /// Makes the folder. `shared` says whether the memories belong into the repository.
    pub fn create(&self, shared: bool) -> Result<()> {
        let daily = self.dir.join("daily");
        std::fs::create_dir_all(&daily).map_err(Error::io(&daily))?;
        let ignore = self.dir.join(".gitignore");
        if !self.is_old && !ignore.exists() {
            let text = if shared { "index.sqlite*\n.lock\n" } else { "*\n" };
            fs::write_atomic(&ignore, text.as_bytes(), &self.dir, fs::Durability::Journaled)
                .map_err(Error::io(&ignore))?;
        }
        Ok(())
    }

    pub fn lock(&self) -> Result<Lock> {
        Ok(Lock::exclusive(&self.dir.join(".lock"))?)
    }

    /// A link could lead anywhere, and a pipe waits for somebody: neither is ours.
    fn check(&self, path: &Path) -> Result<()> {
        let odd = |what: &str| Err(Error::io(path)(std::io::Error::other(what.to_owned())));
        match std::fs::symlink_metadata(path) {
            Ok(meta) if meta.file_type().is_symlink() => odd("a symbolic link, which is not followed"),
            Ok(meta) if !meta.is_file() && !meta.is_dir() => odd("not a regular file"),
            _ => Ok(()),
        }
    }

    /// Whether everything that is written to is really here.
    pub fn is_sound(&self) -> bool {
        [self.dir.clone(), self.dir.join("daily"), self.index(), self.sessions(), self.memory_md()]
            .iter()
            .all(|path| self.check(path).is_ok())
            && self.dir.parent().is_none_or(|above| !fs::is_link(above))
    }

    /// The file of today, or a later one that is there already: what is said last stands last, whatever the clock says.
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

    /// Appends whole lines. A line that somebody left torn costs itself alone. Call it under the lock.
    pub fn append(&self, _lock: &Lock, path: &Path, lines: &str, durable: AppendSync) -> Result<()> {
        self.check(&self.dir)?;
        if let Some(dir) = path.parent() {
            self.check(dir)?;
            std::fs::create_dir_all(dir).map_err(Error::io(dir))?;
        }
        self.check(path)?;
        let work = || -> std::io::Result<()> {
            let mut options = std::fs::OpenOptions::new();
            options.read(true).append(true).create(true);
            let mut file = options.open(path)?;
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
                // What did not get in whole is taken back: it was not acknowledged.
                let _ = file.set_len(end);
                return Err(error);
            }
            if durable == AppendSync::Yes { file.sync_data() } else { Ok(()) }
        };
        work().map_err(Error::io(path))
    }

    /// Takes the lines of starts and ends out of days before `oldest`; a file that had nothing else goes. Records stay.
    pub fn drop_session_lines(&self, oldest: Millis) -> Result<()> {
        let last = clock::utc_day(oldest);
        for (name, path) in self.files()? {
            let day = name.strip_prefix("daily/").and_then(|name| name.strip_suffix(".jsonl"));
            if day.is_none_or(|day| day >= last.as_str()) {
                continue;
            }
            let Some(bytes) = fs::read_optional(&path).map_err(Error::io(&path))? else { continue };
            let is_note = |line: &[u8]| {
                contains(line, b"\"session_")
                    && matches!(crate::record::read_line(line, &name), crate::record::Line::Session)
            };
            let lines = || bytes.split_inclusive(|byte| *byte == b'\n');
            if !lines().any(is_note) {
                continue;
            }
            let lock = self.lock()?;
            let kept: Vec<u8> = lines().filter(|line| !is_note(line)).flatten().copied().collect();
            // Somebody may have appended meanwhile: then it waits for the next end.
            let is_same = fs::FileSig::of(&path)
                .map_err(Error::io(&path))?
                .is_some_and(|sig| sig.size == bytes.len() as u64);
            if is_same && kept.trim_ascii().is_empty() {
                std::fs::remove_file(&path).map_err(Error::io(&path))?;
            } else if is_same {
                fs::write_atomic(&path, &kept, &self.dir, fs::Durability::Synced)
                    .map_err(Error::io(&path))?;
            }
            drop(lock);
        }
        Ok(())
    }

    /// The files that hold records, in the order in which they are read: old days first.
    pub fn files(&self) -> Result<Vec<(String, PathBuf)>> {
        let mut files = Vec::new();
        let old = self.dir.join("facts.jsonl");
        if old.is_file() && !fs::is_link(&old) {
            files.push((String::from("facts.jsonl"), old));
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
            // Neither folders nor links nor pipes: one of those costs itself alone.
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
