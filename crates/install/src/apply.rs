//! Writes what was planned: only over the very file that was read, in one step, with a copy of what was there.

use std::path::{Path, PathBuf};

use tanmi_base::fs::{self, Durability, FileSig};
use tanmi_base::lock::Lock;
use tanmi_base::{Millis, lock};

use crate::plan::{self, ChangeOutcome, InstallOptions, PlannedChange, RemovalResult};
use crate::receipt::Receipts;
use crate::{Error, Refusal, Result};

/// An agent that rewrites its own file may come first so many times.
const TRIES: usize = 20;

/// What became of one file.
pub struct AppliedChange {
    pub planned: PlannedChange,
    /// The copy of what was there.
    pub copy: Option<PathBuf>,
}

/// One at a time. A lock file that was deleted while we waited for it is nobody's any more.
fn hold(home: &Path) -> Result<Lock> {
    let dir = home.join("install");
    let path = dir.join("lock");
    for _ in 0..TRIES {
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

/// What a process that was killed left beside the files.
fn sweep(plans: &[PlannedChange], home: &Path) {
    let store = home.join("install");
    let dirs = plans.iter().filter_map(|planned| planned.real.parent()).chain([store.as_path(), home]);
    for entry in dirs.flat_map(|dir| std::fs::read_dir(dir).into_iter().flatten().flatten()) {
        if fs::is_leftover(&entry.file_name().to_string_lossy()) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// One file that cannot be written costs that file.
fn or_refused(target: PlannedChange, outcome: Result<PlannedChange>) -> Result<PlannedChange> {
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
    let lock = hold(home)?;
    sweep(&plans, home);
    let mut receipts = Receipts::load(home);
    let mut done = Vec::new();
    for planned in plans {
        let planned = or_refused(planned.clone(), put(planned, &mut receipts, options, now))?;
        let copy = receipts.copy_of(&planned.real).filter(|_| planned.is_change());
        done.push(AppliedChange { planned, copy });
    }
    drop(lock);
    Ok(done)
}

fn put(
    mut planned: PlannedChange,
    receipts: &mut Receipts,
    options: &InstallOptions,
    now: Millis,
) -> Result<PlannedChange> {
    for _ in 0..TRIES {
        if !planned.is_change() {
            return Ok(planned);
        }
        let Some(after) = planned.after.clone() else { return Ok(planned) };
        let original = original(&planned, receipts);
        // Noted before they are made: whoever is killed in between leaves nothing that nobody knows of.
        let folders = missing_folders(&planned.real);
        receipts.note(&planned.real, &planned.target, original.as_deref(), &after, folders, now)?;
        if let Some(dir) = planned.real.parent() {
            std::fs::create_dir_all(dir).map_err(Error::io(dir))?;
        }
        if write(&planned, &after)? {
            return Ok(planned);
        }
        // Somebody else was quicker: once more, with what they wrote.
        planned = plan::plan(planned.target, options);
    }
    Ok(kept_changing(planned))
}

fn kept_changing(planned: PlannedChange) -> PlannedChange {
    PlannedChange { outcome: ChangeOutcome::Refused(Refusal::KeepsChanging), ..planned }
}

/// The file without anything of ours, which is what an uninstall gives back.
fn original(planned: &PlannedChange, receipts: &Receipts) -> Option<Vec<u8>> {
    let bytes = planned.before.as_deref()?;
    if let Some(original) = receipts.original(&planned.real, bytes) {
        return original;
    }
    let before = receipts.before(&planned.real);
    match plan::without(&planned.target, bytes, &before) {
        Ok(RemovalResult::Text(text)) => Some(text),
        Ok(RemovalResult::Nothing) => None,
        Ok(RemovalResult::Same) | Err(_) => Some(bytes.to_vec()),
    }
}

/// Those that are not there, the innermost first.
fn missing_folders(path: &Path) -> Vec<PathBuf> {
    let dirs = path.ancestors().skip(1);
    dirs.take_while(|dir| !dir.as_os_str().is_empty() && !dir.exists()).map(Path::to_owned).collect()
}

/// `false` if the file is no longer the one that was read.
fn write(planned: &PlannedChange, bytes: &[u8]) -> Result<bool> {
    let path = &planned.real;
    let dir = path.parent().unwrap_or(Path::new("."));
    let written = match planned.sig {
        Some(sig) => {
            // Looked at once more before, for systems that cannot look after.
            if fs::FileSig::of(path).map_err(Error::io(path))? != Some(sig) {
                return Ok(false);
            }
            fs::replace_if(path, bytes, dir, Durability::Synced, sig).map(|sig| sig.is_some())
        }
        None => fs::create_atomic(path, bytes, dir, Durability::Synced),
    };
    written.map_err(Error::io(path))
}

/// Takes everything out that is planned to go.
pub fn remove(home: &Path, plans: Vec<PlannedChange>) -> Result<Vec<AppliedChange>> {
    if plans.is_empty() {
        return Ok(Vec::new());
    }
    let lock = hold(home)?;
    sweep(&plans, home);
    let mut receipts = Receipts::load(home);
    let mut done = Vec::new();
    for planned in plans {
        let planned = or_refused(planned.clone(), take(planned, &mut receipts))?;
        done.push(AppliedChange { planned, copy: None });
    }
    if receipts.is_empty() {
        // While it is held: whoever waits for it will see that it is another one's.
        let _ = std::fs::remove_file(home.join("install/lock"));
        let _ = std::fs::remove_dir(home.join("install"));
        // Where nothing was ever saved, nothing is left either.
        let _ = std::fs::remove_dir(home);
    }
    drop(lock);
    Ok(done)
}

fn take(mut planned: PlannedChange, receipts: &mut Receipts) -> Result<PlannedChange> {
    for _ in 0..TRIES {
        if !planned.is_change() {
            return Ok(planned);
        }
        let dir = planned.real.parent().unwrap_or(Path::new("."));
        let is_done = match (&planned.after, planned.sig) {
            (Some(after), _) => write(&planned, after)?,
            (None, Some(sig)) => fs::remove_if(&planned.real, dir, sig).map_err(Error::io(&planned.real))?,
            (None, None) => true,
        };
        if is_done {
            receipts.forget(&planned.real)?;
            return Ok(planned);
        }
        match plan::plan_removal(planned.target.clone(), receipts) {
            Some(again) => planned = again,
            // It went with another agent's, whose file is the same by a link.
            None => return Ok(PlannedChange { outcome: ChangeOutcome::Unchanged, ..planned }),
        }
    }
    Ok(kept_changing(planned))
}
