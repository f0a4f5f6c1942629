//! SQLite behind a small door. An index is derived from files and may be deleted at any moment: whoever opens it is
//! told when it is new and fills it again.
//!
//! Nothing here knows what a status means, and nothing outside this crate knows SQL.

mod memory;
mod nodes;

pub use memory::{IndexedFile, MemoryFilter, MemoryIndex, MemoryOutline, MemoryRow};
pub use nodes::{NodeIndex, NodeRow, OpenOutcome, RowPosition, StatusCountRows};

/// Deletes an index with everything SQLite puts beside it; what cannot be deleted will fail to open and say so.
pub fn discard(path: &std::path::Path) {
    for suffix in ["", "-journal", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        let _ = tanmi_base::fs::remove_tree(std::path::Path::new(&name));
    }
}

/// Whether SQLite finds nothing wrong in it. One that others are writing to counts as sound.
pub fn is_sound(path: &std::path::Path) -> bool {
    use rusqlite::{Connection, ErrorCode, OpenFlags};
    // Whatever else has its name is not opened: a pipe would wait for its writer.
    if !path.is_file() {
        return false;
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let checked = Connection::open_with_flags(path, flags)
        .and_then(|db| db.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0)));
    match checked {
        Ok(answer) => answer == "ok",
        // One that may only be looked at, in a place where nothing can be written, is not broken for that.
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
    /// The file is broken, gone, or not ours; deleting it is the cure.
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
