//! Use cases for projects of other users: the user allows one, and revokes that.

use serde::Serialize;
use tanmi_base::owner;

use crate::error::Result;
use crate::rules::RuleService;

/// The owner of a project, and whether the project is used although that is another user.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerView {
    pub project: String,
    /// The file or folder that belongs to another user. `None` if the project belongs to the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The user id of its owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<u32>,
    pub allowed: bool,
    /// Whether this call allowed it.
    pub done: bool,
}

impl RuleService {
    pub fn owner(&self) -> OwnerView {
        let found = owner::find_other_owner(self.core.folder());
        OwnerView {
            project: self.core.folder().display().to_string(),
            path: found.as_ref().map(|(path, _)| path.display().to_string()),
            owner: found.map(|(_, owner)| owner),
            allowed: owner::is_allowed(self.core.home(), self.core.folder()),
            done: false,
        }
    }

    /// Allows this project although it belongs to another user, or revokes that. Returns whether that changed anything.
    pub fn set_owner_allowed(&self, is_allowed: bool) -> Result<bool> {
        let changed = owner::set_allowed(self.core.home(), self.core.folder(), is_allowed);
        Ok(changed.map_err(tanmi_workspace::Error::from)?)
    }
}
