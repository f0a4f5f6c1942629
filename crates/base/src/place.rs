//! The place of a project: its folder and its store, as this process first found them.
//!
//! A process works on the folders that it found first. If a project is moved, replaced or deleted under a running
//! server, a write by path would create a second, empty project at the old path and acknowledge a change there.

use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::{fs, owner, paths};

/// The folder of a project.
#[derive(Debug, Default)]
pub struct ProjectPlace {
    folder: PathBuf,
    /// The home store, which lists the allowed projects of other owners.
    home: Option<PathBuf>,
    first: Mutex<FirstFound>,
    kind: PlaceKind,
}

/// What a place is.
#[derive(Debug, Default)]
enum PlaceKind {
    #[default]
    Project,
    /// A copy in the home store. It can be deleted and fetched again.
    Replica,
    /// A folder of which is not known what it is.
    Unknown { file: PathBuf, reason: String },
}

/// What was there when this process first looked. A store that is created later is added.
#[derive(Clone, Copy, Debug, Default)]
struct FirstFound {
    folder: Option<FolderId>,
    store: Option<FolderId>,
}

/// Identifies a folder, wherever it is moved on its file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FolderId {
    device: u64,
    inode: u64,
    /// In nanoseconds, where the file system records it. A file system can use an inode again.
    created: u128,
}

#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// The project or its store was moved, replaced or deleted.
    #[error("{path} is not the folder that this process opened", path = path.display())]
    Moved { path: PathBuf },
    /// The folder or the store belongs to another user, and the user did not allow the project.
    #[error("{path} belongs to another user (uid {owner})", path = path.display())]
    OtherOwner { path: PathBuf, owner: u32 },
    /// The file that says who keeps the project cannot be read.
    #[error("{path}: {reason}", path = path.display())]
    Unknown { path: PathBuf, reason: String },
}

impl PlaceError {
    /// Returns the folder that the error is about.
    pub fn path(&self) -> &Path {
        match self {
            PlaceError::Moved { path }
            | PlaceError::OtherOwner { path, .. }
            | PlaceError::Unknown { path, .. } => path,
        }
    }
}

impl ProjectPlace {
    /// Without a home store, no project of another owner is allowed.
    pub fn new(folder: &Path, home: Option<&Path>) -> ProjectPlace {
        ProjectPlace { folder: folder.to_owned(), home: home.map(Path::to_owned), ..ProjectPlace::default() }
    }

    /// Returns the place of a copy in the home store, which is the user's own.
    pub fn of_replica(folder: &Path) -> ProjectPlace {
        ProjectPlace { folder: folder.to_owned(), kind: PlaceKind::Replica, ..ProjectPlace::default() }
    }

