//! Rules that people write: `rules.json` read into data, and what is wrong with it told. Conditions are next door.

use serde_json::{Map, Value};
use tanmi_event::{ActionKind, EventKind, Platform, find_platform};

mod condition;
mod scope;
mod throttle;

pub use condition::check_condition;
pub(crate) use scope::Scope;
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
pub struct Flaw {
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
const MAX_CONTENT_BYTES: usize = 4000;
/// A day.
const MAX_THROTTLE: u32 = 86_400;
const DEFAULT_PRIORITY: i32 = 50;

/// Reads a rules file. What cannot be understood is left out and told; the rest counts.
pub fn parse_rules(bytes: &[u8], source: RuleSource, trusted: bool) -> (Vec<CustomRule>, Vec<Flaw>) {
    let broken = |line: usize, zh: String, en: String| {
        (Vec::new(), vec![Flaw { line, rule: None, zh, en, fatal: true }])
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
            return broken(error.line(), format!("不是有效的 JSON：{error}"), format!("not JSON: {error}"));
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
    let mut reader = Reader { text: String::from_utf8_lossy(bytes).into_owned(), flaws: Vec::new() };
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
                format!("id {id:?} 重复，只有第一个生效"),
                format!("id {id:?} is there twice; the first counts"),
            );
            continue;
        }
        rules.push(rule);
    }
    if list.len() > MAX_RULES {
        let zh = format!("规则超过 {MAX_RULES} 条，其余被忽略");
        let en = format!("more than {MAX_RULES} rules; the rest is left out");
        reader.flaws.push(Flaw { line: 0, rule: None, zh, en, fatal: true });
    }
    (rules, reader.flaws)
}

struct Reader {
    text: String,
    flaws: Vec<Flaw>,
}

impl Reader {
    fn push(&mut self, rule: &str, zh: String, en: String, fatal: bool) {
        let line = self.line_of(rule);
        self.flaws.push(Flaw { line, rule: Some(rule.to_owned()), zh, en, fatal });
    }

    /// The line its id stands on.
    fn line_of(&self, rule: &str) -> usize {
        let quoted = serde_json::to_string(rule).unwrap_or_default();
        self.text.find(&quoted).map_or(0, |at| self.text[..at].matches('\n').count() + 1)
    }

    fn fatal(&mut self, rule: &str, zh: String, en: String) {
        self.push(rule, zh, en, true);
    }

    fn unknown_keys(&mut self, rule: Option<&str>, object: &Map<String, Value>, known: &[&str]) {
        for key in object.keys().filter(|key| !known.contains(&key.as_str())) {
            let zh = format!("未知的键 {key:?}，可用：{}", known.join("、"));
            let en = format!("unknown key {key:?}; there are {}", known.join(", "));
            let line = rule.map_or(0, |rule| self.line_of(rule));
            self.flaws.push(Flaw { line, rule: rule.map(str::to_owned), zh, en, fatal: false });
        }
    }

    /// `None` if the rule cannot be used; why is among the flaws.
    fn rule(&mut self, at: usize, entry: &Value, source: RuleSource, trusted: bool) -> Option<CustomRule> {
        let Some(entry) = entry.as_object() else {
            self.fatal(
                &format!("#{}", at + 1),
                String::from("规则应为对象"),
                String::from("a rule is an object"),
            );
            return None;
        };
        let id = match entry.get("id").and_then(Value::as_str).map(str::trim) {
            Some(id) if !id.is_empty() && id.len() <= 200 && !id.chars().any(char::is_control) => id,
            _ => {
                let en = String::from("id is missing, empty or longer than 200 bytes");
                self.fatal(&format!("#{}", at + 1), String::from("缺少 id，或 id 为空、过长"), en);
                return None;
            }
        };
        let before = self.flaws.iter().filter(|flaw| flaw.fatal).count();
        self.unknown_keys(
            Some(id),
            entry,
            &[
                "id",
                "name",
                "match",
                "priority",
                "action",
                "throttle",
                "stopPropagation",
                "enabled",
                "$comment",
            ],
        );
        let empty = Map::new();
        let matching = self.object(id, entry, "match").unwrap_or(&empty).clone();
        let action = self.object(id, entry, "action").unwrap_or(&empty).clone();
        self.unknown_keys(Some(id), &matching, &["events", "platforms", "condition"]);
        self.unknown_keys(Some(id), &action, &["type", "content", "share"]);
        let stops = self.flag(id, entry, "stopPropagation").unwrap_or(false);
        let share = self.object(id, &action, "share").cloned().unwrap_or_default();
        let content = self.text(id, &action, "content").unwrap_or_default();
        if content.len() > MAX_CONTENT_BYTES {
            self.fatal(
                id,
                format!("content 超过 {MAX_CONTENT_BYTES} 字节"),
                format!("content is longer than {MAX_CONTENT_BYTES} bytes"),
            );
        }
        if content.trim().is_empty() && share.is_empty() && !stops {
            self.fatal(
                id,
                String::from("规则没有任何作用：缺少 action.content"),
                String::from("the rule does nothing: action.content is missing"),
            );
        }
        let rule = CustomRule {
            id: id.to_owned(),
            line: self.line_of(id),
            name: self.text(id, entry, "name").unwrap_or_else(|| id.to_owned()),
            source,
            trusted,
            enabled: self.flag(id, entry, "enabled").unwrap_or(true),
            events: self.words(id, &matching, "events", EventKind::from_word, || {
                EventKind::ALL.iter().map(|kind| kind.as_str()).collect()
            }),
            platforms: self.words(id, &matching, "platforms", find_platform, || {
                tanmi_event::PLATFORMS.iter().map(|platform| platform.id).collect()
            }),
            condition: self.text(id, &matching, "condition").filter(|text| !text.trim().is_empty()),
            priority: self.number(id, entry, "priority", -1000, 1000).map_or(DEFAULT_PRIORITY, |n| n as i32),
            kind: self.kind(id, &action),
            content,
            share,
            throttle: self
                .number(id, entry, "throttle", 0, i64::from(MAX_THROTTLE))
                .and_then(|seconds| u32::try_from(seconds).ok()),
            stops,
        };
        let after = self.flaws.iter().filter(|flaw| flaw.fatal).count();
        (before == after).then_some(rule)
    }

