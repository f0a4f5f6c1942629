//! Sessions: the workspace each session is bound to, what its hooks remember, its client process, and the ledger
//! of the texts injected into it.
//!
//! All of this is in the home store. This crate does not know what a workspace or a reminder is.

use std::io;
use std::path::Path;

mod bindings;
mod ledger;
pub mod pause;
mod process;
mod state;

pub use bindings::{Binding, Bindings, FileBindings};
pub use ledger::{FileLedger, Ledger, LedgerEntry, LedgerRead, LedgerTail};
pub use process::{ClientProcess, client_of_hook, client_of_server, current_process, is_running};
pub use state::{HandledEvent, LastReminder, LockedState, LostClaim, RefusedWrite, SessionState, States};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The stored data cannot be read or written. `place` names the file.
    #[error("{place}: {source}")]
    Io { place: String, source: io::Error },
    #[error("{place} is locked by another process")]
    Busy { place: String },
    /// Clients choose their session ids, so any text is valid unless it is empty or too long.
    #[error("the session id is empty or longer than {0} bytes")]
    BadSession(usize),
    /// The store does not take the session, for example because it belongs to another person.
    #[error("{}", reason.en)]
    Refused { reason: tanmi_base::Bilingual },
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Maximum length of a session id; far above what any client uses.
pub const MAX_SESSION_BYTES: usize = 512;

/// Checks that a session id from a client is valid.
pub fn check_session(session: &str) -> Result<()> {
    if session.trim().is_empty() || session.len() > MAX_SESSION_BYTES {
        return Err(Error::BadSession(MAX_SESSION_BYTES));
    }
    Ok(())
}

impl Error {
    fn io(path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::Io { place: path.as_ref().display().to_string(), source }
    }

    fn busy(path: &Path) -> Error {
        Error::Busy { place: path.display().to_string() }
    }
}

impl From<tanmi_base::lock::LockError> for Error {
    fn from(error: tanmi_base::lock::LockError) -> Error {
        match error {
            tanmi_base::lock::LockError::Busy { path, .. } => Error::busy(&path),
            tanmi_base::lock::LockError::Io { path, source } => Error::io(path)(source),
        }
    }
}
