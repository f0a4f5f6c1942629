//! What the calls of a session did. The session state keeps the last of them.
//!
//! Services note calls here; [`crate::sessions::SessionService::track_own_changes`] writes them at the end of a call, in the
//! one write of the session state.

use tanmi_base::{Millis, clock, secrets, text};
use tanmi_session::SessionState;
use tanmi_workspace::model::NodeStatus;

use crate::stores::Project;

/// The number of calls that a session state keeps.
const MAX_CALLS: usize = 50;
/// The maximum width of a title or text that is kept.
const TEXT_COLUMNS: usize = 80;

/// A call of a session that changed something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SessionCall {
    pub session: String,
    /// The id of the project.
    pub project: String,
    pub change: CallChange,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CallChange {
    /// Created nodes. Not part of a digest.
    Created,
    Moved {
        node: String,
        to: NodeStatus,
        title: String,
    },
    Logged {
        node: String,
        text: String,
    },
    Problem {
        node: String,
        text: String,
    },
    Cleared {
        node: String,
    },
    SavedFact,
}

impl SessionCall {
    pub fn new(session: &str, project: &dyn Project, change: CallChange) -> SessionCall {
        SessionCall { session: session.to_owned(), project: project.id().as_str().to_owned(), change }
    }

    /// Adds the call to the state of its session. `at` is the current time.
    pub fn record(&self, state: &mut SessionState, at: Millis) {
        state.alive_at = at;
        match &self.change {
            CallChange::Created => state.has_unconfirmed_plan = true,
            // The user let the session begin.
            CallChange::Moved { to: NodeStatus::Implementing, .. } => state.has_unconfirmed_plan = false,
            CallChange::Moved { to: NodeStatus::Completed, .. } => {
                state.completed_since_summary = state.completed_since_summary.saturating_add(1);
            }
            _ => {}
        }
        let Some(line) = self.to_line(at).filter(|_| !state.has_summary) else { return };
        state.calls.push(line);
        state.calls.drain(..state.calls.len().saturating_sub(MAX_CALLS));
    }

    /// Returns whether the call is work that a digest tells. Facts are told by themselves; a digest only counts them.
    pub fn is_work(&self) -> bool {
        !matches!(self.change, CallChange::Created | CallChange::SavedFact)
    }

    /// Returns the call as a line: local time, project, change, node, text. `None` if it is not part of a digest.
    fn to_line(&self, at: Millis) -> Option<String> {
        let (change, node, text) = match &self.change {
            CallChange::Created => return None,
            CallChange::Moved { node, to, title } => (format!("moved-{to}"), node.as_str(), title.as_str()),
            CallChange::Logged { node, text } => (String::from("logged"), node.as_str(), text.as_str()),
            CallChange::Problem { node, text } => (String::from("problem"), node.as_str(), text.as_str()),
            CallChange::Cleared { node } => (String::from("cleared"), node.as_str(), ""),
            CallChange::SavedFact => (String::from("fact"), "-", ""),
        };
        let at = clock::local_stamp(at).replace(' ', "T");
        // A workspace can have masking turned off; other sessions and the ledger get this text too.
        let text = text::fit(&text::one_line(&secrets::mask(text).0), TEXT_COLUMNS);
        Some(format!("{at} {} {change} {node} {text}", self.project))
    }
}

#[cfg(test)]
mod tests;
