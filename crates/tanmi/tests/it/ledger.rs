//! The ledger of injected texts, and `pause`.

use serde_json::json;

use crate::agent::Agent;
use crate::env::TestEnv;

fn day_file(env: &TestEnv) -> std::path::PathBuf {
    env.home_store().join("ledger/2025-12-11.jsonl")
}

#[test]
fn ledger_records_every_injected_text() {
    let env = TestEnv::new();
    let ws = env.init();
    let (one, two) = (Agent::claude(&env, "one"), Agent::claude(&env, "two"));
    one.start("startup");
    env.ok(&["session", "bind", "--session", "one", "--workspace", &ws]);
    let injected = one.prompt("go");
    assert_eq!(one.prompt("go"), "");
    two.start("startup");
    let view = env.json(&["ledger"]);
    let lines: Vec<String> = view["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| format!("{} {} {}", line["session"], line["event"], line["rules"]))
        .collect();
    assert_eq!(
        lines,
        [
            r#""one" "session_start" ["session-info"]"#,
            r#""one" "prompt_submit" ["context-refresh"]"#,
            r#""two" "session_start" ["session-info"]"#,
        ],
        "a hook without injected text writes no entry"
    );
    assert_eq!(view["entries"][1]["bytes"], injected.len());
    assert_eq!((&view["total"]["decisions"], &view["sessions"]["one"]["decisions"]), (&json!(3), &json!(2)));
    assert_eq!(view["days"]["2025-12-11"]["decisions"], 3);
    let one_line = env.json(&["ledger", "--session", "one", "--event", "prompt_submit", "--text"]);
    assert_eq!(one_line["entries"][0]["content"], injected.as_str(), "the exact text");
    assert_eq!(
        env.json(&["ledger", "--rule", "session-info", "--limit", "1"])["entries"][0]["session"],
        "two"
    );
    // Only the sessions of a node. A node is named by its id, the end of it or its title.
    let task = env.node("root", "execution", "the task");
    env.ok(&["session", "bind", "--session", "one", "--workspace", &ws, "--node", &task]);
    one.prompt("go on");
    for named in [task.as_str(), &task[task.len() - 4..], "the task"] {
        let of_node = env.json(&["ledger", "--node", named]);
        assert_eq!(
            (&of_node["total"]["decisions"], &of_node["entries"][0]["node"]),
            (&json!(1), &json!(task))
        );
    }
    assert_eq!(env.json(&["ledger", "--workspace", &ws])["total"]["decisions"], 2);
    assert_eq!(env.error(&["ledger", "--node", "no such node"])["code"], "NODE_NOT_FOUND");
    assert_eq!(env.json(&["ledger", "--day", "2025-12-10"])["total"]["decisions"], 0);
    assert_eq!(env.error(&["ledger", "--day", "yesterday"])["code"], "INVALID_ARGUMENT");
    let shown = env.ok(&["ledger", "--text", "--session", "one"]);
    assert!(shown.contains("context-refresh") && shown.contains("│ Workspace: Auth"), "{shown}");
    // Only the parts that are the same in every run.
    assert!(shown.contains("2025-12-11") && shown.contains("total"), "{shown}");
}

#[test]
fn ledger_texts_are_deduplicated_masked_and_expire() {
    let env = TestEnv::new();
    let ws = env.init();
    env.ok(&["workspace", "update", "--add-rule", "DB_PASSWORD=hunter2!x is for tests"]);
    let agent = Agent::claude(&env, "s");
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws]);
    for _ in 0..3 {
        assert!(agent.start("resume").contains("hunter2"), "workspace rules are injected unmasked");
    }
    let texts = || std::fs::read_dir(env.home_store().join("ledger/texts")).unwrap().flatten();
    assert_eq!(texts().count(), 1);
    assert!(texts().all(|file| !std::fs::read_to_string(file.path()).unwrap().contains("hunter2")));
    assert!(day_file(&env).exists());
    env.tick(31 * 86_400_000);
    env.ok(&["ledger"]);
    assert!(!day_file(&env).exists());
    agent.start("resume");
    assert_eq!(env.json(&["ledger"])["total"]["decisions"], 1);
    env.ok(&["config", "set", "ledger", "false"]);
    agent.start("resume");
    assert_eq!(env.json(&["ledger"])["total"]["decisions"], 1, "the ledger is disabled");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode =
            |path: &str| std::fs::metadata(env.home_store().join(path)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("ledger"), mode("ledger/2026-01-11.jsonl")), (0o700, 0o600));
    }
}

#[test]
fn pause_stops_all_injection() {
    let env = TestEnv::new();
    let agent = Agent::claude(&env, "s");
    assert_eq!(env.json(&["pause"])["paused"], true);
    assert_eq!(agent.start("startup"), "");
    assert_eq!(agent.prompt("continue the workspace"), "");
    assert_eq!(env.json(&["resume"])["wasPaused"], true);
    assert_eq!(env.json(&["resume"])["wasPaused"], false);
    assert!(!agent.start("startup").is_empty());
    env.ok(&["pause", "--for", "30m"]);
    assert_eq!(agent.start("startup"), "");
    env.tick(30 * 60_000);
    assert!(!agent.start("startup").is_empty(), "the pause ends after its duration");
    for bad in ["", "5", "m", "-1h", "2w", "时"] {
        assert_eq!(env.error(&["pause", &format!("--for={bad}")])["code"], "INVALID_ARGUMENT", "{bad:?}");
    }
}

#[test]
fn text_shown_to_a_person_is_not_recorded() {
    let env = TestEnv::new();
    let ws = env.init();
    let plan = env.node("root", "planning", "Plan");
    let complete = |variable: Option<&str>| {
        let task = env.node(&plan, "execution", "Work");
        let step = |action: &[&str]| {
            let args = [&["node", "transition", &task, "--workspace", &ws, "--action"], action].concat();
            let output = env.command(&args).envs(variable.map(|name| (name, "1"))).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        step(&["start"]);
        step(&["complete", "--conclusion", "c"])
    };
    let recorded = || env.json(&["ledger"])["total"]["decisions"].clone();
    assert!(complete(None).contains("All child nodes of"));
    assert_eq!(recorded(), 0, "a person read it");
    assert!(complete(Some("CLAUDECODE")).contains("All child nodes of"));
    assert_eq!(recorded(), 1, "an agent read it");
}

#[test]
fn narrow_ledger_keeps_events_and_rules_and_counts_what_is_hidden() {
    let env = TestEnv::new();
    let ws = env.init();
    let agent = Agent::claude(&env, "one");
    agent.start("startup");
    env.ok(&["session", "bind", "--session", "one", "--workspace", &ws]);
    agent.prompt("go");
    let output = env.command(&["ledger"]).env("COLUMNS", "80").output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("prompt_submit") && shown.contains("context-refresh"), "{shown}");
    assert!(shown.lines().all(|line| tanmi_base::text::width(line) <= 80), "{shown}");
    assert!(env.ok(&["ledger", "--limit", "1"]).contains("1 earlier injection not shown"));
    assert!(!env.ok(&["ledger", "--limit", "0"]).contains("not shown"));
}
