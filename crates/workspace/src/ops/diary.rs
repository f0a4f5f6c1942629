//! Logs and problems, of a node or of the workspace itself.

use super::*;
use crate::limits;

/// Whose log and problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Workspace,
    Node(NodeId),
}

impl Target {
    /// `workspace`, `root` or `node-…`.
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

pub fn read_diary(tx: &dyn Tx, target: &Target) -> Result<Diary> {
    match target {
        Target::Workspace => Ok(tx.workspace()?.diary),
        Target::Node(id) => Ok(existing_node(tx, "nodeId", id)?.diary),
    }
}

fn edit(tx: &mut dyn Tx, target: &Target, act: &Act, change: impl FnOnce(&mut Diary)) -> Result<Diary> {
    let mut workspace = writable(tx)?;
    match target {
        Target::Workspace => {
            change(&mut workspace.diary);
            workspace.updated_at = act.now;
            let diary = workspace.diary.clone();
            tx.put_workspace(workspace)?;
            Ok(diary)
        }
        Target::Node(id) => {
            let mut node = existing_node(tx, "nodeId", id)?;
            change(&mut node.diary);
            node.updated_at = act.now;
            let diary = node.diary.clone();
            tx.put_node(node)?;
            Ok(diary)
        }
    }
}

pub fn append_log(tx: &mut dyn Tx, target: &Target, event: &str, act: &Act) -> Result<LogEntry> {
    limits::filled_line("log", event)?;
    let entry = LogEntry::new(act.now, act.operator, event);
    let line = entry.clone();
    edit(tx, target, act, |diary| {
        diary.log.push(line);
        diary.last_log_at = Some(act.now);
    })?;
    Ok(entry)
}

#[derive(Clone, Debug, Default)]
pub struct ProblemChange {
    /// A new description replaces the whole problem; without one the old stays.
    pub description: Option<String>,
    pub next_step: Option<String>,
}

pub fn update_problem(tx: &mut dyn Tx, target: &Target, change: ProblemChange, act: &Act) -> Result<Problem> {
    let filled = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.trim().is_empty());
    if !filled(&change.description) && !filled(&change.next_step) {
        return Err(Error::Empty { field: "description" });
    }
    limits::text("description", change.description.as_deref().unwrap_or_default())?;
    limits::text("nextStep", change.next_step.as_deref().unwrap_or_default())?;
    let diary = edit(tx, target, act, |diary| {
        let old = diary.problem.take();
        let description = match change.description {
            Some(description) => description,
            None => old.map(|old| old.description).unwrap_or_default(),
        };
        let next_step = change.next_step.filter(|next| !next.is_empty());
        diary.problem = Some(Problem { description, next_step, updated_at: act.now });
    })?;
    diary.problem.ok_or(Error::Empty { field: "description" })
}

/// Removes the problem; the second time nothing happens. Says what was there.
pub fn clear_problem(tx: &mut dyn Tx, target: &Target, act: &Act) -> Result<Option<Problem>> {
    let was = read_diary(tx, target)?.problem;
    if was.is_some() {
        edit(tx, target, act, |diary| diary.problem = None)?;
    } else {
        writable(tx)?;
    }
    Ok(was)
}
