//! Tests of the codec: any text round-trips in any field, usual ways of writing by hand are accepted, and
//! content of the user is kept.

use proptest::prelude::*;
use tanmi_base::Lang;

use super::*;
use crate::model::*;

fn sample_node() -> Node {
    Node {
        id: NodeId::parse("node-a").unwrap(),
        title: "实现 token 验证".into(),
        kind: NodeType::Execution,
        status: NodeStatus::Implementing,
        role: None,
        requirement: "验证 JWT\n\n```rust\n## not a heading\n```".into(),
        conclusion: None,
        note: String::new(),
        parent_id: Some(NodeId::root()),
        isolated: false,
        depends_on: Vec::new(),
        order: Some(1),
        docs: vec![DocReference {
            path: "C:\\docs\\a.md".into(),
            description: "说明".into(),
            status: RefStatus::Active,
        }],
        references: vec![Reference::new("node-b", "上游")],
        created_at: 1,
        updated_at: 2,
        status_changed_at: Some(2),
        started_by: Some(" s: 会话 \"1\" #2 ".into()),
        agent: None,
        activity: Activity {
            log: vec![LogEntry {
                timestamp: "2024-01-01 10:00:00".into(),
                operator: Operator::Ai,
                event: "开始".into(),
            }],
            last_log_at: Some(3),
            problem: Some(Problem {
                description: "超时".into(),
                next_step: Some("加大".into()),
                updated_at: 4,
            }),
        },
    }
}

fn read(text: &str) -> Node {
    let doc = Document::parse(text.as_bytes()).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    read_node(&doc, &NodeId::parse("node-a").unwrap()).unwrap_or_else(|e| panic!("{e:?}\n{text}"))
}

/// Reads a node, changes it, writes it, and checks that the text reads back as the changed node.
fn rewrite(text: &str, change: impl FnOnce(&mut Node)) -> String {
    let doc = Document::parse(text.as_bytes()).unwrap();
    let before = read_node(&doc, &NodeId::parse("node-a").unwrap()).unwrap();
    let mut after = before.clone();
    change(&mut after);
    let written = write_node(Some((&doc, &before)), &after);
    assert_eq!(read(&written), after, "{written}");
    written
}

#[test]
fn new_node_matches_specified_format() {
    let text = write_node(None, &sample_node());
    assert_eq!(read(&text), sample_node());
    insta::assert_snapshot!(text);
}

#[test]
fn specification_example_is_read() {
    let text = "---\nid: node-a\ntitle: 节点标题\ntype: execution\nstatus: implementing\nrole: null\nparentId: root\n\
        isolated: false\ncreatedAt: 1234567890\nupdatedAt: 1234567890\n---\n\n## Requirement\n\n需求描述内容\n\n\
        ## Conclusion\n\n结论内容\n\n## Note\n\n备注内容\n\n## Docs\n\n- /path/to/doc: 文档描述\n\n## References\n\n\
        - node-yyy: 引用说明\n\n## Log\n\n- [2024-01-01 10:00:00] [AI] 开始执行\n\n## Problem\n\n当前问题\n\n\
        ### Next Step\n\n下一步计划\n";
    let node = read(text);
    assert_eq!(node.requirement, "需求描述内容");
    assert_eq!(node.conclusion.as_deref(), Some("结论内容"));
    assert_eq!(node.references[0].kind, RefKind::Node);
    assert_eq!(node.activity.problem.as_ref().unwrap().next_step.as_deref(), Some("下一步计划"));
    assert_eq!(rewrite(text, |_| {}), text, "an unchanged node is not rewritten");
}

#[test]
fn rewrite_keeps_user_content() {
    let text = "---\ntitle: 'It''s mine'\nmood: good\ntags:\n  - a\n# a comment\ntype: execution\nstatus: pending\n\
        parentId: root\n---\nSome words first.\n\n## requirement\n* loose\ntext\n\n## My own\n\n- keep me\n\n## Log\n\
        * wrote this by hand\n";
    let written = rewrite(text, |node| {
        node.status = NodeStatus::Implementing;
        node.activity.log.push(LogEntry { timestamp: "t".into(), operator: Operator::Ai, event: "x".into() });
    });
    insta::assert_snapshot!(written);
}

