//! What there is: Workspace, Node and their parts, as plain data. Field names on the wire are the specification's.

use std::fmt;

use serde::{Deserialize, Serialize};
use tanmi_base::{Millis, clock, hash, id};

use crate::error::{Error, Result};

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Workspace {
    pub id: WorkspaceId,
    pub name: String,
    pub goal: String,
    pub status: WorkspaceStatus,
    pub rules: Vec<String>,
    pub docs: Vec<DocReference>,
    pub focused_node_id: Option<NodeId>,
    pub created_at: Millis,
    pub updated_at: Millis,
    #[serde(flatten)]
    pub activity: Activity,
}

impl Workspace {
    /// Always computed, never believed: people edit the rules in the file.
    pub fn rules_hash(&self) -> String {
        rules_hash(&self.rules)
    }

    /// What somebody who edits has seen: another one means that somebody else has edited it since.
    pub fn version(&self) -> String {
        version_of(&(&self.name, &self.goal, &self.rules, &self.docs))
    }
}

fn version_of(fields: &impl Serialize) -> String {
    let mut digest = hash::md5_hex(&serde_json::to_vec(fields).unwrap_or_default());
    digest.truncate(16);
    digest
}

/// The first 8 hex digits of the MD5 of the rules joined by newlines; empty without rules.
pub fn rules_hash(rules: &[String]) -> String {
    if rules.is_empty() {
        return String::new();
    }
    let mut digest = hash::md5_hex(rules.join("\n").as_bytes());
    digest.truncate(8);
    digest
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    pub id: NodeId,
    pub title: String,
    #[serde(rename = "type")]
    pub kind: NodeType,
    pub status: NodeStatus,
    pub role: Option<NodeRole>,
    pub requirement: String,
    pub conclusion: Option<String>,
    pub note: String,
    pub parent_id: Option<NodeId>,
    pub isolated: bool,
    /// Place among the siblings; nodes made by hand may have none and come by their creation time.
    pub order: Option<i64>,
    pub docs: Vec<DocReference>,
    pub references: Vec<Reference>,
    pub created_at: Millis,
    pub updated_at: Millis,
    pub status_changed_at: Option<Millis>,
    /// The session that is at work on it.
    pub started_by: Option<String>,
    /// The subagent of that session that it was given to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(flatten)]
    pub activity: Activity,
}

impl Node {
    /// As [`Workspace::version`]. The log and the status are not in it: a step or a line of an agent's is no reason to
    /// refuse a person's edit.
    pub fn version(&self) -> String {
        version_of(&(&self.title, &self.requirement, &self.note, self.role, self.isolated, &self.docs))
    }
}

/// What a workspace and a node both keep: the log, and the problem at hand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Activity {
    pub log: Vec<LogEntry>,
    /// When somebody last wrote a log line; lines that the program adds do not count.
    pub last_log_at: Option<Millis>,
    pub problem: Option<Problem>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LogEntry {
    /// Local time as `YYYY-MM-DD HH:mm:ss`; whatever a person wrote there, or nothing, in a line written by hand.
    pub timestamp: String,
    pub operator: Operator,
    pub event: String,
}

impl LogEntry {
    pub fn new(now: Millis, operator: Operator, event: impl Into<String>) -> LogEntry {
        LogEntry { timestamp: clock::local_stamp(now), operator, event: event.into() }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// May be empty: a next step alone is allowed.
    pub description: String,
    pub next_step: Option<String>,
    pub updated_at: Millis,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocReference {
    pub path: String,
    pub description: String,
    pub status: RefStatus,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reference {
    pub target_id: String,
    #[serde(rename = "type")]
    pub kind: RefKind,
    pub description: String,
    pub status: RefStatus,
}

impl Reference {
    pub fn new(target: impl Into<String>, description: impl Into<String>) -> Reference {
        let target_id = target.into();
        let kind = RefKind::of(&target_id);
        Reference { target_id, kind, description: description.into(), status: RefStatus::Active }
    }
}

impl RefKind {
    /// `root` and `node-…` are nodes, anything else is a document.
    pub fn of(target: &str) -> RefKind {
        if NodeId::parse(target).is_ok() { RefKind::Node } else { RefKind::Doc }
    }
}

/// An enum whose words are the same in files, on the wire, on the command line and in messages.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name { $(#[serde(rename = $word)] $variant),+ }

        impl $name {
            pub const ALL: &[$name] = &[$($name::$variant),+];
            pub const WORDS: &[&str] = &[$($word),+];

            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word),+ }
            }

