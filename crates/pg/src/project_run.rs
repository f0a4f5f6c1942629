//! Requests about the list of workspaces: create, delete and restore one. Like other requests they run once however
//! often they are sent.

use tanmi_base::hash;
use tanmi_protocol::{Positions, ProjectAnswer, ProjectCommand, ProjectRequest, RunAnswer};
use tanmi_workspace::command::Outcome;
use tanmi_workspace::error::{Error, Result};
use tanmi_workspace::model::*;
use tanmi_workspace::ops::{self, OpContext};

use crate::people::Caller;
use crate::pool::PooledConnection;
use crate::replica::{HEADS, positions};
use crate::run::{RunError, retry};
use crate::store::PgStore;
use crate::tx::{STORE_REQUEST, find_request};

impl PgStore {
    /// Runs a request of a person. A request whose key is known is not run again: its stored answer is returned.
    pub fn run_project_request(
        &self,
        caller: &Caller,
        request: &ProjectRequest,
    ) -> Result<ProjectAnswer, RunError> {
        retry(|| self.transact_run(|connection| self.try_project_request(connection, caller, request)))
    }

    /// Runs work in one transaction. Its changes count only if it succeeds.
    fn transact_run<T>(
        &self,
        work: impl FnOnce(&mut PooledConnection<'_>) -> Result<T, RunError>,
    ) -> Result<T, RunError> {
        let mut refusal = None;
        let outcome = self.transact("BEGIN", |connection| {
            work(connection).map_err(|error| match error {
                RunError::Store(error) => error,
                other => {
                    refusal = Some(other);
                    Error::UnexpectedOutcome
                }
            })
        });
        outcome.map_err(|error| refusal.unwrap_or(RunError::Store(error)))
    }

    fn try_project_request(
        &self,
        connection: &mut PooledConnection<'_>,
        caller: &Caller,
        request: &ProjectRequest,
    ) -> Result<ProjectAnswer, RunError> {
        let content = serde_json::to_vec(&(&caller.person, &request.command)).unwrap_or_default();
        let digest = hash::sha256_hex(&content);
        let (now, stored) = find_request(connection, &self.project, &request.key)?;
        if let Some((stored, answer)) = stored {
            let answer: ProjectAnswer = serde_json::from_str(&answer).map_err(|_| RunError::KeyReused)?;
            let heads = positions(&connection.query(HEADS, &[&self.project])?);
            return match stored == digest {
                true => Ok(ProjectAnswer { heads, ..answer }),
                false => Err(RunError::KeyReused),
            };
        }
        let op = OpContext { now, operator: request.operator, auto_log: true, moves_focus: true };
        let mut answer = self.apply_to_list(connection, &request.command, &op, &caller.person)?;
        let text = serde_json::to_string(&answer).map_err(|_| Error::UnexpectedOutcome)?;
        connection.query(STORE_REQUEST, &[&self.project, &request.key, &digest, &text, &now])?;
        answer.heads = positions(&connection.query(HEADS, &[&self.project])?);
        Ok(answer)
    }

    fn apply_to_list(
        &self,
        connection: &mut PooledConnection<'_>,
        command: &ProjectCommand,
        op: &OpContext,
        person: &str,
    ) -> Result<ProjectAnswer> {
        let answer = |workspace_id: &WorkspaceId| ProjectAnswer {
            workspace_id: workspace_id.clone(),
            created: None,
            heads: Positions::new(),
        };
        let missing =
            |id: &WorkspaceId| Error::WorkspaceNotFound { id: id.to_string(), existing: Vec::new() };
        match command {
            ProjectCommand::CreateWorkspace { workspace } => {
                let (workspace, root) = ops::new_workspace(workspace.clone(), op)?;
                let docs = self.insert_in(connection, &workspace, &root)?;
                let answer = answer(&workspace.id);
                let progress = Progress { completed: 0, total: 0 };
                let outcome = Outcome::Workspace { workspace, progress };
                let created =
                    RunAnswer { outcome, seq: 0, fence: None, docs, heads: Positions::new(), now: op.now };
                Ok(ProjectAnswer { created: Some(created), ..answer })
            }
            ProjectCommand::DeleteWorkspace { workspace_id: id } => {
                let done = self.remove_in(connection, id, op.now, Some(person))?;
                done.then(|| answer(id)).ok_or_else(|| missing(id))
            }
            ProjectCommand::UndeleteWorkspace { workspace_id: id } => {
                let done = self.restore_in(connection, id, Some(person))?;
                done.then(|| answer(id)).ok_or_else(|| missing(id))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_all_commands() {
        let error = serde_json::from_str::<ProjectCommand>(r#"{"command": "?"}"#).unwrap_err().to_string();
        let words: Vec<String> = ProjectCommand::WORDS.iter().map(|word| format!("`{word}`")).collect();
        assert!(error.contains(&format!("expected one of {} at", words.join(", "))), "{error}");
    }
}
