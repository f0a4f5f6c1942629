//! Random commands.

use serde_json::{Value, json};
use tanmi_workspace::command::Command;
use tanmi_workspace::model::*;
use tanmi_workspace::ops::{
    Claimant, NewNode, NewPlan, NewWorkspace, NodeChange, NodePlace, ProblemChange, ReferenceEdit,
    RulesHashCheck, Target, TransitionRequest, WorkspaceChange,
};
use tanmi_workspace::outline::{OutlineItem, OutlineTarget};
use tanmi_workspace::state::Action;

use super::client::Area;
use crate::rng::Rng;

/// A workspace with more nodes than this gets fewer new ones.
const MANY_NODES: usize = 60;

/// A node that a session started.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    pub workspace: String,
    pub node: String,
    pub session: String,
    pub fence: i64,
}

/// A command, the session that sends it, and the claim that it is about.
pub struct Chosen {
    pub command: Command,
    pub session: String,
    pub claim: Option<Claim>,
}

pub fn create_workspace(name: &str) -> Value {
    let (name, goal) = (name.to_owned(), String::from("survive"));
    let workspace = NewWorkspace { name, goal, rules: Vec::new(), docs: Vec::new() };
    json!({"command": "create_workspace", "workspace": workspace})
}

pub fn delete_workspace(id: &str) -> Value {
    json!({"command": "delete_workspace", "workspaceId": id})
}

pub fn undelete_workspace(id: &str) -> Value {
    json!({"command": "undelete_workspace", "workspaceId": id})
}

/// Returns the command that creates a node.
pub fn create_node(parent: &NodeId, kind: NodeType, title: &str) -> Command {
    let node = NewNode {
        parent_id: parent.clone(),
        kind,
        title: title.to_owned(),
        requirement: format!("carry out {title}"),
        role: None,
        note: String::new(),
        docs: Vec::new(),
        isolated: false,
        rules_check: RulesHashCheck::IfGiven(None),
    };
    Command::CreateNode { node }
}

/// Returns the command that moves a node to another status.
pub fn transition(node: &NodeId, action: Action, force: bool) -> Command {
    let claimant = Claimant { force, ..Claimant::default() };
    let conclusion = matches!(action, Action::Complete | Action::Fail).then(|| String::from("a result"));
    Command::Transition { request: TransitionRequest { node_id: node.clone(), action, conclusion, claimant } }
}

/// Returns the command that creates a plan: one node with the others below it, each after the one before if
/// they depend.
pub fn plan(parent: NodeId, count: usize, has_dependencies: bool) -> Command {
    let item = |n: usize| OutlineItem {
        line: n + 1,
        parent: (n > 0).then_some(0),
        title: format!("planned {n}"),
        requirement: String::from("as planned"),
        is_completed: false,
        depends_on: if has_dependencies && n > 1 { vec![OutlineTarget::Item(n - 1)] } else { Vec::new() },
    };
    let items = (0..count).map(item).collect();
    Command::PlanNodes {
        plan: NewPlan { parent_id: parent, items, rules_check: RulesHashCheck::IfGiven(None) },
    }
}

/// Returns a random command for a session of a workspace.
pub fn choose(rng: &mut Rng, area: &Area, session: &str, claims: &[Claim], sleeping: &[Claim]) -> Chosen {
    // The end of a claim, also by a session whose lease ended: its fence shows whether it still has the node.
    let claim = match rng.below(8) {
        0 | 1 => rng.pick(claims),
        2 => rng.pick(sleeping),
        _ => None,
    };
    if let Some(claim) = claim {
        let action =
            *rng.pick(&[Action::Submit, Action::Complete, Action::Fail]).unwrap_or(&Action::Complete);
        let node = NodeId::parse(&claim.node).expect("an id of the server");
        let command = transition(&node, action, false);
        return Chosen { command, session: claim.session.clone(), claim: Some(claim.clone()) };
    }
    Chosen { command: choose_command(rng, area), session: session.to_owned(), claim: None }
}

fn choose_command(rng: &mut Rng, area: &Area) -> Command {
    let any = |rng: &mut Rng| match rng.below(6) {
        0 => NodeId::root(),
        _ => {
            rng.pick(&area.nodes).map_or(NodeId::root(), |id| NodeId::parse(id).expect("an id of the server"))
        }
    };
    let (node, other) = (any(rng), any(rng));
    let text = format!("text {}", rng.below(1000));
    let has_many = area.nodes.len() > MANY_NODES;
    match rng.below(40) {
        0..7 if !has_many => {
            let kind = if rng.below(3) == 0 { NodeType::Planning } else { NodeType::Execution };
            create_node(&node, kind, &text)
        }
        7 if !has_many => plan(node, rng.below(6) as usize + 1, true),
        8..14 => transition(&node, Action::Start, rng.below(20) == 0),
        14 => transition(&node, *rng.pick(Action::ALL).unwrap_or(&Action::Start), false),
        15..19 => Command::StartNext { claimant: Claimant::default() },
        19..24 => Command::AppendLog { target: Target::Node(node), event: text },
        24 => Command::AppendLog { target: Target::Workspace, event: text },
        25 | 26 => {
            let change = ProblemChange { description: Some(text), next_step: None };
            Command::UpdateProblem { target: Target::Node(node), change }
        }
        27 => Command::ClearProblem { target: Target::Node(node) },
        28 | 29 => {
            let change = NodeChange { title: Some(text), ..NodeChange::default() };
            Command::UpdateNode { node_id: node, change }
        }
        30 => {
            let mut change = NodeChange::default();
            change.depends_on.add.push(other);
            Command::UpdateNode { node_id: node, change }
        }
        31 => {
            let change = WorkspaceChange { goal: Some(text), ..WorkspaceChange::default() };
            Command::UpdateWorkspace { change }
        }
        32 => Command::MoveNode { node_id: node, parent_id: other },
        33 => Command::PlaceNode { node_id: node, place: NodePlace::Before(other) },
        34 => Command::EditReference {
            node_id: node,
            target: other.to_string(),
            edit: ReferenceEdit::Add { description: text },
        },
        35 => Command::FocusNode { node_id: Some(node) },
        36 | 37 => match rng.pick(&area.trashed) {
            Some(id) => Command::RestoreNode { node_id: NodeId::parse(id).expect("an id of the server") },
            None => create_node(&node, NodeType::Planning, &text),
        },
        _ => Command::DeleteNode { node_id: node, claimant: Claimant::default() },
    }
}
