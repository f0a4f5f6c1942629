use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::json;
use tanmi_base::{Bilingual, Interface, Lang};
use tanmi_memory::anchors::PathProblem;
use tanmi_workspace::model::WorkspaceId;

use super::{Error, TeamProblem};
use crate::masking::FoundSecret;

/// One error of every variant, and more where a variant has several texts.
fn samples() -> Vec<Error> {
    let workspace = || WorkspaceId::parse("ws-20260101-000000-abcd").unwrap();
    let path = || PathBuf::from("/project/file");
    let id = || String::from("f-1");
    let not_current = |by: &str| Error::NotCurrent { id: id(), by: by.to_owned() };
    let bad_value = |value: &str| Error::bad_value("confidence", value, String::from("0–1"));
    let bad_file = |line| Error::BadFile {
        path: path(),
        line,
        reason: Bilingual::new("应为 JSON 对象", "expected a JSON object"),
    };
    let unknown_key = |near| Error::UnknownKey { key: String::from("memori"), near };
    vec![
        Error::Domain(tanmi_workspace::Error::Empty { field: "title" }),
        Error::Model { dir: path(), reason: Bilingual::new("没有维度", "it has no dimensions") },
        Error::MemoryNotFound { id: id() },
        not_current(""),
        not_current("f-2"),
        Error::PrivateMemory { id: id() },
        Error::NotAFact { id: id() },
        Error::NotALexicon { path: path() },
        Error::LexiconNotFound { name: String::from("cedict.u8"), known: Vec::new() },
        Error::LexiconNotFound {
            name: String::from("cedict"),
            known: vec![String::from("cedict.u8"), String::from("ecdict.csv")],
        },
        Error::BadFactPath { path: String::from("../x"), problem: PathProblem::Outside },
        Error::BadFactPath { path: String::from("x.rs"), problem: PathProblem::Missing },
        Error::MemoryOff,
        Error::TextNotFound { digest: String::from("abcd") },
        Error::NoWorkspace { project: PathBuf::from("/project"), archived: None },
        Error::NoWorkspace {
            project: PathBuf::from("/project"),
            archived: Some((workspace(), String::from("Auth"))),
        },
        Error::AmbiguousWorkspace {
            candidates: vec![(workspace(), String::from("One")), (workspace(), String::from("Two"))],
        },
        Error::AmbiguousId {
            field: "nodeId",
            named: String::from("1cu9"),
            candidates: vec![
                (String::from("node-1-1cu9"), String::from("One")),
                (String::from("node-2-1cu9"), String::from("Two")),
            ],
        },
        Error::AmbiguousId {
            field: "nodeId",
            named: String::from("Same"),
            candidates: vec![(id(), String::from("Same")), (String::from("node-2"), String::from("Same"))],
        },
        Error::NoFocus { workspace: workspace() },
        Error::NoSession,
        Error::AmbiguousSession { candidates: vec![String::from("s-1"), String::from("s-2")] },
        Error::NothingToChange,
        Error::SecretsFound { secrets: vec![FoundSecret { field: "note", kind: "GitHub token" }] },
        Error::UserDecides { setting: "maskSecrets" },
        Error::Team(TeamProblem::HasLocalData { project: path() }),
        Error::Team(TeamProblem::AlreadyJoined {
            server: String::from("https://team.example"),
            project: String::from("shop"),
        }),
        Error::Team(TeamProblem::NotJoined { project: path() }),
        Error::Team(TeamProblem::OutboxNotEmpty { count: 3 }),
        Error::Team(TeamProblem::NotEqual { workspace: workspace().to_string() }),
        Error::Team(TeamProblem::ChangedSince { workspace: workspace().to_string() }),
        Error::Team(TeamProblem::Changed { project: path(), is_joined: true }),
        Error::Team(TeamProblem::Changed { project: path(), is_joined: false }),
        Error::InFile { path: path(), error: Box::new(unknown_key(Some("memory"))) },
        Error::NoAgents { known: vec!["claude-code", "codex"] },
        Error::NoHome,
        Error::Installing,
        Error::LinkLeavesProject { link: path(), to: PathBuf::from("/home/user/.bashrc") },
        Error::NeedsYes { what: json!({}) },
        unknown_key(None),
        unknown_key(Some("memory")),
        bad_value("2"),
        bad_value(""),
        Error::NotForProjects { key: "memory" },
        bad_file(0),
        bad_file(3),
        Error::NotAgreed { path: path(), is_changed: false },
        Error::NotAgreed { path: path(), is_changed: true },
        tanmi_session::Error::BadSession(512).into(),
    ]
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
    for error in samples() {
        let _ = writeln!(out, "{}", error.code());
        for lang in [Lang::En, Lang::Zh] {
            let _ = writeln!(out, "  {lang:?} {}", error.message(lang));
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
                let has_tool = [
                    "workspace_",
                    "node_",
                    "memory_",
                    "context_",
                    "session_",
                    "sessionId",
                    "nodeId",
                    "workspaceId",
                ]
                .iter()
                .any(|word| hint.contains(word));
                assert!(!has_command || interface.has_commands(), "{interface:?}: {hint}");
                assert!(!has_tool || interface == Interface::Mcp, "{interface:?}: {hint}");
            }
        }
    }
}

#[test]
fn hints_for_agents_name_no_override() {
    for interface in [Interface::AgentShell, Interface::Mcp] {
        for error in [Error::MemoryOff, Error::NeedsYes { what: json!({}) }] {
            let hint = error.hint(Lang::En, interface).unwrap();
            assert!(!hint.contains("--yes") && !hint.contains("config set"), "{interface:?}: {hint}");
        }
    }
}

#[test]
fn messages_start_in_lower_case_and_end_without_period() {
    for error in samples().iter().filter(|error| !matches!(error, Error::InFile { .. })) {
        for text in
            [Some(error.message(Lang::En)), error.hint(Lang::En, Interface::CommandLine)].iter().flatten()
        {
            assert!(!text.starts_with(char::is_uppercase), "{text}");
            assert!(!text.ends_with('.'), "{text}");
        }
    }
}

#[test]
fn json_has_the_hint_of_the_interface() {
    let error = Error::NoSession;
    let hint = |interface| error.to_json(Lang::En, interface)["hint"].as_str().unwrap().to_owned();
    assert!(hint(Interface::CommandLine).contains("--session"));
    assert!(hint(Interface::Mcp).contains("sessionId"));
    assert_eq!(error.to_json(Lang::En, Interface::Page)["field"], "sessionId");
}
