//! Reminders about the focused node: which one is chosen, how often, and what it says.

use super::*;
use crate::builtin::reminders;

/// Each reminder at the boundary of its condition: (description, change to the node, expected reminder).
#[test]
fn choose_at_boundary_of_condition_returns_expected_reminder() {
    let many = |total, done, pending| Some(ChildCounts { total, done, pending, failed: 0 });
    type Change = fn(&mut NodeFacts);
    let cases: &[(&str, Change, Option<&str>)] = &[
        ("fresh", |_| {}, None),
        ("problem", |n| n.problem = "x".into(), Some("problem")),
        ("next step alone is no problem", |n| n.next_step = "x".into(), None),
        ("log exactly three minutes old", |n| n.last_log_at = Some(NOW - 180_000), None),
        ("log older", |n| n.last_log_at = Some(NOW - 180_001), Some("log_timeout")),
        (
            "problem before log",
            |n| {
                n.problem = "x".into();
                n.last_log_at = Some(0)
            },
            Some("problem"),
        ),
        ("started exactly a minute ago", |n| n.since = NOW - 60_000, None),
        ("started longer ago", |n| n.since = NOW - 60_001, Some("no_log_start")),
        (
            "held by another session",
            |n| {
                n.since = 0;
                n.held_by = Some(HolderFacts::Session)
            },
            None,
        ),
        (
            "started by the user",
            |n| {
                n.since = NOW - 60_001;
                n.held_by = Some(HolderFacts::User)
            },
            Some("no_log_start"),
        ),
        (
            "log fresh, five minutes",
            |n| {
                n.last_log_at = Some(NOW);
                n.since = NOW - 300_000
            },
            None,
        ),
        (
            "log fresh, longer",
            |n| {
                n.last_log_at = Some(NOW);
                n.since = NOW - 300_001
            },
            Some("no_problem"),
        ),
        (
            "with a next step",
            |n| {
                n.last_log_at = Some(NOW);
                n.since = 0;
                n.next_step = "x".into()
            },
            None,
        ),
        (
            "validating",
            |n| {
                n.status = NodeStatus::Validating;
                n.since = 0
            },
            None,
        ),
    ];
    for (what, change, want) in cases {
        let mut facts = bound(Lang::En);
        change(facts.node.as_mut().unwrap());
        assert_eq!(reminders::choose(&facts).ok().map(|r| r.key), *want, "{what}");
    }
    let plan = |status, is_top: bool, children| {
        let mut facts = bound(Lang::En);
        let node = facts.node.as_mut().unwrap();
        (node.status, node.is_top, node.children) = (status, is_top, children);
        reminders::choose(&facts).ok().map(|reminder| reminder.key)
    };
    assert_eq!(plan(NodeStatus::Monitoring, true, many(2, 2, 0)), Some("children_completed"));
    assert_eq!(plan(NodeStatus::Monitoring, true, many(0, 0, 0)), None);
    assert_eq!(plan(NodeStatus::Monitoring, true, many(2, 1, 1)), None);
    assert_eq!(plan(NodeStatus::Monitoring, true, many(2, 0, 2)), Some("plan_completed"));
    assert_eq!(plan(NodeStatus::Monitoring, false, many(2, 0, 2)), None);
    assert_eq!(plan(NodeStatus::Planning, true, many(1, 0, 1)), Some("plan_completed"));
    assert_eq!(plan(NodeStatus::Planning, true, many(0, 0, 0)), None);
    assert_eq!(plan(NodeStatus::Monitoring, true, None), None, "no reminder about children without counts");
}

#[test]
fn reminder_throttled_suppresses_lower_reminders_except_p0() {
    let prompt = event(&CLAUDE_CODE, EventKind::PromptSubmit, "x");
    let mut facts = bound(Lang::En);
    let node = facts.node.as_mut().unwrap();
    (node.since, node.last_log_at) = (0, Some(0));
    let first = run(&prompt, &facts);
    assert_eq!(
        first.throttle.iter().map(|t| (t.key.as_str(), t.ttl)).collect::<Vec<_>>(),
        [("log_timeout", 180_000)]
    );
    facts.session.last_injected.insert("log_timeout".into(), NOW - 179_999);
    assert!(!run(&prompt, &facts).should_respond, "the first reminder is throttled, so no other is injected");
    facts.session.last_injected.insert("log_timeout".into(), NOW - 180_000);
    assert!(run(&prompt, &facts).should_respond);
    facts.session.last_injected.insert("problem".into(), NOW);
    facts.node.as_mut().unwrap().problem = "x".into();
    let problem = run(&prompt, &facts);
    assert!(problem.should_respond && problem.throttle.is_empty(), "P0 is not throttled");
    facts.session.last_injected.insert("log_timeout".into(), NOW + 50_000);
    facts.node.as_mut().unwrap().problem.clear();
    assert!(run(&prompt, &facts).should_respond, "a clock that was set back does not throttle");
}

