//! The data model: workspaces, nodes and their parts. Serialized field names follow the specification.

use std::fmt;

use serde::{Deserialize, Serialize};
use tanmi_base::{Lang, Millis, clock, hash, id};

use crate::error::{Error, Result};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Workspace {
    pub id: WorkspaceId,
    pub name: String,
    pub goal: String,
    pub status: WorkspaceStatus,
    pub rules: Vec<String>,
    pub docs: Vec<DocReference>,
    pub focused_node_id: Option<NodeId>,
    /// The language of texts for agents, decided at creation. `None` in files without it; see [`Workspace::lang`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<Lang>,
    /// Whether secrets in the texts of agents are masked, and people are warned of secrets in theirs. Only written if
    /// the user turned it off.
    #[serde(default = "masks_by_default", skip_serializing_if = "is_default_masking")]
    pub mask_secrets: bool,
    pub created_at: Millis,
    pub updated_at: Millis,
    #[serde(flatten)]
    pub activity: Activity,
}

fn masks_by_default() -> bool {
    true
}

/// Returns whether the setting is the default, which is not written.
fn is_default_masking(masks: &bool) -> bool {
    *masks
}

impl Workspace {
    /// Computes the hash of the rules. The value in the file is ignored because people edit the rules there.
    pub fn rules_hash(&self) -> String {
        rules_hash(&self.rules)
    }

    /// Returns the language of texts for agents: the stored one, else that of the texts of the workspace.
    /// `None` if these have no letters.
    pub fn lang(&self) -> Option<Lang> {
        self.language.or_else(|| lang_of_texts(&self.name, &self.goal, &self.rules))
    }

    /// Returns a digest of the editable fields. It detects that someone else edited the workspace since it was read.
    pub fn version(&self) -> String {
        version_of(&(&self.name, &self.goal, &self.rules, &self.docs))
    }
}

/// Returns the language of the name, goal and rules of a workspace.
pub fn lang_of_texts(name: &str, goal: &str, rules: &[String]) -> Option<Lang> {
    Lang::of_texts([name, goal].into_iter().chain(rules.iter().map(String::as_str)))
}

fn version_of(fields: &impl Serialize) -> String {
    let mut digest = hash::md5_hex(&serde_json::to_vec(fields).unwrap_or_default());
    digest.truncate(16);
    digest
}

/// Returns the first 8 hex digits of the MD5 of the rules joined by newlines; empty without rules.
pub fn rules_hash(rules: &[String]) -> String {
    if rules.is_empty() {
        return String::new();
    }
    let mut digest = hash::md5_hex(rules.join("\n").as_bytes());
    digest.truncate(8);
    digest
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// The nodes that must be completed before this one can start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<NodeId>,
    /// Position among the siblings. Nodes created by hand may have none; they come after their siblings, sorted by
    /// creation time.
    pub order: Option<i64>,
    pub docs: Vec<DocReference>,
    pub references: Vec<Reference>,
    pub created_at: Millis,
    pub updated_at: Millis,
    pub status_changed_at: Option<Millis>,
    /// The holder: the session that claimed the node.
    pub started_by: Option<String>,
    /// The subagent of that session that works on the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(flatten)]
    pub activity: Activity,
}

impl Node {
    /// Returns a pending node with this title and no other content.
    pub fn new(id: NodeId, kind: NodeType, title: impl Into<String>, now: Millis) -> Node {
        Node {
            id,
            title: title.into(),
            kind,
            status: NodeStatus::Pending,
            role: None,
            requirement: String::new(),
            conclusion: None,
            note: String::new(),
            parent_id: None,
            isolated: false,
            depends_on: Vec::new(),
            order: None,
            docs: Vec::new(),
            references: Vec::new(),
            created_at: now,
            updated_at: now,
            status_changed_at: Some(now),
            started_by: None,
            agent: None,
            activity: Activity::default(),
        }
    }

    /// Same as [`Workspace::version`]. Log and status are excluded, so that a transition or log entry of an agent does
    /// not invalidate a user's edit.
    pub fn version(&self) -> String {
        let fields = (&self.title, &self.requirement, &self.note, self.role, self.isolated, &self.docs);
        match self.depends_on.is_empty() {
            true => version_of(&fields),
            false => version_of(&(fields, &self.depends_on)),
        }
    }
}

/// The holder of a node that a person claimed outside of a session. This claim does not expire.
pub const PERSON: &str = "@person";

/// Log and open problem of a workspace or a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Activity {
    pub log: Vec<LogEntry>,
    /// When an agent or a person last wrote a log entry. Entries that the program adds do not count.
    pub last_log_at: Option<Millis>,
    pub problem: Option<Problem>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEntry {
    /// Local time as `YYYY-MM-DD HH:mm:ss`. In an entry written by hand it can be any text or empty.
    pub timestamp: String,
    pub operator: Operator,
    pub event: String,
}

impl LogEntry {
    pub fn new(now: Millis, operator: Operator, event: impl Into<String>) -> LogEntry {
        LogEntry { timestamp: clock::local_stamp(now), operator, event: event.into() }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// Can be empty: a next step without a description is allowed.
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

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Returns `Node` for `root` and `node-…`, otherwise `Doc`.
    pub fn of(target: &str) -> RefKind {
        if NodeId::parse(target).is_ok() { RefKind::Node } else { RefKind::Doc }
    }
}

/// Defines an enum whose words are the same in files, JSON, command-line arguments and messages.
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

            /// Same as [`Self::from_word`], but the error names the field and the valid words.
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
    /// Returns whether the status is completed, failed or cancelled.
    pub fn is_done(self) -> bool {
        matches!(self, NodeStatus::Completed | NodeStatus::Failed | NodeStatus::Cancelled)
    }
}

/// A workspace id, `ws-…`. Invariant: the id is a safe folder name; `parse` checks this.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct WorkspaceId(String);

/// A node id, `root` or `node-…`. Invariant: the id is a safe folder name; `parse` checks this.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
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

/// An id from another process is checked like one that a caller passes.
impl TryFrom<String> for WorkspaceId {
    type Error = Error;

    fn try_from(raw: String) -> Result<WorkspaceId> {
        WorkspaceId::parse(&raw)
    }
}

impl TryFrom<String> for NodeId {
    type Error = Error;

    fn try_from(raw: String) -> Result<NodeId> {
        NodeId::parse(&raw)
    }
}

impl From<WorkspaceId> for String {
    fn from(id: WorkspaceId) -> String {
        id.0
    }
}

impl From<NodeId> for String {
    fn from(id: NodeId) -> String {
        id.0
    }
}

/// Checks the prefix and then 1 to 64 ASCII letters, digits, `-` or `_`. The generated form is not required, because
/// people create folders by hand.
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

/// Number of completed nodes and of all nodes, without the root and cancelled nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Completed nodes. Failed nodes count only in `total`.
    #[serde(rename = "done")]
    pub completed: u64,
    pub total: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_hash_known_rules_match_specification() {
        assert_eq!(rules_hash(&[]), "");
        // printf '规则1\n规则2' | md5sum
        assert_eq!(rules_hash(&["规则1".into(), "规则2".into()]), "8eb249a5");
    }

    #[test]
    fn node_id_parse_unsafe_text_is_rejected() {
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
