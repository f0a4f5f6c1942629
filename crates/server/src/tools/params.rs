//! Checks arguments against the table: names, types, allowed words and lengths. Arguments that pass match the schema.

use serde_json::{Map, Value, json};
use tanmi_app::similar::find_similar;
use tanmi_base::{Bilingual, Lang};
use tanmi_workspace::limits;
use tanmi_workspace::model::{DocReference, RefStatus};

use super::{CallSpec, Param, ParamKind};

/// Arguments that match their specification.
pub struct CheckedArguments<'a> {
    spec: &'a CallSpec,
    arguments: &'a Map<String, Value>,
}

/// An invalid argument, with the name of its parameter.
#[derive(Debug)]
pub struct ArgumentError {
    code: &'static str,
    field: String,
    message: Bilingual,
    hint: Option<Box<Bilingual>>,
}

impl ArgumentError {
    fn new(field: &str, zh: String, en: String) -> ArgumentError {
        let message = Bilingual::new(zh, en);
        ArgumentError { code: "INVALID_ARGUMENT", field: field.to_owned(), message, hint: None }
    }

    fn with_hint(self, hint: Bilingual) -> ArgumentError {
        ArgumentError { hint: Some(Box::new(hint)), ..self }
    }

    pub fn to_json(&self, lang: Lang) -> Value {
        let mut error = json!({"code": self.code, "message": self.message.pick(lang), "field": self.field});
        if let Some(hint) = &self.hint {
            error["hint"] = json!(hint.pick(lang));
        }
        error
    }
}

impl<'a> CheckedArguments<'a> {
    pub fn new(
        spec: &'a CallSpec,
        arguments: &'a Map<String, Value>,
    ) -> Result<CheckedArguments<'a>, ArgumentError> {
        for (name, value) in arguments {
            match spec.params.iter().find(|param| param.name == name) {
                Some(param) => check(param, value)?,
                None => return Err(unknown(spec, name)),
            }
        }
        for param in spec.params.iter().filter(|param| param.required) {
            if arguments.get(param.name).is_none_or(Value::is_null) {
                let name = param.name;
                return Err(ArgumentError::new(name, format!("缺少 {name}"), format!("{name} is required")));
            }
        }
        Ok(CheckedArguments { spec, arguments })
    }

    /// Returns the value of a parameter.
    ///
    /// In debug builds, which all tests use, it panics if the call has no such parameter. A misspelt name in a handler
    /// therefore fails the tests that call every tool and every route, and a release build does not pay for the check.
    fn get(&self, name: &str, is_expected: impl Fn(&Param) -> bool) -> Option<&'a Value> {
        debug_assert!(
            self.spec.params.iter().any(|param| param.name == name && is_expected(param)),
            "{} has no parameter {name:?} of the kind that its handler reads",
            self.spec.name
        );
        self.arguments.get(name)
    }

    /// Returns the arguments that were given.
    pub fn all(&self) -> &'a Map<String, Value> {
        self.arguments
    }

    pub fn text(&self, name: &str) -> Option<&'a str> {
        self.get(name, is_text).and_then(Value::as_str)
    }

    /// Returns a text that not every call accepts, for code that all calls share.
    pub fn text_if_accepted(&self, name: &str) -> Option<&'a str> {
        self.arguments.get(name).and_then(Value::as_str)
    }

    pub fn owned(&self, name: &str) -> Option<String> {
        self.text(name).map(String::from)
    }

    /// Returns a required text. It is present, because the arguments were checked.
    pub fn needed(&self, name: &str) -> String {
        let value = self.get(name, |param| is_text(param) && param.required);
        value.and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    pub fn flag(&self, name: &str) -> Option<bool> {
        self.get(name, |param| matches!(param.kind, ParamKind::Flag)).and_then(Value::as_bool)
    }

    pub fn number(&self, name: &str) -> Option<usize> {
        let value = self.get(name, |param| matches!(param.kind, ParamKind::Number { .. }));
        value.and_then(Value::as_u64).and_then(|number| usize::try_from(number).ok())
    }

    pub fn fraction(&self, name: &str) -> Option<f64> {
        self.get(name, |param| matches!(param.kind, ParamKind::Share)).and_then(Value::as_f64)
    }

    pub fn texts(&self, name: &str) -> Option<Vec<String>> {
        let is_list = |param: &Param| matches!(param.kind, ParamKind::Texts | ParamKind::Words(_));
        let list = self.get(name, is_list)?.as_array()?;
        Some(list.iter().filter_map(|item| item.as_str().map(String::from)).collect())
    }

    /// Returns a text field of an object.
    pub fn part(&self, name: &str, part: &str) -> Option<String> {
        let has_part = |param: &Param| matches!(param.kind, ParamKind::Parts(parts) if parts.contains(&part));
        self.get(name, has_part)?.get(part)?.as_str().map(String::from)
    }

    pub fn docs(&self, name: &str) -> Option<Vec<DocReference>> {
        let list = self.get(name, |param| matches!(param.kind, ParamKind::Docs))?.as_array()?;
        let text =
            |item: &Value, key: &str| item.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let doc = |item: &Value| DocReference {
            path: text(item, "path"),
            description: text(item, "description"),
            status: RefStatus::from_word(&text(item, "status")).unwrap_or(RefStatus::Active),
        };
        Some(list.iter().map(doc).collect())
    }
}

