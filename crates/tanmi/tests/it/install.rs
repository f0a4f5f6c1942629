//! The commands `install`, `uninstall` and `doctor`.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::env::{Run, TestEnv};

mod killed;
mod links;
mod tools;

fn home_path(env: &TestEnv, path: &str) -> PathBuf {
    env.root().join("home").join(path)
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Replaces paths and the version, which differ between machines.
fn redact_paths(env: &TestEnv, text: &str) -> String {
    let program = env!("CARGO_BIN_EXE_tanmi");
    let text = text.replace(program, "TANMI").replace(&env.root().display().to_string(), "ROOT");
    text.replace(env!("CARGO_PKG_VERSION"), "VERSION")
}

#[test]
fn install_commands_output() {
    let mut out = String::new();
    for lang in ["en_US.UTF-8", "zh_CN.UTF-8"] {
        let env = TestEnv::with_lang(lang);
        for folder in [".claude", ".cursor", ".codex", ".gemini", ".copilot"] {
            std::fs::create_dir_all(home_path(&env, folder)).unwrap();
        }
        env.make(&home_path(&env, ".claude/settings.json"), "{\n  // mine\n  \"model\": \"opus\"\n}\n");
        env.make(&home_path(&env, ".cursor/hooks.json"), "{\n  \"hooks\": []\n}\n");
        for args in [
            &["doctor"][..],
            &["install", "--platform", "claude-code", "--no-mcp", "--dry-run"],
            &["install", "--guide"],
            &["install"],
            &["install", "--scope", "project", "--platform", "claude-code,copilot-cli"],
            &["doctor"],
            &["install", "--platform", "codex", "--print"],
            &["uninstall", "--dry-run", "--platform", "codex"],
            &["uninstall"],
            &["uninstall"],
            &["install", "--platform", "emacs"],
        ] {
            let run = env.run(args);
            out.push_str(&format!("$ tanmi {}\n{}{}\n", args.join(" "), run.stdout, run.stderr));
        }
        out = redact_paths(&env, &out);
    }
    insta::assert_snapshot!(out);
}

/// Cursor also runs the hooks in the files of Claude Code.
#[test]
fn claude_code_and_cursor_hooks_inject_once() {
    let env = TestEnv::new();
    let workspace = env.init();
    env.ok(&["install", "--platform", "claude-code,cursor", "--scope", "user", "--yes"]);
    env.ok(&["session", "bind", "-w", &workspace, "--session", "c1"]);
    let claude = read(&home_path(&env, ".claude/settings.json"));
    let cursor = read(&home_path(&env, ".cursor/hooks.json"));
    let command = |value: &Value| value["command"].as_str().unwrap().to_owned();
    for (claude_event, cursor_event, extra) in [
        ("SessionStart", "sessionStart", json!({})),
        ("UserPromptSubmit", "beforeSubmitPrompt", json!({"prompt": "go", "generation_id": "g1"})),
    ] {
        let mut payload = json!({"conversation_id": "c1", "session_id": "c1", "cursor_version": "3.20.17", "hook_event_name": cursor_event, "workspace_roots": [env.project]});
        payload.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        env.ok(&["workspace", "update", "--add-rule", &format!("news before {cursor_event}")]);
        let commands = [
            command(&claude["hooks"][claude_event][0]["hooks"][0]),
            command(&cursor["hooks"][cursor_event][0]),
        ];
        let answers: Vec<String> = commands.iter().map(|command| shell(&env, command, &payload)).collect();
        let injected =
            answers.iter().filter(|answer| answer.contains(&format!("news before {cursor_event}"))).count();
        assert_eq!(injected, 1, "{cursor_event}: {answers:?}");
    }
}

/// Runs a hook command as a client does.
fn shell(env: &TestEnv, command: &str, payload: &Value) -> String {
    use std::io::Write;
    let mut shell = env.command_in("sh", &env.project);
    shell.args(["-c", command]).stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = shell.spawn().unwrap();
    child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
}

#[test]
fn program_path_with_space_and_quote_runs() {
    let env = TestEnv::new();
    let program = env.root().join("my 'tools'/tanmi");
    std::fs::create_dir_all(program.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_tanmi"), &program).unwrap();
    let mut command = env.command_in(program.to_str().unwrap(), &env.project);
    command.env("PATH", format!("{}:/usr/bin:/bin", program.parent().unwrap().display()));
    let run = Run::of(command.args(["install", "--platform", "claude-code"]).output().unwrap());
    assert!(run.ok, "{}", run.stderr);
    let settings = read(&home_path(&env, ".claude/settings.json"));
    let hook = settings["hooks"]["SessionStart"][0]["hooks"][0]["command"].as_str().unwrap();
    assert!(hook.contains("my "), "the hook uses the link, which survives an upgrade: {hook}");
    let payload = json!({"session_id": "s-1", "hook_event_name": "SessionStart", "cwd": env.project, "source": "startup"});
    assert!(shell(&env, hook, &payload).contains("s-1"));
}

#[test]
fn purge_needs_confirmation_and_deletes_everything() {
    let env = TestEnv::new();
    let other = env.root().join("other");
    std::fs::create_dir_all(&other).unwrap();
    assert!(env.run_in(&other, &["workspace", "init", "--name", "o", "--goal", "g"]).ok);
    env.init();
    env.ok(&["memory", "save-fact", "a fact"]);
    env.ok(&["install", "--platform", "cursor"]);
    let refusal = env.error(&["uninstall", "--purge"]);
    assert_eq!(refusal["code"], "CONFIRMATION_REQUIRED");
    assert!(
        refusal["details"]["delete"].to_string().contains("other"),
        "the error lists the folders to delete: {refusal}"
    );
    assert!(
        env.home_store().exists() && home_path(&env, ".cursor/hooks.json").exists(),
        "nothing is deleted without confirmation"
    );
    env.ok(&["uninstall", "--purge", "--yes"]);
    for deleted in [
        env.home_store(),
        env.project.join(".tanmi-workspace"),
        other.join(".tanmi-workspace"),
        home_path(&env, ".cursor"),
    ] {
        assert!(!deleted.exists(), "{}", deleted.display());
    }
}

/// In the home folder, user scope and project scope would be the same files.
#[test]
fn home_folder_has_no_project_scope() {
    let env = TestEnv::new();
    let home = env.root().join("home");
    assert!(env.run_in(&home, &["install", "--platform", "all"]).ok);
    let before = env.files(&home.join(".claude"));
    let doctor = env.run_in(&home, &["doctor", "--fix"]);
    assert!(doctor.ok && !doctor.stdout.contains("run twice"), "{}", doctor.stdout);
    assert_eq!(env.files(&home.join(".claude")), before);
    let refused = env.run_in(&home, &["uninstall", "--scope", "project", "--json"]);
    assert!(!refused.ok && refused.stdout.contains("home folder"), "{}", refused.stdout);
    assert_eq!(env.files(&home.join(".claude")), before);
    assert!(env.run_in(&home, &["uninstall"]).ok);
    assert!(!home.join(".claude").exists() && !home.join(".codex").exists());
}

/// A purge deletes the install receipts, so it uninstalls from every project.
#[test]
fn purge_uninstalls_from_other_projects() {
    let env = TestEnv::new();
    let other = env.root().join("other");
    std::fs::create_dir_all(&other).unwrap();
    assert!(env.run_in(&other, &["install", "--platform", "cursor", "--scope", "project"]).ok);
    env.ok(&["install", "--platform", "claude-code"]);
    assert!(env.ok(&["uninstall", "--purge", "--dry-run"]).contains("would delete"));
    env.ok(&["uninstall", "--purge", "--yes", "--platform", "codex"]);
    assert!(!other.join(".cursor").exists() && !home_path(&env, ".claude/settings.json").exists());
    assert!(!env.home_store().exists());
}

#[test]
fn unwritable_file_does_not_stop_install() {
    use std::os::unix::fs::symlink;
    let env = TestEnv::new();
    symlink("/proc/nowhere/x", home_path(&env, ".claude")).unwrap();
    let run = env.run(&["install", "--platform", "claude-code,cursor"]);
    assert!(!run.ok && run.stdout.contains("failed"), "{}{}", run.stdout, run.stderr);
    assert!(home_path(&env, ".cursor/hooks.json").exists(), "other files are installed");
}

#[test]
#[allow(clippy::disallowed_methods)] // stands for a copy made by the user
fn renamed_program_recognizes_its_hooks() {
    let env = TestEnv::new();
    let program = env.root().join("tm2");
    std::fs::hard_link(env!("CARGO_BIN_EXE_tanmi"), &program)
        .or_else(|_| std::fs::copy(env!("CARGO_BIN_EXE_tanmi"), &program).map(drop))
        .unwrap();
    let run = |args: &[&str]| {
        Run::of(env.command_in(program.to_str().unwrap(), &env.project).args(args).output().unwrap())
    };
    assert!(run(&["install", "--platform", "cursor"]).ok);
    let doctor = run(&["doctor"]);
    assert!(doctor.ok && doctor.stdout.contains("the hook test passed"), "{}", doctor.stdout);
    assert!(run(&["uninstall"]).ok && !home_path(&env, ".cursor").exists());
}

type Damage = (&'static str, fn(&TestEnv, &str, &str), &'static str);

/// Damages with a name, the code that causes it, and the text by which the doctor reports it.
const DAMAGES: &[Damage] = &[
    ("a missing program", |env, _, _| edit(env, "/tanmi hook", "/gone/tanmi hook"), "program not found"),
    ("a missing hook", |env, _, _| remove_key(env, "Stop"), "missing hooks: Stop"),
    ("a duplicate hook", |env, _, _| duplicate_hook(env), "duplicate hooks: Stop"),
    (
        "a missing MCP server",
        |env, _, _| std::fs::remove_file(home_path(env, ".claude.json")).unwrap(),
        "the MCP server is not installed",
    ),
    (
        "hooks for user and project",
        |env, _, _| {
            let settings = std::fs::read_to_string(home_path(env, ".claude/settings.json")).unwrap();
            env.make(&env.project.join(".claude/settings.json"), &settings);
        },
        "run twice",
    ),
    (
        "unreadable bindings",
        |env, _, _| env.write(&env.home_store().join("session-bindings.json"), b"{"),
        "session-bindings.json is damaged",
    ),
    (
        "a binding to a missing workspace",
        |env, workspace, _| {
            env.ok(&["session", "bind", "-w", workspace, "--session", "old"]);
            env.edit(&env.home_store().join("session-bindings.json"), |text| {
                text.replace(workspace, "ws-gone-123456")
            });
        },
        "bound to workspaces that no longer exist",
    ),
    (
        "a home store readable by other users",
        |env, _, _| {
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(env.home_store(), PermissionsExt::from_mode(0o755)).unwrap();
        },
        "accessible to other users",
    ),
    (
        "a damaged node index",
        |env, workspace, _| env.write(&env.workspace_dir(workspace).join(".local/index.sqlite"), &[7; 9000]),
        ": the index is damaged",
    ),
    (
        "a damaged memory index",
        |env, _, _| env.write(&env.project.join(".tanmi-workspace/memory/index.sqlite"), &[7; 9000]),
        "memory: the index is damaged",
    ),
    (
        "a leftover temporary file",
        |env, _, _| env.write(&env.home_store().join("tmp-4194304-0-abcdef"), b"x"),
        "left by interrupted processes",
    ),
    (
        "an unreadable session state",
        |env, _, _| {
            let path = env.home_store().join("state/torn.json");
            env.make(&path, "{");
            let long_ago = std::time::SystemTime::UNIX_EPOCH;
            std::fs::File::options().write(true).open(&path).unwrap().set_modified(long_ago).unwrap();
        },
        "state files cannot be read",
    ),
    (
        "a node with an invalid status",
        |env, workspace, node| {
            env.edit(&env.node_md(workspace, node), |text| {
                text.replace("status: pending", "status: nonsense")
            });
        },
        "nonsense",
    ),
    (
        "unreadable client settings",
        |env, _, _| env.write(&home_path(env, ".claude/settings.json"), b"{\n  \"hooks\": {,}\n}"),
        "settings.json:2",
    ),
    (
        "unreadable tanmi settings",
        |env, _, _| env.write(&env.home_store().join("config.json"), b"{"),
        "config.json",
    ),
    (
        "untrusted rules",
        |env, _, _| env.make(&env.project.join(".tanmi/rules.json"), "{\"customRules\": []}"),
        "is not trusted",
    ),
    (
        "disabled hooks",
        |env, _, _| edit(env, "{\n  \"hooks\"", "{\n  \"disableAllHooks\": true,\n  \"hooks\""),
        "disableAllHooks = true disables Tanmi",
    ),
    (
        "a hook with the wrong event",
        |env, _, _| edit(env, "claude-code Stop", "claude-code SessionStart"),
        "modified hooks: Stop",
    ),
    (
        "a hook with a timeout of zero",
        |env, _, _| edit(env, "\"timeout\": 30", "\"timeout\": 0"),
        "modified hooks: SessionEnd",
    ),
    (
        "missing client settings",
        |env, _, _| std::fs::remove_file(home_path(env, ".claude/settings.json")).unwrap(),
        "missing hooks: SessionStart",
    ),
    (
        "a pipe in place of the bindings",
        |env, _, _| {
            let path = env.home_store().join("session-bindings.json");
            let _ = std::fs::remove_file(&path);
            assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        },
        "not a regular file",
    ),
    ("a pause", |env, _, _| drop(env.ok(&["pause"])), "paused"),
];

fn edit(env: &TestEnv, from: &str, to: &str) {
    env.edit(&home_path(env, ".claude/settings.json"), |text| text.replace(from, to));
}

fn remove_key(env: &TestEnv, event: &str) {
    let path = home_path(env, ".claude/settings.json");
    let mut settings = read(&path);
    settings["hooks"].as_object_mut().unwrap().remove(event);
    env.write(&path, settings.to_string().as_bytes());
}

fn duplicate_hook(env: &TestEnv) {
    let path = home_path(env, ".claude/settings.json");
    let mut settings = read(&path);
    let hook = settings["hooks"]["Stop"][0].clone();
    settings["hooks"]["Stop"].as_array_mut().unwrap().push(hook);
    env.write(&path, settings.to_string().as_bytes());
}

/// Fixes a damage that `doctor --fix` leaves to the user.
fn fix_by_hand(env: &TestEnv, what: &str, workspace: &str, node: &str) {
    match what {
        "unreadable client settings" => env.write(&home_path(env, ".claude/settings.json"), b"{}"),
        "unreadable tanmi settings" => {
            std::fs::remove_file(env.home_store().join("config.json")).unwrap();
        }
        "untrusted rules" => drop(env.ok(&["rules", "trust", "--yes"])),
        "a node with an invalid status" => {
            env.edit(&env.node_md(workspace, node), |text| {
                text.replace("status: nonsense", "status: pending")
            });
        }
        "disabled hooks" => edit(env, "\n  \"disableAllHooks\": true,", ""),
        "a pipe in place of the bindings" => {
            std::fs::remove_file(env.home_store().join("session-bindings.json")).unwrap();
        }
        "a pause" => drop(env.ok(&["resume"])),
        other => panic!("{other}: `doctor --fix` should have fixed this"),
    }
}

#[test]
fn doctor_reports_every_damage_and_fixes_what_it_can() {
    for (what, damage, message) in DAMAGES {
        let env = TestEnv::new();
        let workspace = env.init();
        let node = env.node("root", "execution", "t");
        env.ok(&["memory", "save-fact", "a fact"]);
        env.ok(&["install", "--platform", "claude-code"]);
        let healthy = env.run(&["doctor", "--json"]);
        assert!(healthy.ok, "{what}: not healthy before the damage: {}", healthy.stdout);
        damage(&env, &workspace, &node);
        let damaged = env.run(&["doctor"]);
        assert!(!damaged.ok && damaged.stdout.contains(message), "{what}: {}", damaged.stdout);
        let line =
            damaged.stdout.lines().skip_while(|line| !line.contains(message)).nth(1).unwrap_or_default();
        assert!(line.trim_start().starts_with('→'), "{what}: no advice: {}", damaged.stdout);
        let fixed = env.run(&["doctor", "--fix"]);
        if !fixed.ok {
            fix_by_hand(&env, what, &workspace, &node);
            env.ok(&["doctor", "--fix"]);
        }
        let again = env.run(&["doctor"]);
        assert!(again.ok, "{what}: {}\n---\n{}", fixed.stdout, again.stdout);
        assert_eq!(env.status(&node), "pending", "{what}");
        assert_eq!(env.json(&["memory", "search", "fact"])["results"].as_array().unwrap().len(), 1, "{what}");
    }
}
