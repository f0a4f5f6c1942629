//! Memory: facts, summaries and past conversations, stored in append-only files and found by search.
//!
//! What is injected into a session, and when, is decided elsewhere.

use std::io;
use std::path::PathBuf;

pub mod dates;
pub mod folder;
pub mod rank;
pub mod recent;
pub mod record;
pub mod search;
pub mod segment;
pub mod sync;
pub mod vectors;

pub use folder::{AppendSync, Folder};
pub use record::{Fact, MemoryType, Summary};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{path}: {source}", path = path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{path} is locked by another process", path = path.display())]
    Busy { path: PathBuf },
    #[error("cannot use the embedding model in {dir}: {reason}", dir = dir.display(), reason = reason.en)]
    Model { dir: PathBuf, reason: tanmi_base::Bilingual },
    #[error(transparent)]
    Index(#[from] tanmi_index::IndexError),
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |source| Error::Io { path, source }
    }
}

impl From<tanmi_base::lock::LockError> for Error {
    fn from(error: tanmi_base::lock::LockError) -> Error {
        match error {
            tanmi_base::lock::LockError::Busy { path, .. } => Error::Busy { path },
            tanmi_base::lock::LockError::Io { path, source } => Error::Io { path, source },
        }
    }
}
