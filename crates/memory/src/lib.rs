//! Memory: facts, summaries and past conversations.

pub mod dates;
pub mod rank;
pub mod segment;
