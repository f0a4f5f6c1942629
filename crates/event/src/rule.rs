//! The ids of injection rules.

use std::fmt;

use serde::{Serialize, Serializer};

/// The id of a built-in rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuiltinRuleId {
    BindingLost,
    ClaimLost,
    WriteRefused,
    SessionInfo,
    ContextInject,
    ContextRefresh,
    DeclaredContext,
    MemoryLoad,
    SubagentContext,
    PlanConfirm,
    SmartReminder,
    TaskComplete,
    BindingHint,
    MemoryFlush,
    SessionSave,
}

impl BuiltinRuleId {
    pub fn as_str(self) -> &'static str {
        match self {
            BuiltinRuleId::BindingLost => "binding-lost",
            BuiltinRuleId::ClaimLost => "claim-lost",
            BuiltinRuleId::WriteRefused => "write-refused",
            BuiltinRuleId::SessionInfo => "session-info",
            BuiltinRuleId::ContextInject => "context-inject",
            BuiltinRuleId::ContextRefresh => "context-refresh",
            BuiltinRuleId::DeclaredContext => "declared-context",
            BuiltinRuleId::MemoryLoad => "memory-load",
            BuiltinRuleId::SubagentContext => "subagent-context",
            BuiltinRuleId::PlanConfirm => "plan-confirm",
            BuiltinRuleId::SmartReminder => "smart-reminder",
            BuiltinRuleId::TaskComplete => "task-complete",
            BuiltinRuleId::BindingHint => "binding-hint",
            BuiltinRuleId::MemoryFlush => "memory-flush",
            BuiltinRuleId::SessionSave => "session-save",
        }
    }
}

/// The id of a rule. A custom rule never equals a built-in rule, even if its file gives it the same id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleId {
    Builtin(BuiltinRuleId),
    Custom(String),
}

impl RuleId {
    pub fn as_str(&self) -> &str {
        match self {
            RuleId::Builtin(id) => id.as_str(),
            RuleId::Custom(id) => id,
        }
    }
}

impl From<BuiltinRuleId> for RuleId {
    fn from(id: BuiltinRuleId) -> RuleId {
        RuleId::Builtin(id)
    }
}

impl PartialEq<BuiltinRuleId> for RuleId {
    fn eq(&self, id: &BuiltinRuleId) -> bool {
        matches!(self, RuleId::Builtin(own) if own == id)
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for RuleId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
