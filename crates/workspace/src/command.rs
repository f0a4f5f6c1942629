//! Changes of a workspace as data: a [`Command`] goes in, an [`Outcome`] comes out.
//!
//! Interfaces build commands, stores run them in a transaction, and [`apply`] is the only place that knows which
//! operation belongs to which command. Commands and outcomes can be serialised, so another process can run them.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::model::*;
use crate::ops::{
    self, Claimant, DeletedSubtree, NewNode, NewPlan, NextNodes, NodeChange, NodePlace, OpContext,
    PlannedNodes, ProblemChange, ReferenceEdit, StartedNode, StatusChange, Target, Transition,
    TransitionRequest, WorkspaceChange,
};
use crate::outline::OutlineTarget;
use crate::store::Tx;

/// A change of one workspace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Command {
    UpdateWorkspace { change: WorkspaceChange },
    ArchiveWorkspace,
    RestoreWorkspace,
    FocusNode { node_id: Option<NodeId> },
    CreateNode { node: NewNode },
    PlanNodes { plan: NewPlan },
    StartNext { claimant: Claimant },
    UpdateNode { node_id: NodeId, change: NodeChange },
    MoveNode { node_id: NodeId, parent_id: NodeId },
    PlaceNode { node_id: NodeId, place: NodePlace },
    RestoreNode { node_id: NodeId },
    DeleteNode { node_id: NodeId, claimant: Claimant },
    Transition { request: TransitionRequest },
    EditReference { node_id: NodeId, target: String, edit: ReferenceEdit },
    AppendLog { target: Target, event: String },
    UpdateProblem { target: Target, change: ProblemChange },
    ClearProblem { target: Target },
}

impl Command {
    /// The names of the commands in JSON.
    pub const WORDS: &[&str] = &[
        "update_workspace",
        "archive_workspace",
        "restore_workspace",
        "focus_node",
        "create_node",
        "plan_nodes",
        "start_next",
        "update_node",
        "move_node",
        "place_node",
        "restore_node",
        "delete_node",
        "transition",
        "edit_reference",
        "append_log",
        "update_problem",
        "clear_problem",
    ];

    /// Returns who claims a node with the command, or acts on a claim.
    pub fn claimant(&self) -> Option<&Claimant> {
        match self {
            Command::Transition { request } => Some(&request.claimant),
            Command::DeleteNode { claimant, .. } | Command::StartNext { claimant } => Some(claimant),
            _ => None,
        }
    }

    /// Returns the nodes that the command names.
    pub fn nodes(&self) -> Vec<NodeId> {
        let of_target = |target: &Target| match target {
            Target::Workspace => Vec::new(),
            Target::Node(id) => vec![id.clone()],
        };
        match self {
            Command::UpdateWorkspace { .. }
            | Command::ArchiveWorkspace
            | Command::RestoreWorkspace
            | Command::StartNext { .. } => Vec::new(),
            Command::FocusNode { node_id } => node_id.iter().cloned().collect(),
            Command::CreateNode { node } => vec![node.parent_id.clone()],
            Command::PlanNodes { plan } => {
                let targets = plan.items.iter().flat_map(|item| &item.depends_on);
                let outside = targets.filter_map(|target| match target {
                    OutlineTarget::Item(_) => None,
                    OutlineTarget::Node(id) => Some(id.clone()),
                });
                [plan.parent_id.clone()].into_iter().chain(outside).collect()
            }
            Command::MoveNode { node_id, parent_id } => vec![node_id.clone(), parent_id.clone()],
            Command::PlaceNode { node_id, place: NodePlace::Before(sibling) | NodePlace::After(sibling) } => {
                vec![node_id.clone(), sibling.clone()]
            }
            Command::UpdateNode { node_id, .. }
            | Command::RestoreNode { node_id }
            | Command::DeleteNode { node_id, .. }
            | Command::EditReference { node_id, .. } => vec![node_id.clone()],
            Command::Transition { request } => vec![request.node_id.clone()],
            Command::AppendLog { target, .. }
            | Command::UpdateProblem { target, .. }
            | Command::ClearProblem { target } => of_target(target),
        }
    }
}

