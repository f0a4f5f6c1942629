//! Files of the home store that other users can access, files that this user cannot use, and files that
//! interrupted processes left behind.

use std::path::{Path, PathBuf};

use tanmi_base::fs;

use crate::Result;

#[cfg(unix)]
pub fn open_to_others(home: &Path) -> Vec<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let mut found = Vec::new();
    let mut check = |path: &Path| {
        let mode = std::fs::symlink_metadata(path).map(|meta| (meta.is_symlink(), meta.permissions().mode()));
        if mode.is_ok_and(|(is_link, mode)| !is_link && mode & 0o077 != 0) {
            found.push(path.to_owned());
        }
    };
    if home.is_dir() {
        // Only the files of the home store are checked: if the home folder is also a project, the folder has other
        // files.
        check(home);
    }
    for name in
        ["session-bindings.json", "config.json", "trust.json", "registry.json", "state", "ledger", "install"]
    {
        let path = home.join(name);
        if path.exists() {
            check(&path);
        }
    }
    found
}

#[cfg(not(unix))]
pub fn open_to_others(_: &Path) -> Vec<PathBuf> {
    Vec::new()
}

/// Returns the files and folders of a store that this user may not use: each folder must be writable, and
/// each file that is opened for writing. Others are replaced, so it is enough to read them. The files of
/// nodes are too many to look at.
pub fn find_unusable(store: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    find_unusable_in(store, 3, &mut found);
    found
}

fn find_unusable_in(path: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    let Ok(meta) = std::fs::symlink_metadata(path) else { return };
    let is_replaced = path.extension().is_some_and(|extension| extension == "md" || extension == "json")
        || path.ends_with(".gitignore");
    if !meta.is_symlink() && !fs::is_accessible(path, meta.is_dir() || !is_replaced) {
        return found.push(path.to_owned());
    }
    if !meta.is_dir() || depth == 0 || path.ends_with("nodes") || path.ends_with(".trash") {
        return;
    }
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        find_unusable_in(&entry.path(), depth - 1, found);
    }
}

#[cfg(unix)]
pub fn restrict(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mode = if path.is_dir() { 0o700 } else { 0o600 };
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
pub fn restrict(_: &Path) -> std::io::Result<()> {
    Ok(())
}

/// Deletes a file. A file that is already missing is not an error.
pub fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if !fs::is_absent(&error) => Err(crate::Error::io(path)(error)),
        _ => Ok(()),
    }
}

pub fn find_leftovers(dir: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    for entry in entries.filter(|_| depth > 0) {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            find_leftovers(&path, depth - 1, found);
        } else if fs::is_leftover(&name) {
            found.push(path);
        }
    }
}
