//! Moves the project of this folder from the server of a team back into its files, byte for byte.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tanmi_base::fs;
use tanmi_memory::{Folder, transfer};
use tanmi_team::{Member, find_member};
use tanmi_workspace::store::{ChangeFeed, Workspaces};

use super::{JoinOffer, TeamService};
use crate::error::{Error, Result, TeamProblem};
use crate::stores::{memory_in_files, workspaces_in_files};

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaveResult {
    pub server: String,
    pub project: String,
    pub folder: PathBuf,
    pub workspaces: usize,
    pub lines: usize,
    /// Why the latest state could not be fetched before. The files are then those of the replica.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfetched: Option<String>,
}

impl TeamService {
    /// Returns the server and the project that this folder has joined, for the user who is asked before it leaves.
    pub fn joined_project(&self) -> Result<JoinOffer> {
        let Member { server, project, .. } = self.joined_member()?;
        Ok(JoinOffer { server, project })
    }

    fn joined_member(&self) -> Result<Member> {
        self.check_user()?;
        let members = self.members()?;
        find_member(&members, self.core.home(), self.core.project.folder())
            .cloned()
            .ok_or_else(|| Error::Team(TeamProblem::NotJoined { project: self.core.folder().to_owned() }))
    }

    /// Writes the data of this project back into the files of its folder, and ends its membership.
    pub fn leave(&self, discard: bool, progress: &mut dyn FnMut(usize)) -> Result<LeaveResult> {
        let member = self.joined_member()?;
        let team = self.team()?;
        let (folder, home, now) = (self.core.folder().to_owned(), self.core.home(), self.core.now());
        let unfetched = self.sync(false, &mut |_| {}).err();
        let counts = team.memory().outbox().counts();
        let count = counts.queued + counts.undelivered;
        if count > 0 && !discard {
            return Err(Error::Team(TeamProblem::OutboxNotEmpty { count }));
        }
        let store = workspaces_in_files(&folder, home);
        let ids = team.replica().ids()?;
        for (done, id) in ids.iter().enumerate() {
            let documents = team.replica().documents(id)?;
            // An interrupted attempt wrote some of them.
            if store.exists(id)? {
                store.delete(id, now)?;
            }
            store.insert_documents(&documents)?;
            progress(done + 1);
        }
        let lines = self.write_memory(&folder)?;
        let core = Folder::of(&member.private_folder(home)).memory_md();
        copy_core_memory(&core, &Folder::of(&folder).memory_md())?;
        self.rebind(&member.replica(home), &folder);
        self.forget_folder(&member, &folder)?;
        Ok(LeaveResult {
            server: member.server,
            project: member.project,
            folder,
            workspaces: ids.len(),
            lines,
            unfetched: unfetched.map(|error| error.message(self.core.lang())),
        })
    }

    /// Writes the shared lines of the memory as they are, and then the private records.
    fn write_memory(&self, folder: &Path) -> Result<usize> {
        let (home, now) = (self.core.home(), self.core.now());
        let memory = self.core.project.memory();
        let shared = transfer::read_shared(&Folder::of(self.core.project.folder()), now)?.lines;
        let all = if memory.exists() { memory.export(true, now)? } else { Vec::new() };
        let target = Folder::of(folder);
        if !shared.is_empty() && !target.exists() {
            transfer::write_lines(&target, &shared, now)?;
        }
        let private = private_lines(&all, &shared);
        if !private.is_empty() {
            let memory = memory_in_files(folder, home);
            memory.create(self.core.config.share_memory)?;
            memory.import(&private.join("\n"), now, &mut |_, _| {})?;
        }
        Ok(shared.len())
    }

    /// Ends the membership of a folder. The replica and what was private go with the last one.
    fn forget_folder(&self, member: &Member, folder: &Path) -> Result<()> {
        let membership = self.membership();
        let change = |members: &mut Vec<Member>| {
            for known in members.iter_mut().filter(|known| known.is_same_project(member)) {
                known.folders.retain(|known| known != folder);
            }
            members.retain(|known| !known.folders.is_empty());
            members.iter().any(|known| known.is_same_project(member))
        };
        let is_used = membership.change(change).map_err(Error::io(membership.path()))?;
        if !is_used {
            for folder in [member.replica(self.core.home()), member.private_folder(self.core.home())] {
                fs::remove_tree(&folder).map_err(Error::io(folder))?;
            }
        }
        Ok(())
    }

    /// Makes the bindings of sessions name the other folder of the project. A session whose binding cannot be
    /// changed is told that it is lost.
    pub(super) fn rebind(&self, from: &Path, to: &Path) {
        let bindings = self.core.stores.bindings.as_ref();
        for (session, mut binding) in bindings.all().unwrap_or_default() {
            if binding.project == from {
                to.clone_into(&mut binding.project);
                binding.project_id = crate::trust::folder_id(to);
                let _ = bindings.bind(&session, &binding);
            }
        }
    }
}

/// Copies the core memory of a project, which is private, unless there is one.
pub(super) fn copy_core_memory(from: &Path, to: &Path) -> Result<()> {
    let Some(bytes) = fs::read_optional(from).map_err(Error::io(from))? else { return Ok(()) };
    if to.exists() {
        return Ok(());
    }
    if let Some(folder) = to.parent() {
        fs::create_private_dir(folder).map_err(Error::io(folder))?;
    }
    fs::write_private(to, &bytes).map_err(Error::io(to))
}

/// Returns the records that are not among the shared lines.
pub(super) fn private_lines(all: &[String], shared: &[String]) -> Vec<String> {
    let id = |line: &String| {
        let value: serde_json::Value = serde_json::from_str(line).unwrap_or_default();
        value["id"].as_str().map(str::to_owned)
    };
    let known: BTreeSet<String> = shared.iter().filter_map(id).collect();
    all.iter().filter(|line| id(line).is_some_and(|id| !known.contains(&id))).cloned().collect()
}
