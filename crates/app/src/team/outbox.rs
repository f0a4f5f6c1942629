//! The writes of a joined project that wait for its server, and those that the server refused.

use serde::Serialize;
use tanmi_base::{Millis, text};
use tanmi_memory::dates;
use tanmi_team::{Entry, Outbox, OutboxError, QueuedWrite};

use super::TeamService;
use crate::core::Core;
use crate::error::{Error, Result};

/// A replica that had no contact for longer than this is stale.
const FRESH_FOR: Millis = 60_000;
/// The width of the text of an entry in a list.
const TEXT_COLUMNS: usize = 200;

/// How old a replica is.
#[derive(Clone, Debug)]
pub struct Staleness {
    /// When the server was last reached.
    pub as_of: String,
    /// In seconds.
    pub age: i64,
}

/// A write that was not delivered.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OutboxEntry {
    pub id: String,
    /// `queued`, or `undelivered` if the server refused it.
    pub state: &'static str,
    /// `fact`, `summary` or `log`.
    pub kind: &'static str,
    pub text: String,
    /// When it was saved.
    pub at: String,
    /// Of a log line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<String>,
    /// Why the server refused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct OutboxList {
    pub entries: Vec<OutboxEntry>,
    /// The number of all entries with the wanted state.
    pub total: usize,
}

/// What `retry` did.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RetryResult {
    /// The number of entries that were queued again.
    pub retried: usize,
    pub delivered: usize,
    /// The number of entries that wait, for example because the server cannot be reached.
    pub queued: usize,
    /// The number of entries that the server refused.
    pub undelivered: usize,
}

#[derive(Clone, Debug, Serialize)]
pub struct DiscardResult {
    pub discarded: usize,
}

impl OutboxEntry {
    fn of(id: String, entry: &Entry) -> OutboxEntry {
        let short = |long: &str| text::fit(&text::one_line(long), TEXT_COLUMNS);
        let (kind, shown) = entry.describe();
        let workspace_id = match &entry.write {
            QueuedWrite::Line(_) => None,
            QueuedWrite::Run(request) => Some(request.stream.to_string()),
        };
        let state = if entry.refusal.is_some() { "undelivered" } else { "queued" };
        let (code, message) = match &entry.refusal {
            Some(refusal) => (Some(refusal.code.clone()), Some(short(&refusal.message))),
            None => (None, None),
        };
        let at = dates::iso(entry.at);
        OutboxEntry { id, state, kind, text: short(&shown), at, workspace_id, code, message }
    }
}

fn failed(error: OutboxError) -> Error {
    tanmi_workspace::Error::from(error).into()
}

impl TeamService {
    fn outbox(&self) -> Result<&Outbox> {
        Ok(self.team()?.memory().outbox())
    }

    /// Returns what was not delivered, the oldest first. `state` is `queued` or `undelivered`.
    pub fn list_outbox(&self, state: Option<&str>, limit: usize) -> Result<OutboxList> {
        let entries = self.outbox()?.list().into_iter().map(|(id, entry)| OutboxEntry::of(id, &entry));
        let mut entries: Vec<OutboxEntry> =
            entries.filter(|entry| state.is_none_or(|state| state == entry.state)).collect();
        let total = entries.len();
        entries.truncate(limit);
        Ok(OutboxList { entries, total })
    }

    /// Sends refused entries again: those with these ids, or all. One that the server refuses again is told again.
    pub fn retry_outbox(&self, ids: &[String]) -> Result<RetryResult> {
        let team = self.team()?;
        let retried = self.outbox()?.retry(ids).map_err(failed)?;
        check_found(ids, retried)?;
        team.connection().end_pause();
        let delivered = match team.memory().exchange() {
            Ok(delivered) => delivered.sent,
            // They wait.
            Err(tanmi_memory::Error::TeamUnreachable { .. }) => 0,
            Err(error) => return Err(error.into()),
        };
        let counts = self.outbox()?.counts();
        Ok(RetryResult { retried, delivered, queued: counts.queued, undelivered: counts.undelivered })
    }

    /// Deletes entries with these ids, or without ids those that the server refused. Only the user may: they are lost.
    pub fn discard_outbox(&self, ids: &[String]) -> Result<DiscardResult> {
        self.check_user()?;
        let discarded = self.outbox()?.discard(ids).map_err(failed)?;
        check_found(ids, discarded)?;
        Ok(DiscardResult { discarded })
    }

    /// Returns what to tell about writes that the server refused, once for each. The session that calls is
    /// then not told of its own at its next prompt.
    pub fn take_undelivered(&self) -> Option<String> {
        let untold = self.core.project.team()?.memory().outbox().take_untold();
        let (_, entry) = untold.first()?;
        let caller = self.core.session.as_deref();
        if let Some(session) =
            caller.filter(|_| untold.iter().any(|(_, told)| told.session.as_deref() == caller))
        {
            let is_told = |id: &str| untold.iter().any(|(told, _)| told == id);
            let _ = self
                .core
                .states()
                .update(session, |state| state.refused_writes.retain(|write| !is_told(&write.id)));
        }
        let first = OutboxEntry::of(String::new(), entry);
        let (count, what, why) = (untold.len(), first.text, first.message.unwrap_or_default());
        Some(self.core.lang().pick(
            format!(
                "团队服务器拒绝了 {count} 次先前等待发送的写入，例如「{what}」：{why}；`tanmi team outbox list` 列出它们"
            ),
            format!(
                "the team server refused {count} queued write(s), such as “{what}”: {why}; `tanmi team outbox list` shows them"
            ),
        ))
    }

    /// Returns how old the replica is, if it may be outdated.
    pub fn staleness(&self) -> Option<Staleness> {
        let at = stale_since(&self.core)?;
        Some(Staleness { as_of: dates::iso(at), age: (self.core.now() - at).max(0) / 1000 })
    }
}

/// Returns when the server was last reached, if that failed since or is long ago.
fn stale_since(core: &Core) -> Option<Millis> {
    let state = core.project.team()?.connection().state();
    let at = state.contact_at?;
    (state.failed_at.is_some() || core.now() - at > FRESH_FOR).then_some(at)
}

fn check_found(ids: &[String], found: usize) -> Result<()> {
    match ids.first() {
        Some(id) if found == 0 => {
            Err(Error::bad_value("id", id, String::from("an id of `tanmi team outbox list`")))
        }
        _ => Ok(()),
    }
}
