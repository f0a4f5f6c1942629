//! File operations: identity, atomic replacement, removal. Every write of the program goes through these
//! functions.
//!
//! This module does not know what the files contain.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};

mod aside;
mod open;
mod replace;

pub use aside::{find_set_aside, set_aside};
pub(crate) use open::refuse;
pub use open::{
    check_folder, check_own_folder, check_private_folder, check_unopened, create_private, explain, open_own,
    open_private, open_regular, read_regular, refusal,
};
pub use replace::{Swap, SwapFolders, SwapOutcome, has_abandoned_swap, recover_swaps, remove_if, replace_if};
pub(crate) use replace::{is_kept_path, kept_path};

/// Raises the number of files and connections that this process may have open to the most that the system
/// allows. Where that is not possible, the limit stays.
pub fn raise_open_files() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}

/// Identity of a file's content on disk: modification time, size and inode. Tells whether a file changed since it
/// was read.
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

    /// Returns the signature of a file, or `None` if there is no such file.
    pub fn of(path: &Path) -> io::Result<Option<FileSig>> {
        match std::fs::metadata(path) {
            Ok(meta) => Ok(Some(FileSig::from_metadata(&meta))),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Returns a number that changes when one of these files changes, appears or disappears.
pub fn revision(paths: impl IntoIterator<Item = PathBuf>) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    for sig in paths.into_iter().filter_map(|path| FileSig::of(&path).ok()?) {
        (sig.mtime_ns, sig.size, sig.inode).hash(&mut hasher);
    }
    hasher.finish()
}

/// Returns whether an error means that nothing exists at the path: the file is missing, or a parent is not a
/// folder.
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

/// Returns the number of hard links of a folder (on most Unix file systems: its subfolders + 2), or 0 where the
/// system has no such count.
#[cfg(unix)]
pub fn link_count(meta: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::nlink(meta)
}

#[cfg(not(unix))]
pub fn link_count(_: &Metadata) -> u64 {
    0
}

/// Returns an unused file name in `dir`, unique across processes.
pub(crate) fn temp_path(dir: &Path) -> PathBuf {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let n = COUNTER.fetch_add(1, Ordering::Relaxed);
    dir.join(format!("tmp-{}-{n}-{}", std::process::id(), crate::id::random(6)))
}

/// Returns whether a temporary file or folder of this program can have this name.
pub(crate) fn is_temp_name(name: &std::ffi::OsStr) -> bool {
    name.to_str().is_some_and(|name| name.starts_with("tmp-") || name.starts_with("swap-"))
}

/// Returns whether this is the name of a temporary file of a process that no longer runs. Returns `false` where
/// that cannot be determined.
pub fn is_leftover(name: &str) -> bool {
    let parts: Vec<&str> = name.strip_prefix("tmp-").unwrap_or_default().split('-').collect();
    let [pid, count, random] = parts.as_slice() else { return false };
    let is_ours = count.parse::<u32>().is_ok() && random.len() == 6;
    let pid = pid.parse::<u32>().ok().filter(|_| is_ours);
    pid.is_some_and(|pid| is_running(pid) == Some(false))
}

/// Returns whether a process runs, or `None` where that cannot be determined.
fn is_running(pid: u32) -> Option<bool> {
    let processes = Path::new("/proc");
    processes.join("self").exists().then(|| processes.join(pid.to_string()).exists())
}

/// Whether the bytes must be on the disk before the call returns, or can be restored from a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    Synced,
    Journaled,
}

/// Replaces `path` atomically, using a temporary file in `temp_dir` (on the same file system). Returns the new
/// signature.
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

fn sync_parent(path: &Path, durability: Durability) {
    if durability == Durability::Synced
        && let Some(parent) = path.parent()
    {
        sync_dir(parent);
    }
}

