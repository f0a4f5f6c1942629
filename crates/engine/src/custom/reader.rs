//! Reads one entry of a rules file into a rule and collects its flaws.

use serde_json::{Map, Value};
use tanmi_event::{ActionKind, EventKind};
use tanmi_platform::CLIENTS;

use super::{CustomRule, RuleFlaw, RuleSource};

const MAX_ID_BYTES: usize = 200;
const MAX_CONTENT_BYTES: usize = 4000;
/// In seconds: one day.
const MAX_THROTTLE: u32 = 86_400;
const DEFAULT_PRIORITY: i32 = 50;
const RULE_KEYS: &[&str] =
    &["id", "name", "match", "priority", "action", "throttle", "stopPropagation", "enabled", "$comment"];

/// The text of a rules file, and the flaws found so far.
pub(super) struct Reader {
    text: String,
    pub flaws: Vec<RuleFlaw>,
}

impl Reader {
    pub fn new(text: &str) -> Reader {
        Reader { text: text.to_owned(), flaws: Vec::new() }
    }

    fn push(&mut self, rule: &str, zh: String, en: String, fatal: bool) {
        let line = self.line_of(rule);
        self.flaws.push(RuleFlaw { line, rule: Some(rule.to_owned()), zh, en, fatal });
    }

    /// Returns the 1-based line of the rule id; 0 if it is not found.
    fn line_of(&self, rule: &str) -> usize {
        let quoted = serde_json::to_string(rule).unwrap_or_default();
        self.text.find(&quoted).map_or(0, |at| self.text[..at].matches('\n').count() + 1)
    }

    pub fn fatal(&mut self, rule: &str, zh: String, en: String) {
        self.push(rule, zh, en, true);
    }

    pub fn unknown_keys(&mut self, rule: Option<&str>, object: &Map<String, Value>, known: &[&str]) {
        for key in object.keys().filter(|key| !known.contains(&key.as_str())) {
            let zh = format!("未知的键 {key:?}，可用：{}", known.join("、"));
            let en = format!("unknown key {key:?}; available: {}", known.join(", "));
            let line = rule.map_or(0, |rule| self.line_of(rule));
            self.flaws.push(RuleFlaw { line, rule: rule.map(str::to_owned), zh, en, fatal: false });
        }
    }

    /// Reads one rule. Returns `None` if the rule cannot be used; the reason is then among the flaws.
    pub fn rule(
        &mut self,
        index: usize,
        entry: &Value,
        source: RuleSource,
        trusted: bool,
    ) -> Option<CustomRule> {
        let (id, entry) = self.identify(index, entry)?;
        let fatal_before = self.flaws.iter().filter(|flaw| flaw.fatal).count();
        self.unknown_keys(Some(id), entry, RULE_KEYS);
        let empty = Map::new();
        let matching = self.object(id, entry, "match").unwrap_or(&empty).clone();
        let action = self.object(id, entry, "action").unwrap_or(&empty).clone();
        self.unknown_keys(Some(id), &matching, &["events", "platforms", "condition"]);
        self.unknown_keys(Some(id), &action, &["type", "content", "share"]);
        let stops = self.flag(id, entry, "stopPropagation").unwrap_or(false);
        let share = self.object(id, &action, "share").cloned().unwrap_or_default();
        let content = self.content(id, &action);
        if content.trim().is_empty() && share.is_empty() && !stops {
            self.fatal(
                id,
                String::from("规则不起作用：缺少 action.content"),
                String::from("the rule has no effect: action.content is missing"),
            );
        }
        let rule = CustomRule {
            id: id.to_owned(),
            line: self.line_of(id),
            name: self.text(id, entry, "name").unwrap_or_else(|| id.to_owned()),
            source,
            trusted,
            enabled: self.flag(id, entry, "enabled").unwrap_or(true),
            events: self.known_words(id, &matching, "events", EventKind::from_word, || {
                EventKind::ALL.iter().map(|kind| kind.as_str()).collect()
            }),
            platforms: self.known_words(
                id,
                &matching,
                "platforms",
                |name| CLIENTS.find_platform(name),
                || CLIENTS.platforms().map(|platform| platform.id).collect(),
            ),
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
        let fatal_after = self.flaws.iter().filter(|flaw| flaw.fatal).count();
        (fatal_before == fatal_after).then_some(rule)
    }

    /// Returns the id and the fields of an entry, if it has a valid id.
    fn identify<'v>(&mut self, index: usize, entry: &'v Value) -> Option<(&'v str, &'v Map<String, Value>)> {
        let name = format!("#{}", index + 1);
        let Some(entry) = entry.as_object() else {
            self.fatal(&name, String::from("规则应为对象"), String::from("a rule must be an object"));
            return None;
        };
        let is_valid =
            |id: &&str| !id.is_empty() && id.len() <= MAX_ID_BYTES && !id.chars().any(char::is_control);
        let id = entry.get("id").and_then(Value::as_str).map(str::trim).filter(is_valid);
        if id.is_none() {
            let en =
                format!("id is missing, empty, longer than {MAX_ID_BYTES} bytes or has control characters");
            self.fatal(&name, format!("缺少 id，或 id 为空、超过 {MAX_ID_BYTES} 字节或含控制字符"), en);
        }
        Some((id?, entry))
    }

