//! Carrying out a record on the files, the first time and again after a crash.

use std::io;
use std::path::{Path, PathBuf};

use super::{Applied, Change, CommitError, ExpectedFile, Goals, JournalPaths, Recovery, Removal, Trace};
use crate::fs::{self, Durability, FileSig};

/// Every file to write is still what the change was decided on.
pub(super) fn check(places: &JournalPaths, changes: &[Change]) -> Result<(), CommitError> {
    for change in changes {
        if let Change::Write { path, before, .. } = change {
            let full = places.root.join(path);
            let now = FileSig::of(&full).map_err(|source| CommitError::Io { path: full, source })?;
            if now != before.as_ref().map(|before| before.sig) {
                return Err(CommitError::Conflict { path: path.clone() });
            }
        }
    }
    Ok(())
}

/// Carries a record out. An error means that nothing was touched; what fails later is left to recovery.
pub(super) fn apply(places: &JournalPaths, changes: &[Change]) -> Result<Applied, CommitError> {
    let mut applied =
        Applied { sigs: Vec::with_capacity(changes.len()), kept: Vec::new(), is_unfinished: false };
    for (n, change) in changes.iter().enumerate() {
        let (done, path) = match change {
            Change::Write { path, text, before } => {
                (write_unless_saved(places, path, text, before.as_ref()), path)
            }
            Change::Move { from, to } => (move_away(places, from, to).map(|()| Wrote::Nothing), from),
        };
        match done {
            Ok(Wrote::File(sig)) => applied.sigs.push(Some(sig)),
            Ok(Wrote::Nothing) => applied.sigs.push(None),
            Ok(Wrote::Aside(aside)) => {
                applied.sigs.push(None);
                applied.kept.push((path.clone(), aside));
            }
            Err(source) if n == 0 => return Err(CommitError::Io { path: places.root.join(path), source }),
            Err(_) => {
                applied.is_unfinished = true;
                break;
            }
        }
    }
    Ok(applied)
}

enum Wrote {
    File(FileSig),
    Aside(PathBuf),
    Nothing,
}

/// A look directly before the rename: an editor may have saved while earlier files of the same record were written.
fn write_unless_saved(
    places: &JournalPaths,
    path: &str,
    text: &str,
    before: Option<&ExpectedFile>,
) -> io::Result<Wrote> {
    let full = places.root.join(path);
    let expected = before.map(|before| before.sig);
    if FileSig::of(&full)? == expected {
        let Some(expected) = expected else { return write(places, path, text).map(Wrote::File) };
        if let Some(sig) = fs::replace_if(&full, text.as_bytes(), &places.temp, DATA, expected)? {
            return Ok(Wrote::File(sig));
        }
    }
    put_aside(places, path, text).map(Wrote::Aside)
}

fn put_aside(places: &JournalPaths, path: &str, text: &str) -> io::Result<PathBuf> {
    std::fs::create_dir_all(&places.kept)?;
    let aside = places.kept.join(format!("{}-{}", path.replace('/', "-"), crate::id::random(6)));
    fs::write_new(&aside, text.as_bytes(), Durability::Synced)?;
    Ok(aside)
}

/// When the folder around a change was last changed; 0 if it is not there yet.
pub(super) fn folder_time(places: &JournalPaths, change: &Change) -> i64 {
    let (Change::Write { path, .. } | Change::Move { from: path, .. }) = change;
    // A node's own folder comes and goes with it; the one that holds it tells.
    let above = path.split_once('/').map_or("", |(first, _)| first);
    FileSig::of(&places.root.join(above)).ok().flatten().map_or(0, |sig| sig.mtime_ns)
}

/// Brings every goal about that no person has overridden.
pub(super) fn redo(places: &JournalPaths, goals: &Goals<'_>, recovery: &mut Recovery) -> io::Result<()> {
    for (path, goal) in &goals.writes {
        let full = places.root.join(path);
        let replace = match fs::read_optional(&full)? {
            None => is_lost(places, path, goal.trace),
            Some(bytes) if bytes.is_empty() => true,
            Some(bytes) if bytes == goal.text.as_bytes() => continue,
            Some(bytes) => {
                let sig = FileSig::of(&full)?;
                let md5 = crate::hash::md5_hex(&bytes);
                goal.befores.iter().flatten().any(|before| Some(before.sig) == sig && before.md5 == md5)
            }
        };
        if replace {
            write(places, path, goal.text)?;
            recovery.written.push((*path).to_owned());
        } else if !goal.trace.was_applied {
            recovery.kept.push(((*path).to_owned(), put_aside(places, path, goal.text)?));
        }
    }
    for Removal { from, to, trace } in &goals.moves {
        let is_open = places.root.join(from).exists() && !places.root.join(to).exists();
        if is_open && is_lost(places, from, *trace) {
            move_away(places, from, to)?;
            recovery.written.push((*from).to_owned());
        }
    }
    Ok(())
}

/// Whether a change that is not to be seen got lost with the machine. Directory changes reach the disk in their order:
/// if the folder has been changed since, this change had been there too, and somebody undid it.
fn is_lost(places: &JournalPaths, path: &str, trace: Trace) -> bool {
    let change = Change::Move { from: path.to_owned(), to: String::new() };
    !trace.was_applied || folder_time(places, &change) <= trace.folder
}

/// Linux can make everything durable in one call at a checkpoint; elsewhere each file is synced as it is written.
const DATA: Durability = if cfg!(target_os = "linux") { Durability::Journaled } else { Durability::Synced };

/// A file in a folder that is not there yet arrives together with its folder, so that nobody meets an empty one.
fn write(places: &JournalPaths, path: &str, text: &str) -> io::Result<FileSig> {
    let full = places.root.join(path);
    let (Some(parent), Some(name)) = (full.parent(), full.file_name()) else {
        return Err(io::Error::other("a change names no file"));
    };
    if !parent.exists()
        && let Some(sig) = write_with_folder(places, parent, Path::new(name), text)?
    {
        return Ok(sig);
    }
    fs::write_atomic(&full, text.as_bytes(), &places.temp, DATA)
}

fn write_with_folder(
    places: &JournalPaths,
    folder: &Path,
    name: &Path,
    text: &str,
) -> io::Result<Option<FileSig>> {
    if let Some(above) = folder.parent() {
        std::fs::create_dir_all(above)?;
    }
    let temp = fs::temp_path(&places.temp);
    std::fs::create_dir(&temp)?;
    let sig = fs::write_new(&temp.join(name), text.as_bytes(), DATA);
    match sig.and_then(|sig| std::fs::rename(&temp, folder).map(|()| sig)) {
        Ok(sig) => Ok(Some(sig)),
        Err(error) => {
            let _ = fs::remove_tree(&temp);
            // Somebody made the folder in the same moment: then the file goes into theirs.
            if folder.exists() { Ok(None) } else { Err(error) }
        }
    }
}

fn move_away(places: &JournalPaths, from: &str, to: &str) -> io::Result<()> {
    let to = places.root.join(to);
    if let Some(parent) = to.parent() {
        std::fs::create_dir_all(parent)?;
    }
    match std::fs::rename(places.root.join(from), to) {
        Err(error) if fs::is_absent(&error) => Ok(()),
        other => other,
    }
}
