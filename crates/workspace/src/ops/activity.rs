//! Operations on the log and the problem of a node or of the workspace.

use tanmi_base::text;

use super::*;
use crate::limits;

/// The owner of a log and a problem.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Target {
    Workspace,
    Node(NodeId),
}

impl Target {
    /// Parses `workspace`, `root` or `node-…`.
    pub fn parse(raw: &str) -> Result<Target> {
        if raw == "workspace" { Ok(Target::Workspace) } else { Ok(Target::Node(NodeId::parse(raw)?)) }
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Target::Workspace => f.pad("workspace"),
            Target::Node(id) => id.fmt(f),
        }
    }
}

impl TryFrom<String> for Target {
    type Error = Error;

    fn try_from(raw: String) -> Result<Target> {
        Target::parse(&raw)
    }
}

impl From<Target> for String {
    fn from(target: Target) -> String {
        target.to_string()
    }
}

pub fn read_activity(tx: &dyn Tx, target: &Target) -> Result<Activity> {
    match target {
        Target::Workspace => Ok(tx.workspace()?.activity),
        Target::Node(id) => Ok(existing_node(tx, "nodeId", id)?.activity),
    }
}

fn edit(
    tx: &mut dyn Tx,
    target: &Target,
    op: &OpContext,
    change: impl FnOnce(&mut Activity),
) -> Result<Activity> {
    let mut workspace = writable_workspace(tx)?;
    match target {
        Target::Workspace => {
            change(&mut workspace.activity);
            workspace.updated_at = op.now;
            let activity = workspace.activity.clone();
            tx.put_workspace(workspace)?;
            Ok(activity)
        }
        Target::Node(id) => {
            let mut node = existing_node(tx, "nodeId", id)?;
            change(&mut node.activity);
            node.updated_at = op.now;
            let activity = node.activity.clone();
            tx.put_node(node)?;
            Ok(activity)
        }
    }
}

/// Appends to a log an entry that was written at `at`. Returns the entry and the number of all entries.
pub fn append_log(
    tx: &mut dyn Tx,
    target: &Target,
    event: &str,
    at: Millis,
    op: &OpContext,
) -> Result<(LogEntry, usize)> {
    limits::check_filled_line("log", event)?;
    writable_workspace(tx)?;
    let entry = LogEntry::new(at, op.operator, event);
    let total = tx.append_log(target, entry.clone(), op.now)?;
    Ok((entry, total))
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProblemChange {
    /// The new description. `None` keeps the old one.
    pub description: Option<String>,
    /// The new next step. `None` removes the old one.
    pub next_step: Option<String>,
}

pub fn update_problem(
    tx: &mut dyn Tx,
    target: &Target,
    change: ProblemChange,
    op: &OpContext,
) -> Result<Problem> {
    let is_filled = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.trim().is_empty());
    if !is_filled(&change.description) && !is_filled(&change.next_step) {
        return Err(Error::Empty { field: "description" });
    }
    limits::check_text("description", change.description.as_deref().unwrap_or_default())?;
    limits::check_text("nextStep", change.next_step.as_deref().unwrap_or_default())?;
    let activity = edit(tx, target, op, |activity| {
        let old = activity.problem.take();
        let description = match change.description {
            Some(description) => description,
            None => old.map(|old| old.description).unwrap_or_default(),
        };
        let next_step = change.next_step.filter(|next| !next.is_empty());
        activity.problem = Some(Problem { description, next_step, updated_at: op.now });
    })?;
    activity.problem.ok_or(Error::Empty { field: "description" })
}

/// Removes the problem, keeps it in the log and returns it. Does nothing if there is none.
pub fn clear_problem(tx: &mut dyn Tx, target: &Target, op: &OpContext) -> Result<Option<Problem>> {
    let workspace = writable_workspace(tx)?;
    let Some(problem) = read_activity(tx, target)?.problem else { return Ok(None) };
    let entry = op.auto_log.then(|| {
        let is_described = !problem.description.trim().is_empty();
        let text = if is_described { Some(&problem.description) } else { problem.next_step.as_ref() };
        let text = text.map(|text| text::fit(&text::one_line(text), LOGGED_COLUMNS)).unwrap_or_default();
        let prefix = lang_of(&workspace).pick(PROBLEM_CLEARED.0, PROBLEM_CLEARED.1);
        LogEntry::new(op.now, op.operator, format!("{prefix}{text}"))
    });
    edit(tx, target, op, |activity| {
        activity.problem = None;
        activity.log.extend(entry);
    })?;
    Ok(Some(problem))
}
