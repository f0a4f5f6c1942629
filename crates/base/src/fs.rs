//! Files: identity, atomic replacement, removal. Every write of the program ends in one of these functions.
//!
//! What is written and why is not known here.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

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

/// A name nobody else uses at this moment, in `dir`.
pub(crate) fn temp_path(dir: &Path) -> PathBuf {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let n = COUNTER.fetch_add(1, Ordering::Relaxed);
    dir.join(format!("tmp-{}-{n}-{}", std::process::id(), crate::id::random(6)))
}

/// Whether a file of this name was left by a process that is no more. Where nobody can tell, none was.
pub fn is_leftover(name: &str) -> bool {
    let parts: Vec<&str> = name.strip_prefix("tmp-").unwrap_or_default().split('-').collect();
    let [pid, count, random] = parts.as_slice() else { return false };
    let is_ours = count.parse::<u32>().is_ok() && random.len() == 6;
    let pid = pid.parse::<u32>().ok().filter(|_| is_ours);
    let processes = Path::new("/proc");
    pid.is_some_and(|pid| processes.join("self").exists() && !processes.join(pid.to_string()).exists())
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
        write_like(path, &temp, bytes, durability).and_then(|sig| std::fs::rename(&temp, path).map(|()| sig));
    if written.is_err() {
        let _ = std::fs::remove_file(&temp);
    }
    sync_parent(path, durability);
    written
}

/// As [`write_atomic`], but only if the file is still `expected`: what is replaced is looked at once more when it can no
/// longer change its name. `None` means that somebody else's file was there, and still is.
pub fn replace_if(
    path: &Path,
    bytes: &[u8],
    temp_dir: &Path,
    durability: Durability,
    expected: FileSig,
) -> io::Result<Option<FileSig>> {
    let temp = temp_path(temp_dir);
    let written = write_like(path, &temp, bytes, durability);
    let swapped = written.and_then(|sig| Ok((sig, exchange(&temp, path)?)));
    let outcome = match swapped {
        Err(error) => Err(error),
        // No such call here: the look before this one has to do.
        Ok((sig, false)) => std::fs::rename(&temp, path).map(|()| Some(sig)),
        // One that cannot be looked at is not known to be the expected one.
        Ok((sig, true)) if FileSig::of(&temp).is_ok_and(|was| was == Some(expected)) => Ok(Some(sig)),
        Ok((sig, true)) => put_back(&temp, path, sig).map(|()| None),
    };
    let _ = std::fs::remove_file(&temp);
    sync_parent(path, durability);
    outcome
}

fn sync_parent(path: &Path, durability: Durability) {
    if durability == Durability::Synced
        && let Some(parent) = path.parent()
    {
        sync_dir(parent);
    }
}

/// Somebody else's file was there: it goes back. If yet another one came in between, that one is the latest and stays.
fn put_back(temp: &Path, path: &Path, own: FileSig) -> io::Result<()> {
    exchange(temp, path)?;
    if FileSig::of(temp)?.is_some_and(|sig| sig.inode != own.inode) {
        exchange(temp, path)?;
    }
    Ok(())
}

/// Creates a file in one step, if there is none. `false` if somebody was quicker.
pub fn create_atomic(path: &Path, bytes: &[u8], temp_dir: &Path, durability: Durability) -> io::Result<bool> {
    let temp = temp_path(temp_dir);
    // A second name for a file cannot take the place of another file.
    let made = write_new(&temp, bytes, durability).and_then(|_| match std::fs::hard_link(&temp, path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        // No second names on this file system.
        Err(_) if !path.exists() => std::fs::rename(&temp, path).map(|()| true),
        Err(_) => Ok(false),
    });
    let _ = std::fs::remove_file(&temp);
    sync_parent(path, durability);
    made
}

/// Removes a file, if it is still this one. `false` if it is another, which stays.
pub fn remove_if(path: &Path, temp_dir: &Path, expected: FileSig) -> io::Result<bool> {
    let temp = temp_path(temp_dir);
    std::fs::rename(path, &temp)?;
    if FileSig::of(&temp)? == Some(expected) {
        return std::fs::remove_file(&temp).map(|()| true);
    }
    // Back under its name, unless there is a newer one by now.
    if std::fs::hard_link(&temp, path).is_err() && !path.exists() {
        return std::fs::rename(&temp, path).map(|()| false);
    }
    std::fs::remove_file(&temp).map(|()| false)
}

/// A new file that is as private as the one it is going to replace, from its first byte on, and belongs to the same owner.
fn write_like(old: &Path, new: &Path, bytes: &[u8], durability: Durability) -> io::Result<FileSig> {
    let mut file = open_like(old, new)?;
    file.write_all(bytes)?;
    keep_mode(old, new)?;
    if durability == Durability::Synced {
        file.sync_data()?;
    }
    Ok(FileSig::from_metadata(&file.metadata()?))
}

#[cfg(unix)]
fn open_like(old: &Path, new: &Path) -> io::Result<File> {
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
    let Ok(meta) = std::fs::metadata(old) else {
        return OpenOptions::new().write(true).create_new(true).open(new);
    };
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(meta.mode() & 0o777 | 0o600).open(new)?;
    let own = file.metadata()?;
    if (own.uid(), own.gid()) != (meta.uid(), meta.gid()) {
        // Only root can, and only root needs to.
        let _ = std::os::unix::fs::chown(new, Some(meta.uid()), Some(meta.gid()));
    }
    Ok(file)
}

#[cfg(not(unix))]
fn open_like(_: &Path, new: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(new)
}

