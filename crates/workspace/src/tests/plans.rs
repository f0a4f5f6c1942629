//! Plans, dependencies and what is next, on both stores.

use super::*;
use crate::outline;

impl TestWorkspace<'_> {
    fn plan(&self, parent: &NodeId, outline: &str) -> Result<PlannedNodes> {
        let items = outline::parse(outline)
            .map_err(|error| Error::BadOutline { line: error.line, reason: error.reason })?;
        let op = self.tick();
        self.change(|tx| {
            let rules_check = RulesHashCheck::IfGiven(None);
            plan_nodes(tx, NewPlan { parent_id: parent.clone(), items: items.clone(), rules_check }, &op)
        })
    }

    /// Creates a plan below the root and returns the ids in the order of the outline.
    pub(super) fn planned(&self, outline: &str) -> Vec<NodeId> {
        self.plan(&NodeId::root(), outline).unwrap().nodes.into_iter().map(|node| node.node_id).collect()
    }

    fn depend(&self, node: &NodeId, on: &NodeId) -> Result<Node> {
        let op = self.tick();
        let depends_on = ListEdit { add: vec![on.clone()], ..ListEdit::default() };
        let change = NodeChange { depends_on, ..NodeChange::default() };
        self.change(|tx| update_node(tx, node, change.clone(), &op))
    }

    fn next(&self, limit: usize, sessions: &dyn LiveSessions) -> NextNodes {
        self.view(|tx| find_next(tx, limit, &claimant("me"), sessions))
    }

    /// Returns the titles of the nodes that can be started, and the reasons if there is none.
    fn next_titles(&self) -> String {
        let NextNodes { next, blocked, .. } = self.next(10, &Holders { are_live: true });
        let next = next.iter().map(|node| node.title.clone());
        let blocked = blocked.iter().map(|node| {
            let waits: Vec<String> = node
                .waits_for
                .iter()
                .map(|on| format!("{} {}", on.title, on.status.map_or("missing", |status| status.as_str())))
                .collect();
            format!("{}!{:?} {}", node.title, node.reason, waits.join("+")).trim_end().to_owned()
        });
        next.chain(blocked).collect::<Vec<_>>().join(", ")
    }

    fn start_next(&self, session: &str, sessions: &dyn LiveSessions) -> Option<StartedNode> {
        let op = self.tick();
        self.change(|tx| start_next(tx, claimant(session), &op, sessions)).unwrap().1
    }

    pub(super) fn finish(&self, id: &NodeId) {
        if self.node(id).status == NodeStatus::Pending {
            self.apply(id, Action::Start).unwrap();
        }
        self.apply(id, Action::Complete).unwrap();
    }

    fn count(&self) -> u64 {
        self.view(|tx| tx.total()).total()
    }
}

fn claimant(session: &str) -> Claimant {
    Claimant { session: Some(session.to_owned()), ..Claimant::default() }
}

#[test]
fn plan_outline_creates_subtree_in_one_change() {
    on_both_stores(|ws| {
        let outline = "- [x] Design: agree on the format\n- Build (after: Design)\n  - Parser\n  - Writer (after: Parser): write it\n";
        let before = store::change(ws.store, &ws.id, ws.now.get(), |_| Ok(())).unwrap().1;
        let ids = ws.planned(outline);
        let after = store::change(ws.store, &ws.id, ws.now.get(), |_| Ok(())).unwrap().1;
        assert_eq!(after, before + 1, "one record of the journal");
        let statuses: Vec<&str> = ids.iter().map(|id| ws.status(id)).collect();
        assert_eq!(statuses, ["completed", "monitoring", "pending", "pending"]);
        let (design, writer) = (ws.node(&ids[0]), ws.node(&ids[3]));
        assert_eq!((design.kind, design.conclusion.as_deref()), (NodeType::Execution, Some("此前已完成")));
        assert_eq!(
            (writer.requirement.as_str(), writer.depends_on.clone()),
            ("write it", vec![ids[2].clone()])
        );
        assert_eq!(writer.parent_id.as_ref(), Some(&ids[1]));
        assert_eq!(ws.status(&NodeId::root()), "monitoring");
        let exported = ws.view(|tx| export(tx, &NodeId::root()));
        assert_eq!(
            exported,
            outline
                .replace("Design: agree", "**Design**: agree")
                .replace("Writer (after: Parser):", "**Writer** (after: Parser):")
        );
        assert!(
            ws.view(|tx| export(tx, &ids[3])).contains(&format!("(after: {})", ids[2])),
            "outside of the export"
        );
    });
}

