//! Arguments against the table: types, words, lengths, and names. What passes here has the shape the schema promised.

use serde_json::{Map, Value, json};
use tanmi_workspace::limits;
use tanmi_workspace::model::{DocReference, RefStatus};

use super::{Kind, Param, Spec};

/// Arguments that fit their table.
pub struct Checked<'a> {
    arguments: &'a Map<String, Value>,
}

/// What does not fit, named by its parameter.
#[derive(Debug)]
pub struct Misfit {
    code: &'static str,
    field: String,
    message: String,
    hint: Option<String>,
}

impl Misfit {
    fn new(field: &str, message: impl Into<String>) -> Misfit {
        Misfit { code: "INVALID_ARGUMENT", field: field.to_owned(), message: message.into(), hint: None }
    }

    pub fn to_json(&self) -> Value {
        let mut error = json!({"code": self.code, "message": self.message, "field": self.field});
        if let Some(hint) = &self.hint {
            error["hint"] = json!(hint);
        }
        error
    }
}

impl<'a> Checked<'a> {
    pub fn new(spec: &Spec, arguments: &'a Map<String, Value>) -> Result<Checked<'a>, Misfit> {
        for (name, value) in arguments {
            match spec.params.iter().find(|param| param.name == name) {
                Some(param) => check(param, value)?,
                None => return Err(unknown(spec, name)),
            }
        }
        for param in spec.params.iter().filter(|param| param.required) {
            if arguments.get(param.name).is_none_or(Value::is_null) {
                return Err(Misfit::new(param.name, format!("{} is required", param.name)));
            }
        }
        Ok(Checked { arguments })
    }

    pub fn text(&self, name: &str) -> Option<&'a str> {
        self.arguments.get(name).and_then(Value::as_str)
    }

    pub fn owned(&self, name: &str) -> Option<String> {
        self.text(name).map(String::from)
    }

    /// A required text; the table has made sure of it.
    pub fn needed(&self, name: &str) -> String {
        self.owned(name).unwrap_or_default()
    }

    pub fn flag(&self, name: &str) -> Option<bool> {
        self.arguments.get(name).and_then(Value::as_bool)
    }

    pub fn number(&self, name: &str) -> Option<usize> {
        self.arguments.get(name).and_then(Value::as_u64).and_then(|number| usize::try_from(number).ok())
    }

    pub fn share(&self, name: &str) -> Option<f64> {
        self.arguments.get(name).and_then(Value::as_f64)
    }

    pub fn texts(&self, name: &str) -> Option<Vec<String>> {
        let list = self.arguments.get(name)?.as_array()?;
        Some(list.iter().filter_map(|item| item.as_str().map(String::from)).collect())
    }

    /// A text in an object.
    pub fn part(&self, name: &str, part: &str) -> Option<String> {
        self.arguments.get(name)?.get(part)?.as_str().map(String::from)
    }

