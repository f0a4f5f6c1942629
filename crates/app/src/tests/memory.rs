//! Memory use cases on a store in RAM.

use tanmi_memory::MemoryStore;

use super::Machine;
use crate::memory::{MemoryQuery, NewFact, NewSummary};

fn fact(content: &str) -> NewFact {
    NewFact { content: content.to_owned(), ..NewFact::default() }
}

fn query() -> MemoryQuery {
    MemoryQuery { limit: 10, ..MemoryQuery::default() }
}

#[test]
fn save_secret_is_masked_before_it_is_stored() {
    let machine = Machine::new();
    let app = machine.app();
    let secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";
    let new = NewFact { entities: vec![secret.to_owned()], ..fact(&format!("the token is {secret}")) };
    let saved = app.memory.save(new).unwrap();
    assert_eq!(saved.masked.len(), 2);
    let topic = NewSummary {
        topic: "t".into(),
        summary: "s".into(),
        todos: vec![secret.into()],
        ..NewSummary::default()
    };
    assert_eq!(app.memory.save_summary(topic).unwrap().masked.len(), 1);
    assert!(!machine.memory().export(true, 0).unwrap().concat().contains(secret));
}

#[test]
fn save_refused_arguments_create_no_memory() {
    let machine = Machine::new();
    let app = machine.app();
    let cases = [
        fact(" "),
        fact(&"x".repeat(1 << 20)),
        NewFact { memory_type: Some("X".into()), ..fact("a") },
        NewFact { confidence: Some(1.5), ..fact("a") },
        NewFact { entities: vec![String::new()], ..fact("a") },
    ];
    for new in cases {
        let error = app.memory.save(new.clone()).unwrap_err();
        assert_eq!(error.code(), "INVALID_ARGUMENT", "{new:?}");
    }
    machine.configure("{\"memory\": false}");
    let off = machine.app().memory;
    assert_eq!(off.save(fact("a")).unwrap_err().code(), "MEMORY_OFF");
    assert_eq!(off.import("", &mut |_, _| {}).unwrap_err().code(), "MEMORY_OFF");
    assert!(!machine.memory().exists());
}

#[test]
fn save_opinion_without_confidence_has_the_default() {
    let machine = Machine::new();
    let service = machine.app().memory;
    let saved = |memory_type: &str, confidence| {
        let new = NewFact { memory_type: Some(memory_type.into()), confidence, ..fact(memory_type) };
        service.show(&service.save(new).unwrap().id).unwrap().confidence
    };
    assert_eq!((saved("O", None), saved("W", None)), (Some(0.8), None));
}

#[test]
fn edit_fact_keeps_its_fields_and_supersedes_it() {
    let machine = Machine::new();
    let app = machine.app();
    let service = &app.memory;
    let new = NewFact { memory_type: Some("O".into()), confidence: Some(0.7), ..fact("short answers") };
    let old = service.save(NewFact { entities: vec!["style".into()], ..new }).unwrap().id;
    let edited = service.edit(&old, "long answers".into(), None).unwrap().id;
    let memory = service.show(&edited).unwrap();
    assert_eq!((memory.letter, memory.confidence), ("O", Some(0.7)));
    assert_eq!(memory.entities, ["style"]);
    assert_eq!(service.show(&old).unwrap().replaced_by, edited);
    let listed = service.list(&query()).unwrap();
    assert_eq!((listed.results.len(), listed.total), (1, Some(1)));
}

#[test]
fn calls_with_ids_report_the_errors_of_the_store() {
    let machine = Machine::new();
    let app = machine.app();
    let service = &app.memory;
    let old = service.save(fact("a fact")).unwrap().id;
    service.edit(&old, "a newer fact".into(), None).unwrap();
    let topic = NewSummary { topic: "t".into(), summary: "s".into(), ..NewSummary::default() };
    let summary = service.save_summary(topic).unwrap().id;
    let edit = |id: &str| service.edit(id, "text".into(), None).unwrap_err().code();
    assert_eq!(edit(&old), "NOT_CURRENT");
    assert_eq!(edit(&summary), "NOT_A_FACT");
    assert_eq!(edit("none"), "MEMORY_NOT_FOUND");
    let unknown = service.forget(&["x".repeat(500)]).unwrap_err();
    assert_eq!(unknown.code(), "MEMORY_NOT_FOUND");
    assert!(unknown.message(tanmi_base::Lang::En).len() < 120, "a long id is shortened");
}

