//! Rules for tool calls (`pre_tool_use`). The hook for them runs at every tool call, so it is installed only if such a
//! rule needs it.

use std::collections::BTreeSet;

use tanmi_base::Lang;
use tanmi_engine::{CustomRule, RuleFlaw};
use tanmi_event::{EventKind, Platform};
use tanmi_platform::CLIENTS;

use super::RuleService;
use crate::config::Config;
use crate::pipeline::rules::RuleFile;
use crate::registry::Registry;

/// The rules that name tool calls and can run.
pub struct ToolRules(Vec<CustomRule>);

impl ToolRules {
    /// Returns whether the hook for tool calls has to be installed for the client of this platform.
    pub fn needs_hook(&self, platform: &Platform) -> bool {
        let applies = |rule: &CustomRule| rule.applies_to(EventKind::PreToolUse, platform);
        platform.can_inject_at_tools() && self.0.iter().any(applies)
    }
}

/// Returns whether a rule names tool calls. A rule for all events runs at tool calls too, but does not cause the
/// installation of the hook.
pub(super) fn names_tools(rule: &CustomRule) -> bool {
    rule.events.contains(&EventKind::PreToolUse)
}

impl RuleService {
    /// Returns the rules for tool calls of the user and of this project, or of all known projects.
    pub fn tool_rules(&self, in_all_projects: bool) -> ToolRules {
        let mut folders = BTreeSet::from([self.core.folder().to_owned()]);
        if in_all_projects {
            folders.extend(Registry::new(self.core.home()).projects().unwrap_or_default());
            folders.extend(self.core.trust().projects());
        }
        let mut found = Vec::new();
        for folder in folders.iter().filter(|folder| folder.is_dir()) {
            let trust = self.core.trust().of_project(folder);
            if Config::load(self.core.home(), Some(&trust)).custom_rules {
                let files = self.files_of(folder);
                found.extend(files.into_iter().flat_map(|file| file.rules));
            }
        }
        found.retain(|rule| names_tools(rule) && rule.trusted && rule.enabled);
        ToolRules(found)
    }
}

/// Returns the flaws of rules for tool calls that no client can inject, and notes on those that some clients cannot.
pub(super) fn check(file: &RuleFile, lang: Lang) -> (Vec<RuleFlaw>, Vec<String>) {
    let (mut flaws, mut notes) = (Vec::new(), Vec::new());
    for rule in file.rules.iter().filter(|rule| names_tools(rule)) {
        let platforms: Vec<&Platform> = match rule.platforms.is_empty() {
            true => CLIENTS.iter().map(|client| client.platform).collect(),
            false => rule.platforms.iter().map(|platform| &**platform).collect(),
        };
        let without: Vec<&str> =
            platforms.iter().filter(|platform| !platform.can_inject_at_tools()).map(|p| p.id).collect();
        let names = without.join(", ");
        let (zh, en) = (
            format!("{names} 无法在 pre_tool_use 注入文本"),
            format!("{names} cannot inject text at pre_tool_use"),
        );
        if without.len() == platforms.len() && rule.events.len() == 1 {
            let id = Some(rule.id.clone());
            let (zh, en) = (format!("规则不起作用：{zh}"), format!("the rule has no effect: {en}"));
            flaws.push(RuleFlaw { line: rule.line, rule: id, zh, en, fatal: false });
        } else if !without.is_empty() {
            notes.push(format!("{}: {}", rule.id, lang.pick(zh, en)));
        }
    }
    (flaws, notes)
}
