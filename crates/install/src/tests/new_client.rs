//! What adding a client takes: one file, and two lines in `crates/platform/src/lib.rs` (`mod acme;` and the row
//! `&acme::CLIENT`). The file is `acme.rs` next to this one; its length is printed and limited below. No other code is
//! touched. A real client also has recorded payloads in `crates/platform/fixtures/` and schemas in
//! `crates/platform/schemas/`, and the lists of clients in the help (`crates/tanmi/src/cli/`) and in the ledger of the
//! page (`crates/server/web/ledger.js`) get its id.

use serde_json::json;
use tanmi_event::EventKind;
use tanmi_platform::{CLIENTS, ClientTable, Scope};

use super::{TestEnv, acme, options, parsed};
use crate::{ChangeOutcome, Folders, plan, snippet, target_files};

static TABLE: ClientTable = ClientTable(&[&acme::CLIENT]);

/// More would mean that a client's file contains code that belongs to all clients.
const MAX_LINES: usize = 80;

#[test]
#[allow(clippy::print_stdout)] // the number is the result of the test
fn new_client_takes_one_short_file() {
    let lines = include_str!("acme.rs").lines().count();
    println!("a new client takes one file with {lines} lines and two lines of the table");
    assert!(lines <= MAX_LINES, "{lines} lines");
}

#[test]
fn new_client_payload_is_read_and_answered_through_the_table() {
    let platform = TABLE.find_platform("acme-cli").unwrap();
    let (name, sample) = acme::CLIENT.wire.sample;
    let start = TABLE.read(platform, Some(name), sample.as_bytes()).unwrap();
    assert_eq!((start.kind, start.session.as_str()), (EventKind::SessionStart, "c1"));
    let ask = TABLE.read(platform, Some("ask"), br#"{"chat": "c1", "question": "why?"}"#).unwrap();
    assert_eq!((ask.kind, ask.payload.prompt.as_deref()), (EventKind::PromptSubmit, Some("why?")));
    assert_eq!(TABLE.write(&ask, "because").as_deref(), Some(r#"{"note":"because"}"#));
    assert_eq!(TABLE.write(&ask, ""), None);
    assert!(TABLE.read(platform, Some("other"), br#"{"chat": "c1"}"#).is_none());
}

#[test]
fn new_client_variables_calls_and_transcripts_are_found_through_the_table() {
    assert!(TABLE.agent_variables().any(|name| name == "ACME"));
    assert_eq!(TABLE.session_variables().collect::<Vec<_>>(), ["ACME_CHAT"]);
    assert_eq!(TABLE.process_variables().count(), 0);
    assert_eq!(TABLE.session_of_call(&json!({"acmeChat": "c1"})).as_deref(), Some("c1"));
    let turn = TABLE.read_turn(&json!({"acme": {"by": "user", "text": "hello"}})).unwrap();
    assert_eq!((turn.speaker.as_str(), turn.content.as_str()), ("user", "hello"));
    assert_eq!(TABLE.read_turn(&json!({"acme": {"by": "user", "text": "<acme-state>"}})), None);
}

#[test]
fn new_client_recipe_is_planned_like_any_other() {
    let env = TestEnv::new();
    let home = env.dir.path().join("named");
    let folders = Folders { named: vec![("ACME_HOME", home.clone())], ..env.folders.clone() };
    let options = options("/opt/tanmi");
    let plans = |scope| {
        let targets = target_files(&acme::CLIENT, scope, &folders, Some(&options)).into_iter();
        targets.map(|target| plan(target, &options)).collect::<Vec<_>>()
    };
    let paths = |scope| plans(scope).into_iter().map(|planned| planned.real).collect::<Vec<_>>();
    assert_eq!(paths(Scope::User), [home.join("hooks.json"), home.join("servers.json")]);
    let project = &folders.project;
    assert_eq!(paths(Scope::Project), [project.join(".acme/hooks.json"), project.join("ACME.md")]);
    let hooks = plans(Scope::User).remove(0);
    assert_eq!(hooks.outcome, ChangeOutcome::Create);
    let file = env.dir.path().join("hooks.json");
    super::write(&file, snippet(&hooks.target, &options));
    let hook = |event: &str, timeout: u32| json!([{"command": format!("/opt/tanmi hook acme {event}"), "timeout": timeout}]);
    let expected =
        json!({"version": 1, "hooks": {"begin": hook("begin", 10_000), "ask": hook("ask", 5_000)}});
    assert_eq!(parsed(&file), expected);
    assert!(CLIENTS.find_platform("acme").is_none(), "the made-up client is only in the table of this test");
}
