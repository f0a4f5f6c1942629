//! Declared context: told once, when it should be, to whom it should be.

use serde_json::{Value, json};

use crate::agent::{Agent, hook};
use crate::env::TestEnv;
use crate::mcp::Client;

pub fn declare(env: &TestEnv, manifest: Value) {
    env.make(&env.project.join(".tanmi/context.json"), &manifest.to_string());
}

fn feed(command: &mut std::process::Command, input: &str) -> String {
    use std::io::Write;
    let piped = std::process::Stdio::piped;
    let mut child = command.stdin(piped()).stdout(piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

fn claude(env: &TestEnv, session: &str, event: &str, more: Value) -> String {
    Agent::claude(env, session).send(event, "", more)
}

fn start(env: &TestEnv, session: &str, source: &str) -> String {
    Agent::claude(env, session).start(source)
}

fn prompt(env: &TestEnv, session: &str, text: &str) -> String {
    Agent::claude(env, session).prompt(text)
}

fn trusted() -> TestEnv {
    let env = TestEnv::new();
    declare(&env, json!({"files": ["docs/ctx.md"]}));
    env.make(&env.project.join("docs/ctx.md"), "# Ctx\nDECLARED-ONE\n");
    env.ok(&["trust", "--yes"]);
    env
}

#[test]
fn declared_file_is_injected_once_and_again_after_change_or_compaction() {
    let env = trusted();
    let is_told = |text: &str| text.contains("DECLARED");
    assert!(is_told(&start(&env, "s", "startup")));
    assert!(!is_told(&prompt(&env, "s", "hello")));
    assert!(!is_told(&start(&env, "s", "resume")), "its history has it");
    env.write(&env.project.join("docs/ctx.md"), b"# Ctx\nDECLARED-TWO, longer\n");
    assert!(prompt(&env, "s", "hello").contains("DECLARED-TWO"));
    assert!(!is_told(&prompt(&env, "s", "hello")));
    claude(&env, "s", "PreCompact", json!({"trigger": "manual"}));
    assert!(is_told(&start(&env, "s", "compact")));
    assert!(!is_told(&prompt(&env, "s", "hello")));
    assert!(is_told(&prompt(&env, "t", "hello")), "at the first prompt, where no start was seen");
    assert!(!is_told(&prompt(&env, "t", "hello")));
    env.ok(&["config", "set", "declaredContext", "false"]);
    assert!(!is_told(&start(&env, "u", "startup")));
}

#[test]
fn file_loaded_by_client_or_in_prompt_is_not_injected() {
    let env = trusted();
    declare(&env, json!({"files": [".claude/CLAUDE.md", "AGENTS.md"]}));
    env.make(&env.project.join(".claude/CLAUDE.md"), "OF-CLAUDE");
    env.make(&env.project.join("AGENTS.md"), "OF-CODEX");
    let told = start(&env, "s", "startup");
    assert!(told.contains("OF-CODEX") && !told.contains("OF-CLAUDE"), "{told}");
    let codex = json!({"session_id": "c", "hook_event_name": "SessionStart", "cwd": env.project, "source": "startup"});
    let told = hook(&env, "codex", codex.to_string().as_bytes());
    assert!(!told.contains("OF-CODEX") && told.contains("OF-CLAUDE"), "{told}");
    declare(&env, json!({"files": ["AGENTS.md"], "loadedByClient": {"claude-code": ["AGENTS.md"]}}));
    assert!(!start(&env, "t", "startup").contains("OF-CODEX"), "a list of one's own");
    declare(&env, json!({"files": ["docs/ctx.md"]}));
    let carried = prompt(&env, "u", "## 工作区环境\nDECLARED by the host\n\nhello");
    assert!(!carried.contains("DECLARED"), "{carried}");
    assert!(!prompt(&env, "u", "and now?").contains("DECLARED"), "the session has it");
}

#[test]
fn untrusted_or_outside_file_is_not_injected() {
    let env = TestEnv::new();
    let secret = env.root().join("secret.md");
    env.make(&secret, "SECRET");
    declare(&env, json!({"files": ["docs/ctx.md", "../secret.md", "link.md", secret, "gone.md"]}));
    env.make(&env.project.join("docs/ctx.md"), "DECLARED");
    std::os::unix::fs::symlink(&secret, env.project.join("link.md")).unwrap();
    assert!(!start(&env, "s", "startup").contains("DECLARED"));
    env.ok(&["trust", "--yes"]);
    let told = start(&env, "t", "startup");
    assert!(told.contains("DECLARED") && !told.contains("SECRET"), "{told}");
    // What the person or the machine declares may be anywhere.
    env.make(&env.root().join("home/.tanmi/context.json"), &json!({"files": [secret]}).to_string());
    assert!(start(&env, "u", "startup").contains("SECRET"));
    let container = env.root().join("etc/context.json");
    env.make(&container, &json!({"files": ["all.md"]}).to_string());
    env.make(&env.root().join("etc/all.md"), "OF-THE-CONTAINER");
    let mut command = env.command(&["hook", "claude-code"]);
    command.env("TANMI_CONTEXT", &container);
    let payload = json!({"session_id": "v", "hook_event_name": "SessionStart", "cwd": env.project, "source": "startup"});
    assert!(feed(&mut command, &payload.to_string()).contains("OF-THE-CONTAINER"));
    for broken in ["{", "[]", "{\"files\": 7}"] {
        env.make(&env.project.join(".tanmi/context.json"), broken);
        assert!(start(&env, "w", "startup").contains("SECRET"), "the others still count");
    }
}

#[test]
fn oversized_file_is_cut_by_section_with_pointer() {
    let env = trusted();
    let giant = format!("# One\nFIRST\n\n## Two\nSECOND\n\n## Three\n{}", "很长的文字。\n".repeat(250_000));
    env.write(&env.project.join("docs/ctx.md"), giant.as_bytes());
    let told = start(&env, "s", "startup");
    let text = &told;
    assert!(text.len() <= 10_000 && text.contains("SECOND") && !text.contains("很长的文字"), "{text}");
    assert!(text.contains("the rest is in") && text.contains("docs/ctx.md"), "{text}");
    // What no longer fits is named, and shown as what it is.
    declare(&env, json!({"files": ["docs/ctx.md", "b.md", "c.md"]}));
    for name in ["b.md", "c.md"] {
        env.make(&env.project.join(name), &"words and words. ".repeat(700));
    }
    let shown = env.ok(&["context", "show"]);
    assert!(shown.contains("truncated") && shown.contains("only its path"), "{shown}");
    let told = start(&env, "t", "startup");
    assert!(told.contains("not included:") && told.contains("c.md"), "{told}");
}

#[test]
fn subagent_gets_general_part_and_part_of_its_type() {
    let env = trusted();
    env.make(&env.project.join(".tanmi/subagents/general.md"), "FOR-ALL");
    env.make(&env.project.join(".tanmi/subagents/Explore.md"), "FOR-EXPLORE");
    env.make(&env.project.join("x.md"), "NOT-THIS");
    let workspace = env.init();
    env.ok(&["workspace", "update", "--add-rule", "RULE-ONE"]);
    env.ok(&["session", "bind", "-w", &workspace, "--session", "s"]);
    let told =
        |agent: &str| claude(&env, "s", "SubagentStart", json!({"agent_id": agent, "agent_type": agent}));
    let explore = told("Explore");
    for part in ["FOR-ALL", "FOR-EXPLORE", "RULE-ONE", "DECLARED-ONE", "You are a subagent (Explore)"] {
        assert!(explore.contains(part), "{part}: {explore}");
    }
    let other = told("general-purpose");
    assert!(other.contains("FOR-ALL") && !other.contains("FOR-EXPLORE"), "{other}");
    for odd in ["../../x", "../x", ".", "a/b", "\u{0}"] {
        assert!(!told(odd).contains("NOT-THIS"), "{odd}");
    }
    // Cursor: the whole input, with the prompt extended.
    let mut payload: Value =
        serde_json::from_str(include_str!("../../../platform/fixtures/cursor/preToolUse.Task.json")).unwrap();
    payload["workspace_roots"] = json!([env.project]);
    payload["conversation_id"] = "s".into();
    let answer: Value =
        serde_json::from_str(&feed(&mut env.command(&["hook", "cursor"]), &payload.to_string())).unwrap();
    let input = &answer["updated_input"];
    assert_eq!((&input["description"], &input["subagent_type"]), (&json!("scan"), &json!("general-purpose")));
    let text = input["prompt"].as_str().unwrap();
    assert!(
        text.starts_with("List the modules\n\n") && text.contains("RULE-ONE") && text.contains("FOR-ALL"),
        "{text}"
    );
}

#[test]
fn node_started_for_subagent_records_agent() {
    let env = TestEnv::new();
    let workspace = env.init();
    let node = env.node("root", "execution", "t");
    env.ok(&["node", "transition", &node, "--action", "start", "--session", "s", "--agent", "Explore"]);
    let text = std::fs::read_to_string(env.node_md(&workspace, &node)).unwrap();
    assert!(text.contains("startedByAgent: Explore") && text.contains("(Explore)"), "{text}");
    env.ok(&["node", "transition", &node, "--action", "complete", "--conclusion", "done"]);
    assert!(!std::fs::read_to_string(env.node_md(&workspace, &node)).unwrap().contains("startedByAgent"));
}

#[test]
fn prompt_format_returns_prompt_with_context_prepended() {
    let env = trusted();
    let pipe = |payload: &str| {
        feed(&mut env.command(&["hook", "claude-code", "UserPromptSubmit", "--format", "prompt"]), payload)
    };
    let out: Value =
        serde_json::from_str(&pipe(&json!({"prompt": "hello", "cwd": env.project, "x": 1}).to_string()))
            .unwrap();
    assert_eq!((&out["prompt"], &out["x"]), (&json!("# Ctx\nDECLARED-ONE\n\nhello"), &json!(1)));
    for same in ["{\"prompt\":\"## 工作区环境 hello\"}", "{\"other\":1}", "not json", "{\"prompt\":7}"] {
        assert_eq!(pipe(same).trim_end(), same, "unchanged");
    }
    std::fs::remove_file(env.project.join("docs/ctx.md")).unwrap();
    assert_eq!(pipe("{\"prompt\": \"hi\"}").trim_end(), "{\"prompt\": \"hi\"}");
}

pub fn plain(env: &TestEnv, text: &str) -> String {
    text.replace(&env.root().display().to_string(), "ROOT")
}

#[test]
fn context_commands_output() {
    let mut out = String::new();
    for lang in ["en_US.UTF-8", "zh_CN.UTF-8"] {
        let env = TestEnv::with_lang(lang);
        declare(&env, json!({"files": ["docs/ctx.md", ".claude/CLAUDE.md", "gone.md", "../out.md"]}));
        env.make(&env.project.join("docs/ctx.md"), "# Ctx\nDECLARED-ONE\n");
        env.make(&env.project.join(".claude/CLAUDE.md"), "x");
        env.make(&env.root().join("out.md"), "x");
        env.make(&env.project.join(".tanmi/subagents/general.md"), "FOR-ALL");
        for args in [
            &["context", "show"][..],
            &["trust", "--yes"],
            &["context", "show"],
            &["context", "show", "--platform", "codex"],
            &["context", "show", "--agent", "Explore", "--text"],
            &["context", "build"],
            &["context", "build", "--check"],
            &["context", "show", "--platform", "emacs"],
        ] {
            let run = env.run(args);
            out.push_str(&format!("$ tanmi {}\n{}{}\n", args.join(" "), run.stdout, run.stderr));
        }
        out = plain(&env, &out);
    }
    insta::assert_snapshot!(out);
}

#[test]
fn untrusted_marker_is_ignored_and_same_content_is_not_repeated() {
    let env = TestEnv::new();
    env.make(&env.root().join("home/.tanmi/context.json"), "\u{feff}{\"files\": [\"own.md\"]}");
    env.make(&env.root().join("home/own.md"), "DECLARED-BY-ME");
    declare(&env, json!({"files": [], "marker": "fix"}));
    assert!(
        !prompt(&env, "s", "hello").contains("DECLARED"),
        "nothing could be remembered: only a start tells"
    );
    assert!(start(&env, "s", "startup").contains("DECLARED"));
    env.ok(&["config", "set", "ledger", "true"]);
    assert!(prompt(&env, "s", "please fix").contains("DECLARED-BY-ME"), "an untrusted project has no say");
    env.write(&env.root().join("home/own.md"), b"DECLARED-BY-ME");
    assert!(!prompt(&env, "s", "go on").contains("DECLARED"), "the same words");
    env.write(&env.root().join("home/own.md"), b"DECLARED-ANEW");
    assert!(prompt(&env, "s", "go on").contains("DECLARED-ANEW"));
    // The client loads it by a link of its own.
    let env = trusted();
    declare(&env, json!({"files": ["AGENTS.md", "docs/../AGENTS.md"]}));
    env.make(&env.project.join("AGENTS.md"), "DECLARED-TWICE");
    assert_eq!(start(&env, "a", "startup").matches("DECLARED").count(), 1, "once under two names");
    std::os::unix::fs::symlink("AGENTS.md", env.project.join("CLAUDE.md")).unwrap();
    assert!(!start(&env, "b", "startup").contains("DECLARED"));
    // Copilot's start may come late; if it never comes, the second prompt tells.
    let copilot = |text: &str| {
        hook_event(
            &env,
            "copilot-cli",
            "userPromptSubmitted",
            json!({"sessionId": "c", "cwd": env.project, "prompt": text, "timestamp": 1}),
        )
    };
    declare(&env, json!({"files": ["docs/ctx.md"]}));
    assert!(
        !copilot("one").contains("DECLARED")
            && copilot("two").contains("DECLARED")
            && !copilot("three").contains("DECLARED")
    );
}

fn hook_event(env: &TestEnv, platform: &str, event: &str, payload: Value) -> String {
    feed(&mut env.command(&["hook", platform, event]), &payload.to_string())
}

#[test]
fn prompt_format_returns_unreadable_input_unchanged() {
    use std::io::Write;
    let env = trusted();
    let piped = std::process::Stdio::piped;
    let mut large = b"{\"prompt\":\"".to_vec();
    large.extend(vec![b'x'; 17 << 20]);
    for input in [&b"{\"prompt\":\"a \xff b\"}"[..], b"", b"{\"prompt\":\"/compact now\"}\n", &large] {
        let mut command = env.command(&["hook", "--format", "prompt"]);
        let mut child = command.stdin(piped()).stdout(piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let sent = input.to_vec();
        let writer = std::thread::spawn(move || stdin.write_all(&sent));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap().unwrap();
        assert!(output.status.success() && output.stdout == input, "unchanged, to the byte");
    }
}

#[test]
fn client_without_hooks_gets_declared_context() {
    let env = trusted();
    let mut client = Client::connect(&env);
    let told = client.good("context_check", json!({"sessionId": "web", "trigger": "session_start"}));
    assert!(told["context"].as_str().unwrap().contains("DECLARED-ONE"), "{told}");
    let again = client.good("context_check", json!({"sessionId": "web", "trigger": "before_response"}));
    assert!(!again.to_string().contains("DECLARED-ONE"), "once: {again}");
}

#[test]
fn malformed_manifest_is_reported_by_log_and_doctor() {
    let env = trusted();
    env.write(&env.project.join(".tanmi/context.json"), b"{\"files\": [");
    assert!(!start(&env, "s", "startup").contains("DECLARED-ONE"));
    let log = std::fs::read_to_string(env.home_store().join("log")).unwrap();
    assert!(log.contains("context.json"), "{log}");
    let doctor = env.run(&["doctor"]);
    assert!(!doctor.ok && doctor.stdout.contains("context.json"), "{}", doctor.stdout);
}
