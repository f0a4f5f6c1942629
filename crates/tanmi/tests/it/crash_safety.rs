//! Death at every step: whatever was acknowledged is there, nothing is half done, nothing is left behind, and a
//! person's edit made before recovery is kept.

use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::env::TestEnv;

/// Every call by which a file system is changed.
const CALLS: &[&str] = &[
    "write",
    "pwrite64",
    "fdatasync",
    "fsync",
    "rename",
    "renameat2",
    "unlink",
    "rmdir",
    "mkdir",
    "ftruncate",
    "openat",
];

/// `strace` is a test tool, not a part of the product: without it the test says so, and CI counts that as a failure.
fn has_strace() -> bool {
    let found = std::process::Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_ok();
    if !found {
        assert!(std::env::var_os("CI").is_none(), "strace is missing: .ci/run installs it");
        eprintln!("skipped: strace is not installed");
    }
    found
}

/// Runs `tanmi` and kills it when it is about to make its `nth` call of that name. `None` if it was not killed.
fn killed_at(env: &TestEnv, call: &str, nth: usize, args: &[&str]) -> Option<String> {
    let mut command = env.command_in("strace", &env.project);
    command
        .args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={call}")])
        .args(["-e", &format!("inject={call}:signal=KILL:when={nth}")])
        .arg(env!("CARGO_BIN_EXE_tanmi"))
        .args(args);
    let output = command.output().unwrap();
    if output.status.success() { None } else { Some(String::from_utf8_lossy(&output.stdout).into_owned()) }
}

fn copy(from: &Path, to: &Path) {
    let status = std::process::Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(status.success());
}

/// A project as it is before each death, put back for every try.
struct Stage {
    env: TestEnv,
    ws: String,
}

impl Stage {
    fn reset(&self) {
        let kept = self.env.root().join("kept");
        if !kept.exists() {
            copy(&self.env.project, &kept);
        }
        std::process::Command::new("rm").arg("-rf").arg(&self.env.project).status().unwrap();
        copy(&kept, &self.env.project);
    }

    /// Nothing but what belongs there.
    fn assert_tidy(&self, what: &str) {
        let dir = self.env.workspace_dir(&self.ws);
        assert_eq!(std::fs::read_dir(dir.join(".local/tmp")).unwrap().count(), 0, "{what}: leftovers");
        let page = self.env.json(&["node", "list", "--limit", "1000"]);
        let listed = page["nodes"].as_array().unwrap().len();
        let folders = std::fs::read_dir(dir.join("nodes")).unwrap().flatten();
        let mut count = 0;
        for folder in folders {
            count += 1;
            assert!(folder.path().join("Node.md").exists(), "{what}: an orphan {:?}", folder.path());
        }
        assert_eq!(count, listed, "{what}: folders and nodes differ");
        let mut names: Vec<_> =
            std::fs::read_dir(dir.join(".local")).unwrap().flatten().map(|entry| entry.file_name()).collect();
        names.retain(|name| {
            !["index.sqlite", "index.sqlite-journal", "journal", "lock", "tmp"]
                .iter()
                .any(|known| name == *known)
        });
        assert!(names.is_empty(), "{what}: {names:?}");
    }

    fn assert_sound(&self, what: &str) {
        let report = self.env.json(&["workspace", "check"]);
        assert_eq!(report["findings"], Value::Array(vec![]), "{what}");
        self.assert_tidy(what);
    }
}

/// Kills `args` at every step of every call and hands the state to `verify` with whether it was acknowledged.
fn die_everywhere(stage: &Stage, args: &[&str], verify: impl Fn(&str, bool)) -> usize {
    let mut deaths = 0;
    for call in CALLS {
        for nth in 1.. {
            stage.reset();
            let what = format!("{} before {call} #{nth}", args.join(" "));
            let Some(stdout) = killed_at(&stage.env, call, nth, args) else { break };
            deaths += 1;
            verify(&what, !stdout.is_empty());
            assert!(nth < 200, "{what}: does it ever end?");
        }
    }
    deaths
}

#[test]
fn create_killed_at_every_call_is_atomic() {
    if !has_strace() {
        return;
    }
    let env = TestEnv::new();
    let ws = env.init();
    let plan = env.node("root", "planning", "plan");
    let stage = Stage { env, ws };
    let args =
        ["node", "create", "--parent", &plan, "--type", "execution", "--title", "new", "--requirement", "r"];
    let deaths = die_everywhere(&stage, &args, |what, acknowledged| {
        stage.assert_sound(what);
        let page = stage.env.json(&["node", "list"]);
        let is_there = page["nodes"].as_array().unwrap().iter().any(|row| row["title"] == "new");
        assert!(is_there || !acknowledged, "{what}: acknowledged and lost");
        let status = stage.env.status(&plan);
        assert_eq!(status, if is_there { "monitoring" } else { "pending" }, "{what}: half done");
        stage.env.node(&plan, "execution", "life goes on");
    });
    assert!(deaths > 20, "only {deaths} deaths: is the injection working?");
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
    let stage = Stage { env, ws };
    // A reopen touches four files: the node, both ancestors and the workspace's focus.
    let args = ["node", "transition", &task, "--action", "reopen"];
    let deaths = die_everywhere(&stage, &args, |what, acknowledged| {
        stage.assert_sound(what);
        let statuses = [stage.env.status(&task), stage.env.status(&plan), stage.env.status("root")];
        let focus = stage.env.json(&["workspace", "show"])["focusedNodeId"].clone();
        let old = statuses == ["completed", "completed", "completed"] && focus != task.as_str();
        let new = statuses == ["implementing", "monitoring", "monitoring"] && focus == task.as_str();
        assert!(old || new, "{what}: half done {statuses:?} {focus}");
        assert!(new || !acknowledged, "{what}: acknowledged and lost");
    });
    assert!(deaths > 20, "only {deaths} deaths: is the injection working?");
}

