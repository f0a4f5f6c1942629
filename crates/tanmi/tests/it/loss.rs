//! Loss: what people, editors and clients wrote survives the death of the program at any moment.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

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

#[test]
fn hand_edit_displaced_by_killed_process_gets_its_place_back() {
    if !has_strace() {
        return;
    }
    let env = TestEnv::new();
    let ws = env.init();
    let task = env.node("root", "execution", "old title");
    let (path, temp) = (env.node_md(&ws, &task), env.workspace_dir(&ws).join(".local/tmp"));
    let args = ["log", "--node", &task, "by the program"];
    kill_after_exchange(&env, &args, &temp, &path, |text| text.replace("old title", "BY HAND"));
    let run = env.run(&["node", "list", "--json"]);
    assert!(run.stdout.contains("BY HAND") && run.stderr.contains("was edited by hand"), "{}", run.stderr);
    assert!(std::fs::read_to_string(&path).unwrap().contains("BY HAND"));
    let findings = env.json(&["workspace", "check"])["findings"].clone();
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
    let ws = env.init();
    let task = env.node("root", "execution", "old title");
    let (path, temp) = (env.node_md(&ws, &task), env.workspace_dir(&ws).join(".local/tmp"));
    let args = ["log", "--node", &task, "by the program"];
    kill_after_exchange(&env, &args, &temp, &path, |text| text.replace("old title", "FIRST EDIT"));
    env.edit(&path, |text| text.replace("old title", "SECOND EDIT"));
    let run = env.run(&["node", "list", "--json"]);
    assert!(run.stdout.contains("SECOND EDIT") && run.stderr.contains("written twice"), "{}", run.stderr);
    let findings = env.json(&["workspace", "check"])["findings"].clone();
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
