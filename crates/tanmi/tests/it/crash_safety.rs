//! Crash safety: the program is killed before every system call that changes files. Every acknowledged change is there,
//! changes are atomic, nothing is left behind, and an edit made before recovery is kept.

use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::env::TestEnv;

/// The system calls that change the file system.
pub const CALLS: &[&str] = &[
    "write",
    "pwrite64",
    "fdatasync",
    "fsync",
    "rename",
    "renameat2",
    "link",
    "linkat",
    "unlink",
    "rmdir",
    "mkdir",
    "ftruncate",
    "openat",
];

/// Returns whether `strace` is installed. Without it these tests print that they were skipped; in CI they fail.
pub fn has_strace() -> bool {
    let found = std::process::Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_ok();
    if !found {
        assert!(std::env::var_os("CI").is_none(), "strace is missing: .ci/run installs it");
        eprintln!("skipped: strace is not installed");
    }
    found
}

/// Runs `tanmi` and kills it before its `nth` system call of this name. Returns its output, or `None` if it was not
/// killed.
pub fn kill_at_call(env: &TestEnv, call: &str, nth: usize, args: &[&str]) -> Option<String> {
    let mut command = env.command_in("strace", &env.project);
    command
        .args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={call}")])
        .args(["-e", &format!("inject={call}:signal=KILL:when={nth}")])
        .arg(env!("CARGO_BIN_EXE_tanmi"))
        .args(args);
    let output = command.output().unwrap();
    if output.status.success() { None } else { Some(String::from_utf8_lossy(&output.stdout).into_owned()) }
}

fn copy_tree(from: &Path, to: &Path) {
    let status = std::process::Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(status.success());
}

/// A project that is reset to its initial state before every run.
struct Fixture {
    env: TestEnv,
    ws: String,
}

impl Fixture {
    fn reset(&self) {
        let kept = self.env.root().join("kept");
        if !kept.exists() {
            copy_tree(&self.env.project, &kept);
        }
        std::process::Command::new("rm").arg("-rf").arg(&self.env.project).status().unwrap();
        copy_tree(&kept, &self.env.project);
    }

    /// Asserts that folders and listed nodes agree and that no temporary file is left.
    fn assert_no_leftovers(&self, what: &str) {
        let dir = self.env.workspace_dir(&self.ws);
        assert_eq!(std::fs::read_dir(dir.join(".local/tmp")).unwrap().count(), 0, "{what}: leftovers");
        let page = self.env.json(&["node", "list", "--limit", "1000"]);
        let listed = page["nodes"].as_array().unwrap().len();
        let folders = std::fs::read_dir(dir.join("nodes")).unwrap().flatten();
        let mut count = 0;
        for folder in folders {
            count += 1;
            assert!(folder.path().join("Node.md").exists(), "{what}: orphaned folder {:?}", folder.path());
        }
        assert_eq!(count, listed, "{what}: folders and nodes differ");
        let mut names: Vec<_> =
            std::fs::read_dir(dir.join(".local")).unwrap().flatten().map(|entry| entry.file_name()).collect();
        names.retain(|name| {
            !["index.sqlite", "index.sqlite-journal", "journal", "lock", "tmp", "turnstile"]
                .iter()
                .any(|known| name == *known)
        });
        assert!(names.is_empty(), "{what}: {names:?}");
    }

    /// Asserts that `workspace check` finds nothing and nothing is left behind.
    fn assert_consistent(&self, what: &str) {
        let report = self.env.check(&[]);
        assert_eq!(report["findings"], Value::Array(vec![]), "{what}");
        self.assert_no_leftovers(what);
    }
}

/// Runs `args` once for every system call and kills it there. Calls `verify` with a description and whether the change
/// was acknowledged. Returns the number of kills.
fn kill_at_every_call(fixture: &Fixture, args: &[&str], verify: impl Fn(&str, bool)) -> usize {
    let mut kills = 0;
    for call in CALLS {
        for nth in 1.. {
            fixture.reset();
            let what = format!("{} before {call} #{nth}", args.join(" "));
            let Some(stdout) = kill_at_call(&fixture.env, call, nth, args) else { break };
            kills += 1;
            verify(&what, !stdout.is_empty());
            assert!(nth < 200, "{what}: the command does not end");
        }
    }
    kills
}