#[test]
fn hand_edit_before_recovery_is_kept() {
    if !has_strace() {
        return;
    }
    let env = TestEnv::new();
    let ws = env.init();
    let plan = env.node("root", "planning", "plan");
    let stage = Stage { env, ws };
    let args =
        ["node", "create", "--parent", &plan, "--type", "execution", "--title", "new", "--requirement", "r"];
    let path = stage.env.node_md(&stage.ws, &plan);
    let mut kept_aside = 0;
    for nth in 1.. {
        stage.reset();
        if killed_at(&stage.env, "rename", nth, &args).is_none() {
            break;
        }
        stage.env.edit(&path, |text| text + "\n## Mine\n\nby hand\n");
        let page = stage.env.json(&["node", "list"]);
        assert!(
            page["nodes"].as_array().unwrap().iter().any(|row| row["title"] == "new"),
            "the rest is done"
        );
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("## Mine\n\nby hand"), "rename #{nth}: {text}");
        let findings = stage.env.json(&["workspace", "check"])["findings"].clone();
        for finding in findings.as_array().unwrap() {
            let code = finding["code"].as_str().unwrap();
            assert!(["KEPT_ASIDE", "WRONG_STATUS"].contains(&code), "{finding}");
            kept_aside += usize::from(code == "KEPT_ASIDE");
        }
        stage.env.ok(&["workspace", "check", "--fix"]);
        assert_eq!(stage.env.status(&plan), "monitoring", "and what follows from it can be repaired");
    }
    assert!(kept_aside > 0, "no death fell between the record and the file");
}

/// The last moment there is: the program is held just before it swaps the files, and an editor saves.
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
    let findings = env.json(&["workspace", "check"])["findings"].clone();
    assert_eq!(findings.as_array().unwrap().len(), 1, "kept once: {findings}");
    assert_eq!(findings[0]["code"], "KEPT_ASIDE");
    assert_eq!(env.json(&["node", "list"])["nodes"][1]["title"], "BY HAND", "and the index follows the file");
}

#[test]
fn init_and_delete_killed_at_every_call_are_atomic() {
    if !has_strace() {
        return;
    }
    let env = TestEnv::new();
    let ws = env.init();
    let task = env.node("root", "execution", "task");
    let stage = Stage { env, ws };
    let count = || stage.env.json(&["workspace", "list"])["workspaces"].as_array().unwrap().len();
    let init = ["workspace", "init", "--name", "second", "--goal", "g"];
    die_everywhere(&stage, &init, |what, acknowledged| {
        let there = count();
        assert!(there == 2 || (there == 1 && !acknowledged), "{what}: {there}");
        stage.env.json(&init);
        let left = std::fs::read_dir(stage.env.project.join(".tanmi-workspace/.local")).unwrap().count();
        assert_eq!(left, 1, "{what}: only the lock");
        assert_eq!(count(), there + 1);
    });
    die_everywhere(&stage, &["node", "delete", &task], |what, acknowledged| {
        stage.assert_sound(what);
        let there = stage.env.json(&["node", "list"])["nodes"].as_array().unwrap().len();
        assert!(there == 1 || (there == 2 && !acknowledged), "{what}: {there}");
        assert_eq!(stage.env.status("root"), if there == 1 { "planning" } else { "monitoring" }, "{what}");
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
        // Spread over the life of the process; no randomness needed to hit every part of it.
        std::thread::sleep(std::time::Duration::from_micros(n * 7919 % 9000));
        let _ = child.kill();
        let output = child.wait_with_output().unwrap();
        killed += usize::from(!output.status.success());
        if let Ok(value) = serde_json::from_slice::<Value>(&output.stdout) {
            acknowledged.push(value["nodeId"].as_str().unwrap().to_owned());
        }
    }
    assert!(killed > 10, "only {killed} of 100 were killed");
    let stage = Stage { env, ws };
    stage.assert_sound("after a hundred deaths");
    let page = stage.env.json(&["node", "list", "--limit", "1000"]);
    let rows = page["nodes"].as_array().unwrap();
    for id in acknowledged {
        assert!(rows.iter().any(|row| row["id"] == id.as_str()), "{id} was acknowledged and is lost");
    }
}
