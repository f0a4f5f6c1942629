//! A clone with links out of the project: they are not followed, and nothing is written.

use std::os::unix::fs::symlink;

use super::{home_path, read};
use crate::env::TestEnv;

/// A clone with one link to a file or folder of the user.
fn clone_with_link(link: &str, to: &str) -> TestEnv {
    let env = TestEnv::new();
    for file in [".bashrc", ".ssh/config", ".config/x.md"] {
        env.make(&home_path(&env, file), "mine\n");
    }
    env.make(&home_path(&env, ".claude.json"), "{\"mine\": 1}");
    env.make(&home_path(&env, ".cursor/hooks.json"), "{\"mine\": 1}");
    let link = env.project.join(link);
    std::fs::create_dir_all(link.parent().unwrap()).unwrap();
    symlink(home_path(&env, to), &link).unwrap();
    env
}

const LINKS: &[(&str, &str)] = &[
    ("AGENTS.md", ".bashrc"),
    ("GEMINI.md", ".config/x.md"),
    (".mcp.json", ".claude.json"),
    (".claude/settings.json", ".claude.json"),
    (".cursor", ".cursor"),
    (".claude/skills", ".ssh"),
    (".github/hooks", ".ssh"),
];

#[test]
fn install_in_clone_with_link_out_of_project_writes_nothing() {
    for (link, to) in LINKS {
        let env = clone_with_link(link, to);
        let before = env.files(&env.root());
        let install = ["install", "--scope", "project", "--platform", "all", "--guide"];
        for args in [&install[..], &[&install[..], &["--dry-run"]].concat()] {
            let error = env.error(args);
            assert_eq!(error["code"], "LINK_LEAVES_PROJECT", "{link}: {error}");
            let message = error["message"].as_str().unwrap();
            assert!(message.contains(link) && message.contains(to), "{message}");
            assert_eq!(env.files(&env.root()), before, "{link}");
        }
        assert!(!env.home_store().exists(), "{link}");
    }
}

/// The repository turns an installed file into a link.
#[test]
fn uninstall_and_doctor_do_not_follow_link_out_of_project() {
    let env = clone_with_link("x", ".bashrc");
    env.ok(&["install", "--platform", "cursor"]);
    let other = env.root().join("other");
    std::fs::create_dir(&other).unwrap();
    assert!(env.run_in(&other, &["install", "--scope", "project", "--platform", "claude-code"]).ok);
    std::fs::remove_file(other.join(".mcp.json")).unwrap();
    symlink(home_path(&env, ".cursor/hooks.json"), other.join(".mcp.json")).unwrap();
    symlink(home_path(&env, ".cursor"), other.join(".cursor")).unwrap();
    let before = env.files(&env.root());
    let doctor = env.run_in(&other, &["doctor", "--fix"]);
    assert!(!doctor.ok && doctor.stdout.contains("leads out of the project"), "{}", doctor.stdout);
    assert!(!doctor.stdout.contains("run twice"), "{}", doctor.stdout);
    assert_eq!(env.files(&env.root()), before);
    let uninstall = env.run_in(&other, &["uninstall", "--json"]);
    assert!(!uninstall.ok && uninstall.stdout.contains("LINK_LEAVES_PROJECT"), "{}", uninstall.stdout);
    assert_eq!(env.files(&env.root()), before);
    std::fs::remove_file(other.join(".mcp.json")).unwrap();
    assert!(
        env.run_in(&other, &["uninstall", "--scope", "project"]).ok,
        "the other link was never installed"
    );
    assert!(read(&home_path(&env, ".cursor/hooks.json"))["hooks"].is_object());
}