fn is_text(param: &Param) -> bool {
    matches!(param.kind, ParamKind::Text { .. } | ParamKind::Title | ParamKind::Word(_))
}

fn unknown(spec: &CallSpec, name: &str) -> ArgumentError {
    let known = spec.params.iter().map(|param| param.name);
    let shown = tanmi_base::text::fit(&tanmi_base::text::one_line(name), 60);
    let hint = match find_similar(name, known.clone()) {
        Some(near) => Bilingual::new(format!("你是否想用 {near}？"), format!("did you mean {near}?")),
        None => accepted_names(&known.collect::<Vec<_>>()),
    };
    let message = Bilingual::new(
        format!("{} 没有参数 {shown:?}", spec.name),
        format!("unknown parameter {shown:?} of {}", spec.name),
    );
    ArgumentError { code: "UNKNOWN_PARAMETER", field: shown, message, hint: Some(Box::new(hint)) }
}

fn accepted_names(names: &[&str]) -> Bilingual {
    let names = names.join(", ");
    Bilingual::new(format!("可用：{names}"), format!("available: {names}"))
}

fn check(param: &Param, value: &Value) -> Result<(), ArgumentError> {
    let name = param.name;
    // Models send null for omitted parameters.
    if value.is_null() && !param.required {
        return Ok(());
    }
    let bad = |zh: &str, en: &str| {
        let (is_zh, is_en) = kind_of(value);
        ArgumentError::new(
            name,
            format!("{name} 应为{zh}，而不是{is_zh}"),
            format!("{name} must be {en}, not {is_en}"),
        )
    };
    let outside = |min: &str, max: &str| {
        let (zh, en) =
            (format!("{name} 应在 {min} 和 {max} 之间"), format!("{name} must be between {min} and {max}"));
        ArgumentError::new(name, zh, en)
    };
    match param.kind {
        ParamKind::Text { max } => match value.as_str() {
            None => Err(bad("字符串", "a string")),
            Some(text) if text.len() > max => Err(ArgumentError::new(
                name,
                format!("{name} 过长：{} 字节，上限 {max}", text.len()),
                format!("{name} is too long: {} bytes, the limit is {max}", text.len()),
            )),
            Some(_) => Ok(()),
        },
        ParamKind::Title => match value.as_str() {
            None => Err(bad("字符串", "a string")),
            Some(text) if text.chars().count() > limits::TITLE_CHARS => {
                let limit = limits::TITLE_CHARS;
                Err(ArgumentError::new(
                    name,
                    format!("{name} 过长：上限 {limit} 个字符"),
                    format!("{name} is too long: the limit is {limit} characters"),
                ))
            }
            Some(_) => Ok(()),
        },
        ParamKind::Word(words) => match value.as_str() {
            Some(word) if words.contains(&word) => Ok(()),
            Some(word) => {
                let word = tanmi_base::text::fit(&tanmi_base::text::one_line(word), 60);
                let words = words.join(", ");
                Err(ArgumentError::new(
                    name,
                    format!("{name} 的值 {word:?} 无效"),
                    format!("invalid {name} {word:?}"),
                )
                .with_hint(Bilingual::new(format!("可用的值：{words}"), format!("use one of: {words}"))))
            }
            None => Err(bad("字符串", "a string")),
        },
        ParamKind::Words(words) => {
            let one = Param { kind: ParamKind::Word(words), required: true, ..*param };
            list(value, name, bad)?.iter().try_for_each(|item| check(&one, item))
        }
        ParamKind::Flag => value.as_bool().map(|_| ()).ok_or_else(|| bad(" true 或 false", "true or false")),
        ParamKind::Number { min, max } => match value.as_u64() {
            Some(number) if (min..=max).contains(&number) => Ok(()),
            Some(_) => Err(outside(&min.to_string(), &max.to_string())),
            None => Err(bad("整数", "a whole number")),
        },
        ParamKind::Share => match value.as_f64() {
            Some(number) if (0.0..=1.0).contains(&number) => Ok(()),
            Some(_) => Err(outside("0", "1")),
            None => Err(bad("数字", "a number")),
        },
        ParamKind::Texts => {
            let one = Param { kind: ParamKind::Text { max: limits::LINE_BYTES }, required: true, ..*param };
            list(value, name, bad)?.iter().try_for_each(|item| check(&one, item))
        }
        ParamKind::Parts(names) => {
            let fields = value.as_object().ok_or_else(|| bad("对象", "an object"))?;
            if let Some(unknown) = fields.keys().find(|key| !names.contains(&key.as_str())) {
                let unknown = tanmi_base::text::fit(&tanmi_base::text::one_line(unknown), 60);
                return Err(ArgumentError::new(
                    name,
                    format!("{name} 没有字段 {unknown:?}"),
                    format!("unknown field {unknown:?} in {name}"),
                )
                .with_hint(accepted_names(names)));
            }
            let one = Param { kind: ParamKind::Text { max: limits::TEXT_BYTES }, required: false, ..*param };
            fields.values().try_for_each(|field| check(&one, field))
        }
        ParamKind::Docs => {
            let list = value
                .as_array()
                .ok_or_else(|| bad(" {path, description} 的数组", "an array of {path, description}"))?;
            list.iter().try_for_each(|item| check_doc(name, item))
        }
    }
}

