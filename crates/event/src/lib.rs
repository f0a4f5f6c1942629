//! Events of agents and the decisions about them: event in, decision out. Plain data; this crate performs no
//! action.

mod decision;
mod event;
mod platform;
mod rule;

pub use decision::{ActionKind, Decision, DecisionAction, Throttle};
pub use event::{Event, EventKind, Payload, Source, StartSource};
pub use platform::{API, Capabilities, ClientVersion, CompactionRecipient, FallbackFiles, Platform, WEB};
pub use rule::{BuiltinRuleId, RuleId};
