//! Applies records to the files: for the first time, and again after a crash.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use super::{Change, CommitError, CommitResult, JournalPaths, MoveTarget, Recovery, RedoTargets, Trace};
use crate::fs::{self, Durability, FileSig, Swap, SwapFolders, SwapOutcome};
use crate::place::{ensure_dir, ensure_private_dir};

impl JournalPaths {
    pub(super) fn swap_folders(&self) -> SwapFolders<'_> {
        SwapFolders { root: &self.root, temp: &self.temp, kept: &self.kept }
    }

    /// Empties the temporary folder. A file that a killed process had displaced gets its place back, or is kept if that
    /// is taken. Returns the paths with a kept file. The caller holds the lock, so no other process uses these files.
    pub fn clear_temp(&self) -> io::Result<Vec<(String, PathBuf)>> {
        let entries = match std::fs::read_dir(&self.temp) {
            Err(error) if fs::is_absent(&error) => {
                ensure_private_dir(&self.temp)?;
                return Ok(Vec::new());
            }
            other => other?,
        };
        let mut kept = Vec::new();
        for entry in entries.flatten() {
            let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
            match Swap::of_temp(&entry.path()).filter(|swap| is_file && self.is_target(swap)) {
                None if fs::is_temp_name(&entry.file_name()) => fs::remove_tree(&entry.path())?,
                // Not a file that this program wrote.
                None => {}
                Some(swap) => {
                    if let SwapOutcome::Kept(path) = swap.settle(&self.swap_folders())? {
                        kept.push((swap.target().to_owned(), path));
                    }
                }
            }
        }
        Ok(kept)
    }

    /// Returns whether this journal may write the target of a swap. A swap may come with a cloned repository, too.
    fn is_target(&self, swap: &Swap) -> bool {
        let path = swap.target().to_owned();
        resolve(self, &path, &mut CheckedFolders::new()).is_ok()
            && (self.allows)(&Change::Write { path, before: None, text: String::new() })
    }
}

/// Checks that every file to write still is the file that the change was based on.
pub(super) fn check<'a>(
    paths: &JournalPaths,
    changes: impl IntoIterator<Item = &'a Change>,
) -> Result<(), CommitError> {
    for change in changes {
        if let Change::Write { path, before, .. } = change {
            let full = paths.root.join(path);
            let now = FileSig::of(&full).map_err(|source| CommitError::Io { path: full, source })?;
            if now != before.as_ref().map(|before| before.sig) {
                return Err(CommitError::Conflict { path: path.clone() });
            }
        }
    }
    Ok(())
}

/// Applies a record. An error means that no file was touched; a later failure is left to recovery.
pub(super) fn apply(paths: &JournalPaths, changes: &[Change]) -> Result<CommitResult, CommitError> {
    let mut applied =
        CommitResult { sigs: Vec::with_capacity(changes.len()), kept: Vec::new(), is_unfinished: false };
    let mut checked = CheckedFolders::new();
    for (n, change) in changes.iter().enumerate() {
        let (done, path) = match change {
            Change::Write { path, text, before } => {
                let expected = before.as_ref().map(|before| before.sig);
                (write_unless_changed(paths, path, text, expected, &mut checked), path)
            }
            Change::Move { from, to } => (move_path(paths, from, to).map(|()| WriteOutcome::Moved), from),
        };
        match done {
            Ok(WriteOutcome::File(sig)) => applied.sigs.push(Some(sig)),
            Ok(WriteOutcome::Moved) => applied.sigs.push(None),
            Ok(WriteOutcome::KeptCopy(copy)) => {
                applied.sigs.push(None);
                applied.kept.push((path.clone(), copy));
            }
            Err(source) if n == 0 => return Err(CommitError::Io { path: paths.root.join(path), source }),
            Err(_) => {
                applied.is_unfinished = true;
                break;
            }
        }
    }
    Ok(applied)
}

enum WriteOutcome {
    File(FileSig),
    KeptCopy(PathBuf),
    Moved,
}

