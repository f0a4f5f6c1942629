//! `install` and `uninstall` are killed before every system call that changes files. A later `uninstall`
//! leaves the home folder as it was before.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::home_path;
use crate::crash_safety::{CALLS, has_strace, kill_at_call};
use crate::env::TestEnv;

const INSTALL: &[&str] = &["install", "--platform", "claude-code,codex", "--guide"];

/// Files with their content and folders, each with its mode.
type Tree = BTreeMap<PathBuf, (u32, Option<Vec<u8>>)>;

fn tree(dir: &Path) -> Tree {
    let mut tree = Tree::new();
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let (path, meta) = (entry.path(), entry.metadata().unwrap());
        let content = meta.is_file().then(|| std::fs::read(&path).unwrap());
        if meta.is_dir() {
            tree.extend(self::tree(&path));
        }
        tree.insert(path, (meta.permissions().mode(), content));
    }
    tree
}

/// A home folder in which some files and folders of the clients exist.
fn test_env() -> TestEnv {
    let env = TestEnv::new();
    env.make(&home_path(&env, ".claude/settings.json"), "{\"model\": \"opus\"}");
    env.make(&home_path(&env, ".codex/config.toml"), "# mine\r\nmodel = \"o\"\r\n");
    std::fs::set_permissions(home_path(&env, ".codex/config.toml"), PermissionsExt::from_mode(0o600))
        .unwrap();
    env
}

/// Runs a command once for every system call and kills it there. Calls `verify` with a description after each kill.
fn kill_at_every_call(env: &TestEnv, args: &[&str], prepare: impl Fn(), verify: impl Fn(&str)) {
    let mut kills = 0;
    for call in CALLS {
        for nth in 1.. {
            prepare();
            let what = format!("{} before {call} #{nth}", args[0]);
            if kill_at_call(env, call, nth, args).is_none() {
                break;
            }
            verify(&what);
            kills += 1;
            assert!(nth < 300, "{what}: the command does not end");
        }
        env.ok(&["uninstall"]);
    }
    assert!(kills > 50, "only {kills} kills: does the injection work?");
}

#[test]
fn install_killed_at_every_call_is_uninstalled_without_traces() {
    if !has_strace() {
        return;
    }
    let env = test_env();
    let home = env.root().join("home");
    let before = tree(&home);
    kill_at_every_call(
        &env,
        INSTALL,
        || {},
        |what| {
            env.ok(&["uninstall"]);
            assert_eq!(tree(&home), before, "{what}");
        },
    );
}

#[test]
fn uninstall_killed_at_every_call_is_finished_by_the_next() {
    if !has_strace() {
        return;
    }
    let env = test_env();
    let home = env.root().join("home");
    let before = tree(&home);
    let install = || drop(env.ok(INSTALL));
    kill_at_every_call(&env, &["uninstall"], install, |what| {
        env.ok(&["uninstall"]);
        assert_eq!(tree(&home), before, "{what}");
    });
}

/// The second installation is killed: the original content is still known.
#[test]
fn second_install_killed_at_every_call_is_uninstalled_without_traces() {
    if !has_strace() {
        return;
    }
    let env = test_env();
    let home = env.root().join("home");
    let before = tree(&home);
    let install = || drop(env.ok(&["install", "--platform", "claude-code,codex"]));
    kill_at_every_call(&env, INSTALL, install, |what| {
        env.ok(&["uninstall"]);
        assert_eq!(tree(&home), before, "{what}");
    });
}
