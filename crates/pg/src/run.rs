//! Requests of the machines of a team: a command with a key, run once however often it is sent.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tanmi_base::{Millis, hash};
use tanmi_workspace::command::{self, Command, LiveSessions, Outcome};
use tanmi_workspace::error::Error;
use tanmi_workspace::model::*;
use tanmi_workspace::ops::OpContext;
use tanmi_workspace::state::Action;
use tanmi_workspace::store::Access;

use crate::people::Caller;
use crate::store::PgStore;
use crate::tx::{Author, Document, PgTx};

/// How long a session counts as alive after its last call.
pub const LEASE: Millis = 10 * 60 * 1000;
/// How often a request is tried when other transactions are in its way.
const ATTEMPTS: u32 = 8;

/// A command of a machine of the team.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunRequest {
    /// Made by the caller. A repeated request has the same key and gets the same answer.
    pub key: String,
    pub stream: WorkspaceId,
    pub command: Command,
    pub operator: Operator,
    pub session: Option<String>,
    #[serde(default)]
    pub machine: String,
    /// The number of the claim that the session got when it started the node.
    pub fence: Option<i64>,
}

/// The answer to a request. It is stored with the change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunAnswer {
    pub outcome: Outcome,
    pub seq: u64,
    /// The number of the claim, if the command made one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fence: Option<i64>,
    /// The documents that the command wrote.
    pub docs: Vec<Document>,
    pub now: Millis,
}

/// Where a holder works.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    pub session: String,
    pub person: String,
    pub machine: String,
}

/// Why a request changed nothing.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Store(#[from] Error),
    /// Another session holds the node.
    #[error("the node is held by {} on {}", .holder.person, .holder.machine)]
    Taken { node: NodeId, holder: Holder, since: Millis },
    /// The claim of the session ended, and another session may hold the node now.
    #[error("the claim on the node ended")]
    ClaimLost { node: NodeId, holder: Option<Holder> },
    /// The key belongs to a request with other content.
    #[error("the key was used for another request")]
    KeyReused,
    /// The session belongs to another person.
    #[error("the session belongs to another person")]
    ForeignSession,
}

/// The sessions whose lease has not ended.
struct Leases(BTreeSet<String>);

impl LiveSessions for Leases {
    fn is_live(&self, session: &str) -> bool {
        self.0.contains(session)
    }
}

impl PgStore {
    /// Runs a request of a person. A request whose key is known is not run again: its stored answer is returned.
    pub fn run_request(&self, caller: &Caller, request: &RunRequest) -> Result<RunAnswer, RunError> {
        let mut attempt = 0;
        loop {
            match self.try_request(caller, request) {
                Err(RunError::Store(Error::Conflict { .. })) if attempt + 1 < ATTEMPTS => {
                    attempt += 1;
                    thread::sleep(Duration::from_millis(jitter(attempt)));
                }
                other => return other,
            }
        }
    }

    fn try_request(&self, caller: &Caller, request: &RunRequest) -> Result<RunAnswer, RunError> {
        let connection = self.pool.take().map_err(Error::from)?;
        let mut tx = PgTx::begin(connection, &self.project, &request.stream, Access::Write, 0)?;
        let digest = digest_of(caller, request);
        let (now, stored) = tx.open_request(&request.key)?;
        if let Some((stored_digest, answer)) = stored {
            return match serde_json::from_str(&answer) {
                Ok(answer) if stored_digest == digest => Ok(answer),
                _ => Err(RunError::KeyReused),
            };
        }
        let leases = self.renew(&mut tx, caller, request, now)?;
        check_fence(&tx, request)?;
        let op = OpContext { now, operator: request.operator, auto_log: true, moves_focus: true };
        let applied = command::apply(&mut tx, &claimed_by(request), &op, &leases);
        let outcome = applied.map_err(|error| name_holder(&tx, error))?;
        tx.set_author(Author {
            person: caller.person.clone(),
            session: request.session.clone(),
            machine: request.machine.clone(),
        });
        let fence = claimed_node(&outcome).map(|node| tx.fence(node)).transpose()?.flatten();
        let answer = RunAnswer { outcome, seq: tx.next_seq(), fence, docs: tx.documents()?, now };
        let text = serde_json::to_string(&answer).map_err(|_| Error::UnexpectedOutcome)?;
        tx.commit_request(&request.key, &digest, &text)?;
        Ok(answer)
    }

    /// Renews the lease of the session and returns the live sessions.
    fn renew(
        &self,
        tx: &mut PgTx<'_>,
        caller: &Caller,
        request: &RunRequest,
        now: Millis,
    ) -> Result<Leases, RunError> {
        let Some(session) = &request.session else { return Ok(Leases(tx.live_sessions(now)?)) };
        match tx.renew_lease(session, &caller.person, &request.machine, now + LEASE)? {
            true => Ok(Leases(tx.live_sessions(now)?)),
            false => Err(RunError::ForeignSession),
        }
    }
}

/// Returns the command with the session of the request as its claimant, so that no request acts for another session.
fn claimed_by(request: &RunRequest) -> Command {
    let mut command = request.command.clone();
    match &mut command {
        Command::Transition { request: transition } => {
            transition.claimant.session.clone_from(&request.session);
        }
        Command::DeleteNode { claimant, .. } | Command::StartNext { claimant } => {
            claimant.session.clone_from(&request.session);
        }
        _ => {}
    }
    command
}

/// Returns the node that a command claimed, if it did.
fn claimed_node(outcome: &Outcome) -> Option<&NodeId> {
    let step = match outcome {
        Outcome::Transition { transition, .. } => transition,
        Outcome::Next { started, .. } => &started.as_ref()?.transition,
        _ => return None,
    };
    matches!(step.action, Action::Start | Action::Retry | Action::Reopen).then_some(&step.node_id)
}

/// Checks that the claim of the caller is still the current one, for a command that ends a claim.
fn check_fence(tx: &PgTx<'_>, request: &RunRequest) -> Result<(), RunError> {
    let Command::Transition { request: transition } = &request.command else { return Ok(()) };
    let ends_claim = matches!(transition.action, Action::Submit | Action::Complete | Action::Fail);
    let Some(fence) = request.fence.filter(|_| ends_claim && !transition.claimant.force) else {
        return Ok(());
    };
    match tx.claim(&transition.node_id)? {
        Some((current, holder)) if current != fence => {
            Err(RunError::ClaimLost { node: transition.node_id.clone(), holder })
        }
        _ => Ok(()),
    }
}

/// Returns the error with the person and the machine of the holder.
fn name_holder(tx: &PgTx<'_>, error: Error) -> RunError {
    let Error::NodeClaimed { node, holder, since } = error else { return RunError::Store(error) };
    let found = tx.claim(&node).ok().flatten().and_then(|(_, holder)| holder);
    RunError::Taken { holder: found.unwrap_or(Holder { session: holder, ..Holder::default() }), node, since }
}

/// Returns a digest of what a request asks for. A key of one person is not valid for another.
fn digest_of(caller: &Caller, request: &RunRequest) -> String {
    let content = (&caller.person, &request.stream, &request.command, &request.session, request.fence);
    hash::sha256_hex(&serde_json::to_vec(&content).unwrap_or_default())
}

/// Returns a random number of milliseconds, larger for later attempts.
fn jitter(attempt: u32) -> u64 {
    let random = tanmi_base::id::random(2).bytes().map(u64::from).sum::<u64>();
    random % (10 * u64::from(attempt)) + 1
}
