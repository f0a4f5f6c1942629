//! Turns sources into rows of the activity index.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tanmi_base::{Millis, clock, text};
use tanmi_index::{ActivityRow, NodeStateRow};
use tanmi_memory::MemoryRow;
use tanmi_session::{Binding, LedgerEntry, States};
use tanmi_workspace::model::{
    Activity, LogEntry, Node, NodeId, NodeStatus, Operator, PERSON, Problem, Workspace, WorkspaceId,
};
use tanmi_workspace::ops;

use super::{ActivityData, InjectionData, MemoryData};

/// The maximum width of a text in an entry. The reader follows the link for the whole text.
const TEXT_COLUMNS: usize = 280;

/// The current state of a node, for the view of what happens now.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeState {
    pub id: NodeId,
    pub title: String,
    pub status: NodeStatus,
    /// When the status last changed.
    pub since: Millis,
    /// The session that holds the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// The subagent of that session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_log: Option<NodeLog>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conclusion: Option<String>,
}

/// The last log entry of a node that an agent or a person wrote.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NodeLog {
    pub at: Millis,
    pub operator: Operator,
    pub text: String,
}

/// The sessions that made a call, by node and time. Read from the session states when the first call is looked up.
pub(super) struct Callers {
    states: States,
    sessions: OnceCell<HashMap<(String, String), String>>,
}

impl Callers {
    pub fn new(states: States) -> Callers {
        Callers { states, sessions: OnceCell::new() }
    }

    /// Returns the session that changed a node at the time of a log entry, as far as the session states tell.
    fn find(&self, node: &NodeId, stamp: &str) -> Option<&String> {
        let sessions = self.sessions.get_or_init(|| {
            let states = self.states.all().into_iter();
            states.flat_map(|state| crate::calls::nodes_of_calls(&state)).collect()
        });
        sessions.get(&(node.to_string(), stamp.to_owned()))
    }
}

/// The workspace that rows belong to.
pub(super) struct Place<'a> {
    pub project: &'a Path,
    pub workspace: &'a WorkspaceId,
    /// Whether the stamps of the log are UTC, as the server of a team writes them.
    pub is_utc: bool,
}