#[test]
fn crlf_bom_and_chinese_headings_are_read() {
    let text = "\u{FEFF}---\r\ntitle: a\r\ntype: planning\r\nstatus: pending\r\nparentId: root\r\n---\r\n\r\n## 需求\r\n\r\n\
        one\r\ntwo\r\n\r\n## 日志\r\n\r\n- [2024-01-01 10:00] [Human] x\r\n";
    let node = read(text);
    assert_eq!(node.requirement, "one\ntwo");
    assert_eq!(node.activity.log[0].event, "x");
    assert_eq!(node.activity.log[0].timestamp, "2024-01-01 10:00");
    let written = rewrite(text, |node| node.note = "three\nfour".into());
    assert_eq!(
        written.matches('\n').count(),
        written.matches("\r\n").count(),
        "line endings are kept: {written:?}"
    );
}

#[test]
fn rewrite_keeps_unknown_keys_and_comments() {
    let text = "---\ntitle: a\ntype: execution # what else\nstatus : pending # waiting\nparentId: root\ndue date: x\n\
        \"quoted key\": 1\na/b: 1\n@who: me\ntags: [a,\nb]\nmore:\n  - x\n\n  # why\n  - y\nwords: |\n  one\n\n  two\n---\n";
    assert_eq!(read(text).status, NodeStatus::Pending);
    let written = rewrite(text, |node| node.title = "b".into());
    assert_eq!(written, text.replace("title: a", "title: b"));
    let goal = "---\nname: n\ngoal: |\n  one\n\n  two\n---\n";
    let doc = Document::parse(goal.as_bytes()).unwrap();
    assert_eq!(read_workspace(&doc, &WorkspaceId::parse("ws-a").unwrap()).unwrap().goal, "one\n\ntwo");
}

#[test]
fn dependencies_are_read_in_every_form_and_written_on_one_line() {
    let ids = |words: &[&str]| words.iter().map(|id| NodeId::parse(id).unwrap()).collect::<Vec<_>>();
    let text = write_node(None, &sample_node());
    assert!(!text.contains("dependsOn"));
    for (typed, expected) in [
        ("", &[][..]),
        (" []", &[]),
        (" null", &[]),
        (" [node-x, node-y] # first", &["node-x", "node-y"]),
        (" node-x", &["node-x"]),
        ("\n  - node-x\n  - \"node-y\"", &["node-x", "node-y"]),
        (" [node-x, node-x]", &["node-x"]),
    ] {
        let typed = text.replace("isolated: false\n", &format!("isolated: false\ndependsOn:{typed}\n"));
        assert_eq!(read(&typed).depends_on, ids(expected), "{typed}");
        let changed = rewrite(&typed, |node| node.depends_on = ids(&["node-z", "node-x"]));
        assert!(changed.contains("dependsOn: [node-z, node-x]\n"), "{changed}");
    }
    let with = text.replace("isolated: false\n", "isolated: false\ndependsOn: [node-x]\n");
    assert!(!rewrite(&with, |node| node.depends_on.clear()).contains("dependsOn"));
    let bad = with.replace("[node-x]", "[../x]");
    let error =
        read_node(&Document::parse(bad.as_bytes()).unwrap(), &NodeId::parse("node-a").unwrap()).unwrap_err();
    assert_eq!(error.text(tanmi_base::Lang::En), "9: dependsOn \"../x\" is not a node id");
}

#[test]
fn list_entry_is_changed_in_place() {
    let head = "---\ntitle: a\ntype: execution\nstatus: pending\nparentId: root\n---\n\n## Docs\n\n";
    let text = format!("{head}* a: 1\n<!-- about b -->\n* b: 2\n<!-- about c -->\n* c: 3\n");
    let written = rewrite(&text, |node| node.docs[1].description = "new".into());
    assert_eq!(written, text.replace("* b: 2", "- b: new"));
    let written = rewrite(&text, |node| {
        node.docs.remove(0);
    });
    assert_eq!(written, text.replace("* a: 1\n", ""));
    let written = rewrite(&text, |node| node.docs.clear());
    assert!(written.contains("about b") && written.contains("about c"), "{written}");
    let twice = format!("{head}\n## Note\n\none\n\n## Note\n\ntwo\n");
    assert_eq!(read(&rewrite(&twice, |node| node.note.clear())).note, "");
}

