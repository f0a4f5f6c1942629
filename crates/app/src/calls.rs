//! What the calls of a session did. The session state keeps the last of them, and the next session of the
//! project is told a digest of them if the session wrote no summary.
//!
//! Services note calls here; [`crate::sessions::SessionService::track_own_changes`] writes them at the end of
//! a call, in the one write of the session state.

use std::collections::HashMap;
use std::rc::Rc;

use tanmi_base::{Millis, clock, secrets, text};
use tanmi_engine::{DigestFacts, WorkedLog, WorkedNode};
use tanmi_event::{Event, StartSource};
use tanmi_session::{SessionState, States};
use tanmi_workspace::model::{Node, NodeStatus, Workspace, WorkspaceId, WorkspaceStatus};
use tanmi_workspace::ops::Target;
use tanmi_workspace::store::SnapshotDepth;

use crate::pipeline::{self, Caller};
use crate::sessions::is_live;
use crate::stores::Project;
use crate::trust::ProjectTrust;

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
    /// The id of the workspace; empty for memory.
    pub workspace: String,
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
    Deleted {
        node: String,
    },
    SavedFact,
    /// The result told the open problem of a node. Not part of a digest.
    Told {
        node: String,
    },
}

impl SessionCall {
    /// Adds the call to the state of its session. `at` is the current time.
    pub fn record(&self, state: &mut SessionState, at: Millis) {
        // A call shows that the session goes on, also after it reported its end.
        (state.alive_at, state.has_ended) = (at, false);
        if let CallChange::Moved { node, .. } = &self.change {
            // The session has the node again, or knows what became of it.
            state.lost_claims.retain(|claim| claim.node != *node);
        }
        match &self.change {
            CallChange::Created => state.has_unconfirmed_plan = true,
            // The user let the session begin.
            CallChange::Moved { to: NodeStatus::Implementing, .. } => state.has_unconfirmed_plan = false,
            CallChange::Moved { to: NodeStatus::Completed, .. } => {
                state.completed_since_summary = state.completed_since_summary.saturating_add(1);
            }
            _ => {}
        }
        let Some(line) = self.to_line(at).filter(|_| !has_summary(state, &self.project)) else { return };
        state.calls.push(line);
        state.calls.drain(..state.calls.len().saturating_sub(MAX_CALLS));
    }

    /// Returns whether the call is work that a digest tells. Facts are told by themselves; a digest only counts them.
    pub fn is_work(&self) -> bool {
        use CallChange::{Created, Deleted, SavedFact, Told};
        !matches!(self.change, Created | SavedFact | Deleted { .. } | Told { .. })
    }

    /// Returns the call as a line: local time, project, change, workspace and node, text. `None` if it is not part of a
    /// digest.
    fn to_line(&self, at: Millis) -> Option<String> {
        let (change, node, text) = match &self.change {
            CallChange::Created | CallChange::Told { .. } => return None,
            CallChange::Moved { node, to, title } => (format!("moved-{to}"), node.as_str(), title.as_str()),
            CallChange::Logged { node, text } => (String::from("logged"), node.as_str(), text.as_str()),
            CallChange::Problem { node, text } => (String::from("problem"), node.as_str(), text.as_str()),
            CallChange::Cleared { node } => (String::from("cleared"), node.as_str(), ""),
            CallChange::Deleted { node } => (String::from("deleted"), node.as_str(), ""),
            CallChange::SavedFact => (String::from("fact"), "-", ""),
        };
        let at = clock::local_stamp(at).replace(' ', "T");
        // A workspace can have masking turned off; other sessions and the ledger get this text too.
        let text = text::fit(&text::one_line(&secrets::mask(text).0), TEXT_COLUMNS);
        Some(format!("{at} {} {change} {}/{node} {text}", self.project, self.workspace))
    }
}

/// A line of a session state that tells a call.
struct CallLine<'a> {
    at: &'a str,
    project: &'a str,
    change: &'a str,
    workspace: &'a str,
    node: &'a str,
    text: &'a str,
}

