//! The errors of workspaces and nodes: a stable code, a message and a hint, in Chinese and English.
//!
//! Every interface (command line, MCP, page) shows these errors. None defines its own for workspaces and nodes.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tanmi_base::lock::LockError;
use tanmi_base::place::PlaceError;
use tanmi_base::{Bilingual, Lang, Millis};
use tanmi_index::IndexError;

use crate::model::{NodeId, NodeStatus, NodeType, WorkspaceId};
use crate::state::Action;

mod access;
mod lists;
mod messages;
#[cfg(test)]
mod tests;
mod words;

use words::{Word, Words};

pub use access::access_hint;
pub use lists::short_list;
pub use messages::{create_workspace_hint, list_nodes_hint, list_workspaces_hint};
pub use tanmi_index::UnavailableCause;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A child that prevents its parent from being completed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UnfinishedChild {
    pub id: NodeId,
    pub title: String,
    pub status: NodeStatus,
    pub allowed: Vec<Action>,
}

/// A dependency that is not completed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenDependency {
    pub node_id: NodeId,
    pub title: String,
    /// `None` if the node does not exist.
    pub status: Option<NodeStatus>,
}

/// Who holds a node in a team, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The session, or `@NAME` for a person without one.
    pub session: String,
    pub person: String,
    pub machine: String,
}

/// An error of a workspace. It can be serialised, so that the server of a team refuses a command with the
/// same error as a local store; only [`Error::Unavailable`] stays in its process.
#[derive(Debug, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "error", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[error("{}", self.message(Lang::En))]
pub enum Error {
    /// `zh` and `en` say why the value is invalid.
    Invalid {
        #[serde(deserialize_with = "words::word")]
        field: Word,
        reason: Bilingual,
    },
    Empty {
        #[serde(deserialize_with = "words::word")]
        field: Word,
    },
    TooLong {
        #[serde(deserialize_with = "words::word")]
        field: Word,
        #[serde(deserialize_with = "words::word")]
        unit: Word,
        limit: usize,
        actual: usize,
    },
    UnknownWord {
        #[serde(deserialize_with = "words::word")]
        field: Word,
        word: String,
        #[serde(deserialize_with = "words::words")]
        words: Words,
    },
    BadId {
        #[serde(deserialize_with = "words::word")]
        field: Word,
        raw: String,
        #[serde(deserialize_with = "words::word")]
        shape: Word,
    },
    /// `existing` holds the id and name of the project's workspaces.
    WorkspaceNotFound {
        id: String,
        existing: Vec<(WorkspaceId, String)>,
    },
    NodeNotFound {
        #[serde(deserialize_with = "words::word")]
        field: Word,
        id: String,
    },
    InvalidTransition {
        node: NodeId,
        kind: NodeType,
        status: NodeStatus,
        action: Action,
        allowed: Vec<Action>,
    },
    ConclusionRequired {
        node: NodeId,
        action: Action,
    },
    /// Another session holds the node.
    NodeClaimed {
        node: NodeId,
        holder: String,
        since: Millis,
    },
    /// Another person of the team holds the node.
    NodeHeld {
        node: NodeId,
        holder: Holder,
        since: Millis,
    },
    /// The claim of the session ended, and another session may hold the node now.
    ClaimLost {
        node: NodeId,
        holder: Option<Holder>,
    },
    /// `unfinished` holds the first few children, `count` is the number of all of them.
    ChildrenUnfinished {
        node: NodeId,
        unfinished: Vec<UnfinishedChild>,
        count: u64,
    },
    /// Dependencies of the node or of its ancestors are not completed.
    DependenciesOpen {
        node: NodeId,
        open: Vec<OpenDependency>,
    },
    /// Ids and titles of nodes that would wait for each other, from one node back to it.
    DependencyCycle {
        nodes: Vec<(NodeId, String)>,
        /// Whether a move would cause it, not a new dependency.
        is_by_move: bool,
    },
    /// A plan that cannot be read. Nothing was created.
    BadOutline {
        line: usize,
        reason: Bilingual,
    },
    RulesHashMismatch {
        given: Option<String>,
        rules: Vec<String>,
        hash: String,
    },
    WorkspaceArchived {
        id: WorkspaceId,
        /// Empty if an older server does not name it.
        #[serde(default)]
        name: String,
    },
    WorkspaceNotArchived {
        id: WorkspaceId,
    },
    RootProtected {
        #[serde(deserialize_with = "words::word")]
        action: Word,
    },
    ParentIsExecution {
        parent: NodeId,
    },
    ParentCancelled {
        parent: NodeId,
    },
    /// The node exists, or it was never deleted, or its time in the trash is over.
    NotInTrash {
        /// The id, or the text that was meant as the end of one.
        node: String,
    },
    /// A node cannot be restored before its parent.
    ParentDeleted {
        node: NodeId,
        parent: NodeId,
    },
    MoveIntoSelf {
        node: NodeId,
        parent: NodeId,
    },
    TooDeep {
        limit: usize,
    },
    /// An entry to remove is not in the list.
    NotInList {
        #[serde(deserialize_with = "words::word")]
        field: Word,
        what: String,
        known: Vec<String>,
    },
    ReferenceNotFound {
        target: String,
    },
    /// The content was edited after the caller read it. Nothing was written.
    Outdated {
        version: String,
        current: Box<Value>,
    },
    /// Stored data that cannot be parsed. It is never overwritten. `place` is a file or another name of the data.
    Corrupt {
        place: String,
        line: usize,
        reason: Bilingual,
    },
    /// The data changed at every attempt to write it.
    Conflict {
        place: String,
    },
    /// The store cannot be used now.
    #[serde(skip)]
    Unavailable {
        place: String,
        cause: UnavailableCause,
    },
    /// The server of the team cannot be reached, or does not answer in time.
    TeamUnreachable {
        server: String,
        reason: String,
        /// Whether the request may have been carried out, because only its answer is missing.
        #[serde(default)]
        may_have_run: bool,
    },
    /// The server of the team cannot be reached, and as many writes as are kept wait for it.
    OutboxFull {
        limit: usize,
    },
    /// The server of the team refused a request with an error that this version does not know.
    TeamRefused {
        server: String,
        #[serde(deserialize_with = "words::word")]
        code: Word,
        message: String,
    },
    /// A store returned the outcome of another command.
    UnexpectedOutcome,
}

