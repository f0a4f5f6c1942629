//! Reads transcripts: files in which clients record conversations, one JSON object per line.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::ClientTable;

/// How a client writes its transcripts.
#[derive(Debug)]
pub struct Transcript {
    /// Returns the message in a line, or `None` if the line does not have the format of this client.
    pub read_line: for<'a> fn(line: &'a Value) -> Option<Message<'a>>,
    /// The beginnings of messages that the client generated.
    pub generated_tags: &'static [&'static str],
    /// The folder with the transcripts of one project, if the client has one.
    pub folder: Option<TranscriptFolder>,
}

/// The folder with the transcripts of one project.
#[derive(Debug)]
pub struct TranscriptFolder {
    /// Returns the path below the home folder. Two projects may have the same.
    pub path: fn(project: &Path) -> PathBuf,
    /// Returns the working directory in a line, which tells the projects of a folder apart.
    pub cwd: for<'a> fn(line: &'a Value) -> Option<&'a str>,
}

/// The parts of a line that make up a turn. Parts that a line does not have are empty.
#[derive(Clone, Copy, Debug, Default)]
pub struct Message<'a> {
    pub role: Option<&'a str>,
    /// A text, or a list of parts of which some are text.
    pub content: Option<&'a Value>,
    pub is_generated: bool,
    pub id: Option<&'a str>,
    pub session: Option<&'a str>,
    pub timestamp: Option<&'a str>,
}

/// A message of the user or the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    pub id: Option<String>,
    pub session: Option<String>,
    pub speaker: String,
    pub timestamp: Option<String>,
    pub content: String,
}

impl ClientTable {
    /// Reads a message of the user or the model in the format of any client. Returns `None` for tool calls and for
    /// messages that a client generated.
    pub fn read_turn(&self, line: &Value) -> Option<Turn> {
        let formats = || self.iter().filter_map(|client| client.transcript.as_ref());
        let message = formats().find_map(|format| (format.read_line)(line));
        let message = message.unwrap_or_else(|| plain_message(line));
        let role = message.role.filter(|role| matches!(*role, "user" | "assistant"))?;
        let content = message_text(message.content?);
        let content = content.trim();
        let mut tags = formats().flat_map(|format| format.generated_tags);
        if message.is_generated || content.is_empty() || tags.any(|tag| content.starts_with(tag)) {
            return None;
        }
        Some(Turn {
            id: message.id.map(String::from),
            session: message.session.map(String::from),
            speaker: role.to_owned(),
            timestamp: message.timestamp.map(String::from),
            content: content.to_owned(),
        })
    }
}

/// Returns a text field of a JSON object.
pub fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key)?.as_str()
}

/// Reads a line that is itself the message, as tools that convert transcripts write it.
fn plain_message(line: &Value) -> Message<'_> {
    Message {
        role: text(line, "role").or_else(|| text(line, "type")),
        content: line.get("content").or_else(|| line.get("text")),
        is_generated: false,
        id: text(line, "uuid"),
        session: text(line, "sessionId").or_else(|| text(line, "session_id")),
        timestamp: text(line, "timestamp"),
    }
}

fn message_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let is_text =
                |part: &&Value| matches!(text(part, "type"), Some("text" | "input_text" | "output_text"));
            parts.iter().filter(is_text).filter_map(|part| text(part, "text")).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}
