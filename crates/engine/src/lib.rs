//! The decision engine: facts and rules in, a decision out. No I/O, no clock, nothing remembered between calls.
//!
//! [`decide`] runs the rules in the order of their priority. Built-in rules are one file each under [`builtin`]; what
//! they may look at is in [`facts`].

mod builtin;
mod context_text;
mod decide;
mod facts;
mod neutral;

pub use builtin::{BUILTIN, Rule};
pub use context_text::{context_hash, context_text};
pub use decide::decide;
pub use facts::{Children, Facts, NodeFacts, SessionFacts, WorkspaceFacts};
pub use neutral::neutral;