impl Error {
    pub fn invalid(field: &'static str, zh: impl Into<String>, en: impl Into<String>) -> Error {
        Error::Invalid { field, reason: Bilingual::new(zh, en) }
    }

    pub fn unknown_word(field: &'static str, word: &str, words: &'static [&'static str]) -> Error {
        Error::UnknownWord { field, word: tanmi_base::text::fit(word, 60), words }
    }

    pub fn bad_id(field: &'static str, raw: &str, shape: &'static str) -> Error {
        Error::BadId { field, raw: tanmi_base::text::fit(&tanmi_base::text::one_line(raw), 60), shape }
    }

    pub fn node_not_found(field: &'static str, id: &NodeId) -> Error {
        Error::NodeNotFound { field, id: id.to_string() }
    }

    /// Returns the error for a file. A file that was refused counts as damaged: no retry helps, and it is not
    /// overwritten.
    pub fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |error| match tanmi_base::fs::refusal(&error) {
            Some(reason) => Error::corrupt(&path, 1, reason.clone()),
            None => Error::unavailable(&path, UnavailableCause::Io(error)),
        }
    }

    /// Returns an error of the server of a team that this version does not know otherwise.
    pub fn team_refused(server: &str, code: &str, message: &str) -> Error {
        Error::TeamRefused {
            server: server.to_owned(),
            code: words::keep(code),
            message: tanmi_base::text::fit(&tanmi_base::text::one_line(message), 500),
        }
    }

    pub fn unavailable(path: &Path, cause: UnavailableCause) -> Error {
        Error::Unavailable { place: path.display().to_string(), cause }
    }

    pub fn corrupt(path: &Path, line: usize, reason: Bilingual) -> Error {
        Error::Corrupt { place: path.display().to_string(), line, reason }
    }

