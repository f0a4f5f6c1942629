//! Files of the home store that cannot be parsed: the user is told what is lost and how to go on.

use serde_json::Value;

use crate::env::{Run, TestEnv};

/// Returns the text of `tanmi doctor` and whether it found nothing.
fn doctor(env: &TestEnv, args: &[&str]) -> Run {
    env.run(&[&["doctor"], args].concat())
}

#[test]
fn damaged_bindings_are_kept_and_named_until_the_copy_is_deleted() {
    let env = TestEnv::new();
    let ws = env.init();
    let path = env.home_store().join("session-bindings.json");
    let bind = ["session", "bind", "--session", "s", "--workspace", ws.as_str()];
    env.ok(&bind);
    env.write(&path, b"garbage{");
    let found = doctor(&env, &[]);
    assert!(found.stdout.contains("session-bindings.json is damaged"), "{}", found.stdout);
    assert!(!found.ok && !found.stdout.contains("bindings: no damage"), "{}", found.stdout);
    let bound = env.run(&bind);
    assert!(bound.ok && bound.stderr.contains("session-bindings.damaged-"), "{}", bound.stderr);
    assert!(!env.run(&bind).stderr.contains("damaged"), "told once");
    let found = doctor(&env, &[]);
    assert!(found.ok && found.stdout.contains("session-bindings.damaged-"), "{}", found.stdout);
    assert!(found.stdout.contains("tanmi session bind"), "{}", found.stdout);
    for kept in tanmi_base::fs::find_set_aside(&path) {
        assert_eq!(std::fs::read_to_string(&kept).unwrap(), "garbage{");
        std::fs::remove_file(kept).unwrap();
    }
    assert!(!doctor(&env, &[]).stdout.contains("damaged"));
}

#[test]
fn damaged_trust_is_named_and_set_aside_without_trusting_anything() {
    let env = TestEnv::new();
    env.init();
    let is_trusted = |env: &TestEnv| {
        let answer: Value = env.json(&["trust", "--yes"]);
        answer["trusted"] == true
    };
    assert!(is_trusted(&env));
    let path = env.home_store().join("trust.json");
    env.write(&path, b"{\"x");
    let error = env.error(&["trust", "--yes"]);
    assert!(error["hint"].as_str().unwrap().contains("tanmi doctor --fix"), "{error}");
    let found = doctor(&env, &[]);
    assert!(!found.ok && found.stdout.contains("trust.json:1"), "{}", found.stdout);
    assert!(!found.stdout.contains("this project is not trusted"), "{}", found.stdout);
    assert_eq!(std::fs::read(&path).unwrap(), b"{\"x", "only --fix changes it");
    let fixed = doctor(&env, &["--fix"]);
    assert!(fixed.stdout.contains("✚ trust: "), "{}", fixed.stdout);
    let kept = tanmi_base::fs::find_set_aside(&path);
    assert_eq!(std::fs::read(&kept[0]).unwrap(), b"{\"x");
    assert!(!path.exists(), "nothing is trusted");
    assert!(doctor(&env, &[]).stdout.contains("trust.damaged-"));
    assert!(is_trusted(&env), "the user agrees again");
}