impl<'a> CallLine<'a> {
    /// Returns `None` for a line of a version that did not name the workspace.
    fn parse(line: &'a str) -> Option<CallLine<'a>> {
        let mut fields = line.splitn(5, ' ');
        let (at, project, change) = (fields.next()?, fields.next()?, fields.next()?);
        let (workspace, node) = fields.next()?.split_once('/')?;
        Some(CallLine { at, project, change, workspace, node, text: fields.next().unwrap_or_default() })
    }

    fn worked_node(&self, title: &str, text: &str) -> WorkedNode {
        let [workspace, id, title, text] = [self.workspace, self.node, title, text].map(String::from);
        WorkedNode { workspace, id, title, text }
    }
}

/// Returns whether the session saved a summary of its work in a project.
fn has_summary(state: &SessionState, project: &str) -> bool {
    let projects = &state.summarized_projects;
    state.has_summary && (projects.is_empty() || projects.iter().any(|known| known == project))
}

/// Notes that the session saved a summary of its work in a project. It replaces the digest of its calls there.
pub(crate) fn record_summary(state: &mut SessionState, project: &str) {
    // An older version did not say of which project its summary is.
    if !has_summary(state, project) {
        state.summarized_projects.push(project.to_owned());
    }
    state.has_summary = true;
    state.calls.retain(|line| line.split(' ').nth(1) != Some(project));
}

/// Returns the nodes and times of the calls of a session, each with the session. Times are those of log entries.
pub(crate) fn nodes_of_calls(state: &SessionState) -> Vec<((String, String), String)> {
    let calls = state.calls.iter().filter_map(|line| CallLine::parse(line));
    calls.map(|call| ((call.node.to_owned(), call.at.replace('T', " ")), state.session.clone())).collect()
}

/// Returns the digest of the session that last worked in the project of the event and ended without a summary. `None` if
/// a later session, which was told of the work at its start, is live or wrote a summary.
pub(crate) fn find_digest(
    caller: &Caller<'_>,
    event: &Event,
    state: &SessionState,
    trust: &ProjectTrust,
) -> Option<DigestFacts> {
    let project = caller.stores.projects.in_folder(trust.project());
    let states = States::new(caller.home);
    let others = states.sessions_of_project(project.id().as_str()).into_iter();
    // Its texts come from the project. Only files can come with a clone.
    let is_refused = project.maintenance().is_some() && !trust.is_trusted();
    if is_refused || !pipeline::has_project_data(caller, trust.project()) {
        return None;
    }
    let others = others.filter(|session| *session != event.session);
    // When the latest of the sessions before began. What ended until then was told to it at its start.
    let mut began = Millis::MIN;
    for session in others {
        let session = states.read(&session);
        if session.alive_at <= began {
            break;
        }
        let digest = digest_of(&session, project.id().as_str());
        let Some(mut digest) = digest.filter(|_| !is_live(&states, &session, caller.now)) else {
            began = began.max(session.started_at);
            continue;
        };
        // A compaction removed what this session was told.
        digest.is_known = state.told_digest.as_ref() == Some(&digest.id)
            && event.payload.start != Some(StartSource::Compact);
        if let Some(digest) = keep_present(project.as_ref(), digest) {
            return Some(digest);
        }
        began = began.max(session.started_at);
    }
    None
}

/// Replaces what the session recorded by what holds now. Leaves out solved problems, deleted nodes, and workspaces that are
/// archived or gone. Returns `None` if nothing is left.
fn keep_present(project: &dyn Project, mut digest: DigestFacts) -> Option<DigestFacts> {
    let mut known: HashMap<String, Option<(WorkspaceId, Workspace)>> = HashMap::new();
    let mut active = |workspace: &str| {
        let read = || {
            let id = WorkspaceId::parse(workspace).ok()?;
            let header = project.workspaces().header(&id).ok()??;
            (header.status == WorkspaceStatus::Active).then_some((id, header))
        };
        known.entry(workspace.to_owned()).or_insert_with(read).clone()
    };
    let mut nodes: HashMap<(String, String), Option<Rc<Node>>> = HashMap::new();
    let mut node_of = |id: &WorkspaceId, line: &WorkedNode| {
        let read = || {
            let snapshot = project.snapshots().context_snapshot(id, Some(&line.id), SnapshotDepth::Focus)?;
            snapshot.node.map(Rc::new)
        };
        nodes.entry((id.to_string(), line.id.clone())).or_insert_with(read).clone()
    };
    digest.problems.retain_mut(|line| {
        let mut open_problem = || {
            let (id, header) = active(&line.workspace)?;
            if line.id == Target::Workspace.to_string() {
                return Some((String::new(), pipeline::workspace_problem(&header)?.description));
            }
            let node = node_of(&id, line).filter(|node| !node.status.is_done())?;
            Some((node.title.clone(), node.activity.problem.as_ref()?.description.clone()))
        };
        let problem = open_problem().filter(|(_, description)| !description.is_empty());
        let is_open = problem.is_some();
        (line.title, line.text) = problem.unwrap_or_default();
        is_open
    });
    digest.moved.retain_mut(|line| {
        let node = active(&line.workspace).and_then(|(id, _)| node_of(&id, line));
        let is_there = node.is_some();
        (line.title, line.text) =
            node.map(|node| (node.title.clone(), node.status.to_string())).unwrap_or_default();
        is_there
    });
    digest.logs.retain_mut(|log| {
        let mut title = || {
            let (id, _) = active(&log.last.workspace)?;
            match log.last.id == Target::Workspace.to_string() {
                true => Some(String::new()),
                false => Some(node_of(&id, &log.last)?.title.clone()),
            }
        };
        let title = title();
        let is_there = title.is_some();
        log.last.title = title.unwrap_or_default();
        is_there
    });
    has_work(&digest).then_some(digest)
}

/// Returns the digest of the calls of a session in a project, if it worked there.
pub(crate) fn digest_of(state: &SessionState, project: &str) -> Option<DigestFacts> {
    let mut digest = DigestFacts { is_partial: state.calls.len() >= MAX_CALLS, ..DigestFacts::default() };
    let (mut moved, mut problems) = (Vec::new(), Vec::new());
    let calls = state.calls.iter().filter_map(|line| CallLine::parse(line));
    for call in calls.filter(|call| call.project == project) {
        digest.at = call.at.replace('T', " ").chars().take("YYYY-MM-DD HH:MM".len()).collect();
        match call.change {
            "logged" => count_log_line(&mut digest.logs, call.worked_node("", call.text)),
            "problem" => replace(&mut problems, call.worked_node("", call.text)),
            "cleared" => remove(&mut problems, &call.worked_node("", "")),
            "deleted" => {
                remove(&mut moved, &call.worked_node("", ""));
                remove(&mut problems, &call.worked_node("", ""));
            }
            "fact" => digest.facts += 1,
            _ => {
                let Some(status) = call.change.strip_prefix("moved-") else { continue };
                let node = call.worked_node(call.text, status);
                if NodeStatus::from_word(status).is_some_and(NodeStatus::is_done) {
                    remove(&mut problems, &node);
                }
                replace(&mut moved, node);
            }
        }
    }
    digest.id = format!("{} {}", state.session, digest.at);
    digest.moved = moved.into_iter().rev().collect();
    digest.problems = problems.into_iter().rev().collect();
    has_work(&digest).then_some(digest)
}

fn has_work(digest: &DigestFacts) -> bool {
    !digest.moved.is_empty() || !digest.problems.is_empty() || !digest.logs.is_empty()
}

/// Puts a node at the end, in place of what was known of it.
fn replace(nodes: &mut Vec<WorkedNode>, node: WorkedNode) {
    remove(nodes, &node);
    nodes.push(node);
}

fn remove(nodes: &mut Vec<WorkedNode>, node: &WorkedNode) {
    nodes.retain(|known| !known.is_same(node));
}

/// Adds a log entry to those of its node, which becomes the first one.
fn count_log_line(logs: &mut Vec<WorkedLog>, last: WorkedNode) {
    let known = logs.iter().position(|log| log.last.is_same(&last));
    let lines = known.map_or(0, |at| logs.remove(at).lines) + 1;
    logs.insert(0, WorkedLog { lines, last });
}

#[cfg(test)]
mod tests;
