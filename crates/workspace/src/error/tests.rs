use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::json;
use tanmi_base::{Bilingual, Interface, Lang, clock};

use super::{Error, Holder, OpenDependency, UnavailableCause, UnfinishedChild};
use crate::model::{NodeId, NodeStatus, NodeType, WorkspaceId};
use crate::state::Action;

fn holder() -> Holder {
    Holder {
        session: String::from("session-1"),
        person: String::from("ada"),
        machine: String::from("laptop"),
    }
}

const SINCE: i64 = 1_750_000_000_000;

/// One error of every variant, and more where a variant has several texts.
fn samples() -> Vec<Error> {
    let workspace = || WorkspaceId::parse("ws-20260101-000000-abcd").unwrap();
    let node = || NodeId::parse("node-20260101-000000-0001").unwrap();
    let parent = || NodeId::parse("node-20260101-000000-0002").unwrap();
    let path = || PathBuf::from("/project/file");
    let too_long = |field, unit| Error::TooLong { field, unit, limit: 200, actual: 201 };
    let transition = |allowed| Error::InvalidTransition {
        node: node(),
        kind: NodeType::Execution,
        status: NodeStatus::Pending,
        action: Action::Complete,
        allowed,
    };
    let unfinished = UnfinishedChild {
        id: node(),
        title: String::from("Title"),
        status: NodeStatus::Pending,
        allowed: vec![Action::Start],
    };
    let children =
        |count| Error::ChildrenUnfinished { node: parent(), unfinished: vec![unfinished.clone()], count };
    let rules = |given: Option<&str>| Error::RulesHashMismatch {
        given: given.map(String::from),
        rules: vec![String::from("First rule"), String::from("Second rule")],
        hash: String::from("abcd1234"),
    };
    vec![
        Error::invalid("title", "包含 NUL 字符", "contains a NUL character"),
        Error::Empty { field: "title" },
        too_long("name", "characters"),
        too_long("title", "characters"),
        too_long("rules", "entries"),
        too_long("note", "bytes"),
        Error::unknown_word("status", "done", NodeStatus::WORDS),
        Error::bad_id("workspaceId", "x", "ws-…"),
        Error::bad_id("nodeId", "x", "root | node-…"),
        Error::WorkspaceNotFound { id: workspace().to_string(), existing: Vec::new() },
        Error::WorkspaceNotFound {
            id: workspace().to_string(),
            existing: vec![(workspace(), String::from("Name"))],
        },
        Error::node_not_found("nodeId", &node()),
        transition(vec![Action::Start]),
        transition(Vec::new()),
        Error::ConclusionRequired { node: node(), action: Action::Complete },
        Error::NodeClaimed { node: node(), holder: String::from("session-1"), since: SINCE },
        Error::NodeHeld { node: node(), holder: holder(), since: SINCE },
        Error::ClaimLost { node: node(), holder: Some(holder()) },
        Error::ClaimLost { node: node(), holder: None },
        children(1),
        children(2),
        Error::NodeClaimed { node: node(), holder: String::from(crate::model::PERSON), since: SINCE },
        Error::DependenciesOpen {
            node: node(),
            open: vec![
                OpenDependency {
                    node_id: parent(),
                    title: String::from("Title"),
                    status: Some(NodeStatus::Failed),
                },
                OpenDependency { node_id: parent(), title: String::new(), status: None },
            ],
        },
        Error::DependencyCycle {
            nodes: vec![
                (node(), String::from("A")),
                (parent(), String::from("B")),
                (node(), String::from("A")),
            ],
            is_by_move: false,
        },
        Error::DependencyCycle { nodes: vec![(node(), String::from("A"))], is_by_move: true },
        Error::BadOutline { line: 3, reason: Bilingual::new("标题为空", "the title is empty") },
        rules(None),
        rules(Some("ffff")),
        Error::WorkspaceArchived { id: workspace(), name: String::from("Auth") },
        Error::WorkspaceNotArchived { id: workspace() },
        Error::RootProtected { action: "move" },
        Error::RootProtected { action: "delete" },
        Error::ParentIsExecution { parent: parent() },
        Error::ParentCancelled { parent: parent() },
        Error::MoveIntoSelf { node: node(), parent: parent() },
        Error::NotInTrash { node: node().to_string() },
        Error::ParentDeleted { node: node(), parent: parent() },
        Error::TooDeep { limit: 64 },
        Error::NotInList { field: "rules", what: String::from("Rule"), known: Vec::new() },
        Error::NotInList {
            field: "rules",
            what: String::from("Rule"),
            known: vec![String::from("First rule")],
        },
        Error::ReferenceNotFound { target: String::from("docs/a.md") },
        Error::Outdated { version: String::from("v2"), current: Box::new(json!({})) },
        Error::corrupt(&path(), 3, Bilingual::new("缺少 title", "title is missing")),
        Error::unavailable(&path(), UnavailableCause::Busy),
        Error::unavailable(&path(), UnavailableCause::Moved),
        Error::unavailable(&path(), UnavailableCause::OtherOwner(1000)),
        Error::Conflict { place: String::from("/project/file") },
        Error::TeamUnreachable {
            server: String::from("https://team.example"),
            reason: String::from("timeout"),
            may_have_run: true,
        },
        Error::TeamUnreachable {
            may_have_run: false,
            server: String::from("https://team.example"),
            reason: String::from("connection refused"),
        },
        Error::OutboxFull { limit: 10_000 },
        Error::team_refused("https://team.example", "FORBIDDEN", "the role is reader"),
        Error::UnexpectedOutcome,
        Error::from(index_error()),
        Error::io(path())(std::io::Error::other("permission denied")),
    ]
}