#[test]
fn create_killed_at_every_call_is_atomic() {
    if !has_strace() {
        return;
    }
    let env = TestEnv::new();
    let ws = env.init();
    let plan = env.node("root", "planning", "plan");
    let fixture = Fixture { env, ws };
    let args =
        ["node", "create", "--parent", &plan, "--type", "execution", "--title", "new", "--requirement", "r"];
    let kills = kill_at_every_call(&fixture, &args, |what, acknowledged| {
        fixture.assert_consistent(what);
        let page = fixture.env.json(&["node", "list"]);
        let was_created = page["nodes"].as_array().unwrap().iter().any(|row| row["title"] == "new");
        assert!(was_created || !acknowledged, "{what}: acknowledged but lost");
        let status = fixture.env.status(&plan);
        assert_eq!(status, if was_created { "monitoring" } else { "pending" }, "{what}: half done");
        fixture.env.node(&plan, "execution", "after recovery");
    });
    assert!(kills > 20, "only {kills} kills: does the injection work?");
}

#[test]
fn transition_killed_at_every_call_is_atomic() {
    if !has_strace() {
        return;
    }
    let env = TestEnv::new();
    let ws = env.init();
    let plan = env.node("root", "planning", "plan");
    let task = env.node(&plan, "execution", "task");
    env.ok(&["node", "transition", &task, "--action", "start"]);
    env.ok(&["node", "transition", &task, "--action", "complete", "--conclusion", "old"]);
    env.ok(&["node", "transition", &plan, "--action", "complete", "--conclusion", "all"]);
    env.ok(&["node", "transition", "root", "--action", "complete", "--conclusion", "all"]);
    let fixture = Fixture { env, ws };
    // A reopen touches four files: the node, both ancestors and the workspace's focus.
    let args = ["node", "transition", &task, "--action", "reopen"];
    let kills = kill_at_every_call(&fixture, &args, |what, acknowledged| {
        fixture.assert_consistent(what);
        let statuses = [fixture.env.status(&task), fixture.env.status(&plan), fixture.env.status("root")];
        let focus = fixture.env.json(&["workspace", "show"])["focusedNodeId"].clone();
        let old = statuses == ["completed", "completed", "completed"] && focus != task.as_str();
        let new = statuses == ["implementing", "monitoring", "monitoring"] && focus == task.as_str();
        assert!(old || new, "{what}: half done {statuses:?} {focus}");
        assert!(new || !acknowledged, "{what}: acknowledged but lost");
    });
    assert!(kills > 20, "only {kills} kills: does the injection work?");
}

#[test]
fn hand_edit_before_recovery_is_kept() {
    if !has_strace() {
        return;
    }
    let env = TestEnv::new();
    let ws = env.init();
    let plan = env.node("root", "planning", "plan");
    let fixture = Fixture { env, ws };
    let args =
        ["node", "create", "--parent", &plan, "--type", "execution", "--title", "new", "--requirement", "r"];
    let path = fixture.env.node_md(&fixture.ws, &plan);
    let mut kept_aside = 0;
    for nth in 1.. {
        fixture.reset();
        if kill_at_call(&fixture.env, "rename", nth, &args).is_none() {
            break;
        }
        fixture.env.edit(&path, |text| text + "\n## Mine\n\nby hand\n");
        let page = fixture.env.json(&["node", "list"]);
        assert!(
            page["nodes"].as_array().unwrap().iter().any(|row| row["title"] == "new"),
            "recovery finished the other writes"
        );
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("## Mine\n\nby hand"), "rename #{nth}: {text}");
        let findings = fixture.env.check(&[])["findings"].clone();
        for finding in findings.as_array().unwrap() {
            let code = finding["code"].as_str().unwrap();
            assert!(["KEPT_ASIDE", "WRONG_STATUS"].contains(&code), "{finding}");
            kept_aside += usize::from(code == "KEPT_ASIDE");
        }
        fixture.env.check(&["--fix"]);
        assert_eq!(fixture.env.status(&plan), "monitoring", "the derived status can be repaired");
    }
    assert!(kept_aside > 0, "no kill happened between the journal record and the file");
}

