//! File modes: another user of the machine can neither read local files nor hold the locks of a store.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::agent::Agent;
use crate::env::TestEnv;

const OTHER_USER: u32 = 65_534;

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Returns the folders (0700) and files (0600) of a store that only its owner can open.
fn private_paths(env: &TestEnv, workspace: &str) -> Vec<(PathBuf, u32)> {
    let (store, home) = (env.project.join(".tanmi-workspace"), env.home_store());
    let local = env.workspace_dir(workspace).join(".local");
    let mut paths = vec![(local.clone(), 0o700), (store.join(".local"), 0o700)];
    let files =
        [local, store.join(".local"), home.join("state"), home.join("ledger"), home.join("ledger/texts")];
    for entry in files.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap().flatten()) {
        if entry.file_type().unwrap().is_file() {
            paths.push((entry.path(), 0o600));
        }
    }
    for name in [".lock", "index.sqlite", "index.sqlite-wal", "index.sqlite-shm"] {
        let path = store.join("memory").join(name);
        if path.exists() {
            paths.push((path, 0o600));
        }
    }
    paths
}

fn use_everything(env: &TestEnv, workspace: &str) {
    env.node("root", "execution", "a");
    env.ok(&["memory", "save-fact", &format!("The number is {}", std::process::id())]);
    env.ok(&["session", "bind", "--session", "s", "--workspace", workspace]);
    Agent::claude(env, "s").start("startup");
    env.ok(&["workspace", "init", "--name", "n", "--goal", "g"]);
}

#[test]
fn local_files_are_private_and_existing_ones_become_so() {
    let env = TestEnv::new();
    let workspace = env.init();
    use_everything(&env, &workspace);
    let paths = private_paths(&env, &workspace);
    let names: Vec<_> = paths.iter().filter_map(|(path, _)| path.file_name()?.to_str()).collect();
    for name in ["lock", "turnstile", "journal", "index.sqlite", ".lock", "s.json"] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    for (path, expected) in &paths {
        assert_eq!(mode(path), *expected, "{}", path.display());
    }
    // As an earlier version left them. The texts of the ledger are written once, so they are not opened again.
    let is_text = |path: &Path| path.parent().is_some_and(|folder| folder.ends_with("texts"));
    let is_client =
        |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("client"));
    for (path, expected) in &paths {
        set_mode(path, expected | 0o055);
    }
    env.ok(&["workspace", "delete", &env.init(), "--yes"]);
    env.ok(&["node", "create", "-w", &workspace, "--type", "execution", "--title", "b"]);
    env.ok(&["memory", "save-fact", "Another fact"]);
    Agent::claude(&env, "s").start("startup");
    // No earlier version wrote these.
    let is_new = |path: &Path| {
        [".local/.gitignore", "project-id", "state/retention"].iter().any(|new| path.ends_with(new))
    };
    for (path, expected) in
        paths.iter().filter(|(path, _)| !is_text(path) && !is_client(path) && !is_new(path))
    {
        assert_eq!(mode(path), *expected, "{}", path.display());
    }
    let shared = env.project.join(".tanmi-workspace/memory/daily");
    assert_ne!(mode(&shared) & 0o055, 0, "memory can be shared through git and keeps the mode of the user");
}

#[test]
fn kept_copy_is_private() {
    let env = TestEnv::new();
    let workspace = env.init();
    let local = env.workspace_dir(&workspace).join(".local");
    let journal = std::fs::read_to_string(local.join("journal")).unwrap();
    env.write(&local.join("journal"), format!("{journal}damaged line\n").as_bytes());
    env.ok(&["tree"]);
    let copies: Vec<_> = std::fs::read_dir(local.join("kept")).unwrap().flatten().collect();
    assert_eq!(copies.len(), 1);
    assert_eq!((mode(&copies[0].path()), mode(&local.join("kept"))), (0o600, 0o700));
}

/// Returns whether commands can be run as another user. Prints a line if not.
pub(super) fn can_switch_user() -> bool {
    let tried =
        Command::new("setpriv").args(["--reuid=65534", "--regid=65534", "--clear-groups", "true"]).status();
    let can = tried.is_ok_and(|status| status.success());
    if !can {
        eprintln!("skipped: commands cannot be run as another user");
    }
    can
}