fn index_error() -> tanmi_index::IndexError {
    match tanmi_index::NodeIndex::open(Path::new("missing/index.sqlite"), "boot") {
        Err(error) => error,
        Ok(_) => panic!("an index was opened in a folder that does not exist"),
    }
}

/// The different hints of an error, each with the interfaces that show it.
fn hints(error: &Error, lang: Lang) -> Vec<(String, Vec<String>)> {
    let mut hints: Vec<(String, Vec<String>)> = Vec::new();
    for interface in Interface::ALL {
        let Some(hint) = error.hint(lang, interface) else { continue };
        let name = format!("{interface:?}");
        match hints.iter_mut().find(|(known, _)| *known == hint) {
            Some((_, interfaces)) => interfaces.push(name),
            None => hints.push((hint, vec![name])),
        }
    }
    hints
}

#[test]
fn texts_of_every_error_in_every_language_and_interface() {
    let mut out = String::new();
    let since = clock::local_stamp(SINCE);
    for error in samples() {
        let _ = writeln!(out, "{}", error.code());
        for lang in [Lang::En, Lang::Zh] {
            let message = error.message(lang).replace(&since, "2025-06-15 00:00:00");
            let _ = writeln!(out, "  {lang:?} {message}");
            for (hint, interfaces) in hints(&error, lang) {
                let _ = writeln!(out, "    {}: {}", interfaces.join(", "), hint.replace('\n', "⏎"));
            }
        }
    }
    insta::assert_snapshot!(out);
}

#[test]
fn hints_name_only_what_the_interface_offers() {
    for error in samples() {
        for lang in [Lang::En, Lang::Zh] {
            for interface in Interface::ALL {
                let Some(hint) = error.hint(lang, interface) else { continue };
                let has_command = hint.contains("tanmi ") || hint.contains("--");
                let has_tool =
                    ["workspace_", "node_", "memory_", "context_", "session_", "sessionId", "nodeId"]
                        .iter()
                        .any(|word| hint.contains(word));
                assert!(!has_command || interface.has_commands(), "{interface:?}: {hint}");
                assert!(!has_tool || interface == Interface::Mcp, "{interface:?}: {hint}");
                assert!(!interface.is_agent() || !hint.contains("force"), "{interface:?}: {hint}");
            }
        }
    }
}

#[test]
fn messages_start_in_lower_case_and_end_without_period() {
    for error in samples() {
        for text in
            [Some(error.message(Lang::En)), error.hint(Lang::En, Interface::CommandLine)].iter().flatten()
        {
            assert!(!text.starts_with(char::is_uppercase), "{text}");
            assert!(!text.ends_with('.'), "{text}");
        }
    }
}

#[test]
fn error_sent_as_json_has_the_same_texts() {
    for error in samples().into_iter().filter(|error| !matches!(error, Error::Unavailable { .. })) {
        let json = serde_json::to_string(&error).unwrap();
        let received: Error = serde_json::from_str(&json).unwrap();
        assert_eq!((received.code(), received.field()), (error.code(), error.field()), "{json}");
        assert_eq!(received.details(), error.details(), "{json}");
        for lang in [Lang::En, Lang::Zh] {
            assert_eq!(received.message(lang), error.message(lang));
            assert_eq!(hints(&received, lang), hints(&error, lang));
        }
    }
}
