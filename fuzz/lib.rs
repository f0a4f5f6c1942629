//! Fuzz targets: each checks properties that must hold for any input bytes.
//!
//! `cargo fuzz run TARGET` searches for inputs that violate them. Interesting inputs are kept in `corpus/`;
//! the tests in `crates/tanmi/tests/it/fuzz_corpora.rs` run every target on them.

// A violated property must panic, because the fuzzer looks for panics.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use tanmi_base::{Lang, fs};
use tanmi_engine::{
    BUILTIN_RULES, DeclaredFacts, Facts, MemoryFacts, NodeFacts, RuleSource, SessionFacts, WorkspaceFacts,
    check_condition, decide, escape_tags, parse_rules,
};
use tanmi_event::{Event, EventKind, Payload, Source};
use tanmi_index::{MemoryFilter, MemoryIndex};
use tanmi_install::{ChangeOutcome, Folders, GuideFile, InstallOptions, PlannedChange, Receipts};
use tanmi_memory::{dates, record, search, segment, sync};
use tanmi_platform::{CLIENTS, ClientSpec, DEFAULT_CLIENT, Scope};
use tanmi_workspace::codec::{self, Document};
use tanmi_workspace::model::{NodeId, NodeStatus, WorkspaceId};

mod journal;
mod trust;

pub use journal::journal;
pub use trust::trust;

/// The name of a fuzz target and the function that checks an input.
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
    ("escape", escape),
    ("install_toml", install_toml),
    ("install_json", install_json),
    ("install_guide", install_guide),
    ("journal", journal),
    ("trust", trust),
];

/// 2025-12-11, in milliseconds since 1970.
const NOW: i64 = 1_765_432_100_000;

/// Checks that a rendered document parses and renders to the same text, and that a workspace survives a rewrite.
pub fn document(data: &[u8]) {
    let Ok(doc) = Document::parse(data) else { return };
    let text = doc.render();
    let reparsed = Document::parse(text.as_bytes()).expect("a rendered document parses");
    assert_eq!(reparsed.render(), text);
    let id = WorkspaceId::parse("ws-fuzz").expect("valid id");
    if let Ok(workspace) = codec::read_workspace(&doc, &id) {
        let written = codec::write_workspace(Some((&doc, &workspace)), &workspace);
        let doc = Document::parse(written.as_bytes()).expect("a written workspace parses");
        assert_eq!(codec::read_workspace(&doc, &id).expect("a written workspace is readable"), workspace);
    }
}

/// Checks that a node from a file survives a rewrite, unchanged and with arbitrary texts in its fields.
pub fn node(data: &[u8]) {
    let Ok(doc) = Document::parse(data) else { return };
    let id = NodeId::parse("node-fuzz").expect("valid id");
    let Ok(original) = codec::read_node(&doc, &id) else { return };
    let mut edited = original.clone();
    let texts: Vec<&str> = std::str::from_utf8(data).unwrap_or_default().splitn(3, "---").collect();
    edited.requirement = texts.first().copied().unwrap_or_default().replace('\0', "");
    edited.note = texts.last().copied().unwrap_or_default().replace('\0', "");
    for node in [&original, &edited] {
        let written = codec::write_node(Some((&doc, &original)), node);
        let doc = Document::parse(written.as_bytes()).expect("a written node parses");
        assert_eq!(&codec::read_node(&doc, &id).expect("a written node is readable"), node);
    }
}

/// Checks that no payload of any client, under any event name, causes a panic.
pub fn payload(data: &[u8]) {
    for platform in CLIENTS.platforms() {
        for name in [None, Some("SessionStart"), Some("stop"), Some("preToolUse"), Some("BeforeAgent")] {
            if let Some(event) = CLIENTS.read(platform, name, data) {
                let _ = CLIENTS.write(&event, "text");
            }
        }
    }
}

/// Checks that no rules file causes a panic when it is parsed or evaluated.
pub fn rules(data: &[u8]) {
    let (rules, _) = parse_rules(data, RuleSource::Project, true);
    let payload = Payload { prompt: Some(String::from("继续 go on")), ..Payload::default() };
    for kind in [EventKind::PromptSubmit, EventKind::SessionStart] {
        let (source, platform, session) = (Source::Hook, DEFAULT_CLIENT.platform, String::from("s"));
        let event = Event { source, platform, kind, session, payload: payload.clone() };
        decide(&event, &facts(), BUILTIN_RULES, &rules, &mut |_, _| {});
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
            status: NodeStatus::Implementing,
            ..NodeFacts::default()
        }),
        memory: Ok(MemoryFacts::default()),
        declared: Ok(DeclaredFacts::default()),
        has_refused_files: false,
        memory_enabled: true,
        has_project_data: true,
        suggests_commands: false,
        available: Default::default(),
        refresh_every: 10,
        disabled_rules: Vec::new(),
    }
}