    /// Returns the error code. Codes are stable: scripts and agents match on them.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Invalid { .. }
            | Error::Empty { .. }
            | Error::TooLong { .. }
            | Error::UnknownWord { .. }
            | Error::BadId { .. } => "INVALID_ARGUMENT",
            Error::WorkspaceNotFound { .. } => "WORKSPACE_NOT_FOUND",
            Error::NodeNotFound { .. } => "NODE_NOT_FOUND",
            Error::InvalidTransition { .. } => "INVALID_TRANSITION",
            Error::ConclusionRequired { .. } => "CONCLUSION_REQUIRED",
            Error::NodeClaimed { .. } | Error::NodeHeld { .. } => "NODE_TAKEN",
            Error::ClaimLost { .. } => "CLAIM_LOST",
            Error::ChildrenUnfinished { .. } => "CHILDREN_UNFINISHED",
            Error::DependenciesOpen { .. } => "DEPENDENCIES_OPEN",
            Error::DependencyCycle { .. } => "DEPENDENCY_CYCLE",
            Error::BadOutline { .. } => "INVALID_OUTLINE",
            Error::RulesHashMismatch { .. } => "RULES_HASH_MISMATCH",
            Error::WorkspaceArchived { .. } => "WORKSPACE_ARCHIVED",
            Error::WorkspaceNotArchived { .. } => "WORKSPACE_NOT_ARCHIVED",
            Error::RootProtected { .. } => "ROOT_PROTECTED",
            Error::ParentIsExecution { .. } => "PARENT_IS_EXECUTION",
            Error::ParentCancelled { .. } => "PARENT_CANCELLED",
            Error::MoveIntoSelf { .. } => "MOVE_INTO_SELF",
            Error::NotInTrash { .. } => "NOT_IN_TRASH",
            Error::ParentDeleted { .. } => "PARENT_DELETED",
            Error::TooDeep { .. } => "TOO_DEEP",
            Error::NotInList { .. } => "NOT_IN_LIST",
            Error::ReferenceNotFound { .. } => "REFERENCE_NOT_FOUND",
            Error::Outdated { .. } => "OUTDATED",
            Error::Corrupt { .. } => "FILE_DAMAGED",
            Error::Conflict { .. } => "CONTENDED",
            Error::TeamUnreachable { .. } => "TEAM_UNREACHABLE",
            Error::OutboxFull { .. } => "OUTBOX_FULL",
            Error::TeamRefused { code, .. } => code,
            Error::UnexpectedOutcome => "INTERNAL",
            Error::Unavailable { cause, .. } => match cause {
                UnavailableCause::Busy => "BUSY",
                UnavailableCause::Index(_) => "INDEX",
                UnavailableCause::Io(_) => "IO",
                UnavailableCause::Moved => "PROJECT_MOVED",
                UnavailableCause::OtherOwner(_) => "PROJECT_OWNER",
            },
        }
    }

    /// Returns the name of the invalid parameter, if one is invalid.
    pub fn field(&self) -> Option<&'static str> {
        match self {
            Error::Invalid { field, .. }
            | Error::Empty { field }
            | Error::TooLong { field, .. }
            | Error::UnknownWord { field, .. }
            | Error::BadId { field, .. }
            | Error::NodeNotFound { field, .. } => Some(field),
            Error::WorkspaceNotFound { .. }
            | Error::WorkspaceArchived { .. }
            | Error::WorkspaceNotArchived { .. } => Some("workspaceId"),
            Error::RootProtected { .. }
            | Error::NotInTrash { .. }
            | Error::ParentDeleted { .. }
            | Error::InvalidTransition { .. }
            | Error::NodeClaimed { .. }
            | Error::NodeHeld { .. }
            | Error::ClaimLost { .. }
            | Error::DependenciesOpen { .. }
            | Error::ChildrenUnfinished { .. } => Some("nodeId"),
            Error::DependencyCycle { .. } => Some("dependsOn"),
            Error::BadOutline { .. } => Some("outline"),
            Error::NotInList { field, .. } => Some(field),
            Error::ReferenceNotFound { .. } => Some("targetId"),
            Error::ConclusionRequired { .. } => Some("conclusion"),
            Error::RulesHashMismatch { .. } => Some("rulesHash"),
            Error::ParentIsExecution { .. } | Error::ParentCancelled { .. } | Error::MoveIntoSelf { .. } => {
                Some("parentId")
            }
            _ => None,
        }
    }

    /// Returns the data of the error for programs.
    pub fn details(&self) -> Value {
        match self {
            Error::TooLong { limit, actual, unit, .. } => {
                json!({"limit": limit, "actual": actual, "unit": unit})
            }
            Error::UnknownWord { words, .. } => json!({"allowed": words}),
            Error::WorkspaceNotFound { existing, .. } => {
                let existing: Vec<Value> =
                    existing.iter().map(|(id, name)| json!({"id": id, "name": name})).collect();
                json!({"workspaces": existing})
            }
            Error::InvalidTransition { node, kind, status, action, allowed } => json!({
                "nodeId": node, "type": kind, "status": status, "action": action, "allowed": allowed,
            }),
            Error::ChildrenUnfinished { unfinished, count, .. } => {
                json!({"unfinished": unfinished, "count": count})
            }
            Error::DependenciesOpen { node, open } => json!({"nodeId": node, "open": open}),
            Error::DependencyCycle { nodes, .. } => {
                let ids: Vec<&NodeId> = nodes.iter().map(|(id, _)| id).collect();
                json!({"cycle": ids})
            }
            Error::BadOutline { line, .. } => json!({"line": line}),
            Error::NodeClaimed { node, holder, since } => {
                json!({"nodeId": node, "sessionId": holder, "since": since})
            }
            Error::NodeHeld { node, holder, since } => {
                json!({"nodeId": node, "holder": holder, "since": since})
            }
            Error::ClaimLost { node, holder } => json!({"nodeId": node, "holder": holder}),
            Error::RulesHashMismatch { rules, hash, .. } => json!({"rules": rules, "rulesHash": hash}),
            Error::Outdated { version, current } => json!({"version": version, "current": current}),
            Error::Corrupt { place, line, .. } => json!({"path": place, "line": line}),
            Error::Unavailable { place, cause: UnavailableCause::Moved } => json!({"path": place}),
            Error::Unavailable { place, cause: UnavailableCause::OtherOwner(owner) } => {
                json!({"path": place, "owner": owner})
            }
            _ => Value::Null,
        }
    }
}

impl From<IndexError> for Error {
    fn from(error: IndexError) -> Error {
        Error::Unavailable { place: String::from("index"), cause: UnavailableCause::Index(error) }
    }
}

impl From<PlaceError> for Error {
    fn from(error: PlaceError) -> Error {
        Error::Unavailable { place: error.path().display().to_string(), cause: error.into() }
    }
}

impl From<LockError> for Error {
    fn from(error: LockError) -> Error {
        match error {
            LockError::Busy { path, .. } => Error::unavailable(&path, UnavailableCause::Busy),
            LockError::Io { path, source } => Error::io(path)(source),
        }
    }
}
