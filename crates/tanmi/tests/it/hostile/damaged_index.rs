//! An index with a damaged page: the checks find it, and the repair rebuilds it from the files.

use std::path::Path;

use serde_json::Value;

use crate::env::TestEnv;

const PAGE: usize = 4096;

/// Inverts bytes at the start of one page of a file.
fn damage(env: &TestEnv, path: &Path, page: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[page * PAGE..].iter_mut().take(64).for_each(|byte| *byte = !*byte);
    env.write(path, &bytes);
}

fn pages(path: &Path) -> usize {
    usize::try_from(std::fs::metadata(path).unwrap().len()).unwrap() / PAGE
}

fn fixes_of_damaged_index(report: &Value) -> Vec<String> {
    let findings = report["findings"].as_array().unwrap().iter();
    findings.filter(|one| one["code"] == "DAMAGED_INDEX").map(|one| one["fix"].to_string()).collect()
}

#[test]
fn workspace_check_finds_and_repairs_damaged_page() {
    let env = TestEnv::new();
    let workspace = env.init();
    for n in 0..20 {
        env.node("root", "execution", &format!("node {n}"));
    }
    let index = env.workspace_dir(&workspace).join(".local/index.sqlite");
    let tree = env.ok(&["tree"]);
    assert!(pages(&index) > 4);
    for page in 0..pages(&index) {
        damage(&env, &index, page);
        let damaged = std::fs::read(&index).unwrap();
        assert_eq!(fixes_of_damaged_index(&env.check(&[])).len(), 1, "page {page}");
        assert_eq!(std::fs::read(&index).unwrap(), damaged, "without --fix nothing is repaired");
        let repaired = env.check(&["--fix"]);
        assert_eq!(fixes_of_damaged_index(&repaired), ["\"repaired\""], "page {page}: {repaired}");
        assert!(fixes_of_damaged_index(&env.check(&[])).is_empty(), "page {page}");
        assert_eq!(env.ok(&["tree"]), tree);
    }
}

#[test]
fn memory_sync_and_doctor_repair_damaged_page() {
    let env = TestEnv::new();
    env.init();
    for n in 0..20 {
        env.ok(&["memory", "save-fact", &format!("The port of service {n} is {}", 8000 + n)]);
    }
    let index = env.project.join(".tanmi-workspace/memory/index.sqlite");
    let report = || env.run(&["doctor"]).stdout;
    for page in 0..pages(&index) {
        damage(&env, &index, page);
        assert!(report().contains("memory: the index is damaged"), "page {page}");
        match page % 2 {
            0 => env.ok(&["memory", "sync"]),
            _ => env.ok(&["doctor", "--fix"]),
        };
        assert!(report().contains("memory: no damage (facts: 20"), "page {page}: {}", report());
        assert!(env.ok(&["memory", "search", "port service 7"]).contains("8007"));
    }
}
