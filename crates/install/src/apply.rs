//! Applies planned changes. Each file is replaced atomically, only if it is still the file that was read, and after a
//! copy of it was saved.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tanmi_base::fs::{self, Durability, FileSig, SwapFolders};
use tanmi_base::lock::Lock;
use tanmi_base::{Millis, lock};

use crate::links::check_links;
use crate::plan::{
    self, ChangeOutcome, ConfigPart, InstallOptions, PlannedChange, RemovalResult, TargetFile,
};
use crate::receipt::Receipts;
use crate::{Error, Refusal, Result};

/// How often a change is planned again because the client rewrote the file meanwhile.
const MAX_ATTEMPTS: usize = 20;

/// The result for one file.
pub struct AppliedChange {
    pub planned: PlannedChange,
    /// The copy of the original file.
    pub copy: Option<PathBuf>,
}

/// Locks the installation. Tries again if the lock file was deleted while we waited, because that lock
/// excludes no other process.
fn acquire_lock(home: &Path) -> Result<Lock> {
    let dir = home.join("install");
    let path = dir.join("lock");
    for _ in 0..MAX_ATTEMPTS {
        fs::create_private_dir(&dir).map_err(Error::io(&dir))?;
        let lock = match Lock::exclusive(&path) {
            Ok(lock) => lock,
            Err(lock::LockError::Busy { .. }) => return Err(Error::Busy),
            Err(lock::LockError::Io { source, .. }) if fs::is_absent(&source) => continue,
            Err(lock::LockError::Io { path, source }) => return Err(Error::Io { path, error: source }),
        };
        let own =
            lock.file().and_then(|file| file.metadata().ok()).map(|meta| FileSig::from_metadata(&meta).inode);
        if own == FileSig::of(&path).ok().flatten().map(|sig| sig.inode) {
            return Ok(lock);
        }
    }
    Err(Error::Busy)
}

