//! Tests of the texts for moments that decide whether the work goes on: a plan without a started task, and a
//! last session without a summary.

use super::*;
use crate::facts::{DigestFacts, HolderFacts, WorkedLog, WorkedNode};

#[test]
fn plan_confirm_follows_unstarted_plan_until_it_was_told() {
    let prompt = event(&CLAUDE_CODE, EventKind::PromptSubmit, "x");
    for (has_focus, has_plan) in [(false, true), (false, false), (true, true), (true, false)] {
        for (lang, text) in [
            (Lang::En, "📋 The plan has 6 tasks and none is started."),
            (Lang::Zh, "📋 计划节点已创建完子任务。"),
        ] {
            let mut facts = bound(lang);
            if !has_focus {
                facts.node = None;
            }
            let workspace = facts.workspace.as_mut().unwrap();
            workspace.unstarted_tasks = Some(if has_plan { 6 } else { 0 });
            facts.session.seen_context = Some(ContextHash::of(workspace, facts.node.as_ref()).to_string());
            let decision = run(&prompt, &facts);
            let told = decision.actions.iter().any(|action| action.content.starts_with(text));
            assert_eq!(told, has_plan, "{has_focus} {decision:?}");
            if has_plan {
                assert_eq!(decision.actions.len(), 1);
                assert!(decision.actions[0].content.len() <= 200, "{decision:?}");
                assert_eq!(decision.throttle[0].key, "plan_completed");
                facts.session.last_injected.insert("plan_completed".into(), NOW - 179_999);
                facts.session.has_unconfirmed_plan = true;
                assert!(!run(&prompt, &facts).should_respond, "throttled");
                facts.session.last_injected.insert("plan_completed".into(), NOW - 180_000);
                assert!(run(&prompt, &facts).should_respond, "the session created nodes since");
                facts.session.has_unconfirmed_plan = false;
                assert!(!run(&prompt, &facts).should_respond, "the user has seen the plan");
            }
        }
    }
}

fn node(id: &str, title: &str, text: &str) -> WorkedNode {
    WorkedNode { workspace: "ws-x".into(), id: id.into(), title: title.into(), text: text.into() }
}

fn digest() -> DigestFacts {
    DigestFacts {
        id: "s 2025-12-10 18:07".into(),
        at: "2025-12-10 18:07".into(),
        moved: ["a", "b", "c", "d", "e", "f"]
            .map(|name| node(&format!("node-{name}"), "Check tokens", "implementing"))
            .to_vec(),
        problems: vec![node("node-b", "", "clock skew")],
        logs: vec![WorkedLog { lines: 3, last: node("node-b", "", "signed with RS256") }],
        facts: 1,
        is_partial: false,
        is_known: false,
    }
}

/// Returns the memory text of a session start with this digest.
fn memory_text(lang: Lang, digest: DigestFacts, summary: Option<SummaryFacts>) -> String {
    let memory = MemoryFacts { digest: Some(digest), summary, ..MemoryFacts::default() };
    let facts = Facts { memory: Ok(memory), ..bound(lang) };
    texts(&event(&CLAUDE_CODE, EventKind::SessionStart, ""), &facts).remove(1)
}

#[test]
fn memory_load_digest_is_marked_as_derived() {
    assert_eq!(
        memory_text(Lang::En, digest(), None),
        "## Last session (2025-12-10 18:07, derived from its calls)\n\n\
         - Problem: node-b: clock skew\n\
         - Nodes: Check tokens (implementing) node-a; Check tokens (implementing) node-b; Check tokens (implementing) node-c; Check tokens (implementing) node-d; 2 more\n\
         - Log lines: 3, last: signed with RS256\n\
         - Facts saved: 1"
    );
    let summary = SummaryFacts { topic: "认证".into(), ..SummaryFacts::default() };
    assert_eq!(
        memory_text(Lang::Zh, DigestFacts { is_partial: true, ..digest() }, Some(summary)),
        "## 上次会话（2025-12-10 18:07，由最近的调用记录得出）\n\n\
         - 问题：node-b: clock skew\n\
         - 节点：Check tokens (implementing) node-a；Check tokens (implementing) node-b；Check tokens (implementing) node-c；Check tokens (implementing) node-d；另有 2 个\n\
         - 日志：3 条，最近：signed with RS256\n\
         - 保存的事实：1\n\n\
         ## 上次摘要\n\n- 主题：认证"
    );
}

