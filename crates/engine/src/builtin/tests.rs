//! Tests of the built-in rules: event and facts in, injected text out.

use tanmi_base::Lang;
use tanmi_event::{API, Decision, Event, EventKind, Payload, Platform, Source};
use tanmi_platform::{CLAUDE_CODE, CURSOR};
use tanmi_workspace::model::NodeStatus;

use super::*;
use crate::context_hash::ContextHash;
use crate::facts::{
    AvailableFacts, AvailableWorkspace, ChildCounts, DamagedNodeFacts, DayFacts, FactLine, HolderFacts,
    InProgressFacts, LostClaimFacts, MemoryFacts, NextFacts, NodeFacts, NodeProblemFacts, OverviewFacts,
    ParentFacts, ProblemFacts, RefusedWriteFacts, SessionFacts, SummaryFacts, SurroundingsFacts, TimeFacts,
    WaitsFor, WorkspaceFacts,
};
use crate::{BUILTIN_RULES, decide};

mod context;
mod hostile;
mod moments;
mod reminders;

const NOW: i64 = 1_765_432_100_000;

fn event(platform: &'static Platform, kind: EventKind, prompt: &str) -> Event {
    let payload = Payload { prompt: Some(prompt.into()), ..Payload::default() };
    Event { source: Source::Hook, platform, kind, session: "abc123".into(), payload }
}

fn unbound(lang: Lang) -> Facts {
    Facts {
        now: NOW,
        lang,
        session: SessionFacts { id: "abc123".into(), prompts: 1, ..SessionFacts::default() },
        workspace: None,
        node: None,
        available: available(),
        refresh_every: 10,
        disabled_rules: Vec::new(),
        memory: Err(("", "")),
        declared: Err(("", "")),
        has_refused_files: false,
        memory_enabled: true,
        has_project_data: true,
        suggests_commands: false,
    }
}

fn bound(lang: Lang) -> Facts {
    let zh = lang == Lang::Zh;
    let workspace = WorkspaceFacts {
        id: "ws-x".into(),
        name: if zh { "重构认证模块" } else { "Rework auth" }.into(),
        goal: if zh { "将 session 认证替换为 JWT" } else { "Replace sessions by JWT" }.into(),
        rules: vec![if zh { "密钥必须从环境变量读取" } else { "Keys come from the environment" }.into()],
        rules_hash: "ff280711".into(),
        docs: vec!["docs/jwt.md: x".into()],
        progress: Some((3, 5)),
        ..WorkspaceFacts::default()
    };
    let node = NodeFacts {
        id: "node-y".into(),
        title: if zh { "实现 token 验证" } else { "Check tokens" }.into(),
        status: NodeStatus::Implementing,
        requirement: if zh { "验证签名" } else { "Check the signature" }.into(),
        is_top: true,
        since: NOW - 30_000,
        ..NodeFacts::default()
    };
    let seen_context = Some(ContextHash::of(&workspace, Some(&node)).to_string());
    let told_rules = Some(workspace.rules.clone());
    let session = SessionFacts { seen_context, told_rules, ..unbound(lang).session };
    Facts { workspace: Some(workspace), node: Some(node), session, ..unbound(lang) }
}

fn available() -> AvailableFacts {
    let workspace = |id: &str, name: &str, done| AvailableWorkspace {
        id: id.into(),
        name: name.into(),
        created_at: 0,
        progress: Some((done, 8)),
        overview: OverviewFacts::default(),
    };
    AvailableFacts {
        total: 5,
        archived: 0,
        damaged: 0,
        first: vec![workspace("ws-x", "Rework auth", 3), workspace("ws-y", "Docs site", 0)],
    }
}

fn refused_writes() -> Vec<RefusedWriteFacts> {
    let write = |text: &str| RefusedWriteFacts {
        text: text.to_owned(),
        reason: String::from("workspace ws-mg8k2x9a-4hj7qp is archived"),
    };
    vec![write("Tokens are signed with RS256"), write("Rotated the key")]
}

fn damaged_focus() -> DamagedNodeFacts {
    DamagedNodeFacts {
        id: "node-y".into(),
        place: "/p/.tanmi-workspace/ws-x/nodes/node-y/Node.md:3".into(),
        reason: tanmi_base::Bilingual::new("缺少 status", "status is missing"),
    }
}