#[test]
fn search_turn_is_shown_with_shortened_neighbours() {
    let machine = Machine::new();
    let app = machine.app();
    let service = &app.memory;
    let turn = |id: &str, content: &str| {
        serde_json::json!({"id": id, "type": "turn", "content": content, "session": "talk"}).to_string()
    };
    let lines =
        [turn("1", "Where\ndoes it run?"), turn("2", "On Kubernetes"), turn("3", &"long ".repeat(100))];
    assert_eq!(service.import(&lines.join("\n"), &mut |_, _| {}).unwrap().added, 3);
    let found = service.search("kubernetes", &query()).unwrap().results;
    assert_eq!((found.len(), found[0].id.as_str()), (1, "2"));
    assert_eq!(found[0].before, "Where⏎does it run?");
    assert!(found[0].after.len() < 210 && found[0].after.starts_with("long"));
}

#[test]
fn stats_store_without_folder_names_its_place() {
    let machine = Machine::new();
    let app = machine.app();
    app.memory.save(fact("a")).unwrap();
    let stats = app.memory.stats().unwrap();
    assert_eq!((stats.place.as_str(), stats.facts, stats.files), ("RAM", 1, 0));
}

#[test]
fn history_of_any_version_lists_all_versions_newest_first() {
    let machine = Machine::new();
    let app = machine.app();
    let first = app.memory.save(fact("Ports start at 8000")).unwrap().id;
    let second = app.memory.edit(&first, String::from("Ports start at 9000"), None).unwrap().id;
    let third = app.memory.edit(&second, String::from("Ports start at 9100"), None).unwrap().id;
    app.memory.save(fact("another one")).unwrap();
    for id in [&first, &second, &third] {
        let versions = app.memory.history(id).unwrap();
        let found: Vec<(&str, bool)> =
            versions.iter().map(|version| (version.id.as_str(), version.hidden)).collect();
        assert_eq!(found, [(third.as_str(), false), (second.as_str(), true), (first.as_str(), true)]);
    }
    assert_eq!(app.memory.history("none").unwrap_err().code(), "MEMORY_NOT_FOUND");
}

#[test]
fn history_of_fact_of_user_has_versions_of_both_memories() {
    let machine = Machine::new();
    let app = machine.app();
    let edit = |id: &str, content: &str| app.memory.edit(id, String::from(content), None).unwrap().id;
    let scopes = |id: &str| {
        let versions = app.memory.history(id).unwrap();
        versions.iter().map(|version| (version.id.clone(), version.scope)).collect::<Vec<_>>()
    };
    let of_user = NewFact { scope: Some(String::from("user")), ..fact("Answer in English") };
    let first = app.memory.save(of_user).unwrap().id;
    let second = edit(&first, "Answer in Chinese");
    let third = edit(&second, "Answer in both languages");
    for id in [&first, &second, &third] {
        assert_eq!(scopes(id), [&third, &second, &first].map(|id| (id.clone(), "user")));
    }
    // A fact of the project that was moved to the memory of the user in between.
    let first = app.memory.save(fact("Indent with tabs")).unwrap().id;
    let second = edit(&first, "Indent with two spaces");
    app.memory.promote(std::slice::from_ref(&second)).unwrap();
    let third = edit(&second, "Indent with four spaces");
    let expected = [(third.clone(), "user"), (second.clone(), "user"), (first.clone(), "project")];
    for id in [&first, &second, &third] {
        assert_eq!(scopes(id), expected);
    }
}

#[test]
fn summary_has_its_parts() {
    let machine = Machine::new();
    let app = machine.app();
    let summary = NewSummary {
        topic: "Tokens".into(),
        summary: "Chose a format".into(),
        decisions: vec!["RS256".into()],
        todos: vec!["Rotate keys".into()],
        ..NewSummary::default()
    };
    app.memory.save_summary(summary).unwrap();
    app.memory.save(fact("a fact")).unwrap();
    let listed = app.memory.list(&query()).unwrap().results;
    let parts: Vec<_> = listed.iter().filter_map(|memory| memory.parts.as_ref()).collect();
    assert_eq!(parts.len(), 1, "a fact has no parts");
    assert_eq!(
        (&*parts[0].decisions, &*parts[0].todos),
        (&["RS256".into()][..], &["Rotate keys".into()][..])
    );
}