pub(super) fn as_user(command: &mut Command, uid: u32) -> Command {
    let mut outer = Command::new("setpriv");
    outer.arg(format!("--reuid={uid}")).arg(format!("--regid={uid}")).arg("--clear-groups");
    outer.arg(command.get_program()).args(command.get_args()).stdin(Stdio::null());
    outer.env_clear();
    for (name, value) in command.get_envs() {
        outer.env(name, value.unwrap_or_default());
    }
    if let Some(dir) = command.get_current_dir() {
        outer.current_dir(dir);
    }
    outer
}

/// Starts a process of another user that takes a lock if it can. Returns it once it holds the lock, or `None`.
fn hold_lock(path: &Path) -> Option<Child> {
    use std::io::{BufRead, BufReader};
    let mut shell = Command::new("sh");
    shell.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    shell.args(["-c", "exec 9<\"$0\" && flock -x 9 && echo held && exec sleep 40 >/dev/null"]).arg(path);
    let mut outer = as_user(&mut shell, OTHER_USER);
    let mut child = outer.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    if line.trim() == "held" {
        return Some(child);
    }
    child.wait().unwrap();
    None
}

#[test]
fn other_user_cannot_hold_locks() {
    if !can_switch_user() {
        return;
    }
    let env = TestEnv::new();
    let workspace = env.init();
    use_everything(&env, &workspace);
    for folder in [env.root(), env.project.clone()] {
        set_mode(&folder, 0o755);
    }
    let (store, local) = (env.project.join(".tanmi-workspace"), env.workspace_dir(&workspace).join(".local"));
    let locks = [
        local.join("lock"),
        local.join("turnstile"),
        local.join("index.sqlite"),
        store.join(".local/lock"),
        store.join("memory/.lock"),
        store.join("memory/index.sqlite"),
    ];
    let mut held = Vec::new();
    for lock in &locks {
        held.extend(hold_lock(lock).map(|child| (lock, child)));
    }
    for (_, child) in &mut held {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let held: Vec<_> = held.iter().map(|(lock, _)| lock).collect();
    assert!(held.is_empty(), "{held:?}");
    // A lock of an earlier version is closed to others by the first command that uses it.
    set_mode(&local, 0o755);
    set_mode(&local.join("lock"), 0o644);
    env.ok(&["tree", &workspace]);
    let lock = hold_lock(&local.join("lock"));
    let is_held = lock.is_some();
    if let Some(mut child) = lock {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(!is_held, "the lock is still open to other users");
}

/// Another user makes a store with a link to a key that only the victim can read.
#[test]
fn key_of_other_user_is_not_copied_into_their_store() {
    if !can_switch_user() {
        return;
    }
    let env = TestEnv::new();
    let workspace = env.init();
    let key = env.root().join("home/id_rsa");
    env.write(&key, b"-----BEGIN OPENSSH PRIVATE KEY-----\n");
    set_mode(&key, 0o600);
    let local = env.workspace_dir(&workspace).join(".local");
    std::fs::remove_file(local.join("journal")).unwrap();
    std::os::unix::fs::symlink(&key, local.join("journal")).unwrap();
    let run =
        |program: &str, args: &[&str]| assert!(Command::new(program).args(args).status().unwrap().success());
    let (project, home) = (env.project.to_string_lossy().into_owned(), env.root().join("home"));
    run("chown", &["-R", "-h", "65534:65534", &project]);
    run("chmod", &["-R", "a+rwX", &project]);
    run("chown", &["-R", "1:1", &home.to_string_lossy()]);
    set_mode(&env.root(), 0o755);
    for args in [&["workspace", "list"][..], &["tree", &workspace], &["log", "-w", &workspace, "x"]] {
        as_user(&mut env.command(args), 1).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    }
    let found = Command::new("grep").args(["-rl", "OPENSSH", &project]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout), "");
}

/// A journal of another user is neither applied nor copied, also by root.
#[test]
fn journal_of_other_user_is_refused() {
    if !can_switch_user() {
        return;
    }
    let env = TestEnv::new();
    let workspace = env.init();
    let local = env.workspace_dir(&workspace).join(".local");
    env.write(&local.join("journal"), b"not a journal\n");
    std::os::unix::fs::chown(local.join("journal"), Some(OTHER_USER), Some(OTHER_USER)).unwrap();
    let error = env.error(&["tree"]);
    assert!(error["message"].as_str().unwrap().contains("another user"), "{error}");
    assert!(!local.join("kept").exists());
    // Root works in the folder of another user.
    for folder in [&local, &env.workspace_dir(&workspace)] {
        std::os::unix::fs::chown(folder, Some(OTHER_USER), Some(OTHER_USER)).unwrap();
    }
    env.ok(&["tree"]);
}
