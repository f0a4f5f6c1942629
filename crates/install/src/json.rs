//! Edits JSON with comments and trailing commas in place. All other content stays unchanged byte for byte.

use jsonc_parser::ast;
use jsonc_parser::common::Ranged;
use jsonc_parser::cst::{CstArray, CstInputValue, CstObject, CstRootNode};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::Value;

use crate::Refusal;
use crate::doc::{TextFile, position};

pub struct Json {
    root: CstRootNode,
    /// The original text, for line numbers.
    text: String,
}

/// Accepts only what the parsers of the clients accept: a file that its client cannot read must not be rewritten.
fn options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

impl Json {
    pub fn parse(text: &str) -> Result<Json, Refusal> {
        let root = CstRootNode::parse(text, &options()).map_err(|error| Refusal::Broken {
            line: error.line_display(),
            column: error.column_display(),
            message: error.kind().to_string(),
        })?;
        let json = Json { root, text: text.to_owned() };
        match json.root.value() {
            Some(value) if value.as_object().is_none() => Err(json.wrong_type(&[], "an object")),
            _ => Ok(json),
        }
    }

    pub fn text(&self) -> String {
        self.root.to_string()
    }

    pub fn value(&self) -> Value {
        self.root.to_serde_value().unwrap_or_else(|| Value::Object(Default::default()))
    }

    /// Returns the object at a path. Creates it if it is missing.
    pub fn object(&self, path: &[&str]) -> Result<CstObject, Refusal> {
        let mut object = self.root.object_value_or_set();
        for (depth, key) in path.iter().enumerate() {
            self.check_once(&object, &path[..=depth])?;
            object = object
                .object_value_or_create(key)
                .ok_or_else(|| self.wrong_type(&path[..=depth], "an object"))?;
        }
        Ok(object)
    }

    /// Returns the object at a path, if there is one.
    pub fn find(&self, path: &[&str]) -> Option<CstObject> {
        path.iter().try_fold(self.root.object_value()?, |object, key| object.object_value(key))
    }

    /// Returns the list at a path. Creates it if it is missing.
    pub fn array(&self, path: &[&str]) -> Result<CstArray, Refusal> {
        let Some((key, above)) = path.split_last() else {
            return Err(self.wrong_type(path, "an object"));
        };
        let object = self.object(above)?;
        self.check_once(&object, path)?;
        object.array_value_or_create(key).ok_or_else(|| self.wrong_type(path, "a list"))
    }

    fn check_once(&self, object: &CstObject, path: &[&str]) -> Result<(), Refusal> {
        let key = path.last().copied().unwrap_or_default();
        let named = |name: Option<String>| name.is_some_and(|name| name == key);
        if object.properties().iter().filter(|property| named(property.decoded_name())).count() > 1 {
            return Err(Refusal::Twice { line: self.line(path), key: path.join(".") });
        }
        Ok(())
    }

    pub fn wrong_type(&self, path: &[&str], expected: &'static str) -> Refusal {
        Refusal::WrongType { line: self.line(path), key: path.join("."), expected }
    }

    /// Returns the line of a key in the original text.
    pub fn line(&self, path: &[&str]) -> usize {
        let parsed = parse_to_ast(&self.text, &CollectOptions::default(), &options());
        let Ok(Some(value)) = parsed.map(|parsed| parsed.value) else { return 1 };
        let mut at = value.range().start;
        let mut value = &value;
        for key in path {
            let ast::Value::Object(object) = value else { break };
            let Some(property) =
                object.properties.iter().rev().find(|property| property.name.as_str() == *key)
            else {
                break;
            };
            at = property.range.start;
            value = &property.value;
        }
        position(&self.text, at).0
    }
}

/// Applies a change to the JSON of a file and returns the new bytes. A missing or blank file is an empty object.
pub fn edit_bytes(
    bytes: Option<&[u8]>,
    change: impl FnOnce(&Json) -> Result<(), Refusal>,
) -> Result<Vec<u8>, Refusal> {
    let text = TextFile::of(bytes.unwrap_or_default())?;
    let json = Json::parse(if text.body.trim().is_empty() { "{}\n" } else { &text.body })?;
    change(&json)?;
    Ok(text.encode(&json.text()))
}

/// Sets the wanted keys of an object where they differ. Other keys stay.
pub fn set_keys(object: &CstObject, wanted: &Value) {
    let Value::Object(wanted) = wanted else { return };
    for (key, value) in wanted {
        match object.get(key) {
            None => {
                object.append(key, to_input(value));
            }
            Some(property) => {
                let current = property.value().and_then(|value| value.to_serde_value());
                if current.as_ref() != Some(value) {
                    property.set_value(to_input(value));
                }
            }
        }
    }
}

pub fn to_input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(value) => CstInputValue::Number(value.to_string()),
        Value::String(value) => CstInputValue::String(value.clone()),
        Value::Array(values) => CstInputValue::Array(values.iter().map(to_input).collect()),
        Value::Object(fields) => {
            CstInputValue::Object(fields.iter().map(|(key, value)| (key.clone(), to_input(value))).collect())
        }
    }
}

/// Returns whether the text is an empty object or list without comments.
pub fn is_empty_container(text: &str) -> bool {
    matches!(text.split_whitespace().collect::<String>().as_str(), "{}" | "[]")
}
