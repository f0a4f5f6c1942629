//! Random stories: operations on any implementation of [`Workspaces`], for tests that compare
//! implementations. Every result and the final state must be equal.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use tanmi_base::Millis;

use crate::command::{Command, NoLiveSessions, Outcome};
use crate::context::ChildConclusion;
use crate::model::*;
use crate::ops::*;
use crate::state::Action;
use crate::store::{ContextSnapshots, NodeBrief, PlanScope, SnapshotDepth, Workspaces};

/// When stories begin.
pub const NOW: Millis = 1_765_432_100_000;

/// Returns the context of an operation by an agent.
pub fn op(now: Millis) -> OpContext {
    OpContext { now, operator: Operator::Ai, auto_log: true, moves_focus: true }
}

/// Returns a workspace with these rules.
pub fn new_workspace(rules: &[&str]) -> NewWorkspace {
    let rules = rules.iter().map(|rule| String::from(*rule)).collect();
    NewWorkspace { name: "重构认证模块".into(), goal: "换成 JWT".into(), rules, docs: vec![] }
}

/// Returns a node below `parent`.
pub fn new_node(parent: &NodeId, kind: NodeType, title: &str) -> NewNode {
    NewNode {
        parent_id: parent.clone(),
        kind,
        title: title.into(),
        requirement: format!("{title} 的需求"),
        role: None,
        note: String::new(),
        docs: vec![],
        isolated: false,
        rules_check: RulesHashCheck::IfGiven(None),
    }
}

/// One step of a story. Numbers stand for nodes in the order of their creation.
#[derive(Clone, Debug)]
pub enum Operation {
    Create {
        parent: usize,
        planning: bool,
        title: String,
    },
    Transition {
        node: usize,
        action: usize,
        conclusion: Option<String>,
    },
    Move {
        node: usize,
        parent: usize,
    },
    Place {
        node: usize,
        sibling: usize,
        is_before: bool,
    },
    Delete {
        node: usize,
    },
    Restore {
        node: usize,
    },
    Update {
        node: usize,
        title: String,
        requirement: String,
        note: String,
    },
    Log {
        node: usize,
        event: String,
    },
    Problem {
        node: usize,
        description: Option<String>,
        next_step: Option<String>,
    },
    AddReference {
        node: usize,
        target: String,
        description: String,
    },
    Plan {
        parent: usize,
        outline: String,
    },
    Depend {
        node: usize,
        on: usize,
    },
    StartNext,
    SetRules {
        rules: Vec<String>,
    },
    /// File store only; must not change any result.
    DeleteIndex,
    /// File store only; must not change any result.
    Reopen,
    /// File store only: the user adds a section to a node's file.
    AddUserSection {
        node: usize,
    },
}

fn text() -> impl Strategy<Value = String> {
    let difficult = prop::sample::select(vec![
        "",
        "x",
        "任务",
        "## Log\n- a",
        "- a\n- b",
        "```\nopen",
        "~~~tanmi\n",
        " a ",
        "\n",
        "a: b",
        "[expired] x",
        "\r\n",
        "é\u{2028}",
        "null",
        "### Next Step",
        "---\n",
        "!\"q\"",
    ]);
    prop_oneof![3 => difficult.prop_map(String::from), 1 => "[^\0]{0,12}"]
}

/// Returns random operations.
pub fn operation() -> impl Strategy<Value = Operation> {
    let n = 0usize..12;
    prop_oneof![
        6 => (n.clone(), any::<bool>(), text()).prop_map(|(parent, planning, title)| Operation::Create { parent, planning, title }),
        6 => (n.clone(), 0usize..7, prop::option::of(text())).prop_map(|(node, action, conclusion)| Operation::Transition { node, action, conclusion }),
        2 => (n.clone(), n.clone()).prop_map(|(node, parent)| Operation::Move { node, parent }),
        2 => (n.clone(), n.clone(), any::<bool>()).prop_map(|(node, sibling, is_before)| Operation::Place { node, sibling, is_before }),
        2 => n.clone().prop_map(|node| Operation::Delete { node }),
        2 => n.clone().prop_map(|node| Operation::Restore { node }),
        2 => (n.clone(), text(), text(), text()).prop_map(|(node, title, requirement, note)| Operation::Update { node, title, requirement, note }),
        2 => (n.clone(), text()).prop_map(|(node, event)| Operation::Log { node, event }),
        2 => (n.clone(), prop::option::of(text()), prop::option::of(text())).prop_map(|(node, description, next_step)| Operation::Problem { node, description, next_step }),
        1 => (n.clone(), text(), text()).prop_map(|(node, target, description)| Operation::AddReference { node, target, description }),
        1 => prop::collection::vec(text(), 0..3).prop_map(|rules| Operation::SetRules { rules }),
        2 => (n.clone(), outline()).prop_map(|(parent, outline)| Operation::Plan { parent, outline }),
        3 => (n.clone(), n.clone()).prop_map(|(node, on)| Operation::Depend { node, on }),
        3 => Just(Operation::StartNext),
        1 => Just(Operation::DeleteIndex),
        1 => Just(Operation::Reopen),
        1 => n.prop_map(|node| Operation::AddUserSection { node }),
    ]
}