#[test]
fn plan_bad_target_or_parent_creates_nothing() {
    on_both_stores(|ws| {
        let existing = ws.add_execution(&NodeId::root(), "existing");
        let deleted = ws.add_execution(&NodeId::root(), "deleted");
        let op = ws.tick();
        ws.change(|tx| delete_unclaimed(tx, &deleted, &op)).unwrap();
        let parent = ws.add_planning(&NodeId::root(), "parent");
        let count = ws.count();
        for (outline, code) in [
            (format!("- a\n- b (after: {deleted})"), "INVALID_OUTLINE"),
            (format!("- a\n- b (after: {parent})"), "INVALID_OUTLINE"),
            (String::from("- a\n- b (after: c)"), "INVALID_OUTLINE"),
        ] {
            let error = ws.plan(&parent, &outline).unwrap_err();
            assert_eq!((error.code(), &error.details()["line"]), (code, &serde_json::json!(2)), "{outline}");
            assert_eq!(ws.count(), count);
        }
        assert_eq!(error_code(ws.plan(&existing, "- a")), "PARENT_IS_EXECUTION");
        assert_eq!(error_code(ws.plan(&deleted, "- a")), "NODE_NOT_FOUND");
        // `existing` waits for the parent, so a node below the parent cannot wait for it.
        ws.depend(&existing, &parent).unwrap();
        let error = ws.plan(&parent, &format!("- a (after: {existing})")).unwrap_err();
        assert!(error.message(tanmi_base::Lang::En).contains("a → existing → parent → a"), "{error}");
        assert_eq!(ws.count(), count);
    });
}

#[test]
fn depend_cycle_ancestor_and_descendant_are_refused() {
    on_both_stores(|ws| {
        let ids = ws.planned("- a\n- b (after: a)\n- c (after: b)\n- p\n  - q\n");
        let [a, b, c, p, q] = ids.as_slice() else { panic!() };
        let error = ws.depend(a, c).unwrap_err();
        assert_eq!(error.code(), "DEPENDENCY_CYCLE");
        assert!(error.message(tanmi_base::Lang::En).ends_with("a → c → b → a"), "{error}");
        for (node, on) in [(a, a), (q, p), (p, q), (a, &NodeId::root()), (&NodeId::root(), a)] {
            assert_eq!(error_code(ws.depend(node, on)), "INVALID_ARGUMENT", "{node} {on}");
        }
        assert_eq!(error_code(ws.depend(a, &NodeId::parse("node-none").unwrap())), "NODE_NOT_FOUND");
        assert_eq!(ws.depend(q, c).unwrap().depends_on, std::slice::from_ref(c));
        assert_eq!(error_code(ws.depend(b, p)), "DEPENDENCY_CYCLE");
        assert!(ws.node(a).depends_on.is_empty());
    });
}

#[test]
fn move_node_that_would_wait_for_itself_is_refused() {
    on_both_stores(|ws| {
        let ids = ws.planned("- x\n  - x1\n- y (after: x)\n  - y1\n- z\n  - z1\n");
        let op = ws.tick();
        let moved = |node: &NodeId, parent: &NodeId| ws.change(|tx| move_node(tx, node, parent, &op));
        let error = moved(&ids[0], &ids[2]).unwrap_err();
        assert_eq!(error.code(), "DEPENDENCY_CYCLE");
        assert!(error.message(tanmi_base::Lang::En).ends_with("x → y → x"), "{error}");
        assert_eq!(error_code(moved(&ids[2], &ids[0])), "DEPENDENCY_CYCLE");
        assert_eq!(ws.node(&ids[0]).parent_id, Some(NodeId::root()));
        assert!(moved(&ids[0], &ids[4]).is_ok());
    });
}

