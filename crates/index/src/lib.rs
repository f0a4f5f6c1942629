//! SQLite indexes behind a small interface. An index is derived from files and may be deleted at any time:
//! opening it reports when it is new, and the caller fills it again.
//!
//! This crate does not know what a status means, and no other crate uses SQLite.

use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use tanmi_base::fs;

mod activity;
mod lexicon;
mod memory;
mod nodes;

use tanmi_base::place::PlaceError;

pub use activity::{
    ActivityFilter, ActivityIndex, ActivityPosition, ActivityRow, NodeStateFilter, NodeStateRow,
};
pub use lexicon::{LexiconIndex, LexiconInfo};
pub use memory::{
    IndexedFile, MemoryFilter, MemoryIndex, MemoryKind, MemoryLetter, MemoryOutline, MemoryRow,
};
pub use nodes::{BranchRow, NodeIndex, NodeQuery, NodeRow, OpenOutcome, RowPosition, StatusCountRows};

/// Why stored data cannot be used now.
#[derive(Debug)]
pub enum UnavailableCause {
    /// Another process holds the lock.
    Busy,
    Index(IndexError),
    Io(std::io::Error),
    /// The project was moved, replaced or deleted while this process used it.
    Moved,
    /// The project belongs to another user.
    OtherOwner(u32),
}

impl From<PlaceError> for UnavailableCause {
    fn from(error: PlaceError) -> UnavailableCause {
        match error {
            PlaceError::Moved { .. } => UnavailableCause::Moved,
            PlaceError::OtherOwner { owner, .. } => UnavailableCause::OtherOwner(owner),
            PlaceError::Unknown { reason, .. } => UnavailableCause::Io(std::io::Error::other(reason)),
        }
    }
}

/// The name endings of an index and of the files that SQLite creates beside it.
const ENDINGS: [&str; 4] = ["", "-journal", "-wal", "-shm"];

fn files(path: &Path) -> impl Iterator<Item = PathBuf> {
    ENDINGS.iter().map(|ending| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    })
}

/// Deletes an index with the files that SQLite creates beside it. If a file cannot be deleted, the next open
/// fails and reports it.
pub fn discard(path: &Path) {
    for file in files(path) {
        let _ = fs::remove_tree(&file);
    }
}

/// Opens the file of an index, and creates it if the flags allow that. Only its owner can open the files: another user
/// who could open them could lock them. A link, a file with a second name or a special file is not an index; the error
/// says that it is lost, so that the caller deletes the name and creates a new index.
fn connect(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    if !files(path).all(|file| fs::check_unopened(&file)) {
        let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN);
        return Err(rusqlite::Error::SqliteFailure(code, Some(String::from("not a regular file"))));
    }
    if flags.contains(OpenFlags::SQLITE_OPEN_CREATE) && !path.exists() {
        // Without hard links SQLite creates the file, with the mode that the user's settings give it.
        let _ = fs::create_private(path);
    }
    let db = Connection::open_with_flags(path, flags)?;
    // The plan of a query does not depend on its values. Otherwise SQLite prepares most queries twice.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(db)
}

const READ_ONLY: OpenFlags = OpenFlags::SQLITE_OPEN_READ_ONLY.union(OpenFlags::SQLITE_OPEN_NO_MUTEX);

/// Returns whether SQLite finds no error in an index. A missing index and one that another process is writing to count
/// as sound.
pub fn is_sound(path: &Path) -> bool {
    if std::fs::symlink_metadata(path).is_err_and(|error| fs::is_absent(&error)) {
        return true;
    }
    // Open only a regular file: a pipe would block until a writer opens it.
    if !fs::check_unopened(path) {
        return false;
    }
    let checked = connect(path, READ_ONLY)
        .and_then(|db| db.query_row("PRAGMA integrity_check(1)", [], |row| row.get::<_, String>(0)));
    match checked {
        Ok(answer) => answer == "ok",
        // A read-only index in a read-only folder cannot be checked, which does not mean that it is damaged.
        Err(rusqlite::Error::SqliteFailure(error, _))
            if matches!(error.code, ErrorCode::CannotOpen | ErrorCode::ReadOnly) =>
        {
            true
        }
        Err(error) => !IndexError(error).is_lost(),
    }
}

#[derive(Debug, thiserror::Error)]
#[error("cannot use the index: {0}")]
pub struct IndexError(#[from] rusqlite::Error);

impl IndexError {
    /// Returns whether the file is damaged, missing or not an index of this program. Deleting it solves the
    /// problem.
    pub fn is_lost(&self) -> bool {
        match &self.0 {
            rusqlite::Error::SqliteFailure(error, message) => {
                matches!(
                    error.code,
                    ErrorCode::DatabaseCorrupt
                        | ErrorCode::NotADatabase
                        | ErrorCode::ReadOnly
                        | ErrorCode::CannotOpen
                        | ErrorCode::SystemIoFailure
                        | ErrorCode::SchemaChanged
                ) || message.as_ref().is_some_and(|text| text.contains("no such"))
            }
            rusqlite::Error::InvalidColumnType(..) | rusqlite::Error::FromSqlConversionFailure(..) => true,
            _ => false,
        }
    }
}

pub type Result<T, E = IndexError> = std::result::Result<T, E>;