fn lost_claims() -> Vec<LostClaimFacts> {
    let claim = |title: &str, by: &str| LostClaimFacts {
        id: "node-mg8k2x9a-4hj7qp".into(),
        title: title.into(),
        by: by.into(),
        is_taken: true,
        is_deleted: false,
        is_restored: false,
    };
    vec![claim("Issue tokens", "bob (build-server · Claude Code)"), claim("Check tokens", "")]
}

fn with_surroundings(lang: Lang) -> Facts {
    let mut facts = bound(lang);
    facts.node.as_mut().unwrap().surroundings = SurroundingsFacts {
        ancestors: vec!["Tokens".into()],
        log: vec!["2025-12-10 14:02:00 signed with RS256".into()],
        conclusions: vec!["Choose a library (completed): jsonwebtoken\nsecond line".into()],
        dependencies: vec!["Agree on claims (completed): sub and exp only".into()],
        references: vec!["docs/jwt.md: how tokens look".into()],
    };
    facts
}

fn with_overview(lang: Lang) -> Facts {
    let next = |id: &str, title: &str, on: Option<&str>| NextFacts {
        id: id.into(),
        title: title.into(),
        waits_for: on.map(|on| WaitsFor { title: on.into(), status: None }),
    };
    let time = |stamp: &str, day| TimeFacts { stamp: stamp.into(), day };
    let in_progress = |holder: Option<&str>| InProgressFacts {
        id: "node-a".into(),
        title: "Issue tokens".into(),
        status: "implementing".into(),
        last_log: Some((time("2025-12-10 14:02:00", DayFacts::Yesterday), "signed with RS256".into())),
        holder: holder.map(String::from),
        holder_name: holder.filter(|holder| *holder == "bob-1").map(|_| "bob (build-server)".into()),
        has_holder_ended: holder == Some("other"),
        since: match holder {
            Some("abc123") => time("2025-12-11 13:00:00", DayFacts::Today),
            _ => time("2025-12-09 13:00:00", DayFacts::Other),
        },
    };
    let problem = ProblemFacts { description: "KMS access is missing".into(), next_step: "ask ops".into() };
    let overview = OverviewFacts {
        problem: None,
        in_progress: vec![
            in_progress(Some("abc123")),
            in_progress(Some("other")),
            in_progress(Some("bob-1")),
            in_progress(Some("@person")),
            in_progress(None),
        ],
        problems: vec![NodeProblemFacts {
            id: "node-b".into(),
            title: "Check tokens".into(),
            problem: ProblemFacts { description: "clock skew".into(), next_step: "allow 60 s".into() },
        }],
        has_more: true,
        next: vec![next("node-c", "Check tokens", None), next("node-d", "Roll out", Some("Check tokens"))],
    };
    let mut facts = Facts { node: None, ..bound(lang) };
    let workspace = facts.workspace.as_mut().unwrap();
    (workspace.overview, workspace.problem) = (overview, Some(problem));
    facts
}

/// Returns the facts of an unbound session that has started, in a project with one workspace.
fn with_one_workspace(lang: Lang) -> Facts {
    let mut facts = unbound(lang);
    facts.session.hooks_seen.push(EventKind::SessionStart);
    facts.session.total_prompts = 1;
    facts.available.total = 1;
    facts.available.first.truncate(1);
    facts.available.first[0].overview = with_overview(lang).workspace.unwrap().overview;
    facts
}

fn run(event: &Event, facts: &Facts) -> Decision {
    decide(event, facts, BUILTIN_RULES, &[], &mut |_, _| {})
}

