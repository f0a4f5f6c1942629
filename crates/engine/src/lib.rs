//! The decision engine: facts and rules in, a decision out. No I/O, no clock, nothing remembered between calls.
//!
//! [`decide`] runs the rules in the order of their priority; [`judge`] does the same and tells what became of each.
//! Built-in rules are one file each under [`builtin`], rules that people write are read in [`custom`], and what either
//! may look at is in [`facts`].

mod builtin;
mod context_text;
mod custom;
mod decide;
mod facts;
mod neutral;
mod page;

pub use builtin::{BUILTIN, Builtin, Why};
pub use context_text::{ContextHash, context_text};
pub use custom::{CustomRule, Flaw, RuleSource, check_condition, parse_rules};
pub use decide::{Judged, Trace, Verdict, decide, is_told, judge};
pub use facts::{
    Children, DeclaredFacts, DeclaredFile, FactLine, Facts, MemoryFacts, NodeFacts, ParentFacts,
    SessionFacts, SummaryFacts, WorkspaceFacts,
};
pub use neutral::neutral;
