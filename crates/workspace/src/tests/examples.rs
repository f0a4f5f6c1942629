//! Examples of the rules of the tree, one per test.

use super::*;
use crate::context::{self, ContextLimits};
use crate::store::{BranchCounts, NodeBrief};

#[test]
fn complete_and_reopen_update_ancestors_and_focus() {
    on_both_stores(|b| {
        let root = NodeId::root();
        assert_eq!(b.status(&root), "pending");
        let plan = b.add_planning(&root, "设计");
        assert_eq!(b.status(&root), "monitoring", "a child starts a pending parent");
        let task = b.add_execution(&plan, "写接口");
        assert_eq!(b.status(&plan), "monitoring");
        b.apply(&task, Action::Start).unwrap();
        assert_eq!(b.view(|tx| tx.workspace()).focused_node_id.as_ref(), Some(&task));
        assert_eq!(error_code(b.apply(&plan, Action::Complete)), "CHILDREN_UNFINISHED");
        b.apply(&task, Action::Submit).unwrap();
        let done = b.apply(&task, Action::Complete).unwrap();
        assert_eq!(done.focus.as_ref(), Some(&plan));
        assert_eq!(b.view(|tx| tx.workspace()).focused_node_id.as_ref(), Some(&plan));
        b.apply(&plan, Action::Complete).unwrap();
        b.apply(&root, Action::Complete).unwrap();
        assert_eq!(b.view(|tx| Ok(tx.total()?.progress())), Progress { completed: 2, total: 2 });

        b.apply(&task, Action::Reopen).unwrap();
        assert_eq!(
            (b.status(&plan), b.status(&root)),
            ("monitoring", "monitoring"),
            "completed ancestors are reopened"
        );
        let node = b.node(&task);
        assert_eq!(node.conclusion, None);
        assert!(node.activity.log.iter().any(|entry| entry.event == "原结论：complete 的结论"));
        assert_eq!(b.node(&plan).conclusion, None, "an outdated conclusion is removed");
    });
}

#[test]
fn transition_invalid_is_rejected_with_allowed_actions() {
    on_both_stores(|b| {
        let task = b.add_execution(&NodeId::root(), "a");
        match b.apply(&task, Action::Complete) {
            Err(Error::InvalidTransition { status, allowed, .. }) => {
                assert_eq!((status, allowed), (NodeStatus::Pending, vec![Action::Start]));
            }
            other => panic!("{other:?}"),
        }
        b.apply(&task, Action::Start).unwrap();
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
                    &NoLiveSessions,
                )
            });
            assert_eq!(error_code(outcome), "CONCLUSION_REQUIRED");
        }
        assert_eq!(b.status(&task), "implementing");
    });
}

#[test]
fn reopened_planning_node_can_start_and_retry_child() {
    on_both_stores(|b| {
        let plan = b.add_planning(&NodeId::root(), "plan");
        let task = b.add_execution(&plan, "task");
        b.apply(&task, Action::Start).unwrap();
        b.apply(&task, Action::Fail).unwrap();
        b.apply(&plan, Action::Complete).unwrap();
        b.apply(&plan, Action::Reopen).unwrap();
        assert_eq!(b.status(&plan), "planning");
        b.apply(&plan, Action::Start).unwrap();
        assert_eq!(b.status(&plan), "monitoring");
        b.apply(&task, Action::Retry).unwrap();
        assert_eq!((b.status(&task), b.status(&plan)), ("implementing", "monitoring"));
    });
}

#[test]
fn cancelled_parent_rejects_create_reopen_and_move() {
    on_both_stores(|b| {
        let plan = b.add_planning(&NodeId::root(), "plan");
        let task = b.add_execution(&plan, "task");
        b.apply(&task, Action::Start).unwrap();
        b.apply(&task, Action::Complete).unwrap();
        b.apply(&plan, Action::Cancel).unwrap();
        assert_eq!(b.status(&task), "completed", "cancel does not change children");
        assert_eq!(error_code(b.try_create(&plan, NodeType::Execution, "x")), "PARENT_CANCELLED");
        assert_eq!(error_code(b.apply(&task, Action::Reopen)), "PARENT_CANCELLED");
        let other = b.add_execution(&NodeId::root(), "other");
        let op = b.tick();
        assert_eq!(error_code(b.change(|tx| move_node(tx, &other, &plan, &op))), "PARENT_CANCELLED");
        b.apply(&plan, Action::Reopen).unwrap();
        b.apply(&task, Action::Reopen).unwrap();
    });
}

