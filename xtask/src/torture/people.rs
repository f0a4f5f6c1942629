//! What people do to the files of a project while the program runs: they save files in editors, check out commits and
//! move the project. A second user of the machine tries to get at the files.

use std::fs::OpenOptions;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::TestEnv;
use crate::rng::Rng;

/// Saves a node's file in an editor, which adds a line. Half of the editors write a new file and rename it over the old
/// one, the others overwrite the file.
///
/// The lock prevents two edits at once, because two editors would overwrite each other's changes.
pub fn edit_node_file(env: &TestEnv, rng: &mut Rng, marker: &str) {
    let _lock = env.edit_lock.lock().expect("no worker panicked");
    let node = env.random_node(rng);
    let path = env.node_file(&node);
    let Ok(text) = std::fs::read_to_string(&path) else { return };
    if text.is_empty() || text.contains("## Aside") {
        return;
    }
    let edited = format!("{}\n\n## Aside\n\n{marker}\n", text.trim_end());
    let is_saved = match rng.below(2) {
        0 => save_by_rename(&path, &text, &edited, marker),
        _ => save_in_place(&path, &text, &edited),
    };
    // An editor that still has a file open which was replaced meanwhile writes into the old file. It notices that when
    // it looks at the path again.
    if is_saved && std::fs::read_to_string(&path).is_ok_and(|now| now.contains(marker)) {
        env.acknowledged.lock().expect("no worker panicked").edits.push((node, marker.to_owned()));
    }
}

/// Returns whether the file was replaced. If a process changed the file since the editor read it, saving
/// would overwrite that change. That would be the editor's fault, so the edit is dropped.
#[allow(clippy::disallowed_methods)]
fn save_by_rename(path: &Path, text: &str, edited: &str, marker: &str) -> bool {
    let temp = path.with_file_name(format!(".{marker}.swp"));
    let is_unchanged = || std::fs::read_to_string(path).is_ok_and(|now| now == text);
    let is_saved =
        std::fs::write(&temp, edited).is_ok() && is_unchanged() && std::fs::rename(&temp, path).is_ok();
    if !is_saved {
        let _ = std::fs::remove_file(&temp);
    }
    is_saved
}

/// Returns whether the file was overwritten, unless a process changed it since the editor read it.
fn save_in_place(path: &Path, text: &str, edited: &str) -> bool {
    let Ok(mut file) = OpenOptions::new().read(true).write(true).open(path) else { return false };
    let mut now = String::new();
    if file.read_to_string(&mut now).is_err() || now != text {
        return false;
    }
    let mut write = |text: &str| {
        file.seek(SeekFrom::Start(0))?;
        file.write_all(text.as_bytes())?;
        file.set_len(text.len() as u64)
    };
    if write(edited).is_ok() {
        return true;
    }
    // A full disk cut the file off. The person undoes the edit in the file that is open: a process may have replaced it
    // meanwhile, and that change is not the person's.
    while write(text).is_err() {
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

/// A git repository in the project with two commits that differ in the file of one node.
pub struct Repository {
    /// The node, which no process changes.
    pub node: String,
    /// The two versions of its file.
    pub versions: [String; 2],
}

impl Repository {
    /// Creates the repository. `None` if git is not installed.
    #[allow(clippy::disallowed_methods)]
    pub fn create(env: &TestEnv, node: String) -> Option<Repository> {
        let path = env.node_file(&node);
        let first = std::fs::read_to_string(&path).expect("read the file of the node");
        let second = format!("{}\n\n## Branch\n\nother\n", first.trim_end());
        let file = path.strip_prefix(env.project()).expect("the file is in the project").to_owned();
        let is_ready = git(env, &["init", "-q"])
            && git(env, &["add", &file.to_string_lossy()])
            && git(env, &["commit", "-q", "-m", "first"])
            && git(env, &["tag", "first"])
            && std::fs::write(&path, &second).is_ok()
            && git(env, &["commit", "-q", "-a", "-m", "second"])
            && git(env, &["tag", "second"]);
        is_ready.then_some(Repository { node, versions: [first, second] })
    }
}

/// Checks out one of the two commits.
pub fn check_out(env: &TestEnv, rng: &mut Rng) {
    let _lock = env.edit_lock.lock().expect("no worker panicked");
    let commit = ["first", "second"][rng.below(2) as usize];
    let is_done = git(env, &["checkout", "-q", commit]);
    if !is_done && env.full_disk_count.load(Ordering::Relaxed) > 0 {
        // On a full disk git leaves an empty file. The person repeats the command until there is room.
        let again = || git(env, &["checkout", "-q", "--force", commit]);
        let _ = (0..500).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            again()
        });
    }
    env.run(rng, &["node", "list", "--limit", "5", "--json"]);
}

fn git(env: &TestEnv, args: &[&str]) -> bool {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "advice.detachedHead=false"]);
    command.args(args).current_dir(env.project()).stdout(Stdio::null()).stderr(Stdio::null());
    command.env("HOME", env.home()).status().is_ok_and(|status| status.success())
}

/// Moves the project to another name and back. Reports a violation if the old name exists when it comes back: a process
/// wrote to a project that is not there.
pub fn move_project(env: &TestEnv, rng: &mut Rng) {
    let _lock = env.edit_lock.lock().expect("no worker panicked");
    let (here, there) = (env.project(), env.root.join("project-moved"));
    if std::fs::rename(&here, &there).is_err() {
        return;
    }
    std::thread::sleep(Duration::from_millis(rng.below(15)));
    if std::fs::rename(&there, &here).is_err() {
        let made = list(&here);
        env.violations
            .lock()
            .expect("no worker panicked")
            .push(format!("written to a moved project: {made:?}"));
        let aside = env.root.join(format!("recreated-{}", rng.below(1 << 30)));
        std::fs::rename(&here, aside)
            .and_then(|()| std::fs::rename(&there, &here))
            .expect("move the project back");
    }
}

fn list(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        found.push(entry.path());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(list(&entry.path()));
        }
    }
    found
}

/// Lets another user of the machine try to read the home store, to put files and links into the stores, and to hold the
/// lock of the workspace for a moment. Needs root and `setpriv`; otherwise it does nothing.
pub fn intrude(env: &TestEnv, rng: &mut Rng) {
    let store = env.project().join(".tanmi-workspace").join(&env.workspace);
    let home = env.home().join(".tanmi-workspace");
    let script = "for file in \"$1\"/state/*.json \"$1\"/session-bindings.json \"$1\"/ledger/*; do \
                      cat \"$file\" 2>/dev/null && echo \"read $file\"; done; \
                  for dir in \"$0\" \"$0\"/nodes \"$0\"/.local \"$0\"/.local/tmp \"$1\"; do \
                      ln -s /etc/passwd \"$dir/link\" 2>/dev/null && echo \"linked $dir\"; \
                      touch \"$dir/file\" 2>/dev/null && echo \"wrote $dir\"; done; \
                  flock -x -n \"$0/.local/lock\" sleep 0.02 2>/dev/null; true";
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c", script])
        .arg(&store)
        .arg(&home);
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output();
    let Some(output) = output.ok().filter(|output| output.status.success()) else { return };
    env.calls.fetch_add(1, Ordering::Relaxed);
    if !output.stdout.is_empty() {
        let what = String::from_utf8_lossy(&output.stdout).lines().last().unwrap_or_default().to_owned();
        env.violations.lock().expect("no worker panicked").push(format!("the second user succeeded: {what}"));
    }
    std::thread::sleep(Duration::from_millis(rng.below(20)));
}
