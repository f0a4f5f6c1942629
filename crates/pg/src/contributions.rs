//! Who did what: the changes of people that count as their work. They are recorded with the change itself.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tanmi_base::{Millis, text};
use tanmi_memory::record::{self, Line};
use tanmi_protocol::MEMORY;
use tanmi_workspace::command::{Command, Outcome};
use tanmi_workspace::error::Result;
use tanmi_workspace::model::NodeStatus;
use tanmi_workspace::ops::{Target, Transition};
use tanmi_workspace::state::Action;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::rows;
use crate::store::PgStore;

/// The maximum width of a title. The reader follows the link for the whole text.
const TITLE_COLUMNS: usize = 280;

const CLOCK: &str =
    "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now WHERE $1::text IS NOT NULL";
const COUNT: &str = "SELECT p.name AS person, c.what, count(*) AS n FROM change c JOIN person p ON p.id = c.person
WHERE c.project = $1 AND c.what IS NOT NULL AND c.at >= $2 AND c.at <= $3 GROUP BY p.name, c.what ORDER BY p.name";
const LIST: &str = "SELECT c.stream, c.seq, c.at, p.name AS person, c.machine, c.what, c.subject,
    coalesce(n.title, r.title) AS title, m.line, c.subject IS NULL OR n.id IS NOT NULL OR m.id IS NOT NULL AS exists
FROM change c JOIN person p ON p.id = c.person
LEFT JOIN node n ON n.project = c.project AND n.ws = c.stream AND n.id = c.subject
LEFT JOIN node r ON c.subject IS NULL AND r.project = c.project AND r.ws = c.stream AND r.id = 'root'
LEFT JOIN memory m ON c.stream = 'memory' AND m.project = c.project AND m.id = c.subject
WHERE c.project = $1 AND c.what IS NOT NULL AND c.at >= $2 AND c.at <= $3
    AND ($4::text IS NULL OR p.name = $4) AND ($5::text IS NULL OR c.what = $5)
    AND ($6::text IS NULL OR (c.at, c.stream, c.seq) < (
        SELECT b.at, b.stream, b.seq FROM change b WHERE b.project = $1 AND b.stream = $6 AND b.seq = $7::bigint))
ORDER BY c.at DESC, c.stream DESC, c.seq DESC LIMIT $8";

/// What a person did with one change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Deed {
    pub what: &'static str,
    /// The node or the fact; `None` if it is the workspace itself.
    pub subject: Option<String>,
}

impl Deed {
    fn of_target(what: &'static str, target: &Target) -> Deed {
        let subject = match target {
            Target::Workspace => None,
            Target::Node(id) => Some(id.to_string()),
        };
        Deed { what, subject }
    }

    fn of_transition(transition: &Transition) -> Option<Deed> {
        let what = match (transition.action, transition.to) {
            (Action::Start | Action::Retry | Action::Reopen, _) => "started",
            (_, NodeStatus::Completed) => "completed",
            (_, NodeStatus::Failed) => "failed",
            _ => return None,
        };
        Some(Deed { what, subject: Some(transition.node_id.to_string()) })
    }

    /// Returns what a command did, if that counts.
    pub fn of_command(command: &Command, outcome: &Outcome) -> Option<Deed> {
        match (command, outcome) {
            (_, Outcome::Transition { transition, .. }) => Deed::of_transition(transition),
            (_, Outcome::Next { started: Some(started), .. }) => Deed::of_transition(&started.transition),
            (Command::AppendLog { target, .. }, _) => Some(Deed::of_target("log", target)),
            (Command::UpdateProblem { target, .. }, _) => Some(Deed::of_target("problem", target)),
            _ => None,
        }
    }
}

/// What a person did, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contribution {
    /// Identifies the change: `STREAM:NUMBER`.
    pub id: String,
    pub at: Millis,
    pub person: String,
    pub machine: Option<String>,
    /// One of [`Contribution::KINDS`].
    pub kind: String,
    /// `None` for a fact.
    pub workspace_id: Option<String>,
    /// `None` for a fact and for the workspace itself.
    pub node_id: Option<String>,
    pub fact_id: Option<String>,
    /// The title of the node or the workspace, or the text of the fact. `None` if it was deleted.
    pub title: Option<String>,
}

