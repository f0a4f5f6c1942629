//! Writes of the memory of a project.

use serde::{Deserialize, Serialize};
use tanmi_base::Millis;
use tanmi_memory::Mark;
use tanmi_memory::store::ImportResult;

use crate::Document;

/// The stream of the changes of the memory.
pub const MEMORY: &str = "memory";

/// A write of the memory by a machine of the team.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemoryRequest {
    /// Made by the caller. A repeated request has the same key and gets the same answer.
    pub key: String,
    pub command: MemoryCommand,
    pub session: Option<String>,
    #[serde(default)]
    pub machine: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum MemoryCommand {
    /// Saves a fact or a summary: a line of a memory file.
    Save { line: String },
    /// Forgets or restores memories. `by` names the interface of the caller.
    Mark { mark: Mark, ids: Vec<String>, by: String },
    /// Adds records with their ids, see [`tanmi_memory::MemoryStore::import`].
    Import { lines: String },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum MemoryOutcome {
    #[serde(rename_all = "camelCase")]
    Saved {
        /// The id of the new record, or of the existing fact with the same content.
        id: String,
        is_duplicate: bool,
    },
    Marked,
    Imported {
        result: ImportResult,
    },
}

/// The answer to a request. It is stored with the change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemoryAnswer {
    pub outcome: MemoryOutcome,
    /// The number of the last change of the memory.
    pub seq: i64,
    /// The lines that the command appended. The name of each is the id of the record or the target of the mark.
    pub docs: Vec<Document>,
    pub now: Millis,
}
