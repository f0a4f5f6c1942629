//! Claims that end without their session: another one takes the node over, or a person ends it. The state of
//! the session gets a note, and its next prompt tells it.

use std::path::Path;

use tanmi_base::Millis;
use tanmi_protocol::FeedChange;
use tanmi_session::{LostClaim, States};
use tanmi_workspace::model::{NodeId, WorkspaceId};
use tanmi_workspace::store::Workspaces;

use crate::presence::{Presence, name};
use crate::workspaces::TeamWorkspaces;

/// The most claims that a session is told of at once.
const MAX_LOST: usize = 20;

/// A claim of a session of this machine, as `state.json` names it.
struct Claim<'a> {
    workspace: WorkspaceId,
    node: NodeId,
    session: &'a str,
}

impl Claim<'_> {
    /// Parses `workspace/node/session`.
    fn parse(text: &str) -> Option<Claim<'_>> {
        let mut parts = text.splitn(3, '/');
        let workspace = WorkspaceId::parse(parts.next()?).ok()?;
        Some(Claim { workspace, node: NodeId::parse(parts.next()?).ok()?, session: parts.next()? })
    }
}

/// Notes the claims of this machine that the replica no longer has, each once. `changes` are those that were
/// applied last.
pub fn note_lost_claims(workspaces: &TeamWorkspaces, home: &Path, changes: &[FeedChange], now: Millis) {
    let connection = workspaces.connection();
    for (text, fence) in connection.state().untold_claims() {
        let Some(claim) = Claim::parse(text) else { continue };
        let Some(lost) = find_loss(workspaces, &claim, changes, now) else { continue };
        let states = States::new(home);
        if !states.exists(claim.session) {
            continue;
        }
        // Without the note, the session learns it from the answer to its next command.
        let _ = states.update(claim.session, |state| {
            state.lost_claims.retain(|known| known.node != lost.node);
            state.lost_claims.push(lost);
            let excess = state.lost_claims.len().saturating_sub(MAX_LOST);
            state.lost_claims.drain(..excess);
        });
        connection.update_state(|state| state.set_claim_told(text, fence));
    }
}

/// Returns what became of a claim that ended. A claim without a new holder counts only if one of the changes
/// ended it: the session itself may have done it before.
fn find_loss(
    workspaces: &TeamWorkspaces,
    claim: &Claim<'_>,
    changes: &[FeedChange],
    now: Millis,
) -> Option<LostClaim> {
    let node = workspaces.replica().brief(&claim.workspace, &claim.node, now).ok()?;
    let holder = node.as_ref().and_then(|node| node.holder.as_deref());
    let is_of_node = |change: &&FeedChange| {
        change.stream == claim.workspace.as_str()
            && change.docs.iter().any(|doc| doc.name == claim.node.as_str())
    };
    let change = changes.iter().rev().find(is_of_node);
    let is_own = change.is_some_and(|change| change.session.as_deref() == Some(claim.session));
    if holder == Some(claim.session) || is_own || (holder.is_none() && change.is_none()) {
        return None;
    }
    let author = change.and_then(|change| {
        Some(name(change.person.as_deref()?, change.machine.as_deref().unwrap_or_default()))
    });
    let by = author.or_else(|| Presence::read(workspaces.folder()).name(holder?));
    Some(LostClaim {
        node: claim.node.to_string(),
        title: node.as_ref().map_or_else(|| claim.node.to_string(), |node| node.title.clone()),
        by: by.unwrap_or_default(),
        is_taken: holder.is_some(),
        is_deleted: node.is_none(),
        is_restored: false,
    })
}
