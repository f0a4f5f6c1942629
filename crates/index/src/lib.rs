//! SQLite behind a small door. An index is derived from files and may be deleted at any moment: whoever opens it is
//! told when it is new and fills it again.
//!
//! Nothing here knows what a status means, and nothing outside this crate knows SQL.

mod nodes;

pub use nodes::{NodeIndex, Opened, Position, Row, Tally};

#[derive(Debug, thiserror::Error)]
#[error("index: {0}")]
pub struct IndexError(#[from] rusqlite::Error);

impl IndexError {
    /// The file is not a usable database any more; deleting it is the cure.
    pub fn is_corrupt(&self) -> bool {
        use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
        matches!(&self.0, rusqlite::Error::SqliteFailure(error, _)
            if matches!(error.code, DatabaseCorrupt | NotADatabase))
            || matches!(
                &self.0,
                rusqlite::Error::InvalidColumnType(..) | rusqlite::Error::FromSqlConversionFailure(..)
            )
    }
}

pub type Result<T, E = IndexError> = std::result::Result<T, E>;
