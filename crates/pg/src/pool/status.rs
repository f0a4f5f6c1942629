//! How busy the pool is, for those who operate the server.

use super::{MAX_CONNECTIONS, Pool};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolStatus {
    /// The number of connections that requests use, and those that are being opened.
    pub in_use: usize,
    pub idle: usize,
    /// The number of threads that wait for a connection or for the place of a writer.
    pub waiting: usize,
    pub max: usize,
}

impl Pool {
    pub fn status(&self) -> PoolStatus {
        let state = self.state();
        let idle = state.idle.len();
        PoolStatus { in_use: state.open - idle, idle, waiting: state.waiting, max: MAX_CONNECTIONS }
    }
}