#[test]
fn parent_without_children_returns_to_planning() {
    on_both_stores(|b| {
        let root = NodeId::root();
        let (one, two) = (b.add_planning(&root, "one"), b.add_planning(&root, "two"));
        let task = b.add_execution(&one, "task");
        let op = b.tick();
        let (_, changes) = b.change(|tx| move_node(tx, &task, &two, &op)).unwrap();
        assert_eq!((b.status(&one), b.status(&two)), ("planning", "monitoring"));
        assert_eq!(changes.len(), 2);
        let deleted = b.change(|tx| delete_unclaimed(tx, &two, &op)).unwrap();
        assert_eq!(deleted.count, 2);
        assert!(b.view(|tx| tx.node(&task)).is_none());
        b.change(|tx| delete_unclaimed(tx, &one, &op)).unwrap();
        assert_eq!(b.status(&root), "planning");
    });
}

#[test]
fn rejected_operation_changes_nothing() {
    on_both_stores(|b| {
        let root = NodeId::root();
        let plan = b.add_planning(&root, "plan");
        let inner = b.add_planning(&plan, "inner");
        let task = b.add_execution(&plan, "task");
        let before = b.view(|tx| list(tx, &ListQuery::default()));
        let op = b.tick();
        assert_eq!(error_code(b.try_create(&task, NodeType::Execution, "x")), "PARENT_IS_EXECUTION");
        assert_eq!(error_code(b.try_create(&root, NodeType::Execution, "  ")), "INVALID_ARGUMENT");
        assert_eq!(
            error_code(b.try_create(&root, NodeType::Execution, &"长".repeat(201))),
            "INVALID_ARGUMENT"
        );
        assert_eq!(error_code(b.try_create(&NodeId::fresh(1), NodeType::Execution, "x")), "NODE_NOT_FOUND");
        let long = NewNode { requirement: "x".repeat(2 << 20), ..new_node(&root, NodeType::Execution, "x") };
        assert_eq!(error_code(b.change(|tx| create_node(tx, long.clone(), &op))), "INVALID_ARGUMENT");
        assert_eq!(error_code(b.change(|tx| move_node(tx, &plan, &plan, &op))), "MOVE_INTO_SELF");
        assert_eq!(error_code(b.change(|tx| move_node(tx, &plan, &inner, &op))), "MOVE_INTO_SELF");
        assert_eq!(error_code(b.change(|tx| move_node(tx, &root, &inner, &op))), "ROOT_PROTECTED");
        assert_eq!(error_code(b.change(|tx| move_node(tx, &plan, &task, &op))), "MOVE_INTO_SELF");
        assert_eq!(error_code(b.change(|tx| delete_unclaimed(tx, &root, &op))), "ROOT_PROTECTED");
        let after = b.view(|tx| list(tx, &ListQuery::default()));
        assert_eq!(format!("{before:?}"), format!("{after:?}"));
    });
}

