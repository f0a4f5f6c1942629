//! The rules of the tree, one by one.

use super::*;
use crate::context::{self, ContextLimits};

#[test]
fn a_whole_story() {
    on_both(|b| {
        let root = NodeId::root();
        assert_eq!(b.status(&root), "pending");
        let plan = b.plan(&root, "设计");
        assert_eq!(b.status(&root), "monitoring", "a child starts a pending parent");
        let task = b.task(&plan, "写接口");
        assert_eq!(b.status(&plan), "monitoring");
        b.go(&task, Action::Start).unwrap();
        assert_eq!(b.view(|tx| tx.workspace()).focused_node_id.as_ref(), Some(&task));
        assert_eq!(code(b.go(&plan, Action::Complete)), "CHILDREN_UNFINISHED");
        b.go(&task, Action::Submit).unwrap();
        let done = b.go(&task, Action::Complete).unwrap();
        assert_eq!(done.focus.as_ref(), Some(&plan));
        assert_eq!(b.view(|tx| tx.workspace()).focused_node_id.as_ref(), Some(&plan));
        b.go(&plan, Action::Complete).unwrap();
        b.go(&root, Action::Complete).unwrap();
        assert_eq!(b.view(|tx| Ok(tx.total()?.progress())), Progress { done: 2, total: 2 });

        b.go(&task, Action::Reopen).unwrap();
        assert_eq!(
            (b.status(&plan), b.status(&root)),
            ("monitoring", "monitoring"),
            "completed ancestors come back"
        );
        let node = b.node(&task);
        assert_eq!(node.conclusion, None);
        assert!(node.activity.log.iter().any(|entry| entry.event == "原结论：complete 的结论"));
        assert_eq!(b.node(&plan).conclusion, None, "what no longer holds is out of the way");
    });
}

#[test]
fn illegal_steps_say_what_is_legal() {
    on_both(|b| {
        let task = b.task(&NodeId::root(), "a");
        match b.go(&task, Action::Complete) {
            Err(Error::InvalidTransition { status, allowed, .. }) => {
                assert_eq!((status, allowed), (NodeStatus::Pending, vec![Action::Start]));
            }
            other => panic!("{other:?}"),
        }
        b.go(&task, Action::Start).unwrap();
        let op = b.tick();
        for conclusion in [None, Some(" \n".to_owned())] {
            let outcome = b.change(|tx| {
                let (node_id, conclusion) = (task.clone(), conclusion.clone());
                transition(
                    tx,
                    TransitionRequest {
                        node_id,
                        action: Action::Complete,
                        conclusion,
                        claimant: Default::default(),
                    },
                    &op,
                )
            });
            assert_eq!(code(outcome), "CONCLUSION_REQUIRED");
        }
        assert_eq!(b.status(&task), "implementing");
    });
}

#[test]
fn the_way_on_after_a_reopen() {
    on_both(|b| {
        let plan = b.plan(&NodeId::root(), "plan");
        let task = b.task(&plan, "task");
        b.go(&task, Action::Start).unwrap();
        b.go(&task, Action::Fail).unwrap();
        b.go(&plan, Action::Complete).unwrap();
        b.go(&plan, Action::Reopen).unwrap();
        assert_eq!(b.status(&plan), "planning");
        b.go(&plan, Action::Start).unwrap();
        assert_eq!(b.status(&plan), "monitoring");
        b.go(&task, Action::Retry).unwrap();
        assert_eq!((b.status(&task), b.status(&plan)), ("implementing", "monitoring"));
    });
}

#[test]
fn under_a_cancelled_parent_nothing_new() {
    on_both(|b| {
        let plan = b.plan(&NodeId::root(), "plan");
        let task = b.task(&plan, "task");
        b.go(&task, Action::Start).unwrap();
        b.go(&task, Action::Complete).unwrap();
        b.go(&plan, Action::Cancel).unwrap();
        assert_eq!(b.status(&task), "completed", "cancel leaves children alone");
        assert_eq!(code(b.try_create(&plan, NodeType::Execution, "x")), "PARENT_CANCELLED");
        assert_eq!(code(b.go(&task, Action::Reopen)), "PARENT_CANCELLED");
        let other = b.task(&NodeId::root(), "other");
        let op = b.tick();
        assert_eq!(code(b.change(|tx| move_node(tx, &other, &plan, &op))), "PARENT_CANCELLED");
        b.go(&plan, Action::Reopen).unwrap();
        b.go(&task, Action::Reopen).unwrap();
    });
}