fn outline() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "- a\n- b (after: a)\n",
        "- p\n  - q\n  - r (after: q)\n- s (after: p): text\n",
        "- [x] done\n- open (after: done)\n",
        "- bad (after: missing)\n",
    ])
    .prop_map(String::from)
}

/// Runs operations on one implementation. Ids are random, so nodes are identified by their order of creation.
pub struct Runner {
    pub workspaces: Box<dyn Workspaces>,
    pub workspace: WorkspaceId,
    nodes: Vec<NodeId>,
    pub now: Millis,
    /// The sequence number of the last change.
    seq: u64,
}

impl Runner {
    /// Creates the workspace of the story.
    pub fn new(workspaces: impl Workspaces + 'static) -> Runner {
        let workspace = workspaces.create(new_workspace(&[]), &op(NOW)).unwrap().id;
        let workspaces = Box::new(workspaces);
        Runner { workspaces, workspace, nodes: vec![NodeId::root()], now: NOW, seq: 0 }
    }

    /// Returns the node with this number of creation.
    pub fn pick(&self, n: usize) -> NodeId {
        self.nodes[n % self.nodes.len()].clone()
    }

    /// Runs an operation and returns its outcome or the error code.
    pub fn run(&mut self, operation: &Operation) -> String {
        self.now += 1000;
        let Some(command) = self.command(operation) else { return String::from("ok") };
        match self.workspaces.run(&self.workspace, &command, &op(self.now), &NoLiveSessions) {
            Err(error) => error.code().to_owned(),
            Ok(mut committed) => {
                assert!(committed.seq >= self.seq, "{} after {}", committed.seq, self.seq);
                self.seq = committed.seq;
                if let (Operation::Create { .. }, Outcome::Node { node, .. }) =
                    (operation, &committed.outcome)
                {
                    self.nodes.push(node.id.clone());
                }
                if let Outcome::Planned { nodes } = &committed.outcome {
                    self.nodes.extend(nodes.nodes.iter().map(|node| node.node_id.clone()));
                }
                // Their order is that of the ids, which are random.
                if let Outcome::Deleted { subtree, .. } = &mut committed.outcome {
                    subtree.dependents.sort_by_key(|id| self.nodes.iter().position(|node| node == id));
                }
                self.with_numbers(format!("{committed:?}"))
            }
        }
    }

    fn command(&self, operation: &Operation) -> Option<Command> {
        Some(match operation.clone() {
            Operation::Create { parent, planning, title } => {
                let kind = if planning { NodeType::Planning } else { NodeType::Execution };
                Command::CreateNode { node: new_node(&self.pick(parent), kind, &title) }
            }
            Operation::Transition { node, action, conclusion } => Command::Transition {
                request: TransitionRequest {
                    node_id: self.pick(node),
                    action: Action::ALL[action],
                    conclusion,
                    claimant: Default::default(),
                },
            },
            Operation::Move { node, parent } => {
                Command::MoveNode { node_id: self.pick(node), parent_id: self.pick(parent) }
            }
            Operation::Place { node, sibling, is_before } => {
                let sibling = self.pick(sibling);
                let place = if is_before { NodePlace::Before(sibling) } else { NodePlace::After(sibling) };
                Command::PlaceNode { node_id: self.pick(node), place }
            }
            Operation::Restore { node } => Command::RestoreNode { node_id: self.pick(node) },
            Operation::Delete { node } => {
                Command::DeleteNode { node_id: self.pick(node), claimant: Claimant::default() }
            }
            Operation::Update { node, title, requirement, note } => Command::UpdateNode {
                node_id: self.pick(node),
                change: NodeChange {
                    title: Some(title),
                    requirement: Some(requirement),
                    role: note.is_empty().then_some(None),
                    note: Some(note),
                    ..NodeChange::default()
                },
            },
            Operation::Log { node, event } => {
                Command::AppendLog { target: Target::Node(self.pick(node)), event }
            }
            Operation::Problem { node, description, next_step } => Command::UpdateProblem {
                target: Target::Node(self.pick(node)),
                change: ProblemChange { description, next_step },
            },
            Operation::AddReference { node, target, description } => Command::EditReference {
                node_id: self.pick(node),
                target,
                edit: ReferenceEdit::Add { description },
            },
            Operation::Plan { parent, outline } => Command::PlanNodes {
                plan: NewPlan {
                    parent_id: self.pick(parent),
                    items: crate::outline::parse(&outline).ok()?,
                    rules_check: RulesHashCheck::IfGiven(None),
                },
            },
            Operation::Depend { node, on } => Command::UpdateNode {
                node_id: self.pick(node),
                change: NodeChange {
                    depends_on: ListEdit { add: vec![self.pick(on)], ..ListEdit::default() },
                    ..NodeChange::default()
                },
            },
            Operation::StartNext => Command::StartNext { claimant: Claimant::default() },
            Operation::SetRules { rules } => {
                let rules = ListEdit { set: Some(rules), ..ListEdit::default() };
                Command::UpdateWorkspace { change: WorkspaceChange { rules, ..WorkspaceChange::default() } }
            }
            Operation::DeleteIndex | Operation::Reopen | Operation::AddUserSection { .. } => return None,
        })
    }

