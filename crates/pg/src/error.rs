//! Errors of the database: what is wrong and what to do, and how a store reports them.

use std::io;
use std::path::PathBuf;

use tanmi_base::{Bilingual, Lang, fs};
use tanmi_workspace::error::{Error, UnavailableCause};
use tokio_postgres::error::{ErrorPosition, SqlState};

use crate::connection::CallError;

mod trouble;

pub use trouble::DatabaseTrouble;

/// The name of the database in errors. Its address can contain a password and is never shown.
pub(crate) const PLACE: &str = "PostgreSQL";

/// An error of the database outside of a store: of the address, the connection or the schema.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// The text says what is wrong without repeating the address.
    #[error("the address of the database is not valid: {0}")]
    Address(String),
    #[error("the passfile {path} cannot be used: {reason}", path = path.display())]
    Passfile { path: PathBuf, reason: String },
    #[error("the database cannot be used: {0}")]
    Failed(String),
    /// Another transaction was in the way. The same call can succeed at once.
    #[error("another transaction changed the same rows; retry")]
    Conflict,
    /// A text has the only character of UTF-8 that the database does not store.
    #[error("texts must not contain the character NUL (U+0000)")]
    Nul,
    #[error(transparent)]
    Trouble(#[from] DatabaseTrouble),
}

impl DatabaseError {
    /// Returns what is wrong and what to do.
    pub fn message(&self, lang: Lang) -> String {
        match self {
            DatabaseError::Address(reason) => {
                lang.pick(format!("数据库地址无效：{reason}"), self.to_string())
            }
            DatabaseError::Passfile { path, reason } => {
                lang.pick(format!("无法使用密码文件 {}：{reason}", path.display()), self.to_string())
            }
            DatabaseError::Failed(reason) => lang.pick(format!("无法使用数据库：{reason}"), self.to_string()),
            DatabaseError::Conflict => {
                lang.pick(String::from("另一个事务修改了相同的行；请重试"), self.to_string())
            }
            DatabaseError::Nul => lang.pick(String::from("文字不能包含字符 NUL（U+0000）"), self.to_string()),
            DatabaseError::Trouble(trouble) => trouble.text().pick(lang).to_owned(),
        }
    }
}

impl From<CallError> for DatabaseError {
    fn from(error: CallError) -> DatabaseError {
        match error {
            CallError::Driver(error) if is_conflict(&error) => DatabaseError::Conflict,
            CallError::Driver(error) if error.code() == Some(&SqlState::CHARACTER_NOT_IN_REPERTOIRE) => {
                DatabaseError::Nul
            }
            CallError::Driver(error) => DatabaseTrouble::of_driver(&error).into(),
            CallError::TimedOut => DatabaseTrouble::Away.into(),
        }
    }
}

impl From<DatabaseError> for Error {
    fn from(error: DatabaseError) -> Error {
        match error {
            // The caller retries it.
            DatabaseError::Conflict => conflict(),
            DatabaseError::Nul => Error::invalid(
                "text",
                String::from("不能包含字符 NUL（U+0000）"),
                String::from("must not contain the character NUL (U+0000)"),
            ),
            DatabaseError::Trouble(trouble) => trouble.into(),
            other => {
                let text = Bilingual::new(other.message(Lang::Zh), other.message(Lang::En));
                unavailable(UnavailableCause::Io(fs::explain(text, other)))
            }
        }
    }
}

impl From<DatabaseTrouble> for Error {
    fn from(trouble: DatabaseTrouble) -> Error {
        unavailable(match trouble {
            DatabaseTrouble::Slow | DatabaseTrouble::PoolBusy => UnavailableCause::Busy,
            other => UnavailableCause::Io(fs::explain(other.text(), other)),
        })
    }
}

/// Returns the error for a write that another transaction is in the way of.
pub(crate) fn conflict() -> Error {
    Error::Conflict { place: String::from(PLACE) }
}

/// Returns the error of a memory for the error of a store.
pub(crate) fn memory_error(error: Error) -> tanmi_memory::Error {
    let (place, cause) = match error {
        Error::Unavailable { place, cause } => (place, cause),
        Error::Conflict { place } => (place, UnavailableCause::Busy),
        other => (String::from(PLACE), UnavailableCause::Io(io::Error::other(other.to_string()))),
    };
    tanmi_memory::Error::Unavailable { place, cause }
}

/// Returns whether another transaction was in the way. It may have taken the number of this change or the key of this
/// request.
fn is_conflict(error: &tokio_postgres::Error) -> bool {
    let Some(code) = error.code() else { return false };
    let is_taken = || {
        let constraint = error.as_db_error().and_then(|error| error.constraint());
        *code == SqlState::UNIQUE_VIOLATION && matches!(constraint, Some("change_pkey" | "request_pkey"))
    };
    matches!(*code, SqlState::T_R_SERIALIZATION_FAILURE | SqlState::T_R_DEADLOCK_DETECTED) || is_taken()
}

fn unavailable(cause: UnavailableCause) -> Error {
    Error::Unavailable { place: String::from(PLACE), cause }
}

/// Returns the message of the database with its code, or that of the driver.
pub(crate) fn describe(error: &tokio_postgres::Error) -> String {
    let Some(db) = error.as_db_error() else {
        let source = std::error::Error::source(error).map(|source| format!(": {source}"));
        return format!("{error}{}", source.unwrap_or_default());
    };
    let position = match db.position() {
        Some(ErrorPosition::Original(at)) => format!(" at character {at}"),
        _ => String::new(),
    };
    format!("{} ({}){position}", db.message(), db.code().code())
}