            pub fn from_word(word: &str) -> Option<$name> {
                match word { $($word => Some($name::$variant),)+ _ => None }
            }

            /// As [`Self::from_word`], with an error that names the field and the words.
            pub fn parse(field: &'static str, word: &str) -> Result<$name> {
                Self::from_word(word).ok_or_else(|| Error::unknown_word(field, word, Self::WORDS))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.pad(self.as_str()) }
        }
    };
}

words!(WorkspaceStatus { Active = "active", Archived = "archived" });
words!(NodeType { Planning = "planning", Execution = "execution" });
words!(NodeStatus {
    Pending = "pending",
    Planning = "planning",
    Monitoring = "monitoring",
    Implementing = "implementing",
    Validating = "validating",
    Completed = "completed",
    Failed = "failed",
    Cancelled = "cancelled",
});
words!(NodeRole { InfoCollection = "info_collection", Validation = "validation", Summary = "summary" });
words!(RefStatus { Active = "active", Expired = "expired" });
words!(RefKind { Node = "node", Doc = "doc" });
words!(Operator { Ai = "AI", Human = "Human" });

impl NodeStatus {
    /// Completed, failed or cancelled.
    pub fn is_done(self) -> bool {
        matches!(self, NodeStatus::Completed | NodeStatus::Failed | NodeStatus::Cancelled)
    }
}

/// `ws-…`. Safe as a folder name: that is checked on the way in, once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct WorkspaceId(String);

/// `root` or `node-…`. Safe as a folder name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct NodeId(String);

impl WorkspaceId {
    pub fn fresh(now: Millis) -> WorkspaceId {
        WorkspaceId(id::fresh("ws", now))
    }

    pub fn parse(raw: &str) -> Result<WorkspaceId> {
        if has_id_shape(raw, "ws-") {
            return Ok(WorkspaceId(raw.to_owned()));
        }
        Err(Error::bad_id("workspaceId", raw, "ws-…"))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl NodeId {
    pub fn root() -> NodeId {
        NodeId(String::from("root"))
    }

    pub fn fresh(now: Millis) -> NodeId {
        NodeId(id::fresh("node", now))
    }

    pub fn parse(raw: &str) -> Result<NodeId> {
        NodeId::parse_field("nodeId", raw)
    }

    pub fn parse_field(field: &'static str, raw: &str) -> Result<NodeId> {
        if raw == "root" || has_id_shape(raw, "node-") {
            return Ok(NodeId(raw.to_owned()));
        }
        Err(Error::bad_id(field, raw, "root | node-…"))
    }

    pub fn is_root(&self) -> bool {
        self.0 == "root"
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// People make folders by hand, so the part behind the prefix is free within what is safe as a file name.
fn has_id_shape(raw: &str, prefix: &str) -> bool {
    raw.strip_prefix(prefix).is_some_and(|rest| {
        (1..=64).contains(&rest.len())
            && rest.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
    })
}

impl fmt::Display for WorkspaceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Done and all, without the root and without cancelled nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Progress {
    pub done: u64,
    pub total: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_hash_is_the_specified_one() {
        assert_eq!(rules_hash(&[]), "");
        // printf '规则1\n规则2' | md5sum
        assert_eq!(rules_hash(&["规则1".into(), "规则2".into()]), "8eb249a5");
    }

    #[test]
    fn ids_that_are_no_ids() {
        for bad in [
            "",
            "../../x",
            "__proto__",
            "node-",
            "node-../x",
            "node-a/b",
            "ws-a",
            "Root",
            "node-a\0",
            "node-é",
        ] {
            assert!(NodeId::parse(bad).is_err(), "{bad:?}");
        }
        for good in ["root", "node-mj2hz4gy-ync1cu", "node-by_hand"] {
            assert!(NodeId::parse(good).is_ok(), "{good:?}");
        }
        assert!(NodeId::parse(&format!("node-{}", "x".repeat(65))).is_err());
    }
}
