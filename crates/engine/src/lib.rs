//! The decision engine: turns an event, facts and rules into a decision. It has no I/O, no clock and no state.
//!
//! [`decide`] runs the rules in order of priority and reports the verdict of each rule. [`render`] turns a
//! decision into the text for a platform. [`builtin`] has one file per built-in rule, [`custom`] parses and
//! evaluates custom rules, and [`facts`] defines the data that rules can use.

mod builtin;
mod capped_text;
mod context_hash;
mod context_text;
mod custom;
mod decide;
mod escape_tags;
mod facts;
mod render;
mod told_rules;

pub use builtin::{
    BUILTIN_RULES, BuiltinRule, PLAN_COMPLETED, PROBLEM_OPEN, SkipReason, is_binding_throttle, known_context,
    needs_workspaces, tells_digest, tells_latest,
};
pub use context_hash::ContextHash;
pub use context_text::{context_text, holder_name, overview_text};
pub use custom::{CustomRule, RuleFlaw, RuleSource, check_condition, parse_rules};
pub use decide::{Rule, RuleTrace, Verdict, decide, is_already_told};
pub use escape_tags::escape_tags;
pub use facts::{
    AvailableFacts, AvailableWorkspace, ChildCounts, DamagedNodeFacts, DayFacts, DeclaredFacts, DeclaredFile,
    DigestFacts, FactLine, Facts, HolderFacts, InProgressFacts, LostClaimFacts, MemoryFacts, NextFacts,
    NodeFacts, NodeProblemFacts, OverviewFacts, ParentFacts, ProblemFacts, RefusedWriteFacts, SessionFacts,
    SummaryFacts, SurroundingsFacts, TimeFacts, WaitsFor, WorkedLog, WorkedNode, WorkspaceFacts,
};
pub use render::{CONTEXT_RULES, fit_to_max_bytes, render};
pub use told_rules::{known_rules, told_rules};
