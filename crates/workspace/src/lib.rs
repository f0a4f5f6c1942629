//! Workspaces: trees of planned work with rules, a state machine per node, logs and problems.
//!
//! [`model`] defines the data, [`state`] the legal transitions, [`ops`] the operations, [`context`] the context for an
//! agent, [`codec`] the Markdown format and [`store`] the persistence. This crate does not depend on clients, sessions,
//! terminals or the environment. The current time is always an argument.

pub mod codec;
pub mod collect;
pub mod command;
pub mod context;
pub mod dependencies;
pub mod error;
pub mod limits;
pub mod model;
pub mod ops;
pub mod outline;
pub mod state;
pub mod store;
#[cfg(any(test, feature = "stories"))]
pub mod stories;
pub mod texts;

pub use error::{Error, Result};

#[cfg(test)]
mod tests;