fn injected_text(event: &Event, facts: &Facts) -> String {
    let decision = run(event, facts);
    assert_eq!(decision.should_respond, !decision.actions.is_empty());
    let line = |action: &tanmi_event::DecisionAction| {
        format!("[{} {}] {}", action.rule, action.priority, action.content)
    };
    decision.actions.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn builtin_rules_by_event_and_platform_inject_expected_text() {
    let mut out = String::new();
    for lang in [Lang::Zh, Lang::En] {
        for platform in [&CLAUDE_CODE, &CURSOR] {
            let start = event(platform, EventKind::SessionStart, "");
            let prompt = |text| event(platform, EventKind::PromptSubmit, text);
            let mut show = |what: &str, text: String| {
                let text = if text.is_empty() { String::from("(silent)") } else { text };
                out.push_str(&format!("## {lang:?} {} · {what}\n{text}\n\n", platform.id));
            };
            show("start, bound", injected_text(&start, &bound(lang)));
            show("start, bound, with surroundings", injected_text(&start, &with_surroundings(lang)));
            let mut held = bound(lang);
            held.node.as_mut().unwrap().held_by =
                Some(HolderFacts::Named("bob (build-server · Claude Code)".into()));
            show("start, bound, held by another", injected_text(&start, &held));
            show("start, bound, no focus", injected_text(&start, &with_overview(lang)));
            show("start, unbound", injected_text(&start, &unbound(lang)));
            show("prompt, bound, nothing to remind of", injected_text(&prompt("x"), &bound(lang)));
            let mut problem = bound(lang);
            problem.node.as_mut().unwrap().problem = "Timeout".into();
            show("prompt, bound, reminder", injected_text(&prompt("x"), &problem));
            let mut changed = bound(lang);
            changed.workspace.as_mut().unwrap().rules.push("new".into());
            show("prompt, bound, rules changed", injected_text(&prompt("x"), &changed));
            let mut lost = bound(lang);
            lost.session.lost_claims = lost_claims();
            show("prompt, bound, claim taken over", injected_text(&prompt("x"), &lost));
            lost.session.lost_claims.truncate(1);
            lost.session.lost_claims[0].is_taken = false;
            show("prompt, bound, claim ended", injected_text(&prompt("x"), &lost));
            let mut refused = bound(lang);
            refused.session.refused_writes = refused_writes();
            let mut back = lost.clone();
            back.session.lost_claims[0].is_restored = true;
            back.session.lost_claims.push(lost_claims().swap_remove(1));
            show("prompt, bound, one restored and one lost", injected_text(&prompt("x"), &back));
            lost.session.lost_claims[0].by = "@person".into();
            show("prompt, bound, claim ended by the user", injected_text(&prompt("x"), &lost));
            let mut damaged = Facts { node: None, ..bound(lang) };
            damaged.workspace.as_mut().unwrap().damaged_focus = Some(damaged_focus());
            show("start, bound, focus damaged", injected_text(&start, &damaged));
            show("prompt, bound, focus damaged", injected_text(&prompt("x"), &damaged));
            let mut archived = Facts { workspace: None, node: None, ..bound(lang) };
            archived.session.archived_workspace = Some(("ws-x".into(), "Rework auth".into()));
            show("start, workspace archived", injected_text(&start, &archived));
            show("prompt, workspace archived", injected_text(&prompt("go on"), &archived));
            let mut gone = Facts { workspace: None, node: None, ..bound(lang) };
            gone.session.lost_workspace = Some("ws-x".into());
            show("start, workspace lost", injected_text(&start, &gone));
            gone.session.lost_workspace = None;
            gone.session.deleted_workspace = Some(("ws-x".into(), "Rework auth".into()));
            show("start, workspace deleted", injected_text(&start, &gone));
            show("prompt, bound, write refused", injected_text(&prompt("x"), &refused));
            show("prompt, unbound, keyword", injected_text(&prompt("继续工作区任务"), &unbound(lang)));
            let none = Facts { available: AvailableFacts::default(), ..unbound(lang) };
            show("start, unbound, no workspace", injected_text(&start, &none));
            let mut all_archived = none.clone();
            all_archived.available.archived = 2;
            show("start, unbound, only archived workspaces", injected_text(&start, &all_archived));
            let untrusted = Facts {
                available: AvailableFacts { total: 2, ..AvailableFacts::default() },
                ..unbound(lang)
            };
            show("start, unbound, not trusted", injected_text(&start, &untrusted));
            let mut started = unbound(lang);
            started.session.hooks_seen.push(EventKind::SessionStart);
            show(
                "prompt, unbound, keyword, after a start",
                injected_text(&prompt("继续工作区任务"), &started),
            );
            show(
                "prompt, unbound, continue, one workspace",
                injected_text(&prompt("continue where we left off"), &with_one_workspace(lang)),
            );
            show(
                "prompt, unbound, keyword, nothing to bind to",
                injected_text(&prompt("continue the workspace"), &none),
            );
            let mut subagent = event(platform, EventKind::SubagentStart, "");
            subagent.payload.agent_type = Some("Explore".into());
            show("subagent, bound", injected_text(&subagent, &bound(lang)));
            show("subagent, unbound", injected_text(&subagent, &unbound(lang)));
            show(
                "prompt, unbound, ordinary",
                injected_text(&prompt("list 和 tuple 有什么区别？"), &unbound(lang)),
            );
        }
    }
    insta::assert_snapshot!(out);
}

#[test]
fn claim_lost_with_long_names_stays_within_300_bytes() {
    for (lang, long) in [(Lang::Zh, "很长的标题"), (Lang::En, "a long title ")] {
        let mut facts = bound(lang);
        facts.session.lost_claims = lost_claims();
        facts.session.lost_claims.truncate(1);
        let claim = &mut facts.session.lost_claims[0];
        (claim.title, claim.by) = (long.repeat(30), long.repeat(30));
        let decision = run(&event(&CLAUDE_CODE, EventKind::PromptSubmit, "x"), &facts);
        let text = &decision.actions[0].content;
        assert!(text.len() <= 300, "{} bytes: {text}", text.len());
    }
}

#[test]
fn write_refused_with_long_texts_stays_within_420_bytes() {
    for (lang, long) in [(Lang::Zh, "很长的文本"), (Lang::En, "a long text ")] {
        let mut facts = bound(lang);
        facts.session.refused_writes = refused_writes();
        let write = &mut facts.session.refused_writes[0];
        (write.text, write.reason) = (long.repeat(50), long.repeat(50));
        let decision = run(&event(&CLAUDE_CODE, EventKind::PromptSubmit, "x"), &facts);
        let text = &decision.actions[0].content;
        assert!(text.len() <= 420, "{} bytes: {text}", text.len());
    }
}

#[test]
fn binding_hint_depends_on_prompt_and_on_unbind() {
    let has_hint = |prompt: &str, after_unbind: bool| {
        let mut facts = unbound(Lang::En);
        facts.session.was_unbound_by_user = after_unbind;
        run(&event(&CLAUDE_CODE, EventKind::PromptSubmit, prompt), &facts).should_respond
    };
    assert!(has_hint("continue the workspace", false));
    assert!(!has_hint("```rust\nlet workspace = 1;\nlet tanmi = workspace;\n```", false), "mostly code");
    assert!(!has_hint("", false));
    assert!(!has_hint("下一个任务", true), "after an unbind fewer words count");
    assert!(has_hint("继续工作区", true));
}

#[test]
fn binding_hint_first_prompt_asks_to_continue_tells_overview_of_latest_workspace_once() {
    let hint = |prompt: &str, facts: &Facts| {
        injected_text(&event(&CLAUDE_CODE, EventKind::PromptSubmit, prompt), facts)
    };
    let first = with_one_workspace(Lang::En);
    for prompt in ["go on", "Continue.", "continue where we left off"] {
        let text = hint(prompt, &first);
        assert!(text.contains("session_bind") && text.contains("In progress: Issue tokens"), "{text}");
        assert!(text.ends_with("Next: Check tokens node-c; Roll out node-d (after Check tokens)"), "{text}");
        assert!(!text.contains("Latest workspace"), "{text}");
    }
    let mut several = first.clone();
    several.available.total = 2;
    let text = hint("continue where we left off", &several);
    assert!(text.contains("\nLatest workspace: Rework auth (ws-x)\nIn progress: Issue tokens"), "{text}");
    let mut again = first.clone();
    again.session.told_latest = true;
    let text = hint("continue where we left off", &again);
    assert!(text.contains("session_bind") && !text.contains("In progress"), "told once: {text}");
    let mut later = first.clone();
    later.session.total_prompts = 2;
    assert_eq!(hint("go on", &later), "", "it means the conversation");
    assert_ne!(hint("continue where we left off", &later), "");
    let none = Facts { available: AvailableFacts::default(), ..first.clone() };
    assert_eq!(hint("go on", &none), "", "nothing to continue");
    let mut unbound_on_purpose = first;
    unbound_on_purpose.session.was_unbound_by_user = true;
    assert_eq!(hint("go on", &unbound_on_purpose), "");
}

#[test]
fn binding_hint_names_workspace_created_since_start() {
    let prompt = event(&CLAUDE_CODE, EventKind::PromptSubmit, "which workspace?");
    for (lang, created_at, is_named) in
        [(Lang::En, 2, true), (Lang::Zh, 2, true), (Lang::En, 1, false), (Lang::Zh, 1, false)]
    {
        let mut facts = with_one_workspace(lang);
        facts.session.started_at = 1;
        facts.session.hooks_seen = vec![EventKind::SessionStart];
        facts.available.first[0].created_at = created_at;
        let text = injected_text(&prompt, &facts);
        assert_eq!(text.contains("Rework auth (ws-x"), is_named, "{text}");
    }
}

#[test]
fn decide_tool_call_after_hook_ran_is_suppressed() {
    let mut tool_call = event(&CLAUDE_CODE, EventKind::SessionStart, "");
    tool_call.source = Source::Mcp;
    let mut facts = bound(Lang::En);
    assert!(run(&tool_call, &facts).should_respond, "a hook that is not installed suppresses nothing");
    facts.session.hooks_seen.push(EventKind::SessionStart);
    assert!(!run(&tool_call, &facts).should_respond);
}

/// Returns the texts that one event injects.
fn texts(event: &Event, facts: &Facts) -> Vec<String> {
    run(event, facts).actions.into_iter().map(|action| action.content).collect()
}

#[test]
fn session_info_in_chinese_contains_specified_sentence() {
    let start = event(&CLAUDE_CODE, EventKind::SessionStart, "");
    let injected = texts(&start, &unbound(Lang::Zh));
    assert!(injected[0].starts_with("你的会话 ID 是 abc123，可以用它调用 session_bind"), "{injected:?}");
}

/// Commands and paths differ from the specification; the other sentences are equal to it.
#[test]
fn memory_flush_in_chinese_contains_specified_sentences() {
    let mut before = event(&CURSOR, EventKind::PreCompact, "");
    (before.payload.usage_percent, before.payload.message_count) = (Some(85), Some(30));
    let injected = texts(&before, &unbound(Lang::Zh));
    let paragraphs: Vec<&str> = injected[0].split("\n\n").collect();
    assert_eq!(paragraphs[0], "[Memory Flush]");
    let intro = "上下文即将压缩（当前使用率 85%，消息数 30）。请回顾当前对话，将关键事实保存到";
    assert!(paragraphs[1].starts_with(intro), "{injected:?}");
    assert_eq!(
        paragraphs[2],
        "写入规则：提取关键事实（技术决策、架构选择）、用户偏好（编码风格、工具选择）、项目经历（里程碑、重要变更）"
    );
    assert!(paragraphs[3].starts_with("写入方式："), "{injected:?}");
    assert!(
        paragraphs[4].ends_with("分类：W(客观事实) / B(项目经历) / O(用户偏好，需标注 confidence)"),
        "{injected:?}"
    );
    assert_eq!(
        paragraphs[5..],
        ["注意：无需保存则不操作；静默继续，不向用户报告；不重复 MEMORY.md 已有内容"]
    );
}

#[test]
fn memory_flush_without_usage_has_no_numbers() {
    for (lang, text) in [(Lang::Zh, "上下文即将压缩。"), (Lang::En, "The context is about to be compacted. ")]
    {
        let injected = texts(&event(&CURSOR, EventKind::PreCompact, ""), &unbound(lang)).remove(0);
        assert!(injected.contains(text) && !injected.contains('?'), "{injected}");
        let mut half = event(&CURSOR, EventKind::PreCompact, "");
        half.payload.usage_percent = Some(85);
        let injected = texts(&half, &unbound(lang)).remove(0);
        assert!(injected.contains("85%") && !injected.contains('?'), "{injected}");
    }
}

#[test]
fn session_info_after_compaction_without_project_data_is_silent() {
    let mut start = event(&CLAUDE_CODE, EventKind::SessionStart, "");
    let none = Facts { available: AvailableFacts::default(), has_project_data: false, ..unbound(Lang::En) };
    assert!(run(&start, &none).should_respond);
    start.payload.start = Some(tanmi_event::StartSource::Compact);
    assert!(!run(&start, &none).should_respond);
    assert!(run(&start, &unbound(Lang::En)).should_respond);
}

#[test]
fn session_info_without_workspace_stays_within_120_bytes() {
    for lang in [Lang::Zh, Lang::En] {
        let mut facts = Facts { available: AvailableFacts::default(), ..unbound(lang) };
        facts.session.id = String::from("0a1b2c3d-1111-4222-8333-444455556666");
        let text = texts(&event(&CLAUDE_CODE, EventKind::SessionStart, ""), &facts).remove(0);
        assert!(text.len() <= 130 && !text.contains("session_bind"), "{} {text}", text.len());
    }
}

#[test]
fn session_save_asks_after_enough_work_and_time() {
    let minutes = |n: i64| n * 60_000;
    let stop = event(&CURSOR, EventKind::Stop, "");
    let ask = |change: fn(&mut Facts)| {
        let mut facts = unbound(Lang::En);
        facts.session.started_at = NOW - 15 * 60_000;
        facts.session.prompts_since_summary = 5;
        change(&mut facts);
        texts(&stop, &facts).len() == 1
    };
    assert!(ask(|_| ()));
    assert!(!ask(|facts| facts.session.prompts_since_summary = 4));
    assert!(ask(|facts| {
        (facts.session.prompts_since_summary, facts.session.completed_since_summary) = (1, 1);
    }));
    assert!(!ask(|facts| facts.session.started_at += 1), "the session is younger than 15 minutes");
    assert!(!ask(|facts| facts.session.summary_requested_at = Some(NOW - 30 * 60_000 + 1)));
    assert!(ask(|facts| facts.session.summary_requested_at = Some(NOW - 30 * 60_000)));
    assert!(!ask(|facts| facts.has_project_data = false), "a project without data is left alone");
    let mut facts = unbound(Lang::Zh);
    (facts.session.started_at, facts.session.prompts_since_summary) = (NOW - minutes(15), 5);
    for lang in [Lang::Zh, Lang::En] {
        facts.lang = lang;
        let text = texts(&stop, &facts).remove(0);
        assert!(text.starts_with("[Session Save]") && text.len() <= 220 && !text.contains('\n'), "{text}");
    }
}

#[test]
fn memory_flush_project_without_data_is_silent() {
    let mut after = event(&CLAUDE_CODE, EventKind::SessionStart, "");
    after.payload.start = Some(tanmi_event::StartSource::Compact);
    for event in [event(&CURSOR, EventKind::PreCompact, ""), after] {
        let facts = bound(Lang::En);
        let has_flush =
            |facts: &Facts| run(&event, facts).actions.iter().any(|a| a.rule.as_str() == "memory-flush");
        assert!(has_flush(&facts));
        assert!(!has_flush(&Facts { has_project_data: false, ..facts }));
    }
}

#[test]
fn memory_load_in_chinese_contains_specified_headings() {
    let fact = FactLine {
        day: "2026-02-16".into(),
        letter: "W",
        content: "决定使用 JWT 认证".into(),
        ..FactLine::default()
    };
    let memory = MemoryFacts {
        as_of: None,
        core: "- 数据库：PostgreSQL".into(),
        digest: None,
        summary: Some(SummaryFacts {
            topic: "认证".into(),
            summary: "替换为 JWT".into(),
            ..SummaryFacts::default()
        }),
        recent: vec![fact],
        related: Vec::new(),
    };
    let facts = Facts { memory: Ok(memory), ..bound(Lang::Zh) };
    let injected = texts(&event(&CURSOR, EventKind::SessionStart, ""), &facts);
    assert_eq!(
        injected[1],
        "## 核心记忆\n\n- 数据库：PostgreSQL\n\n## 上次会话\n\n- 主题：认证\n- 摘要：替换为 JWT\n\n\
         ## 近期事实\n\n- [2026-02-16][W] 决定使用 JWT 认证"
    );
}