    pub fn docs(&self, name: &str) -> Option<Vec<DocReference>> {
        let list = self.arguments.get(name)?.as_array()?;
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

fn unknown(spec: &Spec, name: &str) -> Misfit {
    let known = spec.params.iter().map(|param| param.name);
    let shown = tanmi_base::text::fit(&tanmi_base::text::one_line(name), 60);
    let hint = match nearest(name, known.clone()) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("it takes: {}", known.collect::<Vec<_>>().join(", ")),
    };
    Misfit {
        code: "UNKNOWN_PARAMETER",
        field: shown.clone(),
        message: format!("{} has no parameter {shown:?}", spec.name),
        hint: Some(hint),
    }
}

fn check(param: &Param, value: &Value) -> Result<(), Misfit> {
    let name = param.name;
    // Models send null for what they leave out.
    if value.is_null() && !param.required {
        return Ok(());
    }
    let bad =
        |expected: &str| Misfit::new(name, format!("{name} must be {expected}, not {}", kind_of(value)));
    match param.kind {
        Kind::Text { max } => match value.as_str() {
            None => Err(bad("a string")),
            Some(text) if text.len() > max => Err(Misfit::new(
                name,
                format!("{name} is too long: {} bytes, the limit is {max}", text.len()),
            )),
            Some(_) => Ok(()),
        },
        Kind::Title => match value.as_str() {
            None => Err(bad("a string")),
            Some(text) if text.chars().count() > limits::TITLE_CHARS => {
                let limit = limits::TITLE_CHARS;
                Err(Misfit::new(name, format!("{name} is too long: the limit is {limit} characters")))
            }
            Some(_) => Ok(()),
        },
        Kind::Word(words) => match value.as_str() {
            Some(word) if words.contains(&word) => Ok(()),
            Some(word) => {
                let word = tanmi_base::text::fit(&tanmi_base::text::one_line(word), 60);
                let mut misfit = Misfit::new(name, format!("{name} cannot be {word:?}"));
                misfit.hint = Some(format!("use one of: {}", words.join(", ")));
                Err(misfit)
            }
            None => Err(bad("a string")),
        },
        Kind::Words(words) => {
            let one = Param { kind: Kind::Word(words), required: true, ..*param };
            let list = value.as_array().ok_or_else(|| bad("an array of strings"))?;
            list.iter().try_for_each(|item| check(&one, item))
        }
        Kind::Flag => value.as_bool().map(|_| ()).ok_or_else(|| bad("true or false")),
        Kind::Number { min, max } => match value.as_u64() {
            Some(number) if (min..=max).contains(&number) => Ok(()),
            Some(_) => Err(Misfit::new(name, format!("{name} must be between {min} and {max}"))),
            None => Err(bad("a whole number")),
        },
        Kind::Share => match value.as_f64() {
            Some(number) if (0.0..=1.0).contains(&number) => Ok(()),
            Some(_) => Err(Misfit::new(name, format!("{name} must be between 0 and 1"))),
            None => Err(bad("a number")),
        },
        Kind::Texts => {
            let one = Param { kind: Kind::Text { max: limits::LINE_BYTES }, required: true, ..*param };
            let list = value.as_array().ok_or_else(|| bad("an array of strings"))?;
            list.iter().try_for_each(|item| check(&one, item))
        }
        Kind::Parts(names) => {
            let fields = value.as_object().ok_or_else(|| bad("an object"))?;
            if let Some(unknown) = fields.keys().find(|key| !names.contains(&key.as_str())) {
                let unknown = tanmi_base::text::fit(&tanmi_base::text::one_line(unknown), 60);
                let mut misfit = Misfit::new(name, format!("{name} has no part {unknown:?}"));
                misfit.hint = Some(format!("it takes: {}", names.join(", ")));
                return Err(misfit);
            }
            let one = Param { kind: Kind::Text { max: limits::TEXT_BYTES }, required: false, ..*param };
            fields.values().try_for_each(|field| check(&one, field))
        }
        Kind::Docs => {
            let list = value.as_array().ok_or_else(|| bad("an array of {path, description}"))?;
            list.iter().try_for_each(|item| check_doc(name, item))
        }
    }
}

fn check_doc(name: &'static str, item: &Value) -> Result<(), Misfit> {
    let shape = || Misfit::new(name, format!("{name} takes objects of path, description and status"));
    let fields = item.as_object().ok_or_else(shape)?;
    for (key, value) in fields {
        match (key.as_str(), value.as_str()) {
            ("path" | "description", Some(_)) | ("status", Some("active" | "expired")) => {}
            _ => return Err(shape()),
        }
    }
    if fields.contains_key("path") { Ok(()) } else { Err(shape()) }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// The known name that was probably meant: the same but for case and underscores, or a slip or two away.
pub fn nearest(name: &str, known: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let plain = |text: &str| text.replace(['_', '-'], "").to_lowercase();
    let wanted = plain(tanmi_base::text::prefix(name, 64));
    let distance = |candidate: &str| {
        let candidate = plain(candidate);
        // `id` for `nodeId`, `parent` for `parentId`.
        if candidate.starts_with(&wanted) && wanted.len() >= 4 { 1 } else { edits(&wanted, &candidate) }
    };
    known
        .map(|candidate| (distance(candidate), candidate))
        .min()
        .filter(|(d, _)| *d <= 2)
        .map(|(_, name)| name)
}

/// Insertions, deletions and replacements between two short words.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_right_name_for_a_wrong_one() {
        let known = || ["workspaceId", "nodeId", "parentId", "rulesHash"].into_iter();
        for (wrong, right) in [
            ("workspace_id", Some("workspaceId")),
            ("NodeID", Some("nodeId")),
            ("parent", Some("parentId")),
            ("ruleHash", Some("rulesHash")),
            ("workspace", Some("workspaceId")),
            ("colour", None),
        ] {
            assert_eq!(nearest(wrong, known()), right, "{wrong}");
        }
    }
}