#[test]
fn damage_error_names_line_and_reason() {
    let cases: &[(&str, usize, &str)] = &[
        ("", 1, "empty"),
        ("   \n", 1, "empty"),
        ("# Title\n", 1, "front matter is missing"),
        ("---\ntitle: a\ntype: execution\n", 3, "no closing line"),
        ("---\ntitle: a\n???\n---\n", 3, "key: value"),
        ("---\ntitle: a\ntype: executor\nstatus: pending\nparentId: root\n---\n", 3, "type"),
        (
            "---\ntitle: a\ntype: execution\nstatus: planning\nparentId: root\n---\n",
            4,
            "cannot have the status planning",
        ),
        ("---\ntitle: a\ntype: execution\nstatus: pending\n---\n", 5, "parentId is missing"),
        ("---\ntitle: a\ntype: execution\nstatus: pending\nparentId: ../x\n---\n", 5, "parentId"),
        ("---\nid: node-b\ntitle: a\ntype: execution\nstatus: pending\nparentId: root\n---\n", 2, "folder"),
        (
            "---\ntitle: a\ntype: execution\nstatus: pending\nparentId: root\ncreatedAt: soon\n---\n",
            6,
            "createdAt",
        ),
    ];
    for (text, line, reason) in cases {
        let error = Document::parse(text.as_bytes())
            .and_then(|doc| read_node(&doc, &NodeId::parse("node-a").unwrap()))
            .unwrap_err();
        assert!(error.reason.zh.chars().any(tanmi_base::lang::is_han), "{text:?}: {}", error.reason.zh);
        assert_eq!(error.line, *line, "{text:?}: {}", error.reason.en);
        assert!(error.reason.en.contains(reason), "{text:?}: {}", error.reason.en);
    }
    assert_eq!(Document::parse(b"---\na: \xff\n---\n").unwrap_err().line, 2);
}

#[test]
fn unclosed_fence_does_not_hide_sections() {
    let text = "---\ntitle: a\ntype: execution\nstatus: pending\nparentId: root\n---\n\n## Requirement\n\n```\noops\n\n\
        ## Log\n\n- [t] [AI] still here\n";
    assert_eq!(read(text).activity.log.len(), 1);
}

/// Texts that a naive writer would break, alone and combined, and random text.
fn difficult_text() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "\n",
        "\n\n",
        " ",
        "  ",
        "\t",
        "\r",
        "\r\n",
        "## ",
        "## Log",
        "### Next Step",
        "---",
        "- ",
        "* ",
        "1. ",
        "[AI] ",
        "[expired] ",
        ": ",
        "：",
        ":",
        "!",
        "!\"x\"",
        "\"",
        "'",
        "\\n",
        "```",
        "~~~",
        "~~~tanmi",
        "~~~~",
        "#",
        "|",
        ">",
        "null",
        "true",
        "<!--",
        "-->",
        "C:\\new",
        "{\"a\":1}",
        "任务",
        "é",
        "\u{2028}",
        "\u{85}",
        "\u{feff}",
        "🙂",
        "a",
        "[2024-01-01 10:00:00]",
        "node-x",
        "root",
    ]);
    prop_oneof![
        3 => prop::collection::vec(pieces, 0..8).prop_map(|pieces| pieces.concat()),
        1 => "[^\0]{0,40}",
    ]
}