/// Creates a file atomically if there is none. Returns `None` if another process created it first.
pub fn create_atomic(
    path: &Path,
    bytes: &[u8],
    temp_dir: &Path,
    durability: Durability,
) -> io::Result<Option<FileSig>> {
    let temp = temp_path(temp_dir);
    // A hard link never replaces an existing file.
    let made = write_new(&temp, bytes, durability).and_then(|sig| match std::fs::hard_link(&temp, path) {
        Ok(()) => Ok(Some(sig)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
        // No hard links on this file system.
        Err(_) if !path.exists() => std::fs::rename(&temp, path).map(|()| Some(sig)),
        Err(_) => Ok(None),
    });
    let _ = std::fs::remove_file(&temp);
    sync_parent(path, durability);
    made
}

/// Writes a new file with the owner of the file it will replace. Invariant: it is never less private than that
/// file, from its first byte on.
fn write_like(old: &Path, new: &Path, bytes: &[u8], durability: Durability) -> io::Result<FileSig> {
    let mut file = open_like(old, new)?;
    file.write_all(bytes)?;
    copy_mode(old, new)?;
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
        // Only root can change the owner, and only root needs to.
        let _ = std::os::unix::fs::chown(new, Some(meta.uid()), Some(meta.gid()));
    }
    Ok(file)
}

#[cfg(not(unix))]
fn open_like(_: &Path, new: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(new)
}

/// Like [`write_atomic`], synced; the file and its folder are readable only by their owner.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    create_private_dir(dir)?;
    replace_private(path, bytes, dir, Durability::Synced)
}

/// Like [`write_atomic`], but the file is readable only by its owner, also if the old file was not.
pub fn replace_private(path: &Path, bytes: &[u8], temp_dir: &Path, durability: Durability) -> io::Result<()> {
    let temp = temp_path(temp_dir);
    let written = write_new_private(&temp, bytes, durability).and_then(|_| std::fs::rename(&temp, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&temp);
    }
    sync_parent(path, durability);
    written
}

/// Copies the permissions of the old file, so that a shared file stays shared and a private file stays private.
#[cfg(unix)]
fn copy_mode(old: &Path, new: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let Ok(meta) = std::fs::metadata(old) else { return Ok(()) };
    let mode = meta.permissions().mode() & 0o777;
    if std::fs::metadata(new)?.permissions().mode() & 0o777 != mode {
        std::fs::set_permissions(new, std::fs::Permissions::from_mode(mode))?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn copy_mode(_: &Path, _: &Path) -> io::Result<()> {
    Ok(())
}

/// Writes a file that must not exist yet.
pub fn write_new(path: &Path, bytes: &[u8], durability: Durability) -> io::Result<FileSig> {
    write_created(OpenOptions::new().write(true).create_new(true).open(path)?, bytes, durability)
}

/// Like [`write_new`]; the file is readable only by its owner. The mode is set at creation, because the folder may be
/// open to other users.
pub fn write_new_private(path: &Path, bytes: &[u8], durability: Durability) -> io::Result<FileSig> {
    let (file, _) = open_private(path, OpenOptions::new().write(true).create_new(true))?;
    write_created(file, bytes, durability)
}

fn write_created(mut file: File, bytes: &[u8], durability: Durability) -> io::Result<FileSig> {
    file.write_all(bytes)?;
    if durability == Durability::Synced {
        file.sync_data()?;
    }
    Ok(FileSig::from_metadata(&file.metadata()?))
}

/// Appends in one write, so that lines of several processes are not mixed. The file is readable only by its owner.
pub fn append_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (mut file, _) = open_private(path, OpenOptions::new().append(true).create(true))?;
    let written = file.write_all(bytes);
    if written.is_err() {
        // End the partial line, so that it does not spoil the next one.
        let _ = file.write_all(b"\n");
    }
    written
}

/// Sets the modification time of a file, and creates it if it is missing. A new file is readable only by its owner.
pub fn touch_private(path: &Path, at: crate::Millis) -> io::Result<()> {
    append_private(path, b"")?;
    let at = std::time::Duration::from_millis(u64::try_from(at).unwrap_or(0));
    OpenOptions::new().append(true).open(path)?.set_modified(std::time::UNIX_EPOCH + at)
}

/// Makes a folder's entries durable. Best effort: some systems cannot, and then only the order of renames
/// protects them.
pub fn sync_dir(dir: &Path) {
    if let Ok(file) = File::open(dir) {
        let _ = file.sync_all();
    }
}

/// Makes everything written so far on the file system of `within` durable, if the system has a call for it.
#[cfg(target_os = "linux")]
pub fn sync_file_system(within: &File) -> io::Result<()> {
    rustix::fs::syncfs(within).map_err(io::Error::from)
}

/// Does nothing: on these systems each data file is synced when it is written.
#[cfg(not(target_os = "linux"))]
pub fn sync_file_system(_: &File) -> io::Result<()> {
    Ok(())
}

/// Reads a file; returns `None` if it is missing.
pub fn read_optional(path: &Path) -> io::Result<Option<Vec<u8>>> {
    read_limited(path, MAX_FILE)
}

/// Far above the size of any file the program writes, and still small enough to hold in memory.
pub const MAX_FILE: u64 = 256 << 20;

/// Like [`read_optional`], for files that other programs may have created. A pipe, a device or a file longer than
/// `max` is an error and is never opened.
pub fn read_limited(path: &Path, max: u64) -> io::Result<Option<Vec<u8>>> {
    match open::open_followed(path, OpenOptions::new().read(true)) {
        Ok((file, meta)) => open::read_up_to(&file, &meta, max).map(Some),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Removes a file or a folder with its content permanently; a missing path is not an error. Never follows a
/// symbolic link.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    let removed = match std::fs::symlink_metadata(path) {
        Err(error) => Err(error),
        #[allow(clippy::disallowed_methods)] // the only call in the program
        Ok(meta) if meta.is_dir() => std::fs::remove_dir_all(path),
        Ok(_) => std::fs::remove_file(path),
    };
    match removed {
        Err(error) if !is_absent(&error) => Err(error),
        _ => Ok(()),
    }
}

/// Returns whether `path` is a symbolic link. The program never creates its folders as links.
pub fn is_link(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_symlink())
}