/// The result of a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Outcome {
    Workspace {
        workspace: Workspace,
        progress: Progress,
    },
    Node {
        node: Node,
        status_changes: Vec<StatusChange>,
    },
    Planned {
        nodes: PlannedNodes,
    },
    Next {
        next: NextNodes,
        /// The first of them, which the command started.
        started: Option<Box<StartedNode>>,
        focus_moved: bool,
    },
    Deleted {
        subtree: DeletedSubtree,
        /// All deleted nodes, including descendants. The JSON of `subtree` has only their number.
        ids: Vec<NodeId>,
    },
    Transition {
        transition: Transition,
        /// Whether the focus of the workspace moved. The JSON of `transition` does not say it.
        focus_moved: bool,
    },
    Log {
        entry: LogEntry,
        /// The number of all entries, including the new one.
        total: usize,
        /// Whether the entry waits on this machine for the server of a team.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_queued: bool,
    },
    Problem {
        problem: Option<Problem>,
        /// Whether the command cleared a problem.
        is_cleared: bool,
    },
}

/// The outcome of a command that is durable, and its place in the order of changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Committed {
    pub outcome: Outcome,
    /// The sequence number of the change in its workspace.
    pub seq: u64,
}

/// Tells whether a session that holds a node is live. The answer is needed inside the transaction that may take the
/// node over.
pub trait LiveSessions {
    fn is_live(&self, session: &str) -> bool;

    /// Returns the name of the client of a session, if it is known.
    fn client(&self, _: &str) -> Option<&'static str> {
        None
    }

    /// Returns the session that gives the command, if it is known.
    fn caller(&self) -> Option<&str> {
        None
    }
}

/// For callers without sessions: every holder counts as dead.
pub struct NoLiveSessions;

impl LiveSessions for NoLiveSessions {
    fn is_live(&self, _: &str) -> bool {
        false
    }
}

/// Applies a command inside a transaction. Does not commit.
pub fn apply(
    tx: &mut dyn Tx,
    command: &Command,
    op: &OpContext,
    sessions: &dyn LiveSessions,
) -> Result<Outcome> {
    tx.prefetch(&command.nodes())?;
    let node = |node: Node| Outcome::Node { node, status_changes: Vec::new() };
    Ok(match command.clone() {
        Command::UpdateWorkspace { change } => {
            let workspace = ops::update_workspace(tx, change, op)?;
            workspace_outcome(tx, workspace)?
        }
        Command::ArchiveWorkspace => {
            let workspace = ops::archive(tx, op)?;
            workspace_outcome(tx, workspace)?
        }
        Command::RestoreWorkspace => {
            let workspace = ops::restore(tx, op)?;
            workspace_outcome(tx, workspace)?
        }
        Command::FocusNode { node_id } => {
            let workspace = ops::focus(tx, node_id, op)?;
            workspace_outcome(tx, workspace)?
        }
        Command::CreateNode { node } => {
            let (node, status_changes) = ops::create_node(tx, node, op)?;
            Outcome::Node { node, status_changes }
        }
        Command::PlanNodes { plan } => Outcome::Planned { nodes: ops::plan_nodes(tx, plan, op)? },
        Command::StartNext { claimant } => {
            let (next, mut started) = ops::start_next(tx, claimant, op, sessions)?;
            let focus_moved =
                started.as_mut().is_some_and(|started| std::mem::take(&mut started.transition.focus_moved));
            Outcome::Next { next, started: started.map(Box::new), focus_moved }
        }
        Command::UpdateNode { node_id, change } => node(ops::update_node(tx, &node_id, change, op)?),
        Command::MoveNode { node_id, parent_id } => {
            let (node, status_changes) = ops::move_node(tx, &node_id, &parent_id, op)?;
            Outcome::Node { node, status_changes }
        }
        Command::PlaceNode { node_id, place } => {
            let (node, status_changes) = ops::place_node(tx, &node_id, &place, op)?;
            Outcome::Node { node, status_changes }
        }
        Command::RestoreNode { node_id } => {
            let (node, status_changes) = ops::restore_node(tx, &node_id, op)?;
            Outcome::Node { node, status_changes }
        }
        Command::DeleteNode { node_id, claimant } => {
            let mut subtree = ops::delete_node(tx, &node_id, &claimant, op, sessions)?;
            let ids = std::mem::take(&mut subtree.ids);
            Outcome::Deleted { subtree, ids }
        }
        Command::Transition { request } => {
            let mut transition = ops::transition(tx, request, op, sessions)?;
            let focus_moved = std::mem::take(&mut transition.focus_moved);
            Outcome::Transition { transition, focus_moved }
        }
        Command::EditReference { node_id, target, edit } => {
            node(ops::edit_reference(tx, &node_id, &target, edit, op)?)
        }
        Command::AppendLog { target, event } => {
            let (entry, total) = ops::append_log(tx, &target, &event, op.now, op)?;
            Outcome::Log { entry, total, is_queued: false }
        }
        Command::UpdateProblem { target, change } => {
            let problem = Some(ops::update_problem(tx, &target, change, op)?);
            Outcome::Problem { problem, is_cleared: false }
        }
        Command::ClearProblem { target } => {
            let is_cleared = ops::clear_problem(tx, &target, op)?.is_some();
            Outcome::Problem { problem: None, is_cleared }
        }
    })
}

