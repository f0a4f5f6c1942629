//! Loss: what people, editors and clients wrote survives the death of the program at any moment, and work on
//! local files stays bounded.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::crash_safety::has_strace;
use crate::env::TestEnv;

/// Waits until `is_reached` is true. Panics after 20 seconds.
fn wait_until(what: &str, mut is_reached: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_reached() {
        assert!(start.elapsed() < Duration::from_secs(20), "waited too long: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Runs `tanmi` and stops it before and after its first exchange of two files.
fn start_slow_exchange(env: &TestEnv, args: &[&str]) -> Child {
    let mut command = env.command_in("strace", &env.project);
    command
        .args(["-qq", "-o", "/dev/null", "-e", "trace=renameat2"])
        .args(["-e", "inject=renameat2:delay_enter=1000000:delay_exit=3000000:when=1"])
        .arg(env!("CARGO_BIN_EXE_tanmi"))
        .args(args);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Kills the traced process and waits for `strace`.
fn kill_traced(mut strace: Child) {
    let children = format!("/proc/{0}/task/{0}/children", strace.id());
    let pid = std::fs::read_to_string(children).unwrap().trim().to_owned();
    assert!(pid.parse::<u32>().is_ok(), "one traced process: {pid:?}");
    assert!(std::process::Command::new("kill").args(["-9", &pid]).status().unwrap().success());
    strace.wait().unwrap();
}

/// Returns the temporary files of unfinished replacements in a folder.
fn swaps(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    entries
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("swap-")))
        .collect()
}

/// Returns the texts of the kept copies of a workspace.
fn kept_texts(env: &TestEnv, ws: &str) -> Vec<String> {
    let kept = std::fs::read_dir(env.workspace_dir(ws).join(".local/kept")).unwrap().flatten();
    kept.map(|entry| std::fs::read_to_string(entry.path()).unwrap()).collect()
}

/// Lets `args` replace `path`, saves an edit right before the exchange, and kills the program right after it. `temp` is
/// the folder for temporary files.
fn kill_after_exchange(
    env: &TestEnv,
    args: &[&str],
    temp: &Path,
    path: &Path,
    change: impl FnOnce(String) -> String,
) {
    let child = start_slow_exchange(env, args);
    wait_until("the new file", || !swaps(temp).is_empty());
    env.edit(path, change);
    let saved = std::fs::read_to_string(path).unwrap();
    wait_until("the exchange", || std::fs::read_to_string(path).unwrap() != saved);
    kill_traced(child);
}

/// Saves an edit of a title while the program writes to the node, and kills the program. Returns the
/// workspace, the file of the node and the folder for temporary files.
fn displace_hand_edit(env: &TestEnv, title: &str) -> (String, PathBuf, PathBuf) {
    let ws = env.init();
    let task = env.node("root", "execution", "old title");
    let (path, temp) = (env.node_md(&ws, &task), env.workspace_dir(&ws).join(".local/tmp"));
    let args = ["log", "--node", &task, "by the program"];
    kill_after_exchange(env, &args, &temp, &path, |text| text.replace("old title", title));
    (ws, path, temp)
}

/// An editor saves the daily file by renaming while a fact is appended to it.
#[test]
fn fact_appended_to_replaced_file_is_appended_again() {
    if !has_strace() {
        return;
    }
    let env = TestEnv::new();
    env.ok(&["memory", "save-fact", "the first fact"]);
    let daily = env.project.join(".tanmi-workspace/memory/daily");
    let path = std::fs::read_dir(&daily).unwrap().flatten().next().unwrap().path();
    let before = std::fs::read(&path).unwrap();
    let mut command = env.command_in("strace", &env.project);
    command.args(["-qq", "-o", "/dev/null", "-e", "trace=fdatasync"]);
    command.args(["-e", "inject=fdatasync:delay_enter=1000000:when=1"]);
    command.arg(env!("CARGO_BIN_EXE_tanmi")).args(["memory", "save-fact", "the second fact"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("the append", || std::fs::read(&path).unwrap().len() > before.len());
    let saved = env.root().join("saved");
    env.write(&saved, &before);
    std::fs::rename(&saved, &path).unwrap();
    assert!(child.wait().unwrap().success());
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("the first fact") && text.contains("the second fact"), "{text}");
}

#[test]
fn hand_edit_displaced_by_killed_process_gets_its_place_back() {
    if !has_strace() {
        return;
    }
    let env = TestEnv::new();
    let (ws, path, temp) = displace_hand_edit(&env, "BY HAND");
    let run = env.run(&["node", "list", "--json"]);
    assert!(run.stdout.contains("BY HAND") && run.stderr.contains("was edited by hand"), "{}", run.stderr);
    assert!(std::fs::read_to_string(&path).unwrap().contains("BY HAND"));
    let findings = env.check(&[])["findings"].clone();
    assert_eq!((findings.as_array().unwrap().len(), &findings[0]["code"]), (1, &"KEPT_ASIDE".into()));
    let kept = kept_texts(&env, &ws);
    assert!(kept[0].contains("by the program"), "the version of the program is kept: {kept:?}");
    assert_eq!(std::fs::read_dir(temp).unwrap().count(), 0);
}

#[test]
fn hand_edit_displaced_before_another_save_is_kept() {
    if !has_strace() {
        return;
    }
    let env = TestEnv::new();
    let (ws, path, _) = displace_hand_edit(&env, "FIRST EDIT");
    env.edit(&path, |text| text.replace("old title", "SECOND EDIT"));
    let run = env.run(&["node", "list", "--json"]);
    assert!(run.stdout.contains("SECOND EDIT") && run.stderr.contains("written twice"), "{}", run.stderr);
    let findings = env.check(&[])["findings"].clone();
    let kept = kept_texts(&env, &ws);
    assert_eq!(findings.as_array().unwrap().len(), kept.len(), "{findings}");
    assert!(kept.iter().any(|text| text.contains("FIRST EDIT")), "{kept:?}");
}

#[test]
fn client_file_displaced_by_killed_install_gets_its_place_back() {
    if !has_strace() {
        return;
    }
    let env = TestEnv::new();
    let dir = env.root().join("home/.claude");
    let path = dir.join("settings.json");
    env.make(&path, "{\"theme\": \"old\"}\n");
    let args = ["install", "--platform", "claude-code", "--no-mcp", "--yes"];
    kill_after_exchange(&env, &args, &dir, &path, |text| text.replace("old", "NEWEST"));
    env.ok(&args);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("NEWEST") && text.contains("hook claude-code"), "{text}");
    assert_eq!(swaps(&dir), Vec::<PathBuf>::new());
}

#[test]
fn byte_order_mark_hides_nothing_and_stays() {
    let env = TestEnv::new();
    let ws = env.init();
    let task = env.node("root", "execution", "a task");
    let memory = env.project.join(".tanmi-workspace/memory");
    env.ok(&["memory", "save-fact", "the first fact is about caches"]);
    env.ok(&["memory", "save-summary", "--topic", "zebra", "--summary", "the first summary is about caches"]);
    env.ok(&["config", "set", "ledger", "false"]);
    env.make(&memory.join("facts.jsonl"), "{\"content\": \"an old fact about caches\"}");
    env.make(&memory.join("MEMORY.md"), "Core memory");
    let files = [
        memory.join("daily/2025-12-11.jsonl"),
        memory.join("sessions.jsonl"),
        memory.join("facts.jsonl"),
        memory.join("MEMORY.md"),
        env.home_store().join("config.json"),
        env.workspace_dir(&ws).join("Workspace.md"),
        env.node_md(&ws, &task),
    ];
    for file in &files {
        env.edit(file, |text| format!("\u{feff}{text}"));
    }
    let found = env.ok(&["memory", "search", "caches", "--json"]);
    for content in ["the first fact", "the first summary", "an old fact"] {
        assert!(found.contains(content), "{content}: {found}");
    }
    assert_eq!(env.json(&["memory", "stats"])["badLines"], 0);
    let start = Agent::claude(&env, "s").start("startup");
    assert!(start.contains("Core memory") && start.contains("the first fact"), "{start}");
    assert!(!start.contains('\u{feff}'), "{start}");
    env.ok(&["config", "set", "language", "en"]);
    env.ok(&["log", "--node", &task, "a line"]);
    env.ok(&["workspace", "update", "--goal", "another"]);
    env.ok(&["memory", "save-fact", "a second fact"]);
    let ledger = env.ok(&["config", "get", "ledger"]);
    assert!(ledger.contains("false"), "{ledger}");
    for file in &files {
        assert!(std::fs::read_to_string(file).unwrap().starts_with('\u{feff}'), "{}", file.display());
    }
}

/// Writes a chain of nodes, each the child of the one before.
fn write_chain(env: &TestEnv, ws: &str, length: usize) {
    let first = env.node("root", "planning", "link 0");
    let template = std::fs::read_to_string(env.node_md(ws, &first)).unwrap();
    let mut parent = first.clone();
    for n in 1..=length {
        let id = format!("node-chain-{n}");
        let text = template.replace("parentId: root", &format!("parentId: {parent}"));
        env.make(
            &env.node_md(ws, &id),
            &text
                .replace("link 0", &format!("link {n}"))
                .replace(&format!("id: {first}\n"), &format!("id: {id}\n")),
        );
        parent = id;
    }
}

#[test]
fn check_of_a_deep_chain_is_linear() {
    if !has_strace() {
        return;
    }
    let count = |length: usize| {
        let env = TestEnv::new();
        let ws = env.init();
        write_chain(&env, &ws, length);
        let fixed = env.check(&["--fix"]);
        assert_eq!(
            fixed["findings"].as_array().unwrap().len(),
            length,
            "each parent has an unfinished child"
        );
        let calls = env.root().join("calls");
        let mut command = env.command_in("strace", &env.project);
        command
            .args(["-f", "-qq", "-e", "trace=statx,stat,newfstatat,openat,pread64,read", "-o"])
            .arg(&calls);
        command.arg(env!("CARGO_BIN_EXE_tanmi")).args(["workspace", "check", "--json"]);
        let output = command.output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["findings"].as_array().unwrap().len(), 0);
        assert_eq!(report["nodes"], length + 1, "without the root");
        std::fs::read_to_string(calls).unwrap().lines().count()
    };
    let (short, long) = (count(250), count(500));
    assert!(long < short * 5 / 2, "{short} system calls for 250 nodes, {long} for 500");
}

#[test]
fn retention_runs_at_session_start_and_keeps_what_is_in_use() {
    let env = TestEnv::new();
    let ws = env.init();
    let count = |folder: &str, end: &str| {
        let entries = std::fs::read_dir(env.home_store().join(folder)).unwrap().flatten();
        entries.filter(|entry| entry.file_name().to_string_lossy().ends_with(end)).count()
    };
    for day in 0..40 {
        for n in 0..2 {
            Agent::claude(&env, &format!("s{day}-{n}")).start("startup");
        }
        if day == 0 {
            env.ok(&["session", "bind", "--session", "s0-0", "--workspace", &ws]);
        } else if day == 20 {
            Agent::claude(&env, "s0-0").prompt("go on");
        }
        env.tick(86_400_000);
    }
    // Texts of the last second are kept.
    std::thread::sleep(Duration::from_millis(1200));
    let last = Agent::claude(&env, "last");
    last.start("startup");
    assert_eq!(count("ledger", ".jsonl"), 31, "30 days and today");
    assert!(count("state", ".json") <= 64, "{}", count("state", ".json"));
    assert!(count("ledger/texts", "") <= 64, "{}", count("ledger/texts", ""));
    let entries = env.json(&["ledger", "--text", "--limit", "1000"])["entries"].clone();
    assert!(entries.as_array().unwrap().iter().all(|entry| entry["content"].is_string()), "{entries}");
    let bound = env.json(&["session", "status", "--session", "s0-0"]);
    assert_eq!(bound["bound"], true, "active within 30 days: {bound}");
    // The latest session of a client that still runs, in this case of the test, is kept however long it was idle.
    env.tick(90 * 86_400_000);
    env.ok(&["ledger"]);
    assert_eq!(count("state", ".json"), 1);
    assert_eq!(count("ledger", ".jsonl"), 0);
}

#[test]
fn file_size_limit_kills_no_hook_and_is_reported() {
    let env = TestEnv::new();
    let ws = env.init();
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws]);
    env.ok(&["workspace", "update", "--goal", &"a long goal ".repeat(200)]);
    let run = |args: &str, input: &str| {
        let mut command = env.command_in("sh", &env.project);
        command.args(["-c", &format!("ulimit -f 1; exec \"$0\" {args}"), env!("CARGO_BIN_EXE_tanmi")]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    };
    for event in ["SessionStart", "UserPromptSubmit", "SessionEnd"] {
        let payload = json!({"session_id": "s", "hook_event_name": event, "cwd": env.project,
            "prompt": "go on", "source": "startup"});
        let output = run(&format!("hook claude-code {event}"), &payload.to_string());
        assert_eq!(output.status.code(), Some(0), "{event}");
        let is_json = serde_json::from_slice::<Value>(&output.stdout).is_ok();
        assert!(is_json || output.stdout.is_empty(), "{event}: {output:?}");
    }
    let output = run("log --node workspace 'a line' --json", "");
    let error: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error["error"]["message"].as_str().unwrap().contains("File too large"), "{error}");
    env.ok(&["log", "--node", "workspace", "another line"]);
    assert_eq!(env.check(&[])["findings"], json!([]));
}

#[test]
fn doctor_keeps_bindings_of_moved_project() {
    let env = TestEnv::new();
    let ws = env.init();
    env.ok(&["session", "bind", "--session", "s", "--workspace", &ws]);
    let moved = env.root().join("moved");
    std::fs::rename(&env.project, &moved).unwrap();
    env.run_in(&env.root(), &["doctor", "--fix"]);
    std::fs::rename(&moved, &env.project).unwrap();
    assert_eq!(env.json(&["session", "status", "--session", "s"])["bound"], true);
}
