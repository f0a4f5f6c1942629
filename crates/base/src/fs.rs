//! Files: identity, atomic replacement, removal. Every write of the program ends in one of these functions.
//!
//! What is written and why is not known here.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use md5::{Digest, Md5};
use serde::{Deserialize, Serialize};

/// What tells whether a file is still the one that was read: modification time, size and inode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSig {
    #[serde(rename = "m")]
    pub mtime_ns: i64,
    #[serde(rename = "s")]
    pub size: u64,
    #[serde(rename = "i")]
    pub inode: u64,
}

impl FileSig {
    pub fn from_metadata(meta: &Metadata) -> FileSig {
        FileSig { mtime_ns: mtime_ns(meta), size: meta.len(), inode: inode(meta) }
    }

    /// `None` if there is no such file.
    pub fn of(path: &Path) -> io::Result<Option<FileSig>> {
        match std::fs::metadata(path) {
            Ok(meta) => Ok(Some(FileSig::from_metadata(&meta))),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Missing, or below something that is not a folder: either way there is nothing there.
pub fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn mtime_ns(meta: &Metadata) -> i64 {
    let Ok(modified) = meta.modified() else { return 0 };
    match modified.duration_since(std::time::UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_nanos()).unwrap_or(i64::MAX),
    }
}

#[cfg(unix)]
fn inode(meta: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(meta)
}

#[cfg(not(unix))]
fn inode(_: &Metadata) -> u64 {
    0
}

/// How many names a folder has (on most Unix file systems: its subfolders + 2). 0 where nobody counts.
#[cfg(unix)]
pub fn link_count(meta: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::nlink(meta)
}

#[cfg(not(unix))]
pub fn link_count(_: &Metadata) -> u64 {
    0
}

/// Content identity for freshness and recovery; not a defence against anybody.
pub fn md5_hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(32);
    for byte in Md5::digest(bytes) {
        let _ = write!(out, "{byte:02x}");
    }
    out
}

/// A name nobody else uses at this moment, in `dir`.
pub fn temp_path(dir: &Path) -> PathBuf {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let n = COUNTER.fetch_add(1, Ordering::Relaxed);
    dir.join(format!("tmp-{}-{n}-{}", std::process::id(), crate::id::random(6)))
}

/// Whether the bytes must be on the disk before the call returns, or may follow from a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    Synced,
    Journaled,
}

/// Replaces `path` in one step, by way of a temporary file in `temp_dir` (same file system). Returns the new identity.
pub fn write_atomic(
    path: &Path,
    bytes: &[u8],
    temp_dir: &Path,
    durability: Durability,
) -> io::Result<FileSig> {
    let temp = temp_path(temp_dir);
    let written =
        write_new(&temp, bytes, durability).and_then(|sig| std::fs::rename(&temp, path).map(|()| sig));
    if written.is_err() {
        let _ = std::fs::remove_file(&temp);
    }
    if durability == Durability::Synced
        && let Some(parent) = path.parent()
    {
        sync_dir(parent);
    }
    written
}

/// Writes a file that must not exist yet.
pub fn write_new(path: &Path, bytes: &[u8], durability: Durability) -> io::Result<FileSig> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(bytes)?;
    if durability == Durability::Synced {
        file.sync_data()?;
    }
    Ok(FileSig::from_metadata(&file.metadata()?))
}

/// Makes a folder's entries durable. Best effort: some systems cannot, and then rename order is all there is.
pub fn sync_dir(dir: &Path) {
    if let Ok(file) = File::open(dir) {
        let _ = file.sync_all();
    }
}

/// Makes everything written so far on the file system of `within` durable.
#[cfg(target_os = "linux")]
pub fn sync_file_system(within: &File, _touched: &mut dyn Iterator<Item = PathBuf>) -> io::Result<()> {
    rustix::fs::syncfs(within).map_err(io::Error::from)
}

/// Makes the given files durable, one by one, where the system has no call for all of them.
#[cfg(not(target_os = "linux"))]
pub fn sync_file_system(_within: &File, touched: &mut dyn Iterator<Item = PathBuf>) -> io::Result<()> {
    for path in touched {
        match OpenOptions::new().read(true).open(&path) {
            Ok(file) => file.sync_all()?,
            Err(error) if is_absent(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads a file that may be missing.
pub fn read_optional(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Removes a file or a whole folder for good; missing is fine. Never follows a symbolic link.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    let removed = match std::fs::symlink_metadata(path) {
        Err(error) => Err(error),
        #[allow(clippy::disallowed_methods)] // the one door
        Ok(meta) if meta.is_dir() => std::fs::remove_dir_all(path),
        Ok(_) => std::fs::remove_file(path),
    };
    match removed {
        Err(error) if !is_absent(&error) => Err(error),
        _ => Ok(()),
    }
}

/// Creates a folder and what is above it; what is new is readable by its owner alone.
pub fn create_private_dir(path: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_atomic_replaces_and_leaves_no_temp() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.md");
        for (text, durability) in [("one", Durability::Synced), ("two", Durability::Journaled)] {
            let sig = write_atomic(&path, text.as_bytes(), dir.path(), durability).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
            assert_eq!(FileSig::of(&path).unwrap(), Some(sig));
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_failed_write_leaves_the_old_file_and_no_temp() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("folder");
        std::fs::create_dir(&target).unwrap();
        assert!(write_atomic(&target, b"x", dir.path(), Durability::Synced).is_err());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