/// Writes a file unless it changed. Checks directly before the rename: an editor may have saved while earlier
/// files of the same record were written.
fn write_unless_changed(
    paths: &JournalPaths,
    path: &str,
    text: &str,
    expected: Option<FileSig>,
    checked: &mut CheckedFolders,
) -> io::Result<WriteOutcome> {
    let written = match expected {
        None => create(paths, path, text, checked)?,
        Some(expected) => {
            let full = resolve(paths, path, checked)?;
            match FileSig::of(&full)? == Some(expected) {
                true => fs::replace_if(&full, text.as_bytes(), &paths.swap_folders(), DATA, expected)?,
                false => None,
            }
        }
    };
    match written {
        Some(sig) => Ok(WriteOutcome::File(sig)),
        None => keep_copy(paths, path, text.as_bytes()).map(WriteOutcome::KeptCopy),
    }
}

/// Saves a version that is not in its place as a private file, and returns its path. `path` is that of the file, or the
/// name of its kind. A version that a recovery saved before it was interrupted is not saved again.
pub(super) fn keep_copy(paths: &JournalPaths, path: &str, bytes: &[u8]) -> io::Result<PathBuf> {
    ensure_private_dir(&paths.kept)?;
    let is_saved = |other: &PathBuf| {
        fs::is_kept_path(other, path)
            && fs::read_regular(other, fs::MAX_FILE)
                .is_ok_and(|found| found.is_some_and(|(found, _)| found == bytes))
    };
    let mut known = std::fs::read_dir(&paths.kept)?.flatten().map(|entry| entry.path());
    if let Some(saved) = known.find(is_saved) {
        return Ok(saved);
    }
    let copy = fs::kept_path(&paths.kept, path);
    fs::write_new_private(&copy, bytes, Durability::Synced)?;
    Ok(copy)
}

/// Returns the modification time of the top-level folder of each change, which is read once.
pub(super) fn top_folder_mtimes(paths: &JournalPaths, changes: &[Change]) -> Vec<i64> {
    let mut known = HashMap::new();
    let mtime = |change| *known.entry(top_folder(change)).or_insert_with(|| top_folder_mtime(paths, change));
    changes.iter().map(mtime).collect()
}

fn top_folder(change: &Change) -> &str {
    let (Change::Write { path, .. } | Change::Move { from: path, .. }) = change;
    // The folder of a node itself says nothing: it is created and removed with the node.
    path.split_once('/').map_or("", |(first, _)| first)
}

/// Returns the modification time of the top-level folder of a change (`nodes/`, or the root for a file in it), or 0 if
/// it cannot be read.
fn top_folder_mtime(paths: &JournalPaths, change: &Change) -> i64 {
    FileSig::of(&paths.root.join(top_folder(change))).ok().flatten().map_or(0, |sig| sig.mtime_ns)
}

/// Brings every target to its final state unless a person changed it since.
pub(super) fn redo_targets(
    paths: &JournalPaths,
    targets: &RedoTargets<'_>,
    recovery: &mut Recovery,
) -> io::Result<()> {
    // Decided before anything is written, because each write changes the modification time of its folder.
    let is_lost = |path: &str, trace| must_be_repeated(paths, path, trace);
    let writes: Vec<_> =
        targets.writes.iter().map(|(path, target)| (path, target, is_lost(path, target.trace))).collect();
    let moves: Vec<_> = targets.moves.iter().filter(|moved| is_lost(moved.from, moved.trace)).collect();
    let mut checked = CheckedFolders::new();
    for (path, target, is_lost) in writes {
        let full = resolve(paths, path, &mut checked)?;
        let (found, is_refused) = match fs::read_regular(&full, fs::MAX_FILE) {
            Err(error) if fs::refusal(&error).is_some() => (None, true),
            other => (other?, false),
        };
        let sig = found.as_ref().map(|(_, sig)| *sig);
        let replace = match found {
            // Not a file that this program wrote.
            _ if is_refused => false,
            None => is_lost,
            Some((bytes, _)) if bytes.is_empty() => true,
            Some((bytes, _)) if bytes == target.text.as_bytes() => continue,
            Some((bytes, _)) if target.is_begun(&bytes) => true,
            Some((bytes, sig)) => {
                let md5 = crate::hash::md5_hex(&bytes);
                target.befores.iter().flatten().any(|before| before.sig == sig && before.md5 == md5)
            }
        };
        if replace {
            match write_unless_changed(paths, path, target.text, sig, &mut checked)? {
                WriteOutcome::KeptCopy(copy) => recovery.kept.push(((*path).to_owned(), copy)),
                _ => recovery.written.push((*path).to_owned()),
            }
        } else if !target.trace.was_applied {
            recovery.kept.push(((*path).to_owned(), keep_copy(paths, path, target.text.as_bytes())?));
        }
    }
    for MoveTarget { from, to, .. } in moves {
        if paths.root.join(from).exists() && !paths.root.join(to).exists() {
            move_path(paths, from, to)?;
            recovery.written.push((*from).to_owned());
        }
    }
    Ok(())
}

