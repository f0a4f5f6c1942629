//! Sessions: the workspace each session is bound to, what its hooks remember, its client process, and the ledger
//! of the texts injected into it.
//!
//! All of this is in the home store. This crate does not know what a workspace or a reminder is.

use std::io;
use std::path::PathBuf;

mod bindings;
mod ledger;
pub mod pause;
mod process;
mod state;

pub use bindings::{Binding, Bindings, FileBindings};
pub use ledger::{FileLedger, Ledger, LedgerEntry, LedgerRead, is_day};
pub use process::{ClientProcess, client_of_hook, client_of_server, is_running};
pub use state::{HandledEvent, SessionState, States};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{path}: {source}", path = path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{path} is locked by another process", path = path.display())]
    Busy { path: PathBuf },
    /// Clients choose their session ids, so any text is valid unless it is empty or too long.
    #[error("the session id is empty or longer than {0} bytes")]
    BadSession(usize),
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
    fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
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
