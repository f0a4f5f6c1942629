//! Calls to a server with what survives a process: after a failed connect further calls fail at once for a
//! short time, and a command whose answer was lost has the same key when it is repeated.

use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use tanmi_base::{Millis, id};
use tanmi_protocol::Beat;

use crate::client::{Client, ClientError, LostOutcome};
use crate::state::{ReplicaState, StateFile, digest_of};
use crate::{Member, state};

/// How long calls fail at once after a connection could not be made.
const PAUSE: Millis = 30_000;

/// The connection to the project of a team server, as all processes of this machine share it.
pub struct Connection {
    client: Client,
    state: StateFile,
    clock: fn() -> Millis,
}

impl Connection {
    /// `replica` is the folder of the replica.
    pub fn new(member: &Member, replica: &Path, clock: fn() -> Millis) -> Connection {
        Connection { client: Client::new(member), state: StateFile::new(replica), clock }
    }

    pub fn server(&self) -> &str {
        self.client.server()
    }

    /// Returns what is known about the server.
    pub fn state(&self) -> ReplicaState {
        self.state.read()
    }

    pub fn update_state(&self, change: impl FnOnce(&mut ReplicaState)) {
        self.state.update(change);
    }

    /// Records the time of the server in an answer.
    pub fn note_time(&self, server_now: Millis) {
        let skew = server_now - (self.clock)();
        self.state.update(|state| {
            // The way of the answer counts too, so small differences mean nothing.
            if (state.skew - skew).abs() > 2000 {
                state.skew = skew;
            }
        });
    }

    /// Makes the next call try to connect, also after a failed one.
    pub fn end_pause(&self) {
        self.state.update(|state| state.failed_at = None);
    }

    /// Asks the server for a sign of life, also after a failed connect.
    pub fn probe(&self, deadline: Duration) -> Result<Beat, ClientError> {
        self.poll(|client| client.probe(deadline))
    }

    /// Reads from the server, also after a failed connect: for a caller that pauses by itself. An answer ends
    /// the pause of all other calls.
    pub fn poll<T>(&self, call: impl FnOnce(&Client) -> Result<T, ClientError>) -> Result<T, ClientError> {
        let outcome = call(&self.client);
        self.note_outcome(&outcome, |_| {});
        outcome
    }

    /// Reads from the server.
    pub fn read<T>(&self, call: impl FnOnce(&Client) -> Result<T, ClientError>) -> Result<T, ClientError> {
        self.check_pause(&self.state.read())?;
        self.poll(call)
    }

    /// Sends a command. If the answer to the same command was lost in the last minutes, it has the key of that one.
    pub fn command<R: Serialize, T>(
        &self,
        with_key: impl Fn(String) -> R,
        send: impl FnOnce(&Client, &R) -> Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        let (state, now) = (self.state.read(), (self.clock)());
        self.check_pause(&state)?;
        let digest = digest_of(&with_key(String::new()));
        let lost = state.lost_key(&digest, now).map(str::to_owned);
        let key = lost.clone().unwrap_or_else(|| format!("machine-{}", id::random(20)));
        let outcome = send(&self.client, &with_key(key.clone()));
        self.note_outcome(&outcome, |state| match &outcome {
            Err(ClientError::Unreachable { outcome: LostOutcome::Unknown, .. }) => {
                state.keep_key(&digest, &key, now);
            }
            // The earlier attempt is still unsettled.
            Err(ClientError::Unreachable { .. }) => {}
            _ if lost.is_some() => state.forget_key(&digest),
            _ => {}
        });
        match outcome {
            Err(ClientError::Unreachable { reason, .. }) if lost.is_some() => {
                Err(ClientError::Unreachable { reason, outcome: LostOutcome::Unknown })
            }
            other => other,
        }
    }

    fn check_pause(&self, state: &ReplicaState) -> Result<(), ClientError> {
        let since = state.failed_at.map(|at| (self.clock)() - at).filter(|since| (0..PAUSE).contains(since));
        let Some(since) = since else { return Ok(()) };
        let reason = format!(
            "no connection {} s ago; the next attempt is in {} s",
            since / 1000,
            (PAUSE - since) / 1000
        );
        Err(ClientError::Unreachable { reason, outcome: LostOutcome::NotSent })
    }

    fn note_outcome<T>(
        &self,
        outcome: &Result<T, ClientError>,
        change: impl FnOnce(&mut state::ReplicaState),
    ) {
        let now = (self.clock)();
        self.state.update(|state| {
            match outcome {
                Err(ClientError::Unreachable { outcome: LostOutcome::NotSent, .. }) => {
                    state.failed_at = Some(now);
                }
                Err(ClientError::Unreachable { .. }) => {}
                _ => state.note_contact(now),
            }
            change(state);
        });
    }
}

#[cfg(test)]
mod tests;