#[test]
fn losing_the_last_child_returns_to_planning() {
    on_both(|b| {
        let root = NodeId::root();
        let (one, two) = (b.plan(&root, "one"), b.plan(&root, "two"));
        let task = b.task(&one, "task");
        let op = b.tick();
        let (_, changes) = b.change(|tx| move_node(tx, &task, &two, &op)).unwrap();
        assert_eq!((b.status(&one), b.status(&two)), ("planning", "monitoring"));
        assert_eq!(changes.len(), 2);
        let deleted = b.change(|tx| delete_node(tx, &two, &op)).unwrap();
        assert_eq!(deleted.count, 2);
        assert!(b.view(|tx| tx.node(&task)).is_none());
        b.change(|tx| delete_node(tx, &one, &op)).unwrap();
        assert_eq!(b.status(&root), "planning");
    });
}

#[test]
fn what_is_refused_changes_nothing() {
    on_both(|b| {
        let root = NodeId::root();
        let plan = b.plan(&root, "plan");
        let inner = b.plan(&plan, "inner");
        let task = b.task(&plan, "task");
        let before = b.view(|tx| list(tx, &ListQuery::default()));
        let op = b.tick();
        assert_eq!(code(b.try_create(&task, NodeType::Execution, "x")), "PARENT_IS_EXECUTION");
        assert_eq!(code(b.try_create(&root, NodeType::Execution, "  ")), "INVALID_ARGUMENT");
        assert_eq!(code(b.try_create(&root, NodeType::Execution, &"长".repeat(201))), "INVALID_ARGUMENT");
        assert_eq!(code(b.try_create(&NodeId::fresh(1), NodeType::Execution, "x")), "NODE_NOT_FOUND");
        let long = NewNode { requirement: "x".repeat(2 << 20), ..new_node(&root, NodeType::Execution, "x") };
        assert_eq!(code(b.change(|tx| create_node(tx, long.clone(), &op))), "INVALID_ARGUMENT");
        assert_eq!(code(b.change(|tx| move_node(tx, &plan, &plan, &op))), "MOVE_INTO_SELF");
        assert_eq!(code(b.change(|tx| move_node(tx, &plan, &inner, &op))), "MOVE_INTO_SELF");
        assert_eq!(code(b.change(|tx| move_node(tx, &root, &inner, &op))), "ROOT_PROTECTED");
        assert_eq!(code(b.change(|tx| move_node(tx, &plan, &task, &op))), "MOVE_INTO_SELF");
        assert_eq!(code(b.change(|tx| delete_node(tx, &root, &op))), "ROOT_PROTECTED");
        let after = b.view(|tx| list(tx, &ListQuery::default()));
        assert_eq!(format!("{before:?}"), format!("{after:?}"));
    });
}

#[test]
fn an_archived_workspace_is_read_only() {
    on_both(|b| {
        let task = b.task(&NodeId::root(), "task");
        let op = b.tick();
        b.change(|tx| archive(tx, &op)).unwrap();
        let refused = "WORKSPACE_ARCHIVED";
        let target = Target::Node(task.clone());
        assert_eq!(code(b.try_create(&NodeId::root(), NodeType::Execution, "x")), refused);
        assert_eq!(code(b.go(&task, Action::Start)), refused);
        assert_eq!(code(b.change(|tx| update_node(tx, &task, NodeChange::default(), &op))), refused);
        assert_eq!(code(b.change(|tx| update_workspace(tx, WorkspaceChange::default(), &op))), refused);
        assert_eq!(code(b.change(|tx| move_node(tx, &task, &NodeId::root(), &op))), refused);
        assert_eq!(code(b.change(|tx| delete_node(tx, &task, &op))), refused);
        assert_eq!(code(b.change(|tx| append_log(tx, &target, "x", &op))), refused);
        assert_eq!(code(b.change(|tx| clear_problem(tx, &target, &op))), refused);
        assert_eq!(
            code(b.change(|tx| edit_reference(tx, &task, "a.md", ReferenceEdit::Remove, &op))),
            refused
        );
        assert_eq!(code(b.change(|tx| focus(tx, None, &op))), refused);
        assert_eq!(code(b.change(|tx| archive(tx, &op))), refused);
        b.change(|tx| restore(tx, &op)).unwrap();
        assert_eq!(code(b.change(|tx| restore(tx, &op))), "WORKSPACE_NOT_ARCHIVED");
        b.go(&task, Action::Start).unwrap();
    });
}