impl Place<'_> {
    fn time_of(&self, entry: &LogEntry) -> Option<Millis> {
        match self.is_utc {
            true => clock::parse_utc_stamp(&entry.timestamp),
            false => clock::parse_local_stamp(&entry.timestamp),
        }
    }

    fn row(&self, at: Millis, kind: &str, node: &str, session: &str, data: &ActivityData) -> ActivityRow {
        ActivityRow {
            at,
            kind: kind.to_owned(),
            project: self.project.display().to_string(),
            workspace: self.workspace.to_string(),
            node: node.to_owned(),
            session: session.to_owned(),
            data: to_json(data),
        }
    }

    pub fn workspace_rows(&self, workspace: &Workspace) -> Vec<ActivityRow> {
        let (title, since) = (short(&workspace.name), workspace.created_at);
        self.activity_rows(&workspace.activity, &title, "", since, |_, _, _| String::new())
    }

    pub fn node_rows(&self, node: &Node, callers: &Callers) -> Vec<ActivityRow> {
        let holder = node.started_by.as_deref().filter(|holder| *holder != PERSON).unwrap_or_default();
        let claimed_at = node.status_changed_at.unwrap_or(node.updated_at);
        let session = |at: Millis, stamp: &str, operator: Operator| match callers.find(&node.id, stamp) {
            Some(session) => session.clone(),
            // A stamp has no milliseconds.
            None if operator == Operator::Ai && at + 999 >= claimed_at => holder.to_owned(),
            None => String::new(),
        };
        let (title, id) = (short(&node.title), node.id.to_string());
        let mut rows = self.activity_rows(&node.activity, &title, &id, node.created_at, session);
        // The log of the workspace tells when it was created.
        if !node.id.is_root() {
            let data = ActivityData { title, ..ActivityData::default() };
            rows.insert(0, self.row(node.created_at, "created", &id, "", &data));
        }
        rows
    }

    /// Returns the rows of a log and of an open problem. `session` returns the session of an entry.
    fn activity_rows(
        &self,
        activity: &Activity,
        title: &str,
        node: &str,
        created_at: Millis,
        session: impl Fn(Millis, &str, Operator) -> String,
    ) -> Vec<ActivityRow> {
        let (mut rows, mut at) = (Vec::new(), created_at);
        for entry in &activity.log {
            // An entry written by hand can have any time; it then counts as written with the one before it.
            at = self.time_of(entry).unwrap_or(at);
            let (kind, status, text) = parse_event(&entry.event);
            let by = session(at, &entry.timestamp, entry.operator);
            let data = ActivityData {
                title: title.to_owned(),
                text: short(text),
                operator: Some(entry.operator),
                status,
                ..ActivityData::default()
            };
            rows.push(self.row(at, kind, node, &by, &data));
        }
        if let Some(problem) = &activity.problem {
            let data = ActivityData {
                title: title.to_owned(),
                text: short(&problem.description),
                next_step: problem.next_step.as_deref().map(short),
                ..ActivityData::default()
            };
            let stamp = clock::local_stamp(problem.updated_at);
            let by = session(problem.updated_at, &stamp, Operator::Human);
            rows.push(self.row(problem.updated_at, "problem", node, &by, &data));
        }
        rows
    }

    pub fn node_state(&self, node: &Node) -> NodeStateRow {
        let problem = node.activity.problem.as_ref().map(|problem| Problem {
            description: short(&problem.description),
            next_step: problem.next_step.as_deref().map(short),
            updated_at: problem.updated_at,
        });
        let written = last_written(node);
        let state = NodeState {
            id: node.id.clone(),
            title: short(&node.title),
            status: node.status,
            since: node.status_changed_at.unwrap_or(node.updated_at),
            holder: node.started_by.clone(),
            agent: node.agent.clone(),
            last_log: written.map(|entry| NodeLog {
                at: self.time_of(entry).unwrap_or(node.updated_at),
                operator: entry.operator,
                text: short(&entry.event),
            }),
            problem,
            conclusion: node.conclusion.as_deref().map(short),
        };
        NodeStateRow {
            project: self.project.display().to_string(),
            workspace: self.workspace.to_string(),
            node: node.id.to_string(),
            status: node.status.to_string(),
            since: state.since,
            has_problem: state.problem.is_some(),
            data: serde_json::to_string(&state).unwrap_or_default(),
        }
    }
}

/// Returns the last log entry of a node that an agent or a person wrote.
pub(crate) fn last_written(node: &Node) -> Option<&LogEntry> {
    node.activity.log.iter().rfind(|entry| is_written(&entry.event))
}

/// Returns whether an agent or a person wrote a log entry, not the program.
fn is_written(event: &str) -> bool {
    let (taken_over, earlier) = (ops::TAKEN_OVER, ops::EARLIER_CONCLUSION);
    let prefixes = [taken_over.0, taken_over.1, earlier.0, earlier.1];
    parse_event(event).0 == "log" && !prefixes.iter().any(|prefix| event.starts_with(prefix))
}

/// Returns the kind of a log entry, the new status of a step, and the text without what the kind tells.
fn parse_event(event: &str) -> (&'static str, Option<NodeStatus>, &str) {
    if let Some((status, remark)) = parse_step(event) {
        return ("step", Some(status), remark);
    }
    let kinds = [
        ("rule", ops::RULES_CHANGED),
        ("cleared", ops::PROBLEM_CLEARED),
        ("created", ops::WORKSPACE_CREATED),
    ];
    let told = |(kind, (zh, en)): (&'static str, (&str, &str))| {
        let rest = event.strip_prefix(zh).or_else(|| event.strip_prefix(en));
        rest.map(|rest| (kind, None, rest))
    };
    kinds.into_iter().find_map(told).unwrap_or(("log", None, event))
}