#[test]
fn memory_load_digest_leaves_out_what_the_context_tells() {
    let memory = MemoryFacts { digest: Some(digest()), ..MemoryFacts::default() };
    let mut facts = Facts { memory: Ok(memory), ..bound(Lang::En) };
    let focus = facts.node.as_mut().unwrap();
    focus.id = "node-b".into();
    let text = texts(&event(&CLAUDE_CODE, EventKind::SessionStart, ""), &facts).remove(1);
    assert!(text.contains("derived") && !text.contains("Problem") && !text.contains(", last"), "{text}");
    assert!(text.contains("Nodes: ") && !text.contains("node-b"), "the other node: {text}");

    let memory = facts.memory.as_mut().unwrap();
    let moved = vec![node("node-b", "Check tokens", "implementing")];
    memory.digest = Some(DigestFacts { moved, facts: 0, ..digest() });
    let texts = texts(&event(&CLAUDE_CODE, EventKind::SessionStart, ""), &facts);
    assert!(!texts.iter().any(|text| text.contains("derived")), "nothing is left: {texts:?}");
}

#[test]
fn memory_load_digest_counts_only_nodes_of_the_bound_workspace() {
    let mut digest = digest();
    let nodes = digest.moved.iter_mut().chain(&mut digest.problems);
    nodes
        .chain(digest.logs.iter_mut().map(|log| &mut log.last))
        .for_each(|node| node.workspace = "ws-y".into());
    let told = |digest: &DigestFacts| {
        let memory = MemoryFacts { digest: Some(digest.clone()), ..MemoryFacts::default() };
        let facts = Facts { memory: Ok(memory), ..bound(Lang::En) };
        texts(&event(&CLAUDE_CODE, EventKind::SessionStart, ""), &facts).remove(1)
    };
    let heading = "## Last session (2025-12-10 18:07, derived from its calls)\n\n";
    assert_eq!(told(&digest), format!("{heading}- Facts saved: 1"));
    digest.moved[5].workspace = "ws-x".into();
    assert!(told(&digest).contains("- Nodes: Check tokens (implementing) node-f\n"), "{}", told(&digest));
}

#[test]
fn subagent_is_asked_to_log_only_on_a_node_that_its_session_works_on() {
    let is_asked = |change: fn(&mut NodeFacts)| {
        let mut facts = bound(Lang::En);
        change(facts.node.as_mut().unwrap());
        injected_text(&event(&CLAUDE_CODE, EventKind::SubagentStart, ""), &facts).contains("log_append")
    };
    assert!(is_asked(|_| {}) && is_asked(|node| node.held_by = Some(HolderFacts::User)));
    assert!(!is_asked(|node| node.held_by = Some(HolderFacts::Session)));
    assert!(!is_asked(|node| node.status = NodeStatus::Completed));
}

#[test]
fn digest_last_log_line_names_a_node_that_is_not_among_the_named_ones() {
    let digest = digest();
    assert_eq!(digest.last_log_line(), "signed with RS256");
    let last = node("node-f", "", "signed");
    let digest = DigestFacts { logs: vec![WorkedLog { lines: 1, last }], ..digest };
    assert_eq!(digest.last_log_line(), "node-f: signed");
}

#[test]
fn memory_load_digest_without_parts_has_no_empty_lines() {
    let logged = DigestFacts {
        logs: vec![WorkedLog { lines: 1, last: node("root", "", "x") }],
        at: "t".into(),
        ..DigestFacts::default()
    };
    assert_eq!(
        memory_text(Lang::En, logged, None),
        "## Last session (t, derived from its calls)\n\n- Log lines: 1, last: root: x"
    );
}

#[test]
fn memory_load_long_digest_tells_problems_and_nodes() {
    // As long as a session state keeps them.
    let title = "很".repeat(40);
    let digest = DigestFacts {
        moved: vec![node("node-mj2hy912-u02rz9", &title, "implementing"); 4],
        problems: vec![node("node-mj2hy912-u02rz9", "", &title); 4],
        ..digest()
    };
    let text = memory_text(Lang::Zh, digest, None);
    assert!(text.contains("- 问题：node-mj2hy912-u02rz9: 很") && text.contains("- 节点：很"), "{text}");
}

#[test]
fn memory_load_long_digest_is_cut() {
    for lang in [Lang::En, Lang::Zh] {
        let long = || vec![node("node-a", &"很长的标题".repeat(60), &"very long".repeat(60)); 4];
        let digest = DigestFacts { moved: long(), problems: long(), ..digest() };
        let text = memory_text(lang, digest, None);
        let pointer = text.lines().last().unwrap();
        assert!(pointer.contains("memory_search"), "{text}");
        assert!(text.len() - pointer.len() <= 700, "{}", text.len());
    }
}