/// Swaps two files in one step. `false` where the system or the file system cannot.
#[cfg(target_os = "linux")]
fn exchange(a: &Path, b: &Path) -> io::Result<bool> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    match renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS | rustix::io::Errno::OPNOTSUPP) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn exchange(_: &Path, _: &Path) -> io::Result<bool> {
    Ok(false)
}

/// As [`write_atomic`], synced, in a folder and with a file that are for their owner alone.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    create_private_dir(dir)?;
    let temp = temp_path(dir);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    // From the beginning: a folder that was there before may be open to others.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options
        .open(&temp)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_data()))
        .and_then(|()| std::fs::rename(&temp, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&temp);
    }
    sync_dir(dir);
    written
}

/// A file that a group shares, or that only its owner may read, stays so.
#[cfg(unix)]
fn keep_mode(old: &Path, new: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let Ok(meta) = std::fs::metadata(old) else { return Ok(()) };
    let mode = meta.permissions().mode() & 0o777;
    if std::fs::metadata(new)?.permissions().mode() & 0o777 != mode {
        std::fs::set_permissions(new, std::fs::Permissions::from_mode(mode))?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn keep_mode(_: &Path, _: &Path) -> io::Result<()> {
    Ok(())
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

/// Appends in one write, so that lines of several processes stay whole. A new file is its owner's alone.
pub fn append_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    // A pipe would wait for its reader.
    if std::fs::metadata(path).is_ok_and(|meta| !meta.is_file()) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut file = options.open(path)?;
    let written = file.write_all(bytes);
    if written.is_err() {
        // Whatever got in is a line of its own, and costs nobody else's.
        let _ = file.write_all(b"\n");
    }
    written
}

/// Makes a folder's entries durable. Best effort: some systems cannot, and then rename order is all there is.
pub fn sync_dir(dir: &Path) {
    if let Ok(file) = File::open(dir) {
        let _ = file.sync_all();
    }
}

/// Makes everything written so far on the file system of `within` durable, where the system has a call for it.
#[cfg(target_os = "linux")]
pub fn sync_file_system(within: &File) -> io::Result<()> {
    rustix::fs::syncfs(within).map_err(io::Error::from)
}

/// Elsewhere data files are synced one by one when they are written.
#[cfg(not(target_os = "linux"))]
pub fn sync_file_system(_: &File) -> io::Result<()> {
    Ok(())
}

/// Reads a file that may be missing.
pub fn read_optional(path: &Path) -> io::Result<Option<Vec<u8>>> {
    read_limited(path, MAX_FILE)
}

/// Far above every file of ours, and still something a process can hold.
const MAX_FILE: u64 = 256 << 20;

/// As [`read_optional`], for files that others may have put there: a pipe, a device or a giant is an error and is never
/// opened.
pub fn read_limited(path: &Path, max: u64) -> io::Result<Option<Vec<u8>>> {
    let meta = match std::fs::metadata(path) {
        Ok(meta) => meta,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    if !meta.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    if meta.len() > max {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("longer than {max} bytes")));
    }
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

/// Whether `path` is a symbolic link, which no folder of ours ever is.
pub fn is_link(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_symlink())
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
    fn nobody_else_s_file_is_replaced_or_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        assert!(create_atomic(&path, b"one", dir.path(), Durability::Journaled).unwrap());
        assert!(!create_atomic(&path, b"two", dir.path(), Durability::Journaled).unwrap(), "it is there");
        let read = FileSig::of(&path).unwrap().unwrap();
        write_atomic(&path, b"theirs", dir.path(), Durability::Journaled).unwrap();
        assert_eq!(replace_if(&path, b"ours", dir.path(), Durability::Journaled, read).unwrap(), None);
        assert!(!remove_if(&path, dir.path(), read).unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), b"theirs");
        // Theirs was swapped out; before it is put back, they write once more.
        let (temp, own) =
            (dir.path().join("t"), write_new(&dir.path().join("o"), b"ours", Durability::Journaled).unwrap());
        std::fs::rename(&path, &temp).unwrap();
        write_new(&path, b"newest", Durability::Journaled).unwrap();
        put_back(&temp, &path, own).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"newest");
        let now = FileSig::of(&path).unwrap().unwrap();
        assert!(remove_if(&path, dir.path(), now).unwrap() && !path.exists());
    }

    #[test]
    fn names_that_dead_processes_leave() {
        assert!(is_leftover("tmp-4194304-0-abcdef"));
        assert!(!is_leftover(&temp_path(Path::new("/")).file_name().unwrap().to_string_lossy()), "alive");
        for name in [
            "tmp-notes",
            "tmp-4194304",
            "tmp-4194304-x-abcdef",
            "tmp-4194304-0-abc",
            "x-tmp-4194304-0-abcdef",
        ] {
            assert!(!is_leftover(name), "{name}");
        }
    }

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
    fn replace_if_gives_way_to_somebody_else_s_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.md");
        let seen = write_atomic(&path, b"one", dir.path(), Durability::Journaled).unwrap();
        write_atomic(&path, b"by hand", dir.path(), Durability::Journaled).unwrap();
        assert_eq!(replace_if(&path, b"two", dir.path(), Durability::Journaled, seen).unwrap(), None);
        assert_eq!(std::fs::read(&path).unwrap(), b"by hand");
        let seen = FileSig::of(&path).unwrap().unwrap();
        assert!(replace_if(&path, b"two", dir.path(), Durability::Journaled, seen).unwrap().is_some());
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
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
