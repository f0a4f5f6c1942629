//! A local project that moves to the server: whole workspaces, and lines of its memory.

use serde::{Deserialize, Serialize};
use tanmi_workspace::model::WorkspaceId;

use crate::Document;

/// A part of a project. What the server has already is skipped, so a request can be repeated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ImportRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<ImportedWorkspace>,
    /// Lines of facts, summaries and marks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<String>,
}

/// A workspace with all its documents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ImportedWorkspace {
    pub id: WorkspaceId,
    pub documents: Vec<Document>,
}

/// How many workspaces and lines were added, and how many the server had already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportAnswer {
    pub added: usize,
    pub known: usize,
}
