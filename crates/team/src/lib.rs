//! A machine of a team: which projects it joined, the client of their server, and their replicas in the layout of local
//! projects. The server decides every write; reads come from the replica.
//!
//! Hooks use only [`Membership`] and the replica. No function that a hook calls opens a connection.

mod address;
mod claims;
mod client;
mod connection;
mod follower;
mod login;
mod membership;
mod memory;
mod outbox;
mod presence;
#[cfg(test)]
mod scripted;
mod state;
mod workspaces;

pub use address::server_address;
pub use client::{Client, ClientError, LostOutcome, TeamCall};
pub use connection::Connection;
pub use follower::{Follower, SessionsInUse};
pub use login::{LoginError, request_link};
pub use membership::{Member, Membership, find_member, replicas};
pub use memory::TeamMemory;
pub use outbox::{Delivered, Entry, EntryRefusal, Outbox, OutboxCounts, OutboxError, QueuedWrite};
pub use presence::Presence;
pub use state::ReplicaState;
pub use tanmi_protocol::Present;
pub use workspaces::{Synced, TeamWorkspaces};
