//! Claims that end without their session: another one takes the node over, or a person ends it. The state of the session
//! gets a note, and its next prompt tells it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use tanmi_base::Millis;
use tanmi_protocol::FeedPage;
use tanmi_session::{LostClaim, States};
use tanmi_workspace::model::{NodeId, NodeStatus, WorkspaceId};
use tanmi_workspace::ops::ListQuery;
use tanmi_workspace::store::{NodeBrief, Workspaces};

use crate::presence::{Presence, name};

/// The most held nodes of a workspace that are watched.
const MAX_HELD: usize = 1000;
/// The most claims that a session is told of at once.
const MAX_LOST: usize = 20;

/// The nodes that sessions hold, as they were when the replica was last looked at.
pub struct HeldNodes {
    home: PathBuf,
    replica: PathBuf,
    by_workspace: HashMap<WorkspaceId, HashMap<NodeId, NodeBrief>>,
}

impl HeldNodes {
    pub fn new(home: &Path, replica: &Path) -> HeldNodes {
        HeldNodes { home: home.to_owned(), replica: replica.to_owned(), by_workspace: HashMap::new() }
    }

    /// Remembers the held nodes of a workspace that is not known yet.
    pub fn watch(&mut self, id: &WorkspaceId, workspaces: &dyn Workspaces, now: Millis) {
        if !self.by_workspace.contains_key(id) {
            self.by_workspace.insert(id.clone(), held_nodes(id, workspaces, now));
        }
    }

    /// Notes the claims that ended with a page of the feed, which is in the replica.
    pub fn update(&mut self, id: &WorkspaceId, workspaces: &dyn Workspaces, page: &FeedPage, now: Millis) {
        let after = held_nodes(id, workspaces, now);
        let before = self.by_workspace.insert(id.clone(), after.clone()).unwrap_or_default();
        for (node, held) in before {
            let holder = after.get(&node).and_then(|held| held.holder.as_deref());
            if let Some(session) = held.holder.as_deref().filter(|session| holder != Some(*session)) {
                self.note(id, &held, session, holder, page);
            }
        }
    }

    /// Notes that a session lost a node to `holder`, unless the session itself ended its claim.
    fn note(&self, id: &WorkspaceId, node: &NodeBrief, session: &str, holder: Option<&str>, page: &FeedPage) {
        let states = States::new(&self.home);
        if !states.exists(session) {
            return;
        }
        let is_of_node = |name: &str| name == node.id.as_str();
        let mut changes = page.changes.iter().rev().filter(|change| change.stream == id.as_str());
        let change = changes.find(|change| change.docs.iter().any(|doc| is_of_node(&doc.name)));
        if change.is_some_and(|change| change.session.as_deref() == Some(session)) {
            return;
        }
        let author = change.and_then(|change| {
            Some(name(change.person.as_deref()?, change.machine.as_deref().unwrap_or_default()))
        });
        let by = author.or_else(|| Presence::read(&self.replica).name(holder?));
        let claim = LostClaim {
            node: node.id.to_string(),
            title: node.title.clone(),
            by: by.unwrap_or_default(),
            is_taken: holder.is_some(),
        };
        // Without the note, the session learns it from the answer to its next command.
        let _ = states.update(session, |state| {
            state.lost_claims.retain(|known| known.node != claim.node);
            state.lost_claims.push(claim);
            let excess = state.lost_claims.len().saturating_sub(MAX_LOST);
            state.lost_claims.drain(..excess);
        });
    }
}

/// Returns the nodes of a workspace that have a holder. What cannot be read counts as none.
fn held_nodes(id: &WorkspaceId, workspaces: &dyn Workspaces, now: Millis) -> HashMap<NodeId, NodeBrief> {
    let query = ListQuery {
        statuses: vec![
            NodeStatus::Implementing,
            NodeStatus::Validating,
            NodeStatus::Planning,
            NodeStatus::Monitoring,
        ],
        limit: MAX_HELD,
        ..ListQuery::default()
    };
    let Ok(page) = workspaces.nodes(id, &query, now) else { return HashMap::new() };
    let nodes = page.nodes.into_iter().map(|row| row.node).filter(|node| node.holder.is_some());
    nodes.map(|node| (node.id.clone(), node)).collect()
}
