//! Stores that this user may not read or write: `doctor` and errors name the folder and what to do.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use super::modes::{as_user, can_switch_user};
use crate::env::{Run, TestEnv};

const USER: u32 = 65_534;

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Returns an environment whose files belong to a user without root. `None` if commands cannot be run as that user.
fn environment() -> Option<(TestEnv, String)> {
    let env = TestEnv::new();
    if !can_switch_user() {
        return None;
    }
    let workspace = env.init();
    env.ok(&["memory", "save-fact", "One fact"]);
    env.ok(&["session", "bind", "--session", "s", "--workspace", &workspace]);
    let given = Command::new("chown").arg("-R").arg(format!("{USER}:{USER}")).arg(env.root()).status();
    assert!(given.unwrap().success());
    match run(&env, &["--version"]) {
        Some(run) if run.ok => Some((env, workspace)),
        _ => {
            eprintln!("skipped: another user cannot run the program");
            None
        }
    }
}

fn run(env: &TestEnv, args: &[&str]) -> Option<Run> {
    as_user(&mut env.command(args), USER).output().ok().map(Run::of)
}

#[test]
fn doctor_reports_stores_that_cannot_be_written_or_read() {
    let Some((env, workspace)) = environment() else { return };
    let doctor = || run(&env, &["doctor"]).unwrap();
    let text = doctor();
    assert!(text.ok, "{}", text.stdout);
    let (home, store) = (env.home_store(), env.project.join(".tanmi-workspace"));
    let local = env.workspace_dir(&workspace).join(".local");
    for (folder, mode) in [(&home, 0o500), (&home, 0o000), (&store, 0o500), (&local, 0o500)] {
        set_mode(folder, mode);
        let text = doctor();
        let name = folder.to_str().unwrap();
        assert!(!text.ok, "{name} {mode:o}: {}", text.stdout);
        assert!(text.stdout.contains(&format!("chmod -R u+rwX {name}")), "{name}: {}", text.stdout);
        assert!(
            *folder != home || !text.stdout.contains("only the owner can access"),
            "{mode:o}: {}",
            text.stdout
        );
        set_mode(folder, 0o700);
    }
    assert!(doctor().ok);
}

#[test]
fn refused_writes_name_the_folder_and_the_fix() {
    let Some((env, workspace)) = environment() else { return };
    let (home, store) = (env.home_store(), env.project.join(".tanmi-workspace"));
    let bind = ["session", "bind", "--session", "t", "--workspace", workspace.as_str()];
    std::fs::remove_file(home.join("session-bindings.lock")).unwrap();
    std::fs::remove_file(store.join("memory/.lock")).unwrap();
    let cases: [(&Path, &[&str]); 5] = [
        (&home, &bind),
        (&home, &["pause"]),
        (&home, &["install", "--platform", "claude-code"]),
        (&store, &["workspace", "init", "--name", "n", "--goal", "g"]),
        (&store.join("memory"), &["memory", "save-fact", "Another fact"]),
    ];
    for (folder, args) in cases {
        set_mode(folder, 0o500);
        let run = run(&env, args).unwrap();
        let hint = format!("chmod -R u+rwX {}", folder.display());
        assert!(!run.ok && run.stderr.contains(&hint), "{args:?}: {}{}", run.stdout, run.stderr);
        set_mode(folder, 0o700);
    }
}
