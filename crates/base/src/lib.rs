//! The ground floor: what every other crate stands on and nothing of what they are about.
//!
//! Clock, ids, hashes, atomic files, locks, the redo journal, paths, text budgets, secrets, the two languages. No
//! workspace, no memory, no agent.

pub mod clock;
pub mod fs;
pub mod hash;
pub mod id;
pub mod interface;
pub mod journal;
pub mod lang;
pub mod lock;
pub mod paths;
pub mod secrets;
pub mod text;

pub use clock::Millis;
pub use interface::Interface;
pub use lang::Lang;
