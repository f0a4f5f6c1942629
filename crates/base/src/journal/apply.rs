//! Carrying out a record on the files, the first time and again after a crash.

use std::io;
use std::path::Path;

use super::{Change, CommitError, Goals, Places, Recovery};
use crate::fs::{self, Durability, FileSig};

/// Every file to write is still what the change was decided on.
pub(super) fn check(places: &Places, changes: &[Change]) -> Result<(), CommitError> {
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

pub(super) fn apply(places: &Places, changes: &[Change]) -> Result<Vec<Option<FileSig>>, CommitError> {
    let mut sigs = Vec::with_capacity(changes.len());
    for change in changes {
        let (done, path) = match change {
            Change::Write { path, text, .. } => (write(places, path, text).map(Some), path),
            Change::Move { from, to } => (move_away(places, from, to).map(|()| None), from),
        };
        sigs.push(done.map_err(|source| CommitError::Io { path: places.root.join(path), source })?);
    }
    Ok(sigs)
}

/// Brings every goal about that no person has overridden.
pub(super) fn redo(places: &Places, goals: &Goals<'_>, recovery: &mut Recovery) -> io::Result<()> {
    for (path, goal) in &goals.writes {
        let full = places.root.join(path);
        let replace = match fs::read_optional(&full)? {
            None => true,
            Some(bytes) if bytes.is_empty() => true,
            Some(bytes) if bytes == goal.text.as_bytes() => continue,
            Some(bytes) => {
                let sig = FileSig::of(&full)?;
                let md5 = fs::md5_hex(&bytes);
                goal.befores.iter().flatten().any(|before| Some(before.sig) == sig && before.md5 == md5)
            }
        };
        if replace {
            write(places, path, goal.text)?;
            recovery.written.push((*path).to_owned());
        } else {
            std::fs::create_dir_all(&places.kept)?;
            let name = format!("{}-{}", path.replace('/', "-"), crate::id::random(6));
            let aside = places.kept.join(name);
            fs::write_new(&aside, goal.text.as_bytes(), Durability::Synced)?;
            recovery.kept.push(((*path).to_owned(), aside));
        }
    }
    for (from, to) in &goals.moves {
        if places.root.join(from).exists() && !places.root.join(to).exists() {
            move_away(places, from, to)?;
            recovery.written.push((*from).to_owned());
        }
    }
    Ok(())
}

/// A file in a folder that is not there yet arrives together with its folder, so that nobody meets an empty one.
fn write(places: &Places, path: &str, text: &str) -> io::Result<FileSig> {
    let full = places.root.join(path);
    let (Some(parent), Some(name)) = (full.parent(), full.file_name()) else {
        return Err(io::Error::other("a change names no file"));
    };
    if !parent.exists()
        && let Some(sig) = write_with_folder(places, parent, Path::new(name), text)?
    {
        return Ok(sig);
    }
    fs::write_atomic(&full, text.as_bytes(), &places.temp, Durability::Journaled)
}

fn write_with_folder(places: &Places, folder: &Path, name: &Path, text: &str) -> io::Result<Option<FileSig>> {
    if let Some(above) = folder.parent() {
        std::fs::create_dir_all(above)?;
    }
    let temp = fs::temp_path(&places.temp);
    std::fs::create_dir(&temp)?;
    let sig = fs::write_new(&temp.join(name), text.as_bytes(), Durability::Journaled);
    match sig.and_then(|sig| std::fs::rename(&temp, folder).map(|()| sig)) {
        Ok(sig) => Ok(Some(sig)),
        Err(error) => {
            let _ = fs::remove_tree(&temp);
            // Somebody made the folder in the same moment: then the file goes into theirs.
            if folder.exists() { Ok(None) } else { Err(error) }
        }
    }
}

fn move_away(places: &Places, from: &str, to: &str) -> io::Result<()> {
    let to = places.root.join(to);
    if let Some(parent) = to.parent() {
        std::fs::create_dir_all(parent)?;
    }
    match std::fs::rename(places.root.join(from), to) {
        Err(error) if fs::is_absent(&error) => Ok(()),
        other => other,
    }
}