#[test]
fn start_open_dependencies_is_refused_unless_forced() {
    on_both_stores(|ws| {
        let ids = ws.planned("- a\n- p (after: a)\n  - b\n");
        let start = |force| {
            let op = ws.tick();
            let claimant = Claimant { force, ..Claimant::default() };
            let request = TransitionRequest {
                node_id: ids[2].clone(),
                action: Action::Start,
                conclusion: None,
                claimant,
            };
            ws.change(|tx| transition(tx, request.clone(), &op, &NoLiveSessions))
        };
        let error = start(false).unwrap_err();
        assert_eq!(
            (error.code(), &error.details()["open"][0]["title"]),
            ("DEPENDENCIES_OPEN", &serde_json::json!("a"))
        );
        assert!(start(true).is_ok());
        let ids = ws.planned("- c\n- d (after: c)\n");
        assert_eq!(error_code(ws.apply(&ids[1], Action::Start)), "DEPENDENCIES_OPEN");
        ws.finish(&ids[0]);
        assert!(ws.apply(&ids[1], Action::Start).is_ok());
    });
}

#[test]
fn delete_dependency_is_removed_from_dependents_with_log_entry() {
    on_both_stores(|ws| {
        let ids = ws.planned("- p\n  - a\n- b (after: a)\n");
        let op = ws.tick();
        let deleted = ws.change(|tx| delete_unclaimed(tx, &ids[0], &op)).unwrap();
        assert_eq!(deleted.dependents, std::slice::from_ref(&ids[2]));
        let node = ws.node(&ids[2]);
        assert!(node.depends_on.is_empty());
        assert_eq!(
            node.activity.log.last().unwrap().event,
            format!("移除对“a”（{}）的依赖：它已被删除", ids[1])
        );
        assert_eq!(ws.next_titles(), "b");
    });
}

#[test]
fn context_contains_conclusions_of_dependencies() {
    on_both_stores(|ws| {
        let ids = ws.planned("- a\n- b\n- c (after: a, b)\n");
        ws.finish(&ids[0]);
        let context = ws.view(|tx| crate::context::assemble(tx, &ids[2], &Default::default()));
        let titles: Vec<&str> = context.dependency_conclusions.iter().map(|one| one.title.as_str()).collect();
        assert_eq!(titles, ["a"]);
        assert_eq!(context.dependency_conclusions[0].conclusion, "complete 的结论");
    });
}

#[test]
fn context_contains_conclusions_of_dependencies_of_ancestors() {
    on_both_stores(|ws| {
        let ids = ws.planned("- a\n- b\n- p (after: a, b)\n  - q (after: b)\n    - c\n");
        ws.finish(&ids[0]);
        ws.finish(&ids[1]);
        let context = ws.view(|tx| crate::context::assemble(tx, &ids[4], &Default::default()));
        let titles: Vec<&str> = context.dependency_conclusions.iter().map(|one| one.title.as_str()).collect();
        assert_eq!(titles, ["b", "a"], "each once, those of the nearest ancestor first");
    });
}

