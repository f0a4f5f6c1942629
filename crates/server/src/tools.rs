//! What a tool and its parameters are. The same row is shown to a client and checks its arguments; the rows are in
//! [`table`], what they do is in [`handlers`].

use serde_json::{Map, Value, json};
use tanmi_workspace::limits::{LINE_BYTES, TEXT_BYTES, TITLE_CHARS};
use tanmi_workspace::model::RefStatus;

mod call;
pub(crate) mod handlers;
mod params;
mod results;
mod table;

pub use call::{Call, Result, ToolRequest, perform};
pub use params::nearest;
pub use results::value;
pub use table::TOOLS;

#[derive(Clone, Copy)]
pub struct CallSpec {
    pub name: &'static str,
    pub about: &'static str,
    pub reads: bool,
    pub params: &'static [Param],
}

/// What a client may call: how it is shown and checked, and what it does.
pub struct Tool {
    pub spec: CallSpec,
    pub handler: fn(&Call<'_>) -> Result,
}

const fn tool(handler: fn(&Call<'_>) -> Result, spec: CallSpec) -> Tool {
    Tool { spec, handler }
}

#[derive(Clone, Copy)]
pub struct Param {
    pub name: &'static str,
    pub kind: ParamKind,
    pub required: bool,
    pub about: &'static str,
}

#[derive(Clone, Copy)]
pub enum ParamKind {
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

pub const fn required(name: &'static str, kind: ParamKind) -> Param {
    Param { name, kind, required: true, about: "" }
}

pub const fn optional(name: &'static str, kind: ParamKind) -> Param {
    Param { name, kind, required: false, about: "" }
}

pub const fn with_description(param: Param, about: &'static str) -> Param {
    Param { about, ..param }
}

pub const TEXT: ParamKind = ParamKind::Text { max: TEXT_BYTES };
pub const LINE: ParamKind = ParamKind::Text { max: LINE_BYTES };
pub const ID: ParamKind = ParamKind::Text { max: 80 };
pub const WORKSPACE: Param = optional("workspaceId", ID);
pub const NODE: Param = optional("nodeId", ID);
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
        ParamKind::Text { .. } => json!({"type": "string"}),
        ParamKind::Title => json!({"type": "string", "maxLength": TITLE_CHARS}),
        ParamKind::Word(words) => json!({"type": "string", "enum": words}),
        ParamKind::Words(words) => json!({"type": "array", "items": {"type": "string", "enum": words}}),
        ParamKind::Flag => json!({"type": "boolean"}),
        ParamKind::Number { min, max } => json!({"type": "integer", "minimum": min, "maximum": max}),
        ParamKind::Share => json!({"type": "number", "minimum": 0, "maximum": 1}),
        ParamKind::Texts => json!({"type": "array", "items": {"type": "string"}}),
        ParamKind::Parts(names) => {
            let parts: Map<String, Value> =
                names.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
            json!({"type": "object", "properties": parts, "additionalProperties": false})
        }
        ParamKind::Docs => json!({"type": "array", "items": {
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
