//! SQLite indexes behind a small interface. An index is derived from files and may be deleted at any time:
//! opening it reports when it is new, and the caller fills it again.
//!
//! This crate does not know what a status means, and no other crate contains SQL.

mod memory;
mod nodes;

pub use memory::{
    IndexedFile, MemoryFilter, MemoryIndex, MemoryKind, MemoryLetter, MemoryOutline, MemoryRow,
};
pub use nodes::{NodeIndex, NodeRow, OpenOutcome, RowPosition, StatusCountRows};

/// Why stored data cannot be used now.
#[derive(Debug)]
pub enum UnavailableCause {
    /// Another process holds the lock.
    Busy,
    Index(IndexError),
    Io(std::io::Error),
}

/// Deletes an index with the files that SQLite creates beside it. If a file cannot be deleted, the next open
/// fails and reports it.
pub fn discard(path: &std::path::Path) {
    for suffix in ["", "-journal", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        let _ = tanmi_base::fs::remove_tree(std::path::Path::new(&name));
    }
}

/// Returns whether SQLite finds no error in an index. An index that another process is writing to counts as
/// sound.
pub fn is_sound(path: &std::path::Path) -> bool {
    use rusqlite::{Connection, ErrorCode, OpenFlags};
    // Open only a regular file: a pipe would block until a writer opens it.
    if !path.is_file() {
        return false;
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let checked = Connection::open_with_flags(path, flags)
        .and_then(|db| db.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0)));
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
        use rusqlite::ErrorCode;
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
