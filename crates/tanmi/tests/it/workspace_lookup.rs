//! Looking up a workspace: by id from any folder, by default, and after its project moved or the registry was lost.

use crate::env::TestEnv;

#[test]
fn workspace_is_found_by_id_from_any_folder() {
    let env = TestEnv::new();
    let ws = env.init();
    let elsewhere = env.root().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let show = |dir: &std::path::Path| env.run_in(dir, &["workspace", "show", &ws]);
    assert!(show(&elsewhere).ok);
    assert!(!env.run_in(&elsewhere, &["tree"]).ok, "a workspace of another folder is not the default");

    let moved = env.root().join("renamed");
    std::fs::rename(&env.project, &moved).unwrap();
    let run = show(&elsewhere);
    assert!(run.ok && run.stdout.contains("renamed"), "{}{}", run.stdout, run.stderr);

    std::fs::remove_file(env.home_store().join("registry.json")).unwrap();
    assert!(!show(&elsewhere).ok);
    let root = env.root();
    let run = env.run_in(&elsewhere, &["workspace", "list", "--scan", root.to_str().unwrap()]);
    assert!(run.ok && run.stdout.contains(&ws[ws.len() - 4..]), "{}{}", run.stdout, run.stderr);
    assert!(show(&elsewhere).ok);

    env.write(&env.home_store().join("registry.json"), b"garbage");
    assert!(env.run_in(&moved, &["workspace", "list"]).ok);
    assert!(show(&elsewhere).ok, "using the project registers it again");
}

#[test]
fn only_active_workspace_is_default() {
    let env = TestEnv::new();
    assert_eq!(env.error(&["tree"])["code"], "NO_WORKSPACE");
    let first = env.init();
    env.ok(&["tree"]);
    let second = env.init();
    let error = env.error(&["tree"]);
    assert_eq!(error["code"], "AMBIGUOUS_WORKSPACE");
    assert_eq!(error["details"]["workspaces"].as_array().unwrap().len(), 2);
    env.ok(&["workspace", "archive", &first]);
    assert_eq!(env.json(&["workspace", "show"])["workspaceId"], second.as_str());
}

#[test]
fn subfolder_and_linked_worktree_use_project() {
    let env = TestEnv::new();
    let ws = env.init();
    let deep = env.project.join("src/deep");
    std::fs::create_dir_all(&deep).unwrap();
    assert!(env.run_in(&deep, &["tree"]).stdout.contains(&ws));

    let git = |args: &[&str]| {
        let mut command = env.command_in("git", &env.project);
        let output = command.args(["-c", "user.name=t", "-c", "user.email=t@t"]).args(args).output().unwrap();
        assert!(output.status.success(), "{args:?} {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    let tracked = git(&["ls-files"]);
    assert!(tracked.contains("Workspace.md") && !tracked.contains(".local"), "{tracked}");
    git(&["commit", "-qm", "x"]);
    git(&["worktree", "add", "-q", "../linked"]);
    let run = env.run_in(&env.root().join("linked"), &["workspace", "show"]);
    assert!(run.stdout.contains("/project\n"), "{}{}", run.stdout, run.stderr);

    let task = env.node("root", "execution", "on main");
    git(&["add", "."]);
    git(&["commit", "-qm", "y"]);
    git(&["checkout", "-q", "HEAD~1"]);
    assert_eq!(env.error(&["node", "show", &task])["code"], "NODE_NOT_FOUND", "git removed the node");
    git(&["checkout", "-q", "-"]);
    assert_eq!(env.status(&task), "pending", "git restored the node");
}

#[test]
fn home_folder_can_be_project() {
    let env = TestEnv::new();
    let home = env.root().join("home");
    let run = env.run_in(&home, &["workspace", "init", "--name", "n", "--goal", "g"]);
    assert!(run.ok, "{}", run.stderr);
    assert!(env.run_in(&home, &["tree"]).ok);
    let below = home.join("code");
    std::fs::create_dir(&below).unwrap();
    assert!(!env.run_in(&below, &["tree"]).ok, "the home store is not the project of folders below it");
}

#[test]
fn hint_lists_a_few_workspaces_without_what_turns_the_line() {
    let env = TestEnv::new();
    let name = "ab\u{202e}txt.exe";
    for _ in 0..12 {
        env.ok(&["workspace", "init", "--name", name, "--goal", "g"]);
    }
    for args in [&["tree"][..], &["tree", "--workspace", "No such name"]] {
        let run = env.run(args);
        assert!(!run.ok && run.stderr.contains("ab\u{fffd}txt.exe"), "{}", run.stderr);
        assert!(!run.stderr.contains('\u{202e}'), "{}", run.stderr);
        assert!(run.stderr.contains("and 7 more"), "{}", run.stderr);
        assert_eq!(env.error(args)["details"]["workspaces"].as_array().unwrap().len(), 12);
    }
}
