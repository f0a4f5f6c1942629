//! Declared context: when it is injected, and into which sessions.

use serde_json::{Value, json};

use crate::agent::{Agent, hook};
use crate::env::TestEnv;
use crate::mcp::Client;

/// Writes the manifest of the project.
pub fn declare(env: &TestEnv, manifest: Value) {
    env.make(&env.project.join(".tanmi/context.json"), &manifest.to_string());
}

fn run_with_input(command: &mut std::process::Command, input: &str) -> String {
    use std::io::Write;
    let piped = std::process::Stdio::piped;
    let mut child = command.stdin(piped()).stdout(piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

fn send_event(env: &TestEnv, session: &str, event: &str, more: Value) -> String {
    Agent::claude(env, session).send(event, "", more)
}

fn start(env: &TestEnv, session: &str, source: &str) -> String {
    Agent::claude(env, session).start(source)
}

fn prompt(env: &TestEnv, session: &str, text: &str) -> String {
    Agent::claude(env, session).prompt(text)
}

fn trusted_project() -> TestEnv {
    let env = TestEnv::new();
    declare(&env, json!({"files": ["docs/ctx.md"]}));
    env.make(&env.project.join("docs/ctx.md"), "# Ctx\nDECLARED-ONE\n");
    env.ok(&["trust", "--yes"]);
    env
}

#[test]
fn declared_file_is_injected_once_and_again_after_change_or_compaction() {
    let env = trusted_project();
    let is_injected = |text: &str| text.contains("DECLARED");
    assert!(is_injected(&start(&env, "s", "startup")));
    assert!(!is_injected(&prompt(&env, "s", "hello")));
    assert!(!is_injected(&start(&env, "s", "resume")), "the conversation still contains it");
    env.write(&env.project.join("docs/ctx.md"), b"# Ctx\nDECLARED-TWO, longer\n");
    env.ok(&["trust", "--yes"]);
    assert!(prompt(&env, "s", "hello").contains("DECLARED-TWO"));
    assert!(!is_injected(&prompt(&env, "s", "hello")));
    send_event(&env, "s", "PreCompact", json!({"trigger": "manual"}));
    assert!(is_injected(&start(&env, "s", "compact")));
    assert!(!is_injected(&prompt(&env, "s", "hello")));
    assert!(
        is_injected(&prompt(&env, "t", "hello")),
        "injected at the first prompt if there was no session start"
    );
    assert!(!is_injected(&prompt(&env, "t", "hello")));
    env.ok(&["config", "set", "declaredContext", "false"]);
    assert!(!is_injected(&start(&env, "u", "startup")));
}

#[test]
fn file_loaded_by_client_or_in_prompt_is_not_injected() {
    let env = trusted_project();
    declare(&env, json!({"files": [".claude/CLAUDE.md", "AGENTS.md"]}));
    env.make(&env.project.join(".claude/CLAUDE.md"), "OF-CLAUDE");
    env.make(&env.project.join("AGENTS.md"), "OF-CODEX");
    env.ok(&["trust", "--yes"]);
    let injected = start(&env, "s", "startup");
    assert!(injected.contains("OF-CODEX") && !injected.contains("OF-CLAUDE"), "{injected}");
    let codex = json!({"session_id": "c", "hook_event_name": "SessionStart", "cwd": env.project, "source": "startup"});
    let injected = hook(&env, "codex", codex.to_string().as_bytes());
    assert!(!injected.contains("OF-CODEX") && injected.contains("OF-CLAUDE"), "{injected}");
    declare(&env, json!({"files": ["AGENTS.md"], "loadedByClient": {"claude-code": ["AGENTS.md"]}}));
    env.ok(&["trust", "--yes"]);
    assert!(!start(&env, "t", "startup").contains("OF-CODEX"), "loadedByClient replaces the built-in list");
    declare(&env, json!({"files": ["docs/ctx.md"]}));
    env.ok(&["trust", "--yes"]);
    let carried = prompt(&env, "u", "## 工作区环境\nDECLARED by the host\n\nhello");
    assert!(!carried.contains("DECLARED"), "{carried}");
    assert!(!prompt(&env, "u", "and now?").contains("DECLARED"), "the session has it from the host");
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
    let injected = start(&env, "t", "startup");
    assert!(injected.contains("DECLARED") && !injected.contains("SECRET"), "{injected}");
    // Files declared by the user or the container may be anywhere.
    env.make(&env.root().join("home/.tanmi/context.json"), &json!({"files": [secret]}).to_string());
    assert!(start(&env, "u", "startup").contains("SECRET"));
    let container = env.root().join("etc/context.json");
    env.make(&container, &json!({"files": ["all.md"]}).to_string());
    env.make(&env.root().join("etc/all.md"), "OF-THE-CONTAINER");
    let mut command = env.command(&["hook", "claude-code"]);
    command.env("TANMI_CONTEXT", &container);
    let payload = json!({"session_id": "v", "hook_event_name": "SessionStart", "cwd": env.project, "source": "startup"});
    assert!(run_with_input(&mut command, &payload.to_string()).contains("OF-THE-CONTAINER"));
    for broken in ["{", "[]", "{\"files\": 7}"] {
        env.make(&env.project.join(".tanmi/context.json"), broken);
        assert!(start(&env, "w", "startup").contains("SECRET"), "other manifests still apply");
    }
}

#[test]
fn oversized_file_is_cut_by_section_with_pointer() {
    let env = trusted_project();
    let large_file =
        format!("# One\nFIRST\n\n## Two\nSECOND\n\n## Three\n{}", "很长的文字。\n".repeat(250_000));
    env.write(&env.project.join("docs/ctx.md"), large_file.as_bytes());
    env.ok(&["trust", "--yes"]);
    let injected = start(&env, "s", "startup");
    let text = &injected;
    assert!(text.len() <= 10_000 && text.contains("SECOND") && !text.contains("很长的文字"), "{text}");
    assert!(text.contains("the rest is in") && text.contains("docs/ctx.md"), "{text}");
    // Files that do not fit are named.
    declare(&env, json!({"files": ["docs/ctx.md", "b.md", "c.md"]}));
    for name in ["b.md", "c.md"] {
        env.make(&env.project.join(name), &"words and words. ".repeat(700));
    }
    env.ok(&["trust", "--yes"]);
    let shown = env.ok(&["context", "show"]);
    assert!(shown.contains("truncated") && shown.contains("only its path"), "{shown}");
    let injected = start(&env, "t", "startup");
    assert!(injected.contains("not included:") && injected.contains("c.md"), "{injected}");
}

#[test]
fn subagent_gets_general_part_and_part_of_its_type() {
    let env = trusted_project();
    env.make(&env.project.join(".tanmi/subagents/general.md"), "FOR-ALL");
    env.make(&env.project.join(".tanmi/subagents/Explore.md"), "FOR-EXPLORE");
    env.make(&env.project.join("x.md"), "NOT-THIS");
    env.ok(&["trust", "--yes"]);
    let workspace = env.init();
    env.ok(&["workspace", "update", "--add-rule", "RULE-ONE"]);
    env.ok(&["session", "bind", "-w", &workspace, "--session", "s"]);
    let injected =
        |agent: &str| send_event(&env, "s", "SubagentStart", json!({"agent_id": agent, "agent_type": agent}));
    let explore = injected("Explore");
    for part in ["FOR-ALL", "FOR-EXPLORE", "RULE-ONE", "DECLARED-ONE", "You are a subagent (Explore)"] {
        assert!(explore.contains(part), "{part}: {explore}");
    }
    let other = injected("general-purpose");
    assert!(other.contains("FOR-ALL") && !other.contains("FOR-EXPLORE"), "{other}");
    for invalid_name in ["../../x", "../x", ".", "a/b", "\u{0}"] {
        assert!(!injected(invalid_name).contains("NOT-THIS"), "{invalid_name}");
    }
    // Cursor gets the full tool input back, with an extended prompt.
    let mut payload: Value =
        serde_json::from_str(include_str!("../../../platform/fixtures/cursor/preToolUse.Task.json")).unwrap();
    payload["workspace_roots"] = json!([env.project]);
    payload["conversation_id"] = "s".into();
    let answer: Value =
        serde_json::from_str(&run_with_input(&mut env.command(&["hook", "cursor"]), &payload.to_string()))
            .unwrap();
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
    env.ok(&["node", "transition", &node, "--action", "complete", "--conclusion", "done", "--session", "s"]);
    assert!(!std::fs::read_to_string(env.node_md(&workspace, &node)).unwrap().contains("startedByAgent"));
}

#[test]
fn prompt_format_returns_prompt_with_context_prepended() {
    let env = trusted_project();
    let pipe = |payload: &str| {
        run_with_input(
            &mut env.command(&["hook", "claude-code", "UserPromptSubmit", "--format", "prompt"]),
            payload,
        )
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

pub fn redact_root(env: &TestEnv, text: &str) -> String {
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
        out = redact_root(&env, &out);
    }
    insta::assert_snapshot!(out);
}

#[test]
fn untrusted_marker_is_ignored_and_same_content_is_not_repeated() {
    let env = TestEnv::new();
    env.make(&env.root().join("home/.tanmi/context.json"), "\u{feff}{\"files\": [\"own.md\"]}");
    env.make(&env.root().join("home/own.md"), "DECLARED-BY-ME");
    declare(&env, json!({"files": [], "marker": "fix"}));
    env.make(&env.home_store(), "not a folder");
    assert!(
        !prompt(&env, "s", "hello").contains("DECLARED"),
        "without a home store only a session start injects"
    );
    assert!(start(&env, "s", "startup").contains("DECLARED"));
    std::fs::remove_file(env.home_store()).unwrap();
    env.ok(&["config", "set", "ledger", "true"]);
    assert!(
        prompt(&env, "s", "please fix").contains("DECLARED-BY-ME"),
        "the marker of an untrusted project is ignored"
    );
    env.write(&env.root().join("home/own.md"), b"DECLARED-BY-ME");
    assert!(!prompt(&env, "s", "go on").contains("DECLARED"), "the content is the same");
    env.write(&env.root().join("home/own.md"), b"DECLARED-ANEW");
    assert!(prompt(&env, "s", "go on").contains("DECLARED-ANEW"));
    // The client loads the file through a symbolic link.
    let env = trusted_project();
    declare(&env, json!({"files": ["AGENTS.md", "docs/../AGENTS.md"]}));
    env.make(&env.project.join("AGENTS.md"), "DECLARED-TWICE");
    env.ok(&["trust", "--yes"]);
    assert_eq!(
        start(&env, "a", "startup").matches("DECLARED").count(),
        1,
        "two paths of one file are injected once"
    );
    std::os::unix::fs::symlink("AGENTS.md", env.project.join("CLAUDE.md")).unwrap();
    assert!(!start(&env, "b", "startup").contains("DECLARED"));
    // Copilot's session start may come late. If it does not come, the second prompt injects the context.
    let copilot = |text: &str| {
        hook_event(
            &env,
            "copilot-cli",
            "userPromptSubmitted",
            json!({"sessionId": "c", "cwd": env.project, "prompt": text, "timestamp": 1}),
        )
    };
    declare(&env, json!({"files": ["docs/ctx.md"]}));
    env.ok(&["trust", "--yes"]);
    assert!(
        !copilot("one").contains("DECLARED")
            && copilot("two").contains("DECLARED")
            && !copilot("three").contains("DECLARED")
    );
}

fn hook_event(env: &TestEnv, platform: &str, event: &str, payload: Value) -> String {
    run_with_input(&mut env.command(&["hook", platform, event]), &payload.to_string())
}

#[test]
fn prompt_format_returns_unreadable_input_unchanged() {
    use std::io::Write;
    let env = trusted_project();
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
        assert!(output.status.success() && output.stdout == input, "the input is returned byte for byte");
    }
}

#[test]
fn client_without_hooks_gets_declared_context() {
    let env = trusted_project();
    let mut client = Client::connect(&env);
    let injected = client.expect_ok("context_check", json!({"sessionId": "web", "trigger": "session_start"}));
    assert!(injected["context"].as_str().unwrap().contains("DECLARED-ONE"), "{injected}");
    let again = client.expect_ok("context_check", json!({"sessionId": "web", "trigger": "before_response"}));
    assert!(!again.to_string().contains("DECLARED-ONE"), "once: {again}");
}

#[test]
fn malformed_manifest_is_reported_by_log_and_doctor() {
    let env = trusted_project();
    env.write(&env.project.join(".tanmi/context.json"), b"{\"files\": [");
    assert!(!start(&env, "s", "startup").contains("DECLARED-ONE"));
    let log = std::fs::read_to_string(env.home_store().join("log")).unwrap();
    assert!(log.contains("context.json"), "{log}");
    let doctor = env.run(&["doctor"]);
    assert!(!doctor.ok && doctor.stdout.contains("context.json"), "{}", doctor.stdout);
}

#[test]
fn build_agent_or_skill_with_when_writes_it() {
    for (lang, skill) in [
        ("zh_CN.UTF-8", "- **x**: does x（适用场景：on Fridays）\n"),
        ("en_US.UTF-8", "- **x**: does x (when to use: on Fridays)\n"),
    ] {
        let env = TestEnv::with_lang(lang);
        let agent = "| a | does a | on Mondays |";
        let sources = env.project.join(".claude");
        env.make(&sources.join("agents/a.md"), "---\nname: a\ndescription: does a\nwhen: on Mondays\n---\n");
        let matter = "---\nname: x\ndescription: does x\nwhen_to_use: on Fridays\n---\n";
        env.make(&sources.join("skills/x/SKILL.md"), matter);
        env.make(&sources.join("skills/y/SKILL.md"), "---\nname: y\ndescription: does y\n---\n");
        env.ok(&["context", "build"]);
        let built = std::fs::read_to_string(sources.join("CLAUDE.md")).unwrap();
        assert!(
            built.contains(agent) && built.contains(skill) && built.contains("- **y**: does y\n"),
            "{built}"
        );
    }
}

#[test]
fn build_file_changed_by_hand_is_reported_with_line_and_command() {
    let env = TestEnv::new();
    let (agent, path) = (env.project.join(".claude/agents/a.md"), env.project.join(".claude/CLAUDE.md"));
    env.make(&agent, "---\nname: a\ndescription: does a\n---\n");
    env.ok(&["context", "build"]);
    let built = std::fs::read_to_string(&path).unwrap();
    let line_of = |text: &str, part: &str| text.lines().position(|line| line.contains(part)).unwrap() + 1;
    let row = "| a | does a |  |";
    let changes = [
        (built.replace(row, "| a | my text |  |"), "my text"),
        (format!("{built}\nmy text\n"), "my text"),
        (built.replace("<!-- tanmi:keep -->", ""), "<!-- /tanmi:keep -->"),
    ];
    for (changed, part) in changes {
        env.write(&path, changed.as_bytes());
        for args in [&["context", "build"][..], &["context", "build", "--check"]] {
            let message = env.error(args)["message"].as_str().unwrap().to_owned();
            let place = format!("{}:{}: ", path.display(), line_of(&changed, part));
            assert!(
                message.contains(&place) && message.contains("then run `tanmi context build`"),
                "{message}"
            );
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), changed, "the file stays as it is");
    }
    // The fix that the message names: the own text between the marks, no checksum, and the command.
    let (head, rest) = built.split_once('\n').unwrap();
    assert!(head.starts_with("<!-- built by tanmi context build "), "{head}");
    let fixed = format!("<!-- built by tanmi context build -->\n{rest}")
        .replace("keep -->\n<", "keep -->\nmy text\n<");
    env.write(&path, fixed.as_bytes());
    env.ok(&["context", "build"]);
    assert!(std::fs::read_to_string(&path).unwrap().contains("my text"));
    env.ok(&["context", "build", "--check"]);
}

#[test]
fn provisioned_file_changed_by_hand_is_reported_with_line() {
    let env = TestEnv::new();
    let root = env.root().join("users");
    let path = root.join("user_1/data/.claude/CLAUDE.md");
    let provision = || env.ok(&["context", "provision", "--user", "1", "--root", root.to_str().unwrap()]);
    std::fs::create_dir_all(root.join("user_1/data")).unwrap();
    provision();
    let built = std::fs::read_to_string(&path).unwrap();
    env.write(&path, format!("{built}my text\n").as_bytes());
    let reported = provision();
    let place = format!("{}:{}: ", path.display(), built.lines().count() + 1);
    assert!(reported.contains(&place) && reported.contains("then run this command again"), "{reported}");
}

/// A version of Claude Code that loads `AGENTS.md` itself does so where there is no `CLAUDE.md`, except that
/// of the user.
#[test]
fn agents_md_is_not_injected_where_claude_code_loads_it() {
    let env = TestEnv::new();
    declare(&env, json!({"files": ["AGENTS.md"]}));
    env.make(&env.project.join("AGENTS.md"), "OF-ALL-AGENTS");
    env.ok(&["trust", "--yes"]);
    let is_injected = |version: &str, session: &str| {
        let payload = json!({"session_id": session, "hook_event_name": "SessionStart", "cwd": env.project});
        let mut command = env.command(&["hook", "claude-code"]);
        run_with_input(command.env("AI_AGENT", version), &payload.to_string()).contains("OF-ALL-AGENTS")
    };
    let new = "claude-code_2-1-277_harness";
    assert!(!is_injected(new, "a"));
    assert!(!is_injected("claude-code_3-0-0_agent", "b"));
    for old in ["claude-code_2-1-276_harness", "claude-code_2-1", "other_2-1-300_x", ""] {
        assert!(is_injected(old, &format!("old {old}")), "{old}");
    }
    env.make(&env.root().join("home/.claude/CLAUDE.md"), "mine");
    assert!(!is_injected(new, "c"), "the file of the user does not replace it");
    let own = env.project.join(".claude/CLAUDE.md");
    env.make(&own, "own");
    assert!(is_injected(new, "d"), "Claude Code loads CLAUDE.md instead");
    std::fs::remove_file(own).unwrap();
    env.make(&env.project.parent().unwrap().join("CLAUDE.md"), "above");
    assert!(is_injected(new, "e"), "also one in a folder above");
}