/// Returns whether the system lets this user read what is at a path, and with `write` change it, too. For a folder that
/// includes the files in it.
#[cfg(unix)]
pub fn is_accessible(path: &Path, write: bool) -> bool {
    use rustix::fs::{Access, access};
    let mut wanted = Access::READ_OK;
    wanted.set(Access::WRITE_OK, write);
    wanted.set(Access::EXEC_OK, path.is_dir());
    access(path, wanted).is_ok()
}

/// Windows has no call for it; a failed write tells.
#[cfg(not(unix))]
pub fn is_accessible(_: &Path, _: bool) -> bool {
    true
}

/// Returns whether a path still names the file that was opened.
#[cfg(unix)]
pub fn is_at(held: &Metadata, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::symlink_metadata(path).is_ok_and(|named| held.ino() == named.ino() && held.dev() == named.dev())
}

/// Windows refuses to move a folder that contains an open file, so the path still names the file we hold.
#[cfg(not(unix))]
pub fn is_at(_: &Metadata, path: &Path) -> bool {
    path.exists()
}

/// Creates a folder and its parents; new folders are readable only by their owner.
pub fn create_private_dir(path: &Path) -> io::Result<()> {
    private_dir_builder().recursive(true).create(path)
}

/// Returns a builder of folders that are readable only by their owner.
#[cfg(unix)]
pub(crate) fn private_dir_builder() -> std::fs::DirBuilder {
    let mut builder = std::fs::DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

#[cfg(not(unix))]
pub(crate) fn private_dir_builder() -> std::fs::DirBuilder {
    std::fs::DirBuilder::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_leftover_matches_only_names_of_dead_processes() {
        assert!(is_leftover("tmp-4194304-0-abcdef"));
        assert!(
            !is_leftover(&temp_path(Path::new("/")).file_name().unwrap().to_string_lossy()),
            "process is alive"
        );
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

    #[cfg(target_os = "linux")]
    #[test]
    fn read_limited_file_without_honest_length_is_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("/proc/self/maps", &link).unwrap();
        assert_eq!(std::fs::metadata(&link).unwrap().len(), 0);
        assert_eq!(read_limited(&link, 10).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert!(read_limited(&link, 1 << 20).unwrap().unwrap().len() > 10);
        let pipe = dir.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert!(read_limited(&pipe, 10).is_err(), "a pipe without a writer does not block");
        assert!(read_limited(Path::new("/dev/zero"), 10).is_err());
    }

    #[test]
    fn write_atomic_replaces_file_and_leaves_no_temp() {
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
    fn write_atomic_failure_keeps_old_file_and_leaves_no_temp() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("folder");
        std::fs::create_dir(&target).unwrap();
        assert!(write_atomic(&target, b"x", dir.path(), Durability::Synced).is_err());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
