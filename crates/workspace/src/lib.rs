//! A workspace: a tree of planned work with rules, enforced states, logs and problems.
//!
//! [`model`] says what there is, [`state`] which steps are legal, [`ops`] what may be done, [`context`] what an agent
//! is told, [`codec`] how it looks as Markdown, [`store`] where it is kept. Nothing here knows of agents, sessions,
//! terminals or the environment, and time is always an argument.

pub mod codec;
pub mod collect;
pub mod context;
pub mod error;
pub mod limits;
pub mod model;
pub mod ops;
pub mod state;
pub mod store;

pub use error::{Error, Result};

#[cfg(test)]
mod tests;