/// Checks that no condition causes a panic when it is compiled.
pub fn condition(data: &[u8]) {
    let _ = check_condition(&String::from_utf8_lossy(data));
}

thread_local! {
    static INDEX: RefCell<Option<MemoryIndex>> = const { RefCell::new(None) };
}

/// Checks that any query can be parsed and searched for.
pub fn query(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    segment::terms(&text);
    segment::query_terms(&text);
    dates::find_dates(&text, NOW);
    if let Some(at) = dates::parse(&text) {
        dates::iso(at);
    }
    let _ = dates::day_start(&text, NOW);
    INDEX.with_borrow_mut(|index| {
        let index = index.get_or_insert_with(sample_index);
        search::search(index, &text, &MemoryFilter::default(), 5, NOW).expect("a search succeeds");
    });
}

/// Returns an in-memory index of a few facts.
fn sample_index() -> MemoryIndex {
    let index = MemoryIndex::in_memory().expect("create an in-memory index");
    let dir = std::env::temp_dir().join(format!("tanmi-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("create a temporary folder");
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
    #[allow(clippy::disallowed_methods)] // temporary file
    std::fs::write(&path, lines.join("\n") + "\n").expect("write the facts");
    sync::sync(&index, &[(String::from("daily/2025-12-10.jsonl"), path)], None, |_, _| {})
        .expect("index the facts");
    let _ = std::fs::remove_file(dir.join("2025-12-10.jsonl"));
    let _ = std::fs::remove_dir(dir);
    index
}

/// Checks that no line of a memory file, ours or another tool's, causes a panic.
pub fn record(data: &[u8]) {
    for line in data.split(|byte| *byte == b'\n') {
        record::read_line(line, "daily/2025-12-10.jsonl");
        record::read_line(line, "sessions.jsonl");
    }
}

/// Checks that masking is idempotent and bounded, and that it keeps everything around the masks.
pub fn secrets(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (masked, kinds) = tanmi_base::secrets::mask(&text);
    let (remasked, found) = tanmi_base::secrets::mask(&masked);
    assert_eq!((remasked.as_ref(), found.len()), (masked.as_ref(), 0), "{text:?}");
    assert_eq!(kinds.is_empty(), masked == text, "{text:?}");
    assert!(masked.len() <= text.len() + kinds.len() * MAX_MASK, "{text:?}");
    // The parts between the masks are in the text, in this order; the first begins it and the last ends it.
    let parts = parts_between_masks(&masked);
    let mut rest = text.strip_prefix(parts[0]).expect("the text begins as before");
    for part in &parts[1..] {
        let at = rest.find(part).unwrap_or_else(|| panic!("{part:?} is missing: {text:?}"));
        rest = &rest[at + part.len()..];
    }
    assert!(text.ends_with(parts[parts.len() - 1]), "{text:?}");
}

/// The maximum length of a mask.
const MAX_MASK: usize = 48;

fn parts_between_masks(masked: &str) -> Vec<&str> {
    const MARK: &str = "[masked: ";
    let mut parts = Vec::new();
    let (mut start, mut from) = (0, 0);
    while let Some(found) = masked[from..].find(MARK) {
        let at = from + found;
        from = at + MARK.len();
        if let Some(len) = masked[from..].bytes().take(MAX_MASK).position(|byte| byte == b']') {
            parts.push(&masked[start..at]);
            from += len + 1;
            start = from;
        }
    }
    parts.push(&masked[start..]);
    parts
}

/// Checks that escaping is idempotent and bounded, that no tag of Tanmi or of a client can open, and that a text
/// without special characters stays as it is.
pub fn escape(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let escaped = escape_tags(&text);
    assert_eq!(escape_tags(&escaped), escaped, "{text:?}");
    assert!(escaped.len() <= text.len() * 3, "{text:?}");
    let lower = escaped.to_ascii_lowercase();
    for tag in ["tanmi-", "system-reminder", "function_", "tool_"] {
        assert!(!lower.contains(&format!("<{tag}")) && !lower.contains(&format!("</{tag}")), "{text:?}");
    }
    let has_code = text.contains(['`', '~']);
    let opens = |rest: &str| {
        rest.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?' | '|'))
    };
    assert!(has_code || !escaped.split('<').skip(1).any(opens), "{text:?}");
    // Letters in lower case, digits and ordinary punctuation form no tag, no role and no invisible character.
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || " \n.,;:!?()-=/'\"".contains(c);
    assert!(!text.chars().all(is_plain) || escaped == text, "{text:?}");
}

/// Checks that an installation into a TOML file can be repeated and restores the file.
pub fn install_toml(data: &[u8]) {
    let is_toml = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "toml");
    for client in CLIENTS.iter() {
        install_round_trip(client, data, |folders| folders.server_file(client, Scope::User).filter(is_toml));
    }
}

/// The same for the JSON file with the hooks of a client. The first byte selects the client.
pub fn install_json(data: &[u8]) {
    let Some((which, text)) = data.split_first() else { return };
    let client = CLIENTS.0[usize::from(*which) % CLIENTS.0.len()];
    install_round_trip(client, text, |folders| Some(folders.hook_file(client, Scope::User)));
}

/// The same for the guide in a Markdown file. The first byte selects the client.
pub fn install_guide(data: &[u8]) {
    let Some((which, text)) = data.split_first() else { return };
    let client = CLIENTS.0[usize::from(*which) % CLIENTS.0.len()];
    install_round_trip(client, text, |folders| {
        let (GuideFile::OwnFile(path) | GuideFile::Block(path)) = folders.guide_file(client, Scope::User)?;
        Some(path)
    });
}

/// Writes a file of a client, installs twice and uninstalls.
fn install_round_trip(
    client: &'static ClientSpec,
    data: &[u8],
    file: impl FnOnce(&Folders) -> Option<PathBuf>,
) {
    let dir = std::env::temp_dir().join(format!("tanmi-fuzz-install-{}", std::process::id()));
    let folders = Folders::new(dir.join("user"), dir.join("project"), |_| None);
    let Some(file) = file(&folders) else { return };
    fs::remove_tree(&dir).expect("remove the folder of the last input");
    std::fs::create_dir_all(file.parent().expect("the file is in a folder")).expect("create the folders");
    #[allow(clippy::disallowed_methods)] // temporary file
    std::fs::write(&file, data).expect("write the file");
    let options = InstallOptions {
        program: String::from("/opt/tanmi"),
        lang: Lang::En,
        hooks: true,
        server: true,
        guide: true,
        status_line: true,
        allow_tools: true,
        has_tool_rules: true,
    };
    let home = dir.join("store");
    let install = || {
        let targets = tanmi_install::target_files(client, Scope::User, &folders, Some(&options)).into_iter();
        let plans = targets.map(|target| tanmi_install::plan(target, &options)).collect();
        let done = tanmi_install::apply(&home, plans, &options, NOW).expect("the installation ends");
        done.into_iter().map(|done| done.planned).collect::<Vec<PlannedChange>>()
    };
    // Parts that were there before are ours, too: an uninstall removes them.
    let has_parts = tanmi_install::inspect(client, Scope::User, &folders).iter().any(|found| {
        !found.hooks.is_empty() || found.server.is_some() || found.status_line.is_some() || found.has_guide
    });
    let is_refused = |planned: &PlannedChange| matches!(planned.outcome, ChangeOutcome::Refused(_));
    if install().iter().any(|planned| planned.target.path == file && is_refused(planned)) {
        assert_eq!(std::fs::read(&file).expect("the file exists"), data, "refused and changed");
    }
    for planned in install() {
        assert!(is_refused(&planned) || planned.outcome == ChangeOutcome::Unchanged, "the second install");
    }
    uninstall(client, &folders, &home);
    if !has_parts {
        assert_eq!(std::fs::read(&file).expect("the file exists"), data, "not restored");
    }
    assert!(!home.exists(), "the receipts are removed");
    fs::remove_tree(&dir).expect("remove the folder");
}

fn uninstall(client: &'static ClientSpec, folders: &Folders, home: &Path) {
    let receipts = Receipts::load(home);
    let targets = tanmi_install::target_files(client, Scope::User, folders, None).into_iter();
    let plans = targets.filter_map(|target| tanmi_install::plan_removal(target, &receipts)).collect();
    tanmi_install::remove(home, plans).expect("the uninstall ends");
}

/// Replaces a word of an input by what an input cannot know.
fn replace(text: &[u8], word: &[u8], with: &[u8]) -> Vec<u8> {
    let mut replaced = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.windows(word.len()).position(|found| found == word) {
        replaced.extend_from_slice(&rest[..at]);
        replaced.extend_from_slice(with);
        rest = &rest[at + word.len()..];
    }
    replaced.extend_from_slice(rest);
    replaced
}
