//! [`LocalMaintenance`]: care for workspaces that are files on this machine. A store elsewhere has nothing of this.

use tanmi_base::Millis;
use tanmi_base::journal::Recovery;

use super::CheckReport;
use crate::error::Result;
use crate::model::WorkspaceId;

pub trait LocalMaintenance: Send + Sync {
    /// Checks all files and, with `repair`, repairs what has only one correct value.
    fn check(&self, id: &WorkspaceId, repair: bool, now: Millis) -> Result<CheckReport>;
    /// Compares every file with the index. A server does this when it starts.
    fn rescan(&self, id: &WorkspaceId, now: Millis) -> Result<()>;
    /// Permanently deletes trash entries that are older than `days`. Returns their number.
    fn prune_trash(&self, now: Millis, days: u32) -> Result<usize>;
    /// Returns what recovery did since the last call, so that the caller can report it to the user.
    fn take_recoveries(&self) -> Vec<(WorkspaceId, Recovery)>;
}
