//! What a tool and its parameters are. The same row is shown to a client and checks its arguments; the rows are in
//! [`table`], what they do is in [`work`].

use serde_json::{Map, Value, json};
use tanmi_workspace::limits::{LINE_BYTES, TEXT_BYTES, TITLE_CHARS};
use tanmi_workspace::model::RefStatus;

mod answer;
mod calls;
mod params;
mod table;
pub(crate) mod work;

pub use answer::value;
pub use calls::{Asked, Call, Result, perform};
pub use params::nearest;
pub use table::TOOLS;

#[derive(Clone, Copy)]
pub struct Spec {
    pub name: &'static str,
    pub about: &'static str,
    pub reads: bool,
    pub params: &'static [Param],
}

/// What a client may call: how it is shown and checked, and what it does.
pub struct Tool {
    pub spec: Spec,
    pub work: fn(&Call<'_>) -> Result,
}

const fn tool(work: fn(&Call<'_>) -> Result, spec: Spec) -> Tool {
    Tool { spec, work }
}

#[derive(Clone, Copy)]
pub struct Param {
    pub name: &'static str,
    pub kind: Kind,
    pub required: bool,
    pub about: &'static str,
}

#[derive(Clone, Copy)]
pub enum Kind {
    /// At most so many bytes.
    Text {
        max: usize,
    },
    Title,
    Word(&'static [&'static str]),
    Words(&'static [&'static str]),
    Flag,
    Number {
        min: u64,
        max: u64,
    },
    /// A number from 0 to 1.
    Share,
    Texts,
    Docs,
    /// An object that has texts under these names.
    Parts(&'static [&'static str]),
}

pub const fn must(name: &'static str, kind: Kind) -> Param {
    Param { name, kind, required: true, about: "" }
}

pub const fn may(name: &'static str, kind: Kind) -> Param {
    Param { name, kind, required: false, about: "" }
}

pub const fn described(param: Param, about: &'static str) -> Param {
    Param { about, ..param }
}

pub const TEXT: Kind = Kind::Text { max: TEXT_BYTES };
pub const LINE: Kind = Kind::Text { max: LINE_BYTES };
pub const ID: Kind = Kind::Text { max: 80 };
pub const WORKSPACE: Param = may("workspaceId", ID);
pub const NODE: Param = may("nodeId", ID);
pub fn find(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.spec.name == name)
}

/// The JSON schema of an object that has these.
pub fn schema<'a>(params: impl Iterator<Item = &'a Param> + Clone) -> Map<String, Value> {
    let properties: Map<String, Value> =
        params.clone().map(|param| (param.name.to_owned(), property(param))).collect();
    let required: Vec<&str> = params.filter(|param| param.required).map(|param| param.name).collect();
    let mut schema = Map::new();
    schema.insert("type".into(), json!("object"));
    schema.insert("properties".into(), Value::Object(properties));
    if !required.is_empty() {
        schema.insert("required".into(), json!(required));
    }
    schema.insert("additionalProperties".into(), json!(false));
    schema
}

pub fn property(param: &Param) -> Value {
    let mut property = match param.kind {
        // The long limits would cost more to read than anybody would save by knowing them; an error names them.
        Kind::Text { .. } => json!({"type": "string"}),
        Kind::Title => json!({"type": "string", "maxLength": TITLE_CHARS}),
        Kind::Word(words) => json!({"type": "string", "enum": words}),
        Kind::Words(words) => json!({"type": "array", "items": {"type": "string", "enum": words}}),
        Kind::Flag => json!({"type": "boolean"}),
        Kind::Number { min, max } => json!({"type": "integer", "minimum": min, "maximum": max}),
        Kind::Share => json!({"type": "number", "minimum": 0, "maximum": 1}),
        Kind::Texts => json!({"type": "array", "items": {"type": "string"}}),
        Kind::Parts(names) => {
            let parts: Map<String, Value> =
                names.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
            json!({"type": "object", "properties": parts, "additionalProperties": false})
        }
        Kind::Docs => json!({"type": "array", "items": {
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "description": {"type": "string"},
                "status": {"enum": RefStatus::WORDS},
            },
            "required": ["path"],
        }}),
    };
    if !param.about.is_empty() {
        property["description"] = json!(param.about);
    }
    property
}
