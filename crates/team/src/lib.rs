//! A machine of a team: which projects it joined, the client of their server, and their replicas in the layout of local
//! projects. The server decides every write; reads come from the replica.
//!
//! Hooks use only [`Membership`] and the replica. No function that a hook calls opens a connection.

mod client;
mod membership;
mod workspaces;

pub use client::{Client, ClientError};
pub use membership::{Member, Membership};
pub use workspaces::TeamWorkspaces;
