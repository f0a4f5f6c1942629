//! Edits JSON with comments and trailing commas in place. All other content stays unchanged byte for byte.

use jsonc_parser::ast;
use jsonc_parser::common::Ranged;
use jsonc_parser::cst::{CstArray, CstInputValue, CstNewlineKind, CstNode, CstObject, CstRootNode};
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
    pub fn object(&mut self, path: &[&str]) -> Result<CstObject, Refusal> {
        let Some((key, above)) = path.split_last() else { return Ok(self.root.object_value_or_set()) };
        let object = self.object(above)?;
        self.check_once(&object, path)?;
        if object.get(key).is_none() {
            self.insert(above, usize::MAX, key, CstInputValue::Object(Vec::new()))?;
        }
        self.find(path).ok_or_else(|| self.wrong_type(path, "an object"))
    }

    /// Returns the object at a path, if there is one.
    pub fn find(&self, path: &[&str]) -> Option<CstObject> {
        path.iter().try_fold(self.root.object_value()?, |object, key| object.object_value(key))
    }

    /// Returns the list at a path. Creates it if it is missing.
    pub fn array(&mut self, path: &[&str]) -> Result<CstArray, Refusal> {
        let Some((key, above)) = path.split_last() else {
            return Err(self.wrong_type(path, "an object"));
        };
        let object = self.object(above)?;
        self.check_once(&object, path)?;
        if object.get(key).is_none() {
            self.insert(above, usize::MAX, key, CstInputValue::Array(Vec::new()))?;
        }
        let array = self.find(above).and_then(|object| object.array_value(key));
        array.ok_or_else(|| self.wrong_type(path, "a list"))
    }

    /// Inserts a property into the object at a path, at the end if there are not that many properties. Nodes that were
    /// returned before do not belong to the document any more.
    pub fn insert(
        &mut self,
        path: &[&str],
        index: usize,
        key: &str,
        value: CstInputValue,
    ) -> Result<(), Refusal> {
        self.object(path)?;
        self.break_lines(path);
        self.object(path)?.insert(index, key, value);
        Ok(())
    }

    /// Puts each property of a one-line object on its own line. The syntax tree does the same before it inserts a
    /// property, but in quadratic time.
    fn break_lines(&mut self, path: &[&str]) {
        let Some(object) = self.find(path) else { return };
        let has_lines = object.children().iter().any(CstNode::is_newline);
        if has_lines || object.properties().is_empty() {
            return;
        }
        let text = self.text();
        let line_end = match self.root.newline_kind() {
            CstNewlineKind::CarriageReturnLineFeed => "\r\n",
            CstNewlineKind::CarriageReturn => "\r",
            CstNewlineKind::LineFeed => "\n",
        };
        let indent = self.root.single_indent_text().unwrap_or_else(|| String::from("  "));
        let broken = with_object(&text, path, |object| break_object(&text, object, line_end, &indent));
        if let Some(root) = broken.and_then(|text| CstRootNode::parse(&text, &options()).ok()) {
            self.root = root;
        }
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
            let Some(property) = property(value, key) else { break };
            at = property.range.start;
            value = &property.value;
        }
        position(&self.text, at).0
    }
}

/// Returns the last property with this name.
fn property<'a, 'b>(value: &'a ast::Value<'b>, key: &str) -> Option<&'a ast::ObjectProp<'b>> {
    let ast::Value::Object(object) = value else { return None };
    object.properties.iter().rev().find(|property| property.name.as_str() == key)
}

/// Parses a text and returns the result of a function of the object at a path.
fn with_object<T>(text: &str, path: &[&str], function: impl FnOnce(&ast::Object) -> T) -> Option<T> {
    let root = parse_to_ast(text, &CollectOptions::default(), &options()).ok()?.value?;
    let value = path.iter().try_fold(&root, |value, key| property(value, key).map(|found| &found.value))?;
    let ast::Value::Object(object) = value else { return None };
    Some(function(object))
}

/// Returns the text with each property of an object on its own line.
fn break_object(text: &str, object: &ast::Object, line_end: &str, indent: &str) -> String {
    let (open, close) = (object.range.start + 1, object.range.end - 1);
    let line = text[..open].rsplit(['\n', '\r']).next().unwrap_or_default();
    let outer = &line[..line.len() - line.trim_start().len()];
    let others = object.properties.iter().skip(1).map(|property| property.range.start);
    let bounds: Vec<usize> = std::iter::once(open).chain(others).chain([close]).collect();
    let mut out = text[..open].to_owned();
    for bound in bounds.windows(2) {
        out.extend([line_end, outer, indent, text[bound[0]..bound[1]].trim()]);
    }
    out.extend([line_end, outer, &text[close..]]);
    out
}

/// Applies a change to the JSON of a file and returns the new bytes. A missing or blank file is an empty object.
pub fn edit_bytes(
    bytes: Option<&[u8]>,
    change: impl FnOnce(&mut Json) -> Result<(), Refusal>,
) -> Result<Vec<u8>, Refusal> {
    let text = TextFile::of(bytes.unwrap_or_default())?;
    let mut json = Json::parse(if text.body.trim().is_empty() { "{}\n" } else { &text.body })?;
    change(&mut json)?;
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
