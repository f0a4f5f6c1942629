//! The built-in rules, one file each. A rule is a function from event and facts to a text, or to the reason why it
//! has none.

use tanmi_event::{ActionKind, BuiltinRuleId, Event, EventKind, Throttle};

use crate::facts::Facts;

mod binding_hint;
mod binding_lost;
mod claim_lost;
mod context_inject;
mod context_refresh;
mod declared_context;
mod hint_words;
mod memory_flush;
mod memory_load;
mod plan_confirm;
mod reminders;
mod session_info;
mod session_save;
mod smart_reminder;
mod subagent_context;
mod task_complete;
mod write_refused;

pub use binding_hint::{needs_workspaces, tells_latest};
pub use binding_lost::is_binding_throttle;
pub use context_refresh::known_context;
pub use memory_load::tells_digest;
pub use reminders::{PLAN_COMPLETED, PROBLEM_OPEN};

pub struct BuiltinRule {
    pub id: BuiltinRuleId,
    /// What the rule does, in Chinese and English.
    pub about: (&'static str, &'static str),
    /// Rules with lower values run first.
    pub priority: i32,
    pub events: &'static [EventKind],
    pub run: fn(&RuleInput<'_>) -> Result<RuleOutput, SkipReason>,
}

/// Why a rule has no text, in Chinese and English.
pub type SkipReason = (&'static str, &'static str);

pub struct RuleInput<'a> {
    pub event: &'a Event,
    pub facts: &'a Facts,
    /// The part of the byte limit of the platform that earlier rules have not used.
    pub bytes_left: usize,
    /// Whether an earlier rule injects the context, which contains the open problem.
    pub has_context: bool,
}

impl RuleInput<'_> {
    /// Fails at a first prompt whose session-start hook has not run yet. Some clients run that hook after the one of
    /// the first prompt, and the text would be injected twice.
    fn check_session_started(&self) -> Result<(), SkipReason> {
        let session = &self.facts.session;
        let is_early = self.event.kind == EventKind::PromptSubmit
            && self.event.platform.start_may_follow_prompt
            && session.prompts <= 1
            && !session.has_start_hook;
        if is_early {
            return Err(("会话开始的钩子即将注入", "the session-start hook is about to inject it"));
        }
        Ok(())
    }

    /// Fails if the bound workspace is lost or archived. The rule `binding-lost` reports that.
    fn check_workspace_not_lost(&self) -> Result<(), SkipReason> {
        let session = &self.facts.session;
        let is_reported = (session.lost_workspace.is_some()
            || session.archived_workspace.is_some()
            || session.deleted_workspace.is_some())
            && !self.facts.disabled_rules.contains(&binding_lost::RULE.id);
        if is_reported {
            return Err((
                "绑定的工作区无法读取或已归档",
                "the bound workspace cannot be read or is archived",
            ));
        }
        Ok(())
    }
}

/// Bytes that long texts leave free for a reminder in the same decision.
pub(crate) const REMINDER_RESERVE: usize = 600;

/// The text that a rule injects.
pub struct RuleOutput {
    pub kind: ActionKind,
    pub content: String,
    pub throttle: Option<Throttle>,
}

impl RuleOutput {
    fn unthrottled(kind: ActionKind, content: String) -> Result<RuleOutput, SkipReason> {
        Ok(RuleOutput { kind, content, throttle: None })
    }
}

const UNBOUND: SkipReason = ("会话未绑定工作区", "the session is not bound to a workspace");
const NO_PROJECT_DATA: SkipReason = ("此项目没有工作区或记忆", "the project has no workspace and no memory");
const BOUND: SkipReason = ("会话已绑定工作区", "the session is bound to a workspace");

/// In milliseconds: for each type of reminder, for the binding hint, and for custom rules at a prompt.
pub(crate) const DEFAULT_THROTTLE: i64 = 180_000;

/// Returns the `--session` option for a command that is meant to be pasted into a shell. Returns an empty string
/// for an id with characters that a shell could interpret.
fn session_flag(id: &str) -> String {
    let is_plain = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte));
    if is_plain && !id.is_empty() { format!(" --session {id}") } else { String::new() }
}

fn default_throttle(key: &str, rule: BuiltinRuleId) -> Throttle {
    Throttle { key: key.to_owned(), ttl: DEFAULT_THROTTLE, rule: rule.into() }
}

pub const BUILTIN_RULES: &[BuiltinRule] = &[
    binding_lost::RULE,
    claim_lost::RULE,
    write_refused::RULE,
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
