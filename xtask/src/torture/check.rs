//! Checks after the end of all processes: every acknowledged write exists once, and nothing is left behind.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{AcknowledgedWrites, TestEnv};

/// Returns one line for each violation.
pub fn find_violations(env: &TestEnv) -> Vec<String> {
    let mut violations = env.violations.lock().expect("no worker panicked").clone();
    let acknowledged = env.acknowledged.lock().expect("no worker panicked");
    check_nodes(env, &acknowledged, &mut violations);
    check_memories(env, &acknowledged, &mut violations);
    check_bindings(env, &acknowledged, &mut violations);
    check_doctor(env, &mut violations);
    check_leftover_files(&env.root, &mut violations);
    violations
}

fn check_nodes(env: &TestEnv, acknowledged: &AcknowledgedWrites, violations: &mut Vec<String>) {
    let listed = stdout_of(env, &["node", "list", "--limit", "100000", "--json"]);
    let listed: Value = serde_json::from_str(&listed).unwrap_or_default();
    let rows = listed["nodes"].as_array().into_iter().flatten();
    let ids: BTreeSet<&str> = rows.filter_map(|node| node["id"].as_str()).collect();
    let missing = acknowledged.nodes.iter().filter(|id| !ids.contains(id.as_str()));
    violations.extend(missing.map(|id| format!("node {id} is missing")));
    let kept = kept_texts(env);
    for (node, marker) in acknowledged.logs.iter().chain(&acknowledged.edits) {
        let text = std::fs::read_to_string(env.node_file(node)).unwrap_or_default();
        let is_match = |line: &&str| line.trim() == marker || line.ends_with(&format!(" {marker}"));
        let count = text.lines().filter(is_match).count();
        // Of two versions that were written at the same time, one is in place and the other one is kept.
        let is_kept = || count == 0 && kept.iter().any(|text| text.lines().any(|line| is_match(&line)));
        if count != 1 && !is_kept() {
            violations.push(format!("{marker:?} occurs {count} times in {node}"));
        }
    }
    if let Some(repository) = &env.repository {
        let text = std::fs::read_to_string(env.node_file(&repository.node)).unwrap_or_default();
        if !repository.versions.contains(&text) {
            violations.push(format!("a checked out file was changed: {text}"));
        }
    }
}

fn kept_folder(env: &TestEnv) -> PathBuf {
    env.project().join(".tanmi-workspace").join(&env.workspace).join(".local/kept")
}

fn kept_texts(env: &TestEnv) -> Vec<String> {
    let kept = std::fs::read_dir(kept_folder(env)).into_iter().flatten().flatten();
    kept.filter_map(|entry| std::fs::read_to_string(entry.path()).ok()).collect()
}

fn check_memories(env: &TestEnv, acknowledged: &AcknowledgedWrites, violations: &mut Vec<String>) {
    let exported = stdout_of(env, &["memory", "export"]);
    for fact in &acknowledged.facts {
        let count = exported.matches(&format!("\"{fact}\"")).count();
        if count != 1 {
            violations.push(format!("{fact:?} occurs {count} times in the memory"));
        }
    }
    let missing = acknowledged.summaries.iter().filter(|topic| !exported.contains(*topic));
    violations.extend(missing.map(|topic| format!("summary {topic} is missing")));
}

fn check_bindings(env: &TestEnv, acknowledged: &AcknowledgedWrites, violations: &mut Vec<String>) {
    let path = env.home().join(".tanmi-workspace/session-bindings.json");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let bindings: Value = serde_json::from_str(&text).unwrap_or_default();
    let missing = acknowledged.bindings.iter().filter(|id| bindings.get(id).is_none());
    violations.extend(missing.map(|id| format!("binding of {id} is missing")));
}

/// Repairs what a crash may leave for the user to repair. After that, `doctor` must find no problem.
fn check_doctor(env: &TestEnv, violations: &mut Vec<String>) {
    // An edit can land between our last look at a file and our rename. The user then compares the kept copy and deletes
    // it. Acknowledged writes were checked before.
    for entry in std::fs::read_dir(kept_folder(env)).into_iter().flatten().flatten() {
        let _ = std::fs::remove_file(entry.path());
    }
    stdout_of(env, &["workspace", "check", "--fix", "--json"]);
    stdout_of(env, &["doctor", "--fix", "--json"]);
    let output = env.command(&["doctor", "--json"]).output().expect("run the program");
    if !output.status.success() {
        violations.push(format!("doctor reports problems: {}", String::from_utf8_lossy(&output.stdout)));
    }
}

/// Runs a command and returns its standard output.
fn stdout_of(env: &TestEnv, args: &[&str]) -> String {
    let output = env.command(args).output().expect("run the program");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Looks for temporary files. All processes have ended, so none of them will be removed.
fn check_leftover_files(dir: &Path, violations: &mut Vec<String>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if path.is_dir() {
            check_leftover_files(&path, violations);
        } else if name.starts_with("tmp-") || name.starts_with("swap-") || name.ends_with(".swp") {
            violations.push(format!("{} was left behind", path.display()));
        }
    }
}
