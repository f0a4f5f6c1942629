//! The project of this folder on the server of a team: join it, and bring its replica up to date. [`push`]
//! moves a project to the server, and [`transfer`] back.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tanmi_base::fs;
use tanmi_base::paths::{CONFIG_DIR, project_store};
use tanmi_team::{Client, Member, Membership, TeamWorkspaces, find_member, server_address};
use tanmi_workspace::model::{Operator, WorkspaceId};

use crate::core::Core;
use crate::error::{Error, Result, TeamProblem};
use crate::stores::{KnownWorkspace, Project, Stores};
use crate::trust;

mod outbox;
mod people;
mod push;
mod status;
mod transfer;

pub use outbox::{DiscardResult, OutboxEntry, OutboxList, RetryResult, Staleness};
pub use people::JoinedProject;
pub use push::PushResult;
pub use status::TeamStatus;
pub use tanmi_team::TeamCall;
pub use transfer::LeaveResult;

/// The largest `.tanmi/team.json` that is read.
const MAX_OFFER: u64 = 64 << 10;

/// What a user joins.
#[derive(Clone, Debug)]
pub struct JoinRequest {
    pub server: String,
    pub project: String,
    pub token: String,
    /// Certificates of the authority that signed the one of the server.
    pub ca: Option<PathBuf>,
    /// The name of this machine, as others see it.
    pub machine: String,
}

/// The project of a server that `.tanmi/team.json` names, which came with the folder and is only shown, or
/// that the folder has joined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinOffer {
    pub server: String,
    pub project: String,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JoinResult {
    pub server: String,
    pub project: String,
    pub person: String,
    pub role: String,
    pub machine: String,
    pub folder: PathBuf,
    pub replica: PathBuf,
    /// The number of workspaces in the replica.
    pub workspaces: usize,
    /// Why the workspaces could not be fetched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfetched: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SyncResult {
    pub workspaces: usize,
    pub changes: usize,
    pub fetched: usize,
    pub removed: usize,
    /// The number of writes that waited and were sent.
    pub delivered: usize,
    /// The number of writes that the server refused.
    pub undelivered: usize,
    /// With `check`: the documents that differed from those of the server, and were replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub different: Option<Vec<String>>,
    /// Texts that were edited by hand and then replaced.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<PathBuf>,
}

#[derive(Clone)]
pub struct TeamService {
    core: Arc<Core>,
}

impl TeamService {
    pub(crate) fn new(core: Arc<Core>) -> TeamService {
        TeamService { core }
    }

    fn membership(&self) -> Membership {
        Membership::new(self.core.home())
    }

    fn members(&self) -> Result<Vec<Member>> {
        let membership = self.membership();
        membership.all().map_err(Error::io(membership.path()))
    }

    /// Fails if an agent calls: only the user decides where the data of a project is kept.
    fn check_user(&self) -> Result<()> {
        match self.core.env.operator {
            Operator::Human => Ok(()),
            Operator::Ai => Err(Error::UserDecides { setting: "team" }),
        }
    }

    /// Returns the server and the project that the folder names, if it does.
    pub fn offer(&self) -> Result<Option<JoinOffer>> {
        let path = self.core.folder().join(CONFIG_DIR).join("team.json");
        let Some((bytes, _)) = fs::read_regular(&path, MAX_OFFER).map_err(Error::io(&path))? else {
            return Ok(None);
        };
        serde_json::from_slice(&bytes).map(Some).map_err(|error| Error::BadFile {
            path,
            line: error.line(),
            reason: crate::config::malformed_json(&error),
        })
    }

    /// Makes this folder a project of the team, and fetches its workspaces.
    pub fn join(&self, request: JoinRequest) -> Result<JoinResult> {
        let (member, role) = self.member_of(request)?;
        let folder = self.core.folder();
        if find_member(&self.members()?, self.core.home(), folder).is_none() {
            self.check_no_data(folder)?;
        }
        self.enter(member, role)
    }

    /// Returns the membership that a request asks for, with the person and the role that the server names.
    fn member_of(&self, request: JoinRequest) -> Result<(Member, String)> {
        self.check_user()?;
        let server = check_server(&request.server)?;
        let folder = self.core.folder().to_owned();
        let mut member = Member {
            server,
            project: request.project,
            person: String::new(),
            machine: request.machine,
            token: request.token,
            ca: request.ca,
            folders: vec![folder.clone()],
            joined_at: self.core.now(),
            other: Default::default(),
        };
        match find_member(&self.members()?, self.core.home(), &folder) {
            // A new token for the same project.
            Some(known) if known.is_same_project(&member) => {}
            Some(Member { server, project, .. }) => {
                let (server, project) = (server.clone(), project.clone());
                return Err(Error::Team(TeamProblem::AlreadyJoined { server, project }));
            }
            None => {}
        }
        let identity =
            Client::new(&member).identify().map_err(|error| error.into_store_error(&member.server))?;
        member.person = identity.person;
        Ok((member, identity.role))
    }

    /// Records a membership and fetches the workspaces.
    fn enter(&self, member: Member, role: String) -> Result<JoinResult> {
        let folder = self.core.folder().to_owned();
        self.mark_folder(&folder)?;
        self.record(&member)?;
        let stores = Stores::local(self.core.home());
        let project = stores.projects.in_folder(&folder);
        let synced = fetch(&stores, &project, &mut |_| {});
        Ok(JoinResult {
            replica: member.replica(self.core.home()),
            server: member.server,
            project: member.project,
            person: member.person,
            role,
            machine: member.machine,
            folder,
            workspaces: synced.as_ref().map_or(0, |synced| synced.workspaces),
            unfetched: synced.err().map(|error| error.message(self.core.lang())),
        })
    }