    /// Replaces ids by the order of creation, because ids are random.
    fn with_numbers(&self, text: String) -> String {
        let nodes = self.nodes.iter().enumerate();
        let text = nodes.fold(text, |text, (n, id)| text.replace(id.as_str(), &format!("#{n}")));
        text.replace(self.workspace.as_str(), "ws")
    }

    /// Returns what hooks read of the workspace, with ids replaced by numbers.
    pub fn snapshots(&self, source: &dyn ContextSnapshots) -> String {
        let id = &self.workspace;
        let number = |child: &ChildConclusion| self.nodes.iter().position(|id| *id == child.id);
        let mut out = format!("{:?}\n", source.unstarted_tasks(id, PlanScope::Branches));
        for focus in std::iter::once(None).chain(self.nodes.iter().map(Some)) {
            let at = |depth| source.context_snapshot(id, focus.map(NodeId::as_str), depth).unwrap();
            let mut deep = at(SnapshotDepth::Surroundings);
            // Nodes that changed at the same time have no order.
            if let Some(overview) = &mut deep.overview {
                overview.with_problem.clear();
            }
            if let Some(surroundings) = &mut deep.surroundings {
                surroundings.conclusions.sort_by_key(number);
            }
            let relations = source.relations(id, deep.node.as_ref());
            let others = [SnapshotDepth::Focus, SnapshotDepth::Progress].map(at);
            out.push_str(&format!("{deep:?}\n  {others:?}\n  {relations:?}\n"));
        }
        self.with_numbers(out)
    }

    /// Returns everything that can be read of the workspace, with ids replaced by numbers.
    pub fn state(&self) -> String {
        let (all, id, now) = (&self.workspaces, &self.workspace, self.now);
        let page = all.nodes(id, &ListQuery { limit: 10_000, ..ListQuery::default() }, now).unwrap();
        let ids: Vec<NodeId> = page.nodes.iter().map(|row| row.node.id.clone()).collect();
        let listed = all.list(now).unwrap().into_iter().map(|entry| entry.state.unwrap());
        let mut out = format!(
            "{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}",
            all.trash().unwrap(),
            all.summary(id, now).unwrap(),
            (all.headers().unwrap(), all.header(id).unwrap()),
            listed.collect::<Vec<_>>(),
            all.exists(id).unwrap(),
            all.rows(id, &ids, now).unwrap()
        );
        let branches = all.branches(id, now).unwrap();
        let branches: Vec<_> = ids.iter().map(|id| (id, branches.get(id))).collect();
        out.push_str(&format!("\n{branches:?}"));
        let next = all.next(id, 5, &Claimant::default(), &NoLiveSessions, now).unwrap();
        let exported = all.outline(id, &NodeId::root(), now).unwrap();
        out.push_str(&format!("\n{next:?}\n{exported}"));
        for row in &page.nodes {
            let node = &row.node.id;
            let mut detail = all.node_detail(id, node, now).unwrap();
            let number = |brief: &NodeBrief| self.nodes.iter().position(|id| *id == brief.id);
            detail.dependents.sort_by_key(number);
            let context = all.context(id, node, &Default::default(), now).unwrap();
            out.push_str(&format!("\n{row:?}\n  {detail:?}\n  {context:?}"));
        }
        // The other reads return parts of these, so one node is enough.
        if let Some(node) = ids.last() {
            out.push_str(&format!(
                "\n{:?}\n{:?}\n{:?}",
                all.node(id, node, now).unwrap(),
                all.brief(id, node, now).unwrap(),
                all.activity(id, &Target::Node(node.clone()), now).unwrap(),
            ));
        }
        self.with_numbers(out)
    }
}
