//! Rules that people write: what a rule is, and a file of them. Its entries are read in [`reader`], conditions in
//! [`condition`].

use serde_json::{Map, Value};
use tanmi_event::{ActionKind, EventKind, Platform};

mod condition;
mod reader;
mod scope;
mod throttle;

pub use condition::check_condition;
use reader::Reader;
pub(crate) use scope::ConditionScope;
pub(crate) use throttle::throttle_of;

/// Where a rule comes from; of two rules with the same id the nearer one counts.
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
    /// Where it is in its file; 0 if unknown.
    pub line: usize,
    pub name: String,
    pub source: RuleSource,
    /// Whether the person has agreed to this very file. What they have not agreed to says nothing.
    pub trusted: bool,
    pub enabled: bool,
    /// Empty means all.
    pub events: Vec<EventKind>,
    /// Empty means all.
    pub platforms: Vec<&'static Platform>,
    pub condition: Option<String>,
    pub priority: i32,
    pub kind: ActionKind,
    /// Empty for a rule that only shares something, or only stops the ones behind it.
    pub content: String,
    /// What later rules find in `shared`.
    pub share: Map<String, Value>,
    /// Seconds; what it is without depends on the event.
    pub throttle: Option<u32>,
    pub stops: bool,
}

/// Something wrong in a rules file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleFlaw {
    /// 1-based; 0 if unknown.
    pub line: usize,
    pub rule: Option<String>,
    pub zh: String,
    pub en: String,
    /// Whether the rule is left out because of it.
    pub fatal: bool,
}

/// Far above what anybody writes by hand; read on every prompt.
const MAX_FILE_BYTES: usize = 256 << 10;
const MAX_RULES: usize = 200;

/// Reads a rules file. What cannot be understood is left out and told; the rest counts.
pub fn parse_rules(bytes: &[u8], source: RuleSource, trusted: bool) -> (Vec<CustomRule>, Vec<RuleFlaw>) {
    let broken = |line: usize, zh: String, en: String| {
        (Vec::new(), vec![RuleFlaw { line, rule: None, zh, en, fatal: true }])
    };
    if bytes.len() > MAX_FILE_BYTES {
        let limit = MAX_FILE_BYTES;
        return broken(0, format!("文件超过 {limit} 字节"), format!("the file is longer than {limit} bytes"));
    }
    // Editors on Windows put a mark before the text.
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
    for (at, entry) in list.iter().take(MAX_RULES).enumerate() {
        let Some(rule) = reader.rule(at, entry, source, trusted) else { continue };
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