    fn content(&mut self, rule: &str, action: &Map<String, Value>) -> String {
        let content = self.text(rule, action, "content").unwrap_or_default();
        if content.len() > MAX_CONTENT_BYTES {
            self.fatal(
                rule,
                format!("content 超过 {MAX_CONTENT_BYTES} 字节"),
                format!("content is longer than {MAX_CONTENT_BYTES} bytes"),
            );
        }
        content
    }

    fn wrong_value(&mut self, rule: &str, key: &str, zh: &str, en: &str) {
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
                self.wrong_value(rule, key, "对象", "an object");
                None
            }
        }
    }

    fn text(&mut self, rule: &str, from: &Map<String, Value>, key: &str) -> Option<String> {
        match from.get(key)? {
            Value::String(text) => Some(text.clone()),
            _ => {
                self.wrong_value(rule, key, "字符串", "a string");
                None
            }
        }
    }

    fn flag(&mut self, rule: &str, from: &Map<String, Value>, key: &str) -> Option<bool> {
        let flag = from.get(key)?.as_bool();
        if flag.is_none() {
            self.wrong_value(rule, key, " true 或 false", "true or false");
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
            self.wrong_value(rule, key, &zh, &en);
        }
        number
    }

    fn kind(&mut self, rule: &str, action: &Map<String, Value>) -> ActionKind {
        let Some(word) = self.text(rule, action, "type") else { return ActionKind::Reminder };
        ActionKind::from_word(&word).unwrap_or_else(|| {
            let words: Vec<&str> = ActionKind::ALL.iter().map(|kind| kind.as_str()).collect();
            let (zh, en) =
                (format!("其中之一：{}", words.join("、")), format!("one of {}", words.join(", ")));
            self.wrong_value(rule, "action.type", &zh, &en);
            ActionKind::Reminder
        })
    }

    /// Reads a list of known words. Unknown words are reported and left out; the flaw is fatal only if no word
    /// remains.
    fn known_words<T>(
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
                self.wrong_value(rule, key, "字符串列表", "a list of strings");
                return Vec::new();
            }
        };
        let mut found = Vec::new();
        for item in &list {
            let word = item.as_str().map_or_else(|| item.to_string(), str::to_owned);
            match find(&word) {
                Some(value) => found.push(value),
                None => {
                    let zh = format!("{key} 中的值 {word:?} 未知，可用：{}", known().join("、"));
                    let en = format!("unknown value {word:?} in {key}; available: {}", known().join(", "));
                    self.push(rule, zh, en, false);
                }
            }
        }
        if found.is_empty() && !list.is_empty() {
            self.fatal(rule, format!("{key} 中没有已知的值"), format!("{key} has no known value"));
        }
        found
    }
}