/// Returns the new status and the remark of a log entry that the program wrote for a transition:
/// `ACTION: FROM → TO`, then optionally a subagent in brackets and a remark.
fn parse_step(event: &str) -> Option<(NodeStatus, &str)> {
    let (_, statuses) = event.split_once(": ")?;
    let (from, rest) = statuses.split_once(" → ")?;
    NodeStatus::from_word(from)?;
    let (to, rest) = rest.split_at(rest.find(' ').unwrap_or(rest.len()));
    Some((NodeStatus::from_word(to)?, rest.trim_start().trim_start_matches("— ")))
}

pub(super) fn of_injection(entry: LedgerEntry) -> ActivityRow {
    let data = ActivityData {
        injection: Some(InjectionData {
            event: entry.event,
            platform: entry.platform,
            rules: entry.rules,
            bytes: entry.bytes,
            tokens: entry.tokens,
            micros: entry.micros,
            digest: entry.text,
        }),
        ..ActivityData::default()
    };
    ActivityRow {
        at: entry.at,
        kind: String::from("injection"),
        project: String::new(),
        workspace: entry.workspace.unwrap_or_default(),
        node: entry.node.unwrap_or_default(),
        session: entry.session,
        data: to_json(&data),
    }
}

pub(super) fn of_binding(session: &str, binding: &Binding) -> ActivityRow {
    ActivityRow {
        at: binding.bound_at,
        kind: String::from("session"),
        project: binding.project.display().to_string(),
        workspace: binding.workspace_id.clone(),
        node: binding.focused_node_id.clone().unwrap_or_default(),
        session: session.to_owned(),
        data: to_json(&ActivityData::default()),
    }
}

/// Returns the row of a fact or a summary. One without a time is not in the order of time.
pub(super) fn of_memory(project: &Path, row: &MemoryRow) -> Option<ActivityRow> {
    let memory = MemoryData { id: row.id.clone(), letter: row.letter.as_str().to_owned() };
    let data = ActivityData { text: short(&row.content), memory: Some(memory), ..ActivityData::default() };
    Some(ActivityRow {
        at: row.at?,
        kind: String::from("fact"),
        project: project.display().to_string(),
        session: row.session.clone(),
        data: to_json(&data),
        ..ActivityRow::default()
    })
}

fn short(long: &str) -> String {
    text::fit(&text::one_line(long), TEXT_COLUMNS)
}

fn to_json(data: &ActivityData) -> String {
    serde_json::to_string(data).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_event_finds_the_kind_in_both_languages() {
        for (event, kind, text) in [
            ("rules changed: added “x”", "rule", "added “x”"),
            ("规则变更：移除“x”", "rule", "移除“x”"),
            ("problem cleared: skew", "cleared", "skew"),
            ("已清除问题：时钟偏差", "cleared", "时钟偏差"),
            ("workspace created", "created", ""),
            ("创建工作区", "created", ""),
            ("start: pending → implementing", "step", ""),
            ("the problem cleared: it was the clock", "log", "the problem cleared: it was the clock"),
        ] {
            let (found, _, rest) = parse_event(event);
            assert_eq!((found, rest), (kind, text), "{event}");
        }
    }

    #[test]
    fn parse_step_accepts_transitions_only() {
        use NodeStatus::{Completed, Implementing};
        for (event, expected) in [
            ("start: pending → implementing", Some((Implementing, ""))),
            ("开始: pending → implementing (Explore)", Some((Implementing, "(Explore)"))),
            ("submit: implementing → completed — all green", Some((Completed, "all green"))),
            ("moved it: left → right", None),
            ("pending → implementing", None),
            ("a line", None),
        ] {
            assert_eq!(parse_step(event), expected, "{event}");
        }
    }
}
