//! Limits on open connections. Any user of this machine can connect, so connections without an authorized request have
//! a small limit of their own. When it is reached, the oldest of them is closed, and the owner can always connect.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::AbortHandle;

/// The maximum number of connections that have not sent an authorized request.
const MAX_UNAUTHORIZED: usize = 128;
/// The maximum number of connections that have, for a server of one person. Both together are less than the
/// usual limit of open files per process on Linux (1024).
pub const MAX_AUTHORIZED: usize = 672;

pub struct Connections {
    state: Mutex<State>,
    max_authorized: usize,
}

#[derive(Default)]
struct State {
    next_id: u64,
    /// Unauthorized connections with the tasks that serve them, oldest first.
    unauthorized: VecDeque<(u64, AbortHandle)>,
    authorized: usize,
}

/// The entry of one connection, which its requests carry as an extension. Dropping it removes the entry.
pub struct Connection {
    id: u64,
    /// The address of the client, or of the proxy in front of it.
    pub address: IpAddr,
    is_authorized: Mutex<bool>,
    all: Arc<Connections>,
}

impl Connections {
    pub fn new(max_authorized: usize) -> Connections {
        Connections { state: Mutex::default(), max_authorized }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection, which begins unauthorized. `serve` starts its task.
    pub fn add(self: &Arc<Connections>, address: IpAddr, serve: impl FnOnce(Arc<Connection>) -> AbortHandle) {
        let id = {
            let mut state = self.state();
            state.next_id += 1;
            state.next_id
        };
        let (is_authorized, all) = (Mutex::new(false), Arc::clone(self));
        let task = serve(Arc::new(Connection { id, address, is_authorized, all }));
        let mut state = self.state();
        state.unauthorized.push_back((id, task));
        let is_full = state.unauthorized.len() > MAX_UNAUTHORIZED;
        let oldest = if is_full { state.unauthorized.pop_front() } else { None };
        drop(state);
        if let Some((_, task)) = oldest {
            task.abort();
        }
    }
}

impl Connection {
    /// Records that the connection sent an authorized request, so that it is not closed for another one. Above the
    /// limit of authorized connections it stays unauthorized.
    pub fn authorize(&self) {
        let mut is_authorized = self.is_authorized.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.all.state();
        if *is_authorized || state.authorized == self.all.max_authorized {
            return;
        }
        *is_authorized = true;
        state.authorized += 1;
        state.unauthorized.retain(|(id, _)| *id != self.id);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let is_authorized = *self.is_authorized.get_mut().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.all.state();
        match is_authorized {
            true => state.authorized -= 1,
            false => state.unauthorized.retain(|(id, _)| *id != self.id),
        }
    }
}