impl Contribution {
    pub const KINDS: &[&str] = &["started", "completed", "failed", "log", "problem", "fact"];

    pub fn to_json(&self) -> Value {
        json!({
            "id": self.id, "at": self.at, "person": self.person, "machine": self.machine, "kind": self.kind,
            "workspaceId": self.workspace_id, "nodeId": self.node_id, "factId": self.fact_id, "title": self.title,
        })
    }
}

/// A moment, by the clock of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    At(Millis),
    /// This long ago.
    Ago(Millis),
}

impl Moment {
    fn resolve(self, now: Millis) -> Millis {
        match self {
            Moment::At(at) => at,
            Moment::Ago(time) => now - time,
        }
    }
}

/// Which contributions to read, the latest first.
#[derive(Clone, Debug)]
pub struct ContributionFilter {
    pub since: Moment,
    pub until: Moment,
    /// The name of a person.
    pub person: Option<String>,
    pub kind: Option<String>,
    /// The id of a contribution: only those before it.
    pub before: Option<String>,
    pub limit: usize,
}

/// The contributions of a time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contributions {
    pub since: Millis,
    pub until: Millis,
    /// The number of contributions of each kind, by person. Only `since` and `until` limit them.
    pub counts: BTreeMap<String, BTreeMap<String, i64>>,
    pub entries: Vec<Contribution>,
}

impl PgStore {
    /// Returns who did what in a time.
    pub fn contributions(&self, filter: &ContributionFilter) -> Result<Contributions> {
        let ContributionFilter { person, kind, before, limit, .. } = filter;
        let before = before.as_deref().and_then(|id| id.rsplit_once(':'));
        let (stream, seq) =
            before.map_or((None, None), |(stream, seq)| (Some(stream), seq.parse::<i64>().ok()));
        self.transact("BEGIN", |connection| {
            let project: &(dyn ToSql + Sync) = &self.project;
            let now = connection.query(CLOCK, &[project])?.first().map_or(0, |row| row.get("now"));
            let (since, until) = (filter.since.resolve(now), filter.until.resolve(now));
            let mut counts: BTreeMap<String, BTreeMap<String, i64>> = BTreeMap::new();
            for row in connection.query(COUNT, &[project, &since, &until])? {
                counts.entry(row.get("person")).or_default().insert(row.get("what"), row.get("n"));
            }
            let limit = rows::limit(*limit);
            let params: [&(dyn ToSql + Sync); 8] =
                [project, &since, &until, person, kind, &stream, &seq, &limit];
            let entries = connection.query(LIST, &params)?.iter().map(contribution).collect();
            Ok(Contributions { since, until, counts, entries })
        })
    }
}

fn contribution(row: &Row) -> Contribution {
    let (stream, seq): (String, i64) = (row.get("stream"), row.get("seq"));
    let subject: Option<String> = row.get("subject");
    let (is_fact, exists) = (stream == MEMORY, row.get::<_, bool>("exists"));
    let line = row.get::<_, Option<String>>("line");
    let fact = line.and_then(|line| match record::read_line(line.as_bytes(), MEMORY) {
        Line::Record { row, .. } => Some(row.content),
        _ => None,
    });
    let title = fact.or_else(|| row.get("title")).filter(|_| exists);
    Contribution {
        id: format!("{stream}:{seq}"),
        at: row.get("at"),
        person: row.get("person"),
        machine: row.get::<_, Option<String>>("machine").filter(|machine| !machine.is_empty()),
        kind: row.get("what"),
        workspace_id: (!is_fact).then_some(stream),
        node_id: subject.clone().filter(|_| !is_fact),
        fact_id: subject.filter(|_| is_fact),
        title: title.map(|title: String| text::fit(&text::one_line(&title), TITLE_COLUMNS)),
    }
}