#[test]
fn next_follows_tree_order_and_dependencies() {
    on_both_stores(|ws| {
        assert_eq!(ws.next_titles(), "");
        let ids = ws.planned("- p (after: z)\n  - a\n- q\n  - b\n  - c (after: b)\n- z\n");
        assert_eq!(ws.next_titles(), "b, z");
        assert_eq!(ws.next(1, &NoLiveSessions).next.len(), 1);
        ws.finish(&ids[3]);
        ws.apply(&ids[5], Action::Start).unwrap();
        assert_eq!(ws.next_titles(), "c");
        ws.finish(&ids[4]);
        assert_eq!(ws.next_titles(), "q!ChildrenDone, z!InProgress, p!Dependencies z implementing");
        ws.apply(&ids[5], Action::Fail).unwrap();
        assert_eq!(ws.next_titles(), "q!ChildrenDone, p!Dependencies z failed", "a failed dependency blocks");
        ws.apply(&ids[2], Action::Complete).unwrap();
        ws.apply(&ids[5], Action::Retry).unwrap();
        ws.apply(&ids[5], Action::Complete).unwrap();
        assert_eq!(ws.next_titles(), "a");
        ws.apply(&ids[0], Action::Cancel).unwrap();
        assert_eq!(ws.next_titles(), "", "an ancestor is done");
        ws.add_planning(&NodeId::root(), "empty plan");
        assert_eq!(ws.next_titles(), "empty plan");
    });
}

#[test]
fn start_next_claims_first_ready_node_then_takes_over_from_dead_holder() {
    on_both_stores(|ws| {
        let (live, dead) = (Holders { are_live: true }, Holders { are_live: false });
        let ids = ws.planned("- a\n- b\n");
        let first = ws.start_next("one", &live).unwrap();
        assert_eq!(
            (&first.node.id, first.takeover, first.node.started_by.as_deref()),
            (&ids[0], false, Some("one"))
        );
        assert_eq!(ws.start_next("two", &live).unwrap().node.id, ids[1]);
        assert!(ws.start_next("three", &live).is_none());
        assert!(ws.start_next("one", &NoHolderBut("two")).is_none(), "its own node is no takeover");
        let taken = ws.start_next("three", &dead).unwrap();
        assert_eq!(
            (&taken.node.id, taken.takeover, taken.node.started_by.as_deref()),
            (&ids[0], true, Some("three"))
        );
        assert_eq!(ws.status(&ids[0]), "implementing");
        assert_eq!(taken.node.status_changed_at, Some(taken.node.updated_at), "held since the takeover");
        assert!(taken.node.status_changed_at > first.node.status_changed_at);
    });
}

#[test]
fn next_held_node_below_done_node_is_no_takeover() {
    on_both_stores(|ws| {
        let dead = Holders { are_live: false };
        let ids = ws.planned("- p\n  - a\n");
        ws.start_next("one", &dead).unwrap();
        assert!(ws.next(1, &dead).next[0].takeover);
        ws.apply(&ids[0], Action::Cancel).unwrap();
        assert!(ws.next(1, &dead).next.is_empty());
    });
}