    fn wrong(&mut self, rule: &str, key: &str, zh: &str, en: &str) {
        self.fatal(rule, format!("{key} 应为{zh}"), format!("{key} must be {en}"));
    }

    fn object<'v>(
        &mut self,
        rule: &str,
        from: &'v Map<String, Value>,
        key: &str,
    ) -> Option<&'v Map<String, Value>> {
        match from.get(key)? {
            Value::Object(object) => Some(object),
            _ => {
                self.wrong(rule, key, "对象", "an object");
                None
            }
        }
    }

    fn text(&mut self, rule: &str, from: &Map<String, Value>, key: &str) -> Option<String> {
        match from.get(key)? {
            Value::String(text) => Some(text.clone()),
            _ => {
                self.wrong(rule, key, "字符串", "a string");
                None
            }
        }
    }

    fn flag(&mut self, rule: &str, from: &Map<String, Value>, key: &str) -> Option<bool> {
        let flag = from.get(key)?.as_bool();
        if flag.is_none() {
            self.wrong(rule, key, " true 或 false", "true or false");
        }
        flag
    }

    fn number(
        &mut self,
        rule: &str,
        from: &Map<String, Value>,
        key: &str,
        min: i64,
        max: i64,
    ) -> Option<i64> {
        let number = from.get(key)?.as_i64().filter(|number| (min..=max).contains(number));
        if number.is_none() {
            let (zh, en) = (format!(" {min} 到 {max} 的整数"), format!("a whole number from {min} to {max}"));
            self.wrong(rule, key, &zh, &en);
        }
        number
    }

    fn kind(&mut self, rule: &str, action: &Map<String, Value>) -> ActionKind {
        let Some(word) = self.text(rule, action, "type") else { return ActionKind::Reminder };
        ActionKind::from_word(&word).unwrap_or_else(|| {
            let words: Vec<&str> = ActionKind::ALL.iter().map(|kind| kind.as_str()).collect();
            let (zh, en) =
                (format!("其中之一：{}", words.join("、")), format!("one of {}", words.join(", ")));
            self.wrong(rule, "action.type", &zh, &en);
            ActionKind::Reminder
        })
    }

    /// A list of words we know. One we do not know costs itself, unless none is left.
    fn words<T>(
        &mut self,
        rule: &str,
        from: &Map<String, Value>,
        key: &str,
        find: impl Fn(&str) -> Option<T>,
        known: impl Fn() -> Vec<&'static str>,
    ) -> Vec<T> {
        let list = match from.get(key) {
            None => return Vec::new(),
            Some(Value::Array(list)) => list.clone(),
            Some(one @ Value::String(_)) => vec![one.clone()],
            Some(_) => {
                self.wrong(rule, key, "字符串列表", "a list of strings");
                return Vec::new();
            }
        };
        let mut found = Vec::new();
        for item in &list {
            let word = item.as_str().map_or_else(|| item.to_string(), str::to_owned);
            match find(&word) {
                Some(value) => found.push(value),
                None => {
                    let zh = format!("{key} 中的 {word:?} 未知，可用：{}", known().join("、"));
                    let en = format!("{key}: {word:?} is unknown; there are {}", known().join(", "));
                    self.push(rule, zh, en, false);
                }
            }
        }
        if found.is_empty() && !list.is_empty() {
            self.fatal(rule, format!("{key} 中没有已知的项"), format!("{key} has nothing that is known"));
        }
        found
    }
}

#[cfg(test)]
mod tests;