/// Returns whether recovery must repeat a change whose result is missing: it was never applied, or the machine crashed
/// before it reached the disk. Directory changes reach the disk in order, so a folder that was modified later shows
/// that a person undid the change.
fn must_be_repeated(paths: &JournalPaths, path: &str, trace: Trace) -> bool {
    let change = Change::Move { from: path.to_owned(), to: String::new() };
    !trace.was_applied || top_folder_mtime(paths, &change) <= trace.folder
}

/// The folders that were found not to be symbolic links while one record is applied.
type CheckedFolders = HashSet<PathBuf>;

/// Returns the full path of a change. Fails if a folder below the root is a symbolic link, which could lead anywhere.
fn resolve(paths: &JournalPaths, path: &str, checked: &mut CheckedFolders) -> io::Result<PathBuf> {
    let mut full = paths.root.clone();
    let mut parts = path.split('/').peekable();
    while let Some(part) = parts.next() {
        full.push(part);
        if parts.peek().is_some() && !checked.contains(&full) {
            fs::check_folder(&full)?;
            checked.insert(full.clone());
        }
    }
    Ok(full)
}

/// On Linux one call at a checkpoint makes all data durable; elsewhere each file is synced when it is written.
const DATA: Durability = if cfg!(target_os = "linux") { Durability::Journaled } else { Durability::Synced };

/// Creates a file and never replaces one. Returns `None` if another process created the file first.
fn create(
    paths: &JournalPaths,
    path: &str,
    text: &str,
    checked: &mut CheckedFolders,
) -> io::Result<Option<FileSig>> {
    if let Some((folder, name)) = path.rsplit_once('/') {
        let folder = resolve(paths, folder, checked)?;
        if let Some(sig) = create_with_folder(&folder, name, text)? {
            return Ok(Some(sig));
        }
    }
    // The folder may have appeared since it was checked.
    let full = resolve(paths, path, &mut CheckedFolders::new())?;
    fs::create_atomic(&full, text.as_bytes(), &paths.temp, DATA)
}

/// Creates a folder with a file in it, both in their place: the record is durable, so recovery completes an
/// empty folder or the beginning of a file that a killed process left behind. Returns `None` if something has
/// the name of the folder.
fn create_with_folder(folder: &Path, name: &str, text: &str) -> io::Result<Option<FileSig>> {
    match create_below(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
        other => other?,
    }
    let file = folder.join(name);
    let written = fs::write_new(&file, text.as_bytes(), DATA);
    if written.is_err() {
        let _ = std::fs::remove_file(&file);
        let _ = std::fs::remove_dir(folder);
    }
    written.map(Some)
}

/// Creates a folder. The folder above it is created only if it is missing: an attempt to create one that
/// exists waits for other writers of the folder above that.
fn create_below(folder: &Path) -> io::Result<()> {
    match std::fs::create_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            folder.parent().map_or(Ok(()), ensure_dir)?;
            std::fs::create_dir(folder)
        }
        other => other,
    }
}

fn move_path(paths: &JournalPaths, from: &str, to: &str) -> io::Result<()> {
    let mut checked = CheckedFolders::new();
    let (from, to) = (resolve(paths, from, &mut checked)?, resolve(paths, to, &mut checked)?);
    if let Some(parent) = to.parent() {
        // The folder of this change in the trash, and the trash.
        parent.parent().map_or(Ok(()), ensure_dir)?;
        ensure_dir(parent)?;
    }
    match std::fs::rename(from, to) {
        Err(error) if fs::is_absent(&error) => Ok(()),
        other => other,
    }
}