/// The program is delayed just before it swaps the files, and an editor saves in that moment.
#[test]
fn hand_edit_during_rename_is_kept() {
    if !has_strace() {
        return;
    }
    let env = TestEnv::new();
    let ws = env.init();
    let task = env.node("root", "execution", "old title");
    let path = env.node_md(&ws, &task);
    let mut command = env.command_in("strace", &env.project);
    command
        .args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=renameat2"])
        .args(["-e", "inject=renameat2:delay_enter=700000:when=1"])
        .arg(env!("CARGO_BIN_EXE_tanmi"))
        .args(["log", "--node", &task, "by the program"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    // The scratch file appears right before the swap.
    let temp = env.workspace_dir(&ws).join(".local/tmp");
    while std::fs::read_dir(&temp).map_or(0, Iterator::count) == 0 && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    env.edit(&path, |text| text.replace("old title", "BY HAND"));
    let output = child.wait_with_output().unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("BY HAND"), "{text}");
    let notice = String::from_utf8_lossy(&output.stderr);
    assert!(notice.contains("was edited by hand"), "{notice}");
    let findings = env.check(&[])["findings"].clone();
    assert_eq!(findings.as_array().unwrap().len(), 1, "kept once: {findings}");
    assert_eq!(findings[0]["code"], "KEPT_ASIDE");
    assert_eq!(env.json(&["node", "list"])["nodes"][1]["title"], "BY HAND", "the index follows the file");
}

#[test]
fn init_and_delete_killed_at_every_call_are_atomic() {
    if !has_strace() {
        return;
    }
    let env = TestEnv::new();
    let ws = env.init();
    let task = env.node("root", "execution", "task");
    let fixture = Fixture { env, ws };
    let count = || fixture.env.json(&["workspace", "list"])["workspaces"].as_array().unwrap().len();
    let init = ["workspace", "init", "--name", "second", "--goal", "g"];
    kill_at_every_call(&fixture, &init, |what, acknowledged| {
        let count_now = count();
        assert!(count_now == 2 || (count_now == 1 && !acknowledged), "{what}: {count_now}");
        fixture.env.json(&init);
        let left = std::fs::read_dir(fixture.env.project.join(".tanmi-workspace/.local")).unwrap().count();
        assert_eq!(left, 3, "{what}: only the lock, the id of the project and .gitignore");
        assert_eq!(count(), count_now + 1);
    });
    kill_at_every_call(&fixture, &["node", "delete", &task], |what, acknowledged| {
        fixture.assert_consistent(what);
        let count_now = fixture.env.json(&["node", "list"])["nodes"].as_array().unwrap().len();
        assert!(count_now == 1 || (count_now == 2 && !acknowledged), "{what}: {count_now}");
        assert_eq!(
            fixture.env.status("root"),
            if count_now == 1 { "planning" } else { "monitoring" },
            "{what}"
        );
    });
}

#[test]
fn restore_killed_at_every_call_is_atomic() {
    if !has_strace() {
        return;
    }
    let env = TestEnv::new();
    let ws = env.init();
    let plan = env.node("root", "planning", "plan");
    env.node(&plan, "execution", "task");
    env.ok(&["node", "delete", &plan, "--yes"]);
    let fixture = Fixture { env, ws };
    kill_at_every_call(&fixture, &["node", "restore", &plan], |what, acknowledged| {
        fixture.assert_consistent(what);
        let count_now = fixture.env.json(&["node", "list"])["nodes"].as_array().unwrap().len();
        assert!(count_now == 3 || (count_now == 1 && !acknowledged), "{what}: {count_now}");
        let in_trash = fixture.env.json(&["trash", "list"])["total"].as_u64();
        assert_eq!(in_trash, Some(u64::from(count_now == 1)), "{what}");
    });
}

#[test]
fn hundred_kills_lose_no_acknowledged_node() {
    let env = TestEnv::new();
    let ws = env.init();
    let plan = env.node("root", "planning", "plan");
    let mut acknowledged = Vec::new();
    let mut killed = 0;
    for n in 0..100u64 {
        let title = format!("n{n}");
        let args = ["node", "create", "--parent", &plan, "--type", "execution", "--title", &title, "--json"];
        let mut child = env.command(&args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        // The delays are spread over the run time of the process.
        std::thread::sleep(std::time::Duration::from_micros(n * 7919 % 9000));
        let _ = child.kill();
        let output = child.wait_with_output().unwrap();
        killed += usize::from(!output.status.success());
        if let Ok(value) = serde_json::from_slice::<Value>(&output.stdout) {
            acknowledged.push(value["nodeId"].as_str().unwrap().to_owned());
        }
    }
    assert!(killed > 10, "only {killed} of 100 were killed");
    let fixture = Fixture { env, ws };
    fixture.assert_consistent("after a hundred kills");
    let page = fixture.env.json(&["node", "list", "--limit", "1000"]);
    let rows = page["nodes"].as_array().unwrap();
    for id in acknowledged {
        assert!(rows.iter().any(|row| row["id"] == id.as_str()), "{id} was acknowledged but is lost");
    }
}
