//! What a test leaves behind for the checks: the requests of the clients, the tables of the database, and what readers
//! of the feed saw.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tanmi_base::{Millis, hash};

/// The documents of a workspace by name: `workspace`, and the ids of its nodes.
pub type Documents = BTreeMap<String, String>;

/// A request of a client, and how it ended.
#[derive(Clone, Debug)]
pub struct Record {
    pub key: String,
    /// The name of the person whose token was used.
    pub person: String,
    pub body: Value,
    pub verdict: Verdict,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The digest of the answer.
    Acknowledged(String),
    Refused {
        code: String,
        /// Whether an earlier attempt had an unknown outcome. A server can still carry it out after the refusal.
        after_unknown: bool,
    },
    /// No attempt got an answer.
    Unsettled,
}

/// A change of the lease of a session that was made besides the requests.
#[derive(Clone, Debug)]
pub struct LeaseEnd {
    pub session: String,
    pub at: Millis,
    pub until: Millis,
}

/// The tables of the database at the end.
#[derive(Clone, Debug, Default)]
pub struct Database {
    /// The stored answers by key.
    pub answers: BTreeMap<String, Value>,
    pub streams: BTreeMap<String, StreamRows>,
}

#[derive(Clone, Debug, Default)]
pub struct StreamRows {
    pub head: i64,
    pub is_deleted: bool,
    pub workspace: String,
    pub changes: Vec<ChangeRow>,
    pub nodes: Vec<NodeRow>,
    /// The number of children per parent and status; the empty parent counts all nodes.
    pub counts: BTreeMap<(String, String), i64>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct ChangeRow {
    pub seq: i64,
    pub at: Millis,
    pub names: Vec<String>,
    pub docs: Vec<Option<String>>,
}

/// The columns of a node that are derived from its document, and the document.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct NodeRow {
    pub id: String,
    pub parent: Option<String>,
    pub title: String,
    pub kind: String,
    pub status: String,
    pub has_problem: bool,
    pub depends_on: String,
    pub holder: Option<String>,
    pub fence: i64,
    pub seq: i64,
    pub doc: String,
}

/// The last change of a stream, and whether its workspace is deleted.
pub type Head = (i64, bool);

/// What a reader of the feed has of one stream.
#[derive(Clone, Debug, Default)]
pub struct Followed {
    /// The position at which the reader began, and the one it reached.
    pub from: i64,
    pub position: i64,
    /// The digest of all changes that it read, in order.
    pub digest: String,
    /// The replica.
    pub documents: Documents,
}

/// What a reader of the feed saw.
#[derive(Clone, Debug, Default)]
pub struct FollowerView {
    pub name: String,
    pub streams: BTreeMap<String, Followed>,
    /// Violations that it noticed while it read.
    pub violations: Vec<String>,
}

/// A document of a change, as the protocol has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Document {
    pub name: String,
    pub text: Option<String>,
}

impl ChangeRow {
    pub fn documents(&self) -> impl Iterator<Item = Document> {
        let pairs = self.names.iter().zip(&self.docs);
        pairs.map(|(name, text)| Document { name: name.clone(), text: text.clone() })
    }
}

/// Applies after-images to documents.
pub fn apply_documents(to: &mut Documents, changed: impl IntoIterator<Item = Document>) {
    for document in changed {
        match document.text {
            Some(text) => to.insert(document.name, text),
            None => to.remove(&document.name),
        };
    }
}

/// Returns the digest of the changes so far with one more.
pub fn extend_digest(digest: &str, seq: i64, documents: &[Document]) -> String {
    let content = serde_json::to_vec(&(digest, seq, documents)).expect("documents are JSON");
    hash::sha256_hex(&content)
}

/// Returns the digest of an answer. The positions of other streams, which a repeated request gets anew, do not count.
pub fn digest_of(answer: &Value) -> String {
    let mut answer = answer.clone();
    if let Some(fields) = answer.as_object_mut() {
        fields.remove("heads");
    }
    answer.sort_all_objects();
    hash::sha256_hex(answer.to_string().as_bytes())
}
