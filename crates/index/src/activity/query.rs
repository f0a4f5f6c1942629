//! Reads entries by time, one page at a time, and the states of nodes.

use rusqlite::types::Value;
use rusqlite::{Row, params_from_iter};

use super::{ActivityIndex, ActivityRow, NodeStateRow};
use crate::Result;

/// The position of an entry in the order of time. The next page starts after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ActivityPosition {
    pub at: i64,
    pub source: i64,
    pub n: i64,
}

/// Which entries to list. Empty fields do not restrict the list.
#[derive(Clone, Debug, Default)]
pub struct ActivityFilter {
    pub kinds: Vec<String>,
    pub project: Option<String>,
    pub workspace: Option<String>,
    pub node: Option<String>,
    pub session: Option<String>,
    /// Only entries at this time or later.
    pub since: Option<i64>,
    /// Only entries before this time.
    pub until: Option<i64>,
    /// Only entries that come after this one in the list, so older ones.
    pub before: Option<ActivityPosition>,
}

/// Which nodes of a workspace to list.
#[derive(Clone, Debug, Default)]
pub struct NodeStateFilter<'a> {
    pub project: &'a str,
    pub workspace: &'a str,
    /// Only nodes with these statuses; empty means all.
    pub statuses: &'a [&'a str],
    /// Only nodes whose status changed at this time or later.
    pub since: Option<i64>,
    pub has_problem: bool,
}

/// The conditions of a query with their values.
#[derive(Default)]
struct Conditions {
    texts: Vec<String>,
    values: Vec<Value>,
}

impl Conditions {
    fn add(&mut self, text: &str, values: impl IntoIterator<Item = Value>) {
        self.texts.push(text.to_owned());
        self.values.extend(values);
    }

    fn add_equal(&mut self, column: &str, value: Option<&String>) {
        if let Some(value) = value {
            // The indexes of a session and of a node have no entries without one.
            self.add(&format!("{column} = ? AND {column} <> ''"), [Value::from(value.clone())]);
        }
    }

    fn add_words(&mut self, column: &str, words: impl ExactSizeIterator<Item = String>) {
        if words.len() > 0 {
            let places = vec!["?"; words.len()].join(", ");
            self.add(&format!("{column} IN ({places})"), words.map(Value::from));
        }
    }

    /// Returns the conditions as a clause.
    fn clause(&self) -> String {
        if self.texts.is_empty() { String::new() } else { format!("WHERE {}", self.texts.join(" AND ")) }
    }
}

impl ActivityFilter {
    fn conditions(&self) -> Conditions {
        let mut conditions = Conditions::default();
        conditions.add_words("kind", self.kinds.iter().cloned());
        conditions.add_equal("project", self.project.as_ref());
        conditions.add_equal("workspace", self.workspace.as_ref());
        conditions.add_equal("node", self.node.as_ref());
        conditions.add_equal("session", self.session.as_ref());
        if let Some(since) = self.since {
            conditions.add("at >= ?", [Value::from(since)]);
        }
        if let Some(until) = self.until {
            conditions.add("at < ?", [Value::from(until)]);
        }
        if let Some(ActivityPosition { at, source, n }) = self.before {
            conditions.add("(at, source, n) < (?, ?, ?)", [at, source, n].map(Value::from));
        }
        conditions
    }
}

impl NodeStateFilter<'_> {
    fn conditions(&self) -> Conditions {
        let mut conditions = Conditions::default();
        conditions.add_equal("project", Some(&self.project.to_owned()));
        conditions.add_equal("workspace", Some(&self.workspace.to_owned()));
        conditions.add_words("status", self.statuses.iter().map(ToString::to_string));
        if let Some(since) = self.since {
            conditions.add("since >= ?", [Value::from(since)]);
        }
        if self.has_problem {
            conditions.add("has_problem", []);
        }
        conditions
    }
}

impl ActivityIndex {
    /// Returns entries, the latest first, each with its position.
    pub fn list(
        &self,
        filter: &ActivityFilter,
        limit: usize,
    ) -> Result<Vec<(ActivityPosition, ActivityRow)>> {
        let mut conditions = filter.conditions();
        let clause = conditions.clause();
        let mut query = self.db.prepare_cached(&format!(
            "SELECT at, source, n, kind, project, workspace, node, session, data FROM entries {clause} \
             ORDER BY at DESC, source DESC, n DESC LIMIT ?"
        ))?;
        conditions.values.push(Value::from(i64::try_from(limit).unwrap_or(i64::MAX)));
        let rows = query.query_map(params_from_iter(conditions.values), read_entry)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Counts the entries that pass the filter.
    pub fn count(&self, filter: &ActivityFilter) -> Result<u64> {
        let conditions = filter.conditions();
        let mut query =
            self.db.prepare_cached(&format!("SELECT count(*) FROM entries {}", conditions.clause()))?;
        let count: i64 = query.query_row(params_from_iter(conditions.values), |row| row.get(0))?;
        Ok(count.unsigned_abs())
    }

    /// Returns the states of nodes, the latest status change first, and the number of all that pass the filter.
    pub fn node_states(
        &self,
        filter: &NodeStateFilter<'_>,
        limit: usize,
    ) -> Result<(Vec<NodeStateRow>, u64)> {
        let conditions = filter.conditions();
        let clause = conditions.clause();
        let mut query = self.db.prepare_cached(&format!("SELECT count(*) FROM nodes {clause}"))?;
        let total: i64 = query.query_row(params_from_iter(&conditions.values), |row| row.get(0))?;
        let mut query = self.db.prepare_cached(&format!(
            "SELECT project, workspace, node, status, since, has_problem, data FROM nodes {clause} \
             ORDER BY since DESC, node LIMIT {limit}"
        ))?;
        let rows = query.query_map(params_from_iter(&conditions.values), read_state)?;
        Ok((rows.collect::<rusqlite::Result<_>>()?, total.unsigned_abs()))
    }
}

fn read_entry(row: &Row<'_>) -> rusqlite::Result<(ActivityPosition, ActivityRow)> {
    let position = ActivityPosition { at: row.get(0)?, source: row.get(1)?, n: row.get(2)? };
    let entry = ActivityRow {
        at: position.at,
        kind: row.get(3)?,
        project: row.get(4)?,
        workspace: row.get(5)?,
        node: row.get(6)?,
        session: row.get(7)?,
        data: row.get(8)?,
    };
    Ok((position, entry))
}

fn read_state(row: &Row<'_>) -> rusqlite::Result<NodeStateRow> {
    Ok(NodeStateRow {
        project: row.get(0)?,
        workspace: row.get(1)?,
        node: row.get(2)?,
        status: row.get(3)?,
        since: row.get(4)?,
        has_problem: row.get(5)?,
        data: row.get(6)?,
    })
}
