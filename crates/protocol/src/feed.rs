//! What the machines of a team read to keep their replicas: changes, whole workspaces, and signs of life.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tanmi_base::Millis;

use crate::Document;

/// The positions of a reader: for each stream the number of the last change it has.
pub type Positions = BTreeMap<String, i64>;

/// Asks for the changes after positions that do not fit into an address. A server of an earlier version has
/// no such request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FeedRequest {
    pub have: Positions,
    /// How long the server may wait for a change, in seconds.
    #[serde(default)]
    pub wait: u64,
}

/// One change of a stream, as a replica applies it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FeedChange {
    pub stream: String,
    pub seq: i64,
    pub at: Millis,
    pub docs: Vec<Document>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub person: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
}

/// The changes after the positions of a reader.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedPage {
    /// In order within each stream.
    pub changes: Vec<FeedChange>,
    /// Streams whose position is no longer in the table. The reader fetches them whole.
    pub gaps: Vec<String>,
    /// The last change of every stream.
    pub heads: Positions,
    pub now: Millis,
    /// Names the history of the database. A restored database has another one: its numbers may mean other
    /// changes. An older server does not tell it.
    #[serde(default)]
    pub history: String,
}

impl FeedPage {
    /// Returns the page for a reader whose positions are of the history `known`. In another history they mean
    /// nothing, so every stream has a gap.
    pub fn in_history(mut self, known: Option<&str>, have: &Positions) -> FeedPage {
        if known.is_some_and(|known| !self.history.is_empty() && known != self.history) {
            self.changes.clear();
            self.gaps = have.keys().filter(|stream| self.heads.contains_key(*stream)).cloned().collect();
        }
        self
    }
}

/// A part of a workspace, as of one change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentPage {
    pub docs: Vec<Document>,
    /// The last change that the documents contain. Later changes come from the feed.
    pub seq0: i64,
    /// Where the next page begins, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Who a token belongs to in a project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub person: String,
    /// `reader`, `member` or `admin`.
    pub role: String,
}

/// The answer to a sign of life.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Beat {
    pub lease_until: Millis,
    /// Sessions that the server does not know as those of this person.
    pub lost: Vec<String>,
    pub heads: Positions,
    pub now: Millis,
    /// Who works on what. An older server does not tell it, nor what follows.
    #[serde(default)]
    pub presence: Vec<Present>,
    /// When the token of the caller expires, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_expires_at: Option<Millis>,
    /// The version of the program of the server.
    #[serde(default)]
    pub program: String,
    /// The version of the schema of the database.
    #[serde(default)]
    pub schema: i32,
}

/// A session of a team, and the node that it holds. A session that holds several nodes occurs once for each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Present {
    /// A person who works without a session has one that begins with `@`.
    pub session: String,
    pub person: String,
    /// The machine, followed by the client where it is known.
    pub machine: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_title: Option<String>,
    /// When the node got its status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Millis>,
    /// When the lease of the session ends; absent for a person, who has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_until: Option<Millis>,
    pub is_live: bool,
}
