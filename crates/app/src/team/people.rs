//! The people of a team and what they do, as its server tells, for the page of a machine.

use std::path::PathBuf;

use serde::Serialize;
use serde_json::{Value, json};
use tanmi_team::{ClientError, Presence, Present, TeamCall, find_member};

use super::TeamService;
use crate::error::Result;
use crate::presence;

/// A project of this machine that a team server keeps.
#[derive(Clone, Debug, Serialize)]
pub struct JoinedProject {
    /// The folder of the project.
    pub folder: String,
    /// The name of the project on the server.
    pub name: String,
    pub server: String,
    /// The name of the user on the server.
    pub person: String,
}

impl TeamService {
    /// Returns those of the folders that have joined a team. A list that cannot be read counts as empty.
    pub fn joined(&self, folders: &[PathBuf]) -> Vec<JoinedProject> {
        let members = self.members().unwrap_or_default();
        let joined = |folder: &PathBuf| {
            let member = find_member(&members, self.core.home(), folder)?;
            Some(JoinedProject {
                folder: folder.display().to_string(),
                name: member.project.clone(),
                server: member.server.clone(),
                person: member.person.clone(),
            })
        };
        folders.iter().filter_map(joined).collect()
    }

    /// Asks the server of this project about its people, with the token of this machine.
    pub fn ask(&self, call: &TeamCall) -> Result<Value> {
        let connection = self.team()?.connection();
        let answer = connection.read(|client| client.ask(call));
        Ok(answer.map_err(|error| error.into_store_error(connection.server()))?)
    }

    /// Asks the server who holds which node. If it cannot be reached, returns what it last told, and when.
    pub fn presence(&self, call: &TeamCall) -> Result<Value> {
        let connection = self.team()?.connection();
        match connection.read(|client| client.ask(call)) {
            Err(ClientError::Unreachable { .. }) => self.last_presence(call),
            other => Ok(other.map_err(|error| error.into_store_error(connection.server()))?),
        }
    }

    fn last_presence(&self, call: &TeamCall) -> Result<Value> {
        let project = self.core.project.as_ref();
        let told = presence::of_project(project);
        let headers = project.workspaces().headers()?;
        let name_of = |id: &str| {
            let found = headers.iter().find(|(known, _)| known.as_str() == id);
            found.and_then(|(_, workspace)| workspace.as_ref()).map(|workspace| workspace.name.clone())
        };
        let person = call.arguments.get("person").and_then(Value::as_str);
        let is_wanted = |present: &&Present| {
            present.node_id.is_some() && person.is_none_or(|person| person == present.person)
        };
        let limit = call.arguments.get("limit").and_then(Value::as_u64).map_or(100, |limit| limit as usize);
        let found: Vec<&Present> = told.sessions.iter().filter(is_wanted).collect();
        let shown = found.iter().take(limit).map(|present| {
            let workspace = present.workspace_id.as_deref().unwrap_or_default();
            held(present, &told, name_of(workspace), self.core.now())
        });
        let shown: Vec<Value> = shown.collect();
        Ok(json!({"presence": shown, "hasMore": found.len() > limit, "toldAt": told.as_of}))
    }
}

/// Returns a held node in the words of the server. The times are by our clock.
fn held(present: &Present, told: &Presence, workspace: Option<String>, now: tanmi_base::Millis) -> Value {
    let is_person = present.session.starts_with('@');
    json!({
        "person": Some(&present.person).filter(|name| !name.is_empty()),
        "machine": Some(&present.machine).filter(|name| !name.is_empty()),
        "session": Some(&present.session).filter(|_| !is_person),
        "workspaceId": present.workspace_id, "workspaceName": workspace, "nodeId": present.node_id,
        "nodeTitle": present.node_title, "since": present.since.map(|at| at - told.skew),
        "leaseUntil": present.lease_until.map(|at| at - told.skew),
        "isLive": present.is_live && told.is_live(&present.session, now),
    })
}