/// Returns the items of an array of strings.
fn list<'v>(
    value: &'v Value,
    name: &str,
    bad: impl Fn(&str, &str) -> ArgumentError,
) -> Result<&'v [Value], ArgumentError> {
    let list = value.as_array().ok_or_else(|| bad("字符串数组", "an array of strings"))?;
    if list.iter().all(Value::is_string) {
        return Ok(list);
    }
    let (zh, en) = (format!("{name} 的每一项应为字符串"), format!("every item of {name} must be a string"));
    Err(ArgumentError::new(name, zh, en))
}

fn check_doc(name: &'static str, item: &Value) -> Result<(), ArgumentError> {
    let shape = || {
        let (zh, en) = (
            format!("{name} 的每一项应为对象：必须有 path，可以有 description 和 status（active、expired）"),
            format!(
                "every item of {name} must be an object with path, and optionally description and status (active, expired)"
            ),
        );
        ArgumentError::new(name, zh, en)
    };
    let fields = item.as_object().ok_or_else(shape)?;
    for (key, value) in fields {
        match (key.as_str(), value.as_str()) {
            ("path" | "description", Some(_)) | ("status", Some("active" | "expired")) => {}
            _ => return Err(shape()),
        }
    }
    if fields.contains_key("path") { Ok(()) } else { Err(shape()) }
}