#[test]
fn archived_workspace_is_read_only() {
    on_both_stores(|b| {
        let task = b.add_execution(&NodeId::root(), "task");
        let op = b.tick();
        b.change(|tx| archive(tx, &op)).unwrap();
        let archived = "WORKSPACE_ARCHIVED";
        let target = Target::Node(task.clone());
        assert_eq!(error_code(b.try_create(&NodeId::root(), NodeType::Execution, "x")), archived);
        assert_eq!(error_code(b.apply(&task, Action::Start)), archived);
        assert_eq!(error_code(b.change(|tx| update_node(tx, &task, NodeChange::default(), &op))), archived);
        assert_eq!(
            error_code(b.change(|tx| update_workspace(tx, WorkspaceChange::default(), &op))),
            archived
        );
        assert_eq!(error_code(b.change(|tx| move_node(tx, &task, &NodeId::root(), &op))), archived);
        assert_eq!(error_code(b.change(|tx| delete_unclaimed(tx, &task, &op))), archived);
        assert_eq!(error_code(b.change(|tx| append_log(tx, &target, "x", op.now, &op))), archived);
        assert_eq!(error_code(b.change(|tx| clear_problem(tx, &target, &op))), archived);
        assert_eq!(
            error_code(b.change(|tx| edit_reference(tx, &task, "a.md", ReferenceEdit::Remove, &op))),
            archived
        );
        assert_eq!(error_code(b.change(|tx| focus(tx, None, &op))), archived);
        assert_eq!(error_code(b.change(|tx| archive(tx, &op))), archived);
        b.change(|tx| restore(tx, &op)).unwrap();
        assert_eq!(error_code(b.change(|tx| restore(tx, &op))), "WORKSPACE_NOT_ARCHIVED");
        b.apply(&task, Action::Start).unwrap();
    });
}

