//! Memory: facts, summaries and past conversations, found by search. [`MemoryStore`] is the interface;
//! [`FileMemory`] keeps them in append-only files.
//!
//! What is injected into a session, and when, is decided elsewhere.

use std::io;
use std::path::{Path, PathBuf};

pub mod anchors;
pub mod answer;
#[cfg(any(test, feature = "stories"))]
pub mod contract;
pub mod current;
pub mod dates;
pub mod decide;
pub mod expand;
mod file;
pub mod folder;
mod glossary;
pub mod import;
pub mod lexicon;
pub mod rank;
pub mod recent;
pub mod record;
mod replica;
pub mod scoped;
pub mod search;
pub mod segment;
pub mod store;
pub mod sync;
pub mod transcripts;
pub mod transfer;
mod variants;
mod vec_memory;
pub mod vectors;
mod word_list;

pub use file::FileMemory;
pub use folder::{AppendSync, Folder, LEGACY_DIR};
pub use record::{Author, Fact, MemoryType, Summary};
pub use replica::ReplicaMemory;
pub use store::{Delivery, ImportResult, Mark, MemoryPage, MemoryStats, MemoryStore, SavedFact, SearchQuery};
pub use tanmi_index::{
    IndexError, LexiconIndex, LexiconInfo, MemoryFilter, MemoryKind, MemoryLetter, MemoryRow,
    UnavailableCause,
};
pub use vec_memory::VecMemory;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("memory {id:?} not found")]
    NotFound { id: String },
    /// The memory is forgotten, or superseded by the memory `by`.
    #[error("memory {id} is not current")]
    NotCurrent { id: String, by: String },
    /// An opinion or a turn of a conversation, which a memory that people share does not take.
    #[error("memory {id} is private")]
    Private { id: String },
    #[error("cannot use the embedding model in {dir}: {reason}", dir = dir.display(), reason = reason.en)]
    Model { dir: PathBuf, reason: tanmi_base::Bilingual },
    /// The server of the team cannot be reached, or does not answer in time.
    #[error("cannot reach {server}: {reason}")]
    TeamUnreachable { server: String, reason: String, may_have_run: bool },
    /// The server of the team refused the write.
    #[error("{server} refused: {message}")]
    TeamRefused { server: String, code: String, message: String },
    /// The server of the team cannot be reached, and as many writes as are kept wait for it.
    #[error("{limit} writes wait for the server")]
    OutboxFull { limit: usize },
    /// The memory cannot be read or written now. `place` names the file, folder or server.
    #[error("{}", describe(cause, place))]
    Unavailable { place: String, cause: UnavailableCause },
}

fn describe(cause: &UnavailableCause, place: &str) -> String {
    match cause {
        UnavailableCause::Busy => format!("{place} is locked by another process"),
        UnavailableCause::Index(error) => error.to_string(),
        UnavailableCause::Io(error) => format!("{place}: {error}"),
        UnavailableCause::Moved => format!("{place} was moved, replaced or deleted while in use"),
        UnavailableCause::OtherOwner(owner) => format!("{place} belongs to another user (uid {owner})"),
    }
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub fn io(path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::Unavailable {
            place: path.as_ref().display().to_string(),
            cause: UnavailableCause::Io(source),
        }
    }

    pub fn not_found(id: &str) -> Error {
        Error::NotFound { id: id.to_owned() }
    }

    /// Returns whether an index is damaged; it can be deleted and built again.
    pub(crate) fn is_lost_index(&self) -> bool {
        matches!(self, Error::Unavailable { cause: UnavailableCause::Index(error), .. } if error.is_lost())
    }
}

impl From<tanmi_index::IndexError> for Error {
    fn from(error: tanmi_index::IndexError) -> Error {
        Error::Unavailable { place: String::from("memory index"), cause: UnavailableCause::Index(error) }
    }
}

impl From<tanmi_base::place::PlaceError> for Error {
    fn from(error: tanmi_base::place::PlaceError) -> Error {
        Error::Unavailable { place: error.path().display().to_string(), cause: error.into() }
    }
}

impl From<tanmi_base::lock::LockError> for Error {
    fn from(error: tanmi_base::lock::LockError) -> Error {
        let (path, cause) = match error {
            tanmi_base::lock::LockError::Busy { path, .. } => (path, UnavailableCause::Busy),
            tanmi_base::lock::LockError::Io { path, source } => (path, UnavailableCause::Io(source)),
        };
        Error::Unavailable { place: path.display().to_string(), cause }
    }
}
