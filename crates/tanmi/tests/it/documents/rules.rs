//! Tests of the example rules in the documents: each one is accepted, applies to one event and not to another.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::markdown::{self, Kind};
use super::{Document, documents};
use crate::agent::Agent;
use crate::env::{NOW, TestEnv};

/// The id of a rule, the arguments of `rules explain` with which it applies, and those with which it does
/// not. `+2h` is a time, and names in capitals are ids or payloads of the [`Scene`]. Prompts contain the
/// keyword in both languages.
const EXAMPLES: &[(&str, &str, &str)] = &[
    (
        "team/run-tests",
        "--event task_complete --workspace WS --node DONE",
        "--event task_complete --workspace WS --node TESTED",
    ),
    ("team/deploy", "--prompt deploy", "--prompt build"),
    ("team/long", "--session at-task --at +2h", "--session at-task"),
    ("team/long-and-stuck", "--session stuck --at +2h", "--session at-task --at +2h"),
    ("team/quiet", "--session at-task", "--session unknown"),
    ("team/before-push", "--payload PUSH", "--payload LIST"),
    ("guide/migrations", "--prompt migration/迁移", "--prompt build"),
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
    ("guide/long-and-unbound", "--session long", "--session unknown"),
    ("guide/otherwise", "--session at-task", "--session stuck"),
    ("guide/no-hints", "--platform cursor", "--platform codex"),
];

/// A workspace with every situation that the example rules react to.
struct Scene {
    env: TestEnv,
    names: Vec<(&'static str, String)>,
}

impl Scene {
    fn new() -> Scene {
        let env = TestEnv::new();
        let init = ["workspace", "init", "--name", "Auth", "--goal", "JWT", "--rule", "be quiet/安静"];
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
        let (finished, tested) =
            (done("Sign", "It holds"), done("Verify", "It holds, all tests pass/测试通过"));
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
        // The context after the bind contains the problem; the reminder follows at the next prompt.
        Agent::claude(&env, "stuck").prompt("go on");
        for n in 0..10 {
            Agent::claude(&env, "long").prompt(&format!("question {n}"));
        }
        let tool_call = |command: &str| {
            let path = env.root().join(format!("{command}.json"));
            let payload = json!({"session_id": "unknown", "hook_event_name": "PreToolUse", "cwd": env.project,
                "tool_name": "Bash", "tool_input": {"command": command}});
            env.write(&path, payload.to_string().as_bytes());
            path.display().to_string()
        };
        let names = vec![
            ("PUSH", tool_call("git push")),
            ("LIST", tool_call("git log")),
            ("WS", workspace),
            ("DONE", finished),
            ("TESTED", tested),
            ("+2h", (NOW + 2 * 3_600_000).to_string()),
        ];
        Scene { env, names }
    }

    /// Returns the verdict of `rules explain` on one rule of a file.
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

/// Returns every block that is a rules file, with its place.
fn files(documents: &[&Document]) -> Vec<(String, String)> {
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

/// Checks the example rules of the documents in one language, which must contain all of [`EXAMPLES`].
fn check(is_chinese: bool) {
    let scene = Scene::new();
    let mut seen = BTreeSet::new();
    let all = documents();
    let documents: Vec<&Document> =
        all.iter().filter(|document| document.is_chinese() == is_chinese).collect();
    for (place, text) in files(&documents) {
        let path = scene.env.root().join("example.json");
        scene.env.write(&path, text.as_bytes());
        let path = path.display().to_string();
        let checked = scene.env.json(&["rules", "check", &path]);
        assert_eq!(checked[0]["flaws"], json!([]), "{place}");
        let file: Value = serde_json::from_str(&text).unwrap();
        for rule in file["customRules"].as_array().unwrap() {
            let id = rule["id"].as_str().unwrap().to_owned();
            let example = EXAMPLES.iter().find(|(rule, ..)| *rule == id);
            let (_, applies, does_not) =
                example.unwrap_or_else(|| panic!("{place}: {id} is not in EXAMPLES"));
            let expected = if rule["action"]["content"].is_string() { "said" } else { "matched" };
            assert_eq!(scene.verdict(&path, &id, applies), expected, "{place}: {id}: {applies}");
            let verdict = scene.verdict(&path, &id, does_not);
            assert!(!["said", "matched"].contains(&&*verdict), "{place}: {id}: {does_not}: {verdict}");
            assert!(seen.insert(id), "{place}: another example has this id");
        }
    }
    let known: BTreeSet<String> = EXAMPLES.iter().map(|(rule, ..)| (*rule).to_owned()).collect();
    assert_eq!(known, seen, "rules of EXAMPLES that no document has");
}

#[test]
fn english_example_rules_apply_only_to_their_event() {
    check(false);
}

#[test]
fn chinese_example_rules_apply_only_to_their_event() {
    check(true);
}
