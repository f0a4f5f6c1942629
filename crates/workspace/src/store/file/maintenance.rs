//! Maintenance of the files: scans, the trash and the reports of recovery. [`super::check`] finds damage.

use tanmi_base::clock::DAY;
use tanmi_base::journal::Recovery;
use tanmi_base::{Millis, fs};

use super::check::CheckReport;
use super::{FileStore, Scan, layout, lock};
use crate::error::{Error, Result};
use crate::model::WorkspaceId;
use crate::store::{Access, LocalMaintenance};

impl LocalMaintenance for FileStore {
    fn check(&self, id: &WorkspaceId, repair: bool, now: Millis) -> Result<CheckReport> {
        self.check_files(id, repair, now)
    }

    fn rescan(&self, id: &WorkspaceId, now: Millis) -> Result<()> {
        self.open_tx(id, Access::Refresh, now, Scan::Always).map(|_| ())
    }

    fn prune_trash(&self, now: Millis, days: u32) -> Result<usize> {
        self.place.check()?;
        let layout = self.project_layout();
        layout.check_folders()?;
        let Ok(entries) = std::fs::read_dir(layout.trash()) else { return Ok(0) };
        let oldest = now - i64::from(days) * DAY;
        let mut removed = 0;
        for entry in entries.flatten() {
            if layout::trashed_at(&entry.file_name()).is_some_and(|at| at < oldest) {
                fs::remove_tree(&entry.path()).map_err(Error::io(entry.path()))?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    fn take_recoveries(&self) -> Vec<(WorkspaceId, Recovery)> {
        std::mem::take(&mut *lock(&self.recoveries))
    }
}