/// Only this session is live.
struct NoHolderBut(&'static str);

impl LiveSessions for NoHolderBut {
    fn is_live(&self, session: &str) -> bool {
        session == self.0
    }
}

#[test]
fn start_next_by_person_does_not_expire() {
    on_both_stores(|ws| {
        let ids = ws.planned("- a\n");
        let op = OpContext { operator: Operator::Human, ..ws.tick() };
        let person = Claimant::default();
        let started =
            ws.change(|tx| start_next(tx, person.clone(), &op, &NoLiveSessions)).unwrap().1.unwrap();
        assert_eq!(started.node.started_by.as_deref(), Some(PERSON));
        assert!(ws.start_next("agent", &NoLiveSessions).is_none());
        let complete = |claimant: Claimant, operator: Operator| {
            let op = OpContext { operator, ..ws.tick() };
            let conclusion = Some(String::from("done"));
            let request =
                TransitionRequest { node_id: ids[0].clone(), action: Action::Complete, conclusion, claimant };
            ws.change(|tx| transition(tx, request.clone(), &op, &NoLiveSessions))
        };
        assert_eq!(error_code(complete(claimant("agent"), Operator::Ai)), "NODE_TAKEN");
        let unknown = complete(Claimant::default(), Operator::Ai);
        assert_eq!(
            error_code(unknown),
            "NODE_TAKEN",
            "an agent whose session is not known is not the person"
        );
        assert!(complete(Claimant::default(), Operator::Human).is_ok());
    });
}

#[test]
fn start_by_person_claims_node_and_takes_over_dead_holder() {
    on_both_stores(|ws| {
        let ids = ws.planned("- a\n");
        let start = |claimant: Claimant, operator: Operator, is_live: bool| {
            let op = OpContext { operator, ..ws.tick() };
            let (node_id, action) = (ids[0].clone(), Action::Start);
            let request = TransitionRequest { node_id, action, conclusion: None, claimant };
            ws.change(|tx| transition(tx, request.clone(), &op, &Holders { are_live: is_live }))
        };
        let person = |force| Claimant { force, ..Claimant::default() };
        let started = start(person(false), Operator::Human, true).unwrap();
        assert_eq!((started.takeover, started.previous_holder), (false, None));
        assert_eq!(ws.node(&ids[0]).started_by.as_deref(), Some(PERSON));
        assert_eq!(error_code(start(claimant("agent-1"), Operator::Ai, false)), "NODE_TAKEN");
        let forced = start(Claimant { force: true, ..claimant("agent-1") }, Operator::Ai, true).unwrap();
        assert_eq!((forced.takeover, forced.previous_holder.as_deref()), (true, Some(PERSON)));
        assert_eq!(error_code(start(person(false), Operator::Human, true)), "NODE_TAKEN");
        let forced = start(person(true), Operator::Human, true).unwrap();
        assert_eq!(forced.previous_holder.as_deref(), Some("agent-1"));
        let node = ws.node(&ids[0]);
        assert_eq!(node.started_by.as_deref(), Some(PERSON));
        let told: Vec<&str> = node.activity.log.iter().map(|entry| entry.event.as_str()).skip(1).collect();
        assert_eq!(told, ["已接手：由会话 agent-1，原为用户", "已接手：由用户，原为会话 agent-1"]);
        start(Claimant { force: true, ..claimant("agent-1") }, Operator::Ai, true).unwrap();
        let late = start(person(false), Operator::Human, false).unwrap();
        assert_eq!(late.previous_holder.as_deref(), Some("agent-1"), "its session ended");
        assert_eq!(ws.node(&ids[0]).started_by.as_deref(), Some(PERSON));
    });
}

#[test]
fn next_status_edited_by_hand_in_dependency_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let files = FileStore::in_folder(dir.path());
    let ws = TestWorkspace::new(&files, &[]);
    let ids = ws.planned("- a\n- b (after: a)\n");
    ws.finish(&ids[0]);
    assert_eq!(ws.next_titles(), "b");
    let path = dir
        .path()
        .join(".tanmi-workspace")
        .join(ws.id.as_str())
        .join("nodes")
        .join(ids[0].as_str())
        .join("Node.md");
    let text = std::fs::read_to_string(&path).unwrap().replace("status: completed", "status: failed");
    tanmi_base::fs::write_atomic(&path, text.as_bytes(), dir.path(), tanmi_base::fs::Durability::Journaled)
        .unwrap();
    assert_eq!(ws.next_titles(), "b!Dependencies a failed");
    // The list as a person would type it, with one line per id.
    let path = path.parent().unwrap().parent().unwrap().join(ids[1].as_str()).join("Node.md");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(&format!("dependsOn: [{}]\n", ids[0])), "{text}");
    let typed = text.replace(&format!("[{}]", ids[0]), &format!("\n  - \"{}\"\n  - node-other", ids[0]));
    tanmi_base::fs::write_atomic(&path, typed.as_bytes(), dir.path(), tanmi_base::fs::Durability::Journaled)
        .unwrap();
    assert_eq!(ws.node(&ids[1]).depends_on, [ids[0].clone(), NodeId::parse("node-other").unwrap()]);
    assert_eq!(ws.next_titles(), "b!Dependencies a failed+ missing");
}