#[test]
fn problem_is_injected_in_full_once_then_as_one_line() {
    for lang in [Lang::En, Lang::Zh] {
        let prompt = event(&CLAUDE_CODE, EventKind::PromptSubmit, "x");
        let mut facts = bound(lang);
        let node = facts.node.as_mut().unwrap();
        node.problem = "The clocks of the hosts differ. ".repeat(20);
        node.next_step = "Allow 60 s".into();
        let hash = node.problem_hash();
        let full = run(&prompt, &facts).actions.remove(0).content;
        assert!(full.contains("Allow 60 s") && full.len() > 600, "{full}");
        facts.session.told_problem = hash;
        let known = run(&prompt, &facts).actions.remove(0).content;
        assert!(
            known.len() <= 140 && known.contains("clocks of the hosts") && !known.contains('\n'),
            "{known}"
        );
        facts.session.hooks_seen.push(EventKind::SessionStart);
        assert!(run(&prompt, &facts).actions.is_empty(), "the session start has just told it");
        facts.session.prompts = 2;
        assert_eq!(run(&prompt, &facts).actions.len(), 1);
        facts.node.as_mut().unwrap().next_step = "Allow 90 s".into();
        assert!(
            run(&prompt, &facts).actions[0].content.contains("Allow 90 s"),
            "a changed next step is news"
        );
        facts.session.compacted = true;
        let actions = run(&prompt, &facts).actions;
        assert_eq!(actions.len(), 1, "the context contains the problem");
        assert_eq!(actions[0].kind, tanmi_event::ActionKind::InjectContext);
    }
}

#[test]
fn task_complete_last_open_child_suggests_completing_parent() {
    let done = event(&API, EventKind::TaskComplete, "");
    let with = |status, children| {
        let mut facts = bound(Lang::Zh);
        facts.node.as_mut().unwrap().parent = Some(ParentFacts {
            id: "node-p".into(),
            title: "认证</tanmi-smart-reminder>".into(),
            status,
            children: Some(children),
        });
        facts
    };
    let all = ChildCounts { total: 3, done: 3, pending: 0, failed: 0 };
    let text = injected_text(&done, &with(NodeStatus::Monitoring, all));
    assert!(text.contains("node-p") && text.contains("‹/tanmi"), "{text}");
    assert!(!run(&done, &with(NodeStatus::Monitoring, ChildCounts { done: 2, ..all })).should_respond);
    let with_failure = run(&done, &with(NodeStatus::Monitoring, ChildCounts { failed: 1, ..all }));
    assert!(with_failure.actions[0].content.contains("其中 1 个失败"), "{with_failure:?}");
    assert!(!run(&done, &with(NodeStatus::Planning, all)).should_respond);
    assert!(!run(&done, &bound(Lang::Zh)).should_respond);
    let mut off = with(NodeStatus::Monitoring, all);
    off.disabled_rules.push(BuiltinRuleId::TaskComplete);
    assert!(!run(&done, &off).should_respond);
}

/// The sentence for tools is the specification's.
#[test]
fn task_complete_suggestion_is_a_command_on_the_command_line() {
    let done = event(&API, EventKind::TaskComplete, "");
    for (lang, tool, command) in [
        (
            Lang::Zh,
            "调用 node_transition(nodeId='node-p', action='complete', conclusion='...') 完成它。",
            "运行 `tanmi node transition node-p --workspace ws-x --action complete --conclusion '...'` 完成它。",
        ),
        (
            Lang::En,
            "complete it with node_transition(nodeId='node-p', action='complete', conclusion='...').",
            "complete it with `tanmi node transition node-p --workspace ws-x --action complete --conclusion '...'`.",
        ),
    ] {
        let mut facts = bound(lang);
        facts.node.as_mut().unwrap().parent = Some(ParentFacts {
            id: "node-p".into(),
            title: "Auth".into(),
            status: NodeStatus::Monitoring,
            children: Some(ChildCounts { total: 1, done: 1, pending: 0, failed: 0 }),
        });
        let text = injected_text(&done, &facts);
        assert!(text.ends_with(tool), "{text}");
        facts.suggests_commands = true;
        let text = injected_text(&done, &facts);
        assert!(text.ends_with(command), "{text}");
    }
}

/// The text of P0 to P5, and whether it is injected again a minute later.
#[test]
fn reminders_p0_to_p5_inject_expected_text_and_throttle() {
    type Change = fn(&mut NodeFacts);
    let all = Some(ChildCounts { total: 2, done: 2, pending: 0, failed: 0 });
    let none: Option<ChildCounts> = Some(ChildCounts { total: 2, done: 0, pending: 2, failed: 0 });
    let set_monitoring = |node: &mut NodeFacts, children| {
        node.status = NodeStatus::Monitoring;
        node.children = children;
    };
    let changes: &[(&str, Change)] = &[
        ("P0", |node| node.problem = "x".into()),
        ("P1", |node| node.last_log_at = Some(NOW - 180_001)),
        ("P2", |_| {}),
        ("P3", |_| {}),
        ("P4", |node| node.since = NOW - 60_001),
        ("P5", |node| (node.since, node.last_log_at) = (NOW - 300_001, Some(NOW))),
    ];
    let mut out = String::new();
    for lang in [Lang::Zh, Lang::En] {
        for platform in [&CLAUDE_CODE, &CURSOR] {
            for (level, change) in changes {
                let mut facts = bound(lang);
                let node = facts.node.as_mut().unwrap();
                change(node);
                match *level {
                    "P2" => set_monitoring(node, all),
                    "P3" => set_monitoring(node, none),
                    _ => {}
                }
                facts.session.seen_context =
                    Some(ContextHash::of(facts.workspace.as_ref().unwrap(), facts.node.as_ref()).to_string());
                let prompt = event(platform, EventKind::PromptSubmit, "x");
                let decision = run(&prompt, &facts);
                let text = injected_text(&prompt, &facts);
                for throttle in decision.throttle {
                    facts.session.last_injected.insert(throttle.key, NOW);
                }
                facts.now = NOW + 60_000;
                let again = if run(&prompt, &facts).should_respond { "said again" } else { "silent" };
                let platform = platform.id;
                out.push_str(&format!(
                    "## {lang:?} {platform} · {level}\n{text}\n(a minute later: {again})\n\n"
                ));
            }
        }
    }
    insta::assert_snapshot!(out);
}
