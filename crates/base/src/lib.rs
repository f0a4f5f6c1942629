//! Foundations shared by all other crates: clock, ids, hashes, atomic files, locks, the redo journal, paths,
//! the owner and place of a project, text budgets, removal of invisible characters, masking of secrets, and
//! the two languages.
//!
//! Nothing in this crate knows about workspaces, memory or agents.

pub mod clock;
pub mod fs;
pub mod git;
pub mod hash;
pub mod id;
pub mod interface;
pub mod invisible;
pub mod journal;
pub mod lang;
pub mod lock;
pub mod owner;
pub mod paths;
pub mod place;
pub mod secrets;
pub mod text;

pub use clock::Millis;
pub use interface::Interface;
pub use lang::{Bilingual, Lang};
