//! [`ChangeFeed`]: the changes of a workspace, one after the other, for live views.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::model::WorkspaceId;

/// The name of the workspace itself in events.
pub const WORKSPACE: &str = "workspace";

/// A change in a workspace. `nodes` contains node ids, or `workspace` for the workspace itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreEvent {
    Change {
        seq: u64,
        nodes: Vec<String>,
    },
    /// Data was changed by something other than this program.
    Edit {
        nodes: Vec<String>,
    },
    /// The changes up to this sequence number are unknown.
    Gap {
        seq: u64,
    },
}

/// Where a subscription begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedStart {
    /// With the next change.
    Now,
    /// With the change after this sequence number; 0 means with the first change. If that position is no longer known,
    /// the first event is [`StoreEvent::Gap`].
    After(u64),
}

/// The source of changes of workspaces.
pub trait ChangeFeed: Send + Sync {
    fn ids(&self) -> Result<Vec<WorkspaceId>>;
    fn subscribe(&self, id: &WorkspaceId, from: FeedStart) -> Box<dyn Subscription>;
    /// Returns a number for each node, and for the workspace itself ([`WORKSPACE`]), that changes with its
    /// data, also after an edit by something other than this program. Empty if the store keeps no such
    /// numbers.
    fn revisions(&self, _id: &WorkspaceId) -> Result<BTreeMap<String, u64>> {
        Ok(BTreeMap::new())
    }
}

/// Returns the changes of one workspace since the last call.
pub trait Subscription: Send {
    /// Returns the changes committed since the last call. Cheap if there are none.
    fn changes(&mut self) -> Result<Vec<StoreEvent>>;
    /// Returns the edits by something other than this program since the last call. Can be expensive. A committed change
    /// that [`Self::changes`] has not returned yet can be reported here too, and again later with its sequence number.
    fn edits(&mut self) -> Result<Option<StoreEvent>>;
}