fn any_node() -> impl Strategy<Value = Node> {
    let status = prop::sample::select(vec![RefStatus::Active, RefStatus::Expired]);
    let doc = (difficult_text(), difficult_text(), status.clone())
        .prop_map(|(path, description, status)| DocReference { path, description, status });
    let reference = (difficult_text(), difficult_text(), status)
        .prop_map(|(t, d, status)| Reference { status, ..Reference::new(t, d) });
    let operator = prop::sample::select(vec![Operator::Ai, Operator::Human]);
    let entry = (difficult_text(), operator, difficult_text())
        .prop_map(|(timestamp, operator, event)| LogEntry { timestamp, operator, event });
    let problem = prop::option::of((difficult_text(), prop::option::of(difficult_text())));
    (
        (difficult_text(), difficult_text(), difficult_text(), difficult_text()),
        prop::collection::vec(doc, 0..3),
        prop::collection::vec(reference, 0..3),
        prop::collection::vec(entry, 0..3),
        problem,
    )
        .prop_map(|((title, requirement, conclusion, note), docs, references, log, problem)| {
            let problem = problem.map(|(description, next_step)| Problem {
                description,
                next_step: next_step.filter(|next| !next.is_empty()),
                updated_at: 7,
            });
            let problem = problem.filter(|p| !p.description.is_empty() || p.next_step.is_some());
            let conclusion = Some(conclusion).filter(|text| !text.is_empty());
            let activity = Activity { log, last_log_at: None, problem };
            Node { title, requirement, conclusion, note, docs, references, activity, ..sample_node() }
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn any_node_round_trips(node in any_node()) {
        let text = write_node(None, &node);
        prop_assert_eq!(read(&text), node, "{}", text);
    }

    #[test]
    fn any_change_of_any_node_round_trips(first in any_node(), second in any_node()) {
        let text = write_node(None, &first);
        let doc = Document::parse(text.as_bytes()).unwrap();
        let written = write_node(Some((&doc, &first)), &second);
        prop_assert_eq!(read(&written), second, "{}", written);
    }

    #[test]
    fn any_workspace_round_trips(
        name in difficult_text(), goal in difficult_text(), rules in prop::collection::vec(difficult_text(), 0..4),
        language in prop::sample::select(vec![None, Some(Lang::Zh), Some(Lang::En)]), mask_secrets in any::<bool>(),
    ) {
        let id = WorkspaceId::parse("ws-a").unwrap();
        let workspace = Workspace {
            id: id.clone(), name, goal, status: WorkspaceStatus::Active, rules, docs: vec![], focused_node_id: None,
            language, mask_secrets, created_at: 1, updated_at: 2, activity: Activity::default(),
        };
        let text = write_workspace(None, &workspace);
        let doc = Document::parse(text.as_bytes()).unwrap();
        prop_assert_eq!(read_workspace(&doc, &id).unwrap(), workspace, "{}", text);
    }

    #[test]
    fn any_change_keeps_user_section(
        requirement in difficult_text(), own in difficult_text(), preamble in difficult_text(), second in any_node(),
    ) {
        let text = format!(
            "---\ntitle: a\ntype: execution\nstatus: implementing\nparentId: root\n---\n{preamble}\n## Requirement\n\
             {requirement}\n## Mine\n{own}\n## Log\n\n- by hand\n");
        let doc = Document::parse(text.as_bytes()).unwrap();
        let id = NodeId::parse("node-a").unwrap();
        let before = read_node(&doc, &id).unwrap();
        let written = write_node(Some((&doc, &before)), &second);
        prop_assert_eq!(read(&written), second, "{}", written);
        let without_blank_lines = |text: &str| -> String { text.split('\n').filter(|line| !line.trim().is_empty()).collect() };
        let (section, kept) = (without_blank_lines(&own), without_blank_lines(&written));
        // An open fence before the section makes it part of the text with the fence, which is replaced.
        let is_in_fence = [&requirement, &preamble].iter().any(|text| text.contains("~~~") || text.contains("```"));
        prop_assert!(
            kept.contains(&section) || is_in_fence || own.contains('\r') || own.contains("## "),
            "{:?} lost in\n{}", own, written
        );
    }

    #[test]
    fn document_parse_and_render_round_trips(body in difficult_text()) {
        let text = format!("---\ntitle: a\n---\n\n{body}x\n");
        let doc = Document::parse(text.as_bytes()).unwrap();
        prop_assert_eq!(doc.render(), text);
    }
}

/// Found by fuzzing: a comment between log entries contains a fence, and a later text would have closed it.
#[test]
fn fence_in_comment_does_not_hide_sections() {
    let head = "---\ntitle: t\ntype: planning\nstatus: monitoring\nparentId: root\n---\n";
    let text = format!("{head}## Log\n```\n<!--\n##\n```\nremark -->\n## Requirement\n## Requirement\n~~~");
    let doc = Document::parse(text.as_bytes()).unwrap();
    let id = NodeId::parse("node-fuzz").unwrap();
    let before = read_node(&doc, &id).unwrap();
    assert_eq!(before.activity.log.len(), 1);
    let after = Node { note: text[head.len()..].to_owned(), ..before.clone() };
    let written = write_node(Some((&doc, &before)), &after);
    assert_eq!(read_node(&Document::parse(written.as_bytes()).unwrap(), &id).unwrap(), after, "{written}");
    assert!(written.contains("remark -->"), "{written}");
}
