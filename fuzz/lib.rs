//! What must hold for any bytes. `cargo fuzz run TARGET` looks for some for which it does not; the ones that are worth
//! keeping are in `corpus/`, and every test run of the project tries those again (`crates/tanmi/tests/it/fuzz_corpora.rs`).

// A broken promise is a panic: that is what the fuzzer looks for.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::cell::RefCell;

use tanmi_base::Lang;
use tanmi_engine::{
    BUILTIN_RULES, DeclaredFacts, Facts, MemoryFacts, NodeFacts, RuleSource, SessionFacts, WorkspaceFacts,
    check_condition, decide_with_trace, parse_rules,
};
use tanmi_event::{CLAUDE_CODE, Decision, Event, EventKind, PLATFORMS, Payload, Source};
use tanmi_index::{MemoryFilter, MemoryIndex};
use tanmi_memory::{dates, record, search, segment, sync};
use tanmi_workspace::codec::{self, Document};
use tanmi_workspace::model::{NodeId, WorkspaceId};

/// A name, and what must hold.
pub type Target = (&'static str, fn(&[u8]));

pub const TARGETS: &[Target] = &[
    ("document", document),
    ("node", node),
    ("payload", payload),
    ("rules", rules),
    ("condition", condition),
    ("query", query),
    ("record", record),
    ("secrets", secrets),
];

/// 2025-12-11
const NOW: i64 = 1_765_432_100_000;

/// Front matter and sections: what was read is written as it was.
pub fn document(data: &[u8]) {
    let Ok(doc) = Document::parse(data) else { return };
    let text = doc.render();
    let again = Document::parse(text.as_bytes()).expect("what was written can be read");
    assert_eq!(again.render(), text);
    let id = WorkspaceId::parse("ws-fuzz").expect("an id");
    if let Ok(workspace) = codec::read_workspace(&doc, &id) {
        let written = codec::write_workspace(Some((&doc, &workspace)), &workspace);
        let doc = Document::parse(written.as_bytes()).expect("what was written can be read");
        assert_eq!(codec::read_workspace(&doc, &id).expect("and is a workspace"), workspace);
    }
}

/// A node that a person wrote survives being written by us, and takes any text.
pub fn node(data: &[u8]) {
    let Ok(doc) = Document::parse(data) else { return };
    let id = NodeId::parse("node-fuzz").expect("an id");
    let Ok(was) = codec::read_node(&doc, &id) else { return };
    let mut now = was.clone();
    let texts: Vec<&str> = std::str::from_utf8(data).unwrap_or_default().splitn(3, "---").collect();
    now.requirement = texts.first().copied().unwrap_or_default().replace('\0', "");
    now.note = texts.last().copied().unwrap_or_default().replace('\0', "");
    for node in [&was, &now] {
        let written = codec::write_node(Some((&doc, &was)), node);
        let doc = Document::parse(written.as_bytes()).expect("what was written can be read");
        assert_eq!(&codec::read_node(&doc, &id).expect("and is a node"), node);
    }
}

/// Whatever a client sends, under whatever name.
pub fn payload(data: &[u8]) {
    for platform in PLATFORMS {
        for name in [None, Some("SessionStart"), Some("stop"), Some("preToolUse"), Some("BeforeAgent")] {
            if let Some(event) = tanmi_platform::read(platform, name, data) {
                let _ = tanmi_platform::write(&event, &Decision::default());
            }
        }
    }
}

/// Rules files, and what they decide.
pub fn rules(data: &[u8]) {
    let (rules, _) = parse_rules(data, RuleSource::Project, true);
    let payload = Payload { prompt: Some(String::from("继续 go on")), ..Payload::default() };
    for kind in [EventKind::PromptSubmit, EventKind::SessionStart] {
        let (source, platform, session) = (Source::Hook, &CLAUDE_CODE, String::from("s"));
        let event = Event { source, platform, kind, session, payload: payload.clone() };
        decide_with_trace(&event, &facts(), BUILTIN_RULES, &rules);
    }
}

fn facts() -> Facts {
    Facts {
        now: NOW,
        lang: Lang::Zh,
        session: SessionFacts { id: String::from("s"), ..SessionFacts::default() },
        workspace: Some(WorkspaceFacts { name: String::from("工作区"), ..WorkspaceFacts::default() }),
        node: Some(NodeFacts {
            title: String::from("node"),
            status: String::from("implementing"),
            ..NodeFacts::default()
        }),
        memory: Ok(MemoryFacts::default()),
        declared: Ok(DeclaredFacts::default()),
        memory_on: true,
        has_workspaces: true,
        refresh_every: 10,
        disabled_rules: Vec::new(),
    }
}

pub fn condition(data: &[u8]) {
    let _ = check_condition(&String::from_utf8_lossy(data));
}

thread_local! {
    static INDEX: RefCell<Option<MemoryIndex>> = const { RefCell::new(None) };
}

/// Any question gets an answer.
pub fn query(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    segment::terms(&text);
    segment::query_terms(&text);
    dates::named(&text, NOW);
    if let Some(at) = dates::parse(&text) {
        dates::iso(at);
    }
    let _ = dates::day_start(&text, NOW);
    INDEX.with_borrow_mut(|index| {
        let index = index.get_or_insert_with(collection);
        search::search(index, &text, &MemoryFilter::default(), 5, NOW).expect("any question gets an answer");
    });
}

fn collection() -> MemoryIndex {
    let index = MemoryIndex::in_memory().expect("memory");
    let dir = std::env::temp_dir().join(format!("tanmi-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a folder");
    let path = dir.join("2025-12-10.jsonl");
    let texts = [
        "JWT it is, valid for 24 hours",
        "令牌的有效期是一天",
        "fix parse_header in src/lib.rs",
        "Dec 9 deploy",
    ];
    let lines: Vec<String> = texts
        .iter()
        .enumerate()
        .map(|(n, text)| format!("{{\"id\":\"f{n}\",\"content\":\"{text}\",\"type\":\"W\",\"timestamp\":\"2025-12-10T0{n}:00:00Z\"}}"))
        .collect();
    #[allow(clippy::disallowed_methods)] // a scratch file
    std::fs::write(&path, lines.join("\n") + "\n").expect("a file");
    sync::sync(&index, &[(String::from("daily/2025-12-10.jsonl"), path)], None, |_, _| {}).expect("an index");
    let _ = std::fs::remove_file(dir.join("2025-12-10.jsonl"));
    let _ = std::fs::remove_dir(dir);
    index
}

/// Lines of memory files, of ours and of others.
pub fn record(data: &[u8]) {
    for line in data.split(|byte| *byte == b'\n') {
        record::read_line(line, "daily/2025-12-10.jsonl");
        record::read_line(line, "sessions.jsonl");
    }
}

/// What was masked has nothing left to mask.
pub fn secrets(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (masked, _) = tanmi_base::secrets::mask(&text);
    let (again, found) = tanmi_base::secrets::mask(&masked);
    assert_eq!((again.as_ref(), found.len()), (masked.as_ref(), 0), "{text:?}");
}
