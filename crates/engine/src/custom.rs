//! Custom rules: the rule type and the parsing of a rules file. [`reader`] reads single entries, [`condition`]
//! compiles and evaluates conditions, [`check`] finds mistakes in them, and [`scope`] provides their variables.

use serde_json::{Map, Value};
use tanmi_event::{ActionKind, Event, EventKind, Platform};

mod check;
mod condition;
mod reader;
mod scope;
mod throttle;

pub use check::check_condition;
use reader::Reader;
pub(crate) use scope::ConditionScope;
pub(crate) use throttle::throttle_of;

/// Where a rule comes from, in order of precedence. If two rules have the same id, the one from the earlier variant
/// applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RuleSource {
    Builtin,
    Workspace,
    Project,
    Global,
}

impl RuleSource {
    pub fn as_str(self) -> &'static str {
        match self {
            RuleSource::Builtin => "built-in",
            RuleSource::Workspace => "workspace",
            RuleSource::Project => "project",
            RuleSource::Global => "global",
        }
    }
}

#[derive(Clone, Debug)]
pub struct CustomRule {
    pub id: String,
    /// The 1-based line in its file; 0 if unknown.
    pub line: usize,
    pub name: String,
    pub source: RuleSource,
    /// Whether the user trusts the current content of the file. An untrusted rule never runs.
    pub trusted: bool,
    pub enabled: bool,
    /// Empty means all events.
    pub events: Vec<EventKind>,
    /// Empty means all platforms.
    pub platforms: Vec<&'static Platform>,
    pub condition: Option<String>,
    pub priority: i32,
    pub kind: ActionKind,
    /// Empty for a rule that only shares values or only stops later rules.
    pub content: String,
    /// Values that conditions of later rules can read from `shared`.
    pub share: Map<String, Value>,
    /// In seconds. The default depends on the event, see `throttle_of`.
    pub throttle: Option<u32>,
    /// Whether no later rule runs after this one matched (`stopPropagation`).
    pub stops: bool,
}

impl CustomRule {
    /// Returns whether the rule applies to events of this kind on this platform.
    pub fn applies_to(&self, kind: EventKind, platform: &Platform) -> bool {
        (self.events.is_empty() || self.events.contains(&kind))
            && (self.platforms.is_empty() || self.platforms.contains(&platform))
    }

    /// Returns whether the rule can run at an event, if its condition is met.
    pub fn can_run_at(&self, event: &Event) -> bool {
        self.trusted && self.enabled && self.applies_to(event.kind, event.platform)
    }
}

/// A problem in a rules file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleFlaw {
    /// 1-based; 0 if unknown.
    pub line: usize,
    pub rule: Option<String>,
    pub zh: String,
    pub en: String,
    /// Whether the rule is ignored because of it.
    pub fatal: bool,
}

/// Well above any handwritten file. The limits exist because the file is read at every prompt.
const MAX_FILE_BYTES: usize = 256 << 10;
const MAX_RULES: usize = 200;

/// Parses a rules file. Invalid rules are left out and reported as flaws; the other rules apply.
pub fn parse_rules(bytes: &[u8], source: RuleSource, trusted: bool) -> (Vec<CustomRule>, Vec<RuleFlaw>) {
    let broken = |line: usize, zh: String, en: String| {
        (Vec::new(), vec![RuleFlaw { line, rule: None, zh, en, fatal: true }])
    };
    if bytes.len() > MAX_FILE_BYTES {
        let limit = MAX_FILE_BYTES;
        return broken(0, format!("文件超过 {limit} 字节"), format!("the file is longer than {limit} bytes"));
    }
    // Editors on Windows may write a byte order mark.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let value: Value = match serde_json::from_slice(bytes) {
        Ok(value) => value,
        Err(error) => {
            return broken(
                error.line(),
                format!("JSON 格式错误：{error}"),
                format!("malformed JSON: {error}"),
            );
        }
    };
    let list = match &value {
        Value::Object(file) => file.get("customRules").and_then(Value::as_array),
        Value::Array(list) => Some(list),
        _ => None,
    };
    let Some(list) = list else {
        return broken(
            1,
            String::from("应为 {\"customRules\": [ … ]}"),
            String::from("expected {\"customRules\": [ … ]}"),
        );
    };
    let mut reader = Reader::new(&String::from_utf8_lossy(bytes));
    if let Value::Object(file) = &value {
        reader.unknown_keys(None, file, &["customRules", "$schema", "version"]);
    }
    let mut rules: Vec<CustomRule> = Vec::new();
    for (index, entry) in list.iter().take(MAX_RULES).enumerate() {
        let Some(rule) = reader.rule(index, entry, source, trusted) else { continue };
        if rules.iter().any(|known| known.id == rule.id) {
            let id = &rule.id;
            reader.fatal(
                id,
                format!("id {id:?} 重复；只有第一条规则生效"),
                format!("duplicate id {id:?}; only the first rule is used"),
            );
            continue;
        }
        rules.push(rule);
    }
    if list.len() > MAX_RULES {
        let zh = format!("规则超过 {MAX_RULES} 条；其余被忽略");
        let en = format!("more than {MAX_RULES} rules; the rest is ignored");
        reader.flaws.push(RuleFlaw { line: 0, rule: None, zh, en, fatal: true });
    }
    (rules, reader.flaws)
}

#[cfg(test)]
mod tests;
