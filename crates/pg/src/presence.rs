//! Who works on what: the nodes that sessions hold.

use serde_json::{Value, json};
use tanmi_base::Millis;
use tanmi_protocol::{PERSON_MARK, person_of_holder};
use tanmi_workspace::error::Result;
use tanmi_workspace::model::WorkspaceId;
use tokio_postgres::Row;

use crate::rows;
use crate::store::PgStore;

const HELD: &str =
    "SELECT n.ws, w.doc AS workspace, n.id, n.title, n.holder, n.status_changed_at, s.machine, s.lease_until,
    p.name AS person, s.lease_until > (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS is_live
FROM node n JOIN workspace w ON w.project = n.project AND w.id = n.ws AND w.deleted_at IS NULL
LEFT JOIN session s ON s.project = n.project AND s.id = n.holder LEFT JOIN person p ON p.id = s.person
WHERE n.project = $1 AND n.holder IS NOT NULL
    AND ($2::text IS NULL OR p.name = $2 OR n.holder = $4)
ORDER BY n.status_changed_at DESC, n.ws, n.id LIMIT $3";

/// A node that a session or a person holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Presence {
    /// `None` if the session is not one of the team, such as that of an imported node.
    pub person: Option<String>,
    pub machine: Option<String>,
    /// `None` if a person without a session holds the node.
    pub session: Option<String>,
    pub workspace_id: String,
    pub workspace_name: String,
    pub node_id: String,
    pub node_title: String,
    /// When the node got its status.
    pub since: Millis,
    pub lease_until: Option<Millis>,
    /// Whether the claim is in force: another session cannot start the node.
    pub is_live: bool,
}

impl Presence {
    pub fn to_json(&self) -> Value {
        json!({
            "person": self.person, "machine": self.machine, "session": self.session,
            "workspaceId": self.workspace_id, "workspaceName": self.workspace_name, "nodeId": self.node_id,
            "nodeTitle": self.node_title, "since": self.since, "leaseUntil": self.lease_until,
            "isLive": self.is_live,
        })
    }
}

impl PgStore {
    /// Returns the held nodes, the latest first: all, or those of one person.
    pub fn presence(&self, person: Option<&str>, limit: usize) -> Result<Vec<Presence>> {
        let holder = person.map(|name| format!("{PERSON_MARK}{name}"));
        self.query(HELD, &[&person, &rows::limit(limit), &holder])?.iter().map(presence).collect()
    }
}

fn presence(row: &Row) -> Result<Presence> {
    let workspace = WorkspaceId::parse(row.get("ws"))?;
    let name = rows::load_workspace(&workspace, row.get("workspace")).map(|loaded| loaded.value.name);
    let holder: String = row.get("holder");
    // A person without a session holds a node until it is done.
    let own = person_of_holder(&holder).map(str::to_owned);
    let is_live = own.is_some() || row.get::<_, Option<bool>>("is_live").unwrap_or(false);
    Ok(Presence {
        session: own.is_none().then_some(holder),
        person: own.or_else(|| row.get("person")),
        machine: row.get("machine"),
        workspace_id: workspace.to_string(),
        workspace_name: name.unwrap_or_default(),
        node_id: row.get("id"),
        node_title: row.get("title"),
        since: row.get("status_changed_at"),
        lease_until: row.get("lease_until"),
        is_live,
    })
}