#[test]
fn the_rules_must_be_known() {
    let memory = MemoryStore::new();
    let b = Bench::new(&memory, &["规则1", "规则2"]);
    let create = |check: RulesCheck| {
        let op = b.tick();
        let new = NewNode { rules_check: check, ..new_node(&NodeId::root(), NodeType::Execution, "x") };
        b.change(|tx| create_node(tx, new.clone(), &op)).map(|_| ())
    };
    match create(RulesCheck::Required(None)) {
        Err(Error::RulesHashMismatch { rules, hash, .. }) => {
            assert_eq!((rules.len(), hash.as_str()), (2, "8eb249a5"));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(code(create(RulesCheck::Required(Some("ff280711".into())))), "RULES_HASH_MISMATCH");
    assert_eq!(code(create(RulesCheck::IfGiven(Some("ff280711".into())))), "RULES_HASH_MISMATCH");
    create(RulesCheck::IfGiven(None)).unwrap();
    create(RulesCheck::Required(Some("8eb249a5".into()))).unwrap();
}

#[test]
fn info_collection_archives_once() {
    on_both(|b| {
        let op = b.tick();
        let new = NewNode {
            role: Some(NodeRole::InfoCollection),
            ..new_node(&NodeId::root(), NodeType::Execution, "收集")
        };
        let id = b.change(|tx| create_node(tx, new.clone(), &op)).unwrap().0.id;
        let conclusion = "已收集\n\n## 规则\n- 规则1\n- 规则2\n\n## 文档\n- C:\\a.md: 说明\n- /b.md: 二\n";
        for round in 0..2 {
            b.go(&id, if round == 0 { Action::Start } else { Action::Reopen }).unwrap();
            let request = TransitionRequest {
                node_id: id.clone(),
                action: Action::Complete,
                conclusion: Some(conclusion.into()),
                claimant: Default::default(),
            };
            let op = b.tick();
            let collected = b.change(|tx| transition(tx, request.clone(), &op)).unwrap().collected.unwrap();
            let added = if round == 0 { 2 } else { 0 };
            assert_eq!((collected.rules.len(), collected.docs.len()), (added, added));
            assert_eq!(collected.rules_hash, "8eb249a5");
        }
        let workspace = b.view(|tx| tx.workspace());
        assert_eq!(workspace.rules, ["规则1", "规则2"]);
        assert_eq!(
            workspace.docs.iter().map(|doc| doc.path.as_str()).collect::<Vec<_>>(),
            ["C:\\a.md", "/b.md"]
        );
    });
}

#[test]
fn problems_and_logs() {
    on_both(|b| {
        for target in [Target::Workspace, Target::Node(NodeId::root())] {
            let op = b.tick();
            let problem = |description: Option<&str>, next: Option<&str>| {
                let change = ProblemChange {
                    description: description.map(String::from),
                    next_step: next.map(String::from),
                };
                b.change(|tx| update_problem(tx, &target, change.clone(), &op))
            };
            assert_eq!(problem(None, Some("下一步")).unwrap().description, "", "a next step alone");
            assert_eq!(problem(Some("超时"), None).unwrap().next_step, None, "a new problem has no old plan");
            let both = problem(None, Some("加大")).unwrap();
            assert_eq!((both.description.as_str(), both.next_step.as_deref()), ("超时", Some("加大")));
            assert_eq!(code(problem(None, Some(" "))), "INVALID_ARGUMENT");
            assert!(b.change(|tx| clear_problem(tx, &target, &op)).unwrap().is_some());
            assert!(b.change(|tx| clear_problem(tx, &target, &op)).unwrap().is_none());
            b.change(|tx| append_log(tx, &target, "多\n行", &op)).unwrap();
            let activity = b.view(|tx| read_activity(tx, &target));
            assert_eq!(activity.log.last().unwrap().event, "多\n行");
            assert_eq!(activity.last_log_at, Some(op.now));
            assert_eq!(activity.problem, None);
        }
    });
}

fn context_of(b: &Bench<'_>, id: &NodeId) -> context::Context {
    b.view(|tx| context::assemble(tx, id, &ContextLimits::default()))
}

#[test]
fn context_has_chain_conclusions_and_references() {
    on_both(|b| {
        let root = NodeId::root();
        let plan = b.plan(&root, "设计");
        let (a, c) = (b.task(&plan, "a"), b.task(&plan, "c"));
        b.go(&a, Action::Start).unwrap();
        b.go(&a, Action::Complete).unwrap();
        let other = b.task(&root, "别处");
        b.go(&other, Action::Start).unwrap();
        b.go(&other, Action::Fail).unwrap();
        let op = b.tick();
        for (target, edit) in [
            (other.as_str(), ReferenceEdit::Add { description: "看这里".into() }),
            ("docs/x.md", ReferenceEdit::Add { description: "文档".into() }),
            ("docs/old.md", ReferenceEdit::Add { description: "旧".into() }),
            ("docs/old.md", ReferenceEdit::Expire),
        ] {
            b.change(|tx| edit_reference(tx, &plan, target, edit.clone(), &op)).unwrap();
        }
        let context = context_of(b, &plan);
        let chain: Vec<&str> = context.chain.iter().map(|node| node.title.as_str()).collect();
        assert_eq!(chain, ["重构认证模块", "设计"]);
        assert_eq!(context.chain[0].status, NodeStatus::Monitoring);
        assert_eq!(context.child_conclusions.len(), 1);
        assert_eq!(context.child_conclusions[0].conclusion, "complete 的结论");
        let references: Vec<_> =
            context.references.iter().map(|r| (r.kind, r.status, r.conclusion.as_deref())).collect();
        assert_eq!(
            references,
            [(RefKind::Node, Some(NodeStatus::Failed), Some("fail 的结论")), (RefKind::Doc, None, None)],
            "expired stays out"
        );
        assert!(context_of(b, &c).references.is_empty(), "only the focused node's own");
        b.change(|tx| delete_node(tx, &other, &op)).unwrap();
        assert!(context_of(b, &plan).references[0].missing);
    });
}

#[test]
fn isolation_drops_everything_above() {
    on_both(|b| {
        let plan = b.plan(&NodeId::root(), "plan");
        let inner = b.plan(&plan, "inner");
        let task = b.task(&inner, "task");
        let op = b.tick();
        let change = NodeChange { isolated: Some(true), ..NodeChange::default() };
        b.change(|tx| update_node(tx, &inner, change.clone(), &op)).unwrap();
        let titles =
            |id: &NodeId| context_of(b, id).chain.into_iter().map(|node| node.title).collect::<Vec<_>>();
        assert_eq!(titles(&task), ["inner", "task"], "for descendants too");
        assert_eq!(titles(&inner), ["inner"]);
        assert_eq!(titles(&plan), ["重构认证模块", "plan"]);
        assert_eq!(context_of(b, &task).workspace.goal, "换成 JWT", "the workspace block stays");
    });
}

#[test]
fn a_context_is_bounded_and_says_what_it_left_out() {
    on_both(|b| {
        let task = b.task(&NodeId::root(), "task");
        let op = b.tick();
        let target = Target::Node(task.clone());
        for n in 0..40 {
            b.change(|tx| append_log(tx, &target, &format!("第 {n} 步"), &op)).unwrap();
        }
        let change = NodeChange {
            requirement: Some("很长。".repeat(20_000)),
            note: Some("n".into()),
            ..NodeChange::default()
        };
        b.change(|tx| update_node(tx, &task, change.clone(), &op)).unwrap();
        let context = context_of(b, &task);
        let node = context.chain.last().unwrap();
        assert_eq!(node.log.len(), 20);
        assert_eq!(node.log.last().unwrap().event, "第 39 步", "the newest is kept");
        let omitted: Vec<_> = context.omitted.iter().map(|o| (o.of.as_str(), o.what)).collect();
        assert_eq!(omitted, [(task.as_str(), "requirement"), (task.as_str(), "log")]);
        assert!(serde_json::to_string(&context).unwrap().len() < 40_000);
    });
}

#[test]
fn one_long_entry_hides_nothing_else() {
    on_both(|b| {
        let plan = b.plan(&NodeId::root(), "plan");
        let op = b.tick();
        for (title, conclusion) in [("one", "short".to_owned()), ("two", "long. ".repeat(8000))] {
            let id = b.task(&plan, title);
            b.go(&id, Action::Start).unwrap();
            let request = TransitionRequest {
                node_id: id,
                action: Action::Complete,
                conclusion: Some(conclusion),
                claimant: Default::default(),
            };
            b.change(|tx| transition(tx, request.clone(), &op)).unwrap();
        }
        for n in 0..60 {
            let edit = ReferenceEdit::Add { description: "word ".repeat(3000) };
            b.change(|tx| edit_reference(tx, &plan, &format!("doc{n}.md"), edit.clone(), &op)).unwrap();
        }
        let context = context_of(b, &plan);
        assert_eq!(context.child_conclusions.len(), 2);
        assert!(context.omitted.iter().any(|o| o.what == "references"));
        assert!(serde_json::to_string(&context).unwrap().len() < 60_000);
        b.go(&plan, Action::Complete).unwrap();
        b.go(&plan, Action::Reopen).unwrap();
        let told = serde_json::to_string(&context_of(b, &plan)).unwrap();
        assert!(!told.contains("原结论"), "what no longer holds is not told");
    });
}

#[test]
fn pages_of_a_tree() {
    on_both(|b| {
        let root = NodeId::root();
        for name in ["a", "b", "c"] {
            let plan = b.plan(&root, name);
            for n in 0..3 {
                b.task(&plan, &format!("{name}{n}"));
            }
        }
        let walk = |limit: usize, depth: Option<usize>, statuses: Vec<NodeStatus>| {
            let mut titles = Vec::new();
            let mut after = None;
            loop {
                let query =
                    ListQuery { limit, depth, statuses: statuses.clone(), after, ..ListQuery::default() };
                let page = b.view(|tx| list(tx, &query));
                assert!(page.nodes.len() <= limit);
                titles.extend(page.nodes.iter().map(|row| row.node.title.clone()));
                after = page.next_after;
                if after.is_none() {
                    return titles.join(" ");
                }
            }
        };
        let whole = "重构认证模块 a a0 a1 a2 b b0 b1 b2 c c0 c1 c2";
        for limit in [1, 2, 3, 5, 13, 50] {
            assert_eq!(walk(limit, None, vec![]), whole, "limit {limit}");
            assert_eq!(walk(limit, Some(1), vec![]), "重构认证模块 a b c", "limit {limit}");
            assert_eq!(
                walk(limit, None, vec![NodeStatus::Pending]),
                "a0 a1 a2 b0 b1 b2 c0 c1 c2",
                "limit {limit}"
            );
        }
    });
}

/// A node belongs to the session that started it, for as long as that shows signs of life.
#[test]
fn two_sessions_do_not_take_one_node() {
    on_both(|b| {
        let task = b.task(&NodeId::root(), "task");
        let op = b.tick();
        let step = |session: Option<&str>, action, holder_is_live, force| {
            let session = session.map(String::from);
            let request = TransitionRequest {
                node_id: task.clone(),
                action,
                conclusion: Some("done".into()),
                claimant: Claimant { session, force, holder_is_live, ..Claimant::default() },
            };
            b.change(|tx| transition(tx, request.clone(), &op))
                .map(|done| done.to)
                .map_err(|error| error.code())
        };
        assert_eq!(step(Some("a"), Action::Start, false, false), Ok(NodeStatus::Implementing));
        assert_eq!(step(Some("b"), Action::Start, true, false), Err("NODE_TAKEN"));
        assert_eq!(step(None, Action::Start, true, false), Err("NODE_TAKEN"));
        assert_eq!(step(Some("a"), Action::Start, true, false), Err("INVALID_TRANSITION"), "its own");
        assert_eq!(step(None, Action::Start, false, false), Err("INVALID_TRANSITION"));
        assert_eq!(step(Some("d"), Action::Start, false, false), Ok(NodeStatus::Implementing), "a is gone");
        assert_eq!(step(Some("b"), Action::Start, true, true), Ok(NodeStatus::Implementing));
        assert_eq!(step(Some("a"), Action::Start, true, false), Err("NODE_TAKEN"), "it is b's now");
        assert_eq!(step(Some("a"), Action::Complete, true, false), Ok(NodeStatus::Completed));
        assert_eq!(step(Some("c"), Action::Reopen, true, false), Ok(NodeStatus::Implementing));
        let node = b.node(&task);
        assert_eq!(node.started_by.as_deref(), Some("c"));
    });
}
