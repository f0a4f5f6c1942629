//! How a project stands with its team.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tanmi_base::Millis;
use tanmi_team::{Client, find_member};
use tanmi_workspace::store::ChangeFeed;

use super::TeamService;
use crate::error::{Error, Result, TeamProblem};

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TeamStatus {
    pub server: String,
    pub project: String,
    pub person: String,
    /// If the server could be asked.
    pub role: Option<String>,
    pub machine: String,
    pub is_reachable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// When the server last answered.
    pub contact_at: Option<Millis>,
    /// How far the clock of the server is ahead of that of this machine.
    pub skew_ms: Millis,
    pub joined_at: Millis,
    pub folders: Vec<PathBuf>,
    pub replica: PathBuf,
    pub replica_bytes: u64,
    /// The number of workspaces whose latest changes the replica does not have, if the server could be asked.
    pub behind: Option<usize>,
    /// The last change of each workspace in the replica.
    pub positions: BTreeMap<String, i64>,
    /// The number of writes that wait for the server.
    pub outbox: usize,
    /// The number of writes that the server refused.
    pub undelivered: usize,
    /// Documents of the replica that were edited by hand: `WORKSPACE/NODE`.
    pub edited: Vec<String>,
    /// Texts that were edited by hand and then replaced.
    pub kept: Vec<PathBuf>,
}

impl TeamService {
    /// Returns how this project stands with its team. Tries to reach the server.
    pub fn status(&self) -> Result<TeamStatus> {
        let team = self.team()?;
        let (members, home) = (self.members()?, self.core.home());
        let Some(member) = find_member(&members, home, self.core.project.folder()) else {
            return Err(Error::Team(TeamProblem::NotJoined { project: self.core.folder().to_owned() }));
        };
        let connection = team.connection();
        let counts = team.memory().outbox().counts();
        connection.end_pause();
        let identity = connection.read(Client::identify);
        let positions = team.positions()?;
        let page =
            identity.as_ref().ok().and_then(|_| connection.read(|client| client.feed(&positions, 0)).ok());
        let behind = page.map(|page| {
            connection.note_time(page.now);
            let is_behind = |(stream, head): &(&String, &i64)| {
                stream.starts_with("ws-") && positions.get(*stream).is_none_or(|have| have < *head)
            };
            page.heads.iter().filter(is_behind).count()
        });
        let state = connection.state();
        let mut edited = Vec::new();
        for id in team.replica().ids()? {
            edited.extend(team.replica().edited_documents(&id).iter().map(|name| format!("{id}/{name}")));
        }
        Ok(TeamStatus {
            server: member.server.clone(),
            project: member.project.clone(),
            person: member.person.clone(),
            machine: member.machine.clone(),
            role: identity.as_ref().ok().map(|identity| identity.role.clone()),
            is_reachable: identity.is_ok(),
            trouble: identity
                .err()
                .map(|error| error.into_store_error(&member.server).message(self.core.lang())),
            contact_at: state.contact_at,
            skew_ms: state.skew,
            joined_at: member.joined_at,
            folders: member.folders.clone(),
            replica: member.replica(home),
            replica_bytes: size_of(&member.replica(home)),
            behind,
            positions,
            outbox: counts.queued,
            undelivered: counts.undelivered,
            edited,
            kept: team.replica().kept_edits(),
        })
    }
}

/// Returns the size of all files below a folder.
fn size_of(folder: &Path) -> u64 {
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => size_of(&entry.path()),
        Ok(meta) => meta.len(),
        Err(_) => 0,
    };
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(size).sum()
}
