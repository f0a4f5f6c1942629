//! Tools and their parameters. One specification gives both the schema that a client sees and the check of its
//! arguments. The specifications are in [`table`], the functions that run the tools in [`handlers`].

use serde_json::{Map, Value, json};
use tanmi_session::MAX_SESSION_BYTES;
use tanmi_workspace::limits::{LINE_BYTES, TEXT_BYTES, TITLE_CHARS};
use tanmi_workspace::model::RefStatus;

mod call;
pub(crate) mod handlers;
mod params;
mod results;
mod table;

pub use call::{Call, Result, ToolRequest, perform};
pub use results::value;
pub use table::TOOLS;

/// The name, description and parameters of a tool or of an operation of the HTTP API.
#[derive(Clone, Copy)]
pub struct CallSpec {
    pub name: &'static str,
    pub about: &'static str,
    /// Whether the call changes nothing.
    pub is_read_only: bool,
    pub params: &'static [Param],
}

/// A tool: its specification and the function that runs it.
pub struct Tool {
    pub spec: CallSpec,
    pub handler: fn(&Call<'_>) -> Result,
    /// Whether it takes something away.
    pub is_destructive: bool,
    /// Whether the same call again changes nothing more.
    pub is_idempotent: bool,
}

const fn tool(handler: fn(&Call<'_>) -> Result, spec: CallSpec) -> Tool {
    Tool { spec, handler, is_destructive: false, is_idempotent: false }
}

const fn idempotent(tool: Tool) -> Tool {
    Tool { is_idempotent: true, ..tool }
}

/// A tool that takes something away, which the same call again does not change.
const fn destructive(tool: Tool) -> Tool {
    Tool { is_destructive: true, ..idempotent(tool) }
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
    /// A text of at most `max` bytes.
    Text {
        max: usize,
    },
    Title,
    /// One of these words.
    Word(&'static [&'static str]),
    /// An array of these words.
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
    /// An object whose fields have these names and are texts.
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
/// For every tool that depends on the session: one client process can run several.
pub const SESSION: Param = optional("sessionId", ParamKind::Text { max: MAX_SESSION_BYTES });
pub const WORKSPACE: Param = optional("workspaceId", ID);
pub const NODE: Param = optional("nodeId", ID);

/// Returns the tool with this name.
pub fn find(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.spec.name == name)
}

/// Returns the JSON schema of an object with these parameters.
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
        // The limit is not in the schema: it would cost tokens in every session, and the error names it.
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