fn workspace_outcome(tx: &dyn Tx, workspace: Workspace) -> Result<Outcome> {
    Ok(Outcome::Workspace { workspace, progress: tx.total()?.progress() })
}

/// Each command has one kind of outcome. A store that returns another kind is defective.
impl Outcome {
    pub fn into_workspace(self) -> Result<(Workspace, Progress)> {
        match self {
            Outcome::Workspace { workspace, progress } => Ok((workspace, progress)),
            _ => Err(Error::UnexpectedOutcome),
        }
    }

    pub fn into_node(self) -> Result<(Node, Vec<StatusChange>)> {
        match self {
            Outcome::Node { node, status_changes } => Ok((node, status_changes)),
            _ => Err(Error::UnexpectedOutcome),
        }
    }

    pub fn into_planned(self) -> Result<PlannedNodes> {
        match self {
            Outcome::Planned { nodes } => Ok(nodes),
            _ => Err(Error::UnexpectedOutcome),
        }
    }

    pub fn into_next(self) -> Result<(NextNodes, Option<StartedNode>)> {
        match self {
            Outcome::Next { next, started, focus_moved } => {
                let with_focus = |mut started: Box<StartedNode>| {
                    started.transition.focus_moved = focus_moved;
                    *started
                };
                Ok((next, started.map(with_focus)))
            }
            _ => Err(Error::UnexpectedOutcome),
        }
    }

    pub fn into_deleted(self) -> Result<DeletedSubtree> {
        match self {
            Outcome::Deleted { subtree, ids } => Ok(DeletedSubtree { ids, ..subtree }),
            _ => Err(Error::UnexpectedOutcome),
        }
    }

    pub fn into_transition(self) -> Result<Transition> {
        match self {
            Outcome::Transition { transition, focus_moved } => Ok(Transition { focus_moved, ..transition }),
            _ => Err(Error::UnexpectedOutcome),
        }
    }

    /// Returns the entry, the number of all entries, and whether the entry waits for the server of a team.
    pub fn into_log(self) -> Result<(LogEntry, usize, bool)> {
        match self {
            Outcome::Log { entry, total, is_queued } => Ok((entry, total, is_queued)),
            _ => Err(Error::UnexpectedOutcome),
        }
    }

    /// Returns the problem, and whether the command cleared one.
    pub fn into_problem(self) -> Result<(Option<Problem>, bool)> {
        match self {
            Outcome::Problem { problem, is_cleared } => Ok((problem, is_cleared)),
            _ => Err(Error::UnexpectedOutcome),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_all_commands() {
        let error = serde_json::from_str::<Command>(r#"{"command": "?"}"#).unwrap_err().to_string();
        let words: Vec<String> = Command::WORDS.iter().map(|word| format!("`{word}`")).collect();
        assert!(error.contains(&format!("expected one of {} at", words.join(", "))), "{error}");
    }
}