    fn check_no_data(&self, folder: &Path) -> Result<()> {
        let project = &self.core.project;
        match project.workspaces().headers()?.is_empty() && !project.memory().exists() {
            true => Ok(()),
            false => Err(Error::Team(TeamProblem::HasLocalData { project: folder.to_owned() })),
        }
    }

    /// Creates the store folder, by which the project is found from the folders below. A folder without
    /// content for Tanmi becomes trusted, as when a workspace is created in it.
    fn mark_folder(&self, folder: &Path) -> Result<()> {
        if trust::is_clean(folder) {
            return self.core.trust().add_project(folder, "created", &[], self.core.now());
        }
        let store = project_store(folder);
        match std::fs::create_dir(&store) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(Error::io(store)(error)),
            _ => Ok(()),
        }
    }

    /// Records a member, or the new token and folder of a known one.
    fn record(&self, member: &Member) -> Result<()> {
        let membership = self.membership();
        let change = |members: &mut Vec<Member>| match members
            .iter_mut()
            .find(|known| known.is_same_project(member))
        {
            None => members.push(member.clone()),
            Some(known) => {
                let mut folders = std::mem::take(&mut known.folders);
                folders.extend(
                    member.folders.iter().filter(|new| !folders.contains(new)).cloned().collect::<Vec<_>>(),
                );
                let (joined_at, other) = (known.joined_at, std::mem::take(&mut known.other));
                *known = Member { folders, joined_at, other, ..member.clone() };
            }
        };
        membership.change(change).map_err(Error::io(membership.path()))
    }

    /// Fails if the project joined or left a team since this process opened it: its calls would use the data
    /// that the project had before. A server asks before each call.
    pub fn check_membership(&self) -> Result<()> {
        let projects = &self.core.stores.projects;
        projects.refresh()?;
        let folder = self.core.folder();
        let current = projects.in_folder(folder);
        match current.folder() == self.core.project.folder() {
            true => Ok(()),
            false => Err(Error::Team(TeamProblem::Changed {
                project: folder.to_owned(),
                is_joined: current.team().is_some(),
            })),
        }
    }

    /// Returns the replica of this project. Fails if it has not joined a team.
    fn team(&self) -> Result<&Arc<TeamWorkspaces>> {
        self.core.project.check()?;
        self.core
            .project
            .team()
            .ok_or_else(|| Error::Team(TeamProblem::NotJoined { project: self.core.folder().to_owned() }))
    }

    /// Brings the replica up to date. With `check`, compares every document with the server. `progress` gets
    /// the number of changes so far.
    pub fn sync(&self, check: bool, progress: &mut dyn FnMut(usize)) -> Result<SyncResult> {
        let team = self.team()?;
        team.connection().end_pause();
        let mut result = fetch(&self.core.stores, &self.core.project, progress)?;
        if check {
            result.different = Some(team.check(progress)?);
        }
        result.kept = team.replica().kept_edits();
        Ok(result)
    }
}

/// Brings the replica of a project up to date, and remembers where its workspaces are.
fn fetch(stores: &Stores, project: &Arc<dyn Project>, progress: &mut dyn FnMut(usize)) -> Result<SyncResult> {
    let Some(team) = project.team() else {
        return Err(Error::Team(TeamProblem::NotJoined { project: project.checkout().to_owned() }));
    };
    // First, so that what it sends comes back with the changes.
    let delivered = team.memory().exchange()?;
    let synced = team.sync(progress)?;
    // Without it, they are found from other folders after they were listed.
    let _ = remember_workspaces(stores, project);
    Ok(SyncResult {
        workspaces: synced.workspaces,
        changes: synced.changes,
        fetched: synced.fetched.len(),
        removed: synced.removed,
        delivered: delivered.sent,
        undelivered: delivered.refused.len(),
        different: None,
        kept: Vec::new(),
    })
}

/// Remembers where the workspaces of a project are. The name of one that is not read here follows when it is listed.
fn remember_workspaces(stores: &Stores, project: &Arc<dyn Project>) -> Result<()> {
    let known = stores.projects.workspaces()?.into_iter().map(|known| (known.id, known.name));
    let mut names: BTreeMap<WorkspaceId, String> = known.collect();
    let headers = project.workspaces().headers()?.into_iter();
    names.extend(headers.filter_map(|(id, header)| Some((id, header?.name))));
    let found = project.feed().ids()?.into_iter().map(|id| KnownWorkspace {
        name: names.remove(&id).unwrap_or_else(|| id.to_string()),
        id,
        project: project.clone(),
    });
    stores.projects.remember(&found.collect::<Vec<_>>())
}

fn check_server(text: &str) -> Result<String> {
    let expected = || String::from("https://HOST[:PORT], or http://127.0.0.1:PORT on this machine");
    server_address(text).ok_or_else(|| Error::bad_value("URL", text, expected()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembered_workspaces_are_all_of_a_large_project() {
        let home = tempfile::tempdir().unwrap();
        let (stores, folder) = (Stores::local(home.path()), home.path().join("project"));
        for n in 0..=1000 {
            let workspace = project_store(&folder).join(format!("ws-{n:08}-aaaaaa"));
            std::fs::create_dir_all(workspace.join("nodes")).unwrap();
        }
        let project = stores.projects.in_folder(&folder);
        remember_workspaces(&stores, &project).unwrap();
        let oldest = WorkspaceId::parse("ws-00000000-aaaaaa").unwrap();
        assert!(stores.projects.of_workspace(&oldest).unwrap().is_some());
    }
}
