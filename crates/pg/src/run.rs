//! Requests of the machines of a team: a command with a key, run once however often it is sent.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use serde_json::json;
use tanmi_base::clock::DAY;
use tanmi_base::{Millis, hash};
use tanmi_protocol::{PERSON_MARK, Positions, RunAnswer, RunRequest, person_of_holder};
use tanmi_workspace::command::{self, Command, LiveSessions, Outcome};
use tanmi_workspace::error::{Error, Holder};
use tanmi_workspace::model::*;
use tanmi_workspace::ops::{self, OpContext, TransitionRequest};
use tanmi_workspace::state::Action;

use crate::audit::{AuditEvent, AuditKind};
use crate::contributions::Deed;
use crate::flush::StoredRequest;
use crate::people::Caller;
use crate::pool::PooledConnection;
use crate::replica::{HEADS, positions};
use crate::store::PgStore;
use crate::tx::{Author, COMMIT_LEASE, PgTx};

/// How long a session counts as alive after its last call.
pub const LEASE: Millis = 10 * 60 * 1000;
/// The greatest age of a log line: that of an older one is taken for the error of a clock.
const MAX_AGE: Millis = 365 * DAY;
/// How often a request is tried when other transactions are in its way.
const ATTEMPTS: u32 = 8;

/// Why a request changed nothing.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Store(#[from] Error),
    #[error(transparent)]
    Memory(#[from] tanmi_memory::Error),
    /// The key belongs to a request with other content.
    #[error("the key was used for another request")]
    KeyReused,
    /// The session belongs to another person.
    #[error("the session belongs to another person")]
    ForeignSession,
    /// The workspace changed since the caller read it.
    #[error("the workspace has {current} changes, not {expected}")]
    Outdated { expected: u64, current: u64 },
}

/// The sessions whose lease has not ended. A person without a session has no lease and holds a node until it is done.
pub struct Leases(pub(crate) BTreeSet<String>);

impl LiveSessions for Leases {
    fn is_live(&self, session: &str) -> bool {
        person_of_holder(session).is_some() || self.0.contains(session)
    }
}

impl PgStore {
    /// Runs a request of a person. A request whose key is known is not run again: its stored answer is returned.
    pub fn run_request(&self, caller: &Caller, request: &RunRequest) -> Result<RunAnswer, RunError> {
        retry(|| self.try_request(caller, request))
    }

    fn try_request(&self, caller: &Caller, request: &RunRequest) -> Result<RunAnswer, RunError> {
        let digest = digest_of(caller, request);
        let author = Author {
            person: caller.person.clone(),
            session: request.session.clone(),
            machine: request.machine.clone(),
        };
        let mut opened = self.open_request(&request.stream, &request.key, &author)?;
        // The request may have been carried out before the workspace was deleted.
        if let Some(stored) = opened.stored.take() {
            return self.repeat(opened.connection, &stored, &digest);
        }
        if opened.is_foreign {
            opened.connection.roll_back();
            return Err(RunError::ForeignSession);
        }
        let leases = Leases(std::mem::take(&mut opened.live));
        let mut tx = opened.into_tx(self, &request.stream, author)?;
        match self.apply_request(&mut tx, caller, request, &leases) {
            Ok(answer) => self.commit_request(tx, request, &digest, answer),
            Err(error) => {
                let keeps_lease = tx.refuse();
                if let Some(session) = request.session.as_ref().filter(|_| !keeps_lease && is_refusal(&error))
                {
                    // The lease ends earlier if this fails.
                    let _ = self.beat(caller, std::slice::from_ref(session));
                }
                Err(error)
            }
        }
    }

    /// Applies the command of a request. Returns its answer without the last changes of other streams.
    fn apply_request(
        &self,
        tx: &mut PgTx<'_>,
        caller: &Caller,
        request: &RunRequest,
        leases: &Leases,
    ) -> Result<RunAnswer, RunError> {
        if let Some(expected) = request.expects.filter(|expected| *expected != tx.next_seq()) {
            return Err(RunError::Outdated { expected, current: tx.next_seq() });
        }
        let claimant = request.session.clone().unwrap_or_else(|| format!("{PERSON_MARK}{}", caller.name));
        check_claim(tx, request, &claimant, leases)?;
        let now = tx.now();
        let op = OpContext { now, operator: request.operator, auto_log: true, moves_focus: true };
        let command = claimed_by(request, &claimant, &caller.name);
        let forced = forced_claim(tx, caller, request, &command, leases)?;
        let applied = match (&request.command, request.age) {
            (Command::AppendLog { target, event }, Some(age)) => {
                let entry = ops::append_log(tx, target, event, now - age.clamp(0, MAX_AGE), &op);
                entry.map(|(entry, total)| Outcome::Log { entry, total, is_queued: false })
            }
            _ => command::apply(tx, &command, &op, leases),
        };
        let outcome = applied.map_err(|error| name_holder(tx, error))?;
        tx.set_deed(Deed::of_command(&request.command, &outcome));
        forced.map(|event| tx.record_audit(&event)).transpose()?;
        let fence = claimed_node(&outcome).map(|node| tx.fence(node)).transpose()?.flatten();
        let (seq, docs) = (tx.next_seq(), tx.documents()?);
        Ok(RunAnswer { outcome, seq, fence, docs, heads: Positions::new(), now })
    }

