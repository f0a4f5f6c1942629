//! Random stories, told to both stores: every answer and every state must be the same, whatever happens to indexes
//! and processes in between, and what a person wrote into a file by hand must still be there.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Deed {
    Create {
        parent: usize,
        planning: bool,
        title: String,
    },
    Go {
        node: usize,
        action: usize,
        conclusion: Option<String>,
    },
    Move {
        node: usize,
        parent: usize,
    },
    Delete {
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
    Refer {
        node: usize,
        target: String,
        description: String,
    },
    Rules {
        rules: Vec<String>,
    },
    /// Files only: none of these may be noticed.
    LoseIndex,
    Restart,
    /// Files only: a section of a person's own.
    WriteByHand {
        node: usize,
    },
}

fn text() -> impl Strategy<Value = String> {
    let odd = prop::sample::select(vec![
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
    prop_oneof![3 => odd.prop_map(String::from), 1 => "[^\0]{0,12}"]
}

fn deed() -> impl Strategy<Value = Deed> {
    let n = 0usize..12;
    prop_oneof![
        6 => (n.clone(), any::<bool>(), text()).prop_map(|(parent, planning, title)| Deed::Create { parent, planning, title }),
        6 => (n.clone(), 0usize..7, prop::option::of(text())).prop_map(|(node, action, conclusion)| Deed::Go { node, action, conclusion }),
        2 => (n.clone(), n.clone()).prop_map(|(node, parent)| Deed::Move { node, parent }),
        1 => n.clone().prop_map(|node| Deed::Delete { node }),
        2 => (n.clone(), text(), text(), text()).prop_map(|(node, title, requirement, note)| Deed::Update { node, title, requirement, note }),
        2 => (n.clone(), text()).prop_map(|(node, event)| Deed::Log { node, event }),
        2 => (n.clone(), prop::option::of(text()), prop::option::of(text())).prop_map(|(node, description, next_step)| Deed::Problem { node, description, next_step }),
        1 => (n.clone(), text(), text()).prop_map(|(node, target, description)| Deed::Refer { node, target, description }),
        1 => prop::collection::vec(text(), 0..3).prop_map(|rules| Deed::Rules { rules }),
        1 => Just(Deed::LoseIndex),
        1 => Just(Deed::Restart),
        1 => n.prop_map(|node| Deed::WriteByHand { node }),
    ]
}

/// One teller of the story. Ids are random, so nodes are named by the order of their creation.
struct Teller<S> {
    store: S,
    workspace: WorkspaceId,
    nodes: Vec<NodeId>,
    now: Millis,
}

impl<S: Store> Teller<S> {
    fn new(store: S) -> Teller<S> {
        let workspace = Bench::new(&store, &[]).id;
        Teller { store, workspace, nodes: vec![NodeId::root()], now: NOW }
    }

    fn pick(&self, n: usize) -> NodeId {
        self.nodes[n % self.nodes.len()].clone()
    }

    fn tell(&mut self, deed: &Deed) -> String {
        self.now += 1000;
        let op = op(self.now);
        let outcome = match deed.clone() {
            Deed::Create { parent, planning, title } => {
                let kind = if planning { NodeType::Planning } else { NodeType::Execution };
                let new = new_node(&self.pick(parent), kind, &title);
                self.change(|tx| Ok(create_node(tx, new.clone(), &op)?.0.id)).map(|id| self.nodes.push(id))
            }
            Deed::Go { node, action, conclusion } => {
                let action = Action::ALL[action];
                let request = TransitionRequest {
                    node_id: self.pick(node),
                    action,
                    conclusion,
                    claimant: Default::default(),
                };
                self.change(|tx| transition(tx, request.clone(), &op)).map(|_| ())
            }
            Deed::Move { node, parent } => {
                let (node, parent) = (self.pick(node), self.pick(parent));
                self.change(|tx| move_node(tx, &node, &parent, &op)).map(|_| ())
            }
            Deed::Delete { node } => {
                let node = self.pick(node);
                self.change(|tx| delete_node(tx, &node, &op)).map(|_| ())
            }
            Deed::Update { node, title, requirement, note } => {
                let node = self.pick(node);
                let change = NodeChange {
                    title: Some(title),
                    requirement: Some(requirement),
                    note: Some(note),
                    ..NodeChange::default()
                };
                self.change(|tx| update_node(tx, &node, change.clone(), &op)).map(|_| ())
            }
            Deed::Log { node, event } => {
                let target = Target::Node(self.pick(node));
                self.change(|tx| append_log(tx, &target, &event, &op)).map(|_| ())
            }
            Deed::Problem { node, description, next_step } => {
                let target = Target::Node(self.pick(node));
                let change = ProblemChange { description, next_step };
                self.change(|tx| update_problem(tx, &target, change.clone(), &op)).map(|_| ())
            }
            Deed::Refer { node, target, description } => {
                let node = self.pick(node);
                let edit = ReferenceEdit::Add { description };
                self.change(|tx| edit_reference(tx, &node, &target, edit.clone(), &op)).map(|_| ())
            }
            Deed::Rules { rules } => {
                let rules = ListEdit { set: Some(rules), ..ListEdit::default() };
                let change = WorkspaceChange { rules, ..WorkspaceChange::default() };
                self.change(|tx| update_workspace(tx, change.clone(), &op)).map(|_| ())
            }
            Deed::LoseIndex | Deed::Restart | Deed::WriteByHand { .. } => Ok(()),
        };
        outcome.map_or_else(|error| error.code().to_owned(), |()| String::from("ok"))
    }

    fn change<T>(&self, work: impl FnMut(&mut dyn Tx) -> Result<T>) -> Result<T> {
        store::change(&self.store, &self.workspace, self.now, work)
    }

    /// Everything there is to see, with ids replaced by numbers.
    fn state(&self) -> String {
        let names: BTreeMap<&str, String> =
            self.nodes.iter().enumerate().map(|(n, id)| (id.as_str(), format!("#{n}"))).collect();
        let mut out = store::view(&self.store, &self.workspace, self.now, |tx| {
            let mut out = format!("{:?} {:?}", tx.workspace()?, tx.total()?.progress());
            let page = list(tx, &ListQuery { limit: 10_000, ..ListQuery::default() })?;
            for row in page.nodes {
                let node = tx.node(&row.node.id)?;
                out.push_str(&format!("\n{} {} {:?}\n  {:?}", row.depth, row.children, row.node, node));
            }
            Ok(out)
        })
        .unwrap();
        for (id, name) in names {
            out = out.replace(id, &name);
        }
        out.replace(self.workspace.as_str(), "ws")
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, max_shrink_iters: 400, ..ProptestConfig::default() })]

    #[test]
    fn both_stores_tell_the_same_story(deeds in prop::collection::vec(deed(), 1..40)) {
        let dir = tempfile::tempdir().unwrap();
        let mut memory = Teller::new(MemoryStore::new());
        let mut files = Teller::new(FileStore::new(dir.path()));
        let place = |teller: &Teller<FileStore>| {
            dir.path().join(".tanmi-workspace").join(teller.workspace.as_str())
        };
        let mut by_hand = Vec::new();
        for deed in &deeds {
            match deed {
                Deed::LoseIndex => {
                    let _ = std::fs::remove_file(place(&files).join(".local/index.sqlite"));
                }
                Deed::Restart => files.store = FileStore::new(dir.path()),
                Deed::WriteByHand { node } => {
                    let id = files.pick(*node);
                    let path = place(&files).join("nodes").join(id.as_str()).join("Node.md");
                    if let Ok(text) = std::fs::read_to_string(&path) {
                        let text = format!("{text}\n## Mine\n\nkept\n");
                        tanmi_base::fs::write_atomic(&path, text.as_bytes(), dir.path(),
                            tanmi_base::fs::Durability::Journaled).unwrap();
                        by_hand.push(path);
                    }
                }
                _ => {}
            }
            let (want, got) = (memory.tell(deed), files.tell(deed));
            prop_assert_eq!(want, got, "{:?}", deed);
        }
        prop_assert_eq!(memory.state(), files.state());
        files.store = FileStore::new(dir.path());
        prop_assert_eq!(memory.state(), files.state(), "after a restart");
        for path in by_hand {
            if let Ok(text) = std::fs::read_to_string(&path) {
                prop_assert!(text.contains("## Mine\n\nkept"), "{}", text);
            }
        }
    }
}