/// Clears up after killed processes: a file of the client that such a process had displaced gets its place back, and
/// temporary files are removed.
fn remove_leftovers(plans: &[PlannedChange], home: &Path) -> Result<()> {
    let store = home.join("install");
    let dirs: BTreeSet<&Path> =
        plans.iter().filter_map(|planned| planned.real.parent()).chain([store.as_path(), home]).collect();
    for dir in dirs {
        let is_name = |target: &str| !target.is_empty() && !target.contains('/');
        fs::recover_swaps(&SwapFolders::beside(dir), is_name).map_err(Error::io(dir))?;
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            if fs::is_leftover(&entry.file_name().to_string_lossy()) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
    Ok(())
}

/// Returns whether the file is no longer the one that the change was planned for: another process wrote it, or it got
/// its place back.
fn is_outdated(planned: &PlannedChange) -> bool {
    FileSig::of(&planned.real).is_ok_and(|sig| sig != planned.sig)
}

/// Turns an I/O error into a refusal of this file, so that the other files are still processed.
fn refuse_on_io_error(target: PlannedChange, outcome: Result<PlannedChange>) -> Result<PlannedChange> {
    match outcome {
        Err(Error::Io { path, error }) => {
            let reason = format!("{}: {error}", path.display());
            Ok(PlannedChange { outcome: ChangeOutcome::Refused(Refusal::Unusable(reason)), ..target })
        }
        other => other,
    }
}

pub fn apply(
    home: &Path,
    plans: Vec<PlannedChange>,
    options: &InstallOptions,
    now: Millis,
) -> Result<Vec<AppliedChange>> {
    check_links(&plans)?;
    let lock = acquire_lock(home)?;
    remove_leftovers(&plans, home)?;
    let mut receipts = Receipts::load(home);
    let mut done = Vec::new();
    for planned in plans {
        let planned = refuse_on_io_error(planned.clone(), apply_one(planned, &mut receipts, options, now))?;
        let copy = receipts.copy_of(&planned.real).filter(|_| planned.is_change());
        done.push(AppliedChange { planned, copy });
    }
    receipts.remove_unused_copies();
    drop(lock);
    Ok(done)
}

fn apply_one(
    mut planned: PlannedChange,
    receipts: &mut Receipts,
    options: &InstallOptions,
    now: Millis,
) -> Result<PlannedChange> {
    for _ in 0..MAX_ATTEMPTS {
        if is_outdated(&planned) {
            planned = plan::plan(planned.target, options);
        }
        if !planned.is_change() {
            return Ok(planned);
        }
        let Some(after) = planned.after.clone() else { return Ok(planned) };
        let original = original(&planned, receipts);
        // Recorded before they are created, so that a process killed in between leaves no unknown folders.
        let folders = missing_folders(&planned.real);
        receipts.record(&planned.real, &planned.target, original.as_deref(), &after, folders, now)?;
        if let Some(dir) = planned.real.parent() {
            std::fs::create_dir_all(dir).map_err(Error::io(dir))?;
        }
        if write(&planned, &after)? {
            return Ok(planned);
        }
    }
    Ok(refuse_changing_file(planned))
}

fn refuse_changing_file(planned: PlannedChange) -> PlannedChange {
    PlannedChange { outcome: ChangeOutcome::Refused(Refusal::KeepsChanging), ..planned }
}

/// Returns the content without our parts, which an uninstall restores.
fn original(planned: &PlannedChange, receipts: &Receipts) -> Option<Vec<u8>> {
    let bytes = planned.before.as_deref()?;
    if let Some(original) = receipts.original(&planned.real, bytes) {
        return original;
    }
    let before = receipts.before(&planned.real);
    let mut target = planned.target.clone();
    if !target.parts.iter().any(|part| matches!(part, ConfigPart::Guide(_))) {
        target.parts = plan::JSON_PARTS.to_vec();
    }
    // A permission that was there before an installation added one is the user's.
    let is_own = receipts.has_own_permission(&planned.real).unwrap_or(false);
    target.parts.retain(|part| *part != ConfigPart::Permission || is_own);
    match plan::remove_parts(&target, bytes, &before) {
        Ok(RemovalResult::TextFile(text)) => Some(text),
        Ok(RemovalResult::Nothing) => None,
        Ok(RemovalResult::Same) | Err(_) => Some(bytes.to_vec()),
    }
}

/// Returns the missing parent folders, innermost first.
fn missing_folders(path: &Path) -> Vec<PathBuf> {
    let dirs = path.ancestors().skip(1);
    dirs.take_while(|dir| !dir.as_os_str().is_empty() && !dir.exists()).map(Path::to_owned).collect()
}

/// Writes the file. Returns `false` if it is no longer the file that was read.
fn write(planned: &PlannedChange, bytes: &[u8]) -> Result<bool> {
    let path = &planned.real;
    let dir = path.parent().unwrap_or(Path::new("."));
    let written = match planned.sig {
        Some(sig) => {
            // Checked before the replacement too, because not all systems can check during it.
            if fs::FileSig::of(path).map_err(Error::io(path))? != Some(sig) {
                return Ok(false);
            }
            fs::replace_if(path, bytes, &SwapFolders::beside(dir), Durability::Synced, sig)
        }
        None => fs::create_atomic(path, bytes, dir, Durability::Synced),
    };
    Ok(written.map_err(Error::io(path))?.is_some())
}

/// Applies planned removals, and removes what killed processes left behind.
pub fn remove(home: &Path, plans: Vec<PlannedChange>) -> Result<Vec<AppliedChange>> {
    check_links(&plans)?;
    if plans.is_empty() && !home.join("install").exists() {
        // Succeeds only if the home store is empty.
        let _ = std::fs::remove_dir(home);
        return Ok(Vec::new());
    }
    let lock = acquire_lock(home)?;
    remove_leftovers(&plans, home)?;
    let mut receipts = Receipts::load(home);
    let mut done = Vec::new();
    for planned in plans {
        let planned = refuse_on_io_error(planned.clone(), remove_one(planned, &mut receipts))?;
        done.push(AppliedChange { planned, copy: None });
    }
    receipts.remove_unused_copies();
    if receipts.is_empty() {
        // Deleted while the lock is held: a waiting process notices that the lock file was deleted.
        let _ = std::fs::remove_file(home.join("install/lock"));
        let _ = std::fs::remove_dir(home.join("install"));
        let _ = std::fs::remove_dir(home);
    }
    drop(lock);
    Ok(done)
}

fn remove_one(mut planned: PlannedChange, receipts: &mut Receipts) -> Result<PlannedChange> {
    let target = TargetFile { parts: planned.wanted.clone(), ..planned.target.clone() };
    for _ in 0..MAX_ATTEMPTS {
        // Planned again, because the first plan was made without the lock.
        match plan::plan_removal(target.clone(), receipts) {
            Some(replanned) => planned = replanned,
            // Already removed with another client whose path is a link to the same file.
            None => return Ok(PlannedChange { outcome: ChangeOutcome::Unchanged, ..planned }),
        }
        let dir = planned.real.parent().unwrap_or(Path::new("."));
        let is_done = match (&planned.outcome, &planned.after, planned.sig) {
            (ChangeOutcome::Refused(_), ..) => return Ok(planned),
            (ChangeOutcome::Unchanged, ..) | (_, None, None) => true,
            (_, Some(after), _) => write(&planned, after)?,
            (_, None, Some(sig)) => fs::remove_if(&planned.real, &SwapFolders::beside(dir), sig)
                .map_err(Error::io(&planned.real))?,
        };
        if is_done {
            match (&planned.before, &planned.after) {
                (Some(before), Some(after)) if !plan::has_all_parts(&target, before) => {
                    receipts.record_removed_hooks(&planned.real, before, after)?;
                }
                _ => receipts.forget(&planned.real)?,
            }
            return Ok(planned);
        }
    }
    Ok(refuse_changing_file(planned))
}
