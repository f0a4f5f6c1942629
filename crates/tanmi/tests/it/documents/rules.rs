//! Every rule that the documents give as an example is accepted, speaks at one moment and is silent at another.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::markdown::{self, Kind};
use super::{Document, documents};
use crate::agent::Agent;
use crate::env::{NOW, TestEnv};

/// A rule, what `rules explain` is asked when it speaks, and when it is silent. `+2h` is a time, names in capitals are of
/// the [`Stage`].
const MOMENTS: &[(&str, &str, &str)] = &[
    (
        "team/run-tests",
        "--event task_complete --workspace WS --node DONE",
        "--event task_complete --workspace WS --node TESTED",
    ),
    ("team/deploy", "--prompt deploy", "--prompt build"),
    ("team/long", "--session at-task --at +2h", "--session at-task"),
    ("team/long-and-stuck", "--session stuck --at +2h", "--session at-task --at +2h"),
    ("team/quiet", "--session at-task", "--session nobody"),
    ("guide/migrations", "--prompt migration", "--prompt build"),
    ("guide/welcome", "--event session_start --start startup", "--event session_start --start resume"),
    (
        "guide/after-compaction",
        "--event session_start --start compact",
        "--event session_start --start startup",
    ),
    ("guide/only-codex", "--event session_start --platform codex", "--event session_start --platform cursor"),
    ("guide/short-reports", "--event subagent_start", "--event session_start"),
    (
        "guide/thin-conclusion",
        "--event task_complete --workspace WS --node DONE",
        "--event task_complete --workspace WS --node TESTED",
    ),
    ("guide/validation", "--session at-check", "--session at-task"),
    ("guide/too-broad", "--session at-root", "--session at-plan"),
    ("guide/stuck", "--session stuck --at +2h", "--session stuck"),
    ("guide/long-and-unbound", "--session long", "--session nobody"),
    ("guide/otherwise", "--session at-task", "--session stuck"),
    ("guide/no-hints", "--platform cursor", "--platform codex"),
];

/// A workspace in which everything has happened that the examples speak of.
struct Stage {
    env: TestEnv,
    names: Vec<(&'static str, String)>,
}

impl Stage {
    fn new() -> Stage {
        let env = TestEnv::new();
        let init = ["workspace", "init", "--name", "Auth", "--goal", "JWT", "--rule", "be quiet"];
        let workspace = env.json(&init)["workspaceId"].as_str().unwrap().to_owned();
        let started = |title: &str| {
            let node = env.node("root", "execution", title);
            env.ok(&["node", "transition", &node, "--action", "start"]);
            node
        };
        let done = |title: &str, conclusion: &str| {
            let node = started(title);
            env.ok(&["node", "transition", &node, "--action", "complete", "--conclusion", conclusion]);
            node
        };
        let (task, stuck) = (started("Check tokens"), started("Allow skew"));
        env.ok(&["problem", "--node", &stuck, "Clock skew"]);
        let (finished, tested) = (done("Sign", "It holds"), done("Verify", "It holds, all tests pass"));
        let (plan, check) = (env.node("root", "planning", "Later"), env.node("root", "execution", "Review"));
        env.node(&plan, "execution", "Renew tokens");
        env.ok(&["node", "update", &check, "--role", "validation"]);
        for n in 0..3 {
            env.node("root", "execution", &format!("Step {n}"));
        }
        let root = String::from("root");
        for (session, node) in [
            ("at-task", &task),
            ("stuck", &stuck),
            ("at-check", &check),
            ("at-plan", &plan),
            ("at-root", &root),
        ] {
            env.ok(&["session", "bind", "--session", session, "--workspace", &workspace, "--node", node]);
        }
        for n in 0..10 {
            Agent::claude(&env, "long").prompt(&format!("question {n}"));
        }
        let names = vec![
            ("WS", workspace),
            ("DONE", finished),
            ("TESTED", tested),
            ("+2h", (NOW + 2 * 3_600_000).to_string()),
        ];
        Stage { env, names }
    }

    /// The verdict on a rule of a file.
    fn verdict(&self, file: &str, rule: &str, asked: &str) -> String {
        let named = |word: &str| {
            let name = self.names.iter().find(|(name, _)| *name == word);
            name.map_or_else(|| word.to_owned(), |(_, value)| value.clone())
        };
        let words: Vec<String> = asked.split(' ').map(named).collect();
        let mut args = vec!["rules", "explain", "--rules", file];
        args.extend(words.iter().map(String::as_str));
        let explained = self.env.json(&args);
        let rules = explained["rules"].as_array().unwrap();
        let found = rules.iter().find(|explained| explained["id"] == rule);
        found.unwrap_or_else(|| panic!("{rule}: {explained}"))["verdict"].as_str().unwrap().to_owned()
    }
}

/// Every block that is a file of rules, and where it stands.
fn files(documents: &[Document]) -> Vec<(String, String)> {
    let mut files = Vec::new();
    for document in documents {
        for block in markdown::blocks(&document.text) {
            if block.kind == Kind::Fenced(String::from("json")) && block.text.contains("customRules") {
                files.push((format!("{}:{}", document.name, block.line), block.text));
            }
        }
    }
    files
}

#[test]
fn every_example_speaks_and_is_silent() {
    let stage = Stage::new();
    let mut seen = BTreeSet::new();
    for (place, text) in files(&documents()) {
        let path = stage.env.root().join("example.json");
        stage.env.write(&path, text.as_bytes());
        let path = path.display().to_string();
        let checked = stage.env.json(&["rules", "check", &path]);
        assert_eq!(checked[0]["flaws"], json!([]), "{place}");
        let file: Value = serde_json::from_str(&text).unwrap();
        for rule in file["customRules"].as_array().unwrap() {
            let id = rule["id"].as_str().unwrap().to_owned();
            let moment = MOMENTS.iter().find(|(rule, ..)| *rule == id);
            let (_, speaks, silent) = moment.unwrap_or_else(|| panic!("{place}: no moment for {id}"));
            let words = if rule["action"]["content"].is_string() { "said" } else { "matched" };
            assert_eq!(stage.verdict(&path, &id, speaks), words, "{place}: {id}: {speaks}");
            let verdict = stage.verdict(&path, &id, silent);
            assert!(!["said", "matched"].contains(&&*verdict), "{place}: {id}: {silent}: {verdict}");
            assert!(seen.insert(id), "{place}: another example has this id");
        }
    }
    let known: BTreeSet<String> = MOMENTS.iter().map(|(rule, ..)| (*rule).to_owned()).collect();
    assert_eq!(known, seen, "moments of rules that no document has");
}