    fn commit_request(
        &self,
        tx: PgTx<'_>,
        request: &RunRequest,
        digest: &str,
        mut answer: RunAnswer,
    ) -> Result<RunAnswer, RunError> {
        let text = serde_json::to_string(&answer).map_err(|_| Error::UnexpectedOutcome)?;
        answer.heads = tx.commit_request(StoredRequest { key: &request.key, digest, answer: &text })?;
        answer.heads.insert(request.stream.to_string(), answer.seq as i64);
        Ok(answer)
    }

    /// Returns the stored answer of a request, with its digest, if it belongs to this request.
    fn repeat(
        &self,
        mut connection: PooledConnection<'_>,
        (stored, answer): &(String, String),
        digest: &str,
    ) -> Result<RunAnswer, RunError> {
        let heads = connection.query(HEADS, &[&self.project]);
        let heads = heads.and_then(|heads| connection.batch(COMMIT_LEASE).map(|()| positions(&heads)));
        let heads = heads.inspect_err(|_| connection.roll_back())?;
        match serde_json::from_str(answer) {
            Ok(answer) if stored == digest => Ok(RunAnswer { heads, ..answer }),
            _ => Err(RunError::KeyReused),
        }
    }
}

/// Returns whether a request failed although the database works.
fn is_refusal(error: &RunError) -> bool {
    !matches!(error, RunError::Store(Error::Unavailable { .. } | Error::Conflict { .. }))
}

/// Returns the command with the caller as its claimant, so that no request acts for another session.
fn claimed_by(request: &RunRequest, caller: &str, person: &str) -> Command {
    let mut command = request.command.clone();
    match &mut command {
        Command::Transition { request: TransitionRequest { claimant, .. } }
        | Command::DeleteNode { claimant, .. }
        | Command::StartNext { claimant } => {
            claimant.session = Some(caller.to_owned());
            claimant.person = Some(person.to_owned());
        }
        _ => {}
    }
    command
}

/// Returns the entry of the audit for a command that overrides the claim of another live session.
fn forced_claim<'a>(
    tx: &PgTx<'_>,
    caller: &'a Caller,
    request: &RunRequest,
    command: &Command,
    leases: &Leases,
) -> Result<Option<AuditEvent<'a>>, Error> {
    let (node, action, is_forced) = match command {
        Command::Transition { request } if request.claimant.force => {
            (&request.node_id, request.action.as_str(), ops::overrides_claim(tx, request, leases)?)
        }
        Command::DeleteNode { node_id, claimant } if claimant.force => {
            (node_id, "delete", ops::deletes_claim(tx, node_id, claimant, leases)?)
        }
        _ => return Ok(None),
    };
    if !is_forced {
        return Ok(None);
    }
    let detail = json!({
        "workspaceId": request.stream.as_str(), "nodeId": node.as_str(), "action": action,
        "session": request.session,
    });
    let (project, person) = (Some(caller.project.as_str()), Some(caller.person.as_str()));
    Ok(Some(AuditEvent { project, person, ip: None, what: AuditKind::ClaimForced, detail }))
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

/// Checks that the caller still has the claim that the command ends. A holder whose lease ended keeps the claim until
/// another session starts the node.
fn check_claim(tx: &PgTx<'_>, request: &RunRequest, claimant: &str, leases: &Leases) -> Result<(), RunError> {
    let Command::Transition { request: transition } = &request.command else { return Ok(()) };
    let ends_claim = matches!(transition.action, Action::Submit | Action::Complete | Action::Fail);
    if !ends_claim || transition.claimant.force {
        return Ok(());
    }
    let node = &transition.node_id;
    let Some(claim) = tx.claim(node)? else { return Ok(()) };
    match claim.holder {
        holder if request.fence.is_some_and(|fence| fence != claim.fence) => {
            Err(Error::ClaimLost { node: node.clone(), holder }.into())
        }
        // Without a claim the command says what is wrong, and it refuses the claim of a live session.
        Some(holder) if holder.session != claimant && !leases.is_live(&holder.session) => {
            Err(Error::ClaimLost { node: node.clone(), holder: Some(holder) }.into())
        }
        _ => Ok(()),
    }
}

/// Returns the error with the person and the machine of the holder.
fn name_holder(tx: &PgTx<'_>, error: Error) -> RunError {
    let Error::NodeClaimed { node, holder, since } = error else { return RunError::Store(error) };
    let found = tx.claim(&node).ok().flatten().and_then(|claim| claim.holder);
    let holder = found.unwrap_or(Holder { session: holder, ..Holder::default() });
    Error::NodeHeld { node, holder, since }.into()
}

/// Returns a digest of what a request asks for. A key of one person is not valid for another.
fn digest_of(caller: &Caller, request: &RunRequest) -> String {
    let RunRequest { stream, command, session, fence, expects, .. } = request;
    let content = (&caller.person, stream, command, session, fence, expects);
    hash::sha256_hex(&serde_json::to_vec(&content).unwrap_or_default())
}

/// Tries a write again while other transactions are in its way.
pub(crate) fn retry<T>(try_once: impl Fn() -> Result<T, RunError>) -> Result<T, RunError> {
    let mut attempt = 0;
    loop {
        match try_once() {
            Err(RunError::Store(Error::Conflict { .. })) if attempt + 1 < ATTEMPTS => {
                attempt += 1;
                thread::sleep(Duration::from_millis(jitter(attempt)));
            }
            other => return other,
        }
    }
}

/// Returns a random number of milliseconds, larger for later attempts.
fn jitter(attempt: u32) -> u64 {
    let random = tanmi_base::id::random(2).bytes().map(u64::from).sum::<u64>();
    random % (10 * u64::from(attempt)) + 1
}
