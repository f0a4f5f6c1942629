//! Writes what was planned: only over the very file that was read, in one step, with a copy of what was there.

use std::path::{Path, PathBuf};

use tanmi_base::fs::{self, Durability};
use tanmi_base::lock::Lock;
use tanmi_base::{Millis, lock};

use crate::plan::{self, Left, Outcome, Planned, Wish};
use crate::receipt::Receipts;
use crate::{Error, Refusal, Result};

/// An agent that rewrites its own file may come first so many times.
const TRIES: usize = 20;

/// What became of one file.
pub struct Done {
    pub planned: Planned,
    /// The copy of what was there.
    pub copy: Option<PathBuf>,
}

fn hold(home: &Path) -> Result<Lock> {
    let dir = home.join("install");
    fs::create_private_dir(&dir).map_err(Error::io(&dir))?;
    Lock::exclusive(&dir.join("lock")).map_err(|error| match error {
        lock::LockError::Busy { .. } => Error::Busy,
        lock::LockError::Io { path, source } => Error::Io { path, error: source },
    })
}

pub fn apply(home: &Path, plans: Vec<Planned>, wish: &Wish, now: Millis) -> Result<Vec<Done>> {
    let lock = hold(home)?;
    let mut receipts = Receipts::load(home);
    let mut done = Vec::new();
    for planned in plans {
        let planned = put(planned, &mut receipts, wish, now)?;
        let copy = receipts.copy_of(&planned.real).filter(|_| planned.is_change());
        done.push(Done { planned, copy });
    }
    drop(lock);
    Ok(done)
}

fn put(mut planned: Planned, receipts: &mut Receipts, wish: &Wish, now: Millis) -> Result<Planned> {
    for _ in 0..TRIES {
        if !planned.is_change() {
            return Ok(planned);
        }
        let Some(after) = planned.after.clone() else { return Ok(planned) };
        let original = original(&planned, receipts);
        let folders = make_folders(&planned.real)?;
        let agent = planned.place.agent.id();
        receipts.note(&planned.real, agent, original.as_deref(), &after, folders, now)?;
        if write(&planned, &after)? {
            return Ok(planned);
        }
        // Somebody else was quicker: once more, with what they wrote.
        planned = plan::plan(planned.place, wish);
    }
    planned.outcome =
        Outcome::Refused(Refusal::Unusable(String::from("it keeps changing; close its agent first")));
    Ok(planned)
}

/// The file without anything of ours, which is what an uninstall gives back.
fn original(planned: &Planned, receipts: &Receipts) -> Option<Vec<u8>> {
    let bytes = planned.before.as_deref()?;
    if let Some(original) = receipts.original(&planned.real, bytes) {
        return original;
    }
    let before = receipts.before(&planned.real);
    match plan::without(&planned.place, bytes, &before) {
        Ok(Left::Text(text)) => Some(text),
        Ok(Left::Nothing) => None,
        Ok(Left::Same) | Err(_) => Some(bytes.to_vec()),
    }
}

/// Names those that were not there, the innermost first.
fn make_folders(path: &Path) -> Result<Vec<PathBuf>> {
    let Some(dir) = path.parent() else { return Ok(Vec::new()) };
    let missing: Vec<PathBuf> = dir
        .ancestors()
        .take_while(|dir| !dir.as_os_str().is_empty() && !dir.exists())
        .map(Path::to_owned)
        .collect();
    std::fs::create_dir_all(dir).map_err(Error::io(dir))?;
    Ok(missing)
}

/// `false` if the file is no longer the one that was read.
fn write(planned: &Planned, bytes: &[u8]) -> Result<bool> {
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
        None if path.exists() => return Ok(false),
        None => fs::write_atomic(path, bytes, dir, Durability::Synced).map(|_| true),
    };
    written.map_err(Error::io(path))
}

/// Takes everything out that is planned to go.
pub fn remove(home: &Path, plans: Vec<Planned>) -> Result<Vec<Done>> {
    if plans.is_empty() {
        return Ok(Vec::new());
    }
    let lock = hold(home)?;
    let mut receipts = Receipts::load(home);
    let mut done = Vec::new();
    for planned in plans {
        let planned = take(planned, &mut receipts)?;
        done.push(Done { planned, copy: None });
    }
    drop(lock);
    let _ = std::fs::remove_dir(home.join("install"));
    // Where nothing was ever saved, nothing is left either.
    let _ = std::fs::remove_dir(home);
    Ok(done)
}

fn take(mut planned: Planned, receipts: &mut Receipts) -> Result<Planned> {
    for _ in 0..TRIES {
        if !planned.is_change() {
            return Ok(planned);
        }
        let is_done = match &planned.after {
            Some(after) => write(&planned, after)?,
            None => std::fs::remove_file(&planned.real).map(|()| true).map_err(Error::io(&planned.real))?,
        };
        if is_done {
            receipts.forget(&planned.real)?;
            return Ok(planned);
        }
        match plan::plan_removal(planned.place.clone(), receipts) {
            Some(again) => planned = again,
            None => return Ok(planned),
        }
    }
    planned.outcome =
        Outcome::Refused(Refusal::Unusable(String::from("it keeps changing; close its agent first")));
    Ok(planned)
}
