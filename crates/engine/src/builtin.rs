//! The built-in rules, one file each. A rule is a function from what is known to what is said, or to why nothing is.

use tanmi_event::{ActionKind, Event, EventKind, Throttle};

use crate::facts::Facts;

mod binding_hint;
mod binding_lost;
mod context_inject;
mod context_refresh;
mod declared_context;
mod memory_flush;
mod memory_load;
mod plan_confirm;
mod reminders;
mod session_info;
mod session_save;
mod smart_reminder;
mod subagent_context;
mod task_complete;

pub struct BuiltinRule {
    pub id: &'static str,
    /// For people: what it does.
    pub about: (&'static str, &'static str),
    /// Lower runs first.
    pub priority: i32,
    pub events: &'static [EventKind],
    pub run: fn(&RuleInput<'_>) -> Result<RuleOutput, SkipReason>,
}

/// Why a rule says nothing, in Chinese and English.
pub type SkipReason = (&'static str, &'static str);

/// What a rule may look at.
pub struct RuleInput<'a> {
    pub event: &'a Event,
    pub facts: &'a Facts,
    /// Bytes that the rules before it left.
    pub left: usize,
}

impl RuleInput<'_> {
    /// Some clients run the hook of a start behind that of the first prompt, and it would be told twice.
    fn refuse_before_start(&self) -> Result<(), SkipReason> {
        let session = &self.facts.session;
        let is_early = self.event.kind == EventKind::PromptSubmit
            && self.event.platform.starts_late
            && session.prompts <= 1
            && !session.hooks_seen.contains(&EventKind::SessionStart);
        if is_early {
            return Err(("会话开始的钩子即将注入", "the session-start hook is about to inject it"));
        }
        Ok(())
    }

    /// Whoever hears that its workspace is lost is not told beside it that it has none.
    fn refuse_if_lost(&self) -> Result<(), SkipReason> {
        let is_already_told =
            self.facts.session.lost.is_some() && !self.facts.disabled_rules.contains(&binding_lost::RULE.id);
        if is_already_told {
            return Err(("绑定的工作区无法读取", "the bound workspace cannot be read"));
        }
        Ok(())
    }
}

/// Bytes that whoever speaks at length leaves for a reminder beside it.
pub(crate) const FOR_REMINDER: usize = 600;

/// What a rule says.
pub struct RuleOutput {
    pub kind: ActionKind,
    pub content: String,
    /// Not again before its time is over.
    pub throttle: Option<Throttle>,
}

impl RuleOutput {
    fn always(kind: ActionKind, content: String) -> Result<RuleOutput, SkipReason> {
        Ok(RuleOutput { kind, content, throttle: None })
    }
}

const UNBOUND: SkipReason = ("会话未绑定工作区", "the session is not bound to a workspace");
const BOUND: SkipReason = ("会话已绑定工作区", "the session is bound to a workspace");

/// Three minutes: for reminders per type, for the hint, and for custom rules at a prompt.
pub(crate) const QUIET: i64 = 180_000;

/// The end of a command that somebody may run as it stands: only a plain id goes into it.
fn session_flag(id: &str) -> String {
    let is_plain = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte));
    if is_plain && !id.is_empty() { format!(" --session {id}") } else { String::new() }
}

/// Not the same again for three minutes.
fn quiet(key: &str, rule: &str) -> Throttle {
    Throttle { key: key.to_owned(), ttl: QUIET, rule: rule.to_owned() }
}

pub const BUILTIN_RULES: &[BuiltinRule] = &[
    binding_lost::RULE,
    session_info::RULE,
    context_inject::RULE,
    context_refresh::RULE,
    declared_context::RULE,
    memory_load::RULE,
    subagent_context::RULE,
    plan_confirm::RULE,
    smart_reminder::RULE,
    task_complete::RULE,
    binding_hint::RULE,
    memory_flush::RULE,
    session_save::RULE,
];

#[cfg(test)]
mod tests;
