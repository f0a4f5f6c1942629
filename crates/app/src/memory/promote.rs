//! The memory of the user: facts that hold in all projects.

use tanmi_base::fs;
use tanmi_memory::scoped::ScopedMemory;

use super::{Memory, MemoryService};
use crate::error::{Error, Result};

impl MemoryService {
    /// Creates the memory of the user if it does not exist. It needs no trust, because it comes with no project.
    pub(super) fn create_for_user(&self) -> Result<Option<&'static str>> {
        self.check_enabled()?;
        fs::create_private_dir(self.core.home()).map_err(Error::io(self.core.home()))?;
        self.core.stores.user_memory.create(false)?;
        Ok(None)
    }

    /// Moves facts of the project to the memory of the user, and returns them.
    pub fn promote(&self, ids: &[String]) -> Result<Vec<Memory>> {
        self.check_enabled()?;
        let scoped = self.scoped();
        // A fact of the user is there already.
        let find_one = |id: &String| scoped.project.find(id).or_else(|_| scoped.find(id));
        let find = |ids: &[String]| ids.iter().map(find_one).collect();
        let rows: Vec<_> = self.with_whole_ids(ids.to_vec(), find)?;
        for row in &rows {
            if !ScopedMemory::can_promote(row) {
                return Err(Error::NotAFact { id: row.id.clone() });
            }
            if row.hidden && !ScopedMemory::is_promoted(row) {
                return Err(Error::NotCurrent { id: row.id.clone(), by: row.replaced_by.clone() });
            }
        }
        self.create_for_user()?;
        let promote = |row| Ok(self.view(&scoped.promote(row, self.core.now(), self.writer())?));
        rows.iter().map(promote).collect()
    }
}
