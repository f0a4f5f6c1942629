//! The decision engine: facts and rules in, a decision out. No I/O, no clock, nothing remembered between calls.
//!
//! [`decide`] runs the rules in the order of their priority; [`decide_with_trace`] does the same and tells what became of each.
//! Built-in rules are one file each under [`builtin`], rules that people write are read in [`custom`], and what either
//! may look at is in [`facts`].

mod builtin;
mod capped_text;
mod context_text;
mod custom;
mod decide;
mod escape_tags;
mod facts;

pub use builtin::{BUILTIN_RULES, BuiltinRule, SkipReason};
pub use context_text::{ContextHash, context_text};
pub use custom::{CustomRule, RuleFlaw, RuleSource, check_condition, parse_rules};
pub use decide::{RuleTrace, TracedDecision, Verdict, decide, decide_with_trace, is_already_told};
pub use escape_tags::escape_tags;
pub use facts::{
    ChildCounts, DeclaredFacts, DeclaredFile, FactLine, Facts, MemoryFacts, NodeFacts, ParentFacts,
    SessionFacts, SummaryFacts, WorkspaceFacts,
};
