//! Applies records to the files: for the first time, and again after a crash.

use std::io;
use std::path::{Path, PathBuf};

use super::{
    Change, CommitError, CommitResult, ExpectedFile, JournalPaths, MoveTarget, Recovery, RedoTargets, Trace,
};
use crate::fs::{self, Durability, FileSig};

/// Checks that every file to write still is the file that the change was based on.
pub(super) fn check(paths: &JournalPaths, changes: &[Change]) -> Result<(), CommitError> {
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
    for (n, change) in changes.iter().enumerate() {
        let (done, path) = match change {
            Change::Write { path, text, before } => {
                (write_unless_changed(paths, path, text, before.as_ref()), path)
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
    before: Option<&ExpectedFile>,
) -> io::Result<WriteOutcome> {
    let full = resolve(paths, path)?;
    let expected = before.map(|before| before.sig);
    if FileSig::of(&full)? == expected {
        let Some(expected) = expected else { return write(paths, path, text).map(WriteOutcome::File) };
        if let Some(sig) = fs::replace_if(&full, text.as_bytes(), &paths.temp, DATA, expected)? {
            return Ok(WriteOutcome::File(sig));
        }
    }
    keep_copy(paths, path, text).map(WriteOutcome::KeptCopy)
}

fn keep_copy(paths: &JournalPaths, path: &str, text: &str) -> io::Result<PathBuf> {
    fs::create_private_dir(&paths.kept)?;
    let copy = paths.kept.join(format!("{}-{}", path.replace('/', "-"), crate::id::random(6)));
    fs::write_new_private(&copy, text.as_bytes(), Durability::Synced)?;
    Ok(copy)
}

/// Returns the modification time of the top-level folder of a change (`nodes/`, or the root for a file in it), or 0 if
/// it cannot be read.
pub(super) fn top_folder_mtime(paths: &JournalPaths, change: &Change) -> i64 {
    let (Change::Write { path, .. } | Change::Move { from: path, .. }) = change;
    // The folder of a node itself says nothing: it is created and removed with the node.
    let above = path.split_once('/').map_or("", |(first, _)| first);
    FileSig::of(&paths.root.join(above)).ok().flatten().map_or(0, |sig| sig.mtime_ns)
}

/// Brings every target to its final state unless a person changed it since.
pub(super) fn redo_targets(
    paths: &JournalPaths,
    targets: &RedoTargets<'_>,
    recovery: &mut Recovery,
) -> io::Result<()> {
    for (path, target) in &targets.writes {
        let replace = match fs::read_regular(&resolve(paths, path)?, MAX_FILE) {
            // Not a file that this program wrote.
            Err(error) if fs::refusal(&error).is_some() => false,
            Err(error) => return Err(error),
            Ok(None) => must_be_repeated(paths, path, target.trace),
            Ok(Some((bytes, _))) if bytes.is_empty() => true,
            Ok(Some((bytes, _))) if bytes == target.text.as_bytes() => continue,
            Ok(Some((bytes, sig))) => {
                let md5 = crate::hash::md5_hex(&bytes);
                target.befores.iter().flatten().any(|before| before.sig == sig && before.md5 == md5)
            }
        };
        if replace {
            write(paths, path, target.text)?;
            recovery.written.push((*path).to_owned());
        } else if !target.trace.was_applied {
            recovery.kept.push(((*path).to_owned(), keep_copy(paths, path, target.text)?));
        }
    }
    for MoveTarget { from, to, trace } in &targets.moves {
        let is_open = paths.root.join(from).exists() && !paths.root.join(to).exists();
        if is_open && must_be_repeated(paths, from, *trace) {
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

/// Far above the size of any file of a store, and still small enough to hold in memory.
const MAX_FILE: u64 = 256 << 20;

/// Returns the full path of a change. Fails if a folder below the root is a symbolic link, which could lead anywhere.
fn resolve(paths: &JournalPaths, path: &str) -> io::Result<PathBuf> {
    let mut full = paths.root.clone();
    let mut parts = path.split('/').peekable();
    while let Some(part) = parts.next() {
        full.push(part);
        if parts.peek().is_some() {
            fs::check_folder(&full)?;
        }
    }
    Ok(full)
}

/// On Linux one call at a checkpoint makes all data durable; elsewhere each file is synced when it is written.
const DATA: Durability = if cfg!(target_os = "linux") { Durability::Journaled } else { Durability::Synced };

/// Writes a file. A new folder appears together with its file, so that no reader sees an empty folder.
fn write(paths: &JournalPaths, path: &str, text: &str) -> io::Result<FileSig> {
    let full = paths.root.join(path);
    let (Some(parent), Some(name)) = (full.parent(), full.file_name()) else {
        return Err(io::Error::other("a change names no file"));
    };
    if !parent.exists()
        && let Some(sig) = write_with_folder(paths, parent, Path::new(name), text)?
    {
        return Ok(sig);
    }
    fs::write_atomic(&full, text.as_bytes(), &paths.temp, DATA)
}

fn write_with_folder(
    paths: &JournalPaths,
    folder: &Path,
    name: &Path,
    text: &str,
) -> io::Result<Option<FileSig>> {
    if let Some(above) = folder.parent() {
        std::fs::create_dir_all(above)?;
    }
    let temp = fs::temp_path(&paths.temp);
    std::fs::create_dir(&temp)?;
    let sig = fs::write_new(&temp.join(name), text.as_bytes(), DATA);
    match sig.and_then(|sig| std::fs::rename(&temp, folder).map(|()| sig)) {
        Ok(sig) => Ok(Some(sig)),
        Err(error) => {
            let _ = fs::remove_tree(&temp);
            // Another process created the folder in the meantime: write into that one.
            if folder.exists() { Ok(None) } else { Err(error) }
        }
    }
}

fn move_path(paths: &JournalPaths, from: &str, to: &str) -> io::Result<()> {
    let (from, to) = (resolve(paths, from)?, resolve(paths, to)?);
    if let Some(parent) = to.parent() {
        std::fs::create_dir_all(parent)?;
    }
    match std::fs::rename(from, to) {
        Err(error) if fs::is_absent(&error) => Ok(()),
        other => other,
    }
}