    /// Returns a place that cannot be used, because `file` cannot be read, which says who keeps the project.
    pub fn unknown(folder: &Path, file: &Path, reason: &str) -> ProjectPlace {
        let kind = PlaceKind::Unknown { file: file.to_owned(), reason: reason.to_owned() };
        ProjectPlace { folder: folder.to_owned(), kind, ..ProjectPlace::default() }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Fails if the project is not the one that the first call found, or if its store belongs to another user.
    pub fn check(&self) -> Result<(), PlaceError> {
        self.check_access(false)
    }

    /// Same as [`ProjectPlace::check`], and also fails if a new store would be in the folder of another user.
    pub fn check_for_write(&self) -> Result<(), PlaceError> {
        self.check_access(true)
    }

    fn check_access(&self, is_write: bool) -> Result<(), PlaceError> {
        match &self.kind {
            PlaceKind::Project => {}
            PlaceKind::Replica => return Ok(()),
            PlaceKind::Unknown { file, reason } => {
                return Err(PlaceError::Unknown { path: file.clone(), reason: reason.clone() });
            }
        }
        let store_path = paths::project_store(&self.folder);
        let (Ok(folder), Ok(store)) =
            (metadata(std::fs::metadata(&self.folder)), store_metadata(&store_path))
        else {
            // The access itself fails too, and reports why.
            return Ok(());
        };
        self.check_identity(folder.as_ref(), store.as_ref())?;
        if store.is_none() && !is_write {
            return Ok(());
        }
        for (path, meta) in [(&store_path, &store), (&self.folder, &folder)] {
            if let Some(owner) = meta.as_ref().and_then(owner::other_owner)
                && !self.is_allowed()
            {
                return Err(PlaceError::OtherOwner { path: path.clone(), owner });
            }
        }
        Ok(())
    }

    fn check_identity(&self, folder: Option<&Metadata>, store: Option<&Metadata>) -> Result<(), PlaceError> {
        let now = FirstFound { folder: folder.map(FolderId::of), store: store.map(FolderId::of) };
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        let is_moved = match first.store {
            Some(_) => first.store != now.store,
            None => first.folder.is_some() && first.folder != now.folder,
        };
        if is_moved {
            return Err(PlaceError::Moved { path: self.folder.clone() });
        }
        *first = FirstFound { folder: first.folder.or(now.folder), store: now.store };
        Ok(())
    }

    /// Returns whether the store belongs to this user or is allowed. One system call, for hooks.
    pub fn has_own_store(&self) -> bool {
        match self.kind {
            PlaceKind::Project => {}
            PlaceKind::Replica => return true,
            PlaceKind::Unknown { .. } => return false,
        }
        let store = store_metadata(&paths::project_store(&self.folder));
        let owner = store.ok().flatten().as_ref().and_then(owner::other_owner);
        owner.is_none() || self.is_allowed()
    }

    /// Returns whether the user allowed the project although it belongs to another user.
    fn is_allowed(&self) -> bool {
        self.home.as_deref().is_some_and(|home| owner::is_allowed(home, &self.folder))
    }
}

impl FolderId {
    fn of(meta: &Metadata) -> FolderId {
        let created = meta.created().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
        let (device, inode) = device_and_inode(meta);
        FolderId { device, inode, created: created.map_or(0, |since| since.as_nanos()) }
    }
}

#[cfg(unix)]
fn device_and_inode(meta: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (meta.dev(), meta.ino())
}

/// Windows names no inode here; the time of creation tells most folders apart.
#[cfg(not(unix))]
fn device_and_inode(_: &Metadata) -> (u64, u64) {
    (0, 0)
}

/// Returns the metadata of a store. A symbolic link is not followed: its own owner counts.
pub(crate) fn store_metadata(store: &Path) -> io::Result<Option<Metadata>> {
    metadata(std::fs::symlink_metadata(store))
}

/// Turns the error that nothing exists into `None`.
fn metadata(found: io::Result<Metadata>) -> io::Result<Option<Metadata>> {
    match found {
        Ok(meta) => Ok(Some(meta)),
        Err(error) if fs::is_absent(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Creates a folder if it does not exist. Its parent must exist: a project that was moved is not created again.
pub fn ensure_dir(dir: &Path) -> io::Result<()> {
    ensure(dir, &std::fs::DirBuilder::new())
}

/// Same as [`ensure_dir`], but a new folder is readable only by its owner.
pub fn ensure_private_dir(dir: &Path) -> io::Result<()> {
    ensure(dir, &fs::private_dir_builder())
}

fn ensure(dir: &Path, builder: &std::fs::DirBuilder) -> io::Result<()> {
    match builder.create(dir) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a place in a scratch folder, and the folder and its store.
    fn place(temp: &tempfile::TempDir) -> (ProjectPlace, PathBuf, PathBuf) {
        let folder = temp.path().join("p");
        std::fs::create_dir(&folder).unwrap();
        let store = paths::project_store(&folder);
        (ProjectPlace::new(&folder, None), folder, store)
    }

    fn is_moved(place: &ProjectPlace) -> bool {
        matches!(place.check_for_write(), Err(PlaceError::Moved { .. }))
    }

    #[test]
    fn check_new_store_in_same_folder_is_accepted() {
        let temp = tempfile::tempdir().unwrap();
        let (place, _, store) = place(&temp);
        place.check_for_write().unwrap();
        std::fs::create_dir(&store).unwrap();
        place.check_for_write().unwrap();
        place.check().unwrap();
    }

    #[test]
    fn check_moved_folder_fails_until_it_is_back() {
        for has_store in [false, true] {
            let temp = tempfile::tempdir().unwrap();
            let (place, folder, store) = place(&temp);
            if has_store {
                std::fs::create_dir(&store).unwrap();
            }
            place.check().unwrap();
            let elsewhere = temp.path().join("p2");
            std::fs::rename(&folder, &elsewhere).unwrap();
            assert!(is_moved(&place));
            std::fs::create_dir_all(&store).unwrap();
            assert!(is_moved(&place), "another project at the same path");
            std::fs::rename(&folder, temp.path().join("p3")).unwrap();
            std::fs::rename(&elsewhere, &folder).unwrap();
            place.check_for_write().unwrap();
        }
    }

    #[test]
    fn check_deleted_or_replaced_store_fails() {
        let temp = tempfile::tempdir().unwrap();
        let (place, folder, store) = place(&temp);
        std::fs::create_dir(&store).unwrap();
        place.check().unwrap();
        std::fs::rename(&store, folder.join("old")).unwrap();
        assert!(is_moved(&place));
        std::fs::create_dir(&store).unwrap();
        assert!(is_moved(&place));
    }

    #[test]
    fn ensure_dir_without_parent_fails() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("a/b");
        assert!(ensure_dir(&dir).is_err_and(|error| fs::is_absent(&error)));
        ensure_dir(&temp.path().join("a")).unwrap();
        ensure_dir(&dir).unwrap();
        ensure_dir(&dir).unwrap();
    }
}
