//! The owner of a project. A project of another user is not used until the user allows it, as git does with
//! `safe.directory`: its owner could place texts there that reach the model, and files that a command follows.
//!
//! Allowed projects are listed in `safe-projects.json` in the home store and in `TANMI_SAFE_PROJECTS`. Only Unix has
//! this check.

use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::fs;
use crate::lock::{Lock, LockError};

/// The variable with a list of allowed projects, separated as in `PATH`. `*` allows all.
pub const SAFE_PROJECTS: &str = "TANMI_SAFE_PROJECTS";

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct SafeProjects {
    version: u32,
    projects: Vec<PathBuf>,
    /// Keys of a newer version.
    #[serde(flatten)]
    other: serde_json::Map<String, serde_json::Value>,
}

/// Returns the owner of a file or folder if that is another user. For root, the user that ran `sudo` is not
/// another one.
#[cfg(unix)]
pub fn other_owner(meta: &Metadata) -> Option<u32> {
    let owner = std::os::unix::fs::MetadataExt::uid(meta);
    let user = rustix::process::geteuid();
    let is_own = owner == user.as_raw() || (user.is_root() && sudo_user() == Some(owner));
    (!is_own).then_some(owner)
}

#[cfg(unix)]
fn sudo_user() -> Option<u32> {
    std::env::var("SUDO_UID").ok()?.parse().ok()
}

#[cfg(not(unix))]
pub fn other_owner(_: &Metadata) -> Option<u32> {
    None
}

/// Returns the store or else the folder of a project that belongs to another user, and its owner.
pub fn find_other_owner(project: &Path) -> Option<(PathBuf, u32)> {
    let store = crate::paths::project_store(project);
    let of_store = std::fs::symlink_metadata(&store).ok().as_ref().and_then(other_owner);
    let of_folder = || std::fs::metadata(project).ok().as_ref().and_then(other_owner);
    of_store.map(|owner| (store, owner)).or_else(|| Some((project.to_owned(), of_folder()?)))
}

/// Returns whether the user allowed a project of another owner. A file that cannot be read allows nothing.
pub fn is_allowed(home: &Path, project: &Path) -> bool {
    let Ok(project) = project.canonicalize() else { return false };
    let variable = std::env::var_os(SAFE_PROJECTS).unwrap_or_default();
    let is_project =
        |entry: PathBuf| entry.as_os_str() == "*" || entry.canonicalize().is_ok_and(|entry| entry == project);
    std::env::split_paths(&variable).any(is_project)
        || load(home).is_ok_and(|safe| safe.projects.contains(&project))
}

/// Allows or forbids a project of another owner. Returns whether that changed anything.
pub fn set_allowed(home: &Path, project: &Path, is_allowed: bool) -> Result<bool, LockError> {
    let path = path(home);
    let io = |source| LockError::Io { path: path.clone(), source };
    let project = project.canonicalize().map_err(io)?;
    if !is_allowed && !load(home).map_err(io)?.projects.contains(&project) {
        return Ok(false);
    }
    fs::create_private_dir(home).map_err(io)?;
    let _lock = Lock::exclusive(&home.join("safe-projects.lock"))?;
    let mut safe = load(home).map_err(io)?;
    let was_allowed = safe.projects.contains(&project);
    safe.projects.retain(|known| *known != project);
    safe.projects.extend(is_allowed.then_some(project));
    safe.version = 1;
    let mut text = serde_json::to_vec_pretty(&safe).map_err(|error| io(error.into()))?;
    text.push(b'\n');
    fs::write_private(&path, &text).map_err(io)?;
    Ok(was_allowed != is_allowed)
}

fn path(home: &Path) -> PathBuf {
    home.join("safe-projects.json")
}

fn load(home: &Path) -> io::Result<SafeProjects> {
    match fs::read_limited(&path(home), 1 << 20)? {
        Some(bytes) => Ok(serde_json::from_slice(&bytes)?),
        None => Ok(SafeProjects::default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_allowed_lists_project_until_it_is_forbidden() {
        let temp = tempfile::tempdir().unwrap();
        let (home, project) = (temp.path().join("home"), temp.path().join("project"));
        std::fs::create_dir(&project).unwrap();
        assert!(!set_allowed(&home, &project, false).unwrap());
        assert!(!home.exists(), "nothing was written");
        assert!(!is_allowed(&home, &project));
        assert!(set_allowed(&home, &project, true).unwrap());
        assert!(!set_allowed(&home, &project, true).unwrap());
        assert!(is_allowed(&home, &project) && !is_allowed(&home, temp.path()));
        assert!(set_allowed(&home, &project, false).unwrap());
        assert!(!is_allowed(&home, &project));
    }

    #[test]
    fn set_allowed_keeps_unknown_keys_and_refuses_damaged_file() {
        let temp = tempfile::tempdir().unwrap();
        let home = temp.path().join("home");
        fs::create_private_dir(&home).unwrap();
        fs::write_private(&path(&home), b"{\"version\": 1, \"projects\": [], \"later\": [1]}").unwrap();
        set_allowed(&home, temp.path(), true).unwrap();
        let text = std::fs::read_to_string(path(&home)).unwrap();
        assert!(text.contains("\"later\""), "{text}");
        fs::write_private(&path(&home), b"{").unwrap();
        assert!(set_allowed(&home, temp.path(), true).is_err());
        assert!(!is_allowed(&home, temp.path()));
    }
}