#[test]
fn create_node_checks_rules_hash() {
    let memory = InMemoryStore::new();
    let b = TestWorkspace::new(&memory, &["规则1", "规则2"]);
    let create = |check: RulesHashCheck| {
        let op = b.tick();
        let new = NewNode { rules_check: check, ..new_node(&NodeId::root(), NodeType::Execution, "x") };
        b.change(|tx| create_node(tx, new.clone(), &op)).map(|_| ())
    };
    match create(RulesHashCheck::Required(None)) {
        Err(Error::RulesHashMismatch { rules, hash, .. }) => {
            assert_eq!((rules.len(), hash.as_str()), (2, "8eb249a5"));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(error_code(create(RulesHashCheck::Required(Some("ff280711".into())))), "RULES_HASH_MISMATCH");
    assert_eq!(error_code(create(RulesHashCheck::IfGiven(Some("ff280711".into())))), "RULES_HASH_MISMATCH");
    create(RulesHashCheck::IfGiven(None)).unwrap();
    create(RulesHashCheck::Required(Some("8eb249a5".into()))).unwrap();
}

#[test]
fn info_collection_completed_twice_adds_rules_once() {
    on_both_stores(|b| {
        let op = b.tick();
        let new = NewNode {
            role: Some(NodeRole::InfoCollection),
            ..new_node(&NodeId::root(), NodeType::Execution, "收集")
        };
        let id = b.change(|tx| create_node(tx, new.clone(), &op)).unwrap().0.id;
        let conclusion = "已收集\n\n## 规则\n- 规则1\n- 规则2\n\n## 文档\n- C:\\a.md: 说明\n- /b.md: 二\n";
        for round in 0..2 {
            b.apply(&id, if round == 0 { Action::Start } else { Action::Reopen }).unwrap();
            let request = TransitionRequest {
                node_id: id.clone(),
                action: Action::Complete,
                conclusion: Some(conclusion.into()),
                claimant: Default::default(),
            };
            let op = b.tick();
            let collected = b
                .change(|tx| transition(tx, request.clone(), &op, &NoLiveSessions))
                .unwrap()
                .collected
                .unwrap();
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
fn problem_and_log_are_updated_and_cleared() {
    on_both_stores(|b| {
        for target in [Target::Workspace, Target::Node(NodeId::root())] {
            let op = b.tick();
            let problem = |description: Option<&str>, next: Option<&str>| {
                let change = ProblemChange {
                    description: description.map(String::from),
                    next_step: next.map(String::from),
                };
                b.change(|tx| update_problem(tx, &target, change.clone(), &op))
            };
            assert_eq!(
                problem(None, Some("下一步")).unwrap().description,
                "",
                "a next step without a problem"
            );
            assert_eq!(
                problem(Some("超时"), None).unwrap().next_step,
                None,
                "a new problem clears the next step"
            );
            let both = problem(None, Some("加大")).unwrap();
            assert_eq!((both.description.as_str(), both.next_step.as_deref()), ("超时", Some("加大")));
            assert_eq!(error_code(problem(None, Some(" "))), "INVALID_ARGUMENT");
            assert!(b.change(|tx| clear_problem(tx, &target, &op)).unwrap().is_some());
            assert!(b.change(|tx| clear_problem(tx, &target, &op)).unwrap().is_none());
            b.change(|tx| append_log(tx, &target, "多\n行", op.now, &op)).unwrap();
            let activity = b.view(|tx| read_activity(tx, &target));
            assert_eq!(activity.log.last().unwrap().event, "多\n行");
            assert_eq!(activity.last_log_at, Some(op.now));
            assert_eq!(activity.problem, None);
        }
    });
}

#[test]
fn cleared_problem_is_kept_in_the_log() {
    on_both_stores(|b| {
        let task = Target::Node(b.add_execution(&NodeId::root(), "任务"));
        let op = b.tick();
        let change = |description: &str, next: &str| ProblemChange {
            description: Some(description.to_owned()),
            next_step: Some(next.to_owned()),
        };
        for (description, next, expected) in
            [("超时\n每次", "加大", "已清除问题：超时⏎每次"), (" ", "只有下一步", "已清除问题：只有下一步")]
        {
            b.change(|tx| update_problem(tx, &task, change(description, next), &op)).unwrap();
            b.change(|tx| clear_problem(tx, &task, &op)).unwrap();
            let activity = b.view(|tx| read_activity(tx, &task));
            assert_eq!(activity.log.last().unwrap().event, expected);
            assert_eq!(activity.last_log_at, None, "an automatic entry does not count as a log of the agent");
        }
        let silent = OpContext { auto_log: false, ..op };
        b.change(|tx| update_problem(tx, &task, change("p", "n"), &silent)).unwrap();
        b.change(|tx| clear_problem(tx, &task, &silent)).unwrap();
        assert_eq!(b.view(|tx| read_activity(tx, &task)).log.len(), 2, "autoLog is off");
    });
}

#[test]
fn update_of_rules_is_logged_once() {
    on_both_stores(|b| {
        let op = b.tick();
        let log = || b.view(|tx| tx.workspace()).activity.log;
        let update = |set: &[&str]| {
            let set = Some(set.iter().map(ToString::to_string).collect());
            let change = WorkspaceChange {
                rules: ListEdit { set, ..ListEdit::default() },
                ..WorkspaceChange::default()
            };
            b.change(|tx| update_workspace(tx, change.clone(), &op)).unwrap();
        };
        update(&["甲", "乙"]);
        let before = log().len();
        update(&["丙", "丁", "甲"]);
        assert_eq!(log().len(), before + 1);
        assert_eq!(log().last().unwrap().event, "规则变更：新增“丙”、“丁”；移除“乙”");
        update(&["甲", "丙", "丁"]);
        assert_eq!(log().len(), before + 1, "another order is no other rule");
    });
}

fn context_of(b: &TestWorkspace<'_>, id: &NodeId) -> context::Context {
    b.view(|tx| context::assemble(tx, id, &ContextLimits::default()))
}

#[test]
fn context_has_chain_conclusions_and_references() {
    on_both_stores(|b| {
        let root = NodeId::root();
        let plan = b.add_planning(&root, "设计");
        let (a, c) = (b.add_execution(&plan, "a"), b.add_execution(&plan, "c"));
        b.apply(&a, Action::Start).unwrap();
        b.apply(&a, Action::Complete).unwrap();
        let other = b.add_execution(&root, "别处");
        b.apply(&other, Action::Start).unwrap();
        b.apply(&other, Action::Fail).unwrap();
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
            "expired references are left out"
        );
        assert!(context_of(b, &c).references.is_empty(), "only references of the focused node itself");
        b.change(|tx| delete_unclaimed(tx, &other, &op)).unwrap();
        assert!(context_of(b, &plan).references[0].missing);
    });
}

#[test]
fn isolated_node_context_has_no_ancestors() {
    on_both_stores(|b| {
        let plan = b.add_planning(&NodeId::root(), "plan");
        let inner = b.add_planning(&plan, "inner");
        let task = b.add_execution(&inner, "task");
        let op = b.tick();
        let change = NodeChange { isolated: Some(true), ..NodeChange::default() };
        b.change(|tx| update_node(tx, &inner, change.clone(), &op)).unwrap();
        let titles =
            |id: &NodeId| context_of(b, id).chain.into_iter().map(|node| node.title).collect::<Vec<_>>();
        assert_eq!(titles(&task), ["inner", "task"], "isolation also applies to descendants");
        assert_eq!(titles(&inner), ["inner"]);
        assert_eq!(titles(&plan), ["重构认证模块", "plan"]);
        assert_eq!(context_of(b, &task).workspace.goal, "换成 JWT", "the workspace block is kept");
    });
}

#[test]
fn context_over_limits_lists_omissions() {
    on_both_stores(|b| {
        let task = b.add_execution(&NodeId::root(), "task");
        let op = b.tick();
        let target = Target::Node(task.clone());
        for n in 0..40 {
            b.change(|tx| append_log(tx, &target, &format!("第 {n} 步"), op.now, &op)).unwrap();
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
        assert_eq!(node.log.last().unwrap().event, "第 39 步", "the newest entries are kept");
        let omitted: Vec<_> = context.omitted.iter().map(|o| (o.of.as_str(), o.what)).collect();
        assert_eq!(omitted, [(task.as_str(), "requirement"), (task.as_str(), "log")]);
        assert!(serde_json::to_string(&context).unwrap().len() < 40_000);
    });
}

#[test]
fn context_long_entry_keeps_other_entries() {
    on_both_stores(|b| {
        let plan = b.add_planning(&NodeId::root(), "plan");
        let op = b.tick();
        for (title, conclusion) in [("one", "short".to_owned()), ("two", "long. ".repeat(8000))] {
            let id = b.add_execution(&plan, title);
            b.apply(&id, Action::Start).unwrap();
            let request = TransitionRequest {
                node_id: id,
                action: Action::Complete,
                conclusion: Some(conclusion),
                claimant: Default::default(),
            };
            b.change(|tx| transition(tx, request.clone(), &op, &NoLiveSessions)).unwrap();
        }
        for n in 0..60 {
            let edit = ReferenceEdit::Add { description: "word ".repeat(3000) };
            b.change(|tx| edit_reference(tx, &plan, &format!("doc{n}.md"), edit.clone(), &op)).unwrap();
        }
        let context = context_of(b, &plan);
        assert_eq!(context.child_conclusions.len(), 2);
        assert!(context.omitted.iter().any(|o| o.what == "references"));
        assert!(serde_json::to_string(&context).unwrap().len() < 60_000);
        b.apply(&plan, Action::Complete).unwrap();
        b.apply(&plan, Action::Reopen).unwrap();
        let json = serde_json::to_string(&context_of(b, &plan)).unwrap();
        assert!(!json.contains("原结论"), "an outdated conclusion is left out");
    });
}

#[test]
fn list_pages_cover_tree_in_order() {
    on_both_stores(|b| {
        let root = NodeId::root();
        for name in ["a", "b", "c"] {
            let plan = b.add_planning(&root, name);
            for n in 0..3 {
                b.add_execution(&plan, &format!("{name}{n}"));
            }
        }
        let list_titles = |limit: usize, depth: Option<usize>, statuses: Vec<NodeStatus>| {
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
        let all = "重构认证模块 a a0 a1 a2 b b0 b1 b2 c c0 c1 c2";
        for limit in [1, 2, 3, 5, 13, 50] {
            assert_eq!(list_titles(limit, None, vec![]), all, "limit {limit}");
            assert_eq!(list_titles(limit, Some(1), vec![]), "重构认证模块 a b c", "limit {limit}");
            assert_eq!(
                list_titles(limit, None, vec![NodeStatus::Pending]),
                "a0 a1 a2 b0 b1 b2 c0 c1 c2",
                "limit {limit}"
            );
        }
    });
}

/// A node belongs to the session that started it, as long as that session is live.
#[test]
fn node_of_live_holder_is_protected_to_the_end() {
    on_both_stores(|b| {
        let task = b.add_execution(&NodeId::root(), "task");
        let op = b.tick();
        let transition_as = |session: Option<&str>, action, are_live, force| {
            let session = session.map(String::from);
            let request = TransitionRequest {
                node_id: task.clone(),
                action,
                conclusion: Some("done".into()),
                claimant: Claimant { session, force, ..Claimant::default() },
            };
            b.change(|tx| transition(tx, request.clone(), &op, &Holders { are_live }))
                .map(|done| done.to)
                .map_err(|error| error.code())
        };
        assert_eq!(transition_as(Some("a"), Action::Start, false, false), Ok(NodeStatus::Implementing));
        assert_eq!(transition_as(Some("b"), Action::Start, true, false), Err("NODE_TAKEN"));
        assert_eq!(transition_as(None, Action::Start, true, false), Err("NODE_TAKEN"));
        assert_eq!(
            transition_as(Some("a"), Action::Start, true, false),
            Err("INVALID_TRANSITION"),
            "a is the holder"
        );
        assert_eq!(transition_as(None, Action::Start, false, false), Err("INVALID_TRANSITION"));
        assert_eq!(
            transition_as(Some("d"), Action::Start, false, false),
            Ok(NodeStatus::Implementing),
            "a is not live"
        );
        assert_eq!(transition_as(Some("b"), Action::Start, true, true), Ok(NodeStatus::Implementing));
        assert_eq!(
            transition_as(Some("a"), Action::Start, true, false),
            Err("NODE_TAKEN"),
            "b is the holder"
        );
        for action in [Action::Submit, Action::Complete, Action::Fail] {
            for session in [Some("a"), None] {
                assert_eq!(transition_as(session, action, true, false), Err("NODE_TAKEN"), "{action}");
            }
        }
        let delete_as = |session: Option<&str>, are_live, force| {
            let claimant = Claimant { session: session.map(String::from), force, ..Claimant::default() };
            let delete = |tx: &mut dyn Tx| delete_node(tx, &task, &claimant, &op, &Holders { are_live });
            b.change(delete).map(|deleted| deleted.count).map_err(|error| error.code())
        };
        assert_eq!(delete_as(Some("a"), true, false), Err("NODE_TAKEN"));
        assert_eq!(delete_as(None, true, false), Err("NODE_TAKEN"));
        assert_eq!(transition_as(Some("b"), Action::Submit, true, false), Ok(NodeStatus::Validating));
        assert_eq!(transition_as(None, Action::Fail, true, true), Ok(NodeStatus::Failed), "forced");
        assert_eq!(transition_as(Some("b"), Action::Retry, true, false), Ok(NodeStatus::Implementing));
        assert_eq!(
            transition_as(Some("a"), Action::Complete, false, false),
            Ok(NodeStatus::Completed),
            "b is not live"
        );
        assert_eq!(transition_as(Some("c"), Action::Reopen, true, false), Ok(NodeStatus::Implementing));
        let node = b.node(&task);
        assert_eq!(node.started_by.as_deref(), Some("c"));
        assert_eq!(delete_as(Some("a"), false, false), Ok(1), "c is not live");
    });
}

#[test]
fn branches_count_all_descendants() {
    on_both_stores(|b| {
        let root = NodeId::root();
        let plan = b.add_planning(&root, "plan");
        let inner = b.add_planning(&plan, "inner");
        let [done, running, failed, open] = ["a", "b", "c", "d"].map(|title| b.add_execution(&inner, title));
        for task in [&done, &running, &failed] {
            b.apply(task, Action::Start).unwrap();
        }
        b.apply(&done, Action::Complete).unwrap();
        b.apply(&failed, Action::Fail).unwrap();
        let op = b.tick();
        let problem = ProblemChange { description: Some("stuck".into()), next_step: None };
        b.change(|tx| update_problem(tx, &Target::Node(open.clone()), problem.clone(), &op)).unwrap();
        let branches = b.view(|tx| tx.branches());
        let counts = BranchCounts { done: 1, total: 4, running: 1, failed: 1, problems: 1 };
        assert_eq!(branches[&inner], counts);
        assert_eq!(branches[&plan], BranchCounts { total: 5, ..counts.clone() });
        assert_eq!(branches[&root], BranchCounts { total: 6, ..counts });
        assert!(!branches.contains_key(&open), "a node without children has no branch");
    });
}

#[test]
fn list_in_texts_finds_words_of_log_with_excerpt_and_path() {
    on_both_stores(|b| {
        let plan = b.add_planning(&NodeId::root(), "plan");
        let task = b.add_execution(&plan, "Sign tokens");
        b.add_execution(&plan, "other");
        let op = b.tick();
        let event = format!("{} the Sandbox clock is late", "word ".repeat(40));
        b.change(|tx| append_log(tx, &Target::Node(task.clone()), &event, op.now, &op)).unwrap();
        let find = |words: &str, in_texts| {
            let words = ListQuery::split_search_words(words);
            b.view(|tx| list(tx, &ListQuery { words: words.clone(), in_texts, ..ListQuery::default() })).nodes
        };
        assert!(find("sandbox", false).is_empty(), "only titles");
        let found = find("SIGN sandbox", true);
        assert_eq!(found.iter().map(|row| &row.node.id).collect::<Vec<_>>(), [&task]);
        let text = found[0].found.as_ref().unwrap();
        assert!(text.field == "log" && text.text.contains("Sandbox clock"), "{text:?}");
        assert!(text.text.len() < 140, "{text:?}");
        let path: Vec<&str> = found[0].ancestors.iter().map(|above| above.title.as_str()).collect();
        assert_eq!(path, ["重构认证模块", "plan"]);
        assert!(find("sign", true)[0].found.is_none(), "the title says it");
        assert!(find("sign nowhere", true).is_empty());
    });
}

#[test]
fn list_with_conclusions_has_those_of_done_nodes() {
    on_both_stores(|b| {
        let task = b.add_execution(&NodeId::root(), "a");
        b.add_execution(&NodeId::root(), "b");
        b.apply(&task, Action::Start).unwrap();
        b.apply(&task, Action::Complete).unwrap();
        let query = ListQuery { with_conclusions: true, ..ListQuery::default() };
        let rows = b.view(|tx| list(tx, &query)).nodes;
        let found: Vec<Option<&str>> = rows.iter().map(|row| row.conclusion.as_deref()).collect();
        assert_eq!(found, [None, Some("complete 的结论"), None]);
    });
}

#[test]
fn node_detail_has_dependencies_and_what_to_wait_for() {
    on_both_stores(|b| {
        let root = NodeId::root();
        let (first, plan) = (b.add_execution(&root, "first"), b.add_planning(&root, "plan"));
        let second = b.add_execution(&plan, "second");
        let op = b.tick();
        let depends_on = ListEdit { set: Some(vec![first.clone()]), ..ListEdit::default() };
        let change = NodeChange { depends_on, ..NodeChange::default() };
        b.change(|tx| update_node(tx, &plan, change.clone(), &op)).unwrap();
        let detail = |id: &NodeId| b.view(|tx| store::node_detail(tx, id));
        let titles =
            |briefs: &[NodeBrief]| briefs.iter().map(|brief| brief.title.clone()).collect::<Vec<_>>();
        assert_eq!(titles(&detail(&plan).dependencies), ["first"]);
        assert_eq!(titles(&detail(&first).dependents), ["plan"]);
        let open = detail(&second).open_dependencies;
        assert_eq!(open.iter().map(|on| &on.node_id).collect::<Vec<_>>(), [&first], "inherited");
    });
}