/// Returns the type of a JSON value in Chinese and in English.
fn kind_of(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => (" null", "null"),
        Value::Bool(_) => ("布尔值", "a boolean"),
        Value::Number(_) => ("数字", "a number"),
        Value::String(_) => ("字符串", "a string"),
        Value::Array(_) => ("数组", "an array"),
        Value::Object(_) => ("对象", "an object"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_invalid_arguments_returns_bilingual_errors() {
        const SPEC: CallSpec = CallSpec {
            name: "example",
            about: "",
            is_read_only: true,
            params: &[
                Param { required: true, ..param("text", ParamKind::Text { max: 5 }) },
                param("title", ParamKind::Title),
                param("word", ParamKind::Word(&["one", "two"])),
                param("words", ParamKind::Words(&["one", "two"])),
                param("flag", ParamKind::Flag),
                param("number", ParamKind::Number { min: 1, max: 9 }),
                param("share", ParamKind::Share),
                param("texts", ParamKind::Texts),
                param("parts", ParamKind::Parts(&["a", "b"])),
                param("docs", ParamKind::Docs),
            ],
        };
        let long = "x".repeat(limits::TITLE_CHARS + 1);
        let cases = [
            json!({}),
            json!({"text": null}),
            json!({"text": 7}),
            json!({"text": "longer"}),
            json!({"text": "x", "title": long}),
            json!({"text": "x", "word": "three"}),
            json!({"text": "x", "words": "one"}),
            json!({"text": "x", "words": ["one", []]}),
            json!({"text": "x", "flag": "yes"}),
            json!({"text": "x", "number": 10}),
            json!({"text": "x", "number": {}}),
            json!({"text": "x", "share": 1.5}),
            json!({"text": "x", "share": true}),
            json!({"text": "x", "texts": [null]}),
            json!({"text": "x", "parts": {"c": "x"}}),
            json!({"text": "x", "parts": "a"}),
            json!({"text": "x", "docs": ["path"]}),
            json!({"text": "x", "docs": {}}),
            json!({"text": "x", "numbr": 1}),
            json!({"text": "x", "colour": 1}),
        ];
        let mut out = String::new();
        for case in &cases {
            let Err(argument_error) = CheckedArguments::new(&SPEC, case.as_object().unwrap()) else {
                panic!("{case} was accepted")
            };
            for lang in [Lang::Zh, Lang::En] {
                let error = argument_error.to_json(lang);
                let words: Vec<&str> = ["code", "field", "message", "hint"]
                    .iter()
                    .filter_map(|key| error[*key].as_str())
                    .collect();
                out.push_str(&format!("{}\n", words.join(" | ")));
            }
        }
        insta::assert_snapshot!(out);
    }

    /// Each accessor with a name that the call does not have, or with one of another kind.
    #[test]
    #[cfg(debug_assertions)]
    fn accessors_misspelt_name_or_other_kind_panics() {
        const SPEC: CallSpec = CallSpec {
            name: "example",
            about: "",
            is_read_only: true,
            params: &[
                param("text", ParamKind::Title),
                param("flag", ParamKind::Flag),
                param("parts", ParamKind::Parts(&["a"])),
            ],
        };
        type Access = fn(&CheckedArguments<'_>) -> bool;
        let cases: &[(&str, Access, bool)] = &[
            ("text", |p| p.text("text").is_none(), false),
            ("text, misspelt", |p| p.text("txet").is_none(), true),
            ("text, a flag", |p| p.owned("flag").is_none(), true),
            ("needed, optional", |p| p.needed("text").is_empty(), true),
            ("flag", |p| p.flag("flag").is_none(), false),
            ("flag, a text", |p| p.flag("text").is_none(), true),
            ("number, a text", |p| p.number("text").is_none(), true),
            ("fraction, a text", |p| p.fraction("text").is_none(), true),
            ("texts, a text", |p| p.texts("text").is_none(), true),
            ("docs, a text", |p| p.docs("text").is_none(), true),
            ("part", |p| p.part("parts", "a").is_none(), false),
            ("part, misspelt", |p| p.part("parts", "b").is_none(), true),
            ("text of shared code", |p| p.text_if_accepted("other").is_none(), false),
        ];
        for (what, access, expected) in cases {
            let outcome = std::panic::catch_unwind(|| {
                let arguments = Map::new();
                access(&CheckedArguments::new(&SPEC, &arguments).unwrap())
            });
            assert_eq!(outcome.is_err(), *expected, "{what}");
        }
    }

    const fn param(name: &'static str, kind: ParamKind) -> Param {
        Param { name, kind, required: false, about: "" }
    }
}
