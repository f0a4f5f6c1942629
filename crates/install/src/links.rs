//! Symbolic links in a project. A link that stays in the project is followed. One that leaves it is refused, because a
//! repository can contain a link to any file of the user who clones it.

use std::path::Path;

use tanmi_base::fs;

use crate::plan::{ChangeOutcome, PlannedChange, TargetFile};
use crate::{Error, Refusal, Result};

/// Checks every link between the project and the file. Links in the user scope are the user's own.
pub(crate) fn check(target: &TargetFile) -> Result<(), Refusal> {
    let Some(project) = &target.project else { return Ok(()) };
    let root = project.canonicalize().map_err(|error| Refusal::Unusable(error.to_string()))?;
    let Ok(rest) = target.path.strip_prefix(project) else { return Ok(()) };
    let mut link = project.clone();
    for part in rest.components() {
        link.push(part);
        if fs::is_link(&link) {
            let to = link.canonicalize().map_err(|_| Refusal::BrokenLink)?;
            if !is_file_of(&root, &to) {
                return Err(Refusal::LeavesProject { link, to });
            }
        }
    }
    Ok(())
}

/// Returns whether a resolved path is in the project and not among the files of git.
fn is_file_of(root: &Path, path: &Path) -> bool {
    path.strip_prefix(root).is_ok_and(|rest| rest.components().all(|part| part.as_os_str() != ".git"))
}

/// Fails if a link leaves the project. Such a repository may be hostile, so none of the files is written.
pub fn check_links(plans: &[PlannedChange]) -> Result<()> {
    for planned in plans {
        if let ChangeOutcome::Refused(Refusal::LeavesProject { link, to }) = &planned.outcome {
            return Err(Error::LeavesProject { link: link.clone(), to: to.clone() });
        }
    }
    Ok(())
}
