//! Commands with a key: run once however often they are sent.

use serde::{Deserialize, Serialize};
use tanmi_base::Millis;
use tanmi_workspace::command::{Command, Outcome};
use tanmi_workspace::model::*;
use tanmi_workspace::ops::NewWorkspace;

use crate::Positions;

/// A document that a change wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    /// The id of a node, or `workspace`.
    pub name: String,
    /// `None` if the document was removed.
    pub text: Option<String>,
}

/// A command of a machine of the team.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunRequest {
    /// Made by the caller. A repeated request has the same key and gets the same answer.
    pub key: String,
    pub stream: WorkspaceId,
    pub command: Command,
    pub operator: Operator,
    #[serde(default)]
    pub session: Option<String>,
    #[serde(default)]
    pub machine: String,
    /// The number of the claim that the session got when it started the node.
    #[serde(default)]
    pub fence: Option<i64>,
    /// The last change of the workspace that the caller knows. If there is a later one, the request is refused.
    #[serde(default)]
    pub expects: Option<u64>,
    /// For a log line that waited: how long ago it was written, in milliseconds. An age instead of a time, so
    /// that it is right with any clock of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age: Option<Millis>,
}

/// The answer to a request. It is stored with the change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunAnswer {
    pub outcome: Outcome,
    pub seq: u64,
    /// The number of the claim, if the command made one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fence: Option<i64>,
    /// The documents that the command wrote.
    pub docs: Vec<Document>,
    /// The last change of every stream. Not stored: a repeated request gets the current ones.
    #[serde(default, skip_serializing_if = "Positions::is_empty")]
    pub heads: Positions,
    pub now: Millis,
}

/// A change of the list of workspaces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum ProjectCommand {
    CreateWorkspace { workspace: NewWorkspace },
    DeleteWorkspace { workspace_id: WorkspaceId },
    UndeleteWorkspace { workspace_id: WorkspaceId },
}

impl ProjectCommand {
    pub const WORDS: &[&str] = &["create_workspace", "delete_workspace", "undelete_workspace"];
}

/// A request of a machine of the team.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProjectRequest {
    /// Made by the caller. A repeated request has the same key and gets the same answer.
    pub key: String,
    pub command: ProjectCommand,
    pub operator: Operator,
}

/// The answer to a request about the list of workspaces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProjectAnswer {
    pub workspace_id: WorkspaceId,
    /// The created workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<RunAnswer>,
    #[serde(default, skip_serializing_if = "Positions::is_empty")]
    pub heads: Positions,
}
