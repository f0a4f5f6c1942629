//! Log lines, which commute and therefore wait in the outbox while the server cannot be reached, and the
//! delivery of what waits after a call that the server answered.

use tanmi_protocol::{MEMORY, RunRequest};
use tanmi_workspace::command::{Committed, Outcome};
use tanmi_workspace::error::Result;
use tanmi_workspace::limits;
use tanmi_workspace::model::*;
use tanmi_workspace::ops::{OpContext, Target};
use tanmi_workspace::store::Workspaces;

use super::TeamWorkspaces;
use crate::client::ClientError;
use crate::outbox::{Entry, QueuedWrite, new_key};

impl TeamWorkspaces {
    /// Appends a log line, or queues it if the server cannot be reached. The request has a key of its own, so
    /// the line is appended once, however often it is sent.
    pub(super) fn append_log(
        &self,
        target: &Target,
        event: &str,
        (op, session): (&OpContext, Option<&str>),
        request: impl Fn(String) -> RunRequest,
    ) -> Result<Committed> {
        let request = request(new_key());
        match self.connection.read(|client| client.run(&request)) {
            Ok(answer) => {
                // The line is on the server. If the replica cannot be written now, a later call catches up.
                let _ = self.apply(&request.stream, answer.seq, &answer.docs);
                self.deliver_briefly();
                Ok(Committed { outcome: answer.outcome, seq: answer.seq })
            }
            Err(ClientError::Unreachable { .. }) => self.queue_log(target, event, (op, session), request),
            Err(error) => Err(self.failed(error)),
        }
    }

    fn queue_log(
        &self,
        target: &Target,
        event: &str,
        (op, session): (&OpContext, Option<&str>),
        request: RunRequest,
    ) -> Result<Committed> {
        let (id, now) = (request.stream.clone(), (self.clock)());
        limits::check_filled_line("log", event)?;
        // Fails if there is no such node.
        let total = self.replica.activity(&id, target, now)?.log.len() + 1;
        let seq = self.replica.position(&id, now)?.unwrap_or_default();
        let key = request.key.clone();
        let entry = Entry::new(QueuedWrite::Run(Box::new(request)), session, key, now);
        self.memory.outbox().put(&entry)?;
        let entry = LogEntry::new(now, op.operator, event);
        Ok(Committed { outcome: Outcome::Log { entry, total, is_queued: true }, seq })
    }

    /// Sends what waits in the outbox after a call that the server answered.
    pub(super) fn deliver_briefly(&self) {
        let changed = self.memory.deliver_briefly();
        for (stream, seq) in changed.iter().filter(|(stream, _)| stream.as_str() != MEMORY) {
            if let Ok(id) = WorkspaceId::parse(stream) {
                let _ = self.catch_up(&id, *seq);
            }
        }
    }
}
